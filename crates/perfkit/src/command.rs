//! What a worker is told.

use serde::{Deserialize, Serialize};

use crate::spec::WorkerSpec;

/// One line on the standard input of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Say what you are: answered by [`crate::Event::Hello`].
    Hello,
    /// Make the entities and wait for those expected: answered by [`crate::Event::Ready`] or
    /// [`crate::Event::Error`].
    Configure {
        /// All there is to know.
        spec: Box<WorkerSpec>,
    },
    /// Begin at this time of the monotonic clock (nanoseconds); at once if it has passed.
    Start {
        /// The monotonic time, in nanoseconds.
        at_ns: u64,
    },
    /// End the work now, also when its time is not over: answered by [`crate::Event::Report`].
    Stop,
    /// Leave.
    Quit,
}
