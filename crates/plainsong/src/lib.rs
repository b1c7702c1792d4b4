//! A Data Distribution Service: participants, topics, typed writers and readers over RTPS.
//!
//! ```no_run
//! use plainsong::prelude::*;
//!
//! #[derive(DdsType, Default)]
//! struct Temperature {
//!     #[dds(key)]
//!     sensor: u32,
//!     celsius: f64,
//! }
//!
//! # fn main() -> plainsong::Result<()> {
//! let participant = DomainParticipant::new(0)?;
//! let topic = participant.create_topic::<Temperature>("Temperature", QosSet::default())?;
//! let publisher = participant.create_publisher(QosSet::default())?;
//! let writer = publisher.create_writer(&topic, QosSet::writer())?;
//! writer.write(&Temperature { sensor: 7, celsius: 21.5 })?;
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

// What is derived here names this crate as applications do.
extern crate self as plainsong;

#[cfg(debug_assertions)]
#[doc(hidden)]
pub use base::locks::locks_taken;

/// For a fuzz target: a link of shared memory whose peer writes anything.
#[cfg(all(feature = "fuzz", target_os = "linux"))]
#[doc(hidden)]
pub fn fuzz_shared_memory(octets: &[u8]) {
    transport::memory::fuzzing::run(octets);
}

/// What `#[derive(DdsType)]` writes names these. It may change at any time.
#[doc(hidden)]
pub mod __private {
    pub use plainsong_proto::{cdr, malformed, types};
}

mod asynchronous;
mod at_fork;
pub mod atomic;
mod base;
pub mod builtin_topics;
pub mod cdr;
pub mod condition;
mod consistent;
pub mod content_filtered_topic;
pub mod data_reader;
pub mod data_writer;
mod default_qos;
mod delete;
pub mod discovered;
mod domain;
pub mod drops;
pub mod dynamic;
mod entity;
mod error;
mod event_router;
mod group;
pub mod group_observer;
mod ignore;
pub mod in_place;
pub mod instance;
mod keys;
pub mod listener;
pub mod locator;
pub mod mismatch;
pub mod multi_topic;
pub mod participant;
mod participant_statistics;
mod peer_probe;
pub mod prelude;
pub mod publisher;
pub mod qos;
pub mod qos_provider;
pub mod query;
pub mod read_options;
mod reader_access;
pub mod replicated;
mod runtime;
pub mod sample;
pub mod serialized;
#[cfg(unix)]
mod shutdown_hook;
#[cfg(all(feature = "sim", not(test)))]
#[doc(hidden)]
pub mod sim;
pub mod state;
pub mod statistics;
pub mod status;
pub mod subscriber;
pub mod survey;
pub mod time;
pub mod topic;
pub mod topic_description;
mod transport;
pub mod types;
pub mod undecodable;
pub mod unresponsive;
pub mod witness;
pub mod write_options;

pub use base::config;
pub use domain::InterfaceReport;
pub use error::{BadParameter, Error, OutOfResources, PreconditionNotMet, Result, WaitedFor};
