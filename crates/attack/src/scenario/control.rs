//! Built-in traffic and acknowledgements in the name of the pair.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use plainsong_proto::discovery::builtin::EndpointData;
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::MessageBuilder;
use plainsong_proto::time::Duration as Lease;

use super::Stage;
use crate::attacker::Peer;
use crate::compose;
use crate::identity::Identity;
use crate::lab::{ATTACKER, victim};
use crate::pair::Worker;
use crate::raw::HEADERS_BYTES;
use crate::worker::hex;

const META: u16 = 7_410;
/// Pause between two rounds.
const ROUND: Duration = Duration::from_millis(100);
/// How long a round of lost datagrams is.
const CUT: Duration = Duration::from_millis(30);
/// Ports of the attacker where each of the pair is said to be.
const PLACES: [u16; 2] = [9_410, 9_510];
/// Numbers that are far ahead, and farther.
const AHEAD: [i64; 4] = [1_000, 1_000_000, 1 << 40, i64::MAX - 1_000];

fn attacker(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(ATTACKER, port)
}

impl Stage<'_> {
    /// Both ways: who is claimed to speak, and who hears it.
    fn ways(&self) -> [(usize, Peer, Peer); 2] {
        let [writer, reader] = self.peers.clone();
        [(0, writer.clone(), reader.clone()), (1, reader, writer)]
    }

    fn say(
        &mut self,
        source: GuidPrefix,
        from: SocketAddrV4,
        to: (GuidPrefix, SocketAddrV4),
        build: impl FnOnce(&mut MessageBuilder<'_>),
    ) {
        let datagram = compose::datagram(source, to.0, build);
        self.attacker.raw.send(from, to.1, &datagram);
    }
}

pub(super) fn departure(stage: &mut Stage<'_>) -> Result<(), String> {
    while !stage.is_over() {
        for (_, named, to) in stage.ways() {
            for from in [attacker(META), SocketAddrV4::new(victim(70), META)] {
                for destination in [to.prefix(), GuidPrefix::UNKNOWN] {
                    let datagram = compose::farewell(named.prefix(), destination);
                    stage.attacker.raw.send(from, to.meta, &datagram);
                }
            }
        }
        stage.attacker.listen(ROUND);
    }
    Ok(())
}

pub(super) fn departure_nearby(stage: &mut Stage<'_>) -> Result<(), String> {
    let mut neighbour = Worker::start(&stage.lab.reader, "neighbour", stage.run, false)?;
    while !stage.is_over() {
        for (_, named, to) in stage.ways() {
            let mut shorter = named.data.clone();
            shorter.lease_duration = Lease::from_millis(100);
            for datagram in
                [compose::farewell(named.prefix(), to.prefix()), compose::announcement(&shorter, to.prefix())]
            {
                for ip in [Ipv4Addr::LOCALHOST, *to.meta.ip()] {
                    let socket = SocketAddrV4::new(ip, to.meta.port());
                    neighbour.tell(&format!("{socket} {}", hex(&datagram)))?;
                    stage.attacker.raw.octets_sent += (HEADERS_BYTES + datagram.len()) as u64;
                }
            }
        }
        stage.attacker.listen(ROUND);
    }
    Ok(())
}

pub(super) fn redirect_participant(stage: &mut Stage<'_>) -> Result<(), String> {
    for (index, named, _) in stage.ways() {
        let [meta, user] = [PLACES[index], PLACES[index] + 1].map(|port| Locator::udp(ATTACKER.into(), port));
        let mut data = named.data.clone();
        (data.meta_unicast, data.default_unicast) = (vec![meta], vec![user]);
        // From now on the attacker answers in its name.
        stage.attacker.identities.insert(named.prefix(), Identity::new(data));
    }
    while !stage.is_over() {
        for (index, named, to) in stage.ways() {
            let Some(identity) = stage.attacker.identities.get(&named.prefix()) else { continue };
            let mut shorter = named.data.clone();
            shorter.lease_duration = Lease::from_millis(100);
            for data in [identity.data.clone(), shorter] {
                let datagram = compose::announcement(&data, to.prefix());
                stage.attacker.raw.send(attacker(PLACES[index]), to.meta, &datagram);
            }
        }
        stage.attacker.listen(ROUND);
    }
    tell_of_samples(stage);
    Ok(())
}

/// What the writer sent to the attacker belongs to the reader alone.
fn tell_of_samples(stage: &mut Stage<'_>) {
    if stage.attacker.sample_octets > 0 {
        let octets = stage.attacker.sample_octets;
        stage.notes.push(format!("{octets} octets of samples went to the attacker"));
    }
}

pub(super) fn redirect_endpoint(stage: &mut Stage<'_>) -> Result<(), String> {
    let from = attacker(PLACES[0]);
    let mut number = 1;
    while !stage.is_over() {
        for (index, named, to) in stage.ways() {
            endpoint_in_the_name_of(stage, &named, &to, from, number, PLACES[index] + 1);
        }
        number = number % 16 + 1;
        stage.attacker.listen(ROUND);
    }
    tell_of_samples(stage);
    Ok(())
}

