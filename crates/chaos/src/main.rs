//! Chaos: processes under load are killed at any moment, and the others must not notice. Its subcommand
//! `nemesis` does more to them (`nemesis`).
//!
//! Some processes that write and read four topics live on, and others beside them are killed, or stopped for
//! a moment, at random, and replaced. Whoever reads checks every octet and every number; whoever lives on has
//! no pause longer than it may, and in the end holds what it held before. All in namespaces of its own. It
//! prints counts, and exits with 1 if anything was not as it must be. Linux.

mod check;
mod clock;
mod lab;
mod load;
mod measure;
mod member;
mod mistake;
mod nemesis;
mod random;
mod run;
mod told;
mod verdict;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::mistake::Mistake;

/// Kill processes under load at random.
#[derive(Parser)]
#[command(name = "chaos")]
struct Options {
    /// Processes to kill
    #[arg(long, default_value_t = 1_000)]
    kills: u64,
    /// What is drawn at random follows from it
    #[arg(long)]
    seed: Option<u64>,
    /// The longest pause that those who live on may see
    #[arg(long, default_value_t = 100)]
    stall_ms: u64,
    /// What a process does wrong on purpose, to see that it is noticed
    #[arg(long)]
    mistake: Option<Mistake>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What this program starts of itself.
#[derive(Subcommand)]
enum Part {
    /// Kill, inside of a namespace.
    #[command(hide = true)]
    Inside,
    /// One of the processes.
    #[command(hide = true)]
    Worker(worker::Options),
    /// Do everything to processes that may happen to them.
    Nemesis(nemesis::Options),
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.part {
        Some(Part::Nemesis(options)) => nemesis::run(options),
        Some(Part::Worker(options)) => worker::run(options).map(|()| true),
        Some(Part::Inside) => lab::prepare().and_then(|()| {
            let seed = options.seed.unwrap_or_else(random::fresh_seed);
            run::run(&run::Plan {
                kills: options.kills,
                seed,
                stall_ms: options.stall_ms,
                mistake: options.mistake,
            })
        }),
        None => lab::enter_namespace(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("chaos: {message}");
            ExitCode::from(2)
        }
    }
}
