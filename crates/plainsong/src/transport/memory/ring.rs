//! A ring of records, a ring of released slots, and the word by which a receiver says that it sleeps.
//!
//! Each has one who writes and one who reads, in different processes. The one who writes does so in memory of
//! its own, and publishes by one word, after all else is written: killed at any instruction, it leaves
//! nothing half-said. How far was read stands in memory of the one who reads. Positions are octets since the
//! beginning, and are never reduced: what a peer says of them is believed only where it differs from what was
//! last known by no more than there is room for.
//!
//! A record is: a word of its length and kind; for one with an attachment three words more; its octets; and
//! what fills the last word. Records go around the end of the ring as if it had none.
//!
//! No wake-up is lost: the receiver writes `SLEEPING`, then looks at the ring; the sender writes to the ring,
//! then looks at `SLEEPING`. A full fence stands between the two on either side ([`before_last_look`],
//! [`PeerSleep::must_wake`]), so at least one of them sees what the other one wrote.

use std::sync::atomic::{Ordering, fence};

use thiserror::Error;

use super::layout::{CONSUMED, HEAD, LENT_MAX, RELEASED, RELEASES, RING, SLEEPING};
use super::segment::{Memory, OwnMemory};

const WORD: usize = 8;
const ATTACHMENT_WORDS: usize = 3;
const PLAIN: u32 = 1;
const ATTACHED: u32 = 2;

/// What a peer cannot have written if it follows the rules: its link is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Corrupt {
    #[error("more was put into the ring than it takes")]
    Head,
    #[error("more was taken out of the ring than was put in, or less than before")]
    Consumed,
    #[error("a record has a length that it cannot have")]
    Length,
    #[error("a record is of no kind")]
    Kind,
    #[error("more slots were released than there are")]
    Releases,
}

/// Why a record is not in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum PushError {
    #[error("the ring is full")]
    Full,
    #[error("no ring of this size takes so long a record")]
    TooLong,
    #[error("{0}")]
    Corrupt(#[from] Corrupt),
}

/// Where the payload of a record is: in a chunk of a slab of the sender, which it lends until the slot is
/// released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) slab: u32,
    pub(crate) slot: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// A record that was taken out of a ring; its octets are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) attachment: Option<Attachment>,
}

/// Octets of the longest record that a ring of so many takes, with an attachment or without. It is never
/// waited for in vain: half of the ring is there at some time.
pub(crate) const fn record_bytes_max(ring_bytes: usize) -> usize {
    ring_bytes / 2 - (1 + ATTACHMENT_WORDS) * WORD
}

/// Octets that a record takes in its ring.
#[inline]
const fn taken(bytes: usize, is_attached: bool) -> usize {
    let words = if is_attached { 1 + ATTACHMENT_WORDS } else { 1 };
    words * WORD + bytes.next_multiple_of(WORD)
}

/// The end of a ring that puts records in: in the own segment.
#[derive(Debug)]
pub(crate) struct RingProducer {
    ring_bytes: usize,
    head: u64,
    /// As far as is known.
    consumed: u64,
}

impl RingProducer {
    /// For a new segment with a ring of so many octets, a power of two.
    pub(crate) const fn new(ring_bytes: usize) -> Self {
        Self { ring_bytes, head: 0, consumed: 0 }
    }

