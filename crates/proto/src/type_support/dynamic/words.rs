//! What belongs in a place of a value, in words.

use std::fmt::Write as _;

use crate::types::Primitive;

use super::model::{Kind, Member, Type};
use super::scalar::Scalar;

/// Names that a sentence lists at most.
const NAMES_MAX: usize = 20;

impl Type {
    /// What is expected of a value.
    pub(super) fn expected(&self) -> String {
        let bounded = |what: &str, bound: &Option<usize>, of: &str| match bound {
            Some(bound) => format!("{what} of at most {bound} {of}"),
            None => what.to_owned(),
        };
        match &self.kind {
            Kind::Primitive(primitive) => in_words(*primitive),
            Kind::Enumeration(it) => {
                let names: Vec<&str> = it.literals.iter().map(|(name, _)| &**name).collect();
                let all = listed(names.into_iter().filter(|name| !name.is_empty()));
                format!("a literal of {} {all}", it.name).trim_end().to_owned()
            }
            Kind::Bitmask(it) if !it.fields.is_empty() => {
                let all = listed(it.fields.iter().map(|field| field.name.as_str()));
                format!("fields of {} {all}", it.name)
            }
            Kind::Bitmask(it) => {
                let all = listed(it.flags.iter().map(|(name, _)| name.as_str()));
                format!("flags of {} {all}", it.name).trim_end().to_owned()
            }
            Kind::Text { wide: false, bound } => bounded("a string", bound, "octets"),
            Kind::Text { wide: true, bound } => bounded("a wide string", bound, "units of UTF-16"),
            Kind::Sequence { bound, element } if element.is_octet() => {
                bounded("octets in base64 or a sequence of numbers", bound, "octets")
            }
            Kind::Sequence { bound, .. } => bounded("a sequence", bound, "elements"),
            Kind::Array { dimensions, .. } => {
                let sizes: Vec<String> = dimensions.iter().map(usize::to_string).collect();
                format!("an array of {} elements", sizes.join(" × "))
            }
            Kind::Map { bound, .. } => bounded("a map", bound, "pairs"),
            Kind::Structure(structure) => format!("a structure {}", structure.name),
            Kind::Union(union) => format!("a union {}", union.name),
            Kind::TooDeep => "nothing, so deep in a sample".to_owned(),
        }
    }

    /// What is expected instead of a value that is none of this type.
    pub(super) fn expected_instead_of(&self, scalar: &Scalar<'_>) -> String {
        match (&self.kind, scalar) {
            (Kind::Text { wide: false, .. }, Scalar::Text(text)) if text.contains('\0') => {
                "a string without NUL, which ends a string in CDR".to_owned()
            }
            _ => self.expected(),
        }
    }

    /// The members that a structure or union has.
    pub(super) fn expected_members(&self) -> String {
        let members = match &self.kind {
            Kind::Structure(structure) => &structure.members,
            Kind::Union(union) => &union.cases,
            _ => return self.expected(),
        };
        format!("a member of {} {}", self.expected(), names_of(members))
    }
}

fn names_of(members: &[Member]) -> String {
    listed(members.iter().map(|member| member.name.as_str()))
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let (mut text, mut count) = (String::new(), 0);
    for name in names {
        if count == NAMES_MAX {
            text.push_str(", …");
            break;
        }
        let _ = write!(text, "{}{name}", if count == 0 { "(" } else { ", " });
        count += 1;
    }
    if count > 0 {
        text.push(')');
    }
    text
}

fn in_words(primitive: Primitive) -> String {
    let bytes = super::model::primitive_bytes(primitive);
    let name = primitive.name();
    match primitive {
        Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64 => {
            let most = (1_i128 << (8 * bytes - 1)) - 1;
            format!("{name} ({} to {most})", -most - 1)
        }
        Primitive::Byte | Primitive::Uint8 | Primitive::Uint16 | Primitive::Uint32 | Primitive::Uint64 => {
            format!("{name} (0 to {})", (1_i128 << (8 * bytes)) - 1)
        }
        Primitive::Char8 => "char: a text of one letter of Latin-1".to_owned(),
        Primitive::Char16 => "wchar: a text of one unit of UTF-16".to_owned(),
        Primitive::Float32 | Primitive::Float64 | Primitive::Float128 => {
            format!("{name}: a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
        }
        Primitive::Boolean => name.to_owned(),
    }
}
