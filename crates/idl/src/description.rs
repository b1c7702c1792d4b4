//! From a model to the TypeObjects of its types: a type that a file alone tells is read, written and told to
//! others as the derived ones are.

use std::cell::RefCell;

use plainsong_proto::types::{
    AnnotationValue, Bitfield as DescribedField, Bitflag, Definition as Described,
    Extensibility as Evolution, Literal as DescribedLiteral, MemberAnnotations, MemberName,
    Primitive as Basic, StructureMember, TryConstruct as Construct, TypeBuilder, TypeDescription,
    TypeIdentifier, TypeIdentifiers, UnionMember, member_flag,
};

use crate::model::{
    Aggregate, AutoId, Bitfield, Bitmask, Bitset, DefinitionId, DefinitionKind, Element, Enumeration,
    Extensibility, Member, Model, Primitive, Structure, TryConstruct, Type, Union, Value,
};

/// Why a type of a model has no description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescriptionError {
    /// The model has no structure or union of this name.
    Unknown(String),
    /// It has something that no TypeObject tells.
    Untold {
        /// Which type.
        name: String,
        /// What it has.
        what: &'static str,
    },
}

impl std::fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "there is no structure or union '{name}'"),
            Self::Untold { name, what } => write!(f, "'{name}' has {what}, which no TypeObject tells"),
        }
    }
}

impl std::error::Error for DescriptionError {}

impl Model {
    /// What others are told of the structure or union with this full name, `A::B::Name`.
    ///
    /// # Errors
    /// [`DescriptionError`].
    pub fn description(&self, full_name: &str) -> Result<TypeDescription, DescriptionError> {
        let is_it =
            |kind: &DefinitionKind| matches!(kind, DefinitionKind::Structure(_) | DefinitionKind::Union(_));
        let found = self.definitions().find(|(_, it)| is_it(&it.kind) && it.full_name() == full_name);
        let (id, _) = found.ok_or_else(|| DescriptionError::Unknown(full_name.to_owned()))?;
        let describer = Describer { model: self, error: RefCell::new(None) };
        let description = TypeDescription::build(|types| describer.named(types, id));
        let name = full_name.to_owned();
        description.ok_or_else(|| {
            let what = "more than fits into one";
            describer.error.into_inner().unwrap_or(DescriptionError::Untold { name, what })
        })
    }
}

struct Describer<'a> {
    model: &'a Model,
    /// Why the last type without description has none.
    error: RefCell<Option<DescriptionError>>,
}

