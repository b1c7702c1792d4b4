//! What is made of cells: the verdict on each, and the page that sums a run up.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::nemesis::cell::{Common, Life, Outcome};
use crate::nemesis::history::order::{Log, Write};
use crate::nemesis::history::{Findings, append, delivery, order, register};
use crate::nemesis::plan::{Cell, Consistency, Durability, Nemesis, name};
use crate::nemesis::record::Record;

/// Violations that are printed of a cell.
const SHOWN_MAX: usize = 20;

/// The counts of a cell, or of many.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cells: u64,
    writes: u64,
    resolved: u64,
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
            "{name:<10} {:>5} {:>7} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8.2} {:>8.2} {:>10}",
            self.cells,
            self.faults,
            self.writes,
            self.resolved,
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
        let counts = count(outcome, all);
        self.by_nemesis.entry(name(&cell.nemesis)).or_default().add(&counts);
        let verdict = if all == 0 { "ok    " } else { "FAILED" };
        println!(
            "{verdict} {cell} --seed {seed}: {} faults, {} writes of which {} resolved, {} read; healed in {:.2} s, \
             without a resolved write {:.2} s, {all} violations",
            counts.faults,
            counts.writes,
            counts.resolved,
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
            "{:<10} {:>5} {:>7} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8} {:>10}",
            "",
            "cells",
            "faults",
            "writes",
            "resolved",
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

fn count(outcome: &Outcome, violations: u64) -> Counts {
    let records = || outcome.lives.iter().map(|life| &life.record);
    let writes = || records().flat_map(|it| it.all_writes()).map(|(write, _)| write);
    let [from_ns, to_ns] = outcome.load_ns;
    let mut resolved: Vec<u64> = writes().filter_map(|it| it.resolved_ns).filter(|it| *it < to_ns).collect();
    let count = writes().filter(|it| it.resolved_ns.is_some()).count() as u64;
    resolved.extend([from_ns, to_ns]);
    resolved.sort_unstable();
    let outage_ns = resolved.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let frames = &outcome.frames;
    Counts {
        cells: 1,
        writes: writes().count() as u64,
        resolved: count,
        reads: records().map(|it| it.log.len() as u64).sum(),
        faults: outcome.faults,
        violations,
        frames: frames.passed,
        lost_frames: frames.lost + frames.cut + frames.queue_full,
        healed: outcome.healed,
        outage: Duration::from_nanos(outage_ns),
    }
}
