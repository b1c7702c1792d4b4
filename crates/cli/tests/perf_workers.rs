//! Campaigns against workers that crash, hang, refuse and babble: each ends with a clear row.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "perf_common/mod.rs"]
mod common;

use common::{Bench, is_alive, repetition};
use serde_json::Value;

/// A ping-pong between two of the same adapter; its only repetition, after all processes are gone.
fn ping_pong(bench: &Bench, adapter: &str) -> Value {
    let scenario = format!(
        "[[scenario]]\nkind = \"pingpong\"\nadapters = [\"{adapter}\"]\nmatch_timeout = \"500ms\"\ndrain = \"100ms\"\n"
    );
    let campaign = bench.campaign("repetitions = 1", &scenario);
    let (_, results) = bench.run(&campaign);
    assert!(results["finished_unix_ms"].is_u64());
    for pid in bench.pids() {
        assert!(!is_alive(pid), "process {pid} of {adapter} is left");
    }
    repetition(&results, &format!("pingpong.{adapter}")).clone()
}

fn status_and_reason(bench: &Bench, adapter: &str) -> (String, String) {
    let repetition = ping_pong(bench, adapter);
    let text = |name: &str| repetition[name].as_str().unwrap().to_owned();
    (text("status"), text("reason"))
}

#[test]
fn workers_that_do_what_they_should_make_a_row_with_everything() {
    let bench = Bench::new();
    bench.adapter("good", &[]);
    let repetition = ping_pong(&bench, "good");
    assert_eq!(repetition["status"], "ok", "{repetition:#}");
    for worker in repetition["workers"].as_array().unwrap() {
        assert_eq!(worker["exit"], "exit 0");
        assert_eq!(worker["report"]["sent"], 10);
        assert_eq!(worker["ready_after_ns"], 1000);
        assert!(worker["resources"]["resident_octets_max"].as_u64().unwrap() > 0, "{worker:#}");
    }
    let cell = bench.results().join("cells/pingpong.good/0");
    for file in ["ping.ndjson", "pong-0.ndjson", "resources.csv"] {
        assert!(cell.join(file).is_file(), "{file}");
    }
}

#[test]
fn a_worker_that_crashes() {
    let bench = Bench::new();
    bench.adapter("crash", &[("start", "echo 'out of luck' >&2; kill -SEGV $$")]);
    let (status, reason) = status_and_reason(&bench, "crash");
    assert_eq!(status, "crashed");
    assert!(reason.contains("signal 11") && reason.contains("out of luck"), "{reason}");
}

#[test]
fn a_worker_that_leaves_without_a_report() {
    let bench = Bench::new();
    bench.adapter("leave", &[("start", "exit 3")]);
    let (status, reason) = status_and_reason(&bench, "leave");
    assert_eq!(status, "crashed");
    assert!(reason.contains("exit 3"), "{reason}");
}

#[test]
fn a_worker_that_never_says_anything() {
    let bench = Bench::new();
    bench.adapter("silent", &[("hello", "sleep 1000")]);
    let (status, reason) = status_and_reason(&bench, "silent");
    assert_eq!(status, "hung");
    assert!(reason.contains("said nothing within 10s"), "{reason}");
}

#[test]
fn a_worker_that_never_becomes_ready() {
    let bench = Bench::new();
    bench.adapter("unready", &[("configure", "sleep 1000")]);
    let (status, reason) = status_and_reason(&bench, "unready");
    assert_eq!(status, "hung");
    assert!(reason.contains("was not ready within 5.5s"), "{reason}");
}

#[test]
fn a_worker_that_never_ends_its_work() {
    let bench = Bench::new();
    bench.adapter("endless", &[("start", "sleep 1000")]);
    let (status, reason) = status_and_reason(&bench, "endless");
    assert_eq!(status, "hung");
    assert!(reason.contains("made no report"), "{reason}");
}

#[test]
fn a_worker_that_does_not_leave() {
    let bench = Bench::new();
    bench.adapter("stay", &[("quit", "sleep 1000")]);
    let (status, reason) = status_and_reason(&bench, "stay");
    assert_eq!(status, "hung");
    assert!(reason.contains("did not leave"), "{reason}");
}

