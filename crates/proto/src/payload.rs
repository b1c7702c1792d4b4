//! Octets of one sample: short ones in place, longer ones counted by reference, and the pool that lends and
//! takes back their memory.
//!
//! One payload serves history, datagrams, retransmission and local readers; cloning one that is shared never
//! allocates, and the last clone returns the memory to its pool. Octets that are few are cheaper to copy than
//! to count: they need no pool, no lock and no atomic operation. Readers copy somewhat more of them, too,
//! into memory that stays where it is used again. Octets that a transport shares with another process stay
//! where they are, too (`region`).

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

mod region;

pub use region::Region;
pub(crate) use region::RegionOctets;

use crate::copying;
use crate::tuning::memory::{
    PAYLOAD_COPIED_BYTES_MAX, PAYLOAD_IN_PLACE_BYTES_MAX, PAYLOAD_PLACES_KEPT, POOL_BUFFER_BYTES_MAX,
    POOL_BUFFERS_MAX, POOL_BYTES_MAX, POOL_LARGE_BUFFERS_MAX, POOL_LARGE_BYTES, POOL_LOOKS,
};

/// A range of octets that everyone who needs the same sample has.
pub struct Payload(Octets);

/// So many octets are kept in place: a payload takes 128 with them.
pub const SHORT_BYTES_MAX: usize = PAYLOAD_IN_PLACE_BYTES_MAX;

/// So many octets cost less to copy than to share among history and datagrams.
pub const COPIED_BYTES_MAX: usize = PAYLOAD_COPIED_BYTES_MAX;

enum Octets {
    None,
    Short {
        start: u8,
        end: u8,
        bytes: [u8; SHORT_BYTES_MAX],
    },
    /// A place of its own, which stays when the octets leave it.
    Own(Vec<u8>),
    Shared(SharedOctets),
    /// Not in the heap.
    Region(RegionOctets),
}

/// A range of a buffer that others may use, too. Clones count; the last to go returns the buffer to its pool.
pub(crate) struct SharedOctets {
    /// Always there; an option, so that it can leave when this is dropped.
    owner: Option<Arc<Buffer>>,
    start: usize,
    end: usize,
}

/// A part of a payload that somebody keeps.
pub(crate) enum Part {
    Buffer(SharedOctets),
    Region(Box<RegionOctets>),
}

