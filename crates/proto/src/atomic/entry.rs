//! What an ATOMIC writer writes, as its group orders it, and the form that it has on a lane.
//!
//! On a lane an entry is one sample, its head before its octets. Octets that are too many to be copied follow
//! in a sample of their own, as the writer has them: they may be in memory that processes share.

use std::sync::Arc;

use crate::atomic::codec::BodyCodec;
use crate::atomic::{Body, EntryHeader, HistoryKey};
use crate::guid::Guid;
use crate::malformed::Malformed;
use crate::payload::Payload;
use crate::seq::SequenceNumber;
use crate::time::Time;

/// Octets of the head of an entry on a lane.
pub const HEAD_BYTES: usize = 100;
/// Octets of an entry that is sent among others, without what was written.
const ENTRY_BYTES: usize = 56;
/// So many octets of long samples are compared between members.
const DIGEST_BYTES_MAX: usize = 1 << 16;
const KEPT: u8 = 1;
const APART: u8 = 2;
const AWAITED: u8 = 4;

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// New data.
    Data,
    /// The instance is no more.
    Dispose,
    /// The writer has nothing more to say about the instance.
    Unregister,
    /// Both.
    DisposeUnregister,
    /// Nothing: who wrote it knows, when it is delivered, that all before it was.
    Barrier,
}

/// One change of an ATOMIC writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who wrote it.
    pub writer: Guid,
    /// Its number among the changes of that writer.
    pub number: SequenceNumber,
    /// What it does.
    pub kind: EntryKind,
    /// When it was written.
    pub timestamp: Time,
    /// The hash of the key of its instance.
    pub instance: [u8; 16],
    /// So many of its instance are kept for those who join later, 0 for all.
    pub depth: u32,
    /// Whether it is kept for those who join later.
    pub is_kept: bool,
    /// Data, or the serialized key of other kinds.
    pub payload: Payload,
}

/// What stands before the octets of an entry on a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which incarnation of the member has sent it.
    pub nonce: u64,
    /// Where it stands on the lane.
    pub header: EntryHeader,
    /// The octets are in the sample that follows.
    pub is_apart: bool,
    /// Its sender waits to hear that others have it, and not only for room.
    pub is_awaited: bool,
    /// So many they are.
    pub payload_bytes: usize,
    /// The entry, without its octets.
    pub entry: Entry,
}

impl EntryKind {
    const ALL: [Self; 5] =
        [Self::Data, Self::Dispose, Self::Unregister, Self::DisposeUnregister, Self::Barrier];

    fn of(octet: u8) -> Result<Self, Malformed> {
        Self::ALL.get(usize::from(octet)).copied().ok_or(Malformed::InvalidEnum)
    }
}

impl Body for Entry {
    fn octets(&self) -> usize {
        ENTRY_BYTES + self.payload.len()
    }

    fn digest(&self) -> u64 {
        let mut digest = crate::atomic::epoch::mix(self.number.0 as u64, self.payload.len() as u64);
        let octets = self.payload.as_slice();
        let guid = self.writer.to_bytes();
        let begin = octets.get(..DIGEST_BYTES_MAX).unwrap_or(octets);
        let end = octets.get(octets.len().saturating_sub(DIGEST_BYTES_MAX).max(begin.len())..).unwrap_or(&[]);
        for part in [&guid, begin, end] {
            let (words, rest) = part.as_chunks::<8>();
            for word in words {
                // A step that takes one multiplication: members compare what all of them have.
                digest =
                    (digest.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            let rest = rest.iter().fold(0, |word, octet| word << 8 | u64::from(*octet));
            digest = crate::atomic::epoch::mix(digest, rest);
        }
        digest
    }

    fn history_key(&self) -> Option<HistoryKey> {
        let is_kept = self.is_kept && self.kind != EntryKind::Barrier;
        is_kept.then_some(HistoryKey { writer: self.writer, instance: self.instance })
    }

    fn history_depth(&self) -> u32 {
        self.depth
    }

    fn is_sample(&self) -> bool {
        self.kind != EntryKind::Barrier
    }
}

impl BodyCodec for Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut head = [0; ENTRY_BYTES];
        self.write_to(&mut head, 0);
        out.extend(head);
        out.extend((self.payload.len() as u32).to_le_bytes());
        out.extend(self.payload.as_slice());
    }

