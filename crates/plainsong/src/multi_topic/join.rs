//! The join itself: the last sample of every instance of every topic, and which of them go together.
//!
//! Topics are joined on members that are keys in both, so which instances go together never changes while
//! they live; a new sample only changes values.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use plainsong_proto::cdr::{DdsType, FieldPath, FieldValue};
use plainsong_proto::filter::Filter;
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::sample_info::{InstanceState, SampleInfo, SampleState, ViewState};

use super::Constituent;
use crate::sample::Sample;

/// Instances of one topic at most.
pub const ROWS_MAX: usize = 65_536;
/// Combinations of instances at most, in all and by one sample.
pub const COMBINATIONS_MAX: usize = 65_536;
/// Samples not taken at most.
pub const SAMPLES_MAX: usize = 65_536;

/// Which member of which topic fills which member of the result.
#[derive(Debug)]
pub(super) struct Fill {
    pub(super) topic: usize,
    pub(super) from: FieldPath,
    pub(super) to: FieldPath,
}

/// How the topics are joined.
#[derive(Debug)]
pub(super) struct Plan {
    fills: Vec<Fill>,
    /// By topic: the key members by which its instances are looked up, for each way to do that.
    indexes: Vec<Vec<Vec<FieldPath>>>,
    /// By the topic that changed: the others, each after those it has keys in common with.
    ways: Vec<Vec<Step>>,
}

/// Looks instances of one topic up by values that topics before it have.
#[derive(Debug)]
struct Step {
    topic: usize,
    index: usize,
    /// For each member of the index: whose value, and where in it.
    on: Vec<(usize, FieldPath)>,
}

/// The value of a key member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Absent,
    Integer(i128),
    /// By its octets: equal are those that are written alike.
    Float(u64),
    Boolean(bool),
    Character(char),
    Text(String),
}

/// A sample whose type is not known here.
pub(super) trait Row: Send {
    fn value(&self, path: &FieldPath) -> Option<FieldValue<'_>>;
}

impl<T: DdsType> Row for T {
    fn value(&self, path: &FieldPath) -> Option<FieldValue<'_>> {
        path.value(self)
    }
}

pub(super) type AnyRow = Box<dyn Row>;

/// One instance of each topic.
type Combination = Box<[InstanceHandle]>;

/// The instances of one topic.
#[derive(Default)]
struct Table {
    rows: BTreeMap<InstanceHandle, AnyRow>,
    indexes: Vec<BTreeMap<Vec<Value>, BTreeSet<InstanceHandle>>>,
}

/// A combination that passed WHERE: an instance of the result.
struct Joined {
    handle: InstanceHandle,
    state: InstanceState,
    view: ViewState,
    /// Its samples.
    held: VecDeque<u64>,
}

struct Held<T> {
    combination: Combination,
    data: Option<T>,
    info: SampleInfo,
}

/// What is known, and what was not taken.
pub(super) struct Join<T> {
    plan: Arc<Plan>,
    tables: Vec<Table>,
    joined: BTreeMap<Combination, Joined>,
    samples: BTreeMap<u64, Held<T>>,
    /// KEEP_LAST depth of the result.
    depth: usize,
    next_sample: u64,
    /// Of the samples before this the application was told.
    told: u64,
    next_handle: u64,
    dropped: u64,
}

impl Plan {
    pub(super) fn new(fills: Vec<Fill>, topics: &[Constituent]) -> Result<Self, String> {
        let mut plan = Self { fills, indexes: vec![Vec::new(); topics.len()], ways: Vec::new() };
        for start in 0..topics.len() {
            let mut bound = vec![start];
            let mut way = Vec::new();
            while bound.len() < topics.len() {
                let next = (0..topics.len()).filter(|topic| !bound.contains(topic)).find_map(|topic| {
                    let common = common_keys(topics, &bound, topic);
                    (!common.is_empty()).then_some((topic, common))
                });
                let Some((topic, common)) = next else { return Err(unconnected(topics, &bound)) };
                way.push(plan.step(topics, topic, &common)?);
                bound.push(topic);
            }
            plan.ways.push(way);
        }
        Ok(plan)
    }

    fn step(
        &mut self,
        topics: &[Constituent],
        topic: usize,
        common: &[(&str, usize)],
    ) -> Result<Step, String> {
        let mut own = Vec::new();
        let mut on = Vec::new();
        for (name, other) in common {
            let path = |at: usize| {
                let topic = topics.get(at).ok_or_else(String::new)?;
                FieldPath::find_in(topic.fields, name)
                    .map_err(|reason| format!("topics cannot be joined on '{name}': {reason}"))
            };
            let ((own_path, own_kind), (other_path, other_kind)) = (path(topic)?, path(*other)?);
            if own_kind != other_kind {
                let (own, other) = (own_kind.name(), other_kind.name());
                return Err(format!(
                    "topics cannot be joined on '{name}': it is {own} here and {other} there"
                ));
            }
            own.push(own_path);
            on.push((*other, other_path));
        }
        let indexes = self.indexes.get_mut(topic).ok_or_else(String::new)?;
        let index = indexes.iter().position(|known| *known == own).unwrap_or(indexes.len());
        if index == indexes.len() {
            indexes.push(own);
        }
        Ok(Step { topic, index, on })
    }
}

