//! The samples of one reader: instance states, HISTORY, RESOURCE_LIMITS, LIFESPAN, DEADLINE, ownership
//! and TIME_BASED_FILTER (DCPS 1.4 §2.2.2.5, §2.2.3). `read` and `take` are in `access`.

mod identity;
mod ledger;
mod retired;
mod room;

use std::collections::{BTreeSet, VecDeque};

use super::ReaderLimits;
use super::change::{Change, Incoming};
use super::destination_order::Order;
use super::instances::{Instance, InstanceId, Instances, OptionalIndex, Sample};
use super::lifecycle::Lifecycle;
use super::ownership::{Publications, WriterId};
use super::samples::{Samples, SlotId};
use super::undecodable::Undecodables;
use crate::filter::PayloadFilter;
use crate::guid::Guid;
use crate::instance::{Ending, InstanceHandle, Key, KeyFunction};
use crate::payload::Payload;
use crate::qos::{AccessScope, HistoryKind, Ownership, QosSet};
use crate::sample_info::{Agreed, InstanceState};
use crate::shrink::Freed;
use crate::stats::{DropReason, Latencies};
use crate::status::RejectReason;
use crate::time::{Duration, Instant, Now, Time};
use crate::tuning::reader::{DEADLINE_PERIOD_MIN, HELD_BACK_RETRY};
use crate::wire::StatusInfo;
use identity::Names;
use ledger::Ledger;
pub(super) use room::Room;

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// `read` and `take` have something new to return.
    Stored,
    /// Dealt with; nothing to see.
    Consumed,
    /// Dealt with by dropping it.
    Dropped(DropReason),
    /// No room until the application has read or taken something: the change is still the caller's.
    Refused(RejectReason, InstanceHandle),
    /// Dealt with by dropping it: there is no room, and reading would make none.
    Rejected(RejectReason, InstanceHandle),
    /// The application is looking at a stable set of samples: the change is still the caller's.
    Waits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Deadline,
    Purge,
    /// Shows the sample that TIME_BASED_FILTER holds back.
    Held,
    /// Notifies at once that many things were forgotten, and gives memory back.
    Freed,
}

/// The policies of the reader that act here, with the internal limits worked in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// KEEP_LAST depth, as far as the limits allow it.
    depth: Option<usize>,
    samples_max: usize,
    instances_max: usize,
    samples_per_instance_max: usize,
    pub(super) order: Order,
    exclusive: bool,
    /// Samples are returned in one order across instances.
    interleaved: bool,
    pub(super) deadline: Duration,
    separation: Duration,
    pub(super) lifecycle: Lifecycle,
}

/// The history of one reader.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) policy: Policy,
    limits: ReaderLimits,
    names: Names,
    filter: Option<PayloadFilter>,
    pub(super) instances: Instances,
    pub(super) samples: Samples,
    pub(super) ledger: Ledger,
    pub(super) publications: Publications,
    next_id: u64,
    pub(super) timers: BTreeSet<(Instant, InstanceId, Timer)>,
    /// Empty instances that are not alive, the first to forget in front.
    retired: VecDeque<(InstanceId, u64)>,
    /// Samples held back that found no room when their instance lost its writers, not reported yet.
    pub(super) displaced: u64,
    pub(super) undecodable: Undecodables,
    pub(super) freed: Freed,
    pub(super) counted: Counted,
}

/// The samples with data that a reader was given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) bytes: u64,
    pub(super) latencies: Latencies,
}

