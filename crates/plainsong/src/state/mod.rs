//! The state of a participant as data: its entities, whom they match, whom they do not and why, how samples
//! reach each reader, and what was counted.
//! [`DomainParticipant::state`](crate::participant::DomainParticipant::state) takes a snapshot; `Display`
//! prints it for people; with the feature `serde` it can be written and read as JSON or otherwise.
//!
//! A snapshot is bounded ([`StateLimits`]): of each list it says how much was left out. Its parts are taken
//! one after the other, under one lock at a time, so they may be of slightly different moments.

mod pairs;
mod print;
mod take;

use std::net::IpAddr;

pub use plainsong_proto::filter::ContentFilter;
use plainsong_proto::guid::Guid;
use plainsong_proto::locator::Locator;
use plainsong_proto::qos::QosSet;
use plainsong_proto::stats::DropReason;
use plainsong_proto::time::{Duration, Time};

use crate::domain::InterfaceReport;
pub use pairs::{DiscoveredPair, DiscoveryProgress};
pub use plainsong_proto::discovery::{
    Difference, Judgement, MemoryRefusal, Mismatch, MismatchReason, Party, ProcessData, UsedTransport,
};

/// How long the lists of a snapshot may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateLimits {
    /// Topics, publishers, subscribers, writers and readers of the participant, each.
    pub entities: usize,
    /// Other participants, and their endpoints.
    pub remote: usize,
    /// Readers that one writer matches, or writers that one reader matches.
    pub matches: usize,
    /// Pairs that do not match.
    pub mismatches: usize,
    /// Whether endpoints of other participants by which the groups of ATOMIC topics talk are among them.
    pub internal_endpoints: bool,
}

impl Default for StateLimits {
    fn default() -> Self {
        Self { entities: 1_000, remote: 1_000, matches: 100, mismatches: 1_000, internal_endpoints: false }
    }
}

/// A list of limited length.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bounded<T> {
    /// The first of them.
    pub items: Vec<T>,
    /// So many more there are.
    pub left_out: usize,
}

/// A participant at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ParticipantState {
    /// When the snapshot was taken.
    pub time: Time,
    /// Its GUID.
    pub guid: Guid,
    /// Its name; may be empty.
    pub name: String,
    /// Its process.
    pub process: ProcessData,
    /// Its domain.
    pub domain_id: u16,
    /// It was enabled.
    pub is_enabled: bool,
    /// Its QoS.
    pub qos: QosSet,
    /// The interfaces of this host, as this process uses them.
    pub interfaces: Vec<InterfaceReport>,
    /// Its topics.
    pub topics: Bounded<TopicState>,
    /// Its publishers.
    pub publishers: Bounded<GroupState>,
    /// Its subscribers.
    pub subscribers: Bounded<GroupState>,
    /// Its writers.
    pub writers: Bounded<WriterState>,
    /// Its readers.
    pub readers: Bounded<ReaderState>,
    /// The other participants that are known.
    pub remote_participants: Bounded<RemoteParticipantState>,
    /// The writers and readers of these.
    pub remote_endpoints: Bounded<RemoteEndpointState>,
    /// Pairs of endpoints of one topic that do not match, and why.
    pub mismatches: Bounded<Mismatch>,
    /// What discovery dropped.
    pub discovery_drops: Vec<DropCount>,
    /// What was dropped before it reached an endpoint, for all participants of this process in the domain.
    pub domain_drops: Vec<DropCount>,
    /// Long samples that were copied although memory is shared, sent or received: a receiver had its share of
    /// that memory (`docs/shared-memory.md`). For all participants of this process in the domain.
    pub copied_samples: u64,
}

/// How often something was dropped for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DropCount {
    /// Why.
    pub reason: DropReason,
    /// How often.
    pub count: u64,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TopicState {
    /// Its name.
    pub name: String,
    /// The registered name of its type.
    pub type_name: String,
    /// Its QoS.
    pub qos: QosSet,
    /// INCONSISTENT_TOPIC: so many others have the name with another type.
    pub inconsistent: i32,
}

/// A publisher or subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GroupState {
    /// Its GUID.
    pub guid: Guid,
    /// It was enabled.
    pub is_enabled: bool,
    /// Its QoS.
    pub qos: QosSet,
}

/// Something in the QoS of an endpoint that has less effect than the standard promises.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UnhonouredPolicy {
    /// Name of the policy.
    pub policy: String,
    /// What is done, what is not, and what to do about it.
    pub what: String,
}

/// A writer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WriterState {
    /// Its GUID.
    pub guid: Guid,
    /// Its topic.
    pub topic: String,
    /// The registered name of its type.
    pub type_name: String,
    /// Its publisher.
    pub publisher: Guid,
    /// It was enabled.
    pub is_enabled: bool,
    /// Its QoS, with what publisher and topic decide.
    pub qos: QosSet,
    /// What of it has less effect than the standard promises.
    pub unhonoured: Vec<UnhonouredPolicy>,
    /// How the matched readers are reached.
    pub routes: Vec<RouteState>,
    /// So many more readers match than `routes` names.
    pub readers_left_out: usize,
    /// So many of the readers known now do not match because of their QoS.
    pub incompatible_now: usize,
    /// What it counted.
    pub counters: WriterCounters,
    /// What it dropped.
    pub drops: Vec<DropCount>,
}

/// The way to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RouteKind {
    /// By memory shared with its process, or of its own.
    Memory,
    /// By unicast within this host.
    SameHost,
    /// To another host.
    Remote,
}

