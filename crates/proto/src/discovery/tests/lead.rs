//! One participant of a process that hears others for all.

use super::neighbours::{is_unmatch, member, processes};
use super::network::{Network, READER, WRITER, config, group, prefix, udp};
use super::peer::{Peer, announcement, dissect};
use super::types;
use crate::discovery::builtin::ParticipantData;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::qos::{Liveliness, LivelinessKind, QosSet};
use crate::time::Duration;

fn run(network: &mut Network, millis: i64) {
    network.run_for(Duration::from_millis(millis));
}

/// Unmatched without a reason: nothing was withdrawn.
fn unmatched(network: &Network) -> usize {
    (0..network.nodes.len()).map(|node| network.count(node, is_unmatch)).sum()
}

fn leave(network: &mut Network, node: usize) {
    network.call(node, |participant, now, out| participant.shutdown(now, out));
    network.nodes[node].up = false;
}

fn add_writer(network: &mut Network, node: usize, number: u32) -> Guid {
    network.add_endpoint(node, EntityId::user_writer(number, true), "Square", QosSet::writer())
}

fn has(network: &Network, node: usize, writer: Guid) -> bool {
    network.matches(node).contains(&(READER, writer))
}

/// Announcements of endpoints to the participants of each process: numbers of DATA by the port that they go
/// to.
fn announcements(network: &Network, of: EntityId) -> usize {
    let captured = network.capture.as_ref().unwrap();
    let told = captured.iter().filter(|(_, to, _)| *to != group());
    told.map(|(_, _, bytes)| {
        let told = dissect(bytes);
        // The writers of DATA come with their numbers, before HEARTBEATs.
        told.writers.iter().zip(&told.numbers).filter(|(writer, _)| **writer == of).count()
    })
    .sum()
}

#[test]
fn a_process_is_told_of_an_endpoint_once() {
    let mut network = processes(12, 3);
    run(&mut network, 1_000);
    assert!(network.is_converged(12));
    network.capture = Some(Vec::new());
    let writer = add_writer(&mut network, 4, 9);
    run(&mut network, 1_000);
    assert!((0..12).all(|node| has(&network, node, writer)));
    assert_eq!(announcements(&network, EntityId::SEDP_PUBLICATIONS_WRITER), 2, "to two other processes");
    assert_eq!(unmatched(&network), 0);
}

#[test]
fn participants_of_processes_find_each_other_despite_loss_and_whoever_comes_first() {
    for seed in 0..20 {
        let mut network = Network::new();
        network.random = seed;
        network.loss = 20;
        for index in 0..9 {
            network.add_to(index % 3, member(index, index % 3));
            network.start(index);
            network.add_writer(index, QosSet::writer());
            network.add_reader(index, QosSet::reader());
            run(&mut network, (seed as i64 * 37) % 90);
        }
        let converged = (0..100).any(|_| {
            run(&mut network, 100);
            network.is_converged(9)
        });
        assert!(converged, "seed {seed}: not within 10 s");
    }
}

#[test]
fn when_the_lead_leaves_another_one_hears_what_comes_and_goes_meanwhile() {
    for quiet_ms in [0, 5, 1_000] {
        let mut network = processes(6, 2);
        run(&mut network, 1_000);
        let before = add_writer(&mut network, 1, 8);
        run(&mut network, 100);
        // The lead of the first process.
        leave(&mut network, 0);
        run(&mut network, quiet_ms);
        network.call(1, |it, now, out| it.remove_endpoint(now, before, out));
        let after = add_writer(&mut network, 3, 9);
        run(&mut network, 3_000);
        for node in [2, 4] {
            assert!(has(&network, node, after), "{node} after {quiet_ms} ms");
            assert!(!has(&network, node, before), "{node} after {quiet_ms} ms");
            assert!([1, 3, 5].iter().all(|other| has(&network, node, prefix(*other).entity(WRITER))));
        }
        // And the others hear those that are left.
        let late = add_writer(&mut network, 4, 10);
        run(&mut network, 100);
        assert!([1, 2, 3, 5].iter().all(|node| has(&network, *node, late)));
        leave(&mut network, 2);
        let last = add_writer(&mut network, 5, 11);
        run(&mut network, 1_000);
        assert!(has(&network, 4, last), "the last one hears for itself");
    }
}

