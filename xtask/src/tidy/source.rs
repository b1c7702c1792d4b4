//! Rust source with comments, literals and tests blanked out, so that plain searches are right.

/// One Rust file.
pub(super) struct Source {
    /// Relative to the repository.
    pub(super) path: String,
    pub(super) text: String,
    /// `text` with comments, string contents, character literals and test items turned to spaces;
    /// same length, same lines.
    pub(super) code: String,
    /// Lines that belong to test items.
    pub(super) test_lines: usize,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Line of its name, from 1.
    pub(super) line: usize,
    /// Lines of its body that are neither blank nor comment.
    pub(super) length: usize,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let mut code = blank_literals(text.as_bytes());
        let test_lines = if is_test_file(path) {
            let lines = text.lines().count();
            blank(&mut code);
            lines
        } else {
            blank_test_items(&mut code)
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code: String::from_utf8_lossy(&code).into_owned(),
            test_lines,
        }
    }

    /// Whether all of it is test code.
    pub(super) fn is_test(&self) -> bool {
        is_test_file(&self.path)
    }

    /// The line, from 1, of an offset into `code`.
    pub(super) fn line_at(&self, offset: usize) -> usize {
        let before = self.code.as_bytes().iter().take(offset);
        1 + before.filter(|byte| **byte == b'\n').count()
    }

    /// Offsets at which `word` stands alone in the code.
    pub(super) fn occurrences(&self, word: &str) -> Vec<usize> {
        let bytes = self.code.as_bytes();
        let is_part = |offset: Option<usize>| {
            offset.and_then(|offset| bytes.get(offset)).is_some_and(|byte| is_identifier(*byte))
        };
        self.code
            .match_indices(word)
            .map(|(offset, _)| offset)
            .filter(|offset| !is_part(offset.checked_sub(1)) && !is_part(Some(offset + word.len())))
            .collect()
    }

    /// Every function with a body, tests left out.
    pub(super) fn functions(&self) -> Vec<Function> {
        let bytes = self.code.as_bytes();
        let mut functions = Vec::new();
        for offset in self.occurrences("fn") {
            let after = self.code.get(offset + 2..).unwrap_or_default().trim_start();
            let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let Some(open) = body_start(bytes, offset) else {
                continue;
            };
            if name.is_empty() {
                continue; // a function pointer type
            }
            let body = self.code.get(open + 1..matching(bytes, open)).unwrap_or("");
            functions.push(Function {
                name,
                line: self.line_at(offset),
                length: body.lines().filter(|line| !line.trim().is_empty()).count(),
            });
        }
        functions
    }
}

/// Whether a whole file is test code.
fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/tests_")
}

pub(super) fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// The text with comments and the contents of literals turned to spaces.
fn blank_literals(text: &[u8]) -> Vec<u8> {
    let mut code = text.to_vec();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let rest = text.get(at..).unwrap_or_default();
        let after_identifier =
            at.checked_sub(1).and_then(|before| text.get(before)).is_some_and(|byte| is_identifier(*byte));
        let length = match byte {
            b'/' if rest.starts_with(b"//") => line_comment(rest),
            b'/' if rest.starts_with(b"/*") => block_comment(rest),
            b'"' => quoted(rest),
            b'r' if !after_identifier || text.get(at.wrapping_sub(1)) == Some(&b'b') => {
                raw_string(rest).unwrap_or(0)
            }
            b'\'' => character(rest),
            _ => 0,
        };
        if length > 0 {
            let end = (at + length).min(code.len());
            if let Some(range) = code.get_mut(at..end) {
                blank(range);
            }
        }
        at += length.max(1);
    }
    code
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = rest.get(at..).unwrap_or_default();
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Length of a literal that begins with `"`.
fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    rest.len()
}

/// Length of a literal that begins with `r"` or `r#"`.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest.iter().skip(1).take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let begin = 2 + hashes;
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let body = rest.get(begin..)?;
    let close = body.windows(end.len()).position(|window| window == end)?;
    Some(begin + close + end.len())
}

/// Length of a character literal, 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|byte| *byte == b'\'');
        return close.map_or(0, |position| position + 4);
    }
    let close = rest.iter().skip(1).take(5).position(|byte| *byte == b'\'');
    match close {
        Some(position @ 1..) => {
            let inside = rest.get(1..=position).unwrap_or_default();
            let one = std::str::from_utf8(inside).is_ok_and(|text| text.chars().count() == 1);
            if one { position + 2 } else { 0 }
        }
        _ => 0,
    }
}

/// Blanks every item under `#[cfg(test)]`; how many lines they take.
fn blank_test_items(code: &mut [u8]) -> usize {
    const ATTRIBUTE: &[u8] = b"#[cfg(test)]";
    let mut lines = 0;
    let mut at = 0;
    while let Some(found) =
        code.get(at..).and_then(|rest| rest.windows(ATTRIBUTE.len()).position(|w| w == ATTRIBUTE))
    {
        let begin = at + found;
        let stop = code
            .iter()
            .skip(begin)
            .position(|byte| matches!(byte, b'{' | b';'))
            .map_or(code.len(), |position| begin + position);
        let end = if code.get(stop) == Some(&b'{') { matching(code, stop) } else { stop };
        let end = (end + 1).min(code.len());
        if let Some(item) = code.get_mut(begin..end) {
            lines += 1 + item.iter().filter(|byte| **byte == b'\n').count();
            blank(item);
        }
        at = end;
    }
    lines
}

/// The offset of the brace that closes the one at `open`, or the end.
fn matching(code: &[u8], open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return offset;
        }
    }
    code.len()
}

/// The opening brace of a function's body; `None` for a declaration.
fn body_start(code: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (offset, byte) in code.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(offset),
            b';' if depth == 0 => return None,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_comments_literals_and_tests_do_not_count() {
        let source = Source::new(
            "a.rs",
            "// unsafe\n/* unsafe /* unsafe */ */\nconst A: &str = \"unsafe \\\" unsafe\";\n\
             const B: &str = r#\"unsafe \" unsafe\"#;\nfn life<'a>(c: &'a char) -> bool { *c == '\"' }\n\
             #[cfg(test)]\nmod tests { fn t() { unsafe {} } }\nunsafe fn real() {}\n",
        );
        let offsets = source.occurrences("unsafe");
        assert_eq!(offsets.len(), 1);
        assert_eq!(source.line_at(offsets[0]), 8);
        assert_eq!(source.test_lines, 2);
    }

    #[test]
    fn functions_are_measured_without_comments_and_blank_lines() {
        let source = Source::new(
            "a.rs",
            "trait T { fn declared(&self); }\nfn long(f: fn(u8) -> [u8; 2]) {\n    // note\n\n    \
             let x = 1;\n    call(x);\n}\n",
        );
        let expected = Function { name: "long".to_owned(), line: 2, length: 2 };
        assert_eq!(source.functions(), vec![expected]);
    }
}
