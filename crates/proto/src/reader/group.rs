//! GROUP access: what the readers of a subscriber show of the changes of one publisher, and when
//! (PRESENTATION, DCPS
//! 1.4 §2.2.3.6; RTPS 2.5 §8.7.5, §8.7.6).
//!
//! With ordered access each change waits outside of the cache, with coherent access each set, until nothing
//! with a lower group number can still come, nor, for a set, another part of it. A reader knows of one writer
//! up to which number it has passed: by the numbers of its changes, and by its heartbeats, which name the
//! last number of the group and the numbers of what the writer itself still has. [`GroupMember`] tells that,
//! [`next_verdict`] what follows from all members, and [`Reader::ask_for_group`] asks a writer that is behind
//! for a heartbeat.
//!
//! What waits is shown
//! - when it follows what was shown last without a gap, in all readers if several have the same writer, or
//! - when all writers of the publisher are known, and each of those that must be waited for has passed it.
//!
//! That holds for what waits of a writer that is gone as well: its proxy stays until that is shown.
//!
//! All writers are known when the digest that came with the change, or with a heartbeat after it, is that of
//! the writers discovered, now or since the match. Waited for are writers that are matched here, reliably for
//! single changes, and alive: a writer of a topic without a reader here, one that was deleted or that lost
//! its liveliness holds nobody up; nor does a reader whose cache is full, but for sets. In that reader what
//! comes after the change for which there is no room waits with it. A writer that gives no group information,
//! and a digest that nothing discovered explains, are waited for only for so long
//! ([`super::ReaderLimits::group_wait_max`]), and after that never again.
//!
//! A set is dropped in all readers when one of them lost changes since its match that may have been of it, of
//! a writer of which no part of it came: all of it may have been replaced in that writer's history.
//!
//! Nothing is sent for GROUP access while no number is missing.

use super::Reader;
use super::cache::Room;
use super::change::Change;
use super::coherent::Ended;
use super::ownership::WriterId;
use super::proxy::Proxy;
use super::reorder::Intervals;
use crate::guid::Guid;
use crate::outbox::{Event, Outbox};
use crate::seq::SequenceNumber;
use crate::time::{Instant, Now};
use crate::tuning::reader::WRITER_SETS_MAX;
use crate::wire::{GroupDigest, HeartbeatGroup};

/// What a reader knows of the group numbers of one writer.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The highest number shown.
    pub(super) shown: SequenceNumber,
    /// The heartbeat that told most: the writer's last number then, the group's, and who the writers were.
    announced: Option<(SequenceNumber, SequenceNumber, Option<GroupDigest>)>,
    /// Its last heartbeat gave group information.
    informs: bool,
    /// It was waited for in vain.
    excused: bool,
    /// The number of the writer's own of its last change that came.
    taken_in: SequenceNumber,
    followed: Followed,
    /// The same when its last change came: heartbeats say what else is gone, and may be taken back.
    at_last_change: Followed,
}

/// How far the changes of a writer can be followed, and what of them was lost.
#[derive(Clone, Copy, Debug, Default)]
struct Followed {
    /// Nothing up to this number of the group is still to come.
    passed: SequenceNumber,
    /// The number of the writer's own that comes next, once a heartbeat told where what was before the match
    /// ends.
    next: Option<SequenceNumber>,
    /// The group number of its last change that came, or that the group had at the match.
    seen: SequenceNumber,
    /// Changes were lost between these group numbers: after the first, up to the second.
    lost: Option<(SequenceNumber, SequenceNumber)>,
}

impl Progress {
    /// The first heartbeat: what the writer has up to `last` was written before the match, and is not lost to
    /// it.
    pub(super) fn begin(&mut self, last: SequenceNumber, group: Option<&HeartbeatGroup>) {
        // The heartbeat may be older than what came before it.
        self.followed.next = Some(last.max(self.taken_in).next());
        self.followed.seen = self.followed.seen.max(group.map_or(SequenceNumber(0), |group| group.current));
        self.at_last_change = self.followed;
    }

