//! Total order: what readers logged are slices of one sequence, in which everything that was resolved stands
//! once, after whatever was known to be there when it was written. Sorting aside it takes linear time.
//!
//! Positions have gaps where something stands that is no sample: what all readers leave out is noticed by the
//! numbers of its writer.

use std::collections::{BTreeMap, HashSet};

use crate::nemesis::history::{Fault, Findings};

/// An entry: the writer (a new one for each life of a process) and its sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) writer: u64,
    pub(crate) number: u64,
}

/// A write, by the clock of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) id: Id,
    pub(crate) hash: u64,
    pub(crate) began_ns: u64,
    /// When it was known to be in the agreed order, if it ever was.
    pub(crate) resolved_ns: Option<u64>,
    /// It was told that the outcome of this one and others is not known.
    pub(crate) unknown: Option<Unknown>,
}

/// Writes of one writer up to a number that were told of together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unknown {
    pub(crate) through: u64,
    /// So many of them may be missing; the others are in the order.
    pub(crate) count: u64,
}

/// A sample that a reader got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) position: u64,
    pub(crate) epoch: u64,
    pub(crate) id: Id,
    pub(crate) hash: u64,
    pub(crate) at_ns: u64,
}

/// What one reader got, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) reader: u64,
    /// It has everything from the beginning.
    pub(crate) is_whole: bool,
    /// It lived until the end, and had time to get everything.
    pub(crate) survives: bool,
    /// So often it knows that it missed something.
    pub(crate) missed: u64,
    pub(crate) entries: Vec<Entry>,
}

/// Checks what all readers got against all that was written.
pub(crate) fn check(writes: &[Write], logs: &[Log]) -> Findings {
    let mut findings = Findings::default();
    let order = agree(logs, &mut findings);
    for log in logs {
        check_log(log, &order, &mut findings);
        check_ends(log, &order, &mut findings);
    }
    let mut writes = writes.to_vec();
    writes.sort_unstable_by_key(|it| it.id);
    let written = check_written(&writes, &order, |write| write.resolved_ns.is_some(), &mut findings);
    let is_unknown = |id: Id| {
        let found = writes.binary_search_by_key(&id, |it| it.id);
        found.is_ok_and(|index| writes[index].unknown.is_some())
    };
    check_writers(&order, is_unknown, &mut findings);
    check_unknown(&writes, &order, &mut findings);
    check_real_time(&order, &written, &mut findings);
    findings
}

/// A log goes on with what comes next in the sequence, and no earlier epoch.
fn check_log(log: &Log, order: &[Entry], findings: &mut Findings) {
    let reader = log.reader;
    let mut missed = 0;
    let first = log.entries.first().map(|it| it.position);
    let mut next = order.partition_point(|it| Some(it.position) < first) + 1;
    for pair in log.entries.windows(2) {
        let [before, entry] = [pair[0], pair[1]];
        if order.get(next).is_none_or(|it| it.position != entry.position) {
            missed += 1;
            next = order.partition_point(|it| it.position < entry.position);
            if missed > log.missed || entry.position <= before.position {
                findings.add(Fault::NotContiguous, || {
                    format!("reader {reader} has position {} after {}", entry.position, before.position)
                });
            }
        }
        next += 1;
        if entry.epoch < before.epoch {
            findings.add(Fault::Epoch, || {
                let position = entry.position;
                format!("reader {reader} has epoch {} after {} at {position}", entry.epoch, before.epoch)
            });
        }
    }
}

/// The one sequence that all logs are slices of, by position; of entries that differ it has the first. The
/// time is that of the first who got it.
fn agree(logs: &[Log], findings: &mut Findings) -> Vec<Entry> {
    let mut all: Vec<Entry> = logs.iter().flat_map(|log| log.entries.iter().copied()).collect();
    all.sort_unstable_by_key(|it| (it.position, it.at_ns));
    let mut order: Vec<Entry> = Vec::with_capacity(all.len());
    for entry in all {
        let Some(last) = order.last().filter(|last| last.position == entry.position) else {
            order.push(entry);
            continue;
        };
        let what = |it: &Entry| (it.epoch, it.id, it.hash);
        if what(last) != what(&entry) {
            let (last, entry) = (*last, entry);
            findings.add(Fault::Disagreement, || {
                format!("position {} is both {} and {}", entry.position, text(&last), text(&entry))
            });
        }
    }
    order
}

fn text(entry: &Entry) -> String {
    let Entry { epoch, id, hash, .. } = entry;
    format!("sample {} of {} in epoch {epoch} ({hash:x})", id.number, id.writer)
}

