//! Parameter lists: inline QoS and discovery data (RTPS 2.5 §8.3.5.9, §9.4.2.11, §9.6.4).

use crate::cdr::KeyHash;
use crate::guid::Guid;
use crate::malformed::Malformed;
use crate::seq::SequenceNumber;
use crate::time::Duration;

use super::octets::{Reader, Sink};
use super::{GroupDigest, ParameterListView};

/// Parameters of one list at most; discovery data of known products has fewer than a hundred.
pub const PARAMETERS_MAX: usize = 512;

/// Parameter ids (RTPS 2.5 Tables 9.14 and 9.18 ff., XTypes 1.3 §7.6.2, DDS Security 1.1 §7.4).
pub mod pid {
    #![allow(missing_docs, reason = "the names are the standard's own")]
    /// The bit that makes a parameter one that must be understood.
    pub const MUST_UNDERSTAND: u16 = 0x4000;
    /// The bit of ids that belong to vendors.
    pub const VENDOR_SPECIFIC: u16 = 0x8000;

    pub const PAD: u16 = 0x0000;
    pub const SENTINEL: u16 = 0x0001;
    pub const PARTICIPANT_LEASE_DURATION: u16 = 0x0002;
    pub const TIME_BASED_FILTER: u16 = 0x0004;
    pub const TOPIC_NAME: u16 = 0x0005;
    pub const OWNERSHIP_STRENGTH: u16 = 0x0006;
    pub const TYPE_NAME: u16 = 0x0007;
    pub const DOMAIN_ID: u16 = 0x000f;
    pub const PROTOCOL_VERSION: u16 = 0x0015;
    pub const VENDOR_ID: u16 = 0x0016;
    pub const RELIABILITY: u16 = 0x001a;
    pub const LIVELINESS: u16 = 0x001b;
    pub const DURABILITY: u16 = 0x001d;
    pub const DURABILITY_SERVICE: u16 = 0x001e;
    pub const OWNERSHIP: u16 = 0x001f;
    pub const PRESENTATION: u16 = 0x0021;
    pub const DEADLINE: u16 = 0x0023;
    pub const DESTINATION_ORDER: u16 = 0x0025;
    pub const LATENCY_BUDGET: u16 = 0x0027;
    pub const PARTITION: u16 = 0x0029;
    pub const LIFESPAN: u16 = 0x002b;
    pub const USER_DATA: u16 = 0x002c;
    pub const GROUP_DATA: u16 = 0x002d;
    pub const TOPIC_DATA: u16 = 0x002e;
    pub const UNICAST_LOCATOR: u16 = 0x002f;
    pub const MULTICAST_LOCATOR: u16 = 0x0030;
    pub const DEFAULT_UNICAST_LOCATOR: u16 = 0x0031;
    pub const METATRAFFIC_UNICAST_LOCATOR: u16 = 0x0032;
    pub const METATRAFFIC_MULTICAST_LOCATOR: u16 = 0x0033;
    pub const PARTICIPANT_MANUAL_LIVELINESS_COUNT: u16 = 0x0034;
    pub const CONTENT_FILTER_PROPERTY: u16 = 0x0035;
    pub const HISTORY: u16 = 0x0040;
    pub const RESOURCE_LIMITS: u16 = 0x0041;
    pub const EXPECTS_INLINE_QOS: u16 = 0x0043;
    pub const DEFAULT_MULTICAST_LOCATOR: u16 = 0x0048;
    pub const TRANSPORT_PRIORITY: u16 = 0x0049;
    pub const PARTICIPANT_GUID: u16 = 0x0050;
    pub const GROUP_ENTITY_ID: u16 = 0x0053;
    pub const CONTENT_FILTER_INFO: u16 = 0x0055;
    pub const COHERENT_SET: u16 = 0x0056;
    pub const BUILTIN_ENDPOINT_SET: u16 = 0x0058;
    pub const PROPERTY_LIST: u16 = 0x0059;
    pub const ENDPOINT_GUID: u16 = 0x005a;
    pub const TYPE_MAX_SIZE_SERIALIZED: u16 = 0x0060;
    pub const ORIGINAL_WRITER_INFO: u16 = 0x0061;
    pub const ENTITY_NAME: u16 = 0x0062;
    /// DDS Security 1.1 §7.4.1.4.
    pub const IDENTITY_TOKEN: u16 = 0x1001;
    pub const GROUP_COHERENT_SET: u16 = 0x0063;
    pub const GROUP_SEQ_NUM: u16 = 0x0064;
    pub const WRITER_GROUP_INFO: u16 = 0x0065;
    pub const KEY_HASH: u16 = 0x0070;
    pub const STATUS_INFO: u16 = 0x0071;
    pub const DATA_REPRESENTATION: u16 = 0x0073;
    pub const TYPE_CONSISTENCY_ENFORCEMENT: u16 = 0x0074;
    pub const TYPE_INFORMATION: u16 = 0x0075;
    /// Version of Fast DDS: major, minor, patch.
    pub const FAST_DDS_VERSION: u16 = VENDOR_SPECIFIC;
    /// Of Cyclone DDS: flags, then host, version and system as text.
    pub const CYCLONE_DDS_VERSION: u16 = VENDOR_SPECIFIC | 0x0007;
    /// What the socket of a Plainsong reader holds, in octets.
    pub const PLAINSONG_RECEIVE_BYTES: u16 = VENDOR_SPECIFIC | 0x0f00;
    /// An announcement for those whom the type breaks.
    pub const PLAINSONG_UNTYPED: u16 = VENDOR_SPECIFIC | 0x0f02;
    /// The participant of the same process that hears other Plainsong participants for this one.
    pub const PLAINSONG_LEAD: u16 = VENDOR_SPECIFIC | 0x0f03;
    /// The node whose memory a Plainsong participant can share with others of its host: 16 octets.
    pub const PLAINSONG_NODE: u16 = VENDOR_SPECIFIC | 0x0f04;
    /// CONSISTENCY. Who does not know it may ignore it: to others an ATOMIC writer is a reliable one.
    pub const PLAINSONG_CONSISTENCY: u16 = VENDOR_SPECIFIC | 0x0f05;
    /// Of an endpoint whose type contains itself, for those who refuse to be told so: no value.
    pub const PLAINSONG_ACYCLIC: u16 = VENDOR_SPECIFIC | 0x0f06;
    pub const DOMAIN_TAG: u16 = 0x4014;
}

