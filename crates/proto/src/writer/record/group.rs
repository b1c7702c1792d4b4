//! What the writers of a publisher with GROUP access have in common (RTPS 2.5 §8.7.5, §8.7.6): one numbering
//! of all their changes, and the set of writers there is.
//!
//! Every change takes its number under the lock of its writer, after it was admitted. So a writer that reads
//! the last number knows that what it will write gets a higher one, and its heartbeats may say of all up to
//! that number which of them are its own. Both go with each of its heartbeats and samples.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::history::History;
use crate::guid::EntityId;
use crate::seq::SequenceNumber;
use crate::wire::{GroupDigest, HeartbeatGroup};

/// What the writers of one publisher share.
#[derive(Debug, Default)]
pub struct WriterGroup {
    last: AtomicI64,
    writers: Mutex<BTreeSet<EntityId>>,
    /// The digest of `writers`, its first octet the highest.
    digest: AtomicU32,
}

impl WriterGroup {
    /// The number of the last change of any of the writers; 0 before the first.
    #[must_use]
    pub fn last(&self) -> SequenceNumber {
        SequenceNumber(self.last.load(Ordering::SeqCst))
    }

    /// The number of one more change.
    pub fn advance(&self) -> SequenceNumber {
        SequenceNumber(self.last.fetch_add(1, Ordering::SeqCst)).next()
    }

    /// A writer is about to be announced.
    pub fn add_writer(&self, writer: EntityId) {
        self.change_writers(|writers| writers.insert(writer));
    }

    /// A writer is withdrawn.
    pub fn remove_writer(&self, writer: EntityId) {
        self.change_writers(|writers| writers.remove(&writer));
    }

    fn change_writers(&self, change: impl FnOnce(&mut BTreeSet<EntityId>) -> bool) {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if change(&mut writers) {
            let digest = GroupDigest::of(writers.iter().copied());
            self.digest.store(u32::from_be_bytes(digest.0), Ordering::SeqCst);
        }
    }

    /// The digest of the writers that others are told of.
    #[must_use]
    pub fn writers(&self) -> GroupDigest {
        GroupDigest(self.digest.load(Ordering::SeqCst).to_be_bytes())
    }

    /// What a heartbeat from `first` to `last` says; nothing before anything is written, as there is no
    /// number yet that it could name (§8.3.8.6.3).
    pub(crate) fn heartbeat(
        &self,
        history: &History,
        first: SequenceNumber,
        last: SequenceNumber,
    ) -> Option<HeartbeatGroup> {
        // Of what is written but not announced yet, the last announced change only tells that it comes later.
        let announced = || history.last_numbered(last);
        let current = if last < history.last() { announced()? } else { self.last() };
        if current < SequenceNumber::FIRST {
            return None;
        }
        let (first, last) = if first <= last {
            // Of one that is gone nobody knows the number any more, and what is between it and the next may
            // be on its way or wait at the reader: then this says nothing.
            let first = history.numbered(first).unwrap_or(SequenceNumber::FIRST).min(current);
            (first, announced().unwrap_or(first).clamp(first, current))
        } else {
            (current, current.previous())
        };
        Some(HeartbeatGroup { current, first, last, writers: Some(self.writers()) })
    }
}
