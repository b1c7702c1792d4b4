//! Paths (`a::b::{c, d}`) named in blanked Rust code, use trees spread out.

use super::source::is_identifier;

/// Every path of two segments or more, with the offset of its first segment.
pub(super) fn paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let mut scanner = Scanner { bytes: code.as_bytes(), at: 0, found: Vec::new() };
    while scanner.at < scanner.bytes.len() {
        scanner.path(scanner.at, &[]);
    }
    scanner.found
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    found: Vec<(usize, Vec<String>)>,
}

impl Scanner<'_> {
    /// Reads one path that continues `prefix`, or steps over one byte.
    fn path(&mut self, begin: usize, prefix: &[String]) {
        let mut segments = prefix.to_vec();
        let start = self.at;
        while let Some(segment) = self.identifier() {
            segments.push(segment);
            let before_colons = self.at;
            self.blanks();
            if !self.eat(b"::") {
                self.at = before_colons;
                break;
            }
            self.blanks();
            if self.eat(b"{") {
                self.group(begin, &segments);
                return;
            }
        }
        if self.at == start {
            self.at += 1;
        } else if segments.len() > 1 {
            self.found.push((begin, segments));
        }
    }

    /// Reads the rest of a use group, up to its closing brace.
    fn group(&mut self, begin: usize, prefix: &[String]) {
        while self.at < self.bytes.len() && !self.eat(b"}") {
            self.path(begin, prefix);
        }
    }

    fn identifier(&mut self) -> Option<String> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().take_while(|byte| is_identifier(**byte)).count();
        let word = rest.get(..length).filter(|word| !word.is_empty())?;
        self.at += length;
        Some(String::from_utf8_lossy(word).into_owned())
    }

    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, token: &[u8]) -> bool {
        let there = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(token));
        if there {
            self.at += token.len();
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_trees_are_spread_out() {
        let code = "use crate::{wire::{data, ack}, qos}; let x = std::net::f::<u8>();";
        let found = paths(code).into_iter().map(|(_, path)| path.join("::"));
        let expected = ["crate::wire::data", "crate::wire::ack", "crate::qos", "std::net::f"];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
