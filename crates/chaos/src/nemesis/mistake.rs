//! What a process does wrong on purpose, to see that it is noticed.

use clap::ValueEnum;

use crate::nemesis::history::order::Entry;

/// So many samples are right before.
const FIRST_RIGHT: u64 = 20;

/// A mistake of the first process that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mistake {
    /// A sample is not told.
    Lose,
    /// A sample is told after the next one of its writer.
    Swap,
    /// A sample is told twice.
    Duplicate,
    /// The octets of a sample are others.
    Corrupt,
    /// A sample that nobody wrote.
    Phantom,
    /// Registers are told as they were before.
    Stale,
    /// The process ends.
    Crash,
    /// Samples are delivered before they are on a disk. With losses of power alone; all processes do it.
    Unsynced,
}

/// What was told wrong.
#[derive(Default)]
pub(crate) struct Spoiled {
    count: u64,
    held: Option<Entry>,
}

impl Spoiled {
    /// The entries that are told in place of one.
    pub(crate) fn entries(
        &mut self,
        mistake: Option<Mistake>,
        entry: Entry,
    ) -> impl Iterator<Item = Entry> + use<> {
        self.count += 1;
        let is_due = self.count == FIRST_RIGHT;
        let mut entry = entry;
        let mut also = self.held.take_if(|held| held.id.writer == entry.id.writer);
        let mut is_told = true;
        match mistake.filter(|_| is_due) {
            Some(Mistake::Lose) => is_told = false,
            Some(Mistake::Swap) => {
                self.held = Some(entry);
                is_told = false;
            }
            Some(Mistake::Duplicate) => also = Some(entry),
            Some(Mistake::Corrupt) => entry.hash ^= 1,
            Some(Mistake::Phantom) => entry.id.writer += 1_000,
            Some(Mistake::Crash) => std::process::exit(3),
            Some(Mistake::Stale | Mistake::Unsynced) | None => {}
        }
        is_told.then_some(entry).into_iter().chain(also)
    }
}
