//! Taking locks. A panic of another holder (a bug of one call) does not make the rest unusable. Debug builds
//! count, so that a test can hold `docs/life-of-a-sample.md` against what happens.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

#[cfg(debug_assertions)]
thread_local! {
    static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    count();
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    count();
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    count();
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a lock that is taken by other means.
pub(crate) fn count() {
    #[cfg(debug_assertions)]
    // A thread that is ending has no counter any more, and nobody asks for it.
    let _ = TAKEN.try_with(|taken| taken.set(taken.get() + 1));
}

/// Locks that this thread has taken in the library; those of the protocol core included.
#[cfg(debug_assertions)]
#[doc(hidden)]
#[must_use]
pub fn locks_taken() -> u64 {
    TAKEN.get() + plainsong_proto::payload::locks_taken()
}
