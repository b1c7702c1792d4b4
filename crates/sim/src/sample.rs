//! The type of every simulated topic: a payload that knows who wrote it and proves it is whole.

use plainsong_proto::filter::{ContentFilter, PayloadFilter};
use plainsong_proto::instance::{InstanceHandle, Key};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::payload::Payload;

/// What one sample says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The key.
    pub instance: u32,
    /// Index of the writer in the ledger.
    pub writer: u32,
    /// Data samples this writer wrote before.
    pub counter: u32,
}

/// Encapsulation header (CDR_LE) and the fields; filler follows.
pub const HEADER_BYTES: usize = 4 + 4 * 4 + 8;

const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];

impl Sample {
    /// The serialized payload, at least `bytes` long.
    #[must_use]
    pub fn encode(&self, bytes: usize) -> Payload {
        let length = bytes.max(HEADER_BYTES);
        let mut payload = Vec::with_capacity(length);
        payload.extend(ENCAPSULATION);
        for field in [self.instance, self.writer, self.counter, length as u32] {
            payload.extend(field.to_le_bytes());
        }
        payload.extend([0; 8]);
        let filler = self.counter.wrapping_mul(0x9e37_79b9) ^ self.writer;
        payload.extend((payload.len()..length).map(|at| (filler >> (at % 4 * 8)) as u8 ^ (at / 4) as u8));
        let sum = checksum(&payload);
        payload[20..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        Payload::from_vec(payload)
    }

    /// What arrived, or what is wrong with it. Up to three octets of padding may follow.
    ///
    /// # Errors
    /// Which property of the payload does not hold.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let field = |index: usize| {
            let at = 4 + index * 4;
            let octets = bytes.get(at..at + 4).and_then(|octets| octets.try_into().ok());
            octets.map(u32::from_le_bytes).ok_or("payload is too short")
        };
        let length = field(3)? as usize;
        if length < HEADER_BYTES || bytes.len() < length || bytes.len() >= length + 4 {
            return Err("payload has another length than it was written with");
        }
        let sum = checksum(&bytes[..length]);
        if bytes[20..HEADER_BYTES] != sum.to_le_bytes() {
            return Err("payload fails its checksum");
        }
        Ok(Self { instance: field(0)?, writer: field(1)?, counter: field(2)? })
    }
}

/// The serialized key of `instance`.
#[must_use]
pub fn encode_key(instance: u32) -> Payload {
    let mut payload = ENCAPSULATION.to_vec();
    payload.extend(instance.to_le_bytes());
    Payload::from_vec(payload)
}

/// The handle of `instance`: its key in big endian, padded (RTPS 2.5 §9.6.4.8).
#[must_use]
pub fn handle(instance: u32) -> InstanceHandle {
    let mut handle = InstanceHandle::NIL;
    handle.0[..4].copy_from_slice(&instance.to_be_bytes());
    handle
}

/// The instance a handle names.
#[must_use]
pub fn instance(handle: InstanceHandle) -> u32 {
    let [a, b, c, d, ..] = handle.0;
    u32::from_be_bytes([a, b, c, d])
}

/// A content filter: of the samples of each writer, one in so many passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// One in this many passes; at least 1.
    pub one_in: u32,
    /// Which one.
    pub remainder: u32,
}

impl Filter {
    /// Whether a sample with this counter passes.
    #[must_use]
    pub const fn passes(self, counter: u32) -> bool {
        counter % self.one_in == self.remainder
    }

    /// What a reader announces of it.
    #[must_use]
    pub fn announced(self, topic: &str) -> ContentFilter {
        ContentFilter {
            topic_name: format!("some of {topic}"),
            related_topic_name: topic.to_owned(),
            class_name: ContentFilter::SQL.to_owned(),
            expression: "counter MOD %0 = %1".to_owned(),
            parameters: vec![self.one_in.to_string(), self.remainder.to_string()],
        }
    }

    /// The filter that somebody else announced.
    #[must_use]
    pub fn told(announced: &ContentFilter) -> Option<Self> {
        let parameter = |at: usize| announced.parameters.get(at)?.parse().ok();
        let filter = Self { one_in: parameter(0)?, remainder: parameter(1)? };
        (filter.one_in > 0).then_some(filter)
    }

    /// What a reader obeys.
    #[must_use]
    pub fn obeyed(self) -> PayloadFilter {
        PayloadFilter::new(move |payload| {
            Sample::decode(payload).is_ok_and(|sample| self.passes(sample.counter))
        })
    }
}

/// What a writer makes of an announced filter.
#[must_use]
pub fn content_filter(announced: &ContentFilter) -> Option<PayloadFilter> {
    Filter::told(announced).map(Filter::obeyed)
}

/// The key function of keyed simulated topics.
///
/// # Errors
/// [`Malformed::Truncated`] when the payload has no room for a key.
pub fn key(payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    let octets = payload.get(4..8).and_then(|octets| octets.try_into().ok()).ok_or(Malformed::Truncated)?;
    Ok(handle(u32::from_le_bytes(octets)).into())
}

/// The key function of topics without key.
///
/// # Errors
/// Never.
pub fn no_key(_payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    Ok(InstanceHandle::NIL.into())
}

/// Of everything but the checksum itself.
fn checksum(payload: &[u8]) -> u64 {
    let (head, tail) = (&payload[4..20], &payload[HEADER_BYTES..]);
    crate::trace::octets(head) ^ crate::trace::octets(tail).rotate_left(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_survives_its_payload_and_any_flipped_octet_shows() {
        let sample = Sample { instance: 7, writer: 3, counter: 99 };
        for bytes in [0, 28, 29, 1000] {
            let payload = sample.encode(bytes);
            assert_eq!(Sample::decode(payload.as_slice()), Ok(sample));
            assert_eq!(key(payload.as_slice(), false), Ok(handle(7).into()));
            for at in 4..payload.len() {
                let mut broken = payload.as_slice().to_vec();
                broken[at] ^= 0x10;
                assert!(Sample::decode(&broken).is_err(), "octet {at} of {bytes}");
            }
        }
        assert_eq!(instance(handle(20)), 20);
        assert_eq!(key(encode_key(5).as_slice(), true), Ok(handle(5).into()));
    }
}
