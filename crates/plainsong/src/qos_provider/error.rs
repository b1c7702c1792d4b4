//! What is wrong with a QoS profile, where, and what was probably meant.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// A place in an XML document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Path of the file, or `text`.
    pub(super) source: Arc<str>,
    /// From 1.
    pub(super) line: u32,
    /// In characters, from 1.
    pub(super) column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source, self.line, self.column)
    }
}

/// Why QoS profiles cannot be used: `Display` says where, what, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", match place { Some(place) => format!("{place}: {message}"), None => message.clone() })]
pub struct QosProviderError {
    place: Option<Place>,
    message: String,
}

impl QosProviderError {
    pub(super) fn at(place: &Place, message: impl Into<String>) -> Self {
        Self { place: Some(place.clone()), message: message.into() }
    }

    pub(super) fn anywhere(message: impl Into<String>) -> Self {
        Self { place: None, message: message.into() }
    }

    pub(super) fn continued(&self, more: &str) -> Self {
        Self { place: self.place.clone(), message: format!("{}{more}", self.message) }
    }

    /// Line in the document, from 1; `None` when no line is to blame.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.place.as_ref().map(|place| place.line)
    }

    /// Column in the document, in characters from 1.
    #[must_use]
    pub fn column(&self) -> Option<u32> {
        self.place.as_ref().map(|place| place.column)
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Longest word whose likes are looked for, in octets.
const LIKENESS_BYTES_MAX: usize = 64;

/// Words among which is looked.
const KNOWN_MAX: usize = 1_000;

/// `; did you mean X?`, when one of the known words is close to `word`; otherwise all of them.
pub(super) fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let limit = 1 + word.len() / 3;
    let nearest = known.clone().take(KNOWN_MAX).map(|other| (distance(word, other), other)).min();
    match nearest {
        None => String::new(),
        Some((distance, other)) if distance <= limit => format!("; did you mean {other}?"),
        Some(_) => {
            let known: Vec<_> = known.take(24).collect();
            format!("; known are {}", known.join(", "))
        }
    }
}

/// Letters to insert, remove, replace; a part that was left out counts once.
fn distance(word: &str, other: &str) -> usize {
    if word.len() > LIKENESS_BYTES_MAX || other.len() > LIKENESS_BYTES_MAX {
        return usize::MAX;
    }
    if !word.is_empty() && (other.contains(word) || (!other.is_empty() && word.contains(other))) {
        return 1;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in word.bytes().enumerate() {
        let mut diagonal = index;
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
        let mut left = index + 1;
        for (cell, theirs) in row.iter_mut().skip(1).zip(other.bytes()) {
            let replaced = diagonal + usize::from(!letter.eq_ignore_ascii_case(&theirs));
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_listed() {
        let known = ["history", "reliability", "domain_participant_qos"];
        let suggested = |word| suggestion(word, known.into_iter());
        assert_eq!(suggested("histroy"), "; did you mean history?");
        assert_eq!(suggested("Reliability"), "; did you mean reliability?");
        assert_eq!(suggested("participant_qos"), "; did you mean domain_participant_qos?");
        assert_eq!(suggested("xyzzy"), "; known are history, reliability, domain_participant_qos");
        assert!(suggested(&"x".repeat(10_000)).starts_with("; known are"));
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
