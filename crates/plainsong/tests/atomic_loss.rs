//! Members of ATOMIC groups that are stopped, lose their disks, or are all killed at once: what they are
//! told, and what is left when they are back.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![cfg(unix)]

mod common;

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use common::{
    Blob, PATIENCE, Point, fresh_domain, loopback, participant, participant_with, reader, until, writer,
};
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::qos::{DeliverAt, HistoryKind};

fn atomic(qos: QosSet, durability: Durability) -> QosSet {
    let mut qos = qos.reliable().consistency(ConsistencyKind::Atomic).max_blocking_time(PATIENCE);
    qos.history.kind = HistoryKind::KeepAll;
    qos.durability(durability)
}

fn point(x: i64) -> Point {
    Point { x: x as f64, ..Point::default() }
}

/// In the environment of a process of a test: which of those it is, its domain, and its state directory.
const NUMBER: &str = "PLAINSONG_TEST_NUMBER";
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";
const STATE: &str = "PLAINSONG_TEST_STATE";

/// Which process this is, and its participant; `None` in the test itself.
fn in_process() -> Option<(i64, DomainParticipant)> {
    let number = std::env::var(NUMBER).ok()?.parse().unwrap();
    let state_directory = Some(PathBuf::from(std::env::var(STATE).unwrap()));
    let domain = std::env::var(DOMAIN).unwrap().parse().unwrap();
    Some((number, participant_with(domain, Config { state_directory, ..loopback() })))
}

/// A process of a test, killed with this.
struct Process {
    child: Child,
    lines: Receiver<String>,
    /// Those that nobody waited for: threads of the process print in any order.
    earlier: RefCell<Vec<String>>,
}

impl Process {
    /// `begin` of a shell stands before it.
    fn start(begin: &str, test: &str, number: i64, domain: u16, state: &Path) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", &format!("{begin} exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(NUMBER, number.to_string())
            .env(DOMAIN, domain.to_string())
            .env(STATE, state.join(number.to_string()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines, earlier: RefCell::default() }
    }

