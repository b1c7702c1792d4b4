//! What one worker does: the whole of it, in one JSON object.

use serde::{Deserialize, Serialize};

/// Everything a worker is told before it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSpec {
    /// Its name in the results: `ping`, `pub-3`.
    pub name: String,
    /// Where it joins.
    pub session: SessionSpec,
    /// What it does.
    pub role: Role,
    /// Time before anything counts.
    pub warmup_ms: u64,
    /// Time that counts. The work also ends when `samples_max` are done.
    pub duration_ms: u64,
    /// How many samples at most, 0 for no limit.
    #[serde(default)]
    pub samples_max: u64,
    /// Within this time all that is expected must be matched.
    pub match_timeout_ms: u64,
    /// After the end, also when stopped, a reader goes on until nothing came for so long (8 s at most), or it
    /// is stopped again. A writer waits so long for acknowledgements.
    pub drain_ms: u64,
    /// When its time is over, a writer waits at least so long for acknowledgements, and a reader so long to
    /// be stopped before its drain begins: what a product repairs late is late and not lost.
    #[serde(default)]
    pub settle_ms: u64,
    /// What goes wrong on purpose, for the self-test.
    #[serde(default)]
    pub faults: Faults,
    /// Seed of everything random: payload, order of instances.
    pub seed: u64,
    /// What streams beside pings and answers, between the same two processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
}

/// Samples that the worker that pings writes to the one that answers, each by a thread and an endpoint more
/// in the same session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// The writer and the reader.
    pub endpoint: EndpointSpec,
    /// Octets of payload, at least 4.
    pub size: u64,
    /// When they are written. [`Pacing::Max`]: each as soon as the one before is acknowledged.
    pub pacing: Pacing,
}

/// Where a worker joins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSpec {
    /// The DDS domain. Others make ports, names or paths of it.
    pub domain: u32,
    /// Name or address of the interface; what the product chooses if absent.
    #[serde(default)]
    pub interface: Option<String>,
    /// User data by multicast (true), unicast (false), or as the product chooses.
    #[serde(default)]
    pub multicast: Option<bool>,
    /// Addresses of other hosts, for what cannot discover.
    #[serde(default)]
    pub peers: Vec<String>,
    /// Addresses this host has for others (baselines without discovery listen there).
    #[serde(default)]
    pub listen: Option<String>,
    /// `default`, or `tuned`: the product's best documented settings.
    #[serde(default)]
    pub profile: Profile,
    /// An empty directory that all workers of a cell on this host share (sockets, shared memory).
    #[serde(default)]
    pub scratch: String,
}

/// Settings of a product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// As it comes.
    #[default]
    Default,
    /// The best settings that its makers document.
    Tuned,
}

/// A writer or a reader.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointSpec {
    /// The topic. Its type is `PerfKeyed` of `perf/adapters/perf.idl` if `keyed`, `PerfBytes` if not.
    pub topic: String,
    /// The instance is a key.
    #[serde(default)]
    pub keyed: bool,
    /// RELIABILITY RELIABLE instead of BEST_EFFORT.
    pub reliable: bool,
    /// HISTORY KEEP_LAST of this depth; 0 means KEEP_ALL.
    pub history_depth: u32,
    /// DURABILITY TRANSIENT_LOCAL instead of VOLATILE.
    #[serde(default)]
    pub transient_local: bool,
    /// How long a reliable write may block.
    #[serde(default = "a_second")]
    pub blocking_ms: u64,
    /// OWNERSHIP EXCLUSIVE with this strength.
    #[serde(default)]
    pub ownership_strength: Option<i32>,
    /// DEADLINE, 0 for none.
    #[serde(default)]
    pub deadline_ms: u64,
    /// LIVELINESS AUTOMATIC with this lease, 0 for infinite.
    #[serde(default)]
    pub liveliness_ms: u64,
    /// TRANSPORT_PRIORITY.
    #[serde(default)]
    pub priority: i32,
    /// The largest payload that will be written.
    pub payload_max: u64,
    /// The number of instances that will be written.
    pub instances: u32,
    /// The product may put samples together.
    #[serde(default = "yes")]
    pub batching: bool,
    /// How a reader gets its samples.
    #[serde(default)]
    pub read: ReadMethod,
    /// Readers only: a content filter `instance < N`.
    #[serde(default)]
    pub filter_instances_below: Option<u32>,
}

fn a_second() -> u64 {
    1000
}

fn yes() -> bool {
    true
}

