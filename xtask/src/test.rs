//! `cargo xtask test`: every test there is, in order of cost, none against the machine's network.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::step::Steps;
use crate::{attack, chaos, fuzz, instructions, interop, nemesis, setup, shell, sim, types};

const DECIDER_SEEDS: &str = "0..20000";
const SIM_SEEDS: &str = "0..3000";
/// About a minute.
const ATOMIC_SEEDS: &str = "0..10000";
/// About half a minute, of runs that are twenty times as long or more.
const ATOMIC_LONG_SEEDS: &str = "0..500";
const FUZZ_SECONDS: u32 = 20;
const ATTACK_MINUTES: &str = "1";
const KILLS: &str = "500";
const NEMESIS: [&str; 4] = ["--minutes", "0.5", "--seconds", "5"];
/// So long members may take to be a group again, while other programs take the processors.
const NEMESIS_ATOMIC: [&str; 4] = ["--consistency", "atomic", "--heal-ms", "20000"];
/// Half a minute at most.
const POWER_LOSSES: &str = "5";
/// Other programs run meanwhile, and take the processors.
const STALL_MS: &str = "1000";
const RANDOM_TYPES: &str = "40";
/// What applications see of QoS policies and entities, whichever transport carries their samples.
const SCENARIOS: [&str; 20] = [
    "batches",
    "builtin_topics",
    "dcps",
    "entities",
    "filters",
    "leaving",
    "listeners",
    "long_keys",
    "mismatch",
    "multi_topics",
    "octet_sequences",
    "presentation",
    "reading",
    "serialized",
    "silence",
    "state",
    "statuses",
    "surprises",
    "undecodable",
    "waiting_listeners",
];
/// Other products whose adapters are tested.
const OTHERS: [&str; 2] = ["cyclone", "fastdds"];

/// `cargo xtask test`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let mut steps = Steps::default();
    add_steps(&mut steps);
    Ok(steps.report())
}

/// `cargo xtask model`.
pub(crate) fn run_model(_arguments: &[String]) -> Result<bool, String> {
    let mut steps = Steps::default();
    model(&mut steps);
    Ok(steps.report())
}

/// The orderings of threads that are made by hand, in many schedules: a minute, and what it takes to compile.
fn model(steps: &mut Steps) {
    const TESTS: [&str; 6] = ["test", "-p", "plainsong", "--lib", "--features", "shuttle"];
    let mut build = shell::cargo(&TESTS);
    build.args(["--no-run", "--quiet"]);
    if steps.run("build model", minutes(10), build) {
        let mut run = shell::cargo(&TESTS);
        run.args(["--offline", "model::"]);
        steps.run("model of the driver's threads", minutes(2), run);
    }
}

/// Adds all test steps. Each runs even when an earlier one failed, so that one run tells all.
pub(crate) fn add_steps(steps: &mut Steps) {
    setup::add_steps(steps);
    let build = shell::cargo(&["test", "--workspace", "--no-run", "--quiet"]);
    if steps.run("build tests", minutes(20), build) {
        // Built outside, for the namespace has no way to a registry.
        let unit = shell::cargo(&["test", "--workspace", "--no-fail-fast", "--offline"]);
        steps.run("cargo test --workspace", minutes(15), shell::isolated(&unit));
        let mut by_udp = shell::cargo(&["test", "-p", "plainsong", "--no-fail-fast", "--offline"]);
        by_udp.args(SCENARIOS.iter().flat_map(|name| ["--test", name]));
        by_udp.env("PLAINSONG_SHARED_MEMORY", "off");
        steps.run("scenarios by UDP", minutes(5), shell::isolated(&by_udp));
    }
    model(steps);
    instructions(steps);
    let seeds = ["--seeds".to_owned(), SIM_SEEDS.to_owned()];
    steps.run("simulation", minutes(15), sim::command(&seeds));
    steps.run("simulated mistakes", minutes(15), sim::command(&["--mutations".to_owned()]));
    let deciders = ["decider", "--seeds", DECIDER_SEEDS].map(str::to_owned);
    steps.run("simulated deciders", minutes(5), sim::command(&deciders));
    let mistakes = ["decider", "--mutations"].map(str::to_owned);
    steps.run("simulated mistakes around deciders", minutes(5), sim::command(&mistakes));
    let seeds = ["atomic", "--seeds", ATOMIC_SEEDS].map(str::to_owned);
    steps.run("simulation of groups", minutes(5), sim::command(&seeds));
    let corpus = ["atomic", "--corpus"].map(str::to_owned);
    steps.run("groups that once failed", minutes(5), sim::command(&corpus));
    let seeds = ["atomic", "--long", "--seeds", ATOMIC_LONG_SEEDS].map(str::to_owned);
    steps.run("long simulation of groups", minutes(5), sim::command(&seeds));
    steps.run("model of groups", minutes(5), sim::command(&["--model".to_owned()]));
    let mistakes = ["atomic", "--mutations"].map(str::to_owned);
    steps.run("mistakes in groups", minutes(5), sim::command(&mistakes));
    as_root(
        steps,
        "attacks",
        minutes(15),
        attack::command(&["--minutes", ATTACK_MINUTES].map(str::to_owned)),
    );
    as_root(steps, "nemesis", minutes(5), nemesis::command(&NEMESIS.map(str::to_owned)));
    let atomic = [NEMESIS, NEMESIS_ATOMIC].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
    as_root(steps, "nemesis of ATOMIC topics", minutes(5), nemesis::command(&atomic));
    let losses = ["--power-loss", POWER_LOSSES, "--heal-ms", "20000"].map(str::to_owned);
    as_root(steps, "losses of power", minutes(5), nemesis::command(&losses));
    let kills = ["--kills", KILLS, "--stall-ms", STALL_MS].map(str::to_owned);
    steps.run("chaos", minutes(5), chaos::command(&kills));
    steps.run("fuzz smoke", minutes(10), fuzz::smoke(FUZZ_SECONDS));
    if steps.run("build plainsong", minutes(15), interop::build()) {
        steps.run("interop", minutes(20), interop::command(&[]));
        laboratory(steps);
    }
    if steps.run("build Plainsong's side of random types", minutes(10), types::build()) {
        random_types(steps, "cyclone");
    }
}

