//! Transports on hosts of many kinds: each test runs in a network namespace of its own.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32};

use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::wire::Heartbeat;

use super::*;

/// Runs the calling test again in a network namespace of its own, prepared by the shell commands `setup`.
/// True in that second run: the test body is to be executed. Loopback is down until `setup` says otherwise.
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
    let is_refused = |output: &Output| {
        !output.status.success()
            && String::from_utf8_lossy(&output.stderr).contains("Operation not permitted")
    };
    let mut output = unshare("-n");
    if is_refused(&output) {
        // As root of a user namespace, where the kernel lets users make one.
        output = unshare("-rn");
    }
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!is_refused(&output), "{test}: nobody but root may make a network namespace here: {told}");
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && ran.contains("1 passed"), "{test} in a namespace:\n{ran}{told}");
    false
}

pub(crate) fn shell(script: &str) {
    let status = Command::new("sh").args(["-ec", script]).status().unwrap();
    assert!(status.success(), "{script}");
}

/// A transport whose discovery sockets are drained by a thread; what arrives by them is kept.
struct Listening<'a> {
    transport: &'a Udp,
    heard: &'a Mutex<Vec<(IpAddr, u32, Vec<u8>)>>,
    changes: &'a AtomicU32,
}

fn listening(config: &Config, body: impl FnOnce(&Listening<'_>)) {
    let transport = Udp::open(7, config).unwrap();
    let (heard, changes) = (Mutex::default(), AtomicU32::new(0));
    let stopped = AtomicBool::new(false);
    let listening = Listening { transport: &transport, heard: &heard, changes: &changes };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let note = |it: Received<'_>| {
                heard.lock().unwrap().push((it.from.ip().unwrap(), it.interface, it.bytes.to_vec()));
            };
            let mut receiver = transport.receiver();
            while !stopped.load(Ordering::Relaxed) {
                let changed = transport.receive(Traffic::Discovery, &mut receiver, true, note);
                changes.fetch_add(u32::from(changed), Ordering::Relaxed);
            }
        });
        let result = catch_unwind(AssertUnwindSafe(|| body(&listening)));
        stopped.store(true, Ordering::Relaxed);
        transport.close();
        if let Err(panic) = result {
            resume_unwind(panic);
        }
    });
}

fn batch(out: &Outbox) -> Batch<'_> {
    Batch { out, traffic_class: 0, recuts: false }
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
        group: None,
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
        message(&mut out, sender, &locators(self.transport).meta_multicast);
        self.transport.send(&batch(&out));
    }
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
            let heard = first.heard.lock().unwrap();
            assert!(heard.iter().all(|(from, ..)| from.is_loopback()), "the source says who it is");
        });
        assert_eq!(locators(first.transport).meta_unicast.len(), 1, "one loopback address is told");
    });
}

#[test]
fn a_host_with_only_loopback_hears_multicast() {
    const NAME: &str = "transport::udp::tests::hosts::a_host_with_only_loopback_hears_multicast";
    if in_namespace(NAME, "ip link set lo up; ip link set lo multicast on; ip route add 224.0.0.0/4 dev lo") {
        loopback_multicast_works();
    }
}

#[test]
fn loopback_needs_neither_the_multicast_flag_nor_a_route() {
    const NAME: &str = "transport::udp::tests::hosts::loopback_needs_neither_the_multicast_flag_nor_a_route";
    if in_namespace(NAME, "ip link set lo up") {
        loopback_multicast_works();
    }
}

/// How many sockets of this namespace listen to the IPv4 discovery group on each interface: the kernel's own
/// word.
fn listeners_of_group() -> Vec<(String, u32)> {
    let table = std::fs::read_to_string("/proc/net/igmp").unwrap();
    let group = format!("{:08X}", u32::from_le_bytes(ports::MULTICAST_V4.octets()));
    let (mut interface, mut listeners) = (String::new(), Vec::new());
    for line in table.lines().skip(1) {
        let mut fields = line.split_whitespace();
        if line.starts_with(char::is_whitespace) {
            if fields.next() == Some(group.as_str()) {
                listeners.push((interface.clone(), fields.next().unwrap().parse().unwrap()));
            }
        } else {
            interface = fields.nth(1).unwrap().to_owned();
        }
    }
    listeners.sort();
    listeners
}

