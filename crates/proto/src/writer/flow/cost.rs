//! What it costs to send to the readers of this host, one way and the other: measured now and then, a few sends each way, one
//! after the other, for datagrams of about one length. Multicast is chosen where it is clearly cheaper. Until that is known, many
//! processes are taken to make it so: on a busy host it takes seconds until each of their writers has sent enough to compare.

use crate::time::Duration;
use crate::tuning::writer::{
    COMPARISON_AFTER_CHANGE, COMPARISON_GROWTH, COMPARISON_GROWTH_MAX, COMPARISON_WHERE_LIKELY,
    COST_LENGTH_BITS_MIN, COST_LENGTHS, COST_SAMPLES_MAX, MULTICAST_KEPT_EIGHTHS, MULTICAST_LIKELY_PROCESSES,
    MULTICAST_TAKEN_EIGHTHS,
};

/// When unicast and multicast are compared, in calls of a writer that send something.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonPace {
    /// After so many for the first time.
    pub first_after: u32,
    /// So many are measured each way, 12 at most.
    pub measured: usize,
}

impl Default for ComparisonPace {
    fn default() -> Self {
        Self { first_after: 8, measured: 4 }
    }
}

/// What handing over a datagram for all readers of this host costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendCosts {
    /// Datagrams of about so many octets were measured.
    pub datagram_bytes: usize,
    /// By unicast, a copy for each process.
    pub unicast: Duration,
    /// By the group.
    pub multicast: Duration,
}

impl std::fmt::Display for SendCosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [unicast, multicast] = [self.unicast, self.multicast].map(|cost| cost.0 as f64 / 1_000.0);
        let bytes = self.datagram_bytes;
        write!(
            f,
            "{unicast:.1} µs by unicast, {multicast:.1} µs by multicast for a datagram of about {bytes} octets"
        )
    }
}

/// What is known for datagrams of about one length.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Nanoseconds for a datagram, by unicast and by multicast; 0: not measured.
    costs: [u32; 2],
    /// The way that is kept.
    multicast: bool,
    /// Sends since the last comparison, and how many there are to be before the next.
    sends: u32,
    pause: u32,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Rest,
    /// The way that is kept is measured.
    Kept,
    /// The other one, after the kept one took so many nanoseconds for a datagram.
    Other { kept: u32 },
}

/// Compares unicast and multicast.
#[derive(Debug, Default)]
pub(in crate::writer) struct Comparison {
    lengths: [Known; COST_LENGTHS],
    /// Which of them the usual datagram has.
    length: usize,
    phase: Phase,
    settling: usize,
    measured: [u32; COST_SAMPLES_MAX],
    count: usize,
}

impl Comparison {
    /// The usual length of datagrams; not another one with each of them.
    pub(in crate::writer) fn set_length(&mut self, bytes: usize) {
        let least = 1 << COST_LENGTH_BITS_MIN << self.length;
        if bytes < least / 4 * 3 || bytes > least / 4 * 10 {
            let bits = bytes.max(1).ilog2().saturating_sub(COST_LENGTH_BITS_MIN);
            let length = (bits as usize).min(COST_LENGTHS - 1);
            if length != self.length {
                self.length = length;
                self.rest();
            }
        }
    }

    fn known(&self) -> Known {
        self.lengths.get(self.length).copied().unwrap_or_default()
    }

    fn known_mut(&mut self) -> Option<&mut Known> {
        self.lengths.get_mut(self.length)
    }

    /// Whether multicast is kept, as far as is known.
    pub(in crate::writer) fn keeps_multicast(&self) -> bool {
        self.known().multicast
    }

    /// Whether to send by multicast now.
    pub(in crate::writer) fn sends_by_multicast(&self) -> bool {
        self.known().multicast != matches!(self.phase, Phase::Other { .. })
    }

    /// What was measured, if both ways were.
    pub(in crate::writer) fn costs(&self) -> Option<SendCosts> {
        let costs = self.known().costs;
        let [unicast, multicast] = costs.map(|cost| Duration(cost.into()));
        let datagram_bytes = 1 << COST_LENGTH_BITS_MIN << self.length;
        (!costs.contains(&0)).then_some(SendCosts { datagram_bytes, unicast, multicast })
    }

