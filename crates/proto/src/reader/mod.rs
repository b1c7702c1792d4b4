//! The reader: everything a DataReader receives, in one struct under one lock.
//!
//! Protocol side (RTPS 2.5 §8.4.10 to §8.4.12): `receive` takes submessages in, `proxy`, `reorder` and
//! `fragment` know what each writer still owes, `answer` asks for it. Application side (DCPS 1.4
//! §2.2.2.5): `cache` and `instances` keep samples and states, `access` returns them.

mod access;
mod answer;
mod assembly;
mod cache;
mod change;
mod coherent;
mod deadline;
mod destination_order;
mod fragment;
mod group;
mod handle_set;
mod instances;
mod lifecycle;
mod liveliness;
mod local;
mod matching;
mod ownership;
mod proxy;
mod receive;
mod reorder;
mod samples;
mod state;
mod undecodable;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use crate::limits::ReaderLimits;
pub use access::{Access, CachedSample, CachedSamples, Fetch, rank_together};
pub use group::{GroupMember, GroupRoom, GroupVerdict, next_verdict};
pub use local::AgreedChange;
pub use state::{ReaderTotals, WriterRoute};
pub use undecodable::{Discarded, Undecodable};

use crate::filter::{PayloadFilter, SignedFilter};
use crate::guid::Guid;
use crate::instance::{InstanceHandle, Key, KeyFunction};
use crate::outbox::{Event, Outbox};
use crate::payload::{Payload, PayloadPool};
use crate::qos::{Durability, QosSet};
use crate::sample_info::Selector;
use crate::seq::SequenceNumber;
use crate::stats::{DropCounters, DropReason};
use crate::status::{
    CountStatus, DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    RejectReason, SampleRejectedStatus, StatusKind, StatusMask,
};
use crate::time::{Instant, Now, Time};
use crate::wire::FilterSignature;
use access::Choice;
use assembly::Assembly;
use cache::Cache;
use coherent::Presenter;
use group::KnownWriters;
use ownership::WriterId;
use proxy::Proxy;

/// What a reader is.
#[derive(Clone, Debug)]
pub struct ReaderConfig {
    /// Its GUID.
    pub guid: Guid,
    /// The type has a key.
    pub keyed: bool,
    /// QoS of the reader and its subscriber.
    pub qos: QosSet,
    /// Internal limits.
    pub limits: ReaderLimits,
    /// How to find the instance of a payload.
    pub key: KeyFunction,
}

/// The statuses of one reader.
#[derive(Debug, Default)]
struct Statuses {
    subscription_matched: MatchedStatus,
    deadline_missed: DeadlineMissedStatus,
    incompatible_qos: IncompatibleQosStatus,
    liveliness_changed: LivelinessChangedStatus,
    sample_lost: CountStatus,
    sample_rejected: SampleRejectedStatus,
    changes: StatusMask,
}

impl Statuses {
    fn reject(&mut self, reason: RejectReason, instance: InstanceHandle) {
        self.sample_rejected.count.count();
        self.sample_rejected.last_reason = reason;
        self.sample_rejected.last_instance = instance;
        self.changes = self.changes.with(StatusKind::SampleRejected);
    }
}

/// A reader of one topic: DCPS DataReader and RTPS StatefulReader in one.
pub struct Reader {
    guid: Guid,
    qos: QosSet,
    limits: ReaderLimits,
    cache: Cache,
    filter_signature: Option<FilterSignature>,
    presenter: Presenter,
    known_writers: Vec<KnownWriters>,
    proxies: Vec<Option<Proxy>>,
    /// Numbers of proxies that are not in use: the lowest is used next.
    free_proxies: BTreeSet<WriterId>,
    /// Unmatched writers that have not left all their instances: their numbers stay theirs.
    departing: VecDeque<WriterId>,
    /// How many matched writers each publisher has, where that is told.
    publishers: BTreeMap<Guid, usize>,
    by_guid: BTreeMap<Guid, WriterId>,
    /// The writer of which something came last.
    recent_writer: WriterId,
    /// Proxies that wait for room in the cache.
    blocked: usize,
    /// Proxies of writers that are gone, of which something is still to be shown.
    lingering: usize,
    /// Incomplete samples.
    assembly: Assembly,
    /// No proxy has anything to do before this time.
    proxies_due: Option<Instant>,
    /// Events of calls that could not report them.
    unnotified: StatusMask,
    small: PayloadPool,
    large: PayloadPool,
    statuses: Statuses,
    drops: DropCounters,
}

