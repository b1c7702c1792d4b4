//! Datagrams that are nearly right.

use std::net::SocketAddrV4;
use std::time::Duration;

use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::outbox::DataFragHeader;
use plainsong_proto::payload::Payload;
use plainsong_proto::seq::SequenceNumber;

use super::Stage;
use crate::compose;
use crate::lab::{ATTACKER, victim};
use crate::random::Random;

/// Datagrams between two looks at what has arrived.
const BATCH: usize = 8;

/// One of each kind, of a stranger or in the name of one of the pair, for the other.
fn originals(stage: &mut Stage<'_>) -> Result<Vec<Vec<u8>>, String> {
    let own = stage.attacker.proven(&stage.peers.clone(), |_| {})?;
    let [writer, reader] = stage.peers.clone();
    let sample = compose::sample(7);
    let mut datagrams = Vec::new();
    for (source, to) in
        [(own, &writer), (own, &reader), (writer.prefix(), &reader), (reader.prefix(), &writer)]
    {
        let data = if source == writer.prefix() { &writer.data } else { &reader.data };
        let data = stage.attacker.identities.get(&source).map_or(data, |it| &it.data);
        datagrams.push(compose::announcement(data, to.prefix()));
        datagrams.push(compose::announcement(data, GuidPrefix::UNKNOWN));
        let (theirs, other) =
            (to.endpoint.entity, if to.endpoint == writer.endpoint { &reader } else { &writer });
        let ours = other.endpoint.entity;
        let endpoint = compose::endpoint(source, ours, Vec::new());
        let pairs = [
            (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER),
            (EntityId::SEDP_SUBSCRIPTIONS_READER, EntityId::SEDP_SUBSCRIPTIONS_WRITER),
            (EntityId::PARTICIPANT_MESSAGE_READER, EntityId::PARTICIPANT_MESSAGE_WRITER),
            (theirs, ours),
        ];
        for (heard, heard_of) in pairs {
            datagrams.push(compose::datagram(source, to.prefix(), |message| {
                let payload = if heard_of.is_builtin() { endpoint.encode() } else { sample.clone() };
                let whole = Payload::from_vec(payload.clone());
                compose::add(message, heard, heard_of, 3, &[], &payload, false);
                let frag = DataFragHeader {
                    reader: heard,
                    writer: heard_of,
                    sequence_number: SequenceNumber(5),
                    first_fragment: 2,
                    fragments: 1,
                    fragment_bytes: 16,
                    inline_qos: &[],
                    key_only: false,
                };
                let fits = message.data_frag(&frag, &whole)
                    && message.heartbeat(&compose::heartbeat(heard, heard_of, [1, 9], 77))
                    && message.gap(&compose::gap(heard, heard_of, 4, 6))
                    && message.acknack(&compose::acknack(heard, heard_of, 2, 3, 77));
                debug_assert!(fits, "all are short");
            }));
        }
        datagrams.push(compose::farewell(source, to.prefix()));
    }
    Ok(datagrams)
}

/// Changes a few octets, and now and then cuts, lengthens or doubles.
fn mutate(random: &mut Random, datagram: &mut Vec<u8>) {
    for _ in 0..=random.below(8) {
        let place = random.below(datagram.len().max(1));
        if let Some(octet) = datagram.get_mut(place) {
            *octet = match random.below(4) {
                0 => 0,
                1 => 0xff,
                2 => *octet ^ (1 << random.below(8)),
                _ => random.next() as u8,
            };
        }
    }
    match random.below(8) {
        0 => datagram.truncate(random.below(datagram.len().max(1))),
        1 => {
            let start = random.below(datagram.len().max(1));
            datagram.extend_from_within(start..);
        }
        2 => datagram.extend((0..random.below(64)).map(|octet| octet as u8)),
        _ => {}
    }
    datagram.truncate(compose::DATAGRAM_BYTES_MAX);
}

pub(super) fn mutations(stage: &mut Stage<'_>) -> Result<(), String> {
    let originals = originals(stage)?;
    let mut sent = 0_u64;
    while !stage.is_over() {
        for _ in 0..BATCH {
            let random = &mut stage.attacker.random;
            let mut datagram = originals[random.below(originals.len())].clone();
            mutate(random, &mut datagram);
            let peer = &stage.peers[random.below(2)];
            let to = if random.below(2) == 0 { peer.meta } else { peer.user };
            let ip = if random.below(4) == 0 { victim(90) } else { ATTACKER };
            stage.attacker.raw.send(SocketAddrV4::new(ip, 9_900), to, &datagram);
            sent += 1;
        }
        stage.attacker.listen(Duration::from_millis(1));
    }
    stage.notes.push(format!("{sent} datagrams"));
    Ok(())
}
