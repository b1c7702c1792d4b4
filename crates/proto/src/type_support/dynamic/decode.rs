//! Samples of a type that is described at run time, read as a derived type reads them. Everything here faces
//! a hostile peer, and perhaps a hostile type: what is kept is booked, and so is the time for what takes no
//! octets.

use std::borrow::Cow;

use crate::cdr::decode::{Form, OpenObject};
use crate::cdr::text::take_text;
use crate::cdr::{Decoder, Endianness, Extensibility, XcdrVersion};
use crate::malformed::Malformed;
use crate::types::Primitive;

use super::model::{Kind, Member, Structure, Type, Union, primitive_bytes};
use super::value::Value;

type Decoded<'a> = Result<Value<'a>, Malformed>;

const VALUE_BYTES: usize = size_of::<Value<'_>>();

/// Reads a value.
pub(super) fn decode<'a>(ty: &Type, decoder: &mut Decoder<'a>) -> Decoded<'a> {
    match &ty.kind {
        Kind::Primitive(primitive) => {
            let bits = take_number(decoder, primitive_bytes(*primitive))?;
            if *primitive == Primitive::Boolean && bits > 1 {
                return Err(Malformed::InvalidBoolean);
            }
            Ok(Value::Number(bits))
        }
        Kind::Enumeration(enumeration) => {
            let bits = take_number(decoder, enumeration.bytes)?;
            let value = ty.integer(bits);
            match enumeration.literals.binary_search_by_key(&value, |(_, literal)| *literal) {
                Ok(_) => Ok(Value::Number(bits)),
                Err(_) => Err(Malformed::InvalidEnum),
            }
        }
        Kind::Bitmask(bitmask) => take_number(decoder, bitmask.bytes).map(Value::Number),
        Kind::Text { wide: false, bound } => text(decoder, *bound),
        Kind::Text { wide: true, bound } => wide_text(decoder, *bound),
        Kind::Sequence { bound, element } => {
            let object = begin_sequence(element, decoder)?;
            let count = decoder.take_count(element.bytes_min)?;
            check_bound(count, *bound)?;
            let value = elements(element, count, decoder)?;
            decoder.end_collection(object);
            Ok(value)
        }
        Kind::Array { count, dimensions, element } => {
            let object = begin_array((*count, dimensions.len() > 1), element, decoder)?;
            let value = elements(element, *count, decoder)?;
            decoder.end_collection(object);
            Ok(value)
        }
        Kind::Map { bound, key, element } => map(*bound, (key, element), decoder),
        Kind::Structure(structure) if structure.extensibility == Extensibility::Mutable => {
            mutable_structure(structure, decoder)
        }
        Kind::Structure(structure) => plain_structure(structure, decoder),
        Kind::Union(union) => decode_union(union, decoder),
        Kind::TooDeep => Err(Malformed::TooDeep),
    }
}

fn begin_sequence(element: &Type, decoder: &mut Decoder<'_>) -> Result<OpenObject, Malformed> {
    match element.number_bytes() {
        Some(bytes) if element.primitive().is_none() => decoder.begin_enumerations(bytes, None),
        _ => decoder.begin_collection(element.primitive().is_some()),
    }
}

fn begin_array(
    (count, is_matrix): (usize, bool),
    element: &Type,
    decoder: &mut Decoder<'_>,
) -> Result<OpenObject, Malformed> {
    match element.number_bytes() {
        Some(bytes) if element.primitive().is_none() && !is_matrix => {
            decoder.begin_enumerations(bytes, Some(count))
        }
        _ => decoder.begin_collection(element.primitive().is_some()),
    }
}

fn take_number(decoder: &mut Decoder<'_>, bytes: usize) -> Result<u64, Malformed> {
    decoder.align(bytes)?;
    let octets = decoder.take(bytes)?;
    let little = decoder.endianness() == Endianness::Little;
    let append = |bits: u64, octet: &u8| bits << 8 | u64::from(*octet);
    Ok(if little { octets.iter().rev().fold(0, append) } else { octets.iter().fold(0, append) })
}

