//! LIVELINESS (DCPS 1.4 §2.2.3.11) as the writer sees it: the manual kinds have a lease that the application
//! renews by writing or asserting; when it does not, LIVELINESS_LOST is raised once.

use super::Writer;
use crate::outbox::Outbox;
use crate::qos::LivelinessKind;
use crate::status::StatusKind;
use crate::time::Now;

impl Writer {
    /// Asserts liveliness (DCPS 1.4 §2.2.2.4.2.22). MANUAL_BY_TOPIC readers are told at once; the other
    /// kinds are told by the participant.
    pub fn assert_liveliness(&mut self, now: Now, out: &mut Outbox) {
        self.assert_lease(now);
        if self.config.qos.liveliness.kind == LivelinessKind::ManualByTopic {
            self.send_liveliness(out);
        }
    }

    /// Another entity of the participant was asserted: that counts for MANUAL_BY_PARTICIPANT.
    pub fn participant_asserted(&mut self, now: Now) {
        if self.config.qos.liveliness.kind == LivelinessKind::ManualByParticipant {
            self.assert_lease(now);
        }
    }

    /// The lease begins when there is somebody to care.
    pub(super) fn start_lease(&mut self, now: Now) {
        if self.lease_end.is_none() && self.matched.total.total_count == 1 {
            self.assert_lease(now);
        }
    }

    pub(super) fn assert_lease(&mut self, now: Now) {
        let liveliness = self.config.qos.liveliness;
        if liveliness.kind != LivelinessKind::Automatic {
            self.lease_end = now.mono.after(liveliness.lease_duration);
        }
    }

    pub(super) fn check_lease(&mut self, now: Now, out: &mut Outbox) {
        if self.lease_end.is_some_and(|end| end <= now.mono) {
            self.lease_end = None;
            self.liveliness_lost.count();
            self.changed(StatusKind::LivelinessLost, out);
        }
    }
}
