//! Groups that do not leave this host: a topic has one of sixteen, by its name, and all are heard on
//! one socket. A group is joined while a pair of a reader and a writer needs it.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;

use plainsong_proto::guid::Guid;

use super::socket::{BufferSizes, Socket};
use crate::base::locks::lock;

/// The socket, and which pair of reader and writer needs which group.
pub(super) struct Groups {
    pub(super) socket: Socket,
    pairs: Mutex<BTreeMap<(Guid, Guid), Ipv4Addr>>,
}

impl Groups {
    /// Hears no group yet.
    pub(super) fn open(port: u16, sizes: BufferSizes) -> io::Result<Self> {
        Ok(Self { socket: Socket::bind_groups(port, sizes)?, pairs: Mutex::default() })
    }

    /// The pair needs a group, which is heard on an interface from now on. Where the host admits fewer
    /// than there are, what goes to others is not heard, which its writer finds out.
    pub(super) fn join(&self, pair: (Guid, Guid), group: Ipv4Addr, interface: u32) -> io::Result<()> {
        let mut pairs = lock(&self.pairs);
        if !pairs.values().any(|other| *other == group) {
            self.socket.join(IpAddr::V4(group), interface)?;
        }
        let before = pairs.insert(pair, group);
        if let Some(before) = before.filter(|before| *before != group) {
            self.leave_unneeded(&pairs, before, interface);
        }
        Ok(())
    }

    /// Pairs are no more.
    pub(super) fn leave(&self, is_gone: impl Fn(Guid, Guid) -> bool, interface: u32) {
        let mut pairs = lock(&self.pairs);
        let gone: Vec<_> =
            pairs.keys().copied().filter(|(reader, writer)| is_gone(*reader, *writer)).collect();
        for pair in gone {
            if let Some(group) = pairs.remove(&pair) {
                self.leave_unneeded(&pairs, group, interface);
            }
        }
    }

    fn leave_unneeded(&self, pairs: &BTreeMap<(Guid, Guid), Ipv4Addr>, group: Ipv4Addr, interface: u32) {
        if !pairs.values().any(|other| *other == group) {
            // Of an interface that is gone the host has forgotten it already.
            let _ = self.socket.leave(group, interface);
        }
    }
}
