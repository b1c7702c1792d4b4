//! Values as serde has them: written, and read by their type. Formats must describe themselves, as JSON does.
//! The table at [`DynamicData`] tells the form.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeMap, SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};

use crate::cdr::{DEPTH_MAX, Endianness};
use crate::types::Primitive;

use super::data::{DataError, DynamicData, put_bits};
use super::model::{Bitmask, Kind, Structure, Type, Union};
use super::path::{self, DISCRIMINATOR};
use super::scalar::Scalar;
use super::value::Value;
use super::view::{DataRef, DataValue};
use super::{DynamicType, base64};

impl Serialize for DynamicData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.root().serialize(serializer)
    }
}

impl Serialize for DataRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.get() {
            DataValue::Absent => serializer.serialize_none(),
            DataValue::Boolean(value) => serializer.serialize_bool(value),
            DataValue::Signed(number) => serializer.serialize_i64(number),
            DataValue::Unsigned(number) => serializer.serialize_u64(number),
            DataValue::Bitmask(bits) => match &self.ty.kind {
                Kind::Bitmask(bitmask) if !bitmask.flags.is_empty() => {
                    serialize_flags(bitmask, bits, serializer)
                }
                Kind::Bitmask(bitset) if bitset.has_in_fields(bits) => {
                    let mut map = serializer.serialize_map(None)?;
                    for field in &bitset.fields {
                        match (field.holder, field.value_of(bits)) {
                            (Primitive::Boolean, value) => map.serialize_entry(&field.name, &(value != 0))?,
                            (_, value) if value < 0 => map.serialize_entry(&field.name, &(value as i64))?,
                            (_, value) => map.serialize_entry(&field.name, &(value as u64))?,
                        }
                    }
                    map.end()
                }
                _ => serializer.serialize_u64(bits),
            },
            DataValue::Float32(number) if number.is_finite() => serializer.serialize_f32(number),
            DataValue::Float32(number) => serializer.serialize_str(not_finite(number.into())),
            DataValue::Float64(number) if number.is_finite() => serializer.serialize_f64(number),
            DataValue::Float64(number) => serializer.serialize_str(not_finite(number)),
            DataValue::Character(letter) => serializer.serialize_char(letter),
            DataValue::WideCharacter(unit) => match char::from_u32(unit.into()) {
                Some(letter) => serializer.serialize_char(letter),
                None => serializer.serialize_u16(unit),
            },
            DataValue::Text(text) => serializer.serialize_str(&text),
            DataValue::Enumeration { literal: Some(name), .. } => serializer.serialize_str(name),
            DataValue::Enumeration { value, literal: None } => serializer.serialize_i64(value),
            DataValue::Structure => {
                let present = self.members().filter(|(_, value)| !value.is_absent());
                let mut map = serializer.serialize_map(None)?;
                for (name, value) in present {
                    map.serialize_entry(name, &value)?;
                }
                map.end()
            }
            DataValue::Union => {
                let mut map = serializer.serialize_map(None)?;
                if let Some(discriminator) = self.discriminator() {
                    map.serialize_entry(DISCRIMINATOR, &discriminator)?;
                }
                if let Some((name, value)) = self.selected() {
                    map.serialize_entry(name, &value)?;
                }
                map.end()
            }
            DataValue::Elements(_) if self.has_octets() => {
                serializer.serialize_str(&base64::encode(&self.octets().unwrap_or_default()))
            }
            DataValue::Elements(_) => serializer.collect_seq(self.elements()),
            DataValue::Map(_) if self.has_text_keys() => {
                let mut map = serializer.serialize_map(None)?;
                for (key, value) in self.pairs() {
                    let key = key.key_text().ok_or_else(|| S::Error::custom("a key is no text"))?;
                    map.serialize_entry(&key, &value)?;
                }
                map.end()
            }
            DataValue::Map(_) => serializer.collect_seq(self.pairs()),
        }
    }
}

fn serialize_flags<S: Serializer>(bitmask: &Bitmask, bits: u64, serializer: S) -> Result<S::Ok, S::Error> {
    let (names, rest) = bitmask.names_of(bits);
    let mut list = serializer.serialize_seq(None)?;
    for name in names {
        list.serialize_element(name)?;
    }
    if rest != 0 {
        list.serialize_element(&rest)?;
    }
    list.end()
}

