//! Who may talk to whom, written down a second time (DCPS 1.4 §2.2.3).

use plainsong_proto::cdr::XcdrVersion;
use plainsong_proto::qos::QosSet;

use crate::ledger::{Endpoint, Ledger};

/// Whether a writer and a reader are to be matched now.
pub(super) fn fits(ledger: &Ledger, writer: &Endpoint, reader: &Endpoint) -> bool {
    meets_topic(ledger, writer, reader)
        && writer.is_alive()
        && reader.is_alive()
        && partitions_meet(&writer.qos.partition, &reader.qos.partition)
        && shortfalls(&writer.qos, &reader.qos).is_empty()
}

/// Whether both belong to the same topic of the same domain.
pub(super) fn meets_topic(ledger: &Ledger, writer: &Endpoint, reader: &Endpoint) -> bool {
    let domain = |endpoint: &Endpoint| {
        ledger.participants.get(endpoint.participant).map(|participant| participant.domain)
    };
    domain(writer) == domain(reader) && writer.topic == reader.topic && writer.keyed == reader.keyed
}

/// Names of the policies in which an offer does not suffice for a request.
pub(super) fn shortfalls(offered: &QosSet, requested: &QosSet) -> Vec<&'static str> {
    let representation = offered.data_representation.first().copied().unwrap_or(XcdrVersion::Xcdr1);
    let accepted = &requested.data_representation;
    let is_accepted =
        accepted.contains(&representation) || (accepted.is_empty() && representation == XcdrVersion::Xcdr1);
    let (shown, asked) = (offered.presentation, requested.presentation);
    let rules = [
        ("DURABILITY", offered.durability >= requested.durability),
        (
            "PRESENTATION",
            shown.access_scope >= asked.access_scope
                && (shown.coherent_access || !asked.coherent_access)
                && (shown.ordered_access || !asked.ordered_access),
        ),
        ("DEADLINE", offered.deadline <= requested.deadline),
        ("LATENCY_BUDGET", offered.latency_budget <= requested.latency_budget),
        ("OWNERSHIP", offered.ownership == requested.ownership),
        (
            "LIVELINESS",
            offered.liveliness.kind >= requested.liveliness.kind
                && offered.liveliness.lease_duration <= requested.liveliness.lease_duration,
        ),
        ("RELIABILITY", offered.reliability.kind >= requested.reliability.kind),
        ("DESTINATION_ORDER", offered.destination_order >= requested.destination_order),
        ("DATA_REPRESENTATION", is_accepted),
    ];
    rules.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
}

/// Only a final `*` is a pattern here; two patterns never meet (DCPS 1.4 §2.2.3.13).
pub(super) fn partitions_meet(ours: &[String], theirs: &[String]) -> bool {
    let names = |list: &[String]| if list.is_empty() { vec![String::new()] } else { list.to_vec() };
    let theirs = names(theirs);
    names(ours).iter().any(|one| theirs.iter().any(|other| meets(one, other)))
}

fn meets(one: &str, other: &str) -> bool {
    match (one.strip_suffix('*'), other.strip_suffix('*')) {
        (None, None) => one == other,
        (Some(start), None) => other.starts_with(start),
        (None, Some(start)) => one.starts_with(start),
        (Some(_), Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fact_29_patterns_meet_names_but_never_patterns() {
        assert!(meets("a1", "a*") && meets("a*", "a1") && meets("", "*"));
        assert!(!meets("a*", "a*") && !meets("b1", "a*") && !meets("", "a"));
        assert!(partitions_meet(&[], &[String::new()]));
    }

    #[test]
    fn every_shortfall_is_named() {
        let (offered, mut requested) = (QosSet::default(), QosSet::default().reliable());
        requested.presentation.ordered_access = true;
        requested.data_representation = vec![XcdrVersion::Xcdr2];
        assert_eq!(shortfalls(&offered, &requested), ["PRESENTATION", "RELIABILITY", "DATA_REPRESENTATION"]);
    }
}
