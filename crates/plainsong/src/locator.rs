//! Addresses of participants (RTPS 2.5 §9.3.2), as reports and built-in topics show them.

pub use plainsong_proto::locator::Locator;
