//! The instances of a reader: states, samples, and the sets that make every look-up short.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;

use super::ownership::WriterId;
use crate::guid::Guid;
use crate::instance::InstanceHandle;
use crate::payload::Payload;
use crate::sample_info::{InstanceState, SampleState, Selector, ViewState};
use crate::seq::SequenceNumber;
use crate::time::{Instant, Time};

/// Index of an instance in its reader.
pub(super) type InstanceId = u32;

/// What names an instance to the application: some payload that contains its key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceKey {
    /// Serialized data or key with its encapsulation header; empty when only the key hash is known.
    pub payload: Payload,
    /// The payload is a serialized key, not data.
    pub key_only: bool,
}

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
    pub(super) key_only: bool,
    pub(super) payload: Payload,
    /// End of LIFESPAN.
    pub(super) expires: Option<Instant>,
    /// Its number among the changes of all writers of its publisher.
    pub(super) group_number: Option<SequenceNumber>,
}

/// One instance.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) handle: InstanceHandle,
    pub(super) state: InstanceState,
    pub(super) view: ViewState,
    pub(super) disposed_generations: i32,
    pub(super) no_writers_generations: i32,
    pub(super) samples: VecDeque<Sample>,
    /// Samples with data.
    pub(super) valid: usize,
    pub(super) unread: usize,
    pub(super) has_marker: bool,
    /// Writers that keep it alive.
    pub(super) writers: u32,
    /// The writer known to be among them: it wrote last.
    pub(super) recent_writer: Option<WriterId>,
    /// EXCLUSIVE ownership.
    pub(super) owner: Option<WriterId>,
    /// BY_SOURCE_TIMESTAMP: nothing older than what left the cache may enter it.
    pub(super) ordered_after: Option<(Time, Guid)>,
    pub(super) deadline: Option<Instant>,
    pub(super) deadline_armed: Option<Instant>,
    /// TIME_BASED_FILTER: nothing before this time.
    pub(super) filtered_until: Option<Instant>,
    /// The last sample filtered out: shown after all when the writer falls silent.
    pub(super) held: Option<Box<Sample>>,
    /// When it ceased to be alive; `None` while it is.
    pub(super) ended_at: Option<Instant>,
    pub(super) purge_at: Option<Instant>,
    /// Names this instance's place in the queue of forgettable ones.
    pub(super) retired: u64,
    pub(super) key: InstanceKey,
}

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
    /// The instance asked for last: samples of one instance after the other need no look-up.
    recent: Option<(InstanceHandle, InstanceId)>,
    tally: Tally,
}

/// Where the samples are.
#[derive(Debug, Default)]
struct Tally {
    /// Instances with samples.
    occupied: BTreeMap<InstanceHandle, InstanceId>,
    /// Instances with samples that were not read.
    unread: BTreeMap<InstanceHandle, InstanceId>,
    /// Samples by view and instance state: read, not read.
    counters: [[usize; 2]; CELLS],
}

const CELLS: usize = 6;
const VIEWS: [ViewState; 2] = [ViewState::New, ViewState::NotNew];
const STATES: [InstanceState; 3] =
    [InstanceState::Alive, InstanceState::NotAliveDisposed, InstanceState::NotAliveNoWriters];

const fn cell(view: ViewState, state: InstanceState) -> usize {
    (view as usize - 1) * 3 + state as usize / 2
}

