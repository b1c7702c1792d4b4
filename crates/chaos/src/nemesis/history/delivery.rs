//! What readers get without an agreed order: of each writer what it wrote, in its order, each once; who was
//! there from the beginning and could be reached, all of it.

use crate::nemesis::history::Findings;
use crate::nemesis::history::order::{Log, Write, check_writers, check_written};

/// Checks what readers got, each for itself. Those that `is_complete` names may miss nothing between two
/// samples of a writer, nor anything that was acknowledged.
pub(crate) fn check(writes: &[Write], logs: &[Log], is_complete: impl Fn(&Log) -> bool) -> Findings {
    let mut all = Findings::default();
    let mut sorted = writes.to_vec();
    sorted.sort_unstable_by_key(|it| it.id);
    for log in logs {
        let mut findings = Findings::default();
        let must_have: fn(&Write) -> bool =
            if is_complete(log) { |write| write.resolved_ns.is_some() } else { |_| false };
        check_written(&sorted, &log.entries, must_have, &mut findings);
        check_writers(&log.entries, |_| !is_complete(log), &mut findings);
        all.add_all(findings.of_reader(log.reader));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::history::Fault;
    use crate::nemesis::history::order::{Entry, Id};

    /// Two writers, of which the last sample of the second was not acknowledged, and what one reader got.
    fn topic() -> (Vec<Write>, Log) {
        let mut writes = Vec::new();
        let mut entries = Vec::new();
        for number in 0..10 {
            for writer in [1, 2] {
                let id = Id { writer, number };
                let began_ns = number * 10;
                let resolved_ns = (id != Id { writer: 2, number: 9 }).then_some(began_ns + 5);
                writes.push(Write { id, hash: number, began_ns, resolved_ns, unknown: None });
                let at_ns = began_ns + 3;
                entries.push(Entry { position: entries.len() as u64, epoch: 0, id, hash: number, at_ns });
            }
        }
        (writes, Log { reader: 1, survives: true, entries, ..Log::default() })
    }

    type Spoil = fn(&mut Vec<Entry>);

    const MISTAKES: [(&str, Spoil, Fault); 8] = [
        ("the first", |it| drop(it.drain(..1)), Fault::Lost),
        ("one between two", |it| drop(it.drain(6..7)), Fault::WriterGap),
        ("the last that was acknowledged", |it| drop(it.drain(18..19)), Fault::Lost),
        ("one twice", |it| it.insert(9, it[8]), Fault::Duplicate),
        ("one too late", |it| it.swap(4, 6), Fault::WriterOrder),
        ("a phantom", |it| it[4].id.writer = 3, Fault::Phantom),
        ("other octets", |it| it[4].hash = 9, Fault::Corrupted),
        ("one too early", |it| it[4].at_ns = 1, Fault::Early),
    ];

    #[test]
    fn each_mistake_in_a_delivery_is_noticed_by_its_name() {
        let (writes, log) = topic();
        let findings = check(&writes, &[log], |_| true);
        assert_eq!(findings.count, 0, "{findings:?}");
        for (name, spoil, fault) in MISTAKES {
            let (writes, mut log) = topic();
            spoil(&mut log.entries);
            let findings = check(&writes, &[log], |_| true);
            assert!(findings.faults().contains(&fault), "{name}: {findings:?}");
        }
    }

    #[test]
    fn who_came_late_or_was_cut_off_may_miss_some() {
        let (writes, mut log) = topic();
        log.entries.drain(..3);
        log.entries.drain(5..9);
        assert_eq!(check(&writes, &[log.clone()], |_| false).count, 0);
        log.entries.swap(2, 4);
        assert_eq!(check(&writes, &[log], |_| false).faults(), [Fault::WriterOrder]);
    }
}
