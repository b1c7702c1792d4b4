//! Octets as text (RFC 4648 §4): of sequences and arrays of octets in JSON.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, ANY_PADDING);

/// The text of octets, padded.
#[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "JSON alone writes it"))]
pub(super) fn encode(octets: &[u8]) -> String {
    ENGINE.encode(octets)
}

/// The octets of a text, padded or not; `None` where it is no such text.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    ENGINE.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (octets, text) in vectors {
            assert_eq!(encode(octets.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(octets.as_bytes()));
            assert_eq!(decode(text.trim_end_matches('=')).as_deref(), Some(octets.as_bytes()));
        }
        assert_eq!(encode(&[0xff, 0xfe, 0xfb]), "//77");
        for wrong in ["Z", "Zg===", "Zg=a", "Z g=", "Zé=="] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
