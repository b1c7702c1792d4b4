//! What payloads, tables and datagrams under construction are tuned by.

rows! { MEMORY: "Memory and datagrams";
    /// Payloads of so many octets are kept in place: one takes 128 with them.
    PAYLOAD_IN_PLACE_BYTES_MAX: usize = 125, octets;
    /// So many octets cost less to copy than to share among history and datagrams: locks, atomic operations,
    /// cache lines that travel.
    PAYLOAD_COPIED_BYTES_MAX: usize = 1_280, octets;
    /// So many payloads of a reader, or of a thread that takes, keep a place of their own when nothing is in
    /// it.
    PAYLOAD_PLACES_KEPT: usize = 64, payloads;
    /// Buffers that a pool keeps at most.
    POOL_BUFFERS_MAX: usize = 16_384, buffers;
    /// And what they hold together, but for some large ones; the rest is freed.
    POOL_BYTES_MAX: usize = 8, MiB;
    /// Larger buffers are not kept: a rare image must not pin its memory for ever.
    POOL_BUFFER_BYTES_MAX: usize = 8, MiB;
    /// So many large buffers are kept whatever they hold together.
    POOL_LARGE_BUFFERS_MAX: usize = 8, buffers;
    /// Buffers from this size on are large.
    POOL_LARGE_BYTES: usize = 64, KiB;
    /// So many buffers of a pool are tried before a new one is made.
    POOL_LOOKS: usize = 4, buffers;
    /// glibc copies less without `rep movsb`; longer copies are cut into pieces of this (`copying.rs`).
    COPY_PIECE_BYTES: usize = 2, KiB;
    /// Keys and members of types with larger values are read from octets: a value on the stack of a receive
    /// thread (2 MiB) is there some twenty times in a debug build, and once more for each level of nesting.
    STACK_VALUE_BYTES: usize = 8, KiB;
    /// What no described type reads, one that contains itself, is decoded up to this size, and no larger.
    STACK_VALUE_BYTES_MAX: usize = 32, KiB;
    /// Tables with fewer entries keep their memory.
    SHRINK_ENTRIES_MIN: usize = 1_024, entries;
    /// So many things that were forgotten are worth giving the heap back: a few MB, in pieces that it keeps
    /// for others of their size.
    HEAP_TRIM_AFTER: usize = 10_000, allocations;
    /// So many instances with one hash are looked at to find which of them a bare hash means.
    HASH_CANDIDATES_MAX: usize = 16, instances;
    /// Longer datagrams are not searched for several requests.
    SEVERAL_REQUESTS_BYTES_MAX: usize = 1_500, octets;
    /// Datagrams that may wait to be sent together.
    GATHERED_MAX: usize = 64, datagrams;
    /// What such a datagram has at most: more than a GAP and a HEARTBEAT.
    GATHERED_BYTES_MAX: usize = 192, octets;
    /// No larger datagram is merged of shorter ones: any path takes this much.
    MERGED_BYTES_MAX: usize = 1_456, octets;
    /// Datagrams among which the last one to the same destinations is looked for.
    MERGE_LOOK_BACK: usize = 256, datagrams;
}
