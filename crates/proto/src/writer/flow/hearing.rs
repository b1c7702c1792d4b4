//! Whether a reader hears the group of its host.

use crate::backoff::Backoff;
use crate::time::{Duration, Instant};
use crate::tuning::writer::{GROUP_PAUSE, GROUP_PAUSE_DOUBLINGS, REQUESTS_WITHOUT_PROGRESS_MAX};

/// What is known of whether a reader hears its group: it does until it is lost.
#[derive(Debug, Default)]
pub(crate) struct Hearing {
    /// How often it was lost.
    losses: u32,
    /// It is not written to by the group before, and then when it answers.
    pub(crate) pause_end: Option<Instant>,
    /// Since when it has owed an answer and given none.
    silent_since: Option<Instant>,
    /// Requests in a row that followed no progress.
    vain: u32,
}

impl Hearing {
    /// It said something, whatever it was.
    pub(crate) const fn speaks(&mut self) {
        self.silent_since = None;
    }

    /// It asks for something, after progress or without: whether what is repeated does not reach it.
    pub(crate) const fn is_stuck(&mut self, progressed: bool) -> bool {
        self.vain = if progressed { 0 } else { self.vain + 1 };
        self.vain >= REQUESTS_WITHOUT_PROGRESS_MAX
    }

    /// It answered: it may have come back.
    pub(crate) fn answers(&mut self, now: Instant) {
        self.pause_end = self.pause_end.filter(|end| now < *end);
    }

    /// It owes an answer: whether it has for too long.
    pub(crate) fn is_silent(&mut self, now: Instant, silence: Duration) -> bool {
        now.since(*self.silent_since.get_or_insert(now)) >= silence
    }

    pub(crate) fn lost(&mut self, now: Instant) {
        let pause = Backoff::doubling(GROUP_PAUSE, GROUP_PAUSE_DOUBLINGS).pause(self.losses);
        *self = Self { losses: self.losses + 1, pause_end: now.after(pause), ..Self::default() };
    }
}
