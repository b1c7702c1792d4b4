//! Samples that arrive in fragments (RTPS 2.5 §8.3.8.3, §8.4.14).
//!
//! The first fragment fixes the geometry of its sample. Memory grows with the octets that arrive, not
//! with the size a header claims; what is counted is all of it, not the octets alone.

use std::collections::BTreeMap;

use super::change::{Change, Incoming};
use crate::copying;
use crate::payload::{PayloadBuffer, PayloadPool};
use crate::seq::{FragmentNumber, FragmentSet, SequenceNumber};
use crate::stats::DropReason;
use crate::time::{Duration, Instant};
use crate::tuning::reader::{
    ALLOCATION_ROUNDING_BYTES, FRAGMENT_BITMAP_WORDS_MIN, FRAGMENT_MEMORY_FACTOR, FRAGMENT_MEMORY_FREE_BYTES,
    FRAGMENTS_MAX, INCOMPLETE_SAMPLES_MAX, TREE_NODE_TIMES,
};
use crate::wire::DataFrag;

/// What one incomplete sample takes beside its octets and its bitmap. A node of the tree may be half empty;
/// an allocator rounds up.
const SAMPLE_BYTES: usize = TREE_NODE_TIMES * (size_of::<Reassembly>() + size_of::<i64>())
    + PayloadBuffer::BOOKKEEPING_BYTES
    + ALLOCATION_ROUNDING_BYTES;

/// The number of an incomplete sample, and when its first and its latest fragment arrived.
pub(super) type Age = (SequenceNumber, Instant, Instant);

/// Incomplete samples of one writer.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    samples: BTreeMap<i64, Reassembly>,
    bytes: usize,
}

struct Reassembly {
    fragment_bytes: u16,
    sample_bytes: u32,
    /// Everything but the payload.
    change: Change<'static>,
    buffer: PayloadBuffer,
    /// Bit n: fragment n + 1 is here.
    received: Vec<u64>,
    received_fragments: u32,
    received_bytes: usize,
    /// Fragments 1 to this one are here.
    prefix: u32,
    /// What this sample counts for in the budget.
    reserved_bytes: usize,
    /// When its first and its latest fragment arrived.
    started: Instant,
    heard: Instant,
}

impl Fragments {
    /// Octets held, with what it takes to hold them.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether some fragments of `number` are here, but not all.
    pub(super) fn contains(&self, number: SequenceNumber) -> bool {
        self.samples.contains_key(&number.0)
    }

