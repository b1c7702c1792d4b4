//! Discovery data as it travels.

use super::*;
use crate::qos::{ConsistencyKind, Durability, ReliabilityKind, TypeConsistency};

const PREFIX: GuidPrefix = GuidPrefix([1, 0x10, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);

fn locator(last: u8) -> Locator {
    Locator::udp(core::net::Ipv4Addr::new(192, 0, 2, last).into(), 7410)
}

fn participant() -> ParticipantData {
    ParticipantData {
        domain_id: Some(7),
        domain_tag: "line 3".to_owned(),
        expects_inline_qos: true,
        meta_unicast: vec![locator(1), locator(2)],
        meta_multicast: vec![Locator::udp(crate::locator::ports::MULTICAST_V4.into(), 7400)],
        default_unicast: vec![locator(3)],
        default_multicast: vec![Locator::udp(crate::locator::ports::MULTICAST_V6.into(), 7401)],
        lease_duration: Duration::from_millis(12_500),
        builtin_endpoints: 0x0c3f,
        manual_liveliness_count: 3,
        name: "press".to_owned(),
        user_data: b"hello".to_vec(),
        properties: vec![Property { name: "a".to_owned(), value: "b".to_owned(), propagate: true }],
        ..ParticipantData::new(PREFIX.participant())
    }
}

fn writer() -> EndpointData {
    let guid = PREFIX.entity(EntityId::user_writer(1, true));
    EndpointData {
        qos: QosSet::writer().durability(Durability::TransientLocal).keep_last(3),
        unicast: vec![locator(9)],
        multicast: vec![locator(8)],
        type_max_serialized_bytes: Some(160),
        group: EntityId([0, 0, 1, 8]),
        ..EndpointData::new(guid, "Square".to_owned(), "ShapeType".to_owned())
    }
}

/// The same payload in the other octet order, parameter by parameter; only for values made of 32-bit words.
fn big_endian(parameters: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = vec![0, 2, 0, 0];
    let mut list = ParameterListBuilder::new(&mut out, false);
    for (id, value) in parameters {
        list.parameter(*id, |sink| sink.octets(value));
    }
    list.sentinel();
    out
}

fn little_endian(parameters: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = PL_CDR_LITTLE_ENDIAN.to_vec();
    let mut list = ParameterListBuilder::new(&mut out, true);
    for (id, value) in parameters {
        list.parameter(*id, |sink| sink.octets(value));
    }
    list.sentinel();
    out
}

#[test]
fn a_participant_arrives_whole() {
    let announced = participant();
    let payload = announced.encode();
    assert_eq!(payload.len() % 4, 0);
    assert_eq!(ParticipantData::decode(&payload), Ok(announced));
    assert_eq!(ParticipantData::decode_key(&payload), Ok(PREFIX.participant()));
}

#[test]
fn fact_17_a_participant_that_tells_nothing_has_the_defaults() {
    let guid = PREFIX.participant();
    let silent =
        ParticipantData::decode(&little_endian(&[(pid::PARTICIPANT_GUID, &guid.to_bytes())])).unwrap();
    assert_eq!(
        silent,
        ParticipantData { protocol_version: [0; 2], vendor: [0; 2], ..ParticipantData::new(guid) }
    );
    assert_eq!(silent.lease_duration, Duration::from_secs(100));
    assert_eq!((silent.domain_id, silent.domain_tag.as_str()), (None, ""));
}

#[test]
fn fact_61_version_and_vendor_are_data_and_vendors_parameters_are_skipped() {
    let guid = PREFIX.participant().to_bytes();
    let payload = big_endian(&[
        (pid::PROTOCOL_VERSION, &[2, 4, 0, 0]),
        (pid::VENDOR_ID, &[1, 1, 0, 0]),
        (0x8001, &[1; 40]),
        (pid::PARTICIPANT_GUID, &guid),
        (pid::PARTICIPANT_LEASE_DURATION, &[0, 0, 0, 10, 0, 0, 0, 0]),
        (pid::BUILTIN_ENDPOINT_SET, &[0xf0, 0, 0x0c, 0x3f]),
    ]);
    let data = ParticipantData::decode(&payload).unwrap();
    assert_eq!((data.protocol_version, data.vendor), ([2, 4], [1, 1]));
    assert_eq!(data.lease_duration, Duration::from_secs(10));
    assert_eq!(data.builtin_endpoints, 0xf000_0c3f);
}

#[test]
fn fact_16_what_must_be_understood_and_is_not_refuses_the_whole() {
    let guid = PREFIX.participant().to_bytes();
    let payload = little_endian(&[(pid::PARTICIPANT_GUID, &guid), (0x5001, &[0; 4])]);
    assert_eq!(ParticipantData::decode(&payload), Err(Malformed::NotUnderstood));
    let with_tag =
        little_endian(&[(pid::PARTICIPANT_GUID, &guid), (pid::DOMAIN_TAG, &[2, 0, 0, 0, b'x', 0, 0, 0])]);
    assert_eq!(ParticipantData::decode(&with_tag).unwrap().domain_tag, "x");
}

#[test]
fn a_guid_that_is_said_twice_counts_once() {
    let (first, second) = (PREFIX.participant(), GuidPrefix([9; 12]).participant());
    let twice = [(pid::PARTICIPANT_GUID, &first.to_bytes()[..]), (pid::PARTICIPANT_GUID, &second.to_bytes())];
    let payload = little_endian(&twice);
    assert_eq!(ParticipantData::decode(&payload).map(|data| data.guid), Ok(first));
    assert_eq!(ParticipantData::decode_key(&payload), Ok(first));
}

#[test]
fn r3_only_so_many_locators_are_kept() {
    let guid = PREFIX.participant();
    let data =
        ParticipantData { meta_unicast: (0..200).map(locator).collect(), ..ParticipantData::new(guid) };
    let kept = ParticipantData::decode(&data.encode()).unwrap().meta_unicast;
    assert_eq!(kept, (0..LOCATORS_MAX as u8).map(locator).collect::<Vec<_>>());
}

#[test]
fn fact_18_locators_of_other_transports_are_skipped_not_fatal() {
    let shared_memory = Locator { kind: 16, port: 7, address: [1; 16] };
    let tcp = Locator { kind: 4, port: 7, address: [1; 16] };
    let guid = PREFIX.participant();
    let data = ParticipantData {
        default_unicast: vec![shared_memory, tcp, locator(1)],
        ..ParticipantData::new(guid)
    };
    assert_eq!(ParticipantData::decode(&data.encode()).unwrap().default_unicast, [locator(1)]);
}

#[test]
fn a_participant_that_tells_an_identity_is_secured() {
    let guid = PREFIX.participant().to_bytes();
    let plain = little_endian(&[(pid::PARTICIPANT_GUID, &guid)]);
    assert!(!ParticipantData::decode(&plain).unwrap().is_secured);
    let secured = little_endian(&[(pid::PARTICIPANT_GUID, &guid), (pid::IDENTITY_TOKEN, &[0; 8])]);
    assert!(ParticipantData::decode(&secured).unwrap().is_secured);
}

#[test]
fn r7_a_participant_without_a_guid_of_its_kind_is_refused() {
    assert_eq!(ParticipantData::decode(&little_endian(&[])), Err(Malformed::MissingMember));
    let no_participant = PREFIX.entity(EntityId([0, 0, 1, 2])).to_bytes();
    let payload = little_endian(&[(pid::PARTICIPANT_GUID, &no_participant)]);
    assert_eq!(ParticipantData::decode(&payload), Err(Malformed::MissingMember));
    let short = little_endian(&[(pid::PARTICIPANT_GUID, &[1; 12])]);
    assert_eq!(ParticipantData::decode(&short), Err(Malformed::Truncated));
    assert_eq!(ParticipantData::decode(&[]), Err(Malformed::Truncated));
    assert_eq!(ParticipantData::decode(&[0, 1, 0, 0, 1, 0, 0, 0]), Err(Malformed::UnknownEncapsulation));
    assert_eq!(ParticipantData::decode(&[0, 3, 0, 0]), Err(Malformed::MissingSentinel));
}

#[test]
fn fact_14_keys_travel_alone_when_something_is_disposed() {
    let guid = PREFIX.participant();
    assert_eq!(ParticipantData::decode_key(&ParticipantData::encode_key(guid)), Ok(guid));
    let writer = writer().guid;
    let key = EndpointData::encode_key(writer);
    assert_eq!(EndpointData::decode_key(&key), Ok(writer));
    assert_eq!(endpoint_key(&key, true), Ok(writer.into()));
    assert_eq!(EndpointData::decode_key(&ParticipantData::encode_key(guid)), Err(Malformed::MissingMember));
}

#[test]
fn a_writer_and_a_reader_arrive_whole() {
    let announced = writer();
    assert_eq!(EndpointData::decode(&announced.encode(), VENDOR_ID).unwrap().qos.history.depth, 3);
    let arrived = EndpointData::decode(&announced.encode(), VENDOR_ID).unwrap();
    // An empty list of representations means XCDR1, and is announced as such.
    let explicit = announced.qos.clone().representation(crate::cdr::XcdrVersion::Xcdr1);
    assert_eq!(arrived, EndpointData { qos: explicit, ..announced });

    let guid = PREFIX.entity(EntityId::user_reader(2, false));
    let mut reader = EndpointData::new(guid, "Square".to_owned(), "ShapeType".to_owned());
    reader.expects_inline_qos = true;
    reader.qos.time_based_filter = Duration::from_millis(5);
    reader.qos.data_representation = vec![crate::cdr::XcdrVersion::Xcdr2];
    assert_eq!(EndpointData::decode(&reader.encode(), VENDOR_ID), Ok(reader));
}

#[test]
fn fact_61_consistency_is_read_of_our_own_announcements_only() {
    let mut announced = writer();
    announced.qos = announced.qos.consistency(ConsistencyKind::Atomic);
    let payload = announced.encode();
    let tail = [0x05, 0x8f, 4, 0, 1, 0, 0, 0, 1, 0, 0, 0];
    assert!(payload.ends_with(&tail), "{payload:?}");
    let read = |payload: &[u8], vendor| EndpointData::decode(payload, vendor).map(|it| it.qos.is_atomic());
    assert_eq!(read(&payload, VENDOR_ID), Ok(true));
    // To others the number may mean anything, and be of any length.
    assert_eq!(read(&payload, [1, 0x10]), Ok(false));
    let mut other = bare(announced.guid);
    other.truncate(other.len() - 4);
    other.extend([0x05, 0x8f, 4, 0, 9, 9, 9, 9, 0x05, 0x8f, 0, 0, 1, 0, 0, 0]);
    assert_eq!(read(&other, [1, 0x0f]), Ok(false));
    assert_eq!(read(&other, VENDOR_ID), Err(Malformed::InvalidEnum));
    // What must be understood and is of another vendor is not understood.
    let at = other.len() - 16;
    other[at + 1] |= 0x40;
    assert_eq!(read(&other, [1, 0x0f]), Err(Malformed::NotUnderstood));
}

#[test]
fn a_participant_of_any_vendor_may_use_the_number_of_a_policy_of_ours() {
    let guid = PREFIX.participant();
    let payload = big_endian(&[
        (pid::VENDOR_ID, &[1, 0x0f, 0, 0]),
        (pid::PLAINSONG_CONSISTENCY, &[9; 4]),
        (pid::PARTICIPANT_GUID, &guid.to_bytes()),
    ]);
    assert_eq!(ParticipantData::decode(&payload).map(|data| data.guid), Ok(guid));
}

/// An announcement with names only.
fn bare(guid: Guid) -> Vec<u8> {
    little_endian(&[
        (pid::ENDPOINT_GUID, &guid.to_bytes()),
        (pid::TOPIC_NAME, &[2, 0, 0, 0, b'T', 0, 0, 0]),
        (pid::TYPE_NAME, &[2, 0, 0, 0, b'Y', 0, 0, 0]),
    ])
}

#[test]
fn fact_17_absent_policies_have_the_defaults_of_that_kind_of_endpoint() {
    let writer =
        EndpointData::decode(&bare(PREFIX.entity(EntityId::user_writer(1, false))), VENDOR_ID).unwrap();
    assert_eq!(writer.qos, QosSet::writer());
    assert_eq!(writer.qos.reliability.kind, ReliabilityKind::Reliable);
    let reader =
        EndpointData::decode(&bare(PREFIX.entity(EntityId::user_reader(1, false))), VENDOR_ID).unwrap();
    // The one exception: readers from before XTypes take the very type they know (XTypes 1.3 §7.6.3.4.1).
    assert!(!reader.qos.type_consistency.allow_type_coercion);
    assert_eq!(
        QosSet { type_consistency: TypeConsistency::default(), ..reader.qos.clone() },
        QosSet::reader()
    );
    assert_eq!(reader.qos.reliability, QosSet::reader().reliability);
    assert_eq!(reader.qos.durability, Durability::Volatile);
    assert_eq!(reader.participant, PREFIX.participant());
}

#[test]
fn fact_55_a_wrong_maximum_size_is_only_remembered() {
    let mut data = writer();
    data.type_max_serialized_bytes = Some(1);
    assert_eq!(EndpointData::decode(&data.encode(), VENDOR_ID).unwrap().type_max_serialized_bytes, Some(1));
}

#[test]
fn fact_51_type_information_that_is_not_understood_does_no_harm() {
    let guid = PREFIX.entity(EntityId::user_writer(1, true)).to_bytes();
    let name: &[u8] = &[2, 0, 0, 0, b'T', 0, 0, 0];
    // Encapsulated or not, and with a DHEADER larger than the parameter.
    for information in [&[0, 7, 0, 0, 9, 9, 9, 9][..], &[0xff; 92], &[]] {
        let parameters = [
            (pid::ENDPOINT_GUID, &guid[..]),
            (pid::TOPIC_NAME, name),
            (pid::TYPE_INFORMATION, information),
            (pid::TYPE_NAME, name),
        ];
        let data = EndpointData::decode(&little_endian(&parameters), VENDOR_ID).unwrap();
        assert_eq!((&*data.topic_name, &*data.type_name), ("T", "T"));
        assert_eq!(data.type_information, None);
    }
}

#[test]
fn r7_endpoints_without_name_type_or_kind_are_refused() {
    let guid = PREFIX.entity(EntityId::user_writer(1, true)).to_bytes();
    let name: &[u8] = &[2, 0, 0, 0, b'T', 0, 0, 0];
    let nameless = little_endian(&[(pid::ENDPOINT_GUID, &guid), (pid::TYPE_NAME, name)]);
    assert_eq!(EndpointData::decode(&nameless, VENDOR_ID), Err(Malformed::MissingMember));
    let typeless = little_endian(&[(pid::ENDPOINT_GUID, &guid), (pid::TOPIC_NAME, name)]);
    assert_eq!(EndpointData::decode(&typeless, VENDOR_ID), Err(Malformed::MissingMember));
    assert_eq!(EndpointData::decode(&bare(PREFIX.participant()), VENDOR_ID), Err(Malformed::InvalidEnum));
    let anonymous = little_endian(&[(pid::TOPIC_NAME, name), (pid::TYPE_NAME, name)]);
    assert_eq!(EndpointData::decode(&anonymous, VENDOR_ID), Err(Malformed::MissingMember));
}

#[test]
fn r3_names_have_a_limit() {
    let mut data = writer();
    data.topic_name = "t".repeat(NAME_BYTES_MAX);
    assert_eq!(EndpointData::decode(&data.encode(), VENDOR_ID).unwrap().topic_name, data.topic_name);
    data.topic_name.push('t');
    assert_eq!(EndpointData::decode(&data.encode(), VENDOR_ID), Err(Malformed::LengthOutOfRange));
}

#[test]
fn fact_27_a_participant_message_is_keyed_by_participant_and_kind() {
    let message = ParticipantMessage { prefix: PREFIX, kind: ParticipantMessage::AUTOMATIC, data: vec![1] };
    let payload = message.encode();
    assert_eq!(payload[..4], [0, 1, 0, 0]);
    assert_eq!(payload[16..], [0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(ParticipantMessage::decode(&payload), Ok(message.clone()));
    assert_eq!(message_key(&payload, false), Ok(message.key().into()));
    assert_eq!(message_key(&payload[..20], true), Ok(message.key().into()), "the key alone");

    let big = [&[0, 0, 0, 0][..], &PREFIX.0, &[0, 0, 0, 2], &[0, 0, 0, 2, 8, 9, 0, 0]].concat();
    let manual = ParticipantMessage::decode(&big).unwrap();
    assert_eq!(
        (manual.kind, manual.data.as_slice()),
        (ParticipantMessage::MANUAL_BY_PARTICIPANT, &[8, 9][..])
    );
    let endless = [&[0, 1, 0, 0][..], &PREFIX.0, &[0, 0, 0, 2], &[0xff; 4]].concat();
    assert_eq!(ParticipantMessage::decode(&endless), Err(Malformed::LengthOutOfRange));
    assert_eq!(ParticipantMessage::decode(&[0, 3, 0, 0]), Err(Malformed::UnknownEncapsulation));
}

fn filtering_reader() -> EndpointData {
    let guid = PREFIX.entity(EntityId::user_reader(2, true));
    EndpointData {
        content_filter: Some(ContentFilter {
            topic_name: "Red".to_owned(),
            related_topic_name: "Square".to_owned(),
            class_name: ContentFilter::SQL.to_owned(),
            expression: "color = %0".to_owned(),
            parameters: vec!["'RED'".to_owned()],
        }),
        ..EndpointData::new(guid, "Square".to_owned(), "ShapeType".to_owned())
    }
}

#[test]
fn a_content_filter_is_announced() {
    let data = filtering_reader();
    assert_eq!(EndpointData::decode(&data.encode(), VENDOR_ID).unwrap().content_filter, data.content_filter);
}

#[test]
fn r15_a_content_filter_beyond_all_limits_is_ignored_and_its_reader_is_not() {
    let announced = |change: &dyn Fn(&mut ContentFilter)| {
        let mut data = filtering_reader();
        data.content_filter.iter_mut().for_each(change);
        EndpointData::decode(&data.encode(), VENDOR_ID).unwrap().content_filter
    };
    assert!(announced(&|filter| filter.parameters = vec!["1".to_owned(); 100]).is_some());
    assert!(announced(&|filter| filter.parameters = vec!["1".to_owned(); 101]).is_none());
    assert!(announced(&|filter| filter.parameters = vec!["1".repeat(257)]).is_none());
    assert!(announced(&|filter| filter.expression = "x".repeat(4097)).is_none());
    assert!(announced(&|filter| filter.topic_name = "x".repeat(257)).is_none());
}

#[test]
fn fact_62_the_octets_of_a_content_filter_and_its_signature() {
    let value = "100000005371756172655f66696c7465726564000700000053717561726500000700000044445353514c0000\
                 0b000000636f6c6f72203d202530000001000000060000002752454427000000";
    let expected: String = "35004c00".chars().chain(value.chars().filter(|it| *it != ' ')).collect();
    let mut data = filtering_reader();
    let filter = data.content_filter.as_mut().unwrap();
    filter.topic_name = "Square_filtered".to_owned();
    let md5: String = filter.signature().0.iter().map(|octet| format!("{octet:02x}")).collect();
    assert_eq!(md5, "5619828333943ebb3744337f9707c029");
    let octets: String = data.encode().as_slice().iter().map(|octet| format!("{octet:02x}")).collect();
    assert!(octets.contains(&expected), "{octets}");
}
