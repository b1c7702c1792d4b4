//! Members by name: what content filters and queries compare (DCPS 1.4 Annex B).

use std::cmp::Ordering;

use super::Cdr;

/// What a type offers to those who look for members by name.
#[derive(Debug, Clone, Copy)]
pub enum Fields {
    /// Nothing: collections, unions, wide text.
    Opaque,
    /// A value that can be compared.
    Value(FieldKind),
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

/// The kind of a value that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
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
    Enumeration(&'static [(&'static str, i64)]),
}

impl FieldKind {
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
    pub fn find<T: Cdr>(name: &str) -> Result<(Self, FieldKind), String> {
        Self::find_in(T::fields(), name)
    }

    /// As [`Self::find`], of a type that is known by its members only.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn find_in(fields: Fields, name: &str) -> Result<(Self, FieldKind), String> {
        let mut steps = Vec::new();
        let mut at = fields;
        for step in name.split('.') {
            if steps.len() >= FIELD_DEPTH_MAX {
                return Err(format!("'{name}' has more than {FIELD_DEPTH_MAX} steps"));
            }
            let Fields::Structure(type_name, members) = at else {
                return Err(format!("'{name}' asks for a member '{step}' of what is no structure"));
            };
            let Some((index, member)) = (0..).zip(members).find(|(_, member)| member.name == step) else {
                let known: Vec<_> = members.iter().map(|member| member.name).collect();
                return Err(format!(
                    "the type {type_name} has no member '{step}'; its members are {}",
                    known.join(", ")
                ));
            };
            steps.push(index);
            at = (member.fields)();
        }
        match at {
            Fields::Value(kind) => Ok((Self(steps), kind)),
            Fields::Structure(type_name, _) => Err(format!(
                "'{name}' is a structure, {type_name}: compare one of its members instead, as in {name}.member"
            )),
            Fields::Opaque => Err(format!(
                "'{name}' cannot be compared: it is no number, boolean, character, string or enumeration"
            )),
        }
    }

    /// The value in `sample`; `None` when an optional member on the way is absent.
    pub fn value<'a, T: Cdr>(&self, sample: &'a T) -> Option<FieldValue<'a>> {
        sample.field(&self.0)
    }

    /// Gives the member a value; optional members on the way come into being. False when the value is of
    /// another kind or out of the member's range: then the member keeps its value.
    pub fn set<T: Cdr>(&self, sample: &mut T, value: FieldValue<'_>) -> bool {
        sample.set_field(&self.0, value)
    }
}

/// Members compared at most: types may contain themselves.
const COMPARED_MAX: usize = 10_000;

/// Where the descriptions of two types part: a sentence about the first member that is not in both, or
/// not of one kind, calling the types `one` and `other`. `None` when the descriptions agree, which does
/// not go into collections, unions, bounds and widths.
#[must_use]
pub fn first_difference(one: (&str, Fields), other: (&str, Fields)) -> Option<String> {
    let mut budget = COMPARED_MAX;
    difference((one.0, one.1), (other.0, other.1), &mut Vec::new(), &mut budget)
}

fn difference(
    one: (&str, Fields),
    other: (&str, Fields),
    path: &mut Vec<&'static str>,
    budget: &mut usize,
) -> Option<String> {
    let (Fields::Structure(_, ours), Fields::Structure(_, theirs)) = (one.1, other.1) else {
        let (ours, theirs) = (kind_name(one.1), kind_name(other.1));
        let at = if path.is_empty() { "the type".to_owned() } else { format!("member '{}'", path.join(".")) };
        return (ours != theirs).then(|| format!("{at} is {ours} in {} and {theirs} in {}", one.0, other.0));
    };
    for place in 0..ours.len().max(theirs.len()) {
        if *budget == 0 || path.len() >= FIELD_DEPTH_MAX {
            return None;
        }
        *budget -= 1;
        let names = (ours.get(place), theirs.get(place));
        let full = |name: &str| format!("'{}'", [path.as_slice(), &[name]].concat().join("."));
        match names {
            (Some(our), Some(their)) if our.name == their.name => {
                path.push(our.name);
                let found = difference((one.0, (our.fields)()), (other.0, (their.fields)()), path, budget);
                path.pop();
                if found.is_some() {
                    return found;
                }
            }
            (Some(our), Some(their)) => {
                let (our, their) = (full(our.name), full(their.name));
                let place = place + 1;
                return Some(format!("member {place} is {our} in {} and {their} in {}", one.0, other.0));
            }
            (Some(more), None) => {
                return Some(format!("{} has a member {} more than {}", one.0, full(more.name), other.0));
            }
            (None, Some(more)) => {
                return Some(format!("{} has a member {} more than {}", other.0, full(more.name), one.0));
            }
            (None, None) => {}
        }
    }
    None
}

const fn kind_name(fields: Fields) -> &'static str {
    match fields {
        Fields::Opaque => "a collection, union or wide text",
        Fields::Value(kind) => kind.name(),
        Fields::Structure(..) => "a structure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn number() -> Fields {
        Fields::Value(FieldKind::Integer)
    }
    const fn text() -> Fields {
        Fields::Value(FieldKind::Text)
    }
    const fn list() -> Fields {
        Fields::Structure("List", &[FieldMember { name: "next", fields: list, key: false }, NUMBER])
    }
    const NUMBER: FieldMember = FieldMember { name: "number", fields: number, key: false };
    const TEXT: FieldMember = FieldMember { name: "text", fields: text, key: false };

    fn compared(ours: &'static [FieldMember], theirs: &'static [FieldMember]) -> Option<String> {
        first_difference(("A", Fields::Structure("A", ours)), ("B", Fields::Structure("B", theirs)))
    }

    #[test]
    fn the_first_member_that_differs_is_named_with_its_path() {
        const INNER: fn() -> Fields = || Fields::Structure("Inner", &[NUMBER, TEXT]);
        const OTHER: fn() -> Fields = || {
            Fields::Structure("Inner", &[NUMBER, FieldMember { name: "text", fields: number, key: false }])
        };
        assert_eq!(compared(&[NUMBER, TEXT], &[NUMBER, TEXT]), None);
        assert_eq!(compared(&[NUMBER], &[TEXT]).unwrap(), "member 1 is 'number' in A and 'text' in B");
        assert_eq!(compared(&[NUMBER, TEXT], &[NUMBER]).unwrap(), "A has a member 'text' more than B");
        assert_eq!(compared(&[], &[NUMBER]).unwrap(), "B has a member 'number' more than A");
        assert_eq!(
            compared(
                &[NUMBER, FieldMember { name: "inner", fields: INNER, key: false }],
                &[NUMBER, FieldMember { name: "inner", fields: OTHER, key: false }]
            )
            .unwrap(),
            "member 'inner.text' is a string in A and an integer in B"
        );
    }

    #[test]
    fn types_that_contain_themselves_are_compared_in_bounded_work() {
        assert_eq!(first_difference(("A", list()), ("B", list())), None);
    }
}
