//! Agreement on epochs: what follows each of them is decided once, and all voters learn the same.
//!
//! A group has a small fixed set of voters. Each has an [`EpochDecider`]; members propose values to them,
//! each for the epoch (the *base*) that it would end. For each base at most one value is ever decided, the
//! same one at all voters, however messages are lost, delayed, doubled or reordered and whoever crashes.
//! Decisions are reported in the order of their bases. Of rival proposals the first in the log that names the
//! current base wins, and the others count for nothing (compare-and-swap).
//!
//! [`Single`] is for one voter, [`OmniPaxos`] for 2 to 7: a log replicated by the crate of this name, with
//! what that expects of its connections and its disk around it. [`open`] makes the one that is needed.
//!
//! **The driver** carries messages as well as it can, calls [`EpochDecider::tick`] at
//! [`EpochDecider::next_deadline`], and keeps the state of the voter: it appends each [`Record`] to a file
//! (or replaces the file, where [`Record::whole`] says so), makes it durable, and says so by
//! [`EpochDecider::persisted`]. Messages that rest on a record are handed out only after that. When the voter
//! starts again it gets the records back, in their order; the last ones may be missing if they were never
//! said to be durable. A voter that has lost others must not come back under its identity: it may already
//! have promised or accepted what it no longer knows of.
//!
//! **At rest nothing happens.** A voter that proposes, or hears from one that does, is active for a while;
//! then it has no deadline and sends nothing. What was decided in its absence it learns when it is next
//! active: by a proposal, or by [`EpochDecider::wake`].

mod activity;
mod decided;
mod links;
mod message;
mod omni;
mod record;
mod single;
mod store;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

pub use omni::OmniPaxos;
pub use single::Single;

use crate::malformed::Malformed;
use crate::time::Instant;
use crate::tuning::decider as tuning;

/// A value that is proposed has at most so many octets.
pub const VALUE_BYTES_MAX: usize = tuning::VALUE_BYTES_MAX;
/// Voters of a group at most.
pub const VOTERS_MAX: usize = tuning::VOTERS_MAX;

/// A voter: the same octets for as long as it has the same durable state, and never those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VoterId(pub [u8; 16]);

impl fmt::Display for VoterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The epoch that it follows.
    pub base: u64,
    /// The value, as it was proposed.
    pub value: Arc<[u8]>,
}

/// What a voter must have on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// One more than that of the record before.
    pub number: u64,
    /// It stands for all that has happened: those before it are no longer needed.
    pub whole: bool,
    /// The state, or what has changed of it. It takes effect as a whole or not at all: the driver detects
    /// records that were written in part.
    pub octets: Vec<u8>,
}

/// Who votes in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Electorate {
    own: VoterId,
    /// In ascending order.
    voters: Vec<VoterId>,
    first_base: u64,
}

impl Electorate {
    /// This voter, all voters (in any order, this one among them), and the base of the first decision. All
    /// voters must name the same voters and the same base.
    ///
    /// # Errors
    /// When there are none or more than [`VOTERS_MAX`], one twice, or this one is not among them.
    pub fn new(own: VoterId, voters: &[VoterId], first_base: u64) -> Result<Self, ElectorateError> {
        let mut voters = voters.to_vec();
        voters.sort_unstable();
        if voters.is_empty() || voters.len() > VOTERS_MAX {
            return Err(ElectorateError::Count(voters.len()));
        }
        if voters.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ElectorateError::Twice);
        }
        if !voters.contains(&own) {
            return Err(ElectorateError::Stranger(own));
        }
        Ok(Self { own, voters, first_base })
    }

    /// This voter.
    #[must_use]
    pub const fn own(&self) -> VoterId {
        self.own
    }

    /// All voters, in ascending order.
    #[must_use]
    pub fn voters(&self) -> &[VoterId] {
        &self.voters
    }
}

