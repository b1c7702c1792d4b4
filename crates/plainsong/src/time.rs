//! Times of samples, and durations. Calls take durations of this module or of the standard library, each of
//! which becomes the other by `into()`; so do [`Time`] and [`SystemTime`](std::time::SystemTime).
//!
//! ```
//! use plainsong::prelude::*;
//!
//! let begin = Time::now();
//! let end: Time = std::time::SystemTime::now().into();
//! println!("{begin}: {}", end.since(begin));
//! ```

pub use plainsong_proto::time::{Duration, Time};

use crate::base::clock;

/// Reads the clock of this host into a [`Time`]. The prelude has it.
pub trait TimeExt {
    /// The wall-clock time, as it stamps what is written and received.
    fn now() -> Self;
}

impl TimeExt for Time {
    fn now() -> Self {
        clock::now().wall
    }
}
