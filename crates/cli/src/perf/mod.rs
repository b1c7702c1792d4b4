//! `plainsong perf`: the laboratory. It measures DDS products, this one and others, by the same instructions.

mod adapters;
mod agent;
mod builtin;
mod calibrate;
mod campaign;
mod metrics;
mod quick;
mod report;
pub(crate) mod results;
mod run;
mod selftest;
mod statistics;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// What to do in the laboratory.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Carry out a campaign.
    Run(run::Options),
    /// Measure one thing now, without a file.
    Quick(quick::Options),
    /// Check adapters against faults that are made on purpose.
    Selftest(selftest::Options),
    /// Take part in campaigns of a controller on another host.
    Agent(agent::Options),
    /// Become a worker (internal).
    #[command(hide = true)]
    Child(agent::child::Options),
    /// One worker, as agents start it: commands on standard input, events on standard output.
    #[command(hide = true)]
    Worker(builtin::Options),
    /// Measure the floors of this machine: calls, wake-ups, sockets, memory.
    Calibrate(calibrate::Options),
    /// Show the adapters of other products, and build them.
    Adapters(adapters::Options),
    /// Show what runs have measured, and compare them.
    Report(report::Options),
}

/// Is a worker if the arguments are those that an agent gives one.
pub(crate) fn run_as_worker() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let mut is_next = |word: &str| arguments.next().is_some_and(|it| it == word);
    let is_worker = is_next("perf") && is_next("worker") && is_next("--adapter");
    let name = is_worker.then(|| arguments.next()).flatten()?;
    if arguments.next().is_some() {
        return None;
    }
    builtin::Options::of(name.to_str()?).map(|options| builtin::run(&options))
}

/// Carries out one subcommand.
pub(crate) fn run(options: &Options) -> ExitCode {
    match &options.command {
        Command::Run(options) => run::run(options),
        Command::Quick(options) => quick::run(options),
        Command::Selftest(options) => selftest::run(options),
        Command::Agent(options) => agent::run(options),
        Command::Child(options) => agent::child::run(options),
        Command::Worker(options) => builtin::run(options),
        Command::Calibrate(options) => calibrate::run(options),
        Command::Adapters(options) => adapters::run(options),
        Command::Report(options) => report::run(options),
    }
}
