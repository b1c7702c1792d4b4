//! What content filters find in samples of a type that is described at run time.

use std::sync::Arc;

use crate::cdr::{FieldKind, FieldSource, FieldValue, NamedFields};
use crate::types::Primitive;

use super::model::{Kind, Structure, Type};
use super::value::Value;

/// A type, for those who look for members by name.
#[derive(Clone, Copy)]
pub(super) struct Names<'a>(pub(super) &'a Type);

impl<'a> Names<'a> {
    const fn as_structure(self) -> Option<&'a Structure> {
        if let Kind::Structure(structure) = &self.0.kind { Some(structure) } else { None }
    }
}

impl<'a> NamedFields<'a> for Names<'a> {
    fn structure(self) -> Option<&'a str> {
        self.as_structure().map(|structure| structure.name.as_str())
    }

    fn members(self) -> impl Iterator<Item = (&'a str, Self)> {
        let members = self.as_structure().map_or(&[][..], |structure| &structure.members);
        members.iter().map(|member| (member.name.as_str(), Self(&member.ty)))
    }

    fn kind(self) -> Option<FieldKind<'a>> {
        match &self.0.kind {
            Kind::Primitive(Primitive::Boolean) => Some(FieldKind::Boolean),
            Kind::Primitive(Primitive::Char8) => Some(FieldKind::Character),
            Kind::Primitive(Primitive::Float32 | Primitive::Float64) => Some(FieldKind::Float),
            Kind::Primitive(Primitive::Char16 | Primitive::Float128) => None,
            Kind::Primitive(_) => Some(FieldKind::Integer),
            Kind::Text { wide: false, .. } => Some(FieldKind::Text),
            Kind::Enumeration(enumeration) => Some(FieldKind::Enumeration(&enumeration.literals)),
            _ => None,
        }
    }
}

/// A sample, of which the values of members are asked for.
pub(super) struct Fields<'a> {
    pub(super) ty: &'a Arc<Type>,
    pub(super) value: Value<'a>,
}

impl FieldSource for Fields<'_> {
    fn field_at(&self, path: &[u16]) -> Option<FieldValue<'_>> {
        let (mut ty, mut value) = (self.ty, &self.value);
        for step in path {
            let Kind::Structure(structure) = &ty.kind else { return None };
            let place = usize::from(*step);
            let member = structure.members.get(place)?;
            value = match value {
                Value::Structure(values) => values.get(place)?,
                _ if member.optional => &Value::Absent,
                _ => &Value::Initial,
            };
            if matches!(value, Value::Absent) {
                return None;
            }
            ty = &member.ty;
        }
        leaf(ty, value)
    }
}

fn leaf<'a>(ty: &Type, value: &'a Value<'_>) -> Option<FieldValue<'a>> {
    let bits = if let Value::Number(bits) = value { *bits } else { ty.initial_number() };
    let octets = bits.to_le_bytes();
    Some(match Names(ty).kind()? {
        FieldKind::Boolean => FieldValue::Boolean(bits != 0),
        FieldKind::Character => FieldValue::Character(char::from(*octets.first()?)),
        FieldKind::Float if ty.number_bytes() == Some(8) => FieldValue::Float(f64::from_bits(bits)),
        FieldKind::Float => FieldValue::Float(f64::from(f32::from_le_bytes(*octets.first_chunk()?))),
        FieldKind::Integer if ty.primitive() == Some(Primitive::Uint64) => FieldValue::Integer(bits.into()),
        FieldKind::Integer | FieldKind::Enumeration(_) => FieldValue::Integer(ty.integer(bits).into()),
        FieldKind::Text => FieldValue::Text(if let Value::Text(text) = value { text.as_str() } else { "" }),
    })
}
