//! A reader at a limit: what is rejected, what waits, and that nobody is held up for good (DCPS 1.4
//! §2.2.3.18, §2.2.3.19).

use super::*;
use crate::payload::Payload;
use crate::qos::{AccessScope, LENGTH_UNLIMITED, ResourceLimits};
use crate::status::RejectReason;

const KEYS: [u8; 4] = [1, 2, 3, 4];

fn limited(qos: QosSet, change: impl FnOnce(&mut ResourceLimits)) -> QosSet {
    let mut qos = qos;
    change(&mut qos.resource_limits);
    qos
}

fn three_instances(qos: QosSet) -> QosSet {
    limited(qos, |limits| limits.max_instances = 3)
}

fn heard(qos: QosSet) -> Bench {
    let mut bench = Bench::new(qos);
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.out.clear();
    bench
}

/// Twenty rounds of all instances, after each of which the application does what `look` says: how many
/// samples it saw of each.
fn twenty_rounds(bench: &mut Bench, mut look: impl FnMut(&mut Bench) -> Vec<CachedSample>) -> [usize; 4] {
    let mut seen = [0; 4];
    let mut number = 0;
    for round in 0..20 {
        for key in KEYS {
            number += 1;
            let _ = bench.data(1, number, key, round);
        }
        for sample in look(bench).iter().filter(|sample| sample.info.valid_data) {
            seen[usize::from(sample.info.instance_handle.0[0]) - 1] += 1;
        }
        bench.pass(Duration::ZERO);
    }
    seen
}

fn is_in_step(bench: &mut Bench, last: i64) {
    bench.out.clear();
    bench.heartbeat(1, 1, last, false).unwrap();
    assert_eq!(bench.acks(), [Ack { base: last + 1, missing: vec![], final_flag: true }]);
}

#[test]
fn a_surplus_instance_is_rejected_and_the_others_go_on() {
    for qos in [QosSet::reader().reliable().keep_last(1), QosSet::reader().reliable().keep_all()] {
        let mut bench = heard(three_instances(qos));
        assert_eq!(twenty_rounds(&mut bench, Bench::take), [20, 20, 20, 0]);
        let rejected = bench.reader.sample_rejected_status();
        assert_eq!((rejected.count.total_count, rejected.last_reason), (20, RejectReason::InstancesLimit));
        assert_eq!(rejected.last_instance, handle(4));
        assert_eq!(bench.reader.drops().get(DropReason::ResourceLimit), 20);
        assert_eq!(bench.reader.sample_lost_status().total_count, 0, "rejected is not lost");
        is_in_step(&mut bench, 80);
        assert_eq!(bench.reader.blocked, 0);
    }
}

#[test]
fn disposing_a_surplus_instance_stops_nobody_and_disposing_another_one_lets_it_in() {
    let mut bench = heard(three_instances(QosSet::reader().reliable().keep_last(1)));
    for key in KEYS {
        let _ = bench.data(1, key.into(), key, key);
    }
    assert_eq!(bench.dispose(1, 5, 4), Err(DropReason::ResourceLimit));
    assert_eq!(bench.values(), [1, 2, 3]);
    bench.dispose(1, 6, 2).unwrap();
    bench.take();
    bench.data(1, 7, 4, 40).unwrap();
    assert_eq!(bench.values(), [40]);
    is_in_step(&mut bench, 7);
}

#[test]
fn a_surplus_instance_is_rejected_where_the_samples_are_at_their_limit_too() {
    let qos = limited(three_instances(QosSet::reader().reliable().keep_last(1)), |it| it.max_samples = 3);
    let mut bench = heard(qos);
    assert_eq!(twenty_rounds(&mut bench, Bench::take), [20, 20, 20, 0]);
    is_in_step(&mut bench, 80);
}

