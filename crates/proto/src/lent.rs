//! Octets of a long sample that the application lends while it writes: its datagrams take them where they
//! are, and the history gets its copy when they have left. So readers do not wait for that copy, which takes
//! a fifth of the time that sending does.
//!
//! Only octets of more than 256 KiB in one sequence are lent, after a pause, to readers of this host alone.
//! The payload has a gap until the datagrams have left, and is filled under the same lock, before anybody
//! else can see it. So nothing between the two may look into a payload or copy it; what would (filters, short
//! fragments for other hosts) makes the writer copy first (`Writer::borrows`).

use std::cell::Cell;

use crate::payload::Payload;

/// Samples with fewer octets of this kind are copied first: readers of this host share datagrams among them.
pub const LENT_BYTES_LEAST: usize = crate::tuning::memory::BORROWED_BYTES_OVER + 1;

/// A part that a payload has room for but does not hold yet, and who has it.
#[derive(Debug)]
pub struct Lent<'a> {
    octets: &'a [u8],
    /// Where it belongs: behind so many octets of its payload, and the address of that place. The payload
    /// stays there.
    at: usize,
    address: usize,
    is_copied: Cell<bool>,
}

#[cfg(debug_assertions)]
thread_local! {
    static SENT: Cell<u64> = const { Cell::new(0) };
}

/// Samples of which this thread sent the octets before they were copied: debug builds count them for a test.
#[cfg(debug_assertions)]
#[doc(hidden)]
#[must_use]
pub fn sent_before_copied() -> u64 {
    SENT.get()
}

impl<'a> Lent<'a> {
    /// `octets` belong behind the first `at` of the payload.
    #[must_use]
    pub fn new(payload: &Payload, at: usize, octets: &'a [u8]) -> Self {
        let address = payload.as_slice().as_ptr().addr() + at;
        Self { octets, at, address, is_copied: Cell::new(false) }
    }

    /// What `slice` is to be sent as: octets before those that are lent, of those, and behind them. Any of
    /// them may be empty.
    #[must_use]
    pub fn show<'s>(&self, slice: &'s [u8]) -> [&'s [u8]; 3]
    where
        'a: 's,
    {
        let begin = slice.as_ptr().addr();
        let end = begin + slice.len();
        let (start, stop) =
            (self.address.clamp(begin, end), (self.address + self.octets.len()).clamp(begin, end));
        if self.is_copied.get() || start == stop {
            return [slice, &[], &[]];
        }
        #[cfg(debug_assertions)]
        if start == self.address {
            SENT.set(SENT.get() + 1);
        }
        let lent = self.octets.get(start - self.address..stop - self.address);
        [
            slice.get(..start - begin).unwrap_or_default(),
            lent.unwrap_or_default(),
            slice.get(stop - begin..).unwrap_or_default(),
        ]
    }

    /// Copies the octets to where they belong, unless they are there. Other users of the payload keep what
    /// they see.
    pub fn fill(&self, payload: &mut Payload) {
        if self.is_copied.get() {
            return;
        }
        match payload.bytes_mut().and_then(|bytes| bytes.get_mut(self.at..self.at + self.octets.len())) {
            Some(place) => crate::copying::copy(place, self.octets),
            None => *payload = Payload::from_vec(self.show(payload.as_slice()).concat()),
        }
        self.is_copied.set(true);
    }

    /// Whether it is of this payload.
    pub(crate) fn is_of(&self, payload: &Payload) -> bool {
        payload.len() >= self.at + self.octets.len()
            && payload.as_slice().as_ptr().addr() + self.at == self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload of 0s, with room for three octets behind the first two.
    fn payload() -> Payload {
        Payload::from_vec(vec![0; 10])
    }

    #[test]
    fn what_is_lent_is_shown_where_it_belongs() {
        let (payload, octets) = (payload(), [7, 8, 9]);
        let lent = Lent::new(&payload, 2, &octets);
        let whole = [0, 0, 7, 8, 9, 0, 0, 0, 0, 0];
        for start in 0..=10 {
            for end in start..=10 {
                let shown = lent.show(&payload.as_slice()[start..end]);
                assert_eq!(shown.concat(), whole[start..end], "{start}..{end}");
            }
        }
        let elsewhere = [1; 10];
        assert_eq!(lent.show(&elsewhere), [&elsewhere[..], &[], &[]]);
    }

    #[test]
    fn it_is_copied_once_and_others_keep_what_they_see() {
        let octets = [7, 8, 9];
        let mut payload = payload();
        let lent = Lent::new(&payload, 2, &octets);
        let address = payload.as_slice().as_ptr();
        lent.fill(&mut payload);
        assert_eq!(payload.as_slice(), [0, 0, 7, 8, 9, 0, 0, 0, 0, 0]);
        assert_eq!(payload.as_slice().as_ptr(), address);
        assert_eq!(lent.show(&payload.as_slice()[1..4]), [&payload.as_slice()[1..4], &[], &[]]);

        let mut payload = self::payload();
        let other = payload.clone();
        let lent = Lent::new(&payload, 2, &octets);
        assert!(lent.is_of(&other));
        lent.fill(&mut payload);
        assert_eq!(
            (payload.as_slice(), other.as_slice()),
            (&[0, 0, 7, 8, 9, 0, 0, 0, 0, 0][..], &[0; 10][..])
        );
        assert!(!lent.is_of(&payload) && !lent.is_of(&Payload::empty()));
    }
}
