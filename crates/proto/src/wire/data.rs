//! DATA and DATA_FRAG (RTPS 2.5 §8.3.8.2, §8.3.8.3, §9.4.5.4, §9.4.5.5).

use crate::guid::EntityId;
use crate::malformed::Malformed;
use crate::payload::Payload;
use crate::seq::SequenceNumber;

use super::header::{Submessage, flag, id};
use super::octets::{Reader, Sink};
use super::{Data, DataFrag, ParameterListView};

/// Octets of a DATA body between `octetsToInlineQos` and the inline QoS in this version.
const DATA_FIELDS_BYTES: u16 = 16;
/// The same of DATA_FRAG.
const DATA_FRAG_FIELDS_BYTES: u16 = 28;
/// Octets of a DATA body before the inline QoS in this version.
const DATA_HEAD_BYTES: usize = 4 + DATA_FIELDS_BYTES as usize;
/// Octets of an encapsulation header: a payload has at least these.
const ENCAPSULATION_BYTES: usize = 4;

/// The octets after the fixed fields: where `octetsToInlineQos` points, which may be further than this
/// version's fields reach but not nearer.
fn after_fields(body: &[u8], little_endian: bool, fields_bytes: u16) -> Result<&[u8], Malformed> {
    let (&[_, _, first, second], rest) = body.split_first_chunk().ok_or(Malformed::Truncated)?;
    let offset = [first, second];
    let offset = if little_endian { u16::from_le_bytes(offset) } else { u16::from_be_bytes(offset) };
    if offset < fields_bytes {
        return Err(Malformed::InvalidOffset);
    }
    rest.get(usize::from(offset)..).ok_or(Malformed::InvalidOffset)
}

/// Four octets of the head of a DATA, which the compiler then reads at once.
#[inline]
const fn octets_at<const AT: usize>(head: &[u8; DATA_HEAD_BYTES]) -> [u8; 4] {
    const { assert!(AT + 4 <= DATA_HEAD_BYTES) };
    [head[AT], head[AT + 1], head[AT + 2], head[AT + 3]]
}

type InlineQosAndRest<'a> = (Option<ParameterListView<'a>>, &'a [u8]);

#[inline]
fn split_inline_qos(bytes: &[u8], flags: u8) -> Result<InlineQosAndRest<'_>, Malformed> {
    if flags & flag::INLINE_QOS == 0 {
        return Ok((None, bytes));
    }
    let (list, rest) = ParameterListView::parse(bytes, flags & flag::LITTLE_ENDIAN != 0)?;
    Ok((Some(list), rest))
}

impl<'a> Data<'a> {
    /// The reader and the writer that the body of a submessage names, of which nothing else is looked at.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    #[inline]
    pub(crate) fn endpoints(body: &[u8]) -> Result<(EntityId, EntityId), Malformed> {
        let (head, _) = body.split_first_chunk::<DATA_HEAD_BYTES>().ok_or(Malformed::Truncated)?;
        Ok((EntityId(octets_at::<4>(head)), EntityId(octets_at::<8>(head))))
    }

    /// From the body of a submessage. The payload is what follows the inline QoS, when a flag announces
    /// one; it may end in octets that only pad the submessage.
    ///
    /// # Errors
    /// [`Malformed::InvalidFlags`] when both data and key are announced, [`Malformed::InvalidOffset`],
    /// [`Malformed::InvalidSequenceNumber`], [`Malformed::Truncated`], and those of
    /// [`ParameterListView::parse`].
    #[inline]
    pub fn parse(body: &'a [u8], flags: u8) -> Result<Self, Malformed> {
        let little_endian = flags & flag::LITTLE_ENDIAN != 0;
        let (has_data, has_key) = (flags & flag::DATA != 0, flags & flag::DATA_KEY != 0);
        if has_data && has_key {
            return Err(Malformed::InvalidFlags);
        }
        let (head, rest) = body.split_first_chunk::<DATA_HEAD_BYTES>().ok_or(Malformed::Truncated)?;
        let usual =
            if little_endian { DATA_FIELDS_BYTES.to_le_bytes() } else { DATA_FIELDS_BYTES.to_be_bytes() };
        let rest =
            if head[2..4] == usual { rest } else { after_fields(body, little_endian, DATA_FIELDS_BYTES)? };
        let (inline_qos, rest) = split_inline_qos(rest, flags)?;
        let payload: &[u8] = if has_data || has_key { rest } else { &[] };
        if !payload.is_empty() && payload.len() < ENCAPSULATION_BYTES {
            return Err(Malformed::Truncated);
        }
        let (high, low) = (octets_at::<12>(head), octets_at::<16>(head));
        let (high, low) = if little_endian {
            (i32::from_le_bytes(high), u32::from_le_bytes(low))
        } else {
            (i32::from_be_bytes(high), u32::from_be_bytes(low))
        };
        let sequence_number = SequenceNumber::from_wire(high, low);
        if sequence_number < SequenceNumber::FIRST {
            return Err(Malformed::InvalidSequenceNumber);
        }
        let (reader, writer) = (EntityId(octets_at::<4>(head)), EntityId(octets_at::<8>(head)));
        Ok(Self { reader, writer, sequence_number, inline_qos, payload, attachment: None, key_only: has_key })
    }

