//! `plainsong top`, beside `plainsong shapes`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Instant;

use common::{PATIENCE, Program, domain, plainsong};
use serde_json::Value;

/// What it prints, until that is so.
fn until(domain: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let output = plainsong(&["top", "-d", domain, "--json", "--count", "1"]).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), told.as_str()), (Some(0), ""));
        let picture: Value = serde_json::from_slice(&output.stdout).unwrap();
        if is_so(&picture) {
            return picture;
        }
        assert!(Instant::now() < end, "{picture}");
    }
}

#[test]
fn topics_and_processes_of_others_are_shown_with_their_rates() {
    let domain = domain(0);
    let writer = Program::start(&["shapes", "-P", "-d", &domain, "-t", "Circle", "-r"]);
    let reader = Program::start(&["shapes", "-S", "-d", &domain, "-t", "Circle", "-r"]);
    let picture = until(&domain, |it| it["topics"][0]["received_per_s"].as_f64() > Some(0.0));
    let topic = &picture["topics"][0];
    assert_eq!((&topic["name"], &topic["type"]), (&"Circle".into(), &"ShapeType".into()));
    assert_eq!((&topic["writers"], &topic["readers"]), (&1.into(), &1.into()));
    assert!(topic["written_per_s"].as_f64() > Some(0.0), "{topic}");
    assert!(topic["latency_p99_ns"].as_u64() >= topic["latency_p50_ns"].as_u64(), "{topic}");
    assert!(topic["latency_p50_ns"].as_u64() > Some(0), "{topic}");
    let participants = picture["participants"].as_array().unwrap();
    let mut processes: Vec<_> = participants.iter().map(|it| it["process"].as_u64().unwrap()).collect();
    let mut expected = [&writer, &reader].map(|it| u64::from(it.process.id())).to_vec();
    processes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(processes, expected);
    assert!(participants.iter().all(|it| it["memory_bytes"].as_u64() > Some(0)), "{picture}");
    assert_eq!(picture["silent"], Value::Array(Vec::new()));
}

#[test]
fn who_tells_nothing_is_named_and_lines_are_printed_again_and_again() {
    let domain = domain(1);
    let mut command = plainsong(&["shapes", "-P", "-d", &domain, "-t", "Square"]);
    let silent = Program::run(command.env("PLAINSONG_STATISTICS", "off"));
    let picture = until(&domain, |it| it["silent"][0]["process"] == silent.process.id());
    assert_eq!(picture["topics"], Value::Array(Vec::new()));
    let _writer = Program::start(&["shapes", "-P", "-d", &domain, "-t", "Circle"]);
    let top = Program::start(&["top", "-d", &domain, "--interval", "0.2"]);
    for _ in 0..2 {
        let line = top.line_with("topic\tCircle\tShapeType\t1\t0\t");
        assert!(line.split('\t').count() == 13, "{line:?}");
    }
    top.line_with("tells nothing of what it counts");
}
