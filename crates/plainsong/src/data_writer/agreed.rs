//! Writing with CONSISTENCY ATOMIC: to the group of the topic.

use std::sync::Arc;

use plainsong_proto::instance::Key;
use plainsong_proto::payload::NewPayload;
use plainsong_proto::qos::{Durability, HistoryKind};
use plainsong_proto::time::{Duration, Instant, Time};
use plainsong_proto::writer::{ChangeKind, Writer};

use super::WriterInner;
use crate::atomic::{Change, GroupSlot, NotWritten};
use crate::base::clock;
use crate::error::{Error, PreconditionNotMet, Result, WaitedFor};
use crate::write_options::Patience;

impl WriterInner {
    /// The group to which it writes.
    pub(super) fn group(&self) -> Result<&Arc<GroupSlot>> {
        self.core.check_enabled(|| self.describe())?;
        if !self.is_atomic {
            return Err(PreconditionNotMet::Eventual { entity: self.describe() }.into());
        }
        self.agreed.get().ok_or_else(|| Error::NotEnabled(self.describe()))
    }

    /// Joins the group of the topic.
    pub(super) fn join(&self) -> Result<()> {
        let qos = self.slot.look(|writer| writer.qos().clone());
        let group = self.publisher.participant.join_group(&self.topic.name, &qos)?;
        let depth = match qos.history.kind {
            HistoryKind::KeepLast => u32::try_from(qos.history.depth).unwrap_or(1),
            HistoryKind::KeepAll => 0,
        };
        let kept = (qos.durability >= Durability::TransientLocal).then_some(depth);
        group.add_writer(&self.slot, kept, qos.consistency.slow_member_delay);
        // It is enabled once, so that the cell is still empty.
        let _ = self.agreed.set(group);
        Ok(())
    }

    pub(super) fn leave(&self) {
        if let Some(group) = self.agreed.get()
            && group.remove_writer(self.guid.entity)
        {
            self.publisher.participant.leave_group(group);
        }
    }

    /// As [`WriterInner::write`].
    #[cold]
    pub(super) fn write_agreed(
        &self,
        kind: ChangeKind,
        key: Key,
        payload: NewPayload<'_>,
        timestamp: Option<Time>,
        patience: Patience,
    ) -> Result<bool> {
        let group = self.group()?;
        let waits = patience.room.is_some();
        let mut change = Change { kind, key, payload, timestamp, waits };
        let mut begin = None;
        loop {
            let epoch = group.progress.epoch();
            let Err(refused) = group.write(self.guid.entity, &mut change) else { break };
            self.check_refusal(group, refused, patience.room, timestamp.map(|it| (key, it)))?;
            let mut timeout = patience.room.unwrap_or(Duration::ZERO);
            if refused == NotWritten::Changing && !patience.is_given {
                timeout = timeout.max(group.settle_within);
            }
            let begin = *begin.get_or_insert_with(clock::mono);
            if !group.await_progress(epoch, begin.after(timeout)) {
                return Err(self.group_timeout(group, refused, timeout));
            }
            self.core.check_enabled(|| self.describe())?;
        }
        self.publisher.participant.assert_manual_writers();
        let lacks_key = kind == ChangeKind::Alive
            && key.fingerprint.is_some()
            && self.slot.look(|writer: &Writer| writer.lacks_key(key));
        Ok(lacks_key)
    }

    /// Refuses what waiting does not help.
    fn check_refusal(
        &self,
        group: &GroupSlot,
        refused: NotWritten,
        patience: Option<Duration>,
        change: Option<(Key, Time)>,
    ) -> Result<()> {
        match refused {
            NotWritten::Refused(error) => Err(self.write_error(error, patience, change)),
            NotWritten::Gone => Err(group.why_gone(|| self.describe())),
            _ if patience.is_none() => {
                Err(Error::GroupUnready { entity: self.describe(), why: group.explain(refused) })
            }
            NotWritten::Full | NotWritten::Changing | NotWritten::Suspended => Ok(()),
        }
    }

    fn group_timeout(&self, group: &GroupSlot, refused: NotWritten, timeout: Duration) -> Error {
        let waited_for = if refused == NotWritten::Full { WaitedFor::Room } else { WaitedFor::Group };
        let what = format!("writing by {} ({})", self.describe(), group.explain(refused));
        Error::Timeout { waited_for, what, timeout }
    }

    /// Waits until everything that it has written is delivered in the agreed order.
    pub(super) fn wait_for_resolution(&self, timeout: Duration) -> Result<()> {
        let group = self.group()?;
        let last = group.last_of(self.guid.entity);
        let deadline = clock::deadline(timeout);
        self.wait_for_group(group, deadline, timeout, |group| group.is_resolved(self.guid.entity, last))?;
        match group.take_unknown(self.guid.entity) {
            0 => Ok(()),
            count => Err(Error::OutcomeUnknown { entity: self.describe(), count }),
        }
    }

    fn wait_for_group(
        &self,
        group: &GroupSlot,
        deadline: Option<Instant>,
        timeout: Duration,
        is_done: impl Fn(&GroupSlot) -> bool,
    ) -> Result<()> {
        let mut is_told = false;
        loop {
            let epoch = group.progress.epoch();
            if is_done(group) {
                return Ok(());
            }
            group.check_disk()?;
            if !std::mem::replace(&mut is_told, true) {
                group.hasten();
            }
            self.core.check_enabled(|| self.describe())?;
            if !group.await_progress(epoch, deadline) {
                let what = format!(
                    "waiting for what {} has written to be delivered ({})",
                    self.describe(),
                    group.explain(NotWritten::Full)
                );
                return Err(Error::Timeout { waited_for: WaitedFor::Acknowledgments, what, timeout });
            }
        }
    }

    /// Waits until everything that was resolved before is delivered here.
    pub(super) fn sync(&self, timeout: Duration) -> Result<()> {
        self.group()?.sync(timeout, &|| self.describe(), &|| self.core.check_enabled(|| self.describe()))
    }

    /// Whether what it writes goes to others of this host by memory that they share.
    pub(super) fn shares_memory(&self) -> bool {
        match self.agreed.get() {
            Some(group) => group.shares_memory(),
            None => self.slot.look(Writer::shares_memory),
        }
    }
}
