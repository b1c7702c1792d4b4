//! After `fork` the child has the parent's memory and descriptors, but none of its threads: nobody receives
//! there, a lock may be held by a thread that is not there, and whatever the child did to a socket, timer or
//! event would happen to the parent.
//!
//! So entities know in which process they were made, and refuse every call in another ([`Error::Forked`]);
//! descriptors are replaced in the child, before `fork` returns there, by one that leads nowhere. A
//! participant that the child makes has sockets and threads of its own.
//!
//! The number of forks is counted by a handler in the child. To ask for the process id would take a system
//! call for each `write`; memory that the kernel wipes (`MADV_WIPEONFORK`) is no cheaper to look at, and is
//! Linux's alone.
//!
//! [`Error::Forked`]: crate::Error::Forked
//!
//! Calls that return no `Result` answer where no lock is in the way, and panic after ten seconds where a
//! thread that is only in the parent has it. A process made by `clone` or `vfork`, for which no handlers run,
//! is not noticed.

#![cfg_attr(unix, allow(unsafe_code, reason = "pthread_atfork has no safe wrapper"))]

/// Forks are counted from now on.
#[cfg(unix)]
pub(crate) fn watch() {
    use std::sync::atomic::{AtomicBool, Ordering};

    static IS_WATCHED: AtomicBool = AtomicBool::new(false);
    if !IS_WATCHED.swap(true, Ordering::SeqCst) {
        // SAFETY: the functions have the right type and live as long as the library. When they cannot be
        // noted, forks are not noticed.
        let _ = unsafe {
            libc::pthread_atfork(Some(handlers::prepare), Some(handlers::parent), Some(handlers::child))
        };
    }
}

/// There is no fork.
#[cfg(not(unix))]
pub(crate) const fn watch() {}

#[cfg(unix)]
mod handlers {
    use std::cell::RefCell;

    use crate::base::fork;
    use crate::{domain, participant};

    thread_local! {
        /// While this thread forks nobody else has the locks that all of the process use: the child can.
        static LOCKS: RefCell<Option<(domain::AllLocked, participant::AllLocked)>> = const { RefCell::new(None) };
    }

    pub(super) extern "C" fn prepare() {
        // A thread that is ending has no such variable any more.
        let _ =
            LOCKS.try_with(|locks| *locks.borrow_mut() = Some((domain::lock_all(), participant::lock_all())));
    }

    pub(super) extern "C" fn parent() {
        let _ = LOCKS.try_with(|locks| locks.take());
    }

    /// Takes no lock of the library and allocates nothing.
    pub(super) extern "C" fn child() {
        fork::count();
        let _ = LOCKS.try_with(|locks| {
            if let Some((domains, _)) = locks.take() {
                domain::abandon(&domains);
            }
        });
    }
}
