//! PERSISTENT with CONSISTENCY ATOMIC: what is agreed outlives all processes.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::PathBuf;

use common::{PATIENCE, Point, fresh_domain, loopback, participant, participant_with, reader, until, writer};
use plainsong::Error;
use plainsong::PreconditionNotMet;
use plainsong::atomic::{MemberPhase, StoreError};
use plainsong::prelude::*;
use plainsong::qos::{DeliverAt, HistoryKind};

fn persistent(qos: QosSet) -> QosSet {
    let mut qos = qos.reliable().consistency(ConsistencyKind::Atomic).max_blocking_time(PATIENCE);
    qos.history.kind = HistoryKind::KeepAll;
    qos.durability(Durability::Persistent)
}

/// A directory for the states of a test, which goes with this.
struct States(PathBuf);

impl States {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plainsong-persistent-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn config(&self, member: usize) -> Config {
        Config { state_directory: Some(self.0.join(member.to_string())), ..loopback() }
    }
}

impl Drop for States {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A participant with a writer and a reader.
struct Member {
    participant: DomainParticipant,
    writer: DataWriter<Point>,
    reader: DataReader<Point>,
}

impl Member {
    fn new(domain: u16, config: Config, qos: impl Fn(QosSet) -> QosSet) -> Self {
        let participant = participant_with(domain, config);
        let writer = writer(&participant, "Plan", qos(QosSet::writer()));
        let reader = reader(&participant, "Plan", qos(QosSet::reader()));
        Self { participant, writer, reader }
    }

    fn all(states: &States, domain: u16, count: usize, qos: impl Fn(QosSet) -> QosSet) -> Vec<Self> {
        let members: Vec<_> = (0..count).map(|it| Self::new(domain, states.config(it), &qos)).collect();
        for member in &members {
            until("all are members", || {
                let group = member.participant.atomic_groups().remove(0);
                group.phase == MemberPhase::Active && group.members.len() == count
            });
        }
        members
    }

    fn write(&self, x: i32) {
        self.writer.write(&Point { x: x.into(), ..Point::default() }).unwrap();
        self.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }

    /// So many samples with their positions.
    fn take(&self, count: usize) -> Vec<(i32, u64)> {
        let mut taken = Vec::new();
        until("all samples are there", || {
            let samples = self.reader.take().unwrap().into_iter();
            taken.extend(samples.filter_map(|it| Some((it.data?.x as i32, it.info.agreed.position))));
            taken.len() >= count
        });
        taken
    }
}

/// Members end and start again, some times over; what each of them then has.
fn restart(states: &States, count: usize, qos: impl Fn(QosSet) -> QosSet) {
    let domain = fresh_domain();
    for round in 0..3 {
        let members = Member::all(states, domain, count, &qos);
        (0..10).for_each(|x| members[x as usize % count].write(round * 10 + x));
        let written = (round as usize + 1) * 10;
        let logs: Vec<_> = members.iter().map(|member| member.take(written)).collect();
        assert!(logs.iter().all(|log| *log == logs[0]), "{logs:?}");
        assert!(logs[0].iter().map(|(x, _)| *x).eq(0..written as i32), "{logs:?}");
        assert!(logs[0].is_sorted_by_key(|(_, position)| *position));
        // The one that ends last has the newest view: it is there when the others come back.
    }
}

#[test]
fn what_one_participant_wrote_is_there_when_it_starts_again() {
    restart(&States::new("one"), 1, persistent);
}

#[test]
fn what_a_group_agreed_on_is_there_when_all_members_start_again() {
    restart(&States::new("three"), 3, persistent);
}

#[test]
fn a_group_that_delivers_before_it_is_durable_has_everything_after_an_orderly_end() {
    restart(&States::new("stable"), 2, |qos| {
        let mut qos = persistent(qos);
        qos.consistency.deliver_at = DeliverAt::Stable;
        qos
    });
}

#[test]
fn a_member_that_keeps_nothing_gets_all_that_others_keep() {
    let (states, domain) = (States::new("mixed"), fresh_domain());
    let member = Member::new(domain, states.config(0), persistent);
    (0..5).for_each(|x| member.write(x));
    let other = participant(domain);
    let late: DataReader<Point> =
        reader(&other, "Plan", persistent(QosSet::reader()).durability(Durability::TransientLocal));
    let mut taken = Vec::new();
    until("it has the history", || {
        taken.extend(late.take().unwrap().into_iter().filter_map(|it| Some(it.data?.x as i32)));
        taken.len() >= 5
    });
    assert!(taken.iter().copied().eq(0..5), "{taken:?}");
}

#[test]
fn what_is_to_be_kept_needs_a_place_of_its_own() {
    let (states, domain) = (States::new("place"), fresh_domain());
    let without = participant(domain);
    let topic = without.create_topic::<Point>("Plan", QosSet::default()).unwrap();
    let subscriber = without.create_subscriber(QosSet::default()).unwrap();
    let refused = subscriber.create_reader(&topic, persistent(QosSet::reader())).err().unwrap();
    assert!(
        matches!(refused, Error::PreconditionNotMet(PreconditionNotMet::NoStateDirectory)),
        "{refused}: {refused:?}"
    );
    let first = Member::new(domain, states.config(0), persistent);
    let second = participant_with(domain, states.config(0));
    let topic = second.create_topic::<Point>("Plan", QosSet::default()).unwrap();
    let subscriber = second.create_subscriber(QosSet::default()).unwrap();
    let refused = subscriber.create_reader(&topic, persistent(QosSet::reader())).err().unwrap();
    assert!(matches!(refused, Error::Store(StoreError::InUse { .. })), "{refused}: {refused:?}");
    drop(first);
}

#[test]
fn the_endpoint_that_keeps_most_comes_first() {
    let (states, domain) = (States::new("order"), fresh_domain());
    let participant = participant_with(domain, states.config(0));
    let volatile = persistent(QosSet::reader()).durability(Durability::Volatile);
    let _reader: DataReader<Point> = reader(&participant, "Plan", volatile);
    let topic = participant.create_topic::<Point>("Plan", QosSet::default()).unwrap();
    let publisher = participant.create_publisher(QosSet::default()).unwrap();
    let refused = publisher.create_writer(&topic, persistent(QosSet::writer())).err().unwrap();
    assert!(refused.to_string().contains("create the one that keeps most first"), "{refused}");
}
