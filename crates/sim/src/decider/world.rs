//! One run: the voters, their disks, the network between them, and what must hold.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use plainsong_proto::atomic::decider::{Electorate, EpochDecider, Record, VoterId, open};
use plainsong_proto::time::{Duration, Instant};

use super::mistake::Mistake;
use crate::check::Violation;
use crate::rng::Rng;

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What did not hold.
    pub violations: Vec<Violation>,
    /// Of everything that happened.
    pub hash: u64,
    /// Calls of voters.
    pub steps: u64,
    /// Bases that were decided.
    pub decisions: u64,
    /// Until everybody knew the last decision, after all had healed.
    pub healed_in: Duration,
}

/// Decisions that voters keep for those who missed them, at least.
const KEPT: u64 = 64;
/// After all has healed, everybody knows a new decision within this.
const HEALED_WITHIN: Duration = Duration::from_secs(3);
/// And all are at rest within this.
const REST_WITHIN: Duration = Duration::from_secs(8);
/// Calls of voters in one run, at most: more are a loop.
const STEPS_MAX: u64 = 500_000;
/// And so many violations.
const VIOLATIONS_MAX: usize = 100;
const FIRST_BASE: u64 = 1;

/// Runs a seed; prints what happens if it is to be `told`.
#[must_use]
pub fn run(seed: u64, mistake: Option<Mistake>, told: bool) -> Outcome {
    let mut world = World::new(seed, mistake, told);
    let end = world.after_ms(world.plan.faults_ms);
    world.advance(end, &|_| false);
    let healed = world.now;
    let last = world.heal();
    let bound = world.after(HEALED_WITHIN);
    world.advance(bound, &|world| world.everybody_knows(last));
    let healed_in = world.now.since(healed);
    if !world.everybody_knows(last) {
        let bases: Vec<_> = world.nodes.iter().map(Node::base).collect();
        world.violate(
            "liveness",
            format!("base {last} is not decided everywhere after {healed_in}: {bases:?}"),
        );
    } else if world.plan.until_rest {
        let bound = world.after(REST_WITHIN);
        world.advance(bound, &World::is_at_rest);
        if !world.is_at_rest() {
            world.violate("rest", format!("voters are still active {REST_WITHIN} after the last decision"));
        }
    }
    let decisions = world.decided.len() as u64;
    Outcome { violations: world.violations, hash: world.hash, steps: world.steps, decisions, healed_in }
}

/// What a run is like.
#[derive(Clone, Copy, Debug)]
struct Plan {
    voters: usize,
    faults_ms: u64,
    /// Between two faults, about.
    fault_ms: u64,
    /// Between two proposals, about.
    proposal_ms: u64,
    /// A record is durable after this at most.
    sync_us: u64,
    crashes: bool,
    partitions: bool,
    until_rest: bool,
}

impl Plan {
    fn new(rng: &mut Rng) -> Self {
        Self {
            voters: *rng.pick(&[1, 2, 3, 3, 3, 3, 3, 3, 4, 5, 5, 5, 5, 7]),
            faults_ms: rng.between(50, 700),
            fault_ms: *rng.pick(&[10, 30, 60, 200]),
            proposal_ms: *rng.pick(&[5, 20, 50]),
            sync_us: *rng.pick(&[100, 1_000, 1_000, 15_000]),
            crashes: rng.chance(80),
            partitions: rng.chance(80),
            until_rest: rng.chance(8),
        }
    }
}

/// What the network does to messages.
#[derive(Clone, Copy, Debug)]
struct Weather {
    loss_percent: u64,
    double_percent: u64,
    delay_us: u64,
    /// One in so many is late by a hundred delays.
    late_percent: u64,
}

impl Weather {
    fn new(rng: &mut Rng) -> Self {
        Self {
            loss_percent: *rng.pick(&[0, 0, 5, 15, 30]),
            double_percent: *rng.pick(&[0, 0, 5, 20]),
            delay_us: *rng.pick(&[100, 500, 2_000, 10_000, 40_000]),
            late_percent: *rng.pick(&[0, 0, 2, 10]),
        }
    }

    const fn fair() -> Self {
        Self { loss_percent: 5, double_percent: 2, delay_us: 1_000, late_percent: 1 }
    }

    fn delay(self, rng: &mut Rng) -> Duration {
        let micros = rng.between(self.delay_us / 4, self.delay_us);
        let factor = if rng.chance(self.late_percent) { rng.between(1, 100) } else { 1 };
        Duration::from_micros((micros * factor).min(300_000) as i64)
    }
}

