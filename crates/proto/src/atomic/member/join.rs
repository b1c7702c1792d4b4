//! How a participant becomes a member, and comes to have what was agreed before.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::atomic::Storage;
use crate::atomic::member::transfer::Assembled;
use crate::atomic::member::{Member, Phase};
use crate::atomic::message::{Join, Message, Row, Transfer};
use crate::atomic::storage::Change;
use crate::atomic::view::{Decision, View, Voters};
use crate::atomic::{Action, Body, Destination, MEMBERS_MAX, MemberId, Status};
use crate::time::{Duration, Instant};
use crate::tuning::atomic::{CLAIMS_TOLD, FETCH_AGAIN, JOIN_AGAIN, JOIN_ENTRIES_MAX, SUSPENDED_AFTER};

/// What who would join knows of the group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Joining {
    since: Instant,
    due: Instant,
    /// The newest that is known, of which it is no member.
    view: Option<Arc<View>>,
    /// Members whose rows arrive, in which group, and where they are.
    heard: BTreeMap<MemberId, (Instant, u64, u64)>,
    others: BTreeMap<MemberId, Other>,
    fetch_due: Instant,
    /// Which member was asked last, by its rank.
    donor: usize,
    /// Somebody has told what there is.
    is_fed: bool,
    /// The beginning of a group that nobody knows of yet.
    founding: Option<Arc<Decision>>,
}

/// Another one who would join.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Other {
    heard: Instant,
    /// Whether it would make a group.
    founds: bool,
    storage: Storage,
    /// Who it was.
    before: Vec<MemberId>,
}

impl Joining {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            due: now,
            view: None,
            heard: BTreeMap::new(),
            others: BTreeMap::new(),
            fetch_due: now,
            donor: 0,
            is_fed: false,
            founding: None,
        }
    }

    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// What it waits for is asked for at once.
    pub(super) const fn hurry(&mut self, now: Instant) {
        self.due = now;
        self.fetch_due = now;
    }

    /// It says at once what it wishes.
    pub(super) const fn wake(&mut self, now: Instant) {
        self.due = now;
    }

    /// Whether something is to be asked for again; if so, it is for a while.
    pub(super) fn is_fetch_due(&mut self, now: Instant) -> bool {
        let is_due = self.fetch_due <= now;
        if is_due {
            self.fetch_due = now.after(FETCH_AGAIN).unwrap_or(now);
        }
        is_due
    }

    /// Somebody has answered: the next answer is waited for as long.
    pub(super) fn is_answered(&mut self, now: Instant) {
        self.fetch_due = now.after(FETCH_AGAIN).unwrap_or(now);
    }

    /// Whom to ask, the next after who was asked last or the same.
    pub(super) fn donor(&mut self, donors: &[MemberId], is_next: bool) -> Option<MemberId> {
        self.donor = self.donor.wrapping_add(usize::from(is_next));
        donors.get(self.donor.checked_rem(donors.len())?).copied()
    }

    pub(super) fn view(&self) -> Option<&View> {
        self.view.as_deref()
    }

    /// Whether an epoch may still be one that takes it in.
    pub(super) fn is_to_come(&self, instance: u64, epoch: u64) -> bool {
        self.view.as_ref().is_none_or(|view| view.instance != instance || view.epoch < epoch)
    }

    pub(super) fn heard(&mut self, now: Instant, row: &Row) {
        if self.heard.len() < 2 * MEMBERS_MAX || self.heard.contains_key(&row.from) {
            self.heard.insert(row.from, (now, row.instance, row.position));
        }
    }

    pub(super) fn know(&mut self, now: Instant, view: &View) {
        // Of the older group the newer view.
        let is_newer = |known: &View| {
            view.instance < known.instance || view.instance == known.instance && view.epoch > known.epoch
        };
        if self.view.as_deref().is_none_or(is_newer) {
            self.view = Some(Arc::new(view.clone()));
            self.since = now;
        }
    }

    fn is_heard(&self, now: Instant, id: MemberId, instance: u64, lease: Duration) -> bool {
        self.heard.get(&id).is_some_and(|(heard, of, _)| *of == instance && now.since(*heard) < lease)
    }
}

