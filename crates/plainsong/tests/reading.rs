//! Every way to read and take (DCPS 1.4 §2.2.2.5.3.8 to .19), handles and keys, conditions, and time.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Duration;

use common::{PATIENCE, Pair, Point, fresh_domain, participant, reader, until, writer};
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::qos::{AccessScope, Presentation};
use plainsong::time;

fn pair() -> Pair<Point> {
    Pair::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all())
}

fn write(pair: &Pair<Point>, points: &[(u32, f64)]) {
    for (id, x) in points {
        pair.writer.write(&Point { id: *id, x: *x, y: 0.0 }).unwrap();
    }
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
}

fn values(samples: &[Sample<Point>]) -> Vec<f64> {
    samples.iter().filter_map(|sample| sample.data.map(|point| point.x)).collect()
}

#[test]
fn read_keeps_take_removes_and_each_is_bounded() {
    let pair = pair();
    write(&pair, &[(1, 1.0), (1, 2.0), (1, 3.0)]);
    assert_eq!(values(&pair.reader.read_with(&ReadOptions::new().max_samples(2)).unwrap()), [1.0, 2.0]);
    assert_eq!(values(&pair.reader.read().unwrap()), [1.0, 2.0, 3.0]);
    assert!(pair.reader.read_next_sample().unwrap().is_none(), "all were read");
    assert_eq!(values(&pair.reader.take_with(&ReadOptions::new().max_samples(1)).unwrap()), [1.0]);
    assert!(pair.reader.take_next_sample().unwrap().is_none(), "all were read");
    write(&pair, &[(1, 4.0)]);
    assert_eq!(pair.reader.read_next_sample().unwrap().unwrap().data.unwrap().x, 4.0);
    write(&pair, &[(1, 5.0)]);
    assert_eq!(pair.reader.take_next_sample().unwrap().unwrap().data.unwrap().x, 5.0);
    let selector = ReadOptions::new().max_samples(2);
    assert_eq!(values(&pair.reader.read_with(&selector).unwrap()), [2.0, 3.0]);
    assert_eq!(values(&pair.reader.take_with(&selector).unwrap()), [2.0, 3.0]);
    assert_eq!(values(&pair.reader.take().unwrap()), [4.0]);
}

#[test]
fn a_buffer_has_what_was_taken_last() {
    let pair = pair();
    let mut samples = SampleBuffer::new();
    let selector = ReadOptions::new().max_samples(2);
    write(&pair, &[(1, 1.0), (1, 2.0), (1, 3.0)]);
    let mut taken = || {
        pair.reader.take_reusing(&selector, &mut samples).unwrap();
        values(&samples)
    };
    assert_eq!(taken(), [1.0, 2.0]);
    assert_eq!(taken(), [3.0]);
    assert!(taken().is_empty());
    pair.writer.dispose(&Point { id: 1, ..Point::default() }).unwrap();
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert!(taken().is_empty(), "no value");
    let ended = samples.iter().map(|sample| (sample.data.is_some(), sample.info.instance_state));
    assert_eq!(ended.collect::<Vec<_>>(), [(false, InstanceState::NotAliveDisposed)]);
}

