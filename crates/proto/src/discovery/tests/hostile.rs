//! Forged addresses, floods and nonsense (R1, R2, R3, R8, R9).

use super::network::{HOP, Network, READER, SECOND, WRITER, config, group, prefix, udp};
use super::peer::{Peer, announcement};
use crate::cdr::KeyHash;
use crate::discovery::builtin::{EndpointData, ParticipantData};
use crate::discovery::{Command, DiscoveryLimits, MismatchReason, ParticipantConfig};
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::DataHeader;
use crate::outbox::{Event, Outbox};
use crate::payload::Payload;
use crate::qos::QosSet;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::Duration;
use crate::wire::param::{InlineQos, StatusInfo, encode_inline_qos};

const VICTIM: &str = "10.0.0.200";
const HEADERS: u64 = 28;

/// A participant that claims to live at the victim's address.
fn forged(index: usize) -> ParticipantData {
    ParticipantData {
        builtin_endpoints: u32::MAX,
        meta_unicast: vec![udp(VICTIM, 7410)],
        default_unicast: vec![udp(VICTIM, 7411)],
        ..ParticipantData::new(prefix(index).participant())
    }
}

fn octets_to_victim(network: &Network) -> u64 {
    let of_victim = network.octets_to.iter().filter(|(to, _)| to.ip() == udp(VICTIM, 1).ip());
    of_victim.map(|(_, octets)| octets).sum()
}

#[test]
fn r1_a_spoofed_victim_gets_at_most_three_times_what_the_attacker_sent() {
    for (from, every) in [(udp("10.0.0.66", 7410), SECOND / 2), (udp(VICTIM, 7410), 10 * SECOND)] {
        let mut network = Network::of(1);
        let packet = announcement(&forged(9), GuidPrefix::UNKNOWN);
        let mut sent = 0;
        let end = network.now + 3 * 3_600 * SECOND;
        while network.now < end {
            network.inject(from, udp("10.0.0.1", 7410), &packet);
            sent += packet.len() as u64 + HEADERS;
            let next = network.now + every;
            network.run_until(next);
            assert!(octets_to_victim(&network) <= 3 * sent, "after {sent} octets");
        }
        // Back-off makes it far less in the long run.
        assert!(
            octets_to_victim(&network) < 250 * 1_024,
            "{} octets in three hours",
            octets_to_victim(&network)
        );
    }
}

#[test]
fn r1_ever_new_names_for_one_victim_earn_no_more() {
    let mut network = Network::of(1);
    let mut sent = 0;
    for index in 100..5_000 {
        let packet = announcement(&forged(index), GuidPrefix::UNKNOWN);
        network.inject(udp("10.0.0.66", 7410), udp("10.0.0.1", 7410), &packet);
        sent += packet.len() as u64 + HEADERS;
        network.run_for(Duration::from_millis(10));
        assert!(octets_to_victim(&network) <= 3 * sent);
    }
    network.run_for(Duration::from_secs(3_600));
    assert!(octets_to_victim(&network) <= 3 * sent);
}

#[test]
fn r1_an_attacker_with_an_address_of_its_own_cannot_vouch_for_the_victims() {
    let mut network = Network::of(1);
    // It is really there and even names us as destination, but from its own address.
    let packet = announcement(&forged(9), prefix(0));
    let mut sent = 0;
    for _ in 0..3_600 {
        network.inject(udp("10.0.0.66", 7410), udp("10.0.0.1", 7410), &packet);
        sent += packet.len() as u64 + HEADERS;
        network.run_for(Duration::from_secs(1));
        assert!(octets_to_victim(&network) <= 3 * sent);
    }
    let remote = network.nodes[0].participant.remote_participants().next().unwrap();
    assert!(!remote.proven);
}

#[test]
fn r1_a_readers_own_locators_must_be_proven_too() {
    let mut network = Network::of(1);
    let attacker = udp("10.0.0.66", 7410);
    let data = ParticipantData {
        meta_unicast: vec![attacker],
        default_unicast: vec![udp("10.0.0.66", 7411)],
        ..forged(9)
    };
    network.add_peer(Peer::new(prefix(9), attacker));
    network.inject(attacker, udp("10.0.0.1", 7410), &announcement(&data, prefix(0)));
    network.run_for(Duration::from_millis(150));
    let reader = |key: u32, unicast: Vec<Locator>| EndpointData {
        unicast,
        ..EndpointData::new(
            prefix(9).entity(EntityId::user_reader(key, true)),
            "Square".into(),
            "ShapeType".into(),
        )
    };
    let forged = reader(1, vec![udp(VICTIM, 7411)]);
    let honest = reader(2, Vec::new());
    for (number, endpoint) in [(1, &forged), (2, &honest)] {
        let bytes = sedp(prefix(9), EntityId::SEDP_SUBSCRIPTIONS_WRITER, number, endpoint);
        network.inject(attacker, udp("10.0.0.1", 7410), &bytes);
        network.run_for(Duration::from_millis(1));
    }
    assert_eq!(network.nodes[0].participant.remote_endpoints().count(), 2);
    assert!(network.matches(0).contains(&(WRITER, honest.guid)));
    assert!(!network.matches(0).contains(&(WRITER, forged.guid)));
    let mismatch = network.nodes[0].participant.mismatches().next().unwrap();
    assert_eq!((mismatch.reader.guid, mismatch.reason), (forged.guid, MismatchReason::NoUsableLocator));
}

