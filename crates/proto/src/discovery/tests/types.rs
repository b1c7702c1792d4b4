//! Endpoints of one topic whose types differ: others are asked for theirs, and people are told the first
//! member that differs, whatever the network does.

use std::any::TypeId;
use std::sync::Arc;

use super::network::{HOP, Network, READER, WRITER, config, endpoint, prefix, udp};
use crate::cdr::{Cdr, Extensibility, XcdrVersion};
use crate::discovery::{Command, Difference, LocalEndpoint, Mismatch, MismatchReason};
use crate::guid::{EntityId, Guid};
use crate::outbox::DataHeader;
use crate::outbox::{Event, Outbox};
use crate::payload::Payload;
use crate::qos::QosSet;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::Duration;
use crate::types::{
    AggregateDescription, Bounds, MemberDescription, TypeBuilder, TypeDescription, TypeHash, TypeIdentifiers,
    TypeInformation, lookup,
};

type Members = &'static [MemberDescription];

const fn member(
    name: &'static str,
    id: u32,
    describe: fn(&mut TypeBuilder) -> Option<TypeIdentifiers>,
) -> MemberDescription {
    MemberDescription::new(name, id, describe)
}

const COLOR: MemberDescription = MemberDescription {
    key: true,
    must_understand: true,
    bounds: &Bounds::of(Some(128)),
    ..member("color", 0, String::describe)
};
const X: MemberDescription = member("x", 1, i32::describe);
const SIZE: MemberDescription = member("size", 2, i32::describe);
pub(super) const SHAPE: Members = &[COLOR, X, SIZE];
pub(super) const DOUBLE: Members = &[COLOR, X, member("size", 2, f64::describe)];

/// An appendable structure of the name all tests use.
pub(super) fn described(members: Members) -> Arc<TypeDescription> {
    named("ShapeType", Extensibility::Appendable, members)
}

fn named(name: &'static str, extensibility: Extensibility, members: Members) -> Arc<TypeDescription> {
    struct Named;
    let described = TypeDescription::build(|types| {
        let rust_type = TypeId::of::<Named>();
        let about = AggregateDescription { rust_type, name, extensibility, hash_ids: false, nested: false };
        types.structure(&about, None, members)
    });
    Arc::new(described.expect("it can be described"))
}

pub(super) fn typed(node: usize, entity: EntityId, qos: QosSet, ty: &Arc<TypeDescription>) -> LocalEndpoint {
    LocalEndpoint { type_description: Some(Arc::clone(ty)), ..endpoint(prefix(node), entity, "Square", qos) }
}

/// Two nodes that know nothing of each other yet: a writer of one type, a reader of another.
fn strangers(written: &Arc<TypeDescription>, read: &Arc<TypeDescription>, requested: QosSet) -> Network {
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    let writer = typed(0, WRITER, QosSet::writer(), written);
    let reader = typed(1, READER, requested, read);
    network.call(0, |participant, now, out| participant.add_endpoint(now, writer, out)).unwrap();
    network.call(1, |participant, now, out| participant.add_endpoint(now, reader, out)).unwrap();
    network.start(0);
    network.start(1);
    network
}

fn met(written: &Arc<TypeDescription>, read: &Arc<TypeDescription>, requested: QosSet) -> Network {
    let mut network = strangers(written, read, requested);
    network.run_for(Duration::from_millis(500));
    network
}

fn mismatch(network: &Network, node: usize) -> Option<Mismatch> {
    network.nodes[node].participant.mismatch(prefix(0).entity(WRITER), prefix(1).entity(READER))
}

fn told(network: &Network, node: usize) -> usize {
    let events = network.nodes[node].events.iter();
    events.filter(|(_, event)| matches!(event, Event::MismatchChanged { .. })).count()
}

fn matched(network: &Network) -> bool {
    network.matches(0).len() == 1 && network.matches(1).len() == 1
}

