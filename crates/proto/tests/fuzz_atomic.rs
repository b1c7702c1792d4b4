//! Seeded mutation fuzzing of a group on stable Rust. `PLAINSONG_FUZZ_SECONDS` says how long, default 1;
//! `PLAINSONG_FUZZ_SEED` repeats one run.

use std::env;
use std::time::{Duration, Instant};

mod atomic_fuzzing;

#[test]
fn fuzz_atomic() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let end = Instant::now() + Duration::from_secs(number("PLAINSONG_FUZZ_SECONDS").unwrap_or(1));
    let only = number("PLAINSONG_FUZZ_SEED");
    let mut runs = 0_u64;
    for seed in only.map_or(0..=u64::MAX, |seed| seed..=seed) {
        let octets = random(seed);
        let result = std::panic::catch_unwind(|| atomic_fuzzing::run(&octets));
        assert!(result.is_ok(), "repeat with PLAINSONG_FUZZ_SEED={seed}");
        runs += 1;
        if Instant::now() >= end {
            break;
        }
    }
    println!("{runs} runs");
}

/// Octets from a seed (xorshift64*): most steps change nothing, so that there is a group.
fn random(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as u8
    };
    let mut octets = [19, 0, 0, 0].repeat(20);
    for _ in 0..usize::from(next()) {
        let what = match next() % 8 {
            0..3 => 16 + next() % 4,
            3..6 => next() % 4,
            _ => next(),
        };
        octets.extend([what, next(), next(), next()]);
    }
    octets
}
