//! Instances: states, generations, ranks, and what read and take make of them (DCPS 1.4 §2.2.2.5).

use std::any::Any;
use std::sync::Arc;

use super::*;
use crate::cdr::KeyHash;
use crate::payload::{Payload, Region};
use crate::qos::{Liveliness, LivelinessKind, Ownership};

const SECOND: Duration = Duration::from_secs(1);

fn states(sample: &CachedSample) -> (SampleState, ViewState, InstanceState) {
    (sample.info.sample_state, sample.info.view_state, sample.info.instance_state)
}

#[test]
fn read_marks_take_removes_and_the_instance_is_new_only_once() {
    use InstanceState::Alive;
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(1, 2, 1, 2).unwrap();
    let all = Selector::default();
    let first = bench.read_with(&all);
    assert!(first.iter().all(|sample| states(sample) == (SampleState::NotRead, ViewState::New, Alive)));
    bench.data(1, 3, 1, 3).unwrap();
    let unread = Selector { sample_states: SampleState::NotRead as u8, ..all };
    assert!(bench.reader.has_data(SampleState::NotRead as u8, 0xff, 0xff));
    let second = bench.read_with(&unread);
    assert_eq!(values(&second), [3]);
    assert_eq!(states(&second[0]), (SampleState::NotRead, ViewState::NotNew, Alive));
    assert!(!bench.reader.has_data(SampleState::NotRead as u8, 0xff, 0xff));
    assert!(bench.read_with(&unread).is_empty());
    let last = bench.take();
    assert_eq!(values(&last), [1, 2, 3]);
    assert!(last.iter().all(|sample| states(sample) == (SampleState::Read, ViewState::NotNew, Alive)));
    assert!(bench.take().is_empty());
    assert!(!bench.reader.has_data(0xff, 0xff, 0xff));
}

#[test]
fn take_leaves_what_the_masks_exclude() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(1, 2, 1, 2).unwrap();
    bench.read_with(&Selector { samples_max: 1, ..Selector::default() });
    bench.data(1, 3, 1, 3).unwrap();
    let unread =
        Selector { sample_states: SampleState::NotRead as u8, samples_max: 1, ..Selector::default() };
    assert_eq!(values(&bench.take_with(&unread)), [2]);
    assert_eq!(bench.values(), [1, 3]);
}

#[test]
fn samples_come_grouped_by_instance_and_instances_one_after_the_other() {
    let mut bench = Bench::reliable();
    for (number, key) in [3, 1, 2, 3, 1].into_iter().enumerate() {
        bench.data(1, number as i64 + 1, key, number as u8).unwrap();
    }
    let all = bench.read_with(&Selector::default());
    assert_eq!(values(&all), [1, 4, 2, 0, 3]);
    let ranks: Vec<i32> = all.iter().map(|sample| sample.info.sample_rank).collect();
    assert_eq!(ranks, [1, 0, 0, 1, 0]);
    assert_eq!(values(&bench.read_with(&only(InstanceSelector::Exactly(handle(3))))), [0, 3]);
    let mut order = Vec::new();
    let mut previous = InstanceHandle::NIL;
    loop {
        let samples = bench.take_with(&only(InstanceSelector::NextAfter(previous)));
        let Some(first) = samples.first() else { break };
        previous = first.info.instance_handle;
        order.push(values(&samples));
    }
    assert_eq!(order, [vec![1, 4], vec![2], vec![0, 3]]);
    let limited = Selector { samples_max: 0, ..Selector::default() };
    assert!(bench.take_with(&limited).is_empty());
}