impl Policy {
    fn new(qos: &QosSet, limits: &ReaderLimits, is_verbatim: bool) -> Self {
        let bound = |value: i32, most: usize| usize::try_from(value).map_or(most, |value| value.min(most));
        let samples_max = bound(qos.resource_limits.max_samples, limits.samples_max);
        let samples_per_instance_max =
            bound(qos.resource_limits.max_samples_per_instance, limits.samples_max);
        Self {
            depth: match qos.history.kind {
                HistoryKind::KeepLast => Some(
                    usize::try_from(qos.history.depth)
                        .unwrap_or(1)
                        .min(samples_max)
                        .min(samples_per_instance_max)
                        .max(1),
                ),
                HistoryKind::KeepAll => None,
            },
            samples_max,
            instances_max: usize::try_from(qos.resource_limits.max_instances)
                .unwrap_or(limits.instances_unlimited_max)
                .min(limits.instances_max),
            samples_per_instance_max,
            order: Order::new(qos),
            exclusive: qos.ownership == Ownership::Exclusive && !is_verbatim,
            interleaved: qos.is_atomic()
                || qos.presentation.ordered_access && qos.presentation.access_scope >= AccessScope::Topic,
            deadline: qos.deadline.max(DEADLINE_PERIOD_MIN),
            separation: qos.time_based_filter,
            lifecycle: Lifecycle::new(qos),
        }
    }
}

impl Policy {
    /// TIME_BASED_FILTER.
    pub(super) fn is_filtered_by_time(&self) -> bool {
        !self.separation.is_infinite() && self.separation > Duration::ZERO
    }

    /// Samples of one instance beyond which one leaves or is refused.
    fn room(&self) -> usize {
        self.depth.unwrap_or(usize::MAX).min(self.samples_max).min(self.samples_per_instance_max)
    }
}

impl Cache {
    pub(super) fn room(&self) -> usize {
        self.policy.room()
    }

    pub(super) fn new(qos: &QosSet, limits: &ReaderLimits, keyed: bool, key: KeyFunction) -> Self {
        Self {
            policy: Policy::new(qos, limits, key.is_verbatim()),
            limits: limits.clone(),
            names: Names::new(key, keyed, limits.key_bytes_max),
            filter: None,
            instances: Instances::default(),
            samples: Samples::default(),
            ledger: Ledger::default(),
            publications: Publications::default(),
            next_id: 0,
            timers: BTreeSet::new(),
            retired: VecDeque::new(),
            displaced: 0,
            undecodable: Undecodables::default(),
            freed: Freed::default(),
            counted: Counted::default(),
        }
    }

    pub(super) fn set_qos(&mut self, now: Instant, qos: &QosSet) {
        let before =
            std::mem::replace(&mut self.policy, Policy::new(qos, &self.limits, self.names.is_verbatim()));
        let ids = 0..self.instances.slots();
        if self.policy.lifecycle != before.lifecycle {
            ids.clone().for_each(|id| self.plan_purge(id));
        }
        if self.policy.deadline != before.deadline {
            ids.for_each(|id| self.restart_deadline(now, id));
        }
    }

    pub(super) fn set_filter(&mut self, filter: Option<PayloadFilter>) {
        self.filter = filter;
    }

    /// Whether samples of different instances are returned as they were written.
    pub(super) const fn is_interleaved(&self) -> bool {
        self.policy.interleaved
    }

    /// Takes in one change of `writer`; its payload moves into the cache unless refused.
    pub(super) fn store(&mut self, now: Now, writer: WriterId, change: &mut Change<'_>) -> Outcome {
        let status = change.status;
        if status.filtered {
            return Outcome::Consumed;
        }
        let not_alive = status.disposed || status.unregistered;
        let octets = change.payload.as_slice();
        if !not_alive && (octets.is_empty() || change.key_only) {
            // The end of a coherent set carries neither data nor status (RTPS 2.5 §8.7.5); a key alone
            // registers an instance, which is nothing to read.
            return Outcome::Consumed;
        }
        if not_alive && self.names.is_verbatim() {
            return self.store_ending(now, writer, change);
        }
        let bytes = octets.len();
        let key = match self.key_of(change, octets) {
            Ok(key) => key,
            Err(Some(reason)) => return Outcome::Dropped(self.discard_arrived(writer, octets, reason)),
            Err(None) => return Outcome::Dropped(DropReason::Malformed),
        };
        let handle = if key.fingerprint.is_some() { self.instances.recognise(key) } else { key.hash };
        if not_alive {
            self.store_status(now, writer, change, handle, &key)
        } else {
            self.store_data(now, writer, change, bytes, handle, &key)
        }
    }

