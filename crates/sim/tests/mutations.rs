//! A checker that cannot fail proves nothing: each deliberate mistake is noticed by the checker whose
//! business it is, within a handful of seeds.

use plainsong_sim::check::CHECKS;
use plainsong_sim::mutation::Mutation;
use plainsong_sim::run;
use plainsong_sim::trace::Detail;

/// Seeds tried before a mistake counts as unnoticed.
const SEEDS: u64 = 400;

#[test]
fn every_mutation_is_noticed() {
    for (mutation, invariant) in Mutation::ALL {
        let noticed = (0..SEEDS).find(|seed| {
            let violations = run::run(*seed, Detail::Hash, Some(mutation)).violations;
            violations.iter().any(|violation| violation.invariant == invariant)
        });
        assert!(noticed.is_some(), "{mutation:?} goes unnoticed by {invariant}");
    }
}

#[test]
fn every_checker_can_fail() {
    for (invariant, _) in CHECKS {
        let provoked = Mutation::ALL.iter().any(|(_, by)| *by == invariant);
        assert!(provoked || invariant == "keep_last", "no mutation provokes {invariant}");
    }
}
