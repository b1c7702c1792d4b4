//! What is said is done, or refused with what was said: nothing is silently something else.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Duration;

use common::*;
use plainsong::prelude::*;
use plainsong::{Error, OutOfResources, PreconditionNotMet};

#[test]
fn a_qos_that_says_nothing_is_the_default_of_the_entity_that_gets_it() {
    let alone = participant(fresh_domain());
    let topic = alone.create_topic::<Blob>("Default", QosSet::default()).unwrap();
    assert_eq!(topic.qos().reliability.kind, ReliabilityKind::BestEffort);
    let publisher = alone.create_publisher(QosSet::default()).unwrap();
    let subscriber = alone.create_subscriber(QosSet::default()).unwrap();
    let writer = publisher.create_writer(&topic, QosSet::default()).unwrap();
    assert_eq!(writer.qos(), QosSet::writer());
    let reader = subscriber.create_reader(&topic, QosSet::default()).unwrap();
    assert_eq!(reader.qos(), QosSet::reader());
    // Of what says something, the rest is the standard's.
    let writer = publisher.create_writer(&topic, QosSet::default().keep_last(3)).unwrap();
    assert_eq!(writer.qos(), QosSet::writer().keep_last(3));
    let writer = publisher.create_writer(&topic, QosSet::default().best_effort()).unwrap();
    assert!(!writer.qos().is_reliable());
}

#[test]
fn defaults_that_were_set_are_what_a_qos_that_says_nothing_stands_for() {
    let alone = participant(fresh_domain());
    let kept = |depth| QosSet::default().keep_last(depth);
    alone.set_default_topic_qos(kept(2)).unwrap();
    let topic = alone.create_topic::<Blob>("Set", QosSet::default()).unwrap();
    assert_eq!(topic.qos().history.depth, 2);
    let partition = vec!["P".to_owned()];
    let in_partition = QosSet { partition: partition.clone(), ..QosSet::default() };
    alone.set_default_publisher_qos(in_partition.clone()).unwrap();
    alone.set_default_subscriber_qos(in_partition).unwrap();
    let publisher = alone.create_publisher(QosSet::default()).unwrap();
    let subscriber = alone.create_subscriber(QosSet::default()).unwrap();
    assert_eq!((publisher.qos().partition, subscriber.qos().partition), (partition.clone(), partition));
    publisher.set_default_writer_qos(kept(3)).unwrap();
    subscriber.set_default_reader_qos(kept(4)).unwrap();
    let writer = publisher.create_writer(&topic, QosSet::default()).unwrap();
    assert_eq!((writer.qos().history.depth, writer.qos().is_reliable()), (3, true));
    let reader = subscriber.create_reader(&topic, QosSet::default()).unwrap();
    assert_eq!((reader.qos().history.depth, reader.qos().is_reliable()), (4, false));
    let writer = publisher.create_writer(&topic, QosSet::writer()).unwrap();
    assert_eq!(writer.qos().history.depth, 1, "what is said counts");
    publisher.set_default_writer_qos(QosSet::default()).unwrap();
    assert_eq!(publisher.default_writer_qos(), QosSet::writer(), "the standard's again");
}

#[test]
fn a_topic_that_exists_with_another_qos_is_not_given_for_it() {
    let alone = participant(fresh_domain());
    let first = alone.create_topic::<Blob>("Same", QosSet::default().keep_last(2)).unwrap();
    let again = |qos| alone.create_topic::<Blob>("Same", qos);
    assert_eq!(again(QosSet::default()).unwrap().qos().history.depth, 2);
    assert!(again(first.qos()).is_ok() && again(QosSet::default().keep_last(2)).is_ok());
    let Err(Error::PreconditionNotMet(cause)) = again(QosSet::reader().keep_all()) else {
        panic!("another QoS is taken")
    };
    assert_eq!(cause, PreconditionNotMet::OtherQos { topic: "Same".into(), policy: "HISTORY" });
    let message = cause.to_string();
    assert!(message.contains("'Same'") && message.contains("HISTORY"), "{message}");
}

