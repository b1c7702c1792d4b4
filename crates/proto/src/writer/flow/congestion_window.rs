//! How much may be on its way to readers on other hosts: as much as keeps the path busy, and little more, so
//! that samples do not wait in its queues.
//!
//! The window of a writer follows what answers spend in queues (as Swift does, Kumar et al. 2020, with a
//! delay that is measured from the shortest round trip). Each round, the time in which one window leaves the
//! path, it grows by a datagram or two while even the quickest answer waited for less than
//! [`QUEUE_DELAY_TARGET`]; else it shrinks by the part that is too much. Who has more shrinks by more and
//! grows by as much as others, so that writers which share a path come to equal parts. It begins, and begins
//! anew after silence, by growing half as large again each round, until answers come later. Losses shrink it,
//! too, where answers wait: queues may be shorter than the target. Where none does, paths lose some by
//! themselves.

use crate::estimate::SmoothedEstimate;
use crate::time::{Duration, Instant};
use crate::tuning::writer::{
    CWND_AFTER_LOSS_PERCENT, CWND_INITIAL_BYTES, CWND_MAX_BYTES, CWND_MIN_BYTES, CWND_SHRINK_PERCENT_MAX,
    CWND_STEP_BYTES, CWND_STEP_DIVISOR, DRAIN_PERIOD, DRAIN_ROUND_TRIPS, LOSS_ENDS_GROWTH,
    LOSS_MEASURED_BYTES_MIN, LOSS_OF_LOSSY_PATH, LOSS_ROUNDS, LOSS_TOLERATED, LOSS_TOLERATED_QUEUED,
    OTHERS_BYTES_PER_MS, PACING_SPREAD_MAX, QUEUE_DELAY_TARGET, QUEUE_DELAY_TARGET_MIN,
    QUEUE_DELAY_TARGET_OF_OTHERS, QUEUED_MIN, SOCKET_BYTES_ASSUMED,
};

/// An answer to what was sent so long ago, of which it spent so much in queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttSample {
    pub(crate) took: Duration,
    pub(crate) waited: Duration,
}

/// The window of one writer. Octets are counted from its beginning.
#[derive(Debug)]
pub(crate) struct CongestionWindow {
    bytes: usize,
    /// What the readers' sockets hold: no more than that is sent beyond what is under way on an empty path.
    receive_buffer_bytes: usize,
    /// Readers answer at once, so that what answers take longer is spent in queues.
    are_prompt: bool,
    /// It grows fast: nobody knows yet what the path carries.
    is_beginning: bool,
    /// What had left the path when the round began, and will have when it ends.
    round: (u64, u64),
    /// Of the answers of this round that which waited least, and how long another waited.
    least: Option<RttSample>,
    longest_wait: Duration,
    smoothed: Option<SmoothedEstimate<4>>,
    drained_at: Instant,
    /// What the window was before it was made small for a round, so that queues drain and the shortest round
    /// rtt is seen.
    drained: Option<usize>,
    /// Something had to wait for the window in this round.
    is_limiting: bool,
    /// What this round tells was sent before the window was made smaller.
    is_settling: bool,
    /// Octets that were lost in this round.
    lost: u64,
    /// Octets that left the path and that were lost, of late.
    recent: (u64, u64),
}

