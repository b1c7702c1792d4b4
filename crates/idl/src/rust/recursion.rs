//! Which types contain one another, and need a box between them.

use std::collections::HashMap;

use crate::model::{DefinitionId, DefinitionKind, Element, Model, Type};

/// For each definition the number of its circle; those of no other circle stand alone.
pub(super) struct Circles {
    circle: Vec<usize>,
    /// It refers to itself, perhaps by way of others.
    own: Vec<bool>,
}

impl Circles {
    pub(super) fn of(model: &Model) -> Self {
        let count = model.definitions().count();
        let edges = (0..count).map(|index| references(model, DefinitionId(index))).collect::<Vec<_>>();
        let circle = components(&edges);
        let in_circle = |index: usize, to: &usize| *to == index || circle[*to] == circle[index];
        let own = edges.iter().enumerate().map(|(index, to)| to.iter().any(|to| in_circle(index, to)));
        let own = own.collect();
        Self { circle, own }
    }

    /// Whether the two are parts of one circle.
    pub(super) fn together(&self, one: DefinitionId, other: DefinitionId) -> bool {
        self.circle[one.0] == self.circle[other.0] && (one != other || self.own[one.0])
    }
}

/// The definitions among `direct`, and all that refer to them, perhaps by way of others: each with the one
/// through which it got here.
pub(super) fn spread(
    model: &Model,
    direct: impl Iterator<Item = DefinitionId>,
) -> HashMap<DefinitionId, Option<DefinitionId>> {
    let mut users = HashMap::<DefinitionId, Vec<DefinitionId>>::new();
    for (id, _) in model.definitions() {
        for used in references(model, id) {
            users.entry(DefinitionId(used)).or_default().push(id);
        }
    }
    let mut found = direct.map(|id| (id, None)).collect::<HashMap<_, _>>();
    let mut open = found.keys().copied().collect::<Vec<_>>();
    open.sort_unstable();
    while let Some(id) = open.pop() {
        for user in users.remove(&id).unwrap_or_default() {
            found.entry(user).or_insert_with(|| {
                open.push(user);
                Some(id)
            });
        }
    }
    found
}

fn references(model: &Model, id: DefinitionId) -> Vec<usize> {
    let mut found = Vec::new();
    match &model.definition(id).kind {
        DefinitionKind::Structure(structure) => {
            found.extend(structure.base.map(|base| base.0));
            for member in model.all_members(structure) {
                in_type(&member.ty, &mut found);
            }
        }
        DefinitionKind::Union(union) => {
            in_type(&union.discriminator, &mut found);
            for case in &union.cases {
                in_type(&case.member.ty, &mut found);
            }
        }
        DefinitionKind::Alias(ty) | DefinitionKind::Constant { ty, .. } => in_type(ty, &mut found),
        _ => {}
    }
    found
}

fn in_type(ty: &Type, found: &mut Vec<usize>) {
    let mut element = |element: &Element| in_type(&element.ty, found);
    match ty {
        Type::Named(id) => found.push(id.0),
        Type::Sequence { element: of, .. } | Type::Array { element: of, .. } => element(of),
        Type::Map { key, value, .. } => {
            element(key);
            element(value);
        }
        Type::Primitive(_) | Type::String { .. } | Type::Fixed { .. } => {}
    }
}

/// Strongly connected components (Tarjan), with a stack of our own: chains of types may be long.
fn components(edges: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let count = edges.len();
    let (mut index, mut low, mut component) = (vec![NONE; count], vec![0; count], vec![NONE; count]);
    let (mut next, mut stack) = (0, Vec::new());
    for root in 0..count {
        if index[root] != NONE {
            continue;
        }
        let mut calls = vec![(root, 0)];
        while let Some((node, edge)) = calls.pop() {
            if edge == 0 {
                index[node] = next;
                low[node] = next;
                next += 1;
                stack.push(node);
            }
            match edges[node].get(edge) {
                Some(&to) => {
                    calls.push((node, edge + 1));
                    if index[to] == NONE {
                        calls.push((to, 0));
                    } else if component[to] == NONE {
                        low[node] = low[node].min(index[to]);
                    }
                }
                None => {
                    if low[node] == index[node] {
                        while let Some(member) = stack.pop() {
                            component[member] = node;
                            if member == node {
                                break;
                            }
                        }
                    }
                    if let Some((parent, _)) = calls.last() {
                        low[*parent] = low[*parent].min(low[node]);
                    }
                }
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found() {
        let edges = [vec![1], vec![2], vec![0, 3], vec![3], vec![0]];
        let found = components(&edges);
        assert!(found[0] == found[1] && found[1] == found[2]);
        assert!(found[3] != found[0] && found[4] != found[0] && found[3] != found[4]);
    }
}
