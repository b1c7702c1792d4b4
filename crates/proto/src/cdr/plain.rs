//! Primitive values, and the fact where memory layout equals wire layout.
//!
//! Vectors and arrays of primitives are copied in one go: octets by `memcpy`, wider ones through a small
//! block of fixed size, which compiles to vector copies and needs no `unsafe`. Structures of numbers are
//! copied whole where [`Plain`] says that their memory is their wire form.

use super::decode::Decoder;
use super::encode::{EncodeError, Encoder};
use super::{Cdr, ElementKind, Endianness, Extent, FieldKind, FieldValue, Fields, XcdrVersion, collection};
use crate::copying;
use crate::malformed::Malformed;
use crate::types::{Primitive, TypeBuilder, TypeIdentifier, TypeIdentifiers};

/// For each encoding version, the layout of a type whose memory in native byte order is its wire form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// In version 1.
    pub xcdr1: Option<PlainLayout>,
    /// In version 2.
    pub xcdr2: Option<PlainLayout>,
}

/// Size and alignment on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainLayout {
    /// Octets, padding excluded: a plain type has none.
    pub bytes: usize,
    /// Alignment in octets.
    pub alignment: usize,
}

impl Plain {
    /// Never the same.
    pub const NEVER: Self = Self { xcdr1: None, xcdr2: None };

    /// An integer or floating-point number of `bytes` octets.
    pub const fn number(bytes: usize) -> Self {
        Self {
            xcdr1: Some(PlainLayout { bytes, alignment: bytes }),
            xcdr2: Some(PlainLayout { bytes, alignment: if bytes < 4 { bytes } else { 4 } }),
        }
    }

    /// An array of `count` of this.
    pub const fn array(self, count: usize) -> Self {
        Self { xcdr1: array_layout(self.xcdr1, count), xcdr2: array_layout(self.xcdr2, count) }
    }

    /// A structure of `bytes` octets in memory with members at these offsets, in declaration order.
    ///
    /// Only for types with a defined layout (`repr(C)`): the offsets are compared with those of the wire.
    pub const fn structure(
        extensibility: super::Extensibility,
        bytes: usize,
        members: &[(usize, Self)],
    ) -> Self {
        let (xcdr1, xcdr2) = match extensibility {
            super::Extensibility::Final => (true, true),
            super::Extensibility::Appendable => (true, false),
            super::Extensibility::Mutable => (false, false),
        };
        Self {
            xcdr1: if xcdr1 { structure_layout(XcdrVersion::Xcdr1, bytes, members) } else { None },
            xcdr2: if xcdr2 { structure_layout(XcdrVersion::Xcdr2, bytes, members) } else { None },
        }
    }

    /// Whether there is a layout in any version.
    #[must_use]
    pub const fn is_of_a_version(self) -> bool {
        self.xcdr1.is_some() || self.xcdr2.is_some()
    }

    /// The layout in `version`.
    pub const fn layout(self, version: XcdrVersion) -> Option<PlainLayout> {
        match version {
            XcdrVersion::Xcdr1 => self.xcdr1,
            XcdrVersion::Xcdr2 => self.xcdr2,
        }
    }
}

const fn array_layout(element: Option<PlainLayout>, count: usize) -> Option<PlainLayout> {
    match element {
        // A stride that is no multiple of the alignment would need padding between elements.
        Some(layout) if layout.bytes.is_multiple_of(layout.alignment) => {
            Some(PlainLayout { bytes: layout.bytes * count, alignment: layout.alignment })
        }
        _ => None,
    }
}

const fn structure_layout(
    version: XcdrVersion,
    bytes: usize,
    members: &[(usize, Plain)],
) -> Option<PlainLayout> {
    let mut wire = PlainLayout { bytes: 0, alignment: 1 };
    let mut rest = members;
    while let Some((&(offset, plain), others)) = rest.split_first() {
        rest = others;
        let Some(member) = plain.layout(version) else {
            return None;
        };
        if offset != wire.bytes || !wire.bytes.is_multiple_of(member.alignment) {
            return None;
        }
        wire.bytes += member.bytes;
        if member.alignment > wire.alignment {
            wire.alignment = member.alignment;
        }
    }
    if wire.bytes == bytes && !members.is_empty() { Some(wire) } else { None }
}

/// A value that content filters compare.
macro_rules! leaf {
    ($kind:ident, $value:expr, $from:expr) => {
        fn fields() -> Fields {
            Fields::Value(FieldKind::$kind)
        }

        fn field(&self, path: &[u16]) -> Option<FieldValue<'_>> {
            path.is_empty().then(|| FieldValue::$kind(($value)(self)))
        }

        fn set_field(&mut self, path: &[u16], value: FieldValue<'_>) -> bool {
            let FieldValue::$kind(value) = value else { return false };
            let Some(value) = ($from)(value).filter(|_| path.is_empty()) else { return false };
            *self = value;
            true
        }
    };
}
pub(super) use leaf;