/// How samples are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum ReadMethod {
    /// The product calls. One that has no feature `listener` is read as with `Waitset`.
    #[default]
    Listener,
    /// A thread of the worker waits (WaitSet, blocking receive).
    Waitset,
    /// A thread of the worker looks every so often; 0 for always (busy).
    Polling {
        /// Time between looks, microseconds.
        period_us: u64,
    },
}

/// A call of a reader whose cost is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadCall {
    /// `lookup_instance`.
    Lookup,
    /// `read_instance`, up to 1 sample.
    ReadInstance,
    /// `read` of everything.
    ReadAll,
    /// `read` with a QueryCondition `instance = N`.
    Query,
    /// `take` of one sample (the last call, it consumes).
    TakeOne,
}

/// What a worker does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Role {
    /// Writes instance 0 on `ping`, waits for the answer on `pong`: closed loop when `rate` is 0, open loop
    /// otherwise, with latency counted from the time the sample was due.
    Ping {
        /// The writer; its topic is that of the pings.
        writer: EndpointSpec,
        /// The reader; its topic is that of the answers.
        reader: EndpointSpec,
        /// Octets of payload, at least 4.
        size: u64,
        /// Samples a second, 0 for one outstanding.
        rate: u64,
        /// The next ping is written after this time if answers are missing (closed loop).
        timeout_ms: u64,
        /// Answers expected for each ping (number of pongs).
        answers: u32,
    },
    /// Answers pings.
    Pong {
        /// The reader of pings.
        reader: EndpointSpec,
        /// The writer of answers.
        writer: EndpointSpec,
        /// Answer with the same payload (true) or with its first 4 octets (false).
        full: bool,
    },
    /// Writes.
    Publish {
        /// The writer.
        writer: EndpointSpec,
        /// Its number in payloads.
        number: u16,
        /// Octets of payload, at least 4.
        size: u64,
        /// The numbers of the instances written are 0 to this, exclusive.
        instances: u32,
        /// Order of instances.
        order: InstanceOrder,
        /// When.
        pacing: Pacing,
        /// The readers that must be matched before it is ready.
        readers: u32,
    },
    /// Reads and counts.
    Subscribe {
        /// The reader.
        reader: EndpointSpec,
        /// The writers that must be matched before it is ready; their numbers are below this.
        writers: u32,
        /// Write clocks are ours: measure one-way latency.
        one_way: bool,
        /// Look at checksums of whole payloads.
        checksum: bool,
    },
    /// From the start on: participants with endpoints, until each has matched what it must, or the duration
    /// is over.
    Discover {
        /// Participants of this worker.
        participants: u32,
        /// Writers and as many readers of each participant, on topics `perf_0` and so on that all share.
        endpoints: u32,
        /// Participants of all workers.
        participants_total: u32,
    },
    /// Fills a reader with one sample of each instance (of its own writer) and times its calls, each kind for
    /// its part of the duration, or `samples_max` times.
    ReadCost {
        /// The writer.
        writer: EndpointSpec,
        /// The reader.
        reader: EndpointSpec,
        /// Octets of payload.
        size: u64,
        /// Which calls.
        calls: Vec<ReadCall>,
    },
    /// Encodes and decodes one of `numbers`, `text`, `pose`, `image` and `track`, which
    /// `perf/adapters/encode.idl` describes.
    Encode {
        /// The type.
        type_name: String,
    },
}

/// The order in which instances are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceOrder {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Uniform.
    Random,
}

/// When samples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "pacing", rename_all = "snake_case")]
pub enum Pacing {
    /// As fast as writes return.
    Max,
    /// At points of time that are fixed before: one every 1/rate s, whatever happened to those before.
    Rate {
        /// Samples a second.
        rate: u64,
    },
    /// So many at once, every so often.
    Burst {
        /// Samples.
        count: u64,
        /// Between starts of bursts, microseconds.
        period_us: u64,
    },
    /// A rate that grows until it is missed.
    Ramp {
        /// First rate, samples a second.
        start: u64,
        /// What is added at each step.
        step: u64,
        /// How long a step is.
        hold_ms: u64,
        /// Ends when so many steps in a row reached less than 99 % of their rate.
        misses: u32,
    },
}

/// What a worker does wrong on purpose. Of every `period` samples one is not written (`drop`), written twice,
/// exchanged with the next, or has an octet of its payload changed after its checksum was made. 0: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Every so many are not written.
    pub drop_every: u64,
    /// Every so many are written twice.
    pub duplicate_every: u64,
    /// Every so many are written after the one that follows.
    pub swap_every: u64,
    /// Every so many get a wrong octet.
    pub corrupt_every: u64,
    /// A pong sleeps so long before it answers.
    pub delay_us: u64,
}
