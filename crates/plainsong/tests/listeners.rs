//! Callbacks of writers and readers, each with the values of its status, and each once (DCPS 1.4 §2.2.4.2.3).
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::{Arc, Condvar, Mutex};

use common::{Blob, PATIENCE, Pair, Point, fresh_domain, participant, until};
use plainsong::prelude::*;
use plainsong::qos::{Liveliness, LivelinessKind};
use plainsong::status::{
    CountStatus, DeadlineMissedStatus, LivelinessChangedStatus, RejectReason, SampleRejectedStatus,
};

/// Notes every status it is told.
#[derive(Default)]
struct Notes {
    liveliness_lost: Mutex<Vec<CountStatus>>,
    liveliness_changed: Mutex<Vec<LivelinessChangedStatus>>,
    deadline_missed: Mutex<Vec<DeadlineMissedStatus>>,
    rejected: Mutex<Vec<SampleRejectedStatus>>,
    lost: Mutex<Vec<CountStatus>>,
    /// Closed, it holds whoever tells of data.
    gate: Gate,
}

#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn close(&self) {
        *self.closed.lock().unwrap() = true;
    }

    fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.opened.notify_all();
    }

    fn pass(&self) {
        drop(self.opened.wait_while(self.closed.lock().unwrap(), |closed| *closed).unwrap());
    }
}

impl DataWriterListener for Notes {
    fn on_liveliness_lost(&self, _: &AnyDataWriter, status: &CountStatus) {
        self.liveliness_lost.lock().unwrap().push(*status);
    }
    fn on_offered_deadline_missed(&self, _: &AnyDataWriter, status: &DeadlineMissedStatus) {
        self.deadline_missed.lock().unwrap().push(*status);
    }
}

impl DataReaderListener for Notes {
    fn on_data_available(&self, _: &AnyDataReader) {
        self.gate.pass();
    }
    fn on_liveliness_changed(&self, _: &AnyDataReader, status: &LivelinessChangedStatus) {
        self.liveliness_changed.lock().unwrap().push(*status);
    }
    fn on_requested_deadline_missed(&self, _: &AnyDataReader, status: &DeadlineMissedStatus) {
        self.deadline_missed.lock().unwrap().push(*status);
    }
    fn on_sample_rejected(&self, _: &AnyDataReader, status: &SampleRejectedStatus) {
        self.rejected.lock().unwrap().push(*status);
    }
    fn on_sample_lost(&self, _: &AnyDataReader, status: &CountStatus) {
        self.lost.lock().unwrap().push(*status);
    }
}

const ONCE: CountStatus = CountStatus { total_count: 1, total_count_change: 1 };

#[test]
fn liveliness_lost_is_told_once_to_the_writer_and_each_change_to_the_reader() {
    let lease_duration = Duration::from_millis(300);
    let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration };
    let domain = fresh_domain();
    let participants = [participant(domain), participant(domain)];
    let (told, heard) = (Arc::new(Notes::default()), Arc::new(Notes::default()));
    let subscriber = participants[1].create_subscriber(QosSet::default()).unwrap();
    subscriber.set_listener(Some(heard.clone()), StatusMask::NONE.with(StatusKind::LivelinessChanged));
    let topic = participants[1].create_topic::<Point>("Lease", QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&topic, QosSet::reader().reliable()).unwrap();
    let publisher = participants[0].create_publisher(QosSet::default()).unwrap();
    publisher.set_listener(Some(told.clone()), StatusMask::NONE.with(StatusKind::LivelinessLost));
    let topic = participants[0].create_topic::<Point>("Lease", QosSet::default()).unwrap();
    let writer = publisher.create_writer(&topic, QosSet { liveliness, ..QosSet::writer() }).unwrap();
    until("the reader is told of both changes", || heard.liveliness_changed.lock().unwrap().len() == 2);
    until("the writer is told", || !told.liveliness_lost.lock().unwrap().is_empty());
    let change = |alive: [i32; 2], not_alive: [i32; 2]| LivelinessChangedStatus {
        alive_count: alive[0],
        alive_count_change: alive[1],
        not_alive_count: not_alive[0],
        not_alive_count_change: not_alive[1],
        last_publication: writer.instance_handle(),
    };
    let (came, fell_silent) = (change([1, 1], [0, 0]), change([0, -1], [1, 1]));
    assert_eq!(*heard.liveliness_changed.lock().unwrap(), [came, fell_silent]);
    assert_eq!(*told.liveliness_lost.lock().unwrap(), [ONCE]);
    let (writer_changes, reader_changes) = (writer.status_changes(), reader.status_changes());
    assert!(!writer_changes.contains(StatusKind::LivelinessLost), "a listener that was told consumed it");
    assert!(!reader_changes.contains(StatusKind::LivelinessChanged), "a listener that was told consumed it");
    // Silent for many leases more, it has still lost its liveliness once; then it leaves.
    std::thread::sleep(std::time::Duration::from_millis(900));
    publisher.delete_writer(&writer.as_any()).unwrap();
    until("the reader is told that it left", || heard.liveliness_changed.lock().unwrap().len() == 3);
    assert_eq!(heard.liveliness_changed.lock().unwrap()[2], change([0, 0], [0, -1]));
    assert_eq!(*told.liveliness_lost.lock().unwrap(), [ONCE]);
}

