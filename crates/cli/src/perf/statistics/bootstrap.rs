//! Confidence from repetitions: the bootstrap, with repetitions (not single values) as what is drawn.

use std::collections::BTreeMap;

use super::Distribution;

/// How many times repetitions are drawn.
const ROUNDS: usize = 1000;

/// With fewer repetitions there is no interval.
pub(crate) const REPETITIONS_MIN: usize = 3;

/// A number and how sure it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    /// From all repetitions together.
    pub(crate) value: f64,
    /// 95 % confidence; none with fewer than [`REPETITIONS_MIN`] repetitions.
    pub(crate) interval: Option<(f64, f64)>,
    /// The same number of each drawing, for what is computed from two estimates.
    replicates: Vec<f64>,
}

impl Estimate {
    fn new(value: f64, repetitions: usize, replicates: Vec<f64>) -> Self {
        let interval = (repetitions >= REPETITIONS_MIN).then(|| interval(&replicates)).flatten();
        Self { value, interval, replicates }
    }

    /// A number that needs no interval: a count, or one that is exact.
    pub(crate) fn exact(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// The mean of one number per repetition.
    pub(crate) fn of_mean(numbers: &[f64], seed: u64) -> Option<Self> {
        if numbers.is_empty() || numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        let mean = |weights: &[u32]| {
            let sum: f64 =
                numbers.iter().zip(weights).map(|(number, &weight)| number * f64::from(weight)).sum();
            sum / numbers.len() as f64
        };
        let value = mean(&vec![1; numbers.len()]);
        Some(Self::new(value, numbers.len(), draw(numbers.len(), seed, mean)))
    }

    /// A quantile (0 to 1) of the merged histograms of repetitions.
    pub(crate) fn of_quantile(pool: &Pool, part: f64, seed: u64) -> Option<Self> {
        let value = pool.quantile(&vec![1; pool.len()], part)? as f64;
        let replicates = draw(pool.len(), seed, |weights| {
            pool.quantile(weights, part).map_or(value, |value| value as f64)
        });
        Some(Self::new(value, pool.len(), replicates))
    }

    /// This divided by another, drawn independently of it.
    pub(crate) fn ratio_to(&self, base: &Self) -> Option<Self> {
        if base.value <= 0.0 {
            return None;
        }
        let replicates: Vec<f64> = self
            .replicates
            .iter()
            .zip(&base.replicates)
            .map(|(ours, theirs)| ours / theirs)
            .filter(|ratio| ratio.is_finite())
            .collect();
        let both = self.interval.is_some() && base.interval.is_some();
        let interval = both.then(|| interval(&replicates)).flatten();
        Some(Self { value: self.value / base.value, interval, replicates })
    }

    /// The same in another unit.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            interval: self.interval.map(|(low, high)| (low * factor, high * factor)),
            replicates: self.replicates.iter().map(|each| each * factor).collect(),
        }
    }
}

/// Histograms of repetitions on one grid, so that a quantile of any mixture is quick.
pub(crate) struct Pool {
    grid: Vec<u64>,
    /// For each repetition: the number of values up to each of the grid.
    cumulative: Vec<Vec<u64>>,
}

impl Pool {
    pub(crate) fn new<'d>(parts: impl IntoIterator<Item = &'d Distribution> + Clone) -> Self {
        let mut grid: Vec<u64> =
            parts.clone().into_iter().flat_map(|part| part.values.iter().copied()).collect();
        grid.sort_unstable();
        grid.dedup();
        let filled = parts.into_iter().filter(|part| !part.is_empty());
        let cumulative =
            filled.map(|part| grid.iter().map(|&value| part.count_at_most(value)).collect()).collect();
        Self { grid, cumulative }
    }

    /// The number of repetitions that have values.
    pub(crate) fn len(&self) -> usize {
        self.cumulative.len()
    }

    fn quantile(&self, weights: &[u32], part: f64) -> Option<u64> {
        let upto = |place: usize| -> f64 {
            let each = self.cumulative.iter().zip(weights);
            each.map(|(counts, &weight)| counts.get(place).copied().unwrap_or(0) as f64 * f64::from(weight))
                .sum()
        };
        let last = self.grid.len().checked_sub(1)?;
        let wanted = (part * upto(last)).ceil().max(1.0);
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = usize::midpoint(low, high);
            if upto(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        self.grid.get(low).copied()
    }
}

/// Draws as many repetitions as there are, with replacement, and computes the number; many times.
fn draw(count: usize, seed: u64, mut statistic: impl FnMut(&[u32]) -> f64) -> Vec<f64> {
    if count < REPETITIONS_MIN {
        return Vec::new();
    }
    let mut random = Random(seed);
    let mut weights = vec![0_u32; count];
    // Few repetitions can be drawn in few ways: each is computed once.
    let mut known: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
    (0..ROUNDS)
        .map(|_| {
            weights.fill(0);
            for _ in 0..count {
                let place = random.below(count);
                if let Some(weight) = weights.get_mut(place) {
                    *weight += 1;
                }
            }
            match known.get(&weights) {
                Some(&value) => value,
                None => {
                    let value = statistic(&weights);
                    known.insert(weights.clone(), value);
                    value
                }
            }
        })
        .collect()
}

/// The middle 95 % of replicates.
fn interval(replicates: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = replicates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| sorted.get((part * (sorted.len().checked_sub(1)? as f64)).round() as usize).copied();
    at(0.025).zip(at(0.975))
}

/// SplitMix64: the same seed gives the same report.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * count as u128) >> 64) as usize
    }
}

/// A seed from a name: FNV-1a.
pub(crate) fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