/// One parameter: its id as sent, and its value in the list's octet order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// The id with all its bits.
    pub id: u16,
    /// A multiple of 4 octets.
    pub value: &'a [u8],
}

impl Parameter<'_> {
    /// The id without the must-understand bit, but where that bit is part of a standard id.
    pub(crate) const fn known_id(&self) -> u16 {
        if self.id == pid::DOMAIN_TAG { self.id } else { self.id & !pid::MUST_UNDERSTAND }
    }

    /// Whether a receiver that does not know the id must drop what carries it.
    #[must_use]
    pub const fn must_understand(&self) -> bool {
        self.id & pid::MUST_UNDERSTAND != 0
    }

    /// Whether the id belongs to a vendor's own range.
    #[must_use]
    pub const fn is_vendor_specific(&self) -> bool {
        self.id & pid::VENDOR_SPECIFIC != 0
    }
}

impl<'a> ParameterListView<'a> {
    /// Checks the list at the front of `bytes` up to its sentinel; also returns what follows it.
    ///
    /// # Errors
    /// [`Malformed::MissingSentinel`] when the octets end before it, [`Malformed::Truncated`] when a
    /// parameter is longer than what remains, [`Malformed::LengthOutOfRange`] when a length is no multiple
    /// of 4 or there are more than [`PARAMETERS_MAX`] parameters.
    pub fn parse(bytes: &'a [u8], little_endian: bool) -> Result<(Self, &'a [u8]), Malformed> {
        let mut reader = Reader::new(bytes, little_endian);
        for _ in 0..PARAMETERS_MAX {
            let id = reader.u16().map_err(|_| Malformed::MissingSentinel)?;
            let length = reader.u16().map_err(|_| Malformed::MissingSentinel)?;
            if id == pid::SENTINEL {
                // The length of a sentinel means nothing (§9.4.2.11.2).
                let rest = reader.rest();
                let bytes = bytes.get(..bytes.len() - rest.len()).ok_or(Malformed::Truncated)?;
                return Ok((Self { bytes, little_endian }, rest));
            }
            if length % 4 != 0 {
                return Err(Malformed::LengthOutOfRange);
            }
            reader.octets(length.into())?;
        }
        Err(Malformed::LengthOutOfRange)
    }

