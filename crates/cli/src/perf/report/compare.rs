//! A/B: cells beside those of a base, or of another product.

use std::collections::{BTreeMap, BTreeSet};

use super::format;
use super::section::{Names, Section, parameter, plain};
use super::summary::{Summary, is_paired};
use crate::perf::metrics::{Better, find_metric};
use crate::perf::results::Run;
use crate::perf::statistics::bootstrap::Estimate;
use crate::perf::statistics::compare::{Comparison, Dominance, compare, magnitude};

/// A cell and what it is compared with.
pub(crate) struct Pair<'s, 'a> {
    pub(crate) label: String,
    pub(crate) base: &'s Summary<'a>,
    pub(crate) now: &'s Summary<'a>,
    /// Ratios now / base of metrics that both have.
    pub(crate) ratios: BTreeMap<&'static str, Estimate>,
    /// Of the distributions of latency, if both have one.
    pub(crate) distributions: Option<Comparison>,
}

/// Metrics whose ratios are shown.
const COMPARED: [&str; 8] =
    ["p50_us", "p99_us", "received_per_s", "matched_ms", "gap_ms", "encode_ns", "decode_ns", "knee_per_s"];

impl<'s, 'a> Pair<'s, 'a> {
    pub(crate) fn new(label: String, base: &'s Summary<'a>, now: &'s Summary<'a>) -> Self {
        let ratios = COMPARED
            .iter()
            // In a closed loop the rate is but another way to say the latency.
            .filter(|&&name| !(name == "received_per_s" && is_paired(&now.cell.kind)))
            .filter_map(|&name| Some((name, now.metrics.get(name)?.ratio_to(base.metrics.get(name)?)?)))
            .collect();
        let distributions =
            now.latency().zip(base.latency()).and_then(|(now, base)| compare(&now.merged, &base.merged));
        Self { label, base, now, ratios, distributions }
    }

    /// One sentence on one metric, as far as the data go.
    pub(crate) fn verdict(&self, metric: &str) -> &'static str {
        let Some(ratio) = self.ratios.get(metric) else { return "not measured on both sides" };
        let Some((low, high)) = ratio.interval else { return "too few repetitions to say" };
        let effect = self.distributions.filter(|_| metric.starts_with('p'));
        let less = find_metric(metric).is_none_or(|metric| metric.better == Better::Less);
        if low <= 1.0 && high >= 1.0 {
            "no difference shown"
        } else if effect.is_some_and(|effect| magnitude(effect.delta) == "negligible") {
            "negligible"
        } else if (high < 1.0) == less {
            "better"
        } else {
            "worse"
        }
    }

    /// The comparison of distributions, in words.
    pub(crate) fn effect(&self) -> Option<String> {
        let found = self.distributions?;
        let order = match found.dominance {
            Dominance::FirstSmaller => "lower at every quantile",
            Dominance::SecondSmaller => "higher at every quantile",
            Dominance::Neither => "curves cross or coincide",
        };
        Some(format!(
            "Cliff's δ {:+.2} ({}), {order}; U test p {}; KS D {:.2}, p {}",
            found.delta,
            magnitude(found.delta),
            format::probability(found.rank_p),
            found.distance,
            format::probability(found.distance_p)
        ))
    }
}

/// What else is not the same in two runs, in words: the machine, and programs that have one name.
pub(crate) fn differences(now: &Run, base: &Run) -> Vec<String> {
    let machines = |run: &Run| -> BTreeSet<(String, u32, String)> {
        run.hosts.iter().map(|host| (host.cpu.clone(), host.cpus, host.kernel.clone())).collect()
    };
    let mut found = Vec::new();
    if machines(now) != machines(base) {
        found.push("the base was measured on another machine, or with another kernel".to_owned());
    }
    let (mut changed, mut unknown) = (Vec::new(), Vec::new());
    for adapter in now.adapters.keys().filter(|adapter| base.adapters.contains_key(*adapter)) {
        match (hashes(now, adapter), hashes(base, adapter)) {
            (Some(here), Some(there)) if here == there => {}
            (Some(_), Some(_)) => changed.push(adapter.as_str()),
            _ => unknown.push(adapter.as_str()),
        }
    }
    for (what, adapters) in [
        ("another program, or another library, ran in the base as", changed),
        ("it is not known whether the same program ran in the base as", unknown),
    ] {
        if !adapters.is_empty() {
            found.push(format!("{what} {}", adapters.join(", ")));
        }
    }
    found
}

