//! `plainsong top`: what the topics and processes of a domain do now.

mod rates;
mod show;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::statistics::ParticipantStatistics;

use crate::look::{self, DomainOptions, view};
use crate::output;
use crate::screen::draw;
use crate::span;
use crate::stop::Stop;
use rates::Tracker;

/// It could not look.
const FAILED: u8 = 3;
/// Participants tell what they count this often.
const TOLD_EVERY: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Options of `plainsong top`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong top
  plainsong top --json --count 1 | jq '.topics[] | select(.lost > 0)'

Participants of Plainsong tell what they count while somebody asks; those of other products tell nothing, and are
listed as such. Exit status: 0 if it could look, 2 after an unknown option, 3 after an error. docs/statistics.md
has the meaning of each column, and the shape of the JSON.")]
pub(crate) struct Options {
    #[command(flatten)]
    domain: DomainOptions,
    /// Seconds between two looks: participants count once a second
    #[arg(long, value_name = "S", default_value = "1", value_parser = look::seconds)]
    interval: Duration,
    /// Looks, instead of until interrupted: tables one after the other
    #[arg(long, value_name = "N", value_parser = span::count)]
    count: Option<u64>,
}

/// Looks; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    match follow(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot look at domain {}: {error}", options.domain.domain);
            ExitCode::from(FAILED)
        }
    }
}

/// Who follows the domain.
struct Top {
    participant: DomainParticipant,
    reader: DataReader<ParticipantStatistics>,
    tracker: Tracker,
}

impl Top {
    fn look(&mut self) -> Result<show::Picture, Error> {
        let samples = self.reader.take()?.into_iter();
        self.tracker.take(samples.map(|it| (it.info.instance_handle, it.data)));
        // Tools that only look are not among them.
        let everyone = view::View::of(&self.participant, false)?.participants;
        let is_shown = |guid: &str| everyone.iter().any(|it| it.guid.to_string() == guid);
        let mut participants = self.tracker.participants();
        participants.retain(|it| is_shown(&it.guid));
        let silent = everyone.into_iter().filter(|it| !self.tracker.knows(it.guid)).collect();
        Ok(show::Picture { topics: self.tracker.topics(), participants, silent })
    }
}

fn follow(options: &Options) -> Result<(), Error> {
    let io = |source| Error::Io { what: "installing signal handlers".into(), source };
    let stop = Stop::on_signals().map_err(io)?;
    let DomainOptions { domain, json, wait } = options.domain;
    let participant = look::join(domain, "top", look::config()?)?;
    let reader = participant.observe_statistics()?;
    let mut top = Top { participant, reader, tracker: Tracker::default() };
    let interval = options.interval.max(LOOK_AGAIN);
    if options.count.is_none() && !json && output::is_for_people() {
        let io = |source| Error::Io { what: "drawing on the terminal".into(), source };
        let mut page = show::page(domain, &top.look()?);
        let mut since = Instant::now();
        let next = || {
            if since.elapsed() >= interval || !top.tracker.is_complete() {
                (page, since) = (show::page(domain, &top.look()?), Instant::now());
            }
            Ok(page.clone())
        };
        return draw(&stop, next).map_err(io);
    }
    first(&mut top, wait, &stop)?;
    let mut left = options.count.unwrap_or(u64::MAX);
    while left > 0 && !stop.is_told() {
        let picture = top.look()?;
        let text = if json { show::json(domain, &picture) } else { show::text(&picture) };
        left -= 1;
        if !output::print(format_args!("{text}")) || left == 0 {
            break;
        }
        stop.sleep(interval);
    }
    Ok(())
}

/// Waits until everybody has told what it counts twice, so that there are rates; no longer than `wait` after
/// discovery.
fn first(top: &mut Top, wait: Duration, stop: &Stop) -> Result<(), Error> {
    let _ = look::settle(&top.participant, look::QUIET_FOR, wait, stop)?;
    let end = Instant::now() + wait.min(TOLD_EVERY * 3);
    loop {
        let picture = top.look()?;
        let tells = |it: &view::Participant| it.product.starts_with("Plainsong") && it.answers;
        let is_done = top.tracker.is_complete() && !picture.silent.iter().any(tells);
        if is_done || Instant::now() >= end || stop.is_told() {
            return Ok(());
        }
        stop.sleep(LOOK_AGAIN);
    }
}
