//! A participant of the attacker that answers what it is asked, as any RTPS stack does: so it proves its
//! address.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;

use plainsong_proto::discovery::builtin::{EndpointData, ParticipantData};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::locator::Locator;
use plainsong_proto::wire::{AckNack, Heartbeat};

use crate::compose;

/// A change of a built-in writer.
struct Change {
    inline_qos: Vec<u8>,
    payload: Vec<u8>,
}

/// One of many that the attacker is.
pub(crate) struct Identity {
    pub(crate) data: ParticipantData,
    publications: Vec<Change>,
    subscriptions: Vec<Change>,
    count: i32,
    /// Messages that it has answered.
    pub(crate) answers: u64,
    /// The last HEARTBEAT that asked it.
    pub(crate) asked: Option<Heartbeat>,
    /// The built-in writers that were named to it, by whom. Of a stranger, a participant speaks about one at
    /// most.
    named: BTreeSet<(GuidPrefix, EntityId)>,
}

impl Identity {
    pub(crate) const fn new(data: ParticipantData) -> Self {
        Self {
            data,
            publications: Vec::new(),
            subscriptions: Vec::new(),
            count: 0,
            answers: 0,
            asked: None,
            named: BTreeSet::new(),
        }
    }

    fn prefix(&self) -> GuidPrefix {
        self.data.guid.prefix
    }

    /// Where its built-in endpoints are.
    pub(crate) fn meta(&self) -> Option<SocketAddrV4> {
        self.data.meta_unicast.first().and_then(socket)
    }

    /// A participant has said something to it about one of the built-in writers.
    pub(crate) fn note(&mut self, from: GuidPrefix, writer: EntityId) {
        self.named.insert((from, writer));
    }

    /// Whether a participant has matched its built-in endpoints: it took the address as proven.
    pub(crate) fn is_matched_by(&self, peer: GuidPrefix) -> bool {
        self.named.iter().filter(|(from, _)| *from == peer).count() > 1
    }

    fn next_count(&mut self) -> i32 {
        self.count += 1;
        self.count
    }

    fn changes(&mut self, writer: EntityId) -> &mut Vec<Change> {
        if writer == EntityId::SEDP_PUBLICATIONS_WRITER {
            &mut self.publications
        } else {
            &mut self.subscriptions
        }
    }

    /// Announces an endpoint: the datagram that tells of it.
    pub(crate) fn announce(&mut self, data: &EndpointData, to: GuidPrefix) -> Vec<u8> {
        self.change(data.guid, Change { inline_qos: Vec::new(), payload: data.encode() }, to)
    }

    /// Withdraws an endpoint.
    pub(crate) fn withdraw(&mut self, guid: Guid, to: GuidPrefix) -> Vec<u8> {
        let (inline_qos, payload) = (compose::gone(guid), EndpointData::encode_key(guid));
        self.change(guid, Change { inline_qos, payload }, to)
    }

    fn change(&mut self, guid: Guid, change: Change, to: GuidPrefix) -> Vec<u8> {
        let writer = if guid.entity.is_writer() {
            EntityId::SEDP_PUBLICATIONS_WRITER
        } else {
            EntityId::SEDP_SUBSCRIPTIONS_WRITER
        };
        let changes = self.changes(writer);
        changes.push(change);
        let last = changes.len() as i64;
        self.told(writer, last..=last, to)
    }

    /// A datagram with those of its changes that fit, and the HEARTBEAT of their writer.
    pub(crate) fn told(
        &mut self,
        writer: EntityId,
        numbers: impl IntoIterator<Item = i64>,
        to: GuidPrefix,
    ) -> Vec<u8> {
        let (prefix, count) = (self.prefix(), self.next_count());
        let Some(reader) = counterpart(writer) else { return Vec::new() };
        let announces =
            [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER].contains(&writer);
        let none = Vec::new();
        let changes = if announces { &*self.changes(writer) } else { &none };
        compose::datagram(prefix, to, |message| {
            for number in numbers {
                let Some(change) = usize::try_from(number - 1).ok().and_then(|at| changes.get(at)) else {
                    continue;
                };
                let key_only = !change.inline_qos.is_empty();
                // The heartbeat needs room, too.
                let bytes = 64 + change.inline_qos.len() + change.payload.len();
                if message.remaining() < bytes
                    || !compose::add(
                        message,
                        reader,
                        writer,
                        number,
                        &change.inline_qos,
                        &change.payload,
                        key_only,
                    )
                {
                    break;
                }
            }
            let fits =
                message.heartbeat(&compose::heartbeat(reader, writer, [1, changes.len() as i64], count));
            debug_assert!(fits, "room was kept for it");
        })
    }

    /// The answer to a HEARTBEAT: everything has arrived.
    pub(crate) fn on_heartbeat(&mut self, heartbeat: &Heartbeat, from: GuidPrefix) -> Option<Vec<u8>> {
        let reader = counterpart(heartbeat.writer)?;
        self.answers += 1;
        self.asked = Some(*heartbeat);
        let (prefix, count) = (self.prefix(), self.next_count());
        let answer = compose::acknack(reader, heartbeat.writer, heartbeat.last.0.saturating_add(1), 0, count);
        let answer = AckNack { final_flag: true, ..answer };
        Some(compose::datagram(prefix, from, |message| {
            let fits = message.acknack(&answer);
            debug_assert!(fits, "it is alone");
        }))
    }

    /// The answer to an ACKNACK: what is missing, and what there is.
    pub(crate) fn on_acknack(&mut self, acknack: &AckNack, from: GuidPrefix) -> Option<Vec<u8>> {
        if acknack.final_flag && acknack.missing.is_empty() {
            return None;
        }
        self.answers += 1;
        let numbers: Vec<i64> = acknack.missing.iter().map(|number| number.0).collect();
        Some(self.told(acknack.writer, numbers, from)).filter(|datagram| !datagram.is_empty())
    }
}

/// The socket that a locator names.
pub(crate) fn socket(locator: &Locator) -> Option<SocketAddrV4> {
    match locator.ip()? {
        std::net::IpAddr::V4(ip) => Some(SocketAddrV4::new(ip, locator.udp_port()?)),
        std::net::IpAddr::V6(_) => None,
    }
}

/// The built-in reader that hears a built-in writer.
const fn counterpart(writer: EntityId) -> Option<EntityId> {
    let EntityId([a, b, c, kind]) = writer;
    match kind {
        0xc2 => Some(EntityId([a, b, c, 0xc7])),
        0xc3 => Some(EntityId([a, b, c, 0xc4])),
        _ => None,
    }
}