#[test]
fn generations_count_returns_to_life_and_ranks_compare_them() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.dispose(1, 2, 1).unwrap();
    bench.data(1, 3, 1, 3).unwrap();
    bench.unregister(1, 4, 1).unwrap();
    bench.data(1, 5, 1, 5).unwrap();
    bench.data(1, 6, 1, 6).unwrap();
    let samples = bench.read_with(&Selector { samples_max: 3, ..Selector::default() });
    let facts = |sample: &CachedSample| {
        let info = sample.info;
        (
            info.disposed_generation_count,
            info.no_writers_generation_count,
            info.sample_rank,
            info.generation_rank,
            info.absolute_generation_rank,
        )
    };
    // The marker of the dispose gave way to that of the unregister: 1, 3, marker, 5, 6.
    let found: Vec<_> = samples.iter().map(facts).collect();
    assert_eq!(found, [(0, 0, 2, 1, 2), (1, 0, 1, 0, 1), (1, 0, 0, 0, 1)]);
    assert!(!samples[2].info.valid_data);
    assert_eq!(samples[0].info.view_state, ViewState::New);
    assert_eq!(states(&samples[0]).2, InstanceState::Alive, "the state is that of now");
}

#[test]
fn an_instance_coming_back_is_new_again() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.take();
    bench.data(1, 2, 1, 2).unwrap();
    assert_eq!(bench.take()[0].info.view_state, ViewState::NotNew);
    bench.dispose(1, 3, 1).unwrap();
    let marker = bench.take().pop().unwrap();
    assert_eq!(states(&marker), (SampleState::NotRead, ViewState::NotNew, InstanceState::NotAliveDisposed));
    assert!(!marker.info.valid_data);
    bench.data(1, 4, 1, 4).unwrap();
    let reborn = bench.take().pop().unwrap();
    assert_eq!(reborn.info.view_state, ViewState::New);
    assert_eq!(reborn.info.disposed_generation_count, 1);
}

#[test]
fn fact_14_a_dispose_is_understood_with_key_with_key_hash_and_with_both() {
    let status_info = StatusInfo { disposed: true, ..StatusInfo::default() };
    let hash = |key: u8| Some(KeyHash(handle(key).0));
    let cases: [(Option<KeyHash>, &[u8]); 3] =
        [(None, &[0, 1, 0, 0, 1]), (hash(1), &[]), (hash(9), &[0, 1, 0, 0, 1])];
    for (key_hash, key) in cases {
        let mut bench = Bench::reliable();
        bench.data(1, 1, 1, 1).unwrap();
        let inline = InlineQos { status_info, key_hash, ..InlineQos::default() };
        bench.data_with(1, 2, &inline, key, !key.is_empty()).unwrap();
        let samples = bench.take();
        assert_eq!(samples.len(), 2);
        assert_eq!(state_of(&samples), InstanceState::NotAliveDisposed);
        assert!(!samples[1].payload.is_empty(), "the marker tells the key");
    }
    let mut bench = Bench::reliable();
    let nothing = InlineQos { status_info, ..InlineQos::default() };
    assert_eq!(bench.data_with(1, 1, &nothing, &[], false), Err(DropReason::Malformed));
}

#[test]
fn fact_15_a_key_hash_sent_along_with_data_is_not_needed() {
    let mut bench = Bench::reliable();
    let inline = InlineQos { key_hash: Some(KeyHash([0x77; 16])), ..InlineQos::default() };
    bench.data_with(1, 1, &inline, &payload(1, 1), false).unwrap();
    assert_eq!(bench.take()[0].info.instance_handle, handle(1));
}

#[test]
fn fact_40_a_writer_that_leaves_takes_only_its_own_instances_along() {
    let mut bench = Bench::reliable();
    bench.matched(2, QosSet::writer());
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(1, 2, 2, 2).unwrap();
    bench.data(2, 1, 2, 3).unwrap();
    bench.take();
    bench.out.clear();
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    assert!(bench.out.events.iter().any(|event| matches!(event, Event::DataAvailable { .. })));
    let samples = bench.take();
    assert_eq!(samples.len(), 1, "writer 2 still writes the instance 2");
    assert_eq!(samples[0].info.instance_handle, handle(1));
    assert_eq!(state_of(&samples), InstanceState::NotAliveNoWriters);
    assert_eq!(samples[0].payload.as_slice(), [0, 1, 0, 0, 1], "the key can be told");
    assert_eq!(bench.reader.instance_key(handle(1)).unwrap().as_slice(), [0, 1, 0, 0, 1]);
    bench.unregister(2, 2, 2).unwrap();
    assert_eq!(state_of(&bench.take()), InstanceState::NotAliveNoWriters);
}

