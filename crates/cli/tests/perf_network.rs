//! Campaigns in network namespaces: two joined by veth, fast or slow, three on a bridge, one alone; real
//! workers.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "perf_common/mod.rs"]
mod common;
#[path = "support/namespaces.rs"]
mod namespaces;

use std::collections::BTreeSet;
use std::process::Command;

use common::{Bench, Running, eventually, is_alive};
use namespaces::need_namespaces;
use serde_json::Value;

fn has_nft(test: &str) -> bool {
    let there = Command::new("nft").arg("--version").output().is_ok();
    if !there {
        assert!(std::env::var_os("CI").is_none(), "nft is missing: install the package nftables");
        eprintln!("{test}: skipped, there is no nft (package nftables)");
    }
    there
}

const SCENARIOS: &str = "
[[scenario]]
kind = \"pingpong\"
adapters = [\"plainsong-udp\", \"udp\"]
sizes = 256
duration = \"500ms\"
network = [\"pair\", \"bridge:3\", \"private\"]

[[scenario]]
kind = \"fan\"
adapters = [\"plainsong-udp\"]
sizes = 256
subscribers = 2
pacing = \"rate:200\"
duration = \"500ms\"
network = [\"pair\", \"bridge:3\"]
";

fn hosts_of(cell: &Value) -> BTreeSet<&str> {
    let workers = cell["repetitions"][0]["workers"].as_array().unwrap();
    workers.iter().map(|it| it["host"].as_str().unwrap()).collect()
}

#[test]
fn two_namespaces_and_three_on_a_bridge_run_the_same_campaign() {
    need_namespaces("two_namespaces_and_three_on_a_bridge_run_the_same_campaign");
    let bench = Bench::new();
    let (output, results) = bench.run(&bench.campaign("repetitions = 1", SCENARIOS));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    for cell in results["cells"].as_array().unwrap() {
        let repetition = &cell["repetitions"][0];
        assert_eq!(repetition["status"], "ok", "{}: {}", cell["id"], repetition["reason"]);
        let received = |it: &Value| it["report"]["totals"]["received"].as_u64().unwrap();
        let workers = repetition["workers"].as_array().unwrap();
        let readers = workers.iter().filter(|it| !it["name"].as_str().unwrap().starts_with("pub"));
        for reader in readers {
            assert!(received(reader) > 20, "{} of {}", reader["name"], cell["id"]);
            assert_eq!(reader["report"]["totals"]["lost"], 0, "{} of {}", reader["name"], cell["id"]);
        }
        let expected: &[&str] = match (cell["parameters"]["network"].as_str().unwrap(), cell["kind"] == "fan")
        {
            ("pair", _) => &["pair-1", "pair-2"],
            ("bridge:3", true) => &["bridge-1", "bridge-2", "bridge-3"],
            ("bridge:3", false) => &["bridge-1", "bridge-2"],
            _ => &["private"],
        };
        assert_eq!(hosts_of(cell), expected.iter().copied().collect(), "{}", cell["id"]);
        // What crosses between namespaces is counted where it leaves.
        let ping = workers.iter().find(|it| it["name"] == "ping" || it["name"] == "pub-0").unwrap();
        assert!(ping["resources"]["interface_packets"].as_u64().unwrap() > 20, "{}", cell["id"]);
        assert!(ping["resources"]["wall_ns"].as_u64().unwrap() > 300_000_000, "{}", cell["id"]);
    }
}

/// A kernel without tbf is no fault of ours: the test says that it did not run.
fn has_slow_roads(test: &str) -> bool {
    let script = "ip link set lo up; tc qdisc add dev lo root tbf rate 1mbit burst 16kb latency 1ms";
    let there = Command::new("unshare").args(["-n", "sh", "-ec", script]).status().unwrap().success();
    if !there {
        eprintln!("{test}: skipped, tc (package iproute2) or the queueing discipline tbf is missing");
    }
    there
}

#[test]
fn no_more_passes_a_slow_road_than_it_carries_and_nothing_is_lost_to_its_readers() {
    let test = "no_more_passes_a_slow_road_than_it_carries_and_nothing_is_lost_to_its_readers";
    need_namespaces(test);
    if !has_slow_roads(test) {
        return;
    }
    let bench = Bench::new();
    let scenario = "[[scenario]]\nkind = \"throughput\"\nadapters = [\"plainsong\"]\nsizes = 8192\nduration = \"1s\"\n\
                    network = \"road:50\"\n";
    let (output, results) = bench.run(&bench.campaign("repetitions = 1", scenario));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let repetition = &results["cells"][0]["repetitions"][0];
    assert_eq!(repetition["status"], "ok", "{}", repetition["reason"]);
    let workers = repetition["workers"].as_array().unwrap();
    let reader = workers.iter().find(|it| !it["name"].as_str().unwrap().starts_with("pub")).unwrap();
    let totals = &reader["report"]["totals"];
    let seconds = reader["resources"]["wall_ns"].as_u64().unwrap() as f64 / 1e9;
    let mbit_per_s = totals["received"].as_u64().unwrap() as f64 * 8192.0 * 8.0 / 1e6 / seconds;
    // What was in the queue when the time began counts, too.
    assert!((10.0..60.0).contains(&mbit_per_s), "{mbit_per_s} Mbit/s over a road of 50");
    assert_eq!(totals["lost"], 0);
}

#[test]
fn namespaces_vanish_with_a_tool_that_is_killed() {
    need_namespaces("namespaces_vanish_with_a_tool_that_is_killed");
    let bench = Bench::new();
    bench.adapter("good", &[("start", "sleep 1000")]);
    let scenario = "[[scenario]]\nkind = \"pingpong\"\nadapters = [\"good\"]\nnetwork = \"bridge:3\"\n";
    let campaign = bench.campaign("repetitions = 1", scenario);
    let out = bench.results();
    let arguments = ["run".as_ref(), campaign.as_os_str(), "--out".as_ref(), out.as_os_str()];
    let mut tool = Running::start(&mut bench.perf(&arguments));
    eventually("two workers", || bench.pids().len() == 2);
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    let namespaces: BTreeSet<_> = bench.pids().into_iter().map(namespace).collect();
    assert_eq!(namespaces.len(), 2);
    assert!(!namespaces.contains(&namespace(std::process::id())));
    tool.signal("-9");
    tool.code();
    for pid in bench.pids() {
        eventually("the end of every worker", || !is_alive(pid));
    }
    // A namespace lives as long as a process is in it.
    eventually("the end of every process in the namespaces", || {
        let processes = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|it| it.unwrap().file_name().to_str()?.parse().ok());
        let inside = processes.filter_map(|pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok());
        !inside.into_iter().any(|it| namespaces.contains(&it))
    });
}

#[test]
fn loss_on_the_network_of_the_host_is_refused() {
    let bench = Bench::new();
    bench.adapter("good", &[]);
    let scenario = "[[scenario]]\nkind = \"pingpong\"\nadapters = [\"good\"]\nloss_percent = 1\n";
    let (_, results) = bench.run(&bench.campaign("repetitions = 1", scenario));
    let repetition = common::repetition(&results, "pingpong.good");
    assert_eq!(repetition["status"], "skipped");
    assert!(repetition["reason"].as_str().unwrap().contains("network of its own"), "{repetition:#}");
}

#[test]
fn datagrams_are_dropped_where_the_campaign_says_so() {
    let test = "datagrams_are_dropped_where_the_campaign_says_so";
    need_namespaces(test);
    if !has_nft(test) {
        return;
    }
    let bench = Bench::new();
    let scenario = "[[scenario]]\nkind = \"throughput\"\nadapters = [\"udp\"]\nnetwork = \"private\"\n\
                    loss_percent = [0, 20]\npacing = \"rate:2000\"\nduration = \"1s\"\n";
    let (output, results) = bench.run(&bench.campaign("repetitions = 1", scenario));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lost = |cell: &str| {
        let workers = common::repetition(&results, cell)["workers"].as_array().unwrap();
        let subscriber = workers.iter().find(|it| it["name"] == "sub-0").unwrap();
        subscriber["report"]["totals"]["lost"].as_u64().unwrap()
    };
    assert_eq!(lost("throughput.udp.loss0_0"), 0);
    let of_2000 = lost("throughput.udp.loss20_0");
    assert!((300..500).contains(&of_2000), "{of_2000} of 2000 at 20 %");
}

#[test]
fn a_reliable_flow_goes_on_after_an_outage_and_the_time_it_takes_is_told() {
    let test = "a_reliable_flow_goes_on_after_an_outage_and_the_time_it_takes_is_told";
    need_namespaces(test);
    if !has_nft(test) {
        return;
    }
    let bench = Bench::new();
    let scenario = "[[scenario]]\nkind = \"outage\"\nadapters = [\"plainsong-udp\", \"udp\"]\nnetwork = \"private\"\n\
                    outage = \"300ms\"\nrates = 500\nduration = \"900ms\"\n";
    let (_, results) = bench.run(&bench.campaign("repetitions = 1", scenario));
    let repetition = common::repetition(&results, "outage.plainsong-udp");
    assert_eq!(repetition["status"], "ok", "{}", repetition["reason"]);
    let ended_ns = repetition["outage_end_ns"].as_u64().unwrap();
    let reports = |repetition: &Value| repetition["workers"].as_array().unwrap().clone();
    let subscriber = reports(repetition).into_iter().find(|it| it["name"] == "sub-0").unwrap();
    assert_eq!(subscriber["report"]["totals"]["lost"], 0);
    let stalls = subscriber["report"]["stalls"].as_array().unwrap();
    let around = |it: &&Value| {
        it["begin_ns"].as_u64().unwrap() < ended_ns
            && it["end_ns"].as_u64().is_some_and(|end| end >= ended_ns)
    };
    let stall = stalls.iter().find(around).unwrap_or_else(|| panic!("{stalls:?} around {ended_ns}"));
    assert!(ended_ns - stall["begin_ns"].as_u64().unwrap() >= 250_000_000, "{stall}");
    // What repairs nothing has lost what was sent meanwhile, for good.
    let repetition = common::repetition(&results, "outage.udp");
    assert_eq!(repetition["status"], "failed");
    assert!(repetition["reason"].as_str().unwrap().contains("never up to date again"), "{repetition:#}");
}
