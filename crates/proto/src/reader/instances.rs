//! The instances of a reader: states, samples, and the sets that make every look-up short.

use std::collections::HashMap;
use std::ops::Bound;

use super::destination_order::Order;
use super::handle_set::HandleSet;
use super::ownership::WriterId;
use super::samples::Queue;
use crate::guid::Guid;
use crate::instance::{InstanceHandle, Key};
use crate::long_keys::{Identity, LongKeys};
use crate::payload::Payload;
use crate::sample_info::{Agreed, InstanceState, SampleState, Selector, ViewState};
use crate::seq::SequenceNumber;
use crate::shrink::{self, Shrink};
use crate::time::{Instant, Time};
use crate::tuning::reader::FORGOTTEN_INSTANCES_MIN;

/// Index of an instance in its reader.
pub(super) type InstanceId = u32;

/// One sample in the cache.
#[derive(Debug)]
pub(super) struct Sample {
    /// Order of arrival in the reader.
    pub(super) id: u64,
    pub(super) writer: Guid,
    pub(super) source_timestamp: Time,
    pub(super) reception_timestamp: Time,
    pub(super) disposed_generation: i32,
    pub(super) no_writers_generation: i32,
    pub(super) read: bool,
    /// False for a marker: it only reports that the instance is not alive.
    pub(super) valid: bool,
    pub(super) payload: Payload,
    /// End of LIFESPAN.
    pub(super) expires: Option<Instant>,
    /// Its number among the changes of all writers of its publisher.
    pub(super) group_number: Option<SequenceNumber>,
    /// Where it stands in the agreed order of an ATOMIC topic.
    pub(super) agreed: Agreed,
}

/// What is to be accounted for when a sample leaves the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) id: u64,
    pub(super) source_order: (Time, Guid),
    pub(super) expires: Option<Instant>,
    pub(super) bytes: usize,
    pub(super) valid: bool,
    read: bool,
}

/// One instance: what each sample touches. One cache line, since there may be many of them.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Instance {
    pub(super) handle: InstanceHandle,
    pub(super) samples: Queue,
    /// Samples with data.
    pub(super) valid: u32,
    pub(super) unread: u32,
    pub(super) disposed_generations: i32,
    pub(super) no_writers_generations: i32,
    /// The writer known to be among those that keep it alive: it wrote last.
    pub(super) recent_writer: OptionalIndex,
    /// The last sample filtered out: shown after all when the writer falls silent.
    pub(super) held: OptionalIndex,
    pub(super) state: InstanceState,
    pub(super) view: ViewState,
    pub(super) has_marker: bool,
    /// Its key is kept, or it has none.
    pub(super) is_named: bool,
    /// Made when something in it changes for the first time.
    details: Option<Box<Details>>,
}

const _: () = assert!(size_of::<Option<Instance>>() == 64);

/// What few samples touch of an instance: while it is alive and the same writer writes it, only a policy asks
/// for this, which may be DEADLINE, EXCLUSIVE ownership, the order BY_SOURCE_TIMESTAMP or TIME_BASED_FILTER.
#[derive(Debug)]
pub(super) struct Details {
    /// Writers that keep it alive.
    pub(super) writers: u32,
    /// Serialized, with its encapsulation header; empty when only the key hash is known.
    key: Payload,
    /// EXCLUSIVE ownership.
    pub(super) owner: Option<WriterId>,
    /// TIME_BASED_FILTER: nothing before this time.
    pub(super) filtered_until: Option<Instant>,
    /// BY_SOURCE_TIMESTAMP: nothing older than what left the cache may enter it.
    pub(super) ordered_after: Option<(Time, Guid)>,
    pub(super) deadline: Option<Instant>,
    pub(super) deadline_armed: Option<Instant>,
    /// When it ceased to be alive; `None` while it is.
    pub(super) ended_at: Option<Instant>,
    pub(super) purge_at: Option<Instant>,
    /// Names this instance's place in the queue of forgettable ones.
    pub(super) retired: u64,
}

/// The index of a slot or a writer, or none: in four octets, not the eight of an `Option`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OptionalIndex(u32);

