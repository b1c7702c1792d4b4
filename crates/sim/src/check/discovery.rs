//! Once faults are over, live participants know each other and nobody else, endpoints that fit are
//! matched on both sides and no others are, and the matched statuses say so (RTPS 2.5 §8.5).

use plainsong_proto::guid::{Guid, GuidPrefix};
use plainsong_proto::qos::QosSet;

use super::Findings;
use crate::ledger::{Endpoint, Ledger, ParticipantRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for participant in ledger.participants.iter().filter(|participant| participant.ended.is_none()) {
        check_acquaintances(ledger, participant, findings);
    }
    for writer in ledger.writers.iter().filter(|writer| writer.endpoint.is_alive()) {
        let readers = ledger.readers.iter().map(|reader| &reader.endpoint);
        let fitting =
            readers.filter(|reader| fits(ledger, &writer.endpoint, reader)).map(|reader| reader.guid);
        check_matches(&writer.endpoint, fitting.collect(), findings);
    }
    for reader in ledger.readers.iter().filter(|reader| reader.endpoint.is_alive()) {
        let writers = ledger.writers.iter().map(|writer| &writer.endpoint);
        let fitting =
            writers.filter(|writer| fits(ledger, writer, &reader.endpoint)).map(|writer| writer.guid);
        check_matches(&reader.endpoint, fitting.collect(), findings);
    }
}

fn check_acquaintances(ledger: &Ledger, participant: &ParticipantRecord, findings: &mut Findings) {
    let mut expected: Vec<GuidPrefix> = ledger
        .participants
        .iter()
        .filter(|other| other.ended.is_none() && other.domain == participant.domain)
        .map(|other| other.prefix)
        .filter(|prefix| *prefix != participant.prefix)
        .collect();
    expected.sort_unstable();
    let mut known = participant.knows.clone();
    known.sort_unstable();
    for prefix in expected.iter().filter(|prefix| !known.contains(prefix)) {
        findings.report(|| format!("{:?} does not know {prefix:?}", participant.prefix));
    }
    for prefix in known.iter().filter(|prefix| !expected.contains(prefix)) {
        findings.report(|| format!("{:?} still knows {prefix:?}, which is gone", participant.prefix));
    }
}

fn check_matches(endpoint: &Endpoint, mut expected: Vec<Guid>, findings: &mut Findings) {
    expected.sort_unstable();
    let matched: Vec<Guid> = endpoint.matched().collect();
    for peer in expected.iter().filter(|peer| !matched.contains(peer)) {
        findings.report(|| format!("{} is not matched with {peer}, which fits", endpoint.guid));
    }
    for peer in matched.iter().filter(|peer| !expected.contains(peer)) {
        findings
            .report(|| format!("{} is matched with {peer}, which is gone or does not fit", endpoint.guid));
    }
    let status = endpoint.matched_status;
    let total: usize = endpoint.matches.values().map(Vec::len).sum();
    if status.current_count != matched.len() as i32 || status.total.total_count != total as i32 {
        findings.report(|| {
            let (current, ever) = (status.current_count, status.total.total_count);
            let told = format!("{} of {total} matches ever made", matched.len());
            format!("{} says {current} of {ever} matches, it was told {told}", endpoint.guid)
        });
    }
}

fn fits(ledger: &Ledger, writer: &Endpoint, reader: &Endpoint) -> bool {
    let domain = |endpoint: &Endpoint| {
        ledger.participants.get(endpoint.participant).map(|participant| participant.domain)
    };
    writer.is_alive()
        && reader.is_alive()
        && domain(writer) == domain(reader)
        && writer.topic == reader.topic
        && writer.keyed == reader.keyed
        && partitions_meet(&writer.qos.partition, &reader.qos.partition)
        && offer_suffices(&writer.qos, &reader.qos)
}

/// Request versus offer, written down a second time (DCPS 1.4 §2.2.3).
fn offer_suffices(offered: &QosSet, requested: &QosSet) -> bool {
    offered.reliability.kind >= requested.reliability.kind
        && offered.durability >= requested.durability
        && offered.deadline <= requested.deadline
        && offered.latency_budget <= requested.latency_budget
        && offered.ownership == requested.ownership
        && offered.liveliness.kind >= requested.liveliness.kind
        && offered.liveliness.lease_duration <= requested.liveliness.lease_duration
        && offered.destination_order >= requested.destination_order
        && offered.presentation.access_scope >= requested.presentation.access_scope
        && (offered.presentation.coherent_access || !requested.presentation.coherent_access)
        && (offered.presentation.ordered_access || !requested.presentation.ordered_access)
}

/// Only a final `*` is a pattern here; two patterns never meet (DCPS 1.4 §2.2.3.13).
fn partitions_meet(ours: &[String], theirs: &[String]) -> bool {
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
}
