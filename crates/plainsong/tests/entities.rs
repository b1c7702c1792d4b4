//! The life of entities (DCPS 1.4 §2.2.2.1.1): created, enabled, changed, deleted; defaults and handles.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Blob, PATIENCE, Pair, Point, fresh_domain, loopback, participant, reader, until, writer};
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::qos::{EntityFactory, Reliability};
use plainsong::time;

fn disabled_contents() -> QosSet {
    QosSet { entity_factory: EntityFactory { autoenable_created_entities: false }, ..QosSet::default() }
}

fn is_deleted<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::AlreadyDeleted(_)))
}

fn is_precondition<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::PreconditionNotMet(_)))
}

#[test]
fn a_name_that_no_string_of_the_wire_has_is_refused_with_what_to_do() {
    let participant = participant(fresh_domain());
    let refused = |result: Result<(), Error>| {
        let error = result.expect_err("a NUL ends a string");
        assert!(matches!(error, Error::BadParameter(_)), "{error}");
        assert!(format!("{error:?}").contains("remove it"), "{error:?}");
    };
    refused(participant.create_topic::<Point>("a\0b", QosSet::default()).map(drop));
    let topic = participant.create_topic::<Point>("Named", QosSet::default()).unwrap();
    let filtered = participant.create_content_filtered_topic("a\0b", &topic, "x > 1", Vec::new());
    refused(filtered.map(drop));
    let factory = DomainParticipantFactory::new().unwrap();
    refused(factory.create_participant(fresh_domain(), "a\0b", QosSet::default()).map(drop));
}

#[test]
fn a_deleted_writer_is_gone_for_everyone_who_holds_it() {
    let pair = Pair::<Point>::new(QosSet::writer(), QosSet::reader().reliable());
    let publisher = pair.writer.publisher();
    let other = pair.participants[0].create_publisher(QosSet::default()).unwrap();
    assert!(is_precondition(other.delete_writer(&pair.writer.as_any())));
    assert!(is_precondition(pair.participants[0].delete_publisher(&publisher)), "it has a writer");
    pair.writer.write(&Point::default()).unwrap();
    let condition = pair.writer.status_condition(StatusMask::ALL);
    let clone = pair.writer.clone();
    publisher.delete_writer(&pair.writer.as_any()).unwrap();
    until("the reader sees it leave", || pair.reader.matched_publications().unwrap().is_empty());
    assert!(is_deleted(clone.write(&Point::default())));
    assert!(is_deleted(clone.set_qos(QosSet::writer())));
    assert!(is_deleted(clone.matched_subscriptions()));
    assert!(is_deleted(clone.enable()));
    assert!(is_deleted(publisher.delete_writer(&clone.as_any())));
    assert!(!condition.trigger_value());
    pair.participants[0].delete_publisher(&publisher).unwrap();
    assert!(is_deleted(pair.participants[0].delete_publisher(&publisher)));
    let topic = pair.participants[0]
        .lookup_topic_description("Pair")
        .unwrap()
        .topic()
        .unwrap()
        .downcast::<Point>()
        .unwrap();
    assert!(is_deleted(publisher.create_writer(&topic, QosSet::writer())));
}

#[test]
fn a_deleted_writer_disposes_its_instances_when_its_life_cycle_says_so() {
    for (autodispose, state) in
        [(true, InstanceState::NotAliveDisposed), (false, InstanceState::NotAliveNoWriters)]
    {
        let mut qos = QosSet::writer();
        qos.writer_data_lifecycle.autodispose_unregistered_instances = autodispose;
        let pair = Pair::<Point>::new(qos, QosSet::reader().reliable().keep_all());
        pair.writer.register_instance(&Point { id: 1, ..Point::default() }).unwrap();
        for id in 1..=3 {
            pair.writer.write(&Point { id, ..Point::default() }).unwrap();
        }
        pair.writer.dispose(&Point { id: 3, ..Point::default() }).unwrap();
        pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
        pair.writer.publisher().delete_writer(&pair.writer.as_any()).unwrap();
        until("it has left", || pair.reader.matched_publications().unwrap().is_empty());
        let mut states: Vec<_> = pair.reader.take().unwrap();
        states.retain(|sample| sample.data.is_some());
        states.sort_by_key(|sample| sample.data.unwrap().id);
        let states: Vec<_> = states.iter().map(|sample| sample.info.instance_state).collect();
        assert_eq!(states, [state, state, InstanceState::NotAliveDisposed]);
    }
}

