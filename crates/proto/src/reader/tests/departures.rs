//! Writers with many instances go, and what they needed is given back.

use super::*;
use crate::instance::KeyFunction;
use crate::qos::Ownership;

/// Key function: octets 4 to 8 name the instance.
fn number(payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    let octets = payload.get(4..8).ok_or(Malformed::Truncated)?;
    let mut handle = [0xee; 16];
    handle[..4].copy_from_slice(octets);
    Ok(InstanceHandle(handle).into())
}

fn bench(limits: ReaderLimits) -> Bench {
    let qos = QosSet::reader().reliable().keep_last(1);
    let mut bench = Bench::with(ReaderConfig { limits, key: KeyFunction::new(number), ..config(qos) });
    bench.matched(1, QosSet::writer());
    bench
}

fn write(bench: &mut Bench, from: u8, sequence_number: i64, key: u32) -> Result<(), DropReason> {
    let payload = [&[0, 1, 0, 0], &key.to_be_bytes()[..]].concat();
    bench.data_with(from, sequence_number, &InlineQos::default(), &payload, false)
}

fn slices_of_ten() -> ReaderLimits {
    ReaderLimits { instances_left_per_call: 10, ..ReaderLimits::default() }
}

#[test]
fn a_writer_that_goes_leaves_its_instances_in_pieces() {
    let mut bench = bench(slices_of_ten());
    (1..=25).for_each(|key| write(&mut bench, 1, key.into(), key).unwrap());
    bench.take();
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    assert_eq!(bench.take().len(), 10);
    assert!(bench.reader.next_timeout().is_some_and(|at| at <= bench.now.mono), "there is more to do");
    // Another writer does not get its number, and what it writes meanwhile stays alive.
    bench.matched(2, QosSet::writer());
    write(&mut bench, 2, 1, 25).unwrap();
    bench.take();
    bench.reader.timeout(bench.now, &mut bench.out);
    assert_eq!(bench.take().len(), 10);
    bench.reader.timeout(bench.now, &mut bench.out);
    let rest = bench.take();
    assert_eq!(rest.len(), 4, "all but what the other one writes");
    assert!(rest.iter().all(|sample| sample.info.instance_state == InstanceState::NotAliveNoWriters));
    assert!(bench.reader.next_timeout().is_none_or(|at| at > bench.now.mono));
    // Its number is free now.
    bench.matched(3, QosSet::writer());
    assert_eq!(bench.reader.proxies.len(), 2);
}

#[test]
fn whoever_writes_owns_what_a_writer_that_goes_has_yet_to_leave() {
    let mut qos = QosSet::reader().reliable().keep_last(1);
    qos.ownership = Ownership::Exclusive;
    let mut bench =
        Bench::with(ReaderConfig { limits: slices_of_ten(), key: KeyFunction::new(number), ..config(qos) });
    let strength = |ownership_strength| QosSet {
        ownership: Ownership::Exclusive,
        ownership_strength,
        ..QosSet::writer()
    };
    bench.matched(1, strength(9));
    bench.matched(2, strength(-5));
    (1..=25).for_each(|key| write(&mut bench, 1, key.into(), key).unwrap());
    assert_eq!(write(&mut bench, 2, 1, 25), Err(DropReason::NotOwner));
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    assert_eq!(write(&mut bench, 2, 2, 25), Ok(()));
}

#[test]
fn a_writer_that_lives_again_keeps_what_it_has_not_left() {
    let mut bench = bench(slices_of_ten());
    let mut qos = QosSet::writer();
    qos.liveliness.lease_duration = Duration::from_secs(1);
    bench.matched(2, qos);
    (1..=25).for_each(|key| write(&mut bench, 2, key.into(), key).unwrap());
    bench.take();
    bench.move_to(bench.now.mono.after(Duration::from_secs(1)).unwrap());
    bench.reader.timeout(bench.now, &mut bench.out);
    assert_eq!(bench.reader.liveliness_changed_status().not_alive_count, 1);
    assert_eq!(bench.take().len(), 10);
    assert!(bench.reader.next_timeout().is_some_and(|at| at <= bench.now.mono), "there is more to do");
    write(&mut bench, 2, 26, 25).unwrap();
    bench.reader.timeout(bench.now, &mut bench.out);
    let values = bench.take();
    assert_eq!(values.len(), 1, "what it writes, and nothing that it left");
    assert!(values[0].info.valid_data);
}