#[test]
fn fact_41_disposed_and_unregistered_in_one_marker_is_disposed() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.status(1, 2, 1, true, true).unwrap();
    assert_eq!(state_of(&bench.take()), InstanceState::NotAliveDisposed);
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    assert!(bench.take().is_empty(), "a disposed instance stays disposed");
}

#[test]
fn fact_38_a_change_without_data_and_status_is_nothing_to_read() {
    let mut bench = Bench::reliable();
    bench.data_with(1, 1, &InlineQos::default(), &[], false).unwrap();
    bench.data_with(1, 2, &InlineQos::default(), &[0, 1, 0, 0, 1], true).unwrap();
    let filtered = StatusInfo { filtered: true, ..StatusInfo::default() };
    let inline = InlineQos { status_info: filtered, ..InlineQos::default() };
    bench.data_with(1, 3, &inline, &payload(1, 3), false).unwrap();
    bench.data(1, 4, 1, 4).unwrap();
    assert_eq!(bench.values(), [4], "and it holds up nothing");
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
}

#[test]
fn unregistering_what_nobody_wrote_is_nothing_and_disposing_it_is_told() {
    let mut bench = Bench::reliable();
    bench.unregister(1, 1, 5).unwrap();
    assert!(bench.take().is_empty());
    assert!(!bench.reader.has_instance(handle(5)));
    bench.dispose(1, 2, 5).unwrap();
    assert_eq!(state_of(&bench.take()), InstanceState::NotAliveDisposed);
    bench.dispose(1, 3, 5).unwrap();
    assert!(bench.take().is_empty(), "it is disposed already");
}

