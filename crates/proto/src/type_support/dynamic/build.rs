//! From the TypeObjects of a type to what walks its samples. They may come from anybody: their hashes are
//! checked, and depth, parts and octets are bounded before anything is walked.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thiserror::Error;

use super::model::{Bitmask, Enumeration, Field, Kind, Member, Structure, Type, Union, primitive_bytes};
use super::path::DISCRIMINATOR;
use crate::cdr::{DEPTH_MAX, Extensibility, Extent};
use crate::types::{
    Bitfield, Bitflag, Definition, Literal, Primitive, StructureMember, TypeDescription, TypeHash,
    TypeIdentifier, TypeInformation, TypeObject, UnionMember, member_flag,
};

/// Why a description makes no type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DynamicTypeError {
    /// It has no TypeObject.
    #[error("the description has no type")]
    Empty,
    /// A TypeObject that is named is not there, or is not what its hash says.
    #[error("the TypeObject of a type that '{0}' names is missing or wrong")]
    Missing(String),
    /// A kind of type that no sample is read of.
    #[error("'{name}' is or has {what}, which is not supported")]
    Unsupported {
        /// The type.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// It nests deeper, or has more members or elements, than is worth it.
    #[error("'{0}' nests too deep or has too many parts")]
    TooLarge(String),
}

/// Members of one type, or literals, at most.
const MEMBERS_MAX: usize = 4_096;
/// Members of all types at most, those of a type that contains itself once for each level.
const MEMBERS_TOTAL_MAX: usize = 1 << 18;
/// Parts of a value at most, elements of arrays included and those of sequences not.
const PARTS_MAX: usize = 1 << 20;
/// Octets of the arrays of a value at most.
const ARRAY_BYTES_MAX: usize = 64 << 20;

type Built<T> = Result<T, DynamicTypeError>;

/// Builds each type once.
pub(super) struct Builder<'a> {
    description: &'a TypeDescription,
    complete: bool,
    done: BTreeMap<TypeHash, Arc<Type>>,
    /// What the types of the round before are: of types that contain themselves, those one level below.
    below: BTreeMap<TypeHash, Arc<Type>>,
    /// A type contains itself.
    is_recursive: bool,
    /// Members that may be made yet, of all rounds together.
    members_left: usize,
    open: BTreeSet<TypeHash>,
    depth: usize,
    /// The innermost type that has a name.
    name: String,
}

/// The complete type of a description, or else the minimal one.
pub(super) fn build(description: &TypeDescription) -> Built<Arc<Type>> {
    let TypeInformation { minimal, complete } = &description.information;
    let root = complete.as_ref().or(minimal.as_ref()).ok_or(DynamicTypeError::Empty)?.id;
    let mut builder = Builder {
        description,
        complete: root.complete,
        done: BTreeMap::new(),
        below: BTreeMap::new(),
        is_recursive: false,
        members_left: MEMBERS_TOTAL_MAX,
        open: BTreeSet::new(),
        depth: 0,
        name: "the type".to_owned(),
    };
    let mut built = builder.ty(&TypeIdentifier::Hash(root))?;
    // Samples nest so deep at most. A type that contains itself is made once for each level, from the
    // innermost on, which has nothing below: nobody has to go round in circles.
    for _ in 1..DEPTH_MAX {
        if !builder.is_recursive {
            break;
        }
        builder.below = std::mem::take(&mut builder.done);
        built = builder.ty(&TypeIdentifier::Hash(root))?;
    }
    Ok(built)
}

