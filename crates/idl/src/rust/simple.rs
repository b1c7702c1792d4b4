//! Constants, enumerations, bitmasks and aliases.

use std::collections::HashMap;

use super::Writer;
use super::recursion::spread;
use crate::model::{
    Bitfield, Bitmask, Bitset, DefinitionId, DefinitionKind, Enumeration, Model, Primitive, Type, Value,
    Verbatim,
};

impl Writer<'_> {
    pub(super) fn constant(&mut self, id: DefinitionId, ty: &Type, value: &Value) {
        let name = &self.names.paths[id.0].1;
        let resolved = self.model.resolved(ty).clone();
        let ty = match resolved {
            Type::String { .. } => "&str".to_owned(),
            Type::Fixed { .. } => "&str".to_owned(),
            Type::Named(named) => self.path(id, named),
            _ => self.ty(id, ty),
        };
        let value = match (&resolved, value) {
            (Type::Fixed { .. }, Value::Fixed(text)) => format!("{text:?}"),
            _ => self.value(id, &resolved, value),
        };
        let verbatim = &self.model.definition(id).verbatim;
        self.documentation(verbatim, &[]);
        self.line(&format!("pub const {name}: {ty} = {value};"));
    }

    pub(super) fn alias(&mut self, id: DefinitionId, ty: &Type) {
        // Within a circle of types it is written out where it is used.
        if self.circles.together(id, id) || self.is_in_circle(id, ty) {
            return;
        }
        let text = self.ty(id, ty);
        let verbatim = &self.model.definition(id).verbatim;
        self.documentation(verbatim, &[]);
        self.line(&format!("pub type {} = {text};", self.names.paths[id.0].1));
    }

    fn is_in_circle(&self, id: DefinitionId, ty: &Type) -> bool {
        match ty {
            Type::Named(to) => self.circles.together(id, *to),
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.is_in_circle(id, &element.ty)
            }
            Type::Map { key, value, .. } => {
                self.is_in_circle(id, &key.ty) || self.is_in_circle(id, &value.ty)
            }
            _ => false,
        }
    }

    pub(super) fn enumeration(&mut self, id: DefinitionId, enumeration: &Enumeration, derive: &str) {
        let definition = self.model.definition(id);
        let names = &self.names.members[id.0];
        let name = &self.names.paths[id.0].1;
        if enumeration.ignore_literal_names {
            let message =
                format!("`@ignore_literal_names` of `{}` is not told to peers", definition.full_name());
            self.weaker(id, "ignore_literal_names", message, "the derive has no attribute for it");
        }
        self.documentation(&definition.verbatim, &[]);
        self.line(&format!(
            "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, {derive})]"
        ));
        let mut attributes = Vec::new();
        if definition.told_name() != *name {
            attributes.push(format!("name = {:?}", definition.told_name()));
        }
        if let Some(extensibility) = enumeration.extensibility {
            attributes.push(super::aggregate::extensibility(extensibility).to_owned());
        }
        if enumeration.bit_bound != 32 {
            attributes.push(format!("bit_bound = {}", enumeration.bit_bound));
        }
        if !attributes.is_empty() {
            self.line(&format!("#[dds({})]", attributes.join(", ")));
        }
        self.line(&format!("pub enum {name} {{"));
        self.depth += 1;
        let told = enumeration.literals.iter().any(|literal| literal.default);
        let mut next = 0_i64;
        for (index, (literal, name)) in enumeration.literals.iter().zip(names).enumerate() {
            self.documentation(&literal.verbatim, &[]);
            let mut attributes = Vec::new();
            if name.trim_start_matches("r#") != &*literal.name {
                attributes.push(format!("name = {:?}", literal.name));
            }
            if literal.default {
                attributes.push("default".to_owned());
            }
            if !attributes.is_empty() {
                self.line(&format!("#[dds({})]", attributes.join(", ")));
            }
            if literal.default || (index == 0 && !told) {
                self.line("#[default]");
            }
            let value = i64::from(literal.value);
            let value_text = if value == next { String::new() } else { format!(" = {value}") };
            next = value + 1;
            self.line(&format!("{name}{value_text},"));
        }
        self.depth -= 1;
        self.line("}");
    }

    pub(super) fn bitmask(&mut self, id: DefinitionId, bitmask: &Bitmask, derive: &str) {
        let (name, names) = (&self.names.paths[id.0].1, &self.names.members[id.0]);
        let bits = bitmask.bit_bound.next_power_of_two().max(8);
        let mut attributes = vec!["bitmask".to_owned()];
        if bitmask.bit_bound != bits {
            attributes.push(format!("bit_bound = {}", bitmask.bit_bound));
        }
        self.bits_head(id, derive, &attributes);
        let mut next = 0;
        for (flag, flag_name) in bitmask.flags.iter().zip(names) {
            let mut told = flag_name.clone();
            if flag.position != next {
                told += &format!(" = {}", flag.position);
            }
            if *flag_name != *flag.name {
                told += &format!(", name = {:?}", flag.name);
            }
            if let Some(text) = comment(&flag.verbatim) {
                told += &format!(", doc = {text:?}");
            }
            next = flag.position + 1;
            self.line(&format!("#[dds(flag({told}))]"));
        }
        self.line(&format!("pub struct {name}(pub u{bits});"));
    }

    pub(super) fn bitset(&mut self, id: DefinitionId, bitset: &Bitset, derive: &str) {
        let name = &self.names.paths[id.0].1;
        let fields = super::fields(self.model, bitset);
        if fields.is_empty() {
            // Nobody can name its bits.
            let bits = bitset.bits.next_power_of_two().max(8);
            self.line(&format!("pub type {name} = u{bits};"));
            return;
        }
        let mut attributes = vec!["bitset".to_owned()];
        if fields.last().is_some_and(|last| last.position + last.width != bitset.bits) {
            attributes.push(format!("bit_bound = {}", bitset.bits));
        }
        self.bits_head(id, derive, &attributes);
        self.line(&format!("pub struct {name} {{"));
        self.depth += 1;
        let mut next = 0;
        for (field, field_name) in fields.iter().zip(&self.names.members[id.0]) {
            let mut told = Vec::new();
            if field_name.trim_start_matches("r#") != &*field.name {
                told.push(format!("name = {:?}", field.name));
            }
            told.push(format!("bits = {}", field.width));
            if field.position != next {
                told.push(format!("position = {}", field.position));
            }
            next = field.position + field.width;
            self.line(&format!("#[dds({})]", told.join(", ")));
            self.line(&format!("pub {field_name}: {},", field_type(field)));
        }
        self.depth -= 1;
        self.line("}");
    }

    /// Comment, derives and attributes of a bitmask or bitset.
    fn bits_head(&mut self, id: DefinitionId, derive: &str, attributes: &[String]) {
        let definition = self.model.definition(id);
        let told_name = definition.told_name();
        self.documentation(&definition.verbatim, &[]);
        self.line(&format!("#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, {derive})]"));
        let named = (told_name != self.names.paths[id.0].1).then(|| format!("name = {told_name:?}"));
        let all: Vec<_> = named.iter().chain(attributes).map(String::as_str).collect();
        self.line(&format!("#[dds({})]", all.join(", ")));
    }

    /// Whether values can be compared for equality in every case.
    pub(super) fn has_eq(&self, ty: &Type) -> bool {
        has_eq(ty, &|id| !self.floats.contains_key(&id))
    }
}

