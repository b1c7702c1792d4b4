//! A process that is stopped (SIGSTOP) holds up nobody who need not wait for it, and a reliable writer for as
//! long as its QoS says: over shared memory, also when it holds all of it that it may, and over UDP.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Blob, PATIENCE, fresh_domain, reader, until, writer};
use plainsong::Error;
use plainsong::prelude::*;

/// In the environment of a process that a test has started: its domain.
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";
/// In that of one that reads: its topic, and `reliable` or `best_effort`.
const READS: &str = "PLAINSONG_TEST_READS";
/// Settings of the ways by which samples may go: memory; memory of which the stopped process soon holds what
/// it may, the half; UDP.
const ROADS: [[(&str, &str); 2]; 3] = [
    [("PLAINSONG_SHARED_MEMORY", "auto"), ("PLAINSONG_MEMORY_POOL_BYTES_MAX", "268435456")],
    [("PLAINSONG_SHARED_MEMORY", "auto"), ("PLAINSONG_MEMORY_POOL_BYTES_MAX", "4194304")],
    [("PLAINSONG_SHARED_MEMORY", "off"), ("PLAINSONG_MEMORY_POOL_BYTES_MAX", "0")],
];
/// More than a ring, or the sockets of a process, hold.
const SAMPLES: u32 = 4_000;
/// Long enough to lie in a chunk of shared memory, beside its message.
const BYTES: usize = 4_096;

/// Does `test` in a process of its own for each of the ways. A process in which this is found to be asked
/// to read does that instead.
fn on_all_roads(name: &str, test: impl FnOnce(u16)) {
    if let Ok(reads) = std::env::var(READS) {
        return read(&reads);
    }
    if let Ok(domain) = std::env::var(DOMAIN) {
        return test(domain.parse().unwrap());
    }
    for road in ROADS {
        let mut process = again(name, fresh_domain());
        let status = process.envs(road).status().unwrap();
        assert!(status.success(), "with {road:?}");
    }
}

/// This program, which finds itself in the test of that name.
fn again(name: &str, domain: u16) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(DOMAIN, domain.to_string());
    command
}

/// A participant with the settings of the environment, on loopback.
fn participant(domain: u16) -> DomainParticipant {
    let config = Config { interfaces: Some(vec!["lo".into()]), ..Config::from_env().unwrap() };
    DomainParticipantFactory::with_config(config)
        .create_participant(domain, "test", QosSet::default())
        .unwrap()
}

/// Prints the number of each sample.
fn read(reads: &str) {
    let (topic, kind) = reads.split_once(' ').unwrap();
    let participant = participant(std::env::var(DOMAIN).unwrap().parse().unwrap());
    let qos = QosSet::reader().keep_all();
    let qos = if kind == "reliable" { qos.reliable() } else { qos.best_effort() };
    let reader = reader::<Blob>(&participant, topic, qos);
    std::thread::spawn(move || {
        loop {
            // An error is that none came in time.
            for sample in reader.wait_take(PATIENCE).unwrap_or_default() {
                println!("sample {}", sample.data.unwrap().number);
            }
        }
    });
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}

/// A process with a reader, which ends when its standard input does.
struct Elsewhere {
    child: Child,
    numbers: Arc<Mutex<Vec<u32>>>,
}

