//! Typed readers (DCPS 1.4 §2.2.2.5.3). `take` moves samples out under the lock and decodes them after.

use std::any::TypeId;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Waker;

use plainsong_proto::cdr::DdsType;
use plainsong_proto::discovery::{DiscoveryError, LocalEndpoint, Participant};
use plainsong_proto::filter::{ContentFilter, PayloadFilter, SignedFilter};
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::qos::{
    AccessScope, Durability, EntityKind, QosSet, Unhonoured, changed_immutable, unhonoured,
};
use plainsong_proto::reader::{CachedSamples, Fetch, Reader, ReaderConfig};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::status::{
    CountStatus, DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    SampleRejectedStatus, StatusKind, StatusMask,
};
use plainsong_proto::time::{Duration, Now};
use plainsong_proto::type_support::{self, TypeSupport};

use crate::atomic::{GroupSlot, LocalReader};
use crate::base::locks::lock;
use crate::base::{clock, trace, words::counted};
use crate::condition::{Condition, HasCore, WaitSet};
use crate::consistent::{check_announced_qos, check_qos};
use crate::content_filtered_topic::ReaderFilter;
use crate::entity::{EntityCore, ListenerSlot, endpoint_inner, endpoint_operations, key_value};
use crate::error::{Error, OutOfResources, PreconditionNotMet, Result, WaitedFor};
use crate::group::{Member, announced_qos};
use crate::keys;
use crate::listener::DataReaderListener;
use crate::query::QueryCondition;
use crate::read_options::ReadOptions;
use crate::runtime::receive;
use crate::runtime::{ParticipantSlot, ReaderSlot, Shared};
use crate::sample::{Sample, Store};
use crate::subscriber::{Subscriber, SubscriberInner};
use crate::topic::{AnyTopic, Topic, TopicInner};
use crate::undecodable::UndecodableSamples;

/// Instances of one built-in topic, those that have left and were not taken included.
const BUILTIN_INSTANCES_MAX: usize = 1 << 16;

/// Reads samples of type `T`. Clones are the same reader; it leaves when the last is dropped.
pub struct DataReader<T> {
    inner: Arc<ReaderInner>,
    marker: PhantomData<fn() -> T>,
}

/// A reader whose type is not known to the compiler: what listeners get.
#[derive(Clone)]
pub struct AnyDataReader(pub(crate) Arc<ReaderInner>);

pub(crate) struct ReaderInner {
    pub(crate) topic: Arc<TopicInner>,
    subscriber: Arc<SubscriberInner>,
    slot: Arc<ReaderSlot>,
    core: EntityCore,
    listener: ListenerSlot<dyn DataReaderListener>,
    guid: Guid,
    pub(crate) ty: Arc<dyn TypeSupport>,
    /// [`TypeSupport::value_bytes`].
    pub(crate) value_bytes: usize,
    /// Counts the deletions of all its conditions.
    conditions: AtomicU64,
    /// Ordered or coherent access of GROUP scope: samples are read within an access only.
    in_group: bool,
    /// Ordered access of GROUP scope: each sample has its turn among those of other readers.
    pub(crate) takes_turns: bool,
    /// What is announced of the filter of a content-filtered topic, and its revision.
    content_filter: Mutex<Option<(u64, ContentFilter)>>,
    /// CONSISTENCY ATOMIC: the group that brings its samples, once it is enabled.
    pub(crate) agreed: OnceLock<Arc<GroupSlot>>,
}

thread_local! {
    /// Samples between the lock and their decoding; the memory is kept for the next call.
    static SCRATCH: RefCell<CachedSamples> = const { RefCell::new(CachedSamples::new()) };
}

impl<T: DdsType> DataReader<T> {
    pub(crate) fn create(subscriber: Arc<SubscriberInner>, topic: &Topic<T>, qos: QosSet) -> Result<Self> {
        let inner = ReaderInner::create(subscriber, &topic.inner, type_support::of::<T>(), qos)?;
        Ok(Self { inner, marker: PhantomData })
    }

