//! The communication statuses of DCPS 1.4 §2.2.4.1, one row each.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

use crate::guid::Guid;
use crate::instance::InstanceHandle;
use crate::policy_id::PolicyId;

/// The kinds of communication status. The discriminant is the bit of the standard's status mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

/// A set of status kinds: `StatusKind::SampleLost | StatusKind::DataAvailable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

    /// Whether nothing is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 & Self::ALL.0 == 0
    }

    /// The kinds in the set.
    pub fn iter(self) -> impl Iterator<Item = StatusKind> {
        StatusKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// Whether both sets share a kind.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl From<StatusKind> for StatusMask {
    fn from(kind: StatusKind) -> Self {
        Self(kind as u32)
    }
}

impl FromIterator<StatusKind> for StatusMask {
    fn from_iter<I: IntoIterator<Item = StatusKind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::NONE, Self::with)
    }
}

impl<M: Into<Self>> BitOr<M> for StatusMask {
    type Output = Self;

    fn bitor(self, other: M) -> Self {
        Self(self.0 | other.into().0)
    }
}

impl<M: Into<StatusMask>> BitOr<M> for StatusKind {
    type Output = StatusMask;

    fn bitor(self, other: M) -> StatusMask {
        StatusMask::from(self) | other
    }
}

impl<M: Into<Self>> BitOrAssign<M> for StatusMask {
    fn bitor_assign(&mut self, other: M) {
        *self = *self | other;
    }
}

impl<M: Into<Self>> BitAnd<M> for StatusMask {
    type Output = Self;

    fn bitand(self, other: M) -> Self {
        Self(self.0 & other.into().0)
    }
}

/// Every kind that is not in the set.
impl Not for StatusMask {
    type Output = Self;

    fn not(self) -> Self {
        Self(Self::ALL.0 & !self.0)
    }
}

/// Every other kind.
impl Not for StatusKind {
    type Output = StatusMask;

    fn not(self) -> StatusMask {
        !StatusMask::from(self)
    }
}

/// A total and its change since the status was last read: deadline missed, liveliness lost,
/// sample lost, inconsistent topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DeadlineMissedStatus {
    /// Cumulative count and change.
    pub count: CountStatus,
    /// Last instance that missed.
    pub last_instance: InstanceHandle,
}

/// Offered or requested incompatible QoS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IncompatibleQosStatus {
    /// Cumulative count of incompatible endpoints, and change.
    pub count: CountStatus,
    /// One policy that was incompatible the last time; `None` before the first.
    pub last_policy_id: Option<PolicyId>,
    /// For each policy that was ever incompatible, how often.
    pub policies: Vec<(PolicyId, i32)>,
}

/// Publication or subscription matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SampleRejectedStatus {
    /// Cumulative count and change.
    pub count: CountStatus,
    /// Why, the last time.
    pub last_reason: RejectReason,
    /// Instance of the last rejected sample.
    pub last_instance: InstanceHandle,
}

impl StatusKind {
    /// Its name in the standard.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InconsistentTopic => "INCONSISTENT_TOPIC",
            Self::OfferedDeadlineMissed => "OFFERED_DEADLINE_MISSED",
            Self::RequestedDeadlineMissed => "REQUESTED_DEADLINE_MISSED",
            Self::OfferedIncompatibleQos => "OFFERED_INCOMPATIBLE_QOS",
            Self::RequestedIncompatibleQos => "REQUESTED_INCOMPATIBLE_QOS",
            Self::SampleLost => "SAMPLE_LOST",
            Self::SampleRejected => "SAMPLE_REJECTED",
            Self::DataOnReaders => "DATA_ON_READERS",
            Self::DataAvailable => "DATA_AVAILABLE",
            Self::LivelinessLost => "LIVELINESS_LOST",
            Self::LivelinessChanged => "LIVELINESS_CHANGED",
            Self::PublicationMatched => "PUBLICATION_MATCHED",
            Self::SubscriptionMatched => "SUBSCRIPTION_MATCHED",
        }
    }
}

impl fmt::Display for StatusKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Names of the kinds, with `|` between them; `none`.
impl fmt::Display for StatusMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(StatusKind::name).collect();
        f.write_str(if names.is_empty() { "none".to_owned() } else { names.join(" | ") }.as_str())
    }
}

impl fmt::Display for CountStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in all, {} new", self.total_count, self.total_count_change)
    }
}

impl fmt::Display for DeadlineMissedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, last by instance {}", self.count, self.last_instance)
    }
}

impl fmt::Display for MatchedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, current_count, current_count_change, last_endpoint } = self;
        write!(f, "{current_count} now ({current_count_change:+}), {total}, last {last_endpoint}")
    }
}

impl fmt::Display for LivelinessChangedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} writers alive ({:+}), {} not alive ({:+}), last {}",
            self.alive_count,
            self.alive_count_change,
            self.not_alive_count,
            self.not_alive_count_change,
            self.last_publication
        )
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRejected => "none",
            Self::InstancesLimit => "max_instances",
            Self::SamplesLimit => "max_samples",
            Self::SamplesPerInstanceLimit => "max_samples_per_instance",
        })
    }
}

impl fmt::Display for SampleRejectedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, last at {} in instance {}", self.count, self.last_reason, self.last_instance)
    }
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

    #[test]
    fn masks_are_made_with_the_operators_of_sets() {
        let (lost, data) = (StatusKind::SampleLost, StatusKind::DataAvailable);
        let both = lost | data;
        assert_eq!(both, StatusMask::NONE.with(lost).with(data));
        assert_eq!(both, [data, lost].into_iter().collect());
        assert_eq!(both.iter().collect::<Vec<_>>(), [lost, data]);
        let mut mask = StatusMask::from(lost);
        mask |= data;
        mask |= both;
        assert_eq!((mask, mask & data, mask & !lost), (both, data.into(), data.into()));
        assert_eq!((!StatusMask::NONE, !StatusMask::ALL), (StatusMask::ALL, StatusMask::NONE));
        assert!((both & StatusKind::LivelinessLost).is_empty() && !both.is_empty());
    }

    #[test]
    fn statuses_are_told_in_words() {
        let mask = StatusMask::NONE.with(StatusKind::SampleLost).with(StatusKind::DataAvailable);
        assert_eq!(mask.to_string(), "SAMPLE_LOST | DATA_AVAILABLE");
        assert_eq!(StatusMask::NONE.to_string(), "none");
        let mut matched = MatchedStatus::default();
        matched.matched(Guid::from_bytes([0x1f; 16]));
        assert_eq!(matched.to_string(), format!("1 now (+1), 1 in all, 1 new, last {}", "1f".repeat(16)));
    }
}
