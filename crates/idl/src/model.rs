//! The types of an input, everything looked up: what back ends read.

use std::fmt::Write as _;
use std::sync::Arc;

pub use crate::ast::Primitive;
use crate::source::Span;

/// The types and constants of one run, in the order of their definitions: what a definition uses stands
/// before it, unless the types are recursive.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub(crate) definitions: Vec<Definition>,
    /// Where each stands, which says nothing about what it is, and whether that is a file that is included.
    pub(crate) origins: Vec<Option<(Span, bool)>>,
}

/// Which definition of a [`Model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionId(pub(crate) usize);

impl DefinitionId {
    /// That of the definition which is added next, for types that name themselves.
    pub fn following(model: &Model) -> Self {
        Self(model.definitions.len())
    }
}

impl Model {
    /// All definitions, with their ids.
    pub fn definitions(&self) -> impl DoubleEndedIterator<Item = (DefinitionId, &Definition)> {
        self.definitions.iter().enumerate().map(|(index, definition)| (DefinitionId(index), definition))
    }

    /// One of them.
    pub fn definition(&self, id: DefinitionId) -> &Definition {
        &self.definitions[id.0]
    }

    /// Where it is defined.
    pub fn span(&self, id: DefinitionId) -> Option<Span> {
        self.origins.get(id.0).copied().flatten().map(|(span, _)| span)
    }

    /// Whether it comes from a file that an input includes.
    pub fn is_included(&self, id: DefinitionId) -> bool {
        self.origins.get(id.0).copied().flatten().is_some_and(|(_, included)| included)
    }

    /// Adds a definition that comes from no file; it may name those added before.
    pub fn add(&mut self, definition: Definition) -> DefinitionId {
        self.definitions.push(definition);
        self.origins.push(None);
        DefinitionId(self.definitions.len() - 1)
    }

    /// What a type is, aliases aside.
    pub fn resolved<'a>(&'a self, ty: &'a Type) -> &'a Type {
        let mut ty = ty;
        while let Type::Named(id) = ty
            && let DefinitionKind::Alias(aliased) = &self.definition(*id).kind
        {
            ty = aliased;
        }
        ty
    }

    /// The definition that a type names, aliases aside.
    pub fn named(&self, ty: &Type) -> Option<(DefinitionId, &Definition)> {
        match self.resolved(ty) {
            Type::Named(id) => Some((*id, self.definition(*id))),
            _ => None,
        }
    }

    /// The members of a structure, those of its bases first.
    pub fn all_members<'a>(&'a self, structure: &'a Structure) -> Vec<&'a Member> {
        let mut chain = Vec::new();
        let mut base = structure.base;
        while let Some(id) = base
            && let DefinitionKind::Structure(parent) = &self.definition(id).kind
        {
            chain.push(parent);
            base = parent.base;
        }
        let bases = chain.into_iter().rev().flat_map(|parent| &parent.members);
        let mut members = bases.collect::<Vec<_>>();
        members.extend(&structure.members);
        members
    }
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.definitions == other.definitions
    }
}

/// A type or constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The modules around it, outermost first.
    pub scope: Vec<Arc<str>>,
    /// Its name.
    pub name: Arc<str>,
    /// The name by which peers know it, if that is another.
    pub dds_name: Option<Arc<str>>,
    /// Texts of `@verbatim`.
    pub verbatim: Vec<Verbatim>,
    /// What it is.
    pub kind: DefinitionKind,
}

impl Definition {
    /// One that says no more than this.
    pub fn new(scope: &[&str], name: &str, kind: DefinitionKind) -> Self {
        let scope = scope.iter().map(|name| Arc::from(*name)).collect();
        Self { scope, name: name.into(), dds_name: None, verbatim: Vec::new(), kind }
    }

    /// `A::B::Name`.
    pub fn full_name(&self) -> String {
        let mut text = String::new();
        for scope in &self.scope {
            let _ = write!(text, "{scope}::");
        }
        text + &self.name
    }

