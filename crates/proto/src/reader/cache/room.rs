//! Whether there is room: RESOURCE_LIMITS and the limits of the reader (DCPS 1.4 §2.2.3.19).
//!
//! A sample without room waits, and with it what its writer sends after it, only where reading makes room:
//! KEEP_ALL keeps what was not taken, KEEP_LAST what was not read. A new instance beyond `max_instances` is
//! rejected at once: the application may never do anything about those that there are.
//!
//! A rejected sample is acknowledged and followed by the next. With KEEP_LAST an instance replaces its own
//! oldest sample; one that has nothing in the cache replaces what was read, or waits until something is.

use std::collections::BTreeMap;

use super::super::change::Change;
use super::super::instances::InstanceId;
use super::super::ownership::WriterId;
use super::{Cache, Outcome, leave};
use crate::instance::{InstanceHandle, Key};
use crate::long_keys::Identity;
use crate::status::RejectReason;

/// Whether the cache can take in several changes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reader) enum Room {
    Enough,
    /// When the application has read or taken some.
    Later(RejectReason, InstanceHandle),
    /// Not while there are these instances: reading makes no room for another one.
    Rejected(RejectReason, InstanceHandle),
    /// Not even an empty cache could.
    Never,
}

impl Cache {
    pub(in crate::reader) const fn samples_with_data(&self) -> usize {
        self.ledger.valid_samples
    }

    /// Samples with data of an instance.
    pub(super) fn valid_in(&self, id: InstanceId) -> usize {
        self.instances.get(id).map_or(0, |instance| instance.valid as usize)
    }

    /// Why a sample of so many octets cannot enter, of an instance that has so many.
    #[inline]
    pub(super) fn no_room(&self, held: usize, bytes: usize) -> Option<RejectReason> {
        if self.policy.depth.is_some() && held > 0 {
            // Takes the place of an older one where there is no other.
            return None;
        }
        if held >= self.policy.samples_per_instance_max {
            return Some(RejectReason::SamplesPerInstanceLimit);
        }
        let full = self.ledger.valid_samples >= self.policy.samples_max
            || (self.ledger.valid_samples > 0
                && self.ledger.bytes.saturating_add(bytes) > self.limits.cache_bytes_max);
        full.then_some(RejectReason::SamplesLimit)
    }

    /// Whether no further instance can become known.
    fn is_full_of_instances(&self) -> bool {
        self.instances.len() >= self.policy.instances_max && self.retired.is_empty()
    }

    /// Whether what was read makes room for what comes, without being taken.
    pub(in crate::reader) const fn replaces_read(&self) -> bool {
        self.policy.depth.is_some()
    }

    /// Under KEEP_LAST instances of which all was read give way, sample by sample, to one that has nothing in
    /// the cache. Returns whether there is room for so many octets then.
    fn replace_read(&mut self, bytes: usize) -> bool {
        if !self.replaces_read() {
            return false;
        }
        while self.no_room(0, bytes).is_some() {
            let Self { instances, samples, ledger, policy, .. } = self;
            let Some(id) = instances.first_read() else { return false };
            let Some(instance) = instances.get_mut(id) else { return false };
            let before = instance.shape();
            let oldest = samples.find(instance.samples, |sample| sample.valid);
            let Some(oldest) = oldest.or_else(|| instance.samples.first()) else { return false };
            leave(samples, ledger, policy, instance, oldest, None);
            instances.reshaped(id, before);
            self.retire_if_idle(id);
        }
        true
    }

    /// The instance of a sample, made if it is new, when there is room for one more of so many octets where
    /// there are already `held`; otherwise what becomes of it.
    #[inline(always)]
    pub(super) fn find_place(
        &mut self,
        writer: WriterId,
        mut known: Option<InstanceId>,
        (held, bytes): (usize, usize),
        handle: InstanceHandle,
        key: &Key,
    ) -> Result<InstanceId, Outcome> {
        if let Some(reason) = self.no_room(held, bytes) {
            if let Some(outcome) = self.make_room(reason, known.is_none(), bytes, handle) {
                return Err(outcome);
            }
            // It may have been forgotten with what gave way.
            known = self.instances.find(handle);
        }
        known.map_or_else(|| self.admit(writer, handle, key), Ok)
    }

    /// There is no room for so many octets of an instance: makes some, or says what becomes of them.
    #[cold]
    fn make_room(
        &mut self,
        reason: RejectReason,
        is_new: bool,
        bytes: usize,
        handle: InstanceHandle,
    ) -> Option<Outcome> {
        if is_new && self.is_full_of_instances() {
            return Some(Outcome::Rejected(RejectReason::InstancesLimit, handle));
        }
        (!self.replace_read(bytes)).then_some(Outcome::Refused(reason, handle))
    }

    /// Whether all `changes` of one writer can enter together, counted so that the answer is never too
    /// hopeful.
    pub(in crate::reader) fn room_for<'a>(
        &self,
        changes: impl IntoIterator<Item = &'a Change<'static>>,
    ) -> Room {
        let mut counts = BTreeMap::new();
        let mut bytes = 0usize;
        for change in changes {
            let Ok(key) = self.key_of(change, change.payload.as_slice()) else { continue };
            let identity = self.instances.identify(key);
            let is_data = !change.status.disposed && !change.status.unregistered;
            if is_data && !self.wants(change) {
                continue;
            }
            *counts.entry(identity).or_insert(0) += usize::from(is_data);
            bytes = bytes.saturating_add(change.payload.len());
        }
        let policy = &self.policy;
        let (mut alone, mut more, mut new) = (0usize, 0usize, 0usize);
        let mut later = None;
        for (Identity { handle, .. }, count) in &counts {
            let instance = self.instances.find(*handle).and_then(|id| self.instances.get(id));
            let held = instance.map_or(0, |instance| instance.valid as usize);
            let depth = policy.depth.unwrap_or(usize::MAX);
            alone += (*count).min(depth);
            more += held.saturating_add(*count).min(depth).saturating_sub(held);
            new += usize::from(instance.is_none());
            if policy.depth.is_none() && *count > policy.samples_per_instance_max {
                return Room::Never;
            }
            if policy.depth.is_none() && held.saturating_add(*count) > policy.samples_per_instance_max {
                later = Some((RejectReason::SamplesPerInstanceLimit, *handle));
            }
        }
        if alone > policy.samples_max || counts.len() > policy.instances_max {
            return Room::Never;
        }
        let first = counts.keys().next().map_or(InstanceHandle::NIL, |identity| identity.handle);
        if self.ledger.valid_samples.saturating_add(more) > policy.samples_max
            || (self.ledger.valid_samples > 0
                && self.ledger.bytes.saturating_add(bytes) > self.limits.cache_bytes_max)
        {
            later = Some((RejectReason::SamplesLimit, first));
        }
        if (self.instances.len() + new).saturating_sub(self.retired.len()) > policy.instances_max {
            return Room::Rejected(RejectReason::InstancesLimit, first);
        }
        later.map_or(Room::Enough, |(reason, instance)| Room::Later(reason, instance))
    }
}
