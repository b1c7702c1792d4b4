//! Whether there is room: RESOURCE_LIMITS and the limits of the reader (DCPS 1.4 §2.2.3.19).

use std::collections::BTreeMap;

use super::super::change::Change;
use super::super::instances::InstanceId;
use super::Cache;
use crate::instance::InstanceHandle;
use crate::status::RejectReason;

/// Whether the cache can take in several changes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reader) enum Room {
    Enough,
    /// When the application has taken some.
    Later(RejectReason, InstanceHandle),
    /// Not even an empty cache could.
    Never,
}

impl Cache {
    /// Samples with data of an instance.
    pub(super) fn valid_in(&self, id: InstanceId) -> usize {
        self.instances.get(id).map_or(0, |instance| instance.valid as usize)
    }

    /// Why a sample of so many octets cannot enter, of an instance that has so many.
    #[inline]
    pub(super) fn no_room(&self, held: usize, bytes: usize) -> Option<RejectReason> {
        if self.policy.depth.is_some_and(|depth| held >= depth) {
            // Takes the place of an older one.
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

    /// Whether all `changes` of one writer can enter together, counted so that the answer is never too
    /// hopeful.
    pub(in crate::reader) fn room_for<'a>(
        &self,
        changes: impl IntoIterator<Item = &'a Change<'static>>,
    ) -> Room {
        let mut counts = BTreeMap::new();
        let mut bytes = 0usize;
        for change in changes {
            let Ok(handle) = self.identify(change, change.payload.as_slice()) else { continue };
            let is_data = !change.status.disposed && !change.status.unregistered;
            if is_data && !self.wants(change) {
                continue;
            }
            *counts.entry(handle).or_insert(0) += usize::from(is_data);
            bytes = bytes.saturating_add(change.payload.len());
        }
        let policy = &self.policy;
        let (mut alone, mut more, mut new) = (0usize, 0usize, 0usize);
        let mut later = None;
        for (handle, count) in &counts {
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
        let first = counts.keys().next().copied().unwrap_or_default();
        if self.ledger.valid_samples.saturating_add(more) > policy.samples_max
            || (self.ledger.valid_samples > 0
                && self.ledger.bytes.saturating_add(bytes) > self.limits.cache_bytes_max)
        {
            later = Some((RejectReason::SamplesLimit, first));
        }
        if (self.instances.len() + new).saturating_sub(self.retired.len()) > policy.instances_max {
            later = Some((RejectReason::InstancesLimit, first));
        }
        later.map_or(Room::Enough, |(reason, instance)| Room::Later(reason, instance))
    }
}
