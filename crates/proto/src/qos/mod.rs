//! Quality of service: the policies, one table about them, and the request/offered rules.

pub mod policy;

pub use policy::*;
