//! The end of a run: what refers to something that is missing goes, and the rest gets its place.

use std::collections::HashMap;

use super::{Missing, Resolver};
use crate::diagnostic::Diagnostic;
use crate::model::{DefinitionId, DefinitionKind, Element, Model, Type, Value};

pub(super) fn finish(mut resolver: Resolver<'_>) -> Model {
    leave_out(&mut resolver);
    let mut places = HashMap::new();
    for id in &resolver.order {
        if resolver.slots[id.0].is_some() {
            places.insert(*id, DefinitionId(places.len()));
        }
    }
    let mut model = Model::default();
    for id in &resolver.order {
        let span = resolver.spans[id.0];
        if let Some(mut definition) = resolver.slots[id.0].take() {
            let included = !resolver.inputs.contains(&span.file);
            each_reference(&mut definition.kind, &mut |reference| {
                if let Some(place) = places.get(reference) {
                    *reference = *place;
                }
            });
            model.definitions.push(definition);
            model.origins.push(Some((span, included)));
        }
    }
    model
}

/// Removes definitions whose parts are missing, and those that refer to them.
fn leave_out(resolver: &mut Resolver<'_>) {
    let mut users = HashMap::<DefinitionId, Vec<DefinitionId>>::new();
    let mut missing = Vec::new();
    for id in resolver.order.clone() {
        let Some(definition) = resolver.slots[id.0].as_mut() else { continue };
        let mut references = Vec::new();
        each_reference(&mut definition.kind, &mut |reference| references.push(*reference));
        for reference in references {
            users.entry(reference).or_default().push(id);
            if resolver.slots[reference.0].is_none() {
                missing.push(reference);
            }
        }
    }
    missing.sort_unstable();
    missing.dedup();
    while let Some(part) = missing.pop() {
        let users = users.remove(&part).unwrap_or_default();
        let reason = resolver.left_out.get(&part).cloned();
        if let (None, Some(user)) = (&reason, users.first()) {
            let said =
                Diagnostic::error(resolver.spans[part.0], "this type is declared, used, and never defined");
            let used = resolver.used_early.get(&part).copied().unwrap_or(resolver.spans[user.0]);
            resolver.say(said.note("it is used here", used).hint("define it, or include the file that does"));
        }
        for user in users {
            let Some(definition) = resolver.slots[user.0].take() else { continue };
            if let Some(Missing::LeftOut(why)) = &reason {
                let message = format!("`{}` is left out: {why}", definition.name);
                resolver.say(Diagnostic::warning(resolver.spans[user.0], message));
            }
            resolver.left_out.insert(user, reason.clone().unwrap_or(Missing::Failed));
            missing.push(user);
        }
    }
}

/// Calls `visit` with everything that a definition refers to.
pub(super) fn each_reference(kind: &mut DefinitionKind, visit: &mut dyn FnMut(&mut DefinitionId)) {
    match kind {
        DefinitionKind::Constant { ty, value } => {
            in_type(ty, visit);
            in_value(Some(value), visit);
        }
        DefinitionKind::Structure(structure) => {
            structure.base.iter_mut().for_each(&mut *visit);
            for member in &mut structure.members {
                in_member(member, visit);
            }
        }
        DefinitionKind::Union(union) => {
            in_type(&mut union.discriminator, visit);
            for case in &mut union.cases {
                in_member(&mut case.member, visit);
            }
        }
        DefinitionKind::Bitset(bitset) => bitset.base.iter_mut().for_each(visit),
        DefinitionKind::Alias(ty) => in_type(ty, visit),
        DefinitionKind::Enumeration(_) | DefinitionKind::Bitmask(_) => {}
    }
}

fn in_member(member: &mut crate::model::Member, visit: &mut dyn FnMut(&mut DefinitionId)) {
    in_type(&mut member.ty, visit);
    for value in [&mut member.default, &mut member.min, &mut member.max] {
        in_value(value.as_mut(), visit);
    }
}

fn in_value(value: Option<&mut Value>, visit: &mut dyn FnMut(&mut DefinitionId)) {
    if let Some(Value::Literal { of, .. }) = value {
        visit(of);
    }
}

fn in_type(ty: &mut Type, visit: &mut dyn FnMut(&mut DefinitionId)) {
    let mut in_element = |element: &mut Element| in_type(&mut element.ty, visit);
    match ty {
        Type::Named(id) => visit(id),
        Type::Sequence { element, .. } | Type::Array { element, .. } => in_element(element),
        Type::Map { key, value, .. } => {
            in_element(key);
            in_element(value);
        }
        Type::Primitive(_) | Type::String { .. } | Type::Fixed { .. } => {}
    }
}
