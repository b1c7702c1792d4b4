//! The DDS type `long double`.

use super::decode::Decoder;
use super::encode::{EncodeError, Encoder};
use super::{Cdr, ElementKind, Endianness, Extent};
use crate::malformed::Malformed;
use crate::types::{Primitive, TypeBuilder, TypeIdentifier, TypeIdentifiers};

/// A floating-point number of 16 octets, binary128 of IEEE 754: the DDS type `long double`. Rust has no such
/// type to calculate with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Float128(u128);

/// Bits of the fraction, and how much larger than its exponent the stored one is.
const FRACTION_BITS: u32 = 112;
const BIAS: i32 = 16_383;
const SIGN: u128 = 1 << 127;
const FRACTION: u128 = (1 << FRACTION_BITS) - 1;
/// The same of an `f64`.
const SHORT_FRACTION_BITS: u32 = 52;
const SHORT_BIAS: i32 = 1_023;

impl Float128 {
    /// The number with these bits: sign, 15 bits of exponent, 112 of fraction.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Its bits.
    #[must_use]
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// A number, exactly.
    #[must_use]
    pub const fn from_f64(number: f64) -> Self {
        let bits = number.to_bits();
        let sign = ((bits >> 63) as u128) << 127;
        let stored = (bits >> SHORT_FRACTION_BITS & 0x7ff) as i32;
        let fraction = bits & ((1 << SHORT_FRACTION_BITS) - 1);
        let (exponent, fraction) = match (stored, fraction) {
            (0, 0) => (0, 0),
            (0x7ff, _) => (0x7fff, fraction),
            // Without hidden bit: the first one that is set becomes it.
            (0, _) => {
                let shift = fraction.leading_zeros() + SHORT_FRACTION_BITS + 1 - u64::BITS;
                let hidden = fraction << shift & ((1 << SHORT_FRACTION_BITS) - 1);
                (BIAS + 1 - SHORT_BIAS - shift.cast_signed(), hidden)
            }
            _ => (stored - SHORT_BIAS + BIAS, fraction),
        };
        let fraction = (fraction as u128) << (FRACTION_BITS - SHORT_FRACTION_BITS);
        Self(sign | (exponent.cast_unsigned() as u128) << FRACTION_BITS | fraction)
    }

    /// The nearest `f64`, of two the one nearer to zero; an infinity where it is too large.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let negative = self.0 & SIGN != 0;
        let stored = (self.0 >> FRACTION_BITS & 0x7fff) as i32;
        let fraction = self.0 & FRACTION;
        let magnitude = match stored {
            0x7fff if fraction != 0 => f64::NAN,
            0x7fff => f64::INFINITY,
            // Smaller than any `f64` but zero.
            0 => 0.0,
            _ => {
                // The fraction with its hidden bit, cut to 64 bits, is exact but for what rounding loses.
                let kept = (fraction | 1 << FRACTION_BITS) >> (FRACTION_BITS - 63);
                let rounded = kept as u64 as f64;
                scaled(rounded, stored - BIAS - 63)
            }
        };
        if negative { -magnitude } else { magnitude }
    }
}

/// A number times a power of two, in steps that do not overflow before the result does.
fn scaled(mut number: f64, mut power: i32) -> f64 {
    while power > SHORT_BIAS {
        number *= 2.0_f64.powi(SHORT_BIAS);
        power -= SHORT_BIAS;
        if number.is_infinite() {
            return number;
        }
    }
    while power < 1 - SHORT_BIAS {
        number *= 2.0_f64.powi(1 - SHORT_BIAS);
        power += SHORT_BIAS - 1;
        if number == 0.0 {
            return number;
        }
    }
    number * 2.0_f64.powi(power)
}

/// Exact.
impl From<f64> for Float128 {
    fn from(number: f64) -> Self {
        Self::from_f64(number)
    }
}

impl Cdr for Float128 {
    const ELEMENT: ElementKind = ElementKind::Primitive;
    const BYTES_MIN: usize = 16;
    const EXTENT: Extent = Extent::primitive(16);

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.align(8)?;
        match encoder.endianness() {
            Endianness::Little => encoder.put(&self.0.to_le_bytes()),
            Endianness::Big => encoder.put(&self.0.to_be_bytes()),
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        decoder.align(8)?;
        let octets = decoder.take_array()?;
        Ok(Self(match decoder.endianness() {
            Endianness::Little => u128::from_le_bytes(octets),
            Endianness::Big => u128::from_be_bytes(octets),
        }))
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        decoder.align(8)?;
        decoder.take(16).map(drop)
    }

    fn initial() -> Self {
        Self(0)
    }

    fn describe(_: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        Some(TypeIdentifiers::same(TypeIdentifier::Primitive(Primitive::Float128)))
    }
}

#[cfg(test)]
mod tests {
    use super::Float128;

    #[test]
    fn every_f64_survives() {
        let smallest = f64::from_bits(1);
        let numbers = [0.0, -0.0, 1.0, -2.5, f64::MAX, f64::MIN_POSITIVE, smallest, 3.0 * smallest, 1e-310];
        for number in numbers.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY]) {
            assert_eq!(Float128::from(number).to_f64().to_bits(), number.to_bits(), "{number:e}");
        }
        assert!(Float128::from(f64::NAN).to_f64().is_nan());
        assert_eq!(Float128::from(1.0).to_bits(), 0x3fff << 112);
        assert_eq!(Float128::from_bits(0x7ffe << 112).to_f64(), f64::INFINITY);
        assert_eq!(Float128::from_bits(1 << 112).to_f64(), 0.0);
        // A third, to 113 bits.
        let third = Float128::from_bits(0x3ffd_5555_5555_5555_5555_5555_5555_5555);
        assert_eq!(third.to_f64(), 1.0 / 3.0);
    }
}
