//! When a thread that receives is of SCHED_BATCH: when it receives acknowledgements of many readers, and no
//! samples.
//!
//! Each of many readers acknowledges each batch of a writer. Where they share the cores of a host, an
//! acknowledgement that wakes the thread which receives for the writer preempts a reader that is in the
//! middle of a batch, for some microseconds' work, and as many times a batch as there are readers. Nothing is
//! lost if it waits until the core is free or the reader's time slice is over: the window opens with the last
//! acknowledgement. A core that is idle takes such a thread at once all the same. The first sample or
//! fragment makes it an ordinary thread again.
//!
//! The price: on a host whose cores are all busy such an acknowledgement waits for the end of a time slice,
//! some milliseconds at most.

use plainsong_proto::guid::GuidPrefix;

/// So many participants are many: eight or more, of which two may count as one.
const MANY: u32 = 7;
/// The policy is chosen anew after so many datagrams.
const PERIOD: usize = 256;

/// Who acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::runtime) struct AckSources {
    /// One bit for each participant; some share one.
    from: u64,
}

impl AckSources {
    pub(in crate::runtime) const NONE: Self = Self { from: 0 };

    pub(in crate::runtime) fn note(&mut self, source: GuidPrefix) {
        let mixed = source.0.iter().fold(0_u64, |mixed, octet| {
            (mixed ^ mixed >> 32 ^ u64::from(*octet)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        self.from |= 1 << (mixed >> 58);
    }

    /// Nobody acknowledged, or one participant.
    pub(in crate::runtime) const fn is_of_one(self) -> bool {
        self.from.count_ones() <= 1
    }

    pub(in crate::runtime) const fn with(self, other: Self) -> Self {
        Self { from: self.from | other.from }
    }
}

/// The scheduling policy of one thread.
#[derive(Debug, Default)]
pub(in crate::runtime) struct SchedPolicy {
    is_batch: bool,
    datagrams: usize,
    acks: AckSources,
}

impl SchedPolicy {
    /// So many datagrams came, with these acknowledgements, and perhaps octets of samples. Returns what the
    /// thread shall be from now on, when it is something else.
    #[inline]
    pub(in crate::runtime) fn note(
        &mut self,
        datagrams: usize,
        acks: AckSources,
        has_octets: bool,
    ) -> Option<bool> {
        if has_octets {
            (self.datagrams, self.acks) = (0, AckSources::default());
            return std::mem::take(&mut self.is_batch).then_some(false);
        }
        self.datagrams += datagrams;
        self.acks = self.acks.with(acks);
        if self.datagrams < PERIOD {
            return None;
        }
        let are_many = self.acks.from.count_ones() >= MANY;
        (self.datagrams, self.acks) = (0, AckSources::default());
        (std::mem::replace(&mut self.is_batch, are_many) != are_many).then_some(are_many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acks(readers: std::ops::Range<u8>) -> AckSources {
        let mut acks = AckSources::default();
        readers.for_each(|reader| acks.note(GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, reader])));
        acks
    }

    #[test]
    fn acknowledgements_of_two_are_not_of_one() {
        assert!(AckSources::default().is_of_one() && acks(3..4).with(acks(3..4)).is_of_one());
        assert!(!acks(3..5).is_of_one() && !acks(3..4).with(acks(4..5)).is_of_one());
    }

    #[test]
    fn acknowledgements_of_many_make_it_batch_and_those_of_few_do_not() {
        let mut sched_policy = SchedPolicy::default();
        for _ in 0..1_000 {
            assert_eq!(sched_policy.note(4, acks(0..4), false), None);
        }
        let told: Vec<_> = (0..1_000).filter_map(|_| sched_policy.note(50, acks(0..50), false)).collect();
        assert_eq!(told, [true], "once");
        let told: Vec<_> = (0..1_000).filter_map(|_| sched_policy.note(4, acks(0..4), false)).collect();
        assert_eq!(told, [false]);
    }

    #[test]
    fn the_first_sample_makes_it_ordinary() {
        let mut sched_policy = SchedPolicy::default();
        assert_eq!(sched_policy.note(PERIOD, acks(0..50), false), Some(true));
        assert_eq!(sched_policy.note(1, AckSources::default(), true), Some(false));
        for _ in 0..1_000 {
            assert_eq!(sched_policy.note(10, acks(0..50), false), None);
            assert_eq!(sched_policy.note(1, acks(0..50), true), None, "samples among acks");
        }
    }

    #[test]
    fn ten_participants_are_seen_as_many_whatever_they_are_called() {
        for host in 0..100 {
            let mut acks = AckSources::default();
            for reader in 0..10_u8 {
                acks.note(GuidPrefix([1, 7, host, 4, 99 - host, reader, 0, reader, 0, 0, 0, 0]));
            }
            assert!(acks.from.count_ones() >= MANY, "{host}: {acks:?}");
        }
    }
}
