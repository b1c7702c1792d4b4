//! Reference-counted octets of one sample, and the pool that lends and takes back their memory.
//!
//! One payload serves history, datagrams, retransmission and local readers; cloning never allocates,
//! and the last clone returns the memory to its pool.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// A range of octets shared by everyone who needs the same sample.
pub struct Payload {
    owner: Option<Arc<Buffer>>,
    start: usize,
    end: usize,
}

/// A buffer being filled, before it becomes a [`Payload`].
pub struct PayloadBuffer(Arc<Buffer>);

#[cfg(debug_assertions)]
thread_local! {
    static LOCKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Locks of pools that this thread has taken: debug builds count them for a test.
#[cfg(debug_assertions)]
#[doc(hidden)]
#[must_use]
pub fn locks_taken() -> u64 {
    LOCKS.get()
}

fn count_lock() {
    #[cfg(debug_assertions)]
    // A thread that is ending has no counter any more, and nobody asks for it.
    let _ = LOCKS.try_with(|locks| locks.set(locks.get() + 1));
}

/// Lends buffers and takes them back, so that the steady state allocates nothing.
#[derive(Clone)]
pub struct PayloadPool(Arc<Free>);

type Free = Mutex<FreeBuffers>;

/// Buffers that nobody uses, and the octets they hold.
#[derive(Default)]
struct FreeBuffers {
    buffers: Vec<Arc<Buffer>>,
    bytes: usize,
}

struct Buffer {
    bytes: Vec<u8>,
    /// Payloads that use it. The one that takes this to zero returns the buffer: counts of [`Arc`] cannot
    /// tell which of two that are dropped at the same time is the last.
    users: AtomicUsize,
    /// Weak, lest a pool keep itself alive through the buffers it keeps.
    pool: Weak<Free>,
}

/// Buffers a pool keeps at most, and what those that are not large hold together; the rest is freed.
const POOL_BUFFERS_MAX: usize = 1 << 14;
const POOL_BYTES_MAX: usize = 8 << 20;
/// So many are noted without the list having to grow.
const POOL_BUFFERS_USUAL: usize = 256;
/// Larger buffers are not kept: a rare image must not pin its memory for ever.
const POOL_BUFFER_BYTES_MAX: usize = 8 << 20;
/// Kept buffers together hold at most this much beyond what is small.
const POOL_LARGE_BUFFERS_MAX: usize = 8;
const LARGE_BYTES: usize = 64 << 10;

impl PayloadPool {
    /// An empty pool.
    #[must_use]
    pub fn new() -> Self {
        let buffers = Vec::with_capacity(POOL_BUFFERS_USUAL);
        Self(Arc::new(Mutex::new(FreeBuffers { buffers, bytes: 0 })))
    }

    /// An empty buffer; its memory is reused when some is at hand.
    #[must_use]
    pub fn take(&self) -> PayloadBuffer {
        PayloadBuffer(
            self.reuse().unwrap_or_else(|| Arc::new(Buffer::new(Vec::new(), Arc::downgrade(&self.0)))),
        )
    }

    /// A payload holding a copy of `bytes`.
    #[must_use]
    pub fn copy(&self, bytes: &[u8]) -> Payload {
        let mut buffer = self.take();
        buffer.bytes_mut().extend_from_slice(bytes);
        buffer.freeze()
    }

    /// The buffer returned last, whose memory is warm, or an older one when that is not quite let go of.
    fn reuse(&self) -> Option<Arc<Buffer>> {
        const LOOKS: usize = 4;
        count_lock();
        let mut free = self.0.lock().ok()?;
        let FreeBuffers { buffers, bytes } = &mut *free;
        for back in 1..=LOOKS.min(buffers.len()) {
            let index = buffers.len() - back;
            if let Some(buffer) = buffers.get_mut(index).and_then(Arc::get_mut) {
                buffer.bytes.clear();
                *bytes -= buffer.bytes.capacity();
                return Some(buffers.swap_remove(index));
            }
        }
        None
    }

    fn put_back(&self, buffer: Arc<Buffer>) {
        let bytes = buffer.bytes.capacity();
        if bytes > POOL_BUFFER_BYTES_MAX {
            return;
        }
        count_lock();
        let Ok(mut free) = self.0.lock() else { return };
        let kept = if bytes > LARGE_BYTES {
            free.buffers.len() < POOL_LARGE_BUFFERS_MAX
        } else {
            free.buffers.len() < POOL_BUFFERS_MAX && free.bytes + bytes <= POOL_BYTES_MAX
        };
        if kept {
            free.bytes += bytes;
            free.buffers.push(buffer);
        }
    }
}

impl Default for PayloadPool {
    fn default() -> Self {
        Self::new()
    }
}

impl PayloadBuffer {
    /// The octets to fill.
    ///
    /// # Panics
    /// Never: the buffer is shared with nobody until frozen.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        match Arc::get_mut(&mut self.0) {
            Some(buffer) => &mut buffer.bytes,
            None => unreachable!("a buffer being filled has one owner"),
        }
    }

    /// Everything written so far becomes shared and immutable.
    #[must_use]
    pub fn freeze(self) -> Payload {
        let end = self.0.bytes.len();
        self.0.users.store(1, Ordering::Relaxed);
        Payload { owner: Some(self.0), start: 0, end }
    }
}

