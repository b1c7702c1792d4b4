//! Memory for one sample that an application fills: shared with other processes where that is possible, else
//! of the heap.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use plainsong_proto::cdr::OctetSeq;
use plainsong_proto::payload::{Payload, Region};

#[cfg(target_os = "linux")]
use super::memory::{filled::FilledOctets, pool::Chunk};

/// Behind so many octets of its memory a payload begins: what follows its four octets of encapsulation is
/// aligned as the largest of primitive types.
pub(crate) const PAYLOAD_START: usize = 4;
/// The alignment of the largest primitive types.
const ALIGNMENT: usize = 8;
/// Before octets that are filled in place there is room for so many of the members before them, and the
/// encapsulation.
#[cfg(target_os = "linux")]
const HEAD_BYTES: usize = 1 << 10;
/// And behind them for those that follow.
#[cfg(target_os = "linux")]
const TAIL_BYTES: usize = 256;

/// A payload that nobody has yet.
pub(crate) struct LoanedPayload {
    memory: Memory,
    range: Range<usize>,
}

/// Each is of one owner until it is written, and so again when writing failed.
enum Memory {
    #[cfg(target_os = "linux")]
    Chunk(Arc<Chunk>),
    Heap(Arc<HeapRegion>),
}

#[derive(Debug)]
struct HeapRegion(Vec<u8>);

impl Region for HeapRegion {
    fn octets(&self) -> &[u8] {
        &self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl LoanedPayload {
    #[cfg(target_os = "linux")]
    pub(super) fn in_chunk(chunk: Chunk, bytes: usize) -> Self {
        Self { memory: Memory::Chunk(Arc::new(chunk)), range: PAYLOAD_START..PAYLOAD_START + bytes }
    }

    pub(crate) fn in_heap(bytes: usize) -> Self {
        let octets = vec![0; bytes + PAYLOAD_START + ALIGNMENT];
        let body = octets.as_ptr().addr() + PAYLOAD_START;
        let start = body.next_multiple_of(ALIGNMENT) - body;
        Self { memory: Memory::Heap(Arc::new(HeapRegion(octets))), range: start..start + bytes }
    }

    /// The octets of the payload, with what somebody has left there.
    pub(crate) fn bytes(&self) -> &[u8] {
        let octets = match &self.memory {
            #[cfg(target_os = "linux")]
            Memory::Chunk(chunk) => chunk.octets(),
            Memory::Heap(region) => region.octets(),
        };
        octets.get(self.range.clone()).unwrap_or(&[])
    }

    /// As [`Self::bytes`]; none between [`Self::payload`] and [`Self::reclaim`].
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let octets: Option<&mut [u8]> = match &mut self.memory {
            #[cfg(target_os = "linux")]
            Memory::Chunk(chunk) => Arc::get_mut(chunk).map(Chunk::bytes_mut),
            Memory::Heap(region) => Arc::get_mut(region).map(|region| &mut *region.0),
        };
        octets.and_then(|octets| octets.get_mut(self.range.clone())).unwrap_or_default()
    }

    /// The octets behind the first so many are none of the payload.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        self.range.end = self.range.end.min(self.range.start.saturating_add(bytes));
    }

    /// The payload, which shares the memory. Before that is changed again it has to be
    /// [reclaimed](Self::reclaim).
    pub(crate) fn payload(&self) -> Payload {
        let region: Arc<dyn Region> = match &self.memory {
            #[cfg(target_os = "linux")]
            Memory::Chunk(chunk) => Arc::clone(chunk) as _,
            Memory::Heap(region) => Arc::clone(region) as _,
        };
        Payload::from_region(region, self.range.clone())
    }

    /// It was not written, and is this owner's alone again: memory that somebody has a payload of stays as it
    /// is, and a copy is made.
    pub(crate) fn reclaim(&mut self) {
        let is_alone = match &mut self.memory {
            #[cfg(target_os = "linux")]
            Memory::Chunk(chunk) => Arc::get_mut(chunk).is_some(),
            Memory::Heap(region) => Arc::get_mut(region).is_some(),
        };
        if !is_alone {
            let mut copy = Self::in_heap(self.range.len());
            copy.bytes_mut().copy_from_slice(self.bytes());
            *self = copy;
        }
    }

    /// Whether other processes can see it where it is.
    pub(crate) const fn is_shared(&self) -> bool {
        !matches!(self.memory, Memory::Heap(_))
    }
}

impl fmt::Debug for LoanedPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_shared() { "shared memory" } else { "the heap" };
        write!(f, "{} octets of {place}", self.range.len())
    }
}

