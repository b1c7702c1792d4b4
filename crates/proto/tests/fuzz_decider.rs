//! Seeded mutation fuzzing of a voter on stable Rust. `PLAINSONG_FUZZ_SECONDS` says how long, default 1;
//! `PLAINSONG_FUZZ_SEED` repeats one run.

use std::env;
use std::time::{Duration, Instant};

mod decider_fuzzing;

#[test]
fn fuzz_decider() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let end = Instant::now() + Duration::from_secs(number("PLAINSONG_FUZZ_SECONDS").unwrap_or(1));
    let only = number("PLAINSONG_FUZZ_SEED");
    let mut runs = 0_u64;
    for seed in only.map_or(0..=u64::MAX, |seed| seed..=seed) {
        let octets = random(seed);
        let result = std::panic::catch_unwind(|| decider_fuzzing::run(&octets));
        assert!(result.is_ok(), "repeat with PLAINSONG_FUZZ_SEED={seed}");
        runs += 1;
        if Instant::now() >= end {
            break;
        }
    }
    println!("{runs} runs");
}

/// Octets from a seed (xorshift64*): changes of a few octets, often small or extreme numbers.
fn random(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40
    };
    let mut octets = Vec::new();
    for _ in 0..next() % 40 {
        let length = next() % 6;
        octets.extend([next() as u8, 0, (next() % 120) as u8, length as u8]);
        for _ in 0..length {
            octets.push(match next() % 4 {
                0 => 0,
                1 => 0xff,
                2 => (next() % 8) as u8,
                _ => next() as u8,
            });
        }
    }
    octets
}
