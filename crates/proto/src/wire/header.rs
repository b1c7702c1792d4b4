//! The message header and submessage headers (RTPS 2.5 §8.3.3, §9.4.4, §9.4.5.1).

use crate::guid::GuidPrefix;
use crate::malformed::Malformed;
use crate::payload::Payload;

/// Octets of the message header.
pub const HEADER_BYTES: usize = 20;
/// Octets of a submessage header.
pub const SUBMESSAGE_HEADER_BYTES: usize = 4;
/// The protocol version we speak.
pub const PROTOCOL_VERSION: [u8; 2] = [2, 5];
/// Our vendor id: unassigned until the OMG lists one for Plainsong.
pub const VENDOR_ID: [u8; 2] = [0x01, 0xf5];
/// The first four octets of every message.
pub const MAGIC: [u8; 4] = *b"RTPS";

/// Submessage ids (RTPS 2.5 Table 9.13, DDS Security 1.1 §7.3.6).
pub mod id {
    /// HEADER_EXTENSION.
    pub const HEADER_EXTENSION: u8 = 0x00;
    /// PAD.
    pub const PAD: u8 = 0x01;
    /// ACKNACK.
    pub const ACKNACK: u8 = 0x06;
    /// HEARTBEAT.
    pub const HEARTBEAT: u8 = 0x07;
    /// GAP.
    pub const GAP: u8 = 0x08;
    /// INFO_TS.
    pub const INFO_TS: u8 = 0x09;
    /// INFO_SRC.
    pub const INFO_SRC: u8 = 0x0c;
    /// INFO_REPLY_IP4.
    pub const INFO_REPLY_IP4: u8 = 0x0d;
    /// INFO_DST.
    pub const INFO_DST: u8 = 0x0e;
    /// INFO_REPLY.
    pub const INFO_REPLY: u8 = 0x0f;
    /// NACK_FRAG.
    pub const NACK_FRAG: u8 = 0x12;
    /// HEARTBEAT_FRAG.
    pub const HEARTBEAT_FRAG: u8 = 0x13;
    /// DATA.
    pub const DATA: u8 = 0x15;
    /// DATA_FRAG.
    pub const DATA_FRAG: u8 = 0x16;
    /// SEC_BODY.
    pub const SEC_BODY: u8 = 0x30;
    /// SEC_PREFIX.
    pub const SEC_PREFIX: u8 = 0x31;
    /// SEC_POSTFIX.
    pub const SEC_POSTFIX: u8 = 0x32;
    /// SRTPS_PREFIX.
    pub const SRTPS_PREFIX: u8 = 0x33;
    /// SRTPS_POSTFIX.
    pub const SRTPS_POSTFIX: u8 = 0x34;
    /// The first of those that §9.4.5.1 leaves to vendors, to 0xff.
    pub const VENDOR_SPECIFIC_FIRST: u8 = 0x80;
    /// Ours alone, of those that §9.4.5.1 leaves to vendors: the count of the HEARTBEAT that the next ACKNACK
    /// answers.
    pub const ANSWERED: u8 = 0x81;
}

/// Flag bits of submessage headers; bit 0 is the octet order in all of them (§9.4.5.1.2).
pub mod flag {
    /// Little endian.
    pub const LITTLE_ENDIAN: u8 = 0x01;
    /// DATA, DATA_FRAG: inline QoS present.
    pub const INLINE_QOS: u8 = 0x02;
    /// DATA: the payload is data.
    pub const DATA: u8 = 0x04;
    /// DATA: the payload is a serialized key.
    pub const DATA_KEY: u8 = 0x08;
    /// DATA_FRAG: the payload is a serialized key.
    pub const FRAG_KEY: u8 = 0x04;
    /// HEARTBEAT, ACKNACK: no answer required.
    pub const FINAL: u8 = 0x02;
    /// HEARTBEAT: manual assertion of liveliness.
    pub const LIVELINESS: u8 = 0x04;
    /// HEARTBEAT: group information present.
    pub const HEARTBEAT_GROUP: u8 = 0x08;
    /// GAP: group information present.
    pub const GAP_GROUP: u8 = 0x02;
    /// GAP: filtered count present.
    pub const GAP_FILTERED: u8 = 0x04;
    /// DATA: the payload was transformed, for instance encrypted.
    pub const DATA_NON_STANDARD: u8 = 0x10;
    /// DATA_FRAG: the payload was transformed, for instance encrypted.
    pub const FRAG_NON_STANDARD: u8 = 0x08;
    /// INFO_TS: no timestamp from here on.
    pub const INVALIDATE: u8 = 0x02;
    /// INFO_REPLY, INFO_REPLY_IP4: multicast locators present.
    pub const MULTICAST: u8 = 0x02;
}