    #[inline(always)]
    fn store_data(
        &mut self,
        now: Now,
        writer: WriterId,
        change: &mut Change<'_>,
        bytes: usize,
        handle: InstanceHandle,
        key: &Key,
    ) -> Outcome {
        let Some(publication) = self.publications.get(writer) else {
            return Outcome::Dropped(DropReason::NotMatched);
        };
        let lifespan = change.lifespan.unwrap_or(publication.lifespan);
        let Ok(expires) = expires(now, change.source_timestamp, lifespan) else {
            return Outcome::Dropped(DropReason::Expired);
        };
        let known = self.instances.find_often(handle);
        let wanted = self.wants(change);
        let (mut filtered, mut held) = (false, 0);
        if let Some(id) = known {
            let Self { instances, publications, samples, policy, .. } = self;
            let Some(instance) = instances.get_mut(id) else { return Outcome::Consumed };
            if (wanted || policy.exclusive) && instance.recent_writer.get() != Some(writer) {
                // Of what is not wanted the writer need not tell, unless others would own the instance.
                publications.register(writer, id, instance);
            }
            if policy.exclusive && !publications.may_write(writer, instance.details().owner) {
                return Outcome::Dropped(DropReason::NotOwner);
            }
            let order = || Some((change.source_timestamp, publications.get(writer)?.guid));
            if policy.order.is_by_source()
                && order().is_some_and(|it| policy.order.is_too_old(samples, instance, it, policy.depth))
            {
                // Who may write owns the instance, also when the sample comes too late to be shown.
                self.own(writer, id);
                return Outcome::Dropped(DropReason::OutOfOrder);
            }
            filtered = policy.is_filtered_by_time()
                && instance.details().filtered_until.is_some_and(|until| now.mono < until);
            held = instance.valid as usize;
        }
        if !wanted {
            if let Some(id) = known {
                // What is not shown was written all the same: it keeps weaker writers out.
                self.own(writer, id);
            }
            return Outcome::Dropped(DropReason::ContentFilter);
        }
        let id = match self.find_place(writer, known, (held, bytes), handle, key) {
            Ok(id) => id,
            Err(outcome) => return outcome,
        };
        self.own(writer, id);
        let at = self.samples.claim();
        let places = self.samples.get_mut(at).zip(self.publications.get(writer));
        let Some((sample, publication)) = places else { return Outcome::Consumed };
        sample.id = self.next_id;
        // From where it stays: what was just copied in pieces cannot be read at once.
        sample.writer = publication.guid;
        sample.source_timestamp = change.source_timestamp;
        sample.reception_timestamp = change.reception_timestamp;
        sample.read = false;
        sample.valid = true;
        change.payload.hand_over(&mut sample.payload);
        sample.expires = expires;
        sample.group_number = change.group_number;
        sample.agreed = change.agreed;
        self.counted.bytes += bytes as u64;
        self.counted.latencies.add(change.reception_timestamp.since(change.source_timestamp));
        self.next_id += 1;
        if filtered {
            self.hold(id, at);
            return Outcome::Consumed;
        }
        let holds = self.instances.get(id).is_some_and(|instance| instance.held.get().is_some());
        if holds && !self.holds_newer(id, at) {
            self.drop_held(id);
        }
        self.insert(now, id, at);
        Outcome::Stored
    }

    /// Keeps a change that ends an instance as if it were data: the order of all changes is kept, and no
    /// newer one takes the place of an older one.
    #[cold]
    fn store_ending(&mut self, now: Now, writer: WriterId, change: &mut Change<'_>) -> Outcome {
        let StatusInfo { disposed, unregistered, .. } = change.status;
        let hash_only = change.payload.is_empty();
        if hash_only {
            let Some(hash) = change.key_hash else { return Outcome::Dropped(DropReason::Malformed) };
            change.payload = Incoming::Payload(Payload::from_vec(hash.0.to_vec()));
        }
        change.lifespan = Some(Duration::INFINITE);
        let handle = InstanceHandle::of_ending(Ending { disposed, unregistered, hash_only });
        let bytes = change.payload.len();
        self.store_data(now, writer, change, bytes, handle, &handle.into())
    }

