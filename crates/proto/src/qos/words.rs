//! The standard's names of the kinds of each policy, and values as people write them.

use std::fmt;

use crate::cdr::XcdrVersion;

use super::policy::{
    AccessScope, ConsistencyKind, DeliverAt, DestinationOrder, Durability, HistoryKind, LivelinessKind,
    Ownership, ReliabilityKind,
};

/// Kinds that the standard has names for.
macro_rules! named {
    ($($kind:ident { $($variant:ident => $name:literal),+ $(,)? })+) => {$(
        impl $kind {
            /// All kinds, weakest first.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name in the standard.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    )+};
}

named! {
    Durability {
        Volatile => "VOLATILE",
        TransientLocal => "TRANSIENT_LOCAL",
        Transient => "TRANSIENT",
        Persistent => "PERSISTENT",
    }
    AccessScope { Instance => "INSTANCE", Topic => "TOPIC", Group => "GROUP" }
    Ownership { Shared => "SHARED", Exclusive => "EXCLUSIVE" }
    LivelinessKind {
        Automatic => "AUTOMATIC",
        ManualByParticipant => "MANUAL_BY_PARTICIPANT",
        ManualByTopic => "MANUAL_BY_TOPIC",
    }
    DestinationOrder {
        ByReceptionTimestamp => "BY_RECEPTION_TIMESTAMP",
        BySourceTimestamp => "BY_SOURCE_TIMESTAMP",
    }
    HistoryKind { KeepLast => "KEEP_LAST", KeepAll => "KEEP_ALL" }
    ConsistencyKind { Eventual => "EVENTUAL", Atomic => "ATOMIC" }
    DeliverAt { Stable => "STABLE", Durable => "DURABLE" }
}

impl ReliabilityKind {
    /// The kinds that an entity can have, weakest first.
    pub const ALL: &[Self] = &[Self::BestEffort, Self::Reliable];

    /// Its name in the standard; `by default` where nothing is said.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unset => "by default",
            Self::BestEffort => "BEST_EFFORT",
            Self::Reliable => "RELIABLE",
        }
    }
}

impl fmt::Display for ReliabilityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a representation (XTypes 1.3 §7.6.3.1).
pub(super) const fn representation(version: XcdrVersion) -> &'static str {
    match version {
        XcdrVersion::Xcdr1 => "XCDR1",
        XcdrVersion::Xcdr2 => "XCDR2",
    }
}

/// Names of partitions shown at most: a peer may have many.
const PARTITIONS_SHOWN_MAX: usize = 8;

/// A PARTITION in words. Names are quoted and escaped: they may come from anyone.
pub(crate) fn partitions(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(PARTITIONS_SHOWN_MAX).map(|name| format!("{name:?}")).collect();
    match names.len().saturating_sub(shown.len()) {
        _ if shown.is_empty() => "the default partition \"\"".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
