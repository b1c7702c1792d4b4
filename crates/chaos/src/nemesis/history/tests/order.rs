//! Orders, and mistakes in them.

use super::super::Fault;
use super::super::order::{Entry, Id, Log, Unknown, Write, check};
use crate::random::Random;

/// What three writers wrote and three readers got, as an ordered topic brings it: the second reader came
/// late, the third was killed.
fn topic(seed: u64, count: usize) -> (Vec<Write>, Vec<Log>) {
    let mut random = Random::new(seed);
    let mut now_ns = 1_000;
    let mut next = [0_u64; 3];
    let mut writes = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    for position in 0..count as u64 {
        // Up to four are written at once.
        now_ns += 1 + random.below(100);
        let writer = random.below(3);
        let id = Id { writer, number: next[writer as usize] };
        next[writer as usize] += 1;
        let hash = random.next();
        // It gets its place after it was written, and is known after that; not all are heard of again.
        let resolved_ns = (!random.percent(10)).then_some(now_ns + 150 + random.below(100));
        let began_ns = now_ns - random.below(100).min(now_ns);
        writes.push(Write { id, hash, began_ns, resolved_ns, unknown: None });
        let at_ns = now_ns + 100 + random.below(50);
        entries.push(Entry { position, epoch: 1 + position / 40, id, hash, at_ns });
    }
    let id = Id { writer: 7, number: 0 };
    writes.push(Write { id, hash: 1, began_ns: 5, resolved_ns: None, unknown: None });
    let (late, killed) = (count / 4, count - count / 4);
    let log = |reader, survives, entries: &[Entry]| Log {
        reader,
        is_whole: reader != 1,
        survives,
        missed: 0,
        entries: entries.to_vec(),
    };
    let logs =
        vec![log(0, true, &entries), log(1, true, &entries[late..]), log(2, false, &entries[..killed])];
    (writes, logs)
}

/// Puts the same place of all logs right again, after entries came or went.
fn renumber(logs: &mut [Log]) {
    for log in logs {
        let first = log.entries[0].position;
        log.entries.iter_mut().zip(first..).for_each(|(entry, position)| entry.position = position);
    }
}

/// Exchanges what stands at two positions, wherever it stands.
fn exchange(log: &mut Log, one: u64, other: u64) {
    let first = log.entries[0].position;
    let at = |position: u64| {
        let index = position.checked_sub(first)? as usize;
        (index < log.entries.len()).then_some(index)
    };
    if let (Some(one), Some(other)) = (at(one), at(other)) {
        log.entries.swap(one, other);
        let position = log.entries[one].position;
        log.entries[one].position = log.entries[other].position;
        log.entries[other].position = position;
        let epoch = log.entries[one].epoch;
        log.entries[one].epoch = log.entries[other].epoch;
        log.entries[other].epoch = epoch;
    }
}

/// Leaves places for what is no sample: one in eight.
fn stretch(mut logs: Vec<Log>) -> Vec<Log> {
    logs.iter_mut().flat_map(|log| &mut log.entries).for_each(|it| it.position = it.position * 8 / 7);
    logs
}

/// Changes the entry at one position, wherever it stands.
fn everywhere(logs: &mut [Log], change: fn(&mut Entry)) {
    logs.iter_mut().flat_map(|log| &mut log.entries).filter(|it| it.position == 100).for_each(change);
}

type Spoil = fn(&mut Vec<Write>, &mut Vec<Log>);

/// What is done to a history of 200 entries, and what it is then called.
const ORDER_MISTAKES: [(&str, Spoil, Fault); 18] = [
    ("a resolved write is lost everywhere", |writes, logs| lose(writes, logs, false), Fault::Lost),
    (
        "an entry between two of a writer is lost everywhere",
        |writes, logs| lose(writes, logs, true),
        Fault::WriterGap,
    ),
    (
        "one reader misses an entry",
        |_, logs| {
            logs[0].entries.remove(100);
        },
        Fault::NotContiguous,
    ),
    (
        "one reader misses an entry without noticing",
        |_, logs| {
            logs[0].entries.remove(100);
            renumber(&mut logs[..1]);
        },
        Fault::Disagreement,
    ),
    (
        "a reader misses two parts and knows of one",
        |_, logs| {
            logs[0].entries.drain(100..110);
            logs[0].entries.drain(50..60);
            logs[0].missed = 1;
        },
        Fault::NotContiguous,
    ),
    ("a reader that is whole misses the beginning", |_, logs| drop(logs[0].entries.drain(..9)), Fault::Lost),
    ("a survivor misses the end", |_, logs| logs[1].entries.truncate(120), Fault::Lost),
    (
        "a reader that was killed had more than the others",
        |_, logs| {
            logs[2] = Log { survives: false, ..logs[0].clone() };
            for log in &mut logs[..2] {
                log.entries.pop();
            }
        },
        Fault::Lost,
    ),
    (
        "one reader has two entries in the other order",
        |_, logs| exchange(&mut logs[0], 100, 101),
        Fault::Disagreement,
    ),
    (
        "a late reader has another order than the first",
        |_, logs| exchange(&mut logs[1], 100, 140),
        Fault::Disagreement,
    ),
    (
        "one reader gets an entry twice",
        |_, logs| {
            let entry = logs[0].entries[100];
            logs[0].entries.insert(101, entry);
        },
        Fault::NotContiguous,
    ),
    (
        "all readers get an entry twice",
        |_, logs| {
            let entry = logs[0].entries[100];
            for log in logs.iter_mut() {
                let at = log.entries.iter().position(|it| it.position == 110).unwrap();
                log.entries.insert(at, entry);
            }
            renumber(logs);
        },
        Fault::Duplicate,
    ),
    (
        "entries of a writer change places",
        |_, logs| {
            let one = logs[0].entries[100];
            let later = |it: &&Entry| it.position > 100 && it.id.writer == one.id.writer;
            let other = logs[0].entries.iter().find(later).unwrap().position;
            logs.iter_mut().for_each(|it| exchange(it, 100, other));
        },
        Fault::WriterOrder,
    ),
    ("a phantom", |_, logs| everywhere(logs, |it| it.id.number += 1_000), Fault::Phantom),
    ("other octets", |_, logs| everywhere(logs, |it| it.hash ^= 1), Fault::Corrupted),
    (
        "an entry is read before it is written",
        |writes, logs| {
            let id = logs[0].entries[100].id;
            writes.iter_mut().filter(|it| it.id == id).for_each(|it| it.began_ns += 1_000_000);
        },
        Fault::Early,
    ),
    (
        "an entry stands before one that was resolved before it was written",
        |writes, logs| {
            // The last position of all logs at which another writer writes.
            let one = logs[0].entries[100];
            let is_resolved = |id| writes.iter().any(|it| it.id == id && it.resolved_ns.is_some());
            let is_another = |it: &&Entry| it.id.writer != one.id.writer && is_resolved(it.id);
            let later = |it: &&Entry| it.position > 110 && is_another(it);
            let other = logs[0].entries.iter().find(later).unwrap().position;
            for position in (101..=other).rev() {
                logs.iter_mut().for_each(|it| exchange(it, position, position - 1));
            }
        },
        Fault::RealTime,
    ),
    ("epochs go back", |_, logs| everywhere(logs, |it| it.epoch = 1), Fault::Epoch),
];

