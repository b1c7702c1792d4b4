//! The simulator's only source of chance: a small generator, seeded once per run.

/// xoshiro256** seeded by splitmix64: the same seed gives the same run on every machine.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// A generator for `seed`; any seed will do.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| splitmix(&mut state)))
    }

    /// An independent generator: one concern's draws do not shift those of another.
    #[must_use]
    pub fn fork(&mut self, label: u64) -> Self {
        Self::new(self.next() ^ label.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Sixty-four random bits.
    #[expect(clippy::should_implement_trait, reason = "an endless generator is not an iterator here")]
    pub fn next(&mut self) -> u64 {
        let state = &mut self.0;
        let result = state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// A number in `0..bound`; 0 when `bound` is 0. The bias is far below anything a run could show.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}

const fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence() {
        let (mut one, mut two, mut other) = (Rng::new(7), Rng::new(7), Rng::new(8));
        let first: Vec<u64> = (0..100).map(|_| one.next()).collect();
        assert_eq!(first, (0..100).map(|_| two.next()).collect::<Vec<_>>());
        assert_ne!(first, (0..100).map(|_| other.next()).collect::<Vec<_>>());
    }

    #[test]
    fn draws_stay_in_range_and_reach_both_ends() {
        let mut rng = Rng::new(1);
        let draws: Vec<u64> = (0..1000).map(|_| rng.between(3, 6)).collect();
        assert!((3..=6).all(|value| draws.contains(&value)));
        assert!(draws.iter().all(|value| (3..=6).contains(value)));
        assert!(!rng.chance(0) && rng.chance(100));
    }
}