    /// A change comes in its turn; what is missing before it and was not `filtered` is lost.
    pub(super) fn take_in(&mut self, change: &Change<'_>, filtered: &Intervals) {
        let number = change.sequence_number;
        if let Some(in_group) = change.number_in_group() {
            self.give_up(number, in_group.previous(), filtered);
            self.followed.seen = self.followed.seen.max(in_group);
        }
        self.followed.next = self.followed.next.map(|next| next.max(number.next()));
        self.taken_in = self.taken_in.max(number);
        self.at_last_change = self.followed;
    }

    /// What heartbeats said to be gone since the last change came may still come: others wait for it.
    pub(super) fn take_back(&mut self) {
        self.followed = self.at_last_change;
        self.announced = None;
    }

    /// What is missing before `expected` is lost, and has no group number beyond `to`.
    fn give_up(&mut self, expected: SequenceNumber, to: SequenceNumber, filtered: &Intervals) {
        if self.misses(expected, filtered) {
            self.followed.lost = Some((self.lost_after(), to));
            self.followed.next = Some(expected);
            self.followed.seen = self.followed.seen.max(to);
        }
    }

    /// After which group number changes were lost of which sets that were not shown yet may have been.
    fn lost_after(&self) -> SequenceNumber {
        self.followed.lost.filter(|(_, to)| *to > self.shown).map_or(self.followed.seen, |(after, _)| after)
    }

    fn misses(&self, expected: SequenceNumber, filtered: &Intervals) -> bool {
        let next = self.followed.next.filter(|next| *next < expected);
        next.is_some_and(|next| filtered.end_covering(next.0) < Some(expected.0 - 1))
    }

    /// Between which group numbers changes were lost, when those before `expected` came or never will.
    pub(super) fn lost(
        &self,
        expected: SequenceNumber,
        filtered: &Intervals,
    ) -> Option<(SequenceNumber, SequenceNumber)> {
        if self.misses(expected, filtered) {
            return Some((self.lost_after(), self.followed.passed));
        }
        self.followed.lost
    }

    /// Nothing up to `number` is still to come; whether that is news.
    pub(super) fn pass(&mut self, number: SequenceNumber) -> bool {
        let news = number > self.followed.passed;
        self.followed.passed = self.followed.passed.max(number);
        news
    }

    /// A heartbeat said that the writer's last change is `last`.
    pub(super) fn hear(&mut self, last: SequenceNumber, group: Option<&HeartbeatGroup>) -> bool {
        self.informs = group.is_some();
        let Some(group) = group else { return false };
        self.excused = false;
        if self.announced.is_none_or(|(_, current, _)| current <= group.current) {
            self.announced = Some((last, group.current, group.writers));
        }
        self.pass(group.first.previous())
    }

    /// All changes before `expected` are here or will never be. Of those that were lost up to an announced
    /// one it is known now where in the group they were, and no more when the next comes.
    pub(super) fn advance(&mut self, expected: SequenceNumber, filtered: &Intervals) -> bool {
        match self.announced {
            Some((last, current, _)) if expected > last => {
                self.give_up(last.next(), current, filtered);
                self.pass(current)
            }
            _ => false,
        }
    }

    /// The writer is gone: nothing more is to be learnt from it, and nothing it lost makes sets of others
    /// incomplete.
    pub(super) const fn leave(&mut self) {
        self.excused = true;
        self.followed.next = None;
        self.followed.lost = None;
    }

    /// Whether nothing can be learnt from the writer about `number` by asking once more.
    pub(super) fn has_announced(&self, number: SequenceNumber) -> bool {
        self.excused
            || self.followed.passed >= number
            || self.announced.is_some_and(|(_, current, _)| current >= number)
    }
}

/// The sets of writers that a publisher had since it is known here, by their digests.
#[derive(Debug)]
pub(super) struct KnownWriters {
    publisher: Guid,
    sets: Vec<GroupDigest>,
}

/// What one reader has of the changes of one writer under GROUP access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The publisher of the writer.
    pub publisher: Guid,
    writer: Guid,
    /// Nothing up to this number is still to come.
    passed: SequenceNumber,
    /// The highest number shown.
    shown: SequenceNumber,
    /// The set that has begun and not ended: its first group number.
    open: Option<SequenceNumber>,
    alive: bool,
    reliable: bool,
    informs: bool,
    excused: bool,
    /// Changes were lost between these group numbers: after the first, up to the second.
    lost: Option<(SequenceNumber, SequenceNumber)>,
    /// What waits first.
    part: Option<Part>,
}

