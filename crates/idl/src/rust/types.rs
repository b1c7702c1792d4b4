//! Types and values as Rust writes them.

use super::Writer;
use crate::model::{DefinitionId, DefinitionKind, Element, Member, Primitive, Type, Value};

/// A part of a type that the derive has no attribute for.
pub(super) struct Lost {
    /// The bound of something within a collection.
    pub(super) bound: bool,
}

impl Writer<'_> {
    /// The path to a definition from the module of another.
    pub(super) fn path(&self, from: DefinitionId, to: DefinitionId) -> String {
        let (here, _) = &self.names.paths[from.0];
        let (there, name) = &self.names.paths[to.0];
        let shared = here.iter().zip(there).take_while(|(one, other)| one == other).count();
        let mut parts = vec!["super"; here.len() - shared];
        parts.extend(there.iter().skip(shared).map(String::as_str));
        parts.push(name);
        parts.join("::")
    }

    /// A type of the standard library, by its full path where a type of the module has its name.
    pub(super) fn std(&self, from: DefinitionId, name: &str, path: &str) -> String {
        let (here, _) = &self.names.paths[from.0];
        let hidden = self.names.types.get(here).is_some_and(|types| types.contains(name));
        if hidden { format!("::std::{path}::{name}") } else { name.to_owned() }
    }

    /// The type of a member, and its bound.
    pub(super) fn member_type(&mut self, of: DefinitionId, member: &Member) -> (String, Option<u32>) {
        let mut lost = Lost { bound: false };
        let boxed = self.is_boxed(of, member);
        let mut text = self.unboxed(of, &member.ty, boxed, &mut lost);
        let mut bound = outer_bound(self.model.resolved(&member.ty));
        if boxed {
            text = format!("{}<{text}>", self.std(of, "Box", "boxed"));
            lost.bound |= bound.take().is_some();
        }
        if member.optional {
            text = format!("{}<{text}>", self.std(of, "Option", "option"));
        }
        if lost.bound {
            let message = format!("the bound within the type of `{}` is not checked", member.name);
            let hint = "the derive checks bounds of members, not of what is in collections, boxes and aliases of those";
            self.weaker(of, "bound", message, hint);
        }
        (text, bound)
    }

    /// Whether a member stands in a box. A key has none: its largest size must be known.
    pub(super) fn is_boxed(&self, of: DefinitionId, member: &Member) -> bool {
        (member.external && !member.key) || self.is_direct(of, &member.ty)
    }

    /// Whether a member of this type would make the type contain itself.
    fn is_direct(&self, of: DefinitionId, ty: &Type) -> bool {
        match self.model.resolved(ty) {
            Type::Named(id) => *id == of && self.circles.together(of, of),
            Type::Array { element, .. } => !element.external && self.is_direct(of, &element.ty),
            _ => false,
        }
    }

    /// The type of what is boxed already, if `external`.
    fn unboxed(&mut self, of: DefinitionId, ty: &Type, external: bool, lost: &mut Lost) -> String {
        match ty {
            Type::Named(id)
                if external && !matches!(self.model.definition(*id).kind, DefinitionKind::Alias(_)) =>
            {
                if *id == of { "Self".to_owned() } else { self.path(of, *id) }
            }
            _ => self.ty(of, ty, lost),
        }
    }

    pub(super) fn ty(&mut self, of: DefinitionId, ty: &Type, lost: &mut Lost) -> String {
        match ty {
            Type::Primitive(primitive) => primitive_name(*primitive).to_owned(),
            Type::String { wide: false, .. } => self.std(of, "String", "string"),
            Type::String { wide: true, .. } => "plainsong::cdr::WString".to_owned(),
            Type::Sequence { element, .. } => {
                let element = self.element(of, element, lost);
                format!("{}<{element}>", self.std(of, "Vec", "vec"))
            }
            Type::Array { element, dimensions } => {
                let element = self.element(of, element, lost);
                dimensions.iter().rev().fold(element, |inner, size| format!("[{inner}; {size}]"))
            }
            Type::Map { key, value, .. } => {
                let (key, value) = (self.element(of, key, lost), self.element(of, value, lost));
                format!("std::collections::BTreeMap<{key}, {value}>")
            }
            // `Lacking` has it.
            Type::Fixed { .. } => "()".to_owned(),
            Type::Named(id) if self.circles.together(of, *id) => match &self.model.definition(*id).kind {
                // An alias within a circle would hide the circle from the derive.
                DefinitionKind::Alias(aliased) => self.ty(of, aliased, lost),
                _ if *id == of => "Self".to_owned(),
                _ => {
                    let path = self.path(of, *id);
                    format!("{}<{path}>", self.std(of, "Box", "boxed"))
                }
            },
            Type::Named(id) => self.path(of, *id),
        }
    }

    fn element(&mut self, of: DefinitionId, element: &Element, lost: &mut Lost) -> String {
        lost.bound |= outer_bound(self.model.resolved(&element.ty)).is_some();
        let text = self.unboxed(of, &element.ty, element.external, lost);
        if element.external { format!("{}<{text}>", self.std(of, "Box", "boxed")) } else { text }
    }

    /// A value of this type; a string is a `&str`.
    pub(super) fn value(&self, of: DefinitionId, ty: &Type, value: &Value) -> String {
        match (self.model.resolved(ty), value) {
            (Type::Primitive(Primitive::WChar), Value::Character(letter)) => {
                format!("plainsong::cdr::WChar({:#x})", u32::from(*letter))
            }
            (_, Value::Integer(number)) => number.to_string(),
            (_, Value::Float(number)) => format!("{number:?}"),
            (_, Value::Boolean(value)) => value.to_string(),
            (_, Value::Character(letter)) => format!("{letter:?}"),
            (_, Value::Text(text)) => format!("{text:?}"),
            (_, Value::Fixed(text)) => text.to_string(),
            (_, Value::Literal { of: enumeration, index }) => {
                let literal = self.names.members[enumeration.0].get(*index).map_or("", String::as_str);
                format!("{}::{literal}", self.path(of, *enumeration))
            }
        }
    }

    /// The same as a value that a member can have.
    pub(super) fn owned(&self, of: DefinitionId, ty: &Type, value: &Value) -> String {
        let text = self.value(of, ty, value);
        match (self.model.resolved(ty), value) {
            (Type::String { wide: true, .. }, Value::Text(_)) => {
                format!("plainsong::cdr::WString({text}.to_owned())")
            }
            (_, Value::Text(_)) => format!("{text}.to_owned()"),
            _ => text,
        }
    }
}

/// The bound that the derive can check.
fn outer_bound(ty: &Type) -> Option<u32> {
    match ty {
        Type::String { bound, .. } | Type::Sequence { bound, .. } | Type::Map { bound, .. } => *bound,
        _ => None,
    }
}

/// The type of a value.
const fn primitive_name(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Boolean => "bool",
        Primitive::Octet | Primitive::UInt8 => "u8",
        Primitive::Char => "char",
        Primitive::WChar => "plainsong::cdr::WChar",
        Primitive::Int8 => "i8",
        Primitive::Int16 => "i16",
        Primitive::UInt16 => "u16",
        Primitive::Int32 => "i32",
        Primitive::UInt32 => "u32",
        Primitive::Int64 => "i64",
        Primitive::UInt64 => "u64",
        Primitive::Float32 => "f32",
        // `Lacking` has the longest.
        Primitive::Float64 | Primitive::Float128 => "f64",
    }
}
