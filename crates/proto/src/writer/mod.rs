//! A writer: numbers changes, sends them to all matched readers at once, and repeats what reliable
//! readers miss (RTPS 2.5 §8.4.7 to §8.4.9), with the duties DCPS 1.4 gives a `DataWriter`: history,
//! limits, instances, deadline, liveliness and statuses. It never blocks, reads a clock or opens a
//! socket: effects go to the caller's [`Outbox`], and time comes in with each call.

mod agreed;
mod answer;
mod compose;
mod config;
mod flow;
mod limits;
mod liveliness;
mod record;
mod routes;
mod settle;
mod state;
mod strangers;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use thiserror::Error;

use crate::guid::Guid;
use crate::instance::{InstanceHandle, Key};
use crate::matched::MatchedReader;
use crate::outbox::{Event, Outbox};
use crate::payload::{NewPayload, Payload, PayloadView};
use crate::policy_id::PolicyId;
use crate::qos::{Durability, HistoryKind, QosSet};
use crate::seq::SequenceNumber;
use crate::stats::{DropCounters, DropReason};
use crate::status::{
    CountStatus, DeadlineMissedStatus, IncompatibleQosStatus, MatchedStatus, StatusKind, StatusMask,
};
use crate::time::{Duration, Instant, Now, Time};
use crate::tuning::writer::{
    CHANGE_OVERHEAD_BYTES, HISTORY_WINDOW_BYTES_MIN, LONG_SAMPLE_BYTES, MEMORY_WINDOW_TIMES, PROMPT_READERS,
};

pub use crate::limits::WriterLimits;
pub use config::WriterConfig;
pub use flow::silence::ReaderBehind;
pub use limits::Limit;
pub use record::change::ChangeKind;
pub use record::group::WriterGroup;
pub use state::{ReaderRoute, WriterTotals};

use compose::batch::Batch;
use compose::plan::Plan;
use flow::congestion_window::RttSample;
use flow::delay::DelayController;
use flow::heartbeat::HeartbeatTimer;
use flow::retransmission::{Retransmission, Retransmissions};
use flow::route_kind::RouteKind;
use flow::silence::SilenceTimer;
use flow::span::Span;
use record::change::{Change, window_bytes};
use record::coherent::OpenSet;
use record::history::History;
use record::instances::{Instances, Slot};
use routes::path::Paths;
use routes::proxies::Proxies;
use routes::proxy::Since;
use routes::route::Routes;

/// Why a change was not written. Nothing changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// Unacknowledged samples fill the history: wait for [`Event::Progress`] and try again. Up to which
    /// limit, [`Writer::full_by`] tells.
    #[error("the history is full of unacknowledged samples; wait for readers and try again")]
    Full,
    /// A limit is reached that acknowledgements cannot relieve.
    #[error("{0} is reached; unregister instances or raise the limit")]
    OutOfResources(Limit),
    /// The instance to unregister is not registered with this writer.
    #[error("the instance is not registered with this writer")]
    UnknownInstance,
    /// The topic has no key, so it has no instances to register, dispose or unregister.
    #[error("the topic has no key: there are no instances to register, dispose or unregister")]
    NotKeyed,
    /// BY_SOURCE_TIMESTAMP: readers would drop a change older than the one before it of its instance.
    #[error("the source timestamp is older than that of the last change of the instance")]
    TimestampBack,
    /// The sample has more octets than [`WriterLimits::sample_bytes_max`]: readers would acknowledge it and
    /// drop it.
    #[error("the sample is longer than readers take")]
    TooLarge,
}

/// One writer.
#[derive(Debug)]
pub struct Writer {
    config: WriterConfig,
    history: History,
    instances: Instances,
    proxies: Proxies,
    routes: Routes,
    retransmissions: Retransmissions,
    paths: Paths,
    batch: Batch,
    /// `None`: to be made.
    plan: Option<Plan>,
    heartbeat: HeartbeatTimer,
    silence: SilenceTimer,
    /// What may be unacknowledged now.
    window_bytes: usize,
    /// A long sample was written.
    writes_long: bool,
    /// The coherent set being written.
    open_set: Option<OpenSet>,
    /// Inline QoS of the change being sent; kept for its memory.
    inline_qos: Vec<u8>,
    /// Somebody was told the history is full.
    blocked: bool,
    /// By which limit.
    full_by: Limit,
    /// End of the liveliness lease of the manual kinds; `None` before the first assertion and after
    /// the lease was lost.
    lease_end: Option<Instant>,
    matched: MatchedStatus,
    deadline_missed: DeadlineMissedStatus,
    incompatible: IncompatibleQosStatus,
    liveliness_lost: CountStatus,
    changed: StatusMask,
    drops: DropCounters,
    counted: Counted,
    /// Readers of an ATOMIC topic: matched, and told by its group.
    agreed: BTreeSet<Guid>,
}

