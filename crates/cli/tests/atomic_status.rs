//! `plainsong atomic status`, beside groups of `plainsong shapes`.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(unix)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn plainsong(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plainsong"));
    command.args(words).env("PLAINSONG_INTERFACES", "lo");
    command
}

/// A member of the group of topic Square, ended with the test.
struct Member(Child);

impl Member {
    fn new(role: &str, domain: &str) -> Self {
        let words = ["shapes", role, "-r", "--consistency", "atomic", "-d", domain];
        Self(plainsong(&words).stdout(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What it prints, and its exit status.
fn status(topic: &str, domain: &str, more: &[&str]) -> (String, Option<i32>) {
    let words = [&["atomic", "status", topic, "-d", domain], more].concat();
    let output = plainsong(&words).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

/// Asks until what it prints is so.
fn until(domain: &str, more: &[&str], is_so: impl Fn(&str, Option<i32>) -> bool) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let (text, code) = status("Square", domain, more);
        if is_so(&text, code) {
            return text;
        }
        assert!(Instant::now() < end, "{code:?}: {text}");
    }
}

#[test]
fn a_group_is_shown_well_suspected_and_suspended() {
    let domain = (100 + std::process::id() % 100).to_string();
    // The first votes.
    let first = Member::new("-P", &domain);
    let one = until(&domain, &[], |text, code| code == Some(0) && text.contains("members 1,"));
    assert!(one.starts_with("Square: epoch "), "{one}");
    let second = Member::new("-S", &domain);
    let both = until(&domain, &[], |text, code| code == Some(0) && text.contains("members 2,"));
    let lines: Vec<&str> = both.lines().collect();
    assert_eq!(lines.len(), 3, "{both}");
    for line in &lines[1..] {
        assert!(line.contains(" \"plainsong shapes\" active, position "), "{line}");
        assert!(line.contains(", behind by "), "{line}");
    }
    // Nobody counts who looks.
    assert!(!both.contains("plainsong atomic status") && !both.contains("asks to join"), "{both}");

    // Without a vote the other has stopped for good.
    first.signal("STOP");
    let suspended =
        until(&domain, &["--wait", "6000"], |text, code| code == Some(1) && text.contains(", suspended"));
    assert!(suspended.contains(", suspected: silent for "), "{suspended}");
    assert!(suspended.contains(" changing"), "{suspended}");
    first.signal("CONT");
    until(&domain, &[], |text, code| code == Some(0) && text.contains("members 2,"));

    // The first goes on without the second.
    second.signal("STOP");
    until(&domain, &["--wait", "200"], |text, code| code == Some(0) && text.contains("members 1,"));
}

#[test]
fn a_group_is_told_as_json() {
    let domain = (100 + (std::process::id() + 30) % 100).to_string();
    let _member = Member::new("-P", &domain);
    let text = until(&domain, &["--json"], |_, code| code == Some(0));
    let group: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(group["topic"], "Square");
    assert_eq!(group["is_suspended"], false);
    assert_eq!(group["members"][0]["is_suspected"], false);
    assert!(group["members"][0]["position"].is_u64(), "{text}");
}

#[test]
fn without_a_group_the_atomic_topics_are_listed() {
    let domain = (100 + (std::process::id() + 60) % 100).to_string();
    let (text, code) = status("Circle", &domain, &["--wait", "100"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no participant with an ATOMIC topic is known"), "{text}");
    let _member = Member::new("-P", &domain);
    let end = Instant::now() + PATIENCE;
    loop {
        let (text, code) = status("Circle", &domain, &["--wait", "1000"]);
        assert_eq!(code, Some(2), "{text}");
        if text.contains("there is Square: plainsong atomic status Square -d ") {
            break;
        }
        assert!(Instant::now() < end, "{text}");
    }
}
