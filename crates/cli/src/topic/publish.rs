//! `plainsong pub`: writes samples to a topic, whatever its type is.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use plainsong::Error;
use plainsong::prelude::*;
use serde_json::json;

use super::{FAILED, LOOK_AGAIN, NOTHING, Session, TopicOptions, run as run_command};
use crate::look::seconds;
use crate::output::{counted, say};
use crate::span;

/// Samples a second where a number of them is to be written and no rate is told.
const RATE_DEFAULT: f64 = 1.0;
/// Readers are waited for until they have acknowledged, so long.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(10);
/// Nothing tells when a best-effort reader has found the writer, so it is given so long.
const BEST_EFFORT_FINDS_WITHIN: Duration = Duration::from_millis(500);
/// Octets of a line of standard input at most.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Options of `plainsong pub`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong pub Square '{\"color\":\"RED\",\"x\":10,\"y\":20,\"shapesize\":30}'
  plainsong pub /chatter '{\"data\":\"hello\"}' --rate 10
  plainsong sub Square --json | jq -c .data | plainsong pub Square --domain 7

The type comes from a reader or writer of the topic. Members that are left out are zero, empty, or absent.

Exit status: 0 if all was written and all reliable readers have it, 1 if nobody has the topic or told its type, no reader
matches, or one has not acknowledged, 2 after wrong arguments, 3 after an error, one in a sample too. docs/topics.md tells
the JSON.")]
pub(crate) struct Options {
    #[command(flatten)]
    topic: TopicOptions,
    /// The sample as JSON; without it, or with `-`, a sample is read from each line of standard input
    sample: Option<String>,
    /// Write so many samples a second
    #[arg(short, long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,
    /// Write the sample so many times; default: once, or with --rate until interrupted
    #[arg(short = 'n', long, value_name = "N", value_parser = span::count)]
    count: Option<u64>,
    /// Seconds to wait for the topic, its type and a reader; without a reader, the samples are written then
    #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
    wait: Duration,
}

fn rate(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if (0.001..=1_000_000.0).contains(&number) {
        return Ok(number);
    }
    Err(format!("{text} is not between 0.001 and 1000000 samples a second"))
}

/// Writes samples; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    run_command(&options.topic.topic, "write", || show(options))
}

fn show(options: &Options) -> Result<ExitCode, Error> {
    let mut session = Session::open(&options.topic, "pub", Some(options.wait))?;
    let Some((ty, endpoints)) = session.wait_for_type()? else { return Ok(ExitCode::from(NOTHING)) };
    let given = match options.sample.as_deref().filter(|text| *text != "-") {
        Some(text) => match parsed(&ty, text) {
            Ok(data) => Some(data),
            Err(why) => {
                eprintln!("the sample is none of type '{}': {why}", ty.name());
                return Ok(ExitCode::from(FAILED));
            }
        },
        None => None,
    };
    let writer = writer(&session, &ty, &endpoints)?;
    wait_for_reader(&mut session, &writer)?;
    // From here on time to wait does not count.
    session.deadline = None;
    let mut pace = Pace::new(options.rate);
    let mut written = 0;
    let is_right = match given {
        Some(data) => {
            let most = options.count.or_else(|| options.rate.is_none().then_some(1));
            if most.is_none_or(|most| most > 1) && options.rate.is_none() {
                pace = Pace::new(Some(RATE_DEFAULT));
            }
            while !session.stop.is_told() && most.is_none_or(|most| written < most) && pace.wait(&session) {
                writer.write_data(&data)?;
                written += 1;
            }
            true
        }
        None => write_lines(&session, &ty, &writer, &mut pace, options.count, &mut written)?,
    };
    let readers = writer.matched_subscriptions()?.len();
    let missed = writer.wait_for_acknowledgments(ACKNOWLEDGED_WITHIN).err();
    if options.topic.json {
        let acknowledged = missed.is_none();
        say!(
            "{}",
            json!({ "topic": session.name, "type": ty.name(), "written": written, "readers": readers,
                    "acknowledged": acknowledged })
        );
    } else {
        eprintln!("{} written to {}", counted(written, "sample"), counted(readers as u64, "reader"));
    }
    if let Some(error) = &missed {
        eprintln!("not every reader has acknowledged what was written: {error}");
    }
    session.say_mismatches()?;
    Ok(match (is_right, readers) {
        (false, _) => ExitCode::from(FAILED),
        (true, 0) => ExitCode::from(NOTHING),
        (true, _) if missed.is_some() => ExitCode::from(NOTHING),
        (true, _) => ExitCode::SUCCESS,
    })
}