#[test]
fn a_worker_that_finds_nobody_or_cannot() {
    let bench = Bench::new();
    let error = |kind: &str, message: &str| {
        format!(r#"echo '{{"event":"error","kind":"{kind}","message":"{message}"}}'; exit 1"#)
    };
    bench.adapter("alone", &[("configure", &error("unmatched", "0 of 1 readers of perf_ping"))]);
    bench.adapter("poor", &[("configure", &error("unsupported", "no multicast"))]);
    let (status, reason) = status_and_reason(&bench, "alone");
    assert_eq!(status, "unmatched");
    assert!(reason.contains("0 of 1 readers of perf_ping"), "{reason}");
    std::fs::remove_dir_all(bench.results()).unwrap();
    let (status, reason) = status_and_reason(&bench, "poor");
    assert_eq!((status.as_str(), reason.contains("no multicast")), ("unsupported", true), "{reason}");
}

#[test]
fn a_program_that_is_no_worker() {
    let bench = Bench::new();
    bench.script("garbage", "#!/bin/sh\necho 'usage: garbage FILE'\nsleep 1000\n");
    let (status, reason) = status_and_reason(&bench, "garbage");
    assert_eq!(status, "failed");
    assert!(reason.contains("usage: garbage FILE"), "{reason}");
}

#[test]
fn a_worker_that_floods_lines() {
    let bench = Bench::new();
    bench.adapter("flood", &[("first", "yes '{\"event\":\"ready\",\"took_ns\":1}'")]);
    let (status, reason) = status_and_reason(&bench, "flood");
    assert_eq!(status, "failed");
    assert!(reason.contains("more than"), "{reason}");
}

#[test]
fn a_worker_with_one_endless_line() {
    let bench = Bench::new();
    bench.script("line", "#!/bin/sh\nexec cat /dev/zero\n");
    let (status, reason) = status_and_reason(&bench, "line");
    assert_eq!(status, "failed");
    assert!(reason.contains("longer than"), "{reason}");
}

#[test]
fn an_adapter_that_is_not_there() {
    let bench = Bench::new();
    let (status, reason) = status_and_reason(&bench, "absent");
    assert_eq!(status, "skipped");
    assert!(reason.contains("perf adapters"), "{reason}");
}

#[test]
fn products_without_rtps_are_not_paired() {
    let bench = Bench::new();
    bench.adapter("speaks", &[]);
    let other = r#"echo '{"event":"hello","protocol":1,"pid":1,"description":{"product":"Other","version":"1","features":[]}}'"#;
    bench.adapter("other", &[("hello", other)]);
    let scenario = "[[scenario]]\nkind = \"pingpong\"\nadapters = []\npairs = [[\"speaks\", \"other\"]]\n";
    let (output, results) = bench.run(&bench.campaign("repetitions = 1", scenario));
    let repetition = repetition(&results, "pingpong.speaks~other");
    assert_eq!(repetition["status"], "unsupported", "{repetition:#}");
    assert!(repetition["reason"].as_str().unwrap().contains("other does not speak RTPS"), "{repetition:#}");
    assert!(output.status.success(), "what is not offered is no failure");
}

#[test]
fn samples_that_never_came_at_the_end_are_lost() {
    let bench = Bench::new();
    let few = r#"{"received":7,"octets":448,"lost":1,"duplicates":0,"reordered":0,"corrupted":0}"#;
    let report = Bench::report()
        .replace(r#"{"received":10,"octets":640,"lost":0,"duplicates":0,"reordered":0,"corrupted":0}"#, few);
    bench.adapter("tail", &[("start", &report)]);
    let scenario = "[[scenario]]\nkind = \"throughput\"\nadapters = [\"tail\"]\n";
    let (_, results) = bench.run(&bench.campaign("repetitions = 1", scenario));
    let repetition = repetition(&results, "throughput.tail");
    let subscriber =
        repetition["workers"].as_array().unwrap().iter().find(|it| it["name"] == "sub-0").unwrap();
    // Ten sent, seven received, one known to be lost: two more were.
    assert_eq!(subscriber["report"]["totals"]["lost"], 3, "{subscriber:#}");
}

#[test]
fn pinned_workers_run_on_their_cpu_alone() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("pinned_workers_run_on_their_cpu_alone: skipped, there is one CPU");
        return;
    }
    let bench = Bench::new();
    let note = format!("grep Cpus_allowed_list /proc/$$/status >> {}/cpus", bench.path.display());
    bench.adapter("good", &[("first", &note)]);
    let scenario = "[[scenario]]\nkind = \"pingpong\"\nadapters = [\"good\"]\npin = true\n";
    let (_, results) = bench.run(&bench.campaign("repetitions = 1", scenario));
    assert_eq!(repetition(&results, "pingpong.good")["status"], "ok");
    let told = std::fs::read_to_string(bench.path.join("cpus")).unwrap();
    let mut cpus: Vec<&str> = told.split_whitespace().filter(|it| !it.starts_with("Cpus")).collect();
    cpus.sort_unstable();
    assert_eq!(cpus, ["0", "1"]);
}
