//! The elements of collections, so that their bounds can be checked.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use super::collection::{counted_extent, is_primitive};
use super::{Cdr, ElementKind, Extent};

/// How much a collection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many elements.
    Array(usize),
    /// Any number of elements.
    Counted,
    /// Nobody knows: it is in a box, or may be absent.
    Unknown,
}

/// A collection; an `Option` or `Box` of one is looked through.
pub trait Elements {
    /// Of a map, its values.
    type Element;
    /// How much it has.
    const SHAPE: Shape;
    /// Whether its entries are primitive types.
    const PRIMITIVE: bool;
    /// The most octets of a key, which comes before each element of a map.
    const KEY_EXTENT: Extent;

    /// Looks at each element, up to the first error.
    ///
    /// # Errors
    /// That of `look`.
    fn try_each<E>(&self, look: impl FnMut(&Self::Element) -> Result<(), E>) -> Result<(), E>;

    /// As [`Self::try_each`]; it may change them.
    ///
    /// # Errors
    /// That of `change`.
    fn try_each_mut<E>(&mut self, change: impl FnMut(&mut Self::Element) -> Result<(), E>) -> Result<(), E>;
}

/// A map.
pub trait Keys {
    /// By what its values are found.
    type Key;

    /// Looks at each key, up to the first error.
    ///
    /// # Errors
    /// That of `look`.
    fn try_each_key<E>(&self, look: impl FnMut(&Self::Key) -> Result<(), E>) -> Result<(), E>;
}

/// The most octets of a collection in the form for key hashes, given those of its elements, with their keys.
#[must_use]
pub const fn collection_extent<C: Elements>(element: Extent, bound: Option<usize>) -> Extent {
    match (C::SHAPE, bound) {
        (Shape::Array(count), _) if C::PRIMITIVE => element.times(count),
        (Shape::Array(count), _) => Extent::primitive(4).then(element.times(count)),
        (Shape::Counted, Some(bound)) => counted_extent(element, C::PRIMITIVE, bound),
        (Shape::Counted, None) | (Shape::Unknown, _) => Extent::UNBOUNDED,
    }
}

impl<T: Cdr> Elements for Vec<T> {
    type Element = T;
    const SHAPE: Shape = Shape::Counted;
    const PRIMITIVE: bool = is_primitive::<T>();
    const KEY_EXTENT: Extent = Extent::EMPTY;

    fn try_each<E>(&self, look: impl FnMut(&T) -> Result<(), E>) -> Result<(), E> {
        self.iter().try_for_each(look)
    }

    fn try_each_mut<E>(&mut self, change: impl FnMut(&mut T) -> Result<(), E>) -> Result<(), E> {
        self.iter_mut().try_for_each(change)
    }
}

impl<T: Cdr, const N: usize> Elements for [T; N] {
    type Element = T;
    const SHAPE: Shape = Shape::Array(N);
    const PRIMITIVE: bool = matches!(T::ELEMENT, ElementKind::Primitive | ElementKind::PrimitiveArray);
    const KEY_EXTENT: Extent = Extent::EMPTY;

    fn try_each<E>(&self, look: impl FnMut(&T) -> Result<(), E>) -> Result<(), E> {
        self.iter().try_for_each(look)
    }

    fn try_each_mut<E>(&mut self, change: impl FnMut(&mut T) -> Result<(), E>) -> Result<(), E> {
        self.iter_mut().try_for_each(change)
    }
}

macro_rules! map {
    ($map:ty $(, $hasher:ident: $first:ident + $second:ident)?; $($key:ident)+) => {
        impl<K: Cdr $(+ $key)+, V: Cdr $(, $hasher: $first + $second)?> Elements for $map {
            type Element = V;
            const SHAPE: Shape = Shape::Counted;
            const PRIMITIVE: bool = is_primitive::<K>() && is_primitive::<V>();
            const KEY_EXTENT: Extent = K::EXTENT;

            fn try_each<E>(&self, look: impl FnMut(&V) -> Result<(), E>) -> Result<(), E> {
                self.values().try_for_each(look)
            }

            fn try_each_mut<E>(&mut self, change: impl FnMut(&mut V) -> Result<(), E>) -> Result<(), E> {
                self.values_mut().try_for_each(change)
            }
        }

        impl<K: Cdr $(+ $key)+, V: Cdr $(, $hasher: $first + $second)?> Keys for $map {
            type Key = K;

            fn try_each_key<E>(&self, look: impl FnMut(&K) -> Result<(), E>) -> Result<(), E> {
                self.keys().try_for_each(look)
            }
        }
    };
}

map!(BTreeMap<K, V>; Ord);
map!(HashMap<K, V, S>, S: BuildHasher + Default; Ord Hash);

impl<C: Elements> Elements for Option<C> {
    type Element = C::Element;
    const SHAPE: Shape = Shape::Unknown;
    const PRIMITIVE: bool = C::PRIMITIVE;
    const KEY_EXTENT: Extent = C::KEY_EXTENT;

    fn try_each<E>(&self, look: impl FnMut(&C::Element) -> Result<(), E>) -> Result<(), E> {
        self.as_ref().map_or(Ok(()), |collection| collection.try_each(look))
    }

    fn try_each_mut<E>(&mut self, change: impl FnMut(&mut C::Element) -> Result<(), E>) -> Result<(), E> {
        self.as_mut().map_or(Ok(()), |collection| collection.try_each_mut(change))
    }
}

impl<C: Elements> Elements for Box<C> {
    type Element = C::Element;
    const SHAPE: Shape = Shape::Unknown;
    const PRIMITIVE: bool = C::PRIMITIVE;
    const KEY_EXTENT: Extent = C::KEY_EXTENT;

    fn try_each<E>(&self, look: impl FnMut(&C::Element) -> Result<(), E>) -> Result<(), E> {
        (**self).try_each(look)
    }

    fn try_each_mut<E>(&mut self, change: impl FnMut(&mut C::Element) -> Result<(), E>) -> Result<(), E> {
        (**self).try_each_mut(change)
    }
}

impl<C: Keys> Keys for Option<C> {
    type Key = C::Key;

    fn try_each_key<E>(&self, look: impl FnMut(&C::Key) -> Result<(), E>) -> Result<(), E> {
        self.as_ref().map_or(Ok(()), |map| map.try_each_key(look))
    }
}

impl<C: Keys> Keys for Box<C> {
    type Key = C::Key;

    fn try_each_key<E>(&self, look: impl FnMut(&C::Key) -> Result<(), E>) -> Result<(), E> {
        (**self).try_each_key(look)
    }
}
