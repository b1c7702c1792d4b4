//! CDR: values to octets and back, in encoding versions 1 and 2 of XTypes 1.3 §7.4, both byte orders and
//! all three extensibilities. It never does IO and never panics on what a peer sent.
//!
//! A type takes part through three traits, which `#[derive(DdsType)]` writes: [`Cdr`], a value with a
//! representation; [`Member`], a member of an aggregate, which an `Option` may be; and [`DdsType`], a type
//! a topic may have. The functions here convert whole payloads, encapsulation header included.

#![deny(clippy::indexing_slicing)]

mod bits;
mod collection;
pub mod decode;
mod elements;
pub mod encode;
mod extent;
pub mod field;
mod float128;
mod key;
mod map;
mod mutable;
mod octet_seq;
mod plain;
mod pod;
pub mod structure;
pub(crate) mod text;

pub use bits::{BitField, Discriminator};
pub use decode::Decoder;
pub use elements::{Elements, Keys, Shape, collection_extent};
pub use encode::{EncodeError, Encoder};
pub use extent::Extent;
pub use field::{FieldKind, FieldMember, FieldPath, FieldSource, FieldValue, Fields, NamedFields};
pub use float128::Float128;
pub(crate) use key::key_hash_in_place;
pub use key::{
    KeyHash, KeyPlace, append_encoded_key, key_from_payload, key_hash, key_hash_and_key_as,
    key_hash_and_key_of_payload, key_hash_as, key_hash_of_encoded, key_hash_of_payload, key_of_payload,
    key_to_payload, key_to_payload_as,
};
pub use mutable::{MemberHeader, OpenMember};
pub use octet_seq::OctetSeq;
pub use plain::{Plain, PlainLayout};
pub use pod::Pod;
pub use structure::{MemberOutline, Structure};
pub use text::{WChar, WString};

use crate::malformed::Malformed;
use crate::payload::Payload;
pub use crate::types::Extensibility;
use crate::types::{TypeBuilder, TypeIdentifiers};

/// Byte order of a representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endianness {
    /// Least significant octet first.
    Little,
    /// Most significant octet first.
    Big,
}

impl Endianness {
    /// The order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    #[inline]
    pub(crate) fn u16_octets(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    #[inline]
    pub(crate) fn u32_octets(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    #[inline]
    pub(crate) fn u16_from(self, octets: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(octets),
            Self::Big => u16::from_be_bytes(octets),
        }
    }

    #[inline]
    pub(crate) fn u32_from(self, octets: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(octets),
            Self::Big => u32::from_be_bytes(octets),
        }
    }
}

/// Encoding version of XCDR (XTypes 1.3 §7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum XcdrVersion {
    /// Version 1: classic CDR and parameter lists, alignment up to 8.
    Xcdr1,
    /// Version 2: delimiter and member headers, alignment up to 4.
    Xcdr2,
}

impl XcdrVersion {
    /// The largest alignment (`MAXALIGN`, XTypes 1.3 table 37).
    #[inline]
    pub const fn alignment_max(self) -> usize {
        match self {
            Self::Xcdr1 => 8,
            Self::Xcdr2 => 4,
        }
    }
}

/// The two octets that open a serialized payload, and its padding (RTPS 2.5 §10.2, XTypes 1.3 §7.6.3.1.2).
///
/// The RTPS 2.5 text numbers the XCDR2 identifiers from 0x0010; every product uses XTypes' 0x0006 to
/// 0x000b, and so does this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Encapsulation {
    /// The encoding version.
    pub version: XcdrVersion,
    /// The extensibility it tells; `None` for 0x0000 and 0x0001, which final and appendable types share.
    pub extensibility: Option<Extensibility>,
    /// The byte order.
    pub endianness: Endianness,
}

impl Encapsulation {
    /// Octets of the encapsulation header: identifier and options.
    pub const HEADER_BYTES: usize = 4;

