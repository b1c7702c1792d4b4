//! Samples that share datagrams. A lone sample leaves at once. While an application writes without a
//! pause, and while LATENCY_BUDGET (DCPS 1.4 §2.2.3.8) or `suspend_publications` allow it, small samples
//! wait for each other: until a batch is full, for a fraction of a millisecond, or until told to leave.

use crate::estimate::SmoothedEstimate;
use crate::outbox::Outbox;
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::time::{Duration, Instant, Now};
use crate::wire::Heartbeat;

use super::submessages::{encode, heartbeat};
use crate::writer::flow::class::Class;
use crate::writer::flow::crowd::Crowd;
use crate::writer::flow::heartbeat::Piggyback;
use crate::writer::record::change::Change;
use crate::writer::routes::target::{INLINE_QOS_BYTES_MAX, Target};
use crate::writer::{Writer, WriterLimits};

/// So many writes without a pause are a flow, and so many where sending one costs that much, which is to many readers alone.
const FLOW_WRITES: u32 = 8;
const COSTLY_FLOW_WRITES: u32 = 2;
const COSTLY: Duration = Duration::from_micros(50);
/// To many readers a pause below this part of what sending takes is none: who wakes them finds cold caches.
const COST_PARTS_OF_PAUSE: i64 = 4;
/// Sending to one reader counts as no more: the rest is the time that others had the core.
const COST_OF_READER: Duration = Duration::from_micros(10);
/// After so many a longer pause interrupts the flow, but does not end it.
const LONG_FLOW_WRITES: u32 = 64;
/// A sample of a flow waits for others as long as sending so many batches takes, and that at most.
const COSTS_OF_WAIT: i64 = 2;
const COSTLY_WAIT_MAX: Duration = Duration::from_millis(4);
/// After so many, which take milliseconds, its last samples wait for so long: the timer looks after it no more often.
const GREAT_FLOW_WRITES: u32 = 4_096;
const GREAT_FLOW_WAIT: Duration = Duration::from_millis(1);
/// A batch of so many octets and samples is full, whatever it may have: longer ones of short samples save nothing.
const USUAL_BYTES: usize = 32 << 10;
const USUAL_SAMPLES: usize = 230;
/// What a sample adds to a batch beside its payload: about its headers and inline QoS.
const SAMPLE_OVERHEAD_BYTES: usize = 72;

/// Whether a batch of so many octets and samples is full.
pub(in crate::writer) const fn is_full(bytes: usize, samples: usize, bytes_max: usize) -> bool {
    bytes > bytes_max || bytes >= USUAL_BYTES && samples >= USUAL_SAMPLES
}

/// How the application writes, and what waits.
#[derive(Debug, Default)]
pub(in crate::writer) struct Batch {
    /// Writes in a row without a pause.
    streak: u32,
    /// Writes of the flow, of which each interruption takes a quarter.
    writes: u32,
    /// Writes without a pause since the flow began. With many it is a great one; interruptions that its last samples wait out leave
    /// it one, and do not keep it from becoming one.
    since_begun: u32,
    /// When the last write was over.
    over: Option<Instant>,
    /// The next write follows one that waited for room: its pause says nothing.
    blocked: bool,
    /// Publications are suspended.
    suspended: bool,
    /// Octets that wait, 0 when nothing does, and the samples they are.
    bytes: usize,
    samples: usize,
    /// Plain samples of up to so many octets join them unasked; `None`: none does.
    pub(in crate::writer) joining_bytes_max: Option<usize>,
    /// The last call added one to them, and moved no deadline.
    pub(in crate::writer) joined: bool,
    /// When they leave at the latest; of a batch that was full, when the next would at the earliest.
    due: Option<Instant>,
    /// When what is being handed over was composed, of few readers a batch alone, and how long that took lately.
    leaving: Option<Instant>,
    cost: SmoothedEstimate<4>,
    /// Readers that it goes to.
    readers: usize,
    /// The datagrams they share, for each class of readers.
    drafts: [Draft; 2],
}

