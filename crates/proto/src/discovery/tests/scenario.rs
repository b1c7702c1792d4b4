//! Finding, matching, changing and leaving, among friends.

use super::network::{HOP, Network, READER, SECOND, WRITER, config, endpoint, group, locators, prefix, udp};
use super::peer::{Peer, announcement, dissect};
use crate::discovery::builtin::ParticipantData;
use crate::discovery::{
    Command, DiscoveryError, LocalEndpoint, LocalLocators, MismatchReason, ParticipantConfig,
};
use crate::guid::EntityId;
use crate::locator::Locator;
use crate::outbox::Event;
use crate::policy_id::PolicyId;
use crate::qos::{Durability, Liveliness, LivelinessKind, QosSet};
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::Duration;

fn is_match_reader(command: &Command) -> bool {
    matches!(command, Command::MatchReader { reader, .. } if reader.guid.prefix != prefix(0))
}

fn is_unmatch(command: &Command) -> bool {
    matches!(command, Command::UnmatchReader { .. } | Command::UnmatchWriter { .. })
}

#[test]
fn fact_24_two_participants_find_each_other_in_a_blink() {
    let mut network = Network::of(2);
    let start = network.now;
    network.run_for(Duration::from_millis(50));
    assert!(network.is_converged(2));
    for node in 0..2 {
        let matched = network.first(node, |command| match command {
            Command::MatchReader { reader, .. } => reader.guid.prefix == prefix(1 - node),
            _ => false,
        });
        let hops = (matched.unwrap() - start) / HOP;
        assert!(hops <= 8, "node {node} took {hops} one-way trips");
    }
}

#[test]
fn fact_24_a_late_joiner_is_answered_at_once() {
    let mut network = Network::of(1);
    network.run_for(Duration::from_secs(60));
    let late = network.add(config(1));
    network.add_reader(late, QosSet::reader());
    let start = network.now;
    network.start(late);
    network.run_for(Duration::from_millis(5));
    let matched = network.first(0, is_match_reader).unwrap();
    assert!(matched - start <= 8 * HOP, "{} trips", (matched - start) / HOP);
}

#[test]
fn fact_24_sixty_participants_find_each_other() {
    let mut network = Network::of(60);
    network.run_for(Duration::from_secs(1));
    assert!(network.is_converged(60));
    let settled = network.datagrams;
    network.run_for(Duration::from_secs(20));
    let idle = network.datagrams - settled;
    assert!(idle <= 60 * 10, "sixty idle participants send {idle} datagrams in 20 s");
}

#[test]
fn a_hundred_participants_of_one_host_that_start_at_once_find_each_other() {
    let mut network = Network::new();
    for index in 0..100 {
        let mut config = config(index);
        let locator = udp("10.0.0.1", 7_410 + 2 * index as u16);
        config.locators.meta_unicast = vec![locator];
        config.locators.own_addresses = vec![[10, 0, 0, 1].into()];
        network.add(config);
    }
    (0..100).for_each(|index| network.start(index));
    network.run_for(Duration::from_secs(1));
    for node in &network.nodes {
        assert_eq!(node.participant.remote_participants().filter(|remote| remote.proven).count(), 99);
        assert_eq!(node.participant.drops().get(DropReason::DiscoveryLimit), 0);
    }
}

#[test]
fn fact_24_heavy_loss_delays_but_never_prevents() {
    let mut network = Network::of(8);
    network.loss = 40;
    let converged = (0..100).find(|_| {
        network.run_for(Duration::from_millis(100));
        network.is_converged(8)
    });
    assert!(converged.is_some(), "not within 10 s");
}

#[test]
fn fact_24_announcements_repeat_the_same_change_every_three_seconds() {
    let mut network = Network::new();
    network.capture = Some(Vec::new());
    network.add(config(0));
    network.start(0);
    network.run_for(Duration::from_secs(31));
    let captured = network.capture.take().unwrap();
    assert!((12..=15).contains(&captured.len()), "{} announcements in 31 s", captured.len());
    assert!(captured.iter().all(|(_, to, _)| *to == group()));
    let changes: Vec<_> = captured.iter().map(|(_, _, bytes)| sequence_number(bytes)).collect();
    assert!(changes.iter().all(|number| *number == Some(SequenceNumber(1))));
}

