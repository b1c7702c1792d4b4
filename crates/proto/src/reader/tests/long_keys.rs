//! Two keys with one key hash (RTPS 2.5 §8.7.8): two instances.

use super::*;
use crate::long_keys::tests::{colliding, key};
use crate::qos::Ownership;

/// Key function: the key is 128 octets, in data and alone.
fn octets_128(payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    payload.get(4..132).map(key).ok_or(Malformed::Truncated)
}

/// What a writer sends of one of the colliding keys; an `end` has no value.
fn of(which: usize, value: Option<u8>) -> Vec<u8> {
    let mut octets = vec![0, 1, 0, 0];
    octets.extend_from_slice(&colliding()[which]);
    octets.extend(value);
    octets
}

fn bench(qos: QosSet) -> Bench {
    let mut bench =
        Bench::with(ReaderConfig { key: key_of_octets(octets_128, 128), ..config(qos.reliable()) });
    bench.matched(1, QosSet::writer());
    bench.matched(2, QosSet::writer());
    bench
}

impl Bench {
    fn wrote(&mut self, from: u8, number: i64, which: usize, value: u8) {
        self.data_with(from, number, &InlineQos::default(), &of(which, Some(value)), false).unwrap();
    }

    fn disposed(&mut self, from: u8, number: i64, which: usize) {
        let status_info = StatusInfo { disposed: true, ..StatusInfo::default() };
        let inline = InlineQos { status_info, ..InlineQos::default() };
        self.data_with(from, number, &inline, &of(which, None), true).unwrap();
    }

    /// With the key hash and no key.
    fn disposed_by_hash(&mut self, from: u8, number: i64) -> Result<(), DropReason> {
        let status_info = StatusInfo { disposed: true, ..StatusInfo::default() };
        let key_hash = Some(key(&colliding()[0]).hash.key_hash());
        self.data_with(from, number, &InlineQos { status_info, key_hash, ..InlineQos::default() }, &[], true)
    }

    fn handle_of(&self, which: usize) -> Option<InstanceHandle> {
        self.reader.find_instance(key(&colliding()[which]))
    }

    /// The states of both instances; both must have samples.
    fn states(&mut self) -> [InstanceState; 2] {
        let samples = self.read_with(&Selector::default());
        [0, 1].map(|which| {
            let handle = self.handle_of(which).unwrap();
            let mut of_it = samples.iter().filter(|sample| sample.info.instance_handle == handle);
            of_it.next().unwrap().info.instance_state
        })
    }
}

use InstanceState::{Alive, NotAliveDisposed};

/// The value is the last octet.
fn last_octets(samples: &[CachedSample]) -> Vec<u8> {
    samples.iter().filter_map(|sample| sample.payload.as_slice().last().copied()).collect()
}

#[test]
fn keys_with_one_hash_are_two_instances() {
    for first in [0, 1] {
        let second = 1 - first;
        let mut bench = bench(QosSet::reader().keep_last(1));
        bench.wrote(1, 1, first, 10);
        bench.wrote(2, 1, second, 20);
        bench.wrote(1, 2, first, 11);
        bench.wrote(2, 2, second, 21);
        let handles = [first, second].map(|which| bench.handle_of(which).unwrap());
        assert_eq!(handles[0], key(&colliding()[0]).hash, "the first has its hash for a handle");
        assert_ne!(handles[0], handles[1]);
        for (which, handle) in [first, second].into_iter().zip(handles) {
            let named = bench.reader.instance_key(handle).unwrap();
            assert_eq!(octets_128(named.as_slice(), false), Ok(key(&colliding()[which])));
        }
        bench.disposed(2, 3, second);
        let mut expected = [Alive; 2];
        expected[second] = NotAliveDisposed;
        assert_eq!(bench.states(), expected);
        let selector = Selector { instance_states: Alive as u8, ..Selector::default() };
        assert_eq!(last_octets(&bench.take_with(&selector)), [11]);
        bench.wrote(2, 4, second, 22);
        assert_eq!(bench.handle_of(second), Some(handles[1]), "as long as it is known");
    }
}

#[test]
fn an_end_with_the_key_hash_alone_is_of_the_instance_that_its_writer_wrote() {
    let mut bench = bench(QosSet::reader().keep_all());
    bench.wrote(1, 1, 0, 10);
    bench.wrote(2, 1, 1, 20);
    bench.disposed_by_hash(2, 2).unwrap();
    assert_eq!(bench.states(), [Alive, NotAliveDisposed]);
    bench.wrote(2, 3, 0, 12);
    let refused = bench.disposed_by_hash(2, 4);
    assert_eq!(bench.states(), [Alive, NotAliveDisposed], "it wrote both");
    assert_eq!(refused, Err(DropReason::AmbiguousKeyHash));
    bench.disposed_by_hash(1, 2).unwrap();
    assert_eq!(bench.states(), [NotAliveDisposed; 2]);
}

#[test]
fn each_of_two_instances_with_one_hash_has_its_owner() {
    let mut bench = bench(QosSet { ownership: Ownership::Exclusive, ..QosSet::reader().keep_all() });
    bench.matched(3, QosSet { ownership_strength: 9, ..QosSet::writer() });
    bench.wrote(3, 1, 0, 30);
    bench.wrote(1, 1, 1, 10);
    let weaker = bench.data_with(1, 2, &InlineQos::default(), &of(0, Some(11)), false);
    assert_eq!(weaker, Err(DropReason::NotOwner));
    let mut values = last_octets(&bench.take());
    values.sort_unstable();
    assert_eq!(values, [10, 30]);
}

#[test]
fn limits_hold_for_instances_with_one_hash_and_forgetting_makes_room() {
    let limits = ReaderLimits { instances_max: 1, ..ReaderLimits::default() };
    let qos = QosSet::reader().reliable().keep_last(1);
    let mut bench = Bench::with(ReaderConfig { key: key_of_octets(octets_128, 128), limits, ..config(qos) });
    bench.matched(1, QosSet::writer());
    bench.wrote(1, 1, 0, 10);
    let refused = bench.data_with(1, 2, &InlineQos::default(), &of(1, Some(20)), false);
    assert_eq!(refused, Err(DropReason::ResourceLimit));
    assert_eq!(bench.reader.sample_rejected_status().last_reason, RejectReason::InstancesLimit);
    assert_eq!(last_octets(&bench.take()), [10]);
    bench.disposed(1, 3, 0);
    bench.take();
    bench.wrote(1, 4, 1, 21);
    assert!(bench.handle_of(0).is_none() && bench.handle_of(1).is_some());
    assert_eq!(last_octets(&bench.take()), [21]);
}