/// The datagrams of a batch for one class, of which the last is open while anything waits.
#[derive(Debug, Default)]
struct Draft {
    out: Outbox,
    is_open: bool,
}

impl Draft {
    /// Adds a sample, which fits an empty datagram.
    fn put(&mut self, target: &Target<'_>, number: SequenceNumber, change: &Change<'_>, inline_qos: &[u8]) {
        let is_open = std::mem::replace(&mut self.is_open, true);
        let mut message = if is_open { self.out.resume() } else { target.open(&mut self.out) };
        if !target.put_data(&mut message, number, change, inline_qos) {
            message.finish();
            message = target.open(&mut self.out);
            let _ = target.put_data(&mut message, number, change, inline_qos);
        }
        message.pause();
    }

    /// Octets that the open datagram has room for, if it is to have so many at most.
    fn room_bytes(&mut self, bytes_max: usize) -> Option<usize> {
        self.is_open.then(|| {
            let message = self.out.resume();
            let bytes = message.remaining().min(bytes_max.saturating_sub(message.len()));
            message.pause();
            bytes
        })
    }

    /// Adds fragments of a sample without inline QoS, from `first` on, as many as fit of `most`.
    fn put_fragments(
        &mut self,
        target: &Target<'_>,
        number: SequenceNumber,
        change: &Change<'_>,
        (first, most): (FragmentNumber, FragmentNumber),
    ) {
        let is_open = std::mem::replace(&mut self.is_open, true);
        let mut message = if is_open { self.out.resume() } else { target.open(&mut self.out) };
        let _ = target.put_fragments(&mut message, number, change, (first, most), &[]);
        message.pause();
    }

    /// Nobody is left to hear it.
    fn discard(&mut self) {
        self.is_open = false;
        self.out.clear_transmits();
    }

    /// Moves the datagrams to `out`, with a heartbeat at the end.
    fn leave(&mut self, target: &Target<'_>, heartbeat: Option<&Heartbeat>, out: &mut Outbox) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let mut message = self.out.resume();
        if let Some(heartbeat) = heartbeat
            && !message.heartbeat(heartbeat)
        {
            message.finish();
            target.send_heartbeat(heartbeat, &mut self.out);
        } else {
            message.finish();
        }
        out.append(&mut self.out);
    }
}

impl Batch {
    /// Octets that the datagram to readers of this host has room for, if one waits that is to have so many at most.
    pub(in crate::writer) fn room_bytes(&mut self, bytes_max: usize) -> Option<usize> {
        let [draft, _] = &mut self.drafts;
        draft.room_bytes(bytes_max)
    }

    /// Adds a sample for readers of this host, which count: its fragments from the one given on, as many as fit of a number; all of it in one
    /// piece, if none is given.
    pub(in crate::writer) fn put(
        &mut self,
        target: &Target<'_>,
        number: SequenceNumber,
        change: &Change<'_>,
        part: Option<(FragmentNumber, FragmentNumber)>,
        bytes: usize,
    ) {
        let [draft, _] = &mut self.drafts;
        match part {
            Some(part) => draft.put_fragments(target, number, change, part),
            None => draft.put(target, number, change, &[]),
        }
        self.bytes += bytes + SAMPLE_OVERHEAD_BYTES;
    }

    /// Adds a sample that is like those which wait for readers of this host. Whether it is the last that does.
    #[inline]
    pub(in crate::writer) fn put_like(
        &mut self,
        target: &Target<'_>,
        number: SequenceNumber,
        change: &Change<'_>,
        limits: &WriterLimits,
    ) -> bool {
        let bytes = change.payload.len() + SAMPLE_OVERHEAD_BYTES;
        let [draft, _] = &mut self.drafts;
        draft.put(target, number, change, &[]);
        self.bytes += bytes;
        self.samples += 1;
        self.is_full(bytes, limits)
    }