impl Describer<'_> {
    fn untold<T>(&self, id: DefinitionId, what: &'static str) -> Option<T> {
        let name = self.model.definition(id).full_name();
        self.error.borrow_mut().get_or_insert(DescriptionError::Untold { name, what });
        None
    }

    fn named(&self, types: &mut TypeBuilder, id: DefinitionId) -> Option<TypeIdentifiers> {
        let definition = self.model.definition(id);
        types.defined(id.0, &definition.full_name(), |types| match &definition.kind {
            DefinitionKind::Structure(structure) => self.structure(types, id, structure),
            DefinitionKind::Union(union) => self.union(types, id, union),
            DefinitionKind::Enumeration(enumeration) => Some(twice(|_| enumeration_of(enumeration))),
            DefinitionKind::Bitmask(bitmask) => Some(twice(|_| bitmask_of(bitmask))),
            DefinitionKind::Bitset(bitset) => {
                let fields = self.fields(bitset);
                Some(twice(|_| Described::Bitset { fields: fields.clone() }))
            }
            DefinitionKind::Alias(ty) => {
                let related = self.ty(types, id, ty)?;
                Some(twice(|complete| Described::Alias(pick(&related, complete))))
            }
            DefinitionKind::Constant { .. } => self.untold(id, "a constant for a type"),
        })
    }

    fn structure(
        &self,
        types: &mut TypeBuilder,
        id: DefinitionId,
        structure: &Structure,
    ) -> Option<[Described; 2]> {
        let base = match structure.base {
            Some(base) => self.named(types, base)?,
            None => TypeIdentifiers::same(TypeIdentifier::None),
        };
        let sent = structure.members.iter().filter(|member| !member.non_serialized);
        let members = sent.map(|member| Some((member, self.ty(types, id, &member.ty)?)));
        let members: Vec<_> = members.collect::<Option<_>>()?;
        let (extensibility, hash_ids, nested) = aggregate(&structure.aggregate);
        Some(twice(|complete| Described::Structure {
            extensibility,
            hash_ids,
            nested,
            base: pick(&base, complete),
            members: members
                .iter()
                .map(|(member, ty)| StructureMember {
                    id: member.id,
                    flags: flags(member),
                    ty: pick(ty, complete),
                    name: MemberName::new(&member.name),
                    annotations: annotations(member),
                })
                .collect(),
        }))
    }

    fn union(&self, types: &mut TypeBuilder, id: DefinitionId, union: &Union) -> Option<[Described; 2]> {
        let discriminator = self.ty(types, id, &union.discriminator)?;
        let mut cases = Vec::new();
        for case in &union.cases {
            let labels: Result<Vec<_>, _> = case.labels.iter().map(|label| i32::try_from(*label)).collect();
            let Ok(labels) = labels else { return self.untold(id, "a label of more than 32 bits") };
            cases.push((case, labels, self.ty(types, id, &case.member.ty)?));
        }
        let (extensibility, hash_ids, nested) = aggregate(&union.aggregate);
        let key = if union.key { member_flag::KEY } else { 0 };
        Some(twice(|complete| Described::Union {
            extensibility,
            hash_ids,
            nested,
            discriminator: pick(&discriminator, complete),
            discriminator_flags: member_flag::DISCARD | member_flag::MUST_UNDERSTAND | key,
            members: cases
                .iter()
                .map(|(case, labels, ty)| UnionMember {
                    id: case.member.id,
                    flags: flags(&case.member) | if case.default { member_flag::DEFAULT } else { 0 },
                    ty: pick(ty, complete),
                    labels: labels.clone(),
                    name: MemberName::new(&case.member.name),
                    annotations: annotations(&case.member),
                })
                .collect(),
        }))
    }

    /// Those of the base, too: no TypeObject tells that a bitset has one.
    fn fields(&self, bitset: &Bitset) -> Vec<DescribedField> {
        let mut chain = vec![bitset];
        while let Some(base) = chain.last().and_then(|it| it.base)
            && let DefinitionKind::Bitset(base) = &self.model.definition(base).kind
        {
            chain.push(base);
        }
        let mut fields: Vec<_> = chain.into_iter().flat_map(|it| &it.fields).map(field_of).collect();
        fields.sort_by_key(|field| field.position);
        fields
    }

    fn ty(&self, types: &mut TypeBuilder, user: DefinitionId, ty: &Type) -> Option<TypeIdentifiers> {
        let bound = |bound: &Option<u32>| bound.unwrap_or(0);
        Some(match ty {
            Type::Primitive(primitive) => TypeIdentifiers::same(TypeIdentifier::Primitive(basic(*primitive))),
            Type::String { wide, bound: most } => {
                TypeIdentifiers::same(TypeIdentifier::String { wide: *wide, bound: bound(most) })
            }
            Type::Sequence { element, bound: most } => {
                each(&self.ty(types, user, &element.ty)?, |inner| TypeIdentifier::Sequence {
                    bound: bound(most),
                    element_flags: element_flags(element),
                    element: Box::new(inner),
                })
            }
            Type::Array { element, dimensions } => {
                each(&self.ty(types, user, &element.ty)?, |inner| TypeIdentifier::Array {
                    bounds: dimensions.clone(),
                    element_flags: element_flags(element),
                    element: Box::new(inner),
                })
            }
            Type::Map { key, value, bound: most } => {
                let keys = self.ty(types, user, &key.ty)?;
                let values = self.ty(types, user, &value.ty)?;
                let map = |complete| TypeIdentifier::Map {
                    bound: bound(most),
                    key_flags: element_flags(key),
                    key: Box::new(pick(&keys, complete)),
                    element_flags: element_flags(value),
                    element: Box::new(pick(&values, complete)),
                };
                TypeIdentifiers { minimal: map(false), complete: map(true) }
            }
            Type::Fixed { .. } => return self.untold(user, "a fixed-point number"),
            Type::Named(id) => self.named(types, *id)?,
        })
    }
}

/// The unit and range of a member.
fn annotations(member: &Member) -> MemberAnnotations {
    let value = |told: &Option<Value>| match told {
        Some(Value::Integer(number)) => Some(AnnotationValue::integer(*number)),
        Some(Value::Float(number)) => Some(AnnotationValue::float(*number)),
        _ => None,
    };
    let unit = member.unit.as_deref().map(str::to_owned);
    MemberAnnotations { unit, min: value(&member.min), max: value(&member.max) }
}

/// The minimal and the complete definition.
fn twice(define: impl Fn(bool) -> Described) -> [Described; 2] {
    [false, true].map(define)
}

