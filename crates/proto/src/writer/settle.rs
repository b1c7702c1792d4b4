//! Letting go of what everybody has.

use crate::payload::COPIED_BYTES_MAX;
use crate::seq::SequenceNumber;
use crate::time::Now;
use crate::tuning::writer::{RELEASES_PER_WRITE_MAX, RELEASES_TOGETHER};

use super::Writer;
use super::compose::submessages::sent_last;

impl Writer {
    /// Lets go of what nobody needs any more, and keeps the heartbeat timer running while somebody
    /// owes an acknowledgement.
    pub(super) fn settle(&mut self, now: Now) {
        self.settle_up_to(now, self.history.last());
    }

    /// As [`Self::settle`], after a write: of some changes at once, since each time costs as much as letting
    /// go of one, and not of too many. Long ones leave at once: their memory is the next to be written.
    #[inline]
    pub(super) fn settle_write(&mut self, now: Now, payload_bytes: usize) {
        let released = self.history.released();
        let last = self.history.last();
        if payload_bytes <= COPIED_BYTES_MAX
            && let Some(acknowledged) = self.proxies.acknowledged()
            && acknowledged < last
            && acknowledged < released.plus(RELEASES_TOGETHER)
        {
            self.heartbeat.arm(now.mono);
        } else {
            self.settle_up_to(now, released.plus(RELEASES_PER_WRITE_MAX));
        }
    }

    /// As [`Self::settle`], but lets go of no change beyond `most`.
    fn settle_up_to(&mut self, now: Now, most: SequenceNumber) {
        let last = self.history.last();
        let acknowledged = self.proxies.acknowledged().unwrap_or(last);
        if acknowledged > self.history.released() {
            let sent = self.routes.unsent().map_or(last, SequenceNumber::previous);
            self.history.release(now.mono, acknowledged.min(sent).min(most), &mut self.instances);
        }
        if self.is_owed(acknowledged) {
            self.heartbeat.arm(now.mono);
        } else {
            self.heartbeat.disarm();
        }
    }

    /// Whether a reader owes an acknowledgement, when all have what is before. Nobody owes anything of what
    /// waits for its turn; what waits for others leaves at once.
    fn is_owed(&self, acknowledged: SequenceNumber) -> bool {
        if self.holds() || self.routes.unsent().is_none() {
            return acknowledged < self.history.last();
        }
        let mut awaited = self.proxies.iter().filter(|reader| reader.is_awaited());
        awaited.any(|reader| reader.acknowledged < sent_last(&self.history, &self.routes, reader.kind))
    }
}
