//! What sockets cost, on loopback.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plainsong_perfkit::clock::now_ns;
use plainsong_perfkit::floor::system::{set_udp_gro, set_udp_segment};
use socket2::SockRef;

use super::Cpus;
use super::pairs::trips;

/// Asked of the kernel for each socket.
const BUFFER: usize = 4 << 20;
/// A lost datagram ends a run.
const PATIENCE: Duration = Duration::from_secs(1);
/// Datagrams that are sent before they are received.
const SENDS: u32 = 200;
/// How long a flow is, in nanoseconds.
const FLOW_NS: u64 = 100_000_000;
/// Octets and segments that the kernel cuts into datagrams at once.
const SEGMENTED: usize = 65_000;
const SEGMENTS: usize = 64;

fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    SockRef::from(&socket).set_recv_buffer_size(BUFFER)?;
    SockRef::from(&socket).set_send_buffer_size(BUFFER)?;
    Ok(socket)
}

fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let (one, other) = (socket()?, socket()?);
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    Ok((one, other))
}

/// One `sendto` of 64 octets to a socket of this host.
pub(super) fn sendto_ns() -> io::Result<f64> {
    let (from, to) = (socket()?, socket()?);
    let address = to.local_addr()?;
    let mut buffer = [0; 64];
    let mut sent_ns = 0;
    for _ in 0..20 {
        let begin_ns = now_ns();
        for _ in 0..SENDS {
            from.send_to(&buffer, address)?;
        }
        sent_ns += now_ns().saturating_sub(begin_ns);
        to.set_nonblocking(true)?;
        while to.recv(&mut buffer).is_ok() {}
    }
    Ok(sent_ns as f64 / f64::from(20 * SENDS))
}

/// Round trips of datagrams; `busy`: nobody sleeps.
pub(super) fn udp(cpus: Cpus, size: u64, busy: bool) -> io::Result<Vec<u64>> {
    let (near, far) = pair()?;
    for socket in [&near, &far] {
        socket.set_nonblocking(busy)?;
        if !busy {
            socket.set_read_timeout(Some(PATIENCE))?;
        }
    }
    let receive = |socket: &UdpSocket, buffer: &mut [u8]| receive(cpus, busy, || socket.recv(buffer));
    echo(
        cpus,
        size,
        |octets| near.send(octets),
        |buffer| receive(&near, buffer),
        |octets| far.send(octets),
        |buffer| receive(&far, buffer),
    )
}

/// Round trips of datagrams between Unix sockets.
pub(super) fn unix(cpus: Cpus, size: u64) -> io::Result<Vec<u64>> {
    let (near, far) = UnixDatagram::pair()?;
    for socket in [&near, &far] {
        SockRef::from(socket).set_send_buffer_size(BUFFER)?;
        socket.set_read_timeout(Some(PATIENCE))?;
    }
    echo(
        cpus,
        size,
        |octets| near.send(octets),
        |buffer| near.recv(buffer),
        |octets| far.send(octets),
        |buffer| far.recv(buffer),
    )
}

fn receive(cpus: Cpus, busy: bool, mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    let begin_ns = now_ns();
    loop {
        match call() {
            Err(error) if busy && error.kind() == ErrorKind::WouldBlock => {
                if now_ns().saturating_sub(begin_ns) > PATIENCE.as_nanos() as u64 {
                    return Err(error);
                }
                cpus.relax();
            }
            other => return other,
        }
    }
}

/// Sends to a thread that sends back, until an empty datagram.
fn echo(
    cpus: Cpus,
    size: u64,
    send: impl Fn(&[u8]) -> io::Result<usize>,
    receive: impl Fn(&mut [u8]) -> io::Result<usize>,
    send_back: impl Fn(&[u8]) -> io::Result<usize> + Send,
    receive_there: impl Fn(&mut [u8]) -> io::Result<usize> + Send,
) -> io::Result<Vec<u64>> {
    let octets = vec![1; size as usize];
    let mut buffer = vec![0; 1 << 16];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            cpus.pin(true);
            let mut buffer = vec![0; 1 << 16];
            while let Ok(octets) = receive_there(&mut buffer) {
                if octets == 0 || send_back(&buffer[..octets.min(buffer.len())]).is_err() {
                    break;
                }
            }
        });
        let times = trips(|| {
            send(&octets)?;
            receive(&mut buffer).map(drop)
        });
        send(&[])?;
        times
    })
}

/// Datagrams received a second while another thread sends as fast as it can; `offload`: the kernel cuts and
/// joins them.
pub(super) fn flow(cpus: Cpus, size: u64, offload: bool) -> io::Result<f64> {
    let (from, to) = pair()?;
    let segments = if offload { (SEGMENTED / size as usize).clamp(1, SEGMENTS) } else { 1 };
    if offload {
        set_udp_segment(&from, u16::try_from(size).map_err(io::Error::other)?)?;
        set_udp_gro(&to)?;
    }
    to.set_read_timeout(Some(Duration::from_millis(20)))?;
    let octets = vec![1; size as usize * segments];
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let running = &running;
        scope.spawn(move || {
            cpus.pin(true);
            while running.load(Ordering::Relaxed) {
                // What finds no room is lost, and not received.
                let _ = from.send(&octets);
            }
        });
        let mut buffer = vec![0; 1 << 17];
        let (begin_ns, mut received) = (now_ns(), 0_u64);
        let result = loop {
            match to.recv(&mut buffer) {
                Ok(octets) => received += octets as u64 / size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => break Err(error),
            }
            let took_ns = now_ns().saturating_sub(begin_ns);
            if took_ns >= FLOW_NS {
                break Ok(received as f64 * 1e9 / took_ns as f64);
            }
        };
        running.store(false, Ordering::Relaxed);
        result
    })
}
