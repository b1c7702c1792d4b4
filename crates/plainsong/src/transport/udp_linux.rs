//! UDP on Linux: many datagrams for one system call, no copy of payloads, the interface chosen for each datagram.

#![allow(unsafe_code, reason = "sendmmsg, recvmmsg, poll and control messages have no safe wrapper")]

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::{size_of, zeroed};
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use socket2::{SockAddr, SockAddrStorage, Socket as Raw};

use super::netlink::Watcher;
use super::socket::{BufferSizes, Socket};
use super::{Ready, Received, Refused, Via};

/// Messages for one call of sendmmsg.
const SEND_MESSAGES_MAX: usize = 64;
/// Slots of one call of recvmmsg.
const RECEIVE_SLOTS: usize = 32;
/// Any UDP datagram fits.
const SLOT_BYTES: usize = 1 << 16;

/// Room for one IP_PKTINFO or IPV6_PKTINFO control message, and one of the traffic class.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

const CONTROL_BYTES: usize = 64;

/// Sets what `socket2` does not know: buffers beyond the usual limit, and the interface of each datagram.
pub(super) fn prepare(raw: &Raw, ipv4: bool, sizes: BufferSizes) -> io::Result<()> {
    let bytes = |size: usize| libc::c_int::try_from(size).unwrap_or(libc::c_int::MAX);
    // Beyond the limit with CAP_NET_ADMIN, else up to the limit.
    if set_option(raw, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes(sizes.receive_bytes)).is_err() {
        raw.set_recv_buffer_size(sizes.receive_bytes)?;
    }
    if set_option(raw, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes(sizes.send_bytes)).is_err() {
        raw.set_send_buffer_size(sizes.send_bytes)?;
    }
    if ipv4 {
        set_option(raw, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    } else {
        set_option(raw, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    }
}

fn set_option(raw: &Raw, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer and size describe `value`, which outlives the call.
    let result =
        unsafe { libc::setsockopt(raw.as_raw_fd(), level, name, ptr::from_ref(&value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Datagrams on their way out. Memory is this thread's and reused.
pub(crate) struct Sender<'a> {
    memory: Box<SendMemory>,
    socket: Option<&'a Socket>,
    current: Range<usize>,
    traffic_class: u8,
    refused: &'a Refused<'a>,
    /// The slices that `memory.slices` points to.
    borrowed: PhantomData<&'a [u8]>,
}

#[derive(Default)]
struct SendMemory {
    slices: Vec<libc::iovec>,
    messages: Vec<Message>,
    headers: Vec<libc::mmsghdr>,
}

struct Message {
    slices: Range<usize>,
    to: SockAddr,
    via: Option<Via>,
    control: Control,
}

thread_local! {
    static SEND_MEMORY: Cell<Option<Box<SendMemory>>> = const { Cell::new(None) };
}

impl<'a> Sender<'a> {
    /// `refused` is told of each datagram that the host does not take. The traffic class is the octet of the
    /// IP header that holds the DSCP.
    pub(crate) fn new(traffic_class: u8, refused: &'a Refused<'a>) -> Self {
        let memory = SEND_MEMORY.take().unwrap_or_default();
        Self { memory, socket: None, current: 0..0, traffic_class, refused, borrowed: PhantomData }
    }

    /// The datagram that the following calls of [`Sender::to`] are about.
    pub(crate) fn datagram(&mut self, slices: impl Iterator<Item = &'a [u8]>) {
        if self.memory.messages.is_empty() {
            self.memory.slices.clear();
        }
        let start = self.memory.slices.len();
        self.memory.slices.extend(
            slices.map(|slice| libc::iovec {
                iov_base: slice.as_ptr().cast_mut().cast(),
                iov_len: slice.len(),
            }),
        );
        self.current = start..self.memory.slices.len();
    }

    /// Sends the datagram to `to`. A scope id says where IPv6 leaves, `via` the same for IPv4.
    pub(crate) fn to(&mut self, socket: &'a Socket, to: SocketAddr, via: Option<Via>) {
        let other_socket = self.socket.is_some_and(|before| !ptr::eq(before, socket));
        if other_socket || self.memory.messages.len() == SEND_MESSAGES_MAX {
            self.flush();
        }
        self.socket = Some(socket);
        let control = Control([0; CONTROL_BYTES]);
        let slices = self.current.clone();
        self.memory.messages.push(Message { slices, to: to.into(), via, control });
    }

    /// Sends what is still held.
    pub(crate) fn finish(mut self) {
        self.flush();
        self.memory.slices.clear();
        SEND_MEMORY.set(Some(self.memory));
    }

    fn flush(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        let SendMemory { slices, messages, headers } = &mut *self.memory;
        headers.clear();
        let traffic_class = self.traffic_class;
        headers.extend(messages.iter_mut().map(|message| message.header(slices, traffic_class)));
        let mut sent = 0;
        while sent < headers.len() {
            match send(socket.raw.as_raw_fd(), &mut headers[sent..]) {
                Ok(count) => sent += count.max(1),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // It is about the first one; the rest still goes out.
                    (self.refused)(messages[sent].via.map_or(0, |via| via.interface), &error);
                    sent += 1;
                }
            }
        }
        headers.clear();
        messages.clear();
    }
}

impl Message {
    fn header(&mut self, slices: &mut [libc::iovec], traffic_class: u8) -> libc::mmsghdr {
        let slices = &mut slices[self.slices.clone()];
        // SAFETY: all-zero is a valid msghdr: no name, no slices, no control.
        let mut header: libc::mmsghdr = unsafe { zeroed() };
        let fields = &mut header.msg_hdr;
        fields.msg_name = self.to.as_ptr().cast_mut().cast();
        fields.msg_namelen = self.to.len();
        fields.msg_iov = slices.as_mut_ptr();
        fields.msg_iovlen = slices.len() as _;
        let ipv4 = self.to.is_ipv4();
        let via = self.via.filter(|_| ipv4).map(|via| libc::in_pktinfo {
            ipi_ifindex: via.interface.cast_signed(),
            ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(via.source.octets()) },
            ipi_addr: libc::in_addr { s_addr: 0 },
        });
        let mut used = 0;
        if let Some(info) = via {
            used += self.control.put(used, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        if traffic_class != 0 {
            let (level, kind) =
                if ipv4 { (libc::IPPROTO_IP, libc::IP_TOS) } else { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) };
            used += self.control.put(used, level, kind, libc::c_int::from(traffic_class));
        }
        if used > 0 {
            fields.msg_control = self.control.0.as_mut_ptr().cast();
            fields.msg_controllen = used as _;
        }
        header
    }
}

impl Control {
    /// Writes a control message behind `used` octets; the octets it takes.
    fn put<T: Copy>(&mut self, used: usize, level: libc::c_int, kind: libc::c_int, value: T) -> usize {
        let bytes = size_of::<T>() as libc::c_uint;
        // SAFETY: only computes.
        let (space, len) = unsafe { (libc::CMSG_SPACE(bytes) as usize, libc::CMSG_LEN(bytes)) };
        let place = &mut self.0[used..used + space];
        let header = place.as_mut_ptr().cast::<libc::cmsghdr>();
        // SAFETY: `place` has room for the header and the value, as CMSG_SPACE says; it is written unaligned.
        unsafe {
            let mut control: libc::cmsghdr = zeroed();
            control.cmsg_level = level;
            control.cmsg_type = kind;
            control.cmsg_len = len as _;
            ptr::write_unaligned(header, control);
            ptr::write_unaligned(libc::CMSG_DATA(header).cast(), value);
        }
        space
    }
}

/// Sends at least the first message, or says why that was refused.
fn send(fd: RawFd, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
    let result = match headers {
        // SAFETY: name, slices and control of the header point into `SendMemory` and into octets borrowed for as
        // long as the `Sender` lives; none of them moved since the header was made.
        [one] => unsafe { libc::sendmsg(fd, &raw const one.msg_hdr, libc::MSG_NOSIGNAL).min(1) },
        // SAFETY: as above, for each header; the count is that of the slice.
        many => unsafe {
            let count = many.len() as libc::c_uint;
            libc::sendmmsg(fd, many.as_mut_ptr(), count, libc::MSG_NOSIGNAL as _) as isize
        },
    };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Slots that datagrams arrive in. Allocated once for each receive thread.
pub(crate) struct Receiver {
    slots: Vec<u8>,
    names: Vec<SockAddrStorage>,
    controls: Vec<Control>,
    slices: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self {
            // Zeroed pages cost nothing until a datagram lands in them.
            slots: vec![0; RECEIVE_SLOTS * SLOT_BYTES],
            names: (0..RECEIVE_SLOTS).map(|_| SockAddrStorage::zeroed()).collect(),
            controls: vec![Control([0; CONTROL_BYTES]); RECEIVE_SLOTS],
            slices: Vec::with_capacity(RECEIVE_SLOTS),
            headers: Vec::with_capacity(RECEIVE_SLOTS),
        }
    }

    /// Receives what is there, at most all slots; with `wait`, blocks until there is something. The datagrams
    /// stay until the next call.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        wait: bool,
    ) -> io::Result<impl Iterator<Item = Received<'_>>> {
        self.prepare();
        let flags = if wait { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        let headers = self.headers.as_mut_ptr();
        let fd = socket.raw.as_raw_fd();
        // SAFETY: each header's name, slice and control point to its own part of `self`, all of which stay in
        // place, borrowed, until the next call.
        let count = unsafe { libc::recvmmsg(fd, headers, RECEIVE_SLOTS as _, flags as _, ptr::null_mut()) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let headers = self.headers.iter().zip(&self.names).zip(self.slots.chunks(SLOT_BYTES));
        Ok(headers.take(count).filter_map(|((header, name), slot)| received(header, name, slot)))
    }

    /// The kernel overwrites lengths, so every header is made anew.
    fn prepare(&mut self) {
        self.headers.clear();
        self.slices.clear();
        self.slices.extend(
            self.slots
                .chunks_mut(SLOT_BYTES)
                .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() }),
        );
        for ((name, slice), control) in self.names.iter_mut().zip(&mut self.slices).zip(&mut self.controls) {
            // SAFETY: all-zero is a valid msghdr.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            let fields = &mut header.msg_hdr;
            fields.msg_name = ptr::from_mut(name).cast();
            fields.msg_namelen = name.size_of();
            fields.msg_iov = slice;
            fields.msg_iovlen = 1;
            fields.msg_control = control.0.as_mut_ptr().cast();
            fields.msg_controllen = CONTROL_BYTES as _;
            self.headers.push(header);
        }
    }
}

/// What one slot holds; `None` for a datagram that did not fit, or the empty answer of a socket shut down.
fn received<'a>(header: &libc::mmsghdr, name: &SockAddrStorage, slot: &'a [u8]) -> Option<Received<'a>> {
    let fields = &header.msg_hdr;
    if fields.msg_flags & libc::MSG_TRUNC != 0 || fields.msg_namelen == 0 {
        return None;
    }
    // SAFETY: the kernel wrote an address of `msg_namelen` octets into this storage; the rest is initialised too.
    let from = unsafe { SockAddr::new(ptr::read(name), fields.msg_namelen) }.as_socket()?;
    let bytes = slot.get(..header.msg_len as usize)?;
    Some(Received { from, interface: interface(fields), bytes })
}

