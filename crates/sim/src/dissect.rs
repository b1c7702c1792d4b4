//! A reader of RTPS messages that shares no code with the protocol core: for traces, and for the
//! checker that counts what still travels when nothing should (RTPS 2.5 §9.4).

use std::fmt;

use plainsong_proto::guid::{EntityId, GuidPrefix};

/// What one datagram carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Who sent it.
    pub source: GuidPrefix,
    /// Its submessages, in order.
    pub submessages: Vec<Submessage>,
}

/// One submessage, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submessage {
    /// The submessage id.
    pub id: u8,
    /// The reader, or UNKNOWN.
    pub reader: EntityId,
    /// The writer, or UNKNOWN.
    pub writer: EntityId,
    /// The first sequence number in it.
    pub number: u64,
    /// HEARTBEAT: the last sequence number. Others: 0.
    pub last: u64,
}

/// Submessage id of ACKNACK.
pub const ACKNACK: u8 = 0x06;
/// Submessage id of HEARTBEAT.
pub const HEARTBEAT: u8 = 0x07;
/// Submessage id of GAP.
pub const GAP: u8 = 0x08;
/// Submessage id of NACK_FRAG.
pub const NACK_FRAG: u8 = 0x12;
/// Submessage id of HEARTBEAT_FRAG.
pub const HEARTBEAT_FRAG: u8 = 0x13;
/// Submessage id of DATA.
pub const DATA: u8 = 0x15;
/// Submessage id of DATA_FRAG.
pub const DATA_FRAG: u8 = 0x16;

const HEADER_BYTES: usize = 20;

impl Submessage {
    /// Whether it belongs to a user endpoint.
    #[must_use]
    pub fn is_user(&self) -> bool {
        self.writer != EntityId::UNKNOWN && !self.writer.is_builtin()
    }
}

/// Reads as much of `bytes` as makes sense; `None` when it is no RTPS message.
#[must_use]
pub fn dissect(bytes: &[u8]) -> Option<Summary> {
    let header = bytes.get(..HEADER_BYTES)?;
    if !header.starts_with(b"RTPS") {
        return None;
    }
    let mut summary = Summary::default();
    summary.source.0.copy_from_slice(&header[8..]);
    let mut rest = &bytes[HEADER_BYTES..];
    while let [id, flags, low, high, body @ ..] = rest {
        let little = flags & 1 != 0;
        let length = if little { [*low, *high] } else { [*high, *low] };
        let length = usize::from(u16::from_le_bytes(length));
        let length = if length == 0 && *id != 0x01 && *id != 0x09 { body.len() } else { length };
        let content = body.get(..length)?;
        summary.submessages.push(submessage(*id, content, little));
        rest = &body[length..];
    }
    Some(summary)
}

fn submessage(id: u8, content: &[u8], little: bool) -> Submessage {
    let entities = if matches!(id, DATA | DATA_FRAG) { 4 } else { 0 };
    let mut found =
        Submessage { id, reader: EntityId::UNKNOWN, writer: EntityId::UNKNOWN, number: 0, last: 0 };
    if !matches!(id, ACKNACK | HEARTBEAT | GAP | NACK_FRAG | HEARTBEAT_FRAG | DATA | DATA_FRAG) {
        return found;
    }
    if let Some(ids) = content.get(entities..entities + 8) {
        found.reader.0.copy_from_slice(&ids[..4]);
        found.writer.0.copy_from_slice(&ids[4..]);
    }
    found.number = number(content, entities + 8, little);
    if id == HEARTBEAT {
        found.last = number(content, entities + 16, little);
    }
    found
}

fn number(content: &[u8], at: usize, little: bool) -> u64 {
    let word = |at: usize| {
        let octets = content.get(at..at + 4).and_then(|octets| octets.try_into().ok()).unwrap_or([0; 4]);
        u64::from(if little { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) })
    };
    word(at) << 32 | word(at + 4)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, submessage) in self.submessages.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            write!(f, "{separator}{submessage}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Submessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.id {
            ACKNACK => "ACKNACK",
            HEARTBEAT => "HEARTBEAT",
            GAP => "GAP",
            NACK_FRAG => "NACK_FRAG",
            HEARTBEAT_FRAG => "HEARTBEAT_FRAG",
            DATA => "DATA",
            DATA_FRAG => "DATA_FRAG",
            0x09 => return write!(f, "TS"),
            0x0e => return write!(f, "DST"),
            id => return write!(f, "{id:#04x}"),
        };
        write!(f, "{name}({:?}>{:?} #{}", self.writer, self.reader, self.number)?;
        if self.id == HEARTBEAT { write!(f, "..{})", self.last) } else { write!(f, ")") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_behind_a_destination_is_understood() {
        let mut bytes = b"RTPS\x02\x05\x01\x99".to_vec();
        bytes.extend([7; 12]);
        bytes.extend([0x0e, 1, 12, 0]);
        bytes.extend([9; 12]);
        bytes.extend([HEARTBEAT, 1, 28, 0]);
        bytes.extend([0, 0, 1, 4, 0, 0, 2, 3]);
        bytes.extend([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0]);
        let summary = dissect(&bytes).expect("an RTPS message");
        assert_eq!(summary.source, GuidPrefix([7; 12]));
        let heartbeat = summary.submessages[1];
        assert_eq!((heartbeat.number, heartbeat.last), (1, 5));
        assert!(heartbeat.is_user());
        assert_eq!(summary.to_string(), "DST HEARTBEAT(00000203>00000104 #1..5)");
        assert_eq!(dissect(b"HTTP/1.1 200 OK and more"), None);
    }
}
