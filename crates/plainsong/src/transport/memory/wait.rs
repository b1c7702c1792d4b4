//! Sleeping until a peer has something, and waking a peer that sleeps.
//!
//! Who may write to an event could fill its counter, and make it one that blocks: the next to write would be
//! stuck. So an event stays with who rings it. The peer gets a set of events (epoll) that has nothing but
//! this one, by which it can see and wait for it, and adds that to its own set.

#![allow(unsafe_code, reason = "events and sets of them have no safe wrapper")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use crate::transport::{ThreadWaker, WokenBy};

/// What one wait reports, at most.
pub(super) const EVENTS_MAX: usize = 16;

/// Wakes the peer of a link.
#[derive(Debug)]
pub(super) struct Bell {
    event: OwnedFd,
    watched: WaitSet,
}

/// Descriptors that are waited for together, each with a token.
#[derive(Debug)]
pub(super) struct WaitSet(OwnedFd);

/// How a descriptor is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trigger {
    /// While it has something.
    Level,
    /// When it has something new.
    Edge,
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: callers have just got `fd` from the kernel and give it to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Bell {
    /// # Errors
    /// The process has no descriptor to spare.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; the descriptor it returns is owned by nobody else.
        let event = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let watched = WaitSet::new()?;
        watched.add(event.as_fd(), 0, Trigger::Edge)?;
        Ok(Self { event, watched })
    }

    /// By which it can be waited for, but not rung.
    pub(super) fn watched(&self) -> BorrowedFd<'_> {
        self.watched.as_fd()
    }

    /// Wakes who waits for it. Only this process counts it up, so it never blocks.
    pub(super) fn ring(&self) {
        let one = 1_u64;
        // SAFETY: writes eight octets of a local variable.
        unsafe { libc::write(self.event.as_raw_fd(), ptr::from_ref(&one).cast(), size_of::<u64>()) };
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl WaitSet {
    /// # Errors
    /// The process has no descriptor to spare.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; the descriptor it returns is owned by nobody else.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Self)
    }

    /// # Errors
    /// That descriptor cannot be waited for, or is in the set.
    pub(super) fn add(&self, fd: BorrowedFd<'_>, token: u64, trigger: Trigger) -> io::Result<()> {
        let edge = match trigger {
            Trigger::Level => 0,
            Trigger::Edge => libc::EPOLLET as u32,
        };
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32 | edge, u64: token };
        // SAFETY: the pointer is to a local variable.
        let result = unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Descriptors that others hold, too, do not leave by being closed here.
    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        // SAFETY: deleting looks at no event. It fails where the descriptor is not in the set.
        unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd.as_raw_fd(), ptr::null_mut()) };
    }

    /// Waits until one has something: the tokens of those that have, a few at most. Without `blocks` it only
    /// looks. A signal ends it, too.
    pub(super) fn wait(&self, blocks: bool) -> impl Iterator<Item = u64> + use<> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        // SAFETY: the pointer and count describe `events`.
        let count = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS_MAX as libc::c_int,
                if blocks { -1 } else { 0 },
            )
        };
        events.into_iter().take(usize::try_from(count).unwrap_or(0)).map(|event| event.u64)
    }

    /// Waits until one has something, `waker` is used or the time is over.
    ///
    /// # Errors
    /// A signal came (`Interrupted`).
    pub(super) fn wait_or(
        &self,
        waker: Option<&ThreadWaker>,
        timeout: Option<Duration>,
    ) -> io::Result<WokenBy> {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // Negative descriptors are skipped.
        let mut polled = [entry(self.0.as_raw_fd()), entry(waker.map_or(-1, AsRawFd::as_raw_fd))];
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            // Fits: below 10⁹.
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        });
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the pointer and count describe `polled`; `timeout` is null or points to a local variable.
        let result =
            unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout, ptr::null()) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let [set, waker] = polled.map(|entry| entry.revents != 0);
        Ok(WokenBy { datagram: set, waker })
    }
}

impl AsFd for WaitSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ring_is_seen_once_through_the_set_that_a_peer_has() {
        let (bell, set) = (Bell::new().unwrap(), WaitSet::new().unwrap());
        set.add(bell.watched(), 7, Trigger::Edge).unwrap();
        let seen = || set.wait(false).collect::<Vec<_>>();
        assert!(seen().is_empty());
        for _ in 0..3 {
            bell.ring();
            assert_eq!((seen(), seen()), (vec![7], vec![]));
        }
        bell.ring();
        assert!(set.wait_or(None, Some(Duration::ZERO)).unwrap().datagram);
        assert_eq!(seen(), [7]);
        assert!(!set.wait_or(None, Some(Duration::ZERO)).unwrap().datagram);
        set.remove(bell.watched());
        bell.ring();
        assert!(seen().is_empty());
    }

    #[test]
    fn who_sees_a_bell_can_neither_ring_it_nor_take_it_away() {
        let (bell, own, other) = (Bell::new().unwrap(), WaitSet::new().unwrap(), WaitSet::new().unwrap());
        own.add(bell.watched(), 1, Trigger::Edge).unwrap();
        let given = bell.watched().try_clone_to_owned().unwrap();
        let one = 1_u64;
        // SAFETY: writes eight octets of a local variable.
        let written = unsafe { libc::write(given.as_raw_fd(), ptr::from_ref(&one).cast(), size_of::<u64>()) };
        assert!(written < 0);
        // Whatever it sees, others see as well.
        other.add(given.as_fd(), 2, Trigger::Edge).unwrap();
        bell.ring();
        assert_eq!(other.wait(false).collect::<Vec<_>>(), [2]);
        assert_eq!(own.wait(false).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn files_and_circles_are_refused() {
        let (one, other) = (WaitSet::new().unwrap(), WaitSet::new().unwrap());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(one.add(file.as_fd(), 0, Trigger::Edge).is_err() || one.wait(false).count() <= 1);
        one.add(other.as_fd(), 0, Trigger::Edge).unwrap();
        assert!(other.add(one.as_fd(), 0, Trigger::Edge).is_err());
    }
}
