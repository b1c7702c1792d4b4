//! One scenario: charts, its table, comparisons, time series.

use std::fmt::Write;

use super::plots::{self, Facet};
use super::special;
use super::streams;
use super::table::Table;
use super::threads;
use super::{Budget, series};
use crate::perf::report::compare::{Pair, with_other_way, with_reference};
use crate::perf::report::floor;
use crate::perf::report::section::{Names, Section, columns, parameter};
use crate::perf::report::summary::{Summary, is_paired};
use crate::perf::report::svg::escape;
use crate::perf::report::text::{MARKED, notes, outcome};
use crate::perf::results::{Calibration, Status};

/// Cells whose time series are drawn, but for a soak, where all are.
const TIMED_MAX: usize = 4;

/// What a kind measures, in a sentence.
fn explanation(kind: &str) -> &'static str {
    match kind {
        "pingpong" => "Closed loop: one sample is outstanding, and the round trip is timed by one clock.",
        "latency_at_rate" => {
            "Open loop: samples are due at fixed times, and latency counts from when a sample was due, not from when it was written."
        }
        "throughput" => "Samples that readers were given, not samples that writers wrote.",
        "fan" => "Several writers and readers at once.",
        "multicast" => "The same readers reached by multicast and by unicast.",
        "ramp" => "The rate grows until it is missed.",
        "read_method" => "The same flow, read in different ways.",
        "read_cost" => "What single calls of a reader take.",
        "discovery" => "From the start of processes until everything is matched.",
        "large" => "Samples that need many datagrams.",
        "failover" => {
            "The owner of an exclusive topic is killed; the time until a reader is given samples of the next."
        }
        "outage" => {
            "Nothing gets through for a while; the time from its end until a reader has all that was due, and gets samples in time."
        }
        "encode" => "Serialization alone.",
        "soak" => "A long time at a steady rate.",
        _ => "",
    }
}

/// The whole section, without its heading.
pub(crate) fn body(
    names: &Names,
    section: &Section<'_, '_>,
    calibration: Option<&Calibration>,
    budget: &mut Budget,
) -> String {
    let mut text = String::new();
    let shared = section.shared();
    let mut lead = explanation(&section.kind).to_owned();
    if !shared.is_empty() {
        let _ = write!(lead, " In common: {shared}.");
    }
    let _ = write!(text, "<p class=\"lead\">{}</p>", escape(lead.trim()));
    let facets = plots::facets(names, section);
    text.push_str(&charts(names, section, &facets, budget));
    text.push_str(&table(names, section, calibration));
    text.push_str(&special::calls(names, section));
    text.push_str(&streams::table(names, section));
    if let Some((reference, pairs)) = with_reference(names, section) {
        text.push_str(&comparison(&format!("Each row divided by {reference} at the same point."), &pairs));
    }
    for (ways, pairs) in with_other_way(names, section) {
        text.push_str(&comparison(&format!("{ways}, all else being the same."), &pairs));
    }
    text.push_str(&timed(names, section, budget));
    text.push_str(&threads::table(names, section));
    text
}

fn charts(names: &Names, section: &Section<'_, '_>, facets: &[Facet<'_, '_>], budget: &mut Budget) -> String {
    let grids: String = special::heat_maps(names, section).concat();
    let mut text = grids.clone();
    text.push_str(&special::matrices(names, section).concat());
    let mut first = special::bar_charts(names, section, facets);
    let ramps = special::ramps(names, section);
    // Where a grid has all knees, single ramps are folded.
    let (shown, hidden) = if grids.is_empty() { (ramps, Vec::new()) } else { (Vec::new(), ramps) };
    first.extend(shown);
    first.extend(special::failovers(names, section));
    text.push_str(&budget.plots(first));
    text.push_str(&folded("Ramps, step by step", &budget.plots(hidden)));
    // Where a grid tells it all, or latency is not what it is about, the rest is folded.
    let about_latency = is_paired(&section.kind);
    for facet in facets {
        let lines = budget.plots(plots::over_axis(section, facet));
        let mut more = plots::distributions(section, facet);
        more.extend(plots::steadiness(section, facet));
        let more = budget.plots(more);
        let title = |what: &str| {
            if facet.title.is_empty() { what.to_owned() } else { format!("{what}: {}", facet.title) }
        };
        if grids.is_empty() {
            text.push_str(&lines);
        } else {
            text.push_str(&folded(&title("Curves"), &lines));
        }
        if about_latency && facets.len() == 1 {
            text.push_str(&more);
        } else {
            text.push_str(&folded(&title("Distributions"), &more));
        }
    }
    text
}

/// Behind a line that opens; nothing for nothing.
fn folded(title: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<details><summary>{}</summary>{body}</details>\n", escape(title))
}

