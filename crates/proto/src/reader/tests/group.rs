//! What the readers of a subscriber show together under GROUP access (RTPS 2.5 §8.7.5, §8.7.6).

use super::*;
use crate::qos::{AccessScope, Presentation};
use crate::reader::next_verdict;
use crate::sources::Sources;
use crate::wire::{GroupDigest, HeartbeatGroup};

const PUBLISHER: EntityId = EntityId::with_kind(9, 0x08);

/// Writer `number` of the one publisher there is; reader `number` has its topic.
fn of_publisher(number: u8) -> Guid {
    writer(1).prefix.entity(EntityId::user_writer(number.into(), true))
}

fn digest(writers: &[u8]) -> GroupDigest {
    GroupDigest::of(writers.iter().map(|number| of_publisher(*number).entity))
}

fn ordered(coherent_access: bool) -> QosSet {
    let presentation =
        Presentation { access_scope: AccessScope::Group, coherent_access, ordered_access: true };
    QosSet { presentation, ..QosSet::reader().reliable().keep_all() }
}

/// The readers of a subscriber. Each has a topic with one writer, but for those that share one.
struct Subscriber {
    readers: Vec<Bench>,
    /// The writers that its participant has discovered.
    known: Vec<u8>,
    count: i32,
}

impl Subscriber {
    /// Reader `at` is matched with writer `at + 1`, all of which are discovered.
    fn new(readers: u8, qos: &QosSet) -> Self {
        let mut subscriber = Self {
            readers: (0..readers).map(|_| Bench::new(qos.clone())).collect(),
            known: vec![],
            count: 0,
        };
        (1..=readers).for_each(|number| subscriber.discovers(number, Some(usize::from(number) - 1)));
        subscriber
    }

    /// A writer of the publisher is discovered and matches that reader, if any.
    fn discovers(&mut self, number: u8, reader: Option<usize>) {
        self.discovers_with(number, reader, QosSet::writer());
    }

    fn discovers_with(&mut self, number: u8, reader: Option<usize>, qos: QosSet) {
        if let Some(bench) = reader.map(|at| &mut self.readers[at]) {
            let locators = vec![Locator::udp([127, 0, 0, 1].into(), 7411)];
            let matched = MatchedWriter {
                guid: of_publisher(number),
                locators,
                sources: Sources::default(),
                publisher: PUBLISHER,
                vendor: [0, 0],
                qos,
                begins: false,
            };
            bench.reader.match_writer(bench.now, &matched, &mut bench.out);
            bench.out.clear();
        }
        self.known.push(number);
        self.tell_known();
    }

    fn tell_known(&mut self) {
        let writers = digest(&self.known);
        for Bench { reader, out, .. } in &mut self.readers {
            reader.set_group_writers(writer(1).prefix.entity(PUBLISHER), writers, out);
        }
    }

    /// Change `number` of writer `from` reaches a reader: its group number and the writers there were.
    fn data(&mut self, reader: usize, from: u8, number: i64, (group, writers): (i64, &[u8]), value: u8) {
        let inline = InlineQos {
            group_sequence_number: Some(SequenceNumber(group)),
            group_writers: (!writers.is_empty()).then(|| digest(writers)),
            ..InlineQos::default()
        };
        self.change(reader, from, number, &inline, &payload(value, value));
    }

    /// The same, in a coherent set: its first number and first group number.
    fn part(&mut self, reader: usize, from: u8, number: i64, group: i64, set: (i64, i64), value: u8) {
        let inline = InlineQos {
            coherent_set: Some(SequenceNumber(set.0)),
            group_coherent_set: Some(SequenceNumber(set.1)),
            group_sequence_number: Some(SequenceNumber(group)),
            ..InlineQos::default()
        };
        self.change(reader, from, number, &inline, &payload(value, value));
    }

    fn end(&mut self, reader: usize, from: u8, number: i64, group: i64, set: i64, writers: &[u8]) {
        let inline = InlineQos {
            group_coherent_set: Some(SequenceNumber(set)),
            group_sequence_number: Some(SequenceNumber(group)),
            group_writers: Some(digest(writers)),
            ..InlineQos::default()
        };
        self.change(reader, from, number, &inline, &[]);
    }

