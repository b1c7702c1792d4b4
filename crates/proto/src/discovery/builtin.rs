//! The data of the built-in topics: participants, publications, subscriptions and participant messages
//! (RTPS 2.5 §8.4.13, §8.5, §9.6.3). Little endian out, both in.

use crate::filter::ContentFilter;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::instance::{InstanceHandle, Key};
use crate::locator::{Locator, NodeId};
use crate::malformed::Malformed;
use crate::qos::table::{self, EntityKind};
use crate::qos::{Property, QosSet};
use crate::time::Duration;
use crate::types::TypeInformation;
use crate::vendor::{self, ProductVersion};
use crate::wire::ParameterListView;
use crate::wire::header::{PROTOCOL_VERSION, VENDOR_ID};
use crate::wire::octets::{Reader, Sink};
use crate::wire::param::{Parameter, ParameterListBuilder, pid};

/// Locators kept of each sort; more are ignored.
pub const LOCATORS_MAX: usize = crate::tuning::discovery::LOCATORS_MAX;
/// Octets of a topic, type or entity name, or of a domain tag (§9.6.3.2, Table 9.18).
pub const NAME_BYTES_MAX: usize = 256;
/// Octets of the data of a participant message; 128 is what everyone must take (§9.6.3.1).
pub const MESSAGE_BYTES_MAX: usize = crate::tuning::discovery::PARTICIPANT_MESSAGE_BYTES_MAX;
/// The lease of a participant that announces none (Table 9.19).
pub const LEASE_DURATION_DEFAULT: Duration = Duration::from_secs(100);

/// Encapsulation headers (RTPS 2.5 §10.2): representation, then options.
const PL_CDR_LITTLE_ENDIAN: [u8; 4] = [0, 3, 0, 0];
const CDR_LITTLE_ENDIAN: [u8; 4] = [0, 1, 0, 0];

/// What SPDP tells about a participant (`SPDPdiscoveredParticipantData`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantData {
    /// The participant.
    pub guid: Guid,
    /// Major and minor; zeroes when not told.
    pub protocol_version: [u8; 2],
    /// Vendor id; zeroes when not told.
    pub vendor: [u8; 2],
    /// Version of its product, where it is known how that is told. Never encoded.
    pub product_version: ProductVersion,
    /// Domain; `None` means the receiver's own.
    pub domain_id: Option<u32>,
    /// Domain tag; empty unless told.
    pub domain_tag: String,
    /// Its readers want inline QoS.
    pub expects_inline_qos: bool,
    /// Where its built-in endpoints listen.
    pub meta_unicast: Vec<Locator>,
    /// Groups of its built-in endpoints.
    pub meta_multicast: Vec<Locator>,
    /// Where endpoints without locators of their own listen.
    pub default_unicast: Vec<Locator>,
    /// Groups of such endpoints.
    pub default_multicast: Vec<Locator>,
    /// Locators of kinds that no transport here reaches, which are left out. Never encoded.
    pub unreached: u32,
    /// How long to believe in it without hearing of it.
    pub lease_duration: Duration,
    /// `BuiltinEndpointSet_t`.
    pub builtin_endpoints: u32,
    /// `manualLivelinessCount`.
    pub manual_liveliness_count: i32,
    /// The participant of the same process that hears others of its stack for this one; told by Plainsong
    /// alone.
    pub lead: Option<GuidPrefix>,
    /// The node that it is of, if that shares memory; told by Plainsong alone.
    pub node_id: Option<NodeId>,
    /// Values of parameters of Plainsong that are none, which are left out. Never encoded.
    pub malformed: u32,
    /// It tells an identity of DDS Security. Never encoded.
    pub is_secured: bool,
    /// Name shown to people.
    pub name: String,
    /// USER_DATA.
    pub user_data: Vec<u8>,
    /// Properties.
    pub properties: Vec<Property>,
}

impl ParticipantData {
    /// A participant of ours, with everything else absent.
    #[must_use]
    pub fn new(guid: Guid) -> Self {
        Self { protocol_version: PROTOCOL_VERSION, vendor: VENDOR_ID, ..Self::absent(guid) }
    }

