//! What an attack did, as a row of a table.

use crate::pair::Memory;

/// What an attack drew, held and stopped.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Octets of IP packets that the attacker has sent.
    pub(crate) sent: u64,
    /// Octets of IP packets that it has drawn to whom it aimed at.
    pub(crate) drawn: u64,
    /// Of the writer's process and of the reader's: before the attack, its peak, and after.
    pub(crate) memory: [[u64; 3]; 2],
    /// The longest pause between two samples at the reader.
    pub(crate) stall_ms: u64,
    /// Writes that failed.
    pub(crate) failed: u64,
    /// Samples that the reader does not have in the end.
    pub(crate) missing: u64,
    pub(crate) duplicates: u64,
    /// SAMPLE_LOST.
    pub(crate) lost: u64,
    /// What went beyond its bounds.
    pub(crate) misses: Vec<String>,
    /// What else is worth knowing.
    pub(crate) notes: Vec<String>,
}

impl Outcome {
    /// Octets drawn by each octet sent.
    pub(crate) fn factor(&self) -> f64 {
        self.drawn as f64 / self.sent.max(1) as f64
    }

    /// Notes the memory of a process of the pair.
    pub(crate) const fn remember(&mut self, process: usize, before: Memory, after: Memory) {
        self.memory[process] = [before.now, after.peak, after.now];
    }
}

pub(crate) fn heading() {
    println!(
        "{:<20} {:>9} {:>9} {:>8} {:>15} {:>15} {:>8} {:>7} {:>7} {:>6} {:>6}",
        "attack", "sent", "drawn", "factor", "writer", "reader", "stall", "failed", "missed", "twice", "lost"
    );
    println!("{:<20} {:>9} {:>9} {:>8} {:>15} {:>15} {:>8}", "", "kB", "kB", "", "MB", "MB", "ms");
}

pub(crate) fn row(name: &str, outcome: &Outcome) {
    let [writer, reader] =
        outcome.memory.map(|moments| moments.map(|octets| (octets / 1_000_000).to_string()).join(" "));
    println!(
        "{name:<20} {:>9.1} {:>9.1} {:>8.2} {writer:>15} {reader:>15} {:>8} {:>7} {:>7} {:>6} {:>6}",
        outcome.sent as f64 / 1e3,
        outcome.drawn as f64 / 1e3,
        outcome.factor(),
        outcome.stall_ms,
        outcome.failed,
        outcome.missing,
        outcome.duplicates,
        outcome.lost,
    );
    outcome.notes.iter().for_each(|note| println!("       {note}"));
    outcome.misses.iter().for_each(|miss| println!("failed {name}: {miss}"));
}
