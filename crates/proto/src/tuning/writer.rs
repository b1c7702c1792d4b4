//! What writers are tuned by.

use crate::time::Duration;

rows! { ACKNOWLEDGEMENTS: "Writer: acknowledgement requests";
    /// Readers are asked again so often before the pauses grow: each of as many losses in a row costs the
    /// same.
    PROMPT_TRIES: u32 = 3, requests;
    /// A sample that follows the one before after such a pause requests an acknowledgement: the next may come
    /// too late to show that it is lost.
    ISOLATED_AFTER: Duration = 2, ms;
    /// Within a host hardly anything is lost: of isolated samples one in this time requests an
    /// acknowledgement once readers have answered, and the last is asked about so much later.
    ISOLATED_REQUEST_PERIOD: Duration = 50, ms;
    /// Unless so much of the window would wait for it.
    ISOLATED_BYTES_MAX: usize = 64, KiB;
    /// And if there are no more reliable readers, all of this host.
    ISOLATED_READERS_MAX: usize = 2, readers;
    /// An ACKNACK that follows a repetition sooner may have crossed it, however short the round trip is.
    CROSSING_MIN: Duration = 250, us;
    /// An urgent request, by the part of `heartbeat_piggyback` that has passed since the last.
    URGENT_PERIOD_DIVISOR: i64 = 8, parts;
    /// An urgent request, by samples since the last.
    URGENT_SAMPLES: usize = 8, samples;
    /// Acknowledgements are requested by this part of the window.
    WINDOW_PARTS: usize = 4, parts;
    /// The same of short samples to a single reader of this host, which is so close behind that an
    /// acknowledgement for each half keeps the writer going.
    WINDOW_PARTS_OF_ONE: usize = 2, parts;
    /// So many readers answer in no time; with more, the time until the last has answered is measured.
    PROMPT_READERS: usize = 4, readers;
    /// First pause before readers of a fan-out are asked again, at most.
    FAN_OUT_PAUSE_MAX: Duration = 1, s;
    /// The pause after requests to one reader of a fan-out doubles so often.
    READER_PAUSE_DOUBLINGS: u32 = 6, times;
    /// It is at most this for each reader. If it were shorter than what a busy host takes to answer all,
    /// requests would keep the host busy.
    READER_PAUSE_EACH: Duration = 20, ms;
    /// And at most this for all.
    READER_PAUSE_MAX: Duration = 8, s;
    /// A reader that does not know the writer yet learns of it in this time, unless discovery is slow.
    UNRESPONSIVE_AFTER: Duration = 1, s;
    /// A reader that counts as unresponsive was asked so often: where 40 of 100 datagrams are lost either
    /// way, one in 200 is not heard in spite of that, and it is never asked for less than a second.
    UNRESPONSIVE_REQUESTS_MIN: u32 = 12, requests;
    /// First pause between requests to readers that nothing waits for.
    UNRESPONSIVE_PAUSE: Duration = 250, ms;
    /// Their longest pause.
    UNRESPONSIVE_PAUSE_MAX: Duration = 4, s;
}

rows! { REPAIR: "Writer: repetitions";
    /// What may be repeated to a reader that acknowledges nothing, in a second.
    REPAIR_BYTES_PER_SECOND: i64 = 64, KiB;
    /// So much is kept for the lowest change that a reader lacks, if that is no longer.
    REPAIR_LOWEST_BYTES_MAX: i64 = 192, KiB;
    /// So much for all others.
    REPAIR_OTHERS_BYTES_MAX: i64 = 8, MiB;
    /// Of a change that is longer than what is kept for the lowest, the first request earns so many times its
    /// length: it takes long to be acknowledged.
    REPAIR_TIMES_OF_LONG: i64 = 2, times;
    /// What is acknowledged earns so many times its length where that is wanted for the lowest change, and
    /// once for all others.
    REPAIR_TIMES_OF_LOWEST: i64 = 2, times;
    /// What surrounds a repeated change in its datagram, about.
    REPAIR_OVERHEAD_BYTES: i64 = 64, octets;
    /// A reader that began anew has no more than it says; it does not begin more often.
    READER_RESTART_PERIOD: Duration = 10, s;
}

