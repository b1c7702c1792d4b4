//! The report on a terminal.

use std::fmt::Write;

use super::compare::{Pair, differences};
use super::floor;
use super::format;
use super::limits;
use super::ratios;
use super::section::{Names, Section, brief_columns, parameter};
use super::summary::Summary;
use crate::perf::metrics::find_metric;
use crate::perf::results::{Calibration, Run, Status};
use crate::perf::statistics::trend::Slope;

/// Tables of all scenarios of a run.
pub(crate) fn write(run: &Run, summaries: &[Summary<'_>]) -> String {
    let names = Names::of(run);
    let mut text = String::new();
    let state = if run.finished_unix_ms.is_some() { "" } else { " (not finished)" };
    let _ = writeln!(text, "{}{state}, {}", printable(&run.name), format::time(run.started_unix_ms));
    for section in Section::all(summaries) {
        let _ = writeln!(text, "\n{} ({})", printable(&section.title), section.kind);
        let shared = section.shared();
        if !shared.is_empty() {
            let _ = writeln!(text, "  {}", printable(&shared));
        }
        text.push_str(&align(&table(&names, &section, run.calibration.as_ref(), true)));
    }
    for ratio in ratios::check(run, summaries) {
        let _ = writeln!(text, "{}: {}", printable(&ratio.cell), printable(&ratio.words()));
    }
    // The tables tell how many of each cell are marked.
    for (count, worst) in run.marks().into_values() {
        let _ = writeln!(text, "\nmarked in {count} repetitions: {}, or the like", printable(worst));
    }
    for summary in summaries {
        for line in notes(summary).iter().filter(|line| !line.starts_with(MARKED)) {
            let _ = writeln!(text, "{}: {}", printable(&summary.cell.id), printable(line));
        }
    }
    text
}

/// How a note on a mark begins.
pub(crate) const MARKED: &str = "marked";

/// What must be said of a cell besides its numbers.
pub(crate) fn notes(summary: &Summary<'_>) -> Vec<String> {
    let mut lines: Vec<String> = summary.damage.clone();
    for (status, reason) in summary.reasons() {
        let count = summary.statuses().get(&status).copied().unwrap_or(0);
        let of = summary.cell.repetitions.len();
        let why = if reason.is_empty() { "no reason is given" } else { &reason };
        lines.push(format!("{} ({count} of {of}): {why}", status.label()));
    }
    lines.extend(summary.marks().into_iter().map(|(mark, count)| format!("{MARKED} in {count}: {mark}")));
    let carries_samples = !matches!(summary.cell.kind.as_str(), "discovery" | "encode" | "read_cost");
    if carries_samples && summary.ok > 0 && summary.value("received").is_none() {
        lines.push("not one sample was received in the measured time".to_owned());
    }
    lines.extend(summary.memory_slope.filter(Slope::rises).map(|slope| {
        let [low, high] = [slope.low, slope.high].map(|each| format::number(each * 3600.0 / 1024.0));
        format!("memory grows by {low} to {high} KiB an hour (Theil–Sen, 95 % confidence)")
    }));
    lines.extend(limits::check(summary).into_iter().filter(|limit| !limit.kept).map(|limit| limit.words()));
    lines
}

/// A table: its first row names the columns. `with_calls`: with what calls cost, in rows of their own.
pub(crate) fn table(
    names: &Names,
    section: &Section<'_, '_>,
    calibration: Option<&Calibration>,
    with_calls: bool,
) -> Vec<Vec<String>> {
    let columns: Vec<&str> = brief_columns(&section.kind)
        .iter()
        .copied()
        .filter(|name| section.rows.iter().any(|row| row.metrics.contains_key(name)))
        .collect();
    let floor = calibration.zip(floor::column(&section.kind));
    let mut rows = vec![header(section, &columns)];
    if let (Some((_, (title, _))), Some(header)) = (floor, rows.first_mut()) {
        header.push(title.to_owned());
    }
    for row in section.ordered() {
        let mut cells = vec![section.series_of(names, row.cell)];
        if let Some(over) = section.over {
            cells
                .push(row.cell.parameters.get(over).map_or_else(String::new, |value| parameter(over, value)));
        }
        cells.push(outcome(row));
        cells.extend(
            columns.iter().map(|name| row.value(name).map_or_else(|| "-".to_owned(), format::number)),
        );
        if let Some((calibration, _)) = floor {
            cells.push(floor::ratio(calibration, row).map_or_else(|| "-".to_owned(), |ratio| ratio.text));
        }
        rows.push(cells);
        if with_calls {
            rows.extend(calls(section, row, columns.len()));
        }
    }
    rows
}

fn header(section: &Section<'_, '_>, columns: &[&str]) -> Vec<String> {
    let mut cells = vec![String::new()];
    cells.extend(section.over.map(ToOwned::to_owned));
    cells.push("ok".to_owned());
    cells.extend(columns.iter().filter_map(|name| find_metric(name)).map(|metric| {
        if metric.unit.is_empty() {
            metric.title.to_owned()
        } else {
            format!("{} {}", metric.title, metric.unit)
        }
    }));
    cells
}

/// Rows for what calls cost.
fn calls(section: &Section<'_, '_>, row: &Summary<'_>, columns: usize) -> Vec<Vec<String>> {
    let calls = row.latencies.iter().filter(|latency| latency.name.starts_with("call:"));
    calls
        .map(|latency| {
            let median = latency.p50.as_ref().map_or_else(|| "-".to_owned(), |p50| format::number(p50.value));
            let mut cells = vec![format!("    {}: p50 {median} ns", latency.name)];
            cells.resize(columns + 2 + usize::from(section.over.is_some()), String::new());
            cells
        })
        .collect()
}

/// `5/5`, `3/5 crashed`, or `5/5, 2 marked`.
pub(crate) fn outcome(summary: &Summary<'_>) -> String {
    let mut text = ends(summary);
    if summary.marked() > 0 {
        let _ = write!(text, ", {} marked", summary.marked());
    }
    text
}

/// How repetitions ended: `3/5 crashed`.
pub(crate) fn ends(summary: &Summary<'_>) -> String {
    let all = summary.cell.repetitions.len();
    let mut text = format!("{}/{all}", summary.ok);
    for status in summary.statuses().into_keys().filter(|&status| status != Status::Ok) {
        text.push(' ');
        text.push_str(status.label());
    }
    text
}

fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = printable(cell);
            let _ =
                if column == 0 { write!(line, " {cell:<width$}") } else { write!(line, "  {cell:>width$}") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Names come from other programs: no control character reaches the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|each| if each.is_control() { '?' } else { each }).collect()
}

/// A table of what has changed against a base.
pub(crate) fn comparison(now: &Run, base: &Run, pairs: &[Pair<'_, '_>]) -> String {
    let mut text = format!("\nagainst {}, {}\n", printable(&base.name), format::time(base.started_unix_ms));
    for difference in differences(now, base) {
        let _ = writeln!(text, "  {}", printable(&difference));
    }
    if pairs.is_empty() {
        text.push_str("  no cell is in both runs\n");
        return text;
    }
    let mut rows = Vec::new();
    for pair in pairs {
        for (name, ratio) in &pair.ratios {
            let interval = format::interval(ratio).unwrap_or_default();
            rows.push(vec![
                pair.label.clone(),
                (*name).to_owned(),
                format!("×{}", format::number(ratio.value)),
                interval,
                pair.verdict(name).to_owned(),
            ]);
        }
    }
    text.push_str(&align(&rows));
    text
}