#[test]
fn fact_57_peers_without_multicast_meet_by_unicast_announcements() {
    let mut network = Network::new();
    for node in 0..2 {
        network.add(config(node));
        network.nodes[node].hears_multicast = false;
    }
    // Only one side was told of the other, and it announces to the well-known port.
    let mut told = config(0);
    told.locators.announce_to = vec![group(), udp("10.0.0.2", 7410)];
    network.nodes[0].participant = crate::discovery::Participant::new(told);
    network.add_writer(0, QosSet::writer());
    network.add_reader(1, QosSet::reader());
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_millis(10));
    assert!(network.first(0, is_match_reader).is_some());
}

#[test]
fn peers_on_another_subnet_stay_known_without_being_told_of_us() {
    let mut network = Network::new();
    let far = ParticipantConfig { locators: locators("172.16.0.9"), ..config(1) };
    let mut near = config(0);
    near.locators.announce_to.push(udp("172.16.0.9", 7410));
    network.add(near);
    network.add(far);
    network.nodes.iter_mut().for_each(|node| node.hears_multicast = false);
    network.add_writer(0, QosSet::writer());
    network.add_reader(1, QosSet::reader());
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(120));
    assert_eq!(network.matches(0).len(), 1);
    assert_eq!(network.count(0, is_unmatch) + network.count(1, is_unmatch), 0);
}

#[test]
fn participants_of_a_host_without_multicast_meet_by_the_scan_and_stay_known() {
    let mut network = Network::new();
    for node in 0..2 {
        let mut config = config(node);
        let port = 7410 + 2 * node as u32;
        config.locators = LocalLocators {
            meta_unicast: vec![Locator { port, ..udp("127.0.0.1", 1) }],
            scan: (7410..7420).map(|port| udp("127.0.0.1", port)).collect(),
            ..locators("127.0.0.1")
        };
        network.add(config);
        network.nodes[node].hears_multicast = false;
    }
    network.capture = Some(Vec::new());
    network.add_writer(0, QosSet::writer());
    network.add_reader(1, QosSet::reader());
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_millis(30));
    assert!(network.first(0, is_match_reader).is_some(), "the second announcement scans");
    network.run_for(Duration::from_secs(120));
    assert_eq!(network.matches(0).len(), 1);
    assert_eq!(network.count(0, is_unmatch) + network.count(1, is_unmatch), 0);
    let captured = network.capture.take().unwrap();
    // What is for nobody in particular begins with a timestamp, not with a destination.
    let scans = |port| {
        let to_port = captured.iter().filter(|(_, to, _)| *to == udp("127.0.0.1", port));
        assert!(to_port.clone().all(|(from, to, _)| from != to), "nobody looks for itself");
        to_port.filter(|(_, _, bytes)| bytes[20] == 0x09).count()
    };
    let unknown = scans(7419);
    assert!(
        (10..=14).contains(&unknown),
        "twice in a burst and then one in ten, not {unknown} by two participants"
    );
    assert_eq!(scans(7410) + scans(7412), 1, "who was found need not look for who found it");
}

#[test]
fn where_the_group_comes_back_nobody_looks_for_others_at_their_ports() {
    let mut network = Network::new();
    for node in 0..10 {
        let mut config = config(node);
        config.locators.meta_unicast = vec![udp("127.0.0.1", 7410 + 2 * node as u16)];
        config.locators.scan = (0..120).map(|index| udp("127.0.0.1", 7410 + 2 * index)).collect();
        network.add(config);
    }
    (0..10).for_each(|node| network.start(node));
    network.run_for(Duration::from_secs(1));
    assert!((0..10).all(|node| network.nodes[node].participant.remote_participants().count() == 9));
    assert_eq!(network.octets_to.get(&udp("127.0.0.1", 7430)), None, "a port that nobody has");

    // The group is heard no more: others are looked for, as long as that is so.
    (0..10).for_each(|node| network.nodes[node].hears_multicast = false);
    network.run_for(Duration::from_secs(60));
    assert!(network.octets_to.contains_key(&udp("127.0.0.1", 7430)));
}