#[test]
fn who_listens_only_where_no_transport_reaches_is_counted_and_told_of() {
    let mut network = Network::of(1);
    network.run_for(Duration::from_millis(100));
    let at = udp("10.0.0.66", 7410);
    let shared_memory = |port| Locator { kind: 16, port, address: [7; 16] };
    let data = ParticipantData {
        meta_unicast: vec![at],
        default_unicast: vec![shared_memory(7411), shared_memory(7413)],
        ..forged(9)
    };
    network.add_peer(Peer::new(prefix(9), at));
    network.inject(at, udp("10.0.0.1", 7410), &announcement(&data, prefix(0)));
    network.run_for(Duration::from_millis(150));
    let reader = EndpointData::new(
        prefix(9).entity(EntityId::user_reader(1, true)),
        "Square".into(),
        "ShapeType".into(),
    );
    let bytes = sedp(prefix(9), EntityId::SEDP_SUBSCRIPTIONS_WRITER, 1, &reader);
    network.inject(at, udp("10.0.0.1", 7410), &bytes);
    network.run_for(Duration::from_millis(1));
    let participant = &network.nodes[0].participant;
    let mismatch = participant.mismatches().next().unwrap();
    assert_eq!((mismatch.reader.guid, &mismatch.reason), (reader.guid, &MismatchReason::NoUsableLocator));
    let told = mismatch.to_string();
    assert!(told.contains("2 of its addresses are of kinds that no transport here reaches"), "{told}");
    assert!(participant.drops().get(DropReason::Unreachable) >= 2);
}

#[test]
fn r1_the_unproven_are_matched_with_nothing() {
    let mut network = Network::of(2);
    network.nodes[1].up = false;
    network.nodes[0].commands.clear();
    network.run_for(Duration::from_secs(10));
    assert!(network.nodes[0].commands.is_empty());
    // It is told of, once.
    let told: Vec<_> = network.nodes[0].events.iter().map(|(_, event)| *event).collect();
    assert_eq!(told, [Event::ParticipantUnanswering { participant: prefix(1).participant() }]);
}

#[test]
fn r1_refused_locators_leave_nothing_to_send_to() {
    let mut network = Network::of(1);
    for (index, locator) in
        [group(), udp("255.255.255.255", 7410), udp("10.0.0.7", 53), udp("127.0.0.1", 7410)]
            .into_iter()
            .enumerate()
    {
        let data = ParticipantData { meta_unicast: vec![locator], ..forged(20 + index) };
        let settled = network.datagrams;
        network.inject(
            udp("10.0.0.66", 7410),
            udp("10.0.0.1", 7410),
            &announcement(&data, GuidPrefix::UNKNOWN),
        );
        let before = network.octets_to.get(&locator).copied();
        network.run_for(Duration::from_millis(5));
        assert_eq!(network.octets_to.get(&locator).copied(), before, "{locator}");
        assert!(network.datagrams >= settled);
    }
    assert!(network.drops(0, DropReason::LocatorRefused) >= 4);
}

#[test]
fn r3_a_flood_of_participants_leaves_the_real_ones_alone() {
    let mut network = Network::new();
    let limits = DiscoveryLimits { participants_max: 100, ..DiscoveryLimits::default() };
    for node in 0..3 {
        network.add(ParticipantConfig { limits, ..config(node) });
        network.add_writer(node, QosSet::writer());
        network.add_reader(node, QosSet::reader());
        network.start(node);
    }
    network.run_for(Duration::from_secs(1));
    assert!(network.is_converged(3));
    for index in 100..2_000 {
        let from = udp(&format!("10.1.{}.{}", index / 250, index % 250 + 1), 7410);
        network.inject(from, group(), &announcement(&forged(index), GuidPrefix::UNKNOWN));
        network.run_for(Duration::from_millis(1));
        assert!(network.nodes[0].participant.remote_participants().count() <= 100);
    }
    network.run_for(Duration::from_secs(10));
    assert!(network.is_converged(3));
    // Newcomers still get in: strangers make room for them.
    let late = network.add(config(3));
    network.add_writer(late, QosSet::writer());
    network.add_reader(late, QosSet::reader());
    network.start(late);
    network.run_for(Duration::from_secs(5));
    assert!(network.is_converged(4));
    // And the strangers fade away.
    network.run_for(Duration::from_secs(31));
    assert_eq!(network.nodes[0].participant.remote_participants().count(), 3);
}

