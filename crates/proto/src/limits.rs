//! Bounds and timing of writers and readers that are no QoS, and that drivers can set.

use crate::seq::SequenceNumber;
use crate::time::Duration;

/// Bounds and timing of one writer.
#[derive(Clone, Debug)]
pub struct WriterLimits {
    /// Largest UDP payload to readers on the same host, in octets.
    pub datagram_bytes_max_local: usize,
    /// Largest UDP payload to other readers, in octets, as long as `Writer::path` was not told what
    /// their paths take: one Ethernet frame, so that IP never fragments.
    pub datagram_bytes_max_remote: usize,
    /// Longest message by memory, in octets, and what waits there to leave together: a reader begins with the
    /// first part while the next is written. No more than a quarter of the ring.
    pub message_bytes_max_memory: usize,
    /// Samples of at least so many octets go beside their messages by memory: a chunk that is shared costs as
    /// much as copying some thousand octets twice.
    pub attached_bytes_min: usize,
    /// Octets of the ring in which messages go to a process by memory: of a writer half of it may be unread.
    pub memory_ring_bytes: usize,
    /// Octets beside messages that may be lent by a writer and not acknowledged.
    pub lent_bytes_max: usize,
    /// Octets of each datagram that are left free for what is put around its submessages when it is sealed
    /// (DDS Security 1.1 §7.3.6).
    pub sealed_bytes: usize,
    /// Octets of one sample, with the encapsulation header: what readers take, and at most what RTPS can tell
    /// of fragments, 2³² − 1.
    pub sample_bytes_max: usize,
    /// KEEP_ALL: octets of unacknowledged samples, each with some overhead, at which `write` reports
    /// `WriteError::Full`; one sample is always admitted. Half of it where all readers are on this
    /// host, a quarter for a single one of samples below 20 KiB, and less for many readers;
    /// four times as much of longer ones where all share memory.
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
            message_bytes_max_memory: 16 << 10,
            attached_bytes_min: 4 << 10,
            memory_ring_bytes: 256 << 10,
            lent_bytes_max: 64 << 20,
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

/// Bounds on everything a peer can make grow; RESOURCE_LIMITS only tightens them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderLimits {
    /// Largest sample accepted, in octets.
    pub sample_bytes_max: usize,
    /// Octets of incomplete samples, of all writers.
    pub reassembly_bytes_max: usize,
    /// Samples of one writer waiting for a gap to close.
    pub reorder_samples_max: usize,
    /// Octets of such samples of all writers, with what keeping them takes; each may keep as much as its part
    /// of that anyway.
    pub reorder_bytes_max: usize,
    /// Samples in the cache.
    pub samples_max: usize,
    /// Octets of samples in the cache.
    pub cache_bytes_max: usize,
    /// Instances, with or without samples, where RESOURCE_LIMITS names as many.
    pub instances_max: usize,
    /// Where it names none: a key costs a peer some octets, and a reader some hundred.
    pub instances_unlimited_max: usize,
    /// New instances of one writer beyond so many are dropped.
    pub instances_per_writer_max: usize,
    /// Empty instances that are not alive but still remembered.
    pub retired_instances_max: usize,
    /// Instances that writers leave in one call as they go; the others follow with the next
    /// `Reader::timeout`.
    pub instances_left_per_call: usize,
    /// Octets kept only to tell the key of an instance.
    pub key_bytes_max: usize,
    /// Samples held back until their coherent sets have ended; a set that needs more is dropped.
    pub coherent_samples_max: usize,
    /// Octets of such samples.
    pub coherent_bytes_max: usize,
    /// GROUP access: how long samples wait for writers that may never be found, or never tell how far they
    /// are.
    pub group_wait_max: Duration,
    /// Matched writers.
    pub writers_max: usize,
    /// Of them those of one participant, which is not to keep all others out.
    pub writers_of_participant_max: usize,
    /// How long the answer to a heartbeat may wait; zero answers at once.
    pub heartbeat_response_delay: Duration,
}

