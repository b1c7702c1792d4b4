//! Samples that share datagrams, through the API and real sockets.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Blob, PATIENCE, Pair, Point, fresh_domain, reader, until, writer};
use plainsong::prelude::*;

const HOUR: plainsong::time::Duration = plainsong::time::Duration::from_secs(3_600);

fn point(x: u32) -> Point {
    Point { id: 1, x: f64::from(x), y: 0.0 }
}

fn values(samples: Vec<Sample<Point>>) -> Vec<u32> {
    samples.into_iter().filter_map(|sample| sample.data).map(|point| point.x as u32).collect()
}

/// Takes until `count` samples came.
fn take(pair: &Pair<Point>, count: usize) -> Vec<u32> {
    let mut taken = Vec::new();
    until("all samples arrive", || {
        taken.extend(values(pair.reader.take().unwrap()));
        taken.len() >= count
    });
    taken
}

#[test]
fn a_flow_arrives_whole_and_in_order_and_its_end_is_not_left_behind() {
    let mut patient = QosSet::writer().keep_all();
    patient.reliability.max_blocking_time = HOUR;
    let pair = Pair::<Point>::new(patient, QosSet::reader().reliable().keep_all());
    for x in 0..20_000 {
        pair.writer.write(&point(x)).unwrap();
    }
    // Nothing tells the writer that this was the last.
    assert_eq!(take(&pair, 20_000), (0..20_000).collect::<Vec<_>>());
}

#[test]
fn a_listener_of_a_reader_that_keeps_one_sample_sees_all_of_a_batch() {
    struct Counter(AtomicU32);
    impl DataReaderListener for Counter {
        fn on_data_available(&self, reader: &AnyDataReader) {
            let reader = reader.downcast::<Point>().unwrap();
            for x in values(reader.take().unwrap()) {
                assert_eq!(self.0.swap(x + 1, Ordering::Relaxed), x, "in order, none left out");
            }
        }
    }
    let budget = |qos: QosSet| QosSet { latency_budget: HOUR, ..qos };
    let pair = Pair::<Point>::new(
        budget(QosSet::writer().keep_all()),
        budget(QosSet::reader().reliable().keep_last(1)),
    );
    let counter = Arc::new(Counter(AtomicU32::new(0)));
    let listener = Arc::clone(&counter);
    pair.reader.set_listener(Some(listener), StatusMask::NONE.with(StatusKind::DataAvailable));
    (0..50).for_each(|x| pair.writer.write(&point(x)).unwrap());
    pair.writer.flush().unwrap();
    until("the listener hears of all", || counter.0.load(Ordering::Relaxed) == 50);
}

#[test]
fn what_goes_to_several_processes_is_handed_over_and_told_once_a_datagram() {
    #[derive(Default)]
    struct Counter {
        samples: AtomicU32,
        calls: AtomicU32,
        /// Locks that the receive thread had taken when the last call ended, and before each call since the
        /// first.
        locks: AtomicU64,
        locks_before_calls: AtomicU64,
    }
    impl DataReaderListener for Counter {
        fn on_data_available(&self, reader: &AnyDataReader) {
            let before = plainsong::locks_taken() - self.locks.load(Ordering::Relaxed);
            let taken = values(reader.downcast::<Point>().unwrap().take().unwrap());
            if self.calls.fetch_add(1, Ordering::Relaxed) > 0 {
                self.locks_before_calls.fetch_add(before, Ordering::Relaxed);
            }
            self.locks.store(plainsong::locks_taken(), Ordering::Relaxed);
            self.samples.fetch_add(taken.len() as u32, Ordering::Relaxed);
        }
    }
    let domain = fresh_domain();
    // With settings of their own they share no sockets, as processes do not.
    let processes = [0, 1, 2].map(|number| {
        let config = Config { announce_period_ms: 1_000 + number, ..common::udp() };
        DomainParticipantFactory::with_config(config)
            .create_participant(domain, "process", QosSet::default())
            .unwrap()
    });
    let qos = QosSet { latency_budget: HOUR, ..QosSet::writer().keep_all() };
    let writer: DataWriter<Point> = writer(&processes[0], "Shared", qos);
    let readers = [1, 2].map(|number| {
        let qos = QosSet { latency_budget: HOUR, ..QosSet::reader().reliable().keep_all() };
        reader::<Point>(&processes[number], "Shared", qos)
    });
    let counters = readers.each_ref().map(|reader| {
        let counter = Arc::new(Counter::default());
        let listener = Arc::clone(&counter);
        reader.set_listener(Some(listener), StatusMask::NONE.with(StatusKind::DataAvailable));
        counter
    });
    until("all match", || writer.matched_subscriptions().unwrap().len() == 2);
    let mut written = 0;
    for count in [1, 50] {
        (written..written + count).for_each(|x| writer.write(&point(x)).unwrap());
        writer.flush().unwrap();
        written += count;
        for counter in &counters {
            until("the listener hears of all", || counter.samples.load(Ordering::Relaxed) == written);
        }
    }
    for counter in counters {
        let calls = counter.calls.load(Ordering::Relaxed);
        assert!(calls < 10, "{calls} calls for two datagrams");
        let locks = counter.locks_before_calls.load(Ordering::Relaxed);
        assert!(locks < 25, "{locks} locks to hand over 50 samples");
    }
}

