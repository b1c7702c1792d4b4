//! Who matches whom, in the words in which discovery tells writers and readers.
//!
//! Of two endpoints of Plainsong the one that was there speaks first ([`MatchedReader::begins`]): the other
//! has yet to hear of the new one, so what that says would be lost. It speaks if nothing comes in 100 ms. A
//! writer asks each new reader on another host, whose answer tells how long the road is; one of its host is
//! told if nothing was written yet, and need not answer.

use crate::filter::ContentFilter;
use crate::guid::{EntityId, Guid};
use crate::locator::{Locator, NodeId};
use crate::policy_id::PolicyId;
use crate::qos::QosSet;
use crate::sources::Sources;
use crate::wire::GroupDigest;

/// What a local writer must know of a matched reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedReader {
    /// The reader.
    pub guid: Guid,
    /// Where to send: one locator when one suffices.
    pub locators: Vec<Locator>,
    /// From where it is heard.
    pub sources: Sources,
    /// Where it also hears, beside the way of the others: for writers with a TRANSPORT_PRIORITY.
    pub urgent: Option<Locator>,
    /// The reader wants inline QoS with each sample.
    pub expects_inline_qos: bool,
    /// All locators stay on this host: large fragments are fine.
    pub same_host: bool,
    /// Octets of large datagrams that its socket holds until it is read; 0 when it does not tell.
    pub receive_bytes: u32,
    /// QoS of the reader and its subscriber.
    pub qos: QosSet,
    /// The content filter of a reader that told of one.
    pub content_filter: Option<ContentFilter>,
    /// It speaks first, as soon as it hears of the writer: nothing has to be said to it until then.
    pub begins: bool,
    /// What the first HEARTBEAT that it hears tells of, it takes for older than itself
    /// ([`crate::vendor::skips_to_heartbeat`]).
    pub skips_to_heartbeat: bool,
    /// It is of this process, and lives as long as the writer does.
    pub is_of_own_process: bool,
}

/// What a local reader must know of a matched writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedWriter {
    /// The writer.
    pub guid: Guid,
    /// Where acknowledgements go.
    pub locators: Vec<Locator>,
    /// From where it is heard.
    pub sources: Sources,
    /// Its publisher, when it said; UNKNOWN otherwise.
    pub publisher: EntityId,
    /// Vendor id of its participant; zeroes when not told.
    pub vendor: [u8; 2],
    /// QoS of the writer and its publisher.
    pub qos: QosSet,
    /// It speaks first, as soon as it hears of the reader.
    pub begins: bool,
}

/// A decision, to be carried out by the driver in order: all but [`Command::Link`] are about a local user
/// endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `Writer::match_reader`; for a known reader: its locators or QoS changed.
    MatchReader {
        /// Local writer.
        writer: EntityId,
        /// Remote or local reader.
        reader: Box<MatchedReader>,
    },
    /// `Writer::unmatch_reader`.
    UnmatchReader {
        /// Local writer.
        writer: EntityId,
        /// The reader.
        reader: Guid,
    },
    /// `Writer::incompatible_reader`: raises OFFERED_INCOMPATIBLE_QOS.
    IncompatibleReader {
        /// Local writer.
        writer: EntityId,
        /// Ids of the offending policies.
        policies: Vec<PolicyId>,
    },
    /// `Reader::match_writer`; for a known writer: its locators or QoS changed.
    MatchWriter {
        /// Local reader.
        reader: EntityId,
        /// Remote or local writer.
        writer: Box<MatchedWriter>,
    },
    /// `Reader::unmatch_writer`.
    UnmatchWriter {
        /// Local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
    },
    /// `Reader::set_group_writers`: the writers that are known of a publisher with GROUP access, matched with
    /// the reader or not, are others than before.
    GroupWriters {
        /// Local reader.
        reader: EntityId,
        /// The publisher.
        publisher: Guid,
        /// Its writers.
        writers: GroupDigest,
    },
    /// A participant of a node of this host is there: the driver tries to share memory with it, and tells by
    /// `discovery::Participant::memory_link` what comes of it.
    Link {
        /// The node.
        node: NodeId,
    },
    /// `Reader::incompatible_writer`: raises REQUESTED_INCOMPATIBLE_QOS.
    IncompatibleWriter {
        /// Local reader.
        reader: EntityId,
        /// Ids of the offending policies.
        policies: Vec<PolicyId>,
    },
    /// `Writer::participant_asserted`: the participant was asserted, by a call or by writing.
    WriterAsserted {
        /// Local writer.
        writer: EntityId,
    },
    /// `Reader::writer_liveliness`: AUTOMATIC or MANUAL_BY_PARTICIPANT liveliness of a matched
    /// writer was asserted (a participant message, or any sign of life of its participant).
    WriterAlive {
        /// Local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
    },
}