#[test]
fn instances_are_read_by_handle_and_one_after_the_other() {
    let pair = pair();
    write(&pair, &[(1, 1.0), (2, 2.0), (1, 1.5), (3, 3.0)]);
    let handle = pair.reader.lookup_instance(&Point { id: 1, ..Point::default() }).unwrap().unwrap();
    assert_eq!(pair.writer.lookup_instance(&Point { id: 1, ..Point::default() }).unwrap(), Some(handle));
    assert_eq!(pair.reader.key_value(handle).unwrap().id, 1);
    assert_eq!(
        pair.writer
            .key_value(pair.writer.register_instance(&Point { id: 9, ..Point::default() }).unwrap())
            .unwrap()
            .id,
        9
    );
    assert_eq!(values(&pair.reader.read_with(&ReadOptions::new().instance(handle)).unwrap()), [1.0, 1.5]);
    let unknown = InstanceHandle([7; 16]);
    assert!(matches!(
        pair.reader.read_with(&ReadOptions::new().instance(unknown)),
        Err(Error::BadParameter(_))
    ));
    assert!(matches!(
        pair.reader.take_with(&ReadOptions::new().instance(unknown)),
        Err(Error::BadParameter(_))
    ));
    let mut previous = InstanceHandle::NIL;
    let mut seen = Vec::new();
    loop {
        let samples = pair.reader.read_with(&ReadOptions::new().next_instance(previous)).unwrap();
        let Some(first) = samples.first() else { break };
        previous = first.info.instance_handle;
        seen.extend(values(&samples));
    }
    seen.sort_by(f64::total_cmp);
    assert_eq!(seen, [1.0, 1.5, 2.0, 3.0]);
    assert_eq!(
        values(&pair.reader.take_with(&ReadOptions::new().instance(handle).max_samples(1)).unwrap()),
        [1.0]
    );
    let mut left = 0;
    let mut previous = InstanceHandle::NIL;
    loop {
        let samples = pair.reader.take_with(&ReadOptions::new().next_instance(previous)).unwrap();
        let Some(first) = samples.first() else { break };
        previous = first.info.instance_handle;
        left += samples.len();
    }
    assert_eq!(left, 3);
}

#[test]
fn conditions_choose_what_is_read() {
    let pair = pair();
    let large = pair.reader.query_condition(&ReadOptions::new(), "x > %0", vec!["1.2".into()]).unwrap();
    let waiting = WaitSet::new();
    waiting.attach(large.condition());
    assert!(matches!(waiting.wait(Duration::from_millis(5)), Err(Error::Timeout { .. })));
    write(&pair, &[(1, 1.0), (2, 2.0), (1, 1.5), (3, 0.5)]);
    assert_eq!(waiting.wait(PATIENCE).unwrap().len(), 1);
    assert_eq!(waiting.conditions().len(), 1);
    let mut read = values(&pair.reader.read_with(&ReadOptions::new().condition(&large)).unwrap());
    read.sort_by(f64::total_cmp);
    assert_eq!(read, [1.5, 2.0]);
    let mut by_instance = Vec::new();
    let mut previous = InstanceHandle::NIL;
    loop {
        let samples =
            pair.reader.read_with(&ReadOptions::new().next_instance(previous).condition(&large)).unwrap();
        let Some(first) = samples.first() else { break };
        previous = first.info.instance_handle;
        by_instance.push(values(&samples).len());
    }
    assert_eq!(by_instance, [1, 1], "the instance 3 has nothing to show");
    let one = pair
        .reader
        .take_with(&ReadOptions::new().next_instance(InstanceHandle::NIL).condition(&large))
        .unwrap();
    assert_eq!(one.len(), 1);
    assert_eq!(pair.reader.take_with(&ReadOptions::new().condition(&large)).unwrap().len(), 1);
    assert_eq!(pair.reader.read().unwrap().len(), 2, "what the condition does not choose stays");
    let other = reader::<Point>(&pair.participants[1], "Pair", QosSet::reader());
    assert!(matches!(
        other.read_with(&ReadOptions::new().condition(&large)),
        Err(Error::PreconditionNotMet(_))
    ));
}

#[test]
fn deleted_conditions_are_never_triggered_again() {
    let pair = pair();
    let states = pair.reader.read_condition(&ReadOptions::new());
    let content = pair.reader.query_condition(&ReadOptions::new(), "x > 0", Vec::new()).unwrap();
    write(&pair, &[(1, 1.0)]);
    assert!(states.trigger_value() && content.condition().trigger_value());
    assert_eq!(states.read_options(), Some(ReadOptions::new()));
    assert_eq!(states.data_reader().unwrap().guid(), pair.reader.guid());
    let matched = StatusMask::NONE.with(StatusKind::SubscriptionMatched);
    assert_eq!(pair.reader.status_condition(matched).enabled_statuses(), Some(matched));
    assert_eq!(pair.reader.topic().name(), "Pair");
    pair.reader.delete_contained_entities().unwrap();
    assert!(!states.trigger_value() && !content.condition().trigger_value());
    assert!(pair.reader.read_condition(&ReadOptions::new()).trigger_value(), "new ones are");
}

