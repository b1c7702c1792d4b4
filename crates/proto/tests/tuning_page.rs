//! `docs/tuning.md` is printed from the tables of tuning, and `docs/limits.md` from the limits that drivers
//! can set. `cargo xtask docs` writes the pages; the test refuses one that is out of date.

use std::collections::BTreeSet;
use std::fmt::{Debug, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

use plainsong_proto::atomic::{GroupLimits, SnapshotLimits};
use plainsong_proto::discovery::DiscoveryLimits;
use plainsong_proto::reader::ReaderLimits;
use plainsong_proto::time::Duration;
use plainsong_proto::tuning::{GROUPS, GROUPS_OF_ATOMIC, Group, Row};
use plainsong_proto::writer::WriterLimits;

/// Set by `cargo xtask docs`: the page is written instead of compared.
const WRITE_VARIABLE: &str = "PLAINSONG_WRITE_PAGES";

const INTRODUCTION: &str = "# Tuning of the protocol core

This page is written by `cargo xtask docs` from `crates/proto/src/tuning`; a test fails when it is out of date. What
drivers set is in `limits.md`. Numbers that a standard prescribes are not here: they stand in `wire` and where
they are used. The rows are constants, since the path of a sample is counted in instructions; `cargo xtask tidy`
refuses numbers of writers, readers and discovery outside the table.

";

const INTRODUCTION_OF_ATOMIC: &str = "# Tuning of ATOMIC groups

This page is written by `cargo xtask docs` from `crates/proto/src/tuning`; a test fails when it is out of date. The
rest of the tuning is in `tuning.md`, the protocol in `atomic.md`.

";

const INTRODUCTION_OF_LIMITS: &str = "# Limits of writers, readers and discovery

This page is written by `cargo xtask docs` from the structures that drivers fill in; a test fails when it is out of
date. RESOURCE_LIMITS only tightens them.

";

#[test]
fn the_pages_say_what_the_tables_say() {
    for (name, page) in [
        ("docs/tuning.md", tuning(INTRODUCTION, GROUPS)),
        ("docs/tuning-atomic.md", tuning(INTRODUCTION_OF_ATOMIC, GROUPS_OF_ATOMIC)),
        ("docs/limits.md", limits()),
    ] {
        let path = root().join(name);
        if env::var_os(WRITE_VARIABLE).is_some() {
            fs::write(&path, page).unwrap_or_else(|error| panic!("{name}: {error}"));
        } else {
            let there = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(there == page, "{name} is out of date: run `cargo xtask docs`");
        }
    }
}

#[test]
fn every_row_has_a_name_of_its_own_a_value_and_a_reason() {
    for group in GROUPS.iter().chain(GROUPS_OF_ATOMIC) {
        let mut names = BTreeSet::new();
        for row in group.rows {
            assert!(names.insert(row.name), "{} is twice in {}", row.name, group.owner);
            assert!(!row.default.is_empty() && !row.unit.is_empty(), "{}", row.name);
            assert!(reason(row).ends_with('.'), "{}: {}", row.name, row.why);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn tuning(introduction: &str, groups: &[Group]) -> String {
    let mut page = introduction.to_owned();
    for group in groups {
        heading(&mut page, group.owner);
        for row in group.rows {
            let unit = row.unit.replace('_', " ");
            line(&mut page, row.name, &format!("{} {unit}", row.default), reason(row));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len() + 1);
    page
}

fn limits() -> String {
    let mut page = INTRODUCTION_OF_LIMITS.to_owned();
    fields(&mut page, "WriterLimits", "src/limits.rs", &WriterLimits::default());
    fields(&mut page, "ReaderLimits", "src/limits.rs", &ReaderLimits::default());
    fields(&mut page, "GroupLimits", "src/limits.rs", &GroupLimits::default());
    fields(&mut page, "SnapshotLimits", "src/limits.rs", &SnapshotLimits::default());
    fields(&mut page, "DiscoveryLimits", "src/discovery/config.rs", &DiscoveryLimits::default());
    page.truncate(page.trim_end().len() + 1);
    page
}

fn heading(page: &mut String, title: &str) {
    write!(page, "## {title}\n| name | default | why |\n|---|---|---|\n").expect("text grows");
}

fn line(page: &mut String, name: &str, default: &str, why: &str) {
    writeln!(page, "| `{name}` | {default} | {why} |").expect("text grows");
}

fn reason(row: &Row) -> &str {
    row.why.trim()
}

/// The fields of a structure of limits, with the defaults that it shows and the comments that its source has.
fn fields(page: &mut String, name: &str, file: &str, defaults: &impl Debug) {
    heading(page, &format!("`{name}`"));
    let shown = format!("{defaults:?}");
    for (field, why) in &comments(name, file) {
        let value = shown.split_once(&format!(" {field}: ")).map(|(_, rest)| value(rest));
        let value = value.unwrap_or_else(|| panic!("{name} shows no {field}"));
        line(page, field, &value, &why.replace("[`", "`").replace("`]", "`"));
    }
    page.push('\n');
}

/// The value at the beginning of what `Debug` shows.
fn value(rest: &str) -> String {
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    let value = rest[..end].trim();
    let inner = value.split_once('(').map(|(kind, inner)| (kind, inner.trim_end_matches(')')));
    match inner {
        Some(("Duration", nanos)) => Duration(nanos.parse().expect("nanoseconds")).to_string(),
        Some((_, inner)) => inner.to_owned(),
        None => value.split_once(" {").map_or(value, |_| "see its type").to_owned(),
    }
}

/// The public fields of a structure, in order, with their comments.
fn comments(name: &str, file: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let start = format!("pub struct {name} {{");
    let (_, body) = text.split_once(&start).unwrap_or_else(|| panic!("{file} has no {name}"));
    let mut fields = Vec::new();
    let mut comment = String::new();
    for line in body.lines().map(str::trim).take_while(|line| *line != "}") {
        if let Some(more) = line.strip_prefix("///") {
            comment.push_str(more);
        } else if let Some((field, _)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(':')) {
            fields.push((field.to_owned(), std::mem::take(&mut comment).trim().to_owned()));
        }
    }
    fields
}
