//! Topics whose type is known to others alone: found, read and written as values.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{PATIENCE, fresh_domain, participant, until};
use plainsong::dynamic::ToldType;
use plainsong::prelude::*;
use plainsong::types::{DataValue, Scalar};
use plainsong::{Error, PreconditionNotMet, WaitedFor};

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
struct Robot {
    #[dds(key)]
    name: String,
    position: [f64; 2],
    mode: Mode,
    load: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
enum Mode {
    #[default]
    Idle,
    Moving,
}

fn robot(name: &str) -> Robot {
    Robot { name: name.to_owned(), position: [1.5, -2.0], mode: Mode::Moving, load: None }
}

fn qos() -> [QosSet; 2] {
    let kept = |qos: QosSet| QosSet { durability: Durability::TransientLocal, ..qos.reliable().keep_all() };
    [kept(QosSet::writer()).representation(XcdrVersion::Xcdr2), kept(QosSet::reader())]
}

/// A participant with a writer, and its partition.
fn with_writer(domain: u16) -> (DomainParticipant, DataWriter<Robot>) {
    let of_writer = participant(domain);
    let topic = of_writer.create_topic::<Robot>("Robots", QosSet::default()).unwrap();
    let group = QosSet { partition: vec!["hall".to_owned()], ..QosSet::default() };
    let writer = of_writer.create_publisher(group).unwrap().create_writer(&topic, qos()[0].clone()).unwrap();
    (of_writer, writer)
}

#[test]
fn a_topic_is_read_with_the_type_that_its_writer_tells() {
    let domain = fresh_domain();
    let (_of_writer, writer) = with_writer(domain);
    writer.write(&robot("first")).unwrap();
    let other = participant(domain);
    let topic = other.find_any_topic("Robots", Duration::from_secs(30)).unwrap();
    assert_eq!(topic.type_name(), "Robot");
    let endpoints = other.look_up_topic("Robots").unwrap();
    assert!(endpoints[0].is_writer() && matches!(endpoints[0].told, ToldType::Known(_)));
    let fitting = FittingQos::of_reader(&endpoints);
    assert_eq!(fitting.group.partition, ["hall"]);
    assert!(fitting.endpoint.is_reliable() && fitting.endpoint.durability == Durability::TransientLocal);
    let subscriber = other.create_subscriber(fitting.group).unwrap();
    let reader = subscriber.create_reader(&topic, fitting.endpoint.keep_all()).unwrap();
    let mut taken = Vec::new();
    until("samples", || {
        taken.extend(reader.take_data().unwrap());
        !taken.is_empty()
    });
    let data = &taken[0].data;
    assert_eq!(data.get("name").unwrap().get(), DataValue::Text("first".into()));
    assert_eq!(data.get("position[1]").unwrap().get(), DataValue::Float64(-2.0));
    assert_eq!(data.get("mode").unwrap().get(), DataValue::Enumeration { value: 1, literal: Some("Moving") });
    assert!(data.get("load").unwrap().is_absent() && taken[0].bytes > 16);

    // Of an instance that has ended the key is told.
    writer.dispose(&robot("first")).unwrap();
    taken.clear();
    until("samples", || {
        taken.extend(reader.take_data().unwrap());
        !taken.is_empty()
    });
    assert!(!taken[0].info.valid_data);
    assert_eq!(taken[0].data.get("name").unwrap().get(), DataValue::Text("first".into()));
}

#[test]
fn a_topic_is_written_with_the_type_that_its_reader_tells() {
    let domain = fresh_domain();
    let of_reader = participant(domain);
    let topic = of_reader.create_topic::<Robot>("Robots", QosSet::default()).unwrap();
    let mut wanted = qos()[1].clone().representation(XcdrVersion::Xcdr2);
    wanted.deadline = Duration::from_secs(100);
    let subscriber = of_reader.create_subscriber(QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&topic, wanted).unwrap();
    let other = participant(domain);
    let found = other.find_any_topic("Robots", Duration::from_secs(30)).unwrap();
    let fitting = FittingQos::of_writer(&other.look_up_topic("Robots").unwrap());
    assert_eq!(fitting.endpoint.data_representation, [XcdrVersion::Xcdr2]);
    let writer =
        other.create_publisher(fitting.group).unwrap().create_writer(&found, fitting.endpoint).unwrap();
    let mut data = writer.new_data().unwrap();
    data.set("name", "second").unwrap();
    data.set("position[0]", 1.5).unwrap();
    data.set("position[1]", -2).unwrap();
    data.set("mode", "Moving").unwrap();
    writer.write_data(&data).unwrap();
    let sample = reader.wait_take(PATIENCE).unwrap().remove(0);
    assert_eq!(sample.data, Some(robot("second")));
    data.set("mode", Scalar::Integer(7)).unwrap_err();
    writer.dispose_data(&data).unwrap();
    let ended = reader.wait_take(PATIENCE).unwrap().remove(0);
    assert_eq!((ended.data, ended.info.instance_state), (None, InstanceState::NotAliveDisposed));
}

#[test]
fn why_there_is_no_type_is_said() {
    let domain = fresh_domain();
    let other = participant(domain);
    let error = other.find_any_topic("Robots", Duration::from_millis(10)).map(drop).unwrap_err();
    assert!(matches!(error, Error::Timeout { waited_for: WaitedFor::Topic, .. }));
    assert!(
        error.to_string().contains("finding topic 'Robots' and its type (nobody else has it)"),
        "{error}"
    );
    let derived = other.create_topic::<Robot>("Robots", QosSet::default()).unwrap();
    let subscriber = other.create_subscriber(QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&derived.as_any(), QosSet::default()).unwrap();
    let error = reader.take_data().unwrap_err();
    assert!(matches!(error, Error::PreconditionNotMet(PreconditionNotMet::NotDynamic { .. })), "{error}");
}
