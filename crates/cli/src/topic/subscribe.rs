//! `plainsong sub`: prints the samples of a topic, whatever its type is.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use plainsong::Error;
use plainsong::prelude::*;

use super::samples::{Form, Printer};
use super::{
    LOOK_AGAIN, NOTHING, Session, TELL_AFTER, TopicOptions, counted, has_writer, run as run_command,
};
use crate::look::seconds;
use crate::output;
use crate::span;

/// Samples of an instance that wait to be printed.
const DEPTH: i32 = 1_000;

/// Options of `plainsong sub`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong sub Square --filter \"color = 'RED' AND x > 100\"
  plainsong sub /chatter --json --count 3
  plainsong sub Square --csv > square.csv

The reader has what all writers offer: it is reliable if all of them are, and gets what they keep for late joiners if all do.

Exit status: 0 if a sample came, 1 if none did, 2 after wrong arguments, 3 after an error. docs/topics.md tells the JSON.")]
pub(crate) struct Options {
    #[command(flatten)]
    topic: TopicOptions,
    /// Only samples of which this is true: a DDS filter expression
    #[arg(short, long, value_name = "SQL")]
    filter: Option<String>,
    /// Print CSV: a header, then a row for each sample
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// End after so many samples
    #[arg(short = 'n', long, value_name = "N", value_parser = span::count)]
    count: Option<u64>,
    /// Seconds to wait for the topic, its type and the first sample; default: until interrupted
    #[arg(long, value_name = "S", value_parser = seconds)]
    wait: Option<Duration>,
}

/// Prints samples; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    run_command(&options.topic.topic, "read", || show(options))
}

fn show(options: &Options) -> Result<ExitCode, Error> {
    let mut session = Session::open(&options.topic, "sub", options.wait)?;
    let Some((ty, endpoints)) = session.wait_for_type()? else { return Ok(ExitCode::from(NOTHING)) };
    let form = if options.csv {
        Form::Csv
    } else if options.topic.json {
        Form::Json
    } else {
        Form::Text
    };
    let mut printer = Printer::new(form, &ty);
    let mut reading = Reading::new(&session, ty, &endpoints, options.filter.as_deref())?;
    session.stop.also_wakes(&reading.reader.read_condition(&ReadOptions::new()));
    let mut count = 0;
    while !session.stop.is_told() && options.count.is_none_or(|most| count < most) {
        if count == 0 && session.is_over() {
            break;
        }
        let left = options.count.map_or(u64::MAX, |most| most - count);
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let samples = reading.reader.take_data_with(&ReadOptions::new().max_samples(most))?;
        for sample in &samples {
            count += 1;
            if !output::print(format_args!("{}", printer.text_of(sample))) {
                // Nobody reads any more.
                session.stop.tell();
                break;
            }
        }
        reading.watch(&mut session, count == 0)?;
        if samples.is_empty() {
            session.stop.sleep(LOOK_AGAIN);
        }
    }
    eprintln!("{}", output::counted(count, "sample"));
    if count == 0 {
        reading.say_why_nothing(&mut session)?;
    }
    Ok(if count > 0 { ExitCode::SUCCESS } else { ExitCode::from(NOTHING) })
}

/// A reader, which follows the partitions of the writers.
struct Reading {
    reader: AnyDataReader,
    subscriber: Subscriber,
    partition: Vec<String>,
    looked: Instant,
    since: Instant,
    is_filtered: bool,
}

impl Reading {
    fn new(
        session: &Session,
        ty: DynamicType,
        endpoints: &[DiscoveredEndpoint],
        filter: Option<&str>,
    ) -> Result<Self, Error> {
        let participant = &session.participant;
        let fitting = FittingQos::of_reader(endpoints);
        let name = &session.name;
        let topic = participant.create_any_topic(name, std::sync::Arc::new(ty), QosSet::default())?;
        let partition = fitting.group.partition.clone();
        let subscriber = participant.create_subscriber(fitting.group)?;
        let qos = fitting.endpoint.keep_last(DEPTH);
        let reader = match filter {
            None => subscriber.create_reader(&topic, qos)?,
            Some(expression) => {
                let filtered = format!("{name} (filtered)");
                let topic =
                    participant.create_content_filtered_topic(&filtered, &topic, expression, Vec::new())?;
                subscriber.create_reader(&topic, qos)?
            }
        };
        let now = Instant::now();
        Ok(Self { reader, subscriber, partition, looked: now, since: now, is_filtered: filter.is_some() })
    }

    /// Follows the writers, and says what keeps them apart.
    fn watch(&mut self, session: &mut Session, nothing_came: bool) -> Result<(), Error> {
        if self.looked.elapsed() < TELL_AFTER / 2 {
            return Ok(());
        }
        self.looked = Instant::now();
        let endpoints = session.look()?;
        let group = FittingQos::of_reader(&endpoints).group;
        if has_writer(&endpoints) && group.partition != self.partition {
            self.partition.clone_from(&group.partition);
            self.subscriber.set_qos(group)?;
        }
        session.say_mismatches()?;
        if nothing_came && self.since.elapsed() >= TELL_AFTER {
            self.say_why_nothing(session)?;
        }
        Ok(())
    }

    fn say_why_nothing(&self, session: &mut Session) -> Result<(), Error> {
        let endpoints = session.look()?;
        let matched = self.reader.matched_publications()?.len();
        let name = session.name.clone();
        let text = if !has_writer(&endpoints) {
            format!("topic '{name}' has {}: waiting for a writer", counted(&endpoints))
        } else if matched == 0 {
            format!("topic '{name}' has {}, and none of its writers matches", counted(&endpoints))
        } else if self.is_filtered {
            format!("{} nothing that passes the filter was written since", matching(matched))
        } else {
            format!("{} nothing was written since", matching(matched))
        };
        session.say(text);
        session.say_mismatches()
    }
}

/// So many writers match, in words.
fn matching(writers: usize) -> String {
    if writers == 1 { "1 writer matches:".to_owned() } else { format!("{writers} writers match:") }
}
