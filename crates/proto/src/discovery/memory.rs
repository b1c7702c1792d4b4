//! By which transport a participant is reached, and why not by memory.

use std::fmt;

/// How the user endpoints of a participant are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum UsedTransport {
    /// By memory shared with its process.
    Memory,
    /// By UDP.
    Udp(MemoryRefusal),
}

/// Why a participant is not reached by memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum MemoryRefusal {
    /// It is on another host, as far as its addresses tell.
    OtherHost,
    /// It is of another product.
    OtherProduct,
    /// This process shares no memory.
    Off,
    /// The other process shares no memory.
    PeerOff,
    /// It announces the node id of this process, of which it is not.
    ForeignNode,
    /// The processes are about to share memory.
    Awaited,
    /// There is no local socket of the other process here.
    NoSocket,
    /// The other process is of another user, who is not one of those that share memory.
    OtherUser(u32),
    /// The other process does not share memory with the user of this one.
    UserRefused,
    /// The other process speaks another version of the handshake.
    Version,
    /// There was no memory for it, or no descriptor.
    NoMemory,
    /// There was no memory for it there, or no descriptor.
    PeerNoMemory,
    /// This process shares memory with as many others as it can.
    TooManyLinks,
    /// What one process wrote the other did not read.
    NotShared,
    /// The other process refused.
    Refused,
    /// The other process did not answer in time.
    TimedOut,
    /// Memory was shared until long samples found no room in it for a while.
    PoolUsedUp,
    /// Memory was shared until one side closed it or ended.
    Ended,
    /// The other process has ended, as the kernel tells: its participants are no more.
    ProcessGone,
}

impl MemoryRefusal {
    /// Whether it may be over without the other process announcing anything new.
    pub(super) const fn may_pass(self) -> bool {
        matches!(
            self,
            Self::NoSocket
                | Self::NoMemory
                | Self::PeerNoMemory
                | Self::TooManyLinks
                | Self::NotShared
                | Self::Refused
                | Self::TimedOut
                | Self::PoolUsedUp
                | Self::Ended
        )
    }

    /// What to do about it, in one line; empty where there is nothing to be done.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::OtherHost | Self::OtherProduct | Self::ProcessGone => "",
            Self::Off => "set PLAINSONG_SHARED_MEMORY=auto here; it takes Linux",
            Self::PeerOff => {
                "set PLAINSONG_SHARED_MEMORY=auto there; it takes Linux, and a version that has it"
            }
            Self::ForeignNode => "find out what claims to be of this process",
            Self::Awaited | Self::Ended => "it is tried again by itself",
            Self::NoSocket => {
                "run both in one network namespace: containers with --network=host or a shared one"
            }
            Self::OtherUser(_) => {
                "run both as one user, or name the other in PLAINSONG_MEMORY_USERS on both sides"
            }
            Self::UserRefused => "name this user in PLAINSONG_MEMORY_USERS there, too",
            Self::Version => "run the same version of Plainsong on both sides",
            Self::NoMemory => {
                "raise the memory limit or the limit of open files, or lower PLAINSONG_MEMORY_RING_BYTES"
            }
            Self::PeerNoMemory => "raise the memory limit or the limit of open files of the other process",
            Self::TooManyLinks => "use fewer processes, each with more participants",
            Self::NotShared => "run both under one kernel, without a sandbox that replaces its memory",
            Self::PoolUsedUp => {
                "raise PLAINSONG_MEMORY_POOL_BYTES_MAX, or keep fewer loans, long samples of history, and samples taken there"
            }
            Self::Refused => "ask the other side why: its state tells",
            Self::TimedOut => {
                "see whether the other process is stopped or starved; it is tried again by itself"
            }
        }
    }
}

impl fmt::Display for UsedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Udp(reason) => write!(f, "UDP: {reason}"),
        }
    }
}

impl fmt::Display for MemoryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherHost => "on another host",
            Self::OtherProduct => "of another product",
            Self::Off => "this process shares no memory",
            Self::PeerOff => "the other process shares no memory",
            Self::ForeignNode => "it announces the node id of this process, of which it is not",
            Self::Awaited => "the processes are about to share memory",
            Self::NoSocket => "no local socket of the other process is in this network namespace",
            Self::OtherUser(user) => return write!(f, "the other process is of user {user}"),
            Self::UserRefused => "the other process does not share memory with this user",
            Self::Version => "the other process speaks another version of the handshake",
            Self::NoMemory => "there was no memory or descriptor for it",
            Self::PeerNoMemory => "the other process had no memory or descriptor for it",
            Self::TooManyLinks => "this process shares memory with as many others as it can",
            Self::NotShared => "what one process wrote to memory the other did not read",
            Self::Refused => "the other process refused",
            Self::TimedOut => "the other process did not answer in time",
            Self::PoolUsedUp => "long samples found no room in the memory that is shared",
            Self::Ended => "the memory was closed by one side",
            Self::ProcessGone => "the other process has ended",
        })
    }
}
