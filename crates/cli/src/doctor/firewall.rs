//! Rules of packet filters that drop datagrams of the domain, where this process may read them: hints, since
//! what a rule does depends on those before it.

use std::ops::RangeInclusive;
use std::process::Command;

use serde_json::Value;

use super::codes::{self, Severity};
use super::ports;
use super::{Patient, report::Report};
use crate::output::counted;

/// Octets of a set of rules that are read at most.
const RULES_BYTES_MAX: usize = 16 << 20;

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let range = ports::of_domain(patient.domain);
    let nft = output("nft", &["-j", "list", "ruleset"]);
    let tables = output("iptables-save", &[]);
    let mut found = Vec::new();
    if let Some(json) = nft.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        let text = output("nft", &["-a", "list", "ruleset"]).unwrap_or_default();
        found.extend(of_nftables(&json, &text, &range));
    }
    found.extend(tables.as_deref().map(|text| of_iptables(text, &range)).unwrap_or_default());
    let state = match (nft.is_some() || tables.is_some(), found.len()) {
        (false, _) => {
            "rules are not readable: there is no nft or iptables-save, or it takes more rights".to_owned()
        }
        (true, 0) => format!("no rule drops UDP to ports {} to {}", range.start(), range.end()),
        (true, count) => {
            format!(
                "{} (or a chain's policy) may drop datagrams of the domain",
                counted(count as u64, "rule")
            )
        }
    };
    report.check("packet filter", state);
    for rule in found {
        let what = format!("it may drop datagrams of the domain: {}", rule.text);
        report.find(codes::FIREWALL_DROPS, Severity::Warning, rule.place, what, None);
    }
}

/// What drops.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    place: String,
    text: String,
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = output.stdout;
    if !output.status.success() || text.len() > RULES_BYTES_MAX { None } else { String::from_utf8(text).ok() }
}

