//! Heartbeats, acknowledgements, repetitions and the window.

use super::*;
use crate::qos::ResourceLimits;
use crate::tuning::writer::ISOLATED_REQUEST_PERIOD;

fn ms(millis: i64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_sample_goes_at_once_and_its_heartbeat_with_it() {
    let mut story = Story::new(QosSet::writer());
    let reader = reliable(7);
    story.matched(&reader);
    story.pass(ms(10));
    story.sent();
    story.write(1, b"data").unwrap();
    let datagrams = story.sent_by_datagram();
    assert_eq!(datagrams.len(), 1);
    assert_eq!(datagrams[0].0, reader.locators);
    let [Sent::Data(data), Sent::Heartbeat(heartbeat)] = &datagrams[0].1[..] else { panic!("{datagrams:?}") };
    assert_eq!((data.number, &data.payload[..], data.key_only), (1, &b"data"[..], false));
    assert_eq!((data.destination, data.reader), (reader.guid.prefix, reader.guid.entity));
    assert_eq!(data.timestamp, Some(story.now.wall));
    assert_eq!((heartbeat.first.0, heartbeat.last.0, heartbeat.final_flag), (1, 1, false));
}

#[test]
fn while_samples_flow_most_heartbeats_tell_few_ask_and_the_timer_waits() {
    let mut story = Story::new(QosSet::writer());
    let reader = reliable(7);
    story.matched(&reader);
    story.pass(ms(10));
    story.sent();
    let (mut asks, mut tells) = (0, 0);
    for _ in 0..300 {
        story.write(1, b"data").unwrap();
        for heartbeat in heartbeats(&story.sent()) {
            *if heartbeat.final_flag { &mut tells } else { &mut asks } += 1;
        }
        story.pass(Duration::from_micros(100));
        assert!(story.sent().is_empty(), "nothing but samples, no heartbeat of its own");
    }
    assert!(1 <= asks && 2 * asks < tells && 2 * (asks + tells) < 300, "{asks} ask, {tells} are final");
    story.pass(WriterLimits::default().heartbeat_shortest);
    let last = heartbeats(&story.sent());
    assert_eq!(last.len(), 1, "the flow has ended: the timer asks");
    assert!(!last[0].final_flag);
}

/// Writes of so many octets, `pause` apart, whose questions are answered at once, if at all; whether each
/// asked.
pub(super) fn now_and_then(
    story: &mut Story,
    reader: &MatchedReader,
    (bytes, pause): (usize, i64),
    answers: bool,
) -> Vec<bool> {
    let octets = vec![7; bytes];
    let mut asked = Vec::new();
    for _ in 0..25 {
        story.pass(ms(pause));
        let by_timer = heartbeats(&story.sent()).len();
        let number = story.write(1, &octets).unwrap().0;
        let sent = heartbeats(&story.sent());
        assert_eq!((by_timer, sent.len()), (0, 1), "each sample has a heartbeat, and there is no other");
        asked.push(!sent[0].final_flag);
        if answers && !sent[0].final_flag {
            story.acknack(reader, number + 1, &[]).unwrap();
        }
    }
    asked
}

#[test]
fn what_comes_now_and_then_asks_where_the_answer_is_waited_for() {
    let far = MatchedReader { same_host: false, ..reliable(7) };
    let limited = QosSet {
        resource_limits: ResourceLimits { max_samples: 10, ..QosSet::writer().resource_limits },
        ..QosSet::writer().keep_all()
    };
    let usual = QosSet::writer().keep_all();
    for (qos, reader, bytes, pause, why) in [
        (usual.clone(), far, 100, 4, "samples are lost on a road"),
        (limited, reliable(7), 100, 4, "a limit counts what is not acknowledged"),
        (usual, reliable(7), 100, ISOLATED_REQUEST_PERIOD.0 / 1_000_000 + 1, "they come rarely"),
    ] {
        let mut story = Story::new(qos);
        story.matched(&reader);
        story.sent();
        assert_eq!(now_and_then(&mut story, &reader, (bytes, pause), true), [true; 25], "{why}");
    }
}

#[test]
fn once_the_timer_asked_who_does_not_answer_is_asked_again_soon() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let readers = [7, 8].map(reliable);
    readers.iter().for_each(|reader| story.matched(reader));
    for number in 1..=2 {
        story.pass(ms(4));
        story.write(1, b"data").unwrap();
        let asks = !heartbeats(&story.sent())[0].final_flag;
        assert_eq!(asks, number == 1);
        readers.iter().filter(|_| asks).for_each(|reader| story.acknack(reader, 2, &[]).unwrap());
    }
    story.pass(ISOLATED_REQUEST_PERIOD);
    assert!(!heartbeats(&story.sent())[0].final_flag, "the timer asks about the last");
    story.acknack(&readers[0], 3, &[]).unwrap();
    story.pass(WriterLimits::default().heartbeat_shortest);
    assert!(!heartbeats(&story.sent()).is_empty(), "the other is asked again");
}

