//! In which process we are, counted in forks, and descriptors that a forked process must not use
//! (`at_fork.rs`).

#![cfg_attr(unix, allow(unsafe_code, reason = "replacing descriptors has no safe wrapper"))]

use std::sync::atomic::{AtomicU32, Ordering};

/// How many forks lie between this process and the first one that had a participant.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Differs from that of the process that this one was forked from.
#[inline]
pub(crate) fn generation() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// In a process that was just forked: it is another.
#[cfg(unix)]
pub(crate) fn count() {
    FORKS.fetch_add(1, Ordering::SeqCst);
}

/// Makes descriptors lead nowhere, whatever they led to. They stay open: others own their numbers.
#[cfg(target_os = "linux")]
pub(crate) fn disconnect(descriptors: impl Iterator<Item = std::os::fd::RawFd>) {
    // SAFETY: plain system calls. The new descriptor is closed here and nowhere else; those that are replaced
    // stay open.
    unsafe {
        let nowhere = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        if nowhere >= 0 {
            for descriptor in descriptors {
                libc::dup3(nowhere, descriptor, libc::O_CLOEXEC);
            }
            libc::close(nowhere);
        }
    }
}
