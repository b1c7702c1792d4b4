//! Annotations (IDL 4.2 §7.4.15).

use std::sync::Arc;

use super::{Parsed, Parser};
use crate::ast::{Annotation, DefinitionKind, Parameter};
use crate::lex::Token;

impl Parser<'_> {
    /// Those that stand here.
    pub(super) fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.is_mark("@") && !self.is_annotation_declaration() {
            annotations.push(self.annotation()?);
        }
        Ok(annotations)
    }

    fn is_annotation_declaration(&self) -> bool {
        let word = |by| self.ahead(by).and_then(Token::word);
        word(1).is_some_and(|word| &**word == "annotation") && word(2).is_some()
    }

    fn annotation(&mut self) -> Parsed<Annotation> {
        let start = self.span();
        self.at += 1;
        let name = self.scoped_name(super::ANNOTATION)?;
        let mut parameters = Vec::new();
        if self.take_mark("(") {
            while !self.is_mark(")") {
                parameters.push(self.parameter()?);
                if !self.take_mark(",") {
                    break;
                }
            }
            self.expect_mark(")", "the parameters of an annotation")?;
        }
        Ok(Annotation { name, parameters, span: start.to(self.previous()) })
    }

    fn parameter(&mut self) -> Parsed<Parameter> {
        let named = self.ahead(1).is_some_and(|next| next.is_mark("="));
        let name = match self.token().and_then(Token::word) {
            Some(word) if named => {
                let name = crate::ast::Name { text: Arc::clone(word), span: self.span() };
                self.at += 2;
                Some(name)
            }
            _ => None,
        };
        Ok(Parameter { name, value: self.expression()? })
    }

    /// `@annotation Name { … };`: its parameters are not looked at.
    pub(super) fn annotation_declaration(&mut self) -> Parsed<Option<DefinitionKind>> {
        if !self.is_mark("@") || !self.is_annotation_declaration() {
            return Ok(None);
        }
        self.at += 2;
        let name = self.name("an annotation")?;
        self.body("the annotation", |parser| {
            parser.recover();
            Ok(())
        })?;
        Ok(Some(DefinitionKind::Annotation(name)))
    }
}
