//! Maps (XTypes 1.3 §7.4.3.5.3 rules 17 to 20).

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use super::collection::{apart_if_large, counted_extent, is_primitive};
use super::decode::Decoder;
use super::encode::{EncodeError, Encoder};
use super::{Bounded, Cdr, Extent};
use crate::malformed::Malformed;
use crate::types::{TypeBuilder, TypeIdentifiers};

impl<K: Cdr + Ord, V: Cdr> Cdr for BTreeMap<K, V> {
    const BYTES_MIN: usize = 4;
    const EXTENT: Extent = Extent::UNBOUNDED;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encode(self.len(), self, encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let mut map = Self::new();
        decode(decoder, |key, value| drop(map.insert(key, value)))?;
        Ok(map)
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        skip::<K, V>(decoder)
    }

    fn initial() -> Self {
        Self::new()
    }

    fn describe(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        describe::<K, V>(types)
    }
}

impl<K: Cdr + Ord, V: Cdr, const BOUND: usize> Bounded<BOUND> for BTreeMap<K, V> {
    const EXTENT: Extent = extent::<K, V>(BOUND);

    fn length(&self) -> usize {
        self.len()
    }

    fn truncate(&mut self) {
        while self.len() > BOUND {
            self.pop_last();
        }
    }
}

/// In keys of samples its entries are in the order of their keys, as everybody must send the same octets;
/// elsewhere in any.
impl<K: Cdr + Ord + Hash, V: Cdr, S: BuildHasher + Default> Cdr for HashMap<K, V, S> {
    const BYTES_MIN: usize = 4;
    const EXTENT: Extent = Extent::UNBOUNDED;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        if !encoder.key_only() {
            return encode(self.len(), self, encoder);
        }
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        encode(self.len(), entries, encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let mut map = Self::default();
        decode(decoder, |key, value| drop(map.insert(key, value)))?;
        Ok(map)
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        skip::<K, V>(decoder)
    }

    fn initial() -> Self {
        Self::default()
    }

    fn describe(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        describe::<K, V>(types)
    }
}

impl<K, V, S, const BOUND: usize> Bounded<BOUND> for HashMap<K, V, S>
where
    K: Cdr + Ord + Hash,
    V: Cdr,
    S: BuildHasher + Default,
{
    const EXTENT: Extent = extent::<K, V>(BOUND);

    fn length(&self) -> usize {
        self.len()
    }

    /// Which entries remain is not told: they have no order.
    fn truncate(&mut self) {
        let mut left = BOUND;
        self.retain(|_, _| left.checked_sub(1).map(|fewer| left = fewer).is_some());
    }
}

const fn both_primitive<K: Cdr, V: Cdr>() -> bool {
    is_primitive::<K>() && is_primitive::<V>()
}

const fn extent<K: Cdr, V: Cdr>(bound: usize) -> Extent {
    counted_extent(K::EXTENT.then(V::EXTENT), both_primitive::<K, V>(), bound)
}

fn encode<'m, K: Cdr + 'm, V: Cdr + 'm>(
    count: usize,
    entries: impl IntoIterator<Item = (&'m K, &'m V)>,
    encoder: &mut Encoder<'_>,
) -> Result<(), EncodeError> {
    let object = encoder.begin_collection(both_primitive::<K, V>())?;
    encoder.put_length(count)?;
    for (key, value) in entries {
        key.encode(encoder)?;
        value.encode(encoder)?;
    }
    encoder.end_collection(object)
}

fn decode<K: Cdr, V: Cdr>(decoder: &mut Decoder<'_>, mut insert: impl FnMut(K, V)) -> Result<(), Malformed> {
    let object = decoder.begin_collection(both_primitive::<K, V>())?;
    let count = decoder.take_count(K::BYTES_MIN + V::BYTES_MIN)?;
    let entry_bytes = size_of::<K>() + size_of::<V>() + size_of::<usize>();
    // The nodes of a tree, and a table, may be half empty.
    decoder.book_memory(count, entry_bytes.saturating_mul(2))?;
    apart_if_large::<(K, V), _>(|| {
        for _ in 0..count {
            let key = K::decode(decoder)?;
            insert(key, V::decode(decoder)?);
        }
        Ok(())
    })?;
    decoder.end_collection(object);
    Ok(())
}

fn skip<K: Cdr, V: Cdr>(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
    let object = decoder.begin_collection(both_primitive::<K, V>())?;
    if !decoder.jump(&object) {
        for _ in 0..decoder.take_count(K::BYTES_MIN + V::BYTES_MIN)? {
            K::skip(decoder)?;
            V::skip(decoder)?;
        }
    }
    decoder.end_collection(object);
    Ok(())
}

fn describe<K: Cdr, V: Cdr>(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
    types.boxes::<(K, V)>();
    let (key, element) = (K::describe(types), V::describe(types));
    Some(element?.map(key?))
}
