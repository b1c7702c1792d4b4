//! What members and voters of a group tell one another.

use std::sync::Arc;

use crate::atomic::view::Storage;
use crate::atomic::view::{Decision, Ranks, Report, View};
use crate::atomic::{Delivered, MemberId, VoterId};

/// What one member has and promises. Rows of an epoch only grow: any that are lost are made up for by the
/// next, and old ones change nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// Whose.
    pub from: MemberId,
    /// Of which group.
    pub instance: u64,
    /// In which epoch.
    pub epoch: u64,
    /// Its Lamport clock: whatever it sends after its first [`Self::sent`] entries has a larger stamp.
    pub clock: u64,
    /// Entries that it has sent.
    pub sent: u64,
    /// First entries of each lane that it vouches for: received, or durable where that is asked for.
    pub acked: Vec<u64>,
    /// Entries that it has delivered, of all epochs.
    pub position: u64,
    /// Of all that it has delivered in this epoch.
    pub digest: u64,
    /// Of all that it had delivered when the epoch before ended; 0 of who was not there.
    pub closing: u64,
    /// Whom it hears.
    pub hears: Ranks,
    /// Whether it has everything that came before the epoch.
    pub caught_up: bool,
    /// Its readers take no more, so that it delivers nothing.
    pub is_held: bool,
}

/// Somebody wishes to join.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Join {
    /// Who.
    pub from: MemberId,
    /// Whether it may be taken in now: it needs at most a moment to catch up.
    pub ready: bool,
    /// Whether it needs nothing of what came before.
    pub caught_up: bool,
    /// Whether it would make a group if there were none.
    pub founds: bool,
    /// What it keeps on its disk.
    pub storage: Storage,
    /// Members whose lanes reach it.
    pub hears: Vec<MemberId>,
    /// As whom its process has spoken before, by what is on its disk, the last of many: none of them lives.
    pub before: Vec<MemberId>,
    /// What must be equal in all members: QoS that decides what is delivered and kept.
    pub config: u64,
}

/// A part of what was agreed before somebody joined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer<B> {
    /// Who sends it.
    pub from: MemberId,
    /// Of which group.
    pub instance: u64,
    /// What was asked for: everything after this position.
    pub after: u64,
    /// A part of the state that stands for all entries up to a position.
    pub state: Option<StatePart>,
    /// What is kept of the entries after, in order.
    pub entries: Vec<Delivered<B>>,
    /// All that is kept up to this position is in this part and those before.
    pub through: u64,
    /// Where the sender is.
    pub position: u64,
    /// So many samples up to [`Self::through`] are not kept, after what the state stands for.
    pub lost: u64,
}

/// A part of state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatePart {
    /// It stands for all entries up to this position.
    pub through: u64,
    /// So many octets it has.
    pub total: u64,
    /// Where this part begins.
    pub offset: u64,
    /// The part.
    pub octets: Arc<[u8]>,
}

/// Somebody asks for what was agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fetch {
    /// Who asks.
    pub from: MemberId,
    /// It needs what comes after this position.
    pub after: u64,
    /// And nothing after this one.
    pub until: u64,
    /// It has a part of the state that stands for everything up to this position; 0: none.
    pub state: u64,
    /// So many octets of it.
    pub offset: u64,
    /// So many octets are to come at once.
    pub octets_max: u32,
}

/// A message of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message<B> {
    /// What a member has.
    Row(Row),
    /// This epoch is to end: stop and report.
    Wedge {
        /// Of which group.
        instance: u64,
        /// Which epoch.
        epoch: u64,
    },
    /// What a member has at the end of an epoch.
    Report {
        /// Of which group.
        instance: u64,
        /// What it has.
        report: Report,
    },
    /// How an epoch ended. Also of old ones, to those who have missed it.
    NewView(Arc<Decision>),
    /// Somebody has an epoch and misses how it ended, or knows none at all (0).
    AskView {
        /// Who asks.
        from: MemberId,
        /// Which epoch it is in.
        epoch: u64,
    },
    /// The epoch that goes on, to who asks and would join.
    Current(Arc<View>),
    /// Somebody wishes to join.
    Join(Join),
    /// Somebody asks for what was agreed.
    Fetch(Fetch),
    /// A part of what was agreed.
    Transfer(Transfer<B>),
    /// Voters agree.
    Decider {
        /// Of which group; 0 where the voters are fixed.
        instance: u64,
        /// Since which epoch they vote; 0 where they are fixed.
        since: u64,
        /// Who sends it.
        from: VoterId,
        /// For the decider.
        octets: Vec<u8>,
    },
}
