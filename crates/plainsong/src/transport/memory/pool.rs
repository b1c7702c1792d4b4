//! Memory for long payloads, which processes share without copying: chunks in slabs.
//!
//! A slab is one segment, cut into chunks of one size. It is made when there is no free chunk of that size,
//! twice as large as what the size has already, but with no more than a quarter of the room that is left, and
//! unmapped when all its chunks have been free for a while, or when another size needs the room. Numbers of
//! slabs are never used again, so that one that is gone is never taken for another one.
//!
//! A chunk that stays keeps its slab. So what may be kept for long is in slabs of its own ([`Part::Kept`]),
//! which are half of the pool at most: wherever in them the chunks are that stay, there is room for what is
//! only sent.
//!
//! A chunk belongs to who holds its [`Chunk`]: alone to write, shared (in an `Arc`) to read and to lend.
//! Peers that a chunk is lent to share it. What they have together of a part of the pool is counted, each
//! chunk once, so that none of them gets more than what the others have left ([`Chunk::lend`]).
//! Which are free stands in one bit each, in memory of this process alone: nothing that a peer can do changes
//! who owns a chunk. To give one back is one atomic operation, on any thread.

#![allow(unsafe_code, reason = "chunks are parts of one mapping")]

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as StaticCounter;

use plainsong_proto::payload::Region;
use plainsong_proto::time::{Duration, Instant};
use thiserror::Error;

use super::ring::Attachment;
use super::segment::{Pages, Segment};
use crate::base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::base::sync::{Mutex, lock};

/// The smallest chunk: a page.
const CHUNK_BYTES_LEAST: usize = 4 << 10;
/// The first slab of a size, and the largest that is not of a single chunk.
const SLAB_BYTES_FIRST: usize = 256 << 10;
const SLAB_BYTES_MOST: usize = 16 << 20;
/// A slab takes so much of the room that is left, at most, if it has more than one chunk.
const SLAB_PART: usize = 4;
/// Slabs of a pool: each takes a descriptor.
pub(crate) const SLABS_MAX: usize = 512;
/// A peer may keep so much of what peers have left of half of the pool. Then it gets copies: the rest is for
/// what is on its way, and for the next peer.
const SHARE_PART: u64 = 3;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Why there is no chunk. Each says what to do about it.
#[derive(Debug, Error)]
pub(crate) enum Exhausted {
    #[error(
        "{most} octets at most have room in what loans and histories may have of the memory that is shared, half of {bytes_max}: \
         raise memory_pool_bytes_max (PLAINSONG_MEMORY_POOL_BYTES_MAX)"
    )]
    TooLong { most: u64, bytes_max: u64 },
    #[error(
        "loans and histories have all that they may of the memory that is shared, half of {bytes_max} octets: let go of loans and \
         of samples taken, keep less history, or raise memory_pool_bytes_max (PLAINSONG_MEMORY_POOL_BYTES_MAX)"
    )]
    Kept { bytes_max: u64 },
    #[error(
        "the memory that is shared has {bytes_max} octets at most, and all are in use: let go of samples taken, or raise \
         memory_pool_bytes_max (PLAINSONG_MEMORY_POOL_BYTES_MAX)"
    )]
    Bytes { bytes_max: u64 },
    #[error(
        "the memory that is shared has {} pieces at most, each for samples of about one size: use fewer sizes",
        SLABS_MAX
    )]
    Slabs,
    #[error("no memory can be had: {0}; raise the memory limit or the limit of open files")]
    System(#[from] io::Error),
}

/// What peers have of one part of a pool.
struct Lent {
    /// Octets that all of them may have.
    bytes_max: u64,
    /// Octets of the chunks that any of them has.
    bytes: AtomicU64,
}

/// What a slab is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// What may be kept for long.
    Kept,
    /// What is only sent.
    Sent,
}

/// Chunks of this process, for all its links of a domain.
pub(crate) struct Pool {
    bytes_max: u64,
    pages: Pages,
    /// Tells it from those of other domains.
    number: u64,
    /// Slabs that were ever unmapped.
    retired: AtomicU64,
    lent: [Arc<Lent>; 2],
    /// Payloads that were not sent for want of a chunk.
    unsent: AtomicU64,
    slabs: Mutex<Slabs>,
}