#[test]
fn deleting_ends_what_waits_on_the_entity() {
    let qos = QosSet {
        reliability: Reliability {
            max_blocking_time: time::Duration::INFINITE,
            ..QosSet::writer().reliability
        },
        ..QosSet::writer().keep_all()
    };
    let mut limited = qos;
    limited.resource_limits.max_samples = 1;
    let pair = Pair::<Point>::new(limited, QosSet::reader().reliable().keep_all());
    // Nobody acknowledges any more, so the second write waits.
    pair.participants[1].ignore_publication(pair.writer.instance_handle()).unwrap();
    pair.writer.write(&Point::default()).unwrap();
    let blocked = pair.writer.clone();
    let waiting = std::thread::spawn(move || blocked.write(&Point::default()));
    std::thread::sleep(Duration::from_millis(20));
    pair.writer.publisher().delete_contained_entities().unwrap();
    assert!(is_deleted(waiting.join().unwrap()));
}

#[test]
fn deleting_a_reader_ends_who_waits_to_take_from_it() {
    let participant = participant(fresh_domain());
    let lonely = reader::<Point>(&participant, "Lonely", QosSet::reader());
    let blocked = lonely.clone();
    let waiting = std::thread::spawn(move || blocked.wait_take(PATIENCE));
    std::thread::sleep(Duration::from_millis(20));
    lonely.subscriber().delete_reader(&lonely.as_any()).unwrap();
    assert!(is_deleted(waiting.join().unwrap()));
}

#[test]
fn deleting_what_a_participant_contains_leaves_it_empty_and_usable() {
    let pair = Pair::<Point>::new(QosSet::writer(), QosSet::reader().reliable());
    let [first, second] = &pair.participants;
    let (publisher, subscriber) = (pair.writer.publisher(), pair.reader.subscriber());
    let topic = second.lookup_topic_description("Pair").unwrap().topic().unwrap();
    let factory = DomainParticipantFactory::with_config(loopback());
    assert!(is_precondition(factory.delete_participant(second)));
    assert!(is_precondition(second.delete_topic(&topic)), "it has a reader");
    assert!(second.contains_entity(pair.reader.instance_handle()));
    assert!(second.contains_entity(subscriber.instance_handle()));
    assert!(second.contains_entity(topic.instance_handle()));
    assert!(!second.contains_entity(pair.writer.instance_handle()));
    second.delete_contained_entities().unwrap();
    until("the writer sees the reader leave", || pair.writer.matched_subscriptions().unwrap().is_empty());
    assert!(is_deleted(pair.reader.take_with(&ReadOptions::new().max_samples(1))));
    assert!(is_deleted(pair.reader.wait_take(PATIENCE)), "nobody waits for a deleted reader");
    assert!(is_deleted(subscriber.set_qos(QosSet::default())));
    assert!(is_deleted(topic.set_qos(QosSet::default())));
    assert!(!second.contains_entity(pair.reader.instance_handle()));
    assert!(second.lookup_topic_description("Pair").is_none());
    let again = reader::<Point>(second, "Pair", QosSet::reader().reliable());
    until("a new reader matches", || !again.matched_publications().unwrap().is_empty());
    drop(again);
    second.delete_contained_entities().unwrap();
    factory.delete_participant(second).unwrap();
    until("the participant has left", || first.discovered_participants().unwrap().is_empty());
    assert!(is_deleted(second.create_publisher(QosSet::default())));
    assert!(is_deleted(second.builtin_subscriber().map(drop)));
    assert!(is_deleted(factory.delete_participant(second)));
    first.delete_contained_entities().unwrap();
    assert!(is_deleted(publisher.delete_contained_entities()));
}

#[test]
fn single_entities_are_deleted_by_their_factories() {
    let pair = Pair::<Point>::new(QosSet::writer(), QosSet::reader());
    let [first, second] = &pair.participants;
    let subscriber = pair.reader.subscriber();
    let topic = pair.reader.topic();
    assert_eq!(topic.participant().guid(), second.guid());
    assert_eq!(pair.writer.topic().participant().guid(), pair.writer.publisher().participant().guid());
    assert!(is_precondition(second.delete_subscriber(&subscriber)), "it has a reader");
    assert!(is_precondition(first.delete_topic(&topic)), "it belongs to the other participant");
    subscriber.delete_reader(&pair.reader.as_any()).unwrap();
    assert!(is_deleted(subscriber.delete_reader(&pair.reader.as_any())));
    subscriber.delete_contained_entities().unwrap();
    second.delete_subscriber(&subscriber).unwrap();
    assert!(is_deleted(subscriber.delete_contained_entities()));
    second.delete_topic(&topic).unwrap();
    assert!(is_deleted(second.delete_topic(&topic)));
    let factory = DomainParticipantFactory::with_config(loopback());
    assert!(factory.qos().entity_factory.autoenable_created_entities);
    factory.delete_participant(second).unwrap();
}

