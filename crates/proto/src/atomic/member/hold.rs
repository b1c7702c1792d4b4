//! What a member does while its readers take no more.
//!
//! It delivers nothing, so that its position stays, the windows of those who write fill, and writing waits.
//! What it has received it still vouches for: the others deliver. Two things may not be refused: what one
//! call delivers before the driver knows that there is no room, and what is within the cut of an epoch that
//! ends. In the next epoch it vouches for nothing until its readers take again, so that however often epochs
//! end no more than twice the window of each lane, and the own window once more, waits for room.

use crate::atomic::Body;
use crate::atomic::member::{Member, Phase};
use crate::time::{Duration, Instant};

impl<B: Body> Member<B> {
    /// The readers here take no more: nothing is delivered but at the end of an epoch.
    pub fn hold(&mut self) {
        self.is_held = true;
        if let Some(epoch) = &mut self.epoch {
            epoch.is_held = true;
        }
    }

    /// The readers here take again, and have all that was delivered.
    pub fn resume(&mut self, now: Instant) {
        if !std::mem::take(&mut self.is_held) {
            return;
        }
        self.joining.hurry(now);
        let Some(epoch) = &mut self.epoch else { return };
        epoch.is_held = false;
        // What was said at the end of an epoch is final.
        if self.phase != Phase::Active {
            return;
        }
        self.is_dirty |= epoch.vouch_again();
        self.deliver();
        self.schedule_row(now);
        if !self.caught_up {
            self.fetch(false);
        }
    }

    /// Who holds this member up by a full window for so long is excluded; infinite: never.
    pub const fn set_slow(&mut self, slow: Duration) {
        self.config.slow = slow;
    }

    /// Whether its readers take no more.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.is_held
    }
}