fn parsed(ty: &DynamicType, text: &str) -> Result<DynamicData, serde_json::Error> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let data = ty.deserialize_data(&mut parser)?;
    parser.end()?;
    Ok(data)
}

fn writer(
    session: &Session,
    ty: &DynamicType,
    endpoints: &[DiscoveredEndpoint],
) -> Result<AnyDataWriter, Error> {
    let fitting = FittingQos::of_writer(endpoints);
    let participant = &session.participant;
    let topic = participant.create_any_topic(&session.name, Arc::new(ty.clone()), QosSet::default())?;
    participant.create_publisher(fitting.group)?.create_writer(&topic, fitting.endpoint.keep_all())
}

/// Waits until a reader matches, and all that are there do or cannot; says that none does when time is over.
fn wait_for_reader(session: &mut Session, writer: &AnyDataWriter) -> Result<(), Error> {
    loop {
        let matched: BTreeSet<Guid> = writer.matched_subscriptions()?.into_iter().map(Guid::from).collect();
        let refused: BTreeSet<Guid> =
            session.participant.mismatches()?.into_iter().map(|it| it.reader.guid).collect();
        let endpoints = session.look()?;
        let mut undecided = endpoints.iter().filter(|it| !it.is_writer() && !refused.contains(&it.guid));
        if !matched.is_empty() && (undecided.all(|it| matched.contains(&it.guid)) || session.is_over()) {
            if endpoints.iter().any(|it| matched.contains(&it.guid) && !it.qos.is_reliable()) {
                session.stop.sleep(BEST_EFFORT_FINDS_WITHIN);
            }
            return Ok(());
        }
        if matched.is_empty() && session.may_tell() {
            session.say(format!("waiting for a reader of topic '{}'", session.name));
            session.say_mismatches()?;
        }
        if session.is_over() {
            session.say(format!("no reader of topic '{}' matches", session.name));
            return Ok(());
        }
        session.stop.sleep(LOOK_AGAIN);
    }
}

/// Writes a sample for each line of standard input; false when one is none, which is said.
fn write_lines(
    session: &Session,
    ty: &DynamicType,
    writer: &AnyDataWriter,
    pace: &mut Pace,
    most: Option<u64>,
    written: &mut u64,
) -> Result<bool, Error> {
    let mut input = std::io::stdin().lock();
    let (mut line, mut number) = (Vec::new(), 0_u64);
    while !session.stop.is_told() && most.is_none_or(|most| *written < most) {
        line.clear();
        number += 1;
        let mut limited = std::io::Read::take(&mut input, LINE_BYTES_MAX as u64);
        let read = limited.read_until(b'\n', &mut line);
        let read = read.map_err(|source| Error::Io { what: "reading standard input".into(), source })?;
        if read == 0 {
            return Ok(true);
        }
        let Ok(text) = std::str::from_utf8(&line) else {
            eprintln!("line {number} of standard input is no UTF-8");
            return Ok(false);
        };
        if text.trim().is_empty() {
            continue;
        }
        match parsed(ty, text) {
            Ok(data) => {
                if !pace.wait(session) {
                    break;
                }
                writer.write_data(&data)?;
                *written += 1;
            }
            Err(why) => {
                eprintln!(
                    "line {number} of standard input is no sample of type '{}': {}",
                    ty.name(),
                    in_line(&why)
                );
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// What is wrong with the JSON of one line, whose number is told beside it.
fn in_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(what) => format!("{what} at column {}", error.column()),
        None => text,
    }
}

/// When the next sample is due.
struct Pace {
    period: Option<Duration>,
    next: Instant,
}

impl Pace {
    fn new(rate: Option<f64>) -> Self {
        Self { period: rate.map(|rate| Duration::from_secs_f64(1.0 / rate)), next: Instant::now() }
    }

    /// Sleeps until then; false when the program should end before.
    fn wait(&mut self, session: &Session) -> bool {
        let Some(period) = self.period else { return true };
        loop {
            let left = self.next.saturating_duration_since(Instant::now());
            if session.stop.is_told() {
                return false;
            }
            if left.is_zero() {
                self.next += period;
                return true;
            }
            session.stop.sleep(left);
        }
    }
}
