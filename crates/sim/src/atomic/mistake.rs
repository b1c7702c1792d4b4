//! Deliberate mistakes: a simulator that notices none of them proves nothing.

use std::sync::Arc;

use plainsong_proto::atomic::{Decision, EntryHeader, Message};

use super::entry::Entry;
use super::world::World;

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A process that starts again is the member that it was.
    SameNonce,
    /// What is not on a disk is said to be.
    ForgetFsync,
    /// Epochs are decided more than once.
    DecideTwice,
}

impl World {
    /// A member or voter is told something else than was said.
    pub(super) fn misheard(&mut self, _to: usize, message: Message<Entry>) -> Message<Entry> {
        message
    }

    /// Something else is put to the vote than the core proposes.
    pub(super) fn misproposed(&mut self, _index: usize, decision: Arc<Decision>) -> Arc<Decision> {
        decision
    }

    /// Who has stopped vouches for what arrives all the same.
    pub(super) fn ack_after_freeze(&mut self, _index: usize, _header: EntryHeader) {}
}
