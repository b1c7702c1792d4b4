//! Content filters and queries.

use super::*;
use crate::filter::SignedFilter;
use crate::qos::AccessScope;
use crate::receiver::{self, Registry};
use crate::stats::DropCounters;
use crate::wire::EndpointSubmessage;
use crate::wire::FilterSignature;
use crate::wire::content_filter::append_content_filter_info;

fn queried<'a>(access: Access, selector: &'a Selector, query: &'a PayloadFilter) -> Fetch<'a> {
    Fetch { access, selector, query: Some(query) }
}

/// Wants the values from ten on.
fn from_ten() -> PayloadFilter {
    PayloadFilter::new(|payload| payload.get(5).is_some_and(|value| *value >= 10))
}

const SIGNATURE: FilterSignature = FilterSignature([0x62; 16]);

fn signed() -> SignedFilter {
    SignedFilter { filter: from_ten(), signature: SIGNATURE }
}

fn filtering(qos: QosSet) -> Bench {
    let mut bench = Bench::new(qos);
    bench.reader.set_filter(Some(signed()));
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.out.clear();
    bench
}

#[test]
fn what_the_filter_does_not_want_takes_no_room_and_is_acknowledged() {
    let mut bench = filtering(QosSet::reader().reliable().keep_last(2));
    for (number, value) in (1..).zip([10, 1, 11, 2, 3]) {
        let expected = if value < 10 { Err(DropReason::ContentFilter) } else { Ok(()) };
        assert_eq!(bench.data(1, number, 1, value), expected);
    }
    bench.heartbeat(1, 1, 5, false).unwrap();
    assert_eq!(bench.acks().last().map(|ack| (ack.base, ack.missing.len())), Some((6, 0)));
    assert_eq!(bench.values(), [10, 11], "KEEP_LAST 2 keeps the two that were wanted");
    assert_eq!(bench.reader.drops().get(DropReason::ContentFilter), 3);
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
}

#[test]
fn what_the_filter_leaves_out_meets_no_deadline() {
    let deadline = Duration::from_secs(1);
    let mut bench = filtering(QosSet { deadline, ..QosSet::reader().reliable().keep_all() });
    let _ = bench.data(1, 1, 2, 1);
    bench.pass(Duration::from_secs(5));
    let missed = |bench: &mut Bench| bench.reader.requested_deadline_missed_status().count.total_count;
    assert_eq!(missed(&mut bench), 0, "an instance of which nothing passed is not watched");
    bench.data(1, 2, 1, 10).unwrap();
    for number in 3..7 {
        bench.pass(Duration::from_millis(600));
        let _ = bench.data(1, number, 1, 1);
    }
    assert_eq!(missed(&mut bench), 2, "written every 600 ms, and nothing passed for 2.4 s");
}

#[test]
fn filtered_samples_out_of_order_do_not_hold_up_those_behind() {
    let mut bench = filtering(QosSet::reader().reliable().keep_all());
    bench.data(1, 3, 1, 12).unwrap();
    bench.data(1, 2, 1, 1).unwrap();
    assert!(bench.values().is_empty());
    bench.data(1, 1, 1, 10).unwrap();
    assert_eq!(bench.values(), [10, 12]);
}

#[test]
fn instances_that_never_had_a_wanted_sample_stay_unknown() {
    let mut bench = filtering(QosSet::reader().reliable().keep_all());
    let _ = bench.data(1, 1, 1, 1);
    bench.dispose(1, 2, 1).unwrap();
    assert!(bench.take().is_empty());
    assert!(!bench.reader.has_instance(handle(1)));

    bench.data(1, 3, 2, 20).unwrap();
    bench.dispose(1, 4, 2).unwrap();
    let samples = bench.take();
    assert_eq!(values(&samples), [20]);
    assert_eq!(state_of(&samples), InstanceState::NotAliveDisposed, "a known instance ends");
}

#[test]
fn a_stronger_writer_owns_an_instance_even_when_nobody_wants_its_samples() {
    let mut exclusive = QosSet::reader().reliable().keep_all();
    exclusive.ownership = crate::qos::Ownership::Exclusive;
    let mut bench = Bench::new(exclusive);
    bench.reader.set_filter(Some(signed()));
    for (number, strength) in [(1, 1), (2, 2)] {
        let mut qos = QosSet::writer();
        qos.ownership = crate::qos::Ownership::Exclusive;
        qos.ownership_strength = strength;
        bench.matched(number, qos);
        bench.heartbeat(number, 1, 0, true).unwrap();
    }
    bench.data(1, 1, 1, 10).unwrap();
    assert_eq!(bench.data(2, 1, 1, 1), Err(DropReason::ContentFilter));
    assert_eq!(bench.data(1, 2, 1, 11), Err(DropReason::NotOwner));
    assert_eq!(bench.values(), [10]);
}

