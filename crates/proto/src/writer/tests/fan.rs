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

fn asks(sent: &[Sent]) -> usize {
    heartbeats(sent).iter().filter(|heartbeat| !heartbeat.final_flag).count()
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
fn many_readers_are_asked_by_quarters_of_the_window() {
    let (mut story, _) = crowd(READERS);
    let written = story.fill();
    let sent = story.sent();
    assert_eq!(data(&sent).len() as i64, written);
    assert!((2..=4).contains(&asks(&sent)), "{written} samples asked {} times", asks(&sent));
    assert_eq!(story.write(1, &[0; 100]), Err(WriteError::Full));
    assert!(story.sent().is_empty(), "the last sample has asked already");
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
    assert!(story.writer.is_acknowledged(number));
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
    story.pass(Duration::from_millis(6));
    let asked: Vec<_> = story.sent_by_datagram().into_iter().map(|(destinations, _)| destinations).collect();
    assert_eq!(asked, [readers[0].locators.clone(), readers[1].locators.clone()], "each for itself");
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
