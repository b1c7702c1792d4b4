//! How long listeners take, and so whether they are notified of a long sample before the HEARTBEAT behind it
//! is answered.
//!
//! To send an ACKNACK and to wake who waits for it takes as long as a tenth of receiving a megabyte: who
//! answers the sample need not wait for that, nor need a thread of the application that a listener woke,
//! which mostly finds itself on this core. But a listener that takes its time over an image would keep the
//! next one from being sent meanwhile. So only who was brief with those before is notified first, and whoever
//! was not waits for many to be brief again.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use plainsong_proto::time::Duration;

use crate::base::clock;

/// A sample of so many octets is long: of shorter ones the next is on its way sooner if they are acknowledged
/// first.
pub(super) const LONG_BYTES: u32 = 256 << 10;
/// It takes an application no longer than that: less than to send some megabytes.
const BRIEF: Duration = Duration::from_millis(1);
/// What one took that was not brief is forgotten by this part with each that is.
const FORGOTTEN: u64 = 8;

/// How long one participant's listeners take when they are notified.
#[derive(Debug)]
pub(super) struct ListenerTime {
    usual_ns: AtomicU64,
    yields: YieldBackoff,
}

/// Whether the core is offered to other threads: not where they keep it. What is lost then is a time slice, a
/// hundred times what is won elsewhere, so that after each that took long it is tried ever more rarely.
#[derive(Debug)]
struct YieldBackoff {
    /// So many times it is not offered before it is again.
    skipped: AtomicU32,
    /// How many times that is after the next offer.
    skips: AtomicU32,
}

impl YieldBackoff {
    const FIRST_SKIPS: u32 = 16;
    const SKIPS_MAX: u32 = 1 << 14;

    fn is_due(&self) -> bool {
        let skipped = self.skipped.load(Ordering::Relaxed);
        self.skipped.store(skipped.saturating_sub(1), Ordering::Relaxed);
        skipped == 0
    }

    fn took(&self, time: Duration) {
        let skips = self.skips.load(Ordering::Relaxed);
        let skips = if time > BRIEF {
            (skips * 4).clamp(Self::FIRST_SKIPS, Self::SKIPS_MAX)
        } else {
            skips - skips.div_ceil(8)
        };
        self.skips.store(skips, Ordering::Relaxed);
        self.skipped.store(skips, Ordering::Relaxed);
    }
}

impl ListenerTime {
    /// Nothing is known: of the first of all they are notified after the answer.
    pub(super) const fn new() -> Self {
        let yields = YieldBackoff { skipped: AtomicU32::new(0), skips: AtomicU32::new(0) };
        Self { usual_ns: AtomicU64::new(8 * BRIEF.0.unsigned_abs()), yields }
    }

    pub(super) fn is_brief(&self) -> bool {
        self.usual_ns.load(Ordering::Relaxed) <= BRIEF.0.unsigned_abs()
    }

    /// To notify of a long sample took so long. Two threads that do so at once may lose one of both: it is a
    /// guess.
    pub(super) fn took(&self, time: Duration) {
        let took = u64::try_from(time.0).unwrap_or(0);
        let usual = self.usual_ns.load(Ordering::Relaxed);
        self.usual_ns.store(took.max(usual - usual / FORGOTTEN), Ordering::Relaxed);
    }

    /// Between notifying and the answer to the HEARTBEAT: threads that wait for this core, one of which may
    /// have been woken to use the sample, come first.
    pub(super) fn yield_core(&self) {
        if self.yields.is_due() {
            let began = clock::mono();
            std::thread::yield_now();
            self.yields.took(clock::mono().since(began));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times_taken: &[(usize, Duration)]) -> bool {
        let listener_time = ListenerTime::new();
        for (times, duration) in times_taken {
            (0..*times).for_each(|_| listener_time.took(*duration));
        }
        listener_time.is_brief()
    }

    #[test]
    fn who_was_brief_for_a_while_is_notified_first() {
        let brief = Duration::from_micros(200);
        assert!(!after(&[]));
        assert!(!after(&[(4, brief)]), "not known yet");
        assert!(after(&[(20, brief)]));
    }

    #[test]
    fn one_that_takes_its_time_is_notified_last_for_as_long_as_it_was_slow() {
        let (brief, slow) = (Duration::from_micros(200), Duration::from_millis(30));
        assert!(!after(&[(1_000, brief), (1, slow)]));
        assert!(!after(&[(1_000, brief), (1, slow), (10, brief)]));
        assert!(after(&[(1_000, brief), (1, slow), (40, brief)]));
        assert!(!after(&[(1_000, Duration::from_millis(2))]));
    }

    /// How often the core is offered in `times` samples, when others keep it for `duration`.
    fn offers(yields: &YieldBackoff, times: usize, duration: Duration) -> usize {
        let offered = (0..times).filter(|_| {
            let is_due = yields.is_due();
            if is_due {
                yields.took(duration);
            }
            is_due
        });
        offered.count()
    }

    #[test]
    fn the_core_is_offered_each_time_until_others_keep_it() {
        let listener_time = ListenerTime::new();
        let (brief, slice) = (Duration::from_micros(100), Duration::from_millis(3));
        assert_eq!(offers(&listener_time.yields, 1_000, brief), 1_000);
        assert!(offers(&listener_time.yields, 50_000, slice) < 10, "ever more rarely");
        assert!(offers(&listener_time.yields, 400_000, brief) > 200_000, "and again when they are gone");
        assert_eq!(offers(&listener_time.yields, 1, slice), 1);
        assert_eq!(offers(&listener_time.yields, 16, brief), 0, "one slice costs a few samples");
        assert!(offers(&listener_time.yields, 200, brief) > 100);
    }
}
