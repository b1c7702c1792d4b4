//! The attacker: what it has heard, who it claims to be, and how it answers.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use plainsong_proto::discovery::builtin::{EndpointData, ParticipantData};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Instant as Mono, Now, Time};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext};

use crate::compose;
use crate::identity::{Identity, socket};
use crate::lab::ATTACKER;
use crate::random::Random;
use crate::raw::{Raw, is_own};

/// Pause between two datagrams of what is not a flood.
const PACE: Duration = Duration::from_micros(200);
/// How long it may take until an honest participant is matched.
const PROOF_MAX: Duration = Duration::from_secs(5);

/// One of the pair, as anyone on its network knows it.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) data: ParticipantData,
    /// Its writer or reader.
    pub(crate) endpoint: Guid,
    pub(crate) meta: SocketAddrV4,
    pub(crate) user: SocketAddrV4,
}

impl Peer {
    pub(crate) const fn prefix(&self) -> GuidPrefix {
        self.data.guid.prefix
    }
}

/// Everything an attack works with.
pub(crate) struct Attacker {
    pub(crate) raw: Raw,
    pub(crate) random: Random,
    pub(crate) identities: BTreeMap<GuidPrefix, Identity>,
    announced: BTreeMap<GuidPrefix, ParticipantData>,
    /// Octets of samples that the pair's writer has sent to the attacker.
    pub(crate) sample_octets: u64,
    port: u16,
}

impl Attacker {
    /// Listens from now on.
    pub(crate) fn new(random: Random) -> Result<Self, String> {
        let raw = Raw::open().map_err(|error| format!("raw sockets (they need root): {error}"))?;
        let (identities, announced) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { raw, random, identities, announced, sample_octets: 0, port: 20_000 })
    }

    /// What the announcements of a participant tell about it.
    pub(crate) fn learn(&mut self, endpoint: Guid) -> Result<Peer, String> {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(data) = self.announced.get(&endpoint.prefix)
                && let Some(meta) = data.meta_unicast.iter().find_map(outside)
                && let Some(user) = data.default_unicast.iter().find_map(outside)
            {
                return Ok(Peer { data: data.clone(), endpoint, meta, user });
            }
            if Instant::now() > end {
                return Err("a participant of the pair does not announce itself".to_owned());
            }
            self.listen(Duration::from_millis(20));
        }
    }

    /// A name that nobody has.
    pub(crate) fn prefix(&mut self) -> GuidPrefix {
        let mut octets = [0; 12];
        octets[..8].copy_from_slice(&self.random.next().to_be_bytes());
        octets[8..].copy_from_slice(&self.random.next().to_be_bytes()[..4]);
        GuidPrefix(octets)
    }

    /// Two ports of the attacker that no other identity has.
    fn locators(&mut self, ip: Ipv4Addr) -> [Locator; 2] {
        self.port = if self.port < 60_000 { self.port + 2 } else { 20_000 };
        [self.port, self.port + 1].map(|port| Locator::udp(ip.into(), port))
    }

    /// A new participant at the attacker's address, which answers from now on.
    pub(crate) fn newcomer(&mut self, change: impl FnOnce(&mut ParticipantData)) -> GuidPrefix {
        let prefix = self.prefix();
        let [meta, user] = self.locators(ATTACKER);
        let mut data = compose::participant(prefix, meta, user);
        change(&mut data);
        self.identities.insert(prefix, Identity::new(data));
        prefix
    }

    /// Announces one of its identities to one of the pair.
    pub(crate) fn announce(&mut self, prefix: GuidPrefix, to: &Peer) {
        let Some(identity) = self.identities.get(&prefix) else { return };
        let Some(from) = identity.meta() else { return };
        let datagram = compose::announcement(&identity.data, GuidPrefix::UNKNOWN);
        self.raw.send(from, to.meta, &datagram);
    }

    /// A participant that has proven its address to both.
    ///
    /// # Errors
    /// They do not match it: an attack that needs it would show nothing.
    pub(crate) fn proven(
        &mut self,
        peers: &[Peer; 2],
        change: impl FnOnce(&mut ParticipantData),
    ) -> Result<GuidPrefix, String> {
        let prefix = self.newcomer(change);
        let end = Instant::now() + PROOF_MAX;
        while Instant::now() < end {
            peers.iter().for_each(|peer| self.announce(prefix, peer));
            self.listen(Duration::from_millis(100));
            if self
                .identities
                .get(&prefix)
                .is_some_and(|it| peers.iter().all(|peer| it.is_matched_by(peer.prefix())))
            {
                return Ok(prefix);
            }
        }
        Err("an honest participant, which answers what it is asked, is not matched".to_owned())
    }

    /// Announces an endpoint of an identity to one of the pair.
    pub(crate) fn publish(&mut self, data: &EndpointData, to: &Peer) {
        let Some(identity) = self.identities.get_mut(&data.guid.prefix) else { return };
        let datagram = identity.announce(data, to.prefix());
        if let Some(from) = identity.meta() {
            self.raw.send(from, to.meta, &datagram);
        }
        self.listen(PACE);
    }

    /// Withdraws one.
    pub(crate) fn withdraw(&mut self, guid: Guid, to: &Peer) {
        let Some(identity) = self.identities.get_mut(&guid.prefix) else { return };
        let datagram = identity.withdraw(guid, to.prefix());
        if let Some(from) = identity.meta() {
            self.raw.send(from, to.meta, &datagram);
        }
        self.listen(PACE);
    }

    /// Hears and answers for so long.
    pub(crate) fn listen(&mut self, time: Duration) {
        let end = Instant::now() + time;
        let mut bytes = Vec::new();
        while let Some(arrived) = self.raw.receive(end) {
            bytes.clear();
            bytes.extend_from_slice(arrived.payload);
            let (from, to) = (arrived.from, arrived.to);
            if !is_own(*from.ip()) {
                self.hear(from, to, &bytes);
            }
            // Who is flooded itself goes on all the same.
            if Instant::now() > end {
                break;
            }
        }
    }

    fn hear(&mut self, from: SocketAddrV4, to: SocketAddrV4, bytes: &[u8]) {
        let mut heard = Heard {
            identities: &mut self.identities,
            announced: &mut self.announced,
            sample_octets: &mut self.sample_octets,
            answers: Vec::new(),
            to,
        };
        let now = Now { mono: Mono(0), wall: Time::INVALID };
        let locator = Locator::udp((*from.ip()).into(), from.port());
        receiver::datagram(
            now,
            locator,
            bytes,
            None,
            &mut heard,
            &mut DropCounters::default(),
            &mut Outbox::new(),
        );
        for (own, whom, answer) in heard.answers {
            let metas = self.announced.get(&whom).and_then(|data| data.meta_unicast.iter().find_map(outside));
            self.raw.send(own, metas.unwrap_or(from), &answer);
        }
    }
}

