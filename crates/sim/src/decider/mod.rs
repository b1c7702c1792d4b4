//! The decider of epochs alone: voters over a bad network, with disks that lose what was not yet durable.
//!
//! One seed is one run: 1 to 7 voters, most often 3 or 5; loss up to 30 %, doubling, reordering, delays
//! longer than heartbeats; partitions of every kind; crashes and restarts; several rival proposals for a
//! base. After a while everything heals, and each voter must learn what is decided for the newest base.
//!
//! What is checked, after every step:
//! - `agreement`: for each base all voters, in all their incarnations, are told the same value.
//! - `proposed`: it was proposed for this base.
//! - `order`: bases come in order, and none is left out that is still kept.
//! - `ballots`: promised and accepted ballots never go back, nor behind what was durable at a restart.
//! - `doubt`: no voter refuses a message of another, or has failed.
//! - `liveness`: what is proposed once all is well is decided soon, and everybody learns it.
//! - `rest`: then all voters come to rest, without deadline and messages.

mod mistake;
mod world;

pub use mistake::{Mistake, SEEDS_MAX};
pub use world::{Outcome, run};

/// The first seed with which `invariant` notices a mistake.
#[must_use]
pub fn first_noticed(mistake: Mistake, invariant: &str) -> Option<u64> {
    let is_noticed = |seed: &u64| {
        let violations = run(*seed, Some(mistake), false).violations;
        violations.iter().any(|violation| violation.invariant == invariant)
    };
    (0..SEEDS_MAX).find(is_noticed)
}
