//! The control plane of one participant: who is there, what they have, and who matches whom.

mod amplification;
pub mod builtin;
mod channel;
pub mod config;
mod database;
mod departures;
mod endpoint;
mod explain;
mod forms;
mod groups;
mod ignore;
mod judge;
mod lead;
mod links;
mod liveliness;
mod matching;
mod memory;
mod news;
pub mod participant;
mod path;
mod process;
mod proof;
mod sedp;
mod spdp;
pub mod survey;
#[cfg(test)]
mod tests;
mod told_type;
mod trust;
mod type_lookup;

pub use config::{DiscoveryError, DiscoveryLimits, LocalEndpoint, LocalLocators, ParticipantConfig};
pub use endpoint::RemoteEndpoint;
pub use explain::{Difference, Mismatch, Party, are_internal};
pub use judge::Judgement;
pub use matching::MismatchReason;
pub use memory::{MemoryRefusal, UsedTransport};
pub use news::News;
pub use participant::{Participant, RemoteParticipant};
pub use process::ProcessData;
pub use told_type::WhyUntold;
pub use type_lookup::ToldType;

pub use crate::matched::{Command, MatchedReader, MatchedWriter};