    fn change(&mut self, reader: usize, from: u8, number: i64, inline: &InlineQos, payload: &[u8]) {
        let mut list = Vec::new();
        encode_inline_qos(inline, &mut list);
        let inline_qos = Some(ParameterListView { bytes: &list, little_endian: true });
        let data = Data { inline_qos, writer: of_publisher(from).entity, ..plain(number, payload) };
        let bench = &mut self.readers[reader];
        bench.reader.on_data(bench.now, &bench.context(1), &data, &mut bench.out).unwrap();
    }

    /// Writer `from` has no changes from `first` to `last` any more, or `filtered` them out.
    fn gap(&mut self, reader: usize, from: u8, (first, last): (i64, i64), filtered: u64) {
        let gap = Gap {
            reader: EntityId::UNKNOWN,
            writer: of_publisher(from).entity,
            start: SequenceNumber(first),
            list: SequenceSet::empty(SequenceNumber(last + 1)),
            filtered,
        };
        let bench = &mut self.readers[reader];
        bench.reader.on_gap(bench.now, &bench.context(1), &gap, &mut bench.out).unwrap();
    }

    /// Writer `from` has changes from `first` to `last`, with these group numbers: current, first, last.
    fn heartbeat(&mut self, from: u8, (first, last): (i64, i64), group: Option<[i64; 3]>) {
        self.count += 1;
        let writers = Some(digest(&self.known));
        let group = group.map(|numbers| {
            let [current, first, last] = numbers.map(SequenceNumber);
            HeartbeatGroup { current, first, last, writers }
        });
        let heartbeat = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: of_publisher(from).entity,
            first: SequenceNumber(first),
            last: SequenceNumber(last),
            count: self.count,
            final_flag: true,
            liveliness: false,
            group,
        };
        for bench in self.readers.iter_mut().filter(|bench| bench.reader.is_matched(of_publisher(from))) {
            bench.reader.on_heartbeat(bench.now, &bench.context(1), &heartbeat, &mut bench.out).unwrap();
        }
    }

    fn loses(&mut self, number: u8) {
        for Bench { reader, now, out, .. } in &mut self.readers {
            reader.unmatch_writer(*now, of_publisher(number), out);
        }
        self.known.retain(|known| *known != number);
        self.tell_known();
    }

    fn pass(&mut self, span: Duration) {
        self.readers.iter_mut().for_each(|bench| bench.pass(span));
    }

    /// As [`Self::data`] to the first reader, written when there were both writers, of the instance `key`.
    fn keyed(&mut self, from: u8, number: i64, group: i64, key: u8, value: u8) {
        let inline = InlineQos {
            group_sequence_number: Some(SequenceNumber(group)),
            group_writers: Some(digest(BOTH)),
            ..InlineQos::default()
        };
        self.change(0, from, number, &inline, &payload(key, value));
    }

    /// Carries out up to ten verdicts of the first reader, without reading. Returns how many there were.
    fn verdicts(&mut self) -> usize {
        let Bench { reader, now, out, .. } = &mut self.readers[0];
        let verdicts = (0..10).map_while(|_| {
            let mut members = Vec::new();
            reader.group_members(*now, &mut members);
            let verdict = next_verdict(&members, |publisher, number| reader.group_room(publisher, number))?;
            reader.carry_out_verdict(*now, verdict, out);
            Some(())
        });
        verdicts.count()
    }

    /// What becomes readable, in the order in which it does.
    fn shown(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        loop {
            let mut members = Vec::new();
            self.readers.iter().for_each(|bench| bench.reader.group_members(bench.now, &mut members));
            let room = |publisher, number| room_of(&self.readers, publisher, number);
            let verdict = next_verdict(&members, room);
            for bench in &mut self.readers {
                match verdict {
                    Some(verdict) => bench.reader.carry_out_verdict(bench.now, verdict, &mut bench.out),
                    None => bench.reader.ask_for_group(bench.now, &members, &mut bench.out),
                }
                shown.extend(bench.values());
            }
            if verdict.is_none() {
                return shown;
            }
        }
    }

    /// Who was asked for a heartbeat since this was asked last.
    fn asked(&mut self) -> Vec<usize> {
        let readers = self.readers.iter_mut().enumerate();
        let asked =
            readers.filter_map(|(at, bench)| bench.acks().iter().any(|ack| !ack.final_flag).then_some(at));
        asked.collect()
    }

    /// Whether something happened after which the driver looks at all readers.
    fn stirs(&mut self) -> bool {
        let mut stirs = false;
        for bench in &mut self.readers {
            let entity = bench.reader.guid().entity;
            stirs |= bench.out.events.contains(&Event::GroupPart { reader: entity });
            bench.out.events.clear();
        }
        stirs
    }
}