/// Why voters cannot be those of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ElectorateError {
    /// None, or too many.
    #[error("a group has 1 to {VOTERS_MAX} voters, not {0}")]
    Count(usize),
    /// One voter is named twice.
    #[error("a voter is named twice")]
    Twice,
    /// The own identity is not among the voters.
    #[error("{0} is not one of the voters")]
    Stranger(VoterId),
}

/// Why a value was not proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProposeError {
    /// It is too long.
    #[error("a value has at most {VALUE_BYTES_MAX} octets, not {0}")]
    TooLong(usize),
    /// What follows this base is decided, and known here.
    #[error("what follows epoch {0} is already decided")]
    Decided(u64),
}

/// Why the state of a voter could not be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RestoreError {
    /// The first record does not stand for all before it.
    #[error("the records do not begin with a whole one")]
    NoBeginning,
    /// A record is not one.
    #[error("record {0} is damaged: {1}")]
    Damaged(usize, Malformed),
    /// A record does not follow from those before: one is missing, or they are of different files.
    #[error("record {0} does not follow from those before")]
    Gap(usize),
    /// The records are of another voter, or of another set of voters.
    #[error("the records are of other voters")]
    OtherVoters,
}

/// One voter. Times are of the driver's monotonic clock and never go back.
pub trait EpochDecider: fmt::Debug {
    /// Proposes what is to follow `base`. It is repeated until something is decided for that base; another
    /// proposal takes its place. A base that this voter has not reached yet waits until it does.
    ///
    /// # Errors
    /// When the value is too long, or something was decided for that base.
    fn propose(&mut self, now: Instant, base: u64, value: &[u8]) -> Result<(), ProposeError>;

    /// Makes sure that what others have decided is learnt: somebody speaks of an epoch that is unknown here.
    fn wake(&mut self, now: Instant);

    /// A message of another voter, whose identity the driver vouches for.
    ///
    /// # Errors
    /// When it is no message, or could not come from a voter that works as it should. It is dropped.
    fn on_message(&mut self, now: Instant, from: VoterId, octets: &[u8]) -> Result<(), Malformed>;

    /// Time has passed. May be called early and late.
    fn tick(&mut self, now: Instant);

    /// When [`Self::tick`] is to be called next; not at all while nothing is to be decided.
    fn next_deadline(&self) -> Option<Instant>;

    /// What has to be made durable next.
    fn take_record(&mut self) -> Option<Record>;

    /// The records up to this number are durable.
    fn persisted(&mut self, number: u64);

    /// Moves to `out` the messages that may be sent, in their order for each voter.
    fn take_messages(&mut self, out: &mut Vec<(VoterId, Vec<u8>)>);

    /// The next decision. They come in the order of their bases, without gaps, but for what was decided so
    /// long ago that nobody keeps it. Those that are still kept come again after a restart.
    fn poll_decided(&mut self) -> Option<Decision>;

    /// The base whose decision comes next, as far as this voter knows.
    fn base(&self) -> u64;

    /// Who leads, as far as this voter knows.
    fn leader(&self) -> Option<VoterId>;

    /// Whether the voter has stopped for good because its own state contradicts itself. It says nothing more.
    fn has_failed(&self) -> bool;

    /// The highest ballot that this voter has promised to heed, and the highest in which it has accepted
    /// anything; each as number and voter. They never go back. Zero where there is no ballot.
    fn ballots(&self) -> [(u32, u64); 2];
}

/// The decider of a voter, from the records it has written: none when it is new.
///
/// # Errors
/// When the records are not those of this voter, or one is missing or damaged.
pub fn open<'a>(
    now: Instant,
    electorate: &Electorate,
    records: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Box<dyn EpochDecider + Send>, RestoreError> {
    if electorate.voters.len() == 1 {
        Ok(Box::new(Single::open(electorate, records)?))
    } else {
        Ok(Box::new(OmniPaxos::open(now, electorate, records)?))
    }
}
