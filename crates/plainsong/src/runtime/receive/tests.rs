//! Threads that receive what they wait for, with real sockets: nothing is lost, nobody is called by the wrong
//! thread.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Instant;

use plainsong_derive::DdsType;
use plainsong_proto::qos::QosSet;
use plainsong_proto::status::{StatusKind, StatusMask};

use super::*;
use crate::condition::{GuardCondition, WaitSet};
use crate::data_reader::{AnyDataReader, DataReader};
use crate::data_writer::DataWriter;
use crate::error::Error;
use crate::listener::DataReaderListener;
use crate::participant::{DomainParticipant, DomainParticipantFactory};
use crate::read_options::ReadOptions;
use crate::transport::udp::tests::eventually;

/// A passing test never waits for it.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default, DdsType)]
#[dds(name = "Number", final)]
struct Number {
    value: u32,
}

/// Two participants with sockets of their own, one to write and one to wait.
struct Sides {
    writing: DomainParticipant,
    waiting: DomainParticipant,
}

impl Sides {
    fn new(domain: u16) -> Self {
        Self::with(domain, Config::default())
    }

    fn with(domain: u16, config: Config) -> Self {
        let config = Config { interfaces: Some(vec!["lo".to_owned()]), ..config };
        // Another configuration is another domain object, with sockets and threads of its own.
        let other = Config { receive_buffer_bytes: config.receive_buffer_bytes / 2, ..config.clone() };
        let join = |config| {
            let factory = DomainParticipantFactory::with_config(config);
            factory.create_participant(domain, "receive", QosSet::default()).unwrap()
        };
        Self { writing: join(other), waiting: join(config) }
    }

    fn topic(&self, name: &str) -> (DataWriter<Number>, DataReader<Number>) {
        self.topic_with(name, &QosSet::writer().keep_all())
    }

    /// A writer of which each second write waits for an answer.
    fn narrow_topic(&self, name: &str) -> (DataWriter<Number>, DataReader<Number>) {
        let mut qos = QosSet::writer().keep_all();
        qos.resource_limits.max_samples = 2;
        qos.reliability.max_blocking_time = plainsong_proto::time::Duration::from_secs(60);
        self.topic_with(name, &qos)
    }

    fn topic_with(&self, name: &str, qos: &QosSet) -> (DataWriter<Number>, DataReader<Number>) {
        let topic = self.writing.create_topic(name, QosSet::default()).unwrap();
        let publisher = self.writing.create_publisher(QosSet::default()).unwrap();
        let writer = publisher.create_writer(&topic, qos.clone()).unwrap();
        let topic = self.waiting.create_topic(name, QosSet::default()).unwrap();
        let subscriber = self.waiting.create_subscriber(QosSet::default()).unwrap();
        let reader = subscriber.create_reader(&topic, QosSet::reader().reliable().keep_all()).unwrap();
        eventually("the writer matches", || !writer.matched_subscriptions().unwrap().is_empty());
        eventually("the reader matches", || !reader.matched_publications().unwrap().is_empty());
        (writer, reader)
    }

    fn shared(&self) -> Arc<Shared> {
        Arc::clone(self.waiting.inner.slot().unwrap().shared())
    }

    fn shared_of_writing(&self) -> Arc<Shared> {
        Arc::clone(self.writing.inner.slot().unwrap().shared())
    }
}

fn values(reader: &DataReader<Number>) -> Vec<u32> {
    let samples = reader.take().unwrap();
    samples.into_iter().filter_map(|sample| sample.data).map(|number| number.value).collect()
}

/// Writes numbers from `first` on, each when the last has been taken and somebody waits, until `done`; how
/// many.
fn one_by_one(
    shared: &Shared,
    writer: &DataWriter<Number>,
    taken: &AtomicU32,
    first: u32,
    done: impl Fn() -> bool,
) -> u32 {
    let mut value = first;
    let end = Instant::now() + TIMEOUT;
    while !done() {
        assert!(Instant::now() < end, "no thread that waits comes to receive");
        if taken.load(Ordering::SeqCst) == value && shared.inputs.owners.has_waiters() {
            writer.write(&Number { value }).unwrap();
            value += 1;
        }
        std::thread::yield_now();
    }
    value - first
}

/// Takes what comes, in order, until `end` says so; calls `each` before each wait.
fn take_all(reader: &DataReader<Number>, taken: &AtomicU32, end: &AtomicBool, guard: &GuardCondition) {
    let waiting = WaitSet::new();
    waiting.attach(reader.read_condition(&ReadOptions::new()));
    waiting.attach(guard.condition());
    while !end.load(Ordering::SeqCst) {
        waiting.wait(TIMEOUT).unwrap();
        for value in values(reader) {
            assert_eq!(value, taken.fetch_add(1, Ordering::SeqCst), "in order, each once");
        }
    }
}

