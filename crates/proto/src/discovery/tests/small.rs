//! Stacks for microcontrollers: they read what they have room for, and of that what they know.

use core::net::IpAddr;

use super::network::{Network, READER, WRITER, config, group, locators, prefix, udp};
use super::peer::{Peer, Told};
use super::types::{SHAPE, described, typed};
use crate::discovery::builtin::EndpointData;
use crate::discovery::{LocalLocators, ParticipantConfig, ProcessData};
use crate::guid::{EntityId, Guid};
use crate::locator::Locator;
use crate::outbox::Event;
use crate::qos::QosSet;
use crate::time::Duration;
use crate::vendor::PLAINSONG;
use crate::wire::ParameterListView;
use crate::wire::param::pid;

/// What embeddedRTPS (revision 2932c64) takes in of others. `interop/golden` has what it says itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Small {
    pub(super) knows_us: bool,
    /// The endpoints it knows, and where it would send to: nowhere that is of use without a locator of their
    /// own.
    endpoints: Vec<(Guid, Option<Locator>)>,
}

/// Octets it has room for.
const PARTICIPANT_BYTES_MAX: usize = 400;
const ENDPOINT_BYTES_MAX: usize = 600;
/// Who announces itself with anything else is not taken over.
const PARTICIPANT_PARAMETERS: [u16; 15] = [
    pid::PAD,
    pid::PROTOCOL_VERSION,
    pid::VENDOR_ID,
    pid::EXPECTS_INLINE_QOS,
    pid::PARTICIPANT_GUID,
    pid::METATRAFFIC_MULTICAST_LOCATOR,
    pid::METATRAFFIC_UNICAST_LOCATOR,
    pid::DEFAULT_UNICAST_LOCATOR,
    pid::DEFAULT_MULTICAST_LOCATOR,
    pid::PARTICIPANT_LEASE_DURATION,
    pid::BUILTIN_ENDPOINT_SET,
    pid::ENTITY_NAME,
    pid::PROPERTY_LIST,
    pid::USER_DATA,
    pid::KEY_HASH,
];

impl Small {
    pub(super) fn hear_participant(&mut self, payload: &[u8]) {
        let (list, _) = ParameterListView::parse(&payload[4..], true).unwrap();
        let is_known = list.parameters().all(|it| PARTICIPANT_PARAMETERS.contains(&it.id));
        self.knows_us |= is_known && payload.len() <= PARTICIPANT_BYTES_MAX;
    }

    pub(super) fn hear_endpoint(&mut self, told: &Told) {
        // It does not look for inline QoS, and takes them for the beginning of the payload.
        if told.has_inline_qos || told.payload.len() > ENDPOINT_BYTES_MAX {
            return;
        }
        let Ok(data) = EndpointData::decode(&told.payload, PLAINSONG) else { return };
        let near = |locator: &&Locator| matches!(locator.ip(), Some(IpAddr::V4(ip)) if ip.octets()[..3] == [10, 0, 0]);
        let place = data.unicast.iter().rfind(near).copied();
        self.endpoints.retain(|(guid, _)| *guid != data.guid);
        self.endpoints.push((data.guid, place));
    }
}

/// A participant with a typed writer and reader, an address of each family, and much to tell to tools; and a
/// small peer.
fn network() -> Network {
    let mut network = Network::new();
    let mut locators = locators("10.0.0.1");
    locators.meta_unicast.push(udp("2001:db8::1", 7410));
    locators.user_unicast.push(udp("2001:db8::1", 7411));
    let process =
        ProcessData { host: "h".repeat(100), user: "u".repeat(100), executable: "e".repeat(100), id: 7 };
    network.add(ParticipantConfig { locators, process, ..config(0) });
    let writer = typed(0, WRITER, QosSet::writer(), &described(SHAPE));
    let reader = typed(0, READER, QosSet::reader(), &described(SHAPE));
    for endpoint in [writer, reader] {
        network.call(0, |participant, now, out| participant.add_endpoint(now, endpoint, out)).unwrap();
    }
    network.start(0);
    network.run_for(Duration::from_secs(10));
    network.add_peer(Peer { small: Some(Small::default()), ..Peer::new(prefix(9), udp("10.0.0.9", 7410)) });
    network
}

fn known(network: &Network) -> Vec<(Guid, Option<Locator>)> {
    network.peers[0].small.as_ref().unwrap().endpoints.clone()
}

