//! Constant expressions (IDL 4.2 §7.4.1.4.3).

use super::{Parsed, Parser};
use crate::ast::{Expression, ExpressionKind};
use crate::diagnostic::Diagnostic;
use crate::lex::TokenKind;

/// Operators of two operands by how tightly they bind.
const LEVELS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        self.nested(|parser| parser.level(0, false))
    }

    /// An expression before the `>` of a template, where `>>` closes two of them (as in C++; a shift there
    /// stands in parentheses).
    pub(super) fn template_expression(&mut self) -> Parsed<Expression> {
        self.nested(|parser| parser.level(0, true))
    }

    fn level(&mut self, level: usize, in_template: bool) -> Parsed<Expression> {
        let Some(marks) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1, in_template)?;
        let mut count = 0_usize;
        while let Some(TokenKind::Mark(mark)) = self.token().map(|token| &token.kind) {
            if !marks.contains(mark) || (in_template && *mark == ">>") {
                break;
            }
            // A long sum is a deep tree.
            count += 1;
            if count > OPERATORS_MAX {
                let message = format!("the expression has more than {OPERATORS_MAX} operators in a row");
                return self.fail(
                    Diagnostic::error(self.span(), message).hint("introduce a constant for a part of it"),
                );
            }
            self.at += 1;
            let right = self.level(level + 1, in_template)?;
            let span = left.span.to(right.span);
            left = Expression { kind: ExpressionKind::Binary(mark, left.into(), right.into()), span };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expression> {
        let start = self.span();
        for mark in ["-", "+", "~"] {
            if self.take_mark(mark) {
                let operand = self.nested(Self::unary)?;
                let span = start.to(operand.span);
                return Ok(Expression { kind: ExpressionKind::Unary(mark, operand.into()), span });
            }
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed<Expression> {
        let span = self.span();
        if self.take_mark("(") {
            let inner = self.expression()?;
            self.expect_mark(")", "an expression")?;
            return Ok(Expression { span: span.to(self.previous()), ..inner });
        }
        let kind = match self.token().map(|token| &token.kind) {
            Some(TokenKind::Number(text)) => ExpressionKind::Number(text.clone()),
            Some(TokenKind::Character { value, .. }) => ExpressionKind::Character(*value),
            Some(TokenKind::Text { .. }) => return Ok(self.text()),
            Some(TokenKind::Word(word)) if matches!(&**word, "TRUE" | "true" | "True") => {
                ExpressionKind::Boolean(true)
            }
            Some(TokenKind::Word(word)) if matches!(&**word, "FALSE" | "false" | "False") => {
                ExpressionKind::Boolean(false)
            }
            Some(TokenKind::Word(_) | TokenKind::Mark("::")) => {
                let name = self.scoped_name("a value")?;
                let span = name.span;
                return Ok(Expression { kind: ExpressionKind::Name(name), span });
            }
            _ => {
                let message = format!("expected a value, found {}", self.described());
                return self.fail(Diagnostic::error(span, message));
            }
        };
        self.at += 1;
        Ok(Expression { kind, span })
    }

    /// Strings that follow one another are one.
    fn text(&mut self) -> Expression {
        let start = self.span();
        let mut text = String::new();
        while let Some(TokenKind::Text { value, .. }) = self.token().map(|token| &token.kind) {
            text.push_str(value);
            self.at += 1;
        }
        Expression { kind: ExpressionKind::Text(text.into()), span: start.to(self.previous()) }
    }
}

/// Operators of one level that follow one another.
const OPERATORS_MAX: usize = 64;
