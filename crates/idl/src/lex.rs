//! Text to tokens. The preprocessor and the parser share them.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{FileId, Span};

/// A directive of the preprocessor that the parser hears of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pragma {
    /// `#pragma keylist Type member other.member`, and OpenDDS's `DCPS_DATA_KEY`.
    Keys {
        /// The type, perhaps with its scopes.
        of: Arc<str>,
        /// Paths of members, separated by dots.
        paths: Vec<Arc<str>>,
        /// It may stand before the type.
        early: bool,
    },
    /// OpenDDS's `DCPS_DATA_TYPE`: a topic has this type.
    Topic(Arc<str>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// A name or keyword.
    Word(Arc<str>),
    /// A number as it is written.
    Number(Arc<str>),
    Character {
        wide: bool,
        value: char,
    },
    Text {
        wide: bool,
        value: Arc<str>,
    },
    /// Operators and brackets.
    Mark(&'static str),
    Pragma(Arc<Pragma>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
    pub(crate) first_on_line: bool,
    /// White space or a comment stands before it.
    pub(crate) spaced: bool,
}

impl Token {
    pub(crate) fn is_mark(&self, mark: &str) -> bool {
        matches!(self.kind, TokenKind::Mark(found) if found == mark)
    }

    pub(crate) fn word(&self) -> Option<&Arc<str>> {
        match &self.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// As the text of an error names it.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            TokenKind::Word(word) | TokenKind::Number(word) => format!("`{word}`"),
            TokenKind::Character { value, .. } => format!("the character {value:?}"),
            TokenKind::Text { .. } => "a string".to_owned(),
            TokenKind::Mark(mark) => format!("`{mark}`"),
            TokenKind::Pragma(_) => "a #pragma".to_owned(),
        }
    }
}

/// Longest first.
const MARKS: [&str; 35] = [
    "...", "::", "<<", ">>", "&&", "||", "==", "!=", "<=", ">=", "##", "{", "}", "[", "]", "(", ")", "<",
    ">", ",", ";", ":", "=", "+", "-", "*", "/", "%", "~", "!", "&", "|", "^", "?", "@",
];

/// Reads the tokens of a piece of a file.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    file: FileId,
    at: usize,
    end: usize,
    /// Nothing but white space stands before `at` in its line.
    fresh_line: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, file: FileId) -> Self {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { text, file, at, end: text.len(), fresh_line: true }
    }

    /// The tokens of a piece of the file.
    pub(crate) const fn of_piece(text: &'a str, span: Span) -> Self {
        let (at, end) = (span.start as usize, span.end as usize);
        Self { text, file: span.file, at, end, fresh_line: false }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    fn span_from(&self, start: usize) -> Span {
        Span { file: self.file, start: start as u32, end: self.at as u32 }
    }

    fn advance(&mut self, octets: usize) {
        self.at = (self.at + octets).min(self.end);
    }

    /// Moves past white space and comments; whether there were any.
    fn skip_space(&mut self, diagnostics: &mut Diagnostics) -> bool {
        let start = self.at;
        loop {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else { break };
            if first == '\n' {
                self.fresh_line = true;
                self.advance(1);
            } else if first.is_whitespace() || first == '\u{0}' || first == '\u{1a}' {
                self.advance(first.len_utf8());
            } else if rest.starts_with("\\\n") || rest.starts_with("\\\r\n") {
                self.advance(rest.find('\n').unwrap_or(0) + 1);
            } else if rest.starts_with("//") {
                let comment = line_length(rest);
                self.legacy_annotation(&rest[..comment], diagnostics);
                self.advance(comment);
            } else if rest.starts_with("/*") {
                self.block_comment(diagnostics);
            } else {
                break;
            }
        }
        self.at > start
    }

    fn block_comment(&mut self, diagnostics: &mut Diagnostics) {
        let start = self.at;
        let rest = self.rest();
        match rest.get(2..).and_then(|body| body.find("*/")) {
            Some(end) => self.advance(end + 4),
            None => {
                self.advance(2);
                let open = Diagnostic::error(self.span_from(start), "this comment does not end");
                diagnostics.push(open.hint("close it with `*/`"));
                self.at = self.end;
            }
        }
    }

    /// `//@key`, by which annotations were written before IDL 4 had them.
    fn legacy_annotation(&self, comment: &str, diagnostics: &mut Diagnostics) {
        const WORDS: [&str; 4] = ["//@key", "//@ID", "//@Extensibility", "//@Optional"];
        let lower = comment.to_ascii_lowercase();
        if WORDS.iter().any(|word| lower.starts_with(&word.to_ascii_lowercase())) {
            let (start, end) = (self.at as u32, (self.at + comment.len()) as u32);
            let said = Diagnostic::warning(
                Span { file: self.file, start, end },
                "an annotation in a comment has no effect",
            );
            diagnostics
                .push_once("//@", said.hint("write it as an annotation before the member: `@key long id;`"));
        }
    }

    /// The next token; none at the end.
    pub(crate) fn next(&mut self, diagnostics: &mut Diagnostics) -> Option<Token> {
        loop {
            let spaced = self.skip_space(diagnostics);
            let start = self.at;
            let first = self.rest().chars().next()?;
            let kind = self.token(first, diagnostics);
            let first_on_line = std::mem::take(&mut self.fresh_line);
            if let Some(kind) = kind {
                return Some(Token { kind, span: self.span_from(start), first_on_line, spaced });
            }
        }
    }

    fn token(&mut self, first: char, diagnostics: &mut Diagnostics) -> Option<TokenKind> {
        let rest = self.rest();
        let second = rest.as_bytes().get(1).copied().unwrap_or(0);
        if first == 'L' && (second == b'\'' || second == b'"') {
            self.advance(1);
            return self.quoted(true, diagnostics);
        }
        if first == '\'' || first == '"' {
            return self.quoted(false, diagnostics);
        }
        if first.is_ascii_digit() || (first == '.' && second.is_ascii_digit()) {
            return Some(TokenKind::Number(self.number()));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            self.advance(length);
            return Some(TokenKind::Word(rest[..length].into()));
        }
        if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            self.advance(mark.len());
            return Some(TokenKind::Mark(mark));
        }
        if first == '#' {
            self.advance(1);
            return Some(TokenKind::Mark("#"));
        }
        if first == '.' {
            self.advance(1);
            return Some(TokenKind::Mark("."));
        }
        let start = self.at;
        let strange = |letter: char| !letter.is_ascii() && letter.is_alphanumeric();
        let length = rest.find(|letter| !strange(letter)).unwrap_or(rest.len());
        self.advance(length.max(first.len_utf8()));
        let said =
            Diagnostic::error(self.span_from(start), format!("IDL has no use for the character {first:?}"));
        diagnostics.push(said.hint("names consist of the letters a to z and A to Z, digits and `_`"));
        None
    }

    /// A number as C preprocessors see it: what is wrong with it says whoever needs its value.
    fn number(&mut self) -> Arc<str> {
        let octets = self.rest().as_bytes();
        let hexadecimal = matches!(octets, [b'0', b'x' | b'X', ..]);
        let mut length = 0;
        while let Some(octet) = octets.get(length) {
            let after_exponent = !hexadecimal
                && matches!(octet, b'+' | b'-')
                && length > 0
                && matches!(octets.get(length - 1), Some(b'e' | b'E'));
            if !(octet.is_ascii_alphanumeric() || matches!(octet, b'.' | b'_') || after_exponent) {
                break;
            }
            length += 1;
        }
        let text = self.rest()[..length].into();
        self.advance(length);
        text
    }

    /// A character or string.
    fn quoted(&mut self, wide: bool, diagnostics: &mut Diagnostics) -> Option<TokenKind> {
        let start = self.at;
        let quote = self.rest().chars().next()?;
        self.advance(1);
        let mut value = String::new();
        loop {
            match self.rest().chars().next() {
                Some(letter) if letter == quote => {
                    self.advance(1);
                    break;
                }
                None | Some('\n') => {
                    let span = self.span_from(start);
                    let what = if quote == '"' { "string" } else { "character" };
                    let said = Diagnostic::error(span, format!("this {what} does not end on its line"));
                    diagnostics.push(said.hint(format!("close it with `{quote}`")));
                    break;
                }
                Some('\\') => value.extend(self.escape(diagnostics)),
                Some(letter) => {
                    self.advance(letter.len_utf8());
                    value.push(letter);
                }
            }
        }
        if quote == '"' {
            return Some(TokenKind::Text { wide, value: value.into() });
        }
        let mut letters = value.chars();
        match (letters.next(), letters.next()) {
            (Some(value), None) => Some(TokenKind::Character { wide, value }),
            _ => {
                let said = Diagnostic::error(self.span_from(start), "a character constant has one character");
                diagnostics.push(said.hint("strings stand in double quotes"));
                Some(TokenKind::Character { wide, value: '\u{0}' })
            }
        }
    }

    /// The character that an escape means (IDL 4.2 §7.2.6.2); none for a line that continues.
    fn escape(&mut self, diagnostics: &mut Diagnostics) -> Option<char> {
        let start = self.at;
        let rest = self.rest();
        let letter = rest.chars().nth(1);
        if rest.starts_with("\\\n") || rest.starts_with("\\\r\n") {
            self.advance(rest.find('\n').unwrap_or(0) + 1);
            return None;
        }
        let code = |radix: u32, skipped: usize, most: usize| {
            let digits =
                rest.get(skipped..)?.chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
            let value = u32::from_str_radix(rest.get(skipped..skipped + digits)?, radix).ok()?;
            Some((char::from_u32(value)?, skipped + digits))
        };
        let simple = |value: char| Some((value, 2));
        let meant = match letter {
            Some('n') => simple('\n'),
            Some('t') => simple('\t'),
            Some('v') => simple('\u{b}'),
            Some('b') => simple('\u{8}'),
            Some('r') => simple('\r'),
            Some('f') => simple('\u{c}'),
            Some('a') => simple('\u{7}'),
            Some(mark @ ('\\' | '?' | '\'' | '"')) => simple(mark),
            Some('x') => code(16, 2, 2),
            Some('u') => code(16, 2, 4),
            Some('0'..='7') => code(8, 1, 3),
            _ => None,
        };
        let Some((value, length)) = meant else {
            self.advance(1 + letter.map_or(0, char::len_utf8));
            let said = Diagnostic::error(self.span_from(start), "IDL has no such escape");
            diagnostics.push(said.hint("for a backslash write `\\\\`"));
            return letter;
        };
        self.advance(length);
        Some(value)
    }

    /// Moves to the end of a directive; its piece, comments and continued lines included.
    pub(crate) fn rest_of_line(&mut self, diagnostics: &mut Diagnostics) -> Span {
        let start = self.at;
        loop {
            let rest = self.rest();
            match rest.as_bytes() {
                [] | [b'\n', ..] => break,
                [b'\\', b'\n', ..] => self.advance(2),
                [b'\\', b'\r', b'\n', ..] => self.advance(3),
                [b'/', b'/', ..] => self.advance(line_length(rest)),
                [b'/', b'*', ..] => self.block_comment(diagnostics),
                [b'"', ..] => {
                    let line = &rest[1..line_length(rest).max(1)];
                    self.advance(1 + line.find('"').map_or(0, |end| end + 1));
                }
                _ => self.advance(rest.chars().next().map_or(1, char::len_utf8)),
            }
        }
        self.span_from(start)
    }

    /// Moves to the next `#` that stands first in a line; whether there is one.
    pub(crate) fn skip_to_directive(&mut self, diagnostics: &mut Diagnostics) -> bool {
        loop {
            let mut ignored = Diagnostics::default();
            self.skip_space(&mut ignored);
            if self.rest().is_empty() {
                // An unclosed comment in text that is left out hides what follows all the same.
                if ignored.has_errors() {
                    ignored.all().iter().cloned().for_each(|it| diagnostics.push(it));
                }
                return false;
            }
            if self.fresh_line && self.rest().starts_with('#') {
                return true;
            }
            self.fresh_line = false;
            self.rest_of_line(&mut ignored);
        }
    }
}

