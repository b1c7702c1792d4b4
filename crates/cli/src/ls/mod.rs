//! `plainsong ls`: who is there, what they have, and what matches and what does not.

mod screen;
mod show;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use plainsong::Error;
use plainsong::prelude::*;

use crate::look::{self, DomainOptions, view::View};
use crate::output::{self, say};
use crate::screen::draw;
use crate::stop::Stop;

/// It was interrupted before it had looked for long enough.
const INTERRUPTED: u8 = 1;
/// It could not look.
const FAILED: u8 = 3;
/// How often `--watch` looks again.
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// Options of `plainsong ls`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong ls
  plainsong ls endpoints --json | jq '.endpoints[] | select(.mismatches != [])'

Exit status: 0 if it could look, 1 if it was interrupted before it had looked for long enough, 2 after wrong arguments,
3 after an error. docs/tools.md has the shape of the JSON; plainsong doctor says what to do about pairs that do not
match.")]
pub(crate) struct Options {
    /// What to show [default: participants, topics, and pairs that do not match]
    #[arg(value_enum)]
    what: Option<What>,
    #[command(flatten)]
    domain: DomainOptions,
    /// Go on looking until interrupted: changes as lines, or a screen at a terminal
    #[arg(long)]
    watch: bool,
    /// Also tools like this one, and what the groups of ATOMIC topics talk by
    #[arg(long)]
    all: bool,
}

/// A part of what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum What {
    /// Processes and their products
    Participants,
    /// Topics, their types, and how many endpoints they have
    Topics,
    /// Types, and which topics have them
    Types,
    /// Writers and readers, their QoS where it is not the default, and whom they match
    Endpoints,
    /// Pairs of a writer and a reader of one topic that do not match, and why
    Mismatches,
}

/// Looks; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    match list(options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cannot look at domain {}: {error}", options.domain.domain);
            ExitCode::from(FAILED)
        }
    }
}

fn list(options: &Options) -> Result<ExitCode, Error> {
    let io = |source| Error::Io { what: "installing signal handlers".into(), source };
    let stop = Stop::on_signals().map_err(io)?;
    let DomainOptions { domain, json, wait } = options.domain;
    let participant = look::join(domain, "ls", look::config()?)?;
    if options.watch && !json && output::is_for_people() {
        let io = |source| Error::Io { what: "drawing on the terminal".into(), source };
        let mut newcomers = Newcomers::default();
        let look = || {
            let mut view = View::of(&participant, options.all)?;
            newcomers.leave_out(&mut view);
            screen::page(options.what, &participant, &view)
        };
        return draw(&stop, look).map(|()| ExitCode::SUCCESS).map_err(io);
    }
    if options.watch {
        return watch(options, &participant, &stop).map(|()| ExitCode::SUCCESS);
    }
    let has_settled = look::settle(&participant, look::QUIET_FOR, wait, &stop)?;
    let view = View::of(&participant, options.all)?;
    if json {
        say!("{}", show::json(&view, options.what));
    } else {
        show::print(&view, options.what);
    }
    if has_settled {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("interrupted: there may be more than what was seen until then");
    Ok(ExitCode::from(INTERRUPTED))
}

/// Participants that are heard, and have not yet had the time to answer: they are shown when they have.
#[derive(Default)]
struct Newcomers(BTreeMap<Guid, Instant>);

impl Newcomers {
    fn leave_out(&mut self, view: &mut View) {
        let now = Instant::now();
        let known = std::mem::take(&mut self.0);
        view.participants.retain(|it| {
            let since = known.get(&it.guid).copied().unwrap_or(now);
            self.0.insert(it.guid, since);
            it.answers || now.duration_since(since) >= look::ANSWERS_WITHIN
        });
    }
}

/// Prints what comes, changes and goes, a line each, until the end of the program or of who reads it.
fn watch(options: &Options, participant: &DomainParticipant, stop: &Stop) -> Result<(), Error> {
    let mut known = BTreeMap::new();
    let mut newcomers = Newcomers::default();
    while !stop.is_told() {
        participant.ask_types()?;
        let mut view = View::of(participant, options.all)?;
        newcomers.leave_out(&mut view);
        let now = show::items(&view, options.what);
        for line in show::changes(&known, &now, options.domain.json) {
            if !output::print(format_args!("{line}\n")) {
                return Ok(());
            }
        }
        known = now;
        stop.sleep(LOOK_PERIOD);
    }
    Ok(())
}
