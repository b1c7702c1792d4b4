//! Coherent sets on their way into the cache (PRESENTATION, DCPS 1.4 §2.2.3.6; RTPS 2.5 §8.7.6).
//!
//! A reader with coherent access holds the changes of a set back until the set has ended, and drops it
//! whole when a number between its first and its end never came. Under GROUP scope a set waits further,
//! until the parts of it of all writers of the publisher have ended in all readers of the subscriber:
//! [`GroupMember`] tells what one reader has, and [`next_verdict`] what follows from all.
//!
//! While the application is between `begin_access` and `end_access`, nothing enters the cache.

use std::collections::VecDeque;

use super::cache::{Cache, Outcome, Room};
use super::ownership::WriterId;
use super::reorder::Intervals;
use super::{Change, Reader, ReaderLimits};
use crate::guid::Guid;
use crate::outbox::{Event, Outbox};
use crate::qos::{AccessScope, QosSet};
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::Now;

/// The sets of one writer that are not in the cache yet.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// Not ended.
    open: Option<OpenSet>,
    /// Ended, and waiting for the rest of their groups; and what came between them.
    ended: VecDeque<Ended>,
    /// Nothing of group sets up to this one is still to come from this writer.
    passed: SequenceNumber,
    /// What the writer left out because of a filter: sets are whole without it (RTPS 2.5 §8.7.6).
    filtered: Intervals,
}

#[derive(Debug)]
struct OpenSet {
    first: SequenceNumber,
    group: Option<SequenceNumber>,
    /// The number that must come next.
    next: SequenceNumber,
    /// A change is lost, or there is no room to hold them all.
    broken: bool,
    changes: Vec<Change>,
}

#[derive(Debug)]
struct Ended {
    group: Option<SequenceNumber>,
    whole: bool,
    changes: Vec<Change>,
}

/// What a reader does about PRESENTATION, and what it holds back for that.
#[derive(Debug)]
pub(super) struct Presenter {
    coherent: bool,
    group: bool,
    /// Between `begin_access` and `end_access`.
    accessing: bool,
    held_samples: usize,
    held_bytes: usize,
    samples_max: usize,
    bytes_max: usize,
    /// Best-effort changes that arrived during an access.
    waiting: VecDeque<(WriterId, Change)>,
    waiting_bytes: usize,
    /// Something entered the cache that was held back.
    shown: bool,
    /// Samples lost with their sets, not reported yet.
    lost: u64,
    /// A part of a group set ended, not reported yet.
    part_ended: bool,
}

/// What one reader has of the GROUP scope coherent sets of one writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The publisher of the writer.
    pub publisher: Guid,
    /// Nothing of sets up to this one is still to come.
    passed: SequenceNumber,
    /// The sets that wait, in order: first group number, whether whole, whether the cache has room.
    parts: Vec<(SequenceNumber, bool, bool)>,
}

/// What becomes of one coherent set of GROUP scope, in all readers of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVerdict {
    publisher: Guid,
    set: SequenceNumber,
    whole: bool,
}

/// The next set that all of `members`, those of all readers of a subscriber, have passed.
#[must_use]
pub fn next_verdict(members: &[GroupMember]) -> Option<GroupVerdict> {
    members.iter().find_map(|member| {
        let publisher = member.publisher;
        let of_publisher = || members.iter().filter(|other| other.publisher == publisher);
        let set = of_publisher().filter_map(|other| other.parts.first()).map(|part| part.0).min()?;
        let parts = || of_publisher().filter_map(|other| other.parts.first().filter(|part| part.0 == set));
        let ready = of_publisher().all(|other| other.passed >= set);
        let whole = parts().all(|part| part.1);
        let fits = !whole || parts().all(|part| part.2);
        (ready && fits).then_some(GroupVerdict { publisher, set, whole })
    })
}

impl OpenSet {
    /// Whether nothing is missing between the last change of the set and `number`.
    fn continues_with(&self, number: SequenceNumber, filtered: &Intervals) -> bool {
        self.next == number || filtered.end_covering(self.next.0) >= Some(number.0 - 1)
    }
}

impl Change {
    /// Moves the change out; only its payload is missing from what stays.
    pub(super) fn take(&mut self) -> Self {
        Self { payload: std::mem::take(&mut self.payload), ..*self }
    }

    fn is_data_or_status(&self) -> bool {
        !self.payload.is_empty() || self.status.disposed || self.status.unregistered
    }
}

impl Presenter {
    pub(super) fn new(qos: &QosSet, limits: &ReaderLimits) -> Self {
        let presentation = qos.presentation;
        Self {
            coherent: presentation.coherent_access,
            group: presentation.coherent_access && presentation.access_scope == AccessScope::Group,
            accessing: false,
            held_samples: 0,
            held_bytes: 0,
            samples_max: limits.coherent_samples_max,
            bytes_max: limits.coherent_bytes_max,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            shown: false,
            lost: 0,
            part_ended: false,
        }
    }