const BOTH: &[u8] = &[1, 2];

#[test]
fn a_sample_waits_for_the_lost_one_of_another_writer() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    subscriber.heartbeat(1, (1, 0), Some([1, 1, 0]));
    subscriber.data(0, 1, 1, (1, BOTH), 10);
    assert_eq!(subscriber.shown(), [10], "nothing can come before the first");
    // Number 2 was written by the other and is lost.
    subscriber.data(0, 1, 2, (3, BOTH), 30);
    assert!(subscriber.stirs());
    assert_eq!(subscriber.shown(), []);
    assert_eq!(subscriber.asked(), [1], "the other writer says how far it is");
    subscriber.heartbeat(2, (1, 1), Some([3, 2, 2]));
    assert_eq!(subscriber.shown(), []);
    assert_eq!(subscriber.asked(), [1], "its sample is asked for");
    subscriber.data(1, 2, 1, (2, BOTH), 20);
    assert!(subscriber.stirs());
    assert_eq!(subscriber.shown(), [20, 30]);
    subscriber.pass(Duration::from_secs(10));
    assert_eq!(subscriber.asked(), [], "nobody waits any more");
}

#[test]
fn a_heartbeat_that_comes_before_the_samples_it_names_is_remembered() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    // Of the second and third change of the group, which readers here do not hear, this writer has none.
    subscriber.heartbeat(2, (1, 1), Some([5, 1, 1]));
    subscriber.data(0, 1, 1, (4, BOTH), 40);
    assert_eq!(subscriber.shown(), []);
    subscriber.data(1, 2, 1, (1, BOTH), 10);
    assert!(subscriber.stirs());
    assert_eq!(subscriber.shown(), [10, 40], "nobody needs to ask once more");
}

#[test]
fn what_a_writer_no_longer_has_is_not_waited_for() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    subscriber.data(0, 1, 1, (3, BOTH), 30);
    assert_eq!(subscriber.shown(), []);
    subscriber.heartbeat(2, (3, 2), Some([3, 3, 2]));
    assert!(subscriber.stirs());
    assert_eq!(subscriber.shown(), [30]);
    // What it has begins behind: it need not have come yet.
    subscriber.data(0, 1, 2, (6, BOTH), 60);
    subscriber.heartbeat(2, (4, 5), Some([9, 7, 9]));
    assert_eq!(subscriber.shown(), [60]);
}

#[test]
fn a_question_that_is_lost_is_asked_again() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    subscriber.data(0, 1, 1, (3, BOTH), 30);
    assert_eq!(subscriber.shown(), []);
    assert_eq!(subscriber.asked(), [1]);
    subscriber.readers[1].pass(Duration::from_millis(9));
    // An old heartbeat tells nothing of number 2.
    subscriber.heartbeat(2, (1, 0), Some([1, 1, 0]));
    assert_eq!((subscriber.shown(), subscriber.asked()), (vec![], vec![]));
    subscriber.readers[1].pass(Duration::from_millis(2));
    assert_eq!(subscriber.asked(), [1]);
    subscriber.heartbeat(2, (1, 0), Some([3, 3, 2]));
    assert_eq!(subscriber.shown(), [30]);
}

#[test]
fn a_second_writer_that_is_discovered_late_is_waited_for() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    subscriber.loses(2);
    assert!(subscriber.stirs());
    subscriber.data(0, 1, 1, (1, &[1]), 10);
    assert_eq!(subscriber.shown(), [10]);
    // There is a third writer now, which wrote number 2.
    let writers: &[u8] = &[1, 3];
    subscriber.data(0, 1, 2, (3, writers), 30);
    assert_eq!(subscriber.shown(), []);
    subscriber.discovers(3, Some(1));
    assert!(subscriber.stirs());
    assert_eq!(subscriber.shown(), [], "nothing was heard of it");
    subscriber.data(1, 3, 1, (2, writers), 20);
    assert_eq!(subscriber.shown(), [20, 30]);
}

