//! One suite that every kind of UDP passes, then sockets, groups and interfaces in namespaces of their own.

#[cfg(target_os = "linux")]
pub(crate) mod hosts;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use super::*;

const SIZES: BufferSizes = BufferSizes { receive_bytes: 4 << 20, send_bytes: 4 << 20 };
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again until `ready`; only a failure takes long.
pub(crate) fn eventually(what: &str, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index % 251) as u8 ^ (bytes % 249) as u8).collect()
}

fn local(ipv4: bool) -> Socket {
    let address: IpAddr = if ipv4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    Socket::bind(SocketAddr::new(address, 0), SIZES).unwrap()
}

fn address_of(socket: &Socket) -> SocketAddr {
    socket.raw.local_addr().unwrap().as_socket().unwrap()
}

fn locator_of(socket: &Socket) -> Locator {
    let address = address_of(socket);
    Locator::udp(address.ip(), address.port())
}

fn leave_nothing_out(_: SocketAddr, _: usize) -> bool {
    false
}

fn refuse_nothing(_: u32, error: &io::Error) {
    panic!("refused: {error}");
}

/// What every kind of UDP does.
macro_rules! conformance {
    ($platform:ident) => {
        mod $platform {
            use super::super::$platform::{Receiver, Sender};
            use super::*;

            /// Receives `count` datagrams.
            fn receive(socket: &Socket, count: usize) -> Vec<(Locator, Vec<u8>)> {
                let (mut receiver, mut all, start) = (Receiver::new(), Vec::new(), Instant::now());
                while all.len() < count {
                    assert!(start.elapsed() < PATIENCE, "{} of {count} arrived", all.len());
                    // Nothing there is an error, too.
                    let _ = receiver.receive(socket, false, |it| all.push((it.from, it.bytes.to_vec())));
                }
                all
            }

            #[test]
            fn every_size_arrives_whole_and_in_order() {
                for ipv4 in [true, false] {
                    let (from, to) = (local(ipv4), local(ipv4));
                    let sizes = [1, 2, 3, 63, 512, 1_455, 1_456, 1_457, 4_096, 16_385, 64_999, 65_000];
                    let datagrams: Vec<_> = sizes.into_iter().map(pattern).collect();
                    let mut sender = Sender::new(0, &refuse_nothing, &leave_nothing_out);
                    for datagram in &datagrams {
                        sender.datagram(datagram.chunks(datagram.len().div_ceil(3)));
                        sender.to(&from, &from, address_of(&to), None);
                    }
                    sender.finish();
                    let arrived = receive(&to, datagrams.len());
                    assert!(arrived.iter().all(|(source, _)| *source == locator_of(&from)));
                    let arrived: Vec<_> = arrived.into_iter().map(|(_, bytes)| bytes).collect();
                    assert!(arrived == datagrams);
                }
            }

            #[test]
            fn datagrams_of_one_length_arrive_one_by_one_and_in_order() {
                for ipv4 in [true, false] {
                    let (from, to) = (local(ipv4), [local(ipv4), local(ipv4)]);
                    // Shorter ones in between, like the last fragment of a sample.
                    let lengths = [vec![1_400; 100], vec![900], vec![1_400; 3], vec![20, 20]].concat();
                    let mut datagrams: Vec<_> = lengths.into_iter().map(pattern).collect();
                    (0..).zip(&mut datagrams).for_each(|(number, datagram)| datagram[0] = number);
                    let mut sender = Sender::new(0x20, &refuse_nothing, &leave_nothing_out);
                    for datagram in &datagrams {
                        sender.datagram(datagram.chunks(500));
                        to.iter().for_each(|to| sender.to(&from, &from, address_of(to), None));
                    }
                    sender.finish();
                    for to in &to {
                        let arrived = receive(to, datagrams.len());
                        let arrived: Vec<_> = arrived.into_iter().map(|(_, bytes)| bytes).collect();
                        assert!(arrived == datagrams);
                    }
                }
            }

            #[test]
            fn one_datagram_reaches_many_destinations() {
                let (from, to): (_, Vec<_>) = (local(true), (0..150).map(|_| local(true)).collect());
                let datagram = pattern(700);
                let mut sender = Sender::new(0, &refuse_nothing, &leave_nothing_out);
                sender.datagram(datagram.chunks(100));
                for to in &to {
                    sender.to(&from, &from, address_of(to), None);
                }
                sender.finish();
                for to in &to {
                    assert_eq!(receive(to, 1)[0].1, datagram);
                }
            }

            #[test]
            fn a_refused_destination_keeps_nothing_from_others() {
                let (from, to) = (local(true), local(true));
                let (small, large) = (pattern(10), pattern(65_600));
                let nowhere = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
                let refused = RefCell::new(Vec::new());
                let note = |interface, error: &io::Error| {
                    refused.borrow_mut().push((interface, error.raw_os_error().unwrap()));
                };
                let mut sender = Sender::new(0, &note, &leave_nothing_out);
                for _ in 0..40 {
                    sender.datagram(small.chunks(4));
                    sender.to(&from, &from, nowhere, None);
                    sender.to(&from, &from, address_of(&to), None);
                    sender.datagram(large.chunks(30_000));
                    sender.to(&from, &from, address_of(&to), None);
                }
                sender.finish();
                assert!(receive(&to, 40).iter().all(|(_, bytes)| *bytes == small));
                let expected = [(0, libc::EINVAL), (0, libc::EMSGSIZE)].repeat(40);
                assert_eq!(*refused.borrow(), expected);
            }
        }
    };
}

