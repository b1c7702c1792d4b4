//! A process that ends takes leave, whatever handles are left, and one that is killed is missed: nobody waits
//! for the leases of their participants.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use plainsong::prelude::*;
use plainsong::time;

/// How a process with a reader ends, and in which domain; in the environment of that process.
const ENDING: &str = "PLAINSONG_TEST_ENDING";

/// Takes one sample and never returns.
struct Stuck(std::sync::mpsc::SyncSender<()>);

impl DataReaderListener for Stuck {
    fn on_data_available(&self, _reader: &AnyDataReader) {
        let _ = self.0.try_send(());
        loop {
            std::thread::park();
        }
    }
}

/// A process that runs the test of that name, in which it finds how to end.
fn process(test: &str, domain: u16, ending: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ENDING, format!("{domain} {ending}"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// In such a process: has a reader of which a listener never returns, and ends.
fn end_as_told() -> bool {
    let Ok(told) = std::env::var(ENDING) else { return false };
    let (domain, ending) = told.split_once(' ').unwrap();
    let participant = participant(domain.parse().unwrap());
    let (called, calls) = std::sync::mpsc::sync_channel(1);
    let reader = reader::<Blob>(&participant, "Leaving", QosSet::reader().reliable().keep_all());
    reader.set_listener(Some(Arc::new(Stuck(called))), StatusMask::ALL);
    calls.recv_timeout(PATIENCE).unwrap();
    match ending {
        "exit" => std::process::exit(0),
        "killed" => loop {
            std::thread::park();
        },
        _ => drop((reader, participant)),
    }
    true
}

/// How long a writer that waits for room does so once the process of its only reader has ended.
fn time_until_a_blocked_writer_goes_on(test: &str, ending: &str) -> Duration {
    let mut qos = QosSet::writer().keep_all();
    qos.reliability.max_blocking_time = time::Duration::from_secs(60);
    qos.resource_limits.max_samples = 2;
    let domain = fresh_domain();
    let participant = participant(domain);
    let writer = writer::<Blob>(&participant, "Leaving", qos);
    let mut child = process(test, domain, ending);
    until("the writer matches", || !writer.matched_subscriptions().unwrap().is_empty());
    let blocked = std::thread::spawn(move || {
        (0..10).for_each(|_| writer.write(&Blob::default()).unwrap());
    });
    if ending == "killed" {
        child.kill().unwrap();
    }
    child.wait().unwrap();
    let ended = Instant::now();
    blocked.join().unwrap();
    ended.elapsed()
}

#[test]
fn a_process_that_ends_while_a_listener_runs_takes_leave() {
    if end_as_told() {
        return;
    }
    let name = "a_process_that_ends_while_a_listener_runs_takes_leave";
    let waited = time_until_a_blocked_writer_goes_on(name, "return");
    // Its lease lasts for 20 s.
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}

#[test]
fn a_process_that_exits_with_all_its_handles_takes_leave() {
    if end_as_told() {
        return;
    }
    let name = "a_process_that_exits_with_all_its_handles_takes_leave";
    let waited = time_until_a_blocked_writer_goes_on(name, "exit");
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}

/// On which threads it hears that readers come and go.
struct Hearing(std::sync::mpsc::Sender<(i32, String)>);

impl DataWriterListener for Hearing {
    fn on_publication_matched(&self, _: &AnyDataWriter, status: &MatchedStatus) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        let _ = self.0.send((status.current_count, thread));
    }
}

/// Who serves links must not wait in a listener: what comes by them is announced there.
#[test]
#[cfg(target_os = "linux")]
fn that_a_process_is_gone_is_not_told_on_the_thread_that_serves_links() {
    if end_as_told() {
        return;
    }
    let domain = fresh_domain();
    let participant = participant(domain);
    let writer = writer::<Blob>(&participant, "Leaving", QosSet::writer().keep_all());
    let (hear, heard) = std::sync::mpsc::channel();
    writer.set_listener(Some(Arc::new(Hearing(hear))), StatusMask::NONE.with(StatusKind::PublicationMatched));
    let name = "that_a_process_is_gone_is_not_told_on_the_thread_that_serves_links";
    let mut child = process(name, domain, "killed");
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap().0, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let (count, thread) = heard.recv_timeout(PATIENCE).unwrap();
    assert!(count == 0 && !thread.starts_with("memory-"), "{count} on {thread}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_is_killed_holds_up_a_blocked_writer_for_a_moment_only() {
    if end_as_told() {
        return;
    }
    let name = "a_process_that_is_killed_holds_up_a_blocked_writer_for_a_moment_only";
    let waited = time_until_a_blocked_writer_goes_on(name, "killed");
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}
