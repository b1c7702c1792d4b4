//! Readers that answer nothing, and how long they are waited for.

use super::*;
use crate::qos::{History, Reliability, ReliabilityKind, ResourceLimits};
use crate::tuning::writer::{UNRESPONSIVE_AFTER, UNRESPONSIVE_PAUSE, UNRESPONSIVE_REQUESTS_MIN};

const MAX_BLOCKING: Duration = Duration::from_millis(100);

/// KEEP_ALL, three samples, and a `write` that may wait for 100 ms.
fn keep_all() -> QosSet {
    QosSet {
        reliability: Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: MAX_BLOCKING },
        history: History { kind: HistoryKind::KeepAll, depth: 1 },
        resource_limits: ResourceLimits { max_samples: 3, max_instances: -1, max_samples_per_instance: -1 },
        ..QosSet::writer()
    }
}

impl Story {
    /// Writes until there is no room.
    fn fill_up(&mut self) {
        while self.write(1, b"data").is_ok() {}
    }

    /// As a `write` that waits for as long as it may; whether there was room in the end.
    fn write_in_time(&mut self) -> bool {
        self.write(1, b"data").is_ok() || {
            self.pass(MAX_BLOCKING);
            self.write(1, b"data").is_ok()
        }
    }

    fn behind(&self) -> Vec<ReaderBehind> {
        self.writer.readers_behind(self.now.mono).collect()
    }

    fn was_told_of_progress(&mut self) -> bool {
        self.events().contains(&Event::Progress { endpoint: WRITER.entity })
    }
}

#[test]
fn a_reader_that_never_answers_costs_one_write_its_blocking_time_and_no_more() {
    let (genuine, stranger) = (reliable(2), reliable(7));
    let mut story = Story::new(keep_all());
    story.matched(&genuine);
    story.acknack(&genuine, 1, &[]).unwrap();
    story.matched(&stranger);
    story.pass(Duration::from_secs(5));
    story.fill_up();
    story.acknack(&genuine, 4, &[]).unwrap();
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full), "it is waited for");
    assert!(story.write_in_time());
    for number in 5..500 {
        assert!(story.write_in_time());
        story.acknack(&genuine, number + 1, &[]).unwrap();
    }
    let [behind] = story.behind()[..] else { panic!("{:?}", story.behind()) };
    assert_eq!((behind.reader, behind.is_left_out), (stranger.guid, true));
    assert_eq!(story.writer.drops().get(DropReason::ReaderSilent), 3);
    assert!(story.writer.is_acknowledged(story.now.mono, story.writer.last_sequence_number()));
}

#[test]
fn a_reader_that_may_not_know_the_writer_yet_is_given_time() {
    let mut story = Story::new(keep_all());
    story.matched(&reliable(7));
    story.fill_up();
    story.pass(Duration(UNRESPONSIVE_AFTER.0 - 3 * MAX_BLOCKING.0));
    assert!(!story.write_in_time());
    story.pass(Duration(2 * MAX_BLOCKING.0));
    assert!(story.write_in_time());
}

#[test]
fn who_answered_before_is_waited_for_until_its_lease_ends() {
    let reader = reliable(7);
    let mut story = Story::new(keep_all());
    story.matched(&reader);
    story.acknack(&reader, 1, &[]).unwrap();
    story.fill_up();
    let last = story.writer.last_sequence_number();
    for _ in 0..600 {
        assert!(!story.write_in_time(), "a process that is stopped loses nothing");
    }
    assert!(!story.writer.is_acknowledged(story.now.mono, last));
    let [behind] = story.behind()[..] else { panic!("{:?}", story.behind()) };
    assert!(!behind.is_left_out && behind.silent_for >= Some(Duration::from_secs(59)), "{behind:?}");
    assert_eq!(story.writer.drops().get(DropReason::ReaderSilent), 0);
    story.sent();
    story.acknack(&reader, 1, &[1, 2, 3]).unwrap();
    assert_eq!(data(&story.sent()), [1, 2, 3]);
    story.writer.unmatch_reader(story.now, reader.guid, &mut story.out);
    assert!(story.write_in_time());
}

