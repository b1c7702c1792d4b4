//! Members, and the types that their attributes tell (XTypes 1.3 §7.3.2.2 to 7.3.2.4).

use super::document::{Attribute, Element};
use super::{Parsed, Reader, span_of};
use crate::ast::{
    Annotation, Declarator, Definition, DefinitionKind, Expression, Name, Primitive, TypeKind, TypeSpec,
};
use crate::diagnostic::{Diagnostic, closest};

/// The standard's names of types, then those of others.
const BASIC: [(&str, Primitive); 31] = [
    ("boolean", Primitive::Boolean),
    ("byte", Primitive::Octet),
    ("char8", Primitive::Char),
    ("char16", Primitive::WChar),
    ("int8", Primitive::Int8),
    ("uint8", Primitive::UInt8),
    ("int16", Primitive::Int16),
    ("uint16", Primitive::UInt16),
    ("int32", Primitive::Int32),
    ("uint32", Primitive::UInt32),
    ("int64", Primitive::Int64),
    ("uint64", Primitive::UInt64),
    ("float32", Primitive::Float32),
    ("float64", Primitive::Float64),
    ("float128", Primitive::Float128),
    ("bool", Primitive::Boolean),
    ("octet", Primitive::Octet),
    ("char", Primitive::Char),
    ("wchar", Primitive::WChar),
    ("short", Primitive::Int16),
    ("unsignedShort", Primitive::UInt16),
    ("uShort", Primitive::UInt16),
    ("long", Primitive::Int32),
    ("unsignedLong", Primitive::UInt32),
    ("uLong", Primitive::UInt32),
    ("longLong", Primitive::Int64),
    ("unsignedLongLong", Primitive::UInt64),
    ("uLongLong", Primitive::UInt64),
    ("float", Primitive::Float32),
    ("double", Primitive::Float64),
    ("longDouble", Primitive::Float128),
];

/// Attributes that tell a type.
pub(super) const TYPE_ATTRIBUTES: [&str; 13] = [
    "name",
    "type",
    "nonBasicTypeName",
    "stringMaxLength",
    "sequenceMaxLength",
    "arrayDimensions",
    "mapMaxLength",
    "mapKeyType",
    "mapKeyNonBasicTypeName",
    "mapKeyStringMaxLength",
    "key_type",
    "external",
    "tryConstruct",
];

const MEMBER_ATTRIBUTES: [&str; 16] = [
    "id",
    "hashid",
    "hashId",
    "key",
    "optional",
    "mustUnderstand",
    "must_understand",
    "nonSerialized",
    "non_serialized",
    "default",
    "min",
    "max",
    "unit",
    "try_construct",
    // RTI Connext has them for its own C++.
    "pointer",
    "visibility",
];

/// A type where it is used, and what an array adds to the name.
pub(super) struct Told {
    pub(super) ty: TypeSpec,
    pub(super) dimensions: Vec<Expression>,
}

