//! `cargo xtask deny`: licences, duplicates, sources and advisories of the dependencies (`deny.toml`).

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::shell;
use crate::step::Steps;

const VERSION: &str = "0.20.2";
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// To compile it takes minutes, once.
const INSTALL_LIMIT: Duration = Duration::from_secs(30 * 60);

/// `cargo xtask deny`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let mut steps = Steps::default();
    add_steps(&mut steps);
    Ok(steps.report())
}

/// Adds the checks. The tool is installed below the target directory where it is missing.
pub(crate) fn add_steps(steps: &mut Steps) {
    if !is_installed() && !steps.run("install cargo-deny", INSTALL_LIMIT, install()) {
        return;
    }
    steps.run("licences, duplicates and sources", LIMIT, deny(&["check", "licenses", "bans", "sources"]));
    // The database of advisories is fetched anew. Where it cannot be had, that is no pass.
    if deny(&["fetch", "db"]).output().is_ok_and(|output| output.status.success()) {
        steps.run("advisories", LIMIT, deny(&["check", "advisories"]));
    } else {
        let mut skipped = Command::new("printf");
        skipped.arg(
            "NOT CHECKED: the database of advisories cannot be fetched\\n0 passed, 0 failed, 1 skipped\\n",
        );
        steps.run("advisories", LIMIT, skipped);
    }
}

fn directory() -> PathBuf {
    shell::target().join("tools")
}

fn program() -> PathBuf {
    directory().join("bin/cargo-deny")
}

fn is_installed() -> bool {
    let version = shell::output_of(&program().to_string_lossy(), &["--version"]);
    version.is_some_and(|version| version.trim().ends_with(VERSION))
}

fn install() -> Command {
    let mut install =
        shell::cargo(&["install", "--locked", "--quiet", "--debug", "cargo-deny", "--version", VERSION]);
    install.arg("--root").arg(directory()).env("CARGO_TARGET_DIR", directory().join("build"));
    install
}

fn deny(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(shell::root());
    command
}
