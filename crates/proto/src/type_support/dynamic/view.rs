//! Looking at a value of a type that is known at run time: what it is, and the way from it to its parts.

use std::borrow::Cow;

use crate::cdr::Endianness;
use crate::types::Primitive;

use super::model::{Kind, Type};
use super::scalar::Scalar;
use super::value::Value;

/// A value, or a part of one, and its type. Copying it copies nothing of the value.
#[derive(Clone, Copy, Debug)]
pub struct DataRef<'a> {
    pub(super) ty: &'a Type,
    held: Held<'a>,
    /// Of an array: how many dimensions were left behind, and the place of its first element in the whole.
    pub(super) level: usize,
    offset: usize,
}

#[derive(Clone, Copy, Debug)]
enum Held<'a> {
    Value(&'a Value<'a>),
    /// An element of many numbers.
    Number(u64),
}

/// What a [`DataRef`] is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DataValue<'a> {
    /// An optional member that is not there.
    Absent,
    /// A boolean.
    Boolean(bool),
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer, or an octet.
    Unsigned(u64),
    /// A float32.
    Float32(f32),
    /// A float64.
    Float64(f64),
    /// A char, which is Latin-1.
    Character(char),
    /// A wchar: a unit of UTF-16.
    WideCharacter(u16),
    /// A string or wide string.
    Text(Cow<'a, str>),
    /// A literal of an enumeration.
    Enumeration {
        /// Its value.
        value: i64,
        /// Its name; `None` where a minimal TypeObject alone is known.
        literal: Option<&'a str>,
    },
    /// The bits of a bitmask.
    Bitmask(u64),
    /// A structure: see [`DataRef::members`].
    Structure,
    /// A union: see [`DataRef::discriminator`] and [`DataRef::selected`].
    Union,
    /// A sequence or array of so many elements: see [`DataRef::elements`].
    Elements(usize),
    /// A map of so many pairs: see [`DataRef::pairs`].
    Map(usize),
}

impl<'a> DataRef<'a> {
    pub(super) const fn new(ty: &'a Type, value: &'a Value<'a>) -> Self {
        Self { ty, held: Held::Value(value), level: 0, offset: 0 }
    }

    const fn number(ty: &'a Type, bits: u64) -> Self {
        Self { ty, held: Held::Number(bits), level: 0, offset: 0 }
    }

    const fn held_value(&self) -> &'a Value<'a> {
        match self.held {
            Held::Value(value) => value,
            Held::Number(_) => &Value::Initial,
        }
    }

    fn bits(&self) -> u64 {
        match self.held {
            Held::Value(Value::Number(bits)) => *bits,
            Held::Number(bits) => bits,
            Held::Value(_) => self.ty.initial_number(),
        }
    }

