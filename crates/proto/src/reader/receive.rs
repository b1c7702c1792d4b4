//! Submessages from writers, into order and into the cache.

use super::Reader;
use super::cache::Outcome;
use super::change::{Change, Incoming};
use super::ownership::WriterId;
use super::proxy::Proxy;
use super::reorder::Arrival;
use crate::instance::InstanceHandle;
use crate::outbox::{Event, Outbox};
use crate::payload::{COPIED_BYTES_MAX, SHORT_BYTES_MAX};
use crate::seq::SequenceNumber;
use crate::sources::Sender;
use crate::stats::DropReason;
use crate::status::{RejectReason, StatusKind};
use crate::time::{Duration, Instant, Now};
use crate::tuning::reader::{FRAGMENTS_STALLED, NOTIFY_BYTES_MAX, SEQUENCE_JUMP_MAX, SEQUENCE_NUMBER_MAX};
use crate::vendor::{self, Question};
use crate::wire::Run;
use crate::wire::param::InlineQos;
use crate::wire::{
    ContentFilterInfo, Data, DataFrag, EndpointSubmessage, Gap, Heartbeat, HeartbeatFrag, MessageContext,
    ParameterListView,
};

/// No datagram is longer.
const DATAGRAM_BYTES_MAX: u32 = 1 << 16;

impl Reader {
    /// What a writer sent; [`DropReason::UnknownEndpoint`] for what only writers hear.
    ///
    /// # Errors
    /// As [`Self::on_data`].
    pub fn on_submessage(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        match submessage {
            EndpointSubmessage::Data(it) => self.on_data(now, context, it, out),
            EndpointSubmessage::DataFrag(it) => self.on_data_frag(now, context, it, out),
            EndpointSubmessage::Heartbeat(it) => self.on_heartbeat(now, context, it, out),
            EndpointSubmessage::HeartbeatFrag(it) => self.on_heartbeat_frag(now, context, it, out),
            EndpointSubmessage::Gap(it) => self.on_gap(now, context, it, out),
            EndpointSubmessage::AckNack(_) | EndpointSubmessage::NackFrag(_) => {
                Err(DropReason::UnknownEndpoint)
            }
        }
    }

    /// DATA.
    ///
    /// # Errors
    /// Why the sample went no further; also counted in [`Self::drops`].
    pub fn on_data(
        &mut self,
        now: Now,
        context: &MessageContext,
        data: &Data<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let writer = self.writer_of(&context.sender(data.writer));
        let result = writer.and_then(|writer| self.data(now, context, writer, data, out));
        result.map_err(|reason| self.dropped(reason))
    }

    /// As [`Self::on_data`], of the samples of a run, until `notified_max` of them have left something to
    /// tell, or so many octets. Returns how many have, and whether the run is over. What is dropped is
    /// counted in [`Self::drops`], and `dropped` hears of it.
    pub fn on_run(
        &mut self,
        now: Now,
        run: &mut Run<'_, '_>,
        notified_max: usize,
        out: &mut Outbox,
        mut dropped: impl FnMut(DropReason),
    ) -> (usize, bool) {
        let (mut notified, mut notified_bytes) = (0, 0);
        let writer = self.writer_of(&run.context().sender(run.writer().entity));
        while let Some((context, data)) = run.next() {
            let taken_in = match writer {
                Ok(writer) => self.data(now, context, writer, &data, out),
                Err(reason) => Err(reason),
            };
            if let Err(reason) = taken_in {
                dropped(self.dropped(reason));
            }
            notified += usize::from(!out.events.is_empty());
            if data.payload.len() > SHORT_BYTES_MAX {
                notified_bytes += data.payload.len();
            }
            if notified >= notified_max || notified > 0 && notified_bytes >= NOTIFY_BYTES_MAX {
                return (notified, run.is_over());
            }
        }
        (notified, true)
    }

    /// DATA_FRAG.
    ///
    /// # Errors
    /// As [`Self::on_data`].
    pub fn on_data_frag(
        &mut self,
        now: Now,
        context: &MessageContext,
        fragment: &DataFrag<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let result = self.data_frag(now, context, fragment, out);
        result.map_err(|reason| self.dropped(reason))
    }

