//! Participants of other stacks whose addresses change, and others that say so of them.

use super::hostile::sedp;
use super::network::{Network, READER, prefix, udp};
use super::peer::{Peer, announcement};
use crate::discovery::Command;
use crate::discovery::builtin::{EndpointData, ParticipantData};
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::qos::QosSet;
use crate::stats::DropReason;
use crate::time::Duration;

/// RTI Connext: it reads what all but few read.
const VENDOR: [u8; 2] = [1, 1];
const OLD: &str = "10.0.0.9";
const NEW: &str = "10.0.0.50";
const ATTACKER: &str = "10.0.0.66";

/// A participant of ours and one of another stack, with a reader that is matched.
fn pair() -> Network {
    let mut network = Network::of(1);
    network.add_peer(Peer { vendor: VENDOR, ..Peer::new(prefix(9), udp(OLD, 7410)) });
    network.announce_peer(0);
    network.run_for(Duration::from_millis(100));
    let reader = EndpointData::new(prefix(9).entity(READER), "Square".into(), "ShapeType".into());
    let told = sedp(prefix(9), EntityId::SEDP_SUBSCRIPTIONS_WRITER, 1, &reader);
    network.inject(udp(OLD, 7410), udp("10.0.0.1", 7410), &told);
    network.run_for(Duration::from_secs(1));
    assert_eq!(matches_at(&network, udp(OLD, 7410)), 1);
    network
}

/// How often our writer was told that the reader is there.
fn matches_at(network: &Network, at: Locator) -> usize {
    network.count(0, |command| {
        matches!(command, Command::MatchReader { reader, .. }
            if reader.guid == prefix(9).entity(READER) && reader.locators == [at])
    })
}

fn is_unmatched(network: &Network) -> bool {
    let unmatches =
        |it: &Command| matches!(it, Command::UnmatchReader { .. } | Command::UnmatchWriter { .. });
    network.count(0, unmatches) > 0
}

/// A new endpoint of ours reaches the participant.
fn assert_in_step(network: &mut Network, peer: usize) {
    let before = network.peers[peer].changes;
    network.add_endpoint(0, EntityId::user_writer(77, true), "Circle", QosSet::writer());
    network.run_for(Duration::from_secs(2));
    assert_eq!(network.peers[peer].changes, before + 1, "it misses nothing that comes after");
    assert!(network.nodes[0].participant.remote_participants().any(|it| it.guid.prefix == prefix(9)));
}

fn settle_at(network: &mut Network, peer: usize, address: &str) {
    let at = udp(address, 7410);
    (network.peers[peer].at, network.peers[peer].from) = (at, at);
}

#[test]
fn another_products_participant_that_moves_is_followed_and_both_keep_what_they_know() {
    let mut network = pair();
    // Again and again: readers do not go back, and neither do the numbers.
    for (round, address) in [NEW, OLD, "10.0.0.51", "10.0.0.52"].into_iter().enumerate() {
        let (knew, before) = (network.peers[0].expected, matches_at(&network, udp(address, 7410)));
        settle_at(&mut network, 0, address);
        network.announce_peer(0);
        network.run_for(Duration::from_secs(2));
        assert_eq!(matches_at(&network, udp(address, 7410)), before + 1, "its lease lasts 100 s");
        assert!(!is_unmatched(&network), "nothing begins anew");
        let [publications, subscriptions] = network.peers[0].expected;
        assert!(publications > knew[0] && subscriptions > knew[1], "round {round}");
        assert_eq!((network.peers[0].farewells, network.peers[0].changes), (0, 2));
    }
    assert_in_step(&mut network, 0);
    settle_at(&mut network, 0, NEW);
    network.announce_peer(0);
    network.run_for(Duration::from_secs(2));
    assert_eq!(matches_at(&network, udp(NEW, 7410)), 2);
}

#[test]
fn the_others_follow_over_the_numbers_that_were_left_out_for_one() {
    let mut network = pair();
    let other = network.add(super::network::config(1));
    network.blocked.extend([(udp(OLD, 7410), other), (udp(NEW, 7410), other)]);
    network.add_reader(other, QosSet::reader());
    network.start(other);
    network.run_for(Duration::from_secs(1));
    settle_at(&mut network, 0, NEW);
    network.announce_peer(0);
    network.run_for(Duration::from_secs(2));
    let known = network.nodes[other].participant.remote_endpoints().count();
    assert_in_step(&mut network, 0);
    assert_eq!(network.nodes[other].participant.remote_endpoints().count(), known + 1);
    // Who comes later gets the whole history.
    let late = network.add(super::network::config(2));
    network.start(late);
    network.run_for(Duration::from_secs(1));
    assert_eq!(network.nodes[late].participant.remote_endpoints().count(), known + 2);
}

