//! Whom a participant believes (R1, R8).

use super::network::{Network, READER, WRITER, group, prefix, udp};
use super::peer::{Peer, announcement};
use crate::guid::{EntityId, GuidPrefix};
use crate::seq::{SequenceNumber, SequenceSet};
use crate::stats::DropReason;
use crate::time::Duration;

fn is_proven(network: &Network, of: GuidPrefix) -> bool {
    let mut remotes = network.nodes[0].participant.remote_participants();
    remotes.any(|remote| remote.guid.prefix == of && remote.proven)
}

#[test]
fn r1_a_message_that_names_us_proves_nothing() {
    let mut network = Network::of(1);
    let victim = udp("10.0.0.200", 7410);
    // Not one of the peers: it says nothing. Somebody speaks in its name, from its address.
    let mut forged = Peer::new(prefix(9), victim);
    let mut sent = 0;
    let mut inject = |network: &mut Network, bytes: &[u8]| {
        network.inject(victim, udp("10.0.0.1", 7410), bytes);
        sent += bytes.len() as u64 + 28;
    };
    inject(&mut network, &announcement(&forged.data(), prefix(0)));
    for number in [0, 1, 2, 1_000_000] {
        let missing = SequenceSet::empty(SequenceNumber(number));
        let (reader, writer) = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
        let bytes = forged.acknack(reader, writer, missing);
        inject(&mut network, &bytes);
        network.run_for(Duration::from_millis(100));
    }
    network.run_for(Duration::from_secs(90));
    assert!(!is_proven(&network, prefix(9)));
    let drawn = network.octets_to.get(&victim).copied().unwrap_or(0);
    assert!(drawn <= 3 * sent, "{drawn} octets for {sent}");
}

#[test]
fn r1_a_peer_that_names_no_destination_is_found_and_gets_everything() {
    let mut network = Network::of(1);
    let at = udp("10.0.0.9", 7410);
    network.add_peer(Peer::new(prefix(9), at));
    network.announce_peer(0);
    network.run_for(Duration::from_millis(100));
    assert!(is_proven(&network, prefix(9)));
    let [publications, subscriptions] = network.peers[0].expected;
    let one = super::super::proof::NUMBERS_AFTER.0 + 3;
    assert_eq!(
        [publications, subscriptions],
        [one, one],
        "our writer and our reader were told, what is for others passed over"
    );
}

#[test]
fn r1_behind_a_nat_answers_come_from_elsewhere() {
    let mut network = Network::of(1);
    let (at, outside) = (udp("10.0.0.9", 7410), udp("192.0.2.1", 40_000));
    network.add_peer(Peer { from: outside, ..Peer::new(prefix(9), at) });
    network.announce_peer(0);
    network.run_for(Duration::from_millis(100));
    assert!(is_proven(&network, prefix(9)));
    let to_the_nat = network.octets_to.get(&outside).copied();
    assert_eq!(to_the_nat, None, "it did not say that it listens there");
}

#[test]
fn a_peer_that_kept_us_while_we_forgot_it_begins_anew() {
    let mut network = Network::of(1);
    let at = udp("10.0.0.9", 7410);
    network.add_peer(Peer::new(prefix(9), at));
    network.announce_peer(0);
    network.run_for(Duration::from_millis(100));
    assert!(is_proven(&network, prefix(9)));
    let knew = network.peers[0].expected;
    // It is silent for longer than its lease, and hears nothing.
    network.blocked.push((at, 0));
    network.run_for(Duration::from_secs(200));
    assert!(!is_proven(&network, prefix(9)));
    assert_eq!(network.peers[0].expected, knew);
    network.blocked.clear();
    network.announce_peer(0);
    network.run_for(Duration::from_millis(100));
    assert_eq!(network.peers[0].expected, [1; 2], "it forgot us, as we forgot it");
    // Our next announcement makes it speak.
    network.run_for(Duration::from_secs(3));
    network.announce_peer(0);
    network.run_for(Duration::from_millis(100));
    assert!(is_proven(&network, prefix(9)));
}

#[test]
fn r1_an_old_answer_proves_nothing_later() {
    let mut network = Network::of(1);
    let at = udp("10.0.0.9", 7410);
    network.add_peer(Peer::new(prefix(9), at));
    network.capture = Some(Vec::new());
    network.announce_peer(0);
    network.run_for(Duration::from_millis(100));
    let captured = network.capture.take().unwrap();
    network.peers.clear();
    network.blocked.push((at, 0));
    network.run_for(Duration::from_secs(200));
    assert_eq!(network.nodes[0].participant.remote_participants().count(), 0);
    network.blocked.clear();
    for (from, to, bytes) in captured.iter().filter(|(from, ..)| *from == at) {
        network.inject(*from, *to, bytes);
        network.run_for(Duration::from_millis(10));
    }
    network.run_for(Duration::from_secs(1));
    assert!(!is_proven(&network, prefix(9)), "everything it ever said was said again");
}

