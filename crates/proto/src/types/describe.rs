//! From a Rust type to its TypeObjects: what `#[derive(DdsType)]` tells, serialized and hashed.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};

use super::components::{Components, TypeKey};
use super::hash::component_bytes;
use super::{
    AnnotationValue, Bitfield, Bitflag, Definition, Literal, MemberAnnotations, MemberName, OBJECT_BYTES_MAX,
    Primitive, StructureMember, TryConstruct, TypeHash, TypeIdentifier, TypeInformation, TypeObject,
    TypeWithDependencies, UnionMember, member_flag,
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
        self.each(|element| TypeIdentifier::Sequence {
            bound: 0,
            element_flags: member_flag::DISCARD,
            element: Box::new(element),
        })
    }

    /// An array of this; of an array, one with a dimension more.
    #[must_use]
    pub fn array(self, length: usize) -> Self {
        let length = saturated(length);
        self.each(|element| match element {
            TypeIdentifier::Array { mut bounds, element_flags, element } => {
                bounds.insert(0, length);
                TypeIdentifier::Array { bounds, element_flags, element }
            }
            element => TypeIdentifier::Array {
                bounds: vec![length],
                element_flags: member_flag::DISCARD,
                element: Box::new(element),
            },
        })
    }

    /// A map from `key` to this.
    #[must_use]
    pub fn map(self, key: Self) -> Self {
        let map = |key, element| TypeIdentifier::Map {
            bound: 0,
            key_flags: member_flag::DISCARD,
            key: Box::new(key),
            element_flags: member_flag::DISCARD,
            element: Box::new(element),
        };
        Self { minimal: map(key.minimal, self.minimal), complete: map(key.complete, self.complete) }
    }
}

fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// What `describe` of a member type is.
pub type Describe = fn(&mut TypeBuilder) -> Option<TypeIdentifiers>;

/// A structure or union without its members, as `#[derive(DdsType)]` tells it.
#[derive(Clone, Copy)]
pub struct AggregateDescription {
    /// The Rust type, with the lifetime `'static`.
    pub rust_type: TypeId,
    /// Its name.
    pub name: &'static str,
    /// How it may evolve.
    pub extensibility: Extensibility,
    /// Its members' ids are hashes of their names.
    pub hash_ids: bool,
    /// It is no type of a topic.
    pub nested: bool,
}

/// An enumeration or bit mask without its literals or flags, as `#[derive(DdsType)]` tells it.
#[derive(Clone, Copy)]
pub struct BitsDescription {
    /// The Rust type.
    pub rust_type: TypeId,
    /// Its name.
    pub name: &'static str,
    /// How it may evolve; `None` is told as final, as Cyclone DDS tells all for which nothing is said.
    pub extensibility: Option<Extensibility>,
    /// Bits that hold a value.
    pub bit_bound: u16,
}

impl BitsDescription {
    fn told_extensibility(&self) -> Option<Extensibility> {
        self.extensibility.or(Some(Extensibility::Final))
    }
}

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
    /// It is a pointer in some languages.
    pub external: bool,
    /// What happens to values that do not fit.
    pub try_construct: TryConstruct,
    /// Its bound, and those of what it consists of.
    pub bounds: &'static Bounds,
    /// What complete TypeObjects tell besides.
    pub annotations: &'static AnnotationsDescription,
    /// Describes its type.
    pub describe: Describe,
}

/// Annotations of a member, as `#[derive(DdsType)]` tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnotationsDescription {
    /// `@unit`
    pub unit: Option<&'static str>,
    /// `@min`
    pub min: Option<AnnotationValue>,
    /// `@max`
    pub max: Option<AnnotationValue>,
}

impl AnnotationsDescription {
    /// No annotations.
    pub const NONE: Self = Self { unit: None, min: None, max: None };

    fn told(&self) -> MemberAnnotations {
        MemberAnnotations { unit: self.unit.map(str::to_owned), min: self.min, max: self.max }
    }
}

/// What limits a string or collection, and its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Its bound, when it has one.
    pub bound: Option<usize>,
    /// What happens to elements that do not fit.
    pub try_construct: TryConstruct,
    /// The numbers of 8 bits in it are octets: the type that IDL calls so is not its `uint8`.
    pub octet: bool,
    /// Of the keys of a map.
    pub key: Option<&'static Self>,
    /// Of the elements, or the values of a map.
    pub element: Option<&'static Self>,
    /// The names that typedefs give the type, the outermost first.
    pub aliases: &'static [&'static str],
}

