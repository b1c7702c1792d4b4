//! Types as data (XTypes 1.3 §7.3.4 and Annex B): what an endpoint tells of its type, how others ask for the
//! rest, and where two types part.
//!
//! A [`TypeDescription`] is made from a Rust type (`describe`). It travels as a [`TypeInformation`] in the
//! announcement of an endpoint, which names the type by its hash, and as [`TypeObject`]s in answers of the
//! TypeLookup service ([`lookup`]). [`compare`] tells whether a reader's type is assignable from a writer's,
//! and names the first member in which they differ. What comes from others is checked against its hash, and
//! bounded in size, number and depth.

#![deny(clippy::indexing_slicing)]

pub mod compare;
mod components;
mod decode;
mod describe;
mod encode;
mod extensibility;
mod hash;
mod information;
pub mod library;
pub mod lookup;
#[cfg(test)]
mod tests;

pub use compare::{AssignabilityRules, TypeDifference};
pub use describe::{
    AggregateDescription, AnnotationsDescription, BitsDescription, Bounds, CaseDescription, Describe,
    FieldDescription, FlagDescription, MemberDescription, TypeBuilder, TypeDescription, TypeIdentifiers,
};
pub use extensibility::Extensibility;
pub(crate) use information::TypeIds;
pub use information::{TypeInformation, TypeWithDependencies};

use md5::{Digest, Md5};

pub use hash::{COMPONENT_TYPES_MAX, ComponentPlace, TypeHash};

/// Octets of one serialized TypeObject at most.
pub const OBJECT_BYTES_MAX: usize = 64 << 10;

/// A primitive type, as its `TypeKind` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the standard's own")]
pub enum Primitive {
    Boolean = 0x01,
    Byte = 0x02,
    Int16 = 0x03,
    Int32 = 0x04,
    Int64 = 0x05,
    Uint16 = 0x06,
    Uint32 = 0x07,
    Uint64 = 0x08,
    Float32 = 0x09,
    Float64 = 0x0a,
    Float128 = 0x0b,
    Int8 = 0x0c,
    Uint8 = 0x0d,
    Char8 = 0x10,
    Char16 = 0x11,
}

impl Primitive {
    const ALL: [Self; 15] = [
        Self::Boolean,
        Self::Byte,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float32,
        Self::Float64,
        Self::Float128,
        Self::Int8,
        Self::Uint8,
        Self::Char8,
        Self::Char16,
    ];

    fn of_kind(kind: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|primitive| *primitive as u8 == kind)
    }

    /// As IDL names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Byte => "octet",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Float128 => "float128",
            Self::Int8 => "int8",
            Self::Uint8 => "uint8",
            Self::Char8 => "char",
            Self::Char16 => "wchar",
        }
    }
}

/// What names a type, or says all of it (§7.3.4.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeIdentifier {
    /// `TK_NONE`: a structure without base.
    None,
    /// A primitive type.
    Primitive(Primitive),
    /// A string; a bound of 0 is none.
    String {
        /// Of 16-bit characters.
        wide: bool,
        /// Most characters.
        bound: u32,
    },
    /// A sequence; a bound of 0 is none.
    Sequence {
        /// Most elements.
        bound: u32,
        /// [`member_flag`]s of the elements.
        element_flags: u16,
        /// Type of an element.
        element: Box<Self>,
    },
    /// An array.
    Array {
        /// Elements in each dimension, the outermost first.
        bounds: Vec<u32>,
        /// [`member_flag`]s of the elements.
        element_flags: u16,
        /// Type of an element.
        element: Box<Self>,
    },
    /// A map; a bound of 0 is none.
    Map {
        /// Most elements.
        bound: u32,
        /// [`member_flag`]s of the keys.
        key_flags: u16,
        /// Type of the keys.
        key: Box<Self>,
        /// [`member_flag`]s of the values.
        element_flags: u16,
        /// Type of the values.
        element: Box<Self>,
    },
    /// A type with a TypeObject of its own; one that contains itself, too.
    Hash(TypeHash),
    /// An extension to come, by its discriminator.
    Unknown(u8),
}

/// The name of a member: minimal TypeObjects have its hash alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberName {
    /// First four octets of its MD5.
    pub hash: [u8; 4],
    /// The name; `None` in minimal TypeObjects.
    pub text: Option<String>,
}

impl MemberName {
    /// A known name.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let [one, two, three, four, ..] = <[u8; 16]>::from(Md5::digest(text));
        Self { hash: [one, two, three, four], text: Some(text.to_owned()) }
    }
}

/// What complete TypeObjects tell of a member besides its type: `AppliedBuiltinMemberAnnotations` (Annex B).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberAnnotations {
    /// `@unit`
    pub unit: Option<String>,
    /// `@min`, or the first part of `@range`.
    pub min: Option<AnnotationValue>,
    /// `@max`, or the second part of `@range`.
    pub max: Option<AnnotationValue>,
}

impl MemberAnnotations {
    /// Whether nothing is told.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.unit.is_none() && self.min.is_none() && self.max.is_none()
    }
}

