//! Samples in fragments.

use proptest::prelude::*;

use super::*;
use crate::wire::HeartbeatFrag;

const PIECE: usize = 1_000;

/// A sample of `bytes` octets of the instance 1 whose octets tell their place.
fn sample(bytes: usize) -> Vec<u8> {
    let mut sample: Vec<u8> = (0..bytes).map(|at| (at / 7 + at / 251) as u8).collect();
    sample[4] = 1;
    sample
}

fn pieces(sample: &[u8], number: i64, first: u32, fragments: u16, piece: usize) -> DataFrag<'_> {
    let start = (first as usize - 1) * piece;
    let end = (start + usize::from(fragments) * piece).min(sample.len());
    DataFrag {
        reader: EntityId::UNKNOWN,
        writer: writer(1).entity,
        sequence_number: SequenceNumber(number),
        first_fragment: first,
        fragments,
        fragment_bytes: piece as u16,
        sample_bytes: sample.len() as u32,
        inline_qos: None,
        payload: &sample[start..end],
        key_only: false,
    }
}

fn one(sample: &[u8], number: i64, fragment: u32) -> DataFrag<'_> {
    pieces(sample, number, fragment, 1, PIECE)
}

fn heartbeat_frag(bench: &mut Bench, number: i64, last: u32, count: i32) -> Result<(), DropReason> {
    let heartbeat = HeartbeatFrag {
        reader: EntityId::UNKNOWN,
        writer: writer(1).entity,
        sequence_number: SequenceNumber(number),
        last_fragment: last,
        count,
    };
    let context = bench.context(1);
    bench.reader.on_heartbeat_frag(bench.now, &context, &heartbeat, &mut bench.out)
}

#[test]
fn fact_10_fragments_become_a_sample_whatever_their_order_and_the_last_may_be_short() {
    let whole = sample(3_500);
    for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]] {
        for mut bench in [Bench::reliable(), Bench::best_effort()] {
            for fragment in order {
                assert!(bench.take().is_empty());
                bench.fragment(1, &one(&whole, 1, fragment)).unwrap();
            }
            assert_eq!(bench.take()[0].payload.as_slice(), whole);
        }
    }
    let mut bench = Bench::reliable();
    bench.fragment(1, &pieces(&whole, 1, 1, 2, PIECE)).unwrap();
    bench.fragment(1, &pieces(&whole, 1, 2, 3, PIECE)).unwrap();
    assert_eq!(bench.take()[0].payload.as_slice(), whole, "several per submessage, overlapping");
}

#[test]
fn a_sample_is_received_when_its_last_fragment_is() {
    let whole = sample(2_000);
    let mut bench = Bench::reliable();
    bench.fragment(1, &one(&whole, 1, 1)).unwrap();
    bench.pass(Duration::from_millis(5));
    bench.fragment(1, &one(&whole, 1, 2)).unwrap();
    assert_eq!(bench.take()[0].info.reception_timestamp, bench.now.wall);
}

#[test]
fn inline_qos_counts_whichever_fragment_arrives_first() {
    let whole = sample(3_500);
    let inline = InlineQos { lifespan: Some(Duration::from_secs(1)), ..InlineQos::default() };
    let mut list = Vec::new();
    encode_inline_qos(&inline, &mut list);
    let inline_qos = Some(ParameterListView { bytes: &list, little_endian: true });
    for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]] {
        let mut bench = Bench::reliable();
        for fragment in order {
            let inline_qos = inline_qos.filter(|_| fragment == 1);
            bench.fragment(1, &DataFrag { inline_qos, ..one(&whole, 1, fragment) }).unwrap();
        }
        bench.pass(Duration::from_millis(900));
        assert_eq!(bench.read_with(&Selector::default()).len(), 1);
        bench.pass(Duration::from_millis(200));
        assert!(bench.take().is_empty(), "its lifespan came with the first fragment: {order:?}");
    }
}

