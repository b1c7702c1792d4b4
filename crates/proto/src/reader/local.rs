//! Changes that do not come by the network: the built-in topics of DCPS 1.4 §2.2.5 are read like any other.

use super::Reader;
use super::cache::Outcome;
use super::change::{Change, Incoming};
use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::Now;
use crate::wire::param::StatusInfo;

impl Reader {
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