    pub(crate) const fn inner(&self) -> &Arc<ReaderInner> {
        &self.inner
    }

    /// Announces a reader that was created disabled.
    ///
    /// # Errors
    /// [`Error::NotEnabled`] when its participant is not, [`Error::OutOfResources`] at a limit.
    pub fn enable(&self) -> Result<()> {
        self.inner.enable()
    }

    /// A condition that chooses samples by state, as `options` say, and content: `expression` may have a
    /// condition, ORDER BY, both or neither, with `%0`, `%1`, … standing for `parameters`.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for an expression that is wrong or does not suit the type: it says in which
    /// column.
    pub fn query_condition(
        &self,
        options: &ReadOptions,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<QueryCondition<T>> {
        QueryCondition::new(self.clone(), options.selector, expression, parameters)
    }

    /// The key fields of an instance; other members have their defaults.
    ///
    /// # Errors
    /// [`Error::NotEnabled`], [`Error::BadParameter`] when the reader does not know the instance.
    pub fn key_value(&self, handle: InstanceHandle) -> Result<T> {
        let key = self.inner.with(|reader, _, _| reader.instance_key(handle))?;
        key_value(key, self.inner.value_bytes, || self.inner.describe())
    }

    /// The handle of the instance that `sample` belongs to, when the reader knows it.
    ///
    /// # Errors
    /// [`Error::NotEnabled`], [`Error::Serialization`].
    pub fn lookup_instance(&self, sample: &T) -> Result<Option<InstanceHandle>> {
        let key = keys::key_of::<T, T>(sample)
            .map_err(|error| Error::Serialization { topic: self.inner.topic.name.clone(), source: error })?;
        self.inner.with(|reader, _, _| reader.find_instance(key))
    }

    /// Blocks until there is something to take, and takes it.
    ///
    /// A VOLATILE reader, as one is by default, gets what is written after it matched: to have what a
    /// TRANSIENT_LOCAL writer wrote before, ask for [`Durability::TransientLocal`], too.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::NotEnabled`]; [`Error::AlreadyDeleted`], also when it is deleted
    /// meanwhile.
    pub fn wait_take(&self, timeout: impl Into<Duration>) -> Result<Vec<Sample<T>>> {
        self.wait_until(timeout.into(), "wait_take", || self.take())
    }

    pub(crate) fn wait_until<S>(
        &self,
        timeout: Duration,
        call: &str,
        take: impl Fn() -> Result<Vec<S>>,
    ) -> Result<Vec<S>> {
        let deadline = clock::deadline(timeout);
        let waiting = WaitSet::new();
        waiting.attach(self.read_condition(&ReadOptions::new()));
        loop {
            let samples = take()?;
            if !samples.is_empty() {
                return Ok(samples);
            }
            // Taking from a deleted reader is refused: nobody waits for samples that no longer come.
            if !waiting.wait_unless(|| self.inner.core.is_deleted(), deadline, &mut Vec::new()) {
                let what = format!("{call} on {}{}", self.inner.describe(), self.inner.why_empty());
                return Err(Error::Timeout { waited_for: WaitedFor::Sample, what, timeout });
            }
        }
    }

    /// The same reader without its type.
    #[must_use]
    pub fn as_any(&self) -> AnyDataReader {
        AnyDataReader(Arc::clone(&self.inner))
    }
}

const ENTITY_KIND: EntityKind = EntityKind::Reader;
/// So many writers are looked at to find out why nothing came.
const WRITERS_ASKED_MAX: usize = 100;

/// What a reader can do whether or not its type is known.
macro_rules! untyped_operations {
    () => {
        endpoint_operations!(DataReaderListener);

        /// Handles of the matched writers: [`Self::matched_publication_data`] tells of each, [`Guid::from`]
        /// makes its GUID of it.
        ///
        /// # Errors
        /// [`Error::NotEnabled`].
        pub fn matched_publications(&self) -> Result<Vec<InstanceHandle>> {
            self.inner().with(|reader, _, _| reader.matched_writers().map(InstanceHandle::from).collect())
        }

        /// Waits until the history of every matched transient-local writer has arrived. Where none is
        /// matched, there is nothing to wait for: it succeeds at once.
        ///
        /// # Errors
        /// [`Error::Timeout`], [`Error::NotEnabled`].
        pub fn wait_for_historical_data(&self, timeout: impl Into<Duration>) -> Result<()> {
            self.inner().wait_for_historical_data(timeout.into())
        }

        /// With CONSISTENCY ATOMIC: waits until everything that was delivered anywhere before the call, or
        /// whose writers were told so, is delivered to this reader. Reading after that is linearizable.
        ///
        /// # Errors
        /// [`Error::Timeout`], [`Error::NotEnabled`]; [`Error::PreconditionNotMet`] with EVENTUAL
        /// consistency; [`Error::LeftGroup`] where the participant is no member any more.
        pub fn sync(&self, timeout: impl Into<Duration>) -> Result<()> {
            self.inner().sync(timeout.into())
        }

        /// Samples that arrived but could not be decoded as the reader's type, and were discarded. They count
        /// in SAMPLE_LOST, too.
        #[must_use]
        pub fn undecodable_samples(&self) -> u64 {
            self.inner().slot.look(Reader::undecodable_samples)
        }

        /// Why, of each writer; see [`crate::participant::DomainParticipant::on_undecodable`].
        #[must_use]
        pub fn undecodable(&self) -> Vec<UndecodableSamples> {
            self.inner().undecodable()
        }

        /// SUBSCRIPTION_MATCHED; reading it resets the changes.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn subscription_matched_status(&self) -> Result<MatchedStatus> {
            self.inner().status(StatusKind::SubscriptionMatched, Reader::subscription_matched_status)
        }

        /// REQUESTED_INCOMPATIBLE_QOS; reading it resets the change.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn requested_incompatible_qos_status(&self) -> Result<IncompatibleQosStatus> {
            let read = Reader::requested_incompatible_qos_status;
            self.inner().status(StatusKind::RequestedIncompatibleQos, read)
        }

