//! How much a reader may have repeated to it. What a reader acknowledges anew, it may ask for once more: who loses samples, and gets them in
//! the end, never comes to the limit. Asking again earns nothing, whoever asks in its name.

use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};

/// What may be repeated without any progress of the reader, in a second.
const BYTES_PER_SECOND: i64 = 64 << 10;
/// So much of that is saved up, and of what was earned otherwise. A long sample earns more.
const IDLE_BYTES_MAX: i64 = 256 << 10;
const EARNED_BYTES_MAX: i64 = 8 << 20;
/// What is asked for first is repeated this many times in a row.
const FIRST_TIMES: i64 = 2;
/// A reader that began anew has no more than it says; it does not begin more often.
const BEGINS_EACH: Duration = Duration::from_secs(10);

/// What may be repeated to one reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    /// Octets. Below 0: the last was more than there was left.
    left: i64,
    counted: Instant,
    /// No change above this one was asked for.
    asked: SequenceNumber,
    /// It has acknowledged no more than this.
    acknowledged: SequenceNumber,
    began: Instant,
}

impl Repair {
    pub(super) const fn new(now: Instant) -> Self {
        let first = SequenceNumber(0);
        Self { left: IDLE_BYTES_MAX, counted: now, asked: first, acknowledged: first, began: now }
    }

    /// It acknowledges everything up to a change; usual ones count for so much.
    pub(super) fn acknowledged(&mut self, number: SequenceNumber, usual_bytes: usize) {
        if number > self.acknowledged {
            let changes = number.0.saturating_sub(self.acknowledged.0);
            self.acknowledged = number;
            self.earn(changes.saturating_mul(length(usual_bytes)), EARNED_BYTES_MAX);
        }
    }

    /// It lacks what it had: it lost its writer and found it again.
    pub(super) fn begins_anew(&mut self, now: Instant, has: SequenceNumber) {
        if now.since(self.began) >= BEGINS_EACH {
            self.began = now;
            (self.asked, self.acknowledged) = (has, has);
        }
    }

    /// Whether so many octets of a change may be repeated now, which has so many; if so, they count.
    pub(super) fn allows(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        change_bytes: usize,
        bytes: usize,
    ) -> bool {
        let passed = now.since(self.counted);
        let rest = BYTES_PER_SECOND.saturating_mul(passed.0) / 1_000_000_000;
        if rest > 0 {
            self.counted = now;
            self.earn(rest, IDLE_BYTES_MAX);
        }
        if number > self.asked {
            self.asked = number;
            let first = FIRST_TIMES * length(change_bytes);
            self.earn(first, EARNED_BYTES_MAX.max(first));
        }
        let is_allowed = self.left > 0;
        if is_allowed {
            self.left -= length(bytes);
        }
        is_allowed
    }

    fn earn(&mut self, bytes: i64, most: i64) {
        self.left = self.left.saturating_add(bytes).min(most.max(self.left));
    }
}

/// What a repetition of so many octets counts for: with about what surrounds it.
fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX >> 8).saturating_add(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Octets repeated when changes from 1 to `changes`, of `bytes` each, are asked for again and again for so many seconds.
    fn drawn(repair: &mut Repair, (from, seconds): (u64, u64), changes: i64, bytes: usize) -> usize {
        let mut drawn = 0;
        for millisecond in 0..seconds * 1_000 {
            let now = Instant(from * SECOND + millisecond * 1_000_000);
            for number in 1..=changes {
                if repair.allows(now, SequenceNumber(number), bytes, bytes) {
                    drawn += bytes;
                }
            }
        }
        drawn
    }

    #[test]
    fn asking_again_earns_nothing() {
        let mut repair = Repair::new(Instant(0));
        let held = 256 * 1_000;
        let first = drawn(&mut repair, (0, 1), 256, 1_000);
        assert!((2 * held..3 * held + (256 << 10)).contains(&first), "{first}");
        let then = drawn(&mut repair, (1, 60), 256, 1_000);
        assert!(then <= 61 * (64 << 10), "{then}");
    }

    #[test]
    fn half_of_everything_may_be_lost_for_ever() {
        let mut repair = Repair::new(Instant(0));
        for number in 1..100_000 {
            // A quarter is lost twice, an eighth three times.
            let times = u64::trailing_zeros(number);
            for _ in 0..times {
                assert!(repair.allows(Instant(0), SequenceNumber(number as i64), 1_000, 1_000), "{number}");
            }
            repair.acknowledged(SequenceNumber(number as i64), 1_000);
        }
    }

    #[test]
    fn a_sample_longer_than_everything_saved_is_repeated_and_again() {
        let mut repair = Repair::new(Instant(0));
        let bytes = 100 << 20;
        assert!(repair.allows(Instant(0), SequenceNumber(1), bytes, bytes));
        assert!(repair.allows(Instant(0), SequenceNumber(1), bytes, bytes));
    }

    #[test]
    fn who_begins_anew_gets_the_history_again_but_not_all_the_time() {
        let mut repair = Repair::new(Instant(0));
        assert!(drawn(&mut repair, (0, 1), 1_000, 10_000) > 10_000_000);
        repair.begins_anew(Instant(11 * SECOND), SequenceNumber(0));
        assert!(drawn(&mut repair, (11, 1), 1_000, 10_000) > 10_000_000);
        for second in 12..20 {
            repair.begins_anew(Instant(second * SECOND), SequenceNumber(0));
            assert!(drawn(&mut repair, (second, 1), 1_000, 10_000) < 200_000);
        }
    }
}
