//! Pages: how long they may be, and whether their links lead somewhere. The width of comments.

use std::path::Path;

use super::settings::Settings;
use super::source::Source;

const PAGE_LINES: usize = 300;
/// As in `rustfmt.toml`, which does not wrap comments.
const COMMENT_COLUMNS: usize = 110;

/// The page is no longer than allowed, and each of its links to a file leads to one.
pub(super) fn page(
    (path, text): (&str, &str),
    root: &Path,
    settings: &Settings,
    used: &mut Vec<String>,
    findings: &mut Vec<String>,
) {
    let lines = text.lines().count();
    let exception = settings.exceptions.iter().find(|it| it.subject == path && lines <= it.limit);
    if lines <= PAGE_LINES {
        // As it should be.
    } else if exception.is_some() {
        used.push(path.to_owned());
    } else {
        findings.push(format!("{path}:1: {lines} lines, {PAGE_LINES} are allowed: shorten or divide it"));
    }
    let folder = Path::new(path).parent().unwrap_or_else(|| Path::new(""));
    for (index, line) in text.lines().enumerate() {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let (target, _) = link.split_once('#').unwrap_or((link, ""));
            if !target.is_empty() && !target.contains(':') && !root.join(folder).join(target).exists() {
                findings.push(format!("{path}:{}: the link to {target} leads nowhere", index + 1));
            }
        }
    }
}

/// Pages for which `xtask/tidy.txt` says so have no more octets together than it allows.
pub(super) fn octets(settings: &Settings, root: &Path, findings: &mut Vec<String>) {
    for (pages, most) in &settings.pages {
        let length = |page: &String| std::fs::metadata(root.join(page)).map(|file| file.len());
        match pages.iter().map(length).sum::<Result<u64, _>>() {
            Ok(octets) if octets <= *most => {}
            Ok(octets) => {
                let pages = pages.join(", ");
                findings.push(format!("{pages}:1: {octets} octets, {most} are allowed: shorten it"));
            }
            Err(error) => findings.push(format!("xtask/tidy.txt:1: {}: {error}", pages.join(", "))),
        }
    }
}

/// Lines that are comments are no wider than code.
pub(super) fn comment_width(source: &Source, findings: &mut Vec<String>) {
    for (index, line) in source.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COMMENT_COLUMNS && line.trim_start().starts_with("//") {
            findings.push(format!(
                "{}:{}: a comment of {columns} columns, {COMMENT_COLUMNS} are allowed: wrap it",
                source.path,
                index + 1
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_short_and_its_links_lead_to_files() {
        let found = |text: &str| {
            let mut findings = Vec::new();
            page(
                ("xtask/page.md", text),
                &crate::shell::root(),
                &Settings::default(),
                &mut Vec::new(),
                &mut findings,
            );
            findings
        };
        let fine = "[one](tidy.txt#part), [two](../Cargo.toml), [three](https://example.org), [four](#here)";
        assert_eq!(found(fine), Vec::<String>::new());
        assert_eq!(found("see [this](nowhere.md#there)").len(), 1);
        assert_eq!(found(&"line\n".repeat(PAGE_LINES)).len(), 0);
        assert_eq!(found(&"line\n".repeat(PAGE_LINES + 1)).len(), 1);
    }

    #[test]
    fn pages_are_counted_together() {
        let found = |settings: &str| {
            let settings = Settings::parse(settings).expect("settings parse");
            let mut findings = Vec::new();
            octets(&settings, &crate::shell::root(), &mut findings);
            findings.len()
        };
        assert_eq!(found("pages 1000000 README.md Cargo.toml"), 0);
        assert_eq!(found("pages 10 README.md Cargo.toml"), 1);
        assert_eq!(found("pages 1000000 nowhere.md"), 1);
    }

    #[test]
    fn comments_are_no_wider_than_code() {
        let found = |line: &str| {
            let mut findings = Vec::new();
            comment_width(&Source::new("crates/a/src/new.rs", line), &mut findings);
            findings.len()
        };
        let wide = format!("/// {}", "é".repeat(COMMENT_COLUMNS - 3));
        assert_eq!((found(&wide), found(&wide.replacen("é", "", 1))), (1, 0));
    }
}
