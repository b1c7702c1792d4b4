//! All that can happen to few members of an ATOMIC group in one change of epochs: not at random, but every
//! order of events, by a model checker. The members are those of the product.
//!
//! Time stands still: what timers would do, any member may do at any moment. Messages come in any order or
//! never; of rows on their way from one member to another the last counts, as rows only grow.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use plainsong_proto::atomic::view::{Place, Report, Storage, View, Voters, decide};
use plainsong_proto::atomic::{
    Action, Body, Config, Decision, EntryHeader, HistoryKey, Member, MemberId, Message, Phase, Row,
};
use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::time::{Duration, Instant};
use stateright::{Checker, HasDiscoveries, Model, Property};

const NOW: Instant = Instant(1_000_000_000);

/// Who wrote it, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Sample(u8, u8);

impl Body for Sample {
    fn octets(&self) -> usize {
        1
    }
    fn digest(&self) -> u64 {
        u64::from(self.0) << 8 | u64::from(self.1)
    }
    fn history_key(&self) -> Option<HistoryKey> {
        None
    }
    fn history_depth(&self) -> u32 {
        0
    }
}

/// What is explored.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Members.
    members: u8,
    /// Of which so many write.
    writers: u8,
    /// Samples of each of them.
    samples: u8,
    /// Members that may die.
    crashes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    members: Vec<Member<Sample>>,
    is_dead: Vec<bool>,
    /// Rows on their way, by sender and receiver.
    rows: BTreeMap<(u8, u8), Row>,
    /// Entries on their way; a lane keeps its order.
    lanes: BTreeMap<(u8, u8), VecDeque<(EntryHeader, Sample)>>,
    reports: BTreeMap<u8, Report>,
    decision: Option<Arc<Decision>>,
    written: Vec<u8>,
    /// What each has delivered, by position.
    delivered: Vec<Vec<(u64, u64, Sample)>>,
    /// What had been resolved when a sample was written.
    before: BTreeMap<Sample, BTreeSet<Sample>>,
    resolved: BTreeSet<Sample>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Write(u8),
    Row(u8, u8),
    Entry(u8, u8),
    Stop(u8),
    Die(u8),
    /// A voter decides by the reports of these members.
    Decide(u8),
    Learn(u8),
}

fn id(number: u8) -> MemberId {
    MemberId { prefix: GuidPrefix([number; 12]), nonce: 1 }
}

impl Group {
    fn config() -> Config {
        Config {
            digest: 1,
            lease: Duration::from_secs(1),
            stuck: Duration::from_secs(1),
            slow: Duration::INFINITE,
            window_entries: 8,
            window_octets: 8,
            keeps_history: false,
            history_entries_max: 0,
            storage: Storage::None,
            voters: Voters::Members,
            bootstrap_after: None,
            instance: 1,
        }
    }

    fn view(self) -> View {
        View {
            instance: 1,
            epoch: 1,
            members: (0..self.members)
                .map(|it| Place { id: id(it), caught_up: true, storage: Storage::None })
                .collect(),
            voters: vec![id(0).voter()],
            voters_since: 1,
            base_position: 0,
            base_clock: 0,
            lineage: 0,
        }
    }

    /// Lets a member say what it has to say.
    fn hear(self, state: &mut State, who: u8) {
        let index = usize::from(who);
        state.members[index].flush(NOW);
        while let Some(action) = state.members[index].poll() {
            match action {
                Action::Send(_, Message::Row(row)) => {
                    for other in (0..self.members).filter(|it| *it != who) {
                        state.rows.insert((who, other), row.clone());
                    }
                }
                Action::Send(_, Message::Report { report, .. }) if report.epoch == 1 => {
                    state.reports.entry(who).or_insert(report);
                }
                Action::SendEntry(header, body) => {
                    for other in (0..self.members).filter(|it| *it != who) {
                        state.lanes.entry((who, other)).or_default().push_back((header, body));
                    }
                }
                Action::Deliver(entry) => {
                    if entry.body.0 == who {
                        state.resolved.insert(entry.body);
                    }
                    state.delivered[index].push((entry.position, entry.epoch, entry.body));
                }
                _ => {}
            }
        }
    }
}

