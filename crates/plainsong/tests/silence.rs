//! A process that is stopped for longer than a writer waits, while its lease lasts.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![cfg(target_os = "linux")]

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{PATIENCE, Point, fresh_domain, participant, reader, until, writer};
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::time;

/// In the environment of a process with a reader: its domain.
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";
const TEST: &str = "a_stopped_reader_holds_a_writer_back_while_its_lease_lasts_and_is_named";

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
fn a_stopped_reader_holds_a_writer_back_while_its_lease_lasts_and_is_named() {
    if let Ok(domain) = std::env::var(DOMAIN) {
        return Elsewhere::read(&domain);
    }
    let domain = fresh_domain();
    let home = participant(domain);
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
    // The signal takes effect a little later.
    let mut refused = None;
    until("a write is refused", || {
        refused = writer.write(&Point::default()).err();
        refused.is_some()
    });
    let refused = refused.unwrap();
    assert!(matches!(refused, Error::Timeout { .. }), "{refused}");
    let handle = writer.matched_subscriptions().unwrap()[0];
    let reader = Guid::from(handle);
    assert!(
        refused.to_string().contains(&format!("for reader {reader}, which is 4 samples behind")),
        "{refused}"
    );
    assert_eq!(writer.matched_subscriptions().unwrap(), [handle], "its lease lasts");
    let waited = writer.wait_for_acknowledgments(Duration::from_millis(1_500)).unwrap_err();
    assert!(waited.to_string().contains("has answered nothing for"), "{waited}");
    assert!(writer.write(&Point::default()).is_err(), "it is waited for after a stranger would be left out");
    let behind = writer.readers_behind().unwrap();
    assert!(behind.len() == 1 && !behind[0].is_left_out && behind[0].silent_for.is_some(), "{behind:?}");

    stopped.signal("-CONT");
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert!(writer.readers_behind().unwrap().is_empty());
    writer.write(&Point::default()).unwrap();
}
