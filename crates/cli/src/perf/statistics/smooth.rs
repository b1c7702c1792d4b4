//! Curves of a distribution: cumulative, and smoothed by a kernel.

use super::Distribution;
use super::compare::normal_above;

/// The cumulative curve between two values, thinned to about so many points: (value, part not above it).
pub(crate) fn cumulative(
    distribution: &Distribution,
    low: f64,
    high: f64,
    points_max: usize,
) -> Vec<(f64, f64)> {
    let total = distribution.count() as f64;
    if total == 0.0 {
        return Vec::new();
    }
    let step = 1.0 / points_max.max(1) as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut upto = 0_u64;
    for (value, count) in distribution.counts() {
        upto += count;
        let (value, part) = (value as f64, upto as f64 / total);
        if value > high {
            break;
        }
        let due = points.last().is_none_or(|&(_, last)| part - last >= step || part >= 1.0);
        if value >= low && due {
            points.push((value, part));
        }
    }
    points
}

/// The same smoothed by a Gaussian kernel of Silverman's width. What the kernel would put below 0 is
/// reflected, because no duration is negative.
pub(crate) fn smoothed(distribution: &Distribution, low: f64, high: f64, points: usize) -> Vec<(f64, f64)> {
    let Some(width) = kernel_width(distribution) else { return Vec::new() };
    let total = distribution.count() as f64;
    // Bins closer than a tenth of the kernel cannot be told apart after smoothing.
    let bins = coarse(distribution, width / 10.0);
    (0..=points)
        .map(|place| {
            let at = low + (high - low) * place as f64 / points.max(1) as f64;
            let below: f64 = bins
                .iter()
                .map(|&(value, count)| {
                    let direct = normal_above((value - at) / width);
                    let reflected = normal_above((value + at) / width);
                    count * (direct - reflected)
                })
                .sum();
            (at, (below / total).clamp(0.0, 1.0))
        })
        .collect()
}

/// Silverman: 0.9 min(sd, IQR / 1.34) n^(-1/5), at least the width of a bin.
fn kernel_width(distribution: &Distribution) -> Option<f64> {
    let deviation = distribution.deviation()?;
    let range = distribution.quantile(0.75)?.saturating_sub(distribution.quantile(0.25)?) as f64 / 1.34;
    let spread = if range > 0.0 { deviation.min(range) } else { deviation };
    let bin = distribution.quantile(0.5)? as f64 / 1000.0;
    Some((0.9 * spread * (distribution.count() as f64).powf(-0.2)).max(bin).max(1.0))
}

fn coarse(distribution: &Distribution, width: f64) -> Vec<(f64, f64)> {
    let mut bins: Vec<(f64, f64)> = Vec::new();
    for (value, count) in distribution.counts() {
        let (value, count) = (value as f64, count as f64);
        match bins.last_mut() {
            Some((at, sum)) if value - *at < width => *sum += count,
            _ => bins.push((value, count)),
        }
    }
    bins
}
