//! Keys: the serialized key of dispose and unregister, and the 16 octets that identify an instance
//! (RTPS 2.5 §9.6.4.8, XTypes 1.3 §7.6.8).

use std::fmt;

use md5::{Digest, Md5};

use super::decode::{Decoder, Form as DecodeForm};
use super::encode::{EncodeError, Encoder, Form as EncodeForm};
use super::{
    Cdr, DdsType, ElementKind, Encapsulation, Endianness, Extensibility, Plain, PlainLayout, XcdrVersion,
    append_payload, open_payload,
};
use crate::malformed::Malformed;

/// Identifies an instance of a topic. All zeros for types without key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyHash(pub [u8; 16]);

impl KeyHash {
    /// Of a [`Cdr::short_key`]. All of it as one number: it is compared at once, from registers.
    #[inline(always)]
    fn of_short(key: u64) -> Self {
        Self((u128::from(key) << u64::BITS).to_be_bytes())
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(formatter, "{octet:02x}"))
    }
}

/// Appends the serialized key of a sample, with encapsulation header and padding: 20 octets
/// at least.
pub fn key_to_payload<T: DdsType>(
    sample: &T,
    version: XcdrVersion,
    endianness: Endianness,
    buffer: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    key_to_payload_as::<T, T>(sample, version, endianness, buffer)
}

/// As [`key_to_payload`], of a `T` or of what it is with borrowed members, [`DdsType::Borrowed`].
pub fn key_to_payload_as<T: DdsType, S: Cdr>(
    sample: &S,
    version: XcdrVersion,
    endianness: Endianness,
    buffer: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let encapsulation = Encapsulation::for_type(version, T::EXTENSIBILITY, endianness);
    append_encoded_key(encapsulation, buffer, |encoder| sample.encode(encoder))
}

/// As [`key_to_payload`], of whatever `encode` appends.
///
/// # Errors
/// Those of `encode`.
pub fn append_encoded_key(
    encapsulation: Encapsulation,
    buffer: &mut Vec<u8>,
    encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = buffer.len();
    append_payload(encapsulation, EncodeForm::Key, buffer, encode)?;
    buffer.resize(buffer.len().max(start + PAYLOAD_BYTES_MIN), 0);
    Ok(())
}

/// Reads a serialized key; members that are not part of the key take their initial value.
pub fn key_from_payload<T: DdsType>(payload: &[u8]) -> Result<T, Malformed> {
    let mut decoder = open_payload::<T>(payload, DecodeForm::Key)?;
    let version = decoder.version();
    let key = decode_key(&mut decoder);
    if key.is_ok() || version != XcdrVersion::Xcdr2 || T::EXTENSIBILITY != Extensibility::Appendable {
        return key;
    }
    // Cyclone DDS 0.10 leaves the DHEADER out. What was read as one then does not fit what follows.
    decode_key(&mut open_payload::<T>(payload, DecodeForm::UndelimitedKey)?).or(key)
}

/// The key hash of a sample. Allocates nothing while its key fits the buffer on the stack.
#[inline]
pub fn key_hash<T: DdsType>(sample: &T) -> Result<KeyHash, EncodeError> {
    key_hash_as::<T, T>(sample)
}

/// As [`key_hash`], of a `T` or of what it is with borrowed members, [`DdsType::Borrowed`].
#[inline]
pub fn key_hash_as<T: DdsType, S: Cdr>(sample: &S) -> Result<KeyHash, EncodeError> {
    key_hash_and_key_as::<T, S>(sample, |_| ())
}

/// As [`key_hash_as`]. Where the hash is a digest, which other keys may have too, `long_key` gets the
/// serialized key.
#[inline]
pub fn key_hash_and_key_as<T: DdsType, S: Cdr>(
    sample: &S,
    long_key: impl FnOnce(&[u8]),
) -> Result<KeyHash, EncodeError> {
    if !T::KEYED {
        return Ok(KeyHash::default());
    }
    if let Some(key) = sample.short_key() {
        return Ok(KeyHash::of_short(key));
    }
    key_hash_of_encoded(T::KEY_BYTES_MAX, |encoder| sample.encode(encoder), long_key)
}

