//! One group in a world of its own: processes, lanes, messages, time.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;
use std::sync::Arc;

use plainsong_proto::atomic::Storage;
use plainsong_proto::atomic::coordinator::{Coordinator, Proposal};
use plainsong_proto::atomic::member::{Member, Phase};
use plainsong_proto::atomic::view::Voters;
use plainsong_proto::atomic::{Decision, Destination, EntryHeader, MemberId, Message};
use plainsong_proto::time::{Duration, Instant};

use super::Mistake;
use super::brief::{brief, decided, id_of, on_lane, sample, whom};
use super::entry::Entry;
use super::participant::Participant;
use super::plan::{Link, Plan};
use super::process::{Disk, OnLane, Process, Start, State, Stream};
use super::truth::Truth;
use crate::rng::Rng;
use crate::trace::{Detail, Trace};

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Start {
        node: usize,
    },
    Message {
        from: usize,
        to: usize,
        message: Rc<Message<Entry>>,
    },
    Lane {
        from: usize,
        to: usize,
    },
    Timer {
        process: usize,
    },
    Flush {
        process: usize,
    },
    Write {
        node: usize,
        left: u32,
    },
    Persist {
        process: usize,
    },
    /// What a voter proposes is put to the vote.
    Ballot {
        process: usize,
    },
    Decided {
        process: usize,
        decision: Arc<Decision>,
    },
    Wake {
        process: usize,
    },
    Quicken {
        process: usize,
    },
    EndClone {
        process: usize,
    },
    /// An application takes again.
    Resume {
        process: usize,
    },
    /// One process knows how to reach another.
    Meet {
        from: usize,
        to: usize,
    },
    Fault(usize),
}

#[derive(Debug)]
struct Due {
    at: Instant,
    number: u64,
    event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    // The first is the greatest: of a heap.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) link: Link,
    pub(super) rng: Rng,
    pub(super) at: Instant,
    queue: BinaryHeap<Due>,
    events: u64,
    pub(super) processes: Vec<Process>,
    /// The process that runs on each node.
    pub(super) of_node: Vec<Option<usize>>,
    /// Since when one node does not reach another.
    pub(super) blocked: Vec<Vec<Option<Instant>>>,
    /// Until when what is on its way stays so.
    pub(super) clogged: Vec<Vec<Instant>>,
    /// By sender and receiver; `None` until they know each other.
    pub(super) streams: Vec<BTreeMap<usize, Stream>>,
    /// What was decided, by instance (0 for the first epoch) and epoch.
    pub(super) decided: BTreeMap<(u64, u64), Arc<Decision>>,
    pub(super) truth: Truth,
    pub(super) trace: Trace,
    pub(super) mistake: Option<Mistake>,
    /// Proposals of the core, in order.
    pub(super) proposals: Vec<Proposal<Entry>>,
    pub(super) stops_writing: bool,
    /// All faults have ended.
    pub(super) is_healed: bool,
    pub(super) nonces: u64,
    /// Samples of which it could not be told what came of them.
    pub(super) unknown: u64,
    /// Groups are those of products.
    pub(super) is_real: bool,
    /// What is on the disk of each node.
    pub(super) disks: Vec<Disk>,
    /// Nothing of that was ever lost.
    pub(super) has_kept_all: Vec<bool>,
    /// Members that have, or had, a view on their disks.
    pub(super) kept_views: BTreeSet<MemberId>,
    /// Processes that ran there, where each is another participant.
    pub(super) generations: Vec<u8>,
}

/// A run that has more events than this spins.
const EVENTS_MAX: u64 = 8_000_000;