    /// Puts a record in, whose octets are those of `parts`, `bytes` together, and tells the receiver.
    ///
    /// # Errors
    /// There is no room now, or never; or the peer claims to have read what it cannot have.
    pub(crate) fn push<'a>(
        &mut self,
        own: &impl OwnMemory,
        peer: &impl Memory,
        parts: impl Iterator<Item = &'a [u8]>,
        bytes: usize,
        attachment: Option<&Attachment>,
    ) -> Result<(), PushError> {
        if bytes > record_bytes_max(self.ring_bytes) {
            return Err(PushError::TooLong);
        }
        let taken = taken(bytes, attachment.is_some());
        if taken > self.room() {
            self.look(peer)?;
            if taken > self.room() {
                return Err(PushError::Full);
            }
        }
        let kind = if attachment.is_some() { ATTACHED } else { PLAIN };
        self.put_word(own, 0, bytes as u64 | u64::from(kind) << 32);
        let mut at = WORD;
        if let Some(attachment) = attachment {
            self.put_word(own, WORD, u64::from(attachment.slab) | u64::from(attachment.slot) << 32);
            self.put_word(own, 2 * WORD, attachment.offset);
            self.put_word(own, 3 * WORD, attachment.bytes);
            at += ATTACHMENT_WORDS * WORD;
        }
        let end = at + bytes;
        for part in parts {
            debug_assert!(part.len() <= end - at, "the parts are as long as was said");
            let part = &part[..part.len().min(end - at)];
            self.put(own, at, part);
            at += part.len();
        }
        debug_assert_eq!(at, end, "the parts are as long as was said");
        self.head += taken as u64;
        own.release64(HEAD, self.head);
        Ok(())
    }

    /// Octets that are not read yet, as far as is known.
    pub(crate) const fn used(&self) -> usize {
        (self.head - self.consumed) as usize
    }

    const fn room(&self) -> usize {
        self.ring_bytes - self.used()
    }

    /// Finds out how far the peer has read. What it has read may be written over from then on.
    ///
    /// # Errors
    /// It claims what it cannot have done.
    pub(crate) fn look(&mut self, peer: &impl Memory) -> Result<(), Corrupt> {
        let consumed = peer.acquire64(CONSUMED);
        if !(self.consumed..=self.head).contains(&consumed) || !consumed.is_multiple_of(WORD as u64) {
            return Err(Corrupt::Consumed);
        }
        self.consumed = consumed;
        Ok(())
    }

    #[inline]
    const fn place(&self, at: usize) -> usize {
        (self.head as usize).wrapping_add(at) & (self.ring_bytes - 1)
    }

    #[inline]
    fn put_word(&self, own: &impl OwnMemory, at: usize, word: u64) {
        own.store64(RING + self.place(at), word);
    }

    #[inline]
    fn put(&self, own: &impl OwnMemory, at: usize, octets: &[u8]) {
        let place = self.place(at);
        let (first, rest) = octets.split_at(octets.len().min(self.ring_bytes - place));
        own.copy_in(RING + place, first);
        if !rest.is_empty() {
            own.copy_in(RING, rest);
        }
    }
}

/// The end of a ring that takes records out: of a peer's segment.
#[derive(Debug)]
pub(crate) struct RingConsumer {
    ring_bytes: usize,
    /// As far as is known.
    head: u64,
    consumed: u64,
}

impl RingConsumer {
    /// For a new segment of a peer, with a ring of so many octets, as its checked header says.
    pub(crate) const fn new(ring_bytes: usize) -> Self {
        Self { ring_bytes, head: 0, consumed: 0 }
    }

    /// Takes the next record out, its octets into `into` and nothing else. The sender has the room again when
    /// that was [published](Self::publish).
    pub(crate) fn pop(&mut self, peer: &impl Memory, into: &mut Vec<u8>) -> Option<Result<Record, Corrupt>> {
        into.clear();
        if self.consumed == self.head {
            match self.look(peer) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(corrupt) => return Some(Err(corrupt)),
            }
        }
        Some(self.take(peer, into))
    }

    /// Whether there is a record, now, or something corrupt: [`pop`](Self::pop) tells which. To be looked at
    /// last before sleeping: see [`before_last_look`].
    pub(crate) fn has_more(&self, peer: &impl Memory) -> bool {
        self.consumed != self.head || peer.acquire64(HEAD) != self.head
    }

    /// Tells the sender how far was read.
    pub(crate) fn publish(&self, own: &impl OwnMemory) {
        own.release64(CONSUMED, self.consumed);
    }

    /// Whether there is something that was not known.
    fn look(&mut self, peer: &impl Memory) -> Result<bool, Corrupt> {
        let head = peer.acquire64(HEAD);
        let more = head.checked_sub(self.consumed).ok_or(Corrupt::Head)?;
        if more > self.ring_bytes as u64 || !more.is_multiple_of(WORD as u64) {
            return Err(Corrupt::Head);
        }
        self.head = head;
        Ok(more > 0)
    }

    /// Everything is read once, for a peer may change it meanwhile.
    fn take(&mut self, peer: &impl Memory, into: &mut Vec<u8>) -> Result<Record, Corrupt> {
        let word = self.word(peer, 0);
        let (bytes, kind) = (word as u32 as usize, (word >> 32) as u32);
        let is_attached = match kind {
            PLAIN => false,
            ATTACHED => true,
            _ => return Err(Corrupt::Kind),
        };
        let taken = taken(bytes, is_attached);
        if bytes > record_bytes_max(self.ring_bytes) || taken as u64 > self.head - self.consumed {
            return Err(Corrupt::Length);
        }
        let (mut attachment, mut at) = (None, WORD);
        if is_attached {
            let place = self.word(peer, WORD);
            let (slab, slot) = (place as u32, (place >> 32) as u32);
            let (offset, bytes) = (self.word(peer, 2 * WORD), self.word(peer, 3 * WORD));
            attachment = Some(Attachment { slab, slot, offset, bytes });
            at += ATTACHMENT_WORDS * WORD;
        }
        let place = self.place(at);
        let first = bytes.min(self.ring_bytes - place);
        peer.copy_out(RING + place, first, into);
        if first < bytes {
            peer.copy_out(RING, bytes - first, into);
        }
        self.consumed += taken as u64;
        Ok(Record { attachment })
    }

    #[inline]
    const fn place(&self, at: usize) -> usize {
        (self.consumed as usize).wrapping_add(at) & (self.ring_bytes - 1)
    }

    #[inline]
    fn word(&self, peer: &impl Memory, at: usize) -> u64 {
        peer.load64(RING + self.place(at))
    }
}

