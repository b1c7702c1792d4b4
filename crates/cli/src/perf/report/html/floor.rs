//! What this machine can do at all, and how far from it a result is.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::table::sheet;
use crate::perf::report::format;
use crate::perf::report::summary::Summary;
use crate::perf::report::svg::escape;
use crate::perf::results::{Calibration, Floor};

/// A result divided by its floor.
pub(crate) struct Ratio {
    /// `2.3`, or `≤ 2.3` when the floor is that of a smaller payload.
    pub(crate) text: String,
    pub(crate) value: f64,
}

/// The header of the column of ratios, for a kind that has one.
pub(crate) fn column(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "pingpong" | "latency_at_rate" => Some(("p50 / raw UDP", "blocking, same payload")),
        "throughput" | "fan" | "multicast" => Some(("samples / raw UDP", "one datagram a call")),
        "encode" => Some(("encode / memcpy", "same octets")),
        _ => None,
    }
}

/// The ratio for a cell, if it was measured and calibrated.
pub(crate) fn ratio(calibration: &Calibration, summary: &Summary<'_>) -> Option<Ratio> {
    match summary.cell.kind.as_str() {
        "pingpong" | "latency_at_rate" => {
            let measured = summary.value("p50_us")? * 1000.0;
            let (sign, floor) = at(&calibration.udp_round_trip_ns, summary.number("size")?, "≤ ")?;
            new(measured, floor.p50, sign)
        }
        "throughput" | "fan" | "multicast" => {
            let measured = summary.value("received_per_s")?;
            let (sign, floor) = at(&calibration.udp_datagrams_per_s, summary.number("size")?, "≥ ")?;
            new(measured, floor, sign)
        }
        "encode" => {
            let octets = summary.value("encoded_octets")?;
            let (sign, rate) = at(&calibration.memcpy_octets_per_s, octets, "about ")?;
            new(summary.value("encode_ns")?, octets / rate * 1e9, sign)
        }
        _ => None,
    }
}

fn new(measured: f64, floor: f64, sign: &str) -> Option<Ratio> {
    let value = measured / floor;
    value.is_finite().then(|| Ratio { text: format!("{sign}{}", format::number(value)), value })
}

/// The floor of a payload, or of the next smaller that was calibrated, with what that makes of the ratio; of the smallest for
/// payloads below it, which cost hardly less. Nothing is interpolated.
fn at<T: Copy>(floors: &BTreeMap<u64, T>, size: f64, of_smaller: &'static str) -> Option<(&'static str, T)> {
    let size = size as u64;
    match floors.range(..=size).next_back() {
        Some((known, floor)) => Some((if *known == size { "" } else { of_smaller }, *floor)),
        None => floors.first_key_value().map(|(_, floor)| ("about ", *floor)),
    }
}

/// All floors.
pub(crate) fn tables(calibration: Option<&Calibration>) -> String {
    let Some(calibration) = calibration else {
        return "<p class=\"box\">This run has no calibration: no result is shown as a ratio to what the machine can do. \
                <code>plainsong perf calibrate</code> measures it.</p>\n"
            .to_owned();
    };
    let mut rows: Vec<(String, String)> = Vec::new();
    for (name, value) in [
        ("Reading the clock", calibration.clock_read_ns),
        ("The recorder, each sample", calibration.recorder_ns),
        ("A system call", calibration.system_call_ns),
        ("Slack of a timer", calibration.timer_slack_ns),
        ("Round trip between two threads, spinning", calibration.spin_round_trip_ns),
        ("Round trip between two threads, futex", calibration.futex_wakeup_round_trip_ns),
        ("Round trip between two threads, pipe", calibration.pipe_wakeup_round_trip_ns),
        ("sendto of one UDP datagram", calibration.udp_sendto_ns),
    ] {
        let text =
            if value > 0.0 { format!("{} ns", format::number(value)) } else { "not measured".to_owned() };
        rows.push((name.to_owned(), text));
    }
    let mut text = sheet("Medians.", &rows);
    text.push_str(&round_trips(calibration));
    text.push_str(&rates(calibration));
    text
}

fn round_trips(calibration: &Calibration) -> String {
    let columns: [(&str, &BTreeMap<u64, Floor>); 3] = [
        ("UDP, blocking", &calibration.udp_round_trip_ns),
        ("UDP, never sleeping", &calibration.udp_busy_round_trip_ns),
        ("Unix socket", &calibration.unix_round_trip_ns),
    ];
    grid("Round trips, p50 / p99 µs, by payload.", &columns, |floor| {
        format!("{} / {}", format::number(floor.p50 / 1000.0), format::number(floor.p99 / 1000.0))
    })
}

fn rates(calibration: &Calibration) -> String {
    let columns: [(&str, &BTreeMap<u64, f64>); 2] = [
        ("UDP, one datagram a call", &calibration.udp_datagrams_per_s),
        ("UDP, segmentation offload", &calibration.udp_gso_datagrams_per_s),
    ];
    let mut text = grid("Datagrams received, 1/s, by payload.", &columns, |rate| format::number(*rate));
    text.push_str(&grid(
        "Copying memory, by length.",
        &[("memcpy, octets/s", &calibration.memcpy_octets_per_s)],
        |rate| format::short(*rate),
    ));
    text
}

fn grid<T>(caption: &str, columns: &[(&str, &BTreeMap<u64, T>)], show: impl Fn(&T) -> String) -> String {
    let mut sizes: Vec<u64> = columns.iter().flat_map(|(_, floors)| floors.keys().copied()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>{}</caption><thead><tr><th scope=\"col\">payload</th>",
        escape(caption)
    );
    for (name, _) in columns {
        let _ = write!(text, "<th scope=\"col\">{}</th>", escape(name));
    }
    text.push_str("</tr></thead>");
    for size in sizes {
        let _ = write!(text, "<tbody><tr><th scope=\"row\">{}</th>", format::octets(size as f64));
        for (_, floors) in columns {
            let value = floors.get(&size).map_or_else(|| "–".to_owned(), &show);
            let _ = write!(text, "<td>{}</td>", escape(&value));
        }
        text.push_str("</tr></tbody>");
    }
    text.push_str("</table></div>\n");
    text
}
