//! The readers and writers of a participant in one group.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use plainsong_proto::atomic::entry::{Entry, EntryKind};
use plainsong_proto::guid::Guid;
use plainsong_proto::instance::Key;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::NewPayload;
use plainsong_proto::reader::AgreedChange;
use plainsong_proto::sample_info::Agreed;
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::stats::DropReason;
use plainsong_proto::time::{Duration, Now};
use plainsong_proto::wire::StatusInfo;
use plainsong_proto::writer::{ChangeKind, WriteError};

use crate::runtime::{ParticipantSlot, ReaderSlot, WriterSlot};

pub(super) struct Attached {
    pub(super) slot: Arc<ReaderSlot>,
    /// It gets what comes after this position; `None`: after the beginning of the first epoch.
    pub(super) after: Option<u64>,
    /// It asks for what was written before it came: only of writers that keep it.
    pub(super) is_durable: bool,
    /// Writers that do not match it.
    pub(super) mismatched: BTreeSet<Guid>,
    /// What finds no room in it.
    pub(super) backlog: VecDeque<(Arc<Entry>, Agreed)>,
    /// It takes state in place of what was delivered before.
    pub(super) wants_state: bool,
    /// State that it has not taken yet.
    pub(super) state: Option<GivenState>,
    /// The group ended for another since it was last given state.
    pub(super) begins_anew: bool,
}

/// State in place of what was delivered before.
pub(crate) struct GivenState {
    /// The last position that is in it.
    pub(crate) through: u64,
    pub(crate) octets: Arc<[u8]>,
    /// It is of another group than what was delivered before.
    pub(crate) begins_anew: bool,
}

/// A writer of this participant.
pub(super) struct Writing {
    pub(super) slot: Arc<WriterSlot>,
    pub(super) last: SequenceNumber,
    pub(super) resolved: SequenceNumber,
    /// Changes of which it cannot be told any more whether they were delivered, since that was last asked.
    pub(super) unknown: u64,
    pub(super) depth: u32,
    pub(super) is_kept: bool,
    /// Who holds it up for longer is excluded.
    pub(super) slow: Duration,
    /// What is delivered, and finds no room in the history for readers with EVENTUAL consistency.
    pub(super) backlog: VecDeque<(Arc<Entry>, Key)>,
}

impl Attached {
    /// Whether the writer of an entry matches it, as far as is known: of the QoS of one that is gone, or that
    /// discovery has not told of yet, whether it is at least TRANSIENT_LOCAL.
    pub(super) fn matches(&self, entry: &Entry) -> bool {
        (entry.is_kept || !self.is_durable)
            && (self.mismatched.is_empty() || !self.mismatched.contains(&entry.writer))
    }

    /// Whether all that waits found room.
    pub(super) fn offer_backlog(&mut self, slot: &ParticipantSlot, now: Now, out: &mut Outbox) -> bool {
        if self.backlog.is_empty() {
            return true;
        }
        let backlog = &mut self.backlog;
        self.slot.run(slot.shared(), now, out, |reader, now, out| {
            while let Some((entry, agreed)) = backlog.front() {
                let mut change = change(entry, *agreed);
                if reader.store_agreed(now, &mut change, out) == Err(DropReason::ResourceLimit) {
                    break;
                }
                backlog.pop_front();
            }
        });
        self.backlog.is_empty()
    }
}

impl Writing {
    /// Gives what is delivered to readers with EVENTUAL consistency; whether all found room.
    pub(super) fn publish(&mut self, slot: &ParticipantSlot, now: Now, out: &mut Outbox) -> bool {
        if self.backlog.is_empty() {
            return true;
        }
        let backlog = &mut self.backlog;
        self.slot.run(slot.shared(), now, out, |writer, now, out| {
            while let Some((entry, key)) = backlog.front() {
                let kind = kind_for_writer(entry.kind);
                if writer.pass_agreed(now, kind, *key, entry.timestamp, &entry.payload) {
                    backlog.pop_front();
                    continue;
                }
                let mut payload = entry.payload.clone();
                let payload = NewPayload::Payload(&mut payload);
                let written = writer.write_from(now, kind, *key, payload, entry.timestamp, out);
                if written == Err(WriteError::Full) {
                    break;
                }
                backlog.pop_front();
            }
        });
        self.backlog.is_empty()
    }
}

pub(super) const fn kind_of(kind: ChangeKind) -> EntryKind {
    match kind {
        ChangeKind::Alive => EntryKind::Data,
        ChangeKind::Dispose => EntryKind::Dispose,
        ChangeKind::Unregister => EntryKind::Unregister,
        ChangeKind::DisposeUnregister => EntryKind::DisposeUnregister,
    }
}

const fn kind_for_writer(kind: EntryKind) -> ChangeKind {
    match kind {
        EntryKind::Data | EntryKind::Barrier => ChangeKind::Alive,
        EntryKind::Dispose => ChangeKind::Dispose,
        EntryKind::Unregister => ChangeKind::Unregister,
        EntryKind::DisposeUnregister => ChangeKind::DisposeUnregister,
    }
}

fn change(entry: &Entry, agreed: Agreed) -> AgreedChange {
    let disposed = matches!(entry.kind, EntryKind::Dispose | EntryKind::DisposeUnregister);
    let unregistered = matches!(entry.kind, EntryKind::Unregister | EntryKind::DisposeUnregister);
    AgreedChange {
        writer: entry.writer,
        status: StatusInfo { disposed, unregistered, filtered: false },
        source_timestamp: entry.timestamp,
        agreed,
        payload: entry.payload.clone(),
    }
}
