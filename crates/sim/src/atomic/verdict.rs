//! One run: faults, then none, and what must have come of it.

use plainsong_proto::atomic::member::{Member, Phase};
use plainsong_proto::atomic::view::{View, Voters};
use plainsong_proto::atomic::{MemberId, Storage, VoterId};
use plainsong_proto::time::{Duration, Instant};

use super::Mistake;
use super::entry::Entry;
use super::plan::{Length, Plan};
use super::process::Process;
use super::world::World;
use crate::check::Violation;
use crate::rng::Rng;
use crate::trace::Detail;

/// How a run came out.
#[derive(Debug)]
pub struct Verdict {
    /// What should never have been.
    pub violations: Vec<Violation>,
    /// The end of the trace.
    pub tail: Vec<String>,
    /// Of everything that happened.
    pub hash: u64,
    /// How much happened.
    pub events: u64,
    /// Samples in the order.
    pub delivered: u64,
    /// Epochs that ended.
    pub epochs: u64,
    /// Samples of which it could not be told what came of them.
    pub unknown: u64,
    /// Whether those who were left could go on, so that they had to.
    pub is_live: bool,
}

/// Within this all is as it should be once faults have ended: ten leases.
const LIVENESS: Duration = Duration::from_secs(5);

/// In one seed of so many groups are those of products, with their deciders.
const REAL_SHARE: u64 = 4;

/// Carries out the run of `seed`.
#[must_use]
pub fn run(seed: u64, length: Length, detail: Detail, mistake: Option<Mistake>) -> Verdict {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng, length);
    let until = Instant(1_000_000_000 + plan.faults_until.0);
    let is_real = mistake.is_none() && seed % REAL_SHARE == REAL_SHARE - 1;
    let mut world = World::new(plan, rng, detail, mistake, is_real);
    let plan = world.plan.clone();
    world.note(&[seed], || format!("{plan:?}"));
    world.run_until(until);
    world.heal();
    let is_live = world.can_go_on();
    world.run_until(Instant(until.0 + 300_000_000));
    world.stops_writing = true;
    if is_live {
        world.settle();
    }
    world.verdict(is_live)
}

impl World {
    /// Whether each group of which somebody is left can go on: a majority of its voters is left, and somebody
    /// who has everything.
    fn can_go_on(&self) -> bool {
        let is_inhabited = |instance: &u64| {
            // Who was a member makes no other group, also when it has started again.
            let remembers = |it: &Process| {
                it.app.instance == *instance && it.member().is_some_and(Member::makes_no_group)
            };
            let inside = |it: &Process| {
                it.is_alive() && (it.epoch().is_some_and(|(own, _)| own == *instance) || remembers(it))
            };
            self.processes.iter().any(inside) || matches!(self.plan.config.voters, Voters::Fixed(_))
        };
        if self.truth.instances().next().is_none() && matches!(self.plan.config.voters, Voters::Fixed(_)) {
            // So many make a group.
            let alive =
                self.processes.iter().filter(|it| it.is_alive() && !it.is_leaving && it.member().is_some());
            return alive.count() >= self.plan.founders();
        }
        self.truth.instances().filter(is_inhabited).all(|instance| self.can_instance_go_on(instance))
    }

    fn can_instance_go_on(&self, instance: u64) -> bool {
        let alive = || self.processes.iter().filter(|it| it.is_alive());
        let Some(view) = self.truth.newest(instance) else { return true };
        // What was decided may be known to nobody who is left.
        let knows = |it: &Process| it.epoch() == Some((instance, view.epoch)) || it.knows(view);
        if self.plan.config.voters == Voters::Members && !alive().any(knows) {
            return false;
        }
        let is_voter = |it: &Process, voter| {
            let is_inside = it.epoch().is_none_or(|(own, _)| own == instance) && !it.is_leaving;
            it.voter() == Some(voter) && (is_inside || it.fixed.is_some())
        };
        let has_vote = |voter| alive().any(|it| is_voter(it, voter)) || self.may_find_out(view, voter);
        let votes = view.voters.iter().filter(|voter| has_vote(**voter)).count();
        // Of two groups that were made apart a member may be named in both.
        let is_here = |it: &&Process| it.epoch().is_some_and(|(own, _)| own == instance) && !it.is_leaving;
        let inside = |id: MemberId| {
            let mut members = alive().filter(is_here).filter_map(Process::member);
            members.find(|member| member.place() == Some(id))
        };
        let has_all = |member: &Member<Entry>| {
            self.plan.config.storage != Storage::Stable || member.place() == Some(member.id())
        };
        let mut there = view.members.iter().filter(|it| it.caught_up).filter_map(|it| inside(it.id));
        let goes_on = there.any(has_all) || view.members.iter().all(|it| inside(it.id).is_some());
        votes * 2 > view.voters.len() && goes_on
    }

