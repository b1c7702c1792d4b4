//! The types a participant knows: its own, which it tells, and those of others, which it asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    AssignabilityRules, Definition, OBJECT_BYTES_MAX, TypeDescription, TypeDifference, TypeHash,
    TypeIdentifier, TypeObject, compare,
};
use crate::guid::GuidPrefix;

/// Bounds on the types of others that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeLimits {
    /// Types of one participant.
    pub types_per_participant_max: usize,
    /// Octets of the serialized TypeObjects of one participant.
    pub bytes_per_participant_max: usize,
    /// Octets of all of them.
    pub bytes_max: usize,
}

impl Default for TypeLimits {
    fn default() -> Self {
        Self { types_per_participant_max: 512, bytes_per_participant_max: 1 << 20, bytes_max: 32 << 20 }
    }
}

/// Types by their hashes.
#[doc(hidden)]
#[derive(Debug)]
pub struct TypeLibrary {
    limits: TypeLimits,
    own: BTreeMap<TypeHash, (Arc<TypeObject>, Arc<[u8]>)>,
    others: BTreeMap<GuidPrefix, Collected>,
    bytes: usize,
}

/// The types of an endpoint of this process, also as others get them.
pub(crate) type ProcessTypes = Arc<[(TypeHash, Arc<TypeObject>, Arc<[u8]>)]>;

/// What one participant told.
#[derive(Debug, Default)]
struct Collected {
    objects: BTreeMap<TypeHash, (Arc<TypeObject>, Arc<[u8]>)>,
    bytes: usize,
}

impl TypeLibrary {
    /// Knows nothing yet.
    #[must_use]
    pub const fn new(limits: TypeLimits) -> Self {
        Self { limits, own: BTreeMap::new(), others: BTreeMap::new(), bytes: 0 }
    }

    /// Keeps a type of our own for as long as the participant is there: what others of this process are told.
    pub(crate) fn add_own(&mut self, description: &TypeDescription) -> ProcessTypes {
        let mut types = Vec::with_capacity(description.objects.len());
        for (hash, serialized) in &description.objects {
            if !self.own.contains_key(hash)
                && let Ok((object, _)) = TypeObject::deserialize(serialized)
            {
                self.own.insert(*hash, (Arc::new(object), serialized.as_slice().into()));
            }
            let known = self.own.get(hash);
            types.extend(known.map(|(object, octets)| (*hash, Arc::clone(object), Arc::clone(octets))));
        }
        types.into()
    }

    /// One of our own types as others get it.
    pub(crate) fn own(&self, hash: &TypeHash) -> Option<&[u8]> {
        self.own.get(hash).map(|(_, serialized)| &**serialized)
    }

    /// Takes those types of an answer of a participant that are wanted: how many there are, each component of
    /// types that contain themselves counting once. `None` when one is not what it is said to be, or there is
    /// no room.
    pub fn add_told(
        &mut self,
        of: GuidPrefix,
        wanted: &[TypeHash],
        told: &BTreeMap<TypeHash, &[u8]>,
    ) -> Option<usize> {
        let mut news = 0;
        for hash in wanted {
            let objects: Vec<&[u8]> = hash.types().filter_map(|ty| told.get(&ty).copied()).collect();
            if objects.is_empty() {
                continue;
            }
            let added = match objects.as_slice() {
                [serialized] if hash.component.is_none() => self.add(of, *hash, serialized),
                objects => self.add_component(of, *hash, objects),
            };
            if !added {
                return None;
            }
            news += 1;
        }
        Some(news)
    }

    /// Takes a type that a participant told; false when it is not what it is said to be, or there is no room.
    pub(crate) fn add(&mut self, of: GuidPrefix, hash: TypeHash, serialized: &[u8]) -> bool {
        TypeHash::of(hash.complete, serialized) == hash && self.add_checked(of, hash, serialized)
    }

    /// As [`Self::add`], of all types of a component, in order.
    pub(crate) fn add_component(&mut self, of: GuidPrefix, component: TypeHash, objects: &[&[u8]]) -> bool {
        component.is_of_component(objects)
            && component.whole().types().zip(objects).all(|(ty, it)| self.add_checked(of, ty, it))
    }

    /// Takes a type with the right hash.
    fn add_checked(&mut self, of: GuidPrefix, hash: TypeHash, serialized: &[u8]) -> bool {
        if serialized.len() > OBJECT_BYTES_MAX {
            return false;
        }
        let Ok((object, complete)) = TypeObject::deserialize(serialized) else { return false };
        complete == hash.complete && self.insert(of, hash, Arc::new(object), serialized.into())
    }

    /// Takes the types of an endpoint of this process; false when there is no room for some.
    pub(crate) fn add_of_process(&mut self, of: GuidPrefix, types: &ProcessTypes) -> bool {
        let mut have_room = true;
        for (hash, object, serialized) in &**types {
            if self.find(of, hash).is_none() {
                have_room &= self.insert(of, *hash, Arc::clone(object), Arc::clone(serialized));
            }
        }
        have_room
    }

