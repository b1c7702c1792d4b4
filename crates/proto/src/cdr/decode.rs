//! [`Decoder`]: octets to values, in XCDR1 and XCDR2 and both byte orders.
//!
//! Everything here faces a hostile peer. Lengths are checked against the octets left in the enclosing
//! object before anything is allocated, memory is bounded by the size of the input, nesting is limited,
//! and nothing indexes or panics.

use super::{DEPTH_MAX, Endianness, Extensibility, XcdrVersion};
use crate::malformed::Malformed;
use crate::payload::{Part, Payload};

/// Which part of a value the octets hold, and which is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All members are there and wanted.
    Sample,
    /// Only key members are there; the others take their initial value.
    Key,
    /// Like `Key`, and appendable aggregates have no DHEADER.
    UndelimitedKey,
    /// All members are there, only key members are wanted; the others are skipped.
    KeyOfSample,
}

/// Reads values from a slice. Alignment counts from the start of the slice.
pub struct Decoder<'a> {
    octets: &'a [u8],
    pub(super) position: usize,
    /// End of the innermost object that has a length; never beyond `octets`.
    pub(super) end: usize,
    /// Position that counts as offset 0 for alignment (`XCDR.origin`).
    pub(super) origin: usize,
    version: XcdrVersion,
    endianness: Endianness,
    form: Form,
    depth: usize,
    /// Octets of memory that collections may still take.
    memory: usize,
    /// The payload of which `octets` are a part, where values may keep it.
    source: Option<&'a Payload>,
}

/// An open object; give it back to the `end_…` method of the `begin_…` that made it.
#[derive(Debug)]
#[must_use]
pub struct OpenObject {
    /// The end of the object and of the one around it, when it is delimited.
    pub(super) ends: Option<(usize, usize)>,
}

/// A place to go back to: see [`Decoder::mark`].
#[derive(Clone, Copy, Debug)]
pub struct DecoderMark {
    position: usize,
    end: usize,
    origin: usize,
    depth: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder of `octets`, which start at alignment offset 0: a payload behind its encapsulation header.
    pub fn new(octets: &'a [u8], version: XcdrVersion, endianness: Endianness) -> Self {
        Self::with_form(octets, version, endianness, Form::Sample)
    }

    /// A decoder of `octets` that reads the given part.
    pub fn with_form(octets: &'a [u8], version: XcdrVersion, endianness: Endianness, form: Form) -> Self {
        Self {
            octets,
            position: 0,
            end: octets.len(),
            origin: 0,
            version,
            endianness,
            form,
            depth: 0,
            memory: octets.len().saturating_mul(MEMORY_PER_OCTET).saturating_add(MEMORY_BASE),
            source: None,
        }
    }

    /// Values may keep parts of `payload`, of which the octets are one.
    pub(super) const fn sharing(mut self, payload: &'a Payload) -> Self {
        self.source = Some(payload);
        self
    }

    /// `part`, which was taken from this decoder, where values may keep it.
    pub(super) fn share(&self, part: &[u8]) -> Option<Part> {
        self.source?.part(part)
    }

    /// Where the decoder is, to be given to [`Self::reset`] when what follows does not fit.
    #[must_use]
    pub fn mark(&self) -> DecoderMark {
        DecoderMark { position: self.position, end: self.end, origin: self.origin, depth: self.depth }
    }

    /// Goes back to where the decoder was. What was booked of memory stays so.
    pub fn reset(&mut self, mark: DecoderMark) {
        let DecoderMark { position, end, origin, depth } = mark;
        (self.position, self.end, self.origin, self.depth) = (position, end, origin, depth);
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

    /// Which part is read.
    #[inline]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Octets left in the innermost object that has a length.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.end.saturating_sub(self.position)
    }