#[test]
fn three_readers_of_a_host_are_asked_by_each_sample() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let readers = [7, 8, 9].map(reliable);
    readers.iter().for_each(|reader| story.matched(reader));
    story.sent();
    for number in 1..=10 {
        story.pass(ms(4));
        story.write(1, b"data").unwrap();
        assert!(!heartbeats(&story.sent())[0].final_flag);
        readers.iter().for_each(|reader| story.acknack(reader, number + 1, &[]).unwrap());
    }
}

#[test]
fn who_never_answered_is_asked_by_each_sample() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.sent();
    assert_eq!(now_and_then(&mut story, &reader, (100, 3), false), [true; 25]);
    story.acknack(&reader, 26, &[]).unwrap();
    assert_eq!(now_and_then(&mut story, &reader, (100, 3), false)[..16], [false; 16], "once it has answered");
    story.acknack(&reader, 51, &[]).unwrap();
    story.matched(&reliable(8));
    story.sent();
    assert_eq!(now_and_then(&mut story, &reader, (100, 3), false), [true; 25], "the other did not");
}

#[test]
fn fact_7_an_unanswered_heartbeat_is_repeated_ever_more_slowly_and_not_after_the_answer() {
    let mut story = Story::new(QosSet::writer());
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.sent();
    let (mut times, start) = (Vec::new(), story.now.mono);
    while times.len() < 9 {
        let due = story.writer.next_timeout().expect("somebody owes an answer");
        story.pass(due.since(story.now.mono));
        let heartbeats = heartbeats(&story.sent());
        assert_eq!(heartbeats.len(), 1);
        assert!(!heartbeats[0].final_flag);
        times.push(story.now.mono.since(start));
    }
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(pauses.is_sorted() && pauses[0] < pauses[7], "{times:?}");
    assert!(pauses[7] <= WriterLimits::default().heartbeat_longest.0, "{times:?}");
    story.acknack(&reader, 2, &[]).unwrap();
    assert_eq!(story.writer.next_timeout(), None);
    assert!(story.sent().is_empty());
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)));
}

