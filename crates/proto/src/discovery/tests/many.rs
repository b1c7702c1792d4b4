//! Many participants on one host that is slower than they would like.

use super::network::{Network, SECOND, config, group, udp};
use crate::discovery::{Command, ParticipantConfig};
use crate::qos::QosSet;
use crate::time::Duration;

/// What one core takes to send a datagram and to receive it in another process.
const WORK: u64 = 10_000;

/// A participant of the host that all share.
fn neighbour(index: usize) -> ParticipantConfig {
    let mut config = config(index);
    config.locators.meta_unicast = vec![udp("10.0.0.1", 7_410 + 2 * index as u16)];
    config.locators.user_unicast = vec![udp("10.0.0.1", 7_411 + 2 * index as u16)];
    config.locators.own_addresses = vec![[10, 0, 0, 1].into()];
    config
}

/// Participants of one host that start together: the first half write, the others read.
fn many_of_a_host(nodes: usize) -> Network {
    let mut network = Network::new();
    network.work = WORK;
    for index in 0..nodes {
        network.add(neighbour(index));
        if index < nodes / 2 {
            network.add_writer(index, QosSet::writer());
        } else {
            network.add_reader(index, QosSet::reader());
        }
    }
    for index in 0..nodes {
        network.start(index);
    }
    network
}

fn is_matched(network: &Network) -> bool {
    let nodes = network.nodes.len();
    (0..nodes).all(|node| network.matches(node).len() == nodes / 2)
}

/// How long they take to match, and how many datagrams they send meanwhile.
fn matching(nodes: usize) -> (Duration, u64) {
    let mut network = many_of_a_host(nodes);
    let start = network.now;
    while !is_matched(&network) {
        network.run_for(Duration::from_millis(10));
        assert!(network.now < start + 60 * SECOND, "{nodes} participants do not match");
    }
    (Duration((network.now - start) as i64), network.datagrams)
}

#[test]
fn sixty_participants_of_a_slow_host_match_without_a_storm_of_challenges() {
    let (_, of_ten) = matching(10);
    let (took, sent) = matching(60);
    // Each is told of each: that many there must be. Nearly half of them repeat what was not answered yet.
    let pairs = |nodes: u64| nodes * (nodes - 1);
    assert!(of_ten <= 6 * pairs(10), "{of_ten} datagrams of ten participants");
    assert!(sent <= 8 * pairs(60), "{sent} datagrams of sixty participants");
    assert!(took <= Duration::from_millis(300), "{took:?}");
}

/// Many participants of a host that have long matched.
fn calm(nodes: usize) -> Network {
    let mut network = many_of_a_host(nodes);
    network.run_for(Duration::from_secs(10));
    assert!(is_matched(&network));
    network
}

/// What all send within a minute, and what of it are announcements to everyone.
fn minute(network: &mut Network) -> (usize, usize) {
    network.capture = Some(Vec::new());
    network.run_for(Duration::from_secs(60));
    let sent = network.capture.take().unwrap();
    (sent.len(), sent.iter().filter(|(_, to, _)| *to == group()).count())
}

#[test]
fn a_calm_crowd_announces_itself_more_rarely_and_sends_nothing_else() {
    let (sent, announced) = minute(&mut calm(20));
    // One of each in three seconds.
    assert!((380..=420).contains(&announced) && sent == announced, "{announced} of {sent}");

    let mut network = calm(40);
    let (sent, announced) = minute(&mut network);
    assert!((380..=420).contains(&announced) && sent == announced, "{announced} of {sent}");
    assert!(is_matched(&network));
    let unmatched = |command: &Command| matches!(command, Command::UnmatchReader { .. });
    assert!((0..40).all(|node| network.first(node, unmatched).is_none()), "no lease ended");
}

#[test]
fn a_crowd_survives_two_lost_announcements_of_three() {
    let mut network = calm(40);
    for _ in 0..4 {
        // The shortest of its intervals twice, and the longest.
        network.loss = 100;
        network.run_for(Duration::from_millis(10_800));
        network.loss = 0;
        network.run_for(Duration::from_millis(6_600));
    }
    assert!(is_matched(&network));
    let unmatched = |command: &Command| matches!(command, Command::UnmatchReader { .. });
    assert!((0..40).all(|node| network.first(node, unmatched).is_none()), "no lease ended");
}

#[test]
fn a_calm_crowd_is_found_at_once_by_neighbours_and_by_others() {
    for config in [neighbour(40), config(40)] {
        let mut network = calm(40);
        let guest = network.add(config);
        network.add_reader(guest, QosSet::reader());
        network.start(guest);
        network.run_for(Duration::from_millis(300));
        assert_eq!(network.matches(guest).len(), 20);
    }
}

#[test]
fn a_crowd_tells_another_host_of_itself_as_often_as_few_do() {
    let mut network = calm(40);
    let guest = network.add(config(40));
    network.start(guest);
    network.run_for(Duration::from_secs(10));
    let (_, announced) = minute(&mut network);
    assert!((41 * 19..=41 * 21).contains(&announced), "{announced}");
}
