//! What `hz`, `bw` and `delay` count: the last values of a row, and what they are like.

use std::collections::VecDeque;

use serde::Serialize;

/// The last values, the oldest first.
pub(super) struct Window {
    values: VecDeque<f64>,
    most: usize,
}

/// What values are like. All zero without values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Summary {
    pub(super) count: usize,
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// Standard deviation.
    pub(super) deviation: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Summary {
    /// In another unit.
    pub(super) fn each(self, factor: f64) -> Self {
        Self {
            count: self.count,
            mean: self.mean * factor,
            min: self.min * factor,
            max: self.max * factor,
            deviation: self.deviation * factor,
            p50: self.p50 * factor,
            p99: self.p99 * factor,
        }
    }
}

impl Window {
    pub(super) fn new(most: usize) -> Self {
        Self { values: VecDeque::new(), most }
    }

    pub(super) fn push(&mut self, value: f64) {
        if self.values.len() == self.most {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    pub(super) fn summary(&self) -> Summary {
        let count = self.values.len();
        if count == 0 {
            return Summary::default();
        }
        let mean = self.values.iter().sum::<f64>() / count as f64;
        let variance = self.values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count as f64;
        let mut sorted: Vec<f64> = self.values.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        // The smallest value that is not smaller than so many hundredths of all.
        let quantile = |hundredths: usize| sorted[(count * hundredths).div_ceil(100).clamp(1, count) - 1];
        let (min, max) = (sorted[0], sorted[count - 1]);
        Summary { count, mean, min, max, deviation: variance.sqrt(), p50: quantile(50), p99: quantile(99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_window_are_forgotten() {
        let mut window = Window::new(100);
        assert_eq!(window.summary(), Summary::default());
        (0..1_000).for_each(|value| window.push(f64::from(value)));
        let summary = window.summary();
        assert_eq!((summary.count, summary.min, summary.max), (100, 900.0, 999.0));
        assert_eq!((summary.mean, summary.p50, summary.p99), (949.5, 949.0, 998.0));
        assert!((summary.deviation - 28.866).abs() < 0.001);
    }
}
