//! Sequences, arrays, boxes, and optional members (XTypes 1.3 §7.4.3.5.3 rules 8 to 20).

use super::decode::{Decoder, OpenObject};
use super::encode::{EncodeError, Encoder};
use super::{Bounded, Cdr, ElementKind, Extent, FieldValue, Fields, Member, Plain, XcdrVersion};
use crate::malformed::Malformed;
use crate::tuning::memory::STACK_VALUE_BYTES;
use crate::types::{TypeBuilder, TypeIdentifiers};

impl<T: Cdr> Cdr for Vec<T> {
    const BYTES_MIN: usize = 4;
    const EXTENT: Extent = Extent::UNBOUNDED;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        let object = encoder.begin_collection(is_primitive::<T>())?;
        encoder.put_length(self.len())?;
        T::encode_elements(self, encoder)?;
        encoder.end_collection(object)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let object = begin_sequence::<T>(decoder)?;
        let count = decoder.take_count(T::BYTES_MIN)?;
        decoder.book_memory(count, size_of::<T>())?;
        let elements = apart_if_large::<T, _>(|| T::decode_elements(count, decoder))?;
        decoder.end_collection(object);
        Ok(elements)
    }

    fn decode_over(&mut self, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        let object = begin_sequence::<T>(decoder)?;
        let count = decoder.take_count(T::BYTES_MIN)?;
        decoder.book_memory(count, size_of::<T>())?;
        apart_if_large::<T, _>(|| T::decode_elements_over(self, count, decoder))?;
        decoder.end_collection(object);
        Ok(())
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        let object = begin_sequence::<T>(decoder)?;
        if !decoder.jump(&object) {
            let count = decoder.take_count(T::BYTES_MIN)?;
            T::skip_elements(count, decoder)?;
        }
        decoder.end_collection(object);
        Ok(())
    }

    fn initial() -> Self {
        Self::new()
    }

    fn describe(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        types.boxes::<T>();
        T::describe(types).map(TypeIdentifiers::sequence)
    }
}

impl<T: Cdr, const BOUND: usize> Bounded<BOUND> for Vec<T> {
    const EXTENT: Extent = counted_extent(T::EXTENT, is_primitive::<T>(), BOUND);

    fn length(&self) -> usize {
        self.len()
    }

    fn truncate(&mut self) {
        self.truncate(BOUND);
    }
}

impl<T: Cdr, const N: usize> Cdr for [T; N] {
    const ELEMENT: ElementKind = match T::ELEMENT {
        ElementKind::Primitive | ElementKind::PrimitiveArray => ElementKind::PrimitiveArray,
        ElementKind::CompositeArray | ElementKind::Composite => ElementKind::CompositeArray,
    };
    const BYTES_MIN: usize = T::BYTES_MIN * N;
    const EXTENT: Extent = match Self::ELEMENT {
        ElementKind::PrimitiveArray => T::EXTENT.times(N),
        _ => Extent::primitive(4).then(T::EXTENT.times(N)),
    };
    const PLAIN: Plain = match Self::ELEMENT {
        ElementKind::PrimitiveArray => T::PLAIN.array(N),
        // Version 2 puts a DHEADER in front.
        _ => Plain { xcdr2: None, ..T::PLAIN.array(N) },
    };

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        let object = encoder.begin_collection(Self::ELEMENT == ElementKind::PrimitiveArray)?;
        T::encode_array(self, encoder)?;
        encoder.end_collection(object)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let object = begin_array::<T>(N, decoder)?;
        let array = T::decode_array(decoder)?;
        decoder.end_collection(object);
        Ok(array)
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        let object = begin_array::<T>(N, decoder)?;
        if !decoder.jump(&object) {
            T::skip_array(N, decoder)?;
        }
        decoder.end_collection(object);
        Ok(())
    }

    fn initial() -> Self {
        std::array::from_fn(|_| T::initial())
    }

    fn describe(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        T::describe(types).map(|element| element.array(N))
    }

    fn encode_array(elements: &[Self], encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        elements.iter().try_for_each(|row| T::encode_array(row, encoder))
    }

    fn decode_array<const ROWS: usize>(decoder: &mut Decoder<'_>) -> Result<[Self; ROWS], Malformed> {
        array_of(|| T::decode_array(decoder))
    }

    fn skip_array(count: usize, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        (0..count).try_for_each(|_| T::skip_array(N, decoder))
    }
}

