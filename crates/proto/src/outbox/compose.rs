//! Composing datagrams at the end of an [`Outbox`]: little endian, no copies of large payloads, and no
//! allocation once the outbox has grown to its working size.

use super::{Info, Outbox, Segment, Transmit};
use crate::copying;
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::payload::{COPIED_BYTES_MAX, PayloadView};
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::time::Time;

use crate::wire::header::{self, HEADER_BYTES, SUBMESSAGE_HEADER_BYTES, flag, id};
use crate::wire::info::InfoSource;
use crate::wire::octets::Sink;
use crate::wire::{AckNack, Gap, Heartbeat, HeartbeatFrag, NackFrag, info};

/// Longest body whose `octetsToNextHeader` is a multiple of 4.
const BODY_BYTES_MAX: usize = 65_532;
/// Octets of a DATA body before the inline QoS.
const DATA_BODY_BYTES: usize = 20;
/// Words of four octets in front of the inline QoS of a DATA.
const DATA_HEAD_WORDS: usize = (SUBMESSAGE_HEADER_BYTES + DATA_BODY_BYTES) / 4;
/// Octets of a DATA_FRAG body before the inline QoS.
const DATA_FRAG_BODY_BYTES: usize = 32;

/// Octets a DATA submessage needs beside its payload, alignment included; `inline_qos_len` in octets.
#[must_use]
pub const fn data_overhead(inline_qos_len: usize) -> usize {
    SUBMESSAGE_HEADER_BYTES + DATA_BODY_BYTES + inline_qos_len + 3
}

/// Octets a DATA_FRAG submessage needs beside its fragments, alignment included.
#[must_use]
pub const fn data_frag_overhead(inline_qos_len: usize) -> usize {
    SUBMESSAGE_HEADER_BYTES + DATA_FRAG_BODY_BYTES + inline_qos_len + 3
}

/// What a datagram needs before its first DATA: message header, INFO_DST and INFO_TS.
pub const DATAGRAM_OVERHEAD: usize = HEADER_BYTES + info::DESTINATION_BYTES + info::TIMESTAMP_BYTES;

/// What goes with a submessage in a datagram that was begun already: INFO_TS before it, and a HEARTBEAT
/// behind it.
pub(crate) const SURROUNDING_BYTES: usize = info::TIMESTAMP_BYTES + SUBMESSAGE_HEADER_BYTES + 28;

/// The fields of a DATA submessage beside its payload (RTPS 2.5 §9.4.5.4).
#[derive(Clone, Copy, Debug)]
pub struct DataHeader<'a> {
    /// Addressed reader, or UNKNOWN for all matched.
    pub reader: EntityId,
    /// Sending writer.
    pub writer: EntityId,
    /// Number of the change.
    pub sequence_number: SequenceNumber,
    /// A little-endian parameter list with its sentinel, or empty.
    pub inline_qos: &'a [u8],
    /// The payload is a serialized key, not data.
    pub key_only: bool,
}

/// The fields of a DATA_FRAG submessage beside its payload (RTPS 2.5 §9.4.5.5).
#[derive(Clone, Copy, Debug)]
pub struct DataFragHeader<'a> {
    /// Addressed reader, or UNKNOWN for all matched.
    pub reader: EntityId,
    /// Sending writer.
    pub writer: EntityId,
    /// Number of the change.
    pub sequence_number: SequenceNumber,
    /// First fragment to send, from 1.
    pub first_fragment: FragmentNumber,
    /// Fragments to send, at least 1.
    pub fragments: u16,
    /// Octets of every fragment but the last.
    pub fragment_bytes: u16,
    /// A little-endian parameter list with its sentinel, or empty.
    pub inline_qos: &'a [u8],
    /// The whole payload is a serialized key, not data.
    pub key_only: bool,
}