#[test]
fn five_megabytes_in_fragments_of_any_size() {
    let whole = sample(5_000_000);
    for piece in [1_400_usize, 65_000] {
        let mut bench = Bench::reliable();
        for fragment in 1..=whole.len().div_ceil(piece) as u32 {
            bench.fragment(1, &pieces(&whole, 1, fragment, 1, piece)).unwrap();
        }
        assert_eq!(bench.take()[0].payload.as_slice(), whole);
    }
}

#[test]
fn fact_11_a_partly_received_sample_is_asked_for_by_fragment() {
    let mut bench = Bench::reliable();
    let whole = sample(5_000);
    bench.fragment(1, &one(&whole, 1, 2)).unwrap();
    bench.fragment(1, &one(&whole, 1, 4)).unwrap();
    bench.pass(Duration::from_millis(1));
    bench.heartbeat(1, 1, 2, false).unwrap();
    assert_eq!(bench.out.transmits().len(), 1, "one datagram");
    let (acks, transmits) = (bench.acks_kept(), bench.nack_frags());
    assert_eq!(acks, [Ack { base: 1, missing: vec![2], final_flag: false }], "2 is missing whole, 1 is not");
    assert_eq!(transmits, [(1, vec![1, 3, 5])]);
    for fragment in [1, 3, 5] {
        bench.fragment(1, &one(&whole, 1, fragment)).unwrap();
    }
    assert_eq!(bench.take().len(), 1);
    assert_eq!(bench.fragment(1, &one(&whole, 1, 5)), Err(DropReason::Duplicate));
}

#[test]
fn fragments_on_their_way_are_not_asked_for() {
    let mut bench = Bench::reliable();
    let whole = sample(5_000);
    bench.fragment(1, &one(&whole, 1, 1)).unwrap();
    bench.heartbeat(1, 1, 1, true).unwrap();
    assert!(bench.nack_frags().is_empty(), "the rest may be right behind");
    bench.fragment(1, &one(&whole, 1, 2)).unwrap();
    bench.pass(Duration::from_millis(3));
    assert_eq!(bench.nack_frags(), [(1, vec![3, 4, 5])], "it was not");
}

#[test]
fn a_heartbeat_that_overtakes_the_last_fragment_is_answered_when_that_arrives() {
    let mut bench = Bench::reliable();
    let whole = sample(3_000);
    bench.fragment(1, &one(&whole, 1, 1)).unwrap();
    bench.fragment(1, &one(&whole, 1, 2)).unwrap();
    bench.heartbeat(1, 1, 1, false).unwrap();
    bench.acks();
    bench.fragment(1, &one(&whole, 1, 3)).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 2, missing: Vec::new(), final_flag: true }]);
    bench.pass(Duration::from_millis(10));
    assert!(bench.acks().is_empty(), "once");
}

#[test]
fn a_hole_is_asked_for_while_later_samples_stream_in() {
    let mut bench = Bench::reliable();
    let whole = sample(3_000);
    for number in 1..=20 {
        for fragment in (1..=3).filter(|fragment| (number, *fragment) != (1, 2)) {
            bench.fragment(1, &one(&whole, number, fragment)).unwrap();
            bench.pass(Duration::from_micros(100));
        }
    }
    bench.fragment(1, &one(&whole, 21, 1)).unwrap();
    bench.heartbeat(1, 1, 21, true).unwrap();
    assert_eq!(bench.nack_frags(), [(1, vec![2])]);
    bench.fragment(1, &one(&whole, 1, 2)).unwrap();
    assert_eq!(bench.take().len(), 20);
}

#[test]
fn a_heartbeat_frag_is_answered_with_what_is_missing() {
    let mut bench = Bench::reliable();
    let whole = sample(5_000);
    heartbeat_frag(&mut bench, 1, 3, 1).unwrap();
    assert_eq!(bench.nack_frags(), [(1, vec![1, 2, 3])], "nothing is here yet");
    bench.fragment(1, &one(&whole, 1, 2)).unwrap();
    heartbeat_frag(&mut bench, 1, 3, 2).unwrap();
    assert_eq!(bench.nack_frags(), [(1, vec![1, 3])]);
    assert_eq!(heartbeat_frag(&mut bench, 1, 3, 2), Err(DropReason::StaleCount));
    for fragment in 1..=5 {
        let _ = bench.fragment(1, &one(&whole, 1, fragment));
    }
    heartbeat_frag(&mut bench, 1, 5, 3).unwrap();
    assert!(bench.nack_frags().is_empty(), "the sample is complete");
}