    /// The parameters in order, without padding and sentinel.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter<'a>> + use<'a> {
        let mut reader = Reader::new(self.bytes, self.little_endian);
        std::iter::from_fn(move || {
            loop {
                let (id, length) = (reader.u16().ok()?, reader.u16().ok()?);
                if id == pid::SENTINEL {
                    return None;
                }
                let value = reader.octets(length.into()).ok()?;
                if id != pid::PAD {
                    return Some(Parameter { id, value });
                }
            }
        })
    }
}

/// Appends parameters to a buffer.
#[derive(Debug)]
pub(crate) struct ParameterListBuilder<'a> {
    out: &'a mut Vec<u8>,
    little_endian: bool,
}

impl<'a> ParameterListBuilder<'a> {
    pub(crate) const fn new(out: &'a mut Vec<u8>, little_endian: bool) -> Self {
        Self { out, little_endian }
    }

    /// One parameter, padded to a multiple of 4. Values beyond 65 532 octets are left out: their
    /// length cannot be said, and the limits on QoS keep values far below.
    pub(crate) fn parameter(&mut self, id: u16, value: impl FnOnce(&mut Sink<'_>)) {
        let start = self.out.len();
        let mut sink = Sink::new(self.out, self.little_endian);
        sink.u16(id);
        sink.u16(0);
        value(&mut sink);
        let length = (self.out.len() - start - 4).next_multiple_of(4);
        let Some(length_field) = u16::try_from(length).ok() else {
            self.out.truncate(start);
            return;
        };
        self.out.resize(start + 4 + length, 0);
        let octets = if self.little_endian { length_field.to_le_bytes() } else { length_field.to_be_bytes() };
        if let Some(target) = self.out.get_mut(start + 2..start + 4) {
            target.copy_from_slice(&octets);
        }
    }

    pub(crate) fn sentinel(self) {
        let mut sink = Sink::new(self.out, self.little_endian);
        sink.u16(pid::SENTINEL);
        sink.u16(0);
    }
}

/// `StatusInfo_t`: what a DATA without data says about its instance (§9.6.4.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusInfo {
    /// The instance was disposed.
    pub disposed: bool,
    /// The writer unregistered the instance.
    pub unregistered: bool,
    /// The writer's filter withheld the sample.
    pub filtered: bool,
}

impl StatusInfo {
    /// The four octets as they travel: flags in the last, whatever the octet order of the list.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 4] {
        [0, 0, 0, self.disposed as u8 | (self.unregistered as u8) << 1 | (self.filtered as u8) << 2]
    }

    /// From the four octets as they travel; unknown flags are ignored.
    #[must_use]
    pub const fn from_bytes([.., flags]: [u8; 4]) -> Self {
        Self { disposed: flags & 1 != 0, unregistered: flags & 2 != 0, filtered: flags & 4 != 0 }
    }
}

/// Who wrote a sample first, when someone else repeats it (§9.6.4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginalWriter {
    /// The writer.
    pub guid: Guid,
    /// Its number of the change.
    pub sequence_number: SequenceNumber,
}

