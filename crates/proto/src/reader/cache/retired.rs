//! Instances that nobody writes and of which nothing is left to read: remembered for a while, then forgotten.

use super::super::instances::{Instance, InstanceId};
use super::{Cache, Timer, leave};
use crate::time::Instant;

impl Cache {
    /// Puts an empty instance that is not alive in the queue of those to forget. The queue keeps some:
    /// their handles and generation counts stay known for a while.
    pub(in crate::reader) fn retire_if_idle(&mut self, id: InstanceId) {
        let idle = |instance: &&mut Instance| instance.samples.is_empty() && !instance.is_alive();
        let Some(instance) = self.instances.get_mut(id).filter(idle) else { return };
        self.next_id += 1;
        instance.details_mut().retired = self.next_id;
        self.retired.push_back((id, self.next_id));
        while self.retired.len() > self.limits.retired_instances_max {
            let Some((id, stamp)) = self.retired.pop_front() else { break };
            self.forget_retired(id, stamp);
        }
    }

    pub(super) fn forget_retired(&mut self, id: InstanceId, stamp: u64) {
        let idle = self.instances.get(id).is_some_and(|instance| {
            instance.details().retired == stamp && instance.samples.is_empty() && !instance.is_alive()
        });
        if idle {
            self.forget(id);
        }
    }

    pub(in crate::reader) fn forget(&mut self, id: InstanceId) {
        self.drop_held(id);
        let Some(mut instance) = self.instances.remove(id) else { return };
        if self.freed.note(1) {
            self.timers.insert((Instant(0), id, Timer::Freed));
        }
        self.names.forget(&instance);
        while let Some(at) = instance.samples.first() {
            if leave(&mut self.samples, &mut self.ledger, &self.policy, &mut instance, at, None).is_none() {
                break;
            }
        }
        if instance.details().writers > 0 {
            for publication in self.publications.iter_mut() {
                publication.instances.remove(&id);
            }
        }
        if let Some(at) = instance.details().deadline_armed {
            self.timers.remove(&(at, id, Timer::Deadline));
        }
        if let Some(at) = instance.details().purge_at {
            self.timers.remove(&(at, id, Timer::Purge));
        }
    }

    /// Gives memory back after a flood.
    #[cold]
    #[inline(never)]
    pub(in crate::reader) fn trim(&mut self) {
        self.samples.trim();
        if self.instances.has_shrunk() {
            // They came last and would keep the memory of all before them.
            while let Some((id, stamp)) = self.retired.pop_front() {
                self.forget_retired(id, stamp);
            }
            self.instances.trim();
        }
    }
}