    /// Notes changes that the writer left out because of a filter.
    pub(super) fn note_filtered(&self, sets: &mut Sets, start: SequenceNumber, end: SequenceNumber) {
        if self.coherent {
            // Without room for one more range, a set may look incomplete: that is the safe side.
            sets.filtered.insert(start.0, end.0);
        }
    }

    pub(super) const fn is_accessing(&self) -> bool {
        self.accessing
    }

    /// Whether something held back was shown since this was asked last.
    pub(super) const fn take_shown(&mut self) -> bool {
        std::mem::replace(&mut self.shown, false)
    }

    /// Takes in the next change of a writer: into the cache, or into the set it belongs to.
    pub(super) fn accept(
        &mut self,
        cache: &mut Cache,
        sets: &mut Sets,
        now: Now,
        id: WriterId,
        change: &mut Change,
    ) -> Outcome {
        if self.accessing {
            return Outcome::Waits;
        }
        if !self.coherent {
            return cache.store(now, id, change);
        }
        let set = change.coherent_set;
        if sets.open.as_ref().is_some_and(|open| Some(open.first) != set)
            && let Some(refused) = self.end(cache, sets, now, id, change.sequence_number)
        {
            return refused;
        }
        if let Some(group) = change.group_set.filter(|_| self.group && set.is_none()) {
            // The end of a set, in which this writer may have written nothing.
            sets.passed = sets.passed.max(group);
            self.part_ended = true;
        }
        if let Some(first) = set {
            self.hold(sets, first, change);
            return Outcome::Consumed;
        }
        if self.group && !sets.ended.is_empty() && change.is_data_or_status() {
            // It must not overtake the sets before it.
            if !self.afford(change) {
                self.lost += 1;
                return Outcome::Dropped(DropReason::BufferFull);
            }
            let changes = vec![change.take()];
            self.queue(sets, Ended { group: None, whole: true, changes });
            return Outcome::Consumed;
        }
        cache.store(now, id, change)
    }

    /// Adds a change to the open set of its writer.
    fn hold(&mut self, sets: &mut Sets, first: SequenceNumber, change: &mut Change) {
        let number = change.sequence_number;
        if self.group && sets.open.is_none() {
            let before = change.group_set.map_or(sets.passed, SequenceNumber::previous);
            sets.passed = sets.passed.max(before);
        }
        let open = sets.open.get_or_insert_with(|| OpenSet {
            first,
            group: change.group_set,
            next: first,
            broken: false,
            changes: Vec::new(),
        });
        let whole = !open.broken && open.continues_with(number, &sets.filtered) && self.afford(change);
        sets.filtered.forget_below(number.0);
        open.next = number.next();
        if whole {
            open.changes.push(change.take());
        } else {
            open.broken = true;
            self.lost += 1;
            let changes = std::mem::take(&mut open.changes);
            self.discard(&changes);
        }
    }

    /// Reserves room for one more change held back.
    fn afford(&mut self, change: &Change) -> bool {
        let bytes = change.payload.len();
        let fits =
            self.held_samples < self.samples_max && self.held_bytes.saturating_add(bytes) <= self.bytes_max;
        if fits {
            self.held_samples += 1;
            self.held_bytes += bytes;
        }
        fits
    }

    fn release(&mut self, changes: &[Change]) {
        self.held_samples -= changes.len();
        self.held_bytes -= changes.iter().map(|change| change.payload.len()).sum::<usize>();
    }

    fn discard(&mut self, changes: &[Change]) {
        self.release(changes);
        self.lost += changes.len() as u64;
    }

    /// The open set ends before `number`. A set that has to wait for room in the cache is refused, and
    /// stays open.
    fn end(
        &mut self,
        cache: &mut Cache,
        sets: &mut Sets,
        now: Now,
        id: WriterId,
        number: SequenceNumber,
    ) -> Option<Outcome> {
        let open = sets.open.as_ref()?;
        let whole = !open.broken && open.continues_with(number, &sets.filtered);
        let waits_for_group = self.group && open.group.is_some();
        if whole
            && !waits_for_group
            && let Room::Later(reason, instance) = cache.room_for(&open.changes)
        {
            return Some(Outcome::Refused(reason, instance));
        }
        let open = sets.open.take()?;
        let mut ended = Ended { group: open.group.filter(|_| self.group), whole, changes: open.changes };
        if waits_for_group {
            if !whole {
                let changes = std::mem::take(&mut ended.changes);
                self.discard(&changes);
            }
            self.queue(sets, ended);
        } else {
            self.show(cache, now, id, ended);
        }
        None
    }

    fn queue(&mut self, sets: &mut Sets, ended: Ended) {
        sets.passed = sets.passed.max(ended.group.unwrap_or_default());
        sets.ended.push_back(ended);
        self.part_ended = true;
    }