/// What waits first of a writer: one change or its part of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Its group number; of a set the first.
    number: SequenceNumber,
    /// Its group number; of a set that of its end.
    end: SequenceNumber,
    is_set: bool,
    whole: bool,
    /// A single change before it waits for room.
    stuck: bool,
    /// It came with a digest of the writers of its publisher.
    announced: bool,
    /// All these are known.
    writers_known: bool,
    /// It has waited long enough for what may never come.
    overdue: bool,
}

/// What becomes of one change or coherent set of a publisher, in all readers of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVerdict {
    publisher: Guid,
    number: SequenceNumber,
    end: SequenceNumber,
    whole: bool,
    overdue: bool,
}

/// Whether a reader has room for what is to be shown together, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupRoom {
    /// Not even when it is empty.
    Never,
    /// When the application has taken some.
    Later,
    /// Now.
    Enough,
}

/// What comes first of all that waits of a publisher.
struct Front<'a> {
    members: &'a [GroupMember],
    publisher: Guid,
    part: Part,
}

impl GroupMember {
    /// Whether nothing that would have to come before or with `part` is still to come from it.
    fn has_passed(&self, part: &Part) -> bool {
        let passed = self.open.map_or(self.passed, |first| self.passed.min(first.previous()));
        passed >= part.needed()
    }

    /// Whether its part of a set may be among what was lost: of that nothing is known but where it was.
    fn may_lack(&self, part: &Part) -> bool {
        self.lost.is_some_and(|(after, to)| part.number <= to && after < part.end)
    }

    /// Whether it is waited for.
    const fn holds_up(&self, part: &Part) -> bool {
        let in_vain = self.excused || part.overdue && !self.informs;
        self.alive && !in_vain && (part.is_set || self.reliable && part.announced)
    }
}

impl Part {
    /// Who has passed this has nothing any more that must come before it or with it.
    const fn needed(&self) -> SequenceNumber {
        if self.is_set { self.end } else { self.number.previous() }
    }
}

impl<'a> Front<'a> {
    fn of(members: &'a [GroupMember], publisher: Guid) -> Option<Self> {
        let of_publisher = members.iter().filter(|member| member.publisher == publisher);
        let parts = || of_publisher.clone().filter_map(|member| member.part);
        let mut part = parts().min_by_key(|part| part.number)?;
        for other in parts().filter(|other| other.number == part.number) {
            part.end = part.end.max(other.end);
            part.whole &= other.whole;
            part.stuck |= other.stuck;
            part.writers_known &= other.writers_known;
            part.overdue |= other.overdue;
        }
        Some(Self { members, publisher, part })
    }

    fn others(&self) -> impl Iterator<Item = &'a GroupMember> {
        let (publisher, number) = (self.publisher, self.part.number);
        let of_publisher = self.members.iter().filter(move |member| member.publisher == publisher);
        of_publisher.filter(move |member| member.part.is_none_or(|part| part.number != number))
    }

    /// Nothing is missing between what was shown last and this.
    fn is_next(&self) -> bool {
        let of_publisher = self.members.iter().filter(|member| member.publisher == self.publisher);
        let shown = of_publisher.map(|member| member.shown).max().unwrap_or_default();
        !self.part.is_set && self.part.number == shown.next()
    }

    /// Whether other readers have the same writer: what one of them showed, the others may still have to
    /// show.
    fn is_one_of_several(&self, member: &GroupMember) -> bool {
        self.members.iter().filter(|other| other.writer == member.writer).nth(1).is_some()
    }

    /// `room` is asked only for what has its turn otherwise: it looks at every change of it.
    fn verdict(&self, room: &mut impl FnMut(Guid, SequenceNumber) -> GroupRoom) -> Option<GroupVerdict> {
        let (part, is_next) = (&self.part, self.is_next());
        let concerned = |member: &&GroupMember| !is_next || self.is_one_of_several(member);
        let ready = |member: &GroupMember| member.has_passed(part) || !member.holds_up(part);
        if !(is_next || part.writers_known || part.overdue) || !self.others().filter(concerned).all(ready) {
            return None;
        }
        // Who was waited for in vain has its part still open, or may have lost it: then it is nobody's.
        let lacks = |it: &GroupMember| it.open == Some(part.number) || it.may_lack(part);
        let mut whole = part.whole && !(part.is_set && self.others().any(lacks));
        if part.is_set && part.stuck {
            return None;
        }
        if part.is_set && whole {
            match room(self.publisher, part.number) {
                GroupRoom::Enough => {}
                GroupRoom::Later => return None,
                GroupRoom::Never => whole = false,
            }
        }
        let Part { number, end, overdue, .. } = *part;
        Some(GroupVerdict { publisher: self.publisher, number, end, whole, overdue })
    }
}

