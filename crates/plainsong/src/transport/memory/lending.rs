//! What a node has lent to a peer, and what a peer has lent to it.
//!
//! The lender's table stands in its own memory: a peer can give back what it was lent, once, and nothing
//! else. When the link ends the table is dropped, and all is back. So a borrower that lives keeps the link
//! open, by what it gives its chunks back to, until it has let go of the last of them.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use plainsong_proto::payload::Region;
use thiserror::Error;

use super::layout::LENT_MAX;
use super::pool::SLABS_MAX;
use super::ring::Attachment;
use super::segment::{Memory, PeerSegment, SegmentError};
use crate::base::sync::atomic::{AtomicU64, Ordering};

/// What one peer was lent.
pub(crate) struct Lending<T> {
    slots: Vec<Option<Lent<T>>>,
    /// Of those that exist.
    free: Vec<u32>,
    bytes: u64,
}

struct Lent<T> {
    what: T,
    bytes: u64,
}

impl<T> Lending<T> {
    /// Nothing is lent.
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), bytes: 0 }
    }

    /// Keeps `what`, which pins so many octets, until the slot is released. `None`: there is no slot left.
    pub(crate) fn lend(&mut self, what: T, bytes: u64) -> Option<u32> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < LENT_MAX => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
            None => return None,
        };
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(Lent { what, bytes });
        }
        self.bytes += bytes;
        Some(slot)
    }

    /// Takes back what was lent as that slot, if anything was.
    pub(crate) fn release(&mut self, slot: u32) -> Option<T> {
        let lent = self.slots.get_mut(slot as usize)?.take()?;
        self.bytes -= lent.bytes;
        self.free.push(slot);
        Some(lent.what)
    }

    /// Octets that are lent now.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many slots are lent now.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// Where borrowed chunks are given back. It keeps the link open.
pub(crate) trait LetGo: Send + Sync {
    /// The slot is not borrowed any more.
    fn let_go(&self, slot: u32);
}

/// Why a slab of a peer is not mapped.
#[derive(Debug, Error)]
pub(crate) enum PeerSlabError {
    #[error("slab {0} was told of already")]
    Known(u32),
    #[error("it has {} slabs at most", SLABS_MAX)]
    Slabs,
    #[error("{bytes} octets of its slabs are mapped, {bytes_max} at most")]
    Bytes { bytes: u64, bytes_max: u64 },
    #[error("slab {id} of {bytes} octets has no chunks of {chunk_bytes}")]
    Chunk { id: u32, bytes: usize, chunk_bytes: u64 },
    #[error("slab {id}: {error}")]
    Segment { id: u32, error: SegmentError },
}

/// Why an attachment is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum AttachmentError {
    #[error("slab {0} is not known")]
    Slab(u32),
    #[error("slab {0} has no such octets in one chunk")]
    Range(u32),
}

/// The slabs of one peer.
pub(crate) struct PeerSlabs {
    slabs: HashMap<u32, Arc<PeerSlab>>,
    held: Arc<Held>,
    bytes_max: u64,
}

/// Octets of a peer.
#[derive(Debug, Default)]
struct Held {
    /// That are mapped, for a slab that is gone may still be borrowed from.
    mapped: AtomicU64,
    /// Of whole chunks, however little of them is read.
    borrowed: AtomicU64,
}

struct PeerSlab {
    segment: PeerSegment,
    chunk_bytes: usize,
    held: Arc<Held>,
}

impl Drop for PeerSlab {
    fn drop(&mut self) {
        self.held.mapped.fetch_sub(self.segment.bytes() as u64, Ordering::Relaxed);
    }
}

