//! What a reliable writer sent ahead of a gap, until the gap closes or proves irrelevant.
//!
//! Numbers that only one HEARTBEAT or GAP says to be gone count as SAMPLE_LOST when the next HEARTBEAT bears
//! it out, and are asked for after all when it does not. What a KEEP_ALL writer leaves out for a reader in
//! step that has no filter is lost. Where it takes such a reader for a new one, as after a stop longer than
//! the lease, SUBSCRIPTION_MATCHED tells of it by a match more. What a KEEP_LAST writer leaves out may have
//! been replaced, and is not lost.

use std::collections::BTreeMap;

use super::change::Change;
use crate::seq::{SET_BITS_MAX, SequenceNumber, SequenceSet};
use crate::stats::DropReason;
use crate::tuning::reader::IRRELEVANT_RANGES_MAX;

/// What a change that waits takes beside its payload.
const CHANGE_BYTES: usize = size_of::<(i64, Change<'static>, usize)>();

/// Disjoint, ascending, inclusive ranges of sequence numbers; a range of any width is one entry.
#[derive(Debug, Default)]
pub(super) struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    /// Adds `start..=end`; false when there is no room for another range.
    pub(super) fn insert(&mut self, start: i64, end: i64) -> bool {
        if start > end {
            return true;
        }
        // Neighbours that touch the new range melt into it.
        let from = self.0.partition_point(|(_, stop)| stop.saturating_add(1) < start);
        let to = self.0.partition_point(|(begin, _)| *begin <= end.saturating_add(1));
        let touched = self.0.get(from..to).unwrap_or(&[]);
        let merged = match (touched.first(), touched.last()) {
            (Some(first), Some(last)) => (first.0.min(start), last.1.max(end)),
            _ => (start, end),
        };
        if from >= to && self.0.len() >= IRRELEVANT_RANGES_MAX {
            return false;
        }
        self.0.splice(from..to.max(from), [merged]);
        true
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The end of the range that covers `number`.
    pub(super) fn end_covering(&self, number: i64) -> Option<i64> {
        let at = self.0.partition_point(|(_, end)| *end < number);
        self.0.get(at).filter(|(start, _)| *start <= number).map(|(_, end)| *end)
    }

    /// Forgets every range that ends below `number`.
    pub(super) fn forget_below(&mut self, number: i64) {
        let done = self.0.partition_point(|(_, end)| *end < number);
        if done > 0 {
            self.0.drain(..done);
        }
    }

    /// How many numbers of `start..=end` are covered.
    fn covered(&self, start: i64, end: i64) -> i64 {
        self.0.iter().map(|(from, to)| ((*to).min(end) - (*from).max(start)).saturating_add(1).max(0)).sum()
    }
}

/// How a number relates to what is known of its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Arrived before, or is irrelevant.
    Known,
    /// The next to deliver.
    Next,
    /// Something before it is missing.
    Early,
}

/// What was skipped since the last delivery may still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TakenBack;

/// The order of one reliable writer: everything below `expected` is delivered or irrelevant.
#[derive(Debug)]
pub(super) struct Reorder {
    expected: i64,
    first_available: i64,
    /// The highest number really delivered.
    delivered: i64,
    /// The highest number that was passed over without.
    skipped: i64,
    /// So many numbers are gone by the word of one HEARTBEAT or GAP, which nothing has borne out yet.
    unconfirmed: u64,
    /// With their octets: the cache takes the payload out before they leave.
    pending: BTreeMap<i64, (Change<'static>, usize)>,
    pending_bytes: usize,
    irrelevant: Intervals,
}

impl Reorder {
    pub(super) fn new() -> Self {
        Self {
            expected: SequenceNumber::FIRST.0,
            first_available: SequenceNumber::FIRST.0,
            delivered: 0,
            skipped: 0,
            unconfirmed: 0,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            irrelevant: Intervals::default(),
        }
    }

    /// The lowest number that is neither delivered nor irrelevant: the base of an ACKNACK.
    pub(super) const fn expected(&self) -> SequenceNumber {
        SequenceNumber(self.expected)
    }

    /// The highest number that was neither delivered nor will be.
    pub(super) const fn skipped(&self) -> SequenceNumber {
        SequenceNumber(self.skipped)
    }

    #[inline(always)]
    pub(super) fn arrival(&self, number: SequenceNumber) -> Arrival {
        let number = number.0;
        if number < self.expected.max(self.first_available)
            || !self.pending.is_empty() && self.pending.contains_key(&number)
            || !self.irrelevant.is_empty() && self.irrelevant.end_covering(number).is_some()
        {
            Arrival::Known
        } else if number == self.expected {
            Arrival::Next
        } else {
            Arrival::Early
        }
    }

    /// Keeps `change` until its turn. When full, what is furthest ahead gives way to what is nearer, so that
    /// repairs always make progress; what gave way is asked for again. What is next has a place of its own:
    /// were it thrown away while the cache is full, it would be repeated for ever. `others`: octets that wait
    /// of other writers.
    pub(super) fn insert(
        &mut self,
        change: Change<'static>,
        others: usize,
        limits: &super::ReaderLimits,
    ) -> Result<(), DropReason> {
        let number = change.sequence_number.0;
        let bytes = change.payload.len() + CHANGE_BYTES;
        while self.pending.len() >= limits.reorder_samples_max
            || self.pending_bytes.saturating_add(bytes).saturating_add(others) > limits.reorder_bytes_max
        {
            match self.pending.last_key_value() {
                Some((last, _)) if *last > number => self.remove(*last),
                _ if number == self.expected => break,
                _ => return Err(DropReason::BufferFull),
            }
        }
        self.pending_bytes += bytes;
        self.pending.insert(number, (change, bytes));
        Ok(())
    }

