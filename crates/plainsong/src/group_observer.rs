//! The group of an ATOMIC topic, seen by a participant that is no member of it.

use std::sync::Arc;

use plainsong_proto::qos::QosSet;

use crate::atomic::{Name, ObservedGroup, Observer};
use crate::error::{OutOfResources, Result};
use crate::participant::{DomainParticipant, ParticipantInner};

/// Watches the group of a topic with CONSISTENCY ATOMIC, without being a member of it: nobody waits for this
/// participant, and nothing is sent to it but what the members tell one another.
/// Made by [`DomainParticipant::observe_group`]; it ends when it is dropped.
pub struct GroupObserver {
    participant: Arc<ParticipantInner>,
    observer: Observer,
}

impl DomainParticipant {
    /// Begins to watch the group of a topic in a partition, empty for the default one. What is known of it
    /// comes within some tenths of a second: look again until then.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`], [`crate::Error::AlreadyDeleted`].
    pub fn observe_group(&self, topic: &str, partition: &str) -> Result<GroupObserver> {
        let participant = Arc::clone(&self.inner);
        let slot = participant.slot()?;
        let limits = (participant.config().writer_limits(), participant.config().reader_limits());
        let observer = Observer::new(Name::new(topic, partition), slot, limits);
        Ok(GroupObserver { participant, observer })
    }

    /// Topics with CONSISTENCY ATOMIC of which other participants have writers or readers, with their
    /// partitions, each once.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`], [`crate::Error::AlreadyDeleted`].
    pub fn discovered_atomic_topics(&self) -> Result<Vec<(String, String)>> {
        let mut found: Vec<_> = self.inspect(|control| {
            let atomic = control.remote_endpoints().filter(|it| it.qos.is_atomic());
            atomic.map(|it| (it.topic.to_owned(), partition_of(it.qos))).collect()
        })?;
        found.sort();
        found.dedup();
        Ok(found)
    }
}

/// As its group is named.
fn partition_of(qos: &QosSet) -> String {
    qos.partition.first().cloned().unwrap_or_default()
}

impl GroupObserver {
    /// What the members have told. Where the topic has several groups, because not all participants have the
    /// same voters set, it is the one with most members, and the others are its
    /// [`strangers`](ObservedGroup::strangers).
    ///
    /// # Errors
    /// [`crate::Error::AlreadyDeleted`], [`crate::Error::OutOfResources`].
    pub fn look(&self) -> Result<ObservedGroup> {
        Ok(self.look_at_all()?.remove(0))
    }

    /// The same of all groups of the topic, at least one, the largest first.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn look_at_all(&self) -> Result<Vec<ObservedGroup>> {
        self.participant.slot()?;
        let next_key = || self.participant.next_entity_key();
        Ok(self.observer.look(next_key).map_err(OutOfResources::from)?)
    }
}

impl Drop for GroupObserver {
    fn drop(&mut self) {
        if self.participant.slot().is_ok() {
            self.observer.close();
        }
    }
}
