//! `plainsong play`: the changes of a recording, as they were written.

mod feed;
mod performance;
mod survey;
mod writers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plainsong_recording::{InputError, channel_topic, dds_topic};
use serde_json::json;

use crate::look;
use crate::output::{counted, say};
use crate::span;
use crate::stop::Stop;
use performance::Played;

/// The file is damaged, or not all of it could be written.
const INCOMPLETE: u8 = 1;
/// The arguments contradict each other.
const WRONG_ARGUMENTS: u8 = 2;
/// Nothing could be played, or not to the end.
const FAILED: u8 = 3;

/// Options of `plainsong play`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong play shapes.mcap
  plainsong play shapes.mcap --rate 2 --loop 10 --rename Square=OldSquare --wait

Names of topics are those on the wire or those that ROS 2 shows.

Exit status: 0 if all was played, 1 if the file is damaged or some of it could not be written, 2 after an unknown
option, 3 if the file cannot be read or the domain not be joined. docs/recording.md tells how times are kept.")]
pub(crate) struct Options {
    /// The file to play
    file: PathBuf,
    /// Play these topics alone
    #[arg(short, long, value_name = "TOPIC", num_args = 1..)]
    topics: Vec<String>,
    /// Leave out these topics
    #[arg(short = 'x', long, value_name = "TOPIC")]
    exclude: Vec<String>,
    /// Play topic A under the name B
    #[arg(long, value_name = "A=B", value_parser = renaming)]
    rename: Vec<(String, String)>,
    /// So many times as fast
    #[arg(short, long, default_value = "1", value_parser = span::rate)]
    rate: f64,
    /// As fast as possible
    #[arg(long, conflicts_with = "rate")]
    fast: bool,
    /// Play it so many times
    #[arg(short = 'n', long = "loop", value_name = "N", default_value_t = 1, value_parser = span::count)]
    repetitions: u64,
    /// Begin so many seconds after the begin of the recording
    #[arg(long, value_name = "S", default_value = "0", value_parser = look::seconds)]
    start: Duration,
    /// End so many seconds after the begin of the recording
    #[arg(long, value_name = "S", value_parser = look::seconds)]
    end: Option<Duration>,
    /// Wait until each topic has a matching reader; for so many seconds at most, if they are told
    #[arg(short, long, value_name = "S", num_args = 0..=1, default_missing_value = "86400", value_parser = look::seconds)]
    wait: Option<Duration>,
    /// Seconds in which readers may find the writers before the first sample
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = look::seconds)]
    delay: Duration,
    /// Stamp samples with the times that are recorded; else these are moved to now
    #[arg(long)]
    recorded_timestamps: bool,
    /// Domain id
    #[arg(short, long, default_value_t = 0, value_parser = span::domain)]
    domain: u16,
    /// Print what was played as JSON
    #[arg(long)]
    json: bool,
}

fn renaming(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err(format!("{text:?} is not like A=B")),
    }
}

impl Options {
    /// The name under which a topic is played. A name that ROS 2 shows means what it means there.
    fn renamed(&self, topic: &str) -> String {
        let shown = channel_topic(topic);
        let found = self.rename.iter().find(|(from, _)| *from == topic || *from == shown);
        match found {
            Some((from, to)) if from != topic && *from == shown => dds_topic(to),
            Some((_, to)) => to.clone(),
            None => topic.to_owned(),
        }
    }
}

/// Why it ended before it should.
#[derive(Debug)]
enum Failure {
    Dds(plainsong::Error),
    File(InputError),
    /// Nobody reads these topics.
    NoReaders(Vec<String>),
    /// There is nothing to play.
    Nothing,
    /// Nothing of that lies between `--start` and `--end`: the file ends so many seconds after its begin.
    NothingThen(f64),
}

impl From<plainsong::Error> for Failure {
    fn from(error: plainsong::Error) -> Self {
        Self::Dds(error)
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::File(error)
    }
}

/// Plays; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    if options.end.is_some_and(|end| end < options.start) {
        eprintln!("--end is before --start");
        return ExitCode::from(WRONG_ARGUMENTS);
    }
    let file = options.file.display();
    match play(options) {
        Ok(played) if played.is_complete() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(INCOMPLETE),
        Err(failure) => {
            match failure {
                Failure::Dds(error) => eprintln!("cannot play in domain {}: {error}", options.domain),
                Failure::File(error) => eprintln!("cannot read {file}: {error}"),
                Failure::NoReaders(topics) => {
                    eprintln!("nobody reads {}: run without --wait to play all the same", topics.join(", "));
                }
                Failure::Nothing => eprintln!("{file} has no samples of the topics that are asked for"),
                Failure::NothingThen(seconds) => eprintln!(
                    "{file} has nothing to play in the time that is asked for: its changes are of 0 to {seconds:.3} s after its begin"
                ),
            }
            ExitCode::from(FAILED)
        }
    }
}

fn play(options: &Options) -> Result<Played, Failure> {
    let io = |source| plainsong::Error::Io { what: "installing signal handlers".into(), source };
    let stop = Stop::on_signals().map_err(io)?;
    let found = survey::survey(options)?;
    for flaw in &found.flaws {
        eprintln!("{}: near octet {}: {}", options.file.display(), flaw.at, flaw.what);
    }
    if found.flaw_count > 0 {
        let seconds = (found.last.saturating_sub(found.first)) as f64 / 1e9;
        eprintln!(
            "{} has {} that cannot be read; the rest ends {seconds:.3} s after its begin, with {}",
            options.file.display(),
            counted(found.flaw_count, "part"),
            counted(found.changes, "change")
        );
    }
    if found.writers.is_empty() || found.changes == 0 {
        return Err(Failure::Nothing);
    }
    let nothing_then = || Failure::NothingThen(found.last.saturating_sub(found.first) as f64 / 1e9);
    let (start, end) = found.span(options);
    if start > found.last || end < found.first {
        return Err(nothing_then());
    }
    let mut played = Played { flaws: found.flaw_count, ..Played::default() };
    performance::perform(options, &found, &stop, &mut played)?;
    if played.samples + played.endings + played.refused == 0 && !stop.is_told() {
        return Err(nothing_then());
    }
    if options.json {
        let latest = played.latest.as_secs_f64();
        say!(
            "{}",
            json!({"samples": played.samples, "endings": played.endings, "refused": played.refused, "flaws": played.flaws, "latest_s": latest})
        );
    } else {
        eprintln!(
            "{} and {} were written; the latest came {:.1} ms after its time",
            counted(played.samples, "sample"),
            if played.endings == 1 {
                "1 end of an instance".to_owned()
            } else {
                format!("{} ends of instances", played.endings)
            },
            played.latest.as_secs_f64() * 1e3
        );
    }
    Ok(played)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn topics_are_renamed_on_the_wire_or_as_ros_shows_them() {
        let options = |rename| Line::parse_from(["play", "a.mcap", "--rename", rename]).options;
        assert_eq!(options("Square=Round").renamed("Square"), "Round");
        assert_eq!(options("/chatter=/other").renamed("rt/chatter"), "rt/other");
        assert_eq!(options("rt/chatter=rt/other").renamed("rt/chatter"), "rt/other");
        assert_eq!(options("Square=Round").renamed("Circle"), "Circle");
    }
}
