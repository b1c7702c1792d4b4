//! The nemesis: processes in networks of their own write and read one topic, and are killed, stopped, and
//! cut off from each other. What they read must be right all the same, and when all is healed, soon
//! everything must be where it belongs.
//!
//! A run is a row of cells (`plan`). Each starts processes (`member`, `worker`) in networks of its own
//! (`network`), does to them what its nemesis does (`cell`, `fault`), and judges what they told (`told`,
//! `record`) by checkers that know nothing of all that (`history`, `judge`). Linux, as root.

mod cell;
mod disk;
mod fault;
mod history;
mod judge;
mod member;
mod mistake;
mod network;
mod plan;
mod power;
mod record;
mod told;
mod worker;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use crate::lab;
use crate::nemesis::cell::Common;
use crate::nemesis::judge::Summary;
use crate::nemesis::member::clock_library;
use crate::nemesis::mistake::Mistake;
use crate::nemesis::plan::{Cell, Consistency, cells};
use crate::random::{Random, fresh_seed};

/// So long a process that is silent is remembered where no order is agreed on: longer than any fault.
const LEASE: Duration = Duration::from_secs(12);
/// So soon after healing everything must be where it belongs.
const HEALS: Duration = Duration::from_secs(5);

/// Do everything to processes that may happen to them.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// No cell begins later
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// What is drawn at random follows from it
    #[arg(long)]
    seed: Option<u64>,
    /// What the topic promises
    #[arg(long, default_value = "eventual")]
    consistency: Consistency,
    /// Instead of cells: so often all processes of a PERSISTENT topic lose power at once
    #[arg(long, conflicts_with = "cell")]
    power_loss: Option<u64>,
    /// This cell alone, such as triple/volatile/kill
    #[arg(long)]
    cell: Option<Cell>,
    /// How long faults go on in a cell
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// So long all may take to agree after healing
    #[arg(long)]
    heal_ms: Option<u64>,
    /// What a process does wrong on purpose, to see that it is noticed
    #[arg(long)]
    mistake: Option<Mistake>,
    /// A folder for what processes told, which must not be below /tmp
    #[arg(long)]
    keep: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What this program starts of itself.
#[derive(Subcommand, Debug)]
enum Part {
    /// The run, inside of a namespace.
    #[command(hide = true)]
    Inside,
    /// One of the processes.
    #[command(hide = true)]
    Member(worker::Options),
}

/// Whether all was well.
///
/// # Errors
/// It cannot be carried out.
pub(crate) fn run(options: &Options) -> Result<bool, String> {
    match &options.part {
        Some(Part::Member(options)) => worker::run(options).map(|()| true),
        Some(Part::Inside) => lab::prepare().and_then(|()| run_cells(options)),
        None => lab::enter_namespace(),
    }
}

fn run_cells(options: &Options) -> Result<bool, String> {
    let seed = options.seed.unwrap_or_else(fresh_seed);
    let heals = match (options.heal_ms, options.consistency) {
        (Some(heal_ms), _) => Duration::from_millis(heal_ms),
        // Who waits for a process that is gone waits for the end of its lease.
        (None, Consistency::Eventual) => LEASE + HEALS,
        (None, Consistency::Atomic) => HEALS,
    };
    let seconds = |seconds| Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    let common = Common {
        consistency: options.consistency,
        lasts: seconds(options.seconds)?,
        heals,
        lease: LEASE,
        mistake: options.mistake,
        keep: options.keep.clone(),
    };
    if let Some(losses) = options.power_loss {
        return power::run(losses, seed, &common);
    }
    let time = seconds(options.minutes * 60.0)?;
    let begin = Instant::now();
    let mut random = Random::new(seed);
    let drawn: Box<dyn Iterator<Item = Cell>> = match options.cell {
        Some(cell) => Box::new(std::iter::repeat(cell)),
        None => Box::new(cells(&mut random, options.consistency)),
    };
    let mut summary = Summary::default();
    for (cell, seed) in drawn.zip(seed..) {
        if let Some(why) = cell.lacks(common.consistency, clock_library().exists()) {
            summary.skip(cell, why);
            if options.cell.is_some() {
                break;
            }
            continue;
        }
        let outcome = cell::run(cell, seed, &common)?;
        summary.judge(cell, seed, &outcome, &common);
        if begin.elapsed() >= time {
            break;
        }
    }
    Ok(summary.tell(seed, begin.elapsed(), &common))
}
