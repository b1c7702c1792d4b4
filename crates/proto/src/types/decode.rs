//! TypeIdentifiers and TypeObjects from octets (XTypes 1.3 Annex B). Everything here faces a hostile peer:
//! the decoder bounds depth, counts and memory.

use super::{
    AnnotationValue, Bitfield, Bitflag, COMPONENT_TYPES_MAX, ComponentPlace, Definition, Literal,
    MemberAnnotations, MemberName, Primitive, StructureMember, TypeHash, TypeIdentifier, TypeObject,
    UnionMember, kind, type_flag,
};
use crate::cdr::{Cdr, Decoder, Endianness, Extensibility, XcdrVersion};
use crate::malformed::Malformed;

/// A decoder of what this module reads.
pub(super) fn decoder(octets: &[u8]) -> Decoder<'_> {
    Decoder::new(octets, XcdrVersion::Xcdr2, Endianness::Little)
}

/// Deepest collection of collections.
const COLLECTIONS_MAX: usize = 8;
/// Dimensions of an array at most.
const DIMENSIONS_MAX: usize = 16;
/// Octets of a name at most, its NUL included (`MEMBER_NAME_MAX_LENGTH`).
const NAME_BYTES_MAX: usize = 257;

impl TypeIdentifier {
    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Self::decode_within(decoder, COLLECTIONS_MAX)
    }

    fn decode_within(decoder: &mut Decoder<'_>, depth: usize) -> Result<Self, Malformed> {
        let Some(depth) = depth.checked_sub(1) else { return Err(Malformed::TooDeep) };
        let inner = |decoder: &mut Decoder<'_>| Self::decode_within(decoder, depth).map(Box::new);
        let [kind] = decoder.take_array()?;
        Ok(match kind {
            0 => Self::None,
            kind::STRING8_SMALL | kind::STRING16_SMALL => {
                Self::String { wide: kind == kind::STRING16_SMALL, bound: small(decoder)? }
            }
            kind::STRING8_LARGE | kind::STRING16_LARGE => {
                Self::String { wide: kind == kind::STRING16_LARGE, bound: decoder.take_u32()? }
            }
            kind::SEQUENCE_SMALL | kind::SEQUENCE_LARGE => {
                let element_flags = collection_header(decoder)?;
                let is_small = kind == kind::SEQUENCE_SMALL;
                let bound = if is_small { small(decoder)? } else { decoder.take_u32()? };
                Self::Sequence { bound, element_flags, element: inner(decoder)? }
            }
            kind::ARRAY_SMALL | kind::ARRAY_LARGE => {
                let element_flags = collection_header(decoder)?;
                let bounds = dimensions(decoder, kind == kind::ARRAY_SMALL)?;
                Self::Array { bounds, element_flags, element: inner(decoder)? }
            }
            kind::MAP_SMALL | kind::MAP_LARGE => {
                let element_flags = collection_header(decoder)?;
                let bound = if kind == kind::MAP_SMALL { small(decoder)? } else { decoder.take_u32()? };
                let element = inner(decoder)?;
                let key_flags = decoder.take_u16()?;
                Self::Map { bound, key_flags, key: inner(decoder)?, element_flags, element }
            }
            kind::MINIMAL | kind::COMPLETE => {
                let complete = kind == kind::COMPLETE;
                Self::Hash(TypeHash { complete, octets: decoder.take_array()?, component: None })
            }
            kind::COMPONENT => Self::Hash(component(decoder)?),
            _ => match Primitive::of_kind(kind) {
                Some(primitive) => Self::Primitive(primitive),
                None => {
                    // `ExtendedTypeDefn`, which is mutable.
                    let extension = decoder.begin_aggregate(Extensibility::Mutable)?;
                    decoder.jump(&extension);
                    decoder.end_aggregate(extension);
                    Self::Unknown(kind)
                }
            },
        })
    }
}

/// `StronglyConnectedComponentId`.
fn component(decoder: &mut Decoder<'_>) -> Result<TypeHash, Malformed> {
    delimited(decoder, |decoder| {
        let [relation] = decoder.take_array()?;
        let complete = match relation {
            kind::MINIMAL => false,
            kind::COMPLETE => true,
            _ => return Err(Malformed::InvalidDiscriminator),
        };
        let octets = decoder.take_array()?;
        let (length, index) = (decoder.take_u32()?, decoder.take_u32()?);
        if length == 0 || length > COMPONENT_TYPES_MAX || index > length {
            return Err(Malformed::LengthOutOfRange);
        }
        Ok(TypeHash { complete, octets, component: Some(ComponentPlace { length, index }) })
    })
}

