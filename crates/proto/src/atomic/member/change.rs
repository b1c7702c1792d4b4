//! How an epoch ends for a member, and the next begins.

use std::sync::Arc;

use crate::atomic::epoch::Epoch;
use crate::atomic::member::join::Joining;
use crate::atomic::member::{Member, Phase, Renounced};
use crate::atomic::message::Message;
use crate::atomic::view::{Decision, Ranks, Report, View};
use crate::atomic::{Action, Body, Destination, MemberId, Status};
use crate::time::Instant;
use crate::tuning::atomic::{FETCH_AGAIN, REPORT_AGAIN, ROW_PENDING, SUSPENDED_AFTER};

impl<B: Body> Member<B> {
    /// Wishes to leave: the others go on without it, and what it wrote is delivered or not as they agree.
    pub fn leave(&mut self, now: Instant) {
        self.leaves = true;
        match self.phase {
            Phase::Active => self.freeze(now),
            Phase::Frozen => self.report(now),
            Phase::Gone => {}
            Phase::Joining => self.go(),
        }
    }

    pub(super) fn go(&mut self) {
        self.phase = Phase::Gone;
        self.early.clear();
    }

    /// Stops: from now on this member takes nothing in this epoch and vouches for nothing more. What it has
    /// said it holds then stays true, whatever it still receives.
    pub(super) fn freeze(&mut self, now: Instant) {
        let Some(epoch) = &self.epoch else { return };
        self.stuck = epoch.stuck(now, self.config.stuck);
        self.accused = Ranks::default();
        if self.is_held_up(now)
            && let Some(slowest) = epoch.slowest()
        {
            self.accused.add(slowest);
        }
        self.phase = Phase::Frozen;
        self.frozen_since = Some(now);
        self.repeat_due = now.after(REPORT_AGAIN);
        self.report(now);
    }

    pub(super) fn report(&mut self, now: Instant) {
        let Some(epoch) = self.epoch.as_ref().filter(|_| self.may_report()) else { return };
        let instance = epoch.view.instance;
        let report = Report {
            id: self.place().unwrap_or(self.id),
            successor: self.is_successor().then_some(self.id),
            epoch: epoch.view.epoch,
            holds: epoch.vouched(),
            position: self.have,
            is_partial: self.is_partial(),
            clock: epoch.clock,
            caught_up: self.has_caught_up(),
            hears: epoch.view.ranks().without(self.suspected(epoch, now)),
            accuses: self.accused,
            leaves: self.leaves,
        };
        // To all: the others stop, too, and hear that this member is alive.
        self.actions.push_back(Action::Send(Destination::Group, Message::Report { instance, report }));
        let is_long = self.frozen_since.is_some_and(|since| now.since(since) >= SUSPENDED_AFTER);
        if is_long && !self.is_suspended {
            self.is_suspended = true;
            self.actions.push_back(Action::Status(Status::Suspended));
        }
    }

    /// Takes a decision, if it is on the epoch in which this member is or would join.
    pub(super) fn learn(&mut self, now: Instant, decision: Arc<Decision>) {
        if self.phase == Phase::Joining {
            self.learn_joining(now, &decision);
            return;
        }
        let Some(epoch) = &self.epoch else { return };
        if decision.next.instance != epoch.view.instance {
            self.on_other_group(now, &decision.next);
            return;
        }
        let current = epoch.view.epoch;
        if decision.base == current {
            self.remember(&decision);
            self.end(now, &decision);
        } else if decision.base > current {
            self.ask_view_of_all(current);
        }
    }

    /// Ends the epoch as was decided.
    fn end(&mut self, now: Instant, decision: &Arc<Decision>) {
        let Some(epoch) = &self.epoch else { return };
        // Only who has stopped may go on: who has not may have taken more than was counted.
        let goes_on = self.phase == Phase::Frozen
            && decision.incumbents.has(epoch.rank)
            && decision.cut.len() == epoch.view.members.len()
            // Another process with a copy of the directory may.
            && self.place_in(&decision.next).is_some();
        if !goes_on {
            self.evict(now, decision);
        } else if epoch.holds(&decision.cut) && (self.is_partial() || epoch.is_within(&decision.cut)) {
            self.install(now, decision);
        } else if self.is_partial() {
            // It has lost some of that, and lacks what comes before the next epoch.
            self.take_back(decision);
            self.begin(now, &decision.next, 0);
        } else if self.is_successor() && epoch.is_within(&decision.cut) {
            // The directory is an old copy. What it has counts all the same, and it gets the rest.
            self.evict(now, decision);
        } else {
            // It cannot be: the cut is the least of what the incumbents hold, and what they have vouched for.
            self.actions.push_back(Action::Status(Status::Diverged));
            self.go();
        }
    }

