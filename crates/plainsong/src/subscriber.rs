//! Subscribers: readers that share partition, presentation and a listener (DCPS 1.4 §2.2.2.5.2).

use std::sync::Arc;

use plainsong_proto::cdr::DdsType;
use plainsong_proto::qos::{EntityKind, QosSet};
use plainsong_proto::status::{StatusKind, StatusMask};

use crate::condition::{Condition, HasCore};
use crate::data_reader::{DataReader, ReaderInner};
use crate::error::Result;
use crate::group::Group;
use crate::listener::DataReaderListener;
use crate::participant::{DomainParticipant, ParticipantInner};
use crate::topic::Topic;

pub(crate) type SubscriberInner = Group<ReaderInner, dyn DataReaderListener>;

/// A group of readers. Clones are the same subscriber.
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) inner: Arc<SubscriberInner>,
}

impl Subscriber {
    pub(crate) fn new(participant: Arc<ParticipantInner>, qos: QosSet) -> Result<Self> {
        Ok(Self { inner: Arc::new(Group::new(participant, EntityKind::Subscriber, qos)?) })
    }

    /// A reader of `topic`. With ENTITY_FACTORY off it is created disabled.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`] for contradictory QoS.
    pub fn create_reader<T: DdsType>(&self, topic: &Topic<T>, qos: QosSet) -> Result<DataReader<T>> {
        let reader = DataReader::create(Arc::clone(&self.inner), topic, qos)?;
        if self.inner.add(reader.inner()) {
            reader.enable()?;
        }
        Ok(reader)
    }

    /// Hears of the statuses in `mask` of all its readers that have no closer listener for them.
    /// With DATA_ON_READERS in the mask it hears of that instead of DATA_AVAILABLE.
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
        self.inner.set_qos(qos)?.iter().try_for_each(|reader| reader.announce_qos())
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

impl SubscriberInner {
    /// Some reader was read: DATA_ON_READERS is lowered (DCPS 1.4 §2.2.4.2.2).
    pub(crate) fn data_on_readers_consumed(&self) {
        self.core.lower(StatusKind::DataOnReaders);
    }
}
