//! QoS that changes while an endpoint lives reaches everyone: user, topic and group data, partitions and
//! what else may change (DCPS 1.4 §2.2.3).

use plainsong_proto::qos::QosSet;

use super::Findings;
use crate::ledger::{Endpoint, Ledger, ParticipantRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let writers = ledger.writers.iter().map(|writer| &writer.endpoint);
    let readers = ledger.readers.iter().map(|reader| &reader.endpoint);
    for endpoint in writers.chain(readers).filter(|endpoint| endpoint.is_alive()) {
        let Some(home) = ledger.participants.get(endpoint.participant) else { continue };
        let others = ledger.participants.iter().filter(|other| {
            other.ended.is_none() && other.domain == home.domain && other.prefix != home.prefix
        });
        others.for_each(|other| check_belief(other, endpoint, findings));
    }
}

fn check_belief(other: &ParticipantRecord, endpoint: &Endpoint, findings: &mut Findings) {
    let found = other.believes.iter().find(|(guid, _)| *guid == endpoint.guid);
    let Some((_, believed)) = found else {
        findings.report(|| format!("{:?} does not know of {}", other.prefix, endpoint.guid));
        return;
    };
    if let Some(policy) = difference(believed, &endpoint.qos, endpoint.guid.entity.is_writer()) {
        findings.report(|| format!("{:?} believes {} to have another {policy}", other.prefix, endpoint.guid));
    }
}

/// The first policy of those that may change and are announced in which two differ.
fn difference(one: &QosSet, other: &QosSet, writes: bool) -> Option<&'static str> {
    let names = |list: &[String]| if list.is_empty() { vec![String::new()] } else { list.to_vec() };
    let rows = [
        ("USER_DATA", one.user_data == other.user_data),
        ("TOPIC_DATA", one.topic_data == other.topic_data),
        ("GROUP_DATA", one.group_data == other.group_data),
        ("PARTITION", names(&one.partition) == names(&other.partition)),
        ("DEADLINE", one.deadline == other.deadline),
        ("LATENCY_BUDGET", one.latency_budget == other.latency_budget),
        ("OWNERSHIP_STRENGTH", !writes || one.ownership_strength == other.ownership_strength),
        ("LIFESPAN", !writes || one.lifespan == other.lifespan),
        ("TIME_BASED_FILTER", writes || one.time_based_filter == other.time_based_filter),
    ];
    rows.into_iter().find(|(_, equal)| !equal).map(|(name, _)| name)
}
