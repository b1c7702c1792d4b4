//! From what an application gives, or a text has, to a value without parts: the one place that says what fits
//! which type.

use std::borrow::Cow;
use std::fmt;

use crate::cdr::Endianness;
use crate::types::Primitive;

use super::base64;
use super::model::{Bitmask, Kind, Type};
use super::value::Value;

/// What a part of a value is set to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scalar<'a> {
    /// A boolean.
    Boolean(bool),
    /// An integer, a float, the value of an enumeration, or the bits of a bitmask.
    Integer(i128),
    /// A float, or an integer without fraction.
    Float(f64),
    /// A string or character; the name of a literal; digits of an integer; NaN, Infinity or -Infinity; octets
    /// in base64.
    Text(Cow<'a, str>),
    /// The octets of a sequence or array.
    Octets(Cow<'a, [u8]>),
    /// No value, of an optional member.
    Absent,
}

macro_rules! scalars {
    ($($from:ty => $name:ident: $into:expr;)*) => {$(
        impl From<$from> for Scalar<'_> {
            fn from(value: $from) -> Self {
                Self::$name($into(value))
            }
        }
    )*};
}

scalars! {
    bool => Boolean: std::convert::identity;
    i8 => Integer: i128::from;
    i16 => Integer: i128::from;
    i32 => Integer: i128::from;
    i64 => Integer: i128::from;
    u8 => Integer: i128::from;
    u16 => Integer: i128::from;
    u32 => Integer: i128::from;
    u64 => Integer: i128::from;
    f32 => Float: f64::from;
    f64 => Float: std::convert::identity;
    char => Text: |letter: char| Cow::Owned(letter.to_string());
    String => Text: Cow::Owned;
    Vec<u8> => Octets: Cow::Owned;
}

impl<'a> From<&'a str> for Scalar<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a [u8]> for Scalar<'a> {
    fn from(octets: &'a [u8]) -> Self {
        Self::Octets(Cow::Borrowed(octets))
    }
}

/// Letters of a text that an error repeats at most.
const SHOWN_MAX: usize = 40;

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => {
                let shown: String = text.chars().take(SHOWN_MAX).collect();
                let rest = if shown.len() < text.len() { "…" } else { "" };
                write!(f, "the text {shown:?}{rest}")
            }
            Self::Octets(octets) => write!(f, "{} octets", octets.len()),
            Self::Absent => f.write_str("no value"),
        }
    }
}

impl Type {
    /// The value of this type that a scalar is; `None` where it is none.
    pub(super) fn value_of(&self, scalar: &Scalar<'_>) -> Option<Value<'static>> {
        let number = match &self.kind {
            Kind::Primitive(primitive) => self.primitive_of(*primitive, scalar),
            Kind::Enumeration(it) => match scalar {
                Scalar::Text(text) => {
                    let found = it.literals.iter().find(|(name, _)| !name.is_empty() && name == text);
                    found.map(|(_, value)| value.cast_unsigned())
                }
                _ => integer(scalar)
                    .filter(|value| it.literals.iter().any(|(_, of)| i128::from(*of) == *value))
                    .map(low),
            },
            Kind::Bitmask(it) => match scalar {
                Scalar::Text(text) => it.bits_named(text),
                _ => integer(scalar).filter(|bits| in_range(*bits, it.bytes, false)).map(low),
            },
            Kind::Text { wide, bound } => return text(*wide, *bound, scalar),
            Kind::Sequence { bound, element } => {
                let fits = |length: usize| bound.is_none_or(|bound| length <= bound);
                return octets(element, scalar).filter(|octets| fits(octets.len())).map(many);
            }
            Kind::Array { count, element, .. } => {
                return octets(element, scalar).filter(|octets| octets.len() == *count).map(many);
            }
            Kind::Map { .. } | Kind::Structure(_) | Kind::Union(_) | Kind::TooDeep => None,
        };
        number.map(Value::Number)
    }

    fn primitive_of(&self, primitive: Primitive, scalar: &Scalar<'_>) -> Option<u64> {
        let bytes = self.number_bytes()?;
        match primitive {
            Primitive::Boolean => match scalar {
                Scalar::Boolean(value) => Some(u64::from(*value)),
                Scalar::Text(text) => text.parse().ok().map(|value: bool| u64::from(value)),
                _ => None,
            },
            Primitive::Char8 => letter(scalar).and_then(|it| u8::try_from(u32::from(it)).ok()).map(u64::from),
            Primitive::Char16 => match scalar {
                Scalar::Text(_) => {
                    letter(scalar).and_then(|it| u16::try_from(u32::from(it)).ok()).map(u64::from)
                }
                _ => integer(scalar).filter(|unit| in_range(*unit, 2, false)).map(low),
            },
            Primitive::Float32 => {
                let (wide, narrow) = float(scalar).map(|wide| (wide, wide as f32))?;
                (narrow.is_finite() || !wide.is_finite()).then(|| u64::from(narrow.to_bits()))
            }
            Primitive::Float64 => float(scalar).map(f64::to_bits),
            Primitive::Float128 => None,
            Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64 => {
                integer(scalar).filter(|number| in_range(*number, bytes, true)).map(low)
            }
            Primitive::Byte
            | Primitive::Uint8
            | Primitive::Uint16
            | Primitive::Uint32
            | Primitive::Uint64 => integer(scalar).filter(|number| in_range(*number, bytes, false)).map(low),
        }
    }
}

impl Bitmask {
    /// The bits of flags that a text names, with ` | ` between them; digits are a number.
    fn bits_named(&self, text: &str) -> Option<u64> {
        if text.is_empty() {
            return Some(0);
        }
        text.split('|').map(str::trim).try_fold(0, |bits, name| Some(bits | self.bit_named(name)?))
    }

