//! One suite that every kind of UDP passes, then sockets, groups and interfaces in namespaces of their own.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::wire::Heartbeat;

use super::*;

const SIZES: BufferSizes = BufferSizes { receive_bytes: 4 << 20, send_bytes: 4 << 20 };
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the calling test again in a network namespace of its own, prepared by the shell commands `setup`. True in
/// that second run: the test body is to be executed. Loopback is down until `setup` says otherwise.
pub(crate) fn in_namespace(test: &str, setup: &str) -> bool {
    const INSIDE: &str = "PLAINSONG_TEST_INSIDE";
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        return true;
    }
    let script = format!("set -e\n{setup}\nexec \"$@\"");
    let unshare = |options: &str| {
        let mut command = Command::new("unshare");
        command.args([options, "sh", "-c", &script, "sh"]).env(INSIDE, test);
        command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
        command.output().expect("unshare (util-linux) is needed for this test")
    };
    let output = unshare("-n");
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && told.contains("Operation not permitted") {
        eprintln!("{test}: skipped, only root may make a network namespace");
        return false;
    }
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && ran.contains("1 passed"), "{test} in a namespace:\n{ran}{told}");
    false
}

pub(crate) fn shell(script: &str) {
    let status = Command::new("sh").args(["-ec", script]).status().unwrap();
    assert!(status.success(), "{script}");
}

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

/// What every kind of UDP does.
macro_rules! conformance {
    ($platform:ident) => {
        mod $platform {
            use super::super::$platform::{Receiver, Sender};
            use super::*;

            /// Receives `count` datagrams.
            fn receive(socket: &Socket, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
                let (mut receiver, mut all, start) = (Receiver::new(), Vec::new(), Instant::now());
                while all.len() < count {
                    assert!(start.elapsed() < PATIENCE, "{} of {count} arrived", all.len());
                    if let Ok(some) = receiver.receive(socket, false) {
                        all.extend(some.map(|it| (it.from, it.bytes.to_vec())));
                    }
                }
                all
            }

            fn refuse_nothing(_: u32, error: &io::Error) {
                panic!("refused: {error}");
            }

            #[test]
            fn every_size_arrives_whole_and_in_order() {
                for ipv4 in [true, false] {
                    let (from, to) = (local(ipv4), local(ipv4));
                    let sizes = [1, 2, 3, 63, 512, 1_455, 1_456, 1_457, 4_096, 16_385, 64_999, 65_000];
                    let datagrams: Vec<_> = sizes.into_iter().map(pattern).collect();
                    let mut sender = Sender::new(&refuse_nothing);
                    for datagram in &datagrams {
                        sender.datagram(datagram.chunks(datagram.len().div_ceil(3)));
                        sender.to(&from, address_of(&to), 0);
                    }
                    sender.finish();
                    let arrived = receive(&to, datagrams.len());
                    assert!(arrived.iter().all(|(source, _)| *source == address_of(&from)));
                    let arrived: Vec<_> = arrived.into_iter().map(|(_, bytes)| bytes).collect();
                    assert!(arrived == datagrams);
                }
            }

            #[test]
            fn one_datagram_reaches_many_destinations() {
                let (from, to): (_, Vec<_>) = (local(true), (0..150).map(|_| local(true)).collect());
                let datagram = pattern(700);
                let mut sender = Sender::new(&refuse_nothing);
                sender.datagram(datagram.chunks(100));
                for to in &to {
                    sender.to(&from, address_of(to), 0);
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
                let mut sender = Sender::new(&note);
                for _ in 0..40 {
                    sender.datagram(small.chunks(4));
                    sender.to(&from, nowhere, 0);
                    sender.to(&from, address_of(&to), 0);
                    sender.datagram(large.chunks(30_000));
                    sender.to(&from, address_of(&to), 0);
                }
                sender.finish();
                assert!(receive(&to, 40).iter().all(|(_, bytes)| *bytes == small));
                let expected = [(0, libc::EINVAL), (0, libc::EMSGSIZE)].repeat(40);
                assert_eq!(*refused.borrow(), expected);
            }
        }
    };
}

conformance!(udp);
#[cfg(target_os = "linux")]
conformance!(udp_linux);

fn loopback_config() -> Config {
    Config { interfaces: Some(vec!["lo".to_owned()]), ..Config::default() }
}

/// A transport whose discovery sockets are drained by a thread; what arrives by them is kept.
struct Listening<'a> {
    transport: &'a Transport,
    heard: &'a std::sync::Mutex<Vec<(IpAddr, u32, Vec<u8>)>>,
    changes: &'a std::sync::atomic::AtomicU32,
}

