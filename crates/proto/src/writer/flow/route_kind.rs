//! How readers are reached.

use crate::writer::WriterLimits;

/// Readers that are reached alike: one route has all of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteKind {
    /// On this host, by UDP to each of them or to the group of the host: datagrams as large as UDP allows.
    SameHost = 0,
    /// Elsewhere, by UDP: datagrams that the path takes.
    Remote = 1,
}

impl RouteKind {
    pub(crate) const ALL: [Self; 2] = [Self::SameHost, Self::Remote];

    /// The longest datagram of a route.
    pub(crate) const fn datagram_bytes_max(self, limits: &WriterLimits) -> usize {
        match self {
            Self::SameHost => limits.datagram_bytes_max_local,
            Self::Remote => limits.datagram_bytes_max_remote,
        }
    }

    /// What may be sent at once.
    pub(crate) const fn burst_bytes(self, limits: &WriterLimits) -> usize {
        match self {
            Self::SameHost => limits.burst_bytes_local,
            Self::Remote => limits.burst_bytes_remote,
        }
    }
}