#[derive(Default)]
struct Slabs {
    kept: PartSlabs,
    sent: PartSlabs,
    /// How many there are, with those that are being made.
    count: usize,
    next_id: u32,
}

/// Those of one part.
#[derive(Default)]
struct PartSlabs {
    /// By the size of their chunks.
    sizes: BTreeMap<usize, Size>,
    /// With those that are being made.
    bytes: u64,
}

#[derive(Default)]
struct Size {
    slabs: Vec<SlabState>,
    bytes: usize,
    /// Which of them had a free chunk last.
    last: usize,
}

struct SlabState {
    slab: Arc<Slab>,
    free_since: Option<Instant>,
}

/// A segment that is cut into chunks.
pub(crate) struct Slab {
    id: u32,
    /// Of which pool.
    pool: u64,
    chunk_bytes: usize,
    segment: Segment,
    free: FreeSet,
    /// How many peers have each chunk.
    peers: Box<[AtomicU32]>,
    lent: Arc<Lent>,
}

/// Octets of a slab, for who has it.
pub(crate) struct Chunk {
    slab: Arc<Slab>,
    number: usize,
}

/// Octets of the chunk that takes so many: a page, or a multiple of a page and of a quarter of a power of
/// two, so that a fifth is lost at most. `None`: no address space has so many.
pub(crate) fn chunk_bytes(bytes: usize) -> Option<usize> {
    let bytes = bytes.max(CHUNK_BYTES_LEAST);
    let below = 1 << (bytes - 1).ilog2();
    let step = (below / 4).max(CHUNK_BYTES_LEAST);
    bytes.checked_next_multiple_of(step).filter(|bytes| isize::try_from(*bytes).is_ok())
}

impl Pool {
    /// An empty one.
    pub(crate) fn new(bytes_max: u64, pages: Pages) -> Self {
        // Not one of those that a model checker replaces, which begin anew with each of its runs.
        static POOLS: StaticCounter = StaticCounter::new(0);
        let number = POOLS.fetch_add(1, Ordering::Relaxed);
        let lent = || Arc::new(Lent { bytes_max: bytes_max / 2, bytes: AtomicU64::new(0) });
        let (retired, unsent, lent) = (AtomicU64::new(0), AtomicU64::new(0), [lent(), lent()]);
        Self { bytes_max, pages, number, retired, lent, unsent, slabs: Mutex::default() }
    }

    /// As [`Self::allocate`], for what may be kept for long: half of the pool stays for what is only sent.
    ///
    /// # Errors
    /// As [`Self::allocate`].
    pub(crate) fn allocate_to_keep(&self, bytes: usize) -> Result<Chunk, Exhausted> {
        self.allocate_in(Part::Kept, bytes)
    }

