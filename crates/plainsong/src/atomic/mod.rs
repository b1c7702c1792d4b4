//! Topics with CONSISTENCY ATOMIC: all readers have the same samples in the same order, or none has them.
//!
//! The participants with a writer or reader of such a topic, in one partition, are the members of its group
//! ([`DomainParticipant::atomic_groups`](crate::participant::DomainParticipant::atomic_groups)). What a
//! member writes it sends to all members at once; each gives it to its readers when all members have it, in
//! an order on which they agree without asking anybody. Readers with EVENTUAL consistency, of any product,
//! get it after that.
//!
//! A member that fails is excluded: the others stop, agree on what of the samples on their way counts, and go
//! on. That takes a majority of the voters: of two members the first votes, of three or four the first three,
//! of more the first five; or those vote that [`Config::voters`](crate::config::Config::voters) names, among
//! them perhaps a [witness](crate::witness). Without it nothing is delivered, and writing waits.

mod dropped;
mod lane;
mod local;
mod name;
mod observed;
mod observer;
mod opening;
mod slot;
mod storage;
mod voter;
mod voting;

use std::fmt;

use plainsong_proto::atomic;
use plainsong_proto::guid::Guid;

/// What happened to a member of a group.
pub use plainsong_proto::atomic::Status as AtomicEvent;

pub use dropped::AtomicDrop;
pub use observed::{ObservedGroup, ObservedMember};
pub use voter::AtomicVoter;

pub(crate) use local::GivenState;
pub(crate) use name::Name;
pub(crate) use observer::Observer;
pub(crate) use opening::{Opening, keeps};
pub(crate) use slot::{Change, GroupSlot, LocalReader, NotWritten, OnAtomicEvent};
pub(crate) use storage::Storage;
pub(crate) use voter::announce_voter;
pub(crate) use voting::Voting;

pub use crate::base::store_error::StoreError;

/// What a participant is in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum MemberPhase {
    /// It is no member, and asks to be one.
    Joining,
    /// It takes part.
    Active,
    /// Somebody comes, goes or is lost: it waits to hear who goes on.
    Changing,
    /// It has left, or had something else than the others.
    Gone,
}

/// One member of a group, as another sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AtomicMember {
    /// The participant.
    pub participant: Guid,
    /// The last position that it has delivered, as far as is known.
    pub position: u64,
    /// It is not heard, or receives nothing: it is about to be excluded.
    pub is_suspected: bool,
    /// A reader of it is full, or a reliable reader with EVENTUAL consistency keeps a writer of it waiting:
    /// it delivers nothing, and who writes waits for it.
    pub is_held: bool,
}

/// The group of an ATOMIC topic, as one of its members sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AtomicGroup {
    /// The topic.
    pub topic: String,
    /// The partition, empty for the default one.
    pub partition: String,
    /// What this participant is in it.
    pub phase: MemberPhase,
    /// The number of the epoch, which grows whenever somebody comes, goes or is lost; 0 before the first.
    pub epoch: u64,
    /// All members, this participant among them, in the order in which they joined.
    pub members: Vec<AtomicMember>,
    /// The last position that was delivered here.
    pub position: u64,
    /// Samples written here that not all members have delivered.
    pub in_window: usize,
    /// Samples written here that are not delivered here.
    pub unresolved: usize,
    /// Samples delivered here that wait for room: in a reader, or in a writer for readers with EVENTUAL
    /// consistency. The longest such queue.
    pub waiting: usize,
    /// Samples that this participant keeps for those who join later.
    pub history: usize,
    /// And octets of the state that takes the place of those before: see [`replicated`](crate::replicated).
    pub history_state_bytes: usize,
    /// No majority of voters is reached: nothing is delivered until one is.
    pub is_suspended: bool,
    /// What happened to this member.
    pub counts: AtomicCounts,
    /// What this member dropped, and why.
    pub drops: Vec<(AtomicDrop, u64)>,
    /// Who votes; nobody of a name where the members do.
    pub voters: Vec<String>,
    /// As which of them this participant votes.
    pub voter: Option<String>,
    /// Those who vote now, and whether they are heard.
    pub votes: Vec<AtomicVoter>,
    /// Why this participant keeps nothing on its disk any more, and votes no more.
    pub store_error: Option<String>,
    /// Participants with the topic that are not of this group because other voters are set for them.
    pub strangers: Vec<AtomicStranger>,
}

/// A participant with the topic of a group for which other voters are set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AtomicStranger {
    /// The participant.
    pub participant: Guid,
    /// Its voters, separated by commas; empty where its members vote.
    pub voters: String,
}

/// Why it is one, and what to do.
impl fmt::Display for AtomicStranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let voters = if self.voters.is_empty() { "none, so that the members vote" } else { &self.voters };
        write!(
            f,
            "is not of this group, since its voters are others: {voters}; set PLAINSONG_VOTERS alike for all processes"
        )
    }
}

/// How often something happened to a member of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AtomicCounts {
    /// The others went on without it, and it joined again.
    pub evicted: u64,
    /// No majority of voters was reached for two seconds.
    pub suspended: u64,
    /// Its group ended for another, in whose order nothing stands of what was delivered here.
    pub data_loss: u64,
    /// It could not be told any more whether the last samples written here were delivered.
    pub outcome_unknown: u64,
    /// Samples that were delivered to others while this member was excluded, and are not known here. Readers
    /// count them in SAMPLE_LOST.
    pub missed: u64,
    /// It had something else at a position than most others, and left the group.
    pub diverged: u64,
}

impl From<atomic::Phase> for MemberPhase {
    fn from(phase: atomic::Phase) -> Self {
        match phase {
            atomic::Phase::Joining => Self::Joining,
            atomic::Phase::Active => Self::Active,
            atomic::Phase::Frozen => Self::Changing,
            atomic::Phase::Gone => Self::Gone,
        }
    }
}

/// One line, and one for each member.
impl fmt::Display for AtomicGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.phase {
            MemberPhase::Joining => "joining",
            MemberPhase::Active => "active",
            MemberPhase::Changing => "changing",
            MemberPhase::Gone => "gone",
        };
        write!(f, "{} epoch {} position {} {phase}", self.topic, self.epoch, self.position)?;
        if self.is_suspended {
            write!(f, ", suspended: {}", voter::tally(&self.votes))?;
        }
        if let Some(error) = &self.store_error {
            write!(f, ", votes no more: {error}")?;
        }
        let newest = self.members.iter().map(|it| it.position).max().unwrap_or(0);
        for member in &self.members {
            let lag = newest - member.position;
            write!(f, "\n  {} position {} behind by {lag}", member.participant, member.position)?;
            if member.is_suspected {
                f.write_str(", suspected")?;
            }
            if member.is_held {
                f.write_str(", takes nothing")?;
            }
        }
        let AtomicCounts { evicted, suspended, data_loss, outcome_unknown, missed, diverged } = self.counts;
        let counts = [
            ("excluded", evicted),
            ("suspended", suspended),
            ("groups lost", data_loss),
            ("outcomes unknown", outcome_unknown),
            ("samples missed", missed),
            ("diverged", diverged),
        ];
        for (what, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "\n  {what}: {count}")?;
        }
        for (why, count) in &self.drops {
            write!(f, "\n  dropped: {count}, {why}")?;
        }
        for stranger in &self.strangers {
            write!(f, "\n  {} {stranger}", stranger.participant)?;
        }
        Ok(())
    }
}