/// What of an instance the counters and sets depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    cell: usize,
    unread: usize,
    total: usize,
}

/// All instances of a reader.
#[derive(Debug, Default)]
pub(super) struct Instances {
    slots: Vec<Option<Instance>>,
    free: Vec<InstanceId>,
    index: HashMap<InstanceHandle, InstanceId>,
    long_keys: LongKeys,
    /// The instance asked for last, and what to add for the next, if it goes on as it did: 0 or 1.
    recent: InstanceId,
    step: InstanceId,
    tally: Tally,
    /// Instances forgotten since memory was given back.
    forgotten: usize,
}

/// Where the samples are.
#[derive(Debug, Default)]
struct Tally {
    /// Instances with samples that were not read.
    fresh: HandleSet,
    /// Instances with samples, all of which were read.
    stale: HandleSet,
    /// Samples by view and instance state: all, not read.
    counters: [[usize; 2]; CELLS],
}

const CELLS: usize = VIEWS.len() * STATES.len();
const VIEWS: [ViewState; 2] = [ViewState::New, ViewState::NotNew];
const STATES: [InstanceState; 3] =
    [InstanceState::Alive, InstanceState::NotAliveDisposed, InstanceState::NotAliveNoWriters];

const fn cell(view: ViewState, state: InstanceState) -> usize {
    (view as usize - 1) * 3 + state as usize / 2
}

impl Sample {
    /// What is in a slot before the first sample.
    pub(super) const fn blank() -> Self {
        Self {
            id: 0,
            writer: Guid::UNKNOWN,
            source_timestamp: Time(0),
            reception_timestamp: Time(0),
            disposed_generation: 0,
            no_writers_generation: 0,
            read: false,
            valid: false,
            payload: Payload::empty(),
            expires: None,
            group_number: None,
            agreed: Agreed { position: 0, epoch: 0 },
        }
    }

    /// Its place under DESTINATION_ORDER BY_SOURCE_TIMESTAMP.
    pub(super) const fn source_order(&self) -> (Time, Guid) {
        (self.source_timestamp, self.writer)
    }

    #[inline]
    pub(super) const fn departure(&self) -> Departure {
        Departure {
            id: self.id,
            source_order: self.source_order(),
            expires: self.expires,
            bytes: self.payload.len(),
            valid: self.valid,
            read: self.read,
        }
    }

    pub(super) const fn generations(&self) -> i32 {
        self.disposed_generation.saturating_add(self.no_writers_generation)
    }

    pub(super) const fn matches(&self, selector: &Selector) -> bool {
        let state = if self.read { SampleState::Read } else { SampleState::NotRead };
        selector.sample_states & state as u8 != 0
    }
}

impl Instance {
    fn new(handle: InstanceHandle) -> Self {
        Self {
            handle,
            samples: Queue::new(),
            valid: 0,
            unread: 0,
            disposed_generations: 0,
            no_writers_generations: 0,
            recent_writer: OptionalIndex::NONE,
            held: OptionalIndex::NONE,
            state: InstanceState::Alive,
            view: ViewState::New,
            has_marker: false,
            is_named: false,
            details: None,
        }
    }

    pub(super) fn details(&self) -> &Details {
        self.details.as_deref().unwrap_or(Details::NONE)
    }

