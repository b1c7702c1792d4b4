//! A lock to which work can be delegated: who finds it taken leaves a call in its inbox, and whoever holds it
//! makes that call before going on (flat combining).

use super::inbox::Inbox;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Mutex, MutexGuard, TryLockError, lock};

/// A value, its lock, and calls that wait for whoever holds the lock.
pub(super) struct Delegating<T, C> {
    value: Mutex<T>,
    /// What came while the value was locked.
    inbox: Inbox<C>,
    /// Who holds the lock looks into the inbox afterwards.
    serving: AtomicBool,
}

impl<T, C> Delegating<T, C> {
    pub(super) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), inbox: Inbox::default(), serving: AtomicBool::new(false) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        lock(&self.value)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        crate::base::locks::count();
        match self.value.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Calls `f` with the value locked. [`Self::run_deferred`] has to follow if there [is something
    /// deferred](Self::has_deferred).
    #[inline]
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.serve(self.lock(), f)
    }

    /// Makes a call now or, when the value is locked, leaves it to who holds the lock. As for [`Self::with`].
    pub(super) fn run_or_enqueue(&self, call: C, run: impl FnOnce(&mut T, C)) {
        if let Err(call) = self.inbox.push(call) {
            self.with(|value| run(value, call));
        }
    }

    fn serve<R>(&self, mut locked: MutexGuard<'_, T>, f: impl FnOnce(&mut T) -> R) -> R {
        /// Ends also when a call panics.
        struct Serving<'a>(&'a AtomicBool);
        impl Drop for Serving<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::SeqCst);
            }
        }
        // Who sees this late waits for the lock.
        self.serving.store(true, Ordering::Release);
        let _serving = Serving(&self.serving);
        f(&mut locked)
    }

    #[inline]
    pub(super) fn has_deferred(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Makes the calls that came while the lock was held. A call pushed before this looks is found by it, or
    /// by who holds the lock meanwhile and looks after that.
    pub(super) fn run_deferred(&self, mut run: impl FnMut(&mut T, C)) {
        while !self.inbox.is_empty() {
            let locked = match self.try_lock() {
                Some(locked) => locked,
                None if self.serving.load(Ordering::SeqCst) => return,
                None => self.lock(),
            };
            self.serve(locked, |value| {
                while let Some(call) = self.inbox.pop() {
                    run(value, call);
                }
            });
        }
    }
}
