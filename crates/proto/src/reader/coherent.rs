//! Coherent sets on their way into the cache (PRESENTATION, DCPS 1.4 §2.2.3.6; RTPS 2.5 §8.7.6).
//!
//! A reader with coherent access holds the changes of a set back until the set has ended, and drops it whole
//! when a number between its first and its end never came. Under GROUP scope a set waits further, until the
//! parts of it of all writers of the publisher have ended in all readers of the subscriber, and with ordered
//! access a single change waits for those before it: `group` tells how.
//!
//! While the application is between `begin_access` and `end_access`, nothing enters the cache.

use std::collections::VecDeque;

use super::cache::{Cache, Outcome, Room};
use super::change::Change;
use super::group::Progress;
use super::ownership::WriterId;
use super::reorder::Intervals;
use super::{Reader, ReaderLimits};
use crate::instance::InstanceHandle;
use crate::outbox::{Event, Outbox};
use crate::qos::{AccessScope, QosSet};
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::status::RejectReason;
use crate::time::{Duration, Instant, Now};
use crate::wire::GroupDigest;

/// The sets of one writer that are not in the cache yet.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// Not ended.
    open: Option<OpenSet>,
    /// Ended, and waiting for the rest of their groups; and single changes between them.
    ended: VecDeque<Ended>,
    /// How far the writer is in the numbers of its group.
    pub(super) progress: Progress,
    /// What the writer left out because of a filter: sets are whole without it (RTPS 2.5 §8.7.6).
    filtered: Intervals,
    /// What finds no room may wait: both ends are reliable.
    can_wait: bool,
}

#[derive(Debug)]
struct OpenSet {
    first: SequenceNumber,
    group: Option<SequenceNumber>,
    /// The last group number in it.
    group_last: SequenceNumber,
    writers: Option<GroupDigest>,
    /// The number that must come next.
    next: SequenceNumber,
    /// A change is lost, or there is no room to hold them all.
    broken: bool,
    changes: Vec<Change<'static>>,
}

/// A coherent set, or a single change, that waits outside of the cache.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its group number, of a set the first; without one it goes with what is before it.
    pub(super) number: Option<SequenceNumber>,
    /// Its group number; of a set that of its end.
    pub(super) end: SequenceNumber,
    pub(super) is_set: bool,
    pub(super) whole: bool,
    /// The writers its publisher had.
    pub(super) writers: Option<GroupDigest>,
    pub(super) since: Instant,
    pub(super) changes: Vec<Change<'static>>,
}

impl Ended {
    /// Whether it is shown when `number` is; without ordered access single changes wait for nothing.
    pub(super) fn is_due(&self, number: SequenceNumber, ordered: bool) -> bool {
        self.number.is_none_or(|own| own <= number) || !self.is_set && !ordered
    }
}

impl Sets {
    /// Of a writer of which nothing came yet.
    pub(super) fn new(reliable: bool) -> Self {
        Self { can_wait: reliable, ..Self::default() }
    }

    /// What waits, in order.
    pub(super) const fn waiting(&self) -> &VecDeque<Ended> {
        &self.ended
    }

    /// The single change that waits first although it was its turn to be shown.
    pub(super) fn had_its_turn(&self) -> Option<&Ended> {
        self.ended.front().filter(|front| !front.is_set && front.end <= self.progress.shown)
    }

    /// The group set that has begun and not ended.
    pub(super) fn open_group(&self) -> Option<SequenceNumber> {
        self.open.as_ref()?.group
    }

    /// All changes before `expected` are here or will never be; whether that is news of the group.
    pub(super) fn advance(&mut self, expected: SequenceNumber) -> bool {
        self.progress.advance(expected, &self.filtered)
    }

    /// Between which group numbers changes were lost, when all before `expected` came or never will.
    pub(super) fn lost_in_group(&self, expected: SequenceNumber) -> Option<(SequenceNumber, SequenceNumber)> {
        self.progress.lost(expected, &self.filtered)
    }
}

