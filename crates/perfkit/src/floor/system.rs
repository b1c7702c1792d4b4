//! System calls for which the standard library has no words.

// Each block below is one call of libc with values of this function.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps until that time of the monotonic clock, or until a signal.
pub fn sleep_until_ns(at_ns: u64) {
    let time = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the pointer is to a local, the remaining time is not asked for.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}

/// Asks the kernel to kill this process when the thread that started it ends.
pub fn die_with_parent() {
    // SAFETY: the call takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Lets sleeps of this thread end on time instead of up to 50 µs later.
pub fn sleep_exactly() {
    // SAFETY: the call takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Ends the process at once, without a word to any library.
pub fn leave_now(code: i32) -> ! {
    // SAFETY: the call takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// The standard output for this program alone: what libraries print goes to the standard error from now on.
///
/// # Errors
/// Of `dup`.
pub fn private_stdout() -> io::Result<File> {
    // SAFETY: the calls take numbers only.
    let private = unsafe { libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: as above.
    if private < 0 || unsafe { libc::dup2(2, 1) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else's.
    Ok(unsafe { File::from_raw_fd(private) })
}

/// Lets this thread run on that CPU only.
///
/// # Errors
/// Of `sched_setaffinity`.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    // SAFETY: all zeros is an empty set; the macro checks the number; the pointer is to a local of that size.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPUs this thread may run on.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: all zeros is an empty set; the pointer is to a local of that size; the macro checks the number.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

/// Sleeps until someone wakes those at this word, or the time is over; not at all if it has another value. It
/// works between processes that share the word's memory.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: the word and the time outlive the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &raw const timeout) };
}

/// Wakes one that sleeps at this word.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

/// Lets the kernel cut what is sent into datagrams of that size (UDP_SEGMENT).
///
/// # Errors
/// Of `setsockopt`.
pub fn set_udp_segment(socket: &impl AsFd, octets: u16) -> io::Result<()> {
    set_udp_option(socket, libc::UDP_SEGMENT, octets.into())
}

/// Lets the kernel put datagrams of one sender together that arrive together (UDP_GRO).
///
/// # Errors
/// Of `setsockopt`.
pub fn set_udp_gro(socket: &impl AsFd) -> io::Result<()> {
    set_udp_option(socket, libc::UDP_GRO, 1)
}

fn set_udp_option(socket: &impl AsFd, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call; the pointer is to a local of that length.
    let result =
        unsafe { libc::setsockopt(descriptor, libc::SOL_UDP, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
