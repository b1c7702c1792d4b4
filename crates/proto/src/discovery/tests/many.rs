//! Many participants on one host that is slower than they would like.

use super::network::{Network, SECOND, config, udp};
use crate::qos::QosSet;
use crate::time::Duration;

/// What one core takes to send a datagram and to receive it in another process.
const WORK: u64 = 10_000;

/// Participants of one host that start together: the first half write, the others read.
fn crowd(nodes: usize) -> Network {
    let mut network = Network::new();
    network.work = WORK;
    for index in 0..nodes {
        let mut config = config(index);
        config.locators.meta_unicast = vec![udp("10.0.0.1", 7_410 + 2 * index as u16)];
        config.locators.user_unicast = vec![udp("10.0.0.1", 7_411 + 2 * index as u16)];
        config.locators.own_addresses = vec![[10, 0, 0, 1].into()];
        network.add(config);
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
    let mut network = crowd(nodes);
    let start = network.now;
    while !is_matched(&network) {
        network.run_for(Duration::from_millis(10));
        assert!(network.now < start + 60 * SECOND, "{nodes} participants do not match");
    }
    (Duration((network.now - start) as i64), network.datagrams)
}

#[test]
fn sixty_participants_of_a_slow_host_match_without_a_storm_of_questions() {
    let (_, of_ten) = matching(10);
    let (took, sent) = matching(60);
    // Each is told of each: that many there must be. Nearly half of them repeat what was not answered yet.
    let pairs = |nodes: u64| nodes * (nodes - 1);
    assert!(of_ten <= 5 * pairs(10), "{of_ten} datagrams of ten participants");
    assert!(sent <= 8 * pairs(60), "{sent} datagrams of sixty participants");
    assert!(took <= Duration::from_millis(300), "{took:?}");
}
