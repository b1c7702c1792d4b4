//! DESTINATION_ORDER (DCPS 1.4 §2.2.3.17): which of several samples of an instance comes first, and which
//! comes too late.
//!
//! BY_RECEPTION_TIMESTAMP is the order of arrival. BY_SOURCE_TIMESTAMP is the order of source timestamps;
//! of samples with the same timestamp, that of the writer with the lower GUID comes first, so that all
//! readers end with the same value. A sample never enters before one that has left the cache (taken,
//! replaced, expired) or before a dispose, and with KEEP_LAST an older one never replaces a newer.

use super::instances::{Instance, Sample};
use super::samples::{Queue, Samples, SlotId};
use crate::guid::Guid;
use crate::qos::{DestinationOrder, QosSet};
use crate::time::Time;

/// Where a sample comes among those of all instances. The last part is its id.
pub(super) type Place = (Time, Guid, u64);

/// The order of a reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    by_source: bool,
}

impl Order {
    pub(super) fn new(qos: &QosSet) -> Self {
        Self { by_source: qos.destination_order == DestinationOrder::BySourceTimestamp }
    }

    /// BY_SOURCE_TIMESTAMP.
    pub(super) const fn is_by_source(self) -> bool {
        self.by_source
    }

    /// Where a sample comes among those of all instances.
    pub(super) const fn place(self, sample: &Sample) -> Place {
        self.place_of(sample.source_order(), sample.id)
    }

    pub(super) const fn place_of(self, (timestamp, writer): (Time, Guid), id: u64) -> Place {
        if self.by_source { (timestamp, writer, id) } else { (Time(0), Guid::UNKNOWN, id) }
    }

    /// After which one a sample comes in the queue of its instance, `None` for the first: a marker is a
    /// border it does not cross.
    pub(super) fn follows(self, samples: &Samples, queue: Queue, sample: &Sample) -> Option<SlotId> {
        let mut earlier = samples.backwards(queue);
        earlier.find(|(_, other)| !other.valid || !self.is_before(sample, other)).map(|(at, _)| at)
    }

    /// Whether `one`, which arrived later, comes before `other`.
    pub(super) fn is_before(self, one: &Sample, other: &Sample) -> bool {
        self.by_source && one.source_order() < other.source_order()
    }

    /// Whether data of this timestamp and writer comes after what left the cache already or is told to be
    /// over, or would be the first to leave.
    pub(super) fn is_too_old(
        self,
        samples: &Samples,
        instance: &Instance,
        order: (Time, Guid),
        depth: Option<usize>,
    ) -> bool {
        if !self.by_source {
            return false;
        }
        let backwards = || samples.backwards(instance.samples).map(|(_, sample)| sample);
        let mut valid =
            samples.iter(instance.samples).map(|(_, sample)| sample).filter(|sample| sample.valid);
        // What comes before a marker: it tells of an instance without writers, and nothing crosses it.
        let before_marker = || backwards().skip_while(|sample| sample.valid);
        let newest =
            instance.has_marker.then(before_marker).and_then(|mut before| before.find(|it| it.valid));
        newest.is_some_and(|newest| order < newest.source_order())
            || instance.details().ordered_after.is_some_and(|after| order < after)
            || (depth.is_some_and(|depth| instance.valid as usize >= depth)
                && valid.next().is_some_and(|oldest| order < oldest.source_order()))
    }

    /// Whether something newer than a dispose of this timestamp and writer is known: the instance then
    /// lives on.
    pub(super) fn is_dispose_too_old(
        self,
        samples: &Samples,
        instance: &Instance,
        order: (Time, Guid),
    ) -> bool {
        if !self.by_source {
            return false;
        }
        let mut backwards = samples.backwards(instance.samples).map(|(_, sample)| sample);
        let newest = backwards.find(|sample| sample.valid).map(Sample::source_order);
        let held = instance.held.get().and_then(|held| samples.get(held)).map(Sample::source_order);
        newest.max(held).max(instance.details().ordered_after).is_some_and(|newest| order < newest)
    }
}
