//! From a Rust type to its TypeObjects: what `#[derive(DdsType)]` tells, serialized and hashed.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};

use super::{
    Definition, Literal, MemberName, OBJECT_BYTES_MAX, StructureMember, TypeHash, TypeIdentifier,
    TypeInformation, TypeObject, TypeWithDependencies, UnionMember, member_flag,
};
use crate::cdr::{DdsType, Extensibility};

/// The same type in both equivalence relations (XTypes 1.3 §7.3.4.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeIdentifiers {
    /// By what matters for assignability.
    pub minimal: TypeIdentifier,
    /// By everything, names included.
    pub complete: TypeIdentifier,
}

impl TypeIdentifiers {
    /// A type that its identifier says all of.
    #[must_use]
    pub fn same(identifier: TypeIdentifier) -> Self {
        Self { minimal: identifier.clone(), complete: identifier }
    }

    fn each(self, mut wrap: impl FnMut(TypeIdentifier) -> TypeIdentifier) -> Self {
        Self { minimal: wrap(self.minimal), complete: wrap(self.complete) }
    }

    /// A sequence of this.
    #[must_use]
    pub fn sequence(self) -> Self {
        self.each(|element| TypeIdentifier::Sequence { bound: 0, element: Box::new(element) })
    }

    /// An array of this; of an array, one with a dimension more.
    #[must_use]
    pub fn array(self, length: usize) -> Self {
        let length = saturated(length);
        self.each(|element| match element {
            TypeIdentifier::Array { mut bounds, element } => {
                bounds.insert(0, length);
                TypeIdentifier::Array { bounds, element }
            }
            element => TypeIdentifier::Array { bounds: vec![length], element: Box::new(element) },
        })
    }

    /// A map from `key` to this.
    #[must_use]
    pub fn map(self, key: Self) -> Self {
        let map =
            |key, element| TypeIdentifier::Map { bound: 0, key: Box::new(key), element: Box::new(element) };
        Self { minimal: map(key.minimal, self.minimal), complete: map(key.complete, self.complete) }
    }

    /// The same string or collection with a bound.
    #[must_use]
    fn bounded(self, to: Option<usize>) -> Self {
        let Some(to) = to.map(saturated) else { return self };
        self.each(|mut identifier| {
            if let TypeIdentifier::String { bound, .. }
            | TypeIdentifier::Sequence { bound, .. }
            | TypeIdentifier::Map { bound, .. } = &mut identifier
            {
                *bound = to;
            }
            identifier
        })
    }
}

fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// What `describe` of a member type is.
pub type Describe = fn(&mut TypeBuilder) -> Option<TypeIdentifiers>;

/// A member of a structure or union, as `#[derive(DdsType)]` tells it.
#[derive(Clone, Copy)]
pub struct MemberDescription {
    /// Its name.
    pub name: &'static str,
    /// Its member id.
    pub id: u32,
    /// It is optional.
    pub optional: bool,
    /// It belongs to the key.
    pub key: bool,
    /// Who does not know it must not take the sample.
    pub must_understand: bool,
    /// Its bound, when it has one.
    pub bound: Option<usize>,
    /// Describes its type.
    pub describe: Describe,
}

impl MemberDescription {
    const fn flags(&self) -> u16 {
        let mut flags = member_flag::DISCARD;
        if self.optional {
            flags |= member_flag::OPTIONAL;
        }
        if self.must_understand {
            flags |= member_flag::MUST_UNDERSTAND;
        }
        if self.key {
            flags |= member_flag::KEY;
        }
        flags
    }
}

/// A case of a union, as `#[derive(DdsType)]` tells it.
#[derive(Clone, Copy)]
pub struct CaseDescription {
    /// The member it selects.
    pub member: MemberDescription,
    /// The values of the discriminator that select it.
    pub labels: &'static [i64],
    /// Every other value selects it.
    pub default: bool,
}

