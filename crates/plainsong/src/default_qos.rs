//! Default QoS by factory, and QoS out of a topic's (DCPS 1.4 §2.2.2.2.1.20 to .25, §2.2.2.4.1.15 to .17,
//! §2.2.2.5.2.15 to .17). [`QosSet::default`], which says nothing, stands for what is set here: for an entity
//! that is created with it, and for one that is given it by `set_qos`.

use plainsong_proto::qos::{EntityKind, QosSet};

use crate::base::locks::lock;
use crate::consistent::check_qos;
use crate::error::Result;
use crate::participant::{DomainParticipant, ParticipantInner};
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;

impl DomainParticipant {
    /// The QoS for topics for which nothing else is said.
    #[must_use]
    pub fn default_topic_qos(&self) -> QosSet {
        self.inner.qos_of_topic(QosSet::default())
    }

    /// Sets what [`Self::default_topic_qos`] gives.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`]; nothing changed.
    pub fn set_default_topic_qos(&self, qos: QosSet) -> Result<()> {
        check_qos(&qos, EntityKind::Topic, "topics by default")?;
        lock(&self.inner.defaults).topic = qos;
        Ok(())
    }

    /// The QoS for publishers for which nothing else is said.
    #[must_use]
    pub fn default_publisher_qos(&self) -> QosSet {
        lock(&self.inner.defaults).publisher.clone()
    }

    /// Sets what [`Self::default_publisher_qos`] gives.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`]; nothing changed.
    pub fn set_default_publisher_qos(&self, qos: QosSet) -> Result<()> {
        check_qos(&qos, EntityKind::Publisher, "publishers by default")?;
        lock(&self.inner.defaults).publisher = qos;
        Ok(())
    }

    /// The QoS for subscribers for which nothing else is said.
    #[must_use]
    pub fn default_subscriber_qos(&self) -> QosSet {
        lock(&self.inner.defaults).subscriber.clone()
    }

    /// Sets what [`Self::default_subscriber_qos`] gives.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`]; nothing changed.
    pub fn set_default_subscriber_qos(&self, qos: QosSet) -> Result<()> {
        check_qos(&qos, EntityKind::Subscriber, "subscribers by default")?;
        lock(&self.inner.defaults).subscriber = qos;
        Ok(())
    }
}

impl ParticipantInner {
    /// What a topic has that is asked to have `qos`.
    pub(crate) fn qos_of_topic(&self, qos: QosSet) -> QosSet {
        qos.or_default(EntityKind::Topic, || lock(&self.defaults).topic.clone())
    }

    /// What a publisher or subscriber has of which nothing is said.
    pub(crate) fn default_group_qos(&self, kind: EntityKind) -> QosSet {
        let defaults = lock(&self.defaults);
        if kind == EntityKind::Publisher { defaults.publisher.clone() } else { defaults.subscriber.clone() }
    }
}

impl Publisher {
    /// The QoS for writers for which nothing else is said.
    #[must_use]
    pub fn default_writer_qos(&self) -> QosSet {
        self.inner.default_qos()
    }

    /// Sets what [`Self::default_writer_qos`] gives.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`]; nothing changed.
    pub fn set_default_writer_qos(&self, qos: QosSet) -> Result<()> {
        self.inner.set_default_qos(qos)
    }

    /// Replaces the policies of `writer_qos` that topics have too by those of `topic_qos`.
    pub fn copy_from_topic_qos(writer_qos: &mut QosSet, topic_qos: &QosSet) {
        copy_shared(writer_qos, topic_qos);
        writer_qos.durability_service = topic_qos.durability_service;
        writer_qos.transport_priority = topic_qos.transport_priority;
        writer_qos.lifespan = topic_qos.lifespan;
    }
}

impl Subscriber {
    /// The QoS for readers for which nothing else is said.
    #[must_use]
    pub fn default_reader_qos(&self) -> QosSet {
        self.inner.default_qos()
    }

    /// Sets what [`Self::default_reader_qos`] gives.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`]; nothing changed.
    pub fn set_default_reader_qos(&self, qos: QosSet) -> Result<()> {
        self.inner.set_default_qos(qos)
    }

    /// Replaces the policies of `reader_qos` that topics have too by those of `topic_qos`.
    pub fn copy_from_topic_qos(reader_qos: &mut QosSet, topic_qos: &QosSet) {
        copy_shared(reader_qos, topic_qos);
    }
}

/// The policies that topics, writers and readers have.
fn copy_shared(qos: &mut QosSet, topic: &QosSet) {
    qos.durability = topic.durability;
    qos.deadline = topic.deadline;
    qos.latency_budget = topic.latency_budget;
    qos.liveliness = topic.liveliness;
    qos.reliability = topic.reliability;
    qos.destination_order = topic.destination_order;
    qos.history = topic.history;
    qos.resource_limits = topic.resource_limits;
    qos.ownership = topic.ownership;
    qos.data_representation.clone_from(&topic.data_representation);
    qos.consistency = topic.consistency;
}
