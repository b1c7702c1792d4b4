//! Topics: a name, a type and the QoS that writers and readers may copy.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use plainsong_proto::cdr::DdsType;
use plainsong_proto::discovery::LocalEndpoint;
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::qos::{EntityKind, QosSet, changed_immutable};
use plainsong_proto::status::{CountStatus, StatusKind, StatusMask};
use plainsong_proto::type_support::TypeSupport;
use plainsong_proto::types::TypeDescription;

use crate::base::locks::lock;
use crate::builtin_topics::topic_handle;
use crate::condition::{Condition, HasCore};
use crate::consistent::check_qos;
use crate::entity::{EntityCore, ListenerSlot};
use crate::error::{Error, PreconditionNotMet, Result};
use crate::group::Member;
use crate::listener::TopicListener;
use crate::participant::{DomainParticipant, ParticipantInner};

/// A topic whose samples are of type `T`. Clones are the same topic.
pub struct Topic<T> {
    pub(crate) inner: Arc<TopicInner>,
    marker: PhantomData<fn() -> T>,
}

/// A topic whose type is not known to the compiler: what listeners get, and who has a type as an object
/// ([`DomainParticipant::create_any_topic`]).
#[derive(Clone)]
pub struct AnyTopic(pub(crate) Arc<TopicInner>);

pub(crate) struct TopicInner {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) name: String,
    pub(crate) ty: Arc<dyn TypeSupport>,
    /// What others are told of its type.
    description: Option<Arc<TypeDescription>>,
    qos: Mutex<QosSet>,
    pub(crate) core: EntityCore,
    pub(crate) listener: ListenerSlot<dyn TopicListener>,
    pub(crate) inconsistent: Mutex<Inconsistent>,
}

/// INCONSISTENT_TOPIC (DCPS 1.4 §2.2.4.1).
#[derive(Default)]
pub(crate) struct Inconsistent {
    status: CountStatus,
    /// The types of other topics of the name, each counted once.
    types: BTreeSet<String>,
}

impl TopicInner {
    pub(crate) fn new(
        participant: Arc<ParticipantInner>,
        name: String,
        ty: Arc<dyn TypeSupport>,
        qos: QosSet,
    ) -> Self {
        let description = ty.description();
        Self {
            participant,
            name,
            ty,
            description,
            qos: Mutex::new(qos),
            core: EntityCore::new(),
            listener: ListenerSlot::new(),
            inconsistent: Mutex::default(),
        }
    }

    /// What discovery tells of an endpoint of this topic.
    pub(crate) fn endpoint(&self, guid: Guid, qos: QosSet, group: EntityId) -> LocalEndpoint {
        let (topic, type_name) = (self.name.clone(), self.type_name().to_owned());
        let type_description = self.description.clone();
        LocalEndpoint {
            guid,
            topic,
            type_name,
            keyed: self.ty.is_keyed(),
            qos,
            group,
            content_filter: None,
            type_description,
        }
    }

    pub(crate) fn type_name(&self) -> &str {
        self.ty.name()
    }

    /// Whether it may be had as a topic of this type.
    pub(crate) fn is_of(&self, ty: &dyn TypeSupport) -> bool {
        // Of Rust types the names are enough: readers and writers know their own.
        let are_derived = self.ty.rust_type().is_some() && ty.rust_type().is_some();
        self.type_name() == ty.name() && (are_derived || self.ty.is_same_type(ty))
    }

    pub(crate) fn qos(&self) -> QosSet {
        lock(&self.qos).clone()
    }

    pub(crate) fn describe(&self) -> String {
        format!("topic '{}'", self.name)
    }

    /// Whether endpoints of `participant` can be made of it.
    pub(crate) fn check_usable(&self, participant: &Arc<ParticipantInner>) -> Result<()> {
        self.core.check_exists(|| self.describe())?;
        if Arc::ptr_eq(&self.participant, participant) {
            return Ok(());
        }
        Err(PreconditionNotMet::ForeignEntity { entity: self.describe(), factory: "participant" }.into())
    }

    /// Other topics of the name with another type.
    pub(crate) fn inconsistent_total(&self) -> i32 {
        lock(&self.inconsistent).status.total_count
    }

    fn set_qos(&self, qos: QosSet) -> Result<()> {
        self.core.check_exists(|| self.describe())?;
        let qos = self.participant.qos_of_topic(qos);
        check_qos(&qos, EntityKind::Topic, &self.describe())?;
        {
            let mut current = lock(&self.qos);
            if self.participant.core.is_enabled()
                && let Some(policy) = changed_immutable(&current, &qos, EntityKind::Topic)
            {
                return Err(Error::ImmutablePolicy { policy: policy.name, entity: self.describe() });
            }
            *current = qos;
        }
        // Endpoints announce the data of their topic.
        let (writers, readers) = self.participant.endpoints();
        let writers = writers.iter().filter(|writer| std::ptr::eq(&**writer.topic(), self));
        writers.into_iter().try_for_each(|writer| writer.announce_qos())?;
        let readers = readers.iter().filter(|reader| std::ptr::eq(&**reader.topic(), self));
        readers.into_iter().try_for_each(|reader| reader.announce_qos())
    }