    /// Whether what TIME_BASED_FILTER holds back comes after the sample in the slot `at`.
    fn holds_newer(&self, id: InstanceId, at: SlotId) -> bool {
        let held = self.instances.get(id).and_then(|instance| instance.held.get());
        held.and_then(|held| self.samples.get(held))
            .zip(self.samples.get(at))
            .is_some_and(|(held, sample)| self.policy.order.is_before(sample, held))
    }

    /// Whether a sample in the queue of the instance comes after the one in the slot `at`.
    fn shows_newer(&self, id: InstanceId, at: SlotId) -> bool {
        let Some(instance) = self.instances.get(id) else { return false };
        let newest = self.samples.backwards(instance.samples).find(|(_, sample)| sample.valid);
        newest
            .zip(self.samples.get(at))
            .is_some_and(|((_, newest), sample)| self.policy.order.is_before(sample, newest))
    }

    /// Holds back a sample that follows its predecessor too closely (TIME_BASED_FILTER). Only the last
    /// one is kept, for the case that no other follows (DCPS 1.4 §2.2.3.12): never one that comes before a
    /// sample shown, which may be taken before it would be its turn.
    #[cold]
    fn hold(&mut self, id: InstanceId, at: SlotId) {
        if self.holds_newer(id, at) || self.shows_newer(id, at) {
            return self.samples.free(at);
        }
        self.ledger.bytes += self.samples.get(at).map_or(0, |sample| sample.payload.len());
        let another = self.drop_held(id);
        let Some(instance) = self.instances.get_mut(id) else { return };
        instance.held = OptionalIndex::of(at);
        let release = instance.details().filtered_until.and_then(|until| until.after(self.policy.separation));
        if let Some(release) = release.filter(|_| !another) {
            self.timers.insert((release, id, Timer::Held));
        }
    }

    /// Takes what is held back out of its instance, with its slot, which is in no queue.
    fn take_held(&mut self, id: InstanceId) -> Option<SlotId> {
        let held = self.instances.get_mut(id)?.held.take()?;
        self.ledger.bytes -= self.samples.get(held).map_or(0, |held| held.payload.len());
        Some(held)
    }

    /// Whether something was held back.
    fn drop_held(&mut self, id: InstanceId) -> bool {
        let held = self.take_held(id);
        if let Some(held) = held {
            self.samples.free(held);
        }
        held.is_some()
    }

    /// Shows the sample held back, because nothing followed it. Returns whether there is one, and room.
    fn release_held(&mut self, now: Now, id: InstanceId) -> bool {
        let Some(at) = self.take_held(id) else { return false };
        let Some(held) = self.samples.get(at) else { return false };
        if held.expires.is_some_and(|expires| expires <= now.mono) {
            self.samples.free(at);
            return false;
        }
        let has_room = self.no_room(self.valid_in(id), held.payload.len()).is_none();
        if has_room {
            self.insert(now, id, at);
        } else {
            self.samples.free(at);
            self.displaced += 1;
        }
        has_room
    }

    /// Whether the content filter lets the data of `change` pass.
    fn wants(&self, change: &Change<'_>) -> bool {
        !change.unwanted && self.filter.as_ref().is_none_or(|filter| filter.passes(change.payload.as_slice()))
    }

    /// A new instance that `writer` keeps alive, if there is room for one more.
    #[cold]
    fn admit(&mut self, writer: WriterId, handle: InstanceHandle, key: &Key) -> Result<InstanceId, Outcome> {
        let share = self.limits.instances_per_writer_max;
        if self.publications.get(writer).is_some_and(|it| it.instances.len() >= share) {
            return Err(Outcome::Dropped(DropReason::ResourceLimit));
        }
        while self.instances.len() >= self.policy.instances_max {
            let full = Outcome::Rejected(RejectReason::InstancesLimit, handle);
            let (id, stamp) = self.retired.pop_front().ok_or(full)?;
            self.forget_retired(id, stamp);
        }
        let id = self.instances.add(handle, key);
        self.register(writer, id);
        Ok(id)
    }