impl Builder<'_> {
    fn unsupported<T>(&self, what: &'static str) -> Built<T> {
        Err(DynamicTypeError::Unsupported { name: self.name.clone(), what })
    }

    fn too_large(&self) -> DynamicTypeError {
        DynamicTypeError::TooLarge(self.name.clone())
    }

    fn ty(&mut self, identifier: &TypeIdentifier) -> Built<Arc<Type>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.too_large());
        }
        let built = match identifier {
            TypeIdentifier::Hash(hash) => self.hashed(*hash),
            TypeIdentifier::Primitive(Primitive::Float128) => self.unsupported("a float128"),
            TypeIdentifier::Primitive(primitive) => {
                Ok(Arc::new(number(Kind::Primitive(*primitive), primitive_bytes(*primitive))))
            }
            TypeIdentifier::String { wide, bound } => Ok(Arc::new(text(*wide, bounded(*bound)))),
            TypeIdentifier::Sequence { bound, element, .. } => {
                let element = self.ty(element)?;
                Ok(Arc::new(sequence(bounded(*bound), element)))
            }
            TypeIdentifier::Array { bounds, element, .. } => {
                let element = self.ty(element)?;
                self.array(bounds, element).map(Arc::new)
            }
            TypeIdentifier::Map { bound, key, element, .. } => {
                let (key, element) = (self.ty(key)?, self.ty(element)?);
                Ok(Arc::new(map(bounded(*bound), key, element)))
            }
            TypeIdentifier::None => self.unsupported("no type"),
            TypeIdentifier::Unknown(_) => self.unsupported("an extension of the type system"),
        }?;
        self.depth -= 1;
        if built.parts > PARTS_MAX || built.bytes_min > ARRAY_BYTES_MAX {
            return Err(self.too_large());
        }
        Ok(built)
    }

    fn object(&self, hash: TypeHash) -> Built<TypeObject> {
        let object = self.description.object(hash).filter(|_| hash.complete == self.complete);
        object.ok_or_else(|| DynamicTypeError::Missing(self.name.clone()))
    }

    fn hashed(&mut self, hash: TypeHash) -> Built<Arc<Type>> {
        if let Some(known) = self.done.get(&hash) {
            return Ok(Arc::clone(known));
        }
        if !self.open.insert(hash) {
            self.is_recursive = true;
            return Ok(self.below.get(&hash).map_or_else(|| Arc::new(too_deep()), Arc::clone));
        }
        let TypeObject { name, definition } = self.object(hash)?;
        let outer = name.map(|name| std::mem::replace(&mut self.name, name));
        let built = match definition {
            Definition::Alias(target) | Definition::Collection(target) => self.ty(&target),
            Definition::Structure { extensibility, base, members, .. } => {
                self.structure(extensibility, &base, &members).map(Arc::new)
            }
            Definition::Union { extensibility, discriminator, discriminator_flags, members, .. } => {
                let key = discriminator_flags & member_flag::KEY != 0;
                self.union(extensibility, &discriminator, key, &members).map(Arc::new)
            }
            Definition::Enumeration { bit_bound, literals, .. } => {
                self.enumeration(bit_bound, literals).map(Arc::new)
            }
            Definition::Bitmask { bit_bound, flags, .. } => self.bitmask(bit_bound, flags).map(Arc::new),
            Definition::Bitset { fields } => {
                let bits = fields.iter().map(|it| it.position.saturating_add(u16::from(it.bits))).max();
                let bytes = holder_bytes(bits.unwrap_or(0));
                let (flags, fields) = (Vec::new(), named_fields(fields, bytes));
                let bitset = Bitmask { name: self.name.clone(), bytes, flags, fields };
                Ok(Arc::new(number(Kind::Bitmask(bitset), bytes)))
            }
            Definition::Other(_) => self.unsupported("an annotation or an extension of the type system"),
        }?;
        if let Some(outer) = outer {
            self.name = outer;
        }
        self.open.remove(&hash);
        self.done.insert(hash, Arc::clone(&built));
        Ok(built)
    }

    fn enumeration(&self, bit_bound: u16, literals: Vec<Literal>) -> Built<Type> {
        if literals.is_empty() || literals.len() > MEMBERS_MAX {
            return Err(self.too_large());
        }
        let bytes = holder_bytes(bit_bound).min(4);
        let default = literals.iter().find(|it| it.flags & member_flag::DEFAULT != 0);
        let initial = default.or_else(|| literals.first()).map_or(0, |it| i64::from(it.value));
        let named = |it: Literal| (Cow::Owned(it.name.text.unwrap_or_default()), i64::from(it.value));
        let mut literals: Vec<(Cow<'static, str>, i64)> = literals.into_iter().map(named).collect();
        literals.sort_by_key(|(_, value)| *value);
        let names = literals.iter().map(|(name, _)| &**name).filter(|name| !name.is_empty());
        if has_twice(literals.iter().map(|(_, value)| *value)) || has_twice(names) {
            return self.unsupported("two literals of one name or value");
        }
        Ok(number(
            Kind::Enumeration(Enumeration { name: self.name.clone(), bytes, literals, initial }),
            bytes,
        ))
    }

    fn bitmask(&self, bit_bound: u16, flags: Vec<Bitflag>) -> Built<Type> {
        let bytes = holder_bytes(bit_bound);
        let named = |it: Bitflag| Some((it.name.text?, it.position));
        let mut flags: Vec<(String, u16)> = flags.into_iter().filter_map(named).collect();
        flags.sort_by_key(|(_, position)| *position);
        if flags.iter().any(|(_, position)| usize::from(*position) >= 8 * bytes)
            || has_twice(flags.iter().map(|(_, position)| *position))
            || has_twice(flags.iter().map(|(name, _)| name.as_str()))
        {
            return self.unsupported("two flags of one name or position");
        }
        let fields = Vec::new();
        Ok(number(Kind::Bitmask(Bitmask { name: self.name.clone(), bytes, flags, fields }), bytes))
    }

    fn array(&self, bounds: &[u32], element: Arc<Type>) -> Built<Type> {
        let dimensions: Vec<usize> =
            bounds.iter().map(|bound| usize::try_from(*bound).unwrap_or(usize::MAX)).collect();
        let count = |count: usize, bound: &usize| count.checked_mul(*bound);
        let Some(count) =
            dimensions.iter().try_fold(1, count).filter(|count| *count > 0 && !bounds.is_empty())
        else {
            return Err(self.too_large());
        };
        let is_primitive = element.primitive().is_some();
        let within = |extent: Extent, bound: &u32| {
            let all = extent.times(usize::try_from(*bound).unwrap_or(usize::MAX));
            if is_primitive { all } else { Extent::primitive(4).then(all) }
        };
        let parts = if is_primitive { 1 } else { element.parts.saturating_mul(count).saturating_add(1) };
        Ok(Type {
            bytes_min: element.bytes_min.saturating_mul(count),
            extent: bounds.iter().rev().fold(element.extent, within),
            bytes_max: element.bytes_max.and_then(|bytes| bytes.checked_mul(count)?.checked_add(HEADER)),
            parts,
            kind: Kind::Array { count, dimensions, element },
        })
    }

    fn member(&mut self, name: Option<&str>, flags: u16, id: u32, ty: &TypeIdentifier) -> Built<Member> {
        let key = flags & member_flag::KEY != 0;
        let ty = self.ty(ty)?;
        Ok(Member {
            // As a minimal TypeObject names it.
            name: name.map_or_else(|| format!("#{id}"), str::to_owned),
            id,
            key,
            optional: flags & member_flag::OPTIONAL != 0,
            must_understand: key || flags & member_flag::MUST_UNDERSTAND != 0,
            ty,
        })
    }

    /// The members of the base, then its own.
    fn members(&mut self, base: &TypeIdentifier, own: &[StructureMember]) -> Built<Vec<Member>> {
        let mut members = Vec::new();
        if let TypeIdentifier::Hash(hash) = base {
            self.depth += 1;
            if self.depth > DEPTH_MAX || !self.open.insert(*hash) {
                return Err(self.too_large());
            }
            match self.object(*hash)?.definition {
                Definition::Structure { base, members: inherited, .. } => {
                    members = self.members(&base, &inherited)?;
                }
                _ => return self.unsupported("a base that is no structure"),
            }
            self.open.remove(hash);
            self.depth -= 1;
        }
        let left = self.members_left.checked_sub(own.len());
        self.members_left =
            left.filter(|_| members.len() + own.len() <= MEMBERS_MAX).ok_or_else(|| self.too_large())?;
        for member in own {
            let StructureMember { id, flags, ty, name, .. } = member;
            members.push(self.member(name.text.as_deref(), *flags, *id, ty)?);
        }
        Ok(members)
    }

    /// Refuses what no sample could tell apart, and no text.
    fn check_members(&self, members: &[Member]) -> Built<()> {
        if has_twice(members.iter().map(|member| member.id)) {
            return self.unsupported("two members with one id");
        }
        if has_twice(members.iter().map(|member| member.name.as_str())) {
            return self.unsupported("two members of one name");
        }
        if members.iter().any(|member| member.id > MEMBER_ID_MAX || member.name == DISCRIMINATOR) {
            return self.unsupported("a member without legal id or name");
        }
        if members.iter().any(|member| member.key && member.optional) {
            return self.unsupported("an optional key member");
        }
        Ok(())
    }

    fn structure(
        &mut self,
        extensibility: Extensibility,
        base: &TypeIdentifier,
        members: &[StructureMember],
    ) -> Built<Type> {
        let members = self.members(base, members)?;
        self.check_members(&members)?;
        let keyed = members.iter().any(|member| member.key);
        let mut by_id: Vec<_> = (0..members.len()).collect();
        by_id.sort_by_key(|place| members.get(*place).map(|member| member.id));
        let holder = |member: &&Member| !keyed || member.key;
        let least = |member: &Member| if member.optional { 1 } else { member.ty.bytes_min };
        let whole = members.iter().filter(holder).map(least).fold(0, usize::saturating_add);
        let sorted = by_id.iter().filter_map(|place| members.get(*place)).filter(holder);
        let extent = |member: &Member| if member.optional { Extent::UNBOUNDED } else { member.ty.extent };
        // An optional member is not there until it is set.
        let parts = |member: &Member| if member.optional { 1 } else { member.ty.parts };
        let parts = members.iter().map(parts).fold(1, usize::saturating_add);
        let is_mutable = extensibility == Extensibility::Mutable;
        let frame = if extensibility == Extensibility::Final { 0 } else { 2 * HEADER };
        let bytes_max = members.iter().try_fold(frame, |sum: usize, member| {
            let header = if is_mutable || member.optional { MEMBER_HEADER } else { 0 };
            sum.checked_add(member.ty.bytes_max?)?.checked_add(header)
        });
        Ok(Type {
            bytes_min: least_of(extensibility, whole),
            extent: sorted.fold(Extent::EMPTY, |sum, member| sum.then(extent(member))),
            bytes_max,
            parts,
            kind: Kind::Structure(Structure {
                name: self.name.clone(),
                extensibility,
                keyed,
                members,
                by_id,
            }),
        })
    }

    fn union(
        &mut self,
        extensibility: Extensibility,
        discriminator: &TypeIdentifier,
        keyed: bool,
        members: &[UnionMember],
    ) -> Built<Type> {
        let discriminator = self.ty(discriminator)?;
        let Some(bytes) = discriminator.number_bytes() else {
            return self.unsupported("a discriminator that is no number");
        };
        let labels_total = members.iter().map(|member| member.labels.len()).fold(0, usize::saturating_add);
        let left = self.members_left.checked_sub(members.len().max(labels_total));
        let fits = members.len() <= MEMBERS_MAX && labels_total <= MEMBERS_MAX;
        self.members_left = left.filter(|_| fits).ok_or_else(|| self.too_large())?;
        let (mut cases, mut labels, mut default) = (Vec::new(), Vec::new(), None);
        for (place, member) in members.iter().enumerate() {
            let UnionMember { id, flags, ty, labels: selecting, name, .. } = member;
            labels.extend(selecting.iter().map(|label| (i64::from(*label), place)));
            if flags & member_flag::DEFAULT != 0 {
                default = Some(place);
            }
            cases.push(self.member(name.text.as_deref(), *flags, *id, ty)?);
        }
        self.check_members(&cases)?;
        if has_twice(labels.iter().map(|(label, _)| *label)) {
            return self.unsupported("two members with one label");
        }
        let initial = labels.iter().find(|(_, place)| *place == 0).map_or(0, |(label, _)| *label);
        labels.sort_unstable();
        // Of a union that was never set, the case that its discriminator selects then.
        let first = labels.iter().find(|(label, _)| *label == initial).map(|(_, place)| *place).or(default);
        let first = first.and_then(|place| cases.get(place)).filter(|case| !case.optional);
        let first_parts = first.map_or(0, |case| case.ty.parts);
        let largest = |extent: Extent, case: &Member| {
            extent.or(if case.optional { Extent::UNBOUNDED } else { case.ty.extent })
        };
        let of_cases = if keyed { Extent::EMPTY } else { cases.iter().fold(Extent::EMPTY, largest) };
        let bytes_max = cases.iter().try_fold(0, |most: usize, case| Some(most.max(case.ty.bytes_max?)));
        Ok(Type {
            bytes_min: least_of(extensibility, bytes),
            extent: discriminator.extent.then(of_cases),
            bytes_max: bytes_max.and_then(|most| most.checked_add(4 * MEMBER_HEADER)),
            parts: first_parts.saturating_add(2),
            kind: Kind::Union(Union {
                name: self.name.clone(),
                extensibility,
                discriminator,
                keyed,
                cases,
                labels,
                default,
                initial,
            }),
        })
    }
}

