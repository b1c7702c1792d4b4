//! Two distributions beside each other.

use super::Distribution;

/// What sets one distribution apart from another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// Cliff's delta: how much more often a value of the first is the larger one than the smaller one, -1 to
    /// 1.
    pub(crate) delta: f64,
    /// Mann–Whitney U test, two-sided, with correction for ties and continuity.
    pub(crate) rank_p: f64,
    /// Kolmogorov–Smirnov: the largest difference between the cumulative curves, and its probability.
    pub(crate) distance: f64,
    pub(crate) distance_p: f64,
    /// Which of the two is the smaller at every quantile, beyond sampling error.
    pub(crate) dominance: Dominance,
}

/// First-order stochastic dominance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dominance {
    /// The first is the smaller one throughout.
    FirstSmaller,
    /// The second is.
    SecondSmaller,
    /// The curves cross, or are the same.
    Neither,
}

/// Size of an effect, from Cliff's delta (Romano and others, 2006).
pub(crate) fn magnitude(delta: f64) -> &'static str {
    match delta.abs() {
        delta if delta < 0.147 => "negligible",
        delta if delta < 0.33 => "small",
        delta if delta < 0.474 => "medium",
        _ => "large",
    }
}

/// Compares all values of both; none if one has no value.
pub(crate) fn compare(first: &Distribution, second: &Distribution) -> Option<Comparison> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let (n, m) = (first.count() as f64, second.count() as f64);
    let mut walk = Walk::default();
    for (count_first, count_second) in side_by_side(first, second) {
        walk.step(count_first as f64, count_second as f64, n, m);
    }
    let pairs = n * m;
    let total = n + m;
    let variance = pairs / 12.0 * (total + 1.0 - walk.ties / (total * (total - 1.0)).max(1.0));
    let off = (walk.larger - pairs / 2.0).abs() - 0.5;
    let rank_p =
        if variance > 0.0 { (2.0 * normal_above(off.max(0.0) / variance.sqrt())).min(1.0) } else { 1.0 };
    let distance = walk.first_ahead.max(walk.second_ahead);
    // The bound that the largest difference stays below in 19 of 20 samples of one distribution.
    let noise = 1.358 * (total / pairs).sqrt();
    let dominance = if walk.first_ahead > noise && walk.second_ahead <= noise {
        Dominance::FirstSmaller
    } else if walk.second_ahead > noise && walk.first_ahead <= noise {
        Dominance::SecondSmaller
    } else {
        Dominance::Neither
    };
    Some(Comparison {
        delta: 2.0 * walk.larger / pairs - 1.0,
        rank_p,
        distance,
        distance_p: kolmogorov_above(distance, pairs / total),
        dominance,
    })
}

/// Sums over the values of both, ascending.
#[derive(Default)]
struct Walk {
    below_first: f64,
    below_second: f64,
    /// Pairs in which the first is the larger one, and half of those that tie: U.
    larger: f64,
    /// Sum of t³ - t over ties.
    ties: f64,
    first_ahead: f64,
    second_ahead: f64,
}

impl Walk {
    fn step(&mut self, of_first: f64, of_second: f64, n: f64, m: f64) {
        self.larger += of_first * (self.below_second + of_second / 2.0);
        let tied = of_first + of_second;
        self.ties += tied * (tied * tied - 1.0);
        self.below_first += of_first;
        self.below_second += of_second;
        let ahead = self.below_first / n - self.below_second / m;
        self.first_ahead = self.first_ahead.max(ahead);
        self.second_ahead = self.second_ahead.max(-ahead);
    }
}

/// For each value of either, ascending: how often both have it.
fn side_by_side(first: &Distribution, second: &Distribution) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64, u64)> = first.counts().map(|(value, count)| (value, count, 0)).collect();
    all.extend(second.counts().map(|(value, count)| (value, 0, count)));
    all.sort_unstable();
    let mut joined: Vec<(u64, u64, u64)> = Vec::with_capacity(all.len());
    for (value, in_first, in_second) in all {
        match joined.last_mut() {
            Some(last) if last.0 == value => {
                last.1 += in_first;
                last.2 += in_second;
            }
            _ => joined.push((value, in_first, in_second)),
        }
    }
    joined.into_iter().map(|(_, in_first, in_second)| (in_first, in_second)).collect()
}

/// The part of a standard normal distribution above this.
pub(crate) fn normal_above(z: f64) -> f64 {
    0.5 * complementary_error(z / std::f64::consts::SQRT_2)
}

/// erfc, by the rational Chebyshev fit in Numerical Recipes: the relative error is below 1.2e-7.
fn complementary_error(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let polynomial = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let tail = t * (-x * x + polynomial).exp();
    if x >= 0.0 { tail } else { 2.0 - tail }
}

/// The probability of a larger Kolmogorov–Smirnov distance between samples of one distribution, by Stephens'
/// approximation; `size` is n m / (n + m).
fn kolmogorov_above(distance: f64, size: f64) -> f64 {
    let root = size.sqrt();
    let lambda = (root + 0.12 + 0.11 / root) * distance;
    if lambda < 0.2 {
        return 1.0;
    }
    let mut sum = 0.0;
    for k in 1..=100 {
        let k = f64::from(k);
        let sign = if k % 2.0 == 1.0 { 1.0 } else { -1.0 };
        let term = (-2.0 * k * k * lambda * lambda).exp();
        sum += sign * term;
        if term < 1e-12 {
            break;
        }
    }
    (2.0 * sum).clamp(0.0, 1.0)
}