/// Of what `nft -j list ruleset` prints; `text` is the same for people, with handles.
fn of_nftables(json: &Value, text: &str, range: &RangeInclusive<u16>) -> Vec<Rule> {
    let all = json["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found = Vec::new();
    let name = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    for chain in all.iter().filter_map(|it| it.get("chain")) {
        let is_hooked =
            matches!(chain["hook"].as_str(), Some("input" | "output" | "prerouting" | "postrouting"));
        let key = (name(chain, "family"), name(chain, "table"), name(chain, "name"));
        let rules = || {
            let rules = all.iter().filter_map(|it| it.get("rule"));
            rules.filter(|it| (name(it, "family"), name(it, "table"), name(it, "chain")) == key)
        };
        let place = format!("nftables {} {} {}", key.0, key.1, key.2);
        for rule in rules().filter(|rule| may_concern(rule, range) && has(rule, &["drop", "reject"])) {
            // Handles count within a table.
            let (table, handle) =
                (format!("table {} {} ", key.0, key.1), format!("# handle {}", rule["handle"]));
            let lines = text.lines().skip_while(|line| !line.starts_with(&table));
            let mut lines = lines.take_while(|line| *line != "}");
            let line = lines.find(|line| line.trim_end().ends_with(&handle));
            let line = line.map_or_else(|| rule["expr"].to_string(), |it| it.trim().replace(&handle, ""));
            found.push(Rule { place: place.clone(), text: line.trim().to_owned() });
        }
        let lets_through = |rule: &Value| names_port(rule, range) && has(rule, &["accept"]);
        if is_hooked && chain["policy"] == "drop" && !rules().any(lets_through) {
            found.push(Rule { place, text: "its policy is drop, and no rule accepts the ports".to_owned() });
        }
    }
    found
}

fn expressions(rule: &Value) -> &[Value] {
    rule["expr"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn has(rule: &Value, verdicts: &[&str]) -> bool {
    expressions(rule).iter().any(|it| verdicts.iter().any(|verdict| it.get(verdict).is_some()))
}

/// Whether nothing that a rule matches by excludes UDP to these ports.
fn may_concern(rule: &Value, range: &RangeInclusive<u16>) -> bool {
    expressions(rule).iter().filter_map(|it| it.get("match")).all(|it| concerns(it, range))
}

/// Whether it names a port of these.
fn names_port(rule: &Value, range: &RangeInclusive<u16>) -> bool {
    let is_port = |it: &&Value| it["left"]["payload"]["field"] == "dport";
    let matches = expressions(rule).iter().filter_map(|it| it.get("match"));
    matches.filter(is_port).any(|it| concerns(it, range)) && may_concern(rule, range)
}

fn concerns(it: &Value, range: &RangeInclusive<u16>) -> bool {
    let (left, right) = (&it["left"], &it["right"]);
    if it["op"].as_str().is_some_and(|op| op != "==" && op != "in") {
        return true;
    }
    let payload = &left["payload"];
    match (payload["protocol"].as_str(), payload["field"].as_str()) {
        (Some("udp" | "th"), Some("dport")) => overlaps(right, range),
        (Some("tcp" | "icmp" | "icmpv6" | "sctp"), _) => false,
        (_, Some("protocol" | "nexthdr")) => names(right, &["udp", "17"]),
        _ if left["meta"]["key"] == "l4proto" => names(right, &["udp", "17"]),
        // What belongs to no flow is dropped everywhere.
        _ if left["ct"]["key"] == "state" => names(right, &["new", "established", "untracked"]),
        _ => true,
    }
}

/// Whether a value, or one of a set, is one of these.
fn names(value: &Value, wanted: &[&str]) -> bool {
    match value {
        Value::String(text) => wanted.contains(&text.as_str()),
        Value::Number(number) => wanted.contains(&number.to_string().as_str()),
        Value::Array(all) => all.iter().any(|it| names(it, wanted)),
        Value::Object(map) => map.get("set").is_none_or(|set| names(set, wanted)),
        _ => true,
    }
}

/// Whether a port, a range, or one of a set is in this range.
fn overlaps(value: &Value, range: &RangeInclusive<u16>) -> bool {
    let port = |it: &Value| it.as_u64().and_then(|it| u16::try_from(it).ok());
    match value {
        Value::Number(_) => port(value).is_some_and(|it| range.contains(&it)),
        Value::Array(all) => all.iter().any(|it| overlaps(it, range)),
        Value::Object(map) => {
            match (map.get("range").and_then(Value::as_array).map(Vec::as_slice), map.get("set")) {
                (Some([low, high]), _) => port(low)
                    .zip(port(high))
                    .is_none_or(|(low, high)| low <= *range.end() && high >= *range.start()),
                (_, Some(set)) => overlaps(set, range),
                _ => true,
            }
        }
        // A named set.
        _ => true,
    }
}

/// Of what `iptables-save` prints.
fn of_iptables(text: &str, range: &RangeInclusive<u16>) -> Vec<Rule> {
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let after = |option: &str| {
            words.iter().position(|it| *it == option).and_then(|place| words.get(place + 1)).copied()
        };
        let drops = matches!(after("-j"), Some("DROP" | "REJECT"));
        let is_udp = after("-p").is_none_or(|protocol| matches!(protocol, "udp" | "17" | "all"));
        let is_invalid = after("--ctstate").or_else(|| after("--state")) == Some("INVALID");
        let in_range = after("--dport").or_else(|| after("--dports")).is_none_or(|ports| {
            ports.split(',').any(|part| {
                let (low, high) = part.split_once(':').unwrap_or((part, part));
                let bounds = low.parse::<u16>().ok().zip(high.parse::<u16>().ok());
                bounds.is_none_or(|(low, high)| low <= *range.end() && high >= *range.start())
            })
        });
        if let Some(chain) = after("-A").filter(|_| drops && is_udp && in_range && !is_invalid) {
            found.push(Rule { place: format!("iptables {chain}"), text: line.to_owned() });
        }
        if let [chain @ (":INPUT" | ":OUTPUT"), "DROP", ..] = &words[..] {
            let chain = &chain[1..];
            found.push(Rule { place: format!("iptables {chain}"), text: "its policy is DROP".to_owned() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RANGE: RangeInclusive<u16> = 7_400..=7_649;

    fn ruleset(matches: &[Value], verdict: &str) -> Value {
        let mut expressions: Vec<Value> = matches.iter().map(|it| json!({ "match": it })).collect();
        expressions.push(json!({ verdict: null }));
        let chain =
            json!({ "family": "inet", "table": "t", "name": "in", "hook": "input", "policy": "accept" });
        let rule = json!({ "family": "inet", "table": "t", "chain": "in", "handle": 4, "expr": expressions });
        json!({ "nftables": [{ "chain": chain }, { "rule": rule }] })
    }

    fn dport(right: &Value) -> Value {
        json!({ "op": "==", "left": { "payload": { "protocol": "udp", "field": "dport" } }, "right": right })
    }

    #[test]
    fn rules_of_nftables_that_may_drop_are_found() {
        let text = "table ip t {\n\t\tudp dport 9 drop # handle 4\n}\ntable inet t { # handle 1\n\t\tudp dport 7400 drop # handle 4\n}\n";
        let found = |matches: &[Value], verdict| of_nftables(&ruleset(matches, verdict), text, &RANGE);
        let rule = Rule { place: "nftables inet t in".into(), text: "udp dport 7400 drop".into() };
        for right in
            [json!(7400), json!({ "range": [7000, 8000] }), json!({ "set": [80, { "range": [7500, 7501] }] })]
        {
            assert_eq!(found(&[dport(&right)], "drop"), std::slice::from_ref(&rule), "{right}");
            assert_eq!(found(&[dport(&right)], "accept"), []);
        }
        for right in [json!(80), json!({ "range": [8000, 9000] }), json!({ "set": [80, 443] })] {
            assert_eq!(found(&[dport(&right)], "drop"), [], "{right}");
        }
        assert_eq!(found(&[], "reject").len(), 1, "it drops everything");
        let tcp = json!({ "op": "==", "left": { "payload": { "protocol": "tcp", "field": "dport" } }, "right": 7400 });
        let icmp = json!({ "op": "==", "left": { "meta": { "key": "l4proto" } }, "right": "icmp" });
        let invalid = json!({ "op": "in", "left": { "ct": { "key": "state" } }, "right": "invalid" });
        for excluded in [tcp, icmp, invalid] {
            assert_eq!(found(&[excluded], "drop"), []);
        }
    }

    #[test]
    fn a_chain_that_drops_by_default_is_found_unless_a_rule_accepts_the_ports() {
        let mut rules = ruleset(&[dport(&json!(80))], "accept");
        rules["nftables"][0]["chain"]["policy"] = json!("drop");
        assert_eq!(of_nftables(&rules, "", &RANGE).len(), 1);
        let mut rules = ruleset(&[dport(&json!({ "range": [7400, 7900] }))], "accept");
        rules["nftables"][0]["chain"]["policy"] = json!("drop");
        assert_eq!(of_nftables(&rules, "", &RANGE), []);
    }

    #[test]
    fn rules_of_iptables_that_may_drop_are_found() {
        let text = "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT DROP [0:0]\n-A INPUT -p udp -m udp --dport 7000:8000 -j DROP\n\
                    -A INPUT -p tcp -m tcp --dport 7400 -j DROP\n-A INPUT -p udp -m udp --dport 80 -j DROP\n\
                    -A INPUT -m conntrack --ctstate INVALID -j DROP\n-A FORWARD -j ACCEPT\nCOMMIT\n";
        let found = of_iptables(text, &RANGE);
        let places: Vec<_> = found.iter().map(|it| it.place.as_str()).collect();
        assert_eq!(places, ["iptables OUTPUT", "iptables INPUT"]);
        assert!(found[1].text.contains("7000:8000"), "{found:?}");
    }
}
