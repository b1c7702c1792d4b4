//! Bounds and timing of a writer that are no QoS.

use std::fmt;

use crate::seq::SequenceNumber;
use crate::time::Duration;

use super::flow::cost::ComparisonPace;
use super::flow::route_kind::RouteKind;
use super::{WriteError, Writer, bound};
use crate::tuning::writer::CHANGE_OVERHEAD_BYTES;

/// Bounds and timing of one writer.
#[derive(Clone, Debug)]
pub struct WriterLimits {
    /// Largest UDP payload to readers on the same host, in octets.
    pub datagram_bytes_max_local: usize,
    /// Largest UDP payload to other readers, in octets, as long as [`super::Writer::path`] was not told what
    /// their paths take: one Ethernet frame, so that IP never fragments.
    pub datagram_bytes_max_remote: usize,
    /// Octets of each datagram that are left free for what is put around its submessages when it is sealed
    /// (DDS Security 1.1 §7.3.6).
    pub sealed_bytes: usize,
    /// Octets of one sample, with the encapsulation header: what readers take, and at most what RTPS can tell
    /// of fragments, 2³² − 1.
    pub sample_bytes_max: usize,
    /// KEEP_ALL: octets of unacknowledged samples, each with some overhead, at which `write` reports
    /// [`super::WriteError::Full`]; one sample is always admitted. Half of it where all readers are on this
    /// host, a quarter for a single one of samples below 20 KiB, and less for many readers.
    pub unacknowledged_bytes_max: usize,
    /// Least pause before readers that were asked are asked again, however fast they answer.
    pub heartbeat_quickest: Duration,
    /// First pause before unacknowledged readers are asked, and before they are asked again while it is not
    /// known how fast they answer.
    pub heartbeat_shortest: Duration,
    /// Longest pause, when a reader stays silent.
    pub heartbeat_longest: Duration,
    /// While samples flow, one in this time carries a heartbeat, which who misses something answers.
    pub heartbeat_piggyback: Duration,
    /// While samples flow, one in this time carries a heartbeat that everyone answers.
    pub acknowledgement_period: Duration,
    /// A sample asked for again in this time is not repeated while it is not known how fast readers answer:
    /// the requests crossed.
    pub repeat_pause: Duration,
    /// Octets of one burst to readers on the same host: what a default socket buffer (208 KiB) takes.
    pub burst_bytes_local: usize,
    /// Octets of one burst to other readers that acknowledge nothing: with the interval, 1 Gbit/s.
    pub burst_bytes_remote: usize,
    /// What is sent to reliable readers on other hosts waits until the congestion window has room for it, as
    /// their answers tell.
    pub has_congestion_window: bool,
    /// Pause between the beginnings of bursts.
    pub burst_interval: Duration,
    /// Octets of a batch of samples that share datagrams, headers included; samples larger than half of it
    /// leave alone, unless they may be cut to fill datagrams. 0: all do.
    pub batch_bytes: usize,
    /// Datagrams that are usually this long, in octets, may go to a group where several readers of this host
    /// hear one. To share shorter ones among few processes saves little, and a reader that waits at its own
    /// socket would be woken twice (`docs/performance-many.md`).
    pub multicast_bytes_min: usize,
    /// When it is measured whether that costs less.
    pub comparison: ComparisonPace,
    /// So many processes have to hear the group: sharing a datagram among two costs what a copy does.
    pub multicast_processes_min: usize,
    /// An application that pauses for less between writes writes in a flow: its samples may share datagrams.
    pub flow_pause: Duration,
    /// How long a sample of a flow waits for others at most, if the flow is not a great one and sending costs
    /// little.
    pub flow_wait: Duration,
    /// How long a sample waits at most, whatever LATENCY_BUDGET allows.
    pub batch_wait_max: Duration,
    /// Matched readers.
    pub readers_max: usize,
    /// Of them those of one participant, which is not to keep all others out.
    pub readers_of_participant_max: usize,
    /// Nobody waits longer for acknowledgements of a reliable reader that has never answered since its match;
    /// for room even less (see `writer/strangers.rs`). One that has answered is waited for until its lease
    /// ends. INFINITE: so is every reader.
    pub strangers_wait_max: Duration,
    /// Instances, beside RESOURCE_LIMITS.
    pub instances_max: usize,
    /// Repetitions under way; more must be asked for again.
    pub retransmissions_max: usize,
    /// The number of the first change comes after this one. Readers learn it from HEARTBEATs alone: no GAP
    /// tells of what never was.
    pub numbers_after: SequenceNumber,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self {
            datagram_bytes_max_local: 65_000,
            datagram_bytes_max_remote: 1_456,
            sealed_bytes: 0,
            sample_bytes_max: u32::MAX as usize,
            unacknowledged_bytes_max: 2 << 20,
            heartbeat_quickest: Duration::from_millis(1),
            heartbeat_shortest: Duration::from_millis(4),
            heartbeat_longest: Duration::from_millis(60),
            heartbeat_piggyback: Duration::from_millis(1),
            acknowledgement_period: Duration::from_millis(10),
            repeat_pause: Duration::from_millis(2),
            burst_bytes_local: 3 * 64_000,
            burst_bytes_remote: 64_000,
            has_congestion_window: true,
            burst_interval: Duration::from_micros(500),
            batch_bytes: 65_000,
            multicast_bytes_min: 4_000,
            comparison: ComparisonPace::default(),
            multicast_processes_min: 3,
            flow_pause: Duration::from_micros(5),
            flow_wait: Duration::from_micros(200),
            batch_wait_max: Duration::from_millis(100),
            readers_max: 1_024,
            readers_of_participant_max: 256,
            strangers_wait_max: Duration::from_secs(20),
            instances_max: 1 << 20,
            retransmissions_max: 128,
            numbers_after: SequenceNumber(0),
        }
    }
}

