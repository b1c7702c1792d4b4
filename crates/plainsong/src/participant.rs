//! Domain participants and their factory (DCPS 1.4 §2.2.2.2).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use plainsong_proto::cdr::{DdsType, Fields};
use plainsong_proto::discovery::{self, Participant};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::locator::ports;
use plainsong_proto::outbox::Event;
use plainsong_proto::qos::{EntityKind, QosSet};
use plainsong_proto::stats::DropCounters;
use plainsong_proto::status::{StatusKind, StatusMask};

use crate::clock;
use crate::condition::{Condition, HasCore};
use crate::config::Config;
use crate::content_filtered_topic::ContentFilteredTopic;
use crate::data_reader::ReaderInner;
use crate::data_writer::WriterInner;
use crate::domain::{Domain, EventSink, InterfaceReport};
use crate::entity::{EntityCore, ListenerSlot};
use crate::error::{Error, Result};
use crate::listener::{DataReaderListener, DataWriterListener, DomainParticipantListener};
use crate::mismatch::OnMismatch;
use crate::publisher::Publisher;
use crate::runtime::ParticipantSlot;
use crate::subscriber::Subscriber;
use crate::topic::{Topic, TopicInner};

/// Creates participants, with a configuration and default QoS of its own.
pub struct DomainParticipantFactory {
    config: Config,
    qos: QosSet,
}

/// Membership of an application in a domain. Clones are the same participant; it leaves the domain
/// when the last clone and the last entity made by it are dropped.
#[derive(Clone)]
pub struct DomainParticipant {
    pub(crate) inner: Arc<ParticipantInner>,
}

pub(crate) struct ParticipantInner {
    pub(crate) domain_id: u16,
    pub(crate) guid_prefix: GuidPrefix,
    config: Config,
    qos: Mutex<QosSet>,
    name: String,
    domain: Arc<Domain>,
    slot: OnceLock<Arc<ParticipantSlot>>,
    pub(crate) core: EntityCore,
    pub(crate) router: Arc<Router>,
    topics: Mutex<BTreeMap<String, Weak<TopicInner>>>,
    next_entity_key: AtomicU32,
    /// Some writer is MANUAL_BY_PARTICIPANT: every write asserts the participant.
    has_manual_writers: AtomicBool,
}

/// Finds the entity an event is about, and the listener that wants it.
pub(crate) struct Router {
    endpoints: RwLock<BTreeMap<EntityId, Endpoint>>,
    pub(crate) writer_listener: ListenerSlot<dyn DataWriterListener>,
    pub(crate) reader_listener: ListenerSlot<dyn DataReaderListener>,
    on_participant: RwLock<Option<OnParticipant>>,
    on_mismatch: RwLock<Option<OnMismatch>>,
}

/// Called with a remote participant and whether it is there.
type OnParticipant = Arc<dyn Fn(Guid, bool) + Send + Sync>;

#[derive(Clone)]
enum Endpoint {
    Writer(Weak<WriterInner>),
    Reader(Weak<ReaderInner>),
}

impl DomainParticipantFactory {
    /// A factory configured by the environment (`PLAINSONG_*`).
    ///
    /// # Errors
    /// [`Error::Config`] names the variable whose value is unusable.
    pub fn new() -> Result<Self> {
        Ok(Self::with_config(Config::from_env()?))
    }

    /// A factory with an explicit configuration.
    #[must_use]
    pub fn with_config(config: Config) -> Self {
        Self { config, qos: QosSet::default() }
    }

    /// Sets the factory's own QoS: with ENTITY_FACTORY off, participants are created disabled.
    pub fn set_qos(&mut self, qos: QosSet) {
        self.qos = qos;
    }

