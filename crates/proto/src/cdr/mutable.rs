//! Member headers: parameter lists of XCDR1 (`PL_CDR`), EMHEADER of XCDR2 (`PL_CDR2`), and the same
//! headers in front of optional members of XCDR1 (XTypes 1.3 §7.4.1.2, §7.4.3.4.2, §7.4.3.5.2).

use super::XcdrVersion;
use super::decode::Decoder;
use super::encode::{EncodeError, Encoder, Form};
use crate::malformed::Malformed;

/// An open member of the encoder.
#[derive(Debug)]
#[must_use]
pub struct OpenMember {
    header: Header,
    /// The alignment origin around the member.
    outer_origin: usize,
    /// Where its value starts.
    start: usize,
    id: u32,
    must_understand: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Header {
    /// No header: the form for key hashes, or a length that the EMHEADER already tells.
    None,
    /// XCDR2 with NEXTINT, which ends where the value starts.
    NextInt,
    /// XCDR1, 4 octets.
    Short,
    /// XCDR1, 12 octets.
    Extended,
}

impl Encoder<'_> {
    /// Opens a member that has a header: of a mutable aggregate, or an optional one in XCDR1.
    ///
    /// `fixed_size` is the size of the value when every value of its type takes 1, 2, 4 or 8 octets.
    pub fn begin_member(
        &mut self,
        id: u32,
        must_understand: bool,
        fixed_size: Option<usize>,
    ) -> Result<OpenMember, EncodeError> {
        let outer_origin = self.origin;
        let header = match (self.form, self.version()) {
            (Form::KeyHash, _) => Header::None,
            (_, XcdrVersion::Xcdr2) => self.put_emheader(id, must_understand, fixed_size)?,
            (_, XcdrVersion::Xcdr1) => self.put_parameter_header(id, must_understand)?,
        };
        let start = self.position();
        if matches!(header, Header::Short | Header::Extended) {
            self.origin = start;
        }
        Ok(OpenMember { header, outer_origin, start, id, must_understand })
    }

    /// Closes a member: its length goes into its header.
    pub fn end_member(&mut self, member: OpenMember) -> Result<(), EncodeError> {
        let length = self.length_since(member.start)?;
        match member.header {
            Header::None => {}
            Header::NextInt | Header::Extended => self.overwrite_u32(member.start - 4, length),
            Header::Short => match u16::try_from(length) {
                Ok(short) => {
                    let octets = self.endianness().u16_octets(short);
                    self.overwrite(member.start - 2, &octets);
                }
                Err(_) => self.extend_header(&member, length)?,
            },
        }
        self.origin = member.outer_origin;
        Ok(())
    }

    /// Writes the header of an optional member of a final or appendable aggregate that has no value.
    pub fn put_absent_member(&mut self, id: u32, must_understand: bool) -> Result<(), EncodeError> {
        match (self.form, self.version()) {
            (Form::KeyHash, _) | (_, XcdrVersion::Xcdr2) => self.put(&[0]),
            (_, XcdrVersion::Xcdr1) => {
                let member = self.begin_member(id, must_understand, None)?;
                self.end_member(member)
            }
        }
    }

    /// Ends a parameter list; nothing in XCDR2, where the DHEADER tells the end.
    pub fn end_member_list(&mut self) -> Result<(), EncodeError> {
        if self.version() == XcdrVersion::Xcdr2 {
            return Ok(());
        }
        self.align(4)?;
        self.put_u16(FLAG_MUST_UNDERSTAND | PID_LIST_END)?;
        self.put_u16(0)
    }

    fn put_emheader(
        &mut self,
        id: u32,
        must_understand: bool,
        fixed_size: Option<usize>,
    ) -> Result<Header, EncodeError> {
        let length_code = match fixed_size {
            Some(1) => 0,
            Some(2) => 1,
            Some(4) => 2,
            Some(8) => 3,
            _ => 4,
        };
        self.put_u32(u32::from(must_understand) << 31 | length_code << 28 | id & MEMBER_ID_MASK)?;
        if length_code < 4 {
            return Ok(Header::None);
        }
        self.put_u32(0)?;
        Ok(Header::NextInt)
    }

    fn put_parameter_header(&mut self, id: u32, must_understand: bool) -> Result<Header, EncodeError> {
        self.align(4)?;
        match u16::try_from(id) {
            Ok(short) if short <= PID_SHORT_MAX => {
                self.put_u16(short | if must_understand { FLAG_MUST_UNDERSTAND } else { 0 })?;
                self.put_u16(0)?;
                Ok(Header::Short)
            }
            _ => {
                self.put_u16(FLAG_MUST_UNDERSTAND | PID_EXTENDED)?;
                self.put_u16(8)?;
                self.put_u32(extended_id(id, must_understand))?;
                self.put_u32(0)?;
                Ok(Header::Extended)
            }
        }
    }

    /// Turns a short header into an extended one: its value outgrew 16 bits. The alignment of the value
    /// does not change, because its origin is its own start.
    fn extend_header(&mut self, member: &OpenMember, length: u32) -> Result<(), EncodeError> {
        let endianness = self.endianness();
        self.insert_zeros(member.start, 8)?;
        self.overwrite(member.start - 4, &endianness.u16_octets(FLAG_MUST_UNDERSTAND | PID_EXTENDED));
        self.overwrite(member.start - 2, &endianness.u16_octets(8));
        self.overwrite_u32(member.start, extended_id(member.id, member.must_understand));
        self.overwrite_u32(member.start + 4, length);
        Ok(())
    }
}