/// An array filled by a fallible function, without a detour through the heap.
pub(super) fn array_of<T: Cdr, const N: usize>(
    mut decode: impl FnMut() -> Result<T, Malformed>,
) -> Result<[T; N], Malformed> {
    let mut failure = None;
    let array = std::array::from_fn(|_| {
        if failure.is_none() {
            match decode() {
                Ok(value) => return value,
                Err(malformed) => failure = Some(malformed),
            }
        }
        T::initial()
    });
    failure.map_or(Ok(array), Err)
}

impl<T: Cdr> Cdr for Box<T> {
    const ELEMENT: ElementKind = T::ELEMENT;
    const FIXED_BYTES: Option<usize> = T::FIXED_BYTES;
    const BYTES_MIN: usize = T::BYTES_MIN;
    /// A box is there for recursion, where looking for the largest size would never end.
    const EXTENT: Extent = Extent::UNBOUNDED;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        (**self).encode(encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        decoder.book_memory(1, size_of::<T>())?;
        apart_if_large::<T, _>(|| T::decode(decoder).map(Self::new))
    }

    fn decode_over(&mut self, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        decoder.book_memory(1, size_of::<T>())?;
        (**self).decode_over(decoder)
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        T::skip(decoder)
    }

    fn initial() -> Self {
        Self::new(T::initial())
    }

    fn describe(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        types.boxes::<T>();
        T::describe(types)
    }

    fn fields() -> Fields {
        T::fields()
    }

    fn field(&self, path: &[u16]) -> Option<FieldValue<'_>> {
        (**self).field(path)
    }

    fn set_field(&mut self, path: &[u16], value: FieldValue<'_>) -> bool {
        (**self).set_field(path, value)
    }
}

impl<T: Cdr> Member for T {
    const BYTES_MIN: usize = <T as Cdr>::BYTES_MIN;
    const BYTES_MIN_XCDR1: usize = <T as Cdr>::BYTES_MIN;
    const EXTENT: Extent = <T as Cdr>::EXTENT;
    const PLAIN: Plain = <T as Cdr>::PLAIN;
    const OPTIONAL: bool = false;

    #[inline]
    fn encode_member(&self, encoder: &mut Encoder<'_>, _: u32, _: bool) -> Result<(), EncodeError> {
        self.encode(encoder)
    }

    #[inline]
    fn decode_member(decoder: &mut Decoder<'_>, _: u32) -> Result<Self, Malformed> {
        Self::decode(decoder)
    }

    #[inline]
    fn decode_member_over(&mut self, decoder: &mut Decoder<'_>, _: u32) -> Result<(), Malformed> {
        self.decode_over(decoder)
    }

    #[inline]
    fn skip_member(decoder: &mut Decoder<'_>, _: u32) -> Result<(), Malformed> {
        Self::skip(decoder)
    }

    fn encode_mutable(
        &self,
        encoder: &mut Encoder<'_>,
        id: u32,
        must_understand: bool,
    ) -> Result<(), EncodeError> {
        let member = encoder.begin_member(id, must_understand, Self::FIXED_BYTES)?;
        self.encode(encoder)?;
        encoder.end_member(member)
    }

    fn decode_mutable(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Self::decode(decoder)
    }

    fn initial_member() -> Self {
        Self::initial()
    }

    fn describe_member(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        <Self as Cdr>::describe(types)
    }

    fn member_fields() -> Fields {
        <Self as Cdr>::fields()
    }

    fn member_field(&self, path: &[u16]) -> Option<FieldValue<'_>> {
        self.field(path)
    }

    fn set_member_field(&mut self, path: &[u16], value: FieldValue<'_>) -> bool {
        self.set_field(path, value)
    }
}

/// An optional member (XTypes 1.3 §7.4.3.5.2): a member header in XCDR1, a boolean in XCDR2, and in a
/// mutable aggregate simply not there.
impl<T: Cdr> Member for Option<T> {
    const BYTES_MIN: usize = 1;
    const BYTES_MIN_XCDR1: usize = 4;
    const EXTENT: Extent = Extent::UNBOUNDED;
    const PLAIN: Plain = Plain::NEVER;
    const OPTIONAL: bool = true;

    fn encode_member(
        &self,
        encoder: &mut Encoder<'_>,
        id: u32,
        must_understand: bool,
    ) -> Result<(), EncodeError> {
        match self {
            None => encoder.put_absent_member(id, must_understand),
            Some(value) if encoder.version() == XcdrVersion::Xcdr1 => {
                value.encode_mutable(encoder, id, must_understand)
            }
            Some(value) => {
                encoder.put(&[1])?;
                value.encode(encoder)
            }
        }
    }

