//! Bounded bursts. What does not fit the current burst waits here, in order, and follows when the next
//! burst begins, so that a large sample does not overrun socket buffers of the usual 208 KiB; or, on its way to reliable
//! readers on other hosts, when the window of the road has room.

use std::collections::VecDeque;

use crate::guid::Guid;
use crate::payload::Payload;
use crate::seq::{FragmentNumber, FragmentSet, SequenceNumber};
use crate::time::Instant;

use super::class::Class;
use super::road::Road;
use crate::writer::WriterLimits;
use crate::writer::record::change::TakenChange;

/// New changes on their way to all readers of one class: those from `number` to `last` that the history still holds when
/// their turn comes.
#[derive(Debug)]
pub(in crate::writer) struct Live {
    pub(in crate::writer) number: SequenceNumber,
    pub(in crate::writer) last: SequenceNumber,
    /// Fragments of the first already sent.
    pub(in crate::writer) fragments_sent: FragmentNumber,
    /// The first, once begun: what was begun is sent to its end, even when the history lets it go.
    pub(in crate::writer) begun: Option<TakenChange>,
    pub(in crate::writer) tail: Tail,
}

/// What becomes of the last fragments of the last queued change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::writer) enum Tail {
    /// That is to be seen.
    Unknown,
    /// They wait for the next change of a flow, until then.
    Held(Instant),
    /// They leave as soon as the burst allows it.
    Released,
}

/// Something on its way to one reader.
#[derive(Debug)]
pub(in crate::writer) struct Repeat {
    pub(in crate::writer) reader: Guid,
    pub(in crate::writer) what: Repeated,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::writer) enum Repeated {
    /// History for a late joiner: the changes from `next` to `last`.
    Changes { next: SequenceNumber, last: SequenceNumber },
    /// Fragments of a change from `next` on; all of them, or the members of a set.
    Fragments { number: SequenceNumber, next: FragmentNumber, wanted: Option<FragmentSet> },
}

impl Repeated {
    /// The first change of it.
    const fn first(&self) -> SequenceNumber {
        match self {
            Self::Changes { next, .. } => *next,
            Self::Fragments { number, .. } => *number,
        }
    }
}