    /// Joins domain `domain_id` (0 to 232).
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a domain whose ports do not exist, [`Error::Io`] when no socket can
    /// be opened, [`Error::InconsistentPolicy`] for contradictory QoS.
    pub fn create_participant(&self, domain_id: u16, name: &str, qos: QosSet) -> Result<DomainParticipant> {
        if domain_id > ports::DOMAIN_MAX {
            return Err(Error::BadParameter(format!(
                "domain {domain_id} does not exist: use 0 to {}",
                ports::DOMAIN_MAX
            )));
        }
        check_qos(&qos, EntityKind::Participant, "participant")?;
        let domain = Domain::join(domain_id, &self.config)
            .map_err(|source| Error::Io { what: format!("joining domain {domain_id}"), source })?;
        let inner = Arc::new(ParticipantInner {
            domain_id,
            guid_prefix: clock::fresh_guid_prefix(),
            config: self.config.clone(),
            qos: Mutex::new(qos),
            name: name.to_owned(),
            domain,
            slot: OnceLock::new(),
            core: EntityCore::new(),
            router: Arc::new(Router::new()),
            topics: Mutex::new(BTreeMap::new()),
            next_entity_key: AtomicU32::new(1),
            has_manual_writers: AtomicBool::new(false),
        });
        let participant = DomainParticipant { inner };
        if self.qos.entity_factory.autoenable_created_entities {
            participant.enable();
        }
        Ok(participant)
    }
}

impl DomainParticipant {
    /// Joins domain `domain_id` with default QoS and the configuration of the environment.
    ///
    /// # Errors
    /// As [`DomainParticipantFactory::create_participant`].
    pub fn new(domain_id: u16) -> Result<Self> {
        DomainParticipantFactory::new()?.create_participant(domain_id, "", QosSet::default())
    }

    pub(crate) const fn from_inner(inner: Arc<ParticipantInner>) -> Self {
        Self { inner }
    }

    /// Announces a participant that was created disabled; entities made before stay disabled.
    pub fn enable(&self) {
        self.inner.enable();
    }

    /// A topic of type `T`. The same name gives the same topic.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when the name is in use with another type,
    /// [`Error::BadParameter`] for an empty or overlong name.
    pub fn create_topic<T: DdsType>(&self, name: &str, qos: QosSet) -> Result<Topic<T>> {
        const TOPIC_NAME_OCTETS_MAX: usize = 255;
        if name.is_empty() || name.len() > TOPIC_NAME_OCTETS_MAX {
            return Err(Error::BadParameter(format!(
                "a topic name has 1 to {TOPIC_NAME_OCTETS_MAX} octets, not {}",
                name.len()
            )));
        }
        check_qos(&qos, EntityKind::Topic, &format!("topic '{name}'"))?;
        let mut topics = self.inner.topics();
        if let Some(known) = topics.get(name).and_then(Weak::upgrade) {
            if known.type_name != T::TYPE_NAME {
                return Err(Error::PreconditionNotMet(format!(
                    "topic '{name}' exists with type '{}', not '{}'",
                    known.type_name,
                    T::TYPE_NAME
                )));
            }
            return Ok(Topic::from_inner(known));
        }
        let inner = Arc::new(TopicInner::new::<T>(Arc::clone(&self.inner), name.to_owned(), qos));
        topics.insert(name.to_owned(), Arc::downgrade(&inner));
        Ok(Topic::from_inner(inner))
    }

    /// What of `topic` the filter `expression` is true of, `%0`, `%1`, … standing for `parameters`: values as
    /// they would be written in the expression, strings in quotes. Readers of it come from
    /// [`Subscriber::create_reader_filtered`].
    ///
    /// # Errors
    /// [`Error::BadParameter`] for an empty or overlong name, and for an expression that is wrong or does not
    /// suit the type: it says in which column.
    pub fn create_content_filtered_topic<T: DdsType>(
        &self,
        name: &str,
        topic: &Topic<T>,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<ContentFilteredTopic<T>> {
        if !Arc::ptr_eq(&topic.inner.participant, &self.inner) {
            return Err(Error::PreconditionNotMet(format!(
                "topic '{}' belongs to another participant",
                topic.name()
            )));
        }
        ContentFilteredTopic::new(name, topic, expression, parameters)
    }

    /// A publisher. PRESENTATION, PARTITION, GROUP_DATA and ENTITY_FACTORY of `qos` apply.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`].
    pub fn create_publisher(&self, qos: QosSet) -> Result<Publisher> {
        Publisher::new(Arc::clone(&self.inner), qos)
    }

    /// A subscriber. PRESENTATION, PARTITION, GROUP_DATA and ENTITY_FACTORY of `qos` apply.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`].
    pub fn create_subscriber(&self, qos: QosSet) -> Result<Subscriber> {
        Subscriber::new(Arc::clone(&self.inner), qos)
    }

    /// Hears of the statuses in `mask` that no closer listener asked for; `None` removes the listener.
    pub fn set_listener<L>(&self, listener: Option<Arc<L>>, mask: StatusMask)
    where
        L: DomainParticipantListener + 'static,
    {
        let router = &self.inner.router;
        router.writer_listener.set(listener.clone().map(|l| l as Arc<dyn DataWriterListener>), mask);
        router.reader_listener.set(listener.map(|l| l as Arc<dyn DataReaderListener>), mask);
    }

    /// Calls `callback` with each remote participant that appears (`true`) or leaves (`false`).
    pub fn on_participant(&self, callback: impl Fn(Guid, bool) + Send + Sync + 'static) {
        let mut slot = self.inner.router.on_participant.write().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(Arc::new(callback));
    }

    /// Asserts the liveliness of all its MANUAL_BY_PARTICIPANT writers.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub fn assert_liveliness(&self) -> Result<()> {
        self.inner.slot()?.control(|control, now, out| control.assert_liveliness(now, out));
        Ok(())
    }

