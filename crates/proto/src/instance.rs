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

    /// Stands for the instance whose key hash is all zero, as of a key of zeros: [`Self::NIL`] means
    /// "none" where an instance is asked for.
    const ZERO_KEY: Self = Self(*b"\0zero key hash\0\0");

    /// The key hash of the instance, as it travels.
    #[must_use]
    pub fn key_hash(self) -> KeyHash {
        KeyHash(if self == Self::ZERO_KEY { [0; 16] } else { self.0 })
    }
}

impl From<KeyHash> for InstanceHandle {
    fn from(hash: KeyHash) -> Self {
        if hash.0 == [0; 16] { Self::ZERO_KEY } else { Self(hash.0) }
    }
}

impl From<Guid> for InstanceHandle {
    fn from(guid: Guid) -> Self {
        Self(guid.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_never_nil_and_its_key_hash_travels_unchanged() {
        for hash in [KeyHash([0; 16]), KeyHash([7; 16])] {
            let handle = InstanceHandle::from(hash);
            assert_ne!(handle, InstanceHandle::NIL);
            assert_eq!(handle.key_hash(), hash);
        }
    }
}