fn small(decoder: &mut Decoder<'_>) -> Result<u32, Malformed> {
    let [bound] = decoder.take_array()?;
    Ok(u32::from(bound))
}

/// `PlainCollectionHeader`: the flags of the elements.
fn collection_header(decoder: &mut Decoder<'_>) -> Result<u16, Malformed> {
    decoder.take(1)?;
    decoder.take_u16()
}

fn dimensions(decoder: &mut Decoder<'_>, is_small: bool) -> Result<Vec<u32>, Malformed> {
    let count = decoder.take_count(1)?;
    if count > DIMENSIONS_MAX {
        return Err(Malformed::LengthOutOfRange);
    }
    (0..count).map(|_| if is_small { small(decoder) } else { decoder.take_u32() }).collect()
}

impl TypeObject {
    /// From a serialized TypeObject; also says whether it is a complete one.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn deserialize(octets: &[u8]) -> Result<(Self, bool), Malformed> {
        let decoder = &mut decoder(octets);
        let object = decoder.begin_aggregate(Extensibility::Appendable)?;
        let [relation] = decoder.take_array()?;
        let complete = match relation {
            kind::MINIMAL => false,
            kind::COMPLETE => true,
            _ => return Err(Malformed::InvalidDiscriminator),
        };
        let decoded = Self::decode_definition(decoder, complete)?;
        decoder.end_aggregate(object);
        Ok((decoded, complete))
    }

    fn decode_definition(decoder: &mut Decoder<'_>, complete: bool) -> Result<Self, Malformed> {
        let [kind] = decoder.take_array()?;
        let mut name = None;
        let definition = match kind {
            kind::STRUCTURE => {
                let flags = decoder.take_u16()?;
                let base = delimited(decoder, |decoder| {
                    let base = TypeIdentifier::decode(decoder)?;
                    name = type_detail(decoder, complete)?;
                    Ok(base)
                })?;
                let members = sequence(decoder, MEMBER_BYTES_MIN, |it| structure_member(it, complete))?;
                Definition::Structure {
                    extensibility: extensibility(flags),
                    hash_ids: flags & type_flag::AUTOID_HASH != 0,
                    nested: flags & type_flag::NESTED != 0,
                    base,
                    members,
                }
            }
            kind::UNION => {
                let flags = decoder.take_u16()?;
                name = delimited(decoder, |decoder| type_detail(decoder, complete))?;
                let (discriminator_flags, discriminator) = delimited(decoder, flags_and_type)?;
                let members = sequence(decoder, MEMBER_BYTES_MIN, |it| union_member(it, complete))?;
                Definition::Union {
                    extensibility: extensibility(flags),
                    hash_ids: flags & type_flag::AUTOID_HASH != 0,
                    nested: flags & type_flag::NESTED != 0,
                    discriminator,
                    discriminator_flags,
                    members,
                }
            }
            kind::ENUMERATION => {
                let extensibility = told_extensibility(decoder.take_u16()?);
                let bit_bound = bit_bound(decoder, complete, &mut name)?;
                let literals = sequence(decoder, MEMBER_BYTES_MIN, |it| literal(it, complete))?;
                Definition::Enumeration { extensibility, bit_bound, literals }
            }
            kind::BITMASK => bitmask(decoder, complete, &mut name)?,
            kind::BITSET => bitset(decoder, complete, &mut name)?,
            kind::ALIAS => {
                decoder.take_u16()?;
                name = delimited(decoder, |decoder| type_detail(decoder, complete))?;
                Definition::Alias(delimited(decoder, flags_and_type)?.1)
            }
            kind::SEQUENCE | kind::ARRAY | kind::MAP => collection(decoder, kind, complete)?,
            other => Definition::Other(other),
        };
        Ok(Self { name, definition })
    }
}

/// The least a member or literal takes: its DHEADER and more.
const MEMBER_BYTES_MIN: usize = 8;

const fn extensibility(flags: u16) -> Extensibility {
    if flags & type_flag::MUTABLE != 0 {
        Extensibility::Mutable
    } else if flags & type_flag::FINAL != 0 {
        Extensibility::Final
    } else {
        Extensibility::Appendable
    }
}

/// What the flags of a type say that need say nothing.
const fn told_extensibility(flags: u16) -> Option<Extensibility> {
    const TOLD: u16 = type_flag::FINAL | type_flag::APPENDABLE | type_flag::MUTABLE;
    if flags & TOLD == 0 { None } else { Some(extensibility(flags)) }
}

