//! Coherent sets, ordered access and stable accesses (DCPS 1.4 §2.2.3.6, RTPS 2.5 §8.7.6).

use super::*;
use crate::qos::{AccessScope, Presentation};
use crate::sources::Sources;

fn presented(access_scope: AccessScope, coherent_access: bool, ordered_access: bool) -> QosSet {
    let presentation = Presentation { access_scope, coherent_access, ordered_access };
    QosSet { presentation, ..QosSet::reader().reliable().keep_all() }
}

fn bench(qos: QosSet) -> Bench {
    let mut bench = Bench::new(qos);
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.out.clear();
    bench
}

fn coherent() -> Bench {
    bench(presented(AccessScope::Topic, true, false))
}

fn ordered() -> Bench {
    bench(presented(AccessScope::Topic, false, true))
}

impl Bench {
    /// A sample of the coherent set that begins with `first`.
    fn in_set(&mut self, number: i64, first: i64, key: u8, value: u8) {
        let inline = InlineQos { coherent_set: Some(SequenceNumber(first)), ..InlineQos::default() };
        self.data_with(1, number, &inline, &payload(key, value), false).unwrap();
    }

    /// The end of a set: a DATA without payload and without QoS.
    fn end_of_set(&mut self, number: i64) {
        self.reader.on_data(self.now, &self.context(1), &plain(number, &[]), &mut self.out).unwrap();
    }

    fn told_of_data(&mut self) -> bool {
        let told = self.out.events.iter().any(|event| matches!(event, Event::DataAvailable { .. }));
        self.out.events.clear();
        told
    }
}

#[test]
fn fact_38_a_set_is_shown_when_it_has_ended_and_not_before() {
    let mut bench = coherent();
    bench.in_set(1, 1, 7, 10);
    bench.in_set(2, 1, 8, 20);
    assert!(!bench.told_of_data());
    assert_eq!(bench.values(), []);
    bench.end_of_set(3);
    assert!(bench.told_of_data());
    assert_eq!(bench.values(), [10, 20]);
}

#[test]
fn a_set_ends_with_the_first_sample_of_the_next_or_of_none() {
    let mut bench = coherent();
    bench.in_set(1, 1, 7, 10);
    bench.in_set(2, 2, 7, 20);
    assert_eq!(bench.values(), [10]);
    bench.data(1, 3, 7, 30).unwrap();
    assert_eq!(bench.values(), [20, 30]);
    let unknown = InlineQos { coherent_set: Some(SequenceNumber::UNKNOWN), ..InlineQos::default() };
    bench.in_set(4, 4, 7, 40);
    bench.data_with(1, 5, &unknown, &[], false).unwrap();
    assert_eq!(bench.values(), [40]);
}

#[test]
fn a_sample_lost_on_the_way_is_repeated_and_then_the_set_is_whole() {
    let mut bench = coherent();
    bench.in_set(1, 1, 7, 10);
    bench.in_set(3, 1, 7, 30);
    bench.end_of_set(4);
    bench.heartbeat(1, 1, 4, false).unwrap();
    assert_eq!(bench.acks().last().unwrap().missing, [2]);
    assert_eq!(bench.values(), []);
    bench.in_set(2, 1, 7, 20);
    assert_eq!(bench.values(), [10, 20, 30]);
}

#[test]
fn a_sample_replaced_in_the_writers_history_takes_its_set_with_it() {
    let mut bench = coherent();
    bench.in_set(1, 1, 7, 10);
    bench.in_set(3, 1, 8, 30);
    bench.end_of_set(4);
    bench.gap(1, 2, 3, &[]).unwrap();
    assert_eq!(bench.values(), [], "number 2 was a part of it");
    assert_eq!(bench.reader.drops().get(DropReason::IncompleteSet), 2);
    assert_eq!(bench.reader.sample_lost_status().total_count, 2);
    bench.in_set(5, 5, 7, 50);
    bench.end_of_set(6);
    assert_eq!(bench.values(), [50], "the next set is another matter");
}

#[test]
fn who_joins_in_the_middle_of_a_set_does_not_see_the_rest_of_it() {
    let mut bench = coherent();
    bench.gap(1, 1, 3, &[]).unwrap();
    bench.in_set(3, 1, 7, 30);
    bench.end_of_set(4);
    assert_eq!(bench.values(), []);
}

