//! Seeded fuzzing of texts. `PLAINSONG_FUZZ_SECONDS` says how long, default 1; `PLAINSONG_FUZZ_SEED` repeats
//! one run.
#![allow(unreachable_pub, clippy::indexing_slicing, reason = "tests of two crates include it")]

use std::env;
use std::panic::RefUnwindSafe;
use std::time::{Duration, Instant};

/// Makes texts and runs them until the time is over. `run` says whether a text was accepted; some must be.
pub fn fuzz(make: impl Fn(&mut Random) -> String, run: impl Fn(&str) -> bool + RefUnwindSafe) {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let end = Instant::now() + Duration::from_secs(number("PLAINSONG_FUZZ_SECONDS").unwrap_or(1));
    let only = number("PLAINSONG_FUZZ_SEED");
    let (mut runs, mut accepted) = (0_u64, 0_u64);
    for seed in only.map_or(0..=u64::MAX, |seed| seed..=seed) {
        if Instant::now() >= end {
            break;
        }
        let text = make(&mut Random::new(seed));
        let result = std::panic::catch_unwind(|| run(&text));
        let Ok(good) = result else { panic!("{text:?}; repeat with PLAINSONG_FUZZ_SEED={seed}") };
        accepted += u64::from(good);
        runs += 1;
    }
    println!("{runs} runs, {accepted} texts accepted");
    assert!(only.is_some() || accepted > 0, "all {runs} texts were refused");
}

/// Replaces, removes and inserts some parts; those of nothing are many. One text in `repeats_in` has one part
/// very often.
pub fn change(random: &mut Random, parts: &mut Vec<&str>, known: &[&'static str], repeats_in: usize) {
    let changes = if parts.is_empty() { random.below(60) } else { random.below(5) };
    for _ in 0..changes {
        let at = random.below(parts.len() + 1);
        let part = known[random.below(known.len())];
        match (random.below(3), parts.get_mut(at)) {
            (0, Some(old)) => *old = part,
            (1, Some(_)) => drop(parts.remove(at)),
            _ => parts.insert(at, part),
        }
    }
    if random.below(repeats_in) == 0 {
        let part = known[random.below(known.len())];
        parts.extend(std::iter::repeat_n(part, random.below(2000)));
    }
}

/// xorshift64*.
pub struct Random(u64);

impl Random {
    const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub const fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8) as usize % limit
    }
}
