//! One build: commands whose output goes to a log.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The commands of one build.
pub(super) struct Steps {
    log_path: PathBuf,
    log: File,
}

impl Steps {
    /// With a new log.
    pub(super) fn new(log_path: PathBuf) -> Result<Self, String> {
        let log = File::create(&log_path).map_err(|error| format!("{}: {error}", log_path.display()))?;
        Ok(Self { log_path, log })
    }

    /// Runs a command; an error says which, what it said last, and where the rest is.
    pub(super) fn run(&self, command: &mut Command) -> Result<(), String> {
        let shown = shown(command);
        let program = command.get_program().to_string_lossy().into_owned();
        let cannot = |error: std::io::Error| format!("{}: {error}", self.log_path.display());
        writeln!(&self.log, "$ {shown}").map_err(cannot)?;
        let output = self.log.try_clone().map_err(cannot)?;
        let errors = self.log.try_clone().map_err(cannot)?;
        let started = command.stdin(Stdio::null()).stdout(output).stderr(errors).status();
        let status = started.map_err(|error| not_started(&program, &error))?;
        if status.success() {
            return Ok(());
        }
        Err(format!("{program} failed: {} (all of it: {})", self.last_words(), self.log_path.display()))
    }

    /// The line of the log that looks most like the reason.
    fn last_words(&self) -> String {
        let text = std::fs::read(&self.log_path).unwrap_or_default();
        reason(&String::from_utf8_lossy(&text)).chars().take(200).collect()
    }
}

/// What the last command of a log says about its failure: its first error, else its last line.
fn reason(log: &str) -> &str {
    let last = log.rfind("\n$ ").map_or(log, |at| log.get(at + 1..).unwrap_or(log));
    let lines = || last.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("$ "));
    let begins = |line: &str| ["error", "E:", "ERROR:"].iter().any(|it| line.starts_with(it));
    let telling = lines().find(|line| begins(line) || line.contains("error: "));
    telling.or_else(|| lines().next_back()).unwrap_or("it said nothing")
}

/// Why a program did not start, and where it comes from if it is not there.
fn not_started(program: &str, error: &std::io::Error) -> String {
    if error.kind() != ErrorKind::NotFound {
        return format!("{program} does not start: {error}");
    }
    let way = match program {
        "cargo" => "install Rust (see rustup.rs)",
        "cc" => "install a compiler of C (Debian: gcc)",
        "c++" => "install a compiler of C++ (Debian: g++)",
        "idlc" => "install the IDL compiler of Cyclone DDS (Debian: cyclonedds-tools)",
        "python3" => "install Python 3 with its module venv (Debian: python3-venv)",
        _ if program.ends_with("rtiddsgen") => {
            "NDDSHOME is to be the folder where RTI Connext DDS is installed"
        }
        _ => "install it",
    };
    format!("{program} is not there: {way}")
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// A command with arguments of different types.
#[macro_export]
macro_rules! command {
    ($program:expr $(, $argument:expr)* $(,)?) => {{
        let mut command = std::process::Command::new($program);
        $(command.arg($argument);)*
        command
    }};
}

/// The one entry of a folder of which `is_it` holds.
pub(super) fn find(folder: &Path, is_it: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let found = entries.flatten().find(|entry| is_it(&entry.file_name().to_string_lossy()));
    found.map(|entry| entry.path()).ok_or_else(|| format!("{} lacks what it should have", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_command_said_the_reason_is_told() {
        for (log, expected) in [
            ("", "it said nothing"),
            ("$ cc a.c\n", "it said nothing"),
            (
                "$ cargo build\nwarning: spurious network error (3 tries remaining)\nerror: failed to get `a`\n\nCaused by:\n  b\n",
                "error: failed to get `a`",
            ),
            (
                "$ cc a.c\na.c: In function 'f':\na.c:1:10: fatal error: dds/dds.h: No such file or directory\ncompilation terminated.\n",
                "a.c:1:10: fatal error: dds/dds.h: No such file or directory",
            ),
            (
                "$ apt-get install x\nReading ...\nE: Unable to locate package x\n",
                "E: Unable to locate package x",
            ),
            (
                "$ python3 -m venv v\nIt was not created.\n\nFailing command: v/bin/python3\n",
                "Failing command: v/bin/python3",
            ),
            ("$ idlc perf.idl\nerror: forgiven\n$ cc /tmp/error: /a.c\nkilled\n", "killed"),
        ] {
            assert_eq!(reason(log), expected, "{log}");
        }
    }

    #[test]
    fn of_a_program_that_is_not_there_it_is_told_where_it_comes_from() {
        let absent = std::io::Error::from(ErrorKind::NotFound);
        for (program, expected) in [
            ("cargo", "rustup.rs"),
            ("cc", "Debian: gcc"),
            ("c++", "Debian: g++"),
            ("idlc", "Debian: cyclonedds-tools"),
            ("python3", "Debian: python3-venv"),
            ("/opt/rti/bin/rtiddsgen", "NDDSHOME"),
        ] {
            let told = not_started(program, &absent);
            assert!(
                told.starts_with(&format!("{program} is not there: ")) && told.contains(expected),
                "{told}"
            );
        }
        let refused = not_started("cc", &std::io::Error::from(ErrorKind::PermissionDenied));
        assert!(refused.starts_with("cc does not start: "), "{refused}");
    }
}
