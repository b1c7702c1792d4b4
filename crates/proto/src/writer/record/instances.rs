//! What a writer knows of its instances: who is registered, which samples of each are in the history, and
//! when each offered deadline runs out (DCPS 1.4 §2.2.2.4.2, §2.2.3.7). Every operation of the data path is
//! O(1) in the number of instances. The random keys of the hash map guard against chosen keys; its order is
//! never seen.

use std::collections::HashMap;

use crate::instance::{InstanceHandle, Key};
use crate::long_keys::{Identity, LongKeys};
use crate::payload::Payload;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant, Time};

/// Position of an instance in the table; stays valid until the instance is forgotten.
pub(crate) type Slot = u32;

/// No slot.
pub(crate) const NIL: Slot = Slot::MAX;

/// One instance of the topic. One cache line: there may be many of them.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Instance {
    pub(crate) handle: InstanceHandle,
    /// Oldest and newest change in the history; meaningful while `samples` is above 0.
    pub(crate) oldest: SequenceNumber,
    pub(crate) newest: SequenceNumber,
    /// Serialized key, once known.
    key: Option<Box<Payload>>,
    /// Source timestamp of the last change, INVALID before the first.
    pub(crate) timestamp: Time,
    /// Changes in the history.
    pub(crate) samples: usize,
    /// The application may still write it.
    pub(crate) registered: bool,
    /// It was written, and not disposed since.
    is_alive: bool,
}

impl Instance {
    const fn new(handle: InstanceHandle) -> Self {
        Self {
            handle,
            oldest: SequenceNumber(0),
            newest: SequenceNumber(0),
            key: None,
            timestamp: Time::INVALID,
            samples: 0,
            registered: false,
            is_alive: false,
        }
    }

    pub(crate) fn key(&self) -> Option<&Payload> {
        self.key.as_deref()
    }

    /// Notes the serialized key, unless it is known.
    pub(crate) fn set_key(&mut self, key: impl FnOnce() -> Payload) {
        self.key.get_or_insert_with(|| Box::new(key()));
    }

    /// Whether its slot is not free.
    const fn is_known(&self) -> bool {
        self.registered || self.samples > 0
    }
}

/// A place in the list of running deadlines.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// `None`: it does not run.
    end: Option<Instant>,
    /// Neighbours.
    earlier: Slot,
    later: Slot,
}

impl Deadline {
    const NONE: Self = Self { end: None, earlier: NIL, later: NIL };
}

/// All instances of one writer.
#[derive(Debug)]
pub(crate) struct Instances {
    index: HashMap<InstanceHandle, Slot>,
    long_keys: LongKeys,
    slots: Vec<Instance>,
    free: Vec<Slot>,
    /// The instance used last, and what to add for the next, if it goes on as it did: 0 or 1.
    recent: Slot,
    step: Slot,
    deadline_period: Duration,
    /// By slot, as far as there are any.
    deadlines: Vec<Deadline>,
    /// Running deadlines are a list in the order in which they end: all have the same period, so
    /// the instance written last always goes to the back.
    first_deadline: Slot,
    last_deadline: Slot,
}

impl Instances {
    pub(crate) fn new(deadline_period: Duration) -> Self {
        Self {
            index: HashMap::new(),
            long_keys: LongKeys::default(),
            slots: Vec::new(),
            free: Vec::new(),
            recent: 0,
            step: 0,
            deadline_period,
            deadlines: Vec::new(),
            first_deadline: NIL,
            last_deadline: NIL,
        }
    }

    /// Instances known: registered, or with changes in the history.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Who writes one instance again and again, or all by switches, needs no look-up.
    #[inline]
    pub(crate) fn find(&self, handle: InstanceHandle) -> Option<Slot> {
        let expected = self.recent.wrapping_add(self.step);
        if self.is_at(expected, handle) { Some(expected) } else { self.look_up(handle) }
    }

    /// The handle of the instance with this key, or that it will have.
    #[inline]
    pub(crate) fn identify(&self, key: Key) -> Identity {
        self.long_keys.identify(key, |handle| self.find(handle))
    }

    /// The key hash of an instance.
    #[inline]
    pub(crate) fn hash_of(&self, handle: InstanceHandle) -> InstanceHandle {
        self.long_keys.hash_of(handle)
    }

    #[inline]
    fn is_at(&self, slot: Slot, handle: InstanceHandle) -> bool {
        self.get(slot).is_some_and(|it| it.handle == handle && it.is_known())
    }

