//! The road between processes of one host: rings and chunks in memory that they share.

#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzzing;
#[cfg_attr(not(test), expect(dead_code, reason = "the transport that uses it follows"))]
pub(crate) mod layout;
#[cfg_attr(not(test), expect(dead_code, reason = "the transport that uses it follows"))]
pub(crate) mod lending;
#[cfg(all(test, feature = "shuttle"))]
mod model;
#[cfg_attr(not(test), expect(dead_code, reason = "the transport that uses it follows"))]
pub(crate) mod pool;
#[cfg_attr(not(test), expect(dead_code, reason = "the transport that uses it follows"))]
pub(crate) mod ring;
pub(crate) mod segment;
