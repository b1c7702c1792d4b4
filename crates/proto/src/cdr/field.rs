//! Members by name: what content filters and queries compare (DCPS 1.4 Annex B).

use std::borrow::Cow;
use std::cmp::Ordering;

use super::Cdr;

/// What a type offers to those who look for members by name.
#[derive(Debug, Clone, Copy)]
pub enum Fields {
    /// Nothing: collections, unions, wide text.
    Opaque,
    /// A value that can be compared.
    Value(FieldKind<'static>),
    /// A structure: its registered name and its members.
    Structure(&'static str, &'static [FieldMember]),
}

/// A member of a structure.
#[derive(Debug, Clone, Copy)]
pub struct FieldMember {
    /// Its name.
    pub name: &'static str,
    /// What its type offers; a function, because types may contain themselves.
    pub fields: fn() -> Fields,
    /// It is a part of the key.
    pub key: bool,
}

impl FieldMember {
    /// No member.
    pub const NONE: Self = Self { name: "", fields: opaque, key: false };
}

const fn opaque() -> Fields {
    Fields::Opaque
}

/// What a type offers to those who look for members by name: one known to the compiler ([`Fields`]), or one
/// that is described at run time.
pub trait NamedFields<'a>: Copy {
    /// The registered name of the structure, if it is one.
    fn structure(self) -> Option<&'a str>;

    /// The members of the structure by name, each in its place.
    fn members(self) -> impl Iterator<Item = (&'a str, Self)>;

    /// The kind of the value, if it can be compared.
    fn kind(self) -> Option<FieldKind<'a>>;
}

impl NamedFields<'static> for Fields {
    fn structure(self) -> Option<&'static str> {
        if let Self::Structure(name, _) = self { Some(name) } else { None }
    }

    fn members(self) -> impl Iterator<Item = (&'static str, Self)> {
        let members = if let Self::Structure(_, members) = self { members } else { &[] };
        members.iter().map(|member| (member.name, (member.fields)()))
    }

    fn kind(self) -> Option<FieldKind<'static>> {
        if let Self::Value(kind) = self { Some(kind) } else { None }
    }
}

/// A sample, of which the values of members are asked for.
pub trait FieldSource {
    /// The value `path` leads to, each step the place of a member; made by [`FieldPath::find`].
    fn field_at(&self, path: &[u16]) -> Option<FieldValue<'_>>;
}

impl<T: Cdr> FieldSource for T {
    fn field_at(&self, path: &[u16]) -> Option<FieldValue<'_>> {
        self.field(path)
    }
}

/// The kind of a value that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind<'a> {
    /// Any integer type.
    Integer,
    /// Any floating-point type.
    Float,
    /// `boolean`.
    Boolean,
    /// `char`.
    Character,
    /// `string`.
    Text,
    /// An enumeration: its literals and their values.
    Enumeration(&'a [(Cow<'static, str>, i64)]),
}

impl FieldKind<'_> {
    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "an integer",
            Self::Float => "a floating-point number",
            Self::Boolean => "a boolean",
            Self::Character => "a character",
            Self::Text => "a string",
            Self::Enumeration(_) => "an enumeration",
        }
    }
}

/// The value of a member. Enumerations are integers here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldValue<'a> {
    /// Of any integer type or enumeration.
    Integer(i128),
    /// Of any floating-point type.
    Float(f64),
    /// `boolean`.
    Boolean(bool),
    /// `char`.
    Character(char),
    /// `string`.
    Text(&'a str),
}

impl FieldValue<'_> {
    /// How the two compare; `None` when they do not: NaN, or kinds that have no order between them.
    #[must_use]
    pub fn compare(&self, other: &FieldValue<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(left), FieldValue::Integer(right)) => Some(left.cmp(right)),
            (Self::Float(left), FieldValue::Float(right)) => left.partial_cmp(right),
            (Self::Integer(left), FieldValue::Float(right)) => compare_mixed(*left, *right),
            (Self::Float(left), FieldValue::Integer(right)) => {
                compare_mixed(*right, *left).map(Ordering::reverse)
            }
            (Self::Boolean(left), FieldValue::Boolean(right)) => Some(left.cmp(right)),
            (Self::Character(left), FieldValue::Character(right)) => Some(left.cmp(right)),
            (Self::Text(left), FieldValue::Text(right)) => Some((*left).cmp(*right)),
            _ => None,
        }
    }
}

/// Compares exactly, where converting the integer would round.
fn compare_mixed(left: i128, right: f64) -> Option<Ordering> {
    if right.is_nan() {
        return None;
    }
    // The conversion saturates, and below 2¹²⁷ the truncated part is exact.
    let whole = right.trunc();
    let order = left.cmp(&(whole as i128));
    Some(order.then_with(|| 0.0_f64.partial_cmp(&(right - whole)).unwrap_or(Ordering::Less)))
}

/// A member, as the place of each step in the members of its structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(Vec<u16>);

/// Steps of a path at most; types may contain themselves.
pub const FIELD_DEPTH_MAX: usize = 16;

impl FieldPath {
    /// Finds the member of `T` that `name` (`a.b.c`) leads to.
    ///
    /// # Errors
    /// A sentence that says which step leads nowhere and where one could go instead.
    pub fn find<T: Cdr>(name: &str) -> Result<(Self, FieldKind<'static>), String> {
        Self::find_in(T::fields(), name)
    }

    /// As [`Self::find`], of a type that is known by its members only.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn find_in<'a>(fields: impl NamedFields<'a>, name: &str) -> Result<(Self, FieldKind<'a>), String> {
        let mut steps = Vec::new();
        let mut at = fields;
        for step in name.split('.') {
            if steps.len() >= FIELD_DEPTH_MAX {
                return Err(format!("'{name}' has more than {FIELD_DEPTH_MAX} steps"));
            }
            let Some(type_name) = at.structure() else {
                return Err(format!("'{name}' asks for a member '{step}' of what is no structure"));
            };
            let found = (0..).zip(at.members()).find(|(_, (known, _))| *known == step);
            let Some((index, (_, fields))) = found else {
                let known: Vec<_> = at.members().map(|(known, _)| known).collect();
                return Err(format!(
                    "the type {type_name} has no member '{step}'; its members are {}",
                    known.join(", ")
                ));
            };
            steps.push(index);
            at = fields;
        }
        match (at.kind(), at.structure()) {
            (Some(kind), _) => Ok((Self(steps), kind)),
            (None, Some(type_name)) => Err(format!(
                "'{name}' is a structure, {type_name}: compare one of its members instead, as in {name}.member"
            )),
            (None, None) => Err(format!(
                "'{name}' cannot be compared: it is no number, boolean, character, string or enumeration"
            )),
        }
    }

    /// The value in `sample`; `None` when an optional member on the way is absent.
    pub fn value<'a, S: FieldSource>(&self, sample: &'a S) -> Option<FieldValue<'a>> {
        sample.field_at(&self.0)
    }

    /// Gives the member a value; optional members on the way come into being. False when the value is of
    /// another kind or out of the member's range: then the member keeps its value.
    pub fn set<T: Cdr>(&self, sample: &mut T, value: FieldValue<'_>) -> bool {
        sample.set_field(&self.0, value)
    }
}