    /// A comparison under way ends without a result.
    pub(in crate::writer) fn rest(&mut self) {
        self.phase = Phase::Rest;
        if let Some(known) = self.known_mut() {
            known.sends = 0;
        }
    }

    /// Whether multicast is likely to cost less for so many processes, however short datagrams are.
    pub(in crate::writer) const fn is_likely(processes: usize) -> bool {
        processes >= MULTICAST_LIKELY_PROCESSES
    }

    /// What was measured may not hold any more, with so many processes: it is soon measured again. What was not is guessed, and
    /// measured later if it seems likely.
    pub(in crate::writer) fn doubt(&mut self, processes: usize, pace: ComparisonPace) {
        self.phase = Phase::Rest;
        let is_likely = Self::is_likely(processes);
        for known in &mut self.lengths {
            (known.sends, known.pause) = (0, 0);
            if known.costs == [0; 2] {
                known.multicast = is_likely;
                known.pause =
                    if is_likely { pace.first_after.saturating_mul(COMPARISON_WHERE_LIKELY) } else { 0 };
            }
        }
    }

    /// Whether a send by this way is to be measured.
    pub(in crate::writer) fn wants(&self, multicast: bool) -> bool {
        !matches!(self.phase, Phase::Rest) && self.settling == 0 && multicast == self.sends_by_multicast()
    }

    /// Something was sent: how long it took for each datagram, if it was measured.
    pub(in crate::writer) fn sent(&mut self, multicast: bool, took: Option<Duration>, pace: ComparisonPace) {
        match took.filter(|_| self.wants(multicast)) {
            Some(took) => self.note(took, pace),
            None if matches!(self.phase, Phase::Rest) => self.count_down(pace),
            None if multicast == self.sends_by_multicast() => self.settling = self.settling.saturating_sub(1),
            None => {}
        }
    }

    fn count_down(&mut self, pace: ComparisonPace) {
        let Some(known) = self.known_mut() else { return };
        known.sends = known.sends.saturating_add(1);
        if known.sends >= known.pause.max(pace.first_after) {
            known.sends = 0;
            (self.phase, self.count) = (Phase::Kept, 0);
        }
    }

    fn note(&mut self, took: Duration, pace: ComparisonPace) {
        if let Some(place) = self.measured.get_mut(self.count) {
            *place = u32::try_from(took.0).unwrap_or(u32::MAX).max(1);
        }
        self.count += 1;
        if self.count < pace.measured.min(COST_SAMPLES_MAX) {
            return;
        }
        let count = std::mem::take(&mut self.count);
        let Some(measured) = self.measured.get_mut(..count) else { return };
        // Others were interrupted by receivers that woke up, or by anybody else.
        let (_, usual, _) = measured.select_nth_unstable(count / 4);
        let usual = *usual;
        match self.phase {
            Phase::Other { kept } => self.conclude(kept, usual, pace),
            _ => (self.phase, self.settling) = (Phase::Other { kept: usual }, 1 + count / 3),
        }
    }

    fn conclude(&mut self, kept: u32, other: u32, pace: ComparisonPace) {
        self.phase = Phase::Rest;
        let Some(known) = self.known_mut() else { return };
        let first_after = pace.first_after.max(1);
        known.costs = if known.multicast { [other, kept] } else { [kept, other] };
        let [unicast, multicast] = known.costs.map(u64::from);
        let eighths = if known.multicast { MULTICAST_KEPT_EIGHTHS } else { MULTICAST_TAKEN_EIGHTHS };
        let is_cheaper = multicast * 8 <= unicast * eighths;
        let changes = is_cheaper != known.multicast;
        known.multicast = is_cheaper;
        known.pause = if changes {
            first_after.saturating_mul(COMPARISON_AFTER_CHANGE)
        } else {
            let most = first_after.saturating_mul(COMPARISON_GROWTH_MAX);
            known.pause.max(first_after).saturating_mul(COMPARISON_GROWTH).min(most)
        };
    }
}