    /// HEARTBEAT.
    ///
    /// # Errors
    /// As [`Self::on_data`].
    pub fn on_heartbeat(
        &mut self,
        now: Now,
        context: &MessageContext,
        heartbeat: &Heartbeat,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let result = self.heartbeat(now, context, heartbeat, out);
        result.map_err(|reason| self.dropped(reason))
    }

    /// HEARTBEAT_FRAG.
    ///
    /// # Errors
    /// As [`Self::on_data`].
    pub fn on_heartbeat_frag(
        &mut self,
        now: Now,
        context: &MessageContext,
        heartbeat: &HeartbeatFrag,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let result = self.heartbeat_frag(now, context, heartbeat, out);
        result.map_err(|reason| self.dropped(reason))
    }

    /// GAP.
    ///
    /// # Errors
    /// As [`Self::on_data`].
    pub fn on_gap(
        &mut self,
        now: Now,
        context: &MessageContext,
        gap: &Gap,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let result = self.gap(now, context, gap, out);
        result.map_err(|reason| self.dropped(reason))
    }

    /// Most often the one of which something came last, from where it came last.
    #[inline(always)]
    fn writer_of(&mut self, sender: &Sender) -> Result<WriterId, DropReason> {
        if self.proxy(self.recent_writer).is_none_or(|proxy| proxy.guid != sender.guid) {
            self.recent_writer = self.by_guid.get(&sender.guid).copied().ok_or(DropReason::NotMatched)?;
        }
        let id = self.recent_writer;
        let proxy = self.proxy_mut(id).ok_or(DropReason::NotMatched)?;
        if proxy.origin.admit(&sender.from) { Ok(id) } else { Err(DropReason::SpoofSuspected) }
    }

    #[inline(always)]
    fn data(
        &mut self,
        now: Now,
        context: &MessageContext,
        id: WriterId,
        data: &Data<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        self.heard_change(now, id, data.sequence_number, out);
        let arrival = self.check_arrival(id, data.sequence_number)?;
        if data.payload.len() > self.limits.sample_bytes_max {
            return self.unusable(now, id, data.sequence_number, DropReason::SampleTooLarge, out);
        }
        let payload = match data.attachment {
            _ if data.payload.len() <= COPIED_BYTES_MAX => Incoming::Octets(data.payload),
            Some(attachment) => Incoming::Payload(attachment.clone()),
            None => Incoming::Payload(self.small.copy(data.payload)),
        };
        let mut change = Change::new(data.sequence_number, now, context.timestamp, data.key_only, payload);
        if let Some(inline_qos) = &data.inline_qos
            && let Err(reason) = self.hear(inline_qos, &mut change)
        {
            return self.unusable(now, id, data.sequence_number, reason, out);
        }
        self.arrived(now, id, arrival, &mut change, out)
    }

    /// Whether a change with this number is worth looking at, and when it is its turn; at once without
    /// reliability.
    #[inline(always)]
    fn check_arrival(&self, id: WriterId, number: SequenceNumber) -> Result<Arrival, DropReason> {
        let proxy = self.proxy(id).ok_or(DropReason::NotMatched)?;
        if number < SequenceNumber::FIRST {
            return Err(DropReason::ImplausibleSequence);
        }
        if proxy.reliable {
            return match proxy.order.arrival(number) {
                Arrival::Known => Err(DropReason::Duplicate),
                Arrival::Next if number.0 <= SEQUENCE_NUMBER_MAX => Ok(Arrival::Next),
                _ if proxy.is_implausible(number) => Err(DropReason::ImplausibleSequence),
                arrival => Ok(arrival),
            };
        }
        if number == proxy.received {
            Err(DropReason::Duplicate)
        } else if number < proxy.received && proxy.received.0 - number.0 <= SEQUENCE_JUMP_MAX {
            Err(DropReason::OutOfOrder)
        } else if proxy.is_implausible(number) {
            Err(DropReason::ImplausibleSequence)
        } else {
            Ok(Arrival::Next)
        }
    }

