//! What the tests of `plainsong perf` share: workers that are shell scripts, campaigns with them, and their
//! results.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

const COUNTS: &str = r#"{"received":10,"octets":640,"lost":0,"duplicates":0,"reordered":0,"corrupted":0}"#;

/// A directory of its own, with adapters, campaigns and results.
pub(crate) struct Bench {
    pub(crate) path: PathBuf,
}

impl Bench {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("plainsong-perf-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(path.join("adapters")).unwrap();
        std::fs::create_dir_all(path.join("pids")).unwrap();
        Self { path }
    }

    /// An adapter that does `steps` (shell) for each command; without a step it does it well.
    pub(crate) fn adapter(&self, name: &str, steps: &[(&str, &str)]) {
        let step = |command: &str, well: &str| {
            let other = steps.iter().find(|(it, _)| *it == command).map(|(_, step)| *step);
            format!("  *'\"command\":\"{command}\"'*) {};;\n", other.unwrap_or(well))
        };
        let first = steps.iter().find(|(it, _)| *it == "first").map_or("", |(_, step)| *step);
        let script = format!(
            "#!/bin/sh\necho $$ > {}/$$\n{first}\nwhile read -r line; do case \"$line\" in\n{}{}{}{}esac; done\n",
            self.path.join("pids").display(),
            step(
                "hello",
                r#"echo '{"event":"hello","protocol":1,"pid":1,"description":{"product":"Script","version":"1","features":["rtps"]}}'"#
            ),
            step("configure", r#"echo '{"event":"ready","took_ns":1000}'"#),
            step("start", &format!("sleep 0.2; {}", Self::report())),
            step("quit", "exit 0"),
        );
        self.script(name, &script);
    }

    /// The words of a shell that print a report.
    pub(crate) fn report() -> String {
        format!(
            r#"echo '{{"event":"report","start_ns":1,"length_ns":1,"sent":10,"write_timeouts":0,"totals":{COUNTS},"streams":[{{"writer":0,"instance":0,"totals":{COUNTS}}}],"phases":[],"histograms":[],"switches":[],"missed_slots":0,"injected":{COUNTS},"recorder_cost_ns":1.0}}'"#
        )
    }

    pub(crate) fn script(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = self.adapters().join(format!("perf-adapter-{name}"));
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn adapters(&self) -> PathBuf {
        self.path.join("adapters")
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.path.join("run")
    }

    /// Processes of adapters that have run so far.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let files = std::fs::read_dir(self.path.join("pids")).unwrap();
        files.filter_map(|it| it.unwrap().file_name().to_str()?.parse().ok()).collect()
    }

    /// A campaign file with short times; `head` goes before its scenarios.
    pub(crate) fn campaign(&self, head: &str, scenarios: &str) -> PathBuf {
        let file = self.path.join("campaign.toml");
        let text = format!(
            "schema = 1\nname = \"test\"\nwarmup = \"100ms\"\nduration = \"200ms\"\nbusy_limit_percent = 10000\n\
             calibrate = false\n{head}\n{scenarios}"
        );
        std::fs::write(&file, text).unwrap();
        file
    }

    /// `plainsong perf ARGUMENTS`, with the adapters of this bench.
    pub(crate) fn perf<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plainsong"));
        command.arg("perf").args(arguments).arg("--adapter-dir").arg(self.adapters());
        command.current_dir(&self.path).env("TMPDIR", &self.path);
        command
    }

    /// Runs a campaign to its end; its results.
    pub(crate) fn run(&self, campaign: &Path) -> (Output, Value) {
        let out = self.results();
        let arguments = ["run".as_ref(), campaign.as_os_str(), "--out".as_ref(), out.as_os_str()];
        let output = self.perf(&arguments).output().unwrap();
        let results = std::fs::read(self.results().join("run.json"));
        let told = String::from_utf8_lossy(&output.stderr);
        let results = results.unwrap_or_else(|error| panic!("no results: {error}\n{told}"));
        (output, serde_json::from_slice(&results).unwrap())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The only repetition of a cell.
pub(crate) fn repetition<'a>(results: &'a Value, cell: &str) -> &'a Value {
    let cells = results["cells"].as_array().unwrap();
    let cell = cells.iter().find(|it| it["id"] == cell).unwrap_or_else(|| panic!("no cell {cell}"));
    &cell["repetitions"][0]
}

/// A program that is ended with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, self.0.id());
    }

    /// Waits for a line of standard error that contains `part`; the rest is read and forgotten.
    pub(crate) fn error_line_with(&mut self, part: &str) -> String {
        line_with(self.0.stderr.take().unwrap(), part)
    }

    pub(crate) fn line_with(&mut self, part: &str) -> String {
        line_with(self.0.stdout.take().unwrap(), part)
    }

    pub(crate) fn code(&mut self) -> Option<i32> {
        eventually("the end of the program", || self.0.try_wait().unwrap().is_some());
        self.0.wait().unwrap().code()
    }
}

/// Sends a signal; by the shell's own `kill`, for small systems have no other.
pub(crate) fn kill(signal: &str, pid: u32) {
    let script = "kill \"$1\" \"$2\"";
    let status = Command::new("sh").args(["-c", script, "sh", signal, &pid.to_string()]).status().unwrap();
    assert!(status.success(), "signal {signal} to {pid}");
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn line_with(output: impl std::io::Read + Send + 'static, part: &str) -> String {
    let (sender, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // The test may have heard enough.
            let _ = sender.send(line);
        }
    });
    let end = Instant::now() + PATIENCE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).unwrap_or_else(|_| panic!("no line with '{part}'"));
        if line.contains(part) {
            return line;
        }
    }
}

pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process still does anything; one that only waits for its parent to take notice does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
