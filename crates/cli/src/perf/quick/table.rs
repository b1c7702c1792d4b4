//! The table of a quick run: one line for each cell, nothing that its samples do not support.

use std::collections::BTreeMap;
use std::fmt::Write;

use plainsong_perfkit::Report;
use plainsong_perfkit::event::Totals;

use crate::perf::results::{Cell, Repetition, Run, Status, WorkerResult};
use crate::perf::statistics::Distribution;

/// The adapter that others are compared with.
const FLOOR: &str = "udp";

/// Why a round trip may be shorter than that of the floor, and what it costs.
const POLLING: &str = "plainsong looks for an answer for a while before it sleeps, see CPU %; the floors sleep at once, as it does with \
    PLAINSONG_ADAPTIVE_POLL=off";

/// The headings and cells of a table.
type Row = Vec<String>;

/// The whole table, with what has to be known to read it.
pub(super) fn of(run: &Run) -> String {
    let mut text = String::new();
    let mut notes = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for cell in &run.cells {
        let ok: Vec<&Repetition> = cell.repetitions.iter().filter(|it| it.status == Status::Ok).collect();
        // The same words about two repetitions are told once.
        for bad in cell.repetitions.iter().filter(|it| it.status != Status::Ok) {
            notes.push(format!("{}: {}: {}", cell.id, bad.status.label(), bad.reason));
        }
        if ok.is_empty() {
            let status = cell.repetitions.first().map_or("not measured", |it| it.status.label());
            rows.push(vec![cell.id.clone(), status.to_owned()]);
            continue;
        }
        rows.extend(rows_of(run, cell, &ok));
    }
    let headings = run.cells.first().map_or(Vec::new(), |cell| headings(&cell.kind));
    let _ = writeln!(text, "{}", aligned(&headings, &rows));
    for host in &run.hosts {
        let _ = writeln!(
            text,
            "{}, {} CPUs, Linux {}",
            host.cpu,
            host.cpus,
            host.kernel.split(' ').next().unwrap_or("")
        );
    }
    let polls =
        |cell: &Cell| cell.adapter == "plainsong" && ["pingpong", "latency_at_rate"].contains(&&*cell.kind);
    if run.cells.iter().any(polls) {
        let _ = writeln!(text, "{POLLING}");
    }
    notes.dedup();
    notes.splice(0..0, marks(run));
    if cfg!(debug_assertions) {
        notes.insert(0, "plainsong was built without optimization: cargo run --release".to_owned());
    }
    for note in notes.iter().take(20) {
        let _ = writeln!(text, "! {note}");
    }
    if notes.len() > 20 {
        let _ = writeln!(text, "! and {} more: see the report", notes.len() - 20);
    }
    text
}

/// What makes repetitions doubtful: one line for each kind of doubt, with an example.
fn marks(run: &Run) -> Vec<String> {
    let all: usize = run.cells.iter().map(|it| it.repetitions.len()).sum();
    let sorts = run.marks();
    sorts
        .values()
        .map(|(count, worst)| format!("{count} of {all} repetitions: {worst}, or the like"))
        .collect()
}

fn headings(kind: &str) -> Row {
    let words: &[&str] = match kind {
        "pingpong" | "latency_at_rate" | "large" => {
            &["round trips, us", "count", "p50", "p90", "p99", "p99.9", "max", "lost", "CPU %", "/ udp"]
        }
        "discovery" => &["discovery", "runs", "all matched ms", "worst ms", "packets", "octets", "CPU ms"],
        "encode" => &["serialization", "runs", "encode ns", "decode ns", "octets"],
        "read_cost" => &["call of a reader, ns", "count", "p50", "p90", "p99", "p99.9", "max"],
        "failover" => &["failover", "switches", "gap ms", "worst ms", "received"],
        _ => &[
            "samples",
            "received/s",
            "Mbit/s",
            "lost",
            "duplicates",
            "one-way p50 us",
            "p99 us",
            "CPU %",
            "/ udp",
        ],
    };
    words.iter().map(|it| (*it).to_owned()).collect()
}

fn rows_of(run: &Run, cell: &Cell, ok: &[&Repetition]) -> Vec<Row> {
    match cell.kind.as_str() {
        "pingpong" | "latency_at_rate" | "large" => vec![latency_row(run, cell, ok)],
        "discovery" => vec![discovery_row(cell, ok)],
        "encode" => vec![encode_row(cell, ok)],
        "read_cost" => call_rows(cell, ok),
        "failover" => vec![failover_row(cell, ok)],
        _ => vec![stream_row(run, cell, ok)],
    }
}

fn reports<'a>(ok: &[&'a Repetition], prefix: &str) -> Vec<&'a Report> {
    let workers = ok.iter().flat_map(|it| &it.workers).filter(|it| it.name.starts_with(prefix));
    workers.filter_map(|it| it.report.as_ref()).collect()
}

