//! The tables of a report in Markdown, for pages that tell what was measured.

use std::fmt::Write;

use super::format;
use super::ratios;
use super::section::{Names, Section};
use super::summary::Summary;
use super::text;
use crate::perf::results::Run;

/// A heading and a table for each scenario of a run, and the ratios that its campaign asks for.
pub(crate) fn write(run: &Run, summaries: &[Summary<'_>]) -> String {
    let names = Names::of(run);
    let mut page = String::new();
    let _ = writeln!(page, "Run {}, {}:", escape(&run.name), format::time(run.started_unix_ms));
    for section in Section::all(summaries) {
        let _ = writeln!(page, "\n### {} ({})\n", escape(&section.title), escape(&section.kind));
        let shared = section.shared();
        if !shared.is_empty() {
            let _ = writeln!(page, "{}\n", escape(&format::capitalized(&shared)));
        }
        for (index, row) in text::table(&names, &section, run.calibration.as_ref(), false).iter().enumerate()
        {
            let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
            let _ = writeln!(page, "| {} |", cells.join(" | "));
            if index == 0 {
                // Names to the left, numbers to the right.
                let _ = writeln!(page, "|---|{}", "---:|".repeat(row.len().saturating_sub(1)));
            }
        }
    }
    let ratios = ratios::check(run, summaries);
    if !ratios.is_empty() {
        page.push_str("\n### Ratios\n\n");
    }
    for ratio in ratios {
        let _ = writeln!(page, "- {}: {}", escape(&ratio.cell), escape(&ratio.words()));
    }
    page
}

/// Names come from other programs: none of them is taken for markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for each in text.chars() {
        match each {
            each if each.is_control() => escaped.push('?'),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '#' | '!' | '~' => {
                escaped.push('\\');
                escaped.push(each);
            }
            each => escaped.push(each),
        }
    }
    escaped
}