/// What a reader does about PRESENTATION, and what it holds back for that.
#[derive(Debug)]
pub(super) struct Presenter {
    coherent: bool,
    /// Coherent or ordered access of GROUP scope.
    group: bool,
    /// Ordered access of GROUP scope.
    ordered: bool,
    /// Between `begin_access` and `end_access`.
    accessing: bool,
    held_samples: usize,
    held_bytes: usize,
    samples_max: usize,
    bytes_max: usize,
    wait_max: Duration,
    /// Best-effort changes that arrived during an access.
    waiting: VecDeque<(WriterId, Change<'static>)>,
    waiting_bytes: usize,
    /// Something entered the cache that was held back.
    shown: bool,
    /// Samples lost with their sets, not reported yet.
    lost: u64,
    /// Changes for which there was no room and will be none, not reported yet.
    rejections: Vec<(RejectReason, InstanceHandle)>,
    /// Something came that concerns the other readers of the subscriber, not reported yet.
    pub(super) part_ended: bool,
    /// When something will have waited long enough.
    pub(super) recheck_at: Option<Instant>,
}

impl OpenSet {
    /// Whether nothing is missing between the last change of the set and `number`.
    fn continues_with(&self, number: SequenceNumber, filtered: &Intervals) -> bool {
        self.next == number || filtered.end_covering(self.next.0) >= Some(number.0 - 1)
    }
}

impl Presenter {
    pub(super) fn new(qos: &QosSet, limits: &ReaderLimits) -> Self {
        let presentation = qos.presentation;
        let is_group = presentation.access_scope == AccessScope::Group;
        Self {
            coherent: presentation.coherent_access,
            group: is_group && (presentation.coherent_access || presentation.ordered_access),
            ordered: is_group && presentation.ordered_access,
            accessing: false,
            held_samples: 0,
            held_bytes: 0,
            samples_max: limits.coherent_samples_max,
            bytes_max: limits.coherent_bytes_max,
            wait_max: limits.group_wait_max,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            shown: false,
            lost: 0,
            rejections: Vec::new(),
            part_ended: false,
            recheck_at: None,
        }
    }

    /// Whether it shows changes when other readers of the subscriber do.
    pub(super) const fn is_grouped(&self) -> bool {
        self.group
    }

