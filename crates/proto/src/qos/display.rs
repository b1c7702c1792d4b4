//! A QoS for people: the policies in which it differs from the standard's defaults.

use std::fmt;

use super::policy::{
    Consistency, DeliverAt, History, HistoryKind, LENGTH_UNLIMITED, Property, QosSet, ResourceLimits,
};
use super::table::POLICIES;
use super::words;
use crate::status::IncompatibleQosStatus;

/// `RELIABILITY RELIABLE 100 ms, HISTORY KEEP_LAST 5`; `defaults` when it says nothing. Properties are named,
/// their values are not: they may be secret.
impl fmt::Display for QosSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.differing_from(&Self::default());
        for (place, (name, value)) in told.iter().enumerate() {
            write!(f, "{}{name} {value}", if place == 0 { "" } else { ", " })?;
        }
        if told.is_empty() { f.write_str("defaults") } else { Ok(()) }
    }
}

impl QosSet {
    /// The policies in which it differs from another set, such as [`QosSet::writer`] or [`QosSet::reader`]:
    /// the name and its value in words, of properties the names.
    #[must_use]
    pub fn differing_from(&self, other: &Self) -> Vec<(&'static str, String)> {
        let differing = POLICIES.iter().filter(|policy| !(policy.equal)(self, other));
        differing.map(|policy| (policy.name, in_words(self, policy.name))).collect()
    }
}