    /// A change that can never be delivered must not hold up those behind it.
    #[cold]
    fn unusable(
        &mut self,
        now: Now,
        id: WriterId,
        number: SequenceNumber,
        reason: DropReason,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let proxy = self.proxy_mut(id).ok_or(DropReason::NotMatched)?;
        if proxy.reliable {
            proxy.order.skip(number, number)?;
            self.samples_lost(1, out);
            if self.drain(now, id, out) {
                self.data_available(out);
            }
        }
        Err(reason)
    }

    /// What inline QoS says about a change.
    fn hear(&self, inline_qos: &ParameterListView<'_>, change: &mut Change<'_>) -> Result<(), DropReason> {
        let qos = InlineQos::parse(inline_qos)?;
        let is_number = |number: &SequenceNumber| (1..=SEQUENCE_NUMBER_MAX).contains(&number.0);
        // A writer may withhold what our filter does not want; whether it wants something we see ourselves.
        let verdict = self
            .filter_signature
            .as_ref()
            .and_then(|signature| ContentFilterInfo::find(inline_qos)?.result(signature));
        change.status = qos.status_info;
        change.key_hash = qos.key_hash;
        change.coherent_set = qos.coherent_set.filter(is_number);
        change.group_set = qos.group_coherent_set.filter(is_number);
        change.group_number = qos.group_sequence_number.filter(is_number);
        change.group_writers = qos.group_writers;
        change.lifespan = qos.lifespan;
        change.ownership_strength = qos.ownership_strength;
        change.unwanted = qos.status_info.filtered || verdict == Some(false);
        Ok(())
    }

    #[inline(always)]
    fn arrived(
        &mut self,
        now: Now,
        id: WriterId,
        arrival: Arrival,
        change: &mut Change<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        if let (Some(strength), Some(publication)) =
            (change.ownership_strength, self.cache.publications.get_mut(id))
        {
            publication.strength = strength;
        }
        let proxy = self.proxy(id).ok_or(DropReason::NotMatched)?;
        if !proxy.reliable {
            return self.arrived_best_effort(now, id, change, out);
        }
        if proxy.fragments.contains(change.sequence_number) {
            // It came whole after all.
            self.with_fragments(id, |fragments, _| fragments.forget(change.sequence_number));
        }
        let Self { proxies, cache, presenter, .. } = self;
        let proxy = proxies.get_mut(id as usize).and_then(Option::as_mut).ok_or(DropReason::NotMatched)?;
        if arrival != Arrival::Next || proxy.blocked {
            return self.arrived_early(now.mono, id, change);
        }
        let outcome = presenter.accept(cache, &mut proxy.sets, now, id, change);
        let stored = match outcome {
            Outcome::Refused(..) | Outcome::Waits => {
                if let Outcome::Refused(reason, instance) = outcome {
                    self.rejected(reason, instance, out);
                }
                let others = self.reordered_of_others(id);
                let Self { proxies, limits, blocked, .. } = self;
                let proxy = proxies.get_mut(id as usize).and_then(Option::as_mut);
                let proxy = proxy.ok_or(DropReason::NotMatched)?;
                proxy.refused = change.sequence_number;
                proxy.order.insert(change.take(), others, limits)?;
                proxy.blocked = true;
                *blocked += 1;
                return Ok(());
            }
            Outcome::Stored => true,
            Outcome::Consumed | Outcome::Dropped(_) | Outcome::Rejected(..) => false,
        };
        proxy.order.delivered();
        if self.deliver_waiting(now, id, out) | stored {
            self.data_available(out);
        }
        match outcome {
            Outcome::Dropped(reason) => Err(reason),
            Outcome::Rejected(reason, instance) => {
                self.rejected(reason, instance, out);
                Err(DropReason::ResourceLimit)
            }
            _ => Ok(()),
        }
    }

