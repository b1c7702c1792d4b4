//! The only place that reads clocks.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::SystemTime;

use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::time::{Duration, Instant, Now, Time};
use plainsong_proto::vendor::PLAINSONG as VENDOR_ID;

/// When both clocks were read last, in monotonic time, and by how much wall-clock time was ahead.
static READ_AT: AtomicU64 = AtomicU64::new(0);
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// Both clocks go at the same speed, so for so long one is told from the other: reading one is half of the
/// work.
const TOGETHER: Duration = Duration::from_micros(500);
/// Differences that come from reading one after the other; larger ones mean that the host set its clock.
const READING: Duration = Duration::from_micros(10);

#[cfg(feature = "sim")]
thread_local! {
    static VIRTUAL: std::cell::Cell<Option<Now>> = const { std::cell::Cell::new(None) };
}

/// Calls `f` on a thread whose clocks stand still at `now`.
#[cfg(all(feature = "sim", not(test)))]
pub(crate) fn at<R>(now: Now, f: impl FnOnce() -> R) -> R {
    VIRTUAL.set(Some(now));
    let result = f();
    VIRTUAL.set(None);
    result
}

#[cfg(feature = "sim")]
pub(crate) fn is_virtual() -> bool {
    VIRTUAL.get().is_some()
}

/// Both clocks. Wall-clock time follows half a millisecond late when the host sets its clock.
#[inline]
pub(crate) fn now() -> Now {
    #[cfg(feature = "sim")]
    if let Some(now) = VIRTUAL.get() {
        return now;
    }
    let mono = mono();
    let read_at = READ_AT.load(Ordering::Acquire);
    if read_at != 0 && mono.since(Instant(read_at)) < TOGETHER {
        let nanos = i64::try_from(mono.0).unwrap_or(i64::MAX);
        return Now { mono, wall: Time(nanos.saturating_add(AHEAD.load(Ordering::Relaxed))) };
    }
    read_both(mono, read_at == 0)
}

#[cold]
fn read_both(mono: Instant, first: bool) -> Now {
    let wall = wall();
    // Who was kept from running in between does not know what belongs together.
    if self::mono().since(mono) < READING {
        let ahead = wall.0.saturating_sub_unsigned(mono.0);
        if first || ahead.abs_diff(AHEAD.load(Ordering::Relaxed)) > READING.0.unsigned_abs() {
            AHEAD.store(ahead, Ordering::Relaxed);
        }
        READ_AT.store(mono.0, Ordering::Release);
    }
    Now { mono, wall }
}

/// Monotonic time alone, since the host started.
#[inline]
pub(crate) fn mono() -> Instant {
    #[cfg(feature = "sim")]
    if let Some(now) = VIRTUAL.get() {
        return now.mono;
    }
    Instant(plainsong_clock::monotonic_ns())
}

fn wall() -> Time {
    let nanos = match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => Duration::from(after).0,
        // A host without a battery for its clock may start before 1970.
        Err(before) => -Duration::from(before.duration()).0,
    };
    Time(nanos)
}

/// The instant that is `timeout` from now; `None` when that is never.
pub(crate) fn deadline(timeout: impl Into<Duration>) -> Option<Instant> {
    mono().after(timeout.into())
}

/// How long to sleep until `deadline`; zero when it has passed.
pub(crate) fn until(deadline: Instant) -> std::time::Duration {
    std::time::Duration::from_nanos(deadline.0.saturating_sub(mono().0))
}

/// A number that differs from call to call and from process to process.
pub(crate) fn seed() -> u64 {
    // The standard library keys each of these hashers from the operating system's randomness, which a forked
    // process shares with its parent.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// A prefix that no other participant has: our vendor id, then ten random octets (RTPS 2.5 §9.3.1.5), of
/// which the first six are the same for all participants of this process.
pub(crate) fn fresh_guid_prefix() -> GuidPrefix {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    let mut prefix = [0; 12];
    prefix[..2].copy_from_slice(&VENDOR_ID);
    // A child of `fork` is another process.
    let process = PROCESS.get_or_init(seed) ^ u64::from(std::process::id()) << 16;
    prefix[2..GuidPrefix::PROCESS_BYTES]
        .copy_from_slice(&process.to_le_bytes()[..GuidPrefix::PROCESS_BYTES - 2]);
    prefix[GuidPrefix::PROCESS_BYTES..].copy_from_slice(&(seed() as u32).to_le_bytes());
    GuidPrefix(prefix)
}

/// Octets that nobody else can know.
pub(crate) fn secret() -> [u8; 16] {
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&seed().to_le_bytes());
    secret[8..].copy_from_slice(&seed().to_le_bytes());
    secret
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_advance() {
        let (first, second) = (now(), now());
        assert!(second.mono >= first.mono);
        assert!(first.wall > Time(1_500_000_000_000_000_000));
        assert_eq!(until(first.mono), std::time::Duration::ZERO);
    }
}