    /// Whether one sample waits for others.
    pub(in crate::writer) const fn is_first(&self) -> bool {
        self.samples == 1
    }

    /// When what waits leaves at the latest.
    pub(in crate::writer) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether it leaves now, after a sample of so many octets: another one like it would be too much.
    const fn is_full(&self, bytes: usize, limits: &WriterLimits) -> bool {
        is_full(self.bytes + bytes, 0, limits.batch_bytes) || is_full(self.bytes, self.samples, usize::MAX)
    }

    /// What sending costs where many readers make it costly.
    fn cost_of_many(&self) -> Option<Duration> {
        let most = Duration(COST_OF_READER.0.saturating_mul(self.readers as i64));
        (self.readers > Crowd::PROMPT).then(|| Duration(self.cost.get()).min(most))
    }

    /// A shorter pause is none.
    fn pause_least(&self, limits: &WriterLimits) -> Duration {
        self.cost_of_many()
            .map_or(limits.flow_pause, |cost| Duration(cost.0 / COST_PARTS_OF_PAUSE).min(limits.flow_wait))
    }

    /// Whether sending is to many readers, and costs that much.
    fn is_costly(&self) -> bool {
        self.cost_of_many().is_some_and(|cost| cost >= COSTLY)
    }

    /// So many writes without a pause are a flow.
    fn flow_writes(&self) -> u32 {
        if self.is_costly() { COSTLY_FLOW_WRITES } else { FLOW_WRITES }
    }

    /// Whether the application writes without a pause and will write again any moment.
    pub(in crate::writer) fn is_flowing(&self, now: Instant, limits: &WriterLimits) -> bool {
        self.streak >= self.flow_writes() && self.over.is_some_and(|over| now.since(over) < limits.flow_wait)
    }

    /// Whether the application had paused before a write that begins now.
    pub(in crate::writer) fn follows_pause(&self, now: Instant, limits: &WriterLimits) -> bool {
        !self.blocked && self.over.is_none_or(|over| now.since(over) >= limits.flow_pause)
    }

    /// A sample leaves alone, to so many readers.
    pub(in crate::writer) const fn leaves_alone(&mut self, now: Instant, readers: usize) {
        self.readers = readers;
        if readers > Crowd::PROMPT {
            self.leaving = Some(now);
        }
    }

    /// A write found no room.
    pub(in crate::writer) const fn blocked(&mut self) {
        self.blocked = true;
    }

    /// A write begins that follows others without a pause, or whose sample may wait for others whatever the pause was. If it is neither,
    /// it has not begun.
    #[inline]
    pub(in crate::writer) fn goes_on(
        &mut self,
        now: Instant,
        budget: Duration,
        limits: &WriterLimits,
    ) -> bool {
        let follows = self.over.is_some_and(|over| now.since(over) < limits.flow_pause);
        (follows || self.suspended || budget > Duration::ZERO) && self.begin(now, budget, limits)
    }

    /// One more write without a pause.
    const fn follow(&mut self, now: Instant) {
        self.streak = self.streak.saturating_add(1);
        self.writes = self.writes.saturating_add(1);
        self.since_begun = self.since_begun.saturating_add(1);
        self.over = Some(now);
    }

    /// A write begins: whether its sample may wait for others.
    fn begin(&mut self, now: Instant, budget: Duration, limits: &WriterLimits) -> bool {
        let pause = self.over.map_or(Duration::INFINITE, |over| now.since(over));
        if pause < limits.flow_pause || pause < self.pause_least(limits) || std::mem::take(&mut self.blocked)
        {
            self.follow(now);
        } else if pause < limits.flow_wait || self.writes >= LONG_FLOW_WRITES && pause < limits.batch_wait_max
        {
            // As when the host keeps the application from running for a moment, or lets many others run first: this
            // sample leaves at once, and when the next follows without a pause the flow goes on. Where that wakes many it waits.
            if !self.is_costly() {
                self.streak = self.streak.min(FLOW_WRITES - 1);
            }
            self.writes -= self.writes / 4;
            if pause >= GREAT_FLOW_WAIT {
                self.since_begun = 0;
            }
        } else {
            (self.streak, self.writes, self.since_begun) = (0, 0, 0);
        }
        self.over = Some(now);
        self.streak >= self.flow_writes() || self.suspended || budget > Duration::ZERO
    }

