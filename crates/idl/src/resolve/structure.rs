//! Structures and their members.

use std::collections::HashMap;

use md5::{Digest, Md5};

use super::annotation::{Annotations, Target};
use super::scope::{ScopeId, SymbolKind};
use super::{Defaults, Missing, Resolved, Resolver};
use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::limits::MEMBER_ID_MAX;
use crate::model::{Aggregate, AutoId, DefinitionId, DefinitionKind, Member, Structure, Type, Value};
use crate::source::Span;

/// The id that the hash of a name gives (XTypes 1.3 §7.3.1.2.1.1).
pub(crate) fn hash_id(name: &str) -> u32 {
    let [first, second, third, fourth, ..] = <[u8; 16]>::from(Md5::digest(name));
    u32::from_le_bytes([first, second, third, fourth]) & MEMBER_ID_MAX
}

/// Names and ids that members have taken.
#[derive(Default)]
pub(super) struct Taken {
    names: HashMap<String, Span>,
    ids: HashMap<u32, Span>,
    /// What the next member without id gets.
    next: u32,
    discriminator: Option<Span>,
}

impl Taken {
    /// Of a union, whose discriminator has the id 0.
    pub(super) fn after_discriminator(span: Span) -> Self {
        Self { ids: HashMap::from([(0, span)]), next: 1, discriminator: Some(span), ..Self::default() }
    }
}

