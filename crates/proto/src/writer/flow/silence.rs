//! Readers that answer nothing. RELIABILITY lets a reader keep a writer waiting for room for as long as the
//! lease of its participant lasts (DCPS 1.4 §2.2.3.14). That is for readers that take part: one that has
//! answered once is waited for until its lease ends, however long it is silent then. So is one of the own
//! process, which cannot but live. A stranger, which was announced by another process and has never answered
//! since, would stop a writer for good with a lease that never ends.
//!
//! Its silence alone costs even a stranger nothing: what it lacks stays while there is room. It is left out
//! when a change has found no room for `max_blocking_time`, and it has answered none of many requests since
//! its match. Then nothing waits for it until it answers; what left the history meanwhile is told to be gone,
//! by HEARTBEAT and GAP, as to a reader that comes later. [`crate::writer::Writer::readers_behind`] tells who
//! holds a writer back, and who was left out.

use crate::backoff::Backoff;
use crate::guid::Guid;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};

use crate::tuning::writer::{
    UNRESPONSIVE_AFTER, UNRESPONSIVE_PAUSE, UNRESPONSIVE_PAUSE_MAX, UNRESPONSIVE_REQUESTS_MIN,
};
use crate::writer::WriterLimits;

const PAUSES: Backoff = Backoff::new(UNRESPONSIVE_PAUSE, UNRESPONSIVE_PAUSE_MAX);

/// How long a reader has given no answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// When it was asked first since it last answered.
    since: Option<Instant>,
    /// How often it was asked since then.
    requests: u32,
    /// It has answered before, or is of the writer's own process.
    pub(crate) is_known: bool,
    /// Those who wait for acknowledgements were notified that it gives none.
    pub(crate) is_reported: bool,
    /// Nothing waits for it.
    pub(crate) is_left_out: bool,
}

impl Silence {
    /// It is matched, and a HEARTBEAT requests its acknowledgement. One of the own process is no stranger: it
    /// lives and dies with the writer.
    pub(crate) const fn first(now: Instant, is_own: bool) -> Self {
        Self { since: Some(now), requests: 0, is_known: is_own, is_reported: false, is_left_out: false }
    }

    pub(crate) fn requested(&mut self, now: Instant) {
        self.since.get_or_insert(now);
        self.requests = self.requests.saturating_add(1);
    }

    /// It answered: whether it had been left out.
    pub(crate) const fn ends(&mut self) -> bool {
        let was_left_out = self.is_left_out;
        *self = Self { since: None, requests: 0, is_known: true, is_reported: false, is_left_out: false };
        was_left_out
    }

    pub(crate) fn lasts(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Whether it has never answered, though it was asked for so long.
    fn is_strange(&self, now: Instant, time: Duration) -> bool {
        !self.is_known
            && self.requests >= UNRESPONSIVE_REQUESTS_MIN
            && !time.is_infinite()
            && self.lasts(now) >= time
    }

    /// Whether nobody needs to wait for its acknowledgement any more.
    pub(crate) fn is_long(&self, now: Instant, limits: &WriterLimits) -> bool {
        self.is_left_out || self.is_strange(now, limits.strangers_wait_max)
    }

    /// Whether it is left out where room is wanted.
    pub(crate) fn is_enough(&self, now: Instant, limits: &WriterLimits) -> bool {
        !self.is_left_out
            && !limits.strangers_wait_max.is_infinite()
            && self.is_strange(now, UNRESPONSIVE_AFTER.min(limits.strangers_wait_max))
    }
}

/// What the silence of readers has a writer do.
#[derive(Debug, Default)]
pub(crate) struct SilenceTimer {
    /// Since when no change has found room, and the last one that had.
    pub(crate) full_since: Option<(Instant, SequenceNumber)>,
    /// When those that were left out are asked again, and after what pause then.
    pub(crate) due: Option<Instant>,
    pause: Duration,
}

impl SilenceTimer {
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(crate) fn hurry(&mut self, at: Option<Instant>) {
        self.due = Instant::earliest([self.due, at]);
    }

    pub(crate) fn start(&mut self, now: Instant) {
        self.pause = UNRESPONSIVE_PAUSE;
        self.due = now.after(self.pause);
    }

    pub(crate) fn fired(&mut self, now: Instant) {
        self.pause = PAUSES.after(self.pause);
        self.due = now.after(self.pause);
    }
}

/// A reliable reader that has not acknowledged all that is for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderBehind {
    /// Its GUID.
    pub reader: Guid,
    /// It has, or does not need, every sample up to this one.
    pub acknowledged: SequenceNumber,
    /// So many samples were written after that.
    pub behind: u64,
    /// The last sample when it was matched. What it lacks up to there is history for a late joiner, whose
    /// acknowledgement nobody waits for.
    pub matched_at: SequenceNumber,
    /// How long it has been asked for an answer and given none; `None`: it answers.
    pub silent_for: Option<Duration>,
    /// There was no room, so nothing waits for it until it answers: what left the history meanwhile it does
    /// not get.
    pub is_left_out: bool,
}

impl std::fmt::Display for ReaderBehind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "reader {}, which is {} samples behind and ", self.reader, self.behind)?;
        match self.silent_for {
            Some(silence) => write!(f, "has answered nothing for {} ms", silence.0 / 1_000_000)?,
            None => f.write_str("answers")?,
        }
        if self.is_left_out { f.write_str(" (not waited for until it does)") } else { Ok(()) }
    }
}
