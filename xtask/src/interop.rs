//! Interop: our shapes application against other products, see `interop/README.md`.

use std::process::Command;

use crate::shell;

/// `cargo xtask interop [...]`: options go to the harness.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let built = build().status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !built.success() {
        return Ok(false);
    }
    let status = command(arguments).status().map_err(|error| format!("cannot start python3: {error}"))?;
    Ok(status.success())
}

/// Builds the binary the harness drives.
pub(crate) fn build() -> Command {
    shell::cargo(&["build", "--release", "--package", "plainsong-cli"])
}

/// The harness, with `arguments`.
pub(crate) fn command(arguments: &[String]) -> Command {
    let mut command = Command::new("python3");
    command.current_dir(shell::root());
    command.arg("interop/run.py").arg("--plainsong");
    command.arg(shell::target().join("release/plainsong"));
    command.arg("--peers-directory").arg(shell::peers());
    command.args(arguments);
    command
}
