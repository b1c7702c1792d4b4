//! Listeners that wait: the thread that called them goes on receiving and sending, and calls no other
//! meanwhile.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use common::*;
use plainsong::prelude::*;
use plainsong::status::{DeadlineMissedStatus, MatchedStatus};

fn blob(number: u32) -> Blob {
    Blob { number, octets: Vec::new() }
}

/// KEEP_ALL with room for one sample: each but the first waits for the acknowledgement of the one before.
fn narrow() -> QosSet {
    let mut qos = QosSet::writer().keep_all();
    qos.resource_limits.max_samples = 1;
    qos.reliability.max_blocking_time = Duration::from_secs(20);
    qos
}

/// Sends each sample on, several times.
struct Echo {
    writer: DataWriter<Blob>,
    results: Mutex<Sender<plainsong::Result<()>>>,
}

impl Echo {
    const TIMES: u32 = 20;
}

impl DataReaderListener for Echo {
    fn on_data_available(&self, reader: &AnyDataReader) {
        for sample in reader.downcast::<Blob>().unwrap().take().unwrap() {
            let number = sample.data.unwrap().number;
            let result = (0..Self::TIMES)
                .try_for_each(|_| self.writer.write(&blob(number)))
                .and_then(|()| self.writer.wait_for_acknowledgments(PATIENCE));
            self.results.lock().unwrap().send(result).unwrap();
        }
    }
}

#[test]
fn a_listener_writes_into_a_full_history_and_waits_for_acknowledgements() {
    const SAMPLES: u32 = 10;
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let input = writer::<Blob>(&there, "Input", QosSet::writer().keep_all());
    let output = reader::<Blob>(&there, "Output", QosSet::reader().reliable().keep_all());
    let writer = writer::<Blob>(&here, "Output", narrow());
    until("the reader is there", || !writer.matched_subscriptions().unwrap().is_empty());
    let (results, done) = channel();
    let echo = Echo { writer, results: Mutex::new(results) };
    let reader = reader::<Blob>(&here, "Input", QosSet::reader().reliable().keep_all());
    reader.set_listener(Some(Arc::new(echo)), StatusMask::NONE.with(StatusKind::DataAvailable));
    until("the listener's reader is there", || !input.matched_subscriptions().unwrap().is_empty());
    let mut arrived = Vec::new();
    for number in 0..SAMPLES {
        input.write(&blob(number)).unwrap();
    }
    let wanted: Vec<u32> = (0..SAMPLES).flat_map(|number| [number; Echo::TIMES as usize]).collect();
    while arrived.len() < wanted.len() {
        let samples = output.wait_take(PATIENCE).unwrap();
        arrived.extend(samples.into_iter().map(|sample| sample.data.unwrap().number));
    }
    (0..SAMPLES).for_each(|_| done.recv_timeout(PATIENCE).unwrap().unwrap());
    assert_eq!(arrived, wanted);
}

/// Waits until the one reader of its writer has taken what it has to before it can acknowledge more.
struct Waits {
    writer: DataWriter<Blob>,
    is_inside: AtomicBool,
    thread: Mutex<Option<ThreadId>>,
    entered: Mutex<Sender<()>>,
}

impl DataReaderListener for Waits {
    fn on_data_available(&self, _: &AnyDataReader) {
        *self.thread.lock().unwrap() = Some(std::thread::current().id());
        self.is_inside.store(true, Ordering::SeqCst);
        (0..2).for_each(|number| self.writer.write(&blob(number)).unwrap());
        self.entered.lock().unwrap().send(()).unwrap();
        self.writer.wait_for_acknowledgments(PATIENCE).unwrap();
        self.is_inside.store(false, Ordering::SeqCst);
    }
}

/// Notes whether the other listener was in the middle of something, on the same thread, when this one was
/// called.
struct Other {
    first: Arc<Waits>,
    calls: AtomicU32,
    within: AtomicBool,
}