    /// The bits of a flag, or of a number.
    pub(super) fn bit_named(&self, name: &str) -> Option<u64> {
        let flag = self.flags.iter().find(|(known, _)| known == name).map(|(_, position)| 1 << position);
        let number = || name.parse().ok().filter(|bits| in_range(*bits, self.bytes, false)).map(low);
        flag.or_else(number)
    }

    /// The bits as a text that [`Self::bits_named`] reads: the names of flags, and a number for the rest.
    #[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "JSON alone writes it"))]
    pub(super) fn text_of(&self, bits: u64) -> String {
        let (names, rest) = self.names_of(bits);
        let rest = (rest != 0).then(|| rest.to_string());
        let words: Vec<&str> = names.into_iter().chain(rest.as_deref()).collect();
        words.join(" | ")
    }

    /// Whether it is a bit set whose fields have all of these bits.
    #[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "JSON alone writes it"))]
    pub(super) fn has_in_fields(&self, bits: u64) -> bool {
        let rest = self.fields.iter().fold(bits, |rest, field| rest & !field.mask());
        !self.fields.is_empty() && rest == 0
    }

    /// The names of the flags that are set, and the bits that have none.
    #[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "JSON alone writes it"))]
    pub(super) fn names_of(&self, bits: u64) -> (Vec<&str>, u64) {
        let set = || self.flags.iter().filter(|(_, position)| bits >> position & 1 == 1);
        let rest = set().fold(bits, |rest, (_, position)| rest & !(1 << position));
        (set().map(|(name, _)| name.as_str()).collect(), rest)
    }
}

/// Octets of one octet each, as they are kept.
fn many(octets: Vec<u8>) -> Value<'static> {
    Value::Numbers(Cow::Owned(octets), Endianness::NATIVE)
}

const fn low(number: i128) -> u64 {
    number as u64
}

fn in_range(number: i128, bytes: usize, signed: bool) -> bool {
    let bits = 8 * bytes;
    if signed {
        (-(1_i128 << (bits - 1))..1_i128 << (bits - 1)).contains(&number)
    } else {
        (0..1_i128 << bits).contains(&number)
    }
}

/// The largest float up to which every integer is one.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

fn integer(scalar: &Scalar<'_>) -> Option<i128> {
    match scalar {
        Scalar::Integer(number) => Some(*number),
        Scalar::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT_MAX => Some(*number as i128),
        Scalar::Text(digits) => digits.parse().ok(),
        _ => None,
    }
}

fn float(scalar: &Scalar<'_>) -> Option<f64> {
    match scalar {
        Scalar::Float(number) => Some(*number),
        Scalar::Integer(number) => Some(*number as f64),
        Scalar::Text(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            // The key of a map.
            digits => digits.parse().ok().filter(|number: &f64| number.is_finite()),
        },
        _ => None,
    }
}

fn letter(scalar: &Scalar<'_>) -> Option<char> {
    let Scalar::Text(text) = scalar else { return None };
    let mut letters = text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

fn text(wide: bool, bound: Option<usize>, scalar: &Scalar<'_>) -> Option<Value<'static>> {
    let Scalar::Text(text) = scalar else { return None };
    let fits = |length: usize| bound.is_none_or(|bound| length <= bound);
    if wide {
        let octets: Vec<u8> = text.encode_utf16().flat_map(u16::to_ne_bytes).collect();
        return fits(octets.len() / 2).then_some(Value::WideText(Cow::Owned(octets), Endianness::NATIVE));
    }
    (fits(text.len()) && !text.contains('\0')).then(|| Value::Text(text.to_string()))
}

fn octets(element: &Type, scalar: &Scalar<'_>) -> Option<Vec<u8>> {
    match (&element.kind, scalar) {
        (Kind::Primitive(Primitive::Byte | Primitive::Uint8 | Primitive::Int8), Scalar::Octets(octets)) => {
            Some(octets.to_vec())
        }
        (_, Scalar::Text(text)) if element.is_octet() => base64::decode(text),
        _ => None,
    }
}
