//! `plainsong ls`, beside `plainsong shapes` and participants of the test.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::{Duration, Instant};

use common::{PATIENCE, Program, domain, plainsong};
use serde_json::Value;

/// What it prints.
fn ls(domain: &str, more: &[&str]) -> String {
    let output = plainsong(&[&["ls", "-d", domain], more].concat()).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), told.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// Asks until what it prints as JSON is so.
fn until(domain: &str, more: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = ls(domain, &[&["--json"], more].concat());
        let view = serde_json::from_str(&text).unwrap();
        if is_so(&view) {
            return view;
        }
        assert!(Instant::now() < end, "{text}");
    }
}

fn array<'a>(view: &'a Value, key: &str) -> &'a [Value] {
    view[key].as_array().unwrap()
}

#[test]
fn an_empty_domain_is_empty_and_other_tools_are_left_out() {
    let domain = domain(0);
    let _other = Program::start(&["ls", "--watch", "-d", &domain]);
    assert_eq!(ls(&domain, &["participants"]), "");
    let end = Instant::now() + PATIENCE;
    while !ls(&domain, &["participants", "--all"]).contains("plainsong ls") {
        assert!(Instant::now() < end);
    }
    let view = until(&domain, &[], |_| true);
    for key in ["participants", "topics", "types", "endpoints", "mismatches"] {
        assert!(array(&view, key).is_empty(), "{view}");
    }
}

#[test]
fn participants_topics_types_and_endpoints_of_others_are_shown_with_their_qos_and_matches() {
    let domain = domain(1);
    let writer = Program::start(&["shapes", "-P", "-d", &domain, "-t", "Circle", "-D", "l", "-p", "a"]);
    let _reader = Program::start(&["shapes", "-S", "-d", &domain, "-t", "Circle", "-b", "-p", "a"]);
    let view = until(&domain, &[], |view| view["topics"][0]["matches"] == 1);
    assert_eq!(array(&view, "participants").len(), 2);
    let process = writer.process.id();
    let participant = array(&view, "participants").iter().find(|it| it["process"] == process).unwrap();
    assert_eq!((&participant["product"], &participant["answers"]), (&"Plainsong".into(), &true.into()));
    assert_eq!(view["topics"][0]["name"], "Circle");
    assert_eq!((&view["topics"][0]["writers"], &view["topics"][0]["readers"]), (&1.into(), &1.into()));
    assert_eq!((&view["types"][0]["name"], &view["types"][0]["endpoints"]), (&"ShapeType".into(), &2.into()));
    assert_eq!(view["types"][0]["hashes"].as_array().unwrap().len(), 1);
    let [first, second] = array(&view, "endpoints") else { panic!("{view}") };
    assert_eq!((&first["kind"], &second["kind"]), (&"reader".into(), &"writer".into()));
    assert_eq!(second["qos"]["DURABILITY"], "TRANSIENT_LOCAL");
    assert_eq!(second["qos"]["PARTITION"], "\"a\"");
    assert!(
        second["qos"].get("RELIABILITY").is_none() && first["qos"].get("RELIABILITY").is_none(),
        "{view}"
    );
    assert_eq!((&first["matches"][0], &second["matches"][0]), (&second["guid"], &first["guid"]));

    // The same in lines, whose cells are separated by tabs.
    let lines = ls(&domain, &["endpoints"]);
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.lines().all(|line| line.split('\t').count() == 8), "{lines}");
    let usual = ls(&domain, &[]);
    assert!(usual.lines().any(|line| line == "topic\tCircle\tShapeType\t1\t1\t1\t0"), "{usual}");
    let types = until(&domain, &["types"], |_| true);
    assert!(types.get("endpoints").is_none() && types["types"][0]["topics"][0] == "Circle", "{types}");
}