impl Reader<'_> {
    pub(super) fn member(&mut self, element: &Element) -> Parsed<(Vec<Annotation>, TypeSpec, Declarator)> {
        let known = TYPE_ATTRIBUTES.iter().chain(&MEMBER_ATTRIBUTES).copied().collect::<Vec<_>>();
        self.check(element, &known);
        let name = self.name(element);
        let Told { ty, dimensions } = self.told_type(element)?;
        let declarator = Declarator { name: name?, annotations: Vec::new(), dimensions };
        Ok((self.member_annotations(element)?, ty, declarator))
    }

    fn member_annotations(&mut self, element: &Element) -> Parsed<Vec<Annotation>> {
        const FLAGS: [(&[&str], &str); 5] = [
            (&["key"], "key"),
            (&["optional"], "optional"),
            (&["mustUnderstand", "must_understand"], "must_understand"),
            (&["nonSerialized", "non_serialized"], "non_serialized"),
            (&["external"], "external"),
        ];
        let mut annotations = self.applied(element);
        for (attributes, annotation) in FLAGS {
            annotations.extend(self.flag_annotation(element, attributes, annotation));
        }
        if let Some(attribute) = element.attribute("id") {
            // RTI Connext: the id is that of the order.
            if attribute.value != "-1" {
                annotations.extend(self.number_annotation(element, &["id"], "id"));
            }
        }
        if let Some(attribute) = element.any(&["hashid", "hashId"]) {
            let of = Expression::text(&attribute.value, attribute.span);
            annotations.push(Annotation::one(Name::new("hashid", attribute.span), of));
        }
        annotations.extend(Self::word_annotation(
            element,
            &["tryConstruct", "try_construct"],
            "try_construct",
        ));
        if let Some(attribute) = element.attribute("unit") {
            let unit = Expression::text(&attribute.value, attribute.span);
            annotations.push(Annotation::one(Name::new("unit", attribute.span), unit));
        }
        for name in ["default", "min", "max"] {
            if let Some(attribute) = element.attribute(name) {
                let value = self.value_of(element, attribute)?;
                annotations.push(Annotation::one(Name::new(name, attribute.span), value));
            }
        }
        Ok(annotations)
    }

    pub(super) fn typedef(&mut self, element: &Element) -> Parsed<(Vec<Annotation>, DefinitionKind)> {
        const MORE: [&str; 5] = ["default", "min", "max", "unit", "visibility"];
        let known = TYPE_ATTRIBUTES.iter().chain(&MORE).copied().collect::<Vec<_>>();
        self.check(element, &known);
        let name = self.name(element);
        let Told { ty, dimensions } = self.told_type(element)?;
        let declarators = vec![Declarator { name: name?, annotations: Vec::new(), dimensions }];
        let annotations = self.applied(element);
        Ok((annotations, DefinitionKind::Typedef { ty, declarators }))
    }

    pub(super) fn constant(&mut self, element: &Element) -> Parsed<(Vec<Annotation>, DefinitionKind)> {
        self.check(element, &["name", "type", "nonBasicTypeName", "value", "stringMaxLength"]);
        let name = self.name(element)?;
        let ty = self.told_type(element)?.ty;
        let Some(value) = element.attribute("value") else {
            let said = Diagnostic::error(element.span, format!("the constant `{}` has no value", name.text));
            return self.fail(said.hint("write `value=\"…\"`"));
        };
        let value = self.value_of(element, value)?;
        Ok((self.applied(element), DefinitionKind::Constant { ty, name, value }))
    }

    /// A field of a structure that is a constant, which then stands before the structure.
    pub(super) fn inner_constant(&mut self, element: &Element, to: &mut Vec<Definition>) -> Parsed<()> {
        let (annotations, kind) = self.constant(element)?;
        to.push(Definition { annotations, kind });
        Ok(())
    }

    /// Sequences bind more tightly than arrays, and these more than maps (§7.3.2.4.4).
    pub(super) fn told_type(&mut self, element: &Element) -> Parsed<Told> {
        let span =
            span_of(element, if element.attribute("type").is_some() { "type" } else { "nonBasicTypeName" });
        if element.attribute("type").is_some_and(|it| it.value == "map") {
            return self.map_of_elements(element, span);
        }
        let mut ty = self.basic(element, ["type", "nonBasicTypeName", "stringMaxLength"])?;
        let spec = |kind| TypeSpec { annotations: Vec::new(), kind, span };
        if let Some(bound) = element.attribute("sequenceMaxLength") {
            let bound = self.bound(bound)?;
            ty = spec(TypeKind::Sequence { element: Box::new(ty), bound });
        }
        let dimensions = match element.attribute("arrayDimensions") {
            Some(attribute) => self.expressions(attribute)?,
            None => Vec::new(),
        };
        let key = element.any(&["mapKeyType", "key_type"]);
        if key.is_none() && element.attribute("mapMaxLength").is_none() {
            return Ok(Told { ty, dimensions });
        }
        if let (Some(attribute), false) = (element.attribute("arrayDimensions"), dimensions.is_empty()) {
            let said = Diagnostic::error(attribute.span, "a map of arrays wants a `<typedef>` of the array");
            return self.fail(said.hint("define the array, and name it by `nonBasicTypeName`"));
        }
        let key_name =
            key.map_or("mapKeyType", |it| if it.name == "key_type" { "key_type" } else { "mapKeyType" });
        let key = self.basic(element, [key_name, "mapKeyNonBasicTypeName", "mapKeyStringMaxLength"])?;
        let bound = match element.attribute("mapMaxLength") {
            Some(bound) => self.bound(bound)?,
            None => None,
        };
        let kind = TypeKind::Map { key: Box::new(key), value: Box::new(ty), bound };
        Ok(Told { ty: spec(kind), dimensions: Vec::new() })
    }

    /// As OpenDDS writes maps: `<member type="map"><key …/><value …/></member>`.
    fn map_of_elements(&mut self, element: &Element, span: crate::source::Span) -> Parsed<Told> {
        let find = |name: &str| element.children.iter().find(|child| child.name == name);
        let (Some(key), Some(value)) = (find("key"), find("value")) else {
            let said = Diagnostic::error(span, "a map has a key and a value");
            return self
                .fail(said.hint("write `mapKeyType=\"…\"`, or `<key type=\"…\"/><value type=\"…\"/>`"));
        };
        let (key, value) = (self.told_type(key)?, self.told_type(value)?);
        if !key.dimensions.is_empty() || !value.dimensions.is_empty() {
            let said = Diagnostic::error(span, "a map of arrays wants a `<typedef>` of the array");
            return self.fail(said);
        }
        let bound = match element.attribute("mapMaxLength") {
            Some(bound) => self.bound(bound)?,
            None => None,
        };
        let dimensions = match element.attribute("arrayDimensions") {
            Some(attribute) => self.expressions(attribute)?,
            None => Vec::new(),
        };
        let kind = TypeKind::Map { key: Box::new(key.ty), value: Box::new(value.ty), bound };
        Ok(Told { ty: TypeSpec { annotations: Vec::new(), kind, span }, dimensions })
    }

    /// A type without collections: the attributes are those of its kind, its name and the bound of a string.
    fn basic(&mut self, element: &Element, attributes: [&str; 3]) -> Parsed<TypeSpec> {
        let [kind, name, bound] = attributes.map(|name| element.attribute(name));
        let span = kind.or(name).map_or(element.span, |it| it.span);
        let told = kind.map_or_else(|| if name.is_some() { "nonBasic" } else { "" }, |it| &*it.value);
        let kind = match told {
            "string" | "wstring" => TypeKind::String {
                wide: told == "wstring",
                bound: match bound {
                    Some(bound) => self.bound(bound)?,
                    None => None,
                },
            },
            "nonBasic" => match name {
                Some(name) => TypeKind::Named(self.type_name(name)?),
                None => {
                    let message = format!("`nonBasic` wants the name of a type in `{}`", attributes[1]);
                    return self.fail(Diagnostic::error(span, message));
                }
            },
            "" => {
                let said = Diagnostic::error(span, format!("`<{}>` tells no type", element.name));
                return self.fail(said.hint(format!("write `{}=\"int32\"`", attributes[0])));
            }
            other => match BASIC.iter().find(|(name, _)| *name == other) {
                Some((_, primitive)) => TypeKind::Primitive(*primitive),
                None => return self.fail(unknown_type(other, span, attributes)),
            },
        };
        if let (Some(bound), false) = (bound, matches!(kind, TypeKind::String { .. })) {
            self.stray_bound(bound);
        }
        Ok(TypeSpec { annotations: Vec::new(), kind, span })
    }

    fn stray_bound(&mut self, bound: &Attribute) {
        let said = Diagnostic::warning(bound.span, format!("`{}` has no effect here", bound.name));
        let said = said.hint("it belongs to strings; the bound of an alias stands where it is defined");
        self.diagnostics.push_once(&format!("<{}>", bound.name), said);
    }
}

fn unknown_type(told: &str, span: crate::source::Span, attributes: [&str; 3]) -> Diagnostic {
    let said = Diagnostic::error(span, format!("`{told}` is no basic type"));
    let known = BASIC.iter().map(|(name, _)| *name).chain(["string", "wstring", "nonBasic"]);
    match closest(told, known) {
        Some(meant) => said.hint(format!("did you mean `{meant}`?")),
        None => said.hint(format!(
            "a type that is defined is `{}=\"nonBasic\" {}=\"{told}\"`",
            attributes[0], attributes[1]
        )),
    }
}
