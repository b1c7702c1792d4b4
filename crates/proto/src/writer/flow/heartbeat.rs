//! When a writer asks its readers what they have (RTPS 2.5 §8.4.9.2.7): with samples while they flow,
//! by a timer while somebody owes an answer, and never once everything is acknowledged. An answer that does not come
//! in the time that answers take is asked for again; when none comes at all, ever more rarely.

use std::sync::Arc;

use crate::backoff::Backoff;
use crate::payload::COPIED_BYTES_MAX;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::wire::HeartbeatGroup;

use super::crowd::Crowd;
use super::round_trip::RoundTrip;
use crate::tuning::writer::{
    CROSSING_MIN, ISOLATED_AFTER, ISOLATED_BYTES_MAX, ISOLATED_REQUEST_PERIOD, PROMPT_TRIES,
    URGENT_PERIOD_DIVISOR, URGENT_SAMPLES, WINDOW_PARTS, WINDOW_PARTS_OF_ONE,
};
use crate::writer::record::change::window_bytes;
use crate::writer::record::history::History;
use crate::writer::{WriterConfig, WriterGroup};

/// The timer and the counter of one writer's heartbeats.
#[derive(Debug)]
pub(in crate::writer) struct HeartbeatTimer {
    count: i32,
    due: Option<Instant>,
    interval: Duration,
    /// Times in a row that it went off and asked.
    tries: u32,
    round_trip: RoundTrip,
    /// `due` was brought forward: samples do not put it off.
    hurried: bool,
    /// The sample under way asks, or that did which asked last, in the midst of others, only since it is time.
    asks_in_flow: bool,
    asked_in_flow: bool,
    /// The last change that readers were asked about, and whether all of them have answered that.
    asked_about: SequenceNumber,
    is_answered: bool,
    /// The sample sent last came after a pause, but need not ask, and nobody was asked since.
    is_calm: bool,
    /// When readers were last asked.
    asked: Option<Instant>,
    /// When readers were last asked or told.
    told: Option<Instant>,
    /// When readers were last told of fragments.
    fragments: Option<Instant>,
    /// Samples sent since they were asked.
    written_since: usize,
    /// Octets of the window that samples have taken since then.
    bytes_since: usize,
    /// When the last sample was sent.
    written: Option<Instant>,
    /// The last change written.
    last: SequenceNumber,
    /// Reliable readers: so many answer when all are asked.
    readers: usize,
    /// Those of them that owe an answer.
    owing: usize,
    crowd: Crowd,
    /// Octets of the window after which they are asked again once it is half full, and of short samples.
    share_bytes: usize,
    short_share_bytes: usize,
    /// The last change was short.
    is_short: bool,
    quickest: Duration,
    shortest: Duration,
    longest: Duration,
    piggyback: Duration,
    acknowledgement: Duration,
    /// What each heartbeat tells of the publisher.
    group: Option<Arc<WriterGroup>>,
}

/// The heartbeat that a sample carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::writer) enum Piggyback {
    /// With the final flag: who misses something asks for it, others are silent.
    Tells,
    /// Without: everyone acknowledges.
    Asks,
}

impl HeartbeatTimer {
    pub(in crate::writer) fn new(config: &WriterConfig) -> Self {
        let limits = &config.limits;
        Self {
            count: 0,
            due: None,
            interval: limits.heartbeat_shortest,
            tries: 0,
            round_trip: RoundTrip::default(),
            hurried: false,
            asks_in_flow: false,
            asked_in_flow: false,
            asked_about: SequenceNumber(0),
            is_answered: false,
            is_calm: false,
            asked: None,
            told: None,
            fragments: None,
            written_since: 0,
            written: None,
            quickest: limits.heartbeat_quickest,
            bytes_since: 0,
            last: SequenceNumber(0),
            readers: 0,
            owing: 0,
            crowd: Crowd::default(),
            share_bytes: limits.unacknowledged_bytes_max / WINDOW_PARTS,
            short_share_bytes: limits.unacknowledged_bytes_max / WINDOW_PARTS,
            is_short: false,
            shortest: limits.heartbeat_shortest,
            longest: limits.heartbeat_longest,
            piggyback: limits.heartbeat_piggyback,
            acknowledgement: limits.acknowledgement_period,
            group: config.group.clone(),
        }
    }

    /// What a heartbeat from `first` to `last` tells of the publisher.
    pub(in crate::writer) fn group_info(
        &self,
        history: &History,
        first: SequenceNumber,
        last: SequenceNumber,
    ) -> Option<HeartbeatGroup> {
        self.group.as_ref()?.heartbeat(history, first, last)
    }

