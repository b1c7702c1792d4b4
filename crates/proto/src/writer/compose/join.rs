//! Samples that join those which wait for others: what was found for the first of a datagram holds for those like it, and is not
//! asked again for each.

use crate::instance::InstanceHandle;
use crate::outbox::Outbox;
use crate::payload::{NewPayload, PayloadView};
use crate::qos::{HistoryKind, LivelinessKind};
use crate::seq::SequenceNumber;
use crate::time::{Now, Time};

use crate::writer::Writer;
use crate::writer::flow::class::Class;
use crate::writer::record::change::{Change, window_bytes};
use crate::writer::record::instances::Slot;

impl Writer {
    /// A sample of so many octets waits for others: plain ones that have no more may join it.
    pub(in crate::writer) fn note_waiting(&mut self, payload_bytes: usize) {
        if self.batch.is_first() || self.batch.joining_bytes_max.is_some_and(|most| most < payload_bytes) {
            self.batch.joining_bytes_max = self.is_plain().then_some(payload_bytes);
        }
    }

    /// Whether data is all that a sample is: nothing is noted of it but its number, and no limit is asked but the window; and whether all
    /// readers are on this host. Filters, and a change of the way to readers, let no sample wait for others.
    fn is_plain(&self) -> bool {
        let qos = &self.config.qos;
        let is_free =
            qos.history.kind == HistoryKind::KeepAll && !self.is_limited() && self.service_depth().is_none();
        let is_untimed = qos.lifespan.is_infinite()
            && qos.deadline.is_infinite()
            && qos.liveliness.kind == LivelinessKind::Automatic
            && !self.is_by_source();
        let is_unmarked = self.open_set.is_none() && self.config.group.is_none();
        let is_near = self.proxies.route(Class::Remote).destinations.is_empty();
        is_free && is_untimed && is_unmarked && is_near && !self.proxies.inline_qos()
    }

    /// Whether [`Self::next_timeout`] may say something else than before the last call: after most samples that joined others it does
    /// not. To be asked once after each call, if at all.
    #[inline]
    pub const fn moved_timeout(&mut self) -> bool {
        !std::mem::replace(&mut self.batch.joined, false)
    }

    /// A sample of so many octets of an instance is to be written: the place of the instance, if the sample joins those which wait. If not,
    /// nothing was done.
    #[inline]
    pub(in crate::writer) fn joins(
        &mut self,
        now: Now,
        instance: InstanceHandle,
        payload_bytes: usize,
    ) -> Option<Slot> {
        let may_join = self.batch.joining_bytes_max.is_some_and(|most| payload_bytes <= most)
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
    pub(in crate::writer) fn join(
        &mut self,
        now: Now,
        (slot, instance): (Slot, InstanceHandle),
        payload: NewPayload<'_>,
        source_timestamp: Time,
        out: &mut Outbox,
    ) -> SequenceNumber {
        debug_assert!(self.holds() && self.is_plain(), "it is not like those which wait");
        debug_assert!(!self.proxies.is_filtering() && !self.pacer.is_turning(), "none may wait");
        self.instances.register_known(slot);
        self.instances.restart_deadline(slot, now.mono);
        let change = Change::plain(instance, payload.view(), source_timestamp);
        let payload_bytes = change.payload.len();
        let route = self.proxies.route(Class::SameHost);
        let target = route.target(Class::SameHost, self.config.guid, &self.config.limits);
        let is_full = self.batch.put_like(&target, self.history.last().next(), &change, &self.config.limits);
        let shown = Change::plain(instance, PayloadView::Octets(&[]), source_timestamp);
        let number = self.history.push(slot, &shown, payload, &mut self.instances);
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
}