#[test]
fn a_guard_condition_is_what_the_application_makes_it() {
    let guard = GuardCondition::new();
    let waiting = WaitSet::new();
    waiting.attach(guard.condition());
    assert!(matches!(waiting.wait(Duration::from_millis(5)), Err(Error::Timeout { .. })));
    let trigger = guard.clone();
    let thread = std::thread::spawn(move || trigger.set_trigger_value(true));
    assert!(waiting.wait(PATIENCE).unwrap()[0] == guard.condition());
    thread.join().unwrap();
    assert!(guard.trigger_value());
    guard.set_trigger_value(false);
    assert!(!guard.trigger_value());
    waiting.detach(&guard.condition()).unwrap();
    assert!(matches!(waiting.detach(&guard.condition()), Err(Error::PreconditionNotMet(_))));
}

#[test]
fn a_subscriber_names_the_readers_that_have_data() {
    let domain = fresh_domain();
    let (one, other) = (participant(domain), participant(domain));
    let subscriber = other.create_subscriber(QosSet::default()).unwrap();
    let topics = ["A", "B"].map(|name| other.create_topic::<Point>(name, QosSet::default()).unwrap());
    let qos = QosSet::reader().reliable().keep_all();
    let readers = topics.each_ref().map(|topic| subscriber.create_reader(topic, qos.clone()).unwrap());
    let source = writer::<Point>(&one, "B", QosSet::writer().keep_all());
    until("they match", || !source.matched_subscriptions().unwrap().is_empty());
    assert!(subscriber.readers(&ReadOptions::new()).is_empty());
    source.write(&Point::default()).unwrap();
    until("the sample arrives", || !subscriber.readers(&ReadOptions::new()).is_empty());
    let guids = |selector: &ReadOptions| -> Vec<Guid> {
        subscriber.readers(selector).iter().map(AnyDataReader::guid).collect()
    };
    assert_eq!(guids(&ReadOptions::new()), [readers[1].guid()]);
    readers[1].read().unwrap();
    let unread = ReadOptions::new().sample_states([SampleState::NotRead]);
    assert!(guids(&unread).is_empty());
    assert_eq!(guids(&ReadOptions::new()), [readers[1].guid()]);
}

#[test]
fn under_group_access_readers_are_read_within_an_access() {
    let domain = fresh_domain();
    let one = participant(domain);
    let presentation =
        Presentation { access_scope: AccessScope::Group, coherent_access: false, ordered_access: true };
    let subscriber = one.create_subscriber(QosSet { presentation, ..QosSet::default() }).unwrap();
    let topic = one.create_topic::<Point>("A", QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&topic, QosSet::reader()).unwrap();
    assert!(matches!(
        reader.take_with(&ReadOptions::new().max_samples(1)),
        Err(Error::PreconditionNotMet(_))
    ));
    subscriber.begin_access().unwrap();
    assert!(reader.take_with(&ReadOptions::new().max_samples(1)).unwrap().is_empty());
    subscriber.end_access().unwrap();
    assert!(matches!(subscriber.end_access(), Err(Error::PreconditionNotMet(_))));
}

