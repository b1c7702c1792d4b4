//! One writer, many readers: what each costs, and who waits for whom.

use super::*;

pub(super) const READERS: u8 = 24;

/// A writer in a flow of samples, as `batch.rs` has them, with many readers.
pub(super) fn many_readers(readers: u8) -> (Story, Vec<MatchedReader>) {
    let mut story = Story::with_limits(QosSet::writer().keep_all(), WriterLimits::default());
    let readers: Vec<_> = (1..=readers).map(reliable).collect();
    for reader in &readers {
        story.matched(reader);
        story.acknack(reader, 1, &[]).unwrap();
    }
    story.sent();
    story.events();
    (story, readers)
}

/// The last changes that readers were asked about.
pub(super) fn questions(sent: &[Sent]) -> Vec<SequenceNumber> {
    heartbeats(sent)
        .iter()
        .filter(|heartbeat| !heartbeat.final_flag)
        .map(|heartbeat| heartbeat.last)
        .collect()
}

pub(super) fn asks(sent: &[Sent]) -> usize {
    questions(sent).len()
}

impl Story {
    /// Writes without pauses until the window is full; how many samples.
    pub(super) fn fill(&mut self) -> i64 {
        let mut written = 0;
        while self.write(1, &[0; 100]).is_ok() {
            written += 1;
            self.advance_to(self.now.mono.after(Duration::from_micros(1)).unwrap());
            self.writer.sent(self.now.mono);
        }
        written
    }

    fn told_of_progress(&mut self) -> bool {
        self.events().contains(&Event::Progress { endpoint: WRITER.entity })
    }
}

#[test]
fn a_full_window_of_many_readers_asks_them_far_less_often_than_it_has_samples() {
    let (mut story, _) = many_readers(READERS);
    let written = story.fill();
    let sent = story.sent();
    assert_eq!(data(&sent).len() as i64, written);
    let asks = asks(&sent);
    assert!(asks >= 1 && 50 * asks as i64 <= written, "{written} samples asked {asks} times");
    assert_eq!(story.write(1, &[0; 100]), Err(WriteError::Full));
    assert!(story.sent().is_empty(), "they have been asked already");
}

#[test]
fn the_more_readers_the_smaller_the_window_until_they_leave() {
    let (mut alone, _) = many_readers(4);
    let (mut many, readers) = many_readers(READERS);
    let (whole, part) = (alone.fill(), many.fill());
    assert!(1 < part && part < whole, "{whole} samples to four readers, {part} to {READERS}");
    for reader in &readers[4..] {
        many.writer.unmatch_reader(many.now, reader.guid, &mut many.out);
    }
    assert_eq!(part + many.fill(), whole);
}

#[test]
fn however_many_readers_there_are_the_window_holds_a_full_batch_of_short_samples() {
    let batch = (WriterLimits::default().batch_bytes / (100 + CHANGE_OVERHEAD_BYTES)) as i64;
    let [fifty, more] = [50, 200].map(|readers| many_readers(readers).0.fill());
    assert!(batch < fifty && batch < more && more <= fifty, "{fifty} samples, {more}, a batch of {batch}");
}

#[test]
fn a_reader_of_this_host_has_less_of_the_window_than_one_elsewhere_and_more_for_long_samples() {
    let part = |same_host: bool, readers: u8, bytes: usize| {
        let mut story = Story::with_limits(QosSet::writer().keep_all(), WriterLimits::default());
        for reader in 1..=readers {
            story.matched(&MatchedReader { same_host, ..reliable(reader) });
        }
        let mut written = 0;
        while story.write(1, &vec![0; bytes]).is_ok() {
            written += 1;
        }
        let most = WriterLimits::default().unacknowledged_bytes_max;
        (written * (bytes + CHANGE_OVERHEAD_BYTES)) as f64 / most as f64
    };
    const LONG: usize = 64 << 10;
    let [far, one, two] = [(false, 1), (true, 1), (true, 2)].map(|(here, readers)| part(here, readers, 100));
    assert!(0.0 < one && one < two && two < far && far <= 1.0, "{one}, {two}, {far}");
    assert!(part(true, 1, LONG) > 1.5 * one, "long samples are copied while others are on their way");
    assert!(part(false, 1, LONG) > part(true, 1, LONG));
}

