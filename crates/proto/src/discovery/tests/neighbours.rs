//! Participants of one process, which tell each other without the wire what is new.

use std::sync::Arc;

use super::network::{Network, WRITER, config, group, prefix, udp};
use crate::discovery::{Command, ParticipantConfig};
use crate::guid::{EntityId, Guid};
use crate::outbox::Event;
use crate::qos::{Liveliness, LivelinessKind, QosSet};
use crate::stats::DropReason;
use crate::time::Duration;

/// A participant of the process whose sockets have that number.
pub(super) fn member(index: usize, process: usize) -> ParticipantConfig {
    let mut config = config(index);
    config.locators.meta_unicast = vec![udp("10.0.0.1", 7_410 + 2 * process as u16)];
    config.locators.user_unicast = vec![udp("10.0.0.1", 7_411 + 2 * process as u16)];
    config.locators.own_addresses = vec![[10, 0, 0, 1].into()];
    config
}

/// So many participants of one host, each with a writer and a reader, dealt out to processes.
pub(super) fn processes(participants: usize, processes: usize) -> Network {
    let mut network = Network::new();
    for index in 0..participants {
        let process = index % processes;
        network.add_to(process, member(index, process));
        network.start(index);
        network.add_writer(index, QosSet::writer());
        network.add_reader(index, QosSet::reader());
    }
    network
}

pub(super) const fn is_unmatch(command: &Command) -> bool {
    matches!(command, Command::UnmatchReader { .. } | Command::UnmatchWriter { .. })
}

#[test]
fn participants_of_a_process_match_at_once_and_send_nothing_but_announcements() {
    let mut network = Network::new();
    network.capture = Some(Vec::new());
    for index in 0..20 {
        network.add_to(0, member(index, 0));
        network.start(index);
        network.add_writer(index, QosSet::writer());
        network.add_reader(index, QosSet::reader());
    }
    assert!(network.is_converged(20), "with no time passed");
    network.run_for(Duration::from_secs(60));
    let captured = network.capture.take().unwrap();
    assert!(captured.iter().all(|(_, to, _)| *to == group()), "announcements to others");
    let matched = (0..20).map(|node| network.count(node, is_unmatch)).sum::<usize>();
    assert_eq!(matched, 0, "no lease ends");
}

#[test]
fn participants_of_a_process_are_told_once_and_keep_what_is_told_once() {
    const MANY: usize = 30;
    let mut network = processes(MANY, 1);
    network.run_for(Duration::from_secs(1));
    let told = |node: usize, is_wanted: fn(&Event) -> bool| {
        network.nodes[node].events.iter().filter(|(_, event)| is_wanted(event)).count()
    };
    for node in 0..MANY {
        assert_eq!(told(node, |it| matches!(it, Event::ParticipantChanged { .. })), MANY - 1);
        assert_eq!(told(node, |it| matches!(it, Event::EndpointChanged { .. })), 2 * (MANY - 1));
        for other in 0..MANY {
            let (kept, own) = (&network.nodes[node].participant, &network.nodes[other].participant);
            let (kept, own) = (kept.matching.shared_of(prefix(other)), own.matching.shared_of(prefix(other)));
            assert_eq!(kept.zip(own).filter(|((_, one), (_, other))| Arc::ptr_eq(one, other)).count(), 2);
        }
    }
}

#[test]
fn a_newcomer_hears_of_what_there_is_and_of_what_comes_and_goes() {
    let mut network = processes(2, 1);
    let guest = network.add_to(0, member(2, 0));
    assert_eq!(network.nodes[guest].participant.remote_participants().count(), 2);
    network.start(guest);
    network.add_reader(guest, QosSet::reader());
    assert_eq!(network.matches(guest).len(), 2, "with both writers");
    let writer = network.nodes[0].participant.guid().prefix.entity(WRITER);
    network.call(0, |participant, now, out| participant.remove_endpoint(now, writer, out));
    assert_eq!(network.matches(guest).len(), 1);

    network.call(1, |participant, now, out| participant.shutdown(now, out));
    assert!(network.matches(guest).is_empty());
    let gone = network.nodes[1].participant.guid();
    let left = Event::ParticipantChanged { participant: gone, alive: false };
    assert!(network.nodes[guest].events.iter().any(|(_, event)| *event == left));
    // Nobody introduces who has left.
    assert!(network.nodes[1].participant.introduction().is_empty());
}

#[test]
fn changes_of_qos_and_assertions_of_liveliness_are_told() {
    let mut network = processes(1, 1);
    let guest = network.add_to(0, member(1, 0));
    network.start(guest);
    let lease = |kind| Liveliness { kind, lease_duration: Duration::from_secs(3) };
    let qos = QosSet { liveliness: lease(LivelinessKind::Automatic), ..QosSet::reader() };
    network.add_reader(guest, qos.clone());
    assert_eq!(network.matches(guest).len(), 0, "the offered lease is infinite");
    let writer = network.nodes[0].participant.guid().prefix.entity(WRITER);
    let qos = QosSet { liveliness: qos.liveliness, ..QosSet::writer() };
    network.call(0, |participant, now, out| participant.update_endpoint(now, writer, qos, out)).unwrap();
    assert_eq!(network.matches(guest).len(), 1);
    network.run_for(Duration::from_secs(10));
    let alive = network.count(guest, |command| matches!(command, Command::WriterAlive { .. }));
    assert!(alive >= 9, "asserted {alive} times");
}

