//! The thread that receives the answers of a crowd is not put before others when it is woken, until a sample
//! comes.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
// Elsewhere threads have no such policy, and no table that tells it.
#![cfg(target_os = "linux")]

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Point, fresh_domain, participant, reader, until, writer};
use plainsong::prelude::*;

/// `SCHED_BATCH` of sched(7).
const BATCH: &str = "3";
/// The field `policy` of `man 5 proc_pid_stat`, counted from the state, which follows the name in
/// parentheses.
const POLICY: usize = 41 - 3;
/// Several datagrams, and fewer than the writer would have to wait for.
const SAMPLES: u32 = 500;
/// In so many rounds four readers give several times as many answers as a thread is judged by.
const ROUNDS: u32 = 200;
/// In the environment of a process with a reader: its domain.
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";

/// How many threads of the domain let others finish first.
fn patient_threads(domain: u16) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let is_patient = |stat: &String| {
        let (name, fields) = stat.rsplit_once(')').unwrap();
        name.ends_with(&format!("-{domain}")) && fields.split_whitespace().nth(POLICY) == Some(BATCH)
    };
    stats.filter(is_patient).count()
}

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
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A writer of this process and readers of others.
struct Crowd {
    domain: u16,
    home: DomainParticipant,
    writer: DataWriter<Point>,
    readers: Vec<Elsewhere>,
}

impl Crowd {
    fn new() -> Self {
        let domain = fresh_domain();
        let home = participant(domain);
        let writer = writer(&home, "Out", QosSet::writer().keep_all());
        Self { domain, home, writer, readers: Vec::new() }
    }

    fn join(&mut self, count: usize) {
        self.readers.extend((0..count).map(|_| Elsewhere::new(self.domain)));
        let all = self.readers.len();
        until("all readers match", || self.writer.matched_subscriptions().unwrap().len() == all);
    }

    /// Samples that are answered before this returns: how many threads let others finish first then.
    fn round(&self) -> usize {
        for id in 0..SAMPLES {
            self.writer.write(&Point { id, x: 0.0, y: 0.0 }).unwrap();
        }
        // Who waits for longer may itself receive.
        until("all is answered", || self.writer.wait_for_acknowledgments(Duration::ZERO).is_ok());
        patient_threads(self.domain)
    }
}

const TEST: &str = "who_receives_answers_of_a_crowd_lets_others_finish_first_until_a_sample_comes";

#[test]
fn who_receives_answers_of_a_crowd_lets_others_finish_first_until_a_sample_comes() {
    if let Ok(domain) = std::env::var(DOMAIN) {
        return Elsewhere::read(&domain);
    }
    let mut crowd = Crowd::new();
    crowd.join(4);
    for _ in 0..ROUNDS {
        assert_eq!(crowd.round(), 0, "four are no crowd");
    }
    crowd.join(8);
    until("the thread becomes patient", || crowd.round() == 1);

    let back = reader::<Point>(&crowd.home, "In", QosSet::reader().reliable());
    let into = writer::<Point>(&crowd.home, "In", QosSet::writer());
    until("the way back matches", || !into.matched_subscriptions().unwrap().is_empty());
    into.write(&Point::default()).unwrap();
    until("one sample comes", || !back.take_with(&ReadOptions::new().max_samples(1)).unwrap().is_empty());
    until("it ends that", || patient_threads(crowd.domain) == 0);
}
