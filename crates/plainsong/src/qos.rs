//! Quality of service (DCPS 1.4 §2.2.3): the policies, sets of them, and what they are compared by. Profiles
//! in XML are in [`crate::qos_provider`].

pub use plainsong_proto::qos::{
    AccessScope, Consistency, ConsistencyKind, DeliverAt, DestinationOrder, Durability, DurabilityService,
    EntityFactory, EntityKind, History, HistoryKind, Inconsistent, LENGTH_UNLIMITED, Liveliness,
    LivelinessKind, Ownership, POLICIES, Policy, PolicyId, Presentation, Property, QosSet,
    ReaderDataLifecycle, Reliability, ReliabilityKind, ResourceLimits, Shortfall, TypeConsistency,
    Unhonoured, WriterDataLifecycle, consistent, incompatible, partitions_match, shortfalls, unhonoured,
};
