//! When a writer requests acknowledgements (RTPS 2.5 §8.4.9.2.7), as a function of what it knows: each sample
//! carries nothing, a final HEARTBEAT, which who misses something answers, or one without the final flag,
//! which everyone answers.

use crate::backoff::Backoff;
use crate::time::Duration;
use crate::tuning::writer::{
    FAN_OUT_PAUSE_MAX, ISOLATED_AFTER, ISOLATED_BYTES_MAX, ISOLATED_REQUEST_PERIOD, PROMPT_READERS,
    PROMPT_TRIES, URGENT_PERIOD_DIVISOR, URGENT_SAMPLES, WINDOW_PARTS, WINDOW_PARTS_OF_ONE,
};
use crate::writer::WriterLimits;

/// What is known when samples leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// Octets of the window that samples have taken since acknowledgements were requested.
    pub(crate) bytes: usize,
    /// Samples sent since then, with this one.
    pub(crate) samples: usize,
    /// Time since then; INFINITE: never.
    pub(crate) since_request: Duration,
    /// Time since a HEARTBEAT of either kind.
    pub(crate) since_heartbeat: Duration,
    /// Time since the sample before.
    pub(crate) since_sample: Duration,
    /// Reliable readers: so many answer a request.
    pub(crate) readers: usize,
    /// All of them have answered the last one.
    pub(crate) is_answered: bool,
    /// Half of what may be unacknowledged is.
    pub(crate) is_half_full: bool,
    /// So many octets unacknowledged after a request are worth another, once it is half full.
    pub(crate) share_bytes: usize,
    /// Few readers, all of them on this host, and nothing waits for their acknowledgements.
    pub(crate) may_wait: bool,
    /// Queued changes leave, which are long, so that answers cost little beside them, and few fill the
    /// window.
    pub(crate) is_queued: bool,
}

/// What a sample carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    No,
    /// A HEARTBEAT with the final flag: who misses something requests it, others are silent.
    Final,
    /// One without: everyone acknowledges.
    Ask,
}

/// Where in the flow of samples one stands, for the time until the timer requests acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Readers were asked since, or are with it: the time that acknowledgements take.
    #[default]
    Asked,
    /// They are in the midst of others, only since it is time.
    AskedInFlow,
    /// It follows others, which ask often enough: the timer waits until they pause.
    Flow,
    /// It came after a pause, but need not ask.
    Isolated,
}

impl Spacing {
    /// The time until the timer goes off, given that acknowledgements take so long. As the timer has to know
    /// of a shorter time at once, and would find nothing to do in the end, samples in a flow are given no
    /// shorter one.
    #[inline]
    pub(crate) fn pause(self, timeout: Duration, shortest: Duration) -> Duration {
        match self {
            Self::Asked => timeout,
            Self::AskedInFlow | Self::Flow => timeout.max(shortest),
            Self::Isolated => timeout.max(ISOLATED_REQUEST_PERIOD),
        }
    }
}

/// What the samples that leave carry, and what that means for the timer.
#[inline]
pub(crate) fn decide(now: &Situation, limits: &WriterLimits) -> (Decision, Spacing) {
    if now.is_queued { (on_queued(now, limits), Spacing::Asked) } else { on_sample(now, limits) }
}

#[inline]
fn on_sample(now: &Situation, limits: &WriterLimits) -> (Decision, Spacing) {
    let is_isolated = now.since_sample >= ISOLATED_AFTER && now.readers <= PROMPT_READERS;
    let need_not_ask = now.may_wait
        && now.is_answered
        && now.bytes <= ISOLATED_BYTES_MAX
        && now.since_request < ISOLATED_REQUEST_PERIOD;
    let final_or_none =
        || if now.since_heartbeat >= limits.heartbeat_piggyback { Decision::Final } else { Decision::No };
    if is_isolated {
        // Lost, it would be missed by nobody before the next.
        return if need_not_ask {
            (final_or_none(), Spacing::Isolated)
        } else {
            (Decision::Ask, Spacing::Asked)
        };
    }
    // By time the more rarely the more readers there are: each answers.
    let period = Duration(limits.acknowledgement_period.0.saturating_mul(now.readers.max(1) as i64));
    let is_time = now.since_request >= period.min(FAN_OUT_PAUSE_MAX.max(limits.acknowledgement_period));
    if is_time || now.is_half_full && now.bytes >= now.share_bytes {
        return (Decision::Ask, if now.is_half_full { Spacing::Asked } else { Spacing::AskedInFlow });
    }
    (final_or_none(), Spacing::Flow)
}

