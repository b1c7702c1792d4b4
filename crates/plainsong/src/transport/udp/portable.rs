//! UDP with nothing but portable sockets: one system call for each datagram, interfaces looked at now and
//! then.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use plainsong_proto::locator::Locator;
use socket2::Socket as Raw;

use super::socket::{BufferSizes, Socket};
use super::{META_SOCKETS_MAX, Ready, Received, Refused, TooLong, Via, WokenBy};
use crate::base::locks::lock;

const SLOT_BYTES: usize = 1 << 16;
/// How often the metatraffic thread looks at its sockets, and the user thread whether it shall end.
const LOOK_PERIOD: Duration = Duration::from_millis(5);
const STOP_PERIOD: Duration = Duration::from_millis(100);
/// Looks of the metatraffic thread between two at the interfaces: 5 s.
const INTERFACES_LOOKS: u32 = 1000;

/// Serialises "choose an interface, send": the choice belongs to the socket.
static MULTICAST_SEND: Mutex<()> = Mutex::new(());

/// What the kernel does with many datagrams at once: nothing that all of them could.
#[derive(Debug, Default)]
pub(crate) struct Offload;

impl Offload {
    /// How often the kernel did not cut what it was asked to: it never is.
    pub(crate) const fn uncut(&self) -> u64 {
        0
    }
}

pub(super) fn prepare(raw: &Raw, _ipv4: bool, sizes: BufferSizes) -> io::Result<Offload> {
    // The host may have a lower limit; what it grants is enough to work.
    let _ = raw.set_recv_buffer_size(sizes.receive_bytes);
    let _ = raw.set_send_buffer_size(sizes.send_bytes);
    Ok(Offload)
}

/// Portable sockets do not tell.
pub(super) const fn overflows(_: &Socket) -> u64 {
    0
}

/// Portable sockets say nothing of interfaces.
pub(super) fn disable_pktinfo(_raw: &Raw, _ipv4: bool) -> io::Result<()> {
    Ok(())
}

/// Portable sockets cannot be told so.
pub(super) fn leave_whole(_raw: &Raw, _ipv4: bool) -> io::Result<()> {
    Ok(())
}

/// What the path to an address takes: portable sockets do not know.
pub(super) fn path_mtu(_address: IpAddr) -> Option<usize> {
    None
}

/// Datagrams on their way out.
pub(crate) struct Sender<'a> {
    slices: Vec<IoSlice<'a>>,
    refused: &'a Refused<'a>,
}

impl<'a> Sender<'a> {
    /// `refused` is told of each datagram that the host does not take. Portable sockets know no traffic class
    /// of one datagram: TRANSPORT_PRIORITY, a hint, marks nothing here.
    pub(crate) fn new(_traffic_class: u8, refused: &'a Refused<'a>, _too_long: &'a TooLong<'a>) -> Self {
        Self { slices: Vec::new(), refused }
    }

    /// The datagram that the following calls of [`Sender::to`] are about.
    pub(crate) fn datagram(&mut self, slices: impl Iterator<Item = &'a [u8]>) {
        self.slices.clear();
        self.slices.extend(slices.map(IoSlice::new));
    }

    /// Sends the datagram to `to`; multicast leaves by `via`.
    pub(crate) fn to(&mut self, socket: &'a Socket, _cutting: &'a Socket, to: SocketAddr, via: Option<Via>) {
        let guard = via.is_some().then(|| lock(&MULTICAST_SEND));
        let chosen = via.map_or(Ok(()), |via| match to {
            SocketAddr::V4(_) => socket.raw.set_multicast_if_v4(&via.source),
            SocketAddr::V6(_) => socket.raw.set_multicast_if_v6(via.interface),
        });
        let sent = chosen.and_then(|()| socket.raw.send_to_vectored(&self.slices, &to.into()));
        drop(guard);
        if let Err(error) = sent {
            (self.refused)(via.map_or(0, |via| via.interface), &error);
        }
    }

    /// Nothing is held back here.
    pub(crate) fn finish(self) {}
}

/// A slot that datagrams arrive in. Allocated once for each receive thread.
pub(crate) struct Receiver(Vec<u8>);

impl Receiver {
    pub(crate) fn new() -> Self {
        Self(vec![0; SLOT_BYTES])
    }

    /// There is one slot anyway.
    pub(crate) const fn expect_one(&mut self) {}

    /// Hands on one datagram if there is one; with `wait`, blocks for it for a while.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        wait: bool,
        each: impl FnMut(Received<'_>),
    ) -> io::Result<()> {
        let timeout = if wait { STOP_PERIOD } else { Duration::from_micros(1) };
        socket.raw.set_read_timeout(Some(timeout))?;
        // Only std's socket fills initialised memory and tells the sender.
        let (length, from) = UdpSocket::from(socket.raw.try_clone()?).recv_from(&mut self.0)?;
        let from = Locator::udp(from.ip(), from.port());
        self.0
            .get(..length)
            .map(|bytes| Received { from, interface: 0, bytes, attachment: None })
            .into_iter()
            .for_each(each);
        Ok(())
    }
}

/// Ends a [`wait`] from another thread, once and for all.
#[derive(Debug, Default)]
pub(crate) struct Waker(AtomicBool);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(crate) fn wake(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Portable sockets cannot be waited for together with anything else: no thread of the application receives.
#[derive(Debug)]
pub(crate) enum ThreadWaker {}

impl ThreadWaker {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) const fn wake(&self) {
        match *self {}
    }

    pub(crate) const fn reset(&self) {
        match *self {}
    }
}

/// Sleeps a little: portable sockets cannot be waited for together.
pub(crate) fn await_any<'a>(
    _: impl Iterator<Item = &'a Socket>,
    _: Option<&ThreadWaker>,
    timeout: Option<Duration>,
) -> io::Result<WokenBy> {
    std::thread::sleep(timeout.map_or(LOOK_PERIOD, |timeout| timeout.min(LOOK_PERIOD)));
    Ok(WokenBy { datagram: true, waker: false })
}

/// There is none where nothing is put off.
#[derive(Debug)]
pub(crate) enum Alarm {}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) const fn set(&self, _: Duration) {
        match *self {}
    }

    pub(crate) const fn wait(&self) {
        match *self {}
    }
}

/// Knows when it is time to look at the interfaces again.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    looks: AtomicU32,
}

impl Watcher {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(crate) fn drain(&self) {}
}

/// Sleeps a little if it may, then lets the caller look at everything.
pub(crate) fn wait<'a>(
    _sockets: impl Iterator<Item = &'a Socket>,
    watcher: Option<&Watcher>,
    _waker: &Waker,
    blocks: bool,
) -> io::Result<Ready> {
    if blocks {
        std::thread::sleep(LOOK_PERIOD);
    }
    let looks = watcher.map_or(1, |watcher| watcher.looks.fetch_add(1, Ordering::Relaxed));
    Ok(Ready { interfaces: looks.is_multiple_of(INTERFACES_LOOKS), sockets: [true; META_SOCKETS_MAX] })
}
