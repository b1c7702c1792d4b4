//! Packets with any source address, and whatever arrives for any port.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use plainsong_proto::locator::ports;
use socket2::{Domain, Protocol, Socket, Type};

use crate::lab::{ATTACKER, ATTACKER_NETWORK};

/// Octets of the headers of IPv4 and UDP.
pub(crate) const HEADERS_BYTES: usize = 28;
const IP_BYTES: usize = 20;
const UDP: u8 = 17;
/// `IPPROTO_RAW`: who sends writes the header of IP himself.
const RAW: i32 = 255;
/// Asked of the kernel: a storm draws more than the usual.
const RECEIVE_BYTES: usize = 8 << 20;
/// Pause between two looks for what has arrived.
const LOOK: Duration = Duration::from_micros(200);

/// What the attacker sends and hears with.
pub(crate) struct Raw {
    sending: Socket,
    receiving: Socket,
    packet: Vec<u8>,
    arrived: Vec<u8>,
    /// Octets of IP packets sent.
    pub(crate) octets_sent: u64,
}

/// A datagram for the attacker, or for a group.
pub(crate) struct Arrived<'a> {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) payload: &'a [u8],
}

impl Raw {
    pub(crate) fn open() -> io::Result<Self> {
        let sending = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(RAW)))?;
        let receiving = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP))?;
        receiving.join_multicast_v4(&ports::MULTICAST_V4, &ATTACKER)?;
        receiving.set_recv_buffer_size(RECEIVE_BYTES)?;
        receiving.set_nonblocking(true)?;
        Ok(Self { sending, receiving, packet: Vec::new(), arrived: vec![0; 1 << 16], octets_sent: 0 })
    }

    /// Sends a datagram of at most one Ethernet frame. A full device queue loses it, as networks do.
    pub(crate) fn send(&mut self, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        let len = HEADERS_BYTES + payload.len();
        let [high, low] = (len as u16).to_be_bytes();
        self.packet.clear();
        // The kernel fills in the identification and the checksum of the header.
        self.packet.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, UDP, 0, 0]);
        self.packet.extend(from.ip().octets());
        self.packet.extend(to.ip().octets());
        self.packet.extend(from.port().to_be_bytes());
        self.packet.extend(to.port().to_be_bytes());
        self.packet.extend(((len - IP_BYTES) as u16).to_be_bytes());
        // No checksum of UDP (RFC 768).
        self.packet.extend([0, 0]);
        self.packet.extend_from_slice(payload);
        if self.sending.send_to(&self.packet, &to.into()).is_ok() {
            self.octets_sent += len as u64;
        }
    }

    /// The next datagram for the attacker or for everyone, if one comes before `end`. Timeouts of sockets are
    /// too coarse for this.
    pub(crate) fn receive(&mut self, end: Instant) -> Option<Arrived<'_>> {
        loop {
            match self.receiving.read(&mut self.arrived) {
                Ok(len) => return parse(self.arrived.get(..len)?),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return None,
                Err(_) => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

/// The datagram in an IP packet.
fn parse(packet: &[u8]) -> Option<Arrived<'_>> {
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    let address = |at: usize| {
        let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    };
    let (header, payload) = packet.get(header_bytes..)?.split_first_chunk::<8>()?;
    let [a, b, c, d, ..] = *header;
    let from = SocketAddrV4::new(address(12)?, u16::from_be_bytes([a, b]));
    let to = SocketAddrV4::new(address(16)?, u16::from_be_bytes([c, d]));
    Some(Arrived { from, to, payload })
}

/// Whether the attacker has an address.
pub(crate) fn is_own(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address == ATTACKER || [a, b, c] == ATTACKER_NETWORK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_found_behind_its_headers() {
        let mut packet = vec![0x46; 24];
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([0x1c, 0xf2, 0x1c, 0xe8, 0, 12, 0, 0, 1, 2, 3, 4]);
        let Some(arrived) = parse(&packet) else { panic!("it is one") };
        assert_eq!(arrived.from, SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7410));
        assert_eq!(arrived.to, SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 7400));
        assert_eq!(arrived.payload, [1, 2, 3, 4]);
        assert!((0..32).all(|len| parse(&packet[..len]).is_none()));
    }
}
