//! What a history must be, whatever was done to those who made it: checkers that see nothing but what
//! was written, when, and what was read. Each is tried with mistakes that it must notice.

pub(crate) mod append;
pub(crate) mod delivery;
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

impl Fault {
    const fn name(self) -> &'static str {
        match self {
            Self::Disagreement => "disagreement",
            Self::NotContiguous => "not contiguous",
            Self::Epoch => "epochs go back",
            Self::Duplicate => "duplicate",
            Self::WriterOrder => "order of a writer",
            Self::WriterGap => "gap of a writer",
            Self::Lost => "lost",
            Self::Phantom => "phantom",
            Self::Corrupted => "corrupted",
            Self::Early => "read before written",
            Self::RealTime => "real-time order",
            Self::NotLinearizable => "not linearizable",
            Self::IncompatibleOrder => "incompatible order",
            Self::Cycle => "cycle",
            Self::Undecided => "undecided",
        }
    }
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

    /// Takes over what another check found.
    pub(crate) fn add_all(&mut self, other: Self) {
        self.count += other.count;
        let room = DESCRIBED_MAX - self.described.len();
        self.described.extend(other.described.into_iter().take(room));
    }

    /// The same, with the reader in whose log it was found.
    pub(crate) fn of_reader(mut self, reader: u64) -> Self {
        self.described.iter_mut().for_each(|(_, what)| *what = format!("process {reader}: {what}"));
        self
    }

    /// The first of them, described.
    pub(crate) fn described(&self) -> impl Iterator<Item = String> {
        self.described.iter().map(|(fault, what)| format!("{what} ({})", fault.name()))
    }

    #[cfg(test)]
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.described.iter().map(|(fault, _)| *fault).collect();
        faults.sort_unstable();
        faults.dedup();
        faults
    }
}