        /// REQUESTED_DEADLINE_MISSED; reading it resets the change.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn requested_deadline_missed_status(&self) -> Result<DeadlineMissedStatus> {
            let read = Reader::requested_deadline_missed_status;
            self.inner().status(StatusKind::RequestedDeadlineMissed, read)
        }

        /// LIVELINESS_CHANGED; reading it resets the changes.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn liveliness_changed_status(&self) -> Result<LivelinessChangedStatus> {
            self.inner().status(StatusKind::LivelinessChanged, Reader::liveliness_changed_status)
        }

        /// SAMPLE_LOST; reading it resets the change.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn sample_lost_status(&self) -> Result<CountStatus> {
            self.inner().status(StatusKind::SampleLost, Reader::sample_lost_status)
        }

        /// SAMPLE_REJECTED; reading it resets the change.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn sample_rejected_status(&self) -> Result<SampleRejectedStatus> {
            self.inner().status(StatusKind::SampleRejected, Reader::sample_rejected_status)
        }

        /// A condition that holds while there are samples in the states that `options` choose.
        #[must_use]
        pub fn read_condition(&self, options: &ReadOptions) -> Condition {
            Condition::read(Arc::clone(self.inner()), options.selector)
        }

        /// The subscriber it belongs to.
        #[must_use]
        pub fn subscriber(&self) -> Subscriber {
            Subscriber { inner: Arc::clone(&self.inner().subscriber) }
        }
    };
}

impl<T: DdsType> DataReader<T> {
    untyped_operations!();
}

impl AnyDataReader {
    untyped_operations!();