    /// How long a sample may wait for others. In a flow, sending too early costs more where there are many readers, or a
    /// busy host.
    fn patience(&self, budget: Duration, limits: &WriterLimits) -> Duration {
        if self.suspended {
            return Duration::INFINITE;
        }
        if budget > Duration::ZERO {
            return budget.min(limits.batch_wait_max);
        }
        self.patience_in_flow(limits)
    }

    /// How long that is in a flow.
    pub(in crate::writer) fn patience_in_flow(&self, limits: &WriterLimits) -> Duration {
        let costly = Duration(self.cost.get().saturating_mul(COSTS_OF_WAIT)).min(COSTLY_WAIT_MAX);
        let is_great = self.since_begun >= GREAT_FLOW_WRITES;
        let least = if is_great { GREAT_FLOW_WAIT } else { limits.flow_wait };
        least.max(costly)
    }
}

impl Writer {
    /// The datagrams of the last call were handed over at `now`: how long that took is no pause of the
    /// application's.
    pub fn sent(&mut self, now: Instant) {
        if let Some(leaving) = self.batch.leaving.take() {
            self.batch.cost.add(now.since(leaving).0);
        }
        self.batch.over = Some(now);
    }

    /// Keeps samples together until [`Self::resume`], as far as a batch reaches
    /// (`suspend_publications`, DCPS 1.4 §2.2.2.4.1.8).
    pub const fn suspend(&mut self) {
        self.batch.suspended = true;
    }

    /// Sends what was kept, and goes on as usual.
    pub fn resume(&mut self, now: Now, out: &mut Outbox) {
        self.batch.suspended = false;
        self.flush(now, out);
    }

    /// Whether the change just written waits for others. What waited before it and cannot wait with it
    /// was sent.
    pub(in crate::writer) fn batched(
        &mut self,
        now: Now,
        number: SequenceNumber,
        fresh: Option<&Change<'_>>,
        out: &mut Outbox,
    ) -> bool {
        let limits = &self.config.limits;
        let budget = self.config.qos.latency_budget;
        let may_wait = self.batch.begin(now.mono, budget, limits);
        let waits = self.batch.bytes > 0;
        let held;
        let change = match fresh {
            Some(change) => change,
            None => {
                held = self.history.get(number, &self.instances);
                let Some(change) = &held else { return false };
                change
            }
        };
        let payload_bytes = change.payload.len();
        let bytes = payload_bytes + SAMPLE_OVERHEAD_BYTES;
        let fills = self.fills(payload_bytes)
            && encode(&self.config, &self.proxies, change, &mut self.inline_qos) == 0;
        let small = (fills || bytes <= limits.batch_bytes / 2) && !change.is_end();
        let may_wait = may_wait
            && small
            && (waits || self.pacer.unsent().is_none())
            && !self.pacer.is_turning()
            && self.pacer.admits(now.mono, Class::Remote, self.batch.bytes + bytes, limits);
        if !may_wait || !self.fits_everywhere(payload_bytes) {
            self.send_held(now, Some(number), out);
            return false;
        }
        if fills {
            self.fill(now, number, out);
        } else {
            encode(&self.config, &self.proxies, change, &mut self.inline_qos);
            for (class, draft) in Class::ALL.into_iter().zip(&mut self.batch.drafts) {
                let route = self.proxies.route(class);
                if !route.destinations.is_empty() {
                    let target = route.target(class, self.config.guid, limits);
                    draft.put(&target, number, change, &self.inline_qos);
                    self.pacer.hold(number, class);
                }
            }
            self.batch.bytes += bytes;
        }
        let limits = &self.config.limits;
        if self.batch.samples == 0 {
            self.batch.due = now.mono.after(self.batch.patience(budget, limits));
        }
        self.batch.samples += 1;
        let is_full = if fills { self.has_no_room() } else { self.batch.is_full(bytes, limits) };
        if is_full {
            self.send_full(now, out);
        } else if !fills {
            self.note_waiting(payload_bytes);
        }
        true
    }