impl World {
    pub(super) fn new(
        plan: Plan,
        mut rng: Rng,
        detail: Detail,
        mistake: Option<Mistake>,
        is_real: bool,
    ) -> Self {
        let count = plan.nodes.len();
        let mut world = Self {
            link: plan.link,
            nonces: rng.next() >> 8,
            rng,
            at: Instant(1_000_000_000),
            queue: BinaryHeap::new(),
            events: 0,
            processes: Vec::new(),
            of_node: vec![None; count],
            blocked: vec![vec![None; count]; count],
            clogged: vec![vec![Instant(0); count]; count],
            streams: Vec::new(),
            decided: BTreeMap::new(),
            truth: Truth::new(plan.config.storage == Storage::Durable, plan.config.history_entries_max),
            trace: Trace::new(detail),
            mistake,
            proposals: Vec::new(),
            stops_writing: false,
            is_healed: false,
            unknown: 0,
            is_real,
            disks: vec![Disk::new(); count],
            has_kept_all: vec![true; count],
            kept_views: BTreeSet::new(),
            generations: vec![0; count],
            plan,
        };
        for node in 0..count {
            let starts = world.plan.nodes[node].starts;
            world.schedule(Duration(starts.0 as i64), Event::Start { node });
            let writes = world.plan.nodes[node].writes;
            if writes > 0 {
                world.schedule(Duration(starts.0 as i64), Event::Write { node, left: writes });
            }
        }
        for index in 0..world.plan.faults.len() {
            let (at, _) = world.plan.faults[index];
            world.schedule(Duration(at.0 as i64), Event::Fault(index));
        }
        world
    }

    pub(super) fn schedule(&mut self, delay: Duration, event: Event) {
        let at = self.at.after(delay).unwrap_or(Instant(u64::MAX));
        self.schedule_at(at, event);
    }

    pub(super) fn schedule_at(&mut self, at: Instant, event: Event) {
        self.events += 1;
        self.queue.push(Due { at: at.max(self.at), number: self.events, event });
    }