#[test]
fn entities_are_found_by_topic_and_handle() {
    let one = participant(fresh_domain());
    let writer = writer::<Point>(&one, "Here", QosSet::writer());
    let reader = reader::<Point>(&one, "Here", QosSet::reader());
    let found = writer.publisher().lookup_writer("Here").unwrap();
    assert_eq!(found.guid(), writer.guid());
    assert!(writer.publisher().lookup_writer("There").is_none());
    assert_eq!(reader.subscriber().lookup_reader("Here").unwrap().guid(), reader.guid());
    let topic = one.lookup_topic_description("Here").unwrap().topic().unwrap();
    assert!(topic.downcast::<Point>().is_some() && topic.downcast::<Blob>().is_none());
    let factory = DomainParticipantFactory::with_config(loopback());
    let found = factory.lookup_participant(one.domain_id()).unwrap();
    assert_eq!(found.guid(), one.guid());
    assert!(one.contains_entity(writer.publisher().instance_handle()));
    let before = one.current_time();
    assert!(one.current_time() >= before);
}

#[test]
fn what_is_created_disabled_waits_to_be_enabled_from_the_top() {
    let mut factory = DomainParticipantFactory::with_config(loopback());
    factory.set_qos(disabled_contents());
    let one = factory.create_participant(fresh_domain(), "disabled", QosSet::default()).unwrap();
    let topic = one.create_topic::<Point>("Pair", QosSet::default()).unwrap();
    let publisher = one.create_publisher(QosSet::default()).unwrap();
    let subscriber = one.create_subscriber(disabled_contents()).unwrap();
    let writer = publisher.create_writer(&topic, QosSet::writer()).unwrap();
    let reader = subscriber.create_reader(&topic, QosSet::reader()).unwrap();
    assert!(matches!(writer.write(&Point::default()), Err(Error::NotEnabled(_))));
    assert!(is_precondition(publisher.enable()), "the participant is not enabled");
    assert!(is_precondition(writer.enable()), "the publisher is not enabled");
    let condition = reader.read_condition(&ReadOptions::new());
    assert!(!condition.trigger_value());
    assert_eq!(reader.subscription_matched_status().unwrap().total.total_count, 0, "a status can be read");
    assert_eq!(writer.publication_matched_status().unwrap().current_count, 0);
    // Before it is enabled an entity can change any policy.
    writer.set_qos(QosSet::writer().keep_last(7)).unwrap();
    assert_eq!(writer.qos().history.depth, 7);

    one.enable().unwrap();
    one.enable().unwrap();
    assert!(writer.is_enabled(), "with its participant and publisher");
    assert!(!reader.is_enabled(), "its subscriber does not enable what it contains");
    assert!(is_precondition(reader.subscriber().participant().delete_topic(&topic.as_any())));
    reader.enable().unwrap();
    until("they match", || !writer.matched_subscriptions().unwrap().is_empty());
    let late = subscriber.create_reader(&topic, QosSet::reader()).unwrap();
    assert!(!late.is_enabled());
    // ENTITY_FACTORY can change; it is about what is created from now on.
    subscriber.set_qos(QosSet::default()).unwrap();
    assert!(subscriber.create_reader(&topic, QosSet::reader()).unwrap().is_enabled());
    assert!(!late.is_enabled());
}

