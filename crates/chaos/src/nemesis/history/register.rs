//! Linearizability of registers: for each there is an order of its operations, each at a moment between its
//! beginning and its end, in which every read returns what was last written.
//!
//! The search is that of Wing and Gong with the cache of Lowe, as in porcupine: registers are checked one by
//! one, and no set of operations is tried twice with the same value. Values are written once. So a write
//! whose end is not known is left out if nobody read it, and else took place before the first who read it
//! ended; what is left to try at any moment are the operations that run at once.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::nemesis::history::{Fault, Findings};

/// The steps after which the search for one register gives up.
const STEPS_MAX: u64 = 20_000_000;

/// What an operation did. A register that nobody wrote has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Write(u64),
    Read(Option<u64>),
}

/// An operation, by the clock of the host. A read without an end is no operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) key: u64,
    pub(crate) action: Action,
    pub(crate) began_ns: u64,
    /// Of a write that may yet be carried out: none.
    pub(crate) ended_ns: Option<u64>,
}

/// An operation whose end is known.
#[derive(Clone, Copy, Debug)]
struct Ended {
    action: Action,
    began_ns: u64,
    ended_ns: u64,
}

/// Checks all registers.
pub(crate) fn check(operations: &[Operation]) -> Findings {
    let mut findings = Findings::default();
    let mut by_key: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    operations.iter().for_each(|it| by_key.entry(it.key).or_default().push(*it));
    for (key, operations) in by_key {
        let ended = settle(key, &operations, &mut findings);
        match search(&ended) {
            Search::Found => {}
            Search::Nothing(longest) => findings.add(Fault::NotLinearizable, || {
                let count = ended.len();
                format!("register {key}: at most {longest} of {count} operations have an order")
            }),
            Search::GaveUp => findings.add(Fault::Undecided, || {
                format!("register {key}: {} operations take more than {STEPS_MAX} steps", ended.len())
            }),
        }
    }
    findings
}

/// Operations whose end is known, those of unknown end as the head of this file says.
fn settle(key: u64, operations: &[Operation], findings: &mut Findings) -> Vec<Ended> {
    let mut first_read: HashMap<u64, u64> = HashMap::new();
    let mut written = HashSet::new();
    for it in operations {
        match (it.action, it.ended_ns) {
            (Action::Read(Some(value)), Some(ended_ns)) => {
                let first_ns = first_read.entry(value).or_insert(ended_ns);
                *first_ns = ended_ns.min(*first_ns);
            }
            (Action::Write(value), _) if !written.insert(value) => {
                findings.add(Fault::Duplicate, || format!("register {key}: {value} is written twice"));
            }
            _ => {}
        }
    }
    for value in first_read.keys().filter(|value| !written.contains(value)) {
        findings.add(Fault::Phantom, || format!("register {key}: {value} was read, and never written"));
    }
    let end_of = |it: &Operation| match it.action {
        Action::Write(value) => it.ended_ns.or_else(|| first_read.get(&value).copied()),
        Action::Read(_) => it.ended_ns,
    };
    let settled = |it: &Operation| {
        let ended_ns = end_of(it)?.max(it.began_ns);
        Some(Ended { action: it.action, began_ns: it.began_ns, ended_ns })
    };
    let mut ended: Vec<Ended> = operations.iter().filter_map(settled).collect();
    ended.sort_by_key(|it| (it.began_ns, it.ended_ns));
    ended
}

enum Search {
    Found,
    /// The longest order that it tried.
    Nothing(usize),
    GaveUp,
}

/// A set of operations that have their place, in the order of their beginnings: all below `from`, and some
/// beyond, a bit for each. Few run at once, so it is short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Placed {
    from: usize,
    beyond: Vec<u64>,
}

impl Placed {
    fn has(&self, index: usize) -> bool {
        let Some(at) = index.checked_sub(self.from) else { return true };
        self.beyond.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// The same set and one more.
    fn with(&self, index: usize) -> Self {
        let mut bits: Vec<bool> = (self.from..=index).map(|it| self.has(it)).collect();
        bits.extend((index + 1..self.from + self.beyond.len() * 64).map(|it| self.has(it)));
        bits[index - self.from] = true;
        let lead = bits.iter().take_while(|bit| **bit).count();
        let last = bits.iter().rposition(|bit| *bit).map_or(lead, |it| (it + 1).max(lead));
        let mut beyond = vec![0; (last - lead).div_ceil(64)];
        bits[lead..last]
            .iter()
            .enumerate()
            .filter(|(_, bit)| **bit)
            .for_each(|(at, _)| beyond[at / 64] |= 1 << (at % 64));
        Self { from: self.from + lead, beyond }
    }
}

/// A step of the search: what has its place, the value then, and which operation is tried next.
struct Step {
    placed: Placed,
    value: Option<u64>,
    next: usize,
}

fn search(operations: &[Ended]) -> Search {
    let mut tried: HashSet<(Placed, Option<u64>)> = HashSet::new();
    let mut stack = vec![Step { placed: Placed::default(), value: None, next: 0 }];
    let (mut steps, mut longest) = (0_u64, 0);
    loop {
        longest = longest.max(stack.len().saturating_sub(1));
        let Some(step) = stack.last_mut() else { return Search::Nothing(longest) };
        if step.placed.from == operations.len() {
            return Search::Found;
        }
        steps += 1;
        if steps > STEPS_MAX {
            return Search::GaveUp;
        }
        let Some((index, value)) = candidate(operations, step) else {
            stack.pop();
            continue;
        };
        let is_read = matches!(operations[index].action, Action::Read(_));
        // A read that can come now can come first: nothing is gained by trying others instead.
        step.next = if is_read { operations.len() } else { index + 1 };
        let placed = step.placed.with(index);
        if tried.insert((placed.clone(), value)) {
            let next = placed.from;
            stack.push(Step { placed, value, next });
        }
    }
}

/// The next operation that may come now, and the value after it: a read before any write. None that is left
/// ended before it began.
fn candidate(operations: &[Ended], step: &Step) -> Option<(usize, Option<u64>)> {
    let mut first_end_ns = u64::MAX;
    let mut write = None;
    for index in (step.placed.from..operations.len()).filter(|index| !step.placed.has(*index)) {
        let operation = &operations[index];
        if operation.began_ns > first_end_ns {
            break;
        }
        first_end_ns = first_end_ns.min(operation.ended_ns);
        match operation.action {
            _ if index < step.next => {}
            Action::Write(value) if write.is_none() => write = Some((index, Some(value))),
            Action::Read(value) if value == step.value => return Some((index, value)),
            _ => {}
        }
    }
    write
}
