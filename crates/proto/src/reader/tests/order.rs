//! Order, gaps, heartbeats and acknowledgements of one writer.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn samples_ahead_of_a_hole_wait_until_it_closes() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 10).unwrap();
    bench.data(1, 3, 1, 30).unwrap();
    bench.data(1, 4, 1, 40).unwrap();
    assert_eq!(bench.values(), [10]);
    bench.heartbeat(1, 1, 4, true).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 2, missing: vec![2], final_flag: false }]);
    bench.data(1, 2, 1, 20).unwrap();
    assert_eq!(bench.values(), [20, 30, 40]);
    bench.heartbeat(1, 1, 4, false).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 5, missing: vec![], final_flag: true }]);
}

#[test]
fn best_effort_takes_only_what_is_newer_and_counts_what_was_lost() {
    let mut bench = Bench::best_effort();
    bench.data(1, 7, 1, 7).unwrap();
    assert_eq!(bench.reader.sample_lost_status().total_count, 0, "what was before the first is not lost");
    bench.data(1, 9, 1, 9).unwrap();
    assert_eq!(bench.data(1, 8, 1, 8), Err(DropReason::OutOfOrder));
    assert_eq!(bench.data(1, 9, 1, 9), Err(DropReason::Duplicate));
    assert_eq!(bench.values(), [7, 9]);
    assert_eq!(bench.reported(StatusKind::SampleLost), 1);
    assert_eq!(bench.reader.sample_lost_status().total_count, 1);
    assert_eq!(bench.reader.drops().get(DropReason::OutOfOrder), 1);
    bench.heartbeat(1, 1, 20, false).unwrap();
    assert!(bench.acks().is_empty(), "best effort never answers");
}

#[test]
fn an_unmatched_writer_is_not_heard() {
    let mut bench = Bench::reliable();
    assert_eq!(bench.data(9, 1, 1, 1), Err(DropReason::NotMatched));
    assert_eq!(bench.heartbeat(9, 1, 1, false), Err(DropReason::NotMatched));
}

#[test]
fn fact_5_an_unheard_writer_is_probed_with_back_off_until_its_first_heartbeat() {
    let mut bench = Bench::new(QosSet::reader().reliable());
    bench.vendor = crate::vendor::PLAINSONG;
    bench.matched(1, QosSet::writer());
    let probe = Ack { base: 1, missing: vec![], final_flag: false };
    assert_eq!(bench.acks(), [probe]);
    bench.pass(Duration::from_millis(10));
    assert_eq!(bench.acks().len(), 1);
    bench.pass(Duration::from_secs(3));
    let early = bench.acks().len();
    assert!((6..=10).contains(&early), "{early} probes in 3 s");
    bench.pass(Duration::from_secs(60));
    bench.acks();
    bench.pass(Duration::from_secs(60));
    let late = bench.acks().len();
    assert!((5..=7).contains(&late), "{late} probes in a late minute");
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.pass(Duration::from_secs(60));
    assert!(bench.acks().is_empty(), "a heard writer is not probed");
    assert_eq!(bench.reader.next_timeout(), None);
}

#[test]
fn many_unheard_writers_are_probed_after_longer_pauses() {
    let probes_of_each = |writers: u8| {
        let mut bench = Bench::new(QosSet::reader().reliable());
        bench.vendor = crate::vendor::PLAINSONG;
        (1..=writers).for_each(|number| bench.matched(number, QosSet::writer()));
        bench.pass(Duration::from_secs(1));
        bench.acks().len() / usize::from(writers)
    };
    let (few, many) = (probes_of_each(4), probes_of_each(100));
    assert_eq!(few, 7);
    assert!((3..=5).contains(&many), "{many} probes of each in a second");
}

#[test]
fn fact_6_an_answer_that_asks_for_nothing_is_final() {
    let mut bench = Bench::reliable();
    bench.heartbeat(1, 1, 0, false).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 1, missing: vec![], final_flag: true }]);
    bench.heartbeat(1, 1, 0, true).unwrap();
    assert!(bench.acks().is_empty(), "a final heartbeat with nothing missing needs no answer");
}

#[test]
fn fact_7_the_empty_writer_of_old_products_is_understood() {
    let mut bench = Bench::reliable();
    bench.heartbeat(1, 2, 0, false).unwrap();
    assert_eq!(bench.acks().first().unwrap().base, 1);
    assert_eq!(bench.heartbeat(1, 50, 10, false), Err(DropReason::Malformed));
    bench.data(1, 1, 1, 1).unwrap();
    assert_eq!(bench.values(), [1]);
}