    /// The name by which peers know it.
    pub fn told_name(&self) -> String {
        self.dds_name.as_ref().map_or_else(|| self.full_name(), |name| name.to_string())
    }
}

/// `@verbatim`: text that is meant for the code of a language, or a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verbatim {
    /// `comment`, `c++`, `*` …
    pub language: Arc<str>,
    /// As it is written: `BEFORE_DECLARATION` and the like.
    pub placement: Arc<str>,
    /// The text.
    pub text: Arc<str>,
}

/// What a [`Definition`] is.
#[derive(Debug, Clone, PartialEq)]
pub enum DefinitionKind {
    /// `const`
    Constant {
        /// A basic type, string, or enumeration.
        ty: Type,
        /// Its value.
        value: Value,
    },
    /// `struct`
    Structure(Structure),
    /// `union`
    Union(Union),
    /// `enum`
    Enumeration(Enumeration),
    /// `bitmask`
    Bitmask(Bitmask),
    /// `bitset`
    Bitset(Bitset),
    /// `typedef`
    Alias(Type),
}

/// How a type may evolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extensibility {
    /// Not at all.
    Final,
    /// At its end.
    Appendable,
    /// Anywhere.
    Mutable,
}

/// How ids come to members without `@id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoId {
    /// One more than the member before.
    #[default]
    Sequential,
    /// From the hash of the name.
    Hash,
}

/// What annotations say of structures and unions.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// How it may evolve.
    pub extensibility: Extensibility,
    /// Where ids come from.
    pub autoid: AutoId,
    /// It is a part of other types, and no topic has it.
    pub nested: bool,
    /// `@topic`: the name of the topic, if it is told.
    pub topic: Option<Option<Arc<str>>>,
    /// `@data_representation`: bits as in XTypes 1.3 §7.3.1.2.1.12 (1 XCDR1, 2 XML, 4 XCDR2).
    pub data_representation: Option<u32>,
}

/// A structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// What annotations say.
    pub aggregate: Aggregate,
    /// The structure whose members come before these.
    pub base: Option<DefinitionId>,
    /// Its own members.
    pub members: Vec<Member>,
}

/// What to do with a value that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryConstruct {
    /// The sample, or what is around, is dropped.
    Discard,
    /// The default takes its place.
    UseDefault,
    /// It is cut.
    Trim,
}

/// A member of a structure or union.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
    /// Its id, told or counted.
    pub id: u32,
    /// `@key`
    pub key: bool,
    /// `@optional`
    pub optional: bool,
    /// `@must_understand`
    pub must_understand: bool,
    /// `@external`
    pub external: bool,
    /// `@non_serialized`
    pub non_serialized: bool,
    /// `@try_construct`
    pub try_construct: Option<TryConstruct>,
    /// `@default`
    pub default: Option<Value>,
    /// `@min`, or the first part of `@range`
    pub min: Option<Value>,
    /// `@max`, or the second part of `@range`
    pub max: Option<Value>,
    /// `@unit`
    pub unit: Option<Arc<str>>,
    /// Texts of `@verbatim`.
    pub verbatim: Vec<Verbatim>,
}

impl Member {
    /// A member that says no more than this.
    pub fn new(name: &str, ty: Type, id: u32) -> Self {
        Self {
            name: name.into(),
            ty,
            id,
            key: false,
            optional: false,
            must_understand: false,
            external: false,
            non_serialized: false,
            try_construct: None,
            default: None,
            min: None,
            max: None,
            unit: None,
            verbatim: Vec::new(),
        }
    }
}

/// A union.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// What annotations say.
    pub aggregate: Aggregate,
    /// What selects the member.
    pub discriminator: Type,
    /// `@key` on the discriminator.
    pub key: bool,
    /// Its members.
    pub cases: Vec<Case>,
}

