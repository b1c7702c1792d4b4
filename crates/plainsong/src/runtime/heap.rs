//! After a flood the heap gives back to the system what was freed.
//!
//! glibc does so by itself only at the end of each of its arenas, where something that is in use keeps all
//! before it: of the 60 MB that a flood of instances or fragments took, all stayed.

#![allow(unsafe_code, reason = "malloc_trim has no safe wrapper")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plainsong_proto::guid::Guid;
use plainsong_proto::time::{Duration, Instant};

use super::timer::Timer;
use crate::base::clock;

/// The timer's entry.
pub(super) const TIMER: Guid = Guid::UNKNOWN;

/// What is freed with it goes back with it.
const SOON: Duration = Duration::from_secs(3);
/// The heap is locked while it looks for what to give back, so that is not done more often.
const PAUSE: Duration = Duration::from_secs(10);

/// When memory goes back.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    is_due: AtomicBool,
    /// When it was done last.
    given_back_at: AtomicU64,
}

impl Heap {
    /// Much was freed.
    pub(super) fn freed(&self, timer: &Timer) {
        if !GIVES_BACK || self.is_due.swap(true, Ordering::Relaxed) {
            return;
        }
        let last = Instant(self.given_back_at.load(Ordering::Relaxed));
        let after = |at: Instant, pause| at.after(pause).unwrap_or(at);
        let pause_ends = if last.0 == 0 { last } else { after(last, PAUSE) };
        timer.set(TIMER, after(clock::mono(), SOON).max(pause_ends));
    }

    /// On the timer thread.
    pub(super) fn give_back(&self) {
        self.is_due.store(false, Ordering::Relaxed);
        give_back();
        self.given_back_at.store(clock::mono().0, Ordering::Relaxed);
    }
}

const GIVES_BACK: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    // SAFETY: it may be called at any time from any thread, and touches nothing that is in use.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_together_goes_back_together_and_not_at_once() {
        let (heap, timer) = (Heap::default(), Timer::default());
        heap.freed(&timer);
        heap.freed(&timer);
        assert!(!timer.fire_due(|_| ()), "there is more to come");
        assert_eq!(heap.is_due.load(Ordering::Relaxed), GIVES_BACK);
        heap.give_back();
        assert!(!heap.is_due.load(Ordering::Relaxed));
        assert!(heap.given_back_at.load(Ordering::Relaxed) > 0);
    }
}