#[test]
fn r8_control_traffic_from_a_strange_address_ends_nothing_and_moves_nothing() {
    let mut network = Network::of(2);
    network.capture = Some(Vec::new());
    network.run_for(Duration::from_secs(1));
    let genuine = udp("10.0.0.2", 7410);
    let attacker = udp("10.0.0.66", 7410);
    let said: Vec<_> = network.capture.take().unwrap();
    network.call(1, |it, now, out| it.remove_endpoint(now, prefix(1).entity(READER), out));
    network.capture = Some(Vec::new());
    network.add_reader(1, crate::qos::QosSet::reader());
    network.run_for(Duration::from_secs(1));
    let commands = network.nodes[0].commands.len();
    // All that it said, withdrawals among it, is said again by somebody else.
    let again = network.capture.take().unwrap();
    for (from, _, bytes) in said.iter().chain(&again) {
        if *from == genuine {
            network.inject(attacker, udp("10.0.0.1", 7410), bytes);
        }
    }
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.nodes[0].commands.len(), commands);
    assert!(network.drops(0, DropReason::SpoofSuspected) > 0);
}

#[test]
fn r8_who_proves_another_address_gets_nothing_while_the_first_answers() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let commands = network.nodes[0].commands.len();
    // It is really there, and answers what it is asked in the other's name.
    let attacker = udp("10.0.0.66", 7410);
    network.add_peer(Peer::new(prefix(1), attacker));
    for _ in 0..60 {
        // Whatever it was told before, it can repeat what it is told next.
        network.peers[0].expected = [1; 2];
        network.announce_peer(0);
        network.run_for(Duration::from_millis(500));
    }
    assert_eq!(network.nodes[0].commands.len(), commands);
    assert_eq!(network.peers[0].farewells, 0);
    // Silent, the first one is where it claims to be now.
    network.nodes[1].up = false;
    network.peers[0].expected = [1; 2];
    network.announce_peer(0);
    network.run_for(Duration::from_secs(2));
    let here = |command: &crate::discovery::Command| matches!(command, crate::discovery::Command::MatchReader { reader, .. } if reader.locators == [attacker]);
    assert_eq!(network.count(0, here), 1);
}

#[test]
fn r8_a_forged_redirect_from_the_right_address_moves_nothing_either() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let commands = network.nodes[0].commands.len();
    let attacker = udp("10.0.0.66", 7410);
    network.add_peer(Peer::new(prefix(1), attacker));
    // As if it came from the participant itself: addresses can be forged.
    let redirect = announcement(&network.peers[0].data(), GuidPrefix::UNKNOWN);
    for _ in 0..20 {
        network.inject(udp("10.0.0.2", 7410), udp("10.0.0.1", 7410), &redirect);
        network.run_for(Duration::from_millis(500));
    }
    assert_eq!(network.nodes[0].commands.len(), commands);
}

#[test]
fn a_claim_and_its_proof_from_where_a_participant_speaks_move_it_though_it_still_answers_there() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let (old, new) = (udp("10.0.0.2", 7410), udp("10.0.0.9", 7410));
    // One socket, whose host has another address now and keeps the old one.
    network.add_peer(Peer { from: old, ..Peer::new(prefix(1), new) });
    network.announce_peer(0);
    network.run_for(Duration::from_millis(200));
    let there = |command: &crate::discovery::Command| matches!(command, crate::discovery::Command::MatchReader { reader, .. } if reader.locators == [new]);
    assert_eq!(network.count(0, there), 1);
}

#[test]
fn r8_on_this_host_only_its_own_socket_tells_that_a_participant_leaves() {
    let mut network = super::scenario::two_of_one_host();
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(1));
    let before = network.matches(0);
    assert_eq!(before.len(), 1);
    let farewell = super::hostile::farewell(prefix(1), prefix(1));
    let to = network.nodes[0].address;
    let stranger = crate::locator::Locator { port: 50_000, ..network.nodes[1].address };
    network.inject(stranger, to, &farewell);
    network.run_for(Duration::from_secs(3));
    assert_eq!(network.matches(0), before);
    let own = network.nodes[1].address;
    network.inject(own, to, &farewell);
    network.run_for(Duration::from_millis(1));
    assert_eq!(network.matches(0).len(), 0);
}

#[test]
fn a_newer_participant_at_the_same_socket_proves_the_older_dead() {
    let mut network = Network::of(1);
    let at = udp("10.0.0.9", 7410);
    network.add_peer(Peer::new(prefix(9), at));
    network.announce_peer(0);
    network.run_for(Duration::from_secs(2));
    // Killed and restarted: another participant has the socket.
    network.peers[0] = Peer::new(prefix(10), at);
    network.announce_peer(0);
    network.run_for(Duration::from_millis(1_200));
    assert!(is_proven(&network, prefix(10)));
    assert!(!is_proven(&network, prefix(9)), "its lease had lasted 100 s");
}

