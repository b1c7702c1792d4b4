//! A process that is stopped for longer than a writer waits, while its lease lasts.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![cfg(target_os = "linux")]

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{PATIENCE, Point, fresh_domain, loopback, participant, reader, until, writer};
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::proto::time;

/// In the environment of a process with a reader: its domain.
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";
const TEST: &str = "a_stopped_reader_with_a_long_lease_stops_no_writer_and_is_told_of";

/// A process with a reader, which ends when its standard input does.
struct Elsewhere(Child);

impl Elsewhere {
    fn new(domain: u16) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(DOMAIN, domain.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// In such a process.
    fn read(domain: &str) {
        let participant = participant(domain.parse().unwrap());
        let _reader = reader::<Point>(&participant, "Out", QosSet::reader().reliable().keep_last(1));
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.0.id().to_string()]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.signal("-CONT");
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_stopped_reader_with_a_long_lease_stops_no_writer_and_is_told_of() {
    if let Ok(domain) = std::env::var(DOMAIN) {
        return Elsewhere::read(&domain);
    }
    let domain = fresh_domain();
    let config = Config { silence_max_ms: 500, ..loopback() };
    let home = DomainParticipantFactory::with_config(config)
        .create_participant(domain, "home", QosSet::default())
        .unwrap();
    let mut qos = QosSet::writer().keep_all();
    qos.resource_limits.max_samples = 4;
    qos.reliability.max_blocking_time = time::Duration::from_millis(20);
    let writer = writer::<Point>(&home, "Out", qos);
    let stopped = Elsewhere::new(domain);
    until("the reader matches", || writer.matched_subscriptions().unwrap().len() == 1);
    writer.write(&Point::default()).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert!(writer.readers_behind().unwrap().is_empty());

    stopped.signal("-STOP");
    let refused = (0..20).find_map(|_| writer.write(&Point::default()).err()).unwrap();
    assert!(matches!(refused, Error::Timeout { .. }), "{refused}");
    let reader = writer.matched_subscriptions().unwrap()[0];
    assert!(
        refused.to_string().contains(&format!("for reader {reader}, which is 4 samples behind")),
        "{refused}"
    );
    until("it is waited for no more", || writer.write(&Point::default()).is_ok());
    for _ in 0..100 {
        writer.write(&Point::default()).unwrap();
    }
    assert_eq!(writer.matched_subscriptions().unwrap(), [reader], "its lease lasts");
    writer.wait_for_acknowledgments(Duration::MAX).unwrap();
    let behind = writer.readers_behind().unwrap();
    assert!(behind.len() == 1 && behind[0].is_left_out && behind[0].silent_for.is_some(), "{behind:?}");

    stopped.signal("-CONT");
    until("it has all there is", || writer.readers_behind().unwrap().is_empty());
}
