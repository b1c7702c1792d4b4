//! The numbers that a run is judged by: their names, titles and units.

/// Whether less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Less,
    More,
    /// It depends.
    Neither,
}

/// A number of a cell that tables, limits and comparisons can name.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
}

const fn metric(name: &'static str, title: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric { name, title, unit, better }
}

/// All of them, in the order of tables.
pub(crate) const METRICS: &[Metric] = &[
    metric("min_us", "min", "µs", Better::Less),
    metric("p25_us", "p25", "µs", Better::Less),
    metric("p50_us", "p50", "µs", Better::Less),
    metric("p75_us", "p75", "µs", Better::Less),
    metric("p90_us", "p90", "µs", Better::Less),
    metric("p95_us", "p95", "µs", Better::Less),
    metric("p99_us", "p99", "µs", Better::Less),
    metric("p99.9_us", "p99.9", "µs", Better::Less),
    metric("p99.99_us", "p99.99", "µs", Better::Less),
    metric("p99.999_us", "p99.999", "µs", Better::Less),
    metric("p99.9999_us", "p99.9999", "µs", Better::Less),
    metric("max_us", "max", "µs", Better::Less),
    metric("mean_us", "mean", "µs", Better::Less),
    metric("deviation_us", "standard deviation", "µs", Better::Less),
    metric("mad_us", "median absolute deviation", "µs", Better::Less),
    metric("count", "values", "", Better::Neither),
    metric("sent_per_s", "sent", "samples/s", Better::More),
    metric("received_per_s", "received by each reader", "samples/s", Better::More),
    metric("received_total_per_s", "received by all readers", "samples/s", Better::More),
    metric("mbit_per_s", "payload received by each reader", "Mbit/s", Better::More),
    metric("mbit_total_per_s", "payload received by all readers", "Mbit/s", Better::More),
    metric("received", "received", "samples", Better::Neither),
    metric("lost", "lost", "samples", Better::Less),
    metric("lost_percent", "lost", "%", Better::Less),
    metric("duplicates", "duplicates", "samples", Better::Less),
    metric("reordered", "out of order", "samples", Better::Less),
    metric("corrupted", "corrupted", "samples", Better::Less),
    metric("missed_slots", "missed slots", "", Better::Less),
    metric("write_timeouts", "writes timed out", "", Better::Less),
    metric("cpu_writer_percent", "CPU of a writer", "% of a core", Better::Less),
    metric("cpu_reader_percent", "CPU of a reader", "% of a core", Better::Less),
    metric("memory_writer_mib", "peak memory of a writer", "MiB", Better::Less),
    metric("memory_reader_mib", "peak memory of a reader", "MiB", Better::Less),
    metric("switches_per_s", "context switches", "1/s", Better::Less),
    metric("receive_buffer_errors", "receive buffer overruns", "datagrams", Better::Less),
    metric("others_percent", "CPU used by others", "% of a core", Better::Less),
    metric("knee_per_s", "knee", "samples/s", Better::More),
    metric("matched_median_ms", "matched, median worker", "ms", Better::Less),
    metric("matched_ms", "matched, last worker", "ms", Better::Less),
    metric("wire_octets", "octets on the wire", "octets", Better::Less),
    metric("wire_packets", "packets on the wire", "", Better::Less),
    metric("wire_per_useful", "octets on the wire for each received", "", Better::Less),
    metric("gap_ms", "longest gap at a change of owner", "ms", Better::Less),
    metric("recovery_ms", "up to date again after an outage", "ms", Better::Less),
    metric("background_mbit_per_s", "payload received beside", "Mbit/s", Better::More),
    metric("cpu_per_sample_us", "CPU of all processes for each sample received", "µs", Better::Less),
    metric(
        "memory_pair_mib",
        "memory of a writer and a reader, programs and libraries apart",
        "MiB",
        Better::Less,
    ),
    metric("changes", "changes of owner", "", Better::Neither),
    metric("encode_ns", "encode", "ns", Better::Less),
    metric("decode_ns", "decode", "ns", Better::Less),
    metric("encoded_octets", "encoded", "octets", Better::Less),
    metric("memory_slope_kib_per_h", "growth of memory", "KiB/h", Better::Less),
    metric("recorder_cost_ns", "recorder, each sample", "ns", Better::Neither),
];

/// Finds a metric by its name, or by the name without its unit if that is one: `p99`, `gap`.
pub(crate) fn find_metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name).or_else(|| {
        METRICS.iter().find(|metric| {
            metric
                .name
                .strip_prefix(name)
                .is_some_and(|rest| matches!(rest, "_us" | "_ms" | "_ns" | "_percent" | "_per_s" | "_octets"))
        })
    })
}

/// Whether a limit or a ratio can speak of it.
pub(crate) fn is_metric(name: &str) -> bool {
    find_metric(name).is_some()
}
