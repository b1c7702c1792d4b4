//! Ends of a campaign that nobody planned: a killed tool, Ctrl-C, and going on afterwards.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "perf_common/mod.rs"]
mod common;

use std::io::Write;

use common::{Bench, Running, eventually, is_alive};
use serde_json::Value;

const PINGPONG: &str = "[[scenario]]\nkind = \"pingpong\"\nadapters = [\"good\"]\n";

fn results(bench: &Bench) -> Value {
    serde_json::from_slice(&std::fs::read(bench.results().join("run.json")).unwrap()).unwrap()
}

/// Direct children of a process, from its threads.
fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let lists = tasks.filter_map(|it| std::fs::read_to_string(it.unwrap().path().join("children")).ok());
    lists.flat_map(|it| it.split_whitespace().map(|it| it.parse().unwrap()).collect::<Vec<u32>>()).collect()
}

#[test]
fn a_tool_that_is_killed_leaves_no_process() {
    let bench = Bench::new();
    // With a child of its own, which is not to be left either.
    let busy = format!("sleep 1000 & echo $! > {}/$!; wait", bench.path.join("pids").display());
    bench.adapter("good", &[("start", &busy)]);
    let campaign = bench.campaign("repetitions = 1", PINGPONG);
    let arguments = ["run".as_ref(), campaign.as_os_str(), "--out".as_ref(), bench.results().as_os_str()]
        .map(|it| it.to_owned());
    let mut tool = Running::start(&mut bench.perf(&arguments));
    eventually("two workers, each with a child", || bench.pids().len() == 4);
    let mut processes = bench.pids();
    processes.extend(children(tool.0.id()));
    assert!(processes.len() >= 5, "an agent and the workers: {processes:?}");
    assert!(processes.iter().all(|pid| is_alive(*pid)));
    tool.signal("-9");
    tool.code();
    for pid in processes {
        eventually("the end of every process", || !is_alive(pid));
    }
    assert!(results(&bench)["finished_unix_ms"].is_null(), "what is there can be read, and is not finished");
}

#[test]
fn an_agent_that_is_killed_leaves_no_worker_and_a_clear_row() {
    let bench = Bench::new();
    bench.adapter("good", &[("start", "exec sleep 1000")]);
    let campaign = bench.campaign("repetitions = 1", PINGPONG);
    let arguments = ["run".as_ref(), campaign.as_os_str(), "--out".as_ref(), bench.results().as_os_str()]
        .map(|it| it.to_owned());
    let mut tool = Running::start(&mut bench.perf(&arguments));
    eventually("two workers", || bench.pids().len() == 2);
    let [agent] = children(tool.0.id())[..] else { panic!("one agent") };
    common::kill("-9", agent);
    assert_eq!(tool.code(), Some(2));
    for pid in bench.pids() {
        eventually("the end of every worker", || !is_alive(pid));
    }
    let results = results(&bench);
    let repetition = &results["cells"][0]["repetitions"][0];
    assert_eq!(repetition["status"], "failed");
    assert!(repetition["reason"].as_str().unwrap().contains("hung up"), "{repetition:#}");
}

