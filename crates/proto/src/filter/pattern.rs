//! LIKE and MATCH: patterns of text.

use super::sql::PatternKind;

/// Characters of a pattern at most.
const PATTERN_LENGTH_MAX: usize = 256;

/// Some patterns, of which one must fit the whole text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern(Vec<Vec<Element>>);

#[derive(Debug, Clone, PartialEq)]
enum Element {
    /// Any characters, even none.
    Many,
    /// Any one character.
    One,
    Exactly(char),
    /// One character in (or out of) these ranges.
    Set {
        ranges: Vec<(char, char)>,
        negated: bool,
    },
}

impl Pattern {
    pub(super) fn new(text: &str, kind: PatternKind) -> Result<Self, String> {
        if text.chars().count() > PATTERN_LENGTH_MAX {
            return Err(format!("a pattern has at most {PATTERN_LENGTH_MAX} characters"));
        }
        match kind {
            // Annex B names % and _ and allows * and ? for them.
            PatternKind::Like => Ok(Self(vec![text.chars().map(like).collect()])),
            // Several, parted by commas, in the manner of file names.
            PatternKind::Match => text.split(',').map(glob).collect::<Result<_, _>>().map(Self),
        }
    }

    /// Steps it takes at most for each character of a text.
    pub(super) fn steps(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern, text))
    }
}

const fn like(character: char) -> Element {
    match character {
        '%' | '*' => Element::Many,
        '_' | '?' => Element::One,
        other => Element::Exactly(other),
    }
}

/// `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character that means itself.
fn glob(text: &str) -> Result<Vec<Element>, String> {
    let mut elements = Vec::new();
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        elements.push(match next {
            '*' => Element::Many,
            '?' => Element::One,
            '\\' => Element::Exactly(rest.next().unwrap_or('\\')),
            '[' => {
                let (set, after) = rest
                    .as_str()
                    .split_once(']')
                    .ok_or_else(|| format!("the set in the pattern '{text}' has no closing ']'"))?;
                rest = after.chars();
                set_of(set)
            }
            other => Element::Exactly(other),
        });
    }
    Ok(elements)
}

fn set_of(text: &str) -> Element {
    let members = text.strip_prefix(['!', '^']);
    let mut rest = members.unwrap_or(text).chars();
    let mut ranges = Vec::new();
    while let Some(low) = rest.next() {
        let range = rest.as_str().strip_prefix('-').and_then(|after| after.chars().next());
        if range.is_some() {
            rest.nth(1);
        }
        ranges.push((low, range.unwrap_or(low)));
    }
    Element::Set { ranges, negated: members.is_some() }
}

impl Element {
    fn is(&self, character: char) -> bool {
        match self {
            Self::Many => false,
            Self::One => true,
            Self::Exactly(wanted) => *wanted == character,
            Self::Set { ranges, negated } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }
}

/// Goes back to the last [`Element::Many`] only: what came before it fits already, and the earliest place is
/// the best. So the work is at most the product of both lengths.
fn fits(pattern: &[Element], text: &str) -> bool {
    let mut at = 0;
    let mut rest = text.chars();
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        if pattern.get(at) == Some(&Element::Many) {
            at += 1;
            retry = Some((at, rest.clone()));
            continue;
        }
        let mut after = rest.clone();
        match (after.next(), pattern.get(at)) {
            (None, None) => return true,
            (Some(character), Some(element)) if element.is(character) => {
                at += 1;
                rest = after;
                continue;
            }
            (None, Some(_)) => return false,
            _ => {}
        }
        // One more character belongs to what matches any.
        let Some((again, from)) = &mut retry else { return false };
        if from.next().is_none() {
            return false;
        }
        at = *again;
        rest = from.clone();
        if at == pattern.len() {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern, PatternKind::Like).is_ok_and(|pattern| pattern.matches(text))
    }

    fn glob(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern, PatternKind::Match).is_ok_and(|pattern| pattern.matches(text))
    }

    #[test]
    fn like_matches_the_whole_text() {
        for (pattern, text) in [
            ("", ""),
            ("%", ""),
            ("%", "anything"),
            ("BL%", "BLUE"),
            ("BL*", "BLUE"),
            ("%UE", "BLUE"),
            ("B%U%", "BLUE"),
            ("B__E", "BLUE"),
            ("B?U?", "BLUE"),
            ("%LU%E", "BLUELUE"),
            ("%ab", "aab"),
            ("_%", "é"),
        ] {
            assert!(like(pattern, text), "{text} LIKE {pattern}");
        }
        for (pattern, text) in [
            ("", "B"),
            ("B", ""),
            ("B%", "ABLUE"),
            ("B_E", "BLUE"),
            ("%U", "BLUE"),
            ("_", ""),
            ("b%", "BLUE"),
        ] {
            assert!(!like(pattern, text), "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn match_takes_sets_and_alternatives() {
        assert!(glob("NASDAQ/[A-M]*,NYSE/?", "NASDAQ/INTC"));
        assert!(glob("NASDAQ/[A-M]*,NYSE/?", "NYSE/F"));
        assert!(!glob("NASDAQ/[A-M]*,NYSE/?", "NASDAQ/ZZ"));
        assert!(glob("[!0-9x]", "a") && !glob("[!0-9x]", "5") && !glob("[^0-9x]", "x"));
        assert!(glob(r"a\*", "a*") && !glob(r"a\*", "ab"));
        assert!(Pattern::new("[a", PatternKind::Match).is_err_and(|error| error.contains("closing ']'")));
    }

    #[test]
    fn r15_patterns_do_not_blow_up() {
        let text = "a".repeat(1 << 16);
        assert!(!like(
            &"%a"
                .repeat(100)
                .replace("%a%a", "%a%_a")
                .chars()
                .take(200)
                .chain("b".chars())
                .collect::<String>(),
            &text
        ));
        assert!(!like(&format!("%{}b", "a".repeat(250)), &text));
        assert!(like(&"%".repeat(256), &text));
        assert!(Pattern::new(&"%".repeat(257), PatternKind::Like).is_err());
    }
}
