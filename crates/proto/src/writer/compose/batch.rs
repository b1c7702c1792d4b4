//! Samples that share datagrams. A lone sample leaves at once. While an application writes without a
//! pause, and while LATENCY_BUDGET (DCPS 1.4 §2.2.3.8) or `suspend_publications` allow it, small samples
//! wait for each other: until a batch is full, for a fraction of a millisecond, or until told to leave.

use crate::estimate::SmoothedEstimate;
use crate::instance::InstanceHandle;
use crate::outbox::Outbox;
use crate::payload::{NewPayload, PayloadView};
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant, Now, Time};
use crate::wire::Heartbeat;

use super::packet::Packet;
use super::packetizer::{Rules, is_full};
use super::submessages::{encode, heartbeat};
use crate::tuning::writer::{
    COSTLY_FLOW_WRITES, COSTLY_SEND, COSTLY_WAIT_BATCHES, COSTLY_WAIT_MAX, FLOW_PAUSE_COST_DIVISOR,
    FLOW_WRITES, GREAT_FLOW_WAIT, GREAT_FLOW_WRITES, LONG_FLOW_WRITES, PROMPT_READERS, SAMPLE_OVERHEAD_BYTES,
    SEND_COST_OF_READER_MAX,
};
use crate::writer::flow::heartbeat::Piggyback;
use crate::writer::flow::route_kind::RouteKind;
use crate::writer::flow::span::Span;
use crate::writer::record::change::{Change, window_bytes};
use crate::writer::record::instances::Slot;
use crate::writer::routes::route::Route;
use crate::writer::{Writer, WriterLimits};

/// How the application writes, and what waits.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Writes in a row without a pause.
    streak: u32,
    /// Writes of the flow, of which each interruption takes a quarter.
    writes: u32,
    /// Writes without a pause since the flow began. With many it is a great one; interruptions that its last
    /// samples wait out leave it one, and do not keep it from becoming one.
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
    /// The last call added one to them, and moved no deadline.
    pub(crate) joined: bool,
    /// When they leave at the latest; of a batch that was full, when the next would at the earliest.
    due: Option<Instant>,
    /// When what is being handed over was composed, of few readers a batch alone, and how long that took
    /// lately.
    leaving: Option<Instant>,
    cost: SmoothedEstimate<4>,
    /// Readers that it goes to.
    readers: usize,
}

impl Batch {
    /// When what waits leaves at the latest.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// One more sample waits. Whether it is the last that does.
    #[inline]
    const fn add(&mut self, payload_bytes: usize, batch_bytes: usize) -> bool {
        self.bytes += payload_bytes + SAMPLE_OVERHEAD_BYTES;
        self.samples += 1;
        self.is_full(payload_bytes, batch_bytes)
    }

    /// Whether what waits leaves now, after a sample of so many octets: another one like it would be too
    /// much.
    const fn is_full(&self, payload_bytes: usize, batch_bytes: usize) -> bool {
        let bytes = self.bytes + payload_bytes + SAMPLE_OVERHEAD_BYTES;
        is_full(bytes, 0, batch_bytes) || is_full(self.bytes, self.samples, usize::MAX)
    }

    /// What sending costs where many readers make it costly.
    fn cost_of_many(&self) -> Option<Duration> {
        let most = Duration(SEND_COST_OF_READER_MAX.0.saturating_mul(self.readers as i64));
        (self.readers > PROMPT_READERS).then(|| Duration(self.cost.get()).min(most))
    }

    /// A shorter pause is none.
    fn pause_least(&self, limits: &WriterLimits) -> Duration {
        self.cost_of_many().map_or(limits.flow_pause, |cost| {
            Duration(cost.0 / FLOW_PAUSE_COST_DIVISOR).min(limits.flow_wait)
        })
    }

    /// Whether sending is to many readers, and costs that much.
    fn is_costly(&self) -> bool {
        self.cost_of_many().is_some_and(|cost| cost >= COSTLY_SEND)
    }

