//! What goes wrong, when, and to whom: drawn from the seed before the run begins.

use plainsong_proto::time::{Duration, Instant};

use crate::network::Link;
use crate::rng::Rng;

/// One thing that goes wrong, or ends going wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The road between hosts changes.
    Link(Link),
    /// Two hosts no longer hear each other, or only the second no longer hears the first.
    Partition {
        /// Index of the first host in the plan.
        from: u8,
        /// Index of the second.
        to: u8,
        /// The other direction too.
        both_ways: bool,
    },
    /// All partitions end.
    Heal,
    /// A process stops for a while: timers are late, datagrams queue and overflow.
    Pause {
        /// Index of the node.
        node: usize,
        /// For how long.
        lasting: Duration,
    },
    /// A process dies without a word; with `restart_after` another takes its place.
    Crash {
        /// Index of the node.
        node: usize,
        /// When a new process with the same endpoints starts, if one does.
        restart_after: Option<Duration>,
    },
    /// Somebody sets a wall clock.
    WallJump {
        /// Index of the node.
        node: usize,
        /// By how much.
        by: Duration,
    },
    /// A process leaves in good order, disposing of what it announced.
    Leave {
        /// Index of the node.
        node: usize,
    },
    /// A process is told of a participant at an address where none lives.
    Forge {
        /// Index of the node.
        node: usize,
        /// How often.
        times: u64,
    },
    /// A process finds itself under another address.
    Move {
        /// Index of the node.
        node: usize,
        /// The host that has the new address.
        to: u8,
    },
}

/// Faults and their times, in order.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan(pub Vec<(Instant, Fault)>);

/// The shape of a system that faults are drawn for.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many hosts they live on.
    pub hosts: u8,
    /// Faults begin after zero and end before this.
    pub until: Instant,
}

impl FaultPlan {
    /// Between none and a dozen faults, and a road that changes a few times.
    #[must_use]
    pub fn draw(rng: &mut Rng, extent: Extent) -> Self {
        let mut plan = vec![(Instant(0), Fault::Link(link(rng)))];
        let count = if rng.chance(15) { 0 } else { rng.between(1, 12) };
        for _ in 0..count {
            let at = Instant(rng.below(extent.until.0));
            plan.push((at, fault(rng, extent)));
        }
        // Partitions heal now and then, not only at the end.
        for _ in 0..rng.below(4) {
            plan.push((Instant(rng.below(extent.until.0)), Fault::Heal));
        }
        plan.sort_by_key(|(at, _)| *at);
        Self(plan)
    }
}

fn fault(rng: &mut Rng, extent: Extent) -> Fault {
    let node = rng.below(extent.nodes as u64) as usize;
    match rng.below(23) {
        0..4 => Fault::Link(link(rng)),
        4..9 => {
            let from = rng.below(extent.hosts.into()) as u8;
            let to = rng.below(extent.hosts.into()) as u8;
            Fault::Partition { from, to, both_ways: rng.chance(60) }
        }
        9..13 => Fault::Pause { node, lasting: Duration::from_millis(rng.between(10, 6_000) as i64) },
        13..16 => {
            let restart = Duration::from_millis(rng.between(1, 5_000) as i64);
            Fault::Crash { node, restart_after: rng.chance(75).then_some(restart) }
        }
        16..18 => {
            let by = *rng.pick(&[1, 100, 5_000, 86_400_000, 1_000_000_000]);
            Fault::WallJump { node, by: Duration::from_millis(if rng.chance(50) { by } else { -by }) }
        }
        18 => Fault::Leave { node },
        19..21 => Fault::Forge { node, times: rng.between(1, 40) },
        21 => Fault::Move { node, to: rng.below(extent.hosts.into()) as u8 },
        _ => Fault::Heal,
    }
}

fn link(rng: &mut Rng) -> Link {
    let loss_percent = match rng.below(10) {
        0..4 => 0,
        4..8 => rng.between(1, 15),
        _ => rng.between(15, 40),
    };
    let delay_nanos_min = *rng.pick(&[20_000, 50_000, 200_000, 2_000_000]);
    let spread = *rng.pick(&[1_000, 100_000, 1_000_000, 20_000_000, 150_000_000]);
    Link {
        loss_percent,
        duplicate_percent: if rng.chance(30) { rng.between(1, 20) } else { 0 },
        delay_nanos_min,
        delay_nanos_max: delay_nanos_min + spread,
        ..Link::QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_in_order_and_end_in_time() {
        let until = Instant(10_000_000_000);
        for seed in 0..200 {
            let plan = FaultPlan::draw(&mut Rng::new(seed), Extent { nodes: 3, hosts: 2, until });
            assert!(plan.0.is_sorted_by_key(|(at, _)| *at));
            assert!(plan.0.iter().all(|(at, _)| *at < until));
        }
    }
}
