//! What who writes to an ATOMIC topic is told when its group takes nothing: why, and what to do.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};

use common::{PATIENCE, Point, fresh_domain, loopback, participant, participant_with, reader, until, writer};
use plainsong::atomic::{AtomicEvent, AtomicGroup};
use plainsong::prelude::*;
use plainsong::qos::HistoryKind;
use plainsong::replicated::{Replicated, StateMachine};
use plainsong::{Error, WaitedFor};

const VOTERS: [&str; 3] = ["a", "b", "c"];
const MOMENT: Duration = Duration::from_millis(20);

/// As applications have it: `max_blocking_time` is what it is by default.
fn atomic(qos: QosSet) -> QosSet {
    let mut qos = qos.reliable().consistency(ConsistencyKind::Atomic).durability(Durability::TransientLocal);
    qos.history.kind = HistoryKind::KeepAll;
    qos
}

fn point(x: i32) -> Point {
    Point { x: x.into(), ..Point::default() }
}

fn group(participant: &DomainParticipant) -> AtomicGroup {
    participant.atomic_groups().remove(0)
}

fn briefly() -> WriteOptions {
    WriteOptions::new().max_blocking_time(MOMENT)
}

/// What a write is told that does not wait, and one that waits for a moment.
fn told(writer: &DataWriter<Point>) -> [String; 2] {
    let unready = writer.try_write(&point(0)).unwrap_err();
    assert!(matches!(unready, Error::GroupUnready { .. }), "{unready}");
    let waited = writer.write_with(&point(0), &briefly()).unwrap_err();
    assert!(matches!(waited, Error::Timeout { waited_for: WaitedFor::Group, .. }), "{waited}");
    [unready.to_string(), waited.to_string()]
}

