//! The attacker: real datagrams, forged and floods of them, at a live pair in network namespaces.

use std::process::Command;

use crate::shell;

/// `cargo xtask attack [--minutes N] [--only NAME] [--skip NAMES] [--seed N] [--list]`.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let status = command(arguments).status().map_err(|error| format!("cannot start cargo: {error}"))?;
    Ok(status.success())
}

/// The attacker, optimized but with checks of overflow, with `arguments` for its binary. It enters namespaces
/// of its own.
pub(crate) fn command(arguments: &[String]) -> Command {
    let mut command = shell::cargo(&["run", "--quiet", "--profile", "sim", "--package", "plainsong-attack"]);
    command.args(["--bin", "attack", "--"]).args(arguments);
    command
}