    /// The incomplete samples up to `last`, in order.
    pub(super) fn incomplete(&self, last: SequenceNumber) -> impl Iterator<Item = SequenceNumber> + '_ {
        self.samples.range(..=last.0).map(|(number, _)| SequenceNumber(*number))
    }

    /// Forgets the sample of `fragment` when that is cut otherwise and nothing came of it for `stalled`:
    /// the way from its writer has changed, and with it the size of datagrams.
    pub(super) fn forget_recut(&mut self, fragment: &DataFrag<'_>, now: Instant, stalled: Duration) {
        let number = fragment.sequence_number.0;
        if let Some(sample) = self.samples.get(&number)
            && sample.fragment_bytes != fragment.fragment_bytes
            && now.since(sample.heard) >= stalled
        {
            self.take(number);
        }
    }

    /// Octets the store would grow by when `fragment` is added.
    ///
    /// # Errors
    /// When it disagrees with the first fragment of its sample, or is too far ahead of it.
    pub(super) fn growth(&self, fragment: &DataFrag<'_>) -> Result<usize, DropReason> {
        let total = fragments_of(fragment)?;
        let sample = self.samples.get(&fragment.sequence_number.0);
        if let Some(sample) = sample
            && (sample.fragment_bytes != fragment.fragment_bytes
                || sample.sample_bytes != fragment.sample_bytes
                || sample.change.key_only != fragment.key_only)
        {
            return Err(DropReason::FragmentGeometry);
        }
        let last = fragment.first_fragment.checked_add(u32::from(fragment.fragments) - 1);
        let Some(last) = last.filter(|last| *last <= total) else { return Err(DropReason::FragmentGeometry) };
        if sample.is_none() && self.samples.len() >= INCOMPLETE_SAMPLES_MAX {
            return Err(DropReason::BufferFull);
        }
        let needed = needed_bytes(fragment, last, sample)?;
        Ok(needed.saturating_sub(sample.map_or(0, |sample| sample.reserved_bytes)))
    }

    /// Adds `fragment`, whose [`Self::growth`] was found affordable; the first to arrive and the one with
    /// inline QoS bring what is known of the change. Returns the sample when complete.
    pub(super) fn add(
        &mut self,
        fragment: &DataFrag<'_>,
        growth: usize,
        pool: &PayloadPool,
        described: Option<Change<'static>>,
        now: Instant,
    ) -> Result<Option<Change<'static>>, DropReason> {
        let number = fragment.sequence_number.0;
        let total = fragments_of(fragment)?;
        match (described, self.samples.get_mut(&number)) {
            (Some(change), Some(sample)) => sample.change = change,
            (Some(change), None) => self.begin(fragment, change, pool, now),
            (None, _) => {}
        }
        let Some(sample) = self.samples.get_mut(&number) else { return Ok(None) };
        sample.heard = now;
        sample.reserved_bytes += growth;
        self.bytes += growth;
        sample.fill(fragment)?;
        if sample.received_fragments < total {
            return Ok(None);
        }
        let Some(sample) = self.take(number) else { return Ok(None) };
        let mut change = sample.change;
        change.payload = Incoming::Payload(sample.buffer.freeze());
        Ok(Some(change))
    }

    fn begin(&mut self, fragment: &DataFrag<'_>, change: Change<'static>, pool: &PayloadPool, now: Instant) {
        let sample = Reassembly {
            fragment_bytes: fragment.fragment_bytes,
            sample_bytes: fragment.sample_bytes,
            change,
            buffer: pool.take(),
            received: Vec::new(),
            received_fragments: 0,
            received_bytes: 0,
            prefix: 0,
            reserved_bytes: 0,
            started: now,
            heard: now,
        };
        self.samples.insert(fragment.sequence_number.0, sample);
    }

    /// The missing fragments of `number` up to `last` in sets that begin with the first of them; of a sample
    /// of which nothing is here, all.
    pub(super) fn missing(
        &self,
        number: SequenceNumber,
        last: FragmentNumber,
    ) -> impl Iterator<Item = FragmentSet> + '_ {
        let sample = self.samples.get(&number.0);
        let last = sample.map_or(last, |sample| last.min(sample.total()));
        let next = move |from: FragmentNumber| {
            let first = sample.map_or(from, |sample| sample.next_missing(from));
            (first <= last).then_some(first)
        };
        let mut from = sample.map_or(0, |sample| sample.prefix) + 1;
        std::iter::from_fn(move || {
            let first = next(from)?;
            let mut set = FragmentSet::empty(first);
            let mut missing = Some(first);
            while let Some(fragment) = missing.filter(|fragment| set.insert(*fragment)) {
                from = fragment.saturating_add(1);
                missing = next(from);
            }
            Some(set)
        })
    }

    /// Forgets the incomplete samples below `number`.
    pub(super) fn forget_below(&mut self, number: SequenceNumber) {
        while let Some((first, _)) = self.samples.first_key_value()
            && *first < number.0
        {
            let first = *first;
            self.take(first);
        }
    }

    /// Forgets one sample.
    pub(super) fn forget(&mut self, number: SequenceNumber) {
        self.take(number.0);
    }

    /// Whether a fragment of one more sample would be refused.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= INCOMPLETE_SAMPLES_MAX
    }

    /// The sample furthest ahead.
    pub(super) fn last(&self) -> Option<SequenceNumber> {
        self.samples.last_key_value().map(|(number, _)| SequenceNumber(*number))
    }

    /// The oldest sample.
    pub(super) fn first(&self) -> Option<SequenceNumber> {
        self.samples.first_key_value().map(|(number, _)| SequenceNumber(*number))
    }

    /// An incomplete sample: its number, and when its first and its latest fragment arrived.
    pub(super) fn age(&self, number: SequenceNumber) -> Option<Age> {
        self.samples.get(&number.0).map(|sample| (number, sample.started, sample.heard))
    }

    /// How many samples are incomplete.
    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    fn take(&mut self, number: i64) -> Option<Reassembly> {
        let sample = self.samples.remove(&number)?;
        self.bytes -= sample.reserved_bytes;
        Some(sample)
    }
}

