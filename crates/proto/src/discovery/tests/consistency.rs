//! Readers with CONSISTENCY ATOMIC are told to Plainsong alone; who matches whom follows from that.

use super::network::{Network, READER, WRITER, config, endpoint, prefix, udp};
use super::peer::{VENDOR, dissect};
use super::types::{SHAPE, described, typed};
use super::untyped::{CYCLONE_DDS, pretend};
use crate::discovery::MismatchReason;
use crate::discovery::builtin::EndpointData;
use crate::guid::{EntityId, Guid};
use crate::outbox::Event;
use crate::qos::{ConsistencyKind, PolicyId, QosSet};
use crate::time::Duration;
use crate::vendor::PLAINSONG;

/// Those whom types break, those who read them, and those whom nobody knows: each is told in another form.
const OTHERS: [(usize, [u8; 2]); 3] = [(2, CYCLONE_DDS), (3, [0x01, 0x01]), (4, VENDOR)];

fn disguise(datagram: &mut [u8]) {
    OTHERS.iter().for_each(|(node, vendor)| pretend(datagram, *node, *vendor));
}

/// Two nodes of Plainsong, then one of each other kind; none has started.
fn network() -> Network {
    let mut network = Network::new();
    (0..5).for_each(|node| {
        network.add(config(node));
    });
    network.changes = Some(disguise);
    network.capture = Some(Vec::new());
    network
}

fn atomic() -> QosSet {
    QosSet::writer().consistency(ConsistencyKind::Atomic)
}

fn start(network: &mut Network, nodes: impl IntoIterator<Item = usize>) {
    for node in nodes {
        network.start(node);
    }
    network.run_for(Duration::from_secs(1));
}

/// The endpoints that the first node announced to another, since the capture began.
fn told(network: &Network, node: usize) -> Vec<EndpointData> {
    let of = |place: usize| udp(&format!("10.0.0.{}", place + 1), 7410);
    let sent = network.capture.as_ref().unwrap().iter();
    let sent = sent.filter(|(from, to, _)| *from == of(0) && *to == of(node));
    let data = sent.flat_map(|(.., bytes)| dissect(bytes).data);
    let announces =
        [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER, EntityId::UNKNOWN];
    let announcements = data.filter(|told| announces.contains(&told.writer));
    announcements.filter_map(|told| EndpointData::decode(&told.payload, PLAINSONG).ok()).collect()
}

fn guids_told(network: &Network, node: usize) -> Vec<EntityId> {
    let mut guids: Vec<_> = told(network, node).iter().map(|data| data.guid.entity).collect();
    guids.sort_unstable();
    guids.dedup();
    guids
}

fn knows(network: &Network, node: usize, guid: Guid) -> bool {
    network.nodes[node].participant.endpoint(guid).is_some()
}

#[test]
fn a_reader_with_atomic_is_told_to_plainsong_alone_whoever_comes_first() {
    const LATE: EntityId = EntityId::user_reader(9, true);
    for others_first in [false, true] {
        let mut network = network();
        if others_first {
            start(&mut network, 0..5);
        }
        let reader = typed(0, READER, atomic(), &described(SHAPE));
        network.call(0, |participant, now, out| participant.add_endpoint(now, reader, out)).unwrap();
        let writer = typed(0, WRITER, atomic(), &described(SHAPE));
        network.call(0, |participant, now, out| participant.add_endpoint(now, writer, out)).unwrap();
        if !others_first {
            start(&mut network, 0..5);
        }
        // One that everybody may know comes after it.
        network.add_endpoint(0, LATE, "Circle", QosSet::reader());
        network.run_for(Duration::from_secs(1));
        assert_eq!(guids_told(&network, 1), [WRITER, READER, LATE]);
        assert!(knows(&network, 1, prefix(0).entity(READER)));
        for (node, vendor) in OTHERS {
            assert_eq!(
                guids_told(&network, node),
                [WRITER, LATE],
                "{vendor:?}, others first: {others_first}"
            );
            assert!(!knows(&network, node, prefix(0).entity(READER)));
            assert!(knows(&network, node, prefix(0).entity(LATE)), "what it is not told of is no gap");
        }
        // It leaves, and another takes its place: nobody else hears of that either.
        network.capture = Some(Vec::new());
        network.call(0, |participant, now, out| {
            participant.remove_endpoint(now, prefix(0).entity(READER), out);
        });
        let again = EntityId::user_reader(10, true);
        network.add_endpoint(0, again, "Square", atomic());
        network.run_for(Duration::from_secs(1));
        assert!(!knows(&network, 1, prefix(0).entity(READER)));
        assert!(knows(&network, 1, prefix(0).entity(again)));
        for (node, vendor) in OTHERS {
            let told = guids_told(&network, node);
            assert!(!told.contains(&again) && !told.contains(&READER), "{vendor:?}: {told:?}");
        }
    }
}