#[test]
fn what_the_lead_ignores_others_of_its_process_still_hear() {
    let mut network = processes(6, 2);
    run(&mut network, 1_000);
    let ignored = prefix(3);
    network.call(0, |it, now, out| it.ignore_participant(now, ignored, out)).unwrap();
    let writer = add_writer(&mut network, 3, 9);
    run(&mut network, 1_000);
    assert!(!has(&network, 0, writer) && has(&network, 2, writer) && has(&network, 4, writer));
    let other = add_writer(&mut network, 5, 9);
    run(&mut network, 1_000);
    assert!([0, 2, 4].iter().all(|node| has(&network, *node, other)));
    assert!(!network.matches(0).iter().any(|(_, of)| of.prefix == ignored));
}

#[test]
fn who_follows_and_ignores_does_not_hear_again_of_what_it_ignores() {
    let mut network = processes(6, 2);
    run(&mut network, 1_000);
    let ignored = prefix(3);
    network.call(2, |it, now, out| it.ignore_participant(now, ignored, out)).unwrap();
    let writer = add_writer(&mut network, 3, 9);
    run(&mut network, 10_000);
    assert!(has(&network, 0, writer) && !has(&network, 2, writer));
    leave(&mut network, 0);
    run(&mut network, 10_000);
    assert!(network.matches(2).iter().all(|(_, of)| of.prefix != ignored));
    assert!(has(&network, 4, writer));
}

#[test]
fn a_process_that_falls_silent_is_forgotten_by_all_at_the_end_of_its_lease_and_found_again() {
    let mut network = processes(6, 2);
    run(&mut network, 1_000);
    for node in [1, 3, 5] {
        network.nodes[node].up = false;
    }
    network.run_for(Duration::from_secs(120));
    for node in [0, 2, 4] {
        assert!(network.matches(node).iter().all(|(_, of)| [0, 2, 4].map(prefix).contains(&of.prefix)));
    }
    for node in [1, 3, 5] {
        network.nodes[node].up = true;
    }
    network.run_for(Duration::from_secs(10));
    assert!(network.is_converged(6));
}

#[test]
fn liveliness_that_the_lead_heard_counts_for_all() {
    let lease = Liveliness { kind: LivelinessKind::Automatic, lease_duration: Duration::from_secs(3) };
    let mut network = processes(4, 2);
    run(&mut network, 1_000);
    let qos = QosSet { liveliness: lease, ..QosSet::writer() };
    network.add_endpoint(1, EntityId::user_writer(9, true), "Square", qos);
    network.run_for(Duration::from_secs(10));
    for node in [0, 2] {
        let alive = network.count(node, |it| matches!(it, crate::discovery::Command::WriterAlive { .. }));
        assert!(alive >= 9, "{node}: asserted {alive} times");
    }
}

#[test]
fn who_is_found_dead_by_one_is_dead_to_all() {
    let mut network = processes(4, 2);
    run(&mut network, 1_000);
    for node in [1, 3] {
        network.nodes[node].up = false;
        network.call(2, |it, now, out| it.participant_died(now, prefix(node), out));
    }
    run(&mut network, 10);
    for node in [0, 2] {
        assert!(network.matches(node).iter().all(|(_, of)| [0, 2].map(prefix).contains(&of.prefix)));
    }
    for node in [1, 3] {
        network.nodes[node].up = true;
    }
    network.run_for(Duration::from_secs(10));
    assert!(network.is_converged(4), "it was not");
}

#[test]
fn types_that_differ_are_asked_for_by_each() {
    let mut network = Network::new();
    for node in 0..4 {
        network.add_to(node / 2, member(node, node / 2));
        network.start(node);
    }
    run(&mut network, 500);
    for (node, entity, ty) in [(1, WRITER, types::SHAPE), (3, READER, types::DOUBLE)] {
        let qos = if entity.is_writer() { QosSet::writer() } else { QosSet::reader() };
        let endpoint = types::typed(node, entity, qos, &types::described(ty));
        network.call(node, |it, now, out| it.add_endpoint(now, endpoint, out)).unwrap();
    }
    run(&mut network, 500);
    let (writer, reader) = (prefix(1).entity(WRITER), prefix(3).entity(READER));
    for node in [1, 3] {
        assert!(network.nodes[node].participant.mismatch(writer, reader).is_some(), "{node} knows the types");
    }
}

