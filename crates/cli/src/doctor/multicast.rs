//! Interfaces, and whether multicast works on each: tried, not assumed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use plainsong::InterfaceReport;
use plainsong::survey::{self, GuidPrefix, ports};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use super::codes::{self, Severity};
use super::{Patient, report::Report};

/// A datagram that does not leave the host is back within microseconds; a busy host takes longer.
const BACK_WITHIN: Duration = Duration::from_millis(250);
const TRIES: u32 = 3;

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let interfaces = || patient.state.interfaces.iter().filter(|it| it.name != "*");
    let usable = |it: &&InterfaceReport| it.unusable.is_none();
    for it in interfaces().filter(|it| it.unusable.is_some()) {
        report.check("interface", it.to_string());
        // One that is not there has no number.
        if it.index == 0 {
            let what = format!("PLAINSONG_INTERFACES names {:?}, which this host has not", it.name);
            report.find(
                codes::INTERFACE_MISSING,
                Severity::Warning,
                format!("interface {}", it.name),
                what,
                None,
            );
        }
    }
    let is_loopback = |it: &InterfaceReport| it.addresses.iter().any(IpAddr::is_loopback);
    let has_network = interfaces().filter(usable).any(|it| !is_loopback(it));
    if !has_network && !patient.is_loopback_only() {
        let what = "no interface but loopback is usable: participants of other hosts are not reached";
        report.find(codes::NO_NETWORK, Severity::Warning, "this host", what, None);
    }
    if !patient.config.multicast {
        let what = "PLAINSONG_MULTICAST is off: nothing is announced to groups, nor heard there";
        report.find(codes::MULTICAST_OFF, Severity::Note, "this process", what, None);
        return;
    }
    for it in interfaces().filter(usable) {
        let Some(source) =
            it.addresses.iter().find_map(|ip| if let IpAddr::V4(v4) = ip { Some(*v4) } else { None })
        else {
            report.check("interface", format!("{it}; no IPv4 address, multicast is not tried"));
            continue;
        };
        let port = ports::meta_multicast(patient.domain);
        let outcome = try_group(it.index, source, port);
        let told = match &outcome {
            Ok(true) => "multicast works on this host",
            Ok(false) => "multicast does not come back",
            Err(_) => "multicast is refused",
        };
        report.check("interface", format!("{it}; {told}"));
        let why = match outcome {
            Ok(true) => continue,
            Ok(false) if lacks_flag(&it.name) => "the interface has no MULTICAST flag".to_owned(),
            Ok(false) => "it was dropped on its way, by a packet filter probably".to_owned(),
            Err(error) => format!("the host refuses it: {error}"),
        };
        let what =
            format!("a datagram to {}:{port} did not come back on {}: {why}", ports::MULTICAST_V4, it.name);
        let severity = if is_loopback(it) && has_network { Severity::Note } else { Severity::Warning };
        let cure = lacks_flag(&it.name).then(|| {
            format!("ip link set dev {} multicast on, or name the other hosts in PLAINSONG_PEERS", it.name)
        });
        report.find(codes::MULTICAST_BLOCKED, severity, format!("interface {}", it.name), what, cure);
    }
}

/// Whether a datagram to the discovery group comes back on an interface. It does not leave the host, and is a
/// message without contents to everyone else.
fn try_group(index: u32, source: Ipv4Addr, port: u16) -> io::Result<bool> {
    let hears = group_socket(port)?;
    hears.join_multicast_v4_n(&ports::MULTICAST_V4, &InterfaceIndexOrAddress::Index(index))?;
    let hears = UdpSocket::from(hears);
    let sends = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    sends.set_multicast_if_v4(&source)?;
    sends.set_multicast_loop_v4(true)?;
    sends.set_multicast_ttl_v4(0)?;
    sends.bind(&SocketAddrV4::new(source, 0).into())?;
    let sends = UdpSocket::from(sends);
    // Whoever has sent it is told by its port.
    let own = sends.local_addr()?;
    let message = survey::empty_message(GuidPrefix::UNKNOWN);
    for _ in 0..TRIES {
        sends.send_to(&message, (ports::MULTICAST_V4, port))?;
        let end = Instant::now() + BACK_WITHIN;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            hears.set_read_timeout(Some(left))?;
            match hears.recv_from(&mut [0; 64]) {
                Ok((_, from)) if from == own => return Ok(true),
                // Others are heard, too.
                Ok(_) => {}
                Err(error) if is_over(&error) => break,
                // Windows tells of longer datagrams in this way.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(false)
}

/// Nothing came in time.
pub(super) fn is_over(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Whether the system says that an interface does no multicast.
fn lacks_flag(interface: &str) -> bool {
    const IFF_MULTICAST: u32 = 0x1000;
    let flags = std::fs::read_to_string(format!("/sys/class/net/{interface}/flags")).unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16);
    flags.is_ok_and(|flags| flags & IFF_MULTICAST == 0)
}

/// A socket for the group, shared with all others of this host that listen there.
pub(super) fn group_socket(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    #[cfg(unix)]
    socket.set_reuse_port(true)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_multicast_all_v4(false)?;
    let bound = if cfg!(unix) { ports::MULTICAST_V4 } else { Ipv4Addr::UNSPECIFIED };
    socket.bind(&SocketAddrV4::new(bound, port).into())?;
    Ok(socket)
}