impl DataHeader<'_> {
    /// What comes before the inline QoS.
    #[inline(always)]
    const fn head(&self, body: u16, is_empty: bool) -> [[u8; 4]; DATA_HEAD_WORDS] {
        let payload_flag = match (is_empty, self.key_only) {
            (true, _) => 0,
            (false, false) => flag::DATA,
            (false, true) => flag::DATA_KEY,
        };
        let flags = flag::LITTLE_ENDIAN | inline_qos_flag(self.inline_qos) | payload_flag;
        let (high, low) = self.sequence_number.to_wire();
        let [low_body, high_body] = body.to_le_bytes();
        [
            [id::DATA, flags, low_body, high_body],
            [0, 0, 16, 0],
            self.reader.0,
            self.writer.0,
            high.to_le_bytes(),
            low.to_le_bytes(),
        ]
    }
}

/// One datagram under construction. INFO submessages are written with the next entity submessage, so
/// a datagram to which nothing was added vanishes when the builder is finished or dropped.
#[derive(Debug)]
pub struct MessageBuilder<'o> {
    out: &'o mut Outbox,
    /// It goes on another time: see [`MessageBuilder::pause`].
    paused: bool,
}

impl Info {
    /// Octets that have to be written before the next entity submessage.
    #[inline]
    fn bytes(&self) -> usize {
        if self.readdressed {
            return self.bytes_readdressed();
        }
        self.timestamp.change().map_or(0, info::timestamp_bytes)
    }

    fn bytes_readdressed(&self) -> usize {
        let source = self.source.change().map_or(0, |_| info::SOURCE_BYTES);
        let destination = self.destination.change().map_or(0, |_| info::DESTINATION_BYTES);
        source + destination + self.timestamp_change().map_or(0, info::timestamp_bytes)
    }

    /// INFO_SRC takes the receiver's timestamp away (§8.3.8.9), so after it only a real one is news.
    fn timestamp_change(&self) -> Option<Time> {
        match self.source.change() {
            Some(_) => Some(self.timestamp.wanted).filter(|time| *time != Time::INVALID),
            None => self.timestamp.change(),
        }
    }

    #[inline(always)]
    fn emit(&mut self, bytes: &mut Vec<u8>) {
        let timestamp = if self.readdressed { self.readdress(bytes) } else { self.timestamp.change() };
        if let Some(time) = timestamp {
            info::emit_timestamp(bytes, time, true);
        }
        self.timestamp.current = self.timestamp.wanted;
    }

    /// Writes from whom and to whom what follows is; the timestamp to be written then.
    #[inline(never)]
    fn readdress(&mut self, bytes: &mut Vec<u8>) -> Option<Time> {
        let timestamp = self.timestamp_change();
        self.readdressed = false;
        if let Some(prefix) = self.source.change() {
            InfoSource::ours(prefix).emit(bytes, true);
            self.source.current = prefix;
        }
        if let Some(prefix) = self.destination.change() {
            info::emit_destination(bytes, prefix, true);
            self.destination.current = prefix;
        }
        timestamp
    }
}

impl Outbox {
    /// Starts a datagram from `source` to `destinations`, of at most `datagram_bytes_max` octets of
    /// UDP payload. Dropping or finishing the builder ends it.
    pub fn message(
        &mut self,
        source: GuidPrefix,
        destinations: &[Locator],
        datagram_bytes_max: usize,
    ) -> MessageBuilder<'_> {
        self.message_to(&GuidPrefix::UNKNOWN, &source, destinations, datagram_bytes_max)
    }

    /// The same, addressed to one participant from its beginning on (INFO_DST); UNKNOWN means everyone.
    pub(crate) fn message_to(
        &mut self,
        addressed: &GuidPrefix,
        source: &GuidPrefix,
        destinations: &[Locator],
        datagram_bytes_max: usize,
    ) -> MessageBuilder<'_> {
        self.open.destinations_start = self.destinations.len();
        self.open.datagram_bytes_max = datagram_bytes_max;
        self.destinations.extend_from_slice(destinations);
        self.begin(addressed, source);
        MessageBuilder { out: self, paused: false }
    }

    /// Writes the head of a datagram.
    #[inline]
    fn begin(&mut self, addressed: &GuidPrefix, source: &GuidPrefix) {
        let start = self.bytes.len();
        header::emit(&mut self.bytes, source);
        if *addressed != GuidPrefix::UNKNOWN {
            info::emit_destination(&mut self.bytes, *addressed, true);
        }
        let open = &mut self.open;
        open.bytes_start = start;
        open.run_start = start;
        open.segments_start = self.segments.len();
        open.head_bytes = self.bytes.len() - start;
        open.len = open.head_bytes;
        open.info.begin(source, addressed);
    }

    /// Goes on with the datagram that was paused: nothing else was done with this outbox since.
    pub(crate) const fn resume(&mut self) -> MessageBuilder<'_> {
        MessageBuilder { out: self, paused: false }
    }
}