    /// The count of the next HEARTBEAT or HEARTBEAT_FRAG; grows with each, wrapping.
    pub(in crate::writer) const fn next_count(&mut self) -> i32 {
        self.count = self.count.wrapping_add(1);
        self.count
    }

    /// That of the last one.
    pub(in crate::writer) const fn count(&self) -> i32 {
        self.count
    }

    pub(in crate::writer) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The first pause after a question.
    pub(in crate::writer) fn pause(&self) -> Duration {
        if self.readers > Crowd::PROMPT {
            return self.crowd.pause(self.owing, self.shortest);
        }
        // An application may set a longest pause below the others.
        let patience = self.round_trip.patience().unwrap_or(self.shortest);
        patience.max(self.quickest).min(self.longest)
    }

    /// A request that comes within this time of what it asks for crossed it; `default` before any answer came.
    pub(in crate::writer) fn crossing(&self, default: Duration) -> Duration {
        let crossing = self.round_trip.crossing().unwrap_or(default);
        crossing.max(CROSSING_MIN).min(self.longest)
    }

    /// So many reliable readers answer when all are asked, and so much may be unacknowledged. One of this host is so close behind
    /// that an answer for each half of short samples keeps the writer going.
    pub(in crate::writer) const fn set_readers(&mut self, readers: usize, window_bytes: usize, is_far: bool) {
        self.readers = readers;
        self.share_bytes = window_bytes / WINDOW_PARTS;
        self.short_share_bytes =
            if readers <= 1 && !is_far { window_bytes / WINDOW_PARTS_OF_ONE } else { self.share_bytes };
    }

    /// A change took so many octets of the window.
    pub(in crate::writer) const fn wrote(&mut self, number: SequenceNumber, bytes: usize) {
        self.last = number;
        self.is_short = bytes <= window_bytes(COPIED_BYTES_MAX);
        self.bytes_since = self.bytes_since.saturating_add(bytes);
    }

    /// The next sample that leaves asks if the window is at least half full.
    pub(in crate::writer) const fn demand(&mut self) {
        if self.bytes_since > 0 {
            self.bytes_since = usize::MAX;
        }
    }

    /// One of many readers answered what it was asked so long ago.
    pub(in crate::writer) fn one_answered(&mut self, took: Duration) {
        if self.readers > Crowd::PROMPT {
            self.crowd.one_answered(took);
        }
    }

    /// How long many readers took lately until the last had answered.
    pub(in crate::writer) const fn answers_take(&self) -> Duration {
        self.crowd.took()
    }

    /// The last change that many readers were asked about, as long as some owe the answer.
    pub(in crate::writer) fn question(&self) -> Option<SequenceNumber> {
        self.crowd.question().filter(|_| self.readers > Crowd::PROMPT)
    }

    /// Not everyone was asked about all that was written.
    pub(in crate::writer) const fn is_unasked(&self) -> bool {
        self.bytes_since > 0
    }

    /// Somebody owes an acknowledgement: makes sure the timer runs.
    #[inline]
    pub(in crate::writer) fn arm(&mut self, now: Instant) {
        if self.due.is_none() {
            self.start(now);
        }
    }

    fn start(&mut self, now: Instant) {
        self.owing = self.readers;
        self.restart(now);
        if self.asked != Some(now) {
            self.flows(now);
        }
    }

    fn restart(&mut self, now: Instant) {
        self.tries = 0;
        self.interval = self.pause();
        self.due = now.after(self.interval);
    }

    /// Nobody owes anything.
    pub(in crate::writer) const fn disarm(&mut self) {
        self.crowd.forget();
        self.due = None;
        self.hurried = false;
    }

    /// A reader acknowledged something: it is there, so the back-off starts anew, for those who still owe.
    pub(in crate::writer) fn progressed(&mut self, now: Instant, owing: usize, lowest: SequenceNumber) {
        self.round_trip.answered(now);
        self.crowd.answered(now, lowest);
        self.is_answered |= lowest >= self.asked_about;
        self.owing = owing;
        self.restart(now);
        self.hurried = false;
        if self.asked_in_flow || self.is_calm {
            self.flows(now);
        }
    }

    /// A reader asked for something that it gets: it is there.
    pub(in crate::writer) fn heard(&mut self, now: Instant) {
        if self.due.is_some() && !self.hurried {
            self.restart(now);
        }
        self.tries = 0;
        self.interval = self.pause();
    }

