//! Constants, enumerations, bitmasks and aliases.

use std::collections::{HashMap, HashSet};

use super::Writer;
use super::recursion::spread;
use super::types::Lost;
use crate::model::{
    Bitmask, Bitset, DefinitionId, DefinitionKind, Enumeration, Model, Primitive, Type, Value,
};

impl Writer<'_> {
    pub(super) fn constant(&mut self, id: DefinitionId, ty: &Type, value: &Value) {
        let name = &self.names.paths[id.0].1;
        let resolved = self.model.resolved(ty).clone();
        let ty = match resolved {
            Type::String { .. } => "&str".to_owned(),
            Type::Fixed { .. } => "&str".to_owned(),
            // An integer for a bitmask.
            Type::Named(named) => self.path(id, named),
            _ => self.ty(id, ty, &mut Lost { bound: false }),
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
        let text = self.ty(id, ty, &mut Lost { bound: false });
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
        if definition.full_name() != *name {
            attributes.push(format!("name = {:?}", definition.full_name()));
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

    /// An integer, and a constant for each flag: the same on the wire.
    pub(super) fn bitmask(&mut self, id: DefinitionId, bitmask: &Bitmask) {
        let definition = self.model.definition(id);
        let (name, names) = (&self.names.paths[id.0].1, &self.names.members[id.0]);
        let bits = bitmask.bit_bound.next_power_of_two().max(8);
        let message = format!(
            "peers are told that the bitmask `{}` is an integer of {bits} bits",
            definition.full_name()
        );
        self.weaker(id, "bitmask", message, "the derive has no bitmasks; the octets are the same");
        self.documentation(&definition.verbatim, &[]);
        self.line(&format!("pub type {name} = u{bits};"));
        let prefix = super::names::screaming(&definition.name);
        for (flag, flag_name) in bitmask.flags.iter().zip(names) {
            self.documentation(&flag.verbatim, &[]);
            let flag_name = flag_name.trim_start_matches("r#");
            self.line(&format!("pub const {prefix}_{flag_name}: {name} = 1 << {};", flag.position));
        }
    }

    /// An integer, and for each field its lowest bit and its width: the same on the wire.
    pub(super) fn bitset(&mut self, id: DefinitionId, bitset: &Bitset) {
        let definition = self.model.definition(id);
        let name = &self.names.paths[id.0].1;
        let bits = bitset.bits.next_power_of_two().max(8);
        let message = format!(
            "peers are told that the bitset `{}` is an integer of {bits} bits",
            definition.full_name()
        );
        self.weaker(id, "bitset", message, "the derive has no bitsets; the octets are the same");
        self.documentation(&definition.verbatim, &[]);
        self.line(&format!("pub type {name} = u{bits};"));
        let prefix = super::names::screaming(&definition.name);
        let mut taken = HashSet::new();
        for field in &bitset.fields {
            let field_name = super::names::unique(super::names::screaming(&field.name), &mut taken);
            self.line(&format!("pub const {prefix}_{field_name}_SHIFT: u32 = {};", field.position));
            self.line(&format!("pub const {prefix}_{field_name}_BITS: u32 = {};", field.width));
        }
    }

    /// Whether values can be compared for equality in every case.
    pub(super) fn has_eq(&self, ty: &Type) -> bool {
        has_eq(ty, &|id| !self.floats.contains_key(&id))
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
