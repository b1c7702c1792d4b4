//! Addressing datagrams, and cutting samples that are too large for one (RTPS 2.5 §8.4.14.1).

use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::{DATAGRAM_OVERHEAD, SURROUNDING_BYTES, data_frag_overhead, data_overhead};
use crate::seq::FragmentNumber;

use crate::tuning::writer::{
    FILLING_BYTES_LEAST, SHARED_DATAGRAM_BYTES_MIN, SHARING_BYTES_MAX, SHARING_FRAGMENT_BYTES,
};
use crate::writer::flow::route_kind::RouteKind;

/// Longest inline QoS a writer sends with every change, verdicts of content filters apart: three marks of
/// coherent sets, the writers of the publisher, status, key hash, lifespan, strength, sentinel.
pub(crate) const INLINE_QOS_BYTES_MAX: usize = 3 * 12 + 8 + 8 + 20 + 12 + 8 + 4;
/// What the first fragment of a sample with inline QoS has beside its data; the others leave as much room.
const FRAGMENT_ROOM: usize = INLINE_QOS_BYTES_MAX;

/// Whom a datagram is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// The writer.
    pub(crate) source: Guid,
    pub(crate) destinations: &'a [Locator],
    /// UNKNOWN: every participant that hears it.
    pub(crate) prefix: &'a GuidPrefix,
    /// UNKNOWN: every matched reader.
    pub(crate) reader: EntityId,
    pub(crate) kind: RouteKind,
    pub(crate) datagram_bytes_max: usize,
    /// Samples of so many octets go beside their messages.
    pub(crate) attached_bytes_min: usize,
}

/// Longest sample with which any inline QoS fits in a datagram of so many octets.
pub(crate) const fn inline_bytes_max(datagram_bytes_max: usize) -> usize {
    datagram_bytes_max.saturating_sub(DATAGRAM_OVERHEAD + data_overhead(INLINE_QOS_BYTES_MAX))
}

impl Target<'_> {
    /// Octets of such a sample that go beside the message with its DATA: all or none.
    pub(crate) const fn attached_bytes(&self, payload_bytes: usize) -> usize {
        if payload_bytes >= self.attached_bytes_min { payload_bytes } else { 0 }
    }

    /// Whether a sample goes in one DATA, or beside one.
    pub(crate) const fn fits(&self, payload_bytes: usize, inline_qos_bytes: usize) -> bool {
        let within_bytes = payload_bytes - self.attached_bytes(payload_bytes);
        DATAGRAM_OVERHEAD + data_overhead(inline_qos_bytes) + within_bytes <= self.datagram_bytes_max
    }

    /// Longest sample that may share a datagram with others, with any inline QoS.
    pub(crate) const fn inline_bytes_max(&self) -> usize {
        let most = inline_bytes_max(self.datagram_bytes_max);
        if most < self.attached_bytes_min { most } else { self.attached_bytes_min - 1 }
    }

    /// Whether samples that one DATA has room for may be cut where their beginning fills a datagram of a
    /// flow.
    pub(crate) const fn may_fill(&self) -> bool {
        matches!(self.kind, RouteKind::SameHost) && self.datagram_bytes_max >= SHARED_DATAGRAM_BYTES_MIN
    }

    /// Whether a sample of so many octets is cut into pieces so small that others can fill a datagram with
    /// some of them.
    pub(crate) const fn shares(&self, payload_bytes: usize) -> bool {
        self.may_fill() && payload_bytes <= SHARING_BYTES_MAX && !self.fits(payload_bytes, 0)
    }

    /// Whether a sample of so many octets, which one DATA has room for, is cut where its beginning fills a
    /// datagram of a flow.
    pub(crate) const fn fills(&self, payload_bytes: usize) -> bool {
        self.may_fill() && payload_bytes >= FILLING_BYTES_LEAST && self.fits(payload_bytes, 0)
    }

    /// Whether the rest of a datagram has room for it, with a HEARTBEAT behind it.
    pub(crate) const fn fits_within(&self, payload_bytes: usize, room_bytes: usize) -> bool {
        data_overhead(0) + payload_bytes + SURROUNDING_BYTES <= room_bytes
    }

    /// Fragments of such a sample that the rest of a datagram has room for, with a HEARTBEAT behind them.
    pub(crate) fn fragments_within(&self, room_bytes: usize) -> FragmentNumber {
        let beside_bytes = data_frag_overhead(0) + SURROUNDING_BYTES;
        let fragments = room_bytes.saturating_sub(beside_bytes) / usize::from(SHARING_FRAGMENT_BYTES);
        FragmentNumber::try_from(fragments).unwrap_or(0)
    }

    /// Whether a datagram with so many octets of a sample has room for a fragment of the next.
    pub(crate) const fn has_room_behind(&self, payload_bytes: usize) -> bool {
        self.fits(payload_bytes + 2 * SHARING_FRAGMENT_BYTES as usize, 0)
    }

    /// Octets of one fragment of a sample of so many, with so much inline QoS. The same for all samples of
    /// one length without any, and for all others, so that a repeated fragment always fits the geometry of
    /// the first.
    pub(crate) fn fragment_bytes(&self, payload_bytes: usize, inline_qos_bytes: usize) -> u16 {
        if self.shares(payload_bytes) || inline_qos_bytes == 0 && self.fills(payload_bytes) {
            return SHARING_FRAGMENT_BYTES;
        }
        let room = if inline_qos_bytes == 0 { 0 } else { FRAGMENT_ROOM };
        let overhead = DATAGRAM_OVERHEAD + data_frag_overhead(0) + room;
        let bytes = self.datagram_bytes_max.saturating_sub(overhead) & !7;
        u16::try_from(bytes).unwrap_or(!7).max(8)
    }

    /// Fragments of a sample.
    pub(crate) fn fragments(&self, payload_bytes: usize, inline_qos_bytes: usize) -> FragmentNumber {
        let fragment_bytes = usize::from(self.fragment_bytes(payload_bytes, inline_qos_bytes));
        FragmentNumber::try_from(payload_bytes.div_ceil(fragment_bytes)).unwrap_or(FragmentNumber::MAX)
    }

    /// Fragments of a lone sample that leave first, if those after them fill their datagrams then: what no
    /// datagram is full of goes ahead and wakes the readers of this host, while the kernel copies the long
    /// part.
    pub(crate) fn fragments_ahead(&self, payload_bytes: usize) -> FragmentNumber {
        if !self.shares(payload_bytes) {
            return FragmentNumber::MAX;
        }
        let fragment_bytes = usize::from(self.fragment_bytes(payload_bytes, 0));
        let room = self.datagram_bytes_max.saturating_sub(DATAGRAM_OVERHEAD + data_frag_overhead(0));
        let full = FragmentNumber::try_from(room / fragment_bytes).unwrap_or(FragmentNumber::MAX);
        match self.fragments(payload_bytes, 0).checked_rem(full) {
            None | Some(0) => FragmentNumber::MAX,
            Some(ahead) => ahead,
        }
    }
}
