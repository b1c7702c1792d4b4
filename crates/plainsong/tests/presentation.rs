//! Coherent sets and ordered access over real sockets on loopback.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Point, fresh_domain, participant, until};
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::status::MatchedStatus;

const TOPICS: [&str; 2] = ["Left", "Right"];

fn presented(access_scope: AccessScope) -> QosSet {
    let mut qos = QosSet::default();
    qos.presentation.access_scope = access_scope;
    qos.presentation.coherent_access = true;
    qos.presentation.ordered_access = true;
    qos
}

/// A publisher and a subscriber in two participants, with a writer and a reader of each topic.
struct Scene {
    publisher: Publisher,
    writers: Vec<DataWriter<Point>>,
    subscriber: Subscriber,
    readers: Vec<DataReader<Point>>,
    _participants: [DomainParticipant; 2],
}

impl Scene {
    fn new(access_scope: AccessScope) -> Self {
        let domain = fresh_domain();
        let participants = [participant(domain), participant(domain)];
        let publisher = participants[0].create_publisher(presented(access_scope)).unwrap();
        let subscriber = participants[1].create_subscriber(presented(access_scope)).unwrap();
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for name in TOPICS {
            let topic = participants[0].create_topic(name, QosSet::default()).unwrap();
            writers.push(publisher.create_writer(&topic, QosSet::writer().keep_all()).unwrap());
            let topic = participants[1].create_topic(name, QosSet::default()).unwrap();
            readers.push(subscriber.create_reader(&topic, QosSet::reader().reliable().keep_all()).unwrap());
        }
        for (writer, reader) in writers.iter().zip(&readers) {
            until("the writer matches", || !writer.matched_subscriptions().unwrap().is_empty());
            until("the reader matches", || !reader.matched_publications().unwrap().is_empty());
        }
        Self { publisher, writers, subscriber, readers, _participants: participants }
    }

    fn write(&self, topic: usize, id: u32) {
        self.writers[topic].write(&Point { id, ..Point::default() }).unwrap();
    }

    /// All that is written has reached the readers.
    fn arrived(&self) {
        self.writers.iter().for_each(|writer| writer.wait_for_acknowledgments(common::PATIENCE).unwrap());
    }

    /// What one access shows, by topic.
    fn look(&self) -> Vec<Vec<u32>> {
        self.subscriber.begin_access().unwrap();
        let seen = self.readers.iter().map(|reader| ids(&reader.take().unwrap())).collect();
        self.subscriber.end_access().unwrap();
        seen
    }
}

fn ids(samples: &[Sample<Point>]) -> Vec<u32> {
    samples.iter().filter_map(|sample| Some(sample.data?.id)).collect()
}

#[test]
fn a_nested_set_is_shown_when_the_outermost_has_ended() {
    let scene = Scene::new(AccessScope::Topic);
    scene.publisher.begin_coherent_changes();
    scene.write(0, 9);
    scene.publisher.begin_coherent_changes();
    scene.write(0, 7);
    scene.publisher.end_coherent_changes().unwrap();
    scene.arrived();
    assert!(scene.readers[0].take().unwrap().is_empty(), "the outer set has not ended");
    scene.publisher.end_coherent_changes().unwrap();
    scene.arrived();
    assert_eq!(ids(&scene.readers[0].take().unwrap()), [9, 7], "in the order of writing");
    assert!(matches!(scene.publisher.end_coherent_changes(), Err(Error::PreconditionNotMet(_))));
}

#[test]
fn an_access_sees_what_there_was_when_it_began() {
    let scene = Scene::new(AccessScope::Topic);
    scene.write(0, 1);
    scene.arrived();
    scene.subscriber.begin_access().unwrap();
    scene.write(0, 2);
    for _ in 0..20 {
        assert_eq!(ids(&scene.readers[0].read().unwrap()), [1]);
    }
    scene.subscriber.end_access().unwrap();
    until("the second is shown", || ids(&scene.readers[0].read().unwrap()) == [1, 2]);
    assert!(matches!(scene.subscriber.end_access(), Err(Error::PreconditionNotMet(_))));
}

#[test]
fn a_group_set_appears_in_all_readers_at_once() {
    let scene = Scene::new(AccessScope::Group);
    assert!(matches!(
        scene.readers[0].take_with(&ReadOptions::new().max_samples(1)),
        Err(Error::PreconditionNotMet(_))
    ));
    for round in 0..20 {
        scene.publisher.begin_coherent_changes();
        scene.write(0, round);
        scene.write(1, round);
        scene.publisher.end_coherent_changes().unwrap();
    }
    let mut seen = vec![Vec::new(); TOPICS.len()];
    until("everything is seen", || {
        let looked = scene.look();
        assert_eq!(looked[0], looked[1], "the same sets in both");
        for (seen, new) in seen.iter_mut().zip(looked) {
            seen.extend(new);
        }
        seen[0].len() == 20
    });
    assert_eq!(seen[0], (0..20).collect::<Vec<_>>());
}

