//! Floors of sockets: what a datagram costs without any product. A sample is one datagram; one above 65,000
//! octets is cut.
//!
//! Workers of one host find each other through the scratch directory; those of other hosts (`peers`) are
//! asked, on ports made of domain and topic. There is no QoS: what the kernel drops is lost. There are no
//! listeners: the worker's own thread reads.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plainsong_perfkit::adapter::{Reader, Session, Sink, Writer};
use plainsong_perfkit::clock::{now_ns, to_ns};
use plainsong_perfkit::spec::{EndpointSpec, ReadMethod, SessionSpec};
use plainsong_perfkit::{Adapter, Description, Failure, Sample};
use socket2::{SockAddr, SockRef};

use super::other_hosts;
use super::registry::{Entry, Place, Side, hash};

/// Octets of payload in a datagram.
const PIECE: usize = 65_000;
/// Octets before them: instance, octets of the whole sample, place of this piece, writer; each a u32.
const HEADER: usize = 16;
/// Asked of the kernel for each socket.
const SOCKET_BUFFER: usize = 4 << 20;
/// Instead of the octets of a sample: a question or its answer.
const CONTROL: u32 = u32::MAX;
const QUESTION: u32 = 1;
const ANSWER: u32 = 2;
/// Readers of a topic on another host that can be found.
const SLOTS: u16 = 64;
/// Time between questions.
const ASKING_NS: u64 = 20_000_000;
/// A thread that blocks looks this often whether it should end.
const PATIENCE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Udp,
    UdpBusy,
    Unix,
}

/// The floor of one kind.
pub(super) struct Floor {
    kind: Kind,
}

impl Floor {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind }
    }
}

impl Adapter for Floor {
    fn description(&self) -> Description {
        let product = match self.kind {
            Kind::Udp => "UDP sockets",
            Kind::UdpBusy => "UDP sockets, busy",
            Kind::Unix => "Unix sockets",
        };
        Description {
            product: product.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features: ["waitset", "polling", "best_effort", "unicast"].map(str::to_owned).to_vec(),
        }
    }

    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure> {
        if spec.multicast == Some(true) {
            return Err(Failure::Unsupported("this floor sends by unicast only".to_owned()));
        }
        let spec = SessionSpec { peers: other_hosts(spec), ..spec.clone() };
        if self.kind == Kind::Unix && !spec.peers.is_empty() {
            return Err(Failure::Unsupported("Unix sockets reach no other host".to_owned()));
        }
        Ok(Box::new(Joined { kind: self.kind, spec }))
    }
}

struct Joined {
    kind: Kind,
    spec: SessionSpec,
}

/// A socket of either family.
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

/// Where a sample goes. A Unix socket for each reader saves the kernel the way to its name.
enum Destination {
    Udp(SockAddr),
    Unix(UnixDatagram),
}

fn failed(what: &str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::Failed(format!("{what}: {error}"))
}

impl Socket {
    fn prepare(&self) -> io::Result<()> {
        let socket = match self {
            Self::Udp(socket) => SockRef::from(socket),
            Self::Unix(socket) => SockRef::from(socket),
        };
        socket.set_recv_buffer_size(SOCKET_BUFFER)?;
        socket.set_send_buffer_size(SOCKET_BUFFER)
    }

    fn set_blocking(&self, timeout: Option<Duration>) -> io::Result<()> {
        match (self, timeout) {
            (Self::Udp(socket), None) => socket.set_nonblocking(true),
            (Self::Unix(socket), None) => socket.set_nonblocking(true),
            (Self::Udp(socket), timeout) => socket.set_read_timeout(timeout),
            (Self::Unix(socket), timeout) => socket.set_read_timeout(timeout),
        }
    }

