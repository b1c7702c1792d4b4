//! Keys longer than their key hash, of which two may have the same one (RTPS 2.5 §8.7.8: the hash is a hint):
//! MD5 has collisions that anybody can make.
//!
//! The first key has its hash for a handle, as everywhere; a later one with the same hash is displaced to a
//! handle that is free. Keys are compared by their [`Fingerprint`]: eight octets of each instance, not a key
//! of any length, which would need a budget, and what is beyond a budget could not be compared.
//!
//! A key of up to 16 octets is its own hash, and nothing is compared. The fingerprint is made by a hash
//! function with a random seed of the process. A displaced handle lasts as long as its instance is known, and
//! the handles of writer and reader may then differ. On the wire every instance has its true hash. A dispose
//! or unregister without the serialized key is of the instance with that hash which its writer wrote; if it
//! wrote several, it is dropped (`AmbiguousKeyHash`).

use std::collections::BTreeMap;

use crate::instance::{Fingerprint, InstanceHandle, Key};
use crate::tuning::memory::HASH_CANDIDATES_MAX;

/// What an endpoint knows of the long keys of its instances. Empty where keys are their own hashes.
#[derive(Debug, Default)]
pub(crate) struct LongKeys {
    /// By the number of the instance, as far as there are any.
    fingerprints: Vec<Option<Fingerprint>>,
    /// Handles of keys whose hash another one had first.
    displaced: BTreeMap<(InstanceHandle, Fingerprint), InstanceHandle>,
    /// The keys of these handles.
    keys: BTreeMap<InstanceHandle, (InstanceHandle, Fingerprint)>,
}

/// A key and the handle of its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) handle: InstanceHandle,
    pub(crate) key: Key,
}

impl From<Key> for Identity {
    /// Of a key that is its own hash.
    #[inline]
    fn from(key: Key) -> Self {
        Self { handle: key.hash, key }
    }
}

impl LongKeys {
    /// The handle of the instance with this key, or the one that it will have. `find` finds the number of an
    /// instance.
    #[inline]
    pub(crate) fn identify(&self, key: Key, find: impl Fn(InstanceHandle) -> Option<u32>) -> Identity {
        match key.fingerprint {
            Some(fingerprint) => self.compare(key, fingerprint, find),
            None => key.into(),
        }
    }

    #[inline(never)]
    fn compare(
        &self,
        key: Key,
        fingerprint: Fingerprint,
        find: impl Fn(InstanceHandle) -> Option<u32>,
    ) -> Identity {
        if let Some(handle) = self.displaced.get(&(key.hash, fingerprint)) {
            return Identity { handle: *handle, key };
        }
        let is_of_another = |instance: u32| {
            let known = self.fingerprints.get(instance as usize).copied().flatten();
            known.is_some_and(|known| known != fingerprint) || self.keys.contains_key(&key.hash)
        };
        if !find(key.hash).is_some_and(is_of_another) {
            return key.into();
        }
        // Beside its hash in the order of handles.
        let places = (0..).map(|step: u64| beside(key.hash, fingerprint.0.get().wrapping_add(step)));
        let is_free = |handle: &InstanceHandle| *handle != InstanceHandle::NIL && find(*handle).is_none();
        let free = places.into_iter().find(is_free);
        Identity { handle: free.unwrap_or(key.hash), key }
    }

    /// The instance of this number has become known, or was known by a bare hash.
    #[inline]
    pub(crate) fn note(&mut self, instance: u32, identity: &Identity) {
        if let Some(fingerprint) = identity.key.fingerprint {
            self.note_long(instance, identity, fingerprint);
        }
    }

    fn note_long(&mut self, instance: u32, identity: &Identity, fingerprint: Fingerprint) {
        let Identity { handle, key } = *identity;
        let place = instance as usize;
        if self.fingerprints.len() <= place {
            self.fingerprints.resize(place + 1, None);
        }
        let Some(unknown) = self.fingerprints.get_mut(place).filter(|known| known.is_none()) else { return };
        *unknown = Some(fingerprint);
        if handle != key.hash {
            self.displaced.insert((key.hash, fingerprint), handle);
            self.keys.insert(handle, (key.hash, fingerprint));
        }
    }

    /// The instance was forgotten.
    #[inline]
    pub(crate) fn forget(&mut self, instance: u32, handle: InstanceHandle) {
        if let Some(known) = self.fingerprints.get_mut(instance as usize) {
            *known = None;
        }
        if let Some(key) = self.keys.remove(&handle) {
            self.displaced.remove(&key);
        }
    }

