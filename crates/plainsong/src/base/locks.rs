//! Taking locks. A panic of another holder (a bug of one call) does not make the rest unusable. Debug builds
//! count, so that a test can hold `docs/life-of-a-sample.md` against what happens.

use std::sync::{
    LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    TryLockResult,
};
use std::time::Duration;

use super::{clock, fork};

#[cfg(debug_assertions)]
thread_local! {
    static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Longer than anybody holds a lock of the library.
const HELD_MAX: Duration = Duration::from_secs(10);

/// Another thread has the lock. In a forked process it may be a thread of the parent, which never lets go:
/// who asks for what cannot be refused by an error then hears of it instead of waiting for ever.
#[cold]
fn await_lock<G>(wait: impl FnOnce() -> LockResult<G>, attempt: impl Fn() -> TryLockResult<G>) -> G {
    if fork::generation() == 0 {
        return wait().unwrap_or_else(PoisonError::into_inner);
    }
    let end = clock::deadline(HELD_MAX);
    loop {
        match attempt() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(20)),
            other => return other.unwrap_or_else(holder_panicked),
        }
        assert!(
            end.is_none_or(|end| clock::mono() < end),
            "this entity was made before fork(), in another process: make a participant after fork()"
        );
    }
}

fn holder_panicked<G>(error: TryLockError<G>) -> G {
    match error {
        TryLockError::Poisoned(error) => error.into_inner(),
        TryLockError::WouldBlock => unreachable!("told apart before"),
    }
}

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    count();
    match mutex.try_lock() {
        Err(TryLockError::WouldBlock) => await_lock(|| mutex.lock(), || mutex.try_lock()),
        other => other.unwrap_or_else(holder_panicked),
    }
}

pub(crate) fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    count();
    match lock.try_read() {
        Err(TryLockError::WouldBlock) => await_lock(|| lock.read(), || lock.try_read()),
        other => other.unwrap_or_else(holder_panicked),
    }
}

pub(crate) fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    count();
    match lock.try_write() {
        Err(TryLockError::WouldBlock) => await_lock(|| lock.write(), || lock.try_write()),
        other => other.unwrap_or_else(holder_panicked),
    }
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
