//! Enumerations, bitmasks and bitsets.

use std::collections::{HashMap, HashSet};

use super::annotation::{Annotations, Target};
use super::constant::{keyword, range};
use super::scope::{ScopeId, SymbolKind};
use super::{Defaults, Missing, Resolved, Resolver};
use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::model::{
    Bitfield, Bitmask, Bitset, DefinitionId, DefinitionKind, Enumeration, Flag, Literal, Primitive, Type,
};
use crate::source::Span;

impl Resolver<'_> {
    pub(super) fn enumeration(
        &mut self,
        scope: ScopeId,
        id: DefinitionId,
        told: &Annotations<'_>,
        enumeration: &ast::Enumeration,
    ) -> Resolved<DefinitionKind> {
        let bits = self.annotated_number(scope, told, "bit_bound", 1, 32).unwrap_or(32);
        let (least, greatest) = (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1);
        let mut literals = Vec::<Literal>::new();
        let mut values = HashMap::new();
        let mut names = HashSet::new();
        let mut next = 0_i128;
        let mut default = None::<Span>;
        for literal in &enumeration.literals {
            let told = self.annotations(&literal.annotations, Target::LITERAL);
            let mut value = self.annotated_number(scope, &told, "value", least, greatest).unwrap_or(next);
            if let Some(expression) = &literal.value {
                let said =
                    Diagnostic::warning(expression.span, "IDL gives values to literals by an annotation");
                let hint = format!("write `@value(…) {}`; it is taken as that", literal.name.text);
                self.diagnostics.push_once("enum =", said.hint(hint));
                if let crate::model::Value::Integer(told) = self.evaluate(scope, expression)? {
                    value = told;
                }
            }
            if !(least..=greatest).contains(&value) {
                let message =
                    format!("`{}` is {value}, and {bits} bits are {least} to {greatest}", literal.name.text);
                self.say(Diagnostic::error(literal.name.span, message).hint("raise `@bit_bound`"));
                value = 0;
            }
            if let Some(first) = values.insert(value, literal.name.span) {
                let message = format!("`{}` has the value {value}, which is taken", literal.name.text);
                self.say(Diagnostic::error(literal.name.span, message).note("by this one", first));
            }
            if !names.insert(literal.name.text.to_ascii_lowercase()) {
                let message = format!("there is a literal `{}` already", literal.name.text);
                self.say(Diagnostic::error(literal.name.span, message));
                continue;
            }
            let is_default = self.flag(&told, "default_literal").unwrap_or(false);
            if is_default && let Some(first) = default.replace(literal.name.span) {
                let said = Diagnostic::error(literal.name.span, "an enumeration has one default literal");
                self.say(said.note("the first", first));
            }
            if !enumeration.scoped || !self.is_taken(scope, &literal.name) {
                self.declare(scope, &literal.name, SymbolKind::Literal(id, literals.len()));
            }
            next = value + 1;
            let name = literal.name.text.clone();
            let verbatim = self.verbatim(&told);
            literals.push(Literal { name, value: value as i32, default: is_default, verbatim });
        }
        if literals.is_empty() {
            let said = Diagnostic::error(enumeration.name.span, "an enumeration has at least one literal");
            return self.fail(said);
        }
        let extensibility = self.told_extensibility(told);
        let ignore_literal_names = self.flag(told, "ignore_literal_names").unwrap_or(false);
        let bit_bound = bits as u32;
        Ok(DefinitionKind::Enumeration(Enumeration {
            bit_bound,
            extensibility,
            ignore_literal_names,
            literals,
        }))
    }

    pub(super) fn bitmask(
        &mut self,
        told: &Annotations<'_>,
        bitmask: &ast::Bitmask,
    ) -> Resolved<DefinitionKind> {
        let bits = self.annotated_number(ScopeId::ROOT, told, "bit_bound", 1, 64).unwrap_or(32);
        let mut flags = Vec::<Flag>::new();
        let mut next = 0;
        for flag in &bitmask.flags {
            let told = self.annotations(&flag.annotations, Target::FLAG);
            let position = self.annotated_number(ScopeId::ROOT, &told, "position", 0, 63).unwrap_or(next);
            let name = &flag.name;
            if position >= bits {
                let message = format!("`{}` is bit {position}, and the bitmask has {bits} bits", name.text);
                self.say(Diagnostic::error(name.span, message).hint("raise `@bit_bound`"));
            }
            let same =
                |it: &Flag| i128::from(it.position) == position || it.name.eq_ignore_ascii_case(&name.text);
            if let Some(other) = flags.iter().find(|it| same(it)) {
                let message =
                    format!("`{}` has the name or the bit {position} of `{}`", name.text, other.name);
                self.say(Diagnostic::error(name.span, message));
            }
            if flags.len() >= 64 {
                return self.fail(Diagnostic::error(name.span, "a bitmask has at most 64 flags"));
            }
            next = position + 1;
            let verbatim = self.verbatim(&told);
            flags.push(Flag { name: name.text.clone(), position: position as u32, verbatim });
        }
        if flags.is_empty() {
            let said = Diagnostic::error(bitmask.name.span, "a bitmask has at least one flag");
            return self.fail(said);
        }
        Ok(DefinitionKind::Bitmask(Bitmask { bit_bound: bits as u32, flags }))
    }

    pub(super) fn bitset(&mut self, scope: ScopeId, bitset: &ast::Bitset) -> Resolved<DefinitionKind> {
        let mut bits = 0_u32;
        let mut base = None;
        let mut names = Vec::new();
        if let Some(name) = &bitset.base {
            let found = self.look_up(scope, name, "bitset")?;
            let known = match found {
                SymbolKind::Type { id, .. } => match *self.underlying(&Type::Named(id)) {
                    Type::Named(id) => self.slots[id.0].as_ref().map(|it| (id, it.kind.clone())),
                    _ => None,
                },
                _ => None,
            };
            let Some((id, DefinitionKind::Bitset(parent))) = known else {
                let said = Diagnostic::error(name.span, format!("`{}` is no bitset", name.text()));
                return self.fail(said);
            };
            bits = parent.bits;
            names.extend(parent.fields.iter().map(|field| field.name.to_ascii_lowercase()));
            base = Some(id);
        }
        let mut fields = Vec::new();
        for field in &bitset.fields {
            self.annotations(&field.annotations, Target::BITFIELD);
            let width = self.count(scope, &field.width, "the width of a bitfield")?;
            let ty = self.bitfield_type(scope, field, width)?;
            for name in &field.names {
                if names.contains(&name.text.to_ascii_lowercase()) {
                    let message = format!("there is a bitfield `{}` already", name.text);
                    self.say(Diagnostic::error(name.span, message));
                }
                names.push(name.text.to_ascii_lowercase());
                fields.push(Bitfield { name: name.text.clone(), position: bits, width, ty });
                bits = bits.saturating_add(width);
            }
            if field.names.is_empty() {
                bits = bits.saturating_add(width);
            }
            if bits > 64 {
                let said = Diagnostic::error(field.width.span, "a bitset has at most 64 bits");
                return self.fail(said);
            }
        }
        if bits == 0 {
            return self.fail(Diagnostic::error(bitset.name.span, "a bitset has at least one bitfield"));
        }
        Ok(DefinitionKind::Bitset(Bitset { base, fields, bits }))
    }

    fn bitfield_type(
        &mut self,
        scope: ScopeId,
        field: &ast::Bitfield,
        width: u32,
    ) -> Resolved<Option<Primitive>> {
        let Some(spec) = &field.ty else { return Ok(None) };
        let ty = self.ty(scope, spec, Defaults::default())?;
        let Type::Primitive(primitive) = *self.underlying(&ty) else {
            return self.fail(Diagnostic::error(spec.span, "a bitfield is an integer or boolean"));
        };
        let most = match (primitive, range(primitive)) {
            (Primitive::Boolean, _) => 1,
            (_, Some((least, greatest))) => 128 - (greatest - least).leading_zeros(),
            _ => 0,
        };
        if width > most {
            let message = format!("a bitfield of {width} bits does not fit `{}`", keyword(primitive));
            return self.fail(Diagnostic::error(spec.span, message));
        }
        match most {
            0 => Err(Missing::Failed),
            _ => Ok(Some(primitive)),
        }
    }
}