rows! { CONGESTION: "Writer: congestion windows and pacing";
    /// The congestion window at the beginning.
    CWND_INITIAL_BYTES: usize = 16, KiB;
    /// At least, however slow the path.
    CWND_MIN_BYTES: usize = 6_000, octets;
    /// At most, however long the path, and fast.
    CWND_MAX_BYTES: usize = 8, MiB;
    /// What readers' sockets are taken to hold when that is not announced: as many datagrams of one Ethernet
    /// frame as Linux puts into the usual 208 KiB, with what it counts beside their octets.
    SOCKET_BYTES_ASSUMED: usize = 128, KiB;
    /// So long a sample may wait in the queues of the path.
    QUEUE_DELAY_TARGET: Duration = 4, ms;
    /// What the sockets of readers hold may be less than that, but readers that miss something take as long
    /// as this to answer.
    QUEUE_DELAY_TARGET_MIN: Duration = 500, us;
    /// The same where readers of other makes wait some milliseconds before they answer.
    QUEUE_DELAY_TARGET_OF_OTHERS: Duration = 25, ms;
    /// What these are sent for each millisecond of a round trip at most, and as long as nothing is lost and
    /// nothing waits: their answers do not say what has arrived of a sample before its end, so that nobody
    /// could find out what the path carries.
    OTHERS_BYTES_PER_MS: u64 = 128_000, octets;
    /// A window is spread over no longer time.
    PACING_SPREAD_MAX: Duration = 100, ms;
    /// What a round adds: this part of the window.
    CWND_STEP_DIVISOR: usize = 64, parts;
    /// Between one datagram and some.
    CWND_STEP_BYTES: [usize; 2] = [1_500, 6_000], octets;
    /// So often queues are let drain for a round, so that the shortest round trip is seen: who came while
    /// others filled them would take them for a part of the path, and more than its part of it.
    DRAIN_PERIOD: Duration = 2, s;
    /// But after so many round trips at least.
    DRAIN_ROUND_TRIPS: i64 = 50, round_trips;
    /// One in so many octets may be lost without fault of the window where answers wait in queues: paths lose
    /// some by themselves.
    LOSS_TOLERATED_QUEUED: u64 = 24, parts;
    /// The same where they do not wait.
    LOSS_TOLERATED: u64 = 4, parts;
    /// The window grows no further where one in so many octets is lost.
    LOSS_ENDS_GROWTH: u64 = 16, parts;
    /// One in so many shows that a path loses some by itself.
    LOSS_OF_LOSSY_PATH: u64 = 128, parts;
    /// Of fewer octets nothing is said about losses.
    LOSS_MEASURED_BYTES_MIN: u64 = 64, KiB;
    /// Losses are counted over about so many rounds.
    LOSS_ROUNDS: u64 = 8, rounds;
    /// Answers that spent less in queues than this did not wait: times to answer differ, and who misses
    /// something takes longer.
    QUEUED_MIN: Duration = 1_500, us;
    /// How far a round shrinks the window at most.
    CWND_SHRINK_PERCENT_MAX: u64 = 50, percent;
    /// What many losses leave of it.
    CWND_AFTER_LOSS_PERCENT: u64 = 70, percent;
    /// Acknowledgement requests of a route that are remembered.
    CWND_REQUESTS_MAX: usize = 256, requests;
    /// How long readers that answer nothing are waited for, at least.
    ACK_TIMEOUT_MIN: Duration = 50, ms;
    /// At most.
    ACK_TIMEOUT_MAX: Duration = 1, s;
    /// And in round trips.
    ACK_TIMEOUT_ROUND_TRIPS: i64 = 4, round_trips;
    /// They are asked again after two round trips, and this at least.
    CWND_REQUEST_REPEAT_MIN: Duration = 1, ms;
    /// Readers are asked when so large a part of the window was sent since.
    CWND_REQUEST_PARTS: usize = 4, parts;
    /// Many readers, more rarely.
    CWND_REQUEST_PARTS_OF_MANY: usize = 2, parts;
    /// So many are many.
    CWND_REQUEST_MANY: usize = 4, readers;
    /// The part while the window grows with each answer, and on a path that loses some: also requests and
    /// answers, which show what is missing.
    CWND_REQUEST_PARTS_OFTEN: usize = 24, parts;
    /// Few readers are asked on a long path when so much was sent since as leaves it in that time: who sends
    /// a quarter of a window at once makes others wait for longer than the window is to, and an empty queue
    /// for itself.
    CWND_REQUEST_SPAN_MAX: Duration = 1, ms;
    /// The shortest round trip is looked for anew so often: paths change.
    BASE_ROUND_TRIP_PERIOD: Duration = 10, s;
    /// What was not sent in one burst to other hosts may be in the next, as far as that: so many times what
    /// one has.
    BURSTS_SAVED: usize = 4, bursts;
    /// Or so much.
    BURST_SAVED_BYTES: usize = 8_000, octets;
    /// Ends of changes that are distinguished; later ones count as one, which is acknowledged with the last
    /// of them.
    CHANGE_ENDS_MAX: usize = 64, changes;
    /// The part of a socket's buffer that one writer may fill: others write too, and the kernel counts more
    /// than octets.
    SOCKET_WINDOW_DIVISOR: u32 = 4, parts;
    /// The part of it that datagrams of an Ethernet frame fill with their octets; the rest is what the kernel
    /// counts beside.
    SOCKET_FRAMES_DIVISOR: u32 = 2, parts;
    /// More on its way than this makes nothing faster.
    ROUTE_WINDOW_BYTES_MAX: u32 = 2, MiB;
    /// A ring of shared memory has room for so many of the longest messages.
    RING_MESSAGES_MIN: usize = 4, messages;
    /// A reader that reads nothing from its ring for so long does not hold up others any longer.
    RING_STALLED_AFTER: Duration = 5, ms;
    /// Of long samples to readers that share memory so many times as much may be unacknowledged: they are not
    /// copied on their way, so a few of 1 MiB follow each other without a pause.
    MEMORY_WINDOW_TIMES: usize = 4, times;
}

