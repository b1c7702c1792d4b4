//! The rules, one function each.

use std::path::Path;

use super::cycles::absolute;
use super::paths::paths;
use super::settings::Settings;
use super::source::Source;

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;

/// What the protocol core may not name: everything that makes a run depend on more than its inputs.
const INPUT_OUTPUT: [&str; 8] = [
    "std::net",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::env",
    "std::fs",
    "std::process",
    "rand",
];

/// Words that belong to somebody's machine. Written in halves, for this file is checked too.
const FOREIGN_WORDS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/tmp/", "wt"), concat!("arti", "factory")];

pub(super) fn no_foreign_words(path: &str, text: &str, findings: &mut Vec<String>) {
    for (index, line) in text.lines().enumerate() {
        let lower = line.to_ascii_lowercase();
        for word in FOREIGN_WORDS {
            if lower.contains(word) {
                findings.push(format!("{path}:{}: `{word}` is of one machine: remove it", index + 1));
            }
        }
    }
}

pub(super) fn begins_with_comment(source: &Source, findings: &mut Vec<String>) {
    if !source.text.starts_with("//!") {
        findings
            .push(format!("{}:1: begin with a `//!` comment that says what the file is for", source.path));
    }
}

/// Checks the length of the file and of its functions; `used` collects the exceptions needed.
pub(super) fn sizes(
    source: &Source,
    settings: &Settings,
    used: &mut Vec<String>,
    findings: &mut Vec<String>,
) {
    let length = source.text.lines().count().saturating_sub(source.test_lines);
    let file = (source.path.clone(), 1, length, FILE_LINES);
    let functions = source.functions().into_iter().map(|function| {
        let subject = format!("{}::{}", source.path, function.name);
        (subject, function.line, function.length, FUNCTION_LINES)
    });
    for (subject, line, length, limit) in std::iter::once(file).chain(functions) {
        if length <= limit {
            continue;
        }
        let exception = settings.exceptions.iter().find(|e| e.subject == subject);
        match exception {
            Some(exception) if length <= exception.limit => used.push(subject),
            Some(exception) => {
                used.push(subject.clone());
                findings.push(format!(
                    "{}:{line}: {subject} has {length} lines, even its exception allows {}: split it",
                    source.path, exception.limit
                ));
            }
            None => findings.push(format!(
                "{}:{line}: {subject} has {length} lines, {limit} are allowed: split it",
                source.path
            )),
        }
    }
}

pub(super) fn unused_exceptions(settings: &Settings, used: &[String], findings: &mut Vec<String>) {
    for exception in &settings.exceptions {
        if !used.contains(&exception.subject) {
            findings.push(format!(
                "xtask/tidy.txt:1: {} needs no exception any more: remove it",
                exception.subject
            ));
        }
    }
}

/// `unsafe` stands in the few files that `xtask/tidy.txt` names, and the compiler forbids it in every crate
/// without such a file.
pub(super) fn confined_unsafe(source: &Source, settings: &Settings, findings: &mut Vec<String>) {
    if !settings.unsafe_files.contains(&source.path) {
        findings.extend(source.occurrences("unsafe").into_iter().map(|offset| {
            let line = source.line_at(offset);
            format!("{}:{line}: `unsafe` outside of the files that xtask/tidy.txt names for it", source.path)
        }));
    }
    let root = ["/src/lib.rs", "/src/main.rs"].iter().find_map(|root| source.path.strip_suffix(root));
    let Some(package) = root.filter(|package| !package.contains("/src")) else { return };
    let needs_unsafe = settings.unsafe_files.iter().any(|file| file.starts_with(&format!("{package}/")));
    if !needs_unsafe && !source.code.contains("#![forbid(unsafe_code)]") {
        findings.push(format!("{}:1: write `#![forbid(unsafe_code)]`", source.path));
    }
}

