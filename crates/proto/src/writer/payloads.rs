//! The payloads of the changes in a history. Short ones are a ring of octets in the order of writing, so that a sample
//! of 30 octets takes 30 and no pool or count of references; longer ones are referenced. What is short depends: changes that
//! leave in the order of writing leave few holes, so that longer ones may be in the ring, too.

use std::collections::VecDeque;

use crate::payload::{COPIED_BYTES_MAX, NewPayload, Payload, PayloadView, SHORT_BYTES_MAX};

/// Where a payload is. Packed, since it is one of many fields in a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(1))]
pub(super) struct Place {
    at: u32,
    bytes: u16,
}

/// Where a payload is, to look at.
enum Where {
    /// So many octets from this position of the ring on.
    Short { at: u32, len: u16 },
    /// Its number among the long ones.
    Long(u32),
}

impl Place {
    /// More than short ones have.
    const LONG: u16 = u16::MAX;

    const fn to(self) -> Where {
        match self.bytes {
            Self::LONG => Where::Long(self.at),
            len => Where::Short { at: self.at, len },
        }
    }
}

/// The payloads of one writer's changes, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    ring: Ring,
    /// Changes leave about in the order of writing.
    in_order: bool,
    long: VecDeque<Payload>,
    /// The number of the first long one. Numbers wrap.
    long_first: u32,
}

/// Octets, those of each payload in one piece. Positions count on and wrap; where one is, is its remainder by the length.
#[derive(Debug, Default)]
struct Ring {
    /// A power of two of them, or none.
    bytes: Vec<u8>,
    first: u32,
    end: u32,
}

impl Payloads {
    /// `in_order`: changes leave about in the order of writing.
    pub(super) fn new(in_order: bool) -> Self {
        Self { in_order, ..Self::default() }
    }

    /// Payloads of up to so many octets are in the ring.
    pub(super) const fn short_bytes_max(&self) -> usize {
        if self.in_order { COPIED_BYTES_MAX } else { SHORT_BYTES_MAX }
    }

    pub(super) fn push(&mut self, payload: NewPayload<'_>) -> Place {
        let octets = payload.view().as_slice();
        if octets.len() <= self.short_bytes_max()
            && let Some(at) = self.ring.push(octets)
        {
            let len = octets.len() as u16;
            if let NewPayload::Payload(payload) = payload {
                *payload = Payload::empty();
            }
            return Place { at, bytes: len };
        }
        let number = self.long_end();
        self.long.push_back(match payload {
            NewPayload::Octets(octets) => PayloadView::Octets(octets).to_payload(),
            NewPayload::Payload(payload) => std::mem::take(payload),
        });
        Place { at: number, bytes: Place::LONG }
    }

    pub(super) fn get(&self, place: Place) -> PayloadView<'_> {
        let long = match place.to() {
            Where::Short { at, len } => return PayloadView::Octets(self.ring.get(at, len)),
            Where::Long(number) => self.long.get(number.wrapping_sub(self.long_first) as usize),
        };
        long.map_or(PayloadView::Octets(&[]), PayloadView::Payload)
    }

    pub(super) fn len(&self, place: Place) -> usize {
        match place.to() {
            Where::Short { len, .. } => usize::from(len),
            Where::Long(_) => self.get(place).len(),
        }
    }

    /// The change is gone; others before it may not be.
    pub(super) fn let_go(&mut self, place: Place) {
        if let Where::Long(number) = place.to()
            && let Some(payload) = self.long.get_mut(number.wrapping_sub(self.long_first) as usize)
        {
            *payload = Payload::empty();
        }
    }

    /// The first is gone.
    pub(super) fn pop_front(&mut self, place: Place) {
        match place.to() {
            Where::Short { at, len } => self.ring.first = at.wrapping_add(u32::from(len)),
            Where::Long(_) => {
                self.long.pop_front();
                self.long_first = self.long_first.wrapping_add(1);
            }
        }
    }

    /// Nothing is held any more: what comes next takes the memory that was used last.
    pub(super) fn clear(&mut self) {
        if !self.long.is_empty() {
            self.long.clear();
        }
        (self.long_first, self.ring.first, self.ring.end) = (0, 0, 0);
    }

    /// Moves what is held together. `places`: those that are kept, in order.
    pub(super) fn compact<'p>(&mut self, places: impl Iterator<Item = &'p mut Place>) {
        let mut end = self.ring.first;
        let mut kept = 0;
        for place in places {
            match place.to() {
                Where::Short { at, len } => place.at = self.ring.move_down(&mut end, at, len),
                Where::Long(number) => {
                    let from = number.wrapping_sub(self.long_first) as usize;
                    self.long.swap(kept, from);
                    place.at = self.long_first.wrapping_add(kept as u32);
                    kept += 1;
                }
            }
        }
        self.ring.end = end;
        self.long.truncate(kept);
    }

    fn long_end(&self) -> u32 {
        self.long_first.wrapping_add(self.long.len() as u32)
    }
}

