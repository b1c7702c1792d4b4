//! How long many readers take until the last has answered: on a busy host that is the time until each had its
//! turn. Who asks sooner is answered twice by all, and makes the host busier.

use crate::backoff::Backoff;
use crate::estimate::SmoothedEstimate;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::tuning::writer::{
    FAN_OUT_PAUSE_MAX, PROMPT_READERS, READER_PAUSE_DOUBLINGS, READER_PAUSE_EACH, READER_PAUSE_MAX,
};

/// The readers of a writer, as far as their answers take time.
#[derive(Debug, Default)]
pub(crate) struct FanOut {
    /// When all were asked about changes up to this one, and have not answered yet.
    request: Option<(Instant, SequenceNumber)>,
    /// What their answers took: long ones count at once, short ones by and by.
    took: Duration,
}

impl FanOut {
    /// All were asked about changes up to `last`.
    pub(crate) fn requested(&mut self, now: Instant, last: SequenceNumber) {
        self.request.get_or_insert((now, last));
    }

    /// Nobody owes an answer: who did may have left.
    pub(crate) const fn forget(&mut self) {
        self.request = None;
    }

    /// All have answered about changes up to `lowest`.
    pub(crate) fn answered(&mut self, now: Instant, lowest: SequenceNumber) {
        if let Some((asked, _)) = self.request.take_if(|(_, last)| *last <= lowest) {
            let took = now.since(asked);
            self.moves::<8>(took);
        }
    }

    /// One has answered what it alone was asked so long ago. As there are many of them, each moves what is
    /// known by little.
    pub(crate) fn one_answered(&mut self, took: Duration) {
        self.moves::<64>(took.min(FAN_OUT_PAUSE_MAX));
    }

    const fn moves<const PARTS: i64>(&mut self, took: Duration) {
        let mut estimate = SmoothedEstimate::<PARTS>::new(self.took.0);
        estimate.add_peak(took.0);
        self.took = Duration(estimate.get());
    }

    /// The last change that all were asked about, until all have answered.
    pub(crate) fn request(&self) -> Option<SequenceNumber> {
        self.request.map(|(_, last)| last)
    }

    pub(crate) const fn took(&self) -> Duration {
        self.took
    }

    /// First pause before those of them that owe an answer are asked again; `shortest` were they few.
    pub(crate) fn pause(&self, owing: usize, shortest: Duration) -> Duration {
        let times = (owing / PROMPT_READERS).max(1) as i64;
        let usual = Duration(shortest.0.saturating_mul(times));
        // Some take longer than all did the last time.
        usual.max(Duration(self.took.0.saturating_mul(2))).min(FAN_OUT_PAUSE_MAX)
    }
}

/// When one of many readers was asked by itself, or by the timer, and how often since it last answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReaderRequest {
    pub(crate) at: Instant,
    times: u32,
}

impl ReaderRequest {
    /// It is matched, and a HEARTBEAT requests its acknowledgement.
    pub(crate) const fn first(now: Instant) -> Self {
        Self { at: now, times: 1 }
    }

    /// It answered: how long ago it was asked, if that was once.
    pub(crate) fn answered(&mut self, now: Instant) -> Option<Duration> {
        (std::mem::take(&mut self.times) == 1).then(|| now.since(self.at))
    }

    /// Notes that it is asked again, if it is time: after a pause, and each time after twice as long. Who
    /// takes so long has many others to answer, or is not there.
    pub(crate) fn again(&mut self, now: Instant, pause: Duration, readers: usize) -> bool {
        let most = Duration(READER_PAUSE_EACH.0.saturating_mul(readers as i64)).min(READER_PAUSE_MAX);
        let pauses = Backoff::doubling(pause, READER_PAUSE_DOUBLINGS);
        let doubled = pauses.pause(self.times.saturating_sub(1)).min(most);
        let is_due = self.times == 0 || now.since(self.at) >= doubled;
        if is_due {
            *self = Self { at: now, times: self.times + 1 };
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: Duration = Duration::from_millis(4);

    fn ms(millis: u64) -> Instant {
        Instant(millis * 1_000_000)
    }

    #[test]
    fn many_readers_are_given_twice_the_time_that_its_last_answer_took_and_not_more_than_that() {
        let mut fan_out = FanOut::default();
        assert_eq!(fan_out.pause(24, SHORTEST), Duration::from_millis(24));
        fan_out.requested(ms(1_000), SequenceNumber(7));
        fan_out.requested(ms(1_020), SequenceNumber(9));
        fan_out.answered(ms(1_050), SequenceNumber(6));
        assert_eq!(fan_out.pause(24, SHORTEST), Duration::from_millis(24), "one still owes");
        fan_out.answered(ms(1_090), SequenceNumber(8));
        assert_eq!(fan_out.pause(24, SHORTEST), Duration::from_millis(180));
        assert_eq!(fan_out.pause(1, SHORTEST), Duration::from_millis(180));
        for round in 2..60 {
            fan_out.requested(ms(1_000 * round), SequenceNumber(7));
            fan_out.answered(ms(1_000 * round + 1), SequenceNumber(7));
        }
        assert_eq!(fan_out.pause(24, SHORTEST), Duration::from_millis(24), "the host is idle again");
        fan_out.requested(ms(90_000), SequenceNumber(7));
        fan_out.answered(ms(99_000), SequenceNumber(7));
        assert_eq!(fan_out.pause(24, SHORTEST), FAN_OUT_PAUSE_MAX, "not for ever");
    }
}