#[test]
fn participants_that_share_a_socket_and_answer_stay() {
    let mut network = Network::of(1);
    let at = udp("10.0.0.9", 7410);
    for index in 9..12 {
        network.add_peer(Peer::new(prefix(index), at));
        network.announce_peer(index - 9);
        network.run_for(Duration::from_secs(2));
    }
    network.run_for(Duration::from_secs(3));
    assert!((9..12).all(|index| is_proven(&network, prefix(index))));
}

/// Proven participants that stay silent, with leases without end, from as many addresses.
fn silent_strangers(network: &mut Network, from: std::ops::Range<usize>, addresses: usize) {
    for index in from {
        let at = udp(&format!("10.7.{}.{}", index % addresses, 9), 10_000 + index as u16);
        network.peers = vec![Peer::new(prefix(index), at)];
        let data = crate::discovery::builtin::ParticipantData {
            lease_duration: Duration::INFINITE,
            ..network.peers[0].data()
        };
        network.inject(at, udp("10.0.0.1", 7410), &announcement(&data, GuidPrefix::UNKNOWN));
        network.run_for(Duration::from_millis(5));
    }
    network.peers.clear();
}

#[test]
fn r3_proven_strangers_leave_places_to_newcomers_and_fade_whatever_their_leases() {
    for addresses in [1, 40] {
        let mut network = Network::of(2);
        network.run_for(Duration::from_secs(1));
        let matched = network.matches(0);
        silent_strangers(&mut network, 100..1_300, addresses);
        let known = network.nodes[0].participant.remote_participants().count();
        assert!(known <= if addresses == 1 { 251 } else { 1_000 }, "{known}");
        let late = network.add(super::network::config(2));
        network.add_reader(late, crate::qos::QosSet::reader());
        network.start(late);
        network.run_for(Duration::from_secs(2));
        assert_eq!(network.matches(0).len(), matched.len() + 1, "a newcomer is found");
        assert!(network.matches(0).is_superset(&matched), "and the old ones stay");
        network.run_for(Duration::from_secs(310));
        assert_eq!(network.nodes[0].participant.remote_participants().count(), 2);
    }
}

#[test]
fn a_long_lease_counts_while_endpoints_are_matched() {
    let mut network = Network::new();
    for index in 0..2 {
        let mut config = super::network::config(index);
        config.lease_duration = Duration::from_secs(3_600);
        network.add(config);
        network.add_writer(index, crate::qos::QosSet::writer());
        network.add_reader(index, crate::qos::QosSet::reader());
        network.start(index);
    }
    network.run_for(Duration::from_secs(1));
    network.nodes[1].up = false;
    network.run_for(Duration::from_secs(3_000));
    assert_eq!(network.matches(0).len(), 4);
    network.run_for(Duration::from_secs(700));
    assert_eq!(network.matches(0).len(), 2);
}

#[test]
fn r8_an_announcement_from_elsewhere_is_no_sign_that_the_group_works() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let of = network.nodes[1].participant.guid().prefix;
    let heard = |network: &Network| network.nodes[0].participant.database.get(of).unwrap().heard_openly;
    let before = heard(&network);
    let told = network.nodes[1].participant.participant_data();
    let (own, elsewhere) = (network.nodes[1].address, udp("10.0.0.66", 7410));
    let moved = crate::discovery::builtin::ParticipantData { meta_unicast: vec![elsewhere], ..told.clone() };
    for (from, data, is_sign) in [(elsewhere, &told, false), (elsewhere, &moved, false), (own, &told, true)] {
        network.inject(from, group(), &announcement(data, GuidPrefix::UNKNOWN));
        network.run_for(Duration::from_millis(1));
        assert_eq!(heard(&network) > before, is_sign, "{from}");
    }
}