impl Resolver<'_> {
    pub(super) fn aggregate(&mut self, told: &Annotations<'_>, defaults: Defaults) -> Aggregate {
        let topic = told.has("topic");
        let nested = self.flag(told, "nested").unwrap_or(defaults.nested && !topic);
        let hash = self.hash_ids(told).unwrap_or(defaults.hash_ids);
        Aggregate {
            extensibility: self.extensibility(told),
            autoid: if hash { AutoId::Hash } else { AutoId::Sequential },
            nested,
            topic: topic.then(|| self.annotated_text(told, "topic", "name")),
            data_representation: self.data_representation(told),
        }
    }

    pub(super) fn structure(
        &mut self,
        scope: ScopeId,
        id: DefinitionId,
        told: &Annotations<'_>,
        structure: &ast::Structure,
        defaults: Defaults,
    ) -> Resolved<DefinitionKind> {
        let aggregate = self.aggregate(told, defaults);
        let mut taken = Taken::default();
        let base = match &structure.base {
            Some(base) => Some(self.base(scope, base, &aggregate, &mut taken)?),
            None => None,
        };
        let inner = self.aggregate_scope(scope, &structure.name);
        let mut members = Vec::new();
        let mut spans = Vec::new();
        let mut missing = None;
        for member in &structure.members {
            let told = self.annotations(&member.annotations, Target::MEMBER);
            let ty = self.ty(inner, &member.ty, defaults);
            for declarator in &member.declarators {
                let resolved = ty.clone().and_then(|ty| self.array(inner, ty, declarator));
                let resolved = resolved.and_then(|ty| {
                    self.member(inner, id, &told, ty, &declarator.name, aggregate.autoid, &mut taken)
                });
                match resolved {
                    Ok(resolved) => {
                        members.push(resolved);
                        spans.push(declarator.name.span);
                    }
                    // What is wrong counts more than what is left out.
                    Err(why) if missing.is_none() || matches!(why, Missing::Failed) => missing = Some(why),
                    Err(_) => {}
                }
            }
        }
        if let Some(missing) = missing {
            return Err(missing);
        }
        if members.is_empty() && base.is_none() && aggregate.topic.is_some() {
            let said =
                Diagnostic::warning(structure.name.span, "a topic whose type has no members says nothing");
            self.say(said);
        }
        self.member_spans.insert(id, spans);
        Ok(DefinitionKind::Structure(Structure { aggregate, base, members }))
    }

    /// The structure that another inherits from; its members take their names and ids.
    fn base(
        &mut self,
        scope: ScopeId,
        name: &ast::ScopedName,
        aggregate: &Aggregate,
        taken: &mut Taken,
    ) -> Resolved<DefinitionId> {
        let found = self.look_up(scope, name, "structure")?;
        let SymbolKind::Type { id, .. } = found else {
            let said = Diagnostic::error(name.span, format!("`{}` is no structure", name.text()));
            return self.fail(said);
        };
        let id = match self.underlying(&Type::Named(id)) {
            Type::Named(id) => *id,
            _ => id,
        };
        let Some(DefinitionKind::Structure(base)) = self.slots[id.0].as_ref().map(|it| it.kind.clone())
        else {
            let said = Diagnostic::error(
                name.span,
                format!("`{}` is no structure that is complete here", name.text()),
            );
            return self.fail(said.hint("define the base before the structures that inherit from it"));
        };
        if base.aggregate.extensibility != aggregate.extensibility {
            // XTypes 1.3 §7.2.2.4.5 demands it, and other compilers do not.
            let said =
                Diagnostic::warning(name.span, "a structure should have the extensibility of its base");
            let hint = format!("both are `@final`, `@appendable` or `@mutable`; `{}` differs", name.text());
            self.say(said.note("the base is defined here", self.spans[id.0]).hint(hint));
        }
        let mut bases = vec![(id, base)];
        while let Some(next) = bases.last().and_then(|(_, it)| it.base)
            && let Some(DefinitionKind::Structure(base)) =
                self.slots[next.0].as_ref().map(|it| it.kind.clone())
        {
            bases.push((next, base));
        }
        for (id, base) in bases.iter().rev() {
            let spans = self.member_spans.get(id).cloned().unwrap_or_default();
            for (member, span) in base.members.iter().zip(spans) {
                taken.names.insert(member.name.to_ascii_lowercase(), span);
                taken.ids.insert(member.id, span);
                taken.next = member.id + 1;
            }
        }
        Ok(id)
    }

    /// A member of a structure or union.
    #[expect(clippy::too_many_arguments, reason = "a member has that much around it")]
    pub(super) fn member(
        &mut self,
        scope: ScopeId,
        of: DefinitionId,
        told: &Annotations<'_>,
        ty: Type,
        name: &ast::Name,
        autoid: AutoId,
        taken: &mut Taken,
    ) -> Resolved<Member> {
        let mut member = Member::new(&name.text, ty, 0);
        member.key = self.flag(told, "key").unwrap_or(false);
        member.optional = self.flag(told, "optional").unwrap_or(false);
        member.external = self.flag(told, "external").or_else(|| self.flag(told, "shared")).unwrap_or(false);
        // A key member is always understood (XTypes 1.3 §7.2.2.4.4.4.8).
        member.must_understand = self.flag(told, "must_understand").unwrap_or(false);
        member.non_serialized = self.flag(told, "non_serialized").unwrap_or(false);
        member.try_construct = self.try_construct(told);
        member.unit = self.annotated_text(told, "unit", "value");
        member.verbatim = self.verbatim(told);
        if member.key && member.optional {
            let said =
                Diagnostic::error(name.span, format!("`{}` is a key and cannot be optional", name.text));
            self.say(said.hint("remove `@key` or `@optional`: every sample has a key"));
        }
        self.check_complete(of, &member.ty, member.optional || member.external, name.span)?;
        self.values(scope, told, &mut member)?;
        if let Some(first) = taken.names.insert(name.text.to_ascii_lowercase(), name.span) {
            let message =
                format!("there is a member `{}` already, or one that differs only in case", name.text);
            self.say(Diagnostic::error(name.span, message).note("the other one", first));
        }
        member.id = self.member_id(scope, told, name, autoid, taken);
        Ok(member)
    }

    /// Its default and range, which must fit its type.
    fn values(&mut self, scope: ScopeId, told: &Annotations<'_>, member: &mut Member) -> Resolved<()> {
        let value = |resolver: &mut Self, name: &str, part: &str| -> Resolved<Option<Value>> {
            match resolver.annotated(told, name, part) {
                Some(expression) => resolver.value(scope, expression, &member.ty.clone()).map(Some),
                None => Ok(None),
            }
        };
        if told.has("default") {
            member.default = value(self, "default", "value")?;
        }
        for name in ["min", "max"] {
            if told.has(name) {
                let told = value(self, name, "value")?;
                *(if name == "min" { &mut member.min } else { &mut member.max }) = told;
            }
        }
        if told.has("range") {
            member.min = self.ranged(scope, told, &member.ty, "min")?;
            member.max = self.ranged(scope, told, &member.ty, "max")?;
        }
        if let (Some(default), Some(annotation)) = (&member.default, told.find("default")) {
            let below = member.min.as_ref().is_some_and(|min| less(default, min));
            let above = member.max.as_ref().is_some_and(|max| less(max, default));
            if below || above {
                let said =
                    Diagnostic::error(annotation.span, "the default is outside of the range of its member");
                self.say(said);
            }
        }
        Ok(())
    }

    fn ranged(
        &mut self,
        scope: ScopeId,
        told: &Annotations<'_>,
        ty: &Type,
        part: &str,
    ) -> Resolved<Option<Value>> {
        match self.annotated(told, "range", part) {
            Some(expression) => self.value(scope, expression, ty).map(Some),
            None => Ok(None),
        }
    }

    fn member_id(
        &mut self,
        scope: ScopeId,
        told: &Annotations<'_>,
        name: &ast::Name,
        autoid: AutoId,
        taken: &mut Taken,
    ) -> u32 {
        let told_id = self.annotated_number(scope, told, "id", 0, i128::from(MEMBER_ID_MAX));
        let hashed = told.has("hashid").then(|| {
            let of = self.annotated_text(told, "hashid", "value").filter(|of| !of.is_empty());
            hash_id(of.as_deref().unwrap_or(&name.text))
        });
        if let (Some(_), Some(_), Some(annotation)) = (told_id, hashed, told.find("hashid")) {
            self.say(Diagnostic::error(annotation.span, "a member has either `@id` or `@hashid`"));
        }
        let automatic = if autoid == AutoId::Hash { hash_id(&name.text) } else { taken.next };
        let id = told_id.and_then(|id| u32::try_from(id).ok()).or(hashed).unwrap_or(automatic);
        let first = taken.ids.insert(id, name.span);
        if let (Some(discriminator), 0) = (taken.discriminator, id)
            && first == Some(discriminator)
        {
            let message = format!("`{}` has the id 0, which is that of the discriminator", name.text);
            let said = Diagnostic::warning(name.span, message);
            self.say(said.hint("ids of the members of a union start at 1; some peers refuse this type"));
        } else if let Some(first) = first {
            let message = format!("`{}` has the id {id}, which is taken", name.text);
            let said = Diagnostic::error(name.span, message).note("by this one", first);
            self.say(said.hint("give one of them another by `@id`"));
        }
        taken.next = id.saturating_add(1);
        id
    }
}

/// Whether one number is less than another.
fn less(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => one < other,
        (Value::Float(one), Value::Float(other)) => one < other,
        _ => false,
    }
}
