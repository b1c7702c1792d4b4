//! Which instance a change is of.

use super::super::change::Change;
use super::super::ownership::WriterId;
use super::Cache;
use crate::instance::{InstanceHandle, Key};
use crate::malformed::Malformed;

impl Cache {
    /// The key of `change`: from the payload when there is one; peers compute key hashes
    /// differently, so a key hash decides only in the absence of a payload. `None` in the absence of both.
    #[inline(always)]
    pub(super) fn key_of(&self, change: &Change<'_>, octets: &[u8]) -> Result<Key, Option<Malformed>> {
        if !self.keyed {
            return Ok(InstanceHandle::NIL.into());
        }
        if octets.is_empty() {
            return change.key_hash.map(Key::from).ok_or(None);
        }
        self.key.key(octets, change.key_only).map_err(Some)
    }

    /// The instance that `writer` ends when it tells the key hash alone: of several with that hash the only
    /// one that it writes.
    pub(super) fn meant_by_hash(&self, writer: WriterId, hash: InstanceHandle) -> Option<InstanceHandle> {
        let publication = self.publications.get(writer);
        self.instances.by_hash(hash, |id| publication.is_some_and(|it| it.instances.contains(&id)))
    }
}
