//! Which instance a change is of, and by which key the application knows it.

use super::super::change::Change;
use super::super::instances::Instance;
use super::super::ownership::WriterId;
use super::Cache;
use crate::instance::{InstanceHandle, Key, KeyFunction};
use crate::malformed::Malformed;

/// The keys of a type, and those that instances are named by.
#[derive(Debug)]
pub(super) struct Names {
    function: KeyFunction,
    keyed: bool,
    bytes: usize,
    bytes_max: usize,
}

impl Names {
    pub(super) const fn new(function: KeyFunction, keyed: bool, bytes_max: usize) -> Self {
        Self { keyed: keyed && !function.is_verbatim(), function, bytes: 0, bytes_max }
    }

    /// Whether changes that end an instance are kept as they are: see [`KeyFunction::verbatim`].
    pub(super) const fn is_verbatim(&self) -> bool {
        self.function.is_verbatim()
    }

    /// Names the instance by the key in `payload`, where it has one and there is room. It is copied: an
    /// instance outlives its samples, and must not keep their memory, which may be that of their writer.
    #[cold]
    pub(super) fn name(&mut self, instance: &mut Instance, payload: &[u8], key_only: bool) {
        instance.is_named = !self.keyed;
        if instance.is_named || payload.is_empty() || self.bytes >= self.bytes_max {
            return;
        }
        let Some(key) = self.function.serialized(payload, key_only) else { return };
        let bytes = self.bytes.saturating_add(key.len());
        if bytes <= self.bytes_max {
            self.bytes = bytes;
            instance.set_key(key);
        }
    }

    /// The instance is forgotten.
    pub(super) fn forget(&mut self, instance: &Instance) {
        self.bytes -= instance.key().len();
    }
}

impl Cache {
    /// The key of `change`: from the payload when there is one; peers compute key hashes
    /// differently, so a key hash decides only in the absence of a payload. `None` in the absence of both.
    #[inline(always)]
    pub(super) fn key_of(&self, change: &Change<'_>, octets: &[u8]) -> Result<Key, Option<Malformed>> {
        if !self.names.keyed {
            return Ok(InstanceHandle::NIL.into());
        }
        if octets.is_empty() {
            return change.key_hash.map(Key::from).ok_or(None);
        }
        self.names.function.key(octets, change.key_only).map_err(Some)
    }

    /// The instance that `writer` ends when it tells the key hash alone: of several with that hash the only
    /// one that it writes.
    pub(super) fn meant_by_hash(&self, writer: WriterId, hash: InstanceHandle) -> Option<InstanceHandle> {
        let publication = self.publications.get(writer);
        self.instances.by_hash(hash, |id| publication.is_some_and(|it| it.instances.contains(&id)))
    }
}
