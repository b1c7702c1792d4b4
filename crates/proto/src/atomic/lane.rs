//! What a member holds of one lane in one epoch.

use std::collections::VecDeque;

/// Entries of one sender, in order, from the first that is not delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lane<B> {
    entries: VecDeque<(u64, B)>,
    /// Entries delivered.
    pub(crate) delivered: u64,
    /// Entries received, all from the first.
    pub(crate) received: u64,
    /// All members vouch for so many of them.
    pub(crate) stable: u64,
    /// No entry that is not received has this stamp or a smaller one.
    promise: u64,
    /// A promise by the sender's clock that begins when so many are received: (sent, clock).
    later: Option<(u64, u64)>,
}

impl<B> Lane<B> {
    pub(crate) fn new(base_clock: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            delivered: 0,
            received: 0,
            stable: 0,
            promise: base_clock,
            later: None,
        }
    }

    /// What was held of a lane when the process ended.
    pub(crate) fn restore(base_clock: u64, delivered: u64, entries: Vec<(u64, B)>) -> Self {
        let received = delivered + entries.len() as u64;
        Self { entries: entries.into(), delivered, received, ..Self::new(base_clock) }
    }

    /// Takes the next entry; its stamp is larger than those before.
    pub(crate) fn push(&mut self, stamp: u64, body: B) {
        self.entries.push_back((stamp, body));
        self.received += 1;
        self.promise = self.promise.max(stamp);
        self.settle_promise();
    }

    /// The sender had sent so many when its clock was this.
    pub(crate) fn promised(&mut self, sent: u64, clock: u64) {
        if self.later.is_none_or(|(before, _)| sent >= before) {
            self.later = Some((sent, clock));
        }
        self.settle_promise();
    }

    fn settle_promise(&mut self) {
        if let Some((sent, clock)) = self.later
            && sent <= self.received
        {
            self.promise = self.promise.max(clock);
            self.later = None;
        }
    }

    /// Whether its sender has sent more than was received.
    pub(crate) fn is_behind(&self) -> bool {
        self.later.is_some()
    }

    /// What is not received has larger stamps.
    pub(crate) fn promise(&self) -> u64 {
        self.promise
    }

    /// The stamp of the next entry to be delivered.
    pub(crate) fn next_stamp(&self) -> Option<u64> {
        self.entries.front().map(|(stamp, _)| *stamp)
    }

    /// The stamp of the last entry.
    pub(crate) fn last_stamp(&self) -> u64 {
        self.entries.back().map_or(0, |(stamp, _)| *stamp)
    }

    /// Takes the next entry out.
    pub(crate) fn deliver(&mut self) -> Option<B> {
        let (_, body) = self.entries.pop_front()?;
        self.delivered += 1;
        Some(body)
    }

    /// All that is not delivered and comes after so many.
    pub(crate) fn after(mut self, count: u64) -> impl Iterator<Item = B> {
        let first = count.saturating_sub(self.delivered) as usize;
        self.entries.drain(..first.min(self.entries.len()));
        self.entries.into_iter().map(|(_, body)| body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_promises_once_what_was_sent_before_is_received() {
        let mut lane = Lane::new(0);
        lane.promised(2, 9);
        assert_eq!(lane.promise(), 0);
        lane.push(3, ());
        assert_eq!(lane.promise(), 3);
        lane.push(4, ());
        assert_eq!(lane.promise(), 9);
        lane.promised(2, 12);
        assert_eq!(lane.promise(), 12);
        // Later news of what is not received do not undo it.
        lane.promised(5, 20);
        assert_eq!(lane.promise(), 12);
    }

    #[test]
    fn what_comes_after_a_cut_is_what_is_neither_delivered_nor_within() {
        let mut lane = Lane::new(0);
        (1..=5).for_each(|number| lane.push(number, number));
        assert_eq!(lane.deliver(), Some(1));
        assert_eq!(lane.after(3).collect::<Vec<_>>(), [4, 5]);
    }
}