/// The message header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Major and minor protocol version.
    pub version: [u8; 2],
    /// Vendor of the sender.
    pub vendor: [u8; 2],
    /// The sender.
    pub prefix: GuidPrefix,
}

impl Header {
    /// The header at the front of a datagram, and the submessages after it. Any version passes here:
    /// the caller refuses other majors.
    ///
    /// # Errors
    /// [`Malformed::InvalidHeader`].
    pub fn parse(datagram: &[u8]) -> Result<(Self, Submessages<'_>), Malformed> {
        let (head, rest) = datagram.split_first_chunk::<HEADER_BYTES>().ok_or(Malformed::InvalidHeader)?;
        let [r, t, p, s, major, minor, vendor, vendors, prefix @ ..] = *head;
        if [r, t, p, s] != MAGIC {
            return Err(Malformed::InvalidHeader);
        }
        let header = Self { version: [major, minor], vendor: [vendor, vendors], prefix: GuidPrefix(prefix) };
        Ok((header, Submessages { rest, attachment: None }))
    }
}

/// A submessage with its header checked and its contents not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submessage<'a> {
    /// One of [`id`], or unknown.
    pub id: u8,
    /// Flags, of which bit 0 is the octet order.
    pub flags: u8,
    /// Contents.
    pub body: &'a [u8],
    /// What came with the message, if this is a DATA that goes to its end, whose payload it may be.
    pub attachment: Option<&'a Payload>,
}

/// Walks the submessages of one message; ends after the first error.
#[derive(Clone, Copy, Debug)]
pub struct Submessages<'a> {
    rest: &'a [u8],
    attachment: Option<&'a Payload>,
}

impl<'a> Submessages<'a> {
    /// The same of a message with which a payload came beside its octets.
    pub(crate) const fn with(self, attachment: Option<&'a Payload>) -> Self {
        Self { attachment, ..self }
    }

    /// Whether no submessage had the attachment yet.
    pub(crate) const fn has_attachment(&self) -> bool {
        self.attachment.is_some()
    }

    /// Octets that were not walked yet.
    pub(crate) const fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// The id of the submessage that comes next.
    pub(crate) const fn next_id(&self) -> Option<u8> {
        if let [id, ..] = self.rest { Some(*id) } else { None }
    }

    #[inline]
    fn advance(&mut self) -> Result<Submessage<'a>, Malformed> {
        let (&[id, flags, first, second], contents) =
            self.rest.split_first_chunk::<SUBMESSAGE_HEADER_BYTES>().ok_or(Malformed::Truncated)?;
        let little_endian = flags & flag::LITTLE_ENDIAN != 0;
        let length = [first, second];
        let length = if little_endian { u16::from_le_bytes(length) } else { u16::from_be_bytes(length) };
        let length = usize::from(length);
        // Zero means "to the end of the message", but for those that may be empty (§9.4.5.1.3).
        let to_the_end = length == 0 && !matches!(id, id::PAD | id::INFO_TS);
        let end = if to_the_end { contents.len() } else { length };
        let (body, rest) = contents.split_at_checked(end).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        let attachment = if to_the_end && id == id::DATA { self.attachment.take() } else { None };
        Ok(Submessage { id, flags, body, attachment })
    }
}

impl<'a> Iterator for Submessages<'a> {
    type Item = Result<Submessage<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let submessage = self.advance();
        if submessage.is_err() {
            self.rest = &[];
        }
        Some(submessage)
    }
}

/// The header of a message from `prefix`, in our version and with our vendor id.
#[inline]
pub(crate) fn emit(out: &mut Vec<u8>, prefix: &GuidPrefix) {
    const OURS: [[u8; 2]; 4] = [[MAGIC[0], MAGIC[1]], [MAGIC[2], MAGIC[3]], PROTOCOL_VERSION, VENDOR_ID];
    out.extend_from_slice(OURS.as_flattened());
    out.extend_from_slice(&prefix.0);
}
