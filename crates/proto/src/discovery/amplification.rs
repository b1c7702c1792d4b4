//! Anti-amplification (R1): what an unproven participant may cause us to send.
//!
//! Announced locators are hearsay. Until a participant has answered from the address it announced, all
//! it gets is our own announcement, and never more than [`AMPLIFICATION_FACTOR`] times the octets it sent us.

use crate::backoff::Backoff;
use crate::time::{Duration, Instant};
use crate::tuning::discovery::{
    AMPLIFICATION_FACTOR, AMPLIFICATION_SAVED_BYTES_MAX, PROVEN_PROBE_PAUSE, UNPROVEN_PAUSE,
    UNPROVEN_PAUSE_MAX, UNPROVEN_PAUSE_MAX_HEARD, UNPROVEN_PROMPT_DATAGRAMS, UNPROVEN_PROMPT_PAUSE,
};

/// IP and UDP headers of a datagram, which the victim of a forged address receives too.
const HEADERS_BYTES: u64 = 28;

/// The allowance of one unproven participant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    bytes: u64,
    not_before: Instant,
    pause: Duration,
    spent: u32,
    /// The same since something was received.
    unheard: u32,
}

impl Budget {
    /// Nothing received, nothing allowed.
    pub(super) const fn new() -> Self {
        Self { bytes: 0, not_before: Instant(0), pause: UNPROVEN_PAUSE, spent: 0, unheard: 0 }
    }

    /// A datagram of `bytes` octets of UDP payload came from the participant.
    pub(super) const fn received(&mut self, bytes: usize) {
        let earned = (bytes as u64 + HEADERS_BYTES).saturating_mul(AMPLIFICATION_FACTOR);
        let saved = self.bytes.saturating_add(earned);
        self.bytes =
            if saved < AMPLIFICATION_SAVED_BYTES_MAX { saved } else { AMPLIFICATION_SAVED_BYTES_MAX };
        self.unheard = 0;
    }

    /// A submessage to one of our built-in endpoints came, of `bytes` octets at least.
    pub(super) fn heard(&mut self, now: Instant, bytes: usize) {
        let saved = self.bytes.saturating_add((bytes as u64).saturating_mul(AMPLIFICATION_FACTOR));
        self.bytes = saved.min(AMPLIFICATION_SAVED_BYTES_MAX);
        self.unheard = 0;
        self.pause = self.pause.min(UNPROVEN_PAUSE_MAX_HEARD);
        self.not_before = self.not_before.min(now.after(UNPROVEN_PAUSE_MAX_HEARD).unwrap_or(now));
    }

    /// Datagrams sent since something was received.
    pub(super) const fn unheard(&self) -> u32 {
        self.unheard
    }

    /// When a datagram of `bytes` octets of UDP payload may be sent, unless more has to be received before.
    pub(super) fn next(&self, bytes: usize) -> Option<Instant> {
        (bytes as u64 + HEADERS_BYTES <= self.bytes).then_some(self.not_before)
    }

    /// When it may.
    pub(super) const fn may_probe_at(&self) -> Instant {
        self.not_before
    }

    /// Whether a participant that has proven itself may be asked something now that somebody else can cause;
    /// if so, not again soon.
    pub(super) fn may_probe(&mut self, now: Instant) -> bool {
        let may = now >= self.not_before;
        if may {
            self.not_before = now.after(PROVEN_PROBE_PAUSE).unwrap_or(now);
        }
        may
    }

    /// Whether a datagram of `bytes` octets of UDP payload may be sent now; if so it is paid for.
    pub(super) fn spend(&mut self, now: Instant, bytes: usize) -> bool {
        let cost = bytes as u64 + HEADERS_BYTES;
        if now < self.not_before || cost > self.bytes {
            return false;
        }
        self.bytes -= cost;
        self.spent = self.spent.saturating_add(1);
        self.unheard = self.unheard.saturating_add(1);
        let pause = if self.spent <= UNPROVEN_PROMPT_DATAGRAMS { UNPROVEN_PROMPT_PAUSE } else { self.pause };
        self.not_before = now.after(pause).unwrap_or(now);
        if self.spent > UNPROVEN_PROMPT_DATAGRAMS {
            self.pause = Backoff::new(UNPROVEN_PAUSE, UNPROVEN_PAUSE_MAX).after(self.pause);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r1_never_more_than_three_times_and_ever_more_slowly() {
        let mut budget = Budget::new();
        let (mut received, mut sent) = (0, 0);
        for second in 0..7_200 {
            let now = Instant(second * 1_000_000_000);
            assert!(!budget.spend(now, AMPLIFICATION_SAVED_BYTES_MAX as usize));
            budget.received(300);
            received += 300 + HEADERS_BYTES;
            while budget.spend(now, 400) {
                sent += 400 + HEADERS_BYTES;
            }
            assert!(sent <= AMPLIFICATION_FACTOR * received);
        }
        assert!(sent < 150 * 428, "two hours of talk earn about one answer a minute, not {sent} octets");
    }

    #[test]
    fn r1_a_short_message_does_not_earn_a_long_answer() {
        let mut budget = Budget::new();
        budget.received(60);
        assert!(!budget.spend(Instant(0), 400));
        assert!(budget.spend(Instant(0), 200));
    }
}
