//! What everything else stands on: settings, clocks, locks, and in which process we are.

pub(crate) mod clock;
pub mod config;
pub(crate) mod fork;
pub(crate) mod large_stack;
mod limits;
pub(crate) mod locks;
pub(crate) mod process;
pub(crate) mod store_error;
pub(crate) mod sync;
pub(crate) mod trace;
pub(crate) mod words;
