//! Datagrams of other implementations, captured: we read them whole, and what we would say instead means
//! the same. `interop/golden` says of each who sent it, in which version.

use std::fs;
use std::path::PathBuf;

use plainsong_proto::discovery::builtin::{EndpointData, ParticipantData, ParticipantMessage};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::qos::{Durability, HistoryKind, Ownership, incompatible};
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Duration, Instant, Now, Time};
use plainsong_proto::vendor;
use plainsong_proto::wire::header::{Header, Submessage};
use plainsong_proto::wire::{
    AckNack, ContentFilterInfo, Data, DataFrag, EndpointSubmessage, Gap, Heartbeat, HeartbeatFrag, InlineQos,
    MessageContext, NackFrag, StatusInfo,
};

/// The octets of one file: lines of hexadecimal digits, and comments.
fn golden(name: &str) -> Vec<u8> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../interop/golden");
    let text = fs::read_to_string(directory.join(format!("{name}.hex"))).expect("a golden file");
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("digits"), 16).expect("two digits"))
        .collect()
}

/// An owned copy of what was delivered.
#[derive(Debug)]
enum Heard {
    Data { writer: EntityId, number: i64, qos: InlineQos, payload: Vec<u8>, key_only: bool, at: Option<Time> },
    DataFrag { first: u32, fragments: u16, bytes: u16, sample: u32, payload: usize },
    Heartbeat(Heartbeat),
    HeartbeatFrag(HeartbeatFrag),
    AckNack(AckNack),
    NackFrag(NackFrag),
    Gap(Gap),
}

#[derive(Default)]
struct Everyone {
    heard: Vec<Heard>,
    context: Option<MessageContext>,
}

impl Registry for Everyone {
    fn deliver(
        &mut self,
        _now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        _out: &mut Outbox,
    ) {
        self.context = Some(*context);
        let inline_qos = |data: &Data<'_>| {
            data.inline_qos.map(|list| InlineQos::parse(&list).expect("inline QoS")).unwrap_or_default()
        };
        self.heard.push(match submessage {
            EndpointSubmessage::Data(data) => Heard::Data {
                writer: data.writer,
                number: data.sequence_number.0,
                qos: inline_qos(data),
                payload: data.payload.to_vec(),
                key_only: data.key_only,
                at: context.timestamp,
            },
            EndpointSubmessage::DataFrag(data) => Heard::DataFrag {
                first: data.first_fragment,
                fragments: data.fragments,
                bytes: data.fragment_bytes,
                sample: data.sample_bytes,
                payload: data.payload.len(),
            },
            EndpointSubmessage::Heartbeat(heartbeat) => Heard::Heartbeat(*heartbeat),
            EndpointSubmessage::HeartbeatFrag(heartbeat) => Heard::HeartbeatFrag(*heartbeat),
            EndpointSubmessage::AckNack(acknack) => Heard::AckNack(*acknack),
            EndpointSubmessage::NackFrag(nack) => Heard::NackFrag(*nack),
            EndpointSubmessage::Gap(gap) => Heard::Gap(*gap),
        });
    }

    fn is_local(&self, _prefix: GuidPrefix) -> bool {
        true
    }
}

/// Everything a datagram delivers; nothing in it may be dropped.
fn hear(bytes: &[u8]) -> (Vec<Heard>, MessageContext) {
    let (mut everyone, mut counters) = (Everyone::default(), DropCounters::default());
    let now = Now { mono: Instant(0), wall: Time(0) };
    receiver::datagram(
        now,
        Locator::default(),
        bytes,
        None,
        &mut everyone,
        &mut counters,
        &mut Outbox::new(),
    );
    assert_eq!(counters, DropCounters::default());
    (everyone.heard, everyone.context.expect("something was delivered"))
}

/// The payload of the only DATA of `writer`.
fn data_of(name: &str, writer: EntityId) -> (Vec<u8>, InlineQos, bool) {
    let (heard, _) = hear(&golden(name));
    let mut found = heard.into_iter().filter_map(|it| match it {
        Heard::Data { writer: from, payload, qos, key_only, .. } if from == writer => {
            Some((payload, qos, key_only))
        }
        _ => None,
    });
    let only = found.next().expect("a DATA of that writer");
    assert!(found.next().is_none());
    only
}