    /// The encapsulation of a type with this extensibility.
    pub const fn for_type(
        version: XcdrVersion,
        extensibility: Extensibility,
        endianness: Endianness,
    ) -> Self {
        let extensibility = match (version, extensibility) {
            (XcdrVersion::Xcdr1, Extensibility::Final | Extensibility::Appendable) => None,
            (_, told) => Some(told),
        };
        Self { version, extensibility, endianness }
    }

    /// Reads the header of a payload; returns the body without header and padding.
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let ([id_high, id_low, _, options], body) =
            payload.split_first_chunk::<4>().ok_or(Malformed::Truncated)?;
        let encapsulation = Self::from_id(u16::from_be_bytes([*id_high, *id_low]))?;
        // The options tell the padding. A writer that sets them but does not pad is not worth a failure.
        let padding = usize::from(options & PADDING_BITS);
        let body = body.len().checked_sub(padding).and_then(|length| body.get(..length)).unwrap_or(body);
        Ok((encapsulation, body))
    }

    /// The encapsulation with this identifier.
    pub fn from_id(id: u16) -> Result<Self, Malformed> {
        use Extensibility::{Appendable, Final, Mutable};
        use XcdrVersion::{Xcdr1, Xcdr2};
        let (version, extensibility) = match id & !1 {
            0x0000 => (Xcdr1, None),
            0x0002 => (Xcdr1, Some(Mutable)),
            0x0006 => (Xcdr2, Some(Final)),
            0x0008 => (Xcdr2, Some(Appendable)),
            0x000a => (Xcdr2, Some(Mutable)),
            _ => return Err(Malformed::UnknownEncapsulation),
        };
        let endianness = if id & 1 == 0 { Endianness::Big } else { Endianness::Little };
        Ok(Self { version, extensibility, endianness })
    }

    /// The identifier (XTypes 1.3 table 60).
    pub const fn id(self) -> u16 {
        let base = match (self.version, self.extensibility) {
            (XcdrVersion::Xcdr1, Some(Extensibility::Mutable)) => 0x0002,
            (XcdrVersion::Xcdr1, _) => 0x0000,
            (XcdrVersion::Xcdr2, Some(Extensibility::Appendable)) => 0x0008,
            (XcdrVersion::Xcdr2, Some(Extensibility::Mutable)) => 0x000a,
            (XcdrVersion::Xcdr2, _) => 0x0006,
        };
        base + matches!(self.endianness, Endianness::Little) as u16
    }

    /// The name of the identifier (XTypes 1.3 table 60).
    pub const fn name(self) -> &'static str {
        match (self.id() & !1, self.endianness) {
            (0x0000, Endianness::Big) => "CDR_BE",
            (0x0000, Endianness::Little) => "CDR_LE",
            (0x0002, Endianness::Big) => "PL_CDR_BE",
            (0x0002, Endianness::Little) => "PL_CDR_LE",
            (0x0006, Endianness::Big) => "CDR2_BE",
            (0x0006, Endianness::Little) => "CDR2_LE",
            (0x0008, Endianness::Big) => "D_CDR2_BE",
            (0x0008, Endianness::Little) => "D_CDR2_LE",
            (_, Endianness::Big) => "PL_CDR2_BE",
            (_, Endianness::Little) => "PL_CDR2_LE",
        }
    }

    /// Whether this is the encapsulation of types with `extensibility`.
    pub fn suits(self, extensibility: Extensibility) -> bool {
        self == Self::for_type(self.version, extensibility, self.endianness)
    }
}

/// What the rules of XTypes 1.3 §7.4.3.5 distinguish when a type is the element of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementKind {
    /// A primitive type (§7.2.2.2): collections of it have no DHEADER.
    Primitive,
    /// An array of primitives, however many dimensions.
    PrimitiveArray,
    /// An array of anything else.
    CompositeArray,
    /// Anything else; enumerations too.
    Composite,
}

