//! A Data Distribution Service: participants, topics, typed writers and readers over RTPS.

/// The protocol core: QoS, time, statuses and the serialization that derived types use.
pub use plainsong_proto as proto;

mod clock;
pub mod config;
mod domain;
mod runtime;
mod transport;