impl Sample {
    /// Its place under DESTINATION_ORDER BY_SOURCE_TIMESTAMP.
    pub(super) const fn source_order(&self) -> (Time, Guid) {
        (self.source_timestamp, self.writer)
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
            state: InstanceState::Alive,
            view: ViewState::New,
            disposed_generations: 0,
            no_writers_generations: 0,
            samples: VecDeque::new(),
            valid: 0,
            unread: 0,
            has_marker: false,
            writers: 0,
            recent_writer: None,
            owner: None,
            ordered_after: None,
            deadline: None,
            deadline_armed: None,
            filtered_until: None,
            held: None,
            ended_at: None,
            purge_at: None,
            retired: 0,
            key: InstanceKey::default(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.state == InstanceState::Alive
    }

    pub(super) const fn generations(&self) -> i32 {
        self.disposed_generations.saturating_add(self.no_writers_generations)
    }

    /// A sample with data arrived: the instance is alive (DCPS 1.4 §2.2.2.5.1.3 and .8).
    pub(super) fn revive(&mut self) {
        match self.state {
            InstanceState::Alive => return,
            InstanceState::NotAliveDisposed => {
                self.disposed_generations = self.disposed_generations.saturating_add(1);
            }
            InstanceState::NotAliveNoWriters => {
                self.no_writers_generations = self.no_writers_generations.saturating_add(1);
            }
        }
        self.state = InstanceState::Alive;
        self.view = ViewState::New;
        self.ended_at = None;
        self.purge_at = None;
    }

    pub(super) fn shape(&self) -> Shape {
        Shape { cell: cell(self.view, self.state), unread: self.unread, total: self.samples.len() }
    }

    pub(super) const fn matches(&self, selector: &Selector) -> bool {
        selector.view_states & self.view as u8 != 0 && selector.instance_states & self.state as u8 != 0
    }

    /// Where the sample with this id is.
    pub(super) fn position(&self, sample: u64) -> Option<usize> {
        // Under BY_RECEPTION_TIMESTAMP they are in the order of their ids.
        match self.samples.binary_search_by_key(&sample, |other| other.id) {
            Ok(at) => Some(at),
            Err(_) => self.samples.iter().position(|other| other.id == sample),
        }
    }

    /// Accounts for a sample that left `samples`.
    pub(super) fn left(&mut self, sample: &Sample) {
        self.unread -= usize::from(!sample.read);
        if sample.valid {
            self.valid -= 1;
            let order = Some(sample.source_order());
            self.ordered_after = self.ordered_after.max(order);
        } else {
            self.has_marker = false;
        }
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

    /// As [`Self::find`], for what will be asked for again.
    pub(super) fn find_often(&mut self, handle: InstanceHandle) -> Option<InstanceId> {
        if let Some((recent, id)) = self.recent
            && recent == handle
        {
            return Some(id);
        }
        let id = self.find(handle)?;
        self.recent = Some((handle, id));
        Some(id)
    }

    pub(super) fn get(&self, id: InstanceId) -> Option<&Instance> {
        self.slots.get(id as usize)?.as_ref()
    }

    /// For changes of anything the [`Shape`] covers, call [`Self::reshaped`] afterwards.
    pub(super) fn get_mut(&mut self, id: InstanceId) -> Option<&mut Instance> {
        self.slots.get_mut(id as usize)?.as_mut()
    }

    pub(super) fn add(&mut self, handle: InstanceHandle) -> InstanceId {
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
        id
    }

    /// Forgets an instance with all its samples, which are returned.
    pub(super) fn remove(&mut self, id: InstanceId) -> Option<Instance> {
        let mut instance = self.slots.get_mut(id as usize)?.take()?;
        let before = instance.shape();
        let samples = std::mem::take(&mut instance.samples);
        instance.unread = 0;
        self.tally.account(&instance, id, before);
        instance.samples = samples;
        self.index.remove(&instance.handle);
        self.recent = self.recent.filter(|(_, recent)| *recent != id);
        self.free.push(id);
        Some(instance)
    }

    /// Brings counters and sets up to date after instance `id` changed from `before`.
    pub(super) fn reshaped(&mut self, id: InstanceId, before: Shape) {
        if let Some(instance) = self.slots.get(id as usize).and_then(Option::as_ref) {
            self.tally.account(instance, id, before);
        }
    }

    /// Whether any sample has these states.
    pub(super) fn has_data(&self, sample_states: u8, view_states: u8, instance_states: u8) -> bool {
        VIEWS.into_iter().filter(|view| view_states & *view as u8 != 0).any(|view| {
            STATES.into_iter().filter(|state| instance_states & *state as u8 != 0).any(|state| {
                self.tally.counters.get(cell(view, state)).is_some_and(|[read, unread]| {
                    (sample_states & SampleState::Read as u8 != 0 && *read > 0)
                        || (sample_states & SampleState::NotRead as u8 != 0 && *unread > 0)
                })
            })
        })
    }

    /// The first instance after `from` that may have samples for `selector`.
    pub(super) fn following(
        &self,
        from: Bound<InstanceHandle>,
        selector: &Selector,
    ) -> Option<(InstanceHandle, InstanceId)> {
        let set = if selector.sample_states & SampleState::Read as u8 == 0 {
            &self.tally.unread
        } else {
            &self.tally.occupied
        };
        set.range((from, Bound::Unbounded)).next().map(|(handle, id)| (*handle, *id))
    }
}

impl Tally {
    fn account(&mut self, instance: &Instance, id: InstanceId, before: Shape) {
        let after = instance.shape();
        if let Some([read, unread]) = self.counters.get_mut(before.cell) {
            *read -= before.total - before.unread;
            *unread -= before.unread;
        }
        if let Some([read, unread]) = self.counters.get_mut(after.cell) {
            *read += after.total - after.unread;
            *unread += after.unread;
        }
        let sets = [
            (&mut self.occupied, before.total, after.total),
            (&mut self.unread, before.unread, after.unread),
        ];
        for (set, was, is) in sets {
            match (was > 0, is > 0) {
                (false, true) => drop(set.insert(instance.handle, id)),
                (true, false) => drop(set.remove(&instance.handle)),
                _ => {}
            }
        }
    }
}
