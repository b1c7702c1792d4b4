//! RTPS messages (RTPS 2.5 §8.3, §9.4): checked octets in, values out, and back.

pub mod ack;
pub mod content_filter;
pub mod data;
pub mod group;
pub mod header;
pub mod info;
pub(crate) mod octets;
pub mod param;
mod run;
pub mod secure;

pub use content_filter::{ContentFilterInfo, FilterSignature};
pub use group::{GroupDigest, HeartbeatGroup};
pub use param::{InlineQos, OriginalWriter, Parameter, StatusInfo, encode_inline_qos};
pub use run::Run;

use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::payload::Payload;
use crate::seq::{FragmentNumber, FragmentSet, SequenceNumber, SequenceSet};
use crate::sources::Sender;
use crate::time::Time;

/// A checked parameter list (inline QoS or discovery data), still in its octets.
#[derive(Clone, Copy, Debug)]
pub struct ParameterListView<'a> {
    /// From the first parameter to the end of the sentinel.
    pub bytes: &'a [u8],
    /// Octet order of parameter headers and values.
    pub little_endian: bool,
}

/// DATA (§9.4.5.4).
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Addressed reader, or UNKNOWN for all matched.
    pub reader: EntityId,
    /// Sending writer.
    pub writer: EntityId,
    /// Number of the change.
    pub sequence_number: SequenceNumber,
    /// Inline QoS when present.
    pub inline_qos: Option<ParameterListView<'a>>,
    /// Serialized payload with its encapsulation header; empty when there is none.
    pub payload: &'a [u8],
    /// Where it is, if it came beside the message.
    pub attachment: Option<&'a Payload>,
    /// The payload is a serialized key (K flag), not data (D flag).
    pub key_only: bool,
}

/// DATA_FRAG (§9.4.5.5), geometry checked.
#[derive(Clone, Copy, Debug)]
pub struct DataFrag<'a> {
    /// Addressed reader, or UNKNOWN for all matched.
    pub reader: EntityId,
    /// Sending writer.
    pub writer: EntityId,
    /// Number of the change.
    pub sequence_number: SequenceNumber,
    /// First fragment in this submessage, from 1.
    pub first_fragment: FragmentNumber,
    /// Fragments in this submessage, at least 1.
    pub fragments: u16,
    /// Octets of every fragment but the last.
    pub fragment_bytes: u16,
    /// Octets of the whole serialized payload, with its encapsulation header.
    pub sample_bytes: u32,
    /// Inline QoS when present.
    pub inline_qos: Option<ParameterListView<'a>>,
    /// The fragments' octets: their lengths agree with the fields above.
    pub payload: &'a [u8],
    /// The whole payload is a serialized key.
    pub key_only: bool,
}

/// HEARTBEAT (§9.4.5.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Addressed reader, or UNKNOWN for all matched.
    pub reader: EntityId,
    /// Sending writer.
    pub writer: EntityId,
    /// First number available.
    pub first: SequenceNumber,
    /// Last number available; `first - 1` when there is none.
    pub last: SequenceNumber,
    /// Grows with each heartbeat.
    pub count: i32,
    /// No answer needed when nothing is missing.
    pub final_flag: bool,
    /// The writer was asserted by its application.
    pub liveliness: bool,
    /// What it tells of its publisher under GROUP access.
    pub group: Option<HeartbeatGroup>,
}

/// HEARTBEAT_FRAG (§9.4.5.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatFrag {
    /// Addressed reader, or UNKNOWN for all matched.
    pub reader: EntityId,
    /// Sending writer.
    pub writer: EntityId,
    /// The change.
    pub sequence_number: SequenceNumber,
    /// Fragments 1 to this one are available.
    pub last_fragment: FragmentNumber,
    /// Grows with each.
    pub count: i32,
}

/// ACKNACK (§9.4.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckNack {
    /// Sending reader.
    pub reader: EntityId,
    /// Addressed writer.
    pub writer: EntityId,
    /// Everything below the base has arrived; members are missing. A base of 0 is accepted (OpenDDS,
    /// Connext).
    pub missing: SequenceSet,
    /// Grows with each.
    pub count: i32,
    /// No heartbeat is asked for.
    pub final_flag: bool,
    /// Count of the HEARTBEAT that it answers: told to our like alone, by a submessage of our own before this
    /// one.
    pub heartbeat: Option<i32>,
}

/// NACK_FRAG (§9.4.5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NackFrag {
    /// Sending reader.
    pub reader: EntityId,
    /// Addressed writer.
    pub writer: EntityId,
    /// The change.
    pub sequence_number: SequenceNumber,
    /// Missing fragments.
    pub missing: FragmentSet,
    /// Grows with each.
    pub count: i32,
}

