//! What a writer of an ATOMIC topic asks of the protocol's writer, and what its lane does.

use super::record::change::ChangeKind;
use super::{WriteError, Writer};
use crate::guid::Guid;
use crate::instance::Key;
use crate::outbox::Outbox;
use crate::payload::{Payload, PayloadView};
use crate::qos::Durability;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::status::StatusKind;
use crate::time::{Now, Time};

impl Writer {
    /// Prepares a change that is written later, when it is its turn: registers its instance, and says as
    /// which kind it travels.
    ///
    /// # Errors
    /// Why it could not be written; nothing changed then.
    pub fn prepare(
        &mut self,
        now: Now,
        kind: ChangeKind,
        key: Key,
        payload_bytes: usize,
        source_timestamp: Time,
    ) -> Result<ChangeKind, WriteError> {
        let identity = self.instances.identify(key);
        let kind = self.effective(kind)?;
        if payload_bytes > self.config.limits.sample_bytes_max {
            return Err(WriteError::TooLarge);
        }
        let known = self.instances.find(identity.handle);
        if kind.unregisters() && !self.is_registered(identity.handle) {
            return Err(WriteError::UnknownInstance);
        }
        self.check_timestamp(known, source_timestamp)?;
        if known.is_none() && self.admit_instance().is_err() {
            self.settle(now);
            self.admit_instance()?;
        }
        if !kind.unregisters() {
            self.instances.register(&identity);
        }
        Ok(kind)
    }

    /// A reader is matched which gets what is written from the group of the topic: nothing is sent to it.
    pub(super) fn match_agreed(&mut self, reader: Guid, out: &mut Outbox) {
        if self.agreed.contains(&reader) {
            return;
        }
        if self.proxies.len() + self.agreed.len() >= self.config.limits.readers_max {
            self.drops.count(DropReason::DiscoveryLimit);
            return;
        }
        self.agreed.insert(reader);
        self.matched.matched(reader);
        self.changed(StatusKind::PublicationMatched, out);
    }

    /// As [`Writer::unmatch_reader`], of such a one.
    pub(super) fn unmatch_agreed(&mut self, reader: Guid, out: &mut Outbox) {
        if self.agreed.remove(&reader) {
            self.matched.unmatched(reader);
            self.changed(StatusKind::PublicationMatched, out);
        }
    }

    /// Notes data that is agreed, and that nobody has of this writer: there is no reader, and none that comes
    /// later gets it. Whether that is so; if not nothing is done, and it is to be written.
    pub fn pass_agreed(
        &mut self,
        now: Now,
        kind: ChangeKind,
        key: Key,
        timestamp: Time,
        data: &Payload,
    ) -> bool {
        let is_kept = self.config.qos.durability > Durability::Volatile || self.proxies.len() > 0;
        let is_alone = self.open_set.is_none() && self.config.group.is_none();
        let identity = self.instances.identify(key);
        let known = self.instances.find(identity.handle);
        let Some(slot) = known.filter(|_| kind == ChangeKind::Alive && is_alone && !is_kept) else {
            return false;
        };
        self.note_timestamp(slot, timestamp);
        self.life_cycle(now, kind, slot, PayloadView::Payload(data));
        self.assert_lease(now);
        true
    }

    /// Whether there are readers that have what is agreed of this writer.
    #[must_use]
    pub fn has_eventual_readers(&self) -> bool {
        self.proxies.len() > 0
    }

    /// Nobody needs the changes up to `number`, whoever has not acknowledged them: those who ask are told
    /// that they are gone.
    pub fn forget_through(&mut self, now: Now, number: SequenceNumber) {
        while self.history.first() <= number.min(self.history.last()) {
            let first = self.history.first();
            self.history.remove(first, &mut self.instances);
        }
        self.settle(now);
    }
}