#[test]
fn r3_new_instances_of_one_writer_have_a_limit_that_stops_nobody() {
    let mut bench = bench(ReaderLimits { instances_per_writer_max: 3, ..ReaderLimits::default() });
    bench.matched(2, QosSet::writer());
    (1..=3).for_each(|key| write(&mut bench, 1, key.into(), key).unwrap());
    assert_eq!(write(&mut bench, 1, 4, 4), Err(DropReason::ResourceLimit));
    let dispose = InlineQos {
        status_info: StatusInfo { disposed: true, ..StatusInfo::default() },
        ..InlineQos::default()
    };
    let unknown = [0, 1, 0, 0, 0, 0, 0, 5];
    assert_eq!(bench.data_with(1, 5, &dispose, &unknown, true), Err(DropReason::ResourceLimit));
    write(&mut bench, 1, 6, 1).unwrap();
    write(&mut bench, 2, 1, 4).unwrap();
    assert_eq!(bench.take().len(), 4, "the others, and of the first what it may have");
}

#[test]
fn r3_tables_give_memory_back_when_a_flood_is_over() {
    let mut bench = bench(ReaderLimits::default());
    write(&mut bench, 1, 1, 1).unwrap();
    bench.take();
    bench.matched(2, QosSet::writer());
    (1..=40_000).for_each(|key| write(&mut bench, 2, key.into(), key).unwrap());
    bench.take();
    bench.reader.unmatch_writer(bench.now, writer(2), &mut bench.out);
    bench.pass(Duration::from_secs(1));
    bench.take();
    for sequence_number in 2..=200 {
        write(&mut bench, 1, sequence_number, 1).unwrap();
        assert_eq!(bench.take().len(), 1);
    }
    let cache = &bench.reader.cache;
    assert!(cache.instances.capacity() < 8_000, "{} instances", cache.instances.capacity());
    assert!(cache.samples.capacity() < 2_000, "{} samples", cache.samples.capacity());
}

#[test]
fn what_a_flood_leaves_behind_is_told_of_once() {
    let mut bench = bench(ReaderLimits::default());
    let freed = |bench: &mut Bench| {
        let events = std::mem::take(&mut bench.out.events);
        events.iter().filter(|event| **event == Event::MemoryFreed).count()
    };
    (1..=15_000).for_each(|key| write(&mut bench, 1, key.into(), key).unwrap());
    bench.take();
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    bench.pass(Duration::from_secs(1));
    assert_eq!(freed(&mut bench), 0, "the application has to see first what became of them");
    bench.take();
    assert!(bench.reader.next_timeout().is_some_and(|at| at <= bench.now.mono), "there is something to tell");
    bench.reader.timeout(bench.now, &mut bench.out);
    assert_eq!(freed(&mut bench), 1);
    let capacity = bench.reader.cache.instances.capacity().max(bench.reader.cache.samples.capacity());
    assert!(capacity < 4_096, "{capacity}, though nothing is taken any more");
    assert!(bench.reader.next_timeout().is_none_or(|at| at > bench.now.mono));
    // What waited for others.
    for from in [2, 3] {
        bench.matched(from, QosSet::writer());
        (2..=6_001).for_each(|number| write(&mut bench, from, number, 1).unwrap());
    }
    bench.reader.unmatch_writer(bench.now, writer(2), &mut bench.out);
    assert_eq!(freed(&mut bench), 0);
    bench.reader.unmatch_writer(bench.now, writer(3), &mut bench.out);
    assert_eq!(freed(&mut bench), 1);
}

#[test]
fn who_takes_very_much_at_once_does_not_keep_the_memory_for_ever() {
    let mut bench = bench(ReaderLimits::default());
    let mut samples = CachedSamples::new();
    let mut take = |bench: &mut Bench, keys: std::ops::Range<u32>| {
        keys.for_each(|key| write(bench, 1, key.into(), key).unwrap());
        bench.reader.take(bench.now, &Selector::default(), &mut samples);
        let len = samples.len();
        samples.clear();
        (len, samples.capacity())
    };
    assert_eq!(take(&mut bench, 1..8_193), (8_192, 8_192));
    assert_eq!(take(&mut bench, 8_193..20_000), (11_807, 8_192));
}
