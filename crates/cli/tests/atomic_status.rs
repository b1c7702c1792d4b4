//! `plainsong atomic status`, beside groups of `plainsong shapes`.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(unix)]

mod common;

use std::time::Instant;

use common::{PATIENCE, Program, domain, plainsong};

/// A member of the group of topic Square, ended with the test.
fn member(role: &str, domain: &str, variables: &[(&str, &str)]) -> Program {
    let words = ["shapes", role, "-r", "--consistency", "atomic", "-d", domain];
    Program::run(plainsong(&words).envs(variables.iter().copied()))
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
    let domain = domain(0);
    // The first votes.
    let first = member("-P", &domain, &[]);
    let one = until(&domain, &[], |text, code| code == Some(0) && text.contains("members 1,"));
    assert!(one.starts_with("Square: epoch "), "{one}");
    let second = member("-S", &domain, &[]);
    let both = until(&domain, &[], |text, code| code == Some(0) && text.contains("members 2,"));
    let lines: Vec<&str> = both.lines().collect();
    assert_eq!(lines.len(), 3, "{both}");
    for line in &lines[1..] {
        assert!(line.contains(" \"plainsong shapes\" (process "), "{line}");
        assert!(line.contains(" \"plainsong\" on host ") && line.contains(" active, position "), "{line}");
        assert!(line.contains(", behind by "), "{line}");
    }
    // Nobody counts who looks.
    assert!(!both.contains("plainsong atomic status") && !both.contains("asks to join"), "{both}");

    // Without a vote the other has stopped for good.
    first.signal("STOP");
    let suspended =
        until(&domain, &["--wait", "6000"], |text, code| code == Some(1) && text.contains(", suspended"));
    assert!(suspended.contains(" not heard in this epoch since observation began, suspected"), "{suspended}");
    assert!(suspended.contains(" changing"), "{suspended}");
    // Who begins to look now does not hear the process that stands still, and knows its GUID alone.
    let is_first = |line: &&&str| line.contains(&format!("(process {} ", first.process.id()));
    let guid = lines.iter().find(is_first).unwrap().split_whitespace().next().unwrap();
    let missing = format!("no majority of the voters (heard 0 of 1; missing {guid})");
    assert!(suspended.contains(&missing), "{suspended}");
    // It is told where the members are, and not where the epoch began.
    let stopped = suspended.lines().find(|line| line.contains(" changing")).unwrap();
    assert!(stopped.contains(", position ") && !stopped.contains(", position 0"), "{suspended}");
    first.signal("CONT");
    until(&domain, &[], |text, code| code == Some(0) && text.contains("members 2,"));

    // The first goes on without the second.
    second.signal("STOP");
    until(&domain, &["--wait", "200"], |text, code| code == Some(0) && text.contains("members 1,"));
}

#[test]
fn a_group_is_told_as_json() {
    let domain = domain(1);
    let _member = member("-P", &domain, &[]);
    let text = until(&domain, &["--json"], |_, code| code == Some(0));
    let group: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(group["topic"], "Square");
    assert_eq!(group["is_suspended"], false);
    assert_eq!(group["members"][0]["is_suspected"], false);
    assert!(group["members"][0]["position"].is_u64(), "{text}");
}