#[test]
fn participants_of_a_host_with_multicast_announce_themselves_to_the_group_alone() {
    let mut network = Network::new();
    for node in 0..2 {
        let mut config = config(node);
        config.locators.meta_unicast = vec![udp("127.0.0.1", 7410 + 2 * node as u16)];
        network.add(config);
    }
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(5));
    network.capture = Some(Vec::new());
    network.run_for(Duration::from_secs(60));
    let captured = network.capture.take().unwrap();
    assert!(captured.len() > 30, "they announce themselves");
    assert!(captured.iter().all(|(_, to, bytes)| *to == group() || sequence_number(bytes).is_none()));
}

#[test]
fn fact_26_silence_ends_in_the_lease() {
    let mut network = Network::of(3);
    network.run_for(Duration::from_secs(10));
    assert!(network.is_converged(3));
    network.nodes[2].up = false;
    let silent_since = network.now;
    network.run_for(Duration::from_secs(16));
    assert_eq!(network.count(0, is_unmatch), 0, "the lease is 20 s");
    network.run_for(Duration::from_secs(5));
    let gone = network.first(0, is_unmatch).unwrap();
    assert!(gone - silent_since <= 20 * SECOND + SECOND / 100);
    assert!(!network.matches(0).iter().any(|(_, other)| other.prefix == prefix(2)));
    // The others' traffic kept only themselves alive.
    assert_eq!(network.matches(0).len(), 4);
    let left = Event::ParticipantChanged { participant: prefix(2).participant(), alive: false };
    assert!(network.nodes[0].events.iter().any(|(_, event)| *event == left));
}

#[test]
fn fact_26_who_lost_the_other_alone_finds_it_again() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    // Nothing from the second reaches the first for longer than the lease; the other way all is well.
    network.blocked.push((network.nodes[1].address, 0));
    network.run_for(Duration::from_secs(30));
    assert_eq!(network.matches(0).len(), 2, "the first knows only itself");
    assert_eq!(network.matches(1).len(), 4, "the second noticed nothing");
    network.blocked.clear();
    network.run_for(Duration::from_secs(10));
    assert!(network.is_converged(2));
    let news = network.add_endpoint(1, EntityId::user_writer(9, true), "Circle", QosSet::writer());
    network.add_endpoint(0, EntityId::user_reader(9, true), "Circle", QosSet::reader());
    network.run_for(Duration::from_secs(1));
    assert!(network.matches(0).iter().any(|(_, other)| *other == news));
    let datagrams = network.datagrams;
    network.run_for(Duration::from_secs(30));
    assert!(
        network.datagrams - datagrams < 40,
        "calm again, not {} datagrams",
        network.datagrams - datagrams
    );
}

#[test]
fn who_lost_us_while_we_kept_it_finds_us_again_and_we_learn_what_it_withdrew() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let withdrawn = prefix(1).entity(READER);
    // For longer than the lease, 1 does not hear 0, but 0 hears 1.
    network.blocked.push((network.nodes[0].address, 1));
    network.run_for(Duration::from_secs(25));
    assert!(network.matches(1).iter().all(|(_, other)| other.prefix == prefix(1)));
    assert!(network.matches(0).contains(&(WRITER, withdrawn)));
    // 1 has nobody to tell that its reader is gone.
    network.call(1, |participant, now, out| participant.remove_endpoint(now, withdrawn, out));
    network.blocked.clear();
    network.run_for(Duration::from_secs(4));
    assert!(network.matches(1).contains(&(WRITER, prefix(0).entity(READER))));
    assert!(network.matches(0).contains(&(READER, prefix(1).entity(WRITER))));
    assert!(!network.matches(0).contains(&(WRITER, withdrawn)));
    // They agree, and leave it at that.
    let told = network.nodes[0].commands.len() + network.nodes[1].commands.len();
    network.run_for(Duration::from_secs(60));
    assert_eq!(network.nodes[0].commands.len() + network.nodes[1].commands.len(), told);
}

