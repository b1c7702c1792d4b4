//! What readers are tuned by.

use crate::time::Duration;

rows! { ACKNOWLEDGEMENTS: "Reader: acknowledgements and requests";
    /// What was just requested is not requested again before this time: it may be on its way. Where the way
    /// is longer, the writer knows what it has just repeated.
    REQUEST_REPEAT_MIN: Duration = 500, us;
    /// A writer that announces by itself what it has is sent a first ACKNACK after this time.
    FIRST_ACKNACK_DELAY: Duration = 500, ms;
    /// One that sends the first HEARTBEAT by itself has done so in this time, unless that was lost.
    FIRST_HEARTBEAT_WITHIN: Duration = 100, ms;
    /// Windows of 256 fragments requested in one datagram.
    NACK_FRAGS_MAX: usize = 16, submessages;
    /// Room for an ACKNACK and as many NACK_FRAGs, each at most 68 octets, in one Ethernet frame.
    ACKNACK_DATAGRAM_BYTES_MAX: usize = 1_456, octets;
    /// First pause between the ACKNACKs that ask an unheard writer for a HEARTBEAT.
    PROBE_PAUSE: Duration = 10, ms;
    /// Their longest pause.
    PROBE_PAUSE_MAX: Duration = 1, s;
    /// After so many unanswered probes the writer is asked more rarely.
    PROBES_FAST_MAX: u32 = 20, probes;
    /// Which is this often.
    PROBE_PAUSE_SLOW: Duration = 10, s;
    /// Of more writers than that, which on one host answer one after the other, the first pause is longer.
    PROBE_WRITERS: usize = 4, writers;
    /// First pause before what is missing is requested again without another HEARTBEAT.
    RETRY_PAUSE: Duration = 100, ms;
    /// The longest.
    RETRY_PAUSE_MAX: Duration = 2, s;
    /// After so many requests to a participant that sends nothing a built-in reader asks ever less: its lease
    /// may be without end.
    UNANSWERED_REQUESTS_MAX: u32 = 8, requests;
    /// The first pause then; it grows up to that of slow probes.
    UNANSWERED_PAUSE: Duration = 2, s;
    /// What follows within this time is on its way, not lost: fragments behind the last one, samples behind a
    /// later one.
    IN_FLIGHT: Duration = 300, us;
    /// So many HEARTBEATs of another vendor may be on their way at once: one that comes after a later one is
    /// not of a writer that began anew.
    HEARTBEATS_OVERTAKEN_MAX: i32 = 64, submessages;
    /// A writer of Plainsong counts those to all readers together, and for ever: one with a lower count was
    /// overtaken, if it comes within this time. Paths differ by some 100 ms. Later it is believed, so that a
    /// forged count does no lasting harm.
    HEARTBEATS_OVERTAKEN_FOR: Duration = 1, s;
    /// No writer gets further than this between two messages that a reader hears: 2³² changes are an hour at
    /// a million a second. A number beyond it is forged or broken.
    SEQUENCE_JUMP_MAX: i64 = 1 << 32, changes;
    /// Beyond this sequence number nothing is believed: it leaves room for arithmetic.
    SEQUENCE_NUMBER_MAX: i64 = 1 << 62, changes;
    /// Ranges of irrelevant numbers kept for each writer. One GAP makes at most 129 of them; more than eight
    /// such GAPs ahead of a hole are requested again later.
    IRRELEVANT_RANGES_MAX: usize = 1_024, ranges;
}

rows! { FRAGMENTS: "Reader: fragments";
    /// Fragments of one sample: 64 MiB in pieces of 256 octets, a bitmap of 32 KiB.
    FRAGMENTS_MAX: u32 = 262_144, fragments;
    /// Samples of one writer being put together at the same time.
    INCOMPLETE_SAMPLES_MAX: usize = 256, samples;
    /// Memory may run ahead of the octets received by this factor, lest one datagram claim much.
    FRAGMENT_MEMORY_FACTOR: usize = 64, times;
    /// Memory any first fragment may claim beside that.
    FRAGMENT_MEMORY_FREE_BYTES: usize = 64, KiB;
    /// What an allocator rounds up of an incomplete sample.
    ALLOCATION_ROUNDING_BYTES: usize = 64, octets;
    /// Nodes of a tree may be half empty.
    TREE_NODE_TIMES: usize = 2, times;
    /// Words of a bitmap of fragments at least.
    FRAGMENT_BITMAP_WORDS_MIN: usize = 4, words;
    /// An incomplete sample that got no fragment for so long no longer keeps others out.
    FRAGMENTS_STALLED: Duration = 1, s;
    /// Those whose turn it is to be delivered are checked for that so often.
    FRAGMENTS_STALLED_CHECK: Duration = 100, ms;
}

rows! { CACHE: "Reader: cache";
    /// Entries whose memory a thread that takes keeps, a MB or two.
    ENTRIES_KEPT_MAX: usize = 8_192, samples;
    /// Shorter deadlines are watched this often: a period of zero must not keep the timer busy for ever.
    DEADLINE_PERIOD_MIN: Duration = 1, ms;
    /// A sample held back for which the cache has no room is tried again after this time.
    HELD_BACK_RETRY: Duration = 100, ms;
    /// Of so much that is not kept in place the application is notified before more is taken in: it is in the
    /// first cache of the core then, and the memory that it leaves is used again at once.
    NOTIFY_BYTES_MAX: usize = 16, KiB;
    /// Sets of writers remembered of one publisher.
    WRITER_SETS_MAX: usize = 16, sets;
    /// So many instances have to be forgotten before memory is given back.
    FORGOTTEN_INSTANCES_MIN: usize = 1_024, instances;
    /// New slots for samples are made in the proportion of those that there are, one to so many.
    SLOT_GROWTH_DIVISOR: usize = 4, parts;
    /// But so many at least.
    SLOT_GROWTH_MIN: usize = 4, slots;
    /// After so many takes it is checked whether the slots are too many for what was in them meanwhile.
    SLOT_CHECK_TAKES: u32 = 64, takes;
    /// So many writers of undecodable samples are explained. Those that are gone make room for others.
    UNDECODABLE_WRITERS_MAX: usize = 64, writers;
    /// Of so many samples it is remembered that they were counted as undecodable: threads that read at the
    /// same time find the same ones.
    UNDECODABLE_COUNTED_MAX: usize = 1_024, samples;
}
