//! Wrong arguments end every command with 2, and say what is wrong with which.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::plainsong;

/// Commands with what they need.
const COMMANDS: [&[&str]; 15] = [
    &["bw", "Square"],
    &["delay", "Square"],
    &["demo"],
    &["doctor"],
    &["hz", "Square"],
    &["ls"],
    &["play", "nothing.mcap"],
    &["pub", "Square", "{}"],
    &["record", "Square", "-o", "nothing.mcap"],
    &["shapes", "-P"],
    &["shapes", "-S"],
    &["sub", "Square"],
    &["top"],
    &["type", "Square"],
    &["witness"],
];

/// What it says, after which it ends with this status.
fn said(words: &[&str], code: i32) -> String {
    let output = plainsong(words).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    assert!(output.stdout.is_empty(), "{words:?}");
    said
}

#[test]
fn a_domain_that_cannot_be_is_a_wrong_argument_of_every_command() {
    for command in COMMANDS {
        for domain in ["233", "300", "70000", "-1"] {
            let said = said(&[command, &["-d", domain]].concat(), 2);
            let words = format!("{domain} is not between 0 and 232");
            assert!(said.contains(&words), "{command:?}: {said}");
        }
    }
    // Of `plainsong atomic` 2 says that there is no group.
    let said = said(&["atomic", "status", "Square", "-d", "300"], 3);
    assert!(said.contains("300 is not between 0 and 232"), "{said}");
}

#[test]
fn none_is_no_count() {
    for command in [
        &["bw", "Square", "-n"][..],
        &["hz", "Square", "--count"],
        &["play", "nothing.mcap", "--loop"],
        &["pub", "Square", "{}", "-n"],
        &["sub", "Square", "--count"],
        &["top", "--count"],
    ] {
        for count in ["0", "-1"] {
            let said = said(&[command, &[count]].concat(), 2);
            assert!(said.contains(&format!("{count} is not between 1 and ")), "{command:?}: {said}");
        }
    }
}

#[test]
fn a_negative_value_is_told_to_be_wrong_and_not_taken_for_an_option() {
    for (words, wanted) in [
        (&["sub", "Square", "--wait", "-1"][..], "-1 is not between 0 and 86400 seconds"),
        (&["ls", "--wait", "-0.5"], "-0.5 is not between 0 and 86400 seconds"),
        (&["pub", "Square", "{}", "--rate", "-2"], "-2 is not between 0.001 and 1000000 samples a second"),
        (&["play", "nothing.mcap", "--rate", "-1"], "-1 is not between 0.001 and 1000"),
        (&["record", "Square", "-o", "nothing.mcap", "--max-bytes", "-1"], "\"-1\" is no number of octets"),
        (&["hz", "Square", "--window", "-5"], "-5 is not in 2..=1000000"),
    ] {
        let said = said(words, 2);
        assert!(said.contains(wanted), "{words:?}: {said}");
    }
    let said = said(&["play", "nothing.mcap", "--start", "3", "--end", "2"], 2);
    assert!(said.contains("--end is before --start"), "{said}");
}