    /// A set leaves what is held back: into the cache if it is whole and fits, into nothing otherwise.
    fn show(&mut self, cache: &mut Cache, now: Now, id: WriterId, ended: Ended) {
        if !ended.whole || matches!(cache.room_for(&ended.changes), Room::Never) {
            self.discard(&ended.changes);
            return;
        }
        self.release(&ended.changes);
        for mut change in ended.changes {
            match cache.store(now, id, &mut change) {
                Outcome::Stored => self.shown = true,
                Outcome::Refused(..) => self.lost += 1,
                Outcome::Consumed | Outcome::Dropped(_) | Outcome::Waits => {}
            }
        }
    }

    /// The writer is gone, and with it everything that has not ended.
    pub(super) fn forget(&mut self, id: WriterId, sets: Sets) {
        if let Some(open) = sets.open {
            self.discard(&open.changes);
        }
        for ended in sets.ended {
            self.discard(&ended.changes);
        }
        self.waiting.retain(|(writer, _)| *writer != id);
        self.waiting_bytes = self.waiting.iter().map(|(_, change)| change.payload.len()).sum();
        self.part_ended |= self.group;
    }

    /// A best-effort change that arrived during an access; false when there is no room for it.
    pub(super) fn wait(&mut self, id: WriterId, change: Change, limits: &ReaderLimits) -> bool {
        let bytes = self.waiting_bytes.saturating_add(change.payload.len());
        if self.waiting.len() >= limits.reorder_samples_max || bytes > limits.reorder_bytes_max {
            return false;
        }
        self.waiting_bytes = bytes;
        self.waiting.push_back((id, change));
        true
    }
}

impl Reader {
    /// The application begins to look at a stable set of samples (DCPS 1.4 §2.2.2.5.2.8): what arrives
    /// until [`Self::end_access`] waits outside the cache.
    pub const fn begin_access(&mut self) {
        self.presenter.accessing = true;
    }

    /// The application has looked; what waited becomes readable.
    pub fn end_access(&mut self, now: Now, out: &mut Outbox) {
        self.presenter.accessing = false;
        self.presenter.waiting_bytes = 0;
        for (id, mut change) in std::mem::take(&mut self.presenter.waiting) {
            // What this one refuses was counted; the others still have their chance.
            let _ = self.accept_best_effort(now, id, &mut change, out);
        }
        if self.blocked > 0 {
            self.unblock(now);
        }
        self.tell_presented(out);
    }

    /// What this reader has of coherent sets of GROUP scope, per writer; appended.
    pub fn group_members(&self, members: &mut Vec<GroupMember>) {
        if !self.presenter.group {
            return;
        }
        for proxy in self.proxies.iter().flatten().filter(|proxy| proxy.lease.alive) {
            let Some(publisher) = proxy.publisher else { continue };
            let parts = proxy.sets.ended.iter().filter_map(|ended| {
                let set = ended.group?;
                let room = self.room_for_set(publisher, set);
                let whole = ended.whole && !matches!(room, Room::Never);
                Some((set, whole, !matches!(room, Room::Later(..))))
            });
            members.push(GroupMember {
                publisher,
                passed: proxy.sets.passed,
                parts: parts.take(1).collect(),
            });
        }
    }

    /// Whether the cache has room for what all writers of a publisher have up to a set: it is shown at once.
    fn room_for_set(&self, publisher: Guid, set: SequenceNumber) -> Room {
        let writers = self.proxies.iter().flatten().filter(|proxy| proxy.publisher == Some(publisher));
        let due = writers.flat_map(|proxy| {
            let is_due = move |ended: &&Ended| ended.group.is_none_or(|group| group <= set);
            proxy.sets.ended.iter().take_while(is_due)
        });
        self.cache.room_for(due.flat_map(|ended| ended.changes.iter()))
    }

    /// Shows or drops its part of a set.
    pub fn carry_out_verdict(&mut self, now: Now, verdict: GroupVerdict, out: &mut Outbox) {
        let Self { proxies, presenter, cache, .. } = self;
        for (id, proxy) in (0..).zip(proxies.iter_mut()) {
            let Some(proxy) = proxy.as_mut().filter(|it| it.publisher == Some(verdict.publisher)) else {
                continue;
            };
            let is_due = |ended: &mut Ended| ended.group.is_none_or(|group| group <= verdict.set);
            while let Some(mut ended) = proxy.sets.ended.pop_front_if(is_due) {
                ended.whole &= verdict.whole || ended.group.is_none();
                presenter.show(cache, now, id, ended);
            }
        }
        self.tell_presented(out);
    }

    /// Reports what was shown, lost or completed while changes were accepted.
    pub(super) fn tell_presented(&mut self, out: &mut Outbox) {
        if self.presenter.take_shown() {
            self.data_available(out);
        }
        let lost = std::mem::take(&mut self.presenter.lost);
        for _ in 0..lost {
            self.drops.count(DropReason::IncompleteSet);
        }
        let crowded_out = std::mem::take(&mut self.cache.crowded_out);
        for _ in 0..crowded_out {
            self.drops.count(DropReason::BufferFull);
        }
        self.samples_lost(lost + crowded_out, out);
        if std::mem::take(&mut self.presenter.part_ended) {
            out.events.push(Event::GroupPart { reader: self.guid.entity });
        }
    }
}
