//! Bounded bursts. What does not fit the current burst waits here, in order, and follows when the next
//! window opens, so that a large sample does not overrun socket buffers of the usual 208 KiB.

use std::collections::VecDeque;

use crate::guid::Guid;
use crate::seq::{FragmentNumber, FragmentSet, SequenceNumber};
use crate::time::Instant;

use super::WriterLimits;
use super::history::TakenChange;
use super::proxy::Class;

/// A new change on its way to all readers of one class.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) number: SequenceNumber,
    /// Fragments already sent.
    pub(super) fragments_sent: FragmentNumber,
    /// The change, once begun: what was begun is sent to its end, even when the history lets it go.
    pub(super) begun: Option<TakenChange>,
}

/// Something on its way to one reader.
#[derive(Debug)]
pub(super) struct Repeat {
    pub(super) reader: Guid,
    pub(super) what: Repeated,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    /// History for a late joiner: the changes from `next` to `last`.
    Changes { next: SequenceNumber, last: SequenceNumber },
    /// Fragments of a change from `next` on; all of them, or the members of a set.
    Fragments { number: SequenceNumber, next: FragmentNumber, wanted: Option<FragmentSet> },
}

impl Repeat {
    /// Whether the reader has acknowledged all of it meanwhile.
    pub(super) fn is_needless(&self, acknowledged: SequenceNumber) -> bool {
        match self.what {
            Repeated::Changes { last, .. } => last <= acknowledged,
            Repeated::Fragments { number, .. } => number <= acknowledged,
        }
    }

    /// Whether the change, or the given fragment of it, will be sent by this anyway.
    fn covers(&self, reader: Guid, number: SequenceNumber, fragment: FragmentNumber) -> bool {
        self.reader == reader
            && match &self.what {
                Repeated::Changes { next, last } => (*next..=*last).contains(&number),
                Repeated::Fragments { number: other, next, wanted } => {
                    *other == number
                        && fragment >= *next
                        && wanted.as_ref().is_none_or(|wanted| wanted.contains(fragment))
                }
            }
    }
}

/// New changes that were sent to the readers of one class and not acknowledged: they may all still be in the buffers
/// of sockets.
#[derive(Debug)]
struct Flight {
    /// Octets sent since the beginning, and how many of them were acknowledged.
    sent: u64,
    acknowledged: u64,
    /// Changes sent to their end, and what `sent` was then.
    ends: VecDeque<(SequenceNumber, u64)>,
}

/// Ends that are told apart; later ones count as one, which is acknowledged with the last of them.
const ENDS_MAX: usize = 64;

impl Flight {
    fn ended(&mut self, number: SequenceNumber) {
        if self.ends.len() >= ENDS_MAX {
            self.ends.pop_back();
        }
        self.ends.push_back((number, self.sent));
    }

    fn acknowledge(&mut self, up_to: SequenceNumber) {
        while let Some((number, sent)) = self.ends.front().copied()
            && number <= up_to
        {
            self.acknowledged = sent;
            self.ends.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.sent - self.acknowledged).unwrap_or(usize::MAX)
    }
}

/// The queues of one writer and the octets its current window still admits.
#[derive(Debug)]
pub(super) struct Pacer {
    /// New changes, one queue per class.
    live: [VecDeque<Live>; 2],
    pub(super) repeats: VecDeque<Repeat>,
    /// The first change that waits for others, not for a window, for each class: then `live` is empty.
    held: [Option<SequenceNumber>; 2],
    left: [usize; 2],
    window_end: Instant,
    flights: [Flight; 2],
}

impl Pacer {
    pub(super) const fn new() -> Self {
        Self {
            live: [VecDeque::new(), VecDeque::new()],
            repeats: VecDeque::new(),
            held: [None; 2],
            left: [0; 2],
            window_end: Instant(0),
            flights: [const { Flight { sent: 0, acknowledged: 0, ends: VecDeque::new() } }; 2],
        }
    }

    /// Opens the next window when it is time.
    pub(super) fn refresh(&mut self, now: Instant, limits: &WriterLimits) {
        if now >= self.window_end {
            self.window_end = now.after(limits.burst_interval).unwrap_or(now);
            self.left = Class::ALL.map(|class| limits.burst_bytes(class));
        }
    }

    /// Readers of this class acknowledge what they have: as much may be on its way as their sockets hold.
    pub(super) fn widen(&mut self, class: Class, window_bytes: usize) {
        let room = window_bytes.saturating_sub(self.in_flight(class));
        if let Some(left) = self.left.get_mut(class as usize) {
            *left = room.max(*left);
        }
    }

    /// Octets of new changes that were sent to the readers of this class and not acknowledged.
    pub(super) fn in_flight(&self, class: Class) -> usize {
        self.flights.get(class as usize).map_or(0, Flight::bytes)
    }

