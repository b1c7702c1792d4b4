//! Annotations: which there are, where they belong, and what their parameters say.

use std::sync::Arc;

use super::Resolver;
use super::scope::ScopeId;
use crate::ast::{Annotation, Expression, ExpressionKind};
use crate::diagnostic::{Diagnostic, closest};
use crate::model::{AutoId, Extensibility, TryConstruct, Value};

/// What an annotation stands before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target(u32);

impl Target {
    pub(super) const MODULE: Self = Self(1);
    pub(super) const STRUCTURE: Self = Self(1 << 1);
    pub(super) const UNION: Self = Self(1 << 2);
    pub(super) const ENUMERATION: Self = Self(1 << 3);
    pub(super) const BITMASK: Self = Self(1 << 4);
    pub(super) const BITSET: Self = Self(1 << 5);
    pub(super) const ALIAS: Self = Self(1 << 6);
    pub(super) const CONSTANT: Self = Self(1 << 7);
    pub(super) const MEMBER: Self = Self(1 << 8);
    pub(super) const CASE: Self = Self(1 << 9);
    pub(super) const DISCRIMINATOR: Self = Self(1 << 10);
    pub(super) const ELEMENT: Self = Self(1 << 11);
    pub(super) const LITERAL: Self = Self(1 << 12);
    pub(super) const FLAG: Self = Self(1 << 13);
    pub(super) const BITFIELD: Self = Self(1 << 14);
    pub(super) const INTERFACE: Self = Self(1 << 15);

    const AGGREGATE: Self = Self::STRUCTURE.and(Self::UNION);
    const TYPE: Self =
        Self::AGGREGATE.and(Self::ENUMERATION).and(Self::BITMASK).and(Self::BITSET).and(Self::ALIAS);
    const ENUMERATED: Self = Self::ENUMERATION.and(Self::BITMASK).and(Self::BITSET);
    const ANY_MEMBER: Self = Self::MEMBER.and(Self::CASE);
    const ALL: Self = Self(u32::MAX);

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// An annotation that is known.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    targets: Target,
    /// Where it belongs, in words.
    pub(crate) belongs: &'static str,
}

const fn row(name: &'static str, targets: Target, belongs: &'static str) -> Known {
    Known { name, targets, belongs }
}

/// All of them (IDL 4.2 §8, XTypes 1.3 §7.3.1.2). `docs/idl.md` tells what each does.
pub(crate) const KNOWN: [Known; 38] = [
    row("ami", Target::INTERFACE, "interfaces"),
    row("appendable", Target::TYPE, "types"),
    row("autoid", Target::AGGREGATE.and(Target::MODULE), "structures, unions and modules"),
    row("bit_bound", Target::ENUMERATION.and(Target::BITMASK), "enumerations and bitmasks"),
    row("data_representation", Target::TYPE.and(Target::MODULE), "types and modules"),
    row(
        "dds_name",
        Target::AGGREGATE.and(Target::ENUMERATED),
        "structures, unions, enumerations and the like",
    ),
    row("default", Target::ANY_MEMBER.and(Target::ALIAS), "members"),
    row("default_literal", Target::LITERAL, "literals of enumerations"),
    row("default_nested", Target::MODULE, "modules"),
    row("extensibility", Target::TYPE, "types"),
    row("external", Target::ANY_MEMBER.and(Target::ELEMENT), "members and elements"),
    row("final", Target::TYPE, "types"),
    row("hashid", Target::ANY_MEMBER, "members"),
    row("id", Target::ANY_MEMBER, "members"),
    row("ignore_literal_names", Target::ENUMERATION, "enumerations"),
    row("key", Target::MEMBER.and(Target::DISCRIMINATOR), "members of structures and discriminators"),
    row("max", Target::ANY_MEMBER.and(Target::ALIAS), "members"),
    row("min", Target::ANY_MEMBER.and(Target::ALIAS), "members"),
    row("mutable", Target::TYPE, "types"),
    row("must_understand", Target::ANY_MEMBER.and(Target::DISCRIMINATOR), "members and discriminators"),
    row("nested", Target::TYPE, "types"),
    row("non_serialized", Target::ANY_MEMBER, "members"),
    row("oneway", Target::INTERFACE, "operations"),
    row("optional", Target::MEMBER, "members of structures"),
    row("position", Target::FLAG.and(Target::BITFIELD), "flags of bitmasks"),
    row("range", Target::ANY_MEMBER.and(Target::ALIAS), "members"),
    row("rename", Target::ALL, "anything"),
    row("service", Target::INTERFACE, "interfaces"),
    row("shared", Target::ANY_MEMBER.and(Target::ELEMENT), "members and elements"),
    row("topic", Target::AGGREGATE, "structures and unions"),
    row(
        "try_construct",
        Target::ANY_MEMBER.and(Target::ELEMENT).and(Target::DISCRIMINATOR).and(Target::ALIAS),
        "members and elements",
    ),
    row("unit", Target::ANY_MEMBER.and(Target::ALIAS), "members"),
    row("value", Target::LITERAL, "literals of enumerations"),
    row("verbatim", Target::ALL, "anything"),
    row("DDSService", Target::INTERFACE, "interfaces"),
    row("DDSRequestTopic", Target::INTERFACE, "interfaces"),
    row("DDSReplyTopic", Target::INTERFACE, "interfaces"),
    row("Choice", Target::ANY_MEMBER, "structures that RPC generates"),
];