#[test]
fn the_first_member_that_differs_is_named_on_both_sides() {
    let network = met(&described(SHAPE), &described(DOUBLE), QosSet::reader());
    for node in [0, 1] {
        let mismatch = mismatch(&network, node).expect("a mismatch");
        assert_eq!(mismatch.reason, MismatchReason::TypeDefinition);
        assert_eq!(
            mismatch.differences[0].to_string(),
            "type: the writer has \"ShapeType\" with member `size`: int32, the reader wants \"ShapeType\" with \
             member `size`: float64; define the type alike on both sides, or use another topic for the other type"
        );
        assert_eq!(told(&network, node), 1, "it is told once, when all is known");
        assert!(network.matches(node).is_empty(), "they never matched");
    }
}

#[test]
fn equal_types_match_without_a_request() {
    let ty = described(SHAPE);
    let mut network = strangers(&ty, &ty, QosSet::reader());
    network.capture = Some(Vec::new());
    network.run_for(Duration::from_millis(500));
    assert!(matched(&network));
    let asked = |bytes: &[u8]| bytes.windows(16).any(|it| it == b"dds.builtin.TOS.");
    assert!(!network.capture.unwrap().iter().any(|(_, _, bytes)| asked(bytes)));
}

#[test]
fn a_reader_with_more_members_at_the_end_matches_unless_it_forbids_widening() {
    const MORE: Members = &[COLOR, X, SIZE, member("angle", 3, f32::describe)];
    let (shape, more) = (described(SHAPE), described(MORE));
    assert!(matched(&met(&shape, &more, QosSet::reader())));
    assert!(matched(&met(&more, &shape, QosSet::reader())));
    let mut strict = QosSet::reader();
    strict.type_consistency.prevent_type_widening = true;
    let network = met(&shape, &more, strict);
    let difference = &mismatch(&network, 1).expect("a mismatch").differences[0];
    assert_eq!(difference.writer, "\"ShapeType\" with member `angle`: missing");
    assert_eq!(difference.reader, "\"ShapeType\" with member `angle`: float32");
    let mut equal = QosSet::reader();
    equal.type_consistency.allow_type_coercion = false;
    assert_eq!(
        mismatch(&met(&more, &shape, equal), 0).expect("a mismatch").reason,
        MismatchReason::TypeDefinition
    );
}

#[test]
fn types_of_other_names_are_compared_too() {
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    let writer = typed(0, WRITER, QosSet::writer(), &described(SHAPE));
    let circle = named("Circle", Extensibility::Appendable, DOUBLE);
    let reader = LocalEndpoint { type_name: "Circle".into(), ..typed(1, READER, QosSet::reader(), &circle) };
    network.call(0, |participant, now, out| participant.add_endpoint(now, writer, out)).unwrap();
    network.call(1, |participant, now, out| participant.add_endpoint(now, reader, out)).unwrap();
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_millis(500));
    for node in [0, 1] {
        let mismatch = mismatch(&network, node).expect("a mismatch");
        assert_eq!(mismatch.reason, MismatchReason::TypeName);
        let Difference { writer, reader, note, .. } = &mismatch.differences[0];
        assert_eq!((writer.as_str(), reader.as_str()), ("\"ShapeType\"", "\"Circle\""));
        assert_eq!(note, "member `size` is int32 at the writer, float64 at the reader");
        assert_eq!(told(&network, node), 1);
    }
}

#[test]
fn final_and_appendable_types_meet_in_xcdr1_only() {
    let (shape, last) = (described(SHAPE), named("ShapeType", Extensibility::Final, SHAPE));
    assert!(matched(&met(&shape, &last, QosSet::reader())));
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    let xcdr2 = |qos: QosSet| QosSet { data_representation: vec![XcdrVersion::Xcdr2], ..qos };
    let writer = typed(0, WRITER, xcdr2(QosSet::writer()), &shape);
    let reader = typed(1, READER, xcdr2(QosSet::reader()), &last);
    network.call(0, |participant, now, out| participant.add_endpoint(now, writer, out)).unwrap();
    network.call(1, |participant, now, out| participant.add_endpoint(now, reader, out)).unwrap();
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_millis(500));
    let difference = &mismatch(&network, 0).expect("a mismatch").differences[0];
    assert_eq!(
        (difference.writer.as_str(), difference.reader.as_str()),
        ("\"ShapeType\", appendable", "\"ShapeType\", final")
    );
}