#[test]
fn a_sample_of_fragments_keeps_its_place_in_the_order() {
    let mut bench = Bench::reliable();
    let whole = sample(2_000);
    bench.fragment(1, &one(&whole, 2, 1)).unwrap();
    bench.data(1, 3, 1, 3).unwrap();
    bench.fragment(1, &one(&whole, 2, 2)).unwrap();
    assert!(bench.take().is_empty());
    bench.data(1, 1, 1, 1).unwrap();
    let lengths: Vec<usize> = bench.take().iter().map(|sample| sample.payload.len()).collect();
    assert_eq!(lengths, [6, 2_000, 6]);
}

#[test]
fn best_effort_gives_up_an_incomplete_sample_when_a_later_one_is_whole() {
    let mut bench = Bench::best_effort();
    let whole = sample(2_000);
    bench.fragment(1, &one(&whole, 1, 1)).unwrap();
    bench.data(1, 2, 1, 2).unwrap();
    assert_eq!(bench.fragment(1, &one(&whole, 1, 2)), Err(DropReason::OutOfOrder));
    assert_eq!(bench.reader.assembly.bytes, 0);
    for number in 3..2_000 {
        bench.fragment(1, &one(&whole, number, 1)).unwrap();
    }
    bench.fragment(1, &one(&whole, 1_999, 2)).unwrap();
    assert_eq!(bench.take().len(), 2, "hundreds of incomplete samples did not stop a complete one");
    assert_eq!(bench.reader.assembly.bytes, 0);
}

#[test]
fn r12_the_first_fragment_fixes_the_geometry() {
    let mut bench = Bench::reliable();
    let whole = sample(5_000);
    let first = one(&whole, 1, 1);
    bench.fragment(1, &first).unwrap();
    let lies = [
        DataFrag { sample_bytes: 4_999, first_fragment: 2, ..first },
        DataFrag { fragment_bytes: 999, first_fragment: 2, ..first },
        DataFrag { first_fragment: 6, ..first },
        DataFrag { first_fragment: 0, ..first },
        DataFrag { first_fragment: u32::MAX, fragments: 2, ..first },
        DataFrag { first_fragment: 2, fragments: 0, ..first },
        DataFrag { first_fragment: 2, fragments: 2, ..first },
        DataFrag { first_fragment: 2, key_only: true, ..first },
        DataFrag { sequence_number: SequenceNumber(2), fragment_bytes: 0, ..first },
        DataFrag { sequence_number: SequenceNumber(2), sample_bytes: 0, ..first },
        DataFrag { sequence_number: SequenceNumber(2), sample_bytes: 60_000_000, fragment_bytes: 1, ..first },
    ];
    for lie in lies {
        assert_eq!(bench.fragment(1, &lie), Err(DropReason::FragmentGeometry), "{lie:?}");
    }
    for fragment in 2..=5 {
        bench.fragment(1, &one(&whole, 1, fragment)).unwrap();
    }
    assert_eq!(bench.take()[0].payload.as_slice(), whole);
}

#[test]
fn a_sample_that_is_cut_otherwise_begins_anew_once_the_old_pieces_stay_out() {
    let mut bench = Bench::reliable();
    let whole = sample(5_000);
    bench.fragment(1, &pieces(&whole, 1, 1, 1, 1_000)).unwrap();
    let recut = |piece| pieces(&whole, 1, piece, 1, 2_000);
    assert_eq!(bench.fragment(1, &recut(1)), Err(DropReason::FragmentGeometry), "r12: not while it moves on");
    bench.pass(Duration::from_secs(1));
    (1..=3).for_each(|piece| bench.fragment(1, &recut(piece)).unwrap());
    assert_eq!(bench.take()[0].payload.as_slice(), whole);
}