/// The octets of a sample, wherever they are kept.
#[derive(Clone, Copy, Debug)]
pub enum PayloadView<'a> {
    /// Few, among others.
    Octets(&'a [u8]),
    /// A payload, of which there may be other users.
    Payload(&'a Payload),
}

/// What a change to be written has.
#[derive(Debug)]
pub enum NewPayload<'a> {
    /// Few octets, which are copied.
    Octets(&'a [u8]),
    /// A payload, which is taken away when the change is written.
    Payload(&'a mut Payload),
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

impl PayloadPool {
    /// An empty pool.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(FreeBuffers::default())))
    }

    /// An empty buffer; its memory is reused when some is at hand.
    #[must_use]
    pub fn take(&self) -> PayloadBuffer {
        let reused = self.reuse();
        PayloadBuffer(reused.unwrap_or_else(|| Arc::new(Buffer::new(Vec::new(), Arc::downgrade(&self.0)))))
    }

    /// A payload holding a copy of `bytes`.
    #[must_use]
    pub fn copy(&self, bytes: &[u8]) -> Payload {
        let mut payload = Payload::empty();
        self.copy_to(bytes, &mut payload);
        payload
    }

    /// Makes `payload` a copy of `bytes`. Short ones are written where they stay: moving one costs more than
    /// copying it.
    #[inline]
    pub fn copy_to(&self, bytes: &[u8], payload: &mut Payload) {
        if bytes.len() <= SHORT_BYTES_MAX {
            payload.set_short(bytes);
            return;
        }
        let mut buffer = self.take();
        copying::append(buffer.bytes_mut(), bytes);
        *payload = buffer.freeze();
    }

    /// The buffer returned last, whose memory is warm, or an older one when that is not quite let go of.
    fn reuse(&self) -> Option<Arc<Buffer>> {
        count_lock();
        let mut free = self.0.lock().ok()?;
        let FreeBuffers { buffers, bytes } = &mut *free;
        for back in 1..=POOL_LOOKS.min(buffers.len()) {
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
        let kept = if bytes > POOL_LARGE_BYTES {
            free.buffers.len() < POOL_LARGE_BUFFERS_MAX || free.bytes + bytes <= POOL_BYTES_MAX
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
    /// What a buffer takes beside its octets.
    pub(crate) const BOOKKEEPING_BYTES: usize = size_of::<Buffer>() + 2 * size_of::<usize>();

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
        Payload(Octets::Shared(SharedOctets { owner: Some(self.0), start: 0, end }))
    }
}

impl Payload {
    /// No octets.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Octets::None)
    }

    /// A copy of at most [`SHORT_BYTES_MAX`] octets, which belongs to no pool.
    #[must_use]
    pub fn short(octets: &[u8]) -> Option<Self> {
        let mut payload = Self::empty();
        (octets.len() <= SHORT_BYTES_MAX).then(|| {
            payload.set_short(octets);
            payload
        })
    }

    /// Becomes a copy of the first [`SHORT_BYTES_MAX`] octets. Where short octets were before, no others are
    /// touched.
    #[inline]
    fn set_short(&mut self, octets: &[u8]) {
        if !matches!(self.0, Octets::Short { .. }) {
            *self = Self(Octets::Short { start: 0, end: 0, bytes: [0; SHORT_BYTES_MAX] });
        }
        if let Octets::Short { start, end, bytes } = &mut self.0 {
            let length = octets.len().min(SHORT_BYTES_MAX);
            (*start, *end) = (0, length as u8);
            if let (Some(place), Some(octets)) = (bytes.get_mut(..length), octets.get(..length)) {
                copying::copy_few(place, octets);
            }
        }
    }

    /// Becomes a copy of octets that are few, or not too many for a place of their own.
    #[inline]
    pub(crate) fn copy_few(&mut self, octets: &[u8]) {
        if octets.len() <= SHORT_BYTES_MAX {
            self.set_short(octets);
        } else if let Octets::Own(place) = &mut self.0 {
            place.clear();
            place.extend_from_slice(octets);
        } else {
            *self = Self(Octets::Own(octets.to_vec()));
        }
    }

    /// Moves the octets to `place`. Short ones are copied, which costs less, and stay; places are exchanged.
    #[inline]
    pub(crate) fn hand_over(&mut self, place: &mut Self) {
        match &mut self.0 {
            Octets::Short { start, end, bytes } => {
                place.set_short(bytes.get(usize::from(*start)..usize::from(*end)).unwrap_or(&[]));
            }
            Octets::Own(own) => match &mut place.0 {
                Octets::Own(other) => std::mem::swap(own, other),
                _ => *place = std::mem::take(self),
            },
            Octets::None => *place = Self::empty(),
            Octets::Shared(_) | Octets::Region(_) => *place = std::mem::take(self),
        }
    }

    /// Makes `place` the same.
    #[inline]
    pub(crate) fn copy_over(&self, place: &mut Self) {
        match &self.0 {
            Octets::Short { .. } | Octets::Own(_) => place.copy_few(self.as_slice()),
            Octets::None | Octets::Shared(_) | Octets::Region(_) => *place = self.clone(),
        }
    }

    /// Lets go of memory that others may use; short octets stay, for others to take their place. The payload
    /// is the one at `index` of several, whose first are used again soonest: those keep places of their own.
    #[inline]
    pub(crate) fn vacate(&mut self, index: usize) {
        if matches!(self.0, Octets::Shared(_) | Octets::Region(_))
            || index >= PAYLOAD_PLACES_KEPT && matches!(self.0, Octets::Own(_))
        {
            *self = Self::empty();
        }
    }

    /// A payload that owns `bytes` and belongs to no pool.
    #[must_use]
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        let buffer = Buffer::new(bytes, Weak::new());
        buffer.users.store(1, Ordering::Relaxed);
        Self(Octets::Shared(SharedOctets { owner: Some(Arc::new(buffer)), start: 0, end }))
    }

    /// The octets.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Octets::None => None,
            Octets::Short { start, end, bytes } => bytes.get(usize::from(*start)..usize::from(*end)),
            Octets::Own(bytes) => Some(&**bytes),
            Octets::Shared(shared) => Some(shared.as_slice()),
            Octets::Region(part) => Some(part.as_slice()),
        }
        .unwrap_or(&[])
    }

    /// The same octets, narrowed to `range` of this payload and clipped to its length.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        if let Octets::Own(bytes) = &self.0 {
            return PayloadView::Octets(bytes).slice(range);
        }
        let mut part = self.clone();
        match &mut part.0 {
            Octets::None | Octets::Own(_) => {}
            Octets::Short { start, end, .. } => {
                let narrowed = narrow(usize::from(*start)..usize::from(*end), &range);
                // Neither is beyond what there was before.
                (*start, *end) = (narrowed.start as u8, narrowed.end as u8);
            }
            Octets::Shared(shared) => shared.narrow(&range),
            Octets::Region(part) => part.narrow(&range),
        }
        part
    }

    /// `part` of the octets, as who keeps it shares it with others; `None` where they are not shared, or
    /// `part` is none of them.
    pub(crate) fn part(&self, part: &[u8]) -> Option<Part> {
        let start = part.as_ptr().addr().checked_sub(self.as_slice().as_ptr().addr())?;
        let range = start..start.checked_add(part.len())?;
        let part = match &self.0 {
            _ if range.end > self.len() => return None,
            Octets::Shared(shared) => {
                let mut shared = shared.clone();
                shared.narrow(&range);
                Part::Buffer(shared)
            }
            Octets::Region(region) => {
                let mut region = region.clone();
                region.narrow(&range);
                Part::Region(Box::new(region))
            }
            Octets::None | Octets::Short { .. } | Octets::Own(_) => return None,
        };
        Some(part)
    }

    /// Length in octets.
    #[must_use]
    pub const fn len(&self) -> usize {
        match &self.0 {
            Octets::None => 0,
            Octets::Short { start, end, .. } => (*end - *start) as usize,
            Octets::Own(bytes) => bytes.len(),
            Octets::Shared(shared) => shared.end - shared.start,
            Octets::Region(part) => part.end - part.start,
        }
    }

    /// Whether there are no octets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> PayloadView<'a> {
    /// The octets.
    #[must_use]
    pub fn as_slice(self) -> &'a [u8] {
        match self {
            Self::Octets(octets) => octets,
            Self::Payload(payload) => payload.as_slice(),
        }
    }

    /// Length in octets.
    #[must_use]
    pub const fn len(self) -> usize {
        match self {
            Self::Octets(octets) => octets.len(),
            Self::Payload(payload) => payload.len(),
        }
    }

    /// Whether there are no octets.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The same octets as a payload, which outlives where they are kept.
    #[must_use]
    pub fn to_payload(self) -> Payload {
        match self {
            Self::Octets(octets) => {
                Payload::short(octets).unwrap_or_else(|| Payload::from_vec(copying::copied(octets)))
            }
            Self::Payload(payload) => payload.clone(),
        }
    }

    /// As [`Payload::slice`].
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Payload {
        match self {
            Self::Octets(octets) => {
                Self::Octets(octets.get(narrow(0..octets.len(), &range)).unwrap_or(&[])).to_payload()
            }
            Self::Payload(payload) => payload.slice(range),
        }
    }
}

