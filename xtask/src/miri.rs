//! `cargo xtask miri`: what Miri can run: plain structures of the derive, and queues, timer, futex, rings and
//! chunks of the driver.

use std::process::Command;
use std::time::Duration;

use crate::shell;
use crate::step::Steps;

/// Each a package, and what of it.
const RUNS: [(&str, &[&str]); 2] = [
    ("plainsong-proto", &["--test", "cdr_plain"]),
    (
        "plainsong",
        &[
            "--lib",
            "--",
            "runtime::inbox",
            "runtime::timer",
            "runtime::notify",
            "runtime::dispatch",
            "transport::memory::filled",
            "transport::memory::lending",
            "transport::memory::pool",
            "transport::memory::ring",
            "transport::memory::segment",
        ],
    ),
];
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// `cargo xtask miri`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let mut steps = Steps::default();
    add_steps(&mut steps);
    Ok(steps.report())
}

/// Adds the runs. Where there is no Miri and it cannot be had, that is no pass.
pub(crate) fn add_steps(steps: &mut Steps) {
    let is_there = is_installed() || install() && is_installed();
    for (package, tests) in RUNS {
        let name = format!("miri: {package}");
        if is_there {
            // Not the cargo that runs this program, which is of another toolchain.
            let mut command = Command::new("cargo");
            command.current_dir(shell::root()).env_remove("CARGO").env_remove("RUSTC");
            command.args(["+nightly", "miri", "test", "-p", package]).args(tests);
            command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env_remove("RUSTUP_TOOLCHAIN");
            // Those of expected panics take it seconds each.
            command.env("RUST_BACKTRACE", "0");
            command.env("CARGO_TARGET_DIR", shell::target().join("miri"));
            steps.run(&name, LIMIT, command);
        } else {
            let mut skipped = Command::new("printf");
            let message = "NOT CHECKED: no Miri (rustup component add miri --toolchain nightly)";
            skipped.arg(format!("{message}\\n0 passed, 0 failed, 1 skipped\\n"));
            steps.run(&name, LIMIT, skipped);
        }
    }
}

fn is_installed() -> bool {
    shell::output_of("rustup", &["component", "list", "--toolchain", "nightly", "--installed"])
        .is_some_and(|list| list.lines().any(|line| line.starts_with("miri")))
}

fn install() -> bool {
    let arguments = ["component", "add", "miri", "rust-src", "--toolchain", "nightly"];
    Command::new("rustup").args(arguments).status().is_ok_and(|status| status.success())
}