/// Holds up the thread that matches, long enough for the past to come.
struct Slow;

impl DataReaderListener for Slow {
    fn on_subscription_matched(&self, _reader: &AnyDataReader, _status: &MatchedStatus) {
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_writer_that_is_made_within_a_set_takes_part_in_it() {
    let mut scene = Scene::new(AccessScope::Group);
    scene.publisher.begin_coherent_changes();
    scene.write(0, 1);
    let topic = scene.publisher.participant().create_topic("Late", QosSet::default()).unwrap();
    let late = scene.publisher.create_writer(&topic, QosSet::writer().keep_all()).unwrap();
    let topic = scene.subscriber.participant().create_topic("Late", QosSet::default()).unwrap();
    let reader = scene.subscriber.create_reader(&topic, QosSet::reader().reliable().keep_all()).unwrap();
    until("the late writer matches", || !late.matched_subscriptions().unwrap().is_empty());
    until("its reader matches", || !reader.matched_publications().unwrap().is_empty());
    scene.writers.push(late);
    scene.readers.push(reader);
    scene.write(2, 2);
    scene.arrived();
    assert_eq!(scene.look(), [vec![], vec![], vec![]], "the set has not ended");
    scene.publisher.end_coherent_changes().unwrap();
    scene.arrived();
    assert_eq!(scene.look(), [vec![1], vec![], vec![2]]);
}

#[test]
fn readers_that_are_enabled_together_see_the_group_sets_of_the_past_together() {
    let domain = fresh_domain();
    let [early, late] = [participant(domain), participant(domain)];
    let durable = QosSet::writer().keep_all().durability(Durability::TransientLocal);
    let publisher = early.create_publisher(presented(AccessScope::Group)).unwrap();
    let writers = TOPICS.map(|name| {
        let topic = early.create_topic::<Point>(name, QosSet::default()).unwrap();
        publisher.create_writer(&topic, durable.clone()).unwrap()
    });
    publisher.begin_coherent_changes();
    for writer in &writers {
        writer.write(&Point { id: 5, ..Point::default() }).unwrap();
    }
    publisher.end_coherent_changes().unwrap();
    for name in TOPICS {
        let probe: DataReader<Point> = common::reader(&late, name, QosSet::reader());
        until("the late participant knows the writer", || !probe.matched_publications().unwrap().is_empty());
    }

    let mut qos = late.qos();
    qos.entity_factory.autoenable_created_entities = false;
    late.set_qos(qos).unwrap();
    let subscriber = late.create_subscriber(presented(AccessScope::Group)).unwrap();
    subscriber.set_listener(Some(Arc::new(Slow)), StatusMask::NONE.with(StatusKind::SubscriptionMatched));
    let readers = TOPICS.map(|name| {
        let topic = late.create_topic::<Point>(name, QosSet::default()).unwrap();
        let durable = QosSet::reader().reliable().keep_all().durability(Durability::TransientLocal);
        subscriber.create_reader(&topic, durable).unwrap()
    });
    std::thread::scope(|scope| {
        scope.spawn(|| subscriber.enable().unwrap());
        until("the set is seen", || {
            subscriber.begin_access().unwrap();
            // A reader that is not enabled yet refuses.
            let look = |reader: &DataReader<Point>| reader.take().map(|it| ids(&it)).unwrap_or_default();
            let [left, right] = readers.each_ref().map(look);
            subscriber.end_access().unwrap();
            assert_eq!(left, right, "the same sets in both");
            left == [5]
        });
    });
}

#[test]
fn group_order_tells_which_reader_to_take_from() {
    let scene = Scene::new(AccessScope::Group);
    let order = [0, 1, 1, 0, 1, 0, 0];
    for (id, topic) in (0..).zip(order) {
        scene.write(topic, id);
    }
    scene.arrived();
    scene.subscriber.begin_access().unwrap();
    let readers = scene.subscriber.readers(&ReadOptions::new());
    let seen: Vec<_> = readers
        .iter()
        .filter_map(|reader| reader.downcast::<Point>()?.take_next_sample().unwrap()?.data)
        .map(|point| point.id)
        .collect();
    scene.subscriber.end_access().unwrap();
    assert_eq!(seen, (0..7).collect::<Vec<_>>());
}