#[test]
fn timestamps_of_the_application_arrive_and_never_go_back_by_source() {
    let by_source = |qos: QosSet| QosSet { destination_order: DestinationOrder::BySourceTimestamp, ..qos };
    let pair = Pair::<Point>::new(
        by_source(QosSet::writer().keep_all()),
        by_source(QosSet::reader().reliable().keep_all()),
    );
    let at = |seconds: i64| Time(1_700_000_000_000_000_000).plus(time::Duration::from_secs(seconds));
    let point = Point { id: 1, ..Point::default() };
    pair.writer.write_with(&point, &WriteOptions::new().source_timestamp(at(10))).unwrap();
    let error = pair.writer.write_with(&point, &WriteOptions::new().source_timestamp(at(9))).unwrap_err();
    let Error::BadParameter(plainsong::BadParameter::TimestampBack { timestamp, last, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!((timestamp, last), (at(9), at(10)));
    let error = pair.writer.dispose_with(&point, &WriteOptions::new().source_timestamp(at(8))).unwrap_err();
    assert!(error.to_string().contains("2023-11-14T22:13:28Z is older than 2023-11-14T22:13:30Z"), "{error}");
    pair.writer.write_with(&Point { id: 2, ..point }, &WriteOptions::new().source_timestamp(at(9))).unwrap();
    pair.writer.dispose_with(&point, &WriteOptions::new().source_timestamp(at(11))).unwrap();
    pair.writer
        .unregister_instance_with(&Point { id: 2, ..point }, &WriteOptions::new().source_timestamp(at(12)))
        .unwrap();
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let samples = pair.reader.take().unwrap();
    let mut found: Vec<_> =
        samples.iter().map(|sample| (sample.info.source_timestamp, sample.data.is_some())).collect();
    found.sort_unstable();
    assert_eq!(found, [(at(9), true), (at(10), true), (at(11), false), (at(12), false)]);
}

#[test]
fn timestamps_and_durations_that_rtps_cannot_tell_are_bad_parameters() {
    let by_source = |qos: QosSet| QosSet { destination_order: DestinationOrder::BySourceTimestamp, ..qos };
    let pair = Pair::<Point>::new(
        by_source(QosSet::writer().keep_all()),
        by_source(QosSet::reader().reliable().keep_all()),
    );
    let (writer, point) = (&pair.writer, Point { id: 1, ..Point::default() });
    let handle = writer.register_instance(&point).unwrap();
    let end_nanos = (1 << 32) * 1_000_000_000;
    for wrong in [-1, i64::MIN, end_nanos, i64::MAX].map(Time) {
        let refused = [
            writer.write_with(&point, &WriteOptions::new().source_timestamp(wrong)),
            writer.write_with(&point, &WriteOptions::new().instance(handle).source_timestamp(wrong)),
            writer.dispose_with(&point, &WriteOptions::new().source_timestamp(wrong)),
            writer.dispose_with(&point, &WriteOptions::new().instance(handle).source_timestamp(wrong)),
            writer.unregister_instance_with(&point, &WriteOptions::new().source_timestamp(wrong)),
            writer.unregister_instance_with(
                &point,
                &WriteOptions::new().instance(handle).source_timestamp(wrong),
            ),
        ];
        for error in refused.map(Result::unwrap_err) {
            assert!(matches!(error, Error::BadParameter(_)), "{error}");
            assert!(error.to_string().contains("the writer of topic 'Pair'"), "{error}");
            let allowed = "from 1970-01-01T00:00:00Z to 2106-02-07T06:28:15.999999999Z";
            assert!(error.to_string().contains(allowed), "{error}");
        }
    }
    // The instance is not silenced.
    writer.write(&point).unwrap();
    writer.write_with(&point, &WriteOptions::new().source_timestamp(Time(end_nanos - 1))).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(pair.reader.take().unwrap().len(), 2);

    let here = &pair.participants[0];
    let publisher = here.create_publisher(QosSet::default()).unwrap();
    let topic = here.create_topic::<Point>("Durations", QosSet::default()).unwrap();
    for wrong in [Duration(-1), time::Duration::from_secs(i32::MAX.into())] {
        let qos = QosSet { lifespan: wrong, ..QosSet::writer() };
        let error = publisher.create_writer(&topic, qos).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::BadParameter(_)), "{error}");
        assert!(error.to_string().starts_with("LIFESPAN of the writer of topic 'Durations': "), "{error}");
    }
}

#[test]
fn a_late_joiner_waits_for_historical_data() {
    let domain = fresh_domain();
    let one = participant(domain);
    let durable = QosSet::writer().keep_all().durability(Durability::TransientLocal);
    let source = writer::<Point>(&one, "History", durable);
    for x in 0..50 {
        source.write(&Point { id: 1, x: x.into(), y: 0.0 }).unwrap();
    }
    let qos = QosSet::reader().reliable().keep_all().durability(Durability::TransientLocal);
    let late = reader::<Point>(&participant(domain), "History", qos);
    until("they match", || !late.matched_publications().unwrap().is_empty());
    late.wait_for_historical_data(PATIENCE).unwrap();
    assert_eq!(late.take().unwrap().len(), 50);
}

