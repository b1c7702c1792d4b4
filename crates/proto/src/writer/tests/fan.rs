//! One writer, many readers: what each costs, and who waits for whom.

use super::*;

const READERS: u8 = 24;

/// A writer in a flow of samples, as `batch.rs` has them, with many readers.
fn crowd(readers: u8) -> (Story, Vec<MatchedReader>) {
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
fn questions(sent: &[Sent]) -> Vec<SequenceNumber> {
    heartbeats(sent)
        .iter()
        .filter(|heartbeat| !heartbeat.final_flag)
        .map(|heartbeat| heartbeat.last)
        .collect()
}

fn asks(sent: &[Sent]) -> usize {
    questions(sent).len()
}

impl Story {
    /// Writes without pauses until the window is full; how many samples.
    fn fill(&mut self) -> i64 {
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
fn many_readers_are_asked_by_quarters_of_the_window_at_most() {
    let (mut story, _) = crowd(READERS);
    let written = story.fill();
    let sent = story.sent();
    assert_eq!(data(&sent).len() as i64, written);
    assert!((1..=2).contains(&asks(&sent)), "{written} samples asked {} times", asks(&sent));
    assert_eq!(story.write(1, &[0; 100]), Err(WriteError::Full));
    assert!(story.sent().is_empty(), "they have been asked already");
}

/// What is written for each question, as a part of the window, when readers answer as the next comes.
fn share_of_a_question(same_host: bool, readers: u8, bytes: usize) -> f64 {
    // A road asks by itself, far more often.
    let limits = WriterLimits { has_congestion_window: false, ..WriterLimits::default() };
    let mut story = Story::with_limits(QosSet::writer().keep_all(), limits);
    let readers: Vec<_> = (1..=readers).map(|it| MatchedReader { same_host, ..reliable(it) }).collect();
    readers.iter().for_each(|reader| story.matched(reader));
    let (mut asked, mut written, mut unanswered) = (0, 0, None);
    while asked < 40 {
        if story.write(1, &vec![0; bytes]).is_ok() {
            written += 1;
            // Too soon for the time after which they are asked anyway.
            story.advance_to(story.now.mono.after(Duration(1)).unwrap());
            story.writer.sent(story.now.mono);
        } else {
            story.pass(Duration::from_micros(100));
        }
        for last in questions(&story.sent()) {
            asked += 1;
            let Some(SequenceNumber(had)) = unanswered.replace(last) else { continue };
            readers.iter().for_each(|reader| story.acknack(reader, had + 1, &[]).unwrap());
        }
    }
    (written * (bytes + CHANGE_OVERHEAD_BYTES) / asked) as f64 / story.writer.window_bytes as f64
}

#[test]
fn one_reader_of_this_host_is_asked_by_halves_of_short_samples_and_others_more_often() {
    let share = share_of_a_question(true, 1, 100);
    assert!((0.45..0.55).contains(&share), "{share}");
    for (same_host, readers, bytes) in [(false, 1, 100), (true, 2, 100), (true, 1, 4_000)] {
        let share = share_of_a_question(same_host, readers, bytes);
        assert!(share < 0.4, "{share} of {bytes} octets to {readers}, here: {same_host}");
    }
}

#[test]
fn the_more_readers_the_smaller_the_window_until_they_leave() {
    let (mut alone, _) = crowd(4);
    let (mut many, readers) = crowd(READERS);
    let (whole, part) = (alone.fill(), many.fill());
    assert!((5..=7).contains(&(whole / part)), "{whole} samples to four readers, {part} to {READERS}");
    for reader in &readers[4..] {
        many.writer.unmatch_reader(many.now, reader.guid, &mut many.out);
    }
    assert_eq!(part + many.fill(), whole);
}

#[test]
fn one_reader_of_this_host_needs_a_quarter_of_the_window_of_one_elsewhere_and_half_for_long_samples() {
    let fill = |same_host: bool, readers: u8, bytes: usize| {
        let mut story = Story::with_limits(QosSet::writer().keep_all(), WriterLimits::default());
        for reader in 1..=readers {
            story.matched(&MatchedReader { same_host, ..reliable(reader) });
        }
        let mut written = 0;
        while story.write(1, &vec![0; bytes]).is_ok() {
            written += 1;
        }
        written
    };
    let most = WriterLimits::default().unacknowledged_bytes_max;
    let [short, long] = [100, 64 << 10].map(|bytes| (bytes, most / (bytes + CHANGE_OVERHEAD_BYTES)));
    for (same_host, readers, (bytes, all), part) in [
        (false, 1, short, 1.0),
        (true, 1, short, 0.25),
        (true, 2, short, 0.5),
        (false, 1, long, 1.0),
        (true, 1, long, 0.5),
        (true, 2, long, 0.5),
    ] {
        assert_eq!(
            fill(same_host, readers, bytes),
            (all as f64 * part) as usize,
            "{bytes} octets to {readers}, here: {same_host}"
        );
    }
}

#[test]
fn the_window_of_fifty_readers_holds_two_full_batches_of_short_samples_and_a_half() {
    let (mut story, _) = crowd(50);
    let written = story.fill();
    assert!((500..600).contains(&written), "{written} samples");
}

#[test]
fn who_waits_for_room_is_woken_once_the_last_reader_has_made_some() {
    let (mut story, readers) = crowd(READERS);
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
fn readers_that_need_time_to_answer_get_it_and_only_those_who_owe_are_asked_again() {
    let (mut story, readers) = crowd(READERS);
    story.write(1, &[0; 100]).unwrap();
    story.sent();
    story.pass(Duration::from_millis(20));
    assert_eq!(asks(&story.sent()), 0, "that many readers need more than the 4 ms of a few");
    story.pass(Duration::from_millis(10));
    let all = story.sent_by_datagram();
    assert_eq!(all.len(), 1, "one heartbeat for all");
    assert_eq!(all[0].0.len(), usize::from(READERS));
    for reader in &readers[2..] {
        story.acknack(reader, 2, &[]).unwrap();
    }
    story.sent();
    // They took six.
    story.pass(Duration::from_millis(5));
    assert!(story.sent().is_empty());
    story.pass(Duration::from_millis(10));
    let asked: Vec<_> = story.sent_by_datagram().into_iter().map(|(destinations, _)| destinations).collect();
    assert_eq!(asked, [readers[0].locators.clone(), readers[1].locators.clone()], "each for itself");
}

#[test]
fn who_does_not_answer_is_asked_ever_more_rarely() {
    let (mut story, readers) = crowd(READERS);
    let asked_in = |story: &mut Story, millis| {
        story.pass(Duration::from_millis(millis));
        story.sent_by_datagram().iter().filter(|(_, sent)| asks(sent) > 0).count()
    };
    story.write(1, &[0; 100]).unwrap();
    story.sent();
    for reader in &readers[1..] {
        story.acknack(reader, 2, &[]).unwrap();
    }
    let (first, later) = (asked_in(&mut story, 500), asked_in(&mut story, 5_000));
    assert!(
        (4..=8).contains(&first) && (12..=20).contains(&later),
        "{first} times in 0.5 s, {later} in 5 s more"
    );
}

#[test]
fn how_long_readers_take_is_told_by_what_they_were_asked_last() {
    let (mut story, readers) = crowd(READERS);
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
    let (mut story, readers) = crowd(READERS);
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
    assert_eq!(samples, [1, 19]);
}

/// Writes that many samples; each send takes 200 µs, and each pause of the application as long as given. How many samples each
/// datagram had.
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
    let (mut story, readers) = crowd(READERS);
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
    let (mut many, _) = crowd(READERS);
    let datagrams = written_slowly(&mut many, 100, Duration::from_micros(20));
    assert!(datagrams.len() < 20, "{datagrams:?}");
    let (mut few, _) = crowd(4);
    let datagrams = written_slowly(&mut few, 100, Duration::from_micros(20));
    assert_eq!(datagrams.len(), 100, "an application that pauses has its samples sent at once");
    let (mut many, _) = crowd(READERS);
    let datagrams = written_slowly(&mut many, 100, Duration::from_micros(150));
    assert_eq!(datagrams.len(), 100, "the same with many readers");
}

#[test]
fn a_flow_survives_one_interruption_after_another() {
    let (mut story, _) = crowd(5);
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
    let (mut story, readers) = crowd(READERS);
    let written = story.fill();
    let last = questions(&story.sent()).last().copied().unwrap();
    assert!((written / 4..written).contains(&last.0), "asked up to {last:?} of {written}");
    for reader in &readers {
        story.acknack(reader, last.0 + 1, &[]).unwrap();
    }
    assert!(story.told_of_progress());
    // What was not asked about is, when no sample follows.
    story.sent();
    story.pass(Duration::from_secs(1));
    assert_eq!(questions(&story.sent()).last(), Some(&SequenceNumber(written)));
}
