//! The samples of one reader: instance states, HISTORY, RESOURCE_LIMITS, LIFESPAN, DEADLINE, ownership
//! and TIME_BASED_FILTER (DCPS 1.4 §2.2.2.5, §2.2.3). `read` and `take` are in `access`.

mod room;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::destination_order::{Order, Place};
use super::instances::{Departure, Instance, InstanceId, InstanceKey, Instances, Sample};
use super::lifecycle::Lifecycle;
use super::ownership::{Publications, WriterId};
use super::{Change, KeyFunction, ReaderLimits};
use crate::filter::PayloadFilter;
use crate::guid::Guid;
use crate::instance::InstanceHandle;
use crate::payload::Payload;
use crate::qos::{AccessScope, HistoryKind, Ownership, QosSet};
use crate::sample_info::InstanceState;
use crate::stats::DropReason;
use crate::status::RejectReason;
use crate::time::{Duration, Instant, Now, Time};
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
    /// No room: the change is still the caller's.
    Refused(RejectReason, InstanceHandle),
    /// The application is looking at a stable set of samples: the change is still the caller's.
    Waits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Deadline,
    Purge,
    /// Shows the sample that TIME_BASED_FILTER holds back.
    Held,
}

/// Shorter deadlines are watched this often: a period of zero must not keep the timer busy for ever.
const DEADLINE_MIN: Duration = Duration::from_millis(1);

/// A sample held back for which the cache has no room is tried again after this time.
const HELD_RETRY: Duration = Duration::from_millis(100);

/// The policies of the reader that act here, with the internal limits worked in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// KEEP_LAST depth.
    depth: Option<usize>,
    samples_max: usize,
    instances_max: usize,
    samples_per_instance_max: usize,
    pub(super) order: Order,
    exclusive: bool,
    /// Samples are returned in one order across instances.
    interleaved: bool,
    deadline: Duration,
    separation: Duration,
    pub(super) lifecycle: Lifecycle,
}

/// The history of one reader.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) policy: Policy,
    limits: ReaderLimits,
    keyed: bool,
    key: KeyFunction,
    filter: Option<PayloadFilter>,
    pub(super) instances: Instances,
    pub(super) publications: Publications,
    valid_samples: usize,
    bytes: usize,
    key_bytes: usize,
    next_id: u64,
    /// Ordered access of TOPIC or GROUP scope: the instance of every sample, in the order to return.
    pub(super) order: BTreeMap<Place, InstanceId>,
    expiry: BTreeMap<(Instant, u64), InstanceId>,
    pub(super) timers: BTreeSet<(Instant, InstanceId, Timer)>,
    /// Empty instances that are not alive, the first to forget in front.
    retired: VecDeque<(InstanceId, u64)>,
    /// Samples held back that found no room when their instance lost its writers, not reported yet.
    pub(super) crowded_out: u64,
}

impl Policy {
    fn new(qos: &QosSet, limits: &ReaderLimits) -> Self {
        let bound = |value: i32, most: usize| usize::try_from(value).map_or(most, |value| value.min(most));
        let samples_max = bound(qos.resource_limits.max_samples, limits.samples_max);
        Self {
            depth: match qos.history.kind {
                HistoryKind::KeepLast => Some(usize::try_from(qos.history.depth).unwrap_or(1).max(1)),
                HistoryKind::KeepAll => None,
            },
            samples_max,
            instances_max: bound(qos.resource_limits.max_instances, limits.instances_max),
            samples_per_instance_max: bound(qos.resource_limits.max_samples_per_instance, limits.samples_max),
            order: Order::new(qos),
            exclusive: qos.ownership == Ownership::Exclusive,
            interleaved: qos.presentation.ordered_access
                && qos.presentation.access_scope >= AccessScope::Topic,
            deadline: qos.deadline.max(DEADLINE_MIN),
            separation: qos.time_based_filter,
            lifecycle: Lifecycle::new(qos),
        }
    }
}

