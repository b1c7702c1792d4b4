//! The lines of interfaces: fields, constants, comments, and what stands between parts.

use std::sync::Arc;

use crate::ast::{Expression, ExpressionKind, Name, Primitive};
use crate::diagnostic::{Diagnostic, Diagnostics, closest};
use crate::source::{FileId, Span};

pub(super) enum Line {
    /// `---`
    Separator(Span),
    /// The comment at the start of the file.
    Comment(String),
    Field(Box<Field>),
}

/// A field or constant.
pub(super) struct Field {
    pub(super) ty: FieldType,
    pub(super) name: Name,
    pub(super) told: Told,
    pub(super) comment: String,
}

pub(super) enum Told {
    Nothing,
    Default(Expression),
    /// A list of values.
    Collection(Span),
    Constant(Expression),
}

pub(super) struct FieldType {
    pub(super) kind: Kind,
    pub(super) shape: Shape,
    pub(super) span: Span,
}

pub(super) enum Kind {
    Basic(Primitive),
    String {
        wide: bool,
        bound: Option<Expression>,
    },
    /// Without package one of the same.
    Message {
        package: Option<Arc<str>>,
        name: Arc<str>,
    },
}

pub(super) enum Shape {
    Single,
    Array(Expression),
    Sequence(Option<Expression>),
}

impl Field {
    /// The message that it is made of.
    pub(super) fn message(&self, own: &Arc<str>) -> Option<(Arc<str>, Arc<str>)> {
        match &self.ty.kind {
            Kind::Message { package, name } => {
                Some((package.clone().unwrap_or_else(|| Arc::clone(own)), Arc::clone(name)))
            }
            _ => None,
        }
    }
}

/// Letters, digits and `_`, of which the first is a letter.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

const BASIC: [(&str, Primitive); 14] = [
    ("bool", Primitive::Boolean),
    ("byte", Primitive::Octet),
    // Of ROS 2, where it is a number.
    ("char", Primitive::UInt8),
    ("float32", Primitive::Float32),
    ("float64", Primitive::Float64),
    ("int8", Primitive::Int8),
    ("uint8", Primitive::UInt8),
    ("int16", Primitive::Int16),
    ("uint16", Primitive::UInt16),
    ("int32", Primitive::Int32),
    ("uint32", Primitive::UInt32),
    ("int64", Primitive::Int64),
    ("uint64", Primitive::UInt64),
    ("wchar", Primitive::WChar),
];

/// The lines of a file that say something.
pub(super) fn lines(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    // The comment before a field, and whether it may be that of the file.
    let (mut comment, mut first) = (String::new(), true);
    for line in text.get(start..).unwrap_or_default().split_inclusive('\n') {
        let at = Piece { file, start, text: line }.trimmed();
        start += line.len();
        let (code, said) = at.without_comment();
        if code.text.is_empty() {
            match said {
                Some(said) => {
                    comment.push_str(said);
                    comment.push('\n');
                }
                // A blank line ends it.
                None if first && !comment.is_empty() => {
                    lines.push(Line::Comment(std::mem::take(&mut comment)));
                    first = false;
                }
                None => comment.clear(),
            }
            continue;
        }
        first = false;
        if code.text == "---" {
            lines.push(Line::Separator(code.span()));
            comment.clear();
            continue;
        }
        let mut comment = std::mem::take(&mut comment);
        comment.push_str(said.unwrap_or_default());
        match code.field(comment) {
            Ok(field) => lines.push(Line::Field(field.into())),
            Err(diagnostic) => diagnostics.push(diagnostic),
        }
    }
    if first && !comment.is_empty() {
        lines.push(Line::Comment(comment));
    }
    lines
}

/// A piece of a file.
#[derive(Clone, Copy)]
struct Piece<'a> {
    file: FileId,
    start: usize,
    text: &'a str,
}

impl<'a> Piece<'a> {
    fn span(self) -> Span {
        // A file has fewer than 2^32 octets.
        Span { file: self.file, start: self.start as u32, end: (self.start + self.text.len()) as u32 }
    }

    fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        Self { start: self.start + self.text.len() - text.len(), text: text.trim_end(), ..self }
    }

    fn split(self, at: usize) -> (Self, Self) {
        let at = at.min(self.text.len());
        let (before, after) = self.text.split_at(at);
        (
            Self { text: before, ..self }.trimmed(),
            Self { start: self.start + at, text: after, ..self }.trimmed(),
        )
    }

    /// What stands before a `#` outside of quotes, and after it.
    fn without_comment(self) -> (Self, Option<&'a str>) {
        let mut quote = None;
        let mut escaped = false;
        for (at, letter) in self.text.char_indices() {
            match (quote, letter) {
                (None, '#') => {
                    let (code, comment) = self.split(at);
                    return (code, comment.text.get(1..).map(|it| it.strip_prefix(' ').unwrap_or(it)));
                }
                // An apostrophe within a word is none.
                (None, '"' | '\'') if self.text[..at].ends_with([' ', '\t', '=', '[', ',']) => {
                    quote = Some(letter);
                }
                (Some(open), letter) if open == letter && !escaped => quote = None,
                _ => {}
            }
            escaped = letter == '\\' && !escaped;
        }
        (self, None)
    }

    fn error(self, message: String) -> Diagnostic {
        Diagnostic::error(self.span(), message)
    }

    fn field(self, comment: String) -> Result<Field, Diagnostic> {
        let blank = self.text.find([' ', '\t']).unwrap_or(self.text.len());
        let (ty, rest) = self.split(blank);
        let ty_told = ty.field_type()?;
        let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let (name, rest) = rest.split(rest.text.find(|letter| !part(letter)).unwrap_or(rest.text.len()));
        if !is_name(name.text) {
            let said = self.error(format!("expected the name of a field after `{}`", ty.text));
            return Err(
                said.hint("a field is `type name`, with a default `type name 1`; a constant `type NAME=1`")
            );
        }
        let told = match rest.text.strip_prefix('=') {
            Some(_) => Told::Constant(rest.split(1).1.value(&ty_told)?),
            None if rest.text.is_empty() => Told::Nothing,
            None if !matches!(ty_told.shape, Shape::Single) => Told::Collection(rest.span()),
            None => Told::Default(rest.value(&ty_told)?),
        };
        if let (Told::Constant(_), false) = (&told, matches!(ty_told.shape, Shape::Single)) {
            return Err(ty.error("a constant is a number, a boolean or a string".to_owned()));
        }
        let name = Name { text: name.text.into(), span: name.span() };
        Ok(Field { ty: ty_told, name, told, comment })
    }

    fn field_type(self) -> Result<FieldType, Diagnostic> {
        let span = self.span();
        let (element, shape) = match self.text.find('[') {
            Some(open) => {
                let (element, brackets) = self.split(open);
                let inner = brackets.text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
                let inner = inner.ok_or_else(|| brackets.error("`]` is missing".to_owned()))?;
                let shape = match inner.strip_prefix("<=") {
                    _ if inner.is_empty() => Shape::Sequence(None),
                    Some(bound) => Shape::Sequence(Some(brackets.count(bound)?)),
                    None => Shape::Array(brackets.count(inner)?),
                };
                (element, shape)
            }
            None => (self, Shape::Single),
        };
        Ok(FieldType { kind: element.kind()?, shape, span })
    }

    fn kind(self) -> Result<Kind, Diagnostic> {
        if let Some((_, primitive)) = BASIC.iter().find(|(name, _)| *name == self.text) {
            return Ok(Kind::Basic(*primitive));
        }
        let (base, bound) = match self.text.split_once("<=") {
            Some((base, bound)) => (base, Some(self.count(bound)?)),
            None => (self.text, None),
        };
        let builtin =
            |name: &str| Kind::Message { package: Some("builtin_interfaces".into()), name: name.into() };
        match (base, bound) {
            ("string" | "wstring", bound) => Ok(Kind::String { wide: base == "wstring", bound }),
            (_, Some(_)) => Err(self.error(format!("`{base}` has no bound; only strings have"))),
            ("time", None) => Ok(builtin("Time")),
            ("duration", None) => Ok(builtin("Duration")),
            (path, None) => self.message(path),
        }
    }

    /// `package/Name`, `package/msg/Name` or `Name`.
    fn message(self, path: &str) -> Result<Kind, Diagnostic> {
        let parts = path.split('/').collect::<Vec<_>>();
        let (package, name) = match parts.as_slice() {
            [name] => (None, *name),
            [package, name] | [package, "msg", name] => (Some(*package), *name),
            _ => (None, ""),
        };
        if is_name(name) && package.is_none_or(is_name) {
            // What starts with a small letter is meant to be a basic type.
            if package.is_some() || name.starts_with(|first: char| first.is_ascii_uppercase()) {
                return Ok(Kind::Message { package: package.map(Into::into), name: name.into() });
            }
        }
        let said = self.error(format!("there is no type `{path}`"));
        let known = BASIC.iter().map(|(name, _)| *name).chain(["string", "wstring"]);
        let foreign = match path {
            "int" | "long" => Some("int32"),
            "float" => Some("float32"),
            "double" => Some("float64"),
            "boolean" => Some("bool"),
            other => closest(other, known),
        };
        Err(match foreign {
            Some(meant) => said.hint(format!("did you mean `{meant}`?")),
            None => said.hint("messages of other packages are `package/Name`"),
        })
    }

    fn count(self, text: &str) -> Result<Expression, Diagnostic> {
        match text.parse::<u32>() {
            Ok(1..) => Ok(Expression { kind: ExpressionKind::Number(text.into()), span: self.span() }),
            _ => Err(self.error(format!("{text:?} is no size: it is a number from 1"))),
        }
    }

    /// A value of a constant or field.
    fn value(self, ty: &FieldType) -> Result<Expression, Diagnostic> {
        let span = self.span();
        let kind = match &ty.kind {
            Kind::String { .. } => ExpressionKind::Text(unquoted(self.text).into()),
            Kind::Basic(Primitive::Boolean) => match self.text {
                "true" | "True" | "TRUE" | "1" => ExpressionKind::Boolean(true),
                "false" | "False" | "FALSE" | "0" => ExpressionKind::Boolean(false),
                other => return Err(self.error(format!("`{other}` is neither true nor false"))),
            },
            Kind::Basic(primitive) => {
                let real = matches!(primitive, Primitive::Float32 | Primitive::Float64);
                let (digits, negative) = match self.text.strip_prefix('-') {
                    Some(digits) => (digits, true),
                    None => (self.text.strip_prefix('+').unwrap_or(self.text), false),
                };
                let text = if real { float(digits) } else { integer(digits) };
                let text =
                    text.ok_or_else(|| self.error(format!("`{}` is no number of this type", self.text)))?;
                let number = ExpressionKind::Number(text.into());
                if negative {
                    ExpressionKind::Unary("-", Box::new(Expression { kind: number, span }))
                } else {
                    number
                }
            }
            Kind::Message { .. } => {
                let said = self.error("a field that is a message has no default".to_owned());
                return Err(said.hint("defaults stand in that message"));
            }
        };
        Ok(Expression { kind, span })
    }
}

/// An integer of any radix as IDL writes it.
fn integer(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0o") => (&lower[2..], 8),
        Some("0b") => (&lower[2..], 2),
        _ => (&*lower, 10),
    };
    let first = digits.starts_with(|first: char| first.is_digit(radix));
    u64::from_str_radix(digits, radix).ok().filter(|_| first).map(|value| value.to_string())
}

/// A number of ROS 2 as IDL writes it.
fn float(text: &str) -> Option<String> {
    let digits = text.chars().all(|letter| letter.is_ascii_digit() || ".eE+-".contains(letter));
    let value = text.parse::<f64>().ok().filter(|value| digits && value.is_finite())?;
    Some(format!("{value:?}"))
}

/// A text without the quotes around it, and its escapes resolved.
fn unquoted(text: &str) -> String {
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote).map(|inner| (inner, quote)));
    let Some((inner, quote)) = inner else { return text.to_owned() };
    inner.replace(&format!("\\{quote}"), &quote.to_string())
}