/// Octets of a sequence that nobody has yet, with room around them for the rest of the sample.
pub(crate) enum LoanedOctets {
    #[cfg(target_os = "linux")]
    Chunk {
        chunk: Chunk,
        range: Range<usize>,
    },
    Heap(Vec<u8>),
}

impl LoanedOctets {
    /// Octets of memory that so many octets of a sequence take.
    #[cfg(target_os = "linux")]
    pub(super) const fn chunk_bytes(bytes: usize) -> Option<usize> {
        bytes.checked_add(HEAD_BYTES + TAIL_BYTES)
    }

    /// Of a chunk with so many as [`Self::chunk_bytes`] says.
    #[cfg(target_os = "linux")]
    pub(super) const fn in_chunk(chunk: Chunk, bytes: usize) -> Self {
        Self::Chunk { chunk, range: HEAD_BYTES..HEAD_BYTES + bytes }
    }

    pub(super) fn in_heap(bytes: usize) -> Self {
        Self::Heap(vec![0; bytes])
    }

    /// The octets, with what somebody has left there.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            #[cfg(target_os = "linux")]
            Self::Chunk { chunk, range } => chunk.bytes().get(range.clone()).unwrap_or(&[]),
            Self::Heap(octets) => octets,
        }
    }

    /// As [`Self::bytes`].
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            #[cfg(target_os = "linux")]
            Self::Chunk { chunk, range } => chunk.bytes_mut().get_mut(range.clone()).unwrap_or_default(),
            Self::Heap(octets) => octets,
        }
    }

    /// There are so many at most from now on.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Chunk { range, .. } => range.end = range.end.min(range.start.saturating_add(bytes)),
            Self::Heap(octets) => octets.truncate(bytes),
        }
    }

    /// Whether other processes can see them where they are.
    pub(crate) const fn is_shared(&self) -> bool {
        !matches!(self, Self::Heap(_))
    }

    /// They do not change any more.
    pub(crate) fn into_sequence(self) -> OctetSeq<'static> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Chunk { chunk, range } => {
                let bytes = range.len();
                OctetSeq::from_region(Arc::new(FilledOctets::new(chunk, range)), 0..bytes)
            }
            Self::Heap(octets) => octets.into(),
        }
    }
}

/// The payload that has such octets of a sequence where they are, `head` before and `tail` behind them.
/// `None`: they are elsewhere, are part of a payload already, or there is not as much room around them.
#[cfg(target_os = "linux")]
pub(crate) fn payload_around(sequence: &OctetSeq<'_>, head: &[u8], tail: &[u8]) -> Option<Payload> {
    let filled = sequence.region()?.as_any().downcast_ref::<FilledOctets>()?;
    (filled.len() == sequence.len()).then(|| filled.complete(head, tail)).flatten()
}

#[cfg(not(target_os = "linux"))]
pub(crate) const fn payload_around(_: &OctetSeq<'_>, _: &[u8], _: &[u8]) -> Option<Payload> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_of_the_heap_is_aligned_and_can_be_changed_until_it_is_shared() {
        for bytes in [8, 20, 4_100] {
            let mut loan = LoanedPayload::in_heap(bytes);
            assert_eq!((loan.bytes().len(), loan.is_shared()), (bytes, false));
            assert!((loan.bytes().as_ptr().addr() + PAYLOAD_START).is_multiple_of(ALIGNMENT));
            loan.bytes_mut().fill(7);
            let payload = loan.payload();
            assert_eq!(payload.as_slice(), vec![7; bytes]);
            assert!(loan.bytes_mut().is_empty(), "others read it");
            loan.reclaim();
            loan.bytes_mut().fill(9);
            assert_eq!(payload.as_slice(), vec![7; bytes], "they keep what they see");
            drop(payload);
            let place = loan.bytes().as_ptr();
            drop(loan.payload());
            loan.reclaim();
            assert_eq!(loan.bytes().as_ptr(), place, "nobody else has it");
            loan.truncate(6);
            loan.truncate(9);
            loan.bytes_mut().fill(8);
            assert_eq!(loan.payload().as_slice(), [8; 6]);
        }
    }

    #[test]
    fn octets_of_the_heap_are_a_sequence_as_any_other() {
        let mut octets = LoanedOctets::in_heap(10);
        octets.bytes_mut().fill(3);
        octets.truncate(4);
        let sequence = octets.into_sequence();
        assert_eq!(sequence.as_slice(), [3; 4]);
        assert!(payload_around(&sequence, &[], &[]).is_none());
    }
}
