//! What this machine can do at all.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::table::sheet;
use crate::perf::report::format;
use crate::perf::report::svg::escape;
use crate::perf::results::{Calibration, Floor};

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