#[test]
fn what_is_made_of_topics_has_a_name_of_its_own_and_is_found_by_it() {
    let alone = participant(fresh_domain());
    let topic = alone.create_topic::<Point>("T", QosSet::default()).unwrap();
    let filtered = |name: &str| alone.create_content_filtered_topic(name, &topic, "x > 1", Vec::new());
    let joined = |name: &str| {
        alone.create_multi_topic::<Point>(name, "SELECT * FROM T", Vec::new(), &[(&topic).into()])
    };
    let (near, all) = (filtered("Near").unwrap(), joined("All").unwrap());
    for name in ["Near", "All", "T"] {
        for refused in [filtered(name).err(), joined(name).err()] {
            let Some(Error::PreconditionNotMet(PreconditionNotMet::NameInUse { name: used })) = refused
            else {
                panic!("'{name}' is given twice")
            };
            assert_eq!(used, name);
        }
    }
    let refused = alone.create_topic::<Point>("Near", QosSet::default());
    assert!(matches!(refused, Err(Error::PreconditionNotMet(_))));

    let found = alone.lookup_topic_description("Near").unwrap();
    assert_eq!((found.name(), found.type_name()), ("Near", "Point"));
    assert!(found.topic().is_none() && found.multi_topic::<Point>().is_none());
    assert!(found.content_filtered_topic::<Blob>().is_none());
    assert_eq!(
        found.content_filtered_topic::<Point>().unwrap().filter_expression(),
        near.filter_expression()
    );
    drop(found);
    let found = alone.lookup_topic_description("All").unwrap();
    assert_eq!(
        found.multi_topic::<Point>().unwrap().subscription_expression(),
        all.subscription_expression()
    );
    drop(near);
    assert!(filtered("Near").is_ok(), "nobody has it any more");
}

fn message_of_timeout<T>(result: Result<T, Error>) -> String {
    match result {
        Err(error @ Error::Timeout { .. }) => error.to_string(),
        _ => panic!("no timeout"),
    }
}

#[test]
fn a_timeout_tells_which_call_waited_and_for_how_long_it_was_to() {
    let alone = participant(fresh_domain());
    let reader = reader::<Blob>(&alone, "Silent", QosSet::reader());
    let asked = Duration::from_millis(15);
    let message = message_of_timeout(reader.wait_take(asked));
    let on = "wait_take on the reader of topic 'Silent'";
    assert_eq!(message, format!("{on}, whose topic no writer is known of, did not finish within 15 ms"));
    let unreliable = writer::<Blob>(&alone, "Silent", QosSet::writer().best_effort());
    let picky = common::reader::<Blob>(&alone, "Silent", QosSet::reader().reliable());
    let message = message_of_timeout(picky.wait_take(asked));
    let why = "RELIABILITY: the writer has BEST_EFFORT, the reader wants RELIABLE; ";
    let begin = format!("{on}, which writer {} does not match ({why}", unreliable.guid());
    assert!(message.starts_with(&begin) && message.ends_with("), did not finish within 15 ms"), "{message}");
    let _reliable = writer::<Blob>(&alone, "Silent", QosSet::writer());
    let message = message_of_timeout(picky.wait_take(asked));
    assert_eq!(message, format!("{on} did not finish within 15 ms"));
    let keeping = writer::<Blob>(&alone, "Kept", QosSet::writer().durability(Durability::TransientLocal));
    keeping.write(&Blob::default()).unwrap();
    let late = common::reader::<Blob>(&alone, "Kept", QosSet::reader().reliable());
    until("it matches", || !late.matched_publications().unwrap().is_empty());
    let message = message_of_timeout(late.wait_take(asked));
    let why =
        format!("(what writer {} wrote before is for readers of DURABILITY TRANSIENT_LOCAL)", keeping.guid());
    assert!(message.contains(&why), "{message}");
    let waiting = WaitSet::new();
    waiting.attach(reader.read_condition(&ReadOptions::new()));
    let message = message_of_timeout(waiting.wait(asked));
    assert!(message.starts_with("WaitSet::wait, for any of 1 condition"), "{message}");
    assert!(message.ends_with("within 15 ms"), "{message}");
}

#[test]
fn a_limit_that_refuses_a_sample_is_named_with_its_value() {
    let alone = participant(fresh_domain());
    let mut qos = QosSet::writer();
    qos.resource_limits.max_instances = 2;
    let writer = writer::<Point>(&alone, "Instances", qos);
    let write = |id| writer.write(&Point { id, ..Point::default() });
    write(0).and_then(|()| write(1)).unwrap();
    let message = write(2).unwrap_err().to_string();
    assert!(message.contains("RESOURCE_LIMITS max_instances = 2"), "{message}");

    // A reader that takes nothing keeps room from coming.
    let mut reading = QosSet::reader().reliable().keep_all();
    reading.resource_limits.max_samples = 1;
    let limited = |change: fn(&mut ResourceLimits)| {
        let mut qos = QosSet::writer().keep_all();
        change(&mut qos.resource_limits);
        qos
    };
    let limits = [
        (limited(|limits| limits.max_samples = 3), "RESOURCE_LIMITS max_samples = 3"),
        (
            limited(|limits| limits.max_samples_per_instance = 4),
            "RESOURCE_LIMITS max_samples_per_instance = 4",
        ),
    ];
    for (qos, named) in limits {
        let pair = Pair::<Point>::new(qos, reading.clone());
        let refused = (0..9).find_map(|_| pair.writer.write(&Point::default()).err());
        let message = message_of_timeout::<()>(Err(refused.unwrap()));
        assert!(message.contains(named) && message.contains("'Pair'"), "{message}");
    }
    let pair = Pair::<Blob>::new(QosSet::writer().keep_all(), reading);
    let blob = Blob { number: 0, octets: vec![0; 300_000] };
    let refused = (0..99).find_map(|_| pair.writer.try_write(&blob).err()).unwrap();
    assert!(matches!(refused, Error::WouldBlock { .. }), "{refused}");
    let message = refused.to_string();
    assert!(message.contains("unacknowledged_bytes_max = 2097152"), "{message}");
}