#[test]
fn who_is_ignored_is_not_heard_again() {
    let mut network = processes(2, 1);
    let other = network.nodes[1].participant.guid();
    network.call(0, |participant, now, out| participant.ignore_participant(now, other.prefix, out)).unwrap();
    network.add_endpoint(1, EntityId::user_writer(9, true), "Square", QosSet::writer());
    assert!(network.matches(0).iter().all(|(_, it): &(_, Guid)| it.prefix != other.prefix));
}

#[test]
fn nobody_speaks_by_the_wire_in_the_name_of_one_of_this_process() {
    let mut network = processes(2, 1);
    let mut stranger = config(0);
    stranger.name = "not node 0".into();
    let thief = network.add(stranger);
    network.start(thief);
    network.call(thief, |participant, now, out| participant.shutdown(now, out));
    network.run_for(Duration::from_secs(1));
    assert_eq!(network.matches(1).len(), 4, "its own and those of node 0");
    assert!(network.drops(1, DropReason::OwnDatagram) > 0);
}

#[test]
fn processes_find_each_other_by_the_wire() {
    let mut network = processes(10, 2);
    network.run_for(Duration::from_secs(1));
    assert!(network.is_converged(10));
    assert_eq!((0..10).map(|node| network.count(node, is_unmatch)).sum::<usize>(), 0);
}

/// What so many participants send in their first second, in octets and datagrams.
fn first_second(participants: usize, of: usize) -> (u64, u64) {
    let mut network = processes(participants, of);
    network.run_for(Duration::from_secs(1));
    assert!(network.is_converged(participants));
    (network.octets_to.values().sum(), network.datagrams)
}

#[test]
fn what_discovery_costs_grows_with_pairs_of_processes_alone() {
    let (one, datagrams) = first_second(20, 1);
    // Four announcements each.
    assert!(one <= 20 * 4 * 300 && datagrams == 20 * 4, "{one} octets in {datagrams} datagrams");
    // One of each process hears the others, each of which answers a challenge.
    let (two, datagrams) = first_second(20, 2);
    assert!(two <= 20 * 2_700 && datagrams <= 20 * 13, "{two} octets in {datagrams} datagrams");
    let (pairs, datagrams) = first_second(20, 20);
    assert!(pairs <= 19 * 20 * 1_200 && datagrams <= 19 * 20 * 3, "{pairs} octets in {datagrams} datagrams");
}

#[test]
fn who_needs_no_types_does_not_talk_about_them() {
    let mut network = Network::new();
    network.capture = Some(Vec::new());
    for index in 0..4 {
        network.add(config(index));
        network.start(index);
        network.add_writer(index, QosSet::writer());
        network.add_reader(index, QosSet::reader());
    }
    network.run_for(Duration::from_secs(10));
    assert!(network.is_converged(4));
    let [requests, _, replies, _] = EntityId::TYPE_LOOKUP;
    let names = |bytes: &[u8]| bytes.windows(4).any(|it| it == requests.0 || it == replies.0);
    assert!(!network.capture.take().unwrap().iter().any(|(_, _, bytes)| names(bytes)));
}

#[test]
fn of_two_endpoints_the_one_that_was_there_speaks_first() {
    let mut network = processes(3, 2);
    network.run_for(Duration::from_secs(1));
    let since: Vec<usize> = network.nodes.iter().map(|node| node.commands.len()).collect();
    let writer = network.add_endpoint(0, EntityId::user_writer(9, true), "Square", QosSet::writer());
    let reader = network.add_endpoint(0, EntityId::user_reader(10, true), "Square", QosSet::reader());
    network.run_for(Duration::from_secs(1));
    let begins: Vec<(usize, Guid, Guid, bool)> = (0..3)
        .flat_map(|node| {
            let own = network.nodes[node].participant.guid().prefix;
            network.nodes[node].commands[since[node]..].iter().filter_map(move |(_, command)| match command {
                Command::MatchReader { writer, reader } => {
                    Some((node, own.entity(*writer), reader.guid, reader.begins))
                }
                Command::MatchWriter { reader, writer } => {
                    Some((node, own.entity(*reader), writer.guid, writer.begins))
                }
                _ => None,
            })
        })
        .collect();
    // With three of each that were there, and with each other, both sides of each.
    assert_eq!(begins.len(), 14);
    for (node, own, other, begins) in begins {
        // The reader is newer than the writer.
        let is_newer = own == reader || own == writer && other != reader;
        assert_eq!(begins, is_newer, "{node}: {own} of {other}");
    }
}

#[test]
fn a_writer_is_told_which_readers_are_of_its_process() {
    let mut network = processes(4, 2);
    network.run_for(Duration::from_secs(1));
    let told = network.nodes[0].commands.iter().filter_map(|(_, command)| match command {
        Command::MatchReader { reader, .. } => Some((reader.guid.prefix, reader.is_of_own_process)),
        _ => None,
    });
    let told: std::collections::BTreeMap<_, _> = told.collect();
    assert_eq!(told.len(), 4);
    for (node, prefix) in network.nodes.iter().map(|node| node.participant.guid().prefix).enumerate() {
        assert_eq!(told[&prefix], network.nodes[node].process == network.nodes[0].process, "{node}");
    }
}