    /// Lets time pass.
    pub(super) fn run_until(&mut self, until: Instant) {
        while let Some(due) = self.queue.peek()
            && due.at <= until
            && self.truth.violations.is_empty()
        {
            let Some(Due { at, event, .. }) = self.queue.pop() else { return };
            self.at = at;
            self.handle(event);
            if self.events > EVENTS_MAX {
                self.truth.violated("spins", format!("{} events", self.events));
            }
        }
        self.at = self.at.max(until);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Start { node } => {
                if self.of_node[node].is_none() {
                    self.start(node);
                }
            }
            Event::Message { from, to, message } => self.arrive(from, to, message),
            Event::Lane { from, to } => self.on_lane(from, to),
            Event::Timer { process } => self.on_timer(process),
            Event::Flush { process } => self.on_flush(process),
            Event::Write { node, left } => self.on_write(node, left),
            Event::Persist { process } => self.on_persist(process),
            Event::Ballot { process } => self.on_ballot(process),
            Event::Decided { process, decision } => self.on_decided(process, &decision),
            Event::Wake { process } => self.wake(process),
            Event::Quicken { process } => self.quicken(process),
            Event::EndClone { process } => self.crash(process),
            Event::Resume { process } => self.resume(process),
            Event::Meet { from, to } => self.meet(from, to),
            Event::Fault(index) => self.fault(index),
        }
    }

    pub(super) fn note(&mut self, facts: &[u64], line: impl FnOnce() -> String) {
        self.trace.record(self.at, facts, line);
    }

    // ---- processes ----

    pub(super) fn start(&mut self, node: usize) -> usize {
        let nonce = if self.mistake == Some(Mistake::SameNonce) {
            7
        } else {
            self.nonces += self.rng.between(1, 1 << 20);
            self.nonces
        };
        // Groups that are made later are younger.
        let instance = self.at.0 << 16 | (node as u64) << 8;
        if self.plan.config.storage != Storage::None && self.mistake != Some(Mistake::SameNonce) {
            self.generations[node] += 1;
        }
        let (generation, image) = (self.generations[node], self.recall(node));
        let start =
            Start { node, nonce, instance, generation, is_clone: false, is_real: self.is_real, image };
        let mut process = Process::start(&self.plan, start, self.at);
        // What is on its disk may have been fetched from who had more, and had forgotten more for that.
        process.app.transferred_to = self.truth.positions(process.app.instance);
        self.of_node[node] = Some(self.processes.len());
        self.admit(process)
    }

    /// A process begins.
    pub(super) fn admit(&mut self, mut process: Process) -> usize {
        let index = self.processes.len();
        let name = process.name.clone();
        self.note(&[1, index as u64], || format!("p{index} {name} starts"));
        process.app.writers = (0..2).map(|_| self.truth.new_writer()).collect();
        process.app.begins = true;
        if let Participant::Model { member: Some(member), .. } = &mut process.participant
            && let Some(mistake) = self.mistake.and_then(Mistake::of_member)
        {
            member.err(mistake);
        }
        self.processes.push(process);
        self.streams.push(BTreeMap::new());
        for other in 0..index {
            if self.processes[other].is_alive() {
                for (from, to) in [(index, other), (other, index)] {
                    let delay = self.rng.below(self.plan.discovery);
                    self.schedule(Duration(delay as i64), Event::Meet { from, to });
                }
            }
        }
        self.follow_view(index);
        if (self.processes[index].fixed.is_some() || self.plan.config.storage != Storage::None)
            && !self.is_real
        {
            // A voter has kept what was decided.
            let decided: Vec<Arc<Decision>> = self.decided.values().cloned().collect();
            for decision in decided {
                self.on_decided(index, &decision);
            }
        }
        self.done(index);
        index
    }

    fn meet(&mut self, from: usize, to: usize) {
        if !self.processes[from].is_alive() || !self.processes[to].is_alive() {
            return;
        }
        if self.is_blocked(from, to) || self.is_blocked(to, from) {
            self.schedule(Duration::from_millis(100), Event::Meet { from, to });
        } else {
            self.streams[from].entry(to).or_default();
        }
    }

    pub(super) fn arm(&mut self, process: usize) {
        let Some(deadline) = self.processes[process].deadline() else { return };
        if !self.processes[process].runs() {
            return;
        }
        let late = if self.rng.chance(5) { self.rng.below(10_000_000) } else { self.rng.below(200_000) };
        let at = Instant(deadline.max(self.at).0 + 1_000 + late);
        if self.processes[process].timer.is_none_or(|timer| at < timer) {
            self.processes[process].timer = Some(at);
            self.schedule_at(at, Event::Timer { process });
        }
    }

    fn on_timer(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if process.timer != Some(self.at) || !process.runs() {
            return;
        }
        process.timer = None;
        let votes = process.votes();
        process.participant.tick(self.at, votes, &mut self.proposals);
        self.trace.record(self.at, &[2, index as u64], || format!("p{index} tick"));
        self.done(index);
    }

    fn on_flush(&mut self, index: usize) {
        let process = &mut self.processes[index];
        process.is_flush_due = false;
        if !process.runs() {
            return;
        }
        process.participant.flush(self.at);
        self.done(index);
    }

    /// After each input: what the core asks for is done.
    pub(super) fn done(&mut self, index: usize) {
        loop {
            for proposal in std::mem::take(&mut self.proposals) {
                match proposal {
                    Proposal::Send(destination, message) => self.send(index, destination, message),
                    Proposal::Propose(decision) => self.propose(index, decision),
                }
            }
            let Some(action) = self.processes[index].participant.poll() else { break };
            self.act(index, action);
            if self.plan.config.storage != Storage::None {
                self.follow_view(index);
            }
        }
        self.check_process(index);
        let process = &mut self.processes[index];
        if process.member().is_some_and(Member::is_dirty) && !process.is_flush_due {
            process.is_flush_due = true;
            let delay = self.rng.below(self.plan.batch + 1);
            self.schedule(Duration(delay as i64), Event::Flush { process: index });
        }
        self.arm(index);
    }

    /// How long something takes.
    pub(super) fn delay(&mut self) -> u64 {
        let doublings = u64::from(self.rng.next().leading_zeros());
        let mean = self.link.delay_mean;
        self.link.delay_min + mean * doublings * 7 / 10 + self.rng.below(mean * 7 / 10 + 1)
    }

    pub(super) fn is_blocked(&self, from: usize, to: usize) -> bool {
        let (from, to) = (self.processes[from].node, self.processes[to].node);
        from != to && self.blocked[from][to].is_some()
    }

    fn clogged_until(&self, from: usize, to: usize) -> Instant {
        self.clogged[self.processes[from].node][self.processes[to].node]
    }

    // ---- messages ----

    pub(super) fn send(&mut self, from: usize, destination: Destination, message: Message<Entry>) {
        self.check_message(from, &message);
        self.trace.record(self.at, &[3, from as u64], || {
            format!("p{from} sends {} {}", whom(destination), brief(&message))
        });
        if self.mistake == Some(Mistake::AckAfterFreeze)
            && let Message::Row(row) = &message
        {
            self.processes[from].last_row = Some(row.clone());
        }
        self.carry_to_all(from, destination, message);
    }

    pub(super) fn carry_to_all(&mut self, from: usize, destination: Destination, message: Message<Entry>) {
        let message = Rc::new(message);
        for to in 0..self.processes.len() {
            if self.processes[to].is_alive() && self.is_meant(to, destination) {
                self.carry(from, to, &message);
            }
        }
    }

    fn is_meant(&self, to: usize, destination: Destination) -> bool {
        let process = &self.processes[to];
        match destination {
            Destination::Group => true,
            Destination::Member(id) => process.prefix == id.prefix,
            Destination::Voter(id) => process.voter() == Some(id),
        }
    }

    fn carry(&mut self, from: usize, to: usize, message: &Rc<Message<Entry>>) {
        let event = Event::Message { from, to, message: Rc::clone(message) };
        if from == to {
            // Between member and voter of one process.
            self.schedule(Duration(0), event);
            return;
        }
        if self.is_blocked(from, to) || !self.streams[from].contains_key(&to) {
            return;
        }
        if self.rng.chance(self.link.loss_percent) {
            return;
        }
        let copies = if self.rng.chance(self.link.twice_percent) { 2 } else { 1 };
        for _ in 0..copies {
            let arrives = Instant(self.at.0 + self.delay()).max(self.clogged_until(from, to));
            self.schedule_at(arrives, event.clone());
        }
    }

    fn arrive(&mut self, from: usize, to: usize, message: Rc<Message<Entry>>) {
        match self.processes[to].state {
            State::Dead => return,
            State::Paused => {
                let inbox = &mut self.processes[to].inbox;
                if inbox.len() < 300 {
                    inbox.push_back((from, message));
                }
                return;
            }
            State::Runs => {}
        }
        self.take(from, to, &message);
    }

    pub(super) fn take(&mut self, from: usize, to: usize, message: &Message<Entry>) {
        self.trace.record(self.at, &[4, to as u64, from as u64], || {
            format!("p{to} hears p{from} {}", brief(message))
        });
        let message = self.misheard(to, message.clone());
        let process = &mut self.processes[to];
        if let Message::Transfer(part) = &message {
            process.app.donor_instance = part.instance;
            process.app.transferred_to = process.app.transferred_to.max(part.position);
        }
        let votes = process.votes();
        process.participant.on_message(self.at, message, votes, &mut self.proposals);
        self.done(to);
    }

    // ---- lanes ----

    pub(super) fn send_entry(&mut self, from: usize, id: MemberId, header: EntryHeader, entry: Entry) {
        let process = &mut self.processes[from];
        process.sent += 1;
        let number = process.sent;
        let Some((instance, _)) = process.epoch() else {
            // Nobody takes what it sends in an epoch that it has left at the same moment.
            if self.truth.view(header.instance, header.epoch).is_none() {
                self.truth.violated("sent", format!("p{from} sends {header:?} in no epoch"));
            }
            return;
        };
        self.trace.record(self.at, &[5, from as u64, header.index, header.stamp], || {
            format!("p{from} sends {}", on_lane(header, &entry))
        });
        self.truth.sent(instance, id, header, entry);
        let targets: Vec<usize> = self.streams[from].keys().copied().collect();
        for to in targets {
            if !self.processes[to].is_alive() || self.processes[to].member().is_none() {
                continue;
            }
            let mut delay = self.delay();
            if self.rng.chance(self.link.loss_percent) {
                // It is repaired.
                delay += self.rng.between(1_000_000, 60_000_000);
            }
            let clogged = self.clogged_until(from, to);
            let Some(stream) = self.streams[from].get_mut(&to) else { continue };
            let arrives = Instant(self.at.0 + delay).max(clogged).max(stream.last_arrival);
            stream.last_arrival = arrives;
            stream.queue.push_back(OnLane { number, instance, from: id, header, entry, arrives });
            self.schedule_lane(from, to);
        }
    }

    pub(super) fn schedule_lane(&mut self, from: usize, to: usize) {
        let Some(stream) = self.streams[from].get_mut(&to) else { return };
        if let Some(first) = stream.queue.front()
            && !stream.is_scheduled
        {
            stream.is_scheduled = true;
            let at = first.arrives;
            self.schedule_at(at, Event::Lane { from, to });
        }
    }

    fn on_lane(&mut self, from: usize, to: usize) {
        let is_stuck = self.is_blocked(from, to) || !self.processes[to].runs() || self.processes[to].is_slow;
        let released = self.processes[from].released;
        let Some(stream) = self.streams[from].get_mut(&to) else { return };
        stream.is_scheduled = false;
        if is_stuck {
            return;
        }
        let mut taken = 0;
        while let Some(stream) = self.streams[from].get_mut(&to)
            && let Some(first) = stream.queue.front().copied()
            && first.arrives <= self.at
            && taken < 64
        {
            stream.queue.pop_front();
            taken += 1;
            // What nobody needs may be gone, or on its way.
            if first.number <= released && self.rng.chance(50) {
                continue;
            }
            self.take_entry(from, to, first);
        }
        if taken > 0 {
            self.done(to);
        }
        self.schedule_lane(from, to);
    }

    fn take_entry(&mut self, from: usize, to: usize, first: OnLane) {
        let OnLane { instance, from: id, header, entry, .. } = first;
        self.trace.record(self.at, &[6, to as u64, from as u64, header.index], || {
            format!("p{to} receives from p{from} {} {}", id_of(id), on_lane(header, &entry))
        });
        let process = &mut self.processes[to];
        let epoch = process.epoch();
        let Some(member) = process.member() else { return };
        let is_current = epoch.is_some_and(|(_, epoch)| epoch == header.epoch);
        let is_taken = match member.phase() {
            Phase::Active => epoch.is_none_or(|(_, epoch)| epoch <= header.epoch),
            Phase::Frozen => !is_current,
            Phase::Joining => true,
            Phase::Gone => false,
        };
        let who = member.id();
        process.participant.on_entry(self.at, id, header, entry);
        if is_taken {
            self.truth.received(instance, who, id, header);
        }
        self.ack_after_freeze(to, header);
        self.drain(to);
    }

    fn drain(&mut self, index: usize) {
        while let Some(action) = self.processes[index].participant.poll() {
            self.act(index, action);
        }
    }

    // ---- votes ----

    fn propose(&mut self, index: usize, decision: Arc<Decision>) {
        let decision = self.misproposed(index, decision);
        self.trace.record(self.at, &[7, index as u64, decision.base], || {
            format!("p{index} proposes {}", decided(&decision))
        });
        let is_new = self.processes[index].proposal.is_none();
        self.processes[index].proposal = Some(decision);
        if is_new {
            let delay = self.delay() * 2 + self.rng.below(5_000_000);
            self.schedule(Duration(delay as i64), Event::Ballot { process: index });
        }
    }

    /// A model of consensus: who reaches a majority of the voters decides, unless it is decided.
    fn on_ballot(&mut self, index: usize) {
        if !self.processes[index].is_alive() {
            return;
        }
        let Some(decision) = self.processes[index].proposal.clone() else { return };
        let key = (if decision.base == 0 { 0 } else { decision.next.instance }, decision.base);
        if let Some(known) = self.decided.get(&key).cloned()
            && self.mistake != Some(Mistake::DecideTwice)
        {
            self.processes[index].proposal = None;
            self.spread(index, &known);
            return;
        }
        let voters = self.voters_of(&decision);
        let is_voter = voters.iter().any(|it| Some(*it) == self.processes[index].voter());
        let reached = voters
            .iter()
            .filter(|voter| (0..self.processes.len()).any(|to| self.answers(index, to, **voter)))
            .count();
        if !is_voter {
            self.processes[index].proposal = None;
            return;
        }
        if reached * 2 <= voters.len() {
            self.schedule(Duration::from_millis(50), Event::Ballot { process: index });
            return;
        }
        self.processes[index].proposal = None;
        self.trace
            .record(self.at, &[8, index as u64, decision.base], || format!("decided {}", decided(&decision)));
        self.decided.entry(key).or_insert_with(|| Arc::clone(&decision));
        self.truth.decided(&decision);
        self.spread(index, &decision);
    }

    fn voters_of(&self, decision: &Decision) -> Vec<plainsong_proto::atomic::VoterId> {
        let view = self.truth.view(decision.next.instance, decision.base);
        view.map_or_else(|| decision.next.voters.clone(), |view| view.voters.clone())
    }

    fn answers(&self, from: usize, to: usize, voter: plainsong_proto::atomic::VoterId) -> bool {
        let process = &self.processes[to];
        let is_near = from == to || !self.is_blocked(from, to) && !self.is_blocked(to, from);
        process.runs() && process.voter() == Some(voter) && is_near
    }

    /// All voters learn what was decided.
    fn spread(&mut self, index: usize, decision: &Arc<Decision>) {
        let voters = self.voters_of(decision);
        for to in 0..self.processes.len() {
            let process = &self.processes[to];
            if process.is_alive() && voters.iter().any(|it| Some(*it) == process.voter()) {
                let delay = if to == index { 0 } else { self.delay() };
                let event = Event::Decided { process: to, decision: Arc::clone(decision) };
                self.schedule(Duration(delay as i64), event);
            }
        }
    }

    fn on_decided(&mut self, index: usize, decision: &Arc<Decision>) {
        if !self.processes[index].is_alive() {
            return;
        }
        // Members vote in their own group.
        let is_elsewhere = self.plan.config.voters == Voters::Members
            && self.processes[index].epoch().is_some_and(|(own, _)| own != decision.next.instance);
        if is_elsewhere {
            return;
        }
        // Whoever is left alone reaches itself.
        let others = || (0..self.processes.len()).filter(|it| *it != index && self.processes[*it].is_alive());
        let is_cut_off = others().next().is_some() && others().all(|other| self.is_blocked(other, index));
        if !self.processes[index].runs() || is_cut_off {
            let delay = Duration::from_millis(self.rng.between(20, 100) as i64);
            self.schedule(delay, Event::Decided { process: index, decision: Arc::clone(decision) });
            return;
        }
        self.trace.record(self.at, &[9, index as u64, decision.base], || {
            format!("p{index} learns {}", decided(decision))
        });
        if let Some(coordinator) = self.processes[index].participant.coordinator() {
            coordinator.on_decided(decision, &mut self.proposals);
        }
        self.done(index);
    }

    // ---- writing ----

    fn on_write(&mut self, node: usize, left: u32) {
        if left == 0 || self.stops_writing {
            return;
        }
        let retry = Duration(self.rng.between(100_000, 20_000_000) as i64);
        let Some(index) = self.of_node[node].filter(|&index| self.processes[index].runs()) else {
            self.schedule(retry, Event::Write { node, left });
            return;
        };
        // Now and then several at once.
        let burst = if self.rng.chance(10) { self.rng.between(1, 16) } else { 1 };
        let mut left = left;
        for _ in 0..burst.min(left.into()) {
            if !self.write(index) {
                self.schedule(retry, Event::Write { node, left });
                self.done(index);
                return;
            }
            left -= 1;
        }
        self.done(index);
        let mean = self.plan.nodes[node].pause.0.max(1) as u64;
        let pause = self.rng.between(1, 2 * mean) * burst;
        self.schedule(Duration(pause as i64), Event::Write { node, left });
    }

    fn write(&mut self, index: usize) -> bool {
        let writer = *self.rng.pick(&self.processes[index].app.writers);
        let number = self.truth.next_number(writer);
        let key = if self.rng.chance(80) { self.rng.between(1, self.plan.keys) as u8 } else { 0 };
        let entry = Entry {
            writer,
            number,
            key,
            depth: self.plan.depths[0],
            octets: self.rng.between(1, 300) as u16,
            payload: self.rng.next(),
        };
        let process = &mut self.processes[index];
        let Some((instance, _)) = process.epoch() else { return false };
        if process.participant.write(self.at, entry).is_err() {
            return false;
        }
        process.app.pending.push_back(entry);
        self.truth.issued(instance, entry);
        self.trace.record(self.at, &[10, index as u64, entry.payload], || {
            format!("p{index} writes {}", sample(&entry))
        });
        true
    }

    /// A voter begins to be one, or is another: of its members the first ones vote.
    pub(super) fn follow_view(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let Some(view) = process.member().and_then(Member::view) else { return };
        if process.fixed.is_some() {
            return;
        }
        let (is_known, voter) = (process.knows(view), process.voter());
        let order = view.voters.iter().position(|it| Some(*it) == voter);
        let view = (!is_known).then(|| view.clone());
        if let Some(coordinator) = process.participant.coordinator() {
            order.into_iter().for_each(|order| Coordinator::set_order(coordinator, order));
            view.iter().for_each(|view| coordinator.adopt(view));
        }
    }
}