fn check_bound(length: usize, bound: Option<usize>) -> Result<(), Malformed> {
    if bound.is_some_and(|bound| length > bound) { Err(Malformed::LengthOutOfRange) } else { Ok(()) }
}

fn text<'a>(decoder: &mut Decoder<'_>, bound: Option<usize>) -> Decoded<'a> {
    let text = take_text(decoder)?;
    check_bound(text.len(), bound)?;
    Ok(Value::Text(text))
}

fn wide_text<'a>(decoder: &mut Decoder<'a>, bound: Option<usize>) -> Decoded<'a> {
    let length = decoder.take_length()?;
    let (endianness, octets) = (decoder.endianness(), decoder.take(length)?);
    let (units, odd) = octets.as_chunks::<2>();
    let of_unit = |unit: &[u8; 2]| match endianness {
        Endianness::Little => u16::from_le_bytes(*unit),
        Endianness::Big => u16::from_be_bytes(*unit),
    };
    if !odd.is_empty() || char::decode_utf16(units.iter().map(of_unit)).any(|unit| unit.is_err()) {
        return Err(Malformed::InvalidString);
    }
    check_bound(units.len(), bound)?;
    Ok(Value::WideText(Cow::Borrowed(octets), endianness))
}

/// So many elements of a sequence or array.
fn elements<'a>(element: &Type, count: usize, decoder: &mut Decoder<'a>) -> Decoded<'a> {
    let Some(primitive) = element.primitive() else {
        decoder.book_memory(count, VALUE_BYTES)?;
        let elements = (0..count).map(|_| decode(element, decoder)).collect::<Result<_, _>>()?;
        return Ok(Value::Elements(elements));
    };
    let octets = take_numbers(primitive, count, decoder)?;
    if primitive == Primitive::Boolean && octets.iter().any(|octet| *octet > 1) {
        return Err(Malformed::InvalidBoolean);
    }
    Ok(Value::Numbers(Cow::Borrowed(octets), decoder.endianness()))
}

fn take_numbers<'a>(
    primitive: Primitive,
    count: usize,
    decoder: &mut Decoder<'a>,
) -> Result<&'a [u8], Malformed> {
    let bytes = primitive_bytes(primitive);
    if count == 0 {
        return Ok(&[]);
    }
    decoder.align(bytes)?;
    decoder.take(count.saturating_mul(bytes))
}

fn map<'a>(bound: Option<usize>, (key, element): (&Type, &Type), decoder: &mut Decoder<'a>) -> Decoded<'a> {
    let object = decoder.begin_collection(key.primitive().is_some() && element.primitive().is_some())?;
    let count = decoder.take_count(key.bytes_min + element.bytes_min)?;
    check_bound(count, bound)?;
    decoder.book_memory(count, 2 * VALUE_BYTES)?;
    let mut values = Vec::new();
    for _ in 0..count {
        values.push(decode(key, decoder)?);
        values.push(decode(element, decoder)?);
    }
    decoder.end_collection(object);
    Ok(Value::Elements(values))
}

/// Members in their order: of final and appendable structures.
fn plain_structure<'a>(structure: &Structure, decoder: &mut Decoder<'a>) -> Decoded<'a> {
    let object = decoder.begin_aggregate(structure.extensibility)?;
    decoder.book_memory(structure.members.len() + 1, VALUE_BYTES)?;
    let mut values = Vec::with_capacity(structure.members.len());
    for (place, member) in structure.members.iter().enumerate() {
        let is_wanted = !structure.keyed || member.key || decoder.form() == Form::Sample;
        let is_there = is_wanted || decoder.form() == Form::KeyOfSample;
        let ends = structure.extensibility != Extensibility::Final
            && is_there
            && decoder.ends_before(member.bytes_min_xcdr1());
        values.push(if !is_there || ends {
            if member.key {
                return Err(Malformed::MissingMember);
            }
            structure.initial_member(place)
        } else if is_wanted {
            decode_member(member, decoder)?
        } else {
            skip_member(member, decoder)?;
            structure.initial_member(place)
        });
    }
    decoder.end_aggregate(object);
    Ok(Value::Structure(values))
}