/// The socket that a locator names, when others than its host can reach it.
fn outside(locator: &Locator) -> Option<SocketAddrV4> {
    socket(locator).filter(|it| !it.ip().is_loopback())
}

/// One datagram that is heard.
struct Heard<'a> {
    identities: &'a mut BTreeMap<GuidPrefix, Identity>,
    announced: &'a mut BTreeMap<GuidPrefix, ParticipantData>,
    sample_octets: &'a mut u64,
    /// From where, to whom, what.
    answers: Vec<(SocketAddrV4, GuidPrefix, Vec<u8>)>,
    to: SocketAddrV4,
}

impl Registry for Heard<'_> {
    fn deliver(
        &mut self,
        _: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        _: &mut Outbox,
    ) {
        if let EndpointSubmessage::Data(data) = submessage {
            if data.writer == EntityId::SPDP_WRITER
                && let Ok(announced) = ParticipantData::decode(data.payload)
                && announced.guid.prefix == context.source
            {
                self.announced.insert(context.source, announced);
            } else if !data.writer.is_builtin() {
                *self.sample_octets += data.payload.len() as u64;
            }
        }
        if !submessage.writer().is_builtin() || submessage.writer() == EntityId::SPDP_WRITER {
            return;
        }
        // Without INFO_DST a message is for whoever listens where it arrives.
        let destination = context.destination;
        let to = self.to;
        let addressed = self.identities.values_mut().filter(|it| {
            it.data.guid.prefix == destination
                || (destination == GuidPrefix::UNKNOWN && it.meta() == Some(to))
        });
        for identity in addressed {
            identity.note(context.source, submessage.writer());
            let answer = match submessage {
                EndpointSubmessage::Heartbeat(heartbeat) => identity.on_heartbeat(heartbeat, context.source),
                EndpointSubmessage::AckNack(acknack) => identity.on_acknack(acknack, context.source),
                _ => None,
            };
            if let (Some(answer), Some(own)) = (answer, identity.meta()) {
                self.answers.push((own, context.source, answer));
            }
        }
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        self.identities.contains_key(&prefix)
    }
}
