//! `cargo xtask docs`: writes the pages that are printed from the sources.

use crate::shell;

/// The tests that compare a page with the sources write it when this is set.
const WRITE_VARIABLE: &str = "PLAINSONG_WRITE_PAGES";

/// `cargo xtask docs`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let tests = ["--test", "qos_page", "--test", "tuning_page", "--test", "vendor_page"];
    let mut command = shell::cargo(&["test", "--package", "plainsong-proto"]);
    command.args(tests);
    command.env(WRITE_VARIABLE, "1");
    let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    Ok(status.success())
}
