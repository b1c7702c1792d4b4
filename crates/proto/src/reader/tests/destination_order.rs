//! DESTINATION_ORDER (DCPS 1.4 §2.2.3.17) BY_SOURCE_TIMESTAMP, and what other policies make of it.

use proptest::prelude::*;

use super::*;
use crate::qos::{AccessScope, DestinationOrder, Ownership, Presentation};

fn at(millis: i64) -> Time {
    Time(1_700_000_000_000_000_000).plus(Duration::from_millis(millis))
}

fn by_source(qos: QosSet) -> Bench {
    let mut bench =
        Bench::new(QosSet { destination_order: DestinationOrder::BySourceTimestamp, ..qos.reliable() });
    for number in 1..=3 {
        bench.matched(number, QosSet { ownership: bench.reader.qos().ownership, ..QosSet::writer() });
    }
    bench
}

fn dispose_at(bench: &mut Bench, from: u8, number: i64, key: u8, timestamp: Time) -> Result<(), DropReason> {
    let now = std::mem::replace(&mut bench.now.wall, timestamp);
    let result = bench.dispose(from, number, key);
    bench.now.wall = now;
    result
}

#[test]
fn of_two_samples_of_one_time_that_of_the_higher_guid_stays_whichever_came_first() {
    let mut one = by_source(QosSet::reader().keep_last(1));
    one.data_at(1, 1, 1, 10, at(5)).unwrap();
    one.data_at(2, 1, 1, 20, at(5)).unwrap();
    let mut other = by_source(QosSet::reader().keep_last(1));
    other.data_at(2, 1, 1, 20, at(5)).unwrap();
    assert_eq!(other.data_at(1, 1, 1, 10, at(5)), Err(DropReason::OutOfOrder));
    assert_eq!((one.values(), other.values()), (vec![20], vec![20]));
    one.data_at(2, 2, 1, 21, at(5)).unwrap();
    assert_eq!(one.values(), [21], "of one writer the later one is the newer");
}

#[test]
fn an_older_sample_never_replaces_a_newer_and_never_follows_a_taken_one() {
    let mut bench = by_source(QosSet::reader().keep_last(1));
    bench.data_at(1, 1, 1, 10, at(10)).unwrap();
    assert_eq!(bench.data_at(2, 1, 1, 9, at(9)), Err(DropReason::OutOfOrder));
    assert_eq!(bench.values(), [10]);
    assert_eq!(bench.data_at(2, 2, 1, 9, at(9)), Err(DropReason::OutOfOrder), "10 was taken");
    bench.data_at(2, 3, 2, 9, at(9)).unwrap();
    assert_eq!(bench.values(), [9], "each instance has its own order");
}

#[test]
fn with_a_deeper_history_late_samples_are_shown_in_their_place_until_newer_ones_are_taken() {
    let mut bench = by_source(QosSet::reader().keep_all());
    for (number, time) in [(1, 40), (2, 50)] {
        bench.data_at(1, number, 1, time as u8, at(time)).unwrap();
    }
    for (number, time) in [(1, 45), (2, 30)] {
        bench.data_at(2, number, 1, time as u8, at(time)).unwrap();
    }
    let two = Selector { samples_max: 2, ..Selector::default() };
    assert_eq!(values(&bench.take_with(&two)), [30, 40]);
    assert_eq!(bench.data_at(3, 1, 1, 35, at(35)), Err(DropReason::OutOfOrder));
    bench.data_at(3, 2, 1, 42, at(42)).unwrap();
    assert_eq!(bench.values(), [42, 45, 50]);
}

#[test]
fn a_dispose_takes_its_place_among_the_samples() {
    let mut bench = by_source(QosSet::reader().keep_all());
    bench.data_at(1, 1, 1, 20, at(20)).unwrap();
    assert_eq!(dispose_at(&mut bench, 2, 1, 1, at(10)), Err(DropReason::OutOfOrder));
    assert_eq!(state_of(&bench.read_with(&Selector::default())), InstanceState::Alive);
    dispose_at(&mut bench, 2, 2, 1, at(30)).unwrap();
    assert_eq!(bench.data_at(1, 2, 1, 25, at(25)), Err(DropReason::OutOfOrder), "it was over by then");
    assert_eq!(state_of(&bench.take()), InstanceState::NotAliveDisposed);
    bench.data_at(1, 3, 1, 35, at(35)).unwrap();
    assert_eq!(state_of(&bench.take()), InstanceState::Alive);
}

#[test]
fn the_stronger_writer_owns_the_instance_even_when_its_sample_comes_too_late() {
    let strong = QosSet { ownership: Ownership::Exclusive, ownership_strength: 9, ..QosSet::writer() };
    let mut bench = by_source(QosSet { ownership: Ownership::Exclusive, ..QosSet::reader().keep_last(1) });
    bench.matched(2, strong);
    bench.data_at(1, 1, 1, 10, at(10)).unwrap();
    assert_eq!(bench.data_at(2, 1, 1, 5, at(5)), Err(DropReason::OutOfOrder), "older than what is known");
    assert_eq!(bench.data_at(1, 2, 1, 11, at(11)), Err(DropReason::NotOwner));
    bench.data_at(2, 2, 1, 12, at(12)).unwrap();
    assert_eq!(bench.values(), [12]);
}