fn pick(identifiers: &TypeIdentifiers, complete: bool) -> TypeIdentifier {
    if complete { identifiers.complete.clone() } else { identifiers.minimal.clone() }
}

fn each(inner: &TypeIdentifiers, wrap: impl Fn(TypeIdentifier) -> TypeIdentifier) -> TypeIdentifiers {
    TypeIdentifiers { minimal: wrap(inner.minimal.clone()), complete: wrap(inner.complete.clone()) }
}

const fn aggregate(aggregate: &Aggregate) -> (Evolution, bool, bool) {
    let hash_ids = matches!(aggregate.autoid, AutoId::Hash);
    (evolution(aggregate.extensibility), hash_ids, aggregate.nested)
}

const fn evolution(extensibility: Extensibility) -> Evolution {
    match extensibility {
        Extensibility::Final => Evolution::Final,
        Extensibility::Appendable => Evolution::Appendable,
        Extensibility::Mutable => Evolution::Mutable,
    }
}

const fn construct(told: Option<TryConstruct>) -> u16 {
    match told {
        Some(TryConstruct::UseDefault) => Construct::UseDefault.flags(),
        Some(TryConstruct::Trim) => Construct::Trim.flags(),
        Some(TryConstruct::Discard) | None => Construct::Discard.flags(),
    }
}

const fn element_flags(element: &Element) -> u16 {
    construct(element.try_construct) | if element.external { member_flag::EXTERNAL } else { 0 }
}

/// What is a key must be understood.
fn flags(member: &Member) -> u16 {
    let told = [
        (member.external, member_flag::EXTERNAL),
        (member.optional, member_flag::OPTIONAL),
        (member.must_understand || member.key, member_flag::MUST_UNDERSTAND),
        (member.key, member_flag::KEY),
    ];
    let told = told.into_iter().filter(|(is_told, _)| *is_told).fold(0, |sum, (_, flag)| sum | flag);
    construct(member.try_construct) | told
}

fn sixteen(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// As the derived types do, it is final where nothing is said.
fn enumeration_of(enumeration: &Enumeration) -> Described {
    let mut literals: Vec<_> = enumeration
        .literals
        .iter()
        .map(|literal| DescribedLiteral {
            value: literal.value,
            flags: if literal.default { member_flag::DEFAULT } else { 0 },
            name: MemberName::new(&literal.name),
        })
        .collect();
    literals.sort_by_key(|literal| literal.value);
    Described::Enumeration {
        extensibility: Some(enumeration.extensibility.map_or(Evolution::Final, evolution)),
        bit_bound: sixteen(enumeration.bit_bound),
        literals,
    }
}

fn bitmask_of(bitmask: &Bitmask) -> Described {
    let flag = |flag: &crate::model::Flag| Bitflag {
        position: sixteen(flag.position),
        flags: 0,
        name: MemberName::new(&flag.name),
    };
    let mut flags: Vec<_> = bitmask.flags.iter().map(flag).collect();
    flags.sort_by_key(|flag| flag.position);
    Described::Bitmask { extensibility: Some(Evolution::Final), bit_bound: sixteen(bitmask.bit_bound), flags }
}

/// A field without type has the smallest that holds it.
fn field_of(field: &Bitfield) -> DescribedField {
    let smallest = match field.width {
        1 => Basic::Boolean,
        2..=8 => Basic::Uint8,
        9..=16 => Basic::Uint16,
        17..=32 => Basic::Uint32,
        _ => Basic::Uint64,
    };
    DescribedField {
        position: sixteen(field.position),
        flags: 0,
        bits: u8::try_from(field.width).unwrap_or(u8::MAX),
        holder: field.ty.map_or(smallest, basic),
        name: MemberName::new(&field.name),
    }
}

const fn basic(primitive: Primitive) -> Basic {
    match primitive {
        Primitive::Boolean => Basic::Boolean,
        Primitive::Octet => Basic::Byte,
        Primitive::Char => Basic::Char8,
        Primitive::WChar => Basic::Char16,
        Primitive::Int8 => Basic::Int8,
        Primitive::UInt8 => Basic::Uint8,
        Primitive::Int16 => Basic::Int16,
        Primitive::UInt16 => Basic::Uint16,
        Primitive::Int32 => Basic::Int32,
        Primitive::UInt32 => Basic::Uint32,
        Primitive::Int64 => Basic::Int64,
        Primitive::UInt64 => Basic::Uint64,
        Primitive::Float32 => Basic::Float32,
        Primitive::Float64 => Basic::Float64,
        Primitive::Float128 => Basic::Float128,
    }
}