type Voter = Box<dyn EpochDecider + Send>;
type Ballots = [(u32, u64); 2];

struct Node {
    electorate: Electorate,
    /// `None` of one that is down.
    voter: Option<Voter>,
    /// Grows with each start: what is on its way to an earlier one is void.
    incarnation: u32,
    /// The records that would survive.
    disk: Vec<Vec<u8>>,
    /// Records on their way to the disk, with the ballots that they have.
    writing: VecDeque<(Record, Ballots)>,
    written_at: Instant,
    /// What the voter had when its last durable record was taken.
    durable: Ballots,
    /// What it had at the last step.
    seen: Ballots,
    /// The base of the next decision of this incarnation, after the first.
    expected: Option<u64>,
    /// What it proposed last.
    proposal: Option<(u64, Vec<u8>)>,
}

impl Node {
    fn base(&self) -> u64 {
        self.voter.as_ref().map_or(0, |voter| voter.base())
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive { to: usize, from: usize, octets: Vec<u8> },
    Written { node: usize, incarnation: u32 },
    Start { node: usize },
}

struct World {
    rng: Rng,
    mistake: Option<Mistake>,
    plan: Plan,
    weather: Weather,
    now: Instant,
    nodes: Vec<Node>,
    identities: Vec<VoterId>,
    /// `cut[from][to]`: nothing gets there.
    cut: Vec<Vec<bool>>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    scheduled: u64,
    next_fault: Option<Instant>,
    next_proposal: Option<Instant>,
    decided: BTreeMap<u64, Vec<u8>>,
    proposed: BTreeMap<u64, BTreeSet<Vec<u8>>>,
    proposals: u64,
    violations: Vec<Violation>,
    hash: u64,
    steps: u64,
    told: bool,
}

fn identity(index: usize, rng: &mut Rng) -> VoterId {
    let mut octets = [index as u8; 16];
    octets[..8].copy_from_slice(&rng.next().to_le_bytes());
    VoterId(octets)
}

impl World {
    fn new(seed: u64, mistake: Option<Mistake>, told: bool) -> Self {
        let mut rng = Rng::new(seed);
        let mut plan = Plan::new(&mut rng);
        let weather = Weather::new(&mut rng);
        if mistake.is_some() {
            plan.voters = plan.voters.max(3);
            plan.until_rest = mistake == Some(Mistake::WakeForNothing);
        }
        let identities: Vec<_> = (0..plan.voters).map(|index| identity(index, &mut rng)).collect();
        let now = Instant(rng.between(0, 1 << 40));
        let mut world = Self {
            mistake,
            plan,
            weather,
            now,
            nodes: Vec::new(),
            cut: vec![vec![false; plan.voters]; plan.voters],
            events: BinaryHeap::new(),
            scheduled: 0,
            next_fault: Some(now),
            next_proposal: Some(now),
            decided: BTreeMap::new(),
            proposed: BTreeMap::new(),
            proposals: 0,
            violations: Vec::new(),
            hash: 0,
            steps: 0,
            told,
            identities,
            rng,
        };
        for index in 0..plan.voters {
            let electorate = world.electorate(index);
            world.nodes.push(Node {
                electorate,
                voter: None,
                incarnation: 0,
                disk: Vec::new(),
                writing: VecDeque::new(),
                written_at: now,
                durable: Ballots::default(),
                seen: Ballots::default(),
                expected: None,
                proposal: None,
            });
            world.start(index);
        }
        world
    }

    /// Who votes, as this voter knows it.
    fn electorate(&self, index: usize) -> Electorate {
        let mut voters = self.identities.clone();
        if self.mistake == Some(Mistake::TooFewVoters) {
            let half = voters.len() / 2;
            voters = if index <= half { voters[..=half].to_vec() } else { voters[half..].to_vec() };
        }
        Electorate::new(self.identities[index], &voters, FIRST_BASE).expect("they are voters")
    }

    fn after(&self, duration: Duration) -> Instant {
        self.now.after(duration).unwrap_or(self.now)
    }

    fn after_ms(&self, millis: u64) -> Instant {
        self.after(Duration::from_millis(millis as i64))
    }