/// As [`key_hash_and_key_as`], of the key holder that `encode` appends, which has so many octets at most.
///
/// # Errors
/// Those of `encode`.
#[inline]
pub fn key_hash_of_encoded(
    bytes_max: Option<usize>,
    encode: impl Fn(&mut Encoder<'_>) -> Result<(), EncodeError>,
    long_key: impl FnOnce(&[u8]),
) -> Result<KeyHash, EncodeError> {
    let mut hash = KeyHash::default();
    // Step 5.1 of XTypes 1.3 §7.6.8: it is the key hash itself.
    if bytes_max.is_some_and(|bytes| bytes <= hash.0.len()) {
        encode(&mut Encoder::key_hash(&mut hash.0))?;
        return Ok(hash);
    }
    let digest = |key: &[u8]| {
        long_key(key);
        digest(key)
    };
    let mut scratch = [0; SCRATCH_BYTES];
    let mut encoder = Encoder::key_hash(&mut scratch);
    match encode(&mut encoder) {
        Ok(()) => {
            let length = encoder.position();
            Ok(digest(scratch.get(..length).unwrap_or_default()))
        }
        Err(EncodeError::BufferFull { .. }) => {
            let mut buffer = Vec::with_capacity(2 * SCRATCH_BYTES);
            let mut encoder = Encoder::new(&mut buffer, XcdrVersion::Xcdr2, Endianness::Big);
            encoder.form = EncodeForm::KeyHash;
            encode(&mut encoder)?;
            Ok(digest(&buffer))
        }
        Err(error) => Err(error),
    }
}

/// The key hash of a payload: of a serialized key if `key_only`, else of a sample, whose other members are
/// skipped without being decoded.
#[inline]
pub fn key_hash_of_payload<T: DdsType>(payload: &[u8], key_only: bool) -> Result<KeyHash, Malformed> {
    key_hash_and_key_of_payload::<T>(payload, key_only, |_| ())
}

/// As [`key_hash_of_payload`], with `long_key` as in [`key_hash_and_key_as`].
#[inline]
pub fn key_hash_and_key_of_payload<T: DdsType>(
    payload: &[u8],
    key_only: bool,
    long_key: impl FnOnce(&[u8]),
) -> Result<KeyHash, Malformed> {
    if let Some(hash) = key_hash_in_place::<T>(payload, key_only) {
        return Ok(hash);
    }
    decoded_hash::<T>(payload, key_only, long_key)
}

/// The key hash of a sample whose key is in a [`KeyPlace`].
#[inline]
pub(crate) fn key_hash_in_place<T: DdsType>(payload: &[u8], key_only: bool) -> Option<KeyHash> {
    if key_only { None } else { T::KEY_PLACE.hash(payload) }
}

/// The key of a payload: of a serialized key if `key_only`, else of a sample, whose other members need not
/// decode. They take their initial value.
pub fn key_of_payload<T: DdsType>(payload: &[u8], key_only: bool) -> Result<T, Malformed> {
    if key_only {
        return key_from_payload(payload);
    }
    decode_key(&mut open_payload::<T>(payload, DecodeForm::KeyOfSample)?)
}

// Apart, so that the compiler may put `decode` itself where samples are taken.
#[inline(never)]
fn decoded_hash<T: DdsType>(
    payload: &[u8],
    key_only: bool,
    long_key: impl FnOnce(&[u8]),
) -> Result<KeyHash, Malformed> {
    let key = key_of_payload::<T>(payload, key_only)?;
    // Encoding what was just decoded fails only where the type refuses the value, e.g. by a bound.
    key_hash_and_key_as::<T, T>(&key, long_key).map_err(|_| Malformed::InvalidString)
}

fn decode_key<T: DdsType>(decoder: &mut Decoder<'_>) -> Result<T, Malformed> {
    if T::KEYED { T::decode(decoder) } else { Ok(T::initial()) }
}

/// Where the key is in every sample of a type whose only key member is a number and follows members of fixed
/// size: its hash is that number, and nothing has to be decoded for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyPlace {
    /// Of the number.
    bytes: usize,
    /// Where it begins behind the encapsulation header: in version 1, of a final or appendable type.
    xcdr1: Option<usize>,
    /// In version 2, of a final type.
    xcdr2: Option<usize>,
}

