//! Types where they are used (IDL 4.2 §7.4.1.4.4, and the extended data types).

use super::{Parsed, Parser};
use crate::ast::{Declarator, Definition, Expression, Primitive, TypeKind, TypeSpec};
use crate::diagnostic::{Diagnostic, closest};
use crate::lex::Token;

impl Parser<'_> {
    /// A type, with the annotations that stand before it.
    pub(super) fn type_spec(&mut self, of: &str) -> Parsed<TypeSpec> {
        self.nested(|parser| {
            let annotations = parser.annotations()?;
            let start = parser.span();
            let kind = parser.type_kind(of)?;
            Ok(TypeSpec { annotations, kind, span: start.to(parser.previous()) })
        })
    }

    fn type_kind(&mut self, of: &str) -> Parsed<TypeKind> {
        let Some(word) = self.token().and_then(Token::word) else {
            if self.is_mark("::") {
                return self.scoped_name("a type").map(TypeKind::Named);
            }
            let message = format!("expected the type of {of}, found {}", self.described());
            return self.fail(Diagnostic::error(self.span(), message));
        };
        // Names from before a keyword was one: `map::Tile`, or `map` alone where no `<` follows.
        let next = self.ahead(1);
        if next.is_some_and(|next| next.is_mark("::")) {
            return self.scoped_name("a type").map(TypeKind::Named);
        }
        if let Some(primitive) = self.primitive(word)? {
            return Ok(TypeKind::Primitive(primitive));
        }
        match &**word {
            "string" | "wstring" => {
                let wide = self.take_word("wstring");
                self.at += usize::from(!wide);
                let bound = self.string_bound()?;
                Ok(TypeKind::String { wide, bound })
            }
            "sequence" => self.sequence(),
            "map" if next.is_some_and(|next| next.is_mark("<")) => self.map(),
            "fixed" => self.fixed(),
            "any" => self.local("any"),
            "Object" => self.local("Object"),
            "ValueBase" => self.local("ValueBase"),
            "struct" | "union" | "enum" => {
                let kind = self.constructed()?;
                Ok(TypeKind::Defined(Definition { annotations: Vec::new(), kind }.into()))
            }
            "void" => {
                let said = Diagnostic::error(self.span(), "`void` is no type of data");
                self.fail(said.hint("use a structure without members for data that says nothing"))
            }
            "const" | "typedef" | "module" | "case" | "default" | "switch" | "in" | "out" | "inout" => {
                let message = format!("expected the type of {of}, found the keyword `{word}`");
                self.fail(Diagnostic::error(self.span(), message))
            }
            _ => self.scoped_name("a type").map(TypeKind::Named),
        }
    }

    fn local(&mut self, what: &'static str) -> Parsed<TypeKind> {
        self.at += 1;
        Ok(TypeKind::Local(what))
    }

    /// The basic type that starts with this word.
    fn primitive(&mut self, word: &str) -> Parsed<Option<Primitive>> {
        let one = match word {
            "boolean" => Primitive::Boolean,
            "octet" => Primitive::Octet,
            "char" => Primitive::Char,
            "wchar" => Primitive::WChar,
            "int8" => Primitive::Int8,
            "uint8" => Primitive::UInt8,
            "short" | "int16" => Primitive::Int16,
            "uint16" => Primitive::UInt16,
            "int32" => Primitive::Int32,
            "uint32" => Primitive::UInt32,
            "int64" => Primitive::Int64,
            "uint64" => Primitive::UInt64,
            "float" => Primitive::Float32,
            "double" => Primitive::Float64,
            "long" => {
                self.at += 1;
                return Ok(Some(match () {
                    () if self.take_word("long") => Primitive::Int64,
                    () if self.take_word("double") => Primitive::Float128,
                    () => Primitive::Int32,
                }));
            }
            "unsigned" => {
                self.at += 1;
                if self.take_word("short") {
                    return Ok(Some(Primitive::UInt16));
                }
                if !self.take_word("long") {
                    let message =
                        format!("expected `short` or `long` after `unsigned`, found {}", self.described());
                    let said = Diagnostic::error(self.span(), message);
                    return self.fail(said.hint("an octet without sign is `uint8` or `octet`"));
                }
                let wide = self.take_word("long");
                return Ok(Some(if wide { Primitive::UInt64 } else { Primitive::UInt32 }));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(one))
    }

    fn string_bound(&mut self) -> Parsed<Option<Expression>> {
        if !self.take_mark("<") {
            return Ok(None);
        }
        let bound = self.template_expression()?;
        self.close_template("the bound of a string")?;
        Ok(Some(bound))
    }

    fn sequence(&mut self) -> Parsed<TypeKind> {
        self.at += 1;
        self.expect_mark("<", "`sequence`")?;
        let element = Box::new(self.type_spec("an element")?);
        let bound = self.template_bound()?;
        self.close_template("the element of a sequence")?;
        Ok(TypeKind::Sequence { element, bound })
    }

    fn map(&mut self) -> Parsed<TypeKind> {
        self.at += 1;
        self.expect_mark("<", "`map`")?;
        let key = Box::new(self.type_spec("a key")?);
        self.expect_mark(",", "the key of a map")?;
        let value = Box::new(self.type_spec("a value")?);
        let bound = self.template_bound()?;
        self.close_template("the value of a map")?;
        Ok(TypeKind::Map { key, value, bound })
    }

    fn template_bound(&mut self) -> Parsed<Option<Expression>> {
        // After `sequence<sequence<long>`, half of a `>>` is left, and it is no `,`.
        if self.half || !self.take_mark(",") {
            return Ok(None);
        }
        self.template_expression().map(Some)
    }

    fn fixed(&mut self) -> Parsed<TypeKind> {
        self.at += 1;
        if !self.take_mark("<") {
            return Ok(TypeKind::Fixed(None));
        }
        let digits = self.template_expression()?;
        self.expect_mark(",", "the digits of `fixed`")?;
        let scale = self.template_expression()?;
        self.close_template("the scale of `fixed`")?;
        Ok(TypeKind::Fixed(Some((digits, scale))))
    }

    /// Names with their array dimensions, up to the `;`.
    pub(super) fn declarators(&mut self, of: &str) -> Parsed<Vec<Declarator>> {
        let mut declarators = vec![self.declarator(of)?];
        while self.take_mark(",") {
            declarators.push(self.declarator(of)?);
        }
        Ok(declarators)
    }

    pub(super) fn declarator(&mut self, of: &str) -> Parsed<Declarator> {
        let name = match self.name(of) {
            Ok(name) => name,
            Err(failed) => {
                self.misspelt_type();
                return Err(failed);
            }
        };
        let annotations = self.annotations()?;
        let mut dimensions = Vec::new();
        while self.take_mark("[") {
            if self.is_mark("]") {
                let said = Diagnostic::error(self.span(), "an array has a size");
                return self.fail(said.hint("data whose length varies is a `sequence<…>`"));
            }
            dimensions.push(self.expression()?);
            self.expect_mark("]", "the size of an array")?;
        }
        Ok(Declarator { name, annotations, dimensions })
    }

    /// A word before what should be a name may be a type of another language.
    fn misspelt_type(&mut self) {
        let Some(word) = self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).and_then(Token::word)
        else {
            return;
        };
        const TYPES: [&str; 9] =
            ["boolean", "octet", "short", "long", "float", "double", "string", "sequence", "unsigned"];
        let foreign = match &**word {
            "int" => Some("long"),
            "bool" => Some("boolean"),
            "byte" => Some("octet"),
            "std" => Some("string"),
            other => closest(other, TYPES.into_iter()).filter(|known| *known != other),
        };
        if let Some(meant) = foreign {
            let said = Diagnostic::error(self.previous(), format!("IDL has no type `{word}`"));
            self.say(said.hint(format!("did you mean `{meant}`?")));
        }
    }
}