    /// Puts the sample in the slot `at`, which is in no queue yet, among those of its instance.
    #[inline(always)]
    fn insert(&mut self, now: Now, id: InstanceId, at: SlotId) {
        let Self { instances, samples, ledger, policy, names, limits, .. } = self;
        let Some(instance) = instances.get_mut(id) else { return };
        let before = instance.shape();
        instance.revive();
        let Some(sample) = samples.get_mut(at) else { return };
        sample.disposed_generation = instance.disposed_generations;
        sample.no_writers_generation = instance.no_writers_generations;
        if !instance.is_named {
            names.name(instance, sample.payload.as_slice(), false);
        }
        ledger.entered(sample, (id, at), policy);
        if policy.order.is_by_source() {
            let previous =
                samples.get(at).and_then(|sample| policy.order.follows(samples, instance.samples, sample));
            samples.insert(&mut instance.samples, at, previous);
        } else {
            samples.push(&mut instance.samples, at);
        }
        instance.valid += 1;
        instance.unread += 1;
        if policy.is_filtered_by_time() {
            instance.details_mut().filtered_until = now.mono.after(policy.separation);
        }
        let valid = instance.valid as usize;
        if policy.depth.is_some_and(|depth| valid > depth || valid > 1 && ledger.is_over(policy, limits))
            && let Some(oldest) = samples.find(instance.samples, |sample| sample.valid)
        {
            leave(samples, ledger, policy, instance, oldest, None);
        }
        instances.reshaped(id, before);
        self.arm_deadline(now.mono, id);
    }

    /// DISPOSE, UNREGISTER, or both: then the instance is first disposed, and stays so, because a
    /// disposed instance without writers is still NOT_ALIVE_DISPOSED (DCPS 1.4 §2.2.2.5.1.3).
    fn store_status(
        &mut self,
        now: Now,
        writer: WriterId,
        change: &mut Change<'_>,
        mut handle: InstanceHandle,
        key: &Key,
    ) -> Outcome {
        if change.payload.is_empty() {
            let Some(meant) = self.meant_by_hash(writer, handle) else {
                return Outcome::Dropped(DropReason::AmbiguousKeyHash);
            };
            handle = meant;
        }
        let known = self.instances.find(handle);
        // Of instances whose samples were all filtered out the application never hears.
        if known.is_none() && (!change.status.disposed || self.filter.is_some()) {
            return Outcome::Consumed;
        }
        let id = match known.map_or_else(|| self.admit(writer, handle, key), Ok) {
            Ok(id) => id,
            Err(outcome) => return outcome,
        };
        if let Some(instance) = self.instances.get_mut(id)
            && !instance.is_named
        {
            self.names.name(instance, change.payload.as_slice(), change.key_only);
        }
        let mut outcome = Outcome::Consumed;
        if change.status.disposed {
            outcome = self.dispose(now, writer, change, id);
        }
        if change.status.unregistered && self.leave(now, writer, id, change.agreed) {
            outcome = Outcome::Stored;
        }
        self.retire_if_idle(id);
        outcome
    }

    fn dispose(&mut self, now: Now, writer: WriterId, change: &Change<'_>, id: InstanceId) -> Outcome {
        let (Some(instance), Some(publication)) = (self.instances.get(id), self.publications.get(writer))
        else {
            return Outcome::Dropped(DropReason::NotMatched);
        };
        if self.policy.exclusive && !self.publications.may_write(writer, instance.details().owner) {
            self.register(writer, id);
            return Outcome::Dropped(DropReason::NotOwner);
        }
        let order = (change.source_timestamp, publication.guid);
        if self.policy.order.is_dispose_too_old(&self.samples, instance, order) {
            self.register(writer, id);
            self.own(writer, id);
            return Outcome::Dropped(DropReason::OutOfOrder);
        }
        self.register(writer, id);
        self.own(writer, id);
        self.drop_held(id);
        let stamps = (change.source_timestamp, change.reception_timestamp, change.agreed);
        if self.end(now, id, InstanceState::NotAliveDisposed, publication_of(order), stamps) {
            if let Some(instance) = self.instances.get_mut(id) {
                instance.order_after(order);
            }
            Outcome::Stored
        } else {
            Outcome::Consumed
        }
    }

