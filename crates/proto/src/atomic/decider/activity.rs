//! When a voter is active, and how often its clock ticks. Voters at rest have no deadline at all.
//!
//! Who has something to decide is active until it is decided, and [`ACTIVE`] longer. Each message says for
//! how long its receiver should be active: as long for who has something to decide, else half of what is
//! left, lest voters keep one another awake for ever.

use crate::backoff::Backoff;
use crate::time::{Duration, Instant};
use crate::tuning::decider::{ACTIVE, HEARTBEAT, HEARTBEAT_DOUBLINGS_MAX, HEARTBEAT_IN_VAIN, PATIENCE};

const HEARTBEATS: Backoff = Backoff::doubling(HEARTBEAT, HEARTBEAT_DOUBLINGS_MAX);

#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    /// Active until then.
    until: Option<Instant>,
    next_tick: Instant,
    /// Heartbeats are slower by so many doublings.
    doublings: u32,
    /// An answer to an earlier heartbeat has come since the last tick: answers take longer than that.
    was_late: bool,
    /// When something was last heard, proposed or decided that gives hope.
    hopeful_since: Instant,
}

impl Activity {
    pub(super) const fn new(now: Instant) -> Self {
        Self { until: None, next_tick: now, doublings: 0, was_late: false, hopeful_since: now }
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
            // What was too fast may no longer be.
            self.doublings = self.doublings.saturating_sub(1);
            self.hopeful_since = now;
        }
        self.until = self.until.max(now.after(duration.min(ACTIVE)));
    }

    /// Something has happened: heartbeats come fast again.
    pub(super) fn hope(&mut self, now: Instant) {
        self.hopeful_since = now;
        if let Some(soon) = now.after(HEARTBEATS.pause(self.doublings)) {
            self.next_tick = self.next_tick.min(soon);
        }
    }

    pub(super) const fn answer_was_late(&mut self) {
        self.was_late = true;
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
        if std::mem::take(&mut self.was_late) {
            self.doublings = self.doublings.saturating_add(1).min(HEARTBEAT_DOUBLINGS_MAX);
        }
        let is_in_vain = has_work && now.since(self.hopeful_since) > PATIENCE;
        let heartbeat = HEARTBEATS.pause(self.doublings);
        let pause = if is_in_vain { heartbeat.max(HEARTBEAT_IN_VAIN) } else { heartbeat };
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
