//! `read` and `take` (DCPS 1.4 §2.2.2.5.3): which samples, in which order, with which facts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::CachedSample;
use super::cache::Cache;
use super::instances::{Instance, InstanceId, Sample};
use crate::filter::PayloadFilter;
use crate::guid::Guid;
use crate::instance::InstanceHandle;
use crate::payload::Payload;
use crate::sample_info::{InstanceSelector, SampleInfo, SampleState, Selector, ViewState};
use crate::seq::SequenceNumber;
use crate::time::{Now, Time};

/// Whether the samples stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Take,
}

/// Which samples: those of a selector, and of a query if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<'a> {
    pub(super) selector: &'a Selector,
    /// Samples without data have nothing that it could look at.
    pub(super) query: Option<&'a PayloadFilter>,
}

impl<'a> Choice<'a> {
    pub(super) const fn of(selector: &'a Selector) -> Self {
        Self { selector, query: None }
    }

    fn wants(&self, sample: &Sample) -> bool {
        sample.matches(self.selector)
            && self.query.is_none_or(|query| sample.valid && query.passes(sample.payload.as_slice()))
    }
}

impl Cache {
    /// Whether there is a sample that `choice` asks for.
    pub(super) fn has_any(&self, choice: &Choice<'_>) -> bool {
        let mut from = Bound::Unbounded;
        while let Some((handle, id)) = self.instances.following(from, choice.selector) {
            let wanted = self.instances.get(id).is_some_and(|instance| {
                instance.matches(choice.selector)
                    && instance.samples.iter().any(|sample| choice.wants(sample))
            });
            if wanted {
                return true;
            }
            from = Bound::Excluded(handle);
        }
        false
    }

    /// Appends the samples that `choice` asks for, grouped by instance in the order of handles.
    pub(super) fn access(
        &mut self,
        now: Now,
        access: Access,
        choice: &Choice<'_>,
        samples: &mut Vec<CachedSample>,
    ) {
        self.expire(now.mono);
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
                if let Some(id) = self.instances.find(handle) {
                    self.gather(id, access, choice, end, samples);
                }
                return;
            }
            InstanceSelector::NextAfter(handle) if handle != InstanceHandle::NIL => Bound::Excluded(handle),
            _ => Bound::Unbounded,
        };
        let one_only = choice.selector.instance != InstanceSelector::All;
        while let Some((handle, id)) = self.instances.following(from, choice.selector) {
            let found = self.gather(id, access, choice, end, samples);
            if samples.len() >= end || (found && one_only) {
                return;
            }
            from = Bound::Excluded(handle);
        }
    }

    /// Ordered access of TOPIC or GROUP scope: the samples of all instances as their writers wrote them.
    fn access_in_order(
        &mut self,
        access: Access,
        choice: &Choice<'_>,
        end: usize,
        samples: &mut Vec<CachedSample>,
    ) {
        let start = samples.len();
        let wanted = self.order.iter().filter_map(|(place, id)| {
            let instance = self.instances.get(*id).filter(|it| it.matches(choice.selector))?;
            let at = instance.position(place.2)?;
            instance.samples.get(at).is_some_and(|sample| choice.wants(sample)).then_some((place.2, *id))
        });
        let wanted: Vec<_> = wanted.take(end - start).collect();
        for (sample_id, id) in &wanted {
            let Some(instance) = self.instances.get_mut(*id) else { continue };
            let Some(at) = instance.position(*sample_id) else { continue };
            let before = instance.shape();
            match access {
                Access::Read => read_at(instance, at, samples),
                Access::Take => {
                    let Some(sample) = instance.samples.remove(at) else { continue };
                    instance.left(sample.departure(), self.policy.order);
                    let (info, key_only) = (info(instance, &sample), sample.key_only);
                    self.released(sample.departure());
                    samples.push(CachedSample { info, payload: sample.payload, key_only });
                }
            }
            self.instances.reshaped(*id, before);
        }
        let instances: BTreeSet<_> = wanted.into_iter().map(|(_, id)| id).collect();
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
        self.order.iter().filter_map(|(place, id)| {
            let instance = self.instances.get(*id).filter(|it| it.matches(selector))?;
            let sample = instance.samples.get(instance.position(place.2)?)?;
            let order = (sample.source_timestamp, sample.writer, sample.group_number);
            sample.matches(selector).then_some(order)
        })
    }

    /// Appends the matching samples of one instance, up to a total of `end`. Returns whether any.
    fn gather(
        &mut self,
        id: InstanceId,
        access: Access,
        choice: &Choice<'_>,
        end: usize,
        samples: &mut Vec<CachedSample>,
    ) -> bool {
        let start = samples.len();
        let Some(instance) = self.instances.get_mut(id).filter(|it| it.matches(choice.selector)) else {
            return false;
        };
        let before = instance.shape();
        match access {
            Access::Read => read(instance, choice, end, samples),
            Access::Take => {
                while samples.len() < end && self.take_front(id, choice, samples) {}
                self.take_scattered(id, choice, end, samples);
            }
        }
        if samples.len() == start {
            return false;
        }
        let Some(instance) = self.instances.get_mut(id) else { return false };
        instance.view = ViewState::NotNew;
        let generations = instance.generations();
        self.instances.reshaped(id, before);
        rank(samples.get_mut(start..).unwrap_or_default(), generations);
        if access == Access::Take {
            self.instances.take_back_queue(id);
            self.retire_if_idle(id);
        }
        true
    }

    /// Takes the first sample if it matches.
    fn take_front(&mut self, id: InstanceId, choice: &Choice<'_>, samples: &mut Vec<CachedSample>) -> bool {
        let Some(instance) = self.instances.get_mut(id) else { return false };
        let Some(sample) = instance.samples.front().filter(|sample| choice.wants(sample)) else {
            return false;
        };
        let (info, key_only, departure) = (info(instance, sample), sample.key_only, sample.departure());
        let Some(sample) = instance.samples.front_mut() else { return false };
        // The payload alone moves: the whole sample would be twice as much.
        samples.push(CachedSample { info, payload: std::mem::take(&mut sample.payload), key_only });
        drop(instance.samples.pop_front());
        instance.left(departure, self.policy.order);
        self.released(departure);
        true
    }

    /// Takes matching samples behind ones that do not match, in one pass.
    fn take_scattered(
        &mut self,
        id: InstanceId,
        choice: &Choice<'_>,
        end: usize,
        samples: &mut Vec<CachedSample>,
    ) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        if samples.len() >= end || !instance.samples.iter().any(|sample| choice.wants(sample)) {
            return;
        }
        let mut held = std::mem::take(&mut instance.samples);
        for _ in 0..held.len() {
            let Some(sample) = held.pop_front() else { break };
            let Some(instance) = self.instances.get_mut(id) else { break };
            if samples.len() >= end || !choice.wants(&sample) {
                held.push_back(sample);
                continue;
            }
            instance.left(sample.departure(), self.policy.order);
            let (info, key_only) = (info(instance, &sample), sample.key_only);
            self.released(sample.departure());
            samples.push(CachedSample { info, payload: sample.payload, key_only });
        }
        if let Some(instance) = self.instances.get_mut(id) {
            instance.samples = held;
        }
    }
}

