//! Timed steps under clear headings, whose counts are added up in one closing line.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How many checks passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// The counts a line of output reports: libtest's `test result:` line, or a line
    /// `N passed, N failed, N skipped`, of which the last may be missing.
    fn of_line(line: &str) -> Option<Self> {
        let counts = match line.strip_prefix("test result: ") {
            Some(rest) => rest.split_once(". ")?.1.replace(';', ","),
            None => line.to_owned(),
        };
        let mut tally = Self::default();
        let mut fields = counts.split(',').map(str::trim);
        tally.passed = count(fields.next()?, "passed")?;
        tally.failed = count(fields.next()?, "failed")?;
        if let Some(last) = fields.next() {
            tally.skipped = count(last, "skipped").or_else(|| count(last, "ignored"))?;
        }
        Some(tally)
    }
}

fn count(field: &str, unit: &str) -> Option<u64> {
    field.strip_suffix(unit)?.trim_end().parse().ok()
}

/// How many lines the summary repeats of a step, and how long they may be.
const LINES_REPEATED_MAX: usize = 40;
const LINE_LENGTH_MAX: usize = 400;

/// What the output of a step told.
#[derive(Default)]
struct Told {
    tally: Tally,
    /// The checks that failed, by name.
    failures: Vec<String>,
}

impl Told {
    fn line(&mut self, line: &str) {
        self.tally.add(Tally::of_line(line).unwrap_or_default());
        if names_a_failure(line) && self.failures.len() < LINES_REPEATED_MAX {
            let line: String = line.chars().take(LINE_LENGTH_MAX).collect();
            // What runs inside a test prints its line, too.
            if !self.failures.contains(&line) {
                self.failures.push(line);
            }
        }
    }
}

/// Whether a line of output names a check that failed: libtest's, the simulator's, the interop harness's.
fn names_a_failure(line: &str) -> bool {
    let of_libtest = line.starts_with("test ") && line.ends_with(" FAILED");
    of_libtest || ["FAILED ", "failed ", "again "].iter().any(|word| line.starts_with(word))
}

struct Done {
    name: String,
    took: Duration,
    told: Told,
}

/// Runs steps one after the other and remembers how each went.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Done>,
}

impl Steps {
    /// Runs `command`, passing its output through. A command that reports no counts counts as one
    /// check. It is killed, with its children, after `limit`.
    pub(crate) fn run(&mut self, name: &str, limit: Duration, mut command: Command) -> bool {
        heading(name);
        let begin = Instant::now();
        let mut told = Told::default();
        let succeeded = execute(&mut command, limit, &mut told).unwrap_or_else(|message| {
            println!("{name}: {message}");
            told.failures.push(message);
            false
        });
        if succeeded && told.tally == Tally::default() {
            told.tally.passed = 1;
        }
        if !succeeded && told.tally.failed == 0 {
            told.tally.failed = 1;
        }
        self.finish(name, begin.elapsed(), told)
    }

    /// Runs a step that is a function of this program; `Ok(false)` and `Err` are failures.
    pub(crate) fn call(&mut self, name: &str, step: impl FnOnce() -> Result<bool, String>) -> bool {
        heading(name);
        let begin = Instant::now();
        let mut failures = Vec::new();
        let succeeded = step().unwrap_or_else(|message| {
            println!("{name}: {message}");
            failures.push(message);
            false
        });
        let tally = Tally { passed: u64::from(succeeded), failed: u64::from(!succeeded), skipped: 0 };
        self.finish(name, begin.elapsed(), Told { tally, failures })
    }

    fn finish(&mut self, name: &str, took: Duration, told: Told) -> bool {
        let succeeded = told.tally.failed == 0;
        self.done.push(Done { name: name.to_owned(), took, told });
        succeeded
    }

