//! Deleting entities before their last handle is dropped (DCPS 1.4 §2.2.2.1.1, §2.2.2.2.1.18).
//!
//! Handles are shared: a deleted entity leaves the network at once, and every later call on any handle of it
//! gives [`Error::AlreadyDeleted`]. Dropping the last handle deletes as well, so programs need none of this.

use std::sync::Arc;

use plainsong_proto::cdr::DdsType;
use plainsong_proto::guid::Guid;
use plainsong_proto::instance::InstanceHandle;

use crate::builtin_topics::topic_handle;
use crate::data_reader::{AnyDataReader, DataReader};
use crate::data_writer::AnyDataWriter;
use crate::error::{Error, PreconditionNotMet, Result};
use crate::group::Member;
use crate::participant::{DomainParticipant, DomainParticipantFactory, ParticipantInner};
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::topic::AnyTopic;

impl DomainParticipantFactory {
    /// Deletes a participant without entities: it leaves its domain.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when it contains entities, [`Error::AlreadyDeleted`].
    pub fn delete_participant(&self, participant: &DomainParticipant) -> Result<()> {
        let inner = &participant.inner;
        inner.check_exists()?;
        let (publishers, subscribers) = inner.groups();
        if !publishers.is_empty() || !subscribers.is_empty() || !inner.all_topics().is_empty() {
            return Err(has_entities("the participant"));
        }
        inner.delete()
    }
}

impl DomainParticipant {
    /// Deletes everything that was made with this participant, and what that contains.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.inner.check_exists()?;
        let (publishers, subscribers) = self.inner.groups();
        for publisher in publishers {
            publisher.delete_members()?;
            publisher.delete()?;
        }
        for subscriber in subscribers {
            subscriber.delete_members()?;
            subscriber.delete()?;
        }
        for topic in self.inner.all_topics() {
            topic.core.delete();
        }
        Ok(())
    }

    /// Deletes a publisher without writers.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when it has writers or belongs to another participant,
    /// [`Error::AlreadyDeleted`].
    pub fn delete_publisher(&self, publisher: &Publisher) -> Result<()> {
        self.check_mine(&publisher.inner.participant, "the publisher")?;
        publisher.inner.delete()
    }

    /// Deletes a subscriber without readers.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when it has readers or belongs to another participant,
    /// [`Error::AlreadyDeleted`].
    pub fn delete_subscriber(&self, subscriber: &Subscriber) -> Result<()> {
        self.check_mine(&subscriber.inner.participant, "the subscriber")?;
        subscriber.inner.delete()
    }

    /// Deletes a topic without writers and readers.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when it has some or belongs to another participant,
    /// [`Error::AlreadyDeleted`].
    pub fn delete_topic(&self, topic: &AnyTopic) -> Result<()> {
        let inner = &topic.0;
        self.check_mine(&inner.participant, &inner.describe())?;
        inner.core.check_exists(|| inner.describe())?;
        let (writers, readers) = self.inner.endpoints();
        if writers.iter().any(|it| Arc::ptr_eq(it.topic(), inner))
            || readers.iter().any(|it| Arc::ptr_eq(it.topic(), inner))
        {
            return Err(has_entities(&inner.describe()));
        }
        if inner.core.delete() { Ok(()) } else { inner.core.check_exists(|| inner.describe()) }
    }

    /// Whether the handle is that of an entity made with this participant, or with what it contains.
    #[must_use]
    pub fn contains_entity(&self, handle: InstanceHandle) -> bool {
        let guid = Guid::from_bytes(handle.0);
        let (publishers, subscribers) = self.inner.groups();
        let (writers, readers) = self.inner.endpoints();
        let mut topics = self.inner.all_topics().into_iter();
        publishers.iter().any(|publisher| publisher.guid() == guid)
            || subscribers.iter().any(|subscriber| subscriber.guid() == guid)
            || writers.iter().any(|writer| writer.guid() == guid)
            || readers.iter().any(|reader| reader.guid() == guid)
            || topics.any(|topic| topic_handle(&topic.name, topic.type_name()) == handle)
    }

    fn check_mine(&self, other: &Arc<ParticipantInner>, what: &str) -> Result<()> {
        if Arc::ptr_eq(&self.inner, other) {
            return Ok(());
        }
        Err(PreconditionNotMet::ForeignEntity { entity: what.to_owned(), factory: "participant" }.into())
    }
}

impl Publisher {
    /// Deletes a writer of this publisher. With `autodispose_unregistered_instances` it disposes its
    /// instances first, and waits for readers to hear of it, at most `max_blocking_time` or a second;
    /// without, or when its last handle is dropped, readers see them without writers.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] for a writer of another publisher, [`Error::AlreadyDeleted`].
    pub fn delete_writer(&self, writer: &AnyDataWriter) -> Result<()> {
        self.inner.delete_member(writer.inner())
    }

    /// Deletes all its writers.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.inner.delete_members()
    }

    /// Its writer of that topic; of several, any.
    #[must_use]
    pub fn lookup_writer(&self, topic: &str) -> Option<AnyDataWriter> {
        self.inner.lookup(topic).map(AnyDataWriter::new)
    }
}

impl Subscriber {
    /// Deletes a reader of this subscriber; its conditions are never triggered again.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] for a reader of another subscriber, [`Error::AlreadyDeleted`].
    pub fn delete_reader(&self, reader: &AnyDataReader) -> Result<()> {
        self.inner.delete_member(&reader.0)
    }

    /// Deletes all its readers.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.inner.delete_members()
    }

    /// Its reader of that topic; of several, any.
    #[must_use]
    pub fn lookup_reader(&self, topic: &str) -> Option<AnyDataReader> {
        self.inner.lookup(topic).map(AnyDataReader)
    }
}

impl<T: DdsType> DataReader<T> {
    /// Deletes all read and query conditions made so far: they are never triggered again.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.inner().delete_conditions()
    }
}

fn has_entities(what: &str) -> Error {
    PreconditionNotMet::HasEntities { entity: what.to_owned() }.into()
}