/// How many fragments the sample of `fragment` has.
fn fragments_of(fragment: &DataFrag<'_>) -> Result<u32, DropReason> {
    if fragment.fragment_bytes == 0
        || fragment.sample_bytes == 0
        || fragment.first_fragment == 0
        || fragment.fragments == 0
    {
        return Err(DropReason::FragmentGeometry);
    }
    let total = fragment.sample_bytes.div_ceil(u32::from(fragment.fragment_bytes));
    if total > FRAGMENTS_MAX { Err(DropReason::FragmentGeometry) } else { Ok(total) }
}

/// What the sample counts for once `fragment`, which ends with the fragment `last`, is added.
fn needed_bytes(
    fragment: &DataFrag<'_>,
    last: u32,
    sample: Option<&Reassembly>,
) -> Result<usize, DropReason> {
    let sample_bytes = fragment.sample_bytes as usize;
    let start = (fragment.first_fragment - 1) as usize * usize::from(fragment.fragment_bytes);
    let end = (last as usize * usize::from(fragment.fragment_bytes)).min(sample_bytes);
    if fragment.payload.len() < end - start {
        return Err(DropReason::FragmentGeometry);
    }
    let received = sample.map_or(0, |sample| sample.received_bytes) + (end - start);
    let allowed = received.saturating_mul(FRAGMENT_MEMORY_FACTOR).saturating_add(FRAGMENT_MEMORY_FREE_BYTES);
    if end > allowed {
        return Err(DropReason::BufferFull);
    }
    let bitmap = bitmap_words(last) * size_of::<u64>();
    let (room, held_bitmap) = sample.map_or((0, 0), |sample| (sample.room_bytes(), sample.bitmap_bytes()));
    let bookkeeping = SAMPLE_BYTES + bitmap.max(held_bitmap);
    if end <= room {
        return Ok(room + bookkeeping);
    }
    // Doubling keeps the copying linear; once 1/64 is here, the whole sample is affordable.
    Ok(allowed.min(sample_bytes).min((2 * end).max(FRAGMENT_MEMORY_FREE_BYTES)).max(end) + bookkeeping)
}

/// The words a bitmap has that holds the fragment `last`: doubling keeps the copying linear here, too.
fn bitmap_words(last: FragmentNumber) -> usize {
    (last as usize).div_ceil(64).next_power_of_two().max(FRAGMENT_BITMAP_WORDS_MIN)
}

impl Reassembly {
    const fn total(&self) -> u32 {
        self.sample_bytes.div_ceil(self.fragment_bytes as u32)
    }

    fn bitmap_bytes(&self) -> usize {
        self.received.capacity() * size_of::<u64>()
    }

    /// The octets there may be.
    fn room_bytes(&self) -> usize {
        self.reserved_bytes.saturating_sub(SAMPLE_BYTES + self.bitmap_bytes())
    }

    fn has(&self, fragment: FragmentNumber) -> bool {
        let bit = fragment - 1;
        self.received.get((bit / 64) as usize).is_some_and(|word| word & (1 << (bit % 64)) != 0)
    }

