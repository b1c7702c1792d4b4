//! One seed in eight has the driver of the library dispatch: registry, slots, deadlines and router as they
//! are, in virtual time.

use plainsong_sim::run;
use plainsong_sim::trace::Detail;

#[test]
fn the_driver_keeps_all_promises_and_is_as_deterministic_as_the_nodes() {
    for seed in (7..80).step_by(8) {
        let verdict = run::run(seed, Detail::Hash, None);
        assert!(verdict.world.driver, "seed {seed}");
        let violations: Vec<_> = verdict.violations.iter().map(|it| format!("{it:?}")).collect();
        assert!(violations.is_empty(), "seed {seed}: {violations:?}");
        let again = run::run(seed, Detail::Hash, None).world.trace;
        assert_eq!(verdict.world.trace.hash(), again.hash(), "seed {seed}");
    }
    assert!(!run::run(8, Detail::Hash, None).world.driver);
}

/// What is sent in answer to one datagram is gathered, but not what bears another mark.
#[test]
fn gathered_datagrams_keep_the_mark_of_their_writer() {
    for seed in [2367, 2447, 2471] {
        let verdict = run::run(seed, Detail::Hash, None);
        let violations: Vec<_> = verdict.violations.iter().map(|it| format!("{it:?}")).collect();
        assert!(verdict.world.driver && violations.is_empty(), "seed {seed}: {violations:?}");
    }
}
