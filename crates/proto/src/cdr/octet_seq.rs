//! [`OctetSeq`]: a sequence of octets that is copied as little as possible.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::decode::Decoder;
use super::encode::{EncodeError, Encoder};
use super::{Bounded, Cdr, Extent};
use crate::copying;
use crate::malformed::Malformed;
use crate::payload::{COPIED_BYTES_MAX, Part, Payload, Region, RegionOctets, SharedOctets};
use crate::types::{TypeBuilder, TypeIdentifiers};

/// So many octets are kept in place: with them a sequence takes 32.
const FEW_BYTES_MAX: usize = 30;

/// `sequence<octet>` without needless copies: an image, a point cloud, a file. On the wire, and to other
/// participants, it is what a `Vec<u8>` is.
///
/// A received one keeps the memory in which the sample arrived; it goes back when the last clone is dropped:
/// who keeps a short part of a sample keeps all of it, and [`Self::into_vec`] copies. What is to be written
/// may be filled where its readers will see it (`DataWriter::loan_octets`), or borrowed: give the type of the
/// topic a lifetime, and use `DataWriter::write_borrowed`.
#[derive(Clone)]
pub struct OctetSeq<'a>(Held<'a>);

#[derive(Clone)]
enum Held<'a> {
    Few { length: u8, octets: [u8; FEW_BYTES_MAX] },
    Lent(&'a [u8]),
    Owned(Vec<u8>),
    Shared(SharedOctets),
    Region(Box<RegionOctets>),
}

impl OctetSeq<'_> {
    /// No octets.
    #[must_use]
    pub const fn new() -> Self {
        Self(Held::Few { length: 0, octets: [0; FEW_BYTES_MAX] })
    }

    /// The octets.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Held::Few { length, octets } => octets.get(..usize::from(*length)).unwrap_or(&[]),
            Held::Lent(octets) => octets,
            Held::Owned(octets) => octets,
            Held::Shared(octets) => octets.as_slice(),
            Held::Region(octets) => octets.as_slice(),
        }
    }

    /// Octets of a region, clipped to its length.
    #[must_use]
    pub fn from_region(region: Arc<dyn Region>, range: Range<usize>) -> Self {
        let payload = Payload::from_region(region, range);
        payload.part(payload.as_slice()).map_or_else(Self::new, |part| Self(part.into()))
    }

    /// The region that the octets are in.
    #[must_use]
    pub fn region(&self) -> Option<&Arc<dyn Region>> {
        match &self.0 {
            Held::Region(part) => Some(part.region()),
            Held::Few { .. } | Held::Lent(_) | Held::Owned(_) | Held::Shared(_) => None,
        }
    }

    /// Whether they are in memory that processes share: made there, or received without a copy.
    #[must_use]
    pub fn is_in_shared_memory(&self) -> bool {
        self.region().is_some()
    }

    /// The same octets as a vector; copied unless they are in one already.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Held::Owned(octets) => octets,
            _ => copying::copied(self.as_slice()),
        }
    }

    /// The same octets, which need nothing that was borrowed: borrowed ones are copied.
    #[must_use]
    pub fn into_owned(self) -> OctetSeq<'static> {
        OctetSeq(match self.0 {
            Held::Few { length, octets } => Held::Few { length, octets },
            Held::Lent(octets) => return OctetSeq::copied(octets),
            Held::Owned(octets) => Held::Owned(octets),
            Held::Shared(octets) => Held::Shared(octets),
            Held::Region(octets) => Held::Region(octets),
        })
    }

    /// A copy; short ones take no memory of their own.
    fn copied(octets: &[u8]) -> Self {
        let mut few = [0; FEW_BYTES_MAX];
        Self(match few.get_mut(..octets.len()) {
            Some(place) => {
                place.copy_from_slice(octets);
                Held::Few { length: octets.len() as u8, octets: few }
            }
            None => Held::Owned(copying::copied(octets)),
        })
    }
}

impl From<Part> for Held<'_> {
    fn from(part: Part) -> Self {
        match part {
            Part::Buffer(octets) => Self::Shared(octets),
            Part::Region(octets) => Self::Region(octets),
        }
    }
}

impl Cdr for OctetSeq<'_> {
    const BYTES_MIN: usize = <Vec<u8> as Cdr>::BYTES_MIN;
    const EXTENT: Extent = <Vec<u8> as Cdr>::EXTENT;

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        let octets = self.as_slice();
        encoder.put_length(octets.len())?;
        encoder.put_sequence(octets)
    }

    #[inline]
    fn octet_seq(&self) -> Option<&OctetSeq<'_>> {
        Some(self)
    }

    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let mut octets = Self::new();
        octets.decode_over(decoder)?;
        Ok(octets)
    }

    #[inline]
    fn decode_over(&mut self, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        let length = decoder.take_length()?;
        decoder.book_memory(length, 1)?;
        let octets = decoder.take(length)?;
        if length > COPIED_BYTES_MAX
            && let Some(shared) = decoder.share(octets)
        {
            self.0 = shared.into();
            return Ok(());
        }
        match &mut self.0 {
            // In place: what was just written in pieces cannot be moved at once.
            Held::Few { length: before, octets: few } if length <= FEW_BYTES_MAX => {
                *before = length as u8;
                copying::copy_few(few.get_mut(..length).unwrap_or_default(), octets);
            }
            Held::Owned(place) if place.len() == length => copying::copy(place, octets),
            Held::Owned(place) => {
                place.clear();
                copying::append(place, octets);
            }
            _ => *self = Self::copied(octets),
        }
        Ok(())
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        let length = decoder.take_length()?;
        decoder.take(length).map(drop)
    }

    fn initial() -> Self {
        Self::new()
    }

    fn describe(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        <Vec<u8> as Cdr>::describe(types)
    }
}

