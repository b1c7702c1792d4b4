//! UDP on Linux: many datagrams for one system call, no copy of payloads, the interface chosen for each
//! datagram.

#![allow(unsafe_code, reason = "sendmmsg, recvmmsg and control messages have no safe wrapper")]

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::{size_of, take, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{ptr, slice};

use plainsong_proto::locator::Locator;
use socket2::Socket as Raw;

use super::name::Name;
use super::socket::{BufferSizes, Socket};
pub(crate) use super::waiting::{Alarm, ThreadWaker, Waker, await_any, wait};
use super::{Received, Refused, TooLong, Via};

/// Messages for one call of sendmmsg. Each thread that sends keeps memory for as many as it once sent
/// together.
const SEND_MESSAGES_MAX: usize = 16;
/// Datagrams that the kernel cuts from one message at most, and their octets: what one UDP packet may have.
const SEGMENTS_MAX: usize = 64;
const SEGMENTED_BYTES_MAX: usize = 65_000;
/// Slices of one message: IOV_MAX.
const SLICES_MAX: usize = 1_024;
/// Messages in which the last one to the same destination is looked for.
const LOOK_BACK: usize = 8;
/// Slots of one call of recvmmsg: few while few datagrams come, as each takes some work.
const RECEIVE_SLOTS: usize = 8;
const RECEIVE_SLOTS_MIN: usize = 2;
/// After so many calls in a row that brought one datagram, one slot is offered, but each so many calls.
const LONE_MIN: u32 = 8;
const LONE_LOOK: u32 = 16;
/// Datagrams that are longer than this take so long to copy that many a call save nothing, and each slot that
/// one was in stays in memory: fewer slots are offered. Of the longest, each call forgets this part: the
/// short ones between long ones, HEARTBEATs among them, are few.
const LONG_BYTES: usize = SLOT_BYTES / 4;
const LONGEST_FORGETS: usize = 64;
/// Any UDP datagram fits.
const SLOT_BYTES: usize = 1 << 16;
/// Where in a page slots begin: processors with Zen 3 cores copy ten times more slowly to a place 1 to 31
/// octets behind the source, as far as the last twelve bits of their addresses tell, and the kernel's octets
/// mostly begin at a page or at the 45th octet of one.
const SLOT_OFFSET: usize = PAGE_BYTES / 2 + 32;
const PAGE_BYTES: usize = 1 << 12;

/// What the kernel does with many datagrams at once (`man 7 udp`): asked of each socket when it is made.
#[derive(Debug, Default)]
pub(crate) struct Offload {
    /// It cuts what is sent in one piece into datagrams (UDP_SEGMENT).
    segments: AtomicBool,
    /// Pieces that it did not cut, though it said it would: their datagrams went one by one.
    uncut: AtomicU64,
}

impl Offload {
    /// How often the kernel did not cut what it was asked to.
    pub(crate) fn uncut(&self) -> u64 {
        self.uncut.load(Ordering::Relaxed)
    }

    fn cuts(&self) -> bool {
        self.segments.load(Ordering::Relaxed)
    }

    /// A way without it, as of a device that computes no checksums: this socket does without from now on.
    fn give_up(&self) {
        self.uncut.fetch_add(1, Ordering::Relaxed);
        self.segments.store(false, Ordering::Relaxed);
    }
}

/// Room for one IP_PKTINFO or IPV6_PKTINFO control message, and one of the traffic class or of segments.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

const CONTROL_BYTES: usize = 64;

/// Sets what `socket2` does not know: buffers beyond the usual limit, and the interface of each datagram.
pub(super) fn prepare(raw: &Raw, ipv4: bool, sizes: BufferSizes) -> io::Result<Offload> {
    let bytes = |size: usize| libc::c_int::try_from(size).unwrap_or(libc::c_int::MAX);
    // Beyond the limit with CAP_NET_ADMIN, else up to the limit.
    if set_option(raw, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes(sizes.receive_bytes)).is_err() {
        raw.set_recv_buffer_size(sizes.receive_bytes)?;
    }
    if set_option(raw, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes(sizes.send_bytes)).is_err() {
        raw.set_send_buffer_size(sizes.send_bytes)?;
    }
    if ipv4 {
        set_option(raw, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    } else {
        set_option(raw, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
    }
    // Without it datagrams come one by one.
    let _ = set_option(raw, libc::SOL_UDP, libc::UDP_GRO, 1);
    // 0, the usual: datagrams are cut only where a message says so.
    let segments = set_option(raw, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
    Ok(Offload { segments: segments.into(), ..Offload::default() })
}

fn set_option(raw: &Raw, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer and size describe `value`, which outlives the call.
    let result =
        unsafe { libc::setsockopt(raw.as_raw_fd(), level, name, ptr::from_ref(&value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Datagrams that the kernel dropped because the socket's receive buffer had no room: what SO_RXQ_OVFL tells
/// with each datagram that follows, for the asking (SO_MEMINFO, Linux 4.12).
pub(super) fn overflows(socket: &Socket) -> u64 {
    const DROPS: usize = libc::SK_MEMINFO_DROPS as usize;
    let mut memory = [0_u32; DROPS + 1];
    let mut size = size_of_val(&memory) as libc::socklen_t;
    let fd = socket.raw.as_raw_fd();
    // SAFETY: the pointers and the size describe local variables. Where the kernel tells less, zeros stay.
    unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, memory.as_mut_ptr().cast(), &raw mut size);
    }
    memory[DROPS].into()
}

/// Nobody wants to know by which interface datagrams of this socket arrive: the kernel need not say.
pub(super) fn disable_pktinfo(raw: &Raw, ipv4: bool) -> io::Result<()> {
    if ipv4 {
        set_option(raw, libc::IPPROTO_IP, libc::IP_PKTINFO, 0)
    } else {
        set_option(raw, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 0)
    }
}

/// Datagrams of this socket are cut by nobody: what is longer than its path takes is refused, as soon as a
/// router has told.
pub(super) fn leave_whole(raw: &Raw, ipv4: bool) -> io::Result<()> {
    if ipv4 {
        set_option(raw, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
    } else {
        set_option(raw, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
    }
}

/// The MTU of the path to an address: that of the first link, or less if a router has told so lately.
pub(super) fn path_mtu(address: IpAddr) -> Option<usize> {
    let (from, level, name) = match address {
        IpAddr::V4(_) => (IpAddr::from(Ipv4Addr::UNSPECIFIED), libc::IPPROTO_IP, libc::IP_MTU),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let socket = UdpSocket::bind((from, 0)).ok()?;
    // Sends nothing: the host chooses a route. Any port will do.
    socket.connect((address, 9)).ok()?;
    let mut mtu: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointers describe `mtu` and `size`, which outlive the call.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, ptr::from_mut(&mut mtu).cast(), &raw mut size)
    };
    usize::try_from(mtu).ok().filter(|mtu| result == 0 && *mtu > 0)
}

/// Datagrams on their way out. Memory is this thread's and reused.
pub(crate) struct Sender<'a> {
    memory: Box<SendMemory>,
    socket: Option<&'a Socket>,
    /// What has to be cut by IP leaves here.
    cutting: Option<&'a Socket>,
    /// The datagram: its slices and its octets.
    current: Range<usize>,
    current_bytes: usize,
    traffic_class: u8,
    refused: &'a Refused<'a>,
    too_long: &'a TooLong<'a>,
    /// The slices that `memory.slices` points to.
    borrowed: PhantomData<&'a [u8]>,
}

#[derive(Default)]
struct SendMemory {
    slices: Vec<libc::iovec>,
    messages: Vec<Message>,
    /// At least as many as messages; few of these need any.
    controls: Vec<Control>,
    headers: Vec<libc::mmsghdr>,
}

/// One datagram, or several to the same destination that the kernel is to cut from one piece.
struct Message {
    slices: Range<usize>,
    /// Octets of all of it, and of each datagram but the last, which may have fewer.
    bytes: usize,
    segment_bytes: usize,
    datagrams: usize,
    to: SocketAddr,
    /// The same for the kernel.
    name: Name,
    via: Option<Via>,
}

thread_local! {
    static SEND_MEMORY: Cell<Option<Box<SendMemory>>> = const { Cell::new(None) };
}

impl<'a> Sender<'a> {
    /// `refused` is told of each datagram that the host does not take. The traffic class is the octet of the
    /// IP header that holds the DSCP.
    pub(crate) fn new(traffic_class: u8, refused: &'a Refused<'a>, too_long: &'a TooLong<'a>) -> Self {
        let memory = SEND_MEMORY.take().unwrap_or_default();
        Self {
            memory,
            socket: None,
            cutting: None,
            current: 0..0,
            current_bytes: 0,
            traffic_class,
            refused,
            too_long,
            borrowed: PhantomData,
        }
    }

    /// The datagram that the following calls of [`Sender::to`] are about.
    pub(crate) fn datagram(&mut self, slices: impl Iterator<Item = &'a [u8]>) {
        if self.memory.messages.is_empty() {
            self.memory.slices.clear();
        }
        let start = self.memory.slices.len();
        self.current_bytes = 0;
        self.memory.slices.extend(slices.map(|slice| {
            self.current_bytes += slice.len();
            libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: slice.len() }
        }));
        self.current = start..self.memory.slices.len();
    }

    /// Sends the datagram to `to`, by `cutting` if it is too long for the path. A scope id says where IPv6
    /// leaves, `via` the same for IPv4.
    pub(crate) fn to(&mut self, socket: &'a Socket, cutting: &'a Socket, to: SocketAddr, via: Option<Via>) {
        let other_socket = self.socket.is_some_and(|before| !ptr::eq(before, socket));
        if other_socket || self.memory.messages.len() == SEND_MESSAGES_MAX {
            self.flush();
        }
        self.socket = Some(socket);
        self.cutting = Some(cutting);
        let (slices, bytes) = (self.current.clone(), self.current_bytes);
        let memory = &mut *self.memory;
        if !memory.messages.is_empty()
            && via.is_none()
            && socket.offload.cuts()
            && memory.join(&slices, bytes, to)
        {
            return;
        }
        let name = Name::of(to);
        memory.messages.push(Message { slices, bytes, segment_bytes: bytes, datagrams: 1, to, name, via });
        if memory.controls.len() < memory.messages.len() {
            memory.controls.push(Control::EMPTY);
        }
    }

    /// Messages that wait to be sent.
    #[cfg(test)]
    pub(super) fn messages(&self) -> usize {
        self.memory.messages.len()
    }

    /// Sends what is still held.
    pub(crate) fn finish(mut self) {
        self.flush();
        self.memory.slices.clear();
        SEND_MEMORY.with(|memory| memory.set(Some(self.memory)));
    }

    fn flush(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        let cutting = self.cutting.take().unwrap_or(socket);
        let SendMemory { slices, messages, controls, headers } = &mut *self.memory;
        headers.clear();
        let traffic_class = self.traffic_class;
        headers.extend(messages.iter().zip(controls).map(|(message, control)| {
            let segment_bytes = (message.datagrams > 1).then_some(message.segment_bytes);
            message.header(&mut slices[message.slices.clone()], traffic_class, segment_bytes, control)
        }));
        let fd = socket.raw.as_raw_fd();
        let mut sent = 0;
        while sent < headers.len() {
            match send(fd, &mut headers[sent..]) {
                Ok(count) => sent += count.max(1),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // It is about the first one; the rest still goes out.
                    let (refused, too_long) = (self.refused, self.too_long);
                    let apart = Apart { socket, cutting, traffic_class, refused, too_long };
                    apart.send(&messages[sent], slices, error);
                    sent += 1;
                }
            }
        }
        headers.clear();
        messages.clear();
    }
}

impl SendMemory {
    /// Adds a datagram to the last message to its destination, if the kernel can cut it off again.
    fn join(&mut self, slices: &Range<usize>, bytes: usize, to: SocketAddr) -> bool {
        let last = self.messages.iter_mut().rev().take(LOOK_BACK).find(|message| message.to == to);
        let Some(message) = last.filter(|message| message.takes(slices, bytes)) else { return false };
        message.slices.end = slices.end;
        message.bytes += bytes;
        message.datagrams += 1;
        true
    }
}

impl Message {
    /// Whether a datagram can follow: all have the length of the first, but for the last, which may be
    /// shorter.
    fn takes(&self, slices: &Range<usize>, bytes: usize) -> bool {
        self.via.is_none()
            && self.slices.end == slices.start
            && slices.end - self.slices.start <= SLICES_MAX
            && self.bytes == self.datagrams * self.segment_bytes
            && (1..=self.segment_bytes).contains(&bytes)
            && self.datagrams < SEGMENTS_MAX
            && self.bytes + bytes <= SEGMENTED_BYTES_MAX
    }

    /// `slices` are its own, or those of one of its datagrams; `control` is written to if there is anything
    /// to say.
    fn header(
        &self,
        slices: &mut [libc::iovec],
        traffic_class: u8,
        segment_bytes: Option<usize>,
        control: &mut Control,
    ) -> libc::mmsghdr {
        // SAFETY: all-zero is a valid msghdr: no name, no slices, no control.
        let mut header: libc::mmsghdr = unsafe { zeroed() };
        let fields = &mut header.msg_hdr;
        fields.msg_name = ptr::from_ref(&self.name).cast_mut().cast();
        fields.msg_namelen = Name::bytes(self.to) as _;
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
            used += control.put(used, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        if traffic_class != 0 {
            let (level, kind) =
                if ipv4 { (libc::IPPROTO_IP, libc::IP_TOS) } else { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) };
            used += control.put(used, level, kind, libc::c_int::from(traffic_class));
        }
        if let Some(bytes) = segment_bytes.and_then(|bytes| u16::try_from(bytes).ok()) {
            used += control.put(used, libc::SOL_UDP, libc::UDP_SEGMENT, bytes);
        }
        if used > 0 {
            fields.msg_control = control.0.as_mut_ptr().cast();
            fields.msg_controllen = used as _;
        }
        header
    }
}

/// What becomes of messages that the kernel did not take.
struct Apart<'a> {
    socket: &'a Socket,
    cutting: &'a Socket,
    traffic_class: u8,
    refused: &'a Refused<'a>,
    too_long: &'a TooLong<'a>,
}

impl Apart<'_> {
    /// It gets the datagrams one after the other. Where that helps, the socket sends no more pieces.
    #[cold]
    fn send(&self, message: &Message, slices: &mut [libc::iovec], error: io::Error) {
        let mut rest = &mut slices[message.slices.clone()];
        if message.datagrams == 1 {
            self.was_refused(message, rest, error);
            return;
        }
        let (mut helped, mut fits) = (false, true);
        for _ in 0..message.datagrams {
            let mut bytes = 0;
            let within = |slice: &&libc::iovec| {
                bytes += slice.iov_len;
                bytes <= message.segment_bytes
            };
            let count = rest.iter().take_while(within).count();
            let (datagram, others) = take(&mut rest).split_at_mut(count);
            rest = others;
            match self.send_one(self.socket, message, datagram) {
                Ok(()) => helped = true,
                Err(error) => {
                    fits &= error.raw_os_error() != Some(libc::EMSGSIZE);
                    self.was_refused(message, datagram, error);
                }
            }
        }
        if helped && fits {
            self.socket.offload.give_up();
        }
    }

    fn send_one(&self, socket: &Socket, message: &Message, datagram: &mut [libc::iovec]) -> io::Result<()> {
        let mut control = Control::EMPTY;
        let mut header = message.header(datagram, self.traffic_class, None, &mut control);
        loop {
            match send(socket.raw.as_raw_fd(), slice::from_mut(&mut header)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map(|_| ()),
            }
        }
    }

    /// What is too long for the path is left out, or cut by IP.
    fn was_refused(&self, message: &Message, datagram: &mut [libc::iovec], mut error: io::Error) {
        if error.raw_os_error() == Some(libc::EMSGSIZE) {
            let bytes = datagram.iter().map(|slice| slice.iov_len).sum();
            if (self.too_long)(message.to, bytes) {
                return;
            }
            match self.send_one(self.cutting, message, datagram) {
                Ok(()) => return,
                Err(other) => error = other,
            }
        }
        (self.refused)(message.via.map_or(0, |via| via.interface), &error);
    }
}

impl Control {
    const EMPTY: Self = Self([0; CONTROL_BYTES]);

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
        // SAFETY: name, slices and control of the header point into `SendMemory` and into octets borrowed for
        // as long as the `Sender` lives; none of them moved since the header was made. Without libc's
        // wrapper, as in `receive_into`.
        [one] => unsafe {
            libc::syscall(libc::SYS_sendmsg, fd, &raw const one.msg_hdr, libc::MSG_NOSIGNAL).min(1) as isize
        },
        // SAFETY: as above, for each header; the count is that of the slice.
        many => unsafe {
            let count = many.len() as libc::c_uint;
            libc::sendmmsg(fd, many.as_mut_ptr(), count, libc::MSG_NOSIGNAL as _) as isize
        },
    };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Slots that datagrams arrive in, one or several of the same sender each. Allocated once for each receive
/// thread.
pub(crate) struct Receiver {
    /// How many the next call offers to the kernel.
    offered: usize,
    /// Calls in a row that brought one datagram.
    lone: u32,
    /// Octets of the longest datagram of late, the longest there is until it is known better.
    longest: usize,
    /// What the headers point to is only ever used by way of them.
    headers: Vec<libc::mmsghdr>,
    _envelopes: Vec<Envelope>,
    _slots: Vec<u8>,
}

/// What the kernel tells of a slot beside its octets.
#[repr(C, align(64))]
struct Envelope {
    slice: libc::iovec,
    name: libc::sockaddr_in6,
    control: Control,
}

// SAFETY: its pointers point into its own vectors, which never change their size.
unsafe impl Send for Receiver {}

impl Receiver {
    pub(crate) fn new() -> Self {
        // Zeroed pages cost nothing until a datagram lands in them.
        let mut slots = vec![0; RECEIVE_SLOTS * SLOT_BYTES + PAGE_BYTES];
        let first = SLOT_OFFSET.wrapping_sub(slots.as_ptr().addr()) % PAGE_BYTES;
        // SAFETY: all-zero is a valid iovec, a valid address and a valid header.
        let mut envelopes: Vec<Envelope> = (0..RECEIVE_SLOTS).map(|_| unsafe { zeroed() }).collect();
        let header = |(envelope, slot): (&mut Envelope, &mut [u8])| {
            envelope.slice = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            // SAFETY: as above.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_name = (&raw mut envelope.name).cast();
            header.msg_hdr.msg_iov = &raw mut envelope.slice;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = (&raw mut envelope.control).cast();
            header
        };
        let headers =
            envelopes.iter_mut().zip(slots[first..].chunks_exact_mut(SLOT_BYTES)).map(header).collect();
        Self {
            offered: RECEIVE_SLOTS_MIN,
            lone: 0,
            longest: SLOT_BYTES,
            headers,
            _envelopes: envelopes,
            _slots: slots,
        }
    }

    /// Receives what is there, at most all slots; with `wait`, blocks until there is something. `each` gets
    /// one datagram after the other.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        wait: bool,
        mut each: impl FnMut(Received<'_>),
    ) -> io::Result<()> {
        let headers = self.headers.get_mut(..self.offered).unwrap_or_default();
        for header in &mut *headers {
            // The kernel overwrote what it said last.
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
        }
        let count = receive_into(socket.raw.as_raw_fd(), headers, wait)?;
        let mut longest = 0;
        for header in headers.iter().take(count) {
            longest = longest.max(header.msg_len as usize);
            received(header, &mut each);
        }
        self.note(count, longest);
        Ok(())
    }

    /// Twice as many slots as were filled are offered next: a flow of short datagrams soon has all. Where
    /// lone datagrams follow each other the kernel need not look for a second one each time, but now and
    /// then, so that it shows when a flow begins.
    fn note(&mut self, count: usize, longest: usize) {
        self.lone = if count == 1 { self.lone.wrapping_add(1) } else { 0 };
        let is_lone = self.lone >= LONE_MIN && !self.lone.is_multiple_of(LONE_LOOK);
        self.longest = longest.max(self.longest - self.longest / LONGEST_FORGETS);
        let most = match self.longest {
            0..=LONG_BYTES => RECEIVE_SLOTS,
            length if length <= 2 * LONG_BYTES => RECEIVE_SLOTS / 2,
            _ => 1,
        };
        self.offered = if is_lone { 1 } else { (2 * count).max(RECEIVE_SLOTS_MIN).min(most) };
    }

    /// Slots that the next call offers.
    #[cfg(test)]
    pub(super) const fn offered(&self) -> usize {
        self.offered
    }

    /// Where in a page each slot begins.
    #[cfg(test)]
    pub(super) fn slot_offsets(&self) -> impl Iterator<Item = usize> {
        // SAFETY: as in `received`.
        self.headers.iter().map(|header| unsafe { (*header.msg_hdr.msg_iov).iov_base.addr() % PAGE_BYTES })
    }

    /// The next call offers one slot: a lone datagram is expected.
    pub(crate) const fn expect_one(&mut self) {
        self.offered = 1;
    }
}

/// Fills the slots that the headers tell of, at least one of them when that is to `wait`: how many.
fn receive_into(fd: RawFd, headers: &mut [libc::mmsghdr], wait: bool) -> io::Result<usize> {
    let flags = match (wait, headers.len()) {
        (false, _) => libc::MSG_DONTWAIT,
        (true, 1) => 0,
        (true, _) => libc::MSG_WAITFORONE,
    };
    let result = match headers {
        // SAFETY: name, slice and control of the header point to parts of the `Receiver` that stay in place,
        // borrowed, until the next call.
        [one] => unsafe {
            // The wrapper of libc would let the thread be cancelled, which nobody does: two locked
            // instructions for nothing.
            let bytes = libc::syscall(libc::SYS_recvmsg, fd, &raw mut one.msg_hdr, flags);
            one.msg_len = libc::c_uint::try_from(bytes).unwrap_or(0);
            if bytes < 0 { -1 } else { 1 }
        },
        // SAFETY: as above, for each header; the count is that of the slice.
        many => unsafe {
            let count = many.len() as libc::c_uint;
            libc::recvmmsg(fd, many.as_mut_ptr(), count, flags as _, ptr::null_mut()) as isize
        },
    };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Hands on what one slot holds: a datagram, or several that the kernel put together; nothing where one did
/// not fit, or for the empty answer of a socket shut down.
#[inline]
fn received(header: &libc::mmsghdr, each: &mut impl FnMut(Received<'_>)) {
    let fields = &header.msg_hdr;
    let whole = fields.msg_flags & libc::MSG_TRUNC == 0 && fields.msg_namelen != 0;
    let Some(from) = whole.then(|| sender(fields)).flatten() else { return };
    // SAFETY: a header of the `Receiver` points to its slice, which points to a slot; the kernel wrote so
    // many octets there, which it has not for more. Nobody else uses them before the next call.
    let bytes = unsafe {
        let slice = &*fields.msg_iov;
        slice::from_raw_parts(slice.iov_base.cast::<u8>(), slice.iov_len.min(header.msg_len as usize))
    };
    let (interface, segment_bytes) = if fields.msg_controllen == 0 { (0, None) } else { parse_cmsgs(fields) };
    match segment_bytes {
        None => each(Received { from, interface, bytes, attachment: None }),
        Some(length) => {
            bytes.chunks(length).for_each(|bytes| each(Received { from, interface, bytes, attachment: None }))
        }
    }
}

/// Where a datagram came from.
#[inline]
fn sender(fields: &libc::msghdr) -> Option<Locator> {
    let name = fields.msg_name.cast::<libc::sockaddr_in6>();
    // SAFETY: the name of a header of the `Receiver` has room for either kind of address and was zeroed
    // before the kernel wrote there; which it wrote, the first field tells.
    unsafe {
        match i32::from((*name).sin6_family) {
            libc::AF_INET => {
                let name = &*name.cast::<libc::sockaddr_in>();
                let address = Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes());
                Some(Locator::udp(address.into(), u16::from_be(name.sin_port)))
            }
            libc::AF_INET6 => {
                let address = Ipv6Addr::from((*name).sin6_addr.s6_addr);
                Some(Locator::udp(address.into(), u16::from_be((*name).sin6_port)))
            }
            _ => None,
        }
    }
}

/// What the kernel tells of what arrived: the interface, 0 when it did not say, and the octets of each
/// datagram but the last, when it put several together.
fn parse_cmsgs(fields: &libc::msghdr) -> (u32, Option<usize>) {
    let (mut interface, mut segment_bytes) = (0, None);
    // SAFETY: the control octets belong to the header and were written by the kernel up to `msg_controllen`;
    // the CMSG macros stay within that, and the data is read unaligned only for its own type.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(fields);
        while !control.is_null() {
            let data = libc::CMSG_DATA(control);
            match ((*control).cmsg_level, (*control).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    interface =
                        ptr::read_unaligned(data.cast::<libc::in_pktinfo>()).ipi_ifindex.cast_unsigned();
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    interface = ptr::read_unaligned(data.cast::<libc::in6_pktinfo>()).ipi6_ifindex;
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let bytes = ptr::read_unaligned(data.cast::<libc::c_int>());
                    segment_bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
                }
                _ => {}
            }
            control = libc::CMSG_NXTHDR(fields, control);
        }
    }
    (interface, segment_bytes)
}