#[test]
fn a_clean_departure_is_known_at_once() {
    let mut network = Network::of(3);
    network.run_for(Duration::from_secs(5));
    let left_at = network.now;
    network.call(2, |participant, now, out| participant.shutdown(now, out));
    network.run_for(Duration::from_millis(1));
    for node in 0..2 {
        assert_eq!(network.first(node, is_unmatch), Some(left_at + HOP));
        assert_eq!(network.matches(node).len(), 4);
        assert_eq!(network.nodes[node].participant.remote_participants().count(), 1);
    }
    let quiet = network.datagrams;
    network.nodes[0].up = false;
    network.nodes[1].up = false;
    network.run_for(Duration::from_secs(60));
    assert_eq!(network.datagrams, quiet, "who left is silent");
}

#[test]
fn fact_25_changed_data_is_updated_in_place() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let told = |network: &Network| network.nodes[1].events.len();
    let before = told(&network);
    let qos = QosSet { user_data: b"hello".to_vec(), ..QosSet::default() };
    network.call(0, |participant, now, out| participant.set_qos(now, qos, out));
    network.run_for(Duration::from_millis(10));
    assert_eq!(told(&network), before + 1);
    assert_eq!(network.count(1, is_unmatch), 0);
    network.run_for(Duration::from_secs(10));
    assert_eq!(told(&network), before + 1, "repeats are no news");
}

#[test]
fn fact_25_a_new_address_moves_every_match_with_it() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let moved = locators("10.0.0.77");
    network.nodes[0].address = udp("10.0.0.77", 7410);
    network.call(0, |participant, now, out| participant.set_locators(now, moved, out));
    // The old address is asked for a second before the new one counts.
    network.run_for(Duration::from_millis(500));
    assert_eq!(
        network.count(1, |it| matches!(it, Command::MatchReader { reader, .. }
        if reader.locators == [udp("10.0.0.77", 7411)])),
        0
    );
    network.run_for(Duration::from_millis(700));
    let now_at = |command: &Command| match command {
        Command::MatchReader { reader, .. } if reader.guid.prefix == prefix(0) => {
            reader.locators == [udp("10.0.0.77", 7411)] && reader.urgent == Some(udp("10.0.0.77", 7410))
        }
        _ => false,
    };
    assert_eq!(network.count(1, now_at), 1);
    assert_eq!(network.count(1, is_unmatch), 0);
    // Discovery still works both ways afterwards.
    let more = network.add_endpoint(0, EntityId::user_writer(9, true), "Circle", QosSet::writer());
    network.add_endpoint(1, EntityId::user_reader(9, true), "Circle", QosSet::reader());
    network.run_for(Duration::from_millis(100));
    assert!(network.matches(1).iter().any(|(_, other)| *other == more));
    network.run_for(Duration::from_secs(60));
    assert_eq!(network.count(1, is_unmatch), 0);
}

#[test]
fn fact_40_a_deleted_endpoint_is_withdrawn_on_sedp() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let writer = prefix(0).entity(WRITER);
    network.call(0, |participant, now, out| participant.remove_endpoint(now, writer, out));
    network.run_for(Duration::from_millis(10));
    assert_eq!(network.count(1, |it| *it == Command::UnmatchWriter { reader: READER, writer }), 1);
    assert_eq!(network.count(0, |it| *it == Command::UnmatchWriter { reader: READER, writer }), 1);
    assert_eq!(network.count(0, |it| matches!(it, Command::UnmatchReader { .. })), 0, "it is gone itself");
    // It may come back under the same GUID.
    network.add_writer(0, QosSet::writer());
    network.run_for(Duration::from_millis(10));
    assert!(network.is_converged(2));
}

