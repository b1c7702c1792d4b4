//! Groups of ATOMIC topics, without optimization: a few seeds. `cargo xtask sim atomic` runs many.

use plainsong_sim::atomic::{self, Length, Mistake, Verdict};
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

#[test]
fn mistakes_are_noticed() {
    // Here only some that are noticed with the first seeds.
    for mistake in [Mistake::StaleCut, Mistake::ExtraIncumbent, Mistake::GreatestCut, Mistake::DropTail] {
        assert!(mistake.first_noticed().is_some(), "{mistake:?} goes unnoticed");
    }
}

#[test]
fn the_list_of_mistakes_is_complete() {
    let list = include_str!("../MUTATIONS.md");
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with("| ATOMIC `")).collect();
    let expected: Vec<String> =
        Mistake::ALL.iter().map(|(mistake, what)| format!("| ATOMIC `{mistake:?}` | {what} |")).collect();
    let rows: Vec<String> =
        rows.iter().map(|row| row.rsplitn(4, '|').last().unwrap_or_default().to_owned() + "|").collect();
    assert_eq!(rows, expected, "MUTATIONS.md has a row for each, in their order");
}
