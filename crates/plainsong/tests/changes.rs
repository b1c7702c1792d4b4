//! Changes as they came: what a recorder takes from a reader of a type that it does not know.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::{fresh_domain, participant, until};
use plainsong::Error;
use plainsong::discovered::ToldType;
use plainsong::prelude::*;
use plainsong::serialized::{Ending, SerializedChange};
use plainsong::time::Time;
use plainsong::types::{OpaqueType, TypeDescription};

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
struct Light {
    #[dds(key)]
    id: u32,
    level: u16,
}

const DISPOSED: Ending = Ending { disposed: true, unregistered: false, hash_only: false };
const UNREGISTERED: Ending = Ending { disposed: false, unregistered: true, hash_only: false };

fn writer(participant: &DomainParticipant, qos: QosSet) -> DataWriter<Light> {
    let topic = participant.create_topic::<Light>("Lights", QosSet::default()).unwrap();
    participant.create_publisher(QosSet::default()).unwrap().create_writer(&topic, qos).unwrap()
}

fn changes(reader: &AnyDataReader, count: usize) -> Vec<SerializedChange> {
    let mut changes = Vec::new();
    until("all changes arrive", || {
        changes.extend(reader.take_changes().unwrap());
        changes.len() >= count
    });
    assert_eq!(changes.len(), count);
    changes
}

#[test]
fn every_change_is_there_in_its_order_whoever_owns_the_instance() {
    let domain = fresh_domain();
    let (writing, recording) = (participant(domain), participant(domain));
    let qos = |strength| QosSet {
        ownership: Ownership::Exclusive,
        ownership_strength: strength,
        ..QosSet::writer().reliable().keep_all()
    };
    let (strong, weak) = (writer(&writing, qos(2)), writer(&writing, qos(1)));

    let ty = Arc::new(OpaqueType::new("Light", true));
    let topic = recording.create_any_topic("Lights", ty, QosSet::default()).unwrap();
    let subscriber = recording.create_subscriber(QosSet::default()).unwrap();
    let qos = QosSet { ownership: Ownership::Exclusive, ..QosSet::reader().reliable().keep_all() };
    let reader: AnyDataReader = subscriber.create_reader(&topic, qos).unwrap();
    until("both writers are matched", || reader.matched_publications().unwrap().len() == 2);
    until("the writers know", || {
        [&strong, &weak].iter().all(|it| it.matched_subscriptions().unwrap().len() == 1)
    });

    let (one, two) = (Light { id: 1, level: 10 }, Light { id: 2, level: 20 });
    let at = |seconds: i64| WriteOptions::new().source_timestamp(Time(seconds * 1_000_000_000));
    strong.write_with(&one, &at(1)).unwrap();
    strong.dispose_with(&one, &at(2)).unwrap();
    strong.write_with(&one, &at(3)).unwrap();
    strong.write_with(&two, &at(4)).unwrap();
    strong.dispose_with(&two, &at(5)).unwrap();
    strong.dispose_with(&two, &at(6)).unwrap();
    let first = changes(&reader, 6);
    weak.write_with(&one, &at(7)).unwrap();
    weak.dispose_with(&one, &at(8)).unwrap();
    let second = changes(&reader, 2);

    let seen: Vec<_> =
        first.iter().chain(&second).map(|it| (it.source_timestamp.0 / 1_000_000_000, it.ending)).collect();
    let ends = Some(DISPOSED);
    let expected = [(1, None), (2, ends), (3, None), (4, None), (5, ends), (6, ends), (7, None), (8, ends)];
    assert_eq!(seen, expected);
    assert!(first.iter().all(|it| it.writer == Guid::from(strong.instance_handle())));
    assert!(second.iter().all(|it| it.writer == Guid::from(weak.instance_handle())));
    // Each says which instance it ends.
    let key = |change: &SerializedChange| change.payload.as_slice()[4..8].to_vec();
    assert_eq!([key(&first[1]), key(&first[4])], [vec![1, 0, 0, 0], vec![2, 0, 0, 0]]);
}

#[test]
fn a_writer_that_is_done_with_an_instance_says_so_though_others_are_not() {
    let domain = fresh_domain();
    let (writing, recording) = (participant(domain), participant(domain));
    let mut qos = QosSet::writer().reliable().keep_all();
    qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
    let (one, other) = (writer(&writing, qos.clone()), writer(&writing, qos));
    let topic = recording
        .create_any_topic("Lights", Arc::new(OpaqueType::new("Light", true)), QosSet::default())
        .unwrap();
    let subscriber = recording.create_subscriber(QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&topic, QosSet::reader().reliable().keep_all()).unwrap();
    until("both match", || {
        [&one, &other].iter().all(|it| it.matched_subscriptions().unwrap().len() == 1)
            && reader.matched_publications().unwrap().len() == 2
    });
    let light = Light { id: 5, level: 1 };
    one.write(&light).unwrap();
    other.write(&light).unwrap();
    changes(&reader, 2);
    one.unregister_instance(&light).unwrap();
    let last = changes(&reader, 1);
    assert_eq!((last[0].ending, last[0].writer), (Some(UNREGISTERED), Guid::from(one.instance_handle())));
}

#[test]
fn a_reader_with_instances_has_no_changes_and_types_of_others_are_told() {
    let domain = fresh_domain();
    let (writing, reading) = (participant(domain), participant(domain));
    let writer = writer(&writing, QosSet::writer());
    let topic = reading.create_topic::<Light>("Lights", QosSet::default()).unwrap();
    let subscriber = reading.create_subscriber(QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&topic, QosSet::reader()).unwrap();
    assert!(matches!(reader.as_any().take_changes(), Err(Error::PreconditionNotMet(_))));

    until("the writer is known", || !reader.matched_publications().unwrap().is_empty());
    let mut told = ToldType::Untold;
    until("the type is told", || {
        told = reading.discovered_type(writer.instance_handle()).unwrap();
        told != ToldType::Awaited
    });
    assert_eq!(told, ToldType::Known(Box::new(TypeDescription::of::<Light>().unwrap())));
}