/// What passed through a writer, in octets of payload and in datagrams.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    written_bytes: u64,
    resent_bytes: u64,
    resent_datagrams: u64,
}

impl Writer {
    /// A writer without readers.
    #[must_use]
    pub fn new(config: WriterConfig) -> Self {
        let mut routes = Routes::new(config.guid, &config.limits);
        let mut proxies = Proxies::default();
        proxies.set_urgent(config.qos.transport_priority > 0, &mut routes);
        Self {
            history: History::of(&config.qos, config.limits.numbers_after),
            instances: Instances::new(config.qos.deadline),
            proxies,
            routes,
            retransmissions: Retransmissions::default(),
            paths: Paths::new(config.limits.datagram_bytes_max_remote),
            batch: Batch::default(),
            plan: None,
            heartbeat: HeartbeatTimer::new(&config),
            silence: SilenceTimer::default(),
            window_bytes: config.limits.unacknowledged_bytes_max,
            writes_long: false,
            open_set: None,
            inline_qos: Vec::new(),
            blocked: false,
            full_by: Limit::Samples,
            lease_end: None,
            matched: MatchedStatus::default(),
            deadline_missed: DeadlineMissedStatus::default(),
            incompatible: IncompatibleQosStatus::default(),
            liveliness_lost: CountStatus::default(),
            changed: StatusMask::NONE,
            drops: DropCounters::default(),
            counted: Counted::default(),
            agreed: BTreeSet::new(),
            config,
        }
    }

