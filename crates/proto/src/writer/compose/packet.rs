//! One datagram of a route, from its beginning to its seal. Every datagram of a writer is begun and ended
//! here.

use crate::guid::GuidPrefix;
use crate::outbox::{DataFragHeader, DataHeader, MessageBuilder, Outbox, data_frag_overhead};
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::wire::{Heartbeat, HeartbeatFrag};

use crate::writer::record::change::Change;
use crate::writer::routes::gap::GapBuilder;
use crate::writer::routes::target::Target;

/// A datagram that is being composed, for all readers of a route or for some.
#[derive(Debug)]
pub(crate) struct Packet<'a, 'o> {
    pub(crate) target: Target<'a>,
    message: MessageBuilder<'o>,
    /// Octets of those before it, which it goes on from, and how many they are.
    before: (usize, usize),
}

impl<'a, 'o> Packet<'a, 'o> {
    /// Begins one. If nothing is added to it, it vanishes.
    #[inline]
    pub(crate) fn open(target: Target<'a>, out: &'o mut Outbox) -> Self {
        let message = out.message_to(
            target.prefix,
            &target.source.prefix,
            target.destinations,
            target.datagram_bytes_max,
        );
        Self { target, message, before: (0, 0) }
    }

    /// Goes on with the one at the end of an outbox, which was paused.
    #[inline]
    pub(crate) const fn resume(target: Target<'a>, out: &'o mut Outbox) -> Self {
        Self { target, message: out.resume(), before: (0, 0) }
    }

    /// Ends it.
    #[inline]
    pub(crate) fn seal(self) {
        self.message.finish();
    }

    /// Leaves it open: [`Self::resume`] goes on with it.
    #[inline]
    pub(crate) fn pause(self) {
        self.message.pause();
    }

    /// Ends it, and begins another like it.
    pub(crate) fn next(&mut self) {
        self.before = self.total();
        let Target { prefix, source, datagram_bytes_max, .. } = self.target;
        self.message.renew(prefix, &source.prefix, datagram_bytes_max);
    }

    /// Its octets so far.
    pub(crate) const fn len(&self) -> usize {
        self.message.len()
    }

    /// Octets and datagrams, with those before it; none that has nothing in it.
    pub(crate) const fn total(&self) -> (usize, usize) {
        let (bytes, datagrams) = self.before;
        if self.is_empty() { self.before } else { (bytes + self.message.len(), datagrams + 1) }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.message.is_empty()
    }

    /// Octets that it has room for, if it is to have so many at most.
    pub(crate) fn room_bytes(&self, bytes_max: usize) -> usize {
        self.message.remaining().min(bytes_max.saturating_sub(self.message.len()))
    }

    /// Addresses what follows to one participant.
    pub(crate) fn address(&mut self, prefix: GuidPrefix) {
        self.message.info_destination(prefix);
    }

    /// Adds a whole sample; false when it has no room for it.
    #[inline]
    #[must_use = "false: nothing was added"]
    pub(crate) fn sample(&mut self, number: SequenceNumber, change: &Change<'_>, inline_qos: &[u8]) -> bool {
        self.message.info_timestamp(Some(change.source_timestamp));
        let header = DataHeader {
            reader: self.target.reader,
            writer: self.target.source.entity,
            sequence_number: number,
            inline_qos,
            key_only: change.kind.is_key_only(),
        };
        match self.target.attached_bytes(change.payload.len()) {
            0 => self.message.data(&header, change.payload),
            // It has a message of its own: what a reader has no room for costs no other sample.
            _ => self.is_empty() && self.message.attached(&header, change.payload),
        }
    }

    /// Adds fragments of a sample from `first` on, as many as it has room for of `most`, and says how many;
    /// inline QoS goes with the first only.
    pub(crate) fn fragments(
        &mut self,
        number: SequenceNumber,
        change: &Change<'_>,
        (first, most): (FragmentNumber, FragmentNumber),
        inline_qos: &[u8],
    ) -> FragmentNumber {
        self.message.info_timestamp(Some(change.source_timestamp));
        let bytes = change.payload.len();
        let fragment_bytes = self.target.fragment_bytes(bytes, inline_qos.len());
        let inline_qos = if first == 1 { inline_qos } else { &[] };
        let room = self.message.remaining().saturating_sub(data_frag_overhead(inline_qos.len()));
        let start = (first.saturating_sub(1) as usize).saturating_mul(usize::from(fragment_bytes));
        let left = bytes.saturating_sub(start);
        let fitting = if left <= room {
            left.div_ceil(usize::from(fragment_bytes))
        } else {
            room / usize::from(fragment_bytes)
        };
        let fragments = u16::try_from(fitting.min(most as usize)).unwrap_or(u16::MAX);
        let header = DataFragHeader {
            reader: self.target.reader,
            writer: self.target.source.entity,
            sequence_number: number,
            first_fragment: first,
            fragments,
            fragment_bytes,
            inline_qos,
            key_only: change.kind.is_key_only(),
        };
        if fragments > 0 && self.message.data_frag(&header, change.payload) {
            u32::from(fragments)
        } else {
            0
        }
    }

    /// Adds a GAP, in another datagram if this has no room for it.
    pub(crate) fn gap(&mut self, gap: &GapBuilder) {
        let gap = gap.gap(self.target.reader, self.target.source.entity);
        self.control(|message| message.gap(&gap));
    }

    /// The same with a HEARTBEAT.
    pub(crate) fn heartbeat(&mut self, heartbeat: &Heartbeat) {
        self.control(|message| message.heartbeat(heartbeat));
    }

    /// The same with a HEARTBEAT_FRAG.
    pub(crate) fn heartbeat_frag(&mut self, heartbeat: &HeartbeatFrag) {
        self.control(|message| message.heartbeat_frag(heartbeat));
    }

    /// Any datagram has room for one of these.
    fn control(&mut self, put: impl Fn(&mut MessageBuilder<'o>) -> bool) {
        if !put(&mut self.message) {
            let addressed = self.message.addressed();
            self.next();
            self.message.info_destination(addressed);
            let _ = put(&mut self.message);
        }
    }
}
