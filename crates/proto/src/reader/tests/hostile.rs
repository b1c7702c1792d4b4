//! Peers that say anything at all.

use proptest::prelude::*;

use super::*;
use crate::wire::HeartbeatFrag;
use crate::wire::{GroupDigest, HeartbeatGroup};

#[derive(Clone, Debug)]
enum Step {
    Data {
        from: u8,
        number: i64,
        bytes: Vec<u8>,
        key_only: bool,
        inline: Vec<u8>,
    },
    Fragment {
        from: u8,
        number: i64,
        first: u32,
        fragments: u16,
        fragment_bytes: u16,
        sample_bytes: u32,
        len: usize,
    },
    Heartbeat {
        from: u8,
        first: i64,
        last: i64,
        count: i32,
        flags: u8,
    },
    HeartbeatFrag {
        from: u8,
        number: i64,
        last: u32,
        count: i32,
    },
    Gap {
        from: u8,
        start: i64,
        base: i64,
        bits: u32,
        word: u32,
    },
    Pass(i64),
    Take(usize),
    Rematch {
        from: u8,
        best_effort: bool,
    },
}

/// Small numbers, which meet, and numbers at the edges of everything.
fn numbers() -> impl Strategy<Value = i64> {
    let edges =
        [i64::MIN, -1, 0, i64::MAX, i64::MAX - 1, 1 << 62, (1 << 62) - 1, 1 << 32, i64::from(u32::MAX)];
    prop_oneof![12 => 1_i64..20, 1 => prop::sample::select(edges.to_vec()), 1 => any::<i64>()]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let from = || 1_u8..4;
    let small = |most: u32| prop_oneof![8 => 0..most, 1 => Just(u32::MAX), 1 => any::<u32>()];
    let lengths = || prop_oneof![8 => 0_u16..64, 1 => any::<u16>()];
    let octets = |most| prop::collection::vec(any::<u8>(), 0..most);
    let status = (0_u8..8).prop_map(|flags| vec![0x71, 0, 4, 0, 0, 0, 0, flags, 1, 0, 0, 0]);
    let inline = prop_oneof![3 => Just(Vec::new()), 3 => status, 1 => octets(24)];
    let step = prop_oneof![
        6 => (from(), numbers(), octets(12), any::<bool>(), inline).prop_map(
            |(from, number, bytes, key_only, inline)| Step::Data { from, number, bytes, key_only, inline }),
        6 => (from(), numbers(), small(6), lengths(), lengths(), small(300), 0_usize..400).prop_map(
            |(from, number, first, fragments, fragment_bytes, sample_bytes, len)| Step::Fragment {
                from, number, first, fragments, fragment_bytes, sample_bytes, len }),
        // Fragments that fit together now and then.
        6 => (from(), 1_i64..6, 1_u32..5).prop_map(|(from, number, first)| Step::Fragment {
            from, number, first, fragments: 1, fragment_bytes: 8, sample_bytes: 32, len: 8 }),
        3 => (from(), numbers(), numbers(), any::<i32>(), any::<u8>()).prop_map(
            |(from, first, last, count, flags)| Step::Heartbeat { from, first, last, count, flags }),
        1 => (from(), numbers(), small(6), any::<i32>()).prop_map(
            |(from, number, last, count)| Step::HeartbeatFrag { from, number, last, count }),
        2 => (from(), numbers(), numbers(), 0_u32..33, any::<u32>()).prop_map(
            |(from, start, base, bits, word)| Step::Gap { from, start, base, bits, word }),
        2 => (0_i64..3_000).prop_map(Step::Pass),
        2 => (0_usize..9).prop_map(Step::Take),
        1 => (from(), any::<bool>()).prop_map(|(from, best_effort)| Step::Rematch { from, best_effort }),
    ];
    prop::collection::vec(step, 0..200)
}

