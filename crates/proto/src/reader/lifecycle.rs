//! READER_DATA_LIFECYCLE (DCPS 1.4 §2.2.3.22): when what was not taken of an instance that is not alive is
//! forgotten.
//!
//! Without writers the instance goes with all that is known of it. A disposed instance loses its samples; the
//! rest goes too unless some writer still keeps it registered, whose next sample must find the generation
//! counts. What was refused or filtered out keeps no instance without writers: it would be nothing to
//! remember. Empty instances are bounded in number anyway.

use super::cache::{Cache, Timer, leave};
use super::instances::InstanceId;
use crate::qos::QosSet;
use crate::sample_info::InstanceState;
use crate::time::{Duration, Now};

/// The delays of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifecycle {
    no_writers: Duration,
    disposed: Duration,
}

impl Lifecycle {
    pub(super) const fn new(qos: &QosSet) -> Self {
        Self {
            no_writers: qos.reader_data_lifecycle.autopurge_nowriter_samples_delay,
            disposed: qos.reader_data_lifecycle.autopurge_disposed_samples_delay,
        }
    }
}

impl Cache {
    /// The instance ceased to be alive, or the delays changed: plans the purge anew.
    pub(super) fn plan_purge(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        if let Some(at) = instance.details_if_made().and_then(|details| details.purge_at.take()) {
            self.timers.remove(&(at, id, Timer::Purge));
        }
        let delay = match instance.state {
            InstanceState::Alive => return,
            InstanceState::NotAliveDisposed => self.policy.lifecycle.disposed,
            InstanceState::NotAliveNoWriters => self.policy.lifecycle.no_writers,
        };
        let Some(at) = instance.details().ended_at.and_then(|ended| ended.after(delay)) else { return };
        instance.details_mut().purge_at = Some(at);
        self.timers.insert((at, id, Timer::Purge));
    }

    /// The last writer of the instance left. If its purge came while it had one, it is due once more.
    pub(super) fn plan_purge_again(&mut self, now: Now, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        if instance.state == InstanceState::NotAliveNoWriters && instance.details().purge_at.is_none() {
            instance.details_mut().ended_at = Some(now.mono);
            self.plan_purge(id);
        }
    }

    /// The purge of the instance is due.
    pub(super) fn purge(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        // A writer may have come back with nothing but what was refused: that is nothing to remember. What is
        // held back will be shown, and owners are remembered as long as they own.
        let only_named = instance.state == InstanceState::NotAliveNoWriters
            && instance.held.get().is_none()
            && instance.details().owner.is_none();
        if instance.details().writers == 0 || only_named {
            return self.forget(id);
        }
        instance.details_mut().purge_at = None;
        let before = instance.shape();
        while let Some(at) = instance.samples.first() {
            if leave(&mut self.samples, &mut self.ledger, &self.policy, instance, at, None).is_none() {
                break;
            }
        }
        self.instances.reshaped(id, before);
        self.retire_if_idle(id);
    }
}