/// A flag: its name, or a number.
struct Flag(String);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Flags;

        impl Visitor<'_> for Flags {
            type Value = Flag;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a flag, or a number")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Flag, E> {
                Ok(Flag(name.to_owned()))
            }

            fn visit_u64<E: serde::de::Error>(self, bits: u64) -> Result<Flag, E> {
                Ok(Flag(bits.to_string()))
            }
        }

        deserializer.deserialize_any(Flags)
    }
}

const fn not_finite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number.is_sign_positive() {
        "Infinity"
    } else {
        "-Infinity"
    }
}

impl DataRef<'_> {
    /// Whether it is a sequence or array of octets, in its innermost dimension.
    fn has_octets(&self) -> bool {
        match &self.ty.kind {
            Kind::Sequence { element, .. } => element.is_octet(),
            Kind::Array { element, dimensions, .. } => {
                element.is_octet() && self.level + 1 == dimensions.len()
            }
            _ => false,
        }
    }

    /// Whether the keys of this map are names of the members of an object.
    fn has_text_keys(&self) -> bool {
        let Kind::Map { key, .. } = &self.ty.kind else { return false };
        has_key_text(key)
    }

    fn key_text(&self) -> Option<String> {
        Some(match self.get() {
            DataValue::Text(text) => text.into_owned(),
            DataValue::Boolean(value) => value.to_string(),
            DataValue::Signed(number) => number.to_string(),
            DataValue::Unsigned(number) => number.to_string(),
            DataValue::Bitmask(bits) => match &self.ty.kind {
                Kind::Bitmask(bitmask) => bitmask.text_of(bits),
                _ => bits.to_string(),
            },
            DataValue::Character(letter) => letter.to_string(),
            DataValue::Enumeration { literal: Some(name), .. } => name.to_owned(),
            DataValue::Enumeration { value, literal: None } => value.to_string(),
            _ => return None,
        })
    }
}

const fn has_key_text(key: &Type) -> bool {
    match &key.kind {
        Kind::Text { .. } | Kind::Enumeration(_) | Kind::Bitmask(_) => true,
        Kind::Primitive(primitive) => {
            !matches!(primitive, Primitive::Char16 | Primitive::Float32 | Primitive::Float64)
        }
        _ => false,
    }
}

impl DynamicType {
    /// Reads a value from a format that describes itself, such as JSON; see [`DynamicData`].
    ///
    /// # Errors
    /// Those of the format; of what does not fit, the words of [`DataError`].
    pub fn deserialize_data<'de, D: Deserializer<'de>>(
        &self,
        deserializer: D,
    ) -> Result<DynamicData, D::Error> {
        let mut reading = Reading { path: String::new(), depth: 0, parts_left: PARTS_MAX };
        let value =
            Seed { ty: &self.ty, optional: false, reading: &mut reading }.deserialize(deserializer)?;
        Ok(DynamicData { ty: Arc::clone(&self.ty), value })
    }
}

/// Parts of a value that is read at most: objects of few letters may have many members.
const PARTS_MAX: usize = 1 << 22;

struct Reading {
    path: String,
    depth: usize,
    parts_left: usize,
}

impl Reading {
    fn wrong<E: serde::de::Error>(&self, expected: impl Into<String>, found: impl fmt::Display) -> E {
        E::custom(DataError::new(&self.path, expected, found))
    }

    /// Counts parts that take memory.
    fn count<E: serde::de::Error>(&mut self, parts: usize) -> Result<(), E> {
        match self.parts_left.checked_sub(parts) {
            Some(left) => self.parts_left = left,
            None => return Err(self.wrong(format!("at most {PARTS_MAX} parts in a sample"), "more")),
        }
        Ok(())
    }
}

