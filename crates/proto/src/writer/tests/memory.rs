//! Readers that share memory with the writer: messages in rings, long samples beside them.

use super::*;
use crate::tuning::writer::RING_STALLED_AFTER;
use crate::writer::flow::route_kind::RouteKind;

/// Messages that were sent: octets, those beside them, and what was in them.
type Message = (usize, usize, Vec<Sent>);

impl Story {
    fn messages(&mut self) -> Vec<Message> {
        let octets = |transmit| {
            let (slices, attachment) = self.out.parts(transmit);
            (slices.map(<[u8]>::len).sum(), attachment.map_or(0, Payload::len))
        };
        let octets: Vec<(usize, usize)> = self.out.transmits().iter().map(octets).collect();
        let sent = self.sent_by_datagram();
        octets.into_iter().zip(sent).map(|((bytes, beside), (_, sent))| (bytes, beside, sent)).collect()
    }
}

fn by_memory(reader: MatchedReader) -> MatchedReader {
    let node = reader.guid.prefix.0[0];
    MatchedReader { locators: vec![Locator::memory([node; 16])], ..reader }
}

fn limits() -> WriterLimits {
    WriterLimits { batch_bytes: 0, memory_ring_bytes: 16 << 10, ..WriterLimits::default() }
}

fn keep_all() -> QosSet {
    QosSet::writer().keep_all()
}

#[test]
fn long_samples_go_beside_messages_of_their_own_and_short_ones_within() {
    let mut story = Story::new(keep_all());
    // What a reader on another host is sent in fragments.
    let reader = by_memory(reliable(2));
    story.matched(&reader);
    story.messages();
    let payload = [&[0, 1, 0, 0][..], &[7; 4 << 20]].concat();
    for length in [4 << 20, 4_096, 4_092] {
        story.write(1, &payload[..length]).unwrap();
        let messages = story.messages();
        let (bytes, beside, sent) = &messages[0];
        assert_eq!(*beside, if length < 4_096 { 0 } else { length });
        assert!(*bytes < 200 || *beside == 0, "{bytes}");
        assert_eq!(data(sent).len(), 1);
        assert!(matches!(&sent[0], Sent::Data(it) if it.payload == payload[..length]));
        // Nothing follows what is beside a message.
        assert_eq!(*beside > 0, sent.len() == 1);
        let asked = messages.iter().flat_map(|(.., sent)| heartbeats(sent)).next().unwrap();
        assert_eq!((asked.last, asked.final_flag), (story.writer.last_sequence_number(), false));
        story.acknack(&reader, asked.last.0 + 1, &[]).unwrap();
        story.pass(Duration::from_millis(100));
        story.messages();
    }
    // One that misses it gets it whole.
    story.write(1, &payload).unwrap();
    story.messages();
    story.pass(Duration::from_millis(3));
    story.messages();
    story.acknack(&reader, 4, &[4]).unwrap();
    assert_eq!(story.messages()[0].1, payload.len());
    story.pass(Duration::from_millis(3));
    story.messages();
    story.nack_frag(&reader, 4, &[1]).unwrap();
    assert_eq!(story.messages()[0].1, payload.len(), "whatever was said of fragments by another route");
}

#[test]
fn half_a_ring_is_filled_until_its_reader_has_read_it() {
    let mut story = Story::with_limits(keep_all(), limits());
    let readers = [by_memory(reliable(2)), by_memory(reliable(3))];
    readers.iter().for_each(|reader| story.matched(reader));
    story.messages();
    (0..30).for_each(|_| _ = story.write(1, &[0; 1_000]).unwrap());
    let sent = story.messages();
    let bytes: usize = sent.iter().map(|(bytes, ..)| bytes).sum();
    let last = sent.iter().flat_map(|(.., sent)| data(sent)).last().unwrap();
    assert!((7_000..=9_500).contains(&bytes), "{bytes} octets of 16 KiB, up to sample {last}");
    assert!(sent.iter().any(|(.., sent)| heartbeats(sent).iter().any(|it| !it.final_flag)));
    // The slower of two decides, and what it misses is not in its ring either.
    story.acknack(&readers[0], last + 1, &[]).unwrap();
    assert_eq!(story.messages().iter().flat_map(|(.., sent)| data(sent)).count(), 0);
    story.pass(Duration::from_millis(1));
    story.acknack(&readers[1], 3, &[3, last]).unwrap();
    let sent = story.messages();
    let numbers: Vec<i64> = sent.iter().flat_map(|(.., sent)| data(sent)).collect();
    assert!(numbers.starts_with(&[3, last, last + 1]), "{numbers:?}");
    assert!(numbers.len() < 12, "{numbers:?}");
}

