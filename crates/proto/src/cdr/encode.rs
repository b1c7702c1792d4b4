//! [`Encoder`]: values to octets, in XCDR1 and XCDR2 and both byte orders.
//!
//! Implements the stream of XTypes 1.3 §7.4.3: alignment against an origin, delimiter headers, and the
//! plain encodings. Member headers are in `mutable.rs`.

use thiserror::Error;

use super::{Cdr, DEPTH_MAX, Endianness, Extensibility, XcdrVersion};
use crate::copying;

/// Why a sample could not be encoded. All causes are in the sample, none is in the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A string or collection is longer than the bound in its type.
    #[error("member `{member}` has length {length}, its bound is {bound}; shorten it or raise the bound")]
    BoundExceeded {
        /// Name of the member.
        member: &'static str,
        /// Its length: octets of a string, elements of a collection.
        length: usize,
        /// The bound of the type.
        bound: usize,
    },
    /// A string, collection or object does not fit the 32-bit length of the representation.
    #[error("length {length} does not fit the 32-bit length of CDR; send less in one sample")]
    TooLong {
        /// The length in octets or elements.
        length: usize,
    },
    /// A string contains NUL, which CDR uses as the terminator.
    #[error("a string contains NUL, which ends a string in CDR; remove it")]
    NulInString,
    /// A `char` beyond U+00FF, while the DDS type char holds one octet.
    #[error("character U+{0:04X} does not fit the one octet of a DDS char; use a string")]
    CharOutOfRange(u32),
    /// A value has more bits than its field of a bit set.
    #[error("member `{member}` does not fit its {bits} bits; give it a smaller value or more bits")]
    BitsOutOfRange {
        /// Name of the member.
        member: &'static str,
        /// Its bits.
        bits: u32,
    },
    /// Nested deeper than readers accept.
    #[error("nested more than {limit} levels deep, which readers refuse; flatten the value")]
    TooDeep {
        /// The deepest nesting.
        limit: usize,
    },
    /// The fixed buffer of a bounded encoding is full.
    #[error("the value needs more than the {capacity} octets of the buffer")]
    BufferFull {
        /// Size of the buffer in octets.
        capacity: usize,
    },
}

/// Which part of a value is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All members.
    Sample,
    /// Key members only, framed like the type itself: the serialized key of dispose and unregister.
    Key,
    /// Key members only, ascending by member id and without headers: input of the key hash.
    KeyHash,
}

/// Where octets go: a growing vector, or a fixed buffer for key hashes that must not allocate.
enum Sink<'a> {
    Growing(&'a mut Vec<u8>),
    Fixed { bytes: &'a mut [u8], length: usize },
}

/// The octets of one sequence, which are where they are to stay: they are not put into the buffer.
#[derive(Default)]
struct LeftOut<'a> {
    sequence: Option<&'a [u8]>,
    /// Before so many of those in the buffer they belong, if they have come already.
    place: Option<usize>,
    /// So many have come.
    bytes: usize,
}

impl LeftOut<'_> {
    /// Where in the buffer is what counts as at `position`.
    fn index(&self, position: usize) -> usize {
        match self.place {
            Some(place) if position > place => position - self.bytes,
            _ => position,
        }
    }
}

/// Appends values to a buffer. Alignment counts from the end of the buffer at construction.
pub struct Encoder<'a> {
    sink: Sink<'a>,
    left_out: LeftOut<'a>,
    /// Buffer position that counts as offset 0 for alignment (`XCDR.origin`).
    pub(super) origin: usize,
    version: XcdrVersion,
    endianness: Endianness,
    pub(super) form: Form,
    depth: usize,
}

/// An open delimited object; give it back to the `end_…` method of the `begin_…` that made it.
#[derive(Debug)]
#[must_use]
pub struct OpenObject {
    /// Where the content starts, just behind the DHEADER; `None` without one.
    pub(super) start: Option<usize>,
}

impl<'a> Encoder<'a> {
    /// An encoder that appends to `buffer`.
    pub fn new(buffer: &'a mut Vec<u8>, version: XcdrVersion, endianness: Endianness) -> Self {
        let origin = buffer.len();
        let sink = Sink::Growing(buffer);
        let left_out = LeftOut::default();
        Self { sink, left_out, origin, version, endianness, form: Form::Sample, depth: 0 }
    }