/// The key members of `topic` that topics in `bound` have too, and which of them.
fn common_keys(topics: &[Constituent], bound: &[usize], topic: usize) -> Vec<(&'static str, usize)> {
    let keys_of = |at: usize| topics.get(at).into_iter().flat_map(Constituent::keys);
    let common = keys_of(topic).filter_map(|name| {
        let other = bound.iter().find(|other| keys_of(**other).any(|key| key == name))?;
        Some((name, *other))
    });
    common.collect()
}

fn unconnected(topics: &[Constituent], bound: &[usize]) -> String {
    let names = |joined: bool| -> String {
        let chosen = (0..).zip(topics).filter(|(at, _)| bound.contains(at) == joined);
        chosen.map(|(_, it)| format!("'{}'", it.name)).collect::<Vec<_>>().join(", ")
    };
    format!("{} and {} have no key member of the same name to be joined on", names(true), names(false))
}

impl From<Option<FieldValue<'_>>> for Value {
    fn from(value: Option<FieldValue<'_>>) -> Self {
        match value {
            None => Self::Absent,
            Some(FieldValue::Integer(value)) => Self::Integer(value),
            Some(FieldValue::Float(value)) => Self::Float(value.to_bits()),
            Some(FieldValue::Boolean(value)) => Self::Boolean(value),
            Some(FieldValue::Character(value)) => Self::Character(value),
            Some(FieldValue::Text(value)) => Self::Text(value.to_owned()),
        }
    }
}

fn values(row: &dyn Row, paths: &[FieldPath]) -> Vec<Value> {
    paths.iter().map(|path| row.value(path).into()).collect()
}

impl<T: DdsType> Join<T> {
    pub(super) fn new(plan: Arc<Plan>, depth: usize) -> Self {
        let table = |indexes: &Vec<_>| Table {
            rows: BTreeMap::new(),
            indexes: indexes.iter().map(|_| BTreeMap::new()).collect(),
        };
        Self {
            tables: plan.indexes.iter().map(table).collect(),
            plan,
            joined: BTreeMap::new(),
            samples: BTreeMap::new(),
            depth,
            next_sample: 0,
            told: 0,
            next_handle: 0,
            dropped: 0,
        }
    }

    /// What went beyond a limit.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether samples came to be since this was last asked that nobody has taken.
    pub(super) fn has_news(&mut self) -> bool {
        let told = std::mem::replace(&mut self.told, self.next_sample);
        self.samples.range(told..).next().is_some()
    }

    /// A new sample of an instance of a topic.
    pub(super) fn update(
        &mut self,
        topic: usize,
        row: AnyRow,
        info: &SampleInfo,
        filter: Option<&Filter<T>>,
    ) {
        let handle = info.instance_handle;
        let (Some(table), Some(indexes)) = (self.tables.get_mut(topic), self.plan.indexes.get(topic)) else {
            return;
        };
        if !table.rows.contains_key(&handle) {
            if table.rows.len() >= ROWS_MAX {
                self.dropped += 1;
                return;
            }
            for (index, paths) in table.indexes.iter_mut().zip(indexes) {
                index.entry(values(&*row, paths)).or_default().insert(handle);
            }
        }
        table.rows.insert(handle, row);
        for combination in self.combinations(topic, handle) {
            let data = self.result(&combination);
            if filter.is_none_or(|filter| filter.passes(&data)) {
                self.show(combination, Some(data), InstanceState::Alive, info);
            }
        }
    }

    /// An instance of a topic is no more: neither are the combinations with it.
    pub(super) fn remove(&mut self, topic: usize, state: InstanceState, info: &SampleInfo) {
        let handle = info.instance_handle;
        for combination in self.combinations(topic, handle) {
            if self.joined.get(&combination).is_some_and(|it| it.state == InstanceState::Alive) {
                self.show(combination, None, state, info);
            }
        }
        let (Some(table), Some(indexes)) = (self.tables.get_mut(topic), self.plan.indexes.get(topic)) else {
            return;
        };
        let Some(row) = table.rows.remove(&handle) else { return };
        for (index, paths) in table.indexes.iter_mut().zip(indexes) {
            let key = values(&*row, paths);
            if let Some(handles) = index.get_mut(&key) {
                handles.remove(&handle);
                if handles.is_empty() {
                    index.remove(&key);
                }
            }
        }
    }

