//! What threads order themselves by. Hand-made orderings take these types, so that a model checker can take their place: with the
//! feature `shuttle`, which only the tests of this crate use, they are those of [shuttle](https://docs.rs/shuttle), and time
//! passes by looking at the clock.

#[cfg(not(all(test, feature = "shuttle")))]
mod platform {
    pub(crate) use std::sync::atomic;
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, TryLockError};
    pub(crate) use std::thread::yield_now;

    pub(crate) use crate::base::clock::mono;
    pub(crate) use crate::base::locks::lock;
}

#[cfg(all(test, feature = "shuttle"))]
mod platform {
    use std::sync::atomic::{AtomicU64, Ordering};

    pub(crate) use shuttle::sync::atomic;
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, TryLockError};
    pub(crate) use shuttle::thread::yield_now;

    use plainsong_proto::time::Instant;

    static NOW: AtomicU64 = AtomicU64::new(1);
    const STEP_NS: u64 = 100_000;

    pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Time passes with each look at the clock, so that threads that wait for it get on.
    pub(crate) fn mono() -> Instant {
        Instant(NOW.fetch_add(STEP_NS, Ordering::Relaxed))
    }

    /// A new run begins at the same time as the last, so that a schedule can be replayed.
    pub(crate) fn reset_clock() {
        NOW.store(1, Ordering::Relaxed);
    }
}

pub(crate) use platform::*;

use std::time::Duration;

use plainsong_proto::time::Instant;

/// How long to sleep until `deadline`; zero when it has passed.
pub(crate) fn until(deadline: Instant) -> Duration {
    Duration::from_nanos(deadline.0.saturating_sub(mono().0))
}

/// The instant that is `timeout` from now; `None` when that is never.
pub(crate) fn deadline(timeout: Duration) -> Option<Instant> {
    mono().after(timeout.into())
}
