//! How coherent sets are marked and kept (RTPS 2.5 §8.7.5, §8.7.6).

use super::*;
use crate::qos::{AccessScope, Presentation};

fn coherent(access_scope: AccessScope) -> QosSet {
    let presentation = Presentation { access_scope, coherent_access: true, ordered_access: false };
    QosSet { presentation, ..QosSet::writer().keep_all() }
}

/// Number, first number of the set, group set and group number of what was sent.
type Marked = (i64, Option<i64>, Option<i64>, Option<i64>);

impl Story {
    fn begin(&mut self, group: i64) {
        self.writer.begin_coherent_changes(SequenceNumber(group));
    }

    fn end(&mut self, group: i64) {
        self.writer.end_coherent_changes(self.now, SequenceNumber(group), &mut self.out);
    }

    fn marked(&mut self) -> Vec<Marked> {
        let of = |number: Option<SequenceNumber>| number.map(|number| number.0);
        let marks = |sent: Sent| match sent {
            Sent::Data(DataSent { number, qos, .. }) => Some((
                number,
                of(qos.coherent_set),
                of(qos.group_coherent_set),
                of(qos.group_sequence_number),
            )),
            _ => None,
        };
        self.sent().into_iter().filter_map(marks).collect()
    }
}

#[test]
fn fact_38_the_samples_of_a_set_carry_its_first_number_and_an_empty_data_ends_it() {
    let mut story = Story::new(coherent(AccessScope::Topic));
    story.matched(&reliable(7));
    story.write(1, b"before").unwrap();
    story.begin(1);
    story.write(1, b"one").unwrap();
    story.write(2, b"two").unwrap();
    story.end(2);
    let sent = story.sent();
    let sets: Vec<_> = sent
        .iter()
        .filter_map(|sent| match sent {
            Sent::Data(data) => Some((data.number, data.qos.coherent_set.map(|first| first.0))),
            _ => None,
        })
        .collect();
    assert_eq!(sets, [(1, None), (2, Some(2)), (3, Some(2)), (4, None)]);
    let end = sent.iter().find_map(|sent| match sent {
        Sent::Data(data) if data.number == 4 => Some(data),
        _ => None,
    });
    let end = end.unwrap();
    assert!(end.payload.is_empty() && !end.key_only);
    assert_eq!(end.qos, InlineQos::default());
}

#[test]
fn without_coherent_access_or_without_samples_there_is_nothing_to_end() {
    let mut plain = Story::new(QosSet::writer().keep_all());
    let mut empty = Story::new(coherent(AccessScope::Instance));
    for story in [&mut plain, &mut empty] {
        story.matched(&reliable(7));
        story.begin(1);
    }
    plain.write(1, b"one").unwrap();
    plain.end(2);
    assert_eq!(plain.marked(), [(1, None, None, None)]);
    empty.end(2);
    assert_eq!(empty.marked(), []);
}

#[test]
fn fact_38_under_group_scope_every_writer_ends_the_set() {
    let group = Arc::new(WriterGroup::default());
    (0..4).for_each(|_| _ = group.advance());
    let story = || {
        let limits = WriterLimits { batch_bytes: 0, ..WriterLimits::default() };
        Story::of_group(coherent(AccessScope::Group), limits, Some(Arc::clone(&group)))
    };
    let (mut one, mut other) = (story(), story());
    for story in [&mut one, &mut other] {
        story.matched(&reliable(7));
        story.begin(5);
    }
    one.write(1, b"one").unwrap();
    one.end(6);
    other.end(6);
    assert_eq!(one.marked(), [(1, Some(1), Some(5), Some(5)), (2, None, Some(5), Some(6))]);
    assert_eq!(other.marked(), [(1, None, Some(5), Some(6))]);
}

#[test]
fn a_late_joiner_gets_the_sets_with_their_ends() {
    let mut story = Story::new(coherent(AccessScope::Topic).durability(Durability::TransientLocal));
    for _ in 0..2 {
        story.begin(1);
        story.write(1, b"one").unwrap();
        story.write(2, b"two").unwrap();
        story.end(1);
    }
    story.matched(&durable(7));
    let sets: Vec<_> = story.marked().into_iter().map(|(number, set, ..)| (number, set)).collect();
    let expected = [(1, Some(1)), (2, Some(1)), (3, None), (4, Some(4)), (5, Some(4)), (6, None)];
    assert_eq!(sets, expected);
}

#[test]
fn the_end_of_a_set_leaves_the_history_with_the_last_of_its_samples() {
    let mut qos = coherent(AccessScope::Topic).keep_last(1).durability(Durability::TransientLocal);
    qos.resource_limits.max_samples = 3;
    let mut story = Story::new(qos);
    // Written once: stays in front for ever.
    story.write(9, b"old").unwrap();
    for _ in 0..1_000 {
        story.begin(1);
        story.write(1, b"one").unwrap();
        story.write(2, b"two").unwrap();
        story.end(1);
    }
    assert!(story.writer.history.entries_held() < 200, "{}", story.writer.history.entries_held());
    story.matched(&durable(7));
    assert_eq!(data(&story.sent()), [1, 2_999, 3_000, 3_001]);
}

#[test]
fn the_end_of_a_set_is_repeated_even_when_its_samples_are_acknowledged() {
    let mut story = Story::new(coherent(AccessScope::Topic));
    let reader = reliable(7);
    story.matched(&reader);
    story.begin(1);
    story.write(1, b"one").unwrap();
    story.acknack(&reader, 2, &[]).unwrap();
    story.end(1);
    story.sent();
    story.pass(Duration::from_millis(10));
    story.acknack(&reader, 2, &[2]).unwrap();
    story.pass(Duration::from_millis(10));
    assert_eq!(data(&story.sent()), [2]);
    story.acknack(&reader, 3, &[]).unwrap();
    assert_eq!(story.writer.history.len(), 0);
}

#[test]
fn ends_of_sets_count_towards_no_limit() {
    let mut qos = coherent(AccessScope::Topic).durability(Durability::TransientLocal);
    qos.resource_limits.max_samples = 2;
    let mut story = Story::new(qos);
    for _ in 0..4 {
        story.begin(1);
        story.write(1, b"one").unwrap();
        story.end(1);
    }
    story.matched(&durable(7));
    assert_eq!(data(&story.sent()), [5, 6, 7, 8]);
}

#[test]
fn of_a_set_that_left_nothing_is_held() {
    let mut story = Story::new(coherent(AccessScope::Topic));
    let reader = reliable(7);
    story.matched(&reader);
    for round in 0..3 {
        story.begin(1);
        (0..5).for_each(|_| assert!(story.write(1, b"data").is_ok()));
        story.end(1);
        story.write(1, b"after").unwrap();
        assert_eq!(story.writer.history.sets_held(), 1, "round {round}");
        // What waits for others leaves.
        story.pass(Duration::from_millis(1));
        story.acknack(&reader, story.writer.history.last().0 + 1, &[]).unwrap();
        assert_eq!((story.writer.history.len(), story.writer.history.sets_held()), (0, 0), "round {round}");
    }
}