/// The annotations of one thing that are known and belong there.
pub(super) struct Annotations<'a> {
    told: Vec<(&'static str, &'a Annotation)>,
}

impl<'a> Annotations<'a> {
    /// The last of this name.
    pub(super) fn find(&self, name: &str) -> Option<&'a Annotation> {
        self.told.iter().rev().find(|(known, _)| *known == name).map(|(_, annotation)| *annotation)
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &'a Annotation> {
        self.told.iter().filter(move |(known, _)| *known == name).map(|(_, annotation)| *annotation)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// A parameter: the one of this name, or the only one if it has no name.
fn parameter<'a>(annotation: &'a Annotation, name: &str) -> Option<&'a Expression> {
    let named = annotation.parameters.iter().find(|it| it.name.as_ref().is_some_and(|it| *it.text == *name));
    let only = match annotation.parameters.as_slice() {
        [only] if only.name.is_none() => Some(only),
        _ => None,
    };
    named.or(only).map(|parameter| &parameter.value)
}

/// The word that a parameter is, as in `@autoid(HASH)`.
fn word(expression: &Expression) -> Option<Arc<str>> {
    match &expression.kind {
        ExpressionKind::Name(name) => name.parts.last().map(|part| Arc::clone(&part.text)),
        ExpressionKind::Text(text) => Some(Arc::clone(text)),
        _ => None,
    }
}