    /// An encoder of the key hash form into `bytes`: XCDR2, big-endian.
    pub(super) fn key_hash(bytes: &'a mut [u8]) -> Self {
        Self {
            sink: Sink::Fixed { bytes, length: 0 },
            left_out: LeftOut::default(),
            origin: 0,
            version: XcdrVersion::Xcdr2,
            endianness: Endianness::Big,
            form: Form::KeyHash,
            depth: 0,
        }
    }

    /// An encoder into a fixed place.
    pub(super) fn in_place(bytes: &'a mut [u8], version: XcdrVersion, endianness: Endianness) -> Self {
        let (sink, left_out) = (Sink::Fixed { bytes, length: 0 }, LeftOut::default());
        Self { sink, left_out, origin: 0, version, endianness, form: Form::Sample, depth: 0 }
    }

    /// An encoder of what is around the octets that a sequence of the sample has: these it leaves out.
    pub(super) fn around(
        bytes: &'a mut Vec<u8>,
        sequence: &'a [u8],
        version: XcdrVersion,
        endianness: Endianness,
    ) -> Self {
        let left_out = LeftOut { sequence: Some(sequence), ..LeftOut::default() };
        Self { left_out, ..Self::new(bytes, version, endianness) }
    }

    /// How many octets are before those that were left out.
    pub(super) const fn left_out(&self) -> Option<usize> {
        self.left_out.place
    }

    /// Appends the octets of a sequence, unless they are to be left out.
    #[inline]
    pub(super) fn put_sequence(&mut self, octets: &[u8]) -> Result<(), EncodeError> {
        let LeftOut { sequence, place, .. } = self.left_out;
        if place.is_none() && sequence.is_some_and(|sequence| std::ptr::eq(sequence, octets)) {
            self.left_out.place = Some(self.position());
            self.left_out.bytes = octets.len();
            return Ok(());
        }
        self.put(octets)
    }

    /// The encoding version.
    #[inline]
    pub fn version(&self) -> XcdrVersion {
        self.version
    }

    /// The byte order.
    #[inline]
    pub fn endianness(&self) -> Endianness {
        self.endianness
    }

    /// Whether only key members are wanted.
    #[inline]
    pub fn key_only(&self) -> bool {
        self.form != Form::Sample
    }

    /// Whether members must come in ascending order of member id (XTypes 1.3 §7.6.8 step 1).
    #[inline]
    pub fn by_member_id(&self) -> bool {
        self.form == Form::KeyHash
    }

    /// Octets in the buffer, those before this encoder's first included.
    #[inline]
    pub fn position(&self) -> usize {
        let in_buffer = match &self.sink {
            Sink::Growing(buffer) => buffer.len(),
            Sink::Fixed { length, .. } => *length,
        };
        in_buffer + self.left_out.bytes
    }

    /// Appends octets as they are.
    #[inline]
    pub fn put(&mut self, octets: &[u8]) -> Result<(), EncodeError> {
        match &mut self.sink {
            Sink::Growing(buffer) => {
                copying::append(buffer, octets);
                Ok(())
            }
            Sink::Fixed { bytes, length } => {
                let capacity = bytes.len();
                let end = length.saturating_add(octets.len());
                let Some(place) = bytes.get_mut(*length..end) else {
                    return Err(EncodeError::BufferFull { capacity });
                };
                copying::copy(place, octets);
                *length = end;
                Ok(())
            }
        }
    }

    /// Appends values in one copy where their memory is their wire form. False, and nothing appended, where
    /// it is not: in the other byte order, in the forms of keys, for types with padding or variable members.
    #[inline]
    pub fn put_plain<T: Cdr>(&mut self, values: &[T]) -> Result<bool, EncodeError> {
        let Some(layout) = T::PLAIN.layout(self.version) else { return Ok(false) };
        let native = self.endianness == Endianness::NATIVE && self.form == Form::Sample;
        let gapless = values.len() == 1 || layout.bytes.is_multiple_of(layout.alignment);
        let Some(octets) = T::plain_octets(values).filter(|_| native && gapless) else { return Ok(false) };
        if !octets.is_empty() {
            self.align(layout.alignment)?;
            self.put(octets)?;
        }
        Ok(true)
    }

