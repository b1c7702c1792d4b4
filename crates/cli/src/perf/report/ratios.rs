//! What must hold between two products, or two points of one: `ratios` of a scenario.
//!
//! A ratio speaks of two sides, each chosen by values of parameters (and `adapter`). A cell of the first side
//! is compared with the best cell of the second that is at the same point in all parameters that neither side
//! names. The profile is never part of the point: who is compared with another one meets its better settings.
//!
//! It is the median of the ratios of repetitions with the same number, which were measured beside each other:
//! neither one repetition that something disturbed counts, nor that the machine was slower for some minutes.
//! What single repetitions are too short to tell, as a far percentile, is compared of all of them together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::format;
use super::summary::Summary;
use crate::perf::campaign::{Ratio, Side};
use crate::perf::metrics::{Better, Metric, find_metric};
use crate::perf::results::{Cell, Run};
use crate::perf::statistics::median;

/// A ratio at one point, and what was measured.
pub(crate) struct Verdict {
    pub(crate) cell: String,
    pub(crate) metric: &'static Metric,
    pub(crate) ratio: Ratio,
    /// The ratio, and the cell it is to; none if either was not measured.
    pub(crate) found: Option<(f64, String)>,
}

impl Verdict {
    pub(crate) fn kept(&self) -> bool {
        self.found.as_ref().is_some_and(|(ratio, _)| {
            self.ratio.max.is_none_or(|max| *ratio <= max) && self.ratio.min.is_none_or(|min| *ratio >= min)
        })
    }

    /// One line.
    pub(crate) fn words(&self) -> String {
        let verdict = if self.kept() { "kept" } else { "missed" };
        let min = self.ratio.min.map(|min| format!(" at least {}", format::number(min)));
        let max = self.ratio.max.map(|max| format!(" at most {}", format::number(max)));
        let bounds = [min, max].into_iter().flatten().collect::<Vec<_>>().join(" and");
        let measured = match &self.found {
            Some((ratio, to)) => format!("{} to {to}", format::number(*ratio)),
            None => "not measured".to_owned(),
        };
        format!("ratio of {}{bounds} {verdict}: {measured}", self.metric.name)
    }
}

/// All ratios of a run, in the order of the campaign.
pub(crate) fn check(run: &Run, summaries: &[Summary<'_>]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (scenario, ratio) in of_campaign(&run.campaign) {
        let Some(metric) = find_metric(&ratio.metric) else { continue };
        let cells: Vec<&Summary<'_>> =
            summaries.iter().filter(|summary| summary.cell.scenario == scenario).collect();
        for summary in cells.iter().filter(|summary| is_on(summary.cell, &ratio.of)) {
            let others = cells
                .iter()
                .filter(|other| is_on(other.cell, &ratio.to) && same_point(summary.cell, other.cell, &ratio));
            // The best of the others is whom it looks worst beside.
            let found = others
                .filter_map(|other| Some((between(summary, other, metric)?, other.cell.id.clone())))
                .reduce(|one, other| if better(metric, one.0, other.0) { other } else { one });
            verdicts.push(Verdict { cell: summary.cell.id.clone(), metric, ratio: ratio.clone(), found });
        }
    }
    verdicts
}

/// Each scenario's name with its ratios, of a campaign as a run keeps it.
fn of_campaign(campaign: &Value) -> Vec<(String, Ratio)> {
    let scenarios = campaign.get("scenario").and_then(Value::as_array);
    let mut all = Vec::new();
    for scenario in scenarios.into_iter().flatten() {
        let name = ["name", "kind"].iter().find_map(|key| scenario.get(*key)?.as_str());
        let ratios = scenario.get("ratios").cloned().unwrap_or_default();
        let ratios: Vec<Ratio> = serde_json::from_value(ratios).unwrap_or_default();
        all.extend(ratios.into_iter().map(|ratio| (name.unwrap_or_default().to_owned(), ratio)));
    }
    all
}

/// What one is of the other.
fn between(one: &Summary<'_>, other: &Summary<'_>, metric: &Metric) -> Option<f64> {
    let (ours, theirs) = (one.each(metric.name), other.each(metric.name));
    let is_whole = ours.len() == one.ok && theirs.len() == other.ok;
    let beside = ours.iter().filter_map(|(number, value)| Some((value, theirs.get(number)?)));
    let ratios: Vec<f64> =
        beside.filter(|(_, base)| **base > 0.0).map(|(value, base)| value / base).collect();
    median(&ratios).filter(|_| is_whole).or_else(|| {
        let base = other.value(metric.name).filter(|base| *base > 0.0)?;
        Some(one.value(metric.name)? / base)
    })
}

fn better(metric: &Metric, one: f64, other: f64) -> bool {
    if metric.better == Better::More { one > other } else { one < other }
}

fn parameter<'a>(cell: &'a Cell, name: &str) -> Option<std::borrow::Cow<'a, Value>> {
    use std::borrow::Cow;
    match name {
        "adapter" => Some(Cow::Owned(Value::from(cell.adapter.as_str()))),
        _ => cell.parameters.get(name).map(Cow::Borrowed),
    }
}

fn is_on(cell: &Cell, side: &Side) -> bool {
    cell.adapter == cell.peer
        && side.iter().all(|(name, values)| {
            parameter(cell, name).is_some_and(|value| values.0.contains(value.as_ref()))
        })
}

/// At the same point, and not the same cell.
fn same_point(one: &Cell, other: &Cell, ratio: &Ratio) -> bool {
    let fixed = |cell: &Cell| -> BTreeMap<String, Value> {
        cell.parameters
            .iter()
            .filter(|(name, _)| !ratio.varies(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    one.id != other.id && fixed(one) == fixed(other)
}