    fn install(&mut self, now: Instant, decision: &Arc<Decision>) {
        if !self.caught_up {
            // What others have delivered comes as a part of the history.
            self.settle(decision);
        } else {
            while let Some(epoch) = &mut self.epoch
                && let Some((rank, body)) = epoch.next_within(&decision.cut)
            {
                self.emit(rank, body);
            }
        }
        // Who started again does not know of all that it delivered.
        let has_all = self.caught_up && !self.is_successor();
        let closing = self.epoch.as_ref().filter(|_| has_all).map_or(0, |epoch| epoch.digest);
        if decision.next.lineage != self.lineage {
            self.lineage = decision.next.lineage;
            self.store_lineage();
            self.actions.push_back(Action::Status(Status::DataLoss));
        }
        self.take_back(decision);
        self.begin(now, &decision.next, closing);
    }

    /// What was sent and does not count is to be sent again.
    fn take_back(&mut self, decision: &Decision) {
        self.drop_held();
        // What was written before the process started again nobody waits for.
        let is_successor = self.is_successor();
        let Some(epoch) = self.epoch.take() else { return };
        let rank = epoch.rank;
        let cut = decision.cut.get(rank).copied().unwrap_or(0);
        let sent = self.window.len() as u64;
        if sent > 0 {
            self.actions.push_back(Action::Release(sent));
        }
        self.window.clear();
        self.window_octets = 0;
        self.window_positions.clear();
        self.full_since = None;
        if is_successor {
            return;
        }
        let uncut: Vec<B> = epoch.into_uncut(cut).collect();
        #[cfg(feature = "mistakes")]
        if self.mistake == Some(crate::atomic::mistake::Mistake::DropTail) {
            return;
        }
        for body in uncut.into_iter().rev() {
            self.unsent.push_front(body);
        }
    }

    /// Begins an epoch as one of its members.
    pub(super) fn begin(&mut self, now: Instant, view: &View, closing: u64) {
        let Some((rank, is_successor)) = self.place_in(view) else { return };
        self.enter(view.instance, view.lineage);
        self.renounced = None;
        if !self.config.keeps_history && self.have < view.base_position {
            if self.was_member {
                self.actions.push_back(Action::Missed(view.base_position - self.have));
            }
            self.have = view.base_position;
        }
        self.was_member = true;
        self.caught_up = self.have >= view.base_position;
        let mut epoch = Epoch::new(view.clone(), rank, now);
        epoch.closing = closing;
        if self.is_held {
            epoch.withhold();
        }
        #[cfg(feature = "mistakes")]
        {
            epoch.mistake = self.mistake;
        }
        let number = view.epoch;
        self.epoch = Some(epoch);
        self.behind_since = None;
        self.take_place(Some(view.members[rank].id));
        self.store_view(is_successor);
        if is_successor {
            self.be_partial(view.members[rank].storage);
            // It goes on as who it is now with the next epoch.
            self.phase = Phase::Frozen;
            self.frozen_since = Some(now);
            self.report(now);
            return;
        }
        self.give_withheld();
        self.phase = Phase::Active;
        self.frozen_since = None;
        self.is_suspended = false;
        if self.leaves {
            if view.members.len() == 1 {
                // Nobody is left to be told.
                self.go();
                return;
            }
            self.leave_due = now.after(FETCH_AGAIN);
        }
        self.told_position = view.base_position;
        self.told_own = 0;
        self.pause = ROW_PENDING;
        self.is_dirty = true;
        self.row_due = Some(now);
        self.joining = Joining::new(now);
        let status = Status::Installed { epoch: number, members: view.members.len() };
        self.actions.push_back(Action::Status(status));
        self.early.retain(|(epoch, _), _| *epoch >= number);
        let here: Vec<MemberId> = view.members.iter().map(|it| it.id).collect();
        for id in here {
            if let Some(early) = self.early.remove(&(number, id)) {
                // Those of another group are not taken.
                for (header, body) in early.entries {
                    self.on_entry(now, id, header, body);
                }
            }
        }
        self.early.retain(|(epoch, _), _| *epoch > number);
        for body in std::mem::take(&mut self.unsent) {
            self.send(body);
        }
        self.deliver();
        if !self.caught_up {
            self.tick_fetch(now);
        }
    }

