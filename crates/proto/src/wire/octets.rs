//! Reading and writing the fields of submessages in either octet order.

use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::malformed::Malformed;
use crate::seq::{FragmentNumber, FragmentSet, NumberSet, SequenceNumber, SequenceSet};
use crate::time::{Duration, Time};

/// Reads fields from the front of checked-as-you-go octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    little_endian: bool,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8], little_endian: bool) -> Self {
        Self { rest: bytes, little_endian }
    }

    /// What was not read yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn octets(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        let octets = self.array()?;
        Ok(if self.little_endian { u16::from_le_bytes(octets) } else { u16::from_be_bytes(octets) })
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        let octets = self.array()?;
        Ok(if self.little_endian { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) })
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        self.u32().map(u32::cast_signed)
    }

    pub(crate) fn entity(&mut self) -> Result<EntityId, Malformed> {
        self.array().map(EntityId)
    }

    pub(crate) fn prefix(&mut self) -> Result<GuidPrefix, Malformed> {
        self.array().map(GuidPrefix)
    }

    pub(crate) fn guid(&mut self) -> Result<Guid, Malformed> {
        self.array().map(Guid::from_bytes)
    }

    /// Any sequence number, also those that are no number of a change.
    pub(crate) fn sequence(&mut self) -> Result<SequenceNumber, Malformed> {
        let high = self.i32()?;
        Ok(SequenceNumber::from_wire(high, self.u32()?))
    }

    /// A sequence number that must be at least 1.
    pub(crate) fn change_number(&mut self) -> Result<SequenceNumber, Malformed> {
        let number = self.sequence()?;
        if number < SequenceNumber::FIRST { Err(Malformed::InvalidSequenceNumber) } else { Ok(number) }
    }

    /// Bits and words of a set with the given base; nothing beyond 256 bits is ever looked at.
    fn set<N: crate::seq::Number>(&mut self, base: N) -> Result<NumberSet<N>, Malformed> {
        let bits = self.u32()?;
        if bits > crate::seq::SET_BITS_MAX {
            return Err(Malformed::LengthOutOfRange);
        }
        let mut words = [0; 8];
        let words = words.get_mut(..bits.div_ceil(32) as usize).ok_or(Malformed::LengthOutOfRange)?;
        for word in words.iter_mut() {
            *word = self.u32()?;
        }
        NumberSet::from_wire(base, bits, words)
    }

    /// A `SequenceNumberSet`; the caller judges the base.
    pub(crate) fn sequence_set(&mut self) -> Result<SequenceSet, Malformed> {
        let base = self.sequence()?;
        self.set(base)
    }

    /// A `FragmentNumberSet`; the caller judges the base.
    pub(crate) fn fragment_set(&mut self) -> Result<FragmentSet, Malformed> {
        let base: FragmentNumber = self.u32()?;
        self.set(base)
    }

    /// `Time_t`; `None` for `TIME_INVALID`.
    pub(crate) fn time(&mut self) -> Result<Option<Time>, Malformed> {
        let (seconds, fraction) = (self.u32()?, self.u32()?);
        let invalid = seconds == u32::MAX && fraction == u32::MAX;
        Ok((!invalid).then(|| Time::from_wire(seconds, fraction)))
    }

    pub(crate) fn duration(&mut self) -> Result<Duration, Malformed> {
        let seconds = self.i32()?;
        Duration::from_wire(seconds, self.u32()?)
    }

    /// One octet, 0 or 1.
    pub(crate) fn boolean(&mut self) -> Result<bool, Malformed> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed::InvalidBoolean),
        }
    }

    /// A sequence of at most `octets_max` octets, and the padding after it.
    pub(crate) fn octet_sequence(&mut self, octets_max: usize) -> Result<&'a [u8], Malformed> {
        let length = self.u32()? as usize;
        if length > octets_max {
            return Err(Malformed::LengthOutOfRange);
        }
        let octets = self.octets(length)?;
        self.skip_padding(length);
        Ok(octets)
    }

    /// A string of at most `octets_max` octets without its NUL, and the padding after it. A length of
    /// zero is taken for an empty string.
    pub(crate) fn string(&mut self, octets_max: usize) -> Result<&'a str, Malformed> {
        let octets = self.octet_sequence(octets_max.saturating_add(1))?;
        let text = match octets.split_last() {
            None => &[],
            Some((0, text)) => text,
            Some(_) => return Err(Malformed::InvalidString),
        };
        if text.contains(&0) {
            return Err(Malformed::InvalidString);
        }
        str::from_utf8(text).map_err(|_| Malformed::InvalidString)
    }

    /// The count of a sequence whose elements have at least `element_bytes_min` octets each.
    pub(crate) fn count(
        &mut self,
        elements_max: usize,
        element_bytes_min: usize,
    ) -> Result<usize, Malformed> {
        let count = self.u32()? as usize;
        let possible = self.rest.len() / element_bytes_min.max(1);
        if count > elements_max || count > possible {
            return Err(Malformed::LengthOutOfRange);
        }
        Ok(count)
    }

    /// Values begin on multiples of 4, and only octets, strings and booleans end elsewhere.
    fn skip_padding(&mut self, length: usize) {
        let padding = length.next_multiple_of(4) - length;
        self.rest = self.rest.get(padding..).unwrap_or(&[]);
    }

    pub(crate) fn locator(&mut self) -> Result<Locator, Malformed> {
        Ok(Locator { kind: self.i32()?, port: self.u32()?, address: self.array()? })
    }
}

