//! Macros.

use std::collections::HashMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lex::{Lexer, Token, TokenKind};
use crate::limits::{EXPANDED_TOKENS_MAX, MACRO_DEPTH_MAX};
use crate::source::Span;

pub(crate) struct Macro {
    /// None: it is used without parentheses.
    pub(crate) parameters: Option<Vec<Arc<str>>>,
    /// The last parameter takes what is left: `__VA_ARGS__`.
    pub(crate) variadic: bool,
    pub(crate) body: Vec<Token>,
    pub(crate) at: Span,
}

#[derive(Default)]
pub(crate) struct Macros {
    defined: HashMap<Arc<str>, Arc<Macro>>,
    /// What expansion has added so far.
    expanded: usize,
    exceeded: bool,
}

impl Macros {
    pub(crate) fn define(&mut self, name: Arc<str>, definition: Macro) {
        self.defined.insert(name, Arc::new(definition));
    }

    pub(crate) fn undefine(&mut self, name: &str) {
        self.defined.remove(name);
    }

    pub(crate) fn is_defined(&self, name: &str) -> bool {
        self.defined.contains_key(name)
    }

    /// Replaces macros. What comes of one has the place where it is used.
    pub(crate) fn expand(&mut self, tokens: Vec<Token>, diagnostics: &mut Diagnostics) -> Vec<Token> {
        let is_macro = |token: &Token| token.word().is_some_and(|word| self.defined.contains_key(word));
        if !tokens.iter().any(is_macro) {
            return tokens;
        }
        let mut output = Vec::new();
        Expansion { macros: self, diagnostics, hidden: Vec::new(), depth: 0 }.expand(&tokens, &mut output);
        output
    }
}

struct Expansion<'a> {
    macros: &'a mut Macros,
    diagnostics: &'a mut Diagnostics,
    /// Macros that are being expanded, in which they mean themselves.
    hidden: Vec<Arc<str>>,
    /// Macros in arguments of macros count, too.
    depth: usize,
}

