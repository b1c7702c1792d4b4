//! How much a reader may have repeated to it. What a reader acknowledges anew, and what it asks for first,
//! earns as much again: who loses samples, and gets them in the end, never comes to the limit. Asking again
//! earns nothing, whoever asks in its name. Nothing is refused for good: who still lacks something asks for
//! it when it hears the next heartbeat, and gets it as time allows.
//!
//! Part of it is for the lowest change that the reader lacks. It gets on with that one, while those behind it
//! may be more than it has room for: a reader that asks for all of them each time would otherwise use up what
//! the lowest needs.

use crate::seq::{FragmentNumber, SequenceNumber};
use crate::time::Instant;
use crate::tuning::writer::{
    READER_RESTART_PERIOD, REPAIR_BYTES_PER_SECOND, REPAIR_LOWEST_BYTES_MAX, REPAIR_OTHERS_BYTES_MAX,
    REPAIR_OVERHEAD_BYTES, REPAIR_TIMES_OF_LONG, REPAIR_TIMES_OF_LOWEST,
};

/// What may be repeated to one reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repair {
    /// Octets of any change. Below 0: the last was more than there was left.
    left: i64,
    /// Those of the lowest change that it lacks, and how many there may be.
    left_of_lowest: i64,
    lowest_max: i64,
    counted: Instant,
    /// No change above this one was asked for.
    asked: SequenceNumber,
    /// The lowest change that it may lack.
    lowest: SequenceNumber,
    /// It has acknowledged no more than this.
    acknowledged: SequenceNumber,
    /// Nor more than the fragments before this one, of a change in which it lacked some.
    fragments: (SequenceNumber, FragmentNumber),
    began: Instant,
    /// It has begun anew since, with no more than this, and must wait until that is taken into account.
    begins: Option<SequenceNumber>,
}

impl Repair {
    pub(crate) const fn new(now: Instant) -> Self {
        let first = SequenceNumber(0);
        Self {
            left: 0,
            left_of_lowest: REPAIR_LOWEST_BYTES_MAX,
            lowest_max: REPAIR_LOWEST_BYTES_MAX,
            counted: now,
            asked: first,
            lowest: first,
            acknowledged: first,
            fragments: (first, 1),
            began: now,
            begins: None,
        }
    }

    /// It acknowledges everything up to a change; usual ones count for so much.
    pub(crate) fn acknowledged(&mut self, number: SequenceNumber, usual_bytes: usize) {
        self.lowest = number.next();
        if number > self.acknowledged {
            let changes = number.0.saturating_sub(self.acknowledged.0);
            self.acknowledged = number;
            self.progressed(changes.saturating_mul(length(usual_bytes)));
        }
    }

    /// It has all fragments of a change before one; they have so many octets.
    pub(crate) fn has_fragments(&mut self, number: SequenceNumber, before: FragmentNumber, bytes: usize) {
        let (last, known) = self.fragments;
        if (number, before) > self.fragments {
            let known = if number == last { known } else { 1 };
            self.fragments = (number, before);
            self.progressed(i64::from(before.saturating_sub(known)).saturating_mul(length(bytes)));
        }
    }

    /// It lacks what it had: it lost its writer and found it again.
    pub(crate) fn begins_anew(&mut self, now: Instant, has: SequenceNumber) {
        self.begins = Some(self.begins.map_or(has, |before| before.min(has)));
        self.begin(now);
    }

    /// It is reached by another route: what was repeated by the one before may never have left.
    pub(crate) const fn moved(&mut self) {
        (self.asked, self.left_of_lowest) = (self.acknowledged, self.lowest_max);
    }

    fn begin(&mut self, now: Instant) {
        if now.since(self.began) >= READER_RESTART_PERIOD
            && let Some(has) = self.begins.take()
        {
            self.began = now;
            (self.asked, self.acknowledged, self.fragments) = (has, has, (has, 1));
        }
    }

    /// Whether so many octets of a change may be repeated now, which has so many; if so, they count.
    pub(crate) fn allows(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        change_bytes: usize,
        bytes: usize,
    ) -> bool {
        self.begin(now);
        let passed = now.since(self.counted);
        let rest = REPAIR_BYTES_PER_SECOND.saturating_mul(passed.0) / 1_000_000_000;
        if rest > 0 {
            self.counted = now;
            self.left_of_lowest = self.left_of_lowest.saturating_add(rest).min(self.lowest_max);
        }
        if number <= self.lowest {
            self.lowest_max = REPAIR_LOWEST_BYTES_MAX.max(REPAIR_TIMES_OF_LOWEST * length(change_bytes));
        }
        if number > self.asked {
            self.asked = number;
            let length = length(change_bytes);
            self.earn(if length > REPAIR_LOWEST_BYTES_MAX { REPAIR_TIMES_OF_LONG * length } else { length });
        }
        let left =
            if self.left > 0 || number > self.lowest { &mut self.left } else { &mut self.left_of_lowest };
        let is_allowed = *left > 0;
        if is_allowed {
            *left -= length(bytes);
        }
        is_allowed
    }