#[test]
fn r8_who_stood_still_while_another_proved_to_be_it_is_itself_again_when_it_answers() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let (own, attacker) = (network.nodes[1].address, udp("10.0.0.66", 7410));
    let reader_at = |network: &Network| {
        let commands = network.nodes[0].commands.iter().rev();
        let mut places = commands.filter_map(|(_, command)| match command {
            crate::discovery::Command::MatchReader { reader, .. } => Some(reader.locators[0].ip()),
            _ => None,
        });
        places.next().flatten()
    };
    network.add_peer(Peer::new(prefix(1), attacker));
    let claim_for = |network: &mut Network, half_seconds| {
        for _ in 0..half_seconds {
            network.peers[0].expected = [1; 2];
            network.announce_peer(0);
            network.run_for(Duration::from_millis(500));
        }
    };
    // The second time begins before the lease would have ended that counted the first time, and ends after
    // it.
    let lease = network.nodes[1].participant.participant_data().lease_duration;
    let before_its_end = 2 * lease.0 as usize / 1_000_000_000 - 24;
    for (away, half_seconds) in [(4, before_its_end), (16, 60)] {
        network.nodes[1].up = false;
        claim_for(&mut network, away);
        assert_eq!(reader_at(&network), attacker.ip());
        network.nodes[1].up = true;
        claim_for(&mut network, 8);
        assert_eq!(reader_at(&network), own.ip(), "within one period of its announcements");
        let commands = network.nodes[0].commands.len();
        claim_for(&mut network, half_seconds);
        assert_eq!(network.nodes[0].commands.len(), commands, "while it answers nothing moves it");
    }
    // After its lease the place is anybody's.
    network.nodes[1].up = false;
    claim_for(&mut network, 400);
    network.nodes[1].up = true;
    claim_for(&mut network, 20);
    assert_eq!(reader_at(&network), attacker.ip());
}

#[test]
fn r8_who_comes_back_is_told_what_an_impostor_acknowledged_and_what_that_invented_is_gone() {
    let mut network = Network::of(2);
    network.run_for(Duration::from_secs(1));
    let attacker = udp("10.0.0.66", 7410);
    network.add_peer(Peer::new(prefix(1), attacker));
    let claim = |network: &mut Network| {
        network.peers[0].expected = [1; 2];
        network.announce_peer(0);
        network.run_for(Duration::from_millis(500));
    };
    network.nodes[1].up = false;
    (0..4).for_each(|_| claim(&mut network));
    let meanwhile = EntityId::user_writer(7, true);
    let written = network.add_endpoint(0, meanwhile, "Square", crate::qos::QosSet::writer());
    let invented = prefix(1).entity(EntityId::user_writer(9, true));
    let data = crate::discovery::builtin::EndpointData::new(invented, "Square".into(), "ShapeType".into());
    let [publications, _] = network.nodes[1].participant.builtin.last_numbers();
    let writer = EntityId::SEDP_PUBLICATIONS_WRITER;
    let sedp = super::hostile::sedp(prefix(1), writer, publications.next().0, &data);
    network.inject(attacker, network.nodes[0].address, &sedp);
    claim(&mut network);
    assert!(network.matches(0).contains(&(READER, invented)), "the impostor is believed");
    network.nodes[1].up = true;
    (0..8).for_each(|_| claim(&mut network));
    assert!(network.matches(1).contains(&(READER, written)), "told again");
    assert!(!network.matches(0).contains(&(READER, invented)), "and forgotten");
    assert!(network.matches(0).contains(&(READER, prefix(1).entity(WRITER))), "what it has stays");
}

#[test]
fn r3_dead_participants_with_matched_endpoints_and_endless_leases_give_way() {
    let mut network = Network::new();
    for index in 0..2 {
        let mut config = super::network::config(index);
        config.limits.participants_max = 100;
        network.add(config);
        network.add_writer(index, crate::qos::QosSet::writer());
        network.add_reader(index, crate::qos::QosSet::reader());
        network.start(index);
    }
    network.run_for(Duration::from_secs(1));
    let matched = network.matches(0);
    for index in 100..220 {
        let at = udp(&format!("10.7.{}.9", index % 40), 10_000 + index as u16);
        network.peers = vec![Peer::new(prefix(index), at)];
        let lease_duration = Duration::INFINITE;
        let data = crate::discovery::builtin::ParticipantData { lease_duration, ..network.peers[0].data() };
        let to = udp("10.0.0.1", 7410);
        network.inject(at, to, &announcement(&data, GuidPrefix::UNKNOWN));
        // Of many that are known, nobody is answered at once.
        network.run_for(Duration::from_millis(12));
        let guid = prefix(index).entity(READER);
        let reader = crate::discovery::builtin::EndpointData::new(guid, "Square".into(), "ShapeType".into());
        let writer = EntityId::SEDP_SUBSCRIPTIONS_WRITER;
        network.inject(at, to, &super::hostile::sedp(prefix(index), writer, 1, &reader));
        network.run_for(Duration::from_millis(1));
    }
    network.peers.clear();
    assert!(network.matches(0).len() > 90, "all are of use");
    network.run_for(Duration::from_secs(31));
    let late = network.add(super::network::config(2));
    network.add_reader(late, crate::qos::QosSet::reader());
    network.start(late);
    network.run_for(Duration::from_secs(5));
    assert!(is_proven(&network, prefix(2)), "a newcomer finds a place");
    assert!(network.matches(0).is_superset(&matched), "and who lives stays");
}