/// Names that `xtask/tidy.txt` confines to a folder stand nowhere else in its crate, tests aside.
pub(super) fn confined_names(source: &Source, settings: &Settings, findings: &mut Vec<String>) {
    for (folder, names) in &settings.confined {
        let is_below = |folder: &str| source.path.strip_prefix(folder).is_some_and(|it| it.starts_with('/'));
        let root = folder.find("/src/").and_then(|at| folder.get(..at + "/src".len()));
        if is_below(folder) || !root.is_some_and(is_below) {
            continue;
        }
        for name in names {
            findings.extend(source.occurrences(name).into_iter().map(|offset| {
                let line = source.line_at(offset);
                format!("{}:{line}: `{name}` outside of {folder} (xtask/tidy.txt)", source.path)
            }));
        }
    }
}

/// Where a name stands that `xtask/tidy.txt` wants in one place of a folder, tests aside.
pub(super) fn note_places(source: &Source, settings: &Settings, places: &mut [Vec<String>]) {
    for ((folder, name), places) in settings.once.iter().zip(places) {
        let is_below = source.path.strip_prefix(folder.as_str()).is_some_and(|it| it.starts_with('/'));
        if is_below && !source.path.contains("/tests/") {
            let found = source.occurrences(name).into_iter();
            places.extend(found.map(|offset| format!("{}:{}", source.path, source.line_at(offset))));
        }
    }
}

/// There is one such place.
pub(super) fn one_place(settings: &Settings, places: &[Vec<String>], findings: &mut Vec<String>) {
    for ((folder, name), places) in settings.once.iter().zip(places).filter(|(_, places)| places.len() != 1) {
        let first = places.last().map_or("xtask/tidy.txt:1", String::as_str);
        findings.push(format!("{first}: `{name}` stands in {} places of {folder}, not in one", places.len()));
    }
}

/// The library parses no texts but its variables, the QoS profiles it is given and the kernel's list of
/// sockets: one module each opens files for the latter two, one alone reads variables. Another asks the
/// system for the names of host, user and executable, which are told as they are, and for the map of users;
/// and one keeps what must outlive the process.
pub(super) fn reads_variables_only(source: &Source, findings: &mut Vec<String>) {
    let is_process = source.path == "crates/plainsong/src/base/process.rs";
    let reads_variables = is_process || source.path == "crates/plainsong/src/base/config.rs";
    let reads_files = is_process
        || source.path.starts_with("crates/plainsong/src/qos_provider/")
        || source.path.starts_with("crates/plainsong/src/atomic/storage/")
        || source.path == "crates/plainsong/src/transport/udp/neighbours.rs";
    for (offset, path) in paths(&source.code) {
        let reads = match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["std", "fs", ..] | ["fs", ..] if !reads_files => Some("a file"),
            ["std", "env", ..] | ["env", ..] if !reads_variables => Some("a variable"),
            _ => None,
        };
        findings.extend(reads.map(|what| {
            let line = source.line_at(offset);
            format!(
                "{}:{line}: reads {what}: settings come from crates/plainsong/src/base/config.rs",
                source.path
            )
        }));
    }
}

/// One dependency reads XML, of which QoS profiles make use under limits of theirs.
pub(super) fn one_xml(lock: &str, findings: &mut Vec<String>) {
    for (index, line) in lock.lines().enumerate() {
        if line.starts_with("name = ") && line.contains("xml") && line != "name = \"quick-xml\"" {
            findings.push(format!("Cargo.lock:{}: {line}: quick-xml reads XML here, no other", index + 1));
        }
    }
}

/// Where times of the standard library become ours: it names their type, and reads no clock either.
const CONVERTS_TIME: &str = "crates/proto/src/time.rs";

