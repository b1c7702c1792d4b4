//! `plainsong type`, `sub`, `pub`, `hz`, `bw` and `delay`, beside `plainsong shapes` in another process.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(unix)]

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{Program, domain, plainsong};
use serde_json::Value;

fn shapes(role: &str, domain: &str, more: &[&str]) -> Program {
    Program::start(&[&["shapes", role, "-d", domain], more].concat())
}

/// What a command prints on standard output and standard error, and its exit status.
fn run(words: &[&str]) -> (String, String, Option<i32>) {
    let output = plainsong(words).output().unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_type_of_a_topic_is_printed_as_idl() {
    let domain = domain(0);
    let _writer = shapes("-P", &domain, &["-t", "Square"]);
    let (idl, said, code) = run(&["type", "Square", "-d", &domain, "--wait", "30"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        idl.starts_with("// Topic 'Square', type 'ShapeType': told by 1 writer and no reader\n"),
        "{idl}"
    );
    assert!(idl.contains("struct ShapeType {") && idl.contains("@key string<128> color;"), "{idl}");
    let (json, _, code) = run(&["type", "Square", "-d", &domain, "--json", "--wait", "30"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json["types"][0]["name"].as_str()), (Some(0), Some("ShapeType")));
    assert_eq!(json["types"][0]["writers"].as_array().unwrap().len(), 1);
    assert!(idl.contains(json["types"][0]["idl"].as_str().unwrap().trim()), "{json}");
}

#[test]
fn what_is_missing_is_said_with_topics_of_like_names() {
    let domain = domain(1);
    let _writer = shapes("-P", &domain, &["-t", "rt/Square"]);
    let (none, said, code) = run(&["type", "square", "-d", &domain, "--wait", "2"]);
    assert_eq!((none.as_str(), code), ("", Some(1)), "{said}");
    assert!(said.contains("waiting for topic 'square' in domain"), "{said}");
    assert!(said.contains("nobody has it; there is 'rt/Square'"), "{said}");
    // By its name in ROS 2 it is found.
    let (idl, said, code) = run(&["type", "/Square", "-d", &domain, "--wait", "30"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("'/Square' is the ROS 2 topic 'rt/Square'") && idl.contains("ShapeType"), "{said}");
    for words in [&["sub", "Circle", "--wait", "0.1"][..], &["hz", "Circle", "--wait", "0.1"]] {
        let (none, said, code) = run(&[words, &["-d", &domain]].concat());
        assert_eq!((none.as_str(), code), ("", Some(1)), "{said}");
        assert!(said.contains("waiting for topic 'Circle'"), "{said}");
    }
    assert_eq!(run(&["sub"]).2, Some(2));
    assert!(run(&["sub", "--help"]).0.contains("plainsong sub Square --filter"));
}

#[test]
fn samples_are_printed_as_text_json_and_csv() {
    let domain = domain(2);
    let _writer = shapes("-P", &domain, &["-t", "Square", "-c", "RED", "-r", "-p", "hall"]);
    let sub = |more: &[&str]| {
        let words = [&["sub", "Square", "-d", &domain, "--wait", "30"], more].concat();
        let (text, said, code) = run(&words);
        assert_eq!(code, Some(0), "{said}");
        text
    };
    let text = sub(&["-n", "1"]);
    assert!(text.starts_with("color: \"RED\"\nx: ") && text.ends_with("\n---\n"), "{text}");
    let lines = json_lines(&sub(&["-n", "3", "--json"]));
    assert_eq!(lines.len(), 3);
    for line in &lines {
        assert_eq!(line["data"]["color"], "RED");
        assert!(line["data"]["x"].is_i64() && line["source_timestamp"].is_string());
        assert_eq!(line["instance_state"], "alive");
    }
    let csv = sub(&["-n", "2", "--csv"]);
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows[0], "source_timestamp,instance_state,color,x,y,shapesize,additional_payload_size");
    assert!(rows.len() == 3 && rows[1].contains(",alive,RED,"), "{csv}");
    for line in json_lines(&sub(&["-n", "3", "--json", "--filter", "x > 100"])) {
        assert!(line["data"]["x"].as_i64().unwrap() > 100, "{line}");
    }
    let (_, said, code) = run(&["sub", "Square", "-d", &domain, "--wait", "30", "--filter", "nothing = 1"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("cannot read topic 'Square'") && said.contains("nothing = 1"), "{said}");
}

#[test]
fn the_end_of_an_instance_is_told_by_its_key() {
    let domain = domain(3);
    let words = ["sub", "Square", "-d", &domain, "--json"];
    let sub = Program::start(&words);
    let writer = shapes("-P", &domain, &["-t", "Square", "-c", "RED", "-r", "--num-iterations", "100"]);
    sub.line_with("\"instance_state\":\"alive\"");
    let ended: Value = serde_json::from_str(&sub.line_with("\"key\"")).unwrap();
    assert_eq!(ended["key"], serde_json::json!({ "color": "RED" }));
    assert_ne!(ended["instance_state"], "alive");
    drop(writer);
    sub.signal("INT");
    sub.line_with(" samples");
}

#[test]
fn samples_are_written_from_an_argument_and_from_lines() {
    let domain = domain(4);
    let reader = shapes("-S", &domain, &["-t", "Square", "-r", "-k", "0"]);
    let sample = r#"{"color":"GREEN","x":7,"y":8,"shapesize":9}"#;
    let (_, said, code) = run(&["pub", "Square", sample, "-d", &domain, "--wait", "30"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 sample written to 1 reader"), "{said}");
    assert!(reader.line_with("GREEN").contains("007 008 [9]"));

    let mut process = plainsong(&["pub", "Square", "-d", &domain, "--json", "--wait", "30"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "{\"color\":\"BLUE\",\"x\":1}\n\n{\"color\":\"BLUE\",\"x\":2}\n";
    process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report["written"].as_u64(), report["readers"].as_u64()), (Some(2), Some(1)));
    assert!(reader.line_with("BLUE").contains("001 000 [0]"));
    assert!(reader.line_with("BLUE").contains("002 000 [0]"));

    // Errors of lines name the line that they are on, once.
    for (lines, words) in [
        (
            "{}\n{\"x\":]}\n",
            "line 2 of standard input is no sample of type 'ShapeType': expected value at column 6",
        ),
        ("{\"color\":\"a\\u0000b\"}\n", "expected a string without NUL, which ends a string in CDR"),
        ("{\"additional_payload_size\":7}\n", "expected octets in base64 or a sequence of numbers, found 7"),
    ] {
        let mut process = plainsong(&["pub", "Square", "-d", &domain, "--wait", "30"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(words) && !said.contains(" at line ") && !said.contains(",,"), "{said}");
    }

    let (_, said, code) = run(&["pub", "Square", r#"{"x":"a"}"#, "-d", &domain, "--wait", "30"]);
    assert_eq!(code, Some(3), "{said}");
    let words =
        "the sample is none of type 'ShapeType': member `x`: expected int32 (-2147483648 to 2147483647)";
    assert!(said.contains(words), "{said}");
    // At a rate until it is interrupted.
    let endless = Program::start(&["pub", "Square", sample, "-d", &domain, "--rate", "50"]);
    for _ in 0..5 {
        reader.line_with("GREEN");
    }
    endless.signal("INT");
    endless.line_with("samples written to 1 reader");
}

#[test]
fn what_keeps_a_reader_and_a_writer_apart_is_said() {
    let domain = domain(5);
    // The writer of the first offers less than the reader of the second wants.
    let _best_effort = shapes("-P", &domain, &["-t", "Square", "-b"]);
    let _reliable = shapes("-P", &domain, &["-t", "Square", "-r"]);
    let (_, said, code) = run(&["sub", "Square", "-d", &domain, "-n", "2", "--wait", "30"]);
    assert_eq!(code, Some(0), "best effort suits both: {said}");
    let _deadline = shapes("-S", &domain, &["-t", "Circle", "-f", "5000", "-r"]);
    let (_, said, code) = run(&["pub", "Circle", "{}", "-d", &domain, "--wait", "30"]);
    assert_eq!(code, Some(0), "a deadline is offered to who wants one: {said}");
    let (_, said, code) = run(&["sub", "Circle", "-d", &domain, "--wait", "3"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("topic 'Circle' has no writer and 1 reader: waiting for a writer"), "{said}");
    assert!(said.contains("0 samples"), "{said}");
}

#[test]
fn rates_sizes_and_delays_are_measured() {
    let domain = domain(6);
    let _writer = shapes("-P", &domain, &["-t", "Square", "--write-period", "20"]);
    let measure = |command: &str| {
        let words = [command, "Square", "-d", &domain, "--json", "-n", "2", "--wait", "30"];
        let (text, said, code) = run(&words);
        assert_eq!(code, Some(0), "{said}");
        json_lines(&text).pop().unwrap()
    };
    let rate = measure("hz");
    let hz = rate["hz"].as_f64().unwrap();
    assert!((1.0..200.0).contains(&hz) && rate["interval_s"]["count"].as_u64().unwrap() > 2, "{rate}");
    let width = measure("bw");
    assert!(width["bytes_per_second"].as_f64().unwrap() > 10.0, "{width}");
    assert!((20.0..200.0).contains(&width["bytes"]["mean"].as_f64().unwrap()), "{width}");
    let delay = measure("delay");
    assert!(delay["delay_s"]["min"].as_f64().unwrap() >= 0.0, "of one clock: {delay}");
    assert!(delay["delay_s"]["p50"].as_f64().unwrap() < 10.0, "{delay}");
    let (text, _, code) = run(&["hz", "Square", "-d", &domain, "-n", "1", "--wait", "30"]);
    assert!(code == Some(0) && text.contains(" Hz; ms between samples: mean "), "{text}");
}