    /// The octets of the next datagram and who sent it; `None` if there is none in time.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<SocketAddr>)>> {
        let received = match self {
            Self::Udp(socket) => socket.recv_from(buffer).map(|(octets, from)| (octets, Some(from))),
            Self::Unix(socket) => socket.recv(buffer).map(|octets| (octets, None)),
        };
        match received {
            Ok(received) => Ok(Some(received)),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Nothing there, or news of someone who has left.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}

fn header(instance: u32, total: u32, offset: u32, writer: u32) -> [u8; HEADER] {
    let mut octets = [0; HEADER];
    for (field, value) in octets.chunks_exact_mut(4).zip([instance, total, offset, writer]) {
        field.copy_from_slice(&value.to_le_bytes());
    }
    octets
}

impl Joined {
    fn address(&self) -> Result<IpAddr, Failure> {
        let Some(listen) = &self.spec.listen else { return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)) };
        listen.parse().map_err(|_| Failure::Failed(format!("listen: {listen} is not an address")))
    }

    /// The first of the ports at which readers of a topic can be found without a directory.
    fn first_port(&self, topic: &str) -> u16 {
        20_000 + (hash(&(self.spec.domain, topic)) % 150) as u16 * SLOTS
    }

    fn reader_socket(&self, place: &Place, topic: &str) -> Result<(Socket, String), Failure> {
        if self.kind == Kind::Unix {
            let path = place.own_path();
            let socket = UnixDatagram::bind(&path).map_err(failed("binding a Unix socket"))?;
            return Ok((Socket::Unix(socket), path.to_string_lossy().into_owned()));
        }
        let address = self.address()?;
        let first = self.first_port(topic);
        let ports = if self.spec.peers.is_empty() { 0..1 } else { first..first + SLOTS };
        let socket = ports.into_iter().find_map(|port| UdpSocket::bind((address, port)).ok());
        let socket =
            socket.ok_or_else(|| Failure::Failed(format!("no port of {address} from {first} on is free")))?;
        let bound = socket.local_addr().map_err(failed("the address of a socket"))?;
        Ok((Socket::Udp(socket), bound.to_string()))
    }

    fn peer_ports(&self, topic: &str) -> Result<Vec<SocketAddr>, Failure> {
        let first = self.first_port(topic);
        let mut ports = Vec::new();
        for peer in &self.spec.peers {
            let host = (peer.as_str(), first).to_socket_addrs().map_err(failed(peer))?;
            let Some(host) = host.into_iter().next() else { continue };
            ports.extend((first..first + SLOTS).map(|port| SocketAddr::new(host.ip(), port)));
        }
        Ok(ports)
    }
}

impl Session for Joined {
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        let place = Place::new(&self.spec.scratch, self.spec.domain, &endpoint.topic)?;
        let socket = UdpSocket::bind((self.address()?, 0)).map_err(failed("binding a socket"))?;
        SockRef::from(&socket).set_send_buffer_size(SOCKET_BUFFER).map_err(failed("a socket option"))?;
        let entry = place.register(Side::Writer, "")?;
        let asked = self.peer_ports(&endpoint.topic)?;
        Ok(Box::new(Sending { place, entry, socket, destinations: BTreeMap::new(), asked, asked_ns: 0 }))
    }

    fn reader(&mut self, endpoint: &EndpointSpec, sink: Sink) -> Result<Box<dyn Reader>, Failure> {
        let place = Place::new(&self.spec.scratch, self.spec.domain, &endpoint.topic)?;
        let (socket, address) = self.reader_socket(&place, &endpoint.topic)?;
        socket.prepare().map_err(failed("a socket option"))?;
        let busy = self.kind == Kind::UdpBusy || matches!(endpoint.read, ReadMethod::Polling { .. });
        socket.set_blocking((!busy).then_some(PATIENCE)).map_err(failed("a socket option"))?;
        let socket_path = (self.kind == Kind::Unix).then(|| PathBuf::from(&address));
        let entry = place.register(Side::Reader, &address)?;
        let heard = Arc::new(Mutex::new(HashSet::new()));
        let receiving = Receiving {
            socket,
            busy,
            timeout: PATIENCE,
            buffer: vec![0; HEADER + PIECE],
            pending: None,
            partial: HashMap::new(),
            sink,
            id: entry.id,
            heard: Arc::clone(&heard),
        };
        Ok(Box::new(Hearing { place, _entry: entry, socket_path, heard, receiving }))
    }
}

