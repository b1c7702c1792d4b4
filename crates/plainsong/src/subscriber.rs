//! Subscribers: readers that share partition, presentation and a listener.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use plainsong_proto::cdr::DdsType;
use plainsong_proto::qos::{EntityKind, QosSet};
use plainsong_proto::status::{StatusKind, StatusMask};

use crate::condition::{Condition, HasCore};
use crate::data_reader::{DataReader, ReaderInner};
use crate::entity::{EntityCore, ListenerSlot};
use crate::error::Result;
use crate::listener::DataReaderListener;
use crate::participant::{DomainParticipant, ParticipantInner, check_qos};
use crate::topic::Topic;

/// A group of readers. Clones are the same subscriber.
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) inner: Arc<SubscriberInner>,
}

pub(crate) struct SubscriberInner {
    pub(crate) participant: Arc<ParticipantInner>,
    qos: Mutex<QosSet>,
    pub(crate) core: EntityCore,
    pub(crate) listener: ListenerSlot<dyn DataReaderListener>,
    readers: Mutex<Vec<Weak<ReaderInner>>>,
}

impl Subscriber {
    pub(crate) fn new(participant: Arc<ParticipantInner>, qos: QosSet) -> Self {
        Self {
            inner: Arc::new(SubscriberInner {
                participant,
                qos: Mutex::new(qos),
                core: EntityCore::new(),
                listener: ListenerSlot::new(),
                readers: Mutex::new(Vec::new()),
            }),
        }
    }

    /// A reader of `topic`. With ENTITY_FACTORY off it is created disabled.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`] for contradictory QoS.
    pub fn create_reader<T: DdsType>(&self, topic: &Topic<T>, qos: QosSet) -> Result<DataReader<T>> {
        let reader = DataReader::create(Arc::clone(&self.inner), topic, qos)?;
        let mut readers = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(reader.inner()));
        drop(readers);
        if self.inner.qos().entity_factory.autoenable_created_entities
            && self.inner.participant.core.is_enabled()
        {
            reader.enable()?;
        }
        Ok(reader)
    }

    /// Hears of the statuses in `mask` of all its readers that have no closer listener for them.
    pub fn set_listener(&self, listener: Option<Arc<dyn DataReaderListener>>, mask: StatusMask) {
        self.inner.listener.set(listener, mask);
    }

    /// Its QoS.
    #[must_use]
    pub fn qos(&self) -> QosSet {
        self.inner.qos()
    }

    /// Changes PARTITION and GROUP_DATA; its readers match anew.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`], or [`crate::Error::ImmutablePolicy`] for PRESENTATION.
    pub fn set_qos(&self, qos: QosSet) -> Result<()> {
        check_qos(&qos, EntityKind::Subscriber, "subscriber")?;
        *self.inner.qos.lock().unwrap_or_else(PoisonError::into_inner) = qos;
        let readers: Vec<_> = {
            let readers = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
            readers.iter().filter_map(Weak::upgrade).collect()
        };
        readers.iter().try_for_each(|reader| reader.announce_qos())
    }

    /// A condition on the subscriber's own status, DATA_ON_READERS.
    #[must_use]
    pub fn status_condition(&self, mask: StatusMask) -> Condition {
        Condition::status(Arc::clone(&self.inner) as Arc<dyn HasCore>, mask)
    }

    /// The participant it belongs to.
    #[must_use]
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::from_inner(Arc::clone(&self.inner.participant))
    }
}

impl HasCore for SubscriberInner {
    fn core(&self) -> &EntityCore {
        &self.core
    }
}

impl SubscriberInner {
    /// Some reader was read: DATA_ON_READERS is lowered (DCPS 1.4 §2.2.4.2.2).
    pub(crate) fn data_on_readers_consumed(&self) {
        self.core.lower(StatusKind::DataOnReaders);
    }

    pub(crate) fn qos(&self) -> QosSet {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
