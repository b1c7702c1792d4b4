//! `read` and `take` (DCPS 1.4 §2.2.2.5.3): which samples, in which order, with which facts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Deref, DerefMut};

use super::cache::{Cache, leave};
use super::instances::{Instance, InstanceId, Sample};
use crate::filter::PayloadFilter;
use crate::guid::Guid;
use crate::instance::InstanceHandle;
use crate::payload::Payload;
use crate::sample_info::{InstanceSelector, SampleInfo, SampleState, Selector, ViewState};
use crate::seq::SequenceNumber;
use crate::time::{Now, Time};
use crate::tuning::reader::ENTRIES_KEPT_MAX;

/// One sample as returned by [`super::Reader::read`] and [`super::Reader::take`].
#[derive(Clone, Debug, PartialEq)]
pub struct CachedSample {
    /// Facts about it.
    pub info: SampleInfo,
    /// No other sample of the reader has this number.
    pub id: u64,
    /// With valid data the serialized data; otherwise the serialized key, or nothing when only the key hash
    /// is known.
    pub payload: Payload,
}

/// Samples as returned together. What it had before [`Self::clear`] is overwritten where it is.
#[derive(Debug, Default)]
pub struct CachedSamples {
    entries: Vec<CachedSample>,
    len: usize,
}

impl CachedSamples {
    /// No samples.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), len: 0 }
    }

    /// Forgets the samples, keeps the memory: of more than come together in the steady state, only of so
    /// many.
    pub fn clear(&mut self) {
        self.iter_mut().enumerate().for_each(|(index, sample)| sample.payload.vacate(index));
        self.len = 0;
        if self.entries.len() > ENTRIES_KEPT_MAX {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.entries.truncate(ENTRIES_KEPT_MAX);
        self.entries.shrink_to_fit();
    }

    /// The samples alone.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<CachedSample> {
        self.entries.truncate(self.len);
        self.entries
    }

    /// One more, of which only the payload has to be filled in. What is told of it is written where it stays:
    /// values that wait for their place would wait on the stack.
    #[inline(always)]
    fn add(&mut self, instance: &Instance, sample: &Sample) -> Option<&mut Payload> {
        if self.len == self.entries.len() {
            self.grow(instance, sample);
        }
        let entry = self.entries.get_mut(self.len)?;
        (entry.info, entry.id) = (info(instance, sample), sample.id);
        self.len += 1;
        Some(&mut entry.payload)
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    #[cold]
    fn grow(&mut self, instance: &Instance, sample: &Sample) {
        let (info, payload) = (info(instance, sample), Payload::empty());
        self.entries.push(CachedSample { info, id: sample.id, payload });
    }
}

impl Deref for CachedSamples {
    type Target = [CachedSample];

    fn deref(&self) -> &[CachedSample] {
        self.entries.get(..self.len).unwrap_or(&[])
    }
}

impl DerefMut for CachedSamples {
    fn deref_mut(&mut self) -> &mut [CachedSample] {
        self.entries.get_mut(..self.len).unwrap_or(&mut [])
    }
}

/// Whether the samples stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// They stay, and are marked read.
    Read,
    /// They leave the reader.
    Take,
}

/// What to return, and whether it stays.
#[derive(Clone, Copy, Debug)]
pub struct Fetch<'a> {
    /// Whether it stays.
    pub access: Access,
    /// Which samples.
    pub selector: &'a Selector,
    /// Of those only what it lets pass: samples with data.
    pub query: Option<&'a PayloadFilter>,
}

/// Which samples: those of a selector, and of a query if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<'a> {
    pub(super) selector: &'a Selector,
    pub(super) content: Option<Content<'a>>,
}

/// What is asked of a sample beside its states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'a> {
    /// Samples without data have nothing that it could look at.
    pub(super) query: Option<&'a PayloadFilter>,
    /// These were returned already.
    pub(super) kept: Option<&'a BTreeMap<u64, InstanceHandle>>,
}

impl<'a> Choice<'a> {
    pub(super) const fn of(selector: &'a Selector) -> Self {
        Self { selector, content: None }
    }

    pub(super) fn queried(selector: &'a Selector, query: Option<&'a PayloadFilter>) -> Self {
        Self { selector, content: query.map(|query| Content { query: Some(query), kept: None }) }
    }

    fn wants(&self, sample: &Sample) -> bool {
        sample.matches(self.selector) && self.content.is_none_or(|content| content.wants(sample))
    }
}

impl Content<'_> {
    fn wants(&self, sample: &Sample) -> bool {
        self.kept.is_none_or(|kept| !kept.contains_key(&sample.id))
            && self.query.is_none_or(|query| sample.valid && query.passes(sample.payload.as_slice()))
    }
}