    /// What this member wrote was delivered by the others, as far as it is within the cut.
    fn settle(&mut self, decision: &Decision) {
        let Some(epoch) = self.epoch.as_ref().filter(|_| !self.is_successor()) else { return };
        let cut = decision.cut.get(epoch.rank).copied().unwrap_or(0);
        let settled = cut.saturating_sub(epoch.own_delivered());
        if settled > 0 {
            self.actions.push_back(Action::Settled(settled));
        }
    }

    /// The others go on without this member. Of what it wrote, they have delivered what is within the cut;
    /// the rest it sends again when it has joined again.
    fn evict(&mut self, now: Instant, decision: &Arc<Decision>) {
        self.settle(decision);
        self.take_back(decision);
        self.actions.push_back(Action::Status(Status::Evicted));
        self.rejoin(now, Some(&decision.next));
    }

    /// It cannot be told any more how the epoch of this member ended.
    pub(super) fn lose_track(&mut self, now: Instant, view: &Arc<View>) {
        let unresolved = self.unresolved();
        let sent = self.window.len() as u64;
        if sent > 0 {
            self.actions.push_back(Action::Release(sent));
        }
        // Whether what was sent has been delivered is not known: to send it again might do it twice.
        let sent_unresolved = unresolved - self.unsent.len();
        if sent_unresolved > 0 {
            self.actions.push_back(Action::Unknown(sent_unresolved as u64));
            self.actions.push_back(Action::Status(Status::OutcomeUnknown));
        }
        self.window.clear();
        self.window_octets = 0;
        self.window_positions.clear();
        self.drop_held();
        self.actions.push_back(Action::Status(Status::Evicted));
        self.rejoin(now, Some(view));
    }

    /// Begins the next incarnation; this view goes on without it.
    pub(super) fn rejoin(&mut self, now: Instant, view: Option<&View>) {
        self.epoch = None;
        self.behind_since = None;
        self.store_left();
        self.full_since = None;
        self.is_suspended = false;
        self.frozen_since = None;
        if self.leaves {
            self.go();
            return;
        }
        self.is_back |= self.was_member;
        self.id = self.id.next_incarnation();
        self.forget_claim();
        self.phase = Phase::Joining;
        self.joining = Joining::new(now);
        if let Some(view) = view {
            self.joining.know(now, view);
            self.early.retain(|(epoch, _), _| *epoch > view.epoch);
        }
    }

    /// A member of this epoch has stopped: it is alive, and the epoch is to end. Or it is in another one.
    pub(super) fn on_report(&mut self, now: Instant, instance: u64, report: &Report) {
        if !self.is_in(instance, report.epoch) {
            self.help_old(instance, report.epoch, report.speaker());
            self.on_report_of_rival(now, instance, report);
            return;
        }
        if let Some(current) = &mut self.epoch
            && let Some(rank) = current.view.rank_of(report.id)
        {
            current.heard(now, rank);
            if self.phase == Phase::Active {
                self.freeze(now);
            }
        }
    }

    /// Somebody is in an epoch that has ended.
    pub(super) fn help_old(&mut self, instance: u64, epoch: u64, who: MemberId) {
        if self.instance == instance {
            self.answer_view(who, epoch);
        }
    }

    /// Tells how an epoch ended, also when this member is none any more: nobody else may know.
    pub(super) fn answer_view(&mut self, who: MemberId, epoch: u64) {
        if who == self.id {
            return;
        }
        let known = self.decisions.iter().find(|it| it.base == epoch && epoch > 0);
        let answer = match (known, self.view()) {
            (Some(decision), _) => Message::NewView(Arc::clone(decision)),
            (None, Some(view)) if view.epoch > epoch => Message::Current(Arc::new(view.clone())),
            _ => return,
        };
        self.actions.push_back(Action::Send(Destination::Member(who), answer));
    }

    pub(super) fn ask_view(&mut self, whom: MemberId) {
        let epoch = self.view().map_or(0, |it| it.epoch);
        let ask = Message::AskView { from: self.id, epoch };
        self.actions.push_back(Action::Send(Destination::Member(whom), ask));
    }

    fn ask_view_of_all(&mut self, epoch: u64) {
        let ask = Message::AskView { from: self.id, epoch };
        self.actions.push_back(Action::Send(Destination::Group, ask));
    }

    /// A view of another group of this topic. Where voters make groups they have begun this one anew.
    pub(super) fn on_other_group(&mut self, now: Instant, next: &View) {
        let Some(view) = self.view() else { return };
        if self.config.bootstrap_after.is_some() {
            // Otherwise it waits for rows: that group may be suspended.
            if next.instance < view.instance && self.place_in(next).is_some() {
                self.move_to(now, next);
            }
        } else if next.instance < view.instance && next.epoch > view.epoch {
            self.renounce(now);
        }
    }

