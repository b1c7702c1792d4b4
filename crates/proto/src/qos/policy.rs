//! The QoS policies of DCPS 1.4 §2.2.3 (and XTypes 1.3 §7.6.3), as plain values with the standard's
//! defaults. Their wire form, request/offered rules and names are rows of [`super::table`].

use crate::cdr::XcdrVersion;
use crate::time::Duration;

use super::table::EntityKind;

/// "No limit" in RESOURCE_LIMITS and HISTORY depth.
pub const LENGTH_UNLIMITED: i32 = -1;

/// DURABILITY kinds, in order of strength (§2.2.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum Durability {
    /// Samples only for readers matched when they are written.
    #[default]
    Volatile = 0,
    /// The writer keeps history for late joiners. KEEP_ALL without limits keeps all it ever wrote; at
    /// RESOURCE_LIMITS max_samples the oldest leaves that everybody has. Who is matched anew gets the history
    /// again.
    TransientLocal = 1,
    /// History outlives the writer.
    Transient = 2,
    /// History outlives the system.
    Persistent = 3,
}

/// PRESENTATION access scopes (§2.2.3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum AccessScope {
    /// Within one instance.
    #[default]
    Instance = 0,
    /// Within one topic (endpoint).
    Topic = 1,
    /// Within one publisher or subscriber.
    Group = 2,
}

/// PRESENTATION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Presentation {
    /// Largest scope of coherence and order.
    pub access_scope: AccessScope,
    /// Coherent sets are shown whole.
    pub coherent_access: bool,
    /// Changes are shown in order.
    pub ordered_access: bool,
}

/// OWNERSHIP kinds (§2.2.3.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum Ownership {
    /// Every writer may update an instance.
    #[default]
    Shared = 0,
    /// Only the strongest writer may.
    Exclusive = 1,
}

/// LIVELINESS kinds, in order of strength (§2.2.3.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum LivelinessKind {
    /// The participant asserts.
    #[default]
    Automatic = 0,
    /// One entity of the participant asserts for all.
    ManualByParticipant = 1,
    /// Each writer asserts for itself.
    ManualByTopic = 2,
}

/// LIVELINESS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Liveliness {
    /// Who asserts.
    pub kind: LivelinessKind,
    /// Within what time.
    pub lease_duration: Duration,
}

/// RELIABILITY kinds; the discriminants are those of the wire (§2.2.3.14, RTPS 2.5 §9.6.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum ReliabilityKind {
    /// Nothing is said: RELIABLE for a writer and with CONSISTENCY ATOMIC, else BEST_EFFORT. An entity has
    /// one of the others.
    #[default]
    Unset = 0,
    /// Samples may be lost.
    BestEffort = 1,
    /// Samples are repeated until acknowledged.
    Reliable = 2,
}

/// RELIABILITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Reliability {
    /// Repeat or not.
    pub kind: ReliabilityKind,
    /// How long `write` may wait for room.
    pub max_blocking_time: Duration,
}

/// DESTINATION_ORDER kinds, in order of strength (§2.2.3.17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum DestinationOrder {
    /// As they arrive.
    #[default]
    ByReceptionTimestamp = 0,
    /// As they were written.
    BySourceTimestamp = 1,
}

/// CONSISTENCY kinds, in order of strength.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum ConsistencyKind {
    /// Each reader gets the samples of each writer, as DCPS says. Readers may see writers in different
    /// orders.
    #[default]
    Eventual = 0,
    /// All readers get the same samples in the same order, or none of them does, whatever fails.
    Atomic = 1,
}

/// When a member of an ATOMIC topic that keeps its samples on a disk vouches for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum DeliverAt {
    /// When it has received them; they are on its disk a moment later. When all members fail at once, what
    /// was delivered last may be lost.
    Stable = 0,
    /// When they are on its disk: what is delivered is on the disks of all such members.
    #[default]
    Durable = 1,
}

/// CONSISTENCY, a policy of Plainsong: what readers of a topic have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Consistency {
    /// What all readers agree on.
    pub kind: ConsistencyKind,
    /// With ATOMIC, of a writer: how long the slowest member of the group may hold it up before that is
    /// excluded. Infinite: as long as it is there.
    pub slow_member_delay: Duration,
    /// With ATOMIC and PERSISTENT: when samples are delivered.
    pub deliver_at: DeliverAt,
}

/// HISTORY kinds (§2.2.3.18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u32)]
pub enum HistoryKind {
    /// The last `depth` samples of each instance.
    #[default]
    KeepLast = 0,
    /// Every sample, up to RESOURCE_LIMITS.
    KeepAll = 1,
}

/// HISTORY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct History {
    /// Last or all.
    pub kind: HistoryKind,
    /// Samples per instance with KEEP_LAST; at least 1.
    pub depth: i32,
}

