//! When a state machine is due, and what the timer knows of it.

use plainsong_proto::guid::Guid;
use plainsong_proto::time::Instant;

use super::timer::Timer;
use crate::base::sync::atomic::{AtomicU64, Ordering};

/// A deadline that moves with nearly every call. The timer hears of it only where it would be late: a
/// deadline that moves to later waits for the entry to go off. In nanoseconds, [`Deadline::NEVER`] for none.
pub(crate) struct Deadline {
    next: AtomicU64,
    /// The timer's entry.
    armed_at: AtomicU64,
}

impl Default for Deadline {
    fn default() -> Self {
        Self { next: AtomicU64::new(Self::NEVER), armed_at: AtomicU64::new(Self::NEVER) }
    }
}

impl Deadline {
    pub(super) const NEVER: u64 = u64::MAX;

    /// Only who holds the lock of the state machine sets it.
    pub(crate) fn set(&self, timer: &Timer, guid: Guid, next: Option<Instant>) {
        let next = next.map_or(Self::NEVER, |next| next.0);
        // Here first `next`, then `armed_at`; in `is_due` the other way round: one of the two sees the other.
        if next != self.next.load(Ordering::Relaxed) {
            self.next.store(next, Ordering::SeqCst);
        }
        if next < self.armed_at.load(Ordering::SeqCst) {
            self.arm(timer, guid, next);
        }
    }

    fn arm(&self, timer: &Timer, guid: Guid, at: u64) {
        self.armed_at.store(at, Ordering::SeqCst);
        if at != Self::NEVER {
            timer.set(guid, Instant(at));
        }
    }

    /// The timer has no entry.
    pub(crate) fn disarmed(&self) {
        self.armed_at.store(Self::NEVER, Ordering::SeqCst);
    }

    /// The timer's entry went off: whether the state machine is due. If not, the timer knows again when.
    pub(crate) fn is_due(&self, timer: &Timer, guid: Guid, now: Instant) -> bool {
        let mut next = self.next.load(Ordering::SeqCst);
        while next > now.0 {
            self.arm(timer, guid, next);
            let again = self.next.load(Ordering::SeqCst);
            if again >= next {
                return false;
            }
            next = again;
        }
        true
    }

    /// Whether that is what was set last.
    pub(crate) fn is(&self, next: Option<Instant>) -> bool {
        next.map_or(Self::NEVER, |next| next.0) == self.next.load(Ordering::Relaxed)
    }
}
