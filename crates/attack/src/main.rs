//! An attacker: raw sockets, forged addresses and floods against a live pair of Plainsong processes.
//!
//! Everything happens in network namespaces that this program makes: a writer, a reader, a victim whose
//! address is forged, a newcomer, and a bridge between them, on which the attacker sits. It prints what each
//! attack drew, held and stopped, and exits with 1 when one of them did more than its row of the table
//! allows. Linux, as root.

#![forbid(unsafe_code)]

mod attacker;
mod compose;
mod identity;
mod lab;
mod pair;
mod random;
mod raw;
mod report;
mod scenario;
mod worker;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};

use crate::lab::Lab;
use crate::random::Random;
use crate::report::Outcome;
use crate::scenario::{SCENARIOS, Scenario};

/// Attack a live pair in network namespaces.
#[derive(Parser)]
#[command(name = "attack")]
struct Options {
    /// How long all attacks may take together
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Only those whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Not these, by their whole names, with commas between them
    #[arg(long, value_delimiter = ',')]
    skip: Vec<String>,
    /// What is drawn at random follows from it
    #[arg(long)]
    seed: Option<u64>,
    /// Print the attacks and what they may do
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What this program starts of itself.
#[derive(Subcommand)]
enum Part {
    /// Attack, inside of a namespace.
    #[command(hide = true)]
    Inside,
    /// One of the pair.
    #[command(hide = true)]
    Worker {
        #[arg(value_enum)]
        role: worker::Role,
        /// Number that samples of this pair carry
        #[arg(long)]
        run: u32,
        /// The writer keeps samples for late joiners
        #[arg(long)]
        latched: bool,
    },
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.part {
        Some(Part::Worker { role, run, latched }) => worker::run(*role, *run, *latched).map(|()| true),
        Some(Part::Inside) => attack(&options),
        None if options.list => {
            SCENARIOS.iter().for_each(|it| println!("{:<20} {}\n{:21}{}", it.name, it.what, "", it.bounds));
            Ok(true)
        }
        None => lab::enter_namespace(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("attack: {message}");
            ExitCode::from(2)
        }
    }
}

/// What an attack takes beside the time in which it attacks: starting a pair and letting it come to rest.
const AROUND: Duration = Duration::from_millis(2_500);

/// Carries out all attacks; whether none did more than it may.
fn attack(options: &Options) -> Result<bool, String> {
    if let Some(unknown) = options.skip.iter().find(|name| SCENARIOS.iter().all(|it| it.name != **name)) {
        return Err(format!("no attack is called {unknown:?}: see --list"));
    }
    let is_chosen =
        |it: &&Scenario| it.name.contains(&options.only) && options.skip.iter().all(|name| name != it.name);
    let chosen: Vec<&Scenario> = SCENARIOS.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(format!("no attack is left with {:?} in its name: see --list", options.only));
    }
    let seed = options.seed.unwrap_or_else(random::fresh_seed);
    println!("seed {seed}, {} attacks in {} minutes", chosen.len(), options.minutes);
    let lab = Lab::make()?;
    let end = Instant::now() + Duration::from_secs_f64(options.minutes.max(0.0) * 60.0);
    report::heading();
    let mut missed = 0;
    for (index, scenario) in chosen.iter().enumerate() {
        let random = Random::new(seed.wrapping_add(index as u64));
        let left = end.saturating_duration_since(Instant::now()).div_f64((chosen.len() - index) as f64);
        let duration = left.saturating_sub(AROUND).max(scenario::DURATION_MIN);
        let outcome = scenario::run(scenario, &lab, duration, random).unwrap_or_else(|error| {
            let mut outcome = Outcome::default();
            outcome.misses.push(error);
            outcome
        });
        missed += usize::from(!outcome.misses.is_empty());
        report::row(scenario.name, &outcome);
    }
    let skipped = SCENARIOS.len() - chosen.len();
    println!("{} passed, {missed} failed, {skipped} skipped", chosen.len() - missed);
    Ok(missed == 0)
}