/// The fields of a bit set that takes so many octets; none if some have no name, or share it or bits.
fn named_fields(fields: Vec<Bitfield>, bytes: usize) -> Vec<Field> {
    let count = fields.len();
    let named = |it: Bitfield| {
        let (name, bits) = (it.name.text?, u16::from(it.bits));
        let fits = bits > 0 && usize::from(it.position.saturating_add(bits)) <= 8 * bytes;
        fits.then_some(Field { name, position: it.position, bits, holder: it.holder })
    };
    let mut fields: Vec<Field> = fields.into_iter().filter_map(named).collect();
    fields.sort_by_key(|field| field.position);
    let taken =
        fields.iter().try_fold(0_u64, |taken, it| (taken & it.mask() == 0).then_some(taken | it.mask()));
    let is_good =
        fields.len() == count && taken.is_some() && !has_twice(fields.iter().map(|it| it.name.as_str()));
    if is_good { fields } else { Vec::new() }
}

fn has_twice<T: Ord>(all: impl Iterator<Item = T>) -> bool {
    let mut seen = BTreeSet::new();
    all.into_iter().any(|one| !seen.insert(one))
}

/// The largest id that a header has room for.
const MEMBER_ID_MAX: u32 = 0x0fff_ffff;
/// Most octets of a DHEADER or count with the padding before it.
const HEADER: usize = 8;
/// Most octets of the header of a member, padding included.
const MEMBER_HEADER: usize = 16;