    const fn inner(&self) -> &Arc<ReaderInner> {
        &self.0
    }

    /// The reader with its type, when it is `T`.
    #[must_use]
    pub fn downcast<T: DdsType>(&self) -> Option<DataReader<T>> {
        (self.0.ty.rust_type() == Some(TypeId::of::<T>()))
            .then(|| DataReader { inner: Arc::clone(&self.0), marker: PhantomData })
    }
}

impl<T> Clone for DataReader<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), marker: PhantomData }
    }
}

impl ReaderInner {
    endpoint_inner!(Reader, subscriber);

    pub(crate) fn create(
        subscriber: Arc<SubscriberInner>,
        topic: &Arc<TopicInner>,
        ty: Arc<dyn TypeSupport>,
        qos: QosSet,
    ) -> Result<Arc<Self>> {
        let topic = Arc::clone(topic);
        subscriber.check_exists()?;
        topic.check_usable(&subscriber.participant)?;
        let qos = subscriber.qos_of_member(qos);
        let describe = || format!("the reader of topic '{}'", topic.name);
        check_qos(&qos, EntityKind::Reader, &describe())?;
        let qos = announced_qos(qos, &subscriber.qos(), &topic.qos());
        check_announced_qos(&qos, None, describe)?;
        let participant = &subscriber.participant;
        let (keyed, key) = (ty.is_keyed(), Arc::clone(&ty).key_function(keys::fingerprint_of));
        let id = EntityId::user_reader(participant.next_entity_key(), keyed);
        let guid = participant.guid_prefix.entity(id);
        let presentation = qos.presentation;
        let in_group = presentation.access_scope == AccessScope::Group
            && (presentation.coherent_access || presentation.ordered_access);
        let mut limits = participant.config().reader_limits();
        if subscriber.is_builtin {
            // What is not taken stays, and strangers decide how much comes.
            limits.instances_max = limits.instances_max.min(BUILTIN_INSTANCES_MAX);
        }
        let reader = Reader::new(ReaderConfig { guid, keyed, qos, limits, key });
        Ok(Arc::new(Self {
            topic,
            slot: ReaderSlot::new(reader),
            core: EntityCore::new(),
            listener: ListenerSlot::new(),
            guid,
            value_bytes: ty.value_bytes(),
            ty,
            conditions: AtomicU64::new(0),
            in_group,
            takes_turns: in_group && presentation.ordered_access,
            content_filter: Mutex::new(None),
            agreed: OnceLock::new(),
            subscriber,
        }))
    }

    /// Appends what `fetch` asks for.
    pub(crate) fn collect(&self, samples: &mut impl Store, fetch: &Fetch<'_>) -> Result<()> {
        self.check_access()?;
        let shared = self.shared();
        if let Some(shared) = shared {
            receive::poll(shared);
        }
        self.core.lower(StatusKind::DataAvailable);
        self.subscriber.data_on_readers_consumed();
        // Taken out of its cell, so that a listener called meanwhile can take too.
        let mut cached = SCRATCH.take();
        let filled = self.access(|reader, now| reader.fetch(now, fetch, &mut cached));
        if let Some(group) = self.agreed.get() {
            group.offer_backlog();
        }
        if let Some(shared) = shared
            && cached.is_empty()
        {
            receive::found_nothing(shared);
        }
        let before = samples.count();
        let undecodable = self.store(samples, &cached);
        let replaced = if undecodable.is_empty() {
            Ok(())
        } else {
            self.replace_undecodable(samples, before, fetch, &mut cached, undecodable)
        };
        cached.clear();
        SCRATCH.set(cached);
        filled.and(replaced)
    }