/// `CompleteTypeDetail` or nothing.
fn type_detail(decoder: &mut Decoder<'_>, complete: bool) -> Result<Option<String>, Malformed> {
    if !complete {
        return Ok(None);
    }
    // Verbatim text, then annotations of the application.
    skip_optional(decoder)?;
    skip_optional(decoder)?;
    name(decoder).map(Some)
}

/// Reads past an optional member that has a DHEADER.
fn skip_optional(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
    match decoder.take_array()? {
        [0] => Ok(()),
        [1] => {
            let length = decoder.take_length()?;
            decoder.take(length).map(drop)
        }
        _ => Err(Malformed::InvalidBoolean),
    }
}

fn name(decoder: &mut Decoder<'_>) -> Result<String, Malformed> {
    let name = String::decode(decoder)?;
    decoder.check_bound(name.len(), NAME_BYTES_MAX)?;
    Ok(name)
}

fn member_name(decoder: &mut Decoder<'_>, complete: bool) -> Result<MemberName, Malformed> {
    if complete {
        name(decoder).map(|name| MemberName::new(&name))
    } else {
        Ok(MemberName { hash: decoder.take_array()?, text: None })
    }
}

/// What follows the name of a member; what is told in another way than anybody does counts as nothing.
fn annotations(decoder: &mut Decoder<'_>, complete: bool) -> MemberAnnotations {
    let mark = decoder.mark();
    let told = if complete { told_annotations(decoder) } else { Ok(MemberAnnotations::default()) };
    told.unwrap_or_else(|_| {
        decoder.reset(mark);
        MemberAnnotations::default()
    })
}

fn told_annotations(decoder: &mut Decoder<'_>) -> Result<MemberAnnotations, Malformed> {
    if decoder.take_array()? != [1] {
        return Ok(MemberAnnotations::default());
    }
    delimited(decoder, |decoder| {
        Ok(MemberAnnotations {
            unit: optional(decoder, name)?,
            min: optional(decoder, annotation_value)?,
            max: optional(decoder, annotation_value)?,
        })
    })
}

fn optional<'a, T>(
    decoder: &mut Decoder<'a>,
    value: impl FnOnce(&mut Decoder<'a>) -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    match decoder.take_array()? {
        [0] => Ok(None),
        [1] => value(decoder).map(Some),
        _ => Err(Malformed::InvalidBoolean),
    }
}

/// A number; other values are no bounds.
fn annotation_value(decoder: &mut Decoder<'_>) -> Result<AnnotationValue, Malformed> {
    let [kind] = decoder.take_array()?;
    let kind = Primitive::of_kind(kind).ok_or(Malformed::InvalidDiscriminator)?;
    let mut value = AnnotationValue { kind, bits: 0 };
    value.bits = match value.octets() {
        1 => decoder.take_array().map(|[octet]| u64::from(octet))?,
        2 => decoder.take_u16()?.into(),
        4 => decoder.take_u32()?.into(),
        8 => u64::decode(decoder)?,
        _ => return Err(Malformed::InvalidDiscriminator),
    };
    Ok(value)
}

fn structure_member(decoder: &mut Decoder<'_>, complete: bool) -> Result<StructureMember, Malformed> {
    delimited(decoder, |decoder| {
        Ok(StructureMember {
            id: decoder.take_u32()?,
            flags: decoder.take_u16()?,
            ty: TypeIdentifier::decode(decoder)?,
            name: member_name(decoder, complete)?,
            annotations: annotations(decoder, complete),
        })
    })
}

fn union_member(decoder: &mut Decoder<'_>, complete: bool) -> Result<UnionMember, Malformed> {
    delimited(decoder, |decoder| {
        let (id, flags) = (decoder.take_u32()?, decoder.take_u16()?);
        let ty = TypeIdentifier::decode(decoder)?;
        let count = decoder.take_count(4)?;
        let labels =
            (0..count).map(|_| decoder.take_u32().map(u32::cast_signed)).collect::<Result<_, _>>()?;
        let name = member_name(decoder, complete)?;
        Ok(UnionMember { id, flags, ty, labels, name, annotations: annotations(decoder, complete) })
    })
}

fn literal(decoder: &mut Decoder<'_>, complete: bool) -> Result<Literal, Malformed> {
    delimited(decoder, |decoder| {
        let (value, flags) =
            delimited(decoder, |decoder| Ok((decoder.take_u32()?.cast_signed(), decoder.take_u16()?)))?;
        Ok(Literal { value, flags, name: member_name(decoder, complete)? })
    })
}