/// A member whose header was just read; its value is next.
#[derive(Debug)]
#[must_use]
pub struct MemberHeader {
    /// The member id.
    pub id: u32,
    /// Whether a reader that does not know the member must refuse the sample.
    pub must_understand: bool,
    end: usize,
    outer_end: usize,
    outer_origin: usize,
}

impl MemberHeader {
    /// Whether the member has no octets: an absent optional of XCDR1.
    pub fn is_empty(&self, decoder: &Decoder<'_>) -> bool {
        decoder.remaining() == 0
    }
}

impl Decoder<'_> {
    /// Reads the next member header of a mutable aggregate; `None` at its end.
    pub fn next_member(&mut self) -> Result<Option<MemberHeader>, Malformed> {
        match self.version() {
            XcdrVersion::Xcdr1 => self.take_parameter_header(),
            // Less than a header is padding: some writers round the length of the object up.
            XcdrVersion::Xcdr2 if self.remaining() < 4 => Ok(None),
            XcdrVersion::Xcdr2 => self.take_emheader().map(Some),
        }
    }

    /// Reads the header of an optional member of a final or appendable aggregate in XCDR1.
    pub fn optional_member(&mut self, id: u32) -> Result<MemberHeader, Malformed> {
        match self.take_parameter_header()? {
            Some(header) if header.id == id => Ok(header),
            _ => Err(Malformed::MissingMember),
        }
    }

    /// Leaves a member, whether or not its value was read to the end.
    pub fn end_member(&mut self, header: MemberHeader) {
        self.position = header.end;
        self.end = header.outer_end;
        self.origin = header.outer_origin;
    }

    /// Accepts a member the type does not know, unless it must be understood.
    pub fn unknown_member(&self, header: &MemberHeader) -> Result<(), Malformed> {
        if header.must_understand { Err(Malformed::NotUnderstood) } else { Ok(()) }
    }

    /// Walks the members of a mutable aggregate without reading them.
    pub fn skip_members(&mut self) -> Result<(), Malformed> {
        while let Some(header) = self.next_member()? {
            self.end_member(header);
        }
        Ok(())
    }

    fn take_parameter_header(&mut self) -> Result<Option<MemberHeader>, Malformed> {
        loop {
            if self.align(4).is_err() || self.remaining() < 4 {
                return Err(Malformed::MissingSentinel);
            }
            let pid = self.take_u16()?;
            let short_length = usize::from(self.take_u16()?);
            match pid & PID_MASK {
                PID_LIST_END => return Ok(None),
                PID_IGNORE => {
                    self.take(short_length)?;
                }
                PID_EXTENDED => {
                    let flagged = self.take_u32()?;
                    let length = self.take_length()?;
                    let must_understand = flagged & EXTENDED_MUST_UNDERSTAND != 0;
                    return Ok(Some(self.open_member(
                        flagged & MEMBER_ID_MASK,
                        must_understand,
                        length,
                        true,
                    )));
                }
                short => {
                    let remaining = self.remaining();
                    if short_length > remaining {
                        return Err(Malformed::Truncated);
                    }
                    let must_understand = pid & FLAG_MUST_UNDERSTAND != 0;
                    return Ok(Some(self.open_member(u32::from(short), must_understand, short_length, true)));
                }
            }
        }
    }

    fn take_emheader(&mut self) -> Result<MemberHeader, Malformed> {
        let header = self.take_u32()?;
        let length_code = header >> 28 & 7;
        let length = if length_code < 4 {
            1 << length_code
        } else {
            let next = usize::try_from(self.take_u32()?).unwrap_or(usize::MAX);
            // Codes 5 to 7: NEXTINT is at the same time the first integer of the value.
            if length_code > 4 {
                self.position -= 4;
            }
            match length_code {
                4 => next,
                5 => next.saturating_add(4),
                6 => next.saturating_mul(4).saturating_add(4),
                _ => next.saturating_mul(8).saturating_add(4),
            }
        };
        let remaining = self.remaining();
        if length > remaining {
            return Err(Malformed::Truncated);
        }
        Ok(self.open_member(header & MEMBER_ID_MASK, header >> 31 != 0, length, false))
    }

    /// `length` is known to be left.
    fn open_member(
        &mut self,
        id: u32,
        must_understand: bool,
        length: usize,
        resets_origin: bool,
    ) -> MemberHeader {
        let header = MemberHeader {
            id,
            must_understand,
            end: self.position + length,
            outer_end: self.end,
            outer_origin: self.origin,
        };
        self.end = header.end;
        if resets_origin {
            self.origin = self.position;
        }
        header
    }
}

fn extended_id(id: u32, must_understand: bool) -> u32 {
    id & MEMBER_ID_MASK | if must_understand { EXTENDED_MUST_UNDERSTAND } else { 0 }
}

/// The 28 bits of a member id.
const MEMBER_ID_MASK: u32 = 0x0fff_ffff;
/// Must-understand of an extended header.
const EXTENDED_MUST_UNDERSTAND: u32 = 0x4000_0000;
/// Must-understand of a short header.
const FLAG_MUST_UNDERSTAND: u16 = 0x4000;
/// The parameter id without its two flags.
const PID_MASK: u16 = 0x3fff;
/// Largest member id of a short header.
const PID_SHORT_MAX: u16 = 0x3f00;
const PID_EXTENDED: u16 = 0x3f01;
const PID_LIST_END: u16 = 0x3f02;
const PID_IGNORE: u16 = 0x3f03;
