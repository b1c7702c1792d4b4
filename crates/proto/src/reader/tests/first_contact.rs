//! How soon after its match a late reader has the one sample of a writer, whatever form of ACKNACK the writer
//! answers.

use super::*;
use crate::vendor;

/// The number of the only sample: those before were replaced.
const LATCHED: i64 = 7;

const FAST_DDS: [u8; 2] = [0x01, 0x0f];
const CYCLONE_DDS: [u8; 2] = [0x01, 0x10];
const RUST_DDS: [u8; 2] = [0x01, 0x12];
const UNHEARD_OF: [u8; 2] = [0x7e, 0x7e];

/// What a writer does some milliseconds after an ACKNACK.
#[derive(Clone, Copy)]
enum Reaction {
    Heartbeat,
    Sample,
    /// All before the sample is gone.
    Gap,
}

/// How writers of a product answer, in milliseconds from an ACKNACK.
type Manner = fn(&Ack) -> Vec<(u32, Reaction)>;

fn asks_for_sample(ack: &Ack) -> bool {
    ack.missing.contains(&LATCHED)
}

/// Base 0 draws a heartbeat at once, a plain ACKNACK waits for the period of 3 s, what is missing comes after
/// 5 ms.
fn as_fast_dds(ack: &Ack) -> Vec<(u32, Reaction)> {
    if ack.base > 0 && asks_for_sample(ack) {
        vec![(5, Reaction::Sample), (5, Reaction::Heartbeat)]
    } else if ack.base > 0 && !ack.final_flag {
        vec![(3_000, Reaction::Heartbeat)]
    } else if ack.base == 0 && ack.missing.is_empty() && !ack.final_flag {
        vec![(0, Reaction::Heartbeat)]
    } else {
        Vec::new()
    }
}

/// Nothing draws a heartbeat, which comes each second; what is missing is repeated after 200 ms.
fn as_rust_dds(ack: &Ack) -> Vec<(u32, Reaction)> {
    if asks_for_sample(ack) {
        vec![(200, Reaction::Sample)]
    } else if ack.missing.iter().any(|number| *number < LATCHED) {
        vec![(200, Reaction::Gap)]
    } else {
        Vec::new()
    }
}

/// As the standard wants it.
fn at_once(ack: &Ack) -> Vec<(u32, Reaction)> {
    if asks_for_sample(ack) {
        vec![(0, Reaction::Sample), (0, Reaction::Heartbeat)]
    } else if ack.final_flag {
        Vec::new()
    } else {
        vec![(0, Reaction::Heartbeat)]
    }
}

/// What a reader saw of one writer.
struct Story {
    /// From the match to the sample.
    first_sample_ms: Option<u32>,
    /// Until then.
    acknacks: usize,
    bench: Bench,
}

fn story(vendor: [u8; 2], manner: Manner, period_ms: u32) -> Story {
    let qos = QosSet::reader().reliable().keep_last(1).durability(Durability::TransientLocal);
    let mut bench = Bench::new(qos);
    bench.vendor = vendor;
    bench.matched(1, QosSet::writer().keep_last(1).durability(Durability::TransientLocal));
    let mut due: Vec<(u32, Reaction)> = Vec::new();
    let mut acknacks = 0;
    for at_ms in 0..=5_000 {
        // Each round is an answer that comes back within the millisecond.
        for _ in 0..4 {
            for ack in bench.acks() {
                acknacks += 1;
                due.extend(manner(&ack).into_iter().map(|(after_ms, it)| (at_ms + after_ms, it)));
            }
            if at_ms > 0 && at_ms % period_ms == 0 {
                due.push((at_ms, Reaction::Heartbeat));
            }
            let now: Vec<_> = due.extract_if(.., |(due_ms, _)| *due_ms <= at_ms).collect();
            for (_, reaction) in now {
                let _ = match reaction {
                    Reaction::Heartbeat => bench.heartbeat(1, LATCHED, LATCHED, false),
                    Reaction::Sample => bench.data(1, LATCHED, 1, 70),
                    Reaction::Gap => bench.gap(1, 1, LATCHED, &[]),
                };
            }
            if bench.values() == [70] {
                return Story { first_sample_ms: Some(at_ms), acknacks, bench };
            }
        }
        bench.pass(Duration::from_millis(1));
    }
    Story { first_sample_ms: None, acknacks, bench }
}

fn first_sample_ms(vendor: [u8; 2], manner: Manner, period_ms: u32) -> u32 {
    story(vendor, manner, period_ms).first_sample_ms.expect("the sample arrives")
}

#[test]
fn a_latched_sample_of_each_product_comes_as_soon_as_its_writers_allow() {
    assert!(first_sample_ms(FAST_DDS, as_fast_dds, 3_000) <= 10);
    assert_eq!(first_sample_ms(CYCLONE_DDS, at_once, 1_000), 0);
    assert_eq!(first_sample_ms(vendor::PLAINSONG, at_once, 1_000), 0);
    // It repeats after 200 ms: once to tell what is gone, once to send what there is.
    assert!(first_sample_ms(RUST_DDS, as_rust_dds, 1_000) <= 405);
}

#[test]
fn a_writer_of_an_unknown_product_is_asked_in_every_form_within_100_ms() {
    for manner in [as_fast_dds as Manner, at_once] {
        assert!(first_sample_ms(UNHEARD_OF, manner, 3_000) <= 20);
    }
    assert!(first_sample_ms(UNHEARD_OF, as_rust_dds, 1_000) <= 450);
}

#[test]
fn a_version_that_does_not_answer_as_others_of_its_vendor_is_asked_in_the_other_forms() {
    assert!(first_sample_ms(RUST_DDS, as_fast_dds, 3_000) <= 20);
    assert!(first_sample_ms(FAST_DDS, as_rust_dds, 1_000) <= 450);
}

#[test]
fn a_writer_that_answers_at_once_is_asked_once_and_a_heard_one_no_more() {
    for vendor in [CYCLONE_DDS, vendor::PLAINSONG, UNHEARD_OF] {
        let mut told = story(vendor, at_once, 1_000);
        assert_eq!(told.acknacks, 2, "one probe, one request");
        told.bench.acks();
        told.bench.pass(Duration::from_secs(60));
        assert!(told.bench.acks().is_empty(), "nothing in a steady state");
    }
}

#[test]
fn the_first_question_is_in_the_form_that_the_vendor_answers() {
    let first = |vendor| {
        let mut bench = Bench::new(QosSet::reader().reliable());
        bench.vendor = vendor;
        bench.matched(1, QosSet::writer());
        bench.acks()
    };
    let ack = |base, missing| vec![Ack { base, missing, final_flag: false }];
    assert_eq!(first(FAST_DDS), ack(0, vec![]));
    assert_eq!(first(RUST_DDS), ack(1, vec![1]));
    assert_eq!(first(CYCLONE_DDS), ack(1, vec![]));
    assert_eq!(first(UNHEARD_OF), ack(1, vec![]));
}
