//! Trends: a slope that outliers do not move, and the knee of a ramp.

use super::median;

/// More points than this are thinned before slopes between all pairs are taken.
const POINTS_MAX: usize = 400;

/// Theil–Sen: the median slope between all pairs of points, with Sen's 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slope {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Slope {
    /// Whether the confidence leaves no doubt that it rises.
    pub(crate) fn rises(&self) -> bool {
        self.low > 0.0
    }
}

/// The slope of y over x; none with fewer than 5 points or one x.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    let points = thin(points);
    if points.len() < 5 {
        return None;
    }
    let mut slopes: Vec<f64> = Vec::new();
    for (place, first) in points.iter().enumerate() {
        let later = points.iter().skip(place + 1);
        slopes.extend(
            later.map(|second| (second.1 - first.1) / (second.0 - first.0)).filter(|each| each.is_finite()),
        );
    }
    slopes.sort_by(f64::total_cmp);
    let n = points.len() as f64;
    let spread = 1.96 * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let pairs = slopes.len() as f64;
    let at =
        |place: f64| slopes.get((place.round().max(0.0) as usize).min(slopes.len().checked_sub(1)?)).copied();
    Some(Slope {
        value: median(&slopes)?,
        low: at((pairs - spread) / 2.0 - 1.0)?,
        high: at(f64::midpoint(pairs, spread))?,
    })
}

/// Medians of neighbours, so that at most [`POINTS_MAX`] are left.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let group = points.len().div_ceil(POINTS_MAX).max(1);
    points
        .chunks(group)
        .filter_map(|chunk| {
            let (x, y): (Vec<f64>, Vec<f64>) = chunk.iter().copied().unzip();
            median(&x).zip(median(&y))
        })
        .collect()
}

/// One step of a ramp.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Step {
    /// Asked for, samples a second.
    pub(crate) target: f64,
    pub(crate) sent: f64,
    pub(crate) received: f64,
    /// Percent of what was sent.
    pub(crate) lost_percent: f64,
    pub(crate) latency_p50_ns: Option<f64>,
    pub(crate) latency_p99_ns: Option<f64>,
}

/// A step is kept up with when 99 % of its rate arrives and at most 1 % is lost.
const KEPT_PART: f64 = 0.99;
const LOST_PERCENT_MAX: f64 = 1.0;

impl Step {
    pub(crate) fn is_kept(&self) -> bool {
        self.sent >= KEPT_PART * self.target
            && self.received >= KEPT_PART * self.target
            && self.lost_percent <= LOST_PERCENT_MAX
    }
}

/// The last step that was kept up with before two in a row were not, or before the very last was not: a
/// single step may fall into a disturbance of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Knee {
    pub(crate) step: usize,
    pub(crate) rate: f64,
    /// False: the ramp ended before its knee, which lies higher.
    pub(crate) reached: bool,
}

/// None if no step before the knee was kept up with.
pub(crate) fn knee(steps: &[Step]) -> Option<Knee> {
    let missed = |place: usize| steps.get(place).is_none_or(|step| !step.is_kept());
    let end = (0..steps.len()).find(|&place| missed(place) && missed(place + 1)).unwrap_or(steps.len());
    let (last, step) = steps.iter().enumerate().take(end).rfind(|(_, step)| step.is_kept())?;
    Some(Knee { step: last, rate: step.target, reached: end < steps.len() })
}

/// Where latency turns upward: the point farthest below the chord from first to last, after both axes are
/// scaled to 1 (Satopää and others, 2011). None when the curve has no bend to speak of.
pub(crate) fn bend(points: &[(f64, f64)]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let (width, height) = (last.0 - first.0, last.1 - first.1);
    if points.len() < 4 || width <= 0.0 || height <= 0.0 {
        return None;
    }
    let below = points.iter().map(|point| (point.0 - first.0) / width - (point.1 - first.1) / height);
    let (place, depth) = below.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (depth > 0.2).then_some(place)
}
