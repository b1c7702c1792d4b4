//! Structures, unions, enumerations, bitmasks and bitsets (XTypes 1.3 §7.3.2.5 and 7.3.2.7).

use super::document::{Attribute, Element};
use super::{Parsed, Reader};
use crate::ast::{
    Annotation, Bitfield, Bitmask, Bitset, Case, Definition, DefinitionKind, Enumeration, Expression,
    ExpressionKind, Literal, Member, Name, Primitive, ScopedName, Structure, TypeKind, TypeSpec, Union,
};
use crate::diagnostic::Diagnostic;

/// Attributes of structures and unions. Those after the first are of RTI Connext.
const AGGREGATE: [&str; 8] = [
    "name",
    "extensibility",
    "nested",
    "autoid",
    "baseType",
    "topLevel",
    "allowedDataRepresentation",
    "languageBinding",
];

fn is_character(discriminator: Option<&TypeSpec>) -> bool {
    let kind = discriminator.map(|it| &it.kind);
    matches!(kind, Some(TypeKind::Primitive(Primitive::Char | Primitive::WChar)))
}

impl Reader<'_> {
    /// What attributes say of a structure, union or module.
    pub(super) fn aggregate_annotations(&mut self, element: &Element) -> Vec<Annotation> {
        let mut annotations = self.applied(element);
        annotations.extend(Self::word_annotation(element, &["extensibility"], "extensibility"));
        annotations.extend(Self::word_annotation(element, &["autoid"], "autoid"));
        annotations.extend(self.flag_annotation(element, &["nested"], "nested"));
        if let Some(attribute) = element.attribute("topLevel")
            && element.attribute("nested").is_none()
            && self.flag(attribute) == Some(false)
        {
            annotations.push(Annotation::with(Name::new("nested", attribute.span), std::iter::empty()));
        }
        annotations
    }

    fn base(&mut self, element: &Element) -> Parsed<Option<ScopedName>> {
        // RTI Connext writes an empty one where there is none.
        match element.attribute("baseType").filter(|it| !it.value.is_empty()) {
            Some(attribute) => self.type_name(attribute).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn structure(
        &mut self,
        element: &Element,
        to: &mut Vec<Definition>,
    ) -> Parsed<(Vec<Annotation>, DefinitionKind)> {
        self.check(element, &AGGREGATE);
        let name = self.name(element);
        let base = self.base(element);
        let mut members = Vec::new();
        let mut failed = false;
        for child in &element.children {
            match &*child.name {
                "member" => match self.member(child) {
                    Ok((annotations, ty, declarator)) => {
                        members.push(Member { annotations, ty, declarators: vec![declarator] });
                    }
                    Err(_) => failed = true,
                },
                "const" => failed |= self.inner_constant(child, to).is_err(),
                "annotate" | "verbatim" => {}
                other => {
                    let known = ["member", "const", "annotate", "verbatim"];
                    failed |= self.unknown::<()>(child, other, "a part of a structure", &known).is_err();
                }
            }
        }
        let annotations = self.aggregate_annotations(element);
        let structure = Structure { name: name?, base: base?, members };
        if failed { Err(super::Failed) } else { Ok((annotations, DefinitionKind::Structure(structure))) }
    }

    pub(super) fn union(&mut self, element: &Element) -> Parsed<(Vec<Annotation>, DefinitionKind)> {
        self.check(element, &AGGREGATE);
        let name = self.name(element);
        let mut discriminator = None;
        let mut cases = Vec::new();
        let mut failed = false;
        for child in &element.children {
            match &*child.name {
                "discriminator" => {
                    self.check(child, &["type", "nonBasicTypeName", "key", "name"]);
                    match self.told_type(child) {
                        Ok(told) => {
                            let mut ty = told.ty;
                            ty.annotations = self.applied(child);
                            ty.annotations.extend(self.flag_annotation(child, &["key"], "key"));
                            discriminator = Some(ty);
                        }
                        Err(_) => failed = true,
                    }
                }
                "case" => match self.case(child, is_character(discriminator.as_ref())) {
                    Ok(case) => cases.push(case),
                    Err(_) => failed = true,
                },
                "annotate" | "verbatim" => {}
                other => {
                    let known = ["discriminator", "case", "annotate", "verbatim"];
                    failed |= self.unknown::<()>(child, other, "a part of a union", &known).is_err();
                }
            }
        }
        let annotations = self.aggregate_annotations(element);
        let name = name?;
        if failed {
            return Err(super::Failed);
        }
        let Some(discriminator) = discriminator else {
            let said =
                Diagnostic::error(element.span, format!("the union `{}` has no discriminator", name.text));
            return self.fail(said.hint("write `<discriminator type=\"int32\"/>` before its cases"));
        };
        Ok((annotations, DefinitionKind::Union(Union { name, discriminator, cases })))
    }

    fn case(&mut self, element: &Element, of_characters: bool) -> Parsed<Case> {
        let (mut labels, mut default) = (Vec::new(), None);
        let mut member = None;
        for child in &element.children {
            match &*child.name {
                "caseDiscriminator" => {
                    self.check(child, &["value"]);
                    match child.attribute("value") {
                        Some(value) if value.value == "default" => default = Some(value.span),
                        Some(value) => labels.push(self.label(value, of_characters)?),
                        None => {
                            let said = Diagnostic::error(child.span, "`<caseDiscriminator>` has no value");
                            return self.fail(said.hint("write `value=\"1\"` or `value=\"default\"`"));
                        }
                    }
                }
                "member" if member.is_none() => member = Some(self.member(child)?),
                "member" => {
                    return self.fail(Diagnostic::error(child.span, "a case of a union has one member"));
                }
                other => {
                    let known = ["caseDiscriminator", "member"];
                    return self.unknown(child, other, "a part of a case", &known);
                }
            }
        }
        if labels.is_empty() && default.is_none() {
            let said = Diagnostic::error(element.span, "this case has no `<caseDiscriminator>`");
            return self.fail(said);
        }
        let Some((annotations, ty, declarator)) = member else {
            let said = Diagnostic::error(element.span, "this case has no `<member>`");
            return self.fail(said.hint("leave the case out: what no label selects is no member"));
        };
        Ok(Case { labels, default, annotations, ty, declarator })
    }

    /// A label. Where a character selects, letters need no quotes, and a number is that of a character.
    fn label(&mut self, value: &Attribute, of_characters: bool) -> Parsed<Expression> {
        let mut letters = value.value.chars();
        let letter = match (letters.next(), letters.next()) {
            (Some(letter), None) if !letter.is_ascii_digit() => Some(letter),
            _ => value.value.parse().ok().and_then(char::from_u32),
        };
        match letter {
            Some(letter) if of_characters => {
                Ok(Expression { kind: ExpressionKind::Character(letter), span: value.span })
            }
            _ => self.expression(value),
        }
    }

    pub(super) fn enumeration(&mut self, element: &Element) -> Parsed<(Vec<Annotation>, DefinitionKind)> {
        self.check(element, &["name", "bitBound", "bit_bound", "extensibility", "topLevel", "nested"]);
        let name = self.name(element);
        let mut literals = Vec::new();
        for child in &element.children {
            match &*child.name {
                "enumerator" => {
                    self.check(child, &["name", "value", "defaultLiteral", "default_literal"]);
                    let mut annotations = self.applied(child);
                    annotations.extend(self.number_annotation(child, &["value"], "value"));
                    let default = ["defaultLiteral", "default_literal"];
                    annotations.extend(self.flag_annotation(child, &default, "default_literal"));
                    literals.push(Literal { annotations, name: self.name(child)?, value: None });
                }
                "annotate" | "verbatim" => {}
                other => {
                    let known = ["enumerator", "annotate", "verbatim"];
                    return self.unknown(child, other, "a part of an enumeration", &known);
                }
            }
        }
        let mut annotations = self.applied(element);
        annotations.extend(Self::word_annotation(element, &["extensibility"], "extensibility"));
        annotations.extend(self.number_annotation(element, &["bitBound", "bit_bound"], "bit_bound"));
        Ok((annotations, DefinitionKind::Enumeration(Enumeration { name: name?, literals, scoped: true })))
    }

    pub(super) fn bitmask(&mut self, element: &Element) -> Parsed<(Vec<Annotation>, DefinitionKind)> {
        self.check(element, &["name", "bitBound", "bit_bound", "extensibility"]);
        let name = self.name(element);
        let mut flags = Vec::new();
        for child in &element.children {
            match &*child.name {
                // Fast DDS has `bit_value`; OpenDDS tells the position as `value`.
                "flag" | "bit_value" => {
                    self.check(child, &["name", "position", "value"]);
                    let mut annotations = self.applied(child);
                    annotations.extend(self.number_annotation(child, &["position", "value"], "position"));
                    flags.push(Literal { annotations, name: self.name(child)?, value: None });
                }
                "annotate" | "verbatim" => {}
                other => {
                    let known = ["flag", "annotate", "verbatim"];
                    return self.unknown(child, other, "a part of a bitmask", &known);
                }
            }
        }
        let mut annotations = self.applied(element);
        annotations.extend(self.number_annotation(element, &["bitBound", "bit_bound"], "bit_bound"));
        Ok((annotations, DefinitionKind::Bitmask(Bitmask { name: name?, flags })))
    }

    pub(super) fn bitset(&mut self, element: &Element) -> Parsed<(Vec<Annotation>, DefinitionKind)> {
        self.check(element, &["name", "baseType"]);
        let name = self.name(element)?;
        let base = self.base(element)?;
        let mut fields = Vec::new();
        for child in &element.children {
            match &*child.name {
                "bitfield" => {
                    self.check(child, &["name", "type", "nonBasicTypeName", "bitBound", "bit_bound", "bits"]);
                    let Some(bits) = child.any(&["bitBound", "bit_bound", "bits"]) else {
                        let said = Diagnostic::error(child.span, "`<bitfield>` tells no number of bits");
                        return self.fail(said.hint("write `bitBound=\"3\"`"));
                    };
                    let width = self.expression(bits)?;
                    let ty = match child.attribute("type") {
                        Some(_) => Some(self.told_type(child)?.ty),
                        None => None,
                    };
                    let named = child.attribute("name").is_some_and(|it| !it.value.is_empty());
                    let names = if named { vec![self.name(child)?] } else { Vec::new() };
                    fields.push(Bitfield { annotations: Vec::new(), width, ty, names });
                }
                "annotate" | "verbatim" => {}
                other => {
                    let known = ["bitfield", "annotate", "verbatim"];
                    return self.unknown(child, other, "a part of a bitset", &known);
                }
            }
        }
        let annotations = self.applied(element);
        Ok((annotations, DefinitionKind::Bitset(Bitset { name, base, fields })))
    }
}
