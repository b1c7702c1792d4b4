//! Random types between Plainsong and other products, see `interop/types`.

use std::path::PathBuf;
use std::process::Command;

use crate::shell;

/// The products, and what they are built as.
const PEERS: [(&str, Option<&str>); 2] = [("cyclone", None), ("fastdds", Some("fastdds_types"))];

/// `cargo xtask types [...]`: options go to `interop/types/run.py`, once for each peer.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let built = build().status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !built.success() {
        return Ok(false);
    }
    let mut rest = arguments.to_vec();
    let mut wanted = None;
    if let Some(at) = rest.iter().position(|it| it == "--peer") {
        wanted = rest.drain(at..(at + 2).min(rest.len())).nth(1);
    }
    let mut passed = true;
    for (peer, _) in PEERS {
        if wanted.as_deref().is_none_or(|it| it == peer) {
            let status = command(peer, &rest).status();
            passed &= status.map_err(|error| format!("cannot start unshare: {error}"))?.success();
        }
    }
    Ok(passed)
}

/// Builds Plainsong's side.
pub(crate) fn build() -> Command {
    shell::cargo(&["build", "--package", "plainsong-cli", "--example", "type_peer"])
}

/// The run with one peer, in a network namespace of its own.
pub(crate) fn command(peer: &str, arguments: &[String]) -> Command {
    let mut run = Command::new(shell::peers().join("venv/bin/python"));
    run.current_dir(shell::root()).arg("interop/types/run.py").args(["--peer", peer]);
    run.arg("--plainsong").arg(shell::target().join("debug/examples/type_peer"));
    if let Some(program) = PEERS.iter().find(|(name, _)| *name == peer).and_then(|(_, program)| *program) {
        run.arg("--program").arg(shell::peers().join(program));
    }
    run.args(arguments);
    shell::isolated(&run)
}

/// What the run with one peer needs, if it is not there.
pub(crate) fn missing(peer: &str) -> Option<PathBuf> {
    let program = PEERS.iter().find(|(name, _)| *name == peer).and_then(|(_, program)| *program);
    let needed = shell::peers().join(program.unwrap_or("venv/bin/python"));
    (!needed.exists()).then_some(needed)
}