    /// A line that begins so, without that; each once.
    fn line(&self, begin: &str) -> String {
        let mut earlier = self.earlier.borrow_mut();
        if let Some(place) = earlier.iter().position(|line| line.starts_with(begin)) {
            return earlier.remove(place)[begin.len()..].to_owned();
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("no line '{begin}'"));
            if let Some(rest) = line.strip_prefix(begin) {
                return rest.to_owned();
            }
            earlier.push(line);
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory for the states of a test, which goes with this.
struct States(PathBuf);

impl States {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plainsong-loss-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for States {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_process_that_stood_still_is_told_that_it_was_excluded_and_has_what_it_missed() {
    const TEST: &str = "a_process_that_stood_still_is_told_that_it_was_excluded_and_has_what_it_missed";
    let kept = |qos| atomic(qos, Durability::TransientLocal);
    if let Some((_, member)) = in_process() {
        member.on_atomic_event(|_, event| println!("event {event:?}"));
        let reader: DataReader<Point> = reader(&member, "Plan", kept(QosSet::reader()));
        loop {
            for sample in reader.wait_take(Duration::from_secs(60)).unwrap() {
                println!("got {}", sample.data.unwrap().x);
            }
        }
    }
    let (states, domain) = (States::new("evicted"), fresh_domain());
    let home = participant(domain);
    let writer: DataWriter<Point> = writer(&home, "Plan", kept(QosSet::writer()));
    until("it is a member", || home.atomic_groups()[0].members.len() == 1);
    let other = Process::start("", TEST, 0, domain, &states.0);
    let members = |count| until("there are so many", || home.atomic_groups()[0].members.len() == count);
    members(2);
    writer.write(&point(1)).unwrap();
    assert_eq!(other.line("got "), "1");
    other.signal("STOP");
    writer.write(&point(2)).unwrap();
    members(1);
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    other.signal("CONT");
    assert_eq!(other.line("event Evicted"), "");
    assert_eq!(other.line("got "), "2");
    members(2);
}

#[test]
fn who_left_since_its_disk_failed_is_told_which_file_and_why_by_every_write() {
    const TEST: &str = "who_left_since_its_disk_failed_is_told_which_file_and_why_by_every_write";
    let kept = |qos| atomic(qos, Durability::Persistent);
    if let Some((_, member)) = in_process() {
        member.on_atomic_event(|_, event| println!("event {event:?}"));
        let writer: DataWriter<Blob> = writer(&member, "Plan", kept(QosSet::writer()));
        let blob = Blob { number: 1, octets: vec![7; 100_000] };
        let failed = (0..10_000).find_map(|_| writer.write(&blob).err());
        println!("failed {}", failed.unwrap());
        let again = writer.write(&blob).unwrap_err();
        assert!(matches!(again, Error::Store(_)), "{again}");
        println!("again {again}");
        println!("sync {}", writer.sync(PATIENCE).unwrap_err());
        println!("waited {}", writer.wait_for_acknowledgments(PATIENCE).unwrap_err());
        return;
    }
    let (states, domain) = (States::new("disk"), fresh_domain());
    // Files grow to so many half KiB.
    let process = Process::start("trap '' XFSZ; ulimit -f 40000;", TEST, 0, domain, &states.0);
    assert_eq!(process.line("event StorageFailed"), "");
    for begin in ["failed ", "again ", "sync ", "waited "] {
        let told = process.line(begin);
        assert!(told.contains("Plan-") && told.contains(".redb cannot be read or written"), "{told}");
        assert!(told.contains("File too large") && told.contains("make the participant anew"), "{told}");
    }
}

/// Samples of one process are numbered on from this times its number; and again from that in each round.
const OF_PROCESS: i64 = 1_000_000;

/// What processes print that take part: each sample, and where it stands.
fn take_part(number: i64, member: &DomainParticipant) -> ! {
    let stable = |qos| {
        let mut qos = atomic(qos, Durability::Persistent);
        qos.consistency.deliver_at = DeliverAt::Stable;
        qos
    };
    let writer: DataWriter<Point> = writer(member, "Plan", stable(QosSet::writer()));
    let reader: DataReader<Point> = reader(member, "Plan", stable(QosSet::reader()));
    for x in number * OF_PROCESS.. {
        writer.write(&point(x)).unwrap();
        for sample in reader.take().unwrap() {
            println!("got {} {}", sample.data.unwrap().x, sample.info.agreed.position);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    unreachable!("it is killed");
}

/// What a process got, until it has so many samples of each of the processes with these numbers.
fn log_of(process: &Process, numbers: &[i64], count: usize) -> Vec<(i64, u64)> {
    let mut log = Vec::new();
    let has = |log: &[(i64, u64)], number| log.iter().filter(|(x, _)| x / OF_PROCESS == number).count();
    while !numbers.iter().all(|number| has(&log, *number) >= count) {
        let line = process.line("got ");
        let (x, position) = line.split_once(' ').unwrap();
        log.push((x.parse().unwrap(), position.parse().unwrap()));
    }
    log
}

#[test]
fn processes_that_keep_what_is_stable_are_killed_together_and_go_on_with_one_order() {
    const TEST: &str = "processes_that_keep_what_is_stable_are_killed_together_and_go_on_with_one_order";
    if let Some((number, member)) = in_process() {
        take_part(number, &member);
    }
    let (states, domain) = (States::new("stable"), fresh_domain());
    // A process has the state of the one before it whose number ends alike.
    let start = |round: i64| {
        [1, 2, 3].map(|place| {
            let own = states.0.join((round * 10 + place).to_string());
            if round > 0 {
                std::fs::rename(states.0.join(((round - 1) * 10 + place).to_string()), own).unwrap();
            }
            Process::start("", TEST, round * 10 + place, domain, &states.0)
        })
    };
    let mut before: Vec<(i64, u64)> = Vec::new();
    for round in 0..3 {
        let numbers = [1, 2, 3].map(|place| round * 10 + place);
        let processes = start(round);
        let logs = processes.each_ref().map(|process| log_of(process, &numbers, 50));
        drop(processes);
        let shortest = logs.iter().map(Vec::len).min().unwrap();
        for log in &logs {
            assert_eq!(log[..shortest], logs[0][..shortest]);
            assert!(log.is_sorted_by(|one, other| one.1 < other.1));
        }
        // All but perhaps the last of what was there before the round is there, where it was.
        let kept: Vec<_> = logs[0].iter().filter(|(x, _)| x / OF_PROCESS < round * 10).copied().collect();
        let common = kept.len().min(before.len());
        assert_eq!(kept[..common], before[..common]);
        for number in (0..=round).flat_map(|round| [1, 2, 3].map(|place| round * 10 + place)) {
            let own = logs[0].iter().map(|it| it.0).filter(|x| x / OF_PROCESS == number);
            let own: Vec<_> = own.collect();
            assert!(own.iter().copied().eq((number * OF_PROCESS..).take(own.len())), "{number}");
        }
        before = logs[0].clone();
    }
}
