//! Names of IDL to names of Rust.

use std::collections::HashSet;

/// Words that Rust keeps for itself, and that can be written `r#word`.
const KEYWORDS: [&str; 49] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
    "union",
];
/// Words that cannot.
const PATH_WORDS: [&str; 5] = ["self", "Self", "super", "crate", "_"];
/// Crates that generated code names.
const CRATES: [&str; 4] = ["std", "core", "alloc", "plainsong"];

/// The words of a name: `fooBar`, `FooBar`, `foo_bar` and `FOO_BAR` have two.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::<String>::new();
    let letters = name.chars().collect::<Vec<_>>();
    let mut fresh = true;
    for (index, letter) in letters.iter().enumerate() {
        if *letter == '_' {
            fresh = true;
            continue;
        }
        let before = index.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(index + 1);
        // A word starts at a capital after a small letter, and at the last of several capitals.
        let rises = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if fresh || rises {
            words.push(String::new());
            fresh = false;
        }
        if let Some(word) = words.last_mut() {
            word.push(*letter);
        }
    }
    words
}

/// `foo_bar`, for members and modules.
pub(super) fn snake(name: &str) -> String {
    let joined = words(name).join("_").to_ascii_lowercase();
    started(joined)
}

/// `FooBar`, for types and variants.
pub(super) fn camel(name: &str) -> String {
    let mut text = String::new();
    for word in words(name) {
        let mut letters = word.chars();
        let Some(first) = letters.next() else { continue };
        // As in `V1_2`, which would be another name without `_`.
        if first.is_ascii_digit() && text.ends_with(|last: char| last.is_ascii_digit()) {
            text.push('_');
        }
        text.push(first.to_ascii_uppercase());
        text.extend(letters.map(|letter| letter.to_ascii_lowercase()));
    }
    started(text)
}

/// `FOO_BAR`, for constants.
pub(super) fn screaming(name: &str) -> String {
    started(words(name).join("_").to_ascii_uppercase())
}

/// A name does not start with a digit.
fn started(name: String) -> String {
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        format!("N{name}")
    } else {
        name
    }
}

/// The name as it can be written, which nothing else in its scope has.
pub(super) fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let mut name = name;
    if PATH_WORDS.contains(&name.as_str()) {
        name.push('_');
    }
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    if KEYWORDS.contains(&name.as_str()) { format!("r#{name}") } else { name }
}

/// The same for a module, which must not hide a crate.
pub(super) fn unique_module(name: String, taken: &mut HashSet<String>) -> String {
    let hides = CRATES.contains(&name.as_str());
    unique(if hides { format!("{name}_") } else { name }, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_rust_writes_them() {
        for (idl, small, large, capital) in [
            ("fooBar", "foo_bar", "FooBar", "FOO_BAR"),
            ("FooBar", "foo_bar", "FooBar", "FOO_BAR"),
            ("FOO_BAR_2", "foo_bar_2", "FooBar2", "FOO_BAR_2"),
            ("HTTPServer2", "http_server2", "HttpServer2", "HTTP_SERVER2"),
            ("x", "x", "X", "X"),
            ("V1_2", "v1_2", "V1_2", "V1_2"),
            ("3d", "N3d", "N3d", "N3D"),
        ] {
            assert_eq!(
                (snake(idl), camel(idl), screaming(idl)),
                (small.into(), large.into(), capital.into())
            );
        }
    }

    #[test]
    fn keywords_are_escaped_and_names_are_unique() {
        let mut taken = HashSet::new();
        assert_eq!(unique("type".into(), &mut taken), "r#type");
        assert_eq!(unique("type".into(), &mut taken), "type_");
        assert_eq!(unique("self".into(), &mut taken), "self_");
        assert_eq!(unique_module("std".into(), &mut taken), "std_");
    }
}