/// Reads a value of a type.
struct Seed<'s> {
    ty: &'s Type,
    optional: bool,
    reading: &'s mut Reading,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value<'static>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Seed<'_> {
    fn scalar<E: serde::de::Error>(self, scalar: &Scalar<'_>) -> Result<Value<'static>, E> {
        if self.optional && matches!(scalar, Scalar::Absent) {
            return Ok(Value::Absent);
        }
        self.ty
            .value_of(scalar)
            .ok_or_else(|| self.reading.wrong(self.ty.expected_instead_of(scalar), scalar))
    }

    fn nested<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.reading.depth += 1;
        if self.reading.depth > 2 * DEPTH_MAX {
            return Err(self.reading.wrong("a value that is nested less", "too many levels"));
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value<'static>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ty.expected())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Self::Value, E> {
        self.scalar(&Scalar::Boolean(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
        self.scalar(&Scalar::from(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
        self.scalar(&Scalar::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
        self.scalar(&Scalar::Float(value))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
        self.scalar(&Scalar::from(value))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        self.scalar(&Scalar::Absent)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        self.scalar(&Scalar::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self::Value, A::Error> {
        self.nested()?;
        let Self { ty, reading, .. } = self;
        let value = match &ty.kind {
            Kind::Sequence { bound, element } => {
                let mut many = Many::new(element);
                let count = many.take_all(element, &[], reading, &mut list)?;
                if bound.is_some_and(|bound| count > bound) {
                    return Err(reading.wrong(ty.expected(), format_args!("{count} elements")));
                }
                many.into_value()
            }
            Kind::Array { dimensions, element, .. } => {
                let mut many = Many::new(element);
                many.take_dimension(element, dimensions, reading, &mut list)?;
                many.into_value()
            }
            Kind::Map { bound, key, element } => {
                let mut values = Vec::new();
                let mut at = 0;
                while list
                    .next_element_seed(Pair { at, key, element, reading, values: &mut values })?
                    .is_some()
                {
                    at += 1;
                }
                check_pairs(ty, reading, &values, *bound)?;
                Value::Elements(values)
            }
            Kind::Bitmask(bitmask) => {
                let mut bits = 0;
                while let Some(Flag(name)) = list.next_element()? {
                    let wrong = || reading.wrong(ty.expected(), format_args!("{name:?}"));
                    bits |= bitmask.bit_named(&name).ok_or_else(wrong)?;
                }
                Value::Number(bits)
            }
            _ => return Err(reading.wrong(ty.expected(), "an array")),
        };
        reading.depth -= 1;
        Ok(value)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<Self::Value, A::Error> {
        self.nested()?;
        let Self { ty, reading, .. } = self;
        let value = match &ty.kind {
            Kind::Structure(structure) => structure_of(ty, structure, reading, map)?,
            Kind::Union(union) => union_of(ty, union, reading, map)?,
            Kind::Bitmask(bitset) if !bitset.fields.is_empty() => bitset_of(ty, bitset, reading, map)?,
            Kind::Map { bound, key, element } if has_key_text(key) => {
                let values = pairs_of(key, element, reading, map)?;
                check_pairs(ty, reading, &values, *bound)?;
                Value::Elements(values)
            }
            _ => return Err(reading.wrong(ty.expected(), "an object")),
        };
        reading.depth -= 1;
        Ok(value)
    }
}

fn check_pairs<E: serde::de::Error>(
    ty: &Type,
    reading: &Reading,
    values: &[Value<'_>],
    bound: Option<usize>,
) -> Result<(), E> {
    let pairs = values.len() / 2;
    if bound.is_some_and(|bound| pairs > bound) {
        return Err(reading.wrong(ty.expected(), format_args!("{pairs} pairs")));
    }
    Ok(())
}

/// The name of a member.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

fn structure_of<'de, A: MapAccess<'de>>(
    ty: &Type,
    structure: &Structure,
    reading: &mut Reading,
    mut map: A,
) -> Result<Value<'static>, A::Error> {
    reading.count(structure.members.len() + 1)?;
    let mut values: Vec<_> = (0..structure.members.len()).map(|at| structure.initial_member(at)).collect();
    let mut told = vec![false; values.len()];
    while let Some(Name(name)) = map.next_key()? {
        let found = structure.members.iter().position(|member| member.name == name);
        let place =
            found.and_then(|at| Some((structure.members.get(at)?, values.get_mut(at)?, told.get_mut(at)?)));
        let Some((member, value, told)) = place else {
            return Err(reading.wrong(ty.expected_members(), format_args!("{name:?}")));
        };
        let start = reading.path.len();
        path::push_member(&mut reading.path, &name);
        if std::mem::replace(told, true) {
            return Err(reading.wrong("one value", "a second one"));
        }
        *value = map.next_value_seed(Seed { ty: &member.ty, optional: member.optional, reading })?;
        reading.path.truncate(start);
    }
    Ok(Value::Structure(values))
}

/// A bit set by its fields; those that are not told are 0.
fn bitset_of<'de, A: MapAccess<'de>>(
    ty: &Type,
    bitset: &Bitmask,
    reading: &mut Reading,
    mut map: A,
) -> Result<Value<'static>, A::Error> {
    let (mut bits, mut told) = (0, 0);
    while let Some(Name(name)) = map.next_key()? {
        let field = bitset.fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| reading.wrong(ty.expected(), format_args!("{name:?}")))?;
        let start = reading.path.len();
        path::push_member(&mut reading.path, &name);
        if told & field.mask() != 0 {
            return Err(reading.wrong("one value", "a second one"));
        }
        told |= field.mask();
        let FieldValue(value) = map.next_value()?;
        let fitting = field.bits_of(value);
        bits |= fitting.ok_or_else(|| reading.wrong(format!("a value of {} bits", field.bits), value))?;
        reading.path.truncate(start);
    }
    Ok(Value::Number(bits))
}

/// The value of a field: a number, or whether a bit is set.
struct FieldValue(i128);

impl<'de> Deserialize<'de> for FieldValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldValues;

        impl Visitor<'_> for FieldValues {
            type Value = FieldValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, true or false")
            }

            fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<FieldValue, E> {
                Ok(FieldValue(value.into()))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<FieldValue, E> {
                Ok(FieldValue(value.into()))
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<FieldValue, E> {
                Ok(FieldValue(value.into()))
            }
        }

        deserializer.deserialize_any(FieldValues)
    }
}

fn union_of<'de, A: MapAccess<'de>>(
    ty: &Type,
    union: &Union,
    reading: &mut Reading,
    mut map: A,
) -> Result<Value<'static>, A::Error> {
    reading.count(2)?;
    let (mut told, mut member) = (None, None);
    while let Some(Name(name)) = map.next_key()? {
        let start = reading.path.len();
        path::push_member(&mut reading.path, &name);
        if name == DISCRIMINATOR {
            let seed = Seed { ty: &union.discriminator, optional: false, reading };
            let Value::Number(bits) = map.next_value_seed(seed)? else {
                return Err(reading.wrong(union.discriminator.expected(), "something else"));
            };
            if told.replace(bits).is_some() {
                return Err(reading.wrong("one discriminator", "a second one"));
            }
            reading.path.truncate(start);
            continue;
        }
        let found = union.cases.iter().position(|case| case.name == name);
        let Some((at, case)) = found.and_then(|at| Some((at, union.cases.get(at)?))) else {
            reading.path.truncate(start);
            return Err(reading.wrong(ty.expected_members(), format_args!("{name:?}")));
        };
        let value = map.next_value_seed(Seed { ty: &case.ty, optional: case.optional, reading })?;
        reading.path.truncate(start);
        if member.replace((at, value)).is_some() {
            return Err(reading.wrong("one member of a union", format_args!("a second one, {name:?}")));
        }
    }
    let selected = |bits: u64| union.select(union.discriminator.integer(bits));
    let (bits, at) = match (told, &member) {
        (Some(bits), _) => (bits, selected(bits)),
        (None, Some((at, _))) => {
            let no_label = || reading.wrong(format!("{DISCRIMINATOR} of {}", ty.expected()), "none");
            (union.label_of(*at).ok_or_else(no_label)?, Some(*at))
        }
        (None, None) => union.initial_case(),
    };
    let name_of = |at: usize| union.cases.get(at).map_or("", |case| &case.name);
    match (at, member) {
        (Some(at), Some((other, value))) if at == other => {
            Ok(Value::Union(bits, Some((at, Box::new(value)))))
        }
        (at, Some((other, _))) => {
            let expected = at.map_or("no member", name_of);
            let found = format_args!("`{}`, which the discriminator does not select", name_of(other));
            Err(reading.wrong(format!("`{expected}`"), found))
        }
        (Some(at), None) => Ok(Value::Union(bits, Some((at, Box::new(union.initial_member(at).clone()))))),
        (None, None) => Ok(Value::Union(bits, None)),
    }
}

fn pairs_of<'de, A: MapAccess<'de>>(
    of_keys: &Type,
    element: &Type,
    reading: &mut Reading,
    mut map: A,
) -> Result<Vec<Value<'static>>, A::Error> {
    let mut values = Vec::new();
    while let Some(Name(key)) = map.next_key()? {
        reading.count(2)?;
        let start = reading.path.len();
        path::push_key(&mut reading.path, &key);
        let found = Scalar::from(key.as_str());
        let Some(key) = of_keys.value_of(&found) else {
            return Err(reading.wrong(format!("a key, {}", of_keys.expected_instead_of(&found)), found));
        };
        values.push(key);
        values.push(map.next_value_seed(Seed { ty: element, optional: false, reading })?);
        reading.path.truncate(start);
    }
    Ok(values)
}

/// A pair of a map whose keys are no texts.
struct Pair<'s> {
    at: usize,
    key: &'s Type,
    element: &'s Type,
    reading: &'s mut Reading,
    values: &'s mut Vec<Value<'static>>,
}

impl<'de> DeserializeSeed<'de> for Pair<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pair<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pair of key and value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { at, key, element, reading, values } = self;
        reading.count(2)?;
        let start = reading.path.len();
        reading.path.push_str(&format!("[{at}]"));
        for ty in [key, element] {
            let value = list.next_element_seed(Seed { ty, optional: false, reading })?;
            values.push(value.ok_or_else(|| reading.wrong("a pair of key and value", "less"))?);
        }
        if list.next_element::<serde::de::IgnoredAny>()?.is_some() {
            return Err(reading.wrong("a pair of key and value", "more"));
        }
        reading.path.truncate(start);
        Ok(())
    }
}

