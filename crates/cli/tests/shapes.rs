//! The program as its users see it: two processes of `plainsong shapes` on loopback.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A running `plainsong shapes`, ended with the test.
struct Shapes {
    process: Child,
    lines: Receiver<String>,
}

impl Shapes {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_plainsong"))
            .arg("shapes")
            .args(arguments)
            .env("PLAINSONG_INTERFACES", "lo")
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

impl Drop for Shapes {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_subscriber_that_gets_nothing_is_told_why() {
    let domain = (100 + std::process::id() % 100).to_string();
    let _publisher = Shapes::start(&["-P", "-b", "-d", &domain]);
    let subscriber = Shapes::start(&["-S", "-r", "-v", "d", "-d", &domain]);
    let introduction = subscriber.line_with("do not match");
    assert!(introduction.starts_with("topic \"Square\": writer "), "{introduction}");
    assert!(introduction.contains(" of participant \"plainsong shapes\" (Plainsong, "), "{introduction}");
    assert!(introduction.ends_with(" of this participant do not match"), "{introduction}");
    assert_eq!(
        subscriber.line_with("RELIABILITY:"),
        "  RELIABILITY: the writer has BEST_EFFORT, the reader wants RELIABLE; \
         set the reader's RELIABILITY to BEST_EFFORT or the writer's to RELIABLE"
    );
}
