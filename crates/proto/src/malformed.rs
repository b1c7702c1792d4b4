//! One reason for each way in which octets from outside can fail to be what they claim.

use thiserror::Error;

/// Why octets could not be decoded. Each is counted as a drop reason; none is a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Fewer octets remain than the value needs.
    #[error("fewer octets remain than the value needs")]
    Truncated,
    /// A count or length is larger than its field or its bound allows.
    #[error("a count or length is out of range")]
    LengthOutOfRange,
    /// A string is not UTF-8, or lacks its terminating NUL.
    #[error("a string is not UTF-8 or not terminated")]
    InvalidString,
    /// A boolean is neither 0 nor 1.
    #[error("a boolean is neither 0 nor 1")]
    InvalidBoolean,
    /// An enumeration has no such value.
    #[error("an enumeration has no such value")]
    InvalidEnum,
    /// A union has no member for its discriminator, and no default member.
    #[error("a union has no member for its discriminator")]
    InvalidDiscriminator,
    /// A representation identifier is unknown, or its options are.
    #[error("unknown representation identifier")]
    UnknownEncapsulation,
    /// A representation identifier is known but never used for types of this extensibility.
    #[error("the representation identifier does not suit the type")]
    UnsuitableEncapsulation,
    /// Decoding would take more memory than so few octets justify.
    #[error("decoding would take more memory than its octets justify")]
    MemoryLimit,
    /// The type has values larger than a thread's stack may hold, and there is no other way to read them: no
    /// description of the type, or no memory for a larger stack.
    #[error("values of the type are too large for a stack; box large members, or take samples in place")]
    TooLarge,
    /// Nesting is deeper than allowed.
    #[error("nesting is deeper than allowed")]
    TooDeep,
    /// A member that must be there is not.
    #[error("a required member is missing")]
    MissingMember,
    /// A member or parameter that must be understood is unknown.
    #[error("a must-understand member is unknown")]
    NotUnderstood,
    /// A parameter list does not end with its sentinel.
    #[error("a parameter list lacks its sentinel")]
    MissingSentinel,
    /// A duration is negative or not normalised.
    #[error("a duration is negative or not normalised")]
    InvalidDuration,
    /// A sequence number is below 1, or a range runs backwards.
    #[error("a sequence number or range is invalid")]
    InvalidSequenceNumber,
    /// Fragment numbers, sizes and counts disagree.
    #[error("fragment numbers, sizes and counts disagree")]
    InvalidFragment,
    /// Submessage flags exclude each other.
    #[error("submessage flags exclude each other")]
    InvalidFlags,
    /// The datagram does not begin with a valid RTPS header.
    #[error("not an RTPS header")]
    InvalidHeader,
    /// An offset field points outside its submessage.
    #[error("an offset points outside its submessage")]
    InvalidOffset,
}

impl Malformed {
    /// Whether the octets may be those of a value that the type here cannot hold: a longer string or
    /// collection, another literal, a union with more members.
    #[must_use]
    pub const fn is_unfit(self) -> bool {
        matches!(self, Self::LengthOutOfRange | Self::InvalidEnum | Self::InvalidDiscriminator)
    }
}

/// A text is not what it was to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {0}")]
pub struct InvalidText(pub(crate) &'static str);

/// Fills `octets` with what `text` says in hexadecimal digits, two for each; `None` when it says something
/// else.
pub(crate) fn octets_of_hex(text: &str, octets: &mut [u8]) -> Option<()> {
    let digits = text.as_bytes();
    if digits.len() != 2 * octets.len() {
        return None;
    }
    for (octet, pair) in octets.iter_mut().zip(digits.chunks_exact(2)) {
        *octet = pair.iter().try_fold(0, |octet, digit| {
            Some(octet << 4 | u8::try_from(char::from(*digit).to_digit(16)?).ok()?)
        })?;
    }
    Some(())
}
