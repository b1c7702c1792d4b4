//! What a voter does for a group: it collects what members report, and proposes how their epoch ends.
//!
//! Several voters may propose; the decider takes one. A proposal is made of the last reports of members that
//! have stopped, so that any of them is safe: a voter that knows less proposes a worse one, not a wrong one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::atomic::message::{Join, Message, Row};
use crate::atomic::view::Storage;
use crate::atomic::view::{Decision, Joiner, Ranks, Report, View, Voters, decide};
use crate::atomic::{Destination, MEMBERS_MAX, MemberId, VoterId};
use crate::time::{Duration, Instant};
use crate::tuning::atomic::{
    BEGIN_ANEW_AFTER, DECISIONS_KEPT, JOIN_FORGOTTEN, JOINERS_WITHIN, PROPOSER_PAUSE, REPORTS_WITHIN,
    WEDGE_AGAIN,
};

/// What a voter asks of its driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposal<B> {
    /// Send a message.
    Send(Destination, Message<B>),
    /// Let this be decided, if nothing else is for the same epoch.
    Propose(Arc<Decision>),
}

/// The first members of a group that voters make.
#[derive(Clone, Copy, Debug)]
pub struct Bootstrap {
    /// So many must wish to join.
    pub members: usize,
    /// Of which instance the group will be.
    pub instance: u64,
    /// A group that keeps nothing on a disk begins anew when none of its members is heard any more.
    pub begins_anew: bool,
}

/// One voter of a group.
#[derive(Clone, Debug)]
pub struct Coordinator {
    voters: Voters,
    /// How many voters come before this one.
    order: usize,
    bootstrap: Option<Bootstrap>,
    config: u64,
    view: Option<Arc<View>>,
    /// And when they were last said.
    reports: BTreeMap<MemberId, (Report, Instant)>,
    /// What members of the view have vouched for, by their rows.
    vouched: BTreeMap<MemberId, Vec<u64>>,
    joiners: BTreeMap<MemberId, Wish>,
    since: Option<Instant>,
    joining_since: Option<Instant>,
    due: Option<Instant>,
    wedge_due: Option<Instant>,
    last_call: Option<Instant>,
    /// What comes until then may have been said long ago.
    stale_until: Option<Instant>,
    /// When a member of the view was heard last, or the voter began to listen.
    member_heard: Option<Instant>,
    /// When somebody who is still in a group that has ended is told so again.
    stray_due: Option<Instant>,
    decisions: VecDeque<Arc<Decision>>,
}

#[derive(Clone, Debug)]
struct Wish {
    join: Join,
    heard: Instant,
}

impl Coordinator {
    /// A voter, which comes after so many others; `config` is the digest that members must have, 0 for any.
    #[must_use]
    pub const fn new(voters: Voters, order: usize, bootstrap: Option<Bootstrap>, config: u64) -> Self {
        Self {
            voters,
            order,
            bootstrap,
            config,
            view: None,
            reports: BTreeMap::new(),
            vouched: BTreeMap::new(),
            joiners: BTreeMap::new(),
            since: None,
            joining_since: None,
            due: None,
            wedge_due: None,
            last_call: None,
            stale_until: None,
            member_heard: None,
            stray_due: None,
            decisions: VecDeque::new(),
        }
    }

    /// The newest view that it knows.
    #[must_use]
    pub fn view(&self) -> Option<&Arc<View>> {
        self.view.as_ref()
    }

    /// How many voters come before it from now on.
    pub const fn set_order(&mut self, order: usize) {
        self.order = order;
    }

    /// Something was decided, here or as others say.
    pub fn on_decided<B>(&mut self, decision: &Arc<Decision>, out: &mut Vec<Proposal<B>>) {
        let is_new = self.view.as_ref().is_none_or(|view| {
            view.epoch < decision.next.epoch && view.instance == decision.next.instance
                || decision.next.instance < view.instance
        });
        if !is_new {
            return;
        }
        if self.decisions.len() == DECISIONS_KEPT {
            self.decisions.pop_front();
        }
        self.decisions.push_back(Arc::clone(decision));
        self.adopt(&decision.next);
        out.push(Proposal::Send(Destination::Group, Message::NewView(Arc::clone(decision))));
    }

