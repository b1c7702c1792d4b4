//! The wish to stop, seen by everything that waits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{now_ns, wait_until_ns};

/// Waiting on a condition variable ends this late at most; what remains is slept exactly.
const COARSE_NS: u64 = 5_000_000;

/// How often the worker was told to stop.
#[derive(Default)]
pub(crate) struct Control {
    stops: AtomicU32,
    sleeping: Mutex<()>,
    waking: Condvar,
}

impl Control {
    /// Ends all waiting.
    pub(crate) fn stop(&self) {
        let _sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        self.stops.fetch_add(1, Ordering::SeqCst);
        self.waking.notify_all();
    }

    /// Forgets all stops.
    pub(crate) fn reset(&self) {
        self.stops.store(0, Ordering::SeqCst);
    }

    /// How often it was told.
    pub(crate) fn stops(&self) -> u32 {
        self.stops.load(Ordering::Relaxed)
    }

    /// Whether it was told at all.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stops() > 0
    }

    /// Sleeps until that time, or until the next stop.
    pub(crate) fn sleep_until(&self, at_ns: u64) {
        let before = self.stops();
        let mut sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now_ns = now_ns();
            if now_ns >= at_ns || self.stops() != before {
                return;
            }
            let left = Duration::from_nanos(at_ns - now_ns);
            sleeping = self.waking.wait_timeout(sleeping, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for that very time, unless stopped; false if it was.
    pub(crate) fn wait_until(&self, at_ns: u64) -> bool {
        if at_ns > now_ns().saturating_add(2 * COARSE_NS) {
            self.sleep_until(at_ns - COARSE_NS);
        }
        if self.is_stopped() {
            return false;
        }
        wait_until_ns(at_ns);
        true
    }
}
