//! Changes that do not come from their writers: the built-in topics of DCPS 1.4 §2.2.5 are read like any
//! other, and the group of an ATOMIC topic delivers what its members wrote.

use super::Reader;
use super::cache::Outcome;
use super::change::{Change, Incoming};
use crate::guid::{EntityId, Guid};
use crate::matched::MatchedWriter;
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::qos::QosSet;
use crate::sample_info::Agreed;
use crate::seq::SequenceNumber;
use crate::sources::Sources;
use crate::stats::DropReason;
use crate::time::{Now, Time};
use crate::vendor;
use crate::wire::param::StatusInfo;

/// A change that the group of an ATOMIC topic delivers.
#[derive(Debug)]
pub struct AgreedChange {
    /// Who wrote it.
    pub writer: Guid,
    /// What it does to its instance.
    pub status: StatusInfo,
    /// When it was written.
    pub source_timestamp: Time,
    /// Where it stands in the agreed order.
    pub agreed: Agreed,
    /// Data, or with a status the serialized key.
    pub payload: Payload,
}

impl Reader {
    /// Takes in a change in the agreed order. Of a writer that it does not know yet it learns so.
    ///
    /// # Errors
    /// [`DropReason::ResourceLimit`] when there is no room until something is taken: the change is still the
    /// caller's. Otherwise why it is not shown; also counted in [`Self::drops`].
    pub fn store_agreed(
        &mut self,
        now: Now,
        change: &mut AgreedChange,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        if !self.by_guid.contains_key(&change.writer) {
            self.match_writer(now, &unannounced(change.writer), out);
        }
        let id = self.by_guid.get(&change.writer).copied();
        let id = id.ok_or_else(|| self.dropped(DropReason::NotMatched))?;
        let AgreedChange { status, source_timestamp, agreed, payload, .. } = change;
        let key_only = status.disposed || status.unregistered;
        let octets = Incoming::Payload(std::mem::take(payload));
        let mut stored = Change {
            status: *status,
            agreed: *agreed,
            ..Change::new(SequenceNumber::FIRST, now, Some(*source_timestamp), key_only, octets)
        };
        match self.cache.store(now, id, &mut stored) {
            Outcome::Stored => self.data_available(out),
            Outcome::Consumed => {}
            Outcome::Dropped(reason) => return Err(self.dropped(reason)),
            Outcome::Rejected(reason, instance) => {
                self.rejected(reason, instance, out);
                return Ok(());
            }
            Outcome::Refused(..) | Outcome::Waits => {
                if let Incoming::Payload(octets) = stored.payload {
                    *payload = octets;
                }
                return Err(DropReason::ResourceLimit);
            }
        }
        Ok(())
    }

    /// State in place of changes waits to be taken where this reader is.
    pub fn told_state(&mut self, out: &mut Outbox) {
        self.data_available(out);
    }

    /// So many changes of the agreed order were delivered elsewhere, and are lost here.
    pub fn lost_agreed(&mut self, count: u64, out: &mut Outbox) {
        self.samples_lost(count, out);
    }

    /// Takes in a change of a matched writer: data, or with a `status` the serialized key of an instance that
    /// ends.
    ///
    /// # Errors
    /// Why it is not shown; also counted in [`Self::drops`].
    pub fn store_local(
        &mut self,
        now: Now,
        writer: Guid,
        status: StatusInfo,
        payload: Payload,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let id = self.by_guid.get(&writer).copied();
        let id = id.ok_or_else(|| self.dropped(DropReason::NotMatched))?;
        let key_only = status.disposed || status.unregistered;
        let payload = Incoming::Payload(payload);
        let mut change =
            Change { status, ..Change::new(SequenceNumber::FIRST, now, None, key_only, payload) };
        match self.cache.store(now, id, &mut change) {
            Outcome::Stored => self.data_available(out),
            Outcome::Consumed => {}
            Outcome::Dropped(reason) => return Err(self.dropped(reason)),
            Outcome::Refused(..) | Outcome::Rejected(..) | Outcome::Waits => {
                return Err(self.dropped(DropReason::ResourceLimit));
            }
        }
        Ok(())
    }
}

/// A writer of a group of which discovery has not told yet.
fn unannounced(guid: Guid) -> MatchedWriter {
    MatchedWriter {
        guid,
        locators: Vec::new(),
        sources: Sources::default(),
        publisher: EntityId::UNKNOWN,
        vendor: vendor::PLAINSONG,
        qos: QosSet::writer(),
        begins: true,
    }
}
