//! GUIDs, and the table of built-in entity ids (RTPS 2.5 §8.2.4, §9.3.1).

use std::fmt;
use std::str::FromStr;

use crate::malformed::{InvalidText, octets_of_hex};

/// The twelve octets that all entities of one participant share.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuidPrefix(pub [u8; 12]);

/// The four octets that tell the entities of one participant apart: a 3-octet key and a kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub [u8; 4]);

/// The globally unique id of an entity. Octets on the wire, never swapped.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "String")
)]
pub struct Guid {
    /// Which participant.
    pub prefix: GuidPrefix,
    /// Which of its entities.
    pub entity: EntityId,
}

impl GuidPrefix {
    /// `GUIDPREFIX_UNKNOWN`: addressed to everyone.
    pub const UNKNOWN: Self = Self([0; 12]);

    /// Whether two Plainsong participants are of one process: the octets after the vendor id name it, the
    /// last four the participant.
    #[must_use]
    pub fn is_of_process(self, other: Self) -> bool {
        self.0[..Self::PROCESS_BYTES] == other.0[..Self::PROCESS_BYTES]
    }

    /// Octets that all Plainsong participants of a process have in common, beginning with the vendor id.
    pub const PROCESS_BYTES: usize = 8;

    /// The GUID of the participant itself.
    #[must_use]
    pub const fn participant(self) -> Guid {
        self.entity(EntityId::PARTICIPANT)
    }

    /// The GUID of one entity of this participant.
    #[must_use]
    pub const fn entity(self, entity: EntityId) -> Guid {
        Guid { prefix: self, entity }
    }
}

impl EntityId {
    /// `ENTITYID_UNKNOWN`.
    pub const UNKNOWN: Self = Self([0; 4]);
    /// `ENTITYID_PARTICIPANT`.
    pub const PARTICIPANT: Self = Self([0, 0, 1, 0xc1]);
    /// SPDP announcer.
    pub const SPDP_WRITER: Self = Self([0, 1, 0, 0xc2]);
    /// SPDP detector.
    pub const SPDP_READER: Self = Self([0, 1, 0, 0xc7]);
    /// SEDP publications announcer.
    pub const SEDP_PUBLICATIONS_WRITER: Self = Self([0, 0, 3, 0xc2]);
    /// SEDP publications detector.
    pub const SEDP_PUBLICATIONS_READER: Self = Self([0, 0, 3, 0xc7]);
    /// SEDP subscriptions announcer.
    pub const SEDP_SUBSCRIPTIONS_WRITER: Self = Self([0, 0, 4, 0xc2]);
    /// SEDP subscriptions detector.
    pub const SEDP_SUBSCRIPTIONS_READER: Self = Self([0, 0, 4, 0xc7]);
    /// SEDP topics announcer (optional, not used by us).
    pub const SEDP_TOPICS_WRITER: Self = Self([0, 0, 2, 0xc2]);
    /// SEDP topics detector (optional, not used by us).
    pub const SEDP_TOPICS_READER: Self = Self([0, 0, 2, 0xc7]);
    /// Participant message (liveliness) writer.
    pub const PARTICIPANT_MESSAGE_WRITER: Self = Self([0, 2, 0, 0xc2]);
    /// Participant message (liveliness) reader.
    pub const PARTICIPANT_MESSAGE_READER: Self = Self([0, 2, 0, 0xc7]);
    /// TypeLookup request writer and reader, reply writer and reader (XTypes 1.3 §7.6.3.3.3).
    pub const TYPE_LOOKUP: [Self; 4] =
        [Self([0, 3, 0, 0xc3]), Self([0, 3, 0, 0xc4]), Self([0, 3, 1, 0xc3]), Self([0, 3, 1, 0xc4])];

    /// A user-defined writer, keyed (kind 0x02) or not (0x03); `key` uses its low 24 bits.
    #[must_use]
    pub const fn user_writer(key: u32, keyed: bool) -> Self {
        Self::with_kind(key, if keyed { 0x02 } else { 0x03 })
    }

    /// A user-defined reader, keyed (kind 0x07) or not (0x04); `key` uses its low 24 bits.
    #[must_use]
    pub const fn user_reader(key: u32, keyed: bool) -> Self {
        Self::with_kind(key, if keyed { 0x07 } else { 0x04 })
    }

    /// Any kind octet; `key` uses its low 24 bits.
    #[must_use]
    pub const fn with_kind(key: u32, kind: u8) -> Self {
        let key = key.to_be_bytes();
        Self([key[1], key[2], key[3], kind])
    }

    /// The kind octet (RTPS 2.5 Table 9.1).
    #[must_use]
    pub const fn kind(self) -> u8 {
        self.0[3]
    }

    /// Whether the two top bits of the kind say built-in.
    #[must_use]
    pub const fn is_builtin(self) -> bool {
        self.kind() & 0xc0 == 0xc0
    }

    /// Whether the two top bits of the kind say that it is one of a vendor's own.
    #[must_use]
    pub const fn is_vendor_specific(self) -> bool {
        self.kind() & 0xc0 == 0x40
    }

    /// Whether both are a vendor's own and differ at most in their kinds: the writer of somebody's messages
    /// to others, and the reader of theirs.
    #[must_use]
    pub const fn is_counterpart(self, other: Self) -> bool {
        let ([a, b, c, _], [d, e, f, _]) = (self.0, other.0);
        self.is_vendor_specific() && other.is_vendor_specific() && a == d && b == e && c == f
    }

    /// Whether this names a writer, user or built-in.
    #[must_use]
    pub const fn is_writer(self) -> bool {
        matches!(self.kind() & 0x3f, 0x02 | 0x03)
    }

