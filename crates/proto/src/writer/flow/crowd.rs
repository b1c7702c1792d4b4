//! How long many readers take until the last has answered: on a busy host that is the time until each had its turn. Who
//! asks sooner is answered twice by all, and makes the host busier.

use crate::backoff::Backoff;
use crate::estimate::SmoothedEstimate;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::tuning::writer::{
    FAN_OUT_PAUSE_MAX, PROMPT_READERS, READER_PAUSE_DOUBLINGS, READER_PAUSE_EACH, READER_PAUSE_MAX,
};

/// The readers of a writer, as far as their answers take time.
#[derive(Debug, Default)]
pub(in crate::writer) struct Crowd {
    /// When all were asked about changes up to this one, and have not answered yet.
    question: Option<(Instant, SequenceNumber)>,
    /// What their answers took: long ones count at once, short ones by and by.
    took: Duration,
}

impl Crowd {
    /// So many readers answer in no time.
    pub(in crate::writer) const PROMPT: usize = PROMPT_READERS;
    /// No pause is longer.
    pub(in crate::writer) const PAUSE_MAX: Duration = FAN_OUT_PAUSE_MAX;

    /// All were asked about changes up to `last`.
    pub(in crate::writer) fn asked(&mut self, now: Instant, last: SequenceNumber) {
        self.question.get_or_insert((now, last));
    }

    /// Nobody owes an answer: who did may have left.
    pub(in crate::writer) const fn forget(&mut self) {
        self.question = None;
    }

    /// All have answered about changes up to `lowest`.
    pub(in crate::writer) fn answered(&mut self, now: Instant, lowest: SequenceNumber) {
        if let Some((asked, _)) = self.question.take_if(|(_, last)| *last <= lowest) {
            let took = now.since(asked);
            self.moves::<8>(took);
        }
    }

    /// One has answered what it alone was asked so long ago. As there are many of them, each moves what is known by little.
    pub(in crate::writer) fn one_answered(&mut self, took: Duration) {
        self.moves::<64>(took.min(Self::PAUSE_MAX));
    }

    const fn moves<const PARTS: i64>(&mut self, took: Duration) {
        let mut estimate = SmoothedEstimate::<PARTS>::new(self.took.0);
        estimate.add_peak(took.0);
        self.took = Duration(estimate.get());
    }

    /// The last change that all were asked about, until all have answered.
    pub(in crate::writer) fn question(&self) -> Option<SequenceNumber> {
        self.question.map(|(_, last)| last)
    }

    pub(in crate::writer) const fn took(&self) -> Duration {
        self.took
    }

    /// First pause before those of them that owe an answer are asked again; `shortest` were they few.
    pub(in crate::writer) fn pause(&self, owing: usize, shortest: Duration) -> Duration {
        let times = (owing / Self::PROMPT).max(1) as i64;
        let usual = Duration(shortest.0.saturating_mul(times));
        // Some take longer than all did the last time.
        usual.max(Duration(self.took.0.saturating_mul(2))).min(Self::PAUSE_MAX)
    }
}

/// When one of many readers was asked by itself, or by the timer, and how often since it last answered.
#[derive(Clone, Copy, Debug)]
pub(in crate::writer) struct Asked {
    pub(in crate::writer) at: Instant,
    times: u32,
}

impl Asked {
    /// It comes, and is told and asked.
    pub(in crate::writer) const fn first(now: Instant) -> Self {
        Self { at: now, times: 1 }
    }

    /// It answered: how long ago it was asked, if that was once.
    pub(in crate::writer) fn answered(&mut self, now: Instant) -> Option<Duration> {
        (std::mem::take(&mut self.times) == 1).then(|| now.since(self.at))
    }

    /// Notes that it is asked again, if it is time: after a pause, and each time after twice as long. Who takes so long has many
    /// others to answer, or is not there.
    pub(in crate::writer) fn again(&mut self, now: Instant, pause: Duration, readers: usize) -> bool {
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
    fn a_crowd_is_given_twice_the_time_that_its_last_answer_took_and_not_more_than_that() {
        let mut crowd = Crowd::default();
        assert_eq!(crowd.pause(24, SHORTEST), Duration::from_millis(24));
        crowd.asked(ms(1_000), SequenceNumber(7));
        crowd.asked(ms(1_020), SequenceNumber(9));
        crowd.answered(ms(1_050), SequenceNumber(6));
        assert_eq!(crowd.pause(24, SHORTEST), Duration::from_millis(24), "one still owes");
        crowd.answered(ms(1_090), SequenceNumber(8));
        assert_eq!(crowd.pause(24, SHORTEST), Duration::from_millis(180));
        assert_eq!(crowd.pause(1, SHORTEST), Duration::from_millis(180));
        for round in 2..60 {
            crowd.asked(ms(1_000 * round), SequenceNumber(7));
            crowd.answered(ms(1_000 * round + 1), SequenceNumber(7));
        }
        assert_eq!(crowd.pause(24, SHORTEST), Duration::from_millis(24), "the host is idle again");
        crowd.asked(ms(90_000), SequenceNumber(7));
        crowd.answered(ms(99_000), SequenceNumber(7));
        assert_eq!(crowd.pause(24, SHORTEST), Crowd::PAUSE_MAX, "not for ever");
    }
}