/// A comment in one line.
fn comment(verbatim: &[Verbatim]) -> Option<String> {
    let is_comment = |it: &&Verbatim| it.language.eq_ignore_ascii_case("comment");
    let text = verbatim.iter().find(is_comment)?.text.trim().replace('\n', " ");
    (!text.is_empty()).then_some(text)
}

/// The type of a field of a bitset; where none is told, the smallest (IDL 4.2 §7.4.13.4.3.3).
fn field_type(field: &Bitfield) -> &'static str {
    match (field.ty, field.width) {
        (Some(primitive), _) => super::types::primitive_name(primitive),
        (None, 0..=1) => "bool",
        (None, 2..=8) => "u8",
        (None, 9..=16) => "u16",
        (None, 17..=32) => "u32",
        (None, _) => "u64",
    }
}

/// Definitions with floating-point numbers in them.
pub(super) fn floats(model: &Model) -> HashMap<DefinitionId, Option<DefinitionId>> {
    let own = |ty: &Type| !has_eq(ty, &|_| true);
    let direct = model.definitions().filter(|(_, definition)| match &definition.kind {
        DefinitionKind::Structure(structure) => model.all_members(structure).iter().any(|it| own(&it.ty)),
        DefinitionKind::Union(union) => union.cases.iter().any(|case| own(&case.member.ty)),
        DefinitionKind::Alias(ty) => own(ty),
        _ => false,
    });
    spread(model, direct.map(|(id, _)| id))
}

fn has_eq(ty: &Type, named: &dyn Fn(DefinitionId) -> bool) -> bool {
    match ty {
        Type::Primitive(Primitive::Float32 | Primitive::Float64 | Primitive::Float128) => false,
        Type::Primitive(_) | Type::String { .. } | Type::Fixed { .. } => true,
        Type::Sequence { element, .. } | Type::Array { element, .. } => has_eq(&element.ty, named),
        Type::Map { value, .. } => has_eq(&value.ty, named),
        Type::Named(id) => named(*id),
    }
}
