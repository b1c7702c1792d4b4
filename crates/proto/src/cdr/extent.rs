//! [`Extent`]: the largest size of a value, computed at compile time.
#![allow(clippy::indexing_slicing, reason = "runs in the compiler only, on fixed arrays; get is not const")]

/// The most octets a value takes in XCDR2 without headers, for each offset modulo 4 it may start at.
///
/// Sizes depend on the start because of padding. The end of a value never moves down when its start moves
/// up, so taking every part at its largest gives the largest whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent([Option<usize>; 4]);

impl Extent {
    /// No limit.
    pub const UNBOUNDED: Self = Self([None; 4]);
    /// Nothing at all.
    pub const EMPTY: Self = Self([Some(0); 4]);

    /// A primitive of `bytes` octets.
    pub const fn primitive(bytes: usize) -> Self {
        let alignment = if bytes < 4 { bytes } else { 4 };
        let mut sizes = [None; 4];
        let mut start = 0;
        while start < 4 {
            sizes[start] = Some((alignment - start % alignment) % alignment + bytes);
            start += 1;
        }
        Self(sizes)
    }

    /// A length followed by `bytes` octets.
    pub const fn counted_octets(bytes: usize) -> Self {
        Self::primitive(4).then(Self::primitive(1).times(bytes))
    }

    /// This, then `next`.
    pub const fn then(self, next: Self) -> Self {
        let mut sizes = [None; 4];
        let mut start = 0;
        while start < 4 {
            if let Some(first) = self.0[start]
                && let Some(second) = next.0[(start + first) % 4]
                && first + second <= LARGEST
            {
                sizes[start] = Some(first + second);
            }
            start += 1;
        }
        Self(sizes)
    }

    /// This `count` times.
    pub const fn times(self, count: usize) -> Self {
        let mut whole = Self::EMPTY;
        let mut done = 0;
        while done < count && whole.0[0].is_some() {
            whole = whole.then(self);
            done += 1;
            if done > LARGEST {
                return Self::UNBOUNDED;
            }
        }
        whole
    }

    /// The larger of this and `other`, for union members.
    pub const fn or(self, other: Self) -> Self {
        let mut sizes = [None; 4];
        let mut start = 0;
        while start < 4 {
            if let (Some(one), Some(two)) = (self.0[start], other.0[start]) {
                sizes[start] = Some(if one > two { one } else { two });
            }
            start += 1;
        }
        Self(sizes)
    }

    /// The most octets from offset 0; `None` without limit.
    pub const fn bytes_max(self) -> Option<usize> {
        self.0[0]
    }
}

/// Beyond this a size is as good as unbounded: only the comparison with 16 matters. Keeps the compiler
/// from counting up to the bound of a huge sequence.
const LARGEST: usize = 1 << 12;