impl Expansion<'_> {
    fn expand(&mut self, tokens: &[Token], output: &mut Vec<Token>) {
        // Each macro is a level, and so is each argument.
        if self.depth > 2 * MACRO_DEPTH_MAX {
            if let Some(first) = tokens.first() {
                self.exceed(
                    first.span,
                    format!("more than {MACRO_DEPTH_MAX} macros stand within one another"),
                );
            }
            return;
        }
        self.depth += 1;
        self.expand_here(tokens, output);
        self.depth -= 1;
    }

    /// Says once that a limit is exceeded.
    fn exceed(&mut self, at: Span, why: String) {
        if !self.macros.exceeded {
            self.macros.exceeded = true;
            self.diagnostics.push(Diagnostic::error(at, why));
        }
    }

    fn expand_here(&mut self, tokens: &[Token], output: &mut Vec<Token>) {
        let mut rest = tokens;
        while let Some((token, after)) = rest.split_first() {
            rest = after;
            let found = token.word().filter(|word| !self.hidden.contains(word));
            let found = found.and_then(|word| Some((word, Arc::clone(self.macros.defined.get(word)?))));
            let Some((name, definition)) = found else {
                output.push(token.clone());
                continue;
            };
            let body = match &definition.parameters {
                None => definition.body.clone(),
                Some(_) if !rest.first().is_some_and(|next| next.is_mark("(")) => {
                    output.push(token.clone());
                    continue;
                }
                Some(parameters) => {
                    let Some((arguments, after)) = self.arguments(token, rest) else { return };
                    rest = after;
                    let Some(body) = self.substitute(token, &definition, parameters, &arguments) else {
                        continue;
                    };
                    body
                }
            };
            self.rescan(token.span, name, body, output);
        }
    }

    /// Expands what came of a macro, in which it is hidden.
    fn rescan(&mut self, at: Span, name: &Arc<str>, mut body: Vec<Token>, output: &mut Vec<Token>) {
        self.macros.expanded += body.len();
        if self.macros.expanded > EXPANDED_TOKENS_MAX || self.hidden.len() >= MACRO_DEPTH_MAX {
            let why = if self.hidden.len() >= MACRO_DEPTH_MAX {
                format!("more than {MACRO_DEPTH_MAX} macros stand within one another")
            } else {
                format!("macros expand to more than {EXPANDED_TOKENS_MAX} tokens")
            };
            self.exceed(at, why);
            return;
        }
        for token in &mut body {
            token.span = at;
            token.first_on_line = false;
        }
        self.hidden.push(Arc::clone(name));
        self.expand(&body, output);
        self.hidden.pop();
    }

    /// What stands between the parentheses, split at commas, and what follows them.
    fn arguments<'t>(
        &mut self,
        name: &Token,
        tokens: &'t [Token],
    ) -> Option<(Vec<&'t [Token]>, &'t [Token])> {
        let mut arguments = Vec::new();
        let mut depth = 0_usize;
        let mut start = 1;
        for (index, token) in tokens.iter().enumerate() {
            match token.kind {
                TokenKind::Mark("(") => depth += 1,
                TokenKind::Mark(")") => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        arguments.push(&tokens[start..index]);
                        return Some((arguments, &tokens[index + 1..]));
                    }
                }
                TokenKind::Mark(",") if depth == 1 => {
                    arguments.push(&tokens[start..index]);
                    start = index + 1;
                }
                _ => {}
            }
        }
        let said = Diagnostic::error(
            name.span,
            format!("the arguments of the macro {} do not end", name.describe()),
        );
        self.diagnostics.push(said.hint("close them with `)` before the next directive"));
        None
    }

    /// The body with arguments in place of parameters.
    fn substitute(
        &mut self,
        name: &Token,
        definition: &Macro,
        parameters: &[Arc<str>],
        arguments: &[&[Token]],
    ) -> Option<Vec<Token>> {
        let none = arguments.len() == 1 && arguments.first().is_some_and(|only| only.is_empty());
        let given = if none && parameters.is_empty() { 0 } else { arguments.len() };
        let fits = if definition.variadic { given >= parameters.len() } else { given == parameters.len() };
        if !fits {
            let message = format!(
                "the macro {} has {} parameters, and {given} arguments are given",
                name.describe(),
                parameters.len()
            );
            let said = Diagnostic::error(name.span, message).note("it is defined here", definition.at);
            self.diagnostics.push(said);
            return None;
        }
        let argument = |token: &Token| -> Option<Vec<Token>> {
            let word = token.word()?;
            if definition.variadic && **word == *"__VA_ARGS__" {
                let rest = arguments.get(parameters.len()..).unwrap_or_default();
                let comma = Token { kind: TokenKind::Mark(","), ..token.clone() };
                return Some(rest.join(&comma));
            }
            let index = parameters.iter().position(|parameter| parameter == word)?;
            Some(arguments.get(index)?.to_vec())
        };
        let mut body = Vec::<Token>::new();
        let mut tokens = definition.body.iter().peekable();
        while let Some(token) = tokens.next() {
            if token.is_mark("#")
                && let Some(told) = tokens.peek().and_then(|next| argument(next))
            {
                tokens.next();
                body.push(Token { kind: stringify(&told), ..token.clone() });
                continue;
            }
            if token.is_mark("##") {
                let Some(next) = tokens.next() else { break };
                let mut right = argument(next).unwrap_or_else(|| vec![next.clone()]).into_iter();
                if let Some(first) = right.next() {
                    self.paste(&mut body, first, definition);
                    body.extend(right);
                }
                continue;
            }
            let raw = tokens.peek().is_some_and(|next| next.is_mark("##"));
            match argument(token) {
                None => body.push(token.clone()),
                Some(told) if raw => body.extend(told),
                Some(told) => self.expand(&told, &mut body),
            }
        }
        Some(body)
    }

    /// Makes one token of the last of `body` and `right`.
    fn paste(&mut self, body: &mut Vec<Token>, right: Token, definition: &Macro) {
        let Some(left) = body.pop() else {
            body.push(right);
            return;
        };
        let text = format!("{}{}", written(&left), written(&right));
        let mut lexer = Lexer::new(&text, left.span.file);
        let mut ignored = Diagnostics::default();
        match (lexer.next(&mut ignored), lexer.next(&mut ignored)) {
            (Some(pasted), None) => body.push(Token { kind: pasted.kind, ..left }),
            _ => {
                let said = Diagnostic::error(definition.at, format!("`##` makes no token of `{text}`"));
                self.diagnostics.push(said);
                body.extend([left, right]);
            }
        }
    }
}

/// A token as it is written, or near enough.
fn written(token: &Token) -> String {
    match &token.kind {
        TokenKind::Word(text) | TokenKind::Number(text) => text.to_string(),
        TokenKind::Character { value, .. } => format!("'{}'", value.escape_default()),
        TokenKind::Text { value, .. } => format!("\"{}\"", value.escape_default()),
        TokenKind::Mark(mark) => (*mark).to_owned(),
        TokenKind::Pragma(_) => String::new(),
    }
}

fn stringify(tokens: &[Token]) -> TokenKind {
    let mut text = String::new();
    for (index, token) in tokens.iter().enumerate() {
        if index > 0 && token.spaced {
            text.push(' ');
        }
        text.push_str(&written(token));
    }
    TokenKind::Text { wide: false, value: text.into() }
}