#[test]
fn a_new_filter_holds_from_then_on() {
    let mut bench = filtering(QosSet::reader().reliable().keep_all());
    let _ = bench.data(1, 1, 1, 1);
    bench.reader.set_filter(None);
    bench.data(1, 2, 1, 2).unwrap();
    assert_eq!(bench.values(), [2]);
}

#[test]
fn a_query_chooses_among_what_is_there() {
    let mut bench = Bench::reliable();
    for (number, (key, value)) in (1..).zip([(1, 10), (1, 1), (2, 2), (3, 11)]) {
        bench.data(1, number, key, value).unwrap();
    }
    bench.dispose(1, 5, 3).unwrap();
    let query = from_ten();
    let unread = Selector { sample_states: SampleState::NotRead as u8, ..Selector::default() };
    let mut samples = CachedSamples::new();
    assert!(bench.reader.has_queried(&unread, &query));
    bench.reader.fetch(bench.now, &queried(Access::Read, &unread, &query), &mut samples);
    assert_eq!(values(&samples), [10, 11]);
    assert_eq!(samples.len(), 2, "a marker has no data to look at");
    assert!(!bench.reader.has_queried(&unread, &query), "the others are unread, but not asked for");
    assert!(bench.reader.has_queried(&Selector::default(), &query));

    samples.clear();
    let one = Selector { samples_max: 1, ..Selector::default() };
    bench.reader.fetch(bench.now, &queried(Access::Take, &one, &query), &mut samples);
    assert_eq!(values(&samples), [10]);
    samples.clear();
    let next = only(InstanceSelector::NextAfter(handle(1)));
    bench.reader.fetch(bench.now, &queried(Access::Take, &next, &query), &mut samples);
    assert_eq!(values(&samples), [11], "the next instance with matching samples");
    assert!(!bench.reader.has_queried(&Selector::default(), &query));
    assert_eq!(bench.values(), [1, 2], "what was not asked for stays");
}

#[test]
fn a_coherent_set_takes_the_room_of_what_the_filter_wants_of_it() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.presentation.coherent_access = true;
    qos.presentation.access_scope = AccessScope::Topic;
    qos.resource_limits.max_samples = 1;
    let mut bench = filtering(qos);
    let inline = InlineQos { coherent_set: Some(SequenceNumber(1)), ..InlineQos::default() };
    for (number, value) in (1..).zip([1, 10, 2]) {
        bench.data_with(1, number, &inline, &payload(7, value), false).unwrap();
    }
    assert!(bench.take().is_empty(), "the set has not ended");
    let _ = bench.data(1, 4, 7, 3);
    assert_eq!(bench.values(), [10], "three samples would not fit, one does");
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
}

#[test]
fn a_query_keeps_the_order_of_ordered_access() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.presentation.ordered_access = true;
    qos.presentation.access_scope = AccessScope::Topic;
    let mut bench = Bench::new(qos);
    bench.matched(1, QosSet::writer());
    for (number, (key, value)) in (1..).zip([(2, 10), (1, 11), (2, 1), (2, 12)]) {
        bench.data(1, number, key, value).unwrap();
    }
    let mut samples = CachedSamples::new();
    bench.reader.fetch(bench.now, &queried(Access::Take, &Selector::default(), &from_ten()), &mut samples);
    assert_eq!(values(&samples), [10, 11, 12]);
    assert_eq!(bench.values(), [1]);
}

impl Bench {
    /// A GAP of a writer that filters.
    fn filtered(&mut self, start: i64, base: i64, filtered: u64) {
        let list = SequenceSet::empty(SequenceNumber(base));
        let (reader, writer) = (EntityId::UNKNOWN, writer(1).entity);
        let gap = Gap { reader, writer, start: SequenceNumber(start), list, filtered };
        self.reader.on_gap(self.now, &self.context(1), &gap, &mut self.out).unwrap();
    }

    /// Data with what its writer's filters said.
    fn judged(
        &mut self,
        number: i64,
        value: u8,
        verdicts: &[(FilterSignature, bool)],
    ) -> Result<(), DropReason> {
        let mut list = Vec::new();
        append_content_filter_info(&mut list, verdicts.iter().copied());
        let inline_qos = Some(ParameterListView { bytes: &list, little_endian: true });
        let payload = payload(7, value);
        let data = Data { inline_qos, ..plain(number, &payload) };
        self.reader.on_data(self.now, &self.context(1), &data, &mut self.out)
    }
}

