//! The control plane of one participant: announces it, finds others, matches endpoints.

use core::net::IpAddr;
use std::sync::Arc;

use super::builtin::ParticipantData;
use super::config::{DiscoveryError, LocalEndpoint, LocalLocators, ParticipantConfig};
use super::database::{Database, Remote};
use super::departures::Departures;
pub use super::endpoint::RemoteEndpoint;
use super::lead::Lead;
use super::links::Links;
use super::liveliness::Liveliness;
use super::matching::{Endpoint, Matching};
use super::memory::UsedTransport;
use super::news::ProcessMessages;
use super::path::{EndpointPath, Host};
use super::process::Audience;
use super::proof::Numbers;
use super::sedp::{AVAILABLE_ENDPOINTS, Builtin};
use super::spdp::Announcer;
use crate::filter::ContentFilter;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::Outbox;
use crate::qos::{Property, QosSet};
use crate::stats::{DropCounters, DropReason};
use crate::time::{Duration, Instant, Now};
use crate::vendor::{self, ProductVersion};
use crate::wire::{EndpointSubmessage, MessageContext};

/// Longest topic or type name, in octets (RTPS 2.5 §9.6.3.1: `string<256>` with its NUL).
const NAME_BYTES_MAX: usize = 255;

/// The control plane of one participant.
///
/// Commands about user endpoints appear in [`Outbox::commands`] in the order in which they must be carried
/// out.
pub struct Participant {
    pub(super) config: ParticipantConfig,
    pub(super) host: Host,
    pub(super) announcer: Announcer,
    /// Whose tools read what we announce of our process.
    pub(super) audience: Audience,
    pub(super) database: Database,
    pub(super) matching: Matching,
    pub(super) builtin: Builtin,
    pub(super) liveliness: Liveliness,
    pub(super) drops: DropCounters,
    pub(super) process_messages: ProcessMessages,
    pub(super) departures: Departures,
    pub(super) lead: Lead,
    pub(super) links: Links,
    pub(super) numbers: Numbers,
    /// What others are told about us.
    pub(super) announced: Arc<ParticipantData>,
    /// Where local endpoints reach each other.
    pub(super) local_path: EndpointPath,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Silent,
    Present,
    Left,
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
    /// Version of its product, major and minor; zeroes where it is not told.
    pub product_version: ProductVersion,
    /// RTPS version, major and minor.
    pub version: [u8; 2],
    /// Address its last announcement came from.
    pub address: Option<IpAddr>,
    /// It answered us from the address we use: traffic to it is not limited.
    pub proven: bool,
    /// Runs on this host.
    pub same_host: bool,
    /// By which transport its user endpoints are reached.
    pub transport: UsedTransport,
    /// Where it says that it receives discovery traffic.
    pub meta_unicast: &'a [Locator],
    /// Announced lease.
    pub lease_duration: Duration,
    /// When it was last heard of.
    pub last_heard: Instant,
    /// It tells an identity of DDS Security.
    pub is_secured: bool,
    /// Its USER_DATA.
    pub user_data: &'a [u8],
    /// Properties it announced.
    pub properties: &'a [Property],
}

impl Participant {
    /// A participant that is still silent.
    #[must_use]
    pub fn new(config: ParticipantConfig) -> Self {
        let limits = config.limits;
        let matching = Matching::new(config.prefix, limits.mismatches_max, limits.types);
        let host = Host::of(&config.locators);
        Self {
            local_path: local_path(&config.locators, &host),
            host,
            announced: Arc::new(ParticipantData::new(config.prefix.participant())),
            announcer: Announcer::new(config.seed),
            audience: Audience::default(),
            database: Database::new(limits),
            matching,
            builtin: Builtin::new(config.prefix, &limits),
            liveliness: Liveliness::default(),
            drops: DropCounters::default(),
            process_messages: ProcessMessages::default(),
            departures: Departures::default(),
            lead: Lead::default(),
            links: Links::default(),
            numbers: Numbers::new(config.secret),
            presence: Presence::Silent,
            config,
        }
    }