/// A small share of `cargo xtask types`. A peer that is not there is no failure, but in CI.
fn random_types(steps: &mut Steps, peer: &str) {
    let name = format!("random types with {peer}");
    match types::missing(peer) {
        Some(needed) if std::env::var_os("CI").is_none() => {
            let mut skipped = Command::new("printf");
            skipped.args(["without %s\\n0 passed, 0 failed, 1 skipped\\n", &needed.display().to_string()]);
            steps.run(&name, minutes(1), skipped);
        }
        _ => {
            let share = ["--count", RANDOM_TYPES].map(str::to_owned);
            steps.run(&name, minutes(2), types::command(peer, &share));
        }
    }
}

/// What only root may do, for it makes networks.
fn as_root(steps: &mut Steps, name: &str, limit: Duration, command: Command) {
    if shell::is_root() {
        steps.run(name, limit, command);
    } else {
        let mut skipped = Command::new("printf");
        skipped.arg("only root may make networks of its own\\n0 passed, 0 failed, 1 skipped\\n");
        steps.run(name, minutes(1), skipped);
    }
}

/// The two paths of a sample cost no more instructions than is written down.
fn instructions(steps: &mut Steps) {
    if setup::missing_packages().contains(&"valgrind") && std::env::var_os("CI").is_none() {
        let mut skipped = Command::new("printf");
        skipped.arg("without valgrind\\n0 passed, 0 failed, 1 skipped\\n");
        steps.run("instructions of a sample", minutes(1), skipped);
    } else {
        steps.call("instructions of a sample", || instructions::run(&[]));
    }
}

/// What is measured must be true: everything arrives once and in order, and what goes wrong on purpose is
/// counted exactly, by us, by bare sockets and by two other products. How fast it is says nothing here.
fn laboratory(steps: &mut Steps) {
    steps.run("laboratory: smoke", minutes(3), shell::isolated(&campaign("smoke")));
    let missing = setup::missing_packages();
    if !missing.is_empty() && std::env::var_os("CI").is_none() {
        let mut skipped = Command::new("printf");
        skipped.args(["without %s\\n0 passed, 0 failed, 1 skipped\\n", &missing.join(" ")]);
        steps.run("laboratory: adapters", minutes(1), skipped);
        return;
    }
    // Built outside, for the namespace has no way to a registry.
    let mut install = plainsong();
    install.args(["perf", "adapters", "--install"]).args(OTHERS).arg("--dir").arg(adapters());
    if steps.run("laboratory: build adapters", minutes(10), install) {
        let mut selftest = plainsong();
        selftest.args(["perf", "selftest", "--counts-only", "--adapter-dir"]).arg(adapters());
        selftest.args(["plainsong", "udp"].iter().chain(&OTHERS).map(|name| format!("--adapter={name}")));
        steps.run("laboratory: self-test", minutes(3), shell::isolated(&selftest));
        steps.run("laboratory: pairs", minutes(3), shell::isolated(&campaign("pairs")));
    }
}

/// A campaign, and a report that fails when a limit is missed: no loss, no duplicates, nothing out of order.
fn campaign(name: &str) -> Command {
    const SCRIPT: &str = "rm -rf \"$3\" && \"$1\" perf run \"campaigns/$2.toml\" --adapter-dir \"$4\" --out \"$3\" \
                          && \"$1\" perf report \"$3\"";
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh"]).current_dir(shell::root());
    command.arg(program()).arg(name).arg(shell::target().join("laboratory").join(name)).arg(adapters());
    command
}

fn program() -> PathBuf {
    shell::target().join("release/plainsong")
}

fn plainsong() -> Command {
    let mut command = Command::new(program());
    command.current_dir(shell::root());
    command
}

/// Where the adapters of other products are built, of those that interop needs too.
fn adapters() -> PathBuf {
    shell::target().join("laboratory/adapters")
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}