    /// A reliable change that is not in its turn, or behind one that the cache refused, waits.
    #[cold]
    fn arrived_early(
        &mut self,
        now: Instant,
        id: WriterId,
        change: &mut Change<'_>,
    ) -> Result<(), DropReason> {
        let number = change.sequence_number;
        let others = self.reordered_of_others(id);
        let Self { proxies, limits, .. } = self;
        let proxy = proxies.get_mut(id as usize).and_then(Option::as_mut).ok_or(DropReason::NotMatched)?;
        proxy.order.insert(change.take(), others, limits)?;
        if !proxy.blocked {
            proxy.came_early(now, number);
            let due = proxy.answer.due;
            self.wake_at(due);
        }
        Ok(())
    }

    /// Octets that wait for their turn of all writers but one. Of one that has no more than its part of the
    /// limit nobody else's matter: it may keep so much, whoever floods the reader.
    fn reordered_of_others(&self, id: WriterId) -> usize {
        let own = self.proxy(id).map_or(0, |proxy| proxy.order.waiting_bytes());
        if own <= self.limits.reorder_bytes_max / self.limits.writers_max.max(1) {
            return 0;
        }
        let all = self.proxies.iter().flatten().map(|proxy| proxy.order.waiting_bytes());
        all.sum::<usize>().saturating_sub(own)
    }

    fn arrived_best_effort(
        &mut self,
        now: Now,
        id: WriterId,
        change: &mut Change<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let proxy = self.proxy_mut(id).ok_or(DropReason::NotMatched)?;
        let previous = std::mem::replace(&mut proxy.received, change.sequence_number);
        let next = change.sequence_number.next();
        self.with_fragments(id, |fragments, _| fragments.forget_below(next));
        if previous.0 > 0 {
            let lost = change.sequence_number.0 - previous.0 - 1;
            self.samples_lost(u64::try_from(lost).unwrap_or(0), out);
        }
        let result = self.accept_best_effort(now, id, change, out);
        self.notify_presented(out);
        result
    }

    /// A best-effort change goes into the cache, its set or nowhere.
    pub(super) fn accept_best_effort(
        &mut self,
        now: Now,
        id: WriterId,
        change: &mut Change<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let Self { proxies, cache, presenter, limits, .. } = self;
        let proxy = proxies.get_mut(id as usize).and_then(Option::as_mut).ok_or(DropReason::NotMatched)?;
        match presenter.accept(cache, &mut proxy.sets, now, id, change) {
            Outcome::Stored => self.data_available(out),
            Outcome::Consumed => {}
            Outcome::Dropped(reason) => return Err(reason),
            Outcome::Refused(reason, instance) | Outcome::Rejected(reason, instance) => {
                self.rejected(reason, instance, out);
                return Err(DropReason::ResourceLimit);
            }
            Outcome::Waits => {
                if !presenter.wait(id, change.take(), limits) {
                    self.samples_lost(1, out);
                    return Err(DropReason::BufferFull);
                }
            }
        }
        Ok(())
    }

    #[cold]
    pub(super) fn rejected(&mut self, reason: RejectReason, instance: InstanceHandle, out: &mut Outbox) {
        self.statuses.reject(reason, instance);
        self.changed(StatusKind::SampleRejected, out);
    }

    /// A change was delivered in its turn: as [`Self::drain`], where it is not the last that has arrived.
    #[inline(always)]
    fn deliver_waiting(&mut self, now: Now, id: WriterId, out: &mut Outbox) -> bool {
        let waiting = self.proxy(id).is_some_and(|proxy| proxy.order.is_waiting() || proxy.historical);
        if waiting {
            return self.drain(now, id, out);
        }
        if self.presenter.is_grouped() {
            // A heartbeat may have come before what it names.
            self.advance_group(id);
        }
        self.notify_presented(out);
        false
    }

    /// Delivers what has its turn now. Returns whether anything became readable.
    fn drain(&mut self, now: Now, id: WriterId, out: &mut Outbox) -> bool {
        let (stored, refused) = self.deliver(now, id);
        if let Some((reason, instance)) = refused {
            self.rejected(reason, instance, out);
        }
        self.notify_presented(out);
        if self.proxy_mut(id).is_some_and(Proxy::history_completed) {
            out.events.push(Event::Progress { endpoint: self.guid.entity });
        }
        stored
    }