/// Octets up to the end of the line.
fn line_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceMap;

    fn kinds(text: &str) -> (Vec<TokenKind>, usize) {
        let mut sources = SourceMap::default();
        let file = sources.add("a.idl".into(), "a.idl".into(), text.to_owned(), None);
        let mut diagnostics = Diagnostics::default();
        let mut lexer = Lexer::new(text, file);
        let kinds = std::iter::from_fn(|| lexer.next(&mut diagnostics)).map(|token| token.kind).collect();
        (kinds, diagnostics.errors())
    }

    fn text(value: &str) -> TokenKind {
        TokenKind::Text { wide: false, value: value.into() }
    }

    #[test]
    fn tokens_of_a_line() {
        let (found, errors) = kinds("@id(0x1F) long x; // comment\n/* and */ const float y = 1.5e-3 >> .5d;");
        let words = found.iter().filter(|kind| matches!(kind, TokenKind::Word(_))).count();
        assert_eq!((words, errors), (6, 0));
        assert!(found.contains(&TokenKind::Number("0x1F".into())));
        assert!(found.contains(&TokenKind::Number("1.5e-3".into())));
        assert!(found.contains(&TokenKind::Number(".5d".into())));
        assert!(found.contains(&TokenKind::Mark(">>")));
    }

    #[test]
    fn escapes_of_strings_and_characters() {
        let (found, errors) = kinds(
            r#""a\n\x41\102\"" L"\u00e4" '\'' L'\x7f' "a\
b""#,
        );
        let wide = TokenKind::Text { wide: true, value: "ä".into() };
        let quote = TokenKind::Character { wide: false, value: '\'' };
        let delete = TokenKind::Character { wide: true, value: '\u{7f}' };
        assert_eq!((found, errors), (vec![text("a\nAB\""), wide, quote, delete, text("ab")], 0));
    }

    #[test]
    fn what_does_not_end_is_an_error_and_reading_goes_on() {
        let (found, errors) = kinds("\"open\nlong");
        assert_eq!((found, errors), (vec![text("open"), TokenKind::Word("long".into())], 1));
        assert_eq!(kinds("/* open"), (vec![], 1));
        assert_eq!(kinds("'ab' ''").1, 2);
        assert_eq!(kinds("\"\\q\"").1, 1);
        assert_eq!(kinds("ö $").1, 2);
    }
}
