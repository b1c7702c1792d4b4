//! The network between simulated hosts: loss, duplication, delay, partitions and a largest datagram.

use std::collections::{BTreeMap, BTreeSet};

use core::net::{IpAddr, Ipv4Addr};
use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::locator::{Locator, ports};
use plainsong_proto::time::Instant;

use crate::rng::Rng;

/// A machine with one address; the processes on it differ by port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host(pub u8);

/// What a road between two hosts does to datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Datagrams that vanish, in percent.
    pub loss_percent: u64,
    /// Datagrams that arrive twice, in percent.
    pub duplicate_percent: u64,
    /// Shortest delay in nanoseconds.
    pub delay_nanos_min: u64,
    /// Longest delay in nanoseconds; the spread is what reorders.
    pub delay_nanos_max: u64,
    /// Longer datagrams vanish.
    pub datagram_bytes_max: usize,
}

/// All roads.
#[derive(Debug)]
pub struct Network {
    /// The road between different hosts.
    pub link: Link,
    blocked: BTreeSet<(Host, Host)>,
    egress_free_at: BTreeMap<Host, Instant>,
    rng: Rng,
}

/// A machine that is none of ours: forged announcements name its address.
pub const STRANGER: Host = Host(200);
/// Another: readers that nobody has are there, and nothing that is sent to it is heard.
pub const UNHEARD: Host = Host(201);

/// The first of the addresses of strangers that hear, and answer.
pub const INTRUDER: Host = Host(202);

/// Whether a participant is none of a stranger: GUIDs tell where processes were born.
#[must_use]
pub const fn is_genuine(prefix: GuidPrefix) -> bool {
    prefix.0[2] < STRANGER.0
}

/// Within one host nothing is lost but what the receiver cannot hold.
const LOCAL: Link = Link {
    loss_percent: 0,
    duplicate_percent: 0,
    delay_nanos_min: 10_000,
    delay_nanos_max: 15_000,
    datagram_bytes_max: 65_507,
};

/// One gigabit a second.
const NANOS_PER_OCTET: u64 = 8;

impl Host {
    /// The address: 10.0.0.1 for host 0 and so on.
    #[must_use]
    pub fn address(self) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, self.0.saturating_add(1)).into()
    }

    /// A socket of this host.
    #[must_use]
    pub fn locator(self, port: u16) -> Locator {
        Locator::udp(self.address(), port)
    }

    /// The host a locator names, when it is one of ours.
    #[must_use]
    pub fn of(locator: &Locator) -> Option<Self> {
        match locator.ip()? {
            IpAddr::V4(v4) => match v4.octets() {
                [10, 0, 0, last] => last.checked_sub(1).map(Self),
                _ => None,
            },
            IpAddr::V6(_) => None,
        }
    }
}

/// Whether a locator is the multicast group of discovery or of user data.
#[must_use]
pub fn is_multicast(locator: &Locator) -> bool {
    locator.ip() == Some(ports::MULTICAST_V4.into())
}

impl Link {
    /// A quiet local network: 50–150 µs, 1,472 octets, nothing lost.
    pub const QUIET: Self = Self {
        loss_percent: 0,
        duplicate_percent: 0,
        delay_nanos_min: 50_000,
        delay_nanos_max: 150_000,
        datagram_bytes_max: 1472,
    };
}

impl Network {
    /// A quiet network.
    #[must_use]
    pub const fn new(rng: Rng) -> Self {
        Self { link: Link::QUIET, blocked: BTreeSet::new(), egress_free_at: BTreeMap::new(), rng }
    }

    /// Nothing gets from `from` to `to` any more; the other direction is unchanged.
    pub fn block(&mut self, from: Host, to: Host) {
        self.blocked.insert((from, to));
    }

    /// All partitions end.
    pub fn unblock_all(&mut self) {
        self.blocked.clear();
    }

    /// When a datagram sent `at` arrives: never, once or twice.
    pub fn arrivals(&mut self, at: Instant, from: Host, to: Host, length: usize) -> [Option<Instant>; 2] {
        let link = if from == to { LOCAL } else { self.link };
        if self.blocked.contains(&(from, to)) || length > link.datagram_bytes_max {
            return [None; 2];
        }
        let departs = if from == to { at } else { self.departure(at, from, length) };
        let lost = self.rng.chance(link.loss_percent);
        let twice = self.rng.chance(link.duplicate_percent);
        let mut copy = || {
            let delay = self.rng.between(link.delay_nanos_min, link.delay_nanos_max);
            Some(Instant(departs.0 + delay))
        };
        match (lost, twice) {
            (true, _) => [None; 2],
            (false, false) => [copy(), None],
            (false, true) => [copy(), copy()],
        }
    }

    /// Datagrams of one host leave one after the other.
    fn departure(&mut self, at: Instant, from: Host, length: usize) -> Instant {
        let free_at = self.egress_free_at.entry(from).or_default();
        let departs = Instant((*free_at).max(at).0 + length as u64 * NANOS_PER_OCTET);
        *free_at = departs;
        departs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(network: &mut Network, from: Host, to: Host, length: usize) -> usize {
        let arrivals = (0..1000).map(|at| network.arrivals(Instant(at), from, to, length));
        arrivals.flatten().flatten().count()
    }

    #[test]
    fn loss_and_duplication_follow_their_percentages() {
        let mut network = Network::new(Rng::new(3));
        assert_eq!(delivered(&mut network, Host(0), Host(1), 100), 1000);
        network.link.loss_percent = 30;
        assert!((650..750).contains(&delivered(&mut network, Host(0), Host(1), 100)));
        network.link.loss_percent = 0;
        network.link.duplicate_percent = 10;
        assert!((1060..1140).contains(&delivered(&mut network, Host(0), Host(1), 100)));
    }

    #[test]
    fn a_partition_may_be_one_way_and_a_host_always_reaches_itself() {
        let mut network = Network::new(Rng::new(3));
        network.link.loss_percent = 100;
        assert_eq!(delivered(&mut network, Host(2), Host(2), 60_000), 1000);
        network.link.loss_percent = 0;
        network.block(Host(0), Host(1));
        assert_eq!(delivered(&mut network, Host(0), Host(1), 1), 0);
        assert_eq!(delivered(&mut network, Host(1), Host(0), 1), 1000);
        assert_eq!(delivered(&mut network, Host(1), Host(0), 1473), 0);
        assert_eq!(Host::of(&Host(4).locator(7410)), Some(Host(4)));
    }
}