impl CaseDescription {
    /// As a TypeObject has them, which has no larger ones.
    fn labels(&self) -> Option<Vec<i32>> {
        self.labels.iter().map(|label| i32::try_from(*label).ok()).collect()
    }
}

/// Collects the TypeObjects of a type and of those it depends on. Types are told apart as Rust tells them:
/// several may have one name.
#[derive(Debug, Default)]
pub struct TypeBuilder {
    /// Types being described: one that is met again contains itself.
    open: Vec<TypeId>,
    /// `None` of types without description: what has one of them has none either.
    done: BTreeMap<TypeId, Option<TypeIdentifiers>>,
    objects: BTreeMap<TypeHash, Vec<u8>>,
    boxed_bytes_max: usize,
}

impl TypeBuilder {
    /// Notes that values of type `T` are kept in the heap, as elements of a sequence are: each is decoded by
    /// itself.
    pub(crate) fn boxes<T>(&mut self) {
        self.boxed_bytes_max = self.boxed_bytes_max.max(size_of::<T>());
    }

    /// A structure, by its Rust type (with the lifetime `'static`); `None` when it contains itself or
    /// something without description.
    pub fn structure(
        &mut self,
        rust_type: TypeId,
        name: &'static str,
        extensibility: Extensibility,
        hash_ids: bool,
        members: &[MemberDescription],
    ) -> Option<TypeIdentifiers> {
        self.once(rust_type, |types| {
            // All are looked at, also where one has no description.
            let described: Vec<_> =
                members.iter().map(|member| Some((member, types.member(member)?))).collect();
            let described: Vec<_> = described.into_iter().collect::<Option<_>>()?;
            types.add(name, |complete| {
                let members = described.iter().map(|(member, ty)| StructureMember {
                    id: member.id,
                    flags: member.flags(),
                    ty: pick(ty, complete),
                    name: MemberName::new(member.name),
                });
                let mut members: Vec<_> = members.collect();
                if !complete {
                    members.sort_by_key(|member| member.id);
                }
                Definition::Structure { extensibility, hash_ids, base: TypeIdentifier::None, members }
            })
        })
    }

    /// A union; `None` as with structures, and where a label has more than 32 bits.
    pub fn union(
        &mut self,
        rust_type: TypeId,
        name: &'static str,
        extensibility: Extensibility,
        discriminator: Describe,
        key: bool,
        cases: &[CaseDescription],
    ) -> Option<TypeIdentifiers> {
        self.once(rust_type, |types| {
            let discriminator = discriminator(types);
            let described: Vec<_> =
                cases.iter().map(|case| Some((case, types.member(&case.member)?, case.labels()?))).collect();
            let described: Vec<_> = described.into_iter().collect::<Option<_>>()?;
            let discriminator = discriminator?;
            types.add(name, |complete| {
                let members = described.iter().map(|(case, ty, labels)| UnionMember {
                    id: case.member.id,
                    flags: case.member.flags() | if case.default { member_flag::DEFAULT } else { 0 },
                    ty: pick(ty, complete),
                    labels: labels.clone(),
                    name: MemberName::new(case.member.name),
                });
                let mut members: Vec<_> = members.collect();
                if !complete {
                    members.sort_by_key(|member| member.id);
                }
                Definition::Union {
                    extensibility,
                    discriminator: pick(&discriminator, complete),
                    key,
                    members,
                }
            })
        })
    }