    /// Its GUID.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.config.prefix.participant()
    }

    /// For simulations of some of many participants: it behaves as if it knew so many others.
    #[cfg(feature = "mistakes")]
    pub fn assume_known(&mut self, participants: usize) {
        self.database.assume_known(participants);
    }

    /// Announces the participant for the first time. Nothing is sent before.
    pub fn start(&mut self, now: Now, out: &mut Outbox) {
        if self.presence == Presence::Silent {
            self.presence = Presence::Present;
            self.announce_anew(now, false, out);
            self.connect_heard(now, out);
            self.enqueue_all();
        }
    }

    /// The interfaces of this host changed: announces the new locators, updates local matches.
    pub fn set_locators(&mut self, now: Now, locators: LocalLocators, out: &mut Outbox) {
        // Nobody is told where we look for others.
        self.config.locators.scan.clone_from(&locators.scan);
        if self.config.locators == locators {
            return;
        }
        self.host = Host::of(&locators);
        self.config.locators = locators;
        self.local_path = local_path(&self.config.locators, &self.host);
        self.announce_change(now, out);
        self.publish_locators(now, out);
        for prefix in self.database.prefixes() {
            if self.database.is_of_own_process(prefix) {
                continue;
            }
            if let Some(remote) = self.database.get_mut(prefix) {
                remote.sift(&self.host, &self.config.limits, &mut self.drops);
            }
            self.connect(now, prefix, out);
        }
        self.probe_moved_peers(now, out);
        self.move_process(out);
    }

    /// Changes the participant's own QoS (USER_DATA, PROPERTY) and announces it.
    pub fn set_qos(&mut self, now: Now, qos: QosSet, out: &mut Outbox) {
        if self.config.qos != qos {
            self.config.qos = qos;
            self.announce_change(now, out);
        }
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
        let LocalEndpoint { guid, topic, type_name, keyed, qos, group, content_filter, type_description } =
            endpoint;
        let entity = guid.entity;
        let user = (entity.is_writer() || entity.is_reader()) && !entity.is_builtin();
        if guid.prefix != self.config.prefix || !user || entity.is_keyed() != keyed {
            return Err(DiscoveryError::WrongKind(guid));
        }
        if topic.len() > NAME_BYTES_MAX || type_name.len() > NAME_BYTES_MAX {
            return Err(DiscoveryError::NameTooLong(guid));
        }
        if self.matching.get(guid).is_some() {
            return Err(DiscoveryError::Exists(guid));
        }
        let process_types = type_description.as_ref().map(|it| self.matching.types.add_own(it));
        let endpoint = Arc::new(Endpoint {
            vendor: vendor::PLAINSONG,
            topic,
            type_name,
            qos,
            unicast: Vec::new(),
            multicast: Vec::new(),
            path: self.local_path.clone(),
            receive_bytes: self.config.locators.receive_bytes,
            expects_inline_qos: false,
            group,
            content_filter,
            type_ids: type_description.as_ref().map(|it| it.information.ids()).unwrap_or_default(),
            knows_our_types: true,
            description: type_description,
            process_types,
        });
        self.publish(now, guid, &endpoint, out)?;
        self.matching.insert(guid, endpoint, out);
        self.request_types(now, out);
        self.renew_leases(now);
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
        let known = self.matching.get(guid).filter(|_| guid.prefix == self.config.prefix);
        let known = known.ok_or(DiscoveryError::Unknown(guid))?;
        if known.qos == qos {
            return Ok(());
        }
        let endpoint = Arc::new(Endpoint { qos, ..known.clone() });
        self.renew(now, guid, endpoint, out)
    }

    /// Announces another content filter of a local reader.
    ///
    /// # Errors
    /// [`DiscoveryError`]; nothing changed.
    pub fn update_content_filter(
        &mut self,
        now: Now,
        guid: Guid,
        filter: ContentFilter,
        out: &mut Outbox,
    ) -> Result<(), DiscoveryError> {
        let known = self.matching.get(guid).filter(|_| guid.prefix == self.config.prefix);
        let known = known.ok_or(DiscoveryError::Unknown(guid))?;
        let endpoint = Arc::new(Endpoint { content_filter: Some(filter), ..known.clone() });
        self.renew(now, guid, endpoint, out)
    }

    /// Announces a local endpoint that changed and matches it anew.
    fn renew(
        &mut self,
        now: Now,
        guid: Guid,
        endpoint: Arc<Endpoint>,
        out: &mut Outbox,
    ) -> Result<(), DiscoveryError> {
        self.publish(now, guid, &endpoint, out)?;
        self.matching.insert(guid, endpoint, out);
        self.request_types(now, out);
        self.renew_leases(now);
        Ok(())
    }

    /// Withdraws a local writer or reader: disposed on SEDP, unmatched everywhere. Unknown ones are ignored.
    /// The endpoint itself gets no commands any more.
    pub fn remove_endpoint(&mut self, now: Now, guid: Guid, out: &mut Outbox) {
        if guid.prefix == self.config.prefix && self.matching.get(guid).is_some() {
            self.withdraw(now, guid, out);
            self.matching.remove(guid, out);
            self.renew_leases(now);
        }
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
        if context.source == self.config.prefix {
            self.on_echo(context, submessage);
            return Err(DropReason::OwnDatagram);
        }
        if self.presence != Presence::Present {
            return Err(DropReason::UnknownEndpoint);
        }
        // Discovery goes by UDP alone.
        if context.from.node_id().is_some() {
            return Err(DropReason::SpoofSuspected);
        }
        if self.database.is_of_own_process(context.source) {
            return Err(DropReason::OwnDatagram);
        }
        if let EndpointSubmessage::Data(data) = submessage
            && data.writer == EntityId::SPDP_WRITER
        {
            let first = out.transmits().len();
            let result = self.on_announcement(now, context, data, out);
            self.note_heard(now.mono, context.source);
            out.merge(first);
            return result;
        }
        let first = out.transmits().len();
        let believed = self.believe(now, context, submessage, out);
        self.note_heard(now.mono, context.source);
        let result = match believed {
            Ok(true) => self.on_builtin(now, context, submessage, out),
            Ok(false) => Ok(()),
            Err(reason) => Err(reason),
        };
        self.request_types(now, out);
        out.merge(first);
        result
    }

    /// Whoever was heard just now is asked what it was asked ever less while it was silent.
    fn note_heard(&mut self, now: Instant, prefix: GuidPrefix) {
        if self.database.get(prefix).is_some_and(|it| it.matched.is_some() && it.last_heard == now) {
            self.builtin.heard(now, prefix);
        }
    }

    /// Asserts the MANUAL_BY_PARTICIPANT writers of this participant, because the application did or because
    /// one of its writers, of any kind, wrote (DCPS 1.4 §2.2.2.4.2.22). May be called for every sample:
    /// messages are sent at a bounded rate.
    pub fn assert_liveliness(&mut self, now: Now, out: &mut Outbox) {
        if self.presence == Presence::Present {
            self.assert_manual(now, out);
        }
    }

    /// Whether [`Self::assert_liveliness`] matters to any local writer.
    #[must_use]
    pub fn has_manual_writers(&self) -> bool {
        self.liveliness.has_manual_writers()
    }

    /// Leaves: tells everyone, so that others forget it at once. Nothing is sent or heard afterwards.
    pub fn shutdown(&mut self, now: Now, out: &mut Outbox) {
        if self.presence == Presence::Present {
            self.announce_departure(now, out);
            self.enqueue_left();
        }
        self.presence = Presence::Left;
    }

    /// Does what is due: announcements, leases, liveliness, repeats of the built-in endpoints.
    pub fn timeout(&mut self, now: Now, out: &mut Outbox) {
        if self.presence != Presence::Present {
            return;
        }
        self.forget_due(now, out);
        if self.announcer.next.is_some_and(|at| at <= now.mono) {
            self.announce(now, false, out);
        }
        let first = out.transmits().len();
        while let Some(prefix) = self.database.next_review(now.mono) {
            self.review(now, prefix, out);
        }
        self.liveliness_timeout(now, out);
        self.type_lookup_timeout(now, out);
        self.links_timeout(now, out);
        self.builtin.timeout(now, out);
        self.matching.groups_timeout(now.mono, out);
        out.merge(first);
    }

    /// When [`Self::timeout`] wants to be called next.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.presence != Presence::Present {
            return None;
        }
        let timeouts = [
            self.announcer.next,
            self.database.next_timeout(),
            self.departures.next_timeout(),
            self.liveliness.next_timeout(),
            self.matching.lookups.next_timeout(),
            self.links.next_timeout(),
            self.builtin.next_timeout(),
            self.matching.groups_next_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }

    /// Remote participants in the order of their GUIDs.
    pub fn remote_participants(&self) -> impl Iterator<Item = RemoteParticipant<'_>> + '_ {
        self.database.iter().map(|(prefix, remote)| RemoteParticipant {
            guid: prefix.participant(),
            name: &remote.data.name,
            vendor: remote.data.vendor,
            product_version: remote.data.product_version,
            version: remote.data.protocol_version,
            address: remote.from.ip(),
            proven: remote.matched.is_some(),
            same_host: self.host.sent(&remote.from),
            transport: self.transport_of_remote(remote),
            meta_unicast: &remote.data.meta_unicast,
            lease_duration: remote.data.lease_duration,
            last_heard: remote.last_heard,
            is_secured: remote.data.is_secured,
            user_data: &remote.data.user_data,
            properties: &remote.data.properties,
        })
    }

    /// Where a matched participant receives, if that is on this host alone; nothing for any other.
    #[must_use]
    pub fn sockets_on_this_host(&self, prefix: GuidPrefix) -> Vec<Locator> {
        let is_here = |locator: &Locator| locator.ip().is_some_and(|ip| self.host.is_own(ip));
        let remote = self.database.get(prefix);
        let sockets = remote.filter(|remote| remote.matched.is_some() && self.host.sent(&remote.from));
        let sockets = sockets.map(Remote::sockets);
        sockets.filter(|sockets| sockets.iter().all(is_here)).unwrap_or_default()
    }

    /// The driver found out that a remote participant is no more: it leaves as if its lease had ended.
    pub fn participant_died(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        if self.presence == Presence::Present {
            self.enqueue_died(prefix);
            self.forget(now, prefix, out);
        }
    }

    /// Remote endpoints in the order of their GUIDs.
    pub fn remote_endpoints(&self) -> impl Iterator<Item = RemoteEndpoint<'_>> + '_ {
        let remote = self.matching.iter().filter(|(guid, _)| guid.prefix != self.config.prefix);
        remote.map(|(guid, endpoint)| endpoint.describe(guid))
    }

    /// All endpoints of a topic, remote and local ones.
    pub fn endpoints_of<'a>(&'a self, topic: &'a str) -> impl Iterator<Item = RemoteEndpoint<'a>> + 'a {
        self.matching.iter().map(|(guid, it)| it.describe(guid)).filter(move |it| it.topic == topic)
    }

    /// One endpoint, remote or local: what `get_matched_publication_data` and its like tell.
    #[must_use]
    pub fn endpoint(&self, guid: Guid) -> Option<RemoteEndpoint<'_>> {
        self.matching.get(guid).map(|endpoint| endpoint.describe(guid))
    }

    /// What discovery itself dropped, beyond what [`Self::on_submessage`] returned.
    #[must_use]
    pub const fn drops(&self) -> &DropCounters {
        &self.drops
    }

    pub(super) fn is_present(&self) -> bool {
        self.presence == Presence::Present
    }

    pub(super) fn has_left(&self) -> bool {
        self.presence == Presence::Left
    }

    /// What others are told about us.
    pub(super) fn participant_data(&self) -> ParticipantData {
        let ParticipantConfig { locators, qos, process, .. } = &self.config;
        let mut properties = self.own_properties();
        process.add_to(&mut properties, self.audience);
        ParticipantData {
            domain_id: Some(self.config.domain.into()),
            domain_tag: self.config.domain_tag.clone(),
            meta_unicast: locators.meta_unicast.clone(),
            meta_multicast: locators.meta_multicast.clone(),
            default_unicast: locators.user_unicast.clone(),
            default_multicast: locators.user_multicast.clone(),
            lease_duration: self.config.lease_duration,
            builtin_endpoints: AVAILABLE_ENDPOINTS,
            lead: self.lead.followed(),
            node_id: locators.node_id,
            name: self.config.name.clone(),
            user_data: qos.user_data.clone(),
            properties,
            ..ParticipantData::new(self.guid())
        }
    }

    /// What the application tells others in properties.
    pub(super) fn own_properties(&self) -> Vec<Property> {
        let propagated = self.config.qos.properties.iter().filter(|property| property.propagate);
        propagated.cloned().collect()
    }

    /// Where this process hears discovery.
    pub(super) fn local_meta(&self) -> Option<Locator> {
        nearest(&self.config.locators.meta_unicast)
    }
}

/// Where local endpoints reach each other.
fn local_path(locators: &LocalLocators, host: &Host) -> EndpointPath {
    let by_memory = locators.node_id.map(Locator::memory);
    let by_udp = || nearest(&locators.user_unicast);
    EndpointPath {
        locators: by_memory.or_else(by_udp).into_iter().collect(),
        urgent: nearest(&locators.meta_unicast).filter(|_| by_memory.is_none()),
        sources: host.sources(by_memory.into_iter()),
        same_host: true,
        is_of_own_process: true,
    }
}

fn nearest(locators: &[Locator]) -> Option<Locator> {
    let loopback = locators.iter().find(|locator| locator.ip().is_some_and(|ip| ip.is_loopback()));
    loopback.or_else(|| locators.first()).copied()
}