    /// Moves an instance to a state that is not alive, and leaves a marker for the application.
    fn end(
        &mut self,
        now: Now,
        id: InstanceId,
        state: InstanceState,
        writer: Guid,
        (source_timestamp, reception_timestamp, agreed): (Time, Time, Agreed),
    ) -> bool {
        let Self { instances, samples, ledger, policy, .. } = self;
        let Some(instance) = instances.get_mut(id).filter(|instance| instance.state != state) else {
            return false;
        };
        let before = instance.shape();
        instance.state = state;
        // A newer marker says all that an older one says.
        if instance.has_marker
            && let Some(older) = samples.find(instance.samples, |sample| !sample.valid)
        {
            leave(samples, ledger, policy, instance, older, None);
        }
        let at = samples.claim();
        let Some(marker) = samples.get_mut(at) else { return false };
        *marker = Sample {
            id: self.next_id,
            writer,
            source_timestamp,
            reception_timestamp,
            disposed_generation: instance.disposed_generations,
            no_writers_generation: instance.no_writers_generations,
            read: false,
            valid: false,
            payload: instance.key().clone(),
            expires: None,
            group_number: None,
            agreed,
        };
        ledger.entered(marker, (id, at), policy);
        samples.push(&mut instance.samples, at);
        instance.has_marker = true;
        instance.unread += 1;
        instance.details_mut().ended_at = Some(now.mono);
        self.next_id += 1;
        self.instances.reshaped(id, before);
        self.plan_purge(id);
        true
    }

    /// `writer` owns the instance, where ownership is exclusive.
    #[inline]
    fn own(&mut self, writer: WriterId, id: InstanceId) {
        if self.policy.exclusive {
            self.set_owner(writer, id);
        }
    }

    fn set_owner(&mut self, writer: WriterId, id: InstanceId) {
        if let Some(instance) = self.instances.get_mut(id) {
            instance.details_mut().owner = Some(writer);
        }
    }

    /// `writer` keeps the instance alive from now on.
    fn register(&mut self, writer: WriterId, id: InstanceId) {
        if let Some(instance) = self.instances.get_mut(id) {
            self.publications.register(writer, id, instance);
        }
    }

    /// `writer` does not write the instance any more. Returns whether that left it without writers.
    fn leave(&mut self, now: Now, writer: WriterId, id: InstanceId, agreed: Agreed) -> bool {
        let Some(publication) = self.publications.get_mut(writer) else { return false };
        let guid = publication.guid;
        if !publication.instances.remove(&id) {
            return false;
        }
        let Some(instance) = self.instances.get_mut(id) else { return false };
        if instance.recent_writer.get() == Some(writer) {
            instance.recent_writer = OptionalIndex::NONE;
        }
        let details = instance.details_mut();
        details.writers -= 1;
        if details.owner == Some(writer) {
            details.owner = self.publications.strongest_of(id);
        }
        if details.writers > 0 {
            return false;
        }
        // What is held back may have brought a disposed instance back to life.
        let shown = self.release_held(now, id);
        let is_alive = self.instances.get(id).is_some_and(Instance::is_alive);
        self.plan_purge_again(now, id);
        let stamps = (now.wall, now.wall, agreed);
        (is_alive && self.end(now, id, InstanceState::NotAliveNoWriters, guid, stamps)) || shown
    }

    /// `writer` is unmatched or not alive: it leaves its instances, as many as one call may take. Returns
    /// whether any changed.
    pub(super) fn writer_lost(&mut self, now: Now, writer: WriterId) -> bool {
        let mut changed = false;
        for _ in 0..self.limits.instances_left_per_call {
            let first = self.publications.get(writer).and_then(|it| it.instances.first().copied());
            let Some(id) = first else { break };
            changed |= self.leave(now, writer, id, Agreed::default());
            self.retire_if_idle(id);
        }
        changed
    }

    /// Whether there are instances that a writer has neither unregistered nor left.
    pub(super) fn has_instances(&self, writer: WriterId) -> bool {
        self.publications.get(writer).is_some_and(|publication| !publication.instances.is_empty())
    }

