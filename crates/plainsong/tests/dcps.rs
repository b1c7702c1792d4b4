//! The API over real sockets on loopback: what an application does, end to end.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use common::{Blob, PATIENCE, Pair, Point, fresh_domain, participant, reader, until, untold_writer, writer};
use plainsong::prelude::*;
use plainsong::status::{IncompatibleQosStatus, MatchedStatus};
use plainsong::time;
use plainsong::{Error, WaitedFor};

fn reliable_pair<T: DdsType>() -> Pair<T> {
    Pair::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all())
}

fn take_until<T: DdsType>(reader: &DataReader<T>, count: usize) -> Vec<Sample<T>> {
    let mut samples = Vec::new();
    while samples.len() < count {
        samples.extend(reader.wait_take(PATIENCE).unwrap());
    }
    samples
}

#[test]
fn reliable_samples_arrive_complete_and_in_order() {
    let pair = reliable_pair::<Blob>();
    for number in 0..1000 {
        pair.writer.write(&Blob { number, octets: vec![number as u8; 32] }).unwrap();
    }
    let samples = take_until(&pair.reader, 1000);
    let numbers: Vec<_> = samples.into_iter().map(|sample| sample.data.unwrap().number).collect();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
}

#[test]
fn five_megabytes_arrive_whole() {
    let mut qos = QosSet::writer().keep_all();
    // The second sample waits until the first is acknowledged: on a busy machine that takes its time.
    qos.reliability.max_blocking_time = PATIENCE.into();
    let pair = Pair::<Blob>::new(qos, QosSet::reader().reliable().keep_all());
    let octets: Vec<u8> = (0..5_000_000u32).map(|index| (index * 7 + index / 251) as u8).collect();
    for number in 0..3 {
        pair.writer.write(&Blob { number, octets: octets.clone() }).unwrap();
    }
    for (number, sample) in (0..).zip(take_until(&pair.reader, 3)) {
        let blob = sample.data.unwrap();
        assert_eq!(blob.number, number);
        assert!(blob.octets == octets, "sample {number} differs");
    }
}

/// Says that it is a `Blob`, and promises more octets than there are.
#[derive(Clone, Debug, DdsType)]
#[dds(name = "Blob", appendable)]
struct Impostor {
    number: u32,
    count_of_octets: u32,
}

#[test]
fn r7_samples_that_cannot_be_decoded_are_counted_and_stop_nothing() {
    let pair = reliable_pair::<Blob>();
    let stranger = participant(pair.participants[0].domain_id());
    let impostor = untold_writer::<Impostor>(&stranger, "Pair", QosSet::writer().keep_all());
    until("the impostor matches", || {
        pair.reader.matched_publications().unwrap().len() == 2
            && impostor.matched_subscriptions().unwrap().len() == 1
    });
    for number in 0..3 {
        impostor.write(&Impostor { number, count_of_octets: u32::MAX - number }).unwrap();
    }
    impostor.wait_for_acknowledgments(PATIENCE).unwrap();
    pair.writer.write(&Blob { number: 7, octets: Vec::new() }).unwrap();
    let samples = take_until(&pair.reader, 1);
    assert_eq!(samples[0].data.as_ref().map(|blob| blob.number), Some(7));
    assert_eq!(pair.reader.undecodable_samples(), 3);
}

#[test]
fn instances_live_and_die() {
    let pair = reliable_pair::<Point>();
    let point = Point { id: 7, x: 1.0, y: 2.0 };
    let handle = pair.writer.register_instance(&point).unwrap();
    assert_eq!(pair.writer.lookup_instance(&point).unwrap(), Some(handle));
    assert_eq!(pair.writer.lookup_instance(&Point { id: 8, ..point }).unwrap(), None);
    pair.writer.write(&point).unwrap();
    let sample = &take_until(&pair.reader, 1)[0];
    assert_eq!(sample.data, Some(point));
    assert_eq!(
        (sample.info.instance_state, sample.info.view_state, sample.info.sample_state),
        (InstanceState::Alive, ViewState::New, SampleState::NotRead)
    );
    assert_eq!(sample.info.instance_handle, handle);

    pair.writer.dispose(&point).unwrap();
    let sample = &take_until(&pair.reader, 1)[0];
    assert!(sample.data.is_none());
    assert_eq!(sample.info.instance_state, InstanceState::NotAliveDisposed);
    assert_eq!(pair.reader.key_value(handle).unwrap().id, 7);

    pair.writer.write(&point).unwrap();
    let sample = &take_until(&pair.reader, 1)[0];
    assert_eq!(sample.info.disposed_generation_count, 1);
    assert_eq!(sample.info.view_state, ViewState::New);
}

