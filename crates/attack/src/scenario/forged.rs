//! Participants at addresses that are not the attacker's: what reaches those addresses was drawn.

use std::net::SocketAddrV4;
use std::time::Duration;

use plainsong_proto::discovery::builtin::ParticipantData;
use plainsong_proto::guid::EntityId;
use plainsong_proto::locator::Locator;
use plainsong_proto::qos::Durability;
use plainsong_proto::wire::{AckNack, Heartbeat};

use super::Stage;
use crate::attacker::Peer;
use crate::compose;
use crate::identity::Identity;
use crate::lab::victim;

const META: u16 = 7_410;
const USER: u16 = 7_411;
/// Endpoints that ask for the stream of the pair.
const READERS: u32 = 50;
/// Numbers and counts that a guess tries: both begin small.
const GUESSES: i64 = 64;

/// A participant that claims to live at an address of the victim, and the address it speaks from.
fn forged(stage: &mut Stage<'_>, last: u8) -> (Identity, SocketAddrV4) {
    let ip = victim(last);
    let [meta, user] = [META, USER].map(|port| Locator::udp(ip.into(), port));
    let data = compose::participant(stage.attacker.prefix(), meta, user);
    (Identity::new(data), SocketAddrV4::new(ip, META))
}

/// An acknowledgement of what the peer's writer of publications has sent, up to before `base`.
fn answer(
    stage: &mut Stage<'_>,
    data: &ParticipantData,
    from: SocketAddrV4,
    to: &Peer,
    base: i64,
    count: i32,
) {
    let (reader, writer) = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
    let acknack = AckNack { final_flag: true, ..compose::acknack(reader, writer, base, 0, count) };
    let datagram = compose::datagram(data.guid.prefix, to.prefix(), |message| {
        let fits = message.acknack(&acknack);
        debug_assert!(fits, "it is alone");
    });
    stage.attacker.raw.send(from, to.meta, &datagram);
}

/// What anyone can send who has heard the pair's announcements, with an answer whose numbers are of no
/// challenge.
fn speak(stage: &mut Stage<'_>, identity: &Identity, from: SocketAddrV4, to: &Peer) {
    let announcement = compose::announcement(&identity.data, to.prefix());
    stage.attacker.raw.send(from, to.meta, &announcement);
    answer(stage, &identity.data, from, to, 0, 1);
    stage.attacker.raw.send(from, to.meta, &announcement);
}

pub(super) fn proof(stage: &mut Stage<'_>) -> Result<(), String> {
    for to in stage.peers.clone() {
        let (identity, from) = forged(stage, 10);
        speak(stage, &identity, from, &to);
    }
    stage.wait();
    Ok(())
}

/// Readers of the pair's topic, every other one best effort: they need not acknowledge.
fn ask_for_samples(
    stage: &mut Stage<'_>,
    identity: &mut Identity,
    from: SocketAddrV4,
    to: &Peer,
    unicast: &[Locator],
) {
    for key in 0..READERS {
        let entity = EntityId::user_reader(key + 1, true);
        let mut data = compose::endpoint(identity.data.guid.prefix, entity, unicast.to_vec());
        if key % 2 == 0 {
            data.qos = data.qos.best_effort();
        } else if key % 4 == 1 {
            // Of a writer that keeps its history, this asks for all of it.
            data.qos = data.qos.durability(Durability::TransientLocal);
        }
        let datagram = identity.announce(&data, to.prefix());
        stage.attacker.raw.send(from, to.meta, &datagram);
    }
}

pub(super) fn readers(stage: &mut Stage<'_>) -> Result<(), String> {
    let to = stage.peers[0].clone();
    let (mut identity, from) = forged(stage, 20);
    speak(stage, &identity, from, &to);
    stage.attacker.listen(Duration::from_millis(100));
    ask_for_samples(stage, &mut identity, from, &to, &[]);
    stage.wait();
    Ok(())
}

pub(super) fn guesses(stage: &mut Stage<'_>) -> Result<(), String> {
    for last in 30..40 {
        let to = stage.peers[usize::from(last % 2)].clone();
        let (mut identity, from) = forged(stage, last);
        speak(stage, &identity, from, &to);
        for guess in 0..GUESSES {
            answer(stage, &identity.data, from, &to, guess, guess as i32 + 2);
        }
        stage.attacker.listen(Duration::from_millis(50));
        ask_for_samples(stage, &mut identity, from, &to, &[]);
        if stage.is_over() {
            return Ok(());
        }
    }
    stage.wait();
    Ok(())
}

pub(super) fn replay(stage: &mut Stage<'_>) -> Result<(), String> {
    let to = stage.peers[0].clone();
    let own = stage.attacker.newcomer(|_| {});
    stage.attacker.announce(own, &to);
    stage.attacker.listen(Duration::from_millis(300));
    let asked = stage.attacker.identities.get(&own).and_then(|it| it.asked);
    let Some(Heartbeat { last, count, .. }) = asked else {
        return Err("the writer's participant asked a newcomer for no proof".to_owned());
    };
    for address in 50..60 {
        let (mut identity, from) = forged(stage, address);
        speak(stage, &identity, from, &to);
        // The challenges of others differ a little, if at all.
        for base in last.0.saturating_sub(2)..=last.0.saturating_add(4) {
            answer(stage, &identity.data, from, &to, base, count);
        }
        stage.attacker.listen(Duration::from_millis(50));
        ask_for_samples(stage, &mut identity, from, &to, &[]);
    }
    stage.wait();
    Ok(())
}

pub(super) fn third_addresses(stage: &mut Stage<'_>) -> Result<(), String> {
    let peers = stage.peers.clone();
    let place = |last: u8, port: u16| Locator::udp(victim(last).into(), port);
    // Endpoints that live elsewhere, and participants all of whose endpoints do, or which live in both
    // places.
    let plain = stage.attacker.proven(&peers, |_| {})?;
    let moved = stage.attacker.proven(&peers, |data| data.default_unicast = vec![place(60, USER)])?;
    let both = stage.attacker.proven(&peers, |data| {
        data.default_unicast.insert(0, place(61, USER));
        data.meta_unicast.push(place(61, META));
    })?;
    for (prefix, unicast) in [(plain, vec![place(62, USER)]), (moved, Vec::new()), (both, Vec::new())] {
        for key in 0..READERS {
            let entity = EntityId::user_reader(key + 1, true);
            let mut data = compose::endpoint(prefix, entity, unicast.clone());
            if key % 2 == 0 {
                data.qos = data.qos.best_effort();
            } else {
                data.multicast = unicast.clone();
            }
            stage.attacker.publish(&data, &peers[0]);
        }
    }
    stage.wait();
    Ok(())
}
