//! Merging irrelevant sequence numbers into as few GAPs as possible (RTPS 2.5 §8.3.8.4).

use crate::guid::EntityId;
use crate::seq::{SET_BITS_MAX, SequenceNumber, SequenceSet};
use crate::wire::Gap;

/// A GAP that takes ranges in ascending order until one is out of its reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GapBuilder {
    start: SequenceNumber,
    list: SequenceSet,
    filtered: u64,
}

impl GapBuilder {
    /// All numbers from `start` up to but without `end`.
    pub(crate) const fn range(start: SequenceNumber, end: SequenceNumber) -> Self {
        Self { start, list: SequenceSet::empty(end), filtered: 0 }
    }

    /// So many of the changes are there, but not for the reader.
    pub(crate) const fn filtering(mut self, count: u64) -> Self {
        self.filtered += count;
        self
    }

    /// All of them are there, or were, but not for the reader.
    pub(crate) fn of_refused(mut self) -> Self {
        let range = self.list.base().0.abs_diff(self.start.0);
        self.filtered = range + self.list.iter().count() as u64;
        self
    }

    /// Adds the numbers from `start` up to but without `end`; what does not fit is returned.
    pub(crate) fn add(
        &mut self,
        start: SequenceNumber,
        end: SequenceNumber,
    ) -> Option<(SequenceNumber, SequenceNumber)> {
        if start <= self.list.base() && self.list.bits() == 0 {
            self.list = SequenceSet::empty(end.max(self.list.base()));
            return None;
        }
        let reach = self.list.base().plus(SET_BITS_MAX.into());
        let mut number = start;
        while number < end.min(reach) {
            self.list.insert(number);
            number = number.next();
        }
        (number < end).then_some((number, end))
    }

    pub(crate) const fn gap(&self, reader: EntityId, writer: EntityId) -> Gap {
        Gap { reader, writer, start: self.start, list: self.list, filtered: self.filtered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(start: i64, end: i64) -> (SequenceNumber, SequenceNumber) {
        (SequenceNumber(start), SequenceNumber(end))
    }

    #[test]
    fn fact_9_ranges_become_a_range_and_a_bitmap() {
        let mut gap = GapBuilder::range(SequenceNumber(1), SequenceNumber(1_000_000_000));
        assert_eq!(gap.add(SequenceNumber(1_000_000_000), SequenceNumber(1_000_000_005)), None);
        assert_eq!(gap.add(SequenceNumber(1_000_000_007), SequenceNumber(1_000_000_009)), None);
        let gap = gap.gap(EntityId::UNKNOWN, EntityId::UNKNOWN);
        assert_eq!((gap.start, gap.list.base()), numbers(1, 1_000_000_005));
        assert_eq!(
            gap.list.iter().collect::<Vec<_>>(),
            [SequenceNumber(1_000_000_007), SequenceNumber(1_000_000_008)]
        );
    }

    #[test]
    fn what_is_out_of_reach_is_left_for_the_next_gap() {
        let mut gap = GapBuilder::range(SequenceNumber(1), SequenceNumber(2));
        let (start, end) = numbers(10, i64::MAX);
        assert_eq!(gap.add(start, end), Some(numbers(258, i64::MAX)));
        assert_eq!(gap.list.iter().count(), 248);
        assert_eq!(gap.add(SequenceNumber(5_000), SequenceNumber(5_001)), Some(numbers(5_000, 5_001)));
    }
}
