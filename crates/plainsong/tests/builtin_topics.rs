//! Built-in topics, what is discovered, and what is ignored (DCPS 1.4 §2.2.5, §2.2.2.2.1.14 to .30).
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Blob, PATIENCE, Pair, Point, fresh_domain, loopback, participant, reader, until, writer};
use plainsong::Error;
use plainsong::builtin_topics::{PARTICIPANT_TOPIC, PUBLICATION_TOPIC, SUBSCRIPTION_TOPIC, TOPIC_TOPIC};
use plainsong::prelude::*;
use plainsong::types::DdsType as Type;

fn builtin<T: Type>(participant: &DomainParticipant, topic: &str) -> DataReader<T> {
    let found = participant.builtin_subscriber().unwrap().lookup_reader(topic).unwrap();
    found.downcast().unwrap()
}

/// Takes until `wanted` is among the samples.
fn take_until<T: Type>(reader: &DataReader<T>, wanted: impl Fn(&Sample<T>) -> bool) -> Sample<T> {
    loop {
        if let Some(found) = reader.wait_take(PATIENCE).unwrap().into_iter().find(&wanted) {
            return found;
        }
    }
}

fn named(domain: u16, name: &str, user_data: &[u8]) -> DomainParticipant {
    let qos = QosSet { user_data: user_data.to_vec(), ..QosSet::default() };
    DomainParticipantFactory::with_config(loopback()).create_participant(domain, name, qos).unwrap()
}

#[test]
fn dcps_participant_tells_who_comes_changes_and_leaves() {
    let domain = fresh_domain();
    let watcher = participant(domain);
    let participants = builtin::<ParticipantBuiltinTopicData>(&watcher, PARTICIPANT_TOPIC);
    assert!(participants.take().unwrap().is_empty(), "of itself it tells nothing");
    let other = named(domain, "other", b"token");
    let sample = take_until(&participants, |_| true);
    let data = sample.data.unwrap();
    assert_eq!((data.name.as_str(), &data.user_data[..]), ("other", &b"token"[..]));
    assert_eq!(sample.info.instance_handle, other.instance_handle());
    assert_eq!((sample.info.instance_state, sample.info.view_state), (InstanceState::Alive, ViewState::New));
    assert_eq!(watcher.discovered_participants().unwrap(), [other.instance_handle()]);
    assert_eq!(watcher.discovered_participant_data(other.instance_handle()).unwrap(), data);

    other.set_qos(QosSet { user_data: b"changed".to_vec(), ..QosSet::default() }).unwrap();
    let sample =
        take_until(&participants, |sample| sample.data.as_ref().is_some_and(|it| it.user_data == b"changed"));
    assert_eq!(sample.info.view_state, ViewState::NotNew);

    let handle = other.instance_handle();
    drop(other);
    let sample = take_until(&participants, |sample| sample.data.is_none());
    assert_eq!(sample.info.instance_handle, handle);
    assert_eq!(sample.info.instance_state, InstanceState::NotAliveDisposed);
    assert_eq!(participants.key_value(handle).unwrap().key, handle.0);
    let error = watcher.discovered_participant_data(handle).unwrap_err();
    assert!(matches!(error, Error::PreconditionNotMet(_)), "{error}");
}

#[test]
fn who_asks_late_is_told_what_is_there() {
    let pair = Pair::<Point>::new(QosSet::writer().keep_last(3), QosSet::reader());
    let [_, second] = &pair.participants;
    let publications = builtin::<PublicationBuiltinTopicData>(second, PUBLICATION_TOPIC);
    let sample = publications.take().unwrap().pop().unwrap();
    assert_eq!(sample.info.instance_handle, pair.writer.instance_handle());
    let data = sample.data.unwrap();
    assert_eq!((data.topic_name.as_str(), data.type_name.as_str()), ("Pair", "Point"));
    assert_eq!(data.participant_key, pair.participants[0].instance_handle().0);
    assert_eq!(data.qos().reliability, pair.writer.qos().reliability);
    let topics = builtin::<TopicBuiltinTopicData>(second, TOPIC_TOPIC);
    let topic = topics.read().unwrap().pop().unwrap();
    assert_eq!(topic.data.as_ref().unwrap().name, "Pair");
    assert_eq!(second.discovered_topics().unwrap(), [topic.info.instance_handle]);
    assert_eq!(second.discovered_topic_data(topic.info.instance_handle).unwrap(), topic.data.unwrap());
    assert_eq!(
        second.lookup_topic_description("Pair").unwrap().topic().unwrap().instance_handle(),
        topic.info.instance_handle
    );
    // The readers stay: what was taken is not told again.
    assert!(builtin::<PublicationBuiltinTopicData>(second, PUBLICATION_TOPIC).take().unwrap().is_empty());
}

