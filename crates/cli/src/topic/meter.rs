//! `plainsong hz`, `bw` and `delay`: how often, how much and how late samples come. They are not decoded: the
//! type need not be known.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::serialized::SerializedChange;
use plainsong::time::Time;
use plainsong::types::OpaqueType;
use serde_json::{Value, json};

use super::statistics::{Summary, Window};
use super::{
    LOOK_AGAIN, NOTHING, Session, TELL_AFTER, TopicOptions, counted, has_writer, run as run_command,
};
use crate::look::seconds;
use crate::output;
use crate::span;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Rate,
    Bandwidth,
    Delay,
}

/// Options of `plainsong hz`, `bw` and `delay`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong hz Square
  plainsong bw /camera/image --count 5
  plainsong delay Square --json

A line each second, of the samples of the window. A delay is the time from when a sample was written to when it was received
here: between hosts it is as right as their clocks are alike.

Exit status: 0 if a sample came, 1 if none did, 2 after wrong arguments, 3 after an error. docs/topics.md tells the JSON.")]
pub(crate) struct Options {
    #[command(flatten)]
    topic: TopicOptions,
    /// The last so many samples are looked at
    #[arg(short, long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    window: u32,
    /// End after so many lines
    #[arg(short = 'n', long, value_name = "N", value_parser = span::count)]
    count: Option<u64>,
    /// Seconds to wait for the topic and the first sample; default: until interrupted
    #[arg(long, value_name = "S", value_parser = seconds)]
    wait: Option<Duration>,
}

/// Measures; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options, quantity: Quantity) -> ExitCode {
    run_command(&options.topic.topic, "measure", || show(options, quantity))
}

fn show(options: &Options, quantity: Quantity) -> Result<ExitCode, Error> {
    let command = match quantity {
        Quantity::Rate => "hz",
        Quantity::Bandwidth => "bw",
        Quantity::Delay => "delay",
    };
    let mut session = Session::open(&options.topic, command, options.wait)?;
    let Some(endpoints) = session.wait_for_endpoints(has_writer)? else { return Ok(ExitCode::from(NOTHING)) };
    let reader = reader(&session, &endpoints)?;
    session.stop.also_wakes(&reader.read_condition(&ReadOptions::new()));
    let mut meter = Meter::new(options.window);
    let (mut lines, begin) = (0, Instant::now());
    let mut due = begin + TELL_AFTER;
    while !session.stop.is_told() && options.count.is_none_or(|most| lines < most) {
        if meter.total == 0 && session.is_over() {
            break;
        }
        let changes = reader.take_changes()?;
        // What ends an instance is no sample.
        changes.iter().filter(|change| change.ending.is_none()).for_each(|change| meter.add(change));
        if Instant::now() >= due {
            due += TELL_AFTER;
            if meter.total > 0 {
                let line =
                    if options.topic.json { meter.json(quantity).to_string() } else { meter.text(quantity) };
                if !output::print(format_args!("{line}\n")) {
                    break;
                }
                lines += 1;
            } else {
                let matched = reader.matched_publications()?.len();
                session.say(format!(
                    "topic '{}' has {}, of which {matched} match: nothing has come yet",
                    session.name,
                    counted(&endpoints)
                ));
            }
            session.say_mismatches()?;
        }
        if changes.is_empty() {
            session.stop.sleep(LOOK_AGAIN);
        }
    }
    eprintln!("{}", output::counted(meter.total, "sample"));
    Ok(if meter.total > 0 { ExitCode::SUCCESS } else { ExitCode::from(NOTHING) })
}

/// A reader of octets, with all that the writers offer.
fn reader(session: &Session, endpoints: &[DiscoveredEndpoint]) -> Result<AnyDataReader, Error> {
    let fitting = FittingQos::of_reader(endpoints);
    let first = endpoints.iter().find(|it| it.is_writer()).or_else(|| endpoints.first());
    let (name, keyed) = first.map_or(("", false), |it| (it.type_name.as_str(), it.guid.entity.is_keyed()));
    let ty = Arc::new(OpaqueType::new(name, keyed));
    let topic = session.participant.create_any_topic(&session.name, ty, QosSet::default())?;
    let subscriber = session.participant.create_subscriber(fitting.group)?;
    // What was kept for late joiners would come at once, and is none of what is measured.
    let qos = QosSet { durability: Durability::Volatile, ..fitting.endpoint.keep_all() };
    subscriber.create_reader(&topic, qos)
}

/// What has come, as far as the window goes.
struct Meter {
    total: u64,
    /// Seconds between samples.
    intervals: Window,
    /// Octets of payloads.
    sizes: Window,
    /// Seconds from writing to receiving.
    delays: Window,
    last: Option<Time>,
}

impl Meter {
    fn new(window: u32) -> Self {
        let most = window as usize;
        let [intervals, sizes, delays] = [most - 1, most, most].map(Window::new);
        Self { total: 0, intervals, sizes, delays, last: None }
    }

    fn add(&mut self, change: &SerializedChange) {
        let received = change.reception_timestamp;
        if let Some(last) = self.last.replace(received) {
            self.intervals.push(seconds_of(received.since(last)));
        }
        self.total += 1;
        self.sizes.push(change.payload.len() as f64);
        self.delays.push(seconds_of(received.since(change.source_timestamp)));
    }

    /// Samples a second; 0 while there is no interval.
    fn rate(&self) -> f64 {
        let mean = self.intervals.summary().mean;
        if mean > 0.0 { 1.0 / mean } else { 0.0 }
    }

    fn text(&self, quantity: Quantity) -> String {
        let rate = self.rate();
        match quantity {
            Quantity::Rate => {
                let Summary { mean, min, max, deviation, count, .. } = self.intervals.summary().each(1e3);
                format!(
                    "{rate:.3} Hz; ms between samples: mean {mean:.3}, min {min:.3}, max {max:.3}, \
                     deviation {deviation:.3}; {}",
                    output::counted(count as u64 + 1, "sample")
                )
            }
            Quantity::Bandwidth => {
                let Summary { mean, min, max, count, .. } = self.sizes.summary();
                format!(
                    "{:.3} MB/s; octets a sample: mean {mean:.1}, min {min}, max {max}; {}",
                    rate * mean / 1e6,
                    output::counted(count as u64, "sample")
                )
            }
            Quantity::Delay => {
                let Summary { mean, min, max, p50, p99, count, .. } = self.delays.summary().each(1e3);
                let clocks = if min < 0.0 { "; the clocks differ" } else { "" };
                format!(
                    "ms from writing to receiving: mean {mean:.3}, min {min:.3}, max {max:.3}, p50 {p50:.3}, \
                     p99 {p99:.3}; {}{clocks}",
                    output::counted(count as u64, "sample")
                )
            }
        }
    }

    fn json(&self, quantity: Quantity) -> Value {
        let total = self.total;
        match quantity {
            Quantity::Rate => {
                json!({ "hz": self.rate(), "interval_s": self.intervals.summary(), "total": total })
            }
            Quantity::Bandwidth => {
                let sizes = self.sizes.summary();
                json!({ "bytes_per_second": self.rate() * sizes.mean, "bytes": sizes, "total": total })
            }
            Quantity::Delay => json!({ "delay_s": self.delays.summary(), "total": total }),
        }
    }
}

fn seconds_of(duration: plainsong::time::Duration) -> f64 {
    duration.0 as f64 / 1e9
}
