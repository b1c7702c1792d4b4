//! Seeded mutation fuzzing of types that peers tell, on stable Rust. `PLAINSONG_FUZZ_SECONDS` says how long,
//! default 1; `PLAINSONG_FUZZ_SEED` repeats one run.

use std::env;
use std::time::{Duration, Instant};

#[path = "../../proto/tests/counting/mod.rs"]
mod counting;
mod typeobject_fuzzing;

/// Most a run may allocate: values of some types, each with the megabyte that any sample is granted, and a
/// compiler's run over the IDL.
const OCTETS_MAX: usize = 256 << 20;

#[test]
fn fuzz_typeobject() {
    let number = |name| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let end = Instant::now() + Duration::from_secs(number("PLAINSONG_FUZZ_SECONDS").unwrap_or(1));
    let mut seeds = number("PLAINSONG_FUZZ_SEED").map_or(0..=u64::MAX, |seed| seed..=seed);
    let mut runs = 0_u64;
    while let Some(seed) = seeds.next().filter(|_| Instant::now() < end) {
        let octets = random(seed);
        let (run, allocated) =
            counting::allocated_by(|| std::panic::catch_unwind(|| typeobject_fuzzing::run(&octets)));
        assert!(run.is_ok(), "repeat with PLAINSONG_FUZZ_SEED={seed}");
        assert!(allocated.octets <= OCTETS_MAX, "{allocated:?}; repeat with PLAINSONG_FUZZ_SEED={seed}");
        runs += 1;
    }
    println!("{runs} runs");
    assert!(runs > 0);
}

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