    /// Asks again soon: something was left out that the readers must ask for.
    pub(in crate::writer) fn hurry(&mut self, at: Instant) {
        self.hurried = true;
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// What heartbeat a sample sent now should carry; `urgent` when the window is half full, `unhurried` when few readers, all on
    /// this host, are asked, and nothing waits for their answers. While samples flow they ask often enough, so the timer waits until they
    /// pause.
    pub(in crate::writer) fn piggyback(
        &mut self,
        now: Instant,
        urgent: bool,
        unhurried: bool,
    ) -> Option<Piggyback> {
        self.written_since += 1;
        let lone = self.written.replace(now).is_none_or(|before| now.since(before) >= ISOLATED_AFTER)
            && self.readers <= Crowd::PROMPT;
        self.is_calm = lone
            && unhurried
            && self.is_answered
            && self.bytes_since <= ISOLATED_BYTES_MAX
            && since(self.asked, now) < ISOLATED_REQUEST_PERIOD;
        if self.due.is_some() && !self.hurried {
            self.flows(now);
        }
        if !self.is_calm && (lone || self.must_ask_for_room(now, urgent)) {
            self.asks_in_flow = !lone && !urgent;
            return Some(Piggyback::Asks);
        }
        let tells = since(self.told, now) >= self.piggyback;
        if tells {
            self.told = Some(now);
        }
        tells.then_some(Piggyback::Tells)
    }

    /// Samples follow each other. As the timer has to know of a shorter pause at once, and would find nothing to do in the end,
    /// one that asks in their midst is given no shorter one than the others.
    fn flows(&mut self, now: Instant) {
        let least = if self.is_calm { ISOLATED_REQUEST_PERIOD } else { self.shortest };
        self.due = now.after(self.interval.max(least));
    }

    /// Whether it is time to ask again while samples flow; when urgent, after an eighth of a millisecond or with every
    /// eighth sample, whichever comes first.
    pub(in crate::writer) fn must_ask(&self, now: Instant, urgent: bool) -> bool {
        let asked = since(self.asked, now);
        asked >= self.acknowledgement
            || urgent
                && (asked.0 >= self.piggyback.0 / URGENT_PERIOD_DIVISOR
                    || self.written_since >= URGENT_SAMPLES)
    }

    /// The same for short samples, which come so often that answers would cost as much as they do: readers are asked by
    /// quarters of the window or halves, and by time the more rarely the more they are.
    fn must_ask_for_room(&self, now: Instant, urgent: bool) -> bool {
        let share_bytes = if self.is_short { self.short_share_bytes } else { self.share_bytes };
        let period = Duration(self.acknowledgement.0.saturating_mul(self.readers.max(1) as i64));
        since(self.asked, now) >= period.min(Crowd::PAUSE_MAX.max(self.acknowledgement))
            || urgent && self.bytes_since >= share_bytes
    }

    /// Whether readers should be told of fragments of a sample that is still being sent.
    pub(in crate::writer) fn fragments_due(&mut self, now: Instant) -> bool {
        let due = self.fragments.is_none_or(|told| now.since(told) >= self.pause());
        if due {
            self.fragments = Some(now);
        }
        due
    }

    /// One reader was asked; the others were not.
    pub(in crate::writer) fn asked_one(&mut self, now: Instant) {
        if self.readers > 1 {
            self.put_off(now);
        } else {
            self.asked(now);
        }
    }

    /// Readers were asked by a heartbeat with the final flag clear.
    pub(in crate::writer) fn asked(&mut self, now: Instant) {
        self.round_trip.asked(now);
        self.asked = Some(now);
        (self.asked_about, self.is_answered, self.is_calm) = (self.last, false, false);
        self.told = Some(now);
        self.written_since = 0;
        if self.due.is_some() || self.bytes_since > 0 {
            self.crowd.asked(now, self.last);
        }
        self.bytes_since = 0;
        self.put_off(now);
        self.asked_in_flow = std::mem::take(&mut self.asks_in_flow);
        if self.asked_in_flow && self.due.is_some() {
            self.flows(now);
        }
    }

    /// Who was asked is given time to answer.
    fn put_off(&mut self, now: Instant) {
        self.hurried = false;
        if self.due.is_some() {
            self.due = now.after(self.interval);
        }
    }

    /// The timer went off. If readers were asked, and some times before in vain, the next pause is twice as long; if
    /// what they owe was not even sent yet, it is not.
    pub(in crate::writer) fn fired(&mut self, now: Instant, asked: bool) {
        self.tries += u32::from(asked);
        if asked && self.tries > PROMPT_TRIES {
            self.interval = Backoff::new(self.interval, self.longest).after(self.interval).max(self.interval);
        }
        self.due = now.after(self.interval);
        self.hurried = false;
    }
}

/// How long ago that was; for ever when it never was.
fn since(then: Option<Instant>, now: Instant) -> Duration {
    then.map_or(Duration::INFINITE, |then| now.since(then))
}