    pub(super) const fn is_ordered(&self) -> bool {
        self.ordered
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
    #[inline(always)]
    pub(super) fn accept(
        &mut self,
        cache: &mut Cache,
        sets: &mut Sets,
        now: Now,
        id: WriterId,
        change: &mut Change<'_>,
    ) -> Outcome {
        if self.accessing {
            return Outcome::Waits;
        }
        if !self.coherent && !self.ordered {
            return cache.store(now, id, change);
        }
        self.accept_in_order(cache, sets, now, id, change)
    }

    fn accept_in_order(
        &mut self,
        cache: &mut Cache,
        sets: &mut Sets,
        now: Now,
        id: WriterId,
        change: &mut Change<'_>,
    ) -> Outcome {
        let set = change.coherent_set.filter(|_| self.coherent);
        if sets.open.as_ref().is_some_and(|open| Some(open.first) != set)
            && let Some(refused) = self.end(cache, sets, now, id, change)
        {
            return refused;
        }
        if self.group
            && let Some(number) = change.number_in_group()
        {
            self.part_ended |= sets.progress.pass(number);
        }
        if self.group {
            sets.progress.take_in(change, &sets.filtered);
        }
        if let Some(first) = set {
            self.hold(sets, first, change);
            return Outcome::Consumed;
        }
        sets.filtered.forget_below(change.sequence_number.0);
        let waits = self.ordered && change.group_number.is_some() || !sets.ended.is_empty();
        if self.group && waits && change.is_data_or_status() {
            return self.hold_single(sets, now.mono, change);
        }
        cache.store(now, id, change)
    }

    /// A change outside of sets waits for those before it.
    fn hold_single(&mut self, sets: &mut Sets, now: Instant, change: &mut Change<'_>) -> Outcome {
        if !self.afford(change) {
            if sets.can_wait {
                return Outcome::Waits;
            }
            self.lost += 1;
            return Outcome::Dropped(DropReason::BufferFull);
        }
        let (number, writers) = (change.group_number, change.group_writers);
        let (end, changes) = (number.unwrap_or_default(), vec![change.take()]);
        self.queue(sets, Ended { number, end, is_set: false, whole: true, writers, since: now, changes });
        Outcome::Consumed
    }

    /// Adds a change to the open set of its writer.
    fn hold(&mut self, sets: &mut Sets, first: SequenceNumber, change: &mut Change<'_>) {
        let number = change.sequence_number;
        let open = sets.open.get_or_insert_with(|| OpenSet {
            first,
            group: change.group_set.filter(|_| self.group),
            group_last: SequenceNumber(0),
            writers: None,
            next: first,
            broken: false,
            changes: Vec::new(),
        });
        let whole = !open.broken && open.continues_with(number, &sets.filtered) && self.afford(change);
        sets.filtered.forget_below(number.0);
        open.next = number.next();
        open.group_last = change.number_in_group().unwrap_or_default().max(open.group_last);
        open.writers = change.group_writers.or(open.writers);
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
    fn afford(&mut self, change: &Change<'_>) -> bool {
        let bytes = change.payload.len();
        let fits =
            self.held_samples < self.samples_max && self.held_bytes.saturating_add(bytes) <= self.bytes_max;
        if fits {
            self.held_samples += 1;
            self.held_bytes += bytes;
        }
        fits
    }

    /// Notes a change for which reading will make no room.
    #[cold]
    pub(super) fn reject(&mut self, reason: RejectReason, instance: InstanceHandle) {
        self.rejections.push((reason, instance));
    }

    pub(super) fn take_rejections(&mut self) -> Vec<(RejectReason, InstanceHandle)> {
        std::mem::take(&mut self.rejections)
    }

    /// Changes are not held any more.
    fn account_for(&mut self, changes: &[Change<'static>]) {
        self.held_samples -= changes.len();
        self.held_bytes -= changes.iter().map(|change| change.payload.len()).sum::<usize>();
    }

    fn discard(&mut self, changes: &[Change<'static>]) {
        self.account_for(changes);
        self.lost += changes.len() as u64;
    }

    /// The open set ends before `next`. A set that has to wait for room in the cache is refused, and stays
    /// open.
    fn end(
        &mut self,
        cache: &mut Cache,
        sets: &mut Sets,
        now: Now,
        id: WriterId,
        next: &Change<'_>,
    ) -> Option<Outcome> {
        let open = sets.open.as_ref()?;
        let whole = !open.broken && open.continues_with(next.sequence_number, &sets.filtered);
        let waits_for_group = open.group.is_some();
        if whole
            && !waits_for_group
            && let Room::Later(reason, instance) = cache.room_for(&open.changes)
        {
            return Some(Outcome::Refused(reason, instance));
        }
        let open = sets.open.take()?;
        let is_end = next.coherent_set.is_none() && next.group_set == open.group && !next.is_data_or_status();
        let last = if is_end { next.group_number } else { next.group_number.map(SequenceNumber::previous) };
        let mut ended = Ended {
            number: open.group,
            end: last.unwrap_or(open.group_last).max(open.group_last),
            is_set: true,
            // A part that comes after the others were shown is not shown by itself.
            whole: whole && open.group.is_none_or(|group| group > sets.progress.shown),
            writers: next.group_writers.or(open.writers),
            since: now.mono,
            changes: open.changes,
        };
        if waits_for_group {
            if !ended.whole {
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
        let due = ended.since.after(self.wait_max);
        self.recheck_at = self.recheck_at.or(due);
        sets.ended.push_back(ended);
        self.part_ended = true;
    }

    /// What is shown with `number`, one after the other. A single change for which there is no room stays,
    /// and so does one after the change `stop`, which had none before.
    pub(super) fn next_due(
        &self,
        cache: &Cache,
        sets: &mut Sets,
        (number, stop): (SequenceNumber, Option<SequenceNumber>),
        refused: &mut Option<(RejectReason, InstanceHandle)>,
    ) -> Option<Ended> {
        let shown = sets.progress.shown;
        sets.ended.pop_front_if(|ended| {
            let is_due = ended.is_due(number, self.ordered);
            if is_due && !ended.is_set && stop.is_some_and(|stop| ended.number.is_some_and(|own| own > stop))
            {
                return false;
            }
            if is_due
                && self.ordered
                && !ended.is_set
                && let Room::Later(reason, instance) = cache.room_for(&ended.changes)
            {
                // A refusal is reported once.
                *refused = (ended.end > shown).then_some((reason, instance));
                return false;
            }
            is_due
        })
    }

    /// The rest of the open set is not worth waiting for.
    pub(super) fn break_open(&mut self, sets: &mut Sets) {
        if let Some(open) = &mut sets.open {
            open.broken = true;
            let changes = std::mem::take(&mut open.changes);
            self.discard(&changes);
        }
    }

    /// A set leaves what is held back: into the cache if it is whole and fits, into nothing otherwise.
    pub(super) fn show(&mut self, cache: &mut Cache, now: Now, id: WriterId, ended: Ended) {
        let changes = self.release(cache, ended);
        self.enter(cache, now, changes.into_iter().map(|change| (id, change)));
    }

    /// Everything that waits of a writer, whatever may still come of others.
    pub(super) fn show_all(&mut self, cache: &mut Cache, now: Now, id: WriterId, sets: &mut Sets) {
        for ended in std::mem::take(&mut sets.ended) {
            self.show(cache, now, id, ended);
        }
    }

    /// The changes of a set that leaves what is held back; none when it is not whole or can never fit.
    pub(super) fn release(&mut self, cache: &Cache, ended: Ended) -> Vec<Change<'static>> {
        if !ended.whole {
            self.discard(&ended.changes);
            return Vec::new();
        }
        match cache.room_for(&ended.changes) {
            Room::Never => self.discard(&ended.changes),
            Room::Rejected(reason, instance) => {
                self.account_for(&ended.changes);
                self.rejections.extend(ended.changes.iter().map(|_| (reason, instance)));
            }
            Room::Enough | Room::Later(..) => {
                self.account_for(&ended.changes);
                return ended.changes;
            }
        }
        Vec::new()
    }

    /// Changes enter the cache.
    pub(super) fn enter(
        &mut self,
        cache: &mut Cache,
        now: Now,
        changes: impl Iterator<Item = (WriterId, Change<'static>)>,
    ) {
        for (id, mut change) in changes {
            match cache.store(now, id, &mut change) {
                Outcome::Stored => self.shown = true,
                Outcome::Refused(..) => self.lost += 1,
                Outcome::Rejected(reason, instance) => self.reject(reason, instance),
                Outcome::Consumed | Outcome::Dropped(_) | Outcome::Waits => {}
            }
        }
    }

    /// The writer is gone, and with it all sets of which others may have no part any more. Its single changes
    /// are shown now; under ordered access of GROUP scope those stay in `sets` until those before them are
    /// shown.
    pub(super) fn forget(&mut self, cache: &mut Cache, now: Now, id: WriterId, sets: &mut Sets) {
        if let Some(open) = sets.open.take() {
            self.discard(&open.changes);
        }
        let mut number = sets.progress.shown;
        for ended in std::mem::take(&mut sets.ended) {
            number = ended.number.unwrap_or(number);
            if ended.is_set {
                self.discard(&ended.changes);
            } else {
                // What has no number went with what was before it, which may have been a set.
                sets.ended.push_back(Ended { number: Some(number), end: ended.end.max(number), ..ended });
            }
        }
        if !self.ordered {
            self.show_all(cache, now, id, sets);
        }
        self.waiting.retain(|(writer, _)| *writer != id);
        self.waiting_bytes = self.waiting.iter().map(|(_, change)| change.payload.len()).sum();
        self.part_ended |= self.group;
    }

    /// A best-effort change that arrived during an access; false when there is no room for it.
    pub(super) fn wait(&mut self, id: WriterId, change: Change<'static>, limits: &ReaderLimits) -> bool {
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
        self.notify_presented(out);
    }

    /// Reports what was shown, lost or completed while changes were accepted.
    #[inline(always)]
    pub(super) fn notify_presented(&mut self, out: &mut Outbox) {
        let Presenter { shown, lost, part_ended, rejections, .. } = &self.presenter;
        let lost = *lost + self.cache.displaced + self.cache.undecodable.unnotified;
        if *shown || *part_ended || lost > 0 || !rejections.is_empty() {
            self.notify_changes(out);
        }
    }

    #[cold]
    fn notify_changes(&mut self, out: &mut Outbox) {
        if self.presenter.take_shown() {
            self.data_available(out);
        }
        for (reason, instance) in self.presenter.take_rejections() {
            self.drops.count(DropReason::ResourceLimit);
            self.rejected(reason, instance, out);
        }
        let lost = std::mem::take(&mut self.presenter.lost);
        for _ in 0..lost {
            self.drops.count(DropReason::IncompleteSet);
        }
        let displaced = std::mem::take(&mut self.cache.displaced);
        for _ in 0..displaced {
            self.drops.count(DropReason::BufferFull);
        }
        let undecodable = std::mem::take(&mut self.cache.undecodable.unnotified);
        self.samples_lost(lost + displaced + undecodable, out);
        self.notify_undecodable(out);
        if std::mem::take(&mut self.presenter.part_ended) {
            out.events.push(Event::GroupPart { reader: self.guid.entity });
        }
    }
}
