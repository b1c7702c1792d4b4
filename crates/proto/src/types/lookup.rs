//! Requests and replies of the TypeLookup service (XTypes 1.3 §7.6.3.3). Only `getTypes` is asked and
//! answered: the types that a type depends on are known from its TypeObject.
//!
//! Payloads are in XCDR2, little endian (`CDR2_LE`), which is what every product reads: final structures, and
//! unions that are appendable, as Cyclone DDS has them; those without DHEADER are read too.

use super::decode::{decoder, sequence as read_sequence};
use super::encode::{delimited, encoder, put_string, sequence};
use super::{OBJECT_BYTES_MAX, TypeHash, TypeIdentifier};
use crate::cdr::{Cdr, Decoder, EncodeError, Encoder, Extensibility};
use crate::guid::Guid;
use crate::malformed::Malformed;

/// Types in one request at most.
pub const REQUESTED_MAX: usize = 64;

const CDR2_LITTLE_ENDIAN: [u8; 4] = [0, 7, 0, 0];
/// `TypeLookup_getTypes_HashId`.
const GET_TYPES: u32 = 0x0182_52d3;
/// Member ids by the hash of `type_ids` and `types`.
const TYPE_IDS: u32 = 0x0c53_6065;
const TYPES: u32 = 0x0280_4ad1;
/// A member header whose length is the DHEADER of the member itself (§7.4.3.4.2).
const LENGTH_IN_MEMBER: u32 = 5 << 28;
const RETCODE_OK: u32 = 0;
const REMOTE_EXCEPTION_OK: u32 = 0;
/// Prefix of the name of the service of a participant (§7.6.3.3.4).
const INSTANCE: &str = "dds.builtin.TOS.";

/// Who asked, and for which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    /// The writer of the request.
    pub writer: Guid,
    /// A number it gave the request.
    pub number: u64,
}

/// `TypeLookup_Request` of the operation `getTypes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which request.
    pub id: RequestId,
    /// The service it is for: `dds.builtin.TOS.` and a GUID.
    pub instance: String,
    /// The types wanted.
    pub types: Vec<TypeHash>,
}

/// The name of the service of a participant.
#[must_use]
pub fn instance_of(participant: Guid) -> String {
    participant.to_bytes().iter().fold(INSTANCE.to_owned(), |name, octet| name + &format!("{octet:02x}"))
}

impl Request {
    /// The payload.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        // Nothing here can be too long or too deep.
        let _ = self.encode_into(&mut encoder(&mut octets));
        [&CDR2_LITTLE_ENDIAN[..], &octets].concat()
    }

    fn encode_into(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_identity(encoder, self.id)?;
        put_string(encoder, &self.instance)?;
        delimited(encoder, |encoder| {
            encoder.put_u32(GET_TYPES)?;
            one_member(encoder, TYPE_IDS, |encoder| {
                sequence(encoder, &self.types, |encoder, hash| TypeIdentifier::Hash(*hash).encode(encoder))
            })
        })
    }

    /// From a payload; `None` for an operation that is not `getTypes`. What is no hash is left out.
    ///
    /// # Errors
    /// [`Malformed`], with more than [`REQUESTED_MAX`] types too.
    pub fn decode(payload: &[u8]) -> Result<Option<Self>, Malformed> {
        let decoder = &mut decoder(content(payload)?);
        let (id, instance) = (take_identity(decoder)?, take_instance(decoder)?);
        if discriminator(decoder, GET_TYPES)? != GET_TYPES {
            return Ok(None);
        }
        let mut types = Vec::new();
        each_member(decoder, |decoder, member| {
            if member == TYPE_IDS {
                let identifiers = read_sequence(decoder, 1, TypeIdentifier::decode)?;
                decoder.check_bound(identifiers.len(), REQUESTED_MAX)?;
                types.extend(identifiers.into_iter().filter_map(|it| match it {
                    TypeIdentifier::Hash(hash) => Some(hash),
                    _ => None,
                }));
            }
            Ok(())
        })?;
        Ok(Some(Self { id, instance, types }))
    }
}

