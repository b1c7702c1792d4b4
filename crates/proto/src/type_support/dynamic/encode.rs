//! Values of a type that is described at run time, written as a derived type writes them: in all forms, those
//! of keys above all.

use crate::cdr::{DEPTH_MAX, EncodeError, Encoder, Endianness, Extensibility, XcdrVersion};

use super::model::{Kind, Member, Structure, Type, Union, primitive_bytes};
use super::value::Value;

type Encoded = Result<(), EncodeError>;

/// Appends a value.
pub(super) fn encode(ty: &Type, value: &Value<'_>, encoder: &mut Encoder<'_>) -> Encoded {
    match &ty.kind {
        Kind::Primitive(_) | Kind::Enumeration(_) | Kind::Bitmask(_) => {
            let bits = if let Value::Number(bits) = value { *bits } else { ty.initial_number() };
            put_number(encoder, bits, ty.number_bytes().unwrap_or(1))
        }
        Kind::Text { wide: false, .. } => {
            let text = if let Value::Text(text) = value { text.as_str() } else { "" };
            encoder.put_length(text.len().saturating_add(1))?;
            encoder.put(text.as_bytes())?;
            encoder.put(&[0])
        }
        Kind::Text { wide: true, .. } => {
            let (octets, order) = numbers(value).unwrap_or((&[], Endianness::NATIVE));
            encoder.put_length(octets.len())?;
            put_numbers(encoder, octets, order, 2)
        }
        Kind::Sequence { element, .. } => {
            let object = encoder.begin_collection(element.primitive().is_some())?;
            if let Some(primitive) = element.primitive() {
                let (octets, order) = numbers(value).unwrap_or((&[], Endianness::NATIVE));
                let bytes = primitive_bytes(primitive);
                encoder.put_length(octets.len() / bytes)?;
                put_numbers(encoder, octets, order, bytes)?;
            } else {
                let elements = if let Value::Elements(elements) = value { elements.as_slice() } else { &[] };
                encoder.put_length(elements.len())?;
                elements.iter().try_for_each(|it| encode(element, it, encoder))?;
            }
            encoder.end_collection(object)
        }
        Kind::Array { count, element, .. } => {
            let object = encoder.begin_collection(element.primitive().is_some())?;
            match (value, element.primitive(), numbers(value)) {
                (_, Some(primitive), Some((octets, order))) => {
                    put_numbers(encoder, octets, order, primitive_bytes(primitive))?;
                }
                (Value::Elements(elements), ..) => {
                    elements.iter().try_for_each(|it| encode(element, it, encoder))?;
                }
                _ => (0..*count).try_for_each(|_| encode(element, &Value::Initial, encoder))?,
            }
            encoder.end_collection(object)
        }
        Kind::Map { key, element, .. } => {
            let object =
                encoder.begin_collection(key.primitive().is_some() && element.primitive().is_some())?;
            let pairs = if let Value::Elements(pairs) = value { pairs.as_slice() } else { &[] };
            encoder.put_length(pairs.len() / 2)?;
            for (value, ty) in pairs.iter().zip([key, element].into_iter().cycle()) {
                encode(ty, value, encoder)?;
            }
            encoder.end_collection(object)
        }
        Kind::Structure(structure) => encode_structure(structure, value, encoder),
        Kind::Union(union) => encode_union(union, value, encoder),
        Kind::TooDeep => Err(EncodeError::TooDeep { limit: DEPTH_MAX }),
    }
}

/// The octets of many numbers, and their order.
fn numbers<'a>(value: &'a Value<'_>) -> Option<(&'a [u8], Endianness)> {
    match value {
        Value::Numbers(octets, order) | Value::WideText(octets, order) => Some((octets, *order)),
        _ => None,
    }
}

fn put_number(encoder: &mut Encoder<'_>, bits: u64, bytes: usize) -> Encoded {
    encoder.align(bytes)?;
    let (little, big) = (bits.to_le_bytes(), bits.to_be_bytes());
    match encoder.endianness() {
        Endianness::Little => encoder.put(little.get(..bytes).unwrap_or_default()),
        Endianness::Big => encoder.put(big.get(big.len().saturating_sub(bytes)..).unwrap_or_default()),
    }
}

