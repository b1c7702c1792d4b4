//! The expressions of `#if` and `#elif`.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lex::{Token, TokenKind};
use crate::limits::NESTING_MAX;
use crate::source::Span;

use super::expand::Macros;

/// Whether the expression is not zero. One that makes no sense does not hold, and an error says why.
pub(crate) fn holds(tokens: &[Token], at: Span, macros: &mut Macros, diagnostics: &mut Diagnostics) -> bool {
    let Some(tokens) = replace_defined(tokens, at, macros, diagnostics) else { return false };
    let tokens = macros.expand(tokens, diagnostics);
    let mut reader = Reader { rest: &tokens, at, depth: 0 };
    let value = reader.choice().and_then(|value| match reader.rest.first() {
        None => Ok(value),
        Some(extra) => {
            Err(Diagnostic::error(at, format!("{} does not belong in a condition", extra.describe())))
        }
    });
    match value {
        Ok(value) => value != 0,
        Err(error) => {
            diagnostics.push(error.hint("a condition has integers, `defined(NAME)` and operators of C"));
            false
        }
    }
}

/// Puts 1 or 0 in place of `defined NAME` and `defined(NAME)`.
fn replace_defined(
    tokens: &[Token],
    at: Span,
    macros: &Macros,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Token>> {
    let mut replaced = Vec::new();
    let mut rest = tokens.iter();
    while let Some(token) = rest.next() {
        if token.word().is_none_or(|word| &**word != "defined") {
            replaced.push(token.clone());
            continue;
        }
        let mut next = rest.next();
        let parenthesis = next.is_some_and(|token| token.is_mark("("));
        if parenthesis {
            next = rest.next();
        }
        let name = next.and_then(Token::word);
        let closed = !parenthesis || rest.next().is_some_and(|token| token.is_mark(")"));
        let (Some(name), true) = (name, closed) else {
            let said = Diagnostic::error(at, "`defined` wants the name of a macro");
            diagnostics.push(said.hint("write `defined(NAME)`"));
            return None;
        };
        let digit = if macros.is_defined(name) { "1" } else { "0" };
        replaced.push(Token { kind: TokenKind::Number(digit.into()), ..token.clone() });
    }
    Some(replaced)
}

/// Operators of two operands by how tightly they bind.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Reader<'a> {
    rest: &'a [Token],
    at: Span,
    depth: usize,
}

impl Reader<'_> {
    fn take(&mut self, marks: &[&'static str]) -> Option<&'static str> {
        let (first, rest) = self.rest.split_first()?;
        let TokenKind::Mark(mark) = first.kind else { return None };
        let found = marks.contains(&mark).then_some(mark)?;
        self.rest = rest;
        Some(found)
    }

    fn choice(&mut self) -> Result<i64, Diagnostic> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(Diagnostic::error(
                self.at,
                format!("the condition is nested more than {NESTING_MAX} times"),
            ));
        }
        let condition = self.level(0)?;
        let value = if self.take(&["?"]).is_some() {
            let one = self.choice()?;
            if self.take(&[":"]).is_none() {
                return Err(Diagnostic::error(self.at, "`?` without `:`"));
            }
            let other = self.choice()?;
            if condition != 0 { one } else { other }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    fn level(&mut self, level: usize) -> Result<i64, Diagnostic> {
        let Some(marks) = LEVELS.get(level) else { return self.unary() };
        let mut value = self.level(level + 1)?;
        while let Some(mark) = self.take(marks) {
            let right = self.level(level + 1)?;
            value = self.apply(mark, value, right)?;
        }
        Ok(value)
    }

    fn apply(&self, mark: &str, left: i64, right: i64) -> Result<i64, Diagnostic> {
        let shift = u32::try_from(right).unwrap_or(64);
        Ok(match mark {
            "||" => i64::from(left != 0 || right != 0),
            "&&" => i64::from(left != 0 && right != 0),
            "|" => left | right,
            "^" => left ^ right,
            "&" => left & right,
            "==" => i64::from(left == right),
            "!=" => i64::from(left != right),
            "<" => i64::from(left < right),
            "<=" => i64::from(left <= right),
            ">" => i64::from(left > right),
            ">=" => i64::from(left >= right),
            "<<" => left.checked_shl(shift).unwrap_or(0),
            ">>" => left.checked_shr(shift).unwrap_or(0),
            "+" => left.wrapping_add(right),
            "-" => left.wrapping_sub(right),
            "*" => left.wrapping_mul(right),
            _ if right == 0 => return Err(Diagnostic::error(self.at, "the condition divides by zero")),
            "/" => left.wrapping_div(right),
            _ => left.wrapping_rem(right),
        })
    }

    fn unary(&mut self) -> Result<i64, Diagnostic> {
        let mut marks = Vec::new();
        while let Some(mark) = self.take(&["!", "-", "+", "~"]) {
            marks.push(mark);
        }
        let mut value = self.primary()?;
        for mark in marks.into_iter().rev() {
            value = match mark {
                "!" => i64::from(value == 0),
                "-" => value.wrapping_neg(),
                "~" => !value,
                _ => value,
            };
        }
        Ok(value)
    }

    fn primary(&mut self) -> Result<i64, Diagnostic> {
        if self.take(&["("]).is_some() {
            let value = self.choice()?;
            return match self.take(&[")"]) {
                Some(_) => Ok(value),
                None => Err(Diagnostic::error(self.at, "`)` is missing in the condition")),
            };
        }
        let Some((first, rest)) = self.rest.split_first() else {
            return Err(Diagnostic::error(self.at, "the condition ends too early"));
        };
        self.rest = rest;
        match &first.kind {
            TokenKind::Number(text) => number(text)
                .ok_or_else(|| Diagnostic::error(self.at, format!("`{text}` is no integer of 64 bits"))),
            // As in C, a name that is no macro is zero.
            TokenKind::Word(word) => Ok(i64::from(&**word == "true")),
            TokenKind::Character { value, .. } => Ok(i64::from(u32::from(*value))),
            _ => Err(Diagnostic::error(
                self.at,
                format!("{} does not belong in a condition", first.describe()),
            )),
        }
    }
}

/// An integer of C, with its suffixes.
fn number(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (digits.get(2..)?, 16),
        [b'0', _, ..] => (digits.get(1..)?, 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok().map(|value| value as i64)
}
