//! What only some kinds of scenario have: grids, knees, owners over time, bars, calls.

use std::collections::BTreeSet;

use super::plots::{Facet, heading};
use super::table::{Heat, Table};
use crate::perf::metrics::{Better, find_metric};
use crate::perf::report::format;
use crate::perf::report::section::{Names, Section, parameter, plain};
use crate::perf::report::summary::{Summary, is_paired};
use crate::perf::report::svg::bars::{self, Bar};
use crate::perf::report::svg::chart::{Axis, Chart, Join, Mark, Point, Series};
use crate::perf::report::svg::escape;
use crate::perf::report::svg::lanes::{self, Lane, Stretch};
use crate::perf::report::svg::scale::Scale;
use crate::perf::results::{Cell, Repetition, Status};
use crate::perf::statistics::trend::{Step, bend};

/// More bars than this are no picture.
const BARS_MAX: usize = 24;

/// Two parameters that differ, one down and one across.
fn grid_of(section: &Section<'_, '_>) -> Option<(&'static str, &'static str)> {
    let pairs: &[(&str, &str)] = match section.kind.as_str() {
        "fan" | "multicast" | "throughput" => &[("publishers", "subscribers")],
        "read_method" => &[("read", "instances")],
        "discovery" => &[("participants", "endpoints")],
        _ => &[],
    };
    // Of numbers that go together there is but the diagonal.
    let is_grid = |down: &str, across: &str| section.tied != Some(down) && section.tied != Some(across);
    pairs
        .iter()
        .copied()
        .find(|(down, across)| section.varies(down) && section.varies(across) && is_grid(down, across))
}

/// Heat maps of a grid, one for each series of the other parameters and each metric.
pub(crate) fn heat_maps(names: &Names, section: &Section<'_, '_>) -> Vec<String> {
    let Some((down, across)) = grid_of(section) else { return Vec::new() };
    let other = |cell: &Cell| -> String {
        let rest = cell
            .parameters
            .iter()
            .filter(|(name, _)| section.varies(name) && *name != down && *name != across);
        let words = rest.map(|(name, value)| parameter(name, value));
        std::iter::once(names.pair(cell)).chain(words).collect::<Vec<_>>().join(", ")
    };
    let mut groups: Vec<(String, Vec<&Summary<'_>>)> = Vec::new();
    for &row in &section.rows {
        let name = other(row.cell);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    let metrics: &[&str] = match section.kind.as_str() {
        "discovery" => &["matched_ms", "wire_octets"],
        _ if section.rows.iter().any(|row| !row.steps.is_empty()) => &["knee_per_s", "lost_percent"],
        _ => &["received_total_per_s", "lost_percent"],
    };
    let mut tables = Vec::new();
    for metric in metrics {
        let values = || section.rows.iter().filter_map(|row| row.value(metric));
        if values().next().is_some() && values().all(|value| value == 0.0) {
            let (title, _) = heading(metric);
            tables.push(format!(
                "<p class=\"note\">{}: 0 in every cell of the grid.</p>\n",
                escape(&format::capitalized(&title))
            ));
            continue;
        }
        let range = range(values());
        let each: String =
            groups.iter().map(|(name, rows)| heat(name, rows, metric, (down, across), range)).collect();
        tables.push(format!("<div class=\"plots\">{each}</div>\n"));
    }
    tables
}

/// The smallest and the largest value above 0: one scale for all grids of a metric.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| *value > 0.0).fold(None, |range: Option<(f64, f64)>, value| {
        Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    })
}

fn after_comma(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(", {text}") }
}