struct Sending {
    place: Place,
    entry: Entry,
    socket: UdpSocket,
    destinations: BTreeMap<u32, Destination>,
    asked: Vec<SocketAddr>,
    asked_ns: u64,
}

impl Sending {
    /// Asks other hosts for readers, and adds those that answer.
    fn ask(&mut self) -> io::Result<()> {
        if self.asked.is_empty() {
            return Ok(());
        }
        let now_ns = now_ns();
        if now_ns.saturating_sub(self.asked_ns) >= ASKING_NS {
            self.asked_ns = now_ns;
            let question = header(0, CONTROL, QUESTION, self.entry.id);
            for port in &self.asked {
                // A host that is not there yet is asked again.
                let _ = self.socket.send_to(&question, port);
            }
        }
        self.socket.set_nonblocking(true)?;
        let mut answer = [0; HEADER];
        while let Ok((octets, from)) = self.socket.recv_from(&mut answer) {
            if let Some([_, CONTROL, ANSWER, reader]) = fields(answer.get(..octets).unwrap_or_default()) {
                self.destinations.insert(reader, Destination::Udp(from.into()));
            }
        }
        self.socket.set_nonblocking(false)
    }

    fn look(&mut self) -> Result<(), Failure> {
        let readers = self.place.find(Side::Reader);
        // Those found by asking have addresses of other hosts, which are in no directory.
        for (id, address) in readers {
            if self.destinations.contains_key(&id) {
                continue;
            }
            let destination = match address.parse::<SocketAddr>() {
                Ok(address) => Destination::Udp(address.into()),
                Err(_) => {
                    let socket = UnixDatagram::unbound().map_err(failed("making a Unix socket"))?;
                    SockRef::from(&socket)
                        .set_send_buffer_size(SOCKET_BUFFER)
                        .map_err(failed("a socket option"))?;
                    // It may have left in the meantime.
                    if socket.connect(&address).is_err() {
                        continue;
                    }
                    Destination::Unix(socket)
                }
            };
            self.destinations.insert(id, destination);
        }
        self.ask().map_err(failed("asking other hosts"))
    }
}

/// The fields of a header, if there is a whole one.
fn fields(datagram: &[u8]) -> Option<[u32; 4]> {
    let (header, _) = datagram.split_first_chunk::<HEADER>()?;
    let mut fields = [0; 4];
    for (field, octets) in fields.iter_mut().zip(header.chunks_exact(4)) {
        *field = u32::from_le_bytes(octets.try_into().ok()?);
    }
    Some(fields)
}

impl Writer for Sending {
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        let total = u32::try_from(payload.len()).ok().filter(|total| *total != CONTROL);
        let total = total.ok_or_else(|| Failure::Unsupported("a sample of 4 GiB or more".to_owned()))?;
        let mut offset = 0;
        // Also an empty sample is a datagram.
        for piece in payload.chunks(PIECE).chain(payload.is_empty().then_some(payload)) {
            let header = header(instance, total, offset, self.entry.id);
            let parts = [IoSlice::new(&header), IoSlice::new(piece)];
            for destination in self.destinations.values() {
                let sent = match destination {
                    Destination::Udp(address) => {
                        SockRef::from(&self.socket).send_to_vectored(&parts, address)
                    }
                    Destination::Unix(socket) => SockRef::from(socket).send_vectored(&parts),
                };
                match sent {
                    Err(error) if !is_nothing(&error) => return Err(failed("sending")(error)),
                    _ => {}
                }
            }
            offset = offset.wrapping_add(piece.len() as u32);
        }
        Ok(())
    }

    fn matched(&mut self) -> u32 {
        // What cannot be reached is not matched, and looked at again.
        let _ = self.look();
        u32::try_from(self.destinations.len()).unwrap_or(u32::MAX)
    }
}

