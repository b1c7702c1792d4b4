//! Endpoints of a topic that do not fit are told why: discovery names each policy, and both endpoints
//! count it (DCPS 1.4 §2.2.4.1, OFFERED_ and REQUESTED_INCOMPATIBLE_QOS).

use plainsong_proto::discovery::MismatchReason;
use plainsong_proto::guid::Guid;

use super::Findings;
use super::rules::{meets_topic, partitions_meet, shortfalls};
use crate::ledger::{Endpoint, Ledger};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let alive = |endpoint: &&Endpoint| endpoint.is_alive();
    for reader in ledger.readers.iter().map(|reader| &reader.endpoint).filter(alive) {
        for writer in ledger.writers.iter().map(|writer| &writer.endpoint).filter(alive) {
            if meets_topic(ledger, writer, reader) {
                check_pair(ledger, (writer, reader), findings);
            }
        }
    }
}

fn check_pair(ledger: &Ledger, (writer, reader): (&Endpoint, &Endpoint), findings: &mut Findings) {
    let expected = if partitions_meet(&writer.qos.partition, &reader.qos.partition) {
        shortfalls(&writer.qos, &reader.qos)
    } else {
        vec!["PARTITION"]
    };
    for endpoint in [writer, reader] {
        let named = named(ledger, endpoint.participant, writer.guid, reader.guid);
        if named != expected {
            findings.report(|| {
                let (writer, reader) = (writer.guid, reader.guid);
                format!("{writer} and {reader} differ in {expected:?}, {} is told {named:?}", endpoint.guid)
            });
        }
        let counted = |name: &&str| {
            let policies = &endpoint.incompatible.policies;
            policies.iter().any(|(id, count)| *count > 0 && id.name() == *name)
        };
        let uncounted = expected.iter().filter(|name| **name != "PARTITION" && !counted(name));
        for name in uncounted {
            findings.report(|| format!("{} did not count incompatible {name}", endpoint.guid));
        }
    }
}

/// What a participant says is wrong with a pair.
fn named(ledger: &Ledger, participant: usize, writer: Guid, reader: Guid) -> Vec<&'static str> {
    let Some(record) = ledger.participants.get(participant) else { return Vec::new() };
    let found = record.mismatches.iter().find(|(one, other, _)| *one == writer && *other == reader);
    match found.map(|(_, _, reason)| reason) {
        None => Vec::new(),
        Some(MismatchReason::Partition) => vec!["PARTITION"],
        Some(MismatchReason::Qos(policies)) => policies.iter().map(|id| id.name()).collect(),
        Some(_) => vec!["something else"],
    }
}