/// The only announcement of an endpoint in a golden message.
fn endpoint_of(name: &str, writer: EntityId) -> EndpointData {
    let bytes = golden(name);
    let (header, _) = Header::parse(&bytes).expect("a header");
    let (payload, _, _) = data_of(name, writer);
    EndpointData::decode(&payload, header.vendor).expect("the data of an endpoint")
}

#[test]
fn every_file_is_read_to_its_end_and_repeated_with_the_same_meaning() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../interop/golden");
    let mut files = 0;
    for entry in fs::read_dir(directory).expect("golden files") {
        let path = entry.expect("a golden file").path();
        if path.extension().is_some_and(|extension| extension == "hex") {
            let bytes = golden(path.file_stem().and_then(|stem| stem.to_str()).expect("a name"));
            let again = repeat(&bytes);
            assert_eq!(format!("{:?}", hear(&bytes)), format!("{:?}", hear(&again)), "{}", path.display());
            files += 1;
        }
    }
    assert!(files >= 22);
}

/// The datagram with each endpoint submessage parsed and emitted anew.
fn repeat(bytes: &[u8]) -> Vec<u8> {
    let (_, submessages) = Header::parse(bytes).expect("a header");
    let mut out = bytes[..20].to_vec();
    for submessage in submessages {
        let Submessage { id, flags, body, .. } = submessage.expect("a submessage");
        let little = flags & 1 != 0;
        match id {
            0x06 => AckNack::parse(body, flags).expect("ACKNACK").emit(&mut out, little),
            0x08 => Gap::parse(body, flags).expect("GAP").emit(&mut out, little),
            0x07 => Heartbeat::parse(body, flags).expect("HEARTBEAT").emit(&mut out, little),
            0x12 => NackFrag::parse(body, flags).expect("NACK_FRAG").emit(&mut out, little),
            0x13 => HeartbeatFrag::parse(body, flags).expect("HEARTBEAT_FRAG").emit(&mut out, little),
            0x15 => Data::parse(body, flags).expect("DATA").emit(&mut out, little),
            0x16 => DataFrag::parse(body, flags).expect("DATA_FRAG").emit(&mut out, little),
            _ => {
                let length = (body.len() as u16).to_le_bytes();
                out.extend_from_slice(&[id, flags, length[0], length[1]]);
                out.extend_from_slice(body);
            }
        }
    }
    out
}

#[test]
fn cyclone_announces_a_participant() {
    let (payload, _, _) = data_of("cyclonedds_11_0_1_participant", EntityId::SPDP_WRITER);
    let (_, context) = hear(&golden("cyclonedds_11_0_1_participant"));
    let data = ParticipantData::decode(&payload).expect("participant data");
    assert_eq!(data.guid, context.source.participant());
    assert_eq!((data.vendor, context.vendor), ([0x01, 0x10], [0x01, 0x10]));
    assert_eq!((data.product_version, data.reads_types()), ([11, 0], true));
    assert_eq!(data.protocol_version, context.version);
    assert_eq!(data.user_data, b"hello");
    assert_eq!(data.lease_duration, Duration::from_secs(10));
    let bits = 0b11_1111 | 0b11 << 10;
    assert_eq!(data.builtin_endpoints & bits, bits);
    assert!(!data.meta_unicast.is_empty() && !data.default_unicast.is_empty());
    assert!(data.properties.iter().any(|property| property.name == "__Hostname"));
    // How a product tells its version is its own affair.
    let data = ParticipantData { product_version: [0; 2], ..data };
    assert_eq!(ParticipantData::decode(&data.encode()), Ok(data));
}

#[test]
fn cyclone_announces_a_writer_and_a_reader() {
    let writer = endpoint_of("cyclonedds_11_0_1_writer", EntityId::SEDP_PUBLICATIONS_WRITER);
    let reader = endpoint_of("cyclonedds_11_0_1_reader", EntityId::SEDP_SUBSCRIPTIONS_WRITER);
    assert!(writer.guid.entity.is_writer() && writer.guid.entity.is_keyed());
    assert!(reader.guid.entity.is_reader() && reader.guid.entity.is_keyed());
    for endpoint in [writer, reader] {
        assert_eq!((endpoint.topic_name.as_str(), endpoint.type_name.as_str()), ("Square", "ShapeType"));
        assert!(endpoint.qos.is_reliable());
        assert_eq!(endpoint.qos.durability, Durability::TransientLocal);
        assert_eq!(endpoint.qos.deadline, Duration::from_secs(5));
        assert_eq!((endpoint.qos.history.kind, endpoint.qos.history.depth), (HistoryKind::KeepLast, 5));
        assert_eq!(endpoint.qos.partition, ["p1", "x*"]);
        assert_eq!(endpoint.participant, endpoint.guid.prefix.participant());
        assert_eq!(EndpointData::decode(&endpoint.encode(), vendor::PLAINSONG), Ok(endpoint));
    }
}

