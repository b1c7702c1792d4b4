//! What the children of the demo do: one publishes, the others subscribe and report.

use std::io::{Read, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use plainsong::prelude::*;
use plainsong::{Error, Result};

use super::{Options, Role, io};
use crate::shape_type::{Motion, ShapeType};
use crate::stop::Stop;

const COLORS: [&str; 3] = ["BLUE", "RED", "GREEN"];
const REPORT_PERIOD: Duration = Duration::from_millis(100);
/// Latencies are kept this many reports, so that percentiles are about the last second.
const REPORTS_PER_STATISTIC: u32 = 10;

pub(super) fn run(options: &Options, role: Role) -> Result<()> {
    let stop = Stop::on_signals().map_err(|source| io("installing signal handlers", source))?;
    end_with_parent(&stop)?;
    let participant = DomainParticipant::new(options.domain)?;
    let topic = participant.create_topic::<ShapeType>(&options.topic, QosSet::default())?;
    match role {
        Role::Publisher => publish(options, &participant, &topic, &stop),
        Role::Subscriber => subscribe(&participant, &topic, &stop),
    }
}

/// The parent holds the other end of standard input for as long as it lives.
fn end_with_parent(stop: &Stop) -> Result<()> {
    let stop = stop.clone();
    let wait = move || {
        let mut octets = [0; 64];
        while matches!(std::io::stdin().read(&mut octets), Ok(1..)) {}
        stop.tell();
    };
    std::thread::Builder::new()
        .name("parent".into())
        .spawn(wait)
        .map(|_| ())
        .map_err(|source| io("starting a thread", source))
}

fn publish(
    options: &Options,
    participant: &DomainParticipant,
    topic: &Topic<ShapeType>,
    stop: &Stop,
) -> Result<()> {
    let publisher = participant.create_publisher(QosSet::default())?;
    let writer = publisher.create_writer(topic, QosSet::writer().keep_last(1))?;
    let mut shapes: Vec<(ShapeType, Motion)> = COLORS
        .iter()
        .zip(0u64..)
        .map(|(color, seed)| {
            let mut shape = ShapeType { color: (*color).to_owned(), shapesize: 30, ..ShapeType::default() };
            let motion = Motion::scatter(seed + u64::from(std::process::id()), &mut shape);
            (shape, motion)
        })
        .collect();
    let period = Duration::from_secs(1) / options.rate;
    // Steps are drawn for 30 a second: at higher rates a shape stands still in between.
    let writes_per_step = (options.rate / 30).max(1);
    let mut writes = 0;
    let mut next = Instant::now();
    while !stop.is_told() {
        for (shape, motion) in &mut shapes {
            if writes % writes_per_step == 0 {
                motion.step(shape);
            }
            writer.write(shape)?;
        }
        writes += 1;
        next += period;
        stop.sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

fn subscribe(participant: &DomainParticipant, topic: &Topic<ShapeType>, stop: &Stop) -> Result<()> {
    let subscriber = participant.create_subscriber(QosSet::default())?;
    // Best effort and both representations: every writer of the topic is heard, whatever it offers.
    let mut qos = QosSet::reader().keep_last(16);
    qos.data_representation = vec![XcdrVersion::Xcdr1, XcdrVersion::Xcdr2];
    let reader = subscriber.create_reader(topic, qos)?;
    let mut latency = histogram();
    let (mut samples, mut reports) = (0u64, 0);
    let mut last_statistic = Instant::now();
    let mut next_report = Instant::now() + REPORT_PERIOD;
    let mut newest = std::collections::BTreeMap::<String, ShapeType>::new();
    while !stop.is_told() {
        match reader.wait_take(next_report.saturating_duration_since(Instant::now())) {
            Ok(taken) => {
                for sample in taken {
                    let nanos = now_nanos().saturating_sub(sample.info.source_timestamp.0);
                    if let Some(shape) = sample.data {
                        samples += 1;
                        latency.saturating_record(u64::try_from(nanos).unwrap_or(0));
                        newest.insert(shape.color.clone(), shape);
                    }
                }
            }
            Err(Error::Timeout { .. }) => {}
            Err(error) => return Err(error),
        }
        if Instant::now() < next_report {
            continue;
        }
        next_report += REPORT_PERIOD;
        let mut out = std::io::stdout().lock();
        for shape in newest.values() {
            let ShapeType { color, x, y, shapesize, .. } = shape;
            let _ = writeln!(out, "shape {x} {y} {shapesize} {color}");
        }
        reports += 1;
        if reports == REPORTS_PER_STATISTIC {
            let rate = samples as f64 / last_statistic.elapsed().as_secs_f64();
            let (p50, p99) = (latency.value_at_quantile(0.5), latency.value_at_quantile(0.99));
            let writers = reader.matched_publications()?.len();
            let _ = writeln!(out, "statistic {rate:.0} {p50} {p99} {writers}");
            latency.reset();
            (samples, reports, last_statistic) = (0, 0, Instant::now());
        }
        // A closed pipe means that the parent is gone, which the other thread sees too.
        let _ = out.flush();
    }
    Ok(())
}

fn histogram() -> Histogram<u64> {
    const NANOS_MAX: u64 = 60_000_000_000;
    Histogram::new_with_max(NANOS_MAX, 3).unwrap_or_else(|_| unreachable!("three digits are allowed"))
}

fn now_nanos() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
