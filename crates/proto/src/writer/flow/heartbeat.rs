//! The state that feeds the acknowledgement policy (`ack_policy.rs`), and the timer that requests
//! acknowledgements while somebody owes one, and never once everything is acknowledged. An answer that does
//! not come in the time that answers take is asked for again; when none comes at all, ever more rarely.

use std::sync::Arc;

use crate::payload::COPIED_BYTES_MAX;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::wire::HeartbeatGroup;

use super::ack_policy::{self, Decision, Situation, Spacing};
use super::fan_out::FanOut;
use super::round_trip::RoundTrip;
use crate::tuning::writer::{CROSSING_MIN, PROMPT_READERS};
use crate::writer::record::change::window_bytes;
use crate::writer::record::history::History;
use crate::writer::{WriterConfig, WriterGroup, WriterLimits};

/// The timer and the counter of one writer's heartbeats.
#[derive(Debug)]
pub(crate) struct HeartbeatTimer {
    count: i32,
    /// What each heartbeat says of the publisher.
    group: Option<Arc<WriterGroup>>,
    limits: WriterLimits,
    request: Request,
    sample: Sample,
    timer: Timer,
    round_trip: RoundTrip,
    fan_out: FanOut,
    /// Reliable readers: so many answer when all are asked.
    readers: usize,
    /// There is one, on this host.
    is_single_and_near: bool,
    /// So much may be unacknowledged.
    window_bytes: usize,
    /// When a HEARTBEAT_FRAG was last sent.
    fragments: Option<Instant>,
}

/// The last request for acknowledgements, and what happened since.
#[derive(Debug)]
struct Request {
    at: Option<Instant>,
    /// When a HEARTBEAT of either kind was last sent.
    heartbeat_at: Option<Instant>,
    /// Samples sent since.
    samples: usize,
    /// Octets of the window that samples have taken since.
    bytes: usize,
    /// The last change that it was about, as long as not all have answered.
    unanswered: Option<SequenceNumber>,
    /// Whether it was in the midst of a flow, only since it was time.
    spacing: Spacing,
}

/// The last sample.
#[derive(Debug, Default)]
struct Sample {
    number: SequenceNumber,
    /// When it was sent.
    sent: Option<Instant>,
    is_short: bool,
    spacing: Spacing,
}

/// When readers are asked that owe an answer.
#[derive(Debug)]
struct Timer {
    due: Option<Instant>,
    timeout: Duration,
    /// Times in a row that it went off and asked.
    tries: u32,
    /// `due` was brought forward: samples do not put it off.
    is_brought_forward: bool,
    /// Readers that owe an answer.
    owing: usize,
}

/// The heartbeat that a sample carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piggyback {
    /// With the final flag: who misses something asks for it, others are silent.
    Final,
    /// Without: everyone acknowledges.
    Request,
}