    /// Removes the samples whose lifespan has ended.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(first) = self.ledger.expiry.first_entry()
            && first.key().0 <= now
        {
            let (id, at) = first.remove();
            let Self { instances, samples, ledger, policy, .. } = self;
            let Some(instance) = instances.get_mut(id) else { continue };
            let before = instance.shape();
            leave(samples, ledger, policy, instance, at, None);
            instances.reshaped(id, before);
            self.retire_if_idle(id);
        }
    }

    /// Carries out what is due; the instances that missed their deadline go to `missed`. Returns whether
    /// something became readable.
    pub(super) fn timeout(&mut self, now: Now, mut missed: impl FnMut(InstanceHandle)) -> bool {
        self.expire(now.mono);
        let mut shown = false;
        while let Some(&(at, id, timer)) = self.timers.first()
            && at <= now.mono
        {
            self.timers.pop_first();
            if timer == Timer::Freed {
                // Who has taken everything may take nothing any more.
                self.samples.forget_peak();
                self.trim();
                continue;
            }
            let Some(instance) = self.instances.get(id) else { continue };
            match timer {
                Timer::Purge if instance.details().purge_at == Some(at) => self.purge(id),
                Timer::Deadline if instance.details().deadline_armed == Some(at) => {
                    self.check_deadline(now.mono, id, &mut missed)
                }
                Timer::Held => shown |= self.check_held(now, id),
                Timer::Purge | Timer::Deadline | Timer::Freed => {}
            }
        }
        shown
    }

    /// The time came up at which a held sample might be shown.
    fn check_held(&mut self, now: Now, id: InstanceId) -> bool {
        let Some(instance) = self.instances.get(id) else { return false };
        let Some(held) = instance.held.get() else { return false };
        let bytes = self.samples.get(held).map_or(0, |held| held.payload.len());
        let release = instance.details().filtered_until.and_then(|until| until.after(self.policy.separation));
        let later = match release.filter(|release| *release > now.mono) {
            // It may take the application a while to make room.
            None if self.no_room(self.valid_in(id), bytes).is_some() => now.mono.after(HELD_BACK_RETRY),
            later => later,
        };
        match later {
            Some(later) => {
                self.timers.insert((later, id, Timer::Held));
                false
            }
            None => self.release_held(now, id),
        }
    }

    /// Whether some sample has a LIFESPAN that ends.
    pub(super) fn has_mortal(&self) -> bool {
        !self.ledger.expiry.is_empty()
    }

    /// When [`Self::timeout`] has something to do.
    #[inline]
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let expiry = self.ledger.expiry.first_key_value().map(|((at, _), _)| *at);
        let timer = self.timers.first().map(|(at, _, _)| *at);
        Instant::earliest([expiry, timer])
    }

    /// Samples with data held, and octets.
    pub(super) const fn held(&self) -> (usize, usize) {
        (self.ledger.valid_samples, self.ledger.bytes)
    }

    pub(super) fn instance_key(&self, handle: InstanceHandle) -> Option<Payload> {
        Some(self.instances.get(self.instances.find(handle)?)?.key().clone())
    }
}

/// A sample leaves its instance and the cache, its payload to `place`. Changes the shape of the instance.
#[inline(always)]
pub(super) fn leave(
    samples: &mut Samples,
    ledger: &mut Ledger,
    policy: &Policy,
    instance: &mut Instance,
    at: SlotId,
    place: Option<&mut Payload>,
) -> Option<()> {
    let sample = samples.get_mut(at)?;
    let departure = sample.departure();
    if let Some(place) = place {
        sample.payload.hand_over(place);
    }
    samples.remove(&mut instance.samples, at);
    instance.left(departure, policy.order);
    ledger.left(departure, policy);
    Some(())
}

/// When a LIFESPAN ends, on the monotonic clock; an error when it has ended.
fn expires(now: Now, since: Time, lifespan: Duration) -> Result<Option<Instant>, ()> {
    if lifespan.is_infinite() {
        return Ok(None);
    }
    let rest = since.plus(lifespan).since(now.wall);
    if rest <= Duration::ZERO { Err(()) } else { Ok(now.mono.after(rest)) }
}

const fn publication_of((_, guid): (Time, Guid)) -> Guid {
    guid
}