/// Has a thread wait for `reader` while `story` runs, which is told how to write so that the thread receives.
fn while_one_waits(
    sides: &Sides,
    reader: &DataReader<Number>,
    story: impl FnOnce(&Arc<Shared>, &AtomicU32, &GuardCondition),
) {
    let (taken, end, guard) = (AtomicU32::new(0), AtomicBool::new(false), GuardCondition::new());
    std::thread::scope(|scope| {
        scope.spawn(|| take_all(reader, &taken, &end, &guard));
        story(&sides.shared(), &taken, &guard);
        end.store(true, Ordering::SeqCst);
        guard.set_trigger_value(true);
    });
}

#[test]
fn a_thread_that_waits_comes_to_receive_what_it_waits_for() {
    let sides = Sides::new(60);
    let (writer, reader) = sides.topic("Numbers");
    while_one_waits(&sides, &reader, |shared, taken, _| {
        let written =
            one_by_one(shared, &writer, taken, 0, || shared.inputs.owners.received_by_waiters() >= 100);
        eventually("all are taken", || taken.load(Ordering::SeqCst) == written);
    });
}

#[test]
fn a_thread_that_looks_again_and_again_comes_to_receive() {
    let sides = Sides::new(67);
    let (writer, reader) = sides.topic("Numbers");
    let (shared, taken, end) = (sides.shared(), AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(Ordering::SeqCst) {
                for value in values(&reader) {
                    assert_eq!(value, taken.fetch_add(1, Ordering::SeqCst), "in order, each once");
                }
            }
        });
        let mut value = 0;
        eventually("a thread that polls receives", || {
            if taken.load(Ordering::SeqCst) == value {
                writer.write(&Number { value }).unwrap();
                value += 1;
            }
            shared.inputs.owners.received_by_waiters() >= 20
        });
        end.store(true, Ordering::SeqCst);
    });
    drop(reader);
    eventually("the receive threads have their sockets", || shared.inputs.owners.are_all_back());
}

#[test]
fn a_thread_that_receives_hears_a_guard_condition_and_the_time() {
    let sides = Sides::new(61);
    let (writer, reader) = sides.topic("Numbers");
    while_one_waits(&sides, &reader, |shared, taken, _| {
        let written = one_by_one(shared, &writer, taken, 0, || shared.inputs.owners.is_with_waiter());
        eventually("all are taken", || taken.load(Ordering::SeqCst) == written);
        // That it ends is the proof: the guard condition, triggered now, ends a wait in the socket.
    });
    let waiting = WaitSet::new();
    waiting.attach(reader.read_condition(&ReadOptions::new()));
    for timeout_ms in [0, 1, 20] {
        assert!(matches!(waiting.wait(Duration::from_millis(timeout_ms)), Err(Error::Timeout { .. })));
    }
}

#[test]
fn who_does_not_come_back_leaves_the_socket_to_the_receive_thread() {
    let sides = Sides::new(62);
    let (writer, reader) = sides.topic("Numbers");
    let mut written = 0;
    while_one_waits(&sides, &reader, |shared, taken, _| {
        written = one_by_one(shared, &writer, taken, 0, || shared.inputs.owners.received_by_waiters() > 0);
        eventually("all are taken", || taken.load(Ordering::SeqCst) == written);
    });
    // Nobody waits any more: what is written now is received all the same, and its acknowledgements are sent.
    for value in 0..100 {
        writer.write(&Number { value }).unwrap();
    }
    writer.wait_for_acknowledgments(TIMEOUT).unwrap();
    assert_eq!(values(&reader), (0..100).collect::<Vec<_>>());
    eventually("the receive threads have their sockets", || sides.shared().inputs.owners.are_all_back());
}

/// Notes which thread calls it.
struct Told {
    threads: Mutex<Vec<String>>,
    samples: AtomicU64,
}

impl DataReaderListener for Told {
    fn on_data_available(&self, reader: &AnyDataReader) {
        let reader = reader.downcast::<Number>().unwrap();
        self.samples.fetch_add(values(&reader).len() as u64, Ordering::SeqCst);
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        lock(&self.threads).push(name);
    }
}

#[test]
fn a_thread_that_receives_calls_no_listener() {
    let sides = Sides::new(63);
    let (writer, reader) = sides.topic("Numbers");
    let (others, other) = sides.topic("Others");
    let told = Arc::new(Told { threads: Mutex::default(), samples: AtomicU64::new(0) });
    let listener = Arc::clone(&told);
    other.set_listener(Some(listener), StatusMask::NONE.with(StatusKind::DataAvailable));
    while_one_waits(&sides, &reader, |shared, taken, _| {
        let mut written = 0;
        for round in 1..=3_u64 {
            let before = shared.inputs.owners.received_by_waiters();
            let done = || {
                shared.inputs.owners.received_by_waiters() > before && shared.inputs.owners.is_with_waiter()
            };
            written += one_by_one(shared, &writer, taken, written, done);
            others.write(&Number { value: 0 }).unwrap();
            eventually("the listener hears", || told.samples.load(Ordering::SeqCst) == round);
        }
        eventually("all are taken", || taken.load(Ordering::SeqCst) == written);
    });
    let threads = lock(&told.threads).clone();
    assert!(threads.iter().all(|name| name.starts_with("rx-")), "called by {threads:?}");
}