    /// An enumeration: name, value and whether it is the default of each literal.
    pub fn enumeration(
        &mut self,
        rust_type: TypeId,
        name: &'static str,
        bit_bound: u16,
        literals: &[(&'static str, i64, bool)],
    ) -> Option<TypeIdentifiers> {
        self.once(rust_type, |types| {
            types.add(name, |_| {
                let literals = literals.iter().map(|(name, value, default)| Literal {
                    value: i32::try_from(*value).unwrap_or(i32::MAX),
                    flags: if *default { member_flag::DEFAULT } else { 0 },
                    name: MemberName::new(name),
                });
                let mut literals: Vec<_> = literals.collect();
                literals.sort_by_key(|literal| literal.value);
                Definition::Enumeration { bit_bound, literals }
            })
        })
    }

    fn member(&mut self, member: &MemberDescription) -> Option<TypeIdentifiers> {
        (member.describe)(self).map(|identifiers| identifiers.bounded(member.bound))
    }

    fn once(
        &mut self,
        rust_type: TypeId,
        describe: impl FnOnce(&mut Self) -> Option<TypeIdentifiers>,
    ) -> Option<TypeIdentifiers> {
        if let Some(known) = self.done.get(&rust_type) {
            return known.clone();
        }
        if self.open.contains(&rust_type) {
            return None;
        }
        self.open.push(rust_type);
        let identifiers = describe(self);
        self.open.pop();
        self.done.insert(rust_type, identifiers.clone());
        identifiers
    }

    fn add(&mut self, name: &str, define: impl Fn(bool) -> Definition) -> Option<TypeIdentifiers> {
        let mut one = |complete| {
            let object = TypeObject { name: Some(name.to_owned()), definition: define(complete) };
            let serialized = object.serialize(complete).ok().filter(|it| it.len() <= OBJECT_BYTES_MAX)?;
            let hash = TypeHash::of(complete, &serialized);
            self.objects.insert(hash, serialized);
            Some(TypeIdentifier::Hash(hash))
        };
        Some(TypeIdentifiers { minimal: one(false)?, complete: one(true)? })
    }
}

fn pick(identifiers: &TypeIdentifiers, complete: bool) -> TypeIdentifier {
    if complete { identifiers.complete.clone() } else { identifiers.minimal.clone() }
}

/// A type as its endpoints tell it to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDescription {
    /// What announcements say.
    pub information: TypeInformation,
    /// The serialized TypeObjects of the type and of all it depends on.
    pub objects: BTreeMap<TypeHash, Vec<u8>>,
}

impl TypeDescription {
    /// The description of a type; `None` for one that contains itself, or that no TypeObject tells: such
    /// types are matched by name alone.
    #[must_use]
    pub fn of<T: DdsType>() -> Option<Self> {
        Self::of_with_value_bytes::<T>().0
    }

    /// The same, and octets of memory of the largest value that is decoded in one piece: of the type, or of
    /// what its collections and boxes have.
    pub(crate) fn of_with_value_bytes<T: DdsType>() -> (Option<Self>, usize) {
        let mut types = TypeBuilder::default();
        let identifiers = T::describe(&mut types);
        let value_bytes = types.boxed_bytes_max.max(size_of::<T>());
        (identifiers.and_then(|identifiers| Self::made(types, identifiers)), value_bytes)
    }

    /// The description of the type that `describe` describes.
    #[must_use]
    pub fn build(describe: impl FnOnce(&mut TypeBuilder) -> Option<TypeIdentifiers>) -> Option<Self> {
        let mut types = TypeBuilder::default();
        let identifiers = describe(&mut types)?;
        Self::made(types, identifiers)
    }

    fn made(types: TypeBuilder, identifiers: TypeIdentifiers) -> Option<Self> {
        let (TypeIdentifier::Hash(minimal), TypeIdentifier::Hash(complete)) =
            (identifiers.minimal, identifiers.complete)
        else {
            return None;
        };
        let with_dependencies = |id: TypeHash| {
            let size = |hash: &TypeHash| types.objects.get(hash).map_or(0, |it| saturated(it.len()));
            let others: BTreeSet<_> =
                types.objects.keys().filter(|hash| hash.complete == id.complete && **hash != id).collect();
            let dependencies = others.into_iter().map(|hash| (*hash, size(hash))).collect();
            TypeWithDependencies { id, bytes: size(&id), dependencies }
        };
        let information = TypeInformation {
            minimal: Some(with_dependencies(minimal)),
            complete: Some(with_dependencies(complete)),
        };
        Some(Self { information, objects: types.objects })
    }
}
