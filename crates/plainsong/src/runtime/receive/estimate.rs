//! What is found of the datagrams of one input: how soon the next comes after the last, and who is woken for
//! it.
//!
//! Three patterns let the next be expected soon: answers to what this process sent, a fast stream, and the
//! rest of a sample. A fourth lets the input be handed over: one thread, always the same, is woken for each
//! datagram. Each is a [`Trial`]: it takes effect after so many signs, is given up when it does not pay, and
//! then takes twice as many. What follows from all that, the [policy](super::policy) says.

use plainsong_proto::estimate::SmoothedEstimate;
use plainsong_proto::time::{Duration, Instant};

use super::acks::AckSources;
use super::policy::{self, Estimate, REPLY_SOON, REST_POLL};

/// What was received at once.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) struct Arrival {
    pub(in crate::runtime) came: Instant,
    /// When all of it had been delivered.
    pub(in crate::runtime) done: Instant,
    /// A number that was another one when it came than when the last came, where this process sent something
    /// in between.
    pub(in crate::runtime) sent: u32,
    /// No sample is whole with it.
    pub(in crate::runtime) is_part: bool,
    /// A datagram of it is longer than those of other hosts mostly are.
    pub(in crate::runtime) is_long: bool,
}

/// How many signs it takes to try something again: twice as many after each attempt that did not pay.
#[derive(Clone, Copy, Debug)]
struct Trial<const FIRST: u32, const MOST: u32> {
    signs: u32,
    needed: u32,
}

impl<const FIRST: u32, const MOST: u32> Trial<FIRST, MOST> {
    const fn new() -> Self {
        Self { signs: 0, needed: FIRST }
    }

    /// One more sign: whether there are enough.
    const fn sign(&mut self) -> bool {
        self.signs = self.signs.saturating_add(1);
        self.signs >= self.needed
    }

    const fn no_sign(&mut self) {
        self.signs = 0;
    }

    const fn paid(&mut self) {
        (self.signs, self.needed) = (0, FIRST);
    }

    fn failed(&mut self) {
        (self.signs, self.needed) = (0, (2 * self.needed).min(MOST));
    }
}

/// The estimator of one input.
#[derive(Debug)]
pub(in crate::runtime) struct Estimator {
    may_poll: bool,
    replies: Replies,
    stream: Stream,
    rest: Rest,
    waiter: Waiter,
}

impl Estimator {
    pub(super) const fn new(may_poll: bool) -> Self {
        let (replies, stream, rest, waiter) = (Replies::new(), Stream::new(), Rest::new(), Waiter::new());
        Self { may_poll, replies, stream, rest, waiter }
    }

    #[inline]
    pub(super) fn estimate(&self) -> Estimate {
        Estimate {
            reply_since: self.replies.polled.map(|_| self.replies.since),
            part_since: self.rest.due,
            stream_since: self.stream.is_polled.then_some(self.stream.since),
            is_for_one: self.waiter.is_for_one,
            prompt: self.waiter.prompt,
        }
    }

    /// Polling found nothing.
    #[inline]
    pub(super) const fn polled_in_vain(&mut self) {
        self.stream.in_vain = true;
    }

    /// When the last whole sample was done with.
    pub(super) const fn since(&self) -> Instant {
        self.replies.since
    }

    /// Samples came for a reader, or a part of one.
    #[inline]
    pub(in crate::runtime) fn note(&mut self, arrival: Arrival) {
        if !self.may_poll {
            return;
        }
        self.stream.note(&arrival);
        self.rest.note(&arrival);
        if !arrival.is_part {
            self.replies.note(&arrival);
        }
    }

    /// Whether what the receive thread received was for one waiting thread alone. `acks`: who acknowledged,
    /// if that was awaited.
    pub(super) fn note_waiter(&mut self, is_for_one: bool, acks: AckSources) {
        let waiter = &mut self.waiter;
        waiter.acks = waiter.acks.with(acks);
        if is_for_one && waiter.acks.is_of_one() {
            waiter.is_for_one = waiter.trial.sign();
        } else {
            waiter.trial.no_sign();
        }
        if waiter.trial.signs == 0 || waiter.is_for_one {
            (waiter.acks, waiter.trial.signs) = (AckSources::None, 0);
        }
    }