    /// As [`Self::drain`], for callers that cannot report; also returns a refusal that is new.
    fn deliver(&mut self, now: Now, id: WriterId) -> (bool, Option<(RejectReason, InstanceHandle)>) {
        let Self { proxies, cache, presenter, drops, blocked, .. } = self;
        let Some(proxy) = proxies.get_mut(id as usize).and_then(Option::as_mut) else { return (false, None) };
        *blocked -= usize::from(std::mem::take(&mut proxy.blocked));
        let mut stored = false;
        while let Some(change) = proxy.order.next() {
            match presenter.accept(cache, &mut proxy.sets, now, id, change) {
                Outcome::Refused(reason, instance) => {
                    let known = std::mem::replace(&mut proxy.refused, change.sequence_number);
                    let refusal = (known != change.sequence_number).then_some((reason, instance));
                    proxy.blocked = true;
                    *blocked += 1;
                    return (stored, refusal);
                }
                Outcome::Waits => {
                    proxy.blocked = true;
                    *blocked += 1;
                    return (stored, None);
                }
                Outcome::Stored => stored = true,
                Outcome::Consumed => {}
                Outcome::Dropped(reason) => drops.count(reason),
                Outcome::Rejected(reason, instance) => presenter.reject(reason, instance),
            }
            proxy.order.delivered();
        }
        self.advance_group(id);
        (stored, None)
    }

    /// There is room in the cache again: refused samples enter it, and are acknowledged by the timer,
    /// because `take` cannot send.
    pub(super) fn unblock(&mut self, now: Now) {
        for index in 0..self.proxies.len() {
            let id = index as WriterId;
            let Some(proxy) = self.proxy(id).filter(|proxy| proxy.blocked) else { continue };
            let before = proxy.order.expected();
            let (stored, refused) = self.deliver(now, id);
            if stored {
                self.unnotified = self.unnotified.with(StatusKind::DataAvailable);
            }
            let rejections = self.presenter.take_rejections();
            for (reason, instance) in rejections.into_iter().chain(refused) {
                self.statuses.reject(reason, instance);
                self.unnotified = self.unnotified.with(StatusKind::SampleRejected);
            }
            if let Some(proxy) = self.proxy_mut(id).filter(|proxy| proxy.order.expected() != before) {
                proxy.answer.owe(now.mono, true);
            }
            self.wake_at(Some(now.mono));
        }
    }

    fn data_frag(
        &mut self,
        now: Now,
        context: &MessageContext,
        fragment: &DataFrag<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let id = self.writer_of(&context.sender(fragment.writer))?;
        let number = fragment.sequence_number;
        self.heard_change(now, id, number, out);
        let arrival = self.check_arrival(id, number)?;
        if fragment.sample_bytes as usize > self.limits.sample_bytes_max {
            return self.unusable(now, id, number, DropReason::SampleTooLarge, out);
        }
        self.with_fragments(id, |fragments, _| fragments.forget_recut(fragment, now.mono, FRAGMENTS_STALLED));
        self.make_room_for_sample(id, number);
        let proxy = self.proxy(id).ok_or(DropReason::NotMatched)?;
        let growth = proxy.fragments.growth(fragment)?;
        let first = !proxy.fragments.contains(number);
        self.afford(now.mono, id, number, growth)?;
        let inline_qos = fragment.inline_qos.as_ref();
        // Inline QoS goes with one fragment, which need not be the first to arrive.
        let telling = first || inline_qos.is_some();
        let mut change = telling
            .then(|| Change::new(number, now, context.timestamp, fragment.key_only, Incoming::Octets(&[])));
        if let (Some(inline_qos), Some(change)) = (inline_qos, &mut change)
            && let Err(reason) = self.hear(inline_qos, change)
        {
            return self.unusable(now, id, number, reason, out);
        }
        let Self { proxies, small, large, assembly, .. } = self;
        // One that a datagram could hold has a buffer as those that come whole.
        let pool = if fragment.sample_bytes < DATAGRAM_BYTES_MAX { small } else { large };
        let proxy = proxies.get_mut(id as usize).and_then(Option::as_mut).ok_or(DropReason::NotMatched)?;
        let before = proxy.fragments.bytes();
        let complete = proxy.fragments.add(fragment, growth, pool, change, now.mono);
        if proxy.fragments.bytes() != before {
            assembly.settle(id, proxy, before);
        }
        let complete = complete?;
        proxy.fragment_arrival = Some((now.mono, number));
        let Some(change) = complete else { return Ok(()) };
        // A sample is received when it is whole.
        let mut change = Change { reception_timestamp: now.wall, ..change };
        let arrived = self.arrived(now, id, arrival, &mut change, out);
        self.keep_promise(now.mono, id, out);
        arrived
    }