#[test]
fn who_writes_at_once_waits_until_it_is_a_member() {
    let member = participant(fresh_domain());
    let writer: DataWriter<Point> = writer(&member, "Plan", atomic(QosSet::writer()));
    for told in told(&writer) {
        assert!(told.contains("is joining the group"), "{told}");
        assert!(told.contains("max_blocking_time"), "{told}");
    }
    writer.write(&point(1)).unwrap();
    let reader: DataReader<Point> = reader(&member, "Plan", atomic(QosSet::reader()));
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(reader.wait_take(PATIENCE).unwrap().len(), 1);
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_task_that_writes_at_once_is_woken_when_it_is_a_member() {
    let member = participant(fresh_domain());
    let writer: DataWriter<Point> = writer(&member, "Plan", atomic(QosSet::writer()));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let sample = point(1);
    let mut writing = pin!(writer.write_async(&sample));
    let end = std::time::Instant::now() + PATIENCE;
    while writing.as_mut().poll(&mut context).map(Result::unwrap).is_pending() {
        thread::park_timeout(end.saturating_duration_since(std::time::Instant::now()));
        assert!(std::time::Instant::now() < end, "nobody woke it");
    }
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
}

/// Writes when something comes, and says what became of it.
struct Echo {
    writer: DataWriter<Point>,
    result: Mutex<Sender<plainsong::Result<()>>>,
}

impl DataReaderListener for Echo {
    fn on_data_available(&self, _: &AnyDataReader) {
        let written = self.writer.write(&point(1));
        let result = written.and_then(|()| self.writer.wait_for_acknowledgments(PATIENCE));
        self.result.lock().unwrap().send(result).unwrap();
    }
}

#[test]
fn a_listener_may_write_before_its_participant_is_a_member() {
    let domain = fresh_domain();
    let (near, far) = (participant(domain), participant(domain));
    let trigger: DataWriter<Point> = writer(&near, "Trigger", QosSet::writer());
    let triggered: DataReader<Point> = reader(&far, "Trigger", QosSet::reader().reliable());
    until("they match", || !trigger.matched_subscriptions().unwrap().is_empty());
    let all: DataReader<Point> = reader(&near, "Plan", atomic(QosSet::reader()));
    all.sync(PATIENCE).unwrap();
    let (result, results) = channel();
    // The thread that calls the listener is the one by which the group of its writer is heard.
    let writer = writer(&far, "Plan", atomic(QosSet::writer()));
    let echo = Arc::new(Echo { writer, result: Mutex::new(result) });
    triggered.set_listener(Some(echo), StatusMask::NONE.with(StatusKind::DataAvailable));
    trigger.write(&point(0)).unwrap();
    results.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(all.wait_take(PATIENCE).unwrap().len(), 1);
}

/// A directory for the states of a test, which goes with this.
struct States(PathBuf);

impl States {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plainsong-suspended-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn config(&self, voter: &str) -> Config {
        Config {
            voters: VOTERS.map(ToOwned::to_owned).to_vec(),
            voter: Some(voter.to_owned()),
            state_directory: Some(self.0.join(voter)),
            ..loopback()
        }
    }
}

impl Drop for States {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Of so many that were added.
#[derive(Clone, Copy, Debug, Default, DdsType)]
struct Sum {
    value: u32,
}

impl StateMachine for Sum {
    type Command = Self;
    type Response = u32;
    type Snapshot = Self;

    fn apply(&mut self, command: Self) -> u32 {
        self.value += command.value;
        self.value
    }

    fn snapshot(&self) -> Self {
        *self
    }

    fn restore(snapshot: Self) -> Self {
        snapshot
    }
}

#[test]
fn who_cannot_join_is_told_which_voters_are_missing() {
    let states = States::new("missing");
    let member = participant_with(fresh_domain(), states.config("a"));
    let writer: DataWriter<Point> = writer(&member, "Plan", atomic(QosSet::writer()));
    for told in told(&writer) {
        assert!(told.contains("no majority of the voters (heard 1 of 3: a; missing b, c)"), "{told}");
        assert!(told.contains("start those that are missing"), "{told}");
    }
    let refused = writer.sync(MOMENT).unwrap_err().to_string();
    assert!(refused.contains("(heard 1 of 3: a; missing b, c)"), "{refused}");
    let sum = Replicated::<Sum>::open(&member, "Sum").unwrap();
    let refused = sum.propose(&Sum { value: 1 }, MOMENT).unwrap_err().to_string();
    assert!(refused.contains("(heard 1 of 3: a; missing b, c)"), "{refused}");
}

#[test]
fn members_of_which_nobody_votes_by_name_are_told_how_to() {
    let voters = VOTERS.map(String::from).to_vec();
    let member = participant_with(fresh_domain(), Config { voters, ..loopback() });
    let writer: DataWriter<Point> = writer(&member, "Plan", atomic(QosSet::writer()));
    for told in told(&writer) {
        assert!(
            told.contains("no participant is known that votes as a, b, c; set PLAINSONG_VOTER to"),
            "{told}"
        );
        assert!(told.contains("PLAINSONG_STATE_DIRECTORY") && told.contains("plainsong witness"), "{told}");
    }
}

/// In the environment of a process of a test: as which voter it is a member, its domain, and the states.
const VOTER: &str = "PLAINSONG_TEST_VOTER";
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";
const STATES: &str = "PLAINSONG_TEST_STATES";

/// Another process, killed with this.
struct Process(Child);

impl Process {
    fn start(test: &str, voter: &str, domain: u16, states: &Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(VOTER, voter)
            .env(DOMAIN, domain.to_string())
            .env(STATES, states)
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// In such a process: a member until it is killed.
    fn run(voter: &str) {
        let domain = std::env::var(DOMAIN).unwrap().parse().unwrap();
        // The directory belongs to the test, and stays.
        let states = std::mem::ManuallyDrop::new(States(PathBuf::from(std::env::var(STATES).unwrap())));
        let member = participant_with(domain, states.config(voter));
        let _reader: DataReader<Point> = reader(&member, "Plan", atomic(QosSet::reader()));
        loop {
            thread::park();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_group_without_most_of_its_voters_is_suspended_until_they_are_back() {
    const TEST: &str = "a_group_without_most_of_its_voters_is_suspended_until_they_are_back";
    if let Ok(voter) = std::env::var(VOTER) {
        return Process::run(&voter);
    }
    let (states, domain) = (States::new("back"), fresh_domain());
    let home = participant_with(domain, states.config("a"));
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&events);
    home.on_atomic_event(move |_, event| heard.lock().unwrap().push(event));
    let writer: DataWriter<Point> = writer(&home, "Plan", atomic(QosSet::writer()));
    let start = |voter| Process::start(TEST, voter, domain, &states.0);
    let others = ["b", "c"].map(start);
    until("there are three", || group(&home).members.len() == 3);
    writer.write(&point(1)).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();

    drop(others);
    let has = |event| events.lock().unwrap().contains(&event);
    until("it is told", || has(AtomicEvent::Suspended));
    let suspended = "suspended: no majority of the voters (heard 1 of 3: a; missing b, c)";
    for told in told(&writer) {
        assert!(told.contains(suspended), "{told}");
    }
    let refused = writer.sync(MOMENT).unwrap_err().to_string();
    assert!(refused.contains(suspended), "{refused}");
    let shown = group(&home);
    assert!(shown.is_suspended && shown.counts.suspended == 1, "{shown}");
    assert!(shown.to_string().contains(suspended), "{shown}");

    let _back = ["b", "c"].map(start);
    until("it goes on", || !group(&home).is_suspended && group(&home).members.len() == 3);
    writer.write(&point(2)).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let position = group(&home).position;
    assert_eq!(position, 2);
}