    /// A chunk with room for so many octets, which are what somebody has left there.
    ///
    /// # Errors
    /// There is none, and none can be had.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Chunk, Exhausted> {
        self.allocate_in(Part::Sent, bytes)
    }

    fn allocate_in(&self, part: Part, bytes: usize) -> Result<Chunk, Exhausted> {
        let Some(chunk_bytes) = chunk_bytes(bytes) else { return Err(self.too_long(part)) };
        let mut slabs = lock(&self.slabs);
        if let Some(chunk) = slabs.part(part).take(chunk_bytes) {
            return Ok(chunk);
        }
        let slab_bytes = self.reserve(&mut slabs, part, chunk_bytes)?;
        let id = slabs.next_id;
        slabs.next_id += 1;
        drop(slabs);
        // That takes long: others may go on.
        let made = Segment::create(slab_bytes, self.pages);
        let mut slabs = lock(&self.slabs);
        let segment = match made {
            Ok(segment) => segment,
            Err(error) => {
                slabs.count -= 1;
                slabs.part(part).bytes -= slab_bytes as u64;
                return Err(error.into());
            }
        };
        let count = slab_bytes / chunk_bytes;
        let slab = Slab {
            id,
            pool: self.number,
            chunk_bytes,
            segment,
            free: FreeSet::new(count),
            peers: (0..count).map(|_| AtomicU32::new(0)).collect(),
            lent: Arc::clone(&self.lent[part as usize]),
        };
        let slabs = slabs.part(part);
        let size = slabs.sizes.entry(chunk_bytes).or_default();
        size.last = size.slabs.len();
        size.bytes += slab_bytes;
        size.slabs.push(SlabState { slab: Arc::new(slab), free_since: None });
        slabs.take(chunk_bytes).ok_or(Exhausted::Bytes { bytes_max: self.bytes_max })
    }

    /// How large the next slab of that size is; what it takes is counted from now on. What nobody needs has
    /// to go if there is no room else.
    fn reserve(&self, slabs: &mut Slabs, part: Part, chunk_bytes: usize) -> Result<usize, Exhausted> {
        let least = self.whole_pages(chunk_bytes);
        if least as u64 > self.part_bytes_max(part) {
            return Err(self.too_long(part));
        }
        let has_room = |slabs: &mut Slabs| self.room(slabs, part) >= least;
        if !has_room(slabs) || slabs.count >= SLABS_MAX {
            let retired = slabs.retire(|_| true);
            self.retired.fetch_add(retired, Ordering::Release);
        }
        if !has_room(slabs) {
            let is_part_full = slabs.part(part).bytes + least as u64 > self.part_bytes_max(part);
            let bytes_max = self.bytes_max;
            return Err(match part {
                Part::Kept if is_part_full => Exhausted::Kept { bytes_max },
                Part::Kept | Part::Sent => Exhausted::Bytes { bytes_max },
            });
        }
        if slabs.count >= SLABS_MAX {
            return Err(Exhausted::Slabs);
        }
        let room = self.room(slabs, part);
        let slabs_of_part = slabs.part(part);
        let before = slabs_of_part.sizes.get(&chunk_bytes).map_or(0, |size| size.bytes);
        let wanted = before.clamp(SLAB_BYTES_FIRST, SLAB_BYTES_MOST).min(room / SLAB_PART);
        let bytes = self.whole_pages(wanted / chunk_bytes * chunk_bytes);
        let bytes = if bytes <= room { bytes.max(least) } else { least };
        slabs_of_part.bytes += bytes as u64;
        slabs.count += 1;
        Ok(bytes)
    }

    /// Octets that slabs of that part may have.
    const fn part_bytes_max(&self, part: Part) -> u64 {
        match part {
            Part::Kept => self.bytes_max / 2,
            Part::Sent => self.bytes_max,
        }
    }

    /// Octets that the next slab of that part may have.
    fn room(&self, slabs: &mut Slabs, part: Part) -> usize {
        let of_part = self.part_bytes_max(part).saturating_sub(slabs.part(part).bytes);
        let of_all = self.bytes_max.saturating_sub(slabs.bytes());
        usize::try_from(of_part.min(of_all)).unwrap_or(usize::MAX)
    }

    #[cold]
    const fn too_long(&self, part: Part) -> Exhausted {
        match part {
            Part::Kept => Exhausted::TooLong { most: self.bytes_max / 2, bytes_max: self.bytes_max },
            Part::Sent => Exhausted::Bytes { bytes_max: self.bytes_max },
        }
    }

    fn whole_pages(&self, bytes: usize) -> usize {
        match self.pages {
            Pages::Usual => bytes,
            Pages::Huge => bytes.next_multiple_of(HUGE_PAGE_BYTES),
        }
    }

    /// Unmaps slabs of which no chunk was taken for so long, as far as earlier calls saw. True if there were
    /// any: see [`is_there`](Self::is_there).
    pub(crate) fn trim(&self, now: Instant, unused: Duration) -> bool {
        let retired = lock(&self.slabs).retire(|kept| {
            let since = *kept.free_since.get_or_insert(now);
            now.since(since) >= unused
        });
        self.retired.fetch_add(retired, Ordering::Release);
        retired > 0
    }

    /// How many slabs were ever unmapped. When it has changed, links tell their peers which of those that
    /// they know are not [there](Self::is_there) any more.
    pub(crate) fn retired(&self) -> u64 {
        self.retired.load(Ordering::Acquire)
    }

    /// Which slabs there are.
    pub(crate) fn is_there(&self) -> impl Fn(u32) -> bool + use<> {
        let slabs = lock(&self.slabs);
        let kept = slabs.kept.sizes.values().chain(slabs.sent.sizes.values()).flat_map(|size| &size.slabs);
        let mut ids: Vec<u32> = kept.map(|kept| kept.slab.id).collect();
        ids.sort_unstable();
        move |id| ids.binary_search(&id).is_ok()
    }

    /// A payload was not sent for want of a chunk.
    pub(crate) fn count_unsent(&self) {
        self.unsent.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that was so.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Whether a chunk is of this pool.
    pub(crate) fn owns(&self, chunk: &Chunk) -> bool {
        chunk.slab.pool == self.number
    }

    /// Octets of all slabs.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.slabs).bytes()
    }
}

