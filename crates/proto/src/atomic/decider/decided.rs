//! What the log comes to: entries in, decisions out. The first entry that names the current base wins.

use std::collections::VecDeque;
use std::sync::Arc;

use omnipaxos::storage::{self, Snapshot};

use crate::atomic::decider::{Decision, VALUE_BYTES_MAX};
use crate::malformed::Malformed;
use crate::tuning::decider::{DECISIONS_KEPT, DECISIONS_KEPT_BYTES};
use crate::wire::octets::{Reader, Sink};

/// A proposal, as it stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) base: u64,
    pub(super) value: Arc<[u8]>,
}

/// Octets of an entry with an empty value.
pub(super) const ENTRY_BYTES_MIN: usize = 12;
/// No epoch has a larger number: it leaves room for arithmetic.
const BASE_MAX: u64 = 1 << 60;

impl Entry {
    pub(super) fn write(&self, sink: &mut Sink<'_>) {
        sink.octets(&self.base.to_le_bytes());
        sink.octet_sequence(&self.value);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { base: base(reader)?, value: value(reader)? })
    }
}

fn base(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let base = reader.array().map(u64::from_le_bytes)?;
    if base > BASE_MAX { Err(Malformed::LengthOutOfRange) } else { Ok(base) }
}

fn value(reader: &mut Reader<'_>) -> Result<Arc<[u8]>, Malformed> {
    Ok(Arc::from(reader.octet_sequence(VALUE_BYTES_MAX)?))
}

/// All decisions so far: the newest of them, and how many there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    next: u64,
    /// Those of the last bases before `next`.
    values: VecDeque<Arc<[u8]>>,
    octets: usize,
}

impl Decided {
    pub(super) const fn new(first_base: u64) -> Self {
        Self { next: first_base, values: VecDeque::new(), octets: 0 }
    }

    /// The base whose decision comes next.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The base of the oldest decision that is kept.
    pub(super) fn first_kept(&self) -> u64 {
        self.next.saturating_sub(self.values.len() as u64)
    }

    /// The decision that follows `base`, if it is made and kept.
    pub(super) fn get(&self, base: u64) -> Option<Decision> {
        let index = usize::try_from(base.checked_sub(self.first_kept())?).ok()?;
        self.values.get(index).map(|value| Decision { base, value: value.clone() })
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        if entry.base == self.next {
            self.push(entry.value.clone());
        }
    }

    fn push(&mut self, value: Arc<[u8]>) {
        self.next += 1;
        self.octets += value.len();
        self.values.push_back(value);
        while self.values.len() > DECISIONS_KEPT
            || self.octets > DECISIONS_KEPT_BYTES && self.values.len() > 1
        {
            let oldest = self.values.pop_front();
            self.octets -= oldest.map_or(0, |value| value.len());
        }
    }

    /// Writes what somebody needs who knows what was decided before `known`.
    pub(super) fn write_from(&self, known: u64, sink: &mut Sink<'_>) {
        let skipped = known.saturating_sub(self.first_kept()).min(self.values.len() as u64);
        sink.octets(&self.next.to_le_bytes());
        sink.u32(self.values.len() as u32 - skipped as u32);
        for value in self.values.iter().skip(skipped as usize) {
            sink.octet_sequence(value);
        }
    }

    /// What was written for somebody who may know something already: see [`Self::after`].
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let next = base(reader)?;
        let count = reader.count(DECISIONS_KEPT, 4)?;
        let first = next.checked_sub(count as u64).ok_or(Malformed::LengthOutOfRange)?;
        let mut read = Self::new(first);
        for _ in 0..count {
            read.push(value(reader)?);
        }
        Ok(read)
    }

    /// All decisions, of those that are `known` and these, which go on where those end, or later.
    pub(super) fn after(self, known: &Self) -> Self {
        let first = self.first_kept();
        if first > known.next {
            return self;
        }
        let mut all = known.clone();
        for base in known.next..self.next {
            if let Some(decision) = self.get(base) {
                all.push(decision.value);
            }
        }
        all
    }
}

/// A snapshot of the log, or what is to become part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Summary {
    Decided(Decided),
    Entries(Vec<Entry>),
}

impl storage::Entry for Entry {
    type Snapshot = Summary;
}

impl Snapshot<Entry> for Summary {
    fn create(entries: &[Entry]) -> Self {
        Self::Entries(entries.to_vec())
    }

    fn merge(&mut self, delta: Self) {
        match (self, delta) {
            (Self::Decided(decided), Self::Entries(entries)) => {
                entries.iter().for_each(|entry| decided.apply(entry));
            }
            (Self::Entries(entries), Self::Entries(more)) => entries.extend(more),
            (this, decided @ Self::Decided(_)) => *this = decided,
        }
    }

    fn use_snapshots() -> bool {
        true
    }
}
