//! A UDP socket as this driver wants it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::time::Duration;

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket as Raw, Type};

use super::platform;
use crate::base::config::Config;

/// Multicast stays in the local network.
const MULTICAST_TTL_HOPS: u32 = 1;
/// A send that the host cannot take in this time is given up: the protocol repeats what matters.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_millis(20);

/// A bound UDP socket. Any thread may send on it.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(super) raw: Raw,
    /// Its port.
    pub(crate) port: u16,
    /// What the kernel does with many datagrams at once.
    pub(super) offload: platform::Offload,
}

/// What is asked of the kernel for one socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferSizes {
    pub(crate) receive_bytes: usize,
    pub(crate) send_bytes: usize,
}

impl BufferSizes {
    pub(crate) const fn of(config: &Config) -> Self {
        Self { receive_bytes: config.receive_buffer_bytes, send_bytes: config.send_buffer_bytes }
    }
}

impl Socket {
    /// A socket that no other shares. Port 0: the host chooses one.
    pub(crate) fn bind(address: SocketAddr, sizes: BufferSizes) -> io::Result<Self> {
        let (raw, offload) = Self::unbound(address.ip(), sizes)?;
        raw.bind(&address.into())?;
        let port = raw.local_addr()?.as_socket().map_or(0, |address| address.port());
        Ok(Self { raw, port, offload })
    }

    /// A socket for datagrams to `group`, shared with everyone on this host who listens there too.
    pub(crate) fn bind_group(group: IpAddr, port: u16, sizes: BufferSizes) -> io::Result<Self> {
        let bound = match group {
            IpAddr::V4(group) if cfg!(unix) => group.into(),
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let (raw, offload) = Self::unbound(group, sizes)?;
        raw.set_reuse_address(true)?;
        #[cfg(unix)]
        raw.set_reuse_port(true)?;
        // Only what arrives on interfaces where *this* socket joined. IPv6 cannot bind to a link-local group
        // without naming one interface.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if group.is_ipv4() {
            raw.set_multicast_all_v4(false)?;
        } else {
            raw.set_multicast_all_v6(false)?;
        }
        raw.bind(&SocketAddr::new(bound, port).into())?;
        Ok(Self { raw, port, offload })
    }

    fn unbound(address: IpAddr, sizes: BufferSizes) -> io::Result<(Raw, platform::Offload)> {
        let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let raw = Raw::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv4() {
            raw.set_multicast_loop_v4(true)?;
            raw.set_multicast_ttl_v4(MULTICAST_TTL_HOPS)?;
        } else {
            raw.set_only_v6(true)?;
            raw.set_multicast_loop_v6(true)?;
            raw.set_multicast_hops_v6(MULTICAST_TTL_HOPS)?;
        }
        raw.set_write_timeout(Some(SEND_TIMEOUT))?;
        let offload = platform::prepare(&raw, address.is_ipv4(), sizes)?;
        Ok((raw, offload))
    }

    /// Listens to `group` on one interface; fine when it did already.
    pub(crate) fn join(&self, group: IpAddr, interface: u32) -> io::Result<()> {
        let joined = match group {
            IpAddr::V4(group) => {
                self.raw.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(interface))
            }
            IpAddr::V6(group) => self.raw.join_multicast_v6(&group, interface),
        };
        match joined {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(()),
            other => other,
        }
    }

    /// Ends a receive that blocks, and all later ones.
    pub(crate) fn end_receiving(&self) {
        // An unconnected socket answers "not connected" and still wakes its reader.
        let _ = self.raw.shutdown(Shutdown::Read);
    }
}
