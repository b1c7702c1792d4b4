//! When samples are due.

use crate::spec::Pacing;

/// The due times of a writer, fixed before it begins: nothing that happens moves them.
#[derive(Clone, Debug)]
pub struct Schedule {
    pacing: Pacing,
    start_ns: u64,
    /// The next sample of this step.
    next: u64,
    /// When the step began, its rate and number.
    step_start_ns: u64,
    rate: u64,
    phase: u16,
    misses: u32,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Write at once.
    Now,
    /// Write when this time comes, or at once if it has passed.
    At {
        /// When.
        due_ns: u64,
        /// A write that begins later than this has missed its slot.
        late_ns: u64,
    },
}

impl Schedule {
    /// From that time on.
    #[must_use]
    pub fn new(pacing: Pacing, start_ns: u64) -> Self {
        let rate = match pacing {
            Pacing::Max | Pacing::Burst { .. } => 0,
            Pacing::Rate { rate } => rate.max(1),
            Pacing::Ramp { start, .. } => start.max(1),
        };
        Self { pacing, start_ns, next: 0, step_start_ns: start_ns, rate, phase: 0, misses: 0 }
    }

    /// The slot of the next sample.
    pub fn next_slot(&mut self) -> Slot {
        let number = self.next;
        self.next += 1;
        let period_ns;
        let due_ns = match self.pacing {
            Pacing::Max => return Slot::Now,
            Pacing::Burst { count, period_us } => {
                period_ns = period_us.saturating_mul(1000);
                self.start_ns.saturating_add((number / count.max(1)).saturating_mul(period_ns))
            }
            Pacing::Rate { .. } | Pacing::Ramp { .. } => {
                period_ns = 1_000_000_000 / self.rate;
                let since = u128::from(number) * 1_000_000_000 / u128::from(self.rate);
                self.step_start_ns.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
            }
        };
        Slot::At { due_ns, late_ns: due_ns.saturating_add(period_ns / 10) }
    }

    /// When this step of a ramp ends; `None` for other pacings.
    #[must_use]
    pub fn step_end_ns(&self) -> Option<u64> {
        let Pacing::Ramp { hold_ms, .. } = self.pacing else { return None };
        Some(self.step_start_ns.saturating_add(hold_ms.max(1).saturating_mul(1_000_000)))
    }

    /// Ends a step of a ramp in which so many samples were written; false if the ramp is over.
    pub fn end_step(&mut self, written: u64, now_ns: u64) -> bool {
        let Pacing::Ramp { step, misses, .. } = self.pacing else { return true };
        let length_ns = now_ns.saturating_sub(self.step_start_ns);
        let wanted = u128::from(self.rate) * u128::from(length_ns) / 1_000_000_000;
        self.misses = if u128::from(written) * 100 < wanted * 99 { self.misses + 1 } else { 0 };
        if self.misses >= misses.max(1) {
            return false;
        }
        self.phase = self.phase.saturating_add(1);
        self.rate = self.rate.saturating_add(step);
        self.step_start_ns = now_ns;
        self.next = 0;
        true
    }

    /// The number of the step, from 0.
    #[must_use]
    pub fn phase(&self) -> u16 {
        self.phase
    }

    /// Samples a second of the step, 0 if there is no rate.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(schedule: &mut Schedule) -> u64 {
        match schedule.next_slot() {
            Slot::At { due_ns, .. } => due_ns,
            Slot::Now => panic!("there are times"),
        }
    }

    #[test]
    fn a_rate_does_not_drift() {
        let mut schedule = Schedule::new(Pacing::Rate { rate: 3 }, 1000);
        let times: Vec<u64> = (0..4).map(|_| due(&mut schedule)).collect();
        assert_eq!(times, [1000, 333_334_333, 666_667_666, 1_000_001_000]);
    }

    #[test]
    fn a_burst_is_due_at_once() {
        let mut schedule = Schedule::new(Pacing::Burst { count: 2, period_us: 10 }, 0);
        let times: Vec<u64> = (0..5).map(|_| due(&mut schedule)).collect();
        assert_eq!(times, [0, 0, 10_000, 10_000, 20_000]);
        assert_eq!(schedule.next_slot(), Slot::At { due_ns: 20_000, late_ns: 21_000 });
    }

    #[test]
    fn a_ramp_ends_when_its_rate_was_missed_so_often_in_a_row() {
        let mut schedule =
            Schedule::new(Pacing::Ramp { start: 1000, step: 500, hold_ms: 1000, misses: 2 }, 0);
        let second = 1_000_000_000;
        assert_eq!(schedule.step_end_ns(), Some(second));
        assert!(schedule.end_step(1000, second));
        assert_eq!((schedule.rate(), schedule.phase(), due(&mut schedule)), (1500, 1, second));
        assert!(schedule.end_step(1000, 2 * second), "missed once");
        assert!(schedule.end_step(1985, 3 * second), "99.25 % is near enough");
        assert!(schedule.end_step(1000, 4 * second), "the first in a row again");
        assert!(!schedule.end_step(1000, 5 * second), "the second in a row");
    }
}
