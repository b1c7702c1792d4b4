//! `cargo xtask test`: every test there is, in order of cost, none against the machine's network.

use std::process::Command;
use std::time::Duration;

use crate::step::Steps;
use crate::{fuzz, interop, setup, shell, sim};

const SIM_SEEDS: &str = "0..3000";
const FUZZ_SECONDS: u32 = 30;

/// `cargo xtask test`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let mut steps = Steps::default();
    add_steps(&mut steps);
    Ok(steps.report())
}

/// Adds all test steps. Each runs even when an earlier one failed, so that one run tells all.
pub(crate) fn add_steps(steps: &mut Steps) {
    setup::add_steps(steps);
    let build = shell::cargo(&["test", "--workspace", "--no-run", "--quiet"]);
    if steps.run("build tests", minutes(20), build) {
        // Built outside, for the namespace has no way to a registry.
        let unit = shell::cargo(&["test", "--workspace", "--no-fail-fast", "--offline"]);
        steps.run("cargo test --workspace", minutes(15), shell::isolated(&unit));
    }
    let seeds = ["--seeds".to_owned(), SIM_SEEDS.to_owned()];
    steps.run("simulation", minutes(15), sim::command(&seeds));
    steps.run("simulated mistakes", minutes(15), sim::command(&["--mutations".to_owned()]));
    steps.run("fuzz smoke", minutes(10), fuzz::smoke(FUZZ_SECONDS));
    if steps.run("build plainsong", minutes(15), interop::build()) {
        steps.run("interop", minutes(20), interop::command(&[]));
        steps.run("laboratory", minutes(3), shell::isolated(&laboratory()));
    }
}

/// The smoke campaign, and a report that fails when a limit is missed: no loss, no duplicates, nothing out of order.
fn laboratory() -> Command {
    const SCRIPT: &str =
        "rm -rf \"$2\" && \"$1\" perf run campaigns/smoke.toml --out \"$2\" && \"$1\" perf report \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh"]).current_dir(shell::root());
    command.arg(shell::target().join("release/plainsong")).arg(shell::target().join("laboratory"));
    command
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}
