//! Seeded mutation fuzzing of types that are known at run time, on stable Rust. `PLAINSONG_FUZZ_SECONDS` says
//! how long, default 1; `PLAINSONG_FUZZ_SEED` repeats one run.

use std::env;
use std::time::{Duration, Instant};

mod counting;
mod dynamic_fuzzing;

#[test]
fn fuzz_dynamic() {
    let seconds = env::var("PLAINSONG_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let seed = env::var("PLAINSONG_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut runs = 0_u64;
    let mut seeds = seed.map_or(0..=u64::MAX, |seed| seed..=seed);
    while let Some(seed) = seeds.next().filter(|_| Instant::now() < end) {
        let octets = random(seed);
        let (run, allocated) =
            counting::allocated_by(|| std::panic::catch_unwind(|| dynamic_fuzzing::run(&octets)));
        assert!(run.is_ok(), "repeat with PLAINSONG_FUZZ_SEED={seed}");
        assert!(allocated.octets <= OCTETS_MAX, "{allocated:?}; repeat with PLAINSONG_FUZZ_SEED={seed}");
        runs += 1;
    }
    println!("{runs} runs");
    assert!(runs > 0);
}

/// Most a run may allocate: some readings, each with the megabyte that any sample is granted. A type may have
/// arrays of many elements, which its values that were never set have too.
const OCTETS_MAX: usize = 256 << 20;

/// Octets from a seed (xorshift64*).
fn random(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let length = next() % 40;
    (0..length).map(|_| (next() >> 56) as u8).collect()
}