    fn insert(
        &mut self,
        of: GuidPrefix,
        hash: TypeHash,
        object: Arc<TypeObject>,
        serialized: Arc<[u8]>,
    ) -> bool {
        let (limits, octets) = (self.limits, serialized.len());
        let collected = self.others.entry(of).or_default();
        let bytes = collected.bytes.saturating_add(octets);
        let all = self.bytes.saturating_add(octets);
        if collected.objects.len() >= limits.types_per_participant_max
            || bytes > limits.bytes_per_participant_max
            || all > limits.bytes_max
        {
            return false;
        }
        if collected.objects.insert(hash, (object, serialized)).is_none() {
            collected.bytes = bytes;
            self.bytes = all;
        }
        true
    }

    /// Forgets what a participant told.
    pub fn forget(&mut self, of: GuidPrefix) {
        if let Some(collected) = self.others.remove(&of) {
            self.bytes = self.bytes.saturating_sub(collected.bytes);
        }
    }

    fn find(&self, of: GuidPrefix, hash: &TypeHash) -> Option<&TypeObject> {
        self.entry(of, hash).map(|(object, _)| &**object)
    }

    fn entry(&self, of: GuidPrefix, hash: &TypeHash) -> Option<&(Arc<TypeObject>, Arc<[u8]>)> {
        self.own.get(hash).or_else(|| self.others.get(&of)?.objects.get(hash))
    }

    /// A type of a participant with all that it depends on, serialized; `None` while some is not known. Of a
    /// type that leads to too many the first of them.
    #[must_use]
    pub fn with_dependencies(&self, of: GuidPrefix, root: TypeHash) -> Option<BTreeMap<TypeHash, Vec<u8>>> {
        let mut objects = BTreeMap::new();
        let mut left = vec![root];
        while let Some(hash) = left.pop() {
            if objects.len() >= SEEN_MAX || objects.contains_key(&hash) {
                continue;
            }
            let (object, serialized) = self.entry(of, &hash)?;
            objects.insert(hash, serialized.to_vec());
            object.each_type(&mut |found| left.push(found));
        }
        Some(objects)
    }

    /// What is not known yet of a type of a participant, `most` types at most. Types of a component are known
    /// together, and are missing together under its name.
    #[must_use]
    pub fn missing(&self, of: GuidPrefix, root: TypeHash, most: usize) -> Vec<TypeHash> {
        let (mut seen, mut missing) = (BTreeSet::from([root]), Vec::new());
        let mut left = vec![root];
        while let Some(hash) = left.pop() {
            let Some(object) = self.find(of, &hash) else {
                if !missing.contains(&hash.whole()) {
                    missing.push(hash.whole());
                }
                if missing.len() >= most { break } else { continue }
            };
            object.each_type(&mut |found| {
                if seen.len() < SEEN_MAX && seen.insert(found) {
                    left.push(found);
                }
            });
        }
        missing
    }

    /// Why the type of a reader is not assignable from that of a writer: each by its participant and hash.
    #[must_use]
    pub fn first_difference(
        &self,
        writer: (GuidPrefix, TypeHash),
        reader: (GuidPrefix, TypeHash),
        rules: AssignabilityRules,
    ) -> Option<TypeDifference> {
        let finder = |of: GuidPrefix| {
            move |ty: &TypeIdentifier| match ty {
                TypeIdentifier::Hash(hash) => self.find(of, hash),
                _ => None,
            }
        };
        let (find_written, find_read) = (finder(writer.0), finder(reader.0));
        let (written, read) = (TypeIdentifier::Hash(writer.1), TypeIdentifier::Hash(reader.1));
        compare::first_difference(
            compare::Side { root: &written, find: &find_written },
            compare::Side { root: &read, find: &find_read },
            rules,
        )
    }
}

/// Types that one type may lead to.
const SEEN_MAX: usize = 4_096;

impl TypeIdentifier {
    fn each_type(&self, found: &mut impl FnMut(TypeHash)) {
        match self {
            Self::Hash(hash) => found(*hash),
            Self::Sequence { element, .. } | Self::Array { element, .. } => element.each_type(found),
            Self::Map { key, element, .. } => {
                key.each_type(found);
                element.each_type(found);
            }
            Self::None | Self::Primitive(_) | Self::String { .. } | Self::Unknown(_) => {}
        }
    }
}

impl TypeObject {
    /// Every type it names by a hash.
    fn each_type(&self, found: &mut impl FnMut(TypeHash)) {
        match &self.definition {
            Definition::Alias(target) | Definition::Collection(target) => target.each_type(found),
            Definition::Structure { base, members, .. } => {
                base.each_type(found);
                members.iter().for_each(|member| member.ty.each_type(found));
            }
            Definition::Union { discriminator, members, .. } => {
                discriminator.each_type(found);
                members.iter().for_each(|member| member.ty.each_type(found));
            }
            Definition::Enumeration { .. }
            | Definition::Bitmask { .. }
            | Definition::Bitset { .. }
            | Definition::Other(_) => {}
        }
    }
}