impl Model for Group {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let count = usize::from(self.members);
        let mut state = State {
            members: (0..self.members).map(|it| Member::new(Self::config(), id(it), NOW)).collect(),
            is_dead: vec![false; count],
            rows: BTreeMap::new(),
            lanes: BTreeMap::new(),
            reports: BTreeMap::new(),
            decision: None,
            written: vec![0; count],
            delivered: vec![Vec::new(); count],
            before: BTreeMap::new(),
            resolved: BTreeSet::new(),
        };
        let first = Arc::new(Decision {
            base: 0,
            cut: Vec::new(),
            incumbents: Default::default(),
            next: self.view(),
        });
        for who in 0..self.members {
            state.members[usize::from(who)].on_message(NOW, Message::NewView(Arc::clone(&first)));
            self.hear(&mut state, who);
        }
        // What they say of nothing is known.
        state.rows.clear();
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        let incarnations = |who: u8| !state.is_dead[usize::from(who)];
        let dead = state.is_dead.iter().filter(|it| **it).count();
        for who in (0..self.members).filter(|who| incarnations(*who)) {
            let index = usize::from(who);
            let member = &state.members[index];
            if member.phase() == Phase::Active && who < self.writers && state.written[index] < self.samples {
                actions.push(Step::Write(who));
            }
            let is_first = member.view().is_some_and(|view| view.epoch == 1);
            if member.phase() == Phase::Active && is_first {
                actions.push(Step::Stop(who));
            }
            if is_first && state.decision.is_some() {
                actions.push(Step::Learn(who));
            }
            if dead < usize::from(self.crashes) {
                actions.push(Step::Die(who));
            }
        }
        actions.extend(
            state.rows.keys().filter(|(_, to)| incarnations(*to)).map(|(from, to)| Step::Row(*from, *to)),
        );
        let lanes = state.lanes.iter().filter(|((_, to), lane)| incarnations(*to) && !lane.is_empty());
        actions.extend(lanes.map(|((from, to), _)| Step::Entry(*from, *to)));
        if state.decision.is_none() {
            let reported = state.reports.keys().fold(0_u8, |set, who| set | 1 << who);
            actions.extend((1..=reported).filter(|set| set & !reported == 0).map(Step::Decide));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Write(who) => {
                let index = usize::from(who);
                let sample = Sample(who, state.written[index] + 1);
                state.members[index].write(NOW, sample).ok()?;
                state.written[index] += 1;
                state.before.insert(sample, state.resolved.clone());
                self.hear(&mut state, who);
            }
            Step::Row(from, to) => {
                let row = state.rows.remove(&(from, to))?;
                state.members[usize::from(to)].on_message(NOW, Message::Row(row));
                self.hear(&mut state, to);
            }
            Step::Entry(from, to) => {
                let (header, body) = state.lanes.get_mut(&(from, to))?.pop_front()?;
                state.members[usize::from(to)].on_entry(NOW, id(from), header, body);
                self.hear(&mut state, to);
            }
            Step::Stop(who) => {
                let wedge = Message::Wedge { instance: 1, epoch: 1 };
                state.members[usize::from(who)].on_message(NOW, wedge);
                self.hear(&mut state, who);
            }
            Step::Die(who) => state.is_dead[usize::from(who)] = true,
            Step::Decide(set) => {
                let reports: Vec<Report> = state
                    .reports
                    .iter()
                    .filter(|(who, _)| set >> **who & 1 == 1)
                    .map(|it| it.1.clone())
                    .collect();
                let decision = decide(&self.view(), &reports, &[], &Voters::Members)?;
                state.decision = Some(Arc::new(decision));
            }
            Step::Learn(who) => {
                let decision = Arc::clone(state.decision.as_ref()?);
                state.members[usize::from(who)].on_message(NOW, Message::NewView(decision));
                self.hear(&mut state, who);
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one order", |_, state| one_order(state)),
            Property::always("nothing after the cut", |_, state| within_cut(state)),
            Property::always("nothing twice", |_, state| nothing_twice(state)),
            Property::always("in the order of waiting", |_, state| in_order_of_waiting(state)),
            Property::always("nobody diverges", |_, state: &State| {
                state.members.iter().all(|it| it.phase() != Phase::Gone)
            }),
            Property::sometimes("all have everything in the second epoch", |group: &Self, state: &State| {
                let all = usize::from(group.writers) * usize::from(group.samples);
                let later = |it: &Vec<(u64, u64, Sample)>| it.iter().any(|entry| entry.1 == 2);
                state.delivered.iter().all(|it| it.len() == all && later(it))
            }),
        ]
    }
}