    /// Looks at the control plane: remote participants, endpoints, mismatches.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub fn inspect<R>(&self, look: impl FnOnce(&Participant) -> R) -> Result<R> {
        Ok(self.inner.slot()?.look(look))
    }

    /// A condition on the participant's own statuses.
    #[must_use]
    pub fn status_condition(&self, mask: StatusMask) -> Condition {
        Condition::status(Arc::clone(&self.inner) as Arc<dyn HasCore>, mask)
    }

    /// Its GUID.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.inner.guid_prefix.participant()
    }

    /// Its instance handle, as others see it in built-in topics.
    #[must_use]
    pub fn instance_handle(&self) -> InstanceHandle {
        self.guid().into()
    }

    /// Its domain.
    #[must_use]
    pub fn domain_id(&self) -> u16 {
        self.inner.domain_id
    }

    /// Its QoS.
    #[must_use]
    pub fn qos(&self) -> QosSet {
        self.inner.qos()
    }

    /// The interfaces of this machine: used, or why not.
    #[must_use]
    pub fn interfaces(&self) -> Vec<InterfaceReport> {
        self.inner.domain.interfaces()
    }

    /// What was dropped on the way in, by reason, for all participants of the process in this domain.
    #[must_use]
    pub fn drops(&self) -> DropCounters {
        self.inner.domain.drops()
    }
}

impl ParticipantInner {
    /// The running half of the participant.
    pub(crate) fn slot(&self) -> Result<&Arc<ParticipantSlot>> {
        self.slot.get().ok_or_else(|| Error::NotEnabled("the participant".into()))
    }

    pub(crate) fn qos(&self) -> QosSet {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn next_entity_key(&self) -> u32 {
        self.next_entity_key.fetch_add(1, Ordering::Relaxed)
    }

    /// The writers changed.
    pub(crate) fn note_manual_writers(&self) {
        if let Ok(slot) = self.slot() {
            self.has_manual_writers.store(slot.look(Participant::has_manual_writers), Ordering::SeqCst);
        }
    }

    /// A writer wrote: that asserts the participant (DCPS 1.4 §2.2.2.2.1.19).
    pub(crate) fn assert_manual_writers(&self) {
        if self.has_manual_writers.load(Ordering::Relaxed)
            && let Ok(slot) = self.slot()
        {
            slot.control(|control, now, out| control.assert_liveliness(now, out));
        }
    }

    pub(crate) fn forget_topic(&self, name: &str) {
        let mut topics = self.topics();
        if topics.get(name).is_some_and(|topic| topic.strong_count() == 0) {
            topics.remove(name);
        }
    }

    fn topics(&self) -> MutexGuard<'_, BTreeMap<String, Weak<TopicInner>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enable(&self) {
        if !self.core.enable() {
            return;
        }
        let mut config = discovery::ParticipantConfig::new(self.guid_prefix, self.domain_id);
        config.locators = self.domain.local_locators();
        config.name.clone_from(&self.name);
        config.qos = self.qos();
        config.seed = clock::seed();
        self.config.apply_to(&mut config);
        let control = Participant::new(config);
        let slot = self.domain.add_participant(control, Arc::clone(&self.router) as Arc<dyn EventSink>);
        // `enable` above lets one caller through, so the cell is still empty.
        let _ = self.slot.set(slot);
    }
}