impl Default for ReaderLimits {
    fn default() -> Self {
        Self {
            // An uncompressed 4K image is 24 MiB; two of them in flight fit.
            sample_bytes_max: 64 << 20,
            reassembly_bytes_max: 64 << 20,
            // One second of 8 kHz; a window of small samples, or two images.
            reorder_samples_max: 8192,
            reorder_bytes_max: 64 << 20,
            samples_max: 1 << 20,
            cache_bytes_max: 1 << 30,
            instances_max: 1 << 20,
            instances_unlimited_max: 1 << 17,
            instances_per_writer_max: 1 << 20,
            retired_instances_max: 1024,
            instances_left_per_call: 4096,
            key_bytes_max: 64 << 20,
            coherent_samples_max: 1 << 16,
            coherent_bytes_max: 64 << 20,
            group_wait_max: Duration::from_secs(2),
            writers_max: 4096,
            writers_of_participant_max: 1024,
            heartbeat_response_delay: Duration::ZERO,
        }
    }
}

/// Bounds and timing of a member of a group of an ATOMIC topic.
#[derive(Clone, Debug)]
pub struct GroupLimits {
    /// A member that is not heard for so long is suspected: the others stop, and go on without it.
    pub lease: Duration,
    /// So is one that receives nothing new for so long, although there is something.
    pub stuck: Duration,
    /// Who finds no group for so long makes one.
    pub bootstrap_after: Duration,
    /// Entries of a member at most that not all members have delivered: then writing waits.
    pub window_entries: usize,
    /// And their octets; one entry is always admitted.
    pub window_bytes: usize,
    /// Entries at most that a member keeps for those who join later.
    pub history_entries_max: usize,
    /// How long writing waits at least while a participant joins its group, or that changes.
    pub settle_within: Duration,
    /// How long a member that leaves waits for the others to go on, and then for its disk.
    pub leave_within: Duration,
    /// And stays after that, to tell how its last epoch ended to who has not heard.
    pub linger: Duration,
    /// Messages of a member that wait to be sent; the first of more is lost.
    pub messages_max: i32,
}

impl Default for GroupLimits {
    fn default() -> Self {
        Self {
            // Ten rows of a member that has nothing to say.
            lease: Duration::from_millis(500),
            stuck: Duration::from_secs(2),
            // Participants of a host find one another in less.
            bootstrap_after: Duration::from_millis(300),
            window_entries: 1024,
            window_bytes: 8 << 20,
            history_entries_max: 1 << 16,
            // Longer than it takes until a group is known to be suspended.
            settle_within: Duration::from_secs(3),
            leave_within: Duration::from_secs(2),
            // Five times what who has stopped waits before it asks again.
            linger: Duration::from_millis(100),
            messages_max: 64,
        }
    }
}

/// When a replicated state takes a snapshot, for those who come later, and how long it may be.
#[derive(Clone, Debug)]
pub struct SnapshotLimits {
    /// After so many commands, so that who comes later needs few of them.
    pub commands: u64,
    /// A snapshot of many octets is taken after as many commands as it has so many octets, so that it costs
    /// each of them little.
    pub bytes_each: usize,
    /// But after so many commands at the latest: a quarter of what a member of a group keeps.
    pub commands_max: u64,
    /// Octets of a snapshot at most: the members of a group keep it in memory.
    pub bytes_max: usize,
}

impl SnapshotLimits {
    /// How many commands follow a snapshot of so many octets before the next.
    #[must_use]
    pub fn pause(&self, bytes: usize) -> u64 {
        ((bytes / self.bytes_each.max(1)) as u64).min(self.commands_max).max(self.commands)
    }
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self {
            commands: 1_024,
            bytes_each: 1 << 10,
            commands_max: 16_384,
            bytes_max: crate::tuning::atomic::STATE_BYTES_MAX,
        }
    }
}