    /// Its GUID.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.config.guid
    }

    /// QoS in force.
    #[must_use]
    pub const fn qos(&self) -> &QosSet {
        &self.config.qos
    }

    /// How IP marks its datagrams: TRANSPORT_PRIORITY (DCPS 1.4 §2.2.3.14) is the DSCP (RFC 2474), from 0 to
    /// 63; what is beyond counts as the nearest. The DSCP has the upper six bits of the octet.
    #[must_use]
    pub fn traffic_class(&self) -> u8 {
        u8::try_from(self.config.qos.transport_priority.clamp(0, 63)).unwrap_or(0) << 2
    }

    /// Takes over new QoS, of which only changeable policies (DCPS 1.4 §2.2.3) may differ; the caller
    /// has checked that.
    pub fn set_qos(&mut self, now: Now, qos: QosSet) {
        self.void_plan();
        self.instances.set_deadline_period(qos.deadline, now.mono);
        if qos.lifespan != self.config.qos.lifespan {
            self.history.set_expiry(|source_timestamp| expiry(now, source_timestamp, qos.lifespan));
        }
        self.config.qos = qos;
        // What waits for others is addressed as it was written.
        self.proxies.set_urgent(self.traffic_class() > 0, &mut self.routes);
    }

    /// Writes a change and sends it to all matched readers. `payload` is data with its encapsulation
    /// for [`ChangeKind::Alive`], the serialized key for the other kinds. `instance` is NIL for topics
    /// without key. An unknown instance is registered by writing or disposing it.
    ///
    /// # Errors
    /// [`WriteError`]; then nothing changed, but a heartbeat may ask readers to acknowledge.
    pub fn write(
        &mut self,
        now: Now,
        kind: ChangeKind,
        instance: InstanceHandle,
        mut payload: Payload,
        source_timestamp: Time,
        out: &mut Outbox,
    ) -> Result<SequenceNumber, WriteError> {
        let payload = NewPayload::Payload(&mut payload);
        self.write_from(now, kind, instance.into(), payload, source_timestamp, out)
    }

    /// As [`Self::write`], to the instance with this key; the payload stays with the caller, who may try
    /// again, unless it was written.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_from(
        &mut self,
        now: Now,
        kind: ChangeKind,
        key: Key,
        payload: NewPayload<'_>,
        source_timestamp: Time,
        out: &mut Outbox,
    ) -> Result<SequenceNumber, WriteError> {
        let view = payload.view();
        let payload_bytes = view.len();
        let identity = self.instances.identify(key);
        let instance = identity.handle;
        if kind == ChangeKind::Alive
            && let Some(slot) = self.joins(now, instance, payload_bytes)
        {
            return Ok(self.join(now, (slot, instance), payload, source_timestamp, out));
        }
        let kind = self.effective(kind)?;
        if payload_bytes > self.config.limits.sample_bytes_max {
            return Err(WriteError::TooLarge);
        }
        if payload_bytes >= LONG_SAMPLE_BYTES && !self.writes_long {
            self.widen_for_long();
        }
        let known = self.instances.find(instance);
        if kind.unregisters() && !self.is_registered(instance) {
            return Err(WriteError::UnknownInstance);
        }
        self.check_timestamp(known, source_timestamp)?;
        if self.admit(known, kind, payload_bytes).is_err() {
            self.make_room(now, kind, instance, payload_bytes, out)?;
        }
        let slot = self.instances.register_at(known, &identity);
        self.note_timestamp(slot, source_timestamp);
        self.life_cycle(now, kind, slot, view);
        let expires = expiry(now, source_timestamp, self.config.qos.lifespan);
        let marks = self.marks();
        let marks = marks.as_ref();
        let verdict = self.proxies.evaluate(kind, marks, view);
        let octets = payload.octets();
        let shown = PayloadView::Octets(octets.unwrap_or(&[]));
        let hash = self.instances.hash_of(instance);
        let change = Change { kind, hash, payload: shown, source_timestamp, expires, marks, verdict };
        let number = self.history.push(slot, &change, payload, &mut self.instances);
        self.counted.written_bytes += payload_bytes as u64;
        self.heartbeat.wrote(number, window_bytes(payload_bytes));
        self.assert_lease(now);
        let held = self.holds();
        self.send_new(now, number, octets.is_some().then_some(&change), out);
        self.settle_write(now, payload_bytes);
        if held && !self.holds() && self.blocked {
            self.progress(out);
        }
        Ok(number)
    }

    /// From the first long sample on the window is that of long ones.
    #[cold]
    fn widen_for_long(&mut self) {
        self.writes_long = true;
        self.fit_window();
    }

    /// There was no room for a change: makes some, or hastens who could.
    fn make_room(
        &mut self,
        now: Now,
        kind: ChangeKind,
        instance: InstanceHandle,
        bytes: usize,
        out: &mut Outbox,
    ) -> Result<(), WriteError> {
        // What is acknowledged, or waits for others, may be all that takes the room.
        self.settle(now);
        if !self.is_answer_enough() {
            self.heartbeat.request_soon();
        }
        self.flush(now, out);
        let mut result = self.admit(self.instances.find(instance), kind, bytes);
        if result == Err(WriteError::Full) && self.leave_out_silent(now) {
            result = self.admit(self.instances.find(instance), kind, bytes);
        }
        if let Err(error) = result {
            self.ask_when_full(now, error, out);
        }
        result
    }

    /// The kind as it travels.
    fn effective(&self, kind: ChangeKind) -> Result<ChangeKind, WriteError> {
        if kind == ChangeKind::Alive {
            return Ok(kind);
        }
        if !self.config.keyed {
            return Err(WriteError::NotKeyed);
        }
        let autodispose = self.config.qos.writer_data_lifecycle.autodispose_unregistered_instances;
        Ok(if kind == ChangeKind::Unregister && autodispose { ChangeKind::DisposeUnregister } else { kind })
    }

    /// Makes room for one more change of the instance, or says why there is none.
    #[inline]
    fn admit(&mut self, slot: Option<Slot>, kind: ChangeKind, bytes: usize) -> Result<(), WriteError> {
        if slot.is_none() {
            self.admit_instance()?;
        }
        let limits = self.config.qos.resource_limits;
        let released = self.history.released();
        let depth = match self.config.qos.history.kind {
            HistoryKind::KeepLast => usize::try_from(self.config.qos.history.depth).unwrap_or(1).max(1),
            HistoryKind::KeepAll => {
                let most = self.window_bytes;
                if self.history.pending() > 0
                    && self.history.pending_bytes() + CHANGE_OVERHEAD_BYTES + bytes > most
                {
                    return Err(self.full(Limit::UnacknowledgedBytes));
                }
                // A durability service leaves a writer without limits as many.
                if !self.is_limited() {
                    return Ok(());
                }
                bound(limits.max_samples_per_instance)
            }
        };
        if let Some(service_depth) = self.service_depth() {
            return self.admit_beside_service(slot, kind, depth, service_depth);
        }
        if depth < usize::MAX
            && let Some(instance) = slot.and_then(|slot| self.instances.get(slot))
            && instance.samples >= depth
            && instance.samples > 0
        {
            let oldest = instance.oldest;
            if self.config.qos.history.kind == HistoryKind::KeepAll && oldest > released {
                return Err(self.full(Limit::SamplesPerInstance));
            }
            self.history.remove(oldest, &mut self.instances);
        }
        // The oldest may be the end of a coherent set, which counts towards no limit.
        while self.history.len() >= bound(limits.max_samples) {
            let oldest = self.oldest_to_leave()?;
            self.history.remove(oldest, &mut self.instances);
        }
        Ok(())
    }

    /// RESOURCE_LIMITS max_samples is reached: the oldest change leaves when all that wanted it have it.
    fn oldest_to_leave(&mut self) -> Result<SequenceNumber, WriteError> {
        let first = self.history.first();
        if first > self.history.released() {
            return Err(self.full(Limit::Samples));
        }
        match self.config.qos.history.kind {
            // The last samples of another instance are promised to late joiners for ever.
            HistoryKind::KeepLast => Err(WriteError::OutOfResources(Limit::Samples)),
            HistoryKind::KeepAll => Ok(first),
        }
    }

    /// What a change does to its instance here.
    fn life_cycle(&mut self, now: Now, kind: ChangeKind, slot: Slot, payload: PayloadView<'_>) {
        match kind {
            ChangeKind::Alive => self.instances.restart_deadline(slot, now.mono),
            ChangeKind::Dispose => self.instances.disposed(slot),
            ChangeKind::Unregister | ChangeKind::DisposeUnregister => self.instances.unregister(slot),
        }
        if kind == ChangeKind::Dispose
            && let Some(instance) = self.instances.get_mut(slot)
        {
            instance.set_key(|| payload.to_payload());
        }
    }

    /// Registers an instance (DCPS 1.4 §2.2.2.4.2.5) and keeps its serialized key. Returns its handle.
    ///
    /// # Errors
    /// [`WriteError::NotKeyed`], [`WriteError::OutOfResources`].
    pub fn register_instance(
        &mut self,
        now: Now,
        key: Key,
        key_payload: Payload,
    ) -> Result<InstanceHandle, WriteError> {
        if !self.config.keyed {
            return Err(WriteError::NotKeyed);
        }
        let identity = self.instances.identify(key);
        if self.instances.find(identity.handle).is_none() && self.admit_instance().is_err() {
            self.settle(now);
            self.admit_instance()?;
        }
        let slot = self.instances.register(&identity);
        if let Some(instance) = self.instances.get_mut(slot) {
            instance.set_key(|| key_payload);
        }
        self.assert_lease(now);
        Ok(identity.handle)
    }

    /// Adds a reader, or takes over what changed of a known one. A durable reader is sent the history
    /// in order; any other is told that what was written before is not for it.
    pub fn match_reader(&mut self, now: Now, reader: &MatchedReader, out: &mut Outbox) {
        if reader.qos.is_atomic() {
            return self.match_agreed(reader.guid, out);
        }
        let known = self.proxies.get(reader.guid).map(|proxy| proxy.kind);
        let limits = &self.config.limits;
        let of_participant = || self.proxies.of_participant(reader.guid.prefix);
        if known.is_none()
            && (self.proxies.len() >= limits.readers_max
                || of_participant() >= limits.readers_of_participant_max)
        {
            self.drops.count(DropReason::DiscoveryLimit);
            return;
        }
        let reliable = self.config.qos.is_reliable() && reader.qos.is_reliable();
        let durable = self.config.qos.durability >= Durability::TransientLocal
            && reader.qos.durability >= Durability::TransientLocal;
        // What waits for others is addressed to those who were here before.
        self.flush(now, out);
        let kind = RouteKind::of(&reader.locators, reader.same_host);
        let moved = known.filter(|before| *before != kind);
        if kind == RouteKind::Remote && known.is_none() && !durable || moved.is_some() {
            self.part_queue(kind, out);
        }
        let last = self.history.last();
        let had_inline_qos = self.proxies.inline_qos();
        let before_all = self.config.limits.numbers_after;
        let since =
            Since { now: now.mono, before_all, history: if durable { before_all } else { last }, last };
        let new = self.proxies.insert(reader, reliable, &since, &mut self.routes);
        self.recut_for_inline_qos(had_inline_qos);
        self.fit_window();
        self.adopt_filter(reader);
        self.void_plan();
        let sent = self.routes.delay().map_or(0, DelayController::sent_bytes);
        self.proxies.delivered_to(reader.guid, sent, sent, false);
        self.note_delivered(now, None);
        if let Some(before) = moved {
            self.moved(now, reader.guid, before, out);
        }
        if !new {
            return;
        }
        self.matched.matched(reader.guid);
        self.changed(StatusKind::PublicationMatched, out);
        self.start_lease(now);
        if durable && self.history.len() > 0 {
            let span = Span::new(self.first_number(), self.sent_last(kind));
            self.retransmissions.push_back(Retransmission { reader: reader.guid, span });
            self.pump(now, out);
        } else if reliable && !reader.begins {
            self.announce_start(now, reader.guid, out);
        }
        self.settle(now);
    }

    /// Removes a reader.
    pub fn unmatch_reader(&mut self, now: Now, reader: Guid, out: &mut Outbox) {
        let had_inline_qos = self.proxies.inline_qos();
        if !self.proxies.remove(reader, &mut self.routes) {
            return self.unmatch_agreed(reader, out);
        }
        self.recut_for_inline_qos(had_inline_qos);
        self.fit_window();
        self.void_plan();
        self.flush(now, out);
        self.retransmissions.forget(reader);
        self.forget_paths();
        for kind in RouteKind::ALL {
            if self.routes.of(kind).is_empty() {
                self.routes.of_mut(kind).queue.take();
            }
        }
        self.note_delivered(now, None);
        self.matched.unmatched(reader);
        self.forget_silent();
        self.changed(StatusKind::PublicationMatched, out);
        self.settle(now);
        self.progress(out);
    }

    /// A reader of the topic asks for more than this writer offers; `policies` names what.
    pub fn incompatible_reader(&mut self, policies: &[PolicyId], out: &mut Outbox) {
        self.incompatible.count.count();
        for &policy in policies {
            self.incompatible.last_policy_id = Some(policy);
            match self.incompatible.policies.iter_mut().find(|(id, _)| *id == policy) {
                Some((_, count)) => *count = count.saturating_add(1),
                None => self.incompatible.policies.push((policy, 1)),
            }
        }
        self.changed(StatusKind::OfferedIncompatibleQos, out);
    }

    /// Asks every reliable reader that owes an acknowledgement for it now; for `wait_for_acknowledgments`.
    pub fn request_acknowledgments(&mut self, now: Now, out: &mut Outbox) {
        self.flush(now, out);
        self.ask(now, out);
    }

    /// Number of the last change written; 0 before the first.
    #[must_use]
    pub const fn last_sequence_number(&self) -> SequenceNumber {
        self.history.last()
    }

    /// Whether new changes wait until there is room for them in the congestion window of readers on other
    /// hosts.
    #[must_use]
    pub const fn waits_for_path(&self) -> bool {
        !self.routes.of(RouteKind::Remote).queue.is_empty()
    }

    /// Changes with data or status in the history, which RESOURCE_LIMITS max_samples bounds.
    #[must_use]
    pub const fn history_len(&self) -> usize {
        self.history.len()
    }

    /// Matched readers, in the order of their GUIDs; last those that are told by the group of the topic.
    pub fn matched_readers(&self) -> impl Iterator<Item = Guid> {
        self.proxies.iter().map(|reader| reader.guid).chain(self.agreed.iter().copied())
    }

    /// The reliable readers that have acknowledged least: for these room is waited for.
    pub fn slowest_readers(&self) -> impl Iterator<Item = Guid> {
        let least = self.proxies.acknowledged();
        let slowest = self.proxies.iter().filter(move |it| it.is_awaited() && Some(it.acknowledged) == least);
        slowest.map(|reader| reader.guid)
    }

    /// Does what is due. Calling it early is harmless.
    pub fn timeout(&mut self, now: Now, out: &mut Outbox) {
        if self.history.expire(now.mono, &mut self.instances) {
            self.progress(out);
        }
        self.history.clean_up(now.mono, &mut self.instances);
        while let Some(instance) = self.instances.missed_deadline(now.mono) {
            self.deadline_missed.count.count();
            self.deadline_missed.last_instance = instance;
            self.changed(StatusKind::OfferedDeadlineMissed, out);
        }
        self.check_lease(now, out);
        if self.batch.due().is_some_and(|due| due <= now.mono) {
            self.flush(now, out);
        }
        if self.pump_due().is_some_and(|due| due <= now.mono) {
            self.pump(now, out);
        }
        if self.silence.due().is_some_and(|due| due <= now.mono) {
            self.ask_strangers(now, out);
        }
        if self.heartbeat.due().is_some_and(|due| due <= now.mono) {
            let asked = self.ask_again(now, out);
            self.heartbeat.fired(now.mono, asked);
            self.look_at_silence(now, out);
            // Whoever was to be asked may have answered before: then the timer rests.
            self.settle(now);
        }
    }

    /// When more of what waits may be sent. Of retransmissions that wait for answers the route tells when.
    fn pump_due(&self) -> Option<Instant> {
        let waits_for_answers = |reader| {
            self.proxies.get(reader).is_some_and(|it| self.routes.of(it.kind).controller.waits_for_answers())
        };
        let burst = !self.retransmissions.readers().all(waits_for_answers);
        Instant::earliest([self.routes.due(), burst.then(|| self.routes.burst_end())])
    }

    /// When [`Writer::timeout`] is due.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let dues = [
            self.history.next_expiry(),
            self.history.next_cleanup(),
            self.instances.next_deadline(),
            self.lease_end,
            self.batch.due(),
            self.pump_due(),
            self.heartbeat.due(),
            self.silence.due(),
        ];
        Instant::earliest(dues)
    }

    /// PUBLICATION_MATCHED; resets its changes.
    pub fn publication_matched_status(&mut self) -> MatchedStatus {
        self.changed = self.changed.without(StatusKind::PublicationMatched);
        self.matched.take()
    }

    /// OFFERED_DEADLINE_MISSED; resets its change.
    pub fn offered_deadline_missed_status(&mut self) -> DeadlineMissedStatus {
        self.changed = self.changed.without(StatusKind::OfferedDeadlineMissed);
        DeadlineMissedStatus { count: self.deadline_missed.count.take(), ..self.deadline_missed }
    }

    /// OFFERED_INCOMPATIBLE_QOS; resets its change.
    pub fn offered_incompatible_qos_status(&mut self) -> IncompatibleQosStatus {
        self.changed = self.changed.without(StatusKind::OfferedIncompatibleQos);
        let status = self.incompatible.clone();
        self.incompatible.count.take();
        status
    }

    /// LIVELINESS_LOST; resets its change.
    pub fn liveliness_lost_status(&mut self) -> CountStatus {
        self.changed = self.changed.without(StatusKind::LivelinessLost);
        self.liveliness_lost.take()
    }

    /// Statuses that changed since they were last read.
    #[must_use]
    pub const fn status_changes(&self) -> StatusMask {
        self.changed
    }

    /// What was dropped, and why.
    #[must_use]
    pub const fn drops(&self) -> &DropCounters {
        &self.drops
    }

    fn changed(&mut self, kind: StatusKind, out: &mut Outbox) {
        self.changed = self.changed.with(kind);
        out.status(self.config.guid, kind);
    }

    /// Wakes callers that wait for room or for acknowledgements.
    fn progress(&mut self, out: &mut Outbox) {
        self.blocked = false;
        out.events.push(Event::Progress { endpoint: self.config.guid.entity });
    }

    /// Takes over what has arrived at readers on other hosts, as an answer after so long shows, and who
    /// they are.
    fn note_delivered(&mut self, now: Now, rtt: Option<RttSample>) {
        let last = self.sent_last(RouteKind::Remote);
        let route = self.routes.of_mut(RouteKind::Remote);
        let Some(delay) = route.controller.delay_mut() else { return };
        let (readers, delivered, all_echo_counts) = self.proxies.delivered(last, delay.sent_bytes());
        let readers = if self.config.limits.has_congestion_window { readers } else { 0 };
        delay.set_readers(readers, all_echo_counts, route.port.receive_buffer_bytes);
        if readers > 0 {
            delay.deliver(now.mono, delivered, rtt);
        }
    }

    /// Full: hastens the acknowledgements that make room.
    fn ask_when_full(&mut self, now: Now, error: WriteError, out: &mut Outbox) {
        if error == WriteError::Full && !self.blocked {
            self.blocked = true;
            // The last sample may have asked already.
            let is_unrequested = self.heartbeat.is_unrequested() && !self.is_answer_enough();
            if (is_unrequested || self.routes.unsent().is_some()) && !self.path_will_request() {
                self.ask(now, out);
            }
        }
        self.batch.blocked();
    }

    /// Whether what makes room asks by itself: the window of all reliable readers, on which new changes wait.
    fn path_will_request(&self) -> bool {
        let others = self.routes.reliable() - self.routes.of(RouteKind::Remote).port.reliable;
        others == 0 && self.waits_for_path() && self.routes.of(RouteKind::Remote).controller.is_windowed()
    }

    /// Whether a reader is reached by memory that its process shares with ours.
    #[must_use]
    pub const fn shares_memory(&self) -> bool {
        !self.routes.of(RouteKind::Memory).is_empty()
    }

    /// The more readers, the less each may be behind: their sockets, and the time that a sample spends in
    /// them, are shared with the other writers that so many readers usually have. All of it is for a reader
    /// on another host, which may be far away: within this host a quarter of it is about as fast, and takes
    /// less memory. Of several readers one is always late, and of long samples a quarter holds too few to go
    /// on while some are answered: these get half of it.
    fn fit_window(&mut self) {
        let readers = self.routes.reliable();
        let is_far = self.routes.of(RouteKind::Remote).port.reliable > 0;
        let most = self.config.limits.unacknowledged_bytes_max;
        let by_memory = self.routes.of(RouteKind::Memory).port.reliable;
        let window = match readers {
            // What is written follows sooner than it is copied, and is in the memory that readers share.
            1.. if by_memory == readers && self.writes_long => most.saturating_mul(MEMORY_WINDOW_TIMES),
            0 | 1 if is_far => most,
            0 | 1 if !self.writes_long => most / 4,
            _ => most / (2 * (readers / PROMPT_READERS).max(1)),
        };
        self.window_bytes = window.max(most.min(HISTORY_WINDOW_BYTES_MIN));
        self.heartbeat.set_readers(readers, self.window_bytes, is_far);
        if let Some(delay) = self.routes.delay_mut() {
            delay.set_history(self.window_bytes);
        }
    }

    /// Who waits for room in the window is woken for a quarter of it, not for each sample's: it would be full
    /// again at once, and everybody asked again. On a slow path, where that takes long, for as much as keeps
    /// it busy some milliseconds.
    fn has_room_to_go_on(&self) -> bool {
        self.proxies.acknowledged().is_none_or(|lowest| self.makes_room(lowest))
    }

    /// Many readers owe an answer that will make as much room: one more question is an answer more of each.
    fn is_answer_enough(&self) -> bool {
        !self.is_limited() && self.heartbeat.pending_request().is_some_and(|last| self.makes_room(last))
    }

    /// Whether RESOURCE_LIMITS may be what a change finds no room for.
    const fn is_limited(&self) -> bool {
        let limits = &self.config.qos.resource_limits;
        limits.max_samples >= 0 || limits.max_samples_per_instance >= 0 || limits.max_instances >= 0
    }

    /// Whether there is room to go on when everyone has all changes up to this one.
    fn makes_room(&self, lowest: SequenceNumber) -> bool {
        // Acknowledged changes leave when the writer goes on.
        let quarter = self.window_bytes / 4;
        let delay = self.routes.delay().filter(|_| self.waits_for_path());
        let room = delay.map_or(quarter, |delay| delay.wakes_for_bytes().min(quarter));
        self.is_limited() || self.history.pending_bytes_above(lowest) <= self.window_bytes - room
    }
}

/// When a change written at `source_timestamp` expires.
fn expiry(now: Now, source_timestamp: Time, lifespan: Duration) -> Option<Instant> {
    if lifespan.is_infinite() {
        return None;
    }
    now.mono.after(source_timestamp.plus(lifespan).since(now.wall))
}

/// A RESOURCE_LIMITS value as a count.
fn bound(limit: i32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