impl Resolver<'_> {
    /// Keeps those that are known and belong here; a warning says which do not.
    pub(super) fn annotations<'t>(
        &mut self,
        annotations: &'t [Annotation],
        target: Target,
    ) -> Annotations<'t> {
        let mut told = Vec::<(&'static str, &'t Annotation)>::new();
        for annotation in annotations {
            let written = annotation.name.text();
            let span = annotation.name.span;
            let same = KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(&written));
            let Some(known) = same else {
                self.unknown_annotation(annotation, &written);
                continue;
            };
            if known.name != written {
                let said = Diagnostic::warning(
                    span,
                    format!("the annotation `@{written}` is spelled `@{}`", known.name),
                );
                self.diagnostics.push_once(&format!("@{written}"), said.hint("it is taken as that"));
            }
            if !known.targets.has(target) {
                let said = Diagnostic::warning(span, format!("`@{}` has no effect here", known.name));
                self.say(said.hint(format!("it belongs before {}", known.belongs)));
                continue;
            }
            let before = told.iter().find(|(name, _)| *name == known.name && *name != "verbatim");
            if let Some((_, before)) = before {
                let said = Diagnostic::warning(span, format!("`@{}` is given twice", known.name));
                self.say(said.note("the first", before.span).hint("the last one counts"));
            }
            told.push((known.name, annotation));
        }
        Annotations { told }
    }

    fn unknown_annotation(&mut self, annotation: &Annotation, written: &str) {
        let last = annotation.name.parts.last().map_or("", |part| &part.text);
        if self.declared_annotations.contains(last) {
            return;
        }
        let said = Diagnostic::warning(
            annotation.name.span,
            format!("the annotation `@{written}` is not known and has no effect"),
        );
        let meant = closest(written, KNOWN.iter().map(|known| known.name));
        let said = match meant {
            Some(meant) => said.hint(format!("did you mean `@{meant}`?")),
            None => said.hint(format!("`@annotation {last} {{ … }};` makes it known, without effect")),
        };
        // Once: a set of files may have it at every member.
        self.diagnostics.push_once(&format!("@{written}"), said);
    }

    /// An annotation that is TRUE without parameter.
    pub(super) fn flag(&mut self, told: &Annotations<'_>, name: &str) -> Option<bool> {
        let annotation = told.find(name)?;
        let Some(value) = parameter(annotation, "value") else { return Some(true) };
        match &value.kind {
            ExpressionKind::Boolean(value) => Some(*value),
            _ => {
                let said = Diagnostic::error(value.span, format!("`@{name}` takes TRUE or FALSE"));
                self.say(said);
                None
            }
        }
    }

    /// The number that an annotation has.
    pub(super) fn annotated_number(
        &mut self,
        scope: ScopeId,
        told: &Annotations<'_>,
        name: &str,
        least: i128,
        greatest: i128,
    ) -> Option<i128> {
        let annotation = told.find(name)?;
        let Some(value) = parameter(annotation, "value") else {
            let said = Diagnostic::error(annotation.span, format!("`@{name}` wants a number"));
            self.say(said.hint(format!("write `@{name}({least})`")));
            return None;
        };
        match self.evaluate(scope, value).ok()? {
            Value::Integer(number) if (least..=greatest).contains(&number) => Some(number),
            Value::Integer(number) => {
                let message = format!("`@{name}` is {least} to {greatest}, and this is {number}");
                self.say(Diagnostic::error(value.span, message));
                None
            }
            other => {
                let message =
                    format!("`@{name}` wants a number, and this is {}", super::constant::describe(&other));
                self.say(Diagnostic::error(value.span, message));
                None
            }
        }
    }

    /// The text that an annotation has, if it has one.
    pub(super) fn annotated_text(
        &mut self,
        told: &Annotations<'_>,
        name: &str,
        part: &str,
    ) -> Option<Arc<str>> {
        let value = parameter(told.find(name)?, part)?;
        match &value.kind {
            ExpressionKind::Text(text) => Some(Arc::clone(text)),
            _ => {
                self.say(Diagnostic::error(value.span, format!("`@{name}` takes a string")));
                None
            }
        }
    }

    /// The parameter of an annotation that takes one.
    pub(super) fn annotated<'t>(
        &mut self,
        told: &Annotations<'t>,
        name: &str,
        part: &str,
    ) -> Option<&'t Expression> {
        let annotation = told.find(name)?;
        let value = parameter(annotation, part);
        if value.is_none() && (name != "range" || annotation.parameters.is_empty()) {
            let message = format!("`@{name}` wants a value");
            self.say(Diagnostic::error(annotation.span, message).hint(format!("write `@{name}({part}=…)`")));
        }
        value
    }

    fn annotated_word<T: Copy>(
        &mut self,
        told: &Annotations<'_>,
        name: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let annotation = told.find(name)?;
        let value = parameter(annotation, "value");
        let found = value.and_then(word);
        let known = found.and_then(|found| {
            // XTypes 1.0 wrote `MUTABLE_EXTENSIBILITY`.
            let found = found.trim_end_matches("_EXTENSIBILITY");
            words.iter().find(|(word, _)| word.eq_ignore_ascii_case(found))
        });
        if known.is_none() {
            let all = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            let span = value.map_or(annotation.span, |value| value.span);
            self.say(Diagnostic::error(span, format!("`@{name}` is one of {all}")));
        }
        known.map(|(_, value)| *value)
    }

    pub(super) fn extensibility(&mut self, told: &Annotations<'_>) -> Extensibility {
        self.told_extensibility(told).unwrap_or(self.extensibility)
    }

    pub(super) fn told_extensibility(&mut self, told: &Annotations<'_>) -> Option<Extensibility> {
        const WORDS: [(&str, Extensibility); 4] = [
            ("FINAL", Extensibility::Final),
            ("APPENDABLE", Extensibility::Appendable),
            ("MUTABLE", Extensibility::Mutable),
            ("EXTENSIBLE", Extensibility::Appendable),
        ];
        let mut all = Vec::new();
        for (name, value) in [
            ("final", Extensibility::Final),
            ("appendable", Extensibility::Appendable),
            ("mutable", Extensibility::Mutable),
        ] {
            all.extend(told.find(name).map(|annotation| (value, annotation.span)));
        }
        if let Some(value) = self.annotated_word(told, "extensibility", &WORDS) {
            all.extend(told.find("extensibility").map(|annotation| (value, annotation.span)));
        }
        all.sort_by_key(|(_, span)| *span);
        if let [(one, first), rest @ ..] = all.as_slice()
            && let Some((_, second)) = rest.iter().find(|(other, _)| other != one)
        {
            let said = Diagnostic::error(*second, "a type has one extensibility")
                .note("and this is another", *first);
            self.say(said);
        }
        all.first().map(|(value, _)| *value)
    }

    pub(super) fn hash_ids(&mut self, told: &Annotations<'_>) -> Option<bool> {
        const WORDS: [(&str, AutoId); 2] = [("SEQUENTIAL", AutoId::Sequential), ("HASH", AutoId::Hash)];
        let annotation = told.find("autoid")?;
        if annotation.parameters.is_empty() {
            return Some(true);
        }
        self.annotated_word(told, "autoid", &WORDS).map(|value| value == AutoId::Hash)
    }

    pub(super) fn try_construct(&mut self, told: &Annotations<'_>) -> Option<TryConstruct> {
        const WORDS: [(&str, TryConstruct); 3] = [
            ("DISCARD", TryConstruct::Discard),
            ("USE_DEFAULT", TryConstruct::UseDefault),
            ("TRIM", TryConstruct::Trim),
        ];
        let annotation = told.find("try_construct")?;
        if annotation.parameters.is_empty() {
            return Some(TryConstruct::UseDefault);
        }
        self.annotated_word(told, "try_construct", &WORDS)
    }

    /// The bits of `@data_representation(XCDR1 | XCDR2)`.
    pub(super) fn data_representation(&mut self, told: &Annotations<'_>) -> Option<u32> {
        let annotation = told.find("data_representation")?;
        let mut bits = 0;
        let mut left = annotation.parameters.iter().map(|it| &it.value).collect::<Vec<_>>();
        while let Some(expression) = left.pop() {
            if let ExpressionKind::Binary("|", one, other) = &expression.kind {
                left.extend([&**one, &**other]);
                continue;
            }
            if let ExpressionKind::Number(_) = &expression.kind
                && let Ok(Value::Integer(number)) = self.evaluate(ScopeId::ROOT, expression)
            {
                bits |= number as u32;
                continue;
            }
            match word(expression).as_deref() {
                Some("XCDR1" | "XCDR") => bits |= 1,
                Some("XML") => bits |= 2,
                Some("XCDR2") => bits |= 4,
                _ => {
                    let said =
                        Diagnostic::error(expression.span, "a data representation is XCDR1, XCDR2 or XML");
                    self.say(said.hint("write `@data_representation(XCDR1|XCDR2)`"));
                    return None;
                }
            }
        }
        Some(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_annotation() {
        let page = include_str!("../../../../docs/idl.md");
        let missing = KNOWN.iter().filter(|known| !page.contains(&format!("`@{}`", known.name)));
        assert_eq!(missing.map(|known| known.name).collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
