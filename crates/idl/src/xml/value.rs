//! Values of attributes: expressions of IDL, names, words and flags.

use super::document::{Attribute, Element};
use super::{Parsed, Reader};
use crate::ast::{Annotation, Expression, ExpressionKind, Name, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::parse;

impl Reader<'_> {
    /// A constant expression (XTypes 1.3 §7.3.2.1.3).
    pub(super) fn expression(&mut self, attribute: &Attribute) -> Parsed<Expression> {
        let text = self.sources.text(attribute.span.file);
        let place = attribute.span;
        let whole = text.get(place.start as usize..place.end as usize) == Some(&*attribute.value);
        let text = whole.then_some(&*text);
        parse::expression(text, &attribute.value, place, self.diagnostics).ok_or(super::Failed)
    }

    /// Expressions with commas between them.
    pub(super) fn expressions(&mut self, attribute: &Attribute) -> Parsed<Vec<Expression>> {
        let mut start = attribute.span.start;
        let mut all = Vec::new();
        for part in attribute.value.split(',') {
            let length = part.len() as u32;
            let lead = length - part.trim_start().len() as u32;
            let value = part.trim();
            let mut span = attribute.span;
            span.start = (start + lead).min(attribute.span.end);
            span.end = (span.start + value.len() as u32).min(attribute.span.end);
            start += length + 1;
            let part = Attribute { name: attribute.name.clone(), value: value.to_owned(), span };
            all.push(self.expression(&part)?);
        }
        Ok(all)
    }

    /// The bound of a string or collection; `-1` is none.
    pub(super) fn bound(&mut self, attribute: &Attribute) -> Parsed<Option<Expression>> {
        if attribute.value == "-1" { Ok(None) } else { self.expression(attribute).map(Some) }
    }

    /// A value that a member of this type may have. Texts need no quotes here.
    pub(super) fn value_of(&mut self, element: &Element, attribute: &Attribute) -> Parsed<Expression> {
        let quoted = attribute.value.starts_with(['"', '\'', '(']) || attribute.value.starts_with("L\"");
        let ty = element.attribute("type").map_or("", |it| &it.value);
        let span = attribute.span;
        let mut letters = attribute.value.chars();
        match (ty, letters.next(), letters.next()) {
            ("string" | "wstring", ..) if !quoted => Ok(Expression::text(&attribute.value, span)),
            ("char" | "char8" | "wchar" | "char16", Some(letter), None) => {
                Ok(Expression { kind: ExpressionKind::Character(letter), span })
            }
            _ => self.expression(attribute),
        }
    }

    /// The name of a type.
    pub(super) fn type_name(&mut self, attribute: &Attribute) -> Parsed<ScopedName> {
        match self.expression(attribute)?.kind {
            ExpressionKind::Name(name) => Ok(name),
            _ => {
                let message = format!("{:?} is no name of a type", attribute.value);
                self.fail(Diagnostic::error(attribute.span, message))
            }
        }
    }

    /// TRUE or FALSE.
    pub(super) fn flag(&mut self, attribute: &Attribute) -> Option<bool> {
        match &*attribute.value {
            "true" | "1" | "TRUE" | "True" => Some(true),
            "false" | "0" | "FALSE" | "False" => Some(false),
            other => {
                let message = format!("`{}` is true or false, and this is {other:?}", attribute.name);
                self.say(Diagnostic::error(attribute.span, message));
                None
            }
        }
    }

    /// `<annotate name="…"><member name="…" value="…"/></annotate>`
    pub(super) fn annotate(&mut self, element: &Element) -> Option<Annotation> {
        let name = self.name(element).ok()?;
        let mut parameters = Vec::new();
        for member in element.children.iter().filter(|child| child.name == "member") {
            let parameter = self.name(member).ok()?;
            let value = member.attribute("value")?;
            parameters.push((parameter, self.expression(value).ok()?));
        }
        let parameters = parameters.iter().map(|(name, value)| (&*name.text, value.clone()));
        Some(Annotation::with(name, parameters))
    }

    /// The annotation that an attribute stands for: a flag.
    pub(super) fn flag_annotation(
        &mut self,
        element: &Element,
        names: &[&str],
        of: &str,
    ) -> Option<Annotation> {
        let attribute = element.any(names)?;
        let value = self.flag(attribute)?;
        let value = Expression { kind: ExpressionKind::Boolean(value), span: attribute.span };
        Some(Annotation::one(Name::new(of, attribute.span), value))
    }

    /// The annotation that an attribute stands for: a number.
    pub(super) fn number_annotation(
        &mut self,
        element: &Element,
        names: &[&str],
        of: &str,
    ) -> Option<Annotation> {
        let attribute = element.any(names)?;
        let value = self.expression(attribute).ok()?;
        Some(Annotation::one(Name::new(of, attribute.span), value))
    }

    /// The annotation that an attribute stands for: a word, in capitals.
    pub(super) fn word_annotation(element: &Element, names: &[&str], of: &str) -> Option<Annotation> {
        let attribute = element.any(names)?;
        let word = attribute.value.to_ascii_uppercase().replace('-', "_");
        // As the schema of the standard spells it.
        let word = if word == "SEQUENCIAL" { "SEQUENTIAL".to_owned() } else { word };
        Some(Annotation::one(Name::new(of, attribute.span), Expression::text(&word, attribute.span)))
    }
}
