//! A model from the complete TypeObjects of a type, as discovery brings them: what a peer never told in IDL
//! can be printed as IDL all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plainsong_proto::types::{
    AnnotationValue, Bitfield as DescribedField, Bitflag, Definition as Described,
    Extensibility as Evolution, MemberAnnotations, Primitive as Basic, TryConstruct as Construct,
    TypeDescription, TypeHash, TypeIdentifier, TypeObject, member_flag,
};

use crate::backend::{Backend, Options};
use crate::diagnostic::Diagnostics;
use crate::idl::Idl;
use crate::limits::{DESCRIBED_DEPTH_MAX, DESCRIBED_TYPES_MAX};
use crate::model::{
    Aggregate, AutoId, Bitfield, Bitmask, Bitset, Case, Definition, DefinitionId, DefinitionKind, Element,
    Enumeration, Extensibility, Flag, Literal, Member, Model, Primitive, Structure, TryConstruct, Type,
    Union, Value,
};
use crate::resolve::range;

/// Why a described type has no IDL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescribedError {
    /// It has no complete TypeObject, which alone tells names.
    NoNames,
    /// The TypeObject of a type that this one names is missing.
    Missing(String),
    /// A name that is no name in IDL.
    BadName(String),
    /// It has more types, or they are deeper within one another, than is looked at.
    TooLarge(String),
    /// It has something that IDL cannot say, or no TypeObject tells in full.
    Unsupported {
        /// Which type.
        name: String,
        /// What it has.
        what: &'static str,
    },
}

impl std::fmt::Display for DescribedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoNames => f.write_str("the description has no complete type, which alone tells names"),
            Self::Missing(name) => {
                write!(f, "the complete TypeObject of a type that '{name}' names is missing or wrong")
            }
            Self::BadName(name) => write!(f, "{name:?} is no name in IDL"),
            Self::TooLarge(name) => write!(f, "'{name}' has more types, or deeper ones, than are printed"),
            Self::Unsupported { name, what } => write!(f, "'{name}' has {what}, which IDL does not say"),
        }
    }
}

impl std::error::Error for DescribedError {}

type Found<T> = Result<T, DescribedError>;

/// The IDL of a described type and of all that it depends on.
///
/// # Errors
/// [`DescribedError`].
pub fn idl_of(description: &TypeDescription) -> Found<String> {
    let model = Model::described(description)?;
    let files = Idl.generate(&model, &Options::default(), &mut Diagnostics::default());
    Ok(files.into_iter().map(|file| file.text).collect())
}

impl Model {
    /// The complete type of a description and all that it depends on; the type itself stands last, unless
    /// types contain one another. Of two types with one name the second gets another.
    ///
    /// # Errors
    /// [`DescribedError`].
    pub fn described(description: &TypeDescription) -> Found<Self> {
        let root = description.information.complete.as_ref().ok_or(DescribedError::NoNames)?.id;
        let mut types = Types::default();
        types.find(description, root, "the type", 0)?;
        types.place();
        let mut model = Self::default();
        for hash in types.order.clone() {
            let mut extra = Vec::new();
            let Some((object, name)) = types.objects.get(&hash) else { continue };
            let own = Own { types: &types, name, arrays: types.ids.get(&hash).copied(), extra: &mut extra };
            let definition = own.definition(object)?;
            extra.into_iter().chain([definition]).for_each(|it| _ = model.add(it));
        }
        Ok(model)
    }
}

/// The types that are to be defined.
#[derive(Default)]
struct Types {
    objects: BTreeMap<TypeHash, (TypeObject, Vec<Arc<str>>)>,
    /// What a type depends on stands before it.
    order: Vec<TypeHash>,
    seen: BTreeSet<TypeHash>,
    names: BTreeSet<Vec<Arc<str>>>,
    /// Of each type the first definition that belongs to it: those of arrays within it, then its own.
    ids: BTreeMap<TypeHash, usize>,
}

impl Types {
    fn find(&mut self, from: &TypeDescription, hash: TypeHash, user: &str, depth: usize) -> Found<()> {
        if !self.seen.insert(hash) {
            return Ok(());
        }
        if depth >= DESCRIBED_DEPTH_MAX || self.seen.len() > DESCRIBED_TYPES_MAX {
            return Err(DescribedError::TooLarge(user.to_owned()));
        }
        let missing = || DescribedError::Missing(user.to_owned());
        let octets = from.objects.get(&hash).ok_or_else(missing)?;
        let (object, complete) = TypeObject::deserialize(octets).map_err(|_| missing())?;
        if !complete {
            return Err(missing());
        }
        let name = object.name.clone().unwrap_or_default();
        let user = if name.is_empty() { user } else { &name };
        for ty in types_of(&object.definition) {
            self.each_hash(from, ty, user, depth)?;
        }
        let path = match &object.definition {
            // Its users say what it is.
            Described::Collection(_) => Vec::new(),
            _ => self.unused(path(&name)?),
        };
        self.objects.insert(hash, (object, path));
        self.order.push(hash);
        Ok(())
    }

