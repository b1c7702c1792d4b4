//! Readers that answer nothing. RELIABILITY lets them keep a writer waiting for room (DCPS 1.4 §2.2.3.14), and a lease that never
//! ends would let them do so for ever.
//!
//! Silence alone costs a reader nothing: what it lacks stays while there is room. It is left out when a change has found no room for
//! `max_blocking_time`, and it has given no answer for [`WriterLimits::silence_max`], or never gave one at all. Then nothing waits
//! for it until it answers; what left the history meanwhile is told to be gone, by HEARTBEAT and GAP, so that it can count it as lost.
//! One that answers, but takes nothing, is not silent: that is how a reader holds a writer back, and [`Writer::readers_behind`] tells who.

use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::{Duration, Instant, Now};

use super::proxy::{Proxies, ReaderProxy};
use super::send::heartbeat_to;
use super::{Writer, WriterLimits};

/// Who was never heard may not know this writer yet: it is given as long after its match.
const STRANGE_FOR: Duration = Duration::from_secs(1);
/// And is asked so often at least, that answers are not merely lost.
const QUESTIONS_LEAST: u32 = 6;
/// Pauses between questions to readers that were left out.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// How long a reader has given no answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    /// When it was asked first since it last answered.
    since: Option<Instant>,
    /// How often it was asked since then.
    questions: u32,
    /// It answered before.
    is_known: bool,
    /// Those who wait for acknowledgements were told that it gives none.
    is_told: bool,
    /// Nothing waits for it.
    pub(super) is_left_out: bool,
}

impl Silence {
    /// It comes, and is told and asked.
    pub(super) const fn first(now: Instant) -> Self {
        Self { since: Some(now), questions: 0, is_known: false, is_told: false, is_left_out: false }
    }

    pub(super) fn asked(&mut self, now: Instant) {
        self.since.get_or_insert(now);
        self.questions = self.questions.saturating_add(1);
    }

    /// It answered: whether it had been left out.
    pub(super) const fn ends(&mut self) -> bool {
        let was_left_out = self.is_left_out;
        *self = Self { since: None, questions: 0, is_known: true, is_told: false, is_left_out: false };
        was_left_out
    }

    fn lasts(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Whether nobody needs to wait for its acknowledgement any more.
    pub(super) fn is_long(&self, now: Instant, limits: &WriterLimits) -> bool {
        self.is_left_out
            || self.questions >= QUESTIONS_LEAST
                && !limits.silence_max.is_infinite()
                && self.lasts(now) >= limits.silence_max
    }

    /// Whether it is left out where room is wanted.
    fn is_enough(&self, now: Instant, limits: &WriterLimits) -> bool {
        let is_strange = !self.is_known
            && self.questions >= QUESTIONS_LEAST
            && !limits.silence_max.is_infinite()
            && self.lasts(now) >= STRANGE_FOR.min(limits.silence_max);
        !self.is_left_out && (is_strange || self.is_long(now, limits))
    }
}

/// What the silence of readers has a writer do.
#[derive(Debug, Default)]
pub(super) struct SilenceTimer {
    /// Since when no change has found room, and the last one that had.
    full_since: Option<(Instant, SequenceNumber)>,
    /// When those that were left out are asked again, and after what pause then.
    due: Option<Instant>,
    pause: Duration,
}

impl SilenceTimer {
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    fn start(&mut self, now: Instant) {
        self.pause = PAUSE_FIRST;
        self.due = now.after(self.pause);
    }