#[test]
fn a_pair_of_others_that_does_not_match_is_explained() {
    let domain = domain(2);
    let _writer = Program::start(&["shapes", "-P", "-d", &domain, "-b"]);
    let _reader = Program::start(&["shapes", "-S", "-d", &domain, "-r", "-D", "l"]);
    let view = until(&domain, &["mismatches"], |view| !array(view, "mismatches").is_empty());
    let mismatch = &view["mismatches"][0];
    assert_eq!(mismatch["topic"], "Square");
    let subjects: Vec<_> =
        array(mismatch, "differences").iter().map(|it| it["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["DURABILITY", "RELIABILITY"]);
    assert_eq!(mismatch["differences"][1]["writer"], "BEST_EFFORT");
    assert_eq!(mismatch["differences"][1]["reader"], "RELIABLE");
    assert!(mismatch["writer"]["local"] == false && mismatch["reader"]["local"] == false);
}

#[test]
fn changes_are_watched_as_lines() {
    let domain = domain(3);
    let watch = Program::start(&["ls", "--watch", "-d", &domain]);
    let as_json = Program::start(&["ls", "topics", "--watch", "--json", "-d", &domain]);
    let shapes = Program::start(&["shapes", "-P", "-d", &domain]);
    let process = format!("plainsong {}", shapes.process.id());
    let come = watch.line_with(&process);
    assert!(come.starts_with("+\tparticipant\t") && !come.contains("does not answer"), "{come}");
    assert!(watch.line_with("Square").starts_with("+\ttopic\tSquare\tShapeType\t1\t0\t"));
    assert!(watch.line_with("Square").starts_with("+\tendpoint\twriter\tSquare\tShapeType\t"));
    let come: Value = serde_json::from_str(&as_json.line_with("Square")).unwrap();
    assert_eq!((&come["change"], &come["topic"]["writers"]), (&"+".into(), &1.into()));
    drop(shapes);
    let gone: Value = serde_json::from_str(&as_json.line_with("\"-\"")).unwrap();
    assert_eq!(gone["topic"]["name"], "Square");
    assert!(watch.line_with("-\ttopic").contains("Square"));
    assert!(watch.line_with("Square").starts_with("-\tendpoint\twriter\t"));
    watch.signal("TERM");
}

#[test]
fn an_empty_domain_is_shown_soon() {
    // The least of some: others may have the processor.
    let took = (0..10).map(|_| {
        let begin = Instant::now();
        ls(&domain(4), &[]);
        begin.elapsed()
    });
    let least = took.min().unwrap();
    assert!(least < Duration::from_millis(1_200), "{least:?}");
}

#[test]
fn wrong_options_have_a_status_of_their_own() {
    for words in [&["ls", "--such"][..], &["ls", "--wait", "-1"], &["ls", "everything"]] {
        assert_eq!(plainsong(words).output().unwrap().status.code(), Some(2), "{words:?}");
    }
    let output = plainsong(&["ls", "-d", "7"]).env("PLAINSONG_MULTICAST", "perhaps").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("domain 7"));
}

#[test]
#[cfg(unix)]
fn an_interruption_before_everything_was_seen_is_marked() {
    let domain = domain(5);
    // It looks for 0.7 s at least.
    let mut ls = plainsong(&["ls", "--json", "-d", &domain])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let id = ls.id().to_string();
    // It answers signals as soon as it has a thread for them.
    let end = Instant::now() + PATIENCE;
    let has_thread = || {
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).map(Iterator::flatten);
        let names = tasks.map(|it| it.filter_map(|it| std::fs::read_to_string(it.path().join("comm")).ok()));
        names.is_ok_and(|mut names| names.any(|name| name.trim() == "signals"))
    };
    while cfg!(target_os = "linux") && !has_thread() {
        assert!(Instant::now() < end && ls.try_wait().unwrap().is_none());
    }
    assert!(std::process::Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    let output = ls.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("interrupted: "));
    assert!(serde_json::from_slice::<Value>(&output.stdout).unwrap().is_object());
}