fn listening(config: &Config, body: impl FnOnce(&Listening<'_>)) {
    let transport = Transport::open(7, config).unwrap();
    let (heard, changes) = (std::sync::Mutex::default(), std::sync::atomic::AtomicU32::new(0));
    let listening = Listening { transport: &transport, heard: &heard, changes: &changes };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let note = |it: Received<'_>| {
                heard.lock().unwrap().push((it.from.ip(), it.interface, it.bytes.to_vec()));
            };
            transport.receive_meta(note, || {
                changes.fetch_add(1, Ordering::Relaxed);
            });
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&listening)));
        transport.stop();
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

/// A small message from participant `sender`.
fn message(out: &mut Outbox, sender: u8, to: &[Locator]) {
    let mut message = out.message(GuidPrefix([sender; 12]), to, 1_456);
    let fits = message.heartbeat(&Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SPDP_WRITER,
        first: SequenceNumber::FIRST,
        last: SequenceNumber::FIRST,
        count: 1,
        final_flag: true,
        liveliness: false,
    });
    assert!(fits);
    message.finish();
}

impl Listening<'_> {
    /// Interfaces on which a message of `sender` arrived.
    fn heard_from(&self, sender: u8) -> BTreeSet<u32> {
        let heard = self.heard.lock().unwrap();
        let of_sender = heard.iter().filter(|(_, _, bytes)| bytes.get(8..20) == Some(&[sender; 12]));
        of_sender.map(|(_, interface, _)| *interface).collect()
    }

    fn announce(&self, sender: u8) {
        let mut out = Outbox::new();
        message(&mut out, sender, &self.transport.locators().meta_multicast);
        self.transport.send(&out);
    }
}

#[test]
fn transports_of_one_host_take_different_well_known_ports() {
    let config = Config { multicast: false, ..loopback_config() };
    let (first, second) = (Transport::open(8, &config).unwrap(), Transport::open(8, &config).unwrap());
    let ports = |transport: &Transport| transport.families.iter().map(|it| it.meta.port).collect::<Vec<_>>();
    assert!(ports(&first).iter().all(|port| *port >= ports::meta_unicast(8, 0)));
    assert!(ports(&first).iter().all(|port| !ports(&second).contains(port)));
    let locators = first.locators();
    assert_eq!(locators.meta_unicast[0].ip(), Some(Ipv4Addr::LOCALHOST.into()));
    assert_eq!(locators.user_unicast[0].port, locators.meta_unicast[0].port + 1);
    assert!(locators.meta_multicast.is_empty());
    assert!(locators.announce_to.contains(&second.locators().meta_unicast[0]), "found by the scan");
}

#[test]
fn beyond_the_well_known_ports_the_host_chooses() {
    let config = Config { multicast: false, ipv6: Use::Off, ..loopback_config() };
    let all: Vec<_> = (0..123).map(|_| Transport::open(9, &config).unwrap()).collect();
    let ports: BTreeSet<_> = all.iter().map(|transport| transport.locators().meta_unicast[0].port).collect();
    assert_eq!(ports.len(), all.len());
    let beyond = u32::from(ports::meta_unicast(9, ports::PARTICIPANT_INDEX_MAX));
    assert!(ports.iter().filter(|port| **port > beyond).count() >= 3);
}

#[test]
fn configured_peers_are_asked_at_their_port_or_at_the_first_ten() {
    let peers = ["127.0.0.1:4711", "127.0.0.2"];
    let peers = peers.into_iter().map(|text| Peer::parse(text).unwrap()).collect();
    let config = Config { peers, multicast: false, ..loopback_config() };
    let locators = Transport::open(8, &config).unwrap().locators();
    let (told, _scan) = locators.announce_to.split_at(11);
    assert_eq!(told[0], Locator::udp(Ipv4Addr::LOCALHOST.into(), 4711));
    assert_eq!(told[10], Locator::udp(Ipv4Addr::new(127, 0, 0, 2).into(), ports::meta_unicast(8, 9)));
}

/// Two transports on one host hear each other by multicast on loopback.
fn loopback_multicast_works() {
    listening(&Config::default(), |first| {
        listening(&Config::default(), |second| {
            eventually("multicast on loopback", || {
                first.announce(1);
                second.announce(2);
                first.heard_from(2).contains(&1) && second.heard_from(1).contains(&1)
            });
            let report = first.transport.report();
            let lo = report.iter().find(|interface| interface.name == "lo").unwrap();
            assert!(lo.unusable.is_none() && lo.multicast_heard > 0);
        });
        assert_eq!(first.transport.locators().meta_unicast.len(), 1, "one loopback address is told");
    });
}

#[test]
fn a_host_with_only_loopback_hears_multicast() {
    const NAME: &str = "transport::tests::a_host_with_only_loopback_hears_multicast";
    if in_namespace(NAME, "ip link set lo up; ip link set lo multicast on; ip route add 224.0.0.0/4 dev lo") {
        loopback_multicast_works();
    }
}

