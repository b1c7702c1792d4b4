//! What a history must be, whatever was done to those who made it: three checkers that see nothing but what
//! was written, when, and what was read. Each is told apart by mistakes that it must notice (`tests`).

pub(crate) mod append;
pub(crate) mod order;
pub(crate) mod register;
#[cfg(test)]
mod tests;

/// Violations that are described; all are counted.
const DESCRIBED_MAX: usize = 20;

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Two readers have different entries at one position.
    Disagreement,
    /// A reader leaves positions out, or goes back.
    NotContiguous,
    /// Epochs go back.
    Epoch,
    /// An entry at two positions, or twice in a list.
    Duplicate,
    /// Entries of one writer are not in the order in which they were written.
    WriterOrder,
    /// An entry of a writer is missing between two others.
    WriterGap,
    /// A write that was resolved, or an entry that one reader has, is missing in the end.
    Lost,
    /// Something was read that nobody wrote.
    Phantom,
    /// Its octets are others than those written.
    Corrupted,
    /// Something was read before it was written.
    Early,
    /// What was written after something was known to be there stands before it.
    RealTime,
    /// No order of the operations explains what was read.
    NotLinearizable,
    /// Two reads of a list, neither of which begins the other.
    IncompatibleOrder,
    /// Operations each of which comes before the next, in a circle.
    Cycle,
    /// A check that gave up.
    Undecided,
}

/// What a checker found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    described: Vec<(Fault, String)>,
    pub(crate) count: u64,
}

impl Findings {
    pub(crate) fn add(&mut self, fault: Fault, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.described.len() < DESCRIBED_MAX {
            self.described.push((fault, what()));
        }
    }

    #[cfg(test)]
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.described.iter().map(|(fault, _)| *fault).collect();
        faults.sort_unstable();
        faults.dedup();
        faults
    }
}
