//! Which described types contain one another, and the names and octets of their TypeObjects (XTypes 1.3
//! §7.3.4.9.2).
//!
//! Tarjan's algorithm, as the types are described: a type that is met while it is open, or its component is,
//! gets a provisional name. When the component is complete, its types get the final ones. Collections
//! without a TypeObject belong to the types that have them, as in Cyclone DDS.

use std::any::TypeId;
use std::collections::BTreeMap;

use super::{
    COMPONENT_TYPES_MAX, ComponentPlace, Definition, OBJECT_BYTES_MAX, TypeHash, TypeIdentifier,
    TypeIdentifiers, TypeObject,
};

/// What tells types apart while they are described: several may have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TypeKey {
    /// A type of Rust.
    Rust(TypeId),
    /// One that was read, by the number its reader gave it.
    Number(usize),
}

/// The types that were described, and their TypeObjects.
#[derive(Debug, Default)]
pub(super) struct Components {
    types: BTreeMap<TypeKey, State>,
    /// Types whose component is not complete, in the order in which they were met: open, or described.
    stack: Vec<Pending>,
    numbers: usize,
    objects: BTreeMap<TypeHash, Vec<u8>>,
}

#[derive(Debug)]
enum State {
    /// It is on the stack under this number.
    Pending(usize),
    /// `None` of types without description: what has one of them has none either.
    Done(Option<TypeIdentifiers>),
}

#[derive(Debug)]
struct Pending {
    /// None of a typedef of a derived type.
    key: Option<TypeKey>,
    number: usize,
    /// The smallest number on the stack that it leads to.
    lowest: usize,
    /// It leads to itself.
    is_recursive: bool,
    /// Minimal and complete; `None` while it is open, and where there is none.
    objects: Option<[TypeObject; 2]>,
}

impl Components {
    /// What is known of a type: `None` of one that was never met.
    pub(super) fn known(&mut self, key: TypeKey) -> Option<Option<TypeIdentifiers>> {
        let met = match self.types.get(&key)? {
            State::Done(identifiers) => return Some(identifiers.clone()),
            State::Pending(number) => *number,
        };
        if let Some(innermost) = self.stack.iter_mut().rev().find(|it| it.objects.is_none()) {
            innermost.lowest = innermost.lowest.min(met);
            innermost.is_recursive |= innermost.number == met;
        }
        Some(Some(provisional(met)))
    }

    /// Begins the description of a type: the number it goes by.
    pub(super) fn open(&mut self, key: TypeKey) -> usize {
        let number = self.numbers;
        self.numbers += 1;
        self.types.insert(key, State::Pending(number));
        self.stack.push(Pending {
            key: Some(key),
            number,
            lowest: number,
            is_recursive: false,
            objects: None,
        });
        number
    }

    /// Ends it.
    pub(super) fn close(
        &mut self,
        key: TypeKey,
        number: usize,
        objects: Option<[TypeObject; 2]>,
    ) -> Option<TypeIdentifiers> {
        let at = self.stack.iter().rposition(|it| it.number == number)?;
        let closed = self.stack.get_mut(at)?;
        let (lowest, is_recursive) = (closed.lowest, closed.is_recursive);
        // One that has none is closed, too: what it leads to belongs to it all the same.
        closed.objects = Some(objects.unwrap_or_else(missing));
        if lowest < number {
            let outer = self.stack.get_mut(..at)?.iter_mut().rev().find(|it| it.objects.is_none())?;
            outer.lowest = outer.lowest.min(lowest);
            return Some(provisional(number));
        }
        let component = self.stack.split_off(at);
        self.finish(component, is_recursive);
        match self.types.get(&key)? {
            State::Done(identifiers) => identifiers.clone(),
            State::Pending(_) => None,
        }
    }

    /// The name that a typedef gives a type.
    pub(super) fn alias(&mut self, name: &str, target: TypeIdentifiers) -> TypeIdentifiers {
        let mut objects = [target.minimal, target.complete]
            .map(|target| TypeObject { name: Some(name.to_owned()), definition: Definition::Alias(target) });
        let mut lowest = usize::MAX;
        let [minimal, _] = &mut objects;
        minimal.each_hash_mut(&mut |hash| lowest = number_of(hash).map_or(lowest, |it| it.min(lowest)));
        let same = |it: &&Pending| it.key.is_none() && it.objects.as_ref() == Some(&objects);
        if let Some(known) = self.stack.iter().find(same) {
            return provisional(known.number);
        }
        // A typedef of a type whose component is not complete belongs to that component.
        let is_pending = lowest != usize::MAX;
        let number = self.numbers;
        self.numbers += 1;
        let alias = Pending { key: None, number, lowest, is_recursive: false, objects: Some(objects) };
        if is_pending {
            self.stack.push(alias);
            return provisional(number);
        }
        let alias = [alias];
        let named = [false, true].map(|complete| one_name(&alias, complete).and_then(|mut it| it.pop()));
        let [Some(minimal), Some(complete)] = named else { return provisional(number) };
        let identifiers = TypeIdentifiers {
            minimal: TypeIdentifier::Hash(minimal.0),
            complete: TypeIdentifier::Hash(complete.0),
        };
        self.objects.extend([minimal, complete]);
        identifiers
    }

    /// The serialized TypeObjects.
    pub(super) fn into_objects(self) -> BTreeMap<TypeHash, Vec<u8>> {
        self.objects
    }

