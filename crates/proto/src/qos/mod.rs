//! Quality of service: the policies, one table about them, and the request/offered rules.

pub mod check;
pub mod policy;
pub mod rxo;
pub mod table;

pub use check::{Inconsistent, consistent};
pub use policy::*;
pub use rxo::{incompatible, partitions_match};
pub use table::{EntityKind, POLICIES, Policy, changed_immutable, policy_name};

#[cfg(test)]
mod tests;
