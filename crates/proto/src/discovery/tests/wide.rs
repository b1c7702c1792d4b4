//! Networks with more hosts than a few: who answers a newcomer when, and who is announced to by unicast.

use super::network::{Network, config, group, locators};
use crate::qos::QosSet;
use crate::time::Duration;

/// Participants of as many hosts that have matched.
fn calm(nodes: usize) -> Network {
    let mut network = Network::of(nodes);
    network.run_for(Duration::from_secs(10));
    network
}

#[test]
fn a_newcomer_is_answered_by_few_at_a_time_and_by_all_soon() {
    const NODES: usize = 60;
    let mut network = calm(NODES);
    network.add(config(NODES));
    network.add_reader(NODES, QosSet::reader());
    network.start(NODES);
    let mut most = 0;
    // A tenth of a millisecond for each that they know.
    for _ in 0..6 {
        network.capture = Some(Vec::new());
        network.run_for(Duration::from_millis(1));
        let sent = network.capture.take().unwrap();
        let address = network.nodes[NODES].address;
        let mut first: Vec<_> =
            sent.iter().filter(|(_, to, _)| *to == address).map(|(from, ..)| *from).collect();
        first.sort_unstable();
        first.dedup();
        most = most.max(first.len());
    }
    assert!(most <= NODES / 2, "{most} of {NODES} answer within a millisecond");
    network.run_for(Duration::from_millis(10));
    assert_eq!(network.matches(NODES).len(), NODES);
}

/// Two hosts on a network of 16 bits, or one of which nothing is known.
fn pair(second: &str, prefix_length: Option<u8>) -> Network {
    let mut network = Network::new();
    for (index, ip) in ["10.0.0.1", second].into_iter().enumerate() {
        let mut config = config(index);
        config.locators = locators(ip);
        config.locators.networks.extend(prefix_length.map(|length| (ip.parse().unwrap(), length)));
        network.add(config);
        network.start(index);
    }
    network
}

/// What they send each other within a minute by unicast, when all is quiet.
fn addressed(network: &mut Network) -> usize {
    network.run_for(Duration::from_secs(40));
    network.capture = Some(Vec::new());
    network.run_for(Duration::from_secs(60));
    let sent = network.capture.take().unwrap();
    sent.iter().filter(|(_, to, _)| *to != group()).count()
}

#[test]
fn who_is_heard_by_the_group_on_a_wide_network_needs_no_announcements_of_its_own() {
    assert_eq!(addressed(&mut pair("10.0.9.1", Some(16))), 0);
    assert!(addressed(&mut pair("10.0.9.1", None)) > 10, "nothing tells that the group leads there");
}

#[test]
fn whom_the_group_does_not_reach_asks_the_others_before_their_leases_end() {
    for second in ["10.0.0.9", "10.0.9.1"] {
        let mut network = pair(second, Some(16));
        network.nodes[0].hears_multicast = false;
        let sent = addressed(&mut network);
        // A question and its answer each three quarters of the lease; on the wide network besides
        // announcements of whom nothing reaches by the group.
        assert!((6..=30).contains(&sent), "{sent} datagrams, {second}");
        let changes = network.nodes[0].events.len();
        assert_eq!((network.nodes[0].participant.remote_participants().count(), changes), (1, 1), "{second}");
    }
}