#[test]
fn a_writer_without_a_reader_here_holds_nobody_up() {
    let mut subscriber = Subscriber::new(1, &ordered(true));
    subscriber.discovers(2, None);
    subscriber.data(0, 1, 1, (5, BOTH), 50);
    assert_eq!(subscriber.shown(), [50]);
    // Nor is its part of a set: that is not for this subscriber.
    subscriber.part(0, 1, 2, 6, (2, 6), 60);
    subscriber.end(0, 1, 3, 9, 6, BOTH);
    assert_eq!(subscriber.shown(), [60]);
}

#[test]
fn a_writer_deleted_in_the_middle_holds_nobody_up() {
    let mut subscriber = Subscriber::new(3, &ordered(false));
    let all: &[u8] = &[1, 2, 3];
    subscriber.data(0, 1, 1, (2, all), 20);
    subscriber.data(2, 3, 1, (4, all), 40);
    subscriber.heartbeat(3, (1, 1), Some([4, 4, 4]));
    assert_eq!(subscriber.shown(), [], "number 1 is the second writer's");
    subscriber.loses(2);
    assert!(subscriber.stirs());
    assert_eq!(subscriber.shown(), [20]);
    // What waits of a writer that is deleted is not lost with it, and comes in its turn.
    subscriber.loses(3);
    assert_eq!(subscriber.shown(), [], "number 3 may be the first writer's");
    subscriber.heartbeat(1, (1, 1), Some([4, 2, 2]));
    assert_eq!(subscriber.shown(), [40]);
}

#[test]
fn a_writer_that_lost_its_liveliness_holds_nobody_up() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    let mut qos = QosSet::writer();
    qos.liveliness.lease_duration = Duration::from_secs(1);
    subscriber.discovers_with(3, Some(1), qos);
    subscriber.heartbeat(2, (1, 0), Some([9, 9, 8]));
    subscriber.heartbeat(3, (1, 0), Some([1, 1, 0]));
    subscriber.data(0, 1, 1, (3, &[1, 2, 3]), 30);
    assert_eq!(subscriber.shown(), []);
    subscriber.pass(Duration::from_millis(1_001));
    assert!(subscriber.stirs());
    assert_eq!(subscriber.shown(), [30]);
}

#[test]
fn best_effort_writers_are_not_waited_for() {
    let mut subscriber = Subscriber::new(1, &ordered(false));
    subscriber.readers.push(Bench::new(ordered(false)));
    subscriber.discovers_with(2, Some(1), QosSet::writer().best_effort());
    subscriber.data(0, 1, 1, (3, BOTH), 30);
    assert_eq!(subscriber.shown(), [30]);
    subscriber.data(1, 2, 1, (2, BOTH), 20);
    assert_eq!(subscriber.shown(), [20], "late, but not lost");
}

#[test]
fn writers_that_are_never_found_are_waited_for_once() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    subscriber.heartbeat(2, (1, 0), Some([9, 9, 8]));
    let strangers: &[u8] = &[1, 2, 77];
    subscriber.data(0, 1, 1, (3, strangers), 30);
    assert_eq!(subscriber.shown(), []);
    subscriber.pass(Duration::from_millis(1_990));
    assert_eq!(subscriber.shown(), []);
    subscriber.stirs();
    subscriber.pass(Duration::from_millis(20));
    assert!(subscriber.stirs());
    assert_eq!(subscriber.shown(), [30]);
    subscriber.data(0, 1, 2, (5, strangers), 50);
    assert_eq!(subscriber.shown(), [50]);
}

#[test]
fn a_writer_that_never_tells_how_far_it_is_is_waited_for_once() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    subscriber.heartbeat(1, (1, 0), Some([1, 1, 0]));
    subscriber.heartbeat(2, (1, 0), None);
    subscriber.data(0, 1, 1, (3, BOTH), 30);
    assert_eq!(subscriber.shown(), []);
    subscriber.pass(Duration::from_millis(2_010));
    assert_eq!(subscriber.shown(), [30]);
    subscriber.data(0, 1, 2, (5, BOTH), 50);
    assert_eq!(subscriber.shown(), [50]);
    subscriber.asked();
    subscriber.pass(Duration::from_secs(10));
    assert_eq!(subscriber.asked(), []);
    // Until it does.
    subscriber.heartbeat(2, (1, 0), Some([5, 5, 4]));
    subscriber.data(0, 1, 3, (8, BOTH), 80);
    assert_eq!(subscriber.shown(), []);
}

