//! What a writer is made of.

use std::sync::Arc;

use crate::filter::FilterFunction;
use crate::guid::Guid;
use crate::qos::QosSet;

use super::{WriterGroup, WriterLimits};

/// What a writer is made of.
#[derive(Clone, Debug)]
pub struct WriterConfig {
    /// Its GUID.
    pub guid: Guid,
    /// Its topic has a key.
    pub keyed: bool,
    /// QoS of the writer and its publisher.
    pub qos: QosSet,
    /// Bounds and timing that are no QoS.
    pub limits: WriterLimits,
    /// Makes the filters of readers usable here; without, they are left to the readers.
    pub content_filter: Option<FilterFunction>,
    /// What it shares with the other writers of its publisher under GROUP access.
    pub group: Option<Arc<WriterGroup>>,
}