#[inline]
fn on_queued(now: &Situation, limits: &WriterLimits) -> Decision {
    let is_urgent = now.is_half_full
        && (now.since_request.0 >= limits.heartbeat_piggyback.0 / URGENT_PERIOD_DIVISOR
            || now.samples >= URGENT_SAMPLES);
    if is_urgent || now.since_request >= limits.acknowledgement_period { Decision::Ask } else { Decision::No }
}

/// After so many octets readers are asked again once the window is half full. One of this host is so close
/// behind that an acknowledgement for each half of short samples keeps the writer going.
pub(crate) const fn share(window_bytes: usize, is_single_and_near: bool, is_short: bool) -> usize {
    window_bytes / if is_single_and_near && is_short { WINDOW_PARTS_OF_ONE } else { WINDOW_PARTS }
}

/// How long answers are waited for before they are requested again: of few readers the retransmission
/// timeout, if there is one yet; of many what `fan_out` says. An application may set a longest pause below
/// the others.
pub(crate) fn timeout(
    readers: usize,
    rto: Option<Duration>,
    fan_out: impl FnOnce() -> Duration,
    limits: &WriterLimits,
) -> Duration {
    if readers > PROMPT_READERS {
        return fan_out();
    }
    rto.unwrap_or(limits.heartbeat_shortest).max(limits.heartbeat_quickest).min(limits.heartbeat_longest)
}

