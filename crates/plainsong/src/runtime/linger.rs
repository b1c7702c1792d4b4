//! How long a thread that receives looks for the next datagram before it sleeps.
//!
//! Between two that answer each other, most of a round trip is the starting of cores that fell idle. So a thread that again and
//! again received something for a reader soon after this process had sent something looks for the next one without sleeping.
//! Looking takes a core as long as it lasts: it goes on only while waits are not much longer than what two wake-ups take, and each
//! attempt that did not pay needs twice as many such answers before the next. Acknowledgements are never looked for.
//!
//! In a flow whose datagrams find the thread just asleep, sleeping and waking cost either side more than the time between two of
//! them: what comes that soon on average is looked for, too, for about as long as that takes ([`Flow`]). What comes more rarely,
//! unasked, never is.
//!
//! Behind the first part of a sample comes the rest ([`Rest`]).

use plainsong_proto::estimate::SmoothedEstimate;
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
    average: SmoothedEstimate<AVERAGED>,
    flow: Flow,
    rest: Rest,
}

/// What was received at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) came: Instant,
    /// When all of it had been walked.
    pub(super) done: Instant,
    /// A number that was another one when it came than when the last came, where this process sent something in between.
    pub(super) sent: u32,
    /// No sample is whole with it.
    pub(super) is_part: bool,
    /// A datagram of it is longer than those of other hosts mostly are.
    pub(super) is_long: bool,
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
            average: SmoothedEstimate::new(0),
            flow: Flow::new(),
            rest: Rest::new(),
        }
    }

    /// Whether to look once more before sleeping.
    #[inline]
    pub(super) fn looks(&self, now: impl FnOnce() -> Instant) -> bool {
        match (self.found, self.rest.due) {
            (Some(_), _) => now().since(self.since) < LOOK,
            (None, Some(since)) => now().since(since) < REST_LOOK,
            (None, None) => self.flow.looks && now().since(self.flow.since) < FLOW_LOOK,
        }
    }

    /// A look found nothing.
    #[inline]
    pub(super) const fn looked_in_vain(&mut self) {
        self.flow.in_vain = true;
    }

    /// When the last datagram for a reader was done with.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    /// Samples came for a reader, or a part of one.
    #[inline]
    pub(super) fn note(&mut self, batch: Batch) {
        if !self.is_on {
            return;
        }
        self.flow.note(&batch);
        self.rest.note(&batch);
        if batch.is_part {
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
                    (self.found, self.average) = (Some(0), SmoothedEstimate::new(0));
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
        self.average.add(waited.0);
        if is_judged && self.average.get() > PAYS.0 {
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

/// A thread looks so long for the next of a flow: somewhat longer than sleeping and being woken take together.
const FLOW_LOOK: Duration = Duration::from_micros(40);
/// It begins where the next came as soon as that on average, mostly found it asleep, and goes on where it takes less to look for
/// what is not there already: no longer than a thread that sleeps needs to be woken on machines where that is slow.
const FLOW_BEGINS: Duration = Duration::from_micros(35);
const FLOW_PAYS: Duration = Duration::from_micros(25);
/// Waits are averaged over about so many; each counts as no longer than that, as when the writer waited for room.
const FLOW_AVERAGED: i64 = 32;
const FLOW_WAIT_MAX: Duration = Duration::from_micros(100);
/// So many pass before the first attempt, and after many that did not pay; one that lasts so long did.
const FLOW_REST: u32 = 256;
const FLOW_REST_MAX: u32 = 1 << 16;
const FLOW_PAID: u32 = 4_096;

/// How soon the next comes after the last, whoever asked for it.
#[derive(Debug)]
struct Flow {
    looks: bool,
    /// A look found nothing since the last came.
    in_vain: bool,
    /// When the last was done with.
    since: Instant,
    average: SmoothedEstimate<FLOW_AVERAGED>,
    /// What came since it ceased to look; what was looked for more than once since it began.
    count: u32,
    /// So many before it begins.
    rest: u32,
}

impl Flow {
    const fn new() -> Self {
        let (average, since) = (SmoothedEstimate::new(FLOW_WAIT_MAX.0), Instant(0));
        Self { looks: false, in_vain: false, since, average, count: 0, rest: FLOW_REST }
    }

    #[inline]
    fn note(&mut self, batch: &Batch) {
        let waited = batch.came.since(self.since).min(FLOW_WAIT_MAX);
        self.since = batch.done;
        // What was there says nothing of looking: there are times with more of it than anybody comes to receive.
        if self.looks && !std::mem::take(&mut self.in_vain) {
            return;
        }
        self.average.add(waited.0);
        self.count = self.count.saturating_add(1);
        if self.looks {
            if self.average.get() > FLOW_PAYS.0 {
                let rest = if self.count >= FLOW_PAID { FLOW_REST } else { 2 * self.rest };
                *self = Self { rest: rest.min(FLOW_REST_MAX), since: self.since, ..Self::new() };
            }
        } else if self.average.get() < FLOW_BEGINS.0 && self.count >= self.rest {
            (self.looks, self.count, self.average) = (true, 0, SmoothedEstimate::new(FLOW_PAYS.0 / 2));
        }
    }
}

/// The rest of a sample is looked for so long: its datagram is being copied when the one before it wakes the reader.
const REST_LOOK: Duration = Duration::from_micros(40);
/// After a look in vain so many parts are not looked behind at most, each time twice as many.
const REST_PAUSE_MAX: u32 = 1 << 12;

/// Where a part of a sample came without its end, it looks for more. Between the many short datagrams of one that comes from
/// another host it sleeps.
#[derive(Debug)]
struct Rest {
    /// Since when the next is looked for.
    due: Option<Instant>,
    /// The last had no end of a sample either.
    was_part: bool,
    /// Looks in vain since the last that paid, as a number of parts, and parts of the pause that are left.
    pause: u32,
    left: u32,
}

impl Rest {
    const fn new() -> Self {
        Self { due: None, was_part: false, pause: 0, left: 0 }
    }

    #[inline]
    fn note(&mut self, batch: &Batch) {
        if let Some(since) = self.due.take() {
            let is_soon = batch.came.since(since) < REST_LOOK;
            self.pause = if is_soon { 0 } else { (2 * self.pause + 1).min(REST_PAUSE_MAX) };
            self.left = self.pause;
        }
        let goes_on = std::mem::replace(&mut self.was_part, batch.is_part);
        if !batch.is_part || goes_on && !batch.is_long {
            return;
        }
        match self.left {
            0 => self.due = Some(batch.done),
            _ => self.left -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In virtual time: starting a core, and what a thread does with a datagram until it has answered.
    const WAKE: u64 = 60_000;
    const WORK: u64 = 4_000;

    fn batch(came: u64, sent: u32) -> Batch {
        Batch { came: Instant(came), done: Instant(came + WORK), sent, is_part: false, is_long: false }
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
            [("switched off", false, 1, 5_000), ("unasked", true, 0, 40_000), ("late", true, 1, 150_000)];
        for (case, is_on, sends, gap) in cases {
            let mut side = Linger::new(is_on);
            for step in 1..10_000_u32 {
                let now = Instant(u64::from(step) * gap);
                assert!(!side.looks(|| now), "{case}");
                side.note(Batch { came: now, done: now, sent: step * sends, is_part: false, is_long: false });
            }
        }
    }

    /// Datagrams that arrive so far apart, of which this part waits for so much longer: how many found the thread looking, and
    /// how long that looked altogether, of the second half of so many.
    fn flow(apart: u64, pause_each: u64, pause: u64, is_part: bool) -> (u64, u64) {
        const COUNT: u64 = 40_000;
        let mut side = Linger::new(true);
        let (mut at, mut found, mut looked) = (0, 0_u64, 0);
        for number in 0..COUNT {
            at += apart + if number % pause_each == 0 { pause } else { 0 };
            let since = side.flow.since.0;
            let looks = side.looks(|| Instant(at));
            if number > COUNT / 2 {
                found += u64::from(looks);
                let until = if side.flow.looks { since + FLOW_LOOK.0.unsigned_abs() } else { since };
                looked += at.min(until).saturating_sub(since);
            }
            // Who sleeps is woken some microseconds later.
            let came = if looks || at <= since { at.max(since) } else { at + 5_000 };
            if looks && at > since {
                side.looked_in_vain();
            }
            side.note(Batch { is_part, ..batch(came, 0) });
        }
        (found, looked)
    }

    #[test]
    fn the_next_of_a_fast_flow_is_looked_for_parts_of_samples_too() {
        for (apart, is_part) in [(8_000, false), (8_000, true), (25_000, false)] {
            // One in a hundred waits for room in the writer, or for its core.
            let (found, _) = flow(apart, 100, 200_000, is_part);
            assert!(found > 19_000, "{apart} ns apart: {found} of 20,000");
        }
    }

    #[test]
    fn a_slower_flow_is_looked_for_rarely() {
        for apart in [40_000, 60_000, 1_000_000] {
            let (found, looked) = flow(apart, u64::MAX, 0, false);
            assert!(found < 200 && looked < 20_000 * apart / 100, "{apart} ns apart: {found}, {looked} ns");
        }
    }

    /// How often the rest of a sample that comes so long after the first part is looked for, of so many.
    fn looked_for_rest(count: u64, after: u64) -> u64 {
        let (mut side, mut looked) = (Linger::new(true), 0);
        for number in 1..=count {
            let at = number * 10_000_000;
            side.note(Batch { is_part: true, ..batch(at, 0) });
            looked += u64::from(side.looks(|| Instant(at + WORK + 1)));
            side.note(batch(at + WORK + after, 0));
            assert!(!side.looks(|| Instant(at + 2 * WORK + after + 1)), "nothing is missing");
        }
        looked
    }

    #[test]
    fn the_rest_of_a_sample_is_looked_for_where_it_comes_soon() {
        assert_eq!(looked_for_rest(1_000, 15_000), 1_000);
        let in_vain = looked_for_rest(10_000, 60_000);
        assert!((2..20).contains(&in_vain), "{in_vain}");
        for (is_long, expected) in [(false, 10), (true, 990)] {
            let (mut side, mut looked) = (Linger::new(true), 0);
            for number in 1..=1_000 {
                let at = number * 40_000;
                side.note(Batch { is_part: number % 100 > 0, is_long, ..batch(at, 0) });
                looked += u64::from(side.looks(|| Instant(at + WORK + 1)));
            }
            assert_eq!(looked, expected, "ten samples of a hundred parts, {is_long}");
        }
    }

    #[test]
    fn where_others_need_the_core_looking_ceases_though_much_is_there_at_once() {
        let mut side = Linger::new(true);
        let (mut now, mut in_vain) = (0, 0);
        for number in 0..200_000 {
            // Twenty came while this thread did not run.
            if number % 20 == 0 {
                now += 3_000_000;
                if side.flow.looks {
                    side.looked_in_vain();
                    in_vain += 1;
                }
            }
            side.note(batch(now, 0));
            now += WORK;
        }
        assert!(in_vain < 100, "{in_vain} of 10,000 looks in vain");
    }
}
