//! Topics: a name, a type and the QoS that writers and readers may copy.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use plainsong_proto::cdr::{DdsType, Fields};
use plainsong_proto::discovery::LocalEndpoint;
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::qos::QosSet;

use crate::participant::{DomainParticipant, ParticipantInner};

/// A topic whose samples are of type `T`. Clones are the same topic.
pub struct Topic<T> {
    pub(crate) inner: Arc<TopicInner>,
    marker: PhantomData<fn() -> T>,
}

pub(crate) struct TopicInner {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) name: String,
    pub(crate) type_name: &'static str,
    pub(crate) keyed: bool,
    /// Its members, for people.
    pub(crate) fields: Fields,
    qos: Mutex<QosSet>,
}

impl TopicInner {
    pub(crate) fn new<T: DdsType>(participant: Arc<ParticipantInner>, name: String, qos: QosSet) -> Self {
        let (type_name, keyed, fields) = (T::TYPE_NAME, T::KEYED, T::fields());
        Self { participant, name, type_name, keyed, fields, qos: Mutex::new(qos) }
    }

    /// What discovery tells of an endpoint of this topic.
    pub(crate) fn endpoint(&self, guid: Guid, qos: QosSet, group: EntityId) -> LocalEndpoint {
        let (topic, type_name) = (self.name.clone(), self.type_name.to_owned());
        LocalEndpoint { guid, topic, type_name, keyed: self.keyed, qos, group, content_filter: None }
    }

    pub(crate) fn qos(&self) -> QosSet {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T: DdsType> Topic<T> {
    pub(crate) fn from_inner(inner: Arc<TopicInner>) -> Self {
        Self { inner, marker: PhantomData }
    }

    /// The topic's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The registered name of its type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.inner.type_name
    }

    /// Its QoS.
    #[must_use]
    pub fn qos(&self) -> QosSet {
        self.inner.qos()
    }

    /// The participant it belongs to.
    #[must_use]
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::from_inner(Arc::clone(&self.inner.participant))
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), marker: PhantomData }
    }
}

impl Drop for TopicInner {
    fn drop(&mut self) {
        self.participant.forget_topic(&self.name);
    }
}