#[test]
fn cyclone_asserts_liveliness_with_a_participant_message() {
    let (payload, _, _) = data_of("cyclonedds_11_0_1_acknacks", EntityId::PARTICIPANT_MESSAGE_WRITER);
    let (_, context) = hear(&golden("cyclonedds_11_0_1_acknacks"));
    let message = ParticipantMessage::decode(&payload).expect("a participant message");
    assert_eq!((message.prefix, message.kind), (context.source, ParticipantMessage::AUTOMATIC));
}

#[test]
fn cyclone_asks_before_anything_was_sent() {
    let (heard, _) = hear(&golden("cyclonedds_11_0_1_acknacks"));
    let asked: Vec<(EntityId, SequenceNumber)> = heard
        .iter()
        .filter_map(|it| match it {
            Heard::AckNack(acknack) => Some((acknack.writer, acknack.missing.base())),
            _ => None,
        })
        .collect();
    assert_eq!(asked.len(), 5);
    assert!(asked.contains(&(EntityId::SEDP_PUBLICATIONS_WRITER, SequenceNumber(1))));
    assert!(asked.iter().all(|(_, base)| *base == SequenceNumber(1)));
}

#[test]
fn cyclones_idle_writers_have_nothing_to_tell() {
    let (heard, context) = hear(&golden("cyclonedds_11_0_1_heartbeats"));
    assert_eq!(heard.len(), 5);
    assert_ne!(context.destination, GuidPrefix::UNKNOWN);
    for it in heard {
        let Heard::Heartbeat(heartbeat) = it else { panic!("{it:?}") };
        assert!(heartbeat.last >= heartbeat.first.previous());
    }
}

#[test]
fn cyclone_writes_and_disposes_a_sample() {
    let (heard, _) = hear(&golden("cyclonedds_11_0_1_sample"));
    let [Heard::Data { payload, qos, at, .. }, Heard::Heartbeat(heartbeat)] = &heard[..] else {
        panic!("{heard:?}")
    };
    assert!(at.is_some() && *qos == InlineQos::default() && heartbeat.last == SequenceNumber(1));
    assert!(payload.windows(4).any(|word| word == b"BLUE"));

    let (heard, _) = hear(&golden("cyclonedds_11_0_1_dispose"));
    let [Heard::Data { payload, qos, key_only, number, .. }, Heard::Heartbeat(_)] = &heard[..] else {
        panic!("{heard:?}")
    };
    assert_eq!(qos.status_info, StatusInfo { disposed: true, ..StatusInfo::default() });
    assert!(*key_only && *number > 20 && payload.windows(4).any(|word| word == b"BLUE"));
}

#[test]
fn cyclone_says_goodbye_with_a_key() {
    let gone = StatusInfo { disposed: true, unregistered: true, filtered: false };
    let (payload, qos, key_only) =
        data_of("cyclonedds_11_0_1_writer_departure", EntityId::SEDP_PUBLICATIONS_WRITER);
    let writer: Guid = EndpointData::decode_key(&payload).expect("a key");
    assert!(key_only && writer.entity.is_writer() && qos.status_info == gone);
    let (payload, qos, key_only) = data_of("cyclonedds_11_0_1_participant_departure", EntityId::SPDP_WRITER);
    let participant = ParticipantData::decode_key(&payload).expect("a key");
    assert!(key_only && participant.entity == EntityId::PARTICIPANT && qos.status_info == gone);
}

