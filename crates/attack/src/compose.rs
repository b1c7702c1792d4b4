//! Datagrams of attacks, made by the composer of the protocol core: well-formed, whoever they claim to be
//! from.

use plainsong_proto::cdr::KeyHash;
use plainsong_proto::discovery::builtin::{EndpointData, ParticipantData};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::{DataHeader, MessageBuilder, Outbox};
use plainsong_proto::payload::Payload;
use plainsong_proto::seq::{SequenceNumber, SequenceSet};
use plainsong_proto::time::Duration;
use plainsong_proto::wire::{AckNack, Gap, Heartbeat, InlineQos, StatusInfo, encode_inline_qos};

use crate::worker::{TOPIC, TYPE};

/// UDP payload that an Ethernet frame takes.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 1_472;

/// One datagram of `source`, to one participant (INFO_DST) or, with UNKNOWN, to whoever hears it.
pub(crate) fn datagram(
    source: GuidPrefix,
    destination: GuidPrefix,
    build: impl FnOnce(&mut MessageBuilder<'_>),
) -> Vec<u8> {
    let mut out = Outbox::new();
    let mut message = out.message(source, &[Locator::default()], DATAGRAM_BYTES_MAX);
    message.info_destination(destination);
    build(&mut message);
    message.finish();
    out.transmits().first().map(|transmit| out.datagram(transmit)).unwrap_or_default()
}

/// The announcement of a participant.
pub(crate) fn announcement(data: &ParticipantData, destination: GuidPrefix) -> Vec<u8> {
    // One of ours that goes to everyone, yet to the reader by name, is for other products.
    let is_open = destination == GuidPrefix::UNKNOWN;
    let reader = if is_open { EntityId::UNKNOWN } else { EntityId::SPDP_READER };
    datagram(data.guid.prefix, destination, |message| {
        add(message, reader, EntityId::SPDP_WRITER, 1, &[], &data.encode(), false);
    })
}

/// Says that a participant leaves.
pub(crate) fn farewell(of: GuidPrefix, destination: GuidPrefix) -> Vec<u8> {
    let inline_qos = gone(of.participant());
    datagram(of, destination, |message| {
        let key = ParticipantData::encode_key(of.participant());
        add(message, EntityId::UNKNOWN, EntityId::SPDP_WRITER, 2, &inline_qos, &key, true);
    })
}

/// Appends a DATA; one that does not fit is left out.
pub(crate) fn add(
    message: &mut MessageBuilder<'_>,
    reader: EntityId,
    writer: EntityId,
    number: i64,
    inline_qos: &[u8],
    payload: &[u8],
    key_only: bool,
) -> bool {
    let sequence_number = SequenceNumber(number);
    let payload = Payload::from_vec(payload.to_vec());
    message.data(&DataHeader { reader, writer, sequence_number, inline_qos, key_only }, &payload)
}

/// The inline QoS of a change that disposes and unregisters.
pub(crate) fn gone(guid: Guid) -> Vec<u8> {
    let status_info = StatusInfo { disposed: true, unregistered: true, filtered: false };
    let key_hash = Some(KeyHash(guid.to_bytes()));
    let mut inline_qos = Vec::new();
    encode_inline_qos(&InlineQos { status_info, key_hash, ..InlineQos::default() }, &mut inline_qos);
    inline_qos
}

pub(crate) fn heartbeat(
    reader: EntityId,
    writer: EntityId,
    [first, last]: [i64; 2],
    count: i32,
) -> Heartbeat {
    Heartbeat {
        reader,
        writer,
        first: SequenceNumber(first),
        last: SequenceNumber(last),
        count,
        final_flag: false,
        liveliness: false,
        group: None,
    }
}

/// Everything below `base` has arrived, so many numbers from it on are missing.
pub(crate) fn acknack(reader: EntityId, writer: EntityId, base: i64, missing: u32, count: i32) -> AckNack {
    let mut set = SequenceSet::empty(SequenceNumber(base));
    for offset in 0..missing {
        set.insert(SequenceNumber(base.saturating_add(offset.into())));
    }
    AckNack { reader, writer, missing: set, count, final_flag: missing > 0, heartbeat: None }
}

/// All numbers from `start` to before `end` never were.
pub(crate) const fn gap(reader: EntityId, writer: EntityId, start: i64, end: i64) -> Gap {
    let list = SequenceSet::empty(SequenceNumber(end));
    Gap { reader, writer, start: SequenceNumber(start), list, filtered: 0 }
}

/// A participant with all built-in endpoints, which never leaves by itself.
pub(crate) fn participant(prefix: GuidPrefix, meta: Locator, user: Locator) -> ParticipantData {
    ParticipantData {
        builtin_endpoints: 0x0000_fc3f,
        meta_unicast: vec![meta],
        default_unicast: vec![user],
        lease_duration: Duration::INFINITE,
        ..ParticipantData::new(prefix.participant())
    }
}

/// An endpoint of the topic of the pair, reliable.
pub(crate) fn endpoint(prefix: GuidPrefix, entity: EntityId, unicast: Vec<Locator>) -> EndpointData {
    let data = EndpointData::new(prefix.entity(entity), TOPIC.to_owned(), TYPE.to_owned());
    EndpointData { unicast, qos: data.qos.clone().reliable().keep_all(), ..data }
}

/// A sample of the pair's type, which belongs to no pair.
pub(crate) fn sample(key: u32) -> Vec<u8> {
    let mut payload = vec![0, 1, 0, 0];
    payload.extend(key.to_le_bytes());
    payload.resize(4 + crate::worker::SAMPLE_BYTES, 0);
    payload
}
