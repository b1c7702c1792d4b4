//! The report for other programs: one table of everything, and files with the columns of RTI Perftest.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use plainsong_perfkit::event::Interval;

use super::floor;
use super::section::{Names, Section};
use super::summary::{Side, Summary, is_paired, side};
use super::text::ends;
use crate::perf::metrics::METRICS;
use crate::perf::results::{Run, Status};

/// Writes `out` with one row for each cell and role, and beside it a directory `<stem>-perftest`, with one
/// file for each series of latencies and of throughputs.
///
/// # Errors
/// In words: what could not be written, and why.
pub(crate) fn write(out: &Path, runs: &[(&Run, &[Summary<'_>])]) -> Result<(), String> {
    let fail = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::write(out, table(runs)).map_err(|error| fail(out, error))?;
    let stem = out.file_stem().map_or_else(|| "report".into(), |stem| stem.to_string_lossy().into_owned());
    let directory: PathBuf = out.with_file_name(format!("{stem}-perftest"));
    let files = perftest(runs);
    if !files.is_empty() {
        std::fs::create_dir_all(&directory).map_err(|error| fail(&directory, error))?;
    }
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|error| fail(&path, error))?;
    }
    Ok(())
}

/// Metrics whose column is shared by both roles.
const OF_ROLES: [(&str, &str, &str); 2] = [
    ("cpu_percent", "cpu_writer_percent", "cpu_reader_percent"),
    ("memory_mib", "memory_writer_mib", "memory_reader_mib"),
];

/// Metrics of writers; of the rest, those of a latency or a count of samples are of readers.
const OF_WRITERS: [&str; 8] = [
    "sent_per_s",
    "missed_slots",
    "write_timeouts",
    "knee_per_s",
    "encode_ns",
    "decode_ns",
    "encoded_octets",
    "recorder_cost_ns",
];

/// Metrics of the whole cell: given once, in the row of its writers.
const OF_CELLS: [&str; 10] = [
    "others_percent",
    "switches_per_s",
    "receive_buffer_errors",
    "matched_median_ms",
    "matched_ms",
    "wire_octets",
    "wire_packets",
    "wire_per_useful",
    "memory_slope_kib_per_h",
    "changes",
];

fn metric_names() -> impl Iterator<Item = &'static str> {
    let of_role = |name: &str| OF_ROLES.iter().any(|(_, writer, reader)| name == *writer || name == *reader);
    METRICS.iter().map(|metric| metric.name).filter(move |name| !of_role(name))
}