    fn fired(&mut self, now: Instant) {
        self.pause = Duration(self.pause.0.saturating_mul(2)).min(PAUSE_MAX);
        self.due = now.after(self.pause);
    }
}

/// A reliable reader that has not acknowledged all that was written since it was matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderBehind {
    /// Its GUID.
    pub reader: Guid,
    /// It has, or does not need, every sample up to this one.
    pub acknowledged: SequenceNumber,
    /// So many samples were written after that.
    pub behind: u64,
    /// How long it has been asked for an answer and given none; `None`: it answers.
    pub silent_for: Option<Duration>,
    /// There was no room, so nothing waits for it until it answers: what left the history meanwhile it does not get.
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

impl Proxies {
    /// Leaves out those that keep others waiting for room and have been silent for too long; how many changes they do not have.
    fn leave_out(&mut self, now: Instant, last: SequenceNumber, limits: &WriterLimits) -> u64 {
        let mut behind: u64 = 0;
        for reader in self.readers.iter_mut().filter(|it| it.reliable && it.acknowledged < last) {
            if reader.silence.is_enough(now, limits) {
                reader.silence.is_left_out = true;
                behind = behind.saturating_add(last.0.abs_diff(reader.awaited().0));
            }
        }
        self.update_acknowledged();
        behind
    }

    /// It answered: it is waited for again if it was not.
    pub(super) fn heard(&mut self, guid: Guid) {
        if self.get_mut(guid).is_some_and(|reader| reader.silence.ends()) {
            self.update_acknowledged();
        }
    }

    /// Whether somebody has been silent for too long who was not before.
    fn note_silence(&mut self, now: Instant, last: SequenceNumber, limits: &WriterLimits) -> bool {
        let mut is_new = false;
        for reader in self.readers.iter_mut().filter(|it| it.reliable && it.acknowledged < last) {
            let silence = &mut reader.silence;
            is_new |= silence.is_long(now, limits) && !std::mem::replace(&mut silence.is_told, true);
        }
        is_new
    }

    fn left_out(&mut self) -> impl Iterator<Item = &mut ReaderProxy> {
        self.readers.iter_mut().filter(|reader| reader.silence.is_left_out)
    }
}

impl Writer {
    /// The reliable readers that have not acknowledged everything, and whether they answer at all. Those that have least hold the writer back
    /// when it has no room.
    pub fn readers_behind(&self, now: Instant) -> impl Iterator<Item = ReaderBehind> {
        let last = self.last_sequence_number();
        let behind = self.proxies.iter().filter(move |it| it.reliable && it.awaited() < last);
        behind.map(move |it| ReaderBehind {
            reader: it.guid,
            acknowledged: it.awaited(),
            behind: last.0.abs_diff(it.awaited().0),
            silent_for: Some(it.silence.lasts(now)).filter(|silence| *silence > Duration::ZERO),
            is_left_out: it.silence.is_left_out,
        })
    }

    /// A change finds no room. When none has for as long as the writer may wait, silent readers are left out; whether any was.
    pub(super) fn leave_out_silent(&mut self, now: Now) -> bool {
        let last = self.history.last();
        let full_since = match self.silence.full_since {
            Some((since, at)) if at == last => since,
            _ => self.silence.full_since.insert((now.mono, last)).0,
        };
        let patience = self.config.qos.reliability.max_blocking_time.min(self.config.limits.silence_max);
        if now.mono.since(full_since) < patience {
            return false;
        }
        let behind = self.proxies.leave_out(now.mono, last, &self.config.limits);
        if behind > 0 {
            self.drops.count_many(DropReason::ReaderSilent, behind);
            self.silence.start(now.mono);
            self.settle(now);
        }
        behind > 0
    }

    /// Readers were asked once more: whoever waits for those that say nothing looks again.
    pub(super) fn look_at_silence(&mut self, now: Now, out: &mut Outbox) {
        let last = self.history.last();
        let is_new = self.proxies.note_silence(now.mono, last, &self.config.limits);
        let is_left_out = self.blocked && self.leave_out_silent(now);
        if is_new || is_left_out {
            self.progress(out);
        }
    }

    /// Asks those that were left out whether they are there, ever more rarely: while nothing is written they hear nothing else.
    pub(super) fn ask_left_out(&mut self, now: Now, out: &mut Outbox) {
        let mut any = false;
        let guid = self.config.guid;
        for reader in self.proxies.left_out() {
            any = true;
            let target = reader.target(guid, &self.config.limits);
            let heartbeat =
                heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, reader, &target, false);
            target.send_heartbeat(&heartbeat, out);
        }
        if any {
            self.silence.fired(now.mono);
        } else {
            self.silence.due = None;
        }
    }
}