    fn look_up(&self, handle: InstanceHandle) -> Option<Slot> {
        let guesses = [self.recent, self.recent.wrapping_add(1), 0];
        let guess = guesses.into_iter().find(|guess| self.is_at(*guess, handle));
        guess.or_else(|| self.index.get(&handle).copied())
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Instance> {
        self.slots.get(slot as usize)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Instance> {
        self.slots.get_mut(slot as usize)
    }

    /// Handles and serialized keys of the registered instances; keys that are not known are empty.
    pub(crate) fn registered(&self) -> impl Iterator<Item = (InstanceHandle, Payload)> + '_ {
        let registered = self.slots.iter().filter(|instance| instance.registered);
        registered.map(|instance| (instance.handle, instance.key().cloned().unwrap_or_default()))
    }

    /// The instance's slot, made when it is new; registered from now on.
    pub(crate) fn register(&mut self, identity: &Identity) -> Slot {
        self.register_at(None, identity)
    }

    /// The same; `guess`: where it was found before something else may have happened.
    #[inline]
    pub(crate) fn register_at(&mut self, guess: Option<Slot>, identity: &Identity) -> Slot {
        let handle = identity.handle;
        let slot = match guess.filter(|guess| self.is_at(*guess, handle)).or_else(|| self.find(handle)) {
            Some(slot) => slot,
            None => self.insert(identity),
        };
        self.register_known(slot);
        slot
    }

    /// The same for one that is known.
    #[inline]
    pub(crate) fn register_known(&mut self, slot: Slot) {
        self.step = Slot::from(slot != self.recent);
        self.recent = slot;
        if let Some(instance) = self.get_mut(slot) {
            instance.registered = true;
        }
    }

    fn insert(&mut self, identity: &Identity) -> Slot {
        let instance = Instance::new(identity.handle);
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(place) = self.slots.get_mut(slot as usize) {
                    *place = instance;
                }
                slot
            }
            None => {
                self.slots.push(instance);
                (self.slots.len() - 1) as Slot
            }
        };
        self.index.insert(identity.handle, slot);
        self.long_keys.note(slot, identity);
        slot
    }

    /// The application has nothing more to say about the instance.
    pub(crate) fn unregister(&mut self, slot: Slot) {
        self.stop_deadline(slot);
        if let Some(instance) = self.get_mut(slot) {
            instance.registered = false;
        }
    }

    /// Forgets the instance if it is unregistered and the history holds nothing of it.
    pub(crate) fn forget_if_over(&mut self, slot: Slot) {
        let Some(instance) = self.get(slot) else { return };
        if instance.registered || instance.samples > 0 {
            return;
        }
        let handle = instance.handle;
        if self.index.remove(&handle).is_none() {
            return;
        }
        if let Some(instance) = self.get_mut(slot) {
            instance.key = None;
        }
        self.long_keys.forget(slot, handle);
        self.free.push(slot);
    }

    /// So many of its oldest changes left the history; the next is `oldest`.
    #[inline]
    pub(crate) fn first_left(&mut self, slot: Slot, changes: usize, oldest: SequenceNumber) {
        let Some(instance) = self.get_mut(slot) else { return };
        instance.samples -= changes;
        instance.oldest = oldest;
        if !instance.registered && instance.samples == 0 {
            self.forget_if_over(slot);
        }
    }

    /// The instance was written: its deadline begins anew.
    #[inline]
    pub(crate) fn restart_deadline(&mut self, slot: Slot, now: Instant) {
        if let Some(instance) = self.get_mut(slot) {
            instance.is_alive = true;
        }
        if let Some(end) = now.after(self.deadline_period) {
            self.set_deadline(slot, end);
        }
    }

    #[inline(never)]
    fn set_deadline(&mut self, slot: Slot, end: Instant) {
        if self.deadlines.len() <= slot as usize {
            self.deadlines.resize(self.slots.len(), Deadline::NONE);
        }
        if self.last_deadline != slot {
            self.stop_deadline(slot);
            let last = self.last_deadline;
            match self.deadline_mut(last) {
                Some(last) => last.later = slot,
                None => self.first_deadline = slot,
            }
            if let Some(deadline) = self.deadline_mut(slot) {
                deadline.earlier = last;
            }
            self.last_deadline = slot;
        }
        if let Some(deadline) = self.deadline_mut(slot) {
            deadline.end = Some(end);
        }
    }

    /// The instance was disposed: it has no deadline until it is written again.
    pub(crate) fn disposed(&mut self, slot: Slot) {
        if let Some(instance) = self.get_mut(slot) {
            instance.is_alive = false;
        }
        self.stop_deadline(slot);
    }

    /// No deadline for the instance until it is written again.
    pub(crate) fn stop_deadline(&mut self, slot: Slot) {
        let Some(deadline) = self.deadline_mut(slot) else { return };
        let Deadline { end, earlier, later } = std::mem::replace(deadline, Deadline::NONE);
        if end.is_none() {
            return;
        }
        match self.deadline_mut(earlier) {
            Some(earlier) => earlier.later = later,
            None => self.first_deadline = later,
        }
        match self.deadline_mut(later) {
            Some(later) => later.earlier = earlier,
            None => self.last_deadline = earlier,
        }
    }

    fn deadline_mut(&mut self, slot: Slot) -> Option<&mut Deadline> {
        self.deadlines.get_mut(slot as usize)
    }

    /// When the next deadline ends.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.get(self.first_deadline as usize)?.end
    }

    /// An instance whose deadline has ended; its next period begins.
    pub(crate) fn missed_deadline(&mut self, now: Instant) -> Option<InstanceHandle> {
        let slot = self.first_deadline;
        let handle = self.next_deadline().filter(|end| *end <= now).and_then(|_| self.get(slot))?.handle;
        self.restart_deadline(slot, now);
        Some(handle)
    }

    /// DEADLINE was changed: running deadlines begin anew with the new period.
    pub(crate) fn set_deadline_period(&mut self, period: Duration, now: Instant) {
        if period == self.deadline_period {
            return;
        }
        self.deadline_period = period;
        for slot in 0..self.slots.len() as Slot {
            self.stop_deadline(slot);
            if self.get(slot).is_some_and(|instance| instance.registered && instance.is_alive) {
                self.restart_deadline(slot, now);
            }
        }
    }
}