    fn each_hash(
        &mut self,
        from: &TypeDescription,
        ty: &TypeIdentifier,
        user: &str,
        depth: usize,
    ) -> Found<()> {
        match ty {
            TypeIdentifier::Hash(hash) => self.find(from, *hash, user, depth + 1),
            TypeIdentifier::Sequence { element, .. } | TypeIdentifier::Array { element, .. } => {
                self.each_hash(from, element, user, depth)
            }
            TypeIdentifier::Map { key, element, .. } => {
                self.each_hash(from, key, user, depth)?;
                self.each_hash(from, element, user, depth)
            }
            _ => Ok(()),
        }
    }

    /// The name, or one like it that no other type has.
    fn unused(&mut self, path: Vec<Arc<str>>) -> Vec<Arc<str>> {
        let mut name = path.clone();
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name.clone_from(&path);
            if let Some(last) = name.last_mut() {
                *last = format!("{last}_{number}").into();
            }
            number += 1;
        }
        name
    }

    /// Gives each type its place among the definitions.
    fn place(&mut self) {
        self.order.retain(|hash| self.objects.get(hash).is_some_and(|(_, path)| !path.is_empty()));
        let mut next = 0;
        for hash in &self.order {
            let Some((object, _)) = self.objects.get(hash) else { continue };
            self.ids.insert(*hash, next);
            let arrays: usize = types_of(&object.definition).map(|ty| self.arrays_within(ty, false, 0)).sum();
            next += arrays + 1;
        }
    }

    /// How many arrays within collections get a name.
    fn arrays_within(&self, ty: &TypeIdentifier, is_element: bool, depth: usize) -> usize {
        if depth >= DESCRIBED_DEPTH_MAX {
            return 0;
        }
        match ty {
            TypeIdentifier::Hash(hash) => self
                .collection(*hash)
                .map_or(0, |collection| self.arrays_within(collection, is_element, depth + 1)),
            TypeIdentifier::Sequence { element, .. } => self.arrays_within(element, true, depth + 1),
            TypeIdentifier::Array { element, .. } => {
                usize::from(is_element) + self.arrays_within(element, true, depth + 1)
            }
            TypeIdentifier::Map { key, element, .. } => {
                self.arrays_within(key, true, depth + 1) + self.arrays_within(element, true, depth + 1)
            }
            _ => 0,
        }
    }

    fn collection(&self, hash: TypeHash) -> Option<&TypeIdentifier> {
        match &self.objects.get(&hash)?.0.definition {
            Described::Collection(collection) => Some(collection),
            _ => None,
        }
    }

    /// The definition of a type itself.
    fn id(&self, hash: TypeHash) -> Option<DefinitionId> {
        let (object, _) = self.objects.get(&hash)?;
        let arrays: usize = types_of(&object.definition).map(|ty| self.arrays_within(ty, false, 0)).sum();
        Some(DefinitionId(self.ids.get(&hash)? + arrays))
    }
}

fn types_of(definition: &Described) -> impl Iterator<Item = &TypeIdentifier> {
    let mut types = Vec::new();
    match definition {
        Described::Alias(ty) | Described::Collection(ty) => types.push(ty),
        Described::Structure { base, members, .. } => {
            types.push(base);
            types.extend(members.iter().map(|member| &member.ty));
        }
        Described::Union { discriminator, members, .. } => {
            types.push(discriminator);
            types.extend(members.iter().map(|member| &member.ty));
        }
        _ => {}
    }
    types.into_iter()
}

/// A member with its unit and range. Bounds that are none of its type are left out.
fn annotated(mut member: Member, annotations: &MemberAnnotations) -> Member {
    member.unit = annotations.unit.as_deref().map(Into::into);
    let value = |told: Option<AnnotationValue>| match &member.ty {
        Type::Primitive(Primitive::Float32 | Primitive::Float64 | Primitive::Float128) => {
            told.map(AnnotationValue::as_float).filter(|it| it.is_finite()).map(Value::Float)
        }
        Type::Primitive(primitive) => {
            let (least, greatest) = range(*primitive)?;
            told?.as_integer().filter(|it| (least..=greatest).contains(it)).map(Value::Integer)
        }
        _ => None,
    };
    (member.min, member.max) = (value(annotations.min), value(annotations.max));
    member
}

/// One type on its way into the model.
struct Own<'a> {
    types: &'a Types,
    name: &'a [Arc<str>],
    /// The place of the next array that gets a name.
    arrays: Option<usize>,
    extra: &'a mut Vec<Definition>,
}