/// A member of a final or appendable aggregate.
fn decode_member<'a>(member: &Member, decoder: &mut Decoder<'a>) -> Decoded<'a> {
    if !member.optional {
        return decode(&member.ty, decoder);
    }
    if decoder.version() == XcdrVersion::Xcdr2 {
        return if take_presence(decoder)? { decode(&member.ty, decoder) } else { Ok(Value::Absent) };
    }
    let header = decoder.optional_member(member.id)?;
    let value = if header.is_empty(decoder) { Value::Absent } else { decode(&member.ty, decoder)? };
    decoder.end_member(header);
    Ok(value)
}

fn take_presence(decoder: &mut Decoder<'_>) -> Result<bool, Malformed> {
    match decoder.take_array()? {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(Malformed::InvalidBoolean),
    }
}

fn mutable_structure<'a>(structure: &Structure, decoder: &mut Decoder<'a>) -> Decoded<'a> {
    let object = decoder.begin_aggregate(structure.extensibility)?;
    decoder.book_memory(structure.members.len() + 1, VALUE_BYTES)?;
    let mut values: Vec<_> = (0..structure.members.len()).map(|at| structure.initial_member(at)).collect();
    let mut missing: Vec<_> = structure.members.iter().map(|member| member.key).collect();
    let only_keys = structure.keyed && decoder.form() == Form::KeyOfSample;
    while let Some(header) = decoder.next_member()? {
        let place = structure.place_of(header.id);
        match place.and_then(|place| Some((place, structure.members.get(place)?))) {
            None => decoder.unknown_member(&header)?,
            Some((_, member)) if only_keys && !member.key => {}
            Some((place, member)) => {
                let value = decode(&member.ty, decoder)?;
                if let (Some(known), Some(missing)) = (values.get_mut(place), missing.get_mut(place)) {
                    (*known, *missing) = (value, false);
                }
            }
        }
        decoder.end_member(header);
    }
    if missing.contains(&true) {
        return Err(Malformed::MissingMember);
    }
    decoder.end_aggregate(object);
    Ok(Value::Structure(values))
}

fn decode_union<'a>(union: &Union, decoder: &mut Decoder<'a>) -> Decoded<'a> {
    let is_mutable = union.extensibility == Extensibility::Mutable;
    let object = decoder.begin_aggregate(union.extensibility)?;
    decoder.book_memory(1, VALUE_BYTES)?;
    let bits = take_discriminator(union, decoder)?;
    let selected = union.select(union.discriminator.integer(bits));
    let case = selected.and_then(|place| Some((place, union.cases.get(place)?)));
    let mut value = None;
    if let Some((place, case)) = case {
        let form = if union.keyed { decoder.form() } else { Form::Sample };
        let member = match form {
            Form::Sample if is_mutable => mutable_case(case, decoder)?,
            Form::Sample => decode_member(case, decoder)?,
            Form::KeyOfSample if !is_mutable => {
                skip_member(case, decoder)?;
                Value::Initial
            }
            Form::Key | Form::UndelimitedKey | Form::KeyOfSample => Value::Initial,
        };
        value = Some((place, Box::new(member)));
    }
    if is_mutable {
        decoder.skip_members()?;
    }
    decoder.end_aggregate(object);
    Ok(Value::Union(bits, value))
}

fn take_discriminator(union: &Union, decoder: &mut Decoder<'_>) -> Result<u64, Malformed> {
    let header = if union.extensibility == Extensibility::Mutable {
        Some(decoder.next_member()?.filter(|header| header.id == 0).ok_or(Malformed::MissingMember)?)
    } else {
        None
    };
    let Value::Number(bits) = decode(&union.discriminator, decoder)? else {
        return Err(Malformed::InvalidDiscriminator);
    };
    if let Some(header) = header {
        decoder.end_member(header);
    }
    Ok(bits)
}

