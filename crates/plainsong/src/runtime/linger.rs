//! How long a thread that receives looks for the next datagram before it sleeps.
//!
//! Between two that answer each other, most of a round trip is the starting of cores that fell idle. So a thread that again and
//! again received something for a reader soon after this process had sent something looks for the next one without sleeping.
//! Looking takes a core as long as it lasts: it goes on only while waits are not much longer than what two wake-ups take, and each
//! attempt that did not pay needs twice as many such answers before the next. What comes unasked, as in a flow, is never looked
//! for, nor are acknowledgements.

use plainsong_proto::time::{Duration, Instant};

/// The next came soon, also for who slept until then: a wake-up on either side, and what the other does.
const SOON: Duration = Duration::from_micros(150);
/// So long a thread looks: one of two has to begin, while the other still sleeps.
const LOOK: Duration = SOON;
/// Looking pays where it takes less than this on average.
const PAYS: Duration = Duration::from_micros(50);
/// Answers in a row that came soon before the first attempt, and after many in vain.
const ENOUGH: u32 = 16;
const ENOUGH_MAX: u32 = 1 << 16;
/// An attempt is judged after so many answers, or this part of those that it took to begin: the other side has to begin, too.
/// One look in vain after as many is no reason to stop.
const ATTEMPT: u32 = 32;
const ATTEMPT_PART: u32 = 8;
/// Waits are averaged over about so many.
const AVERAGED: i64 = 8;

/// What was found of late on one socket.
#[derive(Debug)]
pub(super) struct Linger {
    is_on: bool,
    /// When the last datagrams for a reader were done with, and what had been sent when they came.
    since: Instant,
    sent: u32,
    /// Answers in a row that came soon after something was sent, and how many are enough to look for the next.
    soon: u32,
    enough: u32,
    /// Answers of this attempt since the last look in vain; `None`: the thread sleeps at once.
    found: Option<u32>,
    /// How long it looked for each.
    average: Duration,
}

/// What was received at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) came: Instant,
    /// When all of it had been walked.
    pub(super) done: Instant,
    /// A number that was another one when it came than when the last came, where this process sent something in between.
    pub(super) sent: u32,
}

impl Linger {
    pub(super) const fn new(is_on: bool) -> Self {
        Self {
            is_on,
            since: Instant(0),
            sent: 0,
            soon: 0,
            enough: ENOUGH,
            found: None,
            average: Duration::ZERO,
        }
    }

    /// Whether to look once more before sleeping.
    #[inline]
    pub(super) fn looks(&self, now: impl FnOnce() -> Instant) -> bool {
        self.found.is_some() && now().since(self.since) < LOOK
    }

    /// When the last datagram for a reader was done with.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    /// Something came for a reader.
    #[inline]
    pub(super) fn note(&mut self, batch: Batch) {
        if !self.is_on {
            return;
        }
        let waited = batch.came.since(self.since);
        let is_soon = self.sent != batch.sent && waited < SOON;
        (self.since, self.sent) = (batch.done, batch.sent);
        match self.found {
            None if !is_soon => self.soon = 0,
            None => {
                self.soon += 1;
                if self.soon >= self.enough {
                    (self.found, self.average) = (Some(0), Duration::ZERO);
                }
            }
            Some(found) => self.judge(found, waited, is_soon),
        }
    }

    fn judge(&mut self, found: u32, waited: Duration, is_soon: bool) {
        let is_judged = found >= ATTEMPT.max(self.enough / ATTEMPT_PART);
        if !is_soon {
            if is_judged {
                (self.found, self.enough) = (Some(0), ENOUGH);
            } else {
                self.stop();
            }
            return;
        }
        self.average.0 += (waited.0 - self.average.0) / AVERAGED;
        if is_judged && self.average > PAYS {
            self.stop();
        } else {
            self.found = Some(found.saturating_add(1));
        }
    }

    fn stop(&mut self) {
        self.enough = (2 * self.enough).min(ENOUGH_MAX);
        (self.found, self.soon) = (None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In virtual time: starting a core, and what a thread does with a datagram until it has answered.
    const WAKE: u64 = 60_000;
    const WORK: u64 = 4_000;

    fn batch(came: u64, sent: u32) -> Batch {
        Batch { came: Instant(came), done: Instant(came + WORK), sent }
    }

    /// When a datagram that arrives at `at` is answered; what of the time before was spent looking is added to `looked`.
    fn answer(side: &mut Linger, at: u64, looked: &mut u64) -> u64 {
        let sleeps_at =
            if side.found.is_some() { side.since.0 + LOOK.0.unsigned_abs() } else { side.since.0 };
        *looked += at.min(sleeps_at).saturating_sub(side.since.0);
        let came = if side.looks(|| Instant(at)) { at } else { at + WAKE };
        side.note(batch(came, side.sent.wrapping_add(1)));
        came + WORK
    }

    #[test]
    fn two_that_answer_each_other_stop_sleeping_and_begin_again_soon_after_a_pause() {
        let (mut one, mut other) = (Linger::new(true), Linger::new(true));
        // They did not begin together.
        other.enough = 64;
        let (mut now, mut looked) = (0, 0);
        for pause in [0, 400_000, 1_000_000_000] {
            now += pause;
            let mut trips = 0;
            loop {
                let began = now;
                now = answer(&mut one, now, &mut looked);
                now = answer(&mut other, now, &mut looked);
                trips += 1;
                if now - began <= 2 * WORK {
                    break;
                }
                assert!(trips < 500, "{one:?} {other:?}");
            }
            for _ in 0..1_000 {
                let began = now;
                now = answer(&mut one, now, &mut looked);
                now = answer(&mut other, now, &mut looked);
                assert_eq!(now - began, 2 * WORK, "after {trips} round trips they stay");
            }
        }
    }

    #[test]
    fn whose_partner_always_sleeps_soon_looks_rarely() {
        let (mut now, mut looked) = (0, 0);
        let mut side = Linger::new(true);
        for round in 0..200_000 {
            now = answer(&mut side, now, &mut looked) + WAKE + WORK;
            assert!(round < 10_000 || looked < now / 5, "{looked} of {now} ns");
        }
        assert!(looked > 0, "it tries now and then");
    }

    #[test]
    fn one_look_in_vain_among_many_does_not_end_it_two_do() {
        let (mut now, mut looked) = (0, 0);
        let mut side = Linger::new(true);
        for _ in 0..100 {
            now = answer(&mut side, now, &mut looked) + WORK;
        }
        now = answer(&mut side, now + 1_000_000, &mut looked);
        assert!(side.looks(|| Instant(now)), "after one pause: {side:?}");
        now = answer(&mut side, now + 1_000_000, &mut looked);
        assert!(!side.looks(|| Instant(now)), "after two: {side:?}");
    }

    #[test]
    fn what_comes_unasked_or_late_is_never_looked_for() {
        let cases =
            [("switched off", false, 1, 5_000), ("unasked", true, 0, 5_000), ("late", true, 1, 150_000)];
        for (case, is_on, sends, gap) in cases {
            let mut side = Linger::new(is_on);
            for step in 1..10_000_u32 {
                let now = Instant(u64::from(step) * gap);
                assert!(!side.looks(|| now), "{case}");
                side.note(Batch { came: now, done: now, sent: step * sends });
            }
        }
    }
}