#[test]
fn each_missed_deadline_is_told_once_on_both_sides() {
    let deadline = Duration::from_millis(100);
    let pair = Pair::<Point>::new(
        QosSet { deadline, ..QosSet::writer() },
        QosSet { deadline, ..QosSet::reader().reliable() },
    );
    let (offered, requested) = (Arc::new(Notes::default()), Arc::new(Notes::default()));
    let mask = StatusMask::NONE.with(StatusKind::OfferedDeadlineMissed);
    pair.writer.set_listener(Some(offered.clone()), mask);
    let mask = StatusMask::NONE.with(StatusKind::RequestedDeadlineMissed);
    pair.reader.set_listener(Some(requested.clone()), mask);
    let point = Point { id: 4, ..Point::default() };
    pair.writer.write(&point).unwrap();
    let last_instance = pair.writer.lookup_instance(&point).unwrap().unwrap();
    for notes in [&offered, &requested] {
        until("three were missed", || notes.deadline_missed.lock().unwrap().len() >= 3);
    }
    // Nothing is due of an instance that nobody writes any more.
    pair.writer.unregister_instance(&point).unwrap();
    until("the reader sees it end", || {
        let samples = pair.reader.read().unwrap();
        samples.iter().any(|sample| sample.info.instance_state != InstanceState::Alive)
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    for notes in [offered, requested] {
        for (status, total_count) in notes.deadline_missed.lock().unwrap().iter().zip(1..) {
            let count = CountStatus { total_count, total_count_change: 1 };
            assert_eq!(*status, DeadlineMissedStatus { count, last_instance });
        }
    }
    let (writer, reader) = (pair.writer.status_changes(), pair.reader.status_changes());
    assert!(!writer.contains(StatusKind::OfferedDeadlineMissed), "a listener that was told consumed it");
    assert!(!reader.contains(StatusKind::RequestedDeadlineMissed), "a listener that was told consumed it");
}

#[test]
fn a_rejected_sample_is_told_once_although_it_is_sent_again() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.resource_limits.max_samples = 1;
    let pair = Pair::<Point>::new(QosSet::writer().keep_all(), qos);
    let notes = Arc::new(Notes::default());
    pair.reader.set_listener(Some(notes.clone()), StatusMask::NONE.with(StatusKind::SampleRejected));
    for id in 0..2 {
        pair.writer.write(&Point { id, ..Point::default() }).unwrap();
    }
    until("the second is rejected", || !notes.rejected.lock().unwrap().is_empty());
    assert!(pair.writer.wait_for_acknowledgments(std::time::Duration::from_millis(300)).is_err());
    let second = pair.writer.lookup_instance(&Point { id: 1, ..Point::default() }).unwrap().unwrap();
    let status =
        SampleRejectedStatus { count: ONCE, last_reason: RejectReason::SamplesLimit, last_instance: second };
    assert_eq!(*notes.rejected.lock().unwrap(), [status]);
    assert_eq!(pair.reader.take().unwrap().len(), 1);
    assert_eq!(pair.reader.wait_take(PATIENCE).unwrap().len(), 1, "room lets it in");
    assert_eq!(notes.rejected.lock().unwrap().len(), 1);
}

/// Where the thread that writes receives, it leaves to the receive thread what comes after what a listener is
/// to hear of.
#[test]
fn a_listener_hears_of_each_sample_before_the_next_replaces_it() {
    #[derive(Default)]
    struct Numbers(Mutex<Vec<u32>>);
    impl DataReaderListener for Numbers {
        fn on_data_available(&self, reader: &AnyDataReader) {
            let taken = reader.downcast::<Blob>().unwrap().take().unwrap();
            self.0.lock().unwrap().extend(taken.into_iter().map(|it| it.data.unwrap().number));
        }
    }
    let pair = Pair::<Blob>::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_last(1));
    let numbers = Arc::new(Numbers::default());
    pair.reader.set_listener(Some(numbers.clone()), StatusMask::NONE.with(StatusKind::DataAvailable));
    let heard = || numbers.0.lock().unwrap().len();
    let mut written = 0;
    // A writer tries anew after 256 samples whether a listener hears of them.
    while written < 1_200 {
        for _ in 0..3 {
            pair.writer.write(&Blob { number: written, octets: Vec::new() }).unwrap();
            written += 1;
        }
        until("the listener has heard of the last", || heard() >= written as usize);
    }
    assert_eq!(*numbers.0.lock().unwrap(), (0..written).collect::<Vec<_>>());
}

/// A listener that does not return keeps the receive thread, so the socket's buffer overflows for real.
#[test]
fn samples_that_the_host_dropped_are_told_as_lost_in_one_callback() {
    let best_effort = QosSet::writer().best_effort();
    let pair = Pair::<Blob>::with(&common::udp(), best_effort, QosSet::reader().keep_all());
    let notes = Arc::new(Notes::default());
    let mask = StatusMask::NONE.with(StatusKind::SampleLost).with(StatusKind::DataAvailable);
    pair.reader.set_listener(Some(notes.clone()), mask);
    let mut written = 0;
    let mut write = || {
        pair.writer.write(&Blob { number: written, octets: vec![0; 60_000] }).unwrap();
        written += 1;
    };
    notes.gate.close();
    // More than any buffer that a host gives to one socket by default.
    (0..1_000).for_each(|_| write());
    notes.gate.open();
    until("one is written that is not lost", || {
        write();
        !notes.lost.lock().unwrap().is_empty()
    });
    pair.writer.flush().unwrap();
    let mut received = 0;
    until("the last has come", || {
        let samples = pair.reader.take().unwrap();
        received += samples.len();
        samples.last().is_some_and(|last| last.data.as_ref().unwrap().number + 1 == written)
    });
    let status = notes.lost.lock().unwrap()[0];
    assert_eq!(*notes.lost.lock().unwrap(), [status], "what is missing in one place is told once");
    assert_eq!(status.total_count, status.total_count_change);
    assert_eq!(status.total_count as usize + received, written as usize);
}