impl<B: Body> Member<B> {
    pub(super) fn tick_joining(&mut self, now: Instant) {
        if self.joining.due > now {
            return;
        }
        self.joining.due = now.after(JOIN_AGAIN).unwrap_or(now);
        self.forget_silent(now);
        let ask = Message::AskView { from: self.id, epoch: 0 };
        self.actions.push_back(Action::Send(Destination::Group, ask));
        if let Some(view) = &self.joining.view
            && self.config.keeps_history
        {
            let (instance, lineage) = (view.instance, view.lineage);
            self.enter(instance, lineage);
            self.tick_fetch(now);
        }
        if self.makes_no_group() && !self.is_suspended && now.since(self.joining.since) >= SUSPENDED_AFTER {
            self.is_suspended = true;
            self.actions.push_back(Action::Status(Status::Suspended));
        }
        // Once others hear that it would join they may name it in a view.
        if !self.has_claimed() {
            return;
        }
        let join = Join {
            from: self.id,
            ready: self.is_ready(now),
            caught_up: !self.config.keeps_history,
            hears: self.joining.heard.keys().copied().collect(),
            before: self.been().rev().take(CLAIMS_TOLD).collect(),
            founds: self.may_bootstrap(),
            storage: self.config.storage,
            config: self.config.digest,
        };
        self.actions.push_back(Action::Send(Destination::Group, Message::Join(join)));
        self.bootstrap(now);
    }

    /// Whether it only joins a group: one in which it was, which may go on where it is not heard; or one of
    /// which it has something on its disk, which may come back, and all that was agreed meanwhile would be
    /// void.
    #[must_use]
    pub const fn makes_no_group(&self) -> bool {
        self.was_member || !matches!(self.config.storage, Storage::None) && self.have > 0
    }

    fn may_bootstrap(&self) -> bool {
        self.config.bootstrap_after.is_some() && !self.makes_no_group()
    }

    fn forget_silent(&mut self, now: Instant) {
        let lease = self.config.lease;
        self.joining.heard.retain(|_, (heard, ..)| now.since(*heard) < lease);
        self.joining.others.retain(|_, other| now.since(other.heard) < lease);
        // A group of which nobody is heard may have ended.
        let joining = &mut self.joining;
        if let Some(view) = &joining.view
            && !view.members.iter().any(|it| joining.is_heard(now, it.id, view.instance, lease))
            && now.since(joining.since) >= Duration(lease.0 * 4)
        {
            joining.view = None;
            joining.since = now;
        }
    }

    /// Whether it has nearly all of what it needs, and hears those whose entries it will need.
    fn is_ready(&self, now: Instant) -> bool {
        let Some(view) = &self.joining.view else { return true };
        // Who takes nothing would only make the others wait.
        if self.is_held {
            return false;
        }
        let hears_all =
            view.members.iter().all(|it| self.joining.is_heard(now, it.id, view.instance, self.config.lease));
        let here = self.joining.heard.values().filter(|(_, of, _)| *of == view.instance);
        let ahead = here.map(|(.., position)| *position).max().unwrap_or(0);
        let is_near = ahead <= self.have.saturating_add(JOIN_ENTRIES_MAX as u64);
        let has_most = self.joining.is_fed && !self.transfers.is_in_progress() && is_near;
        let has_most = has_most || !self.config.keeps_history;
        hears_all && has_most
    }

    /// Makes a group where there is none, if nobody else is to.
    fn bootstrap(&mut self, now: Instant) {
        let Some(bootstrap_after) = self.config.bootstrap_after.filter(|_| self.may_bootstrap()) else {
            return;
        };
        let joining = &self.joining;
        let is_first = joining.others.iter().all(|(id, other)| self.id < *id || !other.founds);
        if joining.view.is_some()
            || !joining.heard.is_empty()
            || joining.founding.is_some()
            || !is_first
            || now.since(joining.since) < bootstrap_after
        {
            return;
        }
        // One process is one member.
        let is_past = |id: &MemberId| {
            self.has_been(*id) || joining.others.values().any(|other| other.before.contains(id))
        };
        let lasting =
            |id: &MemberId| id.prefix != self.id.prefix && id.is_last(joining.others.keys()) && !is_past(id);
        let others = joining.others.iter().filter(|(id, _)| lasting(id)).take(MEMBERS_MAX - 1);
        let others = others.map(|(id, other)| (*id, other.storage));
        let ids: Vec<_> = std::iter::once((self.id, self.config.storage)).chain(others).collect();
        let next_instance = self.config.instance.wrapping_add(1);
        let instance = std::mem::replace(&mut self.config.instance, next_instance);
        let decision = Decision::first(instance, ids, &Voters::Members);
        let decision = Arc::new(decision);
        self.joining.founding = Some(Arc::clone(&decision));
        if !self.has_disk() {
            self.tell_of_group(now, instance);
            return;
        }
        self.enter(instance, 0);
        self.remember(&decision);
        self.store_founding(&decision.next);
    }