#[test]
fn a_set_of_a_best_effort_writer_is_shown_whole_or_not_at_all() {
    let mut qos = presented(AccessScope::Topic, true, false);
    qos = qos.best_effort();
    let mut bench = Bench::new(qos);
    bench.matched(1, QosSet::writer());
    bench.in_set(1, 1, 7, 10);
    bench.in_set(3, 1, 7, 30);
    bench.in_set(4, 4, 7, 40);
    bench.in_set(5, 4, 7, 50);
    // 6 ended the second set, and is lost: 7 may have been part of it.
    bench.in_set(7, 7, 7, 70);
    bench.end_of_set(8);
    assert_eq!(bench.values(), [70]);
}

#[test]
fn a_dispose_waits_with_its_set() {
    let mut bench = coherent();
    bench.data(1, 1, 7, 10).unwrap();
    bench.values();
    let inline = InlineQos {
        coherent_set: Some(SequenceNumber(2)),
        status_info: StatusInfo { disposed: true, ..StatusInfo::default() },
        ..InlineQos::default()
    };
    bench.data_with(1, 2, &inline, &[0, 1, 0, 0, 7], true).unwrap();
    assert_eq!(bench.take(), []);
    bench.end_of_set(3);
    assert_eq!(bench.take()[0].info.instance_state, InstanceState::NotAliveDisposed);
}

#[test]
fn a_writer_that_leaves_takes_its_unfinished_set_along() {
    let mut bench = coherent();
    bench.in_set(1, 1, 7, 10);
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    assert!(bench.take().iter().all(|sample| !sample.info.valid_data));
    assert_eq!(bench.reader.drops().get(DropReason::IncompleteSet), 1);
}

#[test]
fn a_set_waits_until_the_cache_has_room_for_all_of_it() {
    let mut qos = presented(AccessScope::Topic, true, false);
    qos.resource_limits.max_samples = 3;
    let mut bench = bench(qos);
    bench.in_set(1, 1, 7, 10);
    bench.in_set(2, 1, 7, 20);
    bench.end_of_set(3);
    bench.in_set(4, 4, 7, 40);
    bench.in_set(5, 4, 7, 50);
    bench.end_of_set(6);
    assert_eq!(bench.values(), [10, 20], "three do not hold four, nor one of the second set");
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.values(), [40, 50]);
}

#[test]
fn a_set_larger_than_the_limits_is_dropped_whole_and_does_not_block_the_writer() {
    let mut config = config(presented(AccessScope::Topic, true, false));
    config.limits.coherent_samples_max = 2;
    let mut bench = Bench::with(config);
    bench.matched(1, QosSet::writer());
    for number in 1..=3 {
        bench.in_set(number, 1, 7, 10);
    }
    bench.end_of_set(4);
    assert_eq!(bench.values(), []);
    bench.in_set(5, 5, 7, 50);
    bench.in_set(6, 5, 7, 60);
    bench.end_of_set(7);
    assert_eq!(bench.values(), [50, 60], "nothing of the first is held any more");
}

#[test]
fn a_reader_without_coherent_access_sees_samples_as_they_come() {
    let mut bench = Bench::reliable();
    bench.in_set(1, 1, 7, 10);
    assert_eq!(bench.values(), [10]);
    bench.end_of_set(2);
    assert_eq!(bench.take(), []);
}

