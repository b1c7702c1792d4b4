//! Mistakes that only a member itself can make: the simulator must notice them.

/// What a member does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// Its clock does not pass the stamps that it receives.
    KeepClock,
    /// What it sent after the cut of an epoch is forgotten.
    DropTail,
    /// What does not count is removed from the disk before the disk says that the epoch is over.
    DropEarly,
    /// It says that it has caught up before that is on its disk.
    CatchUpUnsynced,
    /// It wishes to join before its name is on its disk.
    JoinUnclaimed,
}
