//! Quality of service: the policies, one table about them, and the request/offered rules.

mod build;
pub mod check;
mod display;
pub mod explain;
pub mod policy;
pub mod rxo;
pub mod table;
pub mod unhonoured;
mod words;

pub use crate::policy_id::PolicyId;
pub use check::{Inconsistent, consistent, consistent_in_group};
pub use explain::{Shortfall, shortfalls};
pub use policy::*;
pub use rxo::{incompatible, partitions_match};
pub use table::{EntityKind, POLICIES, Policy, changed_immutable, different};
pub use unhonoured::{Unhonoured, unhonoured};

pub(crate) use words::partitions as partitions_in_words;

#[cfg(test)]
mod tests;
