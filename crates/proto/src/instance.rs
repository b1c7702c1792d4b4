//! Instance handles: the key hash of an instance, or the GUID of an entity.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;

use crate::cdr::KeyHash;
use crate::guid::Guid;
use crate::malformed::{InvalidText, Malformed, octets_of_hex};
use crate::payload::Payload;

/// Names an instance or an entity. For an instance it is the key hash of its key (RTPS 2.5 §9.6.4.8), so
/// every participant gives the same instance the same handle. Only where another key has the same hash, and
/// came first, it is one that the endpoint chooses.
#[derive(Clone, Copy, Default, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "String")
)]
#[repr(align(8))]
pub struct InstanceHandle(pub [u8; 16]);

impl fmt::Debug for InstanceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceHandle({self})")
    }
}

impl InstanceHandle {
    /// `HANDLE_NIL`: also the one instance of a topic without key.
    pub const NIL: Self = Self([0; 16]);

    /// Stands for the instance whose key hash is all zero, as of a key of zeros: [`Self::NIL`] means
    /// "none" where an instance is asked for.
    const ZERO_KEY: Self = Self(*b"\0zero key hash\0\0");

    /// What a verbatim reader has in place of the instance of a change that ends one.
    #[must_use]
    pub(crate) const fn of_ending(ending: Ending) -> Self {
        let mut octets = *b"\0verbatim\0\0\0\0\0\0\0";
        let [.., last] = &mut octets;
        *last = 1
            | (ending.disposed as u8) << 1
            | (ending.unregistered as u8) << 2
            | (ending.hash_only as u8) << 3;
        Self(octets)
    }

    /// The same, back: `None` of everything else.
    #[must_use]
    pub fn ending(self) -> Option<Ending> {
        let flags = self.0[15];
        let has = |bit: u8| flags & 1 << bit != 0;
        let ending = Ending { disposed: has(1), unregistered: has(2), hash_only: has(3) };
        (self == Self::of_ending(ending)).then_some(ending)
    }

    /// The key hash of the instance, as it travels.
    #[must_use]
    pub fn key_hash(self) -> KeyHash {
        KeyHash(if self == Self::ZERO_KEY { [0; 16] } else { self.0 })
    }
}

/// How a change ends an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The instance is disposed.
    pub disposed: bool,
    /// Its writer is done with it.
    pub unregistered: bool,
    /// It came with the key hash alone, which stands in place of the payload.
    pub hash_only: bool,
}

/// What tells a key longer than a key hash from all others with the same hash: another hash of it, by a
/// function that nobody outside of the process can foresee. One of a fixed size, where there may be many
/// instances with keys of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub(crate) NonZeroU64);

impl Fingerprint {
    /// Of a key with this hash, by a function with a random seed: whoever knows it can make two keys one
    /// instance.
    #[must_use]
    pub fn new(hash: u64) -> Self {
        Self(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }
}

/// What identifies an instance: the key of its samples, in a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The key hash.
    pub hash: InstanceHandle,
    /// `None` where the hash is the key itself, or nothing else is known of it.
    pub fingerprint: Option<Fingerprint>,
}

/// Finds the instance in a serialized payload (with its encapsulation header), of data or of a key only;
/// keyless types return [`InstanceHandle::NIL`].
#[derive(Clone)]
pub struct KeyFunction {
    find: Arc<FindKey>,
    serialize: Option<Arc<SerializeKey>>,
    is_verbatim: bool,
}

type FindKey = dyn Fn(&[u8], bool) -> Result<Key, Malformed> + Send + Sync;
type SerializeKey = dyn Fn(&[u8], bool, &mut Vec<u8>) -> bool + Send + Sync;

impl KeyFunction {
    /// `find` is given a payload, and whether it is a key only.
    #[must_use]
    pub fn new(find: impl Fn(&[u8], bool) -> Result<Key, Malformed> + Send + Sync + 'static) -> Self {
        Self { find: Arc::new(find), serialize: None, is_verbatim: false }
    }

    /// For a reader that keeps no instances: it has all changes in the order in which they came, from all
    /// writers, also those that end an instance ([`InstanceHandle::ending`] tells which). Nothing is looked
    /// for in a payload.
    #[must_use]
    pub fn verbatim() -> Self {
        Self { is_verbatim: true, ..Self::new(|_, _| Ok(InstanceHandle::NIL.into())) }
    }

    pub(crate) const fn is_verbatim(&self) -> bool {
        self.is_verbatim
    }

    /// `serialize` appends the serialized key of such a payload, and says whether it has one: for readers to
    /// tell the key of an instance. Without it they know handles alone.
    #[must_use]
    pub fn with_serialized(
        self,
        serialize: impl Fn(&[u8], bool, &mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { serialize: Some(Arc::new(serialize)), ..self }
    }

    /// The key of `payload`.
    ///
    /// # Errors
    /// [`Malformed`] where there is none in it.
    #[inline]
    pub fn key(&self, payload: &[u8], key_only: bool) -> Result<Key, Malformed> {
        (self.find)(payload, key_only)
    }

    /// The serialized key of `payload`, in memory of its own.
    #[cold]
    #[must_use]
    pub fn serialized(&self, payload: &[u8], key_only: bool) -> Option<Payload> {
        let mut octets = Vec::new();
        if !self.serialize.as_ref()?(payload, key_only, &mut octets) {
            return None;
        }
        Payload::short(&octets).or_else(|| {
            octets.shrink_to_fit();
            Some(Payload::from_vec(octets))
        })
    }
}

impl fmt::Debug for KeyFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFunction")
    }
}

// Compared as numbers: two instructions each, no call, and no load of what was just written in parts.

impl PartialEq for InstanceHandle {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        u128::from_ne_bytes(self.0) == u128::from_ne_bytes(other.0)
    }
}

impl Hash for InstanceHandle {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// The order of the octets.
impl Ord for InstanceHandle {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        u128::from_be_bytes(self.0).cmp(&u128::from_be_bytes(other.0))
    }
}

impl PartialOrd for InstanceHandle {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<KeyHash> for InstanceHandle {
    #[inline]
    fn from(hash: KeyHash) -> Self {
        if u128::from_ne_bytes(hash.0) == 0 { Self::ZERO_KEY } else { Self(hash.0) }
    }
}

impl<T: Into<InstanceHandle>> From<T> for Key {
    #[inline]
    fn from(hash: T) -> Self {
        Self { hash: hash.into(), fingerprint: None }
    }
}

impl From<Guid> for InstanceHandle {
    fn from(guid: Guid) -> Self {
        Self(guid.to_bytes())
    }
}

/// Sixteen octets in hexadecimal.
impl fmt::Display for InstanceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Reads what `Display` writes.
impl FromStr for InstanceHandle {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let mut octets = [0; 16];
        octets_of_hex(text, &mut octets).ok_or(InvalidText("instance handle"))?;
        Ok(Self(octets))
    }
}

impl TryFrom<String> for InstanceHandle {
    type Error = InvalidText;

    fn try_from(text: String) -> Result<Self, InvalidText> {
        text.parse()
    }
}

impl From<InstanceHandle> for String {
    fn from(handle: InstanceHandle) -> Self {
        handle.to_string()
    }
}

/// Of an entity; the handle of an instance stands for none.
impl From<InstanceHandle> for Guid {
    fn from(handle: InstanceHandle) -> Self {
        Self::from_bytes(handle.0)
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
