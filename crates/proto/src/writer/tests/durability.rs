//! DURABILITY and DURABILITY_SERVICE (DCPS 1.4 §2.2.3.4, §2.2.3.5): what late joiners get.

use super::*;
use crate::qos::{DurabilityService, History, ResourceLimits, WriterDataLifecycle};

const SECOND: Duration = Duration::from_secs(1);

fn service(history: History, limits: ResourceLimits, delay: Duration) -> DurabilityService {
    DurabilityService { service_cleanup_delay: delay, history, resource_limits: limits }
}

fn keep_last(depth: i32) -> DurabilityService {
    let history = History { kind: HistoryKind::KeepLast, depth };
    service(history, ResourceLimits::default(), Duration::ZERO)
}

fn keep_all(limits: ResourceLimits) -> DurabilityService {
    service(History { kind: HistoryKind::KeepAll, depth: 1 }, limits, Duration::ZERO)
}

fn transient(qos: QosSet, service: DurabilityService) -> QosSet {
    QosSet { durability_service: service, ..qos.durability(Durability::Transient) }
}

/// An instance is unregistered without being disposed.
fn without_autodispose(qos: QosSet) -> QosSet {
    let writer_data_lifecycle = WriterDataLifecycle { autodispose_unregistered_instances: false };
    QosSet { writer_data_lifecycle, ..qos }
}

/// What a reader gets that joins now: numbers and instances.
fn joiner(story: &mut Story, number: u8) -> Vec<i64> {
    story.sent();
    let reader = reader(number, QosSet::reader().reliable().durability(Durability::Transient));
    story.matched(&reader);
    let got = data(&story.sent());
    story.writer.unmatch_reader(story.now, reader.guid, &mut story.out);
    got
}

fn write_each(story: &mut Story, count: usize, instances: &[u8]) {
    for _ in 0..count {
        for instance in instances {
            story.write(*instance, b"data").unwrap();
        }
    }
}

#[test]
fn a_service_with_a_shorter_history_keeps_less_than_the_writer() {
    for durability in [Durability::Transient, Durability::Persistent] {
        let qos = transient(QosSet::writer().keep_last(10), keep_last(2)).durability(durability);
        let mut story = Story::new(qos);
        write_each(&mut story, 5, &[1, 2]);
        assert_eq!(joiner(&mut story, 7), [7, 8, 9, 10], "{durability:?}: two of each instance");
    }
}

#[test]
fn a_service_with_a_longer_history_keeps_more_than_the_writer() {
    let mut story = Story::new(transient(QosSet::writer().keep_last(1), keep_last(3)));
    write_each(&mut story, 5, &[1]);
    assert_eq!(joiner(&mut story, 7), [3, 4, 5]);
    let mut story = Story::new(transient(QosSet::writer().keep_last(1), keep_all(ResourceLimits::default())));
    write_each(&mut story, 5, &[1]);
    assert_eq!(joiner(&mut story, 7), [1, 2, 3, 4, 5]);
}

#[test]
fn transient_local_follows_the_history_of_the_writer_whatever_the_service_says() {
    let qos = transient(QosSet::writer().keep_last(3), keep_last(1)).durability(Durability::TransientLocal);
    let mut story = Story::new(qos);
    write_each(&mut story, 5, &[1]);
    assert_eq!(joiner(&mut story, 7), [3, 4, 5]);
}

#[test]
fn what_somebody_still_misses_stays_until_it_is_acknowledged() {
    let mut story = Story::new(transient(QosSet::writer().keep_all(), keep_last(1)));
    let slow = reliable(3);
    story.matched(&slow);
    write_each(&mut story, 4, &[1]);
    story.sent();
    story.acknack(&slow, 2, &[2, 3]).unwrap();
    assert_eq!(data(&story.sent()), [2, 3]);
    story.acknack(&slow, 5, &[]).unwrap();
    assert_eq!(joiner(&mut story, 7), [4]);
}

#[test]
fn at_the_limits_of_the_service_the_oldest_leaves_and_no_write_waits() {
    let limits = ResourceLimits { max_samples: 3, ..ResourceLimits::default() };
    let mut story = Story::new(transient(QosSet::writer().keep_all(), keep_all(limits)));
    write_each(&mut story, 3, &[1, 2]);
    assert_eq!(joiner(&mut story, 7), [4, 5, 6]);
    let limits = ResourceLimits { max_samples_per_instance: 2, ..ResourceLimits::default() };
    let mut story = Story::new(transient(QosSet::writer().keep_all(), keep_all(limits)));
    write_each(&mut story, 3, &[1, 2]);
    assert_eq!(joiner(&mut story, 7), [3, 4, 5, 6]);
}