/// What the readers of a subscriber, of all of which `members` tells, are to show next; `room` is the least
/// that any of them says with [`Reader::group_room`].
#[must_use]
pub fn next_verdict(
    members: &[GroupMember],
    mut room: impl FnMut(Guid, SequenceNumber) -> GroupRoom,
) -> Option<GroupVerdict> {
    members.iter().find_map(|member| Front::of(members, member.publisher)?.verdict(&mut room))
}

impl Reader {
    /// The writers that a publisher has, all of which were matched with the readers of this participant where
    /// they match at all.
    pub fn set_group_writers(&mut self, publisher: Guid, writers: GroupDigest, out: &mut Outbox) {
        if !self.presenter.is_grouped() {
            return;
        }
        self.remember_writers(publisher, writers);
        out.events.push(Event::GroupPart { reader: self.guid.entity });
    }

    fn remember_writers(&mut self, publisher: Guid, writers: GroupDigest) {
        let known = match self.known_writers.iter().position(|known| known.publisher == publisher) {
            Some(at) => self.known_writers.get_mut(at),
            None if self.known_writers.len() < self.limits.writers_max => {
                self.known_writers.push(KnownWriters { publisher, sets: Vec::new() });
                self.known_writers.last_mut()
            }
            None => None,
        };
        if let Some(known) = known
            && known.sets.last() != Some(&writers)
        {
            known.sets.retain(|set| *set != writers);
            if known.sets.len() >= WRITER_SETS_MAX {
                known.sets.remove(0);
            }
            known.sets.push(writers);
        }
    }

    /// No writer of the publisher is matched any more.
    pub(super) fn forget_publisher_if_unmatched(&mut self, publisher: Option<Guid>) {
        let Some(publisher) = publisher else { return };
        if let Some(matched) = self.publishers.get_mut(&publisher) {
            *matched -= 1;
            if *matched > 0 {
                return;
            }
        }
        self.publishers.remove(&publisher);
        self.known_writers.retain(|known| known.publisher != publisher);
    }

    /// What this reader has under GROUP access, per writer; appended.
    pub fn group_members(&self, now: Now, members: &mut Vec<GroupMember>) {
        if !self.presenter.is_grouped() {
            return;
        }
        let stops = self.stops();
        for proxy in self.proxies.iter().flatten() {
            let Some(publisher) = proxy.publisher else { continue };
            let Progress { shown, informs, excused, followed: Followed { passed, .. }, .. } =
                proxy.sets.progress;
            members.push(GroupMember {
                publisher,
                writer: proxy.guid,
                passed,
                shown,
                open: proxy.sets.open_group(),
                alive: proxy.lease.alive,
                reliable: proxy.reliable,
                informs,
                excused,
                lost: proxy.sets.lost_in_group(proxy.order.expected()),
                part: self.first_part(now.mono, publisher, proxy, stop_of(&stops, publisher)),
            });
        }
    }

    /// Of each publisher the first single change that had its turn and found no room in the cache. What comes
    /// after it in the order of the publisher waits here with it, whichever writer it is of.
    fn stops(&self) -> Vec<(Guid, SequenceNumber)> {
        let mut stops: Vec<(Guid, SequenceNumber)> = Vec::new();
        for proxy in self.proxies.iter().flatten().filter(|_| self.presenter.is_ordered()) {
            let Some(front) = proxy.sets.had_its_turn() else { continue };
            let (Some(publisher), Some(number)) = (proxy.publisher, front.number) else { continue };
            if !matches!(self.cache.room_for(&front.changes), Room::Later(..)) {
                continue;
            }
            match stops.iter_mut().find(|(of, _)| *of == publisher) {
                Some((_, first)) => *first = number.min(*first),
                None => stops.push((publisher, number)),
            }
        }
        stops
    }

