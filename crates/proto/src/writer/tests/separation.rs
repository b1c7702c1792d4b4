//! TIME_BASED_FILTER applied before sending: what all readers of a route would drop is not sent.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn filtering(reader: MatchedReader, separation: Duration) -> MatchedReader {
    MatchedReader { qos: QosSet { time_based_filter: separation, ..reader.qos.clone() }, ..reader }
}

/// Writers of topics without key.
impl Story {
    fn without_key(qos: QosSet, limits: WriterLimits, readers: &[MatchedReader]) -> Self {
        let mut story = Self::with_limits(qos, limits);
        story.writer.config.keyed = false;
        readers.iter().for_each(|reader| story.matched(reader));
        story.sent();
        story
    }

    fn write_more(&mut self, samples: usize) {
        (0..samples).for_each(|_| _ = self.write_next());
    }

    fn write_next(&mut self) -> SequenceNumber {
        let payload = Payload::from_vec(vec![7; 20]);
        let Self { writer, now, out, .. } = self;
        writer.write(*now, ChangeKind::Alive, InstanceHandle::NIL, payload, now.wall, out).unwrap()
    }

    /// A sample each 100 ms: which were sent, and of which a GAP told.
    fn write_for(&mut self, samples: usize, reader: &MatchedReader) -> (Vec<i64>, Vec<i64>) {
        let (mut shown, mut gone) = (Vec::new(), Vec::new());
        for _ in 0..samples {
            let last = self.write_next();
            self.pass(Duration::from_millis(100));
            let sent = self.sent();
            shown.extend(data(&sent));
            gone.extend(gaps(&sent, last.0 + 1));
            if let Some(last) = shown.last() {
                self.acknack(reader, last + 1, &[]).unwrap();
            }
        }
        (shown, gone)
    }
}

#[test]
fn readers_that_filter_by_time_are_sent_the_first_and_then_the_last_of_each_separation() {
    for qos in [QosSet::writer(), QosSet::writer().keep_all()] {
        let readers = [filtering(reliable(6), SECOND), filtering(reader(7, QosSet::reader()), SECOND)];
        let mut story = Story::without_key(qos, WriterLimits::default(), &readers);
        let (shown, gone) = story.write_for(25, &readers[0]);
        assert_eq!(shown, [1, 11, 22], "a sixteenth of the separation late, so that none is too early");
        assert_eq!(gone, (2..=10).chain(12..=21).collect::<Vec<_>>());
        story.pass(Duration::from_millis(900));
        assert_eq!(data(&story.sent()), [25], "the last is not lost");
        story.acknack(&readers[0], 26, &[]).unwrap();
        assert_eq!(story.writer.next_timeout(), None);
        story.pass(SECOND);
        story.write_next();
        assert_eq!(data(&story.sent()), [26], "after a pause it leaves at once");
    }
}

#[test]
fn the_writer_sleeps_while_a_sample_waits_for_its_separation() {
    let reader = filtering(reliable(6), SECOND);
    let mut story =
        Story::without_key(QosSet::writer(), WriterLimits::default(), std::slice::from_ref(&reader));
    story.write_next();
    story.sent();
    story.acknack(&reader, 2, &[]).unwrap();
    story.write_next();
    let mut wakes = 0;
    while let Some(due) = story.writer.next_timeout().filter(|_| data(&story.sent()).is_empty()) {
        story.advance_to(due.max(story.now.mono));
        story.writer.timeout(story.now, &mut story.out);
        wakes += 1;
    }
    assert!((1..5).contains(&wakes), "{wakes} wake-ups for one sample");
}

