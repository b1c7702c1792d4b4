//! The payloads of the changes in a history. Short ones are a ring of octets in the order of writing, so that
//! a sample of 30 octets takes 30 and no pool or count of references; longer ones are referenced. What is
//! short depends: changes that leave in the order of writing leave few holes, so that longer ones may be in
//! the ring, too.

use std::collections::VecDeque;

use crate::copying;
use crate::payload::{COPIED_BYTES_MAX, NewPayload, Payload, PayloadView, SHORT_BYTES_MAX};
use crate::tuning::writer::PAYLOAD_CHUNK_BITS;

/// Where a payload is. Packed, since it is one of many fields in a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(1))]
pub(crate) struct Place {
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

    /// How many octets a short one has.
    pub(crate) fn short_len(self) -> Option<usize> {
        let bytes = self.bytes;
        (bytes != Self::LONG).then_some(usize::from(bytes))
    }
}

/// The payloads of one writer's changes, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    ring: Ring,
    /// Changes leave about in the order of writing.
    in_order: bool,
    long: VecDeque<Payload>,
    /// The number of the first long one. Numbers wrap.
    long_first: u32,
}

/// Octets, those of each payload in one piece, in chunks that are used again: the one left last, whose memory
/// is warm, is the next to be filled. Positions count on through all chunks, and wrap.
#[derive(Debug, Default)]
struct Ring {
    /// Those from the one that `first` is in on.
    chunks: VecDeque<Box<[u8]>>,
    spare: Vec<Box<[u8]>>,
    first: u32,
    end: u32,
}

impl Payloads {
    /// `in_order`: changes leave about in the order of writing.
    pub(crate) fn new(in_order: bool) -> Self {
        Self { in_order, ..Self::default() }
    }

    /// Payloads of up to so many octets are in the ring.
    pub(crate) const fn short_bytes_max(&self) -> usize {
        if self.in_order { COPIED_BYTES_MAX } else { SHORT_BYTES_MAX }
    }

    pub(crate) fn push(&mut self, payload: NewPayload<'_>) -> Place {
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

    pub(crate) fn get(&self, place: Place) -> PayloadView<'_> {
        let long = match place.to() {
            Where::Short { at, len } => return PayloadView::Octets(self.ring.get(at, len)),
            Where::Long(number) => self.long.get(number.wrapping_sub(self.long_first) as usize),
        };
        long.map_or(PayloadView::Octets(&[]), PayloadView::Payload)
    }

    pub(crate) fn len(&self, place: Place) -> usize {
        match place.to() {
            Where::Short { len, .. } => usize::from(len),
            Where::Long(_) => self.get(place).len(),
        }
    }

    /// A payload that is referenced.
    pub(crate) fn long_mut(&mut self, place: Place) -> Option<&mut Payload> {
        let Where::Long(number) = place.to() else { return None };
        self.long.get_mut(number.wrapping_sub(self.long_first) as usize)
    }

    /// The change is gone; others before it may not be.
    pub(crate) fn let_go(&mut self, place: Place) {
        if let Some(payload) = self.long_mut(place) {
            *payload = Payload::empty();
        }
    }

    /// The first is gone.
    pub(crate) fn pop_front(&mut self, place: Place) {
        match place.to() {
            Where::Short { at, len } => self.ring.pop_front(at.wrapping_add(u32::from(len))),
            Where::Long(_) => {
                self.long.pop_front();
                self.long_first = self.long_first.wrapping_add(1);
            }
        }
    }

    /// Nothing is held any more: what comes next takes the memory that was used last.
    pub(crate) fn clear(&mut self) {
        if !self.long.is_empty() {
            self.long.clear();
        }
        self.long_first = 0;
        self.ring.clear();
    }

    /// Moves what is held together. `places`: those that are kept, in order.
    pub(crate) fn compact<'p>(&mut self, places: impl Iterator<Item = &'p mut Place>) {
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
        self.ring.end_at(end);
        self.long.truncate(kept);
    }

    #[cfg(test)]
    pub(crate) fn chunks_held(&self) -> usize {
        self.ring.chunks.len()
    }

    fn long_end(&self) -> u32 {
        self.long_first.wrapping_add(self.long.len() as u32)
    }
}

impl crate::writer::Writer {
    /// Payloads of up to so many octets are copied when they are written, longer ones are referenced.
    #[must_use]
    pub const fn copied_bytes_max(&self) -> usize {
        self.history.copied_bytes_max()
    }
}

impl Ring {
    /// Of a chunk: three of the longest payloads that are in one. A writer whose samples leave soon uses one
    /// or two, which stay in the first cache.
    const BITS: u32 = PAYLOAD_CHUNK_BITS;
    const CHUNK_BYTES: u32 = 1 << Self::BITS;
    /// Positions have 32 bits.
    const CHUNKS_MAX: usize = 1 << (31 - Self::BITS);

    /// `None`: the ring cannot grow any more.
    #[inline]
    fn push(&mut self, octets: &[u8]) -> Option<u32> {
        let len = octets.len() as u32;
        let at = Self::fitting(self.end, len);
        if self.chunk_of(at) >= self.chunks.len() {
            self.grow()?;
        }
        copying::copy_few(self.place_mut(at, octets.len())?, octets);
        self.end = at.wrapping_add(len);
        Some(at)
    }

    #[inline]
    fn get(&self, at: u32, len: u16) -> &[u8] {
        let offset = Self::offset(at);
        self.chunks
            .get(self.chunk_of(at))
            .and_then(|chunk| chunk.get(offset..offset + usize::from(len)))
            .unwrap_or(&[])
    }

