//! Registers, and mistakes with them.

use super::super::Fault;
use super::super::register::{Action, Operation, check};
use super::moments;
use crate::random::Random;
use Action::{Read, Write};

/// What some clients did with two registers, beginning at a time with what is in them; ends of some writes
/// are not known.
fn registers(
    random: &mut Random,
    count: usize,
    from_ns: u64,
    values: &mut [Option<u64>; 2],
) -> Vec<Operation> {
    let moments = moments(random, 5, count, from_ns);
    let mut operation = |it: &super::Moment| {
        let key = random.below(2);
        let value = &mut values[key as usize];
        let action = if random.percent(50) { Write(random.next()) } else { Read(*value) };
        let is_unknown = matches!(action, Write(_)) && random.percent(10);
        if let Write(written) = action
            && !(is_unknown && random.percent(50))
        {
            *value = Some(written);
        }
        let ended_ns = (!is_unknown).then_some(it.ended_ns);
        Operation { key, action, began_ns: it.began_ns, ended_ns }
    };
    moments.iter().map(&mut operation).collect()
}

/// Operations on the first register one after the other, as long as the times say otherwise.
type Scenario = &'static [(Action, u64, Option<u64>)];

const OLD: u64 = 1;
const NEW: u64 = 2;

/// What must not be: when it begins and ends, after what came before.
const MISTAKES: [(&str, Scenario, Fault); 9] = [
    (
        "a write is lost",
        &[(Write(OLD), 0, Some(1)), (Write(NEW), 2, Some(3)), (Read(Some(OLD)), 4, Some(5))],
        Fault::NotLinearizable,
    ),
    ("all writes are lost", &[(Write(OLD), 0, Some(1)), (Read(None), 2, Some(3))], Fault::NotLinearizable),
    (
        "a stale read",
        &[
            (Write(OLD), 0, Some(1)),
            (Write(NEW), 2, Some(9)),
            (Read(Some(NEW)), 3, Some(4)),
            (Read(Some(OLD)), 5, Some(6)),
        ],
        Fault::NotLinearizable,
    ),
    (
        "a write is carried out twice",
        &[
            (Write(OLD), 0, Some(1)),
            (Read(Some(OLD)), 2, Some(3)),
            (Write(NEW), 4, Some(5)),
            (Read(Some(NEW)), 6, Some(7)),
            (Read(Some(OLD)), 8, Some(9)),
        ],
        Fault::NotLinearizable,
    ),
    (
        "two members have two writes in different orders",
        &[
            (Write(OLD), 0, Some(20)),
            (Write(NEW), 0, Some(20)),
            (Read(Some(OLD)), 21, Some(23)),
            (Read(Some(NEW)), 22, Some(24)),
        ],
        Fault::NotLinearizable,
    ),
    ("a phantom", &[(Write(OLD), 0, Some(1)), (Read(Some(NEW)), 2, Some(3))], Fault::Phantom),
    ("a write happens twice", &[(Write(OLD), 0, Some(1)), (Write(OLD), 2, Some(3))], Fault::Duplicate),
    (
        "a read from the future",
        &[(Write(OLD), 0, Some(1)), (Read(Some(NEW)), 2, Some(3)), (Write(NEW), 4, Some(5))],
        Fault::NotLinearizable,
    ),
    (
        "a write whose end is not known was read and is gone",
        &[
            (Write(OLD), 0, Some(1)),
            (Write(NEW), 2, None),
            (Read(Some(NEW)), 3, Some(4)),
            (Read(Some(OLD)), 5, Some(6)),
        ],
        Fault::NotLinearizable,
    ),
];

#[test]
fn registers_of_one_order_have_no_faults() {
    for seed in 0..100 {
        let operations = registers(&mut Random::new(seed), 300, 0, &mut [None; 2]);
        let findings = check(&operations);
        assert_eq!(findings.count, 0, "{seed}: {:?}", findings);
    }
    let findings = check(&registers(&mut Random::new(1), 10_000, 0, &mut [None; 2]));
    assert_eq!(findings.count, 0, "{:?}", findings);
}

#[test]
fn each_mistake_with_a_register_is_noticed_by_its_name() {
    for seed in 0..20 {
        for (name, scenario, fault) in MISTAKES {
            let random = &mut Random::new(seed);
            let values = &mut [None; 2];
            let mut operations = registers(random, 200, 0, values);
            let from_ns =
                operations.iter().map(|it| it.began_ns.max(it.ended_ns.unwrap_or(0))).max().unwrap() + 1;
            for (action, began_ns, ended_ns) in scenario.iter().copied() {
                let [began_ns, ended_ns] = [Some(began_ns), ended_ns].map(|it| it.map(|it| from_ns + it));
                operations.push(Operation { key: 0, action, began_ns: began_ns.unwrap(), ended_ns });
            }
            *values = [Some(NEW); 2];
            let last = Operation {
                key: 0,
                action: Write(3),
                began_ns: from_ns + 100,
                ended_ns: Some(from_ns + 101),
            };
            operations.push(last);
            operations.push(Operation { key: 1, action: Write(4), ..last });
            *values = [Some(3), Some(4)];
            operations.extend(registers(random, 200, from_ns + 102, values));
            let findings = check(&operations);
            assert!(findings.faults().contains(&fault), "{seed}, {name}: {:?}", findings);
        }
    }
}

/// Whether any order of the operations explains the reads, those of unknown end left out or not: all tried.
fn has_order(left: &[Operation], value: Option<u64>) -> bool {
    if left.iter().all(|it| it.ended_ns.is_none()) {
        return true;
    }
    (0..left.len()).any(|index| {
        let it = left[index];
        let may_come = left.iter().all(|other| other.ended_ns.is_none_or(|ended_ns| ended_ns >= it.began_ns));
        let value = match it.action {
            Write(written) => Some(written),
            Read(read) if read == value => value,
            Read(_) => return false,
        };
        let mut others = left.to_vec();
        others.remove(index);
        may_come && has_order(&others, value)
    })
}

#[test]
fn of_few_operations_it_finds_what_trying_all_orders_finds() {
    let mut verdicts = [0; 2];
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let writes = 1 + random.below(4);
        let mut operations: Vec<Operation> = Vec::new();
        for number in 0..writes + random.below(4) {
            let began_ns = random.below(12);
            let action = match number {
                _ if number < writes => Write(number),
                _ => Read(random.below(writes + 1).checked_sub(1)),
            };
            let is_unknown = number < writes && random.percent(25);
            let ended_ns = (!is_unknown).then(|| began_ns + random.below(8));
            operations.push(Operation { key: 0, action, began_ns, ended_ns });
        }
        let expected = has_order(&operations, None);
        let findings = check(&operations);
        assert_eq!(findings.count == 0, expected, "{seed}: {operations:?}");
        verdicts[usize::from(expected)] += 1;
    }
    assert!(verdicts.iter().all(|count| *count > 500), "{verdicts:?}");
}