/// The inline QoS parameters that concern a sample, not its writer (§9.6.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InlineQos {
    /// PID_STATUS_INFO.
    pub status_info: StatusInfo,
    /// PID_KEY_HASH.
    pub key_hash: Option<KeyHash>,
    /// PID_COHERENT_SET: first number of the coherent set the sample is in; UNKNOWN ends a set.
    pub coherent_set: Option<SequenceNumber>,
    /// PID_GROUP_COHERENT_SET: first group number of the publisher's coherent set.
    pub group_coherent_set: Option<SequenceNumber>,
    /// PID_GROUP_SEQ_NUM: number of the change among all of its publisher.
    pub group_sequence_number: Option<SequenceNumber>,
    /// PID_WRITER_GROUP_INFO: the writers of the publisher.
    pub group_writers: Option<GroupDigest>,
    /// PID_ORIGINAL_WRITER_INFO.
    pub original_writer: Option<OriginalWriter>,
    /// PID_LIFESPAN.
    pub lifespan: Option<Duration>,
    /// PID_OWNERSHIP_STRENGTH.
    pub ownership_strength: Option<i32>,
}

impl InlineQos {
    /// The parameters we know; others are skipped unless they must be understood.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] when a value is too short, [`Malformed::NotUnderstood`],
    /// [`Malformed::InvalidDuration`].
    pub fn parse(list: &ParameterListView<'_>) -> Result<Self, Malformed> {
        let mut qos = Self::default();
        for parameter in list.parameters() {
            let mut value = Reader::new(parameter.value, list.little_endian);
            match parameter.known_id() {
                pid::STATUS_INFO => qos.status_info = StatusInfo::from_bytes(value.array()?),
                pid::KEY_HASH => qos.key_hash = Some(KeyHash(value.array()?)),
                pid::COHERENT_SET => qos.coherent_set = Some(value.sequence()?),
                pid::GROUP_COHERENT_SET => qos.group_coherent_set = Some(value.sequence()?),
                pid::GROUP_SEQ_NUM => qos.group_sequence_number = Some(value.sequence()?),
                pid::WRITER_GROUP_INFO => qos.group_writers = Some(GroupDigest(value.array()?)),
                pid::ORIGINAL_WRITER_INFO => {
                    let (guid, sequence_number) = (value.guid()?, value.change_number()?);
                    qos.original_writer = Some(OriginalWriter { guid, sequence_number });
                }
                pid::LIFESPAN => qos.lifespan = Some(value.duration()?),
                pid::OWNERSHIP_STRENGTH => qos.ownership_strength = Some(value.i32()?),
                // Who filters looks at it: `ContentFilterInfo`.
                pid::CONTENT_FILTER_INFO => {}
                _ if parameter.must_understand() => return Err(Malformed::NotUnderstood),
                _ => {}
            }
        }
        Ok(qos)
    }
}

/// Appends the little-endian parameter list of `qos` with its sentinel; nothing when all is absent.
pub fn encode_inline_qos(qos: &InlineQos, out: &mut Vec<u8>) {
    if *qos == InlineQos::default() {
        return;
    }
    let mut list = ParameterListBuilder::new(out, true);
    if qos.status_info != StatusInfo::default() {
        list.parameter(pid::STATUS_INFO, |value| value.octets(&qos.status_info.to_bytes()));
    }
    if let Some(hash) = qos.key_hash {
        list.parameter(pid::KEY_HASH, |value| value.octets(&hash.0));
    }
    let numbers = [
        (pid::COHERENT_SET, qos.coherent_set),
        (pid::GROUP_COHERENT_SET, qos.group_coherent_set),
        (pid::GROUP_SEQ_NUM, qos.group_sequence_number),
    ];
    for (id, number) in numbers {
        if let Some(number) = number {
            list.parameter(id, |value| value.sequence(number));
        }
    }
    if let Some(writers) = qos.group_writers {
        list.parameter(pid::WRITER_GROUP_INFO, |value| value.octets(&writers.0));
    }
    if let Some(original) = qos.original_writer {
        list.parameter(pid::ORIGINAL_WRITER_INFO, |value| {
            value.octets(&original.guid.to_bytes());
            value.sequence(original.sequence_number);
        });
    }
    if let Some(lifespan) = qos.lifespan {
        list.parameter(pid::LIFESPAN, |value| value.duration(lifespan));
    }
    if let Some(strength) = qos.ownership_strength {
        list.parameter(pid::OWNERSHIP_STRENGTH, |value| value.i32(strength));
    }
    list.sentinel();
}