#[test]
fn fact_8_equal_counts_are_duplicates_and_smaller_ones_a_restart() {
    let mut bench = Bench::reliable();
    bench.heartbeat_counted(1, 1, 1, false, 700).unwrap();
    assert_eq!(bench.heartbeat_counted(1, 1, 1, false, 700), Err(DropReason::StaleCount));
    bench.data(1, 1, 1, 1).unwrap();
    bench.acks();
    bench.heartbeat_counted(1, 1, 1, false, 1).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 2, missing: vec![], final_flag: true }]);
}

#[test]
fn fact_9_a_gap_is_its_range_and_its_bitmap() {
    let mut bench = Bench::reliable();
    bench.data(1, 13, 1, 13).unwrap();
    bench.data(1, 11, 1, 11).unwrap();
    // 1..=9, and of the bitmap from 10 on: 10 and 12.
    bench.gap(1, 1, 10, &[10, 12]).unwrap();
    assert_eq!(bench.values(), [11, 13]);
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
    assert_eq!(bench.gap(1, 20, 15, &[]), Err(DropReason::Malformed));
}

#[test]
fn r13_a_gap_of_any_width_is_one_step() {
    // Before the first heartbeat a writer may be anywhere; afterwards such a jump is not believed.
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
    bench.matched(1, QosSet::writer());
    let far = 1 << 62;
    bench.gap(1, 1, far, &[]).unwrap();
    bench.data(1, far, 1, 1).unwrap();
    assert_eq!(bench.values(), [1]);
    let mut bench = Bench::reliable();
    assert_eq!(bench.gap(1, 1, far, &[]), Err(DropReason::ImplausibleSequence));
    assert_eq!(bench.heartbeat(1, far, far, false), Err(DropReason::ImplausibleSequence));
    assert_eq!(bench.data(1, far, 1, 1), Err(DropReason::ImplausibleSequence));
    bench.data(1, 1, 1, 2).unwrap();
    assert_eq!(bench.values(), [2], "the forged numbers did no harm");
}

#[test]
fn r13_scattered_gaps_are_bounded() {
    let mut bench = Bench::reliable();
    let mut refused = 0;
    for start in (2..20_000).step_by(2) {
        refused += i32::from(bench.gap(1, start, start + 1, &[]) == Err(DropReason::BufferFull));
    }
    assert!(refused > 8_000);
    bench.gap(1, 1, 1_000_000, &[]).unwrap();
    bench.data(1, 1_000_000, 1, 5).unwrap();
    assert_eq!(bench.values(), [5]);
}

#[test]
fn what_the_writer_no_longer_has_is_lost_and_does_not_hold_up_the_rest() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(1, 5, 1, 5).unwrap();
    bench.gap(1, 3, 4, &[]).unwrap();
    bench.heartbeat(1, 8, 9, true).unwrap();
    assert_eq!(bench.values(), [1, 5]);
    assert_eq!(bench.reader.sample_lost_status().total_count, 2, "2 and 4, since 5 came");
    assert_eq!(bench.acks(), [Ack { base: 8, missing: vec![8, 9], final_flag: false }]);
    bench.heartbeat(1, 8, 9, true).unwrap();
    assert_eq!(bench.reader.sample_lost_status().total_count, 4, "6 and 7 too: nobody says otherwise");
    bench.heartbeat(1, 10, 9, true).unwrap();
    assert_eq!(bench.reader.sample_lost_status().total_count, 6, "8 and 9 were known to be");
}

#[test]
fn what_a_single_heartbeat_says_to_be_gone_is_asked_about_before_it_counts_as_lost() {
    let mut bench = Bench::reliable();
    bench.heartbeat(1, 31, 30, true).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 31, missing: vec![], final_flag: false }]);
    assert_eq!(bench.reported(StatusKind::SampleLost), 0);
    bench.heartbeat(1, 31, 30, true).unwrap();
    assert_eq!(bench.acks(), [], "there is no more to ask");
    assert_eq!(bench.reader.sample_lost_status().total_count, 30);
}