#[test]
fn fact_39_topic_order_is_as_written_and_instance_order_is_by_instance() {
    let mut by_topic = ordered();
    let mut by_instance = bench(presented(AccessScope::Instance, false, true));
    for (number, key) in (1..).zip([9, 7, 8, 9, 7]) {
        by_topic.data(1, number, key, number as u8).unwrap();
        by_instance.data(1, number, key, number as u8).unwrap();
    }
    let seen = by_topic.read_with(&Selector::default());
    assert_eq!(values(&seen), [1, 2, 3, 4, 5]);
    let ranks: Vec<_> = seen.iter().map(|sample| sample.info.sample_rank).collect();
    assert_eq!(ranks, [1, 1, 0, 0, 0], "samples of the same instance that follow");
    assert_eq!(by_instance.values(), [2, 5, 3, 1, 4]);

    let two = Selector { samples_max: 2, ..Selector::default() };
    assert_eq!(values(&by_topic.take_with(&two)), [1, 2]);
    let next = InstanceSelector::NextAfter(InstanceHandle::NIL);
    let one_instance = Selector { instance: next, ..Selector::default() };
    assert_eq!(values(&by_topic.take_with(&one_instance)), [5], "the rest of instance 7");
    let unread = Selector { sample_states: SampleState::NotRead as u8, ..Selector::default() };
    bench_data(&mut by_topic);
    assert_eq!(values(&by_topic.take_with(&unread)), [6]);
    let views: Vec<_> = by_topic.take().iter().map(|sample| sample.info.view_state).collect();
    assert_eq!(views, [ViewState::NotNew; 2]);
    assert_eq!(by_topic.take(), []);
}

fn bench_data(bench: &mut Bench) {
    bench.data(1, 6, 9, 6).unwrap();
}

#[test]
fn the_end_of_an_instance_keeps_its_place_in_topic_order() {
    let mut bench = ordered();
    bench.data(1, 1, 9, 1).unwrap();
    bench.dispose(1, 2, 9).unwrap();
    bench.data(1, 3, 7, 3).unwrap();
    let kinds: Vec<_> = bench.take().iter().map(|sample| sample.info.valid_data).collect();
    assert_eq!(kinds, [true, false, true]);
}

#[test]
fn topic_order_by_source_timestamp_mixes_writers_by_time() {
    let mut qos = presented(AccessScope::Topic, false, true);
    qos.destination_order = crate::qos::DestinationOrder::BySourceTimestamp;
    let mut bench = bench(qos);
    bench.matched(2, QosSet::writer());
    let at = |ms: i64| Time(1_700_000_000_000_000_000 + ms * 1_000_000);
    bench.data_at(1, 1, 9, 1, at(10)).unwrap();
    bench.data_at(1, 2, 8, 2, at(30)).unwrap();
    bench.data_at(2, 1, 7, 3, at(20)).unwrap();
    assert_eq!(bench.values(), [1, 3, 2]);
}

#[test]
fn what_arrives_during_an_access_waits_for_its_end() {
    for reliable in [true, false] {
        let qos = presented(AccessScope::Topic, true, true);
        let mut bench = bench(if reliable { qos } else { qos.best_effort() });
        bench.data(1, 1, 7, 10).unwrap();
        bench.reader.begin_access();
        bench.data(1, 2, 7, 20).unwrap();
        bench.in_set(3, 3, 8, 30);
        bench.end_of_set(4);
        assert_eq!(values(&bench.read_with(&Selector::default())), [10]);
        assert_eq!(bench.values(), [10]);
        assert_eq!(bench.values(), [], "taking makes no room for what came later");
        bench.reader.end_access(bench.now, &mut bench.out);
        bench.pass(Duration::from_millis(1));
        assert!(bench.told_of_data());
        assert_eq!(bench.values(), [20, 30]);
        assert_eq!(bench.reader.sample_rejected_status().count.total_count, 0);
    }
}

/// Readers of one subscriber, and publisher 1 with one writer for each.
struct Subscriber(Vec<Bench>);

impl Subscriber {
    fn of(count: u8) -> Self {
        let publisher = EntityId::with_kind(9, 0x08);
        let readers = (1..=count).map(|_| {
            let mut bench = Bench::new(presented(AccessScope::Group, true, true));
            let matched = MatchedWriter {
                guid: writer(1),
                locators: vec![Locator::udp([127, 0, 0, 1].into(), 7411)],
                sources: Sources::default(),
                publisher,
                vendor: [0, 0],
                qos: QosSet::writer(),
                begins: false,
            };
            bench.reader.match_writer(bench.now, &matched, &mut bench.out);
            bench
        });
        Self(readers.collect())
    }

    fn data(&mut self, reader: usize, number: i64, marks: [i64; 3], value: u8) {
        let [set, group, group_number] = marks.map(|mark| Some(SequenceNumber(mark)));
        let inline = InlineQos {
            coherent_set: set,
            group_coherent_set: group,
            group_sequence_number: group_number,
            ..InlineQos::default()
        };
        self.0[reader].data_with(1, number, &inline, &payload(7, value), false).unwrap();
    }