#[test]
fn waiting_for_acknowledgments_sends_what_waits() {
    let budget = |qos: QosSet| QosSet { latency_budget: HOUR, ..qos };
    let pair = Pair::<Point>::new(budget(QosSet::writer()), budget(QosSet::reader().reliable()));
    pair.writer.write(&point(7)).unwrap();
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(take(&pair, 1), [7]);
}

#[test]
fn suspended_publications_leave_when_resumed() {
    let pair = Pair::<Point>::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
    let publisher = pair.writer.publisher();
    assert!(matches!(publisher.resume_publications(), Err(plainsong::Error::PreconditionNotMet(_))));
    publisher.suspend_publications();
    (0..3).for_each(|x| pair.writer.write(&point(x)).unwrap());
    publisher.resume_publications().unwrap();
    assert_eq!(take(&pair, 3), [0, 1, 2]);
}

/// Long enough that few fill a datagram.
fn blob(number: u32, octets: usize) -> Blob {
    Blob { number, octets: (0..octets).map(|at| (at / 7 + number as usize) as u8).collect() }
}

#[test]
fn a_flow_of_samples_that_are_cut_to_fill_datagrams_arrives_whole_and_in_order() {
    let pair = Pair::<Blob>::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
    let lengths = [16_384, 8_192, 30_000, 50_000, 4_096, 100, 70_000];
    let written = |number: u32| blob(number, lengths[number as usize / 500 % lengths.len()]);
    let mut next = 0;
    for number in 0..7_000 {
        pair.writer.write(&written(number)).unwrap();
        let came = pair.reader.take().unwrap();
        for came in came.into_iter().filter_map(|sample| sample.data) {
            assert!(came == written(next), "{next}");
            next += 1;
        }
    }
    until("all samples arrive", || {
        for came in pair.reader.take().unwrap().into_iter().filter_map(|sample| sample.data) {
            assert!(came == written(next), "{next}");
            next += 1;
        }
        next == 7_000
    });
}

#[test]
fn of_long_samples_that_share_a_datagram_each_is_told_before_the_next_is_taken_in() {
    #[derive(Default)]
    struct Counter(Mutex<Vec<usize>>);
    impl DataReaderListener for Counter {
        fn on_data_available(&self, reader: &AnyDataReader) {
            let reader = reader.downcast::<Blob>().unwrap();
            let came = reader.take().unwrap().len();
            self.0.lock().unwrap().push(came);
        }
    }
    for (octets, expected) in [(16_384, [1; 3].as_slice()), (1_000, &[3])] {
        let pair = Pair::<Blob>::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
        let counter = Arc::new(Counter::default());
        pair.reader.set_listener(Some(counter.clone()), StatusMask::NONE.with(StatusKind::DataAvailable));
        let publisher = pair.writer.publisher();
        publisher.suspend_publications();
        (0..3).for_each(|number| pair.writer.write(&blob(number, octets)).unwrap());
        publisher.resume_publications().unwrap();
        until("all are told", || counter.0.lock().unwrap().iter().sum::<usize>() == 3);
        assert_eq!(*counter.0.lock().unwrap(), expected, "{octets} octets");
    }
}

#[test]
fn a_writer_that_is_deleted_sends_what_waits() {
    let budget = |qos: QosSet| QosSet { latency_budget: HOUR, ..qos };
    let Pair { reader, participants, .. } =
        Pair::<Point>::new(budget(QosSet::writer()), budget(QosSet::reader().reliable()));
    // News of the deletion travels beside the sample and may come first: then the reader does not want it any
    // more. It cannot be so every time.
    let arrives = || {
        let writer = writer::<Point>(&participants[0], "Pair", budget(QosSet::writer()));
        until("they match", || {
            reader.matched_publications().unwrap().contains(&writer.instance_handle())
                && !writer.matched_subscriptions().unwrap().is_empty()
        });
        writer.write(&point(9)).unwrap();
        drop(writer);
        let samples = reader.wait_take(Duration::from_millis(500)).unwrap_or_default();
        values(samples) == [9]
    };
    assert!((0..20).any(|_| arrives()));
}
