//! The request/offered rules (DCPS 1.4 §2.2.3), and which partitions meet (§2.2.3.13).

use std::str::Chars;

use crate::cdr::XcdrVersion;
use crate::policy_id::PolicyId;

use super::policy::QosSet;
use super::table::POLICIES;

/// The policies in which `offered` falls short of `requested`, in order; empty when compatible.
#[must_use]
pub fn incompatible(offered: &QosSet, requested: &QosSet) -> Vec<PolicyId> {
    POLICIES
        .iter()
        .filter(|policy| policy.rule.is_some_and(|rule| !(rule.compatible)(offered, requested)))
        .filter_map(|policy| policy.id)
        .collect()
}

pub(super) fn durability(offered: &QosSet, requested: &QosSet) -> bool {
    offered.durability >= requested.durability
}

pub(super) fn presentation(offered: &QosSet, requested: &QosSet) -> bool {
    let (offered, requested) = (offered.presentation, requested.presentation);
    offered.access_scope >= requested.access_scope
        && offered.coherent_access >= requested.coherent_access
        && offered.ordered_access >= requested.ordered_access
}

pub(super) fn deadline(offered: &QosSet, requested: &QosSet) -> bool {
    offered.deadline <= requested.deadline
}

pub(super) fn latency_budget(offered: &QosSet, requested: &QosSet) -> bool {
    offered.latency_budget <= requested.latency_budget
}

pub(super) fn ownership(offered: &QosSet, requested: &QosSet) -> bool {
    offered.ownership == requested.ownership
}

pub(super) fn liveliness(offered: &QosSet, requested: &QosSet) -> bool {
    offered.liveliness.kind >= requested.liveliness.kind
        && offered.liveliness.lease_duration <= requested.liveliness.lease_duration
}

pub(super) fn reliability(offered: &QosSet, requested: &QosSet) -> bool {
    offered.is_reliable() || !requested.is_reliable()
}

pub(super) fn destination_order(offered: &QosSet, requested: &QosSet) -> bool {
    offered.destination_order >= requested.destination_order
}

pub(super) fn consistency(offered: &QosSet, requested: &QosSet) -> bool {
    offered.consistency.kind >= requested.consistency.kind
}

pub(super) fn data_representation(offered: &QosSet, requested: &QosSet) -> bool {
    representations(offered).first().is_some_and(|first| representations(requested).contains(first))
}

/// What DATA_REPRESENTATION means: an empty list is [XCDR1] (XTypes 1.3 §7.6.3.1.1).
pub(super) fn representations(qos: &QosSet) -> &[XcdrVersion] {
    if qos.data_representation.is_empty() { &[XcdrVersion::Xcdr1] } else { &qos.data_representation }
}

/// Whether two lists of partitions have one in common. Both may hold patterns (POSIX `fnmatch`); a
/// pattern never matches a pattern, and an empty list means the partition "".
#[must_use]
pub fn partitions_match(one: &[String], other: &[String]) -> bool {
    const DEFAULT: &[String] = &[String::new()];
    let one = if one.is_empty() { DEFAULT } else { one };
    let other = if other.is_empty() { DEFAULT } else { other };
    one.iter().any(|left| other.iter().any(|right| partition_matches(left, right)))
}

fn partition_matches(one: &str, other: &str) -> bool {
    match (is_pattern(one), is_pattern(other)) {
        (false, false) => one == other,
        (true, false) => pattern_matches(one, other),
        (false, true) => pattern_matches(other, one),
        (true, true) => false,
    }
}

/// Whether a name in PARTITION is a pattern.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether each set in a name that `[` begins has an end.
pub(super) fn is_whole_pattern(name: &str) -> bool {
    let last_close = name.rfind(']').map(|at| name.len() - at);
    let mut rest = name.chars();
    while let Some(first) = rest.next() {
        match first {
            '\\' => _ = rest.next(),
            '[' => match bracket(rest.clone(), first, last_close) {
                Some((_, after)) => rest = after,
                None => return false,
            },
            _ => {}
        }
    }
    true
}

/// `fnmatch` without flags: `*`, `?`, `[set]`, `[!set]` and `\` before a literal. Only the last `*` is
/// ever reconsidered, so the work is at most the product of both lengths, and nothing recurses.
#[must_use]
pub fn pattern_matches(pattern: &str, name: &str) -> bool {
    let last_close = pattern.rfind(']').map(|at| pattern.len() - at);
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    let mut last_star: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let mut after = pattern.clone();
        let matched = match after.next() {
            Some('*') => {
                last_star = Some((after.clone(), name.clone()));
                pattern = after;
                continue;
            }
            None if name.as_str().is_empty() => return true,
            None => false,
            Some(first) => {
                let mut rest = name.clone();
                let matched =
                    rest.next().is_some_and(|letter| matches_one(first, &mut after, letter, last_close));
                if matched {
                    (pattern, name) = (after, rest);
                }
                matched
            }
        };
        if matched {
            continue;
        }
        // Let the last star take one more letter.
        let Some((after_star, taken)) = &mut last_star else { return false };
        if taken.next().is_none() {
            return false;
        }
        (pattern, name) = (after_star.clone(), taken.clone());
    }
}

/// Whether `letter` fits the element that begins with `first`; `rest` moves past the element.
/// `last_close` is the distance of the last closing bracket from the end of the pattern.
fn matches_one(first: char, rest: &mut Chars<'_>, letter: char, last_close: Option<usize>) -> bool {
    match first {
        '?' => true,
        '\\' => rest.next().unwrap_or('\\') == letter,
        '[' => match bracket(rest.clone(), letter, last_close) {
            Some((matched, after)) => {
                *rest = after;
                matched
            }
            // Without its closing bracket it stands for itself.
            None => letter == '[',
        },
        literal => literal == letter,
    }
}

/// Whether `letter` is in the set that begins here, and what follows it; `None` when it never ends,
/// which is found out without walking to the end, or many open brackets would cost their product.
fn bracket(mut set: Chars<'_>, letter: char, last_close: Option<usize>) -> Option<(bool, Chars<'_>)> {
    let negated = set.as_str().starts_with(['!', '^']);
    if negated {
        set.next();
    }
    // A closing bracket right at the start is a member.
    let mut low = set.next()?;
    if set.as_str().len() < last_close? {
        return None;
    }
    let mut found = false;
    loop {
        let mut ahead = set.clone();
        // A dash between two letters makes a range; before the closing bracket it is a letter.
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                set = ahead;
                high
            }
            _ => low,
        };
        found |= (low..=high).contains(&letter);
        low = set.next()?;
        if low == ']' {
            return Some((found != negated, set));
        }
    }
}