fn carry_out(bench: &mut Bench, step: Step) {
    let (reader, entity) = (EntityId::UNKNOWN, writer(1).entity);
    match step {
        Step::Data { from, number, bytes, key_only, inline } => {
            let list = ParameterListView::parse(&inline, true).ok().map(|(list, _)| list);
            let data = Data { key_only, inline_qos: list, ..plain(number, &bytes) };
            let context = bench.context(from);
            let _ = bench.reader.on_data(bench.now, &context, &data, &mut bench.out);
        }
        Step::Fragment { from, number, first, fragments, fragment_bytes, sample_bytes, len } => {
            let payload = vec![from; len];
            let fragment = DataFrag {
                reader,
                writer: entity,
                sequence_number: SequenceNumber(number),
                first_fragment: first,
                fragments,
                fragment_bytes,
                sample_bytes,
                inline_qos: None,
                payload: &payload,
                key_only: false,
            };
            let _ = bench.fragment(from, &fragment);
        }
        Step::Heartbeat { from, first, last, count, flags } => {
            let heartbeat = Heartbeat {
                reader,
                writer: entity,
                first: SequenceNumber(first),
                last: SequenceNumber(last),
                count,
                final_flag: flags & 1 != 0,
                liveliness: flags & 2 != 0,
                group: (flags & 4 != 0).then(|| HeartbeatGroup {
                    current: SequenceNumber(last),
                    first: SequenceNumber(first),
                    last: SequenceNumber(last),
                    writers: (flags & 8 != 0).then_some(GroupDigest([1; 4])),
                }),
            };
            let context = bench.context(from);
            let _ = bench.reader.on_heartbeat(bench.now, &context, &heartbeat, &mut bench.out);
        }
        Step::HeartbeatFrag { from, number, last, count } => {
            let sequence_number = SequenceNumber(number);
            let heartbeat =
                HeartbeatFrag { reader, writer: entity, sequence_number, last_fragment: last, count };
            let context = bench.context(from);
            let _ = bench.reader.on_heartbeat_frag(bench.now, &context, &heartbeat, &mut bench.out);
        }
        Step::Gap { from, start, base, bits, word } => {
            let words = [word];
            let words = words.get(..bits.div_ceil(32) as usize).unwrap();
            let list = SequenceSet::from_wire(SequenceNumber(base), bits, words).unwrap();
            let gap = Gap { reader, writer: entity, start: SequenceNumber(start), list, filtered: 0 };
            let context = bench.context(from);
            let _ = bench.reader.on_gap(bench.now, &context, &gap, &mut bench.out);
        }
        Step::Pass(millis) => bench.pass(Duration::from_millis(millis)),
        Step::Take(samples_max) => drop(bench.take_with(&Selector { samples_max, ..Selector::default() })),
        Step::Rematch { from, best_effort } => {
            bench.reader.unmatch_writer(bench.now, writer(from), &mut bench.out);
            let qos = if best_effort { QosSet::writer().best_effort() } else { QosSet::writer() };
            bench.matched(from, qos);
        }
    }
}

fn check(bench: &Bench, limits: &ReaderLimits) {
    let reader = &bench.reader;
    let held: usize = reader.proxies.iter().flatten().map(|proxy| proxy.fragments.bytes()).sum();
    assert_eq!(held, reader.assembly.bytes);
    assert!(held <= limits.reassembly_bytes_max);
    assert_eq!(reader.proxies.iter().flatten().filter(|proxy| proxy.blocked).count(), reader.blocked);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn r2_no_submessage_makes_the_reader_panic_or_lose_count(
        steps in steps(),
        reliable in any::<bool>(),
        exclusive in any::<bool>(),
        by_source in any::<bool>(),
        timed in any::<bool>(),
        depth in prop::option::of(1..3),
        samples_max in prop::option::of(1..6),
    ) {
        let mut qos = QosSet::reader().keep_all();
        if reliable { qos = qos.reliable(); }
        if let Some(depth) = depth { qos = qos.keep_last(depth); }
        if exclusive { qos.ownership = crate::qos::Ownership::Exclusive; }
        if by_source { qos.destination_order = crate::qos::DestinationOrder::BySourceTimestamp; }
        if timed {
            qos.deadline = Duration::from_millis(700);
            qos.time_based_filter = Duration::from_millis(300);
            qos.reader_data_lifecycle.autopurge_disposed_samples_delay = Duration::from_millis(900);
        }
        if let Some(samples_max) = samples_max { qos.resource_limits.max_samples = samples_max; }
        let limits = ReaderLimits {
            sample_bytes_max: 1_000,
            reassembly_bytes_max: 2_000,
            reorder_samples_max: 8,
            reorder_bytes_max: 1_500,
            instances_max: 5,
            retired_instances_max: 2,
            key_bytes_max: 40,
            ..ReaderLimits::default()
        };
        let mut bench = Bench::with(ReaderConfig { limits: limits.clone(), ..config(qos) });
        for from in 1..4 {
            let mut offered = QosSet { lifespan: Duration::from_secs(2), ownership_strength: from, ..QosSet::writer() };
            offered.liveliness.lease_duration = Duration::from_secs(1);
            bench.matched(from as u8, offered);
        }
        for step in steps {
            carry_out(&mut bench, step);
            check(&bench, &limits);
            bench.out.clear();
        }
        for from in 1..4 {
            bench.reader.unmatch_writer(bench.now, writer(from), &mut bench.out);
        }
        bench.take();
        let cache = &bench.reader.cache;
        prop_assert_eq!((cache.held(), bench.reader.assembly.bytes, bench.reader.blocked), ((0, 0), 0, 0));
        prop_assert!(cache.instances.len() <= 2, "only retired instances stay");
        prop_assert!(!bench.reader.has_data(0xff, 0xff, 0xff));
    }
}