/// The protocol core does no input, no output, reads no clock, draws no randomness.
pub(super) fn no_input_output(source: &Source, findings: &mut Vec<String>) {
    for (offset, path) in paths(&source.code) {
        let joined = path.join("::");
        let named = |banned: &&str| {
            let rest = joined.strip_prefix(*banned);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let converts = source.path == CONVERTS_TIME && !source.code.contains("::now(");
        let is_time = |banned: &&&str| **banned == "std::time::SystemTime";
        let banned = INPUT_OUTPUT.iter().find(|banned| named(banned));
        if let Some(banned) = banned.filter(|banned| !(converts && is_time(banned))) {
            findings.push(format!(
                "{}:{}: `{banned}` in the protocol core: pass what it yields in as an argument",
                source.path,
                source.line_at(offset)
            ));
        }
    }
}

/// Pauses that double are `Backoff`, averages `SmoothedEstimate`: nobody writes them by hand.
pub(super) fn no_handmade_pauses(source: &Source, findings: &mut Vec<String>) {
    const NEAR: [&str; 2] = ["crates/proto/src/backoff.rs", "crates/proto/src/estimate.rs"];
    if NEAR.contains(&source.path.as_str()) {
        return;
    }
    for (index, line) in source.code.lines().enumerate() {
        let doubles = line.contains(".0 << ")
            || line.contains(".saturating_mul(2)).min(")
            || line.contains(".saturating_mul(1 << ")
            || line.contains("pause * 2");
        if doubles {
            findings.push(format!(
                "{}:{}: a pause doubled by hand: `Backoff` does it",
                source.path,
                index + 1
            ));
        }
        let averages = [4, 8, 16, 32, 64].iter().any(|parts| {
            line.split_once(&format!(" / {parts} + ")).is_some_and(|(before, _)| before.contains(" - "))
        });
        if averages {
            let path = &source.path;
            findings.push(format!("{path}:{}: an average by hand: `SmoothedEstimate` keeps it", index + 1));
        }
    }
}

/// Numbers and spans of time of writers, readers and discovery stand in `crates/proto/src/tuning`.
pub(super) fn constants_in_the_table(source: &Source, settings: &Settings, findings: &mut Vec<String>) {
    const FOLDERS: [&str; 3] =
        ["crates/proto/src/writer/", "crates/proto/src/reader/", "crates/proto/src/discovery/"];
    if !FOLDERS.iter().any(|folder| source.path.starts_with(folder)) {
        return;
    }
    let is_allowed = |name: &str| {
        let mut here = settings.constants.iter().filter(|(path, _)| source.path.starts_with(path.as_str()));
        here.any(|(_, names)| names.is_empty() || names.iter().any(|one| one == name))
    };
    for offset in source.occurrences("const") {
        let before = source.code.get(..offset).unwrap_or_default().trim_end();
        if before.ends_with(['<', ',', '*']) {
            continue; // a parameter
        }
        let rest = source.code.get(offset + 5..).unwrap_or_default();
        let Some((name, of_type, value)) = constant(rest) else {
            continue; // a function or a block
        };
        if is_quantity(of_type) && has_number(value) && !is_allowed(name) {
            findings.push(format!(
                "{}:{}: `{name}` is a row of `crates/proto/src/tuning`, unless a standard prescribes it (xtask/tidy.txt)",
                source.path,
                source.line_at(offset)
            ));
        }
    }
}

/// The name, type and value of a constant, of what follows `const`.
fn constant(rest: &str) -> Option<(&str, &str, &str)> {
    let (name, after) = rest.split_once(':')?;
    let name = name.trim();
    let is_name =
        !name.is_empty() && name.bytes().all(|b| b == b'_' || b.is_ascii_digit() || b.is_ascii_uppercase());
    let (of_type, value) = after.split_once('=')?;
    let value = value.split_once(";\n").map_or(value, |(value, _)| value);
    is_name.then_some((name, of_type, value))
}

/// Whether values of a type are numbers, times, or several of these.
fn is_quantity(of_type: &str) -> bool {
    const KINDS: [&str; 16] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
        "Duration", "Backoff",
    ];
    let mut words = of_type.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.next().is_some_and(|first| KINDS.contains(&first))
}

