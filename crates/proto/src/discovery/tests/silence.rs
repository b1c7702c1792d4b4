//! What is asked of a participant that says nothing any more.

use super::network::{Network, prefix, udp};
use super::peer::{Peer, announcement, dissect};
use crate::discovery::builtin::ParticipantData;
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::time::Duration;

/// ACKNACKs that went to a peer, and their datagrams' octets.
fn asked(network: &mut Network, at: Locator) -> (usize, usize) {
    let sent = network.capture.replace(Vec::new()).unwrap_or_default();
    let asks = sent.iter().filter(|(_, to, bytes)| *to == at && dissect(bytes).acknacks > 0);
    asks.fold((0, 0), |(count, octets), (_, _, bytes)| (count + 1, octets + bytes.len() + 28))
}

#[test]
fn a_participant_that_fell_silent_is_asked_ever_less_and_at_once_when_it_is_heard() {
    for announces_endpoints in [false, true] {
        let mut network = Network::of(1);
        let (at, us) = (udp("10.0.0.9", 7410), udp("10.0.0.1", 7410));
        let mut peer = Peer::new(prefix(9), at);
        let lease_duration = Duration::INFINITE;
        let data = ParticipantData { lease_duration, ..peer.data() };
        network.peers = vec![peer.clone()];
        network.inject(at, us, &announcement(&data, GuidPrefix::UNKNOWN));
        network.run_for(Duration::from_millis(5));
        assert!(network.nodes[0].participant.remote_participants().any(|remote| remote.proven));
        network.peers.clear();
        network.run_for(Duration::from_millis(1));
        if announces_endpoints {
            network.inject(at, us, &peer.heartbeat(EntityId::SEDP_PUBLICATIONS_WRITER, 5));
        }
        network.capture = Some(Vec::new());
        network.run_for(Duration::from_secs(10));
        let (begun, _) = asked(&mut network, at);
        assert!(begun >= 8, "{begun}: a loss or two is soon made up for");
        network.run_for(Duration::from_secs(60));
        let (count, octets) = asked(&mut network, at);
        assert!(octets <= 2_000, "{octets} octets, {count} datagrams");

        network.inject(at, us, &announcement(&data, GuidPrefix::UNKNOWN));
        network.run_for(Duration::from_millis(1));
        assert_eq!(asked(&mut network, at).0, 1, "its readers ask again at once, in one datagram");
        network.run_for(Duration::from_secs(5));
        let (count, _) = asked(&mut network, at);
        assert!(count >= 4, "{count}: at full speed");
    }
}
