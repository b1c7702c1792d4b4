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

rows! { MULTICAST: "Writer: multicast within a host";
    /// Sends of each way measured at most. A third as many after those with which the way changes are not:
    /// receivers have yet to wake up.
    COST_SAMPLES_MAX: usize = 12, sends;
    /// A comparison that changes nothing is repeated after so many times as many sends.
    COMPARISON_GROWTH: u32 = 4, times;
    /// Up to that often, counted in `ComparisonPace::first_after`.
    COMPARISON_GROWTH_MAX: u32 = 1_024, times;
    /// One that changes the way is repeated after that many.
    COMPARISON_AFTER_CHANGE: u32 = 16, times;
    /// Multicast is taken when it costs so much of what unicast does, or less: it has to save more than the
    /// wake-ups at a second socket cost the readers.
    MULTICAST_TAKEN_EIGHTHS: u64 = 6, eighths;
    /// And kept while it costs so much.
    MULTICAST_KEPT_EIGHTHS: u64 = 7, eighths;
    /// For so many processes multicast is taken to cost less until it is measured.
    MULTICAST_LIKELY_PROCESSES: usize = 8, processes;
    /// Which is after so many times as many sends: a flow halts while its way changes, and the more wait for
    /// a core the longer.
    COMPARISON_WHERE_LIKELY: u32 = 128, times;
    /// Costs are kept by the length of datagrams in powers of two, from this one on.
    COST_LENGTH_BITS_MIN: u32 = 12, bits;
    /// So many of them; those beyond the last count as that.
    COST_LENGTHS: usize = 5, lengths;
    /// A reader that was lost is not written to by the group for so long after it answers; each time for
    /// twice as long.
    GROUP_PAUSE: Duration = 1, s;
    /// That pause doubles so often.
    GROUP_PAUSE_DOUBLINGS: u32 = 6, times;
    /// Who requests so often in a row, and acknowledges no more, is not reached by what is repeated.
    REQUESTS_WITHOUT_PROGRESS_MAX: u32 = 16, requests;
}
