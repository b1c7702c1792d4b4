//! How long readers take to answer, path and all: what the pauses of a writer are measured by (RFC 6298 §2,
//! in finer units).

use crate::estimate::SmoothedEstimate;
use crate::time::{Duration, Instant};

/// The smoothed time from an acknowledgement request to the answer.
#[derive(Debug, Default)]
pub(crate) struct RoundTrip {
    /// `None` before the first answer.
    smoothed: Option<SmoothedEstimate<8>>,
    /// How far single times are from that.
    variation: SmoothedEstimate<4>,
    /// The shortest of late. Where a request was lost, the answer to a later one is taken for its own: that
    /// measures the loss, not the path.
    least: Duration,
    /// When the request was sent that is not answered yet.
    asked: Option<Instant>,
    /// It was repeated: nobody knows which of the two the answer is for.
    repeated: bool,
}

impl RoundTrip {
    pub(crate) fn asked(&mut self, now: Instant) {
        self.repeated |= self.asked.is_some_and(|asked| asked < now);
        self.asked.get_or_insert(now);
    }

    pub(crate) fn answered(&mut self, now: Instant) {
        let Some(asked) = self.asked.take() else { return };
        if std::mem::take(&mut self.repeated) {
            return;
        }
        let took = now.since(asked);
        let Some(smoothed) = &mut self.smoothed else {
            self.smoothed = Some(SmoothedEstimate::new(took.0));
            self.variation = SmoothedEstimate::new(took.0 / 2);
            self.least = took;
            return;
        };
        self.least = took.min(Duration(self.least.0 + (took.0 - self.least.0) / 16));
        self.variation.add(smoothed.get().abs_diff(took.0).cast_signed());
        smoothed.add(took.0);
    }

    /// The retransmission timeout: an answer that takes longer is most likely lost.
    pub(crate) fn rto(&self) -> Option<Duration> {
        let smoothed = self.smoothed?;
        Some(Duration(smoothed.get().saturating_add(self.variation.get().saturating_mul(4))))
    }

    /// A request that comes sooner than this after an answer was most likely sent before it arrived.
    pub(crate) fn crossing(&self) -> Option<Duration> {
        self.smoothed?;
        Some(Duration(self.least.0.saturating_add(self.least.0 / 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant(micros * 1_000)
    }

    #[test]
    fn steady_answers_make_a_writer_expect_the_next_as_soon() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.rto(), None);
        for round in 0..50 {
            round_trip.asked(at(round * 1_000));
            round_trip.answered(at(round * 1_000 + 200));
        }
        let rto = round_trip.rto().unwrap();
        assert!(Duration::from_micros(200) <= rto && rto < Duration::from_micros(210), "{rto:?}");
        // One slow answer makes it wait longer at once, though not for ever.
        round_trip.asked(at(100_000));
        round_trip.answered(at(103_000));
        assert!(round_trip.rto().unwrap() > Duration::from_millis(3));
    }

    #[test]
    fn a_request_that_was_lost_does_not_keep_requests_from_being_heard() {
        let mut round_trip = RoundTrip::default();
        for round in 0..20 {
            let took = if round % 5 == 4 { 8_000 } else { 200 };
            round_trip.asked(at(round * 10_000));
            round_trip.answered(at(round * 10_000 + took));
            assert!(
                round_trip.crossing().unwrap() < Duration::from_micros(1_100),
                "{:?}",
                round_trip.crossing()
            );
        }
    }

    #[test]
    fn the_answer_to_a_repeated_request_is_no_measurement() {
        let mut round_trip = RoundTrip::default();
        round_trip.asked(at(0));
        round_trip.asked(at(900));
        round_trip.answered(at(1_000));
        assert_eq!(round_trip.rto(), None);
        round_trip.answered(at(5_000));
        assert_eq!(round_trip.rto(), None, "nothing was requested");
        // Two heartbeats of one moment are one request.
        round_trip.asked(at(6_000));
        round_trip.asked(at(6_000));
        round_trip.answered(at(6_300));
        assert_eq!(round_trip.crossing(), Some(Duration::from_micros(450)));
    }
}