impl HasCore for ParticipantInner {
    fn core(&self) -> &EntityCore {
        &self.core
    }
}

impl Drop for ParticipantInner {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.get() {
            self.domain.remove_participant(slot);
        }
    }
}

impl Router {
    fn new() -> Self {
        Self {
            endpoints: RwLock::new(BTreeMap::new()),
            writer_listener: ListenerSlot::new(),
            reader_listener: ListenerSlot::new(),
            on_participant: RwLock::new(None),
            on_mismatch: RwLock::new(None),
        }
    }

    pub(crate) fn add_writer(&self, id: EntityId, writer: Weak<WriterInner>) {
        self.edit(|endpoints| endpoints.insert(id, Endpoint::Writer(writer)));
    }

    pub(crate) fn add_reader(&self, id: EntityId, reader: Weak<ReaderInner>) {
        self.edit(|endpoints| endpoints.insert(id, Endpoint::Reader(reader)));
    }

    pub(crate) fn remove(&self, id: EntityId) {
        self.edit(|endpoints| endpoints.remove(&id));
    }

    pub(crate) fn set_on_mismatch(&self, callback: OnMismatch) {
        *self.on_mismatch.write().unwrap_or_else(PoisonError::into_inner) = Some(callback);
    }

    fn edit<R>(&self, change: impl FnOnce(&mut BTreeMap<EntityId, Endpoint>) -> R) {
        change(&mut self.endpoints.write().unwrap_or_else(PoisonError::into_inner));
    }

    fn find(&self, id: EntityId) -> Option<Endpoint> {
        self.endpoints.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn group_part(&self, reader: EntityId) {
        if let Some(Endpoint::Reader(reader)) = self.find(reader)
            && let Some(reader) = reader.upgrade()
        {
            reader.subscriber().group_part();
        }
    }

    fn report(&self, id: EntityId, kind: Option<StatusKind>) {
        match (self.find(id), kind) {
            (Some(Endpoint::Writer(writer)), kind) => {
                if let Some(writer) = writer.upgrade() {
                    writer.on_event(kind);
                }
            }
            (Some(Endpoint::Reader(reader)), Some(kind)) => {
                if let Some(reader) = reader.upgrade() {
                    reader.on_event(kind);
                }
            }
            _ => {}
        }
    }
}

impl EventSink for Router {
    fn events(&self, events: &mut Vec<Event>) {
        for event in events.drain(..) {
            match event {
                Event::Status { endpoint, kind } => self.report(endpoint.entity, Some(kind)),
                Event::DataAvailable { reader } => self.report(reader, Some(StatusKind::DataAvailable)),
                Event::Progress { endpoint } => self.report(endpoint, None),
                Event::GroupPart { reader } => self.group_part(reader),
                Event::ParticipantChanged { participant, alive } => {
                    let callback = self.on_participant.read().unwrap_or_else(PoisonError::into_inner).clone();
                    if let Some(callback) = callback {
                        callback(participant, alive);
                    }
                }
                Event::MismatchChanged { writer, reader, mismatched } => {
                    let callback = self.on_mismatch.read().unwrap_or_else(PoisonError::into_inner).clone();
                    if let Some(callback) = callback {
                        callback(writer, reader, mismatched);
                    }
                }
            }
        }
    }

    fn type_of(&self, endpoint: EntityId) -> Option<Fields> {
        match self.find(endpoint)? {
            Endpoint::Writer(writer) => writer.upgrade().map(|writer| writer.topic.fields),
            Endpoint::Reader(reader) => reader.upgrade().map(|reader| reader.topic.fields),
        }
    }
}

/// Refuses contradictory policies, naming the entity.
pub(crate) fn check_qos(qos: &QosSet, kind: EntityKind, entity: &str) -> Result<()> {
    plainsong_proto::qos::consistent(qos, kind).map_err(|inconsistent| Error::InconsistentPolicy {
        entity: entity.to_owned(),
        reason: inconsistent.to_string(),
    })
}
