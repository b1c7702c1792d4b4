//! Random numbers from a seed that can be told.

use std::time::SystemTime;

/// SplitMix64: nothing here has to be secret.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which is not 0.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// As often as not from `low` to its double as from half of `high` to that.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        let share = self.below(1 << 20) as f64 / f64::from(1 << 20);
        (low as f64 * (high as f64 / low as f64).powf(share)) as u64
    }

    pub(crate) const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) const fn permille(&mut self, permille: u64) -> bool {
        permille > 0 && self.below(1_000) < permille
    }
}

/// A seed that is another one each time.
pub(crate) fn fresh_seed() -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Random::new(now.as_nanos() as u64).next() % 1_000_000
}