#[test]
fn a_reader_of_the_own_process_is_no_stranger() {
    let reader = MatchedReader { is_of_own_process: true, ..reliable(7) };
    let mut story = Story::new(keep_all());
    story.matched(&reader);
    story.fill_up();
    for _ in 0..600 {
        assert!(!story.write_in_time());
    }
    assert!(!story.behind()[0].is_left_out);
}

#[test]
fn a_reader_of_which_few_answers_arrive_is_no_stranger() {
    // Of its answers every tenth arrives, and the first after a second and a half.
    let reader = reliable(7);
    let mut story = Story::new(keep_all());
    story.matched(&reader);
    story.fill_up();
    let mut requests = 0;
    while requests < UNRESPONSIVE_REQUESTS_MIN as usize - 1 {
        story.pass(Duration::from_millis(1));
        requests += heartbeats(&story.sent()).len();
    }
    assert!(!story.write_in_time());
    story.acknack(&reader, 1, &[]).unwrap();
    for _ in 0..100 {
        assert!(!story.write_in_time());
    }
    assert!(!story.behind()[0].is_left_out);
}

#[test]
fn silence_costs_nothing_while_there_is_room() {
    let reader = reliable(7);
    let mut story = Story::new(keep_all());
    story.matched(&reader);
    story.write(1, b"one").unwrap();
    story.pass(Duration::from_secs(3_600));
    story.write(1, b"two").unwrap();
    assert!(!story.behind()[0].is_left_out);
    story.sent();
    story.acknack(&reader, 1, &[1, 2]).unwrap();
    assert_eq!(data(&story.sent()), [1, 2]);
}

#[test]
fn a_reader_that_answers_but_takes_nothing_holds_the_writer_back() {
    let reader = reliable(7);
    let mut story = Story::new(keep_all());
    story.matched(&reader);
    story.fill_up();
    for _ in 0..600 {
        assert!(!story.write_in_time());
        story.acknack(&reader, 1, &[]).unwrap();
    }
    let [behind] = story.behind()[..] else { panic!("{:?}", story.behind()) };
    assert_eq!((behind.behind, behind.silent_for, behind.is_left_out), (3, None, false));
    assert!(behind.to_string().ends_with("which is 3 samples behind and answers"));
}

#[test]
fn who_comes_back_is_told_what_is_gone_and_is_waited_for_again() {
    let reader = reliable(7);
    let mut story = Story::new(keep_all());
    story.matched(&reader);
    story.pass(Duration::from_secs(2));
    story.fill_up();
    assert!(story.write_in_time());
    assert!(story.write_in_time());
    story.sent();
    // An idle writer asks it now and then whether it is there.
    story.pass(Duration::from_secs(60));
    let requests = story.sent().len();
    let most = (60_000_000_000 / UNRESPONSIVE_PAUSE.0) as usize;
    assert!((2..most).contains(&requests), "{requests}");
    let first_held = story.writer.last_sequence_number().0;
    story.acknack(&reader, 1, &(1..=first_held).collect::<Vec<_>>()).unwrap();
    let sent = story.sent();
    assert_eq!(gaps(&sent, first_held - 1), (1..first_held).collect::<Vec<_>>());
    assert!(!story.behind()[0].is_left_out);
    story.fill_up();
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full), "it is waited for again");
    story.acknack(&reader, story.writer.last_sequence_number().0 + 1, &[]).unwrap();
    assert!(story.write(1, b"data").is_ok());
    story.pass(Duration::from_secs(1));
    assert!(story.behind().len() == 1);
}

#[test]
fn late_joiners_history_outlives_a_silent_reader() {
    let qos = QosSet { durability: Durability::TransientLocal, ..keep_all() };
    let reader = durable(7);
    let mut story = Story::new(QosSet {
        history: History { kind: HistoryKind::KeepLast, depth: 3 },
        resource_limits: ResourceLimits::default(),
        ..qos
    });
    story.matched(&reader);
    for _ in 0..3 {
        story.write(1, b"data").unwrap();
    }
    story.pass(Duration::from_secs(60));
    story.sent();
    story.acknack(&reader, 1, &[1, 2, 3]).unwrap();
    assert_eq!(data(&story.sent()), [1, 2, 3]);
}