    /// The view is the newest: all that concerned older ones is done.
    pub fn adopt(&mut self, view: &View) {
        if self.view.as_ref().is_some_and(|it| it.instance == view.instance && it.epoch >= view.epoch) {
            return;
        }
        self.view = Some(Arc::new(view.clone()));
        self.reports.clear();
        self.vouched.clear();
        self.joiners.retain(|id, _| view.rank_of(*id).is_none());
        self.since = None;
        self.joining_since = None;
        self.due = None;
        self.wedge_due = None;
        self.member_heard = None;
    }

    /// Takes what a member says.
    pub fn on_message<B>(&mut self, now: Instant, message: &Message<B>, out: &mut Vec<Proposal<B>>) {
        self.notice(now);
        match message {
            Message::Row(row) => {
                self.hear(now, row.instance, row.epoch, row.from, out);
                self.note_vouched(row);
            }
            Message::Report { instance, report } => self.on_report(now, *instance, report, out),
            Message::Join(join) => self.on_join(now, join),
            Message::AskView { from, epoch } => self.answer(*from, *epoch, out),
            _ => {}
        }
    }

    fn note_vouched(&mut self, row: &Row) {
        let Some(view) = &self.view else { return };
        let is_of = (row.instance, row.epoch) == (view.instance, view.epoch)
            && row.acked.len() == view.members.len()
            && view.rank_of(row.from).is_some();
        if is_of {
            let known = self.vouched.entry(row.from).or_insert_with(|| vec![0; row.acked.len()]);
            known.iter_mut().zip(&row.acked).for_each(|(known, acked)| *known = (*known).max(*acked));
        }
    }

    /// Whether somebody reports less than it has vouched for, as who started again with an old copy of its
    /// directory: others may have delivered that.
    fn has_forgotten(&self, report: &Report) -> bool {
        let known = self.vouched.get(&report.id).filter(|_| !report.is_partial);
        known.is_some_and(|known| known.iter().zip(&report.holds).any(|(known, holds)| holds < known))
    }

    /// Whether who would go on in the place of a member is another member, or does so for another.
    fn is_taken(&self, view: &View, report: &Report) -> bool {
        let Some(successor) = report.successor else { return false };
        let is_it = |id: MemberId, of: MemberId| id != report.id && of.prefix == successor.prefix;
        view.members.iter().any(|it| is_it(it.id, it.id))
            || self.reports.values().any(|(it, _)| is_it(it.id, it.speaker()))
    }

    fn on_report<B>(&mut self, now: Instant, instance: u64, report: &Report, out: &mut Vec<Proposal<B>>) {
        self.hear(now, instance, report.epoch, report.speaker(), out);
        let Some(view) = &self.view else { return };
        if view.instance != instance {
            return;
        }
        if report.epoch < view.epoch {
            self.answer(report.speaker(), report.epoch, out);
            return;
        }
        let is_sound = report.epoch == view.epoch
            && report.holds.len() == view.members.len()
            && view.rank_of(report.id).is_some()
            && !self.has_forgotten(report)
            && !self.is_taken(view, report);
        if !is_sound {
            return;
        }
        // What a member holds is final, as long as its process lives; whom it hears is not.
        let is_older =
            |known: &Report| report.successor.map(|it| it.nonce) < known.successor.map(|it| it.nonce);
        match self.reports.get_mut(&report.id) {
            Some((known, _)) if is_older(known) => {}
            Some((known, heard)) if known.successor == report.successor => {
                *heard = now;
                known.hears = report.hears;
                known.accuses.0 |= report.accuses.0;
                known.caught_up |= report.caught_up;
                known.leaves |= report.leaves;
            }
            _ => {
                self.reports.insert(report.id, (report.clone(), now));
            }
        }
        self.since.get_or_insert(now);
        self.due = Some(now);
    }

    /// Notes that somebody is a member of an epoch. If the group has begun anew without it, it is told.
    fn hear<B>(
        &mut self,
        now: Instant,
        instance: u64,
        epoch: u64,
        who: MemberId,
        out: &mut Vec<Proposal<B>>,
    ) {
        let Some(view) = &self.view else { return };
        if view.instance == instance {
            self.member_heard = Some(now);
        } else if self.bootstrap.is_some_and(|it| it.begins_anew)
            && view.instance < instance
            && self.stray_due.is_none_or(|due| due <= now)
        {
            self.stray_due = now.after(WEDGE_AGAIN);
            self.answer(who, epoch, out);
        }
    }