impl Bounds {
    /// No bounds.
    pub const NONE: Self = Self::of(None);

    /// A bound, and none of its elements.
    #[must_use]
    pub const fn of(bound: Option<usize>) -> Self {
        let try_construct = TryConstruct::Discard;
        Self { bound, try_construct, octet: false, key: None, element: None, aliases: &[] }
    }

    /// The type with its bounds, and the names by which it goes.
    fn apply(&self, types: TypeIdentifiers, components: &mut Components) -> TypeIdentifiers {
        let TypeIdentifiers { minimal, complete } = types;
        let mut both = [minimal, complete];
        let is_split = self.split(&mut both, components);
        for identifier in &mut both {
            self.apply_own(identifier);
        }
        if !is_split {
            self.apply_within(Part::Key, &mut both, components);
            self.apply_within(Part::Element, &mut both, components);
        }
        let [minimal, complete] = both;
        let named = TypeIdentifiers { minimal, complete };
        self.aliases.iter().rev().fold(named, |target, name| components.alias(name, target))
    }

    /// The dimensions of an array are one array, unless some of them have a name: whether they have, and what
    /// has it is done with.
    fn split(&self, both: &mut [TypeIdentifier; 2], components: &mut Components) -> bool {
        let [TypeIdentifier::Array { bounds, .. }, _] = &*both else { return false };
        let levels = std::iter::successors(self.element, |outer| outer.element).take(bounds.len() - 1);
        let Some((at, level)) = levels.enumerate().find(|(_, level)| !level.aliases.is_empty()) else {
            return false;
        };
        let inner = both.each_mut().map(|it| match it {
            TypeIdentifier::Array { bounds, element_flags, element } => TypeIdentifier::Array {
                bounds: bounds.split_off(at + 1),
                element_flags: *element_flags,
                element: std::mem::replace(element, Box::new(TypeIdentifier::None)),
            },
            _ => TypeIdentifier::None,
        });
        let [minimal, complete] = inner;
        let inner = level.apply(TypeIdentifiers { minimal, complete }, components);
        for (identifier, inner) in both.iter_mut().zip([inner.minimal, inner.complete]) {
            if let TypeIdentifier::Array { element_flags, element, .. } = identifier {
                *element_flags = *element_flags & !member_flag::TRIM | level.try_construct.flags();
                **element = inner;
            }
        }
        true
    }

    /// What is about the type alone, and not about what is in it.
    fn apply_own(&self, identifier: &mut TypeIdentifier) {
        let given = self.bound.map(saturated);
        match identifier {
            TypeIdentifier::Primitive(number) if self.octet && *number == Primitive::Uint8 => {
                *number = Primitive::Byte;
            }
            TypeIdentifier::String { bound, .. }
            | TypeIdentifier::Sequence { bound, .. }
            | TypeIdentifier::Map { bound, .. } => *bound = given.unwrap_or(*bound),
            _ => {}
        }
    }

    fn apply_within(&self, part: Part, both: &mut [TypeIdentifier; 2], components: &mut Components) {
        let [minimal, complete] = both;
        let dimensions = if let TypeIdentifier::Array { bounds, .. } = minimal { bounds.len() } else { 1 };
        let (Some((flags, of_minimal)), Some((complete_flags, of_complete))) =
            (part.of(minimal), part.of(complete))
        else {
            return;
        };
        // In Rust each dimension is an array of its own.
        let inner = match part {
            Part::Key => self.key,
            Part::Element => {
                std::iter::successors(self.element, |it| it.element).take(dimensions).nth(dimensions - 1)
            }
        };
        if let Some(inner) = inner {
            for flags in [flags, complete_flags] {
                *flags = *flags & !member_flag::TRIM | inner.try_construct.flags();
            }
        }
        // What a name stands for has its limits already.
        if matches!(of_minimal, TypeIdentifier::Hash(_)) && inner.is_none_or(|it| it.aliases.is_empty()) {
            return;
        }
        let inner = inner.copied().unwrap_or(Self::NONE);
        let inner = Self { octet: self.octet || inner.octet, ..inner };
        let take = |it: &mut TypeIdentifier| std::mem::replace(it, TypeIdentifier::None);
        let types = TypeIdentifiers { minimal: take(of_minimal), complete: take(of_complete) };
        let applied = inner.apply(types, components);
        *of_minimal = applied.minimal;
        *of_complete = applied.complete;
    }
}

