//! Time by the time-stamp counter of x86-64 (Intel SDM volume 3, "Time-Stamp Counter"), between looks at the kernel's clock.

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
    // SAFETY: every processor of this architecture has the instruction; Linux allows it unless it was told otherwise
    // (`PR_SET_TSC`), and then does not let programs tell time by it.
    unsafe { _rdtsc() }
}

impl Anchor {
    #[inline(always)]
    fn told(&self, ticks: u64) -> u64 {
        // No more than the span: the product has no more than 60 bits.
        (self.at.ns + ((ticks * self.rate) >> PLACES)).max(self.floor_ns)
    }
}

/// Asks the kernel, and tells time from there.
#[cold]
fn look(place: &Cell<Anchor>) -> u64 {
    if !is_steady() {
        return kernel_ns();
    }
    let before = counter();
    let ns = kernel_ns();
    let took = counter().wrapping_sub(before);
    if took > LOOK_TICKS_MAX {
        return ns.max(place.get().floor_ns);
    }
    let at = Moment { ticks: before.wrapping_add(took / 2), ns };
    let rate = rate_at(at);
    let last = place.get();
    // What was told last may be a little ahead.
    let ticks = at.ticks.wrapping_sub(last.at.ticks);
    let ahead = if ticks < 2 * last.span_ticks { last.told(ticks) } else { last.floor_ns };
    let floor_ns = if ahead.saturating_sub(ns) <= DRIFT_NS_MAX { ahead.max(ns) } else { ns };
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
    let (ns, ticks) = (now.ns.saturating_sub(since.ns), now.ticks.wrapping_sub(since.ticks));
    if ns < if known == 0 { MEASURED_FIRST_NS } else { MEASURED_AGAIN_NS } {
        return known;
    }
    *measuring = Some(now);
    // After hours without a look: 64 bits would not hold the product.
    let measured = (u128::from(ns) << PLACES) / u128::from(ticks.max(1));
    let rate = u64::try_from(measured).unwrap_or(0);
    let rate = if (RATE_MIN..=RATE_MAX).contains(&rate) { rate } else { 0 };
    RATE.store(rate, Ordering::Relaxed);
    rate
}

/// Whether the kernel itself tells time by the counter: then it runs at one speed, together on all processors.
fn is_steady() -> bool {
    static STEADY: OnceLock<bool> = OnceLock::new();
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    *STEADY.get_or_init(|| fs::read(SOURCE).is_ok_and(|name| name.trim_ascii() == b"tsc"))
}
