//! Local sockets with abstract names, over which two nodes of a host hand descriptors to each other, and
//! whose hang-up tells that the other one is gone. Their names vanish with their process.

#![allow(unsafe_code, reason = "descriptors in messages and the user of a peer have no safe wrapper")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use plainsong_proto::locator::NodeId;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::base::process;

/// Descriptors in one message, at most.
pub(super) const DESCRIPTORS_MAX: usize = 4;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Room for the control message that has the descriptors, in words of its alignment.
const CONTROL_WORDS: usize = 8;

/// Where other nodes connect.
#[derive(Debug)]
pub(super) struct Listener(Socket);

/// One end of a connection: messages keep their bounds and their order.
#[derive(Debug)]
pub(super) struct Connection(Socket);

/// What came by a connection.
#[derive(Debug)]
pub(super) enum Incoming {
    /// So many octets, and these descriptors.
    Message(usize, Vec<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The other end is gone.
    HungUp,
}

/// The name of a node's socket.
fn name_of(domain: u16, node: NodeId) -> io::Result<SockAddr> {
    let node = u128::from_be_bytes(node);
    SockAddr::unix(format!("\0plainsong/{domain}/{node:032x}"))
}

/// The user that this process acts as. `None`: users that its user namespace does not know look like it.
pub(super) fn own_user() -> Option<u32> {
    // SAFETY: a system call that takes nothing and always succeeds.
    let user = unsafe { libc::geteuid() };
    process::is_distinct(user).then_some(user)
}

fn socket() -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Listener {
    /// # Errors
    /// The host has no such sockets, or none to spare.
    pub(super) fn bind(domain: u16, node: NodeId) -> io::Result<Self> {
        let socket = socket()?;
        socket.bind(&name_of(domain, node)?)?;
        socket.listen(BACKLOG)?;
        Ok(Self(socket))
    }

    /// The next who connects; `None`: nobody does now.
    ///
    /// # Errors
    /// The process has no descriptor to spare.
    pub(super) fn accept(&self) -> io::Result<Option<Connection>> {
        match self.0.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(true)?;
                Ok(Some(Connection(socket)))
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {
                    Ok(None)
                }
                _ => Err(error),
            },
        }
    }
}

impl Connection {
    /// Connects to the socket of a node.
    ///
    /// # Errors
    /// `ConnectionRefused`: there is none in this network namespace. Others: the host is out of something.
    pub(super) fn open(domain: u16, node: NodeId) -> io::Result<Self> {
        let socket = socket()?;
        socket.connect(&name_of(domain, node)?)?;
        Ok(Self(socket))
    }

    /// Whether a node listens at its socket; true also where that cannot be found out.
    pub(super) fn has_listener(domain: u16, node: NodeId) -> bool {
        !Self::open(domain, node).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Both ends of a connection within this process.
    #[cfg(test)]
    pub(super) fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = Socket::pair(Domain::UNIX, Type::SEQPACKET, None)?;
        one.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        Ok((Self(one), Self(other)))
    }