    fn decode_member(decoder: &mut Decoder<'_>, id: u32) -> Result<Self, Malformed> {
        match decoder.version() {
            XcdrVersion::Xcdr1 => {
                let header = decoder.optional_member(id)?;
                let value = if header.is_empty(decoder) { None } else { Some(T::decode(decoder)?) };
                decoder.end_member(header);
                Ok(value)
            }
            XcdrVersion::Xcdr2 => bool::decode(decoder)?.then(|| T::decode(decoder)).transpose(),
        }
    }

    fn skip_member(decoder: &mut Decoder<'_>, id: u32) -> Result<(), Malformed> {
        match decoder.version() {
            XcdrVersion::Xcdr1 => {
                let header = decoder.optional_member(id)?;
                decoder.end_member(header);
                Ok(())
            }
            XcdrVersion::Xcdr2 => {
                if bool::decode(decoder)? {
                    T::skip(decoder)?;
                }
                Ok(())
            }
        }
    }

    fn encode_mutable(
        &self,
        encoder: &mut Encoder<'_>,
        id: u32,
        must_understand: bool,
    ) -> Result<(), EncodeError> {
        match self {
            // The key holder is final, whatever the type is (XTypes 1.3 §7.6.8 step 1).
            _ if encoder.by_member_id() => self.encode_member(encoder, id, must_understand),
            None => Ok(()),
            Some(value) => value.encode_mutable(encoder, id, must_understand),
        }
    }

    fn decode_mutable(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        T::decode(decoder).map(Some)
    }

    fn initial_member() -> Self {
        None
    }

    fn describe_member(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        T::describe(types)
    }

    fn member_fields() -> Fields {
        T::fields()
    }

    fn member_field(&self, path: &[u16]) -> Option<FieldValue<'_>> {
        self.as_ref()?.field(path)
    }

    fn set_member_field(&mut self, path: &[u16], value: FieldValue<'_>) -> bool {
        let mut member = self.take().unwrap_or_else(T::initial);
        let set = member.set_field(path, value);
        *self = Some(member);
        set
    }
}

impl<T: Bounded<BOUND>, const BOUND: usize> Bounded<BOUND> for Option<T> {
    const EXTENT: Extent = Extent::UNBOUNDED;

    fn length(&self) -> usize {
        self.as_ref().map_or(0, T::length)
    }

    fn truncate(&mut self) {
        if let Some(value) = self {
            value.truncate();
        }
    }
}

impl<T: Bounded<BOUND>, const BOUND: usize> Bounded<BOUND> for Box<T> {
    const EXTENT: Extent = Extent::UNBOUNDED;

    fn length(&self) -> usize {
        (**self).length()
    }

    fn truncate(&mut self) {
        (**self).truncate();
    }
}

/// A function takes the stack for all its values when it is called: who decides whether there is room for a
/// large one must not have it already. So large ones are in a function of their own.
#[inline(always)]
pub(super) fn apart_if_large<T, R>(decode: impl FnOnce() -> R) -> R {
    #[inline(never)]
    fn apart<R>(decode: impl FnOnce() -> R) -> R {
        decode()
    }
    if const { size_of::<T>() > STACK_VALUE_BYTES } { apart(decode) } else { decode() }
}

fn begin_sequence<T: Cdr>(decoder: &mut Decoder<'_>) -> Result<OpenObject, Malformed> {
    match T::FIXED_BYTES {
        Some(bytes) if !is_primitive::<T>() => decoder.begin_enumerations(bytes, None),
        _ => decoder.begin_collection(is_primitive::<T>()),
    }
}

fn begin_array<T: Cdr>(count: usize, decoder: &mut Decoder<'_>) -> Result<OpenObject, Malformed> {
    match (T::ELEMENT, T::FIXED_BYTES) {
        (ElementKind::Primitive | ElementKind::PrimitiveArray, _) => decoder.begin_collection(true),
        (ElementKind::Composite, Some(bytes)) => decoder.begin_enumerations(bytes, Some(count)),
        (ElementKind::Composite | ElementKind::CompositeArray, _) => decoder.begin_collection(false),
    }
}

pub(super) const fn is_primitive<T: Cdr>() -> bool {
    matches!(T::ELEMENT, ElementKind::Primitive)
}

pub(super) const fn counted_extent(element: Extent, primitive: bool, bound: usize) -> Extent {
    let counted = Extent::primitive(4).then(element.times(bound));
    if primitive { counted } else { Extent::primitive(4).then(counted) }
}