#[test]
fn r3_one_address_cannot_push_out_strangers_from_others() {
    let mut network = Network::of(1);
    let innocent = ParticipantData { meta_unicast: vec![udp("10.0.0.50", 7410)], ..forged(50) };
    network.inject(udp("10.0.0.50", 7410), group(), &announcement(&innocent, GuidPrefix::UNKNOWN));
    for index in 100..1_500 {
        network.inject(udp("10.0.0.66", 7410), group(), &announcement(&forged(index), GuidPrefix::UNKNOWN));
        network.run_for(Duration::from_millis(1));
    }
    let known: Vec<_> =
        network.nodes[0].participant.remote_participants().map(|remote| remote.guid).collect();
    assert!(known.contains(&innocent.guid));
    assert!(known.len() <= 65);
}

#[test]
fn r3_endpoints_of_one_participant_are_bounded() {
    let mut network = Network::new();
    let limits = DiscoveryLimits { endpoints_per_participant_max: 10, ..DiscoveryLimits::default() };
    network.add(ParticipantConfig { limits, ..config(0) });
    network.add(config(1));
    for key in 0..25 {
        network.add_endpoint(1, EntityId::user_writer(key, true), &format!("topic {key}"), QosSet::writer());
    }
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(2));
    assert_eq!(network.nodes[0].participant.remote_endpoints().count(), 10);
    assert_eq!(network.drops(0, DropReason::DiscoveryLimit), 15);
    // Room made by one is used by the next.
    let first = network.nodes[0].participant.remote_endpoints().next().unwrap().guid;
    network.call(1, |it, now, out| it.remove_endpoint(now, first, out));
    network.add_endpoint(1, EntityId::user_writer(99, true), "another", QosSet::writer());
    network.run_for(Duration::from_secs(1));
    let topics: Vec<_> =
        network.nodes[0].participant.remote_endpoints().map(|it| it.topic.to_owned()).collect();
    assert!(topics.len() == 10 && topics.contains(&"another".to_owned()));
}

#[test]
fn r3_the_octets_of_all_endpoints_are_bounded() {
    let mut network = Network::new();
    let limits = DiscoveryLimits { endpoint_bytes_max: 20_000, ..DiscoveryLimits::default() };
    network.add(ParticipantConfig { limits, ..config(0) });
    network.add(config(1));
    for key in 0..10 {
        let qos = QosSet { user_data: vec![7; 5_000], ..QosSet::writer() };
        network.add_endpoint(1, EntityId::user_writer(key, true), "Square", qos);
    }
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(2));
    let known = network.nodes[0].participant.remote_endpoints().count();
    assert!((2..=3).contains(&known), "{known} endpoints of 5 kB in 20 kB");
}

/// A datagram that disposes a participant in its own name.
pub(super) fn farewell(of: GuidPrefix, named: GuidPrefix) -> Vec<u8> {
    let status_info = StatusInfo { disposed: true, unregistered: true, filtered: false };
    let key_hash = Some(KeyHash(named.participant().to_bytes()));
    let mut inline_qos = Vec::new();
    encode_inline_qos(&InlineQos { status_info, key_hash, ..InlineQos::default() }, &mut inline_qos);
    let mut out = Outbox::new();
    let mut message = out.message(of, &[group()], 65_000);
    let header = DataHeader {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SPDP_WRITER,
        sequence_number: SequenceNumber(2),
        inline_qos: &inline_qos,
        key_only: false,
    };
    assert!(message.data(&header, &Payload::empty()));
    message.finish();
    out.datagram(&out.transmits()[0])
}

/// A datagram that announces an endpoint.
pub(super) fn sedp(of: GuidPrefix, writer: EntityId, number: i64, endpoint: &EndpointData) -> Vec<u8> {
    let mut out = Outbox::new();
    let mut message = out.message(of, &[group()], 65_000);
    let header = DataHeader {
        reader: EntityId::UNKNOWN,
        writer,
        sequence_number: SequenceNumber(number),
        inline_qos: &[],
        key_only: false,
    };
    assert!(message.data(&header, &Payload::from_vec(endpoint.encode())));
    message.finish();
    out.datagram(&out.transmits()[0])
}