#[test]
fn fact_20_the_group_is_joined_on_every_interface_at_a_shared_port_with_loop_on_and_one_hop() {
    const NAME: &str = "transport::udp::tests::hosts::fact_20_the_group_is_joined_on_every_interface_at_a_shared_port_\
                        with_loop_on_and_one_hop";
    let setup = "ip link set lo up
        for n in 1 2; do ip link add p$n type veth peer name q$n; ip addr add 10.9.$n.1/24 dev p$n
        ip link set p$n up; ip link set q$n up; done";
    if !in_namespace(NAME, setup) {
        return;
    }
    listening(&Config::default(), |first| {
        listening(&Config::default(), |second| {
            for family in &first.transport.families {
                let group = family.multicast.as_ref().expect("two transports share the port");
                assert_eq!(group.port, ports::meta_multicast(7));
                for raw in [&family.meta.raw, &group.raw] {
                    let (looped, hops) = if family.is_ipv4() {
                        (raw.multicast_loop_v4().unwrap(), raw.multicast_ttl_v4().unwrap())
                    } else {
                        (raw.multicast_loop_v6().unwrap(), raw.multicast_hops_v6().unwrap())
                    };
                    assert!(looped && hops == 1);
                }
            }
            let everywhere = ["lo", "p1", "p2"].map(|name| (name.to_owned(), 2));
            eventually("both are joined on all interfaces", || listeners_of_group() == everywhere);
            eventually("one announcement goes out everywhere, and comes back to both", || {
                first.announce(1);
                first.heard_from(1).len() == 3 && second.heard_from(1).len() == 3
            });
        });
    });
}

#[test]
fn a_default_route_over_a_dead_interface_does_not_matter() {
    const NAME: &str = "transport::udp::tests::hosts::a_default_route_over_a_dead_interface_does_not_matter";
    let setup =
        "ip link set lo up; ip link add dead type veth peer name other; ip addr add 10.9.0.1/24 dev dead
        ip link set dead up; ip route add default via 10.9.0.2 dev dead";
    if in_namespace(NAME, setup) {
        loopback_multicast_works();
        let report = Udp::open(7, &Config::default()).unwrap().report();
        let dead = report.iter().find(|interface| interface.name == "dead").unwrap();
        assert_eq!(dead.unusable.as_deref(), Some("it is down"));
    }
}

#[test]
fn a_host_without_ipv6_works() {
    const NAME: &str = "transport::udp::tests::hosts::a_host_without_ipv6_works";
    if in_namespace(NAME, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set lo up") {
        loopback_multicast_works();
        let transport = Udp::open(7, &Config::default()).unwrap();
        assert!(locators(&transport).meta_unicast.iter().all(|it| it.kind == Locator::KIND_UDP_V4));
    }
}

