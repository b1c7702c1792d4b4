//! TypeIdentifiers and TypeObjects to octets: XCDR2, little endian (XTypes 1.3 Annex B).

use super::{
    AnnotationValue, Bitfield, Bitflag, Definition, Literal, MemberAnnotations, MemberName, StructureMember,
    TypeHash, TypeIdentifier, TypeObject, UnionMember, kind, type_flag,
};
use crate::cdr::{Cdr, EncodeError, Encoder, Endianness, Extensibility, XcdrVersion};

type Encoded = Result<(), EncodeError>;

/// An encoder of what this module writes.
pub(super) fn encoder(buffer: &mut Vec<u8>) -> Encoder<'_> {
    Encoder::new(buffer, XcdrVersion::Xcdr2, Endianness::Little)
}

impl TypeIdentifier {
    /// Whether it says all of a type (§7.3.4.6.1).
    pub(super) fn is_descriptive(&self) -> bool {
        match self {
            Self::Sequence { element, .. } | Self::Array { element, .. } => element.is_descriptive(),
            Self::Map { key, element, .. } => key.is_descriptive() && element.is_descriptive(),
            Self::Hash(_) | Self::Unknown(_) => false,
            Self::None | Self::Primitive(_) | Self::String { .. } => true,
        }
    }

    fn equivalence(&self) -> u8 {
        match self {
            Self::Sequence { element, .. } | Self::Array { element, .. } => element.equivalence(),
            Self::Map { key, element, .. } if key.is_descriptive() => element.equivalence(),
            Self::Map { key, .. } => key.equivalence(),
            Self::Hash(hash) if hash.complete => kind::COMPLETE,
            Self::Hash(_) => kind::MINIMAL,
            Self::None | Self::Primitive(_) | Self::String { .. } | Self::Unknown(_) => kind::BOTH,
        }
    }

    pub(super) fn encode(&self, encoder: &mut Encoder<'_>) -> Encoded {
        match self {
            Self::None => encoder.put(&[0]),
            Self::Primitive(primitive) => encoder.put(&[*primitive as u8]),
            Self::String { wide, bound } => {
                let (small, large) = if *wide {
                    (kind::STRING16_SMALL, kind::STRING16_LARGE)
                } else {
                    (kind::STRING8_SMALL, kind::STRING8_LARGE)
                };
                self.put_kind(encoder, small, large, u8::try_from(*bound).is_ok())?;
                put_bound(encoder, *bound)
            }
            Self::Sequence { bound, element_flags, element } => {
                let small = u8::try_from(*bound).is_ok();
                self.put_kind(encoder, kind::SEQUENCE_SMALL, kind::SEQUENCE_LARGE, small)?;
                self.put_header(encoder, *element_flags)?;
                put_bound(encoder, *bound)?;
                element.encode(encoder)
            }
            Self::Array { bounds, element_flags, element } => {
                let small = bounds.iter().all(|bound| u8::try_from(*bound).is_ok());
                self.put_kind(encoder, kind::ARRAY_SMALL, kind::ARRAY_LARGE, small)?;
                self.put_header(encoder, *element_flags)?;
                encoder.put_length(bounds.len())?;
                for bound in bounds {
                    if small { put_bound(encoder, *bound)? } else { encoder.put_u32(*bound)? }
                }
                element.encode(encoder)
            }
            Self::Map { bound, key_flags, key, element_flags, element } => {
                self.put_kind(encoder, kind::MAP_SMALL, kind::MAP_LARGE, u8::try_from(*bound).is_ok())?;
                self.put_header(encoder, *element_flags)?;
                put_bound(encoder, *bound)?;
                element.encode(encoder)?;
                encoder.put_u16(*key_flags)?;
                key.encode(encoder)
            }
            Self::Hash(hash) => hash.encode(encoder),
            // Never made here: what others send is not sent on.
            Self::Unknown(other) => encoder.put(&[*other]),
        }
    }

    fn put_kind(&self, encoder: &mut Encoder<'_>, small: u8, large: u8, is_small: bool) -> Encoded {
        encoder.put(&[if is_small { small } else { large }])
    }

    /// `PlainCollectionHeader`.
    fn put_header(&self, encoder: &mut Encoder<'_>, element_flags: u16) -> Encoded {
        encoder.put(&[self.equivalence()])?;
        encoder.put_u16(element_flags)
    }
}

impl TypeHash {
    fn encode(self, encoder: &mut Encoder<'_>) -> Encoded {
        let Some(place) = self.component else { return self.encode_hash(encoder) };
        encoder.put(&[kind::COMPONENT])?;
        delimited(encoder, |encoder| {
            self.encode_hash(encoder)?;
            encoder.put_u32(place.length)?;
            encoder.put_u32(place.index)
        })
    }

    fn encode_hash(self, encoder: &mut Encoder<'_>) -> Encoded {
        encoder.put(&[if self.complete { kind::COMPLETE } else { kind::MINIMAL }])?;
        encoder.put(&self.octets)
    }
}

