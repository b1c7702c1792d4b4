//! Datagrams that are full to the end: in a flow, the sample that a datagram has no room for is cut, begins there, and goes on in
//! the next. One holds four samples of 16 KiB then, instead of three.

use crate::outbox::Outbox;
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::time::Now;

use crate::writer::Writer;
use crate::writer::flow::class::Class;
use crate::writer::routes::target::{SHARING_FRAGMENT_BYTES, Target};

/// That of readers on this host.
const CLASS: Class = Class::SameHost;

impl Writer {
    /// Whether samples of so many octets, without inline QoS, fill datagrams: where all readers are on this host, and tell what
    /// their sockets hold.
    pub(in crate::writer) fn fills(&self, payload_bytes: usize) -> bool {
        self.filled_target().fills(payload_bytes)
            && payload_bytes < self.config.limits.batch_bytes
            && self.proxies.route(CLASS).hold_bytes.is_some()
            && self.proxies.route(Class::Remote).destinations.is_empty()
    }

    fn filled_target(&self) -> Target<'_> {
        self.proxies.route(CLASS).target(CLASS, self.config.guid, &self.config.limits)
    }

    /// Adds a change that [fills](Self::fills) datagrams to what waits for others. Where the datagram has no room for all of it, that leaves
    /// with its first fragments, and the others begin the next one.
    pub(in crate::writer) fn fill(&mut self, now: Now, number: SequenceNumber, out: &mut Outbox) {
        let ahead = self.put_beginning(number);
        if ahead.is_some() {
            self.send_held(now, Some(number), out);
        }
        self.pacer.hold(number, CLASS);
        self.put_rest(number, ahead.unwrap_or(0));
    }

    /// Whether not even a part of a sample has room in the datagram that waits.
    pub(in crate::writer) fn has_no_room(&mut self) -> bool {
        let room_bytes = self.batch.room_bytes(self.config.limits.batch_bytes);
        room_bytes.is_none_or(|bytes| self.filled_target().fragments_within(bytes) == 0)
    }

    /// Adds the fragments of a change that the datagram has room for, if it waits and has not for the whole: how many they are.
    fn put_beginning(&mut self, number: SequenceNumber) -> Option<FragmentNumber> {
        let room_bytes = self.batch.room_bytes(self.config.limits.batch_bytes)?;
        let Self { history, instances, proxies, batch, config, .. } = self;
        let change = history.get(number, instances)?;
        let target = proxies.route(CLASS).target(CLASS, config.guid, &config.limits);
        if target.fits_within(change.payload.len(), room_bytes) {
            return None;
        }
        let ahead = target.fragments_within(room_bytes);
        if ahead > 0 {
            let bytes = ahead as usize * usize::from(SHARING_FRAGMENT_BYTES);
            batch.put(&target, number, &change, Some((1, ahead)), bytes);
        }
        Some(ahead)
    }

    /// Adds what comes behind so many fragments of a change: all of it, if none was sent.
    fn put_rest(&mut self, number: SequenceNumber, ahead: FragmentNumber) {
        let Self { history, instances, proxies, batch, config, .. } = self;
        let Some(change) = history.get(number, instances) else { return };
        let target = proxies.route(CLASS).target(CLASS, config.guid, &config.limits);
        let sent_bytes = ahead as usize * usize::from(SHARING_FRAGMENT_BYTES);
        let bytes = change.payload.len().saturating_sub(sent_bytes);
        let part = (ahead > 0).then_some((ahead + 1, FragmentNumber::MAX));
        batch.put(&target, number, &change, part, bytes);
    }
}