#[test]
fn a_deleted_writer_leaves_its_instances_without_writers() {
    let pair = reliable_pair::<Point>();
    pair.writer.write(&Point { id: 1, ..Point::default() }).unwrap();
    take_until(&pair.reader, 1);
    drop(pair.writer);
    let sample = &take_until(&pair.reader, 1)[0];
    assert_eq!(sample.info.instance_state, InstanceState::NotAliveNoWriters);
    assert!(!sample.info.valid_data);
    assert!(pair.reader.matched_publications().unwrap().is_empty());
}

#[test]
fn read_keeps_what_take_removes() {
    let pair = reliable_pair::<Point>();
    pair.writer.write(&Point { id: 1, ..Point::default() }).unwrap();
    until("the sample is there", || {
        !pair.reader.read_with(&ReadOptions::new().max_samples(1)).unwrap().is_empty()
    });
    let again = pair.reader.read().unwrap();
    assert_eq!(again[0].info.sample_state, SampleState::Read);
    let unread = ReadOptions::new().sample_states([SampleState::NotRead]);
    assert!(pair.reader.read_with(&unread).unwrap().is_empty());
    assert_eq!(pair.reader.take().unwrap().len(), 1);
    assert!(pair.reader.take().unwrap().is_empty());
}

#[test]
fn a_late_joiner_gets_the_history_of_a_transient_local_writer() {
    let domain = fresh_domain();
    let first = participant(domain);
    let qos = QosSet::writer().durability(Durability::TransientLocal).keep_last(3);
    let writer = writer::<Point>(&first, "History", qos);
    for step in 0..10 {
        writer.write(&Point { id: 1, x: f64::from(step), y: 0.0 }).unwrap();
    }
    let second = participant(domain);
    let qos = QosSet::reader().reliable().durability(Durability::TransientLocal).keep_all();
    let reader = reader::<Point>(&second, "History", qos);
    until("the reader matches", || !reader.matched_publications().unwrap().is_empty());
    reader.wait_for_historical_data(PATIENCE).unwrap();
    let steps: Vec<_> = reader.take().unwrap().iter().map(|sample| sample.data.unwrap().x).collect();
    assert_eq!(steps, [7.0, 8.0, 9.0]);
}

#[test]
fn a_full_history_blocks_and_then_times_out() {
    let mut qos = QosSet::writer().keep_all();
    qos.resource_limits.max_samples = 4;
    qos.reliability.max_blocking_time = time::Duration::from_millis(50);
    let mut reader_qos = QosSet::reader().reliable().keep_all();
    reader_qos.resource_limits.max_samples = 1;
    let pair = Pair::<Blob>::new(qos, reader_qos);
    // The reader holds one sample and refuses more; the writer holds four unacknowledged ones.
    let blob = Blob::default();
    let refused = (0..20).find_map(|_| pair.writer.write(&blob).err()).unwrap();
    assert!(matches!(refused, Error::Timeout { waited_for: WaitedFor::Room, .. }), "{refused}");
    assert!(refused.to_string().contains("'Pair'"), "{refused}");
    let who = format!("for reader {}, which is ", pair.reader.guid());
    let text = refused.to_string();
    assert!(text.contains(&who) && text.ends_with(" and answers, did not finish within 50 ms"), "{text}");
    assert!(matches!(pair.writer.try_write(&blob), Err(Error::WouldBlock { .. })));
    let now = WriteOptions::new().max_blocking_time(Duration::ZERO);
    let refused = pair.writer.write_with(&blob, &now).unwrap_err();
    assert!(matches!(refused, Error::WouldBlock { .. }), "{refused}");
    assert!(
        refused.to_string().contains("'Pair', full of unacknowledged samples by RESOURCE_LIMITS max_samples"),
        "{refused}"
    );
    let Error::WouldBlock { behind, .. } = &refused else { panic!("{refused}") };
    assert_eq!(behind.iter().map(|it| it.reader).collect::<Vec<_>>(), [pair.reader.guid()]);
    assert!(refused.to_string().contains(&format!("waiting for reader {}", pair.reader.guid())), "{refused}");
    let soon = WriteOptions::new().max_blocking_time(Duration::from_millis(20));
    let refused = pair.writer.write_with(&blob, &soon).unwrap_err();
    let waited = Duration::from_millis(20);
    assert!(matches!(refused, Error::Timeout { timeout, .. } if timeout == waited.into()), "{refused}");
    // Taking makes room: a patient write gets through.
    let taker = pair.reader.clone();
    let drain = std::thread::spawn(move || take_until(&taker, 5).len());
    until("there is room again", || pair.writer.write(&blob).is_ok());
    assert!(drain.join().unwrap() >= 5);
}