    /// Octets read so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Takes the next `count` octets as they are.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        // `end` is never beyond the octets, `position` never beyond `end`.
        let left = self.octets.get(self.position..self.end).ok_or(Malformed::Truncated)?;
        let taken = left.get(..count).ok_or(Malformed::Truncated)?;
        self.position += count;
        Ok(taken)
    }

    /// Takes the next `N` octets as an array.
    #[inline]
    pub fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let left = self.octets.get(self.position..self.end).ok_or(Malformed::Truncated)?;
        let taken = left.first_chunk().ok_or(Malformed::Truncated)?;
        self.position += N;
        Ok(*taken)
    }

    /// Skips padding until the offset is a multiple of `alignment`, or of the version's largest.
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), Malformed> {
        let alignment = alignment.min(self.version.alignment_max());
        let padding = self.position.wrapping_sub(self.origin).wrapping_neg() & (alignment - 1);
        if padding > self.remaining() {
            return Err(Malformed::Truncated);
        }
        self.position += padding;
        Ok(())
    }

    /// Takes an object that begins with its DHEADER as it is, header included.
    pub(crate) fn take_delimited(&mut self) -> Result<&'a [u8], Malformed> {
        self.align(4)?;
        let start = self.position;
        let length = self.take_length()?;
        self.take(length)?;
        self.octets.get(start..self.position).ok_or(Malformed::Truncated)
    }

    /// Takes one unsigned 32-bit integer, aligned.
    #[inline]
    pub fn take_u32(&mut self) -> Result<u32, Malformed> {
        self.align(4)?;
        Ok(self.endianness.u32_from(self.take_array()?))
    }

    /// Takes one unsigned 16-bit integer, aligned.
    #[inline]
    pub fn take_u16(&mut self) -> Result<u16, Malformed> {
        self.align(2)?;
        Ok(self.endianness.u16_from(self.take_array()?))
    }

    /// Takes a 32-bit length in octets and checks that so many are left.
    #[inline]
    pub fn take_length(&mut self) -> Result<usize, Malformed> {
        let length = usize::try_from(self.take_u32()?).unwrap_or(usize::MAX);
        let limit = self.remaining();
        if length > limit {
            return Err(Malformed::LengthOutOfRange);
        }
        Ok(length)
    }

    /// Takes the number of elements of a collection, checked against the octets left.
    ///
    /// `octets_min` is the least an element takes on the wire.
    #[inline]
    pub fn take_count(&mut self, octets_min: usize) -> Result<usize, Malformed> {
        let length = usize::try_from(self.take_u32()?).unwrap_or(usize::MAX);
        if octets_min == 0 {
            // Elements that take no octets still take time: booked as if each took one of memory.
            self.book_memory(length, 1)?;
        }
        let limit = self.remaining().checked_div(octets_min).unwrap_or(usize::MAX);
        if length > limit {
            return Err(Malformed::LengthOutOfRange);
        }
        Ok(length)
    }

    /// Books `count` elements of `size` octets of memory; refuses when the input does not justify them.
    #[inline]
    pub fn book_memory(&mut self, count: usize, size: usize) -> Result<(), Malformed> {
        let requested = count.saturating_mul(size);
        match self.memory.checked_sub(requested) {
            Some(rest) => {
                self.memory = rest;
                Ok(())
            }
            None => Err(Malformed::MemoryLimit),
        }
    }

    /// Refuses a `length` beyond `bound`.
    pub fn check_bound(&self, length: usize, bound: usize) -> Result<(), Malformed> {
        if length <= bound { Ok(()) } else { Err(Malformed::LengthOutOfRange) }
    }

    /// Opens a structure or union (§7.4.3.5.3 rules 21, 27, 30).
    #[inline]
    pub fn begin_aggregate(&mut self, extensibility: Extensibility) -> Result<OpenObject, Malformed> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Malformed::TooDeep);
        }
        let framed = self.form != Form::UndelimitedKey && extensibility != Extensibility::Final;
        self.begin_delimited(framed && self.version == XcdrVersion::Xcdr2)
    }

    /// Closes a structure or union, skipping members a newer writer appended.
    #[inline]
    pub fn end_aggregate(&mut self, object: OpenObject) {
        self.depth -= 1;
        self.end_delimited(&object);
    }

    /// Opens a collection (rules 9, 12, 15).
    #[inline]
    pub fn begin_collection(&mut self, primitive: bool) -> Result<OpenObject, Malformed> {
        self.begin_delimited(!primitive && self.version == XcdrVersion::Xcdr2)
    }

    /// Opens a collection of enumerations of `bytes` octets: an array of `count` or else a sequence.
    ///
    /// XTypes wants a DHEADER there and some products leave it out. It is taken as one when its value fits.
    pub fn begin_enumerations(
        &mut self,
        bytes: usize,
        count: Option<usize>,
    ) -> Result<OpenObject, Malformed> {
        let start = self.position;
        let has_delimiter = self.version == XcdrVersion::Xcdr2 && self.is_delimiter(bytes, count);
        self.position = start;
        self.begin_delimited(has_delimiter)
    }

    /// Whether the next integer is the DHEADER of such a collection.
    fn is_delimiter(&mut self, bytes: usize, count: Option<usize>) -> bool {
        let Ok(length) = self.take_length() else {
            return false;
        };
        let expected = match count {
            Some(count) => Some(count.saturating_mul(bytes)),
            None => self
                .take_u32()
                .ok()
                .and_then(|count| usize::try_from(count).ok()?.checked_mul(bytes)?.checked_add(4)),
        };
        expected == Some(length)
    }

    /// Closes a collection.
    #[inline]
    pub fn end_collection(&mut self, object: OpenObject) {
        self.end_delimited(&object);
    }

    #[inline]
    fn begin_delimited(&mut self, delimited: bool) -> Result<OpenObject, Malformed> {
        if !delimited {
            return Ok(OpenObject { ends: None });
        }
        let length = self.take_length()?;
        let outer = self.end;
        self.end = self.position + length;
        Ok(OpenObject { ends: Some((self.end, outer)) })
    }

    #[inline]
    fn end_delimited(&mut self, object: &OpenObject) {
        if let Some((end, outer)) = object.ends {
            self.position = end;
            self.end = outer;
        }
    }

    /// Jumps over an object just opened; `false` when it has no length and must be walked.
    #[inline]
    pub fn jump(&mut self, object: &OpenObject) -> bool {
        let Some((end, _)) = object.ends else {
            return false;
        };
        self.position = end;
        true
    }

    /// Whether an appendable object ends before a member of at least `octets_min_xcdr1` octets (§7.2.4).
    ///
    /// XCDR1 has no delimiter: only the outermost object can end early, and up to three octets of padding
    /// may be left behind its last member.
    #[inline]
    pub fn ends_before(&self, octets_min_xcdr1: usize) -> bool {
        let remaining = self.remaining();
        match self.version {
            XcdrVersion::Xcdr2 => remaining == 0,
            XcdrVersion::Xcdr1 => self.depth == 1 && (remaining == 0 || remaining < octets_min_xcdr1.min(4)),
        }
    }
}

/// Memory a sample may take: so much per octet of input …
const MEMORY_PER_OCTET: usize = 256;
/// … plus so much.
const MEMORY_BASE: usize = 1 << 20;