#[test]
fn one_participant_leaves_writer_places_for_others() {
    let mut config = config(QosSet::reader().reliable());
    (config.limits.writers_max, config.limits.writers_of_participant_max) = (8, 2);
    let mut bench = Bench::with(config);
    let greedy = |number: u8| GuidPrefix([0x77; 12]).entity(EntityId::user_writer(number.into(), true));
    let announce = |bench: &mut Bench, guid| {
        let locators = vec![Locator::udp([127, 0, 0, 1].into(), 7411)];
        let qos = QosSet::writer();
        let writer = MatchedWriter {
            guid,
            locators,
            sources: Sources::default(),
            publisher: EntityId::UNKNOWN,
            vendor: [0, 0],
            qos,
            begins: false,
        };
        bench.reader.match_writer(bench.now, &writer, &mut bench.out);
    };
    for number in 0..200 {
        announce(&mut bench, greedy(number));
    }
    assert_eq!(bench.reader.matched_writers().count(), 2);
    assert_eq!(bench.reader.drops().get(DropReason::DiscoveryLimit), 198);
    bench.matched(1, QosSet::writer());
    assert!(bench.reader.is_matched(writer(1)));
    bench.reader.unmatch_writer(bench.now, greedy(0), &mut bench.out);
    announce(&mut bench, greedy(9));
    assert!(bench.reader.is_matched(greedy(9)), "a place that became free is its own");
}

#[test]
fn r8_what_comes_from_elsewhere_in_a_writers_name_does_nothing() {
    let at = |octet| Locator::udp([10, 0, 0, octet].into(), 7411);
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
    let matched = MatchedWriter {
        guid: writer(1),
        locators: vec![at(1)],
        sources: Sources::new([at(1)], false),
        publisher: EntityId::UNKNOWN,
        vendor: bench.vendor,
        qos: QosSet::writer(),
        begins: false,
    };
    bench.reader.match_writer(bench.now, &matched, &mut bench.out);
    let told = |bench: &mut Bench, from: Locator, number: i64| {
        let context = MessageContext { from, ..bench.context(1) };
        let octets = payload(1, 1);
        let (now, writer) = (bench.now, writer(1).entity);
        let data = bench.reader.on_data(now, &context, &plain(number.min(3), &octets), &mut bench.out);
        let heartbeat = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer,
            first: SequenceNumber(number),
            last: SequenceNumber(number + 10),
            count: number as i32,
            final_flag: true,
            liveliness: false,
            group: None,
        };
        let heartbeat = bench.reader.on_heartbeat(now, &context, &heartbeat, &mut bench.out);
        let list = SequenceSet::empty(SequenceNumber(number + 5));
        let gap =
            Gap { reader: EntityId::UNKNOWN, writer, start: SequenceNumber(number + 1), list, filtered: 0 };
        let gap = bench.reader.on_gap(now, &context, &gap, &mut bench.out);
        [data, heartbeat, gap]
    };
    assert_eq!(told(&mut bench, at(1), 1), [Ok(()); 3]);
    let strange = told(&mut bench, at(2), 1_000_000);
    assert_eq!(strange, [Err(DropReason::SpoofSuspected); 3]);
    assert_eq!(bench.reader.drops().get(DropReason::SpoofSuspected), 3);
    // It moved: it is heard there, and there only.
    let moved = MatchedWriter { sources: Sources::new([at(2)], false), ..matched };
    bench.reader.match_writer(bench.now, &moved, &mut bench.out);
    assert_eq!(told(&mut bench, at(1), 7)[1], Err(DropReason::SpoofSuspected));
    assert_eq!(told(&mut bench, at(2), 8)[1], Ok(()));
}
