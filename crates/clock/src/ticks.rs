//! Time by the time-stamp counter of x86-64 (Intel SDM volume 3, "Time-Stamp Counter"), between looks at the
//! kernel's clock.

use std::arch::x86_64::_rdtsc;
use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use super::kernel_ns;

/// For so long time is told by the counter alone.
const SPAN_NS: u64 = 500_000;
/// The speed of the counter is measured over so long at first, and again over so long.
const MEASURED_FIRST_NS: u64 = 20_000_000;
const MEASURED_AGAIN_NS: u64 = 1_000_000_000;
/// Looks at both clocks that take more ticks were interrupted, and tell nothing.
const LOOK_TICKS_MAX: u64 = 2_000;
/// The clocks may differ by so much before the time told last counts for nothing.
const DRIFT_NS_MAX: u64 = 5_000;
/// Hosts slew their clock by a two-thousandth at most: speeds that differ by more than this part are of
/// clocks that did not run together.
const SLEW_PARTS: u64 = 1_000;
/// Nanoseconds of a tick have so many binary places.
const PLACES: u32 = 32;
/// Counters run at 100 MHz to 10 GHz.
const RATE_MIN: u64 = (1 << PLACES) / 10;
const RATE_MAX: u64 = (1 << PLACES) * 10;

/// A moment by both clocks.
#[derive(Clone, Copy)]
struct Moment {
    ticks: u64,
    ns: u64,
}

/// What a thread tells time from.
#[derive(Clone, Copy)]
struct Anchor {
    at: Moment,
    /// Good for so many ticks; 0: not at all.
    span_ticks: u64,
    /// Nanoseconds of a tick.
    rate: u64,
    /// The time told is not less.
    floor_ns: u64,
}

thread_local! {
    static ANCHOR: Cell<Anchor> =
        const { Cell::new(Anchor { at: Moment { ticks: 0, ns: 0 }, span_ticks: 0, rate: 0, floor_ns: 0 }) };
}

/// Nanoseconds of a tick; 0 until they are known.
static RATE: AtomicU64 = AtomicU64::new(0);
/// Since when they are measured.
static MEASURING: Mutex<Option<Moment>> = Mutex::new(None);

#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    // Where threads have no such place any more, at their end, the kernel tells.
    ANCHOR
        .try_with(|place| {
            let anchor = place.get();
            let ticks = counter().wrapping_sub(anchor.at.ticks);
            if ticks < anchor.span_ticks { anchor.told(ticks) } else { look(place) }
        })
        .unwrap_or_else(|_| kernel_ns())
}

#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every processor of this architecture has the instruction; Linux allows it unless it was told
    // otherwise (`PR_SET_TSC`), and then does not let programs tell time by it.
    unsafe { _rdtsc() }
}

impl Anchor {
    #[inline(always)]
    fn told(&self, ticks: u64) -> u64 {
        // No more than the span: the product has no more than 60 bits.
        (self.at.ns + ((ticks * self.rate) >> PLACES)).max(self.floor_ns)
    }

    /// What the time is not less than by now: what was told last may be a little ahead of the kernel.
    fn floor_at(&self, now: Moment) -> u64 {
        let ticks = now.ticks.wrapping_sub(self.at.ticks);
        let ahead = if ticks < 2 * self.span_ticks { self.told(ticks) } else { self.floor_ns };
        if ahead.saturating_sub(now.ns) <= DRIFT_NS_MAX { ahead.max(now.ns) } else { now.ns }
    }
}

/// Asks the kernel, and tells time from there.
#[cold]
fn look(place: &Cell<Anchor>) -> u64 {
    if !is_steady() {
        return kernel_ns();
    }
    let last = place.get();
    let before = counter();
    let ns = kernel_ns();
    let took = counter().wrapping_sub(before);
    let floor_ns = last.floor_at(Moment { ticks: before, ns });
    if took > LOOK_TICKS_MAX {
        return floor_ns;
    }
    let at = Moment { ticks: before.wrapping_add(took / 2), ns };
    let rate = rate_at(at);
    let span_ticks = (SPAN_NS << PLACES).checked_div(rate).unwrap_or(0);
    place.set(Anchor { at, span_ticks, rate, floor_ns });
    floor_ns
}