    /// What absent parameters mean (Table 9.19).
    const fn absent(guid: Guid) -> Self {
        Self {
            guid,
            protocol_version: [0; 2],
            vendor: [0; 2],
            product_version: [0; 2],
            domain_id: None,
            domain_tag: String::new(),
            expects_inline_qos: false,
            meta_unicast: Vec::new(),
            meta_multicast: Vec::new(),
            default_unicast: Vec::new(),
            default_multicast: Vec::new(),
            unreached: 0,
            lease_duration: LEASE_DURATION_DEFAULT,
            builtin_endpoints: 0,
            manual_liveliness_count: 0,
            lead: None,
            node_id: None,
            malformed: 0,
            is_secured: false,
            name: String::new(),
            user_data: Vec::new(),
            properties: Vec::new(),
        }
    }

    /// The payload of an announcement.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = PL_CDR_LITTLE_ENDIAN.to_vec();
        let mut list = ParameterListBuilder::new(&mut out, true);
        list.parameter(pid::PROTOCOL_VERSION, |value| value.octets(&self.protocol_version));
        list.parameter(pid::VENDOR_ID, |value| value.octets(&self.vendor));
        list.parameter(pid::PARTICIPANT_GUID, |value| value.octets(&self.guid.to_bytes()));
        if let Some(domain) = self.domain_id {
            list.parameter(pid::DOMAIN_ID, |value| value.u32(domain));
        }
        if !self.domain_tag.is_empty() {
            list.parameter(pid::DOMAIN_TAG, |value| value.string(&self.domain_tag));
        }
        if self.expects_inline_qos {
            list.parameter(pid::EXPECTS_INLINE_QOS, |value| value.boolean(true));
        }
        let locators = [
            (pid::METATRAFFIC_UNICAST_LOCATOR, &self.meta_unicast),
            (pid::METATRAFFIC_MULTICAST_LOCATOR, &self.meta_multicast),
            (pid::DEFAULT_UNICAST_LOCATOR, &self.default_unicast),
            (pid::DEFAULT_MULTICAST_LOCATOR, &self.default_multicast),
        ];
        for (id, locators) in locators {
            encode_locators(&mut list, id, locators);
        }
        list.parameter(pid::PARTICIPANT_LEASE_DURATION, |value| value.duration(self.lease_duration));
        list.parameter(pid::BUILTIN_ENDPOINT_SET, |value| value.u32(self.builtin_endpoints));
        if self.manual_liveliness_count != 0 {
            let count = self.manual_liveliness_count;
            list.parameter(pid::PARTICIPANT_MANUAL_LIVELINESS_COUNT, |value| value.i32(count));
        }
        if let Some(lead) = self.lead {
            list.parameter(pid::PLAINSONG_LEAD, |value| value.octets(&lead.0));
        }
        if let Some(node_id) = self.node_id {
            list.parameter(pid::PLAINSONG_NODE, |value| value.octets(&node_id));
        }
        if !self.name.is_empty() {
            list.parameter(pid::ENTITY_NAME, |value| value.string(&self.name));
        }
        // USER_DATA and PROPERTY travel as every policy does.
        let qos = QosSet {
            user_data: self.user_data.clone(),
            properties: self.properties.clone(),
            ..QosSet::default()
        };
        table::encode_qos(&qos, EntityKind::Participant, &mut list);
        list.sentinel();
        out
    }

    /// The key-only payload that goes with a dispose.
    #[must_use]
    pub fn encode_key(guid: Guid) -> Vec<u8> {
        encode_key(pid::PARTICIPANT_GUID, guid)
    }

    /// From the payload of an announcement.
    ///
    /// # Errors
    /// [`Malformed::MissingMember`] without a GUID of a participant, [`Malformed::NotUnderstood`] with an
    /// unknown parameter that must be understood, and what the values themselves cause.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        // Said twice, the first counts, here as everywhere.
        let guid = Self::decode_key(payload)?;
        if guid.entity != EntityId::PARTICIPANT || guid.prefix == GuidPrefix::UNKNOWN {
            return Err(Malformed::MissingMember);
        }
        let list = parameter_list(payload)?;
        let mut data = Self::absent(guid);
        let mut qos = QosSet::default();
        for parameter in list.parameters() {
            let mut value = Reader::new(parameter.value, list.little_endian);
            match parameter.known_id() {
                pid::PARTICIPANT_GUID => {}
                pid::PROTOCOL_VERSION => data.protocol_version = value.array()?,
                pid::VENDOR_ID => data.vendor = value.array()?,
                pid::DOMAIN_ID => data.domain_id = Some(value.u32()?),
                pid::DOMAIN_TAG => data.domain_tag = name(&mut value)?,
                pid::EXPECTS_INLINE_QOS => data.expects_inline_qos = value.boolean()?,
                pid::METATRAFFIC_UNICAST_LOCATOR => {
                    keep_locator(&mut data.meta_unicast, &mut data.unreached, &mut value)?
                }
                pid::METATRAFFIC_MULTICAST_LOCATOR => {
                    keep_locator(&mut data.meta_multicast, &mut data.unreached, &mut value)?
                }
                pid::DEFAULT_UNICAST_LOCATOR => {
                    keep_locator(&mut data.default_unicast, &mut data.unreached, &mut value)?
                }
                pid::DEFAULT_MULTICAST_LOCATOR => {
                    keep_locator(&mut data.default_multicast, &mut data.unreached, &mut value)?
                }
                pid::PARTICIPANT_LEASE_DURATION => data.lease_duration = value.duration()?,
                pid::BUILTIN_ENDPOINT_SET => data.builtin_endpoints = value.u32()?,
                pid::PARTICIPANT_MANUAL_LIVELINESS_COUNT => data.manual_liveliness_count = value.i32()?,
                // Of another product they may be anything.
                pid::PLAINSONG_LEAD => match value.array() {
                    Ok(prefix) => data.lead = Some(GuidPrefix(prefix)),
                    Err(_) => data.malformed += 1,
                },
                pid::PLAINSONG_NODE => match value.array() {
                    Ok(node_id) if parameter.value.len() == node_id.len() => data.node_id = Some(node_id),
                    _ => data.malformed += 1,
                },
                // Who must understand it has to be secured, too.
                pid::IDENTITY_TOKEN if parameter.id == pid::IDENTITY_TOKEN => data.is_secured = true,
                pid::ENTITY_NAME => data.name = name(&mut value)?,
                _ if parameter.is_vendor_specific() => ignored(&parameter)?,
                _ => qos_or_unknown(&mut qos, &parameter, &list)?,
            }
        }
        if data.vendor != VENDOR_ID {
            (data.lead, data.node_id, data.malformed) = (None, None, 0);
        }
        let product_version = vendor::version(data.vendor, &list);
        Ok(Self { product_version, user_data: qos.user_data, properties: qos.properties, ..data })
    }

    /// Whether its participant may be told types in the standard parameter.
    #[must_use]
    pub fn reads_types(&self) -> bool {
        vendor::reads_types(self.vendor, self.product_version)
    }

    /// The participant a key-only payload names.
    ///
    /// # Errors
    /// [`Malformed::MissingMember`] when it names none, and those of the list itself.
    pub fn decode_key(payload: &[u8]) -> Result<Guid, Malformed> {
        decode_key(pid::PARTICIPANT_GUID, payload)
    }
}