/// RESOURCE_LIMITS (§2.2.3.19); [`LENGTH_UNLIMITED`] where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct ResourceLimits {
    /// Samples of all instances. At this limit a KEEP_ALL writer waits for acknowledgements, and of what
    /// everybody has, the oldest leaves, also where DURABILITY keeps it for late joiners; a KEEP_LAST writer
    /// that keeps it for them refuses what is of other instances.
    pub max_samples: i32,
    /// Instances. A reader without this limit rejects those beyond 131,072, as a peer may write ever new
    /// ones; it has more when told how many, up to 1,048,576.
    pub max_instances: i32,
    /// Samples of any one instance.
    pub max_samples_per_instance: i32,
}

/// WRITER_DATA_LIFECYCLE (§2.2.3.21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct WriterDataLifecycle {
    /// Unregistering an instance also disposes it.
    pub autodispose_unregistered_instances: bool,
}

/// READER_DATA_LIFECYCLE (§2.2.3.22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct ReaderDataLifecycle {
    /// When to forget an instance without writers.
    pub autopurge_nowriter_samples_delay: Duration,
    /// When to forget a disposed instance.
    pub autopurge_disposed_samples_delay: Duration,
}

/// DURABILITY_SERVICE (§2.2.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct DurabilityService {
    /// When the service may forget a disposed instance.
    pub service_cleanup_delay: Duration,
    /// History of the service.
    pub history: History,
    /// Limits of the service.
    pub resource_limits: ResourceLimits,
}

/// ENTITY_FACTORY (§2.2.3.20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct EntityFactory {
    /// New entities are enabled at once.
    pub autoenable_created_entities: bool,
}

/// TYPE_CONSISTENCY_ENFORCEMENT (XTypes 1.3 §7.6.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct TypeConsistency {
    /// Assignable types match, not only equal ones.
    pub allow_type_coercion: bool,
    /// Ignore sequence bounds.
    pub ignore_sequence_bounds: bool,
    /// Ignore string bounds.
    pub ignore_string_bounds: bool,
    /// Ignore member names.
    pub ignore_member_names: bool,
    /// Refuse types with fewer members.
    pub prevent_type_widening: bool,
    /// Match only with complete type information.
    pub force_type_validation: bool,
}

/// One name and value of PROPERTY (DDS Security 1.1 §7.2.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Property {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// Sent to others or not.
    pub propagate: bool,
}

/// Every policy an entity can have. Entities read those that apply to them and ignore the rest;
/// [`super::table::POLICIES`] says which.
///
/// [`QosSet::default`] says nothing: an entity that is asked to have it gets what its factory has by default
/// (`DATAWRITER_QOS_DEFAULT` and its like, DCPS 1.4 §2.2.2.4.1.5). Of one that says something, each policy of
/// which it says nothing has the standard's default. So it is where serde reads one, too: `{}` is
/// [`QosSet::default`], policies and their parts that are not named have the defaults, and what is no policy
/// is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct QosSet {
    /// USER_DATA of a participant, writer or reader.
    pub user_data: Vec<u8>,
    /// TOPIC_DATA.
    pub topic_data: Vec<u8>,
    /// GROUP_DATA of a publisher or subscriber.
    pub group_data: Vec<u8>,
    /// DURABILITY.
    pub durability: Durability,
    /// DURABILITY_SERVICE.
    pub durability_service: DurabilityService,
    /// PRESENTATION of a publisher or subscriber.
    pub presentation: Presentation,
    /// DEADLINE period.
    pub deadline: Duration,
    /// LATENCY_BUDGET.
    pub latency_budget: Duration,
    /// OWNERSHIP.
    pub ownership: Ownership,
    /// OWNERSHIP_STRENGTH of a writer.
    pub ownership_strength: i32,
    /// LIVELINESS.
    pub liveliness: Liveliness,
    /// TIME_BASED_FILTER minimum separation of a reader.
    pub time_based_filter: Duration,
    /// PARTITION of a publisher or subscriber; empty means the partition "".
    pub partition: Vec<String>,
    /// RELIABILITY.
    pub reliability: Reliability,
    /// TRANSPORT_PRIORITY.
    pub transport_priority: i32,
    /// LIFESPAN.
    pub lifespan: Duration,
    /// DESTINATION_ORDER.
    pub destination_order: DestinationOrder,
    /// HISTORY.
    pub history: History,
    /// RESOURCE_LIMITS.
    pub resource_limits: ResourceLimits,
    /// ENTITY_FACTORY.
    pub entity_factory: EntityFactory,
    /// WRITER_DATA_LIFECYCLE.
    pub writer_data_lifecycle: WriterDataLifecycle,
    /// READER_DATA_LIFECYCLE.
    pub reader_data_lifecycle: ReaderDataLifecycle,
    /// DATA_REPRESENTATION: a writer offers the first, a reader accepts any; empty means XCDR1
    /// (XTypes 1.3 §7.6.3.1).
    pub data_representation: Vec<XcdrVersion>,
    /// TYPE_CONSISTENCY_ENFORCEMENT of a reader.
    pub type_consistency: TypeConsistency,
    /// PROPERTY.
    pub properties: Vec<Property>,
    /// CONSISTENCY.
    pub consistency: Consistency,
}