/// Takes an entry from all logs, one whose writer wrote later ones or not, and puts their positions right.
fn lose(writes: &mut [Write], logs: &mut [Log], is_between: bool) {
    let entries = &logs[0].entries;
    let last_of = |writer| entries.iter().rposition(|it| it.id.writer == writer).unwrap();
    let index = if is_between { 100 } else { last_of(entries[100].id.writer) };
    let id = entries[index].id;
    writes.iter_mut().filter(|it| it.id == id).for_each(|it| it.resolved_ns = Some(u64::MAX));
    let before = |log: &Log| log.entries[0].position;
    let firsts: Vec<u64> = logs.iter().map(before).collect();
    logs.iter_mut().for_each(|log| log.entries.retain(|it| it.id != id));
    renumber(logs);
    assert_eq!(firsts, logs.iter().map(before).collect::<Vec<_>>());
}

#[test]
fn an_ordered_topic_has_no_faults() {
    for seed in 0..200 {
        let (writes, logs) = topic(seed, 200);
        let findings = check(&writes, &stretch(logs));
        assert_eq!(findings.count, 0, "{seed}: {:?}", findings);
    }
}

#[test]
fn each_mistake_in_an_order_is_noticed_by_its_name() {
    for seed in 0..20 {
        for (name, spoil, fault) in ORDER_MISTAKES {
            let (mut writes, mut logs) = topic(seed, 200);
            spoil(&mut writes, &mut logs);
            let findings = check(&writes, &stretch(logs));
            assert!(findings.faults().contains(&fault), "{seed}, {name}: {:?}", findings);
        }
    }
}

#[test]
fn a_reader_may_miss_what_it_knows_that_it_missed() {
    let (writes, mut logs) = topic(3, 200);
    logs[0].entries.drain(100..110);
    logs[0].entries.drain(50..60);
    logs[0].missed = 2;
    let findings = check(&writes, &stretch(logs));
    assert_eq!(findings.count, 0, "{findings:?}");
}

/// Three samples of one writer before its one at position 100 are missing, of `told` of which the outcome is
/// not known, with `count` of them to be missing.
fn unknown(told: usize, count: u64) -> Vec<Fault> {
    let (mut writes, mut logs) = topic(3, 200);
    let last = logs[0].entries[100].id;
    let gone: Vec<Id> = (last.number - 3..last.number).map(|number| Id { number, ..last }).collect();
    let unknown = Some(Unknown { through: last.number - 1, count });
    for (index, id) in gone.iter().enumerate() {
        let write = writes.iter_mut().find(|it| it.id == *id).unwrap();
        write.resolved_ns = None;
        write.unknown = unknown.filter(|_| index < told);
    }
    logs.iter_mut().for_each(|log| log.entries.retain(|it| !gone.contains(&it.id)));
    check(&writes, &logs).faults()
}

#[test]
fn writes_of_unknown_outcome_may_be_missing_and_no_others() {
    assert_eq!(unknown(3, 3), []);
    assert_eq!(unknown(2, 3), [Fault::WriterGap]);
    assert_eq!(unknown(3, 2), [Fault::Lost]);
    let (mut writes, logs) = topic(3, 200);
    let last = logs[0].entries[100].id;
    let told = writes.iter_mut().filter(|it| it.id.writer == last.writer && it.id.number <= last.number);
    told.for_each(|it| {
        (it.resolved_ns, it.unknown) = (None, Some(Unknown { through: last.number, count: 9 }))
    });
    assert_eq!(check(&writes, &logs).count, 0, "they may be there, too");
}

#[test]
fn many_entries_can_be_checked() {
    let (writes, logs) = topic(1, 200_000);
    assert_eq!(check(&writes, &logs).count, 0);
}