fn ours(ip: &str) -> Vec<(Guid, Option<Locator>)> {
    [WRITER, READER].map(|entity| (prefix(0).entity(entity), Some(udp(ip, 7411)))).into()
}

#[test]
fn a_stack_that_reads_little_is_found_and_knows_where_our_endpoints_are() {
    let mut network = network();
    network.announce_peer(0);
    network.run_for(Duration::from_millis(100));
    assert!(network.nodes[0].participant.remote_participants().any(|remote| remote.proven));
    assert_eq!(known(&network), ours("10.0.0.1"));
}

#[test]
fn a_stack_that_reads_little_hears_that_we_moved_and_what_comes_later() {
    let mut network = network();
    network.announce_peer(0);
    network.run_for(Duration::from_millis(100));
    let moved = LocalLocators { user_unicast: vec![udp("10.0.0.7", 7411)], ..locators("10.0.0.1") };
    network.call(0, |participant, now, out| participant.set_locators(now, moved, out));
    network.run_for(Duration::from_millis(100));
    assert_eq!(known(&network), ours("10.0.0.7"));
    let later = EntityId::user_writer(5, true);
    network.add_endpoint(0, later, "Circle", QosSet::writer());
    network.run_for(Duration::from_millis(100));
    assert_eq!(known(&network).last(), Some(&(prefix(0).entity(later), Some(udp("10.0.0.7", 7411)))));
}

#[test]
fn a_stack_that_reads_little_hears_of_us_as_we_start_though_it_says_nothing() {
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    network.start(1);
    network.run_for(Duration::from_secs(5));
    network.capture = Some(Vec::new());
    network.start(0);
    network.run_for(Duration::from_millis(200));
    let mut small = Small::default();
    for (_, to, bytes) in
        network.capture.as_ref().unwrap().iter().filter(|(from, ..)| *from == udp("10.0.0.1", 7410))
    {
        let told = super::peer::dissect(bytes).data;
        let announced = told.iter().filter(|told| *to == group() && told.writer == EntityId::SPDP_WRITER);
        announced.for_each(|told| small.hear_participant(&told.payload));
    }
    assert!(small.knows_us);
    // Who reads the others is not told twice.
    let changed = |(_, event): &&(u64, Event)| matches!(event, Event::ParticipantChanged { .. });
    assert_eq!(network.nodes[1].events.iter().filter(changed).count(), 1);
    assert_eq!(
        network.nodes[1].participant.remote_participants().map(|it| it.name).collect::<Vec<_>>(),
        ["node 0"]
    );
}

#[test]
fn who_knows_default_locators_is_not_told_of_each_endpoints() {
    let mut network = network();
    network.announce_peer(0);
    network.add(config(1));
    network.add_reader(1, QosSet::reader());
    network.capture = Some(Vec::new());
    network.start(1);
    network.run_for(Duration::from_secs(1));
    assert!(!network.matches(1).is_empty());
    let to_kin = |(from, to, _): &&(Locator, Locator, Vec<u8>)| {
        *from == udp("10.0.0.1", 7410) && *to == udp("10.0.0.2", 7410)
    };
    let captured = network.capture.unwrap();
    for (_, _, bytes) in captured.iter().filter(to_kin) {
        for told in
            super::peer::dissect(bytes).data.iter().filter(|told| told.writer != EntityId::SPDP_WRITER)
        {
            assert!(EndpointData::decode(&told.payload, PLAINSONG).is_ok_and(|data| data.unicast.is_empty()));
            assert!(!told.has_inline_qos);
        }
    }
}

#[test]
fn a_stack_that_cannot_name_the_number_of_a_challenge_is_told_of_once() {
    let mut network = network();
    network.peers[0].small = None;
    // As in mROS 2 (embeddedRTPS de70e01): it asks for the first change, whatever a HEARTBEAT says is there.
    network.peers[0].wants_the_first = true;
    for _ in 0..30 {
        network.announce_peer(0);
        network.run_for(Duration::from_secs(1));
    }
    let told = |(_, event): &&(u64, Event)| matches!(event, Event::ParticipantUnanswering { .. });
    assert_eq!(network.nodes[0].events.iter().filter(told).count(), 1);
    assert!(network.nodes[0].participant.remote_participants().all(|remote| !remote.proven));
}
