//! Times of samples, and durations of QoS. Calls take [`std::time::Duration`]; each becomes the other by
//! `into()`.

pub use plainsong_proto::time::{Duration, Time};
