//! Ways in which endpoints may differ, and settings of a host, that `plainsong doctor` finds.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(unix)]

mod common;
#[path = "support/namespaces.rs"]
mod namespaces;

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use common::{PATIENCE, domain, plainsong};
use namespaces::need_namespaces;
use plainsong::config::Config;
use plainsong::prelude::*;
use plainsong::qos::Presentation;
use plainsong::time::Duration;
use plainsong::types::OpaqueType;
use serde_json::Value;

fn text<'a>(finding: &'a Value, key: &str) -> &'a str {
    finding[key].as_str().unwrap()
}

/// Asks until all of these are found; the first finding of each.
fn until_found(command: impl Fn() -> Command, codes: &[&str]) -> Vec<Value> {
    let end = Instant::now() + PATIENCE;
    loop {
        let output = command().output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let found: Vec<Value> = codes
            .iter()
            .filter_map(|code| findings.iter().find(|it| it["code"] == **code).cloned())
            .collect();
        if found.len() == codes.len() {
            return found;
        }
        assert!(Instant::now() < end, "not all of {codes:?}: {report:#}");
    }
}

/// One side of a topic.
struct Side {
    type_name: &'static str,
    keyed: bool,
    group: QosSet,
    qos: QosSet,
}

fn side(qos: QosSet) -> Side {
    Side { type_name: "Thing", keyed: false, group: QosSet::default(), qos }
}

/// A pair that differs: the code of that, writer and reader, and words of the finding.
fn differences() -> Vec<(&'static str, Side, Side, &'static str)> {
    let writer = || side(QosSet::writer());
    let reader = || side(QosSet::reader());
    let second = Duration::from_secs(1);
    let coherent =
        Presentation { access_scope: AccessScope::Topic, coherent_access: true, ordered_access: false };
    let mut validating = QosSet::reader();
    validating.type_consistency.force_type_validation = true;
    vec![
        (
            "qos-presentation",
            writer(),
            Side { group: QosSet { presentation: coherent, ..QosSet::default() }, ..reader() },
            "PRESENTATION: the writer has ",
        ),
        (
            "qos-latency-budget",
            side(QosSet::writer().latency_budget(second)),
            reader(),
            "LATENCY_BUDGET: the writer has 1 s, the reader wants 0",
        ),
        (
            "qos-liveliness",
            writer(),
            side(QosSet::reader().liveliness(LivelinessKind::Automatic, second)),
            "LIVELINESS: the writer has ",
        ),
        (
            "qos-destination-order",
            writer(),
            side(QosSet::reader().destination_order(DestinationOrder::BySourceTimestamp)),
            "DESTINATION_ORDER: the writer has ",
        ),
        (
            "type-name",
            Side { type_name: "Other", ..writer() },
            reader(),
            "the writer has \"Other\", the reader wants \"Thing\"",
        ),
        ("key", Side { keyed: true, ..writer() }, reader(), "key"),
        ("type-information", writer(), side(validating), "type"),
    ]
}

