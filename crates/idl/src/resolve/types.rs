//! Types where they are used.

use super::annotation::{Annotations, Target};
use super::constant::range;
use super::scope::{ScopeId, SymbolKind};
use super::{Defaults, Missing, Resolved, Resolver};
use crate::ast::{Declarator, Expression, TypeKind, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::limits::ARRAY_ELEMENTS_MAX;
use crate::model::{DefinitionId, DefinitionKind, Element, Primitive, Type};
use crate::source::Span;

impl Resolver<'_> {
    pub(super) fn ty(&mut self, scope: ScopeId, spec: &TypeSpec, defaults: Defaults) -> Resolved<Type> {
        Ok(match &spec.kind {
            TypeKind::Primitive(primitive) => Type::Primitive(*primitive),
            TypeKind::String { wide, bound } => {
                let bound = self.bound(scope, bound.as_ref(), "the bound of a string")?;
                Type::String { wide: *wide, bound }
            }
            TypeKind::Sequence { element, bound } => {
                let element = Box::new(self.element(scope, element, defaults)?);
                Type::Sequence {
                    element,
                    bound: self.bound(scope, bound.as_ref(), "the bound of a sequence")?,
                }
            }
            TypeKind::Map { key, value, bound } => {
                let key_span = key.span;
                let key = Box::new(self.element(scope, key, defaults)?);
                self.check_map_key(&key.ty, key_span)?;
                let value = Box::new(self.element(scope, value, defaults)?);
                Type::Map { key, value, bound: self.bound(scope, bound.as_ref(), "the bound of a map")? }
            }
            TypeKind::Fixed(None) => {
                let said = Diagnostic::error(spec.span, "`fixed` wants its digits and scale");
                return self.fail(said.hint("write `fixed<5, 2>`"));
            }
            TypeKind::Fixed(Some((digits, scale))) => self.fixed(scope, digits, scale)?,
            TypeKind::Named(name) => match self.look_up(scope, name, "type")? {
                SymbolKind::Type { id, .. } => Type::Named(id),
                SymbolKind::Scope { interface: true, .. } => {
                    return Err(Missing::LeftOut(format!("`{}` is an interface", name.text()).into()));
                }
                _ => {
                    let message = format!("`{}` is no type", name.text());
                    return self.fail(Diagnostic::error(spec.span, message));
                }
            },
            TypeKind::Defined(definition) => {
                let id = self.constructed(scope, definition, defaults)?;
                if self.scopes[scope.0].aggregate {
                    let message =
                        format!("a type that is defined within another is called `{}`", self.name_of(id));
                    let said = Diagnostic::warning(spec.span, message);
                    self.say(said.hint("define it before the type that uses it"));
                }
                Type::Named(id)
            }
            TypeKind::Local(what) => {
                return Err(Missing::LeftOut(format!("`{what}` has no representation on the wire").into()));
            }
        })
    }

    fn element(&mut self, scope: ScopeId, spec: &TypeSpec, defaults: Defaults) -> Resolved<Element> {
        let told = self.annotations(&spec.annotations, Target::ELEMENT);
        let ty = self.ty(scope, spec, defaults)?;
        Ok(self.annotated_element(&told, ty))
    }

    fn annotated_element(&mut self, told: &Annotations<'_>, ty: Type) -> Element {
        let external = self.flag(told, "external").or_else(|| self.flag(told, "shared")).unwrap_or(false);
        Element { ty, external, try_construct: self.try_construct(told) }
    }

    fn bound(&mut self, scope: ScopeId, bound: Option<&Expression>, what: &str) -> Resolved<Option<u32>> {
        bound.map(|bound| self.count(scope, bound, what)).transpose()
    }

    fn fixed(&mut self, scope: ScopeId, digits: &Expression, scale: &Expression) -> Resolved<Type> {
        let count = self.count(scope, digits, "the number of digits")?;
        let after = match self.evaluate(scope, scale)? {
            crate::model::Value::Integer(0) => 0,
            _ => self.count(scope, scale, "the scale")?,
        };
        if count > 31 || after > count {
            let said = Diagnostic::error(
                digits.span.to(scale.span),
                "`fixed` has at most 31 digits, and the scale counts some of them",
            );
            return self.fail(said);
        }
        Ok(Type::Fixed { digits: count, scale: after })
    }

    /// Maps are looked up by integers and strings (XTypes 1.3 §7.2.2.4.3), and by enumerations.
    fn check_map_key(&mut self, ty: &Type, span: Span) -> Resolved<()> {
        let fits = match self.underlying(ty) {
            Type::Primitive(primitive) => {
                range(*primitive).is_some() || matches!(primitive, Primitive::Char | Primitive::Boolean)
            }
            Type::String { .. } => true,
            Type::Named(id) => self.enumeration_of(*id).is_some(),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let described = self.describe_type(ty);
        let said = Diagnostic::error(span, format!("a map is not looked up by {described}"));
        self.fail(said.hint("the key of a map is an integer, a string or an enumeration"))
    }

    /// The type with the dimensions that a declarator has.
    pub(super) fn array(&mut self, scope: ScopeId, ty: Type, declarator: &Declarator) -> Resolved<Type> {
        let told = self.annotations(&declarator.annotations, Target::ELEMENT);
        if declarator.dimensions.is_empty() {
            return Ok(ty);
        }
        let mut sizes = Vec::new();
        let mut elements = 1_u64;
        for dimension in &declarator.dimensions {
            let size = self.count(scope, dimension, "the size of an array")?;
            elements = elements.saturating_mul(u64::from(size));
            if elements > ARRAY_ELEMENTS_MAX {
                let message = format!("an array has at most {ARRAY_ELEMENTS_MAX} elements");
                return self.fail(Diagnostic::error(dimension.span, message));
            }
            sizes.push(size);
        }
        let element = self.annotated_element(&told, ty);
        Ok(Type::Array { element: element.into(), dimensions: sizes })
    }

    /// The type within which this one would have to stand, and which is not complete yet.
    pub(super) fn incomplete(&self, ty: &Type) -> Option<DefinitionId> {
        match ty {
            Type::Named(id) => match self.slots[id.0].as_ref().map(|it| &it.kind) {
                None => Some(*id),
                Some(DefinitionKind::Alias(aliased)) => self.incomplete(aliased),
                Some(_) => None,
            },
            Type::Array { element, .. } if !element.external => self.incomplete(&element.ty),
            _ => None,
        }
    }

    /// Refuses a member whose type is not complete, unless it stands elsewhere.
    pub(super) fn check_complete(
        &mut self,
        of: DefinitionId,
        ty: &Type,
        indirect: bool,
        span: Span,
    ) -> Resolved<()> {
        let Some(id) = self.incomplete(ty) else { return Ok(()) };
        self.used_early.entry(id).or_insert(span);
        if indirect {
            return Ok(());
        }
        let message = if id == of {
            "a type cannot contain itself".to_owned()
        } else {
            "this type is declared, and defined only later".to_owned()
        };
        let said = Diagnostic::error(span, message).note("it starts here", self.spans[id.0]);
        self.fail(said.hint("make the member a `sequence`, `@optional` or `@external`"))
    }
}