    /// A waiting thread had to wait for a datagram, or not.
    pub(super) const fn note_prompt(&mut self, is_prompt: bool) {
        self.waiter.prompt = if is_prompt { self.waiter.prompt.saturating_add(1) } else { 0 };
    }

    /// The input is about to be handed over, or nobody was there to take it.
    pub(super) const fn hand_over(&mut self) {
        (self.waiter.prompt, self.waiter.is_for_one) = (0, false);
    }

    /// The input is the receive thread's again.
    pub(super) fn handed_back(&mut self, was_useful: bool) {
        if was_useful { self.waiter.trial.paid() } else { self.waiter.trial.failed() }
    }
}

/// An attempt to poll for replies is evaluated after so many, or this part of those that it took to begin:
/// the other side has to begin, too. One poll in vain after as many is no reason to stop.
const ATTEMPT: u32 = 32;
const ATTEMPT_PART: u32 = 8;
/// Waits are averaged over about so many.
const REPLIES_AVERAGED: i64 = 8;

/// How soon an answer comes after something was sent. Acknowledgements are none.
#[derive(Debug)]
struct Replies {
    /// When the last datagrams for a reader were done with, and what had been sent when they came.
    since: Instant,
    sent: u32,
    /// Its signs: answers in a row that came soon after something was sent.
    trial: Trial<16, { 1 << 16 }>,
    /// Answers of this attempt since the last poll in vain; `None`: the thread sleeps at once.
    polled: Option<u32>,
    average: SmoothedEstimate<REPLIES_AVERAGED>,
}

impl Replies {
    const fn new() -> Self {
        let (trial, average) = (Trial::new(), SmoothedEstimate::new(0));
        Self { since: Instant(0), sent: 0, trial, polled: None, average }
    }

    #[inline]
    fn note(&mut self, arrival: &Arrival) {
        let waited = arrival.came.since(self.since);
        let is_soon = self.sent != arrival.sent && waited < REPLY_SOON;
        (self.since, self.sent) = (arrival.done, arrival.sent);
        match self.polled {
            None if !is_soon => self.trial.no_sign(),
            None => {
                if self.trial.sign() {
                    (self.polled, self.average) = (Some(0), SmoothedEstimate::new(0));
                }
            }
            Some(polled) => self.evaluate(polled, waited, is_soon),
        }
    }

    fn evaluate(&mut self, polled: u32, waited: Duration, is_soon: bool) {
        let is_complete = polled >= ATTEMPT.max(self.trial.needed / ATTEMPT_PART);
        if !is_soon {
            if is_complete {
                self.polled = Some(0);
                self.trial.paid();
            } else {
                self.stop();
            }
            return;
        }
        self.average.add(waited.0);
        if is_complete && !policy::reply_pays(Duration(self.average.get())) {
            self.stop();
        } else {
            self.polled = Some(polled.saturating_add(1));
        }
    }

    fn stop(&mut self) {
        self.trial.failed();
        self.polled = None;
    }
}

/// Intervals are averaged over about so many; each counts as no longer than that, as when the writer waited
/// for room.
const STREAM_AVERAGED: i64 = 32;
const INTERVAL_MAX: Duration = Duration::from_micros(100);
/// Polling that lasted for so many paid.
const STREAM_PAID: u32 = 4_096;

/// How soon the next comes after the last, whoever asked for it.
#[derive(Debug)]
struct Stream {
    is_polled: bool,
    /// Polling found nothing since the last came.
    in_vain: bool,
    /// When the last was done with.
    since: Instant,
    average: SmoothedEstimate<STREAM_AVERAGED>,
    /// Its signs: what came since polling ended, or what was polled for more than once since it began.
    trial: Trial<256, { 1 << 16 }>,
}