#[test]
fn fact_7_heartbeat_counts_grow() {
    let mut story = Story::new(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    for _ in 0..5 {
        story.write(1, b"data").unwrap();
        story.pass(ms(2));
    }
    let counts: Vec<i32> = heartbeats(&story.sent()).iter().map(|heartbeat| heartbeat.count).collect();
    assert!(counts.len() >= 5);
    assert!(counts.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn a_missing_sample_is_repeated_to_the_reader_that_misses_it() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let [one, two] = [reliable(7), reliable(8)];
    story.matched(&one);
    story.matched(&two);
    for _ in 0..3 {
        story.write(1, b"data").unwrap();
    }
    story.sent();
    story.acknack(&one, 2, &[2]).unwrap();
    let datagrams = story.sent_by_datagram();
    assert!(datagrams.iter().all(|(destinations, _)| *destinations == one.locators));
    let sent: Vec<Sent> = datagrams.into_iter().flat_map(|(_, sent)| sent).collect();
    assert_eq!(data(&sent), [2]);
    assert!(!heartbeats(&sent)[0].final_flag, "the repetition is to be acknowledged");
}

#[test]
fn requests_that_crossed_are_answered_once_and_later_ones_again() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.sent();
    story.acknack(&reader, 1, &[1]).unwrap();
    assert_eq!(data(&story.sent()), [1]);
    story.acknack(&reader, 1, &[1]).unwrap();
    assert_eq!(data(&story.sent()), []);
    story.pass(ms(3));
    assert_eq!(heartbeats(&story.sent()).len(), 1, "the reader is asked whether it still misses it");
    story.acknack(&reader, 1, &[1]).unwrap();
    assert_eq!(data(&story.sent()), [1]);
}

#[test]
fn fact_5_the_first_acknack_may_have_base_zero() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.pass(ms(20));
    story.sent();
    assert_eq!(story.acknack_with(&reader, 0, &[], 1, false), Ok(()));
    let heartbeats = heartbeats(&story.sent());
    assert_eq!((heartbeats[0].first.0, heartbeats[0].last.0), (1, 1));
    assert!(!story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)));
}

#[test]
fn fact_6_a_reader_that_answers_every_heartbeat_makes_no_loop() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.sent();
    story.acknack_with(&reader, 2, &[], 1, false).unwrap();
    let answers = heartbeats(&story.sent());
    assert_eq!(answers.len(), 1, "the acknack asked for a heartbeat");
    assert!(answers[0].final_flag, "which wants no answer: everything is acknowledged");
    story.acknack_with(&reader, 2, &[], 2, true).unwrap();
    assert!(story.sent().is_empty(), "the final flag asks for none");

    // The same with something unacknowledged: one question, not one per answer.
    story.write(1, b"more").unwrap();
    story.sent();
    let mut answers = 0;
    for count in 3..50 {
        story.acknack_with(&reader, 2, &[], count, false).unwrap();
        answers += heartbeats(&story.sent()).len();
    }
    assert_eq!(answers, 1);
}

#[test]
fn fact_8_a_repeated_count_is_ignored_and_a_restarted_reader_is_heard() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.acknack_with(&reader, 1, &[], 1_000, true).unwrap();
    assert_eq!(story.acknack_with(&reader, 2, &[], 1_000, true), Err(DropReason::StaleCount));
    assert_eq!(story.acknack_with(&reader, 2, &[], 999, true), Err(DropReason::StaleCount));
    assert!(!story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)));
    assert_eq!(story.acknack_with(&reader, 2, &[], 1, true), Ok(()), "counting began anew");
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)));
    assert_eq!(story.writer.drops().get(DropReason::StaleCount), 2);
}

#[test]
fn a_reader_that_began_anew_owes_what_it_had_acknowledged() {
    let mut story = Story::new(QosSet::writer().keep_all().durability(Durability::TransientLocal));
    let reader = durable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.acknack_with(&reader, 2, &[], 1_000, true).unwrap();
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)));
    story.sent();
    // The reader lost the writer, found it again and knows nothing: its request is answered, the
    // repetition is lost, and yet the writer goes on asking.
    story.acknack_with(&reader, 1, &[1], 9_000, true).unwrap();
    assert!(!story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)));
    story.sent();
    story.pass(Duration::from_secs(1));
    assert!(!heartbeats(&story.sent()).is_empty());
    story.acknack_with(&reader, 2, &[], 9_001, true).unwrap();
    story.sent();
    story.pass(Duration::from_secs(1));
    assert!(heartbeats(&story.sent()).is_empty());
}