/// Every cell with every number; what is not ok says so.
fn table(names: &Names, section: &Section<'_, '_>, calibration: Option<&Calibration>) -> String {
    let names_of_metrics: Vec<&str> = columns(&section.kind)
        .into_iter()
        .filter(|name| section.rows.iter().any(|row| row.metrics.contains_key(name)))
        .collect();
    let floor = calibration.and_then(|calibration| Some((calibration, floor::column(&section.kind)?)));
    let mut heads = vec![("series".to_owned(), String::new())];
    heads.extend(section.over.map(|over| (over.to_owned(), String::new())));
    heads.push(("ok".to_owned(), "of repetitions".to_owned()));
    if let Some((_, (title, unit))) = floor {
        heads.push((title.to_owned(), unit.to_owned()));
    }
    heads.extend(names_of_metrics.iter().map(|name| plots::heading(name)));
    let caption = "[low, high]: 95 % confidence from repetitions. –: not measured, or too few values for this percentile.";
    let mut table = Table::new(caption, &heads);
    for row in section.ordered() {
        table.row(&section.series_of(names, row.cell));
        let mut used = 2;
        if let Some(over) = section.over {
            let value = row.cell.parameters.get(over);
            table.keyed(&value.map_or_else(String::new, |value| parameter(over, value)), section.place(row));
            used += 1;
        }
        let well = row.statuses().keys().all(|status| matches!(status, Status::Ok | Status::Unsupported));
        table.classed(if well && row.damage.is_empty() { "t" } else { "t bad" }, &outcome(row));
        if row.ok == 0 {
            table.rest(used, &why_nothing(row));
            say(&mut table, row, true);
            continue;
        }
        if let Some((calibration, _)) = floor {
            match floor::ratio(calibration, row) {
                Some(ratio) => table.keyed(&ratio.text, ratio.value),
                None => table.classed("no", "–"),
            }
        }
        for name in &names_of_metrics {
            table.estimate(row.metrics.get(name));
        }
        say(&mut table, row, false);
    }
    table.finish(&section.title)
}

/// Why a cell has no number at all: the reasons themselves.
fn why_nothing(row: &Summary<'_>) -> String {
    if row.cell.repetitions.is_empty() {
        return "not run".to_owned();
    }
    let reasons = row.reasons().into_iter().map(|(status, reason)| {
        if reason.is_empty() { status.label().to_owned() } else { format!("{}: {reason}", status.label()) }
    });
    let text = reasons.collect::<Vec<_>>().join("; ");
    if text.is_empty() { "no worker has reported".to_owned() } else { text }
}

/// Notes below a row; reasons are not repeated when they stand in the row itself.
fn say(table: &mut Table, row: &Summary<'_>, reasons_shown: bool) {
    let reasons = if reasons_shown { row.reasons().len() } else { 0 };
    let lines = notes(row);
    let damage = row.damage.len();
    for (place, line) in lines.iter().enumerate() {
        if place >= damage && place < damage + reasons {
            continue;
        }
        table.say(!line.starts_with(MARKED), line);
    }
}

/// Ratios with confidence and what they mean.
pub(crate) fn comparison(caption: &str, pairs: &[Pair<'_, '_>]) -> String {
    let mut metrics: Vec<&'static str> = Vec::new();
    for name in pairs.iter().flat_map(|pair| pair.ratios.keys().copied()) {
        if !metrics.contains(&name) {
            metrics.push(name);
        }
    }
    let mut heads = vec![("compared".to_owned(), String::new())];
    for name in &metrics {
        let (title, _) = plots::heading(name);
        heads.push((title, "ratio".to_owned()));
        heads.push(("verdict".to_owned(), String::new()));
    }
    let effects = pairs.iter().any(|pair| pair.distributions.is_some());
    if effects {
        heads.push(("all values of latency".to_owned(), String::new()));
    }
    let mut table = Table::new(&format!("{caption} A verdict is about the row."), &heads);
    for pair in pairs {
        table.row(&pair.label);
        for name in &metrics {
            table.estimate(pair.ratios.get(name));
            let verdict = pair.verdict(name);
            let class = match verdict {
                "better" => "t better",
                "worse" => "t worse",
                _ => "t",
            };
            table.classed(class, if pair.ratios.contains_key(name) { verdict } else { "–" });
        }
        if effects {
            table.text(&pair.effect().unwrap_or_else(|| "–".to_owned()));
        }
    }
    table.finish("comparison")
}

/// Time series of some cells, folded.
fn timed(names: &Names, section: &Section<'_, '_>, budget: &mut Budget) -> String {
    let measured = |row: &&Summary<'_>| {
        row.cell.repetitions.iter().any(|repetition| {
            repetition.status == Status::Ok
                && repetition.workers.iter().any(|worker| worker.intervals.len() > 1)
        })
    };
    let series = section.series(names);
    let all = section.kind == "soak";
    let last = series.iter().filter_map(|(_, rows)| rows.iter().rev().find(|row| measured(row)));
    let mut figures = Vec::new();
    for row in last.take(if all { usize::MAX } else { TIMED_MAX }) {
        figures.extend(series::figures(&section.point_of(names, row.cell), row));
    }
    if figures.is_empty() {
        return String::new();
    }
    let plots = budget.plots(figures);
    let open = if all { " open=\"open\"" } else { "" };
    format!(
        "<details{open}><summary>Second by second</summary><p class=\"note\">The first repetition that is ok, at the last \
         point of each series{}.</p>{plots}</details>\n",
        if series.len() > TIMED_MAX && !all { ", of the first series" } else { "" }
    )
}
