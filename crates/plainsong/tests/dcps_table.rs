//! `docs/dcps.md` names operations and tests: all of them exist.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The texts of all sources of the library.
fn sources(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            texts.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            texts.push(fs::read_to_string(path).unwrap());
        }
    }
    texts
}

/// What stands in backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The cells of each row of the tables, without their headers.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = table.lines().filter(|line| line.starts_with('|') && !line.starts_with("|---"));
    let rows = rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    rows.filter(|cells| {
        cells[0].starts_with('`') || cells[0].chars().all(|it| it.is_uppercase() || it == '_')
    })
}

#[test]
fn every_operation_and_every_test_that_the_table_names_exists() {
    let table = fs::read_to_string(root().join("docs/dcps.md")).unwrap();
    let texts = sources(&root().join("crates/plainsong/src"));
    let mut operations = 0;
    for cells in rows(&table) {
        let [dcps, rust, tests] = cells[..] else { panic!("three cells: {cells:?}") };
        operations += usize::from(dcps.starts_with('`'));
        for name in names(rust) {
            let (entity, function) = name.split_once("::").unwrap_or(("", name));
            if entity.chars().all(char::is_alphabetic) && name != "DdsType" && name != "DdsType::TYPE_NAME" {
                let declared = format!("fn {function}");
                let is_here = |text: &String| {
                    let mut places = text.match_indices(&declared);
                    places.any(|(at, _)| text[at + declared.len()..].starts_with(['(', '<']))
                };
                assert!(texts.iter().any(is_here), "{dcps}: there is no {function}");
                assert!(texts.iter().any(|text| text.contains(entity)), "{dcps}: there is no {entity}");
            }
        }
        for name in names(tests) {
            let (file, function) = name.rsplit_once("::").unwrap();
            let path = match (file.strip_prefix("proto/"), file.strip_prefix("sim/")) {
                (Some(file), _) => format!("crates/proto/src/{file}.rs"),
                (_, Some(file)) => format!("crates/sim/tests/{file}.rs"),
                _ => format!("crates/plainsong/tests/{file}.rs"),
            };
            let text = fs::read_to_string(root().join(&path)).unwrap_or_else(|_| panic!("{dcps}: no {path}"));
            assert!(text.contains(&format!("fn {function}(")), "{dcps}: {path} has no test {function}");
        }
    }
    assert!(operations > 150, "the table has all operations of the standard, not {operations}");
}