#[test]
fn fact_8_counts_wrap_around() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    assert_eq!(story.acknack_with(&reader, 1, &[], i32::MAX, true), Ok(()));
    assert_eq!(story.acknack_with(&reader, 1, &[], i32::MIN, true), Ok(()));
    assert_eq!(story.acknack_with(&reader, 1, &[], i32::MAX, true), Err(DropReason::StaleCount));
}

#[test]
fn r13_acknowledging_what_was_never_written_is_dropped() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.sent();
    for base in [3, i64::MAX, -1, i64::MIN] {
        assert_eq!(story.acknack(&reader, base, &[]), Err(DropReason::ImplausibleSequence));
    }
    assert_eq!(
        story.acknack(&reader, i64::MAX - 300, &[i64::MAX - 100]),
        Err(DropReason::ImplausibleSequence)
    );
    assert_eq!(story.acknack(&reliable(9), 2, &[]), Err(DropReason::NotMatched));
    assert!(story.sent().is_empty());
    assert!(!story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)));
    assert_eq!(story.acknack(&reader, 1, &[1, 2, 200]), Ok(()));
    assert_eq!(data(&story.sent()), [1], "of a plausible request, what exists is repeated");
}

#[test]
fn fact_65_keep_last_never_blocks_and_says_what_it_replaced() {
    let mut story = Story::new(QosSet::writer().keep_last(2));
    let reader = reliable(7);
    story.matched(&reader);
    for _ in 0..1_000 {
        story.write(1, b"data").unwrap();
    }
    story.sent();
    story.acknack(&reader, 1, &(1..=256).collect::<Vec<_>>()).unwrap();
    let sent = story.sent();
    assert_eq!(data(&sent), []);
    assert_eq!(gaps(&sent, 1_000), (1..=998).collect::<Vec<_>>(), "one range, also beyond the bitmap");
    assert_eq!(sent.iter().filter(|sent| matches!(sent, Sent::Gap(_))).count(), 1);
    story.acknack(&reader, 999, &[999, 1_000]).unwrap();
    assert_eq!(data(&story.sent()), [999, 1_000]);
}

#[test]
fn fact_65_keep_last_with_many_instances_merges_holes_into_bitmaps() {
    let mut story = Story::new(QosSet::writer().keep_last(1));
    let reader = reliable(7);
    story.matched(&reader);
    for number in 0..100 {
        story.write(number, b"stays").unwrap();
        story.write(200, b"replaced").unwrap();
    }
    story.sent();
    story.acknack(&reader, 1, &(1..=200).collect::<Vec<_>>()).unwrap();
    let sent = story.sent();
    assert_eq!(gaps(&sent, 200), (1..100).map(|half| half * 2).collect::<Vec<_>>());
    assert_eq!(sent.iter().filter(|sent| matches!(sent, Sent::Gap(_))).count(), 1);
    assert_eq!(data(&sent), (0..100).map(|half| half * 2 + 1).chain([200]).collect::<Vec<_>>());
}

#[test]
fn fact_65_keep_all_is_full_until_readers_acknowledge() {
    let unacknowledged_bytes_max = 10 * (100 + CHANGE_OVERHEAD_BYTES);
    let limits = WriterLimits { unacknowledged_bytes_max, batch_bytes: 0, ..WriterLimits::default() };
    let mut story = Story::with_limits(QosSet::writer().keep_all(), limits);
    let reader = reliable(7);
    story.matched(&reader);
    for _ in 0..10 {
        story.write(1, &[0; 100]).unwrap();
    }
    story.events();
    story.sent();
    assert_eq!(story.write(1, &[0; 100]), Err(WriteError::Full));
    assert_eq!(heartbeats(&story.sent()).len(), 1, "a heartbeat hastens the acknowledgement");
    assert_eq!(story.write(1, &[0; 100]), Err(WriteError::Full));
    assert!(story.sent().is_empty(), "one is enough");
    assert_eq!(story.writer.last_sequence_number(), SequenceNumber(10), "nothing was written");
    story.acknack(&reader, 6, &[]).unwrap();
    assert!(story.events().contains(&Event::Progress { endpoint: WRITER.entity }));
    assert_eq!(story.write(1, &[0; 100]), Ok(SequenceNumber(11)));
}

