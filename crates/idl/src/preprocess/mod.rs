//! `#include`, `#define`, `#if` and the other directives of the C preprocessor that IDL files use (IDL 4.2
//! §7.3): files to one list of tokens, each of which knows where it came from.

mod condition;
mod expand;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, closest};
use crate::lex::{Lexer, Pragma, Token, TokenKind};
use crate::limits::{INCLUDE_DEPTH_MAX, INCLUSIONS_MAX, NESTING_MAX, TOKENS_MAX};
use crate::source::{FileId, Files, SourceMap, Span, Unread};

use expand::{Macro, Macros};

/// What a run of the preprocessor is told.
pub(crate) struct Settings<'a> {
    pub(crate) include_directories: &'a [PathBuf],
    /// `NAME` or `NAME=VALUE`.
    pub(crate) definitions: &'a [String],
}

/// Preprocesses one input file; none if it cannot be read.
pub(crate) fn preprocess(
    path: &Path,
    files: &dyn Files,
    settings: &Settings<'_>,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<(FileId, Vec<Token>)> {
    let mut preprocessor = Preprocessor {
        files,
        settings,
        sources,
        diagnostics,
        macros: Macros::default(),
        once: HashSet::new(),
        inclusions: 0,
        stopped: false,
        output: Vec::new(),
    };
    preprocessor.predefine();
    let file = preprocessor.diagnostics.input(preprocessor.sources, files, path)?;
    preprocessor.file(file, 0);
    Some((file, preprocessor.output))
}

/// An `#if` whose `#endif` is to come.
struct Conditional {
    at: Span,
    /// One of its branches was taken.
    taken: bool,
    had_else: bool,
}

struct Preprocessor<'a> {
    files: &'a dyn Files,
    settings: &'a Settings<'a>,
    sources: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    macros: Macros,
    /// Files with `#pragma once`.
    once: HashSet<FileId>,
    inclusions: usize,
    /// A limit was exceeded.
    stopped: bool,
    output: Vec<Token>,
}