fn heat(
    name: &str,
    rows: &[&Summary<'_>],
    metric: &str,
    (down, across): (&str, &str),
    range: Option<(f64, f64)>,
) -> String {
    let Some(metric) = find_metric(metric) else { return String::new() };
    let values = |parameter: &str| -> Vec<serde_json::Value> {
        let mut values: Vec<serde_json::Value> = Vec::new();
        for value in rows.iter().filter_map(|row| row.cell.parameters.get(parameter)) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        values.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
        values
    };
    let (downs, acrosses) = (values(down), values(across));
    let cell = |at_down: &serde_json::Value, at_across: &serde_json::Value| {
        let here = |row: &&&Summary<'_>| {
            row.cell.parameters.get(down) == Some(at_down)
                && row.cell.parameters.get(across) == Some(at_across)
        };
        rows.iter().find(here).map_or_else(|| Err("–".to_owned()), |row| value_or_why(row, metric.name))
    };
    let words = |value: &serde_json::Value| value.as_f64().map_or_else(|| plain(value), format::number);
    Heat {
        caption: format!("{name}: {} ({}).", metric.title, metric.unit),
        corner: format!("{down} ↓ {across} →"),
        columns: acrosses.iter().map(words).collect(),
        rows: downs
            .iter()
            .map(|at_down| {
                (words(at_down), acrosses.iter().map(|at_across| cell(at_down, at_across)).collect())
            })
            .collect(),
        better: metric.better,
        range,
    }
    .table()
}

/// A number, or the status that explains why there is none.
fn value_or_why(row: &Summary<'_>, metric: &str) -> Result<f64, String> {
    row.value(metric).ok_or_else(|| {
        let statuses = row.statuses();
        statuses.keys().next_back().map_or_else(
            || "not run".to_owned(),
            |status| match status {
                Status::Ok if metric == "knee_per_s" => "no step kept up with".to_owned(),
                Status::Ok => "not measured".to_owned(),
                other => other.label().to_owned(),
            },
        )
    })
}

/// Writers of one product against readers of another, for each point of a section that has such pairs.
pub(crate) fn matrices(names: &Names, section: &Section<'_, '_>) -> Vec<String> {
    let crossed = |row: &&Summary<'_>| !row.cell.peer.is_empty() && row.cell.peer != row.cell.adapter;
    if !section.rows.iter().any(crossed) {
        return Vec::new();
    }
    let variants: BTreeSet<String> =
        section.rows.iter().filter(|row| crossed(row)).map(|row| section.variant_of(row.cell)).collect();
    let metric = match section.kind.as_str() {
        kind if is_paired(kind) => "p50_us",
        "discovery" => "matched_ms",
        _ => "received_per_s",
    };
    let Some(metric) = find_metric(metric) else { return Vec::new() };
    let mut adapters: Vec<&str> = Vec::new();
    for row in &section.rows {
        for adapter in [row.cell.adapter.as_str(), row.cell.peer.as_str()] {
            if !adapter.is_empty() && !adapters.contains(&adapter) {
                adapters.push(adapter);
            }
        }
    }
    variants
        .iter()
        .map(|variant| {
            let cell = |from: &str, to: &str| {
                let here = |row: &&&Summary<'_>| {
                    let peer = if row.cell.peer.is_empty() { &row.cell.adapter } else { &row.cell.peer };
                    row.cell.adapter == from && peer == to && section.variant_of(row.cell) == *variant
                };
                section
                    .rows
                    .iter()
                    .find(here)
                    .map_or_else(|| Err("–".to_owned()), |row| value_or_why(row, metric.name))
            };
            Heat {
                caption: format!(
                    "Pairs of products{}: {} ({}).",
                    after_comma(variant),
                    metric.title,
                    metric.unit
                ),
                corner: "writer ↓ reader →".to_owned(),
                columns: adapters.iter().map(|adapter| names.product(adapter)).collect(),
                rows: adapters
                    .iter()
                    .map(|from| (names.product(from), adapters.iter().map(|to| cell(from, to)).collect()))
                    .collect(),
                better: metric.better,
                range: range(section.rows.iter().filter_map(|row| row.value(metric.name))),
            }
            .table()
        })
        .collect()
}

/// Ramps: what arrived of what was asked for, and latency.
pub(crate) fn ramps(names: &Names, section: &Section<'_, '_>) -> Vec<String> {
    let mut figures = Vec::new();
    for row in section.rows.iter().filter(|row| !row.steps.is_empty()) {
        let title = section.point_of(names, row.cell);
        figures.extend(ramp_rates(&title, row));
        figures.extend(ramp_latency(&title, row));
    }
    figures
}

