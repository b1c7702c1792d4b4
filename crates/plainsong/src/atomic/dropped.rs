//! What a member of a group drops, and why.

use std::fmt;

/// Why a member of a group dropped something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum AtomicDrop {
    /// A message or sample of another member that does not decode.
    Undecodable,
    /// A message or sample that says to be from somebody else than who sent it.
    Foreign,
    /// A sample of which a part did not come.
    Incomplete,
    /// A message or sample that the endpoints of the group refuse to send.
    Unsent,
    /// A decision of the voters that does not decode.
    UndecodableDecision,
}

impl AtomicDrop {
    const ALL: [Self; 5] =
        [Self::Undecodable, Self::Foreign, Self::Incomplete, Self::Unsent, Self::UndecodableDecision];
}

/// How often each happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dropped([u64; AtomicDrop::ALL.len()]);

impl Dropped {
    pub(super) fn count(&mut self, why: AtomicDrop) {
        self.0[why as usize] += 1;
    }

    /// Those that happened, with the decisions that the voter here could not read.
    pub(super) fn list(mut self, undecodable_decisions: u64) -> Vec<(AtomicDrop, u64)> {
        self.0[AtomicDrop::UndecodableDecision as usize] += undecodable_decisions;
        AtomicDrop::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0).collect()
    }
}

impl fmt::Display for AtomicDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undecodable => "messages or samples that do not decode",
            Self::Foreign => "messages or samples of others than who sent them",
            Self::Incomplete => "samples of which a part is missing",
            Self::Unsent => "messages or samples that could not be sent",
            Self::UndecodableDecision => "decisions of the voters that do not decode",
        })
    }
}