/// The end of what is announced of a reader with ATOMIC and else the defaults.
#[test]
fn an_announcement_ends_with_consistency() {
    let mut network = network();
    network.add_endpoint(0, READER, "Square", atomic());
    start(&mut network, [0, 1]);
    let of = |place: usize| udp(&format!("10.0.0.{}", place + 1), 7410);
    let sent = network.capture.as_ref().unwrap().iter();
    let sent = sent.filter(|(from, to, _)| *from == of(0) && *to == of(1));
    let payloads: Vec<_> = sent
        .flat_map(|(.., bytes)| dissect(bytes).data)
        .filter(|told| told.writer == EntityId::SEDP_SUBSCRIPTIONS_WRITER)
        .map(|told| told.payload)
        .collect();
    assert!(!payloads.is_empty());
    for payload in payloads {
        assert!(payload.ends_with(&[0x05, 0x8f, 4, 0, 1, 0, 0, 0, 1, 0, 0, 0]), "{payload:?}");
    }
}

#[test]
fn atomic_readers_match_atomic_writers_and_only_our_side_hears_what_others_lack() {
    const EVENTUAL: EntityId = EntityId::user_writer(7, true);
    let mut network = network();
    let reader = network.add_endpoint(0, READER, "Square", atomic());
    network.add_endpoint(1, WRITER, "Square", atomic());
    network.add_endpoint(1, EVENTUAL, "Square", QosSet::writer());
    for (node, _) in OTHERS {
        network.add_endpoint(node, WRITER, "Square", QosSet::writer());
    }
    start(&mut network, 0..5);
    let with = |node: usize, entity| (READER, prefix(node).entity(entity));
    assert_eq!(network.matches(0).into_iter().collect::<Vec<_>>(), [with(1, WRITER)]);
    let mismatches: Vec<_> = network.nodes[0].participant.mismatches().collect();
    assert_eq!(mismatches.len(), 1 + OTHERS.len());
    for mismatch in mismatches {
        assert_eq!(mismatch.reason, MismatchReason::Qos(vec![PolicyId::Consistency]));
    }
    // Between ourselves both sides hear of it.
    let of_writer: Vec<_> = network.nodes[1].participant.mismatches().collect();
    assert_eq!(of_writer.len(), 1);
    assert_eq!(of_writer[0].reason, MismatchReason::Qos(vec![PolicyId::Consistency]));
    let met_reader = |(_, event): &(u64, Event)| match event {
        Event::MismatchChanged { reader: it, .. } => *it == reader,
        Event::EndpointChanged { endpoint } => *endpoint == reader,
        _ => false,
    };
    for (node, vendor) in OTHERS {
        assert!(network.matches(node).is_empty(), "{vendor:?}");
        assert!(!network.nodes[node].events.iter().any(met_reader), "{vendor:?}");
    }
}

#[test]
fn readers_of_others_match_a_writer_with_atomic() {
    let mut network = network();
    network.add_endpoint(0, WRITER, "Square", atomic());
    for node in 1..5 {
        network.add_endpoint(node, READER, "Square", QosSet::writer());
    }
    start(&mut network, 0..5);
    assert_eq!(network.matches(0).len(), 4);
    for node in 1..5 {
        assert_eq!(network.matches(node).len(), 1);
        let known = network.nodes[node].participant.endpoint(prefix(0).entity(WRITER)).unwrap();
        assert!(known.qos.is_atomic(), "they are told, too");
    }
}

#[test]
fn where_all_readers_are_eventual_everyone_is_told_the_same() {
    let mut network = network();
    network.add_endpoint(0, WRITER, "Square", atomic());
    network.add_endpoint(0, READER, "Square", QosSet::reader());
    start(&mut network, [0, 1, 3]);
    assert!(!network.nodes[0].participant.builtin.copies.any());
    assert_eq!([1, 3].map(|node| guids_told(&network, node)), [vec![WRITER, READER], vec![WRITER, READER]]);
}

#[test]
fn participants_of_a_process_tell_each_other_of_readers_with_atomic() {
    let mut network = Network::new();
    for node in 0..2 {
        network.add_to(0, config(node));
    }
    network.add(config(2));
    network.add_endpoint(0, READER, "Square", atomic());
    let own = endpoint(prefix(0), WRITER, "Square", atomic());
    network.call(0, |participant, now, out| participant.add_endpoint(now, own, out)).unwrap();
    network.add_endpoint(1, WRITER, "Square", atomic());
    network.add_endpoint(2, WRITER, "Square", atomic());
    start(&mut network, 0..3);
    let writers: Vec<_> =
        network.matches(0).into_iter().filter(|(local, _)| *local == READER).map(|it| it.1.prefix).collect();
    assert_eq!(writers, [prefix(0), prefix(1), prefix(2)]);
}
