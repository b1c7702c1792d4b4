//! LIVELINESS (DCPS 1.4 §2.2.3.11) as the reader sees it: which signs of life renew whose lease.
//!
//! AUTOMATIC: everything that is heard of the writer, and its participant's messages. MANUAL_BY_PARTICIPANT:
//! messages in which its participant says so, and what the application writes. MANUAL_BY_TOPIC: what it
//! writes with this writer, and heartbeats with the liveliness flag. What is only repeated was not written
//! now: for the manual kinds only a number higher than all before is a sign of life.

use super::Reader;
use super::ownership::WriterId;
use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::qos::{Liveliness, LivelinessKind};
use crate::seq::SequenceNumber;
use crate::status::StatusKind;
use crate::time::{Duration, Instant, Now};
use crate::wire::Heartbeat;

/// The liveliness lease of one writer.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) kind: LivelinessKind,
    duration: Duration,
    pub(super) expires: Option<Instant>,
    pub(super) alive: bool,
    /// It is not alive, and there are instances that it has yet to leave.
    pub(super) leaves: bool,
    /// The highest number that the writer is known to have written; `None` before it was heard.
    newest: Option<SequenceNumber>,
}

impl Lease {
    pub(super) fn new(liveliness: Liveliness) -> Self {
        Self {
            kind: liveliness.kind,
            duration: liveliness.lease_duration,
            expires: None,
            alive: true,
            leaves: false,
            newest: None,
        }
    }

    /// The writer gave a sign of life. Returns whether it was taken for dead.
    pub(super) fn renew(&mut self, now: Instant) -> bool {
        self.expires = now.after(self.duration);
        if self.alive {
            return false;
        }
        // What it has not left yet stays alive with it.
        (self.alive, self.leaves) = (true, false);
        true
    }

    /// Whether the lease ran out just now.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let due = self.alive && self.expires.is_some_and(|expires| expires <= now);
        if due {
            self.alive = false;
            self.expires = None;
            self.leaves = true;
        }
        due
    }
}

impl Reader {
    /// The AUTOMATIC or MANUAL_BY_PARTICIPANT liveliness of a writer was asserted.
    pub fn writer_liveliness(&mut self, now: Now, writer: Guid, out: &mut Outbox) {
        let Some(id) = self.by_guid.get(&writer).copied() else { return };
        if self.proxy(id).is_some_and(|proxy| proxy.lease.kind != LivelinessKind::ManualByTopic) {
            self.writer_alive(now, id, out);
        }
    }

    /// A change, or a part of it, came from the writer: now written, repeated, or out of its history.
    #[inline(always)]
    pub(super) fn heard_change(&mut self, now: Now, id: WriterId, number: SequenceNumber, out: &mut Outbox) {
        let Some(proxy) = self.proxy_mut(id) else { return };
        // Until its first heartbeat nobody knows what of a late joiner's history is new.
        let announces_itself = !proxy.historical || proxy.heard.count.is_some();
        let is_new = announces_itself && Some(number) > proxy.lease.newest;
        if is_new {
            proxy.lease.newest = Some(number);
        }
        if proxy.lease.kind == LivelinessKind::Automatic || is_new {
            self.writer_alive(now, id, out);
        }
    }

    /// A heartbeat came from the writer, which the reader has taken note of.
    pub(super) fn heard_heartbeat(
        &mut self,
        now: Now,
        id: WriterId,
        heartbeat: &Heartbeat,
        out: &mut Outbox,
    ) {
        let Some(proxy) = self.proxy_mut(id) else { return };
        // What it announces beyond what was heard of was written since, even if it was lost on the way.
        let is_new = proxy.lease.newest.is_some_and(|newest| heartbeat.last > newest);
        // A false announcement is forgotten with the next true one.
        proxy.lease.newest = Some(heartbeat.last);
        if proxy.lease.kind == LivelinessKind::Automatic || heartbeat.liveliness || is_new {
            self.writer_alive(now, id, out);
        }
    }

    /// A sign of life that counts for the liveliness kind of the writer.
    #[inline(always)]
    fn writer_alive(&mut self, now: Now, id: WriterId, out: &mut Outbox) {
        let Some(proxy) = self.proxy_mut(id) else { return };
        let guid = proxy.guid;
        let returned = proxy.lease.renew(now.mono);
        // A lease that only moves later is noticed when its old end comes up.
        if returned {
            let due = proxy.lease.expires;
            self.wake_at(due);
            self.liveliness_changed(guid, 1, -1, out);
        }
    }

    /// The lease of the writer ran out.
    pub(super) fn writer_dead(&mut self, id: WriterId, out: &mut Outbox) {
        let Some(guid) = self.proxy(id).map(|proxy| proxy.guid) else { return };
        self.liveliness_changed(guid, -1, 1, out);
    }

    /// A writer that is not alive leaves its instances, as many as one call may take.
    pub(super) fn leave_instances(&mut self, now: Now, id: WriterId, out: &mut Outbox) {
        if self.cache.writer_lost(now, id) {
            self.data_available(out);
        }
        let leaves = self.cache.has_instances(id);
        if let Some(proxy) = self.proxy_mut(id) {
            proxy.lease.leaves = leaves;
        }
        if leaves {
            self.wake_at(Some(now.mono));
        }
    }

    #[cold]
    pub(super) fn liveliness_changed(&mut self, writer: Guid, alive: i32, not_alive: i32, out: &mut Outbox) {
        let status = &mut self.statuses.liveliness_changed;
        status.alive_count += alive;
        status.alive_count_change += alive;
        status.not_alive_count += not_alive;
        status.not_alive_count_change += not_alive;
        status.last_publication = writer.into();
        self.changed(StatusKind::LivelinessChanged, out);
    }
}