impl Repeat {
    /// Whether the reader has acknowledged all of it meanwhile.
    pub(in crate::writer) fn is_needless(&self, acknowledged: SequenceNumber) -> bool {
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

/// New changes that were sent to the readers on this host and not acknowledged: they may all still be in the buffers
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

/// What was not sent in one burst to other hosts may be in the next, as far as that: so many times what one has, or some
/// datagrams.
const BURSTS_SAVED: usize = 4;
const SAVED_BYTES: usize = 8_000;

/// The queues of one writer and the octets its current burst still admits.
#[derive(Debug)]
pub(in crate::writer) struct Pacer {
    /// New changes, for each class.
    live: [Option<Live>; 2],
    pub(in crate::writer) repeats: VecDeque<Repeat>,
    /// The first change that waits for others, not for a burst, for each class: then `live` is empty.
    held: [Option<SequenceNumber>; 2],
    /// Below 0: the last datagram was more than the burst had left.
    left: [isize; 2],
    burst_began: Instant,
    burst_end: Instant,
    /// Until when new changes to readers on this host wait, so that the way to them can change.
    turn_end: Option<Instant>,
    /// To readers on this host.
    flight: Flight,
    /// To those on others.
    pub(in crate::writer) road: Road,
}

impl Pacer {
    pub(in crate::writer) const fn new() -> Self {
        Self {
            live: [None, None],
            repeats: VecDeque::new(),
            held: [None; 2],
            left: [0; 2],
            burst_began: Instant(0),
            burst_end: Instant(0),
            turn_end: None,
            flight: Flight { sent: 0, acknowledged: 0, ends: VecDeque::new() },
            road: Road::new(),
        }
    }

    /// Begins the next burst when it is time.
    pub(in crate::writer) fn refresh(&mut self, now: Instant, limits: &WriterLimits) {
        if now < self.burst_end {
            return;
        }
        let bytes = |bytes| isize::try_from(bytes).unwrap_or(isize::MAX);
        let [local, mut remote] = Class::ALL.map(|class| bytes(limits.burst_bytes(class)));
        let spread = |time| self.road.window.spread_bytes(time).filter(|_| self.road.is_answered());
        if let (Some(since), Some(one)) = (spread(now.since(self.burst_began)), spread(limits.burst_interval))
        {
            let most = one.saturating_mul(BURSTS_SAVED).max(SAVED_BYTES);
            let [_, left] = self.left;
            remote = left.saturating_add(bytes(since)).min(bytes(most));
        }
        self.left = [local, remote];
        self.burst_began = now;
        self.burst_end = now.after(limits.burst_interval).unwrap_or(now);
    }

    /// Readers on this host acknowledge what they have: as much may be on its way as their sockets hold.
    pub(in crate::writer) fn widen(&mut self, window_bytes: usize) {
        let room = isize::try_from(window_bytes.saturating_sub(self.in_flight())).unwrap_or(isize::MAX);
        let [local, _] = &mut self.left;
        *local = room.max(*local);
    }

    /// Octets of new changes that were sent to the readers on this host and not acknowledged.
    pub(in crate::writer) fn in_flight(&self) -> usize {
        self.flight.bytes()
    }

    /// Everyone has all changes up to this one.
    pub(in crate::writer) fn acknowledged(&mut self, up_to: SequenceNumber) {
        self.flight.acknowledge(up_to);
    }

    /// Octets of new changes were sent in so many datagrams; `end`: the last of which this was the end.
    pub(in crate::writer) fn sent_live(
        &mut self,
        class: Class,
        (bytes, datagrams): (usize, usize),
        end: Option<SequenceNumber>,
    ) {
        self.spend(class, bytes);
        match class {
            Class::Remote => self.road.sent(bytes, datagrams),
            Class::SameHost => {
                self.flight.sent += bytes as u64;
                if let Some(number) = end {
                    self.flight.ended(number);
                }
            }
        }
    }

    /// Whether readers of this class may be sent more in this burst, and there is room on the road to them.
    pub(in crate::writer) fn may_send(&self, class: Class) -> bool {
        self.left.get(class as usize).is_some_and(|left| *left > 0)
            && (class == Class::SameHost || !self.road.is_closed())
    }

    /// New changes to readers on this host wait until then, or no longer.
    pub(in crate::writer) const fn turn_until(&mut self, end: Option<Instant>) {
        self.turn_end = end;
    }

    pub(in crate::writer) const fn turn_end(&self) -> Option<Instant> {
        self.turn_end
    }

    /// Whether new changes to readers on this host wait for those before them to be acknowledged.
    pub(in crate::writer) const fn is_turning(&self) -> bool {
        self.turn_end.is_some()
    }

    /// Whether what is queued for readers of this class waits for that. What was begun is sent to its end.
    pub(in crate::writer) fn waits_for_turn(&self, class: Class) -> bool {
        let [live, _] = &self.live;
        let is_begun = live.as_ref().is_some_and(|live| live.fragments_sent > 0);
        class == Class::SameHost && self.is_turning() && !is_begun
    }

    /// Whether so many octets of short changes may leave at once: none waits, the road has room, and the burst is not over.
    pub(in crate::writer) fn admits(
        &mut self,
        now: Instant,
        class: Class,
        bytes: usize,
        limits: &WriterLimits,
    ) -> bool {
        if class == Class::SameHost {
            return !self.is_turning();
        }
        if !self.road.is_answered() {
            return true;
        }
        self.refresh(now, limits);
        self.may_send(class) && self.road.has_room(bytes)
    }

    /// A datagram was sent of what had been sent before, if it is not empty.
    pub(in crate::writer) fn sent_again(&mut self, class: Class, bytes: usize) {
        self.spend(class, bytes);
        if class == Class::Remote && bytes > 0 {
            self.road.sent(bytes, 1);
        }
    }

    /// `bytes` were sent.
    fn spend(&mut self, class: Class, bytes: usize) {
        if let Some(left) = self.left.get_mut(class as usize) {
            *left = left.saturating_sub_unsigned(bytes);
        }
    }

    /// When the next burst begins.
    pub(in crate::writer) const fn burst_end(&self) -> Instant {
        self.burst_end
    }

    /// When the next burst begins, if something waits for it, or when readers were waited for long enough; what waits for
    /// others, or for their answers, does not count.
    pub(in crate::writer) fn due(&self) -> Option<Instant> {
        // Nearly always.
        if let ([None, None], true, false) = (&self.live, self.repeats.is_empty(), self.road.is_waited_for())
        {
            return self.turn_end;
        }
        let waits = |class: Class| self.live.get(class as usize).is_some_and(Option::is_some);
        let remote = waits(Class::Remote);
        let patience =
            self.road.patience_end().map(|end| self.road.asks_again().map_or(end, |at| at.min(end)));
        let tail = self.tail_due();
        let burst = waits(Class::SameHost) && tail.is_none() && !self.waits_for_turn(Class::SameHost)
            || !self.repeats.is_empty()
            || remote && patience.is_none();
        let burst = Instant::earliest([burst.then_some(self.burst_end), tail, self.turn_end]);
        patience.map_or(burst, |end| Some(burst.map_or(end, |burst| burst.min(end))))
    }

    /// When fragments that wait for others leave at the latest.
    fn tail_due(&self) -> Option<Instant> {
        let [live, _] = &self.live;
        match live.as_ref()?.tail {
            Tail::Held(due) => Some(due),
            Tail::Unknown | Tail::Released => None,
        }
    }

    /// Fragments that wait for others wait no longer. Whether there are any.
    pub(in crate::writer) fn release_tail(&mut self) -> bool {
        let [live, _] = &mut self.live;
        let held = live.as_mut().filter(|live| matches!(live.tail, Tail::Held(_)));
        held.map(|live| live.tail = Tail::Released).is_some()
    }

    /// Queues a new change for the readers of one class.
    pub(in crate::writer) fn push_live(&mut self, number: SequenceNumber, class: Class) {
        let Some(queue) = self.live.get_mut(class as usize) else { return };
        match queue {
            Some(live) => live.last = number,
            None => {
                *queue =
                    Some(Live { number, last: number, fragments_sent: 0, begun: None, tail: Tail::Unknown });
            }
        }
    }

    /// A new change waits for others before it goes to the readers of one class.
    pub(in crate::writer) fn hold(&mut self, number: SequenceNumber, class: Class) {
        if let Some(first) = self.held.get_mut(class as usize) {
            first.get_or_insert(number);
        }
    }

    /// Nothing waits for others any more.
    pub(in crate::writer) const fn release_held(&mut self) {
        self.held = [None; 2];
    }

    /// The new change to send next to the readers of one class.
    pub(in crate::writer) fn first_live(&mut self, class: Class) -> Option<&mut Live> {
        self.live.get_mut(class as usize)?.as_mut()
    }

    /// The payload of the change that is being sent to the readers of one class.
    pub(in crate::writer) fn begun_payload(&mut self, class: Class) -> Option<&mut Payload> {
        self.first_live(class)?.begun.as_mut().map(TakenChange::payload_mut)
    }

    /// Queued changes below `next` were sent to the readers of one class, or are not to be.
    pub(in crate::writer) fn advance_live(&mut self, class: Class, next: SequenceNumber) {
        let Some(queue) = self.live.get_mut(class as usize) else { return };
        match queue {
            Some(live) if next <= live.last => {
                (live.number, live.fragments_sent, live.begun) = (next, 0, None);
                live.tail = Tail::Unknown;
            }
            _ => *queue = None,
        }
    }

    /// What is queued for the readers on other hosts goes to each of these by itself: who comes now is not to hear it.
    pub(in crate::writer) fn part_live(&mut self, readers: impl Iterator<Item = Guid>) {
        let [_, live] = &mut self.live;
        let Some(live) = live.take() else { return };
        let what = |reader| Repeat { reader, what: Repeated::Changes { next: live.number, last: live.last } };
        self.repeats.extend(readers.map(what));
    }

    /// Nobody of a class is left to hear what is queued.
    pub(in crate::writer) fn clear_live(&mut self, class: Class) {
        if let Some(queue) = self.live.get_mut(class as usize) {
            *queue = None;
        }
    }

    /// The first change not yet sent to all readers of one class, and how many of its fragments were.
    pub(in crate::writer) fn unsent_to(&self, class: Class) -> Option<(SequenceNumber, FragmentNumber)> {
        let held = self.held.get(class as usize).copied().flatten();
        let live = self.live.get(class as usize).and_then(Option::as_ref);
        held.map(|number| (number, 0)).or_else(|| live.map(|live| (live.number, live.fragments_sent)))
    }

    /// The first change not yet sent to all readers.
    pub(in crate::writer) fn unsent(&self) -> Option<SequenceNumber> {
        let first = |class| self.unsent_to(class).map(|(number, _)| number);
        match (first(Class::SameHost), first(Class::Remote)) {
            (Some(local), Some(remote)) => Some(local.min(remote)),
            (local, remote) => local.or(remote),
        }
    }

    /// Whether the change, or the given fragment of it, is on its way to the reader anyway.
    pub(in crate::writer) fn covers(
        &self,
        reader: Guid,
        number: SequenceNumber,
        fragment: FragmentNumber,
    ) -> bool {
        self.repeats.iter().any(|repeat| repeat.covers(reader, number, fragment))
    }

    /// Whether earlier changes are being repeated to the reader, on a road that has not room for everything: then a later one
    /// is not repeated before them, when the reader might have no use for it, and is asked for again.
    pub(in crate::writer) fn is_behind_others(
        &self,
        class: Class,
        reader: Guid,
        number: SequenceNumber,
    ) -> bool {
        let is_before = |it: &Repeat| it.reader == reader && it.what.first() < number;
        class == Class::Remote && self.road.is_answered() && self.repeats.iter().any(is_before)
    }

    /// Queues what is to be repeated: on a road that has not room for everything, before later changes.
    pub(in crate::writer) fn repeat(&mut self, class: Class, repeat: Repeat) {
        let is_after = |it: &Repeat| it.reader == repeat.reader && it.what.first() > repeat.what.first();
        let place = self.repeats.iter().position(is_after);
        match place.filter(|_| class == Class::Remote && self.road.is_answered()) {
            Some(place) => self.repeats.insert(place, repeat),
            None => self.repeats.push_back(repeat),
        }
    }

    /// Whether new changes wait for their turn to be sent to readers on other hosts.
    pub(in crate::writer) const fn waits_for_road(&self) -> bool {
        let [_, live] = &self.live;
        live.is_some()
    }

    /// Lets the next reader have its turn; the order of one reader's repetitions stays.
    pub(in crate::writer) fn yield_turn(&mut self, reader: Guid) {
        for _ in 0..self.repeats.len() {
            if self.repeats.front().is_none_or(|repeat| repeat.reader != reader) {
                return;
            }
            self.repeats.rotate_left(1);
        }
    }

    /// Datagrams to the readers of one class have another size from now on: what was begun begins anew.
    pub(in crate::writer) fn recut(&mut self, class: Class, is_of_class: impl Fn(Guid) -> bool) {
        if let Some(live) = self.live.get_mut(class as usize).and_then(Option::as_mut) {
            live.fragments_sent = 0;
        }
        for repeat in self.repeats.iter_mut().filter(|repeat| is_of_class(repeat.reader)) {
            if let Repeated::Fragments { next, wanted, .. } = &mut repeat.what {
                (*next, *wanted) = (1, None);
            }
        }
    }

    /// Drops what was meant for a reader that is gone.
    pub(in crate::writer) fn forget(&mut self, reader: Guid) {
        self.repeats.retain(|repeat| repeat.reader != reader);
    }
}