fn table(runs: &[(&Run, &[Summary<'_>])]) -> String {
    let mut text = String::from(
        "run,cell,scenario,kind,adapter,peer,role,status,reason,marks,repetitions,repetitions_ok,repetitions_marked,parameters,size,rate",
    );
    for name in OF_ROLES.iter().map(|(name, ..)| *name).chain(metric_names()) {
        text.push(',');
        text.push_str(name);
    }
    text.push_str(",p50_us_low,p50_us_high,p99_us_low,p99_us_high,floor_ratio,floor_ratio_of\n");
    for (run, summaries) in runs {
        for summary in *summaries {
            let roles: &[Side] =
                if has_readers(summary) { &[Side::Writer, Side::Reader] } else { &[Side::Writer] };
            for &role in roles {
                row(&mut text, run, summary, role);
            }
        }
    }
    text
}

fn has_readers(summary: &Summary<'_>) -> bool {
    summary
        .cell
        .repetitions
        .iter()
        .flat_map(|repetition| &repetition.workers)
        .any(|worker| side(worker) == Side::Reader)
}

fn row(text: &mut String, run: &Run, summary: &Summary<'_>, role: Side) {
    let cell = summary.cell;
    let writer = role == Side::Writer;
    let parameters: Vec<String> =
        cell.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let reasons: Vec<String> = summary.reasons().into_iter().map(|(_, reason)| reason).collect();
    let marks: Vec<&str> = summary.marks().into_keys().collect();
    let product = if writer { &cell.adapter } else { &cell.peer };
    let role_name = if writer { "writer" } else { "reader" };
    let status = status(summary);
    let fields: [&str; 10] = [
        &run.name,
        &cell.id,
        &cell.scenario,
        &cell.kind,
        product,
        if writer { &cell.peer } else { &cell.adapter },
        role_name,
        &status,
        &reasons.join("; "),
        &marks.join("; "),
    ];
    for value in fields {
        text.push_str(&field(value));
        text.push(',');
    }
    let _ = write!(
        text,
        "{},{},{},{}",
        cell.repetitions.len(),
        summary.ok,
        summary.marked(),
        field(&parameters.join(";"))
    );
    for name in ["size", "rate"] {
        let _ = write!(text, ",{}", plain(summary.number(name)));
    }
    for (_, of_writer, of_reader) in OF_ROLES {
        let _ = write!(text, ",{}", plain(summary.value(if writer { of_writer } else { of_reader })));
    }
    let paired = is_paired(&cell.kind);
    let both = !has_readers(summary);
    let mine = |name: &str| {
        let of_writer = OF_WRITERS.contains(&name) || OF_CELLS.contains(&name) || paired || both;
        of_writer == writer
    };
    for name in metric_names() {
        let _ = write!(text, ",{}", plain(summary.value(name).filter(|_| mine(name))));
    }
    for name in ["p50_us", "p99_us"] {
        let interval =
            summary.metrics.get(name).filter(|_| mine(name)).and_then(|estimate| estimate.interval);
        let _ = write!(
            text,
            ",{},{}",
            plain(interval.map(|(low, _)| low)),
            plain(interval.map(|(_, high)| high))
        );
    }
    let ratio = floor_ratio(run, summary).filter(|_| mine("p50_us"));
    let (value, of) = ratio.unwrap_or_default();
    let _ = writeln!(text, ",{value},{of}");
}

/// The ratio to the floor of the machine, and what it is a ratio of.
fn floor_ratio(run: &Run, summary: &Summary<'_>) -> Option<(String, String)> {
    let (title, how) = floor::column(&summary.cell.kind)?;
    let ratio = floor::ratio(run.calibration.as_ref()?, summary)?;
    Some((plain(Some(ratio.value)), field(&format!("{}{title}; {how}", ratio.sign))))
}

/// `ok`, or how the others ended too.
fn status(summary: &Summary<'_>) -> String {
    let statuses = summary.statuses();
    match statuses.len() {
        0 => Status::Skipped.label().to_owned(),
        1 => statuses.keys().map(|status| status.label()).collect(),
        _ => ends(summary),
    }
}

fn plain(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| {
        let rounded = format!("{value:.6}");
        rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
    })
}

/// One field. Text that a spreadsheet would take for a formula is marked as text.
fn field(text: &str) -> String {
    let text = text.replace(['\r', '\n'], " ");
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"', ';']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

const LATENCY_HEADER: &str = "Sample Size (Bytes), Ave (μs), Std (μs), Min (μs), Max (μs), 50% (μs), 90% (μs), 99% (μs), 99.99% (μs), 99.9999% (μs)\n";
const THROUGHPUT_HEADER: &str =
    "Sample Size (Bytes), Total Samples, Avg Samples/s, Avg Mbps, Lost Samples, Lost Samples (%)\n";
const INTERVAL_HEADER: &str = "Length (Bytes), Total Samples, Samples/s, Avg Samples/s, Mbps, Avg Mbps, Lost Samples, Lost Samples (%)\n";

/// Files of one series each, as RTI Perftest writes them for one product: by name.
fn perftest(runs: &[(&Run, &[Summary<'_>])]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for (run, summaries) in runs {
        let names = Names::of(run);
        for section in Section::all(summaries) {
            for (label, rows) in section.series(&names) {
                let stem = file_name(&format!("{}.{}.{label}", run.name, section.title));
                let latency: String = rows.iter().filter_map(|row| latency_row(row)).collect();
                if !latency.is_empty() {
                    files.push((format!("{stem}.latency.csv"), format!("{LATENCY_HEADER}{latency}")));
                }
                if matches!(
                    section.kind.as_str(),
                    "throughput" | "fan" | "multicast" | "read_method" | "soak"
                ) {
                    let total: String = rows.iter().filter_map(|row| throughput_row(row)).collect();
                    files.push((format!("{stem}.throughput.csv"), format!("{THROUGHPUT_HEADER}{total}")));
                    let each: String = rows.iter().map(|row| interval_rows(row)).collect();
                    files.push((format!("{stem}.intervals.csv"), format!("{INTERVAL_HEADER}{each}")));
                }
            }
        }
    }
    files
}

/// Letters, digits, dots and dashes of a name.
fn file_name(text: &str) -> String {
    let kept: String = text
        .chars()
        .map(|each| if each.is_ascii_alphanumeric() || each == '.' { each } else { '-' })
        .collect();
    let words: Vec<&str> = kept.split('-').filter(|word| !word.chars().all(|each| each == '.')).collect();
    words.join("-").chars().take(180).collect()
}

/// One way is half of a round trip there, and so it is here. A percentile that the count does not support
/// stays empty.
fn latency_row(summary: &Summary<'_>) -> Option<String> {
    let size = summary.number("size")?;
    let latency = summary.latencies.iter().find(|latency| latency.name == "round_trip")?;
    let half = |value: Option<f64>| plain(value.map(|value| (value / 2.0 * 1000.0).round() / 1000.0));
    let mut text = plain(Some(size));
    for name in ["mean_us", "deviation_us", "min_us", "max_us"] {
        let _ = write!(text, ",{}", half(summary.value(name)));
    }
    for percent in [50.0, 90.0, 99.0, 99.99, 99.9999] {
        let _ =
            write!(text, ",{}", half(latency.merged.percentile(percent).map(|value| value as f64 / 1000.0)));
    }
    text.push('\n');
    Some(text)
}

fn throughput_row(summary: &Summary<'_>) -> Option<String> {
    let size = summary.number("size")?;
    let mut text = plain(Some(size));
    for name in ["received", "received_total_per_s", "mbit_total_per_s", "lost", "lost_percent"] {
        let _ = write!(text, ",{}", plain(summary.value(name)));
    }
    text.push('\n');
    Some(text)
}

/// Intervals of the first repetition that is ok, all readers together.
fn interval_rows(summary: &Summary<'_>) -> String {
    let Some(size) = summary.number("size") else { return String::new() };
    let ok = summary.cell.repetitions.iter().find(|repetition| repetition.status == Status::Ok);
    let readers: Vec<&[Interval]> = ok
        .iter()
        .flat_map(|repetition| &repetition.workers)
        .filter(|worker| side(worker) == Side::Reader)
        .map(|worker| worker.intervals.as_slice())
        .collect();
    let mut text = String::new();
    let (mut samples, mut octets, mut lost, mut seconds) = (0_u64, 0_u64, 0_i64, 0.0);
    let length = readers.iter().map(|intervals| intervals.len()).max().unwrap_or(0);
    for place in 0..length {
        let at: Vec<&Interval> = readers.iter().filter_map(|intervals| intervals.get(place)).collect();
        let took = at.iter().map(|interval| interval.length_ns).max().unwrap_or(0) as f64 * 1e-9;
        if took <= 0.0 || at.iter().any(|interval| interval.warmup) {
            continue;
        }
        let now: u64 = at.iter().map(|interval| interval.received).sum();
        let bits: f64 = at.iter().map(|interval| interval.octets as f64 * 8e-6).sum();
        samples += now;
        octets += at.iter().map(|interval| interval.octets).sum::<u64>();
        lost = lost.saturating_add(at.iter().fold(0, |sum, interval| interval.lost.saturating_add(sum)));
        seconds += took;
        let numbers = [
            size,
            samples as f64,
            now as f64 / took,
            samples as f64 / seconds,
            bits / took,
            octets as f64 * 8e-6 / seconds,
            lost as f64,
            100.0 * lost as f64 / (samples as f64 + lost as f64).max(1.0),
        ];
        let fields: Vec<String> = numbers.into_iter().map(|number| plain(Some(number))).collect();
        let _ = writeln!(text, "{}", fields.join(","));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_neither_break_the_table_nor_calculate() {
        assert_eq!(field("plain"), "plain");
        assert_eq!(field("a,\"b\"\nc"), "\"a,\"\"b\"\" c\"");
        assert_eq!(field("=cmd()"), "'=cmd()");
        assert_eq!(file_name("../../etc/A → B, 64"), "etc-A-B-64");
    }
}
