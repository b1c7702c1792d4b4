//! What is told of a remote endpoint, and how those of one participant are found.

use std::ops::RangeInclusive;

use crate::filter::ContentFilter;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::qos::QosSet;
use crate::types::TypeHash;

/// An endpoint of another participant, or one of our own seen with others' eyes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEndpoint<'a> {
    /// Its GUID: the entity kind says writer or reader.
    pub guid: Guid,
    /// Topic name.
    pub topic: &'a str,
    /// Registered type name.
    pub type_name: &'a str,
    /// QoS of the endpoint and its publisher or subscriber.
    pub qos: &'a QosSet,
    /// The content filter of a reader that told of one.
    pub content_filter: Option<&'a ContentFilter>,
    /// The hash of its type, of the complete one if that was told.
    pub type_hash: Option<TypeHash>,
}

/// The GUIDs of one participant are neighbours in any ordered map.
pub(super) fn all_of(prefix: GuidPrefix) -> RangeInclusive<Guid> {
    prefix.entity(EntityId([0; 4]))..=prefix.entity(EntityId([0xff; 4]))
}