/// Whatever two have at one position is the same.
fn one_order(state: &State) -> bool {
    let mut order: BTreeMap<u64, (u64, Sample)> = BTreeMap::new();
    state.delivered.iter().all(|delivered| {
        let dense = delivered.iter().zip(1..).all(|((position, ..), next)| *position == next);
        dense
            && delivered.iter().all(|(position, epoch, sample)| {
                *order.entry(*position).or_insert((*epoch, *sample)) == (*epoch, *sample)
            })
    })
}

/// Nobody, dead or alive, has delivered more in the first epoch than was decided.
fn within_cut(state: &State) -> bool {
    let Some(decision) = &state.decision else { return true };
    state.delivered.iter().all(|delivered| {
        (0_u8..).zip(&decision.cut).all(|(lane, cut)| {
            let of_lane = delivered.iter().filter(|(_, epoch, sample)| *epoch == 1 && sample.0 == lane);
            of_lane.count() as u64 <= *cut
        })
    })
}

fn nothing_twice(state: &State) -> bool {
    state.delivered.iter().all(|delivered| {
        let mut seen = BTreeSet::new();
        let mut last = BTreeMap::new();
        delivered.iter().all(|(.., sample)| {
            let before = last.insert(sample.0, sample.1).unwrap_or(0);
            seen.insert(*sample) && sample.1 == before + 1
        })
    })
}

/// A write that somebody waited for comes before those that began later.
fn in_order_of_waiting(state: &State) -> bool {
    state.delivered.iter().all(|delivered| {
        let place: BTreeMap<Sample, u64> =
            delivered.iter().map(|(position, _, it)| (*it, *position)).collect();
        state.before.iter().all(|(later, earlier)| {
            let Some(at) = place.get(later) else { return true };
            earlier.iter().all(|it| place.get(it).is_some_and(|before| before < at))
        })
    })
}

/// Explores everything; prints how much that was, and whether all held.
fn explore(group: Group, threads: usize) -> bool {
    let begin = std::time::Instant::now();
    let checker =
        group.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    let mut passed = checker.is_done();
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        let holds = found.is_some() == (property.expectation == stateright::Expectation::Sometimes);
        passed &= holds;
        if !holds {
            println!("FAILED {}", property.name);
            if let Some(path) = found {
                path.into_actions().iter().for_each(|step| println!("  {step:?}"));
            }
        }
    }
    println!(
        "{group:?}: {} states, {} of them different, depth {}, {:.0} s: {}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        begin.elapsed().as_secs_f64(),
        if passed { "passed" } else { "FAILED" }
    );
    passed
}

/// What is explored in less than a minute. Of three members with two samples each order is too much.
const GROUPS: [Group; 2] = [
    Group { members: 2, writers: 2, samples: 2, crashes: 1 },
    Group { members: 3, writers: 1, samples: 1, crashes: 1 },
];

/// Explores each of a few small groups.
#[must_use]
pub fn explore_all() -> bool {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    GROUPS.map(|group| explore(group, threads)).iter().all(|passed| *passed)
}