#[test]
fn fact_21_a_keyed_endpoint_never_matches_a_keyless_one() {
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    network.add_writer(0, QosSet::writer());
    network.add_endpoint(1, EntityId::user_reader(5, false), "Square", QosSet::reader());
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(1));
    assert!(network.matches(0).is_empty());
    let mismatch = network.nodes[0].participant.mismatches().next().unwrap();
    assert_eq!(mismatch.reason, MismatchReason::KeyKind);
}

#[test]
fn fact_28_other_types_of_the_same_topic_do_not_match() {
    let mut network = Network::of(1);
    network.add(config(1));
    let other = LocalEndpoint {
        type_name: "Other".into(),
        ..endpoint(prefix(1), READER, "Square", QosSet::reader())
    };
    network.call(1, |participant, now, out| participant.add_endpoint(now, other, out)).unwrap();
    network.start(1);
    network.run_for(Duration::from_secs(1));
    assert_eq!(network.matches(0).len(), 2, "only with itself");
    let reasons: Vec<_> = network.nodes[0].participant.mismatches().map(|it| it.reason).collect();
    assert_eq!(reasons, [MismatchReason::TypeName]);
}

#[test]
fn incompatible_qos_is_told_once_on_both_sides() {
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    network.add_writer(0, QosSet::writer().best_effort());
    network.add_reader(1, QosSet::reader().reliable().durability(Durability::TransientLocal));
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(30));
    let policies = vec![PolicyId::Durability, PolicyId::Reliability];
    let offered = Command::IncompatibleReader { writer: WRITER, policies: policies.clone() };
    let requested = Command::IncompatibleWriter { reader: READER, policies: policies.clone() };
    assert_eq!(network.count(0, |it| *it == offered), 1);
    assert_eq!(network.count(1, |it| *it == requested), 1);
    let mismatch = network.nodes[1].participant.mismatches().next().unwrap();
    assert_eq!(mismatch.reason, MismatchReason::Qos(policies));
}

#[test]
fn fact_30_a_changed_partition_matches_anew_and_live() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let reader = prefix(1).entity(READER);
    let within = |names: &[&str]| QosSet {
        partition: names.iter().map(|name| (*name).to_owned()).collect(),
        ..QosSet::writer()
    };
    let writer = prefix(0).entity(WRITER);
    network.call(0, |it, now, out| it.update_endpoint(now, writer, within(&["elsewhere"]), out)).unwrap();
    network.run_for(Duration::from_millis(10));
    assert_eq!(network.count(0, |it| *it == Command::UnmatchReader { writer: WRITER, reader }), 1);
    assert_eq!(network.count(1, |it| *it == Command::UnmatchWriter { reader: READER, writer }), 1);
    assert_eq!(network.count(0, |it| matches!(it, Command::IncompatibleReader { .. })), 0);
    network.call(0, |it, now, out| it.update_endpoint(now, writer, within(&["else*", ""]), out)).unwrap();
    network.run_for(Duration::from_millis(10));
    assert!(network.is_converged(2));
}

#[test]
fn fact_27_automatic_and_manual_liveliness_travel_as_participant_messages() {
    let mut network = Network::new();
    let lease = |kind| QosSet {
        liveliness: Liveliness { kind, lease_duration: Duration::from_millis(300) },
        ..QosSet::writer()
    };
    network.add(config(0));
    network.add(config(1));
    network.add_writer(0, lease(LivelinessKind::Automatic));
    let manual = EntityId::user_writer(7, true);
    network.add_endpoint(0, manual, "Square", lease(LivelinessKind::ManualByParticipant));
    network.add_reader(0, QosSet::reader());
    network.add_reader(1, QosSet::reader());
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(1));
    let alive = |entity| Command::WriterAlive { reader: READER, writer: prefix(0).entity(entity) };
    let count = |network: &Network, node, entity| network.count(node, |it| *it == alive(entity));
    assert_eq!(count(&network, 1, manual), 0, "nobody asserted it");
    let before = count(&network, 1, WRITER);
    network.run_for(Duration::from_secs(3));
    let asserted = count(&network, 1, WRITER) - before;
    assert!((29..=33).contains(&asserted), "{asserted} assertions of a 300 ms lease in 3 s");
    assert!(count(&network, 0, WRITER) >= asserted, "local readers hear it too");

    // A hundred calls in a row become two messages: one at once, one when the next may go.
    for _ in 0..100 {
        network.call(0, |participant, now, out| participant.assert_liveliness(now, out));
    }
    network.run_for(Duration::from_secs(1));
    assert_eq!(count(&network, 1, manual), 2);
}