/// Who survives has everything that anybody has, to the end; who is whole, from the beginning.
fn check_ends(log: &Log, order: &[Entry], findings: &mut Findings) {
    let [first, last] = [order.first(), order.last()].map(|it| it.map(|it| it.position));
    let [begin, end] = [log.entries.first(), log.entries.last()].map(|it| it.map(|it| it.position));
    if log.survives && end != last {
        findings.add(Fault::Lost, || format!("reader {} ends at position {end:?}, not {last:?}", log.reader));
    }
    if log.is_whole && begin != first && (log.survives || begin.is_some()) {
        findings.add(Fault::Lost, || format!("reader {} begins at {begin:?}, not {first:?}", log.reader));
    }
}

/// Whatever was read had been written, once; whatever must have been read was. The writes, sorted by what
/// they wrote, of the sequence, in its order.
pub(super) fn check_written(
    writes: &[Write],
    order: &[Entry],
    must_have: impl Fn(&Write) -> bool,
    findings: &mut Findings,
) -> Vec<Option<Write>> {
    let mut by_id: Vec<&Entry> = order.iter().collect();
    by_id.sort_unstable_by_key(|it| (it.id, it.position));
    for pair in by_id.windows(2).filter(|pair| pair[0].id == pair[1].id) {
        findings.add(Fault::Duplicate, || {
            format!("{} is at positions {} and {}", text(pair[0]), pair[0].position, pair[1].position)
        });
    }
    for write in writes.iter().filter(|it| must_have(it)) {
        if by_id.binary_search_by_key(&write.id, |it| it.id).is_err() {
            findings.add(Fault::Lost, || {
                format!("sample {} of {} was resolved, and is missing", write.id.number, write.id.writer)
            });
        }
    }
    let write_of = |entry: &Entry| {
        let found = writes.binary_search_by_key(&entry.id, |it| it.id).ok();
        found.map(|index| writes[index])
    };
    let written: Vec<Option<Write>> = order.iter().map(write_of).collect();
    for (entry, write) in order.iter().zip(&written) {
        match write {
            None => findings.add(Fault::Phantom, || format!("nobody wrote {}", text(entry))),
            Some(write) if write.hash != entry.hash => {
                findings.add(Fault::Corrupted, || format!("{} was written as {:x}", text(entry), write.hash));
            }
            Some(write) if entry.at_ns < write.began_ns => {
                findings.add(Fault::Early, || format!("{} was read before it was written", text(entry)));
            }
            Some(_) => {}
        }
    }
    written
}

/// Samples of each writer follow one another, without a gap but for those that may be missing.
pub(super) fn check_writers(order: &[Entry], may_lack: impl Fn(Id) -> bool, findings: &mut Findings) {
    let mut by_writer: Vec<&Entry> = order.iter().collect();
    by_writer.sort_by_key(|it| it.id.writer);
    for pair in by_writer.windows(2).filter(|pair| pair[0].id.writer == pair[1].id.writer) {
        let (before, Id { writer, number }) = (pair[0].id.number, pair[1].id);
        let fault = match number {
            _ if number <= before => Fault::WriterOrder,
            _ if (before + 1..number).all(|number| may_lack(Id { writer, number })) => continue,
            _ => Fault::WriterGap,
        };
        findings.add(fault, || format!("{} follows sample {}", text(pair[1]), pair[0].id.number));
    }
}

/// Of writes that were told to be unknown together no more are missing than was told.
fn check_unknown(writes: &[Write], order: &[Entry], findings: &mut Findings) {
    let there: HashSet<Id> = order.iter().map(|it| it.id).collect();
    let mut missing: BTreeMap<(u64, Unknown), u64> = BTreeMap::new();
    for write in writes.iter().filter(|write| !there.contains(&write.id)) {
        if let Some(unknown) = write.unknown {
            *missing.entry((write.id.writer, unknown)).or_default() += 1;
        }
    }
    for ((writer, Unknown { through, count }), missing) in missing {
        if missing > count {
            findings.add(Fault::Lost, || {
                format!("{missing} samples of {writer} up to {through} are missing, and {count} are unknown")
            });
        }
    }
}

/// Of two entries the one that was known to be there when the other was written stands first. Backwards: the
/// earliest time at which anything behind an entry was known must not be before it was written.
fn check_real_time(order: &[Entry], written: &[Option<Write>], findings: &mut Findings) {
    let mut known: Option<(u64, &Entry)> = None;
    for (entry, write) in order.iter().zip(written).rev() {
        if let (Some(write), Some((known_ns, later))) = (write, known)
            && known_ns < write.began_ns
        {
            findings.add(Fault::RealTime, || {
                let (late_ns, position) = (write.began_ns - known_ns, entry.position);
                format!(
                    "{} at {position} was written {late_ns} ns after {} at {} was known to be there",
                    text(entry),
                    text(later),
                    later.position
                )
            });
        }
        let resolved_ns = write.and_then(|it| it.resolved_ns).unwrap_or(u64::MAX);
        let at_ns = entry.at_ns.min(resolved_ns);
        if known.is_none_or(|(known_ns, _)| at_ns < known_ns) {
            known = Some((at_ns, entry));
        }
    }
}