fn mutable_case<'a>(case: &Member, decoder: &mut Decoder<'a>) -> Decoded<'a> {
    while let Some(header) = decoder.next_member()? {
        if header.id == case.id {
            let value = decode(&case.ty, decoder)?;
            decoder.end_member(header);
            return Ok(value);
        }
        decoder.unknown_member(&header)?;
        decoder.end_member(header);
    }
    Err(Malformed::MissingMember)
}

/// Reads past a member of a final or appendable aggregate.
fn skip_member(member: &Member, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
    if !member.optional {
        return skip(&member.ty, decoder);
    }
    if decoder.version() == XcdrVersion::Xcdr2 {
        return if take_presence(decoder)? { skip(&member.ty, decoder) } else { Ok(()) };
    }
    let header = decoder.optional_member(member.id)?;
    decoder.end_member(header);
    Ok(())
}

/// Reads past a value, over what has a length without a look at it.
fn skip(ty: &Type, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
    match &ty.kind {
        Kind::Primitive(_) | Kind::Enumeration(_) | Kind::Bitmask(_) => {
            take_number(decoder, ty.number_bytes().unwrap_or(1)).map(drop)
        }
        Kind::Text { .. } => {
            let length = decoder.take_length()?;
            decoder.take(length).map(drop)
        }
        Kind::Sequence { element, .. } => {
            let object = begin_sequence(element, decoder)?;
            if !decoder.jump(&object) {
                let count = decoder.take_count(element.bytes_min)?;
                skip_elements(element, count, decoder)?;
            }
            decoder.end_collection(object);
            Ok(())
        }
        Kind::Array { count, dimensions, element } => {
            let object = begin_array((*count, dimensions.len() > 1), element, decoder)?;
            if !decoder.jump(&object) {
                skip_elements(element, *count, decoder)?;
            }
            decoder.end_collection(object);
            Ok(())
        }
        Kind::Map { key, element, .. } => {
            let object =
                decoder.begin_collection(key.primitive().is_some() && element.primitive().is_some())?;
            if !decoder.jump(&object) {
                for _ in 0..decoder.take_count(key.bytes_min + element.bytes_min)? {
                    skip(key, decoder)?;
                    skip(element, decoder)?;
                }
            }
            decoder.end_collection(object);
            Ok(())
        }
        Kind::Structure(structure) => skip_structure(structure, decoder),
        Kind::Union(union) => skip_union(union, decoder),
        Kind::TooDeep => Err(Malformed::TooDeep),
    }
}

fn skip_elements(element: &Type, count: usize, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
    match element.primitive() {
        Some(primitive) => take_numbers(primitive, count, decoder).map(drop),
        None => (0..count).try_for_each(|_| skip(element, decoder)),
    }
}

fn skip_structure(structure: &Structure, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
    let object = decoder.begin_aggregate(structure.extensibility)?;
    if !decoder.jump(&object) {
        decoder.book_memory(1, 1)?;
        if structure.extensibility == Extensibility::Mutable {
            decoder.skip_members()?;
        } else {
            let may_end = structure.extensibility != Extensibility::Final;
            for member in &structure.members {
                if !may_end || !decoder.ends_before(member.bytes_min_xcdr1()) {
                    skip_member(member, decoder)?;
                }
            }
        }
    }
    decoder.end_aggregate(object);
    Ok(())
}

fn skip_union(union: &Union, decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
    let object = decoder.begin_aggregate(union.extensibility)?;
    if !decoder.jump(&object) {
        if union.extensibility == Extensibility::Mutable {
            decoder.skip_members()?;
        } else {
            let bits = take_discriminator(union, decoder)?;
            let selected = union.select(union.discriminator.integer(bits));
            if let Some(case) = selected.and_then(|place| union.cases.get(place)) {
                skip_member(case, decoder)?;
            }
        }
    }
    decoder.end_aggregate(object);
    Ok(())
}