#[derive(Default)]
struct Heard {
    matched: AtomicUsize,
    data: AtomicUsize,
    incompatible: Mutex<Vec<Option<PolicyId>>>,
}

impl DataWriterListener for Heard {
    fn on_publication_matched(&self, _: &AnyDataWriter, _: &MatchedStatus) {
        self.matched.fetch_add(1, Ordering::SeqCst);
    }

    fn on_offered_incompatible_qos(&self, _: &AnyDataWriter, status: &IncompatibleQosStatus) {
        self.incompatible.lock().unwrap().push(status.last_policy_id);
    }
}

impl DataReaderListener for Heard {
    fn on_data_available(&self, reader: &AnyDataReader) {
        let taken = reader.downcast::<Point>().unwrap().take().unwrap();
        self.data.fetch_add(taken.len(), Ordering::SeqCst);
    }

    fn on_requested_incompatible_qos(&self, _: &AnyDataReader, status: &IncompatibleQosStatus) {
        self.incompatible.lock().unwrap().push(status.last_policy_id);
    }
}

impl TopicListener for Heard {}
impl DomainParticipantListener for Heard {}

#[test]
fn statuses_bubble_up_to_the_participant_unless_a_closer_listener_wants_them() {
    let domain = fresh_domain();
    let (first, second) = (participant(domain), participant(domain));
    let (at_participant, at_reader) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
    let all = StatusMask::ALL.without(StatusKind::DataOnReaders);
    first.set_listener(Some(at_participant.clone()), all);
    second.set_listener(Some(at_participant.clone()), all);
    let reader = reader::<Point>(&second, "Bubbles", QosSet::reader().reliable());
    let closer = Arc::clone(&at_reader);
    reader.set_listener(Some(closer), StatusMask::NONE.with(StatusKind::DataAvailable));
    let writer = writer::<Point>(&first, "Bubbles", QosSet::writer());
    until("the participant hears of the match", || at_participant.matched.load(Ordering::SeqCst) == 1);
    until("the reader matches", || !reader.matched_publications().unwrap().is_empty());
    writer.write(&Point::default()).unwrap();
    until("the reader's own listener hears of data", || at_reader.data.load(Ordering::SeqCst) == 1);
    assert_eq!(at_participant.data.load(Ordering::SeqCst), 0);
    assert_eq!(writer.publication_matched_status().unwrap().current_count_change, 0);
}

#[test]
fn incompatible_qos_is_told_on_both_sides_with_the_policy() {
    let domain = fresh_domain();
    let (first, second) = (participant(domain), participant(domain));
    let writer = writer::<Point>(&first, "Strict", QosSet::writer().best_effort());
    let reader = reader::<Point>(&second, "Strict", QosSet::reader().reliable());
    until("the writer hears", || writer.offered_incompatible_qos_status().unwrap().count.total_count == 1);
    until("the reader hears", || reader.requested_incompatible_qos_status().unwrap().count.total_count == 1);
    let reliability = Some(PolicyId::Reliability);
    assert_eq!(writer.offered_incompatible_qos_status().unwrap().last_policy_id, reliability);
    assert_eq!(reader.requested_incompatible_qos_status().unwrap().last_policy_id, reliability);
    assert!(writer.matched_subscriptions().unwrap().is_empty());
}

#[test]
fn partitions_can_change_while_running() {
    let domain = fresh_domain();
    let (first, second) = (participant(domain), participant(domain));
    let in_partition = |name: &str| QosSet { partition: vec![name.into()], ..QosSet::default() };
    let publisher = first.create_publisher(in_partition("left")).unwrap();
    let topic = first.create_topic::<Point>("Rooms", QosSet::default()).unwrap();
    let writer = publisher.create_writer(&topic, QosSet::writer()).unwrap();
    let subscriber = second.create_subscriber(in_partition("r*")).unwrap();
    let topic = second.create_topic::<Point>("Rooms", QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&topic, QosSet::reader().reliable()).unwrap();
    until("both know of each other", || second.state().unwrap().remote_endpoints.items.len() == 1);
    assert!(reader.matched_publications().unwrap().is_empty());
    publisher.set_qos(in_partition("right")).unwrap();
    until("they match now", || {
        reader.matched_publications().unwrap() == [writer.instance_handle()]
            && writer.matched_subscriptions().unwrap() == [reader.instance_handle()]
    });
    publisher.set_qos(in_partition("left")).unwrap();
    until("and part again", || {
        reader.matched_publications().unwrap().is_empty()
            && writer.matched_subscriptions().unwrap().is_empty()
    });
}