fn read(instance: &mut Instance, choice: &Choice<'_>, end: usize, samples: &mut Vec<CachedSample>) {
    for at in 0..instance.samples.len() {
        if samples.len() >= end {
            return;
        }
        if instance.samples.get(at).is_some_and(|sample| choice.wants(sample)) {
            read_at(instance, at, samples);
        }
    }
}

/// Appends one sample and marks it read.
fn read_at(instance: &mut Instance, at: usize, samples: &mut Vec<CachedSample>) {
    let Some(sample) = instance.samples.get(at) else { return };
    let info = info(instance, sample);
    samples.push(CachedSample { info, payload: Payload::clone(&sample.payload), key_only: sample.key_only });
    if let Some(sample) = instance.samples.get_mut(at).filter(|sample| !sample.read) {
        sample.read = true;
        instance.unread -= 1;
    }
}

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
    }
}

/// Fills in the ranks of one instance's samples (DCPS 1.4 §2.2.2.5.1.9 to .11); `generation_rank` comes
/// in as the sample's own generation.
fn rank(samples: &mut [CachedSample], newest_in_reader: i32) {
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
    let mut newest = BTreeMap::new();
    for CachedSample { info, .. } in &*samples {
        let newest = newest.entry(info.instance_handle).or_insert(info.generation_rank);
        *newest = info.generation_rank.max(*newest);
    }
    let mut follow = BTreeMap::new();
    for CachedSample { info, .. } in samples.iter_mut().rev() {
        let handle = info.instance_handle;
        let (generation, count) = (info.generation_rank, follow.entry(handle).or_insert(0i32));
        info.sample_rank = *count;
        *count = count.saturating_add(1);
        info.generation_rank = newest.get(&handle).map_or(0, |newest| newest - generation);
        info.absolute_generation_rank = newest_in_reader.get(&handle).map_or(0, |it| it - generation);
    }
}
