//! Locators: where datagrams go, and the well-known ports (RTPS 2.5 §9.3.2, §9.6.2).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;
use std::str::FromStr;

use crate::malformed::{InvalidText, octets_of_hex};

/// What a process has open of a domain has a random id of its own, by which others find the memory that they
/// may share with it.
pub type NodeId = [u8; 16];

/// A transport kind, a port and an address.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "String")
)]
pub struct Locator {
    /// One of the `KIND_*` constants; others are carried but never used.
    pub kind: i32,
    /// UDP or TCP port.
    pub port: u32,
    /// An IPv6 address, or an IPv4 address in the last four octets.
    pub address: [u8; 16],
}

impl Locator {
    /// `LOCATOR_INVALID`: nowhere.
    pub const INVALID: Self = Self { kind: -1, port: 0, address: [0; 16] };
    /// `LOCATOR_KIND_UDPv4`.
    pub const KIND_UDP_V4: i32 = 1;
    /// `LOCATOR_KIND_UDPv6`.
    pub const KIND_UDP_V6: i32 = 2;
    /// Memory shared with another process of this host, or its own: a kind of Plainsong that no standard
    /// assigns. It names who was found by a handshake, and never goes by the wire: what a peer announces of
    /// this kind is ignored as any kind that is not UDP.
    pub const KIND_MEMORY: i32 = 0x0100_0f00;

    /// A UDP locator.
    #[must_use]
    pub fn udp(address: IpAddr, port: u16) -> Self {
        match address {
            IpAddr::V4(v4) => {
                let mut octets = [0; 16];
                octets[12..].copy_from_slice(&v4.octets());
                Self { kind: Self::KIND_UDP_V4, port: port.into(), address: octets }
            }
            IpAddr::V6(v6) => Self { kind: Self::KIND_UDP_V6, port: port.into(), address: v6.octets() },
        }
    }

    /// A node of this host that is reached by memory.
    #[must_use]
    pub const fn memory(node_id: NodeId) -> Self {
        Self { kind: Self::KIND_MEMORY, port: 0, address: node_id }
    }

    /// The node id of a memory locator; `None` for other kinds.
    #[must_use]
    pub const fn node_id(&self) -> Option<NodeId> {
        if self.kind == Self::KIND_MEMORY { Some(self.address) } else { None }
    }

    /// The IP address of a UDP locator; `None` for other kinds.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self.kind {
            Self::KIND_UDP_V4 => {
                let [.., a, b, c, d] = self.address;
                Some(Ipv4Addr::new(a, b, c, d).into())
            }
            Self::KIND_UDP_V6 => Some(Ipv6Addr::from(self.address).into()),
            _ => None,
        }
    }

    /// The port when it is a valid UDP port other than 0.
    #[must_use]
    pub fn udp_port(&self) -> Option<u16> {
        u16::try_from(self.port).ok().filter(|port| *port != 0)
    }
}

impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip() {
            Some(IpAddr::V6(ip)) => write!(f, "udp/[{ip}]:{}", self.port),
            Some(ip) => write!(f, "udp/{ip}:{}", self.port),
            None => {
                match self.node_id() {
                    Some(_) => f.write_str("memory/")?,
                    None => write!(f, "kind{}/", self.kind)?,
                }
                self.address.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
                // Memory has no ports.
                if self.kind == Self::KIND_MEMORY && self.port == 0 {
                    return Ok(());
                }
                write!(f, ":{}", self.port)
            }
        }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Reads what `Display` writes.
impl FromStr for Locator {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let parse = || {
            let (kind, place) = text.split_once('/')?;
            if kind == "memory" && !place.contains(':') {
                let mut node_id = [0; 16];
                octets_of_hex(place, &mut node_id)?;
                return Some(Self::memory(node_id));
            }
            let (address, port) = place.rsplit_once(':')?;
            let port = port.parse().ok()?;
            if kind == "udp" {
                let address = address.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
                return Some(Self { port, ..Self::udp(address, 0) });
            }
            let kind = match kind {
                "memory" => Self::KIND_MEMORY,
                other => other.strip_prefix("kind")?.parse().ok()?,
            };
            let mut locator = Self { kind, port, address: [0; 16] };
            octets_of_hex(address, &mut locator.address)?;
            Some(locator)
        };
        parse().ok_or(InvalidText("locator"))
    }
}

impl TryFrom<String> for Locator {
    type Error = InvalidText;

    fn try_from(text: String) -> Result<Self, InvalidText> {
        text.parse()
    }
}

impl From<Locator> for String {
    fn from(locator: Locator) -> Self {
        locator.to_string()
    }
}

