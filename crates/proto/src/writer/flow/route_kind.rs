//! How readers are reached.

/// Readers that are reached alike: one route has all of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::writer) enum RouteKind {
    /// On this host, by UDP to each of them or to the group of the host: datagrams as large as UDP allows.
    SameHost = 0,
    /// Elsewhere, by UDP: datagrams that the path takes.
    Remote = 1,
}

impl RouteKind {
    pub(in crate::writer) const ALL: [Self; 2] = [Self::SameHost, Self::Remote];
}