/// The elements of a sequence or array.
enum Many {
    Numbers(Vec<u8>, usize),
    Values(Vec<Value<'static>>),
}

impl Many {
    fn new(element: &Type) -> Self {
        match element.primitive() {
            Some(_) => Self::Numbers(Vec::new(), element.number_bytes().unwrap_or(1)),
            None => Self::Values(Vec::new()),
        }
    }

    fn into_value(self) -> Value<'static> {
        match self {
            Self::Numbers(octets, _) => Value::Numbers(octets.into(), Endianness::NATIVE),
            Self::Values(values) => Value::Elements(values),
        }
    }

    fn push(&mut self, value: Value<'static>) {
        match (self, value) {
            (Self::Numbers(octets, bytes), Value::Number(bits)) => {
                let start = octets.len();
                octets.resize(start + *bytes, 0);
                put_bits(octets.get_mut(start..).unwrap_or_default(), Endianness::NATIVE, bits);
            }
            (Self::Values(values), value) => values.push(value),
            // A number is read as nothing else.
            (Self::Numbers(..), _) => {}
        }
    }

    /// All that a list has, which are elements, or of arrays those of the next dimension: how many there
    /// were.
    fn take_all<'de, A: SeqAccess<'de>>(
        &mut self,
        element: &Type,
        inner: &[usize],
        reading: &mut Reading,
        list: &mut A,
    ) -> Result<usize, A::Error> {
        let (start, mut at) = (reading.path.len(), 0);
        loop {
            reading.path.push_str(&format!("[{at}]"));
            let is_there = if inner.is_empty() {
                let value = list.next_element_seed(Seed { ty: element, optional: false, reading })?;
                value.map(|value| self.push(value)).is_some()
            } else {
                list.next_element_seed(Dimension { many: self, element, dimensions: inner, reading })?
                    .is_some()
            };
            reading.path.truncate(start);
            if !is_there {
                return Ok(at);
            }
            reading.count(1)?;
            at += 1;
        }
    }