impl fmt::Display for IncompatibleQosStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        for (place, (id, times)) in self.policies.iter().enumerate() {
            write!(f, "{} {id} {times} times", if place == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

/// The value of a policy.
fn in_words(qos: &QosSet, policy: &str) -> String {
    let octets = |octets: &[u8]| format!("{} octets", octets.len());
    match policy {
        "USER_DATA" => octets(&qos.user_data),
        "TOPIC_DATA" => octets(&qos.topic_data),
        "GROUP_DATA" => octets(&qos.group_data),
        "DURABILITY" => qos.durability.to_string(),
        "DURABILITY_SERVICE" => {
            let service = &qos.durability_service;
            let (history, limits) = (history(service.history), limits(service.resource_limits));
            format!("cleanup after {}, {history}, {limits}", service.service_cleanup_delay)
        }
        "PRESENTATION" => {
            let presentation = &qos.presentation;
            let coherent = if presentation.coherent_access { " coherent" } else { "" };
            let ordered = if presentation.ordered_access { " ordered" } else { "" };
            format!("{}{coherent}{ordered}", presentation.access_scope)
        }
        "DEADLINE" => qos.deadline.to_string(),
        "LATENCY_BUDGET" => qos.latency_budget.to_string(),
        "OWNERSHIP" => qos.ownership.to_string(),
        "OWNERSHIP_STRENGTH" => qos.ownership_strength.to_string(),
        "LIVELINESS" => format!("{} {}", qos.liveliness.kind, qos.liveliness.lease_duration),
        "TIME_BASED_FILTER" => qos.time_based_filter.to_string(),
        "PARTITION" => words::partitions(&qos.partition),
        "RELIABILITY" => format!("{} {}", qos.reliability.kind, qos.reliability.max_blocking_time),
        "TRANSPORT_PRIORITY" => qos.transport_priority.to_string(),
        "LIFESPAN" => qos.lifespan.to_string(),
        "DESTINATION_ORDER" => qos.destination_order.to_string(),
        "HISTORY" => history(qos.history),
        "RESOURCE_LIMITS" => limits(qos.resource_limits),
        "ENTITY_FACTORY" => switch(qos.entity_factory.autoenable_created_entities, "autoenable"),
        "WRITER_DATA_LIFECYCLE" => {
            switch(qos.writer_data_lifecycle.autodispose_unregistered_instances, "autodispose")
        }
        "READER_DATA_LIFECYCLE" => {
            let lifecycle = &qos.reader_data_lifecycle;
            let (gone, disposed) =
                (lifecycle.autopurge_nowriter_samples_delay, lifecycle.autopurge_disposed_samples_delay);
            format!("purged without writers after {gone}, disposed after {disposed}")
        }
        "DATA_REPRESENTATION" => {
            let names: Vec<_> =
                qos.data_representation.iter().map(|version| words::representation(*version)).collect();
            names.join(" ")
        }
        "TYPE_CONSISTENCY_ENFORCEMENT" => type_consistency(qos),
        "PROPERTY" => properties(&qos.properties),
        "CONSISTENCY" => consistency(qos.consistency),
        _ => String::new(),
    }
}

fn consistency(policy: Consistency) -> String {
    let mut text = policy.kind.to_string();
    if !policy.slow_member_delay.is_infinite() {
        text += &format!(" without who is slow for {}", policy.slow_member_delay);
    }
    if policy.deliver_at == DeliverAt::Stable {
        text += " delivered before it is durable";
    }
    text
}

fn switch(on: bool, what: &str) -> String {
    if on { what.to_owned() } else { format!("no {what}") }
}

fn history(history: History) -> String {
    match history.kind {
        HistoryKind::KeepAll => HistoryKind::KeepAll.to_string(),
        HistoryKind::KeepLast => format!("{} {}", HistoryKind::KeepLast, history.depth),
    }
}

fn limits(limits: ResourceLimits) -> String {
    let ResourceLimits { max_samples, max_instances, max_samples_per_instance } = limits;
    let named = [
        ("max_samples", max_samples),
        ("max_instances", max_instances),
        ("max_samples_per_instance", max_samples_per_instance),
    ];
    let set = named.iter().filter(|(_, limit)| *limit != LENGTH_UNLIMITED);
    let words: Vec<_> = set.map(|(name, limit)| format!("{name} {limit}")).collect();
    if words.is_empty() { "no limits".to_owned() } else { words.join(" ") }
}

fn type_consistency(qos: &QosSet) -> String {
    let it = &qos.type_consistency;
    [
        (it.allow_type_coercion, "coercion"),
        (it.ignore_sequence_bounds, "ignore sequence bounds"),
        (it.ignore_string_bounds, "ignore string bounds"),
        (it.ignore_member_names, "ignore member names"),
        (it.prevent_type_widening, "prevent widening"),
        (it.force_type_validation, "force validation"),
    ]
    .map(|(on, what)| switch(on, what))
    .join("; ")
}

/// Names of properties shown at most: a peer may have many.
const PROPERTIES_SHOWN_MAX: usize = 8;

fn properties(properties: &[Property]) -> String {
    let shown = properties.iter().take(PROPERTIES_SHOWN_MAX);
    let names: Vec<_> = shown.map(|property| format!("{:?}", property.name)).collect();
    match properties.len().saturating_sub(PROPERTIES_SHOWN_MAX) {
        0 => names.join(" "),
        more => format!("{} and {more} more", names.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::{ConsistencyKind, Durability, LivelinessKind};
    use super::*;
    use crate::policy_id::PolicyId;
    use crate::status::CountStatus;
    use crate::time::Duration;

    #[test]
    fn a_qos_tells_what_is_not_the_default() {
        assert_eq!(QosSet::default().to_string(), "defaults");
        assert_eq!(QosSet::writer().to_string(), "RELIABILITY RELIABLE 100 ms");
        assert_eq!(QosSet::writer().differing_from(&QosSet::writer()), []);
        let durable = QosSet::writer().durability(Durability::TransientLocal);
        let expected = [("DURABILITY", "TRANSIENT_LOCAL".to_owned())];
        assert_eq!(durable.differing_from(&QosSet::writer()), expected);
        let mut qos = QosSet::reader()
            .keep_last(5)
            .durability(Durability::TransientLocal)
            .deadline(Duration::from_millis(20))
            .liveliness(LivelinessKind::ManualByTopic, Duration::from_secs(1))
            .partition(["a"])
            .consistency(ConsistencyKind::Atomic);
        qos.consistency.slow_member_delay = Duration::from_secs(2);
        qos.resource_limits.max_samples = 4;
        let secret = Property { name: "password".into(), value: "xyzzy".into(), propagate: false };
        qos.properties.push(secret);
        let text = qos.to_string();
        for part in [
            "RELIABILITY BEST_EFFORT 100 ms",
            "HISTORY KEEP_LAST 5",
            "DURABILITY TRANSIENT_LOCAL",
            "DEADLINE 20 ms",
            "LIVELINESS MANUAL_BY_TOPIC 1 s",
            "PARTITION \"a\"",
            "RESOURCE_LIMITS max_samples 4",
            "PROPERTY \"password\"",
            "CONSISTENCY ATOMIC without who is slow for 2 s",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("xyzzy"), "{text}");
    }

    #[test]
    fn incompatible_policies_are_named() {
        let count = CountStatus { total_count: 3, total_count_change: 2 };
        let id = PolicyId::Reliability;
        let incompatible = IncompatibleQosStatus { count, last_policy_id: Some(id), policies: vec![(id, 3)] };
        assert_eq!(incompatible.to_string(), "3 in all, 2 new: RELIABILITY 3 times");
    }

    #[test]
    fn every_policy_has_words() {
        let mut qos = QosSet::writer().partition(["a"]);
        qos.properties.push(Property::default());
        qos.data_representation.push(crate::cdr::XcdrVersion::Xcdr2);
        for policy in POLICIES {
            assert!(!in_words(&qos, policy.name).is_empty(), "{}", policy.name);
        }
    }
}
