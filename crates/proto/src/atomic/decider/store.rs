//! The durable state of a voter, in memory, and what of it has changed since it was last recorded.
//!
//! The engine owns its storage and shows it to nobody, so both share it. Every call takes the lock once, and
//! nobody else has it: one thread at a time calls a voter.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::storage::{StopSign, Storage, StorageOp, StorageResult};

use crate::atomic::decider::decided::{Decided, Entry, Summary};

/// One change of the state, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A ballot is promised.
    Promise(Ballot),
    /// Entries were accepted in a ballot.
    Accepted(Ballot),
    /// So many entries are decided.
    Decided(usize),
    /// What stands in the log from an index on.
    Append(usize, Vec<Entry>),
    /// What the entries before an index come to; entries that are there already go.
    Install(usize, Decided),
}

/// The state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Store {
    pub(super) promise: Ballot,
    pub(super) accepted: Ballot,
    pub(super) decided_index: usize,
    /// Index of the first entry of `log`.
    pub(super) log_start: usize,
    pub(super) log: VecDeque<Entry>,
    /// What the entries before `log_start` come to.
    pub(super) decided: Decided,
    /// Since they were last taken.
    pub(super) changes: Vec<Change>,
    /// The state contradicts itself: a ballot went back, or a decision was taken back.
    pub(super) has_failed: bool,
}

impl Store {
    pub(super) fn new(first_base: u64) -> Self {
        Self {
            promise: Ballot::default(),
            accepted: Ballot::default(),
            decided_index: 0,
            log_start: 0,
            log: VecDeque::new(),
            decided: Decided::new(first_base),
            changes: Vec::new(),
            has_failed: false,
        }
    }

    pub(super) fn log_end(&self) -> usize {
        self.log_start + self.log.len()
    }

    /// Entries of the log that are not decided.
    pub(super) fn undecided(&self) -> impl Iterator<Item = &Entry> {
        self.log.iter().skip(self.decided_index.saturating_sub(self.log_start))
    }

    /// Makes a change, and keeps it to be recorded.
    pub(super) fn change(&mut self, change: Change) {
        self.apply(&change);
        self.changes.push(change);
    }

    /// Makes a change. What must never happen fails the voter: it falls silent rather than break a promise.
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Promise(ballot) => {
                self.has_failed |= *ballot < self.promise;
                self.promise = *ballot;
            }
            Change::Accepted(ballot) => {
                self.has_failed |= *ballot < self.accepted || *ballot > self.promise;
                self.accepted = *ballot;
            }
            Change::Decided(index) => {
                self.has_failed |= *index < self.decided_index;
                self.decided_index = *index;
            }
            Change::Append(from, entries) => {
                let kept = from.checked_sub(self.log_start).filter(|kept| *kept <= self.log.len());
                self.has_failed |= kept.is_none() || self.takes_back(*from, entries);
                self.log.truncate(kept.unwrap_or(0));
                self.log.extend(entries.iter().cloned());
            }
            Change::Install(index, decided) => {
                self.has_failed |= decided.next() < self.decided.next() || *index < self.log_start;
                let gone = index.saturating_sub(self.log_start).min(self.log.len());
                self.log.drain(..gone);
                self.log_start = *index;
                self.decided = decided.clone();
            }
        }
    }

    /// Whether the entries that are decided would no longer be the same.
    fn takes_back(&self, from: usize, entries: &[Entry]) -> bool {
        let end = self.decided_index.min(self.log_end());
        (from..end).any(|index| entries.get(index - from) != self.log.get(index - self.log_start))
    }

    /// Forgets the entries before an index for what they come to, which is not recorded: it follows.
    pub(super) fn compact(&mut self, index: usize) {
        while self.log_start < index
            && let Some(entry) = self.log.pop_front()
        {
            self.decided.apply(&entry);
            self.log_start += 1;
        }
    }

    /// What the entries before an index come to.
    fn summary(&self, index: usize) -> Decided {
        let mut decided = self.decided.clone();
        let count = index.saturating_sub(self.log_start);
        self.log.iter().take(count).for_each(|entry| decided.apply(entry));
        decided
    }

    fn install(&mut self, index: usize, summary: Summary) {
        // The engine merges entries into what it got here, and that is decided from the beginning.
        let Summary::Decided(decided) = summary else {
            self.has_failed = true;
            return;
        };
        if index <= self.log_end() && self.summary(index) == decided {
            self.compact(index);
        } else {
            self.change(Change::Install(index, decided));
        }
    }

    fn read(&self, from: usize, to: usize) -> Vec<Entry> {
        let Some(skipped) = from.checked_sub(self.log_start) else { return Vec::new() };
        if to > self.log_end() || from >= to {
            return Vec::new();
        }
        self.log.iter().skip(skipped).take(to - from).cloned().collect()
    }
}

