//! Datagrams of a flow that are full to the end.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const BUDGET: Duration = Duration::from_millis(10);
const DATAGRAM_BYTES_MAX: usize = 65_000;

/// Ours, on this host.
fn ours(number: u8) -> MatchedReader {
    MatchedReader { receive_bytes: 8 << 20, ..reliable(number) }
}

fn to(readers: &[MatchedReader]) -> Story {
    let qos = QosSet { latency_budget: BUDGET, ..QosSet::writer().keep_all() };
    let mut story = Story::with_limits(qos, WriterLimits::default());
    readers.iter().for_each(|reader| story.matched(reader));
    story.sent();
    story
}

fn sample(number: i64, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 31 + index / 251) as u8 ^ number as u8).collect()
}

impl Story {
    fn write_samples(&mut self, count: i64, bytes: usize) {
        for number in 1..=count {
            self.write(1, &sample(number, bytes)).unwrap();
        }
    }
}

/// What came of each sample, in order and none of it twice.
fn add(sent: &[Sent], samples: &mut BTreeMap<i64, Vec<u8>>) {
    for sent in sent {
        match sent {
            Sent::Data(data) => assert!(samples.insert(data.number, data.payload.clone()).is_none()),
            Sent::Fragment(fragment) => {
                let octets = samples.entry(fragment.number).or_default();
                let at = (fragment.fragment - 1) as usize * usize::from(fragment.fragment_bytes);
                assert_eq!(octets.len(), at, "in order, and none twice");
                octets.extend_from_slice(&fragment.payload);
            }
            _ => {}
        }
    }
}