#[test]
fn where_one_reader_of_a_route_does_not_filter_all_get_everything() {
    let there = [filtering(reliable(6), SECOND), reliable(7)];
    let mut story = Story::without_key(QosSet::writer(), WriterLimits::default(), &there);
    story.write_more(5);
    story.pass(Duration::from_millis(10));
    assert_eq!(data(&story.sent()), [1, 2, 3, 4, 5]);
    story.writer.unmatch_reader(story.now, there[1].guid, &mut story.out);
    story.write_next();
    story.write_next();
    assert_eq!(data(&story.sent()), [6], "the other left");
    story.matched(&there[1]);
    assert_eq!(data(&story.sent()), [7], "what waited leaves before one comes that wants all");
    story.write_next();
    story.write_next();
    story.pass(Duration::from_millis(10));
    assert_eq!(data(&story.sent()), [8, 9]);
    let far = filtering(MatchedReader { same_host: false, ..reliable(8) }, SECOND);
    story.matched(&far);
    story.sent();
    story.write_more(3);
    story.pass(Duration::from_millis(10));
    let went = story.sent_by_datagram();
    let to_far = went.iter().filter(|(to, _)| to.contains(&far.locators[0]));
    assert_eq!(to_far.flat_map(|(_, sent)| data(sent)).collect::<Vec<_>>(), [10], "each route by itself");
}

#[test]
fn a_flush_a_new_filter_and_a_full_history_send_what_waits() {
    let reader = filtering(reliable(6), SECOND);
    let mut story =
        Story::without_key(QosSet::writer(), WriterLimits::default(), std::slice::from_ref(&reader));
    story.write_more(3);
    story.sent();
    story.writer.flush(story.now, &mut story.out);
    assert_eq!(data(&story.sent()), [3]);
    story.write_more(3);
    assert!(data(&story.sent()).is_empty());
    story.writer.request_acknowledgments(story.now, &mut story.out);
    assert_eq!(data(&story.sent()), [6]);
    story.write_more(2);
    story.matched(&reliable(6));
    assert_eq!(data(&story.sent()), [8], "it filters no more");
    story.write_next();
    story.pass(Duration::from_millis(1));
    assert_eq!(data(&story.sent()), [9]);
}

#[test]
fn instances_and_short_separations_are_left_to_the_readers() {
    let mut story = Story::new(QosSet::writer());
    story.matched(&filtering(reliable(6), SECOND));
    story.sent();
    (1..=4).for_each(|instance| _ = story.write(instance % 2, b"sample").unwrap());
    assert_eq!(data(&story.sent()), [1, 2, 3, 4]);
    let reader = filtering(reliable(6), Duration::from_micros(900));
    let mut story = Story::without_key(QosSet::writer(), unbatched(), &[reader]);
    story.write_more(4);
    assert_eq!(data(&story.sent()), [1, 2, 3, 4]);
}

fn unbatched() -> WriterLimits {
    WriterLimits { batch_bytes: 0, ..WriterLimits::default() }
}

#[test]
fn a_long_sample_is_sent_to_its_end_and_the_next_waits() {
    let reader = filtering(reliable(6), SECOND);
    let mut story =
        Story::without_key(QosSet::writer(), WriterLimits::default(), std::slice::from_ref(&reader));
    let Story { writer, now, out, .. } = &mut story;
    let payload = Payload::from_vec(vec![7; 400_000]);
    writer.write(*now, ChangeKind::Alive, InstanceHandle::NIL, payload, now.wall, out).unwrap();
    story.write_next();
    story.pass(Duration::from_millis(50));
    let sent = story.sent();
    let fragments = sent.iter().filter(|it| matches!(it, Sent::Fragment(_))).count();
    assert!(fragments >= 6, "{fragments}");
    assert!(data(&sent).is_empty(), "the next waits");
    story.acknack(&reader, 2, &[]).unwrap();
    story.pass(Duration::from_millis(1_100));
    assert_eq!(data(&story.sent()), [2]);
}

#[test]
fn readers_with_a_deadline_hardly_longer_than_their_separation_are_sent_everything() {
    let mut reader = filtering(reliable(6), SECOND);
    reader.qos.deadline = Duration::from_millis(1_050);
    let mut story =
        Story::without_key(QosSet::writer(), WriterLimits::default(), std::slice::from_ref(&reader));
    let mut sent = Vec::new();
    for _ in 0..21 {
        story.write_next();
        sent.extend(data(&story.sent()));
        story.pass(Duration::from_millis(50));
    }
    assert_eq!(sent, (1..=21).collect::<Vec<_>>(), "the reader has the next in time");
}

