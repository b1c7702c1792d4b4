//! How readers are reached.

use crate::locator::Locator;
use crate::tuning::writer::RING_MESSAGES_MIN;
use crate::writer::WriterLimits;

/// Readers that are reached alike: one route has all of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteKind {
    /// On this host, by shared memory: messages in a ring, long samples beside them.
    Memory = 0,
    /// On this host, by UDP: datagrams as large as UDP allows.
    SameHost = 1,
    /// Elsewhere, by UDP: datagrams that the path takes.
    Remote = 2,
}

impl RouteKind {
    /// Who is elsewhere comes last: the last heartbeat that asks everyone is that by which paths are
    /// measured.
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::SameHost, Self::Remote];

    /// How a reader is reached at these locators.
    pub(crate) fn of(locators: &[Locator], same_host: bool) -> Self {
        match locators {
            [Locator { kind: Locator::KIND_MEMORY, .. }, ..] => Self::Memory,
            _ if same_host => Self::SameHost,
            _ => Self::Remote,
        }
    }

    /// The longest datagram of a route.
    pub(crate) const fn datagram_bytes_max(self, limits: &WriterLimits) -> usize {
        match self {
            Self::Memory => {
                let part = limits.memory_ring_bytes / RING_MESSAGES_MIN;
                if limits.message_bytes_max_memory < part { limits.message_bytes_max_memory } else { part }
            }
            Self::SameHost => limits.datagram_bytes_max_local,
            Self::Remote => limits.datagram_bytes_max_remote,
        }
    }

    /// What may be sent at once.
    pub(crate) const fn burst_bytes(self, limits: &WriterLimits) -> usize {
        match self {
            Self::Memory => limits.memory_ring_bytes / 2,
            Self::SameHost => limits.burst_bytes_local,
            Self::Remote => limits.burst_bytes_remote,
        }
    }
}
