//! What is still to be sent of some changes.

use crate::seq::{FragmentNumber, FragmentSet, SequenceNumber};

/// Changes from `number` to `last`, of the first the fragments from `fragment` on; if there is a set, only
/// those in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) number: SequenceNumber,
    pub(crate) last: SequenceNumber,
    pub(crate) fragment: FragmentNumber,
    pub(crate) wanted: Option<FragmentSet>,
}

impl Span {
    /// All of the changes.
    pub(crate) const fn new(number: SequenceNumber, last: SequenceNumber) -> Self {
        Self { number, last, fragment: 1, wanted: None }
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_over(&self) -> bool {
        self.number > self.last
    }

    /// Whether a part of the first change was sent, or a part is all that is to be sent of it.
    pub(crate) const fn is_inside(&self) -> bool {
        self.fragment > 1 || self.wanted.is_some()
    }

    /// Changes below `next` were sent, or are not to be.
    pub(crate) const fn advance(&mut self, next: SequenceNumber) {
        (self.number, self.fragment, self.wanted) = (next, 1, None);
    }

    /// Datagrams have another size from now on: what was begun begins anew.
    pub(crate) const fn recut(&mut self) {
        (self.fragment, self.wanted) = (1, None);
    }

    /// Whether the fragment of a change is in it.
    pub(crate) fn has(&self, number: SequenceNumber, fragment: FragmentNumber) -> bool {
        if number == self.number {
            fragment >= self.fragment && self.wanted.as_ref().is_none_or(|wanted| wanted.contains(fragment))
        } else {
            number > self.number && number <= self.last
        }
    }

    /// Of the first change, the next fragment to send and how many follow it without a hole; `None`: none.
    pub(crate) fn next_fragments(&self) -> Option<(FragmentNumber, FragmentNumber)> {
        let Some(wanted) = &self.wanted else { return Some((self.fragment, FragmentNumber::MAX)) };
        let first = wanted.iter().find(|fragment| *fragment >= self.fragment)?;
        let mut next = first;
        while wanted.contains(next) {
            next = next.saturating_add(1);
        }
        Some((first, next - first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_that_are_wanted_come_in_runs() {
        let mut wanted = FragmentSet::empty(3);
        [3, 4, 7].into_iter().for_each(|fragment| {
            wanted.insert(fragment);
        });
        let mut span = Span { wanted: Some(wanted), ..Span::new(SequenceNumber(1), SequenceNumber(2)) };
        assert_eq!(span.next_fragments(), Some((3, 2)));
        span.fragment = 5;
        assert_eq!(span.next_fragments(), Some((7, 1)));
        assert!(span.has(SequenceNumber(1), 7) && !span.has(SequenceNumber(1), 4));
        assert!(span.has(SequenceNumber(2), 1) && !span.has(SequenceNumber(3), 1));
        span.fragment = 8;
        assert_eq!(span.next_fragments(), None);
    }
}
