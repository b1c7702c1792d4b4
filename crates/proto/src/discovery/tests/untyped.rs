//! Types are told to everyone but the versions that break, whoever comes first.

use std::sync::Arc;

use super::network::{Network, READER, WRITER, config, endpoint, prefix, udp};
use super::types::{SHAPE, described, typed};
use crate::discovery::Command;
use crate::discovery::builtin::EndpointData;
use crate::discovery::forms::{self, Form};
use crate::qos::QosSet;
use crate::time::Duration;
use crate::types::ComponentPlace;
use crate::wire::param::pid;

/// Participants from 5 on say that they are of Cyclone DDS, and tell no version.
fn disguise(datagram: &mut [u8]) {
    (5..8).for_each(|node| pretend(datagram, node, CYCLONE_DDS));
}

pub(super) const CYCLONE_DDS: [u8; 2] = [0x01, 0x10];

/// Where a participant announces itself, it says that it is of another vendor.
pub(super) fn pretend(datagram: &mut [u8], node: usize, vendor: [u8; 2]) {
    let guid = [&[0x50, 0, 16, 0][..], &prefix(node).0].concat();
    let places = datagram
        .windows(24)
        .enumerate()
        .filter(|(_, window)| window.starts_with(&[0x16, 0, 4, 0]) && window[8..].starts_with(&guid));
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    places.into_iter().for_each(|place| datagram[place + 4..][..2].copy_from_slice(&vendor));
}

/// Seven nodes, of which none has started.
fn network() -> Network {
    let mut network = Network::new();
    (0..8).for_each(|node| {
        network.add(config(node));
    });
    network.changes = Some(disguise);
    network
}

fn start_reader(network: &mut Network, node: usize) {
    let reader = typed(node, READER, QosSet::reader(), &described(SHAPE));
    network.call(node, |participant, now, out| participant.add_endpoint(now, reader, out)).unwrap();
    network.start(node);
}

/// Whether what the first node sent to another told the type, and whether it told that it does not.
fn told(network: &Network, node: usize) -> (bool, bool) {
    let hash = described(SHAPE).objects.first_key_value().unwrap().0.octets;
    let of = |place: usize| udp(&format!("10.0.0.{}", place + 1), 7410);
    let sent = network.capture.as_ref().unwrap().iter();
    let sent: Vec<_> = sent.filter(|(from, to, _)| *from == of(0) && *to == of(node)).collect();
    let has = |part: &[u8]| sent.iter().any(|(_, _, bytes)| bytes.windows(part.len()).any(|it| it == part));
    let [low, high] = pid::PLAINSONG_UNTYPED.to_le_bytes();
    (has(&hash), has(&[low, high, 0, 0]))
}

#[test]
fn types_are_told_to_all_but_the_versions_that_break() {
    let mut network = network();
    network.capture = Some(Vec::new());
    let writer = typed(0, WRITER, QosSet::writer(), &described(SHAPE));
    network.call(0, |participant, now, out| participant.add_endpoint(now, writer, out)).unwrap();
    network.start(0);
    // One that reads types, one that breaks, then another of each.
    for node in [1, 5, 2, 6] {
        start_reader(&mut network, node);
        network.run_for(Duration::from_millis(500));
    }
    for node in [1, 2] {
        assert_eq!(told(&network, node), (true, false), "node {node} reads types");
        assert_eq!(network.matches(node).len(), 1);
    }
    for node in [5, 6] {
        assert_eq!(told(&network, node), (false, true), "node {node} breaks");
        assert_eq!(network.matches(node).len(), 1, "it goes by the name");
    }
    assert_eq!(network.matches(0).len(), 4);
    // What is announced and changed later follows the same rule.
    network.capture = Some(Vec::new());
    network
        .call(0, |participant, now, out| {
            let qos = QosSet { user_data: vec![1], ..QosSet::writer() };
            participant.update_endpoint(now, prefix(0).entity(WRITER), qos, out)
        })
        .unwrap();
    network.run_for(Duration::from_millis(500));
    assert_eq!([1, 2].map(|node| told(&network, node)), [(true, false); 2]);
    assert_eq!([5, 6].map(|node| told(&network, node)), [(false, true); 2]);
    network.call(0, |participant, now, out| participant.remove_endpoint(now, prefix(0).entity(WRITER), out));
    network.run_for(Duration::from_millis(500));
    for node in [1, 2, 5, 6] {
        assert!(network.matches(node).is_empty(), "node {node} heard of the end");
    }
    // Nor is it told to who comes later.
    start_reader(&mut network, 7);
    network.run_for(Duration::from_millis(500));
    assert_eq!(network.count(7, |command| matches!(command, Command::MatchWriter { .. })), 0);
}

#[test]
fn where_nobody_breaks_nothing_is_announced_twice() {
    let mut network = network();
    network.capture = Some(Vec::new());
    let writer = typed(0, WRITER, QosSet::writer(), &described(SHAPE));
    let plain = endpoint(prefix(0), crate::guid::EntityId::user_writer(9, true), "Circle", QosSet::writer());
    for endpoint in [writer, plain] {
        network.call(0, |participant, now, out| participant.add_endpoint(now, endpoint, out)).unwrap();
    }
    network.start(0);
    start_reader(&mut network, 1);
    network.run_for(Duration::from_millis(500));
    assert_eq!(told(&network, 1), (true, false));
    assert!(!network.nodes[0].participant.builtin.copies.any());
}

#[test]
fn types_that_contain_themselves_are_told_to_all_but_those_who_refuse_them() {
    let mut ty = (*described(SHAPE)).clone();
    for it in [&mut ty.information.minimal, &mut ty.information.complete].into_iter().flatten() {
        it.id.component = Some(ComponentPlace { length: 1, index: 1 });
    }
    let mut network = Network::new();
    network.add(config(0));
    for (entity, ty) in [(WRITER, Arc::new(ty)), (READER, described(SHAPE))] {
        let local = typed(0, entity, QosSet::default(), &ty);
        network.call(0, |participant, now, out| participant.add_endpoint(now, local, out)).unwrap();
    }
    let participant = &network.nodes[0].participant;
    // The writer has a copy in another form, which the others leave out.
    let of = |form: Form| {
        let told = |data: &EndpointData| form.is_of(&data.encode());
        let announced = |entity| {
            let (guid, endpoint) =
                participant.matching.of(prefix(0)).find(|(guid, _)| guid.entity == entity).unwrap();
            (forms::announced(guid, endpoint), participant.copy(form, guid, endpoint))
        };
        let ((writer, copy), (reader, other)) = (announced(WRITER), announced(READER));
        assert!(copy.as_ref().is_none_or(|copy| copy.type_information.is_none()), "{form:?}");
        (told(&writer), copy.as_ref().is_some_and(told), told(&reader), other.as_ref().is_some_and(told))
    };
    assert_eq!(of(Form::Usual), (true, false, true, false));
    assert_eq!(of(Form::Acyclic), (false, true, true, false));
    assert_eq!(of(Form::Untyped), (false, true, false, true));
    assert!(participant.builtin.copies.any());
}