impl QosSet {
    /// The defaults of a writer: RELIABLE (§2.2.3.14).
    #[must_use]
    pub fn writer() -> Self {
        Self {
            reliability: Reliability { kind: ReliabilityKind::Reliable, ..Reliability::default() },
            ..Self::default()
        }
    }

    /// The defaults of a reader or topic: BEST_EFFORT (§2.2.3.14).
    #[must_use]
    pub fn reader() -> Self {
        Self::default().best_effort()
    }

    /// What an entity of that kind has when it is asked to have `self`: `default`, when that says nothing.
    #[must_use]
    pub fn or_default(self, kind: EntityKind, default: impl FnOnce() -> Self) -> Self {
        let mut qos = if self == Self::default() { default() } else { self };
        if qos.reliability.kind == ReliabilityKind::Unset {
            match kind {
                EntityKind::Writer => qos.reliability.kind = ReliabilityKind::Reliable,
                EntityKind::Reader | EntityKind::Topic if qos.is_atomic() => {
                    qos.reliability.kind = ReliabilityKind::Reliable;
                }
                EntityKind::Reader | EntityKind::Topic => qos.reliability.kind = ReliabilityKind::BestEffort,
                _ => {}
            }
        }
        qos
    }

    /// Whether RELIABILITY is RELIABLE.
    #[must_use]
    pub fn is_reliable(&self) -> bool {
        self.reliability.kind == ReliabilityKind::Reliable
    }

    /// Whether CONSISTENCY is ATOMIC.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        self.consistency.kind == ConsistencyKind::Atomic
    }
}

impl Default for QosSet {
    fn default() -> Self {
        Self {
            user_data: Vec::new(),
            topic_data: Vec::new(),
            group_data: Vec::new(),
            durability: Durability::default(),
            durability_service: DurabilityService::default(),
            presentation: Presentation::default(),
            deadline: Duration::INFINITE,
            latency_budget: Duration::ZERO,
            ownership: Ownership::default(),
            ownership_strength: 0,
            liveliness: Liveliness::default(),
            time_based_filter: Duration::ZERO,
            partition: Vec::new(),
            reliability: Reliability::default(),
            transport_priority: 0,
            lifespan: Duration::INFINITE,
            destination_order: DestinationOrder::default(),
            history: History::default(),
            resource_limits: ResourceLimits::default(),
            entity_factory: EntityFactory::default(),
            writer_data_lifecycle: WriterDataLifecycle::default(),
            reader_data_lifecycle: ReaderDataLifecycle::default(),
            data_representation: Vec::new(),
            type_consistency: TypeConsistency::default(),
            properties: Vec::new(),
            consistency: Consistency::default(),
        }
    }
}

impl Default for Consistency {
    fn default() -> Self {
        Self {
            kind: ConsistencyKind::Eventual,
            slow_member_delay: Duration::INFINITE,
            deliver_at: DeliverAt::Durable,
        }
    }
}

impl Default for Liveliness {
    fn default() -> Self {
        Self { kind: LivelinessKind::Automatic, lease_duration: Duration::INFINITE }
    }
}

impl Default for Reliability {
    fn default() -> Self {
        Self { kind: ReliabilityKind::Unset, max_blocking_time: Duration::from_millis(100) }
    }
}

impl Default for History {
    fn default() -> Self {
        Self { kind: HistoryKind::KeepLast, depth: 1 }
    }
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            max_samples: LENGTH_UNLIMITED,
            max_instances: LENGTH_UNLIMITED,
            max_samples_per_instance: LENGTH_UNLIMITED,
        }
    }
}

impl Default for WriterDataLifecycle {
    fn default() -> Self {
        Self { autodispose_unregistered_instances: true }
    }
}

impl Default for ReaderDataLifecycle {
    fn default() -> Self {
        Self {
            autopurge_nowriter_samples_delay: Duration::INFINITE,
            autopurge_disposed_samples_delay: Duration::INFINITE,
        }
    }
}

impl Default for DurabilityService {
    fn default() -> Self {
        Self {
            service_cleanup_delay: Duration::ZERO,
            history: History::default(),
            resource_limits: ResourceLimits::default(),
        }
    }
}

impl Default for EntityFactory {
    fn default() -> Self {
        Self { autoenable_created_entities: true }
    }
}

impl Default for TypeConsistency {
    fn default() -> Self {
        Self {
            allow_type_coercion: true,
            ignore_sequence_bounds: true,
            ignore_string_bounds: true,
            ignore_member_names: false,
            prevent_type_widening: false,
            force_type_validation: false,
        }
    }
}