/// A number in an annotation: `AnnotationParameterValue`, of which nobody tells other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnotationValue {
    kind: Primitive,
    /// As many of the lowest as the kind has.
    bits: u64,
}

impl AnnotationValue {
    /// An integer, in the smallest type that IDL would give it, from 32 bits on, as Cyclone DDS tells it.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the ranges are looked at")]
    pub const fn integer(value: i128) -> Self {
        let kind = if value >= i32::MIN as i128 && value <= i32::MAX as i128 {
            Primitive::Int32
        } else if value >= 0 && value <= u32::MAX as i128 {
            Primitive::Uint32
        } else if value >= i64::MIN as i128 && value <= i64::MAX as i128 {
            Primitive::Int64
        } else {
            Primitive::Uint64
        };
        Self { kind, bits: value as u64 }
    }

    /// A floating-point number.
    #[must_use]
    pub const fn float(value: f64) -> Self {
        Self { kind: Primitive::Float64, bits: value.to_bits() }
    }

    /// How many octets it has; 0 of what is no number of at most eight.
    const fn octets(self) -> usize {
        match self.kind {
            Primitive::Int8 | Primitive::Uint8 | Primitive::Byte => 1,
            Primitive::Int16 | Primitive::Uint16 => 2,
            Primitive::Int32 | Primitive::Uint32 | Primitive::Float32 => 4,
            Primitive::Int64 | Primitive::Uint64 | Primitive::Float64 => 8,
            Primitive::Boolean | Primitive::Char8 | Primitive::Char16 | Primitive::Float128 => 0,
        }
    }

    /// Its value, if it is an integer.
    #[must_use]
    pub const fn as_integer(self) -> Option<i128> {
        Some(match self.kind {
            Primitive::Int8 => self.bits as i8 as i128,
            Primitive::Int16 => self.bits as i16 as i128,
            Primitive::Int32 => self.bits as i32 as i128,
            Primitive::Int64 => self.bits.cast_signed() as i128,
            Primitive::Byte | Primitive::Uint8 => self.bits as u8 as i128,
            Primitive::Uint16 => self.bits as u16 as i128,
            Primitive::Uint32 => self.bits as u32 as i128,
            Primitive::Uint64 => self.bits as i128,
            _ => return None,
        })
    }

    /// Its value, as a floating-point number.
    #[must_use]
    pub const fn as_float(self) -> f64 {
        match (self.kind, self.as_integer()) {
            (_, Some(integer)) => integer as f64,
            (Primitive::Float32, None) => f32::from_bits(self.bits as u32) as f64,
            _ => f64::from_bits(self.bits),
        }
    }
}

/// `MemberFlag` (Annex B).
pub mod member_flag {
    /// What happens to a value that does not fit: DISCARD, the default. See [`super::TryConstruct`].
    pub const DISCARD: u16 = 1;
    /// It becomes the default of the member.
    pub const USE_DEFAULT: u16 = 1 << 1;
    /// It is cut off.
    pub const TRIM: u16 = DISCARD | USE_DEFAULT;
    /// Sent as if it were not: a pointer in some languages.
    pub const EXTERNAL: u16 = 1 << 2;
    /// The member is optional.
    pub const OPTIONAL: u16 = 1 << 3;
    /// Who does not know the member must not take the sample.
    pub const MUST_UNDERSTAND: u16 = 1 << 4;
    /// The member belongs to the key.
    pub const KEY: u16 = 1 << 5;
    /// The member of a union or the literal that is the default.
    pub const DEFAULT: u16 = 1 << 6;
}

/// What happens to a value that the reader's type cannot hold (§7.2.2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TryConstruct {
    /// What it is a part of cannot be made either: in the end the sample is discarded.
    #[default]
    Discard,
    /// It is the default instead.
    UseDefault,
    /// A string or collection that is too long is cut off; anything else as with `Discard`.
    Trim,
}

impl TryConstruct {
    /// What the [`member_flag`]s of a member or element say. Without either bit, which XTypes calls invalid,
    /// it is the default.
    #[must_use]
    pub const fn of_flags(flags: u16) -> Self {
        match flags & member_flag::TRIM {
            member_flag::USE_DEFAULT => Self::UseDefault,
            member_flag::TRIM => Self::Trim,
            _ => Self::Discard,
        }
    }

    /// The [`member_flag`]s that say it.
    #[must_use]
    pub const fn flags(self) -> u16 {
        match self {
            Self::Discard => member_flag::DISCARD,
            Self::UseDefault => member_flag::USE_DEFAULT,
            Self::Trim => member_flag::TRIM,
        }
    }
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructureMember {
    /// Member id.
    pub id: u32,
    /// [`member_flag`]s.
    pub flags: u16,
    /// Its type.
    pub ty: TypeIdentifier,
    /// Its name.
    pub name: MemberName,
    /// What complete TypeObjects tell besides.
    pub annotations: MemberAnnotations,
}

impl StructureMember {
    pub(super) const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// A member of a union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnionMember {
    /// Member id.
    pub id: u32,
    /// [`member_flag`]s.
    pub flags: u16,
    /// Its type.
    pub ty: TypeIdentifier,
    /// Values of the discriminator that select it.
    pub labels: Vec<i32>,
    /// Its name.
    pub name: MemberName,
    /// What complete TypeObjects tell besides.
    pub annotations: MemberAnnotations,
}

/// A literal of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Its value.
    pub value: i32,
    /// [`member_flag`]s.
    pub flags: u16,
    /// Its name.
    pub name: MemberName,
}

