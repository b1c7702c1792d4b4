//! Readers that answer nothing. RELIABILITY lets a reader keep a writer waiting for room for as long as the lease of its participant lasts
//! (DCPS 1.4 §2.2.3.14). That is for readers that take part: one that has answered once is waited for until its lease ends, however
//! long it is silent then. A stranger, which was announced and has never answered since, would stop a writer for good with a lease that never ends.
//!
//! Its silence alone costs even a stranger nothing: what it lacks stays while there is room. It is left out when a change has found no
//! room for `max_blocking_time`, and it has answered none of many questions since its match. Then nothing waits for it until
//! it answers; what left the history meanwhile is told to be gone, by HEARTBEAT and GAP, as to a reader that comes later.
//! [`Writer::readers_behind`] tells who holds a writer back, and who was left out.

use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::{Duration, Instant, Now};

use super::proxy::{Proxies, ReaderProxy};
use super::send::heartbeat_to;
use super::{Writer, WriterLimits};

/// A reader that does not know the writer yet learns of it in this time, unless discovery is slow.
const STRANGE_FOR: Duration = Duration::from_secs(1);
/// And it is asked so often: where 40 of 100 datagrams are lost either way, one in 200 is not heard in spite of that, and it is never asked
/// for less than a second.
const QUESTIONS_LEAST: u32 = 12;
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
    /// It has answered before, or is of the writer's own participant.
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

    /// It is of the participant that the writer is of, and no stranger.
    pub(super) const fn is_own(&mut self) {
        self.is_known = true;
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

    /// Whether it has never answered, though it was asked for so long.
    fn is_strange(&self, now: Instant, time: Duration) -> bool {
        !self.is_known && self.questions >= QUESTIONS_LEAST && !time.is_infinite() && self.lasts(now) >= time
    }

    /// Whether nobody needs to wait for its acknowledgement any more.
    pub(super) fn is_long(&self, now: Instant, limits: &WriterLimits) -> bool {
        self.is_left_out || self.is_strange(now, limits.strangers_wait_max)
    }

    /// Whether it is left out where room is wanted.
    fn is_enough(&self, now: Instant, limits: &WriterLimits) -> bool {
        !self.is_left_out
            && !limits.strangers_wait_max.is_infinite()
            && self.is_strange(now, STRANGE_FOR.min(limits.strangers_wait_max))
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

    fn hurry(&mut self, at: Option<Instant>) {
        self.due = Instant::earliest([self.due, at]);
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

    /// It is of the participant that the writer is of.
    pub(super) fn is_own(&mut self, guid: Guid) {
        if let Some(reader) = self.get_mut(guid) {
            reader.silence.is_own();
        }
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
}

impl ReaderProxy {
    /// It lacks changes, has never answered, and is waited for still.
    fn is_strange_to(&self, last: SequenceNumber) -> bool {
        self.is_awaited() && self.acknowledged < last && !self.silence.is_known
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

    fn patience_with_strangers(&self) -> Duration {
        self.config.qos.reliability.max_blocking_time.min(self.config.limits.strangers_wait_max)
    }

    /// One more question than needed fits: timers are late.
    fn pause_of_strangers(&self) -> Duration {
        let pause = self.patience_with_strangers().0 / i64::from(QUESTIONS_LEAST + 1);
        Duration(pause).max(self.config.limits.heartbeat_shortest)
    }

    /// A change finds no room. When none has for as long as the writer may wait, silent readers are left out; whether any was.
    pub(super) fn leave_out_silent(&mut self, now: Now) -> bool {
        let last = self.history.last();
        let full_since = match self.silence.full_since {
            Some((since, at)) if at == last => since,
            _ => self.silence.full_since.insert((now.mono, last)).0,
        };
        if now.mono.since(full_since) < self.patience_with_strangers() {
            if self.proxies.iter().any(|it| it.is_strange_to(last)) {
                self.silence.hurry(now.mono.after(self.pause_of_strangers()));
            }
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

    /// A reader left: it may have been the last that is asked.
    pub(super) fn forget_silent(&mut self) {
        let last = self.history.last();
        let is_asked = |it: &ReaderProxy| it.silence.is_left_out || it.is_strange_to(last);
        if !self.proxies.iter().any(is_asked) {
            self.silence.due = None;
        }
    }

    /// Asks strangers whether they are there. Those that keep others waiting for room, so often that enough questions are asked when
    /// the time is over; those that were left out, ever more rarely, but while nothing is written they hear nothing else.
    pub(super) fn ask_strangers(&mut self, now: Now, out: &mut Outbox) {
        let (mut blocks, mut any) = (false, false);
        let (guid, last, blocked) = (self.config.guid, self.history.last(), self.blocked);
        for reader in self.proxies.readers.iter_mut() {
            let is_in_the_way = blocked && reader.is_strange_to(last);
            if is_in_the_way || reader.silence.is_left_out {
                (blocks, any) = (blocks | is_in_the_way, true);
                reader.silence.asked(now.mono);
                let target = reader.target(guid, &self.config.limits);
                let heartbeat =
                    heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, reader, &target, false);
                target.send_heartbeat(&heartbeat, out);
            }
        }
        self.silence.due = None;
        if blocks {
            self.silence.due = now.mono.after(self.pause_of_strangers());
        } else if any {
            self.silence.fired(now.mono);
        }
        self.look_at_silence(now, out);
    }
}
