//! HEARTBEAT, HEARTBEAT_FRAG, ACKNACK, NACK_FRAG and GAP (RTPS 2.5 §8.3.8, §9.4.5).

use crate::malformed::Malformed;
use crate::seq::SequenceNumber;

use super::header::{flag, id};
use super::octets::{Reader, Sink};
use super::{AckNack, Gap, Heartbeat, HeartbeatFrag, HeartbeatGroup, NackFrag};

const fn little_endian(flags: u8) -> bool {
    flags & flag::LITTLE_ENDIAN != 0
}

impl Heartbeat {
    /// From the body of a submessage. `first` below 1 or `last` below `first - 1` is refused (§8.3.8.6.3),
    /// and so are group numbers that contradict each other.
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::InvalidSequenceNumber`].
    pub fn parse(body: &[u8], flags: u8) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, little_endian(flags));
        let heartbeat = Self {
            reader: fields.entity()?,
            writer: fields.entity()?,
            first: fields.change_number()?,
            last: fields.sequence()?,
            count: fields.i32()?,
            final_flag: flags & flag::FINAL != 0,
            liveliness: flags & flag::LIVELINESS != 0,
            group: (flags & flag::HEARTBEAT_GROUP != 0)
                .then(|| HeartbeatGroup::parse(&mut fields))
                .transpose()?,
        };
        if heartbeat.last < heartbeat.first.previous() {
            return Err(Malformed::InvalidSequenceNumber);
        }
        Ok(heartbeat)
    }

    /// Appends the submessage.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        let final_flag = if self.final_flag { flag::FINAL } else { 0 };
        let liveliness = if self.liveliness { flag::LIVELINESS } else { 0 };
        let group = if self.group.is_some() { flag::HEARTBEAT_GROUP } else { 0 };
        Sink::new(out, little_endian).submessage(id::HEARTBEAT, final_flag | liveliness | group, |sink| {
            sink.entity(self.reader);
            sink.entity(self.writer);
            sink.sequence(self.first);
            sink.sequence(self.last);
            sink.i32(self.count);
            if let Some(group) = &self.group {
                group.emit(sink);
            }
        });
    }
}

impl HeartbeatFrag {
    /// From the body of a submessage. Numbers start at 1 (§8.3.8.7.3).
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::InvalidSequenceNumber`], [`Malformed::InvalidFragment`].
    pub fn parse(body: &[u8], flags: u8) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, little_endian(flags));
        let heartbeat = Self {
            reader: fields.entity()?,
            writer: fields.entity()?,
            sequence_number: fields.change_number()?,
            last_fragment: fields.u32()?,
            count: fields.i32()?,
        };
        if heartbeat.last_fragment == 0 { Err(Malformed::InvalidFragment) } else { Ok(heartbeat) }
    }

    /// Appends the submessage.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        Sink::new(out, little_endian).submessage(id::HEARTBEAT_FRAG, 0, |sink| {
            sink.entity(self.reader);
            sink.entity(self.writer);
            sink.sequence(self.sequence_number);
            sink.u32(self.last_fragment);
            sink.i32(self.count);
        });
    }
}

impl AckNack {
    /// From the body of a submessage. A base of 0 is accepted when nothing is asked for: that is how
    /// some vendors write a pre-emptive ACKNACK, although §8.3.8.1.3 wants at least 1.
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::LengthOutOfRange`], [`Malformed::InvalidSequenceNumber`].
    pub fn parse(body: &[u8], flags: u8) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, little_endian(flags));
        let acknack = Self {
            reader: fields.entity()?,
            writer: fields.entity()?,
            missing: fields.sequence_set()?,
            count: fields.i32()?,
            final_flag: flags & flag::FINAL != 0,
            heartbeat: None,
        };
        let base = acknack.missing.base();
        let preemptive = base == SequenceNumber(0) && !acknack.missing.contains(base);
        if base < SequenceNumber::FIRST && !preemptive {
            return Err(Malformed::InvalidSequenceNumber);
        }
        Ok(acknack)
    }

    /// The HEARTBEAT that the next ACKNACK answers, of a vendor-specific submessage of ours.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn parse_answered(body: &[u8], flags: u8) -> Result<i32, Malformed> {
        Reader::new(body, little_endian(flags)).i32()
    }

    /// Appends the submessage, after that which names the HEARTBEAT, if there is one.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        if let Some(count) = self.heartbeat {
            Sink::new(out, little_endian).submessage(id::ANSWERED, 0, |sink| sink.i32(count));
        }
        let flags = if self.final_flag { flag::FINAL } else { 0 };
        Sink::new(out, little_endian).submessage(id::ACKNACK, flags, |sink| {
            sink.entity(self.reader);
            sink.entity(self.writer);
            sink.sequence_set(&self.missing);
            sink.i32(self.count);
        });
    }
}

impl NackFrag {
    /// From the body of a submessage. Numbers start at 1 (§8.3.8.11.3).
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::LengthOutOfRange`], [`Malformed::InvalidSequenceNumber`],
    /// [`Malformed::InvalidFragment`].
    pub fn parse(body: &[u8], flags: u8) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, little_endian(flags));
        let nack = Self {
            reader: fields.entity()?,
            writer: fields.entity()?,
            sequence_number: fields.change_number()?,
            missing: fields.fragment_set()?,
            count: fields.i32()?,
        };
        if nack.missing.base() == 0 { Err(Malformed::InvalidFragment) } else { Ok(nack) }
    }

    /// Appends the submessage.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        Sink::new(out, little_endian).submessage(id::NACK_FRAG, 0, |sink| {
            sink.entity(self.reader);
            sink.entity(self.writer);
            sink.sequence(self.sequence_number);
            sink.fragment_set(&self.missing);
            sink.i32(self.count);
        });
    }
}

impl Gap {
    /// From the body of a submessage. `start` below 1 or a list that begins before it is refused
    /// (§8.3.8.4.3). However wide the range, it is two numbers and a bitmap.
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::LengthOutOfRange`], [`Malformed::InvalidSequenceNumber`].
    pub fn parse(body: &[u8], flags: u8) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, little_endian(flags));
        let mut gap = Self {
            reader: fields.entity()?,
            writer: fields.entity()?,
            start: fields.change_number()?,
            list: fields.sequence_set()?,
            filtered: 0,
        };
        if gap.list.base() < gap.start {
            return Err(Malformed::InvalidSequenceNumber);
        }
        if flags & flag::GAP_GROUP != 0 {
            // First and last group sequence numbers of the gap: present, unused.
            fields.octets(2 * 8)?;
        }
        if flags & flag::GAP_FILTERED != 0 {
            gap.filtered = u64::try_from(fields.sequence()?.0).unwrap_or(0);
        }
        Ok(gap)
    }

    /// Appends the submessage.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        let flags = if self.filtered > 0 { flag::GAP_FILTERED } else { 0 };
        Sink::new(out, little_endian).submessage(id::GAP, flags, |sink| {
            sink.entity(self.reader);
            sink.entity(self.writer);
            sink.sequence(self.start);
            sink.sequence_set(&self.list);
            if self.filtered > 0 {
                sink.sequence(SequenceNumber(i64::try_from(self.filtered).unwrap_or(i64::MAX)));
            }
        });
    }
}
