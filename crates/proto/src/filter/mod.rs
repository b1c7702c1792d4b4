//! Content filters and queries: the SQL subset of DCPS 1.4 Annex B.
//!
//! An expression compares members of a type with values, parameters and each other:
//! `color = 'RED' AND (x BETWEEN %0 AND %1 OR NOT pose.speed < 2.5) ORDER BY x`. Beyond the standard there
//! are `!=`, NOT LIKE, MATCH with patterns as of file names, doubled quotes, and TRUE and FALSE. Everything
//! that can be wrong with an expression is found when it is compiled; a filter that exists cannot fail.
//!
//! Limits (R15): [`EXPRESSION_BYTES_MAX`], [`TERMS_MAX`], [`DEPTH_MAX`], [`PARAMETERS_MAX`] and
//! [`PARAMETER_BYTES_MAX`]. Neither compiling nor evaluating recurses or allocates more than in proportion.

mod lexer;
mod pattern;
mod payload;
mod property;
mod selection;
mod sql;

use std::cmp::Ordering;
use std::marker::PhantomData;

use thiserror::Error;

use crate::cdr::{self, DdsType, FieldKind, FieldPath, FieldSource, FieldValue, NamedFields};
pub use payload::{FilterFunction, PayloadFilter, SignedFilter};
pub use property::ContentFilter;
pub use selection::{Column, TOPICS_MAX, TopicExpression};

use lexer::{Lexer, Literal, Relation};
use pattern::Pattern;
use sql::{Expression, Located, Operand, Predicate, Step};

/// Octets of an expression at most.
pub const EXPRESSION_BYTES_MAX: usize = 4096;
/// Comparisons of an expression at most.
pub const TERMS_MAX: usize = 256;
/// Parentheses and NOTs around a comparison at most.
pub const DEPTH_MAX: usize = 32;
/// Parameters at most: %0 to %99.
pub const PARAMETERS_MAX: usize = 100;
/// Octets of a parameter at most.
pub const PARAMETER_BYTES_MAX: usize = 256;

/// Why an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("at column {column}: {message}")]
pub struct FilterError {
    /// Where in the expression, in characters from 1.
    pub column: usize,
    /// What is wrong there, and what would be right.
    pub message: String,
}

/// An expression with its parameters, bound to the type `T`.
#[derive(Debug, Clone)]
pub struct Filter<T> {
    condition: Condition,
    marker: PhantomData<fn(&T) -> bool>,
}

/// An expression with its parameters, bound to a type: that of [`Filter`], or one that is described at run
/// time.
#[derive(Debug, Clone)]
pub struct Condition {
    tests: Vec<Test>,
    steps: Vec<Step>,
    order: Vec<FieldPath>,
}

/// A predicate with its members found and its values converted to their kinds.
#[derive(Debug, Clone)]
enum Test {
    Relation { left: Term, relation: Relation, right: Term },
    Between { field: FieldPath, low: Constant, high: Constant },
    Pattern { field: FieldPath, pattern: Pattern },
}

#[derive(Debug, Clone)]
enum Term {
    Field(FieldPath),
    Constant(Constant),
}

#[derive(Debug, Clone)]
enum Constant {
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Character(char),
    Text(String),
}

/// Truth values in the manner of SQL: what an absent member is compared with is neither true nor false.
/// One bit for each value, the newest lowest. [`DEPTH_MAX`] levels wait with three values each at most.
#[derive(Default)]
struct Truths {
    maybe_true: u128,
    maybe_false: u128,
}

impl<T: DdsType> Filter<T> {
    /// The filter expression of a content-filtered topic: a condition, without ORDER BY.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn condition(expression: &str, parameters: &[String]) -> Result<Self, FilterError> {
        let condition = Condition::filter(T::fields(), expression, parameters)?;
        Ok(Self { condition, marker: PhantomData })
    }

    /// The expression of a query: a condition, ORDER BY, both or neither.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn query(expression: &str, parameters: &[String]) -> Result<Self, FilterError> {
        let condition = Condition::query(T::fields(), expression, parameters)?;
        Ok(Self { condition, marker: PhantomData })
    }

    /// Whether the condition is true of `sample`.
    #[must_use]
    pub fn passes(&self, sample: &T) -> bool {
        self.condition.passes(sample)
    }

    /// As [`Self::passes`], of a serialized sample. What cannot be decoded passes: the reader that hands it
    /// out counts it.
    #[must_use]
    pub fn passes_payload(&self, payload: &[u8]) -> bool {
        cdr::from_payload(payload).map_or(true, |sample| self.passes(&sample))
    }

    /// Steps it takes at most for each octet of a sample, decoding apart: 0 without patterns.
    #[must_use]
    pub fn steps_per_octet(&self) -> usize {
        self.condition.steps_per_octet()
    }

    /// Whether there is an ORDER BY.
    #[must_use]
    pub const fn is_ordered(&self) -> bool {
        !self.condition.order.is_empty()
    }

    /// The order of two samples by ORDER BY; absent members come first.
    #[must_use]
    pub fn compare(&self, left: &T, right: &T) -> Ordering {
        self.condition.compare(left, right)
    }
}

