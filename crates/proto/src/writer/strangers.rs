//! What a writer does about readers that answer nothing (`silence.rs`).

use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::{Duration, Instant, Now};

use super::compose::acks::send_control;
use super::compose::submessages::heartbeat_to;
use super::record::history::History;
use super::routes::gap::GapBuilder;
use super::routes::proxies::Proxies;
use super::routes::proxy::ReaderProxy;
use super::{ReaderBehind, Writer, WriterLimits};
use crate::tuning::writer::UNRESPONSIVE_REQUESTS_MIN;

impl Proxies {
    /// Leaves out those that keep others waiting for room and have been silent for too long; how many changes
    /// they do not have.
    fn leave_out(&mut self, now: Instant, last: SequenceNumber, limits: &WriterLimits) -> u64 {
        let mut behind: u64 = 0;
        for reader in self.readers.iter_mut().filter(|it| it.reliable && it.acknowledged < last) {
            if reader.silence.is_enough(now, limits) {
                reader.silence.is_left_out = true;
                behind = behind.saturating_add(last.0.abs_diff(reader.acknowledged.0));
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
        if self.meets() {
            self.update_meets();
        }
    }

    /// Whether somebody has been silent for too long who was not before.
    fn note_silence(&mut self, now: Instant, last: SequenceNumber, limits: &WriterLimits) -> bool {
        let mut is_new = false;
        for reader in self.readers.iter_mut().filter(|it| it.reliable && it.acknowledged < last) {
            let silence = &mut reader.silence;
            is_new |= silence.is_long(now, limits) && !std::mem::replace(&mut silence.is_reported, true);
        }
        is_new
    }
}

impl ReaderProxy {
    /// It has, or will not get, everything up to here: of what was written before it was matched, what is
    /// held is still for it.
    pub(super) fn has_of(&self, history: &History) -> SequenceNumber {
        self.acknowledged.max(history.first().previous().min(self.joined_at))
    }

    /// It lacks changes, has never answered, and is waited for still.
    fn is_strange_to(&self, last: SequenceNumber) -> bool {
        self.is_awaited() && self.acknowledged < last && !self.silence.is_known
    }
}

impl Writer {
    /// The reliable readers that have not acknowledged everything, late joiners with what they lack of the
    /// history, and whether they answer at all. Those that have least hold the writer back when it has no
    /// room.
    pub fn readers_behind(&self, now: Instant) -> impl Iterator<Item = ReaderBehind> {
        let last = self.last_sequence_number();
        self.proxies.iter().filter(|it| it.reliable).filter_map(move |it| {
            let acknowledged = it.has_of(&self.history);
            (acknowledged < last).then(|| ReaderBehind {
                reader: it.guid,
                acknowledged,
                behind: last.0.abs_diff(acknowledged.0),
                matched_at: it.joined_at,
                silent_for: Some(it.silence.lasts(now)).filter(|silence| *silence > Duration::ZERO),
                is_left_out: it.silence.is_left_out,
            })
        })
    }

    /// Before another HEARTBEAT leaves: one that ends where readers came, for those that have never answered
    /// and take the first that they hear for the end of what is older than themselves
    /// ([`crate::vendor::skips_to_heartbeat`]).
    #[inline]
    pub(super) fn meet(&mut self, out: &mut Outbox) {
        if self.proxies.meets() {
            self.meet_those(out, |_| true);
        }
    }

    /// The same for one reader, which asks for a HEARTBEAT.
    pub(super) fn meet_one(&mut self, reader: Guid, out: &mut Outbox) {
        self.meet_those(out, |proxy| proxy.guid == reader);
    }

    fn meet_those(&mut self, out: &mut Outbox, which: impl Fn(&ReaderProxy) -> bool) {
        let first = self.first_number();
        for reader in self.proxies.iter().filter(|it| it.must_be_met() && which(it)) {
            let target = self.routes.target_to(reader);
            let gap =
                (reader.first_relevant > first).then(|| GapBuilder::range(first, reader.first_relevant));
            let mut heartbeat =
                heartbeat_to(&mut self.heartbeat, &self.history, &self.routes, reader, &target, true);
            let end = reader.first_relevant;
            (heartbeat.first, heartbeat.last, heartbeat.group) = (end, end.previous(), None);
            send_control(target, gap.as_ref(), Some(&heartbeat), out);
        }
    }

    fn patience_with_strangers(&self) -> Duration {
        self.config.qos.reliability.max_blocking_time.min(self.config.limits.strangers_wait_max)
    }

    /// One more question than needed fits: timers are late.
    fn pause_of_strangers(&self) -> Duration {
        let pause = self.patience_with_strangers().0 / i64::from(UNRESPONSIVE_REQUESTS_MIN + 1);
        Duration(pause).max(self.config.limits.heartbeat_shortest)
    }

    /// A change finds no room. When none has for as long as the writer may wait, silent readers are left out;
    /// whether any was.
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

    /// Asks strangers whether they are there. Those that keep others waiting for room, so often that enough
    /// questions are asked when the time is over; those that were left out, ever more rarely, but while
    /// nothing is written they hear nothing else.
    pub(super) fn ask_strangers(&mut self, now: Now, out: &mut Outbox) {
        self.meet(out);
        let (mut blocks, mut any) = (false, false);
        let (last, blocked) = (self.history.last(), self.blocked);
        for reader in self.proxies.readers.iter_mut() {
            let is_in_the_way = blocked && reader.is_strange_to(last);
            if is_in_the_way || reader.silence.is_left_out {
                (blocks, any) = (blocks | is_in_the_way, true);
                reader.silence.requested(now.mono);
                let target = self.routes.target_to(reader);
                let heartbeat =
                    heartbeat_to(&mut self.heartbeat, &self.history, &self.routes, reader, &target, false);
                send_control(target, None, Some(&heartbeat), out);
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
