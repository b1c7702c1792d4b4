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
mod decode;
mod describe;
mod encode;
mod extensibility;
mod information;
pub mod library;
pub mod lookup;
#[cfg(test)]
mod tests;

pub use compare::{AssignabilityRules, TypeDifference};
pub use describe::{
    CaseDescription, Describe, MemberDescription, TypeBuilder, TypeDescription, TypeIdentifiers,
};
pub use extensibility::Extensibility;
pub(crate) use information::TypeIds;
pub use information::{TypeInformation, TypeWithDependencies};

use md5::{Digest, Md5};

/// Octets of one serialized TypeObject at most.
pub const OBJECT_BYTES_MAX: usize = 64 << 10;

/// `EquivalenceHash` and the relation it is about: a direct hash TypeIdentifier (§7.3.4.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeHash {
    /// Of a complete TypeObject, with names; otherwise of a minimal one.
    pub complete: bool,
    /// First 14 octets of the MD5 of the TypeObject in XCDR2, little endian.
    pub octets: [u8; 14],
}

impl TypeHash {
    /// The hash of a serialized TypeObject, and of which kind it is.
    #[must_use]
    pub fn of(complete: bool, serialized: &[u8]) -> Self {
        let digest = <[u8; 16]>::from(Md5::digest(serialized));
        let mut octets = [0; 14];
        octets.iter_mut().zip(digest).for_each(|(octet, from)| *octet = from);
        Self { complete, octets }
    }
}

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
        /// Type of an element.
        element: Box<Self>,
    },
    /// An array.
    Array {
        /// Elements in each dimension, the outermost first.
        bounds: Vec<u32>,
        /// Type of an element.
        element: Box<Self>,
    },
    /// A map; a bound of 0 is none.
    Map {
        /// Most elements.
        bound: u32,
        /// Type of the keys.
        key: Box<Self>,
        /// Type of the values.
        element: Box<Self>,
    },
    /// A type with a TypeObject of its own.
    Hash(TypeHash),
    /// Anything else, by its discriminator: types that contain themselves, and extensions to come.
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

/// `MemberFlag` (Annex B).
pub mod member_flag {
    /// What happens to a value that does not fit: DISCARD, the default.
    pub const DISCARD: u16 = 1;
    /// The member is optional.
    pub const OPTIONAL: u16 = 1 << 3;
    /// Who does not know the member must not take the sample.
    pub const MUST_UNDERSTAND: u16 = 1 << 4;
    /// The member belongs to the key.
    pub const KEY: u16 = 1 << 5;
    /// The member of a union or the literal that is the default.
    pub const DEFAULT: u16 = 1 << 6;
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
        /// The structure it extends.
        base: TypeIdentifier,
        /// In the order of a sample, or of their ids in minimal TypeObjects.
        members: Vec<StructureMember>,
    },
    /// A union.
    Union {
        /// How it may evolve.
        extensibility: Extensibility,
        /// Type of the discriminator.
        discriminator: TypeIdentifier,
        /// The discriminator is the key.
        key: bool,
        /// Its members.
        members: Vec<UnionMember>,
    },
    /// An enumeration.
    Enumeration {
        /// Bits that hold a value.
        bit_bound: u16,
        /// In the order of their values.
        literals: Vec<Literal>,
    },
    /// A bit mask.
    Bitmask {
        /// Bits that hold it.
        bit_bound: u16,
    },
    /// A collection that was given a TypeObject.
    Collection(TypeIdentifier),
    /// Bit sets, annotations and extensions to come: their `TypeKind`.
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
}

/// `TypeFlag` (Annex B).
mod type_flag {
    pub(super) const FINAL: u16 = 1;
    pub(super) const APPENDABLE: u16 = 1 << 1;
    pub(super) const MUTABLE: u16 = 1 << 2;
    pub(super) const AUTOID_HASH: u16 = 1 << 4;
}
