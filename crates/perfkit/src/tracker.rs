//! Which samples of each writer and instance have come.

/// What a sequence number says about the samples before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The highest so far; so many before it are missing.
    Next {
        /// Sequence numbers that were skipped.
        skipped: u32,
    },
    /// One that was missing.
    Late,
    /// One that has come before, or is too old to know.
    Again,
    /// A writer or an instance that does not exist.
    Unknown,
}

/// Sequence numbers have 31 bits and wrap.
const SEQUENCE_BITS: u32 = 31;
const SEQUENCE_MASK: u32 = (1 << SEQUENCE_BITS) - 1;
/// Streams that are few enough for a long memory.
const FEW_STREAMS: usize = 4096;
/// Most streams that are kept: 12 octets each.
const STREAMS_MAX: usize = 1 << 24;

/// Remembers the last sequence numbers of each stream, that is each instance of each writer: 1024 if there
/// are at most 4096 streams, else
/// 64. Memory is taken once, in the beginning.
pub struct Tracker {
    instances: u32,
    writers: u16,
    highest: Vec<u32>,
    /// One bit for each of the last sequence numbers: it has come.
    windows: Vec<u64>,
    words: usize,
}

impl Tracker {
    /// For so many writers and instances; `None` if there are more than 2^24 streams.
    #[must_use]
    pub fn new(writers: u16, instances: u32) -> Option<Self> {
        let streams = usize::from(writers).checked_mul(instances as usize).filter(|it| *it <= STREAMS_MAX)?;
        let words = if streams <= FEW_STREAMS { 16 } else { 1 };
        Some(Self {
            instances,
            writers,
            // As if the one before 0 had come, and all before it.
            highest: vec![SEQUENCE_MASK; streams],
            windows: vec![u64::MAX; streams * words],
            words,
        })
    }

    /// The number of streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.highest.len()
    }

    /// The position of a stream among all; `None` if there is no such writer or instance.
    #[must_use]
    pub fn stream(&self, writer: u16, instance: u32) -> Option<usize> {
        (writer < self.writers && instance < self.instances)
            .then(|| usize::from(writer) * self.instances as usize + instance as usize)
    }

    /// Notes a sample.
    pub fn note(&mut self, writer: u16, instance: u32, sequence: u32) -> Seen {
        let Some(stream) = self.stream(writer, instance) else { return Seen::Unknown };
        let Some(highest) = self.highest.get_mut(stream) else { return Seen::Unknown };
        let Some(window) = self.windows.get_mut(stream * self.words..(stream + 1) * self.words) else {
            return Seen::Unknown;
        };
        // A power of two.
        let bits = (self.words * 64) as u32;
        let bit = sequence & (bits - 1);
        let ahead = ahead_of(*highest, sequence);
        if ahead > 0 {
            let ahead = ahead as u32;
            if ahead > 1 {
                forget(window, *highest, ahead, bits);
            }
            mark(window, bit);
            *highest = sequence & SEQUENCE_MASK;
            return Seen::Next { skipped: ahead - 1 };
        }
        if ahead.unsigned_abs() >= bits || is_marked(window, bit) {
            return Seen::Again;
        }
        mark(window, bit);
        Seen::Late
    }

    /// How far a sequence number is beyond the highest of its stream, negative if before it; `None` without
    /// such a stream.
    #[must_use]
    pub fn ahead(&self, writer: u16, instance: u32, sequence: u32) -> Option<i32> {
        let highest = self.highest.get(self.stream(writer, instance)?)?;
        Some(ahead_of(*highest, sequence))
    }

    /// Begins a stream anew: what was missing before this sequence number is no loss.
    pub fn resume(&mut self, writer: u16, instance: u32, sequence: u32) {
        let Some(stream) = self.stream(writer, instance) else { return };
        if let Some(highest) = self.highest.get_mut(stream) {
            *highest = sequence.wrapping_sub(1) & SEQUENCE_MASK;
        }
        if let Some(window) = self.windows.get_mut(stream * self.words..(stream + 1) * self.words) {
            window.fill(u64::MAX);
        }
    }
}

/// The signed distance between two numbers that wrap at 31 bits.
fn ahead_of(highest: u32, sequence: u32) -> i32 {
    (sequence.wrapping_sub(highest) << (32 - SEQUENCE_BITS)).cast_signed() >> (32 - SEQUENCE_BITS)
}

/// Makes room for the numbers after `highest`.
fn forget(window: &mut [u64], highest: u32, ahead: u32, bits: u32) {
    if ahead >= bits {
        window.fill(0);
        return;
    }
    for step in 1..=ahead {
        let bit = highest.wrapping_add(step) & (bits - 1);
        if let Some(word) = window.get_mut((bit / 64) as usize) {
            *word &= !(1 << (bit % 64));
        }
    }
}

fn mark(window: &mut [u64], bit: u32) {
    if let Some(word) = window.get_mut((bit / 64) as usize) {
        *word |= 1 << (bit % 64);
    }
}

fn is_marked(window: &[u64], bit: u32) -> bool {
    window.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Remembers everything.
    #[derive(Default)]
    struct Naive {
        came: HashSet<u64>,
        next: u64,
    }

    impl Naive {
        fn note(&mut self, sequence: u64) -> Seen {
            if !self.came.insert(sequence) {
                return Seen::Again;
            }
            if sequence < self.next {
                return Seen::Late;
            }
            let skipped = (sequence - self.next) as u32;
            self.next = sequence + 1;
            Seen::Next { skipped }
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_one_that_remembers_everything(
            steps in prop::collection::vec((0_u16..2, 0_u32..3, -60_i64..40), 1..400),
            many in any::<bool>(),
        ) {
            let instances = if many { 5000 } else { 3 };
            let mut tracker = Tracker::new(2, instances).expect("few streams");
            let mut naive: Vec<Naive> = (0..6).map(|_| Naive::default()).collect();
            for (writer, instance, step) in steps {
                let model = &mut naive[usize::from(writer) * 3 + instance as usize];
                let sequence = u64::try_from(model.next as i64 + step).unwrap_or(0);
                // The short window knows the last 64.
                prop_assume!(model.next.saturating_sub(sequence) < 64);
                prop_assert_eq!(tracker.note(writer, instance, sequence as u32), model.note(sequence));
            }
        }
    }

    #[test]
    fn numbers_wrap_at_31_bits() {
        let mut tracker = Tracker::new(1, 1).expect("one stream");
        tracker.resume(0, 0, SEQUENCE_MASK - 1);
        assert_eq!(tracker.note(0, 0, SEQUENCE_MASK - 1), Seen::Next { skipped: 0 });
        assert_eq!(tracker.note(0, 0, 1), Seen::Next { skipped: 2 });
        assert_eq!(tracker.note(0, 0, SEQUENCE_MASK), Seen::Late);
        assert_eq!(tracker.note(0, 0, 0), Seen::Late);
        assert_eq!(tracker.note(0, 0, 0), Seen::Again);
    }

    #[test]
    fn a_writer_or_instance_beyond_the_limits_is_unknown() {
        let mut tracker = Tracker::new(2, 3).expect("few streams");
        assert_eq!(tracker.note(2, 0, 0), Seen::Unknown);
        assert_eq!(tracker.note(0, 3, 0), Seen::Unknown);
        assert_eq!(tracker.note(0, 0, 2), Seen::Next { skipped: 2 });
        assert!(Tracker::new(u16::MAX, u32::MAX).is_none());
    }
}
