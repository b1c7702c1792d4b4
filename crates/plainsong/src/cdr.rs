//! Samples as octets (XTypes 1.3 §7.4): for [`crate::serialized`], and for programs that keep samples
//! elsewhere.

pub use plainsong_proto::cdr::{
    Encapsulation, EncodeError, Endianness, Float128, KeyHash, OctetSeq, WChar, WString, XcdrVersion,
    from_payload, key_from_payload, key_hash, key_to_payload, to_payload,
};
pub use plainsong_proto::malformed::Malformed;
pub use plainsong_proto::payload::Payload;