    fn announce(self: &Arc<Self>) -> Result<()> {
        self.core.check_exists(|| self.describe())?;
        self.subscriber.check_enabled_factory(&self.describe())?;
        let participant = &self.subscriber.participant;
        let slot = participant.slot()?;
        if !self.core.enable() {
            return Ok(());
        }
        participant.router.add_reader(self.guid.entity, Arc::downgrade(self));
        slot.insert_reader(&self.slot);
        if self.slot.is_agreed {
            self.join()?;
        }
        let endpoint = self.topic.endpoint(
            self.guid,
            self.slot.look(|reader| reader.qos().clone()),
            self.subscriber.announced_id(),
        );
        trace::endpoint_created(self.guid, &self.topic.name, self.topic.type_name(), &endpoint.qos);
        slot.control(|control, now, out| {
            let content_filter = self.announced_filter();
            control.add_endpoint(now, LocalEndpoint { content_filter, ..endpoint }, out)
        })
        .map_err(|error| OutOfResources::from(error).into())
    }

    /// Joins the group of the topic.
    fn join(&self) -> Result<()> {
        let qos = self.slot.look(|reader| reader.qos().clone());
        let group = self.subscriber.participant.join_group(&self.topic.name, &qos)?;
        let is_durable = qos.durability >= Durability::TransientLocal;
        let mismatched = self.subscriber.participant.mismatched_writers(&self.topic.name, &qos);
        group.add_reader(LocalReader { slot: Arc::clone(&self.slot), is_durable, mismatched });
        // It is enabled once, so that the cell is still empty.
        let _ = self.agreed.set(group);
        Ok(())
    }

    /// Whether it matches a writer has changed: with CONSISTENCY ATOMIC it gets nothing of others.
    pub(crate) fn note_mismatch(&self, writer: Guid, reader: Guid) {
        if let Some(group) = self.agreed.get().filter(|_| self.guid == reader) {
            let is_matched = self.slot.look(|reader| reader.matched_writers().any(|it| it == writer));
            group.note_mismatch(self.guid.entity, writer, is_matched);
        }
    }

    fn sync(&self, timeout: Duration) -> Result<()> {
        self.core.check_enabled(|| self.describe())?;
        let group =
            self.agreed.get().ok_or_else(|| PreconditionNotMet::Eventual { entity: self.describe() })?;
        group.sync(timeout, &|| self.describe(), &|| self.core.check_enabled(|| self.describe()))
    }

    /// Enables a reader that discovery does not know of.
    pub(crate) fn enable_unannounced(self: &Arc<Self>) -> Result<()> {
        let slot = self.subscriber.participant.slot()?;
        if self.core.enable() {
            self.subscriber.participant.router.add_reader(self.guid.entity, Arc::downgrade(self));
            slot.insert_reader(&self.slot);
        }
        Ok(())
    }

    /// Conditions made before are never triggered again.
    pub(crate) fn delete_conditions(&self) -> Result<()> {
        self.core.check_exists(|| self.describe())?;
        self.conditions.fetch_add(1, Ordering::SeqCst);
        self.core.wake_waiters();
        Ok(())
    }

    /// Names the conditions made from now on.
    pub(crate) fn condition_generation(&self) -> u64 {
        self.conditions.load(Ordering::SeqCst)
    }

    /// Tells the reader's own listener of data that was not read.
    pub(crate) fn notify(self: &Arc<Self>) {
        let kind = StatusKind::DataAvailable;
        if self.core.changed().contains(kind)
            && let Some(listener) = self.data_listener()
        {
            self.core.lower(kind);
            Arc::clone(self).tell(&*listener, kind);
        }
    }

    /// Whoever hears of data: the reader's listener, that of its subscriber, that of its participant.
    fn data_listener(&self) -> Option<Arc<dyn DataReaderListener>> {
        self.listener_of(StatusKind::DataAvailable)
    }

    /// Under GROUP scope, samples are read between `begin_access` and `end_access` (DCPS 1.4
    /// §2.2.2.5.2.8).
    fn check_access(&self) -> Result<()> {
        if self.in_group && !self.subscriber.is_accessing() {
            return Err(PreconditionNotMet::OutsideAccess { entity: self.describe() }.into());
        }
        Ok(())
    }