fn ramp_rates(title: &str, row: &Summary<'_>) -> Option<String> {
    let targets = || row.steps.iter().map(|step| step.target);
    let line = |label: &str, index: usize, value: fn(&Step) -> f64| Series {
        label: label.to_owned(),
        index,
        join: Join::Marked,
        points: row.steps.iter().map(|step| Point::new(step.target, value(step))).collect(),
    };
    let mark =
        row.knee.map(|knee| Mark { x: knee.rate, label: format!("knee {}/s", format::number(knee.rate)) });
    let note = match row.knee {
        None => "Not even the first step was kept up with.".to_owned(),
        Some(knee) if !knee.reached => {
            "The last step was kept up with: the knee lies higher than this ramp went.".to_owned()
        }
        Some(_) => {
            "Knee: the last step before two in a row, or the very last, did not reach 99 % of their rate, or lost more than 1 %."
                .to_owned()
        }
    };
    let chart = Chart {
        title: format!("Ramp: {title}"),
        x: Axis { label: "rate asked for (samples/s)".to_owned(), scale: Scale::linear(targets())? },
        y: Axis { label: "rate (samples/s)".to_owned(), scale: Scale::linear(targets())? },
        series: vec![
            line("asked for", 6, |step| step.target),
            line("sent", 0, |step| step.sent),
            line("received by each reader", 1, |step| step.received),
        ],
        marks: mark.into_iter().collect(),
        note,
    };
    Some(chart.figure())
}

fn ramp_latency(title: &str, row: &Summary<'_>) -> Option<String> {
    let line = |label: &str, index: usize, value: fn(&Step) -> Option<f64>| Series {
        label: label.to_owned(),
        index,
        join: Join::Marked,
        points: row
            .steps
            .iter()
            .map(|step| {
                Point::new(step.target, value(step).map_or(f64::NAN, |nanoseconds| nanoseconds / 1000.0))
            })
            .collect(),
    };
    let series = vec![
        line("median", 0, |step| step.latency_p50_ns),
        line("99th percentile", 1, |step| step.latency_p99_ns),
    ];
    let values = series.iter().flat_map(|line| &line.points).map(|point| point.y);
    let scale = Scale::log(values)?;
    let curve: Vec<(f64, f64)> = row
        .steps
        .iter()
        .filter_map(|step| Some((step.target, step.latency_p99_ns.filter(|value| *value > 0.0)?.ln())))
        .collect();
    let turn = bend(&curve)
        .and_then(|place| curve.get(place))
        .map(|&(rate, _)| Mark { x: rate, label: "latency turns upward".to_owned() });
    let chart = Chart {
        title: format!("Latency on the ramp: {title}"),
        x: Axis {
            label: "rate asked for (samples/s)".to_owned(),
            scale: Scale::linear(row.steps.iter().map(|step| step.target))?,
        },
        y: Axis { label: "latency (µs)".to_owned(), scale },
        series,
        marks: turn.into_iter().collect(),
        note: "Medians over repetitions: of a step only these two percentiles are recorded.".to_owned(),
    };
    Some(chart.figure())
}

/// Owners over time.
pub(crate) fn failovers(names: &Names, section: &Section<'_, '_>) -> Vec<String> {
    let drawn = section.rows.iter().map(|row| {
        let lanes: Vec<Lane> = row
            .cell
            .repetitions
            .iter()
            .filter(|repetition| repetition.status == Status::Ok)
            .flat_map(lanes_of)
            .take(10)
            .collect();
        lanes::figure(&format!("Owners over time: {}", section.series_of(names, row.cell)), &lanes)
    });
    drawn.filter(|figure| !figure.is_empty()).collect()
}

fn lanes_of(repetition: &Repetition) -> Vec<Lane> {
    let heard = repetition.workers.iter().filter_map(|worker| Some((worker, worker.report.as_ref()?)));
    heard
        .filter(|(_, report)| !report.switches.is_empty())
        .map(|(worker, report)| {
            let at = |at_ns: u64| at_ns.saturating_sub(report.start_ns) as f64 * 1e-9;
            let mut stretches = Vec::new();
            let mut from_s = 0.0;
            for switch in &report.switches {
                let gap_from = at(switch.at_ns.saturating_sub(switch.gap_ns));
                stretches.push(Stretch { from_s, to_s: gap_from, writer: Some(switch.from) });
                stretches.push(Stretch { from_s: gap_from, to_s: at(switch.at_ns), writer: None });
                from_s = at(switch.at_ns);
            }
            let last = report.switches.last().map(|switch| switch.to);
            let end = (report.length_ns as f64 * 1e-9).max(from_s);
            stretches.push(Stretch { from_s, to_s: end, writer: last });
            Lane { label: format!("repetition {}, {}", repetition.number, worker.name), stretches }
        })
        .collect()
}