/// What SEDP tells about a writer or reader (`DiscoveredWriterData`, `DiscoveredReaderData`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointData {
    /// The endpoint: its entity kind says writer or reader.
    pub guid: Guid,
    /// Its participant.
    pub participant: Guid,
    /// Topic name.
    pub topic_name: String,
    /// Registered type name.
    pub type_name: String,
    /// QoS of the endpoint, its publisher or subscriber, and its topic data.
    pub qos: QosSet,
    /// Where it listens; empty means where its participant's endpoints do.
    pub unicast: Vec<Locator>,
    /// Groups it listens to.
    pub multicast: Vec<Locator>,
    /// Locators of kinds that no transport here reaches, which are left out. Never encoded.
    pub unreached: u32,
    /// The reader wants inline QoS.
    pub expects_inline_qos: bool,
    /// Largest serialized sample a writer expects. Not to be trusted: some announce too little.
    pub type_max_serialized_bytes: Option<u32>,
    /// Its publisher or subscriber; UNKNOWN unless told.
    pub group: EntityId,
    /// The content filter of a reader; of one that is larger than any of ours nothing is kept.
    pub content_filter: Option<ContentFilter>,
    /// What it tells of its type; nothing of what cannot be understood.
    pub type_information: Option<TypeInformation>,
    /// Nothing is told of its type, though there is something to tell.
    pub is_untyped: bool,
    /// The same, because its type contains itself and who hears this refuses such.
    pub is_acyclic: bool,
    /// Octets of large datagrams that the socket of a Plainsong reader holds until it is read; 0 when not
    /// told.
    pub receive_bytes: u32,
}

