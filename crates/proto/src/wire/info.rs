//! Submessages that change what the receiver knows: INFO_DST, INFO_TS, INFO_SRC, INFO_REPLY,
//! INFO_REPLY_IP4 and HEADER_EXTENSION (RTPS 2.5 §8.3.7, §8.3.8, §9.4.5).

use crate::guid::GuidPrefix;
use crate::locator::Locator;
use crate::malformed::Malformed;
use crate::time::Time;

use super::header::{PROTOCOL_VERSION, SUBMESSAGE_HEADER_BYTES, VENDOR_ID, flag, id};
use super::octets::{Reader, Sink};
use super::param::{PARAMETERS_MAX, pid};

/// Octets of INFO_DST with its header.
pub(crate) const DESTINATION_BYTES: usize = 16;
/// Octets of INFO_TS with its header and a timestamp.
pub(crate) const TIMESTAMP_BYTES: usize = 12;
/// Octets of INFO_SRC with its header.
pub(crate) const SOURCE_BYTES: usize = 24;
/// Octets of one `Locator_t`.
const LOCATOR_BYTES: usize = 24;

/// Octets of INFO_TS with its header.
pub(crate) fn timestamp_bytes(time: Time) -> usize {
    if time == Time::INVALID { SUBMESSAGE_HEADER_BYTES } else { TIMESTAMP_BYTES }
}

const fn little_endian(flags: u8) -> bool {
    flags & flag::LITTLE_ENDIAN != 0
}

/// INFO_DST.
#[inline]
pub(crate) fn emit_destination(out: &mut Vec<u8>, prefix: GuidPrefix, little_endian: bool) {
    const LENGTH: u8 = (DESTINATION_BYTES - SUBMESSAGE_HEADER_BYTES) as u8;
    let [low, high] = if little_endian { [LENGTH, 0] } else { [0, LENGTH] };
    out.extend_from_slice(&[id::INFO_DST, little_endian.into(), low, high]);
    out.extend_from_slice(&prefix.0);
}

/// The participant INFO_DST names; UNKNOWN means everyone.
pub(crate) fn parse_destination(body: &[u8], flags: u8) -> Result<GuidPrefix, Malformed> {
    Reader::new(body, little_endian(flags)).prefix()
}

/// INFO_TS; INVALID takes the timestamp away.
#[inline]
pub(crate) fn emit_timestamp(out: &mut Vec<u8>, time: Time, little_endian: bool) {
    if time == Time::INVALID {
        return emit_no_timestamp(out, little_endian);
    }
    out.extend_from_slice(timestamp(time, little_endian).as_flattened());
}

/// INFO_TS with a timestamp.
#[inline(always)]
pub(crate) const fn timestamp(time: Time, little_endian: bool) -> [[u8; 4]; TIMESTAMP_BYTES / 4] {
    let (seconds, fraction) = time.to_wire();
    let length = (TIMESTAMP_BYTES - SUBMESSAGE_HEADER_BYTES) as u8;
    if little_endian {
        [[id::INFO_TS, flag::LITTLE_ENDIAN, length, 0], seconds.to_le_bytes(), fraction.to_le_bytes()]
    } else {
        [[id::INFO_TS, 0, 0, length], seconds.to_be_bytes(), fraction.to_be_bytes()]
    }
}

#[inline(never)]
fn emit_no_timestamp(out: &mut Vec<u8>, little_endian: bool) {
    Sink::new(out, little_endian).submessage(id::INFO_TS, flag::INVALIDATE, |_| {});
}

/// The timestamp of INFO_TS; `None` when it is invalidated.
#[inline]
pub(crate) fn parse_timestamp(body: &[u8], flags: u8) -> Result<Option<Time>, Malformed> {
    if flags & flag::INVALIDATE != 0 {
        return Ok(None);
    }
    let octets = *body.first_chunk().ok_or(Malformed::Truncated)?;
    let (seconds, fraction) = if little_endian(flags) {
        let both = u64::from_le_bytes(octets);
        (both as u32, (both >> 32) as u32)
    } else {
        let both = u64::from_be_bytes(octets);
        ((both >> 32) as u32, both as u32)
    };
    let invalid = seconds == u32::MAX && fraction == u32::MAX;
    Ok((!invalid).then(|| Time::from_wire(seconds, fraction)))
}

/// INFO_SRC: who the following submessages are from (§9.4.5.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfoSource {
    /// Major and minor version of the original message.
    pub version: [u8; 2],
    /// Vendor of the original sender.
    pub vendor: [u8; 2],
    /// The original sender.
    pub prefix: GuidPrefix,
}