    fn decode(octets: &mut &[u8]) -> Result<Self, Malformed> {
        let (head, rest) = octets.split_first_chunk::<ENTRY_BYTES>().ok_or(Malformed::Truncated)?;
        let (length, rest) = rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        let (payload, rest) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(Malformed::Truncated)?;
        let (entry, _) = Self::read_from(head)?;
        *octets = rest;
        let payload = Payload::short(payload).unwrap_or_else(|| Payload::from_vec(payload.to_vec()));
        Ok(Self { payload, ..entry })
    }
}

/// One that stays where it is, however many queues it is in.
impl Body for Arc<Entry> {
    fn octets(&self) -> usize {
        Entry::octets(self)
    }

    fn digest(&self) -> u64 {
        Entry::digest(self)
    }

    fn history_key(&self) -> Option<HistoryKey> {
        Entry::history_key(self)
    }

    fn history_depth(&self) -> u32 {
        Entry::history_depth(self)
    }

    fn is_sample(&self) -> bool {
        Entry::is_sample(self)
    }
}

impl BodyCodec for Arc<Entry> {
    fn encode(&self, out: &mut Vec<u8>) {
        Entry::encode(self, out);
    }

    fn decode(octets: &mut &[u8]) -> Result<Self, Malformed> {
        Entry::decode(octets).map(Self::new)
    }
}

impl Entry {
    fn write_to(&self, place: &mut [u8; ENTRY_BYTES], flags: u8) {
        let kept = if self.is_kept { KEPT } else { 0 };
        let (seconds, fraction) = self.timestamp.to_wire();
        let parts: [&[u8]; 7] = [
            &self.writer.to_bytes(),
            &self.number.0.to_le_bytes(),
            &seconds.to_le_bytes(),
            &fraction.to_le_bytes(),
            &self.instance,
            &self.depth.to_le_bytes(),
            &[self.kind as u8, kept | flags, 0, 0],
        ];
        let mut rest = &mut place[..];
        for part in parts {
            // They are as long as all parts together.
            let Some((place, after)) = rest.split_at_mut_checked(part.len()) else { return };
            place.copy_from_slice(part);
            rest = after;
        }
    }

    /// Without its octets; and its flags.
    fn read_from(octets: &[u8; ENTRY_BYTES]) -> Result<(Self, u8), Malformed> {
        let mut from = crate::wire::octets::Reader::new(octets, true);
        let writer = Guid::from_bytes(from.array()?);
        let number = SequenceNumber(i64::from_le_bytes(from.array()?));
        let timestamp = Time::from_wire(from.u32()?, from.u32()?);
        let (instance, depth) = (from.array()?, from.u32()?);
        let [kind, flags] = from.array()?;
        if number < SequenceNumber::FIRST
            || from.array()? != [0_u8; 2]
            || flags & !(KEPT | APART | AWAITED) != 0
        {
            return Err(Malformed::LengthOutOfRange);
        }
        let entry = Self {
            writer,
            number,
            kind: EntryKind::of(kind)?,
            timestamp,
            instance,
            depth,
            is_kept: flags & KEPT != 0,
            payload: Payload::empty(),
        };
        Ok((entry, flags))
    }
}

impl Head {
    /// As it stands on the lane.
    #[must_use]
    pub fn encode(
        nonce: u64,
        header: EntryHeader,
        entry: &Entry,
        (is_apart, is_awaited): (bool, bool),
    ) -> [u8; HEAD_BYTES] {
        let mut octets = [0; HEAD_BYTES];
        if let Some((place, rest)) = octets.split_first_chunk_mut() {
            entry.write_to(place, if is_apart { APART } else { 0 } | if is_awaited { AWAITED } else { 0 });
            let words = [nonce, header.instance, header.epoch, header.index, header.stamp];
            let (places, rest) = rest.as_chunks_mut();
            places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
            let length = (entry.payload.len() as u32).to_le_bytes();
            rest.iter_mut().zip(length).for_each(|(place, octet)| *place = octet);
        }
        octets
    }

