//! `plainsong witness` as its users run it: two members go on when one of them is killed.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A running `plainsong`, killed with the test.
struct Program {
    process: Child,
    lines: Receiver<String>,
}

impl Program {
    fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_plainsong"))
            .args(arguments)
            .env("PLAINSONG_INTERFACES", "lo")
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { process, lines }
    }

    /// Waits for a line that contains `part`.
    fn line_with(&self, part: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("no line with '{part}'"));
            if line.contains(part) {
                return line;
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn two_members_go_on_with_a_witness_when_one_is_killed() {
    let domain = (100 + (std::process::id() + 50) % 100).to_string();
    let states = std::env::temp_dir().join(format!("plainsong-witness-{}", std::process::id()));
    let of_witness = states.join("c");
    let witness_options =
        ["witness", "--name", "c", "--voters", "a,b,c", "--state", name(&of_witness), "--domain", &domain];
    let witness = Program::start(&witness_options, &[]);
    witness.line_with("votes in domain");
    let member = |role: &str, voter: &str| {
        let state = states.join(voter);
        let variables = [
            ("PLAINSONG_VOTERS", "a,b,c"),
            ("PLAINSONG_VOTER", voter),
            ("PLAINSONG_STATE_DIRECTORY", name(&state)),
        ];
        let options = [
            "shapes",
            role,
            "-d",
            &domain,
            "-k",
            "0",
            "--consistency",
            "atomic",
            "-w",
            "--write-period",
            "1",
        ];
        Program::start(&options, &variables)
    };
    let publisher = member("-P", "a");
    let subscriber = member("-S", "b");
    assert_eq!(witness.line_with("votes on"), "votes on Square");
    subscriber.line_with("Square");
    subscriber.line_with("BLUE");
    drop(subscriber);
    // Its window is full before it has written so much, unless it goes on alone.
    while publisher.lines.try_recv().is_ok() {}
    (0..3_000).for_each(|_| drop(publisher.line_with("BLUE")));
    // A second one under the same name is told who has its votes.
    let second = Program::start(&witness_options, &[]);
    let told = second.line_with("cannot vote");
    assert!(told.contains(&format!("of process {}", witness.process.id())), "{told}");
    // Restarted, the witness has its votes, and another member joins.
    drop(witness);
    let witness = Program::start(&witness_options, &[]);
    assert_eq!(witness.line_with("votes on"), "votes on Square");
    let subscriber = member("-S", "b");
    subscriber.line_with("BLUE");
    drop((subscriber, publisher, witness));
    std::fs::remove_dir_all(states).unwrap();
}