impl Reader {
    /// A reader without writers.
    #[must_use]
    pub fn new(config: ReaderConfig) -> Self {
        let ReaderConfig { guid, keyed, qos, limits, key } = config;
        Self {
            guid,
            cache: Cache::new(&qos, &limits, keyed, key),
            filter_signature: None,
            presenter: Presenter::new(&qos, &limits),
            known_writers: Vec::new(),
            qos,
            limits,
            proxies: Vec::new(),
            free_proxies: BTreeSet::new(),
            departing: VecDeque::new(),
            publishers: BTreeMap::new(),
            by_guid: BTreeMap::new(),
            recent_writer: 0,
            blocked: 0,
            lingering: 0,
            assembly: Assembly::default(),
            proxies_due: None,
            unnotified: StatusMask::NONE,
            small: PayloadPool::new(),
            large: PayloadPool::new(),
            statuses: Statuses::default(),
            drops: DropCounters::default(),
        }
    }

    /// Its GUID.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.guid
    }

    /// Its QoS.
    #[must_use]
    pub const fn qos(&self) -> &QosSet {
        &self.qos
    }

    /// So many samples can be stored one after the other before the first of them has to make room.
    #[must_use]
    pub fn stored_before_any_leaves(&self) -> usize {
        self.cache.room()
    }

    /// Replaces the QoS; the caller has checked that only changeable policies differ.
    pub fn set_qos(&mut self, now: Now, qos: QosSet) {
        self.cache.set_qos(now.mono, &qos);
        self.qos = qos;
    }

    /// Drops data that `filter` does not want before it takes room in the cache (ContentFilteredTopic, DCPS
    /// 1.4 §2.2.2.3.3). It counts as received; of instances, only those with data that was wanted are known.
    pub fn set_filter(&mut self, filter: Option<SignedFilter>) {
        self.filter_signature = filter.as_ref().map(|filter| filter.signature);
        self.cache.set_filter(filter.map(|filter| filter.filter));
    }

    /// Whether samples of different instances are returned as they were written.
    #[must_use]
    pub const fn is_interleaved(&self) -> bool {
        self.cache.is_interleaved()
    }

    /// Whether what `read` and `take` do next does not depend on the time: nothing expires, and nothing waits
    /// for room.
    #[must_use]
    pub fn is_timeless(&self) -> bool {
        self.blocked == 0 && !self.cache.has_mortal()
    }

    /// Appends the samples that `selector` asks for and marks them read. With KEEP_LAST this makes room for
    /// what was refused, as [`Self::take`] does.
    pub fn read(&mut self, now: Now, selector: &Selector, samples: &mut CachedSamples) {
        self.access(now, Access::Read, &Choice::of(selector), samples);
    }

    /// Appends what `fetch` asks for: as [`Self::read`] or [`Self::take`], of the samples with data that a
    /// query lets pass (`read_w_condition`, `take_w_condition`).
    pub fn fetch(&mut self, now: Now, fetch: &Fetch<'_>, samples: &mut CachedSamples) {
        self.access(now, fetch.access, &Choice::queried(fetch.selector, fetch.query), samples);
    }

    /// Whether some sample with data has the states of `selector` and passes `query`; looks at each.
    #[must_use]
    pub fn has_queried(&self, selector: &Selector, query: &PayloadFilter) -> bool {
        self.has_data(selector.sample_states, selector.view_states, selector.instance_states)
            && self.cache.has_any(&Choice::queried(selector, Some(query)))
    }

    /// Appends the samples that `selector` asks for and removes them. Room made lets refused samples in;
    /// their acknowledgement is then due at once: look at [`Self::next_timeout`].
    pub fn take(&mut self, now: Now, selector: &Selector, samples: &mut CachedSamples) {
        self.access(now, Access::Take, &Choice::of(selector), samples);
    }

    fn access(&mut self, now: Now, access: Access, choice: &Choice<'_>, samples: &mut CachedSamples) {
        self.statuses.changes = self.statuses.changes.without(StatusKind::DataAvailable);
        let before = self.cache.samples_with_data();
        self.cache.access(now, access, choice, samples);
        let makes_room =
            access == Access::Take || self.cache.replaces_read() || self.cache.samples_with_data() < before;
        if self.blocked > 0 && makes_room && !self.presenter.is_accessing() {
            self.unblock(now);
        }
    }

    /// Under ordered access of TOPIC or GROUP scope: when and by whom each sample that `selector` asks for
    /// was written (the publisher, or the writer where that is all we know), and its number among the
    /// changes of the publisher, in the order they are returned.
    pub fn group_order<'a>(
        &'a self,
        selector: &'a Selector,
    ) -> impl Iterator<Item = (Time, Guid, Option<SequenceNumber>)> + 'a {
        self.cache.group_order(selector).map(|(time, writer, number)| {
            let proxy = self.by_guid.get(&writer).and_then(|id| self.proxy(*id));
            (time, proxy.and_then(|proxy| proxy.publisher).unwrap_or(writer), number)
        })
    }

    /// Samples with data that it holds.
    #[must_use]
    pub const fn held_samples(&self) -> usize {
        self.cache.held().0
    }

    /// Whether some sample has these states (masks as in [`Selector`]); never a scan.
    #[must_use]
    pub fn has_data(&self, sample_states: u8, view_states: u8, instance_states: u8) -> bool {
        self.cache.instances.has_data(sample_states, view_states, instance_states)
    }

    /// Whether the reader knows this instance.
    #[must_use]
    pub fn has_instance(&self, instance: InstanceHandle) -> bool {
        self.cache.instances.find(instance).is_some()
    }

    /// The instance with this key, if the reader knows it.
    #[must_use]
    pub fn find_instance(&self, key: Key) -> Option<InstanceHandle> {
        self.cache.instances.find_key(key)
    }

    /// The serialized key of `instance`; empty when only its key hash is known, or nothing of it was kept for
    /// want of room, `None` when the instance is unknown or forgotten.
    #[must_use]
    pub fn instance_key(&self, instance: InstanceHandle) -> Option<Payload> {
        self.cache.instance_key(instance)
    }

    /// Whether everything that was written before the match has arrived (DCPS 1.4 §2.2.2.5.2.10);
    /// always for VOLATILE.
    #[must_use]
    pub fn is_history_complete(&self) -> bool {
        self.qos.durability == Durability::Volatile
            || self.proxies.iter().flatten().all(Proxy::is_history_complete)
    }

    /// Carries out what is due at `now`.
    pub fn timeout(&mut self, now: Now, out: &mut Outbox) {
        if self.proxies_due.is_some_and(|due| due <= now.mono) {
            self.proxies_timeout(now, out);
        }
        self.recheck_group(now.mono);
        let Statuses { deadline_missed, changes, .. } = &mut self.statuses;
        let guid = self.guid;
        let before = self.cache.samples_with_data();
        let shown = self.cache.timeout(now, |instance| {
            deadline_missed.count.count();
            deadline_missed.last_instance = instance;
            *changes = changes.with(StatusKind::RequestedDeadlineMissed);
            out.status(guid, StatusKind::RequestedDeadlineMissed);
        });
        if self.blocked > 0 && self.cache.samples_with_data() < before && !self.presenter.is_accessing() {
            // What expired or was purged has left room.
            self.unblock(now);
        }
        self.notify_presented(out);
        let unnotified = std::mem::take(&mut self.unnotified);
        if shown || unnotified.contains(StatusKind::DataAvailable) {
            self.data_available(out);
        }
        for kind in [StatusKind::SampleRejected, StatusKind::SampleLost] {
            if unnotified.contains(kind) {
                self.changed(kind, out);
            }
        }
        self.notify_undecodable(out);
        self.notify_freed(out);
    }

    fn notify_freed(&mut self, out: &mut Outbox) {
        if self.cache.freed.take() {
            out.events.push(Event::MemoryFreed);
        }
    }

    /// When [`Self::timeout`] is to be called; earlier calls are harmless.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        Instant::earliest([self.proxies_due, self.presenter.recheck_at, self.cache.next_timeout()])
    }

    /// SUBSCRIPTION_MATCHED; resets its changes, like all that follow.
    pub fn subscription_matched_status(&mut self) -> MatchedStatus {
        self.seen(StatusKind::SubscriptionMatched);
        self.statuses.subscription_matched.take()
    }

    /// REQUESTED_DEADLINE_MISSED.
    pub fn requested_deadline_missed_status(&mut self) -> DeadlineMissedStatus {
        self.seen(StatusKind::RequestedDeadlineMissed);
        let status = &mut self.statuses.deadline_missed;
        DeadlineMissedStatus { count: status.count.take(), last_instance: status.last_instance }
    }

    /// REQUESTED_INCOMPATIBLE_QOS.
    pub fn requested_incompatible_qos_status(&mut self) -> IncompatibleQosStatus {
        self.seen(StatusKind::RequestedIncompatibleQos);
        let status = self.statuses.incompatible_qos.clone();
        self.statuses.incompatible_qos.count.take();
        status
    }

    /// LIVELINESS_CHANGED.
    pub fn liveliness_changed_status(&mut self) -> LivelinessChangedStatus {
        self.seen(StatusKind::LivelinessChanged);
        let status = self.statuses.liveliness_changed;
        self.statuses.liveliness_changed.alive_count_change = 0;
        self.statuses.liveliness_changed.not_alive_count_change = 0;
        status
    }

    /// SAMPLE_LOST.
    pub fn sample_lost_status(&mut self) -> CountStatus {
        self.seen(StatusKind::SampleLost);
        self.statuses.sample_lost.take()
    }

    /// SAMPLE_REJECTED.
    pub fn sample_rejected_status(&mut self) -> SampleRejectedStatus {
        self.seen(StatusKind::SampleRejected);
        let status = &mut self.statuses.sample_rejected;
        SampleRejectedStatus { count: status.count.take(), ..*status }
    }

    /// The statuses that changed since they were last read.
    #[must_use]
    pub const fn status_changes(&self) -> StatusMask {
        self.statuses.changes
    }

    /// What was dropped, and why.
    #[must_use]
    pub const fn drops(&self) -> &DropCounters {
        &self.drops
    }

    fn seen(&mut self, kind: StatusKind) {
        self.statuses.changes = self.statuses.changes.without(kind);
    }

    fn changed(&mut self, kind: StatusKind, out: &mut Outbox) {
        self.statuses.changes = self.statuses.changes.with(kind);
        out.status(self.guid, kind);
    }

    #[inline(always)]
    fn data_available(&mut self, out: &mut Outbox) {
        self.statuses.changes = self.statuses.changes.with(StatusKind::DataAvailable);
        let reader = self.guid.entity;
        // One is enough for all samples of a datagram.
        if !matches!(out.events.last(), Some(Event::DataAvailable { reader: last }) if *last == reader) {
            out.events.push(Event::DataAvailable { reader });
        }
    }

    fn samples_lost(&mut self, count: u64, out: &mut Outbox) {
        if count > 0 {
            self.count_lost(count);
            self.changed(StatusKind::SampleLost, out);
        }
    }

    fn count_lost(&mut self, count: u64) {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let status = &mut self.statuses.sample_lost;
        status.total_count = status.total_count.saturating_add(count);
        status.total_count_change = status.total_count_change.saturating_add(count);
    }

    #[cold]
    fn dropped(&mut self, reason: DropReason) -> DropReason {
        self.drops.count(reason);
        reason
    }

    #[inline]
    fn proxy(&self, id: WriterId) -> Option<&Proxy> {
        self.proxies.get(id as usize)?.as_ref()
    }

    #[inline]
    fn proxy_mut(&mut self, id: WriterId) -> Option<&mut Proxy> {
        self.proxies.get_mut(id as usize)?.as_mut()
    }

    /// The proxy of `id` has something to do at `at`.
    fn wake_at(&mut self, at: Option<Instant>) {
        self.proxies_due = match (self.proxies_due, at) {
            (Some(due), Some(at)) => Some(due.min(at)),
            (due, at) => due.or(at),
        };
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("guid", &self.guid)
            .field("writers", &self.by_guid)
            .finish_non_exhaustive()
    }
}
