//! One clock for everything: the monotonic clock of the host.

use std::time::Duration;

pub use plainsong_clock::monotonic_ns as now_ns;

use crate::floor::system::{sleep_exactly, sleep_until_ns};

/// Sleeping ends this much before a point of time that must be met; the rest is spent looking at the clock.
const SPIN_NS: u64 = 60_000;

/// Waits until that time: asleep for most of it, then busy.
pub fn wait_until_ns(at_ns: u64) {
    if at_ns > now_ns().saturating_add(SPIN_NS) {
        sleep_until_ns(at_ns - SPIN_NS);
    }
    while now_ns() < at_ns {
        std::hint::spin_loop();
    }
}

/// Sleeps for that long. It is the kernel that measures the time: what this clock says of it afterwards is a
/// test of this clock.
pub fn pause(duration: Duration) {
    sleep_exactly();
    std::thread::sleep(duration);
}

/// A duration in nanoseconds.
#[must_use]
pub fn to_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds in nanoseconds.
#[must_use]
pub const fn ms(milliseconds: u64) -> u64 {
    milliseconds.saturating_mul(1_000_000)
}