    /// Reads the beginning of a sample of a lane.
    ///
    /// # Errors
    /// It is none.
    pub fn decode(octets: &[u8]) -> Result<Self, Malformed> {
        let (entry, rest) = octets.split_first_chunk::<ENTRY_BYTES>().ok_or(Malformed::Truncated)?;
        let (entry, flags) = Entry::read_from(entry)?;
        let mut from = crate::wire::octets::Reader::new(rest, true);
        let mut word = || from.array().map(u64::from_le_bytes);
        let nonce = word()?;
        let header = EntryHeader { instance: word()?, epoch: word()?, index: word()?, stamp: word()? };
        let payload_bytes = from.u32()? as usize;
        let (is_apart, is_awaited) = (flags & APART != 0, flags & AWAITED != 0);
        let here = octets.len() - HEAD_BYTES;
        if if is_apart { here != 0 } else { here < payload_bytes } {
            return Err(Malformed::LengthOutOfRange);
        }
        Ok(Self { nonce, header, is_apart, is_awaited, payload_bytes, entry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guid::{EntityId, GuidPrefix};

    fn entry(octets: &[u8]) -> Entry {
        Entry {
            writer: GuidPrefix([3; 12]).entity(EntityId::user_writer(9, true)),
            number: SequenceNumber(77),
            kind: EntryKind::DisposeUnregister,
            timestamp: Time::from_wire(12, 1 << 31),
            instance: [8; 16],
            depth: 5,
            is_kept: true,
            payload: Payload::from_vec(octets.to_vec()),
        }
    }

    #[test]
    fn an_entry_is_read_from_a_lane_as_it_was_sent() {
        let (entry, header) = (entry(b"octets"), EntryHeader { instance: 3, epoch: 4, index: 5, stamp: 600 });
        let head = Head::encode(99, header, &entry, (false, true));
        let read = Head::decode(&[&head[..], b"octets"].concat()).unwrap();
        assert_eq!((read.nonce, read.header, read.payload_bytes), (99, header, 6));
        assert_eq!((read.is_apart, read.is_awaited), (false, true));
        assert_eq!(Entry { payload: entry.payload.clone(), ..read.entry }, entry);
        assert_eq!(Head::decode(&[&head[..], b"octet"].concat()), Err(Malformed::LengthOutOfRange));
        let apart = Head::encode(99, header, &entry, (true, false));
        assert!(Head::decode(&apart).unwrap().is_apart);
        assert_eq!(Head::decode(&[&apart[..], b"octets"].concat()), Err(Malformed::LengthOutOfRange));
        for length in 0..HEAD_BYTES {
            assert!(Head::decode(&apart[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn an_entry_is_read_from_a_part_of_the_history() {
        let mut octets = Vec::new();
        entry(b"one").encode(&mut octets);
        entry(&[7; 300]).encode(&mut octets);
        let mut rest = &octets[..];
        assert_eq!(Entry::decode(&mut rest), Ok(entry(b"one")));
        assert_eq!(Entry::decode(&mut rest), Ok(entry(&[7; 300])));
        assert!(rest.is_empty());
        assert!(Entry::decode(&mut &octets[..ENTRY_BYTES + 5]).is_err());
    }

    #[test]
    fn each_octet_changes_the_digest() {
        let octets: Vec<u8> = (0..100).collect();
        let before = entry(&octets).digest();
        for at in 0..octets.len() {
            let mut other = octets.clone();
            other[at] ^= 1;
            assert_ne!(entry(&other).digest(), before, "{at}");
        }
        assert_ne!(Entry { number: SequenceNumber(78), ..entry(&octets) }.digest(), before);
    }
}