    /// It has so many octets more.
    fn progressed(&mut self, bytes: i64) {
        let of_lowest = self.keep(bytes.saturating_mul(REPAIR_TIMES_OF_LOWEST));
        self.earn((bytes - of_lowest).max(0));
    }

    /// As many of these octets as there is use for are kept for the lowest change; how many.
    fn keep(&mut self, bytes: i64) -> i64 {
        let kept = bytes.min(self.lowest_max.saturating_sub(self.left_of_lowest).max(0));
        self.left_of_lowest += kept;
        kept
    }

    /// What the lowest change has no use for is for all.
    fn earn(&mut self, bytes: i64) {
        let rest = bytes - self.keep(bytes);
        self.left = self.left.saturating_add(rest).min(REPAIR_OTHERS_BYTES_MAX.max(rest).max(self.left));
    }
}

/// What a repetition of so many octets counts for: with about what surrounds it.
fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX >> 8).saturating_add(REPAIR_OVERHEAD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Octets repeated when changes from 1 to `changes`, of `bytes` each, are asked for again and again for
    /// so many seconds.
    fn drawn(repair: &mut Repair, (from, seconds): (u64, u64), changes: i64, bytes: usize) -> usize {
        let mut drawn = 0;
        repair.acknowledged(SequenceNumber(0), bytes);
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
        assert!((held..3 * held).contains(&first), "{first}");
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
        assert!(drawn(&mut repair, (0, 1), 1_000, 10_000) >= 10_000_000);
        repair.begins_anew(Instant(11 * SECOND), SequenceNumber(0));
        assert!(drawn(&mut repair, (11, 1), 1_000, 10_000) >= 10_000_000);
        for second in 12..20 {
            repair.begins_anew(Instant(second * SECOND), SequenceNumber(0));
            assert!(drawn(&mut repair, (second, 1), 1_000, 10_000) < 200_000);
        }
        // A reader that flaps is not refused for good.
        assert!(drawn(&mut repair, (21, 1), 1_000, 10_000) >= 10_000_000);
    }

    #[test]
    fn a_long_sample_of_which_two_thirds_are_lost_each_time_is_never_refused() {
        let (fragments, bytes) = (10_000, 1_400);
        let mut repair = Repair::new(Instant(0));
        let mut missing: Vec<u32> = (fragments / 3..=fragments).collect();
        let mut round = 0;
        while let Some(first) = missing.first() {
            repair.has_fragments(SequenceNumber(7), *first, bytes);
            let change_bytes = fragments as usize * bytes;
            for _ in &missing {
                assert!(repair.allows(Instant(0), SequenceNumber(7), change_bytes, bytes), "{round}");
            }
            round += 1;
            // The road lets the first of each burst pass.
            let arrive = missing.len().div_ceil(3);
            missing.drain(..arrive);
        }
    }

    #[test]
    fn fragments_that_are_said_to_be_there_again_and_again_earn_nothing() {
        let mut repair = Repair::new(Instant(0));
        let mut drawn = 0;
        for round in 0..1_000 {
            for number in 1..=2 {
                repair.has_fragments(SequenceNumber(number), 1, 1_000);
                repair.has_fragments(SequenceNumber(number), 100, 1_000);
                for _ in 0..256 {
                    if repair.allows(Instant(round), SequenceNumber(number), 100_000, 1_000) {
                        drawn += 1_000;
                    }
                }
            }
        }
        assert!(drawn < 2 * 4 * 110_000 + (256 << 10), "{drawn}");
    }

    #[test]
    fn a_reader_with_little_room_that_asks_for_everything_each_time_gets_on() {
        // It lacks forty samples, has room for one, and asks for each time for all: first for those behind
        // the lowest.
        let bytes = 28_000;
        let mut repair = Repair::new(Instant(0));
        repair.acknowledged(SequenceNumber(0), bytes);
        for lowest in 1..=40 {
            for behind in lowest + 1..=40 {
                repair.allows(Instant(0), SequenceNumber(behind), bytes, bytes);
            }
            assert!(repair.allows(Instant(0), SequenceNumber(lowest), bytes, bytes), "{lowest}");
            // The lowest is lost once.
            assert!(repair.allows(Instant(0), SequenceNumber(lowest), bytes, bytes), "{lowest} again");
            repair.acknowledged(SequenceNumber(lowest), bytes);
        }
    }
}