/// The state as the engine sees it.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<Store>>);

impl Shared {
    pub(super) fn new(store: Store) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nothing here can fail: to make it durable is the driver's.
impl Storage<Entry> for Shared {
    fn write_atomically(&mut self, ops: Vec<StorageOp<Entry>>) -> StorageResult<()> {
        let mut store = self.lock();
        let mut compacted = None;
        // Set last: what was accepted before may still stand where the new decided entries come.
        let mut decided = None;
        for op in ops {
            match op {
                StorageOp::AppendEntry(entry) => {
                    let end = store.log_end();
                    store.change(Change::Append(end, vec![entry]));
                }
                StorageOp::AppendEntries(entries) => {
                    let end = store.log_end();
                    store.change(Change::Append(end, entries));
                }
                StorageOp::AppendOnPrefix(from, entries) => {
                    if from < store.log_end() || !entries.is_empty() {
                        store.change(Change::Append(from, entries));
                    }
                }
                StorageOp::SetPromise(ballot) => store.change(Change::Promise(ballot)),
                StorageOp::SetDecidedIndex(index) => decided = Some(index),
                StorageOp::SetAcceptedRound(ballot) => {
                    if ballot != store.accepted {
                        store.change(Change::Accepted(ballot));
                    }
                }
                // The snapshot that takes the place of what is trimmed follows in the same call.
                StorageOp::Trim(_) => {}
                StorageOp::SetCompactedIdx(index) => compacted = Some(index),
                StorageOp::SetSnapshot(Some(summary)) => {
                    let index = compacted.take().unwrap_or(store.log_start);
                    store.install(index, summary);
                }
                // No reconfiguration is ever proposed, and snapshots are not taken away.
                StorageOp::SetStopsign(_) | StorageOp::SetSnapshot(None) => {}
            }
        }
        if let Some(index) = decided.filter(|index| *index != store.decided_index) {
            store.change(Change::Decided(index));
        }
        store.has_failed |= store.decided_index > store.log_end() || compacted.is_some();
        Ok(())
    }

    fn append_entry(&mut self, entry: Entry) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::AppendEntry(entry)])
    }

    fn append_entries(&mut self, entries: Vec<Entry>) -> StorageResult<()> {
        if entries.is_empty() {
            return Ok(());
        }
        self.write_atomically(vec![StorageOp::AppendEntries(entries)])
    }

    fn append_on_prefix(&mut self, from_idx: usize, entries: Vec<Entry>) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::AppendOnPrefix(from_idx, entries)])
    }

    fn set_promise(&mut self, n_prom: Ballot) -> StorageResult<()> {
        if n_prom == self.lock().promise {
            return Ok(());
        }
        self.write_atomically(vec![StorageOp::SetPromise(n_prom)])
    }

    fn set_decided_idx(&mut self, ld: usize) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::SetDecidedIndex(ld)])
    }

    fn get_decided_idx(&self) -> StorageResult<usize> {
        Ok(self.lock().decided_index)
    }

    fn set_accepted_round(&mut self, na: Ballot) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::SetAcceptedRound(na)])
    }

    fn get_accepted_round(&self) -> StorageResult<Option<Ballot>> {
        let ballot = self.lock().accepted;
        Ok((ballot != Ballot::default()).then_some(ballot))
    }

    fn get_entries(&self, from: usize, to: usize) -> StorageResult<Vec<Entry>> {
        Ok(self.lock().read(from, to))
    }

    fn get_log_len(&self) -> StorageResult<usize> {
        Ok(self.lock().log.len())
    }

    fn get_suffix(&self, from: usize) -> StorageResult<Vec<Entry>> {
        let store = self.lock();
        Ok(store.read(from, store.log_end()))
    }

    fn get_promise(&self) -> StorageResult<Option<Ballot>> {
        let ballot = self.lock().promise;
        Ok((ballot != Ballot::default()).then_some(ballot))
    }

    fn set_stopsign(&mut self, _: Option<StopSign>) -> StorageResult<()> {
        Ok(())
    }

    fn get_stopsign(&self) -> StorageResult<Option<StopSign>> {
        Ok(None)
    }

    fn trim(&mut self, _: usize) -> StorageResult<()> {
        Ok(())
    }

    fn set_compacted_idx(&mut self, _: usize) -> StorageResult<()> {
        Ok(())
    }

    fn get_compacted_idx(&self) -> StorageResult<usize> {
        Ok(self.lock().log_start)
    }

    fn set_snapshot(&mut self, snapshot: Option<Summary>) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::SetSnapshot(snapshot)])
    }

    fn get_snapshot(&self) -> StorageResult<Option<Summary>> {
        Ok(Some(Summary::Decided(self.lock().decided.clone())))
    }
}
