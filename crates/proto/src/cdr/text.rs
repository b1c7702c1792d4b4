//! Strings and wide characters (XTypes 1.3 §7.4.1.1.2).

use super::decode::Decoder;
use super::encode::{EncodeError, Encoder};
use super::plain::leaf;
use super::{Bounded, Cdr, ElementKind, Extent, FieldKind, FieldValue, Fields};
use crate::malformed::Malformed;
use crate::types::{Primitive, TypeBuilder, TypeIdentifier, TypeIdentifiers};

impl Cdr for String {
    leaf!(Text, Self::as_str, |value: &str| Some(value.to_owned()));

    const BYTES_MIN: usize = 4;
    const EXTENT: Extent = Extent::UNBOUNDED;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        if self.as_bytes().contains(&0) {
            return Err(EncodeError::NulInString);
        }
        encoder.put_length(self.len().saturating_add(1))?;
        encoder.put(self.as_bytes())?;
        encoder.put(&[0])
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        take_text(decoder)
    }

    fn decode_over(&mut self, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        let octets = take_text_octets(decoder)?;
        let mut own = std::mem::take(self).into_bytes();
        own.clear();
        own.extend_from_slice(octets);
        *self = checked(own)?;
        Ok(())
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        let length = decoder.take_length()?;
        decoder.take(length).map(drop)
    }

    fn initial() -> Self {
        Self::new()
    }

    fn describe(_: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        Some(TypeIdentifiers::same(TypeIdentifier::String { wide: false, bound: 0 }))
    }
}

/// A string. It is copied before it is checked: its octets may be in memory of another process, which may
/// change them meanwhile, and nobody could look at a text that is none.
pub(crate) fn take_text(decoder: &mut Decoder<'_>) -> Result<String, Malformed> {
    checked(take_text_octets(decoder)?.to_vec())
}

/// The octets of a string, not checked.
fn take_text_octets<'a>(decoder: &mut Decoder<'a>) -> Result<&'a [u8], Malformed> {
    let length = decoder.take_length()?;
    match decoder.take(length)? {
        // Some writers send an empty string without its NUL.
        [] => Ok(&[]),
        [text @ .., 0] => Ok(text),
        _ => Err(Malformed::InvalidString),
    }
}

/// The text that these octets, which nobody else can change, are.
fn checked(octets: Vec<u8>) -> Result<String, Malformed> {
    if octets.contains(&0) {
        return Err(Malformed::InvalidString);
    }
    String::from_utf8(octets).map_err(|_| Malformed::InvalidString)
}

impl<const BOUND: usize> Bounded<BOUND> for String {
    const EXTENT: Extent = Extent::counted_octets(BOUND.saturating_add(1));

    fn length(&self) -> usize {
        self.len()
    }

    fn truncate(&mut self) {
        self.truncate(self.floor_char_boundary(BOUND));
    }
}

/// The DDS type wstring: UTF-16 on the wire, counted in octets, without NUL and byte order mark.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WString(pub String);

impl Cdr for WString {
    const BYTES_MIN: usize = 4;
    const EXTENT: Extent = Extent::UNBOUNDED;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.put_length(self.0.encode_utf16().count().saturating_mul(2))?;
        self.0.encode_utf16().try_for_each(|unit| encoder.put_u16(unit))
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let length = decoder.take_length()?;
        let endianness = decoder.endianness();
        let (units, odd) = decoder.take(length)?.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(Malformed::InvalidString);
        }
        // UTF-8 takes at most three octets for a unit of two.
        decoder.book_memory(units.len(), 3)?;
        char::decode_utf16(units.iter().map(|unit| endianness.u16_from(*unit)))
            .collect::<Result<String, _>>()
            .map(Self)
            .map_err(|_| Malformed::InvalidString)
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        String::skip(decoder)
    }

    fn initial() -> Self {
        Self::default()
    }

    fn describe(_: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        Some(TypeIdentifiers::same(TypeIdentifier::String { wide: true, bound: 0 }))
    }
}

impl<const BOUND: usize> Bounded<BOUND> for WString {
    const EXTENT: Extent = Extent::counted_octets(BOUND.saturating_mul(2));

    fn length(&self) -> usize {
        self.0.encode_utf16().count()
    }

    fn truncate(&mut self) {
        let mut units = 0;
        let fits = |letter: &char| {
            units += letter.len_utf16();
            units <= BOUND
        };
        let length = self.0.chars().take_while(fits).map(char::len_utf8).sum();
        self.0.truncate(length);
    }
}

/// The DDS type wchar: one 16-bit unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WChar(pub u16);

impl Cdr for WChar {
    const ELEMENT: ElementKind = ElementKind::Primitive;
    const FIXED_BYTES: Option<usize> = Some(2);
    const BYTES_MIN: usize = 2;
    const EXTENT: Extent = Extent::primitive(2);

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        self.0.encode(encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        u16::decode(decoder).map(Self)
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        u16::skip(decoder)
    }

    fn initial() -> Self {
        Self(0)
    }

    fn describe(_: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        Some(TypeIdentifiers::same(TypeIdentifier::Primitive(Primitive::Char16)))
    }
}
