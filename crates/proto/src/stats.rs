//! Nothing is dropped without a name: reasons and their counters.

use crate::malformed::Malformed;
use crate::time::Duration;

/// Why a datagram, a submessage or a sample went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
#[repr(u8)]
pub enum DropReason {
    /// Octets are not what they claim; the kind is kept in the log, not in the count.
    Malformed,
    /// RTPS major version other than 2.
    UnknownVersion,
    /// Our own datagram, heard again by multicast loopback.
    OwnDatagram,
    /// INFO_DST names a participant that is not here.
    OtherDestination,
    /// No local endpoint has that entity id.
    UnknownEndpoint,
    /// The sender is not matched with the local endpoint.
    NotMatched,
    /// The sample arrived before.
    Duplicate,
    /// A best-effort sample older than one already received.
    OutOfOrder,
    /// A reordering or reassembly buffer is full.
    BufferFull,
    /// A resource limit of the reader refuses the sample.
    ResourceLimit,
    /// The sample's lifespan has passed.
    Expired,
    /// Part of its coherent set is lost, or the set is larger than the reader holds back.
    IncompleteSet,
    /// A stronger writer owns the instance.
    NotOwner,
    /// A fragment disagrees with the first fragment of its sample.
    FragmentGeometry,
    /// A sample is larger than the reader accepts.
    SampleTooLarge,
    /// A count (heartbeat, acknack, …) that was handled before.
    StaleCount,
    /// A sequence number far outside of any window.
    ImplausibleSequence,
    /// The participant's domain is not ours.
    OtherDomain,
    /// More remote participants, endpoints, locators or nodes than allowed.
    DiscoveryLimit,
    /// A locator that may not be used (port 0 or reserved, multicast as unicast, …).
    LocatorRefused,
    /// The anti-amplification budget of an unproven locator is spent.
    AmplificationBudget,
    /// A built-in message that came from an address its participant never announced.
    SpoofSuspected,
    /// A submessage kind of the standard's range (below 0x80) that this implementation does not know.
    UnknownSubmessage,
    /// Content that the security plug-ins would have to open.
    SecurityRequired,
    /// The reader's content filter does not want the sample.
    ContentFilter,
    /// The application ignores the participant, endpoint or topic.
    Ignored,
    /// A socket's receive buffer had no room for the datagram: the host dropped it.
    SocketFull,
    /// A long payload found no room in the memory that processes share: raise
    /// `PLAINSONG_MEMORY_POOL_BYTES_MAX`, or keep fewer loans, samples taken, and long samples of history.
    PoolUsedUp,
    /// A newer sample of its instance replaced it, or its lifespan passed, before its turn came to be sent.
    ReplacedUnsent,
    /// The sample, or its key, does not decode as the reader's type.
    Undecodable,
    /// A reliable reader that answers nothing was left out, since there was no room: the sample may leave
    /// without it.
    ReaderSilent,
    /// A reader asked for the same samples again and again: they are repeated later.
    RepairBudget,
    /// An instance is to end that is named by its key hash alone, which several instances have.
    AmbiguousKeyHash,
    /// No transport here reaches the locator: its kind is another's, or this host has no such addresses.
    Unreachable,
    /// Octets came beside a message in which they are nobody's payload, or that of a built-in endpoint.
    StrayAttachment,
}

impl DropReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 35] = [
        Self::Malformed,
        Self::UnknownVersion,
        Self::OwnDatagram,
        Self::OtherDestination,
        Self::UnknownEndpoint,
        Self::NotMatched,
        Self::Duplicate,
        Self::OutOfOrder,
        Self::BufferFull,
        Self::ResourceLimit,
        Self::Expired,
        Self::IncompleteSet,
        Self::NotOwner,
        Self::FragmentGeometry,
        Self::SampleTooLarge,
        Self::StaleCount,
        Self::ImplausibleSequence,
        Self::OtherDomain,
        Self::DiscoveryLimit,
        Self::LocatorRefused,
        Self::AmplificationBudget,
        Self::SpoofSuspected,
        Self::UnknownSubmessage,
        Self::SecurityRequired,
        Self::ContentFilter,
        Self::Ignored,
        Self::SocketFull,
        Self::PoolUsedUp,
        Self::ReplacedUnsent,
        Self::Undecodable,
        Self::ReaderSilent,
        Self::RepairBudget,
        Self::AmbiguousKeyHash,
        Self::Unreachable,
        Self::StrayAttachment,
    ];
}