#[test]
fn without_a_group_the_atomic_topics_are_listed() {
    let domain = domain(2);
    let (text, code) = status("Circle", &domain, &["--wait", "100"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no participant with an ATOMIC topic is known"), "{text}");
    let _member = member("-P", &domain, &[]);
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

#[test]
fn several_groups_of_one_topic_are_all_shown_with_what_to_set() {
    let domain = domain(3);
    let states = std::env::temp_dir().join(format!("plainsong-groups-{}", std::process::id()));
    let variables = [
        ("PLAINSONG_VOTERS", "a"),
        ("PLAINSONG_VOTER", "a"),
        ("PLAINSONG_STATE_DIRECTORY", states.to_str().unwrap()),
    ];
    let named = member("-P", &domain, &variables);
    let forgetful = member("-S", &domain, &[]);
    let both = until(&domain, &[], |text, code| {
        code == Some(1) && text.matches("members 1, position").count() == 2 && text.contains("2 groups")
    });
    let line =
        |part: String| both.lines().find(|line| line.contains(&part)).unwrap_or_else(|| panic!("{both}"));
    assert!(line(format!("(process {} ", named.process.id())).contains(" voter a "), "{both}");
    let advice = line("between which no sample goes".into());
    assert!(advice.contains("set PLAINSONG_VOTERS=a for all of its processes"), "{advice}");
    assert!(advice.contains(&format!("process {}", forgetful.process.id())), "{advice}");
    assert!(!advice.contains(&format!("process {}", named.process.id())), "{advice}");
    // Whoever looks once sees both.
    for _ in 0..5 {
        let (text, code) = status("Square", &domain, &[]);
        assert!(code == Some(1) && text.contains("2 groups"), "{code:?}: {text}");
    }
    drop((named, forgetful));
    std::fs::remove_dir_all(states).unwrap();
}

#[test]
fn a_member_without_most_of_its_voters_is_shown_with_those_that_are_missing() {
    let domain = domain(4);
    let states = std::env::temp_dir().join(format!("plainsong-alone-{}", std::process::id()));
    let variables = [
        ("PLAINSONG_VOTERS", "a,b,c"),
        ("PLAINSONG_VOTER", "a"),
        ("PLAINSONG_STATE_DIRECTORY", states.to_str().unwrap()),
    ];
    let alone = member("-S", &domain, &variables);
    let shown =
        until(&domain, &["--wait", "500"], |text, code| code == Some(1) && text.contains("asks to join"));
    let missing = "suspended: no majority of the voters (heard 1 of 3: a; missing b, c)";
    assert!(shown.contains(missing), "{shown}");
    drop(alone);
    std::fs::remove_dir_all(states).unwrap();
}

#[test]
fn who_looks_votes_not_even_if_the_variables_of_a_voter_are_set_and_sees_which_are_not_heard() {
    let domain = domain(5);
    let states = std::env::temp_dir().join(format!("plainsong-unheard-{}", std::process::id()));
    let voters = ["a", "b", "c"];
    let state = |voter: &str| states.join(voter).to_str().unwrap().to_owned();
    let members: Vec<_> = voters[..2]
        .iter()
        .map(|voter| {
            let state = state(voter);
            let variables = [
                ("PLAINSONG_VOTERS", "a,b,c"),
                ("PLAINSONG_VOTER", voter),
                ("PLAINSONG_STATE_DIRECTORY", &state),
            ];
            member("-S", &domain, &variables)
        })
        .collect();
    let state = state("a");
    let end = Instant::now() + PATIENCE;
    let (mut seen, mut is_set) = (0, false);
    while seen < 2 {
        let mut look = plainsong(&["atomic", "status", "Square", "-d", &domain, "--wait", "1500"]);
        look.env("PLAINSONG_VOTERS", "a,b,c").env("PLAINSONG_VOTER", "a");
        // The directory is that of a member that runs, or none is set.
        if is_set {
            look.env("PLAINSONG_STATE_DIRECTORY", &state);
        }
        is_set = !is_set;
        let output = look.output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        let text = String::from_utf8(output.stdout).unwrap();
        if text.contains("members 2,") && !text.contains("changing") {
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(text.contains("voter c is not heard"), "{text}");
            seen += 1;
        }
        assert!(Instant::now() < end, "{text}");
    }
    drop(members);
    std::fs::remove_dir_all(states).unwrap();
}

#[test]
fn wrong_arguments_are_an_error_and_not_a_topic_without_a_group() {
    for words in [&["atomic", "status"][..], &["atomic"], &["atomic", "status", "Square", "--such"]] {
        let output = plainsong(words).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{words:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("Usage: plainsong atomic"), "{words:?}");
    }
    assert_eq!(plainsong(&["atomic", "status", "--help"]).output().unwrap().status.code(), Some(0));
}
