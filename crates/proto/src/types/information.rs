//! `TypeInformation`: what an announcement says of a type (XTypes 1.3 §7.6.3.2.1).

use super::decode::{decoder, delimited as read_delimited, sequence as read_sequence};
use super::encode::{delimited, encoder, sequence};
use super::{TypeHash, TypeIdentifier};
use crate::cdr::{Decoder, EncodeError, Encoder, Extensibility};
use crate::malformed::Malformed;

/// A type and the types it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeWithDependencies {
    /// The type.
    pub id: TypeHash,
    /// Octets of its serialized TypeObject.
    pub bytes: u32,
    /// Other types, with the same octets of theirs.
    pub dependencies: Vec<(TypeHash, u32)>,
}

/// What an announcement says of the type of its endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInformation {
    /// By what matters for assignability.
    pub minimal: Option<TypeWithDependencies>,
    /// By everything, names included.
    pub complete: Option<TypeWithDependencies>,
}

const MINIMAL: u32 = 0x1001;
const COMPLETE: u32 = 0x1002;
/// A member header of a mutable structure that is followed by the length of the member (§7.4.3.4.2).
const WITH_LENGTH: u32 = 4 << 28;
/// The least a type in a sequence takes: its DHEADER, an identifier and a size.
const TYPE_BYTES_MIN: usize = 12;

impl TypeInformation {
    /// The value of the parameter. What exceeds a parameter is not told; the rest suffices.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        // Nothing here can be too long or too deep.
        let _ = self.encode_into(&mut encoder(&mut octets));
        octets
    }

    fn encode_into(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        delimited(encoder, |encoder| {
            for (id, ty) in [(MINIMAL, &self.minimal), (COMPLETE, &self.complete)] {
                let Some(ty) = ty else { continue };
                encoder.put_u32(WITH_LENGTH | id)?;
                // The length that belongs to the header looks like a DHEADER.
                delimited(encoder, |encoder| delimited(encoder, |encoder| ty.encode(encoder)))?;
            }
            Ok(())
        })
    }

    /// From the value of a parameter. Of the types depended on as many are kept as there are, which the size
    /// of a parameter bounds.
    ///
    /// # Errors
    /// [`Malformed`]; vendors disagree about the encoding, so this is no reason to refuse the endpoint.
    pub fn decode(octets: &[u8]) -> Result<Self, Malformed> {
        let decoder = &mut decoder(octets);
        let object = decoder.begin_aggregate(Extensibility::Mutable)?;
        let mut information = Self { minimal: None, complete: None };
        while let Some(header) = decoder.next_member()? {
            match header.id {
                MINIMAL => information.minimal = TypeWithDependencies::decode(decoder, false)?,
                COMPLETE => information.complete = TypeWithDependencies::decode(decoder, true)?,
                _ => decoder.unknown_member(&header)?,
            }
            decoder.end_member(header);
        }
        decoder.end_aggregate(object);
        Ok(information)
    }

    /// Whether it names a type that contains itself, be it one that the type depends on.
    pub(crate) fn has_components(&self) -> bool {
        [&self.minimal, &self.complete].into_iter().flatten().any(|ty| {
            let mut dependencies = ty.dependencies.iter().map(|(id, _)| id);
            ty.id.component.is_some() || dependencies.any(|id| id.component.is_some())
        })
    }

    /// The two hashes that name the type.
    pub(crate) fn ids(&self) -> TypeIds {
        let id = |ty: &Option<TypeWithDependencies>| ty.as_ref().map(|ty| ty.id);
        TypeIds { minimal: id(&self.minimal), complete: id(&self.complete) }
    }
}

/// What is kept of the TypeInformation of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeIds {
    pub(crate) minimal: Option<TypeHash>,
    pub(crate) complete: Option<TypeHash>,
}

impl TypeWithDependencies {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_type(encoder, self.id, self.bytes)?;
        encoder.put_length(self.dependencies.len())?;
        sequence(encoder, &self.dependencies, |encoder, (id, bytes)| put_type(encoder, *id, *bytes))
    }

    /// `None` for a type that is not named by a hash of the wanted kind.
    fn decode(decoder: &mut Decoder<'_>, complete: bool) -> Result<Option<Self>, Malformed> {
        let hash_of = |identifier| match identifier {
            TypeIdentifier::Hash(hash) if hash.complete == complete => Some(hash),
            _ => None,
        };
        read_delimited(decoder, |decoder| {
            let (id, bytes) = take_type(decoder)?;
            // How many there are; −1 for unknown.
            decoder.take_u32()?;
            let all = read_sequence(decoder, TYPE_BYTES_MIN, take_type)?;
            let dependencies =
                all.into_iter().filter_map(|(id, bytes)| Some((hash_of(id)?, bytes))).collect();
            Ok(hash_of(id).and_then(one_of_component).map(|id| Self { id, bytes, dependencies }))
        })
    }
}

/// The type of an endpoint contains itself, and its component is told instead of it (§7.6.3.2.1): that says
/// which one it is only where there is no other. Plainsong, Cyclone DDS and OpenDDS tell the type.
fn one_of_component(id: TypeHash) -> Option<TypeHash> {
    if !id.is_whole_component() {
        return Some(id);
    }
    let mut types = id.types();
    types.next().filter(|_| types.next().is_none())
}

/// `TypeIdentfierWithSize`.
fn put_type(encoder: &mut Encoder<'_>, id: TypeHash, bytes: u32) -> Result<(), EncodeError> {
    delimited(encoder, |encoder| {
        TypeIdentifier::Hash(id).encode(encoder)?;
        encoder.put_u32(bytes)
    })
}

fn take_type(decoder: &mut Decoder<'_>) -> Result<(TypeIdentifier, u32), Malformed> {
    read_delimited(decoder, |decoder| Ok((TypeIdentifier::decode(decoder)?, decoder.take_u32()?)))
}