/// Merged as histograms, never as percentiles. What cannot be decoded is as if it was not there.
fn distribution(reports: &[&Report], name: &str) -> Distribution {
    let histograms = reports.iter().flat_map(|it| &it.histograms).filter(|it| it.name == name);
    let parts: Vec<Distribution> = histograms.filter_map(|it| Distribution::decode(&it.data).ok()).collect();
    Distribution::merge(&parts)
}

fn totals(reports: &[&Report]) -> Totals {
    reports.iter().fold(Totals::default(), |sum, it| Totals {
        received: sum.received + it.totals.received,
        octets: sum.octets + it.totals.octets,
        lost: sum.lost + it.totals.lost,
        duplicates: sum.duplicates + it.totals.duplicates,
        reordered: sum.reordered + it.totals.reordered,
        corrupted: sum.corrupted + it.totals.corrupted,
    })
}

/// Of all workers together, in percent of one core.
fn cpu_percent(ok: &[&Repetition]) -> String {
    let used = |it: &WorkerResult| (it.resources.user_ns + it.resources.system_ns) as f64;
    let mut percent = Vec::new();
    for repetition in ok {
        let wall = repetition.workers.iter().map(|it| it.resources.wall_ns).max().unwrap_or(0);
        if wall > 0 {
            percent.push(repetition.workers.iter().map(used).sum::<f64>() / wall as f64 * 100.0);
        }
    }
    mean(&percent).map_or_else(dash, |it| format!("{it:.0}"))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn dash() -> String {
    "-".to_owned()
}

/// Percentiles that enough samples support, in units of so many nanoseconds.
fn percentiles(distribution: &Distribution, unit_ns: f64) -> Row {
    let show = |value: Option<u64>| value.map_or_else(dash, |it| format!("{:.1}", it as f64 / unit_ns));
    let mut row = vec![distribution.count().to_string()];
    row.extend([50.0, 90.0, 99.0, 99.9].map(|it| show(distribution.percentile(it))));
    row.push(show(distribution.percentile(100.0)));
    row
}

/// The same cell of the floor, if it was measured.
fn floor_of<'a>(run: &'a Run, cell: &Cell) -> Option<Vec<&'a Repetition>> {
    let same = |it: &&Cell| it.adapter == FLOOR && it.kind == cell.kind && it.parameters == cell.parameters;
    let floor = run.cells.iter().find(same)?;
    Some(floor.repetitions.iter().filter(|it| it.status == Status::Ok).collect())
}

fn ratio(own: Option<f64>, floor: Option<f64>) -> String {
    match (own, floor) {
        (Some(own), Some(floor)) if floor > 0.0 => format!("{:.2}", own / floor),
        _ => dash(),
    }
}

fn latency_row(run: &Run, cell: &Cell, ok: &[&Repetition]) -> Row {
    let pings = reports(ok, "ping");
    let own = distribution(&pings, "round_trip");
    let floor = floor_of(run, cell).map(|it| distribution(&reports(&it, "ping"), "round_trip"));
    let median = |it: &Distribution| it.percentile(50.0).map(|it| it as f64);
    let mut row = vec![cell.id.clone()];
    row.extend(percentiles(&own, 1000.0));
    row.push(totals(&pings).lost.to_string());
    row.push(cpu_percent(ok));
    row.push(ratio(median(&own), floor.as_ref().and_then(median)));
    row
}

/// Samples a second that all subscribers together received.
fn rate(ok: &[&Repetition]) -> Option<f64> {
    let mut rates = Vec::new();
    for repetition in ok {
        let subscribers = repetition.workers.iter().filter(|it| it.name.starts_with("sub"));
        let of_one = |it: &WorkerResult| {
            let report = it.report.as_ref()?;
            Some(report.received_in_time().received as f64 / (report.length_ns.max(1) as f64 / 1e9))
        };
        rates.push(subscribers.filter_map(of_one).sum());
    }
    mean(&rates)
}

fn stream_row(run: &Run, cell: &Cell, ok: &[&Repetition]) -> Row {
    let subscribers = reports(ok, "sub");
    let totals = totals(&subscribers);
    let one_way = distribution(&subscribers, "one_way");
    let per_second = rate(ok);
    let octets = totals.octets as f64 / (totals.received.max(1) as f64);
    let show =
        |percent| one_way.percentile(percent).map_or_else(dash, |it| format!("{:.1}", it as f64 / 1000.0));
    vec![
        cell.id.clone(),
        per_second.map_or_else(dash, |it| format!("{it:.0}")),
        per_second.map_or_else(dash, |it| format!("{:.1}", it * octets * 8.0 / 1e6)),
        totals.lost.to_string(),
        totals.duplicates.to_string(),
        show(50.0),
        show(99.0),
        cpu_percent(ok),
        ratio(per_second, floor_of(run, cell).and_then(|it| rate(&it))),
    ]
}

