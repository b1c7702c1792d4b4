//! What the compiler says about an input: errors and warnings, each with place, excerpt and hint.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use crate::limits::{DIAGNOSTICS_MAX, EXCERPT_COLUMNS_MAX};
use crate::source::{FileId, Files, Location, SourceMap, Span};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The output is what the input says, as far as anyone can tell.
    Warning,
    /// There is no output.
    Error,
}

/// One thing that is said about an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where; none if it is about no file.
    pub span: Option<Span>,
    /// Other places that matter, and why.
    pub notes: Vec<(String, Span)>,
    /// What to do.
    pub hint: Option<String>,
}

impl Diagnostic {
    pub(crate) fn error(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, Some(span), message.into())
    }

    pub(crate) fn warning(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, Some(span), message.into())
    }

    /// An error that is about no place in a file.
    pub(crate) fn general(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, None, message.into())
    }

    const fn new(severity: Severity, span: Option<Span>, message: String) -> Self {
        Self { severity, message, span, notes: Vec::new(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn note(mut self, text: impl Into<String>, span: Span) -> Self {
        self.notes.push((text.into(), span));
        self
    }

    /// As compilers print it: message, place, the line with a caret, notes and hint.
    pub fn render(&self, sources: &SourceMap) -> String {
        let word = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let mut text = format!("{word}: {}\n", self.message);
        if let Some(span) = self.span {
            excerpt(&mut text, "-->", span, sources);
            for at in sources.inclusions(span.file) {
                let Location { path, line, .. } = sources.location(at);
                let _ = writeln!(text, "  included from {}:{line}", path.display());
            }
        }
        for (note, span) in &self.notes {
            let _ = writeln!(text, "note: {note}");
            excerpt(&mut text, "-->", *span, sources);
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "hint: {hint}");
        }
        text
    }
}

/// The place and its line, with carets below the piece.
fn excerpt(text: &mut String, arrow: &str, span: Span, sources: &SourceMap) {
    let Location { path, line, column } = sources.location(span);
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let whole = sources.line(span);
    // Of a long line what is around the place is shown.
    let first = (column - 1).saturating_sub(EXCERPT_COLUMNS_MAX / 2);
    let shown = whole.chars().skip(first).take(EXCERPT_COLUMNS_MAX);
    let shown = shown.map(|letter| if letter.is_control() { ' ' } else { letter }).collect::<String>();
    let left = shown.chars().count().saturating_sub(column - 1 - first).max(1);
    let carets = sources.piece(span).lines().next().map_or(1, |piece| piece.chars().count()).clamp(1, left);
    let _ = writeln!(text, "{margin}{arrow} {}:{line}:{column}", path.display());
    let _ = writeln!(text, "{margin} |");
    let _ = writeln!(text, "{number} | {}", shown.trim_end());
    let _ = writeln!(text, "{margin} | {}{}", " ".repeat(column - 1 - first), "^".repeat(carets));
}

/// What has been said so far.
#[derive(Debug, Default)]
pub struct Diagnostics {
    said: Vec<Diagnostic>,
    left_out: usize,
    errors: usize,
    /// Warnings that are given once, whatever their number.
    once: HashSet<String>,
}

impl Diagnostics {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        // Inputs that share a file find the same in it.
        if self.said.contains(&diagnostic) {
            return;
        }
        // An error is worth more than a warning.
        if self.said.len() >= DIAGNOSTICS_MAX {
            self.left_out += 1;
            let warning = self.said.iter().rposition(|it| it.severity < diagnostic.severity);
            let Some(warning) = warning else { return };
            self.said.remove(warning);
        }
        self.said.push(diagnostic);
    }

    /// Reads an input file; what is wrong is said.
    pub(crate) fn input(
        &mut self,
        sources: &mut SourceMap,
        files: &dyn Files,
        path: &Path,
    ) -> Option<FileId> {
        match sources.load(files, path, None) {
            Ok(file) => Some(file),
            Err(problem) => {
                let said = Diagnostic::general(format!("cannot read {}: {}", path.display(), problem.say()));
                self.push(said.hint("check the path and the permissions of the file"));
                None
            }
        }
    }

    /// Says it unless something was said under this name before.
    pub(crate) fn push_once(&mut self, name: &str, diagnostic: Diagnostic) {
        if !self.once.contains(name) {
            self.once.insert(name.to_owned());
            self.push(diagnostic);
        }
    }

    /// The first hundred, errors before warnings if there are more.
    pub fn all(&self) -> &[Diagnostic] {
        &self.said
    }

    /// How many there were beyond those.
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether there was an error.
    pub const fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many errors there were.
    pub const fn errors(&self) -> usize {
        self.errors
    }

    /// All as text, in the order of their places.
    pub fn render(&self, sources: &SourceMap) -> String {
        let mut sorted = self.said.iter().collect::<Vec<_>>();
        sorted.sort_by_key(|it| it.span);
        let mut text = sorted.iter().map(|it| it.render(sources)).collect::<Vec<_>>().join("\n");
        if self.left_out > 0 {
            let _ = writeln!(text, "\n{} more are not shown", self.left_out);
        }
        text
    }
}

/// The known name that is meant, if one is close.
pub(crate) fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = if name.len() < 4 { 1 } else { 2 };
    known
        .filter(|other| other.len().abs_diff(name.len()) <= limit)
        .map(|other| (distance(name, other), other))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, other)| other)
}

/// How many letters to change, add or take away, case aside.
fn distance(one: &str, other: &str) -> usize {
    let other = other.to_ascii_lowercase();
    let mut row = (0..=other.len()).collect::<Vec<_>>();
    for (line, letter) in one.to_ascii_lowercase().bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, against) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(letter != against);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_name_is_found_and_a_far_one_is_not() {
        let known = ["key", "optional", "mutable"];
        assert_eq!(closest("Key", known.into_iter()), Some("key"));
        assert_eq!(closest("optinal", known.into_iter()), Some("optional"));
        assert_eq!(closest("topic", known.into_iter()), None);
    }

    #[test]
    fn errors_take_the_place_of_warnings_when_there_are_too_many() {
        let mut sources = SourceMap::default();
        let file = sources.add("a.idl".into(), "a.idl".into(), "x".repeat(300), None);
        let span = |start: u32| Span { file, start, end: start + 1 };
        let mut diagnostics = Diagnostics::default();
        for start in 0..100 {
            diagnostics.push(Diagnostic::warning(span(start), "a warning"));
        }
        diagnostics.push(Diagnostic::error(span(200), "an error"));
        diagnostics.push(Diagnostic::warning(span(201), "a warning"));
        assert_eq!(diagnostics.all().len(), DIAGNOSTICS_MAX);
        assert_eq!(diagnostics.left_out(), 2);
        assert!(diagnostics.render(&sources).contains("error: an error"));
        assert!(diagnostics.render(&sources).ends_with("2 more are not shown\n"));
    }
}