impl From<Malformed> for DropReason {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Who counts what is dropped.
pub trait CountDrops {
    /// Counts one more.
    fn dropped(&mut self, reason: DropReason);
}

impl CountDrops for DropCounters {
    fn dropped(&mut self, reason: DropReason) {
        self.count(reason);
    }
}

/// How often each reason occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropCounters([u64; DropReason::ALL.len()]);

impl Default for DropCounters {
    fn default() -> Self {
        Self([0; DropReason::ALL.len()])
    }
}

impl DropCounters {
    /// Counts one more.
    pub fn count(&mut self, reason: DropReason) {
        self.count_many(reason, 1);
    }

    /// Counts so many more.
    pub fn count_many(&mut self, reason: DropReason, more: u64) {
        if let Some(counter) = self.0.get_mut(reason as usize) {
            *counter += more;
        }
    }

    /// How often `reason` occurred.
    #[must_use]
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or(0)
    }

    /// Reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.into_iter().map(|reason| (reason, self.get(reason))).filter(|(_, count)| *count > 0)
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (total, more) in self.0.iter_mut().zip(other.0) {
            *total += more;
        }
    }
}

/// How long samples took, by powers of two: a count costs few instructions, and those of an interval are the
/// difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    counts: [u64; Self::BUCKETS],
    sum: u64,
}

impl Latencies {
    /// The first counts what took less than 2^10 ns, each other up to twice the one before; the last also
    /// what took longer.
    pub const BUCKETS: usize = 32;
    /// Bits of nanoseconds within the first.
    const FIRST_BITS: u32 = 10;

    /// Counts one more. What a clock that is behind makes negative took no time.
    #[inline]
    pub fn add(&mut self, latency: Duration) {
        let nanos = latency.0.max(0).cast_unsigned();
        let bits = u64::BITS - (nanos >> Self::FIRST_BITS).leading_zeros();
        let bucket = (bits as usize).min(Self::BUCKETS - 1);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(nanos);
    }

    /// How many each bucket has.
    #[must_use]
    pub const fn counts(&self) -> &[u64; Self::BUCKETS] {
        &self.counts
    }

    /// How long all took together, in nanoseconds.
    #[must_use]
    pub const fn sum_ns(&self) -> u64 {
        self.sum
    }

    /// What is less than a bucket counts, in nanoseconds; of the last, what it at least counts.
    #[must_use]
    pub const fn end_ns(bucket: usize) -> u64 {
        let last = if bucket < Self::BUCKETS { bucket } else { Self::BUCKETS - 1 };
        1 << (Self::FIRST_BITS as usize + last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter() {
        let mut counters = DropCounters::default();
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            counters.count(reason);
        }
        assert!(counters.iter().all(|(_, count)| count == 1));
        assert_eq!(counters.iter().count(), DropReason::ALL.len());
    }

    #[test]
    fn latencies_count_by_powers_of_two() {
        let mut latencies = Latencies::default();
        let cases = [(-5, 0), (0, 0), (1_023, 0), (1_024, 1), (2_047, 1), (2_048, 2), (i64::MAX, 31)];
        for (nanos, bucket) in cases {
            let before = latencies.counts()[bucket];
            latencies.add(Duration(nanos));
            assert_eq!(latencies.counts()[bucket], before + 1, "{nanos} ns");
            assert!(bucket == 31 || nanos < Latencies::end_ns(bucket) as i64, "{nanos} ns");
            assert!(bucket == 0 || nanos >= Latencies::end_ns(bucket - 1) as i64, "{nanos} ns");
        }
        assert_eq!(latencies.sum_ns(), 1_023 + 1_024 + 2_047 + 2_048 + i64::MAX as u64);
    }
}
