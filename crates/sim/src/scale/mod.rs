//! What discovery costs as participants become more: datagrams, octets, time until all matches are there.
//!
//! Up to [`FULL_MAX`] participants everything is simulated. Of more, some participants are: their traffic
//! with all others, but not that of the others among each other, which would need memory for each pair. What
//! one participant sends and receives is the same in both, as long as it does not depend on how busy the
//! others are.

mod chart;
mod workload;
mod world;

use std::fmt;

use plainsong_proto::time::Instant;

use crate::rng::Rng;
use world::{Traffic, World};

pub use chart::chart;

/// More participants are simulated in part, unless told otherwise.
pub const FULL_MAX: usize = 100;
/// Those that are observed then.
const OBSERVED: usize = 8;
/// All start within this time.
const STARTS_WITHIN_NANOS: u64 = 1_000_000_000;
/// After the last match it takes a while until all is quiet.
const QUIET_AFTER_NANOS: u64 = 60_000_000_000;
/// For so long it is counted what keeps going on.
const STEADY_NANOS: u64 = 60_000_000_000;
/// Who does not have its matches then never has.
const MATCHED_WITHIN_NANOS: u64 = 600_000_000_000;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Participants.
    pub participants: usize,
    /// Their traffic is simulated, or that of a few of them.
    pub is_full: bool,
    /// Seed of chance.
    pub seed: u64,
}

/// Datagrams and octets of one participant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Datagrams it sent.
    pub sent_datagrams: f64,
    /// Octets it sent, with the headers of IP and UDP.
    pub sent_bytes: f64,
    /// Datagrams that reached it.
    pub received_datagrams: f64,
    /// Octets that reached it.
    pub received_bytes: f64,
    /// Datagrams for which its socket had no room.
    pub overflowed: f64,
}

/// What a run showed.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What was simulated.
    pub options: Options,
    /// Seconds from the first start until each participant that is simulated wholly had all its matches, and
    /// knew all others.
    pub matched_s: Option<f64>,
    /// Of each participant until then, on average.
    pub start: Load,
    /// Of each in a second, later.
    pub steady: Load,
    /// Milliseconds until one that comes later has its matches.
    pub joined_ms: Option<f64>,
    /// Of that one until it knew all others.
    pub join: Load,
}

/// The numbers of participants that are simulated unless others are told.
pub const PARTICIPANTS: [usize; 10] = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

impl Load {
    fn of(after: Traffic, before: Traffic, divisor: f64) -> Self {
        let each = |after: u64, before: u64| (after - before) as f64 / divisor;
        Self {
            sent_datagrams: each(after.sent_datagrams, before.sent_datagrams),
            sent_bytes: each(after.sent_bytes, before.sent_bytes),
            received_datagrams: each(after.received_datagrams, before.received_datagrams),
            received_bytes: each(after.received_bytes, before.received_bytes),
            overflowed: each(after.overflowed, before.overflowed),
        }
    }
}

