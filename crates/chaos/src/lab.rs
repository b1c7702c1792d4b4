//! Namespaces of this run alone: its network is a loopback interface, and nobody else has files where it
//! looks for what is left behind.

use std::process::Command;

/// Runs this program again in a network and mount namespace of its own.
///
/// # Errors
/// They cannot be made.
pub(crate) fn enter_namespace() -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("-r");
    }
    command.args(["-n", "-m"]).arg(program).args(std::env::args_os().skip(1)).arg("inside");
    let status = command.status().map_err(|error| format!("unshare (util-linux): {error}"))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(format!("{status}: it needs namespaces, unshare (util-linux) and ip (iproute2)")),
    }
}

/// Makes loopback usable, and folders empty, in this namespace.
///
/// # Errors
/// What is missing.
pub(crate) fn prepare() -> Result<(), String> {
    const SCRIPT: &str = "ip link set lo up multicast on; ip route add 224.0.0.0/4 dev lo\n\
                          mount -t tmpfs tmpfs /dev/shm; mount -t tmpfs tmpfs /tmp";
    let output = Command::new("sh").args(["-ec", SCRIPT]).output().map_err(|error| format!("sh: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("preparing a namespace: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