    /// There is another group of this topic: the younger one ends, where groups may be made by anybody.
    pub(super) fn on_rival(&mut self, now: Instant, instance: u64) {
        let Some(view) = self.view() else { return };
        if self.config.bootstrap_after.is_some() && instance < view.instance {
            self.renounce(now);
        }
    }

    /// Somebody has stopped in another group. If that is older, and this member is named in it without
    /// knowing so, that group may wait for its vote.
    fn on_report_of_rival(&mut self, now: Instant, instance: u64, report: &Report) {
        let is_older = self.view().is_some_and(|view| instance < view.instance);
        if self.config.bootstrap_after.is_none() || !is_older {
            return;
        }
        let has_begun = report.epoch > 1 || report.position > 0 || report.holds.iter().any(|it| *it > 0);
        if has_begun || self.has_not_begun() {
            let ask = Message::AskView { from: self.id, epoch: 0 };
            self.actions.push_back(Action::Send(Destination::Member(report.speaker()), ask));
        }
        self.give_way(now);
    }

    /// There is another group, and this one never began: nothing was agreed in it, since this member has
    /// vouched for nothing, and there is no majority of its voters.
    pub(super) fn give_way(&mut self, now: Instant) {
        let may_give_way = self.config.bootstrap_after.is_some() && self.phase == Phase::Frozen;
        if may_give_way && self.is_suspended && self.has_not_begun() {
            self.renounce(now);
        }
    }

    /// Nothing was delivered in its group, and nothing will be without this member.
    fn has_not_begun(&self) -> bool {
        let is_first = |epoch: &Epoch<B>| epoch.view.epoch == 1 && epoch.vouched().iter().all(|it| *it == 0);
        self.have == 0 && self.epoch.as_ref().is_some_and(is_first)
    }

    /// Goes into an older group that counts on it. Who it is now it was in no other group than in the one
    /// that it leaves.
    fn move_to(&mut self, now: Instant, next: &View) {
        let id = self.id;
        self.renounce(now);
        if self.phase != Phase::Joining {
            return;
        }
        if next.rank_of(id).is_some() {
            self.id = id;
        }
        self.begin(now, next, 0);
    }

    /// Leaves the group for another one.
    fn renounce(&mut self, now: Instant) {
        let sent = self.window.len() as u64;
        if sent > 0 {
            self.actions.push_back(Action::Release(sent));
        }
        let is_successor = self.is_successor();
        if let Some(epoch) = self.epoch.take().filter(|_| !is_successor) {
            let delivered = epoch.own_delivered();
            let left = epoch.view.instance;
            let uncut: Vec<B> = epoch.into_uncut(delivered).collect();
            self.renounced = Some(Renounced { instance: left, have: self.have, unsettled: uncut.len() });
            uncut.into_iter().rev().for_each(|body| self.unsent.push_front(body));
        }
        self.window.clear();
        self.window_octets = 0;
        self.window_positions.clear();
        self.take_place(None);
        self.enter(0, 0);
        self.rejoin(now, None);
    }

    /// What was delivered of another group, or in another lineage of it, does not count in this one.
    pub(super) fn enter(&mut self, instance: u64, lineage: u64) {
        if (self.instance, self.lineage) == (instance, lineage) {
            return;
        }
        if self.have > 0 && !std::mem::take(&mut self.withholds) {
            self.actions.push_back(Action::Status(Status::DataLoss));
        }
        let before = std::mem::replace(&mut self.instance, instance);
        self.lineage = lineage;
        self.have = 0;
        // It is told that it has nothing, and not what of that it missed besides.
        self.is_back = false;
        if before == instance {
            self.store_void();
            self.history.clear();
            return;
        }
        self.store_begin(before != 0);
        if lineage > 0 {
            self.store_lineage();
        }
        self.was_member = false;
        self.transfers.clear();
        self.history.clear();
        self.decisions.clear();
        if let Some(renounced) = self.renounced.filter(|it| it.instance == instance) {
            self.renounced = None;
            self.return_to(renounced);
        }
    }

    /// Back in a group: what was sent in it may have been delivered, and to send it again might do it twice.
    fn return_to(&mut self, renounced: Renounced) {
        let count = renounced.unsettled.min(self.unsent.len());
        self.unsent.drain(..count);
        if count > 0 {
            self.actions.push_back(Action::Unknown(count as u64));
            self.actions.push_back(Action::Status(Status::OutcomeUnknown));
        }
        if !self.config.keeps_history {
            self.have = renounced.have;
            self.was_member = true;
        }
    }
}