impl super::Writer {
    /// Payloads of up to so many octets are copied when they are written, longer ones are referenced.
    #[must_use]
    pub const fn copied_bytes_max(&self) -> usize {
        self.history.copied_bytes_max()
    }
}

impl Ring {
    const BYTES_LEAST: usize = 1 << 12;
    /// Positions have 32 bits.
    const BYTES_MAX: usize = 1 << 31;

    /// `None`: the ring cannot grow any more.
    fn push(&mut self, octets: &[u8]) -> Option<u32> {
        let len = octets.len() as u32;
        let mut at = self.fitting(self.end, len);
        while at.wrapping_add(len).wrapping_sub(self.first) as usize > self.bytes.len() {
            self.grow()?;
            at = self.fitting(self.end, len);
        }
        let place = self.place(at);
        self.bytes.get_mut(place..place + octets.len())?.copy_from_slice(octets);
        self.end = at.wrapping_add(len);
        Some(at)
    }

    fn get(&self, at: u32, len: u16) -> &[u8] {
        let place = self.place(at);
        self.bytes.get(place..place + usize::from(len)).unwrap_or(&[])
    }

    fn place(&self, at: u32) -> usize {
        at as usize & self.bytes.len().wrapping_sub(1)
    }

    /// The first position from `end` on where so many octets are in one piece.
    fn fitting(&self, end: u32, len: u32) -> u32 {
        let left = self.bytes.len().wrapping_sub(self.place(end)) as u32;
        if len <= left { end } else { end.wrapping_add(left) }
    }

    fn grow(&mut self) -> Option<()> {
        let length = (2 * self.bytes.len()).max(Self::BYTES_LEAST);
        if length > Self::BYTES_MAX {
            return None;
        }
        let before = self.bytes.len();
        self.bytes.resize(length, 0);
        // In place, so that no ring of half the length is left behind. What is in one piece stays so: the greater length is a
        // multiple of the lesser, and a piece stays where it is or goes to the same place of the new half.
        let mut at = self.first;
        while at != self.end && before > 0 {
            let from = at as usize & (before - 1);
            let piece = (self.end.wrapping_sub(at) as usize).min(before - from);
            let to = self.place(at);
            if to != from && to + piece <= length {
                self.bytes.copy_within(from..from + piece, to);
            }
            at = at.wrapping_add(piece as u32);
        }
        Some(())
    }

    /// Moves a payload to `end`, which is not beyond it, and `end` behind it.
    fn move_down(&mut self, end: &mut u32, at: u32, len: u16) -> u32 {
        let (from, to) = (self.place(at), self.fitting(*end, u32::from(len)));
        let place = self.place(to);
        if from != place && from + usize::from(len) <= self.bytes.len() {
            self.bytes.copy_within(from..from + usize::from(len), place);
        }
        *end = to.wrapping_add(u32::from(len));
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_grows_keeps_every_payload_wherever_it_began() {
        for pushed_before in 0..200_u16 {
            let mut payloads = Payloads::new(true);
            let octets = |number: u16| vec![number as u8; 40 + usize::from(number % 7)];
            for number in 0..pushed_before {
                let place = payloads.push(NewPayload::Octets(&octets(number)));
                payloads.pop_front(place);
            }
            let held: Vec<_> =
                (0..600).map(|number| (number, payloads.push(NewPayload::Octets(&octets(number))))).collect();
            assert!(payloads.ring.bytes.len() > 4 * Ring::BYTES_LEAST, "it grew more than once");
            for (number, place) in held {
                assert_eq!(payloads.get(place).as_slice(), octets(number), "{pushed_before} before");
                payloads.pop_front(place);
            }
        }
    }
}