#[test]
fn a_crowd_of_strangers_does_not_push_out_whom_others_of_the_process_need() {
    let mut network = Network::new();
    for node in 0..2 {
        let mut config = member(node, 0);
        config.limits.participants_max = 16;
        network.add_to(0, config);
        network.start(node);
    }
    network.add_writer(1, QosSet::writer());
    network.add(config(2));
    network.add_reader(2, QosSet::reader());
    network.start(2);
    run(&mut network, 1_000);
    assert_eq!(network.matches(1).len(), 1);
    for index in 0..40 {
        let at = udp(&format!("10.0.{}.9", index + 1), 7410);
        network.add_peer(Peer::new(prefix(20 + index), at));
    }
    // All of them were heard after the one.
    for index in (0..40).cycle().take(200) {
        network.announce_peer(index);
        run(&mut network, 20);
    }
    assert_eq!(network.matches(1).len(), 1);
}

#[test]
fn other_stacks_are_heard_by_each_itself() {
    let mut network = processes(2, 1);
    network.add_peer(Peer::new(prefix(9), udp("10.0.0.9", 7410)));
    let bytes = foreign(&network.peers[0].data());
    network.inject(udp("10.0.0.9", 7410), group(), &bytes);
    run(&mut network, 100);
    for node in &network.nodes {
        assert!(knows(&node.participant, prefix(9)));
    }
}

/// As another stack announces it.
fn foreign(data: &ParticipantData) -> Vec<u8> {
    let mut bytes = announcement(data, GuidPrefix::UNKNOWN);
    bytes[6..8].copy_from_slice(&[0x7f, 0x7f]);
    bytes
}

fn knows(participant: &crate::discovery::Participant, of: GuidPrefix) -> bool {
    participant.remote_participants().any(|remote| remote.guid.prefix == of && remote.proven)
}

/// Of several participants in a process, Cyclone DDS gives one the readers that hear others: who has none can
/// answer no challenge.
#[test]
fn a_participant_without_readers_is_where_another_one_at_its_socket_has_proven_to_be() {
    let mut network = Network::of(1);
    let at = udp("10.0.0.9", 7410);
    network.add_peer(Peer::new(prefix(9), at));
    let without_readers = |index: usize, meta| ParticipantData {
        builtin_endpoints: 0b1_0101,
        ..Peer::new(prefix(index), meta).data()
    };
    network.inject(at, group(), &foreign(&without_readers(10, at)));
    run(&mut network, 300);
    assert!(!knows(&network.nodes[0].participant, prefix(10)), "nobody has proven anything there");
    network.announce_peer(0);
    run(&mut network, 300);
    assert!(knows(&network.nodes[0].participant, prefix(10)));
    // Elsewhere nothing is proven, nor by who speaks from elsewhere.
    let (elsewhere, stranger) = (udp("10.0.0.9", 7412), udp("10.0.0.66", 7410));
    network.inject(at, group(), &foreign(&without_readers(11, elsewhere)));
    network.inject(stranger, group(), &foreign(&without_readers(12, at)));
    run(&mut network, 3_000);
    for index in [11, 12] {
        assert!(!knows(&network.nodes[0].participant, prefix(index)), "{index}");
    }
}

#[test]
fn r1_who_names_a_lead_elsewhere_has_proven_nothing() {
    let mut network = processes(2, 2);
    run(&mut network, 1_000);
    let victim = udp("10.0.0.200", 7410);
    let data = ParticipantData {
        lead: Some(prefix(1)),
        meta_unicast: vec![victim],
        default_unicast: vec![victim],
        ..ParticipantData { builtin_endpoints: u32::MAX, ..ParticipantData::new(prefix(9).participant()) }
    };
    let bytes = announcement(&data, GuidPrefix::UNKNOWN);
    let lead = network.nodes[1].address;
    for from in [victim, lead] {
        network.inject(from, group(), &bytes);
        run(&mut network, 5_000);
        assert!(!knows(&network.nodes[0].participant, prefix(9)));
    }
    let drawn = network.octets_to.get(&victim).copied().unwrap_or(0);
    let heard_twice_by_two = 4 * (bytes.len() as u64 + 28);
    assert!(drawn <= 3 * heard_twice_by_two, "{drawn} octets");
}

