//! Samples whose key does not decode, and what is told of them.

use super::*;

/// Too short for its key.
const SHORT: [u8; 4] = [0, 9, 0, 0];

fn short(bench: &mut Bench, from: u8, number: i64) {
    let sent = bench.data_with(from, number, &InlineQos::default(), &SHORT, false);
    assert_eq!(sent, Err(DropReason::Undecodable));
}

/// The writers that the application was told of.
fn told(bench: &mut Bench) -> Vec<Guid> {
    let writer_of = |event| match event {
        Event::Undecodable { writer, .. } => Some(writer),
        _ => None,
    };
    bench.out.events.drain(..).filter_map(writer_of).collect()
}

#[test]
fn each_is_counted_and_its_writer_told_once() {
    for qos in [QosSet::reader().reliable().keep_all(), QosSet::reader().keep_all()] {
        let mut bench = Bench::new(qos);
        for from in [1, 2] {
            bench.matched(from, QosSet::writer());
        }
        short(&mut bench, 1, 1);
        bench.data(1, 2, 1, 2).unwrap();
        short(&mut bench, 1, 3);
        short(&mut bench, 2, 1);
        assert_eq!(told(&mut bench), [writer(1), writer(2)]);
        assert_eq!(bench.values(), [2]);
        assert_eq!(bench.reader.undecodable_samples(), 3);
        assert_eq!(bench.reader.sample_lost_status().total_count, 3);
        assert_eq!(bench.reader.drops().get(DropReason::Undecodable), 3);
        let first = bench.reader.undecodable().next().unwrap();
        let expected = Undecodable {
            writer: writer(1),
            count: 2,
            representation_id: Some(0x0009),
            reason: Malformed::Truncated,
        };
        assert_eq!(first, expected);
    }
}

#[test]
fn one_that_waited_for_its_turn_is_told_as_any_other() {
    let mut bench = Bench::reliable();
    let early = bench.data_with(1, 2, &InlineQos::default(), &SHORT, false);
    assert_eq!((early, bench.reader.undecodable_samples()), (Ok(()), 0));
    bench.data(1, 1, 1, 1).unwrap();
    assert_eq!(told(&mut bench), [writer(1)]);
    assert_eq!(bench.reader.sample_lost_status().total_count, 1);
    assert_eq!(bench.values(), [1]);
}

#[test]
fn what_two_threads_read_at_the_same_time_is_counted_once() {
    for second in [Access::Read, Access::Take] {
        let mut bench = Bench::reliable();
        for number in 1..=3 {
            bench.data(1, number, 1, number as u8).unwrap();
        }
        let selector = Selector::default();
        let threads = [Access::Read, second].map(|access| {
            let mut samples = CachedSamples::new();
            let fetch = Fetch { access, selector: &selector, query: None };
            bench.reader.fetch(bench.now, &fetch, &mut samples);
            (fetch, samples)
        });
        for (fetch, given) in &threads {
            let kept = [0, 2].map(|at: usize| (given[at].id, given[at].info.instance_handle)).into();
            let undecodable = [(1, Malformed::InvalidEnum)];
            let discarded = Discarded { given, undecodable: &undecodable, kept: &kept };
            let none = Selector { samples_max: 0, ..selector };
            let fetch = Fetch { selector: &none, ..*fetch };
            let mut more = CachedSamples::new();
            bench.reader.replace_undecodable(bench.now, &fetch, &discarded, &mut more);
            assert!(more.is_empty());
        }
        assert_eq!(bench.reader.undecodable_samples(), 1);
        assert_eq!(bench.reader.sample_lost_status().total_count, 1);
        assert_eq!(told(&mut bench), [], "reading tells nobody");
        bench.pass(Duration::from_millis(1));
        let status = Event::Status { endpoint: bench.reader.guid(), kind: StatusKind::SampleLost };
        assert!(bench.out.events.contains(&status));
        assert_eq!(told(&mut bench), [writer(1)]);
        let left: &[u8] = if second == Access::Take { &[] } else { &[1, 3] };
        assert_eq!(bench.values(), left);
    }
}

#[test]
fn r15_so_many_writers_are_explained_and_those_that_left_make_room() {
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all());
    for from in 1..=70 {
        bench.matched(from, QosSet::writer());
        short(&mut bench, from, 1);
    }
    assert_eq!(told(&mut bench).len(), 64);
    assert_eq!(bench.reader.undecodable().count(), 64);
    bench.reader.unmatch_writer(bench.now, writer(5), &mut bench.out);
    assert!(bench.reader.undecodable().any(|known| known.writer == writer(5)), "what was said stays");
    bench.matched(71, QosSet::writer());
    short(&mut bench, 71, 1);
    assert_eq!(told(&mut bench), [writer(71)]);
    assert!(bench.reader.undecodable().all(|known| known.writer != writer(5)));
    assert_eq!(bench.reader.undecodable_samples(), 71, "all are counted");
}
