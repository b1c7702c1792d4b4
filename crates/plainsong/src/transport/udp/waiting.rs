//! Sleeping until a socket has something, another thread wants it, or a time has come.

#![allow(unsafe_code, reason = "poll, eventfd and timers have no safe wrapper")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use super::netlink::Watcher;
use super::socket::Socket;
use super::{META_SOCKETS_MAX, Ready, WokenBy};

/// Ends a [`wait`] from another thread, once and for all.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; the descriptor it returns is owned by nobody else.
        owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(Self)
    }

    pub(crate) fn wake(&self) {
        let one = 1_u64;
        // SAFETY: writes eight octets of a local variable. A full counter is a wake as well.
        unsafe { libc::write(self.0.as_raw_fd(), ptr::from_ref(&one).cast(), size_of::<u64>()) };
    }
}

impl AsRawFd for Waker {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A new descriptor, or why there is none.
fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: callers have just got `fd` from the kernel and give it to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Ends an [`await_any`] of its thread, and can be used again.
#[derive(Debug)]
pub(crate) struct ThreadWaker(Waker);

impl ThreadWaker {
    pub(crate) fn new() -> io::Result<Self> {
        Waker::new().map(Self)
    }

    pub(crate) fn wake(&self) {
        self.0.wake();
    }

    /// Forgets that it was used.
    pub(crate) fn reset(&self) {
        let mut is_woken = 0_u64;
        // SAFETY: reads eight octets into a local variable. Nothing to read is fine: it was not used.
        unsafe { libc::read(self.0.0.as_raw_fd(), ptr::from_mut(&mut is_woken).cast(), size_of::<u64>()) };
    }
}

impl AsRawFd for ThreadWaker {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Blocks until one of the sockets has something, the waker is used or the time is over.
pub(crate) fn await_any<'a>(
    sockets: impl Iterator<Item = &'a Socket>,
    waker: Option<&ThreadWaker>,
    timeout: Option<Duration>,
) -> io::Result<WokenBy> {
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; META_SOCKETS_MAX + 1];
    let descriptors = sockets.take(META_SOCKETS_MAX).map(|socket| socket.raw.as_raw_fd());
    let mut count = 0;
    for (entry, fd) in
        polled.iter_mut().zip(waker.map(|waker| waker.0.0.as_raw_fd()).into_iter().chain(descriptors))
    {
        entry.fd = fd;
        count += 1;
    }
    let timeout = timeout.map(timespec);
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the pointer and count describe entries of `polled`; `timeout` is null or points to a local
    // timespec.
    let result = unsafe { libc::ppoll(polled.as_mut_ptr(), count, timeout, ptr::null()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut ready = polled.iter().map(|entry| entry.revents != 0);
    let is_woken = waker.is_some() && ready.next() == Some(true);
    Ok(WokenBy { datagram: ready.any(|ready| ready), waker: is_woken })
}

/// Wakes one thread at a time that may be put off without waking it.
#[derive(Debug)]
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; the descriptor it returns is owned by nobody else.
        owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) }).map(Self)
    }

    /// Goes off after that time, and not when it was to before.
    pub(crate) fn set(&self, after: Duration) {
        let setting = libc::itimerspec {
            // Zero would turn it off.
            it_value: timespec(after.max(Duration::from_nanos(1))),
            it_interval: timespec(Duration::ZERO),
        };
        // SAFETY: the pointers are to a local variable and null: the old setting is not asked for.
        unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const setting, ptr::null_mut()) };
    }

    /// Sleeps until it goes off, or a signal says otherwise.
    pub(crate) fn wait(&self) {
        let mut times = 0_u64;
        // SAFETY: reads eight octets into a local variable.
        unsafe { libc::read(self.0.as_raw_fd(), ptr::from_mut(&mut times).cast(), size_of::<u64>()) };
    }
}

fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        // Fits: below 10⁹.
        tv_nsec: duration.subsec_nanos() as libc::c_long,
    }
}

/// Looks whether a socket has something, an interface changed, or the waker was used; blocks until then if it
/// is to.
pub(crate) fn wait<'a>(
    sockets: impl Iterator<Item = &'a Socket>,
    watcher: Option<&Watcher>,
    waker: &Waker,
    blocks: bool,
) -> io::Result<Ready> {
    const DESCRIPTORS_MAX: usize = 8;
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; DESCRIPTORS_MAX];
    // Negative descriptors are skipped by poll.
    let descriptors = [waker.0.as_raw_fd(), watcher.map_or(-1, AsRawFd::as_raw_fd)];
    let sockets = sockets.map(|socket| socket.raw.as_raw_fd());
    for (entry, fd) in polled.iter_mut().zip(descriptors.into_iter().chain(sockets)) {
        entry.fd = fd;
    }
    // SAFETY: the pointer and count describe `polled`.
    let result =
        unsafe { libc::poll(polled.as_mut_ptr(), DESCRIPTORS_MAX as _, if blocks { -1 } else { 0 }) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let [_, interfaces, sockets @ ..] = polled.map(|entry| entry.revents != 0);
    Ok(Ready { interfaces, sockets })
}