impl Own<'_> {
    fn full_name(&self) -> String {
        self.name.join("::")
    }

    fn unsupported(&self, what: &'static str) -> DescribedError {
        DescribedError::Unsupported { name: self.full_name(), what }
    }

    fn named(&self, name: Arc<str>, kind: DefinitionKind) -> Definition {
        let scope = self.name.split_last().map_or(&[][..], |(_, scope)| scope).to_vec();
        Definition { scope, name, dds_name: None, verbatim: Vec::new(), kind }
    }

    fn definition(mut self, object: &TypeObject) -> Found<Definition> {
        let kind = match &object.definition {
            Described::Alias(ty) => DefinitionKind::Alias(self.ty(ty, false, 0)?),
            Described::Structure { extensibility, hash_ids, nested, base, members } => {
                let base = match base {
                    TypeIdentifier::None => None,
                    TypeIdentifier::Hash(hash) => self.types.id(*hash),
                    _ => return Err(self.unsupported("a base that is no structure")),
                };
                let members = members.iter().map(|member| {
                    let told =
                        self.member(member.name.text.as_deref(), &member.ty, member.id, member.flags)?;
                    Ok(annotated(told, &member.annotations))
                });
                let members = members.collect::<Found<_>>()?;
                DefinitionKind::Structure(Structure {
                    aggregate: aggregate(*extensibility, *hash_ids, *nested),
                    base,
                    members,
                })
            }
            Described::Union {
                extensibility,
                hash_ids,
                nested,
                discriminator,
                discriminator_flags,
                members,
            } => {
                let discriminator = self.ty(discriminator, false, 0)?;
                let cases = members.iter().map(|member| {
                    let flags = member.flags & !member_flag::DEFAULT;
                    let told = self.member(member.name.text.as_deref(), &member.ty, member.id, flags)?;
                    Ok(Case {
                        labels: member.labels.iter().copied().map(i64::from).collect(),
                        default: member.flags & member_flag::DEFAULT != 0,
                        member: annotated(told, &member.annotations),
                    })
                });
                let cases = cases.collect::<Found<_>>()?;
                let aggregate = aggregate(*extensibility, *hash_ids, *nested);
                let key = discriminator_flags & member_flag::KEY != 0;
                DefinitionKind::Union(Union { aggregate, discriminator, key, cases })
            }
            Described::Enumeration { extensibility: told, bit_bound, literals } => {
                let literals = literals.iter().map(|literal| {
                    Ok(Literal {
                        name: identifier(literal.name.text.as_deref().unwrap_or_default())?,
                        value: literal.value,
                        default: literal.flags & member_flag::DEFAULT != 0,
                        verbatim: Vec::new(),
                    })
                });
                DefinitionKind::Enumeration(Enumeration {
                    bit_bound: u32::from(*bit_bound),
                    extensibility: told.map(extensibility),
                    ignore_literal_names: false,
                    literals: literals.collect::<Found<_>>()?,
                })
            }
            Described::Bitmask { bit_bound, flags, .. } => {
                DefinitionKind::Bitmask(bitmask(*bit_bound, flags)?)
            }
            Described::Bitset { fields } => DefinitionKind::Bitset(bitset(fields)?),
            _ => return Err(self.unsupported("a kind of type that is not known")),
        };
        let name = self.name.last().cloned().unwrap_or_else(|| "".into());
        Ok(self.named(name, kind))
    }

    fn member(&mut self, name: Option<&str>, ty: &TypeIdentifier, id: u32, flags: u16) -> Found<Member> {
        let name = identifier(name.unwrap_or_default())?;
        let mut member = Member::new(&name, self.ty(ty, false, 0)?, id);
        member.key = flags & member_flag::KEY != 0;
        member.optional = flags & member_flag::OPTIONAL != 0;
        // What is a key must be understood in any case.
        member.must_understand = flags & member_flag::MUST_UNDERSTAND != 0 && !member.key;
        member.external = flags & member_flag::EXTERNAL != 0;
        member.try_construct = try_construct(flags);
        Ok(member)
    }

    fn ty(&mut self, ty: &TypeIdentifier, is_element: bool, depth: usize) -> Found<Type> {
        if depth >= DESCRIBED_DEPTH_MAX {
            return Err(DescribedError::TooLarge(self.full_name()));
        }
        let bounded = |bound: &u32| (*bound != 0).then_some(*bound);
        Ok(match ty {
            TypeIdentifier::Primitive(primitive) => Type::Primitive(basic(*primitive)),
            TypeIdentifier::String { wide, bound } => Type::String { wide: *wide, bound: bounded(bound) },
            TypeIdentifier::Sequence { bound, element: inner, element_flags } => {
                let element = element(self.ty(inner, true, depth + 1)?, *element_flags);
                Type::Sequence { element, bound: bounded(bound) }
            }
            TypeIdentifier::Map { bound, key, key_flags, element: inner, element_flags } => Type::Map {
                key: element(self.ty(key, true, depth + 1)?, *key_flags),
                value: element(self.ty(inner, true, depth + 1)?, *element_flags),
                bound: bounded(bound),
            },
            TypeIdentifier::Array { bounds, element: inner, element_flags } => {
                let element = element(self.ty(inner, true, depth + 1)?, *element_flags);
                let array = Type::Array { element, dimensions: bounds.clone() };
                if !is_element {
                    return Ok(array);
                }
                // In IDL arrays are where something gets a name.
                let own = self.name.last().map_or("", |name| name);
                let name = format!("{own}_array_{}", self.extra.len() + 1);
                let id = self.arrays.unwrap_or(0);
                self.arrays = Some(id + 1);
                let alias = self.named(name.into(), DefinitionKind::Alias(array));
                self.extra.push(alias);
                Type::Named(DefinitionId(id))
            }
            TypeIdentifier::Hash(hash) => match self.types.collection(*hash) {
                Some(collection) => self.ty(collection, is_element, depth + 1)?,
                None => {
                    let id = self.types.id(*hash);
                    Type::Named(id.ok_or_else(|| DescribedError::Missing(self.full_name()))?)
                }
            },
            _ => return Err(self.unsupported("a kind of type that is not known")),
        })
    }
}

