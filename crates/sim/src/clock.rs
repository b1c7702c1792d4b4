//! The clocks of one node: monotonic time that begins anywhere, wall time that may jump.

use plainsong_proto::time::{Duration, Instant, Now, Time};

/// 2026-01-01 00:00 UTC: where wall clocks begin when nothing is wrong with them.
const WALL_ORIGIN: Time = Time(1_767_225_600_000_000_000);

/// Two readings of the world's time, each with an error of its own.
#[derive(Clone, Debug)]
pub struct Clock {
    mono_origin_nanos: u64,
    wall_error: Duration,
}

impl Clock {
    /// A clock whose monotonic time was `mono_origin_nanos` when the world began.
    #[must_use]
    pub const fn new(mono_origin_nanos: u64, wall_error: Duration) -> Self {
        Self { mono_origin_nanos, wall_error }
    }

    /// What the node reads when the world's time is `at`.
    #[must_use]
    pub const fn now(&self, at: Instant) -> Now {
        Now {
            mono: Instant(at.0.saturating_add(self.mono_origin_nanos)),
            wall: Time(WALL_ORIGIN.0 + at.0 as i64).plus(self.wall_error),
        }
    }

    /// The world's time at which the node's monotonic clock shows `mono`.
    #[must_use]
    pub const fn world(&self, mono: Instant) -> Instant {
        Instant(mono.0.saturating_sub(self.mono_origin_nanos))
    }

    /// Somebody sets the wall clock.
    pub const fn jump(&mut self, by: Duration) {
        self.wall_error = Duration(self.wall_error.0.saturating_add(by.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_may_jump_back_but_monotonic_time_never_does() {
        let mut clock = Clock::new(500, Duration::ZERO);
        let before = clock.now(Instant(1_000));
        clock.jump(Duration::from_secs(-3600));
        let after = clock.now(Instant(1_001));
        assert!(after.mono > before.mono && after.wall < before.wall);
        assert_eq!(clock.world(after.mono), Instant(1_001));
    }
}
