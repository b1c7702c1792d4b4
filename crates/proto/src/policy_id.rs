//! The policies by their ids, as statuses name them.

use std::fmt;

macro_rules! policy_ids {
    ($($id:ident = $number:literal $name:literal,)+) => {
        /// A policy by its `QosPolicyId_t` (DCPS 1.4 §2.3.3, XTypes 1.3 §7.6.3); the discriminant is that
        /// number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum PolicyId {
            $(#[doc = $name] $id = $number,)+
        }

        impl PolicyId {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$id),+];

            /// The name of the policy in the standard.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$id => $name),+ }
            }
        }
    };
}

policy_ids! {
    UserData = 1 "USER_DATA",
    Durability = 2 "DURABILITY",
    Presentation = 3 "PRESENTATION",
    Deadline = 4 "DEADLINE",
    LatencyBudget = 5 "LATENCY_BUDGET",
    Ownership = 6 "OWNERSHIP",
    OwnershipStrength = 7 "OWNERSHIP_STRENGTH",
    Liveliness = 8 "LIVELINESS",
    TimeBasedFilter = 9 "TIME_BASED_FILTER",
    Partition = 10 "PARTITION",
    Reliability = 11 "RELIABILITY",
    DestinationOrder = 12 "DESTINATION_ORDER",
    History = 13 "HISTORY",
    ResourceLimits = 14 "RESOURCE_LIMITS",
    EntityFactory = 15 "ENTITY_FACTORY",
    WriterDataLifecycle = 16 "WRITER_DATA_LIFECYCLE",
    ReaderDataLifecycle = 17 "READER_DATA_LIFECYCLE",
    TopicData = 18 "TOPIC_DATA",
    GroupData = 19 "GROUP_DATA",
    TransportPriority = 20 "TRANSPORT_PRIORITY",
    Lifespan = 21 "LIFESPAN",
    DurabilityService = 22 "DURABILITY_SERVICE",
    DataRepresentation = 23 "DATA_REPRESENTATION",
    TypeConsistencyEnforcement = 24 "TYPE_CONSISTENCY_ENFORCEMENT",
    // Ids from 1024 on are free for vendors.
    Consistency = 1025 "CONSISTENCY",
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
