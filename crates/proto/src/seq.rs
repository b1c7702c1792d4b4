//! Sequence numbers, and the bounded sets that acknowledge them (RTPS 2.5 §8.3.5, §9.4.2).

use crate::malformed::Malformed;

/// The number of a change in its writer's history; the first is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub i64);

/// The number of a fragment in its sample; the first is 1.
pub type FragmentNumber = u32;

impl SequenceNumber {
    /// `SEQUENCENUMBER_UNKNOWN`, {-1, 0} on the wire.
    pub const UNKNOWN: Self = Self(-1 << 32);
    /// The first number a writer uses.
    pub const FIRST: Self = Self(1);

    /// From the high and low words as they travel.
    #[must_use]
    pub const fn from_wire(high: i32, low: u32) -> Self {
        Self(((high as i64) << 32) | low as i64)
    }

    /// The high and low words as they travel.
    #[must_use]
    pub const fn to_wire(self) -> (i32, u32) {
        ((self.0 >> 32) as i32, self.0 as u32)
    }

    /// The next number, saturating.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The previous number, saturating.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Moved by `offset`, saturating.
    #[must_use]
    pub const fn plus(self, offset: i64) -> Self {
        Self(self.0.saturating_add(offset))
    }
}

/// Longest bitmap of a sequence-number or fragment-number set, in bits.
pub const SET_BITS_MAX: u32 = 256;

/// Up to 256 numbers from `base` on, bit 0 first (the most significant bit of the first word).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberSet<N> {
    base: N,
    bits: u32,
    words: [u32; 8],
}

/// A set of sequence numbers: ACKNACK and GAP.
pub type SequenceSet = NumberSet<SequenceNumber>;
/// A set of fragment numbers: NACK_FRAG.
pub type FragmentSet = NumberSet<FragmentNumber>;

/// What a [`NumberSet`] counts in.
pub trait Number: Copy + Ord {
    /// `self - base`, when within the reach of a bitmap.
    fn offset_from(self, base: Self) -> Option<u32>;
    /// `self + offset`, saturating.
    fn advanced(self, offset: u32) -> Self;
}

impl Number for SequenceNumber {
    fn offset_from(self, base: Self) -> Option<u32> {
        u32::try_from(self.0.checked_sub(base.0)?).ok()
    }

    fn advanced(self, offset: u32) -> Self {
        self.plus(offset.into())
    }
}

impl Number for FragmentNumber {
    fn offset_from(self, base: Self) -> Option<u32> {
        self.checked_sub(base)
    }

    fn advanced(self, offset: u32) -> Self {
        self.saturating_add(offset)
    }
}

impl<N: Number> NumberSet<N> {
    /// A set without members: of an ACKNACK, "everything below `base` has arrived".
    #[must_use]
    pub const fn empty(base: N) -> Self {
        Self { base, bits: 0, words: [0; 8] }
    }

    /// From the wire: `words` beyond what `bits` needs are refused, as are more than 256 bits.
    ///
    /// # Errors
    /// [`Malformed::LengthOutOfRange`] when `bits` and the number of words disagree or exceed 256.
    pub fn from_wire(base: N, bits: u32, words: &[u32]) -> Result<Self, Malformed> {
        let needed = bits.div_ceil(32) as usize;
        let mut set = Self { base, bits, words: [0; 8] };
        if bits > SET_BITS_MAX || words.len() != needed {
            return Err(Malformed::LengthOutOfRange);
        }
        for (target, word) in set.words.iter_mut().zip(words) {
            *target = *word;
        }
        // Bits past the count carry no meaning; clear them so that equal sets compare equal.
        if let (Some(last), used @ 1..) = (set.words.get_mut(needed.wrapping_sub(1)), bits % 32) {
            *last &= u32::MAX << (32 - used);
        }
        Ok(set)
    }

    /// First number the bitmap can name.
    #[must_use]
    pub const fn base(&self) -> N {
        self.base
    }

    /// Length of the bitmap in bits.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// The words the bitmap needs on the wire.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        self.words.get(..self.bits.div_ceil(32) as usize).unwrap_or(&self.words)
    }

    /// Whether no number is a member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Adds `number`; false when it is out of the bitmap's reach.
    pub fn insert(&mut self, number: N) -> bool {
        let Some(offset) = number.offset_from(self.base).filter(|offset| *offset < SET_BITS_MAX) else {
            return false;
        };
        if let Some(word) = self.words.get_mut((offset / 32) as usize) {
            *word |= 1 << (31 - offset % 32);
        }
        self.bits = self.bits.max(offset + 1);
        true
    }

    /// Whether `number` is a member.
    #[must_use]
    pub fn contains(&self, number: N) -> bool {
        number
            .offset_from(self.base)
            .and_then(|offset| Some(self.words.get((offset / 32) as usize)? & (1 << (31 - offset % 32)) != 0))
            .unwrap_or(false)
    }

    /// Members in ascending order: at most 256 steps.
    pub fn iter(&self) -> impl Iterator<Item = N> + '_ {
        (0..self.bits)
            .filter(|offset| {
                self.words
                    .get((offset / 32) as usize)
                    .is_some_and(|word| word & (1 << (31 - offset % 32)) != 0)
            })
            .map(|offset| self.base.advanced(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fact_3_unknown_is_minus_one_and_zero() {
        assert_eq!(SequenceNumber::UNKNOWN.to_wire(), (-1, 0));
        assert_eq!(SequenceNumber::from_wire(-1, 0), SequenceNumber::UNKNOWN);
        let number = SequenceNumber(0x1_8000_0002);
        assert_eq!(number.to_wire(), (1, 0x8000_0002));
        assert_eq!(SequenceNumber::from_wire(1, 0x8000_0002), number);
    }

    #[test]
    fn fact_4_bit_zero_is_the_top_bit_of_the_first_word() {
        let mut set = SequenceSet::empty(SequenceNumber(10));
        assert!(set.words().is_empty());
        assert!(set.insert(SequenceNumber(10)));
        assert_eq!((set.bits(), set.words()), (1, &[0x8000_0000][..]));
        assert!(set.insert(SequenceNumber(42)));
        assert_eq!((set.bits(), set.words()), (33, &[0x8000_0000, 0x8000_0000][..]));
        assert!(!set.insert(SequenceNumber(9)));
        assert!(!set.insert(SequenceNumber(10 + 256)));
        assert_eq!(set.iter().collect::<Vec<_>>(), [SequenceNumber(10), SequenceNumber(42)]);
    }

    #[test]
    fn r13_a_set_never_spans_more_than_256_numbers() {
        assert!(SequenceSet::from_wire(SequenceNumber(1), 257, &[0; 9]).is_err());
        assert!(SequenceSet::from_wire(SequenceNumber(1), 64, &[0; 1]).is_err());
        let set = SequenceSet::from_wire(SequenceNumber(1), 4, &[u32::MAX]).unwrap();
        assert_eq!(set.iter().count(), 4);
        assert!(!set.contains(SequenceNumber(5)));
    }
}