#[test]
fn a_host_with_two_interfaces_is_one_participant_on_one_path() {
    let mut network = Network::of(1);
    let (first, second) = (udp("10.0.0.2", 7410), udp("10.5.0.2", 7410));
    let mut two = config(1);
    two.locators.meta_unicast.push(second);
    two.locators.user_unicast.push(udp("10.5.0.2", 7411));
    network.add(two);
    network.add_reader(1, QosSet::reader());
    network.capture = Some(Vec::new());
    network.start(1);
    network.run_for(Duration::from_secs(1));
    let captured = network.capture.take().unwrap();
    let (_, _, announced) = captured.iter().find(|(from, to, _)| *from == first && *to == group()).unwrap();
    let (commands, events) = (network.nodes[0].commands.len(), network.nodes[0].events.len());
    for turn in 0..20 {
        let from = if turn % 2 == 0 { second } else { first };
        network.inject(from, group(), announced);
        network.run_for(Duration::from_secs(1));
    }
    assert_eq!(network.nodes[0].commands.len(), commands);
    assert_eq!(network.nodes[0].events.len(), events);
}

#[test]
fn fact_23_absent_built_in_endpoints_get_no_traffic() {
    let mut network = Network::of(1);
    network.capture = Some(Vec::new());
    // A participant that only has a publications reader.
    let stranger = prefix(9);
    let data = ParticipantData {
        builtin_endpoints: 1 << 3,
        meta_unicast: vec![udp("10.0.0.9", 7410)],
        ..ParticipantData::new(stranger.participant())
    };
    let bytes = announcement(&data, prefix(0));
    network.inject(udp("10.0.0.9", 7410), udp("10.0.0.1", 7410), &bytes);
    network.run_for(Duration::from_secs(3));
    let captured = network.capture.take().unwrap();
    let to_stranger: Vec<_> = captured.iter().filter(|(_, to, _)| *to == udp("10.0.0.9", 7410)).collect();
    assert!(!to_stranger.is_empty());
    for (_, _, bytes) in to_stranger {
        for writer in writers_of(bytes) {
            assert!(
                matches!(writer, EntityId::SEDP_PUBLICATIONS_WRITER | EntityId::SPDP_WRITER),
                "{writer:?}"
            );
        }
    }
}

#[test]
fn other_domains_and_tags_are_ignored() {
    let mut network = Network::of(1);
    let other_domain = ParticipantConfig { domain: 3, ..config(1) };
    let other_tag = ParticipantConfig { domain_tag: "lab".into(), ..config(2) };
    for (node, config) in [(1, other_domain), (2, other_tag)] {
        network.add(config);
        network.add_reader(node, QosSet::reader());
        network.start(node);
    }
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.matches(0).len(), 2);
    assert_eq!(network.nodes[0].participant.remote_participants().count(), 0);
    assert!(network.drops(0, DropReason::OtherDomain) > 0);
}

#[test]
fn fact_60_higher_minor_versions_and_fact_61_unknown_vendors_are_welcome() {
    let mut network = Network::of(1);
    let stranger = udp("10.0.0.9", 7410);
    network.add_peer(Peer::new(prefix(9), stranger));
    let mut bytes = announcement(
        &ParticipantData {
            protocol_version: [2, 9],
            vendor: [0x7f, 0x7f],
            builtin_endpoints: u32::MAX,
            meta_unicast: vec![stranger],
            ..ParticipantData::new(prefix(9).participant())
        },
        prefix(0),
    );
    bytes[4..8].copy_from_slice(&[2, 9, 0x7f, 0x7f]);
    network.inject(stranger, udp("10.0.0.1", 7410), &bytes);
    network.run_for(Duration::from_millis(1));
    let remote = network.nodes[0].participant.remote_participants().next().unwrap();
    assert_eq!((remote.version, remote.vendor, remote.proven), ([2, 9], [0x7f, 0x7f], true));
}