#[test]
fn who_waits_for_room_is_woken_once_the_last_reader_has_made_some() {
    let (mut story, readers) = many_readers(READERS);
    let written = story.fill();
    story.sent();
    story.events();
    let (last, others) = readers.split_last().unwrap();
    for reader in others {
        story.acknack(reader, written + 1, &[]).unwrap();
        assert!(!story.told_of_progress(), "others still owe");
        assert!(story.sent().is_empty(), "nobody is asked again");
    }
    story.acknack(last, 10, &[]).unwrap();
    assert!(!story.told_of_progress(), "room for nine samples is not worth it");
    story.acknack(last, written / 2, &[]).unwrap();
    assert!(story.told_of_progress());
    assert!(story.write(1, &[0; 100]).is_ok());
}

#[test]
fn a_small_limit_of_samples_wakes_for_each() {
    let mut qos = QosSet::writer().keep_all();
    qos.resource_limits.max_samples = 10;
    let mut story = Story::new(qos);
    let readers = [reliable(1), reliable(2)];
    readers.iter().for_each(|reader| story.matched(reader));
    assert_eq!(story.fill(), 10);
    story.events();
    story.acknack(&readers[0], 2, &[]).unwrap();
    assert!(!story.told_of_progress());
    story.acknack(&readers[1], 2, &[]).unwrap();
    assert!(story.told_of_progress());
}

#[test]
fn who_waits_for_acknowledgements_hears_of_the_last_that_counts() {
    let mut story = Story::new(QosSet::writer().keep_all().durability(Durability::TransientLocal));
    let early = [durable(1), durable(2)];
    early.iter().for_each(|reader| story.matched(reader));
    let number = story.write(1, b"data").unwrap();
    // It has nothing yet, but nobody waits for its acknowledgement of what was before it.
    story.matched(&durable(3));
    story.events();
    story.acknack(&early[0], 2, &[]).unwrap();
    assert!(!story.told_of_progress());
    story.acknack(&early[1], 2, &[]).unwrap();
    assert!(story.writer.is_acknowledged(story.now.mono, number));
    assert!(story.told_of_progress());
}

#[test]
fn who_does_not_answer_is_asked_ever_more_rarely() {
    let (mut story, readers) = many_readers(READERS);
    let asked_in = |story: &mut Story, millis| {
        story.pass(Duration::from_millis(millis));
        story.sent_by_datagram().iter().filter(|(_, sent)| asks(sent) > 0).count()
    };
    story.write(1, &[0; 100]).unwrap();
    story.sent();
    for reader in &readers[1..] {
        story.acknack(reader, 2, &[]).unwrap();
    }
    let asked = [500, 500, 5_000].map(|millis| asked_in(&mut story, millis));
    let [first, second, later] = asked;
    assert!(first > second && 10 * second > later && later > 0, "{asked:?} times in 0.5 s, 0.5 s and 5 s");
}

#[test]
fn how_long_readers_take_is_told_by_what_they_were_asked_last() {
    let (mut story, readers) = many_readers(READERS);
    // The timer asks them. When they answer, there is more already, and so it goes on.
    story.write(1, &[0; 100]).unwrap();
    story.pass(Duration::from_millis(30));
    for number in 2..=400 {
        story.write(1, &[0; 100]).unwrap();
        readers.iter().for_each(|reader| story.acknack(reader, number, &[]).unwrap());
        story.pass(Duration::from_millis(10));
    }
    readers.iter().for_each(|reader| story.acknack(reader, 401, &[]).unwrap());
    story.write(1, &[0; 100]).unwrap();
    story.sent();
    story.pass(Duration::from_millis(100));
    assert!(asks(&story.sent()) >= 1, "nobody needed four seconds");
}

