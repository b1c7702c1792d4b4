//! Keys: the serialized key of dispose and unregister, and the 16 octets that identify an instance
//! (RTPS 2.5 §9.6.4.8, XTypes 1.3 §7.6.8).

use std::fmt;

use md5::{Digest, Md5};

use super::decode::{Decoder, Form as DecodeForm};
use super::encode::{EncodeError, Encoder, Form as EncodeForm};
use super::{DdsType, Encapsulation, Endianness, Extensibility, XcdrVersion, append_payload, open_payload};
use crate::malformed::Malformed;

/// Identifies an instance of a topic. All zeros for types without key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyHash(pub [u8; 16]);

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
    let start = buffer.len();
    append_payload(
        sample,
        Encapsulation::for_type(version, T::EXTENSIBILITY, endianness),
        EncodeForm::Key,
        buffer,
    )?;
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
pub fn key_hash<T: DdsType>(sample: &T) -> Result<KeyHash, EncodeError> {
    if !T::KEYED {
        return Ok(KeyHash::default());
    }
    if is_short::<T>() {
        // It is the key hash itself.
        let mut hash = KeyHash::default();
        sample.encode(&mut Encoder::key_hash(&mut hash.0))?;
        return Ok(hash);
    }
    let mut scratch = [0; SCRATCH_BYTES];
    let mut encoder = Encoder::key_hash(&mut scratch);
    match sample.encode(&mut encoder) {
        Ok(()) => {
            let length = encoder.position();
            Ok(digest(scratch.get(..length).unwrap_or_default()))
        }
        Err(EncodeError::BufferFull { .. }) => {
            let mut buffer = Vec::with_capacity(2 * SCRATCH_BYTES);
            let mut encoder = Encoder::new(&mut buffer, XcdrVersion::Xcdr2, Endianness::Big);
            encoder.form = EncodeForm::KeyHash;
            sample.encode(&mut encoder)?;
            Ok(digest(&buffer))
        }
        Err(error) => Err(error),
    }
}

/// The key hash of a payload: of a serialized key if `key_only`, else of a sample, whose other members are
/// skipped without being decoded.
pub fn key_hash_of_payload<T: DdsType>(payload: &[u8], key_only: bool) -> Result<KeyHash, Malformed> {
    let key = if key_only {
        key_from_payload::<T>(payload)?
    } else {
        decode_key(&mut open_payload::<T>(payload, DecodeForm::KeyOfSample)?)?
    };
    // Encoding what was just decoded fails only where the type refuses the value, e.g. by a bound.
    key_hash(&key).map_err(|_| Malformed::InvalidString)
}

fn decode_key<T: DdsType>(decoder: &mut Decoder<'_>) -> Result<T, Malformed> {
    if T::KEYED { T::decode(decoder) } else { Ok(T::initial()) }
}

/// Whether keys of this type are never longer than their hash (step 5.1 of XTypes 1.3 §7.6.8).
fn is_short<T: DdsType>() -> bool {
    T::KEY_BYTES_MAX.is_some_and(|bytes| bytes <= KeyHash::default().0.len())
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
