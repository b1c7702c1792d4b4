//! Values in a few bits, and values that select a member of a union.

use super::WChar;
use crate::types::Primitive;

/// A type that a field of a bit set may have.
pub trait BitField: Copy {
    /// As a TypeObject tells it.
    const HOLDER: Primitive;
    /// How many bits a field of it has at most.
    const BITS_MAX: u32;

    /// Its value in so many bits, where it fits.
    fn to_bits(self, bits: u32) -> Option<u64>;

    /// The value of so many bits; others are 0.
    fn from_bits(value: u64, bits: u32) -> Self;
}

/// A type that may select the member of a union.
pub trait Discriminator {
    /// The value of a label, as a TypeObject has it.
    fn label(&self) -> i64;
}

macro_rules! integers {
    ($($unsigned:ident: $unsigned_holder:ident, $signed:ident: $signed_holder:ident);*) => { $(
        impl BitField for $unsigned {
            const HOLDER: Primitive = Primitive::$unsigned_holder;
            const BITS_MAX: u32 = Self::BITS;

            fn to_bits(self, bits: u32) -> Option<u64> {
                let value = u64::from(self);
                (bits >= u64::BITS || value >> bits == 0).then_some(value)
            }

            fn from_bits(value: u64, _: u32) -> Self {
                value as Self
            }
        }

        impl BitField for $signed {
            const HOLDER: Primitive = Primitive::$signed_holder;
            const BITS_MAX: u32 = Self::BITS;

            fn to_bits(self, bits: u32) -> Option<u64> {
                let value = i64::from(self).cast_unsigned();
                let unused = u64::BITS.saturating_sub(bits);
                let kept = value.checked_shl(unused).unwrap_or(0).checked_shr(unused).unwrap_or(0);
                (Self::from_bits(kept, bits) == self).then_some(kept)
            }

            fn from_bits(value: u64, bits: u32) -> Self {
                let unused = u64::BITS.saturating_sub(bits);
                let high = value.checked_shl(unused).unwrap_or(0).cast_signed();
                high.checked_shr(unused).unwrap_or(0) as Self
            }
        }

        impl Discriminator for $unsigned {
            fn label(&self) -> i64 {
                i64::try_from(*self).unwrap_or(i64::MAX)
            }
        }

        impl Discriminator for $signed {
            fn label(&self) -> i64 {
                i64::from(*self)
            }
        }
    )* };
}

integers!(u8: Uint8, i8: Int8; u16: Uint16, i16: Int16; u32: Uint32, i32: Int32; u64: Uint64, i64: Int64);

impl BitField for bool {
    const HOLDER: Primitive = Primitive::Boolean;
    const BITS_MAX: u32 = 1;

    fn to_bits(self, _: u32) -> Option<u64> {
        Some(u64::from(self))
    }

    fn from_bits(value: u64, _: u32) -> Self {
        value != 0
    }
}

impl Discriminator for bool {
    fn label(&self) -> i64 {
        i64::from(*self)
    }
}

impl Discriminator for char {
    fn label(&self) -> i64 {
        i64::from(u32::from(*self))
    }
}

impl Discriminator for WChar {
    fn label(&self) -> i64 {
        i64::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::BitField;

    #[test]
    fn values_survive_in_as_many_bits_as_they_need() {
        assert_eq!(5_u8.to_bits(3), Some(5));
        assert_eq!(8_u8.to_bits(3), None);
        assert_eq!((-1_i16).to_bits(3), Some(7));
        assert_eq!(i16::from_bits(7, 3), -1);
        assert_eq!(3_i8.to_bits(3), Some(3));
        assert_eq!(4_i8.to_bits(3), None);
        assert_eq!((-4_i8).to_bits(3), Some(4));
        assert_eq!(i8::from_bits(4, 3), -4);
        assert_eq!(i64::from_bits(i64::MIN.to_bits(64).unwrap(), 64), i64::MIN);
        assert_eq!(u64::MAX.to_bits(64), Some(u64::MAX));
        assert!(bool::from_bits(1, 1));
    }
}