#[test]
fn a_reader_that_forces_type_validation_matches_who_tells_an_equal_type() {
    let mut strict = QosSet::reader();
    strict.type_consistency.force_type_validation = true;
    let ty = described(SHAPE);
    assert!(matched(&met(&ty, &ty, strict.clone())));
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    network.add_writer(0, QosSet::writer());
    let reader = typed(1, READER, strict, &ty);
    network.call(1, |participant, now, out| participant.add_endpoint(now, reader, out)).unwrap();
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_millis(500));
    assert_eq!(mismatch(&network, 0).expect("a mismatch").reason, MismatchReason::TypeInformation);
}

#[test]
fn questions_and_answers_survive_a_bad_network() {
    let mut network = strangers(&described(SHAPE), &described(DOUBLE), QosSet::reader());
    network.loss = 30;
    network.run_for(Duration::from_secs(10));
    for node in [0, 1] {
        let reason = mismatch(&network, node).map(|it| it.reason);
        // What is decided without an answer is decided by name, which both sides are free to do.
        assert!(reason == Some(MismatchReason::TypeDefinition) || !network.matches(node).is_empty());
    }
    let known = [0, 1].map(|node| mismatch(&network, node).is_some());
    assert!(known.contains(&true), "at least one of the answers came in time");
}

/// Lets a node's answers about types, and nothing else, vanish.
fn without_answers(network: &mut Network) {
    network.loses = Some(|bytes| bytes.windows(4).any(|it| it == EntityId::TYPE_LOOKUP[2].0));
}

#[test]
fn without_an_answer_names_decide_after_a_while() {
    let mut network = strangers(&described(SHAPE), &described(DOUBLE), QosSet::reader());
    without_answers(&mut network);
    network.run_for(Duration::from_millis(700));
    assert!(network.matches(0).is_empty() && mismatch(&network, 0).is_none(), "undecided so far");
    network.run_for(Duration::from_secs(2));
    assert!(matched(&network));
    let at = network.first(0, |command| matches!(command, Command::MatchReader { .. })).unwrap();
    assert!(at < 3_000_000_000, "names decide after a second: {at}");
}

#[test]
fn an_answer_after_names_have_decided_changes_nothing() {
    let mut network = strangers(&described(SHAPE), &described(DOUBLE), QosSet::reader());
    without_answers(&mut network);
    network.run_for(Duration::from_secs(3));
    assert!(matched(&network));
    network.loses = None;
    network.run_for(Duration::from_secs(5));
    assert!(matched(&network), "who has matched stays matched");
}

/// An answer in the name of node 1 that says `object` is the type `hash`.
fn forged_answer(network: &mut Network, number: i64, objects: &[(TypeHash, &[u8])]) {
    let writer = prefix(1).entity(EntityId::TYPE_LOOKUP[2]);
    let id = lookup::RequestId { writer, number: 1 };
    let mut out = Outbox::new();
    let mut message = out.message(prefix(1), &[udp("10.0.0.1", 7410)], 65_000);
    let header = DataHeader {
        reader: EntityId::UNKNOWN,
        writer: writer.entity,
        sequence_number: SequenceNumber(number),
        inline_qos: &[],
        key_only: false,
    };
    assert!(message.data(&header, &Payload::from_vec(lookup::encode_reply(id, objects))));
    message.finish();
    let datagram = out.datagram(&out.transmits()[0]);
    network.inject(udp("10.0.0.2", 7410), udp("10.0.0.1", 7410), &datagram);
}