conformance!(portable);
#[cfg(target_os = "linux")]
conformance!(linux);

/// Sends `count` datagrams of 1400 octets; how many messages they were for the kernel.
#[cfg(target_os = "linux")]
fn send_alike(from: &Socket, to: &Socket, count: usize) -> usize {
    let datagram = pattern(1_400);
    let mut sender = Sender::new(0, &refuse_nothing, &leave_nothing_out);
    for _ in 0..count {
        sender.datagram(std::iter::once(datagram.as_slice()));
        sender.to(from, from, address_of(to), None);
    }
    let messages = sender.messages();
    sender.finish();
    messages
}

#[cfg(target_os = "linux")]
fn receive_alike(to: &Socket, count: usize) {
    let (mut receiver, mut arrived, datagram) = (Receiver::new(), 0, pattern(1_400));
    eventually("all arrive", || {
        // Nothing there is an error, too.
        let _ = receiver.receive(to, false, |it| {
            assert!(it.bytes == datagram);
            arrived += 1;
        });
        arrived == count
    });
}

#[test]
#[cfg(target_os = "linux")]
fn lone_datagrams_are_offered_one_slot_until_a_flow_begins() {
    let (from, to) = (local(true), local(true));
    let mut receiver = Receiver::new();
    let mut lengths = 1..;
    let mut next = |receiver: &mut Receiver, count: usize| {
        let datagrams: Vec<_> = lengths.by_ref().take(count).map(pattern).collect();
        let mut sender = Sender::new(0, &refuse_nothing, &leave_nothing_out);
        for datagram in &datagrams {
            sender.datagram([&datagram[..]].into_iter());
            sender.to(&from, &from, address_of(&to), None);
        }
        sender.finish();
        let (mut calls, mut arrived) = (0, Vec::new());
        while arrived.len() < count {
            calls += 1;
            receiver.receive(&to, true, |it| arrived.push(it.bytes.to_vec())).unwrap();
        }
        assert!(arrived == datagrams);
        calls
    };
    // Long ones are expected until others came.
    while receiver.offered() < 8 {
        next(&mut receiver, 60);
    }
    let offered: Vec<_> = (0..40).map(|_| (next(&mut receiver, 1), receiver.offered()).1).collect();
    assert_eq!(offered.iter().filter(|offered| **offered == 1).count(), 40 - 7 - 2, "{offered:?}");
    // Each of another length, so that the host does not put them together.
    let calls = next(&mut receiver, 60);
    assert!(calls < 40, "{calls} calls for 60 datagrams");
    assert!(receiver.offered() > 1);
}

