//! What is made of cells: the verdict on each, and the page that sums a run up.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::ns;
use crate::nemesis::cell::{Common, Life, Outcome};
use crate::nemesis::history::order::{Log, Write};
use crate::nemesis::history::{Findings, append, delivery, order, register};
use crate::nemesis::plan::{Cell, Consistency, Durability, Nemesis, Topology, name};
use crate::nemesis::record::Record;

/// So long after an event a pause may begin that it causes.
const AFTER: Duration = Duration::from_secs(1);
/// Violations that are printed of a cell.
const SHOWN_MAX: usize = 20;

/// The counts of a cell, or of many.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cells: u64,
    writes: u64,
    resolved: u64,
    /// Nobody could tell whether they were delivered.
    unknown: u64,
    reads: u64,
    faults: u64,
    violations: u64,
    frames: u64,
    lost_frames: u64,
    healed: Duration,
    /// The longest time in which no write was resolved.
    outage: Duration,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.cells += other.cells;
        self.writes += other.writes;
        self.resolved += other.resolved;
        self.unknown += other.unknown;
        self.reads += other.reads;
        self.faults += other.faults;
        self.violations += other.violations;
        self.frames += other.frames;
        self.lost_frames += other.lost_frames;
        self.healed = self.healed.max(other.healed);
        self.outage = self.outage.max(other.outage);
    }

    /// A line under the heading of the page.
    fn line(&self, name: &str) -> String {
        format!(
            "{name:<10} {:>5} {:>7} {:>8} {:>7} {:>8} {:>9} {:>9} {:>9} {:>8.2} {:>8.2} {:>10}",
            self.cells,
            self.faults,
            self.writes,
            self.resolved,
            self.unknown,
            self.reads,
            self.frames,
            self.lost_frames,
            self.healed.as_secs_f64(),
            self.outage.as_secs_f64(),
            self.violations
        )
    }
}

/// All cells of a run.
#[derive(Default)]
pub(crate) struct Summary {
    by_nemesis: BTreeMap<String, Counts>,
    skipped: Vec<(Cell, &'static str)>,
    failed: Vec<(Cell, u64)>,
    /// See [`pauses`].
    pauses: [Vec<Duration>; 2],
}

impl Summary {
    pub(crate) fn skip(&mut self, cell: Cell, why: &'static str) {
        self.skipped.push((cell, why));
    }

    /// Judges a cell, and tells it in a line, or some.
    pub(crate) fn judge(&mut self, cell: Cell, seed: u64, outcome: &Outcome, common: &Common) {
        let findings = findings(cell, outcome, common);
        let told = outcome.lives.iter().flat_map(|life| {
            life.record.violations.iter().map(move |what| format!("process {}: {what}", life.process))
        });
        let violations: Vec<String> =
            outcome.violations.iter().cloned().chain(told).chain(findings.described()).collect();
        let all = (outcome.violations.len() as u64 + findings.count).max(violations.len() as u64);
        let resolved_ns = resolved_ns(outcome);
        let counts = count(outcome, &resolved_ns, all);
        // With one writer alone nobody is left to wait; who has a disk may be killed at any time.
        let is_spaced = cell.durability != Durability::Persistent && cell.topology != Topology::Pair;
        if matches!(cell.nemesis, Nemesis::Kill | Nemesis::Leave) && is_spaced {
            let of_cell = pauses(outcome, &resolved_ns);
            self.pauses.iter_mut().zip(of_cell).for_each(|(all, of_cell)| all.extend(of_cell));
        }
        self.by_nemesis.entry(name(&cell.nemesis)).or_default().add(&counts);
        let verdict = if all == 0 { "ok    " } else { "FAILED" };
        println!(
            "{verdict} {cell} --seed {seed}: {} faults, {} writes of which {} resolved and {} unknown, {} read; healed in {:.2} s, \
             without a resolved write {:.2} s, {all} violations",
            counts.faults,
            counts.writes,
            counts.resolved,
            counts.unknown,
            counts.reads,
            counts.healed.as_secs_f64(),
            counts.outage.as_secs_f64()
        );
        violations.iter().take(SHOWN_MAX).for_each(|what| println!("VIOLATION {what}"));
        if all > 0 {
            self.failed.push((cell, seed));
        }
    }