#[test]
fn a_forged_heartbeat_loses_nothing_that_arrives() {
    // Far ahead of what there is; what there is; and a part of it.
    for (first, last) in [(1 << 31, 1 << 31), (31, 30), (21, 30)] {
        let mut bench = Bench::reliable();
        (1..=10).for_each(|number| bench.data(1, number, 1, number as u8).unwrap());
        bench.heartbeat(1, first, last, false).unwrap();
        bench.heartbeat(1, 1, 30, false).unwrap();
        for number in 11..=30 {
            bench.data(1, number, 1, number as u8).unwrap();
        }
        bench.heartbeat(1, 1, 30, false).unwrap();
        assert_eq!(bench.values(), (1..=30).collect::<Vec<u8>>());
        assert_eq!(bench.reader.sample_lost_status().total_count, 0, "{first} to {last}");
        assert_eq!(bench.reported(StatusKind::SampleLost), 0);
    }
}

#[test]
fn what_a_writer_passes_over_when_it_takes_a_reader_in_step_for_a_new_one_is_lost_and_told() {
    for (history, delivered) in [(0, 10), (10, 10)] {
        let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
        bench.matched(1, QosSet::writer().keep_all());
        bench.gap(1, 1, history + 1, &[]).unwrap();
        bench.heartbeat(1, history + 1, history, true).unwrap();
        (history + 1..=delivered).for_each(|number| bench.data(1, number, 1, 1).unwrap());
        bench.data(1, 20, 1, 20).unwrap();
        bench.reader.subscription_matched_status();
        bench.gap(1, 1, 31, &[]).unwrap();
        assert_eq!(bench.reader.sample_lost_status().total_count, 0, "a GAP may be forged");
        bench.heartbeat(1, 31, 30, true).unwrap();
        assert_eq!(bench.reader.sample_lost_status().total_count, 19, "11 to 30, but for 20");
        let matched = bench.reader.subscription_matched_status();
        assert_eq!((matched.total.total_count, matched.total.total_count_change), (2, 1));
        assert_eq!((matched.current_count, matched.current_count_change), (1, 0));
        bench.gap(1, 1, 31, &[]).unwrap();
        bench.heartbeat(1, 31, 30, true).unwrap();
        assert_eq!(bench.reader.sample_lost_status().total_count, 19, "the same once more");
        bench.data(1, 31, 1, 31).unwrap();
        assert_eq!(bench.values().last(), Some(&31));
    }
}

#[test]
fn only_what_a_writer_that_keeps_all_passes_over_is_lost_to_who_wants_all() {
    let keeps_all = QosSet::writer().keep_all();
    let sparing = QosSet { lifespan: Duration::from_secs(9), ..keeps_all.clone() };
    let filtering = QosSet { time_based_filter: Duration::from_millis(1), ..QosSet::reader().reliable() };
    let all = QosSet::reader().reliable();
    let cases = [
        (&all, &keeps_all, 3),
        (&all, &QosSet::writer(), 0),
        (&all, &sparing, 0),
        (&filtering, &keeps_all, 0),
    ];
    for (requested, offered, lost) in cases {
        let mut bench = Bench::new(requested.clone());
        bench.matched(1, offered.clone());
        bench.heartbeat(1, 1, 5, true).unwrap();
        bench.gap(1, 1, 6, &[]).unwrap();
        bench.data(1, 6, 1, 6).unwrap();
        bench.gap(1, 7, 9, &[10]).unwrap();
        bench.data(1, 9, 1, 9).unwrap();
        bench.heartbeat(1, 1, 10, true).unwrap();
        assert_eq!(bench.reader.sample_lost_status().total_count, lost, "7, 8 and 10");
    }
}

#[test]
fn a_forged_gap_loses_nothing_that_arrives_and_tells_of_no_match() {
    let mut bench = Bench::reliable();
    (1..=10).for_each(|number| bench.data(1, number, 1, number as u8).unwrap());
    bench.gap(1, 1, 1 << 31, &[]).unwrap();
    bench.heartbeat(1, 1, 12, false).unwrap();
    (11..=12).for_each(|number| bench.data(1, number, 1, number as u8).unwrap());
    bench.heartbeat(1, 1, 12, false).unwrap();
    assert_eq!(bench.values(), (1..=12).collect::<Vec<u8>>());
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
    assert_eq!(bench.reader.subscription_matched_status().total.total_count, 1);
}

#[test]
fn a_forged_heartbeat_loses_nothing_while_the_cache_is_full() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.resource_limits.max_samples = 1;
    let mut bench = Bench::new(qos);
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    (1..=3).for_each(|number| bench.data(1, number, 1, number as u8).unwrap());
    bench.heartbeat(1, 1 << 31, 1 << 31, false).unwrap();
    bench.heartbeat(1, 1, 4, false).unwrap();
    bench.data(1, 4, 1, 4).unwrap();
    let taken: Vec<u8> = (0..4).flat_map(|_| bench.values()).collect();
    assert_eq!(taken, [1, 2, 3, 4]);
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
}