    /// Whether a voter was killed before its view was on its disk: it finds out that it is one when it hears
    /// of the group. Not one that was in another group meanwhile: they were made apart, and what one alone
    /// has written in the older one keeps it from giving way.
    fn may_find_out(&self, view: &View, voter: VoterId) -> bool {
        let is_it = |id: MemberId| id.voter() == voter && !self.kept_views.contains(&id);
        let Some(place) = view.members.iter().find(|it| is_it(it.id)) else { return false };
        let is_clone = |it: &Process| it.is_clone && it.prefix == place.id.prefix;
        if self.processes.iter().any(is_clone) {
            return false;
        }
        let node = usize::from(place.id.prefix.0[0]).saturating_sub(1);
        let Some(now) = self.of_node[node].map(|it| &self.processes[it]) else { return false };
        let was_killed = now.prefix != place.id.prefix && !now.is_leaving;
        was_killed && place.storage != Storage::None && self.has_kept_all[node]
    }

    /// Waits until all is well.
    fn settle(&mut self) {
        // Each of several epochs takes some writes, one after the other.
        let disks = Duration(self.plan.persist_delay as i64 * 30);
        let end = self.at.after(LIVENESS).and_then(|it| it.after(disks)).unwrap_or(self.at);
        while self.at < end && self.truth.violations.is_empty() {
            let next = Instant(self.at.0 + 100_000_000);
            self.run_until(next.min(end));
            if self.unsettled().is_none() {
                return;
            }
        }
        // Those who were to go on may be gone since.
        if let Some(what) = self.unsettled()
            && self.can_go_on()
        {
            self.truth.violated("liveness", what);
        }
    }

    /// What is not as it should be.
    fn unsettled(&self) -> Option<String> {
        let mut common: Option<(u64, u64, u64)> = None;
        for (index, process) in self.processes.iter().enumerate().filter(|(_, it)| it.is_alive()) {
            let Some(member) = process.member() else { continue };
            if process.is_leaving {
                continue;
            }
            let Some((instance, epoch)) = process.epoch().filter(|_| member.phase() == Phase::Active) else {
                return Some(format!("p{index} is {:?}", member.phase()));
            };
            let pending = process.app.pending.len();
            if pending > 0 {
                return Some(format!("p{index} waits for {pending} of its own"));
            }
            let own = (instance, epoch, member.position());
            if *common.get_or_insert(own) != own {
                return Some(format!("p{index} is at {own:?}, others at {common:?}"));
            }
            let behind = self.truth.positions(instance);
            if member.position() != behind {
                return Some(format!("p{index} is at {} of {behind}", member.position()));
            }
        }
        None
    }

    fn verdict(mut self, is_live: bool) -> Verdict {
        for index in 0..self.processes.len() {
            if self.processes[index].is_alive() && self.processes[index].phase() == Some(Phase::Active) {
                let caught_up = self.processes[index].member().is_some_and(Member::is_caught_up);
                if caught_up {
                    self.check_history(index);
                }
            }
        }
        let instances: Vec<u64> = self.truth.instances().collect();
        let newest = instances.iter().filter_map(|it| self.truth.newest(*it));
        Verdict {
            epochs: newest.map(|view| view.epoch).sum(),
            delivered: instances.iter().map(|it| self.truth.positions(*it)).sum(),
            tail: self.trace.tail().map(str::to_owned).collect(),
            hash: self.trace.hash(),
            events: self.trace.events(),
            unknown: self.unknown,
            violations: self.truth.violations,
            is_live,
        }
    }
}