    /// Makes them if there are none: see [`Self::details_if_made`].
    #[inline]
    pub(super) fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_with(Details::make)
    }

    /// For taking something away, where without details there is nothing.
    pub(super) fn details_if_made(&mut self) -> Option<&mut Details> {
        self.details.as_deref_mut()
    }

    /// What names it to the application: its serialized key, or nothing.
    pub(super) fn key(&self) -> &Payload {
        &self.details().key
    }

    #[cold]
    pub(super) fn set_key(&mut self, key: Payload) {
        self.is_named = true;
        self.details_mut().key = key;
    }

    pub(super) fn is_alive(&self) -> bool {
        self.state == InstanceState::Alive
    }

    pub(super) const fn generations(&self) -> i32 {
        self.disposed_generations.saturating_add(self.no_writers_generations)
    }

    /// A sample with data arrived: the instance is alive (DCPS 1.4 §2.2.2.5.1.3 and .8).
    #[inline]
    pub(super) fn revive(&mut self) {
        if !self.is_alive() {
            self.return_to_life();
        }
    }

    #[cold]
    fn return_to_life(&mut self) {
        match self.state {
            InstanceState::Alive => {}
            InstanceState::NotAliveDisposed => {
                self.disposed_generations = self.disposed_generations.saturating_add(1);
            }
            InstanceState::NotAliveNoWriters => {
                self.no_writers_generations = self.no_writers_generations.saturating_add(1);
            }
        }
        self.state = InstanceState::Alive;
        self.view = ViewState::New;
        if let Some(details) = self.details_if_made() {
            details.ended_at = None;
            details.purge_at = None;
        }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape { cell: cell(self.view, self.state), unread: self.unread as usize, total: self.samples.len() }
    }

    pub(super) const fn matches(&self, selector: &Selector) -> bool {
        selector.view_states & self.view as u8 != 0 && selector.instance_states & self.state as u8 != 0
    }

    /// Accounts for a sample that left `samples`.
    #[inline]
    pub(super) fn left(&mut self, sample: Departure, order: Order) {
        self.unread -= u32::from(!sample.read);
        if sample.valid {
            self.valid -= 1;
            if order.is_by_source() {
                self.order_after(sample.source_order);
            }
        } else {
            self.has_marker = false;
        }
    }

    /// Nothing older may enter the cache from now on.
    #[inline(never)]
    pub(super) fn order_after(&mut self, order: (Time, Guid)) {
        let details = self.details_mut();
        details.ordered_after = details.ordered_after.max(Some(order));
    }
}

impl Details {
    /// Those of an instance that has none of its own.
    const NONE: &Self = &Self::new();

    #[cold]
    #[inline(never)]
    fn make() -> Box<Self> {
        Box::new(Self::new())
    }

    const fn new() -> Self {
        Self {
            writers: 0,
            key: Payload::empty(),
            owner: None,
            filtered_until: None,
            ordered_after: None,
            deadline: None,
            deadline_armed: None,
            ended_at: None,
            purge_at: None,
            retired: 0,
        }
    }

    /// No deadline runs any more. Returns when its timer was to come up.
    pub(super) fn stop_deadline(&mut self) -> Option<Instant> {
        self.deadline = None;
        self.deadline_armed.take()
    }
}

impl OptionalIndex {
    pub(super) const NONE: Self = Self(u32::MAX);

    pub(super) const fn of(index: u32) -> Self {
        Self(index)
    }

    pub(super) const fn get(self) -> Option<u32> {
        if self.0 == Self::NONE.0 { None } else { Some(self.0) }
    }

    pub(super) const fn take(&mut self) -> Option<u32> {
        std::mem::replace(self, Self::NONE).get()
    }
}

impl Instances {
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Every id is below this.
    pub(super) fn slots(&self) -> InstanceId {
        self.slots.len() as InstanceId
    }

    pub(super) fn find(&self, handle: InstanceHandle) -> Option<InstanceId> {
        self.index.get(&handle).copied()
    }

    /// As [`Self::find`], where samples come one after the other: of the same instance as the last, or of the
    /// one that became known after that, as when a writer goes through its instances by turns.
    #[inline]
    pub(super) fn find_often(&mut self, handle: InstanceHandle) -> Option<InstanceId> {
        let expected = self.recent.wrapping_add(self.step);
        let id = if self.is_at(expected, handle) { expected } else { self.look_up(handle)? };
        self.step = InstanceId::from(id != self.recent);
        self.recent = id;
        Some(id)
    }

    /// The handle of the instance with this key, or that it will have.
    pub(super) fn identify(&self, key: Key) -> Identity {
        self.long_keys.identify(key, |handle| self.look_up(handle))
    }

    /// The instance with this key.
    pub(super) fn find_key(&self, key: Key) -> Option<InstanceHandle> {
        let handle = self.identify(key).handle;
        self.find(handle).map(|_| handle)
    }

