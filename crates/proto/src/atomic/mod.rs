//! ATOMIC topics: every subscriber has the same samples in the same order, or none has them.
//!
//! Participants with an ATOMIC endpoint of a topic are the members of its group. Each sends what it
//! writes on a lane of its own, a reliable stream in order (`lane`). Members multicast what they have
//! ([`Row`]); what all have is delivered in the order of Lamport stamps (`epoch`). Nobody leads, and nothing
//! is agreed upon, until a member comes, goes or is lost: then all stop, say what they have, and agree once
//! on how the epoch ends and who goes on ([`coordinator`], `decider`, [`view`]).
//!
//! Everything here is a state machine: messages, entries and time go in, [`Action`]s come out.

pub mod codec;
pub mod coordinator;
pub mod decider;
pub mod entry;
mod epoch;
pub mod group;
mod history;
mod lane;
mod lost;
pub mod member;
pub mod message;
#[cfg(feature = "mistakes")]
pub mod mistake;
pub mod storage;
#[cfg(test)]
mod tests;
pub mod view;

use std::fmt;
use std::sync::Arc;

pub use crate::limits::{GroupLimits, SnapshotLimits};
pub use coordinator::Coordinator;
pub use decider::VoterId;
pub use group::Group;
pub use history::HistoryKey;
pub use member::{Config, Member, Phase, Refused};
pub use message::{Message, Row};
pub use view::{Decision, Storage, View};

use crate::guid::GuidPrefix;
use crate::time::Duration;

/// Members of a group at most: sets of them are bits of one word.
pub const MEMBERS_MAX: usize = 32;

/// Who has stopped for so long is suspended: its group does not agree on how to go on.
pub const SUSPENDED_AFTER: Duration = crate::tuning::atomic::SUSPENDED_AFTER;

/// One incarnation of a participant in a group. A participant that starts again, or that was excluded and
/// joins again, is another member: nobody takes what it has now for what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// Which participant.
    pub prefix: GuidPrefix,
    /// Which of its incarnations: random when it starts, and one more each time it joins again.
    pub nonce: u64,
}

impl MemberId {
    /// The same participant when it joins again.
    #[must_use]
    pub const fn next_incarnation(self) -> Self {
        Self { prefix: self.prefix, nonce: self.nonce.wrapping_add(1) }
    }

    /// Whether this is the last incarnation of its participant among these.
    #[must_use]
    pub(crate) fn is_last<'a>(self, all: impl IntoIterator<Item = &'a Self>) -> bool {
        !all.into_iter().any(|it| it.prefix == self.prefix && it.nonce > self.nonce)
    }

    /// This member as a voter, where the members vote.
    #[must_use]
    pub fn voter(self) -> VoterId {
        let mut octets = [0; 16];
        octets[..12].copy_from_slice(&self.prefix.0);
        octets[12..].copy_from_slice(&(self.nonce as u32).to_be_bytes());
        VoterId(octets)
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:x}", self.prefix, self.nonce)
    }
}

/// What is ordered.
pub trait Body: Clone {
    /// What it takes of windows and histories, in octets.
    fn octets(&self) -> usize;
    /// Of what it is and contains: members compare them.
    fn digest(&self) -> u64;
    /// Where it belongs in the agreed history; `None` of what is not kept.
    fn history_key(&self) -> Option<HistoryKey>;
    /// How many of its key are kept, 0 for all.
    fn history_depth(&self) -> u32;
    /// Whether somebody who does not get it misses something.
    fn is_sample(&self) -> bool {
        true
    }
}

/// Where an entry stands on its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryHeader {
    /// Of which group.
    pub instance: u64,
    /// Of which epoch.
    pub epoch: u64,
    /// Its number on the lane in this epoch, from 1.
    pub index: u64,
    /// Lamport stamp.
    pub stamp: u64,
}

/// An entry in the agreed order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delivered<B> {
    /// Its place in the order of the group, from 1, without gaps.
    pub position: u64,
    /// In which epoch it was delivered.
    pub epoch: u64,
    /// Whose lane it came on.
    pub from: MemberId,
    /// What it is.
    pub body: B,
}

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// All members, those who would be, and all voters.
    Group,
    /// One of them.
    Member(MemberId),
    /// One of the voters.
    Voter(VoterId),
}

/// What a member asks of its driver, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action<B> {
    /// Send a message; it may be lost, come twice or late.
    Send(Destination, Message<B>),
    /// Send an entry on the lane of this member, after those before.
    SendEntry(EntryHeader, B),
    /// Give this to the readers of this participant. What is its own is resolved by it.
    Deliver(Delivered<B>),
    /// State that stands for all positions up to this one, in place of what was delivered before.
    State(u64, Arc<[u8]>),
    /// So many samples were delivered elsewhere while this member was none, and are not known here.
    Missed(u64),
    /// So many of the first unresolved entries of this member were delivered to the others.
    Settled(u64),
    /// It cannot be told any more whether so many of them were.
    Unknown(u64),
    /// Nobody needs the first entries of the lane any more, so many of those sent.
    Release(u64),
    /// Make this durable, not before the changes of lower numbers, then say so.
    Store(u64, storage::Change<B>),
    /// Something that the application may see has changed.
    Status(Status),
}

/// What a member tells its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It is a member of a new epoch.
    Installed {
        /// Its number.
        epoch: u64,
        /// How many members it has.
        members: usize,
    },
    /// The others go on without it; it joins again.
    Evicted,
    /// The group cannot agree on how to go on: no majority of voters is reached.
    Suspended,
    /// What was delivered here is not what counts: its group has ended for another, in whose order nothing
    /// of it stands.
    DataLoss,
    /// It cannot be told any more whether the last entries of this member were delivered.
    OutcomeUnknown,
    /// What this member has to keep on its disk cannot be written: it leaves the group.
    StorageFailed,
    /// This member has something else at a position than most others, and has left the group.
    Diverged,
    /// Another participant has the topic and is of another group, because other voters are set for it.
    Stranger,
}