#[test]
fn history_that_was_gone_before_the_match_is_not_lost() {
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
    bench.matched(1, QosSet::writer());
    bench.acks();
    bench.heartbeat(1, 100, 102, true).unwrap();
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
    assert_eq!(bench.acks(), [Ack { base: 100, missing: vec![100, 101, 102], final_flag: false }]);
}

#[test]
fn of_a_plainsong_writer_a_later_sample_shows_what_is_missing() {
    for (vendor, asks) in [(crate::vendor::PLAINSONG, true), ([0x01, 0x10], false)] {
        let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
        bench.vendor = vendor;
        bench.matched(1, QosSet::writer());
        bench.heartbeat(1, 1, 0, true).unwrap();
        bench.out.clear();
        bench.data(1, 1, 1, 10).unwrap();
        bench.data(1, 3, 1, 30).unwrap();
        assert!(bench.acks().is_empty(), "it may be on its way");
        bench.pass(Duration::from_millis(1));
        let asked = Ack { base: 2, missing: vec![2], final_flag: false };
        assert_eq!(bench.acks(), if asks { vec![asked] } else { vec![] }, "others answer heartbeats alone");
        bench.data(1, 4, 1, 40).unwrap();
        bench.pass(Duration::from_millis(1));
        assert!(bench.acks().is_empty(), "once");
    }
}

#[test]
fn what_comes_soon_after_a_later_sample_is_not_asked_for() {
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
    bench.vendor = crate::vendor::PLAINSONG;
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.out.clear();
    bench.data(1, 2, 1, 20).unwrap();
    bench.pass(Duration::from_micros(200));
    bench.data(1, 1, 1, 10).unwrap();
    bench.pass(Duration::from_millis(10));
    assert!(bench.acks().is_empty());
    assert_eq!(bench.values(), [10, 20]);
}

#[test]
fn the_same_hole_is_not_asked_for_twice_at_once() {
    let mut bench = Bench::reliable();
    bench.heartbeat(1, 1, 3, false).unwrap();
    bench.heartbeat(1, 1, 3, false).unwrap();
    bench.heartbeat(1, 1, 3, true).unwrap();
    assert_eq!(bench.acks().len(), 1);
    bench.data(1, 1, 1, 1).unwrap();
    bench.pass(Duration::from_millis(2));
    assert_eq!(bench.acks(), [Ack { base: 2, missing: vec![2, 3], final_flag: false }], "the owed answer");
    bench.pass(Duration::from_millis(50));
    assert!(bench.acks().is_empty(), "nobody asked again");
}

#[test]
fn what_is_missing_is_asked_for_until_it_arrives_even_if_the_writer_stays_silent() {
    let mut bench = Bench::reliable();
    bench.heartbeat(1, 1, 3, true).unwrap();
    bench.out.clear();
    bench.pass(Duration::from_secs(10));
    let asked = bench.acks();
    assert!((6..=10).contains(&asked.len()), "ever more slowly, not {} times", asked.len());
    assert!(asked.iter().all(|ack| *ack == Ack { base: 1, missing: vec![1, 2, 3], final_flag: false }));
    (1..=3).for_each(|number| bench.data(1, number, 1, 1).unwrap());
    bench.pass(Duration::from_secs(10));
    assert!(bench.acks().is_empty());
}

#[test]
fn a_full_cache_asks_for_nothing_until_the_application_takes() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.resource_limits.max_samples = 1;
    let limits = ReaderLimits { reorder_bytes_max: 1, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(qos) });
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.out.clear();
    bench.data(1, 1, 1, 1).unwrap();
    assert_eq!(bench.data(1, 2, 1, 2), Ok(()), "what is next is kept, whatever else fills the memory");
    bench.heartbeat(1, 1, 300, false).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 2, missing: vec![], final_flag: true }]);
    bench.pass(Duration::from_secs(10));
    assert!(bench.acks().is_empty());
    assert_eq!(bench.values(), [1]);
    bench.pass(Duration::from_millis(10));
    let asked = bench.acks();
    assert_eq!((asked[0].base, asked[0].missing.first()), (3, Some(&3)));
    assert_eq!(bench.values(), [2]);
}