/// A member of a union, and when it is selected.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Values of the discriminator; characters by their number, booleans as 0 and 1, literals by their value.
    pub labels: Vec<i64>,
    /// It is selected by all other values.
    pub default: bool,
    /// The member.
    pub member: Member,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct Enumeration {
    /// Bits of a value.
    pub bit_bound: u32,
    /// `@extensibility`, where it is told: it matters for assignability.
    pub extensibility: Option<Extensibility>,
    /// `@ignore_literal_names`
    pub ignore_literal_names: bool,
    /// In the order of the input.
    pub literals: Vec<Literal>,
}

/// A literal of an enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// Its name.
    pub name: Arc<str>,
    /// Its value.
    pub value: i32,
    /// `@default_literal`
    pub default: bool,
    /// Texts of `@verbatim`.
    pub verbatim: Vec<Verbatim>,
}

/// A bitmask.
#[derive(Debug, Clone, PartialEq)]
pub struct Bitmask {
    /// Bits of a value.
    pub bit_bound: u32,
    /// In the order of the input.
    pub flags: Vec<Flag>,
}

/// A flag of a bitmask.
#[derive(Debug, Clone, PartialEq)]
pub struct Flag {
    /// Its name.
    pub name: Arc<str>,
    /// Which bit, from 0.
    pub position: u32,
    /// Texts of `@verbatim`.
    pub verbatim: Vec<Verbatim>,
}

/// A bitset.
#[derive(Debug, Clone, PartialEq)]
pub struct Bitset {
    /// The bitset whose fields come before these.
    pub base: Option<DefinitionId>,
    /// Those with a name, in the order of the input.
    pub fields: Vec<Bitfield>,
    /// How many bits there are, with those of its base and unnamed ones.
    pub bits: u32,
}

/// A field of a bitset.
#[derive(Debug, Clone, PartialEq)]
pub struct Bitfield {
    /// Its name.
    pub name: Arc<str>,
    /// The lowest bit, from 0.
    pub position: u32,
    /// How many bits.
    pub width: u32,
    /// The type of its value, if it is told.
    pub ty: Option<Primitive>,
}

/// A type where it is used.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A basic type.
    Primitive(Primitive),
    /// `string`, `wstring`
    String {
        /// Of wide characters.
        wide: bool,
        /// How many characters at most.
        bound: Option<u32>,
    },
    /// `sequence`
    Sequence {
        /// What it has.
        element: Box<Element>,
        /// How many at most.
        bound: Option<u32>,
    },
    /// An array, of one dimension or more.
    Array {
        /// What it has.
        element: Box<Element>,
        /// Its sizes, outermost first.
        dimensions: Vec<u32>,
    },
    /// `map`
    Map {
        /// What is looked up.
        key: Box<Element>,
        /// What is found.
        value: Box<Element>,
        /// How many at most.
        bound: Option<u32>,
    },
    /// `fixed<digits, scale>`
    Fixed {
        /// Decimal digits, up to 31.
        digits: u32,
        /// How many of them stand after the point.
        scale: u32,
    },
    /// A type that has a definition.
    Named(DefinitionId),
}

/// What a collection has.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// Its type.
    pub ty: Type,
    /// `@external`
    pub external: bool,
    /// `@try_construct`
    pub try_construct: Option<TryConstruct>,
}

impl Element {
    /// An element that says no more than its type.
    pub const fn new(ty: Type) -> Self {
        Self { ty, external: false, try_construct: None }
    }
}

/// A value of a constant or annotation.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of an integer type or octet.
    Integer(i128),
    /// Of a floating-point type.
    Float(f64),
    /// Of `boolean`.
    Boolean(bool),
    /// Of `char` or `wchar`.
    Character(char),
    /// Of a string.
    Text(Arc<str>),
    /// Of `fixed`, as it is written without `d`.
    Fixed(Arc<str>),
    /// A literal of an enumeration.
    Literal {
        /// Which enumeration.
        of: DefinitionId,
        /// Which literal, from 0.
        index: usize,
    },
}
