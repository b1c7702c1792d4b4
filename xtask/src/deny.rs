//! `cargo xtask deny`: licences, duplicates, sources and advisories of the dependencies (`deny.toml`).

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::shell;
use crate::step::Steps;

const VERSION: &str = "0.20.2";
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// To compile it takes minutes, once.
const INSTALL_SECONDS_MAX: &str = "600";

/// `cargo xtask deny`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let mut steps = Steps::default();
    add_steps(&mut steps);
    Ok(steps.report())
}

/// Adds the checks. The tool is installed below the target directory where it is missing.
pub(crate) fn add_steps(steps: &mut Steps) {
    if !is_installed() {
        // Where it cannot be had, that is no pass.
        let is_there = install().status().is_ok_and(|status| status.success()) && is_installed();
        if !is_there {
            return not_checked(steps, "dependencies", "cargo-deny cannot be installed");
        }
    }
    steps.run("licences, duplicates and sources", LIMIT, deny(&["check", "licenses", "bans", "sources"]));
    // The database of advisories is fetched anew. Where it cannot be had, that is no pass.
    if deny(&["fetch", "db"]).output().is_ok_and(|output| output.status.success()) {
        steps.run("advisories", LIMIT, deny(&["check", "advisories"]));
    } else {
        not_checked(steps, "advisories", "their database cannot be fetched");
    }
}

fn not_checked(steps: &mut Steps, step: &str, why: &str) {
    let mut skipped = Command::new("printf");
    skipped.arg(format!("NOT CHECKED: {why}\\n0 passed, 0 failed, 1 skipped\\n"));
    steps.run(step, LIMIT, skipped);
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
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut install = Command::new("timeout");
    install.arg(INSTALL_SECONDS_MAX).arg(program).current_dir(shell::root());
    install.args(["install", "--locked", "--quiet", "--debug", "cargo-deny", "--version", VERSION]);
    install.arg("--root").arg(directory()).env("CARGO_TARGET_DIR", directory().join("build"));
    install
}

fn deny(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(shell::root());
    command
}
