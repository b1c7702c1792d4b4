//! One writer as fast as it can, one reader that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plainsong::Result;
use plainsong::prelude::*;

use super::{Measured, Options};

/// Takes everything at once and counts it, and what the sequence skips.
#[derive(Default)]
struct Counter {
    samples: AtomicU64,
    next: AtomicU64,
    missing: AtomicU64,
}

impl DataReaderListener for Counter {
    fn on_data_available(&self, reader: &AnyDataReader) {
        let Some(reader) = reader.downcast::<Measured>() else { return };
        let Ok(samples) = reader.take() else { return };
        for sample in samples.into_iter().filter_map(|sample| sample.data) {
            let expected = self.next.swap(u64::from(sample.sequence) + 1, Ordering::Relaxed);
            self.missing.fetch_add(u64::from(sample.sequence).saturating_sub(expected), Ordering::Relaxed);
            self.samples.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub(super) fn publish(options: &Options, duration: Duration) -> Result<()> {
    let participant = DomainParticipant::new(options.domain)?;
    let topic = participant.create_topic("Throughput", QosSet::default())?;
    let publisher = participant.create_publisher(QosSet::default())?;
    let mut qos = QosSet { latency_budget: latency_budget(options), ..QosSet::writer().keep_all() };
    qos.reliability.max_blocking_time = plainsong::time::Duration::from_secs(10);
    let writer = publisher.create_writer(&topic, qos)?;
    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    while writer.publication_matched_status()?.current_count == 0 {
        waiting.wait(Duration::from_secs(10))?;
    }
    let mut sample = Measured { payload: vec![0; options.size], ..Measured::default() };
    let end = Instant::now() + duration;
    while Instant::now() < end {
        // The clock is read once in a hundred writes: it must not be what is measured.
        for _ in 0..100 {
            writer.write(&sample)?;
            sample.sequence += 1;
        }
    }
    println!("size {} written {}", options.size, sample.sequence);
    writer.wait_for_acknowledgments(Duration::from_secs(5))
}

const fn latency_budget(options: &Options) -> plainsong::time::Duration {
    plainsong::time::Duration::from_micros(options.latency_budget_us)
}

pub(super) fn subscribe(options: &Options, warm_up: Duration, duration: Duration) -> Result<()> {
    let participant = DomainParticipant::new(options.domain)?;
    let topic = participant.create_topic::<Measured>("Throughput", QosSet::default())?;
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let qos = QosSet { latency_budget: latency_budget(options), ..QosSet::reader().reliable().keep_all() };
    let reader = subscriber.create_reader(&topic, qos)?;
    let counter = Arc::new(Counter::default());
    let listener = Arc::clone(&counter);
    reader.set_listener(Some(listener), StatusMask::NONE.with(StatusKind::DataAvailable));
    let waiting = WaitSet::new();
    waiting.attach(reader.status_condition(StatusMask::NONE.with(StatusKind::SubscriptionMatched)));
    while reader.subscription_matched_status()?.current_count == 0 {
        waiting.wait(Duration::from_secs(10))?;
    }
    std::thread::sleep(warm_up);
    let (begin, before) = (Instant::now(), counter.samples.load(Ordering::Relaxed));
    std::thread::sleep(duration.saturating_sub(Duration::from_millis(200)));
    let samples = counter.samples.load(Ordering::Relaxed) - before;
    let rate = samples as f64 / begin.elapsed().as_secs_f64();
    println!(
        "size {} samples_per_s {rate:.0} received {} missing {}",
        options.size,
        counter.samples.load(Ordering::Relaxed),
        counter.missing.load(Ordering::Relaxed)
    );
    Ok(())
}