    /// What it is.
    #[must_use]
    pub fn get(&self) -> DataValue<'a> {
        if self.is_absent() {
            return DataValue::Absent;
        }
        let bits = self.bits();
        match &self.ty.kind {
            Kind::Primitive(primitive) => self.primitive(*primitive, bits),
            Kind::Enumeration(enumeration) => {
                let value = self.ty.integer(bits);
                let found = enumeration.literals.binary_search_by_key(&value, |(_, literal)| *literal).ok();
                let literal = found.and_then(|at| enumeration.literals.get(at)).map(|(name, _)| &**name);
                DataValue::Enumeration { value, literal: literal.filter(|name| !name.is_empty()) }
            }
            Kind::Bitmask(_) => DataValue::Bitmask(bits),
            Kind::Text { .. } => DataValue::Text(self.text()),
            Kind::Sequence { .. } | Kind::Array { .. } => DataValue::Elements(self.count()),
            Kind::Map { .. } => DataValue::Map(self.count()),
            Kind::Structure(_) => DataValue::Structure,
            Kind::Union(_) => DataValue::Union,
            Kind::TooDeep => DataValue::Absent,
        }
    }

    fn primitive(&self, primitive: Primitive, bits: u64) -> DataValue<'a> {
        let [first, second, third, fourth, ..] = bits.to_le_bytes();
        match primitive {
            Primitive::Boolean => DataValue::Boolean(bits != 0),
            Primitive::Char8 => DataValue::Character(char::from(first)),
            Primitive::Char16 => DataValue::WideCharacter(u16::from_le_bytes([first, second])),
            Primitive::Float32 => DataValue::Float32(f32::from_le_bytes([first, second, third, fourth])),
            Primitive::Float64 => DataValue::Float64(f64::from_bits(bits)),
            Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64 => {
                DataValue::Signed(self.ty.integer(bits))
            }
            // No type has a float128.
            Primitive::Byte
            | Primitive::Uint8
            | Primitive::Uint16
            | Primitive::Uint32
            | Primitive::Uint64
            | Primitive::Float128 => DataValue::Unsigned(bits),
        }
    }

    fn text(&self) -> Cow<'a, str> {
        match self.held_value() {
            Value::Text(text) => Cow::Borrowed(text),
            Value::WideText(octets, order) => {
                let (units, _) = octets.as_chunks::<2>();
                let units = units.iter().map(|unit| order.u16_from(*unit));
                // It was checked as it was read or set.
                Cow::Owned(char::decode_utf16(units).map(|it| it.unwrap_or('\u{fffd}')).collect())
            }
            _ => Cow::Borrowed(""),
        }
    }

    /// Whether it is an optional member that is not there.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        matches!(self.held, Held::Value(Value::Absent))
    }

    /// Elements of a sequence or array, in its outermost dimension; pairs of a map.
    fn count(&self) -> usize {
        match (&self.ty.kind, self.held_value()) {
            (Kind::Array { dimensions, .. }, _) => dimensions.get(self.level).copied().unwrap_or(0),
            (Kind::Map { .. }, Value::Elements(values)) => values.len() / 2,
            (_, Value::Elements(values)) => values.len(),
            (Kind::Sequence { element, .. }, Value::Numbers(octets, _)) => {
                octets.len() / element.number_bytes().unwrap_or(1)
            }
            _ => 0,
        }
    }

    /// The names and values of the members of a structure, those of its base first, and those that are not
    /// there among them. Nothing of anything else.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (&'a str, Self)> + use<'a> {
        let (members, values) = match (&self.ty.kind, self.held_value()) {
            _ if self.is_absent() => (&[][..], None),
            (Kind::Structure(structure), Value::Structure(values)) => {
                (structure.members.as_slice(), Some(values))
            }
            (Kind::Structure(structure), _) => (structure.members.as_slice(), None),
            _ => (&[][..], None),
        };
        members.iter().enumerate().map(move |(place, member)| {
            let absent = if member.optional { &Value::Absent } else { &Value::Initial };
            let value = values.and_then(|values| values.get(place)).unwrap_or(absent);
            (member.name.as_str(), Self::new(&member.ty, value))
        })
    }

    /// Those members of a structure that are part of a key: the key members, or all where there are none.
    pub fn key_members(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let structure = if let Kind::Structure(structure) = &self.ty.kind { Some(structure) } else { None };
        let is_key = move |place: usize| {
            structure.is_some_and(|it| !it.keyed || it.members.get(place).is_some_and(|member| member.key))
        };
        let members = self.members().enumerate();
        members.filter(move |(place, _)| is_key(*place)).map(|(_, member)| member)
    }

    /// The member of a structure with this name, and the selected one of a union.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Self> {
        let of_structure = self.members().find(|(known, _)| *known == name);
        of_structure.or_else(|| self.selected().filter(|(known, _)| *known == name)).map(|(_, value)| value)
    }

    /// The elements of a sequence or array; of an array of several dimensions arrays of one less.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = Self> + use<'a> {
        let this = *self;
        let count = if matches!(self.ty.kind, Kind::Map { .. }) { 0 } else { self.count() };
        (0..count).map(move |at| this.element(at))
    }

    /// One of them, which is known to be there.
    fn element(&self, at: usize) -> Self {
        match &self.ty.kind {
            Kind::Array { dimensions, element, .. } => {
                let inner = dimensions.get(self.level + 1..).unwrap_or_default();
                let offset = self.offset + at * inner.iter().product::<usize>();
                if inner.is_empty() {
                    self.flat(element, offset)
                } else {
                    Self { level: self.level + 1, offset, ..*self }
                }
            }
            Kind::Sequence { element, .. } => self.flat(element, at),
            _ => *self,
        }
    }

    /// The element in this place, counted through all dimensions.
    fn flat(&self, element: &'a Type, place: usize) -> Self {
        match self.held_value() {
            Value::Numbers(octets, order) => {
                let bytes = element.number_bytes().unwrap_or(1);
                let start = place.saturating_mul(bytes);
                let octets = octets.get(start..start.saturating_add(bytes)).unwrap_or_default();
                Self::number(element, bits_of(octets, *order))
            }
            Value::Elements(values) => Self::new(element, values.get(place).unwrap_or(&Value::Initial)),
            _ => Self::new(element, &Value::Initial),
        }
    }

    /// The keys and values of a map.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (Self, Self)> + use<'a> {
        let (ty, values) = (self.ty, self.held_value());
        let pairs = match (&ty.kind, values) {
            (Kind::Map { .. }, Value::Elements(values)) => values.as_chunks::<2>().0,
            _ => &[],
        };
        pairs.iter().map(move |[key, value]| match &ty.kind {
            Kind::Map { key: of_keys, element, .. } => (Self::new(of_keys, key), Self::new(element, value)),
            _ => (Self::new(ty, key), Self::new(ty, value)),
        })
    }

    /// The discriminator of a union.
    #[must_use]
    pub fn discriminator(&self) -> Option<Self> {
        let Kind::Union(union) = &self.ty.kind else { return None };
        let bits = match self.held_value() {
            Value::Absent => return None,
            Value::Union(bits, _) => *bits,
            _ => union.initial_case().0,
        };
        Some(Self::number(&union.discriminator, bits))
    }

    /// The name and value of the member of a union that the discriminator selects, if it selects one.
    #[must_use]
    pub fn selected(&self) -> Option<(&'a str, Self)> {
        let Kind::Union(union) = &self.ty.kind else { return None };
        let (place, value) = match self.held_value() {
            Value::Absent => return None,
            Value::Union(_, selected) => selected.as_ref().map(|(place, value)| (*place, &**value))?,
            _ => {
                let place = union.initial_case().1?;
                (place, union.initial_member(place))
            }
        };
        let case = union.cases.get(place)?;
        Some((&case.name, Self::new(&case.ty, value)))
    }

    /// The octets of a sequence or array of octets, uint8 or int8; `None` of anything else.
    #[must_use]
    pub fn octets(&self) -> Option<Cow<'a, [u8]>> {
        let (Kind::Sequence { element, .. } | Kind::Array { element, .. }) = &self.ty.kind else {
            return None;
        };
        if !matches!(element.kind, Kind::Primitive(Primitive::Byte | Primitive::Uint8 | Primitive::Int8)) {
            return None;
        }
        let count = match &self.ty.kind {
            Kind::Array { dimensions, .. } => {
                dimensions.get(self.level..).unwrap_or_default().iter().product()
            }
            _ => self.count(),
        };
        Some(match self.held_value() {
            Value::Numbers(octets, _) => {
                let all = octets.get(self.offset..self.offset.saturating_add(count));
                Cow::Borrowed(all.unwrap_or_default())
            }
            _ => Cow::Owned(vec![0; count]),
        })
    }

    /// Calls `visit` with every value below this one that has no parts, and with its path, in the order of
    /// the type; with a sequence, map or array as a whole.
    pub fn walk(&self, visit: &mut dyn FnMut(&str, Self)) {
        self.walk_from(&mut String::new(), visit);
    }

    fn walk_from(&self, path: &mut String, visit: &mut dyn FnMut(&str, Self)) {
        let start = path.len();
        let mut below = |name: &str, value: Self| {
            if start > 0 {
                path.push('.');
            }
            path.push_str(name);
            value.walk_from(path, visit);
            path.truncate(start);
        };
        match self.get() {
            DataValue::Structure => self.members().for_each(|(name, value)| below(name, value)),
            DataValue::Union => {
                if let Some(discriminator) = self.discriminator() {
                    below(super::path::DISCRIMINATOR, discriminator);
                }
                if let Some((name, value)) = self.selected() {
                    below(name, value);
                }
            }
            _ => visit(path, *self),
        }
    }
}

/// The bits that so many octets are.
pub(super) fn bits_of(octets: &[u8], order: Endianness) -> u64 {
    let append = |bits: u64, octet: &u8| bits << 8 | u64::from(*octet);
    match order {
        Endianness::Little => octets.iter().rev().fold(0, append),
        Endianness::Big => octets.iter().fold(0, append),
    }
}

impl Type {
    /// Whether both are the same key of a map.
    pub(super) fn same_key(&self, one: &Value<'_>, two: &Value<'_>) -> bool {
        DataRef::new(self, one).get() == DataRef::new(self, two).get()
    }
}

impl DataRef<'_> {
    /// The value of a map that has a key of this text.
    pub(super) fn value_at_key(&self, of_keys: &Type, key: &str) -> Option<Self> {
        let wanted = of_keys.value_of(&Scalar::from(key))?;
        self.pairs().find(|(known, _)| of_keys.same_key(known.held_value(), &wanted)).map(|(_, value)| value)
    }
}
