//! A seed is a run: the same seed twice gives the same trace, octet for octet.

use plainsong_sim::run;
use plainsong_sim::trace::Detail;

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let mut hashes = Vec::new();
    for seed in 0..12 {
        let first = run::run(seed, Detail::Hash, None).world.trace;
        let second = run::run(seed, Detail::Tail(5), None).world.trace;
        assert_eq!((first.hash(), first.events()), (second.hash(), second.events()), "seed {seed}");
        hashes.push(first.hash());
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 12);
}
