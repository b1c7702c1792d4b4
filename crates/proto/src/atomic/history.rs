//! What a member keeps for those who join later, in the agreed order: equal in all members.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::atomic::message::{Fetch, StatePart, Transfer};
use crate::atomic::{Body, Delivered, MemberId};
use crate::guid::Guid;

/// Which entries replace one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryKey {
    /// The writer.
    pub writer: Guid,
    /// The hash of the key of its instance.
    pub instance: [u8; 16],
}

/// The agreed history of one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct History<B> {
    entries: BTreeMap<u64, Delivered<B>>,
    of_key: BTreeMap<HistoryKey, VecDeque<u64>>,
    /// What stands for everything up to a position.
    state: Option<(u64, Arc<[u8]>)>,
    /// Entries kept at most; the first go.
    entries_max: usize,
}

impl<B: Body> History<B> {
    pub(crate) const fn new(entries_max: usize) -> Self {
        Self { entries: BTreeMap::new(), of_key: BTreeMap::new(), state: None, entries_max }
    }

    /// Whether it is kept; what is not any more because of it goes to `gone`.
    pub(crate) fn insert(&mut self, entry: &Delivered<B>, gone: &mut Vec<u64>) -> bool {
        let Some(key) = entry.body.history_key() else { return false };
        if self.state.as_ref().is_some_and(|(through, _)| entry.position <= *through) {
            return false;
        }
        if self.entries.insert(entry.position, entry.clone()).is_some() {
            return false;
        }
        let of_key = self.of_key.entry(key).or_default();
        of_key.push_back(entry.position);
        let depth = entry.body.history_depth() as usize;
        if depth > 0
            && of_key.len() > depth
            && let Some(first) = of_key.pop_front()
        {
            self.entries.remove(&first);
            gone.push(first);
        }
        if self.entries.len() > self.entries_max
            && let Some((first, _)) = self.entries.first_key_value()
        {
            let first = *first;
            self.remove(first);
            gone.push(first);
        }
        true
    }

    fn remove(&mut self, position: u64) {
        let Some(entry) = self.entries.remove(&position) else { return };
        let Some(key) = entry.body.history_key() else { return };
        if let Some(of_key) = self.of_key.get_mut(&key) {
            of_key.retain(|it| *it != position);
            if of_key.is_empty() {
                self.of_key.remove(&key);
            }
        }
    }

    /// Everything up to a position is in this state from now on, unless it is already; the entries that it
    /// replaces.
    pub(crate) fn replace(&mut self, through: u64, state: Arc<[u8]>) -> Option<Vec<u64>> {
        if self.state.as_ref().is_some_and(|(before, _)| *before >= through) {
            return None;
        }
        let positions: Vec<u64> = self.entries.range(..=through).map(|(position, _)| *position).collect();
        positions.iter().for_each(|position| self.remove(*position));
        self.state = Some((through, state));
        Some(positions)
    }

    /// What somebody asks for, up to so many octets, but at least one entry; `position` is where this member
    /// is.
    pub(crate) fn part(
        &self,
        (from, instance): (MemberId, u64),
        fetch: &Fetch,
        position: u64,
        octets_max: usize,
    ) -> Transfer<B> {
        let after = fetch.after;
        let through = position.min(fetch.until).max(after);
        let (entries, state, lost) = (Vec::new(), None, 0);
        let mut part = Transfer { from, instance, after, state, entries, through, position, lost };
        let mut octets = 0;
        let mut begin = after;
        if let Some((through, state)) = self.state.as_ref().filter(|(through, _)| *through > after) {
            let known = if fetch.state == *through { fetch.offset as usize } else { 0 };
            let first = if known < state.len() { known } else { 0 };
            let last = state.len().min(first.saturating_add(octets_max));
            let of_part = Arc::from(state.get(first..last).unwrap_or(&[]));
            let (total, offset) = (state.len() as u64, first as u64);
            part.state = Some(StatePart { through: *through, total, offset, octets: of_part });
            if last < state.len() {
                part.through = after;
                return part;
            }
            begin = *through;
            part.through = part.through.max(begin);
            octets = last - first;
        }
        let wanted = begin.saturating_add(1)..=part.through.max(begin.saturating_add(1));
        for (position, entry) in self.entries.range(wanted).filter(|(it, _)| **it <= part.through) {
            octets += entry.body.octets();
            if octets > octets_max && (!part.entries.is_empty() || part.state.is_some()) {
                part.through = part.entries.last().map_or(begin, |last| last.position);
                break;
            }
            debug_assert_eq!(*position, entry.position);
            part.entries.push(entry.clone());
        }
        part
    }

    /// How many entries are kept after one position, up to another.
    pub(crate) fn count(&self, after: u64, through: u64) -> u64 {
        if through <= after { 0 } else { self.entries.range(after + 1..=through).count() as u64 }
    }

    /// Whether more than half of the entries are kept that may be.
    pub(crate) fn is_half_full(&self) -> bool {
        self.entries.len() > self.entries_max / 2
    }

    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = &Delivered<B>> {
        self.entries.values()
    }

    pub(crate) fn state(&self) -> Option<&(u64, Arc<[u8]>)> {
        self.state.as_ref()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.entries_max);
    }
}
