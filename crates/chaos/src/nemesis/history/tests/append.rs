//! Lists, and mistakes with them.

use super::super::Fault;
use super::super::append::{Action, Operation, check};
use super::moments;
use crate::random::Random;

/// What some clients did with two lists, which are read alone or at once; ends of some appends are not known.
fn lists(random: &mut Random, count: usize, from_ns: u64, lists: &mut [Vec<u64>; 2]) -> Vec<Operation> {
    let moments = moments(random, 5, count, from_ns);
    let mut operation = |it: &super::Moment| {
        let key = random.below(2);
        let is_read = random.percent(50);
        let is_unknown = !is_read && random.percent(10);
        let action = if is_read {
            let also = if random.percent(50) { None } else { Some(1 - key) };
            Action::Read(
                [key].into_iter().chain(also).map(|key| (key, lists[key as usize].clone())).collect(),
            )
        } else {
            let element = random.next();
            if !(is_unknown && random.percent(50)) {
                lists[key as usize].push(element);
            }
            Action::Append { key, element }
        };
        Operation { action, began_ns: it.began_ns, ended_ns: (!is_unknown).then_some(it.ended_ns) }
    };
    moments.iter().map(&mut operation).collect()
}

/// A step of a scenario: what is done with two lists that are empty before, from when to when.
#[derive(Clone, Copy)]
enum Step {
    Append(u64, u64),
    Read(&'static [(u64, &'static [u64])]),
}
use Step::{Append, Read};

type Scenario = &'static [(Step, u64, u64)];

const MISTAKES: [(&str, Scenario, Fault); 9] = [
    (
        "an element is lost",
        &[(Append(8, 1), 0, 1), (Append(8, 2), 2, 3), (Read(&[(8, &[2])]), 4, 5)],
        Fault::Lost,
    ),
    (
        "an element is lost later",
        &[
            (Append(8, 1), 0, 1),
            (Append(8, 2), 2, 3),
            (Read(&[(8, &[1, 2])]), 4, 5),
            (Read(&[(8, &[2])]), 6, 7),
        ],
        Fault::IncompatibleOrder,
    ),
    (
        "two members have two elements in different orders",
        &[
            (Append(8, 1), 0, 1),
            (Append(8, 2), 0, 1),
            (Read(&[(8, &[1, 2])]), 4, 5),
            (Read(&[(8, &[2, 1])]), 4, 5),
        ],
        Fault::IncompatibleOrder,
    ),
    (
        "an element is appended twice",
        &[(Append(8, 1), 0, 1), (Read(&[(8, &[1, 1])]), 2, 3)],
        Fault::Duplicate,
    ),
    (
        "a stale read",
        &[
            (Append(8, 1), 0, 1),
            (Append(8, 2), 2, 9),
            (Read(&[(8, &[1, 2])]), 3, 4),
            (Read(&[(8, &[1])]), 5, 6),
        ],
        Fault::Cycle,
    ),
    (
        "two members saw appends to two lists in different orders",
        &[
            (Append(8, 1), 0, 20),
            (Append(9, 2), 0, 20),
            (Read(&[(8, &[1]), (9, &[])]), 5, 10),
            (Read(&[(8, &[]), (9, &[2])]), 5, 10),
            (Read(&[(8, &[1]), (9, &[2])]), 30, 31),
        ],
        Fault::Cycle,
    ),
    ("a phantom", &[(Append(8, 1), 0, 1), (Read(&[(8, &[1, 5])]), 2, 3)], Fault::Phantom),
    (
        "an element stands before one that was appended before it",
        &[(Append(8, 1), 0, 1), (Append(8, 2), 2, 3), (Read(&[(8, &[2, 1])]), 4, 5)],
        Fault::Cycle,
    ),
    ("a read from the future", &[(Read(&[(8, &[1])]), 0, 1), (Append(8, 1), 2, 3)], Fault::Cycle),
];

#[test]
fn lists_of_one_order_have_no_faults() {
    for (seed, count) in (0..100).map(|seed| (seed, 300)).chain([(100, 2_000)]) {
        let operations = lists(&mut Random::new(seed), count, 0, &mut [vec![], vec![]]);
        let findings = check(&operations);
        assert_eq!(findings.count, 0, "{seed}: {:?}", findings);
    }
}

#[test]
fn each_mistake_with_a_list_is_noticed_by_its_name() {
    for seed in 0..20 {
        for (name, scenario, fault) in MISTAKES {
            let random = &mut Random::new(seed);
            let elements = &mut [vec![], vec![]];
            let mut operations = lists(random, 200, 0, elements);
            // In the midst of the others.
            let from_ns = operations[100].began_ns;
            for (step, began_ns, ended_ns) in scenario.iter().copied() {
                let action = match step {
                    Append(key, element) => Action::Append { key, element },
                    Read(read) => {
                        Action::Read(read.iter().map(|(key, list)| (*key, list.to_vec())).collect())
                    }
                };
                let [began_ns, ended_ns] = [began_ns, ended_ns].map(|it| from_ns + it);
                operations.push(Operation { action, began_ns, ended_ns: Some(ended_ns) });
            }
            let findings = check(&operations);
            assert!(findings.faults().contains(&fault), "{seed}, {name}: {:?}", findings);
        }
    }
}
