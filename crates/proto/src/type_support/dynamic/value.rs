//! Values of a type that is described at run time. Numbers stay in the payload they were read from; texts are
//! copied, lest they change after they were checked.

use crate::cdr::Endianness;

use super::model::{Kind, Structure, Type, Union};

#[derive(Debug)]
pub(super) enum Value<'a> {
    /// What nobody sent, or nobody asked for: zero, empty, the first literal (XTypes 1.3 table 9).
    Initial,
    /// An optional member that is not there.
    Absent,
    /// The bits of a number, enumeration or bit mask.
    Number(u64),
    Text(String),
    /// 16-bit units.
    WideText(&'a [u8], Endianness),
    /// The elements of a sequence or array of numbers.
    Numbers(&'a [u8], Endianness),
    /// Of any other sequence or array; of a map, keys and values in turn.
    Elements(Vec<Self>),
    /// Members in their places.
    Structure(Vec<Self>),
    /// The discriminator, and the place and value of the member that it selects.
    Union(u64, Option<(usize, Box<Self>)>),
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
    /// The discriminator and the selected member where the union has no value.
    pub(super) fn initial_case(&self) -> (u64, Option<usize>) {
        (self.initial.cast_unsigned(), self.select(self.initial))
    }
}
