//! When a voter is active, and how often its clock ticks. Voters at rest have no deadline at all.
//!
//! Who has something to decide is active until it is decided, and [`ACTIVE`] longer. Each message says for
//! how long its receiver should be active: as long for who has something to decide, else half of what is
//! left, lest voters keep one another awake for ever.

use std::collections::VecDeque;

use crate::estimate::SmoothedEstimate;
use crate::time::{Duration, Instant};
use crate::tuning::decider::{
    ACTIVE, HEARTBEAT, HEARTBEAT_IN_VAIN, HEARTBEAT_MAX, HEARTBEATS_MEASURED, PATIENCE,
};

#[derive(Clone, Debug)]
pub(super) struct Activity {
    /// Active until then.
    until: Option<Instant>,
    next_tick: Instant,
    /// When the last heartbeats were made, by their rounds.
    rounds: VecDeque<(u32, Instant)>,
    /// What answers take, disks included.
    round_trip: SmoothedEstimate<4>,
    /// When something was last heard, proposed or decided that gives hope.
    hopeful_since: Instant,
}

impl Activity {
    pub(super) fn new(now: Instant) -> Self {
        let (rounds, round_trip) = (VecDeque::new(), SmoothedEstimate::new(0));
        Self { until: None, next_tick: now, rounds, round_trip, hopeful_since: now }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.until.map(|_| self.next_tick)
    }

    /// Active for so long from now; the first tick is due at once.
    pub(super) fn stay(&mut self, now: Instant, duration: Duration) {
        if duration <= Duration::ZERO {
            return;
        }
        if self.until.is_none() {
            self.next_tick = now;
            self.hopeful_since = now;
        }
        self.until = self.until.max(now.after(duration.min(ACTIVE)));
    }

    /// Something has happened: heartbeats come fast again.
    pub(super) fn hope(&mut self, now: Instant) {
        self.hopeful_since = now;
        if let Some(soon) = now.after(self.heartbeat()) {
            self.next_tick = self.next_tick.min(soon);
        }
    }

    /// Answers count only until the next heartbeat, which leaves them twice the time that they usually take.
    fn heartbeat(&self) -> Duration {
        Duration(2 * self.round_trip.get()).clamp(HEARTBEAT, HEARTBEAT_MAX)
    }

    /// A heartbeat is made; the same one for several voters.
    pub(super) fn ask(&mut self, now: Instant, round: u32) {
        if self.rounds.back().is_none_or(|(last, _)| *last != round) {
            self.rounds.push_back((round, now));
        }
        if self.rounds.len() > HEARTBEATS_MEASURED {
            self.rounds.pop_front();
        }
    }

    /// A heartbeat is answered, perhaps late.
    pub(super) fn answer(&mut self, now: Instant, round: u32) {
        if let Some((_, asked_at)) = self.rounds.iter().find(|(asked, _)| *asked == round) {
            self.round_trip.add(now.since(*asked_at).0.min(HEARTBEAT_MAX.0));
        }
    }

    /// Whether a tick is due; sets the time of the next, or goes to rest.
    pub(super) fn tick(&mut self, now: Instant, has_work: bool) -> bool {
        let Some(until) = self.until else { return false };
        if now < self.next_tick {
            return false;
        }
        if has_work {
            self.until = self.until.max(now.after(ACTIVE));
        } else if now >= until {
            self.until = None;
            return false;
        }
        let is_in_vain = has_work && now.since(self.hopeful_since) > PATIENCE;
        let pause = if is_in_vain { self.heartbeat().max(HEARTBEAT_IN_VAIN) } else { self.heartbeat() };
        self.next_tick = now.after(pause).unwrap_or(now);
        true
    }

    /// For how long others should be active, in milliseconds.
    pub(super) fn of_others(&self, now: Instant, has_work: bool) -> u16 {
        let left = match self.until {
            _ if has_work => ACTIVE,
            Some(until) => Duration(until.since(now).0 / 2),
            None => Duration::ZERO,
        };
        u16::try_from(left.0 / Duration::from_millis(1).0).unwrap_or(u16::MAX)
    }
}