    fn soon(&mut self, millis: u64) -> Instant {
        let micros = self.rng.between(millis * 100, millis * 2_000);
        self.after(Duration::from_micros(micros as i64))
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled, event)));
    }

    fn violate(&mut self, invariant: &'static str, what: String) {
        // A run with a mistake goes on: another checker may be meant.
        if self.violations.len() >= VIOLATIONS_MAX {
            return;
        }
        let seconds = self.now.0 as f64 / 1e9;
        self.violations.push(Violation { invariant, what: format!("{seconds:.6}: {what}") });
    }

    fn tell(&self, line: impl FnOnce() -> String) {
        if self.told {
            println!("{:>13.6} {}", self.now.0 as f64 / 1e9, line());
        }
    }

    fn note(&mut self, fact: u64) {
        self.hash = (self.hash ^ fact).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(7);
    }

    /// Lets things happen until a time, or until something is so.
    fn advance(&mut self, end: Instant, is_done: &dyn Fn(&Self) -> bool) {
        while (self.violations.is_empty() || self.mistake.is_some()) && !is_done(self) {
            let timers = self.mistake != Some(Mistake::StopTimers);
            let deadline = |node: &Node| node.voter.as_ref().and_then(|voter| voter.next_deadline());
            let due = (0..self.nodes.len()).filter_map(|index| Some((deadline(&self.nodes[index])?, index)));
            let due = due.min().filter(|_| timers);
            let event = self.events.peek().map(|Reverse((at, ..))| *at);
            let times = [due.map(|due| due.0), event, self.next_fault, self.next_proposal];
            let next = times.into_iter().flatten().min().unwrap_or(end).max(self.now);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
            self.note(next.0);
            self.steps += 1;
            if self.steps > STEPS_MAX {
                self.steps = 0;
                self.now = end;
                return self.violate("rest", "time stands still: too many calls".to_owned());
            }
            if event.is_some_and(|event| event <= next) {
                if let Some(Reverse((_, _, event))) = self.events.pop() {
                    self.happen(event);
                }
            } else if let Some((_, index)) = due.filter(|due| due.0 <= next) {
                self.with_voter(index, |voter| voter.tick(next));
            } else if self.next_fault.is_some_and(|at| at <= next) {
                self.next_fault = Some(self.soon(self.plan.fault_ms));
                self.go_wrong();
            } else {
                self.next_proposal = Some(self.soon(self.plan.proposal_ms));
                self.propose_somewhere();
            }
        }
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Arrive { to, from, octets } => {
                let (kind, length) = (octets.get(1).copied().unwrap_or_default(), octets.len());
                self.tell(|| format!("{from} to {to}: {length} octets of kind {kind}"));
                let from = self.identities[from];
                let mut refused = None;
                self.with_voter(to, |voter| refused = voter.on_message(now, from, &octets).err());
                let knows_all = self.mistake != Some(Mistake::TooFewVoters);
                if let Some(malformed) = refused.filter(|_| knows_all) {
                    self.violate("doubt", format!("voter {to} refuses {octets:?} of {from}: {malformed}"));
                }
            }
            Event::Written { node, incarnation } => {
                if self.nodes[node].incarnation == incarnation && self.nodes[node].voter.is_some() {
                    let number = self.write_one(node);
                    self.with_voter(node, |voter| voter.persisted(number));
                }
            }
            Event::Start { node } => {
                if self.nodes[node].voter.is_none() {
                    self.start(node);
                }
            }
        }
    }

    /// The oldest record on its way to the disk gets there.
    fn write_one(&mut self, index: usize) -> u64 {
        let node = &mut self.nodes[index];
        let Some((record, ballots)) = node.writing.pop_front() else { return 0 };
        if record.whole {
            node.disk.clear();
        }
        node.disk.push(record.octets);
        node.durable = ballots;
        record.number
    }

    fn start(&mut self, index: usize) {
        let now = self.now;
        let node = &mut self.nodes[index];
        node.incarnation += 1;
        node.written_at = now;
        if node.incarnation > 1 {
            match self.mistake {
                Some(Mistake::WipeDisk) => node.disk.clear(),
                Some(Mistake::ForgetRecord) if node.disk.len() > 1 => drop(node.disk.pop()),
                _ => {}
            }
        }
        let voter = open(now, &node.electorate, node.disk.iter().map(Vec::as_slice));
        match voter {
            Ok(voter) => {
                node.seen = node.durable;
                node.expected = None;
                node.voter = Some(voter);
                self.settle(index);
            }
            Err(error) => self.violate("doubt", format!("voter {index} cannot start: {error}")),
        }
    }

    fn crash(&mut self, index: usize) {
        let written = self.rng.below(self.nodes[index].writing.len() as u64 + 1);
        // What was not yet said to be durable may be, up to some record.
        let written = if self.rng.chance(50) { 0 } else { written };
        for _ in 0..written {
            let durable = self.nodes[index].durable;
            self.write_one(index);
            self.nodes[index].durable = durable;
        }
        self.tell(|| format!("{index}: crashes"));
        let node = &mut self.nodes[index];
        node.writing.clear();
        node.voter = None;
        let at = self.soon(self.plan.fault_ms * 2);
        self.schedule(at, Event::Start { node: index });
    }

    /// Calls a voter, carries away what comes of it, and checks it.
    fn with_voter(&mut self, index: usize, call: impl FnOnce(&mut Voter)) {
        if let Some(voter) = &mut self.nodes[index].voter {
            call(voter);
            self.settle(index);
        }
    }

    fn settle(&mut self, index: usize) {
        let now = self.now;
        let node = &mut self.nodes[index];
        let Some(voter) = &mut node.voter else { return };
        if self.mistake == Some(Mistake::WakeForNothing) {
            voter.wake(now);
        }
        let ballots = voter.ballots();
        let (told, base, leader) = (self.told, voter.base(), voter.leader());
        let mut starts = Vec::new();
        while let Some(record) = voter.take_record() {
            if self.mistake == Some(Mistake::AcknowledgeEarly) {
                voter.persisted(record.number);
                node.durable = ballots;
            }
            node.writing.push_back((record, ballots));
            starts.push(node.incarnation);
        }
        let mut out = Vec::new();
        voter.take_messages(&mut out);
        let has_failed = voter.has_failed();
        let went_back = (0..2).any(|which| ballots[which] < node.seen[which]);
        let seen = std::mem::replace(&mut node.seen, ballots);
        let mut decisions = Vec::new();
        while let Some(decision) = voter.poll_decided() {
            decisions.push(decision);
        }
        for incarnation in starts {
            let delay = Duration::from_micros(self.rng.between(50, self.plan.sync_us) as i64);
            let node = &mut self.nodes[index];
            node.written_at = node.written_at.max(now.after(delay).unwrap_or(now));
            let at = node.written_at;
            self.schedule(at, Event::Written { node: index, incarnation });
        }
        for (to, mut octets) in out {
            if self.mistake == Some(Mistake::CutMessages) && self.rng.chance(2) {
                octets.truncate(octets.len() / 2);
            }
            self.carry(index, to, octets);
        }
        if told && seen != ballots {
            self.tell(|| format!("{index}: base {base}, ballots {ballots:?}, leader {leader:?}"));
        }
        if went_back {
            self.violate("ballots", format!("voter {index} had {seen:?} and has {ballots:?}"));
        }
        if has_failed {
            self.violate("doubt", format!("voter {index} has failed"));
        }
        for decision in decisions {
            self.learn(index, decision.base, &decision.value);
        }
    }

    fn carry(&mut self, from: usize, to: VoterId, octets: Vec<u8>) {
        let Some(to) = self.identities.iter().position(|identity| *identity == to) else {
            return self.violate("doubt", format!("a message for nobody: {to}"));
        };
        self.note(octets.len() as u64);
        if self.cut[from][to] || self.rng.chance(self.weather.loss_percent) {
            return;
        }
        if self.rng.chance(self.weather.double_percent) {
            let delay = self.weather.delay(&mut self.rng);
            self.schedule(self.after(delay), Event::Arrive { to, from, octets: octets.clone() });
        }
        let delay = self.weather.delay(&mut self.rng);
        self.schedule(self.after(delay), Event::Arrive { to, from, octets });
    }

    /// A voter is told a decision.
    fn learn(&mut self, index: usize, base: u64, value: &[u8]) {
        if self.mistake == Some(Mistake::SkipDecision) && self.rng.chance(10) {
            return;
        }
        let newest = self.decided.last_key_value().map_or(FIRST_BASE, |(newest, _)| *newest);
        let node = &mut self.nodes[index];
        let expected = node.expected.replace(base + 1);
        let is_in_order = match expected {
            // Those that are kept come again.
            None => base == FIRST_BASE || newest >= base,
            Some(expected) => base == expected || base > expected && newest.max(base) >= expected + KEPT,
        };
        if !is_in_order {
            self.violate("order", format!("voter {index} is told {base} where {expected:?} was to come"));
        }
        if !self.proposed.get(&base).is_some_and(|values| values.contains(value)) {
            self.violate("proposed", format!("voter {index} is told {value:?} for {base}"));
        }
        let first = self.decided.entry(base).or_insert_with(|| value.to_vec());
        if first != value {
            let first = first.clone();
            self.violate("agreement", format!("voter {index} is told {value:?} for {base}, not {first:?}"));
        }
        self.note(base);
        self.tell(|| format!("{index}: what follows {base} is {value:?}"));
    }

    fn propose_somewhere(&mut self) {
        for _ in 0..=self.rng.below(3) {
            let index = self.rng.below(self.nodes.len() as u64) as usize;
            let base = self.nodes[index].base() + u64::from(self.rng.chance(5));
            self.propose(index, base);
        }
    }

    fn propose(&mut self, index: usize, base: u64) {
        self.proposals += 1;
        let mut value = [self.proposals.to_le_bytes(), base.to_le_bytes()].concat();
        let length = if self.rng.chance(5) { 3_000 } else { self.rng.below(40) };
        value.resize(16 + length as usize, index as u8);
        if self.mistake == Some(Mistake::ProposeAgain)
            && let Some((before, old)) = self.nodes[index].proposal.take()
            && before < base
            && self.decided.get(&before) != Some(&old)
        {
            value = old;
        } else {
            self.proposed.entry(base).or_default().insert(value.clone());
        }
        self.nodes[index].proposal = Some((base, value.clone()));
        self.tell(|| format!("{index}: proposes {value:?} for {base}"));
        let now = self.now;
        // It may have been decided meanwhile.
        self.with_voter(index, |voter| {
            let _ = voter.propose(now, base, &value);
        });
    }

    fn go_wrong(&mut self) {
        let count = self.nodes.len();
        match self.rng.below(10) {
            0..=2 if self.plan.crashes => {
                let index = self.rng.below(count as u64) as usize;
                if self.nodes[index].voter.is_some() {
                    self.crash(index);
                }
            }
            3 if self.plan.crashes && self.rng.chance(20) => (0..count).for_each(|index| {
                if self.nodes[index].voter.is_some() {
                    self.crash(index);
                }
            }),
            4..=6 if self.plan.partitions => self.part(),
            7 => self.cut.iter_mut().flatten().for_each(|cut| *cut = false),
            _ => self.weather = Weather::new(&mut self.rng),
        }
    }

    /// Cuts some of the links.
    fn part(&mut self) {
        let count = self.nodes.len();
        let kind = self.rng.below(4);
        let side: Vec<bool> = (0..count).map(|_| self.rng.chance(50)).collect();
        let one = self.rng.below(count as u64) as usize;
        for (from, row) in self.cut.iter_mut().enumerate() {
            for (to, cut) in row.iter_mut().enumerate() {
                *cut = match kind {
                    0 => side[from] != side[to],
                    // One is heard by nobody, or hears nobody.
                    1 => {
                        if side[one] {
                            from == one
                        } else {
                            to == one
                        }
                    }
                    // All hear one, and nobody else.
                    2 => from != one && to != one,
                    _ => self.rng.chance(30),
                };
            }
        }
    }

    /// Everything is well from now on: some voters propose for the newest base, which is returned, and the
    /// others wish to learn what is new.
    fn heal(&mut self) -> u64 {
        self.next_fault = None;
        self.next_proposal = None;
        self.weather = Weather::fair();
        self.cut.iter_mut().flatten().for_each(|cut| *cut = false);
        for index in 0..self.nodes.len() {
            if self.nodes[index].voter.is_none() {
                self.start(index);
            }
        }
        let newest = self.nodes.iter().map(Node::base).max().unwrap_or_default();
        let one = self.rng.below(self.nodes.len() as u64) as usize;
        let now = self.now;
        for index in 0..self.nodes.len() {
            if index == one || self.rng.chance(50) {
                self.propose(index, newest);
            } else {
                self.with_voter(index, |voter| voter.wake(now));
            }
        }
        newest
    }

    fn everybody_knows(&self, base: u64) -> bool {
        self.nodes.iter().all(|node| node.expected.is_some_and(|next| next > base))
    }

    fn is_at_rest(&self) -> bool {
        let has_deadline = |node: &Node| node.voter.as_ref().is_some_and(|it| it.next_deadline().is_some());
        !self.nodes.iter().any(has_deadline) && self.events.is_empty()
    }
}
