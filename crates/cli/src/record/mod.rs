//! `plainsong record`: the changes of topics into an MCAP file.

mod session;
mod sources;
mod sync;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plainsong_recording::{Globs, OutputError};
use serde_json::json;

use crate::look;
use crate::output::{counted, say};
use crate::span;
use crate::stop::Stop;
use session::{Session, Totals};

/// Samples were lost on the way.
const INCOMPLETE: u8 = 1;
/// It could not record, or not to the end.
const FAILED: u8 = 3;

/// Options of `plainsong record`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong record Square Circle -o shapes.mcap
  plainsong record '/camera/*' --exclude '*/compressed' -o camera.mcap --duration 60

Names may have * and ?, and are those on the wire or those that ROS 2 shows. It records until interrupted.

Exit status: 0 if all was recorded, 1 if samples were lost, 2 after an unknown option, 3 if the file cannot be written
or the domain not be joined; what was recorded before is in the file. docs/recording.md tells what is kept.")]
pub(crate) struct Options {
    /// Topics to record, as they appear
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    topics: Vec<String>,
    /// Record every topic
    #[arg(short, long)]
    all: bool,
    /// Leave out these topics
    #[arg(short = 'x', long, value_name = "TOPIC")]
    exclude: Vec<String>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write over a file that exists
    #[arg(long)]
    force: bool,
    /// Domain id
    #[arg(short, long, default_value_t = 0, value_parser = span::domain)]
    domain: u16,
    /// End after so many seconds
    #[arg(long, value_name = "S", value_parser = look::seconds)]
    duration: Option<Duration>,
    /// End before the file is longer than so many octets; K, M and G stand for their multiples
    #[arg(long, value_name = "N", value_parser = span::bytes)]
    max_bytes: Option<u64>,
    /// Print what was recorded as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    /// Which topics are wanted.
    fn wants(&self) -> impl Fn(&str) -> bool + use<> {
        let (wanted, unwanted) = (Globs::new(&self.topics), Globs::new(&self.exclude));
        move |topic| (wanted.is_empty() || wanted.has_topic(topic)) && !unwanted.has_topic(topic)
    }
}

/// Why it ended before it should.
#[derive(Debug)]
enum Failure {
    Dds(plainsong::Error),
    /// After so many samples were kept.
    File(OutputError, u64),
}

impl Failure {
    /// So many samples were kept before.
    fn after(self, kept: u64) -> Self {
        match self {
            Self::File(error, _) => Self::File(error, kept),
            other => other,
        }
    }
}

impl From<plainsong::Error> for Failure {
    fn from(error: plainsong::Error) -> Self {
        Self::Dds(error)
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::File(error, 0)
    }
}

/// Records; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    match record(options) {
        Ok(totals) if totals.is_complete() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(INCOMPLETE),
        Err(Failure::Dds(error)) => {
            eprintln!("cannot record in domain {}: {error}", options.domain);
            ExitCode::from(FAILED)
        }
        Err(Failure::File(error, kept)) => {
            let ends = match kept {
                0 => String::new(),
                _ => format!("; it ends after {}, which it has", counted(kept, "sample")),
            };
            eprintln!("cannot write {}: {error}{ends}", options.output.display());
            ExitCode::from(FAILED)
        }
    }
}

fn record(options: &Options) -> Result<Totals, Failure> {
    let io = |source| plainsong::Error::Io { what: "installing signal handlers".into(), source };
    let stop = Stop::on_signals().map_err(io)?;
    // A file that reaches the limit of the process is one that cannot be written, and told as such.
    let ignored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, ignored).map_err(io)?;
    let mut session = Session::begin(options, stop)?;
    let ended = session.record();
    let (totals, finished) = session.finish();
    report(options, &totals);
    ended.and(finished).map_err(|failure| failure.after(totals.kept)).map(|()| totals)
}

fn report(options: &Options, totals: &Totals) {
    if options.json {
        let topics = totals.topics.iter().map(|(name, topic)| {
            json!({"topic": name, "samples": topic.samples, "endings": topic.endings, "bytes": topic.bytes, "lost": topic.lost, "rejected": topic.rejected})
        });
        let topics = topics.collect::<Vec<_>>();
        let file = options.output.display().to_string();
        say!(
            "{}",
            json!({"file": file, "bytes": totals.file_bytes, "seconds": totals.seconds, "samples": totals.kept, "topics": topics})
        );
        return;
    }
    for (name, topic) in totals.topics.iter().filter(|(_, topic)| topic.lost + topic.rejected > 0) {
        eprintln!(
            "topic '{name}': lost on the way: {}; without room here: {}; the recording is not complete",
            counted(topic.lost, "sample"),
            counted(topic.rejected, "sample")
        );
    }
    let topics = totals.topics.len();
    eprintln!(
        "{} of {} in {:.1} s, {} octets in {}",
        counted(totals.kept, "sample"),
        counted(topics as u64, "topic"),
        totals.seconds,
        totals.file_bytes,
        options.output.display()
    );
}