    /// Runs `f` on the protocol's reader, which has nothing to send after that. The clock is read where the
    /// time matters.
    #[inline]
    pub(crate) fn access(&self, f: impl FnOnce(&mut Reader, Now)) -> Result<()> {
        self.core.check_enabled(|| self.describe())?;
        self.slot.quietly(self.subscriber.participant.slot()?, |reader| {
            let now = if reader.is_timeless() { Now::default() } else { clock::now() };
            f(reader, now);
        });
        Ok(())
    }

    /// Runs `f` on the protocol's reader; the caller reports the events.
    pub(crate) fn run<R>(
        &self,
        slot: &ParticipantSlot,
        out: &mut Outbox,
        f: impl FnOnce(&mut Reader, Now, &mut Outbox) -> R,
    ) -> R {
        self.slot.run(slot.shared(), clock::now(), out, f)
    }

    pub(crate) fn subscriber(&self) -> &SubscriberInner {
        &self.subscriber
    }

    pub(crate) fn core(&self) -> &EntityCore {
        &self.core
    }

    /// Whether `read` would return something for `selector`.
    pub(crate) fn has_data(&self, selector: &Selector) -> bool {
        let Selector { sample_states, view_states, instance_states, .. } = *selector;
        self.core.is_active()
            && self.slot.look(|reader| reader.has_data(sample_states, view_states, instance_states))
    }

    /// Whether a query for these states and this content would return something.
    pub(crate) fn has_queried(&self, selector: &Selector, query: &PayloadFilter) -> bool {
        self.core.is_active() && self.slot.look(|reader| reader.has_queried(selector, query))
    }

