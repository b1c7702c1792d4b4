//! LIVELINESS (DCPS 1.4 §2.2.3.11): the three kinds.

use super::*;
use crate::qos::{Liveliness, LivelinessKind};

const SECOND: Duration = Duration::from_secs(1);

fn ms(millis: i64) -> Duration {
    Duration::from_millis(millis)
}

fn leased(kind: LivelinessKind) -> QosSet {
    QosSet { liveliness: Liveliness { kind, lease_duration: SECOND }, ..QosSet::writer() }
}

fn alive(bench: &mut Bench) -> i32 {
    bench.reader.liveliness_changed_status().alive_count
}

#[test]
fn a_writer_whose_lease_ends_is_not_alive_until_it_is_heard_again() {
    let liveliness = Liveliness { kind: LivelinessKind::Automatic, lease_duration: SECOND };
    let mut bench = Bench::reliable();
    bench.matched(2, QosSet { liveliness, ..QosSet::writer() });
    bench.heartbeat(2, 1, 0, true).unwrap();
    let status = bench.reader.liveliness_changed_status();
    assert_eq!((status.alive_count, status.alive_count_change, status.not_alive_count), (2, 2, 0));
    bench.data(2, 1, 1, 1).unwrap();
    for _ in 0..3 {
        bench.pass(ms(700));
        bench.reader.writer_liveliness(bench.now, writer(2), &mut bench.out);
    }
    assert_eq!(bench.reader.liveliness_changed_status().alive_count_change, 0);
    bench.take();
    bench.pass(ms(1_100));
    let status = bench.reader.liveliness_changed_status();
    assert_eq!(
        (status.alive_count, status.not_alive_count, status.last_publication),
        (1, 1, writer(2).into())
    );
    assert_eq!(state_of(&bench.take()), InstanceState::NotAliveNoWriters);
    bench.data(2, 2, 1, 2).unwrap();
    let status = bench.reader.liveliness_changed_status();
    assert_eq!((status.alive_count, status.not_alive_count, status.not_alive_count_change), (2, 0, -1));
    let sample = bench.take().pop().unwrap();
    assert_eq!((sample.info.no_writers_generation_count, sample.info.view_state), (1, ViewState::New));
    bench.pass(ms(1_100));
    bench.reader.unmatch_writer(bench.now, writer(2), &mut bench.out);
    let status = bench.reader.liveliness_changed_status();
    assert_eq!((status.alive_count, status.not_alive_count), (1, 0));
}

#[test]
fn fact_27_manual_by_topic_is_asserted_by_data_and_flagged_heartbeats_only() {
    let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: SECOND };
    let alive = |bench: &mut Bench| bench.reader.liveliness_changed_status().alive_count;
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
    bench.matched(1, QosSet { liveliness, ..QosSet::writer() });
    bench.pass(ms(600));
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.reader.writer_liveliness(bench.now, writer(1), &mut bench.out);
    bench.pass(ms(600));
    assert_eq!(alive(&mut bench), 0);
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: writer(1).entity,
        first: SequenceNumber(1),
        last: SequenceNumber(0),
        count: 77,
        final_flag: true,
        liveliness: true,
        group: None,
    };
    let context = bench.context(1);
    bench.reader.on_heartbeat(bench.now, &context, &heartbeat, &mut bench.out).unwrap();
    assert_eq!(alive(&mut bench), 1);
    bench.pass(ms(600));
    bench.data(1, 1, 1, 1).unwrap();
    bench.pass(ms(600));
    assert_eq!(alive(&mut bench), 1);
}

#[test]
fn what_is_only_repeated_renews_no_manual_lease() {
    for kind in [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant] {
        let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
        bench.matched(1, leased(kind));
        bench.heartbeat(1, 1, 0, true).unwrap();
        bench.data(1, 1, 1, 1).unwrap();
        bench.data(1, 3, 1, 3).unwrap();
        bench.pass(ms(600));
        bench.data(1, 2, 1, 2).unwrap();
        assert_eq!(bench.data(1, 3, 1, 3), Err(DropReason::Duplicate));
        bench.heartbeat(1, 1, 3, true).unwrap();
        bench.pass(ms(600));
        assert_eq!(alive(&mut bench), 0, "{kind:?}: the application wrote 3 more than a second ago");
        bench.data(1, 4, 1, 4).unwrap();
        assert_eq!(alive(&mut bench), 1);
    }
}

#[test]
fn what_is_repeated_shows_that_an_automatic_writer_lives() {
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
    bench.matched(1, leased(LivelinessKind::Automatic));
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.data(1, 1, 1, 1).unwrap();
    for _ in 0..5 {
        bench.pass(ms(600));
        assert_eq!(bench.data(1, 1, 1, 1), Err(DropReason::Duplicate));
    }
    assert_eq!(alive(&mut bench), 1);
}

#[test]
fn a_heartbeat_that_announces_something_new_shows_that_it_was_written_even_if_lost() {
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
    bench.matched(1, leased(LivelinessKind::ManualByTopic));
    bench.heartbeat(1, 1, 0, true).unwrap();
    for last in 1..=5 {
        bench.pass(ms(600));
        bench.heartbeat(1, 1, last, true).unwrap();
    }
    assert_eq!(alive(&mut bench), 1);
    bench.pass(ms(600));
    bench.heartbeat(1, 1, 5, true).unwrap();
    bench.pass(ms(600));
    assert_eq!(alive(&mut bench), 0);
}

#[test]
fn the_history_of_a_late_joiner_was_not_written_now() {
    let durable = |qos: QosSet| qos.durability(Durability::TransientLocal);
    let mut bench = Bench::new(durable(QosSet::reader().reliable().keep_all()));
    bench.matched(1, durable(leased(LivelinessKind::ManualByTopic)));
    bench.pass(ms(600));
    bench.data(1, 1, 1, 1).unwrap();
    bench.heartbeat(1, 1, 3, true).unwrap();
    bench.data(1, 2, 1, 2).unwrap();
    bench.data(1, 3, 1, 3).unwrap();
    bench.pass(ms(600));
    assert_eq!(alive(&mut bench), 0);
    assert_eq!(bench.values(), [1, 2, 3]);
}

#[test]
fn a_participants_assertion_counts_for_its_own_kinds_only() {
    let cases = [
        (LivelinessKind::Automatic, 1),
        (LivelinessKind::ManualByParticipant, 1),
        (LivelinessKind::ManualByTopic, 0),
    ];
    for (kind, expected) in cases {
        let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
        bench.matched(1, leased(kind));
        for _ in 0..4 {
            bench.pass(ms(600));
            bench.reader.writer_liveliness(bench.now, writer(1), &mut bench.out);
        }
        assert_eq!(alive(&mut bench), expected, "{kind:?}");
    }
}
