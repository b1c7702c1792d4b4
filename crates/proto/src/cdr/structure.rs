//! Structures that others extend: their members without what frames them (XTypes 1.3 §7.4.3.5.3: the members
//! of a base come first, as if they were those of the structure itself).

use super::mutable::MemberHeader;
use super::{Cdr, Decoder, EncodeError, Encoder, Extensibility, Extent, FieldMember};
use crate::malformed::Malformed;

/// What is known of a member when a structure is compiled.
#[derive(Clone, Copy, Debug)]
pub struct MemberOutline {
    /// Its member id.
    pub id: u32,
    /// It belongs to the key.
    pub key: bool,
    /// The least octets on the wire.
    pub bytes_min: usize,
    /// The most octets in the form for key hashes.
    pub extent: Extent,
}

impl MemberOutline {
    /// Of no member.
    pub const NONE: Self = Self { id: 0, key: false, bytes_min: 0, extent: Extent::EMPTY };
}

/// A structure, as its extensions see it. `keyed` says whether the structure that is read or written has a
/// key, perhaps one that this one does not have.
pub trait Structure: Cdr {
    /// How it may evolve; its extensions may so, too.
    const EXTENSIBILITY: Extensibility;
    /// Its members, those of its base first.
    const OUTLINE: &'static [MemberOutline];
    /// The same for content filters.
    const FIELDS: &'static [FieldMember];
    /// The id of a member that comes next.
    const NEXT_ID: u32;

    /// Appends the members.
    ///
    /// # Errors
    /// [`EncodeError`].
    fn encode_members(&self, encoder: &mut Encoder<'_>, keyed: bool) -> Result<(), EncodeError>;

    /// Appends those with an id in this range, in the order of their ids.
    ///
    /// # Errors
    /// [`EncodeError`].
    fn encode_by_id(
        &self,
        encoder: &mut Encoder<'_>,
        keyed: bool,
        ids: std::ops::Range<u32>,
    ) -> Result<(), EncodeError>;

    /// Reads the members of a final or appendable structure.
    ///
    /// # Errors
    /// [`Malformed`].
    fn decode_members(decoder: &mut Decoder<'_>, keyed: bool) -> Result<Self, Malformed>;

    /// Reads a member of a mutable structure, and notes that it was there; false for one that is not known.
    ///
    /// # Errors
    /// [`Malformed`].
    fn decode_one(
        &mut self,
        header: &MemberHeader,
        decoder: &mut Decoder<'_>,
        keyed: bool,
        seen: &mut [bool],
    ) -> Result<bool, Malformed>;

    /// Reads past the members of a final or appendable structure.
    ///
    /// # Errors
    /// [`Malformed`].
    fn skip_members(decoder: &mut Decoder<'_>) -> Result<(), Malformed>;
}

/// The members of a base, then those of its extension, in place of what `all` has.
#[must_use]
#[allow(clippy::indexing_slicing, reason = "runs in the compiler only")]
pub const fn joined<T: Copy, const COUNT: usize>(base: &[T], own: &[T], mut all: [T; COUNT]) -> [T; COUNT] {
    let mut place = 0;
    while place < COUNT {
        all[place] = if place < base.len() { base[place] } else { own[place - base.len()] };
        place += 1;
    }
    all
}

/// Whether one of the members belongs to the key.
#[must_use]
pub const fn is_keyed(mut members: &[MemberOutline]) -> bool {
    while let Some((member, rest)) = members.split_first() {
        if member.key {
            return true;
        }
        members = rest;
    }
    false
}

/// The least octets of the key holder on the wire.
#[must_use]
pub const fn bytes_min(mut members: &[MemberOutline]) -> usize {
    let (keyed, mut sum) = (is_keyed(members), 0);
    while let Some((member, rest)) = members.split_first() {
        if member.key || !keyed {
            sum += member.bytes_min;
        }
        members = rest;
    }
    sum
}

/// The most octets of the key holder in the form for key hashes, where members stand in the order of their
/// ids. Compiles for members of different ids only.
#[must_use]
pub const fn extent(members: &[MemberOutline]) -> Extent {
    let keyed = is_keyed(members);
    let (mut sum, mut from) = (Extent::EMPTY, 0);
    while let Some(next) = next_by_id(members, from) {
        if next.key || !keyed {
            sum = sum.then(next.extent);
        }
        from = next.id + 1;
    }
    sum
}

/// The member with the smallest id from `from` on.
const fn next_by_id(mut members: &[MemberOutline], from: u32) -> Option<MemberOutline> {
    let mut next: Option<MemberOutline> = None;
    while let Some((member, rest)) = members.split_first() {
        members = rest;
        if member.id < from {
            continue;
        }
        match next {
            Some(other) if other.id < member.id => {}
            Some(other) => {
                assert!(
                    other.id != member.id,
                    "two members of a structure and its base have one id; give one another with #[dds(id = …)]"
                );
                next = Some(*member);
            }
            None => next = Some(*member),
        }
    }
    next
}

/// The ids in ascending order.
#[must_use]
#[allow(clippy::indexing_slicing, reason = "runs in the compiler only")]
pub const fn ascending<const COUNT: usize>(mut ids: [u32; COUNT]) -> [u32; COUNT] {
    let mut sorted = 1;
    while sorted < COUNT {
        let mut place = sorted;
        while place > 0 && ids[place - 1] > ids[place] {
            (ids[place - 1], ids[place]) = (ids[place], ids[place - 1]);
            place -= 1;
        }
        sorted += 1;
    }
    ids
}

/// Refuses to compile an extension that may evolve in another way than its base.
pub const fn check_base<B: Structure>(own: Extensibility) {
    assert!(
        B::EXTENSIBILITY as u8 == own as u8,
        "a structure and its base are both final, both appendable or both mutable: give them the same extensibility"
    );
}