/// A value with an XCDR representation.
pub trait Cdr: Sized {
    /// How collections treat it as an element.
    const ELEMENT: ElementKind = ElementKind::Composite;
    /// Octets on the wire when that is the same for every value; `None` otherwise.
    const FIXED_BYTES: Option<usize> = None;
    /// The least octets on the wire in any version, padding left out.
    const BYTES_MIN: usize;
    /// The most octets in the form for key hashes.
    const EXTENT: Extent;
    /// Where memory layout and wire layout agree.
    const PLAIN: Plain = Plain::NEVER;

    /// Appends the value.
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError>;

    /// Reads a value.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed>;

    /// Reads a value over this one, whose memory is used again where that is possible. After an error this is
    /// some value.
    #[inline]
    fn decode_over(&mut self, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        *self = Self::decode(decoder)?;
        Ok(())
    }

    /// Reads past a value.
    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed>;

    /// The value of a member that is not there: zero, empty, the first literal (XTypes 1.3 table 9).
    fn initial() -> Self;

    /// The memory of the values, for types that consist of numbers without padding.
    #[must_use]
    fn plain_octets(_values: &[Self]) -> Option<&[u8]> {
        None
    }

    /// The value that octets are, for such types: `None` also where these are not as many, or not aligned.
    #[must_use]
    fn plain_ref(_octets: &[u8]) -> Option<&Self> {
        None
    }

    /// As [`Self::plain_ref`], to be changed.
    #[must_use]
    fn plain_mut(_octets: &mut [u8]) -> Option<&mut Self> {
        None
    }

    /// The key hash of a key that is one number of up to eight octets: its octets, the most significant
    /// first, as the first of this number. `None` of everything else.
    #[inline]
    fn short_key(&self) -> Option<u64> {
        None
    }

    /// Octets of which a sample may be mostly made: its first [`OctetSeq`], if it has one.
    #[inline]
    fn octet_seq(&self) -> Option<&OctetSeq<'_>> {
        None
    }

    /// Appends the elements of a sequence.
    fn encode_elements(elements: &[Self], encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        elements.iter().try_for_each(|element| element.encode(encoder))
    }

    /// Reads `count` elements of a sequence; `count` was checked against the octets left.
    fn decode_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<Vec<Self>, Malformed> {
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(Self::decode(decoder)?);
        }
        Ok(elements)
    }

    /// Reads `count` elements over those of `elements`, and no others; `count` was checked against the octets
    /// left.
    fn decode_elements_over(
        elements: &mut Vec<Self>,
        count: usize,
        decoder: &mut Decoder<'_>,
    ) -> Result<(), Malformed> {
        elements.truncate(count);
        elements.iter_mut().try_for_each(|element| element.decode_over(decoder))?;
        let new = count.saturating_sub(elements.len());
        elements.reserve(new);
        for _ in 0..new {
            elements.push(Self::decode(decoder)?);
        }
        Ok(())
    }

    /// Reads past `count` elements.
    fn skip_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        (0..count).try_for_each(|_| Self::skip(decoder))
    }

    /// Appends the elements of an array, which is flat whatever its dimensions.
    fn encode_array(elements: &[Self], encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        Self::encode_elements(elements, encoder)
    }

    /// Reads the elements of an array.
    fn decode_array<const N: usize>(decoder: &mut Decoder<'_>) -> Result<[Self; N], Malformed> {
        collection::array_of(|| Self::decode(decoder))
    }

    /// Reads past the elements of an array.
    fn skip_array(count: usize, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        Self::skip_elements(count, decoder)
    }

    /// The type as other participants are told it; `None` when it cannot be told. See
    /// [`crate::types::TypeDescription`].
    fn describe(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        let _ = types;
        None
    }

    /// What content filters find in values of this type.
    fn fields() -> Fields {
        Fields::Opaque
    }

    /// The value `path` leads to, each step the place of a member; made by [`FieldPath::find`].
    fn field(&self, path: &[u16]) -> Option<FieldValue<'_>> {
        let _ = path;
        None
    }

    /// Gives what `path` leads to a value; false when it is of another kind or out of range. See
    /// [`FieldPath::set`].
    fn set_field(&mut self, path: &[u16], value: FieldValue<'_>) -> bool {
        let _ = (path, value);
        false
    }
}

