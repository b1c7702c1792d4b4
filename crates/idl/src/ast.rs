//! What the parser makes of tokens: the input as it is written, with nothing looked up.

use std::sync::Arc;

use crate::lex::Pragma;
use crate::source::Span;

/// A name where it is introduced, without the `_` of an escaped one.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) text: Arc<str>,
    pub(crate) span: Span,
}

impl Name {
    pub(crate) fn new(text: &str, span: Span) -> Self {
        Self { text: text.into(), span }
    }
}

/// A name where it is used: `::A::B`.
#[derive(Debug, Clone)]
pub(crate) struct ScopedName {
    pub(crate) absolute: bool,
    pub(crate) parts: Vec<Name>,
    pub(crate) span: Span,
}

impl ScopedName {
    pub(crate) fn text(&self) -> String {
        let parts = self.parts.iter().map(|part| &*part.text).collect::<Vec<_>>().join("::");
        if self.absolute { format!("::{parts}") } else { parts }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Annotation {
    pub(crate) name: ScopedName,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) span: Span,
}

impl Annotation {
    /// One whose only parameter has no name.
    pub(crate) fn one(name: Name, value: Expression) -> Self {
        let mut annotation = Self::with(name, []);
        annotation.parameters.push(Parameter { name: None, value });
        annotation
    }

    pub(crate) fn with<'a>(name: Name, parameters: impl IntoIterator<Item = (&'a str, Expression)>) -> Self {
        let span = name.span;
        let parameters = parameters
            .into_iter()
            .map(|(name, value)| Parameter { name: Some(Name::new(name, value.span)), value });
        let parameters = parameters.collect();
        Self { name: ScopedName { absolute: false, parts: vec![name], span }, parameters, span }
    }
}

/// A parameter of an annotation; the only one needs no name.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub(crate) name: Option<Name>,
    pub(crate) value: Expression,
}

#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) kind: DefinitionKind,
}

#[derive(Debug, Clone)]
pub(crate) enum DefinitionKind {
    Module {
        name: Name,
        definitions: Vec<Definition>,
    },
    /// What is declared in it are types; its operations are left out.
    Interface {
        name: Name,
        bases: Vec<ScopedName>,
        definitions: Vec<Definition>,
    },
    Constant {
        ty: TypeSpec,
        name: Name,
        value: Expression,
    },
    Structure(Structure),
    Union(Union),
    Enumeration(Enumeration),
    Bitmask(Bitmask),
    Bitset(Bitset),
    Typedef {
        ty: TypeSpec,
        declarators: Vec<Declarator>,
    },
    Forward(Forward, Name),
    /// `@annotation Name { … };`
    Annotation(Name),
    /// A definition that is no data: its name is known, and a type that uses it is left out.
    Other {
        what: &'static str,
        name: Name,
    },
    Pragma(Arc<Pragma>, Span),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forward {
    Structure,
    Union,
    Interface,
}

#[derive(Debug, Clone)]
pub(crate) struct Structure {
    pub(crate) name: Name,
    pub(crate) base: Option<ScopedName>,
    pub(crate) members: Vec<Member>,
}

/// Members that one declaration declares.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

#[derive(Debug, Clone)]
pub(crate) struct Declarator {
    pub(crate) name: Name,
    /// Those of the elements of an array: `long a @external [3]`.
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) dimensions: Vec<Expression>,
}

#[derive(Debug, Clone)]
pub(crate) struct Union {
    pub(crate) name: Name,
    pub(crate) discriminator: TypeSpec,
    pub(crate) cases: Vec<Case>,
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) labels: Vec<Expression>,
    /// `default:` is among the labels.
    pub(crate) default: Option<Span>,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) ty: TypeSpec,
    pub(crate) declarator: Declarator,
}

#[derive(Debug, Clone)]
pub(crate) struct Enumeration {
    pub(crate) name: Name,
    pub(crate) literals: Vec<Literal>,
    /// Other enumerations around may have literals of the same names.
    pub(crate) scoped: bool,
}

/// A literal of an enumeration, or a flag of a bitmask.
#[derive(Debug, Clone)]
pub(crate) struct Literal {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) name: Name,
    /// `= value`, which IDL has not, and other compilers take.
    pub(crate) value: Option<Expression>,
}

#[derive(Debug, Clone)]
pub(crate) struct Bitmask {
    pub(crate) name: Name,
    pub(crate) flags: Vec<Literal>,
}

#[derive(Debug, Clone)]
pub(crate) struct Bitset {
    pub(crate) name: Name,
    pub(crate) base: Option<ScopedName>,
    pub(crate) fields: Vec<Bitfield>,
}

#[derive(Debug, Clone)]
pub(crate) struct Bitfield {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) width: Expression,
    pub(crate) ty: Option<TypeSpec>,
    /// None: the bits are not used.
    pub(crate) names: Vec<Name>,
}

#[derive(Debug, Clone)]
pub(crate) struct TypeSpec {
    /// As in `sequence<@external T>`.
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum TypeKind {
    Primitive(Primitive),
    String {
        wide: bool,
        bound: Option<Expression>,
    },
    Sequence {
        element: Box<TypeSpec>,
        bound: Option<Expression>,
    },
    Map {
        key: Box<TypeSpec>,
        value: Box<TypeSpec>,
        bound: Option<Expression>,
    },
    /// `fixed<digits, scale>`; in constants without them.
    Fixed(Option<(Expression, Expression)>),
    Named(ScopedName),
    /// A type that is defined where it is used.
    Defined(Box<Definition>),
    /// `any`, `Object` and the like.
    Local(&'static str),
}

/// The basic types of IDL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// `boolean`
    Boolean,
    /// `octet`
    Octet,
    /// `char`, of 8 bits
    Char,
    /// `wchar`, of 16 bits
    WChar,
    /// `int8`
    Int8,
    /// `uint8`
    UInt8,
    /// `short`, `int16`
    Int16,
    /// `unsigned short`, `uint16`
    UInt16,
    /// `long`, `int32`
    Int32,
    /// `unsigned long`, `uint32`
    UInt32,
    /// `long long`, `int64`
    Int64,
    /// `unsigned long long`, `uint64`
    UInt64,
    /// `float`
    Float32,
    /// `double`
    Float64,
    /// `long double`
    Float128,
}

#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(crate) kind: ExpressionKind,
    pub(crate) span: Span,
}

impl Expression {
    pub(crate) fn text(text: &str, span: Span) -> Self {
        Self { kind: ExpressionKind::Text(text.into()), span }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum ExpressionKind {
    /// As it is written.
    Number(Arc<str>),
    Character(char),
    Text(Arc<str>),
    Boolean(bool),
    Name(ScopedName),
    Unary(&'static str, Box<Expression>),
    Binary(&'static str, Box<Expression>, Box<Expression>),
}
