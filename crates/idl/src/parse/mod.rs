//! Tokens to an [`ast`](crate::ast), by recursive descent (IDL 4.2 §7.4). After an error it goes on with the
//! next member or definition, so that one run finds all.

mod annotation;
mod definition;
mod expression;
mod types;

use std::sync::Arc;

use crate::ast::{Definition, Expression, Name, ScopedName};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lex::{Lexer, Token, TokenKind};
use crate::limits::{NESTING_MAX, TOKENS_MAX};
use crate::source::{FileId, Span};

/// What was wrong has been said.
pub(crate) struct Failed;

pub(crate) type Parsed<T> = Result<T, Failed>;

/// The definitions of one preprocessed input.
pub(crate) fn parse(file: FileId, tokens: &[Token], diagnostics: &mut Diagnostics) -> Vec<Definition> {
    let end = tokens.last().map_or(Span { file, start: 0, end: 0 }, |token| token.span.after());
    let mut parser = Parser { tokens, at: 0, half: false, end, depth: 0, stopped: false, diagnostics };
    let mut definitions = Vec::new();
    while !parser.is_at_end() {
        if parser.is_mark("}") {
            let said = Diagnostic::error(parser.span(), "this `}` closes nothing");
            parser.say(said.hint("remove it, or look for a `{` that is missing before it"));
            parser.at += 1;
            parser.take_mark(";");
            continue;
        }
        parser.definition(&mut definitions);
    }
    definitions
}

/// The constant expression that `value` is. It stands at `place` of a file, whose text is told if the value
/// is written there as it is, and no character of it in another way.
pub(crate) fn expression(
    text: Option<&str>,
    value: &str,
    place: Span,
    diagnostics: &mut Diagnostics,
) -> Option<Expression> {
    let mut own = Diagnostics::default();
    let mut lexer = match text {
        Some(text) => Lexer::of_piece(text, place),
        None => Lexer::of_piece(value, Span { start: 0, end: value.len() as u32, ..place }),
    };
    let mut tokens = std::iter::from_fn(|| lexer.next(&mut own)).take(TOKENS_MAX).collect::<Vec<_>>();
    if text.is_none() {
        tokens.iter_mut().for_each(|token| token.span = place);
    }
    let end = place.after();
    let mut parser =
        Parser { tokens: &tokens, at: 0, half: false, end, depth: 0, stopped: false, diagnostics: &mut own };
    let mut parsed = parser.expression().ok();
    if parsed.is_some() && !parser.is_at_end() {
        let message = format!("expected the end of the value, found {}", parser.described());
        parser.say(Diagnostic::error(parser.span(), message));
        parsed = None;
    }
    for said in own.all() {
        let span = if text.is_some() { said.span } else { Some(place) };
        let message = said.message.replace("the end of the file", "the end of the value");
        diagnostics.push(Diagnostic { span, message, ..said.clone() });
    }
    parsed.filter(|_| !own.has_errors())
}

/// Words with a meaning in IDL 4.2 (§7.2.4), and from when names may not be like them.
const KEYWORDS: [&str; 36] = [
    "any",
    "boolean",
    "case",
    "char",
    "const",
    "default",
    "double",
    "enum",
    "exception",
    "FALSE",
    "fixed",
    "float",
    "interface",
    "long",
    "module",
    "native",
    "Object",
    "octet",
    "readonly",
    "sequence",
    "setraises",
    "short",
    "string",
    "struct",
    "switch",
    "TRUE",
    "truncatable",
    "typedef",
    "typeid",
    "typeprefix",
    "union",
    "unsigned",
    "ValueBase",
    "valuetype",
    "void",
    "wchar",
];

/// More keywords, that are names in files older than the keyword, or that only components know.
const SOFT_KEYWORDS: [&str; 26] = [
    "abstract",
    "attribute",
    "bitfield",
    "bitmask",
    "bitset",
    "custom",
    "factory",
    "getraises",
    "in",
    "inout",
    "int16",
    "int32",
    "int64",
    "int8",
    "local",
    "map",
    "oneway",
    "out",
    "private",
    "public",
    "raises",
    "supports",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
];

/// Whether a name must be escaped.
pub(crate) fn is_keyword(name: &str) -> bool {
    keyword_like(name).is_some()
}

/// The keyword that a name is like.
fn keyword_like(name: &str) -> Option<&'static str> {
    let mut keywords = KEYWORDS.into_iter().chain(SOFT_KEYWORDS);
    keywords.find(|keyword| keyword.eq_ignore_ascii_case(name))
}