/// Whether a number stands in an expression.
fn has_number(value: &str) -> bool {
    let mut words = value.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// A module of a directory with layers names only its own layer and those below.
pub(super) fn module_direction(source: &Source, settings: &Settings, findings: &mut Vec<String>) {
    let own = module_path(&source.path);
    for (directory, layers) in &settings.directories {
        if source.path.strip_prefix(directory.as_str()).is_none_or(|rest| !rest.starts_with('/')) {
            continue;
        }
        let parent = module_path(&format!("{directory}/mod.rs"));
        let Some(module) = own.get(parent.len()) else {
            continue; // the root names everything
        };
        if layers.layer_of(module).is_none() {
            findings.push(format!(
                "{}:1: module `{module}` is in no layer: add it in xtask/tidy.txt",
                source.path
            ));
            continue;
        }
        for (offset, path) in paths(&source.code) {
            let path = absolute(&own, &path);
            let named = path.as_deref().and_then(|path| path.strip_prefix(parent.as_slice())?.first());
            // `None` is a name re-exported at the root.
            if named.and_then(|named| layers.may_name(module, named)) == Some(false) {
                findings.push(format!(
                    "{}:{}: `{module}` must not name `{}` (layers are in xtask/tidy.txt)",
                    source.path,
                    source.line_at(offset),
                    named.map_or("", String::as_str)
                ));
            }
        }
    }
}

/// `crates/proto/src/writer/history.rs` is module `writer::history`.
pub(super) fn module_path(path: &str) -> Vec<String> {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    let stem = inside.strip_suffix(".rs").unwrap_or(inside);
    stem.split('/').filter(|part| !matches!(*part, "lib" | "main" | "mod")).map(str::to_owned).collect()
}

/// Every path in backticks on a page is there: from the root, or from the sources of the library.
pub(super) fn named_paths_exist(page: &str, text: &str, root: &Path, findings: &mut Vec<String>) {
    for (index, line) in text.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_path = quoted.contains('/')
                && !quoted.starts_with('/')
                && !quoted.contains(|c: char| c.is_whitespace() || "<>*{}():$|\"".contains(c));
            let is_there = ["", "crates/proto/src", "crates/plainsong/src"]
                .iter()
                .any(|from| root.join(from).join(quoted).exists());
            if is_path && !is_there {
                findings.push(format!(
                    "{page}:{}: `{quoted}` does not exist (paths are from the root or the sources of the library)",
                    index + 1
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let lines = [
            "layers crates/proto/src",
            "layer time",
            "layer wire",
            "layer writer reader",
            "layer receiver",
            "apart writer reader",
        ];
        Settings::parse(&lines.join("\n")).expect("settings parse")
    }

    fn direction(path: &str, code: &str) -> Vec<String> {
        let mut findings = Vec::new();
        let source = Source::new(path, code);
        module_direction(&source, &settings(), &mut findings);
        findings
    }

    #[test]
    fn a_module_names_only_what_lies_below() {
        let writer = "crates/proto/src/writer/mod.rs";
        assert!(direction(writer, "use crate::{wire::data, time::Now};").is_empty());
        assert_eq!(direction(writer, "use crate::reader::Reader;").len(), 1);
        assert_eq!(direction(writer, "use super::reader::Reader;").len(), 1);
        assert_eq!(direction(writer, "use crate::{time, receiver};").len(), 1);
        let history = "crates/proto/src/writer/history.rs";
        assert!(direction(history, "use super::proxy::Proxy;").is_empty());
        assert_eq!(direction(history, "use super::super::reader::R;").len(), 1);
        assert_eq!(direction("crates/proto/src/new.rs", "").len(), 1);
        let upward = "use crate::receiver::Command;";
        assert_eq!(direction("crates/proto/src/time.rs", upward).len(), 1);
        assert!(direction("crates/other/src/time.rs", upward).is_empty(), "a crate without layers");
        let folder = "layers crates/a/src/perf\nlayer metrics\nlayer report run\n";
        let settings = Settings::parse(folder).expect("settings parse");
        let found = |path: &str, code: &str| {
            let mut findings = Vec::new();
            module_direction(&Source::new(path, code), &settings, &mut findings);
            findings.len()
        };
        assert_eq!(found("crates/a/src/perf/metrics.rs", "use super::report::R; use crate::output;"), 1);
        assert_eq!(found("crates/a/src/perf/report/html.rs", "use crate::perf::{metrics, run};"), 0);
        assert_eq!(found("crates/a/src/perf/mod.rs", "use report::R;"), 0);
        assert!(direction(writer, "#[cfg(test)]\nmod tests { use crate::reader::R; }").is_empty());
    }

    #[test]
    fn r5_unsafe_stands_in_named_files_only() {
        let settings = Settings::parse("unsafe crates/a/src/socket.rs system calls").expect("parses");
        let found = |path: &str, code: &str| {
            let mut findings = Vec::new();
            confined_unsafe(&Source::new(path, code), &settings, &mut findings);
            findings.len()
        };
        let call = "fn f() { unsafe { g() } }";
        assert_eq!(found("crates/a/src/socket.rs", call), 0);
        assert_eq!(found("crates/a/src/other.rs", call), 1);
        assert_eq!(found("crates/a/src/lib.rs", "mod socket;"), 0);
        assert_eq!(found("crates/b/src/lib.rs", "mod other;"), 1);
        assert_eq!(
            found("crates/b/src/main.rs", "//! #![forbid(unsafe_code)]"),
            1,
            "a comment forbids nothing"
        );
        assert_eq!(found("crates/b/src/lib.rs", "#![forbid(unsafe_code)]"), 0);
        assert_eq!(found("crates/b/tests/counting.rs", call), 0, "tests may count allocations");
    }

    #[test]
    fn numbers_of_writers_readers_and_discovery_stand_in_the_table() {
        let settings =
            Settings::parse("constants crates/proto/src/reader/receive.rs MAX: wire sizes of RTPS");
        let settings = settings.expect("settings parse");
        let found = |path: &str, code: &str| {
            let mut findings = Vec::new();
            constants_in_the_table(&Source::new(path, code), &settings, &mut findings);
            findings.len()
        };
        let cache = "crates/proto/src/reader/cache.rs";
        assert_eq!(found(cache, "const MAX: usize = 1 << 10;\n"), 1);
        assert_eq!(
            found(cache, "impl A {\n    pub const WAIT: Duration = Duration::from_millis(5);\n}\n"),
            1
        );
        assert_eq!(found(cache, "const STEPS: [usize; 2] = [1, 2];\n"), 1);
        assert_eq!(found(cache, "const PAUSES: Backoff = Backoff::new(PAUSE, PAUSE_MAX);\n"), 0, "of rows");
        assert_eq!(found(cache, "const NONE: Self = Self(0);\nconst fn f(x: u8) -> u8 { 1 }\n"), 0);
        assert_eq!(found(cache, "fn f<const PARTS: i64>() { let x = 8; }\n"), 0);
        assert_eq!(found("crates/proto/src/reader/receive.rs", "const MAX: usize = 65_536;\n"), 0);
        assert_eq!(found("crates/proto/src/reader/receive.rs", "const MIN: usize = 1;\n"), 1);
        assert_eq!(found("crates/proto/src/wire/data.rs", "const MAX: usize = 65_536;\n"), 0);
        assert!(Settings::parse("constants crates/proto/src/reader/receive.rs MAX").is_err());
    }

    #[test]
    fn a_name_that_is_to_stand_once_does() {
        let settings = Settings::parse("once crates/a/src/net open").expect("parses");
        let found = |files: &[(&str, &str)]| {
            let (mut places, mut findings) = (vec![Vec::new()], Vec::new());
            for (path, code) in files {
                note_places(&Source::new(path, code), &settings, &mut places);
            }
            one_place(&settings, &places, &mut findings);
            findings.len()
        };
        let (one, other) = ("crates/a/src/net/a.rs", "crates/a/src/net/b.rs");
        assert_eq!(found(&[(one, "fn f() { open() }"), (other, "fn g() { reopen() }")]), 0);
        assert_eq!(found(&[(one, "fn f() { open() }"), (other, "fn g() { x.open() }")]), 1);
        assert_eq!(found(&[(one, "fn f() { open(); open() }")]), 1);
        assert_eq!(found(&[("crates/a/src/file.rs", "fn f() { open() }")]), 1, "nowhere");
    }

    #[test]
    fn a_confined_name_stands_in_its_folder_only() {
        let settings = Settings::parse("only crates/a/src/net Socket").expect("parses");
        let found = |path: &str| {
            let mut findings = Vec::new();
            let code = "fn f(it: &std::net::Socket, other: SocketKind) {} // Socket";
            confined_names(&Source::new(path, code), &settings, &mut findings);
            findings.len()
        };
        assert_eq!(found("crates/a/src/net/mod.rs"), 0);
        assert_eq!(found("crates/a/src/network.rs"), 1);
        assert_eq!(found("crates/a/src/lib.rs"), 1);
        assert_eq!(found("crates/a/tests/net.rs"), 0);
        assert_eq!(found("crates/b/src/lib.rs"), 0);
    }

    #[test]
    fn r6_the_library_reads_no_files_and_has_one_xml_reader() {
        let found = |path: &str, code: &str| {
            let mut findings = Vec::new();
            reads_variables_only(&Source::new(path, code), &mut findings);
            findings.len()
        };
        let (config, other) = ("crates/plainsong/src/base/config.rs", "crates/plainsong/src/topic.rs");
        assert_eq!(found(config, "let value = std::env::var_os(name);"), 0);
        assert_eq!(found(other, "let value = std::env::var_os(name);"), 1);
        assert_eq!(found(config, "use std::{fs, io}; let text = fs::read(path);"), 2);
        let mut findings = Vec::new();
        one_xml("name = \"quick-xml\"\nname = \"roxmltree\"\nname = \"libc\"\n", &mut findings);
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn the_core_reads_no_clock() {
        let mut findings = Vec::new();
        let code = "use std::{time::{Duration, Instant}, fmt};\nuse std::net::IpAddr;\n";
        no_input_output(&Source::new("crates/proto/src/a.rs", code), &mut findings);
        assert_eq!(findings.len(), 2);
        findings.clear();
        let converts = "use std::time::SystemTime; fn time() -> SystemTime { SystemTime::UNIX_EPOCH }";
        no_input_output(&Source::new(CONVERTS_TIME, converts), &mut findings);
        assert!(findings.is_empty());
        no_input_output(&Source::new("crates/proto/src/a.rs", converts), &mut findings);
        assert_eq!(findings.len(), 1);
        let reads = "use std::time::SystemTime; fn time() -> SystemTime { SystemTime::now() }";
        no_input_output(&Source::new(CONVERTS_TIME, reads), &mut findings);
        assert_eq!(findings.len(), 2);
        findings.clear();
        let fine = "use std::time::Duration; let net = mine::std::net;";
        no_input_output(&Source::new("crates/proto/src/a.rs", fine), &mut findings);
        assert!(findings.is_empty());
    }

    #[test]
    fn pauses_and_averages_are_not_written_by_hand() {
        let found = |code: &str| {
            let mut findings = Vec::new();
            no_handmade_pauses(&Source::new("crates/proto/src/a.rs", code), &mut findings);
            findings.len()
        };
        assert_eq!(found("let pause = Duration(FIRST.0 << tries.min(6));"), 1);
        assert_eq!(found("self.pause = Duration(self.pause.0.saturating_mul(2)).min(MOST);"), 1);
        assert_eq!(found("self.took = Duration(self.took.0 - self.took.0 / 8 + took.0 / 8);"), 1);
        assert_eq!(found("let quarter = self.window_bytes - bytes / 4; let bits = 1 << 4;"), 0);
    }

    #[test]
    fn an_exception_is_needed_and_used() {
        let body = "    call();\n".repeat(FUNCTION_LINES + 1);
        let source = Source::new("a.rs", &format!("fn long() {{\n{body}}}\n"));
        let (mut used, mut findings) = (Vec::new(), Vec::new());
        sizes(&source, &Settings::default(), &mut used, &mut findings);
        assert_eq!(findings.len(), 1);
        findings.clear();
        let settings = Settings::parse("allow a.rs::long 71 one long table").expect("parses");
        sizes(&source, &settings, &mut used, &mut findings);
        unused_exceptions(&settings, &used, &mut findings);
        assert!(findings.is_empty(), "{findings:?}");
        unused_exceptions(&settings, &[], &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