impl EndpointData {
    /// An endpoint with the default QoS of its kind and everything else absent.
    #[must_use]
    pub fn new(guid: Guid, topic_name: String, type_name: String) -> Self {
        Self {
            guid,
            participant: guid.prefix.participant(),
            topic_name,
            type_name,
            qos: if guid.entity.is_writer() { QosSet::writer() } else { QosSet::reader() },
            unicast: Vec::new(),
            multicast: Vec::new(),
            unreached: 0,
            expects_inline_qos: false,
            type_max_serialized_bytes: None,
            group: EntityId::UNKNOWN,
            content_filter: None,
            type_information: None,
            is_untyped: false,
            is_acyclic: false,
            receive_bytes: 0,
        }
    }

    /// The payload of an announcement.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = PL_CDR_LITTLE_ENDIAN.to_vec();
        let mut list = ParameterListBuilder::new(&mut out, true);
        list.parameter(pid::ENDPOINT_GUID, |value| value.octets(&self.guid.to_bytes()));
        list.parameter(pid::PARTICIPANT_GUID, |value| value.octets(&self.participant.to_bytes()));
        list.parameter(pid::TOPIC_NAME, |value| value.string(&self.topic_name));
        list.parameter(pid::TYPE_NAME, |value| value.string(&self.type_name));
        encode_locators(&mut list, pid::UNICAST_LOCATOR, &self.unicast);
        encode_locators(&mut list, pid::MULTICAST_LOCATOR, &self.multicast);
        if self.expects_inline_qos {
            list.parameter(pid::EXPECTS_INLINE_QOS, |value| value.boolean(true));
        }
        if self.receive_bytes != 0 {
            list.parameter(pid::PLAINSONG_RECEIVE_BYTES, |value| value.u32(self.receive_bytes));
        }
        if let Some(bytes) = self.type_max_serialized_bytes {
            list.parameter(pid::TYPE_MAX_SIZE_SERIALIZED, |value| value.u32(bytes));
        }
        if self.group != EntityId::UNKNOWN {
            list.parameter(pid::GROUP_ENTITY_ID, |value| value.entity(self.group));
        }
        if let Some(filter) = &self.content_filter {
            list.parameter(pid::CONTENT_FILTER_PROPERTY, |value| filter.encode(value));
        }
        if let Some(information) = &self.type_information {
            list.parameter(pid::TYPE_INFORMATION, |value| value.octets(&information.encode()));
        }
        if self.is_untyped {
            list.parameter(pid::PLAINSONG_UNTYPED, |_| {});
        }
        if self.is_acyclic {
            list.parameter(pid::PLAINSONG_ACYCLIC, |_| {});
        }
        let kind = if self.guid.entity.is_writer() { EntityKind::Writer } else { EntityKind::Reader };
        table::encode_qos(&self.qos, kind, &mut list);
        list.sentinel();
        out
    }

    /// The key-only payload that goes with a dispose.
    #[must_use]
    pub fn encode_key(guid: Guid) -> Vec<u8> {
        encode_key(pid::ENDPOINT_GUID, guid)
    }

    /// From the payload of an announcement of a participant of that vendor. Absent policies have the defaults
    /// of a writer or of a reader, whichever the endpoint's GUID says it is. Parameters of vendors are read
    /// where the vendor is ours: others use the same numbers for something else.
    ///
    /// # Errors
    /// [`Malformed::MissingMember`] without GUID, topic or type name, [`Malformed::InvalidEnum`] when the
    /// GUID names neither writer nor reader, [`Malformed::NotUnderstood`], and what the values themselves
    /// cause.
    pub fn decode(payload: &[u8], vendor: [u8; 2]) -> Result<Self, Malformed> {
        let guid = Self::decode_key(payload)?;
        if !guid.entity.is_writer() && !guid.entity.is_reader() {
            return Err(Malformed::InvalidEnum);
        }
        let list = parameter_list(payload)?;
        let mut data = Self::new(guid, String::new(), String::new());
        // What a reader does not say here is not the default (XTypes 1.3 §7.6.3.4.1).
        data.qos.type_consistency.allow_type_coercion = !guid.entity.is_reader();
        for parameter in list.parameters() {
            let mut value = Reader::new(parameter.value, list.little_endian);
            match parameter.known_id() {
                _ if parameter.is_vendor_specific() && vendor != VENDOR_ID => ignored(&parameter)?,
                pid::ENDPOINT_GUID => {}
                pid::PARTICIPANT_GUID => data.participant = value.guid()?,
                pid::TOPIC_NAME => data.topic_name = name(&mut value)?,
                pid::TYPE_NAME => data.type_name = name(&mut value)?,
                pid::UNICAST_LOCATOR => keep_locator(&mut data.unicast, &mut data.unreached, &mut value)?,
                pid::MULTICAST_LOCATOR => keep_locator(&mut data.multicast, &mut data.unreached, &mut value)?,
                pid::EXPECTS_INLINE_QOS => data.expects_inline_qos = value.boolean()?,
                pid::PLAINSONG_RECEIVE_BYTES => data.receive_bytes = value.u32()?,
                pid::TYPE_MAX_SIZE_SERIALIZED => data.type_max_serialized_bytes = Some(value.u32()?),
                pid::GROUP_ENTITY_ID => data.group = value.entity()?,
                pid::CONTENT_FILTER_PROPERTY => data.content_filter = ContentFilter::decode(&mut value).ok(),
                // Vendors disagree about the encoding: what is not understood is as if it were not there.
                pid::TYPE_INFORMATION => {
                    data.type_information = TypeInformation::decode(parameter.value).ok();
                }
                _ => qos_or_unknown(&mut data.qos, &parameter, &list)?,
            }
        }
        if data.topic_name.is_empty() || data.type_name.is_empty() {
            return Err(Malformed::MissingMember);
        }
        Ok(data)
    }

    /// The endpoint that a payload names: key-only or not.
    ///
    /// # Errors
    /// [`Malformed::MissingMember`] when it names none, and those of the list itself.
    pub fn decode_key(payload: &[u8]) -> Result<Guid, Malformed> {
        decode_key(pid::ENDPOINT_GUID, payload)
    }
}

