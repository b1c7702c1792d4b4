//! Octets as text (RFC 4648 §4): of sequences and arrays of octets in JSON.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of octets, padded.
#[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "JSON alone writes it"))]
pub(super) fn encode(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len().div_ceil(3).saturating_mul(4));
    for chunk in octets.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'=');
            text.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// The octets of a text, padded or not; `None` where it is no such text.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=').as_bytes();
    if text.len() - letters.len() > 2 || letters.len() % 4 == 1 {
        return None;
    }
    let mut octets = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    for chunk in letters.chunks(4) {
        let mut bits = 0_u32;
        for letter in chunk {
            bits = bits << 6 | u32::from(value_of(*letter)?);
        }
        bits <<= 6 * (4 - chunk.len());
        let [_, whole @ ..] = bits.to_be_bytes();
        octets.extend(whole.iter().take(chunk.len() - 1));
    }
    Some(octets)
}

const fn value_of(letter: u8) -> Option<u8> {
    Some(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
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
