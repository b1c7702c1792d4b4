//! Names of types: the hash of a TypeObject, or of the TypeObjects of types that contain one another.

use md5::{Digest, Md5};

/// Types in a strongly connected component at most: types that contain one another.
pub const COMPONENT_TYPES_MAX: u32 = 128;

/// A direct hash TypeIdentifier (XTypes 1.3 §7.3.4.6.3): `EquivalenceHash`, the relation it is about, and for
/// a type that contains itself which type of its component it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeHash {
    /// Of a complete TypeObject, with names; otherwise of a minimal one.
    pub complete: bool,
    /// First 14 octets of the MD5 of the TypeObject in XCDR2, little endian; of all TypeObjects of a
    /// component.
    pub octets: [u8; 14],
    /// Of a type that contains itself, perhaps by way of others.
    pub component: Option<ComponentPlace>,
}

/// `StronglyConnectedComponentId` without its hash: a type among those that it contains and that contain it
/// (§7.3.4.9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentPlace {
    /// How many types there are.
    pub length: u32,
    /// Which one it is, from 1, in the order of their names; 0 for all of them.
    pub index: u32,
}

impl TypeHash {
    /// The hash of a serialized TypeObject, and of which kind it is.
    #[must_use]
    pub fn of(complete: bool, serialized: &[u8]) -> Self {
        Self { complete, octets: digest(serialized), component: None }
    }

    /// The name of a component whose serialized TypeObjects these are, in order. Where they name one another,
    /// `own` is there for a hash that is not known yet; other octets are those of the final TypeObjects
    /// (§7.3.4.9.2).
    #[must_use]
    pub fn of_component<T: AsRef<[u8]>>(complete: bool, own: [u8; 14], objects: &[T]) -> Self {
        let length = u32::try_from(objects.len()).unwrap_or(u32::MAX);
        let serialized = serialized_component(objects, own, [0; 14]);
        Self { complete, octets: digest(&serialized), component: Some(ComponentPlace { length, index: 0 }) }
    }

    /// The name of the component of a type that contains itself; its own name of any other.
    #[must_use]
    pub const fn whole(self) -> Self {
        self.at(0)
    }

    /// The type of the same component with this index; the same for a type of none.
    #[must_use]
    pub(super) const fn at(mut self, index: u32) -> Self {
        if let Some(place) = &mut self.component {
            place.index = index;
        }
        self
    }

    /// Whether it names a component instead of one of its types.
    #[must_use]
    pub const fn is_whole_component(self) -> bool {
        matches!(self.component, Some(ComponentPlace { index: 0, .. }))
    }

    /// The types that it names: those of a component, or one.
    pub fn types(self) -> impl Iterator<Item = Self> {
        let indices = match self.component {
            Some(ComponentPlace { length, index: 0 }) => 1..=length.min(COMPONENT_TYPES_MAX),
            Some(ComponentPlace { index, .. }) => index..=index,
            None => 0..=0,
        };
        indices.map(move |index| self.at(index))
    }

    /// Whether `objects` are the TypeObjects of the component with this name, in order.
    #[must_use]
    pub(super) fn is_of_component<T: AsRef<[u8]>>(self, objects: &[T]) -> bool {
        self.whole() == Self::of_component(self.complete, self.octets, objects)
    }
}

fn digest(octets: &[u8]) -> [u8; 14] {
    let digest = <[u8; 16]>::from(Md5::digest(octets));
    let mut first = [0; 14];
    first.iter_mut().zip(digest).for_each(|(octet, from)| *octet = from);
    first
}

/// Octets of a serialized component.
pub(super) fn component_bytes<'a>(objects: impl Iterator<Item = &'a Vec<u8>>) -> usize {
    objects.fold(2 * size_of::<u32>(), |sum, it| sum.next_multiple_of(4).saturating_add(it.len()))
}

/// `StronglyConnectedComponent` in XCDR2: a sequence of TypeObjects, which begin at multiples of 4. The
/// octets `from` are replaced by `to` wherever they are in one.
fn serialized_component<T: AsRef<[u8]>>(objects: &[T], from: [u8; 14], to: [u8; 14]) -> Vec<u8> {
    let count = u32::try_from(objects.len()).unwrap_or(u32::MAX);
    let mut content = count.to_le_bytes().to_vec();
    for object in objects {
        content.resize(content.len().next_multiple_of(4), 0);
        let start = content.len();
        content.extend_from_slice(object.as_ref());
        replace(content.get_mut(start..).unwrap_or_default(), from, to);
    }
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes()[..], &content].concat()
}

/// Replaces octets wherever they are.
fn replace(octets: &mut [u8], from: [u8; 14], to: [u8; 14]) {
    let mut at = 0;
    while let Some(found) = octets.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        at += if *found == from {
            *found = to;
            from.len()
        } else {
            1
        };
    }
}