/// Before a member may be missing, or its size be told.
const fn least_of(extensibility: Extensibility, whole: usize) -> usize {
    match extensibility {
        Extensibility::Final => whole,
        Extensibility::Appendable if whole < 4 => whole,
        Extensibility::Appendable | Extensibility::Mutable => 4,
    }
}

fn number(kind: Kind, bytes: usize) -> Type {
    let extent = Extent::primitive(bytes);
    Type { kind, bytes_min: bytes, extent, bytes_max: Some(2 * bytes - 1), parts: 1 }
}

fn text(wide: bool, bound: Option<usize>) -> Type {
    let octets = bound.map(|bound| if wide { bound.saturating_mul(2) } else { bound.saturating_add(1) });
    Type {
        kind: Kind::Text { wide, bound },
        bytes_min: 4,
        extent: octets.map_or(Extent::UNBOUNDED, |octets| Extent::counted_octets(octets.min(COUNTED_MAX))),
        bytes_max: octets.and_then(|octets| octets.checked_add(HEADER)),
        parts: 1,
    }
}

/// What is deeper in a sample than anybody reads.
fn too_deep() -> Type {
    Type { kind: Kind::TooDeep, bytes_min: 1, extent: Extent::UNBOUNDED, bytes_max: None, parts: 1 }
}