    /// The combinations that an instance of a topic is in.
    fn combinations(&mut self, topic: usize, handle: InstanceHandle) -> Vec<Combination> {
        let mut start = vec![InstanceHandle::NIL; self.tables.len()].into_boxed_slice();
        let (Some(way), Some(place)) = (self.plan.ways.get(topic), start.get_mut(topic)) else {
            return Vec::new();
        };
        *place = handle;
        let mut found = vec![start];
        let mut dropped = 0;
        for step in way {
            let mut longer: Vec<Combination> = Vec::new();
            for combination in &found {
                let value = |(other, path): &(usize, FieldPath)| -> Value {
                    let row =
                        combination.get(*other).and_then(|handle| self.tables.get(*other)?.rows.get(handle));
                    row.and_then(|row| row.value(path)).into()
                };
                let key: Vec<Value> = step.on.iter().map(value).collect();
                let index = self.tables.get(step.topic).and_then(|table| table.indexes.get(step.index));
                for handle in index.and_then(|index| index.get(&key)).into_iter().flatten() {
                    if longer.len() >= COMBINATIONS_MAX {
                        dropped += 1;
                        continue;
                    }
                    let mut next = combination.clone();
                    if let Some(place) = next.get_mut(step.topic) {
                        *place = *handle;
                    }
                    longer.push(next);
                }
            }
            found = longer;
        }
        self.dropped += dropped;
        found
    }

    fn result(&self, combination: &Combination) -> T {
        let mut data = T::initial();
        for Fill { topic, from, to } in &self.plan.fills {
            let row = combination.get(*topic).and_then(|handle| self.tables.get(*topic)?.rows.get(handle));
            if let Some(value) = row.and_then(|row| row.value(from)) {
                // A value beyond the range of the member leaves it as it is initially.
                to.set(&mut data, value);
            }
        }
        data
    }

    /// Adds a sample of a combination, or a marker that it is no more.
    fn show(&mut self, combination: Combination, data: Option<T>, state: InstanceState, cause: &SampleInfo) {
        if self.samples.len() >= SAMPLES_MAX {
            self.drop_oldest();
        }
        if !self.joined.contains_key(&combination) && self.joined.len() >= COMBINATIONS_MAX {
            self.dropped += 1;
            return;
        }
        let next_handle = &mut self.next_handle;
        let joined = self.joined.entry(combination.clone()).or_insert_with(|| {
            *next_handle += 1;
            let mut octets = [0; 16];
            octets[8..].copy_from_slice(&next_handle.to_be_bytes());
            Joined { handle: InstanceHandle(octets), state, view: ViewState::New, held: VecDeque::new() }
        });
        if joined.state != InstanceState::Alive && state == InstanceState::Alive {
            joined.view = ViewState::New;
        }
        joined.state = state;
        joined.held.push_back(self.next_sample);
        let info = SampleInfo {
            sample_state: SampleState::NotRead,
            view_state: joined.view,
            instance_state: state,
            disposed_generation_count: 0,
            no_writers_generation_count: 0,
            sample_rank: 0,
            generation_rank: 0,
            absolute_generation_rank: 0,
            instance_handle: joined.handle,
            valid_data: data.is_some(),
            ..*cause
        };
        let replaced = (joined.held.len() > self.depth).then(|| joined.held.pop_front()).flatten();
        self.samples.insert(self.next_sample, Held { combination, data, info });
        self.next_sample += 1;
        if let Some(replaced) = replaced {
            self.samples.remove(&replaced);
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((number, held)) = self.samples.pop_first() {
            self.dropped += 1;
            self.released(&held.combination, number);
        }
    }

    fn released(&mut self, combination: &Combination, number: u64) {
        let Some(joined) = self.joined.get_mut(combination) else { return };
        joined.held.retain(|held| *held != number);
        if joined.held.is_empty() && joined.state != InstanceState::Alive {
            self.joined.remove(combination);
        }
    }

    /// Removes and returns samples in the order they came to be.
    pub(super) fn take(&mut self, samples_max: usize) -> Vec<Sample<T>> {
        let mut taken = Vec::new();
        while taken.len() < samples_max
            && let Some((number, held)) = self.samples.pop_first()
        {
            let info = self.seen(&held);
            self.released(&held.combination, number);
            taken.push(Sample { data: held.data, info });
        }
        ranked(taken)
    }

    /// Returns samples in the order they came to be, and marks them read.
    pub(super) fn read(&mut self, samples_max: usize) -> Vec<Sample<T>>
    where
        T: Clone,
    {
        let numbers: Vec<u64> = self.samples.keys().take(samples_max).copied().collect();
        let mut samples = Vec::new();
        for number in numbers {
            let Some(mut held) = self.samples.remove(&number) else { continue };
            samples.push(Sample { data: held.data.clone(), info: self.seen(&held) });
            held.info.sample_state = SampleState::Read;
            self.samples.insert(number, held);
        }
        ranked(samples)
    }

    /// Facts of the moment about a sample that is returned.
    fn seen(&mut self, held: &Held<T>) -> SampleInfo {
        let Some(joined) = self.joined.get_mut(&held.combination) else { return held.info };
        let view_state = std::mem::replace(&mut joined.view, ViewState::NotNew);
        SampleInfo { view_state, instance_state: joined.state, ..held.info }
    }
}

/// Fills in how many samples of the same instance follow.
fn ranked<T>(mut samples: Vec<Sample<T>>) -> Vec<Sample<T>> {
    let mut follow: BTreeMap<InstanceHandle, i32> = BTreeMap::new();
    for sample in samples.iter_mut().rev() {
        let count = follow.entry(sample.info.instance_handle).or_insert(0);
        sample.info.sample_rank = *count;
        *count = count.saturating_add(1);
    }
    samples
}

#[cfg(test)]
mod tests {
    use plainsong_derive::DdsType;
    use plainsong_proto::time::Time;

