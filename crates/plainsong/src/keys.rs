//! The keys of samples, as the protocol core compares them.

use std::hash::{BuildHasher, RandomState};
use std::result::Result;
use std::sync::LazyLock;

use plainsong_proto::cdr::{self, Cdr, DdsType, EncodeError};
use plainsong_proto::instance::{Fingerprint, InstanceHandle, Key};

/// Nobody outside of the process can foresee the fingerprint of a key.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The key of a sample: a `T`, or what it is with borrowed members.
#[inline]
pub(crate) fn key_of<T: DdsType, S: Cdr>(sample: &S) -> Result<Key, EncodeError> {
    if !T::KEYED {
        return Ok(InstanceHandle::NIL.into());
    }
    let mut fingerprint = None;
    let hash = cdr::key_hash_and_key_as::<T, S>(sample, |key| fingerprint = Some(fingerprint_of(key)))?;
    Ok(Key { hash: hash.into(), fingerprint })
}

#[inline(never)]
pub(crate) fn fingerprint_of(key: &[u8]) -> Fingerprint {
    Fingerprint::new(SEED.hash_one(key))
}