impl InfoSource {
    /// A participant of ours.
    #[must_use]
    pub const fn ours(prefix: GuidPrefix) -> Self {
        Self { version: PROTOCOL_VERSION, vendor: VENDOR_ID, prefix }
    }

    /// From the body of a submessage.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn parse(body: &[u8], flags: u8) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, little_endian(flags));
        fields.octets(4)?;
        Ok(Self { version: fields.array()?, vendor: fields.array()?, prefix: fields.prefix()? })
    }

    /// Appends the submessage.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        Sink::new(out, little_endian).submessage(id::INFO_SRC, 0, |sink| {
            sink.u32(0);
            sink.octets(&self.version);
            sink.octets(&self.vendor);
            sink.octets(&self.prefix.0);
        });
    }
}

/// A list of locators, still in its octets: nothing is allocated for what a peer merely announces.
#[derive(Clone, Copy, Debug)]
pub struct LocatorListView<'a> {
    bytes: &'a [u8],
    little_endian: bool,
}

impl<'a> LocatorListView<'a> {
    fn parse(fields: &mut Reader<'a>, little_endian: bool) -> Result<Self, Malformed> {
        let count = usize::try_from(fields.u32()?).map_err(|_| Malformed::LengthOutOfRange)?;
        let bytes = count.checked_mul(LOCATOR_BYTES).ok_or(Malformed::LengthOutOfRange)?;
        Ok(Self { bytes: fields.octets(bytes)?, little_endian })
    }

    /// The locators in order.
    pub fn iter(&self) -> impl Iterator<Item = Locator> + use<'a> {
        let little_endian = self.little_endian;
        self.bytes
            .chunks_exact(LOCATOR_BYTES)
            .filter_map(move |chunk| Reader::new(chunk, little_endian).locator().ok())
    }
}

/// INFO_REPLY: where answers to the following submessages should go (§9.4.5.10).
#[derive(Clone, Copy, Debug)]
pub struct InfoReply<'a> {
    /// Unicast.
    pub unicast: LocatorListView<'a>,
    /// Multicast, when present.
    pub multicast: Option<LocatorListView<'a>>,
}