/// An `SBound` where it fits, an `LBound` otherwise.
fn put_bound(encoder: &mut Encoder<'_>, bound: u32) -> Encoded {
    match u8::try_from(bound) {
        Ok(small) => encoder.put(&[small]),
        Err(_) => encoder.put_u32(bound),
    }
}

impl TypeObject {
    /// The serialized TypeObject, as hashes count it.
    pub(super) fn serialize(&self, complete: bool) -> Result<Vec<u8>, EncodeError> {
        let mut octets = Vec::new();
        let encoder = &mut encoder(&mut octets);
        let object = encoder.begin_aggregate(Extensibility::Appendable)?;
        encoder.put(&[if complete { kind::COMPLETE } else { kind::MINIMAL }])?;
        self.encode_definition(encoder, complete)?;
        encoder.end_aggregate(object)?;
        Ok(octets)
    }

    fn encode_definition(&self, encoder: &mut Encoder<'_>, complete: bool) -> Encoded {
        let name = self.name.as_deref().filter(|_| complete);
        match &self.definition {
            Definition::Structure { extensibility, hash_ids, nested, base, members } => {
                encoder.put(&[kind::STRUCTURE])?;
                encoder.put_u16(type_flags(*extensibility, *hash_ids, *nested))?;
                delimited(encoder, |encoder| {
                    base.encode(encoder)?;
                    put_type_detail(encoder, name)
                })?;
                sequence(encoder, members, |encoder, member| member.encode(encoder, complete))
            }
            Definition::Union {
                extensibility,
                hash_ids,
                nested,
                discriminator,
                discriminator_flags,
                members,
            } => {
                encoder.put(&[kind::UNION])?;
                encoder.put_u16(type_flags(*extensibility, *hash_ids, *nested))?;
                delimited(encoder, |encoder| put_type_detail(encoder, name))?;
                delimited(encoder, |encoder| {
                    encoder.put_u16(*discriminator_flags)?;
                    discriminator.encode(encoder)?;
                    if complete { put_no_annotations(encoder) } else { Ok(()) }
                })?;
                sequence(encoder, members, |encoder, member| member.encode(encoder, complete))
            }
            Definition::Enumeration { extensibility, bit_bound, literals } => {
                encoder.put(&[kind::ENUMERATION])?;
                encoder.put_u16(told_flags(*extensibility))?;
                put_bits_header(encoder, *bit_bound, name)?;
                sequence(encoder, literals, |encoder, literal| literal.encode(encoder, complete))
            }
            Definition::Bitmask { extensibility, bit_bound, flags } => {
                encoder.put(&[kind::BITMASK])?;
                delimited(encoder, |encoder| {
                    encoder.put_u16(told_flags(*extensibility))?;
                    put_bits_header(encoder, *bit_bound, name)?;
                    sequence(encoder, flags, |encoder, flag| flag.encode(encoder, complete))
                })
            }
            Definition::Bitset { fields } => {
                encoder.put(&[kind::BITSET])?;
                delimited(encoder, |encoder| {
                    encoder.put_u16(0)?;
                    delimited(encoder, |encoder| put_type_detail(encoder, name))?;
                    sequence(encoder, fields, |encoder, field| field.encode(encoder, complete))
                })
            }
            Definition::Alias(target) => {
                encoder.put(&[kind::ALIAS])?;
                encoder.put_u16(0)?;
                delimited(encoder, |encoder| put_type_detail(encoder, name))?;
                delimited(encoder, |encoder| {
                    encoder.put_u16(0)?;
                    target.encode(encoder)?;
                    if complete { put_no_annotations(encoder) } else { Ok(()) }
                })
            }
            // The rest is only ever read.
            Definition::Collection(_) | Definition::Other(_) => Ok(()),
        }
    }
}

/// The header of enumerations and bit masks.
fn put_bits_header(encoder: &mut Encoder<'_>, bit_bound: u16, name: Option<&str>) -> Encoded {
    delimited(encoder, |encoder| {
        encoder.put_u16(bit_bound)?;
        put_type_detail(encoder, name)
    })
}

/// Annex B gives enumerations and bit masks no flags; Cyclone DDS does.
fn told_flags(extensibility: Option<Extensibility>) -> u16 {
    extensibility.map_or(0, |it| type_flags(it, false, false))
}

const fn type_flags(extensibility: Extensibility, hash_ids: bool, nested: bool) -> u16 {
    let flag = match extensibility {
        Extensibility::Final => type_flag::FINAL,
        Extensibility::Appendable => type_flag::APPENDABLE,
        Extensibility::Mutable => type_flag::MUTABLE,
    };
    let hash_ids = if hash_ids { type_flag::AUTOID_HASH } else { 0 };
    let nested = if nested { type_flag::NESTED } else { 0 };
    flag | hash_ids | nested
}

impl StructureMember {
    fn encode(&self, encoder: &mut Encoder<'_>, complete: bool) -> Encoded {
        delimited(encoder, |encoder| {
            encoder.put_u32(self.id)?;
            encoder.put_u16(self.flags)?;
            self.ty.encode(encoder)?;
            self.name.encode_with(&self.annotations, encoder, complete)
        })
    }
}