/// The interface a datagram arrived on; 0 when the host did not say.
fn interface(fields: &libc::msghdr) -> u32 {
    // SAFETY: the control octets belong to the header and were written by the kernel up to `msg_controllen`;
    // the CMSG macros stay within that, and the data is read unaligned only for its own type.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(fields);
        while !control.is_null() {
            let data = libc::CMSG_DATA(control);
            match ((*control).cmsg_level, (*control).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    return ptr::read_unaligned(data.cast::<libc::in_pktinfo>()).ipi_ifindex.cast_unsigned();
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    return ptr::read_unaligned(data.cast::<libc::in6_pktinfo>()).ipi6_ifindex;
                }
                _ => control = libc::CMSG_NXTHDR(fields, control),
            }
        }
    }
    0
}

/// Ends a [`wait`] from another thread, once and for all.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; the descriptor it returns is owned by nobody else.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above; `fd` is a descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn wake(&self) {
        let one = 1_u64;
        // SAFETY: writes eight octets of a local variable. A full counter is a wake as well.
        unsafe { libc::write(self.0.as_raw_fd(), ptr::from_ref(&one).cast(), size_of::<u64>()) };
    }
}

/// Blocks until a socket has something, an interface changed, or the waker was used.
pub(crate) fn wait(sockets: &[&Socket], watcher: Option<&Watcher>, waker: &Waker) -> io::Result<Ready> {
    const DESCRIPTORS_MAX: usize = 8;
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; DESCRIPTORS_MAX];
    // Negative descriptors are skipped by poll.
    let descriptors = [waker.0.as_raw_fd(), watcher.map_or(-1, AsRawFd::as_raw_fd)];
    let sockets = sockets.iter().map(|socket| socket.raw.as_raw_fd());
    for (entry, fd) in polled.iter_mut().zip(descriptors.into_iter().chain(sockets)) {
        entry.fd = fd;
    }
    // SAFETY: the pointer and count describe `polled`.
    let result = unsafe { libc::poll(polled.as_mut_ptr(), DESCRIPTORS_MAX as _, -1) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let [_, interfaces, sockets @ ..] = polled.map(|entry| entry.revents != 0);
    Ok(Ready { interfaces, sockets })
}
