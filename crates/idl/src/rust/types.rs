//! Types and values as Rust writes them.

use super::Writer;
use crate::model::{DefinitionId, DefinitionKind, Element, Member, Primitive, TryConstruct, Type, Value};

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

    /// The type of a member, and the attributes that limit it.
    pub(super) fn member_type(&self, of: DefinitionId, member: &Member) -> (String, Vec<String>) {
        let boxed = self.is_boxed(of, member);
        let mut text = self.unboxed(of, &member.ty, boxed);
        if boxed {
            text = format!("{}<{text}>", self.std(of, "Box", "boxed"));
        }
        if member.optional {
            text = format!("{}<{text}>", self.std(of, "Option", "option"));
        }
        let mut limits = self.limits(&member.ty);
        limits.extend(try_construct(member.try_construct));
        if member.external {
            limits.push("external".to_owned());
        }
        (text, limits)
    }

    /// The attributes that limit a value of this type.
    fn limits(&self, ty: &Type) -> Vec<String> {
        let resolved = self.model.resolved(ty);
        let mut limits = self.aliases(ty);
        limits.extend(outer_bound(resolved).map(|it| format!("bound = {it}")));
        let element = |element: &Element| {
            let mut limits = self.limits(&element.ty);
            limits.extend(try_construct(element.try_construct));
            limits
        };
        match resolved {
            Type::Primitive(Primitive::Octet) => limits.push("octet".to_owned()),
            Type::Sequence { element: of, .. } => limits.extend(inner("element", element(of))),
            Type::Array { element: of, dimensions } => {
                let nested = dimensions.iter().fold(element(of), |limits, _| inner("element", limits));
                limits.extend(nested);
            }
            Type::Map { key, value, .. } => {
                let key = self.limits(&key.ty).join(", ");
                limits.extend((!key.is_empty()).then(|| format!("key_element({key})")));
                let value = element(value).join(", ");
                limits.extend((!value.is_empty()).then(|| format!("element({value})")));
            }
            _ => {}
        }
        limits
    }

    /// The names that typedefs give a type, the outermost first.
    fn aliases(&self, ty: &Type) -> Vec<String> {
        let mut ty = ty;
        let mut aliases = Vec::new();
        while let Type::Named(id) = ty
            && let definition = self.model.definition(*id)
            && let DefinitionKind::Alias(aliased) = &definition.kind
        {
            aliases.push(format!("alias = {:?}", definition.told_name()));
            ty = aliased;
        }
        aliases
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
    fn unboxed(&self, of: DefinitionId, ty: &Type, external: bool) -> String {
        match ty {
            Type::Named(id)
                if external && !matches!(self.model.definition(*id).kind, DefinitionKind::Alias(_)) =>
            {
                if *id == of { "Self".to_owned() } else { self.path(of, *id) }
            }
            _ => self.ty(of, ty),
        }
    }

    pub(super) fn ty(&self, of: DefinitionId, ty: &Type) -> String {
        match ty {
            Type::Primitive(primitive) => primitive_name(*primitive).to_owned(),
            Type::String { wide: false, .. } => self.std(of, "String", "string"),
            Type::String { wide: true, .. } => "plainsong::cdr::WString".to_owned(),
            Type::Sequence { element, .. } => {
                let element = self.element(of, element);
                format!("{}<{element}>", self.std(of, "Vec", "vec"))
            }
            Type::Array { element, dimensions } => {
                let element = self.element(of, element);
                dimensions.iter().rev().fold(element, |inner, size| format!("[{inner}; {size}]"))
            }
            Type::Map { key, value, .. } => {
                let (key, value) = (self.element(of, key), self.element(of, value));
                format!("std::collections::BTreeMap<{key}, {value}>")
            }
            // `Lacking` has it.
            Type::Fixed { .. } => "()".to_owned(),
            Type::Named(id) if self.circles.together(of, *id) => match &self.model.definition(*id).kind {
                // An alias within a circle would hide the circle from the derive.
                DefinitionKind::Alias(aliased) => self.ty(of, aliased),
                _ if *id == of => "Self".to_owned(),
                _ => {
                    let path = self.path(of, *id);
                    format!("{}<{path}>", self.std(of, "Box", "boxed"))
                }
            },
            Type::Named(id) => self.path(of, *id),
        }
    }

    fn element(&self, of: DefinitionId, element: &Element) -> String {
        let text = self.unboxed(of, &element.ty, element.external);
        if element.external { format!("{}<{text}>", self.std(of, "Box", "boxed")) } else { text }
    }

    /// A value of this type; a string is a `&str`.
    pub(super) fn value(&self, of: DefinitionId, ty: &Type, value: &Value) -> String {
        match (self.model.resolved(ty), value) {
            (Type::Primitive(Primitive::WChar), Value::Character(letter)) => {
                format!("plainsong::cdr::WChar({:#x})", u32::from(*letter))
            }
            (Type::Named(id), Value::Integer(number)) => {
                format!("{}::from_bits({number})", self.path(of, *id))
            }
            (Type::Primitive(Primitive::Float128), Value::Float(number)) => {
                format!("plainsong::cdr::Float128::from_f64({number:?})")
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

/// The attribute that says what happens to a value that does not fit.
fn try_construct(told: Option<TryConstruct>) -> Option<String> {
    let word = match told? {
        TryConstruct::Discard => return None,
        TryConstruct::UseDefault => "use_default",
        TryConstruct::Trim => "trim",
    };
    Some(format!("try_construct = {word:?}"))
}

/// The limits of an element, as those of what has it: which octets it has may be said there.
fn inner(name: &str, limits: Vec<String>) -> Vec<String> {
    match limits.as_slice() {
        [] => Vec::new(),
        [only] if only == "octet" => limits,
        _ => vec![format!("{name}({})", limits.join(", "))],
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
pub(super) const fn primitive_name(primitive: Primitive) -> &'static str {
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
        Primitive::Float64 => "f64",
        Primitive::Float128 => "plainsong::cdr::Float128",
    }
}