    /// The user that the process at the other end ran as when it connected, as this process sees users.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(super) fn peer_user(&self) -> io::Result<u32> {
        let mut credentials = MaybeUninit::<libc::ucred>::zeroed();
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the pointers are to local variables, of which the second has the size of the first.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                credentials.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: every bit pattern is a `ucred`, and it began as zeroes.
        Ok(unsafe { credentials.assume_init() }.uid)
    }

    /// Sends a message with descriptors, which stay the caller's.
    ///
    /// # Errors
    /// The other end is gone, or does not receive.
    pub(super) fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut control = [0_u64; CONTROL_WORDS];
        let descriptors = descriptors.get(..descriptors.len().min(DESCRIPTORS_MAX)).unwrap_or_default();
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: zeroes are a valid `msghdr`.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if !descriptors.is_empty() {
            let octets = size_of::<RawFd>() * descriptors.len();
            message.msg_control = control.as_mut_ptr().cast();
            // SAFETY: computes sizes only; `control` is aligned, and has room for DESCRIPTORS_MAX
            // descriptors.
            unsafe {
                message.msg_controllen = libc::CMSG_SPACE(octets as _) as _;
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(octets as _) as _;
                let mut place = libc::CMSG_DATA(header);
                for descriptor in descriptors {
                    ptr::write_unaligned(place.cast(), descriptor.as_raw_fd());
                    place = place.add(size_of::<RawFd>());
                }
            }
        }
        // SAFETY: `message` describes local variables and `bytes`, all of which outlive the call.
        let sent = unsafe {
            libc::sendmsg(self.0.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives a message if there is one. What it has beyond `bytes` is lost.
    ///
    /// # Errors
    /// The connection does not work, or descriptors came that this process has no room for (`EMFILE`).
    pub(super) fn receive(&self, bytes: &mut [u8]) -> io::Result<Incoming> {
        match self.receive_once(bytes) {
            // Told once of an end that has not read everything. What it sent before comes after that.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.receive_once(bytes),
            other => other,
        }
    }

    fn receive_once(&self, bytes: &mut [u8]) -> io::Result<Incoming> {
        let mut control = [0_u64; CONTROL_WORDS];
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: zeroes are a valid `msghdr`.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: `message` describes local variables and `bytes`, all of which outlive the call.
        let received = unsafe {
            libc::recvmsg(self.0.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT)
        };
        if received < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Incoming::Nothing),
                io::ErrorKind::BrokenPipe => Ok(Incoming::HungUp),
                _ => Err(error),
            };
        }
        let descriptors = descriptors_of(&message);
        if message.msg_flags & libc::MSG_CTRUNC != 0 && descriptors.len() < DESCRIPTORS_MAX {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        // A message of no octets is never sent: that is the end.
        Ok(if received == 0 {
            Incoming::HungUp
        } else {
            Incoming::Message(usize::try_from(received).unwrap_or(0), descriptors)
        })
    }

    /// Makes the other end find it hung up, after all that was sent; it may still send.
    pub(super) fn finish(&self) {
        // It fails where the other end is gone.
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }

    /// Makes both ends find it hung up.
    pub(super) fn hang_up(&self) {
        // It fails where the other end did that before.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// The descriptors that came with a message, which are this process's own now.
fn descriptors_of(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut descriptors = Vec::new();
    // SAFETY: the kernel filled the control messages that `message` describes, and no more than it has room
    // for. Each descriptor in them was opened for this process and has no other owner.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(ptr::from_ref(message));
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let octets = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for index in 0..octets / size_of::<RawFd>() {
                    let place = libc::CMSG_DATA(header).add(index * size_of::<RawFd>());
                    let descriptor: RawFd = ptr::read_unaligned(place.cast());
                    descriptors.push(OwnedFd::from_raw_fd(descriptor));
                }
            }
            header = libc::CMSG_NXTHDR(ptr::from_ref(message), header);
        }
    }
    descriptors
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(first: u8) -> NodeId {
        let mut octets = [0; 16];
        octets[0] = first;
        octets[8..12].copy_from_slice(&std::process::id().to_be_bytes());
        octets
    }

    #[test]
    fn messages_keep_their_bounds_and_bring_descriptors() {
        let listener = Listener::bind(7, node(1)).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let here = Connection::open(7, node(1)).unwrap();
        let there = listener.accept().unwrap().unwrap();
        assert_eq!(Some(there.peer_user().unwrap()), own_user());
        let (one, other) = Connection::pair().unwrap();
        here.send(b"with", &[one.as_fd(), other.as_fd()]).unwrap();
        here.send(b"without", &[]).unwrap();
        let mut bytes = [0; 16];
        let Incoming::Message(4, descriptors) = there.receive(&mut bytes).unwrap() else { panic!() };
        assert_eq!((&bytes[..4], descriptors.len()), (&b"with"[..], 2));
        let mut descriptors = descriptors.into_iter();
        let (one, other) = (descriptors.next().unwrap(), descriptors.next().unwrap());
        let (one, other) = (Connection(Socket::from(one)), Connection(Socket::from(other)));
        one.send(b"through", &[]).unwrap();
        assert!(matches!(other.receive(&mut bytes).unwrap(), Incoming::Message(7, _)));
        assert!(matches!(there.receive(&mut bytes).unwrap(), Incoming::Message(7, none) if none.is_empty()));
        assert!(matches!(there.receive(&mut bytes).unwrap(), Incoming::Nothing));
        drop(here);
        assert!(matches!(there.receive(&mut bytes).unwrap(), Incoming::HungUp));
        assert!(there.send(b"lost", &[]).is_err());
    }

    #[test]
    fn nobody_is_where_no_node_is() {
        let refused = Connection::open(7, node(2)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let listener = Listener::bind(7, node(3)).unwrap();
        let taken = Listener::bind(7, node(3)).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert!(Listener::bind(7, node(3)).is_ok(), "the name is free");
    }

    #[test]
    fn more_descriptors_than_there_is_room_for_are_closed() {
        let (here, there) = Connection::pair().unwrap();
        let descriptors = [here.as_fd(); 9];
        here.send(b"many", &descriptors).unwrap();
        let mut bytes = [0; 4];
        let Incoming::Message(4, received) = there.receive(&mut bytes).unwrap() else { panic!() };
        assert_eq!(received.len(), DESCRIPTORS_MAX);
    }

    #[test]
    fn what_was_sent_before_an_end_that_reads_nothing_is_received() {
        let (here, there) = Connection::pair().unwrap();
        here.send(b"unread", &[]).unwrap();
        there.send(b"last", &[]).unwrap();
        drop(there);
        let mut bytes = [0; 16];
        assert!(matches!(here.receive(&mut bytes).unwrap(), Incoming::Message(4, _)));
        assert!(matches!(here.receive(&mut bytes).unwrap(), Incoming::HungUp));
    }

    #[test]
    fn hanging_up_is_noticed_at_both_ends() {
        let (here, there) = Connection::pair().unwrap();
        here.hang_up();
        let mut bytes = [0; 4];
        assert!(matches!(there.receive(&mut bytes).unwrap(), Incoming::HungUp));
        assert!(matches!(here.receive(&mut bytes).unwrap(), Incoming::HungUp));
    }
}
