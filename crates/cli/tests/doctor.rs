//! `plainsong doctor`, beside `plainsong shapes`, participants of the test, and in networks that are broken.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(unix)]

mod common;
#[path = "support/namespaces.rs"]
mod namespaces;

use std::process::{Command, Output};
use std::time::Instant;

use common::{PATIENCE, Program, domain, plainsong};
use namespaces::need_namespaces;
use plainsong::config::Config;
use plainsong::prelude::*;
use serde_json::Value;

fn report_of(output: &Output) -> Value {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}: {told}", output.status);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let severities = findings(&report).iter().map(|it| it["severity"].as_str().unwrap());
    let is_bad = severities.clone().any(|it| it != "note");
    assert_eq!(output.status.code(), Some(i32::from(is_bad)), "{report}");
    // Whatever is found is told in full.
    for finding in findings(&report) {
        for key in ["code", "entity", "what", "cure"] {
            assert!(!finding[key].as_str().unwrap().is_empty(), "{finding}");
        }
    }
    report
}

fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().unwrap()
}

fn found<'a>(report: &'a Value, code: &str) -> Vec<&'a Value> {
    findings(report).iter().filter(|it| it["code"] == code).collect()
}

/// Asks until that is found.
fn until_found(domain: &str, variables: &[(&str, &str)], code: &str) -> (Value, Value) {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut doctor = plainsong(&["doctor", "--json", "-d", domain]);
        let report = report_of(&doctor.envs(variables.iter().copied()).output().unwrap());
        if let [first, ..] = &found(&report, code)[..] {
            return ((*first).clone(), report.clone());
        }
        assert!(Instant::now() < end, "no {code}: {report:#}");
    }
}

fn text<'a>(finding: &'a Value, key: &str) -> &'a str {
    finding[key].as_str().unwrap()
}

/// A publisher and a subscriber of shapes with these options.
fn pair(domain: &str, publisher: &[&str], subscriber: &[&str]) -> (Program, Program) {
    let run = |role: &str, more: &[&str]| Program::start(&[&["shapes", role, "-d", domain], more].concat());
    (run("-P", publisher), run("-S", subscriber))
}

/// That a pair which differs in one policy is found, with both values and a cure, and its reader as starved.
fn finds(number: u32, code: &str, publisher: &[&str], subscriber: &[&str], words: &[&str]) {
    let domain = domain(number);
    let (publisher, subscriber) = pair(&domain, publisher, subscriber);
    let (finding, report) = until_found(&domain, &[], code);
    assert_eq!(finding["severity"], "error", "{finding}");
    for part in words {
        assert!(text(&finding, "what").contains(part), "no {part:?} in {finding}");
    }
    for program in [&publisher, &subscriber] {
        assert!(
            text(&finding, "entity").contains(&format!("process {} ", program.process.id())),
            "{finding}"
        );
    }
    assert!(text(&finding, "entity").starts_with("topic \"Square\": writer "), "{finding}");
    assert_eq!(found(&report, "reader-starved").len(), 1, "{report:#}");
}

#[test]
fn reliability_that_differs_is_found() {
    finds(0, "qos-reliability", &["-b"], &["-r"], &["the writer has BEST_EFFORT, the reader wants RELIABLE"]);
}

#[test]
fn durability_that_differs_is_found() {
    let words = ["the writer has VOLATILE, the reader wants TRANSIENT_LOCAL"];
    finds(1, "qos-durability", &["-D", "v"], &["-D", "l"], &words);
}

#[test]
fn deadline_that_differs_is_found() {
    let words = ["the writer has 2 s, the reader wants 500 ms"];
    finds(2, "qos-deadline", &["-f", "2000"], &["-f", "500"], &words);
}

#[test]
fn ownership_that_differs_is_found() {
    finds(
        3,
        "qos-ownership",
        &["-s", "5"],
        &["-s", "-1"],
        &["the writer has EXCLUSIVE, the reader wants SHARED"],
    );
}

#[test]
fn a_representation_that_differs_is_found() {
    finds(
        4,
        "qos-data-representation",
        &["-x", "1"],
        &["-x", "2"],
        &["the writer has XCDR1, the reader wants XCDR2"],
    );
}

