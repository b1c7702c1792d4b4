//! Communication statuses that no other test waits for (DCPS 1.4 §2.2.4.1).
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::{PATIENCE, Pair, Point, until};
use plainsong::prelude::*;
use plainsong::proto::status::RejectReason;
use plainsong::proto::time;

#[test]
fn a_missed_deadline_is_told_on_both_sides() {
    let deadline = time::Duration::from_millis(40);
    let pair = Pair::<Point>::new(
        QosSet { deadline, ..QosSet::writer() },
        QosSet { deadline, ..QosSet::reader().reliable() },
    );
    pair.writer.write(&Point { id: 4, ..Point::default() }).unwrap();
    let handle = pair.writer.lookup_instance(&Point { id: 4, ..Point::default() }).unwrap();
    let waiting = WaitSet::new();
    let missed = StatusMask::NONE.with(StatusKind::RequestedDeadlineMissed);
    waiting.attach(pair.reader.status_condition(missed));
    assert_eq!(waiting.wait(Some(PATIENCE)).unwrap().len(), 1);
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
    assert_eq!(pair.reader.take(9).unwrap().len(), 1);
    assert_eq!(pair.reader.wait_take(PATIENCE).unwrap().len(), 1);
}