    /// The group that it makes begins, unless it has joined another one meanwhile.
    pub(super) fn tell_of_group(&mut self, now: Instant, instance: u64) {
        let founding = self.joining.founding.take_if(|it| it.next.instance == instance);
        let is_alone = self.joining.view.is_none() && self.joining.heard.is_empty();
        let Some(decision) = founding.filter(|_| self.phase == Phase::Joining && is_alone) else { return };
        self.actions.push_back(Action::Send(Destination::Group, Message::NewView(Arc::clone(&decision))));
        self.learn_joining(now, &decision);
    }

    pub(super) fn learn_joining(&mut self, now: Instant, decision: &Arc<Decision>) {
        let next = &decision.next;
        let is_known = self.joining.view.as_ref().is_some_and(|view| view.instance < next.instance);
        if is_known {
            return;
        }
        if self.place_in(next).is_some() {
            self.enter(next.instance, next.lineage);
            self.remember(decision);
            self.begin(now, next, 0);
        } else {
            self.joining.know(now, next);
        }
    }

    pub(super) fn on_current(&mut self, now: Instant, view: Arc<View>) {
        match self.phase {
            Phase::Joining => {
                if self.place_in(&view).is_some() {
                    self.begin(now, &view, 0);
                } else {
                    self.joining.know(now, &view);
                }
            }
            Phase::Active | Phase::Frozen => {
                let Some(mine) = self.view() else { return };
                if mine.instance != view.instance {
                    self.on_other_group(now, &view);
                } else if view.epoch > mine.epoch {
                    // Who has just joined does not know how it ended; others may.
                    let since = *self.behind_since.get_or_insert(now);
                    if now.since(since) >= self.config.lease {
                        self.lose_track(now, &view);
                    }
                }
            }
            Phase::Gone => {}
        }
    }

    pub(super) fn on_join(&mut self, now: Instant, join: &Join) {
        if join.from == self.id {
            return;
        }
        match self.phase {
            Phase::Joining => {
                let others = &mut self.joining.others;
                if join.config == self.config.digest
                    && (others.len() < MEMBERS_MAX || others.contains_key(&join.from))
                {
                    let Join { founds, storage, .. } = *join;
                    let before = join.before.clone();
                    others.insert(join.from, Other { heard: now, founds, storage, before });
                }
            }
            // Who does not hear the rows of this member may not be told of its epoch otherwise.
            Phase::Active if self.view().is_some_and(|view| view.rank_of(join.from).is_some()) => {
                self.answer_view(join.from, 0);
            }
            _ => {}
        }
    }

    pub(super) fn on_transfer(&mut self, now: Instant, part: Transfer<B>) {
        let is_wanted = self.phase == Phase::Joining || self.phase == Phase::Active && !self.caught_up;
        let is_wanted = is_wanted && part.instance == self.instance && !self.is_held;
        if !is_wanted || !self.config.keeps_history || part.after != self.have || part.through < part.after {
            return;
        }
        let end = self.fetches_until();
        // It was asked for before this was a member: what is lost up to the end is not known.
        if part.lost > 0 && part.through > end {
            return self.fetch(false);
        }
        let state = match self.assemble(now, &part) {
            Assembled::Whole(state) => state,
            Assembled::More => return self.fetch(false),
            Assembled::Unfit => return,
        };
        self.tell_lost(part.lost);
        if let Some((through, octets)) = state
            && through > self.have
        {
            let gone = self.history.replace(through, Arc::clone(&octets));
            self.store(Change::State(through, Arc::clone(&octets)));
            self.forget(gone.unwrap_or_default());
            self.have = through;
            if !self.withholds {
                self.actions.push_back(Action::State(through, octets));
            }
        }
        for entry in part.entries {
            if entry.position > self.have && entry.position <= end {
                self.have = entry.position;
                self.keep(&entry, None);
                self.give(entry);
            }
        }
        self.have = self.have.max(part.through.min(end));
        self.store(Change::Through(self.have));
        if self.phase == Phase::Joining {
            if part.position > self.have {
                self.fetch(false);
            } else if !std::mem::replace(&mut self.joining.is_fed, true) {
                // It may be ready now.
                self.joining.due = now;
            }
            return;
        }
        if self.have < end {
            self.fetch(false);
            return;
        }
        self.caught_up = true;
        self.await_caught_up();
        self.is_dirty = true;
        self.deliver();
        self.schedule_row(now);
    }
}