    /// What waits first of a writer. A single change that had its turn and found no room in the cache waits
    /// for that alone, as do those after it here, and makes nobody else wait, but for sets behind it: of
    /// these the first, and that it is so.
    fn first_waiting<'a>(&self, proxy: &'a Proxy, stop: Option<SequenceNumber>) -> Option<(&'a Ended, bool)> {
        let mut numbered = proxy.sets.waiting().iter().filter(|ended| ended.number.is_some());
        let behind = |ended: &Ended| stop.is_some_and(|stop| ended.number.is_some_and(|own| own > stop));
        let stuck = self.presenter.is_ordered()
            && proxy.sets.had_its_turn().is_some_and(|front| {
                behind(front) || matches!(self.cache.room_for(&front.changes), Room::Later(..))
            });
        let ended = if stuck { numbered.find(|ended| ended.is_set)? } else { numbered.next()? };
        Some((ended, stuck || ended.is_set && behind(ended)))
    }

    fn first_part(
        &self,
        now: Instant,
        publisher: Guid,
        proxy: &Proxy,
        stop: Option<SequenceNumber>,
    ) -> Option<Part> {
        let (ended, stuck) = self.first_waiting(proxy, stop)?;
        let known = self.known_writers.iter().find(|known| known.publisher == publisher);
        let knows = |writers: GroupDigest| known.is_some_and(|known| known.sets.contains(&writers));
        // Who says it later speaks also of what was before.
        let vouches = |proxy: &Proxy| {
            let announced = proxy.sets.progress.announced.filter(|_| proxy.publisher == Some(publisher));
            announced.is_some_and(|(_, current, writers)| current >= ended.end && writers.is_none_or(knows))
        };
        Some(Part {
            number: ended.number?,
            end: ended.end,
            is_set: ended.is_set,
            whole: ended.whole,
            stuck,
            announced: ended.writers.is_some(),
            writers_known: ended.writers.is_none_or(knows) || self.proxies.iter().flatten().any(vouches),
            overdue: self.group_due(ended).is_none_or(|due| due <= now),
        })
    }

    /// When what waits has waited long enough for what may never come.
    fn group_due(&self, ended: &Ended) -> Option<Instant> {
        ended.since.after(self.limits.group_wait_max)
    }

    /// Whether the cache has room for the set `number` and all that is shown with it, if the set waits first
    /// here.
    #[must_use]
    pub fn group_room(&self, publisher: Guid, number: SequenceNumber) -> GroupRoom {
        let writers = || self.proxies.iter().flatten().filter(|proxy| proxy.publisher == Some(publisher));
        let stop = stop_of(&self.stops(), publisher);
        let waits_first =
            |proxy: &Proxy| self.first_waiting(proxy, stop).is_some_and(|(it, _)| it.number == Some(number));
        if !self.presenter.is_grouped() || !writers().any(waits_first) {
            return GroupRoom::Enough;
        }
        let ordered = self.presenter.is_ordered();
        let due = writers().flat_map(|proxy| {
            let is_due = move |ended: &&Ended| ended.is_due(number, ordered);
            proxy.sets.waiting().iter().take_while(is_due)
        });
        match self.cache.room_for(due.flat_map(|ended| ended.changes.iter())) {
            Room::Enough => GroupRoom::Enough,
            Room::Later(..) => GroupRoom::Later,
            Room::Rejected(..) | Room::Never => GroupRoom::Never,
        }
    }

    /// Shows or drops what a verdict is about.
    pub fn carry_out_verdict(&mut self, now: Now, verdict: GroupVerdict, out: &mut Outbox) {
        let (mut unexplained, mut due, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
        let stop = stop_of(&self.stops(), verdict.publisher);
        let Self { proxies, presenter, cache, .. } = self;
        for (id, proxy) in (0..).zip(proxies.iter_mut()) {
            let Some(proxy) = proxy.as_mut().filter(|it| it.publisher == Some(verdict.publisher)) else {
                continue;
            };
            let mut refused = None;
            while let Some(mut ended) =
                presenter.next_due(cache, &mut proxy.sets, (verdict.number, stop), &mut refused)
            {
                let is_judged = ended.is_set && ended.number == Some(verdict.number);
                ended.whole &= verdict.whole || !is_judged;
                unexplained.extend(ended.writers.filter(|_| verdict.overdue));
                // What has no number goes with what is before it.
                let mut number = ended.number.unwrap_or(verdict.number);
                for change in presenter.release(cache, ended) {
                    number = change.group_number.unwrap_or(number);
                    due.push((number, id, change));
                }
            }
            if proxy.sets.open_group() == Some(verdict.number) {
                presenter.break_open(&mut proxy.sets);
            }
            let progress = &mut proxy.sets.progress;
            refusals.extend(refused);
            progress.shown = progress.shown.max(verdict.end);
            progress.excused |=
                verdict.overdue && !progress.informs && progress.followed.passed < verdict.end;
        }
        // The changes of a set as its writers made them, by turns.
        due.sort_by_key(|(number, ..)| *number);
        presenter.enter(cache, now, due.into_iter().map(|(_, id, change)| (id, change)));
        for writers in unexplained {
            self.remember_writers(verdict.publisher, writers);
        }
        for (reason, instance) in refusals {
            self.rejected(reason, instance, out);
        }
        if self.lingering > 0 {
            self.part_with_shown(now, out);
        }
        if self.blocked > 0 && !self.presenter.is_accessing() {
            self.unblock(now);
        }
        self.notify_presented(out);
    }

    /// Asks the writers for which something waits, here or in other readers of the subscriber, how far they
    /// are.
    pub fn ask_for_group(&mut self, now: Now, members: &[GroupMember], out: &mut Outbox) {
        if !self.presenter.is_grouped() {
            return;
        }
        for index in 0..self.proxies.len() {
            let Some(proxy) = self.proxies.get_mut(index).and_then(Option::as_mut) else { continue };
            let Some(publisher) = proxy.publisher.filter(|_| proxy.reliable && proxy.lease.alive) else {
                continue;
            };
            let front = Front::of(members, publisher);
            let needed = front.map_or(SequenceNumber(0), |front| front.part.needed());
            let progress = &proxy.sets.progress;
            // What a heartbeat named is on its way or asked for already.
            if progress.has_announced(needed) {
                proxy.answer.group_probe_at = None;
            } else if proxy.answer.group_probe_at.is_none() {
                (proxy.answer.group_probes, proxy.answer.group_probe_number) = (0, needed);
                self.seek(now.mono, index as WriterId, out);
            }
        }
    }

    /// A timer of what waits came up: the readers of the subscriber are to be looked at.
    pub(super) fn recheck_group(&mut self, now: Instant) {
        if self.presenter.recheck_at.is_none_or(|at| at > now) {
            return;
        }
        let fronts = self.proxies.iter().flatten().filter_map(|proxy| proxy.sets.waiting().front());
        let due = fronts.filter_map(|ended| self.group_due(ended));
        self.presenter.recheck_at = due.filter(|due| *due > now).min();
        self.presenter.part_ended = true;
    }

    /// What the order of a writer's changes says about its group numbers now.
    pub(super) fn advance_group(&mut self, id: WriterId) {
        let Self { proxies, presenter, .. } = self;
        if let Some(proxy) = proxies.get_mut(id as usize).and_then(Option::as_mut)
            && presenter.is_grouped()
        {
            presenter.part_ended |= proxy.sets.advance(proxy.order.expected());
        }
    }
}

fn stop_of(stops: &[(Guid, SequenceNumber)], publisher: Guid) -> Option<SequenceNumber> {
    stops.iter().find(|(of, _)| *of == publisher).map(|(_, number)| *number)
}

impl Change<'_> {
    /// The number it has among those of its publisher; of the end of a set whose numbers are not told, the
    /// first.
    pub(super) fn number_in_group(&self) -> Option<SequenceNumber> {
        self.group_number.or(self.group_set)
    }
}