impl DataReaderListener for Other {
    fn on_data_available(&self, _: &AnyDataReader) {
        let same = *self.first.thread.lock().unwrap() == Some(std::thread::current().id());
        if same && self.first.is_inside.load(Ordering::SeqCst) {
            self.within.store(true, Ordering::SeqCst);
        }
        self.calls.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn what_comes_while_a_listener_waits_is_there_at_once_and_told_when_it_returns() {
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let data = StatusMask::NONE.with(StatusKind::DataAvailable);
    let reliable = || QosSet::reader().reliable().keep_all();
    // Takes in one sample, and acknowledges no second one before that is taken.
    let mut limited = reliable();
    limited.resource_limits.max_samples = 1;
    let full = reader::<Blob>(&there, "Full", limited);
    let blocked = writer::<Blob>(&here, "Full", QosSet::writer().keep_all());
    until("the reader is there", || !blocked.matched_subscriptions().unwrap().is_empty());
    let (entered, inside) = channel();
    let first = Arc::new(Waits {
        writer: blocked,
        is_inside: AtomicBool::new(false),
        thread: Mutex::default(),
        entered: Mutex::new(entered),
    });
    let other = Arc::new(Other {
        first: Arc::clone(&first),
        calls: AtomicU32::new(0),
        within: AtomicBool::new(false),
    });
    let topics = ["First", "Told", "Taken"];
    let [trigger, told, taken] = topics.map(|topic| reader::<Blob>(&here, topic, reliable()));
    trigger.set_listener(Some(first.clone()), data);
    told.set_listener(Some(other.clone()), data);
    let [to_trigger, to_told, to_taken] =
        topics.map(|topic| writer::<Blob>(&there, topic, QosSet::writer().keep_all()));
    for writer in [&to_trigger, &to_told, &to_taken] {
        until("a reader is there", || !writer.matched_subscriptions().unwrap().is_empty());
    }
    to_trigger.write(&blob(0)).unwrap();
    inside.recv_timeout(PATIENCE).unwrap();
    // The listener returns only after that, and yet all this comes, is taken and acknowledged.
    (0..100).for_each(|number| to_told.write(&blob(number)).unwrap());
    to_told.wait_for_acknowledgments(PATIENCE).unwrap();
    to_taken.write(&blob(7)).unwrap();
    assert_eq!(taken.wait_take(PATIENCE).unwrap()[0].data.as_ref().unwrap().number, 7);
    assert_eq!(told.read().unwrap().len(), 100);
    assert!(first.is_inside.load(Ordering::SeqCst));
    let mut received = 0;
    while received < 2 {
        received += full.wait_take(PATIENCE).unwrap().len();
    }
    until("the listener returns", || !first.is_inside.load(Ordering::SeqCst));
    until("the other one is called", || other.calls.load(Ordering::SeqCst) > 0);
    assert!(!other.within.load(Ordering::SeqCst), "one is called within the other");
}

/// Waits for a status of an entity, told of another one: does it come?
struct AwaitsStatus {
    waiting: Condition,
    results: Mutex<Sender<bool>>,
    is_first: AtomicBool,
    entered: Mutex<Sender<()>>,
}

impl AwaitsStatus {
    fn new(waiting: Condition) -> (Arc<Self>, Receiver<()>, Receiver<bool>) {
        let ((entered, inside), (results, done)) = (channel(), channel());
        let (results, entered) = (Mutex::new(results), Mutex::new(entered));
        (Arc::new(Self { waiting, results, is_first: AtomicBool::new(true), entered }), inside, done)
    }

    fn wait(&self) {
        if self.is_first.swap(false, Ordering::SeqCst) {
            let waiting = WaitSet::new();
            waiting.attach(self.waiting.clone());
            self.entered.lock().unwrap().send(()).unwrap();
            self.results.lock().unwrap().send(waiting.wait(PATIENCE).is_ok()).unwrap();
        }
    }
}

impl DataWriterListener for AwaitsStatus {
    fn on_publication_matched(&self, _: &AnyDataWriter, _: &MatchedStatus) {
        self.wait();
    }

    fn on_offered_deadline_missed(&self, _: &AnyDataWriter, _: &DeadlineMissedStatus) {
        self.wait();
    }
}

#[test]
fn a_listener_that_waits_on_the_thread_of_discovery_does_not_stop_discovery() {
    let domain = fresh_domain();
    let here = participant(domain);
    // Participants with other settings share no threads, and hear of each other by the wire.
    let config = Config { announce_period_ms: 500, ..loopback() };
    let there = DomainParticipantFactory::with_config(config)
        .create_participant(domain, "there", QosSet::default())
        .unwrap();
    let [first, second] = ["A", "B"].map(|topic| writer::<Blob>(&here, topic, QosSet::writer()));
    let matched = StatusMask::NONE.with(StatusKind::PublicationMatched);
    let (listener, inside, done) = AwaitsStatus::new(second.status_condition(matched));
    first.set_listener(Some(listener), matched);
    let _first = reader::<Blob>(&there, "A", QosSet::reader());
    inside.recv_timeout(PATIENCE).unwrap();
    let _second = reader::<Blob>(&there, "B", QosSet::reader());
    assert!(done.recv_timeout(2 * PATIENCE).unwrap(), "the second reader was not discovered");
}

#[test]
fn a_listener_that_waits_on_the_timers_thread_does_not_stop_timers() {
    let alone = participant(fresh_domain());
    let missed = StatusMask::NONE.with(StatusKind::OfferedDeadlineMissed);
    let [first, second] = [20, 60].map(|deadline_ms| {
        let deadline = Duration::from_millis(deadline_ms);
        let writer =
            writer::<Blob>(&alone, &format!("{deadline_ms}"), QosSet { deadline, ..QosSet::writer() });
        writer.write(&blob(0)).unwrap();
        writer
    });
    let condition = second.status_condition(missed);
    let (listener, _inside, done) = AwaitsStatus::new(condition.clone());
    first.set_listener(Some(listener), missed);
    assert!(done.recv_timeout(2 * PATIENCE).unwrap(), "the second deadline was never missed");
}