/// What the name after an `@` is.
const ANNOTATION: &str = "the name of an annotation";

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    /// The first half of a `>>` has closed something.
    half: bool,
    end: Span,
    depth: usize,
    stopped: bool,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> Parser<'a> {
    fn token(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn ahead(&self, by: usize) -> Option<&'a Token> {
        self.tokens.get(self.at + by)
    }

    fn is_at_end(&self) -> bool {
        self.stopped || self.at >= self.tokens.len()
    }

    fn span(&self) -> Span {
        self.token().map_or(self.end, |token| token.span)
    }

    /// The token before.
    fn previous(&self) -> Span {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(self.end, |token| token.span)
    }

    fn say(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.say(diagnostic);
        Err(Failed)
    }

    fn is_mark(&self, mark: &str) -> bool {
        self.token().is_some_and(|token| token.is_mark(mark))
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let found = self.is_mark(mark);
        self.at += usize::from(found);
        found
    }

    fn is_word(&self, word: &str) -> bool {
        self.token().and_then(Token::word).is_some_and(|found| **found == *word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn described(&self) -> String {
        self.token().map_or_else(|| "the end of the file".to_owned(), Token::describe)
    }

    fn expect_mark(&mut self, mark: &str, after: &str) -> Parsed<()> {
        if self.take_mark(mark) {
            return Ok(());
        }
        let found = self.described();
        let message = format!("expected `{mark}` after {after}, found {found}");
        self.fail(Diagnostic::error(self.span(), message))
    }

    /// A `;` that is missing is an error at the end of what precedes it, and nothing is skipped.
    fn expect_semicolon(&mut self, after: &str) {
        if !self.take_mark(";") {
            let at = self.previous().after();
            self.say(Diagnostic::error(at, format!("expected `;` after {after}")));
        }
    }

    /// The `>` that closes a template, which may be a half of `>>`.
    fn close_template(&mut self, what: &str) -> Parsed<()> {
        if self.is_mark(">>") {
            self.at += usize::from(self.half);
            self.half = !self.half;
            return Ok(());
        }
        self.expect_mark(">", what)
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= NESTING_MAX {
            if !self.stopped {
                let message = format!("definitions are nested more than {NESTING_MAX} times");
                self.say(Diagnostic::error(self.span(), message));
                self.stopped = true;
            }
            return Err(Failed);
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// A name that is introduced here.
    fn name(&mut self, of: &str) -> Parsed<Name> {
        let span = self.span();
        let Some(word) = self.token().and_then(Token::word) else {
            let message = format!("expected the name of {of}, found {}", self.described());
            return self.fail(Diagnostic::error(span, message));
        };
        if let Some(escaped) = word.strip_prefix('_').filter(|rest| !rest.is_empty()) {
            self.at += 1;
            return Ok(Name { text: escaped.into(), span });
        }
        if let Some(keyword) = keyword_like(word) {
            let exact = *keyword == **word;
            let message = if exact {
                format!("`{word}` is a keyword and cannot be the name of {of}")
            } else {
                format!("`{word}` differs from the keyword `{keyword}` only in case")
            };
            let hint = format!("write `_{word}`: the name is then `{word}`");
            if exact && !SOFT_KEYWORDS.contains(&keyword) {
                return self.fail(Diagnostic::error(span, message).hint(hint));
            }
            self.say(Diagnostic::warning(span, message).hint(hint));
        }
        self.at += 1;
        Ok(Name { text: Arc::clone(word), span })
    }

    /// A name that is used here.
    fn scoped_name(&mut self, of: &str) -> Parsed<ScopedName> {
        let start = self.span();
        let absolute = self.take_mark("::");
        let mut parts = Vec::new();
        loop {
            let span = self.span();
            let Some(word) = self.token().and_then(Token::word) else {
                let message = format!("expected {of}, found {}", self.described());
                return self.fail(Diagnostic::error(span, message));
            };
            let text = word
                .strip_prefix('_')
                .filter(|rest| !rest.is_empty())
                .map_or_else(|| Arc::clone(word), Arc::from);
            parts.push(Name { text, span });
            self.at += 1;
            // In `@external ::A x`, a space ends the name of the annotation.
            if self.token().is_some_and(|next| next.spaced && of == ANNOTATION) || !self.take_mark("::") {
                break;
            }
        }
        Ok(ScopedName { absolute, parts, span: start.to(self.previous()) })
    }

    /// Moves past the end of a definition or member that makes no sense: behind the next `;` outside of
    /// braces, or before the `}` that closes what is around.
    fn recover(&mut self) {
        self.half = false;
        let mut depth = 0_usize;
        while let Some(token) = self.token() {
            match token.kind {
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") if depth == 0 => return,
                TokenKind::Mark("}") => {
                    depth -= 1;
                    self.at += 1;
                    if depth == 0 {
                        self.take_mark(";");
                        return;
                    }
                    continue;
                }
                TokenKind::Mark(";") if depth == 0 => {
                    self.at += 1;
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Items between `{` and `}`.
    fn body(&mut self, what: &str, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        let open = self.span();
        self.expect_mark("{", what)?;
        while !self.take_mark("}") {
            if self.is_at_end() {
                // Whatever is around ends here, too.
                if std::mem::replace(&mut self.stopped, true) {
                    return Err(Failed);
                }
                let said = Diagnostic::error(self.end, format!("`}}` is missing at the end of {what}"));
                return self.fail(said.note("it starts here", open));
            }
            let before = self.at;
            if item(self).is_err() {
                self.recover();
                // A token that nothing takes is not to keep us here.
                if self.at == before {
                    self.at += 1;
                }
            }
        }
        Ok(())
    }
}