#[test]
fn publishers_that_tell_nothing_of_their_writers_make_nobody_wait() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    subscriber.data(0, 1, 1, (3, &[]), 30);
    assert_eq!(subscriber.shown(), [30]);
}

#[test]
fn two_readers_of_one_writer_show_its_samples_together() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    subscriber.loses(2);
    subscriber.discovers(1, Some(1));
    subscriber.known = vec![1];
    subscriber.tell_known();
    for number in 1..=2 {
        subscriber.data(0, 1, number, (number, &[1]), 10);
    }
    assert_eq!(subscriber.shown(), [10], "the second must not overtake the first of the other reader");
    subscriber.data(1, 1, 1, (1, &[1]), 11);
    assert_eq!(subscriber.shown(), [11, 10]);
    subscriber.data(1, 1, 2, (2, &[1]), 12);
    assert_eq!(subscriber.shown(), [12]);
}

#[test]
fn a_set_waits_for_a_writer_that_is_not_matched_yet() {
    let mut subscriber = Subscriber::new(2, &ordered(true));
    subscriber.loses(2);
    let writers: &[u8] = &[1, 3];
    subscriber.part(0, 1, 1, 1, (1, 1), 10);
    subscriber.end(0, 1, 2, 3, 1, writers);
    assert_eq!(subscriber.shown(), []);
    subscriber.discovers(3, Some(1));
    assert_eq!(subscriber.shown(), [], "its part is still to come");
    subscriber.part(1, 3, 1, 2, (1, 1), 20);
    subscriber.end(1, 3, 2, 3, 1, writers);
    assert_eq!(subscriber.shown(), [10, 20]);
}

#[test]
fn a_set_is_not_waited_for_where_its_writer_was_not_matched() {
    let mut subscriber = Subscriber::new(2, &ordered(true));
    subscriber.part(0, 1, 1, 1, (1, 1), 10);
    subscriber.end(0, 1, 2, 3, 1, BOTH);
    assert_eq!(subscriber.shown(), []);
    // What this one wrote was before the match: its heartbeat begins behind.
    subscriber.heartbeat(2, (3, 2), Some([3, 3, 2]));
    assert_eq!(subscriber.shown(), [10]);
}

#[test]
fn a_set_that_one_writer_never_ends_is_dropped_everywhere() {
    let mut subscriber = Subscriber::new(2, &ordered(true));
    subscriber.part(0, 1, 1, 1, (1, 1), 10);
    subscriber.part(1, 2, 1, 2, (1, 1), 20);
    subscriber.end(0, 1, 2, 3, 1, BOTH);
    subscriber.pass(Duration::from_millis(2_010));
    assert_eq!(subscriber.shown(), []);
    subscriber.end(1, 2, 2, 3, 1, BOTH);
    assert_eq!(subscriber.shown(), [], "too late for a set of which the rest is gone");
    assert!(subscriber.readers.iter_mut().all(|it| it.reader.sample_lost_status().total_count == 1));
    subscriber.data(1, 2, 3, (4, BOTH), 40);
    assert_eq!(subscriber.shown(), [40]);
}

#[test]
fn the_samples_of_a_set_are_shown_in_the_order_of_all_its_writers() {
    let mut subscriber = Subscriber::new(1, &ordered(true));
    subscriber.discovers(2, Some(0));
    subscriber.readers.push(Bench::new(ordered(true)));
    subscriber.part(0, 1, 1, 1, (1, 1), 10);
    subscriber.part(0, 1, 2, 3, (1, 1), 30);
    subscriber.end(0, 1, 3, 5, 1, BOTH);
    let part = |number: i64, group: i64| InlineQos {
        coherent_set: Some(SequenceNumber(1)),
        group_coherent_set: Some(SequenceNumber(1)),
        group_sequence_number: Some(SequenceNumber(group)),
        group_writers: (number == 0).then(|| digest(BOTH)),
        ..InlineQos::default()
    };
    subscriber.change(0, 2, 1, &part(1, 2), &payload(7, 20));
    subscriber.change(0, 2, 2, &part(2, 4), &payload(7, 40));
    let end = InlineQos { coherent_set: None, ..part(0, 5) };
    subscriber.change(0, 2, 3, &end, &[]);
    assert_eq!(subscriber.shown(), [10, 20, 30, 40]);
}