#[test]
fn fact_62_a_set_is_whole_without_what_its_writer_filtered_out() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.presentation.coherent_access = true;
    qos.presentation.access_scope = AccessScope::Topic;
    let mut bench = filtering(qos);
    let in_set = |bench: &mut Bench, number, first| {
        let inline = InlineQos { coherent_set: Some(SequenceNumber(first)), ..InlineQos::default() };
        bench.data_with(1, number, &inline, &payload(7, 10 + number as u8), false).unwrap();
    };
    bench.filtered(1, 2, 1);
    in_set(&mut bench, 2, 1);
    bench.filtered(3, 5, 2);
    in_set(&mut bench, 5, 1);
    bench.filtered(6, 7, 1);
    in_set(&mut bench, 7, 7);
    assert_eq!(bench.values(), [12, 15], "first, middle and last members were filtered out");
    bench.filtered(8, 10, 1);
    bench.data(1, 10, 7, 30).unwrap();
    assert_eq!(bench.values(), [30], "one of two is missing for another reason");
    assert_eq!(bench.reader.drops().get(DropReason::IncompleteSet), 1);
}

#[test]
fn fact_62_a_writer_may_withhold_by_its_verdict_but_not_push_in() {
    let mut bench = filtering(QosSet::reader().reliable().keep_all());
    let other = FilterSignature([1; 16]);
    assert_eq!(bench.judged(1, 10, &[(other, true), (SIGNATURE, false)]), Err(DropReason::ContentFilter));
    assert_eq!(bench.judged(2, 1, &[(SIGNATURE, true)]), Err(DropReason::ContentFilter));
    bench.judged(3, 11, &[(other, false), (SIGNATURE, true)]).unwrap();
    bench.judged(4, 12, &[(other, false)]).unwrap();
    assert_eq!(bench.values(), [11, 12], "filters of others mean nothing");
}

#[test]
fn a_writer_of_which_nothing_is_wanted_does_not_keep_an_instance_alive() {
    let mut bench = filtering(QosSet::reader().reliable().keep_all());
    bench.matched(2, QosSet::writer());
    bench.heartbeat(2, 1, 0, true).unwrap();
    bench.data(1, 1, 7, 10).unwrap();
    let _ = bench.data(2, 1, 7, 1);
    bench.unregister(1, 2, 7).unwrap();
    assert_eq!(
        state_of(&bench.take()),
        InstanceState::NotAliveNoWriters,
        "as if the second writer had not sent what it could have filtered itself"
    );
}

/// Hands what arrives to one reader.
struct Ear<'a>(&'a mut Reader);

impl Registry for Ear<'_> {
    fn deliver(&mut self, now: Now, from: &MessageContext, heard: &EndpointSubmessage<'_>, out: &mut Outbox) {
        let EndpointSubmessage::Data(data) = heard else { panic!("{heard:?}") };
        self.0.on_data(now, from, data, out).unwrap();
    }

    fn is_local(&self, _: GuidPrefix) -> bool {
        true
    }
}

impl Bench {
    /// A datagram with one DATA of writer 1: FilteredFlag of StatusInfo_t and a key hash, and the key or
    /// nothing as its payload (RTPS 2.5 §8.7.4, §9.6.4.9).
    fn filtered_data(&mut self, number: u8, key: u8, with_key: bool) {
        let mut octets = b"RTPS\x02\x05\x01\x03".to_vec();
        octets.extend([1; 12]);
        octets.extend([0x15, if with_key { 0x0b } else { 0x03 }, if with_key { 60 } else { 52 }, 0]);
        octets.extend([0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, number, 0, 0, 0]);
        octets.extend([0x71, 0, 4, 0, 0, 0, 0, 0b100]);
        octets.extend([0x70, 0, 16, 0]);
        octets.extend(handle(key).0);
        octets.extend([1, 0, 0, 0]);
        if with_key {
            octets.extend([0, 1, 0, 0, key, 0, 0, 0]);
        }
        let mut drops = DropCounters::default();
        let (now, from) = (self.now, Locator::default());
        receiver::datagram(now, from, &octets, None, &mut Ear(&mut self.reader), &mut drops, &mut self.out);
        assert!(drops.iter().all(|(_, count)| count == 0), "{drops:?}");
    }
}

#[test]
fn data_that_says_it_was_filtered_out_counts_as_received_and_is_not_shown() {
    for mut bench in [
        filtering(QosSet::reader().reliable().keep_all()),
        Bench::reliable(),
        filtering(QosSet::reader().keep_all()),
    ] {
        let reliable = bench.reader.qos().is_reliable();
        bench.data(1, 1, 1, 10).unwrap();
        bench.filtered_data(2, 1, false);
        bench.filtered_data(3, 1, true);
        bench.filtered_data(4, 7, true);
        bench.data(1, 5, 1, 11).unwrap();
        let samples = bench.take();
        assert_eq!(values(&samples), [10, 11]);
        assert_eq!(state_of(&samples), InstanceState::Alive);
        assert!(!bench.reader.has_instance(handle(7)), "nothing of it was ever shown");
        assert_eq!(bench.reader.sample_lost_status().total_count, 0);
        bench.out.clear();
        if reliable {
            bench.heartbeat(1, 1, 5, false).unwrap();
            assert_eq!(bench.acks().last().map(|ack| (ack.base, ack.missing.len())), Some((6, 0)));
        }
    }
}