impl<'a> From<&'a Payload> for PayloadView<'a> {
    fn from(payload: &'a Payload) -> Self {
        Self::Payload(payload)
    }
}

impl<'a> NewPayload<'a> {
    /// The octets that are copied: they stay where they are.
    #[must_use]
    pub const fn octets(&self) -> Option<&'a [u8]> {
        match self {
            Self::Octets(octets) => Some(octets),
            Self::Payload(_) => None,
        }
    }

    /// The same once more, for another try.
    #[must_use]
    pub const fn again(&mut self) -> NewPayload<'_> {
        match self {
            Self::Octets(octets) => NewPayload::Octets(octets),
            Self::Payload(payload) => NewPayload::Payload(payload),
        }
    }

    /// The octets.
    #[must_use]
    pub const fn view(&self) -> PayloadView<'_> {
        match self {
            Self::Octets(octets) => PayloadView::Octets(octets),
            Self::Payload(payload) => PayloadView::Payload(payload),
        }
    }
}

/// The part of `whole` that `range`, which counts from its start, names.
fn narrow(whole: Range<usize>, range: &Range<usize>) -> Range<usize> {
    let end = whole.start.saturating_add(range.end).min(whole.end);
    let start = whole.start.saturating_add(range.start).min(end);
    start..end
}

impl Buffer {
    const fn new(bytes: Vec<u8>, pool: Weak<Free>) -> Self {
        Self { bytes, users: AtomicUsize::new(0), pool }
    }
}

impl Clone for Payload {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Octets::None => Octets::None,
            Octets::Short { start, end, bytes } => Octets::Short { start: *start, end: *end, bytes: *bytes },
            Octets::Own(bytes) => Octets::Own(bytes.clone()),
            Octets::Shared(shared) => Octets::Shared(shared.clone()),
            Octets::Region(part) => Octets::Region(part.clone()),
        })
    }
}