/// Appends fields to a buffer.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    out: &'a mut Vec<u8>,
    little_endian: bool,
}

impl<'a> Sink<'a> {
    pub(crate) const fn new(out: &'a mut Vec<u8>, little_endian: bool) -> Self {
        Self { out, little_endian }
    }

    pub(crate) fn octets(&mut self, octets: &[u8]) {
        self.out.extend_from_slice(octets);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.octets(&if self.little_endian { value.to_le_bytes() } else { value.to_be_bytes() });
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.octets(&if self.little_endian { value.to_le_bytes() } else { value.to_be_bytes() });
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.u32(value.cast_unsigned());
    }

    pub(crate) fn entity(&mut self, entity: EntityId) {
        self.octets(&entity.0);
    }

    pub(crate) fn sequence(&mut self, number: SequenceNumber) {
        let (high, low) = number.to_wire();
        self.i32(high);
        self.u32(low);
    }

    pub(crate) fn sequence_set(&mut self, set: &SequenceSet) {
        self.sequence(set.base());
        self.bitmap(set.bits(), set.words());
    }

    pub(crate) fn fragment_set(&mut self, set: &FragmentSet) {
        self.u32(set.base());
        self.bitmap(set.bits(), set.words());
    }

    fn bitmap(&mut self, bits: u32, words: &[u32]) {
        self.u32(bits);
        for word in words {
            self.u32(*word);
        }
    }

    pub(crate) fn time(&mut self, time: Time) {
        let (seconds, fraction) = time.to_wire();
        self.u32(seconds);
        self.u32(fraction);
    }

    pub(crate) fn duration(&mut self, duration: Duration) {
        let (seconds, fraction) = duration.to_wire();
        self.i32(seconds);
        self.u32(fraction);
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        self.octets(&[value.into()]);
    }

    /// A sequence of octets, padded to a multiple of 4.
    pub(crate) fn octet_sequence(&mut self, octets: &[u8]) {
        self.u32(u32::try_from(octets.len()).unwrap_or(u32::MAX));
        self.octets(octets);
        self.pad(octets.len());
    }

    /// A string with its NUL, padded to a multiple of 4.
    pub(crate) fn string(&mut self, text: &str) {
        self.u32(u32::try_from(text.len() + 1).unwrap_or(u32::MAX));
        self.octets(text.as_bytes());
        self.octets(&[0]);
        self.pad(text.len() + 1);
    }

    fn pad(&mut self, length: usize) {
        let padding = length.next_multiple_of(4) - length;
        self.octets([0; 3].get(..padding).unwrap_or(&[]));
    }

    pub(crate) fn locator(&mut self, locator: &Locator) {
        self.i32(locator.kind);
        self.u32(locator.port);
        self.octets(&locator.address);
    }

    /// A whole submessage: header, what `body` appends, and the length of it filled in.
    /// `octetsToNextHeader` saturates; callers that emit unbounded bodies check the size before.
    pub(crate) fn submessage(&mut self, id: u8, flags: u8, body: impl FnOnce(&mut Self)) {
        self.octets(&[id, flags | u8::from(self.little_endian)]);
        let length_at = self.out.len();
        self.u16(0);
        let body_at = self.out.len();
        body(self);
        self.patch_u16(length_at, self.out.len() - body_at);
    }

    fn patch_u16(&mut self, at: usize, value: usize) {
        let value = u16::try_from(value).unwrap_or(u16::MAX);
        let octets = if self.little_endian { value.to_le_bytes() } else { value.to_be_bytes() };
        if let Some(target) = self.out.get_mut(at..at + 2) {
            target.copy_from_slice(&octets);
        }
    }
}
