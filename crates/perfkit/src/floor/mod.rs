//! The operating system itself: what the worker needs of it, and the floors that products are compared with.

pub mod ring;
pub mod system;