    /// Another topic of the same name has this type.
    pub(crate) fn met(self: &Arc<Self>, type_name: &str) {
        if type_name != self.type_name() {
            self.met_inconsistent(type_name);
        }
    }

    /// Another topic of the same name has another type, which `what` tells from all others.
    pub(crate) fn met_inconsistent(self: &Arc<Self>, what: &str) {
        const TYPES_MAX: usize = 1_000;
        {
            let mut inconsistent = lock(&self.inconsistent);
            if inconsistent.types.len() >= TYPES_MAX || !inconsistent.types.insert(what.to_owned()) {
                return;
            }
            inconsistent.status.count();
        }
        let kind = StatusKind::InconsistentTopic;
        self.core.raise(kind);
        let listener =
            self.listener.wants(kind).or_else(|| Some(self.participant.router.listener.wants(kind)?));
        if let Some(listener) = listener {
            let topic = AnyTopic(Arc::clone(self));
            listener.on_inconsistent_topic(&topic, &topic.inconsistent_topic_status());
        }
    }
}

impl<T: DdsType> Topic<T> {
    pub(crate) fn from_inner(inner: Arc<TopicInner>) -> Self {
        Self { inner, marker: PhantomData }
    }

    /// The same topic without its type.
    #[must_use]
    pub fn as_any(&self) -> AnyTopic {
        AnyTopic(Arc::clone(&self.inner))
    }

    const fn inner(&self) -> &Arc<TopicInner> {
        &self.inner
    }
}

/// What a topic can do whether or not its type is known.
macro_rules! untyped_operations {
    () => {
        /// The topic's name.
        #[must_use]
        pub fn name(&self) -> &str {
            &self.inner().name
        }

        /// The registered name of its type.
        #[must_use]
        pub fn type_name(&self) -> &str {
            self.inner().type_name()
        }

        /// Its type.
        #[must_use]
        pub fn type_support(&self) -> Arc<dyn TypeSupport> {
            Arc::clone(&self.inner().ty)
        }

        /// Its instance handle, as others see it in the built-in topic `DCPSTopic`.
        #[must_use]
        pub fn instance_handle(&self) -> InstanceHandle {
            topic_handle(self.name(), self.type_name())
        }

        /// Its QoS.
        #[must_use]
        pub fn qos(&self) -> QosSet {
            self.inner().qos()
        }

        /// Changes the changeable policies; its writers and readers announce TOPIC_DATA anew.
        ///
        /// # Errors
        /// [`Error::ImmutablePolicy`] names the first policy that cannot change,
        /// [`Error::InconsistentPolicy`], [`Error::AlreadyDeleted`].
        pub fn set_qos(&self, qos: QosSet) -> Result<()> {
            self.inner().set_qos(qos)
        }

        /// Hears of INCONSISTENT_TOPIC if it is in `mask`; `None` removes the listener.
        pub fn set_listener(&self, listener: Option<Arc<dyn TopicListener>>, mask: impl Into<StatusMask>) {
            self.inner().listener.set(listener, mask.into());
        }

        /// The listener, if one is set.
        #[must_use]
        pub fn listener(&self) -> Option<Arc<dyn TopicListener>> {
            self.inner().listener.get()
        }

        /// INCONSISTENT_TOPIC: topics of other participants that have its name and another type. Reading it
        /// resets the change.
        #[must_use]
        pub fn inconsistent_topic_status(&self) -> CountStatus {
            self.inner().core.lower(StatusKind::InconsistentTopic);
            lock(&self.inner().inconsistent).status.take()
        }

        /// Statuses that changed since they were last read.
        #[must_use]
        pub fn status_changes(&self) -> StatusMask {
            self.inner().core.changed()
        }

        /// A condition on the statuses in `mask`.
        #[must_use]
        pub fn status_condition(&self, mask: impl Into<StatusMask>) -> Condition {
            Condition::status(Arc::clone(self.inner()) as Arc<dyn HasCore>, mask.into())
        }

        /// The participant it belongs to.
        #[must_use]
        pub fn participant(&self) -> DomainParticipant {
            DomainParticipant::from_inner(Arc::clone(&self.inner().participant))
        }
    };
}

impl<T: DdsType> Topic<T> {
    untyped_operations!();
}

impl AnyTopic {
    untyped_operations!();

    const fn inner(&self) -> &Arc<TopicInner> {
        &self.0
    }

    /// The topic with its type, when it is `T`.
    #[must_use]
    pub fn downcast<T: DdsType>(&self) -> Option<Topic<T>> {
        (self.0.ty.rust_type() == Some(TypeId::of::<T>())).then(|| Topic::from_inner(Arc::clone(&self.0)))
    }
}

impl HasCore for TopicInner {
    fn core(&self) -> &EntityCore {
        &self.core
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), marker: PhantomData }
    }
}

impl Drop for TopicInner {
    fn drop(&mut self) {
        if !self.core.is_inherited() {
            self.participant.forget_topic(&self.name);
        }
    }
}
