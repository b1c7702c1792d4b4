//! Which of many announced locators to use: exactly one per participant or endpoint when possible.

use core::net::IpAddr;

use super::config::LocalLocators;
use crate::locator::Locator;
use crate::sources::Sources;
use crate::stats::{DropCounters, DropReason};

/// The addresses of this host, and those its operator named as peers.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    own: Vec<IpAddr>,
    /// Addresses with the prefix lengths of their networks.
    networks: Vec<(IpAddr, u8)>,
    peers: Vec<IpAddr>,
}

/// Where a user endpoint is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EndpointPath {
    /// One locator when one suffices.
    pub(super) locators: Vec<Locator>,
    /// From where it is heard.
    pub(super) sources: Sources,
    /// Where its participant hears discovery, of a Plainsong endpoint: what is urgent does not queue behind
    /// what is not.
    pub(super) urgent: Option<Locator>,
    /// All of them stay on this host.
    pub(super) same_host: bool,
    /// It is of this process.
    pub(super) is_of_own_process: bool,
}

/// Where one participant or endpoint is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) locator: Locator,
    /// Datagrams do not leave this host.
    pub(super) same_host: bool,
}

/// The rules by which announced unicast locators are accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acceptance {
    /// The announcement came from this host, so addresses of this host mean ours.
    pub(super) from_this_host: bool,
    /// Lowest port allowed.
    pub(super) port_min: u16,
    /// More locators than this are ignored.
    pub(super) locators_max: usize,
}

impl Host {
    pub(super) fn of(locators: &LocalLocators) -> Self {
        let LocalLocators { own_addresses, networks, announce_to, .. } = locators;
        Self::new(own_addresses, networks, announce_to)
    }

    fn new(own: &[IpAddr], networks: &[(IpAddr, u8)], announce_to: &[Locator]) -> Self {
        let unicast = announce_to.iter().filter_map(Locator::ip).filter(|ip| !ip.is_multicast());
        let peers = unicast.filter(|ip| !ip.is_loopback()).collect();
        Self { own: own.to_vec(), networks: networks.to_vec(), peers }
    }

    /// Whether `ip` is an address of this host.
    pub(super) fn is_own(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || self.own.contains(&ip)
    }

    /// From where endpoints of this host are heard, and of `others`.
    pub(super) fn sources(&self, others: impl Iterator<Item = Locator>) -> Sources {
        Sources::new(others.chain(self.own.iter().map(|ip| Locator::udp(*ip, 0))), true)
    }

    /// All of them.
    pub(super) fn addresses(&self) -> &[IpAddr] {
        &self.own
    }

    /// Whether others can reach this host now.
    pub(super) fn is_reachable(&self) -> bool {
        self.own.iter().any(|ip| !ip.is_loopback())
    }

    /// Whether a datagram from `from` was sent by this host.
    pub(super) fn sent(&self, from: &Locator) -> bool {
        from.ip().is_some_and(|ip| self.is_own(ip))
    }

    /// Whether the operator asked for traffic to `ip`.
    pub(super) fn is_peer(&self, ip: IpAddr) -> bool {
        self.peers.contains(&ip)
    }

    /// Whether `ip` is likely on a link of this host: the same host, /24 or /64.
    pub(super) fn is_near(&self, ip: IpAddr) -> bool {
        self.is_own(ip) || self.own.iter().any(|own| network(*own) == network(ip))
    }

    /// Whether `ip` is on a network of this host, which may be wide, and have no multicast.
    pub(super) fn shares_network(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|(own, prefix_length)| {
            let differ = match (own, ip) {
                (IpAddr::V4(own), IpAddr::V4(ip)) => u128::from(own.to_bits() ^ ip.to_bits()) << 96,
                (IpAddr::V6(own), IpAddr::V6(ip)) => own.to_bits() ^ ip.to_bits(),
                _ => return false,
            };
            differ.leading_zeros() >= u32::from(*prefix_length)
        })
    }
}

/// The unicast locators that may be used, each once, in the announced order. Others are counted.
pub(super) fn usable(
    announced: &[Locator],
    host: &Host,
    acceptance: Acceptance,
    drops: &mut DropCounters,
) -> Vec<Locator> {
    let mut accepted = Vec::new();
    for (index, locator) in announced.iter().enumerate() {
        if index >= acceptance.locators_max {
            drops.count(DropReason::DiscoveryLimit);
            break;
        }
        // Other transports are no fault of the sender (fact 18).
        let Some(ip) = locator.ip() else { continue };
        if !is_acceptable(locator, ip, host, acceptance) {
            drops.count(DropReason::LocatorRefused);
        } else if !accepted.contains(locator) {
            accepted.push(*locator);
        }
    }
    accepted
}

/// The multicast groups among announced multicast locators.
pub(super) fn groups(announced: &[Locator], acceptance: Acceptance) -> Vec<Locator> {
    let usable = announced.iter().take(acceptance.locators_max).filter(|locator| {
        locator.ip().is_some_and(|ip| ip.is_multicast())
            && locator.udp_port().is_some_and(|port| port >= acceptance.port_min)
    });
    usable.copied().collect()
}