fn put_numbers(encoder: &mut Encoder<'_>, octets: &[u8], order: Endianness, bytes: usize) -> Encoded {
    if octets.is_empty() {
        return Ok(());
    }
    encoder.align(bytes)?;
    if bytes == 1 || order == encoder.endianness() {
        return encoder.put(octets);
    }
    for number in octets.chunks_exact(bytes) {
        let mut turned = [0; 8];
        turned.iter_mut().zip(number.iter().rev()).for_each(|(to, from)| *to = *from);
        encoder.put(turned.get(..bytes).unwrap_or_default())?;
    }
    Ok(())
}

fn encode_structure(structure: &Structure, value: &Value<'_>, encoder: &mut Encoder<'_>) -> Encoded {
    let object = encoder.begin_aggregate(structure.extensibility)?;
    let is_mutable = structure.extensibility == Extensibility::Mutable;
    let values = if let Value::Structure(values) = value { values.as_slice() } else { &[] };
    let only_keys = structure.keyed && encoder.key_only();
    let by_id = encoder.by_member_id();
    for at in 0..structure.members.len() {
        let place = if by_id { structure.by_id.get(at).copied().unwrap_or(at) } else { at };
        let Some(member) = structure.members.get(place) else { continue };
        if only_keys && !member.key {
            continue;
        }
        let initial = structure.initial_member(place);
        encode_member(member, values.get(place).unwrap_or(&initial), is_mutable, encoder)?;
    }
    if is_mutable {
        encoder.end_member_list()?;
    }
    encoder.end_aggregate(object)
}

fn encode_member(member: &Member, value: &Value<'_>, is_mutable: bool, encoder: &mut Encoder<'_>) -> Encoded {
    // The key holder is final, whatever the type is (XTypes 1.3 §7.6.8 step 1).
    let is_mutable = is_mutable && !encoder.by_member_id();
    match (is_mutable, member.optional, value) {
        (true, true, Value::Absent) => return Ok(()),
        (false, true, Value::Absent) => return encoder.put_absent_member(member.id, member.must_understand),
        (false, false, _) => return encode(&member.ty, value, encoder),
        (false, true, _) if encoder.version() == XcdrVersion::Xcdr2 => {
            encoder.put(&[1])?;
            return encode(&member.ty, value, encoder);
        }
        _ => {}
    }
    let open = encoder.begin_member(member.id, member.must_understand, member.ty.number_bytes())?;
    encode(&member.ty, value, encoder)?;
    encoder.end_member(open)
}

fn encode_union(union: &Union, value: &Value<'_>, encoder: &mut Encoder<'_>) -> Encoded {
    let object = encoder.begin_aggregate(union.extensibility)?;
    let is_mutable = union.extensibility == Extensibility::Mutable;
    let (initial, initial_case) = union.initial_case();
    let (bits, selected) = match value {
        Value::Union(bits, selected) => {
            (*bits, selected.as_ref().map(|(place, member)| (*place, member.as_ref())))
        }
        _ => (initial, initial_case.map(|place| (place, union.initial_member(place)))),
    };
    let discriminator = &union.discriminator;
    if is_mutable && !encoder.by_member_id() {
        let open = encoder.begin_member(0, true, discriminator.number_bytes())?;
        encode(discriminator, &Value::Number(bits), encoder)?;
        encoder.end_member(open)?;
    } else {
        encode(discriminator, &Value::Number(bits), encoder)?;
    }
    if let Some((place, value)) = selected
        && let Some(case) = union.cases.get(place)
        && !(union.keyed && encoder.key_only())
    {
        encode_member(case, value, is_mutable, encoder)?;
    }
    if is_mutable {
        encoder.end_member_list()?;
    }
    encoder.end_aggregate(object)
}