#[test]
fn a_question_for_the_service_of_nobody_is_for_all() {
    let ty = described(SHAPE);
    let mut network = met(&ty, &ty, QosSet::reader());
    let (hash, object) = ty.objects.iter().find(|(hash, _)| hash.complete).expect("a complete type");
    let writer = prefix(1).entity(EntityId::TYPE_LOOKUP[0]);
    // As tools of Cyclone DDS ask.
    let request = lookup::Request {
        id: lookup::RequestId { writer, number: 1 },
        instance: lookup::instance_of(Guid::UNKNOWN),
        types: vec![*hash],
    };
    let header = DataHeader {
        reader: EntityId::UNKNOWN,
        writer: writer.entity,
        sequence_number: SequenceNumber(1),
        inline_qos: &[],
        key_only: false,
    };
    let mut out = Outbox::new();
    let mut message = out.message(prefix(1), &[udp("10.0.0.1", 7410)], 65_000);
    assert!(message.data(&header, &Payload::from_vec(request.encode())));
    message.finish();
    network.capture = Some(Vec::new());
    network.inject(udp("10.0.0.2", 7410), udp("10.0.0.1", 7410), &out.datagram(&out.transmits()[0]));
    network.run_for(Duration(10 * HOP as i64));
    let told = |bytes: &[u8]| bytes.windows(object.len()).any(|it| it == object.as_slice());
    assert!(network.capture.unwrap().iter().any(|(_, _, bytes)| told(bytes)), "the type is told");
}

#[test]
fn a_type_that_is_not_what_its_hash_says_is_not_believed() {
    let read = described(DOUBLE);
    let mut network = strangers(&described(SHAPE), &read, QosSet::reader());
    without_answers(&mut network);
    network.run_for(Duration::from_millis(300));
    network.loses = None;
    let hash = *read.objects.keys().find(|hash| hash.complete).expect("a complete type");
    let shape = described(SHAPE);
    let other = shape.objects.iter().find(|(hash, _)| hash.complete).expect("a complete type").1;
    let before = network.drops(0, DropReason::DiscoveryLimit);
    forged_answer(&mut network, 1, &[(hash, other)]);
    network.run_for(Duration(10 * HOP as i64));
    assert_eq!(network.drops(0, DropReason::DiscoveryLimit), before + 1);
}

#[test]
fn answers_that_nobody_asked_for_are_not_kept() {
    let ty = described(SHAPE);
    let mut network = met(&ty, &ty, QosSet::reader());
    let other = described(DOUBLE);
    let objects: Vec<_> = other.objects.iter().map(|(hash, octets)| (*hash, octets.as_slice())).collect();
    forged_answer(&mut network, 1, &objects);
    network.run_for(Duration(10 * HOP as i64));
    let participant = &network.nodes[0].participant;
    let hash = objects[0].0;
    assert_eq!(participant.matching.types.missing(prefix(1), hash, 1), [hash]);
}

#[test]
fn types_go_with_the_participant_that_told_them() {
    let read = described(DOUBLE);
    let mut network = met(&described(SHAPE), &read, QosSet::reader());
    let hash = *read.objects.keys().find(|hash| hash.complete).expect("a complete type");
    let missing =
        |network: &Network| network.nodes[0].participant.matching.types.missing(prefix(1), hash, 1).len();
    assert_eq!(missing(&network), 0);
    network.call(1, |participant, now, out| participant.shutdown(now, out));
    network.run_for(Duration(10 * HOP as i64));
    assert_eq!(missing(&network), 1);
    assert!(mismatch(&network, 0).is_none());
}

#[test]
fn an_endpoint_that_tells_a_type_says_so_in_its_announcement() {
    let ty = described(SHAPE);
    let guid = Guid { prefix: prefix(0), entity: WRITER };
    let data = crate::discovery::builtin::EndpointData {
        type_information: Some(ty.information.clone()),
        ..crate::discovery::builtin::EndpointData::new(guid, "Square".into(), "ShapeType".into())
    };
    let read =
        crate::discovery::builtin::EndpointData::decode(&data.encode(), crate::vendor::PLAINSONG).unwrap();
    assert_eq!(read.type_information, Some(ty.information.clone()));
    assert_eq!(TypeInformation::decode(&ty.information.encode()), Ok(ty.information.clone()));
}