    /// Pads with zeros until the offset is a multiple of `alignment`, or of the version's largest.
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), EncodeError> {
        let alignment = alignment.min(self.version.alignment_max());
        let offset = self.position() - self.origin;
        let padding = offset.wrapping_neg() & (alignment - 1);
        if padding == 0 {
            return Ok(());
        }
        self.put([0; 8].get(..padding).unwrap_or_default())
    }

    /// Appends one unsigned 32-bit integer, aligned.
    #[inline]
    pub fn put_u32(&mut self, value: u32) -> Result<(), EncodeError> {
        self.align(4)?;
        self.put(&self.endianness.u32_octets(value))
    }

    /// Appends one unsigned 16-bit integer, aligned.
    #[inline]
    pub fn put_u16(&mut self, value: u16) -> Result<(), EncodeError> {
        self.align(2)?;
        self.put(&self.endianness.u16_octets(value))
    }

    /// Appends the length of a string or collection.
    #[inline]
    pub fn put_length(&mut self, length: usize) -> Result<(), EncodeError> {
        self.put_u32(u32::try_from(length).map_err(|_| EncodeError::TooLong { length })?)
    }

    /// Refuses a `length` beyond `bound`; `member` is named in the error.
    pub fn check_bound(&self, length: usize, bound: usize, member: &'static str) -> Result<(), EncodeError> {
        if length <= bound { Ok(()) } else { Err(EncodeError::BoundExceeded { member, length, bound }) }
    }

    /// Opens a structure or union: a DHEADER where XCDR2 wants one (§7.4.3.5.3 rules 21, 27, 30).
    #[inline]
    pub fn begin_aggregate(&mut self, extensibility: Extensibility) -> Result<OpenObject, EncodeError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(EncodeError::TooDeep { limit: DEPTH_MAX });
        }
        let framed = self.form != Form::KeyHash && extensibility != Extensibility::Final;
        self.begin_delimited(framed && self.version == XcdrVersion::Xcdr2)
    }

    /// Closes a structure or union.
    #[inline]
    pub fn end_aggregate(&mut self, object: OpenObject) -> Result<(), EncodeError> {
        self.depth -= 1;
        self.end_delimited(&object)
    }

    /// Opens a collection: a DHEADER in XCDR2 unless its elements are primitive (rules 9, 12, 15).
    #[inline]
    pub fn begin_collection(&mut self, primitive: bool) -> Result<OpenObject, EncodeError> {
        self.begin_delimited(!primitive && self.version == XcdrVersion::Xcdr2)
    }

    /// Closes a collection.
    #[inline]
    pub fn end_collection(&mut self, object: OpenObject) -> Result<(), EncodeError> {
        self.end_delimited(&object)
    }

    #[inline]
    fn begin_delimited(&mut self, delimited: bool) -> Result<OpenObject, EncodeError> {
        if !delimited {
            return Ok(OpenObject { start: None });
        }
        self.put_u32(0)?;
        Ok(OpenObject { start: Some(self.position()) })
    }

    #[inline]
    fn end_delimited(&mut self, object: &OpenObject) -> Result<(), EncodeError> {
        let Some(start) = object.start else {
            return Ok(());
        };
        let length = self.length_since(start)?;
        self.overwrite_u32(start - 4, length);
        Ok(())
    }

    /// Octets appended since `start`.
    pub(super) fn length_since(&self, start: usize) -> Result<u32, EncodeError> {
        let length = self.position() - start;
        u32::try_from(length).map_err(|_| EncodeError::TooLong { length })
    }

    /// Replaces octets already written; `at` came from `position`.
    pub(super) fn overwrite(&mut self, at: usize, octets: &[u8]) {
        let at = self.left_out.index(at);
        let written: &mut [u8] = match &mut self.sink {
            Sink::Growing(buffer) => buffer,
            Sink::Fixed { bytes, .. } => bytes,
        };
        if let Some(place) = written.get_mut(at..at + octets.len()) {
            place.copy_from_slice(octets);
        }
    }

    /// Replaces a 32-bit integer already written.
    pub(super) fn overwrite_u32(&mut self, at: usize, value: u32) {
        self.overwrite(at, &self.endianness.u32_octets(value));
    }

    /// Makes room for `count` zeros at `at`, moving what follows.
    pub(super) fn insert_zeros(&mut self, at: usize, count: usize) -> Result<(), EncodeError> {
        let index = self.left_out.index(at);
        match &mut self.sink {
            Sink::Growing(buffer) => {
                buffer.splice(index..index, std::iter::repeat_n(0, count));
                if let Some(place) = self.left_out.place.as_mut().filter(|place| at <= **place) {
                    *place += count;
                }
                Ok(())
            }
            Sink::Fixed { bytes, .. } => Err(EncodeError::BufferFull { capacity: bytes.len() }),
        }
    }
}