impl<const BOUND: usize> Bounded<BOUND> for OctetSeq<'_> {
    const EXTENT: Extent = <Vec<u8> as Bounded<BOUND>>::EXTENT;

    fn length(&self) -> usize {
        self.len()
    }

    fn truncate(&mut self) {
        if let Some(kept) = self.as_slice().get(..BOUND) {
            *self = Self::copied(kept);
        }
    }
}

impl Default for OctetSeq<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for OctetSeq<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for OctetSeq<'_> {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<'a> From<&'a [u8]> for OctetSeq<'a> {
    fn from(octets: &'a [u8]) -> Self {
        Self(Held::Lent(octets))
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for OctetSeq<'a> {
    fn from(octets: &'a [u8; N]) -> Self {
        Self(Held::Lent(octets))
    }
}

impl From<Vec<u8>> for OctetSeq<'_> {
    fn from(octets: Vec<u8>) -> Self {
        Self(Held::Owned(octets))
    }
}

impl PartialEq for OctetSeq<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for OctetSeq<'_> {}

impl Hash for OctetSeq<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for OctetSeq<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::{Endianness, XcdrVersion};
    use crate::payload::Payload;

    fn encoded(octets: &OctetSeq<'_>) -> Vec<u8> {
        let mut buffer = Vec::new();
        octets.encode(&mut Encoder::new(&mut buffer, XcdrVersion::Xcdr2, Endianness::Little)).unwrap();
        buffer
    }

    #[test]
    fn it_takes_four_words() {
        assert_eq!(size_of::<OctetSeq<'_>>(), 32);
    }

    #[test]
    fn on_the_wire_it_is_a_vector() {
        for length in [0, 1, FEW_BYTES_MAX, FEW_BYTES_MAX + 1, COPIED_BYTES_MAX + 1] {
            let octets = vec![7_u8; length];
            let mut buffer = Vec::new();
            octets.encode(&mut Encoder::new(&mut buffer, XcdrVersion::Xcdr2, Endianness::Little)).unwrap();
            let lent = OctetSeq::from(octets.as_slice());
            assert_eq!(
                (encoded(&lent), encoded(&lent.clone().into_owned())),
                (buffer.clone(), buffer.clone())
            );
            let mut decoder = Decoder::new(&buffer, XcdrVersion::Xcdr2, Endianness::Little);
            assert_eq!(OctetSeq::decode(&mut decoder).unwrap().into_vec(), octets);
            assert_eq!(decoder.remaining(), 0);
            let mut decoder = Decoder::new(&buffer, XcdrVersion::Xcdr2, Endianness::Little);
            OctetSeq::skip(&mut decoder).unwrap();
            assert_eq!(decoder.remaining(), 0);
        }
    }

    #[test]
    fn what_is_decoded_takes_the_place_of_what_was_there() {
        let lengths = [3, FEW_BYTES_MAX, 100, 100, 90, 100, COPIED_BYTES_MAX, COPIED_BYTES_MAX, 5];
        let mut octets = OctetSeq::new();
        for (number, length) in (0_u8..).zip(lengths) {
            let sent = vec![number; length];
            let buffer = encoded(&sent.clone().into());
            octets.decode_over(&mut Decoder::new(&buffer, XcdrVersion::Xcdr2, Endianness::Little)).unwrap();
            assert_eq!(octets.as_slice(), sent, "{length} octets");
        }
    }

    #[test]
    fn many_octets_stay_where_they_arrived_and_outlive_the_payload() {
        let sent = encoded(&vec![5; COPIED_BYTES_MAX + 1].into());
        let payload = Payload::from_vec(sent);
        let mut decoder =
            Decoder::new(payload.as_slice(), XcdrVersion::Xcdr2, Endianness::Little).sharing(&payload);
        let octets = OctetSeq::decode(&mut decoder).unwrap();
        assert_eq!(octets.as_ptr(), payload.slice(4..8).as_slice().as_ptr());
        drop(payload);
        assert_eq!(octets.clone().into_owned().as_slice(), [5; COPIED_BYTES_MAX + 1]);
    }

    #[test]
    fn a_length_beyond_what_is_there_is_refused() {
        let mut buffer = encoded(&OctetSeq::from(&[1, 2, 3]));
        *buffer.first_mut().unwrap() = 4;
        let mut decoder = Decoder::new(&buffer, XcdrVersion::Xcdr2, Endianness::Little);
        assert_eq!(OctetSeq::decode(&mut decoder), Err(Malformed::LengthOutOfRange));
    }
}