/// A sample that is coming in pieces.
#[derive(Default)]
struct Partial {
    instance: u32,
    total: u32,
    octets: Vec<u8>,
}

struct Receiving {
    socket: Socket,
    busy: bool,
    timeout: Duration,
    buffer: Vec<u8>,
    /// A datagram in the buffer that has not been looked at.
    pending: Option<(usize, Option<SocketAddr>)>,
    partial: HashMap<u32, Partial>,
    sink: Sink,
    id: u32,
    heard: Arc<Mutex<HashSet<u32>>>,
}

impl Receiving {
    /// The samples that a datagram completes: none or one.
    fn handle(&mut self, octets: usize, from: Option<SocketAddr>) -> u64 {
        let datagram = self.buffer.get(..octets).unwrap_or_default();
        let Some([instance, total, offset, writer]) = fields(datagram) else { return 0 };
        let piece = datagram.get(HEADER..).unwrap_or_default();
        if total == CONTROL {
            if let (Socket::Udp(socket), Some(from), QUESTION) = (&self.socket, from, offset) {
                self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(writer);
                // Whoever does not get it asks again.
                let _ = socket.send_to(&header(0, CONTROL, ANSWER, self.id), from);
            }
            return 0;
        }
        if piece.len() as u64 == u64::from(total) {
            (self.sink)(Sample { instance, payload: piece });
            return 1;
        }
        let partial = self.partial.entry(writer).or_default();
        if offset == 0 {
            *partial = Partial { instance, total, octets: std::mem::take(&mut partial.octets) };
            partial.octets.clear();
        }
        let expected = (partial.instance, partial.total, partial.octets.len() as u64);
        if expected != (instance, total, u64::from(offset)) {
            // A piece was lost, and the sample with it.
            partial.total = 0;
            return 0;
        }
        partial.octets.extend_from_slice(piece);
        if partial.octets.len() as u64 != u64::from(total) {
            return 0;
        }
        (self.sink)(Sample { instance, payload: &partial.octets });
        1
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        if self.pending.is_some() {
            return Ok(true);
        }
        if !self.busy && timeout != self.timeout {
            self.socket.set_blocking(Some(timeout.max(Duration::from_micros(1))))?;
            self.timeout = timeout;
        }
        let until_ns = now_ns().saturating_add(to_ns(timeout));
        loop {
            self.pending = self.socket.receive(&mut self.buffer)?;
            if self.pending.is_some() || !self.busy || now_ns() >= until_ns {
                return Ok(self.pending.is_some());
            }
            std::hint::spin_loop();
        }
    }

    fn take(&mut self) -> io::Result<u64> {
        let mut count = 0;
        if let Some((octets, from)) = self.pending.take() {
            count += self.handle(octets, from);
        }
        while self.busy
            && let Some((octets, from)) = self.socket.receive(&mut self.buffer)?
        {
            count += self.handle(octets, from);
        }
        Ok(count)
    }
}

struct Hearing {
    place: Place,
    _entry: Entry,
    /// The file of a Unix socket, which outlives the socket.
    socket_path: Option<PathBuf>,
    heard: Arc<Mutex<HashSet<u32>>>,
    receiving: Receiving,
}

impl Drop for Hearing {
    fn drop(&mut self) {
        if let Some(path) = &self.socket_path {
            // A directory that is already gone has no such file either.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Reader for Hearing {
    fn matched(&mut self) -> u32 {
        // Questions of other hosts; there are no samples before the start.
        let receiving = &mut self.receiving;
        let _ = receiving.wait(Duration::from_micros(1)).and_then(|_| receiving.take());
        let mut writers: HashSet<u32> = self.place.find(Side::Writer).into_keys().collect();
        writers.extend(self.heard.lock().unwrap_or_else(PoisonError::into_inner).iter());
        u32::try_from(writers.len()).unwrap_or(u32::MAX)
    }

    fn take(&mut self) -> Result<u64, Failure> {
        self.receiving.take().map_err(failed("receiving"))
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure> {
        self.receiving.wait(timeout).map_err(failed("receiving"))
    }
}