/// GAP (§9.4.5.6): `start..list.base` and the members of `list` are irrelevant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Addressed reader, or UNKNOWN for all matched.
    pub reader: EntityId,
    /// Sending writer.
    pub writer: EntityId,
    /// First irrelevant number.
    pub start: SequenceNumber,
    /// Base: first number after the contiguous range.
    pub list: SequenceSet,
    /// How many of these changes exist, and are only filtered out for the reader; 0 when nothing is said.
    pub filtered: u64,
}

/// What the interpreter subset of RTPS knows while it walks one message (§8.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageContext {
    /// Who sent it.
    pub source: GuidPrefix,
    /// The sender's vendor id.
    pub vendor: [u8; 2],
    /// The sender's protocol version, major and minor.
    pub version: [u8; 2],
    /// Whom INFO_DST names; UNKNOWN means everyone.
    pub destination: GuidPrefix,
    /// INFO_TS in force.
    pub timestamp: Option<Time>,
    /// Address the datagram came from.
    pub from: Locator,
}

impl MessageContext {
    /// An endpoint of the participant that sent it, and from where.
    #[must_use]
    #[inline]
    pub const fn sender(&self, entity: EntityId) -> Sender {
        Sender { guid: Guid { prefix: self.source, entity }, from: self.from }
    }
}

/// Which local endpoints a submessage concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The built-in endpoints: `discovery::Participant::on_submessage`.
    Builtin,
    /// One user writer.
    Writer(EntityId),
    /// One user reader.
    Reader(EntityId),
    /// Every user reader matched with this writer.
    ReadersOf(Guid),
}

/// The submessages that reach an endpoint.
#[derive(Clone, Copy, Debug)]
pub enum EndpointSubmessage<'a> {
    /// For readers.
    Data(Data<'a>),
    /// For readers.
    DataFrag(DataFrag<'a>),
    /// For readers.
    Heartbeat(Heartbeat),
    /// For readers.
    HeartbeatFrag(HeartbeatFrag),
    /// For readers.
    Gap(Gap),
    /// For writers.
    AckNack(AckNack),
    /// For writers.
    NackFrag(NackFrag),
}

impl EndpointSubmessage<'_> {
    /// The writer it names: sender, or addressee of ACKNACK and NACK_FRAG.
    #[must_use]
    pub const fn writer(&self) -> EntityId {
        match self {
            Self::Data(Data { writer, .. })
            | Self::DataFrag(DataFrag { writer, .. })
            | Self::Heartbeat(Heartbeat { writer, .. })
            | Self::HeartbeatFrag(HeartbeatFrag { writer, .. })
            | Self::Gap(Gap { writer, .. })
            | Self::AckNack(AckNack { writer, .. })
            | Self::NackFrag(NackFrag { writer, .. }) => *writer,
        }
    }

    /// The reader it names: sender of ACKNACK and NACK_FRAG, or addressee, which may be UNKNOWN.
    #[must_use]
    pub const fn reader(&self) -> EntityId {
        match self {
            Self::Data(Data { reader, .. })
            | Self::DataFrag(DataFrag { reader, .. })
            | Self::Heartbeat(Heartbeat { reader, .. })
            | Self::HeartbeatFrag(HeartbeatFrag { reader, .. })
            | Self::Gap(Gap { reader, .. })
            | Self::AckNack(AckNack { reader, .. })
            | Self::NackFrag(NackFrag { reader, .. }) => *reader,
        }
    }

    /// Whether its payload came beside the message.
    pub(crate) const fn is_attached(&self) -> bool {
        matches!(self, Self::Data(Data { attachment: Some(_), .. }))
    }

    /// Who gets it in each addressed participant; `source` sent it. Only entity ids decide, never the
    /// socket it came through: some vendors send acknowledgements of user data to the discovery port.
    #[must_use]
    pub fn target(&self, source: GuidPrefix) -> Target {
        let (writer, reader) = (self.writer(), self.reader());
        match self {
            Self::AckNack(_) | Self::NackFrag(_) if writer.is_builtin() => Target::Builtin,
            Self::AckNack(_) | Self::NackFrag(_) => Target::Writer(writer),
            _ => Target::of_readers(source, reader, writer),
        }
    }
}

impl Target {
    /// Who gets what a writer of `source` sends to a reader, or to all (UNKNOWN).
    pub(crate) fn of_readers(source: GuidPrefix, reader: EntityId, writer: EntityId) -> Self {
        match reader {
            EntityId::UNKNOWN if writer.is_builtin() => Self::Builtin,
            EntityId::UNKNOWN => Self::ReadersOf(source.entity(writer)),
            _ if reader.is_builtin() => Self::Builtin,
            _ => Self::Reader(reader),
        }
    }
}

#[cfg(test)]
mod tests;