    fn take_dimension<'de, A: SeqAccess<'de>>(
        &mut self,
        element: &Type,
        dimensions: &[usize],
        reading: &mut Reading,
        list: &mut A,
    ) -> Result<(), A::Error> {
        let Some((size, inner)) = dimensions.split_first() else { return Ok(()) };
        let count = self.take_all(element, inner, reading, list)?;
        if count == *size {
            return Ok(());
        }
        Err(reading.wrong(format!("an array of {size} elements"), format_args!("{count}")))
    }
}

/// The elements of an array in one dimension.
struct Dimension<'s> {
    many: &'s mut Many,
    element: &'s Type,
    dimensions: &'s [usize],
    reading: &'s mut Reading,
}

impl<'de> DeserializeSeed<'de> for Dimension<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Dimension<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of {} elements", self.dimensions.first().unwrap_or(&0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { many, element, dimensions, reading } = self;
        many.take_dimension(element, dimensions, reading, &mut list)
    }

    /// The innermost dimension of octets.
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        let Self { many, element, dimensions, reading } = self;
        let octets = match dimensions {
            [size] if element.is_octet() => base64::decode(text).filter(|octets| octets.len() == *size),
            _ => None,
        };
        let wrong = || {
            let size = dimensions.first().unwrap_or(&0);
            reading.wrong(format!("an array of {size} elements"), Scalar::from(text))
        };
        octets.ok_or_else(wrong)?.into_iter().for_each(|octet| many.push(Value::Number(octet.into())));
        Ok(())
    }
}
