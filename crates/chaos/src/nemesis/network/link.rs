//! What a link does to frames in one direction.

use std::time::Duration;

use crate::clock::ns;
use crate::random::Random;

/// A frame that is held back arrives so much later, in milliseconds: those after it overtake it.
const HELD_BACK_MS: [u64; 2] = [1, 10];
/// So long a frame may wait for those before it, where the rate is limited; then it is dropped.
const QUEUE: Duration = Duration::from_millis(50);
/// Of an Ethernet frame, before its packet.
const HEADER_BYTES: usize = 14;

/// What happens to frames in one direction. By default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    /// Nothing passes.
    pub(crate) cut: bool,
    pub(crate) loss_permille: u64,
    pub(crate) duplicate_permille: u64,
    /// So many are overtaken by those after them.
    pub(crate) reorder_permille: u64,
    pub(crate) delay: Duration,
    /// Up to so much more, at random; order is kept.
    pub(crate) jitter: Duration,
    pub(crate) bits_per_second: Option<u64>,
    /// Longer packets are dropped.
    pub(crate) mtu_bytes: Option<usize>,
    /// Frames to more than one destination are dropped.
    pub(crate) drops_multicast: bool,
}

/// How many frames met with what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) cut: u64,
    pub(crate) lost: u64,
    pub(crate) too_long: u64,
    pub(crate) multicast: u64,
    pub(crate) queue_full: u64,
    pub(crate) duplicated: u64,
    pub(crate) held_back: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.cut += other.cut;
        self.lost += other.lost;
        self.too_long += other.too_long;
        self.multicast += other.multicast;
        self.queue_full += other.queue_full;
        self.duplicated += other.duplicated;
        self.held_back += other.held_back;
    }
}

/// One direction between two ports. What it draws follows from its seed and the frames before.
pub(crate) struct Link {
    random: Random,
    pub(crate) conditions: Conditions,
    pub(crate) counts: Counts,
    /// When the frames before have been sent at the limited rate.
    sent_ns: u64,
    /// When the last of those that keep their order arrives.
    arrives_ns: u64,
}

impl Link {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            conditions: Conditions::default(),
            counts: Counts::default(),
            sent_ns: 0,
            arrives_ns: 0,
        }
    }

    /// When a frame that is sent now arrives, once, twice or never.
    pub(crate) fn send(&mut self, now_ns: u64, frame: &[u8]) -> [Option<u64>; 2] {
        if !self.admits(frame) {
            return [None; 2];
        }
        let is_lost = self.random.permille(self.conditions.loss_permille);
        let is_double = self.random.permille(self.conditions.duplicate_permille);
        if is_lost {
            self.counts.lost += 1;
            return [None; 2];
        }
        let first = self.arrival(now_ns, frame.len());
        let second = if is_double { self.arrival(now_ns, frame.len()) } else { None };
        self.counts.duplicated += u64::from(second.is_some());
        [first, second]
    }

    fn admits(&mut self, frame: &[u8]) -> bool {
        let conditions = &self.conditions;
        let counts = &mut self.counts;
        let is_too_long = |mtu| frame.len() > mtu + HEADER_BYTES;
        let refused = if conditions.cut {
            &mut counts.cut
        } else if conditions.mtu_bytes.is_some_and(is_too_long) {
            &mut counts.too_long
        } else if conditions.drops_multicast && is_multicast(frame) {
            &mut counts.multicast
        } else {
            return true;
        };
        *refused += 1;
        false
    }

    fn arrival(&mut self, now_ns: u64, bytes: usize) -> Option<u64> {
        let Conditions { delay, jitter, bits_per_second, reorder_permille, .. } = self.conditions;
        let mut from_ns = now_ns;
        if let Some(rate) = bits_per_second {
            let begin_ns = self.sent_ns.max(now_ns);
            if begin_ns - now_ns > ns(QUEUE) {
                self.counts.queue_full += 1;
                return None;
            }
            self.sent_ns = begin_ns + bytes as u64 * 8 * 1_000_000_000 / rate.max(1);
            from_ns = self.sent_ns;
        }
        self.counts.passed += 1;
        let more_ns = if jitter.is_zero() { 0 } else { self.random.below(ns(jitter)) };
        let at_ns = (from_ns + ns(delay) + more_ns).max(self.arrives_ns);
        if self.random.permille(reorder_permille) {
            self.counts.held_back += 1;
            let [low, high] = HELD_BACK_MS.map(|it| it * 1_000_000);
            return Some(at_ns + low + self.random.below(high - low));
        }
        self.arrives_ns = at_ns;
        Some(at_ns)
    }
}