impl Policy {
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
            policy: Policy::new(qos, limits),
            limits: limits.clone(),
            keyed,
            key,
            filter: None,
            instances: Instances::default(),
            publications: Publications::default(),
            valid_samples: 0,
            bytes: 0,
            key_bytes: 0,
            next_id: 0,
            order: BTreeMap::new(),
            expiry: BTreeMap::new(),
            timers: BTreeSet::new(),
            retired: VecDeque::new(),
            crowded_out: 0,
        }
    }

    pub(super) fn set_qos(&mut self, now: Instant, qos: &QosSet) {
        let before = std::mem::replace(&mut self.policy, Policy::new(qos, &self.limits));
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
    pub(super) fn store(&mut self, now: Now, writer: WriterId, change: &mut Change) -> Outcome {
        let status = change.status;
        if status.filtered {
            return Outcome::Consumed;
        }
        let not_alive = status.disposed || status.unregistered;
        if !not_alive && (change.payload.is_empty() || change.key_only) {
            // The end of a coherent set carries neither data nor status (RTPS 2.5 §8.7.5); a key alone
            // registers an instance, which is nothing to read.
            return Outcome::Consumed;
        }
        let handle = match self.identify(change) {
            Ok(handle) => handle,
            Err(reason) => return Outcome::Dropped(reason),
        };
        if not_alive {
            self.store_status(now, writer, change, handle)
        } else {
            self.store_data(now, writer, change, handle)
        }
    }

    /// The instance of `change`: from the payload when there is one; peers compute key hashes
    /// differently, so a key hash decides only in the absence of a payload.
    fn identify(&self, change: &Change) -> Result<InstanceHandle, DropReason> {
        if !self.keyed {
            return Ok(InstanceHandle::NIL);
        }
        if change.payload.is_empty() {
            return change.key_hash.map(InstanceHandle::from).ok_or(DropReason::Malformed);
        }
        Ok((self.key)(change.payload.as_slice(), change.key_only)?)
    }

    fn store_data(
        &mut self,
        now: Now,
        writer: WriterId,
        change: &mut Change,
        handle: InstanceHandle,
    ) -> Outcome {
        let Ok(expires) = self.expires(now, writer, change) else {
            return Outcome::Dropped(DropReason::Expired);
        };
        let Some(guid) = self.publications.get(writer).map(|publication| publication.guid) else {
            return Outcome::Dropped(DropReason::NotMatched);
        };
        let order = (change.source_timestamp, guid);
        let known = self.instances.find_often(handle);
        let wanted = self.wants(change);
        let mut filtered = false;
        if let Some(id) = known {
            if wanted || self.policy.exclusive {
                // Of what is not wanted the writer need not tell, unless others would own the instance.
                self.register(writer, id);
            }
            let Some(instance) = self.instances.get(id) else { return Outcome::Consumed };
            if self.policy.exclusive && !self.publications.may_write(writer, instance.owner) {
                return Outcome::Dropped(DropReason::NotOwner);
            }
            if self.policy.order.is_too_old(instance, order, self.policy.depth) {
                // Who may write owns the instance, also when the sample comes too late to be shown.
                self.own(writer, id);
                return Outcome::Dropped(DropReason::OutOfOrder);
            }
            filtered = instance.filtered_until.is_some_and(|until| now.mono < until);
        }
        if !wanted {
            if let Some(id) = known {
                // What is not shown was written all the same: it keeps weaker writers out.
                self.own(writer, id);
            }
            return Outcome::Dropped(DropReason::ContentFilter);
        }
        if let Some(reason) = self.no_room(known, change.payload.len()) {
            return Outcome::Refused(reason, handle);
        }
        let Some(id) = known.or_else(|| self.admit(handle)) else {
            return Outcome::Refused(RejectReason::InstancesLimit, handle);
        };
        self.register(writer, id);
        self.own(writer, id);
        let sample = Sample {
            id: self.next_id,
            writer: guid,
            source_timestamp: change.source_timestamp,
            reception_timestamp: change.reception_timestamp,
            disposed_generation: 0,
            no_writers_generation: 0,
            read: false,
            valid: true,
            key_only: change.key_only,
            payload: std::mem::take(&mut change.payload),
            expires,
            group_number: change.group_number,
        };
        self.next_id += 1;
        if filtered {
            self.hold(id, sample);
            return Outcome::Consumed;
        }
        let holds = self.instances.get(id).is_some_and(|instance| instance.held.is_some());
        if holds && !self.holds_newer(id, &sample) {
            self.drop_held(id);
        }
        self.insert(now, id, sample);
        Outcome::Stored
    }

    /// Whether what TIME_BASED_FILTER holds back comes after this sample.
    fn holds_newer(&self, id: InstanceId, sample: &Sample) -> bool {
        let held = self.instances.get(id).and_then(|instance| instance.held.as_deref());
        held.is_some_and(|held| self.policy.order.is_before(sample, held))
    }

    /// Holds back a sample that follows its predecessor too closely (TIME_BASED_FILTER). Only the last
    /// one is kept, for the case that no other follows (DCPS 1.4 §2.2.3.12).
    fn hold(&mut self, id: InstanceId, sample: Sample) {
        if self.holds_newer(id, &sample) {
            return;
        }
        let Some(instance) = self.instances.get_mut(id) else { return };
        self.bytes += sample.payload.len();
        match &mut instance.held {
            Some(held) => {
                self.bytes -= held.payload.len();
                **held = sample;
            }
            None => {
                instance.held = Some(Box::new(sample));
                let release = instance.filtered_until.and_then(|until| until.after(self.policy.separation));
                if let Some(release) = release {
                    self.timers.insert((release, id, Timer::Held));
                }
            }
        }
    }

    fn drop_held(&mut self, id: InstanceId) -> Option<Sample> {
        let held = self.instances.get_mut(id)?.held.take()?;
        self.bytes -= held.payload.len();
        Some(*held)
    }

    /// Shows the sample held back, because nothing followed it. Returns whether there is one, and room.
    fn release_held(&mut self, now: Now, id: InstanceId) -> bool {
        let held = self.drop_held(id).filter(|held| held.expires.is_none_or(|expires| expires > now.mono));
        let Some(held) = held else { return false };
        let has_room = self.no_room(Some(id), held.payload.len()).is_none();
        if has_room {
            self.insert(now, id, held);
        } else {
            self.crowded_out += 1;
        }
        has_room
    }

    /// Whether the content filter lets the data of `change` pass.
    fn wants(&self, change: &Change) -> bool {
        !change.unwanted && self.filter.as_ref().is_none_or(|filter| filter.passes(change.payload.as_slice()))
    }

    /// When the sample's LIFESPAN ends, on the monotonic clock; an error when it has ended.
    fn expires(&self, now: Now, writer: WriterId, change: &Change) -> Result<Option<Instant>, ()> {
        let announced = self.publications.get(writer).map_or(Duration::INFINITE, |writer| writer.lifespan);
        let lifespan = change.lifespan.unwrap_or(announced);
        if lifespan.is_infinite() {
            return Ok(None);
        }
        let rest = change.source_timestamp.plus(lifespan).since(now.wall);
        if rest <= Duration::ZERO { Err(()) } else { Ok(now.mono.after(rest)) }
    }

    /// A new instance, if there is room for one more.
    fn admit(&mut self, handle: InstanceHandle) -> Option<InstanceId> {
        while self.instances.len() >= self.policy.instances_max {
            let (id, stamp) = self.retired.pop_front()?;
            self.forget_retired(id, stamp);
        }
        Some(self.instances.add(handle))
    }

    fn insert(&mut self, now: Now, id: InstanceId, mut sample: Sample) {
        let policy = self.policy;
        self.instances.lend_queue(id, policy.room());
        let Some(instance) = self.instances.get_mut(id) else { return };
        let before = instance.shape();
        instance.revive();
        sample.disposed_generation = instance.disposed_generations;
        sample.no_writers_generation = instance.no_writers_generations;
        remember_key(
            &mut self.key_bytes,
            self.limits.key_bytes_max,
            instance,
            &sample.payload,
            sample.key_only,
        );
        if let Some(expires) = sample.expires {
            self.expiry.insert((expires, sample.id), id);
        }
        self.bytes += sample.payload.len();
        self.valid_samples += 1;
        let position = policy.order.position(instance, &sample);
        if policy.interleaved {
            self.order.insert(policy.order.place(&sample), id);
        }
        if position == instance.samples.len() {
            instance.samples.push_back(sample);
        } else {
            instance.samples.insert(position, sample);
        }
        instance.valid += 1;
        instance.unread += 1;
        if !policy.separation.is_infinite() && policy.separation > Duration::ZERO {
            instance.filtered_until = now.mono.after(policy.separation);
        }
        let replaced = match policy.depth {
            Some(depth) if instance.valid > depth => instance.samples.iter().position(|sample| sample.valid),
            _ => None,
        };
        let replaced = replaced.and_then(|at| instance.samples.remove(at));
        if let Some(replaced) = &replaced {
            instance.left(replaced.departure(), policy.order);
        }
        self.instances.reshaped(id, before);
        if let Some(replaced) = replaced {
            self.released(replaced.departure());
        }
        self.arm_deadline(now.mono, id);
    }

    /// The instance was updated: its next deadline begins.
    fn arm_deadline(&mut self, now: Instant, id: InstanceId) {
        let deadline = now.after(self.policy.deadline);
        let (Some(instance), Some(deadline)) = (self.instances.get_mut(id), deadline) else { return };
        instance.deadline = Some(deadline);
        if instance.deadline_armed.is_none() {
            instance.deadline_armed = Some(deadline);
            self.timers.insert((deadline, id, Timer::Deadline));
        }
    }

    /// DEADLINE was changed: running deadlines begin anew with the new period.
    fn restart_deadline(&mut self, now: Instant, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(id).filter(|instance| instance.is_alive()) else {
            return;
        };
        instance.deadline = None;
        if let Some(at) = instance.deadline_armed.take() {
            self.timers.remove(&(at, id, Timer::Deadline));
        }
        self.arm_deadline(now, id);
    }

    /// Accounts for a sample that left the cache.
    pub(super) fn released(&mut self, sample: Departure) {
        if self.policy.interleaved {
            self.order.remove(&self.policy.order.place_of(sample.source_order, sample.id));
        }
        if let Some(expires) = sample.expires {
            self.expiry.remove(&(expires, sample.id));
        }
        if sample.valid {
            self.valid_samples -= 1;
            self.bytes -= sample.bytes;
        }
    }

    /// DISPOSE, UNREGISTER, or both: then the instance is first disposed, and stays so, because a
    /// disposed instance without writers is still NOT_ALIVE_DISPOSED (DCPS 1.4 §2.2.2.5.1.3).
    fn store_status(
        &mut self,
        now: Now,
        writer: WriterId,
        change: &mut Change,
        handle: InstanceHandle,
    ) -> Outcome {
        let known = self.instances.find(handle);
        // Of instances whose samples were all filtered out the application never hears.
        if known.is_none() && (!change.status.disposed || self.filter.is_some()) {
            return Outcome::Consumed;
        }
        let Some(id) = known.or_else(|| self.admit(handle)) else {
            return Outcome::Refused(RejectReason::InstancesLimit, handle);
        };
        if let Some(instance) = self.instances.get_mut(id)
            && !change.payload.is_empty()
        {
            let budget = self.limits.key_bytes_max;
            remember_key(&mut self.key_bytes, budget, instance, &change.payload, change.key_only);
        }
        let mut outcome = Outcome::Consumed;
        if change.status.disposed {
            outcome = self.dispose(now, writer, change, id);
        }
        if change.status.unregistered && self.leave(now, writer, id) {
            outcome = Outcome::Stored;
        }
        self.retire_if_idle(id);
        outcome
    }

    fn dispose(&mut self, now: Now, writer: WriterId, change: &Change, id: InstanceId) -> Outcome {
        let (Some(instance), Some(publication)) = (self.instances.get(id), self.publications.get(writer))
        else {
            return Outcome::Dropped(DropReason::NotMatched);
        };
        if self.policy.exclusive && !self.publications.may_write(writer, instance.owner) {
            self.register(writer, id);
            return Outcome::Dropped(DropReason::NotOwner);
        }
        let order = (change.source_timestamp, publication.guid);
        if self.policy.order.is_dispose_too_old(instance, order) {
            self.register(writer, id);
            self.own(writer, id);
            return Outcome::Dropped(DropReason::OutOfOrder);
        }
        self.register(writer, id);
        self.own(writer, id);
        self.drop_held(id);
        let stamps = (change.source_timestamp, change.reception_timestamp);
        if self.end(now, id, InstanceState::NotAliveDisposed, publication_of(order), stamps) {
            if let Some(instance) = self.instances.get_mut(id) {
                instance.ordered_after = instance.ordered_after.max(Some(order));
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
        (source_timestamp, reception_timestamp): (Time, Time),
    ) -> bool {
        let Some(instance) = self.instances.get_mut(id).filter(|instance| instance.state != state) else {
            return false;
        };
        let before = instance.shape();
        instance.state = state;
        // A newer marker says all that an older one says.
        if instance.has_marker
            && let Some(at) = instance.samples.iter().position(|sample| !sample.valid)
            && let Some(marker) = instance.samples.remove(at)
        {
            instance.left(marker.departure(), self.policy.order);
            if self.policy.interleaved {
                self.order.remove(&self.policy.order.place(&marker));
            }
        }
        let marker = Sample {
            id: self.next_id,
            writer,
            source_timestamp,
            reception_timestamp,
            disposed_generation: instance.disposed_generations,
            no_writers_generation: instance.no_writers_generations,
            read: false,
            valid: false,
            key_only: instance.key().is_some_and(|key| key.key_only),
            payload: instance.key().map_or_else(Payload::empty, |key| key.payload.clone()),
            expires: None,
            group_number: None,
        };
        if self.policy.interleaved {
            self.order.insert(self.policy.order.place(&marker), id);
        }
        instance.samples.push_back(marker);
        instance.has_marker = true;
        instance.unread += 1;
        instance.ended_at = Some(now.mono);
        self.next_id += 1;
        self.instances.reshaped(id, before);
        self.plan_purge(id);
        true
    }

    /// `writer` owns the instance, where ownership is exclusive.
    fn own(&mut self, writer: WriterId, id: InstanceId) {
        if self.policy.exclusive
            && let Some(instance) = self.instances.get_mut(id)
        {
            instance.owner = Some(writer);
        }
    }

    /// `writer` keeps the instance alive from now on.
    fn register(&mut self, writer: WriterId, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        if instance.recent_writer == Some(writer) {
            return;
        }
        instance.recent_writer = Some(writer);
        if self.publications.get_mut(writer).is_some_and(|publication| publication.instances.insert(id)) {
            instance.writers += 1;
        }
    }

    /// `writer` does not write the instance any more. Returns whether that left it without writers.
    fn leave(&mut self, now: Now, writer: WriterId, id: InstanceId) -> bool {
        let Some(publication) = self.publications.get_mut(writer) else { return false };
        let guid = publication.guid;
        if !publication.instances.remove(&id) {
            return false;
        }
        let Some(instance) = self.instances.get_mut(id) else { return false };
        instance.writers -= 1;
        instance.recent_writer = instance.recent_writer.filter(|recent| *recent != writer);
        if instance.owner == Some(writer) {
            instance.owner = self.publications.strongest_of(id);
        }
        if instance.writers > 0 {
            return false;
        }
        // What is held back may have brought a disposed instance back to life.
        let shown = self.release_held(now, id);
        let is_alive = self.instances.get(id).is_some_and(Instance::is_alive);
        self.plan_purge_again(now, id);
        let stamps = (now.wall, now.wall);
        (is_alive && self.end(now, id, InstanceState::NotAliveNoWriters, guid, stamps)) || shown
    }

    /// `writer` is unmatched or not alive: it leaves all its instances. Returns whether any changed.
    pub(super) fn writer_lost(&mut self, now: Now, writer: WriterId) -> bool {
        let mut changed = false;
        while let Some(id) = self.publications.get(writer).and_then(|it| it.instances.first().copied()) {
            changed |= self.leave(now, writer, id);
            self.retire_if_idle(id);
        }
        changed
    }

    /// Puts an empty instance that is not alive in the queue of those to forget. The queue keeps some:
    /// their handles and generation counts stay known for a while.
    pub(super) fn retire_if_idle(&mut self, id: InstanceId) {
        let idle = |instance: &&mut Instance| instance.samples.is_empty() && !instance.is_alive();
        let Some(instance) = self.instances.get_mut(id).filter(idle) else { return };
        self.next_id += 1;
        instance.retired = self.next_id;
        self.retired.push_back((id, self.next_id));
        while self.retired.len() > self.limits.retired_instances_max {
            let Some((id, stamp)) = self.retired.pop_front() else { break };
            self.forget_retired(id, stamp);
        }
    }

    fn forget_retired(&mut self, id: InstanceId, stamp: u64) {
        let idle = self.instances.get(id).is_some_and(|instance| {
            instance.retired == stamp && instance.samples.is_empty() && !instance.is_alive()
        });
        if idle {
            self.forget(id);
        }
    }

    pub(super) fn forget(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.remove(id) else { return };
        self.key_bytes -= instance.key().map_or(0, |key| key.payload.len());
        self.bytes -= instance.held.as_ref().map_or(0, |held| held.payload.len());
        for sample in &instance.samples {
            self.released(sample.departure());
        }
        if instance.writers > 0 {
            for publication in self.publications.iter_mut() {
                publication.instances.remove(&id);
            }
        }
        if let Some(at) = instance.deadline_armed {
            self.timers.remove(&(at, id, Timer::Deadline));
        }
        if let Some(at) = instance.purge_at {
            self.timers.remove(&(at, id, Timer::Purge));
        }
    }

    /// Removes the samples whose lifespan has ended.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((&(at, sample), &id)) = self.expiry.first_key_value()
            && at <= now
        {
            self.expiry.remove(&(at, sample));
            let Some(instance) = self.instances.get_mut(id) else { continue };
            let before = instance.shape();
            let place = instance.samples.iter().position(|candidate| candidate.id == sample);
            let Some(expired) = place.and_then(|place| instance.samples.remove(place)) else { continue };
            instance.left(expired.departure(), self.policy.order);
            self.instances.reshaped(id, before);
            self.released(expired.departure());
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
            let Some(instance) = self.instances.get(id) else { continue };
            match timer {
                Timer::Purge if instance.purge_at == Some(at) => self.purge(id),
                Timer::Deadline if instance.deadline_armed == Some(at) => {
                    self.check_deadline(now.mono, id, &mut missed)
                }
                Timer::Held => shown |= self.check_held(now, id),
                Timer::Purge | Timer::Deadline => {}
            }
        }
        shown
    }

    /// The deadline timer of an instance came up: samples since then only move it.
    fn check_deadline(&mut self, now: Instant, id: InstanceId, missed: &mut impl FnMut(InstanceHandle)) {
        let period = self.policy.deadline;
        let Some(instance) = self.instances.get_mut(id) else { return };
        instance.deadline_armed = None;
        let Some(mut deadline) = instance.deadline.filter(|_| instance.is_alive()) else { return };
        if deadline <= now {
            // A deadline missed is ownership lost (DCPS 1.4 §2.2.3.9.2).
            instance.owner = None;
            missed(instance.handle);
            // After a pause of the process, one miss is enough.
            let next = deadline.after(period).filter(|next| *next > now);
            let Some(next) = next.or_else(|| now.after(period.max(Duration(1)))) else { return };
            deadline = next;
            instance.deadline = Some(deadline);
        }
        instance.deadline_armed = Some(deadline);
        self.timers.insert((deadline, id, Timer::Deadline));
    }

    /// The time came up at which a held sample might be shown.
    fn check_held(&mut self, now: Now, id: InstanceId) -> bool {
        let Some(instance) = self.instances.get(id).filter(|instance| instance.held.is_some()) else {
            return false;
        };
        let bytes = instance.held.as_ref().map_or(0, |held| held.payload.len());
        let release = instance.filtered_until.and_then(|until| until.after(self.policy.separation));
        let later = match release.filter(|release| *release > now.mono) {
            // It may take the application a while to make room.
            None if self.no_room(Some(id), bytes).is_some() => now.mono.after(HELD_RETRY),
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

    /// When [`Self::timeout`] has something to do.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let expiry = self.expiry.first_key_value().map(|((at, _), _)| *at);
        let timer = self.timers.first().map(|(at, _, _)| *at);
        [expiry, timer].into_iter().flatten().min()
    }

    /// Samples and octets held, for the checks of tests.
    #[cfg(test)]
    pub(super) const fn held(&self) -> (usize, usize) {
        (self.valid_samples, self.bytes)
    }

    pub(super) fn instance_key(&self, handle: InstanceHandle) -> Option<InstanceKey> {
        let instance = self.instances.get(self.instances.find(handle)?)?;
        Some(instance.key().cloned().unwrap_or_default())
    }
}

const fn publication_of((_, guid): (Time, Guid)) -> Guid {
    guid
}

/// Keeps `payload` as what names the instance, if nothing better is there and the budget allows.
fn remember_key(held: &mut usize, budget: usize, instance: &mut Instance, payload: &Payload, key_only: bool) {
    if instance.key().is_some_and(|key| !key.payload.is_empty() && (key.key_only || !key_only)) {
        return;
    }
    let others = *held - instance.key().map_or(0, |key| key.payload.len());
    if others.saturating_add(payload.len()) <= budget {
        *held = others + payload.len();
        instance.set_key(InstanceKey { payload: payload.clone(), key_only });
    }
}