    /// From a submessage, of which the payload may be what came with the message: then it announces one and
    /// has none itself.
    ///
    /// # Errors
    /// As [`Self::parse`], and [`Malformed::InvalidFlags`] when it is no place for what came.
    #[inline]
    pub fn of(submessage: &Submessage<'a>) -> Result<Self, Malformed> {
        let data = Self::parse(submessage.body, submessage.flags)?;
        match submessage.attachment {
            None => Ok(data),
            Some(attachment) => data.with(attachment, submessage.flags),
        }
    }

    #[cold]
    fn with(self, attachment: &'a Payload, flags: u8) -> Result<Self, Malformed> {
        if flags & (flag::DATA | flag::DATA_KEY) == 0 || !self.payload.is_empty() {
            return Err(Malformed::InvalidFlags);
        }
        let payload = attachment.as_slice();
        if payload.len() < ENCAPSULATION_BYTES {
            return Err(Malformed::Truncated);
        }
        Ok(Self { payload, attachment: Some(attachment), ..self })
    }

    /// Appends the submessage; the inline QoS keeps its own octet order, so it must be `little_endian`'s.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        let qos_flag = if self.inline_qos.is_some() { flag::INLINE_QOS } else { 0 };
        let payload_flag = match (self.payload.is_empty(), self.key_only) {
            (true, false) => 0,
            (false, false) => flag::DATA,
            (_, true) => flag::DATA_KEY,
        };
        Sink::new(out, little_endian).submessage(id::DATA, qos_flag | payload_flag, |sink| {
            sink.u16(0);
            sink.u16(DATA_FIELDS_BYTES);
            sink.entity(self.reader);
            sink.entity(self.writer);
            sink.sequence(self.sequence_number);
            sink.octets(self.inline_qos.map_or(&[], |list| list.bytes));
            sink.octets(self.payload);
        });
    }
}

impl<'a> DataFrag<'a> {
    /// From the body of a submessage, with the geometry of its fragments checked: every number is in
    /// range and `payload` holds exactly the octets the fields promise.
    ///
    /// # Errors
    /// [`Malformed::InvalidFragment`] when numbers, sizes and counts disagree, [`Malformed::InvalidOffset`],
    /// [`Malformed::InvalidSequenceNumber`], [`Malformed::Truncated`], and those of
    /// [`ParameterListView::parse`].
    pub fn parse(body: &'a [u8], flags: u8) -> Result<Self, Malformed> {
        let little_endian = flags & flag::LITTLE_ENDIAN != 0;
        let (inline_qos, rest) =
            split_inline_qos(after_fields(body, little_endian, DATA_FRAG_FIELDS_BYTES)?, flags)?;
        let mut fields = Reader::new(body, little_endian);
        fields.octets(4)?;
        let mut data = Self {
            reader: fields.entity()?,
            writer: fields.entity()?,
            sequence_number: fields.change_number()?,
            first_fragment: fields.u32()?,
            fragments: fields.u16()?,
            fragment_bytes: fields.u16()?,
            sample_bytes: fields.u32()?,
            inline_qos,
            payload: &[],
            key_only: flags & flag::FRAG_KEY != 0,
        };
        let expected = data.expected_bytes()?;
        // The last submessage of a message may be padded to a multiple of 4, not more.
        let full = usize::from(data.fragments) * usize::from(data.fragment_bytes);
        if rest.len() > full.next_multiple_of(4) {
            return Err(Malformed::InvalidFragment);
        }
        data.payload = rest.get(..expected).ok_or(Malformed::Truncated)?;
        Ok(data)
    }

    /// Octets of the fragments this submessage carries, by its fields (§8.3.8.3.3).
    fn expected_bytes(&self) -> Result<usize, Malformed> {
        let (sample, fragment) = (u64::from(self.sample_bytes), u64::from(self.fragment_bytes));
        if fragment == 0 || fragment > sample || self.fragments == 0 || self.first_fragment == 0 {
            return Err(Malformed::InvalidFragment);
        }
        // All products fit: 32 bits times 16 bits, and 17 bits times 16 bits.
        let start = u64::from(self.first_fragment - 1) * fragment;
        let end_of_previous_to_last = start + (u64::from(self.fragments) - 1) * fragment;
        if end_of_previous_to_last >= sample {
            return Err(Malformed::InvalidFragment);
        }
        let end = sample.min(end_of_previous_to_last + fragment);
        usize::try_from(end - start).map_err(|_| Malformed::LengthOutOfRange)
    }

    /// Appends the submessage; the inline QoS keeps its own octet order, so it must be `little_endian`'s.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        let qos_flag = if self.inline_qos.is_some() { flag::INLINE_QOS } else { 0 };
        let key_flag = if self.key_only { flag::FRAG_KEY } else { 0 };
        Sink::new(out, little_endian).submessage(id::DATA_FRAG, qos_flag | key_flag, |sink| {
            sink.u16(0);
            sink.u16(DATA_FRAG_FIELDS_BYTES);
            sink.entity(self.reader);
            sink.entity(self.writer);
            sink.sequence(self.sequence_number);
            sink.u32(self.first_fragment);
            sink.u16(self.fragments);
            sink.u16(self.fragment_bytes);
            sink.u32(self.sample_bytes);
            sink.octets(self.inline_qos.map_or(&[], |list| list.bytes));
            sink.octets(self.payload);
        });
    }
}