    /// As [`Self::identify`] of a long key that has arrived: an instance may have been known by its hash
    /// alone.
    #[inline(never)]
    pub(super) fn recognise(&mut self, key: Key) -> InstanceHandle {
        let identity = self.identify(key);
        if let Some(id) = self.look_up(identity.handle) {
            self.long_keys.note(id, &identity);
        }
        identity.handle
    }

    /// The instance that a key hash means, without the key; see [`LongKeys::by_hash`].
    pub(super) fn by_hash(
        &self,
        hash: InstanceHandle,
        is_meant: impl Fn(InstanceId) -> bool,
    ) -> Option<InstanceHandle> {
        self.long_keys.by_hash(hash, |handle| self.find(handle), is_meant)
    }

    #[inline]
    fn is_at(&self, id: InstanceId, handle: InstanceHandle) -> bool {
        self.get(id).is_some_and(|instance| instance.handle == handle)
    }

    fn look_up(&self, handle: InstanceHandle) -> Option<InstanceId> {
        let guesses = [self.recent, self.recent.wrapping_add(1), 0];
        guesses.into_iter().find(|guess| self.is_at(*guess, handle)).or_else(|| self.find(handle))
    }

    #[inline]
    pub(super) fn get(&self, id: InstanceId) -> Option<&Instance> {
        self.slots.get(id as usize)?.as_ref()
    }

    /// For changes of anything the [`Shape`] covers, call [`Self::reshaped`] afterwards.
    #[inline]
    pub(super) fn get_mut(&mut self, id: InstanceId) -> Option<&mut Instance> {
        self.slots.get_mut(id as usize)?.as_mut()
    }

    pub(super) fn add(&mut self, handle: InstanceHandle, key: &Key) -> InstanceId {
        let instance = Some(Instance::new(handle));
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as InstanceId
            }
        };
        if let Some(slot) = self.slots.get_mut(id as usize) {
            *slot = instance;
        }
        self.index.insert(handle, id);
        self.long_keys.note(id, &Identity { handle, key: *key });
        id
    }

    /// Forgets an instance with all its samples, which are returned.
    pub(super) fn remove(&mut self, id: InstanceId) -> Option<Instance> {
        let mut instance = self.slots.get_mut(id as usize)?.take()?;
        let before = instance.shape();
        let samples = std::mem::replace(&mut instance.samples, Queue::new());
        let unread = std::mem::take(&mut instance.unread);
        self.tally.account(&instance, id, before);
        (instance.samples, instance.unread) = (samples, unread);
        self.index.remove(&instance.handle);
        self.long_keys.forget(id, instance.handle);
        self.free.push(id);
        self.forgotten += 1;
        Some(instance)
    }

    /// Whether many instances were forgotten, and there are far fewer than there were.
    pub(super) fn has_shrunk(&self) -> bool {
        self.forgotten >= FORGOTTEN_INSTANCES_MIN && self.index.len() < self.slots.len() / 4
    }

    /// Gives memory back after a flood.
    pub(super) fn trim(&mut self) {
        self.forgotten = 0;
        shrink::trim(&mut self.slots, &mut self.free);
        self.index.shrink_if_sparse();
        self.long_keys.trim(self.slots.len());
        self.tally.fresh.trim();
        self.tally.stale.trim();
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity().max(self.index.capacity())
    }

    /// Brings counters and sets up to date after instance `id` changed from `before`.
    #[inline(always)]
    pub(super) fn reshaped(&mut self, id: InstanceId, before: Shape) {
        if let Some(instance) = self.slots.get(id as usize).and_then(Option::as_ref) {
            self.tally.account(instance, id, before);
        }
    }

    /// Whether any sample has these states.
    pub(super) fn has_data(&self, sample_states: u8, view_states: u8, instance_states: u8) -> bool {
        VIEWS.into_iter().filter(|view| view_states & *view as u8 != 0).any(|view| {
            STATES.into_iter().filter(|state| instance_states & *state as u8 != 0).any(|state| {
                self.tally.counters.get(cell(view, state)).is_some_and(|[all, unread]| {
                    (sample_states & SampleState::Read as u8 != 0 && *all > *unread)
                        || (sample_states & SampleState::NotRead as u8 != 0 && *unread > 0)
                })
            })
        })
    }

    /// An instance with samples, all of which were read.
    pub(super) fn first_read(&self) -> Option<InstanceId> {
        self.tally.stale.following(Bound::Unbounded)
    }

    /// The first instance after `from` that may have samples for `selector`.
    #[inline(always)]
    pub(super) fn following(&self, from: Bound<InstanceHandle>, selector: &Selector) -> Option<InstanceId> {
        let Tally { fresh, stale, .. } = &self.tally;
        if stale.is_empty() || selector.sample_states & SampleState::Read as u8 == 0 {
            return fresh.following(from);
        }
        self.tally.following(from)
    }
}