fn fragments(sent: &[Sent]) -> Vec<(i64, u32)> {
    sent.iter()
        .filter_map(|sent| match sent {
            Sent::Fragment(fragment) => Some((fragment.number, fragment.fragment)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_datagram_that_has_no_room_for_a_sample_has_its_beginning_and_the_next_one_its_end() {
    for bytes in [4_096, 8_204, 16_396, 30_000, 40_000, 60_000] {
        let mut story = to(&[ours(7)]);
        // Less than may be unacknowledged.
        let count = 480_000 / bytes as i64;
        story.write_samples(count, bytes);
        story.pass(BUDGET);
        let lengths = story.out.transmits().iter().map(|transmit| transmit.len());
        // Others are HEARTBEATs that ask in the meantime.
        let lengths: Vec<usize> = lengths.filter(|length| *length > 100).collect();
        let full = lengths.split_last().unwrap().1;
        let expected = DATAGRAM_BYTES_MAX - 1_024 - 100..=DATAGRAM_BYTES_MAX;
        assert!(full.iter().all(|length| expected.contains(length)), "{bytes}: {lengths:?}");
        let mut samples = BTreeMap::new();
        let mut cut = 0;
        for (_, sent) in story.sent_by_datagram() {
            add(&sent, &mut samples);
            let beginning = fragments(&sent).into_iter().find(|(_, first)| *first == 1);
            if let Some((number, _)) = beginning {
                cut += 1;
                assert!(heartbeats(&sent).iter().all(|heartbeat| heartbeat.last.0 < number));
            }
        }
        assert!(cut > 0, "{bytes}");
        let expected = (1..=count).map(|number| (number, sample(number, bytes))).collect();
        assert!(samples == expected, "{bytes}: each came as it was written");
    }
}

#[test]
fn the_end_of_a_sample_leaves_when_its_time_is_over_or_when_told() {
    for is_told in [false, true] {
        let mut story = to(&[ours(7)]);
        story.write_samples(4, 16_396);
        let sent = story.sent();
        assert_eq!(data(&sent), [1, 2, 3]);
        assert_eq!(fragments(&sent), [(4, 1)]);
        assert_eq!(story.writer.sent_last(RouteKind::SameHost), SequenceNumber(3));
        let due = story.writer.next_timeout().unwrap();
        assert!(due.since(story.now.mono) <= BUDGET, "it has a time of its own");
        if is_told {
            story.writer.flush(story.now, &mut story.out);
        } else {
            story.pass(BUDGET);
        }
        let sent = story.sent();
        assert!(matches!(fragments(&sent)[..], [(4, rest)] if rest > 1), "{sent:?}");
        assert_eq!(story.writer.sent_last(RouteKind::SameHost), SequenceNumber(4));
    }
}

#[test]
fn who_lacks_a_part_of_one_gets_it_whole() {
    let (mut story, reader) = (to(&[ours(7)]), ours(7));
    story.write_samples(4, 16_396);
    // The end is still to come.
    story.nack_frag(&reader, 4, &[16, 17]).unwrap();
    assert_eq!(data(&story.sent()), [1, 2, 3]);
    story.pass(BUDGET);
    story.sent();
    story.nack_frag(&reader, 4, &[16, 17]).unwrap();
    let sent = story.sent();
    assert_eq!(data(&sent), [4]);
    assert_eq!(fragments(&sent), []);
}

#[test]
fn for_readers_elsewhere_or_of_others_and_with_inline_qos_nothing_is_cut() {
    let elsewhere = MatchedReader { same_host: false, ..ours(8) };
    let inline = MatchedReader { expects_inline_qos: true, ..ours(8) };
    let (of_others, best_effort) =
        (reliable(8), MatchedReader { receive_bytes: 8 << 20, ..reader(8, QosSet::reader()) });
    let cases = [
        ("of others", vec![ours(7), of_others], 16_396),
        ("inline QoS", vec![ours(7), inline], 16_396),
        ("nobody acknowledges", vec![best_effort], 16_396),
        ("short", vec![ours(7)], 4_000),
    ];
    for (case, readers, bytes) in cases {
        let mut story = to(&readers);
        story.write_samples(20, bytes);
        story.pass(BUDGET);
        let sent = story.sent();
        assert_eq!((data(&sent), fragments(&sent)), ((1..=20).collect(), vec![]), "{case}");
    }
    let mut story = to(&[ours(7), elsewhere]);
    story.write_samples(4, 16_396);
    story.pass(BUDGET);
    let here: Vec<Sent> = story
        .sent_by_datagram()
        .into_iter()
        .filter(|(destinations, _)| *destinations == ours(7).locators)
        .flat_map(|(_, sent)| sent)
        .collect();
    assert_eq!((data(&here), fragments(&here)), (vec![1, 2, 3, 4], vec![]));
}

#[test]
fn a_batch_is_no_longer_than_it_may_be() {
    let qos = QosSet { latency_budget: BUDGET, ..QosSet::writer().keep_all() };
    let mut story = Story::with_limits(qos, WriterLimits { batch_bytes: 20_000, ..WriterLimits::default() });
    story.matched(&ours(7));
    story.sent();
    story.write_samples(10, 8_204);
    story.pass(BUDGET);
    assert!(story.out.transmits().iter().all(|transmit| transmit.len() <= 20_000));
    assert!(!fragments(&story.sent()).is_empty());
}

proptest! {
    #[test]
    fn samples_of_any_lengths_come_whole_and_in_order(
        steps in prop::collection::vec((prop_oneof![0_usize..300, 3_000_usize..9_000, 10_000_usize..70_000], 0_u8..20), 1..60),
    ) {
        let mut story = to(&[ours(7)]);
        let (mut samples, mut expected) = (BTreeMap::new(), BTreeMap::new());
        for (number, (bytes, step)) in (1..).zip(steps) {
            // What a submessage is padded with cannot be told from a payload.
            let bytes = bytes.next_multiple_of(4);
            if story.write(1, &sample(number, bytes)).is_err() {
                story.pass(BUDGET);
                story.acknack(&ours(7), number, &[]).unwrap();
                story.write(1, &sample(number, bytes)).unwrap();
            }
            expected.insert(number, sample(number, bytes));
            match step {
                0 => story.pass(BUDGET),
                1 => story.writer.flush(story.now, &mut story.out),
                2 => {
                    story.acknack(&ours(7), story.writer.sent_last(RouteKind::SameHost).0 + 1, &[]).unwrap();
                }
                _ => {}
            }
            prop_assert!(story.out.transmits().iter().all(|transmit| transmit.len() <= DATAGRAM_BYTES_MAX));
            add(&story.sent(), &mut samples);
        }
        story.pass(Duration::from_secs(1));
        add(&story.sent(), &mut samples);
        prop_assert!(samples == expected);
    }
}
