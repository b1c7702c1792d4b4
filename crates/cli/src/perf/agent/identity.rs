//! What exactly runs under the name of an adapter: its files with their hashes, and how it was built.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{child, procfs};
use crate::perf::results::{HashedFile, Program};

/// How this program was built: profile, compiler, target, commit.
const OWN_BUILD: &str = env!("PLAINSONG_BUILD");

/// The log of a build ends before its program is finished, but for the resolution of the file system's times.
const SAME_BUILD: Duration = Duration::from_secs(1);

/// Of a process that runs; `None` if it is gone.
pub(super) fn of(pid: u32, adapter: &str, directory: &Path) -> Option<Program> {
    let (executable, libraries) = procfs::program_files(pid)?;
    let build = if child::is_built_in(adapter) {
        OWN_BUILD.to_owned()
    } else {
        build_command(adapter, directory).unwrap_or_default()
    };
    // This path leads to the executable even if another has taken its place since.
    let running = PathBuf::from(format!("/proc/{pid}/exe"));
    let mut files = vec![hashed(&executable, &running)];
    files.extend(libraries.iter().map(|path| hashed(path, path)));
    Some(Program {
        adapter: adapter.to_owned(),
        hosts: Vec::new(),
        build: without_home(&without_checkout(&build)),
        files,
    })
}

fn hashed(path: &Path, place: &Path) -> HashedFile {
    HashedFile {
        path: without_home(&path.to_string_lossy()),
        octets: fs::metadata(place).map_or(0, |it| it.len()),
        sha256: sha256(place).unwrap_or_default(),
    }
}

/// Asks the system's program: it is fast whatever this one was compiled with.
fn sha256(path: &Path) -> Option<String> {
    let output =
        Command::new("sha256sum").stdin(File::open(path).ok()?).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let hash = text.split_ascii_whitespace().next()?;
    (hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit())).then(|| hash.to_owned())
}

/// The command that compiled the installed adapter: the last of its build, unless a later build left another
/// log.
fn build_command(adapter: &str, directory: &Path) -> Option<String> {
    let (program, log) =
        (directory.join(format!("perf-adapter-{adapter}")), directory.join(format!("logs/{adapter}.log")));
    let changed = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
    if changed(&log)? > changed(&program)? + SAME_BUILD {
        return None;
    }
    let text = fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().rev().find_map(|line| line.strip_prefix("$ ")).map(ToOwned::to_owned)
}

/// Results are shown to others, to whom the name of the user's directory says nothing.
fn without_home(text: &str) -> String {
    match std::env::var("HOME") {
        Ok(home) if home.len() > 1 => text.replace(&home, "~"),
        _ => text.to_owned(),
    }
}

/// Nor does that of the checkout that adapters are built from, which every compiler is told of.
fn without_checkout(command: &str) -> String {
    let mut words = command.split(' ');
    match words.find_map(|word| word.strip_suffix("/crates/perfkit/include")) {
        Some(checkout) if !checkout.is_empty() => command.replace(&format!("{checkout}/"), ""),
        _ => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_files_of_the_checkout_by_their_place_in_it() {
        let command =
            "cc -I /home/me/plainsong/crates/perfkit/include /home/me/plainsong/perf/adapters/x/adapter.c";
        assert_eq!(without_checkout(command), "cc -I crates/perfkit/include perf/adapters/x/adapter.c");
        assert_eq!(without_checkout("cargo build --release"), "cargo build --release");
    }

    #[test]
    fn this_process_is_known_by_its_executable_and_libraries() {
        let program = of(std::process::id(), "udp", Path::new("/nowhere")).unwrap();
        let own = std::env::current_exe().unwrap();
        let first = &program.files[0];
        assert!(first.path.ends_with(&*own.file_name().unwrap().to_string_lossy()), "{}", first.path);
        assert_eq!(first.octets, fs::metadata(own).unwrap().len());
        assert!(program.files.iter().all(|it| it.sha256.len() == 64), "{:?}", program.files);
        assert!(
            program.build.contains("rustc 1.") && program.build.contains("opt-level"),
            "{}",
            program.build
        );
        assert!(of(0, "udp", Path::new("/nowhere")).is_none());
    }

    #[test]
    fn the_command_of_an_adapter_is_the_last_of_its_log_if_the_program_came_of_it() {
        let directory = std::env::temp_dir().join(format!("plainsong-identity-{}", std::process::id()));
        fs::create_dir_all(directory.join("logs")).unwrap();
        let (program, log) = (directory.join("perf-adapter-some"), directory.join("logs/some.log"));
        fs::write(&log, "$ idlc perf.idl\n$ cc -O2 adapter.c\nadapter.c: warning\n").unwrap();
        fs::write(&program, "").unwrap();
        assert_eq!(build_command("some", &directory).as_deref(), Some("cc -O2 adapter.c"));
        let later = fs::metadata(&program).unwrap().modified().unwrap() + Duration::from_secs(60);
        File::options().append(true).open(&log).unwrap().set_modified(later).unwrap();
        assert_eq!(build_command("some", &directory), None, "a later build has failed");
        fs::remove_dir_all(&directory).unwrap();
    }
}
