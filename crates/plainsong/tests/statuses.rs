//! Communication statuses that no other test waits for (DCPS 1.4 §2.2.4.1).
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::{PATIENCE, Pair, Point, reader, until};
use plainsong::prelude::*;
use plainsong::status::RejectReason;

#[test]
fn a_missed_deadline_is_told_on_both_sides() {
    let deadline = Duration::from_millis(40);
    let pair = Pair::<Point>::new(
        QosSet { deadline, ..QosSet::writer() },
        QosSet { deadline, ..QosSet::reader().reliable() },
    );
    pair.writer.write(&Point { id: 4, ..Point::default() }).unwrap();
    let handle = pair.writer.lookup_instance(&Point { id: 4, ..Point::default() }).unwrap();
    let waiting = WaitSet::new();
    let missed = StatusMask::NONE.with(StatusKind::RequestedDeadlineMissed);
    waiting.attach(pair.reader.status_condition(missed));
    assert_eq!(waiting.wait(PATIENCE).unwrap().len(), 1);
    let requested = pair.reader.requested_deadline_missed_status().unwrap();
    assert!(requested.count.total_count >= 1);
    assert_eq!(Some(requested.last_instance), handle);
    until("the writer is told", || pair.writer.status_changes().contains(StatusKind::OfferedDeadlineMissed));
    let offered = pair.writer.offered_deadline_missed_status().unwrap();
    assert!(offered.count.total_count_change >= 1);
    assert_eq!(Some(offered.last_instance), handle);
}

#[test]
fn a_rejected_sample_is_told_with_the_limit_that_rejected_it() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.resource_limits.max_samples = 1;
    let pair = Pair::<Point>::new(QosSet::writer().keep_all(), qos);
    for id in 0..2 {
        pair.writer.write(&Point { id, ..Point::default() }).unwrap();
    }
    until("the second is rejected", || pair.reader.status_changes().contains(StatusKind::SampleRejected));
    let status = pair.reader.sample_rejected_status().unwrap();
    assert_eq!((status.count.total_count, status.last_reason), (1, RejectReason::SamplesLimit));
    assert_eq!(pair.reader.sample_lost_status().unwrap().total_count, 0, "rejected is not lost");
    // Room made by taking lets it in.
    assert_eq!(pair.reader.take().unwrap().len(), 1);
    assert_eq!(pair.reader.wait_take(PATIENCE).unwrap().len(), 1);
}

/// How many samples of each of four instances have come: of the limited reader and of one beside it.
fn twenty_rounds_of_four_instances(writer_qos: QosSet) -> [[usize; 4]; 2] {
    let mut qos = QosSet::reader().reliable();
    qos.resource_limits.max_instances = 3;
    let pair = Pair::<Point>::new(writer_qos, qos);
    let beside = reader::<Point>(&pair.participants[1], "Pair", QosSet::reader().reliable().keep_all());
    until("both match", || pair.writer.matched_subscriptions().unwrap().len() == 2);
    until("it matches", || !beside.matched_publications().unwrap().is_empty());
    let mut seen = [[0; 4]; 2];
    for round in 0..20 {
        for id in 0..4 {
            pair.writer.write(&Point { id, x: f64::from(round), y: 0.0 }).unwrap();
        }
        pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
        for (seen, reader) in seen.iter_mut().zip([&pair.reader, &beside]) {
            for point in reader.take().unwrap().iter().filter_map(|sample| sample.data) {
                seen[point.id as usize] += 1;
            }
        }
    }
    assert_eq!(pair.reader.sample_rejected_status().unwrap().last_reason, RejectReason::InstancesLimit);
    assert_eq!(pair.reader.sample_lost_status().unwrap().total_count, 0);
    seen
}

#[test]
fn a_reader_that_rejects_an_instance_keeps_up_with_the_others_and_holds_up_nobody() {
    for writer_qos in [QosSet::writer().keep_all(), QosSet::writer()] {
        assert_eq!(twenty_rounds_of_four_instances(writer_qos), [[20, 20, 20, 0], [20; 4]]);
    }
}

#[test]
fn a_full_reader_keeps_nothing_that_was_written_from_the_one_beside_it() {
    // It makes a writer that may keep ten samples wait, and a writer without limit not at all.
    for (samples_max, written) in [(10, 10), (-1, 500)] {
        let mut offered = QosSet::writer().keep_all();
        (offered.resource_limits.max_samples, offered.reliability.max_blocking_time) =
            (samples_max, Duration::from_millis(50));
        let mut full = QosSet::reader().reliable().keep_all();
        full.resource_limits.max_samples = 1;
        let pair = Pair::<Point>::new(offered, full);
        let beside = reader::<Point>(&pair.participants[1], "Pair", QosSet::reader().reliable().keep_all());
        until("both match", || pair.writer.matched_subscriptions().unwrap().len() == 2);
        until("it matches", || !beside.matched_publications().unwrap().is_empty());
        for id in 0..written {
            pair.writer.write(&Point { id, x: 0.0, y: 0.0 }).unwrap();
        }
        let mut seen = 0;
        until("the other one has all", || {
            seen += beside.take().unwrap().len();
            seen == written as usize
        });
        // One of these takes the place of the sample that the full one holds.
        let next = [0, 1].map(|_| pair.writer.write(&Point { id: written, x: 0.0, y: 0.0 }));
        assert_eq!(next.iter().any(Result::is_err), samples_max > 0, "{next:?}");
        // Once it is read, the full one gets everything as well.
        let mut taken = 0;
        until("the full one has all", || {
            taken += pair.reader.take().unwrap().len();
            taken >= written as usize
        });
        assert_eq!(pair.reader.sample_lost_status().unwrap().total_count, 0);
    }
}