#[test]
fn a_wait_set_wakes_for_each_kind_of_condition() {
    let pair = reliable_pair::<Point>();
    let (waiting, guard) = (WaitSet::new(), GuardCondition::new());
    let readable = pair.reader.read_condition(&ReadOptions::new());
    let available = pair.reader.status_condition(StatusMask::NONE.with(StatusKind::DataAvailable));
    for condition in [guard.condition(), readable.clone(), available.clone()] {
        waiting.attach(condition);
    }
    assert!(matches!(waiting.wait(Duration::from_millis(10)), Err(Error::Timeout { .. })));
    pair.writer.write(&Point::default()).unwrap();
    until("both conditions of the reader hold", || waiting.wait(PATIENCE).unwrap().len() == 2);
    pair.reader.take().unwrap();
    assert!(!readable.trigger_value() && !available.trigger_value());
    let other = guard.clone();
    let waker = std::thread::spawn(move || other.set_trigger_value(true));
    assert!(waiting.wait(PATIENCE).unwrap() == [guard.condition()]);
    waker.join().unwrap();
    waiting.detach(&guard.condition()).unwrap();
    assert!(waiting.detach(&guard.condition()).is_err());
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park_timeout(PATIENCE),
        }
    }
}

#[test]
fn samples_can_be_awaited_on_any_executor() {
    let pair = reliable_pair::<Blob>();
    let writer = pair.writer.clone();
    let other = std::thread::spawn(move || {
        for number in 0..3 {
            block_on(writer.write_async(&Blob { number, octets: Vec::new() })).unwrap();
        }
    });
    for number in 0..3 {
        let sample = block_on(pair.reader.next()).unwrap();
        assert_eq!(sample.data.unwrap().number, number);
    }
    other.join().unwrap();
}

#[test]
fn entities_of_a_factory_that_does_not_enable_stay_silent_until_enabled() {
    let domain = fresh_domain();
    let (first, second) = (participant(domain), participant(domain));
    let mut manual = QosSet::default();
    manual.entity_factory.autoenable_created_entities = false;
    let publisher = first.create_publisher(manual).unwrap();
    let topic = first.create_topic::<Point>("Quiet", QosSet::default()).unwrap();
    let writer = publisher.create_writer(&topic, QosSet::writer()).unwrap();
    assert!(matches!(writer.write(&Point::default()), Err(Error::NotEnabled(_))));
    let reader = reader::<Point>(&second, "Quiet", QosSet::reader());
    writer.enable().unwrap();
    until("the enabled writer matches", || {
        reader.matched_publications().unwrap() == [writer.instance_handle()]
    });
}

#[test]
fn one_participant_talks_to_itself() {
    let only = participant(fresh_domain());
    let reader = reader::<Point>(&only, "Self", QosSet::reader().reliable());
    let writer = writer::<Point>(&only, "Self", QosSet::writer());
    until("they match", || !writer.matched_subscriptions().unwrap().is_empty());
    writer.write(&Point { id: 3, ..Point::default() }).unwrap();
    assert_eq!(take_until(&reader, 1)[0].data.unwrap().id, 3);
}

#[test]
fn mistakes_are_explained() {
    let only = participant(fresh_domain());
    let topic = only.create_topic::<Point>("Taken", QosSet::default()).unwrap();
    let error = only.create_topic::<Blob>("Taken", QosSet::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "topic 'Taken' exists with type 'Point', not 'Blob'");
    let publisher = only.create_publisher(QosSet::default()).unwrap();
    let mut qos = QosSet::writer().keep_last(10);
    qos.resource_limits.max_samples_per_instance = 5;
    let error = publisher.create_writer(&topic, qos).map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, Error::InconsistentPolicy { entity, .. } if entity.contains("Taken")),
        "{error}"
    );
    let writer = publisher.create_writer(&topic, QosSet::writer()).unwrap();
    let error = writer.set_qos(QosSet::writer().best_effort()).unwrap_err();
    assert!(matches!(error, Error::ImmutablePolicy { .. }), "{error}");
    let factory = DomainParticipantFactory::with_config(common::loopback());
    assert!(matches!(factory.create_participant(233, "", QosSet::default()), Err(Error::BadParameter(_))));
}