#[test]
fn an_acknack_names_at_most_256_changes() {
    let mut bench = Bench::reliable();
    bench.heartbeat(1, 1, 5_000, true).unwrap();
    let acks = bench.acks();
    assert_eq!((acks[0].base, acks[0].missing.len(), acks[0].missing[255]), (1, 256, 256));
}

#[test]
fn r3_a_full_reorder_buffer_keeps_what_is_nearest() {
    let mut limits = ReaderLimits { reorder_samples_max: 3, ..ReaderLimits::default() };
    limits.reorder_bytes_max = 4_000;
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    bench.matched(1, QosSet::writer());
    for number in [10, 9, 8] {
        bench.data(1, number, 1, number as u8).unwrap();
    }
    assert_eq!(bench.data(1, 11, 1, 11), Err(DropReason::BufferFull));
    bench.data(1, 2, 1, 2).unwrap();
    bench.heartbeat(1, 1, 11, true).unwrap();
    let missing = bench.acks().pop().unwrap().missing;
    assert_eq!(missing, [1, 3, 4, 5, 6, 7, 10, 11], "10 gave way to 2");
    for number in missing {
        bench.data(1, number, 1, number as u8).unwrap();
    }
    assert_eq!(bench.values(), (1..=11).collect::<Vec<u8>>());
}

