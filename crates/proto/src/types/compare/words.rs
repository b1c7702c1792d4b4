//! Types in words, as IDL writes them.

use super::super::{Definition, TypeIdentifier, TypeObject};
use super::Side;

/// Collections in collections that are spelled out.
const SPELLED_MAX: usize = 4;

/// A type in words: `sequence<int32, 10>`, `string<128>`, the name of a structure.
pub(super) fn in_words(ty: &TypeIdentifier, side: Side<'_>) -> String {
    spell(ty, side, SPELLED_MAX)
}

fn spell(ty: &TypeIdentifier, side: Side<'_>, depth: usize) -> String {
    let Some(depth) = depth.checked_sub(1) else { return "…".into() };
    let bounded = |bound: u32| if bound == 0 { String::new() } else { format!(", {bound}") };
    match ty {
        TypeIdentifier::None => "nothing".into(),
        TypeIdentifier::Primitive(primitive) => primitive.name().into(),
        TypeIdentifier::String { wide, bound } => {
            let name = if *wide { "wstring" } else { "string" };
            if *bound == 0 { name.into() } else { format!("{name}<{bound}>") }
        }
        TypeIdentifier::Sequence { bound, element, .. } => {
            format!("sequence<{}{}>", spell(element, side, depth), bounded(*bound))
        }
        TypeIdentifier::Array { bounds, element, .. } => {
            let bounds: String = bounds.iter().map(|bound| format!("[{bound}]")).collect();
            format!("{}{bounds}", spell(element, side, depth))
        }
        TypeIdentifier::Map { bound, key, element, .. } => {
            let (key, element) = (spell(key, side, depth), spell(element, side, depth));
            format!("map<{key}, {element}{}>", bounded(*bound))
        }
        TypeIdentifier::Hash(_) => (side.find)(ty).map_or_else(
            || "a type that is not known".into(),
            |object| match &object.definition {
                Definition::Alias(target) | Definition::Collection(target) => spell(target, side, depth),
                _ => name_of(object),
            },
        ),
        TypeIdentifier::Unknown(_) => "a type that is not known".into(),
    }
}

/// Kind and name of a type.
pub(super) fn name_of(object: &TypeObject) -> String {
    let kind = match &object.definition {
        Definition::Structure { .. } => "structure",
        Definition::Union { .. } => "union",
        Definition::Enumeration { .. } => "enumeration",
        Definition::Bitmask { .. } => "bit mask",
        Definition::Bitset { .. } => "bit set",
        Definition::Alias(_) | Definition::Collection(_) | Definition::Other(_) => "type",
    };
    match &object.name {
        Some(name) => format!("{kind} {name}"),
        None => format!("another {kind}"),
    }
}
