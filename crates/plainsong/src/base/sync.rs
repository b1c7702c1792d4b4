//! What threads order themselves by. Hand-made orderings take these types, so that a model checker can take
//! their place: with the feature `shuttle`, which only the tests of this crate use, they are those of
//! [shuttle](https://docs.rs/shuttle), and time passes by looking at the clock.

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
    use std::cell::Cell;
    use std::sync::{LockResult, PoisonError};
    use std::time::Duration;

    pub(crate) use shuttle::sync::atomic;
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, TryLockError};
    pub(crate) use shuttle::thread::yield_now;

    use plainsong_proto::time::Instant;

    // All threads of a run are coroutines of the thread of its test.
    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
        static LOSES_NOTIFICATIONS: Cell<bool> = const { Cell::new(false) };
    }
    const STEP_NS: u64 = 100_000;

    /// A run begins: always at the same time, so that its schedule can be replayed. With a deliberate mistake
    /// or without.
    pub(crate) fn begin_run(loses_notifications: bool) {
        NOW.set(0);
        LOSES_NOTIFICATIONS.set(loses_notifications);
    }

    pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time passes with each look at the clock, so that threads that wait for it get on.
    pub(crate) fn mono() -> Instant {
        NOW.set(NOW.get() + STEP_NS);
        Instant(NOW.get())
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
            self.0.wait(guard)
        }

        /// Without end: nobody is saved by time from a notification that was lost.
        pub(crate) fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _timeout: Duration,
        ) -> LockResult<(MutexGuard<'a, T>, ())> {
            match self.0.wait(guard) {
                Ok(guard) => Ok((guard, ())),
                Err(error) => Err(PoisonError::new((error.into_inner(), ()))),
            }
        }

        pub(crate) fn notify_one(&self) {
            if !LOSES_NOTIFICATIONS.get() {
                self.0.notify_one();
            }
        }

        pub(crate) fn notify_all(&self) {
            if !LOSES_NOTIFICATIONS.get() {
                self.0.notify_all();
            }
        }
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
