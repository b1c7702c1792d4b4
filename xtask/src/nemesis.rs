//! Processes in networks of their own to which everything is done that may happen to them.

use std::process::Command;

use crate::{chaos, shell};

/// `cargo xtask nemesis [--minutes N] [--seed N] [--consistency NAME] [--cell NAME] [--power-loss N]
/// [--keep FOLDER]`.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let status = command(arguments).status().map_err(|error| format!("cannot start cargo: {error}"))?;
    Ok(status.success())
}

/// The nemesis, optimized but with checks of overflow, with `arguments` of its own. It enters namespaces,
/// for which it must be root.
pub(crate) fn command(arguments: &[String]) -> Command {
    let mut command = chaos::command(&["nemesis".to_owned()]);
    command.args(arguments).current_dir(shell::root());
    command
}
