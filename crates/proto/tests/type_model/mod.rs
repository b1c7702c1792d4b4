//! Random types and values of them, made from a string of octets.
//!
//! The octets are the only source of choice, so that a shorter or smaller string gives a simpler type: both
//! shrinking and coverage-guided fuzzing work on types this way. Values are coded by the same steps of
//! `Encoder` and `Decoder` that derived code takes.

use plainsong_proto::cdr::{Cdr, Decoder, EncodeError, Encoder, Extensibility, WString, XcdrVersion};
use plainsong_proto::malformed::Malformed;

/// A string of octets that choices are taken from; zeros when it is used up.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    pub(crate) fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn below(&mut self, limit: u8) -> u8 {
        self.octet() % limit
    }

    pub(crate) fn number(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.octet()))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TypeModel {
    Boolean,
    Integer {
        bytes: u8,
    },
    Real,
    Text,
    WideText,
    /// Literals 0 to 4.
    Enumeration,
    Sequence(Box<Self>),
    Array(Box<Self>, u8),
    Structure(Extensibility, Vec<MemberModel>),
    /// Members are selected by their index plus one; 0 selects none.
    Union(Extensibility, Vec<Self>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemberModel {
    pub(crate) id: u32,
    pub(crate) optional: bool,
    pub(crate) must_understand: bool,
    pub(crate) model: TypeModel,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Boolean(bool),
    Integer(u64),
    /// The bits, so that every value equals itself.
    Real(u64),
    Text(String),
    WideText(String),
    Enumeration(i32),
    Several(Vec<Self>),
    /// `None` for an absent optional member.
    Structure(Vec<Option<Self>>),
    Union(Option<(usize, Box<Self>)>),
}

impl TypeModel {
    pub(crate) fn choose(choices: &mut Choices<'_>, depth: u8) -> Self {
        let kinds = if depth == 0 { 6 } else { 10 };
        match choices.below(kinds) {
            0 => Self::Integer { bytes: 1 << choices.below(4) },
            1 => Self::Boolean,
            2 => Self::Real,
            3 => Self::Text,
            4 => Self::WideText,
            5 => Self::Enumeration,
            6 => Self::Sequence(Box::new(Self::choose(choices, depth - 1))),
            7 => Self::Array(Box::new(Self::choose(choices, depth - 1)), 1 + choices.below(3)),
            8 => Self::structure(choices, depth),
            _ => {
                let extensibility = extensibility(choices);
                Self::Union(
                    extensibility,
                    (0..=choices.below(3)).map(|_| Self::choose(choices, depth - 1)).collect(),
                )
            }
        }
    }

    pub(crate) fn structure(choices: &mut Choices<'_>, depth: u8) -> Self {
        let extensibility = extensibility(choices);
        let mut id = 0;
        let members = (0..=choices.below(4)).map(|_| {
            id += 1 + u32::from(choices.below(3)) * 0x1fff;
            let flags = choices.octet();
            let model = Self::choose(choices, depth - 1);
            MemberModel { id, optional: flags & 3 == 3, must_understand: flags & 4 != 0, model }
        });
        Self::Structure(extensibility, members.collect())
    }

    pub(crate) fn value(&self, choices: &mut Choices<'_>) -> Value {
        match self {
            Self::Boolean => Value::Boolean(choices.octet() & 1 != 0),
            Self::Integer { bytes } => {
                Value::Integer(choices.number() & (u64::MAX >> (64 - 8 * u32::from(*bytes))))
            }
            Self::Real => Value::Real(choices.number()),
            Self::Text => Value::Text(text(choices)),
            Self::WideText => Value::WideText(text(choices)),
            Self::Enumeration => Value::Enumeration(i32::from(choices.below(5))),
            Self::Sequence(element) => {
                Value::Several((0..choices.below(5)).map(|_| element.value(choices)).collect())
            }
            Self::Array(element, count) => {
                Value::Several((0..*count).map(|_| element.value(choices)).collect())
            }
            Self::Structure(_, members) => Value::Structure(
                members
                    .iter()
                    .map(|member| {
                        (!member.optional || choices.octet() & 1 != 0).then(|| member.model.value(choices))
                    })
                    .collect(),
            ),
            Self::Union(_, members) => {
                let selected = usize::from(choices.octet()) % (members.len() + 1);
                let selected = selected.checked_sub(1);
                Value::Union(selected.map(|index| (index, Box::new(members[index].value(choices)))))
            }
        }
    }

    fn is_primitive(&self) -> bool {
        matches!(self, Self::Boolean | Self::Integer { .. } | Self::Real)
    }

    /// Whether an array of this is an array of primitives, however many dimensions it has.
    fn is_flat(&self) -> bool {
        match self {
            Self::Array(element, _) => element.is_flat(),
            other => other.is_primitive(),
        }
    }

    fn fixed_bytes(&self) -> Option<usize> {
        match self {
            Self::Boolean => Some(1),
            Self::Integer { bytes } => Some(usize::from(*bytes)),
            Self::Real => Some(8),
            Self::Enumeration => Some(4),
            _ => None,
        }
    }

    fn octets_min(&self) -> usize {
        match self {
            Self::Text | Self::WideText | Self::Sequence(_) => 4,
            Self::Array(element, count) => element.octets_min() * usize::from(*count),
            Self::Structure(Extensibility::Final, members) => {
                members.iter().map(MemberModel::octets_min).sum()
            }
            Self::Structure(Extensibility::Appendable, members) => {
                members.iter().map(MemberModel::octets_min).sum::<usize>().min(4)
            }
            Self::Structure(Extensibility::Mutable, _) | Self::Union(..) => 4,
            fixed => fixed.fixed_bytes().unwrap_or(1),
        }
    }

    pub(crate) fn encode(&self, value: &Value, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        match (self, value) {
            (Self::Boolean, Value::Boolean(value)) => value.encode(encoder),
            (Self::Integer { bytes: 1 }, Value::Integer(value)) => (*value as u8).encode(encoder),
            (Self::Integer { bytes: 2 }, Value::Integer(value)) => (*value as u16).encode(encoder),
            (Self::Integer { bytes: 4 }, Value::Integer(value)) => (*value as u32).encode(encoder),
            (Self::Integer { .. }, Value::Integer(value)) => value.encode(encoder),
            (Self::Real, Value::Real(bits)) => f64::from_bits(*bits).encode(encoder),
            (Self::Text, Value::Text(text)) => text.encode(encoder),
            (Self::WideText, Value::WideText(text)) => WString(text.clone()).encode(encoder),
            (Self::Enumeration, Value::Enumeration(value)) => value.encode(encoder),
            (Self::Sequence(element), Value::Several(values)) => {
                let object = encoder.begin_collection(element.is_primitive())?;
                encoder.put_length(values.len())?;
                values.iter().try_for_each(|value| element.encode(value, encoder))?;
                encoder.end_collection(object)
            }
            (Self::Array(element, _), Value::Several(_)) => {
                let object = encoder.begin_collection(element.is_flat())?;
                self.encode_flat(value, encoder)?;
                encoder.end_collection(object)
            }
            (Self::Structure(extensibility, members), Value::Structure(values)) => {
                let object = encoder.begin_aggregate(*extensibility)?;
                for (member, value) in members.iter().zip(values) {
                    member.encode(*extensibility, value.as_ref(), encoder)?;
                }
                if *extensibility == Extensibility::Mutable {
                    encoder.end_member_list()?;
                }
                encoder.end_aggregate(object)
            }
            (Self::Union(extensibility, members), Value::Union(selected)) => {
                let object = encoder.begin_aggregate(*extensibility)?;
                let discriminator = selected.as_ref().map_or(0, |(index, _)| *index as u64 + 1);
                let member = MemberModel::discriminator();
                member.encode(*extensibility, Some(&Value::Integer(discriminator)), encoder)?;
                if let Some((index, value)) = selected {
                    union_member(members, *index).encode(*extensibility, Some(value), encoder)?;
                }
                if *extensibility == Extensibility::Mutable {
                    encoder.end_member_list()?;
                }
                encoder.end_aggregate(object)
            }
            other => panic!("type and value do not match: {other:?}"),
        }
    }

    /// All elements of an array of any dimension, without headers between them.
    fn encode_flat(&self, value: &Value, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        match (self, value) {
            (Self::Array(element, _), Value::Several(values)) => {
                values.iter().try_for_each(|value| element.encode_flat(value, encoder))
            }
            _ => self.encode(value, encoder),
        }
    }

    pub(crate) fn decode(&self, decoder: &mut Decoder<'_>) -> Result<Value, Malformed> {
        Ok(match self {
            Self::Boolean => Value::Boolean(bool::decode(decoder)?),
            Self::Integer { bytes: 1 } => Value::Integer(u8::decode(decoder)?.into()),
            Self::Integer { bytes: 2 } => Value::Integer(u16::decode(decoder)?.into()),
            Self::Integer { bytes: 4 } => Value::Integer(u32::decode(decoder)?.into()),
            Self::Integer { .. } => Value::Integer(u64::decode(decoder)?),
            Self::Real => Value::Real(f64::decode(decoder)?.to_bits()),
            Self::Text => Value::Text(String::decode(decoder)?),
            Self::WideText => Value::WideText(WString::decode(decoder)?.0),
            Self::Enumeration => match i32::decode(decoder)? {
                value @ 0..=4 => Value::Enumeration(value),
                _ => return Err(Malformed::InvalidEnum),
            },
            Self::Sequence(element) => {
                let object = match **element {
                    Self::Enumeration => decoder.begin_enumerations(4, None)?,
                    _ => decoder.begin_collection(element.is_primitive())?,
                };
                let count = decoder.take_count(element.octets_min())?;
                decoder.book_memory(count, size_of::<Value>())?;
                let values = (0..count).map(|_| element.decode(decoder)).collect::<Result<_, _>>()?;
                decoder.end_collection(object);
                Value::Several(values)
            }
            Self::Array(element, count) => {
                let object = match **element {
                    Self::Enumeration => decoder.begin_enumerations(4, Some(usize::from(*count)))?,
                    _ => decoder.begin_collection(element.is_flat())?,
                };
                let value = self.decode_flat(decoder)?;
                decoder.end_collection(object);
                value
            }
            Self::Structure(Extensibility::Mutable, members) => decode_mutable(members, decoder)?,
            Self::Structure(extensibility, members) => {
                let object = decoder.begin_aggregate(*extensibility)?;
                let values = members.iter().map(|member| member.decode(*extensibility, decoder));
                let values = values.collect::<Result<_, _>>()?;
                decoder.end_aggregate(object);
                Value::Structure(values)
            }
            Self::Union(extensibility, members) => decode_union(*extensibility, members, decoder)?,
        })
    }

    fn decode_flat(&self, decoder: &mut Decoder<'_>) -> Result<Value, Malformed> {
        match self {
            Self::Array(element, count) => (0..*count)
                .map(|_| element.decode_flat(decoder))
                .collect::<Result<_, _>>()
                .map(Value::Several),
            _ => self.decode(decoder),
        }
    }

    fn initial(&self) -> Value {
        match self {
            Self::Sequence(_) => Value::Several(Vec::new()),
            Self::Array(element, count) => Value::Several((0..*count).map(|_| element.initial()).collect()),
            Self::Structure(_, members) => {
                Value::Structure(members.iter().map(MemberModel::initial).collect())
            }
            _ => self.value(&mut Choices(&[])),
        }
    }
}

impl MemberModel {
    fn discriminator() -> Self {
        Self { id: 0, optional: false, must_understand: true, model: TypeModel::Integer { bytes: 4 } }
    }

    fn initial(&self) -> Option<Value> {
        (!self.optional).then(|| self.model.initial())
    }

    fn octets_min(&self) -> usize {
        if self.optional { 1 } else { self.model.octets_min() }
    }

    fn encode(
        &self,
        extensibility: Extensibility,
        value: Option<&Value>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), EncodeError> {
        let mutable = extensibility == Extensibility::Mutable;
        let Some(value) = value else {
            return if mutable { Ok(()) } else { encoder.put_absent_member(self.id, self.must_understand) };
        };
        if mutable || (self.optional && encoder.version() == XcdrVersion::Xcdr1) {
            let member = encoder.begin_member(self.id, self.must_understand, self.model.fixed_bytes())?;
            self.model.encode(value, encoder)?;
            return encoder.end_member(member);
        }
        if self.optional {
            true.encode(encoder)?;
        }
        self.model.encode(value, encoder)
    }

    fn decode(
        &self,
        extensibility: Extensibility,
        decoder: &mut Decoder<'_>,
    ) -> Result<Option<Value>, Malformed> {
        if extensibility == Extensibility::Appendable
            && decoder.ends_before(if self.optional { 4 } else { self.model.octets_min() })
        {
            return Ok(self.initial());
        }
        match decoder.version() {
            _ if !self.optional => self.model.decode(decoder).map(Some),
            XcdrVersion::Xcdr2 => bool::decode(decoder)?.then(|| self.model.decode(decoder)).transpose(),
            XcdrVersion::Xcdr1 => {
                let header = decoder.optional_member(self.id)?;
                let value = (!header.is_empty(decoder)).then(|| self.model.decode(decoder)).transpose()?;
                decoder.end_member(header);
                Ok(value)
            }
        }
    }
}

fn union_member(members: &[TypeModel], index: usize) -> MemberModel {
    let id = u32::try_from(index).expect("few members") + 1;
    MemberModel { id, optional: false, must_understand: false, model: members[index].clone() }
}

fn decode_mutable(members: &[MemberModel], decoder: &mut Decoder<'_>) -> Result<Value, Malformed> {
    let object = decoder.begin_aggregate(Extensibility::Mutable)?;
    let mut values = members.iter().map(MemberModel::initial).collect::<Vec<_>>();
    while let Some(header) = decoder.next_member()? {
        match members.iter().position(|member| member.id == header.id) {
            Some(index) => values[index] = Some(members[index].model.decode(decoder)?),
            None => decoder.unknown_member(&header)?,
        }
        decoder.end_member(header);
    }
    decoder.end_aggregate(object);
    Ok(Value::Structure(values))
}

fn decode_union(
    extensibility: Extensibility,
    members: &[TypeModel],
    decoder: &mut Decoder<'_>,
) -> Result<Value, Malformed> {
    let object = decoder.begin_aggregate(extensibility)?;
    let mutable = extensibility == Extensibility::Mutable;
    let header = if mutable { decoder.next_member()? } else { None };
    let discriminator = u32::decode(decoder)? as usize;
    if let Some(header) = header {
        decoder.end_member(header);
    }
    let value = match discriminator.checked_sub(1) {
        None => None,
        Some(index) => {
            let model = members.get(index).ok_or(Malformed::InvalidDiscriminator)?;
            let header = if mutable { decoder.next_member()? } else { None };
            let value = model.decode(decoder)?;
            if let Some(header) = header {
                decoder.end_member(header);
            }
            Some((index, Box::new(value)))
        }
    };
    if mutable {
        decoder.skip_members()?;
    }
    decoder.end_aggregate(object);
    Ok(Value::Union(value))
}

fn extensibility(choices: &mut Choices<'_>) -> Extensibility {
    [Extensibility::Final, Extensibility::Appendable, Extensibility::Mutable][usize::from(choices.below(3))]
}

fn text(choices: &mut Choices<'_>) -> String {
    (0..choices.below(6)).map(|_| ['a', 'é', '漢', '😀', 'z'][usize::from(choices.below(5))]).collect()
}
