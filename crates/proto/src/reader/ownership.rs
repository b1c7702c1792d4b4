//! The writers as the cache sees them: strength, lifespan, and which instances each keeps alive.

use std::collections::BTreeSet;

use super::instances::{Instance, InstanceId, OptionalIndex};
use crate::guid::Guid;
use crate::time::Duration;

/// Index of a writer in its reader; the same number names its proxy.
pub(super) type WriterId = u32;

/// DCPS facts about one matched writer.
#[derive(Debug)]
pub(super) struct Publication {
    pub(super) guid: Guid,
    /// OWNERSHIP_STRENGTH, as announced last.
    pub(super) strength: i32,
    pub(super) lifespan: Duration,
    /// Instances this writer wrote and neither unregistered nor lost.
    pub(super) instances: BTreeSet<InstanceId>,
}

/// All matched writers, by [`WriterId`].
#[derive(Debug, Default)]
pub(super) struct Publications(Vec<Option<Publication>>);

impl Publications {
    pub(super) fn set(&mut self, id: WriterId, guid: Guid, strength: i32, lifespan: Duration) {
        let index = id as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        let Some(slot) = self.0.get_mut(index) else { return };
        let instances = slot.take().map(|known| known.instances).unwrap_or_default();
        *slot = Some(Publication { guid, strength, lifespan, instances });
    }

    pub(super) fn get(&self, id: WriterId) -> Option<&Publication> {
        self.0.get(id as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: WriterId) -> Option<&mut Publication> {
        self.0.get_mut(id as usize)?.as_mut()
    }

    /// Whoever else writes is stronger than a writer that is leaving.
    pub(super) fn weaken(&mut self, id: WriterId) {
        if let Some(publication) = self.get_mut(id) {
            publication.strength = i32::MIN;
        }
    }

    pub(super) fn remove(&mut self, id: WriterId) {
        if let Some(slot) = self.0.get_mut(id as usize) {
            *slot = None;
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Publication> {
        self.0.iter_mut().flatten()
    }

    /// `writer` keeps the instance alive from now on.
    pub(super) fn register(&mut self, writer: WriterId, id: InstanceId, instance: &mut Instance) {
        if instance.recent_writer.get() == Some(writer) {
            return;
        }
        instance.recent_writer = OptionalIndex::of(writer);
        if self.get_mut(writer).is_some_and(|publication| publication.instances.insert(id)) {
            instance.details_mut().writers += 1;
        }
    }

    /// Whether `challenger` may write an instance that `owner` owns (DCPS 1.4 §2.2.3.9.2): greater
    /// strength wins, equal strength goes to the lower GUID, so that every reader decides alike.
    pub(super) fn may_write(&self, challenger: WriterId, owner: Option<WriterId>) -> bool {
        let Some(owner) = owner.filter(|owner| *owner != challenger).and_then(|owner| self.get(owner)) else {
            return true;
        };
        self.get(challenger)
            .is_some_and(|challenger| (challenger.strength, owner.guid) > (owner.strength, challenger.guid))
    }

    /// Whom an instance passes to when its owner leaves it: the strongest of those that still write it.
    pub(super) fn strongest_of(&self, instance: InstanceId) -> Option<WriterId> {
        let writers = (0..).zip(&self.0).filter_map(|(id, slot)| Some((id, slot.as_ref()?)));
        let writers = writers.filter(|(_, publication)| publication.instances.contains(&instance));
        let strength = |(_, publication): &(WriterId, &Publication)| {
            (publication.strength, std::cmp::Reverse(publication.guid))
        };
        writers.max_by_key(strength).map(|(id, _)| id)
    }
}
