//! Under faults of every kind readers get what they must, and each thing that they must not is noticed.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::process::{Command, Output};

/// One cell; how long things take says nothing here, on a machine that does other things.
fn nemesis(cell: &str, seconds: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaos"));
    command.args(["nemesis", "--minutes", "0", "--heal-ms", "60000", "--seed", "3"]);
    command.args(["--cell", cell, "--seconds", seconds]).args(more).output().unwrap()
}

/// It fails, and says why.
fn expect_violation(mistake: &str, words: &str) {
    expect_violation_of("eventual", mistake, words);
}

fn expect_violation_of(consistency: &str, mistake: &str, words: &str) {
    let more = ["--consistency", consistency, "--mistake", mistake];
    let output = nemesis("pair/volatile/calm", "0.5", &more);
    let [text, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    let is_named = text.lines().any(|line| line.starts_with("VIOLATION") && line.contains(words));
    assert!(output.status.code() == Some(1) && is_named, "{}: {text}{errors}", output.status);
}

fn expect_none(cell: &str, seconds: &str, consistency: &str) {
    let output = nemesis(cell, seconds, &["--consistency", consistency]);
    let [text, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success() && errors.is_empty(), "{}: {text}{errors}", output.status);
    assert!(text.starts_with("ok ") && text.contains("\nviolations: 0\n"), "{text}");
}

#[test]
fn a_mix_of_faults_harms_nobody() {
    expect_none("triple/transient-local/mix", "4", "eventual");
}

#[test]
fn members_agree_while_one_is_killed_and_comes_back() {
    expect_none("triple/transient-local/kill", "5", "atomic");
}

#[test]
fn another_order_is_noticed() {
    expect_violation_of("atomic", "swap", "(not contiguous)");
}

#[test]
fn a_read_of_what_was_before_is_noticed() {
    expect_violation_of("atomic", "stale", "(not linearizable)");
}

#[test]
fn a_sample_that_is_missing_is_noticed() {
    expect_violation("lose", "(gap of a writer)");
}

#[test]
fn a_sample_that_comes_too_late_is_noticed() {
    expect_violation("swap", "(order of a writer)");
}

#[test]
fn a_sample_that_comes_twice_is_noticed() {
    expect_violation("duplicate", "(duplicate)");
}

#[test]
fn octets_that_are_others_are_noticed() {
    expect_violation("corrupt", "(corrupted)");
}

#[test]
fn a_sample_that_nobody_wrote_is_noticed() {
    expect_violation("phantom", "(phantom)");
}

#[test]
fn a_process_that_ends_by_itself_is_noticed() {
    expect_violation("crash", "ended by itself: exit status: 3");
}