#[test]
fn what_waits_is_limited_and_reliable_writers_wait_with_the_rest() {
    let mut limited = config(ordered(false));
    limited.limits.coherent_samples_max = 2;
    let mut subscriber = Subscriber::new(2, &ordered(false));
    subscriber.loses(1);
    subscriber.readers[0] = Bench::with(limited);
    subscriber.discovers(1, Some(0));
    for (number, value) in (1..=4).zip([20, 30, 40, 50]) {
        subscriber.data(0, 1, number, (number + 1, BOTH), value);
    }
    assert_eq!(subscriber.shown(), []);
    subscriber.heartbeat(2, (1, 0), Some([9, 9, 8]));
    assert_eq!(subscriber.shown(), [20, 30, 40, 50]);
    assert_eq!(subscriber.readers[0].reader.sample_lost_status().total_count, 0);
}

#[test]
fn a_reader_that_is_full_makes_only_itself_wait() {
    let mut subscriber = Subscriber::new(2, &ordered(false));
    let mut full = ordered(false);
    full.resource_limits.max_samples = 1;
    subscriber.loses(2);
    subscriber.readers[1] = Bench::new(full);
    subscriber.discovers(2, Some(1));
    let values = |subscriber: &mut Subscriber, at: usize| subscriber.readers[at].values();
    let settle = |subscriber: &mut Subscriber| loop {
        let mut members = Vec::new();
        subscriber.readers.iter().for_each(|bench| bench.reader.group_members(bench.now, &mut members));
        let room = |publisher, number| room_of(&subscriber.readers, publisher, number);
        let Some(verdict) = next_verdict(&members, room) else { break };
        for Bench { reader, now, out, .. } in &mut subscriber.readers {
            reader.carry_out_verdict(*now, verdict, out);
        }
    };
    subscriber.data(1, 2, 1, (1, BOTH), 10);
    subscriber.data(1, 2, 2, (2, BOTH), 20);
    subscriber.data(0, 1, 1, (3, BOTH), 30);
    settle(&mut subscriber);
    assert_eq!(subscriber.readers[1].reader.sample_rejected_status().count.total_count, 1);
    assert_eq!(values(&mut subscriber, 0), [30]);
    assert_eq!(values(&mut subscriber, 1), [10]);
    settle(&mut subscriber);
    assert_eq!(values(&mut subscriber, 1), [20], "not lost");
}

#[test]
fn what_finds_no_room_makes_what_other_writers_wrote_later_wait_in_the_same_reader() {
    let mut full = ordered(true);
    full.resource_limits.max_samples_per_instance = 1;
    let mut subscriber = Subscriber::new(1, &full);
    subscriber.discovers(2, Some(0));
    // There is no room for 20 before 10 is taken; there would be for 30, and for the set.
    subscriber.keyed(1, 1, 1, 7, 10);
    subscriber.keyed(2, 1, 2, 7, 20);
    subscriber.keyed(1, 2, 3, 8, 30);
    subscriber.part(0, 1, 3, 4, (3, 4), 40);
    subscriber.end(0, 1, 4, 5, 4, BOTH);
    subscriber.end(0, 2, 2, 5, 4, BOTH);
    assert!(subscriber.verdicts() < 10, "one sample after the other, not for ever");
    assert_eq!(subscriber.readers[0].values(), [10]);
    assert!(subscriber.verdicts() < 10);
    assert_eq!(subscriber.readers[0].values(), [20, 30, 40]);
}

/// Both writers are heard before they write. The first writes group number 1, and its part of a set, number
/// 2; of the second nothing came yet.
fn half_of_a_set() -> Subscriber {
    let mut subscriber = Subscriber::new(2, &ordered(true));
    subscriber.heartbeat(1, (1, 0), Some([0, 1, 0]));
    subscriber.heartbeat(2, (1, 0), Some([0, 1, 0]));
    subscriber.data(0, 1, 1, (1, BOTH), 10);
    subscriber.part(0, 1, 2, 2, (2, 2), 20);
    subscriber.end(0, 1, 3, 4, 2, BOTH);
    assert_eq!(subscriber.shown(), [10]);
    subscriber
}