/// The timeout after one that has passed. If readers were asked, and some times before in vain, it is twice
/// as long; if what they owe was not even sent yet, it is not.
pub(crate) fn next_timeout(timeout: Duration, tries: u32, longest: Duration) -> Duration {
    if tries > PROMPT_TRIES { Backoff::new(timeout, longest).after(timeout).max(timeout) } else { timeout }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: i64) -> Duration {
        Duration::from_micros(micros)
    }

    fn limits() -> WriterLimits {
        WriterLimits::default()
    }

    /// In the midst of a flow to one reader, asked and told just now.
    const FLOW: Situation = Situation {
        bytes: 1_000,
        samples: 1,
        since_request: us(10),
        since_heartbeat: us(10),
        since_sample: us(10),
        readers: 1,
        is_answered: true,
        is_half_full: false,
        share_bytes: 500_000,
        may_wait: true,
        is_queued: false,
    };
    const PAUSE: Situation =
        Situation { since_sample: us(5_000), since_request: us(5_000), since_heartbeat: us(5_000), ..FLOW };

    #[test]
    fn each_situation_has_its_decision() {
        use Decision::{Ask, Final, No};
        use Spacing::{Asked, AskedInFlow, Flow, Isolated};
        let never = Duration::INFINITE;
        let table = [
            ("in a flow, asked just now", FLOW, (No, Flow)),
            ("nothing was told for a while", Situation { since_heartbeat: us(1_000), ..FLOW }, (Final, Flow)),
            ("it is time to ask", Situation { since_request: us(10_000), ..FLOW }, (Ask, AskedInFlow)),
            (
                "not yet of two readers",
                Situation { since_request: us(10_000), readers: 2, ..FLOW },
                (No, Flow),
            ),
            (
                "of two readers",
                Situation { since_request: us(20_000), readers: 2, ..FLOW },
                (Ask, AskedInFlow),
            ),
            (
                "of a thousand",
                Situation { since_request: us(1_000_000), readers: 1_000, ..FLOW },
                (Ask, AskedInFlow),
            ),
            (
                "a share of a full window",
                Situation { bytes: 500_000, is_half_full: true, ..FLOW },
                (Ask, Asked),
            ),
            ("less of it", Situation { bytes: 499_999, is_half_full: true, ..FLOW }, (No, Flow)),
            ("of one with room", Situation { bytes: 500_000, ..FLOW }, (No, Flow)),
            (
                "the first of all",
                Situation { since_sample: never, since_request: never, is_answered: false, ..FLOW },
                (Ask, Asked),
            ),
            ("isolated, all is known", PAUSE, (Final, Isolated)),
            ("isolated, told just now", Situation { since_heartbeat: us(10), ..PAUSE }, (No, Isolated)),
            (
                "isolated, the last request is not answered",
                Situation { is_answered: false, ..PAUSE },
                (Ask, Asked),
            ),
            ("isolated, somebody waits for the answer", Situation { may_wait: false, ..PAUSE }, (Ask, Asked)),
            ("isolated and long", Situation { bytes: ISOLATED_BYTES_MAX + 1, ..PAUSE }, (Ask, Asked)),
            (
                "isolated, not asked for long",
                Situation { since_request: ISOLATED_REQUEST_PERIOD, ..PAUSE },
                (Ask, Asked),
            ),
            ("isolated, to many", Situation { readers: PROMPT_READERS + 1, ..PAUSE }, (Final, Flow)),
        ];
        for (name, situation, decision) in table {
            assert_eq!(decide(&situation, &limits()), decision, "{name}");
        }
    }

    #[test]
    fn queued_changes_ask_in_time_and_sooner_where_the_window_fills() {
        let flow = Situation { is_queued: true, ..FLOW };
        let full = Situation { is_half_full: true, ..flow };
        let table = [
            (flow, Decision::No),
            (Situation { since_request: us(10_000), ..flow }, Decision::Ask),
            (Situation { since_request: us(10_000), readers: 100, ..flow }, Decision::Ask),
            (full, Decision::No),
            (Situation { since_request: us(125), ..full }, Decision::Ask),
            (Situation { samples: URGENT_SAMPLES, ..full }, Decision::Ask),
            (Situation { samples: URGENT_SAMPLES, ..flow }, Decision::No),
        ];
        for (situation, decision) in table {
            assert_eq!(decide(&situation, &limits()).0, decision, "{situation:?}");
        }
    }

    #[test]
    fn more_time_more_octets_or_a_fuller_window_never_make_a_flow_ask_less() {
        let asks = |situation: &Situation| decide(situation, &limits()).0 == Decision::Ask;
        for readers in [1, 2, 4, 5, 50, 2_000] {
            for bytes in [0, 499_999, 500_000, 2_000_000] {
                for since in [0, 125, 5_000, 10_000, 100_000, 2_000_000].map(us) {
                    let situation = Situation { readers, bytes, since_request: since, ..FLOW };
                    if asks(&situation) {
                        assert!(asks(&Situation { since_request: Duration(since.0 * 2), ..situation }));
                        assert!(asks(&Situation { bytes: bytes * 2, ..situation }));
                        assert!(asks(&Situation { is_half_full: true, ..situation }));
                        assert!(asks(&Situation { readers: readers.div_ceil(2), ..situation }));
                    }
                }
            }
        }
    }

    #[test]
    fn the_timer_waits_as_long_as_answers_take_and_longer_while_samples_follow() {
        let shortest = us(4_000);
        assert_eq!(Spacing::Asked.pause(us(1_000), shortest), us(1_000));
        assert_eq!(Spacing::AskedInFlow.pause(us(1_000), shortest), shortest);
        assert_eq!(Spacing::Flow.pause(us(9_000), shortest), us(9_000));
        assert_eq!(Spacing::Isolated.pause(us(1_000), shortest), ISOLATED_REQUEST_PERIOD);
    }

    #[test]
    fn timeouts_follow_round_trips_within_their_limits_and_grow_when_nobody_answers() {
        let of_few = |rto| timeout(1, rto, || unreachable!("few readers"), &limits());
        assert_eq!(of_few(None), us(4_000));
        assert_eq!(of_few(Some(us(1))), us(1_000));
        assert_eq!(of_few(Some(us(7_000))), us(7_000));
        assert_eq!(of_few(Some(us(700_000))), us(60_000));
        assert_eq!(timeout(PROMPT_READERS + 1, Some(us(1)), || us(30_000), &limits()), us(30_000));
        assert_eq!(next_timeout(us(7_000), PROMPT_TRIES, us(60_000)), us(7_000), "some are lost in a row");
        assert_eq!(next_timeout(us(7_000), PROMPT_TRIES + 1, us(60_000)), us(14_000));
        assert_eq!(next_timeout(us(50_000), PROMPT_TRIES + 1, us(60_000)), us(60_000));
        assert_eq!(next_timeout(us(70_000), PROMPT_TRIES + 1, us(60_000)), us(70_000), "never shorter");
    }

    #[test]
    fn a_single_near_reader_of_short_samples_is_asked_by_larger_parts_of_the_window() {
        assert!(share(1 << 20, true, true) > share(1 << 20, true, false));
        assert_eq!(share(1 << 20, true, false), share(1 << 20, false, true));
    }
}
