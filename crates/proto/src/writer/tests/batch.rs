//! Samples that share datagrams, and those that do not wait.

use super::*;

const BUDGET: Duration = Duration::from_millis(10);

fn flowing(qos: QosSet) -> Story {
    Story::with_limits(qos, WriterLimits::default())
}

fn budgeted() -> (Story, MatchedReader) {
    let mut story = flowing(QosSet { latency_budget: BUDGET, ..QosSet::writer().keep_all() });
    let reader = reliable(7);
    story.matched(&reader);
    story.sent();
    (story, reader)
}

impl Story {
    fn write_many(&mut self, count: usize, payload: &[u8]) {
        for _ in 0..count {
            self.write(1, payload).unwrap();
        }
    }

    /// How many samples each datagram sent since the last look had.
    fn samples_by_datagram(&mut self) -> Vec<usize> {
        self.sent_by_datagram().iter().map(|(_, sent)| data(sent).len()).filter(|count| *count > 0).collect()
    }
}

#[test]
fn samples_written_with_pauses_leave_at_once_each_in_its_datagram() {
    let mut story = flowing(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    for number in 1..=100 {
        story.write(1, b"data").unwrap();
        assert_eq!(data(&story.sent()), [number]);
        story.pass(Duration::from_micros(5));
    }
}

#[test]
fn the_time_that_sending_takes_is_no_pause() {
    let mut story = flowing(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    for _ in 0..20 {
        story.write(1, b"data").unwrap();
        story.advance_to(story.now.mono.after(Duration::from_micros(50)).unwrap());
        story.writer.sent(story.now.mono);
    }
    assert!(data(&story.sent()).len() < 20, "the application made no pause, so later samples wait");
}

#[test]
fn in_a_flow_samples_share_datagrams_and_all_arrive_in_order() {
    let mut story = flowing(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    story.write_many(800, &[7; 64]);
    story.pass(WriterLimits::default().flow_wait);
    let sent = story.sent_by_datagram();
    let numbers: Vec<i64> = sent.iter().flat_map(|(_, sent)| data(sent)).collect();
    assert_eq!(numbers, (1..=800).collect::<Vec<_>>());
    assert!(20 * sent.len() < 800, "{} datagrams", sent.len());
}

#[test]
fn the_end_of_a_flow_waits_for_a_fraction_of_a_millisecond() {
    let mut story = flowing(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    story.write_many(20, b"data");
    assert!(story.writer.sent_last(RouteKind::SameHost) < SequenceNumber(20));
    let wait = WriterLimits::default().flow_wait;
    assert!(story.writer.next_timeout() <= story.now.mono.after(wait));
    story.pass(wait);
    assert_eq!(data(&story.sent()).last(), Some(&20));
    assert_eq!(story.writer.sent_last(RouteKind::SameHost), SequenceNumber(20));
}

#[test]
fn the_end_of_a_great_flow_waits_longer_but_not_for_long() {
    let mut story = flowing(QosSet::writer().keep_last(8));
    story.matched(&reliable(7));
    let mut written = 0;
    // Now and then it is interrupted, as by a tick of the host.
    while written < 20_000 {
        story.write_many(10, b"data");
        written += 10;
        let pause = if written % 500 == 0 { 20 } else { 4 };
        story.pass(Duration::from_micros(pause));
    }
    story.write_many(15, b"data");
    written += 15;
    assert!(story.writer.sent_last(RouteKind::SameHost) < SequenceNumber(written));
    let waits = story.writer.next_timeout().unwrap().since(story.now.mono);
    let limits = WriterLimits::default();
    assert!(limits.flow_wait < waits && waits < limits.batch_wait_max, "{waits:?}");
    story.pass(waits);
    assert_eq!(story.writer.sent_last(RouteKind::SameHost), SequenceNumber(written));
}

#[test]
fn a_reader_elsewhere_gets_datagrams_of_one_frame() {
    let mut story = flowing(QosSet { latency_budget: BUDGET, ..QosSet::writer().keep_all() });
    story.matched(&MatchedReader { same_host: false, ..reliable(7) });
    story.write_many(100, &[7; 64]);
    story.pass(BUDGET);
    let most = WriterLimits::default().datagram_bytes_max_remote;
    assert!(story.out.transmits().iter().all(|transmit| transmit.len() <= most));
    let samples = story.samples_by_datagram();
    assert_eq!(samples.iter().sum::<usize>(), 100);
    assert!(samples.len() < 12, "{samples:?}");
}

#[test]
fn latency_budget_holds_a_sample_for_so_long_and_no_longer() {
    let (mut story, _) = budgeted();
    story.write(1, b"data").unwrap();
    story.pass(Duration::from_millis(9));
    assert_eq!(story.sent(), []);
    story.write(1, b"data").unwrap();
    story.pass(Duration::from_millis(1));
    assert_eq!(story.samples_by_datagram(), [2]);
}

#[test]
fn a_full_batch_leaves_before_its_time() {
    let (mut story, _) = budgeted();
    story.write_many(100, &[7; 1_000]);
    let samples = story.samples_by_datagram();
    assert!(samples.iter().all(|count| *count > 10), "{samples:?}");
}

#[test]
fn samples_of_any_length_share_well_filled_datagrams_when_there_is_company() {
    for bytes in [64, 1_000, 8_192, 16_384] {
        let (mut story, _) = budgeted();
        story.write_many(2 * 65_000 / bytes, &vec![7; bytes]);
        let lengths: Vec<_> = story.out.transmits().iter().map(|transmit| transmit.len()).collect();
        let samples = story.samples_by_datagram();
        assert!(
            samples.len() >= 2 && samples.iter().all(|count| *count > 1),
            "{samples:?} of {bytes} octets"
        );
        let least = WriterLimits::default().batch_bytes / 4;
        assert!(lengths.iter().all(|length| *length > least), "{lengths:?} octets, samples of {bytes}");
    }
}

#[test]
fn a_batch_leaves_when_told_and_when_somebody_waits_for_acknowledgements() {
    let (mut story, _) = budgeted();
    story.write(1, b"data").unwrap();
    story.writer.flush(story.now, &mut story.out);
    assert_eq!(data(&story.sent()), [1]);
    story.write(1, b"data").unwrap();
    story.writer.request_acknowledgments(story.now, &mut story.out);
    assert_eq!(data(&story.sent()), [2]);
}

#[test]
fn a_full_history_sends_what_it_holds() {
    let mut qos = QosSet { latency_budget: BUDGET, ..QosSet::writer().keep_all() };
    qos.resource_limits.max_samples = 5;
    let mut story = flowing(qos);
    let reader = reliable(7);
    story.matched(&reader);
    story.write_many(5, b"data");
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full));
    let sent = story.sent();
    assert_eq!(data(&sent), [1, 2, 3, 4, 5]);
    assert!(heartbeats(&sent).iter().any(|heartbeat| !heartbeat.final_flag && heartbeat.last.0 == 5));
}

#[test]
fn what_waits_makes_room_when_nobody_has_to_acknowledge_it() {
    let mut qos = QosSet { latency_budget: BUDGET, ..QosSet::writer().best_effort().keep_all() };
    qos.resource_limits.max_samples = 5;
    let mut story = flowing(qos);
    story.matched(&reader(7, QosSet::reader()));
    story.write_many(6, b"data");
    assert_eq!(data(&story.sent()), [1, 2, 3, 4, 5]);
}

#[test]
fn what_ends_a_batch_is_sent_although_nobody_has_to_acknowledge_it() {
    let mut story = flowing(QosSet::writer().keep_last(1));
    story.matched(&reader(7, QosSet::reader()));
    // The ninth and tenth wait; the next follows a pause, and the last is too large for company.
    story.write_many(10, b"data");
    story.pass(Duration::from_micros(20));
    story.write(1, b"data").unwrap();
    story.write_many(10, b"data");
    story.write(1, &[0; 33_000]).unwrap();
    assert_eq!(data(&story.sent()), (1..=22).collect::<Vec<_>>());
}

#[test]
fn what_waits_is_not_announced_and_keeps_its_place_before_what_cannot_wait() {
    let (mut story, reader) = budgeted();
    story.write(1, b"small").unwrap();
    story.acknack_with(&reader, 1, &[], 1, false).unwrap();
    let announced = heartbeats(&story.sent());
    assert!(announced.iter().all(|heartbeat| heartbeat.last.0 <= 1), "{announced:?}");
    story.write(1, b"small").unwrap();
    story.write(1, &[0; 30_000]).unwrap();
    story.pass(BUDGET);
    assert_eq!(data(&story.sent()).last(), Some(&3));
}

#[test]
fn samples_that_keep_last_replaced_while_they_waited_are_sent_all_the_same() {
    let mut story = flowing(QosSet { latency_budget: BUDGET, ..QosSet::writer().keep_last(1) });
    story.matched(&reliable(7));
    story.write_many(5, b"data");
    story.pass(BUDGET);
    assert_eq!(data(&story.sent()), [1, 2, 3, 4, 5]);
}

#[test]
fn nobody_listens_so_nothing_waits() {
    let mut story = flowing(QosSet { latency_budget: BUDGET, ..QosSet::writer().keep_all() });
    story.write_many(100, b"data");
    assert_eq!(story.writer.next_timeout(), None);
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.writer.unmatch_reader(story.now, reader.guid, &mut story.out);
    story.pass(BUDGET);
    assert_eq!(data(&story.sent()), []);
}

#[test]
fn suspended_publications_wait_until_resumed() {
    let mut story = flowing(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    story.sent();
    story.writer.suspend();
    story.write_many(3, b"data");
    story.pass(Duration::from_secs(5));
    assert_eq!(data(&story.sent()), []);
    story.writer.resume(story.now, &mut story.out);
    assert_eq!(story.samples_by_datagram(), [3]);
    story.pass(Duration::from_millis(1));
    story.write(1, b"data").unwrap();
    assert_eq!(data(&story.sent()), [4]);
}

#[test]
fn a_coherent_set_leaves_when_it_ends() {
    let mut qos = QosSet { latency_budget: BUDGET, ..QosSet::writer().keep_all() };
    qos.presentation.coherent_access = true;
    let mut story = flowing(qos);
    story.matched(&reliable(7));
    story.sent();
    story.writer.begin_coherent_changes(SequenceNumber(1));
    story.write_many(3, b"data");
    story.writer.end_coherent_changes(story.now, SequenceNumber(1), &mut story.out);
    assert_eq!(data(&story.sent()), [1, 2, 3, 4]);
}

#[test]
fn writes_of_a_flow_let_go_of_what_is_acknowledged_a_few_at_a_time() {
    let mut story = flowing(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    story.write_many(1_000, b"data");
    story.acknack(&reader, 801, &[]).unwrap();
    assert_eq!(story.writer.history.len(), 1_000);
    story.write(1, b"data").unwrap();
    let released = 1_001 - story.writer.history.len();
    assert!((1..200).contains(&released), "{released} with one write");
    story.write_many(400, b"data");
    assert_eq!(story.writer.history.len(), 1_401 - 800);
    // After a pause nobody knows whether a write follows.
    story.pass(Duration::from_millis(1));
    story.acknack(&reader, 1_402, &[]).unwrap();
    assert_eq!(story.writer.history.len(), 0);
}

#[test]
fn what_is_acknowledged_makes_room_at_once() {
    let mut qos = QosSet::writer().keep_all();
    qos.resource_limits.max_samples = 100;
    let mut story = flowing(qos);
    let reader = reliable(7);
    story.matched(&reader);
    story.write_many(99, b"data");
    story.writer.flush(story.now, &mut story.out);
    story.acknack(&reader, 51, &[]).unwrap();
    story.write_many(51, b"data");
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full));
}

#[test]
fn short_changes_of_a_flow_leave_the_history_together_and_long_ones_at_once() {
    let (mut story, reader) = (flowing(QosSet::writer().keep_all()), reliable(7));
    story.matched(&reader);
    story.write_many(100, b"data");
    story.writer.flush(story.now, &mut story.out);
    let held_after = |story: &mut Story, acknowledged: i64, payload: &[u8]| {
        story.acknack(&reader, acknowledged + 1, &[]).unwrap();
        story.write(1, payload).unwrap();
        story.writer.history_len()
    };
    assert_eq!(held_after(&mut story, 31, b"data"), 101, "too few to let go of");
    assert_eq!(held_after(&mut story, 32, b"data"), 102 - 32);
    assert_eq!(held_after(&mut story, 34, &[7; 2_000]), 103 - 34, "its memory is the next to be written");
    story.pass(Duration::from_millis(1));
    story.acknack(&reader, 44, &[]).unwrap();
    assert_eq!(story.writer.history_len(), 103 - 43, "the flow is over");
}