/// The payload of a `TypeLookup_Reply`: serialized TypeObjects and their names.
#[must_use]
pub fn encode_reply(id: RequestId, types: &[(TypeHash, &[u8])]) -> Vec<u8> {
    let mut octets = Vec::new();
    let encode = |encoder: &mut Encoder<'_>| {
        put_identity(encoder, id)?;
        encoder.put_u32(REMOTE_EXCEPTION_OK)?;
        delimited(encoder, |encoder| {
            encoder.put_u32(GET_TYPES)?;
            delimited(encoder, |encoder| {
                encoder.put_u32(RETCODE_OK)?;
                one_member(encoder, TYPES, |encoder| {
                    sequence(encoder, types, |encoder, (hash, object)| {
                        TypeIdentifier::Hash(*hash).encode(encoder)?;
                        // It begins with its DHEADER, so that it looks the same at every multiple of 4.
                        encoder.align(4)?;
                        encoder.put(object)
                    })
                })
            })
        })
    };
    let _ = encode(&mut encoder(&mut octets));
    [&CDR2_LITTLE_ENDIAN[..], &octets].concat()
}

/// The serialized TypeObjects of a reply, and what they are said to be.
///
/// # Errors
/// [`Malformed`], for an object larger than [`OBJECT_BYTES_MAX`] too.
pub fn decode_reply(payload: &[u8]) -> Result<Vec<(TypeHash, &[u8])>, Malformed> {
    let mut types = Vec::new();
    let decoder = &mut decoder(content(payload)?);
    take_identity(decoder)?;
    // `dds::rpc::ReplyHeader` goes on with an exception, of which 0 is none. Cyclone DDS 0.10 has the
    // instance of a request instead: a string, whose length is never 0.
    take_instance(decoder)?;
    if discriminator(decoder, GET_TYPES)? != GET_TYPES || discriminator(decoder, RETCODE_OK)? != RETCODE_OK {
        return Ok(types);
    }
    each_member(decoder, |decoder, member| {
        if member == TYPES {
            let pairs = read_sequence(decoder, 8, |decoder| {
                let identifier = TypeIdentifier::decode(decoder)?;
                let object = decoder.take_delimited()?;
                decoder.check_bound(object.len(), OBJECT_BYTES_MAX)?;
                Ok((identifier, object))
            })?;
            types.extend(pairs.into_iter().filter_map(|(identifier, object)| match identifier {
                TypeIdentifier::Hash(hash) => Some((hash, object)),
                _ => None,
            }));
        }
        Ok(())
    })?;
    Ok(types)
}

/// The discriminator of a union. One that is not the `expected` is taken for a DHEADER first.
fn discriminator(decoder: &mut Decoder<'_>, expected: u32) -> Result<u32, Malformed> {
    let first = decoder.take_u32()?;
    if first == expected { Ok(first) } else { decoder.take_u32() }
}

fn content(payload: &[u8]) -> Result<&[u8], Malformed> {
    match payload.split_first_chunk() {
        Some(([0, 7, _, _], content)) => Ok(content),
        Some(_) => Err(Malformed::UnknownEncapsulation),
        None => Err(Malformed::Truncated),
    }
}

/// `dds::SampleIdentity`, which begins the headers of requests and replies (§7.6.3.3.3).
fn put_identity(encoder: &mut Encoder<'_>, id: RequestId) -> Result<(), EncodeError> {
    encoder.put(&id.writer.to_bytes())?;
    let [high, low] = [id.number >> 32, id.number & 0xffff_ffff];
    encoder.put_u32(u32::try_from(high).unwrap_or(0))?;
    encoder.put_u32(u32::try_from(low).unwrap_or(0))
}

fn take_identity(decoder: &mut Decoder<'_>) -> Result<RequestId, Malformed> {
    let writer = Guid::from_bytes(decoder.take_array()?);
    let (high, low) = (decoder.take_u32()?, decoder.take_u32()?);
    Ok(RequestId { writer, number: u64::from(high) << 32 | u64::from(low) })
}

fn take_instance(decoder: &mut Decoder<'_>) -> Result<String, Malformed> {
    let instance = String::decode(decoder)?;
    decoder.check_bound(instance.len(), 255)?;
    Ok(instance)
}

/// A mutable structure with one member, which has a DHEADER.
fn one_member(
    encoder: &mut Encoder<'_>,
    id: u32,
    content: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let object = encoder.begin_aggregate(Extensibility::Mutable)?;
    encoder.put_u32(LENGTH_IN_MEMBER | id)?;
    content(encoder)?;
    encoder.end_aggregate(object)
}

fn each_member<'a>(
    decoder: &mut Decoder<'a>,
    mut member: impl FnMut(&mut Decoder<'a>, u32) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let object = decoder.begin_aggregate(Extensibility::Mutable)?;
    while let Some(header) = decoder.next_member()? {
        member(decoder, header.id)?;
        decoder.end_member(header);
    }
    decoder.end_aggregate(object);
    Ok(())
}