impl Tally {
    #[inline(always)]
    fn account(&mut self, instance: &Instance, id: InstanceId, before: Shape) {
        let after = instance.shape();
        if before.cell == after.cell
            && let Some([all, unread]) = self.counters.get_mut(after.cell)
        {
            *all = *all + after.total - before.total;
            *unread = *unread + after.unread - before.unread;
            return self.sort(instance.handle, id, before, after);
        }
        if let Some([all, unread]) = self.counters.get_mut(before.cell) {
            *all -= before.total;
            *unread -= before.unread;
        }
        if let Some([all, unread]) = self.counters.get_mut(after.cell) {
            *all += after.total;
            *unread += after.unread;
        }
        self.sort(instance.handle, id, before, after);
    }

    /// The instance belongs to the set of what there is to read of it.
    #[inline(always)]
    fn sort(&mut self, handle: InstanceHandle, id: InstanceId, before: Shape, after: Shape) {
        let (was, is) = (before.reading(), after.reading());
        if was != is {
            if let Some(set) = self.set(was) {
                set.remove(handle);
            }
            if let Some(set) = self.set(is) {
                set.insert(handle, id);
            }
        }
    }

    #[cold]
    fn following(&self, from: Bound<InstanceHandle>) -> Option<InstanceId> {
        let first = match (self.fresh.entry_following(from), self.stale.entry_following(from)) {
            (Some(fresh), Some(stale)) => Some(fresh.min(stale)),
            (fresh, stale) => fresh.or(stale),
        };
        first.map(|(_, id)| id)
    }

    const fn set(&mut self, reading: Reading) -> Option<&mut HandleSet> {
        match reading {
            Reading::Nothing => None,
            Reading::Fresh => Some(&mut self.fresh),
            Reading::Stale => Some(&mut self.stale),
        }
    }
}

/// What there is to read of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Nothing,
    Fresh,
    Stale,
}

impl Shape {
    const fn reading(&self) -> Reading {
        match (self.total, self.unread) {
            (0, _) => Reading::Nothing,
            (_, 0) => Reading::Stale,
            _ => Reading::Fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::QosSet;
    use crate::reader::tests::Bench;

    #[test]
    fn the_next_sample_of_an_instance_that_is_alive_makes_no_details() {
        let mut bench = Bench::new(QosSet::reader().reliable().keep_last(1));
        bench.matched(1, QosSet::writer());
        bench.data(1, 1, 7, 1).unwrap();
        assert_eq!(bench.reader.cache.instances.get(0).unwrap().details().writers, 1);
        bench.reader.cache.instances.get_mut(0).unwrap().details = None;
        bench.data(1, 2, 7, 2).unwrap();
        bench.data(1, 3, 7, 3).unwrap();
        assert_eq!(bench.values(), [3]);
        assert!(bench.reader.cache.instances.get(0).unwrap().details.is_none());
    }

    #[test]
    fn an_instance_that_comes_back_to_life_needs_no_details() {
        let mut instance = Instance::new(InstanceHandle::NIL);
        instance.state = InstanceState::NotAliveDisposed;
        instance.revive();
        assert!(instance.is_alive() && instance.details.is_none());
        instance.details_mut().ended_at = Some(Instant(1));
        instance.state = InstanceState::NotAliveNoWriters;
        instance.revive();
        assert_eq!((instance.details().ended_at, instance.generations()), (None, 2));
    }
}
