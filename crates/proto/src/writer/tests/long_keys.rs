//! Two keys with one key hash (RTPS 2.5 §8.7.8): two instances.

use super::*;
use crate::long_keys::tests::{colliding, key};
use crate::payload::NewPayload;
use crate::qos::DestinationOrder;

impl Story {
    fn write_key(&mut self, kind: ChangeKind, which: usize, payload: &[u8]) -> SequenceNumber {
        let key = key(&colliding()[which]);
        let octets = NewPayload::Octets(payload);
        self.writer.write_from(self.now, kind, key, octets, self.now.wall, &mut self.out).unwrap()
    }

    fn handle_of(&self, which: usize) -> Option<InstanceHandle> {
        self.writer.find_registered(key(&colliding()[which]))
    }
}

#[test]
fn keys_with_one_hash_are_two_instances_and_tell_the_same_hash() {
    for first in [0, 1] {
        let second = 1 - first;
        let mut story = Story::new(QosSet { durability: Durability::TransientLocal, ..QosSet::writer() });
        let hash = key(&colliding()[0]).hash;
        let handle = |story: &mut Story, which: usize| {
            let octets = Payload::from_vec(colliding()[which].clone());
            story.writer.register_instance(story.now, key(&colliding()[which]), octets).unwrap()
        };
        let handles = [first, second].map(|which| handle(&mut story, which));
        assert_eq!(handles[0], hash, "the first has its hash for a handle");
        assert_ne!(handles[0], handles[1]);
        assert_eq!([first, second].map(|which| story.handle_of(which)), handles.map(Some));
        for (which, handle) in [first, second].into_iter().zip(handles) {
            let named = story.writer.instance_key(handle).unwrap();
            assert_eq!(named.as_slice(), colliding()[which]);
        }
        for value in [b"1", b"2"] {
            story.write_key(ChangeKind::Alive, first, value);
            story.write_key(ChangeKind::Alive, second, value);
        }
        assert_eq!(story.writer.history_len(), 2, "KEEP_LAST 1 keeps one of each");
        story.matched(&MatchedReader { expects_inline_qos: true, ..reliable(7) });
        story.write_key(ChangeKind::Dispose, second, b"key");
        story.pass(Duration::from_secs(1));
        let told: Vec<_> = story.sent().into_iter().filter_map(hash_told).collect();
        assert!(!told.is_empty() && told.iter().all(|told| *told == hash.key_hash()), "{told:?}");
        story.write_key(ChangeKind::Unregister, second, b"key");
        assert!(story.handle_of(first).is_some() && story.handle_of(second).is_none());
    }
}

fn hash_told(sent: Sent) -> Option<crate::cdr::KeyHash> {
    match sent {
        Sent::Data(data) => data.qos.key_hash,
        _ => None,
    }
}

#[test]
fn a_writer_asks_for_the_key_that_its_hash_does_not_tell() {
    let mut story = Story::new(QosSet::writer());
    let [one, other] = colliding().map(|octets| key(&octets));
    story.write_key(ChangeKind::Alive, 0, b"1");
    story.write_key(ChangeKind::Alive, 1, b"2");
    assert!(!story.writer.lacks_key(one) && story.writer.lacks_key(other));
    story.writer.register_instance(story.now, other, Payload::from_vec(b"key".to_vec())).unwrap();
    assert!(!story.writer.lacks_key(other));
}

#[test]
fn deadlines_and_timestamps_are_those_of_the_key() {
    let by_source = QosSet { destination_order: DestinationOrder::BySourceTimestamp, ..QosSet::writer() };
    let mut story = Story::new(QosSet { deadline: Duration::from_secs(1), ..by_source });
    story.write_key(ChangeKind::Alive, 0, b"1");
    let later = story.now.wall.plus(Duration::from_secs(9));
    let key_of_other = key(&colliding()[1]);
    let octets = NewPayload::Octets(b"2");
    let written =
        story.writer.write_from(story.now, ChangeKind::Alive, key_of_other, octets, later, &mut story.out);
    written.unwrap();
    assert_eq!(story.writer.source_timestamp(story.now, key(&colliding()[0])), story.now.wall);
    assert_eq!(story.writer.source_timestamp(story.now, key_of_other), later);
    story.pass(Duration::from_millis(1500));
    assert_eq!(story.writer.offered_deadline_missed_status().count.total_count, 2);
}