#[test]
fn r3_writers_share_what_may_wait_for_its_turn() {
    const WRITERS: u8 = 40;
    let limits = ReaderLimits { reorder_bytes_max: 20_000, writers_max: 50, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    for from in 1..=WRITERS {
        bench.matched(from, QosSet::writer());
    }
    let held = |bench: &Bench| -> usize {
        (1..=WRITERS)
            .map(|from| bench.reader.by_guid[&writer(from)])
            .map(|id| bench.reader.proxy(id).unwrap().order.waiting_bytes())
            .sum()
    };
    let flood = |bench: &mut Bench, from| {
        (2..200).filter(|number| bench.data(from, *number, 1, *number as u8).is_ok()).count()
    };
    let first = flood(&mut bench, 1);
    assert!((20..=100).contains(&first), "{first} of one, within all of the limit");
    let full = held(&bench);
    assert!(full <= 20_000, "{full}");
    for from in 2..=WRITERS {
        let more = flood(&mut bench, from);
        assert!((1..=4).contains(&more), "{more} of writer {from}: its part");
    }
    assert!(held(&bench) <= 2 * 20_000 + usize::from(WRITERS) * 400, "{}", held(&bench));
    // Who is in order needs no place, and what is nearer takes that of what is farther.
    for number in 1..200 {
        bench.data(2, number, 1, number as u8).unwrap_or_default();
    }
    assert_eq!(bench.values(), (1..200).collect::<Vec<u8>>());
}

#[test]
fn a_change_that_can_never_be_read_does_not_hold_up_the_rest() {
    let limits = ReaderLimits { sample_bytes_max: 100, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    bench.matched(1, QosSet::writer());
    let context = bench.context(1);
    let data = plain(1, &[0; 101]);
    let result = bench.reader.on_data(bench.now, &context, &data, &mut bench.out);
    assert_eq!(result, Err(DropReason::SampleTooLarge));
    let data = plain(2, &[0; 3]);
    let result = bench.reader.on_data(bench.now, &context, &data, &mut bench.out);
    assert_eq!(result, Err(DropReason::Undecodable), "too short for its key");
    bench.data(1, 3, 1, 3).unwrap();
    assert_eq!(bench.values(), [3]);
    assert_eq!(bench.reader.sample_lost_status().total_count, 2);
    assert_eq!(bench.reader.undecodable_samples(), 1);
}

#[test]
fn fact_63_history_is_complete_when_all_that_was_there_has_arrived() {
    let transient = |qos: QosSet| qos.durability(Durability::TransientLocal);
    let mut bench = Bench::new(transient(QosSet::reader().reliable().keep_all()));
    bench.matched(1, transient(QosSet::writer()));
    assert!(!bench.reader.is_history_complete(), "not heard yet");
    bench.heartbeat(1, 1, 2, false).unwrap();
    bench.data(1, 1, 1, 1).unwrap();
    assert!(!bench.reader.is_history_complete());
    bench.data(1, 2, 1, 2).unwrap();
    assert!(bench.reader.is_history_complete());
    bench.heartbeat(1, 1, 3, false).unwrap();
    assert!(bench.reader.is_history_complete(), "3 came after the match");
}

proptest! {
    #[test]
    fn any_order_with_any_loss_ends_complete_and_in_order(
        arrivals in prop::collection::vec(1_i64..=60, 0..300),
        holes in prop::collection::btree_set(1_i64..=60, 0..20),
    ) {
        let mut bench = Bench::reliable();
        let mut seen = BTreeSet::new();
        for number in arrivals.into_iter().filter(|number| !holes.contains(number)) {
            let expected = if seen.insert(number) { Ok(()) } else { Err(DropReason::Duplicate) };
            prop_assert_eq!(bench.data(1, number, 1, number as u8), expected);
        }
        // What the ACKNACK asks for is exactly what the model lacks.
        bench.heartbeat(1, 1, 60, false).unwrap();
        let missing: Vec<i64> = (1..=60).filter(|number| !seen.contains(number)).collect();
        let ack = bench.acks().pop().unwrap();
        prop_assert_eq!(&ack.missing, &missing);
        prop_assert_eq!(ack.base, missing.first().copied().unwrap_or(61));
        for number in missing {
            if holes.contains(&number) {
                bench.gap(1, number, number + 1, &[]).unwrap();
            } else {
                bench.data(1, number, 1, number as u8).unwrap();
            }
        }
        let expected: Vec<u8> = (1..=60).filter(|number| !holes.contains(number)).map(|it| it as u8).collect();
        prop_assert_eq!(bench.values(), expected);
        prop_assert_eq!(bench.reader.sample_lost_status().total_count, 0);
    }
}

#[test]
fn a_gap_of_the_first_match_that_comes_late_loses_nothing() {
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
    bench.matched(1, QosSet::writer().keep_all());
    // What goes to all readers comes before the writer has found this one.
    bench.heartbeat_to(EntityId::UNKNOWN, 1, (2, 2), true, 1).unwrap();
    bench.data(1, 2, 1, 2).unwrap();
    // By then it had written up to 4. It says so to this reader twice, and the GAP with the first comes last.
    bench.heartbeat_counted(1, 1, 4, true, 3).unwrap();
    bench.gap(1, 1, 5, &[]).unwrap();
    bench.heartbeat_counted(1, 1, 4, true, 4).unwrap();
    bench.data(1, 5, 1, 5).unwrap();
    assert_eq!(bench.values(), [2, 5]);
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
    assert_eq!(bench.reader.subscription_matched_status().total.total_count, 1);
    // What it wrote after that is lost to this reader if it begins anew.
    bench.gap(1, 1, 9, &[]).unwrap();
    bench.heartbeat_counted(1, 9, 8, true, 5).unwrap();
    assert_eq!(bench.reader.sample_lost_status().total_count, 3, "6, 7 and 8");
    assert_eq!(bench.reader.subscription_matched_status().total.total_count, 2);
}

#[test]
fn a_writer_that_replaces_samples_answers_an_old_question_and_has_not_begun_anew() {
    let mut bench = Bench::reliable();
    bench.heartbeat(1, 1, 2, true).unwrap();
    (1..=2).for_each(|number| bench.data(1, number, 1, number as u8).unwrap());
    bench.gap(1, 1, 5, &[]).unwrap();
    bench.heartbeat(1, 5, 5, true).unwrap();
    bench.data(1, 5, 1, 5).unwrap();
    assert_eq!(bench.values(), [1, 2, 5]);
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
    assert_eq!(bench.reader.subscription_matched_status().total.total_count, 1);
}

#[test]
fn a_writer_that_speaks_first_is_asked_only_if_it_does_not() {
    let begins = |bench: &mut Bench| {
        bench.vendor = crate::vendor::PLAINSONG;
        let writer = MatchedWriter { begins: true, ..bench.known(1, QosSet::writer()) };
        bench.reader.match_writer(bench.now, &writer, &mut bench.out);
        bench.pass(Duration::from_millis(99));
        assert!(bench.acks().is_empty());
    };
    let mut told = Bench::new(QosSet::reader().reliable());
    begins(&mut told);
    told.heartbeat(1, 1, 0, true).unwrap();
    told.pass(Duration::from_secs(10));
    assert!(told.acks().is_empty());
    let mut unnotified = Bench::new(QosSet::reader().reliable());
    begins(&mut unnotified);
    unnotified.pass(Duration::from_millis(1));
    assert_eq!(
        unnotified.acks(),
        [Ack { base: 1, missing: vec![], final_flag: false }],
        "what it said is lost"
    );
}