/// Whose address is proven says nothing of others that are claimed to be there: whoever they are, they answer
/// themselves.
#[test]
fn r1_who_names_a_lead_at_its_very_socket_has_proven_nothing_and_parts_nobody() {
    let mut network = processes(4, 2);
    run(&mut network, 1_000);
    let lead = network.nodes[1].address;
    let own = network.nodes[1].participant.guid().prefix;
    let reached = network.octets_to[&lead];
    // One of the process, and one that would have its socket after it.
    let mut names = [own, prefix(60)];
    names[0].0[11] ^= 0x55;
    for name in names {
        let data = ParticipantData {
            lead: Some(own),
            meta_unicast: vec![lead],
            default_unicast: vec![lead],
            ..ParticipantData { builtin_endpoints: u32::MAX, ..ParticipantData::new(name.participant()) }
        };
        network.inject(lead, group(), &announcement(&data, GuidPrefix::UNKNOWN));
        run(&mut network, 10_000);
        assert!(network.nodes.iter().all(|node| !knows(&node.participant, name)), "{name:?}");
    }
    assert_eq!(unmatched(&network), 0);
    assert!(network.octets_to[&lead] - reached < 3_000, "{} octets", network.octets_to[&lead] - reached);
}

#[test]
fn one_alone_has_no_lead() {
    let mut network = Network::new();
    network.capture = Some(Vec::new());
    network.add_to(0, config(0));
    network.start(0);
    run(&mut network, 1_000);
    let (_, _, bytes) = network.capture.take().unwrap().swap_remove(0);
    let lead = crate::wire::param::pid::PLAINSONG_LEAD.to_le_bytes();
    assert!(!bytes.windows(2).any(|it| it == lead));
}

/// Where the first announcements of a participant go that starts in a process which knows another process.
fn first_announcements(network: &mut Network) -> Vec<Locator> {
    network.capture = Some(Vec::new());
    let guest = network.add_to(0, member(2, 0));
    network.start(guest);
    let captured = network.capture.take().unwrap();
    let own = network.nodes[guest].participant.guid().prefix;
    let announcements =
        captured.iter().filter(|(_, _, bytes)| dissect(bytes).writers.contains(&EntityId::SPDP_WRITER));
    announcements.filter(|(_, _, bytes)| bytes[8..20] == own.0).map(|(_, to, _)| *to).collect()
}

#[test]
fn who_starts_tells_those_whom_its_lead_knows_once() {
    let mut network = processes(2, 2);
    run(&mut network, 1_000);
    assert_eq!(first_announcements(&mut network), [group()]);
    // Where announcements to everyone are not heard, ours may not be, either.
    let mut network = Network::new();
    for index in 0..2 {
        network.add_to(index, member(index, index));
        network.nodes[index].hears_multicast = index != 0;
        network.start(index);
    }
    run(&mut network, 1_000);
    assert_eq!(first_announcements(&mut network), [group(), udp("10.0.0.1", 7_412)]);
}

#[test]
fn who_starts_tells_of_its_endpoints_when_those_that_its_lead_knows_hear_it() {
    let mut network = processes(2, 2);
    run(&mut network, 1_000);
    network.capture = Some(Vec::new());
    let guest = network.add_to(0, member(2, 0));
    network.start(guest);
    network.add_writer(guest, QosSet::writer());
    network.add_reader(guest, QosSet::reader());
    run(&mut network, 20);
    assert!(network.is_converged(3), "without waiting for a repetition");
    assert_eq!(announcements(&network, EntityId::SEDP_PUBLICATIONS_WRITER), 1);
    assert_eq!(announcements(&network, EntityId::SEDP_SUBSCRIPTIONS_WRITER), 1);
}

#[test]
fn who_starts_tells_of_its_endpoints_although_nobody_asks_for_its_address() {
    let mut network = processes(2, 2);
    run(&mut network, 1_000);
    let guest = network.add_to(0, member(2, 0));
    network.capture = Some(Vec::new());
    network.start(guest);
    network.add_writer(guest, QosSet::writer());
    // The other process hears nothing of it yet.
    network.nodes[1].up = false;
    run(&mut network, 200);
    assert_ne!(announcements(&network, EntityId::SEDP_PUBLICATIONS_WRITER), 0);
}
