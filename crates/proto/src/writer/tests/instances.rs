//! Registering, disposing, unregistering; deadlines and liveliness.

use super::*;
use crate::cdr::KeyHash;
use crate::matched::MatchedReader;
use crate::qos::{Liveliness, LivelinessKind, ResourceLimits, WriterDataLifecycle};
use crate::wire::param::StatusInfo;

fn markers(sent: &[Sent]) -> Vec<DataSent> {
    sent.iter()
        .filter_map(|sent| match sent {
            Sent::Data(data) => Some(data.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn fact_13_and_14_a_dispose_carries_status_key_hash_and_serialized_key() {
    let mut story = Story::new(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    story.write(5, b"data").unwrap();
    story.change(ChangeKind::Dispose, 5, b"key5").unwrap();
    let sent = markers(&story.sent());
    assert_eq!(sent[0].qos.status_info, StatusInfo::default());
    assert_eq!(sent[0].qos.key_hash, None, "data has its key in it");
    assert!(!sent[0].key_only);
    let expected = StatusInfo { disposed: true, unregistered: false, filtered: false };
    assert_eq!((sent[1].qos.status_info, sent[1].qos.key_hash), (expected, Some(KeyHash([5; 16]))));
    assert_eq!((sent[1].key_only, &sent[1].payload[..]), (true, &b"key5"[..]));
}

#[test]
fn data_carries_its_key_hash_for_readers_that_expect_inline_qos() {
    let mut story = Story::new(QosSet::writer().keep_all());
    story.matched(&MatchedReader { expects_inline_qos: true, ..reliable(7) });
    story.write(5, b"data").unwrap();
    assert_eq!(markers(&story.sent())[0].qos.key_hash, Some(KeyHash([5; 16])));
}

#[test]
fn fact_13_the_status_flags_are_in_the_last_octet_on_the_wire() {
    let mut story = Story::new(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    story.write(5, b"data").unwrap();
    story.out.clear_transmits();
    story.change(ChangeKind::Unregister, 5, b"key").unwrap();
    let bytes = story.out.datagram(&story.out.transmits()[0]);
    let parameter = [0x71, 0x00, 4, 0, 0, 0, 0, 3];
    assert!(bytes.windows(8).any(|window| window == parameter));
}

#[test]
fn fact_41_unregistering_disposes_unless_told_otherwise() {
    let mut story = Story::new(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    story.write(1, b"data").unwrap();
    story.change(ChangeKind::Unregister, 1, b"key").unwrap();
    let keep = WriterDataLifecycle { autodispose_unregistered_instances: false };
    story.writer.set_qos(story.now, QosSet { writer_data_lifecycle: keep, ..QosSet::writer().keep_all() });
    story.write(2, b"data").unwrap();
    story.change(ChangeKind::Unregister, 2, b"key").unwrap();
    let flags: Vec<_> = markers(&story.sent())
        .iter()
        .filter(|data| data.key_only)
        .map(|data| (data.qos.status_info.disposed, data.qos.status_info.unregistered))
        .collect();
    assert_eq!(flags, [(true, true), (false, true)]);
}

#[test]
fn an_instance_lives_from_registration_to_unregistration() {
    let mut story = Story::new(QosSet::writer());
    assert!(!story.writer.is_registered(handle(1)));
    let key = Payload::from_vec(b"key".to_vec());
    story.writer.register_instance(story.now, handle(1).into(), key.clone()).unwrap();
    assert!(story.writer.is_registered(handle(1)));
    assert_eq!(story.writer.instance_key(handle(1)), Some(&key));
    story.change(ChangeKind::Unregister, 1, b"key").unwrap();
    assert!(!story.writer.is_registered(handle(1)));
    assert_eq!(story.writer.instance_key(handle(1)), None, "nobody needs it any more");
    assert_eq!(story.change(ChangeKind::Unregister, 1, b"key"), Err(WriteError::UnknownInstance));
    story.change(ChangeKind::Dispose, 2, b"key two").unwrap();
    assert!(story.writer.is_registered(handle(2)), "disposing registers");
    assert_eq!(story.writer.instance_key(handle(2)).map(Payload::as_slice), Some(&b"key two"[..]));
}

#[test]
fn a_topic_without_key_has_no_instances() {
    let config = WriterConfig {
        guid: WRITER,
        keyed: false,
        qos: QosSet::writer(),
        limits: WriterLimits::default(),
        content_filter: None,
        group: None,
    };
    let mut story = Story { writer: Writer::new(config), ..Story::new(QosSet::writer()) };
    story.matched(&reliable(7));
    story.sent();
    story.write(0, b"data").unwrap();
    assert_eq!(markers(&story.sent())[0].qos, InlineQos::default(), "and no key hash");
    assert_eq!(story.change(ChangeKind::Dispose, 0, b""), Err(WriteError::NotKeyed));
    let registered = story.writer.register_instance(story.now, handle(0).into(), Payload::empty());
    assert_eq!(registered, Err(WriteError::NotKeyed));
}

#[test]
fn instances_are_limited_and_unregistering_makes_room() {
    let limits = ResourceLimits { max_instances: 2, ..ResourceLimits::default() };
    let mut story = Story::new(QosSet { resource_limits: limits, ..QosSet::writer() });
    story.write(1, b"data").unwrap();
    story.write(2, b"data").unwrap();
    let refused = Err(WriteError::OutOfResources(Limit::Instances));
    assert_eq!(story.write(3, b"data"), refused);
    let registered = story.writer.register_instance(story.now, handle(3).into(), Payload::empty());
    assert_eq!(registered, Err(WriteError::OutOfResources(Limit::Instances)));
    story.change(ChangeKind::Unregister, 1, b"key").unwrap();
    story.write(3, b"data").unwrap();
}

#[test]
fn a_durable_writer_forgets_unregistered_instances_once_acknowledged() {
    let mut story = Story::new(QosSet::writer().keep_all().durability(Durability::TransientLocal));
    let early = durable(7);
    story.matched(&early);
    story.write(1, b"data").unwrap();
    story.write(2, b"stays").unwrap();
    story.change(ChangeKind::Unregister, 1, b"key").unwrap();
    story.sent();
    story.acknack(&early, 1, &[3]).unwrap();
    assert_eq!(data(&story.sent()), [3], "not before the reader knows");
    story.acknack(&early, 4, &[]).unwrap();
    story.matched(&durable(8));
    assert_eq!(data(&story.sent()), [2]);
    assert_eq!(story.writer.instances.len(), 1);
}

#[test]
fn fact_33_each_instance_has_a_deadline_that_re_arms() {
    let deadline = Duration::from_secs(2);
    let mut story = Story::new(QosSet { deadline, ..QosSet::writer() });
    story.pass(Duration::from_secs(10));
    assert_eq!(story.writer.offered_deadline_missed_status().count.total_count, 0, "nothing was promised");
    story.write(1, b"data").unwrap();
    story.write(2, b"data").unwrap();
    story.pass(Duration::from_secs(1));
    story.write(2, b"data").unwrap();
    story.pass(Duration::from_millis(1_500));
    let status = story.writer.offered_deadline_missed_status();
    assert_eq!((status.count.total_count, status.last_instance), (1, handle(1)));
    assert!(
        story.events().contains(&Event::Status { endpoint: WRITER, kind: StatusKind::OfferedDeadlineMissed })
    );
    story.pass(Duration::from_secs(2));
    let status = story.writer.offered_deadline_missed_status();
    assert_eq!((status.count.total_count, status.count.total_count_change), (3, 2));
    story.change(ChangeKind::Unregister, 1, b"key").unwrap();
    story.change(ChangeKind::Dispose, 2, b"key").unwrap();
    story.pass(Duration::from_secs(10));
    assert_eq!(story.writer.offered_deadline_missed_status().count.total_count, 3);
}

#[test]
fn a_changed_deadline_leaves_alone_what_is_disposed_or_was_never_written() {
    let mut story = Story::new(QosSet::writer());
    story.write(1, b"data").unwrap();
    story.change(ChangeKind::Dispose, 1, b"key").unwrap();
    story.writer.register_instance(story.now, handle(2).into(), Payload::from_vec(b"key2".to_vec())).unwrap();
    story.writer.set_qos(story.now, QosSet { deadline: Duration::from_secs(1), ..QosSet::writer() });
    story.pass(Duration::from_secs(3));
    assert_eq!(story.writer.offered_deadline_missed_status().count.total_count, 0);
    story.write(1, b"data").unwrap();
    story.pass(Duration::from_millis(1_100));
    assert_eq!(story.writer.offered_deadline_missed_status().count.total_count, 1);
}

#[test]
fn a_changed_deadline_counts_from_the_change() {
    let mut story = Story::new(QosSet::writer());
    story.write(1, b"data").unwrap();
    story.writer.set_qos(story.now, QosSet { deadline: Duration::from_secs(1), ..QosSet::writer() });
    story.pass(Duration::from_millis(1_100));
    assert_eq!(story.writer.offered_deadline_missed_status().count.total_count, 1);
    story.writer.set_qos(story.now, QosSet::writer());
    assert_eq!(story.writer.next_timeout(), None);
}

fn manual(kind: LivelinessKind) -> QosSet {
    let liveliness = Liveliness { kind, lease_duration: Duration::from_secs(1) };
    QosSet { liveliness, ..QosSet::writer() }
}

#[test]
fn fact_27_a_manual_writer_that_asserts_nothing_loses_its_liveliness_once() {
    let mut story = Story::new(manual(LivelinessKind::ManualByTopic));
    story.matched(&reliable(7));
    story.pass(Duration::from_millis(900));
    story.write(1, b"data").unwrap();
    story.pass(Duration::from_millis(900));
    assert_eq!(story.writer.liveliness_lost_status().total_count, 0, "writing asserts");
    story.pass(Duration::from_secs(5));
    assert_eq!(story.writer.liveliness_lost_status().total_count, 1);
    assert!(story.events().contains(&Event::Status { endpoint: WRITER, kind: StatusKind::LivelinessLost }));
    story.writer.assert_liveliness(story.now, &mut story.out);
    story.pass(Duration::from_secs(5));
    assert_eq!(story.writer.liveliness_lost_status().total_count, 2);
}

#[test]
fn fact_27_manual_by_topic_is_asserted_by_a_heartbeat_with_its_flag() {
    let mut story = Story::new(manual(LivelinessKind::ManualByTopic));
    story.matched(&reliable(7));
    story.matched(&reader(8, QosSet::reader()));
    story.sent();
    story.writer.assert_liveliness(story.now, &mut story.out);
    let datagrams = story.sent_by_datagram();
    assert_eq!((datagrams.len(), datagrams[0].0.len()), (1, 2), "best-effort readers are told as well");
    let told = heartbeats(&datagrams[0].1);
    assert!(told[0].liveliness && told[0].final_flag);

    let mut story = Story::new(manual(LivelinessKind::ManualByParticipant));
    story.matched(&reliable(7));
    story.sent();
    story.writer.assert_liveliness(story.now, &mut story.out);
    assert!(story.sent().is_empty(), "the participant tells");
}

#[test]
fn an_assertion_of_the_participant_renews_manual_by_participant_and_no_other() {
    for (kind, lost) in [(LivelinessKind::ManualByParticipant, 0), (LivelinessKind::ManualByTopic, 1)] {
        let mut story = Story::new(manual(kind));
        story.matched(&reliable(7));
        for _ in 0..5 {
            story.pass(Duration::from_millis(900));
            story.writer.participant_asserted(story.now);
        }
        assert_eq!(story.writer.liveliness_lost_status().total_count, lost, "{kind:?}");
    }
}
