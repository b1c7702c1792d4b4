//! What writers tell of their publisher under GROUP access (RTPS 2.5 §8.3.8.6, §8.7.5, §8.7.6): numbers
//! among the changes of all its writers, and a digest of who these are.

use md5::{Digest, Md5};

use crate::guid::EntityId;
use crate::malformed::Malformed;
use crate::seq::SequenceNumber;

use super::octets::{Reader, Sink};

/// A set of entities of one participant in four octets (GroupDigest_t, §9.3.2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupDigest(pub [u8; 4]);

impl GroupDigest {
    /// The empty set; also what is sent for secure writers, of which there are none.
    pub const EMPTY: Self = Self([0; 4]);

    /// The digest of a set, in any order: the leading octets of the MD5 of its big-endian CDR. The ids are
    /// sorted as if each were a little-endian 32-bit integer with sign.
    #[must_use]
    pub fn of(entities: impl IntoIterator<Item = EntityId>) -> Self {
        let mut entities: Vec<EntityId> = entities.into_iter().collect();
        entities.sort_unstable_by_key(|entity| i32::from_le_bytes(entity.0));
        entities.dedup();
        if entities.is_empty() {
            return Self::EMPTY;
        }
        let mut hash = Md5::new();
        hash.update(u32::try_from(entities.len()).unwrap_or(u32::MAX).to_be_bytes());
        entities.iter().for_each(|entity| hash.update(entity.0));
        let octets: [u8; 16] = hash.finalize().into();
        let [a, b, c, d, ..] = octets;
        Self([a, b, c, d])
    }
}

/// What a HEARTBEAT with the GroupInfoFlag tells (§8.3.8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatGroup {
    /// The last group number that any writer of the publisher has used.
    pub current: SequenceNumber,
    /// The group number of the writer's first available change.
    pub first: SequenceNumber,
    /// The group number of its last change; below `first` when it has none.
    pub last: SequenceNumber,
    /// The writers of the publisher. The figure of §9.4.5.7 leaves them out, as peers may do; the table of
    /// §8.3.8.6.2 has them.
    pub writers: Option<GroupDigest>,
}

impl HeartbeatGroup {
    /// The rules of §8.3.8.6.3. Its last one, that `current` must not exceed `last`, contradicts the meaning
    /// of both and is taken the other way round.
    pub(super) fn parse(fields: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (current, first) = (fields.change_number()?, fields.change_number()?);
        let last = fields.sequence()?;
        if last.0 < 0 || last < first.previous() || current < first || current < last {
            return Err(Malformed::InvalidSequenceNumber);
        }
        let writers = if fields.is_empty() {
            None
        } else {
            let writers = GroupDigest(fields.array()?);
            // The secure writers: nothing is said of them here.
            fields.octets(4)?;
            Some(writers)
        };
        Ok(Self { current, first, last, writers })
    }

    pub(super) fn emit(&self, sink: &mut Sink<'_>) {
        sink.sequence(self.current);
        sink.sequence(self.first);
        sink.sequence(self.last);
        if let Some(writers) = self.writers {
            sink.octets(&writers.0);
            sink.octets(&GroupDigest::EMPTY.0);
        }
    }
}