    /// Whoever did not run for long is handed what was said meanwhile.
    fn notice(&mut self, now: Instant) {
        if self.last_call.is_some_and(|last| now.since(last) >= REPORTS_WITHIN) {
            self.stale_until = now.after(REPORTS_WITHIN);
            self.member_heard = None;
        }
        self.last_call = Some(now);
    }

    fn on_join(&mut self, now: Instant, join: &Join) {
        let is_known = self.joiners.contains_key(&join.from);
        let is_other = self.config != 0 && join.config != self.config;
        if is_other || !is_known && self.joiners.len() >= 2 * MEMBERS_MAX {
            return;
        }
        self.joiners.insert(join.from, Wish { join: join.clone(), heard: now });
        self.due = Instant::earliest([self.due, Some(now)]);
    }

    fn answer<B>(&self, who: MemberId, epoch: u64, out: &mut Vec<Proposal<B>>) {
        let Some(view) = &self.view else { return };
        if view.epoch <= epoch {
            return;
        }
        let known = self.decisions.iter().find(|it| it.base == epoch && epoch > 0);
        let answer = match known {
            Some(decision) => Message::NewView(Arc::clone(decision)),
            None => Message::Current(Arc::clone(view)),
        };
        out.push(Proposal::Send(Destination::Member(who), answer));
    }

