//! A socket of a thread's own, connected to the place on this host where that thread sends again and again:
//! the kernel looks for no route and copies no name each time.
//!
//! Only places of this host: to others, which route and which source address is right changes, and whoever is
//! connected does not notice. What such a socket does not take is sent the usual way. It stays open until its
//! thread sends elsewhere as often, or ends.
//!
//! Source ports mean nothing: who hears it knows the address of the host, never the port, as the way back.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::socket::SEND_TIMEOUT;

/// So often a thread sends to one place, and nowhere else, before it gets a socket for that; after each
/// failure twice as often.
const ENOUGH: u32 = 64;
const ENOUGH_MAX: u32 = 1 << 20;
/// Sockets of this kind of all threads of the process.
const SOCKETS_MAX: usize = 16;

static SOCKETS: AtomicUsize = AtomicUsize::new(0);

/// The shortcut of one thread.
pub(super) struct Shortcut {
    connected: Option<Connected>,
    /// Where it sent most lately by another way, and how often since it sent by the socket.
    other: Option<SocketAddr>,
    sends: u32,
    enough: u32,
}

impl Default for Shortcut {
    fn default() -> Self {
        Self { connected: None, other: None, sends: 0, enough: ENOUGH }
    }
}

impl Shortcut {
    /// The socket to send by to this place and to no other, if there is one.
    pub(super) fn to(&mut self, to: SocketAddr) -> Option<RawFd> {
        if let Some(connected) = self.connected.as_ref().filter(|connected| connected.to == to) {
            self.sends = 0;
            return Some(connected.socket.as_raw_fd());
        }
        if self.other != Some(to) {
            (self.other, self.sends, self.enough) = (Some(to), 0, ENOUGH);
        }
        self.sends += 1;
        if self.sends < self.enough {
            return None;
        }
        // It sends there only, of late.
        self.connected = None;
        self.connected = Connected::new(to);
        self.put_off();
        self.connected.as_ref().map(|connected| connected.socket.as_raw_fd())
    }

    /// The socket did not take something.
    #[cold]
    pub(super) fn failed(&mut self) {
        self.connected = None;
    }

    fn put_off(&mut self) {
        (self.sends, self.enough) = (0, (2 * self.enough).min(ENOUGH_MAX));
    }
}

struct Connected {
    to: SocketAddr,
    socket: UdpSocket,
}

impl Connected {
    /// `None`: it is not of this host, or there are enough.
    fn new(to: SocketAddr) -> Option<Self> {
        let any = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT)).ok()?;
        socket.connect(to).ok()?;
        // To an address of its own the host sends from that address.
        let is_own = socket.local_addr().is_ok_and(|local| local.ip() == to.ip());
        let count = |count: usize| (count < SOCKETS_MAX).then_some(count + 1);
        let has_room = || SOCKETS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok();
        (is_own && has_room()).then(|| Self { to, socket })
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        SOCKETS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    #[test]
    fn who_sends_to_one_place_of_this_host_again_and_again_gets_a_socket_for_it() {
        let ((_one, one), (_other, other)) = (place(), place());
        let mut shortcut = Shortcut::default();
        for _ in 1..ENOUGH {
            assert_eq!(shortcut.to(one), None);
        }
        let socket = shortcut.to(one);
        assert!(socket.is_some());
        for _ in 0..2 * ENOUGH {
            assert_eq!((shortcut.to(one), shortcut.to(other)), (socket, None), "two places by turns");
        }
        shortcut.failed();
        for _ in 1..ENOUGH {
            assert_eq!(shortcut.to(one), None);
        }
        assert!(shortcut.to(one).is_some());
    }

    #[test]
    fn each_failure_is_followed_by_twice_as_many_sends_the_usual_way() {
        let (_socket, place) = place();
        let mut shortcut = Shortcut::default();
        for tries in 0..5 {
            let sends = (1..).find(|_| shortcut.to(place).is_some());
            assert_eq!(sends, Some(ENOUGH << tries));
            shortcut.failed();
        }
    }

    #[test]
    fn places_elsewhere_get_none() {
        let mut shortcut = Shortcut::default();
        let elsewhere = SocketAddr::from(([192, 0, 2, 1], 7_411));
        assert!((0..10 * ENOUGH).all(|_| shortcut.to(elsewhere).is_none()));
    }
}