/// `ParticipantMessageData` (§9.6.3.1): a participant asserts liveliness of its writers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantMessage {
    /// The participant.
    pub prefix: GuidPrefix,
    /// [`ParticipantMessage::AUTOMATIC`], [`ParticipantMessage::MANUAL_BY_PARTICIPANT`] or other.
    pub kind: [u8; 4],
    /// Data of other kinds.
    pub data: Vec<u8>,
}

impl ParticipantMessage {
    /// Asserts writers of AUTOMATIC liveliness.
    pub const AUTOMATIC: [u8; 4] = [0, 0, 0, 1];
    /// Asserts writers of MANUAL_BY_PARTICIPANT liveliness.
    pub const MANUAL_BY_PARTICIPANT: [u8; 4] = [0, 0, 0, 2];

    /// The payload.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = CDR_LITTLE_ENDIAN.to_vec();
        let mut sink = Sink::new(&mut out, true);
        sink.octets(&self.prefix.0);
        sink.octets(&self.kind);
        sink.octet_sequence(&self.data);
        out
    }

    /// From a payload in any representation: its fields look the same in all.
    ///
    /// # Errors
    /// [`Malformed::UnknownEncapsulation`], [`Malformed::Truncated`], [`Malformed::LengthOutOfRange`].
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let (prefix, kind, mut fields) = Self::decode_fields(payload)?;
        Ok(Self { prefix, kind, data: fields.octet_sequence(MESSAGE_BYTES_MAX)?.to_vec() })
    }

    /// The key: participant and kind. It is its own key hash.
    #[must_use]
    pub fn key(&self) -> InstanceHandle {
        Self::key_of(self.prefix, self.kind)
    }

    fn key_of(prefix: GuidPrefix, kind: [u8; 4]) -> InstanceHandle {
        Guid { prefix, entity: EntityId(kind) }.into()
    }

    fn decode_fields(payload: &[u8]) -> Result<(GuidPrefix, [u8; 4], Reader<'_>), Malformed> {
        let (representation, content) = encapsulation(payload)?;
        // CDR and plain CDR2, big and little endian.
        if !matches!(representation, 0 | 1 | 6 | 7) {
            return Err(Malformed::UnknownEncapsulation);
        }
        let mut fields = Reader::new(content, representation % 2 == 1);
        Ok((fields.prefix()?, fields.array()?, fields))
    }
}

