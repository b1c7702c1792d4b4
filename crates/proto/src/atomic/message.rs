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
    /// State that stands for all entries up to a position.
    pub state: Option<(u64, Arc<[u8]>)>,
    /// What is kept of the entries after, in order.
    pub entries: Vec<Delivered<B>>,
    /// All that is kept up to this position is in this part and those before.
    pub through: u64,
    /// Where the sender is.
    pub position: u64,
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
    Fetch {
        /// Who asks.
        from: MemberId,
        /// What comes after this position.
        after: u64,
    },
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