impl Slabs {
    const fn bytes(&self) -> u64 {
        self.kept.bytes + self.sent.bytes
    }

    const fn part(&mut self, part: Part) -> &mut PartSlabs {
        match part {
            Part::Kept => &mut self.kept,
            Part::Sent => &mut self.sent,
        }
    }

    /// Gives up the slabs of which all chunks are free, and which `may_go` lets go: how many. Nobody takes a
    /// chunk meanwhile, so what is free stays free.
    fn retire(&mut self, mut may_go: impl FnMut(&mut SlabState) -> bool) -> u64 {
        let retired = self.kept.retire(&mut may_go) + self.sent.retire(&mut may_go);
        self.count -= retired;
        retired as u64
    }
}

impl PartSlabs {
    fn take(&mut self, chunk_bytes: usize) -> Option<Chunk> {
        let size = self.sizes.get_mut(&chunk_bytes)?;
        let count = size.slabs.len();
        for step in 0..count {
            let at = (size.last + step) % count;
            let Some(kept) = size.slabs.get_mut(at) else { continue };
            if let Some(number) = kept.slab.free.take() {
                kept.free_since = None;
                let chunk = Chunk { slab: Arc::clone(&kept.slab), number };
                size.last = at;
                return Some(chunk);
            }
        }
        None
    }

    /// As [`Slabs::retire`].
    fn retire(&mut self, may_go: &mut impl FnMut(&mut SlabState) -> bool) -> usize {
        let mut retired = 0;
        for size in self.sizes.values_mut() {
            size.slabs.retain_mut(|kept| {
                if !kept.slab.free.is_all() {
                    kept.free_since = None;
                    return true;
                }
                if !may_go(kept) {
                    return true;
                }
                retired += 1;
                self.bytes -= kept.slab.bytes() as u64;
                size.bytes -= kept.slab.bytes();
                false
            });
        }
        self.sizes.retain(|_, size| !size.slabs.is_empty());
        retired
    }
}

impl Slab {
    /// Never used again for another one.
    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    /// What peers map.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    pub(crate) fn bytes(&self) -> usize {
        super::segment::Memory::bytes(&self.segment)
    }
}

impl Chunk {
    /// The slab that it is of, which a peer has to know before it is lent.
    pub(crate) fn slab(&self) -> &Slab {
        &self.slab
    }

    /// What it pins, whatever it is used for.
    pub(crate) fn capacity(&self) -> usize {
        self.slab.chunk_bytes
    }

    fn offset(&self) -> usize {
        self.number * self.slab.chunk_bytes
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: who has a `Chunk` has its octets (`FreeSet::take` gives a number to one only, and it is
        // given back by dropping the value), and to write to them needs it mutably.
        unsafe { self.part(0..self.slab.chunk_bytes) }
    }

    /// A range of it, which is not beyond its end.
    ///
    /// # Safety
    /// Nobody writes to it meanwhile.
    pub(super) unsafe fn part(&self, range: Range<usize>) -> &[u8] {
        assert!(range.end <= self.slab.chunk_bytes, "a part of a chunk ends with it");
        // SAFETY: the caller's.
        unsafe { self.slab.segment.range(self.offset() + range.start, range.len()) }
    }

    /// As [`Self::part`], to write to.
    ///
    /// # Safety
    /// Nobody else reads or writes it meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the caller owns a part of it")]
    pub(super) unsafe fn part_mut(&self, range: Range<usize>) -> &mut [u8] {
        assert!(range.end <= self.slab.chunk_bytes, "a part of a chunk ends with it");
        // SAFETY: the caller's.
        unsafe { self.slab.segment.range_mut(self.offset() + range.start, range.len()) }
    }

    /// All of it, to write to.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is borrowed mutably.
        unsafe { self.slab.segment.range_mut(self.offset(), self.slab.chunk_bytes) }
    }