    fn end(&mut self, reader: usize, number: i64, group: i64, group_number: i64) {
        let inline = InlineQos {
            group_coherent_set: Some(SequenceNumber(group)),
            group_sequence_number: Some(SequenceNumber(group_number)),
            ..InlineQos::default()
        };
        self.0[reader].data_with(1, number, &inline, &[], false).unwrap();
        let told = Event::GroupPart { reader: self.0[reader].reader.guid().entity };
        assert!(self.0[reader].out.events.contains(&told));
    }

    /// What each reader shows after the driver has looked at all.
    fn values(&mut self) -> Vec<Vec<u8>> {
        loop {
            let mut members = Vec::new();
            self.0.iter().for_each(|bench| bench.reader.group_members(bench.now, &mut members));
            let room = |publisher, number| room_of(&self.0, publisher, number);
            let Some(verdict) = next_verdict(&members, room) else { break };
            for bench in &mut self.0 {
                bench.reader.carry_out_verdict(bench.now, verdict, &mut bench.out);
            }
        }
        self.0.iter_mut().map(Bench::values).collect()
    }
}

#[test]
fn fact_38_a_group_set_is_shown_when_all_its_writers_have_ended_it() {
    let mut subscriber = Subscriber::of(3);
    subscriber.data(0, 1, [1, 1, 1], 10);
    subscriber.data(1, 1, [1, 1, 2], 20);
    subscriber.end(0, 2, 1, 3);
    subscriber.end(1, 2, 1, 3);
    assert_eq!(subscriber.values(), [vec![], vec![], vec![]], "the third writer may still have a part");
    subscriber.end(2, 1, 1, 3);
    assert_eq!(subscriber.values(), [vec![10], vec![20], vec![]]);
}

#[test]
fn a_group_set_with_a_part_lost_is_shown_in_no_reader() {
    let mut subscriber = Subscriber::of(2);
    subscriber.data(0, 1, [1, 1, 1], 10);
    subscriber.0[1].gap(1, 1, 2, &[]).unwrap();
    subscriber.data(1, 2, [1, 1, 3], 20);
    subscriber.end(0, 2, 1, 4);
    subscriber.end(1, 3, 1, 4);
    assert_eq!(subscriber.values(), [vec![], vec![]]);
    subscriber.data(0, 3, [3, 5, 5], 30);
    subscriber.end(0, 4, 5, 6);
    subscriber.end(1, 4, 5, 6);
    assert_eq!(subscriber.values(), [vec![30], vec![]]);
}

#[test]
fn group_sets_and_what_comes_between_keep_their_order() {
    let mut subscriber = Subscriber::of(2);
    subscriber.data(0, 1, [1, 1, 1], 10);
    subscriber.end(0, 2, 1, 2);
    subscriber.0[0].data(1, 3, 7, 20).unwrap();
    subscriber.data(0, 4, [4, 4, 4], 30);
    subscriber.end(0, 5, 4, 5);
    assert_eq!(subscriber.values(), [vec![], vec![]]);
    subscriber.end(1, 1, 1, 2);
    assert_eq!(subscriber.values(), [vec![10, 20], vec![]]);
    subscriber.end(1, 2, 4, 5);
    assert_eq!(subscriber.values(), [vec![30], vec![]]);
}

#[test]
fn a_writer_that_leaves_holds_up_no_group() {
    let mut subscriber = Subscriber::of(2);
    subscriber.data(0, 1, [1, 1, 1], 10);
    subscriber.end(0, 2, 1, 2);
    let bench = &mut subscriber.0[1];
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    assert_eq!(subscriber.values(), [vec![10], vec![]]);
}

#[test]
fn what_waits_for_a_gap_to_close_is_accounted_for_once() {
    let mut config = config(QosSet::reader().reliable().keep_all());
    config.limits.reorder_bytes_max = 800;
    let mut bench = Bench::with(config);
    bench.matched(1, QosSet::writer());
    for round in 0..5 {
        let first = round * 2 + 1;
        bench.data(1, first + 1, 7, 2).unwrap();
        bench.data(1, first, 7, 1).unwrap();
    }
    assert_eq!(bench.values().len(), 10);
}
