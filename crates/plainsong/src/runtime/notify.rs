//! Sleeping until something happens: a counter that moves on, and a way to wait for that.

#![cfg_attr(
    all(target_os = "linux", not(all(test, feature = "shuttle"))),
    allow(unsafe_code, reason = "the futex system call has no safe wrapper")
)]

use std::fmt;
use std::sync::Arc;

use plainsong_proto::time::Instant;

use crate::base::sync::atomic::{AtomicU32, Ordering};
use crate::base::sync::{self, Mutex, lock};

/// Ends a wait of one thread for something else.
pub(crate) trait Wake: Send + Sync {
    fn wake(&self);
}

/// An epoch that threads wait on. Waking costs no system call when nobody sleeps; nothing allocates.
#[derive(Default)]
pub(crate) struct Notify {
    epoch: AtomicU32,
    sleepers: AtomicU32,
    /// Threads that wait for something else as well, which ends when their waker is used.
    armed: AtomicU32,
    wakers: Mutex<Vec<Arc<dyn Wake>>>,
    #[cfg(any(not(target_os = "linux"), all(test, feature = "shuttle")))]
    parking: (Mutex<()>, sync::Condvar),
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notify").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Notify {
    /// Moves on with each wake. Read it *before* looking at what is awaited, then [`Notify::wait`] on it.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Sleeps while the epoch is `seen`. False when `deadline` passed first; `None` waits for ever.
    pub(crate) fn wait(&self, seen: u32, deadline: Option<Instant>) -> bool {
        // A waker first moves the epoch, then looks for sleepers; we first count ourselves in, then look at
        // the epoch. In one total order, at least one of the two sees the other.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let woken = loop {
            if self.epoch() != seen {
                break true;
            }
            let timeout = deadline.map(sync::until);
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                break false;
            }
            self.sleep(seen, timeout);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        woken
    }

    /// Moves the epoch on and wakes everyone.
    pub(crate) fn wake_all(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.wake_sleepers();
        }
        if self.armed.load(Ordering::SeqCst) > 0 {
            lock(&self.wakers).iter().for_each(|waker| waker.wake());
        }
    }

    /// While this lives, `waker` may be armed.
    pub(crate) fn register(&self, waker: Arc<dyn Wake>) -> Registration<'_> {
        lock(&self.wakers).push(Arc::clone(&waker));
        Registration { notify: self, waker }
    }

    #[cfg(all(target_os = "linux", not(all(test, feature = "shuttle"))))]
    fn sleep(&self, seen: u32, timeout: Option<std::time::Duration>) {
        let spec = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            // Fits: below 10⁹.
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        });
        let spec = spec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the futex word lives as long as `self`, `spec` is null or points to a local timespec. Every
        // outcome (woken, changed before, interrupted, timed out) makes the caller look at the epoch again.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.epoch.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                seen,
                spec,
            );
        }
    }

    #[cfg(all(target_os = "linux", not(all(test, feature = "shuttle"))))]
    fn wake_sleepers(&self) {
        let all = i32::MAX;
        // SAFETY: the futex word lives as long as `self`; waking touches no other memory.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.epoch.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                all,
            );
        }
    }

    #[cfg(any(not(target_os = "linux"), all(test, feature = "shuttle")))]
    fn sleep(&self, seen: u32, timeout: Option<std::time::Duration>) {
        let parking = lock(&self.parking.0);
        if self.epoch() == seen {
            // Poison is harmless: the mutex guards nothing but the order of sleep and wake.
            match timeout {
                Some(timeout) => drop(self.parking.1.wait_timeout(parking, timeout)),
                None => drop(self.parking.1.wait(parking)),
            }
        }
    }

    #[cfg(any(not(target_os = "linux"), all(test, feature = "shuttle")))]
    fn wake_sleepers(&self) {
        let _parking = lock(&self.parking.0);
        self.parking.1.notify_all();
    }
}

/// A waker that a [`Notify`] may use.
pub(crate) struct Registration<'a> {
    notify: &'a Notify,
    waker: Arc<dyn Wake>,
}

/// While it lives, everything that moves the epoch uses the wakers.
pub(crate) struct Armed<'a>(&'a Notify);

impl Registration<'_> {
    /// `None` when the epoch is not `seen` any more: nothing is woken then.
    pub(crate) fn arm(&self, seen: u32) -> Option<Armed<'_>> {
        // As in `wait`: first counted in, then looked at the epoch.
        self.notify.armed.fetch_add(1, Ordering::SeqCst);
        let armed = Armed(self.notify);
        (self.notify.epoch() == seen).then_some(armed)
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        self.0.armed.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let mut wakers = lock(&self.notify.wakers);
        if let Some(position) = wakers.iter().position(|waker| Arc::ptr_eq(waker, &self.waker)) {
            wakers.swap_remove(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use plainsong_proto::time::Duration;

    use super::*;
    use crate::base::clock;

    #[test]
    fn a_wake_before_the_wait_is_not_lost() {
        let notify = Notify::default();
        let seen = notify.epoch();
        notify.wake_all();
        assert!(notify.wait(seen, None));
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        let notify = Notify::default();
        let deadline = clock::mono().after(Duration::from_millis(20));
        assert!(!notify.wait(notify.epoch(), deadline));
        assert!(clock::mono() >= deadline.unwrap());
    }

    #[test]
    fn no_wake_is_lost_between_threads_that_hand_over_a_token() {
        const ROUNDS: u64 = if cfg!(miri) { 300 } else { 20_000 };
        let (token, notify) = (AtomicU64::new(0), Notify::default());
        let play = |me: u64| {
            for round in 0..ROUNDS {
                loop {
                    let seen = notify.epoch();
                    if token.load(Ordering::Acquire) == round * 3 + me {
                        break;
                    }
                    // A lost wake shows as a deadline that passes.
                    let deadline = clock::mono().after(Duration::from_secs(20));
                    assert!(notify.wait(seen, deadline), "player {me} slept through round {round}");
                }
                token.fetch_add(1, Ordering::Release);
                notify.wake_all();
            }
        };
        std::thread::scope(|scope| {
            for me in 0..3 {
                scope.spawn(move || play(me));
            }
        });
        assert_eq!(token.load(Ordering::Relaxed), 3 * ROUNDS);
    }
}
