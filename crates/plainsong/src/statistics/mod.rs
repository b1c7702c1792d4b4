//! What participants count, as data that others can read: samples, octets, losses, repetitions, latencies.
//!
//! Counters are always on. A participant tells them to the others of its domain as soon as one of these has a
//! reader of [`STATISTICS_TOPIC`] ([`DomainParticipant::observe_statistics`]), once a second until there is
//! none any more. `PLAINSONG_STATISTICS=off` keeps them to itself.
//! All counts begin with the entity and only grow: rates are differences of two samples.
//!
//! [`DomainParticipant::observe_statistics`]: crate::participant::DomainParticipant::observe_statistics

mod publication;

use plainsong_derive::DdsType;
use plainsong_proto::stats::{DropCounters, Latencies};

pub(crate) use publication::Publication;

/// Name of the topic on which participants tell what they count.
pub const STATISTICS_TOPIC: &str = "PlainsongStatistics";

/// What a participant has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[dds(name = "plainsong::ParticipantStatistics", appendable)]
#[non_exhaustive]
pub struct ParticipantStatistics {
    /// Its GUID.
    #[dds(key)]
    pub participant: [u8; 16],
    /// Its name; may be empty.
    pub name: String,
    /// The host of its process, as that calls itself.
    pub host: String,
    /// The number of its process there.
    pub process_id: u32,
    /// The program.
    pub executable: String,
    /// Version of Plainsong.
    pub version: String,
    /// When this was counted, in nanoseconds since 1970.
    pub time_ns: i64,
    /// What the process has used of processors, in nanoseconds; 0 where the system does not tell.
    pub cpu_ns: u64,
    /// Memory of the process that is in use, in octets; 0 where the system does not tell.
    pub memory_bytes: u64,
    /// Its writers.
    pub writers: Vec<WriterStatistics>,
    /// Its readers.
    pub readers: Vec<ReaderStatistics>,
    /// So many more writers and readers it has.
    pub left_out: u32,
    /// Long samples that were copied although memory is shared, for all participants of the process in the
    /// domain.
    pub copied_samples: u64,
    /// What was dropped before it reached an endpoint, for all participants of the process in the domain, and
    /// by discovery.
    pub drops: Vec<DropStatistics>,
}

/// What a writer has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[dds(name = "plainsong::WriterStatistics", appendable)]
#[non_exhaustive]
pub struct WriterStatistics {
    /// Its GUID.
    pub guid: [u8; 16],
    /// Its topic.
    pub topic: String,
    /// The registered name of its type.
    pub type_name: String,
    /// Readers that match now.
    pub matched: u32,
    /// Samples and changes of instances that were written.
    pub written: u64,
    /// Octets of their payloads.
    pub written_bytes: u64,
    /// Of these samples, those in the history now.
    pub in_history: u64,
    /// Of these, those that the reader which is most behind has not acknowledged.
    pub behind: u64,
    /// Datagrams composed, repetitions and heartbeats included.
    pub datagrams: u64,
    /// Of these, those with what single readers had missed, or with the history for late joiners.
    pub resent_datagrams: u64,
    /// And their octets.
    pub resent_bytes: u64,
    /// OFFERED_DEADLINE_MISSED.
    pub deadlines_missed: u32,
    /// What it dropped.
    pub drops: Vec<DropStatistics>,
}

/// What a reader has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[dds(name = "plainsong::ReaderStatistics", appendable)]
#[non_exhaustive]
pub struct ReaderStatistics {
    /// Its GUID.
    pub guid: [u8; 16],
    /// Its topic.
    pub topic: String,
    /// The registered name of its type.
    pub type_name: String,
    /// Writers that match now.
    pub matched: u32,
    /// Samples with data that it was given.
    pub received: u64,
    /// Octets of their payloads.
    pub received_bytes: u64,
    /// Of these samples, those that it holds now.
    pub held: u64,
    /// SAMPLE_LOST.
    pub lost: u64,
    /// SAMPLE_REJECTED.
    pub rejected: u64,
    /// REQUESTED_DEADLINE_MISSED.
    pub deadlines_missed: u32,
    /// How long all samples took together from their source timestamps to their reception, in nanoseconds:
    /// between hosts that is as true as their clocks agree.
    pub latency_sum_ns: u64,
    /// How many took less than 1,024 ns, then less than twice as long each; the last counts those that took
    /// longer, too. Trailing zeros are left out.
    pub latencies: Vec<u64>,
    /// What it dropped.
    pub drops: Vec<DropStatistics>,
}

/// How often something was dropped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[dds(name = "plainsong::DropStatistics", appendable)]
#[non_exhaustive]
pub struct DropStatistics {
    /// The name of the [`DropReason`](crate::drops::DropReason).
    pub reason: String,
    /// How often.
    pub count: u64,
}

impl ReaderStatistics {
    /// The time that a share of the samples, from 0 to 1, took at most, of those since `before`: the end of
    /// the power of two in which it is, in nanoseconds. `None` when there were none.
    #[must_use]
    pub fn latency_ns(&self, share: f64, before: Option<&Self>) -> Option<u64> {
        let earlier = |bucket: usize| before.and_then(|it| it.latencies.get(bucket)).copied().unwrap_or(0);
        let counts: Vec<u64> = self
            .latencies
            .iter()
            .enumerate()
            .map(|(bucket, count)| count.saturating_sub(earlier(bucket)))
            .collect();
        let total: u64 = counts.iter().sum();
        let wanted = ((total as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        let bucket = counts.iter().position(|count| {
            below += count;
            below >= wanted
        });
        bucket.map(Latencies::end_ns)
    }
}

/// What was dropped, in the order of the reasons.
pub(crate) fn drops(counters: &DropCounters) -> Vec<DropStatistics> {
    let all = counters.iter();
    all.map(|(reason, count)| DropStatistics { reason: format!("{reason:?}"), count }).collect()
}

/// The counts, without trailing zeros.
pub(crate) fn counts(latencies: &Latencies) -> Vec<u64> {
    let used = latencies.counts().iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    latencies.counts().iter().take(used).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_the_end_of_the_power_of_two_in_which_it_is() {
        let before = ReaderStatistics { latencies: vec![100], ..ReaderStatistics::default() };
        let now = ReaderStatistics { latencies: vec![100, 0, 90, 10], ..before.clone() };
        assert_eq!(now.latency_ns(0.5, Some(&before)), Some(4_096));
        assert_eq!(now.latency_ns(0.9, Some(&before)), Some(4_096));
        assert_eq!(now.latency_ns(0.99, Some(&before)), Some(8_192));
        assert_eq!(now.latency_ns(0.5, None), Some(1_024));
        assert_eq!(before.latency_ns(0.5, Some(&before)), None);
        assert_eq!(ReaderStatistics::default().latency_ns(0.5, None), None);
    }
}