#[test]
fn in_topic_order_samples_of_one_time_come_in_the_order_of_their_writers() {
    let presentation =
        Presentation { access_scope: AccessScope::Topic, coherent_access: false, ordered_access: true };
    let arrivals = [[(2, 20), (1, 10), (3, 30)], [(3, 30), (2, 20), (1, 10)], [(1, 10), (3, 30), (2, 20)]];
    for arrivals in arrivals {
        let mut bench = by_source(QosSet { presentation, ..QosSet::reader().keep_all() });
        for (writer, value) in arrivals {
            bench.data_at(writer, 1, value, value, at(7)).unwrap();
        }
        bench.data_at(1, 2, 99, 5, at(6)).unwrap();
        assert_eq!(bench.values(), [5, 10, 20, 30]);
    }
}

#[test]
fn of_filtered_samples_the_newest_by_source_is_shown_at_the_end() {
    let mut bench =
        by_source(QosSet { time_based_filter: Duration::from_secs(1), ..QosSet::reader().keep_all() });
    bench.data_at(1, 1, 1, 10, at(10)).unwrap();
    bench.data_at(1, 2, 1, 30, at(30)).unwrap();
    bench.data_at(2, 1, 1, 20, at(20)).unwrap();
    bench.pass(Duration::from_secs(3));
    assert_eq!(bench.values(), [10, 30]);
}

#[test]
fn a_sample_held_back_is_not_lost_to_an_older_one_that_is_shown() {
    let mut bench =
        by_source(QosSet { time_based_filter: Duration::from_secs(1), ..QosSet::reader().keep_all() });
    bench.data_at(1, 1, 1, 10, at(10)).unwrap();
    bench.data_at(1, 2, 1, 30, at(30)).unwrap();
    bench.now.mono = bench.now.mono.after(Duration::from_millis(1_100)).unwrap();
    bench.data_at(2, 1, 1, 20, at(20)).unwrap();
    assert_eq!(bench.values(), [10, 20]);
    bench.pass(Duration::from_secs(3));
    assert_eq!(bench.values(), [30]);
}

#[test]
fn what_is_older_than_a_sample_shown_is_not_held_back_to_follow_it() {
    let qos = QosSet { time_based_filter: Duration::from_secs(1), ..QosSet::reader() };
    for qos in [qos.clone().keep_all(), qos.keep_last(1)] {
        let mut bench = by_source(qos);
        bench.data_at(1, 1, 1, 50, at(50)).unwrap();
        let _ = bench.data_at(2, 1, 1, 40, at(40));
        assert_eq!(bench.values(), [50]);
        bench.pass(Duration::from_secs(3));
        assert_eq!(bench.values(), [], "40 would go back");
    }
}

#[test]
fn nothing_goes_back_behind_the_news_that_an_instance_has_no_writers() {
    let mut bench = by_source(QosSet::reader().reliable().keep_all());
    bench.data_at(1, 1, 1, 30, at(30)).unwrap();
    bench.unregister(1, 2, 1).unwrap();
    assert_eq!(bench.data_at(2, 1, 1, 20, at(20)), Err(DropReason::OutOfOrder));
    bench.data_at(2, 2, 1, 40, at(40)).unwrap();
    assert_eq!(bench.values(), [30, 40]);
}

proptest! {
    /// What DESTINATION_ORDER promises: whatever the order of arrival, all readers end with one value.
    #[test]
    fn all_readers_end_with_the_same_value(
        times in prop::collection::vec((1_u8..=3, 0_i64..4), 1..20),
        depth in 1_i32..4,
        swaps in prop::collection::vec((0_usize..20, 0_usize..20), 0..20),
        takes in any::<u32>(),
    ) {
        let mut sent: Vec<(u8, i64, i64, u8)> = Vec::new();
        for (value, (writer, time)) in (0_u8..).zip(times) {
            // The writer of BY_SOURCE_TIMESTAMP never goes back.
            let last = sent.iter().rev().find(|known| known.0 == writer);
            let (number, last) = last.map_or((1, 0), |last| (last.1 + 1, last.2));
            sent.push((writer, number, last + time, value));
        }
        let newest = sent.iter().max_by_key(|known| (known.2, known.0, known.1)).unwrap().3;
        let mut shuffled = sent.clone();
        for (one, other) in swaps {
            let (one, other) = (one % sent.len(), other % sent.len());
            shuffled.swap(one, other);
        }
        for (arrivals, take) in [(sent, false), (shuffled.clone(), false), (shuffled, true)] {
            let mut bench = by_source(QosSet::reader().keep_last(depth));
            let mut last = None;
            for (at_index, (writer, number, time, value)) in arrivals.into_iter().enumerate() {
                // Reliable writers are delivered in order: a swap only delays.
                let _ = bench.data_at(writer, number, 1, value, at(time));
                if take && takes >> (at_index % 32) & 1 == 1 {
                    last = bench.values().last().copied().or(last);
                }
            }
            last = bench.values().last().copied().or(last);
            prop_assert_eq!(last, Some(newest));
        }
    }
}