    fn heartbeat(
        &mut self,
        now: Now,
        context: &MessageContext,
        heartbeat: &Heartbeat,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let id = self.writer_of(&context.sender(heartbeat.writer))?;
        let is_named = heartbeat.reader == self.guid.entity;
        let proxy = self.proxy_mut(id).ok_or(DropReason::NotMatched)?;
        if !proxy.reliable {
            self.heard_heartbeat(now, id, heartbeat, out);
            return Ok(());
        }
        // Counts may start again after a restart or by another path: only an equal one is a duplicate.
        if proxy.heard.count == Some(heartbeat.count) {
            return Err(DropReason::StaleCount);
        }
        let Heartbeat { mut first, last, .. } = *heartbeat;
        if last.0 == 0 {
            // An empty writer; old products announce (2, 0).
            first = SequenceNumber::FIRST;
        }
        if first < SequenceNumber::FIRST || last < first.previous() {
            return Err(DropReason::Malformed);
        }
        let group = heartbeat.group.as_ref();
        if proxy.is_implausible(last) || group.is_some_and(|group| group.current.0 > SEQUENCE_NUMBER_MAX) {
            return Err(DropReason::ImplausibleSequence);
        }
        if is_named && proxy.heard.named_last.is_none() {
            proxy.heard.named_last = Some(last);
        }
        let unheard = proxy.heard.count.is_none();
        proxy.heard.is_same_vendor = context.vendor == vendor::PLAINSONG;
        let is_overtaken = proxy.heard.is_overtaken(now.mono, heartbeat.count);
        if !is_overtaken {
            (proxy.heard.count, proxy.heard.counted) = (Some(heartbeat.count), now.mono);
        }
        let is_news = !is_overtaken || proxy.answer.request_count.is_none();
        if is_news && !heartbeat.final_flag {
            let names_count = proxy.heard.is_same_vendor && !heartbeat.writer.is_builtin();
            proxy.answer.request_count = names_count.then_some(heartbeat.count);
        }
        if unheard {
            proxy.heard.history_last = last;
            proxy.sets.progress.begin(last, group);
            proxy.answer.probe_at = None;
        }
        let known = proxy.heard.last;
        let (mut lost, mut began_anew) = (0, false);
        if !is_overtaken {
            (lost, began_anew) = proxy.hear(first, last);
        }
        lost += proxy.order.first_available(first, known);
        if unheard {
            // What was gone before this reader came is not lost to it.
            lost = 0;
            proxy.order.forget_unconfirmed();
        }
        let expected = proxy.order.expected();
        let passed = proxy.sets.progress.hear(last, group);
        self.presenter.part_ended |= passed && self.presenter.is_grouped();
        self.heard_heartbeat(now, id, heartbeat, out);
        self.with_fragments(id, |fragments, _| fragments.forget_below(expected));
        self.given_up(lost, began_anew.then(|| context.source.entity(heartbeat.writer)), out);
        if self.drain(now, id, out) {
            self.data_available(out);
        }
        let delay = self.limits.heartbeat_response_delay;
        if delay <= Duration::ZERO {
            self.answer(now.mono, id, !heartbeat.final_flag, out);
        } else if let Some(proxy) = self.proxy_mut(id) {
            let due = now.mono.after(delay).unwrap_or(now.mono);
            proxy.answer.owe(due, !heartbeat.final_flag);
            self.wake_at(Some(due));
        }
        Ok(())
    }

