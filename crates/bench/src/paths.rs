//! The two paths of a sample, for a profiler that counts the instructions of each thread: the calling thread
//! writes, the receive thread of another participant's own domain takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plainsong::Result;
use plainsong::config::{Config, Use};
use plainsong::prelude::*;
use plainsong::time;

use super::Options;

/// Bounded and keyed: whoever takes it allocates nothing for it.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(name = "Path", final)]
struct Path {
    #[dds(key)]
    key: u32,
    sequence: u32,
    values: [u64; 7],
}

/// Under a profiler nobody writes fast enough for samples to share datagrams unless they may wait.
const LATENCY_BUDGET: time::Duration = time::Duration::from_millis(100);

#[derive(Default)]
struct Taker {
    samples: AtomicU32,
}

impl DataReaderListener for Taker {
    fn on_data_available(&self, reader: &AnyDataReader) {
        path_take(reader, &self.samples);
    }
}

/// The name by which the thread is known that receives and takes.
#[inline(never)]
fn path_take(reader: &AnyDataReader, samples: &AtomicU32) {
    let Some(reader) = reader.downcast::<Path>() else { return };
    let Ok(taken) = reader.take() else { return };
    samples.fetch_add(u32::try_from(taken.len()).unwrap_or(u32::MAX), Ordering::Release);
}

/// The name by which the thread is known that writes.
#[inline(never)]
fn path_write(writer: &DataWriter<Path>, count: u32) -> Result<()> {
    let mut sample = Path::default();
    for _ in 0..count {
        sample.sequence += 1;
        writer.write(&sample)?;
    }
    Ok(())
}

/// Writes `count` samples, and waits until all are taken.
pub(super) fn run(options: &Options) -> Result<()> {
    let topic_qos = QosSet::default();
    let here = DomainParticipant::new(options.domain)?;
    // Other settings: sockets and threads of its own. What is counted is of UDP.
    let config = Config { announce_period_ms: 2_999, shared_memory: Use::Off, ..Config::default() };
    let factory = DomainParticipantFactory::with_config(config);
    let there = factory.create_participant(options.domain, "there", QosSet::default())?;
    let mut offered = QosSet { latency_budget: LATENCY_BUDGET, ..QosSet::writer().keep_all() };
    offered.reliability.max_blocking_time = time::Duration::from_secs(60);
    let topic = here.create_topic::<Path>("Path", topic_qos.clone())?;
    let writer = here.create_publisher(QosSet::default())?.create_writer(&topic, offered)?;
    let requested = QosSet { latency_budget: LATENCY_BUDGET, ..QosSet::reader().reliable().keep_all() };
    let topic = there.create_topic::<Path>("Path", topic_qos)?;
    let reader = there.create_subscriber(QosSet::default())?.create_reader(&topic, requested)?;
    let taker = Arc::new(Taker::default());
    let listener = Arc::clone(&taker);
    reader.set_listener(Some(listener), StatusMask::NONE.with(StatusKind::DataAvailable));
    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    while writer.publication_matched_status()?.current_count == 0 {
        waiting.wait(Duration::from_secs(30))?;
    }
    path_write(&writer, options.count)?;
    writer.wait_for_acknowledgments(Duration::from_secs(60))?;
    while taker.samples.load(Ordering::Acquire) < options.count {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("written and taken {}", options.count);
    Ok(())
}