#[test]
fn loopback_needs_neither_the_multicast_flag_nor_a_route() {
    const NAME: &str = "transport::tests::loopback_needs_neither_the_multicast_flag_nor_a_route";
    if in_namespace(NAME, "ip link set lo up") {
        loopback_multicast_works();
    }
}

#[test]
fn a_default_route_over_a_dead_interface_does_not_matter() {
    const NAME: &str = "transport::tests::a_default_route_over_a_dead_interface_does_not_matter";
    let setup =
        "ip link set lo up; ip link add dead type veth peer name other; ip addr add 10.9.0.1/24 dev dead
        ip link set dead up; ip route add default via 10.9.0.2 dev dead";
    if in_namespace(NAME, setup) {
        loopback_multicast_works();
        let report = Transport::open(7, &Config::default()).unwrap().report();
        let dead = report.iter().find(|interface| interface.name == "dead").unwrap();
        assert_eq!(dead.unusable, Some("it is down"));
    }
}

#[test]
fn a_host_without_ipv6_works() {
    const NAME: &str = "transport::tests::a_host_without_ipv6_works";
    if in_namespace(NAME, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1; ip link set lo up") {
        loopback_multicast_works();
        let transport = Transport::open(7, &Config::default()).unwrap();
        assert!(transport.locators().meta_unicast.iter().all(|it| it.kind == Locator::KIND_UDP_V4));
    }
}

#[test]
fn ipv6_groups_are_heard_where_the_host_has_ipv6() {
    const NAME: &str = "transport::tests::ipv6_groups_are_heard_where_the_host_has_ipv6";
    let setup = "ip link set lo up; ip link set lo multicast on; ip link add one type veth peer name two
        ip addr add fd00::1/64 dev one nodad; ip link set one up; ip link set two up";
    if in_namespace(NAME, setup) {
        listening(&Config::default(), |first| {
            let v6: IpAddr = "fd00::1".parse().unwrap();
            let told = first.transport.locators().meta_unicast;
            assert!(told.iter().any(|locator| locator.ip() == Some(v6)));
            assert!(told.iter().all(|locator| !locator.ip().unwrap().is_loopback()));
            eventually("the IPv6 group on a veth", || {
                first.announce(1);
                let heard = first.heard.lock().unwrap();
                heard.iter().any(|(from, interface, _)| from.is_ipv6() && *interface != 1)
            });
        });
    }
}

#[test]
fn an_interface_that_comes_late_is_used_without_a_restart() {
    const NAME: &str = "transport::tests::an_interface_that_comes_late_is_used_without_a_restart";
    if in_namespace(NAME, "ip link set lo up") {
        listening(&Config::default(), |first| {
            let address: IpAddr = Ipv4Addr::new(10, 9, 0, 1).into();
            let told = || {
                let locators = first.transport.locators();
                locators.meta_unicast.iter().any(|locator| locator.ip() == Some(address))
            };
            assert!(!told());
            shell(
                "ip link add late type veth peer name other; ip addr add 10.9.0.1/24 dev late
                 ip link set late up; ip link set other up",
            );
            eventually("the address is told", told);
            assert!(first.changes.load(Ordering::Relaxed) > 0);
            eventually("the group was joined there", || {
                first.announce(1);
                first.heard_from(1).len() == 2
            });
            shell("ip link set late down");
            eventually("the address is taken back", || !told());
        });
    }
}

#[test]
fn interfaces_that_were_not_selected_are_neither_told_nor_heard() {
    const NAME: &str = "transport::tests::interfaces_that_were_not_selected_are_neither_told_nor_heard";
    let setup = "ip link set lo up
        for n in 1 2; do ip link add p$n type veth peer name q$n; ip addr add 10.9.$n.1/24 dev p$n
        ip link set p$n up; ip link set q$n up; done";
    if in_namespace(NAME, setup) {
        let config = Config { interfaces: Some(vec!["10.9.2.1".to_owned()]), ..Config::default() };
        listening(&config, |first| {
            let told: Vec<_> = first.transport.locators().meta_unicast.iter().map(Locator::ip).collect();
            assert_eq!(told, [Some(Ipv4Addr::new(10, 9, 2, 1).into())]);
            eventually("lo and p2", || {
                first.announce(1);
                first.heard_from(1).len() == 2
            });
            let stranger = Transport::open(7, &Config::default()).unwrap();
            let mut out = Outbox::new();
            message(&mut out, 3, &stranger.locators().meta_multicast);
            stranger.send(&out);
            eventually("the stranger", || !first.heard_from(3).is_empty());
            assert_eq!(first.heard_from(3).len(), 2);
        });
    }
}