#[test]
fn a_partition_that_differs_is_found() {
    let domain = domain(5);
    let _pair = pair(&domain, &["-p", "left"], &["-p", "right"]);
    let (finding, _) = until_found(&domain, &[], "partition");
    assert_eq!(finding["severity"], "warning", "it is meant to keep apart, and yet the reader has nobody");
    assert!(
        text(&finding, "what").contains("the writer has \"left\", the reader wants \"right\""),
        "{finding}"
    );
    assert!(text(&finding, "cure").contains("add \"left\" to the subscriber's PARTITION"), "{finding}");
}

mod old {
    use plainsong::prelude::*;
    #[derive(DdsType, Default)]
    #[dds(name = "Pose")]
    pub(crate) struct Pose {
        pub(crate) x: i32,
        pub(crate) angle: i32,
    }
}

mod new {
    use plainsong::prelude::*;
    #[derive(DdsType, Default)]
    #[dds(name = "Pose")]
    pub(crate) struct Pose {
        pub(crate) x: i32,
        pub(crate) angle: f64,
    }
}

#[test]
fn a_type_that_differs_is_found_with_its_first_member() {
    let domain = domain(6);
    let config = Config { interfaces: Some(vec!["lo".to_owned()]), ..Config::default() };
    let factory = DomainParticipantFactory::with_config(config);
    let join = |name| factory.create_participant(domain.parse().unwrap(), name, QosSet::default()).unwrap();
    let (writing, reading) = (join("old"), join("new"));
    let topic = writing.create_topic::<old::Pose>("Pose", QosSet::default()).unwrap();
    let publisher = writing.create_publisher(QosSet::default()).unwrap();
    let _writer = publisher.create_writer(&topic, QosSet::writer()).unwrap();
    let topic = reading.create_topic::<new::Pose>("Pose", QosSet::default()).unwrap();
    let subscriber = reading.create_subscriber(QosSet::default()).unwrap();
    let _reader = subscriber.create_reader(&topic, QosSet::reader()).unwrap();
    let (finding, _) = until_found(&domain, &[], "type");
    assert!(text(&finding, "what").contains("member `angle`: int32"), "{finding}");
    assert!(text(&finding, "what").contains("member `angle`: float64"), "{finding}");
    assert!(text(&finding, "entity").contains("of old (process "), "{finding}");
}

#[test]
fn a_reader_whose_writer_is_in_another_domain_is_told_where() {
    let (here, there) = (domain(7), domain(8));
    let publisher = Program::start(&["shapes", "-P", "-d", &there]);
    let _subscriber = Program::start(&["shapes", "-S", "-d", &here]);
    let (_, report) = until_found(&here, &[], "reader-without-writer");
    let there = format!("domain {there}");
    // Other tests have domains of their own.
    let of_there = |report: &Value| {
        found(report, "other-domain").into_iter().find(|it| it["entity"] == there.as_str()).cloned()
    };
    let end = Instant::now() + PATIENCE;
    let mut report = report;
    let finding = loop {
        if let Some(finding) = of_there(&report) {
            break finding;
        }
        assert!(Instant::now() < end, "{report:#}");
        report = until_found(&here, &[], "reader-without-writer").1;
    };
    assert_eq!(finding["severity"], "warning", "{finding}");
    assert!(text(&finding, "what").contains(&format!("process {} ", publisher.process.id())), "{finding}");
    let output = plainsong(&["doctor", "--json", "-d", &here, "--this-domain-only"]).output().unwrap();
    assert!(found(&report_of(&output), "other-domain").is_empty(), "nobody was asked");
}