    use super::*;

    #[derive(DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(crate = "plainsong_proto")]
    struct Number {
        value: u32,
    }

    /// Every instance of each topic goes with every one of the others.
    fn product(topics: usize) -> Join<Number> {
        let others = |start| (0..topics).filter(move |topic| *topic != start);
        let step = |topic| Step { topic, index: 0, on: Vec::new() };
        let ways = (0..topics).map(|start| others(start).map(step).collect()).collect();
        let indexes = (0..topics).map(|_| vec![Vec::new()]).collect();
        Join::new(Arc::new(Plan { fills: Vec::new(), indexes, ways }), usize::MAX)
    }

    fn info(instance: u32) -> SampleInfo {
        let mut octets = [0; 16];
        octets[..4].copy_from_slice(&instance.to_be_bytes());
        SampleInfo {
            sample_state: SampleState::NotRead,
            view_state: ViewState::New,
            instance_state: InstanceState::Alive,
            disposed_generation_count: 0,
            no_writers_generation_count: 0,
            sample_rank: 0,
            generation_rank: 0,
            absolute_generation_rank: 0,
            source_timestamp: Time(0),
            reception_timestamp: Time(0),
            instance_handle: InstanceHandle(octets),
            publication_handle: InstanceHandle::NIL,
            valid_data: true,
            agreed: Default::default(),
        }
    }

    fn update(join: &mut Join<Number>, topic: usize, instance: u32) {
        join.update(topic, Box::new(Number { value: instance }), &info(instance), None);
    }

    #[test]
    fn instances_and_samples_are_bounded_and_what_goes_beyond_is_counted() {
        let mut join = product(1);
        let most = u32::try_from(ROWS_MAX).expect("a count");
        (0..most + 3).for_each(|instance| update(&mut join, 0, instance));
        assert_eq!((join.dropped(), join.samples.len()), (3, SAMPLES_MAX));
        update(&mut join, 0, 0);
        assert_eq!((join.dropped(), join.samples.len()), (4, SAMPLES_MAX), "the oldest gave way");
        assert_eq!(join.take(usize::MAX).len(), SAMPLES_MAX);
        assert!(join.samples.is_empty());
    }

    #[test]
    fn combinations_are_bounded_and_forgotten_when_they_end() {
        let mut join = product(2);
        (0..300).for_each(|instance| update(&mut join, 0, instance));
        (0..300).for_each(|instance| update(&mut join, 1, instance));
        assert_eq!(join.joined.len(), COMBINATIONS_MAX);
        assert!(join.dropped() >= 90_000 - COMBINATIONS_MAX as u64);
        join.take(usize::MAX);
        (0..300).for_each(|instance| join.remove(0, InstanceState::NotAliveDisposed, &info(instance)));
        let ends = join.take(usize::MAX);
        assert_eq!(ends.len(), COMBINATIONS_MAX);
        assert!(ends.iter().all(|end| end.data.is_none()));
        assert!(join.joined.is_empty() && join.tables.iter().any(|table| table.rows.is_empty()));
    }

    #[test]
    fn the_oldest_sample_of_a_combination_gives_way_to_its_newest() {
        let mut join = Join::new(Arc::clone(&product(1).plan), 1);
        for instance in [1, 2, 1] {
            update(&mut join, 0, instance);
        }
        let handles: Vec<_> = join.take(usize::MAX).iter().map(|it| it.info.instance_handle).collect();
        assert_eq!(handles.len(), 2);
        assert_ne!(handles[0], handles[1]);
    }
}
