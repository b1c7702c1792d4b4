//! The decider of a group with one voter: what it is proposed is decided once it is durable.

use crate::atomic::decider::decided::Entry;
use crate::atomic::decider::record::Journal;
use crate::atomic::decider::store::{Change, Store};
use crate::atomic::decider::{
    Decision, Electorate, EpochDecider, ProposeError, Record, RestoreError, VALUE_BYTES_MAX, VoterId,
};
use crate::malformed::Malformed;
use crate::time::Instant;

/// One voter that decides alone.
#[derive(Debug)]
pub struct Single {
    electorate: Electorate,
    journal: Journal,
    store: Store,
    /// Decisions of bases before this are durable.
    durable: u64,
    reported: u64,
    /// A proposal whose turn has not come: one decision at a time is on its way to the disk.
    waiting: Option<Entry>,
}

impl Single {
    /// The decider, from its records: none when it is new.
    ///
    /// # Errors
    /// When the records are not those of this voter, or one is missing or damaged.
    pub fn open<'a>(
        electorate: &Electorate,
        records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, RestoreError> {
        if electorate.voters.len() != 1 {
            return Err(RestoreError::OtherVoters);
        }
        let (journal, store) = Journal::restore(electorate, records)?;
        let (durable, reported) = (store.decided.next(), store.decided.first_kept());
        Ok(Self { electorate: electorate.clone(), journal, store, durable, reported, waiting: None })
    }

    fn decide(&mut self) {
        let next = self.store.decided.next();
        if self.durable < next {
            return;
        }
        let Some(entry) = self.waiting.take_if(|entry| entry.base <= next) else { return };
        if entry.base == next {
            let index = self.store.log_start + 1;
            let mut decided = self.store.decided.clone();
            decided.apply(&entry);
            let end = self.store.log_end();
            self.store.change(Change::Append(end, vec![entry]));
            self.store.change(Change::Decided(index));
            self.store.compact(index);
        }
    }
}

impl EpochDecider for Single {
    fn propose(&mut self, _now: Instant, base: u64, value: &[u8]) -> Result<(), ProposeError> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(ProposeError::TooLong(value.len()));
        }
        if base < self.store.decided.next() {
            return Err(ProposeError::Decided(base));
        }
        self.waiting = Some(Entry { base, value: value.into() });
        self.decide();
        Ok(())
    }

    fn wake(&mut self, _now: Instant) {}

    fn on_message(&mut self, _now: Instant, _from: VoterId, _octets: &[u8]) -> Result<(), Malformed> {
        Err(Malformed::NotUnderstood)
    }

    fn tick(&mut self, _now: Instant) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn take_record(&mut self) -> Option<Record> {
        self.journal.take(&self.electorate, &mut self.store)
    }

    fn persisted(&mut self, number: u64) {
        self.journal.persisted(number);
        if self.journal.durable == self.journal.needed(&self.store) {
            self.durable = self.store.decided.next();
            self.decide();
        }
    }

    fn take_messages(&mut self, _out: &mut Vec<(VoterId, Vec<u8>)>) {}

    fn poll_decided(&mut self) -> Option<Decision> {
        if self.reported >= self.durable {
            return None;
        }
        self.reported = self.reported.max(self.store.decided.first_kept());
        let decision = self.store.decided.get(self.reported)?;
        self.reported += 1;
        Some(decision)
    }

    fn base(&self) -> u64 {
        self.durable
    }

    fn leader(&self) -> Option<VoterId> {
        Some(self.electorate.own)
    }

    fn has_failed(&self) -> bool {
        self.store.has_failed
    }

    fn ballots(&self) -> [(u32, u64); 2] {
        [(0, 0); 2]
    }
}