    fn content_filter(&self) -> MutexGuard<'_, Option<(u64, ContentFilter)>> {
        lock(&self.content_filter)
    }

    fn announced_filter(&self) -> Option<ContentFilter> {
        self.content_filter().as_ref().map(|(_, filter)| filter.clone())
    }

    /// Filters what arrives from now on, and tells writers.
    pub(crate) fn set_filter(&self, filter: ReaderFilter) -> Result<()> {
        let ReaderFilter { revision, payload, announced } = filter;
        {
            let mut current = self.content_filter();
            if current.as_ref().is_some_and(|(newer, _)| *newer > revision) {
                return Ok(());
            }
            let signature = announced.signature();
            let filter = SignedFilter { filter: payload, signature };
            self.slot.edit(|reader| reader.set_filter(Some(filter)));
            *current = Some((revision, announced));
        }
        if !self.core.is_enabled() {
            return Ok(());
        }
        let announced = self.subscriber.participant.slot()?.control(|control, now, out| {
            // Under the participant's lock, so that what is announced last is the newest.
            self.announced_filter()
                .map_or(Ok(()), |filter| control.update_content_filter(now, self.guid, filter, out))
        });
        match announced {
            // Being enabled right now: that announces the filter too.
            Ok(()) | Err(DiscoveryError::Unknown(_)) => Ok(()),
            Err(error) => Err(OutOfResources::from(error).into()),
        }
    }

    /// Behind the reader in a text: that no writer matches it, and why.
    fn why_empty(&self) -> String {
        let matched = self.with(|reader, _, _| {
            let is_volatile = reader.qos().durability == Durability::Volatile;
            (is_volatile, reader.matched_writers().take(WRITERS_ASKED_MAX).collect::<Vec<_>>())
        });
        let Ok((is_volatile, writers)) = matched else { return String::new() };
        if !writers.is_empty() {
            return if is_volatile { self.missed_history(&writers) } else { String::new() };
        }
        match &self.subscriber.participant.mismatches_of(self.guid)[..] {
            [] => ", whose topic no writer is known of,".to_owned(),
            [first, rest @ ..] => {
                let why: Vec<_> = first.differences.iter().map(ToString::to_string).collect();
                let others = match rest.len() {
                    0 => String::new(),
                    count => format!(", nor {}", counted(count as u64, "other")),
                };
                format!(", which writer {}{others} does not match ({}),", first.writer.guid, why.join("; "))
            }
        }
    }

    /// What a VOLATILE reader does not get of writers that keep samples for late joiners.
    fn missed_history(&self, writers: &[Guid]) -> String {
        let Ok(slot) = self.subscriber.participant.slot() else { return String::new() };
        let keeps = |control: &Participant, writer: Guid| {
            control.endpoint(writer).is_some_and(|it| it.qos.durability >= Durability::TransientLocal)
        };
        let keeping = slot.look(|control| writers.iter().copied().find(|writer| keeps(control, *writer)));
        keeping.map_or_else(String::new, |writer| {
            format!(
                ", which is VOLATILE and gets only what is written after it matched (what writer {writer} wrote before is for \
                 readers of DURABILITY TRANSIENT_LOCAL),"
            )
        })
    }

    fn wait_for_historical_data(&self, timeout: Duration) -> Result<()> {
        let deadline = clock::deadline(timeout);
        loop {
            let epoch = self.slot.progress.epoch();
            if self.with(|reader, _, _| reader.is_history_complete())? {
                return Ok(());
            }
            let progress = &self.slot.progress;
            let came = match self.shared() {
                Some(shared) => receive::wait(shared, progress, epoch, deadline, receive::Wanted::Samples),
                None => progress.wait(epoch, deadline),
            };
            if !came {
                let what = format!("waiting for historical data of {}", self.describe());
                return Err(Error::Timeout { waited_for: WaitedFor::HistoricalData, what, timeout });
            }
        }
    }

    /// A status of the reader changed.
    pub(crate) fn on_event(self: Arc<Self>, kind: StatusKind) {
        if kind == StatusKind::DataAvailable && self.tell_data_on_readers() {
            return;
        }
        if kind != StatusKind::DataAvailable {
            self.trace(kind);
        }
        let listener = self.listener_of(kind);
        self.core.raise(kind);
        if let Some(listener) = listener {
            self.tell(&*listener, kind);
        }
    }

    fn trace(&self, kind: StatusKind) {
        let matches = || self.slot.look(|reader| reader.matched_writers().count());
        trace::status_changed(self.guid, &self.topic.name, kind, matches);
    }

    /// Who hears of a status: the closest that wants it (DCPS 1.4 §2.2.4.2.3).
    fn listener_of(&self, kind: StatusKind) -> Option<Arc<dyn DataReaderListener>> {
        self.listener
            .wants(kind)
            .or_else(|| self.subscriber.listener.wants(kind))
            .or_else(|| self.participant_listener(kind))
    }

    /// The built-in subscriber keeps everything from its participant (DCPS 1.4 §2.2.5).
    fn participant_listener(&self, kind: StatusKind) -> Option<Arc<dyn DataReaderListener>> {
        if self.subscriber.is_builtin {
            return None;
        }
        Some(self.subscriber.participant.router.listener.wants(kind)?)
    }

    /// DATA_ON_READERS has precedence over DATA_AVAILABLE (DCPS 1.4 §2.2.4.2.2): true when somebody
    /// wanted it.
    fn tell_data_on_readers(&self) -> bool {
        self.subscriber.core.raise(StatusKind::DataOnReaders);
        let Some(listener) = self.listener_of_subscriber() else { return false };
        self.core.raise(StatusKind::DataAvailable);
        listener.on_data_on_readers(&Subscriber { inner: Arc::clone(&self.subscriber) });
        true
    }

    /// Whoever hears of DATA_ON_READERS.
    fn listener_of_subscriber(&self) -> Option<Arc<dyn DataReaderListener>> {
        let kind = StatusKind::DataOnReaders;
        self.subscriber.listener.wants(kind).or_else(|| self.participant_listener(kind))
    }

    /// There is data: wakes who waits for it, unless a listener wants to hear of it. The caller wakes
    /// `tasks`.
    pub(crate) fn wake_on_data(&self, tasks: &mut Vec<Waker>) -> bool {
        if self.listener_of_subscriber().is_some() || self.data_listener().is_some() {
            return false;
        }
        self.subscriber.core.raise_leaving(StatusKind::DataOnReaders, tasks);
        self.core.raise_leaving(StatusKind::DataAvailable, tasks);
        true
    }

    /// A status changed: wakes who waits for that, unless a listener wants to hear of it. The caller wakes
    /// `tasks`.
    pub(crate) fn wake_on_status(&self, kind: StatusKind, tasks: &mut Vec<Waker>) -> bool {
        let is_quiet = self.listener_of(kind).is_none();
        if is_quiet {
            self.trace(kind);
            self.core.raise_leaving(kind, tasks);
        }
        is_quiet
    }

    fn tell(self: Arc<Self>, listener: &dyn DataReaderListener, kind: StatusKind) {
        let any = AnyDataReader(self);
        // A status cannot be read only while the reader is being deleted: nobody is left to tell.
        let _ = match kind {
            StatusKind::DataAvailable => {
                listener.on_data_available(&any);
                Ok(())
            }
            StatusKind::SubscriptionMatched => any
                .subscription_matched_status()
                .map(|status| listener.on_subscription_matched(&any, &status)),
            StatusKind::RequestedIncompatibleQos => any
                .requested_incompatible_qos_status()
                .map(|status| listener.on_requested_incompatible_qos(&any, &status)),
            StatusKind::RequestedDeadlineMissed => any
                .requested_deadline_missed_status()
                .map(|status| listener.on_requested_deadline_missed(&any, &status)),
            StatusKind::LivelinessChanged => {
                any.liveliness_changed_status().map(|status| listener.on_liveliness_changed(&any, &status))
            }
            StatusKind::SampleLost => {
                any.sample_lost_status().map(|status| listener.on_sample_lost(&any, &status))
            }
            StatusKind::SampleRejected => {
                any.sample_rejected_status().map(|status| listener.on_sample_rejected(&any, &status))
            }
            _ => Ok(()),
        };
    }

    /// Ends it: nobody hears of it or from it any more.
    fn withdraw(&self) {
        let participant = &self.subscriber.participant;
        let Ok(slot) = participant.slot() else { return };
        if self.core.is_enabled() {
            trace::endpoint_deleted(self.guid, &self.topic.name);
            participant.router.remove(self.guid.entity);
            if let Some(group) = self.agreed.get()
                && group.remove_reader(self.guid.entity)
            {
                participant.leave_group(group);
            }
            slot.control(|control, now, out| control.remove_endpoint(now, self.guid, out));
            slot.remove_reader(self.guid.entity);
        }
    }
}

impl HasCore for ReaderInner {
    fn core(&self) -> &EntityCore {
        &self.core
    }

    fn shared(&self) -> Option<&Arc<Shared>> {
        Some(self.subscriber.participant.slot().ok()?.shared())
    }
}

impl Member for ReaderInner {
    fn guid(&self) -> Guid {
        self.guid
    }

    fn topic(&self) -> &Arc<TopicInner> {
        &self.topic
    }

    fn enable(self: &Arc<Self>) -> Result<()> {
        self.announce()
    }

    fn check_group(&self, group: &QosSet) -> Result<()> {
        self.check_group_qos(group)
    }

    fn delete(&self) -> Result<()> {
        if !self.core.delete() {
            return Err(Error::AlreadyDeleted(self.describe()));
        }
        self.withdraw();
        self.slot.progress.wake_all();
        Ok(())
    }
}

impl Drop for ReaderInner {
    fn drop(&mut self) {
        if self.core.is_to_end() {
            self.withdraw();
        }
    }
}
