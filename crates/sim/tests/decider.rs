//! The decider of epochs alone: seeds pass, a seed is a run, and checkers notice mistakes. CI runs more
//! seeds, and all mistakes (`sim decider --mutations`).

use plainsong_sim::decider::{Mistake, first_noticed, run};

#[test]
fn a_seed_is_a_run_and_all_is_well() {
    let mut hashes = Vec::new();
    for seed in 0..40 {
        let outcome = run(seed, None, false);
        assert!(outcome.violations.is_empty(), "seed {seed}: {:?}", outcome.violations);
        assert_eq!(outcome.hash, run(seed, None, false).hash, "seed {seed}");
        hashes.push(outcome.hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 40);
}

/// Here, without optimization, only those that are noticed with the first seeds.
#[test]
fn mistakes_are_noticed() {
    for (mistake, invariant, _) in Mistake::ALL.iter().filter(|(_, by, _)| *by != "agreement") {
        let noticed = first_noticed(*mistake, invariant);
        assert!(noticed.is_some(), "{mistake:?} goes unnoticed by {invariant}");
    }
}

#[test]
fn every_checker_can_fail() {
    for invariant in ["agreement", "ballots", "doubt", "liveness", "order", "proposed", "rest"] {
        assert!(Mistake::ALL.iter().any(|(_, by, _)| *by == invariant), "{invariant}");
    }
}
