//! A type as data, made for walking samples: identifiers resolved, aliases gone, bounds and places known.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::cdr::{Extensibility, Extent};
use crate::types::Primitive;

/// A type of a member, and what is known of each of its values.
pub(super) struct Type {
    pub(super) kind: Kind,
    /// The least octets on the wire, as [`crate::cdr::Cdr::BYTES_MIN`].
    pub(super) bytes_min: usize,
    /// The most octets in the form for key hashes.
    pub(super) extent: Extent,
    /// The most octets on the wire, headers and padding before and in it included.
    pub(super) bytes_max: Option<usize>,
    /// Values in a value, those of its collections left out: what it takes to make one.
    pub(super) parts: usize,
}

#[derive(Debug)]
pub(super) enum Kind {
    Primitive(Primitive),
    Enumeration(Enumeration),
    Bitmask(Bitmask),
    Text {
        wide: bool,
        /// Octets, or units of a wide one.
        bound: Option<usize>,
    },
    Sequence {
        bound: Option<usize>,
        element: Arc<Type>,
    },
    Array {
        /// In all dimensions.
        count: usize,
        /// Elements in each dimension, the outermost first.
        dimensions: Vec<usize>,
        element: Arc<Type>,
    },
    Map {
        bound: Option<usize>,
        key: Arc<Type>,
        element: Arc<Type>,
    },
    Structure(Structure),
    Union(Union),
    /// Of a type that contains itself, deeper than samples may nest: no sample has it.
    TooDeep,
}

impl fmt::Debug for Type {
    /// In words alone: a type that contains itself has as many parts as its samples may have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expected())
    }
}

#[derive(Debug)]
pub(super) struct Enumeration {
    pub(super) name: String,
    /// Of the holder of its bit bound.
    pub(super) bytes: usize,
    /// In the order of their values.
    pub(super) literals: Vec<(Cow<'static, str>, i64)>,
    /// The value of a member that is not there.
    pub(super) initial: i64,
}

#[derive(Debug)]
pub(super) struct Bitmask {
    pub(super) name: String,
    pub(super) bytes: usize,
    /// Names and positions, in the order of these: as far as names are known.
    pub(super) flags: Vec<(String, u16)>,
    /// Those of a bit set, which has no flags, in the order of their positions: if all names are known.
    pub(super) fields: Vec<Field>,
}

/// A field of a bit set.
#[derive(Debug)]
#[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "JSON alone has fields"))]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) position: u16,
    /// At least one, and within the set.
    pub(super) bits: u16,
    /// What its value is.
    pub(super) holder: Primitive,
}

#[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "JSON alone has fields"))]
impl Field {
    /// Its bits, where they are.
    pub(super) const fn mask(&self) -> u64 {
        (u64::MAX >> (64 - self.bits)) << self.position
    }

    /// Its value within those of a set.
    pub(super) const fn value_of(&self, bits: u64) -> i128 {
        let value = (bits & self.mask()) >> self.position;
        let is_signed =
            matches!(self.holder, Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64);
        let is_negative = is_signed && value >> (self.bits - 1) & 1 != 0;
        if is_negative { value as i128 - (1 << self.bits) } else { value as i128 }
    }

    /// The bits of a value; `None` if it has more.
    pub(super) fn bits_of(&self, value: i128) -> Option<u64> {
        let octets = value.to_le_bytes();
        let low = octets.first_chunk().copied().map(u64::from_le_bytes)?;
        let bits = low.checked_shl(self.position.into()).unwrap_or(0) & self.mask();
        (self.value_of(bits) == value).then_some(bits)
    }
}

#[derive(Debug)]
pub(super) struct Structure {
    pub(super) name: String,
    pub(super) extensibility: Extensibility,
    /// It has key members; if not, all are part of a key that it is part of.
    pub(super) keyed: bool,
    /// In the order of a sample.
    pub(super) members: Vec<Member>,
    /// Their places in the order of their ids.
    pub(super) by_id: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) id: u32,
    pub(super) key: bool,
    pub(super) optional: bool,
    pub(super) must_understand: bool,
    pub(super) ty: Arc<Type>,
}

#[derive(Debug)]
pub(super) struct Union {
    pub(super) name: String,
    pub(super) extensibility: Extensibility,
    pub(super) discriminator: Arc<Type>,
    /// The discriminator is the key.
    pub(super) keyed: bool,
    pub(super) cases: Vec<Member>,
    /// Which case a value of the discriminator selects, in the order of the values.
    pub(super) labels: Vec<(i64, usize)>,
    pub(super) default: Option<usize>,
    /// The discriminator of a member that is not there.
    pub(super) initial: i64,
}

impl Structure {
    /// The place of the member with this id.
    pub(super) fn place_of(&self, id: u32) -> Option<usize> {
        let id_of = |place: &usize| self.members.get(*place).map(|member| member.id);
        let found = self.by_id.binary_search_by_key(&Some(id), id_of).ok()?;
        self.by_id.get(found).copied()
    }
}

impl Member {
    /// As [`crate::cdr::Member::BYTES_MIN_XCDR1`].
    pub(super) fn bytes_min_xcdr1(&self) -> usize {
        if self.optional { 4 } else { self.ty.bytes_min }
    }
}

impl Union {
    /// Which case this value of the discriminator selects.
    pub(super) fn select(&self, value: i64) -> Option<usize> {
        let labelled = self.labels.binary_search_by_key(&value, |(label, _)| *label).ok();
        labelled.and_then(|at| self.labels.get(at)).map(|(_, case)| *case).or(self.default)
    }
}

impl Type {
    /// Octets of a value that is one number.
    pub(super) fn number_bytes(&self) -> Option<usize> {
        match &self.kind {
            Kind::Primitive(primitive) => Some(primitive_bytes(*primitive)),
            Kind::Enumeration(enumeration) => Some(enumeration.bytes),
            Kind::Bitmask(bitmask) => Some(bitmask.bytes),
            _ => None,
        }
    }

    /// Collections of it have no DHEADER.
    pub(super) fn primitive(&self) -> Option<Primitive> {
        if let Kind::Primitive(primitive) = &self.kind { Some(*primitive) } else { None }
    }

    /// Octets are told as one text, where they are many.
    pub(super) const fn is_octet(&self) -> bool {
        matches!(self.kind, Kind::Primitive(Primitive::Byte | Primitive::Uint8))
    }

    /// The number that `bits` are, of a value that is one number.
    pub(super) fn integer(&self, bits: u64) -> i64 {
        let signed = match &self.kind {
            Kind::Primitive(primitive) => is_signed(*primitive),
            Kind::Enumeration(_) => true,
            _ => false,
        };
        let unused = u64::BITS - 8 * self.number_bytes().map_or(8, |bytes| bytes as u32);
        if signed { (bits << unused).cast_signed() >> unused } else { bits.cast_signed() }
    }
}

/// Octets of one.
pub(super) const fn primitive_bytes(primitive: Primitive) -> usize {
    match primitive {
        Primitive::Boolean | Primitive::Byte | Primitive::Int8 | Primitive::Uint8 | Primitive::Char8 => 1,
        Primitive::Int16 | Primitive::Uint16 | Primitive::Char16 => 2,
        Primitive::Int32 | Primitive::Uint32 | Primitive::Float32 => 4,
        Primitive::Int64 | Primitive::Uint64 | Primitive::Float64 => 8,
        // Refused: no value of it is ever looked at.
        Primitive::Float128 => 16,
    }
}

const fn is_signed(primitive: Primitive) -> bool {
    matches!(primitive, Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64)
}
