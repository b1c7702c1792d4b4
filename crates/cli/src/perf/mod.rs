//! `plainsong perf`: the laboratory. It measures DDS products, this one and others, by the same instructions.

mod report;
pub(crate) mod results;

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
    /// Show what runs have measured, and compare them.
    Report(report::Options),
}

/// Carries out one subcommand.
pub(crate) fn run(options: &Options) -> ExitCode {
    match &options.command {
        Command::Report(options) => report::run(options),
    }
}