fn bit_bound(decoder: &mut Decoder<'_>, complete: bool, name: &mut Option<String>) -> Result<u16, Malformed> {
    delimited(decoder, |decoder| {
        let bit_bound = decoder.take_u16()?;
        *name = type_detail(decoder, complete)?;
        Ok(bit_bound)
    })
}

/// `CompleteBitmaskType` or `MinimalBitmaskType`, which are appendable though others like them are final.
fn bitmask(
    decoder: &mut Decoder<'_>,
    complete: bool,
    name: &mut Option<String>,
) -> Result<Definition, Malformed> {
    delimited(decoder, |decoder| {
        let extensibility = told_extensibility(decoder.take_u16()?);
        let bit_bound = bit_bound(decoder, complete, name)?;
        let flags = sequence(decoder, MEMBER_BYTES_MIN, |decoder| {
            delimited(decoder, |decoder| {
                let (position, flags) = (decoder.take_u16()?, decoder.take_u16()?);
                Ok(Bitflag { position, flags, name: member_name(decoder, complete)? })
            })
        })?;
        Ok(Definition::Bitmask { extensibility, bit_bound, flags })
    })
}

/// `CompleteBitsetType` or `MinimalBitsetType`.
fn bitset(
    decoder: &mut Decoder<'_>,
    complete: bool,
    name: &mut Option<String>,
) -> Result<Definition, Malformed> {
    delimited(decoder, |decoder| {
        decoder.take_u16()?;
        *name = delimited(decoder, |decoder| type_detail(decoder, complete))?;
        let fields = sequence(decoder, MEMBER_BYTES_MIN, |decoder| {
            delimited(decoder, |decoder| {
                let (position, flags) = (decoder.take_u16()?, decoder.take_u16()?);
                let [bits, holder] = decoder.take_array()?;
                let holder = Primitive::of_kind(holder).ok_or(Malformed::InvalidDiscriminator)?;
                Ok(Bitfield { position, flags, bits, holder, name: member_name(decoder, complete)? })
            })
        })?;
        Ok(Definition::Bitset { fields })
    })
}

/// Flags and a TypeIdentifier: the element of a collection, a discriminator, or what an alias stands for.
fn flags_and_type(decoder: &mut Decoder<'_>) -> Result<(u16, TypeIdentifier), Malformed> {
    Ok((decoder.take_u16()?, TypeIdentifier::decode(decoder)?))
}

/// A collection with a TypeObject. A complete array is delimited as a whole, which the others are not.
fn collection(decoder: &mut Decoder<'_>, kind: u8, complete: bool) -> Result<Definition, Malformed> {
    let collection = if kind == kind::ARRAY && complete {
        delimited(decoder, |decoder| collection_type(decoder, kind))?
    } else {
        collection_type(decoder, kind)?
    };
    Ok(Definition::Collection(collection))
}

/// Its header may end in a name that nobody needs.
fn collection_type(decoder: &mut Decoder<'_>, kind: u8) -> Result<TypeIdentifier, Malformed> {
    decoder.take_u16()?;
    let element = |decoder: &mut Decoder<'_>| {
        delimited(decoder, flags_and_type).map(|(flags, element)| (flags, Box::new(element)))
    };
    Ok(if kind == kind::ARRAY {
        let bounds = delimited(decoder, |decoder| dimensions(decoder, false))?;
        let (element_flags, element) = element(decoder)?;
        TypeIdentifier::Array { bounds, element_flags, element }
    } else {
        let bound = delimited(decoder, Decoder::take_u32)?;
        if kind == kind::SEQUENCE {
            let (element_flags, element) = element(decoder)?;
            TypeIdentifier::Sequence { bound, element_flags, element }
        } else {
            let (key_flags, key) = element(decoder)?;
            let (element_flags, element) = element(decoder)?;
            TypeIdentifier::Map { bound, key_flags, key, element_flags, element }
        }
    })
}

/// What has a DHEADER.
pub(super) fn delimited<'a, T>(
    decoder: &mut Decoder<'a>,
    content: impl FnOnce(&mut Decoder<'a>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let object = decoder.begin_aggregate(Extensibility::Appendable)?;
    let value = content(decoder)?;
    decoder.end_aggregate(object);
    Ok(value)
}

/// A sequence of what is not primitive.
pub(super) fn sequence<'a, T>(
    decoder: &mut Decoder<'a>,
    octets_min: usize,
    mut element: impl FnMut(&mut Decoder<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let object = decoder.begin_collection(false)?;
    let count = decoder.take_count(octets_min)?;
    decoder.book_memory(count, size_of::<T>())?;
    let elements = (0..count).map(|_| element(decoder)).collect::<Result<_, _>>()?;
    decoder.end_collection(object);
    Ok(elements)
}
