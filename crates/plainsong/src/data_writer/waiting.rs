//! Waiting for readers: for room, or for their acknowledgements.

use std::fmt::Write as _;

use plainsong_proto::discovery::{MemoryRefusal, UsedTransport};
use plainsong_proto::guid::Guid;
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::time::{Duration, Instant};
use plainsong_proto::writer::{ReaderBehind, Writer};

use super::WriterInner;
use crate::base::clock;
use crate::error::{Behind, Error, Result, WaitedFor};
use crate::peer_probe::{self, PeerProbe};
use crate::runtime::receive::{self, Wanted};

impl WriterInner {
    pub(super) fn wait_for_acknowledgments(&self, timeout: Duration) -> Result<()> {
        if self.is_atomic {
            return self.wait_for_resolution(timeout);
        }
        let deadline = clock::deadline(timeout);
        let last = self.with(|writer, now, out| {
            writer.request_acknowledgments(now, out);
            writer.last_sequence_number()
        })?;
        let mut probe = self.peer_probe();
        loop {
            let epoch = self.slot.progress.epoch();
            if self.is_acknowledged(last)? {
                return Ok(());
            }
            if !self.wait_for_progress(&mut probe, epoch, deadline) {
                let what = format!("waiting for acknowledgments of {}", self.describe());
                return Err(self.naming_those_behind(Error::Timeout {
                    waited_for: WaitedFor::Acknowledgments,
                    what,
                    timeout,
                }));
            }
        }
    }

    /// Somebody begins to wait for readers.
    pub(super) fn peer_probe(&self) -> PeerProbe {
        let usual = self.slot.look(Writer::answers_take);
        PeerProbe::new(usual)
    }

    /// False when `deadline` passed first. Acknowledgements are received meanwhile, here or by a receive
    /// thread.
    pub(super) fn wait_for_progress(
        &self,
        probe: &mut PeerProbe,
        epoch: u32,
        deadline: Option<Instant>,
    ) -> bool {
        let slot = self.publisher.participant.slot();
        let progress = &self.slot.progress;
        let wait = |deadline| match &slot {
            Ok(slot) => receive::wait(slot.shared(), progress, epoch, deadline, Wanted::Acks),
            Err(_) => progress.wait(epoch, deadline),
        };
        probe.wait(deadline, wait, || self.drop_dead_peers())
    }

    /// Those it waits for in vain, because their processes on this host are no more.
    fn drop_dead_peers(&self) {
        let Ok(slot) = self.publisher.participant.slot() else { return };
        let slowest: Vec<Guid> = self.slot.look(|writer| writer.slowest_readers().collect());
        peer_probe::drop_dead_peers(slot, slowest.into_iter().map(|reader| reader.prefix));
    }

    fn is_acknowledged(&self, last: SequenceNumber) -> Result<bool> {
        self.with(|writer, now, _| writer.is_acknowledged(now.mono, last))
    }

    /// Time passed in vain: names the readers that were waited for, those with least first.
    pub(super) fn naming_those_behind(&self, error: Error) -> Error {
        let Error::Timeout { waited_for, mut what, timeout } = error else { return error };
        let mut behind = self.readers_waited_for();
        if waited_for == WaitedFor::Acknowledgments {
            // What was written before its match is waited for only where that makes room.
            let last = self.slot.look(Writer::last_sequence_number);
            behind.retain(|reader| reader.matched_at < last);
        }
        if !behind.is_empty() {
            // Nothing goes wrong where text is appended to text.
            let _ = write!(what, "{},", Behind(&behind));
        }
        if self.lacks_shared_memory(&behind) {
            let why = MemoryRefusal::PoolUsedUp;
            let _ = write!(what, " where {why} ({}),", why.advice());
        }
        Error::Timeout { waited_for, what, timeout }
    }

    /// Whether what these readers wait for finds no room in the memory that is shared, or found none.
    fn lacks_shared_memory(&self, behind: &[ReaderBehind]) -> bool {
        let Ok(slot) = self.publisher.participant.slot() else { return false };
        let transports: Vec<_> = slot
            .look(|control| behind.iter().filter_map(|it| control.transport_of(it.reader.prefix)).collect());
        transports.contains(&UsedTransport::Udp(MemoryRefusal::PoolUsedUp))
            || transports.contains(&UsedTransport::Memory) && slot.shared().transport.finds_no_chunk()
    }

    /// Those whose acknowledgements would make room, the slowest first.
    pub(super) fn readers_waited_for(&self) -> Vec<ReaderBehind> {
        let mut behind: Vec<_> = self.slot.look(|writer| writer.readers_behind(clock::mono()).collect());
        behind.retain(|reader| !reader.is_left_out);
        behind.sort_by_key(|reader| reader.acknowledged);
        behind
    }
}