impl Stream {
    const fn new() -> Self {
        let (average, since) = (SmoothedEstimate::new(INTERVAL_MAX.0), Instant(0));
        Self { is_polled: false, in_vain: false, since, average, trial: Trial::new() }
    }

    #[inline]
    fn note(&mut self, arrival: &Arrival) {
        let waited = arrival.came.since(self.since).min(INTERVAL_MAX);
        self.since = arrival.done;
        // What was there says nothing of polling: there are times with more of it than anybody comes to
        // receive.
        if self.is_polled && !std::mem::take(&mut self.in_vain) {
            return;
        }
        self.average.add(waited.0);
        let (interval, is_enough) = (Duration(self.average.get()), self.trial.sign());
        if self.is_polled {
            if !policy::stream_pays(interval, true) {
                self.stop();
            }
        } else if is_enough && policy::stream_pays(interval, false) {
            self.trial.no_sign();
            (self.is_polled, self.average) = (true, SmoothedEstimate::new(policy::WAKE_COST.0 / 2));
        }
    }

    fn stop(&mut self) {
        if self.trial.signs >= STREAM_PAID {
            self.trial.paid()
        } else {
            self.trial.failed()
        }
        (self.is_polled, self.in_vain) = (false, false);
        self.average = SmoothedEstimate::new(INTERVAL_MAX.0);
    }
}

/// Where a part of a sample came without its end, more is expected. Between the many short datagrams of one
/// that comes from another host the thread sleeps.
#[derive(Debug)]
struct Rest {
    /// Since when the next is polled for.
    due: Option<Instant>,
    /// The last had no end of a sample either.
    was_part: bool,
    /// Its signs: parts since the last that was polled behind.
    trial: Trial<1, { 1 << 12 }>,
}

impl Rest {
    const fn new() -> Self {
        Self { due: None, was_part: false, trial: Trial::new() }
    }

    #[inline]
    fn note(&mut self, arrival: &Arrival) {
        if let Some(since) = self.due.take() {
            if arrival.came.since(since) < REST_POLL { self.trial.paid() } else { self.trial.failed() }
        }
        let goes_on = std::mem::replace(&mut self.was_part, arrival.is_part);
        if arrival.is_part && (!goes_on || arrival.is_long) && self.trial.sign() {
            self.due = Some(arrival.done);
        }
    }
}

/// Whether one thread, always the same, waits for what comes.
#[derive(Debug)]
struct Waiter {
    /// Its signs: lone datagrams in a row that one thread waited for.
    trial: Trial<3, 4_096>,
    /// Who sent those of them that are acknowledgements.
    acks: AckSources,
    is_for_one: bool,
    /// See [`Estimate::prompt`].
    prompt: u32,
}

