//! What one party does alone.

use std::hint::black_box;
use std::time::Duration;

use plainsong_perfkit::clock::now_ns;

/// Calls of one run.
const CALLS: u32 = 100_000;
/// Sleeps of one run, and how long each should be.
const SLEEPS: u32 = 100;
const SLEEP: Duration = Duration::from_micros(100);
/// Octets copied in one run, at least.
const COPIED: u64 = 64 << 20;

fn each_ns(count: u32, mut call: impl FnMut()) -> f64 {
    let begin_ns = now_ns();
    (0..count).for_each(|_| call());
    now_ns().saturating_sub(begin_ns) as f64 / f64::from(count)
}

/// One look at the clock.
pub(super) fn clock_read_ns() -> f64 {
    each_ns(CALLS, || {
        black_box(now_ns());
    })
}

/// The cheapest way into the kernel and back (getppid).
pub(super) fn system_call_ns() -> f64 {
    each_ns(CALLS, || {
        black_box(std::os::unix::process::parent_id());
    })
}

/// How much longer than asked a sleep is.
pub(super) fn timer_slack_ns() -> f64 {
    let slept = each_ns(SLEEPS, || std::thread::sleep(SLEEP));
    (slept - SLEEP.as_nanos() as f64).max(0.0)
}

/// Whether twice as much and some room is there.
pub(super) fn has_memory_for(octets: u64) -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    octets <= 1 << 20 || available.is_some_and(|kib| kib / 4 * 1024 >= octets)
}

/// Copies of so many octets, from one place to another.
pub(super) fn memcpy_octets_per_s(octets: u64) -> f64 {
    let from = vec![1_u8; octets as usize];
    let mut to = vec![2_u8; octets as usize];
    let rounds = u32::try_from((COPIED / octets).max(1)).unwrap_or(u32::MAX);
    let runs = (0..super::RUNS).map(|_| {
        let copy_ns = each_ns(rounds, || {
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
        });
        octets as f64 * 1e9 / copy_ns.max(1e-3)
    });
    super::median_of(runs.collect())
}