impl CongestionWindow {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: CWND_INITIAL_BYTES,
            receive_buffer_bytes: SOCKET_BYTES_ASSUMED,
            are_prompt: true,
            is_beginning: true,
            round: (0, 0),
            least: None,
            longest_wait: Duration::ZERO,
            smoothed: None,
            drained_at: Instant(0),
            drained: None,
            is_limiting: false,
            is_settling: false,
            lost: 0,
            recent: (0, 0),
        }
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The round trip of late, waiting included.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.smoothed.map(|rtt| Duration(rtt.get()))
    }

    /// Octets that may leave in such a time, so that a window is spread over a round trip, with a quarter to
    /// spare; `None`: no round trip is known, or nothing of what readers of other makes are sent.
    pub(crate) fn spread_bytes(&self, time: Duration) -> Option<usize> {
        if self.is_beginning && !self.are_prompt {
            return None;
        }
        let rtt = u128::from(self.rtt()?.min(PACING_SPREAD_MAX).0.unsigned_abs()).max(1);
        let bytes = self.bytes.max(CWND_MIN_BYTES) as u128 * u128::from(time.0.unsigned_abs()) / rtt;
        usize::try_from(bytes + bytes / 4).ok()
    }

    /// The readers' sockets hold so many octets; `None`: nobody told, and nobody knows when they answer.
    pub(crate) fn set_receive_buffer(&mut self, bytes: Option<usize>) {
        self.receive_buffer_bytes = bytes.unwrap_or(SOCKET_BYTES_ASSUMED);
        self.are_prompt = bytes.is_some();
    }

    /// Something waits because this window is closed.
    pub(crate) const fn limits(&mut self) {
        self.is_limiting = true;
    }

    /// What an answer may spend in queues: no more than fills the sockets of readers.
    fn target(&self, rtt: RttSample) -> Duration {
        if !self.are_prompt {
            return QUEUE_DELAY_TARGET_OF_OTHERS;
        }
        let filled =
            rtt.took.0.unsigned_abs() as u128 * self.receive_buffer_bytes as u128 / self.bytes.max(1) as u128;
        Duration(i64::try_from(filled).unwrap_or(i64::MAX)).clamp(QUEUE_DELAY_TARGET_MIN, QUEUE_DELAY_TARGET)
    }

    fn answered(&mut self, rtt: RttSample) {
        let took = rtt.took.max(Duration(1));
        if self.least.is_none_or(|least| rtt.waited < least.waited) {
            self.least = Some(rtt);
        }
        self.longest_wait = self.longest_wait.max(rtt.waited);
        self.smoothed.get_or_insert_with(|| SmoothedEstimate::new(took.0)).add(took.0);
        if self.is_beginning && rtt.waited.0 > QUEUE_DELAY_TARGET.0.saturating_mul(2) {
            self.find(rtt);
        }
    }

    pub(crate) fn end_beginning(&mut self) {
        if std::mem::take(&mut self.is_beginning) && !self.are_prompt {
            self.bytes = self.most();
        }
    }

    /// What it may be.
    fn most(&self) -> usize {
        let millis = self.rtt().map_or(1, |rtt| rtt.0.unsigned_abs() / 1_000_000).max(1);
        let most = if self.are_prompt { u64::MAX } else { OTHERS_BYTES_PER_MS.saturating_mul(millis) };
        usize::try_from(most).unwrap_or(usize::MAX).min(CWND_MAX_BYTES)
    }

    /// It has grown beyond what the path carries: what is under way on an empty one remains.
    fn find(&mut self, rtt: RttSample) {
        self.end_beginning();
        let path = rtt.took.0.saturating_sub(rtt.waited.0).unsigned_abs();
        let bytes = self.bytes as u128 * u128::from(path) / u128::from(rtt.took.0.unsigned_abs().max(1));
        self.bytes = usize::try_from(bytes).unwrap_or(usize::MAX).clamp(CWND_MIN_BYTES, CWND_MAX_BYTES);
    }

    /// So many octets are lost.
    pub(crate) const fn lost(&mut self, bytes: usize) {
        self.lost = self.lost.saturating_add(bytes as u64);
    }

    /// Nobody answers: whatever was on its way is most likely lost.
    pub(crate) const fn silence(&mut self) {
        self.bytes = CWND_MIN_BYTES;
        self.is_beginning = self.are_prompt;
        self.drained = None;
    }

    /// So many octets have left the path now, `more` of them by this answer, of those `sent`.
    ///
    /// Whether losses made it smaller.
    pub(crate) fn left(
        &mut self,
        now: Instant,
        (left, more): (u64, u64),
        sent: u64,
        rtt: Option<RttSample>,
    ) -> bool {
        if let Some(rtt) = rtt {
            self.answered(rtt);
        }
        if self.is_beginning && self.is_limiting && self.drained.is_none() {
            let more = usize::try_from(more / 2).unwrap_or(usize::MAX);
            self.bytes = self.bytes.saturating_add(more).min(CWND_MAX_BYTES);
        }
        let (start, end) = self.round;
        if left < end {
            return false;
        }
        self.end_round(now, left - start);
        self.round = (left, sent.max(left));
        self.is_limiting = false;
        self.longest_wait = Duration::ZERO;
        self.is_settling
    }

    fn end_round(&mut self, now: Instant, left: u64) {
        let least = self.least.take();
        let lost = std::mem::take(&mut self.lost);
        let (left_before, lost_before) = self.recent;
        self.recent =
            (left_before - left_before / LOSS_ROUNDS + left, lost_before - lost_before / LOSS_ROUNDS + lost);
        if let Some(before) = self.drained.take() {
            self.bytes = before;
        } else if std::mem::take(&mut self.is_settling) {
            self.recent = (0, 0);
        } else if lost > 0 && self.is_lossy() {
            self.end_beginning();
            self.shrink(CWND_AFTER_LOSS_PERCENT);
            self.is_settling = true;
        } else if let Some(rtt) = least {
            self.adapt(rtt);
        }
        let pause = self.rtt().map_or(0, |rtt| rtt.0.saturating_mul(DRAIN_ROUND_TRIPS));
        if self.is_limiting
            && !self.is_beginning
            && self.are_prompt
            && now.since(self.drained_at) >= DRAIN_PERIOD.max(Duration(pause))
        {
            self.drained_at = now;
            self.drained = Some(self.bytes);
            self.bytes = CWND_MIN_BYTES;
        }
    }

    /// Whether so much was lost of late that the window must be too large.
    fn is_lossy(&self) -> bool {
        let part = if self.longest_wait > QUEUED_MIN { LOSS_TOLERATED_QUEUED } else { LOSS_TOLERATED };
        self.has_lost(part)
    }

    /// Whether each answer counts: it grows with them, or the path loses some.
    pub(crate) fn needs_answers(&self) -> bool {
        self.is_beginning || self.has_lost(LOSS_OF_LOSSY_PATH)
    }

    /// Whether more than one in so many octets were lost of late.
    fn has_lost(&self, part: u64) -> bool {
        let (left, lost) = self.recent;
        left >= LOSS_MEASURED_BYTES_MIN && lost > left / part
    }

    fn adapt(&mut self, rtt: RttSample) {
        let target = self.target(rtt);
        if self.is_beginning {
            if rtt.waited.0 > QUEUE_DELAY_TARGET.0 / 2 {
                self.find(rtt);
            } else if rtt.waited > target {
                self.end_beginning();
            }
        } else if rtt.waited > target {
            let excess = (rtt.waited.0 - target.0).unsigned_abs() * 80 / rtt.waited.0.unsigned_abs().max(1);
            self.shrink(100 - excess.min(CWND_SHRINK_PERCENT_MAX));
        } else if self.is_limiting && !self.has_lost(LOSS_ENDS_GROWTH) {
            let [least, most] = CWND_STEP_BYTES;
            let step = (self.bytes / CWND_STEP_DIVISOR).clamp(least, most);
            self.bytes = self.bytes.saturating_add(step).min(self.most());
        }
    }

    fn shrink(&mut self, to_percent: u64) {
        let bytes = self.bytes as u64 * to_percent / 100;
        self.bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(CWND_MIN_BYTES);
    }
}