macro_rules! number {
    ($kind:ident $holder:ty, $from:expr; $($number:ty: $primitive:ident),*) => { $(
        impl Cdr for $number {
            leaf!($kind, |value: &Self| <$holder>::from(*value), $from);

            const ELEMENT: ElementKind = ElementKind::Primitive;
            const FIXED_BYTES: Option<usize> = Some(size_of::<Self>());
            const BYTES_MIN: usize = size_of::<Self>();
            const EXTENT: Extent = Extent::primitive(size_of::<Self>());
            const PLAIN: Plain = Plain::number(size_of::<Self>());

            // A call would cost more, and hide from the compiler which version, byte order and place it is.
            #[inline(always)]
            fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
                encoder.align(size_of::<Self>())?;
                match encoder.endianness() {
                    Endianness::Little => encoder.put(&self.to_le_bytes()),
                    Endianness::Big => encoder.put(&self.to_be_bytes()),
                }
            }

            #[inline(always)]
            fn short_key(&self) -> Option<u64> {
                Some(first_octets(self.to_be_bytes()))
            }

            #[inline]
            fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
                decoder.align(size_of::<Self>())?;
                let octets = decoder.take_array()?;
                Ok(match decoder.endianness() {
                    Endianness::Little => Self::from_le_bytes(octets),
                    Endianness::Big => Self::from_be_bytes(octets),
                })
            }

            #[inline]
            fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
                Self::skip_elements(1, decoder)
            }

            #[inline]
            fn initial() -> Self {
                Self::default()
            }

            fn describe(_: &mut TypeBuilder) -> Option<TypeIdentifiers> {
                Some(TypeIdentifiers::same(TypeIdentifier::Primitive(Primitive::$primitive)))
            }

            #[inline]
            fn encode_elements(elements: &[Self], encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
                if elements.is_empty() {
                    return Ok(());
                }
                encoder.align(size_of::<Self>())?;
                match encoder.endianness() {
                    Endianness::Little => put_blocks(elements, Self::to_le_bytes, encoder),
                    Endianness::Big => put_blocks(elements, Self::to_be_bytes, encoder),
                }
            }

            fn decode_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<Vec<Self>, Malformed> {
                let octets = take_elements::<Self>(count, decoder)?;
                let (elements, _) = octets.as_chunks::<{ size_of::<Self>() }>();
                Ok(match decoder.endianness() {
                    Endianness::Little => elements.iter().map(|element| Self::from_le_bytes(*element)).collect(),
                    Endianness::Big => elements.iter().map(|element| Self::from_be_bytes(*element)).collect(),
                })
            }

            fn decode_elements_over(
                elements: &mut Vec<Self>,
                count: usize,
                decoder: &mut Decoder<'_>,
            ) -> Result<(), Malformed> {
                let octets = take_elements::<Self>(count, decoder)?;
                let (new, _) = octets.as_chunks::<{ size_of::<Self>() }>();
                elements.clear();
                match decoder.endianness() {
                    Endianness::Little => elements.extend(new.iter().map(|element| Self::from_le_bytes(*element))),
                    Endianness::Big => elements.extend(new.iter().map(|element| Self::from_be_bytes(*element))),
                }
                Ok(())
            }

            fn skip_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
                take_elements::<Self>(count, decoder).map(drop)
            }

            fn decode_array<const N: usize>(decoder: &mut Decoder<'_>) -> Result<[Self; N], Malformed> {
                let endianness = decoder.endianness();
                let (elements, _) = take_elements::<Self>(N, decoder)?.as_chunks::<{ size_of::<Self>() }>();
                let mut values = [Self::default(); N];
                for (value, element) in values.iter_mut().zip(elements) {
                    *value = match endianness {
                        Endianness::Little => Self::from_le_bytes(*element),
                        Endianness::Big => Self::from_be_bytes(*element),
                    };
                }
                Ok(values)
            }
        }
    )* };
}

number!(Integer i128, |value: i128| Self::try_from(value).ok();
    i8: Int8, u16: Uint16, i16: Int16, u32: Uint32, i32: Int32, u64: Uint64, i64: Int64);
number!(Float f64, |value: f64| Some(value as Self); f32: Float32, f64: Float64);

/// A number whose first octets are these.
#[inline(always)]
fn first_octets<const SIZE: usize>(octets: [u8; SIZE]) -> u64 {
    octets.into_iter().fold(0, |number, octet| number << 8 | u64::from(octet))
        << (u64::BITS as usize - 8 * SIZE)
}