/// Of all files that ran under the name of an adapter; none if they are not all known.
fn hashes<'r>(run: &'r Run, adapter: &str) -> Option<BTreeSet<&'r str>> {
    let programs = run.programs.iter().filter(|program| program.adapter == adapter);
    let files = programs.flat_map(|program| &program.files);
    let hashes: BTreeSet<&str> = files.map(|file| file.sha256.as_str()).collect();
    (!hashes.is_empty() && !hashes.contains("")).then_some(hashes)
}

/// Cells of the same name in both runs.
pub(crate) fn with_base<'s, 'a>(now: &'s [Summary<'a>], base: &'s [Summary<'a>]) -> Vec<Pair<'s, 'a>> {
    let known: BTreeMap<&str, &'s Summary<'a>> =
        base.iter().map(|summary| (summary.cell.id.as_str(), summary)).collect();
    now.iter()
        .filter_map(|summary| {
            let base = known.get(summary.cell.id.as_str())?;
            Some(Pair::new(summary.cell.id.clone(), base, summary))
        })
        .collect()
}

/// Ways that a product can be used, of which one wants to see the second against the first: parameter and
/// values.
const WAYS: [(&str, &str, &str); 2] = [("multicast", "false", "true"), ("profile", "default", "tuned")];

/// Within a section: two ways to use a product, point by point, with what they are called.
pub(crate) fn with_other_way<'s, 'a>(
    names: &Names,
    section: &Section<'s, 'a>,
) -> Vec<(String, Vec<Pair<'s, 'a>>)> {
    let mut found = Vec::new();
    for (name, first, second) in WAYS {
        let in_way = |row: &Summary<'_>, way: &str| {
            row.cell.parameters.get(name).is_some_and(|value| plain(value) == way)
        };
        let pairs: Vec<Pair<'s, 'a>> = section
            .ordered()
            .into_iter()
            .filter(|row| in_way(row, second))
            .filter_map(|row| {
                let label = section.point_without(names, row.cell, name);
                let same = |other: &&&'s Summary<'a>| {
                    in_way(other, first) && section.point_without(names, other.cell, name) == label
                };
                let base = section.rows.iter().find(same)?;
                Some(Pair::new(label, base, row))
            })
            .filter(|pair| !pair.ratios.is_empty())
            .collect();
        let words = |way: &str| {
            let mut values = section.rows.iter().filter_map(|row| row.cell.parameters.get(name));
            values.find(|value| plain(value) == way).map_or_else(String::new, |value| parameter(name, value))
        };
        if !pairs.is_empty() {
            found.push((
                format!("{} divided by {}", format::capitalized(&words(second)), words(first)),
                pairs,
            ));
        }
    }
    found
}

/// Within a section: all others against one product, point by point. The reference is Plainsong, or the
/// first.
pub(crate) fn with_reference<'s, 'a>(
    names: &Names,
    section: &Section<'s, 'a>,
) -> Option<(String, Vec<Pair<'s, 'a>>)> {
    let same = |row: &&&'s Summary<'a>| row.cell.peer.is_empty() || row.cell.peer == row.cell.adapter;
    let plainsong = section.rows.iter().filter(same).find(|row| row.cell.adapter == "plainsong");
    let reference = plainsong.or_else(|| section.rows.iter().find(same))?;
    let name = names.pair(reference.cell);
    let references: BTreeMap<String, &'s Summary<'a>> = section
        .rows
        .iter()
        .filter(|row| names.pair(row.cell) == name)
        .map(|row| (section.variant_of(row.cell), *row))
        .collect();
    let pairs: Vec<Pair<'s, 'a>> = section
        .ordered()
        .into_iter()
        .filter(|row| names.pair(row.cell) != name)
        .filter_map(|row| {
            let variant = section.variant_of(row.cell);
            let reference = references.get(&variant)?;
            let label = if variant.is_empty() {
                names.pair(row.cell)
            } else {
                format!("{}, {variant}", names.pair(row.cell))
            };
            Some(Pair::new(label, reference, row))
        })
        .filter(|pair| !pair.ratios.is_empty())
        .collect();
    (!pairs.is_empty()).then_some((name, pairs))
}
