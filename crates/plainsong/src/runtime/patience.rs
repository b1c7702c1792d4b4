//! When a thread that receives lets others finish first.
//!
//! Each reader of a crowd answers each batch of a writer. Where they share the cores of a host, an answer that wakes the thread
//! which receives for the writer takes the core from a reader that is in the middle of a batch, for some microseconds' work, and as
//! many times a batch as there are readers. Nothing is lost if it waits until the core is free or the reader's turn is over: the
//! window opens with the last answer. So a thread that receives answers of many, and no samples, asks the scheduler not to be put
//! before others when it is woken. A core that is idle takes it at once all the same. The first sample or fragment ends that.

use plainsong_proto::guid::GuidPrefix;

/// So many that answer are a crowd: eight or more, of which two may count as one.
const CROWD: u32 = 7;
/// It is judged by so many datagrams.
const JUDGED: usize = 256;

/// Who answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    /// One bit for each participant; some share one.
    from: u64,
}

impl Answers {
    pub(super) fn note(&mut self, source: GuidPrefix) {
        let mixed = source.0.iter().fold(0_u64, |mixed, octet| {
            (mixed ^ mixed >> 32 ^ u64::from(*octet)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        self.from |= 1 << (mixed >> 58);
    }

    /// Nobody answered, or one participant.
    pub(super) const fn is_of_one(self) -> bool {
        self.from.count_ones() <= 1
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self { from: self.from | other.from }
    }
}

/// Whether one thread is patient.
#[derive(Debug, Default)]
pub(super) struct Patience {
    is_patient: bool,
    datagrams: usize,
    answers: Answers,
}

impl Patience {
    /// So many datagrams came, with these answers, and perhaps octets of samples. Returns what the thread shall be from now on, when it
    /// is something else.
    #[inline]
    pub(super) fn note(&mut self, datagrams: usize, answers: Answers, has_octets: bool) -> Option<bool> {
        if has_octets {
            (self.datagrams, self.answers) = (0, Answers::default());
            return std::mem::take(&mut self.is_patient).then_some(false);
        }
        self.datagrams += datagrams;
        self.answers = self.answers.with(answers);
        if self.datagrams < JUDGED {
            return None;
        }
        let is_crowd = self.answers.from.count_ones() >= CROWD;
        (self.datagrams, self.answers) = (0, Answers::default());
        (std::mem::replace(&mut self.is_patient, is_crowd) != is_crowd).then_some(is_crowd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(readers: std::ops::Range<u8>) -> Answers {
        let mut answers = Answers::default();
        readers.for_each(|reader| answers.note(GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, reader])));
        answers
    }

    #[test]
    fn answers_of_two_are_not_of_one() {
        assert!(Answers::default().is_of_one() && answers(3..4).with(answers(3..4)).is_of_one());
        assert!(!answers(3..5).is_of_one() && !answers(3..4).with(answers(4..5)).is_of_one());
    }

    #[test]
    fn answers_of_many_make_it_patient_and_those_of_few_do_not() {
        let mut patience = Patience::default();
        for _ in 0..1_000 {
            assert_eq!(patience.note(4, answers(0..4), false), None);
        }
        let told: Vec<_> = (0..1_000).filter_map(|_| patience.note(50, answers(0..50), false)).collect();
        assert_eq!(told, [true], "once");
        let told: Vec<_> = (0..1_000).filter_map(|_| patience.note(4, answers(0..4), false)).collect();
        assert_eq!(told, [false]);
    }

    #[test]
    fn the_first_sample_ends_it() {
        let mut patience = Patience::default();
        assert_eq!(patience.note(JUDGED, answers(0..50), false), Some(true));
        assert_eq!(patience.note(1, Answers::default(), true), Some(false));
        for _ in 0..1_000 {
            assert_eq!(patience.note(10, answers(0..50), false), None);
            assert_eq!(patience.note(1, answers(0..50), true), None, "samples among answers");
        }
    }

    #[test]
    fn ten_that_answer_are_seen_as_a_crowd_whatever_they_are_called() {
        for host in 0..100 {
            let mut answers = Answers::default();
            for reader in 0..10_u8 {
                answers.note(GuidPrefix([1, 7, host, 4, 99 - host, reader, 0, reader, 0, 0, 0, 0]));
            }
            assert!(answers.from.count_ones() >= CROWD, "{host}: {answers:?}");
        }
    }
}