#[test]
fn each_difference_of_a_pair_has_its_code() {
    let domain = domain(0);
    let factory = DomainParticipantFactory::with_config(Config {
        interfaces: Some(vec!["lo".to_owned()]),
        ..Config::default()
    });
    let join = |name| factory.create_participant(domain.parse().unwrap(), name, QosSet::default()).unwrap();
    let (writing, reading) = (join("writing"), join("reading"));
    let topic = |participant: &DomainParticipant, name: &str, side: &Side| {
        let ty = Arc::new(OpaqueType::new(side.type_name, side.keyed));
        participant.create_any_topic(name, ty, QosSet::default()).unwrap()
    };
    let mut endpoints: (Vec<AnyDataWriter>, Vec<AnyDataReader>) = (Vec::new(), Vec::new());
    let differences = differences();
    for (code, writer, reader, _) in &differences {
        let publisher = writing.create_publisher(writer.group.clone()).unwrap();
        endpoints
            .0
            .push(publisher.create_writer(&topic(&writing, code, writer), writer.qos.clone()).unwrap());
        let subscriber = reading.create_subscriber(reader.group.clone()).unwrap();
        endpoints
            .1
            .push(subscriber.create_reader(&topic(&reading, code, reader), reader.qos.clone()).unwrap());
    }
    let lonely = side(QosSet::writer());
    let publisher = writing.create_publisher(QosSet::default()).unwrap();
    endpoints
        .0
        .push(publisher.create_writer(&topic(&writing, "lonely", &lonely), lonely.qos.clone()).unwrap());

    let mut codes: Vec<&str> = differences.iter().map(|(code, ..)| *code).collect();
    codes.push("writer-without-reader");
    let doctor = || plainsong(&["doctor", "--json", "--this-domain-only", "-d", &domain]);
    let found = until_found(doctor, &codes);
    for ((code, .., words), finding) in differences.iter().zip(&found) {
        assert!(text(finding, "entity").starts_with(&format!("topic {code:?}: writer ")), "{finding}");
        assert!(text(finding, "what").contains(words), "no {words:?} in {finding}");
        assert_eq!(text(finding, "severity"), "error", "{finding}");
    }
    assert!(text(&found[codes.len() - 1], "entity").starts_with("topic \"lonely\": writer "), "{found:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn settings_that_hinder_are_found() {
    let domain = domain(1);
    let doctor = || {
        let variables = [("PLAINSONG_MULTICAST", "off"), ("PLAINSONG_SEND_BUFFER_BYTES", "4096")];
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 200; exec \"$@\"", "-", env!("CARGO_BIN_EXE_plainsong")]);
        command.args(["doctor", "--json", "--this-domain-only", "-d", &domain]);
        command.env("PLAINSONG_INTERFACES", "lo").envs(variables);
        command
    };
    let codes = ["multicast-off", "send-buffer-small", "memory-limit", "ports-ephemeral", "nobody-heard"];
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let first: u32 = range.split_ascii_whitespace().next().unwrap().parse().unwrap();
    // The ports of a domain are 250.
    let is_ephemeral = 7_400 + 250 * (domain.parse::<u32>().unwrap() + 1) > first;
    let codes: Vec<&str> = codes.into_iter().filter(|it| *it != "ports-ephemeral" || is_ephemeral).collect();
    let found = until_found(doctor, &codes);
    assert!(text(&found[1], "what").contains("4096"), "{found:?}");
    assert!(text(&found[2], "what").contains("this process may have 200 open files"), "{found:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn who_is_heard_and_cannot_be_reached_is_found() {
    need_namespaces("who_is_heard_and_cannot_be_reached_is_found");
    // What is sent to a participant alone is dropped.
    let script = "ip link set lo up; ip link set lo multicast on; ip route add 224.0.0.0/4 dev lo; \
                  nft add table ip t; nft add chain ip t in '{ type filter hook input priority 0; }'; \
                  nft add rule ip t in ip daddr 127.0.0.1 udp dport 7401-7650 drop; \
                  \"$1\" shapes -S > /dev/null & shapes=$!; trap 'kill $shapes' EXIT; \
                  \"$@\" || status=$?; exit ${status:-0}";
    let doctor = || {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-ec", script, "sh", env!("CARGO_BIN_EXE_plainsong")]);
        command.args(["doctor", "--json", "--this-domain-only"]).env("PLAINSONG_INTERFACES", "lo");
        command.env("PLAINSONG_SHARED_MEMORY", "off");
        command
    };
    let found = until_found(doctor, &["participant-not-answering"]);
    assert!(text(&found[0], "entity").starts_with("plainsong shapes (process "), "{found:?}");
    assert!(text(&found[0], "what").contains("udp/127.0.0.1:74"), "{found:?}");
}
