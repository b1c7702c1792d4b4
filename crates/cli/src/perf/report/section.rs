//! Cells put in order: one section for each scenario, series within it, and what they are drawn over.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::format;
use super::summary::Summary;
use crate::perf::results::{Cell, Run};

/// Adapters by the names that users know.
pub(crate) struct Names {
    products: BTreeMap<String, String>,
}

impl Names {
    pub(crate) fn of(run: &Run) -> Self {
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        for description in run.adapters.values() {
            *uses.entry(&description.product).or_insert(0) += 1;
        }
        let products = run
            .adapters
            .iter()
            .filter(|(_, description)| !description.product.is_empty())
            .map(|(adapter, description)| {
                let product = &description.product;
                let alone = uses.get(product.as_str()).copied().unwrap_or(0) < 2;
                let name = if alone || description.version.is_empty() {
                    product.clone()
                } else {
                    format!("{product} {}", description.version)
                };
                (adapter.clone(), name)
            })
            .collect();
        Self { products }
    }

    pub(crate) fn product(&self, adapter: &str) -> String {
        self.products.get(adapter).cloned().unwrap_or_else(|| adapter.to_owned())
    }

    /// `A`, or `A → B` when readers are of another product.
    pub(crate) fn pair(&self, cell: &Cell) -> String {
        let ours = self.product(&cell.adapter);
        if cell.peer.is_empty() || cell.peer == cell.adapter {
            ours
        } else {
            format!("{ours} → {}", self.product(&cell.peer))
        }
    }
}

/// A parameter with its value, in words.
pub(crate) fn parameter(name: &str, value: &Value) -> String {
    let text = plain(value);
    match (name, value) {
        ("reliable", Value::Bool(true)) => "reliable".to_owned(),
        ("reliable", Value::Bool(false)) => "best effort".to_owned(),
        ("multicast", Value::Bool(true)) => "multicast".to_owned(),
        ("multicast", Value::Bool(false)) => "unicast".to_owned(),
        ("batching", Value::Bool(true)) => "batching".to_owned(),
        ("batching", Value::Bool(false)) => "no batching".to_owned(),
        ("loss_percent", Value::Number(number)) if number.as_f64() == Some(0.0) => {
            "no loss on purpose".to_owned()
        }
        ("loss_percent", Value::Number(_)) => format!("{text} % loss on purpose"),
        ("rate", Value::Number(_)) if text == "0" => "no pacing".to_owned(),
        ("rate", Value::Number(number)) => {
            format!("{} samples/s", number.as_f64().map_or(text, format::number))
        }
        ("size", Value::Number(number)) => number.as_f64().map_or(text, format::octets),
        ("instances" | "publishers" | "subscribers" | "participants", Value::Number(number)) => {
            let name = if text == "1" { name.trim_end_matches('s') } else { name };
            format!("{} {name}", number.as_f64().map_or(text, format::number))
        }
        ("pacing", Value::String(_)) if text == "max" => "as fast as possible".to_owned(),
        ("background", Value::String(_)) if text == "none" => "nothing beside".to_owned(),
        ("background", Value::String(_)) => format!("beside samples of {text}"),
        ("type", Value::String(_)) => text,
        ("history" | "durability", Value::String(_)) => text.replace(['_', ':'], " "),
        _ => format!("{} {text}", name.replace('_', " ")),
    }
}

/// The value itself.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// All cells of one scenario.
pub(crate) struct Section<'s, 'a> {
    pub(crate) title: String,
    pub(crate) kind: String,
    pub(crate) rows: Vec<&'s Summary<'a>>,
    /// The parameter that charts have as their horizontal axis: it is a number and differs between cells.
    pub(crate) over: Option<&'static str>,
    /// A parameter that has the same number as `over` in each cell: as many publishers as subscribers.
    pub(crate) tied: Option<&'static str>,
    /// All parameters that differ between cells, `over` aside.
    varying: BTreeSet<String>,
}

/// What is measured over what, for each kind.
fn axes(kind: &str) -> &'static [&'static str] {
    match kind {
        "latency_at_rate" => &["rate", "size"],
        "fan" | "multicast" => &["subscribers", "publishers", "size"],
        "discovery" => &["participants", "endpoints"],
        "read_cost" => &["instances", "size"],
        "read_method" => &["instances", "size"],
        "large" => &["size", "loss_percent"],
        "ramp" | "failover" | "outage" | "encode" | "soak" => &[],
        _ => &["size", "rate", "subscribers"],
    }
}

