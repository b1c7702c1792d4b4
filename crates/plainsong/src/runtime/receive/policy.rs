//! What a thread that receives does next: poll, sleep, or hand the input over. A pure function of what the
//! [estimator](super::estimate) found, with all its thresholds.
//!
//! Polling takes a core as long as it lasts, so it has to end sooner than sleeping and waking would take. To
//! be woken costs [`WAKE_COST`]: it is not measured, since nothing tells when a sleeper could have run.

use plainsong_proto::time::{Duration, Instant};

/// What a thread that sleeps needs to be woken on machines where that is slow.
pub(super) const WAKE_COST: Duration = Duration::from_micros(25);
/// An answer is awaited in an exchange of two, of which either would have to be woken.
pub(super) const REPLY_PAYS: Duration = Duration(2 * WAKE_COST.0);
/// The next came soon, also for who slept until then: two wake-ups, and what the other side does.
pub(super) const REPLY_SOON: Duration = Duration::from_micros(150);
/// So long the next reply is polled for: one of two has to begin, while the other still sleeps.
const REPLY_POLL: Duration = REPLY_SOON;
/// So long the next of a stream is polled for: somewhat longer than sleeping and being woken take together.
const STREAM_POLL: Duration = Duration::from_micros(40);
/// Polling for a stream begins below this interval; it is measured with the wake-ups that polling saves.
const STREAM_BEGINS: Duration = Duration::from_micros(35);
/// So long the rest of a sample is polled for: its datagram is being copied when the one before it wakes the
/// reader.
pub(super) const REST_POLL: Duration = Duration::from_micros(40);
/// A waiting thread that did not have to wait so often in a row gives the input back: in a stream two threads
/// are better than one.
const PROMPT_MAX: u32 = 4;

/// What is known of one input. Each of the first three is set while the next datagram is expected soon, to
/// when the last of that kind was done with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    /// The answer to something that was sent.
    pub(super) reply_since: Option<Instant>,
    /// More of a sample of which a part came.
    pub(super) part_since: Option<Instant>,
    /// The next of a fast stream.
    pub(super) stream_since: Option<Instant>,
    /// One thread, always the same, is woken for each datagram: often enough to hand the input over to it.
    pub(super) is_for_one: bool,
    /// Datagrams in a row for which the thread that owns the input did not have to wait.
    pub(super) prompt: u32,
}

/// What the receive thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Poll,
    Sleep,
    HandOver,
}

impl Estimate {
    /// What the receive thread of the input does next.
    #[inline]
    pub(super) fn next(&self, now: impl FnOnce() -> Instant) -> Next {
        match self {
            Self { is_for_one: true, .. } => Next::HandOver,
            _ if self.polls(now) => Next::Poll,
            _ => Next::Sleep,
        }
    }

    /// Whether to poll once more before sleeping. Who expects nothing does not read the clock.
    #[inline]
    pub(super) fn polls(&self, now: impl FnOnce() -> Instant) -> bool {
        let (since, longest) = match (self.reply_since, self.part_since, self.stream_since) {
            (Some(since), _, _) => (since, REPLY_POLL),
            (None, Some(since), _) => (since, REST_POLL),
            (None, None, Some(since)) => (since, STREAM_POLL),
            (None, None, None) => return false,
        };
        now().since(since) < longest
    }

    /// Whether a waiting thread that owns the input had better give it back.
    pub(super) const fn is_too_fast_for_one(&self) -> bool {
        self.prompt >= PROMPT_MAX
    }
}

/// Whether replies that take so long on average are worth polling for.
pub(super) const fn reply_pays(average: Duration) -> bool {
    average.0 <= REPLY_PAYS.0
}

/// Whether to poll for a stream with that interval, given whether that is what happens already.
pub(super) const fn stream_pays(interval: Duration, is_polling: bool) -> bool {
    if is_polling { interval.0 <= WAKE_COST.0 } else { interval.0 < STREAM_BEGINS.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Option<Instant> = Some(Instant(1_000_000));

    fn after(estimate: &Estimate, micros: u64) -> Next {
        estimate.next(|| Instant(1_000_000 + 1_000 * micros))
    }

    #[test]
    fn who_expects_nothing_sleeps_without_looking_at_the_clock() {
        assert_eq!(Estimate::default().next(|| panic!("the clock was read")), Next::Sleep);
    }

    #[test]
    fn each_expectation_is_polled_for_as_long_as_it_may_take() {
        let none = Estimate::default();
        let cases = [
            (Estimate { reply_since: SINCE, ..none }, 150),
            (Estimate { part_since: SINCE, ..none }, 40),
            (Estimate { stream_since: SINCE, ..none }, 40),
            (Estimate { reply_since: SINCE, part_since: SINCE, stream_since: SINCE, ..none }, 150),
        ];
        for (estimate, micros) in cases {
            assert_eq!(after(&estimate, micros - 1), Next::Poll, "{estimate:?}");
            assert_eq!(after(&estimate, micros), Next::Sleep, "{estimate:?}");
        }
    }

    #[test]
    fn an_input_that_one_thread_waits_for_is_handed_over_whatever_is_expected() {
        let estimate = Estimate { is_for_one: true, reply_since: SINCE, ..Estimate::default() };
        assert_eq!(after(&estimate, 0), Next::HandOver);
    }

    #[test]
    fn polling_goes_on_only_while_it_is_shorter_than_the_wake_ups_it_saves() {
        let micros = Duration::from_micros;
        assert!(reply_pays(micros(50)) && !reply_pays(micros(51)));
        assert!(stream_pays(micros(25), true) && !stream_pays(micros(26), true));
        assert!(stream_pays(micros(34), false) && !stream_pays(micros(35), false));
    }

    #[test]
    fn who_never_has_to_wait_gives_the_input_back() {
        let prompt = |prompt| Estimate { prompt, ..Estimate::default() }.is_too_fast_for_one();
        assert!(!prompt(3) && prompt(4));
    }
}
