//! What needs no file: `perf quick`, and `perf selftest` of what is built in.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "perf_common/mod.rs"]
mod common;

use common::Bench;
use serde_json::Value;

#[test]
fn a_quick_table_comes_without_a_file_and_says_where_its_run_is() {
    let bench = Bench::new();
    let arguments =
        ["quick", "latency", "--sizes", "64", "--duration", "300ms", "--repetitions", "1", "--out", "quick"];
    let output = bench.perf(&arguments).output().unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{errors}");
    for adapter in ["plainsong", "udp"] {
        let line = told
            .lines()
            .find(|it| it.starts_with(&format!("pingpong.{adapter}")))
            .unwrap_or_else(|| panic!("{told}"));
        let count: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(count > 20, "{line}");
    }
    assert!(told.contains("perf report quick"), "{told}");
    let run: Value =
        serde_json::from_slice(&std::fs::read(bench.path.join("quick/run.json")).unwrap()).unwrap();
    assert!(run["adapters"]["plainsong"]["product"].is_string());
}

#[test]
fn injected_faults_are_counted_exactly_and_a_delay_is_measured() {
    let bench = Bench::new();
    let output = bench.perf(&["selftest", "--adapter", "plainsong"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(told.matches("received once and in order").count(), 1, "{told}");
    assert_eq!(told.matches("counted exactly").count(), 4, "{told}");
    assert_eq!(told.matches("the recorder takes").count(), 1, "{told}");
    // How near it comes to the delay says something only on a machine that does nothing else.
    assert_eq!(told.matches("us more measured: ").count(), 1, "{told}");
}

#[test]
fn a_self_test_of_what_is_not_there_fails() {
    let bench = Bench::new();
    let output = bench.perf(&["selftest", "--adapter", "absent"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("there is no adapter"));
}