impl UnionMember {
    fn encode(&self, encoder: &mut Encoder<'_>, complete: bool) -> Encoded {
        delimited(encoder, |encoder| {
            encoder.put_u32(self.id)?;
            encoder.put_u16(self.flags)?;
            self.ty.encode(encoder)?;
            encoder.put_length(self.labels.len())?;
            self.labels.iter().try_for_each(|label| encoder.put_u32(label.cast_unsigned()))?;
            self.name.encode_with(&self.annotations, encoder, complete)
        })
    }
}

impl Literal {
    fn encode(&self, encoder: &mut Encoder<'_>, complete: bool) -> Encoded {
        delimited(encoder, |encoder| {
            delimited(encoder, |encoder| {
                encoder.put_u32(self.value.cast_unsigned())?;
                encoder.put_u16(self.flags)
            })?;
            self.name.encode(encoder, complete)
        })
    }
}

impl Bitflag {
    fn encode(&self, encoder: &mut Encoder<'_>, complete: bool) -> Encoded {
        delimited(encoder, |encoder| {
            encoder.put_u16(self.position)?;
            encoder.put_u16(self.flags)?;
            self.name.encode(encoder, complete)
        })
    }
}

impl Bitfield {
    fn encode(&self, encoder: &mut Encoder<'_>, complete: bool) -> Encoded {
        delimited(encoder, |encoder| {
            encoder.put_u16(self.position)?;
            encoder.put_u16(self.flags)?;
            encoder.put(&[self.bits, self.holder as u8])?;
            self.name.encode(encoder, complete)
        })
    }
}

impl MemberName {
    /// `CompleteMemberDetail` without annotations, or `MinimalMemberDetail`.
    fn encode(&self, encoder: &mut Encoder<'_>, complete: bool) -> Encoded {
        self.encode_with(&MemberAnnotations::default(), encoder, complete)
    }

    fn encode_with(
        &self,
        annotations: &MemberAnnotations,
        encoder: &mut Encoder<'_>,
        complete: bool,
    ) -> Encoded {
        let Some(text) = self.text.as_deref().filter(|_| complete) else { return encoder.put(&self.hash) };
        put_string(encoder, text)?;
        if annotations.is_empty() {
            return put_no_annotations(encoder);
        }
        encoder.put(&[1])?;
        delimited(encoder, |encoder| {
            put_optional(encoder, annotations.unit.as_deref(), put_string)?;
            put_optional(encoder, annotations.min, |encoder, value| value.encode(encoder))?;
            put_optional(encoder, annotations.max, |encoder, value| value.encode(encoder))?;
            // The name that `@hashid` has: its hash is the id.
            encoder.put(&[0])
        })?;
        // Annotations of the application.
        encoder.put(&[0])
    }
}

impl AnnotationValue {
    #[allow(clippy::cast_possible_truncation, reason = "the kind says how many octets there are")]
    fn encode(self, encoder: &mut Encoder<'_>) -> Encoded {
        encoder.put(&[self.kind as u8])?;
        match self.octets() {
            1 => encoder.put(&[self.bits as u8]),
            2 => encoder.put_u16(self.bits as u16),
            4 => encoder.put_u32(self.bits as u32),
            _ => Cdr::encode(&self.bits, encoder),
        }
    }
}

fn put_optional<T>(
    encoder: &mut Encoder<'_>,
    value: Option<T>,
    put: impl FnOnce(&mut Encoder<'_>, T) -> Encoded,
) -> Encoded {
    let Some(value) = value else { return encoder.put(&[0]) };
    encoder.put(&[1])?;
    put(encoder, value)
}

/// `CompleteTypeDetail` without annotations, or nothing in minimal TypeObjects.
fn put_type_detail(encoder: &mut Encoder<'_>, name: Option<&str>) -> Encoded {
    let Some(name) = name else { return Ok(()) };
    put_no_annotations(encoder)?;
    put_string(encoder, name)
}

/// Two optional members that are absent.
fn put_no_annotations(encoder: &mut Encoder<'_>) -> Encoded {
    encoder.put(&[0, 0])
}

pub(super) fn put_string(encoder: &mut Encoder<'_>, text: &str) -> Encoded {
    encoder.put_length(text.len().saturating_add(1))?;
    encoder.put(text.as_bytes())?;
    encoder.put(&[0])
}

/// What has a DHEADER: an appendable structure.
pub(super) fn delimited(
    encoder: &mut Encoder<'_>,
    content: impl FnOnce(&mut Encoder<'_>) -> Encoded,
) -> Encoded {
    let object = encoder.begin_aggregate(Extensibility::Appendable)?;
    content(encoder)?;
    encoder.end_aggregate(object)
}

/// A sequence of what is not primitive.
pub(super) fn sequence<T>(
    encoder: &mut Encoder<'_>,
    elements: &[T],
    mut element: impl FnMut(&mut Encoder<'_>, &T) -> Encoded,
) -> Encoded {
    let object = encoder.begin_collection(false)?;
    encoder.put_length(elements.len())?;
    elements.iter().try_for_each(|it| element(encoder, it))?;
    encoder.end_collection(object)
}