/// What bounds the changes of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// RESOURCE_LIMITS max_samples.
    Samples,
    /// RESOURCE_LIMITS max_samples_per_instance.
    SamplesPerInstance,
    /// RESOURCE_LIMITS max_instances, or [`WriterLimits::instances_max`].
    Instances,
    /// [`WriterLimits::unacknowledged_bytes_max`], or the part of it that the readers there are leave.
    UnacknowledgedBytes,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Samples => "RESOURCE_LIMITS max_samples",
            Self::SamplesPerInstance => "RESOURCE_LIMITS max_samples_per_instance",
            Self::Instances => "RESOURCE_LIMITS max_instances",
            Self::UnacknowledgedBytes => "unacknowledged_bytes_max",
        })
    }
}

impl Writer {
    /// Which limit it was that [`WriteError::Full`] told of last.
    #[must_use]
    pub const fn full_by(&self) -> Limit {
        self.full_by
    }

    /// A limit with its value.
    #[must_use]
    pub fn limit_in_words(&self, limit: Limit) -> String {
        let (qos, most) = (&self.config.qos.resource_limits, &self.config.limits);
        match limit {
            Limit::Samples => format!("{limit} = {}", qos.max_samples),
            Limit::SamplesPerInstance => format!("{limit} = {}", qos.max_samples_per_instance),
            Limit::Instances if bound(qos.max_instances) > most.instances_max => {
                format!("the bound of {} instances of any writer", most.instances_max)
            }
            Limit::Instances => format!("{limit} = {}", qos.max_instances),
            Limit::UnacknowledgedBytes => format!(
                "{limit} = {}, of which these readers leave {} octets, {CHANGE_OVERHEAD_BYTES} of them for each sample",
                most.unacknowledged_bytes_max, self.window_bytes
            ),
        }
    }

    pub(super) const fn full(&mut self, limit: Limit) -> WriteError {
        self.full_by = limit;
        WriteError::Full
    }
}

impl WriterLimits {
    pub(super) const fn datagram_bytes_max(&self, kind: RouteKind) -> usize {
        match kind {
            RouteKind::SameHost => self.datagram_bytes_max_local,
            RouteKind::Remote => self.datagram_bytes_max_remote,
        }
    }

    pub(super) const fn burst_bytes(&self, kind: RouteKind) -> usize {
        match kind {
            RouteKind::SameHost => self.burst_bytes_local,
            RouteKind::Remote => self.burst_bytes_remote,
        }
    }
}
