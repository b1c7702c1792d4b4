//! Tells when the host's interfaces or addresses change (rtnetlink).

#![allow(unsafe_code, reason = "std and socket2 cannot bind a netlink socket")]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// A socket that becomes readable with each change.
#[derive(Debug)]
pub(crate) struct Watcher(OwnedFd);

impl Watcher {
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a plain system call; the descriptor it returns is owned by nobody else.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above; `fd` is a descriptor.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all-zero is a valid sockaddr_nl.
        let mut address: libc::sockaddr_nl = unsafe { zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups =
            (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR).cast_unsigned();
        let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: the pointer and size describe `address`.
        if unsafe { libc::bind(fd, ptr::from_ref(&address).cast(), size) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(socket))
    }

    /// Takes all messages. What they say does not matter, and is cut: the interfaces are listed anew.
    pub(crate) fn drain(&self) {
        // On the stack of each receive thread where this is inlined.
        let mut message = [0_u8; 64];
        loop {
            // SAFETY: the pointer and length describe `message`.
            let result =
                unsafe { libc::recv(self.0.as_raw_fd(), message.as_mut_ptr().cast(), message.len(), 0) };
            // ENOBUFS says that messages were lost: more of them may follow.
            if result <= 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ENOBUFS) {
                return;
            }
        }
    }
}

impl AsRawFd for Watcher {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
