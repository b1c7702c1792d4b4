//! How much may be on its way to readers on other hosts: as much as keeps the path busy, and little more, so
//! that samples do not wait in its queues.
//!
//! The window of a writer follows what answers spend in queues (as Swift does, Kumar et al. 2020, with a
//! delay that is measured from the shortest round trip). Each round, the time in which one window leaves the
//! path, it grows by a datagram or two while even the quickest answer waited for less than [`TARGET`]; else
//! it shrinks by the part that is too much. Who has more shrinks by more and grows by as much as others, so
//! that writers which share a path come to equal parts. It begins, and begins anew after silence, by growing
//! half as large again each round, until answers come later. Losses shrink it, too, where answers wait:
//! queues may be shorter than the target. Where none does, paths lose some by themselves.

use crate::estimate::SmoothedEstimate;
use crate::time::{Duration, Instant};

/// At the beginning.
pub(in crate::writer) const FIRST_BYTES: usize = 16 << 10;
/// However slow the path.
pub(in crate::writer) const LEAST_BYTES: usize = 6_000;
/// However long the path, and fast.
const MOST_BYTES: usize = 8 << 20;
/// What readers' sockets are taken to hold when nobody told: as many datagrams of one Ethernet frame as Linux
/// puts into the usual 208 KiB, with what it counts beside their octets.
const USUAL_HOLD_BYTES: usize = 128 << 10;
/// So long a sample may wait in the queues of the path.
pub(in crate::writer) const TARGET: Duration = Duration::from_millis(4);
/// What the sockets of readers hold may be less than that, but readers that miss something take as long as
/// this to answer.
const TARGET_LEAST: Duration = Duration::from_micros(500);
/// The same where readers of other makes wait some milliseconds before they answer.
const TARGET_OF_OTHERS: Duration = Duration::from_millis(25);
/// What these are sent for each millisecond of a round trip at most, and as long as nothing is lost and
/// nothing waits: they do not tell what has arrived of a sample before its end, so that nobody could find out
/// what the path carries.
const OTHERS_BYTES_PER_MS: u64 = 128_000;
/// A window is spread over no longer time.
const SPREAD_MAX: Duration = Duration::from_millis(100);
/// What a round adds: a part of the window, between one datagram and some.
const STEP_PART: usize = 64;
const STEP_BYTES: [usize; 2] = [1_500, 6_000];
/// So often, but after so many round trips at least, queues are let drain for a round, so that the shortest
/// round trip is seen: who came while others filled them would take them for a part of the path, and more
/// than its part of it.
const DRAIN_PERIOD: Duration = Duration::from_secs(2);
const DRAIN_TRIPS: i64 = 50;
/// One in so many octets may be lost without fault of the window where answers wait in queues, and where they
/// do not: paths lose some by themselves. It grows no further where one in so many is.
const LOST_PART: u64 = 24;
const LOST_PART_UNQUEUED: u64 = 4;
const LOST_PART_OF_GROWTH: u64 = 16;
/// One in so many shows that it does.
const LOST_PART_OF_LOSSY: u64 = 128;
/// Of fewer octets nothing is said.
const JUDGED_BYTES: u64 = 64 << 10;
/// Answers that spent less in queues than this did not wait: times to answer differ, and who misses something
/// takes longer.
const QUEUED: Duration = Duration::from_micros(1_500);
/// Losses are counted over about so many rounds.
const LOSS_ROUNDS: u64 = 8;
/// How far a round shrinks the window at most, in percent.
const SHRINK_PERCENT_MAX: u64 = 50;
/// What many losses leave of it.
const AFTER_LOSS_PERCENT: u64 = 70;

/// An answer to what was sent so long ago, of which it spent so much in queues.
#[derive(Clone, Copy, Debug)]
pub(in crate::writer) struct RttSample {
    pub(in crate::writer) took: Duration,
    pub(in crate::writer) waited: Duration,
}

