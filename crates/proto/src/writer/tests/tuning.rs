//! What a writer does by its table of tuning: the only stories that state a number of it, which they name.

use super::fan::{READERS, asks, many_readers, questions};
use super::reliability::now_and_then;
use super::*;
use crate::tuning::writer::{
    ISOLATED_BYTES_MAX, ISOLATED_REQUEST_PERIOD, PROMPT_READERS, PROMPT_TRIES, WINDOW_PARTS,
    WINDOW_PARTS_OF_ONE,
};

/// Whether a share is one of so many parts, as nearly as samples and batches allow.
fn is_about(share: f64, parts: usize) -> bool {
    let part = 1.0 / parts as f64;
    (0.8 * part..1.4 * part).contains(&share)
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
    assert!(is_about(share, WINDOW_PARTS_OF_ONE), "{share}");
    for (same_host, readers, bytes) in [(false, 1, 100), (true, 2, 100), (true, 1, 4_000)] {
        let share = share_of_a_question(same_host, readers, bytes);
        assert!(is_about(share, WINDOW_PARTS), "{share} of {bytes} octets to {readers}, here: {same_host}");
    }
}

#[test]
fn readers_that_need_time_to_answer_get_it_and_only_those_who_owe_are_asked_again() {
    let (mut story, readers) = many_readers(READERS);
    story.write(1, &[0; 100]).unwrap();
    story.sent();
    // As if one after the other of so many at once.
    let shortest = WriterLimits::default().heartbeat_shortest;
    let pause = Duration(shortest.0 * i64::from(READERS) / PROMPT_READERS as i64);
    story.pass(Duration(pause.0 - 1));
    assert_eq!(asks(&story.sent()), 0, "that many readers need more time than a few");
    story.pass(Duration(1));
    let all = story.sent_by_datagram();
    assert_eq!(all.len(), 1, "one heartbeat for all");
    assert_eq!(all[0].0.len(), usize::from(READERS));
    let took = Duration(shortest.0 + shortest.0 / 2);
    story.pass(took);
    for reader in &readers[2..] {
        story.acknack(reader, 2, &[]).unwrap();
    }
    story.sent();
    story.pass(Duration(2 * took.0 - 1));
    assert!(story.sent().is_empty());
    story.pass(Duration(1));
    let asked: Vec<_> = story.sent_by_datagram().into_iter().map(|(destinations, _)| destinations).collect();
    assert_eq!(asked, [readers[0].locators.clone(), readers[1].locators.clone()], "each for itself");
}

/// The first of 25, and one of so many.
fn one_of(many: usize) -> Vec<bool> {
    (0..25).map(|number| number % many == 0).collect()
}

#[test]
fn samples_that_take_much_of_the_window_ask_more_often() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.sent();
    assert_eq!(
        now_and_then(&mut story, &reader, (30_000, 5), true),
        one_of(ISOLATED_BYTES_MAX / (30_000 + CHANGE_OVERHEAD_BYTES) + 1),
        "as soon as so many octets would wait"
    );
}

#[test]
fn within_a_host_one_of_many_samples_that_come_now_and_then_asks() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.sent();
    let asked = now_and_then(&mut story, &reader, (100, 5), true);
    assert_eq!(asked, one_of((ISOLATED_REQUEST_PERIOD.0 / 5_000_000) as usize), "once in that time");
    story.pass(Duration(ISOLATED_REQUEST_PERIOD.0 - 1));
    assert!(story.sent().is_empty());
    story.pass(Duration(1));
    assert!(!heartbeats(&story.sent())[0].final_flag, "the timer asks about the last");
}

#[test]
fn an_unanswered_heartbeat_is_repeated_promptly_some_times_and_then_after_pauses_that_double() {
    let limits = WriterLimits::default();
    let mut story = Story::new(QosSet::writer());
    story.matched(&reliable(7));
    story.write(1, b"data").unwrap();
    let mut pause = limits.heartbeat_shortest;
    for tries in 0..9 {
        story.sent();
        story.pass(Duration(pause.0 - 1));
        assert_eq!(story.sent(), [], "request {tries} is due after {pause:?}");
        story.pass(Duration(1));
        assert_eq!(heartbeats(&story.sent()).len(), 1, "request {tries} is due after {pause:?}");
        if tries >= PROMPT_TRIES {
            pause = Duration(2 * pause.0).min(limits.heartbeat_longest);
        }
    }
}

#[test]
fn a_flow_carries_heartbeats_and_requests_as_often_as_its_limits_say() {
    let limits = WriterLimits::default();
    let mut story = Story::new(QosSet::writer());
    story.matched(&reliable(7));
    story.pass(limits.acknowledgement_period);
    story.sent();
    let (mut asks, mut finals) = (0, 0);
    let step = Duration(limits.heartbeat_piggyback.0 / 10);
    let end = story.now.mono.after(Duration(3 * limits.acknowledgement_period.0)).unwrap();
    while story.now.mono < end {
        story.write(1, b"data").unwrap();
        for heartbeat in heartbeats(&story.sent()) {
            *if heartbeat.final_flag { &mut finals } else { &mut asks } += 1;
        }
        story.pass(step);
    }
    let all = 3 * limits.acknowledgement_period.0 / limits.heartbeat_piggyback.0;
    assert_eq!((asks, finals), (3, all - 3));
}