impl Payload {
    /// No octets.
    #[must_use]
    pub const fn empty() -> Self {
        Self { owner: None, start: 0, end: 0 }
    }

    /// A payload that owns `bytes` and belongs to no pool.
    #[must_use]
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        let buffer = Buffer::new(bytes, Weak::new());
        buffer.users.store(1, Ordering::Relaxed);
        Self { owner: Some(Arc::new(buffer)), start: 0, end }
    }

    /// The octets.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.owner.as_ref().and_then(|owner| owner.bytes.get(self.start..self.end)).unwrap_or(&[])
    }

    /// The same memory, narrowed to `range` of this payload and clipped to its length.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let end = self.start.saturating_add(range.end).min(self.end);
        let start = self.start.saturating_add(range.start).min(end);
        let mut part = self.clone();
        (part.start, part.end) = (start, end);
        part
    }

    /// Length in octets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there are no octets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

impl Buffer {
    const fn new(bytes: Vec<u8>, pool: Weak<Free>) -> Self {
        Self { bytes, users: AtomicUsize::new(0), pool }
    }
}

impl Clone for Payload {
    fn clone(&self) -> Self {
        if let Some(owner) = &self.owner {
            owner.users.fetch_add(1, Ordering::Relaxed);
        }
        Self { owner: self.owner.clone(), start: self.start, end: self.end }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let Some(owner) = self.owner.take() else { return };
        if owner.users.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(free) = owner.pool.upgrade()
        {
            PayloadPool(free).put_back(owner);
        }
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self::empty()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} octets)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_clone_returns_the_memory() {
        let pool = PayloadPool::new();
        let payload = pool.copy(&[1, 2, 3, 4]);
        let address = payload.as_slice().as_ptr();
        let part = payload.slice(1..3);
        drop(payload);
        assert_eq!(part.as_slice(), [2, 3]);
        drop(part);
        let again = pool.copy(&[9]);
        assert_eq!(again.as_slice().as_ptr(), address);
    }

    #[test]
    fn a_pool_that_nobody_uses_frees_its_buffers() {
        let pool = PayloadPool::new();
        let (kept, outliving) = (pool.copy(&[1]), pool.copy(&[2]));
        drop(kept);
        let free = Arc::downgrade(&pool.0);
        drop(pool);
        assert_eq!(free.strong_count(), 0);
        assert_eq!(outliving.as_slice(), [2]);
    }

    #[test]
    fn of_two_clones_dropped_at_once_one_returns_the_memory() {
        let pool = PayloadPool::new();
        for round in 0..2000u32 {
            let payload = pool.copy(&round.to_le_bytes());
            let other = payload.clone();
            std::thread::scope(|scope| {
                scope.spawn(move || drop(other));
                drop(payload);
            });
            assert_eq!(pool.0.lock().unwrap().buffers.len(), 1, "round {round}");
        }
    }

    #[test]
    fn slices_are_clipped() {
        let payload = Payload::from_vec(vec![1, 2, 3]);
        assert_eq!(payload.slice(1..99).as_slice(), [2, 3]);
        assert!(payload.slice(7..9).is_empty());
    }
}