#[test]
fn the_writers_own_limits_still_bound_what_is_not_acknowledged() {
    let limits = ResourceLimits { max_samples: 3, max_samples_per_instance: 2, ..ResourceLimits::default() };
    let qos = transient(QosSet::writer().keep_all(), keep_all(ResourceLimits::default()));
    let mut story = Story::new(QosSet { resource_limits: limits, ..qos });
    write_each(&mut story, 10, &[1]);
    let slow = reliable(3);
    story.matched(&slow);
    write_each(&mut story, 2, &[1]);
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full), "two of the instance are on their way");
    write_each(&mut story, 1, &[2]);
    assert_eq!(story.write(3, b"data"), Err(WriteError::Full), "three samples are on their way");
    story.acknack(&slow, 14, &[]).unwrap();
    write_each(&mut story, 1, &[3]);
    story.acknack(&slow, 15, &[]).unwrap();
    assert_eq!(joiner(&mut story, 7), (1..=14).collect::<Vec<_>>());
}

#[test]
fn a_disposed_and_unregistered_instance_is_forgotten_after_the_cleanup_delay() {
    let service = service(History::default(), ResourceLimits::default(), Duration::from_secs(5));
    let mut story = Story::new(transient(QosSet::writer(), service));
    write_each(&mut story, 1, &[1, 2]);
    story.change(ChangeKind::DisposeUnregister, 1, b"key").unwrap();
    story.change(ChangeKind::Dispose, 2, b"key").unwrap();
    story.pass(Duration::from_secs(4));
    assert_eq!(joiner(&mut story, 7), [3, 4], "who joins now learns of the end");
    story.pass(Duration::from_secs(2));
    assert_eq!(joiner(&mut story, 7), [4], "2 is disposed, but still registered");
    assert_eq!(story.writer.next_timeout(), None);
}

#[test]
fn without_a_cleanup_delay_it_is_forgotten_at_once() {
    let mut story = Story::new(transient(QosSet::writer(), keep_last(1)));
    write_each(&mut story, 1, &[1, 2]);
    story.change(ChangeKind::Unregister, 1, b"key").unwrap();
    assert_eq!(joiner(&mut story, 7), [2]);
    assert_eq!(story.writer.instances.len(), 1);
}

#[test]
fn an_instance_that_was_unregistered_but_not_disposed_is_kept_with_its_data() {
    let service = service(History::default(), ResourceLimits::default(), SECOND);
    let mut story = Story::new(without_autodispose(transient(QosSet::writer(), service)));
    write_each(&mut story, 2, &[1]);
    story.change(ChangeKind::Unregister, 1, b"key").unwrap();
    story.pass(Duration::from_secs(100));
    assert_eq!(joiner(&mut story, 7), [2, 3], "the last sample, and that nobody writes it any more");
    write_each(&mut story, 1, &[1]);
    assert_eq!(joiner(&mut story, 7), [4]);
}

#[test]
fn disposing_and_unregistering_one_after_the_other_counts_as_both() {
    let service = service(History::default(), ResourceLimits::default(), SECOND);
    let mut story = Story::new(without_autodispose(transient(QosSet::writer(), service)));
    write_each(&mut story, 1, &[1]);
    story.change(ChangeKind::Dispose, 1, b"key").unwrap();
    story.change(ChangeKind::Unregister, 1, b"key").unwrap();
    assert_eq!(joiner(&mut story, 7), [2, 3]);
    story.pass(Duration::from_secs(2));
    assert_eq!(joiner(&mut story, 7), Vec::<i64>::new());
}

#[test]
fn an_instance_that_is_written_again_in_time_is_not_forgotten() {
    let service = service(History::default(), ResourceLimits::default(), SECOND);
    let mut story = Story::new(transient(QosSet::writer(), service));
    write_each(&mut story, 1, &[1]);
    story.change(ChangeKind::DisposeUnregister, 1, b"key").unwrap();
    write_each(&mut story, 1, &[1]);
    story.pass(Duration::from_secs(10));
    assert_eq!(joiner(&mut story, 7), [3]);
}

#[test]
fn instances_that_nobody_writes_make_room_for_new_ones() {
    let limits = ResourceLimits { max_instances: 2, ..ResourceLimits::default() };
    let kept = service(History::default(), limits, Duration::INFINITE);
    let mut story = Story::new(without_autodispose(transient(QosSet::writer(), kept)));
    for instance in 1..=4 {
        write_each(&mut story, 1, &[instance]);
        story.change(ChangeKind::Unregister, instance, b"key").unwrap();
    }
    assert_eq!(joiner(&mut story, 7), [5, 6, 7, 8], "instances 3 and 4");
    let kept = service(History::default(), ResourceLimits::default(), Duration::INFINITE);
    let qos = QosSet { resource_limits: limits, ..without_autodispose(transient(QosSet::writer(), kept)) };
    let mut story = Story::new(qos);
    write_each(&mut story, 1, &[1, 2]);
    assert_eq!(story.write(3, b"data"), Err(WriteError::OutOfResources(Limit::Instances)));
    story.change(ChangeKind::Unregister, 1, b"key").unwrap();
    write_each(&mut story, 1, &[3]);
    assert_eq!(joiner(&mut story, 7), [2, 4]);
}
