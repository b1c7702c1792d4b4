//! Whether anybody has a port of this host.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// On this host the refusal comes while the datagram is sent, or right after.
const REFUSAL_WAIT: Duration = Duration::from_millis(1);

/// Whether the kernel refuses a datagram. Who wanted to forge such a refusal from outside had to name the
/// port of a socket that lives for a millisecond.
pub(super) fn is_refused(to: SocketAddr, datagram: &[u8]) -> bool {
    let any = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let asked = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
        socket.connect(to)?;
        socket.set_read_timeout(Some(REFUSAL_WAIT))?;
        socket.send(datagram)?;
        socket.recv(&mut [0; 1])
    });
    asked.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_refused_when_nobody_has_the_port() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = socket.local_addr().unwrap();
        assert!(!is_refused(to, &[7; 20]));
        assert_eq!(socket.recv(&mut [0; 64]).unwrap(), 20);
        drop(socket);
        assert!(is_refused(to, &[7; 20]));
    }
}
