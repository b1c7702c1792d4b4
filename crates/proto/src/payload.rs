//! Reference-counted octets of one sample, and the pool that lends and takes back their memory.
//!
//! One payload serves history, datagrams, retransmission and local readers; cloning never allocates,
//! and the last clone returns the memory to its pool.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, Weak};

/// A range of octets shared by everyone who needs the same sample.
#[derive(Clone)]
pub struct Payload {
    owner: Option<Arc<Buffer>>,
    start: usize,
    end: usize,
}

/// A buffer being filled, before it becomes a [`Payload`].
pub struct PayloadBuffer(Arc<Buffer>);

/// Lends buffers and takes them back, so that the steady state allocates nothing.
#[derive(Clone, Default)]
pub struct PayloadPool(Arc<Free>);

/// Buffers that nobody uses.
type Free = Mutex<Vec<Arc<Buffer>>>;

struct Buffer {
    bytes: Vec<u8>,
    /// Weak, lest a pool keep itself alive through the buffers it keeps.
    pool: Weak<Free>,
}

/// Buffers a pool keeps at most; the rest is freed.
const POOL_BUFFERS_MAX: usize = 1024;
/// Larger buffers are not kept: a rare image must not pin its memory for ever.
const POOL_BUFFER_BYTES_MAX: usize = 8 << 20;
/// Kept buffers together hold at most this much beyond what is small.
const POOL_LARGE_BUFFERS_MAX: usize = 8;
const LARGE_BYTES: usize = 64 << 10;

impl PayloadPool {
    /// An empty pool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty buffer; its memory is reused when some is at hand.
    #[must_use]
    pub fn take(&self) -> PayloadBuffer {
        let reused = self.0.lock().ok().and_then(|mut free| free.pop());
        PayloadBuffer(
            reused.unwrap_or_else(|| Arc::new(Buffer { bytes: Vec::new(), pool: Arc::downgrade(&self.0) })),
        )
    }

    /// A payload holding a copy of `bytes`.
    #[must_use]
    pub fn copy(&self, bytes: &[u8]) -> Payload {
        let mut buffer = self.take();
        buffer.bytes_mut().extend_from_slice(bytes);
        buffer.freeze()
    }

    fn put_back(&self, mut buffer: Arc<Buffer>) {
        let Some(inner) = Arc::get_mut(&mut buffer) else { return };
        inner.bytes.clear();
        let large = inner.bytes.capacity() > LARGE_BYTES;
        if inner.bytes.capacity() > POOL_BUFFER_BYTES_MAX {
            return;
        }
        let Ok(mut free) = self.0.lock() else { return };
        let kept_max = if large { POOL_LARGE_BUFFERS_MAX } else { POOL_BUFFERS_MAX };
        if free.len() < kept_max {
            free.push(buffer);
        }
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
        Self { owner: Some(Arc::new(Buffer { bytes, pool: Weak::new() })), start: 0, end }
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
        Self { owner: self.owner.clone(), start, end }
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

impl Drop for Payload {
    fn drop(&mut self) {
        let Some(mut owner) = self.owner.take() else { return };
        if let Some(buffer) = Arc::get_mut(&mut owner)
            && let Some(free) = buffer.pool.upgrade()
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
    fn slices_are_clipped() {
        let payload = Payload::from_vec(vec![1, 2, 3]);
        assert_eq!(payload.slice(1..99).as_slice(), [2, 3]);
        assert!(payload.slice(7..9).is_empty());
    }
}