impl KeyPlace {
    /// In no fixed place.
    pub const NONE: Self = Self { bytes: 0, xcdr1: None, xcdr2: None };

    /// Of a structure with these members, in declaration order: of key members with what they are.
    pub const fn of(extensibility: Extensibility, members: &[(Plain, Option<ElementKind>)]) -> Self {
        if matches!(extensibility, Extensibility::Mutable) {
            return Self::NONE;
        }
        let Some((start, bytes)) = place(XcdrVersion::Xcdr1, members) else {
            return Self::NONE;
        };
        let xcdr2 = match (extensibility, place(XcdrVersion::Xcdr2, members)) {
            (Extensibility::Final, Some((start, _))) => Some(start),
            _ => None,
        };
        Self { bytes, xcdr1: Some(start), xcdr2 }
    }

    /// The key hash of a sample, if it is in such a place.
    #[inline(always)]
    fn hash(self, payload: &[u8]) -> Option<KeyHash> {
        let ([0, id, _, _], body) = payload.split_first_chunk::<{ Encapsulation::HEADER_BYTES }>()? else {
            return None;
        };
        let start = match id {
            0 | 1 => self.xcdr1?,
            6 | 7 => self.xcdr2?,
            _ => return None,
        };
        let octets = body.get(start..)?;
        let number = match self.bytes {
            1 => u64::from_le_bytes(widened::<1>(octets)?),
            2 => u64::from_le_bytes(widened::<2>(octets)?),
            4 => u64::from_le_bytes(widened::<4>(octets)?),
            8 => u64::from_le_bytes(widened::<8>(octets)?),
            _ => return None,
        };
        // The most significant octet first.
        let unused_bits = (size_of::<u64>() - self.bytes) * 8;
        let number = if id & 1 != 0 { number << unused_bits } else { number.swap_bytes() };
        Some(KeyHash::of_short(number))
    }
}

/// The first octets, and zeros.
#[inline(always)]
fn widened<const N: usize>(octets: &[u8]) -> Option<[u8; 8]> {
    let mut wide = [0; 8];
    wide.get_mut(..N)?.copy_from_slice(octets.get(..N)?);
    Some(wide)
}

/// Where the only key begins, and its octets.
const fn place(version: XcdrVersion, members: &[(Plain, Option<ElementKind>)]) -> Option<(usize, usize)> {
    let (mut rest, mut start, mut found) = (members, 0_usize, None);
    while let Some((&(plain, key), others)) = rest.split_first() {
        rest = others;
        match (found, key) {
            (Some(_), Some(_)) => return None,
            (Some(_), None) => continue,
            (None, Some(ElementKind::Primitive) | None) => {}
            (None, Some(_)) => return None,
        }
        let Some(PlainLayout { bytes, alignment }) = plain.layout(version) else { return None };
        start = start.next_multiple_of(alignment);
        if key.is_some() {
            found = Some((start, bytes));
        }
        start += bytes;
    }
    found
}

/// Step 5.2: of longer keys.
fn digest(key: &[u8]) -> KeyHash {
    KeyHash(Md5::digest(key).into())
}

/// Fast DDS takes a serialized key of up to 16 octets, encapsulation header included, for the key hash, and
/// so misses the instance. Zeros make a shorter one longer; readers stop at the last key member.
const PAYLOAD_BYTES_MIN: usize = 20;

/// Stack space for the key; enough for a handful of bounded strings.
const SCRATCH_BYTES: usize = 512;