    /// Whether any key has another handle than its hash.
    #[inline]
    pub(crate) fn has_displaced(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The key hash of an instance.
    #[inline]
    pub(crate) fn hash_of(&self, handle: InstanceHandle) -> InstanceHandle {
        if !self.has_displaced() { handle } else { self.keys.get(&handle).map_or(handle, |(hash, _)| *hash) }
    }

    /// The instance that a bare hash means: where several are known with it, the only one of which `is_meant`
    /// holds. `None` where that does not tell, and where it has to be a new one whose handle another has.
    pub(crate) fn by_hash(
        &self,
        hash: InstanceHandle,
        find: impl Fn(InstanceHandle) -> Option<u32>,
        is_meant: impl Fn(u32) -> bool,
    ) -> Option<InstanceHandle> {
        if !self.has_displaced() {
            return Some(hash);
        }
        let least = Fingerprint::new(0);
        let displaced = self.displaced.range((hash, least)..).take_while(|((other, _), _)| *other == hash);
        let first = Some(hash).filter(|hash| !self.keys.contains_key(hash));
        let known = first.into_iter().chain(displaced.map(|(_, handle)| *handle));
        let known = known.filter_map(|handle| Some((handle, find(handle)?)));
        let known: Vec<_> = known.take(HASH_CANDIDATES_MAX + 1).collect();
        match *known {
            [] => first,
            [(handle, _)] => Some(handle),
            _ if known.len() > HASH_CANDIDATES_MAX => None,
            _ => {
                let mut meant = known.into_iter().filter(|(_, instance)| is_meant(*instance));
                meant.next().filter(|_| meant.next().is_none()).map(|(handle, _)| handle)
            }
        }
    }

    /// Gives memory back after a flood: there are so many instances.
    pub(crate) fn trim(&mut self, instances: usize) {
        self.fingerprints.truncate(instances);
        crate::shrink::Shrink::shrink_if_sparse(&mut self.fingerprints);
    }
}

/// A handle with the first half of `hash`.
fn beside(hash: InstanceHandle, second: u64) -> InstanceHandle {
    let first = u128::from_be_bytes(hash.0) >> u64::BITS << u64::BITS;
    InstanceHandle((first | u128::from(second)).to_be_bytes())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use md5::{Digest, Md5};

    use super::*;
    use crate::cdr::KeyHash;

    /// Two keys with one MD5, by X. Wang and others (2004), in hexadecimal.
    const COLLISION: [&str; 2] = [
        "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89\
         55ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5b\
         d8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0\
         e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70",
        "d131dd02c5e6eec4693d9a0698aff95c2fcab50712467eab4004583eb8fb7f89\
         55ad340609f4b30283e4888325f1415a085125e8f7cdc99fd91dbd7280373c5b\
         d8823e3156348f5bae6dacd436c919c6dd53e23487da03fd02396306d248cda0\
         e99f33420f577ee8ce54b67080280d1ec69821bcb6a8839396f965ab6ff72a70",
    ];

    /// Two keys of 128 octets with one hash.
    pub(crate) fn colliding() -> [Vec<u8>; 2] {
        COLLISION.map(|digits| {
            let octets = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
            octets.collect::<Result<_, _>>().unwrap()
        })
    }

    /// The key with these octets, in a process of which the seed is known.
    pub(crate) fn key(octets: &[u8]) -> Key {
        let hash = KeyHash(Md5::digest(octets).into()).into();
        let seed = BuildHasherDefault::<DefaultHasher>::default();
        Key { hash, fingerprint: Some(Fingerprint::new(seed.hash_one(octets))) }
    }

    /// Instances by number, as an endpoint has them.
    #[derive(Default)]
    struct Table {
        keys: LongKeys,
        handles: Vec<InstanceHandle>,
    }

    impl Table {
        fn find(&self, handle: InstanceHandle) -> Option<u32> {
            self.handles.iter().position(|known| *known == handle).map(|place| place as u32)
        }

        fn identify(&self, key: Key) -> InstanceHandle {
            self.keys.identify(key, |handle| self.find(handle)).handle
        }

        fn add(&mut self, key: Key) -> InstanceHandle {
            let identity = self.keys.identify(key, |handle| self.find(handle));
            let place = self.find(identity.handle).unwrap_or(self.handles.len() as u32);
            if place as usize == self.handles.len() {
                self.handles.push(identity.handle);
            }
            self.keys.note(place, &identity);
            identity.handle
        }

        fn forget(&mut self, handle: InstanceHandle) {
            let place = self.find(handle).unwrap();
            self.handles[place as usize] = InstanceHandle::NIL;
            self.keys.forget(place, handle);
        }

        fn by_hash(&self, hash: InstanceHandle, meant: &[InstanceHandle]) -> Option<InstanceHandle> {
            let is_meant = |place: u32| meant.contains(&self.handles[place as usize]);
            self.keys.by_hash(hash, |handle| self.find(handle), is_meant)
        }
    }

    /// Another key with the same hash.
    fn again(key: Key, number: u64) -> Key {
        Key { fingerprint: Some(Fingerprint::new(number)), ..key }
    }

    #[test]
    fn keys_with_one_hash_have_handles_of_their_own_until_they_are_forgotten() {
        let [one, other] = colliding().map(|octets| key(&octets));
        assert_eq!(one.hash, other.hash);
        let mut table = Table::default();
        assert_eq!(table.add(one), one.hash);
        let displaced = table.add(other);
        assert_ne!(displaced, one.hash);
        assert_eq!([table.identify(one), table.identify(other)], [one.hash, displaced]);
        assert_eq!(table.keys.hash_of(displaced), one.hash);
        table.forget(one.hash);
        assert_eq!(table.add(other), displaced, "a handle is never changed");
        assert_eq!(table.add(one), one.hash);
        table.forget(displaced);
        table.forget(one.hash);
        assert_eq!(table.add(other), one.hash);
        assert!(table.keys.displaced.is_empty() && table.keys.keys.is_empty());
    }

    #[test]
    fn a_key_whose_hash_is_the_handle_of_a_displaced_one_is_displaced_itself() {
        let [one, other] = colliding().map(|octets| key(&octets));
        let mut table = Table::default();
        table.add(one);
        let displaced = table.add(other);
        // Whatever is known of it: the fingerprint may be alike by chance.
        let third = Key { hash: displaced, ..other };
        let handle = table.add(third);
        assert!(![one.hash, displaced].contains(&handle));
        assert_eq!([table.identify(other), table.identify(third)], [displaced, handle]);
        assert_eq!(table.by_hash(third.hash, &[]), Some(handle));
        table.forget(handle);
        assert_eq!(table.by_hash(third.hash, &[displaced]), None, "its handle is of another");
    }

    #[test]
    fn no_handle_is_nil() {
        let one = Key { hash: InstanceHandle([0; 16]), fingerprint: Some(Fingerprint::new(7)) };
        let mut table = Table::default();
        table.add(one);
        let handles = [u64::MAX, 1].map(|number| table.add(again(one, number)));
        assert!(!handles.contains(&InstanceHandle::NIL) && handles[0] != handles[1]);
    }

    #[test]
    fn what_was_known_by_its_hash_alone_is_of_the_first_key() {
        let [one, other] = colliding().map(|octets| key(&octets));
        let mut table = Table::default();
        assert_eq!(table.add(one.hash.into()), one.hash);
        assert_eq!(table.add(one), one.hash);
        assert_ne!(table.add(other), one.hash);
    }

    #[test]
    fn a_bare_hash_means_the_only_instance_that_is_meant() {
        let [one, other] = colliding().map(|octets| key(&octets));
        let mut table = Table::default();
        assert_eq!(table.by_hash(one.hash, &[]), Some(one.hash), "a new one");
        table.add(one);
        let displaced = table.add(other);
        assert_eq!(table.by_hash(one.hash, &[one.hash]), Some(one.hash));
        assert_eq!(table.by_hash(one.hash, &[displaced]), Some(displaced));
        assert_eq!(table.by_hash(one.hash, &[one.hash, displaced]), None);
        assert_eq!(table.by_hash(one.hash, &[]), None);
        assert_eq!(table.by_hash(InstanceHandle([7; 16]), &[]), Some(InstanceHandle([7; 16])));
        table.forget(one.hash);
        assert_eq!(table.by_hash(one.hash, &[]), Some(displaced), "there is no other");
        let many: Vec<_> = (0..100).map(|number| table.add(again(one, number))).collect();
        assert_eq!(table.by_hash(one.hash, &many[..1]), None, "not all are looked at");
    }
}
