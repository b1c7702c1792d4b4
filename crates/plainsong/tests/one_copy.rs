//! Processes hold the same long samples, written and lent, of topics of either consistency, and their
//! payloads are in the memory of the host once.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use common::{Blob, PATIENCE, fresh_domain, loopback, participant_with, reader, until, writer};
use plainsong::config::Use;
use plainsong::prelude::*;

/// In the environment of a process that a test has started: its domain.
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";
/// And that its topic is ATOMIC.
const ATOMIC: &str = "PLAINSONG_TEST_ATOMIC";
const TEST: &str = "what_many_processes_hold_is_in_memory_once";
const SAMPLES: usize = 8;
/// With what precedes the octets a sample is 1 MiB.
const BYTES: usize = (1 << 20) - 64;
const MIB: u64 = 1 << 20;

/// A [`Blob`] of which the writer has the octets somewhere.
#[derive(DdsType)]
#[dds(name = "Blob")]
struct Borrowing<'a> {
    number: u32,
    octets: OctetSeq<'a>,
}

/// A process with a reader that takes nothing until it is told to. It ends with its owner.
struct Holder {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Holder {
    fn start(domain: u16, consistency: ConsistencyKind) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", TEST, "--nocapture"]).env(DOMAIN, domain.to_string());
        if consistency == ConsistencyKind::Atomic {
            command.env(ATOMIC, "");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Takes what it holds: how many samples were as they should be.
    fn take(&mut self) -> usize {
        drop(self.input.take());
        let lines = self.output.by_ref().lines().map_while(Result::ok);
        lines.filter_map(|line| line.strip_prefix("took ")?.parse().ok()).next().unwrap()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn blob(number: usize) -> Blob {
    Blob { number: number as u32, octets: vec![number as u8 + 1; BYTES] }
}

fn hold(domain: u16, consistency: ConsistencyKind) {
    let config = Config { shared_memory: Use::Auto, ..loopback() };
    let participant = participant_with(domain, config);
    let requested = QosSet::reader().reliable().keep_all().consistency(consistency);
    let reader = reader::<Blob>(&participant, "Held", requested);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let taken = reader.take().unwrap().into_iter().filter_map(|sample| sample.data);
    println!("took {}", taken.enumerate().filter(|(number, sample)| *sample == blob(*number)).count());
}

/// What a process has in memory, each page divided by the number of those that have it: of what it shares by
/// descriptors, and of everything else.
#[derive(Clone, Copy, Debug, Default)]
struct Resident {
    shared_bytes: u64,
    other_bytes: u64,
}

fn resident(process: u32) -> Resident {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps")).unwrap();
    let (mut resident, mut is_shared) = (Resident::default(), false);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first == "Pss:" {
            let bytes = 1_024 * words.next().unwrap().parse::<u64>().unwrap();
            *if is_shared { &mut resident.shared_bytes } else { &mut resident.other_bytes } += bytes;
        } else if !first.ends_with(':') {
            is_shared = line.contains("/memfd:plainsong");
        }
    }
    resident
}

/// Of all processes together.
fn total(processes: &[u32]) -> Resident {
    processes.iter().copied().map(resident).fold(Resident::default(), |sum, one| Resident {
        shared_bytes: sum.shared_bytes + one.shared_bytes,
        other_bytes: sum.other_bytes + one.other_bytes,
    })
}

/// One after the other, for they measure the same process.
#[test]
fn what_many_processes_hold_is_in_memory_once() {
    match (std::env::var(DOMAIN), std::env::var(ATOMIC)) {
        (Ok(domain), Ok(_)) => hold(domain.parse().unwrap(), ConsistencyKind::Atomic),
        (Ok(domain), Err(_)) => hold(domain.parse().unwrap(), ConsistencyKind::Eventual),
        (Err(_), _) => {
            is_in_memory_once(ConsistencyKind::Eventual, 10);
            is_in_memory_once(ConsistencyKind::Atomic, 4);
        }
    }
}

fn is_in_memory_once(consistency: ConsistencyKind, readers: usize) {
    let domain = fresh_domain();
    let participant = participant_with(domain, Config { shared_memory: Use::Auto, ..loopback() });
    let offered = QosSet::writer().keep_all().consistency(consistency).max_blocking_time(PATIENCE);
    let writer = writer::<Borrowing<'static>>(&participant, "Held", offered);
    let mut holders: Vec<Holder> = (0..readers).map(|_| Holder::start(domain, consistency)).collect();
    until("memory is shared with all", || writer.delivery().unwrap().readers_by_memory() == readers);
    let writing = [std::process::id()];
    let holding: Vec<u32> = holders.iter().map(|holder| holder.child.id()).collect();
    let all = [&writing[..], &holding[..]].concat();
    let before = [&all, &writing[..], &holding].map(total);
    for number in 0..SAMPLES {
        let Blob { number, octets } = blob(number);
        let octets = if number.is_multiple_of(2) {
            octets.into()
        } else {
            let mut lent = writer.loan_octets(BYTES).unwrap();
            lent.copy_from_slice(&octets);
            lent.into()
        };
        writer.write(&Borrowing { number, octets }).unwrap();
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }
    let [all, writing, holding] = [&all, &writing[..], &holding].map(total);
    let shared = all.shared_bytes - before[0].shared_bytes;
    let [of_writer, of_holders] = [(writing, before[1]), (holding, before[2])]
        .map(|(now, before)| now.other_bytes.saturating_sub(before.other_bytes));
    let payload = SAMPLES as u64 * MIB;
    println!(
        "{payload} octets are held by {readers} processes: {shared} shared, {of_writer} of the writer alone, \
         {of_holders} of the others; {before:?} before"
    );
    assert!(shared >= payload - MIB, "they are there: {shared}");
    assert!(shared <= payload + MIB, "once: {shared}");
    // What is not lent the writer encodes before it is shared; no reader has a copy.
    assert!(of_writer < payload / 2, "{of_writer}");
    assert!(of_holders < payload / 2, "{of_holders}");
    for holder in &mut holders {
        assert_eq!(holder.take(), SAMPLES);
    }
}