/// What a collection has.
#[derive(Clone, Copy)]
enum Part {
    Key,
    Element,
}

impl Part {
    /// Its flags and type.
    fn of(self, identifier: &mut TypeIdentifier) -> Option<(&mut u16, &mut TypeIdentifier)> {
        match (self, identifier) {
            (Self::Key, TypeIdentifier::Map { key_flags, key, .. }) => Some((key_flags, key)),
            (
                Self::Element,
                TypeIdentifier::Sequence { element_flags, element, .. }
                | TypeIdentifier::Array { element_flags, element, .. }
                | TypeIdentifier::Map { element_flags, element, .. },
            ) => Some((element_flags, element)),
            _ => None,
        }
    }
}

impl MemberDescription {
    /// A member of which nothing more is said.
    #[must_use]
    pub const fn new(name: &'static str, id: u32, describe: Describe) -> Self {
        Self {
            name,
            id,
            optional: false,
            key: false,
            must_understand: false,
            external: false,
            try_construct: TryConstruct::Discard,
            bounds: &Bounds::NONE,
            annotations: &AnnotationsDescription::NONE,
            describe,
        }
    }

    const fn flags(&self) -> u16 {
        let mut flags = self.try_construct.flags();
        if self.external {
            flags |= member_flag::EXTERNAL;
        }
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

    fn in_structure(&self, ty: &TypeIdentifiers, complete: bool) -> StructureMember {
        StructureMember {
            id: self.id,
            flags: self.flags(),
            ty: pick(ty, complete),
            name: MemberName::new(self.name),
            annotations: self.annotations.told(),
        }
    }
}

/// A flag of a bit mask, as `#[derive(DdsType)]` tells it.
#[derive(Clone, Copy)]
pub struct FlagDescription {
    /// Its name.
    pub name: &'static str,
    /// Which bit it is.
    pub position: u16,
}

/// A field of a bit set, as `#[derive(DdsType)]` tells it.
#[derive(Clone, Copy)]
pub struct FieldDescription {
    /// Its name.
    pub name: &'static str,
    /// Its least significant bit.
    pub position: u16,
    /// How many bits it has.
    pub bits: u8,
    /// The type of its value.
    pub holder: Primitive,
}

/// A case of a union, as `#[derive(DdsType)]` tells it.
#[derive(Clone, Copy)]
pub struct CaseDescription<'a> {
    /// The member it selects.
    pub member: MemberDescription,
    /// The values of the discriminator that select it.
    pub labels: &'a [i64],
    /// Every other value selects it.
    pub default: bool,
}

impl CaseDescription<'_> {
    fn in_union(&self, ty: &TypeIdentifiers, labels: &[i32], complete: bool) -> UnionMember {
        UnionMember {
            id: self.member.id,
            flags: self.member.flags() | if self.default { member_flag::DEFAULT } else { 0 },
            ty: pick(ty, complete),
            labels: labels.to_vec(),
            name: MemberName::new(self.member.name),
            annotations: self.member.annotations.told(),
        }
    }

    /// As a TypeObject has them, which has no larger ones.
    fn labels(&self) -> Option<Vec<i32>> {
        self.labels.iter().map(|label| i32::try_from(*label).ok()).collect()
    }
}

/// Collects the TypeObjects of a type and of those it depends on. Types are told apart as Rust tells them:
/// several may have one name.
#[derive(Debug, Default)]
pub struct TypeBuilder {
    components: Components,
    boxed_bytes_max: usize,
}

impl TypeBuilder {
    /// Notes that values of type `T` are kept in the heap, as elements of a sequence are: each is decoded by
    /// itself.
    pub(crate) fn boxes<T>(&mut self) {
        self.boxed_bytes_max = self.boxed_bytes_max.max(size_of::<T>());
    }