#[test]
fn r8_who_claims_and_proves_to_be_another_products_participant_changes_nothing_while_that_answers() {
    let mut network = pair();
    let commands = network.nodes[0].commands.len();
    let (knew, changes) = (network.peers[0].expected, network.peers[0].changes);
    // It knows what the victim knows, and answers at an address of its own.
    let attacker = Peer { expected: knew, ..Peer::new(prefix(9), udp(ATTACKER, 7410)) };
    network.add_peer(attacker);
    for _ in 0..60 {
        network.announce_peer(1);
        network.run_for(Duration::from_millis(500));
    }
    assert!(network.peers[1].expected[0] > knew[0] + 1, "it has proven its address");
    assert_eq!(network.nodes[0].commands.len(), commands);
    assert_eq!((network.peers[0].farewells, network.peers[0].changes), (0, changes));
    assert_in_step(&mut network, 0);
    // As soon as the victim does not answer, it is where it is claimed to be.
    network.peers.remove(0);
    network.announce_peer(0);
    network.run_for(Duration::from_secs(2));
    assert_eq!(matches_at(&network, udp(ATTACKER, 7410)), 1);
}

#[test]
fn r8_a_claim_of_another_address_that_is_a_participants_too_costs_it_nothing() {
    let mut network = pair();
    network.peers[0].also_at = Some(udp(NEW, 7410));
    let commands = network.nodes[0].commands.len();
    for round in 0..200 {
        let data = ParticipantData {
            meta_unicast: vec![udp(NEW, 7410)],
            default_unicast: vec![udp(NEW, 7410)],
            name: format!("ever new {round}"),
            ..network.peers[0].data()
        };
        let claim = announcement(&data, GuidPrefix::UNKNOWN);
        network.inject(udp(ATTACKER, 7410), udp("10.0.0.1", 7410), &claim);
        network.run_for(Duration::from_millis(500));
        network.announce_peer(0);
    }
    assert_eq!(network.peers[0].farewells, 0, "nobody told it that we leave");
    let moved = network.nodes[0].commands[commands..].iter().any(
        |(_, it)| matches!(it, Command::MatchReader { reader, .. } if reader.locators != [udp(OLD, 7410)]),
    );
    assert!(!moved && !is_unmatched(&network));
    assert_in_step(&mut network, 0);
}

#[test]
fn another_products_participant_behind_a_nat_that_forgot_it_is_heard_again() {
    let mut network = pair();
    let outside = udp("192.0.2.1", 40_000);
    network.peers[0].from = outside;
    network.announce_peer(0);
    network.run_for(Duration::from_millis(300));
    let heard = |command: &Command| {
        matches!(command, Command::MatchReader { reader, .. }
            if reader.locators == [udp(OLD, 7410)] && reader.sources.admit(&outside))
    };
    assert_eq!(network.count(0, heard), 1, "what its reader says is believed");
    assert!(!is_unmatched(&network) && network.peers[0].farewells == 0);
    // What it says elsewhere of itself counts, too.
    let refused = network.drops(0, DropReason::SpoofSuspected);
    network.announce_peer(0);
    network.run_for(Duration::from_millis(300));
    assert_eq!(network.drops(0, DropReason::SpoofSuspected), refused);
    assert_in_step(&mut network, 0);
}

#[test]
fn who_was_not_told_everything_when_it_moved_passes_over_nothing() {
    let mut network = pair();
    let knew = network.peers[0].expected;
    // A change is on its way to where it is no more.
    settle_at(&mut network, 0, NEW);
    network.add_endpoint(0, EntityId::user_writer(77, true), "Circle", QosSet::writer());
    network.run_for(Duration::from_millis(100));
    network.announce_peer(0);
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.peers[0].expected, knew);
    // Its lease ends, and both begin anew.
    for _ in 0..40 {
        network.run_for(Duration::from_secs(5));
        network.announce_peer(0);
    }
    assert_eq!(matches_at(&network, udp(NEW, 7410)), 0, "its endpoints were forgotten with it");
    assert_eq!((network.peers[0].farewells, network.peers[0].changes), (1, 5), "everything again");
}

