//! Types that Rust types of Plainsong cannot say.

use std::collections::HashMap;

use super::recursion::spread;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::model::{DefinitionId, DefinitionKind, Model, Type};

/// What a definition has that the derive has not.
struct Reason {
    what: String,
    hint: &'static str,
    /// It is another definition.
    other: bool,
}

/// Definitions that cannot be written, and why.
pub(super) struct Lacking {
    reasons: HashMap<DefinitionId, Reason>,
}

impl Lacking {
    pub(super) fn of(model: &Model) -> Self {
        let direct = model.definitions().filter_map(|(id, _)| Some((id, reason(model, id)?)));
        let mut reasons = direct.collect::<HashMap<_, _>>();
        for (id, through) in spread(model, reasons.keys().copied().collect::<Vec<_>>().into_iter()) {
            if let Some(through) = through {
                let what = format!("`{}`", model.definition(through).full_name());
                reasons.entry(id).or_insert(Reason { what, hint: "", other: true });
            }
        }
        Self { reasons }
    }

    pub(super) fn has(&self, id: DefinitionId) -> bool {
        self.reasons.contains_key(&id)
    }

    /// Says what is not written; if nothing is, what to do.
    pub(super) fn say(&self, model: &Model, leave_out: bool, diagnostics: &mut Diagnostics) {
        let mut sorted = self.reasons.iter().collect::<Vec<_>>();
        sorted.sort_by_key(|(id, _)| **id);
        for (id, Reason { what, hint, other }) in sorted {
            let name = model.definition(*id).full_name();
            let message = match (other, leave_out) {
                (false, _) => format!("`{name}` has {what}, which Rust types of Plainsong have not yet"),
                (true, true) => format!("`{name}` is left out: it uses {what}"),
                // The error of the other one is enough.
                (true, false) => continue,
            };
            let severity = if leave_out { Severity::Warning } else { Severity::Error };
            let hint = format!("{hint}; `--leave-out` writes everything else");
            let hint = (!leave_out).then_some(hint);
            let span = model.span(*id);
            diagnostics.push(Diagnostic { severity, message, span, notes: Vec::new(), hint });
        }
    }
}

/// What it has itself.
fn reason(model: &Model, id: DefinitionId) -> Option<Reason> {
    match &model.definition(id).kind {
        // A fixed constant is a string.
        DefinitionKind::Constant { ty: Type::Fixed { .. }, .. } => None,
        DefinitionKind::Constant { ty, .. } | DefinitionKind::Alias(ty) => in_type(ty),
        DefinitionKind::Structure(structure) => {
            model.all_members(structure).iter().find_map(|member| in_type(&member.ty))
        }
        DefinitionKind::Union(union) => {
            let inner = || union.cases.iter().find_map(|case| in_type(&case.member.ty));
            in_type(&union.discriminator).or_else(inner)
        }
        DefinitionKind::Enumeration(_) | DefinitionKind::Bitmask(_) | DefinitionKind::Bitset(_) => None,
    }
}

fn in_type(ty: &Type) -> Option<Reason> {
    match ty {
        Type::Fixed { .. } => {
            let what = "a fixed-point number".to_owned();
            Some(Reason { what, hint: "use an integer of the smallest unit", other: false })
        }
        Type::Sequence { element, .. } | Type::Array { element, .. } => in_type(&element.ty),
        Type::Map { key, value, .. } => in_type(&key.ty).or_else(|| in_type(&value.ty)),
        Type::Primitive(_) | Type::String { .. } | Type::Named(_) => None,
    }
}
