//! What something usually takes, from what it took each time.

/// An exponentially weighted moving average: each measurement counts for one of so many parts (RFC 6298 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmoothedEstimate<const PARTS: i64>(i64);

impl<const PARTS: i64> SmoothedEstimate<PARTS> {
    /// What is assumed before the first measurement.
    #[must_use]
    pub const fn new(assumed: i64) -> Self {
        Self(assumed)
    }

    /// The estimate.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// One more measurement.
    pub const fn add(&mut self, measured: i64) {
        self.0 = self.0 - self.0 / PARTS + measured / PARTS;
    }

    /// One more measurement, which counts in full if it is more than what was usual.
    pub const fn add_peak(&mut self, measured: i64) {
        self.add(measured);
        if measured > self.0 {
            self.0 = measured;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_comes_near_to_what_is_measured_and_a_peak_counts_at_once() {
        let mut estimate = SmoothedEstimate::<8>::new(8_000);
        estimate.add(0);
        assert_eq!(estimate.get(), 7_000);
        (0..100).for_each(|_| estimate.add(1_000));
        assert!((1_000..1_008).contains(&estimate.get()), "{}", estimate.get());
        estimate.add_peak(5_000);
        assert_eq!(estimate.get(), 5_000);
        estimate.add_peak(1_000);
        assert_eq!(estimate.get(), 4_500);
    }
}
