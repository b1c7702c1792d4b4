//! `plainsong perf adapters`: which other products can be measured here, and building what joins them.

mod build;
mod recipes;
mod steps;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::Args;
use plainsong_perfkit::Event;
use plainsong_perfkit::adapter::Description;

use self::build::Workshop;
use self::recipes::{RECIPES, Recipe};
use super::agent::child::adapter_directory;
use crate::output::say;

/// How long an adapter may take to say what it is.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// Show the adapters of other products, and build them.
#[derive(Args)]
pub(crate) struct Options {
    /// Build these, or all that can be built; Debian packages are installed if this is root.
    #[arg(long, value_name = "NAME", num_args = 0..)]
    install: Option<Vec<String>>,
    /// Where adapters are, or are put.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// A checkout of Plainsong, to build from; otherwise the one this directory or this program is in.
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

/// One line of the table.
struct Row {
    name: &'static str,
    product: String,
    version: String,
    state: String,
    features: String,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let directory = adapter_directory(options.dir.as_deref());
    let mut well = true;
    if let Some(names) = &options.install {
        match chosen(names) {
            Ok(recipes) => well = install(&recipes, &directory, options.source.as_deref(), !names.is_empty()),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    let rows: Vec<Row> = RECIPES.iter().map(|recipe| row(recipe, &directory)).collect();
    print_table(&rows);
    say!("\nAdapters are in {}.", directory.display());
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The recipes of these names, or all.
fn chosen(names: &[String]) -> Result<Vec<&'static Recipe>, String> {
    if names.is_empty() {
        return Ok(RECIPES.iter().collect());
    }
    let find = |name: &String| {
        let known = || RECIPES.iter().map(|recipe| recipe.name).collect::<Vec<_>>().join(" ");
        let found = RECIPES.iter().find(|recipe| recipe.name == name);
        found.ok_or_else(|| format!("there is no adapter {name} to build; there are: {}", known()))
    };
    names.iter().map(find).collect()
}

/// Builds one after the other and tells of each; false if one failed, or one that was asked for by name
/// cannot be built.
fn install(recipes: &[&Recipe], directory: &Path, source: Option<&Path>, by_name: bool) -> bool {
    let workshop = match Workshop::new(directory, source) {
        Ok(workshop) => workshop,
        Err(error) => {
            eprintln!("{error}");
            return false;
        }
    };
    let mut well = true;
    for recipe in recipes {
        if let Some(missing) = recipe.missing_for_ever() {
            say!("{:<10} left out: {missing}", recipe.name);
            well &= !by_name;
            continue;
        }
        say!("{:<10} building {} {} ...", recipe.name, recipe.product, recipe.version);
        match workshop.build(recipe) {
            Ok(done) => say!("{:<10} {done}", recipe.name),
            Err(error) => {
                say!("{:<10} FAILED: {error}", recipe.name);
                well = false;
            }
        }
    }
    say!();
    well
}

/// What is known of an adapter: what it says itself if it is there.
fn row(recipe: &Recipe, directory: &Path) -> Row {
    let program = directory.join(recipe.program());
    let mut row = Row {
        name: recipe.name,
        product: recipe.product.to_owned(),
        version: recipe.version.to_owned(),
        state: String::new(),
        features: String::new(),
    };
    if program.is_file() {
        match describe(&program) {
            Ok(description) => {
                row.product = description.product;
                row.version = description.version;
                row.features = description.features.join(" ");
                "built".clone_into(&mut row.state);
            }
            Err(error) => {
                row.state = format!("built, but {error}: build it again with --install {}", recipe.name)
            }
        }
        return row;
    }
    row.state = match recipe.missing_for_ever().or_else(|| recipe.missing()) {
        None => format!("can be built: plainsong perf adapters --install {}", recipe.name),
        Some(missing) => missing,
    };
    row
}

/// What an adapter says first.
fn describe(program: &Path) -> Result<Description, String> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("it does not start ({error})"))?;
    let described = hello(&mut child);
    // It leaves when its standard input ends; an adapter that does not even do that is ended.
    drop(child.stdin.take());
    if described.is_err() {
        let _ = child.kill();
    }
    let _ = child.wait();
    described
}

fn hello(child: &mut Child) -> Result<Description, String> {
    let output = child.stdout.take().ok_or("it has no output")?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        let _ = sender.send(read.map(|_| line));
    });
    let line = lines
        .recv_timeout(HELLO_WITHIN)
        .map_err(|_| "it says nothing")?
        .map_err(|error| error.to_string())?;
    match serde_json::from_str(&line) {
        Ok(Event::Hello { description, .. }) => Ok(description),
        _ => Err("it does not start as it should".to_owned()),
    }
}

fn print_table(rows: &[Row]) {
    let width = |of: fn(&Row) -> &str, title: &str| {
        rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0).max(title.len())
    };
    let name = width(|row| row.name, "name");
    let product = width(|row| &row.product, "product");
    let version = width(|row| &row.version, "version");
    say!("{:<name$}  {:<product$}  {:<version$}  state", "name", "product", "version");
    for row in rows {
        say!("{:<name$}  {:<product$}  {:<version$}  {}", row.name, row.product, row.version, row.state);
        if !row.features.is_empty() {
            say!("{:<name$}  {}", "", row.features);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executable that does what the script says, in a directory of its own.
    fn program(name: &str, script: &str) -> PathBuf {
        let directory =
            std::env::temp_dir().join(format!("plainsong-adapters-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("perf-adapter-cyclone");
        // Another process writes it: had this one the file open, those that other tests start meanwhile
        // would, too, and it could not be executed (ETXTBSY).
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$2\" && chmod 755 \"$2\"";
        let written = Command::new("sh").args(["-c", write, "sh", script]).arg(&path).status();
        assert!(written.unwrap().success());
        path
    }

    #[test]
    fn an_adapter_describes_itself() {
        let line = r#"{"event":"hello","protocol":1,"pid":1,"description":{"product":"Some DDS","version":"9.8","features":["keyed","rtps"]}}"#;
        let path = program("well", &format!("echo '{line}'; cat >/dev/null"));
        let row = row(&RECIPES[0], path.parent().unwrap());
        assert_eq!((row.product.as_str(), row.version.as_str()), ("Some DDS", "9.8"));
        assert_eq!((row.state.as_str(), row.features.as_str()), ("built", "keyed rtps"));
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn one_that_does_not_work_is_said_so() {
        let path = program("ill", "echo nothing of the kind");
        let row = row(&RECIPES[0], path.parent().unwrap());
        assert_eq!(RECIPES[0].name, "cyclone");
        assert_eq!(
            row.state,
            "built, but it does not start as it should: build it again with --install cyclone"
        );
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn names_are_known_or_refused_with_those_there_are() {
        assert_eq!(chosen(&[]).unwrap().len(), RECIPES.len());
        assert_eq!(chosen(&["zenoh".to_owned()]).unwrap()[0].product, "zenoh");
        let error = chosen(&["opensplice".to_owned()]).err().unwrap();
        assert!(error.contains("opensplice") && error.contains("fastdds3"), "{error}");
    }
}
