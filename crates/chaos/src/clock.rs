//! The time that all processes of this host share.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

pub(crate) fn ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// Pause of the thread that notices when threads that are to run do not.
const TICK: Duration = Duration::from_millis(5);

/// Tells `pause` from when to when this process got no processor, where that was longer than so long. It
/// never returns.
pub(crate) fn watch(longer_than: Duration, pause: impl Fn(u64, u64)) {
    loop {
        let from_ns = now_ns();
        std::thread::sleep(TICK);
        let to_ns = now_ns();
        if to_ns - from_ns > ns(TICK + longer_than) {
            pause(from_ns, to_ns);
        }
    }
}