/// A member of a structure or union: any [`Cdr`] value, or an `Option` of one, which is optional.
pub trait Member: Sized {
    /// The least octets on the wire.
    const BYTES_MIN: usize;
    /// The least octets on the wire in XCDR1.
    const BYTES_MIN_XCDR1: usize;
    /// The most octets in the form for key hashes.
    const EXTENT: Extent;
    /// Where memory layout and wire layout agree.
    const PLAIN: Plain;
    /// Whether the member may be absent.
    const OPTIONAL: bool;

    /// Appends the member of a final or appendable aggregate.
    fn encode_member(
        &self,
        encoder: &mut Encoder<'_>,
        id: u32,
        must_understand: bool,
    ) -> Result<(), EncodeError>;

    /// Reads the member of a final or appendable aggregate.
    fn decode_member(decoder: &mut Decoder<'_>, id: u32) -> Result<Self, Malformed>;

    /// As [`Self::decode_member`], over this one, as [`Cdr::decode_over`].
    #[inline]
    fn decode_member_over(&mut self, decoder: &mut Decoder<'_>, id: u32) -> Result<(), Malformed> {
        *self = Self::decode_member(decoder, id)?;
        Ok(())
    }

    /// Reads past the member of a final or appendable aggregate.
    fn skip_member(decoder: &mut Decoder<'_>, id: u32) -> Result<(), Malformed>;

    /// Appends the member of a mutable aggregate, with its header.
    fn encode_mutable(
        &self,
        encoder: &mut Encoder<'_>,
        id: u32,
        must_understand: bool,
    ) -> Result<(), EncodeError>;

    /// Reads the value of a member of a mutable aggregate, whose header was read.
    fn decode_mutable(decoder: &mut Decoder<'_>) -> Result<Self, Malformed>;

    /// The value of a member that is not there.
    fn initial_member() -> Self;

    /// As [`Cdr::describe`].
    fn describe_member(types: &mut TypeBuilder) -> Option<TypeIdentifiers>;

    /// As [`Cdr::fields`].
    fn member_fields() -> Fields;

    /// As [`Cdr::field`].
    fn member_field(&self, path: &[u16]) -> Option<FieldValue<'_>>;

    /// As [`Cdr::set_field`].
    fn set_member_field(&mut self, path: &[u16], value: FieldValue<'_>) -> bool;
}

/// A string or collection with a bound.
pub trait Bounded<const BOUND: usize> {
    /// The most octets in the form for key hashes, given the bound.
    const EXTENT: Extent;

    /// What the bound limits: octets of a string, 16-bit units of a wide string, elements of a collection.
    fn length(&self) -> usize;

    /// Cuts off what is beyond the bound; of a string, a character that would be cut, too.
    fn truncate(&mut self);
}

/// A type a topic may have.
pub trait DdsType: Cdr + Send + 'static {
    /// The name under which the type is registered, e.g. `ShapeType`.
    const TYPE_NAME: &'static str;
    /// How the type may evolve.
    const EXTENSIBILITY: Extensibility;
    /// Whether it has key members.
    const KEYED: bool;
    /// Largest size of the key holder in octets, XCDR2; `None` when unbounded. Up to 16 octets are the key
    /// hash as they are, more are hashed with MD5 (XTypes 1.3 §7.6.8 step 5). 0 for a type without key.
    const KEY_BYTES_MAX: Option<usize> = if Self::KEYED { Self::EXTENT.bytes_max() } else { Some(0) };
    /// Where the key is in every sample, if that is the same place.
    const KEY_PLACE: KeyPlace = KeyPlace::NONE;
    /// The type with members that a writer only borrows ([`OctetSeq`]); of one without a lifetime, the type
    /// itself.
    type Borrowed<'a>: Cdr;
}

/// Appends a sample as a payload: encapsulation header, value, padding to a multiple of 4 octets.
///
/// Allocates only when the capacity of `buffer` does not suffice. On error `buffer` is as it was.
pub fn to_payload<T: DdsType>(
    sample: &T,
    version: XcdrVersion,
    endianness: Endianness,
    buffer: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    to_payload_as::<T, T>(sample, version, endianness, buffer)
}

/// As [`to_payload`], of a `T` or of what it is with borrowed members, [`DdsType::Borrowed`].
pub fn to_payload_as<T: DdsType, S: Cdr>(
    sample: &S,
    version: XcdrVersion,
    endianness: Endianness,
    buffer: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let encapsulation = Encapsulation::for_type(version, T::EXTENSIBILITY, endianness);
    append_encoded(encapsulation, buffer, |encoder| sample.encode(encoder))
}

/// As [`to_payload`], of whatever `encode` appends.
///
/// # Errors
/// Those of `encode`.
pub fn append_encoded(
    encapsulation: Encapsulation,
    buffer: &mut Vec<u8>,
    encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    append_payload(encapsulation, encode::Form::Sample, buffer, encode)
}

/// Reads a sample from a payload, whatever its encoding version and byte order.
pub fn from_payload<T: DdsType>(payload: &[u8]) -> Result<T, Malformed> {
    T::decode(&mut open_payload::<T>(payload, decode::Form::Sample)?)
}

/// As [`from_payload`]; an [`OctetSeq`] of many octets keeps the memory of the payload instead of copying it.
pub fn from_shared_payload<T: DdsType>(payload: &Payload) -> Result<T, Malformed> {
    T::decode(&mut open_payload::<T>(payload.as_slice(), decode::Form::Sample)?.sharing(payload))
}

/// As [`from_shared_payload`], over a value that is there: what memory it has is used again where that is
/// possible. After an error it is some value.
///
/// # Errors
/// Those of [`from_payload`].
#[inline]
pub fn from_shared_payload_over<T: DdsType>(payload: &Payload, value: &mut T) -> Result<(), Malformed> {
    value.decode_over(&mut open_payload::<T>(payload.as_slice(), decode::Form::Sample)?.sharing(payload))
}

/// As [`to_payload_as`], into a fixed place; the octets used.
///
/// # Errors
/// [`EncodeError::BufferFull`] when the place is too small; those of [`to_payload`].
#[inline]
pub fn to_fixed_payload_as<T: DdsType, S: Cdr>(
    sample: &S,
    version: XcdrVersion,
    endianness: Endianness,
    place: &mut [u8],
) -> Result<usize, EncodeError> {
    let encapsulation = Encapsulation::for_type(version, T::EXTENSIBILITY, endianness);
    let mut encoder = Encoder::in_place(place, version, endianness);
    put_payload(encapsulation, &mut encoder, |encoder| sample.encode(encoder))?;
    Ok(encoder.position())
}

/// As [`to_payload_as`], into an empty buffer, without the octets of a sequence that the sample has: how many
/// are before these. `None`: the sample does not have that sequence.
///
/// # Errors
/// Those of [`to_payload`].
pub fn to_payload_around<T: DdsType, S: Cdr>(
    sample: &S,
    version: XcdrVersion,
    endianness: Endianness,
    buffer: &mut Vec<u8>,
    sequence: &[u8],
) -> Result<Option<usize>, EncodeError> {
    let encapsulation = Encapsulation::for_type(version, T::EXTENSIBILITY, endianness);
    buffer.clear();
    let mut encoder = Encoder::around(buffer, sequence, version, endianness);
    put_payload(encapsulation, &mut encoder, |encoder| sample.encode(encoder))?;
    Ok(encoder.left_out())
}

/// Octets of the payload of a `T` whose memory is its wire form in that version; `None` of other types.
#[must_use]
pub const fn plain_payload_bytes<T: DdsType>(version: XcdrVersion) -> Option<usize> {
    match T::PLAIN.layout(version) {
        Some(layout) if layout.bytes == size_of::<T>() => {
            Some(Encapsulation::HEADER_BYTES + layout.bytes.next_multiple_of(4))
        }
        _ => None,
    }
}

/// The value in a payload of such a type, where that is aligned; in the byte order of this machine.
#[must_use]
pub fn plain_in_payload<T: DdsType>(payload: &[u8]) -> Option<&T> {
    let (encapsulation, body) = Encapsulation::parse(payload).ok()?;
    let is_plain = encapsulation.suits(T::EXTENSIBILITY)
        && encapsulation.endianness == Endianness::NATIVE
        && plain_payload_bytes::<T>(encapsulation.version).is_some();
    T::plain_ref(body.get(..size_of::<T>()).filter(|_| is_plain)?)
}

/// Makes a payload of octets of which those behind the encapsulation header are such a value, and are
/// aligned: the value is what is there.
#[must_use]
pub fn plain_payload_over<T: DdsType>(payload: &mut [u8], version: XcdrVersion) -> Option<&mut T> {
    let bytes = plain_payload_bytes::<T>(version).filter(|bytes| *bytes == payload.len())?;
    let (header, body) = payload.split_first_chunk_mut::<{ Encapsulation::HEADER_BYTES }>()?;
    let (value, padding) = body.split_at_mut_checked(size_of::<T>())?;
    let [high, low] =
        Encapsulation::for_type(version, T::EXTENSIBILITY, Endianness::NATIVE).id().to_be_bytes();
    *header = [high, low, 0, (bytes - Encapsulation::HEADER_BYTES - size_of::<T>()) as u8];
    padding.fill(0);
    T::plain_mut(value)
}

fn append_payload(
    encapsulation: Encapsulation,
    form: encode::Form,
    buffer: &mut Vec<u8>,
    encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = buffer.len();
    let mut encoder = Encoder::new(buffer, encapsulation.version, encapsulation.endianness);
    encoder.form = form;
    let result = put_payload(encapsulation, &mut encoder, encode);
    if result.is_err() {
        buffer.truncate(start);
    }
    result
}

/// The one way to write a payload.
#[inline(always)]
fn put_payload(
    encapsulation: Encapsulation,
    encoder: &mut Encoder<'_>,
    encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = encoder.position();
    let [id_high, id_low] = encapsulation.id().to_be_bytes();
    encoder.put(&[id_high, id_low, 0, 0])?;
    encoder.origin = encoder.position();
    encode(encoder)?;
    let padding = (encoder.position() - start).wrapping_neg() & 3;
    if padding > 0 {
        encoder.put([0; 3].get(..padding).unwrap_or_default())?;
        encoder.overwrite(start + 3, &[padding as u8]);
    }
    Ok(())
}

/// The one way to open a payload for reading.
fn open_payload<T: DdsType>(payload: &[u8], form: decode::Form) -> Result<Decoder<'_>, Malformed> {
    open_payload_of(T::EXTENSIBILITY, payload, form)
}

/// A decoder of the body of a payload of a type with this extensibility.
///
/// # Errors
/// [`Malformed::UnsuitableEncapsulation`] and others, where the encapsulation header is none of such a type.
pub fn open_payload_of(
    extensibility: Extensibility,
    payload: &[u8],
    form: decode::Form,
) -> Result<Decoder<'_>, Malformed> {
    let (encapsulation, body) = Encapsulation::parse(payload)?;
    if !encapsulation.suits(extensibility) {
        return Err(Malformed::UnsuitableEncapsulation);
    }
    Ok(Decoder::with_form(body, encapsulation.version, encapsulation.endianness, form))
}

/// Deepest nesting of structures and unions, both ways.
pub const DEPTH_MAX: usize = 64;
/// The bits of the encapsulation options that count the octets of padding.
const PADDING_BITS: u8 = 3;