#[test]
fn a_rejected_sample_in_fragments_is_acknowledged_like_any_other() {
    let mut bench = heard(limited(QosSet::reader().reliable().keep_all(), |it| it.max_instances = 1));
    bench.data(1, 1, 1, 1).unwrap();
    let octets = payload(2, 9);
    let fragment = |first: u32, octets| DataFrag {
        reader: EntityId::UNKNOWN,
        writer: writer(1).entity,
        sequence_number: SequenceNumber(2),
        first_fragment: first,
        fragments: 1,
        fragment_bytes: 3,
        sample_bytes: 6,
        inline_qos: None,
        payload: octets,
        key_only: false,
    };
    bench.fragment(1, &fragment(1, &octets[..3])).unwrap();
    assert_eq!(bench.fragment(1, &fragment(2, &octets[3..])), Err(DropReason::ResourceLimit));
    bench.data(1, 3, 1, 3).unwrap();
    assert_eq!(bench.values(), [1, 3]);
    is_in_step(&mut bench, 3);
}

#[test]
fn what_waited_for_its_turn_is_rejected_in_its_turn() {
    let mut bench = heard(limited(QosSet::reader().reliable().keep_all(), |it| it.max_instances = 1));
    bench.data(1, 3, 1, 3).unwrap();
    bench.data(1, 2, 2, 2).unwrap();
    bench.data(1, 1, 1, 1).unwrap();
    assert_eq!(bench.reported(StatusKind::SampleRejected), 1);
    assert_eq!(bench.reader.sample_rejected_status().count.total_count, 1);
    assert_eq!(bench.values(), [1, 3]);
    is_in_step(&mut bench, 3);
}

#[test]
fn keep_last_never_keeps_more_than_its_limits_and_always_the_newest() {
    let limits: [fn(&mut ResourceLimits); 2] =
        [|limits| limits.max_samples = 3, |limits| limits.max_samples_per_instance = 3];
    for limit in limits {
        for reliable in [true, false] {
            let qos = limited(QosSet::reader().keep_last(5), limit);
            let mut bench = heard(if reliable { qos.reliable() } else { qos });
            for number in 1..=20 {
                bench.data(1, number, 1, number as u8).unwrap();
            }
            assert_eq!(values(&bench.read_with(&Selector::default())), [18, 19, 20]);
            assert_eq!(bench.reader.sample_rejected_status().count.total_count, 0);
        }
    }
}

#[test]
fn at_max_samples_an_instance_of_keep_last_replaces_its_own_oldest() {
    let mut bench = heard(limited(QosSet::reader().reliable().keep_last(2), |it| it.max_samples = 3));
    bench.data(1, 1, 1, 10).unwrap();
    bench.data(1, 2, 1, 11).unwrap();
    bench.data(1, 3, 2, 20).unwrap();
    bench.data(1, 4, 2, 21).unwrap();
    assert_eq!(bench.values(), [10, 11, 21]);
    is_in_step(&mut bench, 4);
}

#[test]
fn reading_is_enough_to_make_room_under_keep_last() {
    let mut bench = heard(limited(QosSet::reader().reliable().keep_last(1), |it| it.max_samples = 3));
    let seen = twenty_rounds(&mut bench, |bench| {
        let unread = Selector { sample_states: SampleState::NotRead as u8, ..Selector::default() };
        let mut samples = bench.read_with(&unread);
        samples.extend(bench.read_with(&unread));
        samples
    });
    assert_eq!(seen, [20; 4]);
    is_in_step(&mut bench, 80);
    assert_eq!(bench.reader.cache.samples_with_data(), 3);
}

#[test]
fn what_was_not_read_waits_for_keep_last_and_what_was_not_taken_for_keep_all() {
    let mut bench = heard(limited(QosSet::reader().reliable().keep_last(1), |it| it.max_samples = 3));
    for key in KEYS {
        bench.data(1, key.into(), key, key).unwrap();
    }
    assert_eq!(bench.reader.blocked, 1, "none of three last values may go unseen");
    assert_eq!(bench.values(), [1, 2, 3]);
    assert_eq!(bench.values(), [4]);
    let qos = limited(QosSet::reader().reliable().keep_all(), |it| it.max_samples_per_instance = 2);
    let mut bench = heard(qos);
    for number in 1..=4 {
        bench.data(1, number, 1, number as u8).unwrap();
    }
    assert_eq!(values(&bench.read_with(&Selector::default())), [1, 2]);
    assert_eq!(values(&bench.read_with(&Selector::default())), [1, 2], "read is not taken");
    assert_eq!((bench.values(), bench.values()), (vec![1, 2], vec![3, 4]));
}