/// Appends numbers through a block on the stack. Of arrays, whose length is known where they are encoded, few
/// instructions are left when it is part of that.
#[inline]
fn put_blocks<T: Copy, const SIZE: usize>(
    elements: &[T],
    octets: impl Fn(T) -> [u8; SIZE],
    encoder: &mut Encoder<'_>,
) -> Result<(), EncodeError> {
    let mut block = [[0; SIZE]; BLOCK_ELEMENTS];
    elements.chunks(BLOCK_ELEMENTS).try_for_each(|chunk| {
        for (place, element) in block.iter_mut().zip(chunk) {
            *place = octets(*element);
        }
        encoder.put(block.as_flattened().get(..chunk.len() * SIZE).unwrap_or(&[]))
    })
}

/// The octets of `count` numbers.
fn take_elements<'a, T>(count: usize, decoder: &mut Decoder<'a>) -> Result<&'a [u8], Malformed> {
    if count == 0 {
        return Ok(&[]);
    }
    decoder.align(size_of::<T>())?;
    decoder.take(count.saturating_mul(size_of::<T>()))
}

impl Cdr for u8 {
    leaf!(Integer, |value: &Self| i128::from(*value), |value: i128| Self::try_from(value).ok());

    const ELEMENT: ElementKind = ElementKind::Primitive;
    const FIXED_BYTES: Option<usize> = Some(1);
    const BYTES_MIN: usize = 1;
    const EXTENT: Extent = Extent::primitive(1);
    const PLAIN: Plain = Plain::number(1);

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.put(&[*self])
    }

    #[inline(always)]
    fn short_key(&self) -> Option<u64> {
        Some(first_octets([*self]))
    }

    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let [octet] = decoder.take_array()?;
        Ok(octet)
    }

    #[inline]
    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        decoder.take(1).map(drop)
    }

    #[inline]
    fn initial() -> Self {
        0
    }

    fn describe(_: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        Some(TypeIdentifiers::same(TypeIdentifier::Primitive(Primitive::Uint8)))
    }

    fn encode_elements(elements: &[Self], encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.put(elements)
    }

    fn decode_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<Vec<Self>, Malformed> {
        decoder.take(count).map(copying::copied)
    }

    fn decode_elements_over(
        elements: &mut Vec<Self>,
        count: usize,
        decoder: &mut Decoder<'_>,
    ) -> Result<(), Malformed> {
        let octets = decoder.take(count)?;
        elements.clear();
        copying::append(elements, octets);
        Ok(())
    }

    fn skip_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        decoder.take(count).map(drop)
    }

    fn decode_array<const N: usize>(decoder: &mut Decoder<'_>) -> Result<[Self; N], Malformed> {
        decoder.take_array()
    }
}

impl Cdr for bool {
    leaf!(Boolean, |value: &Self| *value, Some);

    const ELEMENT: ElementKind = ElementKind::Primitive;
    const FIXED_BYTES: Option<usize> = Some(1);
    const BYTES_MIN: usize = 1;
    const EXTENT: Extent = Extent::primitive(1);

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.put(&[u8::from(*self)])
    }

    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        match u8::decode(decoder)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::InvalidBoolean),
        }
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        u8::skip(decoder)
    }

    fn initial() -> Self {
        false
    }

    fn describe(_: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        Some(TypeIdentifiers::same(TypeIdentifier::Primitive(Primitive::Boolean)))
    }

    fn skip_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        u8::skip_elements(count, decoder)
    }
}

/// The DDS type char: one octet, here U+0000 to U+00FF (ISO 8859-1, XTypes 1.3 §7.2.2.2.1.2).
impl Cdr for char {
    leaf!(Character, |value: &Self| *value, Some);

    const ELEMENT: ElementKind = ElementKind::Primitive;
    const FIXED_BYTES: Option<usize> = Some(1);
    const BYTES_MIN: usize = 1;
    const EXTENT: Extent = Extent::primitive(1);

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        let octet = u8::try_from(*self).map_err(|_| EncodeError::CharOutOfRange(u32::from(*self)))?;
        encoder.put(&[octet])
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        u8::decode(decoder).map(Self::from)
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        u8::skip(decoder)
    }

    fn initial() -> Self {
        '\0'
    }

    fn describe(_: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        Some(TypeIdentifiers::same(TypeIdentifier::Primitive(Primitive::Char8)))
    }

    fn skip_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        u8::skip_elements(count, decoder)
    }

    fn decode_array<const N: usize>(decoder: &mut Decoder<'_>) -> Result<[Self; N], Malformed> {
        collection::array_of(|| Self::decode(decoder))
    }
}

/// Elements per block of a bulk copy. Measured: 64 run at the speed of `memcpy`; 512 of 8 octets are 4 KiB,
/// where block and destination alias in the store buffer, and run ten times slower.
const BLOCK_ELEMENTS: usize = 64;