/// Whether a frame is for more than one destination.
pub(crate) fn is_multicast(frame: &[u8]) -> bool {
    frame.first().is_some_and(|octet| octet & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const FRAMES: u64 = 10_000;

    /// When frames of 1,000 octets arrive, of which one is sent each millisecond.
    fn arrivals(conditions: Conditions) -> (Vec<[Option<u64>; 2]>, Counts) {
        let mut link = Link::new(7);
        link.conditions = conditions;
        let arrivals = (0..FRAMES).map(|number| link.send(number * MS, &[0; 1_000])).collect();
        (arrivals, link.counts)
    }

    fn is_in_order(arrivals: &[[Option<u64>; 2]]) -> bool {
        arrivals.iter().flatten().flatten().is_sorted()
    }

    #[test]
    fn without_conditions_all_arrives_at_once() {
        let (arrivals, counts) = arrivals(Conditions::default());
        assert!((0..).zip(&arrivals).all(|(number, at)| *at == [Some(number * MS), None]));
        assert_eq!(counts, Counts { passed: FRAMES, ..Counts::default() });
    }

    #[test]
    fn loss_and_duplication_are_as_frequent_as_asked_for() {
        for permille in [10, 50, 200, 500] {
            let (_, counts) = arrivals(Conditions { loss_permille: permille, ..Conditions::default() });
            let expected = FRAMES * permille / 1_000;
            assert!(counts.lost.abs_diff(expected) < 150, "{permille}: {counts:?}");
            assert_eq!(counts.passed + counts.lost, FRAMES);
            let (_, counts) = arrivals(Conditions { duplicate_permille: permille, ..Conditions::default() });
            assert!(counts.duplicated.abs_diff(expected) < 150, "{permille}: {counts:?}");
            assert_eq!(counts.passed, FRAMES + counts.duplicated);
        }
    }

    #[test]
    fn delay_and_jitter_keep_the_order_and_reordering_does_not() {
        let delay = Duration::from_millis(20);
        let jitter = Duration::from_millis(10);
        let (jittered, _) = arrivals(Conditions { delay, jitter, ..Conditions::default() });
        assert!(is_in_order(&jittered));
        let late = |(number, at): (u64, &[Option<u64>; 2])| at[0].map(|at| at - number * MS);
        let delays: Vec<u64> = (0..).zip(&jittered).filter_map(late).collect();
        assert!(delays.iter().all(|it| (20 * MS..30 * MS).contains(it)));
        assert!(delays.iter().any(|it| *it < 22 * MS) && delays.iter().any(|it| *it > 28 * MS));
        let (reordered, counts) = arrivals(Conditions { reorder_permille: 250, ..Conditions::default() });
        assert!(!is_in_order(&reordered));
        assert!(counts.held_back.abs_diff(FRAMES / 4) < 150, "{counts:?}");
        assert_eq!(counts.passed, FRAMES);
    }

    #[test]
    fn frames_stay_in_order_when_the_delay_ends() {
        let mut link = Link::new(7);
        link.conditions.delay = Duration::from_millis(50);
        let [first, _] = link.send(0, &[0; 100]);
        link.conditions = Conditions::default();
        let [second, _] = link.send(MS, &[0; 100]);
        assert_eq!((first, second), (Some(50 * MS), Some(50 * MS)));
    }

    #[test]
    fn a_limited_rate_passes_as_many_octets_as_it_allows() {
        // Half of 8 Mbit a second.
        let (arrivals, counts) =
            arrivals(Conditions { bits_per_second: Some(4_000_000), ..Conditions::default() });
        assert!(is_in_order(&arrivals));
        assert!(counts.passed.abs_diff(FRAMES / 2) < 50, "{counts:?}");
        assert_eq!(counts.passed + counts.queue_full, FRAMES);
        let last_ns = arrivals.iter().flatten().flatten().max().copied();
        assert!(last_ns.is_some_and(|at_ns| at_ns < FRAMES * MS + 2 * ns(QUEUE)), "{last_ns:?}");
    }

    #[test]
    fn what_a_link_does_not_admit_is_counted_by_its_reason() {
        let mut link = Link::new(7);
        let (short, long, multicast) = ([0; 100], [0; 1_015], [1; 100]);
        link.conditions =
            Conditions { mtu_bytes: Some(1_000), drops_multicast: true, ..Conditions::default() };
        assert_eq!(link.send(5, &short), [Some(5), None]);
        assert_eq!(link.send(5, &long[1..]), [Some(5), None]);
        assert_eq!(link.send(5, &long), [None; 2]);
        assert_eq!(link.send(5, &multicast), [None; 2]);
        link.conditions.cut = true;
        assert_eq!(link.send(5, &short), [None; 2]);
        let expected = Counts { passed: 2, too_long: 1, multicast: 1, cut: 1, ..Counts::default() };
        assert_eq!(link.counts, expected);
    }

    #[test]
    fn one_seed_draws_the_same() {
        let conditions = Conditions {
            loss_permille: 50,
            duplicate_permille: 50,
            reorder_permille: 250,
            jitter: Duration::from_millis(5),
            ..Conditions::default()
        };
        assert_eq!(arrivals(conditions), arrivals(conditions));
    }
}