impl crate::writer::Writer {
    /// The serialized key of an instance, when it was registered with one or disposed.
    #[must_use]
    pub fn instance_key(&self, instance: InstanceHandle) -> Option<&Payload> {
        self.instances.get(self.instances.find(instance)?)?.key()
    }

    /// The instance with this key, if it is registered.
    #[must_use]
    pub fn find_registered(&self, key: Key) -> Option<InstanceHandle> {
        Some(self.instances.identify(key).handle).filter(|handle| self.is_registered(*handle))
    }

    /// Whether the hash of a key that was written is that of another one, and the serialized key is not
    /// known: the hash alone would not tell readers which of them ends.
    #[must_use]
    pub fn lacks_key(&self, key: Key) -> bool {
        if !self.instances.long_keys.has_displaced() {
            return false;
        }
        let handle = self.instances.identify(key).handle;
        handle != key.hash && self.instance_key(handle).is_none()
    }

    /// The registered instances and their serialized keys; empty where only the key hash is known.
    pub fn registered_instances(&self) -> impl Iterator<Item = (InstanceHandle, Payload)> + '_ {
        self.instances.registered()
    }

    /// Whether the instance was registered, by name or by writing it, and not unregistered since.
    #[must_use]
    pub fn is_registered(&self, instance: InstanceHandle) -> bool {
        let slot = self.instances.find(instance);
        slot.and_then(|slot| self.instances.get(slot)).is_some_and(|instance| instance.registered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(number: u8) -> InstanceHandle {
        InstanceHandle([number; 16])
    }

    fn identity(number: u8) -> Identity {
        Key::from(handle(number)).into()
    }

    #[test]
    fn fact_33_deadlines_end_per_instance_in_the_order_of_writing() {
        let mut instances = Instances::new(Duration(100));
        let [one, two, three] = [1, 2, 3].map(|number| instances.register(&identity(number)));
        instances.restart_deadline(one, Instant(0));
        instances.restart_deadline(two, Instant(10));
        instances.restart_deadline(three, Instant(20));
        instances.restart_deadline(one, Instant(30));
        assert_eq!(instances.next_deadline(), Some(Instant(110)));
        assert_eq!(instances.missed_deadline(Instant(109)), None);
        assert_eq!(instances.missed_deadline(Instant(110)), Some(handle(2)));
        instances.stop_deadline(three);
        assert_eq!(instances.next_deadline(), Some(Instant(130)));
        assert_eq!(instances.missed_deadline(Instant(130)), Some(handle(1)));
        assert_eq!(instances.missed_deadline(Instant(210)), Some(handle(2)), "deadlines re-arm");
    }

    #[test]
    fn a_forgotten_instance_gives_its_slot_to_the_next() {
        let mut instances = Instances::new(Duration(100));
        let slot = instances.register(&identity(1));
        instances.restart_deadline(slot, Instant(0));
        instances.forget_if_over(slot);
        assert_eq!(instances.find(handle(1)), Some(slot), "registered instances stay");
        instances.unregister(slot);
        instances.forget_if_over(slot);
        assert_eq!((instances.find(handle(1)), instances.len()), (None, 0));
        assert_eq!(instances.next_deadline(), None);
        assert_eq!(instances.register(&identity(2)), slot);
    }
}
