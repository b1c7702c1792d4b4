//! Many instances, many endpoints, many participants.

use std::time::{Duration, Instant};

use plainsong::Result;
use plainsong::prelude::*;

use super::{Measured, Options, footprint, io};

/// Operations averaged over.
const ROUNDS: u32 = 100_000;
const PATIENCE: Duration = Duration::from_secs(120);

/// A keep-last-1, transient-local pair with so many instances: memory of each side, and what operations take.
pub(super) fn instances(options: &Options) -> Result<()> {
    let count = options.count;
    let writing = DomainParticipant::new(options.domain)?;
    let reading = DomainParticipant::new(options.domain)?;
    let durable = |qos: QosSet| qos.reliable().keep_last(1).durability(Durability::TransientLocal);
    let topic = writing.create_topic::<Measured>("Instances", QosSet::default())?;
    let writer =
        writing.create_publisher(QosSet::default())?.create_writer(&topic, durable(QosSet::writer()))?;
    let mut sample = Measured { payload: vec![7; options.size], ..Measured::default() };
    let before_kb = footprint::resident_kb()?;
    for key in 0..count {
        sample.key = key;
        writer.write(&sample)?;
    }
    let writer_kb = footprint::resident_kb()? - before_kb;

    let before_kb = footprint::resident_kb()?;
    let topic = reading.create_topic::<Measured>("Instances", QosSet::default())?;
    let reader =
        reading.create_subscriber(QosSet::default())?.create_reader(&topic, durable(QosSet::reader()))?;
    let replay = Instant::now();
    reader.wait_for_historical_data(PATIENCE)?;
    let replay = replay.elapsed();
    let reader_kb = footprint::resident_kb()? - before_kb;

    // Step through the instances so that no cache line is met twice in a row.
    let key_of = |round: u32| (u64::from(round) * 7_919 % u64::from(count)) as u32;
    let write = timed(|round| {
        sample.key = key_of(round);
        writer.write(&sample)
    })?;
    writer.wait_for_acknowledgments(PATIENCE)?;
    let mut probe = Measured::default();
    let writer_look_up = timed(|round| {
        probe.key = key_of(round);
        writer.lookup_instance(&probe).map(drop)
    })?;
    let reader_look_up = timed(|round| {
        probe.key = key_of(round);
        reader.lookup_instance(&probe).map(drop)
    })?;
    let take = Instant::now();
    let mut taken = 0_u32;
    while taken < count.min(ROUNDS) {
        let samples = reader.take_with(&ReadOptions::new().max_samples(1))?.len();
        if samples == 0 {
            break;
        }
        taken += 1;
    }
    let take = take.elapsed().as_nanos() as f64 / f64::from(taken.max(1));
    let each = |kb: u64| kb as f64 * 1024.0 / f64::from(count);
    println!(
        "instances {count} writer_bytes_each {:.0} reader_bytes_each {:.0} replay_ms {} write_ns {write:.0} \
         take_ns {take:.0} writer_lookup_ns {writer_look_up:.0} reader_lookup_ns {reader_look_up:.0}",
        each(writer_kb),
        each(reader_kb),
        replay.as_millis()
    );
    Ok(())
}

/// Nanoseconds of one operation, averaged.
fn timed(mut operation: impl FnMut(u32) -> Result<()>) -> Result<f64> {
    let begin = Instant::now();
    (0..ROUNDS).try_for_each(&mut operation)?;
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS))
}

/// One participant with so many readers, and one with as many writers, each on a topic of its own.
pub(super) fn endpoints(options: &Options) -> Result<()> {
    let (writing, reading) =
        (DomainParticipant::new(options.domain)?, DomainParticipant::new(options.domain)?);
    let (publisher, subscriber) =
        (writing.create_publisher(QosSet::default())?, reading.create_subscriber(QosSet::default())?);
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    let (begin, bytes, before_kb) = (Instant::now(), wire_bytes()?, footprint::resident_kb()?);
    for index in 0..options.count {
        let name = format!("Scale{index}");
        let topic = writing.create_topic::<Measured>(&name, QosSet::default())?;
        writers.push(publisher.create_writer(&topic, QosSet::writer())?);
        let topic = reading.create_topic::<Measured>(&name, QosSet::default())?;
        readers.push(subscriber.create_reader(&topic, QosSet::reader().reliable())?);
    }
    for writer in &writers {
        until(begin, || Ok(!writer.matched_subscriptions()?.is_empty()))?;
    }
    for reader in &readers {
        until(begin, || Ok(!reader.matched_publications()?.is_empty()))?;
    }
    report("endpoints", 2 * options.count, begin, bytes, before_kb)
}

/// So many participants in this process, all of which know each other. With `endpoints` of each, half of
/// which write and half of which read what the participant before writes, until all have matched.
pub(super) fn participants(options: &Options) -> Result<()> {
    let (begin, bytes, before_kb) = (Instant::now(), wire_bytes()?, footprint::resident_kb()?);
    let (mut participants, mut writers, mut readers) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..options.count {
        let participant = DomainParticipant::new(options.domain)?;
        let publisher = participant.create_publisher(QosSet::default())?;
        let subscriber = participant.create_subscriber(QosSet::default())?;
        for number in 0..options.endpoints / 2 {
            let topic = |index: u32| {
                let name = format!("Scale{index}of{number}");
                participant.create_topic::<Measured>(&name, QosSet::default())
            };
            writers.push(publisher.create_writer(&topic(index)?, QosSet::writer())?);
            let before = (index + options.count - 1) % options.count;
            readers.push(subscriber.create_reader(&topic(before)?, QosSet::reader().reliable())?);
        }
        participants.push(participant);
    }
    for participant in &participants {
        until(begin, || Ok(participant.discovered_participants()?.len() + 1 >= options.count as usize))?;
    }
    for writer in &writers {
        until(begin, || Ok(!writer.matched_subscriptions()?.is_empty()))?;
    }
    for reader in &readers {
        until(begin, || Ok(!reader.matched_publications()?.is_empty()))?;
    }
    report("participants", options.count, begin, bytes, before_kb)
}

fn report(what: &str, count: u32, begin: Instant, bytes: u64, before_kb: u64) -> Result<()> {
    let milliseconds = begin.elapsed().as_millis();
    println!(
        "{what} {count} all_matched_ms {milliseconds} wire_bytes {} rss_kb {} threads {}",
        wire_bytes()? - bytes,
        footprint::resident_kb()? - before_kb,
        footprint::threads()?
    );
    Ok(())
}

fn until(begin: Instant, done: impl Fn() -> Result<bool>) -> Result<()> {
    while !done()? {
        if begin.elapsed() > PATIENCE {
            return Err(crate::failed(format!("not all were discovered within {PATIENCE:?}")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Octets that the loopback interface of this network namespace has sent.
fn wire_bytes() -> Result<u64> {
    let path = "/proc/self/net/dev";
    let text = std::fs::read_to_string(path).map_err(|source| io(path, source))?;
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("lo:")).unwrap_or_default();
    Ok(line.split_whitespace().nth(8).and_then(|bytes| bytes.parse().ok()).unwrap_or(0))
}
