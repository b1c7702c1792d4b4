//! The communication statuses of DCPS 1.4 §2.2.4.1, one row each.

use crate::guid::Guid;
use crate::instance::InstanceHandle;

/// The kinds of communication status. The discriminant is the bit of the standard's status mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum StatusKind {
    /// Another topic of the same name has another type.
    InconsistentTopic = 1 << 0,
    /// A writer missed its offered deadline.
    OfferedDeadlineMissed = 1 << 1,
    /// A reader saw no sample in its requested deadline.
    RequestedDeadlineMissed = 1 << 2,
    /// A reader asks for more than this writer offers.
    OfferedIncompatibleQos = 1 << 5,
    /// A writer offers less than this reader asks for.
    RequestedIncompatibleQos = 1 << 6,
    /// A sample was never received.
    SampleLost = 1 << 7,
    /// A sample was refused by a resource limit.
    SampleRejected = 1 << 8,
    /// New data at any reader of the subscriber.
    DataOnReaders = 1 << 9,
    /// New data at the reader.
    DataAvailable = 1 << 10,
    /// A writer did not assert its liveliness in time.
    LivelinessLost = 1 << 11,
    /// Writers of this reader became alive or not alive.
    LivelinessChanged = 1 << 12,
    /// Readers were matched or unmatched.
    PublicationMatched = 1 << 13,
    /// Writers were matched or unmatched.
    SubscriptionMatched = 1 << 14,
}

impl StatusKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::InconsistentTopic,
        Self::OfferedDeadlineMissed,
        Self::RequestedDeadlineMissed,
        Self::OfferedIncompatibleQos,
        Self::RequestedIncompatibleQos,
        Self::SampleLost,
        Self::SampleRejected,
        Self::DataOnReaders,
        Self::DataAvailable,
        Self::LivelinessLost,
        Self::LivelinessChanged,
        Self::PublicationMatched,
        Self::SubscriptionMatched,
    ];
}

/// A set of status kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusMask(pub u32);

impl StatusMask {
    /// No status.
    pub const NONE: Self = Self(0);
    /// Every status.
    pub const ALL: Self = Self(0x7fe7);

    /// The set with `kind` added.
    #[must_use]
    pub const fn with(self, kind: StatusKind) -> Self {
        Self(self.0 | kind as u32)
    }

    /// The set with `kind` removed.
    #[must_use]
    pub const fn without(self, kind: StatusKind) -> Self {
        Self(self.0 & !(kind as u32))
    }

    /// Whether `kind` is in the set.
    #[must_use]
    pub const fn contains(self, kind: StatusKind) -> bool {
        self.0 & kind as u32 != 0
    }

    /// Whether both sets share a kind.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A total and its change since the status was last read: deadline missed, liveliness lost,
/// sample lost, inconsistent topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountStatus {
    /// Cumulative count.
    pub total_count: i32,
    /// Change since last read.
    pub total_count_change: i32,
}

impl CountStatus {
    /// Counts one more.
    pub const fn count(&mut self) {
        self.total_count = self.total_count.saturating_add(1);
        self.total_count_change = self.total_count_change.saturating_add(1);
    }

    /// The status, with the change reset.
    pub const fn take(&mut self) -> Self {
        let status = *self;
        self.total_count_change = 0;
        status
    }
}

/// Offered or requested deadline missed, with the instance it happened to last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineMissedStatus {
    /// Cumulative count and change.
    pub count: CountStatus,
    /// Last instance that missed.
    pub last_instance: InstanceHandle,
}

/// Offered or requested incompatible QoS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncompatibleQosStatus {
    /// Cumulative count of incompatible endpoints, and change.
    pub count: CountStatus,
    /// Id of one policy that was incompatible the last time (DCPS `QosPolicyId_t`).
    pub last_policy_id: u32,
    /// For each policy id that was ever incompatible, how often.
    pub policies: Vec<(u32, i32)>,
}

/// Publication or subscription matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchedStatus {
    /// Cumulative count of matches, and change.
    pub total: CountStatus,
    /// Endpoints matched now.
    pub current_count: i32,
    /// Change of `current_count` since last read.
    pub current_count_change: i32,
    /// The endpoint that matched or unmatched last.
    pub last_endpoint: InstanceHandle,
}

impl MatchedStatus {
    /// One more endpoint.
    pub fn matched(&mut self, endpoint: Guid) {
        self.total.count();
        self.current_count += 1;
        self.current_count_change += 1;
        self.last_endpoint = endpoint.into();
    }

    /// One endpoint fewer.
    pub fn unmatched(&mut self, endpoint: Guid) {
        self.current_count -= 1;
        self.current_count_change -= 1;
        self.last_endpoint = endpoint.into();
    }

    /// The status, with the changes reset.
    pub const fn take(&mut self) -> Self {
        let status = *self;
        self.total.total_count_change = 0;
        self.current_count_change = 0;
        status
    }
}

/// Liveliness changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivelinessChangedStatus {
    /// Matched writers that are alive.
    pub alive_count: i32,
    /// Matched writers that are not.
    pub not_alive_count: i32,
    /// Change since last read.
    pub alive_count_change: i32,
    /// Change since last read.
    pub not_alive_count_change: i32,
    /// The writer that changed last.
    pub last_publication: InstanceHandle,
}

/// Why a sample was rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RejectReason {
    /// None was.
    #[default]
    NotRejected,
    /// RESOURCE_LIMITS max_instances.
    InstancesLimit,
    /// RESOURCE_LIMITS max_samples.
    SamplesLimit,
    /// RESOURCE_LIMITS max_samples_per_instance.
    SamplesPerInstanceLimit,
}

/// Sample rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRejectedStatus {
    /// Cumulative count and change.
    pub count: CountStatus,
    /// Why, the last time.
    pub last_reason: RejectReason,
    /// Instance of the last rejected sample.
    pub last_instance: InstanceHandle,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_all_has_each_kind_once() {
        let all = StatusKind::ALL.into_iter().fold(StatusMask::NONE, StatusMask::with);
        assert_eq!(all, StatusMask::ALL);
        assert!(!all.without(StatusKind::SampleLost).contains(StatusKind::SampleLost));
    }
}