/// Our host has another address, which the driver sees in two steps.
fn move_ours(network: &mut Network, address: &str) {
    let mut none = super::network::locators(address);
    (none.meta_unicast, none.user_unicast, none.own_addresses) = (Vec::new(), Vec::new(), Vec::new());
    network.call(0, |it, now, out| it.set_locators(now, none, out));
    network.run_for(Duration::from_secs(3));
    let some = super::network::locators(address);
    network.nodes[0].address = some.meta_unicast[0];
    network.call(0, |it, now, out| it.set_locators(now, some, out));
}

/// The other announces itself, and what it says besides gets lost.
fn announce_anyway(network: &mut Network) {
    let blocked = std::mem::take(&mut network.blocked);
    network.announce_peer(0);
    network.blocked = blocked;
}

#[test]
fn who_answers_to_where_we_were_though_it_was_not_told_that_we_left_begins_anew() {
    let mut network = pair();
    // Nothing reaches it for a while, neither the probes nor that we leave.
    settle_at(&mut network, 0, "10.0.0.99");
    move_ours(&mut network, "10.0.0.77");
    network.run_for(Duration::from_secs(2));
    assert!(is_unmatched(&network));
    settle_at(&mut network, 0, OLD);
    network.blocked.push((udp(OLD, 7410), 0));
    assert_eq!(network.peers[0].farewells, 0);
    for _ in 0..5 {
        announce_anyway(&mut network);
        network.run_for(Duration::from_secs(1));
    }
    assert_eq!(network.peers[0].farewells, 1, "once");
    network.blocked.clear();
    network.announce_peer(0);
    network.run_for(Duration::from_secs(1));
    assert!(network.nodes[0].participant.remote_participants().next().is_some_and(|it| it.proven));
}

#[test]
fn another_product_that_sends_to_the_address_we_had_begins_anew_and_one_that_follows_us_does_not() {
    for follows in [true, false] {
        let mut network = pair();
        move_ours(&mut network, "10.0.0.1");
        network.run_for(Duration::from_secs(3));
        assert!(!is_unmatched(&network), "the address came back");
        if !follows {
            network.blocked.push((udp(OLD, 7410), 0));
        }
        move_ours(&mut network, "10.0.0.77");
        // What it says to everyone arrives, and is no answer.
        for _ in 0..20 {
            announce_anyway(&mut network);
            network.run_for(Duration::from_millis(100));
        }
        assert_eq!(is_unmatched(&network), !follows);
        assert_eq!(network.peers[0].farewells, usize::from(!follows));
        // It has forgotten us, hears of us again, and where we are.
        network.blocked.clear();
        network.announce_peer(0);
        network.run_for(Duration::from_secs(1));
        let ours = network.nodes[0].participant.remote_participants().next().expect("it is found");
        assert!(ours.proven);
        assert_eq!(network.peers[0].changes, if follows { 2 } else { 4 }, "everything again");
    }
}

#[test]
fn two_of_ours_meet_and_stay_though_nothing_comes_back_by_the_source_that_one_of_them_seems_to_have() {
    let mut network = Network::new();
    for node in 0..2 {
        network.add(super::network::config(node));
        network.add_writer(node, QosSet::writer());
        network.add_reader(node, QosSet::reader());
    }
    network.nodes[1].source = Some(udp("192.0.2.1", 40_000));
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(1));
    assert!(network.is_converged(2));
    // The NAT forgets it, and makes another address of its own.
    network.nodes[1].source = Some(udp("192.0.2.2", 40_000));
    let rebound = network.now;
    network.run_for(Duration::from_secs(4));
    let heard = |command: &Command| matches!(command, Command::MatchReader { reader, .. } if reader.sources.admit(&udp("192.0.2.2", 1)));
    let at = network.first(0, heard).expect("what its reader says is believed");
    assert!(at - rebound < 3_500_000_000, "with its next announcement");
    network.run_for(Duration::from_secs(30));
    assert!(network.is_converged(2) && !is_unmatched(&network));
}
