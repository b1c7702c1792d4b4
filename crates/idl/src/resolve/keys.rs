//! Pragmas that do what annotations do today: `keylist`, `DCPS_DATA_KEY` and `DCPS_DATA_TYPE`.

use super::scope::{ScopeId, SymbolKind};
use super::{Missing, Resolver};
use crate::ast::{Name, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::model::{DefinitionId, DefinitionKind, Type};
use crate::source::Span;

impl Resolver<'_> {
    /// Makes members keys. A path names a member of a member: both are keys then.
    pub(super) fn keys(&mut self, scope: ScopeId, of: &str, paths: &[std::sync::Arc<str>], span: Span) {
        let Some(id) = self.named(scope, of, span) else { return };
        for path in paths {
            let mut id = id;
            let mut parts = path.split('.').peekable();
            while let Some(part) = parts.next() {
                // OpenDDS names elements of arrays, `member[0]`; the array is the key.
                let part = part.split('[').next().unwrap_or(part);
                let Some(ty) = self.make_key(id, part, span) else { break };
                if parts.peek().is_none() {
                    break;
                }
                // Of an array, the key is in its elements.
                let mut inner = self.underlying(&ty);
                while let Type::Array { element, .. } = inner {
                    inner = self.underlying(&element.ty);
                }
                let Type::Named(next) = *inner else {
                    self.say(Diagnostic::error(span, format!("`{part}` has no members")));
                    break;
                };
                id = next;
            }
        }
    }

    /// Marks the type of a topic.
    pub(super) fn topic(&mut self, scope: ScopeId, of: &str, span: Span) {
        let Some(id) = self.named(scope, of, span) else { return };
        let kind = self.slots[id.0].as_mut().map(|it| &mut it.kind);
        if let Some(
            DefinitionKind::Structure(crate::model::Structure { aggregate, .. })
            | DefinitionKind::Union(crate::model::Union { aggregate, .. }),
        ) = kind
        {
            aggregate.topic.get_or_insert(None);
            aggregate.nested = false;
        }
    }

    fn named(&mut self, scope: ScopeId, of: &str, span: Span) -> Option<DefinitionId> {
        let absolute = of.starts_with("::");
        let parts = of.split("::").filter(|part| !part.is_empty());
        let parts = parts.map(|part| Name { text: part.into(), span }).collect::<Vec<_>>();
        match self.look_up(scope, &ScopedName { absolute, parts, span }, "type") {
            Ok(SymbolKind::Type { id, .. }) => match self.underlying(&Type::Named(id)) {
                Type::Named(id) => Some(*id),
                _ => None,
            },
            Ok(_) => {
                self.say(Diagnostic::error(span, format!("`{of}` is no type")));
                None
            }
            Err(Missing::Failed | Missing::LeftOut(_)) => None,
        }
    }

    /// Makes a member of a structure a key; its type.
    fn make_key(&mut self, id: DefinitionId, name: &str, span: Span) -> Option<Type> {
        let structure = match self.slots[id.0].as_mut().map(|it| &mut it.kind) {
            Some(DefinitionKind::Structure(structure)) => structure,
            // The key of a union is its discriminator.
            Some(DefinitionKind::Union(union)) if name == "_d" => {
                union.key = true;
                return Some(union.discriminator.clone());
            }
            _ => {
                self.say(Diagnostic::error(
                    span,
                    format!("there is no structure with a member `{name}` to be a key"),
                ));
                return None;
            }
        };
        if let Some(member) = structure.members.iter_mut().find(|it| *it.name == *name) {
            member.key = true;
            return Some(member.ty.clone());
        }
        if let Some(base) = structure.base {
            return self.make_key(base, name, span);
        }
        let type_name = self.name_of(id);
        let said = Diagnostic::error(span, format!("`{type_name}` has no member `{name}` to be a key"));
        self.say(said.hint("list the names of members, as `#pragma keylist Type id part.id`"));
        None
    }
}