/// The well-known ports of RTPS 2.5 §9.6.2.3 with its default parameters.
pub mod ports {
    /// Highest domain id whose ports fit in 16 bits.
    pub const DOMAIN_MAX: u16 = 232;
    /// Highest participant index whose ports stay inside its own domain's range.
    pub const PARTICIPANT_INDEX_MAX: u16 = 119;
    /// The default multicast group, 239.255.0.1.
    pub const MULTICAST_V4: core::net::Ipv4Addr = core::net::Ipv4Addr::new(239, 255, 0, 1);
    /// The multicast group used on IPv6: ff02::ffff:239.255.0.1, link-local scope.
    pub const MULTICAST_V6: core::net::Ipv6Addr =
        core::net::Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 0x0001);

    const BASE: u16 = 7400;
    const DOMAIN_GAIN: u16 = 250;
    const PARTICIPANT_GAIN: u16 = 2;

    /// Metatraffic multicast port.
    #[must_use]
    pub const fn meta_multicast(domain: u16) -> u16 {
        BASE + DOMAIN_GAIN * domain
    }

    /// User multicast port.
    #[must_use]
    pub const fn user_multicast(domain: u16) -> u16 {
        BASE + DOMAIN_GAIN * domain + 1
    }

    /// Metatraffic unicast port of one participant index.
    #[must_use]
    pub const fn meta_unicast(domain: u16, participant_index: u16) -> u16 {
        BASE + DOMAIN_GAIN * domain + 10 + PARTICIPANT_GAIN * participant_index
    }

    /// The participant indices of a domain whose ports stay inside its range and fit in 16 bits.
    #[must_use]
    pub const fn participant_indices(domain: u16) -> core::ops::RangeInclusive<u16> {
        let fit = (u16::MAX - user_unicast(domain, 0)) / PARTICIPANT_GAIN;
        0..=if fit < PARTICIPANT_INDEX_MAX { fit } else { PARTICIPANT_INDEX_MAX }
    }

    /// User unicast port of one participant index.
    #[must_use]
    pub const fn user_unicast(domain: u16, participant_index: u16) -> u16 {
        BASE + DOMAIN_GAIN * domain + 11 + PARTICIPANT_GAIN * participant_index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locator_is_read_as_it_is_written() {
        let udp = |address: &str, port| Locator::udp(address.parse().unwrap(), port);
        let other = Locator { kind: -7, port: 70_000, address: *b"an IP of a kind." };
        let memory = Locator::memory(*b"a node of a host");
        assert_eq!(memory.to_string(), "memory/61206e6f6465206f66206120686f7374");
        assert_eq!((memory.node_id(), memory.ip()), (Some(*b"a node of a host"), None));
        assert_eq!(other.node_id(), None);
        let odd = Locator { port: 7, ..memory };
        for locator in [udp("192.0.2.7", 7410), udp("fe80::1", 7411), other, memory, odd] {
            assert_eq!(locator.to_string().parse(), Ok(locator), "{locator}");
        }
        for wrong in ["", "udp/", "udp/nowhere:1", "kind16/00:1", "memory/00", "tcp/192.0.2.7:7410"] {
            assert_eq!(wrong.parse::<Locator>(), Err(InvalidText("locator")), "{wrong:?}");
        }
    }

    #[test]
    fn fact_19_ports_of_domain_zero_and_the_last() {
        assert_eq!(ports::meta_multicast(0), 7400);
        assert_eq!(ports::user_multicast(0), 7401);
        assert_eq!(ports::meta_unicast(0, 1), 7412);
        assert_eq!(ports::user_unicast(0, 1), 7413);
        assert_eq!(ports::meta_unicast(ports::DOMAIN_MAX, 0), 65410);
        assert!(ports::user_unicast(0, ports::PARTICIPANT_INDEX_MAX) < ports::meta_multicast(1));
        assert_eq!(ports::participant_indices(0), 0..=ports::PARTICIPANT_INDEX_MAX);
        let last = *ports::participant_indices(ports::DOMAIN_MAX).end();
        assert_eq!(ports::user_unicast(ports::DOMAIN_MAX, last), u16::MAX);
    }

    #[test]
    fn fact_18_v4_addresses_live_in_the_last_four_octets() {
        let locator = Locator::udp(Ipv4Addr::new(192, 0, 2, 7).into(), 7410);
        assert_eq!(locator.kind, 1);
        assert_eq!(locator.address[12..], [192, 0, 2, 7]);
        assert_eq!(locator.ip(), Some(Ipv4Addr::new(192, 0, 2, 7).into()));
        let other = Locator { kind: 16, port: 1, address: [0; 16] };
        assert_eq!(other.ip(), None);
    }
}
