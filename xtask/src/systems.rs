//! `cargo xtask systems`: the library is compiled for other systems than that of the tests, so that its way
//! without the calls of Linux is no dead letter. It runs nowhere but on Linux here.

use std::process::Command;
use std::time::Duration;

use crate::shell;
use crate::step::Steps;

const TARGETS: [&str; 4] =
    ["aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-unknown-freebsd", "x86_64-pc-windows-gnu"];
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// `cargo xtask systems`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let mut steps = Steps::default();
    add_steps(&mut steps);
    Ok(steps.report())
}

/// Adds the lints of the library for each system whose standard library is here or can be had.
pub(crate) fn add_steps(steps: &mut Steps) {
    for target in TARGETS {
        let name = format!("lints for {target}");
        if is_installed(target) || install(target) {
            let mut lints =
                shell::cargo(&["clippy", "--quiet", "-p", "plainsong", "--lib", "--target", target]);
            lints.args(["--", "-D", "warnings"]);
            steps.run(&name, LIMIT, lints);
        } else {
            let mut skipped = Command::new("printf");
            skipped.args(["rustup has no standard library of %s\\n0 passed, 0 failed, 1 skipped\\n", target]);
            steps.run(&name, LIMIT, skipped);
        }
    }
}

fn is_installed(target: &str) -> bool {
    shell::output_of("rustup", &["target", "list", "--installed"])
        .is_some_and(|list| list.lines().any(|line| line == target))
}

fn install(target: &str) -> bool {
    Command::new("rustup").args(["target", "add", target]).status().is_ok_and(|status| status.success())
}