#[test]
fn a_set_of_which_a_writer_has_replaced_all_its_part_is_not_shown() {
    let mut subscriber = half_of_a_set();
    // After an outage, KEEP_LAST has left only the end of it.
    subscriber.gap(1, 2, (1, 1), 0);
    assert_eq!(subscriber.shown(), []);
    subscriber.end(1, 2, 2, 4, 2, BOTH);
    assert_eq!(subscriber.shown(), []);
    // The next set is whole again, and so is what is between.
    subscriber.data(1, 2, 3, (5, BOTH), 50);
    subscriber.part(1, 2, 4, 6, (4, 6), 60);
    subscriber.end(1, 2, 5, 7, 6, BOTH);
    subscriber.end(0, 1, 4, 7, 6, BOTH);
    assert_eq!(subscriber.shown(), [50, 60]);
}

#[test]
fn a_set_of_which_a_writer_has_not_even_the_end_any_more_is_not_shown() {
    let mut subscriber = half_of_a_set();
    subscriber.heartbeat(2, (3, 2), Some([4, 5, 4]));
    assert_eq!(subscriber.shown(), []);
    subscriber.data(1, 2, 3, (5, BOTH), 50);
    assert_eq!(subscriber.shown(), [50]);
}

#[test]
fn what_was_lost_before_a_set_began_makes_it_no_less_whole() {
    let whole = |lose: &dyn Fn(&mut Subscriber)| {
        let mut subscriber = Subscriber::new(2, &ordered(true));
        subscriber.heartbeat(1, (1, 0), Some([0, 1, 0]));
        subscriber.heartbeat(2, (1, 0), Some([0, 1, 0]));
        lose(&mut subscriber);
        subscriber.part(0, 1, 1, 6, (1, 6), 60);
        subscriber.end(0, 1, 2, 8, 6, BOTH);
        assert_eq!(subscriber.shown(), []);
        subscriber.end(1, 2, 4, 8, 6, BOTH);
        subscriber.shown() == [60]
    };
    // Three changes of the second writer, when its publisher had written five.
    assert!(whole(&|it| it.heartbeat(2, (4, 3), Some([5, 5, 4]))), "the writer lost sight of it for a while");
    assert!(whole(&|it| {
        it.heartbeat(2, (1, 3), Some([5, 1, 5]));
        it.gap(1, 2, (1, 3), 0);
    }));
    assert!(
        !whole(&|it| {
            it.heartbeat(2, (1, 2), Some([5, 1, 5]));
            it.gap(1, 2, (1, 3), 0);
        }),
        "the third came after that, and may be of the set"
    );
}

#[test]
fn what_came_before_the_first_heartbeat_is_not_lost() {
    let mut subscriber = Subscriber::new(2, &ordered(true));
    subscriber.heartbeat(1, (1, 0), Some([0, 1, 0]));
    // The sample overtakes the heartbeat that was sent before it.
    subscriber.data(1, 2, 1, (1, BOTH), 10);
    assert_eq!(subscriber.shown(), [10]);
    subscriber.heartbeat(2, (1, 0), Some([0, 1, 0]));
    subscriber.part(0, 1, 1, 2, (1, 2), 20);
    subscriber.end(1, 2, 2, 3, 2, BOTH);
    subscriber.end(0, 1, 2, 3, 2, BOTH);
    assert_eq!(subscriber.shown(), [20]);
}

#[test]
fn a_set_is_shown_without_what_a_filter_took_of_it() {
    let mut subscriber = half_of_a_set();
    subscriber.gap(1, 2, (1, 1), 1);
    subscriber.end(1, 2, 2, 4, 2, BOTH);
    assert_eq!(subscriber.shown(), [20]);
}

#[test]
fn a_late_joiner_gets_what_is_left_of_a_set() {
    let mut subscriber = Subscriber::new(2, &ordered(true));
    // What the second writer wrote before it was heard first is not lost to this subscriber.
    subscriber.heartbeat(2, (3, 2), Some([4, 5, 4]));
    subscriber.part(0, 1, 1, 2, (1, 2), 20);
    subscriber.end(0, 1, 2, 4, 2, BOTH);
    assert_eq!(subscriber.shown(), [20]);
}

#[test]
fn a_set_that_is_lost_waits_behind_a_sample_for_which_there_is_no_room() {
    let mut full = ordered(true);
    full.resource_limits.max_samples = 1;
    let mut subscriber = Subscriber::new(1, &full);
    let only: &[u8] = &[1];
    subscriber.data(0, 1, 1, (1, only), 10);
    subscriber.data(0, 1, 2, (2, only), 20);
    // The first of the set never comes.
    subscriber.gap(0, 1, (3, 3), 0);
    subscriber.part(0, 1, 4, 4, (3, 3), 40);
    subscriber.end(0, 1, 5, 5, 3, only);
    assert_eq!(subscriber.verdicts(), 2, "nobody looks for ever at what waits for room");
    assert_eq!(subscriber.readers[0].values(), [10]);
    assert_eq!(subscriber.verdicts(), 2);
    assert_eq!(subscriber.readers[0].values(), [20], "not lost with the set");
}