impl Cache {
    /// Whether there is a sample that `choice` asks for.
    pub(super) fn has_any(&self, choice: &Choice<'_>) -> bool {
        let mut from = Bound::Unbounded;
        while let Some(id) = self.instances.following(from, choice.selector) {
            let Some(instance) = self.instances.get(id) else { break };
            let mut samples = self.samples.iter(instance.samples);
            if instance.matches(choice.selector) && samples.any(|(_, sample)| choice.wants(sample)) {
                return true;
            }
            from = Bound::Excluded(instance.handle);
        }
        false
    }

    /// Appends the samples that `choice` asks for, grouped by instance in the order of handles.
    pub(super) fn access(
        &mut self,
        now: Now,
        access: Access,
        choice: &Choice<'_>,
        samples: &mut CachedSamples,
    ) {
        self.expire(now.mono);
        if access == Access::Take && self.samples.note_take() {
            self.trim();
        }
        let end = samples.len().saturating_add(choice.selector.samples_max);
        if samples.len() >= end {
            return;
        }
        if self.is_interleaved() && choice.selector.instance == InstanceSelector::All {
            self.access_in_order(access, choice, end, samples);
            return;
        }
        let mut from = match choice.selector.instance {
            InstanceSelector::Exactly(handle) => {
                return self.access_one(handle, access, choice, end, samples);
            }
            InstanceSelector::NextAfter(handle) if handle != InstanceHandle::NIL => Bound::Excluded(handle),
            _ => Bound::Unbounded,
        };
        let one_only = choice.selector.instance != InstanceSelector::All;
        while let Some(id) = self.instances.following(from, choice.selector) {
            let found = self.gather(id, access, choice, end, samples);
            if samples.len() >= end || (found && one_only) {
                return;
            }
            match self.instances.get(id) {
                Some(left) if !found || !left.samples.is_empty() => from = Bound::Excluded(left.handle),
                // Without samples it is no more among those that follow.
                _ if found => {}
                _ => break,
            }
        }
    }

    #[inline(never)]
    fn access_one(
        &mut self,
        handle: InstanceHandle,
        access: Access,
        choice: &Choice<'_>,
        end: usize,
        samples: &mut CachedSamples,
    ) {
        if let Some(id) = self.instances.find(handle) {
            self.gather(id, access, choice, end, samples);
        }
    }

    /// Ordered access of TOPIC or GROUP scope: the samples of all instances as their writers wrote them.
    fn access_in_order(
        &mut self,
        access: Access,
        choice: &Choice<'_>,
        end: usize,
        samples: &mut CachedSamples,
    ) {
        let start = samples.len();
        let wanted = self.ledger.order.values().filter(|(id, at)| {
            self.instances.get(*id).is_some_and(|instance| instance.matches(choice.selector))
                && self.samples.get(*at).is_some_and(|sample| choice.wants(sample))
        });
        let wanted: Vec<_> = wanted.copied().take(end - start).collect();
        for (id, at) in &wanted {
            let Some(instance) = self.instances.get_mut(*id) else { continue };
            let before = instance.shape();
            let Some(sample) = self.samples.get_mut(*at) else { continue };
            let Some(place) = samples.add(instance, sample) else { break };
            match access {
                Access::Read => mark_read(instance, sample, place),
                Access::Take => {
                    leave(&mut self.samples, &mut self.ledger, &self.policy, instance, *at, Some(place));
                }
            }
            self.instances.reshaped(*id, before);
        }
        let instances: BTreeSet<_> = wanted.into_iter().map(|(id, _)| id).collect();
        let mut newest = BTreeMap::new();
        for id in instances {
            let Some(instance) = self.instances.get_mut(id) else { continue };
            let before = instance.shape();
            instance.view = ViewState::NotNew;
            newest.insert(instance.handle, instance.generations());
            self.instances.reshaped(id, before);
            if access == Access::Take {
                self.retire_if_idle(id);
            }
        }
        rank_interleaved(samples.get_mut(start..).unwrap_or_default(), &newest);
    }