/// Writes numbers as fast as there is room while `reader` is emptied, in order, until `story` is over.
fn write_in_a_flow(writer: &DataWriter<Number>, reader: &DataReader<Number>, story: impl FnOnce()) {
    let (written, end) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(Ordering::SeqCst) {
                writer.write(&Number { value: written.load(Ordering::SeqCst) }).unwrap();
                written.fetch_add(1, Ordering::SeqCst);
            }
            writer.wait_for_acknowledgments(TIMEOUT).unwrap();
        });
        let taking = scope.spawn(|| {
            let mut next = 0;
            eventually("all are taken", || {
                for value in values(reader) {
                    assert_eq!(value, next, "in order, each once");
                    next += 1;
                }
                end.load(Ordering::SeqCst) && next == written.load(Ordering::SeqCst)
            });
        });
        story();
        end.store(true, Ordering::SeqCst);
        taking.join().unwrap();
    });
}

#[test]
fn a_thread_that_waits_for_room_receives_what_makes_some() {
    let sides = Sides::new(68);
    let (writer, reader) = sides.narrow_topic("Numbers");
    let shared = sides.shared_of_writing();
    write_in_a_flow(&writer, &reader, || {
        eventually("the writing thread receives", || shared.inputs.owners.received_by_waiters() >= 100);
    });
    eventually("the receive threads have their sockets", || shared.inputs.owners.are_all_back());
}

#[test]
fn samples_that_come_while_a_thread_waits_for_room_end_that() {
    let sides = Sides::new(69);
    let (writer, reader) = sides.narrow_topic("Numbers");
    // The other way.
    let back = Sides { writing: sides.waiting.clone(), waiting: sides.writing.clone() };
    let (commands, commanded) = back.topic("Commands");
    let told = Arc::new(Told { threads: Mutex::default(), samples: AtomicU64::new(0) });
    let listener = Arc::clone(&told);
    commanded.set_listener(Some(listener), StatusMask::NONE.with(StatusKind::DataAvailable));
    let shared = sides.shared_of_writing();
    let disturbed = || shared.inputs.owners.is_disturbed();
    write_in_a_flow(&writer, &reader, || {
        let (mut sent, mut was_disturbed) = (0, false);
        eventually("a sample comes while the writing thread receives", || {
            if told.samples.load(Ordering::SeqCst) == sent && shared.inputs.owners.is_with_waiter() {
                commands.write(&Number { value: 0 }).unwrap();
                sent += 1;
            }
            was_disturbed |= disturbed();
            was_disturbed
        });
        eventually("all are heard", || told.samples.load(Ordering::SeqCst) == sent);
    });
    let threads = lock(&told.threads).clone();
    assert!(threads.iter().all(|name| name.starts_with("rx-")), "called by {threads:?}");
}

#[test]
fn a_place_for_receive_threads_is_where_data_is_received() {
    let sides = Sides::with(64, Config { busy_poll: true, ..Config::default() });
    assert!(!sides.shared().inputs.owners.can_hand_over(0));
}

#[test]
fn a_domain_can_end_while_a_thread_receives_for_it() {
    let sides = Sides::new(65);
    let (writer, reader) = sides.topic("Numbers");
    while_one_waits(&sides, &reader, |shared, taken, _| {
        one_by_one(shared, &writer, taken, 0, || shared.inputs.owners.is_with_waiter());
        // As the domain does when its last user leaves.
        shared.transport.close();
        shared.inputs.stop();
        eventually("the socket is left", || !shared.inputs.owners.is_with_waiter());
    });
}

#[test]
fn many_threads_that_wait_and_leave_lose_nothing() {
    const SAMPLES: u32 = 2_000;
    const TOPICS: u32 = 3;
    let sides = Sides::new(66);
    let pairs: Vec<_> = (0..TOPICS).map(|index| sides.topic(&format!("Numbers{index}"))).collect();
    std::thread::scope(|scope| {
        for (index, (writer, reader)) in (0_u32..).zip(&pairs) {
            scope.spawn(move || {
                for value in 0..SAMPLES {
                    writer.write(&Number { value }).unwrap();
                    // Some rest, so that threads that wait fall asleep; others do not.
                    if (value + index).is_multiple_of(7) {
                        writer.flush().unwrap();
                        std::thread::sleep(Duration::from_micros(u64::from(value % 50) * 20));
                    }
                }
            });
            scope.spawn(move || {
                let waiting = WaitSet::new();
                waiting.attach(reader.read_condition(&ReadOptions::new()));
                let (mut next, mut rests) = (0, 0_u32);
                let end = Instant::now() + TIMEOUT;
                while next < SAMPLES {
                    assert!(Instant::now() < end, "reader {index} has {next} samples");
                    let timeout = Duration::from_micros(u64::from(rests % 3) * 400);
                    let _ = waiting.wait(if index > 0 {
                        timeout.into()
                    } else {
                        plainsong_proto::time::Duration::INFINITE
                    });
                    for value in values(reader) {
                        assert_eq!(value, next);
                        next += 1;
                    }
                    rests += 1;
                }
            });
        }
    });
}
