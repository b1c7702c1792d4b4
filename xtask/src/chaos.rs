//! Processes under load that are killed at random, and what the others make of it.

use std::process::Command;

use crate::shell;

/// `cargo xtask chaos [--kills N] [--seed N] [--stall-ms N] [--mistake NAME]`.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let status = command(arguments).status().map_err(|error| format!("cannot start cargo: {error}"))?;
    Ok(status.success())
}

/// The program that kills, optimized but with checks of overflow, with `arguments` for its binary. It enters
/// namespaces of its own.
pub(crate) fn command(arguments: &[String]) -> Command {
    let mut command = shell::cargo(&["run", "--quiet", "--profile", "sim", "--package", "plainsong-chaos"]);
    command.args(["--features", "power-loss", "--bin", "chaos", "--"]).args(arguments);
    command
}