impl MessageBuilder<'_> {
    /// Addresses what follows to one participant (INFO_DST); UNKNOWN means everyone.
    pub fn info_destination(&mut self, prefix: GuidPrefix) {
        self.out.open.info.destination.wanted = prefix;
        self.out.open.info.readdressed = true;
    }

    /// Gives what follows a source timestamp (INFO_TS); `None` takes it away, and so does one that RTPS
    /// cannot tell: that of a clock before 1970.
    pub fn info_timestamp(&mut self, time: Option<Time>) {
        self.out.open.info.timestamp.wanted = time.filter(|time| time.is_on_wire()).unwrap_or(Time::INVALID);
    }

    /// Sends what follows in the name of another participant (INFO_SRC): relays do.
    pub fn info_source(&mut self, prefix: GuidPrefix) {
        self.out.open.info.source.wanted = prefix;
        self.out.open.info.readdressed = true;
    }

    /// Appends a DATA. An empty payload sets neither the data nor the key flag.
    /// False, and nothing written, when it does not fit.
    #[must_use = "false: the datagram is full and nothing was written"]
    pub fn data<'p>(&mut self, data: &DataHeader<'_>, payload: impl Into<PayloadView<'p>>) -> bool {
        let payload = payload.into();
        let body = DATA_BODY_BYTES + data.inline_qos.len() + payload.len().next_multiple_of(4);
        if body > BODY_BYTES_MAX {
            return false;
        }
        let head = data.head(body as u16, payload.is_empty());
        if !self.begin_data(SUBMESSAGE_HEADER_BYTES + body, head) {
            return false;
        }
        if !data.inline_qos.is_empty() {
            self.out.bytes.extend_from_slice(data.inline_qos);
        }
        self.payload(payload);
        true
    }

    /// Appends a DATA of which the payload goes beside the message: `octetsToNextHeader` is 0, and nothing
    /// follows. False, and nothing written, when it does not fit or there is no payload.
    #[must_use = "false: the datagram is full and nothing was written"]
    pub fn attached<'p>(&mut self, data: &DataHeader<'_>, payload: impl Into<PayloadView<'p>>) -> bool {
        let payload = payload.into();
        let body = DATA_BODY_BYTES + data.inline_qos.len();
        if payload.is_empty() || !self.begin_data(SUBMESSAGE_HEADER_BYTES + body, data.head(0, false)) {
            return false;
        }
        self.out.bytes.extend_from_slice(data.inline_qos);
        self.close_run();
        self.out.segments.push(Segment::Attachment(payload.to_payload()));
        self.out.open.datagram_bytes_max = self.out.open.len;
        true
    }

    /// Appends a DATA_FRAG with the fragments `header` names of the whole payload `sample`.
    /// False, and nothing written, when it does not fit or `sample` has no such fragment.
    #[must_use = "false: the datagram is full and nothing was written"]
    pub fn data_frag<'p>(&mut self, header: &DataFragHeader<'_>, sample: impl Into<PayloadView<'p>>) -> bool {
        let sample = sample.into();
        let fragment_bytes = usize::from(header.fragment_bytes);
        let Some(index) = header.first_fragment.checked_sub(1) else { return false };
        let start = (index as usize).saturating_mul(fragment_bytes);
        let end = start.saturating_add(fragment_bytes * usize::from(header.fragments));
        let part = sample.slice(start..end);
        let body = DATA_FRAG_BODY_BYTES + header.inline_qos.len() + part.len().next_multiple_of(4);
        let Ok(sample_bytes) = u32::try_from(sample.len()) else { return false };
        if part.is_empty() || body > BODY_BYTES_MAX || !self.make_room(SUBMESSAGE_HEADER_BYTES + body) {
            return false;
        }
        let key_flag = if header.key_only { flag::FRAG_KEY } else { 0 };
        let mut sink = Sink::new(&mut self.out.bytes, true);
        sink.octets(&[id::DATA_FRAG, flag::LITTLE_ENDIAN | inline_qos_flag(header.inline_qos) | key_flag]);
        sink.u16(body as u16);
        sink.u16(0);
        sink.u16(28);
        sink.entity(header.reader);
        sink.entity(header.writer);
        sink.sequence(header.sequence_number);
        sink.u32(header.first_fragment);
        sink.u16(header.fragments);
        sink.u16(header.fragment_bytes);
        sink.u32(sample_bytes);
        sink.octets(header.inline_qos);
        self.payload(PayloadView::Payload(&part));
        true
    }

    /// Appends a HEARTBEAT. False, and nothing written, when it does not fit.
    #[must_use = "false: the datagram is full and nothing was written"]
    pub fn heartbeat(&mut self, heartbeat: &Heartbeat) -> bool {
        self.control(|bytes| heartbeat.emit(bytes, true))
    }

    /// Appends a HEARTBEAT_FRAG. False, and nothing written, when it does not fit.
    #[must_use = "false: the datagram is full and nothing was written"]
    pub fn heartbeat_frag(&mut self, heartbeat: &HeartbeatFrag) -> bool {
        self.control(|bytes| heartbeat.emit(bytes, true))
    }

    /// Appends a GAP. False, and nothing written, when it does not fit.
    #[must_use = "false: the datagram is full and nothing was written"]
    pub fn gap(&mut self, gap: &Gap) -> bool {
        self.control(|bytes| gap.emit(bytes, true))
    }

    /// Appends an ACKNACK. False, and nothing written, when it does not fit.
    #[must_use = "false: the datagram is full and nothing was written"]
    pub fn acknack(&mut self, acknack: &AckNack) -> bool {
        self.control(|bytes| acknack.emit(bytes, true))
    }

    /// Appends a NACK_FRAG. False, and nothing written, when it does not fit.
    #[must_use = "false: the datagram is full and nothing was written"]
    pub fn nack_frag(&mut self, nack: &NackFrag) -> bool {
        self.control(|bytes| nack.emit(bytes, true))
    }

    /// Octets of the datagram so far, without INFO submessages still to be written.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.out.open.len
    }

    /// Whether nothing was added yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.out.open.len == self.out.open.head_bytes
    }

    /// Octets the next submessage may have, its header included.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.out.open.datagram_bytes_max.saturating_sub(self.out.open.len + self.out.open.info.bytes())
    }

    /// Ends the datagram.
    pub fn finish(self) {}

    /// Leaves the datagram open: [`Outbox::resume`] goes on with it.
    pub(crate) fn pause(mut self) {
        self.paused = true;
    }

    /// Ends the datagram and begins another with the same destinations, addressed to one participant or to
    /// everyone.
    pub(crate) fn renew(&mut self, addressed: &GuidPrefix, source: &GuidPrefix, datagram_bytes_max: usize) {
        let before = self.out.open.destinations_start..self.out.destinations.len();
        if self.end() {
            self.out.open.destinations_start = self.out.destinations.len();
            self.out.destinations.extend_from_within(before);
        } else {
            self.out.bytes.truncate(self.out.open.bytes_start);
        }
        self.out.open.datagram_bytes_max = datagram_bytes_max;
        self.out.begin(addressed, source);
    }

    /// Whom the next submessage is addressed to.
    pub(crate) const fn addressed(&self) -> GuidPrefix {
        self.out.open.info.destination.wanted
    }

    /// Ends the datagram; false when it has nothing to tell.
    fn end(&mut self) -> bool {
        if self.is_empty() {
            return false;
        }
        self.close_run();
        self.out.transmits.push(Transmit {
            segments: self.out.open.segments_start..self.out.segments.len(),
            destinations: self.out.open.destinations_start..self.out.destinations.len(),
            len: self.out.open.len,
        });
        true
    }

    /// Writes the head of a DATA of so many octets, after the INFO submessages wanted, when there is room.
    /// Most differ from what is before them by their timestamp alone: then both are one piece.
    #[inline(always)]
    fn begin_data(&mut self, submessage_bytes: usize, head: [[u8; 4]; DATA_HEAD_WORDS]) -> bool {
        let open = &mut self.out.open;
        let time = open.info.timestamp.wanted;
        if open.info.readdressed || time == open.info.timestamp.current || time == Time::INVALID {
            let has_room = self.make_room(submessage_bytes);
            if has_room {
                self.out.bytes.extend_from_slice(head.as_flattened());
            }
            return has_room;
        }
        let len = open.len + info::TIMESTAMP_BYTES + submessage_bytes;
        if len > open.datagram_bytes_max {
            return false;
        }
        open.len = len;
        open.info.timestamp.current = time;
        let [a, b, c] = info::timestamp(time, true);
        let [d, e, f, g, h, i] = head;
        self.out.bytes.extend_from_slice([a, b, c, d, e, f, g, h, i].as_flattened());
        true
    }

    /// Writes the INFO submessages wanted, when they and `submessage_bytes` more octets fit.
    #[inline(never)]
    fn make_room(&mut self, submessage_bytes: usize) -> bool {
        let info_bytes = self.out.open.info.bytes();
        let len = self.out.open.len + info_bytes + submessage_bytes;
        if len > self.out.open.datagram_bytes_max {
            return false;
        }
        if info_bytes > 0 {
            let Outbox { bytes, open, .. } = &mut *self.out;
            open.info.emit(bytes);
        }
        self.out.open.len = len;
        true
    }

    #[inline(never)]
    fn emit_info(&mut self) {
        let Outbox { bytes, open, .. } = &mut *self.out;
        open.info.emit(bytes);
    }

    /// Writes a submessage of at most a few dozen octets, and takes it back when it does not fit.
    fn control(&mut self, emit: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = (self.out.bytes.len(), self.out.open.len, self.out.open.info);
        self.emit_info();
        emit(&mut self.out.bytes);
        self.out.open.len += self.out.bytes.len() - before.0;
        if self.out.open.len <= self.out.open.datagram_bytes_max {
            return true;
        }
        self.out.bytes.truncate(before.0);
        (_, self.out.open.len, self.out.open.info) = before;
        false
    }

    #[inline(always)]
    fn payload(&mut self, payload: PayloadView<'_>) {
        let octets = payload.as_slice();
        let padding = octets.len().wrapping_neg() & 3;
        // So that a small datagram is one slice; larger ones are referenced.
        if octets.len() <= COPIED_BYTES_MAX {
            copying::append_few(&mut self.out.bytes, octets);
        } else {
            self.refer_to(payload);
        }
        if padding > 0 {
            self.pad(padding);
        }
    }

    #[inline(never)]
    fn refer_to(&mut self, payload: PayloadView<'_>) {
        self.close_run();
        self.out.segments.push(Segment::Payload(payload.to_payload()));
    }

    /// Rarely: payloads with their encapsulation are padded already.
    #[inline(never)]
    fn pad(&mut self, octets: usize) {
        self.out.bytes.extend_from_slice([0; 3].get(..octets).unwrap_or(&[]));
    }

    /// Makes the bytes since the last segment a segment of their own.
    fn close_run(&mut self) {
        let end = self.out.bytes.len();
        if self.out.open.run_start < end {
            self.out.segments.push(Segment::Bytes(self.out.open.run_start..end));
            self.out.open.run_start = end;
        }
    }
}

impl Drop for MessageBuilder<'_> {
    fn drop(&mut self) {
        if self.paused {
            return;
        }
        if !self.end() {
            self.out.bytes.truncate(self.out.open.bytes_start);
            self.out.destinations.truncate(self.out.open.destinations_start);
        }
    }
}

const fn inline_qos_flag(inline_qos: &[u8]) -> u8 {
    if inline_qos.is_empty() { 0 } else { flag::INLINE_QOS }
}
