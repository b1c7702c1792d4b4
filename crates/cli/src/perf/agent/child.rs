//! The first instructions of a worker's process: tied to the life of its agent, on its CPU, then the adapter.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, ValueEnum};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

/// The names of the adapters that are part of this program.
pub(crate) fn built_in() -> impl Iterator<Item = String> {
    let values = crate::perf::builtin::Name::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    values.map(|it| it.get_name().to_owned())
}

/// Whether an adapter is part of this program.
pub(crate) fn is_built_in(adapter: &str) -> bool {
    built_in().any(|it| it == adapter)
}

/// Becomes another program (internal).
#[derive(Args)]
pub(crate) struct Options {
    /// The process that must be alive.
    #[arg(long)]
    parent: i32,
    /// The only CPU to run on.
    #[arg(long)]
    pin: Option<u32>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<PathBuf>,
}

/// Carries out `perf child`; comes back only if that fails.
pub(crate) fn run(options: &Options) -> ExitCode {
    let error = match prepare(options) {
        Ok(mut command) => command.exec().to_string(),
        Err(error) => error,
    };
    eprintln!("{}: {error}", options.program.first().map_or_else(String::new, |it| it.display().to_string()));
    ExitCode::FAILURE
}

fn prepare(options: &Options) -> Result<Command, String> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("PR_SET_PDEATHSIG: {error}"))?;
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get() != options.parent) {
        return Err("its agent is gone".to_owned());
    }
    if let Some(cpu) = options.pin {
        let mut set = CpuSet::new();
        set.set(usize::try_from(cpu).unwrap_or(usize::MAX).min(CpuSet::MAX_CPU - 1));
        sched_setaffinity(None, &set).map_err(|error| format!("running on CPU {cpu}: {error}"))?;
    }
    let (program, arguments) = options.program.split_first().ok_or("no program")?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// The program of an adapter, with its arguments.
///
/// # Errors
/// There is none: what to do about it.
pub(crate) fn program(adapter: &str, directory: &Path) -> Result<Vec<PathBuf>, String> {
    let legal = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-' || it == b'_';
    if adapter.is_empty() || adapter.len() > 64 || !adapter.bytes().all(legal) {
        return Err(format!("{adapter:?} is no name of an adapter: lower-case letters, digits, '-' and '_'"));
    }
    if is_built_in(adapter) {
        let own = own_program()?;
        return Ok([
            own.as_os_str(),
            "perf".as_ref(),
            "worker".as_ref(),
            "--adapter".as_ref(),
            adapter.as_ref(),
        ]
        .map(PathBuf::from)
        .to_vec());
    }
    let path = directory.join(format!("perf-adapter-{adapter}"));
    if path.is_file() {
        return Ok(vec![path]);
    }
    Err(format!(
        "there is no adapter \"{adapter}\" in {}: `plainsong perf adapters` lists what can be installed",
        directory.display()
    ))
}

/// This program.
///
/// # Errors
/// The system does not tell.
pub(crate) fn own_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("finding this program: {error}"))
}

/// Where adapters of other products are installed unless the user says otherwise.
pub(crate) fn adapter_directory(chosen: Option<&Path>) -> PathBuf {
    if let Some(chosen) = chosen {
        return chosen.to_owned();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from).join(".cache");
    cache.unwrap_or_else(home).join("plainsong/perf/adapters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_adapters_are_looked_for() {
        for name in ["", "../sh", "a/b", "A", "x y"] {
            assert!(program(name, Path::new("/")).unwrap_err().contains("no name"), "{name}");
        }
        let error = program("absent", Path::new("/nowhere")).unwrap_err();
        assert!(error.contains("/nowhere") && error.contains("perf adapters"), "{error}");
        assert_eq!(program("udp", Path::new("/nowhere")).unwrap().len(), 5);
    }
}