    /// Sends what waits, since it is enough.
    pub(in crate::writer) fn send_full(&mut self, now: Now, out: &mut Outbox) {
        let patience = self.batch.patience(self.config.qos.latency_budget, &self.config.limits);
        self.send_held(now, None, out);
        // The next batch is due no earlier: its first sample need not wake the timer.
        self.batch.due = now.mono.after(patience);
    }

    /// Whether there are readers, and a sample of so many octets goes whole to all of them.
    fn fits_everywhere(&self, payload_bytes: usize) -> bool {
        let mut heard = false;
        for class in Class::ALL {
            let route = self.proxies.route(class);
            if route.destinations.is_empty() {
                continue;
            }
            let target = route.target(class, self.config.guid, &self.config.limits);
            if !target.fits(payload_bytes, INLINE_QOS_BYTES_MAX) {
                return false;
            }
            heard = true;
        }
        heard
    }

    /// Whether something waits for others.
    pub(in crate::writer) const fn holds(&self) -> bool {
        self.batch.bytes > 0
    }

    /// Sends what waits for others, as many samples in a datagram as it takes.
    pub fn flush(&mut self, now: Now, out: &mut Outbox) {
        if self.pacer.release_tail() {
            self.pump(now, out);
        }
        if !self.holds() {
            self.batch.due = None;
            return;
        }
        self.send_held(now, None, out);
        self.settle(now);
        if self.blocked {
            self.progress(out);
        }
    }

    /// Sends what waits for others. `next`: a change that was just written and follows; no heartbeat names it yet, and the
    /// history keeps what nobody has to acknowledge until that is sent, too.
    pub(in crate::writer) fn send_held(&mut self, now: Now, next: Option<SequenceNumber>, out: &mut Outbox) {
        self.batch.due = None;
        self.batch.samples = 0;
        self.batch.joining_bytes_max = None;
        let bytes = std::mem::take(&mut self.batch.bytes);
        if bytes == 0 {
            return;
        }
        self.multicast.sent(bytes);
        self.batch.leaving = Some(now.mono);
        self.batch.readers = self.proxies.len();
        if self.pacer.road.is_answered() {
            let datagrams = bytes.div_ceil(self.config.limits.datagram_bytes_max_remote);
            self.pacer.sent_live(Class::Remote, (bytes, datagrams), None);
        }
        let carried = self.carried_heartbeat(now);
        self.pacer.release_held();
        if let Some(next) = next {
            Class::ALL.into_iter().for_each(|class| self.pacer.hold(next, class));
        }
        let mut asked = false;
        for (class, draft) in Class::ALL.into_iter().zip(&mut self.batch.drafts) {
            let route = self.proxies.route(class);
            if route.destinations.is_empty() {
                draft.discard();
                continue;
            }
            let target = route.target(class, self.config.guid, &self.config.limits);
            let carried = carried.filter(|_| route.reliable > 0);
            let heartbeat = carried.map(|carried| {
                let final_flag = carried == Piggyback::Tells;
                heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, final_flag)
            });
            draft.leave(&target, heartbeat.as_ref(), out);
            asked |= carried == Some(Piggyback::Asks);
        }
        if asked {
            self.asked(now);
        }
        self.pacer.release_held();
    }
}