#[test]
fn a_flow_that_others_interrupt_goes_on_with_its_second_sample() {
    let (mut story, readers) = many_readers(READERS);
    for _ in 0..100 {
        story.write(1, &[0; 100]).unwrap();
        story.writer.sent(story.now.mono);
    }
    story.writer.flush(story.now, &mut story.out);
    for reader in &readers {
        story.acknack(reader, 101, &[]).unwrap();
    }
    story.sent();
    story.advance_to(story.now.mono.after(Duration::from_millis(50)).unwrap());
    for _ in 0..20 {
        story.write(1, &[0; 100]).unwrap();
        story.writer.sent(story.now.mono);
    }
    story.writer.flush(story.now, &mut story.out);
    let samples: Vec<_> = story.sent_by_datagram().iter().map(|(_, sent)| data(sent).len()).collect();
    let [1, others] = samples[..] else { panic!("{samples:?}: the first leaves alone") };
    assert_eq!(others, 19, "the others share a datagram");
}

/// Writes that many samples; each send takes 200 µs, and each pause of the application as long as given. How
/// many samples each datagram had.
fn written_slowly(story: &mut Story, count: usize, pause: Duration) -> Vec<usize> {
    for _ in 0..count {
        story.write(1, &[0; 100]).unwrap();
        if !story.out.transmits().is_empty() {
            story.advance_to(story.now.mono.after(Duration::from_micros(200)).unwrap());
            story.writer.sent(story.now.mono);
        }
        story.advance_to(story.now.mono.after(pause).unwrap());
    }
    let sent = story.sent_by_datagram();
    sent.iter().map(|(_, sent)| data(sent).len()).filter(|count| *count > 0).collect()
}

#[test]
fn where_sending_takes_long_an_interrupted_flow_goes_on_with_its_first_sample() {
    let (mut story, readers) = many_readers(READERS);
    written_slowly(&mut story, 300, Duration::ZERO);
    story.writer.flush(story.now, &mut story.out);
    for reader in &readers {
        story.acknack(reader, 301, &[]).unwrap();
    }
    story.sent();
    story.advance_to(story.now.mono.after(Duration::from_millis(50)).unwrap());
    assert_eq!(written_slowly(&mut story, 20, Duration::ZERO), [0; 0], "none leaves alone");
    story.pass(Duration::from_millis(1));
    let sent = story.sent_by_datagram();
    assert_eq!(sent.iter().map(|(_, sent)| data(sent).len()).collect::<Vec<_>>(), [20]);
}

#[test]
fn where_sending_takes_long_a_pause_that_is_short_beside_it_is_none() {
    let (mut many, _) = many_readers(READERS);
    let datagrams = written_slowly(&mut many, 100, Duration::from_micros(20));
    assert!(datagrams.len() < 20, "{datagrams:?}");
    let (mut few, _) = many_readers(4);
    let datagrams = written_slowly(&mut few, 100, Duration::from_micros(20));
    assert_eq!(datagrams.len(), 100, "an application that pauses has its samples sent at once");
    let (mut many, _) = many_readers(READERS);
    let datagrams = written_slowly(&mut many, 100, Duration::from_micros(150));
    assert_eq!(datagrams.len(), 100, "the same with many readers");
}

#[test]
fn a_flow_survives_one_interruption_after_another() {
    let (mut story, _) = many_readers(5);
    written_slowly(&mut story, 200, Duration::from_micros(1));
    let mut alone = 0;
    for _ in 0..5 {
        story.advance_to(story.now.mono.after(Duration::from_millis(20)).unwrap());
        let datagrams = written_slowly(&mut story, 30, Duration::from_micros(1));
        alone += datagrams.iter().filter(|samples| **samples == 1).count();
    }
    assert!(alone <= 5, "{alone} samples left alone after five interruptions");
}

#[test]
fn who_finds_no_room_does_not_ask_again_while_answers_are_owed_that_make_some() {
    let (mut story, readers) = many_readers(READERS);
    let written = story.fill();
    let last = questions(&story.sent()).last().copied().unwrap();
    assert!((1..written).contains(&last.0), "asked up to {last:?} of {written}");
    for reader in &readers {
        story.acknack(reader, last.0 + 1, &[]).unwrap();
    }
    assert!(story.told_of_progress());
    // What was not asked about is, when no sample follows.
    story.sent();
    story.pass(Duration::from_secs(1));
    assert_eq!(questions(&story.sent()).last(), Some(&SequenceNumber(written)));
}