/// Simulates.
#[must_use]
pub fn run(options: Options) -> Row {
    let count = options.participants;
    let mut chance = Rng::new(options.seed);
    let mut world = World::new(chance.next(), count + 1);
    // The first is a special one: it has something from all others.
    let observed: Vec<usize> = if options.is_full {
        (0..count).collect()
    } else {
        (0..OBSERVED.min(count)).map(|number| number * count / OBSERVED.min(count)).collect()
    };
    for node in 0..count {
        let at = Instant(chance.below(STARTS_WITHIN_NANOS));
        let is_observed = options.is_full || observed.contains(&node);
        world.add(at, is_observed, if is_observed { 0 } else { count });
    }
    let is_ready = |world: &World, node: usize| {
        world.matches_of(node) >= workload::matches(node, count) && world.known_to(node) + 1 >= count
    };
    let mut left = observed.clone();
    let matched = until(&mut world, MATCHED_WITHIN_NANOS, |world| {
        while left.last().is_some_and(|node| is_ready(world, *node)) {
            left.pop();
        }
        left.is_empty()
    });
    let (traffic, observed) = world.traffic();
    let start = Load::of(traffic, Traffic::default(), observed as f64);
    until(&mut world, QUIET_AFTER_NANOS, |_| false);
    let (before, _) = world.traffic();
    until(&mut world, STEADY_NANOS, |_| false);
    let (after, _) = world.traffic();
    let steady = Load::of(after, before, observed as f64 * STEADY_NANOS as f64 / 1e9);

    let newcomer = world.add(Instant(world.at.0 + 1), true, 0);
    // Nobody reads its pose.
    let matches = workload::matches(newcomer, count + 1);
    let joined = until(&mut world, MATCHED_WITHIN_NANOS, |world| world.matches_of(newcomer) >= matches);
    until(&mut world, MATCHED_WITHIN_NANOS, |world| world.known_to(newcomer) >= count);
    let join = Load::of(world.traffic_of(newcomer), Traffic::default(), 1.0);
    Row {
        options,
        matched_s: matched.map(|nanos| nanos as f64 / 1e9),
        start,
        steady,
        joined_ms: joined.map(|nanos| nanos as f64 / 1e6),
        join,
    }
}

/// Runs the world until something holds; how long that took, if it came to hold in time.
fn until(world: &mut World, within_nanos: u64, mut holds: impl FnMut(&World) -> bool) -> Option<u64> {
    let begin = world.at;
    let end = Instant(begin.0 + within_nanos);
    while world.step(end) {
        if holds(world) {
            return Some(world.at.0 - begin.0);
        }
    }
    None
}

/// The head of a table of rows.
pub const HEAD: &str = "\
                     all start within a second          each, later, per s      one more comes
participants   matched    sent            received      sent     received        matched  sent           received
                     s    packets   kB    packets    MB packets  packets    kB      ms    packets   kB   packets   MB";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |time: Option<f64>| time.map_or_else(|| "never".to_owned(), |time| format!("{time:.2}"));
        let kind = if self.options.is_full { ' ' } else { '*' };
        write!(
            f,
            "{:>11}{kind} {:>9} {:>10.0} {:>4.0} {:>10.0} {:>5.2} {:>7.2} {:>8.1} {:>5.1} {:>7} {:>10.0} {:>4.0} {:>9.0} {:>4.2}",
            self.options.participants,
            text(self.matched_s),
            self.start.sent_datagrams,
            self.start.sent_bytes / 1e3,
            self.start.received_datagrams,
            self.start.received_bytes / 1e6,
            self.steady.sent_datagrams,
            self.steady.received_datagrams,
            self.steady.received_bytes / 1e3,
            text(self.joined_ms),
            self.join.sent_datagrams,
            self.join.sent_bytes / 1e3,
            self.join.received_datagrams,
            self.join.received_bytes / 1e6,
        )?;
        let overflowed = self.start.overflowed + self.join.overflowed;
        if overflowed > 0.0 { write!(f, "  {overflowed:.0} had no room in the socket") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_fleet_sends_and_receives_what_each_of_the_whole_does() {
        let of = |is_full| run(Options { participants: 60, is_full, seed: 3 });
        let (whole, part) = (of(true), of(false));
        for row in [whole, part] {
            assert!(row.matched_s.is_some_and(|seconds| seconds < 1.2), "{row}");
            assert!(row.joined_ms.is_some_and(|ms| ms < 50.0), "{row}");
            assert_eq!(row.start.overflowed + row.join.overflowed, 0.0, "{row}");
        }
        let near = |one: f64, other: f64| (0.8..1.25).contains(&(one / other));
        assert!(near(whole.start.sent_bytes, part.start.sent_bytes), "{whole}\n{part}");
        assert!(near(whole.join.received_bytes, part.join.received_bytes), "{whole}\n{part}");
        assert!(near(whole.steady.received_datagrams, part.steady.received_datagrams), "{whole}\n{part}");
    }
}