impl<'a> InfoReply<'a> {
    /// From the body of a submessage.
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::LengthOutOfRange`].
    pub fn parse(body: &'a [u8], flags: u8) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, little_endian(flags));
        let unicast = LocatorListView::parse(&mut fields, little_endian(flags))?;
        let has_multicast = flags & flag::MULTICAST != 0;
        let multicast =
            has_multicast.then(|| LocatorListView::parse(&mut fields, little_endian(flags))).transpose()?;
        Ok(Self { unicast, multicast })
    }
}

/// Appends INFO_REPLY; without multicast locators when there are none.
pub fn emit_reply(out: &mut Vec<u8>, unicast: &[Locator], multicast: &[Locator], little_endian: bool) {
    let flags = if multicast.is_empty() { 0 } else { flag::MULTICAST };
    Sink::new(out, little_endian).submessage(id::INFO_REPLY, flags, |sink| {
        for list in [unicast, multicast].into_iter().take(1 + usize::from(!multicast.is_empty())) {
            sink.u32(u32::try_from(list.len()).unwrap_or(u32::MAX));
            list.iter().for_each(|locator| sink.locator(locator));
        }
    });
}

/// INFO_REPLY_IP4: the same for one IPv4 address each (§9.4.5.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfoReplyIp4 {
    /// Unicast.
    pub unicast: Locator,
    /// Multicast, when present.
    pub multicast: Option<Locator>,
}

impl InfoReplyIp4 {
    /// From the body of a submessage.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn parse(body: &[u8], flags: u8) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, little_endian(flags));
        let mut locator = || -> Result<Locator, Malformed> {
            let mut address = [0; 16];
            let [.., a, b, c, d] = &mut address;
            // An address is a number here, so it follows the submessage's octet order (§9.4.3.1).
            [*a, *b, *c, *d] = fields.u32()?.to_be_bytes();
            Ok(Locator { kind: Locator::KIND_UDP_V4, port: fields.u32()?, address })
        };
        let unicast = locator()?;
        let multicast = (flags & flag::MULTICAST != 0).then(locator).transpose()?;
        Ok(Self { unicast, multicast })
    }

    /// Appends the submessage.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        let flags = if self.multicast.is_some() { flag::MULTICAST } else { 0 };
        Sink::new(out, little_endian).submessage(id::INFO_REPLY_IP4, flags, |sink| {
            for locator in std::iter::once(self.unicast).chain(self.multicast) {
                let [.., a, b, c, d] = locator.address;
                sink.u32(u32::from_be_bytes([a, b, c, d]));
                sink.u32(locator.port);
            }
        });
    }
}

/// A checksum over the whole message with these octets zero (Table 9.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// CRC-32C, big endian.
    Crc32c([u8; 4]),
    /// CRC-64/XZ, big endian.
    Crc64([u8; 8]),
    /// MD5.
    Md5([u8; 16]),
}

/// HEADER_EXTENSION, new in RTPS 2.5 (§8.3.7, §9.4.5.2). Extension fields without meaning are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderExtension {
    /// Octets of the whole message.
    pub message_bytes: Option<u32>,
    /// When the message was sent.
    pub send_timestamp: Option<Time>,
    /// Checksum of the message.
    pub checksum: Option<Checksum>,
}

/// Flags of HEADER_EXTENSION beside the octet order.
mod extension {
    pub(super) const LENGTH: u8 = 0x02;
    pub(super) const TIMESTAMP: u8 = 0x04;
    pub(super) const EXTENSION_4: u8 = 0x08;
    pub(super) const EXTENSION_8: u8 = 0x10;
    pub(super) const CHECKSUM_2: u8 = 0x20;
    pub(super) const CHECKSUM_1: u8 = 0x40;
    pub(super) const PARAMETERS: u8 = 0x80;
}

impl HeaderExtension {
    /// From the body of a submessage. Its parameter list may lack a sentinel (§9.4.2.11.1).
    ///
    /// # Errors
    /// [`Malformed::Truncated`], [`Malformed::LengthOutOfRange`], and [`Malformed::NotUnderstood`] when a
    /// parameter must be understood: then the whole message is to be ignored.
    pub fn parse(body: &[u8], flags: u8) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, little_endian(flags));
        let mut header = Self::default();
        let has = |flag: u8| flags & flag != 0;
        if has(extension::LENGTH) {
            header.message_bytes = Some(fields.u32()?);
        }
        if has(extension::TIMESTAMP) {
            header.send_timestamp = fields.time()?;
        }
        fields.octets(if has(extension::EXTENSION_4) { 4 } else { 0 })?;
        fields.octets(if has(extension::EXTENSION_8) { 8 } else { 0 })?;
        header.checksum = match (has(extension::CHECKSUM_1), has(extension::CHECKSUM_2)) {
            (false, false) => None,
            (false, true) => Some(Checksum::Crc32c(fields.array()?)),
            (true, false) => Some(Checksum::Crc64(fields.array()?)),
            (true, true) => Some(Checksum::Md5(fields.array()?)),
        };
        if has(extension::PARAMETERS) {
            check_parameters(fields)?;
        }
        Ok(header)
    }

    /// Appends the submessage.
    pub fn emit(&self, out: &mut Vec<u8>, little_endian: bool) {
        let length = if self.message_bytes.is_some() { extension::LENGTH } else { 0 };
        let timestamp = if self.send_timestamp.is_some() { extension::TIMESTAMP } else { 0 };
        let (checksum, octets): (u8, &[u8]) = match &self.checksum {
            None => (0, &[]),
            Some(Checksum::Crc32c(octets)) => (extension::CHECKSUM_2, octets),
            Some(Checksum::Crc64(octets)) => (extension::CHECKSUM_1, octets),
            Some(Checksum::Md5(octets)) => (extension::CHECKSUM_1 | extension::CHECKSUM_2, octets),
        };
        let flags = length | timestamp | checksum;
        Sink::new(out, little_endian).submessage(id::HEADER_EXTENSION, flags, |sink| {
            self.message_bytes.into_iter().for_each(|bytes| sink.u32(bytes));
            self.send_timestamp.into_iter().for_each(|time| sink.time(time));
            sink.octets(octets);
        });
    }
}

/// No parameter of a header extension has a meaning yet, so each may be skipped or forbids the message.
fn check_parameters(mut fields: Reader<'_>) -> Result<(), Malformed> {
    for _ in 0..PARAMETERS_MAX {
        if fields.is_empty() {
            return Ok(());
        }
        let (id, length) = (fields.u16()?, fields.u16()?);
        if id == pid::SENTINEL {
            return Ok(());
        }
        if id & pid::MUST_UNDERSTAND != 0 {
            return Err(Malformed::NotUnderstood);
        }
        fields.octets(length.into())?;
    }
    Err(Malformed::LengthOutOfRange)
}