impl Waiter {
    const fn new() -> Self {
        Self { trial: Trial::new(), acks: AckSources::None, is_for_one: false, prompt: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In virtual time: starting a core, and what a thread does with a datagram until it has answered.
    const WAKE: u64 = 60_000;
    const WORK: u64 = 4_000;
    const REPLY_POLL: u64 = 150_000;
    const STREAM_POLL: u64 = 40_000;

    impl Estimator {
        fn polls(&self, now: impl FnOnce() -> Instant) -> bool {
            self.estimate().polls(now)
        }
    }

    fn arrival(came: u64, sent: u32) -> Arrival {
        Arrival { came: Instant(came), done: Instant(came + WORK), sent, is_part: false, is_long: false }
    }

    /// When a datagram that arrives at `at` is answered; what of the time before was spent polling is added
    /// to `polled`.
    fn answer(side: &mut Estimator, at: u64, polled: &mut u64) -> u64 {
        let sleeps_at =
            if side.replies.polled.is_some() { side.since().0 + REPLY_POLL } else { side.since().0 };
        *polled += at.min(sleeps_at).saturating_sub(side.since().0);
        let came = if side.polls(|| Instant(at)) { at } else { at + WAKE };
        side.note(arrival(came, side.replies.sent.wrapping_add(1)));
        came + WORK
    }

    #[test]
    fn two_that_answer_each_other_stop_sleeping_and_begin_again_soon_after_a_pause() {
        let (mut one, mut other) = (Estimator::new(true), Estimator::new(true));
        // They did not begin together.
        other.replies.trial.needed = 64;
        let (mut now, mut polled) = (0, 0);
        for pause in [0, 400_000, 1_000_000_000] {
            now += pause;
            let mut trips = 0;
            loop {
                let began = now;
                now = answer(&mut one, now, &mut polled);
                now = answer(&mut other, now, &mut polled);
                trips += 1;
                if now - began <= 2 * WORK {
                    break;
                }
                assert!(trips < 500, "{one:?} {other:?}");
            }
            for _ in 0..1_000 {
                let began = now;
                now = answer(&mut one, now, &mut polled);
                now = answer(&mut other, now, &mut polled);
                assert_eq!(now - began, 2 * WORK, "after {trips} round trips they stay");
            }
        }
    }

    #[test]
    fn whose_partner_always_sleeps_soon_polls_rarely() {
        let (mut now, mut polled) = (0, 0);
        let mut side = Estimator::new(true);
        for round in 0..200_000 {
            now = answer(&mut side, now, &mut polled) + WAKE + WORK;
            assert!(round < 10_000 || polled < now / 5, "{polled} of {now} ns");
        }
        assert!(polled > 0, "it tries now and then");
    }

    #[test]
    fn one_poll_in_vain_among_many_does_not_end_it_two_do() {
        let (mut now, mut polled) = (0, 0);
        let mut side = Estimator::new(true);
        for _ in 0..100 {
            now = answer(&mut side, now, &mut polled) + WORK;
        }
        now = answer(&mut side, now + 1_000_000, &mut polled);
        assert!(side.polls(|| Instant(now)), "after one pause: {side:?}");
        now = answer(&mut side, now + 1_000_000, &mut polled);
        assert!(!side.polls(|| Instant(now)), "after two: {side:?}");
    }

    #[test]
    fn what_comes_unasked_or_late_is_never_polled_for() {
        let cases =
            [("switched off", false, 1, 5_000), ("unasked", true, 0, 40_000), ("late", true, 1, 150_000)];
        for (case, is_on, sends, gap) in cases {
            let mut side = Estimator::new(is_on);
            for step in 1..10_000_u32 {
                let now = Instant(u64::from(step) * gap);
                assert!(!side.polls(|| now), "{case}");
                side.note(Arrival {
                    came: now,
                    done: now,
                    sent: step * sends,
                    is_part: false,
                    is_long: false,
                });
            }
        }
    }

    /// Datagrams that arrive so far apart, of which this part waits for so much longer: how many found the
    /// thread polling, and how long that polled altogether, of the second half of so many.
    fn stream(apart: u64, pause_each: u64, pause: u64, is_part: bool) -> (u64, u64) {
        const COUNT: u64 = 40_000;
        let mut side = Estimator::new(true);
        let (mut at, mut found, mut polled) = (0, 0_u64, 0);
        for number in 0..COUNT {
            at += apart + if number % pause_each == 0 { pause } else { 0 };
            let since = side.stream.since.0;
            let polls = side.polls(|| Instant(at));
            if number > COUNT / 2 {
                found += u64::from(polls);
                let until = if side.stream.is_polled { since + STREAM_POLL } else { since };
                polled += at.min(until).saturating_sub(since);
            }
            // Who sleeps is woken some microseconds later.
            let came = if polls || at <= since { at.max(since) } else { at + 5_000 };
            if polls && at > since {
                side.polled_in_vain();
            }
            side.note(Arrival { is_part, ..arrival(came, 0) });
        }
        (found, polled)
    }

    #[test]
    fn the_next_of_a_fast_stream_is_polled_for_parts_of_samples_too() {
        for (apart, is_part) in [(8_000, false), (8_000, true), (25_000, false)] {
            // One in a hundred waits for room in the writer, or for its core.
            let (found, _) = stream(apart, 100, 200_000, is_part);
            assert!(found > 19_000, "{apart} ns apart: {found} of 20,000");
        }
    }

    #[test]
    fn a_slower_stream_is_polled_for_rarely() {
        for apart in [40_000, 60_000, 1_000_000] {
            let (found, polled) = stream(apart, u64::MAX, 0, false);
            assert!(found < 200 && polled < 20_000 * apart / 100, "{apart} ns apart: {found}, {polled} ns");
        }
    }

    /// How often the rest of a sample that comes so long after the first part is polled for, of so many.
    fn polled_for_rest(count: u64, after: u64) -> u64 {
        let (mut side, mut polled) = (Estimator::new(true), 0);
        for number in 1..=count {
            let at = number * 10_000_000;
            side.note(Arrival { is_part: true, ..arrival(at, 0) });
            polled += u64::from(side.polls(|| Instant(at + WORK + 1)));
            side.note(arrival(at + WORK + after, 0));
            assert!(!side.polls(|| Instant(at + 2 * WORK + after + 1)), "nothing is missing");
        }
        polled
    }

    #[test]
    fn the_rest_of_a_sample_is_polled_for_where_it_comes_soon() {
        assert_eq!(polled_for_rest(1_000, 15_000), 1_000);
        let in_vain = polled_for_rest(10_000, 60_000);
        assert!((2..20).contains(&in_vain), "{in_vain}");
        for (is_long, expected) in [(false, 10), (true, 990)] {
            let (mut side, mut polled) = (Estimator::new(true), 0);
            for number in 1..=1_000 {
                let at = number * 40_000;
                side.note(Arrival { is_part: number % 100 > 0, is_long, ..arrival(at, 0) });
                polled += u64::from(side.polls(|| Instant(at + WORK + 1)));
            }
            assert_eq!(polled, expected, "ten samples of a hundred parts, {is_long}");
        }
    }

    #[test]
    fn where_others_need_the_core_polling_ceases_though_much_is_there_at_once() {
        let mut side = Estimator::new(true);
        let (mut now, mut in_vain) = (0, 0);
        for number in 0..200_000 {
            // Twenty came while this thread did not run.
            if number % 20 == 0 {
                now += 3_000_000;
                if side.stream.is_polled {
                    side.polled_in_vain();
                    in_vain += 1;
                }
            }
            side.note(arrival(now, 0));
            now += WORK;
        }
        assert!(in_vain < 100, "{in_vain} of 10,000 polls in vain");
    }

    /// After how many lone datagrams that one thread waits for the input is handed over.
    fn lone_until_handed_over(side: &mut Estimator) -> u32 {
        let handed_over = (1..10_000).find(|_| {
            side.note_waiter(true, AckSources::None);
            side.estimate().is_for_one
        });
        side.hand_over();
        handed_over.unwrap()
    }

    #[test]
    fn an_input_is_handed_over_to_who_waits_for_each_datagram_and_later_where_that_was_of_no_use() {
        let mut side = Estimator::new(true);
        for needed in [3, 6, 12] {
            assert_eq!(lone_until_handed_over(&mut side), needed);
            side.handed_back(false);
        }
        side.handed_back(true);
        side.note_waiter(true, AckSources::None);
        side.note_waiter(true, AckSources::None);
        side.note_waiter(false, AckSources::None);
        assert_eq!(lone_until_handed_over(&mut side), 3, "in a row");
    }

    #[test]
    fn acknowledgements_of_two_are_not_for_one() {
        let mut side = Estimator::new(true);
        for source in [[1; 12], [2; 12]].into_iter().cycle().take(1_000) {
            let mut acks = AckSources::None;
            acks.note(plainsong_proto::guid::GuidPrefix(source));
            side.note_waiter(true, acks);
            assert!(!side.estimate().is_for_one);
        }
    }
}