    /// The page; whether all was well.
    pub(crate) fn tell(&self, seed: u64, took: Duration, common: &Common) -> bool {
        let consistency = name(&common.consistency);
        println!("\nnemesis: {consistency}, seed {seed}, {:.1} minutes", took.as_secs_f64() / 60.0);
        println!(
            "{:<10} {:>5} {:>7} {:>8} {:>7} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8} {:>10}",
            "",
            "cells",
            "faults",
            "writes",
            "resolved",
            "unknown",
            "read",
            "frames",
            "lost",
            "heal s",
            "gap s",
            "violations"
        );
        let mut total = Counts::default();
        for (name, counts) in &self.by_nemesis {
            println!("{}", counts.line(name));
            total.add(counts);
        }
        println!("{}", total.line("all"));
        for (name, pauses) in ["after a kill", "while one joins"].iter().zip(&self.pauses) {
            if !pauses.is_empty() {
                println!("{}", percentiles(name, pauses));
            }
        }
        for (cell, why) in &self.skipped {
            println!("skipped {cell}: {why}");
        }
        for (cell, seed) in &self.failed {
            println!("again: cargo xtask nemesis --consistency {consistency} --cell {cell} --seed {seed}");
        }
        println!("violations: {}", total.violations);
        total.violations == 0 && total.cells > 0
    }
}

fn findings(cell: Cell, outcome: &Outcome, common: &Common) -> Findings {
    let lives = &outcome.lives;
    let writes: Vec<Write> =
        lives.iter().flat_map(|it| it.record.all_writes().map(|(write, _)| *write)).collect();
    let logs: Vec<Log> = lives.iter().filter(|life| life.reads).map(|life| log_of(life, cell)).collect();
    match common.consistency {
        Consistency::Eventual => {
            // Nobody was cut off, or forgotten, for longer than a lease.
            let is_reached = matches!(
                cell.nemesis,
                Nemesis::Calm
                    | Nemesis::Squeeze
                    | Nemesis::Loss
                    | Nemesis::Reorder
                    | Nemesis::Delay
                    | Nemesis::Clock
            );
            let first = |process| lives.iter().any(|it| it.process == process && it.is_first && it.survives);
            delivery::check(&writes, &logs, |log| is_reached && first(log.reader))
        }
        Consistency::Atomic => {
            let records = || lives.iter().map(|life| &life.record);
            let registers: Vec<_> = records().flat_map(Record::register_operations).collect();
            let lists: Vec<_> = records().flat_map(Record::list_operations).collect();
            let mut findings = order::check(&writes, &logs);
            findings.add_all(register::check(&registers));
            findings.add_all(append::check(&lists));
            findings
        }
    }
}

fn log_of(life: &Life, cell: Cell) -> Log {
    Log {
        reader: life.process,
        is_whole: life.is_first || cell.durability != Durability::Volatile,
        survives: life.survives,
        missed: life.record.missed,
        entries: life.record.log.clone(),
    }
}

/// When writes were resolved while some were written, and when that began and ended.
fn resolved_ns(outcome: &Outcome) -> Vec<u64> {
    let [from_ns, to_ns] = outcome.load_ns;
    let writes = outcome.lives.iter().flat_map(|life| life.record.all_writes());
    let mut resolved: Vec<u64> = writes.filter_map(|(write, _)| write.resolved_ns).collect();
    resolved.retain(|at_ns| (from_ns..to_ns).contains(at_ns));
    resolved.extend([from_ns, to_ns]);
    resolved.sort_unstable();
    resolved
}

/// The longest time without a resolved write, of those that end after one moment and begin before another.
fn gap(resolved_ns: &[u64], from_ns: u64, to_ns: u64) -> Duration {
    let gaps = resolved_ns.windows(2).filter(|pair| pair[1] > from_ns && pair[0] < to_ns);
    Duration::from_nanos(gaps.map(|pair| pair[1] - pair[0].max(from_ns)).max().unwrap_or(0))
}

/// How long others had to wait after one was killed, and while one joined.
fn pauses(outcome: &Outcome, resolved_ns: &[u64]) -> [Vec<Duration>; 2] {
    let after = |at_ns: u64, until_ns: u64| gap(resolved_ns, at_ns, until_ns + ns(AFTER));
    let killed = outcome.lives.iter().filter_map(|life| life.killed_ns);
    let joined = outcome.lives.iter().filter(|life| !life.is_first);
    let joined = joined.filter_map(|life| Some((life.started_ns, life.record.ready_ns?)));
    let joined = joined.filter(|(started_ns, _)| *started_ns < outcome.load_ns[1]);
    [
        killed.map(|at_ns| after(at_ns, at_ns)).collect(),
        joined.map(|(started_ns, ready_ns)| after(started_ns, ready_ns)).collect(),
    ]
}

/// Median, nearly the longest, and the longest.
fn percentiles(name: &str, pauses: &[Duration]) -> String {
    let mut sorted: Vec<f64> = pauses.iter().map(Duration::as_secs_f64).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |percent: usize| sorted[(sorted.len() - 1) * percent / 100];
    let [p50, p99, longest] = [50, 99, 100].map(at);
    let count = sorted.len();
    format!(
        "{name} ({count}), others resolve nothing for: p50 {p50:.3} s, p99 {p99:.3} s, longest {longest:.3} s"
    )
}

fn count(outcome: &Outcome, resolved_ns: &[u64], violations: u64) -> Counts {
    let records = || outcome.lives.iter().map(|life| &life.record);
    let writes = || records().flat_map(|it| it.all_writes()).map(|(write, _)| write);
    let frames = &outcome.frames;
    Counts {
        cells: 1,
        writes: writes().count() as u64,
        unknown: records().map(|it| it.unknown).sum(),
        resolved: writes().filter(|it| it.resolved_ns.is_some()).count() as u64,
        reads: records().map(|it| it.log.len() as u64).sum(),
        faults: outcome.faults,
        violations,
        frames: frames.passed,
        lost_frames: frames.lost + frames.cut + frames.queue_full,
        healed: outcome.healed,
        outage: gap(resolved_ns, 0, u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_time_in_which_nothing_is_resolved() {
        let resolved = [10, 12, 30, 35, 100];
        let gap = |from_ns, to_ns| gap(&resolved, from_ns, to_ns).as_nanos();
        assert_eq!(gap(0, u64::MAX), 65);
        assert_eq!([gap(11, 13), gap(13, 14), gap(13, 40), gap(101, 200)], [18, 17, 65, 0]);
        let pauses: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        let line = percentiles("after a kill", &pauses);
        let words = "p50 0.100 s, p99 0.198 s, longest 0.200 s";
        assert!(line.starts_with("after a kill (200)") && line.ends_with(words), "{line}");
    }
}
