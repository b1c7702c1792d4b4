//! The control plane of one participant: announces it, finds others, matches endpoints.

use core::net::IpAddr;

use super::config::{DiscoveryError, LocalEndpoint, LocalLocators, ParticipantConfig};
use crate::guid::{Guid, GuidPrefix};
use crate::outbox::Outbox;
use crate::qos::QosSet;
use crate::stats::{DropCounters, DropReason};
use crate::time::{Duration, Instant, Now};
use crate::wire::{EndpointSubmessage, MessageContext};

/// The control plane of one participant.
///
/// Commands about user endpoints appear in [`Outbox::commands`] in the order in which they must be carried out.
#[derive(Debug)]
pub struct Participant {
    config: ParticipantConfig,
    drops: DropCounters,
}

/// A remote participant, as introspection shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteParticipant<'a> {
    /// Its GUID.
    pub guid: Guid,
    /// Its name; empty when it told none.
    pub name: &'a str,
    /// Vendor id.
    pub vendor: [u8; 2],
    /// RTPS version, major and minor.
    pub version: [u8; 2],
    /// Address its last announcement came from.
    pub address: Option<IpAddr>,
    /// It answered us from the address we use: traffic to it is not limited.
    pub proven: bool,
    /// Runs on this host.
    pub same_host: bool,
    /// Announced lease.
    pub lease_duration: Duration,
    /// When it was last heard of.
    pub last_heard: Instant,
}

/// A remote endpoint, as introspection shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEndpoint<'a> {
    /// Its GUID: the entity kind says writer or reader.
    pub guid: Guid,
    /// Topic name.
    pub topic: &'a str,
    /// Registered type name.
    pub type_name: &'a str,
    /// QoS of the endpoint and its publisher or subscriber.
    pub qos: &'a QosSet,
}

/// Why two endpoints of the same topic do not match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MismatchReason {
    /// The registered type names differ.
    TypeName,
    /// One has a key, the other has not.
    KeyKind,
    /// No partition in common.
    Partition,
    /// Requested and offered QoS are incompatible: DCPS policy ids.
    Qos(Vec<u32>),
    /// No locator of the remote endpoint may be used.
    NoUsableLocator,
}

/// A pair of endpoints of the same topic that do not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch<'a> {
    /// The writer.
    pub writer: Guid,
    /// The reader.
    pub reader: Guid,
    /// Why not.
    pub reason: &'a MismatchReason,
}

impl Participant {
    /// A participant that is still silent.
    #[must_use]
    pub fn new(now: Now, config: ParticipantConfig) -> Self {
        let _ = now;
        Self { config, drops: DropCounters::default() }
    }

    /// Its GUID.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.config.prefix.participant()
    }

    /// Announces the participant for the first time. Nothing is sent before.
    pub fn start(&mut self, now: Now, out: &mut Outbox) {
        let _ = (now, out);
    }

    /// The interfaces of this host changed: announces the new locators, updates local matches.
    pub fn set_locators(&mut self, now: Now, locators: LocalLocators, out: &mut Outbox) {
        let _ = (now, out);
        self.config.locators = locators;
    }

    /// Changes the participant's own QoS (USER_DATA) and announces it.
    pub fn set_qos(&mut self, now: Now, qos: QosSet, out: &mut Outbox) {
        let _ = (now, out);
        self.config.qos = qos;
    }

    /// Announces and matches a local writer or reader; its entity kind says which.
    ///
    /// # Errors
    /// [`DiscoveryError`]; nothing changed.
    pub fn add_endpoint(
        &mut self,
        now: Now,
        endpoint: LocalEndpoint,
        out: &mut Outbox,
    ) -> Result<(), DiscoveryError> {
        let _ = (now, endpoint, out);
        Ok(())
    }

    /// Announces changed QoS of a local writer or reader and matches anew.
    ///
    /// # Errors
    /// [`DiscoveryError`]; nothing changed.
    pub fn update_endpoint(
        &mut self,
        now: Now,
        guid: Guid,
        qos: QosSet,
        out: &mut Outbox,
    ) -> Result<(), DiscoveryError> {
        let _ = (now, guid, qos, out);
        Ok(())
    }

    /// Withdraws a local writer or reader: disposed on SEDP, unmatched everywhere. Unknown ones are ignored.
    /// The endpoint itself gets no commands any more.
    pub fn remove_endpoint(&mut self, now: Now, guid: Guid, out: &mut Outbox) {
        let _ = (now, guid, out);
    }

    /// Takes a submessage of a built-in writer or reader.
    ///
    /// # Errors
    /// Why the submessage went no further; to be counted by the caller.
    pub fn on_submessage(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let _ = (now, context, submessage, out);
        Ok(())
    }

    /// A user message of a remote participant arrived. Optional: built-in traffic is seen anyway.
    pub fn on_alive(&mut self, now: Now, prefix: GuidPrefix) {
        let _ = (now, prefix);
    }

    /// Asserts the MANUAL_BY_PARTICIPANT writers of this participant. May be called for every sample:
    /// messages are sent at a bounded rate.
    pub fn assert_liveliness(&mut self, now: Now, out: &mut Outbox) {
        let _ = (now, out);
    }

    /// Leaves: disposes the participant and its endpoints, so that others forget it at once.
    pub fn shutdown(&mut self, now: Now, out: &mut Outbox) {
        let _ = (now, out);
    }

    /// Does what is due: announcements, leases, liveliness, repeats of the built-in endpoints.
    pub fn timeout(&mut self, now: Now, out: &mut Outbox) {
        let _ = (now, out);
    }

    /// When [`Self::timeout`] wants to be called next.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// Remote participants in the order of their GUIDs.
    pub fn remote_participants(&self) -> impl Iterator<Item = RemoteParticipant<'_>> + '_ {
        core::iter::empty()
    }

    /// Remote endpoints in the order of their GUIDs.
    pub fn remote_endpoints(&self) -> impl Iterator<Item = RemoteEndpoint<'_>> + '_ {
        core::iter::empty()
    }

    /// Local and remote endpoints of the same topic that do not match, and why.
    pub fn mismatches(&self) -> impl Iterator<Item = Mismatch<'_>> + '_ {
        core::iter::empty()
    }

    /// What discovery itself dropped, beyond what [`Self::on_submessage`] returned.
    #[must_use]
    pub const fn drops(&self) -> &DropCounters {
        &self.drops
    }
}
