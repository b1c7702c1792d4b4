//! Voters and what lies between them: messages take a millisecond, records are durable at once.

use std::collections::{BTreeMap, VecDeque};

use crate::atomic::decider::{Electorate, EpochDecider, VoterId, open};
use crate::time::{Duration, Instant};

pub(super) type Voter = Box<dyn EpochDecider + Send>;

pub(super) struct Cluster {
    pub(super) now: Instant,
    pub(super) electorates: Vec<Electorate>,
    /// `None` of one that is down.
    pub(super) voters: Vec<Option<Voter>>,
    pub(super) disks: Vec<Vec<Vec<u8>>>,
    /// What each has been told, by base.
    pub(super) decided: Vec<BTreeMap<u64, Vec<u8>>>,
    /// Receiver, sender, octets, and when they arrive.
    messages: VecDeque<(Instant, usize, VoterId, Vec<u8>)>,
    pub(super) sent: usize,
    pub(super) octets: usize,
}

pub(super) fn identity(index: usize) -> VoterId {
    // The order of identities is not that of the tests.
    VoterId([0xc3_u8.wrapping_mul(index as u8 + 1); 16])
}

impl Cluster {
    pub(super) fn new(count: usize) -> Self {
        let identities: Vec<_> = (0..count).map(identity).collect();
        let electorates: Vec<_> =
            identities.iter().map(|own| Electorate::new(*own, &identities, 1).unwrap()).collect();
        let mut cluster = Self {
            now: Instant(1_000_000),
            voters: (0..count).map(|_| None).collect(),
            disks: vec![Vec::new(); count],
            decided: vec![BTreeMap::new(); count],
            electorates,
            messages: VecDeque::new(),
            sent: 0,
            octets: 0,
        };
        (0..count).for_each(|index| cluster.start(index));
        cluster
    }

    pub(super) fn start(&mut self, index: usize) {
        let records = self.disks[index].iter().map(Vec::as_slice);
        self.voters[index] = Some(open(self.now, &self.electorates[index], records).unwrap());
        self.settle(index);
    }

    pub(super) fn propose(&mut self, index: usize, base: u64, value: &str) {
        let now = self.now;
        self.voters[index].as_mut().unwrap().propose(now, base, value.as_bytes()).unwrap();
        self.settle(index);
    }

    pub(super) fn settle(&mut self, index: usize) {
        let count = self.voters.len();
        let Some(voter) = &mut self.voters[index] else { return };
        while let Some(record) = voter.take_record() {
            if record.whole {
                self.disks[index].clear();
            }
            self.disks[index].push(record.octets);
            voter.persisted(record.number);
        }
        let mut out = Vec::new();
        voter.take_messages(&mut out);
        let due = self.now.after(Duration::from_millis(1)).unwrap();
        for (to, octets) in out {
            let to = (0..count).find(|other| identity(*other) == to).unwrap();
            self.sent += 1;
            self.octets += octets.len();
            self.messages.push_back((due, to, identity(index), octets));
        }
        while let Some(decision) = voter.poll_decided() {
            let before = self.decided[index].insert(decision.base, decision.value.to_vec());
            assert!(before.is_none_or(|before| before == *decision.value));
        }
        assert!(!voter.has_failed());
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now.after(span).unwrap();
        loop {
            let tick = |index: &usize| self.voters[*index].as_ref()?.next_deadline();
            let ticker = (0..self.voters.len()).min_by_key(|index| tick(index).unwrap_or(Instant(u64::MAX)));
            let due = ticker.and_then(|index| tick(&index));
            let arrival = self.messages.front().map(|message| message.0);
            let next = due.unwrap_or(end).min(arrival.unwrap_or(end)).max(self.now);
            if next >= end {
                break;
            }
            self.now = next;
            if arrival.is_some_and(|arrival| arrival <= next) {
                let (_, to, from, octets) = self.messages.pop_front().unwrap();
                if let Some(voter) = &mut self.voters[to] {
                    assert_eq!(voter.on_message(next, from, &octets), Ok(()));
                    self.settle(to);
                }
            } else if let Some(index) = ticker {
                self.voters[index].as_mut().unwrap().tick(next);
                self.settle(index);
            }
        }
        self.now = end;
    }

    /// Whether all that are up have these decisions from base 1 on.
    pub(super) fn assert_decided(&self, values: &[&str]) {
        for (index, decided) in self.decided.iter().enumerate() {
            if self.voters[index].is_some() {
                let decided: Vec<_> = decided.values().map(|value| str::from_utf8(value).unwrap()).collect();
                assert_eq!(decided, values, "voter {index}");
            }
        }
    }
}
