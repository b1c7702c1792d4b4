//! Who lives on does not notice that others are killed, and each thing that might be noticed would be.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::process::{Command, Output};
use std::sync::{PoisonError, RwLock};

/// A run that must pass has the machine for itself: ten of them at once are ninety processes, of which some
/// do not run for seconds, and what they hold depends on when they do. One that must fail may share it.
static MACHINE: RwLock<()> = RwLock::new(());

/// Kills some; how long a stall is says nothing here, on a machine that does other things.
fn chaos(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaos"));
    command.args(["--kills", "12", "--seed", "7"]).args(arguments).output().unwrap()
}

/// It fails, and says why.
fn expect_violation(mistake: &str, stall_ms: &str, words: &str) {
    let _shared = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    let output = chaos(&["--mistake", mistake, "--stall-ms", stall_ms]);
    let text = String::from_utf8_lossy(&output.stdout);
    let is_named = text.lines().any(|line| line.starts_with("VIOLATION") && line.contains(words));
    assert!(output.status.code() == Some(1) && is_named, "{}: {text}", output.status);
}

#[test]
fn nobody_who_lives_on_notices_that_others_are_killed() {
    let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    let output = chaos(&["--stall-ms", "5000"]);
    let [text, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success() && errors.is_empty(), "{}: {text}{errors}", output.status);
    assert!(text.contains("killed 12 after the first 12\n") && text.contains("violations: 0\n"), "{text}");
}

#[test]
fn octets_that_are_others_are_noticed() {
    expect_violation("corrupt", "5000", "corrupted");
}

#[test]
fn a_sample_that_comes_twice_is_noticed() {
    expect_violation("duplicate", "5000", "duplicated");
}

#[test]
fn samples_that_change_places_are_noticed() {
    expect_violation("reorder", "5000", "reordered");
}

#[test]
fn a_sample_that_is_missing_is_noticed() {
    expect_violation("lose", "5000", "lost");
}

#[test]
fn a_writer_that_stands_still_is_noticed() {
    expect_violation("stall", "200", "(stall)");
}

#[test]
fn memory_that_is_not_given_back_is_noticed() {
    expect_violation("leak-memory", "5000", "holds more than before: memory");
}

#[test]
fn descriptors_that_stay_open_are_noticed() {
    expect_violation("leak-descriptors", "5000", "holds more than before: descriptors");
}

#[test]
fn files_that_are_left_behind_are_noticed() {
    expect_violation("leave-files", "5000", "left behind: /dev/shm/left-");
}

#[test]
fn a_process_that_nobody_killed_is_missed() {
    expect_violation("crash", "5000", "ended by itself: exit status: 3");
}