impl HeartbeatTimer {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        let limits = &config.limits;
        Self {
            count: 0,
            group: config.group.clone(),
            limits: limits.clone(),
            request: Request {
                at: None,
                heartbeat_at: None,
                samples: 0,
                bytes: 0,
                unanswered: Some(SequenceNumber(0)),
                spacing: Spacing::Asked,
            },
            sample: Sample::default(),
            timer: Timer {
                due: None,
                timeout: limits.heartbeat_shortest,
                tries: 0,
                is_brought_forward: false,
                owing: 0,
            },
            round_trip: RoundTrip::default(),
            fan_out: FanOut::default(),
            readers: 0,
            is_single_and_near: false,
            window_bytes: limits.unacknowledged_bytes_max,
            fragments: None,
        }
    }

    /// What a heartbeat from `first` to `last` says of the publisher.
    pub(crate) fn group_info(
        &self,
        history: &History,
        first: SequenceNumber,
        last: SequenceNumber,
    ) -> Option<HeartbeatGroup> {
        self.group.as_ref()?.heartbeat(history, first, last)
    }

    /// The count of the next HEARTBEAT or HEARTBEAT_FRAG; grows with each, wrapping.
    pub(crate) const fn next_count(&mut self) -> i32 {
        self.count = self.count.wrapping_add(1);
        self.count
    }

    /// That of the last one.
    pub(crate) const fn count(&self) -> i32 {
        self.count
    }

    pub(crate) const fn due(&self) -> Option<Instant> {
        self.timer.due
    }

    /// The first pause after a request.
    pub(crate) fn pause(&self) -> Duration {
        let of_many = || self.fan_out.pause(self.timer.owing, self.limits.heartbeat_shortest);
        ack_policy::timeout(self.readers, self.round_trip.rto(), of_many, &self.limits)
    }

    /// A request of a reader that comes within this time of what it asks for crossed it; `default` before any
    /// answer came.
    pub(crate) fn crossing(&self, default: Duration) -> Duration {
        let crossing = self.round_trip.crossing().unwrap_or(default);
        crossing.max(CROSSING_MIN).min(self.limits.heartbeat_longest)
    }

    /// So many reliable readers answer when all are asked, and so much may be unacknowledged.
    pub(crate) const fn set_readers(&mut self, readers: usize, window_bytes: usize, is_far: bool) {
        self.readers = readers;
        self.window_bytes = window_bytes;
        self.is_single_and_near = readers <= 1 && !is_far;
    }

    /// A change took so many octets of the window.
    pub(crate) const fn wrote(&mut self, number: SequenceNumber, bytes: usize) {
        self.sample.number = number;
        self.sample.is_short = bytes <= window_bytes(COPIED_BYTES_MAX);
        self.request.bytes = self.request.bytes.saturating_add(bytes);
    }

    /// The next sample that leaves asks if the window is at least half full.
    pub(crate) const fn request_soon(&mut self) {
        if self.request.bytes > 0 {
            self.request.bytes = usize::MAX;
        }
    }

    /// One of many readers answered what it was asked so long ago.
    pub(crate) fn one_answered(&mut self, took: Duration) {
        if self.readers > PROMPT_READERS {
            self.fan_out.one_answered(took);
        }
    }

    /// How long many readers took lately until the last had answered.
    pub(crate) const fn answers_take(&self) -> Duration {
        self.fan_out.took()
    }

    /// The last change that many readers were asked about, as long as some owe the answer.
    pub(crate) fn pending_request(&self) -> Option<SequenceNumber> {
        self.fan_out.request().filter(|_| self.readers > PROMPT_READERS)
    }

    /// Not everyone was asked about all that was written.
    pub(crate) const fn is_unrequested(&self) -> bool {
        self.request.bytes > 0
    }

    /// Somebody owes an acknowledgement: makes sure the timer runs.
    #[inline]
    pub(crate) fn arm(&mut self, now: Instant) {
        if self.timer.due.is_none() {
            self.start(now);
        }
    }

    fn start(&mut self, now: Instant) {
        self.timer.owing = self.readers;
        self.restart(now);
        if self.request.at != Some(now) {
            self.wait(now, self.flow());
        }
    }

    fn restart(&mut self, now: Instant) {
        self.timer.tries = 0;
        self.timer.timeout = self.pause();
        self.timer.due = now.after(self.timer.timeout);
    }

    /// Nobody owes anything.
    pub(crate) const fn disarm(&mut self) {
        self.fan_out.forget();
        self.timer.due = None;
        self.timer.is_brought_forward = false;
    }

    /// A reader acknowledged something: it is there, so the back-off starts anew, for those who still owe.
    pub(crate) fn progressed(&mut self, now: Instant, owing: usize, lowest: SequenceNumber) {
        self.round_trip.answered(now);
        self.fan_out.answered(now, lowest);
        self.request.unanswered = self.request.unanswered.filter(|last| lowest < *last);
        self.timer.owing = owing;
        self.restart(now);
        self.timer.is_brought_forward = false;
        let is_isolated = self.sample.spacing == Spacing::Isolated;
        self.wait(now, if is_isolated { Spacing::Isolated } else { self.request.spacing });
    }

    /// A reader asked for something that it gets: it is there.
    pub(crate) fn heard(&mut self, now: Instant) {
        if self.timer.due.is_some() && !self.timer.is_brought_forward {
            self.restart(now);
        }
        self.timer.tries = 0;
        self.timer.timeout = self.pause();
    }

    /// Asks again soon: something was left out that the readers must ask for.
    pub(crate) fn bring_forward(&mut self, at: Instant) {
        self.timer.is_brought_forward = true;
        self.timer.due = Some(self.timer.due.map_or(at, |due| due.min(at)));
    }

    /// What heartbeat a sample sent now should carry; `urgent` when the window is half full, `unhurried` when
    /// few readers, all on this host, are asked, and nothing waits for their answers.
    #[inline]
    pub(crate) fn piggyback(&mut self, now: Instant, urgent: bool, unhurried: bool) -> Option<Piggyback> {
        self.request.samples += 1;
        let before = self.sample.sent.replace(now);
        let mut situation = self.situation(now, urgent);
        situation.since_sample = since(before, now);
        situation.may_wait = unhurried;
        let (decision, spacing) = ack_policy::decide(&situation, &self.limits);
        self.sample.spacing = spacing;
        if self.timer.due.is_some() && !self.timer.is_brought_forward {
            self.wait(now, self.flow());
        }
        match decision {
            Decision::No => None,
            Decision::Final => {
                self.request.heartbeat_at = Some(now);
                Some(Piggyback::Final)
            }
            Decision::Ask => Some(Piggyback::Request),
        }
    }

    /// Whether readers are asked with queued changes that were just sent.
    pub(crate) fn requests_with_queued(&self, now: Instant, urgent: bool) -> bool {
        let situation = Situation { is_queued: true, ..self.situation(now, urgent) };
        ack_policy::decide(&situation, &self.limits).0 == Decision::Ask
    }

    #[inline]
    fn situation(&self, now: Instant, is_half_full: bool) -> Situation {
        Situation {
            bytes: self.request.bytes,
            samples: self.request.samples,
            since_request: since(self.request.at, now),
            since_heartbeat: since(self.request.heartbeat_at, now),
            since_sample: Duration::ZERO,
            readers: self.readers,
            is_answered: self.request.unanswered.is_none(),
            is_half_full,
            share_bytes: ack_policy::share(self.window_bytes, self.is_single_and_near, self.sample.is_short),
            may_wait: false,
            is_queued: false,
        }
    }

    /// How the timer is put off by the last sample, whether or not that asks.
    fn flow(&self) -> Spacing {
        if self.sample.spacing == Spacing::Isolated { Spacing::Isolated } else { Spacing::Flow }
    }

    fn wait(&mut self, now: Instant, spacing: Spacing) {
        self.timer.due = now.after(spacing.pause(self.timer.timeout, self.limits.heartbeat_shortest));
    }

    /// Whether a HEARTBEAT_FRAG is due of a sample that is still being sent.
    pub(crate) fn fragments_due(&mut self, now: Instant) -> bool {
        let due = self.fragments.is_none_or(|told| now.since(told) >= self.pause());
        if due {
            self.fragments = Some(now);
        }
        due
    }

    /// One reader was asked; the others were not.
    pub(crate) fn requested_one(&mut self, now: Instant) {
        if self.readers > 1 {
            self.put_off(now, Spacing::Asked);
        } else {
            self.requested(now);
        }
    }

    /// Readers were asked by a heartbeat with the final flag clear.
    pub(crate) fn requested(&mut self, now: Instant) {
        self.round_trip.asked(now);
        if self.timer.due.is_some() || self.request.bytes > 0 {
            self.fan_out.requested(now, self.sample.number);
        }
        let is_in_flow = self.sample.spacing == Spacing::AskedInFlow;
        let spacing = if is_in_flow { Spacing::AskedInFlow } else { Spacing::Asked };
        self.request = Request {
            at: Some(now),
            heartbeat_at: Some(now),
            samples: 0,
            bytes: 0,
            unanswered: Some(self.sample.number),
            spacing,
        };
        self.sample.spacing = Spacing::Asked;
        self.put_off(now, spacing);
    }

    /// Who was asked is given time to answer.
    fn put_off(&mut self, now: Instant, spacing: Spacing) {
        self.timer.is_brought_forward = false;
        if self.timer.due.is_some() {
            self.wait(now, spacing);
        }
    }

    /// The timer went off, and asked or not.
    pub(crate) fn fired(&mut self, now: Instant, asked: bool) {
        if asked {
            self.timer.tries += 1;
            self.timer.timeout =
                ack_policy::next_timeout(self.timer.timeout, self.timer.tries, self.limits.heartbeat_longest);
        }
        self.timer.due = now.after(self.timer.timeout);
        self.timer.is_brought_forward = false;
    }
}

/// How long ago that was; for ever when it never was.
#[inline]
fn since(then: Option<Instant>, now: Instant) -> Duration {
    then.map_or(Duration::INFINITE, |then| now.since(then))
}