/// A slot that begins up to 31 octets behind the kernel's octets, as far as the last twelve bits tell, is
/// filled ten times more slowly by processors with Zen 3 cores; those begin at a page, or at the 45th octet
/// of one.
#[test]
#[cfg(target_os = "linux")]
fn slots_begin_where_no_processor_copies_slowly() {
    let receiver = Receiver::new();
    let offsets: Vec<_> = receiver.slot_offsets().collect();
    assert_eq!(offsets.len(), 8);
    let is_fast = |offset: &usize| [0, 44].iter().all(|source| !(source + 1..source + 32).contains(offset));
    assert!(offsets.iter().all(is_fast), "{offsets:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn long_datagrams_are_offered_one_slot_so_that_few_stay_in_memory() {
    let (from, to) = (local(true), local(true));
    let mut receiver = Receiver::new();
    let mut offered_at_most = |lengths: &[usize], rounds: usize| {
        let mut most = 0;
        for _ in 0..rounds {
            for bytes in lengths {
                let datagram = pattern(*bytes);
                let mut sender = Sender::new(0, &refuse_nothing, &leave_nothing_out);
                sender.datagram([&datagram[..]].into_iter());
                sender.to(&from, &from, address_of(&to), None);
                sender.finish();
            }
            let (mut arrived, sent) = (0, lengths.iter().sum());
            while arrived < sent {
                receiver.receive(&to, true, |it| arrived += it.bytes.len()).unwrap();
                most = most.max(receiver.offered());
            }
        }
        (most, receiver.offered())
    };
    assert_eq!(offered_at_most(&[60_000; 4], 20).0, 1, "they are long");
    assert_eq!(offered_at_most(&[1_000; 4], 200).1, 8, "once the long ones are forgotten");
    assert_eq!(offered_at_most(&[60_000; 4], 20).1, 1);
    let mut with_heartbeats = [60; 20];
    with_heartbeats[0] = 60_000;
    assert_eq!(offered_at_most(&with_heartbeats, 20).0, 1, "HEARTBEATs between them change nothing");
}

#[test]
#[cfg(target_os = "linux")]
fn the_host_cuts_datagrams_of_one_length_from_one_piece() {
    let (from, to) = (local(true), local(true));
    assert_eq!(send_alike(&from, &to, 46), 1, "64 KiB in one message");
    receive_alike(&to, 46);
    assert_eq!(send_alike(&from, &to, 100), 3);
    receive_alike(&to, 100);
    assert_eq!(from.offload.uncut(), 0);
}

/// On such an interface the host must not cut datagrams of that length, though it can.
#[test]
#[cfg(target_os = "linux")]
fn what_the_host_does_not_cut_goes_one_by_one() {
    const NAME: &str = "transport::udp::tests::what_the_host_does_not_cut_goes_one_by_one";
    if !hosts::in_namespace(NAME, "ip link set lo mtu 1280 up") {
        return;
    }
    let (from, to) = (local(true), local(true));
    assert_eq!(send_alike(&from, &to, 12), 1);
    receive_alike(&to, 12);
    assert_eq!(from.offload.uncut(), 1);
    assert_eq!(send_alike(&from, &to, 12), 12, "it is not tried again");
    receive_alike(&to, 12);
    assert_eq!(from.offload.uncut(), 1);
}

/// What a transport tells of where it is.
fn locators(transport: &Udp) -> LocalLocators {
    let mut told = LocalLocators::default();
    transport.locators(&mut told);
    told
}

fn loopback_config() -> Config {
    Config { interfaces: Some(vec!["lo".to_owned()]), ..Config::default() }
}

#[test]
fn transports_of_one_host_take_different_well_known_ports() {
    let config = Config { multicast: false, ..loopback_config() };
    let (first, second) = (Udp::open(8, &config).unwrap(), Udp::open(8, &config).unwrap());
    let ports = |transport: &Udp| transport.families.iter().map(|it| it.meta.port).collect::<Vec<_>>();
    assert!(ports(&first).iter().all(|port| *port >= ports::meta_unicast(8, 0)));
    assert!(ports(&first).iter().all(|port| !ports(&second).contains(port)));
    let told = locators(&first);
    assert_eq!(told.meta_unicast[0].ip(), Some(Ipv4Addr::LOCALHOST.into()));
    assert_eq!(told.user_unicast[0].port, told.meta_unicast[0].port + 1);
    assert!(told.meta_multicast.is_empty());
    assert!(told.scan.contains(&locators(&second).meta_unicast[0]), "found by the scan");
}

#[test]
fn beyond_the_well_known_ports_the_host_chooses() {
    let config = Config { multicast: false, ipv6: Use::Off, ..loopback_config() };
    let all: Vec<_> = (0..123).map(|_| Udp::open(9, &config).unwrap()).collect();
    let ports: BTreeSet<_> = all.iter().map(|transport| locators(transport).meta_unicast[0].port).collect();
    assert_eq!(ports.len(), all.len());
    let beyond = u32::from(ports::meta_unicast(9, ports::PARTICIPANT_INDEX_MAX));
    assert!(ports.iter().filter(|port| **port > beyond).count() >= 3);
}

#[test]
fn configured_peers_are_asked_at_their_port_or_at_the_first_ten() {
    let peers = ["127.0.0.1:4711", "127.0.0.2"];
    let peers = peers.into_iter().map(|text| Peer::parse(text).unwrap()).collect();
    let config = Config { peers, multicast: false, ..loopback_config() };
    let told = locators(&Udp::open(8, &config).unwrap()).announce_to;
    assert_eq!(told.len(), 11);
    assert_eq!(told[0], Locator::udp(Ipv4Addr::LOCALHOST.into(), 4711));
    assert_eq!(told[10], Locator::udp(Ipv4Addr::new(127, 0, 0, 2).into(), ports::meta_unicast(8, 9)));
}