/// Announces the endpoint of one of the pair elsewhere, and withdraws it.
fn endpoint_in_the_name_of(
    stage: &mut Stage<'_>,
    named: &Peer,
    to: &Peer,
    from: SocketAddrV4,
    number: i64,
    port: u16,
) {
    let guid = named.endpoint;
    let (writer, reader) = if guid.entity.is_writer() {
        (EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_PUBLICATIONS_READER)
    } else {
        (EntityId::SEDP_SUBSCRIPTIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_READER)
    };
    let place = Locator::udp(ATTACKER.into(), port);
    let data = compose::endpoint(guid.prefix, guid.entity, vec![place]).encode();
    let (gone, key) = (compose::gone(guid), EndpointData::encode_key(guid));
    for (ahead, inline_qos, payload) in [(0, &Vec::new(), &data), (1, &gone, &key)] {
        let number = number + ahead;
        let heartbeat = compose::heartbeat(reader, writer, [number, number], 1_000 + number as i32);
        stage.say(guid.prefix, from, (to.prefix(), to.meta), |message| {
            let key_only = !inline_qos.is_empty();
            compose::add(message, reader, writer, number, inline_qos, payload, key_only);
            let fits = message.heartbeat(&heartbeat);
            debug_assert!(fits, "both are short");
        });
    }
}

/// HEARTBEAT and GAP of the pair's writer, and of the built-in ones, that pass over what is to come.
fn pass_over(stage: &mut Stage<'_>, from: [SocketAddrV4; 2], round: i32) {
    for (index, named, to) in stage.ways() {
        let builtin = [
            (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER),
            (EntityId::SEDP_SUBSCRIPTIONS_READER, EntityId::SEDP_SUBSCRIPTIONS_WRITER),
        ];
        let user = [(to.endpoint.entity, named.endpoint.entity)];
        let user = user.into_iter().filter(|_| index == 0);
        for (reader, writer) in builtin.into_iter().chain(user) {
            let socket = if writer.is_builtin() { to.meta } else { to.user };
            for (place, ahead) in AHEAD.into_iter().enumerate() {
                let count = 1_000 + round * 8 + place as i32;
                let heartbeat = compose::heartbeat(reader, writer, [ahead, ahead + 10], count);
                let gap = compose::gap(reader, writer, 1, ahead);
                stage.say(named.prefix(), from[index], (to.prefix(), socket), |message| {
                    let fits = message.heartbeat(&heartbeat) && message.gap(&gap);
                    debug_assert!(fits, "both are short");
                });
            }
        }
    }
}

pub(super) fn heartbeat_gap(stage: &mut Stage<'_>) -> Result<(), String> {
    let mut round = 0;
    while !stage.is_over() {
        pass_over(stage, PLACES.map(attacker), round);
        round += 1;
        stage.attacker.listen(ROUND);
        if round % 4 == 0 {
            stage.cut(CUT)?;
        }
    }
    Ok(())
}

/// Acknowledges in the reader's name what has not arrived.
fn acknowledge(stage: &mut Stage<'_>, from: SocketAddrV4, round: i32) -> Result<(), String> {
    let written = stage.pair.writer.ask()?.samples as i64;
    let [writer, reader] = stage.peers.clone();
    for (place, base) in [written, written + 1, written + 20, i64::MAX / 2].into_iter().enumerate() {
        let count = 1_000_000 + round * 8 + place as i32;
        let acknack = compose::acknack(reader.endpoint.entity, writer.endpoint.entity, base, 0, count);
        stage.say(reader.prefix(), from, (writer.prefix(), writer.user), |message| {
            let fits = message.acknack(&acknack);
            debug_assert!(fits, "it is alone");
        });
    }
    Ok(())
}

pub(super) fn acknack(stage: &mut Stage<'_>) -> Result<(), String> {
    let mut round = 0;
    while !stage.is_over() {
        stage.lab.reader.join(false)?;
        for _ in 0..4 {
            acknowledge(stage, attacker(PLACES[1]), round)?;
            round += 1;
            stage.attacker.listen(CUT / 4);
        }
        stage.lab.reader.join(true)?;
        stage.attacker.listen(2 * ROUND);
    }
    Ok(())
}

pub(super) fn as_peer(stage: &mut Stage<'_>) -> Result<(), String> {
    let [writer, reader] = stage.peers.clone();
    let mut round = 0;
    while !stage.is_over() {
        pass_over(stage, [writer.user, reader.user], round);
        acknowledge(stage, reader.user, round)?;
        for (index, named, to) in stage.ways() {
            endpoint_in_the_name_of(stage, &named, &to, named.meta, i64::from(round) + 2, PLACES[index] + 1);
            let mut moved = named.data.clone();
            moved.meta_unicast = vec![Locator::udp(victim(80).into(), META)];
            moved.default_unicast = vec![Locator::udp(victim(80).into(), META + 1)];
            let datagram = compose::announcement(&moved, to.prefix());
            stage.attacker.raw.send(named.meta, to.meta, &datagram);
            if round % 8 == 7 {
                stage.attacker.raw.send(named.meta, to.meta, &compose::farewell(named.prefix(), to.prefix()));
            }
        }
        round += 1;
        stage.attacker.listen(ROUND);
    }
    tell_of_samples(stage);
    stage.notes.push("from a genuine address without security: losses are told, not judged".to_owned());
    Ok(())
}