    /// The first fragment from `from` on that is not here; it may be beyond the last.
    fn next_missing(&self, from: FragmentNumber) -> FragmentNumber {
        let bit = from - 1;
        let mut index = bit / 64;
        let mut skipped = (1u64 << (bit % 64)) - 1;
        while let Some(word) = self.received.get(index as usize) {
            let missing = !(word | skipped);
            if missing != 0 {
                return index * 64 + missing.trailing_zeros() + 1;
            }
            (index, skipped) = (index + 1, 0);
        }
        from.max(index * 64 + 1)
    }

    fn fill(&mut self, fragment: &DataFrag<'_>) -> Result<(), DropReason> {
        let piece_bytes = usize::from(self.fragment_bytes);
        let last = fragment.first_fragment + (u32::from(fragment.fragments) - 1);
        let words = (last as usize).div_ceil(64);
        if self.received.len() < words {
            self.received.reserve_exact(bitmap_words(last) - self.received.len());
            self.received.resize(words, 0);
        }
        let capacity = self.room_bytes().min(self.sample_bytes as usize);
        let bytes = self.buffer.bytes_mut();
        if bytes.capacity() < capacity {
            bytes.reserve_exact(capacity - bytes.len());
        }
        if self.received_fragments == self.prefix && fragment.first_fragment == self.prefix + 1 {
            return self.continue_with(fragment, last);
        }
        let mut new_fragments = 0;
        for (number, piece) in (fragment.first_fragment..=last).zip(fragment.payload.chunks(piece_bytes)) {
            let bit = number - 1;
            let Some(word) = self.received.get_mut((bit / 64) as usize) else { break };
            if *word & (1 << (bit % 64)) != 0 {
                continue;
            }
            *word |= 1 << (bit % 64);
            let start = bit as usize * piece_bytes;
            let piece_len = piece_bytes.min(self.sample_bytes as usize - start);
            let piece = piece.get(..piece_len).ok_or(DropReason::FragmentGeometry)?;
            place(bytes, start, piece);
            self.received_bytes += piece_len;
            new_fragments += 1;
        }
        self.received_fragments += new_fragments;
        while self.has(self.prefix + 1) {
            self.prefix += 1;
        }
        if new_fragments == 0 { Err(DropReason::Duplicate) } else { Ok(()) }
    }

    /// Adds fragments up to `last`, whose words are there, in one piece: those before them are here, and none
    /// behind.
    fn continue_with(&mut self, fragment: &DataFrag<'_>, last: FragmentNumber) -> Result<(), DropReason> {
        let piece_bytes = usize::from(self.fragment_bytes);
        let start = self.prefix as usize * piece_bytes;
        let end = (last as usize * piece_bytes).min(self.sample_bytes as usize);
        let piece = end.checked_sub(start).and_then(|bytes| fragment.payload.get(..bytes));
        place(self.buffer.bytes_mut(), start, piece.ok_or(DropReason::FragmentGeometry)?);
        for bit in self.prefix..last {
            if let Some(word) = self.received.get_mut((bit / 64) as usize) {
                *word |= 1 << (bit % 64);
            }
        }
        self.received_bytes += end - start;
        (self.received_fragments, self.prefix) = (last, last);
        Ok(())
    }
}

/// Writes `piece` at `start`, filling a hole before it with zeros.
fn place(bytes: &mut Vec<u8>, start: usize, piece: &[u8]) {
    if bytes.len() < start {
        bytes.resize(start, 0);
    }
    let overlap = (bytes.len() - start).min(piece.len());
    let (inside, beyond) = piece.split_at(overlap);
    if let Some(target) = bytes.get_mut(start..start + overlap) {
        copying::copy(target, inside);
    }
    copying::append(bytes, beyond);
}

impl std::fmt::Debug for Reassembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reassembly({} of {} fragments)", self.received_fragments, self.total())
    }
}