/// The best of `usable`, where `proven` tells of addresses known to answer and `source` is where the
/// participant was last heard. IPv4 wins among equals, then the announced order.
pub(super) fn choose(
    usable: &[Locator],
    host: &Host,
    from_this_host: bool,
    source: Option<IpAddr>,
    proven: impl Fn(IpAddr) -> bool,
) -> Option<Path> {
    let rank = |locator: &Locator| {
        let ip = locator.ip()?;
        let local = from_this_host && host.is_own(ip);
        Some((!local, !proven(ip), Some(ip) != source, !host.is_near(ip), ip.is_ipv6()))
    };
    let best =
        usable.iter().filter_map(|locator| Some((rank(locator)?, locator))).min_by_key(|(key, _)| *key)?;
    let (_, locator) = best;
    let same_host = from_this_host && locator.ip().is_some_and(|ip| host.is_own(ip));
    Some(Path { locator: *locator, same_host })
}

fn is_acceptable(locator: &Locator, ip: IpAddr, host: &Host, acceptance: Acceptance) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast() || v4.octets()[0] == 0);
    let port = locator.udp_port().is_some_and(|port| port >= acceptance.port_min);
    // From elsewhere, an address of this host would turn our own traffic against us.
    let misplaced = host.is_own(ip) && !acceptance.from_this_host;
    port && !broadcast && !misplaced && !ip.is_multicast() && !ip.is_unspecified()
}

/// The /24 or /64 an address is in.
fn network(ip: IpAddr) -> [u8; 9] {
    match ip {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            [4, a, b, c, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(v6) => {
            let [a, b, c, d, e, f, g, h, ..] = v6.octets();
            [6, a, b, c, d, e, f, g, h]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(ip: &str, port: u16) -> Locator {
        Locator::udp(ip.parse().unwrap(), port)
    }

    fn host() -> Host {
        Host::new(
            &["192.0.2.1".parse().unwrap(), "10.1.1.1".parse().unwrap()],
            &[],
            &[udp("203.0.113.9", 7410)],
        )
    }

    const REMOTE: Acceptance = Acceptance { from_this_host: false, port_min: 1024, locators_max: 16 };
    const LOCAL: Acceptance = Acceptance { from_this_host: true, ..REMOTE };

    fn pick(usable: &[Locator], from_this_host: bool, source: &str) -> Path {
        choose(usable, &host(), from_this_host, source.parse().ok(), |_| false).unwrap()
    }

    #[test]
    fn r1_locators_that_could_hurt_others_are_refused() {
        let mut drops = DropCounters::default();
        let announced = [
            udp("239.255.0.1", 7400),
            udp("255.255.255.255", 7410),
            udp("0.0.0.0", 7410),
            udp("192.0.2.7", 0),
            udp("192.0.2.7", 53),
            udp("127.0.0.1", 7410),
            udp("192.0.2.1", 7410),
            Locator { kind: 4, port: 7410, address: [0; 16] },
            udp("192.0.2.7", 7410),
        ];
        assert_eq!(usable(&announced, &host(), REMOTE, &mut drops), [udp("192.0.2.7", 7410)]);
        assert_eq!(drops.get(DropReason::LocatorRefused), 7);
    }

    #[test]
    fn r1_more_than_sixteen_locators_are_ignored() {
        let mut drops = DropCounters::default();
        let announced: Vec<_> = (0..40).map(|last| udp(&format!("192.0.2.{}", last + 10), 7410)).collect();
        assert_eq!(usable(&announced, &host(), REMOTE, &mut drops).len(), 16);
        assert_eq!(drops.get(DropReason::DiscoveryLimit), 1);
    }

    #[test]
    fn a_peer_on_this_host_is_reached_here() {
        let mut drops = DropCounters::default();
        let announced = [udp("198.51.100.2", 7412), udp("192.0.2.1", 7412)];
        let usable = usable(&announced, &host(), LOCAL, &mut drops);
        assert_eq!(pick(&usable, true, "192.0.2.1"), Path { locator: announced[1], same_host: true });
    }

    #[test]
    fn a_network_is_as_wide_as_its_prefix_tells() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        let networks = [(ip("10.1.1.1"), 16), (ip("192.0.2.1"), 30), (ip("fd00::1"), 64)];
        let host = Host::new(&[], &networks, &[]);
        for (other, is_shared) in [
            ("10.1.255.9", true),
            ("10.2.1.9", false),
            ("192.0.2.2", true),
            ("192.0.2.9", false),
            ("fd00::9:9", true),
            ("fd00:0:0:1::9", false),
            ("::ffff:10.1.1.1", false),
        ] {
            assert_eq!(host.shares_network(ip(other)), is_shared, "{other}");
        }
    }

    #[test]
    fn the_address_that_spoke_wins_then_the_near_one_then_v4() {
        let announced = [udp("2001:db8::7", 7410), udp("198.51.100.7", 7410), udp("10.1.1.7", 7410)];
        assert_eq!(pick(&announced, false, "198.51.100.7").locator, announced[1]);
        assert_eq!(pick(&announced, false, "203.0.113.1").locator, announced[2]);
        assert_eq!(pick(&announced[..2], false, "203.0.113.1").locator, announced[1]);
    }
}