#[test]
fn cyclone_sends_fragments_and_asks_for_lost_ones() {
    let (heard, _) = hear(&golden("cyclonedds_11_0_1_fragment"));
    let [Heard::DataFrag { first: 1, fragments: 1, bytes: 1000, sample, payload: 1000 }, ..] = heard[..]
    else {
        panic!("{heard:?}")
    };
    let Heard::HeartbeatFrag(ref announced) = heard[1] else { panic!("{heard:?}") };
    assert_eq!(announced.last_fragment, 1);

    let (heard, _) = hear(&golden("cyclonedds_11_0_1_last_fragment"));
    let last = heard.iter().rev().find_map(|it| match it {
        Heard::DataFrag { first, payload, sample, .. } => Some((*first, *payload as u32, *sample)),
        _ => None,
    });
    let fragments = sample.div_ceil(1000);
    assert_eq!(last, Some((fragments, sample - (fragments - 1) * 1000, sample)));

    let (heard, _) = hear(&golden("cyclonedds_11_0_1_nack_frag"));
    let [Heard::AckNack(_), Heard::NackFrag(nack)] = &heard[..] else { panic!("{heard:?}") };
    assert!(nack.missing.iter().count() > 0 && nack.missing.base() >= 1);
}

#[test]
fn cyclone_tells_a_late_joiner_what_is_gone() {
    let (heard, _) = hear(&golden("cyclonedds_11_0_1_gap"));
    let [Heard::Data { number, .. }, Heard::Data { number: next, .. }, Heard::Gap(gap), Heard::Heartbeat(_)] =
        &heard[..]
    else {
        panic!("{heard:?}")
    };
    assert!(number < next && gap.list.base() >= gap.start);
}

#[test]
fn fast_dds_announces_a_participant() {
    let (payload, _, _) = data_of("fastdds_2_9_1_participant", EntityId::SPDP_WRITER);
    let data = ParticipantData::decode(&payload).expect("participant data");
    assert_eq!((data.vendor, data.protocol_version), ([0x01, 0x0f], [2, 3]));
    assert_eq!((data.name.as_str(), data.lease_duration), ("RTPSParticipant", Duration::from_secs(20)));
    assert!(data.meta_unicast.iter().chain(&data.default_unicast).all(|locator| locator.ip().is_some()));
    assert!(!data.meta_unicast.is_empty());
    // How a product tells its version is its own affair.
    let data = ParticipantData { product_version: [0; 2], ..data };
    assert_eq!(ParticipantData::decode(&data.encode()), Ok(data));
}

#[test]
fn fast_dds_announces_a_writer_and_a_reader() {
    let writer = endpoint_of("fastdds_2_9_1_writer", EntityId::SEDP_PUBLICATIONS_WRITER);
    let reader = endpoint_of("fastdds_2_9_1_reader", EntityId::SEDP_SUBSCRIPTIONS_WRITER);
    assert!(writer.guid.entity.is_writer() && reader.guid.entity.is_reader());
    assert_eq!(writer.qos.ownership_strength, 3);
    assert_eq!(incompatible(&writer.qos, &reader.qos), []);
    for endpoint in [writer, reader] {
        assert_eq!((endpoint.topic_name.as_str(), endpoint.type_name.as_str()), ("Square", "ShapeType"));
        assert_eq!(
            (endpoint.qos.durability, endpoint.qos.ownership),
            (Durability::TransientLocal, Ownership::Exclusive)
        );
        assert_eq!(endpoint.qos.deadline, Duration::from_secs(5));
        assert_eq!(endpoint.qos.partition, ["p1"]);
        assert!(endpoint.qos.is_reliable());
    }
}

#[test]
fn fact_14_fast_dds_names_what_is_gone_by_key_hash_alone() {
    let gone = StatusInfo { disposed: true, unregistered: true, filtered: false };
    let (payload, qos, _) = data_of("fastdds_2_9_1_writer_departure", EntityId::SEDP_PUBLICATIONS_WRITER);
    assert!(payload.is_empty() && qos.status_info == gone);
    assert!(Guid::from_bytes(qos.key_hash.expect("a key hash").0).entity.is_writer());
    let (payload, qos, _) = data_of("fastdds_2_9_1_participant_departure", EntityId::SPDP_WRITER);
    assert!(payload.is_empty() && qos.status_info == gone);
    assert_eq!(Guid::from_bytes(qos.key_hash.expect("a key hash").0).entity, EntityId::PARTICIPANT);

    let (heard, _) = hear(&golden("fastdds_2_9_1_dispose"));
    let [Heard::Data { payload, qos, .. }] = &heard[..] else { panic!("{heard:?}") };
    assert!(payload.is_empty() && qos.key_hash.is_some());
    assert_eq!(qos.status_info, StatusInfo { disposed: true, ..StatusInfo::default() });
}