impl Elsewhere {
    fn new(test: &str, domain: u16, topic: &str, kind: &str) -> Self {
        let mut child = again(test, domain)
            .env(READS, format!("{topic} {kind}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let numbers = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&numbers);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(number) = line.strip_prefix("sample ") {
                    theirs.lock().unwrap().push(number.parse().unwrap());
                }
            }
        });
        Self { child, numbers }
    }

    fn numbers(&self) -> Vec<u32> {
        self.numbers.lock().unwrap().clone()
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Stops it: when this returns no thread of it runs any more.
    fn stop(&self) {
        self.signal("-STOP");
        let threads = format!("/proc/{}/task", self.child.id());
        let is_stopped = |entry: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        };
        until("all threads stop", || std::fs::read_dir(&threads).unwrap().all(|it| is_stopped(it.unwrap())));
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn blob(number: u32) -> Blob {
    Blob { number, octets: vec![number as u8; BYTES] }
}

fn matched(writer: &DataWriter<Blob>, count: usize) {
    until("the readers match", || writer.matched_subscriptions().unwrap().len() == count);
}

#[test]
fn a_stopped_reader_holds_up_no_best_effort_writer_and_no_reader_beside_it() {
    const NAME: &str = "a_stopped_reader_holds_up_no_best_effort_writer_and_no_reader_beside_it";
    on_all_roads(NAME, |domain| {
        let home = participant(domain);
        let best_effort = writer::<Blob>(&home, "Loose", QosSet::writer().best_effort().keep_last(1));
        let reliable = writer::<Blob>(&home, "Kept", QosSet::writer().keep_all().max_blocking_time(PATIENCE));
        let stopped = Elsewhere::new(NAME, domain, "Loose", "best_effort");
        let [loose, kept] = [("Loose", "best_effort"), ("Kept", "reliable")]
            .map(|(topic, kind)| Elsewhere::new(NAME, domain, topic, kind));
        matched(&best_effort, 2);
        matched(&reliable, 1);
        stopped.stop();
        for number in 0..SAMPLES {
            best_effort.write(&blob(number)).unwrap();
            reliable.write(&blob(number)).unwrap();
        }
        reliable.wait_for_acknowledgments(PATIENCE).unwrap();
        until("all arrive that must", || kept.numbers().len() == SAMPLES as usize);
        assert!(kept.numbers().into_iter().eq(0..SAMPLES));
        let mut next = SAMPLES;
        until("some arrive that need not", || {
            best_effort.write(&blob(next)).unwrap();
            next += 1;
            loose.numbers().last().is_some_and(|last| *last >= SAMPLES)
        });
        assert!(loose.numbers().is_sorted_by(|one, next| one < next));

        let before = stopped.numbers().len();
        stopped.signal("-CONT");
        until("the stopped one goes on", || {
            best_effort.write(&blob(next)).unwrap();
            next += 1;
            stopped.numbers().len() > before && stopped.numbers().last() > Some(&SAMPLES)
        });
        assert!(stopped.numbers().is_sorted_by(|one, next| one < next));
    });
}

#[test]
fn a_writer_that_keeps_the_last_goes_on_to_others_while_a_reliable_reader_is_stopped() {
    const NAME: &str = "a_writer_that_keeps_the_last_goes_on_to_others_while_a_reliable_reader_is_stopped";
    on_all_roads(NAME, |domain| {
        let home = participant(domain);
        let qos = QosSet::writer().keep_last(4).max_blocking_time(Duration::from_millis(20));
        let writer = writer::<Blob>(&home, "Last", qos);
        let [stopped, other] = [(); 2].map(|()| Elsewhere::new(NAME, domain, "Last", "reliable"));
        matched(&writer, 2);
        stopped.stop();
        let mut next = 0;
        until("the other one goes on", || {
            // What is on its way may fill what its readers acknowledge; the stopped one never does.
            let _ = writer.write(&blob(next));
            next += 1;
            other.numbers().last().is_some_and(|last| *last >= SAMPLES / 16)
        });
        stopped.signal("-CONT");
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        let last = other.numbers();
        until("both have the last", || stopped.numbers().last() >= last.last());
        for numbers in [stopped.numbers(), other.numbers()] {
            assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        }
    });
}

#[test]
fn a_reliable_writer_waits_for_a_stopped_reader_as_long_as_it_may_and_loses_nothing() {
    const NAME: &str = "a_reliable_writer_waits_for_a_stopped_reader_as_long_as_it_may_and_loses_nothing";
    const BLOCKING: Duration = Duration::from_millis(300);
    on_all_roads(NAME, |domain| {
        let home = participant(domain);
        let mut qos = QosSet::writer().keep_all().max_blocking_time(BLOCKING);
        qos.resource_limits.max_samples = 50;
        let writer = writer::<Blob>(&home, "Held", qos);
        let [stopped, other] = [(); 2].map(|()| Elsewhere::new(NAME, domain, "Held", "reliable"));
        matched(&writer, 2);
        writer.write(&blob(0)).unwrap();
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        stopped.stop();
        let mut accepted = 1;
        let mut write = || {
            let begin = Instant::now();
            let written = writer.write(&blob(accepted));
            accepted += u32::from(written.is_ok());
            (written, begin.elapsed())
        };
        let mut refused = 0;
        while refused < 2 {
            let (written, took) = write();
            if let Err(error) = written {
                assert!(matches!(error, Error::Timeout { .. }), "{error}");
                assert!(took >= BLOCKING, "{took:?}");
                refused += 1;
            }
        }
        assert!(accepted <= 51, "{accepted} fit into 50");
        // The other one has all that was accepted meanwhile.
        until("the other one has all", || other.numbers().len() == accepted as usize);

        // A write that waits goes on when the reader does.
        let count = accepted;
        let continued = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(BLOCKING / 3);
                stopped.signal("-CONT");
            });
            // The machine may be busy: it is given more than one chance.
            (0..20).any(|_| writer.write(&blob(count)).is_ok())
        });
        assert!(continued);
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        for reader in [&stopped, &other] {
            until("all arrive", || reader.numbers().len() == count as usize + 1);
            assert!(reader.numbers().into_iter().eq(0..=count));
        }
    });
}