impl SharedOctets {
    /// The octets.
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.owner.as_ref().and_then(|owner| owner.bytes.get(self.start..self.end)).unwrap_or(&[])
    }

    fn narrow(&mut self, range: &Range<usize>) {
        let narrowed = narrow(self.start..self.end, range);
        (self.start, self.end) = (narrowed.start, narrowed.end);
    }
}

impl Clone for SharedOctets {
    fn clone(&self) -> Self {
        if let Some(owner) = &self.owner {
            owner.users.fetch_add(1, Ordering::Relaxed);
        }
        Self { owner: self.owner.clone(), start: self.start, end: self.end }
    }
}

impl Drop for SharedOctets {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take()
            && owner.users.fetch_sub(1, Ordering::AcqRel) == 1
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

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} octets)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Too long to be kept in place.
    const LONG: usize = SHORT_BYTES_MAX + 1;

    #[test]
    fn octets_that_are_few_are_kept_in_place() {
        assert_eq!(size_of::<Payload>(), 128);
        let pool = PayloadPool::new();
        let payload = pool.copy(&[7; SHORT_BYTES_MAX]);
        let (copy, part) = (payload.clone(), payload.slice(2..5));
        drop(payload);
        assert_eq!((copy.as_slice(), part.as_slice()), (&[7; SHORT_BYTES_MAX][..], &[7; 3][..]));
        drop((copy, part));
        assert!(pool.0.lock().unwrap().buffers.is_empty(), "no memory of the pool was used");
        assert!(Payload::short(&[7; LONG]).is_none());
    }

    #[test]
    fn the_last_clone_returns_the_memory() {
        let pool = PayloadPool::new();
        let payload = pool.copy(&[1; LONG]);
        let address = payload.as_slice().as_ptr();
        let part = payload.slice(1..3);
        drop(payload);
        assert_eq!(part.as_slice(), [1, 1]);
        drop(part);
        let again = pool.copy(&[9; LONG]);
        assert_eq!(again.as_slice().as_ptr(), address);
    }

    #[test]
    fn a_pool_takes_no_memory_before_it_is_used() {
        assert_eq!(PayloadPool::new().0.lock().unwrap().buffers.capacity(), 0);
    }

    #[test]
    fn a_pool_that_nobody_uses_frees_its_buffers() {
        let pool = PayloadPool::new();
        let (kept, outliving) = (pool.copy(&[1; LONG]), pool.copy(&[2; LONG]));
        drop(kept);
        let free = Arc::downgrade(&pool.0);
        drop(pool);
        assert_eq!(free.strong_count(), 0);
        assert_eq!(outliving.as_slice(), [2; LONG]);
    }

    #[test]
    fn of_two_clones_dropped_at_once_one_returns_the_memory() {
        let pool = PayloadPool::new();
        for round in 0..2000u32 {
            let payload = pool.copy(&[round as u8; LONG]);
            let other = payload.clone();
            std::thread::scope(|scope| {
                scope.spawn(move || drop(other));
                drop(payload);
            });
            assert_eq!(pool.0.lock().unwrap().buffers.len(), 1, "round {round}");
        }
    }

    #[test]
    fn places_are_exchanged_and_the_first_are_kept() {
        let (mut slot, mut taken) = (Payload::empty(), Payload::empty());
        let mut places = Vec::new();
        for round in 0..4_u8 {
            slot.copy_few(&[round; LONG]);
            slot.hand_over(&mut taken);
            assert_eq!(taken.as_slice(), [round; LONG]);
            places.push(taken.as_slice().as_ptr());
            taken.vacate(0);
            slot.vacate(0);
        }
        assert_eq!(places[..2], places[2..], "two places, by turns");
        taken.vacate(PAYLOAD_PLACES_KEPT);
        assert!(taken.is_empty());
        slot.copy_few(&[7; SHORT_BYTES_MAX]);
        slot.copy_over(&mut taken);
        assert_eq!(taken, slot);
    }

    #[test]
    fn slices_are_clipped() {
        let (payload, mut own) = (Payload::from_vec(vec![1, 2, 3]), Payload::empty());
        own.copy_few(&[[1, 2, 3].as_slice(), &[0; LONG]].concat());
        assert_eq!(own.slice(1..3).as_slice(), [2, 3]);
        assert_eq!(own.slice(LONG..999).len(), 3);
        for payload in [payload, Payload::short(&[1, 2, 3]).unwrap()] {
            assert_eq!(payload.slice(1..99).as_slice(), [2, 3]);
            assert_eq!(payload.slice(1..3).slice(1..9).as_slice(), [3]);
            assert!(payload.slice(7..9).is_empty());
        }
    }
}