#[test]
fn of_a_coherent_set_that_waits_for_a_burst_nothing_is_left_out() {
    let reader = filtering(reader(6, QosSet::reader()), SECOND);
    let mut qos = QosSet::writer().keep_all();
    qos.presentation.coherent_access = true;
    let mut story = Story::without_key(qos, WriterLimits::default(), std::slice::from_ref(&reader));
    story.writer.begin_coherent_changes(SequenceNumber(0));
    for _ in 0..4 {
        let Story { writer, now, out, .. } = &mut story;
        let payload = Payload::from_vec(vec![7; 150_000]);
        writer.write(*now, ChangeKind::Alive, InstanceHandle::NIL, payload, now.wall, out).unwrap();
    }
    let Story { writer, now, out, .. } = &mut story;
    writer.end_coherent_changes(*now, SequenceNumber(0), out);
    assert!(story.writer.routes.unsent().is_some_and(|first| first < SequenceNumber(4)));
    story.pass(Duration::from_secs(2));
    let sent = story.sent();
    assert_eq!(gaps(&sent, 9), [0; 0], "no sample of the set is declared irrelevant");
    assert_eq!(data(&sent), [5], "the end of the set");
}

#[test]
fn a_reader_that_has_what_it_was_sent_owes_nothing_while_another_route_goes_on() {
    let near = reliable(6);
    let far = filtering(MatchedReader { same_host: false, ..reliable(7) }, Duration::from_secs(3_600));
    let mut story = Story::without_key(
        QosSet::writer().keep_all(),
        WriterLimits::default(),
        &[near.clone(), far.clone()],
    );
    for number in 1..=20 {
        story.write_next();
        story.acknack(&near, number + 1, &[]).unwrap();
        story.acknack(&far, 2, &[]).unwrap();
        story.pass(Duration::from_millis(10));
    }
    story.acknack(&near, 21, &[]).unwrap();
    story.sent();
    let (mut wakes, end) = (0, story.now.mono.after(Duration::from_secs(60)).unwrap());
    while let Some(due) = story.writer.next_timeout().filter(|due| *due <= end) {
        story.advance_to(due.max(story.now.mono));
        story.writer.timeout(story.now, &mut story.out);
        wakes += 1;
    }
    assert!(wakes < 10, "{wakes} wake-ups in a minute");
}

#[test]
fn a_reader_is_asked_again_for_what_its_route_sent_while_another_waits() {
    let near = filtering(reliable(6), Duration::from_secs(3_600));
    let far = filtering(MatchedReader { same_host: false, ..reliable(7) }, SECOND);
    let readers = [near.clone(), far.clone()];
    let mut story = Story::without_key(QosSet::writer(), WriterLimits::default(), &readers);
    story.write_next();
    readers.iter().for_each(|reader| story.acknack(reader, 2, &[]).unwrap());
    story.write_next();
    story.sent();
    story.pass(Duration::from_millis(1_100));
    assert_eq!(data(&story.sent()), [2], "which is lost");
    story.pass(SECOND);
    let asked = story.sent().iter().filter(|it| matches!(it, Sent::Heartbeat(it) if !it.final_flag)).count();
    assert!(asked >= 3, "{asked}");
}

#[test]
fn a_history_that_is_full_sends_what_waits() {
    for (near, kind) in [(true, reliable(6)), (false, reliable(6)), (true, reader(6, QosSet::reader()))] {
        let reader = filtering(MatchedReader { same_host: near, ..kind }, Duration::from_secs(3_600));
        let mut qos = QosSet::writer().keep_all();
        qos.resource_limits.max_samples = 4;
        let mut story = Story::without_key(qos, WriterLimits::default(), std::slice::from_ref(&reader));
        let mut last = 0;
        for number in 1..=40 {
            let payload = Payload::from_vec(vec![7; 20]);
            for tries in 0.. {
                assert!(tries < 3, "sample {number}");
                let Story { writer, now, out, .. } = &mut story;
                let written = writer.write(
                    *now,
                    ChangeKind::Alive,
                    InstanceHandle::NIL,
                    payload.clone(),
                    now.wall,
                    out,
                );
                let sent = story.sent();
                last = data(&sent).last().copied().unwrap_or(last);
                if reader.qos.is_reliable() {
                    story.acknack(&reader, last + 1, &[]).unwrap();
                }
                if written.is_ok() {
                    break;
                }
                story.pass(Duration::from_millis(5));
            }
        }
        assert!(last > 30);
    }
}