    /// A structure; `None` when it contains something without description. With a `base`, `members` are its
    /// own.
    pub fn structure(
        &mut self,
        about: &AggregateDescription,
        base: Option<Describe>,
        members: &[MemberDescription],
    ) -> Option<TypeIdentifiers> {
        self.once(TypeKey::Rust(about.rust_type), |types| {
            let base = match base {
                Some(describe) => describe(types),
                None => Some(TypeIdentifiers::same(TypeIdentifier::None)),
            };
            // All are looked at, also where one has no description.
            let described: Vec<_> =
                members.iter().map(|member| Some((member, types.member(member)?))).collect();
            let described: Vec<_> = described.into_iter().collect::<Option<_>>()?;
            let base = base?;
            Some(objects(about.name, |complete| Definition::Structure {
                extensibility: about.extensibility,
                hash_ids: about.hash_ids,
                nested: about.nested,
                base: pick(&base, complete),
                members: described.iter().map(|(it, ty)| it.in_structure(ty, complete)).collect(),
            }))
        })
    }

    /// A union; `None` as with structures, and where a label has more than 32 bits.
    pub fn union(
        &mut self,
        about: &AggregateDescription,
        discriminator: &MemberDescription,
        cases: &[CaseDescription<'_>],
    ) -> Option<TypeIdentifiers> {
        self.once(TypeKey::Rust(about.rust_type), |types| {
            let discriminator_type = types.member(discriminator);
            let described: Vec<_> =
                cases.iter().map(|case| Some((case, types.member(&case.member)?, case.labels()?))).collect();
            let described: Vec<_> = described.into_iter().collect::<Option<_>>()?;
            let discriminator_type = discriminator_type?;
            Some(objects(about.name, |complete| Definition::Union {
                extensibility: about.extensibility,
                hash_ids: about.hash_ids,
                nested: about.nested,
                discriminator: pick(&discriminator_type, complete),
                discriminator_flags: discriminator.flags(),
                members: described.iter().map(|(it, ty, labels)| it.in_union(ty, labels, complete)).collect(),
            }))
        })
    }

    /// An enumeration: name, value and whether it is the default of each literal.
    pub fn enumeration(
        &mut self,
        about: &BitsDescription,
        literals: &[(&'static str, i64, bool)],
    ) -> Option<TypeIdentifiers> {
        self.once(TypeKey::Rust(about.rust_type), |_| {
            let literals = literals.iter().map(|(name, value, default)| Literal {
                value: i32::try_from(*value).unwrap_or(i32::MAX),
                flags: if *default { member_flag::DEFAULT } else { 0 },
                name: MemberName::new(name),
            });
            let mut literals: Vec<_> = literals.collect();
            literals.sort_by_key(|literal| literal.value);
            Some(objects(about.name, |_| Definition::Enumeration {
                extensibility: about.told_extensibility(),
                bit_bound: about.bit_bound,
                literals: literals.clone(),
            }))
        })
    }

    /// A bit mask.
    pub fn bitmask(&mut self, about: &BitsDescription, flags: &[FlagDescription]) -> Option<TypeIdentifiers> {
        self.once(TypeKey::Rust(about.rust_type), |_| {
            let flags = flags.iter().map(|flag| Bitflag {
                position: flag.position,
                flags: 0,
                name: MemberName::new(flag.name),
            });
            let mut flags: Vec<_> = flags.collect();
            flags.sort_by_key(|flag| flag.position);
            Some(objects(about.name, |_| Definition::Bitmask {
                extensibility: about.told_extensibility(),
                bit_bound: about.bit_bound,
                flags: flags.clone(),
            }))
        })
    }

    /// A bit set.
    pub fn bitset(
        &mut self,
        rust_type: TypeId,
        name: &'static str,
        fields: &[FieldDescription],
    ) -> Option<TypeIdentifiers> {
        self.once(TypeKey::Rust(rust_type), |_| {
            let fields = fields.iter().map(|field| Bitfield {
                position: field.position,
                flags: 0,
                bits: field.bits,
                holder: field.holder,
                name: MemberName::new(field.name),
            });
            let mut fields: Vec<_> = fields.collect();
            fields.sort_by_key(|field| field.position);
            Some(objects(name, |_| Definition::Bitset { fields: fields.clone() }))
        })
    }

    /// A type that no Rust type stands for, whatever it is: `define` makes its minimal and its complete
    /// definition. `number` tells it from the others of the same builder.
    pub fn defined(
        &mut self,
        number: usize,
        name: &str,
        define: impl FnOnce(&mut Self) -> Option<[Definition; 2]>,
    ) -> Option<TypeIdentifiers> {
        self.once(TypeKey::Number(number), |types| {
            let definitions = define(types)?;
            Some(definitions.map(|definition| TypeObject { name: Some(name.to_owned()), definition }))
        })
    }

    fn member(&mut self, member: &MemberDescription) -> Option<TypeIdentifiers> {
        let described = (member.describe)(self)?;
        Some(member.bounds.apply(described, &mut self.components))
    }

    /// The identifiers of a type, described when it is met for the first time.
    fn once(
        &mut self,
        key: TypeKey,
        describe: impl FnOnce(&mut Self) -> Option<[TypeObject; 2]>,
    ) -> Option<TypeIdentifiers> {
        if let Some(known) = self.components.known(key) {
            return known;
        }
        let number = self.components.open(key);
        let described = describe(self);
        self.components.close(key, number, described)
    }
}

/// The minimal and the complete TypeObject.
fn objects(name: &str, define: impl Fn(bool) -> Definition) -> [TypeObject; 2] {
    [false, true].map(|complete| TypeObject { name: Some(name.to_owned()), definition: define(complete) })
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
    /// The description of a type; `None` for one that no TypeObject tells: such types are matched by name
    /// alone.
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

    /// From serialized TypeObjects: those of `roots`, which are one type in both relations, and of all that
    /// they depend on.
    pub(crate) fn of_objects(roots: &[TypeHash], objects: BTreeMap<TypeHash, Vec<u8>>) -> Self {
        let with_dependencies = |complete| {
            let id = *roots.iter().find(|hash| hash.complete == complete)?;
            Some(TypeWithDependencies::of(id, &objects))
        };
        let [minimal, complete] = [false, true].map(with_dependencies);
        Self { information: TypeInformation { minimal, complete }, objects }
    }

    fn made(types: TypeBuilder, identifiers: TypeIdentifiers) -> Option<Self> {
        let (TypeIdentifier::Hash(minimal), TypeIdentifier::Hash(complete)) =
            (identifiers.minimal, identifiers.complete)
        else {
            return None;
        };
        let objects = types.components.into_objects();
        let with_dependencies = |id| TypeWithDependencies::of(id, &objects);
        let information = TypeInformation {
            minimal: Some(with_dependencies(minimal)),
            complete: Some(with_dependencies(complete)),
        };
        Some(Self { information, objects })
    }

    /// The TypeObject of a type that this one consists of, if its hash is right.
    #[must_use]
    pub fn object(&self, hash: TypeHash) -> Option<TypeObject> {
        let octets = self.objects.get(&hash).filter(|it| it.len() <= OBJECT_BYTES_MAX)?;
        let is_right = if hash.component.is_some() {
            let of_component: Vec<_> = hash.whole().types().map_while(|it| self.objects.get(&it)).collect();
            hash.is_of_component(&of_component)
        } else {
            TypeHash::of(hash.complete, octets) == hash
        };
        let (object, complete) = TypeObject::deserialize(octets).ok().filter(|_| is_right)?;
        (complete == hash.complete).then_some(object)
    }
}

impl TypeWithDependencies {
    /// A type, and all others of its kind that are there as its dependencies.
    pub(super) fn of(id: TypeHash, objects: &BTreeMap<TypeHash, Vec<u8>>) -> Self {
        let size = |hash: &TypeHash| objects.get(hash).map_or(0, |it| saturated(it.len()));
        let others = objects.keys().filter(|hash| hash.complete == id.complete && **hash != id);
        // A component is told under its own name, that of the type itself, too.
        let own = id.component.map(|_| id.whole());
        let others: BTreeSet<_> = others.map(|hash| hash.whole()).chain(own).collect();
        let bytes = |hash: TypeHash| match hash.component {
            Some(_) => saturated(component_bytes(hash.types().filter_map(|it| objects.get(&it)))),
            None => size(&hash),
        };
        let dependencies = others.into_iter().map(|hash| (hash, bytes(hash))).collect();
        Self { id, bytes: size(&id), dependencies }
    }
}
