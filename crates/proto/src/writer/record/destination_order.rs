//! DESTINATION_ORDER (DCPS 1.4 §2.2.3.17) on the writer's side: with BY_SOURCE_TIMESTAMP the source
//! timestamps of an instance never go back, because readers drop what is older than what they know.

use super::instances::Slot;
use crate::instance::Key;
use crate::qos::DestinationOrder;
use crate::time::{Now, Time};
use crate::writer::{WriteError, Writer};

impl Writer {
    /// The source timestamp of a change written at `now` for which the application supplies none: the
    /// time of day or, when that was set back, the timestamp of the last change of the instance.
    #[must_use]
    pub fn source_timestamp(&self, now: Now, key: Key) -> Time {
        if !self.is_by_source() {
            return now.wall;
        }
        let instance = self.instances.identify(key).handle;
        let last = self.instances.find(instance).and_then(|slot| self.instances.get(slot));
        last.map_or(now.wall, |last| last.timestamp.max(now.wall))
    }

    pub(crate) fn check_timestamp(&self, slot: Option<Slot>, timestamp: Time) -> Result<(), WriteError> {
        if !self.is_by_source() {
            return Ok(());
        }
        let last = slot.and_then(|slot| self.instances.get(slot));
        if last.is_some_and(|last| timestamp < last.timestamp) {
            return Err(WriteError::TimestampBack);
        }
        Ok(())
    }

    pub(crate) fn note_timestamp(&mut self, slot: Slot, timestamp: Time) {
        if let Some(instance) = self.instances.get_mut(slot) {
            instance.timestamp = timestamp;
        }
    }

    pub(crate) fn is_by_source(&self) -> bool {
        self.config.qos.destination_order == DestinationOrder::BySourceTimestamp
    }
}
