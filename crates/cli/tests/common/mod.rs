//! Running `plainsong` and reading what it prints.
#![allow(dead_code, clippy::unwrap_used, unreachable_pub, reason = "tests; each file uses its own part")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Long enough for a busy machine; a passing test never waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// `plainsong` with these arguments, on loopback alone.
pub fn plainsong(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plainsong"));
    command.args(arguments).env("PLAINSONG_INTERFACES", "lo");
    command
}

/// A domain that no other test of this process uses, by number, nor probably one of another process.
pub fn domain(number: u32) -> String {
    (100 + (std::process::id() + 15 * number) % 100).to_string()
}

/// A running `plainsong`, killed with the test.
pub struct Program {
    pub process: Child,
    /// What it prints, errors among them.
    pub lines: Receiver<String>,
}

impl Program {
    pub fn start(arguments: &[&str]) -> Self {
        Self::run(&mut plainsong(arguments))
    }

    pub fn run(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        forward(process.stdout.take().unwrap(), sender.clone());
        forward(process.stderr.take().unwrap(), sender);
        Self { process, lines }
    }

    /// Waits for a line that contains `part`.
    pub fn line_with(&self, part: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let mut before = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else { panic!("no line with '{part}': {before:?}") };
            if line.contains(part) {
                return line;
            }
            before.push(line);
        }
    }

    pub fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }
}

fn forward(output: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
    });
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
