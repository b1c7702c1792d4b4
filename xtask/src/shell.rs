//! Where things are, and how commands are started: cargo, python, private network namespaces.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes the loopback interface of a new namespace usable, multicast included, then runs the
/// arguments in place of the shell.
const ENTER_NAMESPACE: &str = "ip link set lo up && ip link set lo multicast on && \
     ip route add 224.0.0.0/4 dev lo && exec \"$@\"";

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Cargo's target directory, as an absolute path.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |directory| root().join(PathBuf::from(directory)))
}

/// Where the interop peers are built.
pub(crate) fn peers() -> PathBuf {
    target().join("interop")
}

/// A cargo command at the root of the repository.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// `command` inside a network namespace of its own, whose only interface is loopback.
pub(crate) fn isolated(command: &Command) -> Command {
    let mut outer = Command::new("unshare");
    outer.arg(if is_root() { "-n" } else { "-rn" });
    outer.args(["sh", "-c", ENTER_NAMESPACE, "--"]);
    outer.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(key, value),
            None => outer.env_remove(key),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        outer.current_dir(directory);
    }
    outer
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    output_of("id", &["-u"]).is_some_and(|text| text.trim() == "0")
}

/// Standard output of a command that succeeded, else `None`.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}
