//! The rules no compiler checks. Exceptions and the order of modules are in `xtask/tidy.txt`.

mod cycles;
mod pages;
mod paths;
mod rules;
mod settings;
mod source;

use std::fs;
use std::path::Path;

use crate::shell;
use settings::Settings;
use source::Source;

/// `cargo xtask tidy`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let root = shell::root();
    let text = fs::read_to_string(root.join("xtask/tidy.txt"))
        .map_err(|error| format!("xtask/tidy.txt: {error}"))?;
    let settings = Settings::parse(&text)?;
    let mut findings = check(&root, &settings)?;
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} findings", findings.len());
    Ok(findings.is_empty())
}

/// Every finding in the tree below `root`, as `path:line: what, and what to do`.
fn check(root: &Path, settings: &Settings) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let mut used = Vec::new();
    let mut graph = cycles::Graph::default();
    let mut places = vec![Vec::new(); settings.once.len()];
    for path in files(root)? {
        let Ok(text) = fs::read_to_string(root.join(&path)) else {
            continue; // binary
        };
        rules::no_foreign_words(&path, &text, &mut findings);
        if path.ends_with(".md") {
            pages::page((&path, &text), root, settings, &mut used, &mut findings);
        }
        if path.ends_with(".rs") {
            let source = Source::new(&path, &text);
            rules::begins_with_comment(&source, &mut findings);
            rules::sizes(&source, settings, &mut used, &mut findings);
            pages::comment_width(&source, &mut findings);
            rules::confined_unsafe(&source, settings, &mut findings);
            rules::confined_names(&source, settings, &mut findings);
            rules::note_places(&source, settings, &mut places);
            if path.starts_with("crates/plainsong/src/") {
                rules::reads_variables_only(&source, &mut findings);
            }
            if path.starts_with("crates/proto/src/") {
                rules::no_input_output(&source, &mut findings);
                rules::constants_in_the_table(&source, settings, &mut findings);
            }
            if path.starts_with("crates/proto/src/") || path.starts_with("crates/plainsong/src/") {
                rules::no_handmade_pauses(&source, &mut findings);
            }
            rules::module_direction(&source, settings, &mut findings);
            graph.add(&source);
        }
    }
    graph.check(settings, &mut findings);
    rules::one_place(settings, &places, &mut findings);
    rules::unused_exceptions(settings, &used, &mut findings);
    pages::octets(settings, root, &mut findings);
    let confined = settings.confined.iter().map(|(folder, _)| folder);
    let constants = settings.constants.iter().map(|(path, _)| path);
    for path in settings.unsafe_files.iter().chain(confined).chain(constants) {
        if !root.join(path).exists() {
            findings.push(format!("xtask/tidy.txt:1: {path} does not exist"));
        }
    }
    let lock = fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    rules::one_xml(&lock, &mut findings);
    const WITH_PATHS: [&str; 8] = [
        "ARCHITECTURE.md",
        "HACKING.md",
        "README.md",
        "docs/life-of-a-sample.md",
        "docs/performance-many.md",
        "docs/performance-network.md",
        "docs/performance-path.md",
        "docs/sending.md",
    ];
    for page in WITH_PATHS {
        match fs::read_to_string(root.join(page)) {
            Ok(text) => rules::named_paths_exist(page, &text, root, &mut findings),
            Err(error) => findings.push(format!("{page}:1: {error}")),
        }
    }
    Ok(findings)
}

/// Paths of all files below `root`, relative to it, built things left out.
fn files(root: &Path) -> Result<Vec<String>, String> {
    const LEFT_OUT: [&str; 5] = [".git", "target", "__pycache__", "corpus", "artifacts"];
    let mut found = Vec::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(root.join(&directory))
            .map_err(|error| format!("{directory}: {error}"))?
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("{directory}: {error}"))?;
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().map_err(|error| error.to_string())?;
            let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
            if LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    Ok(found)
}
