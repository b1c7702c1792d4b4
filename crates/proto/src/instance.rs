//! Instance handles: the key hash of an instance, or the GUID of an entity.

use crate::cdr::KeyHash;
use crate::guid::Guid;

/// Names an instance or an entity. For an instance it is the key hash of its key
/// (RTPS 2.5 §9.6.4.8), so every participant gives the same instance the same handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceHandle(pub [u8; 16]);

impl InstanceHandle {
    /// `HANDLE_NIL`: also the one instance of a topic without key.
    pub const NIL: Self = Self([0; 16]);
}

impl From<KeyHash> for InstanceHandle {
    fn from(hash: KeyHash) -> Self {
        Self(hash.0)
    }
}

impl From<Guid> for InstanceHandle {
    fn from(guid: Guid) -> Self {
        Self(guid.to_bytes())
    }
}
