//! Circles of files that name one another. Those of one data structure are listed in `xtask/tidy.txt`.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::paths;
use super::rules::module_path;
use super::settings::Settings;
use super::source::Source;

/// Which files name which others, by `crate::` and `super::` paths. The way from a module to its own
/// submodules is not counted: it is made of them.
#[derive(Default)]
pub(super) struct Graph {
    /// The code of each file, by crate and module path.
    modules: BTreeMap<Module, String>,
    named: Vec<(Module, Vec<String>)>,
}

/// A module: the directory of its crate, and the path within.
type Module = (String, Vec<String>);

impl Graph {
    /// Notes a file of a crate below `crates/`.
    pub(super) fn add(&mut self, source: &Source) {
        let Some((directory, _)) = source.path.split_once("/src/") else { return };
        if !directory.starts_with("crates/") || source.is_test() {
            return;
        }
        let own = module_path(&source.path);
        let module = (directory.to_owned(), own.clone());
        self.modules.insert(module.clone(), source.path.clone());
        for (_, path) in paths(&source.code) {
            self.named.extend(absolute(&own, &path).map(|path| (module.clone(), path)));
        }
    }

    /// A finding for each circle that no line `cycle` allows, and for each line that allows none.
    pub(super) fn check(&self, settings: &Settings, findings: &mut Vec<String>) {
        let mut unused: BTreeSet<&[String]> = settings.cycles.iter().map(Vec::as_slice).collect();
        for circle in self.circles() {
            let allowed = settings.cycles.iter().find(|files| circle.iter().all(|file| files.contains(file)));
            match allowed {
                Some(files) => {
                    unused.remove(files.as_slice());
                    for file in files.iter().filter(|file| !circle.contains(file)) {
                        findings.push(format!(
                            "xtask/tidy.txt:1: {file} is in no circle with {} any more: remove it",
                            circle.first().map_or("", String::as_str)
                        ));
                    }
                }
                None => findings.push(format!(
                    "{}:1: a circle of imports: {}; move what they share below them",
                    circle.first().map_or("", String::as_str),
                    circle.join(" ")
                )),
            }
        }
        for files in unused {
            findings.push(format!("xtask/tidy.txt:1: no circle any more: {}: remove it", files.join(" ")));
        }
    }

    /// Files that reach one another, two or more.
    fn circles(&self) -> Vec<Vec<String>> {
        let edges = self.edges();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            edges.keys().map(|from| (*from, reach(from, &edges))).collect();
        let mut placed = BTreeSet::new();
        let mut circles = Vec::new();
        for (from, to) in &reached {
            if placed.contains(from) || !to.contains(from) {
                continue;
            }
            let back = |it: &&&Module| reached.get(**it).is_some_and(|its| its.contains(from));
            let circle: Vec<&Module> = to.iter().filter(back).copied().collect();
            placed.extend(circle.iter().copied());
            let mut files: Vec<String> =
                circle.iter().filter_map(|module| self.modules.get(*module).cloned()).collect();
            files.sort();
            circles.push(files);
        }
        circles
    }

    fn edges(&self) -> BTreeMap<&Module, BTreeSet<&Module>> {
        let mut edges: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
        for (from, path) in &self.named {
            let Some((from, _)) = self.modules.get_key_value(from) else { continue };
            let Some(to) = self.file_of(&from.0, path) else { continue };
            let is_own_part = to.1.starts_with(&from.1);
            if !is_own_part {
                edges.entry(from).or_default().insert(to);
            }
        }
        edges
    }

    /// The file that a path leads into: the longest module that it begins with.
    fn file_of(&self, directory: &str, path: &[String]) -> Option<&Module> {
        (1..=path.len()).rev().find_map(|length| {
            let module = (directory.to_owned(), path.get(..length)?.to_vec());
            self.modules.get_key_value(&module).map(|(module, _)| module)
        })
    }
}

/// What can be reached from a module in one step or more.
fn reach<'a>(from: &'a Module, edges: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for to in edges.get(module).into_iter().flatten() {
            if reached.insert(*to) {
                next.push(to);
            }
        }
    }
    reached
}

/// The path from the root of the crate; `None` for what is not of this crate.
pub(super) fn absolute(own: &[String], path: &[String]) -> Option<Vec<String>> {
    if path.first()? == "crate" {
        return path.get(1..).map(<[_]>::to_vec);
    }
    let ups = path.iter().take_while(|part| *part == "super").count();
    let base = own.get(..own.len().checked_sub(ups).filter(|_| ups > 0)?)?;
    Some(base.iter().chain(path.get(ups..)?).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)], settings: &str) -> Vec<String> {
        let mut graph = Graph::default();
        for (path, code) in files {
            graph.add(&Source::new(path, code));
        }
        let mut findings = Vec::new();
        graph.check(&Settings::parse(settings).expect("settings parse"), &mut findings);
        findings
    }

    const CIRCLE: [(&str, &str); 4] = [
        ("crates/a/src/x/mod.rs", "mod one; mod two; use one::One;"),
        ("crates/a/src/x/one.rs", "use super::two::Two; use super::X;"),
        ("crates/a/src/x/two.rs", "use crate::y::Y;"),
        ("crates/a/src/y.rs", "use crate::{x::{one::One}, z};"),
    ];

    #[test]
    fn a_circle_of_files_is_found_and_its_parts_do_not_count() {
        let found = findings(&CIRCLE, "");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("crates/a/src/x/one.rs crates/a/src/x/two.rs crates/a/src/y.rs;"),
            "{found:?}"
        );
        assert!(findings(&CIRCLE[..3], "").is_empty());
        let apart = [CIRCLE[1], CIRCLE[2], ("crates/b/src/y.rs", CIRCLE[3].1)];
        assert!(findings(&apart, "").is_empty(), "crates do not mix");
    }

    #[test]
    fn a_circle_is_allowed_by_name_as_long_as_it_is_there() {
        let allowed =
            "cycle crates/a/src/x/one.rs crates/a/src/x/two.rs crates/a/src/y.rs: one table of functions";
        assert!(findings(&CIRCLE, allowed).is_empty());
        assert_eq!(findings(&CIRCLE[..3], allowed).len(), 1);
        let more = "cycle crates/a/src/x/one.rs crates/a/src/x/two.rs crates/a/src/y.rs crates/a/src/z.rs: one table of it";
        assert_eq!(findings(&CIRCLE, more).len(), 1);
        assert!(Settings::parse("cycle crates/a/src/x.rs crates/a/src/y.rs").is_err());
    }
}
