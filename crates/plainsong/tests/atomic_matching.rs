//! A reader of an ATOMIC topic gets nothing of writers that offer less than it asks for, and all that others
//! have of the rest.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::{PATIENCE, Point, fresh_domain, loopback, participant, participant_with, reader, until, writer};
use plainsong::prelude::*;
use plainsong::qos::{HistoryKind, PolicyId};

fn atomic(qos: QosSet, durability: Durability) -> QosSet {
    let mut qos = qos.reliable().consistency(ConsistencyKind::Atomic).max_blocking_time(PATIENCE);
    qos.history.kind = HistoryKind::KeepAll;
    qos.durability(durability)
}

fn point(x: i32) -> Point {
    Point { x: x.into(), ..Point::default() }
}

/// What a reader has, with the positions, once it has so much.
fn take(reader: &DataReader<Point>, count: usize) -> Vec<(i64, u64)> {
    let mut taken = Vec::new();
    until("it arrives", || {
        let samples = reader.take().unwrap().into_iter();
        taken.extend(samples.filter_map(|it| Some((it.data?.x as i64, it.info.agreed.position))));
        taken.len() >= count
    });
    taken
}

fn are_members(participants: &[&DomainParticipant]) {
    for participant in participants {
        until("all are members", || participant.atomic_groups()[0].members.len() == participants.len());
    }
}

/// Both are told which policy it is.
fn mismatch(writer: &DataWriter<Point>, reader: &DataReader<Point>, policy: PolicyId) {
    until("the writer is told", || {
        writer.offered_incompatible_qos_status().unwrap().last_policy_id == Some(policy)
    });
    until("the reader is told", || {
        reader.requested_incompatible_qos_status().unwrap().last_policy_id == Some(policy)
    });
}

#[test]
fn a_durable_reader_gets_nothing_of_volatile_writers_here_and_elsewhere() {
    use Durability::{TransientLocal, Volatile};
    let domain = fresh_domain();
    let (near, far) = (participant(domain), participant(domain));
    let of = |member: &DomainParticipant, durability| {
        writer::<Point>(member, "Plan", atomic(QosSet::writer(), durability))
    };
    let (kept, passing) = (of(&near, TransientLocal), of(&near, Volatile));
    let readers = [&near, &far].map(|member| {
        [TransientLocal, Volatile]
            .map(|durability| reader::<Point>(member, "Plan", atomic(QosSet::reader(), durability)))
    });
    are_members(&[&near, &far]);
    readers.iter().for_each(|[durable, _]| mismatch(&passing, durable, PolicyId::Durability));
    for x in 0..50 {
        [&passing, &kept][x as usize % 2].write(&point(x)).unwrap();
    }
    kept.wait_for_acknowledgments(PATIENCE).unwrap();
    let late = reader::<Point>(&participant(domain), "Plan", atomic(QosSet::reader(), TransientLocal));
    let late = take(&late, 25);
    for [durable, volatile] in &readers {
        let all = take(volatile, 50);
        assert!(all.iter().map(|(x, _)| *x).eq(0..50), "{all:?}");
        let of_kept: Vec<_> = all.into_iter().filter(|(x, _)| x % 2 == 1).collect();
        durable.sync(PATIENCE).unwrap();
        assert_eq!(take(durable, 25), of_kept);
        assert_eq!(late, of_kept);
    }
}

#[test]
fn what_a_reader_asks_for_beyond_durability_counts_too_and_may_be_met_later() {
    let domain = fresh_domain();
    let (near, far) = (participant(domain), participant(domain));
    let qos = |qos| atomic(qos, Durability::TransientLocal);
    let writer = writer::<Point>(&near, "Plan", qos(QosSet::writer()));
    let strict_qos = |ms| qos(QosSet::reader()).deadline(Duration::from_millis(ms));
    let all = reader::<Point>(&far, "Plan", qos(QosSet::reader()));
    let strict = reader::<Point>(&far, "Plan", strict_qos(60_000));
    are_members(&[&near, &far]);
    mismatch(&writer, &strict, PolicyId::Deadline);
    (0..10).for_each(|x| writer.write(&point(x)).unwrap());
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let before = take(&all, 10);
    strict.sync(PATIENCE).unwrap();
    assert_eq!(strict.take().unwrap().len(), 0);
    // One that comes later has nothing of it either.
    let late = reader::<Point>(&far, "Plan", strict_qos(50_000));
    late.sync(PATIENCE).unwrap();
    assert_eq!(late.take().unwrap().len(), 0);

    writer.set_qos(qos(QosSet::writer()).deadline(Duration::from_secs(50))).unwrap();
    for reader in [&strict, &late] {
        until("they match", || reader.matched_publications().unwrap() == [writer.instance_handle()]);
    }
    writer.write(&point(10)).unwrap();
    let last = take(&all, 1);
    assert!(last[0].1 > before[9].1);
    assert_eq!((take(&strict, 1), take(&late, 1)), (last.clone(), last));
}

#[test]
fn a_persistent_reader_gets_nothing_of_a_writer_that_keeps_less() {
    let domain = fresh_domain();
    let state = std::env::temp_dir().join(format!("plainsong-matching-{}", std::process::id()));
    let near = participant(domain);
    let far = participant_with(domain, Config { state_directory: Some(state.clone()), ..loopback() });
    let of = |durability| writer::<Point>(&near, "Plan", atomic(QosSet::writer(), durability));
    let reader = |durability| reader::<Point>(&far, "Plan", atomic(QosSet::reader(), durability));
    let less = of(Durability::TransientLocal);
    let (persistent, durable) = (reader(Durability::Persistent), reader(Durability::TransientLocal));
    are_members(&[&near, &far]);
    mismatch(&less, &persistent, PolicyId::Durability);
    (0..10).for_each(|x| less.write(&point(x)).unwrap());
    assert_eq!(take(&durable, 10).len(), 10);
    persistent.sync(PATIENCE).unwrap();
    assert_eq!(persistent.take().unwrap().len(), 0);
    drop((persistent, durable, far));
    std::fs::remove_dir_all(state).unwrap();
}
