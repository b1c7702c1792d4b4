//! The monotonic clock of the host, read as cheaply as it can be.
//!
//! Where the kernel tells time by the counter of the processor, reading that is a third of the work of asking
//! the kernel, which has the processor finish all that it began. So each thread asks the kernel twice in a
//! millisecond at most, and tells the time in between by the counter. It differs from what the kernel would
//! say by less than a microsecond: by as much as the host slews its clock in half a millisecond. Where the
//! two did not run together, as while the host slept, the kernel tells time alone until the counter's speed
//! is measured anew.
#![allow(
    unsafe_code,
    reason = "the kernel's clock and the processor's counter have no safe wrapper as cheap"
)]

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod ticks;

/// Nanoseconds of the monotonic clock, which all processes of a host share. Not less than before in one
/// thread, but where a clock of the host jumped.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
    return ticks::monotonic_ns();
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
    kernel_ns()
}

/// What the kernel says.
#[cfg(unix)]
fn kernel_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local; the call cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // Neither is negative; hosts do not run for centuries.
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Since the first call in this process.
#[cfg(not(unix))]
fn kernel_ns() -> u64 {
    static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let elapsed = ORIGIN.get_or_init(std::time::Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Reads it in a loop for so long, between two looks at the kernel's clock.
    fn watch(duration: Duration) {
        let end = kernel_ns() + duration.as_nanos() as u64;
        let mut last = 0;
        while last < end {
            let before = kernel_ns();
            let now = monotonic_ns();
            let after = kernel_ns();
            assert!(now + 1_000 >= before && now <= after + 1_000, "{before} {now} {after}");
            assert!(now >= last, "it went back from {last} to {now}");
            last = now;
        }
    }

    #[test]
    fn it_is_the_kernels_clock_within_a_microsecond_and_never_goes_back() {
        let watching = (0..3).map(|_| thread::spawn(|| watch(Duration::from_millis(150))));
        watching.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().expect("it held"));
    }

    #[test]
    fn it_holds_after_a_pause() {
        watch(Duration::from_millis(30));
        thread::sleep(Duration::from_millis(30));
        watch(Duration::from_millis(5));
    }
}
