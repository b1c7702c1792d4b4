//! DEADLINE: instances whose next sample is overdue.

use super::cache::{Cache, Timer};
use super::instances::InstanceId;
use crate::instance::InstanceHandle;
use crate::time::{Duration, Instant};

impl Cache {
    /// The instance was updated: its next deadline begins.
    #[inline]
    pub(super) fn arm_deadline(&mut self, now: Instant, id: InstanceId) {
        if let Some(deadline) = now.after(self.policy.deadline) {
            self.start_deadline(deadline, id);
        }
    }

    fn start_deadline(&mut self, deadline: Instant, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        let details = instance.details_mut();
        details.deadline = Some(deadline);
        if details.deadline_armed.is_none() {
            details.deadline_armed = Some(deadline);
            self.timers.insert((deadline, id, Timer::Deadline));
        }
    }

    /// DEADLINE was changed: running deadlines begin anew with the new period.
    pub(super) fn restart_deadline(&mut self, now: Instant, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(id).filter(|instance| instance.is_alive()) else {
            return;
        };
        if let Some(at) = instance.details_if_made().and_then(|details| details.stop_deadline()) {
            self.timers.remove(&(at, id, Timer::Deadline));
        }
        self.arm_deadline(now, id);
    }

    /// The deadline timer of an instance came up: samples since then only move it.
    pub(super) fn check_deadline(
        &mut self,
        now: Instant,
        id: InstanceId,
        missed: &mut impl FnMut(InstanceHandle),
    ) {
        let period = self.policy.deadline;
        let Some(instance) = self.instances.get_mut(id) else { return };
        let (handle, is_alive) = (instance.handle, instance.is_alive());
        let Some(details) = instance.details_if_made() else { return };
        details.deadline_armed = None;
        let Some(mut deadline) = details.deadline.filter(|_| is_alive) else { return };
        if deadline <= now {
            // A deadline missed is ownership lost (DCPS 1.4 §2.2.3.9.2).
            details.owner = None;
            missed(handle);
            // After a pause of the process, one miss is enough.
            let next = deadline.after(period).filter(|next| *next > now);
            let Some(next) = next.or_else(|| now.after(period.max(Duration(1)))) else { return };
            deadline = next;
            details.deadline = Some(deadline);
        }
        details.deadline_armed = Some(deadline);
        self.timers.insert((deadline, id, Timer::Deadline));
    }
}
