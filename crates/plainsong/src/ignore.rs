//! What the application ignores for good (DCPS 1.4 §2.2.2.2.1.14 to .17).
//!
//! Only this participant ignores: others are not told, and go on sending. A reliable writer elsewhere with
//! KEEP_ALL waits for the acknowledgements of an ignored match as it would for a reader that hangs.

use plainsong_proto::discovery::DiscoveryError;
use plainsong_proto::guid::Guid;
use plainsong_proto::instance::InstanceHandle;

use crate::builtin_topics::topic_handle;
use crate::error::{BadParameter, Error, OutOfResources, Result};
use crate::participant::DomainParticipant;

impl DomainParticipant {
    /// Ignores a participant, with all that it has, from now on. The handle is that of its sample in
    /// `DCPSParticipant`. With its own handle, its own writers and readers do not match each other.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a handle of no participant, [`Error::OutOfResources`],
    /// [`Error::NotEnabled`].
    pub fn ignore_participant(&self, handle: InstanceHandle) -> Result<()> {
        let guid = Guid::from_bytes(handle.0);
        if guid.prefix.participant() != guid {
            return Err(no_such("participant"));
        }
        let slot = self.inner.slot()?;
        slot.control(|control, now, out| control.ignore_participant(now, guid.prefix, out)).map_err(full)
    }

    /// Ignores all writers and readers that others have of a topic. The handle is that of its sample in
    /// `DCPSTopic`, or that of a topic of this participant.
    ///
    /// # Errors
    /// [`Error::BadParameter`] when no such topic is known, [`Error::OutOfResources`], [`Error::NotEnabled`].
    pub fn ignore_topic(&self, handle: InstanceHandle) -> Result<()> {
        let slot = self.inner.slot()?;
        let own = self.inner.all_topics();
        let own = own.iter().find(|topic| topic_handle(&topic.name, topic.type_name()) == handle);
        let name = own.map(|topic| topic.name.clone()).or_else(|| {
            slot.look(|control| {
                let mut others = control.remote_endpoints();
                let other = others.find(|other| topic_handle(other.topic, other.type_name) == handle);
                other.map(|other| other.topic.to_owned())
            })
        });
        let name = name.ok_or_else(|| no_such("topic"))?;
        slot.control(|control, _, out| control.ignore_topic(&name, out)).map_err(full)
    }

    /// Ignores a writer. The handle is that of its sample in `DCPSPublication`.
    ///
    /// # Errors
    /// As [`Self::ignore_participant`].
    pub fn ignore_publication(&self, handle: InstanceHandle) -> Result<()> {
        let guid = Guid::from_bytes(handle.0);
        if !guid.entity.is_writer() || guid.entity.is_builtin() {
            return Err(no_such("writer"));
        }
        self.ignore_endpoint(guid)
    }

    /// Ignores a reader. The handle is that of its sample in `DCPSSubscription`.
    ///
    /// # Errors
    /// As [`Self::ignore_participant`].
    pub fn ignore_subscription(&self, handle: InstanceHandle) -> Result<()> {
        let guid = Guid::from_bytes(handle.0);
        if !guid.entity.is_reader() || guid.entity.is_builtin() {
            return Err(no_such("reader"));
        }
        self.ignore_endpoint(guid)
    }

    fn ignore_endpoint(&self, guid: Guid) -> Result<()> {
        let slot = self.inner.slot()?;
        slot.control(|control, _, out| control.ignore_endpoint(guid, out)).map_err(full)
    }
}

fn no_such(what: &'static str) -> Error {
    BadParameter::UnknownHandle { what }.into()
}

fn full(error: DiscoveryError) -> Error {
    OutOfResources::from(error).into()
}