#[test]
fn fast_dds_writes_a_sample_and_acknowledges() {
    let (heard, _) = hear(&golden("fastdds_2_9_1_sample"));
    let [Heard::Data { payload, number, .. }, Heard::Heartbeat(heartbeat)] = &heard[..] else {
        panic!("{heard:?}")
    };
    assert!(heartbeat.last.0 >= *number && payload.windows(4).any(|word| word == b"BLUE"));
    let (heard, context) = hear(&golden("fastdds_2_9_1_acknack"));
    assert!(matches!(heard[..], [Heard::AckNack(_)]) && context.destination != GuidPrefix::UNKNOWN);
    let (heard, _) = hear(&golden("fastdds_2_9_1_heartbeat"));
    assert!(matches!(heard[..], [Heard::Heartbeat(_)]));
}

#[test]
fn fact_62_fast_dds_knows_a_filter_by_the_same_signature() {
    let reader = endpoint_of("fastdds_2_9_1_filtering_reader", EntityId::SEDP_SUBSCRIPTIONS_WRITER);
    let filter = reader.content_filter.expect("a filter");
    assert_eq!((filter.class_name.as_str(), filter.expression.as_str()), ("DDSSQL", "shapesize <= 20"));
    assert_eq!((filter.topic_name.as_str(), filter.parameters.len()), ("Square_filtered", 0));

    let bytes = golden("fastdds_2_9_1_filtered_sample");
    let (_, submessages) = Header::parse(&bytes).expect("a header");
    let verdicts = submessages.filter_map(|submessage| {
        let Submessage { id, flags, body, .. } = submessage.expect("a submessage");
        let data = (id == 0x15).then(|| Data::parse(body, flags).expect("DATA"))?;
        ContentFilterInfo::find(&data.inline_qos.expect("inline QoS"))?.result(&filter.signature())
    });
    assert_eq!(verdicts.collect::<Vec<_>>(), [true]);
}

#[test]
fn embedded_rtps_announces_a_participant_a_writer_and_a_reader_with_locators() {
    let (payload, _, _) = data_of("embeddedrtps_2932c64_participant", EntityId::SPDP_WRITER);
    let data = ParticipantData::decode(&payload).expect("participant data");
    assert_eq!((data.vendor, data.protocol_version, data.builtin_endpoints), ([13, 37], [2, 2], 0b11_1111));
    let writer = endpoint_of("embeddedrtps_2932c64_writer", EntityId::SEDP_PUBLICATIONS_WRITER);
    let reader = endpoint_of("embeddedrtps_2932c64_reader", EntityId::SEDP_SUBSCRIPTIONS_WRITER);
    for endpoint in [&writer, &reader] {
        assert_eq!(endpoint.unicast, data.default_unicast);
        assert!(endpoint.qos.is_reliable());
    }
    assert_eq!(
        (writer.topic_name.as_str(), writer.qos.durability),
        ("up_reliable", Durability::TransientLocal)
    );
    assert_eq!((reader.topic_name.as_str(), reader.qos.durability), ("down_reliable", Durability::Volatile));
}

#[test]
fn embedded_rtps_answers_a_challenge_with_its_number_and_names_no_destination() {
    let acknack = |name: &str| {
        let (mut heard, context) = hear(&golden(name));
        assert_eq!(context.destination, GuidPrefix::UNKNOWN);
        match (heard.pop(), heard.pop()) {
            (Some(Heard::AckNack(acknack)), None) => acknack,
            other => panic!("an ACKNACK, not {other:?}"),
        }
    };
    let answer = acknack("embeddedrtps_2932c64_answer");
    assert_eq!((answer.missing.base(), answer.missing.is_empty()), (SequenceNumber(571), true));
    let asks = acknack("embeddedrtps_2932c64_nack");
    assert_eq!((asks.missing.base(), asks.missing.iter().count(), asks.count), (SequenceNumber(571), 32, 2));
}