#[test]
fn ctrl_c_keeps_what_is_finished_and_resume_does_the_rest() {
    let bench = Bench::new();
    bench.adapter("good", &[]);
    let campaign = bench.campaign("repetitions = 4", PINGPONG);
    // Cores that come nearer later would mark what is there.
    let unknown = ["--cores-apart-from", "nowhere"].map(std::ffi::OsStr::new);
    let out = bench.results();
    let begin = ["run".as_ref(), campaign.as_os_str(), "--out".as_ref(), out.as_os_str()];
    let arguments = [&begin[..], &unknown[..]].concat();
    let mut tool = Running::start(&mut bench.perf(&arguments));
    tool.error_line_with("1/4 pingpong.good #0: ok");
    tool.signal("-INT");
    assert_eq!(tool.code(), Some(130));
    let interrupted = results(&bench);
    let done = interrupted["cells"][0]["repetitions"].as_array().unwrap().len();
    assert!((1..4).contains(&done), "{done} of 4 are done");
    assert!(interrupted["finished_unix_ms"].is_null());
    let first = interrupted["cells"][0]["repetitions"][0].clone();

    let arguments = [&["run".as_ref(), "--resume".as_ref(), out.as_os_str()], &unknown[..]].concat();
    let output = bench.perf(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let finished = results(&bench);
    let repetitions = finished["cells"][0]["repetitions"].as_array().unwrap();
    let numbers: Vec<u64> = repetitions.iter().map(|it| it["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    assert_eq!(repetitions[0], first, "what was there stays");
    assert!(finished["finished_unix_ms"].is_u64());
}

#[test]
fn what_was_measured_while_the_cores_were_apart_is_marked_and_kept() {
    let bench = Bench::new();
    let apart = bench.path.join("apart");
    std::fs::write(&apart, "51").unwrap();
    // From the first start on the cores are apart.
    let moved = format!("echo 302 > {}; sleep 0.2; {}", apart.display(), Bench::report());
    bench.adapter("good", &[("start", &moved)]);
    let campaign = bench.campaign("repetitions = 3", PINGPONG);
    let out = bench.results();
    let arguments = [
        "run".as_ref(),
        campaign.as_os_str(),
        "--out".as_ref(),
        out.as_os_str(),
        "--cores-apart-from".as_ref(),
        apart.as_os_str(),
    ];
    let output = bench.perf(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mark = "cores apart: 302 ns from core to core, 51 at best";
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains(&format!("marked:  3 of 3 repetitions: 3 with \"{mark}\"")), "{told}");
    for repetition in results(&bench)["cells"][0]["repetitions"].as_array().unwrap() {
        assert_eq!((&repetition["status"], &repetition["cores_apart_ns"]), (&"ok".into(), &302.0.into()));
        assert_eq!(repetition["marks"], serde_json::json!([mark]));
    }
}

#[test]
fn a_run_can_be_repeated_from_its_results_and_does_not_overwrite_them() {
    let bench = Bench::new();
    bench.adapter("good", &[]);
    let campaign = bench.campaign("repetitions = 1", PINGPONG);
    bench.run(&campaign);
    let stored = bench.results().join("run.json");
    let again = bench.path.join("again");
    let arguments = ["run".as_ref(), stored.as_os_str(), "--out".as_ref(), again.as_os_str()];
    let output = bench.perf(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let second: Value = serde_json::from_slice(&std::fs::read(again.join("run.json")).unwrap()).unwrap();
    assert_eq!(second["campaign"], results(&bench)["campaign"]);
    let output = bench.perf(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--resume"));
}

#[test]
fn a_missed_limit_decides_how_a_run_ends_though_another_repetition_failed() {
    for (limit, status) in [("received_per_s_min = 1e12", 3), ("lost_max = 0", 2)] {
        let bench = Bench::new();
        bench.adapter("good", &[]);
        bench.adapter("crash", &[("start", "exit 3")]);
        let scenarios = format!(
            "{PINGPONG}limits = {{ {limit} }}\n[[scenario]]\nname = \"other\"\nkind = \"pingpong\"\nadapters = [\"crash\"]\n"
        );
        let campaign = bench.campaign("repetitions = 1", &scenarios);
        let results = bench.results();
        let arguments = ["run".as_ref(), campaign.as_os_str(), "--out".as_ref(), results.as_os_str()];
        let output = bench.perf(&arguments).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(status),
            "{limit}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn two_agents_over_tcp_carry_out_a_campaign_for_who_knows_their_token() {
    let bench = Bench::new();
    bench.adapter("good", &[]);
    let token = bench.path.join("token");
    writeln!(std::fs::File::create(&token).unwrap(), "correct horse battery staple").unwrap();
    let listen = ["agent", "--listen", "127.0.0.1:0", "--token-file", "token"];
    let agent = |name: &[&str]| {
        let mut agent = Running::start(&mut bench.perf(&[&listen[..], name].concat()));
        let line = agent.line_with("listening at ");
        (agent, line.trim_start_matches("listening at ").to_owned())
    };
    let (one, other) = (agent(&[]), agent(&["--name", "upstairs"]));
    let campaign = bench.campaign("repetitions = 1", PINGPONG);
    let agents = format!("{},{}", one.1, other.1);
    let run = |token: &str, out: &str| {
        let campaign = campaign.to_str().unwrap();
        let arguments = ["run", campaign, "--out", out, "--agents", &agents, "--token-file", token];
        let output = bench.perf(&arguments).output().unwrap();
        let text = std::fs::read(bench.path.join(out).join("run.json")).unwrap();
        (output, serde_json::from_slice::<Value>(&text).unwrap())
    };
    let (output, results) = run("token", "known");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let workers = results["cells"][0]["repetitions"][0]["workers"].as_array().unwrap();
    let hosts: Vec<&str> = workers.iter().map(|it| it["host"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["upstairs", "agent-1"], "pong and ping");
    assert_eq!(results["hosts"].as_array().unwrap().len(), 2);

    std::fs::write(bench.path.join("wrong"), "correct horse battery stable").unwrap();
    let (output, results) = run("wrong", "unknown");
    assert_eq!(output.status.code(), Some(2));
    let reason = &results["cells"][0]["repetitions"][0]["reason"];
    assert!(reason.as_str().unwrap().contains("token is wrong"), "{reason}");
}
