//! Seeded fuzzing of recordings on stable Rust. `PLAINSONG_FUZZ_SECONDS` says how long, default 1;
//! `PLAINSONG_FUZZ_SEED` repeats one run.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
mod recording_fuzzing;
#[allow(dead_code, reason = "octets are made here")]
#[path = "../../proto/tests/text_fuzzing/mod.rs"]
mod text_fuzzing;

use common::{Place, record};
use text_fuzzing::Random;

#[test]
fn fuzz_recording() {
    let place = Place::new("fuzz");
    let good = record(&place, 40, |_, _| {});
    assert!(recording_fuzzing::run(&good));
    text_fuzzing::fuzz(
        |random| {
            // As text, one letter for each octet, for that is what is repeated.
            let mut octets = good.clone();
            change(random, &mut octets);
            octets.into_iter().map(char::from).collect()
        },
        |text| {
            let octets: Vec<u8> = text.chars().map(|letter| letter as u8).collect();
            recording_fuzzing::run(&octets)
        },
    );
}

/// Flips, copies, cuts and moves; the checksums of chunks are left out now and then, so that what is behind
/// them is reached.
fn change(random: &mut Random, octets: &mut Vec<u8>) {
    if random.below(2) == 0 {
        forget_checksums(octets);
    }
    for _ in 0..random.below(6) {
        let length = octets.len().max(1);
        let at = random.below(length);
        match random.below(5) {
            0 => octets.truncate(at),
            1 => octets[at..].iter_mut().take(8).for_each(|octet| *octet = 0xff),
            2 => {
                let end = (at + random.below(64)).min(octets.len());
                let copied = octets[at..end].to_vec();
                let to = random.below(length);
                octets.splice(to..to, copied);
            }
            3 => drop(octets.drain(at..(at + random.below(16)).min(length))),
            _ => octets[at] ^= 1 << random.below(8),
        }
        if octets.is_empty() {
            return;
        }
    }
}

/// Of each chunk: after the times and the size stands the checksum, 0 of which is none.
fn forget_checksums(octets: &mut [u8]) {
    let mut at = 8;
    while let Some(head) = octets.get(at..at + 9) {
        let length = u64::from_le_bytes(head[1..].try_into().unwrap()) as usize;
        if head[0] == 6
            && let Some(place) = octets.get_mut(at + 33..at + 37)
        {
            place.fill(0);
        }
        at += 9 + length;
    }
}
