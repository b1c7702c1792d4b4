//! Publishers: writers that share partition, presentation and a listener.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use plainsong_proto::cdr::DdsType;
use plainsong_proto::qos::{EntityKind, QosSet};
use plainsong_proto::status::StatusMask;

use crate::data_writer::{DataWriter, WriterInner};
use crate::entity::ListenerSlot;
use crate::error::Result;
use crate::listener::DataWriterListener;
use crate::participant::{DomainParticipant, ParticipantInner, check_qos};
use crate::topic::Topic;

/// A group of writers. Clones are the same publisher.
#[derive(Clone)]
pub struct Publisher {
    pub(crate) inner: Arc<PublisherInner>,
}

pub(crate) struct PublisherInner {
    pub(crate) participant: Arc<ParticipantInner>,
    qos: Mutex<QosSet>,
    pub(crate) listener: ListenerSlot<dyn DataWriterListener>,
    writers: Mutex<Vec<Weak<WriterInner>>>,
}

impl Publisher {
    pub(crate) fn new(participant: Arc<ParticipantInner>, qos: QosSet) -> Self {
        Self {
            inner: Arc::new(PublisherInner {
                participant,
                qos: Mutex::new(qos),
                listener: ListenerSlot::new(),
                writers: Mutex::new(Vec::new()),
            }),
        }
    }

    /// A writer of `topic`. With ENTITY_FACTORY off it is created disabled.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`] for contradictory QoS.
    pub fn create_writer<T: DdsType>(&self, topic: &Topic<T>, qos: QosSet) -> Result<DataWriter<T>> {
        let writer = DataWriter::create(Arc::clone(&self.inner), topic, qos)?;
        let mut writers = self.inner.writers.lock().unwrap_or_else(PoisonError::into_inner);
        writers.retain(|writer| writer.strong_count() > 0);
        writers.push(Arc::downgrade(writer.inner()));
        drop(writers);
        if self.inner.qos().entity_factory.autoenable_created_entities
            && self.inner.participant.core.is_enabled()
        {
            writer.enable()?;
        }
        Ok(writer)
    }

    /// Hears of the statuses in `mask` of all its writers that have no closer listener for them.
    pub fn set_listener(&self, listener: Option<Arc<dyn DataWriterListener>>, mask: StatusMask) {
        self.inner.listener.set(listener, mask);
    }

    /// Its QoS.
    #[must_use]
    pub fn qos(&self) -> QosSet {
        self.inner.qos()
    }

    /// Changes PARTITION and GROUP_DATA; its writers match anew.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`], or [`crate::Error::ImmutablePolicy`] for PRESENTATION.
    pub fn set_qos(&self, qos: QosSet) -> Result<()> {
        check_qos(&qos, EntityKind::Publisher, "publisher")?;
        *self.inner.qos.lock().unwrap_or_else(PoisonError::into_inner) = qos;
        let writers: Vec<_> = {
            let writers = self.inner.writers.lock().unwrap_or_else(PoisonError::into_inner);
            writers.iter().filter_map(Weak::upgrade).collect()
        };
        writers.iter().try_for_each(|writer| writer.announce_qos())
    }

    /// The participant it belongs to.
    #[must_use]
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::from_inner(Arc::clone(&self.inner.participant))
    }
}

impl PublisherInner {
    pub(crate) fn qos(&self) -> QosSet {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The QoS an endpoint announces: its own, with what its publisher or subscriber and topic decide.
pub(crate) fn announced_qos(mut own: QosSet, group: &QosSet, topic: &QosSet) -> QosSet {
    own.partition.clone_from(&group.partition);
    own.presentation = group.presentation;
    own.group_data.clone_from(&group.group_data);
    own.topic_data.clone_from(&topic.topic_data);
    own
}