#[test]
fn what_is_written_by_handle_is_checked_against_the_key() {
    let mut qos = QosSet::writer().keep_all();
    qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
    let pair = Pair::<Point>::new(qos, QosSet::reader().reliable().keep_all());
    let point = |id| Point { id, x: 5.0, ..Point::default() };
    let writer = &pair.writer;
    let [one, two] = [1, 2].map(|id| writer.register_instance(&point(id)).unwrap());
    let nobody = InstanceHandle([9; 16]);
    type Operation = fn(&DataWriter<Point>, &Point, InstanceHandle) -> plainsong::Result<()>;
    let operations: [Operation; 3] = [
        |writer, point, handle| writer.write_with(point, &WriteOptions::new().instance(handle)),
        |writer, point, handle| writer.dispose_with(point, &WriteOptions::new().instance(handle)),
        |writer, point, handle| writer.unregister_instance_with(point, &WriteOptions::new().instance(handle)),
    ];
    for operation in operations {
        assert!(matches!(operation(writer, &point(1), two), Err(Error::PreconditionNotMet(_))));
        assert!(matches!(operation(writer, &point(1), nobody), Err(Error::BadParameter(_))));
        operation(writer, &point(1), one).unwrap();
        operation(writer, &point(2), InstanceHandle::NIL).unwrap();
    }
    // Both were unregistered last: their handles name nothing, and there is nothing to unregister.
    assert!(matches!(operations[0](writer, &point(1), one), Err(Error::BadParameter(_))));
    assert!(matches!(writer.unregister_instance(&point(1)), Err(Error::PreconditionNotMet(_))));
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let samples = pair.reader.take().unwrap();
    assert_eq!(samples.iter().filter(|sample| sample.data == Some(point(1))).count(), 1);
    assert!(samples.iter().all(|sample| sample.info.instance_state == InstanceState::NotAliveDisposed));
    // A source timestamp goes along.
    let seven = writer.register_instance(&point(7)).unwrap();
    let stamp = Time(77_000_000_000);
    writer.write_with(&point(7), &WriteOptions::new().instance(seven).source_timestamp(stamp)).unwrap();
    let info = pair.reader.wait_take(PATIENCE).unwrap().remove(0).info;
    assert_eq!((info.instance_handle, info.source_timestamp), (seven, stamp));
    // Without a key there are no instances that a handle could name.
    let blobs = common::writer::<common::Blob>(&pair.participants[0], "Blobs", QosSet::writer());
    let refused = blobs.write_with(&common::Blob::default(), &WriteOptions::new().instance(seven));
    assert!(matches!(refused, Err(Error::BadParameter(_))));
    blobs.write_with(&common::Blob::default(), &WriteOptions::new().instance(InstanceHandle::NIL)).unwrap();
}

#[test]
fn manual_liveliness_is_asserted_by_writing_with_any_writer_and_by_the_participant() {
    let lease = time::Duration::from_secs(1);
    let leased = |kind| QosSet { liveliness: Liveliness { kind, lease_duration: lease }, ..QosSet::writer() };
    let domain = fresh_domain();
    let (one, other) = (participant(domain), participant(domain));
    let silent = writer::<Point>(&one, "Silent", leased(LivelinessKind::ManualByParticipant));
    let busy = writer::<Point>(&one, "Busy", QosSet::writer());
    let watcher = reader::<Point>(&other, "Silent", QosSet::reader());
    until("they match", || !watcher.matched_publications().unwrap().is_empty());
    let alive = || watcher.liveliness_changed_status().unwrap().alive_count;
    for _ in 0..44 {
        busy.write(&Point::default()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(alive(), 1);
    until("nobody writes any more", || alive() == 0);
    assert_eq!(silent.liveliness_lost_status().unwrap().total_count, 1);
    one.assert_liveliness().unwrap();
    until("the participant asserts", || alive() == 1);
    until("nobody asserts any more", || alive() == 0);
    silent.assert_liveliness().unwrap();
    until("the writer asserts", || alive() == 1);
}