#[test]
fn a_name_without_its_ros_prefix_a_slash_and_a_case_are_found() {
    let domain = domain(9);
    let names = [
        ("-P", "rt/chatter"),
        ("-S", "chatter"),
        ("-P", "/pose"),
        ("-S", "pose"),
        ("-P", "Map"),
        ("-S", "map"),
    ];
    let _programs: Vec<_> = names
        .iter()
        .map(|(role, topic)| Program::start(&["shapes", role, "-d", &domain, "-t", topic]))
        .collect();
    for (code, one, other) in [
        ("topic-ros-prefix", "chatter", "rt/chatter"),
        ("topic-slash", "/pose", "pose"),
        ("topic-case", "Map", "map"),
    ] {
        let (finding, _) = until_found(&domain, &[], code);
        assert_eq!(text(&finding, "entity"), format!("topics {one:?} and {other:?}"));
        assert_eq!(finding["severity"], "warning");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn shared_memory_that_is_refused_is_found_with_the_reason() {
    let domain = domain(10);
    let mut shapes = plainsong(&["shapes", "-P", "-d", &domain]);
    let shapes = Program::run(shapes.env("PLAINSONG_SHARED_MEMORY", "off"));
    let (finding, _) = until_found(&domain, &[], "memory-refused");
    assert!(text(&finding, "what").contains("the other process shares no memory"), "{finding}");
    assert!(text(&finding, "cure").contains("PLAINSONG_SHARED_MEMORY=auto there"), "{finding}");
    assert!(text(&finding, "entity").contains(&format!("process {} ", shapes.process.id())), "{finding}");
    let off = [("PLAINSONG_SHARED_MEMORY", "off")];
    let (finding, report) = until_found(&domain, &off, "memory-off");
    assert_eq!(finding["severity"], "note");
    assert!(found(&report, "memory-refused").is_empty(), "it is not known then");
}

#[test]
#[cfg(target_os = "linux")]
fn a_receive_buffer_that_is_too_small_is_found_and_what_was_lost_by_it() {
    let domain = domain(11);
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = plainsong(&[words, &["-d", &domain]].concat());
        Program::run(command.env("PLAINSONG_SHARED_MEMORY", "off").envs(variables.iter().copied()))
    };
    let subscriber = run(&["shapes", "-S", "-b"], &[("PLAINSONG_RECEIVE_BUFFER_BYTES", "4096")]);
    let write = ["shapes", "-P", "-b", "-w", "--write-period", "1", "--additional-payload-size", "8000"];
    let publisher = run(&write, &[("PLAINSONG_BATCH_BYTES", "0")]);
    publisher.line_with("Square");
    // It stands still while samples come.
    subscriber.signal("STOP");
    let (finding, _) = until_found(&domain, &[], "socket-overflow");
    assert!(text(&finding, "entity").contains(&format!("process {})", subscriber.process.id())), "{finding}");
    assert!(text(&finding, "what").contains(" datagrams, since its receive buffers were full"), "{finding}");
    subscriber.signal("CONT");
    let small = [("PLAINSONG_RECEIVE_BUFFER_BYTES", "4096")];
    let (finding, _) = until_found(&domain, &small, "receive-buffer-small");
    assert_eq!(
        (text(&finding, "severity"), text(&finding, "cure")),
        ("warning", "raise or unset PLAINSONG_RECEIVE_BUFFER_BYTES")
    );
}

#[test]
fn a_reader_that_is_given_nothing_and_one_that_drops_are_found() {
    let domain = domain(13);
    let small = [("PLAINSONG_SAMPLE_BYTES_MAX", "4096")];
    let _publisher = Program::start(&["shapes", "-P", "-d", &domain, "--additional-payload-size", "8000"]);
    let _wants_none = Program::start(&["shapes", "-S", "-d", &domain, "--cft", "color = 'NONE'"]);
    let mut takes_little = plainsong(&["shapes", "-S", "-d", &domain]);
    let takes_little = Program::run(takes_little.envs(small));
    let (finding, _) = until_found(&domain, &[], "reader-receives-nothing");
    assert!(text(&finding, "entity").starts_with("topic \"Square\": reader "), "{finding}");
    let (finding, _) = until_found(&domain, &[], "dropped");
    assert!(text(&finding, "what").ends_with(": SampleTooLarge"), "{finding}");
    assert!(
        text(&finding, "entity").contains(&format!("process {} ", takes_little.process.id())),
        "{finding}"
    );
    assert_eq!(text(&finding, "cure"), "raise PLAINSONG_SAMPLE_BYTES_MAX where the reader is");
}

/// What doctor finds in a network namespace that `script` prepares, with loopback alone.
fn in_namespace(script: &str, arguments: &[&str]) -> Value {
    let prepare = format!(
        "ip link set lo up; ip link set lo multicast on; ip route add 224.0.0.0/4 dev lo; {script}; exec \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-ec", &prepare, "sh", env!("CARGO_BIN_EXE_plainsong")]);
    let output =
        command.args(["doctor", "--json"]).args(arguments).env("PLAINSONG_INTERFACES", "lo").output();
    report_of(&output.unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn multicast_that_is_blocked_is_found_on_its_interface() {
    need_namespaces("multicast_that_is_blocked_is_found_on_its_interface");
    let healthy = in_namespace(":", &[]);
    assert!(found(&healthy, "multicast-blocked").is_empty(), "{healthy:#}");
    assert_eq!(found(&healthy, "nobody-heard").len(), 1, "{healthy:#}");
    let nft = "nft add table ip t; nft add chain ip t out '{ type filter hook output priority 0; }'; \
               nft add rule ip t out ip daddr 239.255.0.1 udp dport 7400 drop";
    let blocked = in_namespace(nft, &[]);
    let [finding] = &found(&blocked, "multicast-blocked")[..] else { panic!("{blocked:#}") };
    assert_eq!((text(finding, "entity"), text(finding, "severity")), ("interface lo", "warning"));
    assert!(text(finding, "what").contains("239.255.0.1:7400"), "{finding}");
    let [rule] = &found(&blocked, "firewall-drops")[..] else { panic!("{blocked:#}") };
    assert_eq!(text(rule, "entity"), "nftables ip t out");
    assert!(text(rule, "what").contains("udp dport 7400 drop"), "{rule}");
    // The rule is about another domain's port.
    let other = in_namespace(nft, &["-d", "3"]);
    assert!(
        found(&other, "multicast-blocked").is_empty() && found(&other, "firewall-drops").is_empty(),
        "{other:#}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn an_interface_without_multicast_and_an_interface_that_is_not_there_are_found() {
    need_namespaces("an_interface_without_multicast_and_an_interface_that_is_not_there_are_found");
    let script = "ip link add plain type veth peer name other; ip link set other up; ip link set plain multicast off; ip link set plain up; \
                  ip addr add 10.9.8.7/24 dev plain; export PLAINSONG_INTERFACES=plain,nowhere0";
    let report = in_namespace(script, &[]);
    let [missing] = &found(&report, "interface-missing")[..] else { panic!("{report:#}") };
    assert_eq!(text(missing, "entity"), "interface nowhere0");
    let blocked = found(&report, "multicast-blocked");
    for finding in &blocked {
        assert!(text(finding, "what").contains("has no MULTICAST flag"), "{finding}");
        assert!(text(finding, "cure").starts_with("ip link set dev plain multicast on"), "{finding}");
    }
    let checks = report["checks"].as_array().unwrap();
    let told = checks.iter().find(|it| it["state"].as_str().unwrap().starts_with("plain 10.9.8.7")).unwrap();
    assert_eq!(blocked.is_empty(), told["state"].as_str().unwrap().contains("multicast works"), "{report:#}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_discovery_port_that_somebody_keeps_for_himself_is_found_with_the_owner() {
    need_namespaces("a_discovery_port_that_somebody_keeps_for_himself_is_found_with_the_owner");
    let script = "python3 -c 'import socket,time; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); \
                  s.bind((\"0.0.0.0\",7400)); time.sleep(30)' & \
                  holder=$!; trap 'kill $holder' EXIT; \
                  until grep -q :1CE8 /proc/net/udp; do sleep 0.05; done";
    // The script stays, so that it ends who has the port.
    let script = format!("{script}; \"$@\" || status=$?; exit ${{status:-0}}");
    let report = in_namespace(&script, &[]);
    let [finding] = &found(&report, "port-taken")[..] else { panic!("{report:#}") };
    assert!(text(finding, "what").starts_with("python3 (process "), "{finding}");
}

#[test]
fn a_pair_that_matches_is_well_and_told_in_lines() {
    let domain = domain(12);
    let _pair = pair(&domain, &[], &[]);
    let end = Instant::now() + PATIENCE;
    loop {
        let output = plainsong(&["doctor", "-d", &domain, "--this-domain-only"]).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(
            told.lines().all(|line| line.starts_with("check\t") || line.starts_with("finding\t")),
            "{told}"
        );
        let is_about_domain = |line: &&str| {
            let code = line.split('\t').nth(2).unwrap_or_default();
            line.starts_with("finding\t")
                && ["qos", "type", "reader", "topic", "nobody"].iter().any(|it| code.starts_with(it))
        };
        let is_seen =
            told.contains("check\tparticipants\t2 participants heard, 2 of them answering; 2 endpoints");
        if is_seen {
            assert_eq!(told.lines().filter(is_about_domain).count(), 0, "{told}");
            return;
        }
        assert!(Instant::now() < end, "{told}");
    }
}

#[test]
fn wrong_options_and_what_cannot_be_looked_at_have_statuses_of_their_own() {
    assert_eq!(plainsong(&["doctor", "--such"]).output().unwrap().status.code(), Some(2));
    let output = plainsong(&["doctor", "-d", "7"]).env("PLAINSONG_MULTICAST", "perhaps").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("domain 7"));
}
