//! What is written: small enough to be copied, and known again wherever it turns up.

use plainsong_proto::atomic::codec::BodyCodec;
use plainsong_proto::atomic::{Body, HistoryKey};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::malformed::Malformed;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Who wrote it: a writer of one incarnation of a process.
    pub(super) writer: u32,
    /// Which of its samples, from 1.
    pub(super) number: u32,
    /// Its instance; 0 of what is not kept.
    pub(super) key: u8,
    /// How many of its instance are kept, 0 for all.
    pub(super) depth: u8,
    pub(super) octets: u16,
    /// Stands for the payload.
    pub(super) payload: u64,
}

impl Body for Entry {
    fn octets(&self) -> usize {
        self.octets.into()
    }

    fn digest(&self) -> u64 {
        self.payload ^ u64::from(self.writer) << 32 ^ u64::from(self.number)
    }

    fn history_key(&self) -> Option<HistoryKey> {
        if self.key == 0 {
            return None;
        }
        let mut prefix = GuidPrefix::default();
        prefix.0[..4].copy_from_slice(&self.writer.to_be_bytes());
        let writer = Guid { prefix, entity: EntityId([0, 0, 1, 2]) };
        Some(HistoryKey { writer, instance: [self.key; 16] })
    }

    fn history_depth(&self) -> u32 {
        self.depth.into()
    }
}

impl BodyCodec for Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.writer.to_le_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend([self.key, self.depth]);
        out.extend(self.octets.to_le_bytes());
        out.extend(self.payload.to_le_bytes());
    }

    fn decode(octets: &mut &[u8]) -> Result<Self, Malformed> {
        fn take<const N: usize>(octets: &mut &[u8]) -> Result<[u8; N], Malformed> {
            let (taken, rest) = octets.split_first_chunk().ok_or(Malformed::Truncated)?;
            *octets = rest;
            Ok(*taken)
        }
        let (writer, number) = (u32::from_le_bytes(take(octets)?), u32::from_le_bytes(take(octets)?));
        let [key, depth] = take(octets)?;
        let (size, payload) = (u16::from_le_bytes(take(octets)?), u64::from_le_bytes(take(octets)?));
        Ok(Self { writer, number, key, depth, octets: size, payload })
    }
}