#[test]
fn a_window_smaller_than_a_sample_admits_one_at_a_time() {
    let limits = WriterLimits { unacknowledged_bytes_max: 10, ..WriterLimits::default() };
    let mut story = Story::with_limits(QosSet::writer().keep_all(), limits);
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, &[0; 100]).unwrap();
    assert_eq!(story.write(1, &[0; 100]), Err(WriteError::Full));
    story.acknack(&reader, 2, &[]).unwrap();
    assert_eq!(story.write(1, &[0; 100]), Ok(SequenceNumber(2)));
}

#[test]
fn a_reader_that_leaves_frees_the_window() {
    let limits = WriterLimits { unacknowledged_bytes_max: 100, ..WriterLimits::default() };
    let mut story = Story::with_limits(QosSet::writer().keep_all(), limits);
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, &[0; 100]).unwrap();
    assert_eq!(story.write(1, &[0; 100]), Err(WriteError::Full));
    story.events();
    story.writer.unmatch_reader(story.now, reader.guid, &mut story.out);
    assert!(story.events().contains(&Event::Progress { endpoint: WRITER.entity }));
    assert_eq!(story.write(1, &[0; 100]), Ok(SequenceNumber(2)));
    assert_eq!(story.writer.next_timeout(), None);
}

#[test]
fn fact_64_acknowledgements_of_later_and_best_effort_readers_do_not_count() {
    let mut story = Story::new(QosSet::writer().keep_all().durability(Durability::TransientLocal));
    let early = durable(7);
    story.matched(&early);
    story.matched(&reader(8, QosSet::reader()));
    let number = story.write(1, b"data").unwrap();
    let late = durable(9);
    story.matched(&late);
    assert!(!story.writer.is_acknowledged(story.now.mono, number));
    story.acknack(&early, 2, &[]).unwrap();
    assert!(story.writer.is_acknowledged(story.now.mono, number));
    let next = story.write(1, b"data").unwrap();
    story.acknack(&early, 3, &[]).unwrap();
    assert!(!story.writer.is_acknowledged(story.now.mono, next), "the late reader was there for this one");
    story.acknack(&late, 3, &[]).unwrap();
    assert!(story.writer.is_acknowledged(story.now.mono, next));
}

#[test]
fn waiting_for_acknowledgements_asks_at_once() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.sent();
    story.writer.request_acknowledgments(story.now, &mut story.out);
    let asked = heartbeats(&story.sent());
    assert_eq!(asked.len(), 1);
    assert!(!asked[0].final_flag);
    story.acknack(&reader, 2, &[]).unwrap();
    story.writer.request_acknowledgments(story.now, &mut story.out);
    assert!(story.sent().is_empty());
}

#[test]
fn fact_58_a_fast_writer_asks_once_in_a_while() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.sent();
    for number in 1..=1_000 {
        story.write(1, &[0; 64]).unwrap();
        story.pass(Duration::from_micros(10));
        if number % 100 == 0 {
            story.acknack(&reader, number, &[]).unwrap();
        }
    }
    let asked = heartbeats(&story.sent()).len();
    assert!((2..100).contains(&asked), "1,000 samples carried {asked} heartbeats");
}

#[test]
fn transport_priority_is_a_code_point_within_its_bounds() {
    for (priority, traffic_class) in [(0, 0), (46, 46 << 2), (63, 252), (64, 252), (-1, 0), (i32::MAX, 252)] {
        let story = Story::new(QosSet { transport_priority: priority, ..QosSet::writer() });
        assert_eq!(story.writer.traffic_class(), traffic_class);
    }
}
