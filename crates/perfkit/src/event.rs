//! What a worker tells.

use serde::{Deserialize, Serialize};

use crate::adapter::{Description, EncodeCost};

/// One line on the standard output of a worker. Times are nanoseconds of the monotonic clock of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The first line, always.
    Hello {
        /// Version of this protocol, 1.
        protocol: u32,
        /// The process.
        pid: u32,
        /// What the adapter says of itself.
        description: Description,
    },
    /// Everything exists and everyone expected is matched.
    Ready {
        /// How long it took from the command on.
        took_ns: u64,
    },
    /// What happened in one interval (a second).
    Interval(Interval),
    /// The end of the work.
    Report(Box<Report>),
    /// It cannot be done: the worker ends after this.
    Error {
        /// `unsupported`, `failed`, `unmatched` (nobody came in time) or `protocol` (the command made no
        /// sense).
        kind: ErrorKind,
        /// What happened and what to do.
        message: String,
    },
}

/// See [`Event::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The adapter or its product does not offer this.
    Unsupported,
    /// The product failed.
    Failed,
    /// Not everyone expected was matched in time.
    Unmatched,
    /// A command that makes no sense.
    Protocol,
}

/// Counts of one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began.
    pub start_ns: u64,
    /// How long it was.
    pub length_ns: u64,
    /// True while warming up: not counted in the report.
    pub warmup: bool,
    /// Step of a ramp.
    pub phase: u16,
    /// Samples written.
    pub sent: u64,
    /// Samples received that were none of the following.
    pub received: u64,
    /// Octets of payload received.
    pub octets: u64,
    /// Samples missing so far; a late one takes one back.
    pub lost: i64,
    /// Samples a second time.
    pub duplicates: u64,
    /// Samples after one with a higher number of the same writer and instance.
    pub reordered: u64,
    /// Samples whose checksum is wrong.
    pub corrupted: u64,
    /// Median and 99th percentile of the latency in this interval, if any were measured.
    pub latency_p50_ns: Option<u64>,
    /// See `latency_p50_ns`.
    pub latency_p99_ns: Option<u64>,
    /// The longest.
    pub latency_max_ns: Option<u64>,
    /// All of them, in the form of those of a [`Report`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<NamedHistogram>,
    /// Writes that began later than a tenth of their period after their time (paced writers).
    pub missed_slots: u64,
}

/// What a worker measured after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// When measuring began and how long it took.
    pub start_ns: u64,
    /// See `start_ns`. For a subscriber whose time did not come to its end: from the first to the last sample
    /// counted.
    pub length_ns: u64,
    /// Samples written in the measured time (answers, for a pong). Equals what readers should count.
    pub sent: u64,
    /// Writes that timed out.
    pub write_timeouts: u64,
    /// Totals of a reader. Those of a pinger are about its answers, and complete: it knows what it wrote.
    pub totals: Totals,
    /// What of the totals of a subscriber came before its time was over: a rate is of these, for `length_ns`.
    #[serde(default)]
    pub in_time: Option<InTime>,
    /// The same for each writer (and, if there are few, each instance) that was heard.
    pub streams: Vec<Stream>,
    /// The same for each step of a ramp.
    pub phases: Vec<Phase>,
    /// Histograms: HdrHistogram V2, deflated or not, base64; nanoseconds, 3 digits.
    pub histograms: Vec<NamedHistogram>,
    /// Changes of owner and gaps, for failover.
    pub switches: Vec<Switch>,
    /// Times in which a subscriber that measures one-way latency was behind.
    #[serde(default)]
    pub stalls: Vec<Stall>,
    /// What streamed beside pings and answers: written by the one, received by the other, both in the
    /// measured time.
    #[serde(default)]
    pub background: InTime,
    /// Mean and standard deviation of the latency, in nanoseconds, from the values themselves.
    pub latency_mean_ns: Option<f64>,
    /// See `latency_mean_ns`.
    pub latency_deviation_ns: Option<f64>,
    /// Time until everything was matched, for discovery.
    pub matched_after_ns: Option<u64>,
    /// Serialization.
    pub encode: Option<EncodeCost>,
    /// Missed slots of a paced writer.
    pub missed_slots: u64,
    /// Faults injected by the worker, for the self-test.
    pub injected: Totals,
    /// Nanoseconds that the recorder takes for one sample, measured in this process.
    pub recorder_cost_ns: f64,
}

/// Counts over a whole measurement.
///
/// A reader sees a loss by what comes after it. What was lost at the very end it cannot see: that is
/// `sent` of the writers less `received`, `lost` and `corrupted` here, which whoever knows both adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Good samples.
    pub received: u64,
    /// Octets of payload of those.
    pub octets: u64,
    /// Never came, though one after it did.
    pub lost: u64,
    /// Came again.
    pub duplicates: u64,
    /// Came after a later one.
    pub reordered: u64,
    /// Came with a wrong checksum, or from a writer or of an instance that does not exist. Not lost as well.
    pub corrupted: u64,
}

/// What a subscriber received before its time was over, or a thread beside a ping or its answer wrote or
/// received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InTime {
    /// Good samples.
    pub received: u64,
    /// Octets of payload of those.
    pub octets: u64,
}

impl Report {
    /// The time that this reader was behind at that moment.
    #[must_use]
    pub fn stall_at(&self, at_ns: u64) -> Option<Stall> {
        let holds = |it: &&Stall| it.begin_ns <= at_ns && it.end_ns.is_none_or(|end_ns| end_ns > at_ns);
        self.stalls.iter().find(holds).copied()
    }

    /// What counts for a rate: what came in time, or all where nobody made a difference.
    #[must_use]
    pub fn received_in_time(&self) -> InTime {
        self.in_time.unwrap_or(InTime { received: self.totals.received, octets: self.totals.octets })
    }
}

/// Counts of one writer, and of one instance where there are at most 64 of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// The writer's number, from the payload.
    pub writer: u16,
    /// The instance, if counted apart.
    pub instance: Option<u32>,
    /// The counts.
    pub totals: Totals,
}

/// Counts of one step of a ramp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// The step, from 0.
    pub phase: u16,
    /// The rate asked for, samples a second (writers only).
    pub target_rate: u64,
    /// How long it took.
    pub length_ns: u64,
    /// Samples written (writers only).
    pub sent: u64,
    /// What was received (readers only).
    pub totals: Totals,
    /// Latency percentiles of the step.
    pub latency_p50_ns: Option<u64>,
    /// See `latency_p50_ns`.
    pub latency_p99_ns: Option<u64>,
}

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedHistogram {
    /// `round_trip`; `round_trip_corrected` (closed loop: what it would have seen had it gone on writing
    /// every median round trip); `one_way`; `write_call` (one of 16 without pacing); `matched` (each
    /// participant, for discovery); `call:lookup`, `call:read_instance`, `call:read_all`, `call:query`,
    /// `call:take_one`.
    pub name: String,
    /// The number of values.
    pub count: u64,
    /// HdrHistogram V2, deflated, base64.
    pub data: String,
}

/// A time in which a subscriber was not up to date: samples came later than 10 ms after they were due, or
/// were missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When the last sample came that was not late.
    pub begin_ns: u64,
    /// When the first one came that was not late, with none missing that was not missing before; `None`:
    /// never.
    pub end_ns: Option<u64>,
}

/// The stream a reader shows went from one writer to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// When the first sample of the new writer came.
    pub at_ns: u64,
    /// The writer before.
    pub from: u16,
    /// The writer now.
    pub to: u16,
    /// Since the last sample of the writer before.
    pub gap_ns: u64,
}
