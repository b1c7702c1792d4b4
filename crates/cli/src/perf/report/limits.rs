//! What must hold: limits in cells, and conditions on the command line.

use super::compare::Pair;
use super::format;
use super::summary::Summary;
use crate::perf::metrics::{Better, Metric, find_metric};

/// A limit of a cell and what was measured.
pub(crate) struct Limit {
    pub(crate) name: String,
    pub(crate) bound: f64,
    /// None if it was not measured.
    pub(crate) value: Option<f64>,
    pub(crate) kept: bool,
}

impl Limit {
    pub(crate) fn words(&self) -> String {
        let verdict = if self.kept { "kept" } else { "missed" };
        let value = self.value.map_or_else(|| "not measured".to_owned(), format::number);
        format!("limit {} = {} {verdict}: {value}", self.name, format::number(self.bound))
    }
}

/// All limits of a cell. One that names no metric, or one that was not measured, is missed.
pub(crate) fn check(summary: &Summary<'_>) -> Vec<Limit> {
    summary
        .cell
        .limits
        .iter()
        .map(|(name, &bound)| {
            let (metric, least) = bounded(name);
            let value = metric.and_then(|metric| summary.value(metric.name));
            let kept = value.is_some_and(|value| if least { value >= bound } else { value <= bound });
            Limit { name: name.clone(), bound, value, kept }
        })
        .collect()
}

/// The metric a limit speaks of, and whether it is a lower bound: `p99_us`, `received_per_s`, `count_min`.
fn bounded(name: &str) -> (Option<&'static Metric>, bool) {
    let (base, side) = match (name.strip_suffix("_min"), name.strip_suffix("_max")) {
        (Some(base), _) => (base, Some(true)),
        (_, Some(base)) => (base, Some(false)),
        _ => (name, None),
    };
    let metric = find_metric(name).or_else(|| find_metric(base));
    let natural = metric.is_some_and(|metric| metric.better == Better::More);
    (metric, side.unwrap_or(natural))
}

/// A condition under which the report fails: `p99>+10%` (against the base), `lost>0`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    metric: String,
    above: bool,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// Percent of difference to the base.
    Percent(f64),
    Value(f64),
}

impl std::str::FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || format!("{text}: expected METRIC>+N% (against --compare) or METRIC>N, or < for >");
        let place = text.find(['<', '>']).ok_or_else(usage)?;
        let (name, rest) = text.split_at(place);
        let metric = find_metric(name.trim())
            .ok_or_else(|| format!("{text}: there is no metric called {}", name.trim()))?;
        let above = rest.starts_with('>');
        let number = rest.trim_start_matches(['<', '>']).trim();
        let parse = |digits: &str| digits.trim().parse::<f64>().ok().filter(|value| value.is_finite());
        let bound = match number.strip_suffix('%') {
            // A percentage of something that is no percentage is a difference.
            Some(percent) => Bound::Percent(parse(percent).ok_or_else(usage)?),
            None => Bound::Value(parse(number).ok_or_else(usage)?),
        };
        Ok(Self { metric: metric.name.to_owned(), above, bound })
    }
}

impl Condition {
    /// Whether it speaks of a base.
    pub(crate) fn is_relative(&self) -> bool {
        matches!(self.bound, Bound::Percent(_))
    }

    /// Where it is met although it must not be, in words.
    pub(crate) fn violations(&self, summaries: &[Summary<'_>], pairs: &[Pair<'_, '_>]) -> Vec<String> {
        match self.bound {
            Bound::Percent(percent) => pairs.iter().filter_map(|pair| self.differs(pair, percent)).collect(),
            Bound::Value(bound) => summaries
                .iter()
                .filter_map(|summary| {
                    let value = summary.value(&self.metric)?;
                    self.is_beyond(value, bound)
                        .then(|| format!("{}: {} is {}", summary.cell.id, self.metric, format::number(value)))
                })
                .collect(),
        }
    }

    fn differs(&self, pair: &Pair<'_, '_>, percent: f64) -> Option<String> {
        let base = pair.base.value(&self.metric)?;
        let Some(value) = pair.now.value(&self.metric) else {
            return Some(format!("{}: {} is not measured, the base has it", pair.now.cell.id, self.metric));
        };
        // From nothing, any growth is beyond every percentage.
        let bound = base * (1.0 + percent / 100.0);
        self.is_beyond(value, bound).then(|| {
            let (base, value) = (format::number(base), format::number(value));
            format!("{}: {} went from {base} to {value}", pair.now.cell.id, self.metric)
        })
    }

    fn is_beyond(&self, value: f64, bound: f64) -> bool {
        if self.above { value > bound } else { value < bound }
    }
}