rows! { DATAGRAMS: "Writer: batches and datagrams";
    /// A TIME_BASED_FILTER that all readers of a route have is applied before sending, if it is as long: for
    /// shorter ones sharing datagrams saves more.
    SEPARATION_MIN: Duration = 1, ms;
    /// Samples are sent so large a part of it later: by how much one may gain on the one before.
    SEPARATION_MARGIN_DIVISOR: i64 = 16, parts;
    /// So many writes without a pause are a flow.
    FLOW_WRITES: u32 = 8, writes;
    /// So many where sending one costs much, which is to many readers alone.
    COSTLY_FLOW_WRITES: u32 = 2, writes;
    /// That much.
    COSTLY_SEND: Duration = 50, us;
    /// To many readers a pause below this part of what sending takes is none: who wakes them finds cold
    /// caches.
    FLOW_PAUSE_COST_DIVISOR: i64 = 4, parts;
    /// Sending to one reader counts as no more: the rest is the time that others had the core.
    SEND_COST_OF_READER_MAX: Duration = 10, us;
    /// After so many a longer pause interrupts the flow, but does not end it.
    LONG_FLOW_WRITES: u32 = 64, writes;
    /// A sample of a flow waits for others as long as sending so many batches takes.
    COSTLY_WAIT_BATCHES: i64 = 2, batches;
    /// And that at most.
    COSTLY_WAIT_MAX: Duration = 4, ms;
    /// After so many writes, which take milliseconds, the last samples of a flow wait longer: the timer looks
    /// after it no more often.
    GREAT_FLOW_WRITES: u32 = 4_096, writes;
    /// So long.
    GREAT_FLOW_WAIT: Duration = 1, ms;
    /// What a sample adds to a batch beside its payload: about its headers and inline QoS.
    SAMPLE_OVERHEAD_BYTES: usize = 72, octets;
    /// A batch of so much is full, whatever it may have: longer ones of short samples save nothing.
    FULL_BATCH_BYTES: usize = 32, KiB;
    /// And one of so many.
    FULL_BATCH_SAMPLES: usize = 230, samples;
    /// Changes looked at in one search for one that a reader wants: work per datagram stays bounded.
    UNWANTED_SCANNED_MAX: usize = 256, changes;
    /// No reader of this make was ever sent smaller fragments.
    FRAGMENT_BYTES_SENT_MIN: usize = 512, octets;
    /// Samples of up to so much, for readers of this host, are cut into small pieces. In a flow, of 64 KiB
    /// each, 16 need 17 datagrams, not 32; of a much longer one the last datagram matters little.
    SHARING_BYTES_MAX: usize = 256, KiB;
    /// The pieces.
    SHARING_FRAGMENT_BYTES: u16 = 1, KiB;
    /// Shorter datagrams would hold too few of them.
    SHARED_DATAGRAM_BYTES_MIN: usize = 16, KiB;
    /// Samples of a flow from this length on, for readers of this host, fill datagrams to the end: the last
    /// of each is cut.
    FILLING_BYTES_LEAST: usize = 4, KiB;
    /// Windows of fragments that a request names at most, and that are remembered.
    NACK_FRAG_WINDOWS_MAX: u32 = 16, windows;
    /// ACKNACKs and NACK_FRAGs may overtake so many others of their reader.
    ACKNACKS_REORDERED_MAX: i32 = 16, submessages;
}