/// The window of one writer. Octets are counted from its beginning.
#[derive(Debug)]
pub(in crate::writer) struct CongestionWindow {
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
    /// trip is seen.
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
    pub(in crate::writer) const fn new() -> Self {
        Self {
            bytes: FIRST_BYTES,
            receive_buffer_bytes: USUAL_HOLD_BYTES,
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

    pub(in crate::writer) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The round trip of late, waiting included.
    pub(in crate::writer) fn trip(&self) -> Option<Duration> {
        self.smoothed.map(|trip| Duration(trip.get()))
    }

    /// Octets that may leave in such a time, so that a window is spread over a round trip, with a quarter to
    /// spare; `None`: no round trip is known, or nothing of what readers of other makes are sent.
    pub(in crate::writer) fn spread_bytes(&self, time: Duration) -> Option<usize> {
        if self.is_beginning && !self.are_prompt {
            return None;
        }
        let trip = u128::from(self.trip()?.min(SPREAD_MAX).0.unsigned_abs()).max(1);
        let bytes = self.bytes.max(LEAST_BYTES) as u128 * u128::from(time.0.unsigned_abs()) / trip;
        usize::try_from(bytes + bytes / 4).ok()
    }

    /// The readers' sockets hold so many octets; `None`: nobody told, and nobody knows when they answer.
    pub(in crate::writer) fn set_receive_buffer(&mut self, bytes: Option<usize>) {
        self.receive_buffer_bytes = bytes.unwrap_or(USUAL_HOLD_BYTES);
        self.are_prompt = bytes.is_some();
    }

    /// Something waits because this window is closed.
    pub(in crate::writer) const fn limits(&mut self) {
        self.is_limiting = true;
    }

    /// What an answer may spend in queues: no more than fills the sockets of readers.
    fn target(&self, trip: RttSample) -> Duration {
        if !self.are_prompt {
            return TARGET_OF_OTHERS;
        }
        let filled = trip.took.0.unsigned_abs() as u128 * self.receive_buffer_bytes as u128
            / self.bytes.max(1) as u128;
        Duration(i64::try_from(filled).unwrap_or(i64::MAX)).clamp(TARGET_LEAST, TARGET)
    }

    fn answered(&mut self, trip: RttSample) {
        let took = trip.took.max(Duration(1));
        if self.least.is_none_or(|least| trip.waited < least.waited) {
            self.least = Some(trip);
        }
        self.longest_wait = self.longest_wait.max(trip.waited);
        self.smoothed.get_or_insert_with(|| SmoothedEstimate::new(took.0)).add(took.0);
        if self.is_beginning && trip.waited.0 > TARGET.0.saturating_mul(2) {
            self.find(trip);
        }
    }

    pub(in crate::writer) fn end_beginning(&mut self) {
        if std::mem::take(&mut self.is_beginning) && !self.are_prompt {
            self.bytes = self.most();
        }
    }

    /// What it may be.
    fn most(&self) -> usize {
        let millis = self.trip().map_or(1, |trip| trip.0.unsigned_abs() / 1_000_000).max(1);
        let most = if self.are_prompt { u64::MAX } else { OTHERS_BYTES_PER_MS.saturating_mul(millis) };
        usize::try_from(most).unwrap_or(usize::MAX).min(MOST_BYTES)
    }

    /// It has grown beyond what the path carries: what is under way on an empty one remains.
    fn find(&mut self, trip: RttSample) {
        self.end_beginning();
        let path = trip.took.0.saturating_sub(trip.waited.0).unsigned_abs();
        let bytes = self.bytes as u128 * u128::from(path) / u128::from(trip.took.0.unsigned_abs().max(1));
        self.bytes = usize::try_from(bytes).unwrap_or(usize::MAX).clamp(LEAST_BYTES, MOST_BYTES);
    }

    /// So many octets are lost.
    pub(in crate::writer) const fn lost(&mut self, bytes: usize) {
        self.lost = self.lost.saturating_add(bytes as u64);
    }

    /// Nobody answers: whatever was on its way is most likely lost.
    pub(in crate::writer) const fn silence(&mut self) {
        self.bytes = LEAST_BYTES;
        self.is_beginning = self.are_prompt;
        self.drained = None;
    }

    /// So many octets have left the path now, `more` of them by this answer, of those `sent`.
    ///
    /// Whether losses made it smaller.
    pub(in crate::writer) fn left(
        &mut self,
        now: Instant,
        (left, more): (u64, u64),
        sent: u64,
        trip: Option<RttSample>,
    ) -> bool {
        if let Some(trip) = trip {
            self.answered(trip);
        }
        if self.is_beginning && self.is_limiting && self.drained.is_none() {
            let more = usize::try_from(more / 2).unwrap_or(usize::MAX);
            self.bytes = self.bytes.saturating_add(more).min(MOST_BYTES);
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
            self.shrink(AFTER_LOSS_PERCENT);
            self.is_settling = true;
        } else if let Some(trip) = least {
            self.adapt(trip);
        }
        let pause = self.trip().map_or(0, |trip| trip.0.saturating_mul(DRAIN_TRIPS));
        if self.is_limiting
            && !self.is_beginning
            && self.are_prompt
            && now.since(self.drained_at) >= DRAIN_PERIOD.max(Duration(pause))
        {
            self.drained_at = now;
            self.drained = Some(self.bytes);
            self.bytes = LEAST_BYTES;
        }
    }

    /// Whether so much was lost of late that the window must be too large.
    fn is_lossy(&self) -> bool {
        let part = if self.longest_wait > QUEUED { LOST_PART } else { LOST_PART_UNQUEUED };
        self.has_lost(part)
    }

    /// Whether each answer counts: it grows with them, or the path loses some.
    pub(in crate::writer) fn needs_answers(&self) -> bool {
        self.is_beginning || self.has_lost(LOST_PART_OF_LOSSY)
    }

    /// Whether more than one in so many octets were lost of late.
    fn has_lost(&self, part: u64) -> bool {
        let (left, lost) = self.recent;
        left >= JUDGED_BYTES && lost > left / part
    }

    fn adapt(&mut self, trip: RttSample) {
        let target = self.target(trip);
        if self.is_beginning {
            if trip.waited.0 > TARGET.0 / 2 {
                self.find(trip);
            } else if trip.waited > target {
                self.end_beginning();
            }
        } else if trip.waited > target {
            let excess = (trip.waited.0 - target.0).unsigned_abs() * 80 / trip.waited.0.unsigned_abs().max(1);
            self.shrink(100 - excess.min(SHRINK_PERCENT_MAX));
        } else if self.is_limiting && !self.has_lost(LOST_PART_OF_GROWTH) {
            let [least, most] = STEP_BYTES;
            let step = (self.bytes / STEP_PART).clamp(least, most);
            self.bytes = self.bytes.saturating_add(step).min(self.most());
        }
    }

    fn shrink(&mut self, to_percent: u64) {
        let bytes = self.bytes as u64 * to_percent / 100;
        self.bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(LEAST_BYTES);
    }
}