#[test]
fn what_waits_of_a_writer_that_is_gone_keeps_its_place_behind_what_finds_no_room() {
    let mut full = ordered(false);
    full.resource_limits.max_samples_per_instance = 1;
    let mut subscriber = Subscriber::new(1, &full);
    subscriber.discovers(2, Some(0));
    subscriber.keyed(1, 1, 1, 7, 10);
    subscriber.keyed(1, 2, 2, 7, 20);
    subscriber.keyed(2, 1, 3, 8, 30);
    subscriber.verdicts();
    subscriber.loses(2);
    subscriber.verdicts();
    assert_eq!(subscriber.readers[0].values(), [10]);
    subscriber.verdicts();
    assert_eq!(subscriber.readers[0].values(), [20, 30]);
    assert_eq!(subscriber.readers[0].reader.sample_lost_status().total_count, 0);
}

#[test]
fn what_waits_of_a_writer_that_is_gone_waits_for_those_that_are_not() {
    let mut subscriber = Subscriber::new(1, &ordered(false));
    subscriber.discovers(2, Some(0));
    subscriber.keyed(2, 1, 3, 8, 30);
    subscriber.loses(2);
    assert!(subscriber.stirs());
    assert_eq!(subscriber.shown(), []);
    let Bench { reader, .. } = &mut subscriber.readers[0];
    assert_eq!(reader.subscription_matched_status().current_count, 1);
    assert!(!reader.is_matched(of_publisher(2)));
    subscriber.keyed(1, 1, 1, 7, 10);
    subscriber.keyed(1, 2, 2, 7, 20);
    assert!(!subscriber.readers[0].reader.has_instance(handle(8)));
    assert_eq!(subscriber.verdicts(), 3);
    let samples = subscriber.readers[0].take();
    assert_eq!(values(&samples), [10, 20, 30]);
    let last = samples.last().map(|it| (it.info.valid_data, it.info.instance_state));
    assert_eq!(last, Some((false, InstanceState::NotAliveNoWriters)), "behind what it wrote");
}

#[test]
fn what_waits_of_a_writer_that_comes_back_is_shown_before_what_comes_anew() {
    let mut subscriber = Subscriber::new(1, &ordered(false));
    subscriber.discovers(2, Some(0));
    subscriber.keyed(2, 1, 3, 8, 30);
    subscriber.loses(2);
    assert_eq!(subscriber.shown(), []);
    subscriber.discovers(2, Some(0));
    assert_eq!(subscriber.readers[0].values(), [30]);
    subscriber.keyed(2, 1, 3, 8, 30);
    subscriber.heartbeat(1, (1, 0), Some([3, 4, 3]));
    assert_eq!(subscriber.shown(), [30]);
    assert_eq!(subscriber.readers[0].reader.matched_writers().count(), 2);
}

#[test]
fn where_a_heartbeat_takes_back_what_another_said_to_be_gone_others_wait_again() {
    let mut subscriber = Subscriber::new(1, &ordered(false));
    subscriber.discovers(2, Some(0));
    subscriber.heartbeat(2, (1, 0), Some([1, 1, 0]));
    subscriber.heartbeat(1, (1, 1), Some([1, 1, 1]));
    subscriber.data(0, 1, 1, (1, BOTH), 10);
    assert_eq!(subscriber.shown(), [10]);
    // Forged: the second change is not gone.
    subscriber.heartbeat(1, (4, 3), Some([5, 5, 4]));
    subscriber.count = -1_000;
    subscriber.heartbeat(1, (2, 2), Some([2, 2, 2]));
    subscriber.data(0, 2, 1, (3, BOTH), 30);
    assert_eq!(subscriber.shown(), [], "the second change may come after all");
    subscriber.data(0, 1, 2, (2, BOTH), 20);
    subscriber.heartbeat(1, (2, 2), Some([3, 2, 2]));
    assert_eq!(subscriber.shown(), [20, 30]);
}