    /// When [`Self::tick`] is to be called next.
    #[must_use]
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Time has passed.
    pub fn tick<B>(&mut self, now: Instant, out: &mut Vec<Proposal<B>>) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.notice(now);
        self.joiners.retain(|_, wish| now.since(wish.heard) < JOIN_FORGOTTEN);
        self.due = None;
        let Some(view) = self.view.clone() else {
            self.make_group(now, out);
            return;
        };
        if self.is_deserted(now, &view) {
            let decision = Decision::anew(&view, self.wishes(), &self.voters);
            self.due = now.after(REPORTS_WITHIN);
            out.push(Proposal::Propose(Arc::new(decision)));
        } else if !self.reports.is_empty() {
            self.end_epoch(now, &view, out);
        } else if self.ready(&view).next().is_some() {
            let since = *self.joining_since.get_or_insert(now);
            let begin = since.after(JOINERS_WITHIN).and_then(|it| it.after(self.pause())).unwrap_or(now);
            if now < begin {
                self.due = Some(begin);
                return;
            }
            // Reports are what comes of it.
            if self.wedge_due.is_none_or(|due| due <= now) {
                self.wedge_due = now.after(WEDGE_AGAIN);
                let wedge = Message::Wedge { instance: view.instance, epoch: view.epoch };
                out.push(Proposal::Send(Destination::Group, wedge));
            }
            self.due = self.wedge_due;
        } else {
            self.joining_since = None;
            self.due = (!self.joiners.is_empty()).then(|| now.after(JOIN_FORGOTTEN)).flatten();
        }
    }

    fn pause(&self) -> Duration {
        Duration(PROPOSER_PAUSE.0.saturating_mul(self.order as i64))
    }

    /// Those who may be taken in.
    fn ready(&self, view: &View) -> impl Iterator<Item = Joiner> {
        let is_there = move |id: MemberId| view.members.iter().any(|it| it.id.prefix == id.prefix);
        self.joiners.iter().filter_map(move |(id, wish)| {
            let hears_all = view.members.iter().all(|it| wish.join.hears.contains(&it.id));
            let is_ready = wish.join.ready && hears_all && !is_there(*id) && self.is_last(*id);
            let Join { caught_up, storage, .. } = wish.join;
            is_ready.then_some(Joiner { id: *id, caught_up, storage })
        })
    }

    fn end_epoch<B>(&mut self, now: Instant, view: &View, out: &mut Vec<Proposal<B>>) {
        let Some(since) = self.since else { return };
        if let Some(until) = self.stale_until {
            if now < until {
                self.due = Some(until);
                return;
            }
            self.stale_until = None;
        }
        // Who says nothing any more does not go on.
        let is_fresh = |heard: Instant| now.since(heard) < REPORTS_WITHIN;
        let fresh = self.reports.values().filter(|(_, heard)| is_fresh(*heard)).map(|(report, _)| report);
        let mut reported = Ranks::default();
        let mut heard = Ranks::default();
        for report in fresh.clone() {
            if let Some(rank) = view.rank_of(report.id) {
                reported.add(rank);
            }
            heard.0 |= report.hears.0;
        }
        let has_all = heard.and(view.ranks()).without(reported).is_empty();
        let begin = if has_all { Some(since) } else { since.after(REPORTS_WITHIN) };
        let begin = begin.and_then(|it| it.after(self.pause())).unwrap_or(now);
        if now < begin {
            self.due = Some(begin);
            return;
        }
        let reports: Vec<Report> = fresh.cloned().collect();
        self.due = now.after(REPORTS_WITHIN);
        if !self.has_majority(view, &reports) {
            return;
        }
        // Who joins by surprise in an epoch that ends badly is taken in, too, if it hears those who go on.
        let joiners: Vec<Joiner> = self.ready(view).collect();
        if let Some(decision) = decide(view, &reports, &joiners, &self.voters) {
            out.push(Proposal::Propose(Arc::new(decision)));
        }
    }

    /// Whether enough of the voters have reported, where the members vote. A proposal of fewer would wait for
    /// the votes of others who do not run: when they run again, it would exclude them for no reason, and end
    /// the group if those who made it were lost meanwhile.
    fn has_majority(&self, view: &View, reports: &[Report]) -> bool {
        let has_reported = |voter: &&VoterId| reports.iter().any(|it| it.id.voter() == **voter);
        self.voters != Voters::Members
            || view.voters.iter().filter(has_reported).count() * 2 > view.voters.len()
    }

    /// Whether nobody is left of a group that keeps nothing on a disk, and others would join.
    fn is_deserted(&mut self, now: Instant, view: &View) -> bool {
        let Some(bootstrap) = self.bootstrap.filter(|it| it.begins_anew) else { return false };
        let keeps_something = view.members.iter().any(|it| it.storage != Storage::None);
        if keeps_something || self.joiners.len() < bootstrap.members {
            return false;
        }
        let since = *self.member_heard.get_or_insert(now);
        let at = since.after(BEGIN_ANEW_AFTER).and_then(|it| it.after(self.pause()));
        at.is_some_and(|at| at <= now)
    }

    /// Whether it is the last incarnation of its participant, and its process has not started again, that one
    /// would join.
    fn is_last(&self, id: MemberId) -> bool {
        id.is_last(self.joiners.keys()) && !self.joiners.values().any(|wish| wish.join.before.contains(&id))
    }

    /// Who wishes to join, and what it keeps.
    fn wishes(&self) -> Vec<(MemberId, Storage)> {
        let last = self.joiners.iter().filter(|(id, _)| self.is_last(**id));
        last.take(MEMBERS_MAX).map(|(id, wish)| (*id, wish.join.storage)).collect()
    }

    /// The first epoch, of those who wish to join, once they are enough.
    fn make_group<B>(&mut self, now: Instant, out: &mut Vec<Proposal<B>>) {
        let Some(bootstrap) = self.bootstrap else { return };
        let ids = self.wishes();
        if ids.is_empty() {
            return;
        }
        let since = *self.since.get_or_insert(now);
        let begin = since.after(JOINERS_WITHIN).and_then(|it| it.after(self.pause())).unwrap_or(now);
        if ids.len() < bootstrap.members || now < begin {
            self.due = now.after(JOINERS_WITHIN);
            return;
        }
        let decision = Decision::first(bootstrap.instance, ids, &self.voters);
        self.due = now.after(REPORTS_WITHIN);
        out.push(Proposal::Propose(Arc::new(decision)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guid::GuidPrefix;

    fn id(number: u8) -> MemberId {
        MemberId { prefix: GuidPrefix([number; 12]), nonce: 5 }
    }

    /// Of a member that hears all and has delivered nothing.
    fn report_in(view: &View) -> Report {
        Report {
            id: id(1),
            successor: None,
            epoch: view.epoch,
            holds: vec![0; view.members.len()],
            position: 0,
            is_partial: false,
            clock: 1,
            caught_up: true,
            hears: view.ranks(),
            accuses: Ranks::default(),
            leaves: false,
        }
    }

    /// What a voter proposes, of three members that vote, when so many have reported.
    fn proposed(voters: Voters, reported: u8) -> Option<Ranks> {
        let view = Decision::first(1, (1..=3).map(|it| (id(it), Storage::None)), &voters).next;
        let mut coordinator = Coordinator::new(voters, 0, None, 0);
        coordinator.adopt(&view);
        let mut out: Vec<Proposal<()>> = Vec::new();
        let mut now = Instant(0);
        for _ in 0..100 {
            now = now.after(Duration::from_millis(10)).unwrap();
            for number in 1..=reported {
                let hears = Ranks::first(reported.into());
                let report = Report { id: id(number), hears, ..report_in(&view) };
                coordinator.on_message(now, &Message::Report { instance: 1, report }, &mut out);
            }
            coordinator.tick(now, &mut out);
        }
        out.iter().find_map(|it| match it {
            Proposal::Propose(decision) => Some(decision.incumbents),
            Proposal::Send(..) => None,
        })
    }

    #[test]
    fn a_voter_excludes_no_majority_of_members_that_vote_and_may_run_again() {
        assert_eq!(proposed(Voters::Members, 1), None);
        assert_eq!(proposed(Voters::Members, 2), Some(Ranks(0b011)));
        let elsewhere = Voters::Fixed((7..10).map(|number| VoterId([number; 16])).collect());
        assert_eq!(proposed(elsewhere, 1), Some(Ranks(0b001)));
    }

    #[test]
    fn nobody_goes_on_in_the_place_of_two_members_or_as_another_one() {
        let view = Decision::first(1, (1..=2).map(|it| (id(it), Storage::Durable)), &Voters::Members).next;
        for successors in [[None, Some(id(1))], [Some(id(9)), Some(id(9))]] {
            let mut coordinator = Coordinator::new(Voters::Fixed(Vec::new()), 0, None, 0);
            coordinator.adopt(&view);
            let mut out: Vec<Proposal<()>> = Vec::new();
            let mut now = Instant(0);
            for _ in 0..100 {
                now = now.after(Duration::from_millis(10)).unwrap();
                for (successor, number) in successors.into_iter().zip(1..) {
                    let report = Report { id: id(number), successor, ..report_in(&view) };
                    coordinator.on_message(now, &Message::Report { instance: 1, report }, &mut out);
                }
                coordinator.tick(now, &mut out);
            }
            let proposed = out.into_iter().filter_map(|it| match it {
                Proposal::Propose(decision) => Some(Decision::clone(&decision)),
                Proposal::Send(..) => None,
            });
            let mut members = proposed.map(|it| it.next.members);
            assert!(members.all(|it| it.len() == 1), "{successors:?}");
        }
    }

    /// What a voter with a name proposes of a group with such members of whom nobody is heard, and when.
    fn proposed_anew(storage: Storage, heard_until_s: u64) -> Option<(u64, Decision)> {
        let voters = Voters::Fixed(vec![VoterId([7; 16])]);
        let view = Decision::first(40, [(id(1), storage)], &voters).next;
        let bootstrap = Bootstrap { members: 1, instance: 90, begins_anew: true };
        let mut coordinator = Coordinator::new(voters, 0, Some(bootstrap), 0);
        coordinator.adopt(&View { epoch: 6, ..view });
        let mut out: Vec<Proposal<()>> = Vec::new();
        let mut now = Instant(0);
        for step in 0..3_000_u64 {
            now = now.after(Duration::from_millis(10)).unwrap();
            let join = Join {
                from: id(2),
                ready: false,
                caught_up: false,
                founds: false,
                storage: Storage::None,
                hears: Vec::new(),
                before: Vec::new(),
                config: 0,
            };
            coordinator.on_message(now, &Message::Join(join), &mut out);
            if step < heard_until_s * 100 {
                coordinator.hear(now, 40, 6, id(1), &mut out);
            }
            coordinator.tick(now, &mut out);
            if let Some(Proposal::Propose(decision)) = out.pop() {
                return Some((step / 100, Decision::clone(&decision)));
            }
        }
        None
    }

    #[test]
    fn a_group_of_which_nobody_is_heard_begins_anew_unless_somebody_keeps_it_on_a_disk() {
        let (second, decision) = proposed_anew(Storage::None, 0).unwrap();
        assert_eq!((second, decision.base, decision.incumbents), (5, 6, Ranks::default()));
        let next = decision.next;
        assert_eq!((next.instance, next.epoch, next.base_position), (39, 7, 0));
        assert_eq!(next.members.iter().map(|it| it.id).collect::<Vec<_>>(), [id(2)]);
        assert_eq!(proposed_anew(Storage::None, 8).map(|it| it.0), Some(12));
        assert_eq!(proposed_anew(Storage::Durable, 0), None);
    }
}