    /// Prints the table of steps, each with what failed in it, and the closing line; whether nothing failed.
    pub(crate) fn report(&self) -> bool {
        heading("summary");
        let mut total = Tally::default();
        for step in &self.done {
            let tally = step.told.tally;
            total.add(tally);
            println!(
                "{:<6} {:<44} {:>7.1} s {:>6} passed {:>4} failed {:>4} skipped",
                if tally.failed == 0 { "ok" } else { "FAILED" },
                step.name,
                step.took.as_secs_f64(),
                tally.passed,
                tally.failed,
                tally.skipped,
            );
            step.told.failures.iter().for_each(|line| println!("       {line}"));
        }
        println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
        total.failed == 0
    }
}

fn heading(name: &str) {
    println!("\n==== {name} ====");
}

/// Runs the command to its end or to the limit, printing its output line by line; whether it succeeded.
fn execute(command: &mut Command, limit: Duration, told: &mut Told) -> Result<bool, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    let output = child.stdout.take().ok_or("no standard output")?;
    let (sender, lines) = mpsc::channel();
    // The reader thread ends with the pipe; it is not joined, for a grandchild may keep it open.
    thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            bytes.clear();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let deadline = Instant::now() + limit;
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(remaining) {
            Ok(line) => {
                println!("{line}");
                told.line(&line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                stop(&mut child);
                return Err(format!("not finished after {} s: stopped", limit.as_secs()));
            }
        }
    }
    let status = child.wait().map_err(|error| format!("wait: {error}"))?;
    if !status.success() {
        println!("({status})");
    }
    Ok(status.success())
}

/// Ends the process group of `child`: politely, then not.
fn stop(child: &mut Child) {
    let group = format!("-{}", child.id());
    for signal in ["-TERM", "-KILL"] {
        let _ = Command::new("bash").args(["-c", "kill \"$@\"", "kill", signal, "--", &group]).status();
        for _ in 0..30 {
            if matches!(child.try_wait(), Ok(Some(_))) {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_libtest_and_from_our_own_closing_line() {
        let libtest = "test result: FAILED. 12 passed; 2 failed; 1 ignored; 0 measured; \
                       0 filtered out; finished in 0.01s";
        let ours = "12 passed, 2 failed, 1 skipped";
        let expected = Tally { passed: 12, failed: 2, skipped: 1 };
        assert_eq!(Tally::of_line(libtest), Some(expected));
        assert_eq!(Tally::of_line(ours), Some(expected));
        assert_eq!(Tally::of_line("500 passed, 0 failed").map(|tally| tally.passed), Some(500));
        assert_eq!(Tally::of_line("3 passed, of course"), None);
        assert_eq!(Tally::of_line("3 passed"), None);
        assert_eq!(Tally::of_line("all passed, 0 failed, 0 skipped"), None);
    }

    #[test]
    fn a_command_that_fails_without_counts_is_one_failure() {
        let mut steps = Steps::default();
        let mut command = Command::new("sh");
        command.args(["-c", "echo '3 passed, 0 failed, 1 skipped'; exit 1"]);
        assert!(!steps.run("fails", Duration::from_secs(30), command));
        assert_eq!(steps.done[0].told.tally.passed, 3);
        assert_eq!(steps.done[0].told.tally.failed, 1);
    }

    #[test]
    fn the_summary_knows_what_failed_by_name() {
        let mut steps = Steps::default();
        let mut command = Command::new("printf");
        command.args([
            "%s\\n",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "failed   7.0 s  x->y Cft_3  too late",
            "passed 1",
        ]);
        assert!(steps.run("names", Duration::from_secs(30), command));
        assert_eq!(
            steps.done[0].told.failures,
            ["test a::c ... FAILED", "failed   7.0 s  x->y Cft_3  too late"]
        );
    }

    #[test]
    fn a_command_that_hangs_is_stopped_with_its_children() {
        let mut steps = Steps::default();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & wait"]);
        let begin = Instant::now();
        assert!(!steps.run("hangs", Duration::from_millis(200), command));
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
}
