//! What a reader, or whoever writes in its name, draws by asking again and again: octets sent for octets
//! heard, with IP and UDP headers.

use super::*;

const HEADERS_BYTES: usize = 28;
/// RTPS header, INFO_DST and a request without bitmap.
const REQUEST_BYTES: usize = HEADERS_BYTES + 20 + 16 + 28;
const SAMPLE_BYTES: usize = 1_000;
const SAMPLES: i64 = 600;
/// No fragments of it fit the datagrams of this host.
const LONG_BYTES: usize = 3_000_000;

type Request = fn(&mut Story, &MatchedReader, round: i64);

/// Each as often as wanted, and what it may draw when the first answers are over.
const REQUESTS: [(&str, usize, Request); 6] = [
    ("the same 256 changes", 3, |story, reader, _| {
        let _ = story.acknack(reader, 1, &Vec::from_iter(1..=256));
    }),
    ("256 changes, each time others", 3, |story, reader, round| {
        let base = 1 + round % 3 * 200;
        let _ = story.acknack(reader, base, &Vec::from_iter(base..base + 200));
    }),
    ("all fragments of a long change", 3, |story, reader, round| {
        let first = 1 + round as u32 % 12 * 200;
        let _ = story.nack_frag(reader, SAMPLES + 1, &Vec::from_iter(first..first + 200));
    }),
    ("changes that are gone", 2, |story, reader, _| {
        let _ = story.acknack(reader, SAMPLES + 2, &[SAMPLES + 2]);
    }),
    ("a heartbeat", 2, |story, reader, _| {
        story.acknack_count += 1;
        let _ = story.acknack_with(reader, SAMPLES + 2, &[], story.acknack_count, false);
    }),
    ("anything, of a stranger", 0, |story, _, _| {
        let _ = story.acknack(&reliable(9), 1, &[1, 2, 3]);
        let _ = story.nack_frag(&reliable(9), SAMPLES + 1, &[1, 2, 3]);
    }),
];

/// Octets sent since the last look.
fn octets(story: &mut Story) -> usize {
    let octets = story.out.transmits().iter().map(|transmit| transmit.len() + HEADERS_BYTES).sum();
    story.sent();
    octets
}

#[test]
fn what_is_asked_again_and_again_draws_at_most_three_times_as_much() {
    let mut history = SAMPLES as usize * SAMPLE_BYTES + LONG_BYTES;
    history += history / 10;
    for (what, factor, request) in REQUESTS {
        let mut qos = QosSet { durability: Durability::TransientLocal, ..QosSet::writer() }.keep_last(1_000);
        qos.resource_limits.max_samples = 1_000;
        let mut story = Story::new(qos);
        for _ in 0..SAMPLES {
            story.write(1, &[7; SAMPLE_BYTES]).unwrap();
        }
        story.write(1, &vec![7; LONG_BYTES]).unwrap();
        let reader = durable(7);
        story.matched(&reader);
        story.pass(Duration::from_secs(1));
        story.acknack(&reader, SAMPLES + 2, &[]).unwrap();
        story.pass(Duration::from_secs(1));
        octets(&mut story);
        let mut storm = |seconds: i64| {
            let mut drawn = 0;
            for round in 0..seconds * 1_000 {
                request(&mut story, &reader, round);
                story.pass(Duration::from_millis(1));
                drawn += octets(&mut story);
            }
            drawn
        };
        // What it lacks it may get, and twice.
        let first = storm(2);
        let heard = 2 * 1_000 * REQUEST_BYTES;
        assert!(first <= factor * (heard + history) + (8 << 20), "{what}: {first} at first");
        let then = storm(8);
        let heard = 8 * 1_000 * REQUEST_BYTES;
        assert!(then <= factor * heard, "{what}: {then} octets for {heard}");
    }
}
