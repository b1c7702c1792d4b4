//! Whether the application is told of a long sample before the HEARTBEAT behind it is answered.
//!
//! To send an ACKNACK and to wake who waits for it takes as long as a tenth of receiving a megabyte: who answers the sample need
//! not wait for that. But a listener that takes its time over an image would keep the next one from being sent meanwhile. So only
//! who was brief with those before is told first, and whoever was not waits for many to be brief again.

use std::sync::atomic::{AtomicU64, Ordering};

use plainsong_proto::time::Duration;

/// A sample of so many octets is long: of shorter ones the next is on its way sooner if they are acknowledged first.
pub(super) const LONG_BYTES: u32 = 256 << 10;
/// It takes an application no longer than that: less than to send some megabytes.
const BRIEF: Duration = Duration::from_millis(1);
/// What one took that was not brief is forgotten by this part with each that is.
const FORGOTTEN: u64 = 8;

/// How long one participant's listeners take for what they are told.
#[derive(Debug)]
pub(super) struct Telling {
    usual_ns: AtomicU64,
}

impl Telling {
    /// Nothing is known: the first of all are told after the answer.
    pub(super) const fn new() -> Self {
        Self { usual_ns: AtomicU64::new(8 * BRIEF.0.unsigned_abs()) }
    }

    pub(super) fn is_brief(&self) -> bool {
        self.usual_ns.load(Ordering::Relaxed) <= BRIEF.0.unsigned_abs()
    }

    /// Telling of a long sample took so long. Two threads that do so at once may lose one of both: it is a guess.
    pub(super) fn took(&self, time: Duration) {
        let took = u64::try_from(time.0).unwrap_or(0);
        let usual = self.usual_ns.load(Ordering::Relaxed);
        self.usual_ns.store(took.max(usual - usual / FORGOTTEN), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(tellings: &[(usize, Duration)]) -> bool {
        let telling = Telling::new();
        for (times, duration) in tellings {
            (0..*times).for_each(|_| telling.took(*duration));
        }
        telling.is_brief()
    }

    #[test]
    fn who_was_brief_for_a_while_is_told_first() {
        let brief = Duration::from_micros(200);
        assert!(!after(&[]));
        assert!(!after(&[(4, brief)]), "not known yet");
        assert!(after(&[(20, brief)]));
    }

    #[test]
    fn one_that_takes_its_time_is_told_last_for_as_long_as_it_was_slow() {
        let (brief, slow) = (Duration::from_micros(200), Duration::from_millis(30));
        assert!(!after(&[(1_000, brief), (1, slow)]));
        assert!(!after(&[(1_000, brief), (1, slow), (10, brief)]));
        assert!(after(&[(1_000, brief), (1, slow), (40, brief)]));
        assert!(!after(&[(1_000, Duration::from_millis(2))]));
    }
}