/// DISCARD is what nobody needs to say.
const fn try_construct(flags: u16) -> Option<TryConstruct> {
    match Construct::of_flags(flags) {
        Construct::UseDefault => Some(TryConstruct::UseDefault),
        Construct::Trim => Some(TryConstruct::Trim),
        Construct::Discard => None,
    }
}

fn element(ty: Type, flags: u16) -> Box<Element> {
    let external = flags & member_flag::EXTERNAL != 0;
    Box::new(Element { ty, external, try_construct: try_construct(flags) })
}

fn bitmask(bit_bound: u16, flags: &[Bitflag]) -> Found<Bitmask> {
    let flags = flags.iter().map(|flag| {
        let name = identifier(flag.name.text.as_deref().unwrap_or_default())?;
        Ok(Flag { name, position: u32::from(flag.position), verbatim: Vec::new() })
    });
    Ok(Bitmask { bit_bound: u32::from(bit_bound), flags: flags.collect::<Found<_>>()? })
}

/// Bits after the last field are not told, and do not matter.
fn bitset(fields: &[DescribedField]) -> Found<Bitset> {
    let mut bits = 0;
    let fields = fields.iter().map(|field| {
        let name = identifier(field.name.text.as_deref().unwrap_or_default())?;
        let (position, width) = (u32::from(field.position), u32::from(field.bits));
        bits = bits.max(position + width);
        Ok(Bitfield { name, position, width, ty: Some(basic(field.holder)) })
    });
    let fields = fields.collect::<Found<_>>()?;
    Ok(Bitset { base: None, fields, bits })
}

const fn extensibility(extensibility: Evolution) -> Extensibility {
    match extensibility {
        Evolution::Final => Extensibility::Final,
        Evolution::Appendable => Extensibility::Appendable,
        Evolution::Mutable => Extensibility::Mutable,
    }
}

const fn aggregate(evolution: Evolution, hash_ids: bool, nested: bool) -> Aggregate {
    Aggregate {
        extensibility: extensibility(evolution),
        autoid: if hash_ids { AutoId::Hash } else { AutoId::Sequential },
        nested,
        topic: None,
        data_representation: None,
    }
}

const fn basic(primitive: Basic) -> Primitive {
    match primitive {
        Basic::Boolean => Primitive::Boolean,
        Basic::Byte => Primitive::Octet,
        Basic::Int8 => Primitive::Int8,
        Basic::Uint8 => Primitive::UInt8,
        Basic::Int16 => Primitive::Int16,
        Basic::Uint16 => Primitive::UInt16,
        Basic::Int32 => Primitive::Int32,
        Basic::Uint32 => Primitive::UInt32,
        Basic::Int64 => Primitive::Int64,
        Basic::Uint64 => Primitive::UInt64,
        Basic::Float32 => Primitive::Float32,
        Basic::Float64 => Primitive::Float64,
        Basic::Float128 => Primitive::Float128,
        Basic::Char8 => Primitive::Char,
        Basic::Char16 => Primitive::WChar,
    }
}

/// A peer chose the name: what is none in IDL would be something else in what is printed.
fn identifier(name: &str) -> Found<Arc<str>> {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let is_name = name.starts_with(is_letter) && name.chars().all(|it| is_letter(it) || it.is_ascii_digit());
    if is_name { Ok(name.into()) } else { Err(DescribedError::BadName(name.to_owned())) }
}

fn path(name: &str) -> Found<Vec<Arc<str>>> {
    name.split("::").map(identifier).collect()
}
