//! Pauses that double while nothing comes of it.

use crate::time::Duration;

/// The pauses of whatever is tried again and again.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
}

impl Backoff {
    /// From `first` on, `most` at last.
    #[must_use]
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most }
    }

    /// From `first` on, doubled so often at most.
    #[must_use]
    pub const fn doubling(first: Duration, times: u32) -> Self {
        Self { first, most: multiplied(first, times) }
    }

    /// The pause after one that was tried so often before.
    #[must_use]
    pub const fn pause(self, tries: u32) -> Duration {
        let pause = multiplied(self.first, tries);
        if pause.0 < self.most.0 { pause } else { self.most }
    }

    /// The pause after this one.
    #[must_use]
    pub const fn after(self, pause: Duration) -> Duration {
        Self { first: pause, ..self }.pause(1)
    }
}

const fn multiplied(first: Duration, doublings: u32) -> Duration {
    let factor = if doublings < 62 { 1 << doublings } else { i64::MAX };
    Duration(first.0.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_never_overflow() {
        let [first, most] = [10, 1_000].map(Duration::from_millis);
        let backoff = Backoff::new(first, most);
        assert_eq!(
            [0, 1, 6, 7, u32::MAX].map(|tries| backoff.pause(tries).0 / 1_000_000),
            [10, 20, 640, 1_000, 1_000]
        );
        assert_eq!(backoff.after(Duration::from_millis(30)), Duration::from_millis(60));
        assert_eq!(backoff.after(most), most);
        assert_eq!(Backoff::doubling(first, 2).pause(9), Duration::from_millis(40));
        assert_eq!(Backoff::doubling(Duration::INFINITE, 3).pause(2), Duration::INFINITE);
    }
}
