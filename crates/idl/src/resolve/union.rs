//! Unions.

use std::collections::HashMap;

use super::annotation::{Annotations, Target};
use super::constant::{keyword, range};
use super::scope::ScopeId;
use super::structure::Taken;
use super::{Defaults, Missing, Resolved, Resolver};
use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::model::{Aggregate, Case, DefinitionId, DefinitionKind, Primitive, Type, Union};

impl Resolver<'_> {
    pub(super) fn union(
        &mut self,
        scope: ScopeId,
        id: DefinitionId,
        told: &Annotations<'_>,
        union: &ast::Union,
        defaults: Defaults,
    ) -> Resolved<DefinitionKind> {
        let aggregate = self.aggregate(told, defaults);
        let inner = self.aggregate_scope(scope, &union.name);
        let discriminator_told = self.annotations(&union.discriminator.annotations, Target::DISCRIMINATOR);
        let key = self.flag(&discriminator_told, "key").unwrap_or(false);
        let discriminator = self.discriminator(inner, &union.discriminator, defaults)?;
        if union.cases.is_empty() {
            let said = Diagnostic::error(union.name.span, "a union has at least one member");
            return self.fail(said.hint("add `case 0: long value;`"));
        }
        let cases = self.cases(inner, id, union, &discriminator, &aggregate, defaults)?;
        self.member_spans.insert(id, union.cases.iter().map(|case| case.declarator.name.span).collect());
        Ok(DefinitionKind::Union(Union { aggregate, discriminator, key, cases }))
    }

    fn discriminator(&mut self, scope: ScopeId, spec: &ast::TypeSpec, defaults: Defaults) -> Resolved<Type> {
        let ty = self.ty(scope, spec, defaults)?;
        let fits = match self.underlying(&ty) {
            Type::Primitive(primitive) => {
                range(*primitive).is_some()
                    || matches!(primitive, Primitive::Boolean | Primitive::Char | Primitive::WChar)
            }
            // Bitmasks select by the sum of their flags.
            Type::Named(id) => {
                self.enumeration_of(*id).is_some()
                    || matches!(
                        self.slots[id.0].as_ref().map(|it| &it.kind),
                        Some(DefinitionKind::Bitmask(_))
                    )
            }
            _ => false,
        };
        if fits {
            return Ok(ty);
        }
        let described = self.describe_type(&ty);
        let said = Diagnostic::error(spec.span, format!("{described} cannot select a member"));
        self.fail(said.hint("a discriminator is an integer, character, boolean, enumeration or bitmask"))
    }

    fn cases(
        &mut self,
        scope: ScopeId,
        id: DefinitionId,
        union: &ast::Union,
        discriminator: &Type,
        aggregate: &Aggregate,
        defaults: Defaults,
    ) -> Resolved<Vec<Case>> {
        let mut taken = Taken::after_discriminator(union.discriminator.span);
        let mut labelled = HashMap::new();
        let mut default = None;
        let mut missing = None;
        let mut cases = Vec::new();
        for case in &union.cases {
            let mut labels = Vec::new();
            for label in &case.labels {
                let value = self.value(scope, label, discriminator);
                let number = value.and_then(|value| self.discriminant(&value, label.span));
                let Ok(number) = number else {
                    missing = Some(Missing::Failed);
                    continue;
                };
                if let Some(first) = labelled.insert(number, label.span) {
                    let said = Diagnostic::error(label.span, "this label selects another member already");
                    self.say(said.note("here", first));
                    missing = Some(Missing::Failed);
                }
                labels.push(number);
            }
            if let Some(span) = case.default
                && let Some(first) = default.replace(span)
            {
                let said = Diagnostic::error(span, "a union has one default").note("the first", first);
                self.say(said);
            }
            let told = self.annotations(&case.annotations, Target::CASE);
            let declarator = &case.declarator;
            let member = self.ty(scope, &case.ty, defaults);
            let member = member.and_then(|ty| self.array(scope, ty, declarator));
            let autoid = aggregate.autoid;
            let member =
                member.and_then(|ty| self.member(scope, id, &told, ty, &declarator.name, autoid, &mut taken));
            match member {
                Ok(member) => cases.push(Case { labels, default: case.default.is_some(), member }),
                Err(why) if missing.is_none() || matches!(why, Missing::Failed) => missing = Some(why),
                Err(_) => {}
            }
        }
        if let (Some(span), true) = (default, self.covers_all(discriminator, labelled.len())) {
            let said = Diagnostic::warning(span, "the default is never selected: every value has a label");
            self.say(said);
        }
        missing.map_or(Ok(cases), Err)
    }

    /// Whether so many labels are all there can be.
    fn covers_all(&self, discriminator: &Type, labels: usize) -> bool {
        match self.underlying(discriminator) {
            Type::Primitive(Primitive::Boolean) => labels == 2,
            Type::Primitive(primitive) => match range(*primitive) {
                Some((least, greatest)) => labels as i128 > greatest - least,
                None => keyword(*primitive) == "char" && labels > 0xff,
            },
            Type::Named(id) => match self.slots[id.0].as_ref().map(|it| &it.kind) {
                Some(DefinitionKind::Enumeration(enumeration)) => labels == enumeration.literals.len(),
                _ => false,
            },
            _ => false,
        }
    }
}