impl<'s, 'a> Section<'s, 'a> {
    /// In the order of the campaign.
    pub(crate) fn all(summaries: &'s [Summary<'a>]) -> Vec<Self> {
        let mut order: Vec<(&str, &str)> = Vec::new();
        let mut groups: BTreeMap<(&str, &str), Vec<&'s Summary<'a>>> = BTreeMap::new();
        for summary in summaries {
            let key = (summary.cell.scenario.as_str(), summary.cell.kind.as_str());
            let group = groups.entry(key).or_default();
            if group.is_empty() {
                order.push(key);
            }
            group.push(summary);
        }
        let mut make = |key| groups.remove(&key).map(|rows| Self::new(key, rows));
        order.into_iter().filter_map(&mut make).collect()
    }

    fn new((scenario, kind): (&str, &str), rows: Vec<&'s Summary<'a>>) -> Self {
        let mut varying = varying(&rows);
        let over = axes(kind)
            .iter()
            .copied()
            .find(|&name| varying.contains(name) && rows.iter().all(|row| row.number(name).is_some()));
        if let Some(over) = over {
            varying.remove(over);
        }
        let equal =
            |name: &str| rows.iter().all(|row| over.and_then(|over| row.number(over)) == row.number(name));
        let tied = axes(kind).iter().copied().find(|&name| varying.contains(name) && equal(name));
        if let Some(tied) = tied {
            varying.remove(tied);
        }
        let title = if scenario.is_empty() { kind.to_owned() } else { scenario.to_owned() };
        Self { title, kind: kind.to_owned(), rows, over, tied, varying }
    }

    /// The series a cell belongs to: its products and what else differs.
    pub(crate) fn series_of(&self, names: &Names, cell: &Cell) -> String {
        let mut label = names.pair(cell);
        for name in &self.varying {
            if let Some(value) = cell.parameters.get(name) {
                label.push_str(", ");
                label.push_str(&parameter(name, value));
            }
        }
        label
    }

    /// The series of a cell, and where in it the cell is.
    pub(crate) fn point_of(&self, names: &Names, cell: &Cell) -> String {
        let series = self.series_of(names, cell);
        let over = self.over.and_then(|over| Some(parameter(over, cell.parameters.get(over)?)));
        over.map_or_else(|| series.clone(), |over| format!("{series}, {over}"))
    }

    /// The products of a cell and all that differs in the section, but for one parameter.
    pub(crate) fn point_without(&self, names: &Names, cell: &Cell, left_out: &str) -> String {
        let each = cell.parameters.iter().filter(|(name, _)| self.is_varying(name) && *name != left_out);
        let words = each.map(|(name, value)| parameter(name, value));
        std::iter::once(names.pair(cell)).chain(words).collect::<Vec<_>>().join(", ")
    }

    /// What differs in the section, without the products: what two cells that are compared must share.
    pub(crate) fn variant_of(&self, cell: &Cell) -> String {
        let each =
            cell.parameters.iter().filter(|(name, _)| self.is_varying(name) && self.tied != Some(name));
        each.map(|(name, value)| parameter(name, value)).collect::<Vec<_>>().join(", ")
    }

    fn is_varying(&self, name: &str) -> bool {
        self.varying.contains(name) || self.over == Some(name) || self.tied == Some(name)
    }

    /// Parameters that differ between cells.
    pub(crate) fn varies(&self, name: &str) -> bool {
        self.is_varying(name)
    }

    /// Series in order of appearance, each in the order of the horizontal axis.
    pub(crate) fn series(&self, names: &Names) -> Vec<(String, Vec<&'s Summary<'a>>)> {
        let mut found: Vec<(String, Vec<&'s Summary<'a>>)> = Vec::new();
        for &row in &self.rows {
            let label = self.series_of(names, row.cell);
            match found.iter_mut().find(|(known, _)| *known == label) {
                Some((_, rows)) => rows.push(row),
                None => found.push((label, vec![row])),
            }
        }
        for (_, rows) in &mut found {
            rows.sort_by(|a, b| self.place(a).total_cmp(&self.place(b)));
        }
        found
    }

    /// Where a cell is on the horizontal axis.
    pub(crate) fn place(&self, summary: &Summary<'_>) -> f64 {
        self.over.and_then(|name| summary.number(name)).unwrap_or(0.0)
    }

    /// Rows by the horizontal axis, then by series.
    pub(crate) fn ordered(&self) -> Vec<&'s Summary<'a>> {
        let mut rows = self.rows.clone();
        rows.sort_by(|a, b| self.place(a).total_cmp(&self.place(b)));
        rows
    }

    /// What all cells have in common, in words.
    pub(crate) fn shared(&self) -> String {
        let Some(first) = self.rows.first() else { return String::new() };
        let each = first.cell.parameters.iter().filter(|(name, _)| !self.is_varying(name));
        let mut words: Vec<String> = each.map(|(name, value)| parameter(name, value)).collect();
        words.extend(self.tied.zip(self.over).map(|(tied, over)| format!("as many {tied} as {over}")));
        words.join(", ")
    }
}