#[test]
fn changeable_policies_change_at_run_time_and_others_are_refused_by_name() {
    let pair = Pair::<Point>::new(QosSet::writer(), QosSet::reader());
    let mut qos = pair.reader.qos();
    qos.latency_budget = time::Duration::from_millis(5);
    qos.time_based_filter = time::Duration::from_millis(1);
    qos.reader_data_lifecycle.autopurge_disposed_samples_delay = time::Duration::from_secs(1);
    pair.reader.set_qos(qos).unwrap();
    until("the writer's participant hears of it", || {
        let data = pair.writer.matched_subscription_data(pair.reader.instance_handle()).unwrap();
        data.qos().latency_budget == time::Duration::from_millis(5)
    });
    let mut qos = pair.writer.qos();
    qos.user_data = b"data".to_vec();
    qos.ownership_strength = 5;
    qos.lifespan = time::Duration::from_secs(9);
    qos.transport_priority = 3;
    qos.latency_budget = time::Duration::from_millis(2);
    qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
    pair.writer.set_qos(qos.clone()).unwrap();
    assert_eq!(pair.writer.qos(), qos);
    until("the reader's participant hears of it", || {
        let data = pair.reader.matched_publication_data(pair.writer.instance_handle()).unwrap();
        data.qos().user_data == b"data" && data.qos().lifespan == qos.lifespan
    });
    for (name, change) in immutable() {
        let mut qos = pair.writer.qos();
        change(&mut qos);
        match pair.writer.set_qos(qos) {
            Err(Error::ImmutablePolicy { policy, .. }) => assert_eq!(policy, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    // A deadline that is too long for the reader parts them, and a shorter one brings them together again.
    let mut reader_qos = pair.reader.qos();
    reader_qos.deadline = time::Duration::from_secs(1);
    pair.reader.set_qos(reader_qos).unwrap();
    until("they part", || pair.writer.matched_subscriptions().unwrap().is_empty());
    let mut writer_qos = pair.writer.qos();
    writer_qos.deadline = time::Duration::from_secs(1);
    pair.writer.set_qos(writer_qos).unwrap();
    until("they meet", || !pair.writer.matched_subscriptions().unwrap().is_empty());
}

type Change = fn(&mut QosSet);

fn immutable() -> [(&'static str, Change); 9] {
    [
        ("DURABILITY", |qos| qos.durability = Durability::TransientLocal),
        ("DURABILITY_SERVICE", |qos| qos.durability_service.history.depth = 2),
        ("OWNERSHIP", |qos| qos.ownership = Ownership::Exclusive),
        ("LIVELINESS", |qos| qos.liveliness.kind = LivelinessKind::ManualByTopic),
        ("RELIABILITY", |qos| qos.reliability.kind = ReliabilityKind::BestEffort),
        ("DESTINATION_ORDER", |qos| qos.destination_order = DestinationOrder::BySourceTimestamp),
        ("HISTORY", |qos| qos.history.depth = 9),
        ("RESOURCE_LIMITS", |qos| qos.resource_limits.max_samples = 9),
        ("CONSISTENCY", |qos| {
            (qos.consistency.kind, qos.lifespan) = (ConsistencyKind::Atomic, time::Duration::INFINITE);
        }),
    ]
}

#[test]
fn topic_and_group_data_reach_the_other_side() {
    let pair = Pair::<Point>::new(QosSet::writer(), QosSet::reader());
    let topic = pair.participants[0].lookup_topic_description("Pair").unwrap().topic().unwrap();
    topic.set_qos(QosSet { topic_data: b"topic".to_vec(), ..topic.qos() }).unwrap();
    let publisher = pair.writer.publisher();
    publisher.set_qos(QosSet { group_data: b"group".to_vec(), ..publisher.qos() }).unwrap();
    until("the reader's participant hears of it", || {
        let data = pair.reader.matched_publication_data(pair.writer.instance_handle()).unwrap();
        (&data.qos().topic_data[..], &data.qos().group_data[..]) == (b"topic", b"group")
    });
    let error = topic.set_qos(topic.qos().reliable()).unwrap_err();
    assert!(matches!(error, Error::ImmutablePolicy { policy: "RELIABILITY", .. }), "{error}");
}

#[test]
fn defaults_are_kept_by_each_factory() {
    let mut factory = DomainParticipantFactory::with_config(loopback());
    factory.set_default_participant_qos(QosSet { user_data: vec![7], ..QosSet::default() }).unwrap();
    let one = factory.create_participant(fresh_domain(), "one", factory.default_participant_qos()).unwrap();
    assert_eq!(one.qos().user_data, [7]);
    assert_eq!(one.default_topic_qos(), QosSet::reader());
    one.set_default_topic_qos(QosSet::default().reliable()).unwrap();
    one.set_default_publisher_qos(QosSet { partition: vec!["p".into()], ..QosSet::default() }).unwrap();
    one.set_default_subscriber_qos(QosSet { partition: vec!["s".into()], ..QosSet::default() }).unwrap();
    let topic = one.create_topic::<Point>("T", one.default_topic_qos()).unwrap();
    let publisher = one.create_publisher(one.default_publisher_qos()).unwrap();
    let subscriber = one.create_subscriber(one.default_subscriber_qos()).unwrap();
    assert_eq!((publisher.qos().partition, subscriber.qos().partition), (vec!["p".into()], vec!["s".into()]));
    assert_eq!(publisher.default_writer_qos(), QosSet::writer());
    assert_eq!(subscriber.default_reader_qos(), QosSet::reader());
    publisher.set_default_writer_qos(QosSet::writer().keep_last(3)).unwrap();
    subscriber.set_default_reader_qos(QosSet::reader().keep_last(4)).unwrap();
    assert_eq!(publisher.default_writer_qos().history.depth, 3);
    let mut qos = subscriber.default_reader_qos();
    Subscriber::copy_from_topic_qos(&mut qos, &topic.qos());
    assert_eq!((qos.history.depth, qos.is_reliable()), (1, true));
    let mut qos = publisher.default_writer_qos();
    Publisher::copy_from_topic_qos(&mut qos, &QosSet { transport_priority: 4, ..topic.qos() });
    assert_eq!((qos.history.depth, qos.transport_priority), (1, 4));
    let inconsistent = QosSet { deadline: time::Duration::ZERO, ..QosSet::writer() };
    let error = publisher.set_default_writer_qos(inconsistent).unwrap_err();
    assert!(matches!(error, Error::InconsistentPolicy { .. }), "{error}");
    assert_eq!(publisher.default_writer_qos().history.depth, 3);
}

#[test]
fn what_is_not_honoured_is_told() {
    let one = participant(fresh_domain());
    let persistent = writer::<Point>(&one, "P", QosSet::writer().durability(Durability::Persistent));
    let local = writer::<Point>(&one, "P", QosSet::writer().durability(Durability::TransientLocal));
    assert_eq!(persistent.unhonoured().first().map(|it| it.policy), Some("DURABILITY"));
    assert!(local.unhonoured().is_empty());
    let writers = one.state().unwrap().writers.items;
    let all: Vec<_> = writers.iter().filter(|it| !it.unhonoured.is_empty()).map(|it| it.guid).collect();
    assert_eq!(all, [persistent.guid()]);
    persistent.write(&Point { id: 1, x: 2.0, y: 3.0 }).unwrap();
    let late = reader::<Point>(
        &participant(one.domain_id()),
        "P",
        QosSet::reader().reliable().durability(Durability::Persistent),
    );
    let sample = late.wait_take(PATIENCE).unwrap().pop().unwrap();
    assert_eq!(sample.data.unwrap().x, 2.0);
}

#[test]
fn what_contradicts_atomic_is_refused_by_name() {
    let one = participant(fresh_domain());
    let atomic = || QosSet::default().consistency(ConsistencyKind::Atomic);
    let topic = one.create_topic::<Point>("Agreed", atomic()).unwrap();
    assert!(topic.qos().is_atomic() && topic.qos().is_reliable());
    let subscriber = one.create_subscriber(QosSet::default()).unwrap();
    let mut of_topic = QosSet::reader();
    Subscriber::copy_from_topic_qos(&mut of_topic, &topic.qos());
    assert!(subscriber.create_reader(&topic, of_topic).unwrap().qos().is_atomic());
    let persistent = atomic().durability(Durability::Persistent);
    let refused = subscriber.create_reader(&topic, persistent).err().unwrap();
    assert!(refused.to_string().contains("PLAINSONG_STATE_DIRECTORY"), "{refused}");
    let by_source = DestinationOrder::BySourceTimestamp;
    let refused = subscriber.create_reader(&topic, atomic().destination_order(by_source)).err().unwrap();
    assert!(
        refused.to_string().contains("of the reader of topic 'Agreed': DESTINATION_ORDER: "),
        "{refused}"
    );
    let refused = subscriber.create_reader(&topic, atomic().best_effort()).err().unwrap();
    assert!(refused.to_string().contains("of the reader of topic 'Agreed': RELIABILITY: "), "{refused}");
    let many = one.create_publisher(QosSet::default().partition(["a", "b"])).unwrap();
    let refused = many.create_writer(&topic, atomic()).err().unwrap();
    assert!(refused.to_string().contains("of the writer of topic 'Agreed': PARTITION: "), "{refused}");
}

#[test]
fn a_publisher_waits_for_all_its_writers_and_counts_suspensions() {
    let pair = Pair::<Point>::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
    let publisher = pair.writer.publisher();
    publisher.suspend_publications();
    pair.writer.write(&Point::default()).unwrap();
    publisher.resume_publications().unwrap();
    assert!(is_precondition(publisher.resume_publications()));
    publisher.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(pair.reader.take().unwrap().len(), 1);
}

/// Notes who hears of what.
struct Ear(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl DataReaderListener for Ear {
    fn on_data_available(&self, _: &AnyDataReader) {
        self.1.lock().unwrap().push(self.0);
    }
    fn on_data_on_readers(&self, subscriber: &Subscriber) {
        self.1.lock().unwrap().push("readers");
        subscriber.notify_readers().unwrap();
    }
}
impl DataWriterListener for Ear {}
impl TopicListener for Ear {}
impl DomainParticipantListener for Ear {}

#[test]
fn the_closest_listener_that_wants_a_status_hears_of_it_and_no_other() {
    let pair = Pair::<Point>::new(QosSet::writer(), QosSet::reader().reliable().keep_all());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = |name| Arc::new(Ear(name, Arc::clone(&heard)));
    let data = StatusMask::NONE.with(StatusKind::DataAvailable);
    let subscriber = pair.reader.subscriber();
    let listen = |expected: &[&str]| {
        heard.lock().unwrap().clear();
        pair.writer.write(&Point::default()).unwrap();
        until("the listeners hear", || heard.lock().unwrap().len() >= expected.len());
        assert_eq!(*heard.lock().unwrap(), expected);
    };
    pair.participants[1].set_listener(Some(ear("participant")), data);
    assert!(pair.participants[1].listener().is_some() && pair.participants[0].listener().is_none());
    listen(&["participant"]);
    subscriber.set_listener(Some(ear("subscriber")), data);
    listen(&["subscriber"]);
    pair.reader.set_listener(Some(ear("reader")), data);
    listen(&["reader"]);
    assert!(pair.reader.listener().is_some());
    pair.reader.set_listener(Some(ear("reader")), StatusMask::NONE);
    listen(&["subscriber"]);
    // DATA_ON_READERS comes before DATA_AVAILABLE, and passes it on when asked to.
    pair.reader.set_listener(Some(ear("reader")), data);
    subscriber.set_listener(Some(ear("subscriber")), data.with(StatusKind::DataOnReaders));
    listen(&["readers", "reader"]);
    pair.reader.set_listener(None, StatusMask::NONE);
    subscriber.set_listener(None, StatusMask::NONE);
    listen(&["participant"]);
}

#[test]
fn two_hundred_participants_of_a_process_know_each_other_and_what_they_have() {
    const MANY: usize = 200;
    let domain = fresh_domain();
    let participants: Vec<_> = (0..MANY).map(|_| participant(domain)).collect();
    let next = |index: usize| format!("Of{}", (index + 1) % MANY);
    let of_each = |(index, it)| {
        let qos = [QosSet::writer(), QosSet::reader().reliable()];
        let [written, read] = qos;
        (writer::<Point>(it, &format!("Of{index}"), written), reader::<Point>(it, &next(index), read))
    };
    let endpoints: Vec<_> = participants.iter().enumerate().map(of_each).collect();
    until("all know each other", || {
        participants.iter().all(|it| it.discovered_participants().unwrap().len() == MANY - 1)
    });
    until("all have matched", || {
        let readers = |it: &DataWriter<Point>| it.matched_subscriptions().unwrap().len();
        let writers = |it: &DataReader<Point>| it.matched_publications().unwrap().len();
        endpoints.iter().all(|(writer, reader)| readers(writer) == 1 && writers(reader) == 1)
    });
    for (writer, reader) in &endpoints {
        writer.write(&Point::default()).unwrap();
        assert_eq!(reader.matched_publications().unwrap().len(), 1);
    }
    until("everyone has its sample", || {
        endpoints.iter().all(|(_, reader)| reader.read().unwrap().len() == 1)
    });
}

#[test]
fn the_longest_sample_that_the_settings_allow_arrives() {
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let writer: DataWriter<Blob> = writer(&here, "Longest", QosSet::writer().keep_all());
    let reader: DataReader<Blob> = reader(&there, "Longest", QosSet::reader().reliable().keep_all());
    until("they match", || !writer.matched_subscriptions().unwrap().is_empty());
    // The header of the encapsulation, the number and the length have 12 octets.
    let octets = vec![7; Config::default().sample_bytes_max - 12];
    writer.write(&Blob { number: 1, octets }).unwrap();
    let samples = reader.wait_take(PATIENCE).unwrap();
    assert_eq!(samples.len(), 1);
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
}