fn discovery_row(cell: &Cell, ok: &[&Repetition]) -> Row {
    let slowest = |it: &&Repetition| {
        let times = it.workers.iter().filter_map(|it| it.report.as_ref()?.matched_after_ns);
        times.max().map(|it| it as f64 / 1e6)
    };
    let times: Vec<f64> = ok.iter().filter_map(slowest).collect();
    let traffic = |octets: bool| {
        let of = |it: &WorkerResult| {
            if octets {
                it.resources.traffic.interface_octets
            } else {
                it.resources.traffic.interface_packets
            }
        };
        let each: Vec<f64> =
            ok.iter().filter_map(|it| it.workers.iter().map(of).max()).map(|it| it as f64).collect();
        mean(&each).map_or_else(dash, |it| format!("{it:.0}"))
    };
    let used = |it: &WorkerResult| (it.resources.user_ns + it.resources.system_ns) as f64 / 1e6;
    let cpu: Vec<f64> = ok.iter().map(|it| it.workers.iter().map(used).sum()).collect();
    let show = |it: Option<f64>| it.map_or_else(dash, |it| format!("{it:.1}"));
    vec![
        cell.id.clone(),
        times.len().to_string(),
        show(crate::perf::statistics::median(&times)),
        show(times.iter().copied().reduce(f64::max)),
        traffic(false),
        traffic(true),
        show(mean(&cpu)),
    ]
}

fn encode_row(cell: &Cell, ok: &[&Repetition]) -> Row {
    let costs: Vec<_> = reports(ok, "encode").iter().filter_map(|it| it.encode).collect();
    let median = |values: Vec<f64>| {
        crate::perf::statistics::median(&values).map_or_else(dash, |it| format!("{it:.1}"))
    };
    vec![
        cell.id.clone(),
        costs.len().to_string(),
        median(costs.iter().map(|it| it.encode_ns).collect()),
        median(costs.iter().map(|it| it.decode_ns).collect()),
        costs.first().map_or_else(dash, |it| it.encoded_octets.to_string()),
    ]
}

fn call_rows(cell: &Cell, ok: &[&Repetition]) -> Vec<Row> {
    let reports = reports(ok, "read_cost");
    let names: BTreeMap<&str, ()> =
        reports.iter().flat_map(|it| &it.histograms).map(|it| (it.name.as_str(), ())).collect();
    let row = |name: &str| {
        let mut row = vec![format!("{} {}", cell.id, name.trim_start_matches("call:"))];
        row.extend(percentiles(&distribution(&reports, name), 1.0));
        row
    };
    names.keys().map(|name| row(name)).collect()
}

fn failover_row(cell: &Cell, ok: &[&Repetition]) -> Row {
    let subscribers = reports(ok, "sub");
    let gaps: Vec<f64> =
        subscribers.iter().flat_map(|it| &it.switches).map(|it| it.gap_ns as f64 / 1e6).collect();
    let show = |it: Option<f64>| it.map_or_else(dash, |it| format!("{it:.1}"));
    vec![
        cell.id.clone(),
        gaps.len().to_string(),
        show(crate::perf::statistics::median(&gaps)),
        show(gaps.iter().copied().reduce(f64::max)),
        totals(&subscribers).received.to_string(),
    ]
}

/// Columns as wide as their longest cell; the first to the left, figures to the right.
fn aligned(headings: &Row, rows: &[Row]) -> String {
    let all = || std::iter::once(headings).chain(rows);
    let columns = all().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        // What is only a word, as in a cell that was not measured, makes no column wider.
        let figures = all().filter(|row| row.len() == headings.len() || column == 0);
        figures.filter_map(|row| row.get(column)).map(|it| it.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in all() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(id: &str, repetition: Repetition) -> Cell {
        Cell {
            id: id.to_owned(),
            kind: "throughput".to_owned(),
            adapter: id.to_owned(),
            repetitions: vec![repetition],
            ..Cell::default()
        }
    }

    fn measured(received: u64) -> Repetition {
        let totals = Totals { received, octets: received * 64, lost: 3, ..Totals::default() };
        let report = Report { length_ns: 1_000_000_000, totals, ..Report::default() };
        let worker =
            WorkerResult { name: "sub-0".to_owned(), report: Some(report), ..WorkerResult::default() };
        Repetition { status: Status::Ok, workers: vec![worker], ..Repetition::default() }
    }

    #[test]
    fn a_table_has_ratios_to_the_floor_and_says_what_failed() {
        let crashed = Repetition {
            status: Status::Crashed,
            reason: "pub-0 died by signal 11".to_owned(),
            ..Repetition::default()
        };
        let cells = vec![
            cell("plainsong", measured(50_000)),
            cell("udp", measured(100_000)),
            cell("broken", crashed),
        ];
        let text = of(&Run { cells, ..Run::default() });
        let line = |name: &str| text.lines().find(|it| it.starts_with(name)).unwrap();
        assert!(line("plainsong").ends_with("0.50"), "{text}");
        assert!(line("plainsong").contains(" 25.6 ") && line("plainsong").contains(" 3 "), "{text}");
        assert!(line("broken").ends_with("crashed"), "{text}");
        assert!(text.contains("! broken: crashed: pub-0 died by signal 11"), "{text}");
        assert!(line("plainsong").contains(" - "), "no percentile without samples: {text}");
    }
}