impl Preprocessor<'_> {
    fn predefine(&mut self) {
        let told = self.settings.definitions.iter().map(String::as_str);
        for definition in ["__PLAINSONG_IDL=1", "__IDL=1"].into_iter().chain(told) {
            let (name, value) = definition.split_once('=').unwrap_or((definition, "1"));
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            if name.is_empty()
                || !name.chars().all(is_name)
                || name.starts_with(|it: char| it.is_ascii_digit())
            {
                let said = Diagnostic::general(format!("`{definition}` defines no macro"));
                self.diagnostics.push(said.hint("write NAME or NAME=VALUE"));
                continue;
            }
            let path = PathBuf::from(format!("<definition of {name}>"));
            let file = self.sources.add(path.clone(), path, value.to_owned(), None);
            let mut lexer = Lexer::new(value, file);
            let body = std::iter::from_fn(|| lexer.next(self.diagnostics)).collect();
            let at = Span { file, start: 0, end: value.len() as u32 };
            self.macros.define(name.into(), Macro { parameters: None, variadic: false, body, at });
        }
    }

    /// Everything of one file, and of those it includes.
    fn file(&mut self, file: FileId, depth: usize) {
        let text = self.sources.text(file);
        let mut lexer = Lexer::new(&text, file);
        let mut open = Vec::<Conditional>::new();
        let mut run = Vec::new();
        while let Some(token) = lexer.next(self.diagnostics) {
            if self.stopped {
                return;
            }
            if !(token.first_on_line && token.is_mark("#")) {
                run.push(token);
                continue;
            }
            self.flush(&mut run);
            self.directive(&text, &mut lexer, token.span, &mut open, depth);
        }
        self.flush(&mut run);
        for conditional in open {
            let said = Diagnostic::error(conditional.at, "this condition does not end");
            self.diagnostics.push(said.hint("close it with `#endif`, in the same file"));
        }
    }

    /// Expands what stood between two directives.
    fn flush(&mut self, run: &mut Vec<Token>) {
        let Some(last) = run.last().map(|token| token.span) else { return };
        let expanded = self.macros.expand(std::mem::take(run), self.diagnostics);
        if self.output.len() + expanded.len() > TOKENS_MAX {
            self.stop(last, format!("the input has more than {TOKENS_MAX} tokens"));
            return;
        }
        self.output.extend(expanded);
    }

    fn stop(&mut self, span: Span, why: String) {
        if !self.stopped {
            self.stopped = true;
            self.diagnostics.push(Diagnostic::error(span, why).hint("split the input into several files"));
        }
    }

    fn directive(
        &mut self,
        text: &str,
        lexer: &mut Lexer<'_>,
        hash: Span,
        open: &mut Vec<Conditional>,
        depth: usize,
    ) {
        let piece = lexer.rest_of_line(self.diagnostics);
        let at = hash.to(piece);
        let mut words = Lexer::of_piece(text, piece);
        // What `#error` says need not consist of tokens.
        let Some(name) = words.next(&mut Diagnostics::default()) else { return };
        let word = name.word().map_or("", |word| &**word);
        match word {
            "include" => self.include(text, name.span, piece, at, depth),
            "define" | "undef" => {
                let tokens = self.tokens(text, name.span, piece);
                if word == "define" {
                    self.define(tokens, at);
                } else if let Some(undefined) = tokens.first().and_then(Token::word) {
                    self.macros.undefine(undefined);
                }
            }
            "if" | "ifdef" | "ifndef" => {
                if open.len() >= NESTING_MAX {
                    self.stop(at, format!("more than {NESTING_MAX} conditions stand within one another"));
                    return;
                }
                let taken = self.condition(word, text, name.span, piece, at);
                open.push(Conditional { at, taken, had_else: false });
                if !taken {
                    self.skip(text, lexer, open);
                }
            }
            "elif" | "else" => {
                // A branch was taken, and here it ends.
                match open.last_mut() {
                    Some(conditional) if !conditional.had_else => {
                        conditional.had_else = word == "else";
                        self.skip(text, lexer, open);
                    }
                    _ => self.stray(at, word),
                }
            }
            "endif" => {
                if open.pop().is_none() {
                    self.stray(at, word);
                }
            }
            "error" | "warning" => {
                let message = text.get(name.span.end as usize..piece.end as usize).unwrap_or_default().trim();
                let make = if word == "error" { Diagnostic::error } else { Diagnostic::warning };
                self.diagnostics.push(make(at, format!("the file says: {message}")));
            }
            "pragma" => self.pragma(text, name.span, piece, at),
            // As other preprocessors leave them behind: `#line 1 "file"` and `# 1 "file"`.
            "line" | "ident" => {}
            _ if matches!(name.kind, TokenKind::Number(_)) => {}
            _ => {
                let said = Diagnostic::error(at, format!("there is no directive {}", name.describe()));
                let known =
                    ["include", "define", "undef", "ifdef", "ifndef", "elif", "else", "endif", "pragma"];
                let meant = closest(word, known.into_iter());
                self.diagnostics.push(match meant {
                    Some(meant) => said.hint(format!("did you mean `#{meant}`?")),
                    None => said,
                });
            }
        }
    }

    fn stray(&mut self, at: Span, word: &str) {
        let said = Diagnostic::error(at, format!("no `#if` is open to which this `#{word}` belongs"));
        self.diagnostics.push(said.hint("remove it, or add the `#if`; both stand in one file"));
    }

    /// The tokens of a directive after its name.
    fn tokens(&mut self, text: &str, name: Span, piece: Span) -> Vec<Token> {
        let mut lexer = Lexer::of_piece(text, Span { start: name.end, ..piece });
        std::iter::from_fn(|| lexer.next(self.diagnostics)).collect()
    }

    /// Whether a condition holds. `#ifdef` and `#ifndef` look at one name.
    fn condition(&mut self, word: &str, text: &str, name: Span, piece: Span, at: Span) -> bool {
        let tokens = self.tokens(text, name, piece);
        if word == "if" || word == "elif" {
            return condition::holds(&tokens, at, &mut self.macros, self.diagnostics);
        }
        let Some(wanted) = tokens.first().and_then(Token::word) else {
            let said = Diagnostic::error(at, format!("`#{word}` wants the name of a macro"));
            self.diagnostics.push(said);
            return false;
        };
        self.macros.is_defined(wanted) == (word == "ifdef")
    }

    /// Leaves out text up to the branch that is taken, or the end of the innermost condition.
    fn skip(&mut self, text: &str, lexer: &mut Lexer<'_>, open: &mut Vec<Conditional>) {
        let mut inner = 0_usize;
        while lexer.skip_to_directive(self.diagnostics) {
            let Some(hash) = lexer.next(self.diagnostics) else { return };
            let piece = lexer.rest_of_line(self.diagnostics);
            let mut words = Lexer::of_piece(text, piece);
            let Some(name) = words.next(&mut Diagnostics::default()) else { continue };
            let word = name.word().map_or("", |word| &**word);
            match word {
                "if" | "ifdef" | "ifndef" => inner += 1,
                "endif" if inner > 0 => inner -= 1,
                "endif" => {
                    open.pop();
                    return;
                }
                "else" | "elif" if inner == 0 => {
                    let Some((taken, had_else)) = open.last().map(|it| (it.taken, it.had_else)) else {
                        return;
                    };
                    if had_else {
                        self.stray(hash.span, word);
                    }
                    let holds = !taken
                        && (word == "else"
                            || self.condition(word, text, name.span, piece, hash.span.to(piece)));
                    if let Some(conditional) = open.last_mut() {
                        conditional.had_else |= word == "else";
                        conditional.taken |= holds;
                    }
                    if holds {
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    fn define(&mut self, tokens: Vec<Token>, at: Span) {
        let mut tokens = tokens.into_iter().peekable();
        let Some(name) = tokens.next().and_then(|token| token.word().cloned()) else {
            self.diagnostics.push(Diagnostic::error(at, "`#define` wants the name of a macro"));
            return;
        };
        let mut parameters = None;
        let mut variadic = false;
        if tokens.peek().is_some_and(|next| next.is_mark("(") && !next.spaced) {
            tokens.next();
            let mut names = Vec::new();
            let mut closed = false;
            for token in tokens.by_ref() {
                match &token.kind {
                    TokenKind::Word(word) => names.push(Arc::clone(word)),
                    TokenKind::Mark(",") => {}
                    TokenKind::Mark("...") => variadic = true,
                    TokenKind::Mark(")") => {
                        closed = true;
                        break;
                    }
                    _ => break,
                }
            }
            if !closed {
                let said = Diagnostic::error(at, format!("the parameters of the macro `{name}` do not end"));
                self.diagnostics
                    .push(said.hint("parameters are names with `,` between them and `)` after them"));
                return;
            }
            parameters = Some(names);
        }
        self.macros.define(name, Macro { parameters, variadic, body: tokens.collect(), at });
    }

    fn include(&mut self, text: &str, name: Span, piece: Span, at: Span, depth: usize) {
        let Some((wanted, quoted)) = self.included_name(text, name, piece) else {
            let said = Diagnostic::error(at, "`#include` wants the name of a file");
            self.diagnostics.push(said.hint("write `#include \"File.idl\"` or `#include <File.idl>`"));
            return;
        };
        self.inclusions += 1;
        if depth >= INCLUDE_DEPTH_MAX || self.inclusions > INCLUSIONS_MAX {
            let why = if depth >= INCLUDE_DEPTH_MAX {
                format!("more than {INCLUDE_DEPTH_MAX} files include one another")
            } else {
                format!("more than {INCLUSIONS_MAX} files are included")
            };
            if !self.stopped {
                self.stopped = true;
                let said = Diagnostic::error(at, why);
                self.diagnostics.push(said.hint("guard included files by `#pragma once` or `#ifndef`"));
            }
            return;
        }
        let own = self.sources.path(at.file).parent().unwrap_or_else(|| Path::new("")).to_owned();
        let own = quoted.then_some(&own);
        let candidates = own.into_iter().chain(self.settings.include_directories);
        let candidates = candidates.map(|directory| directory.join(&wanted)).collect::<Vec<_>>();
        for candidate in &candidates {
            match self.sources.load(self.files, candidate, Some(at)) {
                Ok(file) => {
                    if !self.once.contains(&file) {
                        self.file(file, depth + 1);
                    }
                    return;
                }
                Err(Unread::Missing) => {}
                Err(Unread::Because(reason)) => {
                    let message = format!("cannot read {}: {reason}", candidate.display());
                    self.diagnostics.push(Diagnostic::error(at, message));
                    return;
                }
            }
        }
        let said = Diagnostic::error(at, format!("the file {wanted:?} is in none of the directories"));
        let looked = candidates.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(", ");
        self.diagnostics.push(match looked.as_str() {
            "" => said.hint("`<…>` is looked for in the directories of -I, and none is given"),
            _ => said.hint(format!("looked for {looked}; -I DIRECTORY adds a place to look")),
        });
    }

    /// The name in an `#include`, and whether it stands in quotes. It may be what a macro expands to.
    fn included_name(&mut self, text: &str, name: Span, piece: Span) -> Option<(String, bool)> {
        let written = text.get(name.end as usize..piece.end as usize)?.trim();
        if let Some(rest) = written.strip_prefix('<') {
            return Some((rest.split_once('>')?.0.to_owned(), false));
        }
        if let Some(rest) = written.strip_prefix('"') {
            return Some((rest.split_once('"')?.0.to_owned(), true));
        }
        let tokens = self.tokens(text, name, piece);
        match self.macros.expand(tokens, self.diagnostics).first().map(|token| token.kind.clone()) {
            Some(TokenKind::Text { value, .. }) => Some((value.to_string(), true)),
            _ => None,
        }
    }

    fn pragma(&mut self, text: &str, name: Span, piece: Span, at: Span) {
        let tokens = self.tokens(text, name, piece);
        let word = tokens.first().and_then(Token::word).map_or("", |word| &**word);
        let pragma = match word {
            "once" => {
                self.once.insert(at.file);
                None
            }
            "keylist" => keylist(&tokens[1..]),
            "DCPS_DATA_KEY" => string(&tokens[1..]).and_then(|told| {
                let mut words = told.split_whitespace();
                let of = words.next()?.into();
                Some(Pragma::Keys { of, paths: words.map(Into::into).collect(), early: true })
            }),
            "DCPS_DATA_TYPE" => string(&tokens[1..]).map(|of| Pragma::Topic(of.trim().into())),
            // Repository ids of CORBA, and what concerns code that others generate.
            "prefix" | "ID" | "version" | "ident" | "message" => None,
            _ => {
                let said =
                    Diagnostic::warning(at, format!("the pragma `{word}` is not known and has no effect"));
                self.diagnostics.push_once(&format!("#pragma {word}"), said);
                None
            }
        };
        if let Some(pragma) = pragma {
            let kind = TokenKind::Pragma(Arc::new(pragma));
            self.output.push(Token { kind, span: at, first_on_line: true, spaced: true });
        }
    }
}

fn string(tokens: &[Token]) -> Option<Arc<str>> {
    match tokens.first().map(|token| &token.kind) {
        Some(TokenKind::Text { value, .. }) => Some(Arc::clone(value)),
        _ => None,
    }
}

/// The type and the members of `#pragma keylist`, which `,` and spaces may separate.
fn keylist(tokens: &[Token]) -> Option<Pragma> {
    let mut paths = Vec::<String>::new();
    let mut joined = false;
    for token in tokens {
        match &token.kind {
            TokenKind::Word(word) => match paths.last_mut() {
                Some(last) if joined => last.push_str(word),
                _ => paths.push(word.to_string()),
            },
            TokenKind::Mark(mark @ ("." | "::")) => {
                paths.last_mut()?.push_str(mark);
                joined = true;
                continue;
            }
            _ => {}
        }
        joined = false;
    }
    let mut paths = paths.into_iter().map(Arc::<str>::from);
    Some(Pragma::Keys { of: paths.next()?, paths: paths.collect(), early: false })
}

#[cfg(test)]
mod tests;