/// Nanoseconds of a tick, measured anew now and then; 0 while they are not known.
fn rate_at(now: Moment) -> u64 {
    let known = RATE.load(Ordering::Relaxed);
    // Another thread is at it.
    let Ok(mut measuring) = MEASURING.try_lock() else { return known };
    let Some(since) = *measuring else {
        *measuring = Some(now);
        return known;
    };
    let Some(rate) = measured(since, now, known) else { return known };
    *measuring = Some(now);
    RATE.store(rate, Ordering::Relaxed);
    rate
}

/// Nanoseconds of a tick between two moments, when these are far enough apart; 0 when the clocks did not run
/// together, as while the host slept: then the kernel tells time until they are measured again.
fn measured(since: Moment, now: Moment, known: u64) -> Option<u64> {
    let (ns, ticks) = (now.ns.saturating_sub(since.ns), now.ticks.wrapping_sub(since.ticks));
    if ns < if known == 0 { MEASURED_FIRST_NS } else { MEASURED_AGAIN_NS } {
        return None;
    }
    // After hours without a look: 64 bits would not hold the product.
    let rate = u64::try_from((u128::from(ns) << PLACES) / u128::from(ticks.max(1))).unwrap_or(0);
    let agrees = known == 0 || rate.abs_diff(known) <= known / SLEW_PARTS;
    Some(if agrees && (RATE_MIN..=RATE_MAX).contains(&rate) { rate } else { 0 })
}

/// Whether the kernel itself tells time by the counter: then it runs at one speed, together on all
/// processors.
fn is_steady() -> bool {
    static STEADY: OnceLock<bool> = OnceLock::new();
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    *STEADY.get_or_init(|| fs::read(SOURCE).is_ok_and(|name| name.trim_ascii() == b"tsc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ticks a nanosecond.
    const RATE: u64 = 1 << (PLACES - 1);
    const SECOND: u64 = 1_000_000_000;

    fn moment(ns: u64, ticks: u64) -> Moment {
        Moment { ticks, ns }
    }

    #[test]
    fn the_speed_is_measured_between_moments_that_are_far_enough_apart() {
        let since = moment(SECOND, 7);
        assert_eq!(measured(since, moment(SECOND + MEASURED_FIRST_NS - 1, 7), 0), None);
        let first = moment(SECOND + MEASURED_FIRST_NS, 7 + 2 * MEASURED_FIRST_NS);
        assert_eq!(measured(since, first, 0), Some(RATE));
        assert_eq!(measured(since, first, RATE), None, "it is known");
        let slewed = moment(2 * SECOND, 7 + 2 * SECOND - 500_000);
        assert!(measured(since, slewed, RATE).is_some_and(|rate| rate > RATE));
    }

    #[test]
    fn clocks_that_did_not_run_together_tell_no_speed() {
        let since = moment(SECOND, 7);
        let slept = moment(2 * SECOND, 7 + 6 * SECOND);
        assert_eq!(measured(since, slept, RATE), Some(0), "the counter went on while the host slept");
        assert_eq!(measured(since, moment(2 * SECOND, 3), RATE), Some(0), "it began anew");
        assert_eq!(measured(since, moment(2 * SECOND, 7), 0), Some(0), "it stands still");
    }

    #[test]
    fn what_was_told_is_not_taken_back_but_for_a_great_difference() {
        let anchor = Anchor { at: moment(SECOND, 0), span_ticks: 2 * SPAN_NS, rate: RATE, floor_ns: SECOND };
        let told = anchor.told(2_000);
        assert_eq!(told, SECOND + 1_000);
        assert_eq!(anchor.floor_at(moment(SECOND + 900, 2_000)), told);
        assert_eq!(anchor.floor_at(moment(SECOND + 1_100, 2_000)), SECOND + 1_100);
        let far = SECOND + 1_000 - 2 * DRIFT_NS_MAX;
        assert_eq!(anchor.floor_at(moment(far, 2_000)), far);
    }
}