    fn place_mut(&mut self, at: u32, len: usize) -> Option<&mut [u8]> {
        let (chunk, offset) = (self.chunk_of(at), Self::offset(at));
        self.chunks.get_mut(chunk)?.get_mut(offset..offset + len)
    }

    /// Which of `chunks` a position is in.
    const fn chunk_of(&self, at: u32) -> usize {
        (at.wrapping_sub(self.first & !(Self::CHUNK_BYTES - 1)) >> Self::BITS) as usize
    }

    const fn offset(at: u32) -> usize {
        (at & (Self::CHUNK_BYTES - 1)) as usize
    }

    /// The first position from `end` on where so many octets are in one piece.
    const fn fitting(end: u32, len: u32) -> u32 {
        let left = Self::CHUNK_BYTES - Self::offset(end) as u32;
        if len <= left { end } else { end.wrapping_add(left) }
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        if self.chunks.len() >= Self::CHUNKS_MAX {
            return None;
        }
        let chunk = self.spare.pop();
        self.chunks
            .push_back(chunk.unwrap_or_else(|| vec![0; Self::CHUNK_BYTES as usize].into_boxed_slice()));
        Some(())
    }

    /// Nothing before `first` is held any more.
    #[inline]
    fn pop_front(&mut self, first: u32) {
        let left = self.chunk_of(first);
        self.first = first;
        if left > 0 {
            self.spare.extend(self.chunks.drain(..left.min(self.chunks.len())));
        }
    }

    /// Nothing from `end` on is held any more.
    fn end_at(&mut self, end: u32) {
        self.end = end;
        let held = self.chunk_of(end) + usize::from(Self::offset(end) > 0);
        self.spare.extend(self.chunks.drain(held.min(self.chunks.len())..));
    }

    /// Nothing is held any more. The chunk used last stays.
    #[inline]
    fn clear(&mut self) {
        (self.first, self.end) = (0, 0);
        if self.chunks.len() > 1 {
            self.spare.extend(self.chunks.drain(..self.chunks.len() - 1));
        }
    }

    /// Moves a payload to `end`, which is not beyond it, and `end` behind it.
    fn move_down(&mut self, end: &mut u32, at: u32, len: u16) -> u32 {
        let to = Self::fitting(*end, u32::from(len));
        if to != at {
            let (from, target) = (self.chunk_of(at), self.chunk_of(to));
            let (offset, place) = (Self::offset(at), Self::offset(to));
            let range = offset..offset + usize::from(len);
            if from == target {
                if let Some(chunk) = self.chunks.get_mut(from).filter(|chunk| range.end <= chunk.len()) {
                    chunk.copy_within(range, place);
                }
            } else if let Some(mut chunk) = self.chunks.get_mut(target).map(std::mem::take) {
                let octets = self.chunks.get(from).and_then(|chunk| chunk.get(range));
                if let Some((octets, room)) = octets.zip(chunk.get_mut(place..place + usize::from(len))) {
                    room.copy_from_slice(octets);
                }
                if let Some(empty) = self.chunks.get_mut(target) {
                    *empty = chunk;
                }
            }
        }
        *end = to.wrapping_add(u32::from(len));
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(number: u16) -> Vec<u8> {
        vec![number as u8; 900 + usize::from(number % 7)]
    }

    fn push(payloads: &mut Payloads, number: u16) -> (u16, Place) {
        (number, payloads.push(NewPayload::Octets(&octets(number))))
    }

    #[test]
    fn every_payload_stays_while_others_come_and_go() {
        for pushed_before in 0..200_u16 {
            let mut payloads = Payloads::new(true);
            for number in 0..pushed_before {
                let (_, place) = push(&mut payloads, number);
                payloads.pop_front(place);
            }
            let held: Vec<_> = (0..60).map(|number| push(&mut payloads, number)).collect();
            assert!(payloads.ring.chunks.len() > 3);
            for (number, place) in held {
                assert_eq!(payloads.get(place).as_slice(), octets(number), "{pushed_before} before");
                payloads.pop_front(place);
            }
        }
    }

    #[test]
    fn memory_is_used_again_and_so_much_as_is_held_at_most() {
        let mut payloads = Payloads::new(true);
        payloads.ring.first = u32::MAX - 100 * Ring::CHUNK_BYTES + 1;
        payloads.ring.end = payloads.ring.first;
        let mut held = VecDeque::new();
        for number in 0..10_000 {
            held.push_back(push(&mut payloads, number));
            if held.len() > 100 {
                let (number, place) = held.pop_front().unwrap();
                assert_eq!(payloads.get(place).as_slice(), octets(number));
                payloads.pop_front(place);
            }
        }
        let chunks = payloads.ring.chunks.len() + payloads.ring.spare.len();
        assert_eq!(chunks, 27, "a hundred of 900 octets, four in a chunk, and parts of two");
        payloads.clear();
        assert_eq!((payloads.ring.chunks.len(), payloads.ring.spare.len()), (1, chunks - 1));
        let (_, place) = push(&mut payloads, 7);
        assert_eq!(payloads.get(place).as_slice(), octets(7));
    }

    #[test]
    fn what_is_kept_is_moved_together() {
        let mut payloads = Payloads::new(true);
        let mut held: Vec<_> = (0..200).map(|number| push(&mut payloads, number)).collect();
        held.retain(|(number, _)| number % 5 == 0);
        payloads.compact(held.iter_mut().map(|(_, place)| place));
        assert_eq!(payloads.ring.chunks.len(), 10);
        for (number, place) in &held {
            assert_eq!(payloads.get(*place).as_slice(), octets(*number));
        }
        held.push(push(&mut payloads, 200));
        held.into_iter().for_each(|(_, place)| payloads.pop_front(place));
        assert!(payloads.ring.first == payloads.ring.end && payloads.ring.chunks.len() <= 1);
    }
}
