//! Seeded fuzzing of recordings on stable Rust. `PLAINSONG_FUZZ_SECONDS` says how long, default 1;
//! `PLAINSONG_FUZZ_SEED` repeats one run.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "../../proto/tests/counting/mod.rs"]
mod counting;
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
            counted(&octets)
        },
    );
}

/// A run takes no more memory than its octets and what a type of them needs.
fn counted(octets: &[u8]) -> bool {
    let (good, allocated) = counting::allocated_by(|| recording_fuzzing::run(octets));
    assert!(allocated.octets <= (16 << 20) + 64 * octets.len(), "{allocated:?} of {}", octets.len());
    good
}

#[test]
fn a_length_that_is_told_takes_no_memory() {
    // A header, a channel and a chunk, each of which tells a string of 4 GB.
    for (opcode, before) in [(1, 0), (4, 4), (6, 28)] {
        let mut octets = b"\x89MCAP0\r\n".to_vec();
        let mut record = vec![0; before];
        record.extend([0xff; 4]);
        record.extend([b'x'; 40]);
        octets.push(opcode);
        octets.extend((record.len() as u64).to_le_bytes());
        octets.extend(record);
        assert!(!counted(&octets), "the record {opcode} is no recording");
    }
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