impl PeerSlabs {
    /// None is known, and so many octets are mapped at most.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { slabs: HashMap::new(), held: Arc::default(), bytes_max }
    }

    /// Maps one that the peer tells of, which has chunks of so many octets.
    ///
    /// # Errors
    /// It cannot be mapped, or no more of them; it has no such chunks.
    pub(crate) fn insert(
        &mut self,
        id: u32,
        fd: BorrowedFd<'_>,
        chunk_bytes: u64,
    ) -> Result<(), PeerSlabError> {
        if self.slabs.contains_key(&id) {
            return Err(PeerSlabError::Known(id));
        }
        if self.slabs.len() >= SLABS_MAX {
            return Err(PeerSlabError::Slabs);
        }
        let (bytes, bytes_max) = (self.mapped_bytes(), self.bytes_max);
        let left = usize::try_from(bytes_max.saturating_sub(bytes)).unwrap_or(usize::MAX);
        if left == 0 {
            return Err(PeerSlabError::Bytes { bytes, bytes_max });
        }
        let mapped = PeerSegment::map(fd, 1..=left);
        let segment = mapped.map_err(|error| PeerSlabError::Segment { id, error })?;
        let bytes = segment.bytes();
        let fits = usize::try_from(chunk_bytes).ok().filter(|chunk_bytes| (1..=bytes).contains(chunk_bytes));
        let chunk_bytes = fits.ok_or(PeerSlabError::Chunk { id, bytes, chunk_bytes })?;
        let held = Arc::clone(&self.held);
        held.mapped.fetch_add(bytes as u64, Ordering::Relaxed);
        self.slabs.insert(id, Arc::new(PeerSlab { segment, chunk_bytes, held }));
        Ok(())
    }

    /// The peer has given one up. It stays mapped as long as something of it is borrowed. False if it was not
    /// known.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        self.slabs.remove(&id).is_some()
    }

    /// Whether the peer has told of that slab.
    pub(crate) fn knows(&self, id: u32) -> bool {
        self.slabs.contains_key(&id)
    }

    /// Borrows what a record says, which is within one chunk. If that is nothing, its slot is not let go of.
    ///
    /// # Errors
    /// It says what is not there.
    pub(crate) fn borrow(
        &self,
        attachment: &Attachment,
        to: &Arc<impl LetGo + 'static>,
    ) -> Result<ForeignChunk, AttachmentError> {
        let slab = self.slabs.get(&attachment.slab).ok_or(AttachmentError::Slab(attachment.slab))?;
        let beyond = AttachmentError::Range(attachment.slab);
        let start = usize::try_from(attachment.offset).map_err(|_| beyond)?;
        let bytes = usize::try_from(attachment.bytes).map_err(|_| beyond)?;
        slab.segment.range(start, bytes).ok_or(beyond)?;
        if start % slab.chunk_bytes + bytes > slab.chunk_bytes {
            return Err(beyond);
        }
        self.held.borrowed.fetch_add(slab.chunk_bytes as u64, Ordering::Relaxed);
        let lender = Arc::clone(to) as Arc<dyn LetGo>;
        let slab = Arc::clone(slab);
        Ok(ForeignChunk { slab, range: start..start + bytes, slot: attachment.slot, lender })
    }

    /// Octets of the chunks that are borrowed now.
    pub(crate) fn borrowed_bytes(&self) -> u64 {
        self.held.borrowed.load(Ordering::Relaxed)
    }

    /// Octets that are mapped now.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        self.held.mapped.load(Ordering::Relaxed)
    }
}

/// Octets that a peer has lent: given back when it is dropped.
pub(crate) struct ForeignChunk {
    slab: Arc<PeerSlab>,
    range: Range<usize>,
    slot: u32,
    lender: Arc<dyn LetGo>,
}

impl ForeignChunk {
    /// See [`PeerSegment::range`].
    pub(crate) fn bytes(&self) -> &[u8] {
        self.slab.segment.range(self.range.start, self.range.len()).unwrap_or(&[])
    }
}

impl Drop for ForeignChunk {
    fn drop(&mut self) {
        self.slab.held.borrowed.fetch_sub(self.slab.chunk_bytes as u64, Ordering::Relaxed);
        self.lender.let_go(self.slot);
    }
}

impl fmt::Debug for ForeignChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignChunk {:?} as slot {}", self.range, self.slot)
    }
}

impl Region for ForeignChunk {
    fn octets(&self) -> &[u8] {
        self.bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests;
