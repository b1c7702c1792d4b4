//! Domain participants and their factory (DCPS 1.4 §2.2.2.2).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use plainsong_proto::atomic;
use plainsong_proto::cdr::DdsType;
pub use plainsong_proto::discovery::DiscoveryError;
use plainsong_proto::discovery::{self, Participant};
use plainsong_proto::guid::{Guid, GuidPrefix};
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::locator::ports;
use plainsong_proto::qos::{EntityKind, QosSet, different};
use plainsong_proto::stats::DropCounters;
use plainsong_proto::status::StatusMask;
use plainsong_proto::time::Time;
use plainsong_proto::type_support::{self, TypeSupport};

use crate::at_fork;
use crate::atomic::{
    AtomicEvent, AtomicGroup, GroupSlot, Name, OnAtomicEvent, Opening, Storage, Voting, announce_voter, keeps,
};
use crate::base::clock;
use crate::base::config::Config;
use crate::base::locks::lock;
use crate::base::process;
use crate::base::trace;
use crate::builtin_topics::Builtin;
use crate::condition::{Condition, HasCore};
use crate::consistent::check_qos;
use crate::data_reader::ReaderInner;
use crate::data_writer::WriterInner;
use crate::domain::{Domain, EventSink, InterfaceReport};
use crate::entity::EntityCore;
use crate::error::{BadParameter, Error, OutOfResources, PreconditionNotMet, Result};
use crate::event_router::{self, Router};
use crate::listener::DomainParticipantListener;
use crate::multi_topic::{Constituent, MultiTopic};
use crate::publisher::{Publisher, PublisherInner};
use crate::runtime::ParticipantSlot;
#[cfg(unix)]
use crate::shutdown_hook;
use crate::statistics::{Publication, STATISTICS_TOPIC};
use crate::subscriber::{Subscriber, SubscriberInner};
use crate::topic::{AnyTopic, Topic, TopicInner};
use crate::topic_description::{Derived, WritableTopic};

/// Creates participants, with a configuration and default QoS of its own.
pub struct DomainParticipantFactory {
    config: Config,
    qos: QosSet,
    default_qos: QosSet,
}

/// Membership of an application in a domain. Clones are the same participant; it leaves the domain when the
/// last clone and the last entity made by it are dropped.
///
/// It belongs to the process that made it: after `fork()` every call in the child gives [`Error::Forked`],
/// whatever the child drops stays with the parent, and a participant that the child makes works.
#[derive(Clone)]
pub struct DomainParticipant {
    pub(crate) inner: Arc<ParticipantInner>,
    /// Lives as long as some handle of the participant does.
    pub(crate) builtin: Arc<Builtin>,
}

pub(crate) struct ParticipantInner {
    pub(crate) domain_id: u16,
    pub(crate) guid_prefix: GuidPrefix,
    config: Config,
    qos: Mutex<QosSet>,
    pub(crate) name: String,
    domain: Arc<Domain>,
    slot: OnceLock<Arc<ParticipantSlot>>,
    pub(crate) core: EntityCore,
    pub(crate) router: Arc<Router>,
    topics: Mutex<BTreeMap<String, Weak<TopicInner>>>,
    pub(crate) derived_topics: Mutex<BTreeMap<String, Weak<dyn Derived>>>,
    pub(crate) groups: Mutex<Groups>,
    pub(crate) defaults: Mutex<DefaultQos>,
    builtin: Mutex<Weak<Builtin>>,
    /// Groups of topics with CONSISTENCY ATOMIC.
    atomic_groups: Mutex<BTreeMap<Name, Arc<GroupSlot>>>,
    /// Who votes in them.
    pub(crate) voting: Voting,
    /// What outlives the participant; dropped with it, after its groups.
    storage: Mutex<Option<Arc<Storage>>>,
    next_entity_key: AtomicU32,
    /// Tells others what it counts, while they read it.
    pub(crate) publication: Mutex<Option<Publication>>,
    /// Some writer is MANUAL_BY_PARTICIPANT: every write asserts the participant.
    has_manual_writers: AtomicBool,
}