#[test]
fn instances_that_are_gone_and_seen_are_forgotten_after_a_while() {
    let limits = ReaderLimits { retired_instances_max: 4, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    bench.matched(1, QosSet::writer());
    for key in 0..100_u8 {
        let number = i64::from(key) * 2;
        bench.data(1, number + 1, key, 1).unwrap();
        bench.dispose(1, number + 2, key).unwrap();
        assert_eq!(bench.take().len(), 2);
    }
    assert_eq!(bench.reader.cache.instances.len(), 4);
    assert!(bench.reader.has_instance(handle(99)) && !bench.reader.has_instance(handle(0)));
    assert_eq!(bench.reader.cache.publications.get(0).unwrap().instances.len(), 4);
}

fn purging(disposed: Duration, no_writers: Duration) -> QosSet {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.reader_data_lifecycle.autopurge_disposed_samples_delay = disposed;
    qos.reader_data_lifecycle.autopurge_nowriter_samples_delay = no_writers;
    qos
}

fn known<const N: usize>(bench: &Bench, keys: [u8; N]) -> [bool; N] {
    keys.map(|key| bench.reader.has_instance(handle(key)))
}

#[test]
fn autopurge_forgets_after_its_delay() {
    let mut bench = Bench::new(purging(Duration::from_secs(5), Duration::from_secs(10)));
    bench.matched(1, QosSet::writer());
    for key in 1..=3 {
        bench.data(1, i64::from(key), key, key).unwrap();
    }
    bench.heartbeat(1, 1, 3, true).unwrap();
    bench.status(1, 4, 1, true, true).unwrap();
    bench.unregister(1, 5, 2).unwrap();
    bench.dispose(1, 6, 3).unwrap();
    bench.data(1, 7, 3, 33).unwrap();
    bench.pass(Duration::from_secs(4));
    assert_eq!(known(&bench, [1, 2, 3]), [true, true, true]);
    bench.pass(Duration::from_secs(2));
    assert_eq!(known(&bench, [1, 2, 3]), [false, true, true], "3 came back to life");
    bench.pass(Duration::from_secs(5));
    assert_eq!(known(&bench, [1, 2, 3]), [false, false, true]);
    assert_eq!(bench.values(), [3, 33]);
    assert_eq!(bench.reader.cache.held(), (0, 0), "nothing is left of what was purged");
}

#[test]
fn without_autopurge_what_was_not_taken_stays() {
    let mut bench = Bench::new(purging(Duration::INFINITE, Duration::INFINITE));
    bench.matched(1, QosSet::writer());
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(1, 2, 2, 2).unwrap();
    bench.status(1, 3, 1, true, true).unwrap();
    bench.unregister(1, 4, 2).unwrap();
    bench.pass(Duration::from_secs(1_000_000));
    assert_eq!(bench.values(), [1, 2]);
}

#[test]
fn a_disposed_instance_that_a_writer_keeps_loses_its_samples_and_remembers_its_generations() {
    let mut bench = Bench::new(purging(SECOND, Duration::INFINITE));
    bench.matched(1, QosSet::writer());
    bench.data(1, 1, 1, 1).unwrap();
    bench.dispose(1, 2, 1).unwrap();
    bench.pass(Duration::from_secs(2));
    assert!(bench.take().is_empty());
    assert!(!bench.reader.has_data(0xff, 0xff, 0xff));
    bench.data(1, 3, 1, 3).unwrap();
    let sample = bench.take().pop().unwrap();
    assert_eq!(sample.info.disposed_generation_count, 1);
    assert_eq!(states(&sample), (SampleState::NotRead, ViewState::New, InstanceState::Alive));
}

#[test]
fn an_instance_without_writers_is_forgotten_also_when_its_writer_died_or_left() {
    let mut bench = Bench::new(purging(Duration::INFINITE, SECOND));
    let liveliness = Liveliness { kind: LivelinessKind::Automatic, lease_duration: SECOND };
    bench.matched(1, QosSet { liveliness, ..QosSet::writer() });
    bench.matched(2, QosSet::writer());
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(2, 1, 2, 2).unwrap();
    bench.reader.unmatch_writer(bench.now, writer(2), &mut bench.out);
    bench.pass(Duration::from_millis(1_500));
    assert_eq!(known(&bench, [1, 2]), [true, false], "1 is without writers for half a second");
    bench.pass(SECOND);
    assert_eq!(known(&bench, [1, 2]), [false, false]);
}

#[test]
fn an_instance_that_only_refused_data_named_again_is_forgotten_in_its_time() {
    for (ownership, leaves) in [(Ownership::Shared, false), (Ownership::Exclusive, true)] {
        let mut qos = QosSet { ownership, ..purging(Duration::INFINITE, SECOND).reliable().keep_all() };
        qos.resource_limits.max_samples = 1;
        let mut bench = Bench::new(qos);
        bench.matched(1, QosSet { ownership, ..QosSet::writer() });
        bench.data(1, 1, 1, 1).unwrap();
        assert_eq!(bench.values(), [1]);
        bench.unregister(1, 2, 1).unwrap();
        bench.take();
        bench.data(1, 3, 2, 2).unwrap();
        let _ = bench.data(1, 4, 1, 3);
        assert_eq!(bench.reported(StatusKind::SampleRejected), 1, "2 takes all the room");
        bench.pass(Duration::from_millis(1_500));
        if leaves {
            // Who was refused may own it, as long as it is there.
            bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
            bench.pass(Duration::from_millis(1_500));
        }
        assert_eq!(known(&bench, [1, 2]), [false, !leaves]);
    }
}

#[test]
fn a_delay_of_zero_purges_at_the_next_moment_and_a_new_delay_counts_from_the_end() {
    let mut bench = Bench::new(purging(Duration::INFINITE, Duration::INFINITE));
    bench.matched(1, QosSet::writer());
    for key in 1..=2 {
        bench.data(1, i64::from(key), key, key).unwrap();
    }
    bench.unregister(1, 3, 1).unwrap();
    bench.pass(Duration::from_secs(4));
    bench.unregister(1, 4, 2).unwrap();
    bench.reader.set_qos(bench.now, purging(Duration::INFINITE, Duration::from_secs(3)));
    bench.pass(Duration::ZERO);
    assert_eq!(known(&bench, [1, 2]), [false, true], "1 is without writers for four seconds");
    bench.reader.set_qos(bench.now, purging(Duration::INFINITE, Duration::INFINITE));
    bench.pass(Duration::from_secs(100));
    assert_eq!(known(&bench, [1, 2]), [false, true]);
    bench.reader.set_qos(bench.now, purging(Duration::INFINITE, Duration::ZERO));
    bench.pass(Duration::ZERO);
    assert_eq!(known(&bench, [1, 2]), [false, false]);
}

#[test]
fn a_keyless_topic_has_one_instance() {
    let qos = QosSet::reader().reliable().keep_all();
    let guid = GuidPrefix([0xaa; 12]).entity(EntityId::user_reader(1, false));
    let mut bench = Bench::with(ReaderConfig { keyed: false, guid, ..config(qos) });
    bench.matched(1, QosSet::writer());
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(1, 2, 2, 2).unwrap();
    let samples = bench.take_with(&only(InstanceSelector::NextAfter(InstanceHandle::NIL)));
    assert_eq!(values(&samples), [1, 2]);
    assert_eq!(samples[0].info.instance_handle, InstanceHandle::NIL);
}

/// Memory that a writer lends.
#[derive(Debug)]
struct Chunk(Vec<u8>);

impl Region for Chunk {
    fn octets(&self) -> &[u8] {
        &self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn the_key_of_an_instance_keeps_no_memory_of_a_sample() {
    let mut bench = Bench::reliable();
    let mut chunks = Vec::new();
    let end = InlineQos {
        status_info: StatusInfo { disposed: true, ..StatusInfo::default() },
        ..InlineQos::default()
    };
    let mut end_list = Vec::new();
    encode_inline_qos(&end, &mut end_list);
    let end_qos = ParameterListView { bytes: &end_list, little_endian: true };
    // The second instance begins with its end, whose key has much behind it.
    for (number, key, inline_qos) in [(1, 1, None), (2, 2, Some(end_qos)), (3, 1, Some(end_qos))] {
        let chunk: Arc<dyn Region> = Arc::new(Chunk([payload(key, 7), vec![0; 10_000]].concat()));
        let lent = Payload::from_region(Arc::clone(&chunk), 0..usize::MAX);
        let data = Data {
            inline_qos,
            key_only: inline_qos.is_some(),
            attachment: Some(&lent),
            ..plain(number, chunk.octets())
        };
        bench.reader.on_data(bench.now, &bench.context(1), &data, &mut bench.out).unwrap();
        drop(lent);
        chunks.push(chunk);
    }
    let lent = |chunks: &[Arc<dyn Region>]| chunks.iter().map(Arc::strong_count).collect::<Vec<_>>();
    assert_eq!(lent(&chunks), [2, 1, 1], "the sample is there to be taken");
    let samples = bench.take();
    let keys: Vec<_> =
        samples.iter().filter(|it| !it.info.valid_data).map(|it| it.payload.as_slice()).collect();
    assert_eq!(keys, [[0, 1, 0, 0, 1], [0, 1, 0, 0, 2]], "markers tell the key");
    drop(samples);
    assert_eq!(lent(&chunks), [1, 1, 1]);
    for key in [1, 2] {
        assert_eq!(bench.reader.instance_key(handle(key)).unwrap().as_slice(), [0, 1, 0, 0, key]);
    }
}