#[test]
fn r8_a_farewell_from_a_strange_address_is_not_believed() {
    let mut network = Network::of(3);
    network.run_for(Duration::from_secs(1));
    network.inject(udp("10.0.0.66", 7410), group(), &farewell(prefix(1), prefix(1)));
    network.inject(udp("10.0.0.2", 7410), udp("10.0.0.1", 7410), &farewell(prefix(1), prefix(2)));
    network.run_for(Duration::from_secs(1));
    assert!(network.is_converged(3));
    assert_eq!(network.drops(0, DropReason::SpoofSuspected), 2);
    // The real one is: key hash only, as some products send it (fact 14).
    network.inject(udp("10.0.0.2", 7410), udp("10.0.0.1", 7410), &farewell(prefix(1), prefix(1)));
    network.run_for(Duration::from_millis(1));
    assert_eq!(network.matches(0).len(), 4);
}

#[test]
fn fact_25_the_same_guid_from_elsewhere_waits_for_proof() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let commands = network.nodes[0].commands.len();
    // Forged: the victim's locators under the name of a participant we know.
    let packet = announcement(&forged(1), GuidPrefix::UNKNOWN);
    let mut sent = 0;
    for _ in 0..600 {
        network.inject(udp("10.0.0.66", 7410), udp("10.0.0.1", 7410), &packet);
        sent += packet.len() as u64 + HEADERS;
        network.run_for(Duration::from_millis(100));
    }
    assert_eq!(network.nodes[0].commands.len(), commands, "nothing changed for the real one");
    assert!(octets_to_victim(&network) <= 3 * sent);
    // Nor does a stranger's repetition of its data keep it alive.
    network.nodes[1].up = false;
    let truth = ParticipantData {
        meta_unicast: vec![udp("10.0.0.2", 7410)],
        default_unicast: vec![udp("10.0.0.2", 7411)],
        ..forged(1)
    };
    for _ in 0..30 {
        network.inject(
            udp("10.0.0.66", 7410),
            udp("10.0.0.1", 7410),
            &announcement(&truth, GuidPrefix::UNKNOWN),
        );
        network.run_for(Duration::from_secs(1));
    }
    assert_eq!(network.matches(0).len(), 2);
}

#[test]
fn endpoints_are_announced_by_their_own_participant_only() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let before = network.nodes[0].participant.remote_endpoints().count();
    // A user writer of participant 1 "announced" by an unmatched participant 9.
    let foreign = EndpointData::new(
        prefix(1).entity(EntityId::user_writer(77, true)),
        "Square".into(),
        "ShapeType".into(),
    );
    let bytes = sedp(prefix(9), EntityId::SEDP_PUBLICATIONS_WRITER, 1, &foreign);
    network.inject(udp("10.0.0.9", 7410), udp("10.0.0.1", 7410), &bytes);
    network.run_for(Duration::from_millis(10));
    assert_eq!(network.nodes[0].participant.remote_endpoints().count(), before);
}

#[test]
fn r2_mutilated_discovery_never_panics_and_the_rest_goes_on() {
    let mut network = Network::of(2);
    network.capture = Some(Vec::new());
    network.run_for(Duration::from_secs(2));
    let captured = network.capture.take().unwrap();
    let mut random = 1_u64;
    let mut roll = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for round in 0..4_000 {
        let (from, _, bytes) = &captured[roll(captured.len())];
        let mut bytes = bytes.clone();
        for _ in 0..=roll(4) {
            let at = roll(bytes.len());
            bytes[at] = roll(256) as u8;
        }
        bytes.truncate(bytes.len() - roll(bytes.len().min(9)));
        network.inject(*from, udp("10.0.0.1", 7410), &bytes);
        if round % 50 == 0 {
            network.run_for(Duration::from_millis(10));
        }
    }
    network.run_for(Duration::from_secs(60));
    // What was forged in the name and from the address of the other may be believed: only security helps.
    // Everyone else is found as ever.
    let late = network.add(config(2));
    network.add_writer(late, QosSet::writer());
    network.add_reader(late, QosSet::reader());
    network.start(late);
    network.run_for(Duration::from_secs(1));
    let fresh = [(READER, prefix(2).entity(WRITER)), (WRITER, prefix(2).entity(READER))];
    assert!(fresh.iter().all(|pair| network.matches(0).contains(pair)));
    let known: Vec<_> =
        network.nodes[0].participant.remote_participants().map(|remote| remote.proven).collect();
    assert_eq!(known, [true, true]);
}

#[test]
fn r9_a_packet_never_causes_more_than_a_bounded_answer() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(5));
    for bytes in [vec![0xff; 1_400], b"RTPS".to_vec(), announcement(&forged(9), GuidPrefix::UNKNOWN)] {
        let before = network.datagrams;
        network.inject(udp("10.0.0.66", 7410), udp("10.0.0.1", 7410), &bytes);
        let settle = network.now + 2 * HOP;
        network.run_until(settle);
        assert!(network.datagrams <= before + 2);
    }
    let told =
        |command: &Command| matches!(command, Command::MatchReader { .. } | Command::MatchWriter { .. });
    assert_eq!(network.count(0, told), 4);
}
