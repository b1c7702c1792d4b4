//! The simulator: many participants in one thread, virtual time, faults drawn from a seed.

use std::process::Command;

use crate::shell;

/// `cargo xtask sim [--seed N] [--seeds A..B] [--mutations] [...]`.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let status = command(arguments).status().map_err(|error| format!("cannot start cargo: {error}"))?;
    Ok(status.success())
}

/// The simulator, optimized but with checks of overflow, with `arguments` for its binary.
pub(crate) fn command(arguments: &[String]) -> Command {
    let mut command = shell::cargo(&["run", "--quiet", "--profile", "sim", "--package", "plainsong-sim"]);
    command.args(["--bin", "sim", "--"]).args(arguments);
    command
}