#[test]
fn ipv6_groups_are_heard_where_the_host_has_ipv6() {
    const NAME: &str = "transport::udp::tests::hosts::ipv6_groups_are_heard_where_the_host_has_ipv6";
    let setup = "ip link set lo up; ip link set lo multicast on; ip link add one type veth peer name two
        ip addr add fd00::1/64 dev one nodad; ip link set one up; ip link set two up";
    if in_namespace(NAME, setup) {
        listening(&Config::default(), |first| {
            let v6: IpAddr = "fd00::1".parse().unwrap();
            eventually("the link is up", || {
                let told = locators(first.transport).meta_unicast;
                assert!(told.len() == 1, "one address, or loopback");
                told[0].ip() == Some(v6)
            });
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
    const NAME: &str = "transport::udp::tests::hosts::an_interface_that_comes_late_is_used_without_a_restart";
    if in_namespace(NAME, "ip link set lo up") {
        listening(&Config::default(), |first| {
            let address: IpAddr = Ipv4Addr::new(10, 9, 0, 1).into();
            let told = || {
                let locators = locators(first.transport);
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
    const NAME: &str =
        "transport::udp::tests::hosts::interfaces_that_were_not_selected_are_neither_told_nor_heard";
    let setup = "ip link set lo up
        for n in 1 2; do ip link add p$n type veth peer name q$n; ip addr add 10.9.$n.1/24 dev p$n
        ip link set p$n up; ip link set q$n up; done";
    if in_namespace(NAME, setup) {
        let config = Config { interfaces: Some(vec!["10.9.2.1".to_owned()]), ..Config::default() };
        listening(&config, |first| {
            let selected = Some(Ipv4Addr::new(10, 9, 2, 1).into());
            eventually("the link is up", || {
                let told = locators(first.transport).meta_unicast;
                told.len() == 1 && told[0].ip() == selected
            });
            eventually("lo and p2", || {
                first.announce(1);
                first.heard_from(1).len() == 2
            });
            let stranger = Udp::open(7, &Config::default()).unwrap();
            let mut out = Outbox::new();
            message(&mut out, 3, &locators(&stranger).meta_multicast);
            stranger.send(&batch(&out));
            // It sends on one interface after the other: p1 before p2.
            let report = first.transport.report();
            let p2 = report.iter().find(|interface| interface.name == "p2").unwrap();
            eventually("the stranger", || first.heard_from(3).contains(&p2.index));
            assert_eq!(first.heard_from(3), BTreeSet::from([1, p2.index]));
        });
    }
}

#[test]
fn a_taken_group_port_leaves_us_deaf_but_not_mute() {
    const NAME: &str = "transport::udp::tests::hosts::a_taken_group_port_leaves_us_deaf_but_not_mute";
    if in_namespace(NAME, "ip link set lo up") {
        let port = ports::meta_multicast(7);
        let taken = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
        let transport = Udp::open(7, &Config { ipv6: Use::Off, ..Config::default() }).unwrap();
        let locators = locators(&transport);
        assert!(locators.meta_multicast.is_empty());
        assert_eq!(locators.announce_to[0], Locator::udp(ports::MULTICAST_V4.into(), port));
        let report = transport.report();
        assert!(report.last().unwrap().last_error.as_ref().unwrap().contains("in use"));
        drop(taken);
    }
}

#[test]
fn what_a_full_socket_loses_is_counted() {
    let test = "transport::udp::tests::hosts::what_a_full_socket_loses_is_counted";
    if !in_namespace(test, "ip link set lo up") {
        return;
    }
    const DATAGRAMS: u64 = 500;
    let config = Config { receive_buffer_bytes: 16 << 10, multicast: false, ..Config::default() };
    let transport = Udp::open(7, &config).unwrap();
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = transport.families.first().unwrap().user.port;
    assert_eq!(transport.overflows(), 0);
    for number in 0..DATAGRAMS {
        // Nobody receives: soon there is no room.
        sender.send_to(&number.to_le_bytes(), (Ipv4Addr::LOCALHOST, port)).unwrap();
    }
    let lost = transport.overflows();
    let (mut receiver, mut received) = (Receiver::new(), 0);
    loop {
        let before = received;
        receiver.expect_one();
        transport.receive(Traffic::User(0), &mut receiver, false, |_| received += 1);
        if received == before {
            break;
        }
    }
    assert!(received > 0 && lost > 0, "{received} received, {lost} lost");
    assert_eq!(received + lost, DATAGRAMS);
    let rows = transport.report();
    let unicast = rows.iter().find(|row| row.index == 0).unwrap();
    assert!(unicast.to_string().contains(&format!("{lost} datagrams lost")), "{unicast}");
}
