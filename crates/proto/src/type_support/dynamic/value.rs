//! Values of a type that is described at run time. Numbers stay in the payload they were read from, until
//! somebody keeps the value; texts are copied, lest they change after they were checked.

use std::borrow::Cow;

use crate::cdr::Endianness;

use super::model::{Kind, Structure, Type, Union};

#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    /// What nobody sent, or nobody asked for: zero, empty, the first literal (XTypes 1.3 table 9).
    Initial,
    /// An optional member that is not there.
    Absent,
    /// The bits of a number, enumeration or bit mask.
    Number(u64),
    Text(String),
    /// 16-bit units.
    WideText(Cow<'a, [u8]>, Endianness),
    /// The elements of a sequence or array of numbers.
    Numbers(Cow<'a, [u8]>, Endianness),
    /// Of any other sequence or array; of a map, keys and values in turn.
    Elements(Vec<Self>),
    /// Members in their places.
    Structure(Vec<Self>),
    /// The discriminator, and the place and value of the member that it selects.
    Union(u64, Option<(usize, Box<Self>)>),
}

impl Value<'_> {
    /// The same, independent of the payload.
    pub(super) fn into_owned(self) -> Value<'static> {
        let all = |values: Vec<Self>| values.into_iter().map(Self::into_owned).collect();
        match self {
            Self::Initial => Value::Initial,
            Self::Absent => Value::Absent,
            Self::Number(bits) => Value::Number(bits),
            Self::Text(text) => Value::Text(text),
            Self::WideText(octets, order) => Value::WideText(Cow::Owned(octets.into_owned()), order),
            Self::Numbers(octets, order) => Value::Numbers(Cow::Owned(octets.into_owned()), order),
            Self::Elements(values) => Value::Elements(all(values)),
            Self::Structure(values) => Value::Structure(all(values)),
            Self::Union(bits, selected) => {
                let owned = |(place, member): (usize, Box<Self>)| (place, Box::new(member.into_owned()));
                Value::Union(bits, selected.map(owned))
            }
        }
    }
}

/// What a value nobody sent consists of.
impl Type {
    /// The number that a member of this type is without a value.
    pub(super) fn initial_number(&self) -> u64 {
        match &self.kind {
            Kind::Enumeration(enumeration) => enumeration.initial.cast_unsigned(),
            _ => 0,
        }
    }
}

impl Structure {
    /// The value of the member in this place where the structure has none.
    pub(super) fn initial_member(&self, place: usize) -> Value<'static> {
        match self.members.get(place) {
            Some(member) if member.optional => Value::Absent,
            _ => Value::Initial,
        }
    }
}

impl Union {
    /// The value of the member in this place where the union has none.
    pub(super) fn initial_member(&self, place: usize) -> &'static Value<'static> {
        let optional = self.cases.get(place).is_some_and(|case| case.optional);
        if optional { &Value::Absent } else { &Value::Initial }
    }

    /// The discriminator and the selected member where the union has no value.
    pub(super) fn initial_case(&self) -> (u64, Option<usize>) {
        (self.initial.cast_unsigned(), self.select(self.initial))
    }
}