impl Condition {
    /// As [`Filter::condition`], of the type that has these members.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn filter<'a>(
        fields: impl NamedFields<'a>,
        expression: &str,
        parameters: &[String],
    ) -> Result<Self, FilterError> {
        let filter = Self::query(fields, expression, parameters)?;
        let column = expression.chars().count() + 1;
        if filter.steps.is_empty() {
            return Err(FilterError { column, message: "a filter needs a condition, as in x > 10".into() });
        }
        if !filter.order.is_empty() {
            return Err(FilterError { column, message: "a filter has no ORDER BY; queries have".into() });
        }
        Ok(filter)
    }

    /// As [`Filter::query`], of the type that has these members.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn query<'a>(
        fields: impl NamedFields<'a>,
        expression: &str,
        parameters: &[String],
    ) -> Result<Self, FilterError> {
        let Expression { predicates, steps, order } = sql::parse(expression)?;
        let binder = Binder { lexer: Lexer::new(expression), parameters, fields, kinds: PhantomData };
        binder.check_parameters()?;
        let tests = predicates.iter().map(|predicate| binder.test(predicate)).collect::<Result<_, _>>()?;
        let order = order.iter().map(|name| Ok(binder.field(name)?.0)).collect::<Result<_, _>>()?;
        Ok(Self { tests, steps, order })
    }

    /// Whether it is true of `sample`.
    #[must_use]
    pub fn passes(&self, sample: &impl FieldSource) -> bool {
        let mut truths = Truths::default();
        for step in &self.steps {
            match step {
                Step::Test(index) => {
                    truths.push(self.tests.get(*index).and_then(|test| test.truth(sample)));
                }
                Step::Not => truths.not(),
                Step::And => truths.and(),
                Step::Or => truths.or(),
            }
        }
        self.steps.is_empty() || truths.is_true()
    }

    /// As [`Filter::steps_per_octet`].
    #[must_use]
    pub fn steps_per_octet(&self) -> usize {
        let steps = |test: &Test| if let Test::Pattern { pattern, .. } = test { pattern.steps() } else { 0 };
        self.tests.iter().map(steps).sum()
    }

    /// The order of two samples by ORDER BY; absent members come first.
    #[must_use]
    pub fn compare<S: FieldSource>(&self, left: &S, right: &S) -> Ordering {
        let by = |path: &FieldPath| match (path.value(left), path.value(right)) {
            (Some(left), Some(right)) => left.compare(&right).unwrap_or(Ordering::Equal),
            (left, right) => left.is_some().cmp(&right.is_some()),
        };
        self.order.iter().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl Truths {
    const fn push(&mut self, truth: Option<bool>) {
        self.maybe_true = self.maybe_true << 1 | !matches!(truth, Some(false)) as u128;
        self.maybe_false = self.maybe_false << 1 | !matches!(truth, Some(true)) as u128;
    }

    const fn not(&mut self) {
        let changed = (self.maybe_true ^ self.maybe_false) & 1;
        self.maybe_true ^= changed;
        self.maybe_false ^= changed;
    }

    const fn and(&mut self) {
        self.maybe_true = self.maybe_true >> 1 & (!1 | self.maybe_true);
        self.maybe_false = self.maybe_false >> 1 | (self.maybe_false & 1);
    }

    const fn or(&mut self) {
        self.maybe_true = self.maybe_true >> 1 | (self.maybe_true & 1);
        self.maybe_false = self.maybe_false >> 1 & (!1 | self.maybe_false);
    }

    const fn is_true(&self) -> bool {
        self.maybe_true & 1 == 1 && self.maybe_false & 1 == 0
    }
}

impl Test {
    /// `None` when a member it is about is absent.
    fn truth(&self, sample: &impl FieldSource) -> Option<bool> {
        match self {
            Self::Relation { left, relation, right } => {
                Some(relation.holds(left.value(sample)?.compare(&right.value(sample)?)))
            }
            Self::Between { field, low, high } => {
                let value = field.value(sample)?;
                let above = value.compare(&low.value()).is_some_and(Ordering::is_ge);
                Some(above && value.compare(&high.value()).is_some_and(Ordering::is_le))
            }
            Self::Pattern { field, pattern } => match field.value(sample)? {
                FieldValue::Text(text) => Some(pattern.matches(text)),
                FieldValue::Character(character) => Some(pattern.matches(character.encode_utf8(&mut [0; 4]))),
                _ => None,
            },
        }
    }
}

impl Relation {
    /// Whether it holds between values in this order; without an order only inequality does.
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order.is_some_and(Ordering::is_lt),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order.is_some_and(Ordering::is_gt),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

impl Term {
    fn value<'a>(&'a self, sample: &'a impl FieldSource) -> Option<FieldValue<'a>> {
        match self {
            Self::Field(path) => path.value(sample),
            Self::Constant(constant) => Some(constant.value()),
        }
    }
}

impl Constant {
    fn value(&self) -> FieldValue<'_> {
        match self {
            Self::Integer(value) => FieldValue::Integer(*value),
            Self::Float(value) => FieldValue::Float(*value),
            Self::Boolean(value) => FieldValue::Boolean(*value),
            Self::Character(value) => FieldValue::Character(*value),
            Self::Text(value) => FieldValue::Text(value),
        }
    }
}

/// Finds the members and converts the values of an expression.
struct Binder<'e, 'f, F> {
    lexer: Lexer<'e>,
    parameters: &'e [String],
    fields: F,
    kinds: PhantomData<FieldKind<'f>>,
}

impl<'f, F: NamedFields<'f>> Binder<'_, 'f, F> {
    fn check_parameters(&self) -> Result<(), FilterError> {
        if self.parameters.len() > PARAMETERS_MAX {
            let count = self.parameters.len();
            let message =
                format!("{count} parameters are given, and there may be {PARAMETERS_MAX}, %0 to %99");
            return Err(self.lexer.error(0, message));
        }
        match self.parameters.iter().position(|parameter| parameter.len() > PARAMETER_BYTES_MAX) {
            Some(at) => {
                let octets = self.parameters.get(at).map_or(0, String::len);
                let message =
                    format!("the value of %{at} has {octets} octets, and may have {PARAMETER_BYTES_MAX}");
                Err(self.lexer.error(0, message))
            }
            None => Ok(()),
        }
    }

    fn field(&self, name: &Located<&str>) -> Result<(FieldPath, FieldKind<'f>), FilterError> {
        FieldPath::find_in(self.fields, name.value).map_err(|message| self.lexer.error(name.at, message))
    }

    fn test(&self, predicate: &Predicate<'_>) -> Result<Test, FilterError> {
        match predicate {
            Predicate::Relation { left, relation, right } => {
                let (left, right) = self.relation(left, right)?;
                Ok(Test::Relation { left, relation: *relation, right })
            }
            Predicate::Between { field, low, high } => {
                let (path, kind) = self.field(field)?;
                let (low, high) = (self.constant(low, kind)?, self.constant(high, kind)?);
                Ok(Test::Between { field: path, low, high })
            }
            Predicate::Pattern { field, pattern, kind } => {
                let (path, field_kind) = self.field(field)?;
                if !matches!(field_kind, FieldKind::Text | FieldKind::Character) {
                    let message =
                        format!("'{}' is {}; patterns are for strings", field.value, field_kind.name());
                    return Err(self.lexer.error(field.at, message));
                }
                let Constant::Text(text) = self.constant(pattern, FieldKind::Text)? else {
                    return Err(self.lexer.error(pattern.at, "a pattern is a string"));
                };
                let pattern =
                    Pattern::new(&text, *kind).map_err(|message| self.lexer.error(pattern.at, message))?;
                Ok(Test::Pattern { field: path, pattern })
            }
        }
    }

    fn relation(
        &self,
        left: &Located<Operand<'_>>,
        right: &Located<Operand<'_>>,
    ) -> Result<(Term, Term), FilterError> {
        match (&left.value, &right.value) {
            (Operand::Field(name), Operand::Field(other)) => {
                let (path, kind) = self.field(&Located { value: name, at: left.at })?;
                let (other_path, other_kind) = self.field(&Located { value: other, at: right.at })?;
                if !comparable(kind, other_kind) {
                    let (one, two) = (kind.name(), other_kind.name());
                    let message = format!("'{name}' is {one}, '{other}' is {two}: they do not compare");
                    return Err(self.lexer.error(right.at, message));
                }
                Ok((Term::Field(path), Term::Field(other_path)))
            }
            (Operand::Field(name), _) => {
                let (path, kind) = self.field(&Located { value: name, at: left.at })?;
                Ok((Term::Field(path), Term::Constant(self.constant(right, kind)?)))
            }
            (_, Operand::Field(name)) => {
                let (path, kind) = self.field(&Located { value: name, at: right.at })?;
                Ok((Term::Constant(self.constant(left, kind)?), Term::Field(path)))
            }
            _ => {
                let type_name = self.fields.structure().unwrap_or("the type");
                let message = format!("one side of a comparison has to be a member of {type_name}");
                Err(self.lexer.error(left.at, message))
            }
        }
    }

    /// The value of a literal or parameter as a value of this kind.
    fn constant(&self, operand: &Located<Operand<'_>>, kind: FieldKind<'_>) -> Result<Constant, FilterError> {
        let (literal, what) = match &operand.value {
            Operand::Field(name) => {
                return Err(self.lexer.error(operand.at, format!("'{name}' is a member, not a value")));
            }
            Operand::Literal(literal) => (literal.clone(), String::new()),
            Operand::Parameter(index) => {
                let text = self.parameters.get(*index).ok_or_else(|| {
                    let given = match self.parameters.len() {
                        0 => "no parameters are given".to_owned(),
                        1 => "1 parameter is given, %0".to_owned(),
                        count => format!("{count} parameters are given, %0 to %{}", count - 1),
                    };
                    let message = format!("%{index} has no value: {given}; it needs {}", index + 1);
                    self.lexer.error(operand.at, message)
                })?;
                let literal = Lexer::literal(text).ok_or_else(|| {
                    let message = format!(
                        "the value of %{index}, {text}, is no number, TRUE, FALSE or quoted text; quote strings, \
                         as in 'RED'"
                    );
                    self.lexer.error(operand.at, message)
                })?;
                (literal, format!("the value of %{index}, "))
            }
        };
        convert(&literal, kind).map_err(|wanted| {
            let found = lexer::TokenKind::Literal(literal).describe();
            self.lexer.error(operand.at, format!("expected {wanted}, found {what}{found}"))
        })
    }
}

const fn comparable(one: FieldKind<'_>, other: FieldKind<'_>) -> bool {
    use FieldKind::{Boolean, Character, Enumeration, Float, Integer, Text};
    matches!(
        (one, other),
        (Integer | Float | Enumeration(_), Integer | Float | Enumeration(_))
            | (Boolean, Boolean)
            | (Character, Character)
            | (Text, Text)
    )
}

/// The error says what was wanted.
fn convert(literal: &Literal, kind: FieldKind<'_>) -> Result<Constant, String> {
    match (kind, literal) {
        (FieldKind::Integer | FieldKind::Float | FieldKind::Enumeration(_), Literal::Integer(value)) => {
            Ok(Constant::Integer(*value))
        }
        (FieldKind::Integer | FieldKind::Float, Literal::Float(value)) => Ok(Constant::Float(*value)),
        (FieldKind::Boolean, Literal::Boolean(value)) => Ok(Constant::Boolean(*value)),
        (FieldKind::Text, Literal::Text(text)) => Ok(Constant::Text(text.clone())),
        (FieldKind::Character, Literal::Text(text)) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Ok(Constant::Character(character)),
                _ => Err("one character in quotes".to_owned()),
            }
        }
        (FieldKind::Enumeration(literals), Literal::Text(text)) => literals
            .iter()
            .find(|(name, _)| name == text)
            .map(|(_, value)| Constant::Integer(i128::from(*value)))
            .ok_or_else(|| {
                let names: Vec<_> = literals.iter().map(|(name, _)| format!("'{name}'")).collect();
                format!("one of {}", names.join(", "))
            }),
        (FieldKind::Integer | FieldKind::Float, _) => Err("a number".to_owned()),
        (FieldKind::Boolean, _) => Err("TRUE or FALSE".to_owned()),
        (FieldKind::Text | FieldKind::Character, _) => Err("a string in quotes".to_owned()),
        (FieldKind::Enumeration(_), _) => Err("the name of a literal in quotes".to_owned()),
    }
}
