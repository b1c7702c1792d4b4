//! DURABILITY and DURABILITY_SERVICE (DCPS 1.4 §2.2.3.4 and .5) of a writer: what it keeps for late joiners
//! once everybody present has it.
//!
//! VOLATILE keeps nothing, TRANSIENT_LOCAL what HISTORY says. For TRANSIENT and PERSISTENT the standard
//! imagines a service with a reader and a writer of its own, which DURABILITY_SERVICE configures. Here the
//! writer itself is that service, as long as it lives: changes that everybody has are handed over to it, and
//! then its history, limits and cleanup delay apply instead of those of the writer. The service never refuses
//! a change: at its limits the oldest leaves. What outlives neither writer nor machine is told by
//! [`crate::qos::unhonoured()`].

use super::change::ChangeKind;
use super::history::History;
use super::instances::{Instances, Slot};
use crate::qos::HistoryKind;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::writer::{Limit, WriteError, Writer, bound};

impl History {
    /// The instance of which `previous` was the last change is written again.
    pub(crate) fn reopen(&mut self, previous: SequenceNumber) {
        if let Some(service) = &mut self.service {
            service.closed(previous);
        }
    }

    /// Everybody present has the change: the service keeps it.
    pub(crate) fn hand_over(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        slot: Slot,
        instances: &mut Instances,
    ) {
        let Some((kind, previous, is_last)) = self.with_previous(number) else { return };
        if kind.unregisters() && is_last {
            let disposed = kind.disposes() || previous.is_some_and(ChangeKind::disposes);
            self.close(now, number, slot, disposed, instances);
        }
        self.trim(slot, instances);
    }

    /// This writer, which is all the service knows of, writes the instance no more.
    fn close(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        slot: Slot,
        disposed: bool,
        instances: &mut Instances,
    ) {
        let Some(service) = &mut self.service else { return };
        if disposed && service.cleanup_delay <= Duration::ZERO {
            return self.purge(slot, instances);
        }
        let end = if disposed { now.after(service.cleanup_delay) } else { None };
        service.closed.insert(number, (slot, end));
        service.cleanups.extend(end.map(|end| (end, number)));
    }

    /// History of the service: its last changes of each instance, and whether it is unregistered.
    fn trim(&mut self, slot: Slot, instances: &mut Instances) {
        let Some(depth) = self.service.as_ref().map(|service| service.depth) else { return };
        while let Some(instance) = instances.get(slot).filter(|instance| instance.samples > depth) {
            let extra = usize::from(self.kind(instance.newest) == Some(ChangeKind::Unregister));
            if instance.samples - extra <= depth || instance.oldest > self.released() {
                return;
            }
            self.remove_in_place(instance.oldest, instances);
        }
    }

    /// Limits of the service: the oldest leaves.
    pub(crate) fn keep_service_limits(&mut self, instances: &mut Instances) {
        let Some(service) = &self.service else { return };
        let (samples_max, instances_max) = (service.samples_max, service.instances_max);
        while self.len() > samples_max && self.first() <= self.released() {
            self.remove(self.first(), instances);
        }
        while instances.len() > instances_max && self.forget_closed(instances) {}
    }

    /// Forgets the instance that was unregistered first; whether there is one.
    pub(crate) fn forget_closed(&mut self, instances: &mut Instances) -> bool {
        let first = self.service.as_ref().and_then(|service| service.closed.first_key_value());
        let Some((_, &(slot, _))) = first else { return false };
        self.purge(slot, instances);
        self.drop_holes();
        true
    }

    /// Forgets disposed instances whose cleanup delay has passed.
    pub(crate) fn clean_up(&mut self, now: Instant, instances: &mut Instances) {
        while let Some(service) = &self.service
            && let Some(&(end, number)) = service.cleanups.first()
            && end <= now
            && let Some(&(slot, _)) = service.closed.get(&number)
        {
            self.purge(slot, instances);
            self.drop_holes();
        }
    }

    /// When [`Self::clean_up`] is due.
    pub(crate) fn next_cleanup(&self) -> Option<Instant> {
        Some(self.service.as_ref()?.cleanups.first()?.0)
    }
}

impl Writer {
    /// Makes room for one more change beside what the service keeps, or says why there is none.
    pub(crate) fn admit_beside_service(
        &mut self,
        slot: Option<Slot>,
        kind: ChangeKind,
        depth: usize,
        service_depth: usize,
    ) -> Result<(), WriteError> {
        let keep_last = self.config.qos.history.kind == HistoryKind::KeepLast;
        let most = bound(self.config.qos.resource_limits.max_samples);
        if self.history.pending() >= most {
            return Err(self.full(Limit::Samples));
        }
        if !keep_last && self.pending_of(slot, depth) >= depth {
            return Err(self.full(Limit::SamplesPerInstance));
        }
        // That the instance is unregistered replaces no data.
        if keep_last && kind != ChangeKind::Unregister {
            let depth = depth.max(service_depth);
            while let Some(instance) = slot.and_then(|slot| self.instances.get(slot))
                && instance.samples >= depth
            {
                self.history.remove(instance.oldest, &mut self.instances);
            }
        }
        Ok(())
    }

    /// Changes of an instance that somebody still has to acknowledge, counted up to `most`.
    fn pending_of(&self, slot: Option<Slot>, most: usize) -> usize {
        let Some(instance) = slot.and_then(|slot| self.instances.get(slot)) else { return 0 };
        if most == usize::MAX || instance.samples == 0 {
            return 0;
        }
        let newest = Some(instance.newest);
        let changes = std::iter::successors(newest, |number| self.history.previous(*number));
        changes.take_while(|number| *number > self.history.released()).take(most).count()
    }

    pub(crate) fn service_depth(&self) -> Option<usize> {
        self.history.service.as_ref().map(|service| service.depth)
    }

    pub(crate) fn admit_instance(&mut self) -> Result<(), WriteError> {
        let most = bound(self.config.qos.resource_limits.max_instances).min(self.config.limits.instances_max);
        while self.instances.len() >= most {
            if !self.history.forget_closed(&mut self.instances) {
                return Err(WriteError::OutOfResources(Limit::Instances));
            }
        }
        Ok(())
    }
}