rows! { HISTORY: "Writer: history and window";
    /// What a sample counts for in the window beside its payload: more than what it takes here and on its
    /// way, so that a window of short ones is no more than some thousand.
    CHANGE_OVERHEAD_BYTES: usize = 192, octets;
    /// What the window of many readers is at least, if it was not less from the beginning: two full batches
    /// of short samples and a half. With less, each datagram is a batch that the window cut short.
    HISTORY_WINDOW_BYTES_MIN: usize = 160, KiB;
    /// From this length on samples are long: a single reader of this host has more of the window for them.
    LONG_SAMPLE_BYTES: usize = 20, KiB;
    /// Holes tolerated beyond one per change before the queue of changes is compacted.
    HISTORY_HOLES_MAX: usize = 64, entries;
    /// Entries looked at in one search for the next change: work per submessage stays bounded.
    HISTORY_HOLES_SCANNED_MAX: usize = 256, entries;
    /// Octets of a chunk of short payloads, as a power of two: three of the longest payloads that are in one.
    /// A writer whose samples leave soon uses one or two, which stay in the first cache.
    PAYLOAD_CHUNK_BITS: u32 = 12, bits;
    /// Different filters of one writer: one bit of a verdict for each. Readers beyond that are sent
    /// everything.
    FILTERS_MAX: usize = 32, filters;
    /// Steps that looking at one sample for one filter may take: a reader must not make its writer slow by
    /// patterns. What would take more is sent.
    FILTER_STEPS_MAX: usize = 262_144, steps;
    /// Runs of changes refused by its filter, of which a reader was told and may not have heard. Each takes
    /// 16 octets; what is forgotten counts as lost where coherent sets are concerned.
    REFUSED_RANGES_MAX: usize = 64, ranges;
    /// Changes that one write releases at most: an acknowledgement is of thousands, and no single write is to
    /// pay for all.
    RELEASES_PER_WRITE_MAX: i64 = 64, changes;
    /// So many short ones are released together.
    RELEASES_TOGETHER: i64 = 32, changes;
}