#[test]
fn a_write_without_end_and_a_wait_for_acknowledgements_of_a_stranger_end() {
    let mut qos = keep_all();
    qos.reliability.max_blocking_time = Duration::INFINITE;
    let reader = reliable(7);
    let mut story = Story::new(qos);
    story.matched(&reader);
    story.fill_up();
    let last = story.writer.last_sequence_number();
    story.pass(Duration::from_secs(19));
    story.events();
    assert!(!story.writer.is_acknowledged(story.now.mono, last));
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full));
    story.pass(Duration::from_secs(2));
    assert!(story.was_told_of_progress(), "who waits looks again");
    assert!(story.writer.is_acknowledged(story.now.mono, last));
    assert!(story.write(1, b"data").is_ok());
}

#[test]
fn waiting_for_acknowledgements_of_a_silent_reader_ends_and_costs_it_nothing() {
    let reader = reliable(7);
    let mut story = Story::new(keep_all());
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.pass(Duration::from_secs(21));
    assert!(story.was_told_of_progress());
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)));
    assert!(!story.behind()[0].is_left_out);
    story.sent();
    story.acknack(&reader, 1, &[1]).unwrap();
    assert_eq!(data(&story.sent()), [1]);
    assert!(!story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)), "it answers again");
}

#[test]
fn a_stranger_that_came_after_all_was_written_is_left_out_as_others_are() {
    let genuine = durable(2);
    let mut story = Story::new(QosSet { durability: Durability::TransientLocal, ..keep_all() });
    story.matched(&genuine);
    story.acknack(&genuine, 1, &[]).unwrap();
    story.fill_up();
    story.matched(&durable(7));
    story.acknack(&genuine, 4, &[]).unwrap();
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full), "it is waited for");
    story.events();
    story.pass(Duration::from_secs(3));
    assert!(story.was_told_of_progress(), "who waits for room is woken");
    assert!(story.write(1, b"data").is_ok());
    assert_eq!(story.writer.drops().get(DropReason::ReaderSilent), 3, "the history it did not get");
}

#[test]
fn a_late_joiner_is_behind_by_what_it_lacks_of_the_history() {
    let qos = QosSet {
        durability: Durability::TransientLocal,
        history: History { kind: HistoryKind::KeepLast, depth: 3 },
        ..QosSet::writer()
    };
    let reader = durable(7);
    let mut story = Story::new(qos);
    for _ in 0..10 {
        story.write(1, b"data").unwrap();
    }
    story.matched(&reader);
    let behind_of = |story: &Story| story.writer.reader_routes(story.now.mono).next().unwrap().behind;
    let [behind] = story.behind()[..] else { panic!("{:?}", story.behind()) };
    assert_eq!((behind.acknowledged.0, behind.behind, behind.matched_at.0), (7, 3, 10));
    assert_eq!(behind_of(&story), 3);
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(10)), "nobody waits for that");
    story.acknack(&reader, 10, &[10]).unwrap();
    assert_eq!((story.behind()[0].behind, behind_of(&story)), (1, 1));
    story.acknack(&reader, 11, &[]).unwrap();
    assert!(story.behind().is_empty());
    assert_eq!(behind_of(&story), 0);
}

#[test]
fn an_infinite_limit_is_that_of_the_lease() {
    let limits =
        WriterLimits { batch_bytes: 0, strangers_wait_max: Duration::INFINITE, ..WriterLimits::default() };
    let mut story = Story::with_limits(keep_all(), limits);
    let reader = reliable(7);
    story.matched(&reader);
    story.fill_up();
    story.pass(Duration::from_secs(600));
    assert!(!story.write_in_time());
    story.writer.unmatch_reader(story.now, reader.guid, &mut story.out);
    assert!(story.write_in_time());
}