/// Bars of a metric, one for each cell.
pub(crate) fn bar_charts(names: &Names, section: &Section<'_, '_>, facets: &[Facet<'_, '_>]) -> Vec<String> {
    let metrics: &[&str] = match section.kind.as_str() {
        "encode" => &["encode_ns", "decode_ns", "encoded_octets"],
        "failover" => &["gap_ms"],
        "outage" => &["recovery_ms"],
        "ramp" => &["knee_per_s"],
        "discovery" if section.over.is_none() => &["matched_ms", "wire_octets"],
        "throughput" | "read_method" | "fan" | "multicast" if section.over.is_none() => {
            &["received_per_s", "lost_percent"]
        }
        "pingpong" | "latency_at_rate" | "large" if section.over.is_none() => &["p50_us", "p99_us"],
        _ => &[],
    };
    let index_of = |row: &Summary<'_>| {
        let lines = facets.iter().flat_map(|facet| &facet.lines);
        let mut holding = lines.filter(|line| line.rows.iter().any(|each| std::ptr::eq(*each, row)));
        holding.next().map_or(0, |line| line.index)
    };
    metrics
        .iter()
        .filter_map(|name| {
            let metric = find_metric(name)?;
            let bars: Vec<Bar> = section
                .rows
                .iter()
                .filter_map(|row| {
                    let value = row.metrics.get(name)?.clone();
                    Some(Bar { label: section.series_of(names, row.cell), index: index_of(row), value })
                })
                .collect();
            let (shown, all) = (bars.get(..BARS_MAX).unwrap_or(&bars), bars.len());
            let cut =
                if shown.len() < all { format!(", the first {BARS_MAX} of {all}") } else { String::new() };
            let order = match metric.better {
                Better::Less => ", less is better",
                Better::More => ", more is better",
                Better::Neither => "",
            };
            Some(bars::figure(
                &match metric.name {
                    "p50_us" => "Median latency".to_owned(),
                    "p99_us" => "99th percentile".to_owned(),
                    _ => format::capitalized(metric.title),
                },
                &format!("{} ({}){order}{cut}", metric.title, metric.unit),
                shown,
            ))
        })
        .filter(|figure| !figure.is_empty())
        .collect()
}

/// Distributions that the table of the section does not have: one row for each.
pub(crate) fn calls(names: &Names, section: &Section<'_, '_>) -> String {
    let mut heads = vec![
        ("series".to_owned(), String::new()),
        ("duration of".to_owned(), String::new()),
        ("values".to_owned(), String::new()),
    ];
    let parts = [50.0, 90.0, 99.0, 99.9, 100.0];
    for (name, unit) in [("p50", "ns"), ("p90", "ns"), ("p99", "ns"), ("p99.9", "ns"), ("max", "ns")] {
        heads.push((name.to_owned(), unit.to_owned()));
    }
    let mut table = Table::new(
        "Further distributions. A percentile that the count does not support is left out.",
        &heads,
    );
    for row in section.ordered() {
        for latency in
            row.latencies.iter().filter(|latency| !matches!(latency.name.as_str(), "round_trip" | "one_way"))
        {
            table.row(&section.point_of(names, row.cell));
            table.text(&latency.name.trim_start_matches("call:").replace('_', " "));
            table.keyed(&format::number(latency.merged.count() as f64), latency.merged.count() as f64);
            for part in parts {
                match latency.merged.percentile(part) {
                    Some(value) => table.keyed(&format::number(value as f64), value as f64),
                    None => table.classed("no", "–"),
                }
            }
        }
    }
    let table = table.finish("further distributions");
    if table.is_empty() || section.kind == "read_cost" {
        return table;
    }
    format!("<details><summary>Further distributions</summary>{table}</details>\n")
}