#[test]
fn local_endpoints_match_each_other_and_follow_the_interface() {
    let mut network = Network::of(1);
    let (writer, reader) = (prefix(0).entity(WRITER), prefix(0).entity(READER));
    assert_eq!(network.matches(0), [(WRITER, reader), (READER, writer)].into());
    network.call(0, |it, now, out| it.set_locators(now, locators("10.9.9.9"), out));
    let moved = |command: &Command| match command {
        Command::MatchReader { reader, .. } => reader.same_host && reader.locators == [udp("10.9.9.9", 7411)],
        Command::MatchWriter { writer, .. } => writer.locators == [udp("10.9.9.9", 7411)],
        _ => false,
    };
    assert_eq!(network.count(0, moved), 2);
}

/// Participants that have not started yet: a writer, and a reader of its topic.
pub(super) fn two_of_one_host() -> Network {
    let mut network = Network::new();
    for node in 0..2 {
        let mut config = config(node);
        config.locators.own_addresses = vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        network.add(config);
    }
    network.add_writer(0, QosSet::writer());
    network.add_reader(1, QosSet::reader());
    network
}

#[test]
fn participants_of_one_host_are_reached_on_it() {
    let mut network = two_of_one_host();
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_millis(10));
    assert_eq!(
        network.count(0, |it| matches!(it, Command::MatchReader { reader, .. } if reader.same_host)),
        1
    );
}

#[test]
fn participants_of_one_host_meet_though_the_first_word_came_from_an_address_it_did_not_list() {
    let mut network = two_of_one_host();
    // By IPv6 multicast, as it happens where its socket is the first that hears something.
    network.nodes[0].up = false;
    network.capture = Some(Vec::new());
    network.start(1);
    network.run_for(Duration::from_millis(1));
    let (_, to, announcement) = network.capture.take().unwrap().swap_remove(0);
    network.nodes[0].up = true;
    network.start(0);
    network.inject(udp("fe80::1", 7410), to, &announcement);
    network.run_for(Duration::from_secs(4));
    assert_eq!(network.count(0, is_match_reader), 1);
}

#[test]
fn what_cannot_be_announced_is_refused() {
    let mut network = Network::of(1);
    let mut add = |endpoint| network.call(0, |it, now, out| it.add_endpoint(now, endpoint, out));
    let good = endpoint(prefix(0), EntityId::user_writer(8, true), "Square", QosSet::writer());
    let exists = LocalEndpoint { guid: prefix(0).entity(WRITER), ..good.clone() };
    assert_eq!(add(exists.clone()), Err(DiscoveryError::Exists(exists.guid)));
    let foreign = LocalEndpoint { guid: prefix(5).entity(WRITER), ..good.clone() };
    assert_eq!(add(foreign.clone()), Err(DiscoveryError::WrongKind(foreign.guid)));
    let keyless = LocalEndpoint { keyed: false, ..good.clone() };
    assert_eq!(add(keyless), Err(DiscoveryError::WrongKind(good.guid)));
    let long = LocalEndpoint { topic: "x".repeat(256), ..good.clone() };
    assert_eq!(add(long), Err(DiscoveryError::NameTooLong(good.guid)));
    assert_eq!(add(good), Ok(()));
}

#[test]
fn the_same_seeds_make_the_same_history() {
    let history = || {
        let mut network = Network::of(5);
        network.loss = 20;
        network.run_for(Duration::from_secs(20));
        let commands: Vec<_> = network.nodes.iter().flat_map(|node| node.commands.clone()).collect();
        (network.datagrams, commands)
    };
    assert_eq!(history(), history());
}

fn writers_of(bytes: &[u8]) -> Vec<EntityId> {
    dissect(bytes).writers
}

fn sequence_number(bytes: &[u8]) -> Option<SequenceNumber> {
    dissect(bytes).numbers.first().copied()
}
