//! CONSISTENCY ATOMIC where somebody takes too little: writers wait, nothing grows, nothing is lost.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Blob, PATIENCE, Point, fresh_domain, participant, reader, until, writer};
use plainsong::atomic::{AtomicGroup, MemberPhase};
use plainsong::prelude::*;
use plainsong::qos::{HistoryKind, ResourceLimits};
use plainsong::{Error, WaitedFor};

/// Samples of a member at most that not everybody has delivered.
const WINDOW: usize = 1_024;

fn atomic(qos: QosSet) -> QosSet {
    let mut qos = qos.reliable().consistency(ConsistencyKind::Atomic).max_blocking_time(PATIENCE);
    qos.history.kind = HistoryKind::KeepAll;
    qos
}

fn small(qos: QosSet) -> QosSet {
    qos.resource_limits(ResourceLimits { max_samples: 10, ..ResourceLimits::default() })
}

fn group(participant: &DomainParticipant) -> AtomicGroup {
    participant.atomic_groups().pop().unwrap()
}

fn are_members(participants: &[&DomainParticipant]) {
    for participant in participants {
        until("all are members", || group(participant).members.len() == participants.len());
    }
}

fn point(x: usize) -> Point {
    Point { x: x as f64, ..Point::default() }
}

/// Writes until a write waits for longer than a moment; how many were written before, and are now.
fn fill(writer: &DataWriter<Point>, begin: usize) -> usize {
    let patience = WriteOptions::new().max_blocking_time(Duration::from_millis(300));
    for x in begin..begin + 100_000 {
        match writer.write_with(&point(x), &patience) {
            Ok(()) => {}
            Err(Error::Timeout { .. }) => return x,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("writing never waits");
}

/// What a write is told that finds no room.
fn refusal(writer: &DataWriter<Point>) -> String {
    let patience = WriteOptions::new().max_blocking_time(Duration::from_millis(20));
    let refused = writer.write_with(&point(0), &patience).unwrap_err();
    assert!(matches!(refused, Error::Timeout { waited_for: WaitedFor::Room, .. }), "{refused}");
    refused.to_string()
}

fn take(reader: &DataReader<Point>, got: &mut Vec<usize>) {
    got.extend(reader.take().unwrap().into_iter().filter_map(|it| it.data).map(|data| data.x as usize));
}

/// Takes until so many came, which are all, in order.
fn take_all(reader: &DataReader<Point>, count: usize) {
    let mut got = Vec::new();
    until("all arrive", || {
        take(reader, &mut got);
        got.len() >= count
    });
    assert!(got.into_iter().eq(0..count));
}

#[test]
fn a_full_reader_makes_writers_wait_and_gets_all_in_order_once_it_takes() {
    let domain = fresh_domain();
    let (near, far) = (participant(domain), participant(domain));
    let writer = writer::<Point>(&near, "Plan", atomic(QosSet::writer()));
    let full = reader::<Point>(&far, "Plan", small(atomic(QosSet::reader())));
    are_members(&[&near, &far]);
    full.sync(PATIENCE).unwrap();
    let mut written = fill(&writer, 0);
    // What one call delivers before there is no room, and a window after that.
    assert!((WINDOW..=2 * WINDOW + 10).contains(&written), "{written}");
    let far_member = |group: AtomicGroup| group.members.into_iter().find(|it| it.participant == far.guid());
    until("it says why", || far_member(group(&near)).is_some_and(|it| it.is_held));
    for _ in 0..3 {
        assert_eq!(fill(&writer, written), written, "nothing more is accepted");
    }
    let (here, there) = (group(&near), group(&far));
    assert!(there.waiting <= WINDOW, "{there}");
    assert!(there.waiting as u64 + 10 >= there.position - 1, "{there}: a barrier, and what the reader has");
    assert!(here.in_window <= WINDOW && !far_member(here.clone()).unwrap().is_suspected, "{here}");
    assert!(here.to_string().contains(", takes nothing"), "{here}");
    let told = refusal(&writer);
    let who = format!("\"test\", process {} ", std::process::id());
    assert!(told.contains(&who) && told.contains("is behind by "), "{told}");
    assert!(told.contains("its readers are full and have to take samples"), "{told}");
    let mut got = Vec::new();
    take(&full, &mut got);
    assert_eq!(got.len(), 10);
    until("all arrive", || {
        take(&full, &mut got);
        got.len() >= written
    });
    written += 1;
    writer.write(&point(written - 1)).unwrap();
    until("writing goes on", || {
        take(&full, &mut got);
        got.len() >= written
    });
    assert!(got.into_iter().eq(0..written));
    until("nothing waits", || group(&far).waiting == 0 && !far_member(group(&near)).unwrap().is_held);
    assert_eq!(group(&near).counts, plainsong::atomic::AtomicCounts::default());
}

#[test]
fn a_full_reader_beside_the_writer_makes_it_wait_too() {
    let alone = participant(fresh_domain());
    let writer = writer::<Point>(&alone, "Plan", atomic(QosSet::writer()));
    let full = reader::<Point>(&alone, "Plan", small(atomic(QosSet::reader())));
    are_members(&[&alone]);
    let written = fill(&writer, 0);
    assert!((WINDOW..=WINDOW + 11).contains(&written), "{written}");
    let told = refusal(&writer);
    assert!(told.contains("a reader of this participant is full"), "{told}");
    take_all(&full, written);
    writer.write(&point(0)).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
}

#[test]
fn a_reader_that_is_deleted_holds_nobody_up() {
    let domain = fresh_domain();
    let (near, far) = (participant(domain), participant(domain));
    let writer = writer::<Point>(&near, "Plan", atomic(QosSet::writer()));
    let full = reader::<Point>(&far, "Plan", small(atomic(QosSet::reader())));
    let other = reader::<Point>(&far, "Plan", atomic(QosSet::reader()));
    are_members(&[&near, &far]);
    let written = fill(&writer, 0);
    full.subscriber().delete_reader(&full.as_any()).unwrap();
    take_all(&other, written);
    writer.write(&point(0)).unwrap();
}

#[test]
fn a_slow_reader_with_eventual_consistency_holds_its_writer_up_and_not_what_others_have() {
    let domain = fresh_domain();
    let (near, far, third) = (participant(domain), participant(domain), participant(domain));
    let writer = writer::<Point>(&near, "Plan", small(atomic(QosSet::writer())));
    let agreed = reader::<Point>(&far, "Plan", atomic(QosSet::reader()));
    let slow = reader::<Point>(&third, "Plan", small(QosSet::reader().reliable().keep_all()));
    are_members(&[&near, &far]);
    until("the reader matches", || writer.matched_subscriptions().unwrap().len() == 2);
    let written = fill(&writer, 0);
    assert!((10..=2 * WINDOW + 20).contains(&written), "{written}");
    assert!(group(&near).waiting <= WINDOW, "{}", group(&near));
    take_all(&agreed, written);
    take_all(&slow, written);
    writer.write(&point(0)).unwrap();
    until("nothing waits", || group(&near).waiting == 0);
    // Who is gone is not waited for.
    fill(&writer, 0);
    third.delete_contained_entities().unwrap();
    drop((slow, third));
    until("nothing waits", || group(&near).waiting == 0);
    writer.write(&point(0)).unwrap();
}

/// Two members of which one takes nothing while the other does, and is excluded: how many were written, what
/// it got when it took again, and how many it was told were lost.
fn exclude(durability: Durability) -> (usize, Vec<usize>, u64) {
    let kept = |qos: QosSet| {
        let mut qos = atomic(qos).durability(durability);
        qos.consistency.slow_member_delay = Duration::from_millis(1_500);
        qos
    };
    let domain = fresh_domain();
    let (near, far, third) = (participant(domain), participant(domain), participant(domain));
    let writer = writer::<Point>(&near, "Plan", kept(QosSet::writer()));
    let eager = reader::<Point>(&third, "Plan", kept(QosSet::reader()));
    let full = reader::<Point>(&far, "Plan", small(kept(QosSet::reader())));
    are_members(&[&near, &far, &third]);
    full.sync(PATIENCE).unwrap();
    let count = 6 * WINDOW;
    (0..count).for_each(|x| writer.write(&point(x)).unwrap());
    // On a machine that does not run it for long this one may be excluded, too: it has all, or is told.
    let mut seen = Vec::new();
    let mut lost = 0;
    until("all arrive, or are told to be lost", || {
        take(&eager, &mut seen);
        lost += eager.sample_lost_status().unwrap().total_count_change as usize;
        seen.len() + lost >= count
    });
    assert!(seen.is_sorted_by(|one, other| one < other));
    assert!(lost == 0 || durability == Durability::Volatile, "{lost} of {count}");
    until("it is excluded", || {
        let members = group(&near).members;
        members.len() == 2 && members.iter().all(|it| it.participant != far.guid())
    });
    assert!(group(&far).waiting <= 2 * WINDOW, "{}", group(&far));
    until("it knows that it is excluded", || group(&far).counts.evicted > 0);
    assert_eq!(group(&far).phase, MemberPhase::Joining);
    let mut got = Vec::new();
    let mut written = count;
    until("it is back", || {
        take(&full, &mut got);
        group(&far).phase == MemberPhase::Active && group(&near).members.len() == 3
    });
    until("it gets what comes", || {
        take(&full, &mut got);
        writer.write(&point(written)).unwrap();
        written += 1;
        got.contains(&(written - 10)) && got.is_sorted()
    });
    eager.sync(PATIENCE).unwrap();
    until("it has all", || {
        take(&full, &mut got);
        got.last() == Some(&(written - 1))
    });
    let lost = full.sample_lost_status().unwrap().total_count as u64;
    assert_eq!(group(&far).counts.missed, lost);
    (written, got, lost)
}

#[test]
fn who_does_not_take_for_longer_than_slow_member_delay_is_excluded_and_comes_back() {
    let (written, got, lost) = exclude(Durability::TransientLocal);
    assert!(got.into_iter().eq(0..written), "nothing is missing");
    assert_eq!(lost, 0);
}

#[test]
fn without_history_who_was_excluded_is_told_how_much_it_lost() {
    let (written, got, lost) = exclude(Durability::Volatile);
    assert!(got.is_sorted_by(|one, other| one < other));
    assert_eq!((written - got.len()) as u64, lost);
    assert!(lost >= WINDOW as u64, "{lost}");
}

#[test]
fn samples_longer_than_a_part_of_the_history_are_given_to_who_joins_later() {
    let kept = |qos: QosSet| atomic(qos).durability(Durability::TransientLocal);
    let domain = fresh_domain();
    let (near, far) = (participant(domain), participant(domain));
    let writer = writer::<Blob>(&near, "Blobs", kept(QosSet::writer()));
    let blob = |number: u32| {
        let bytes = [1 << 20, 100, 40_000, 3 << 20][number as usize % 4];
        Blob { number, octets: (0..bytes).map(|it: u32| (it ^ it >> 8 ^ number) as u8).collect() }
    };
    (0..8).for_each(|number| writer.write(&blob(number)).unwrap());
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let late = reader::<Blob>(&far, "Blobs", kept(QosSet::reader()));
    let mut got = Vec::new();
    until("all arrive", || {
        got.extend(late.take().unwrap().into_iter().filter_map(|it| it.data));
        got.len() >= 8
    });
    assert!(got == (0..8).map(blob).collect::<Vec<_>>());
}