    fn remove(&mut self, number: i64) {
        if let Some((_, bytes)) = self.pending.remove(&number) {
            self.pending_bytes -= bytes;
        }
    }

    /// Numbers `start..=end` will never come or never matter.
    pub(super) fn skip(&mut self, start: SequenceNumber, end: SequenceNumber) -> Result<(), DropReason> {
        let start = start.0.max(self.expected);
        if !self.irrelevant.insert(start, end.0) {
            return Err(DropReason::BufferFull);
        }
        self.advance();
        Ok(())
    }

    /// How many of `start..=end` were still to come.
    pub(super) fn awaited(&self, start: i64, end: i64) -> u64 {
        let from = start.max(self.expected).max(self.first_available);
        if end < from {
            return 0;
        }
        let arrived = self.pending.range(from..=end).count() as i64;
        let irrelevant = self.irrelevant.covered(from, end);
        u64::try_from(end.saturating_add(1) - from - arrived - irrelevant).unwrap_or(0)
    }

    /// The writer has nothing below `first` any more. Returns how many numbers are lost by that: those up to
    /// `known`, of which more than this one HEARTBEAT tells. The others are unconfirmed.
    pub(super) fn first_available(&mut self, first: SequenceNumber, known: SequenceNumber) -> u64 {
        let from = self.expected.max(self.first_available);
        if first.0 <= from {
            return 0;
        }
        let arrived_last = self.pending.last_key_value().map_or(0, |(number, _)| *number);
        let known = known.0.max(arrived_last).min(first.0 - 1);
        let lost = self.awaited(from, known);
        self.unconfirmed += self.awaited(known.saturating_add(1), first.0 - 1);
        self.first_available = first.0;
        self.advance();
        lost
    }

    /// By a GAP the writer says that `start..=end` will not come: what was still to come is lost if a
    /// HEARTBEAT bears that out. Returns whether there is any.
    pub(super) fn note_unconfirmed(&mut self, start: SequenceNumber, end: SequenceNumber) -> bool {
        let missed = self.awaited(start.0, end.0);
        self.unconfirmed += missed;
        missed > 0
    }

    /// Whether one HEARTBEAT or GAP alone says that something is gone.
    pub(super) const fn is_unconfirmed(&self) -> bool {
        self.unconfirmed > 0
    }

    /// The writer says what its first and last are. When more was skipped than it has, or what it still has
    /// on the word of another HEARTBEAT alone, somebody lied: the skipping is taken back, and what was hidden
    /// is asked for after all. Otherwise nothing is unconfirmed any more. Returns how many are lost by that.
    pub(super) fn hear(&mut self, first: SequenceNumber, last: SequenceNumber) -> Result<u64, TakenBack> {
        let unconfirmed = std::mem::take(&mut self.unconfirmed);
        let beyond = self.expected.max(self.first_available) - 1 > last.0.max(self.delivered);
        if beyond || unconfirmed > 0 && first.0 < self.first_available {
            self.expected = self.delivered + 1;
            self.first_available = self.expected;
            self.irrelevant = Intervals::default();
            return Err(TakenBack);
        }
        Ok(unconfirmed)
    }

    /// Nothing that was skipped so far counts.
    pub(super) const fn forget_unconfirmed(&mut self) {
        self.unconfirmed = 0;
    }

    /// The change to deliver now, if it is here. It stays until [`Self::delivered`].
    pub(super) fn next(&mut self) -> Option<&mut Change<'static>> {
        self.pending.get_mut(&self.expected).map(|(change, _)| change)
    }

    /// Octets of changes that wait for their turn.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// How many changes wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Whether anything waits for its turn.
    pub(super) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The change with the number `expected` is dealt with.
    #[inline(always)]
    pub(super) fn delivered(&mut self) {
        if self.is_waiting() {
            self.remove(self.expected);
        }
        self.delivered = self.expected;
        self.expected = self.expected.saturating_add(1);
        if !self.irrelevant.is_empty() || self.expected < self.first_available {
            self.advance();
        }
    }

    /// Moves `expected` over what is irrelevant, stopping at what is here.
    fn advance(&mut self) {
        loop {
            let target = if self.expected < self.first_available {
                self.first_available
            } else if let Some(end) = self.irrelevant.end_covering(self.expected) {
                end.saturating_add(1)
            } else {
                break;
            };
            let here = self.pending.first_key_value().map_or(i64::MAX, |(number, _)| *number);
            let next = target.min(here);
            if next <= self.expected {
                break;
            }
            self.skipped = next - 1;
            self.expected = next;
        }
        self.irrelevant.forget_below(self.expected);
    }

    /// Whether any of `expected..=last` is missing, other than those `excused`.
    pub(super) fn missing(
        &self,
        last: SequenceNumber,
        excused: impl Fn(SequenceNumber) -> bool,
    ) -> SequenceSet {
        let mut set = SequenceSet::empty(self.expected());
        let end = last.0.min(self.expected.saturating_add(i64::from(SET_BITS_MAX) - 1));
        let mut number = self.expected.max(self.first_available);
        while number <= end {
            if let Some(covered) = self.irrelevant.end_covering(number) {
                number = covered.saturating_add(1);
                continue;
            }
            if !self.pending.contains_key(&number) && !excused(SequenceNumber(number)) {
                set.insert(SequenceNumber(number));
            }
            number += 1;
        }
        set
    }
}