    fn heartbeat_frag(
        &mut self,
        now: Now,
        context: &MessageContext,
        heartbeat: &HeartbeatFrag,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let id = self.writer_of(&context.sender(heartbeat.writer))?;
        let proxy = self.proxy_mut(id).ok_or(DropReason::NotMatched)?;
        if !proxy.reliable {
            return Ok(());
        }
        if proxy.heard.fragment_count == Some(heartbeat.count) {
            return Err(DropReason::StaleCount);
        }
        if heartbeat.sequence_number < SequenceNumber::FIRST
            || proxy.is_implausible(heartbeat.sequence_number)
        {
            return Err(DropReason::ImplausibleSequence);
        }
        proxy.heard.fragment_count = Some(heartbeat.count);
        if proxy.order.arrival(heartbeat.sequence_number) != Arrival::Known {
            self.answer_fragments(now.mono, id, heartbeat.sequence_number, heartbeat.last_fragment, out);
        }
        Ok(())
    }

    fn gap(
        &mut self,
        now: Now,
        context: &MessageContext,
        gap: &Gap,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let id = self.writer_of(&context.sender(gap.writer))?;
        let proxy = self.proxy_mut(id).ok_or(DropReason::NotMatched)?;
        let base = gap.list.base();
        if gap.start < SequenceNumber::FIRST || base < gap.start {
            return Err(DropReason::Malformed);
        }
        if proxy.is_implausible(base) {
            return Err(DropReason::ImplausibleSequence);
        }
        if !proxy.reliable {
            if gap.start <= proxy.received.next() {
                proxy.received = proxy.received.max(base.previous());
            }
            return Ok(());
        }
        let numbers = base.0.abs_diff(gap.start.0) + gap.list.iter().count() as u64;
        let filtered = gap.filtered >= numbers;
        let is_filtering = self.filter_signature.is_some() || self.cache.policy.is_filtered_by_time();
        let Self { proxies, presenter, .. } = self;
        let proxy = proxies.get_mut(id as usize).and_then(Option::as_mut).ok_or(DropReason::NotMatched)?;
        let before = proxy.order.expected();
        let wants_all = !is_filtering && gap.filtered == 0 && proxy.is_in_step();
        let mut members = gap.list.iter().peekable();
        let mut range = Some((gap.start, base.previous()));
        while let Some((start, end)) = range {
            if filtered {
                presenter.note_filtered(&mut proxy.sets, start, end);
            }
            if wants_all {
                proxy.pass_over(start, end);
            }
            proxy.order.skip(start, end)?;
            range = members.next().map(|start| {
                let mut end = start;
                while let Some(next) = members.next_if(|next| *next == end.next()) {
                    end = next;
                }
                (start, end)
            });
        }
        let expected = proxy.order.expected();
        let announces_itself = vendor::question(proxy.vendor) == Some(Question::Nothing);
        if proxy.heard.count.is_none() && expected > before && !announces_itself {
            // An answer to the request for the lowest number: what it has comes next, and is asked for at
            // once.
            proxy.answer.probe_at = Some(now.mono);
            self.wake_at(Some(now.mono));
        }
        self.with_fragments(id, |fragments, _| fragments.forget_below(expected));
        if self.drain(now, id, out) {
            self.data_available(out);
        }
        Ok(())
    }
}

impl Proxy {
    /// Whether `number` is further ahead than the writer can have got since it was heard.
    fn is_implausible(&self, number: SequenceNumber) -> bool {
        let known = self.order.expected().max(self.heard.last).max(self.received);
        let heard = self.heard.count.is_some() || self.received.0 > 0;
        number.0 > SEQUENCE_NUMBER_MAX || (heard && number > known.plus(SEQUENCE_JUMP_MAX))
    }
}