/// A flag of a bit mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitflag {
    /// Which bit it is, the least significant being 0.
    pub position: u16,
    /// [`member_flag`]s: none applies.
    pub flags: u16,
    /// Its name.
    pub name: MemberName,
}

/// A field of a bit set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitfield {
    /// Its least significant bit.
    pub position: u16,
    /// [`member_flag`]s: none applies.
    pub flags: u16,
    /// How many bits it has.
    pub bits: u8,
    /// The type of its value.
    pub holder: Primitive,
    /// Its name.
    pub name: MemberName,
}

/// What a type consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// Another name for a type.
    Alias(TypeIdentifier),
    /// A structure.
    Structure {
        /// How it may evolve.
        extensibility: Extensibility,
        /// Its members' ids are hashes of their names.
        hash_ids: bool,
        /// It is no type of a topic.
        nested: bool,
        /// The structure it extends.
        base: TypeIdentifier,
        /// Its own, in the order of a sample.
        members: Vec<StructureMember>,
    },
    /// A union.
    Union {
        /// How it may evolve.
        extensibility: Extensibility,
        /// Its members' ids are hashes of their names.
        hash_ids: bool,
        /// It is no type of a topic.
        nested: bool,
        /// Type of the discriminator.
        discriminator: TypeIdentifier,
        /// [`member_flag`]s of the discriminator, which may be the key.
        discriminator_flags: u16,
        /// Its members.
        members: Vec<UnionMember>,
    },
    /// An enumeration.
    Enumeration {
        /// How it may evolve, where that is told: Annex B has no flags for enumerations.
        extensibility: Option<Extensibility>,
        /// Bits that hold a value.
        bit_bound: u16,
        /// In the order of their values.
        literals: Vec<Literal>,
    },
    /// A bit mask.
    Bitmask {
        /// How it may evolve, where that is told, as with enumerations.
        extensibility: Option<Extensibility>,
        /// Bits that hold it.
        bit_bound: u16,
        /// In the order of their positions.
        flags: Vec<Bitflag>,
    },
    /// A bit set.
    Bitset {
        /// In the order of their positions.
        fields: Vec<Bitfield>,
    },
    /// A collection that was given a TypeObject.
    Collection(TypeIdentifier),
    /// Annotations and extensions to come: their `TypeKind`.
    Other(u8),
}

/// A type with members, or one that a TypeIdentifier alone does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeObject {
    /// Its name; `None` in minimal TypeObjects.
    pub name: Option<String>,
    /// What it consists of.
    pub definition: Definition,
}

/// The octets that tell TypeIdentifiers and TypeObjects apart (Annex B).
mod kind {
    pub(super) const MINIMAL: u8 = 0xf1;
    pub(super) const COMPLETE: u8 = 0xf2;
    pub(super) const BOTH: u8 = 0xf3;
    pub(super) const ALIAS: u8 = 0x30;
    pub(super) const ENUMERATION: u8 = 0x40;
    pub(super) const BITMASK: u8 = 0x41;
    pub(super) const STRUCTURE: u8 = 0x51;
    pub(super) const UNION: u8 = 0x52;
    pub(super) const BITSET: u8 = 0x53;
    pub(super) const SEQUENCE: u8 = 0x60;
    pub(super) const ARRAY: u8 = 0x61;
    pub(super) const MAP: u8 = 0x62;
    pub(super) const STRING8_SMALL: u8 = 0x70;
    pub(super) const STRING8_LARGE: u8 = 0x71;
    pub(super) const STRING16_SMALL: u8 = 0x72;
    pub(super) const STRING16_LARGE: u8 = 0x73;
    pub(super) const SEQUENCE_SMALL: u8 = 0x80;
    pub(super) const SEQUENCE_LARGE: u8 = 0x81;
    pub(super) const ARRAY_SMALL: u8 = 0x90;
    pub(super) const ARRAY_LARGE: u8 = 0x91;
    pub(super) const MAP_SMALL: u8 = 0xa0;
    pub(super) const MAP_LARGE: u8 = 0xa1;
    pub(super) const COMPONENT: u8 = 0xb0;
}

/// `TypeFlag` (Annex B).
mod type_flag {
    pub(super) const FINAL: u16 = 1;
    pub(super) const APPENDABLE: u16 = 1 << 1;
    pub(super) const MUTABLE: u16 = 1 << 2;
    pub(super) const NESTED: u16 = 1 << 3;
    pub(super) const AUTOID_HASH: u16 = 1 << 4;
}
