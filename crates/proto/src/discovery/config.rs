//! What the driver tells a participant about itself: identity, locators, limits, endpoints.

use core::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;

use super::memory::MemoryRefusal;
use super::process::ProcessData;
use crate::filter::ContentFilter;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::{Locator, NodeId};
use crate::qos::QosSet;
use crate::time::Duration;
use crate::types::TypeDescription;
use crate::types::library::TypeLimits;

/// Everything a participant is made from.
#[derive(Clone, Debug)]
pub struct ParticipantConfig {
    /// The twelve octets that name it; unique for each start.
    pub prefix: GuidPrefix,
    /// Domain id.
    pub domain: u16,
    /// Domain tag; participants with another tag are ignored (RTPS 2.5 §8.5.3.2).
    pub domain_tag: String,
    /// Name shown to others (PID_ENTITY_NAME).
    pub name: String,
    /// QoS of the participant: USER_DATA and PROPERTY are announced.
    pub qos: QosSet,
    /// Others forget this participant after hearing nothing for so long.
    pub lease_duration: Duration,
    /// Time between announcements once the first burst is over.
    pub announce_period: Duration,
    /// Who runs it, announced in the properties that tools of other products read.
    pub process: ProcessData,
    /// Where it can be reached and where it announces itself.
    pub locators: LocalLocators,
    /// Seed of the jitter; any value, different in each process.
    pub seed: u64,
    /// Nobody else may know it: addresses are proven by numbers that follow from it. Different for each
    /// participant.
    pub secret: [u8; 16],
    /// What others may make it remember.
    pub limits: DiscoveryLimits,
}

impl ParticipantConfig {
    /// A participant with the default timing and limits, and no locators yet.
    #[must_use]
    pub fn new(prefix: GuidPrefix, domain: u16) -> Self {
        Self {
            prefix,
            domain,
            domain_tag: String::new(),
            name: String::new(),
            qos: QosSet::default(),
            lease_duration: Duration::from_secs(20),
            announce_period: Duration::from_secs(3),
            process: ProcessData::default(),
            locators: LocalLocators::default(),
            seed: 0,
            secret: [0; 16],
            limits: DiscoveryLimits::default(),
        }
    }
}

/// Where a participant can be reached, and where it announces itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalLocators {
    /// Announced for discovery traffic.
    pub meta_unicast: Vec<Locator>,
    /// Announced groups for discovery traffic.
    pub meta_multicast: Vec<Locator>,
    /// Announced for user traffic; local endpoints reach each other here too.
    pub user_unicast: Vec<Locator>,
    /// Announced groups for user traffic; usually none.
    pub user_multicast: Vec<Locator>,
    /// Every address of this host, so that peers on the same host are recognised. Loopback need not be
    /// listed.
    pub own_addresses: Vec<IpAddr>,
    /// Addresses of this host with the prefix lengths of their networks: who is on one of these, and is heard
    /// by a group, hears it.
    pub networks: Vec<(IpAddr, u8)>,
    /// Where every announcement goes without being asked: multicast groups, configured peers. Unicast
    /// addresses here are trusted: their owner wants traffic sent there.
    pub announce_to: Vec<Locator>,
    /// Where participants of this host may listen: asked while announcements to the group do not come back,
    /// early, after changes, and then rarely.
    pub scan: Vec<Locator>,
    /// Octets of large datagrams that a socket of user traffic holds until it is read; 0 when unknown.
    /// Announced.
    pub receive_bytes: u32,
    /// The node that its participants are of, if it shares memory. Announced; the same as long as the driver
    /// lives.
    pub node_id: Option<NodeId>,
    /// Why it shares none; `None`: it was told not to.
    pub memory_refusal: Option<MemoryRefusal>,
}

/// Bounds on what remote participants may make us remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryLimits {
    /// Remote participants. Beyond, the oldest unproven one makes room.
    pub participants_max: usize,
    /// Endpoints of one remote participant.
    pub endpoints_per_participant_max: usize,
    /// Octets of discovery data kept of all remote endpoints together.
    pub endpoint_bytes_max: usize,
    /// Unicast locators of each sort considered of one participant or endpoint; the rest is ignored.
    pub locators_max: usize,
    /// Remembered pairs of endpoints of the same topic that do not match.
    pub mismatches_max: usize,
    /// Lowest port an announced unicast locator may name.
    pub port_min: u16,
    /// The types of others that are kept.
    pub types: TypeLimits,
}

impl Default for DiscoveryLimits {
    fn default() -> Self {
        Self {
            participants_max: 1_000,
            endpoints_per_participant_max: 4_000,
            endpoint_bytes_max: 128 << 20,
            locators_max: 16,
            mismatches_max: 10_000,
            port_min: 1_024,
            types: TypeLimits::default(),
        }
    }
}

/// A writer or reader of the application, as discovery announces and matches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalEndpoint {
    /// Its GUID: the entity kind says writer or reader.
    pub guid: Guid,
    /// Topic name.
    pub topic: String,
    /// Registered type name.
    pub type_name: String,
    /// The type has a key.
    pub keyed: bool,
    /// QoS of the endpoint, its publisher or subscriber (partition, presentation, group data) and its topic
    /// data.
    pub qos: QosSet,
    /// Its publisher or subscriber, to be announced; UNKNOWN announces none.
    pub group: EntityId,
    /// What a reader of a content-filtered topic tells writers about its filter.
    pub content_filter: Option<ContentFilter>,
    /// Its type, as others may ask for it; without, types are told apart by name alone.
    pub type_description: Option<Arc<TypeDescription>>,
}

/// Why a local endpoint was not taken over by discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The GUID is that of another participant's endpoint, or of no writer or reader at all, or its kind
    /// disagrees with the type about having a key.
    #[error("{0} does not name a user writer or reader of this participant, keyed as its type is")]
    WrongKind(Guid),
    /// An endpoint with this GUID exists.
    #[error("{0} exists already; remove it first")]
    Exists(Guid),
    /// No endpoint has this GUID.
    #[error("{0} does not exist or was removed")]
    Unknown(Guid),
    /// A name is longer than discovery data may carry.
    #[error("the topic or type name of {0} is longer than 255 octets; choose a shorter one")]
    NameTooLong(Guid),
    /// More is ignored than can be remembered.
    #[error("no more than {0} participants, topics and endpoints each can be ignored")]
    TooManyIgnored(usize),
    /// The built-in writer refused the announcement.
    #[error("{0} cannot be announced: the built-in writer's history is full")]
    OutOfResources(Guid),
}