    /// Whether this names a reader, user or built-in.
    #[must_use]
    pub const fn is_reader(self) -> bool {
        matches!(self.kind() & 0x3f, 0x04 | 0x07)
    }

    /// Whether an endpoint of this kind has a keyed type.
    #[must_use]
    pub const fn is_keyed(self) -> bool {
        matches!(self.kind() & 0x3f, 0x02 | 0x07)
    }
}

impl Guid {
    /// `GUID_UNKNOWN`.
    pub const UNKNOWN: Self = Self { prefix: GuidPrefix::UNKNOWN, entity: EntityId::UNKNOWN };

    /// The sixteen octets as they travel.
    #[inline]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        // As one array: put together from two parts in memory, it could not be read again at once.
        let ([a, b, c, d, e, f, g, h, i, j, k, l], [m, n, o, p]) = (self.prefix.0, self.entity.0);
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }

    /// From the sixteen octets as they travel.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let mut guid = Self::UNKNOWN;
        guid.prefix.0.copy_from_slice(&bytes[..12]);
        guid.entity.0.copy_from_slice(&bytes[12..]);
        guid
    }
}

fn hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Debug for GuidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(f, &self.0)
    }
}

impl fmt::Debug for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(f, &self.0)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{:?}", self.prefix, self.entity)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Reads what `Display` writes.
impl FromStr for Guid {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let (prefix, entity) = text.split_once(':').ok_or(InvalidText("GUID"))?;
        let octets = |text, into: &mut [u8]| octets_of_hex(text, into).ok_or(InvalidText("GUID"));
        let mut guid = Self::UNKNOWN;
        octets(prefix, &mut guid.prefix.0)?;
        octets(entity, &mut guid.entity.0)?;
        Ok(guid)
    }
}

impl TryFrom<String> for Guid {
    type Error = InvalidText;

    fn try_from(text: String) -> Result<Self, InvalidText> {
        text.parse()
    }
}

impl From<Guid> for String {
    fn from(guid: Guid) -> Self {
        guid.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_read_as_it_is_written() {
        let guid = Guid::from_bytes([1, 15, 0x99, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff]);
        assert_eq!(guid.to_string().parse(), Ok(guid));
        for wrong in
            ["", ":", "00:00", "010f99040506070809\u{e9}0b0c:0d0e0fff", "010f990405060708090a0b0c:+d0e0fff"]
        {
            assert_eq!(wrong.parse::<Guid>(), Err(InvalidText("GUID")), "{wrong:?}");
        }
    }

    #[test]
    fn fact_21_kinds_tell_writers_readers_and_keys_apart() {
        assert!(EntityId::user_writer(7, true).is_writer() && EntityId::user_writer(7, true).is_keyed());
        assert!(EntityId::user_reader(7, false).is_reader() && !EntityId::user_reader(7, false).is_keyed());
        assert!(EntityId::SPDP_READER.is_reader() && EntityId::SPDP_READER.is_builtin());
        assert!(!EntityId::PARTICIPANT.is_reader() && !EntityId::PARTICIPANT.is_writer());
        assert_eq!(EntityId::user_writer(0x0001_0203, true).0, [1, 2, 3, 2]);
    }

    #[test]
    fn fact_22_built_in_entities_have_the_ids_of_the_standard() {
        // Key, kind of the writer, kind of the reader (RTPS 2.5 Table 9.3; XTypes 1.3 §7.6.3.3.3).
        let [request_writer, request_reader, reply_writer, reply_reader] = EntityId::TYPE_LOOKUP;
        let table = [
            (0x00_0100, 0xc2, 0xc7, EntityId::SPDP_WRITER, EntityId::SPDP_READER),
            (0x00_0003, 0xc2, 0xc7, EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_PUBLICATIONS_READER),
            (0x00_0004, 0xc2, 0xc7, EntityId::SEDP_SUBSCRIPTIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_READER),
            (0x00_0002, 0xc2, 0xc7, EntityId::SEDP_TOPICS_WRITER, EntityId::SEDP_TOPICS_READER),
            (
                0x00_0200,
                0xc2,
                0xc7,
                EntityId::PARTICIPANT_MESSAGE_WRITER,
                EntityId::PARTICIPANT_MESSAGE_READER,
            ),
            (0x00_0300, 0xc3, 0xc4, request_writer, request_reader),
            (0x00_0301, 0xc3, 0xc4, reply_writer, reply_reader),
        ];
        for (key, writer_kind, reader_kind, writer, reader) in table {
            assert_eq!(writer, EntityId::with_kind(key, writer_kind));
            assert_eq!(reader, EntityId::with_kind(key, reader_kind));
            assert!(writer.is_builtin() && writer.is_writer() && !writer.is_reader());
            assert!(reader.is_builtin() && reader.is_reader() && !reader.is_writer());
            assert_eq!(writer.is_keyed(), writer_kind == 0xc2);
            assert_eq!(reader.is_keyed(), reader_kind == 0xc7);
        }
        assert_eq!(EntityId::PARTICIPANT.0, [0x00, 0x00, 0x01, 0xc1]);
        assert_eq!(EntityId::SPDP_WRITER.0, [0x00, 0x01, 0x00, 0xc2]);
        assert!(EntityId::PARTICIPANT.is_builtin() && !EntityId::user_writer(7, true).is_builtin());
    }

    #[test]
    fn fact_2_guids_are_octets_in_order() {
        let bytes: [u8; 16] = std::array::from_fn(|index| index as u8);
        assert_eq!(Guid::from_bytes(bytes).to_bytes(), bytes);
    }
}
