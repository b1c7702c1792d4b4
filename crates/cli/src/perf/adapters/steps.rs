//! One build: commands whose output goes to a log.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
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
    pub(super) fn run(&mut self, command: &mut Command) -> Result<(), String> {
        let shown = shown(command);
        let cannot = |error: std::io::Error| format!("{shown}: {error}");
        writeln!(self.log, "$ {shown}").map_err(cannot)?;
        let output = self.log.try_clone().map_err(cannot)?;
        let errors = self.log.try_clone().map_err(cannot)?;
        let status = command.stdin(Stdio::null()).stdout(output).stderr(errors).status().map_err(cannot)?;
        if status.success() {
            return Ok(());
        }
        let program = command.get_program().to_string_lossy().into_owned();
        Err(format!("{program} failed: {} (all of it: {})", self.last_words(), self.log_path.display()))
    }

    /// The line of the log that looks most like the reason.
    fn last_words(&self) -> String {
        let text = std::fs::read(&self.log_path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        let telling = lines().find(|line| line.contains("error") || line.starts_with("E:"));
        telling.or_else(|| lines().next_back()).unwrap_or("it said nothing").chars().take(200).collect()
    }
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