    /// Everyone has all changes up to this one.
    pub(super) fn acknowledged(&mut self, up_to: SequenceNumber) {
        self.flights.iter_mut().for_each(|flight| flight.acknowledge(up_to));
    }

    /// Octets of a new change were sent; `end`: its last.
    pub(super) fn sent_live(&mut self, class: Class, bytes: usize, end: Option<SequenceNumber>) {
        self.spend(class, bytes);
        let Some(flight) = self.flights.get_mut(class as usize) else { return };
        flight.sent += bytes as u64;
        if let Some(number) = end {
            flight.ended(number);
        }
    }

    /// Whether readers of this class may be sent more in this window.
    pub(super) fn may_send(&self, class: Class) -> bool {
        self.left.get(class as usize).is_some_and(|left| *left > 0)
    }

    /// `bytes` were sent.
    pub(super) fn spend(&mut self, class: Class, bytes: usize) {
        if let Some(left) = self.left.get_mut(class as usize) {
            *left = left.saturating_sub(bytes);
        }
    }

    /// When the next window opens.
    pub(super) const fn window_end(&self) -> Instant {
        self.window_end
    }

    /// When the next window opens, if something waits for it; what waits for others does not.
    pub(super) fn due(&self) -> Option<Instant> {
        let waits = self.live.iter().any(|queue| !queue.is_empty()) || !self.repeats.is_empty();
        waits.then_some(self.window_end)
    }

    /// Queues a new change for the readers of one class.
    pub(super) fn push_live(&mut self, number: SequenceNumber, class: Class) {
        if let Some(queue) = self.live.get_mut(class as usize) {
            queue.push_back(Live { number, fragments_sent: 0, begun: None });
        }
    }

    /// A new change waits for others before it goes to the readers of one class.
    pub(super) fn hold(&mut self, number: SequenceNumber, class: Class) {
        if let Some(first) = self.held.get_mut(class as usize) {
            first.get_or_insert(number);
        }
    }

    /// Nothing waits for others any more.
    pub(super) const fn release_held(&mut self) {
        self.held = [None; 2];
    }

    /// The new change to send next to the readers of one class.
    pub(super) fn first_live(&mut self, class: Class) -> Option<&mut Live> {
        self.live.get_mut(class as usize)?.front_mut()
    }

    pub(super) fn pop_live(&mut self, class: Class) {
        if let Some(queue) = self.live.get_mut(class as usize) {
            queue.pop_front();
        }
    }

    /// The first change not yet sent to all readers of one class, and how many of its fragments were.
    pub(super) fn unsent_to(&self, class: Class) -> Option<(SequenceNumber, FragmentNumber)> {
        let held = self.held.get(class as usize).copied().flatten();
        let live = self.live.get(class as usize).and_then(VecDeque::front);
        held.map(|number| (number, 0)).or_else(|| live.map(|live| (live.number, live.fragments_sent)))
    }

    /// The first change not yet sent to all readers.
    pub(super) fn unsent(&self) -> Option<SequenceNumber> {
        let first = |class| self.unsent_to(class).map(|(number, _)| number);
        match (first(Class::SameHost), first(Class::Remote)) {
            (Some(local), Some(remote)) => Some(local.min(remote)),
            (local, remote) => local.or(remote),
        }
    }

    /// Whether the change, or the given fragment of it, is on its way to the reader anyway.
    pub(super) fn covers(&self, reader: Guid, number: SequenceNumber, fragment: FragmentNumber) -> bool {
        self.repeats.iter().any(|repeat| repeat.covers(reader, number, fragment))
    }

    /// Lets the next reader have its turn; the order of one reader's repetitions stays.
    pub(super) fn yield_turn(&mut self, reader: Guid) {
        for _ in 0..self.repeats.len() {
            if self.repeats.front().is_none_or(|repeat| repeat.reader != reader) {
                return;
            }
            self.repeats.rotate_left(1);
        }
    }

    /// Datagrams to the readers of one class have another size from now on: what was begun begins anew.
    pub(super) fn recut(&mut self, class: Class, is_of_class: impl Fn(Guid) -> bool) {
        if let Some(live) = self.live.get_mut(class as usize).and_then(VecDeque::front_mut) {
            live.fragments_sent = 0;
        }
        for repeat in self.repeats.iter_mut().filter(|repeat| is_of_class(repeat.reader)) {
            if let Repeated::Fragments { next, wanted, .. } = &mut repeat.what {
                (*next, *wanted) = (1, None);
            }
        }
    }

    /// Drops what was meant for a reader that is gone.
    pub(super) fn forget(&mut self, reader: Guid) {
        self.repeats.retain(|repeat| repeat.reader != reader);
    }
}
