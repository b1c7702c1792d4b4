//! Which datagrams suit a reader.

/// Readers that take datagrams of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::writer) enum Class {
    /// On this host: datagrams as large as UDP allows.
    SameHost = 0,
    /// Elsewhere: datagrams of one Ethernet frame.
    Remote = 1,
}

impl Class {
    pub(in crate::writer) const ALL: [Self; 2] = [Self::SameHost, Self::Remote];
}