/// Whether the payload of an announcement has a parameter.
pub(super) fn has_parameter(payload: &[u8], id: u16) -> bool {
    parameter_list(payload).is_ok_and(|list| list.parameters().any(|parameter| parameter.id == id))
}

/// The instance of a publication or subscription: its GUID. A [`crate::instance::KeyFunction`].
///
/// # Errors
/// Those of [`EndpointData::decode_key`].
pub fn endpoint_key(payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    EndpointData::decode_key(payload).map(Key::from)
}

/// The instance of a participant message: participant and kind. A [`crate::instance::KeyFunction`].
///
/// # Errors
/// Those of [`ParticipantMessage::decode`].
pub fn message_key(payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    let (prefix, kind, _) = ParticipantMessage::decode_fields(payload)?;
    Ok(ParticipantMessage::key_of(prefix, kind).into())
}

fn encapsulation(payload: &[u8]) -> Result<(u16, &[u8]), Malformed> {
    let ([high, low, _, _], content) = payload.split_first_chunk().ok_or(Malformed::Truncated)?;
    Ok((u16::from_be_bytes([*high, *low]), content))
}

fn parameter_list(payload: &[u8]) -> Result<ParameterListView<'_>, Malformed> {
    let (representation, content) = encapsulation(payload)?;
    let little_endian = match representation {
        2 => false,
        3 => true,
        _ => return Err(Malformed::UnknownEncapsulation),
    };
    ParameterListView::parse(content, little_endian).map(|(list, _)| list)
}

fn qos_or_unknown(
    qos: &mut QosSet,
    parameter: &Parameter<'_>,
    list: &ParameterListView<'_>,
) -> Result<(), Malformed> {
    let known = table::decode_parameter(qos, parameter, list.little_endian)?;
    if known { Ok(()) } else { ignored(parameter) }
}

/// Passes over a parameter that means nothing to us, if that is allowed.
fn ignored(parameter: &Parameter<'_>) -> Result<(), Malformed> {
    if parameter.must_understand() { Err(Malformed::NotUnderstood) } else { Ok(()) }
}

fn encode_key(id: u16, guid: Guid) -> Vec<u8> {
    let mut out = PL_CDR_LITTLE_ENDIAN.to_vec();
    let mut list = ParameterListBuilder::new(&mut out, true);
    list.parameter(id, |value| value.octets(&guid.to_bytes()));
    list.sentinel();
    out
}

fn decode_key(id: u16, payload: &[u8]) -> Result<Guid, Malformed> {
    let list = parameter_list(payload)?;
    let parameter = list.parameters().find(|parameter| parameter.known_id() == id);
    Reader::new(parameter.ok_or(Malformed::MissingMember)?.value, list.little_endian).guid()
}

fn name(value: &mut Reader<'_>) -> Result<String, Malformed> {
    value.string(NAME_BYTES_MAX).map(str::to_owned)
}

fn encode_locators(list: &mut ParameterListBuilder<'_>, id: u16, locators: &[Locator]) {
    for locator in locators {
        list.parameter(id, |value| value.locator(locator));
    }
}

/// Locators of transports we do not have are counted, no fault of who announces them; those beyond the limit
/// are left out.
fn keep_locator(
    kept: &mut Vec<Locator>,
    unreached: &mut u32,
    value: &mut Reader<'_>,
) -> Result<(), Malformed> {
    let locator = value.locator()?;
    if locator.ip().is_none() {
        *unreached += 1;
    } else if kept.len() < LOCATORS_MAX {
        kept.push(locator);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