    /// Of the samples that `selector` asks for, in the order to return: when and by whom each was
    /// written, and its number among the changes of the publisher.
    pub(super) fn group_order<'a>(
        &'a self,
        selector: &'a Selector,
    ) -> impl Iterator<Item = (Time, Guid, Option<SequenceNumber>)> + 'a {
        self.ledger.order.values().filter_map(|(id, at)| {
            self.instances.get(*id).filter(|it| it.matches(selector))?;
            let sample = self.samples.get(*at)?;
            let order = (sample.source_timestamp, sample.writer, sample.group_number);
            sample.matches(selector).then_some(order)
        })
    }

    /// Appends the matching samples of one instance, up to a total of `end`. Returns whether any. There may
    /// be many instances of one sample each.
    #[inline(always)]
    fn gather(
        &mut self,
        id: InstanceId,
        access: Access,
        choice: &Choice<'_>,
        end: usize,
        samples: &mut CachedSamples,
    ) -> bool {
        let start = samples.len();
        let Some(instance) = self.instances.get_mut(id).filter(|it| it.matches(choice.selector)) else {
            return false;
        };
        let before = instance.shape();
        let mut next = instance.samples.first();
        while let Some(at) = next.filter(|_| samples.len() < end) {
            next = self.samples.after(at);
            let Some(sample) = self.samples.get_mut(at).filter(|sample| choice.wants(sample)) else {
                continue;
            };
            let Some(place) = samples.add(instance, sample) else { break };
            match access {
                Access::Read => mark_read(instance, sample, place),
                Access::Take => {
                    leave(&mut self.samples, &mut self.ledger, &self.policy, instance, at, Some(place));
                }
            }
        }
        if samples.len() == start {
            return false;
        }
        instance.view = ViewState::NotNew;
        let (generations, is_alive) = (instance.generations(), instance.is_alive());
        self.instances.reshaped(id, before);
        rank(samples.get_mut(start..).unwrap_or_default(), generations);
        if access == Access::Take && !is_alive {
            self.retire_if_idle(id);
        }
        true
    }
}

/// Copies what stays, and marks it read.
fn mark_read(instance: &mut Instance, sample: &mut Sample, place: &mut Payload) {
    sample.payload.copy_over(place);
    instance.unread -= u32::from(!std::mem::replace(&mut sample.read, true));
}

#[inline]
fn info(instance: &Instance, sample: &Sample) -> SampleInfo {
    SampleInfo {
        sample_state: if sample.read { SampleState::Read } else { SampleState::NotRead },
        view_state: instance.view,
        instance_state: instance.state,
        disposed_generation_count: sample.disposed_generation,
        no_writers_generation_count: sample.no_writers_generation,
        sample_rank: 0,
        generation_rank: sample.generations(),
        absolute_generation_rank: 0,
        source_timestamp: sample.source_timestamp,
        reception_timestamp: sample.reception_timestamp,
        instance_handle: instance.handle,
        publication_handle: sample.writer.into(),
        valid_data: sample.valid,
        agreed: sample.agreed,
    }
}

/// Fills in the ranks of one instance's samples (DCPS 1.4 §2.2.2.5.1.9 to .11); `generation_rank` comes
/// in as the sample's own generation.
#[inline(always)]
fn rank(samples: &mut [CachedSample], newest_in_reader: i32) {
    if let [CachedSample { info, .. }] = samples {
        info.absolute_generation_rank = newest_in_reader - std::mem::take(&mut info.generation_rank);
        return;
    }
    rank_many(samples, newest_in_reader);
}

fn rank_many(samples: &mut [CachedSample], newest_in_reader: i32) {
    let Some(newest_in_collection) = samples.iter().map(|sample| sample.info.generation_rank).max() else {
        return;
    };
    let count = samples.len();
    for (at, sample) in samples.iter_mut().enumerate() {
        let generation = sample.info.generation_rank;
        sample.info.sample_rank = i32::try_from(count - 1 - at).unwrap_or(i32::MAX);
        sample.info.generation_rank = newest_in_collection - generation;
        sample.info.absolute_generation_rank = newest_in_reader - generation;
    }
}

/// As [`rank`], for samples of several instances in one order; `newest_in_reader` is by instance.
fn rank_interleaved(samples: &mut [CachedSample], newest_in_reader: &BTreeMap<InstanceHandle, i32>) {
    let mut infos: Vec<_> = samples.iter_mut().map(|sample| &mut sample.info).collect();
    for info in &mut infos {
        let newest = newest_in_reader.get(&info.instance_handle);
        info.absolute_generation_rank = newest.map_or(0, |newest| newest - info.generation_rank);
    }
    rank_together(&mut infos);
}

/// Fills in the ranks that depend on what else is in a collection (DCPS 1.4 §2.2.2.5.1.9, .10).
pub fn rank_together(infos: &mut [&mut SampleInfo]) {
    let generation =
        |info: &SampleInfo| info.disposed_generation_count.saturating_add(info.no_writers_generation_count);
    let mut newest = BTreeMap::new();
    for info in &*infos {
        let generation = generation(info);
        let newest = newest.entry(info.instance_handle).or_insert(generation);
        *newest = generation.max(*newest);
    }
    let mut follow = BTreeMap::new();
    for info in infos.iter_mut().rev() {
        let handle = info.instance_handle;
        let count = follow.entry(handle).or_insert(0i32);
        info.sample_rank = *count;
        *count = count.saturating_add(1);
        info.generation_rank = newest.get(&handle).map_or(0, |newest| newest - generation(info));
    }
}
