//! What is written: small enough to be copied, and known again wherever it turns up.

use plainsong_proto::atomic::{Body, HistoryKey};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};

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