#[test]
fn a_reader_that_reads_nothing_holds_others_up_for_a_moment_only() {
    let mut story = Story::with_limits(QosSet::writer().keep_last(1), limits());
    let readers = [by_memory(reliable(2)), by_memory(reliable(3))];
    readers.iter().for_each(|reader| story.matched(reader));
    story.messages();
    let (mut numbers, mut waited) = (Vec::new(), Duration::ZERO);
    for number in 1..=200 {
        story.write(1, &[0; 1_000]).unwrap();
        let before = numbers.len();
        numbers.extend(story.messages().iter().flat_map(|(.., sent)| data(sent)));
        waited = if numbers.len() > before { Duration::ZERO } else { Duration(waited.0 + 1_000_000) };
        assert!(waited <= Duration(RING_STALLED_AFTER.0 + 1_000_000), "{number}");
        story.pass(Duration::from_millis(1));
        let sent = story.writer.sent_last(RouteKind::Memory);
        story.acknack(&readers[0], sent.0 + 1, &[]).unwrap();
        numbers.extend(story.messages().iter().flat_map(|(.., sent)| data(sent)));
    }
    assert!(numbers.len() > 150, "{numbers:?}");
    // Who acknowledges nothing is not waited for at all.
    let mut story = Story::with_limits(QosSet::writer().keep_last(1), limits());
    story.matched(&by_memory(reader(2, QosSet::reader())));
    (0..100).for_each(|_| _ = story.write(1, &[0; 1_000]).unwrap());
    assert_eq!(story.messages().iter().flat_map(|(.., sent)| data(sent)).count(), 100);
}

#[test]
fn what_is_lent_has_a_limit_of_its_own_and_a_few_long_samples_follow_each_other() {
    let limits = WriterLimits { lent_bytes_max: 3 << 20, ..WriterLimits::default() };
    let mut story = Story::with_limits(keep_all(), limits);
    let reader = by_memory(reliable(2));
    story.matched(&reader);
    story.messages();
    let written = (0..20).take_while(|_| story.write(1, &[0; 1 << 20]).is_ok()).count();
    assert_eq!(written, 7, "four times the usual window");
    let beside: usize = story.messages().iter().map(|(_, beside, _)| beside).sum();
    assert_eq!(beside, 3 << 20);
    story.acknack(&reader, 3, &[]).unwrap();
    let beside: usize = story.messages().iter().map(|(_, beside, _)| beside).sum();
    assert_eq!(beside, 2 << 20);
}

#[test]
fn short_samples_of_a_flow_share_messages_that_a_ring_takes_soon() {
    let mut story = Story::with_limits(keep_all(), WriterLimits::default());
    story.matched(&by_memory(reliable(2)));
    story.messages();
    for _ in 0..2_000 {
        story.write(1, &[0, 1, 0, 0, 7, 0, 0, 0]).unwrap();
        story.writer.sent(story.now.mono);
    }
    let batches: Vec<(usize, usize)> =
        story.messages().iter().map(|(bytes, _, sent)| (*bytes, data(sent).len())).collect();
    let longest = batches.iter().max().unwrap();
    assert!((6 << 10..=16 << 10).contains(&longest.0) && longest.1 > 100, "{batches:?}");
    assert_eq!(batches[0].1, 1, "a lone sample leaves at once");
}

#[test]
fn what_is_queued_for_a_reader_by_udp_follows_by_memory_and_back() {
    let mut story = Story::new(keep_all());
    let (near, other) = (reliable(2), reliable(3));
    [&near, &other].into_iter().for_each(|reader| story.matched(reader));
    story.messages();
    // More than a burst.
    (0..4).for_each(|_| _ = story.write(1, &[0; 150_000]).unwrap());
    let sent = story.messages();
    assert!(
        !sent
            .iter()
            .any(|(.., sent)| sent.iter().any(|it| matches!(it, Sent::Fragment(it) if it.number == 4)))
    );
    let moved = by_memory(near.clone());
    story.matched(&moved);
    let sent: Vec<Message> = story.messages().into_iter().filter(|(_, beside, _)| *beside > 0).collect();
    assert_eq!(sent.iter().flat_map(|(.., sent)| data(sent)).collect::<Vec<_>>(), [2, 3, 4]);
    story.write(1, &[0; 1_000]).unwrap();
    assert_eq!(story.messages().iter().flat_map(|(.., sent)| data(sent)).next(), Some(5));
    // Back again: what it has not acknowledged is asked about where it is now.
    story.matched(&near);
    let asked: Vec<_> = story.sent_by_datagram();
    assert!(asked.iter().any(|(to, sent)| *to == near.locators && !heartbeats(sent).is_empty()));
    story.pass(Duration::from_millis(5));
    story.sent();
    story.acknack(&near, 3, &[4]).unwrap();
    let sent = story.sent_by_datagram();
    let to_it = |sent: &Sent| matches!(sent, Sent::Fragment(it) if it.number == 4);
    assert!(sent.iter().any(|(to, sent)| *to == near.locators && sent.iter().any(to_it)));
}
