//! Why something was dropped, and how often
//! ([`DomainParticipant::drops`](crate::participant::DomainParticipant::drops)).

pub use plainsong_proto::stats::{DropCounters, DropReason};