#[test]
fn what_expires_makes_room_for_what_waits() {
    let mut bench = Bench::new(limited(QosSet::reader().reliable().keep_all(), |it| it.max_samples = 1));
    bench.matched(1, QosSet { lifespan: Duration::from_millis(50), ..QosSet::writer() });
    bench.matched(2, QosSet::writer());
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(2, 1, 2, 2).unwrap();
    assert_eq!(bench.reader.blocked, 1);
    bench.reported(StatusKind::DataAvailable);
    bench.out.clear();
    bench.pass(Duration::from_millis(60));
    assert!(bench.out.events.iter().any(|event| matches!(event, Event::DataAvailable { .. })));
    assert_eq!(bench.values(), [2]);
}

#[test]
fn a_coherent_set_with_a_surplus_instance_is_rejected_whole_and_stops_nobody() {
    let mut qos = limited(QosSet::reader().reliable().keep_all(), |it| it.max_instances = 2);
    (qos.presentation.access_scope, qos.presentation.coherent_access) = (AccessScope::Topic, true);
    let mut bench = heard(qos);
    bench.data(1, 1, 1, 1).unwrap();
    for (number, key) in [(2, 2), (3, 3)] {
        let inline = InlineQos { coherent_set: Some(SequenceNumber(2)), ..InlineQos::default() };
        bench.data_with(1, number, &inline, &payload(key, key), false).unwrap();
    }
    bench.data(1, 4, 1, 4).unwrap();
    assert_eq!(bench.values(), [1, 4]);
    let rejected = bench.reader.sample_rejected_status();
    assert_eq!((rejected.count.total_count, rejected.last_reason), (2, RejectReason::InstancesLimit));
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
    is_in_step(&mut bench, 4);
}

#[test]
fn without_a_limit_a_peer_cannot_make_instances_without_end_and_with_one_that_holds() {
    let instances = |max_instances| {
        let qos = limited(QosSet::reader().reliable().keep_last(1), |it| it.max_instances = max_instances);
        let limits = ReaderLimits { instances_max: 6, instances_unlimited_max: 3, ..ReaderLimits::default() };
        let mut bench = Bench::with(ReaderConfig { limits, ..config(qos) });
        bench.matched(1, QosSet::writer());
        (1..=9).for_each(|key| _ = bench.data(1, key.into(), key, 0));
        let rejected = bench.reader.sample_rejected_status();
        assert_eq!(rejected.last_reason, RejectReason::InstancesLimit);
        assert_eq!(bench.take().len() + rejected.count.total_count as usize, 9);
        9 - rejected.count.total_count
    };
    assert_eq!(instances(LENGTH_UNLIMITED), 3);
    assert_eq!(instances(5), 5);
    assert_eq!(instances(8), 6);
    // Designs with 70,000 instances, and with 100,000, work as they are.
    assert_eq!(ReaderLimits::default().instances_unlimited_max, 131_072);
}

#[test]
fn attached_payloads_are_kept_where_they_are_and_count_as_any_others() {
    let attachment = Payload::from_vec([&payload(1, 7)[..], &[0; 100_000]].concat());
    let octets = attachment.as_slice();
    let limits = ReaderLimits { cache_bytes_max: 250_000, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().reliable().keep_all()) });
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    // The first waits for the second, out of order.
    for number in [2, 1, 3, 4] {
        let data = Data { attachment: Some(&attachment), ..plain(number, octets) };
        bench.reader.on_data(bench.now, &bench.context(1), &data, &mut bench.out).unwrap();
    }
    assert_eq!(bench.reader.sample_rejected_status().last_reason, RejectReason::SamplesLimit);
    let taken = bench.take();
    assert_eq!(taken.len(), 2, "as many as the limit of octets takes");
    assert!(taken.iter().all(|sample| sample.payload.as_slice().as_ptr() == octets.as_ptr()));
    // What is short is copied, and its place is free at once.
    let short = Payload::from_vec([&payload(1, 9)[..], &[0; 200]].concat());
    let data = Data { attachment: Some(&short), ..plain(5, short.as_slice()) };
    bench.reader.on_data(bench.now, &bench.context(1), &data, &mut bench.out).unwrap();
    let copied = bench.take();
    let copied = copied.last().unwrap().payload.as_slice();
    assert_eq!(copied, short.as_slice());
    assert_ne!(copied.as_ptr(), short.as_slice().as_ptr());
}
