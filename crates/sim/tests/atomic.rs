//! Groups of ATOMIC topics, without optimization: a few seeds. `cargo xtask sim atomic` runs many.

use plainsong_sim::atomic::{self, Length, Verdict};
use plainsong_sim::trace::Detail;

fn run(seed: u64) -> Verdict {
    atomic::run(seed, Length::Short, Detail::Hash, None)
}

#[test]
fn groups_have_one_order() {
    let mut delivered = 0;
    for seed in 0..40 {
        let verdict = run(seed);
        assert_eq!(verdict.violations, [], "seed {seed}");
        delivered += verdict.delivered;
    }
    assert!(delivered > 1_000, "{delivered} samples");
}

#[test]
fn a_seed_is_a_run() {
    for seed in [3, 7, 11] {
        let (one, two) = (run(seed), run(seed));
        assert_eq!((one.hash, one.events), (two.hash, two.events), "seed {seed}");
    }
    assert_ne!(run(3).hash, run(7).hash);
}