/// Where samples of a writer go, and which readers they reach there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RouteState {
    /// The way.
    pub kind: RouteKind,
    /// Where datagrams are sent.
    pub destinations: Vec<Locator>,
    /// The readers there.
    pub readers: Vec<MatchedReaderState>,
}

/// What a writer knows of a matched reader.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MatchedReaderState {
    /// The reader.
    pub guid: Guid,
    /// It acknowledges what it has.
    pub is_reliable: bool,
    /// So many samples are not acknowledged, those of the history for a late joiner among them.
    pub behind: u64,
    /// How long it has been asked for an answer and given none; `None`: it answers, or need not.
    pub silent_for: Option<Duration>,
    /// Nothing waits for it until it answers.
    pub is_left_out: bool,
}

/// What a writer counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WriterCounters {
    /// Samples and changes of instances that were written.
    pub written: u64,
    /// Octets of the payloads of these.
    pub written_bytes: u64,
    /// Of these, those in the history now.
    pub in_history: usize,
    /// Datagrams composed, repetitions and heartbeats included, each for one destination or more.
    pub datagrams: u64,
    /// Of these, those with what single readers had missed, or with the history for late joiners.
    pub resent_datagrams: u64,
    /// Readers that were matched.
    pub matched: i32,
    /// OFFERED_INCOMPATIBLE_QOS: in all, also readers that have gone.
    pub incompatible: i32,
    /// OFFERED_DEADLINE_MISSED.
    pub deadlines_missed: i32,
    /// LIVELINESS_LOST.
    pub liveliness_lost: i32,
}

/// A reader.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ReaderState {
    /// Its GUID.
    pub guid: Guid,
    /// Its topic.
    pub topic: String,
    /// The registered name of its type.
    pub type_name: String,
    /// Its subscriber.
    pub subscriber: Guid,
    /// It was enabled.
    pub is_enabled: bool,
    /// Its QoS, with what subscriber and topic decide.
    pub qos: QosSet,
    /// What of it has less effect than the standard promises.
    pub unhonoured: Vec<UnhonouredPolicy>,
    /// The matched writers.
    pub writers: Bounded<MatchedWriterState>,
    /// So many of the writers known now do not match because of their QoS.
    pub incompatible_now: usize,
    /// What it counted.
    pub counters: ReaderCounters,
    /// What it dropped.
    pub drops: Vec<DropCount>,
}

/// What a reader knows of a matched writer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MatchedWriterState {
    /// The writer.
    pub guid: Guid,
    /// It repeats what is lost.
    pub is_reliable: bool,
    /// Where acknowledgements go.
    pub destinations: Vec<Locator>,
    /// Every sample up to this number is received or known to be gone; 0 before the first.
    pub received: u64,
    /// So many later samples wait for those before them, or for room.
    pub waiting: usize,
    /// They wait for room: RESOURCE_LIMITS have none until samples are taken, or under KEEP_LAST read.
    pub is_refused: bool,
}

/// What a reader counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ReaderCounters {
    /// Samples with data that it was given.
    pub received: u64,
    /// Octets of their payloads.
    pub received_bytes: u64,
    /// Of these samples, those that it holds now.
    pub held: usize,
    /// SAMPLE_LOST.
    pub lost: i32,
    /// SAMPLE_REJECTED.
    pub rejected: i32,
    /// Datagrams composed: acknowledgements and requests.
    pub datagrams: u64,
    /// Writers that were matched.
    pub matched: i32,
    /// Matched writers that are alive now.
    pub alive: i32,
    /// Matched writers that are not.
    pub not_alive: i32,
    /// REQUESTED_INCOMPATIBLE_QOS: in all, also writers that have gone.
    pub incompatible: i32,
    /// REQUESTED_DEADLINE_MISSED.
    pub deadlines_missed: i32,
}

/// Another participant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RemoteParticipantState {
    /// Its GUID.
    pub guid: Guid,
    /// Its name; empty when it told none.
    pub name: String,
    /// What it told of its process.
    pub process: ProcessData,
    /// The product that its vendor id names.
    pub product: Option<String>,
    /// Vendor id.
    pub vendor: [u8; 2],
    /// Version of the product, major and minor, where it is known how that is told.
    pub product_version: Option<[u8; 2]>,
    /// RTPS version, major and minor.
    pub rtps_version: [u8; 2],
    /// It tells an identity of DDS Security.
    pub is_secured: bool,
    /// Its USER_DATA.
    pub user_data: Vec<u8>,
    /// The tool that it is, if it is there to look at the domain: `plainsong ls`, for example.
    pub tool: Option<String>,
    /// Where its last announcement came from.
    pub address: Option<IpAddr>,
    /// Where it receives discovery traffic.
    pub discovery_locators: Vec<Locator>,
    /// It answered from the address that is used.
    pub is_proven: bool,
    /// It is on this host.
    pub same_host: bool,
    /// By which transport its endpoints are reached, and why not by memory.
    pub transport: UsedTransport,
    /// Announced lease.
    pub lease_duration: Duration,
    /// So long ago it was last heard of.
    pub silent_for: Duration,
}

/// A writer or reader of another participant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RemoteEndpointState {
    /// Its GUID.
    pub guid: Guid,
    /// It is a writer.
    pub is_writer: bool,
    /// Its topic.
    pub topic: String,
    /// The registered name of its type.
    pub type_name: String,
    /// Its QoS, with that of its publisher or subscriber.
    pub qos: QosSet,
    /// The content filter of a reader that told of one.
    pub content_filter: Option<ContentFilter>,
    /// The equivalence hash of its type in hexadecimal digits: of the complete TypeObject if that was told,
    /// else of the minimal one.
    pub type_hash: Option<String>,
}