/// More octets than any extent that has a limit.
const COUNTED_MAX: usize = 1 << 16;

fn sequence(bound: Option<usize>, element: Arc<Type>) -> Type {
    let extent = bound
        .map_or(Extent::UNBOUNDED, |bound| counted(element.extent, element.primitive().is_some(), bound));
    let bytes_max = bound
        .zip(element.bytes_max)
        .and_then(|(bound, bytes)| bound.checked_mul(bytes)?.checked_add(2 * HEADER));
    Type { kind: Kind::Sequence { bound, element }, bytes_min: 4, extent, bytes_max, parts: 1 }
}

fn map(bound: Option<usize>, key: Arc<Type>, element: Arc<Type>) -> Type {
    let is_primitive = key.primitive().is_some() && element.primitive().is_some();
    let both = key.extent.then(element.extent);
    let extent = bound.map_or(Extent::UNBOUNDED, |bound| counted(both, is_primitive, bound));
    let pair = key.bytes_max.zip(element.bytes_max).and_then(|(key, element)| key.checked_add(element));
    let bytes_max =
        bound.zip(pair).and_then(|(bound, bytes)| bound.checked_mul(bytes)?.checked_add(2 * HEADER));
    Type { kind: Kind::Map { bound, key, element }, bytes_min: 4, extent, bytes_max, parts: 1 }
}

fn counted(element: Extent, is_primitive: bool, bound: usize) -> Extent {
    let counted = Extent::primitive(4).then(element.times(bound));
    if is_primitive { counted } else { Extent::primitive(4).then(counted) }
}

fn bounded(bound: u32) -> Option<usize> {
    usize::try_from(bound).ok().filter(|bound| *bound > 0)
}

/// The holder of a bit bound (XTypes 1.3 table 32).
const fn holder_bytes(bit_bound: u16) -> usize {
    match bit_bound {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}