#[test]
fn a_topic_ends_with_its_last_endpoint() {
    let domain = fresh_domain();
    let (watcher, other) = (participant(domain), participant(domain));
    let topics = builtin::<TopicBuiltinTopicData>(&watcher, TOPIC_TOPIC);
    let subscriptions = builtin::<SubscriptionBuiltinTopicData>(&watcher, SUBSCRIPTION_TOPIC);
    let one = writer::<Point>(&other, "Places", QosSet::writer());
    let two = reader::<Point>(&other, "Places", QosSet::reader());
    take_until(&topics, |sample| sample.data.is_some());
    take_until(&subscriptions, |sample| sample.info.instance_handle == two.instance_handle());
    drop(one);
    let handle = two.instance_handle();
    drop(two);
    take_until(&subscriptions, |sample| {
        sample.info.instance_handle == handle && sample.info.instance_state == InstanceState::NotAliveDisposed
    });
    take_until(&topics, |sample| sample.info.instance_state == InstanceState::NotAliveDisposed);
    assert!(watcher.discovered_topics().unwrap().is_empty());
}

/// Counts what it hears of.
#[derive(Default)]
struct Heard(AtomicUsize);

impl DataReaderListener for Heard {
    fn on_data_available(&self, _: &AnyDataReader) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
impl DataWriterListener for Heard {}
impl TopicListener for Heard {}
impl DomainParticipantListener for Heard {}

#[test]
fn listeners_and_wait_sets_hear_of_built_in_topics_and_the_participants_listener_does_not() {
    let domain = fresh_domain();
    let watcher = participant(domain);
    let (above, own) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
    watcher.set_listener(Some(above.clone()), StatusMask::ALL);
    let participants = builtin::<ParticipantBuiltinTopicData>(&watcher, PARTICIPANT_TOPIC);
    let publications = builtin::<PublicationBuiltinTopicData>(&watcher, PUBLICATION_TOPIC);
    publications.set_listener(Some(own.clone()), StatusMask::ALL);
    let waiting = WaitSet::new();
    waiting.attach(participants.read_condition(&ReadOptions::new()));
    let other = participant(domain);
    assert_eq!(waiting.wait(PATIENCE).unwrap().len(), 1);
    let _writer = writer::<Point>(&other, "Places", QosSet::writer());
    until("the listener hears of the writer", || own.0.load(Ordering::SeqCst) > 0);
    assert_eq!(above.0.load(Ordering::SeqCst), 0);
}

#[test]
fn ignoring_ends_matches_for_good() {
    let pair = Pair::<Point>::new(QosSet::writer(), QosSet::reader().reliable());
    let [first, second] = &pair.participants;
    let error = second.ignore_subscription(pair.writer.instance_handle()).unwrap_err();
    assert!(matches!(error, Error::BadParameter(_)), "{error}");
    second.ignore_publication(pair.writer.instance_handle()).unwrap();
    assert!(pair.reader.matched_publications().unwrap().is_empty());
    let error = pair.reader.matched_publication_data(pair.writer.instance_handle()).unwrap_err();
    assert!(matches!(error, Error::BadParameter(_)), "{error}");
    let again = writer::<Point>(first, "Pair", QosSet::writer());
    until("another writer of the same participant matches", || {
        pair.reader.matched_publications().unwrap() == [again.instance_handle()]
    });
    assert_eq!(pair.reader.matched_publication_data(again.instance_handle()).unwrap().topic_name, "Pair");
    second
        .ignore_topic(second.lookup_topic_description("Pair").unwrap().topic().unwrap().instance_handle())
        .unwrap();
    assert!(pair.reader.matched_publications().unwrap().is_empty());
    second.ignore_participant(first.instance_handle()).unwrap();
    assert!(second.discovered_participants().unwrap().is_empty());
}

#[test]
fn an_ignored_subscription_gets_nothing() {
    let pair = Pair::<Point>::new(QosSet::writer(), QosSet::reader().reliable());
    assert_eq!(
        pair.writer.matched_subscription_data(pair.reader.instance_handle()).unwrap().type_name,
        "Point"
    );
    pair.participants[0].ignore_subscription(pair.reader.instance_handle()).unwrap();
    assert!(pair.writer.matched_subscriptions().unwrap().is_empty());
    pair.writer.write(&Point::default()).unwrap();
    let waited = pair.reader.wait_take(Duration::from_millis(50));
    assert!(matches!(waited, Err(Error::Timeout { .. })));
}

#[test]
fn a_participant_can_ignore_its_own_endpoints() {
    let one = participant(fresh_domain());
    let (writer, reader) =
        (writer::<Point>(&one, "Own", QosSet::writer()), reader::<Point>(&one, "Own", QosSet::reader()));
    until("they match", || !writer.matched_subscriptions().unwrap().is_empty());
    one.ignore_participant(one.instance_handle()).unwrap();
    assert!(writer.matched_subscriptions().unwrap().is_empty());
    assert!(reader.matched_publications().unwrap().is_empty());
}

#[test]
fn a_topic_that_others_have_is_found_and_one_of_another_type_is_inconsistent() {
    let domain = fresh_domain();
    let (one, other) = (participant(domain), participant(domain));
    let error = one.find_topic::<Point>("Shared", Duration::from_millis(30)).map(drop).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    let _writer = writer::<Point>(&other, "Shared", QosSet::writer().keep_last(4));
    let topic = one.find_topic::<Point>("Shared", PATIENCE).unwrap();
    assert_eq!(topic.name(), "Shared");
    assert_eq!(topic.inconsistent_topic_status().total_count, 0);
    let error = one.find_topic::<Blob>("Shared", PATIENCE).map(drop).unwrap_err();
    assert!(matches!(error, Error::PreconditionNotMet(_)), "{error}");

    struct Told(AtomicUsize);
    impl TopicListener for Told {
        fn on_inconsistent_topic(&self, topic: &AnyTopic, status: &CountStatus) {
            assert_eq!((topic.name(), status.total_count_change), ("Shared", 1));
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let told = Arc::new(Told(AtomicUsize::new(0)));
    topic.set_listener(Some(told.clone()), StatusMask::ALL);
    let third = participant(domain);
    let _stranger = writer::<Blob>(&third, "Shared", QosSet::writer());
    until("the listener is told", || told.0.load(Ordering::SeqCst) == 1);
    assert_eq!(topic.inconsistent_topic_status().total_count, 1);
    // A topic that is made later meets what is there.
    let late = participant(domain);
    until("both are discovered", || late.discovered_topics().unwrap().len() == 2);
    let topic = late.create_topic::<Blob>("Shared", QosSet::default()).unwrap();
    assert!(topic.status_changes().contains(StatusKind::InconsistentTopic));
    assert_eq!(topic.inconsistent_topic_status().total_count, 1);
}

#[test]
fn whatever_comes_and_goes_at_once_the_last_word_is_right() {
    let domain = fresh_domain();
    let (watcher, other) = (participant(domain), participant(domain));
    let publications = builtin::<PublicationBuiltinTopicData>(&watcher, PUBLICATION_TOPIC);
    let kept = writer::<Point>(&other, "Kept", QosSet::writer());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let other = &other;
            scope.spawn(move || {
                for _ in 0..25 {
                    drop(writer::<Point>(other, &format!("Brief{thread}"), QosSet::writer()));
                }
            });
        }
    });
    let last = writer::<Point>(&other, "Last", QosSet::writer());
    until("the last writer is told", || {
        publications
            .read_with(&ReadOptions::new().instance(last.instance_handle()))
            .is_ok_and(|samples| !samples.is_empty())
    });
    let alive = ReadOptions::new().instance_states([InstanceState::Alive]);
    until("only those that are there are alive", || {
        let samples = publications.read_with(&alive).unwrap();
        let mut alive: Vec<_> = samples.iter().map(|sample| sample.info.instance_handle).collect();
        alive.sort_unstable();
        let mut expected = [kept.instance_handle(), last.instance_handle()];
        expected.sort_unstable();
        alive == expected
    });
    assert_eq!(watcher.discovered_topics().unwrap().len(), 2);
}

#[test]
fn the_qos_of_built_in_entities_is_fixed() {
    let one = participant(fresh_domain());
    let subscriber = one.builtin_subscriber().unwrap();
    let participants = builtin::<ParticipantBuiltinTopicData>(&one, PARTICIPANT_TOPIC);
    assert!(matches!(participants.set_qos(QosSet::reader()), Err(Error::PreconditionNotMet(_))));
    assert!(matches!(subscriber.set_qos(QosSet::default()), Err(Error::PreconditionNotMet(_))));
    assert_eq!(participants.qos().durability, Durability::TransientLocal);
    assert!(participants.qos().is_reliable() && subscriber.is_builtin());
    assert!(subscriber.lookup_reader("DCPSNothing").is_none());
}
