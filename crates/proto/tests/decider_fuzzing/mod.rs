//! One fuzzing run over a voter: messages that were really sent to it, changed. It never panics, and what it
//! answers is bounded.

use std::sync::OnceLock;

use plainsong_proto::atomic::decider::{Electorate, EpochDecider, VoterId, open};
use plainsong_proto::time::{Duration, Instant};

const VOTERS: [VoterId; 3] = [VoterId([1; 16]), VoterId([2; 16]), VoterId([3; 16])];
/// One message is answered by so many at most: heartbeats, and what a new leader sends.
const ANSWERS_MAX: usize = 16;

type Voter = Box<dyn EpochDecider + Send>;

struct Past {
    /// What was sent to the first voter: by whom, and what.
    messages: Vec<(VoterId, Vec<u8>)>,
    records: Vec<Vec<u8>>,
    now: Instant,
}

fn electorate(index: usize) -> Electorate {
    Electorate::new(VOTERS[index], &VOTERS, 1).expect("three voters")
}

/// Three voters who decide some epochs; each leads at some time, and comes back after it was away.
fn past() -> &'static Past {
    static PAST: OnceLock<Past> = OnceLock::new();
    PAST.get_or_init(|| {
        let mut past = Past { messages: Vec::new(), records: Vec::new(), now: Instant(0) };
        let mut disks = vec![Vec::new(); 3];
        let mut voters: Vec<Option<Voter>> = (0..3).map(|_| None).collect();
        for round in 0..12 {
            let away = round % 4;
            for (index, voter) in voters.iter_mut().enumerate() {
                let records: Vec<&[u8]> = disks[index].iter().map(Vec::as_slice).collect();
                let reopen = || open(past.now, &electorate(index), records).expect("its own records");
                *voter = (index != away).then(|| voter.take().unwrap_or_else(reopen));
            }
            let base = voters.iter().flatten().map(|voter| voter.base()).max().unwrap_or(1);
            if let Some(voter) = voters.iter_mut().flatten().next() {
                let _ = voter.propose(past.now, base, b"what is to be decided");
            }
            for _ in 0..200 {
                past.now = Instant(past.now.0 + 1_000_000);
                step(&mut voters, &mut disks, &mut past);
            }
        }
        past.records = disks.swap_remove(0);
        past
    })
}

/// Messages arrive at once.
fn step(voters: &mut [Option<Voter>], disks: &mut [Vec<Vec<u8>>], past: &mut Past) {
    for index in 0..voters.len() {
        let Some(voter) = &mut voters[index] else { continue };
        voter.tick(past.now);
        while let Some(record) = voter.take_record() {
            if record.whole {
                disks[index].clear();
            }
            voter.persisted(record.number);
            disks[index].push(record.octets);
        }
        let mut out = Vec::new();
        voter.take_messages(&mut out);
        for (to, octets) in out {
            let to = VOTERS.iter().position(|voter| *voter == to).expect("a voter");
            if let Some(voter) = &mut voters[to] {
                assert_eq!(voter.on_message(past.now, VOTERS[index], &octets), Ok(()));
                if to == 0 {
                    past.messages.push((VOTERS[index], octets));
                }
            }
        }
    }
}

/// The first octet chooses a message, two say where it is changed, one how much of what follows goes there.
pub(crate) fn run(octets: &[u8]) {
    let past = past();
    let records = past.records.iter().map(Vec::as_slice);
    let mut voter = open(past.now, &electorate(0), records).expect("its own records");
    let (mut now, mut number, mut rest) = (past.now, 1_u64 << 40, octets);
    let _ = voter.propose(now, voter.base(), b"another");
    while let [choice, high, low, length, tail @ ..] = rest {
        let (patch, tail) = tail.split_at(tail.len().min(usize::from(length % 32)));
        rest = tail;
        let choice = usize::from(*choice) * past.messages.len() / 256;
        let Some((from, message)) = past.messages.get(choice) else { return };
        let mut message = message.clone();
        // As of the newest life of its sender, for this life, and later than all before.
        number += 1;
        message.splice(4..8, 1_000_u32.to_le_bytes());
        message.splice(8..12, life(past).to_le_bytes());
        message.splice(12..20, number.to_le_bytes());
        let at = usize::from(u16::from_be_bytes([*high, *low])) % message.len();
        let end = message.len().min(at + patch.len());
        message.splice(at..end, patch.iter().copied());
        let _ = voter.on_message(now, *from, &message);
        now = now.after(Duration::from_millis(7)).expect("time goes on");
        voter.tick(now);
        while let Some(record) = voter.take_record() {
            voter.persisted(record.number);
        }
        let mut out = Vec::new();
        voter.take_messages(&mut out);
        assert!(out.len() <= ANSWERS_MAX, "{} answers", out.len());
        while voter.poll_decided().is_some() {}
    }
}

/// The life that the records lead to: one more than that of the last whole record (after what is said of the
/// voters).
fn life(past: &Past) -> u32 {
    let at = 12 + 16 + 4 + 3 * 16;
    let whole = past.records.iter().rev().find(|record| record[1] == 1).expect("a whole record");
    u32::from_le_bytes(whole[at..at + 4].try_into().expect("four octets")) + 1
}