/// The publishers and subscribers of a participant.
#[derive(Default)]
pub(crate) struct Groups {
    pub(crate) publishers: Vec<Weak<PublisherInner>>,
    pub(crate) subscribers: Vec<Weak<SubscriberInner>>,
}

/// What topics, publishers and subscribers have by default.
#[derive(Default)]
pub(crate) struct DefaultQos {
    pub(crate) topic: QosSet,
    pub(crate) publisher: QosSet,
    pub(crate) subscriber: QosSet,
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
        Self { config, qos: QosSet::default(), default_qos: QosSet::default() }
    }

    /// Sets the factory's own QoS: with ENTITY_FACTORY off, participants are created disabled.
    pub fn set_qos(&mut self, qos: QosSet) {
        self.qos = qos;
    }

    /// Its own QoS.
    #[must_use]
    pub const fn qos(&self) -> &QosSet {
        &self.qos
    }

    /// Sets the QoS that [`Self::default_participant_qos`] gives.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`]; nothing changed.
    pub fn set_default_participant_qos(&mut self, qos: QosSet) -> Result<()> {
        check_qos(&qos, EntityKind::Participant, "participants by default")?;
        self.default_qos = qos;
        Ok(())
    }

    /// The QoS for participants for which nothing else is said.
    #[must_use]
    pub fn default_participant_qos(&self) -> QosSet {
        self.default_qos.clone()
    }

    /// A participant of this process in `domain_id`, if there is one; of several, any.
    #[must_use]
    pub fn lookup_participant(&self, domain_id: u16) -> Option<DomainParticipant> {
        let mut found = all().into_iter().filter(|it| it.domain_id == domain_id && it.core.is_to_end());
        found.next().map(DomainParticipant::from_inner)
    }

    /// Joins domain `domain_id` (0 to 232).
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a domain whose ports do not exist or a name that cannot be announced,
    /// [`Error::Io`] when no socket can be opened, [`Error::InconsistentPolicy`] for contradictory QoS.
    pub fn create_participant(&self, domain_id: u16, name: &str, qos: QosSet) -> Result<DomainParticipant> {
        let qos = qos.or_default(EntityKind::Participant, || self.default_qos.clone());
        if domain_id > ports::DOMAIN_MAX {
            return Err(BadParameter::Domain { domain_id, max: ports::DOMAIN_MAX }.into());
        }
        BadParameter::check_name("participant", name, 0)?;
        check_qos(&qos, EntityKind::Participant, "participant")?;
        at_fork::watch();
        let domain = Domain::join(domain_id, &self.config)
            .map_err(|source| Error::Io { what: format!("joining domain {domain_id}"), source })?;
        self.create_in(domain, name, qos)
    }

    /// A participant in a domain that was opened before.
    pub(crate) fn create_in(
        &self,
        domain: Arc<Domain>,
        name: &str,
        qos: QosSet,
    ) -> Result<DomainParticipant> {
        let voting = Voting::of(&self.config)?;
        let inner = Arc::new(ParticipantInner {
            domain_id: domain.domain_id(),
            guid_prefix: clock::fresh_guid_prefix(),
            config: self.config.clone(),
            qos: Mutex::new(qos),
            name: name.to_owned(),
            domain,
            slot: OnceLock::new(),
            core: EntityCore::new(),
            router: Arc::new(Router::new()),
            topics: Mutex::default(),
            derived_topics: Mutex::default(),
            groups: Mutex::default(),
            defaults: Mutex::default(),
            builtin: Mutex::default(),
            atomic_groups: Mutex::default(),
            voting,
            storage: Mutex::default(),
            next_entity_key: AtomicU32::new(1),
            publication: Mutex::new(None),
            has_manual_writers: AtomicBool::new(false),
        });
        // The router is new, so its cell is empty.
        let _ = inner.router.participant.set(Arc::downgrade(&inner));
        lock(&PARTICIPANTS).push(Arc::downgrade(&inner));
        #[cfg(unix)]
        shutdown_hook::install();
        let participant = DomainParticipant::from_inner(inner);
        if self.qos.entity_factory.autoenable_created_entities {
            participant.enable()?;
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

    pub(crate) fn from_inner(inner: Arc<ParticipantInner>) -> Self {
        let builtin = {
            let mut known = lock(&inner.builtin);
            known.upgrade().unwrap_or_else(|| {
                let builtin = Arc::new(Builtin::default());
                *known = Arc::downgrade(&builtin);
                builtin
            })
        };
        Self { inner, builtin }
    }

    /// Announces a participant that was created disabled, and enables what it contains when its
    /// ENTITY_FACTORY says so.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] when an endpoint cannot be announced, [`Error::AlreadyDeleted`].
    pub fn enable(&self) -> Result<()> {
        self.inner.enable()
    }

    /// A topic of type `T`. The same name gives the same topic, if `qos` says nothing ([`QosSet::default`])
    /// or what the topic has.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when the name is in use, with another type or another QoS,
    /// [`Error::BadParameter`] for a name that is empty or too long, or has a NUL.
    pub fn create_topic<T: DdsType>(&self, name: &str, qos: QosSet) -> Result<Topic<T>> {
        self.topic_of(name, type_support::of::<T>(), qos).map(Topic::from_inner)
    }

    /// A topic of a type that is an object: of a [`DynamicType`](type_support::DynamicType), perhaps. Its
    /// endpoints come from [`Publisher::create_writer`] and [`Subscriber::create_reader`], and have encoded
    /// samples.
    ///
    /// # Errors
    /// As [`Self::create_topic`].
    pub fn create_any_topic(&self, name: &str, ty: Arc<dyn TypeSupport>, qos: QosSet) -> Result<AnyTopic> {
        self.topic_of(name, ty, qos).map(AnyTopic)
    }

    fn topic_of(&self, name: &str, ty: Arc<dyn TypeSupport>, qos: QosSet) -> Result<Arc<TopicInner>> {
        BadParameter::check_name("topic", name, 1)?;
        self.inner.check_exists()?;
        let says_nothing = qos == QosSet::default();
        let qos = self.inner.qos_of_topic(qos);
        check_qos(&qos, EntityKind::Topic, &format!("topic '{name}'"))?;
        let kept = self.inner.keep_for_topic(name)?;
        let mut topics = self.inner.topics();
        let known = topics.get(name).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| !known.core.is_deleted()) {
            if !known.is_of(&*ty) {
                let [topic, type_name, wanted] = [name, known.type_name(), ty.name()].map(str::to_owned);
                return Err(PreconditionNotMet::OtherType { topic, type_name, wanted }.into());
            }
            if !says_nothing && let Some(policy) = different(&known.qos(), &qos, EntityKind::Topic) {
                let topic = name.to_owned();
                return Err(PreconditionNotMet::OtherQos { topic, policy: policy.name }.into());
            }
            return Ok(known);
        }
        let inner = Arc::new(TopicInner::new(Arc::clone(&self.inner), name.to_owned(), ty, qos));
        topics.insert(name.to_owned(), Arc::downgrade(&inner));
        drop((topics, kept));
        self.inner.compare_topic(&inner);
        Ok(inner)
    }

    /// What of `topic` the filter `expression` is true of, `%0`, `%1`, … standing for `parameters`: values as
    /// they would be written in the expression, strings in quotes. Readers of it come from
    /// [`Subscriber::create_reader`].
    ///
    /// # Errors
    /// [`Error::BadParameter`] for an empty or overlong name, and for an expression that is wrong or does not
    /// suit the type: it says in which column. [`Error::PreconditionNotMet`] when the name is in use.
    pub fn create_content_filtered_topic<D: WritableTopic>(
        &self,
        name: &str,
        topic: &D,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<D::ContentFiltered> {
        topic.new_content_filtered(self, name, expression, parameters)
    }

    pub(crate) fn check_own(&self, topic: &TopicInner) -> Result<()> {
        self.inner.check_exists()?;
        if Arc::ptr_eq(&topic.participant, &self.inner) {
            return Ok(());
        }
        Err(PreconditionNotMet::ForeignEntity { entity: topic.describe(), factory: "participant" }.into())
    }

    /// A view of several topics, joined on their keys, with samples of type `T`; see [`crate::multi_topic`]
    /// for what `expression` can say. `topics` are those after FROM, for example `&[(&location).into(), …]`.
    /// Readers of it come from [`Subscriber::create_reader`].
    ///
    /// # Errors
    /// [`Error::BadParameter`] for an expression that is wrong or does not suit the types,
    /// [`Error::PreconditionNotMet`] when the name is in use.
    pub fn create_multi_topic<T: DdsType>(
        &self,
        name: &str,
        expression: &str,
        parameters: Vec<String>,
        topics: &[Constituent],
    ) -> Result<MultiTopic<T>> {
        self.inner.check_exists()?;
        MultiTopic::new(&self.inner, name, expression, parameters, topics)
    }

    /// A publisher. PRESENTATION, PARTITION, GROUP_DATA and ENTITY_FACTORY of `qos` apply.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`].
    pub fn create_publisher(&self, qos: QosSet) -> Result<Publisher> {
        let publisher = Publisher::new(Arc::clone(&self.inner), qos)?;
        let mut groups = lock(&self.inner.groups);
        groups.publishers.retain(|publisher| publisher.strong_count() > 0);
        groups.publishers.push(Arc::downgrade(&publisher.inner));
        drop(groups);
        if self.inner.autoenables() {
            publisher.enable()?;
        }
        Ok(publisher)
    }

    /// A subscriber. PRESENTATION, PARTITION, GROUP_DATA and ENTITY_FACTORY of `qos` apply.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`].
    pub fn create_subscriber(&self, qos: QosSet) -> Result<Subscriber> {
        let subscriber = Subscriber::new(Arc::clone(&self.inner), qos)?;
        let mut groups = lock(&self.inner.groups);
        groups.subscribers.retain(|subscriber| subscriber.strong_count() > 0);
        groups.subscribers.push(Arc::downgrade(&subscriber.inner));
        drop(groups);
        if self.inner.autoenables() {
            subscriber.enable()?;
        }
        Ok(subscriber)
    }

    /// Hears of the statuses in `mask` that no closer listener asked for; `None` removes the listener.
    pub fn set_listener(
        &self,
        listener: Option<Arc<dyn DomainParticipantListener>>,
        mask: impl Into<StatusMask>,
    ) {
        self.inner.router.listener.set(listener, mask.into());
    }

    /// The listener, if one is set.
    #[must_use]
    pub fn listener(&self) -> Option<Arc<dyn DomainParticipantListener>> {
        self.inner.router.listener.get()
    }

    /// Calls `callback` with the handle of each remote participant that appears (`true`) or leaves (`false`).
    pub fn on_participant(&self, callback: impl Fn(InstanceHandle, bool) + Send + Sync + 'static) {
        let callback = Arc::new(move |guid: Guid, is_there| callback(guid.into(), is_there));
        event_router::replace(&self.inner.router.on_participant, callback);
    }

    /// Calls `callback` with the topic and what happened to this participant as a member of its group: of
    /// topics with CONSISTENCY ATOMIC.
    pub fn on_atomic_event(&self, callback: impl Fn(&str, AtomicEvent) + Send + Sync + 'static) {
        event_router::replace(&self.inner.router.on_atomic_event, Arc::new(callback) as OnAtomicEvent);
    }

    /// The groups of topics with CONSISTENCY ATOMIC of which it is a member: who else is, and how far each
    /// is.
    #[must_use]
    pub fn atomic_groups(&self) -> Vec<AtomicGroup> {
        let groups: Vec<_> = lock(&self.inner.atomic_groups).values().cloned().collect();
        let mut known: Vec<AtomicGroup> = groups.iter().map(|group| group.look()).collect();
        if let Ok(slot) = self.inner.slot() {
            slot.look(|control| {
                known.iter_mut().zip(&groups).for_each(|(known, group)| group.add_strangers(control, known));
            });
        }
        known
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
    pub(crate) fn inspect<R>(&self, look: impl FnOnce(&Participant) -> R) -> Result<R> {
        Ok(self.inner.slot()?.look(look))
    }

    /// A condition on the participant's own statuses.
    #[must_use]
    pub fn status_condition(&self, mask: impl Into<StatusMask>) -> Condition {
        Condition::status(Arc::clone(&self.inner) as Arc<dyn HasCore>, mask.into())
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

    /// Changes USER_DATA, PROPERTY and ENTITY_FACTORY.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`], [`Error::AlreadyDeleted`].
    pub fn set_qos(&self, mut qos: QosSet) -> Result<()> {
        self.inner.check_exists()?;
        check_qos(&qos, EntityKind::Participant, "participant")?;
        lock(&self.inner.qos).clone_from(&qos);
        announce_voter(&mut qos, self.inner.voting.own());
        if let Ok(slot) = self.inner.slot() {
            slot.control(|control, now, out| control.set_qos(now, qos, out));
        }
        Ok(())
    }

    /// The time that stamps what is written and received: `Time::now()`.
    #[must_use]
    pub fn current_time(&self) -> Time {
        clock::now().wall
    }

    /// Statuses that changed since they were last read: a participant has none of its own.
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        self.inner.core.changed()
    }

    /// The interfaces of this machine: used, or why not.
    #[must_use]
    pub fn interfaces(&self) -> Vec<InterfaceReport> {
        self.inner.domain.interfaces()
    }

    /// What was dropped on the way in, or had no way out, by reason, for all participants of the process in
    /// this domain.
    #[must_use]
    pub fn drops(&self) -> DropCounters {
        self.inner.domain.drops()
    }
}

impl ParticipantInner {
    /// Refuses what needs a participant that is there.
    pub(crate) fn check_exists(&self) -> Result<()> {
        self.core.check_exists(|| "the participant".into())
    }

    /// Whether publishers and subscribers are enabled as they are made.
    fn autoenables(&self) -> bool {
        self.core.is_enabled() && self.qos().entity_factory.autoenable_created_entities
    }

    /// Its publishers and subscribers.
    pub(crate) fn groups(&self) -> (Vec<Arc<PublisherInner>>, Vec<Arc<SubscriberInner>>) {
        let groups = lock(&self.groups);
        let publishers = groups.publishers.iter().filter_map(Weak::upgrade);
        let subscribers = groups.subscribers.iter().filter_map(Weak::upgrade);
        let publishers = publishers.filter(|publisher| !publisher.core.is_deleted()).collect();
        (publishers, subscribers.filter(|subscriber| !subscriber.core.is_deleted()).collect())
    }

    /// Its writers and readers.
    pub(crate) fn endpoints(&self) -> (Vec<Arc<WriterInner>>, Vec<Arc<ReaderInner>>) {
        let (publishers, subscribers) = self.groups();
        let writers = publishers.iter().flat_map(|publisher| publisher.members()).collect();
        (writers, subscribers.iter().flat_map(|subscriber| subscriber.members()).collect())
    }

    /// The topic of that name, if there is one.
    pub(crate) fn topic(&self, name: &str) -> Option<Arc<TopicInner>> {
        let topic = self.topics().get(name).and_then(Weak::upgrade);
        topic.filter(|topic| !topic.core.is_deleted())
    }

    /// Its topics.
    pub(crate) fn all_topics(&self) -> Vec<Arc<TopicInner>> {
        let topics: Vec<_> = self.topics().values().filter_map(Weak::upgrade).collect();
        topics.into_iter().filter(|topic| !topic.core.is_deleted()).collect()
    }

    /// Looks whether others have a topic of the same name with another type.
    fn compare_topic(&self, topic: &Arc<TopicInner>) {
        let Ok(slot) = self.slot() else { return };
        let types: Vec<String> = slot.look(|control| {
            let others = control.remote_endpoints().filter(|other| other.topic == topic.name);
            others.map(|other| other.type_name.to_owned()).collect()
        });
        types.iter().for_each(|type_name| topic.met(type_name));
    }

    /// An endpoint of another participant came, changed or left.
    pub(crate) fn endpoint_changed(&self, endpoint: Guid) {
        let Ok(slot) = self.slot() else { return };
        let named = slot.look(|control| {
            control.endpoint(endpoint).map(|it| (it.topic.to_owned(), it.type_name.to_owned()))
        });
        if let Some((topic, type_name)) = named {
            if topic == STATISTICS_TOPIC {
                self.tell_statistics(slot, endpoint);
            }
            if let Some(topic) = self.topic(&topic) {
                topic.met(&type_name);
            }
        }
        if let Some(builtin) = self.builtin() {
            builtin.endpoint_changed(slot, endpoint);
        }
    }

    /// The group of a topic in a partition, which is joined if it was not.
    pub(crate) fn join_group(&self, topic: &str, qos: &QosSet) -> Result<Arc<GroupSlot>> {
        let partition = qos.partition.first().map_or("", String::as_str);
        let name = Name::new(topic, partition);
        let keeps = keeps(qos);
        let slot = self.slot()?;
        let mut groups = lock(&self.atomic_groups);
        if let Some(known) = groups.get(&name) {
            if known.keeps() < keeps {
                return Err(PreconditionNotMet::KeepsLess { topic: topic.to_owned() }.into());
            }
            return Ok(Arc::clone(known));
        }
        let group = self.open_group(name.clone(), slot, keeps, false)?;
        groups.insert(name, Arc::clone(&group));
        drop(groups);
        self.router.add_group(&group);
        group.announce().map_err(OutOfResources::from)?;
        Ok(group)
    }

    /// Votes in a group of others.
    pub(crate) fn witness_group(&self, name: Name, groups_max: usize) -> Result<()> {
        let slot = self.slot()?;
        let mut groups = lock(&self.atomic_groups);
        if groups.len() >= groups_max || !self.storage()?.has_room_for(&name, groups_max)? {
            return Err(PreconditionNotMet::TooManyGroups { max: groups_max }.into());
        }
        let group = self.open_group(name.clone(), slot, atomic::Storage::None, true)?;
        groups.insert(name, Arc::clone(&group));
        drop(groups);
        self.router.add_group(&group);
        group.announce().map_err(OutOfResources::from)?;
        Ok(())
    }

    /// All groups in which it is or votes.
    pub(crate) fn groups_there(&self) -> Vec<(Name, Arc<GroupSlot>)> {
        lock(&self.atomic_groups).iter().map(|(name, group)| (name.clone(), Arc::clone(group))).collect()
    }

    fn open_group(
        &self,
        name: Name,
        slot: &Arc<ParticipantSlot>,
        keeps: atomic::Storage,
        is_witness: bool,
    ) -> Result<Arc<GroupSlot>> {
        let needs_disk = self.voting.own().is_some() || keeps != atomic::Storage::None;
        let storage = if needs_disk { Some(self.storage()?) } else { None };
        let opening = Opening {
            name,
            voting: &self.voting,
            keeps,
            storage: storage.as_deref(),
            is_witness,
            limits: (self.config.writer_limits(), self.config.reader_limits()),
        };
        Ok(GroupSlot::open(&opening, slot, || self.next_entity_key())?)
    }

    /// Where it keeps what must outlive it: opened when it first does.
    pub(crate) fn storage(&self) -> Result<Arc<Storage>> {
        let mut storage = lock(&self.storage);
        if let Some(storage) = &*storage {
            return Ok(Arc::clone(storage));
        }
        let directory = self.config.state_directory.as_deref().ok_or(PreconditionNotMet::NoStateDirectory)?;
        let opened = Arc::new(Storage::open(directory, self.domain_id)?);
        Ok(Arc::clone(storage.insert(opened)))
    }

    /// The last endpoint that used a group is gone.
    pub(crate) fn leave_group(&self, group: &Arc<GroupSlot>) {
        lock(&self.atomic_groups).retain(|_, it| !Arc::ptr_eq(it, group));
        group.leave();
        self.router.remove_group(group);
    }

    pub(crate) fn builtin(&self) -> Option<Arc<Builtin>> {
        lock(&self.builtin).upgrade()
    }

    /// The running half of the participant.
    pub(crate) fn slot(&self) -> Result<&Arc<ParticipantSlot>> {
        self.check_exists()?;
        self.slot.get().ok_or_else(|| Error::NotEnabled("the participant".into()))
    }

    pub(crate) fn qos(&self) -> QosSet {
        lock(&self.qos).clone()
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn domain_drops(&self) -> DropCounters {
        self.domain.drops()
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
        lock(&self.topics)
    }

    fn enable(&self) -> Result<()> {
        self.check_exists()?;
        if !self.core.enable() {
            return Ok(());
        }
        let mut config = discovery::ParticipantConfig::new(self.guid_prefix, self.domain_id);
        config.locators = self.domain.local_locators();
        config.name.clone_from(&self.name);
        config.qos = self.qos();
        announce_voter(&mut config.qos, self.voting.own());
        config.process = process::describe();
        config.seed = clock::seed();
        config.secret = clock::secret();
        self.config.apply_to(&mut config);
        let control = Participant::new(config);
        let slot = self.domain.add_participant(control, Arc::clone(&self.router) as Arc<dyn EventSink>);
        trace::participant_created(self.guid_prefix.participant(), self.domain_id, &self.name);
        // `enable` above lets one caller through, so the cell is still empty.
        let _ = self.slot.set(slot);
        if self.qos().entity_factory.autoenable_created_entities {
            let (publishers, subscribers) = self.groups();
            publishers.iter().try_for_each(|publisher| publisher.enable())?;
            subscribers.iter().try_for_each(|subscriber| subscriber.enable_at_once())?;
        }
        self.all_topics().iter().for_each(|topic| self.compare_topic(topic));
        Ok(())
    }

    /// Leaves the domain for good.
    pub(crate) fn delete(&self) -> Result<()> {
        self.check_exists()?;
        if !self.core.delete() {
            return self.check_exists();
        }
        if let Some(slot) = self.slot.get() {
            let groups = std::mem::take(&mut *lock(&self.atomic_groups));
            groups.values().for_each(|group| group.leave());
            drop(lock(&self.storage).take());
            trace::participant_deleted(self.guid_prefix.participant());
            self.domain.remove_participant(slot);
        }
        Ok(())
    }
}

impl HasCore for ParticipantInner {
    fn core(&self) -> &EntityCore {
        &self.core
    }
}

impl Drop for ParticipantInner {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.get().filter(|_| self.core.is_to_end()) {
            trace::participant_deleted(self.guid_prefix.participant());
            self.domain.remove_participant(slot);
        }
    }
}

/// All participants of the process.
static PARTICIPANTS: Mutex<Vec<Weak<ParticipantInner>>> = Mutex::new(Vec::new());

/// Nobody makes a participant while this lives.
#[cfg(unix)]
pub(crate) type AllLocked = MutexGuard<'static, Vec<Weak<ParticipantInner>>>;

#[cfg(unix)]
pub(crate) fn lock_all() -> AllLocked {
    lock(&PARTICIPANTS)
}

/// All participants of the process; some may be deleted, or inherited from the process that it was forked
/// from.
pub(crate) fn all() -> Vec<Arc<ParticipantInner>> {
    let mut participants = lock(&PARTICIPANTS);
    participants.retain(|participant| participant.strong_count() > 0);
    participants.iter().filter_map(Weak::upgrade).collect()
}