    /// So many writes without a pause are a flow.
    fn flow_writes(&self) -> u32 {
        if self.is_costly() { COSTLY_FLOW_WRITES } else { FLOW_WRITES }
    }

    /// Whether the application writes without a pause and will write again any moment.
    pub(crate) fn is_flowing(&self, now: Instant, limits: &WriterLimits) -> bool {
        self.streak >= self.flow_writes() && self.over.is_some_and(|over| now.since(over) < limits.flow_wait)
    }

    /// A sample leaves alone, to so many readers.
    pub(crate) const fn leaves_alone(&mut self, now: Instant, readers: usize) {
        self.readers = readers;
        if readers > PROMPT_READERS {
            self.leaving = Some(now);
        }
    }

    /// A write found no room.
    pub(crate) const fn blocked(&mut self) {
        self.blocked = true;
    }

    /// A write begins that follows others without a pause, or whose sample may wait for others whatever the
    /// pause was. If it is neither, it has not begun.
    #[inline]
    pub(crate) fn goes_on(&mut self, now: Instant, budget: Duration, limits: &WriterLimits) -> bool {
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
            // As when the host keeps the application from running for a moment, or lets many others run
            // first: this sample leaves at once, and when the next follows without a pause the flow goes on.
            // Where that wakes many it waits.
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

    /// How long a sample may wait for others. In a flow, sending too early costs more where there are many
    /// readers, or a busy host.
    fn linger(&self, budget: Duration, limits: &WriterLimits) -> Duration {
        if self.suspended {
            return Duration::INFINITE;
        }
        if budget > Duration::ZERO {
            return budget.min(limits.batch_wait_max);
        }
        self.linger_in_flow(limits)
    }

    /// How long that is in a flow.
    pub(crate) fn linger_in_flow(&self, limits: &WriterLimits) -> Duration {
        let costly = Duration(self.cost.get().saturating_mul(COSTLY_WAIT_BATCHES)).min(COSTLY_WAIT_MAX);
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
    pub(crate) fn batched(
        &mut self,
        now: Now,
        number: SequenceNumber,
        fresh: Option<&Change<'_>>,
        out: &mut Outbox,
    ) -> bool {
        let plan = self.plan();
        let budget = self.config.qos.latency_budget;
        let may_wait = self.batch.begin(now.mono, budget, &self.config.limits);
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
        let fills = plan.filling_bytes.is_some_and(|(least, end)| (least..end).contains(&payload_bytes))
            && encode(&self.config, &self.proxies, change, &mut self.inline_qos) == 0;
        let is_short = fills || plan.waiting_bytes_max.is_some_and(|most| payload_bytes <= most);
        let is_end = change.is_end();
        let bytes = self.batch.bytes + payload_bytes + SAMPLE_OVERHEAD_BYTES;
        let may_wait = may_wait
            && is_short
            && !is_end
            && (self.holds() || self.routes.unsent().is_none())
            && self.routes.admits(now.mono, RouteKind::Memory, bytes)
            && self.routes.admits(now.mono, RouteKind::Remote, bytes);
        if !may_wait {
            self.send_held(now, Some(number), out);
            return false;
        }
        self.hold(now, number, fresh, fills, out);
        if self.batch.samples == 0 {
            self.batch.due = now.mono.after(self.batch.linger(budget, &self.config.limits));
        }
        self.batch.samples += 1;
        let is_full =
            if fills { self.has_no_room() } else { self.batch.is_full(payload_bytes, plan.batch_bytes) };
        if is_full {
            self.send_full(now, out);
        }
        true
    }

    /// Adds a change to the open datagram of each route; where that has no room, there is one more that
    /// waits. Where samples fill datagrams, what waits leaves with the beginning of the change, and the rest
    /// begins the next datagram.
    fn hold(
        &mut self,
        now: Now,
        number: SequenceNumber,
        fresh: Option<&Change<'_>>,
        fills: bool,
        out: &mut Outbox,
    ) {
        let fills_bytes = fills.then_some(self.config.limits.batch_bytes);
        let rules = Rules { begun: fresh.copied(), fills_bytes, ..Rules::default() };
        let mut bytes = 0;
        for kind in RouteKind::ALL {
            if self.routes.of(kind).is_empty() {
                continue;
            }
            let mut span = Span::new(number, number);
            while !span.is_over() {
                let (mut packetizer, routes) = self.packetizer();
                let mut packet = routes.of_mut(kind).open_held();
                let filled = packetizer.fill(&mut packet, &mut span, &rules);
                bytes = filled.payload_bytes + SAMPLE_OVERHEAD_BYTES;
                if !span.is_over() && !fills {
                    packet.next();
                }
                packet.pause();
                if !span.is_over() && fills {
                    self.batch.bytes += bytes;
                    self.send_held(now, Some(number), out);
                }
            }
            self.routes.of_mut(kind).queue.hold(number);
        }
        self.batch.bytes += bytes;
    }

    /// Whether not even a part of a sample has room in the datagram that waits.
    fn has_no_room(&mut self) -> bool {
        let batch_bytes = self.config.limits.batch_bytes;
        let packet = self.routes.of_mut(RouteKind::SameHost).open_held();
        let room_bytes = packet.room_bytes(batch_bytes);
        let is_full = packet.target.fragments_within(room_bytes) == 0;
        packet.pause();
        is_full
    }

    /// A sample of so many octets of an instance is to be written: the place of the instance, if the sample
    /// joins those which wait. If not, nothing was done.
    #[inline]
    pub(crate) fn joins(&mut self, now: Now, instance: InstanceHandle, payload_bytes: usize) -> Option<Slot> {
        if !self.holds() {
            return None;
        }
        let plan = self.plan();
        let may_join = plan.joining_bytes_max.is_some_and(|most| payload_bytes <= most)
            && self.routes.of(plan.joining).controller.admits(self.batch.bytes + payload_bytes)
            && self.history.pending_bytes() + window_bytes(payload_bytes) <= self.window_bytes;
        if !may_join {
            return None;
        }
        let slot = self.instances.find(instance)?;
        let budget = self.config.qos.latency_budget;
        self.batch.goes_on(now.mono, budget, &self.config.limits).then_some(slot)
    }

    /// Writes a sample that [joins](Self::joins) those which wait.
    #[inline]
    pub(crate) fn join(
        &mut self,
        now: Now,
        (slot, instance): (Slot, InstanceHandle),
        payload: NewPayload<'_>,
        source_timestamp: Time,
        out: &mut Outbox,
    ) -> SequenceNumber {
        debug_assert!(self.holds() && self.is_plain(), "the plan is not void");
        self.instances.register_known(slot);
        self.instances.restart_deadline(slot, now.mono);
        let change = Change::plain(instance, payload.view(), source_timestamp);
        let payload_bytes = change.payload.len();
        let plan = self.plan();
        let mut packet = self.routes.of_mut(plan.joining).open_held();
        let number = self.history.last().next();
        if !packet.sample(number, &change, &[]) {
            packet.next();
            let _ = packet.sample(number, &change, &[]);
        }
        packet.pause();
        let is_full = self.batch.add(payload_bytes, plan.batch_bytes);
        let shown = Change::plain(instance, PayloadView::Octets(&[]), source_timestamp);
        let number = self.history.push(slot, &shown, payload, &mut self.instances);
        self.counted.written_bytes += payload_bytes as u64;
        self.heartbeat.wrote(number, window_bytes(payload_bytes));
        if is_full {
            self.send_full(now, out);
        }
        self.settle_write(now, payload_bytes);
        if is_full && self.blocked {
            self.progress(out);
        }
        // While something waits, who is to acknowledge it is looked after already.
        self.batch.joined = !is_full;
        number
    }

    /// Whether [`Self::next_timeout`] may say something else than before the last call: after most samples
    /// that joined others it does not. To be asked once after each call, if at all.
    #[inline]
    pub const fn moved_timeout(&mut self) -> bool {
        !std::mem::replace(&mut self.batch.joined, false)
    }

    /// Sends what waits, since it is enough.
    fn send_full(&mut self, now: Now, out: &mut Outbox) {
        let linger = self.batch.linger(self.config.qos.latency_budget, &self.config.limits);
        self.send_held(now, None, out);
        // The next batch is due no earlier: its first sample need not wake the timer.
        self.batch.due = now.mono.after(linger);
    }

    /// Whether something waits for others.
    pub(crate) const fn holds(&self) -> bool {
        self.batch.bytes > 0
    }

    /// Sends what waits for others, as many samples in a datagram as it takes.
    pub fn flush(&mut self, now: Now, out: &mut Outbox) {
        if self.routes.iter_mut().fold(false, |any, route| route.queue.release() | any) {
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

    /// Sends what waits for others. `next`: a change that was just written and follows; no heartbeat names it
    /// yet, and the history keeps what nobody has to acknowledge until that is sent, too.
    pub(crate) fn send_held(&mut self, now: Now, next: Option<SequenceNumber>, out: &mut Outbox) {
        self.batch.due = None;
        self.batch.samples = 0;
        let bytes = std::mem::take(&mut self.batch.bytes);
        if bytes == 0 {
            return;
        }
        self.batch.leaving = Some(now.mono);
        self.batch.readers = self.proxies.len();
        let remote = self.routes.of_mut(RouteKind::Remote);
        if remote.controller.is_windowed() {
            remote.controller.sent((bytes, bytes.div_ceil(remote.datagram_bytes_max)), None);
        }
        let last = next.map_or_else(|| self.history.last(), SequenceNumber::previous);
        let memory = self.routes.of_mut(RouteKind::Memory);
        memory.controller.sent((bytes, 1), Some(last));
        let carried = self.carried_heartbeat(now);
        if carried.is_some() {
            self.meet(out);
        }
        for route in self.routes.iter_mut() {
            route.queue.release_held();
            next.into_iter().for_each(|next| route.queue.hold(next));
        }
        let mut asked = false;
        for kind in RouteKind::ALL {
            let route = self.routes.of(kind);
            let carried = carried.filter(|_| route.port.reliable > 0);
            let heartbeat = carried.filter(|_| !route.is_empty()).map(|carried| {
                let final_flag = carried == Piggyback::Final;
                heartbeat(&mut self.heartbeat, &self.history, &self.routes, &route.target(), final_flag)
            });
            self.routes.of_mut(kind).send_held(heartbeat.as_ref(), out);
            asked |= carried == Some(Piggyback::Request);
        }
        if asked {
            self.asked(now);
        }
        self.routes.iter_mut().for_each(|route| route.queue.release_held());
    }
}

impl Route {
    /// The datagram that waits for more samples.
    #[inline]
    fn open_held(&mut self) -> Packet<'_, '_> {
        let Self { held, .. } = self;
        let is_open = std::mem::replace(&mut held.is_open, true);
        let (target, out) = self.held_parts();
        if is_open { Packet::resume(target, out) } else { Packet::open(target, out) }
    }

    /// The datagrams that wait leave, with a heartbeat at the end, if anybody is left to hear it.
    fn send_held(&mut self, heartbeat: Option<&Heartbeat>, out: &mut Outbox) {
        if !std::mem::take(&mut self.held.is_open) {
            return;
        }
        let is_empty = self.is_empty();
        let (target, held) = self.held_parts();
        let mut packet = Packet::resume(target, held);
        if let Some(heartbeat) = heartbeat {
            packet.heartbeat(heartbeat);
        }
        packet.seal();
        if is_empty {
            held.clear_transmits();
        }
        out.append(held);
    }
}
