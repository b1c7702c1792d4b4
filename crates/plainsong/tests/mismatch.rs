//! Endpoints that do not match say why: between participants that meet over sockets, and within one.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::mpsc::{Receiver, channel};

use common::{PATIENCE, Point, fresh_domain, loopback, participant, reader, writer};
use plainsong::mismatch::MismatchReason;
use plainsong::prelude::*;

/// What a participant is told of mismatches from now on.
fn told(participant: &DomainParticipant) -> Receiver<MismatchEvent> {
    let (sender, receiver) = channel();
    participant.on_mismatch(move |event| {
        // A test that has seen enough is no longer there to listen.
        let _ = sender.send(event);
    });
    receiver
}

fn next_mismatch(events: &Receiver<MismatchEvent>) -> Mismatch {
    match events.recv_timeout(PATIENCE).unwrap() {
        MismatchEvent::Mismatched(mismatch) => *mismatch,
        ended => panic!("{ended:?}"),
    }
}

/// Two participants that share nothing, as if in two processes.
fn strangers() -> [DomainParticipant; 2] {
    let domain = fresh_domain();
    let apart = Config { announce_period_ms: 2_999, ..loopback() };
    let other = DomainParticipantFactory::with_config(apart);
    [participant(domain), other.create_participant(domain, "the other", QosSet::default()).unwrap()]
}

#[test]
fn both_sides_hear_why_and_then_that_it_is_cured() {
    let [here, there] = strangers();
    let (heard_here, heard_there) = (told(&here), told(&there));
    let publisher =
        here.create_publisher(QosSet { partition: vec!["lab".into()], ..QosSet::default() }).unwrap();
    let topic = here.create_topic::<Point>("Mismatch", QosSet::default()).unwrap();
    let writer = publisher.create_writer(&topic, QosSet::writer().best_effort()).unwrap();
    let reader = reader::<Point>(&there, "Mismatch", QosSet::reader().reliable());

    let seen = next_mismatch(&heard_here);
    assert_eq!((seen.writer.guid, seen.reader.guid), (writer.guid(), reader.guid()));
    assert_eq!(seen.reader.participant, "the other");
    assert_eq!(seen.reason, MismatchReason::Partition);
    let text = seen.to_string();
    assert!(
        text.contains("PARTITION: the writer has \"lab\", the reader wants the default partition"),
        "{text}"
    );
    assert!(
        text.contains("set the reader's RELIABILITY to BEST_EFFORT or the writer's to RELIABLE"),
        "{text}"
    );
    assert_eq!(next_mismatch(&heard_there).differences, seen.differences);
    assert_eq!(MismatchEvent::Mismatched(Box::new(seen.clone())).to_string(), text);
    assert_eq!(here.mismatches().unwrap(), [seen]);

    // The partition is cured: what is left is told as another reason.
    publisher.set_qos(QosSet::default()).unwrap();
    for heard in [&heard_here, &heard_there] {
        assert_eq!(next_mismatch(heard).reason, MismatchReason::Qos(vec![PolicyId::Reliability]));
    }
    let ended = MismatchEvent::Ended { writer: writer.guid(), reader: reader.guid() };
    assert!(ended.to_string().ends_with("match now, or one of them is gone"), "{ended}");
    drop(reader);
    for heard in [&heard_here, &heard_there] {
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), ended);
    }
    assert_eq!(here.mismatches().unwrap(), []);
}

/// A point of another make.
#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Point3", final)]
struct Point3 {
    #[dds(key)]
    id: u32,
    x: f64,
    y: i32,
}

/// A point in single precision, under the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Point", final)]
struct SinglePoint {
    #[dds(key)]
    id: u32,
    x: f64,
    y: f32,
}

const FIRST_MEMBER: &str = "member `y` is float64 at the writer, int32 at the reader";

#[test]
fn types_of_one_process_are_compared_member_by_member() {
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let heard = told(&here);
    let _writer = writer::<Point>(&here, "Types", QosSet::writer());
    let _reader = reader::<Point3>(&there, "Types", QosSet::reader());
    let difference = &next_mismatch(&heard).differences[0];
    assert_eq!((difference.writer.as_str(), difference.reader.as_str()), ("\"Point\"", "\"Point3\""));
    assert_eq!(difference.note, FIRST_MEMBER);
}

#[test]
fn types_of_strangers_are_compared_member_by_member() {
    let [here, there] = strangers();
    let heard = told(&here);
    let _writer = writer::<Point>(&here, "Types", QosSet::writer());
    let _reader = reader::<Point3>(&there, "Types", QosSet::reader());
    assert_eq!(next_mismatch(&heard).differences[0].note, FIRST_MEMBER);
}

#[test]
fn types_of_one_name_that_differ_do_not_match_and_the_topic_is_inconsistent() {
    let [here, there] = strangers();
    let heard = told(&here);
    let topic = here.create_topic::<Point>("Types", QosSet::default()).unwrap();
    let writer =
        here.create_publisher(QosSet::default()).unwrap().create_writer(&topic, QosSet::writer()).unwrap();
    let reader = reader::<SinglePoint>(&there, "Types", QosSet::reader());
    let mismatch = next_mismatch(&heard);
    assert_eq!((mismatch.writer.guid, mismatch.reader.guid), (writer.guid(), reader.guid()));
    assert_eq!(mismatch.reason, MismatchReason::TypeDefinition);
    assert_eq!(
        mismatch.differences[0].to_string(),
        "type: the writer has \"Point\" with member `y`: float64, the reader wants \"Point\" with member `y`: \
         float32; define the type alike on both sides, or use another topic for the other type"
    );
    assert_eq!(topic.inconsistent_topic_status().total_count, 1);
    assert_eq!(writer.publication_matched_status().unwrap().current_count, 0);
}
