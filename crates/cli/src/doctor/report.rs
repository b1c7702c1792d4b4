//! What was looked at, and what was found.

use std::collections::BTreeMap;

use serde::Serialize;

use super::codes::{Code, Severity};
use crate::output::{Look, clean, counted, is_for_people, paint, say};

/// Entities that a finding names; of more it says how many.
const NAMED_MAX: usize = 4;
/// Findings of one code that are kept: there may be as many as pairs.
const FINDINGS_MAX: usize = 200;

/// Something that is wrong, or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) code: &'static str,
    pub(super) severity: Severity,
    /// Which entity it is about.
    pub(super) entity: String,
    /// What happened.
    pub(super) what: String,
    /// What to do.
    pub(super) cure: String,
    /// Other entities of which the same is true.
    pub(super) also: Vec<String>,
}

/// Something that was looked at, and how it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) state: String,
}

/// All of that.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) domain: u16,
    pub(super) checks: Vec<Check>,
    pub(super) findings: Vec<Finding>,
    /// Findings that are not told since there are too many of their code.
    pub(super) left_out: usize,
}

impl Report {
    /// Something that was looked at.
    pub(super) fn check(&mut self, name: &'static str, state: impl Into<String>) {
        self.checks.push(Check { name, state: state.into() });
    }

    /// Something that was found. With the same words about another entity, it is told once.
    pub(super) fn find(
        &mut self,
        code: &Code,
        severity: Severity,
        entity: impl Into<String>,
        what: impl Into<String>,
        cure: Option<String>,
    ) {
        let (entity, what) = (entity.into(), what.into());
        let cure = cure.filter(|cure| !cure.is_empty()).unwrap_or_else(|| code.cure.to_owned());
        let count = self.findings.iter().filter(|it| it.code == code.name).count();
        let mut of_code = self.findings.iter_mut().filter(|it| it.code == code.name);
        if let Some(known) = of_code.find(|it| it.what == what && it.cure == cure) {
            known.severity = known.severity.min(severity);
            if known.entity != entity {
                known.also.push(entity);
            }
        } else if count < FINDINGS_MAX {
            let code = code.name;
            self.findings.push(Finding { code, severity, entity, what, cure, also: Vec::new() });
        } else {
            self.left_out += 1;
        }
    }

    /// Whether there is anything but notes.
    pub(super) fn is_bad(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity < Severity::Note)
    }

    /// The worst first.
    pub(super) fn sort(&mut self) {
        self.findings.sort_by(|one, other| (one.severity, one.code).cmp(&(other.severity, other.code)));
    }

    /// Prints it, for people or for programs.
    pub(super) fn print(&self) {
        if !is_for_people() {
            for Check { name, state } in &self.checks {
                say!("check\t{name}\t{}", clean(state));
            }
            for it in &self.findings {
                let (entity, what) = (clean(&it.named()), clean(&it.what));
                say!("finding\t{}\t{}\t{entity}\t{what}\t{}", it.severity, it.code, clean(&it.cure));
            }
            return;
        }
        say!("{}", paint(&format!("domain {}", self.domain), Look::Bold));
        let width = self.checks.iter().map(|it| it.name.len()).max().unwrap_or(0);
        for Check { name, state } in &self.checks {
            say!("  {name:width$}  {}", clean(state));
        }
        for it in &self.findings {
            let look = match it.severity {
                Severity::Error => Look::Bad,
                Severity::Warning => Look::Warning,
                Severity::Note => Look::Bold,
            };
            say!();
            say!("{}: {}", paint(&format!("{} {}", it.severity, it.code), look), clean(&it.named()));
            say!("  {}", clean(&it.what));
            say!("  → {}", clean(&it.cure));
        }
        say!();
        say!("{}", self.summary());
    }

    fn summary(&self) -> String {
        let mut counts: BTreeMap<Severity, usize> = BTreeMap::new();
        for finding in &self.findings {
            *counts.entry(finding.severity).or_default() += 1;
        }
        let words: Vec<_> =
            counts.iter().map(|(severity, count)| counted(*count as u64, &severity.to_string())).collect();
        let left_out = match self.left_out {
            0 => String::new(),
            count => format!(", {count} more left out"),
        };
        if words.is_empty() { "nothing is wrong".to_owned() } else { words.join(", ") + &left_out }
    }
}

impl Finding {
    /// The entities it is about, some of them.
    fn named(&self) -> String {
        let mut text = self.entity.clone();
        for other in self.also.iter().take(NAMED_MAX - 1) {
            text += "; ";
            text += other;
        }
        match self.also.len().saturating_sub(NAMED_MAX - 1) {
            0 => text,
            more => format!("{text}; and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    #[test]
    fn the_same_about_several_entities_is_told_once_as_bad_as_the_worst() {
        let mut report = Report::default();
        for number in 0..6 {
            let severity = if number == 3 { Severity::Error } else { Severity::Warning };
            report.find(codes::KEY, severity, format!("pair {number}"), "one has a key", None);
        }
        let [finding] = &report.findings[..] else { panic!("{report:?}") };
        assert_eq!((finding.severity, finding.also.len()), (Severity::Error, 5));
        assert_eq!(finding.named(), "pair 0; pair 1; pair 2; pair 3; and 2 more");
        assert_eq!(finding.cure, codes::KEY.cure);
        assert!(report.is_bad());
    }

    #[test]
    fn findings_of_one_code_have_a_limit_and_notes_are_not_bad() {
        let mut report = Report::default();
        for number in 0..FINDINGS_MAX + 7 {
            report.find(codes::PARTITION, Severity::Note, "a pair", format!("what {number}"), None);
        }
        assert_eq!((report.findings.len(), report.left_out), (FINDINGS_MAX, 7));
        assert!(!report.is_bad() && report.summary().ends_with("7 more left out"));
    }
}
