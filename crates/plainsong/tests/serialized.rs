//! Types as objects: endpoints of a described type, with encoded samples, among those of the derived type.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::{PATIENCE, fresh_domain, participant, reader, until, writer};
use plainsong::Error;
use plainsong::cdr::{self, Endianness};
use plainsong::prelude::*;
use plainsong::time::Time;
use plainsong::types::TypeDescription;
use plainsong_proto::type_support;

/// The key is long: instances are told apart by more than their hash.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
struct Robot {
    #[dds(key)]
    name: String,
    position: Position,
    load: Option<u16>,
    track: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
struct Position {
    x: f64,
    #[dds(key)]
    floor: i16,
}

/// Another type of the same name.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(name = "Robot")]
struct Impostor {
    #[dds(key)]
    name: String,
    position: f32,
}

fn robot(name: &str, x: f64) -> Robot {
    let position = Position { x, floor: 3 };
    Robot { name: name.to_owned(), position, load: Some(7), track: vec![1, 2, 3] }
}

fn described<T: DdsType>() -> Arc<dyn TypeSupport> {
    let description = TypeDescription::of::<T>().unwrap();
    Arc::new(DynamicType::new(T::TYPE_NAME, Arc::new(description)).unwrap())
}

fn encoded(sample: &Robot, version: XcdrVersion, endianness: Endianness) -> Vec<u8> {
    let mut payload = Vec::new();
    cdr::to_payload(sample, version, endianness, &mut payload).unwrap();
    payload
}

fn key_of(sample: &Robot, version: XcdrVersion) -> Vec<u8> {
    let mut payload = Vec::new();
    cdr::key_to_payload(sample, version, Endianness::Big, &mut payload).unwrap();
    payload
}

fn qos(version: XcdrVersion) -> [QosSet; 2] {
    let represented =
        |qos: QosSet| QosSet { data_representation: vec![version], ..qos.reliable().keep_all() };
    [represented(QosSet::writer()), represented(QosSet::reader())]
}

fn any_writer(participant: &DomainParticipant, qos: QosSet) -> AnyDataWriter {
    let topic = participant.create_any_topic("Robots", described::<Robot>(), QosSet::default()).unwrap();
    participant.create_publisher(QosSet::default()).unwrap().create_writer(&topic, qos).unwrap()
}

fn any_reader(participant: &DomainParticipant, qos: QosSet) -> AnyDataReader {
    let topic = participant.create_any_topic("Robots", described::<Robot>(), QosSet::default()).unwrap();
    participant.create_subscriber(QosSet::default()).unwrap().create_reader(&topic, qos).unwrap()
}

/// What a reader takes within [`PATIENCE`], `count` samples in all.
fn taken(reader: &AnyDataReader, count: usize) -> Vec<SerializedSample> {
    let mut samples = Vec::new();
    until("the samples come", || {
        samples.extend(reader.take_serialized().unwrap());
        samples.len() >= count
    });
    samples
}

fn taken_typed(reader: &DataReader<Robot>, count: usize) -> Vec<Sample<Robot>> {
    let mut samples = Vec::new();
    until("the samples come", || {
        samples.extend(reader.take().unwrap());
        samples.len() >= count
    });
    samples
}

const VERSIONS: [XcdrVersion; 2] = [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2];

#[test]
fn a_writer_of_encoded_samples_writes_to_readers_of_the_derived_type() {
    for version in VERSIONS {
        let domain = fresh_domain();
        let participants = [participant(domain), participant(domain)];
        let [writer_qos, reader_qos] = qos(version);
        let reader = reader::<Robot>(&participants[1], "Robots", reader_qos);
        let writer = any_writer(&participants[0], writer_qos);
        until("they match", || writer.matched_subscriptions().unwrap().len() == 1);
        until("they match", || reader.matched_publications().unwrap().len() == 1);

        let long = Robot { track: (0..5_000).collect(), ..robot("R2", 2.0) };
        writer.write_serialized(&encoded(&robot("C3", 1.0), version, Endianness::Big)).unwrap();
        writer.write_serialized(&encoded(&long, version, Endianness::Little)).unwrap();
        let (key, stamp) = (key_of(&robot("C3", 9.0), version), Time(1_234_000_000_000));
        let handle = writer.lookup_instance_serialized(&key).unwrap().expect("it was written");
        let again = encoded(&robot("C3", 4.0), version, Endianness::Little);
        writer
            .write_serialized_with(&again, &WriteOptions::new().instance(handle).source_timestamp(stamp))
            .unwrap();
        writer.dispose_serialized(&key).unwrap();
        writer.unregister_instance_serialized(&key_of(&long, version)).unwrap();

        let samples = taken_typed(&reader, 5);
        let data: Vec<_> = samples.iter().filter_map(|sample| sample.data.clone()).collect();
        let of = |name: &str| data.iter().filter(|it| it.name == name).cloned().collect::<Vec<_>>();
        assert_eq!(of("C3"), [robot("C3", 1.0), robot("C3", 4.0)]);
        assert_eq!(of("R2"), [long]);
        assert!(samples.iter().any(|it| it.info.source_timestamp == stamp));
        let of_c3 = samples.iter().find(|it| it.data.is_none() && it.info.instance_handle == handle);
        assert_eq!(of_c3.unwrap().info.instance_state, InstanceState::NotAliveDisposed);
        assert_eq!(reader.lookup_instance(&robot("C3", 0.0)).unwrap(), Some(handle));

        let key = key_of(&robot("BB8", 0.0), version);
        let handle = writer.register_instance_serialized(&key).unwrap();
        let known: Robot = cdr::key_from_payload(&writer.key_value_serialized(handle).unwrap()).unwrap();
        assert_eq!(
            (known.name.as_str(), writer.lookup_instance_serialized(&key).unwrap()),
            ("BB8", Some(handle))
        );
        let unknown = WriteOptions::new().instance(InstanceHandle([7; 16]));
        for refused in [
            writer.dispose_serialized_with(&key, &unknown),
            writer.unregister_instance_serialized_with(&key, &unknown),
        ] {
            assert!(matches!(refused, Err(Error::BadParameter(_))));
        }
    }
}

#[test]
fn a_reader_of_encoded_samples_reads_from_writers_of_the_derived_type() {
    for version in VERSIONS {
        let domain = fresh_domain();
        let participants = [participant(domain), participant(domain)];
        let [writer_qos, reader_qos] = qos(version);
        let writer = writer::<Robot>(&participants[0], "Robots", writer_qos);
        let reader = any_reader(&participants[1], reader_qos);
        until("they match", || writer.matched_subscriptions().unwrap().len() == 1);
        until("they match", || reader.matched_publications().unwrap().len() == 1);

        let long = Robot { track: (0..5_000).collect(), ..robot("R2", 2.0) };
        writer.write(&robot("C3", 1.0)).unwrap();
        writer.write(&long).unwrap();
        until("both are there", || reader.read_serialized().unwrap().len() == 2);
        let mut samples = taken(&reader, 2);
        samples.sort_by_key(|sample| sample.payload.len());
        let octets = |sample: &SerializedSample| sample.payload.as_slice().to_vec();
        assert_eq!(octets(&samples[0]), encoded(&robot("C3", 1.0), version, Endianness::Little));
        assert_eq!(octets(&samples[1]), encoded(&long, version, Endianness::Little));
        assert!(samples.iter().all(|sample| sample.info.sample_state == SampleState::Read));

        writer.dispose(&robot("C3", 1.0)).unwrap();
        let disposed = taken(&reader, 1);
        assert!(!disposed[0].info.valid_data);
        assert_eq!(disposed[0].info.instance_state, InstanceState::NotAliveDisposed);
        let handle = reader.lookup_instance_serialized(&key_of(&robot("C3", 0.0), version)).unwrap();
        assert_eq!(handle, Some(samples[0].info.instance_handle));
        assert_eq!(disposed[0].info.instance_handle, samples[0].info.instance_handle);
    }
}

#[test]
fn both_may_be_of_the_described_type() {
    let participant = participant(fresh_domain());
    let [writer_qos, reader_qos] = qos(XcdrVersion::Xcdr2);
    let (reader, writer) = (any_reader(&participant, reader_qos), any_writer(&participant, writer_qos));
    until("they match", || writer.matched_subscriptions().unwrap().len() == 1);
    assert_eq!((writer.type_name(), reader.type_name()), ("Robot", "Robot"));
    let sample = encoded(&robot("C3", 1.0), XcdrVersion::Xcdr2, Endianness::Big);
    writer.write_serialized(&sample).unwrap();
    assert_eq!(taken(&reader, 1)[0].payload.as_slice(), sample);
    // Encoded samples go with a derived type, too.
    let topic = participant.create_topic::<Robot>("Robots", QosSet::default()).unwrap();
    let publisher = participant.create_publisher(QosSet::default()).unwrap();
    let [writer_qos, _] = qos(XcdrVersion::Xcdr2);
    let typed = publisher.create_writer(&topic, writer_qos).unwrap();
    until("it matches", || typed.matched_subscriptions().unwrap().len() == 1);
    typed.as_any().write_serialized(&sample).unwrap();
    typed.write(&robot("C3", 1.0)).unwrap();
    assert_eq!(taken(&reader, 2).len(), 2);
}

#[test]
fn content_filters_work_on_both_sides() {
    let domain = fresh_domain();
    let participants = [participant(domain), participant(domain)];
    let [writer_qos, reader_qos] = qos(XcdrVersion::Xcdr2);
    // A writer of the described type filters for a reader of the derived type, and the other way round.
    let topic = participants[1].create_topic::<Robot>("Robots", QosSet::default()).unwrap();
    let subscriber = participants[1].create_subscriber(QosSet::default()).unwrap();
    let expression = "name LIKE 'R%' AND position.x > %0";
    let zero = vec!["0".to_owned()];
    let filtered =
        participants[1].create_content_filtered_topic("F1", &topic, expression, zero.clone()).unwrap();
    let typed_reader = subscriber.create_reader(&filtered, reader_qos.clone()).unwrap();
    let any_topic =
        participants[0].create_any_topic("Robots", described::<Robot>(), QosSet::default()).unwrap();
    let any_filtered =
        participants[0].create_content_filtered_topic("F2", &any_topic, expression, zero).unwrap();
    let subscriber = participants[0].create_subscriber(QosSet::default()).unwrap();
    let encoded_reader = subscriber.create_reader(&any_filtered, reader_qos).unwrap();
    let encoding = any_writer(&participants[0], writer_qos.clone());
    let typed = writer::<Robot>(&participants[1], "Robots", writer_qos);
    until("they match", || encoding.matched_subscriptions().unwrap().len() == 2);
    until("they match", || typed.matched_subscriptions().unwrap().len() == 2);
    until("they match", || typed_reader.matched_publications().unwrap().len() == 2);
    until("they match", || encoded_reader.matched_publications().unwrap().len() == 2);

    for sample in [robot("C3", 1.0), robot("R2", -1.0), robot("R2", 1.0), robot("R3", f64::NAN)] {
        encoding.write_serialized(&encoded(&sample, XcdrVersion::Xcdr2, Endianness::Little)).unwrap();
        typed.write(&sample).unwrap();
    }
    encoding.wait_for_acknowledgments(PATIENCE).unwrap();
    typed.wait_for_acknowledgments(PATIENCE).unwrap();
    let expected = encoded(&robot("R2", 1.0), XcdrVersion::Xcdr2, Endianness::Little);
    let of_typed = taken_typed(&typed_reader, 2);
    assert!(of_typed.iter().all(|sample| sample.data.as_ref() == Some(&robot("R2", 1.0))));
    let of_encoded = taken(&encoded_reader, 2);
    assert!(of_encoded.iter().all(|sample| sample.payload.as_slice() == expected));
    assert_eq!((of_typed.len(), of_encoded.len()), (2, 2));

    any_filtered.set_expression_parameters(vec!["-5".into()]).unwrap();
    assert_eq!(any_filtered.expression_parameters(), ["-5"]);
    let refused = any_filtered.set_expression_parameters(vec!["'a'".into()]).unwrap_err().to_string();
    assert!(refused.contains("expected a number"), "{refused}");
    let found = participants[0].lookup_topic_description("F2").unwrap();
    assert_eq!(found.any_content_filtered_topic().unwrap().filter_expression(), expression);
    assert!(found.content_filtered_topic::<Robot>().is_none());
}

#[test]
fn what_is_no_sample_is_refused_and_the_error_says_why() {
    let participant = participant(fresh_domain());
    let [writer_qos, reader_qos] = qos(XcdrVersion::Xcdr2);
    let (reader, writer) = (any_reader(&participant, reader_qos), any_writer(&participant, writer_qos));
    until("they match", || writer.matched_subscriptions().unwrap().len() == 1);
    let good = encoded(&robot("C3", 1.0), XcdrVersion::Xcdr2, Endianness::Little);
    let refusal = |sample: &[u8]| match writer.write_serialized(sample).unwrap_err() {
        Error::BadParameter(cause) => cause.to_string(),
        other => panic!("{other}"),
    };
    let old = encoded(&robot("C3", 1.0), XcdrVersion::Xcdr1, Endianness::Little);
    let text = refusal(&old);
    assert!(text.contains("CDR_LE") && text.contains("offers Xcdr2"), "{text}");
    let mut of_final = good.clone();
    of_final[1] = 7;
    let text = refusal(&of_final);
    assert!(text.contains("CDR2_LE") && text.contains("Appendable") && text.contains("D_CDR2_LE"), "{text}");
    assert!(refusal(&good[..3]).contains("too short"));
    assert!(refusal(&[0x77; 40]).contains("unknown encapsulation"));
    // Cut within the name: the DHEADER says more than there is.
    assert!(refusal(&good[..12]).contains("12 octets"));
    let mut unterminated = good.clone();
    unterminated[12..15].fill(b'x');
    assert!(refusal(&unterminated).contains("not terminated"));
    let no_key = writer.dispose_serialized(&good[..6]).unwrap_err().to_string();
    assert!(no_key.contains("serialized key"), "{no_key}");

    // What is no multiple of four octets is padded.
    let sample = Robot { track: Vec::new(), ..robot("C3", 1.0) };
    let mut padded = encoded(&sample, XcdrVersion::Xcdr2, Endianness::Little);
    let padding = usize::from(padded[3]);
    padded.truncate(padded.len() - padding);
    padded[3] = 0;
    writer.write_serialized(&padded).unwrap();
    writer.write_serialized(&good).unwrap();
    let samples = taken(&reader, 2);
    assert_eq!(samples[0].payload.as_slice(), encoded(&sample, XcdrVersion::Xcdr2, Endianness::Little));
    assert_eq!(samples[1].payload.as_slice(), good, "nothing else was written");
}

#[test]
fn a_name_has_one_type() {
    let participant = participant(fresh_domain());
    let topic = participant.create_any_topic("Robots", described::<Robot>(), QosSet::default()).unwrap();
    let same = participant.create_topic::<Robot>("Robots", QosSet::default()).unwrap();
    assert_eq!(same.instance_handle(), topic.instance_handle());
    assert!(topic.type_support().is_same_type(&*type_support::of::<Robot>()));
    assert!(topic.downcast::<Robot>().is_none(), "its own type is none of Rust");
    let other = participant.create_any_topic("Robots", described::<Impostor>(), QosSet::default());
    let text = other.err().unwrap().to_string();
    assert!(text.contains("another type that is called 'Robot'"), "{text}");
}
