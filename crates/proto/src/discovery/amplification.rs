//! Anti-amplification (R1): what an unproven participant may cause us to send.
//!
//! Announced locators are hearsay. Until a participant has answered from the address it announced, all
//! it gets is our own announcement, and never more than [`FACTOR`] times the octets it sent us.

use crate::time::{Duration, Instant};

/// Octets sent per octet received, at most.
pub(super) const FACTOR: u64 = 3;
/// Octets that may be saved up: a long-talking stranger does not earn a burst.
const SAVED_BYTES_MAX: u64 = 4_096;
/// Pause after the first answer; it doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Longest pause between answers.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// IP and UDP headers of a datagram, which the victim of a forged address receives too.
const HEADERS_BYTES: u64 = 28;

/// The allowance of one unproven participant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    bytes: u64,
    not_before: Instant,
    pause: Duration,
    spent: u32,
}

impl Budget {
    /// Nothing received, nothing allowed.
    pub(super) const fn new() -> Self {
        Self { bytes: 0, not_before: Instant(0), pause: PAUSE_MIN, spent: 0 }
    }

    /// A datagram of `bytes` octets of UDP payload came from the participant.
    pub(super) const fn received(&mut self, bytes: usize) {
        let earned = (bytes as u64 + HEADERS_BYTES).saturating_mul(FACTOR);
        let saved = self.bytes.saturating_add(earned);
        self.bytes = if saved < SAVED_BYTES_MAX { saved } else { SAVED_BYTES_MAX };
    }

    /// Datagrams sent so far.
    pub(super) const fn spent(&self) -> u32 {
        self.spent
    }

    /// Whether a datagram of `bytes` octets of UDP payload may be sent now; if so it is paid for.
    pub(super) fn spend(&mut self, now: Instant, bytes: usize) -> bool {
        let cost = bytes as u64 + HEADERS_BYTES;
        if now < self.not_before || cost > self.bytes {
            return false;
        }
        self.bytes -= cost;
        self.spent = self.spent.wrapping_add(1);
        self.not_before = now.after(self.pause).unwrap_or(now);
        self.pause = Duration(self.pause.0.saturating_mul(2)).min(PAUSE_MAX);
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
            assert!(!budget.spend(now, SAVED_BYTES_MAX as usize));
            budget.received(300);
            received += 300 + HEADERS_BYTES;
            while budget.spend(now, 400) {
                sent += 400 + HEADERS_BYTES;
            }
            assert!(sent <= FACTOR * received);
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