fn varying(rows: &[&Summary<'_>]) -> BTreeSet<String> {
    let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let names: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.cell.parameters.keys().map(String::as_str)).collect();
    for row in rows {
        for &name in &names {
            let value = row.cell.parameters.get(name).map_or_else(String::new, ToString::to_string);
            values.entry(name).or_default().insert(value);
        }
    }
    values.into_iter().filter(|(_, values)| values.len() > 1).map(|(name, _)| name.to_owned()).collect()
}

/// The columns of a table of one kind: names of metrics.
pub(crate) fn columns(kind: &str) -> Vec<&'static str> {
    const LATENCY: [&str; 16] = [
        "count",
        "min_us",
        "p25_us",
        "p50_us",
        "p75_us",
        "p90_us",
        "p95_us",
        "p99_us",
        "p99.9_us",
        "p99.99_us",
        "p99.999_us",
        "p99.9999_us",
        "max_us",
        "mean_us",
        "deviation_us",
        "mad_us",
    ];
    const FLOW: [&str; 5] =
        ["received_per_s", "received_total_per_s", "mbit_per_s", "mbit_total_per_s", "sent_per_s"];
    const ERRORS: [&str; 7] =
        ["lost", "lost_percent", "duplicates", "reordered", "corrupted", "missed_slots", "write_timeouts"];
    const COST: [&str; 9] = [
        "cpu_writer_percent",
        "cpu_reader_percent",
        "cpu_per_sample_us",
        "memory_pair_mib",
        "memory_writer_mib",
        "memory_reader_mib",
        "switches_per_s",
        "receive_buffer_errors",
        "others_percent",
    ];
    let parts: &[&[&'static str]] = match kind {
        "pingpong" | "latency_at_rate" => {
            &[&LATENCY, &["received_per_s", "background_mbit_per_s"], &ERRORS, &COST]
        }
        "large" => &[&["received_per_s", "mbit_per_s", "wire_per_useful"], &LATENCY, &ERRORS, &COST],
        "discovery" => &[&["matched_median_ms", "matched_ms", "wire_octets", "wire_packets"], &COST],
        "encode" => &[&["encode_ns", "decode_ns", "encoded_octets"]],
        "failover" => &[&["changes", "gap_ms"], &FLOW, &ERRORS, &COST],
        "outage" => &[&["recovery_ms"], &FLOW, &ERRORS, &LATENCY, &COST],
        "ramp" => &[&["knee_per_s"], &FLOW, &ERRORS, &COST],
        "soak" => &[&FLOW, &ERRORS, &["memory_slope_kib_per_h"], &LATENCY, &COST],
        "read_cost" => &[&COST],
        _ => &[&["knee_per_s"], &FLOW, &ERRORS, &LATENCY, &COST],
    };
    parts.concat()
}

/// The few columns for a terminal.
pub(crate) fn brief_columns(kind: &str) -> &'static [&'static str] {
    match kind {
        "pingpong" | "latency_at_rate" => {
            &["count", "p50_us", "p90_us", "p99_us", "p99.9_us", "max_us", "lost"]
        }
        "large" => &["mbit_per_s", "lost", "wire_per_useful", "p50_us", "p99_us"],
        "discovery" => &["matched_median_ms", "matched_ms", "wire_octets", "memory_writer_mib"],
        "encode" => &["encode_ns", "decode_ns", "encoded_octets"],
        "failover" => &["changes", "gap_ms", "lost", "duplicates"],
        "outage" => &["recovery_ms", "lost", "p50_us", "p99_us", "max_us", "missed_slots"],
        "ramp" => &["knee_per_s", "lost_percent"],
        "read_cost" => &[],
        "soak" => &["received_per_s", "lost", "corrupted", "memory_slope_kib_per_h", "p50_us", "p99_us"],
        _ => &[
            "knee_per_s",
            "received_per_s",
            "mbit_per_s",
            "lost_percent",
            "cpu_writer_percent",
            "cpu_reader_percent",
        ],
    }
}
