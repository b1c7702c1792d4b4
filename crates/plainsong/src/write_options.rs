//! What may be said of a single write, disposal or unregistration beside the sample.

use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::time::{Duration, Time};

/// What [`DataWriter::write_with`](crate::data_writer::DataWriter::write_with) and its like are told beside
/// the sample. By default they do what `write` does.
///
/// ```
/// use plainsong::prelude::*;
///
/// let patience = Duration::from_millis(5);
/// let options = WriteOptions::new().source_timestamp(Time::now()).max_blocking_time(patience);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    source_timestamp: Option<Time>,
    instance: InstanceHandle,
    max_blocking_time: Option<Duration>,
}

impl WriteOptions {
    /// Those of `write`.
    #[must_use]
    pub const fn new() -> Self {
        Self { source_timestamp: None, instance: InstanceHandle::NIL, max_blocking_time: None }
    }

    /// Stamps the sample with this time instead of that of writing (DCPS 1.4 §2.2.2.4.2.12). Under
    /// DESTINATION_ORDER BY_SOURCE_TIMESTAMP it must not be older than that of the last change of the
    /// instance.
    #[must_use]
    pub fn source_timestamp(mut self, time: impl Into<Time>) -> Self {
        self.source_timestamp = Some(time.into());
        self
    }

    /// The instance, which must be that of the key of the sample; [`InstanceHandle::NIL`] leaves it to the
    /// key (DCPS 1.4 §2.2.2.4.2.11).
    #[must_use]
    pub const fn instance(mut self, handle: InstanceHandle) -> Self {
        self.instance = handle;
        self
    }

    /// How long to wait for room, instead of `max_blocking_time` of RELIABILITY; zero does not wait at all.
    /// With CONSISTENCY ATOMIC also how long to wait for the group of the topic
    /// ([`DataWriter::write`](crate::data_writer::DataWriter::write)).
    #[must_use]
    pub fn max_blocking_time(mut self, time: impl Into<Duration>) -> Self {
        self.max_blocking_time = Some(time.into());
        self
    }

    pub(crate) const fn timestamp(&self) -> Option<Time> {
        self.source_timestamp
    }

    pub(crate) const fn handle(&self) -> InstanceHandle {
        self.instance
    }

    /// How long to wait, where the QoS says `usual`.
    pub(crate) fn patience(&self, usual: Duration) -> Patience {
        let room = Some(self.max_blocking_time.unwrap_or(usual)).filter(|time| *time > Duration::ZERO);
        Patience { room, is_given: self.max_blocking_time.is_some() }
    }
}

/// How long a write may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For room; `None` for not at all.
    pub(crate) room: Option<Duration>,
    /// The call says so, and not the QoS: it waits no longer for anything else.
    pub(crate) is_given: bool,
}

impl Patience {
    /// It waits for nothing.
    pub(crate) const NONE: Self = Self { room: None, is_given: true };

    /// What the QoS says.
    pub(crate) const fn usual(max_blocking_time: Duration) -> Self {
        Self { room: Some(max_blocking_time), is_given: false }
    }

    /// What a call says.
    pub(crate) const fn given(time: Duration) -> Self {
        Self { room: Some(time), is_given: true }
    }
}