#[test]
fn r3_memory_follows_the_octets_received_not_the_size_claimed() {
    let mut bench = Bench::reliable();
    let whole = vec![1; 60_000_000];
    bench.fragment(1, &pieces(&whole, 1, 1, 1, 1_400)).unwrap();
    assert!(bench.reader.assembly.bytes < 100_000, "{} octets", bench.reader.assembly.bytes);
    let far = pieces(&whole, 1, 40_000, 1, 1_400);
    assert_eq!(bench.fragment(1, &far), Err(DropReason::BufferFull));
    let mut tiny = pieces(&whole, 2, 40_000, 1, 1_400);
    tiny.sequence_number = SequenceNumber(2);
    assert_eq!(bench.fragment(1, &tiny), Err(DropReason::BufferFull));
    let large = DataFrag { sample_bytes: 65 << 20, sequence_number: SequenceNumber(3), ..far };
    assert_eq!(bench.fragment(1, &large), Err(DropReason::SampleTooLarge));
}

#[test]
fn r3_what_it_takes_to_remember_tiny_fragments_is_counted() {
    let limits = ReaderLimits { reassembly_bytes_max: 100_000, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    let whole = sample(8);
    for from in 1..=10 {
        bench.matched(from, QosSet::writer());
        for number in 1..=200 {
            let _ = bench.fragment(from, &pieces(&whole, number, 1, 1, 2));
        }
    }
    let incomplete: usize = bench.reader.proxies.iter().flatten().map(|it| it.fragments.len()).sum();
    assert!(bench.reader.assembly.bytes <= 100_000);
    // Of each there are a node of a tree, a bitmap and a buffer.
    assert!((50..400).contains(&incomplete), "{incomplete} samples of 8 octets");
}

#[test]
fn r3_incomplete_samples_of_all_writers_fit_one_budget_and_the_greedy_pay() {
    let limits = ReaderLimits { reassembly_bytes_max: 1_000_000, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    bench.matched(1, QosSet::writer());
    bench.matched(2, QosSet::writer());
    let whole = sample(100_000);
    for number in 1..200 {
        let _ = bench.fragment(1, &one(&whole, number, 1));
        assert!(bench.reader.assembly.bytes <= 1_000_000);
    }
    for fragment in 1..=100 {
        bench.fragment(2, &one(&whole, 1, fragment)).unwrap();
        assert!(bench.reader.assembly.bytes <= 1_000_000);
    }
    assert_eq!(bench.take().len(), 1, "the modest writer got its sample through");
    for fragment in 2..=100 {
        bench.fragment(1, &one(&whole, 1, fragment)).unwrap();
    }
    assert_eq!(bench.take().len(), 1, "and so did the greedy one: its next sample was spared");
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    bench.reader.unmatch_writer(bench.now, writer(2), &mut bench.out);
    assert_eq!(bench.reader.assembly.bytes, 0);
}

#[test]
fn a_full_budget_costs_no_look_at_each_incomplete_sample() {
    let limits = ReaderLimits { reassembly_bytes_max: 1_000_000, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    let whole = sample(8);
    (1..=20).for_each(|from| bench.matched(from, QosSet::writer()));
    let mut flood = |numbers: &mut dyn Iterator<Item = i64>| {
        let before = bench.reader.assembly.looks;
        for number in numbers {
            for from in 1..=20 {
                let _ = bench.fragment(from, &pieces(&whole, number, 1, 1, 2));
            }
        }
        bench.reader.assembly.looks - before
    };
    // The nearer samples displace those further ahead.
    let fragments = 20 * 250;
    assert!(flood(&mut (2..=251).rev()) <= 2 * fragments);
    assert!(flood(&mut (300..=549)) <= 2 * fragments);
    let incomplete: usize = bench.reader.proxies.iter().flatten().map(|it| it.fragments.len()).sum();
    assert!(incomplete > 500, "{incomplete}");
}

#[test]
fn a_sample_that_is_next_gives_way_when_nothing_comes_of_it_any_more() {
    let limits = ReaderLimits { reassembly_bytes_max: 150_000, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    bench.matched(1, QosSet::writer());
    bench.matched(2, QosSet::writer());
    let whole = sample(100_000);
    bench.fragment(1, &one(&whole, 1, 1)).unwrap();
    bench.pass(Duration::from_millis(500));
    assert_eq!(bench.fragment(2, &pieces(&whole, 1, 1, 60, 1_000)), Err(DropReason::BufferFull));
    bench.pass(Duration::from_millis(600));
    bench.fragment(2, &pieces(&whole, 1, 1, 60, 1_000)).unwrap();
    bench.fragment(2, &pieces(&whole, 1, 61, 40, 1_000)).unwrap();
    assert_eq!(bench.take().len(), 1);
}

#[test]
fn two_samples_that_do_not_fit_together_do_not_displace_each_other_for_ever() {
    let limits = ReaderLimits { reassembly_bytes_max: 150_000, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    bench.matched(1, QosSet::writer());
    bench.matched(2, QosSet::writer());
    let whole = sample(100_000);
    // Both writers repeat everything, at the same pace, until the reader has it.
    let mut taken = Vec::new();
    for _ in 0..2 {
        for fragment in 1..=100 {
            let _ = bench.fragment(1, &one(&whole, 1, fragment));
            let _ = bench.fragment(2, &one(&whole, 1, fragment));
            bench.pass(Duration::from_micros(10));
        }
        taken.push(bench.take().len());
    }
    assert_eq!(taken, [1, 1]);
}

#[test]
fn a_skipped_sample_takes_its_fragments_along() {
    let mut bench = Bench::reliable();
    let whole = sample(5_000);
    bench.fragment(1, &one(&whole, 1, 1)).unwrap();
    bench.fragment(1, &one(&whole, 2, 1)).unwrap();
    bench.gap(1, 1, 2, &[]).unwrap();
    bench.heartbeat(1, 3, 3, true).unwrap();
    assert_eq!(bench.reader.assembly.bytes, 0);
    bench.data(1, 3, 1, 3).unwrap();
    assert_eq!(bench.values(), [3]);
}

proptest! {
    #[test]
    fn any_order_with_repeats_gives_back_the_sample(
        bytes in 5_usize..20_000,
        piece in 1_usize..3_000,
        order in prop::collection::vec((any::<prop::sample::Index>(), 1_u16..5), 0..200),
    ) {
        prop_assume!(bytes.div_ceil(piece) > 1);
        let whole = sample(bytes);
        let total = bytes.div_ceil(piece) as u32;
        let mut bench = Bench::reliable();
        for (index, count) in order {
            let first = index.index(total as usize) as u32 + 1;
            let count = u32::from(count).min(total - first + 1) as u16;
            let _ = bench.fragment(1, &pieces(&whole, 1, first, count, piece));
        }
        // Repairs: what NACK_FRAG asks for, until it asks no more.
        for _ in 0..=total {
            bench.pass(Duration::from_millis(5));
            bench.acks();
            bench.heartbeat(1, 1, 1, false).unwrap();
            let unstarted = !bench.acks_kept()[0].missing.is_empty();
            let asked = bench.nack_frags();
            let wanted = if unstarted { (1..=total).collect() } else {
                asked.first().map(|(_, missing)| missing.clone()).unwrap_or_default()
            };
            for fragment in wanted {
                let _ = bench.fragment(1, &pieces(&whole, 1, fragment, 1, piece));
            }
        }
        let taken = bench.take();
        prop_assert_eq!(taken.len(), 1);
        prop_assert_eq!(taken[0].payload.as_slice(), &whole[..]);
        prop_assert_eq!(bench.reader.assembly.bytes, 0);
    }
}