    /// Names the types of a component.
    fn finish(&mut self, mut component: Vec<Pending>, is_recursive: bool) {
        component.sort_by(|one, other| name(one).cmp(name(other)).then(one.number.cmp(&other.number)));
        let several = is_recursive || component.len() > 1;
        let named: Option<Vec<_>> = [false, true]
            .into_iter()
            .map(
                |complete| if several { names(&component, complete) } else { one_name(&component, complete) },
            )
            .collect();
        for (place, pending) in component.iter().enumerate() {
            let of_place = |complete: usize| named.as_ref()?.get(complete)?.get(place).cloned();
            let identifiers = of_place(0).zip(of_place(1)).map(|(minimal, complete)| TypeIdentifiers {
                minimal: TypeIdentifier::Hash(minimal.0),
                complete: TypeIdentifier::Hash(complete.0),
            });
            if let Some(key) = pending.key {
                self.types.insert(key, State::Done(identifiers));
            }
        }
        self.objects.extend(named.into_iter().flatten().flatten());
    }
}

/// A name and the octets of what it names.
type Named = (TypeHash, Vec<u8>);

/// The name of a type that does not contain itself.
fn one_name(component: &[Pending], complete: bool) -> Option<Vec<Named>> {
    let serialized = serialize(component, complete, |_| None)?;
    Some(serialized.into_iter().map(|octets| (TypeHash::of(complete, &octets), octets)).collect())
}

/// The names of types that contain one another, in order.
fn names(component: &[Pending], complete: bool) -> Option<Vec<Named>> {
    let length = u32::try_from(component.len()).ok().filter(|it| *it <= COMPONENT_TYPES_MAX)?;
    let place_of = |number| {
        let at = component.iter().position(|it| it.number == number)?;
        Some(ComponentPlace { length, index: u32::try_from(at).ok()? + 1 })
    };
    let with = |octets: [u8; 14]| {
        serialize(component, complete, |number| {
            Some(TypeHash { complete, octets, component: Some(place_of(number)?) })
        })
    };
    let whole = TypeHash::of_component(complete, [0; 14], &with([0; 14])?);
    let names = whole.types();
    Some(names.zip(with(whole.octets)?).collect())
}

/// The serialized TypeObjects, with the provisional names replaced; `None` where there is none, or one is too
/// large.
fn serialize(
    component: &[Pending],
    complete: bool,
    mut name: impl FnMut(usize) -> Option<TypeHash>,
) -> Option<Vec<Vec<u8>>> {
    let one = |pending: &Pending| {
        let mut object = pending.objects.as_ref()?.get(usize::from(complete))?.clone();
        if is_missing(&object) {
            return None;
        }
        object.each_hash_mut(&mut |hash| {
            if let Some(named) = number_of(hash).and_then(&mut name) {
                *hash = named;
            }
        });
        object.serialize(complete).ok().filter(|it| it.len() <= OBJECT_BYTES_MAX)
    };
    component.iter().map(one).collect()
}

fn name(pending: &Pending) -> &str {
    pending.objects.iter().flatten().find_map(|it| it.name.as_deref()).unwrap_or_default()
}

/// What stands for a TypeObject that there is not.
fn missing() -> [TypeObject; 2] {
    [false, true].map(|_| TypeObject { name: None, definition: Definition::Other(0) })
}

fn is_missing(object: &TypeObject) -> bool {
    object.definition == Definition::Other(0)
}

/// What a type is called until its component is complete: in a component of no type.
fn provisional(number: usize) -> TypeIdentifiers {
    let mut octets = [0; 14];
    octets.iter_mut().zip(number.to_le_bytes()).for_each(|(octet, from)| *octet = from);
    let component = Some(ComponentPlace { length: 0, index: 0 });
    let of = |complete| TypeIdentifier::Hash(TypeHash { complete, octets, component });
    TypeIdentifiers { minimal: of(false), complete: of(true) }
}

fn number_of(hash: &TypeHash) -> Option<usize> {
    hash.component.filter(|it| it.length == 0)?;
    Some(usize::from_le_bytes(*hash.octets.first_chunk()?))
}

impl TypeIdentifier {
    fn each_hash_mut(&mut self, found: &mut impl FnMut(&mut TypeHash)) {
        match self {
            Self::Hash(hash) => found(hash),
            Self::Sequence { element, .. } | Self::Array { element, .. } => element.each_hash_mut(found),
            Self::Map { key, element, .. } => {
                key.each_hash_mut(found);
                element.each_hash_mut(found);
            }
            Self::None | Self::Primitive(_) | Self::String { .. } | Self::Unknown(_) => {}
        }
    }
}

impl TypeObject {
    fn each_hash_mut(&mut self, found: &mut impl FnMut(&mut TypeHash)) {
        match &mut self.definition {
            Definition::Alias(target) | Definition::Collection(target) => target.each_hash_mut(found),
            Definition::Structure { base, members, .. } => {
                base.each_hash_mut(found);
                members.iter_mut().for_each(|member| member.ty.each_hash_mut(found));
            }
            Definition::Union { discriminator, members, .. } => {
                discriminator.each_hash_mut(found);
                members.iter_mut().for_each(|member| member.ty.each_hash_mut(found));
            }
            Definition::Enumeration { .. }
            | Definition::Bitmask { .. }
            | Definition::Bitset { .. }
            | Definition::Other(_) => {}
        }
    }
}