#[test]
fn a_partition_whose_set_never_ends_is_refused() {
    let alone = participant(fresh_domain());
    let in_partition = |name: &str| QosSet { partition: vec![name.to_owned()], ..QosSet::default() };
    for name in ["[a", "a[", "a[]", "x[a]y[b", "[!", "\\[a]["] {
        let refused = alone.create_publisher(in_partition(name));
        assert!(matches!(refused, Err(Error::InconsistentPolicy { .. })), "{name}");
    }
    for name in ["[a]", "a]", "[]a]", "[!a]*", "\\[a", "a[a-z]?"] {
        assert!(alone.create_publisher(in_partition(name)).is_ok(), "{name}");
    }
}

#[test]
fn a_writer_that_is_deleted_disposes_its_instances_and_one_that_is_dropped_leaves_them() {
    let last_state = |leave: fn(DataWriter<Point>)| {
        let Pair { writer, reader, participants } =
            Pair::<Point>::new(QosSet::writer(), QosSet::reader().reliable());
        writer.write(&Point::default()).unwrap();
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        assert_eq!(reader.wait_take(PATIENCE).unwrap().len(), 1);
        leave(writer);
        let last = reader.wait_take(PATIENCE).unwrap().pop().unwrap();
        drop(participants);
        last.info.instance_state
    };
    let deleted = last_state(|writer| writer.publisher().delete_writer(&writer.as_any()).unwrap());
    assert_eq!(deleted, InstanceState::NotAliveDisposed);
    assert_eq!(last_state(drop), InstanceState::NotAliveNoWriters);
}

#[test]
fn late_joiners_of_a_keep_all_writer_get_as_many_as_max_samples() {
    let domain = fresh_domain();
    let participants = [participant(domain), participant(domain)];
    let mut qos = QosSet::writer().keep_all().durability(Durability::TransientLocal);
    qos.resource_limits.max_samples = 3;
    let writer = writer::<Blob>(&participants[0], "Late", qos);
    (0..5).for_each(|number| writer.write(&Blob { number, ..Blob::default() }).unwrap());
    let qos = QosSet::reader().reliable().keep_all().durability(Durability::TransientLocal);
    let reader = reader::<Blob>(&participants[1], "Late", qos);
    let mut numbers = Vec::new();
    until("the last has come", || {
        let samples = reader.take().unwrap();
        numbers.extend(samples.into_iter().map(|sample| sample.data.unwrap().number));
        numbers.contains(&4)
    });
    assert_eq!(numbers, [2, 3, 4]);
}

#[test]
fn a_sample_that_no_reader_of_these_settings_takes_is_refused_where_it_is_written() {
    let domain = fresh_domain();
    let factory = DomainParticipantFactory::with_config(Config { sample_bytes_max: 2_048, ..loopback() });
    let [here, there] =
        ["here", "there"].map(|name| factory.create_participant(domain, name, QosSet::default()).unwrap());
    let writer = writer::<Blob>(&here, "Long", QosSet::writer());
    let reader = reader::<Blob>(&there, "Long", QosSet::reader().reliable());
    until("the writer matches", || !writer.matched_subscriptions().unwrap().is_empty());
    let write = |number, octets| writer.write(&Blob { number, octets: vec![0; octets] });
    let Err(Error::OutOfResources(cause)) = write(0, 2_048) else { panic!("it is written") };
    assert!(matches!(cause, OutOfResources::SampleTooLong { octets_max: 2_048, .. }), "{cause:?}");
    let message = cause.to_string();
    assert!(message.contains("sample_bytes_max = 2048") && message.contains("'Long'"), "{message}");
    write(1, 2_000).unwrap();
    assert_eq!(reader.wait_take(PATIENCE).unwrap()[0].data.as_ref().unwrap().number, 1);
    assert_eq!(reader.sample_lost_status().unwrap().total_count, 0);
}
