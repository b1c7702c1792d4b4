//! `plainsong demo`: a publisher process, subscriber processes, and a window on what they exchange.
//!
//! The demo starts copies of this program as children. Each ends when its standard input closes, so
//! none outlives the demo, however that ends.

mod child;
mod screen;
mod team;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use plainsong::prelude::*;
use plainsong::{Error, Result};

use crate::span;
use crate::stop::Stop;
use team::Team;

/// Options of `plainsong demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Domain id
    #[arg(short, long, default_value_t = 0, value_parser = span::domain)]
    domain: u16,
    /// Topic
    #[arg(short, long, default_value = "Square")]
    topic: String,
    /// Subscriber processes
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=6))]
    subscribers: u8,
    /// Samples a second and colour that the publisher writes
    #[arg(short, long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// End after this many seconds; 0 runs until Ctrl-C
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// Print lines instead of drawing
    #[arg(long)]
    plain: bool,
    /// What this process does: set by the demo for its children
    #[arg(long, value_enum, hide = true)]
    role: Option<Role>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Publisher,
    Subscriber,
}

/// Runs the demo, or one of its children.
pub(crate) fn run(options: &Options) -> ExitCode {
    let result = match options.role {
        Some(role) => child::run(options, role),
        None => run_team(options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plainsong demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_team(options: &Options) -> Result<()> {
    let stop = Stop::on_signals().map_err(|source| io("installing signal handlers", source))?;
    // The demo itself joins the domain only to see who is there.
    let participant = DomainParticipant::new(options.domain)?;
    let mut team = Team::start(options).map_err(|source| io("starting the demo's processes", source))?;
    let end = (options.seconds > 0).then(|| Instant::now() + Duration::from_secs(options.seconds));
    let draw = !options.plain && std::io::stdout().is_terminal();
    let shown = if draw {
        screen::draw(options, &participant, &team, &stop, end)
    } else {
        screen::print(&participant, &team, &stop, end);
        Ok(())
    };
    team.end();
    shown.map_err(|source| io("drawing", source))
}

fn io(what: &str, source: std::io::Error) -> Error {
    Error::Io { what: what.to_owned(), source }
}