/// Gives slots back to who lent them: in the own segment.
#[derive(Debug, Default)]
pub(crate) struct ReleaseProducer {
    released: u64,
}

impl ReleaseProducer {
    /// There is always room: a peer lends a slot again only after it has read its release. One that does not
    /// loses releases of its own slots.
    pub(crate) fn push(&mut self, own: &impl OwnMemory, slot: u32) {
        own.store32(place_of_release(self.released), slot);
        self.released += 1;
        own.release64(RELEASED, self.released);
    }
}

/// Reads which slots a peer gives back.
#[derive(Debug, Default)]
pub(crate) struct ReleaseConsumer {
    read: u64,
}

impl ReleaseConsumer {
    /// Hands the slots that were released to `each`, as many as there are at most: whatever numbers the peer
    /// likes.
    ///
    /// # Errors
    /// There are more than it can have had.
    pub(crate) fn drain(&mut self, peer: &impl Memory, mut each: impl FnMut(u32)) -> Result<(), Corrupt> {
        let released = peer.acquire64(RELEASED);
        let more = released.checked_sub(self.read).filter(|more| *more <= LENT_MAX as u64);
        more.ok_or(Corrupt::Releases)?;
        while self.read < released {
            each(peer.load32(place_of_release(self.read)));
            self.read += 1;
        }
        Ok(())
    }
}

const fn place_of_release(number: u64) -> usize {
    RELEASES + (number as usize & (LENT_MAX - 1)) * size_of::<u32>()
}

const _: () = assert!(LENT_MAX.is_power_of_two(), "numbers go around");

/// Says that the owner of this segment is about to sleep, in one segment of many. The epoch is not zero, and
/// another one than that of the sleep before.
pub(crate) fn announce_sleep(own: &impl OwnMemory, epoch: u32) {
    own.store32(SLEEPING, epoch);
}

/// To be called once after all [`announce_sleep`]s, before the rings are [looked at](RingConsumer::has_more)
/// once more. Only if there is nothing in any, it is safe to sleep.
pub(crate) fn before_last_look() {
    fence(Ordering::SeqCst);
}

/// Says that the owner of this segment looks by itself.
pub(crate) fn announce_awake(own: &impl OwnMemory) {
    own.store32(SLEEPING, 0);
}

/// Whether a peer sleeps, and was woken.
#[derive(Debug, Default)]
pub(crate) struct PeerSleep {
    /// The last sleep that it was woken from.
    woken: u32,
}

impl PeerSleep {
    /// Whether it has to be woken now, after something was put into its ring: once for each of its sleeps.
    /// A full fence comes first.
    #[must_use]
    pub(crate) fn must_wake(&mut self, peer: &impl Memory) -> bool {
        fence(Ordering::SeqCst);
        let epoch = peer.load32(SLEEPING);
        let must = epoch != 0 && epoch != self.woken;
        if must {
            self.woken = epoch;
        }
        must
    }
}

#[cfg(test)]
mod tests;
