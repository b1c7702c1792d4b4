//! Mistakes that only a member itself can make: the simulator must notice them.

/// What a member does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// Its clock does not pass the stamps that it receives.
    KeepClock,
    /// What it sent after the cut of an epoch is forgotten.
    DropTail,
}
