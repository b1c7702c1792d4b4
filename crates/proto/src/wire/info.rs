//! INFO_DST, INFO_TS, INFO_SRC, INFO_REPLY and INFO_REPLY_IP4 (RTPS 2.5 §9.4.5.9 to §9.4.5.15).

use crate::guid::GuidPrefix;
use crate::time::Time;

use super::header::{PROTOCOL_VERSION, VENDOR_ID, flag, id};
use super::octets::Sink;

/// Octets of INFO_DST with its header.
pub(crate) const DESTINATION_BYTES: usize = 16;
/// Octets of INFO_TS with its header and a timestamp.
pub(crate) const TIMESTAMP_BYTES: usize = 12;
/// Octets of INFO_SRC with its header.
pub(crate) const SOURCE_BYTES: usize = 24;

pub(crate) const fn timestamp_bytes(time: Option<Time>) -> usize {
    if time.is_some() { TIMESTAMP_BYTES } else { 4 }
}

/// INFO_DST.
pub(crate) fn emit_destination(out: &mut Vec<u8>, prefix: GuidPrefix, little_endian: bool) {
    Sink::new(out, little_endian).submessage(id::INFO_DST, 0, |sink| sink.octets(&prefix.0));
}

/// INFO_TS; `None` invalidates.
pub(crate) fn emit_timestamp(out: &mut Vec<u8>, time: Option<Time>, little_endian: bool) {
    let flags = if time.is_some() { 0 } else { flag::INVALIDATE };
    Sink::new(out, little_endian).submessage(id::INFO_TS, flags, |sink| {
        if let Some(time) = time {
            sink.time(time);
        }
    });
}

/// INFO_SRC, in our version and with our vendor id.
pub(crate) fn emit_source(out: &mut Vec<u8>, prefix: GuidPrefix, little_endian: bool) {
    Sink::new(out, little_endian).submessage(id::INFO_SRC, 0, |sink| {
        sink.u32(0);
        sink.octets(&PROTOCOL_VERSION);
        sink.octets(&VENDOR_ID);
        sink.octets(&prefix.0);
    });
}
