//! The way to a part of a value, as text: `part.lines[2].name`, `cells[1][3]`, `ages["Ann"]`, and
//! `choice.$discriminator` of a union.

use std::borrow::Cow;

/// The discriminator of a union, where members are named.
pub(super) const DISCRIMINATOR: &str = "$discriminator";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Member(&'a str),
    /// What stands in brackets, as it is: an index, or the key of a map.
    At(Cow<'a, str>),
}

/// The steps of a path, or the octet at which it is none.
pub(super) fn steps(path: &str) -> Result<Vec<Step<'_>>, usize> {
    let (mut steps, mut rest) = (Vec::new(), path);
    let at = |rest: &str| path.len() - rest.len();
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (key, behind) = in_brackets(inside).ok_or_else(|| at(rest))?;
            steps.push(Step::At(key));
            rest = behind;
            continue;
        }
        let named = if steps.is_empty() { rest } else { rest.strip_prefix('.').ok_or_else(|| at(rest))? };
        let (name, behind) = named.split_at(named.find(['.', '[']).unwrap_or(named.len()));
        if name.is_empty() {
            return Err(at(named));
        }
        steps.push(Step::Member(name));
        rest = behind;
    }
    Ok(steps)
}

/// What stands before the closing bracket, and what follows that.
fn in_brackets(inside: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(quoted) = inside.strip_prefix('"') else {
        return inside.split_once(']').map(|(index, behind)| (Cow::Borrowed(index), behind));
    };
    let (mut key, mut letters) = (String::new(), quoted.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((Cow::Owned(key), quoted.get(at + 1..)?.strip_prefix(']')?)),
            '\\' => key.push(letters.next()?.1),
            _ => key.push(letter),
        }
    }
    None
}

/// Appends the step to the pair of a map with this key.
#[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "JSON alone has it"))]
pub(super) fn push_key(path: &mut String, key: &str) {
    path.push_str("[\"");
    for letter in key.chars() {
        if matches!(letter, '"' | '\\') {
            path.push('\\');
        }
        path.push(letter);
    }
    path.push_str("\"]");
}

/// Appends the step to a member.
#[cfg_attr(not(feature = "serde"), allow(dead_code, reason = "JSON alone has it"))]
pub(super) fn push_member(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_steps() {
        let at = |key: &'static str| Step::At(key.into());
        let member = Step::Member;
        assert_eq!(steps(""), Ok(vec![]));
        assert_eq!(steps("a"), Ok(vec![member("a")]));
        assert_eq!(
            steps("a.b[2][3].$discriminator"),
            Ok(vec![member("a"), member("b"), at("2"), at("3"), member("$discriminator")])
        );
        assert_eq!(steps(r#"a["x]\"\\"]"#), Ok(vec![member("a"), at("x]\"\\")]));
        for (wrong, place) in [("a..b", 2), (".a", 0), ("a[", 1), ("a[2]b", 4), (r#"a["x]"#, 1), ("a.", 2)] {
            assert_eq!(steps(wrong), Err(place), "{wrong}");
        }
        let mut path = "a".to_owned();
        push_key(&mut path, "x]\"\\");
        assert_eq!(path, r#"a["x]\"\\"]"#);
    }
}