    /// One more peer is to have it, which has so many octets already: how many it may keep. `None`: it would
    /// have more than is left of what all peers may have of this part of the pool; what the others have of
    /// this chunk, too, does not count. A chunk that is the only one that is lent is lent to all.
    pub(crate) fn lend(&self, has: u64) -> Option<u64> {
        let (lent, bytes) = (&self.slab.lent, self.slab.chunk_bytes as u64);
        let others = if self.peers().fetch_add(1, Ordering::Relaxed) == 0 {
            lent.bytes.fetch_add(bytes, Ordering::Relaxed)
        } else {
            lent.bytes.load(Ordering::Relaxed).saturating_sub(bytes)
        };
        let left = lent.bytes_max.saturating_sub(others);
        if others > 0 && has.saturating_add(bytes) > left {
            self.take_back();
            return None;
        }
        Some(left.saturating_sub(bytes) / SHARE_PART)
    }

    /// A peer that it was [lent](Self::lend) to does not have it any more.
    pub(crate) fn take_back(&self) {
        if self.peers().fetch_sub(1, Ordering::Relaxed) == 1 {
            self.slab.lent.bytes.fetch_sub(self.slab.chunk_bytes as u64, Ordering::Relaxed);
        }
    }

    #[expect(clippy::indexing_slicing, reason = "as many as there are chunks")]
    fn peers(&self) -> &AtomicU32 {
        &self.slab.peers[self.number]
    }

    /// How a record names a range of it, which a peer is lent as that slot.
    pub(crate) fn attachment(&self, range: &Range<usize>, slot: u32) -> Attachment {
        let (start, bytes) = ((self.offset() + range.start) as u64, range.len() as u64);
        Attachment { slab: self.slab.id, slot, offset: start, bytes }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.slab.free.give_back(self.number);
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk {} of slab {}", self.number, self.slab.id)
    }
}

impl Region for Chunk {
    fn octets(&self) -> &[u8] {
        self.bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Which of some things are free. One thread takes at a time, all may give back.
struct FreeSet {
    /// One bit for each.
    words: Box<[AtomicU64]>,
    count: usize,
}

impl FreeSet {
    fn new(count: usize) -> Self {
        let words = (0..count.div_ceil(64)).map(|at| AtomicU64::new(Self::all(at, count))).collect();
        Self { words, count }
    }

    /// The bits of a word of which all are free.
    fn all(at: usize, count: usize) -> u64 {
        match count - at * 64 {
            64.. => u64::MAX,
            bits => (1 << bits) - 1,
        }
    }

    /// Takes one that is free. What its last owner read or wrote has happened before.
    fn take(&self) -> Option<usize> {
        for (at, word) in self.words.iter().enumerate() {
            let free = word.load(Ordering::Relaxed);
            if free != 0 {
                let bit = free.trailing_zeros();
                // Nobody but this thread clears bits, so that it is still set. `Acquire`: pairs with the
                // release of who has set it.
                word.fetch_and(!(1 << bit), Ordering::Acquire);
                return Some(at * 64 + bit as usize);
            }
        }
        None
    }

    fn give_back(&self, number: usize) {
        if let Some(word) = self.words.get(number / 64) {
            let before = word.fetch_or(1 << (number % 64), Ordering::Release);
            debug_assert!(before & 1 << (number % 64) == 0, "one owner gives it back, once");
        }
    }

    /// Whether all are. While nobody takes one, that stays so.
    fn is_all(&self) -> bool {
        let mut words = self.words.iter().enumerate();
        words.all(|(at, word)| word.load(Ordering::Acquire) == Self::all(at, self.count))
    }
}

#[cfg(test)]
mod tests;
